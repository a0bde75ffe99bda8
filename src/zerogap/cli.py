"""The command line: each command parses, makes one library call, and prints."""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from zerogap import __version__
from zerogap.limits import interruptible

INTERRUPTED = 130  # what shells make of a program that Ctrl-C has ended
WARM_UP_SECONDS = 1.0
SMO_FAMILY = "smo,smo-mvp,smo-keerthi,smo-platt,smo-simple"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return options.command(options)
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"zerogap: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("zerogap: interrupted", file=sys.stderr)
        return INTERRUPTED


def _show_warning(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    print(f"zerogap: {message}", file=sys.stderr)


# Arguments.


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "zerogap", description="Support vector machines solved exactly, with a proof attached."
    )
    parser.add_argument("--version", action="version", version=f"zerogap {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    path = commands.add_parser("path", help="follow the solution for every C, and score it on held-out data")
    _add_data(path)
    path.add_argument("--C-min", type=float, default=1e-2, help="smallest C (default 0.01)")
    path.add_argument("--C-max", type=float, default=1e3, help="largest C (default 1000)")
    path.add_argument("--max-events", type=int, help="stop after so many events")
    path.add_argument("--engine", default="single", help="single, lp (Ong et al.) or hastie (default single)")
    path.add_argument("--linear-system", help="of engine lp: svd, qr or qr-update")
    path.add_argument("--no-grid", action="store_true", help="do not run scikit-learn's grid for comparison")
    path.add_argument("--json", metavar="FILE", help="write the results as JSON")
    path.add_argument("--save", metavar="FILE", help="write the path itself, to be read by zerogap.Path.load")
    path.set_defaults(command=_path)

    fit = commands.add_parser("fit", help="fit a classifier, certify it, and compare with scikit-learn")
    _add_data(fit)
    fit.add_argument(
        "--C", type=float, default=10.0, help="cost of a violated margin; inf is the hard margin (default 10)"
    )
    fit.add_argument("--loss", default="hinge", choices=["hinge", "squared_hinge"])
    fit.add_argument("--tol", type=float, default=1e-6, help="relative duality gap to certify (default 1e-6)")
    fit.add_argument("--solver", default="auto")
    fit.add_argument("--max-time", type=float, help="limit in seconds")
    fit.set_defaults(command=_fit)

    reproduce = commands.add_parser("reproduce", help="rerun the experiments of the papers, their numbers beside ours")
    reproduce.add_argument(
        "names", nargs="*", help="such as ong-table-2, a paper, or all; without any, the list of them"
    )
    reproduce.add_argument("--quick", action="store_true", help="a smaller form that takes seconds")
    reproduce.add_argument("--output", metavar="FOLDER", help="write tables, CSV files and figures there")
    reproduce.set_defaults(command=_reproduce)
    compare = commands.add_parser("compare", help="run several solvers on one problem, and count what each needs")
    _add_data(compare, is_split=False)
    compare.add_argument("--solvers", default=SMO_FAMILY, help=f"names joined by commas (default {SMO_FAMILY})")
    compare.add_argument("--C", type=float, default=10.0, help="cost of a violated margin; inf is the hard margin")
    compare.add_argument("--loss", default="hinge", choices=["hinge", "squared_hinge"])
    compare.add_argument("--tol", type=float, default=1e-6, help="relative duality gap to reach (default 1e-6)")
    compare.add_argument("--max-time", type=float, default=60.0, help="limit in seconds for each solver (default 60)")
    compare.add_argument("--json", metavar="FILE", help="write table and traces as JSON")
    compare.add_argument("--plot", metavar="FILE", help="draw the convergence; the ending says the form, such as .png")
    compare.add_argument("--y", default="gap", help="what to draw: gap, dual, margin or distance (default gap)")
    compare.add_argument("--x", default="step", help="against what: step, seconds or kernel_evaluations (default step)")
    compare.add_argument("--trace-every", type=int, help="iterations between two points of the plot")
    compare.set_defaults(command=_compare)
    return parser


def _add_data(command: argparse.ArgumentParser, is_split: bool = True) -> None:
    """Add what every command takes that reads data and a kernel."""
    command.add_argument("data", nargs="?", default="breast_cancer", help="svmlight or CSV file, or a data set's name")
    command.add_argument("--target", help="target column of a CSV file (default: the last)")
    command.add_argument("--kernel", default="rbf", help="linear, poly, rbf or sigmoid (default rbf)")
    command.add_argument("--gamma", default="scale", help="scale, auto or a number (default scale)")
    command.add_argument("--degree", type=int, default=3)
    command.add_argument("--coef0", type=float, default=0.0)
    command.add_argument("--raw", action="store_true", help="do not scale the features to mean 0 and variance 1")
    if is_split:
        command.add_argument(
            "--test-size", type=float, default=1 / 3, help="part of the rows held out (default a third)"
        )
        command.add_argument("--verbose", action="store_true", help="show progress")
    command.add_argument("--seed", type=int, default=0, help="seed of the split, or of the solvers (default 0)")


def _kernel_options(options: argparse.Namespace) -> dict[str, Any]:
    gamma = options.gamma if options.gamma in ("scale", "auto") else float(options.gamma)
    return {"kernel": options.kernel, "gamma": gamma, "degree": options.degree, "coef0": options.coef0}


def _load(options: argparse.Namespace) -> tuple[Any, np.ndarray]:
    from zerogap import datasets

    is_file = Path(options.data).exists()
    return datasets.read(options.data, options.target) if is_file else datasets.load(options.data)


def _scaler(X: Any) -> Any:
    """Return what scales features to mean 0 and variance 1; a sparse matrix is not shifted, so that it stays sparse."""
    import scipy.sparse as sp
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=not sp.issparse(X)).fit(X)


def _split(options: argparse.Namespace) -> list[Any]:
    """Load the data, hold some out, and scale both parts by the training part."""
    from sklearn.model_selection import train_test_split

    X, y = _load(options)
    train, test, *labels = train_test_split(X, y, test_size=options.test_size, random_state=options.seed, stratify=y)
    if not options.raw:
        scaler = _scaler(train)
        train, test = scaler.transform(train), scaler.transform(test)
    print(f"{options.data}: {train.shape[0]} points to train, {test.shape[0]} to test, {train.shape[1]} features")
    return [train, test, *labels]


def _toy(n_features: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A few points that run every compiled function: loading them is no part of a training time."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.standard_normal((n, n_features)) + y[:, None], y


# Commands.


def _path(options: argparse.Namespace) -> int:
    from zerogap import SVC, SVCPath

    train, test, y_train, y_test = _split(options)
    settings = {
        **_kernel_options(options),
        "C_min": options.C_min,
        "C_max": options.C_max,
        "max_events": options.max_events,
        "engine": options.engine,
        "linear_system": options.linear_system,
    }
    warnings.filterwarnings("ignore", message=r"SVCPath was stopped \(max_events")  # as it was asked to
    with interruptible():
        SVCPath(**settings).fit(*_toy(4, 300 if options.engine == "single" else 60))
        SVC(gamma=1.0).partial_fit(*_toy(4, 20)).partial_fit(*_toy(4, 30))  # exchanges: a path may start with some
    began = time.perf_counter()
    model = SVCPath(**settings, verbose=options.verbose).fit(train, y_train)
    seconds = time.perf_counter() - began
    path, is_interrupted = model.path_, model.path_.status == "interrupted"
    if not path.has_segments:
        print(f"no solution yet at C = {options.C_min:g}: {path.status}")
        return _ended(is_interrupted)
    curve, gap = model.score_curve(test, y_test), path.largest_gap_
    best = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in curve.best_intervals)
    print(f"every C from {path.C[0]:g} to {path.C[-1]:g}, kernel {options.kernel!r}: {path.status}\n")
    print(f"  breakpoints            {len(path):>9}")
    print(f"  events                 {path.n_events:>9}")
    print(f"  largest elbow          {path.n_free.max():>9}")
    print(f"  largest certified gap  {gap:>9.1e}  over every C")
    print(f"  best test accuracy     {curve.best_score:>9.4f}  for C in {best}")
    print(f"  seconds                {seconds:>9.3f}")
    if options.engine == "lp":
        counts = path.counts
        print(f"  largest null space     {counts.largest_null_space:>9}")
        print(f"  special events         {counts.special:>9}")
        print(f"  backups                {path.n_backups:>9}  of them {counts.kkt_backups} for violated conditions")
        print(f"  seconds                {counts.tracking_seconds:>9.3f}  tracking, {counts.start_seconds:.3f} start")
    results: dict[str, Any] = {
        "data": options.data, "status": path.status, "C": path.C.tolist(), "n_free": path.n_free.tolist(),
        "events": [event._asdict() for event in path.events], "largest_gap": gap, "seconds": seconds,
        "score_curve": {"C": curve.C.tolist(), "score": curve.score.tolist()},
        "best_score": curve.best_score, "best_intervals": curve.best_intervals, "counts": asdict(path.counts),
    }  # fmt: skip
    if not (options.no_grid or is_interrupted):
        grid = results["grid"] = _grid(options, path.C[-1], train, test, y_train, y_test)
        print(f"\n  scikit-learn, 25 C     {grid['seconds']:>9.3f}  seconds")
        print(f"  best test accuracy     {grid['best_score']:>9.4f}  for C = {grid['best_C']:.4g}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    if options.save:
        path.save(options.save)
    return _ended(is_interrupted)


def _reproduce(options: argparse.Namespace) -> int:
    from zerogap import reproduce

    if not options.names:
        print("\n".join(reproduce.experiments()))
        return 0
    with interruptible():  # half an experiment is none
        reports = reproduce.reproduce(options.names, quick=options.quick, output=options.output)
    # Where a paper says otherwise that is a result; only what must hold whatever it says is a failure.
    return int(any(not cell.holds for report in reports for cell in report.judged(reproduce.SELF)))


def _grid(
    options: argparse.Namespace, C_max: float, train: Any, test: Any, y_train: Any, y_test: Any
) -> dict[str, Any]:
    """Fit scikit-learn's SVC for 25 values of C, as one does without a path."""
    from sklearn.svm import SVC as Peer

    values = np.geomspace(options.C_min, C_max, 25)
    began = time.perf_counter()
    models = [Peer(C=C, **_kernel_options(options)).fit(train, y_train) for C in values]
    seconds = time.perf_counter() - began
    scores = [float(model.score(test, y_test)) for model in models]
    best = int(np.argmax(scores))
    return {
        "C": values.tolist(), "score": scores, "seconds": seconds, "best_score": scores[best], "best_C": float(values[best])
    }  # fmt: skip


def _fit(options: argparse.Namespace) -> int:
    from zerogap import SVC, Status

    train, test, y_train, y_test = _split(options)
    print(f"SVC(C={options.C:g}, kernel={options.kernel!r}, loss={options.loss!r}, tol={options.tol:g})\n")
    settings = {"C": options.C, **_kernel_options(options), "loss": options.loss, "solver": options.solver}
    with interruptible(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a compiler may take longer than that, and nobody asked for these points
        SVC(**settings, max_time=WARM_UP_SECONDS).fit(*_toy(train.shape[1], 2))
    model = SVC(**settings, tol=options.tol, max_time=options.max_time, verbose=options.verbose)
    began = time.perf_counter()
    model.fit(train, y_train)
    seconds = time.perf_counter() - began
    ours = {
        "test accuracy": f"{model.score(test, y_test):.4f}",
        "support vectors": f"{model.support_.size}",
        "certified gap": f"{model.duality_gap_:.1e}",
        "seconds": f"{seconds:.4f}",
    }
    is_interrupted = Status.INTERRUPTED in (model.status_ if isinstance(model.status_, list) else [model.status_])
    theirs = {} if is_interrupted else _peer(options, model.classes_, train, test, y_train, y_test)
    print(f"  {'':<18}{'zerogap':>14}{'scikit-learn':>16}")
    for title, value in ours.items():
        print(f"  {title:<18}{value:>14}{theirs.get(title, '-'):>16}")
    print()
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    for certificate in certificates[:3]:
        print(f"certificate: {certificate}")
    if len(certificates) > 3:
        print(f"... and {len(certificates) - 3} more pairs of classes; the largest gap is {model.duality_gap_:.1e}")
    return _ended(is_interrupted)


def _ended(is_interrupted: bool) -> int:
    """Return the exit code of a command that has shown its results, all or those there were when Ctrl-C came."""
    if is_interrupted:
        raise KeyboardInterrupt
    return 0


def _peer(
    options: argparse.Namespace, classes: np.ndarray, train: Any, test: Any, y_train: Any, y_test: Any
) -> dict[str, str]:
    """Fit scikit-learn's SVC where it has the same problem, and certify what it found."""
    from sklearn.svm import SVC as Peer

    from zerogap import DualProblem, Gram

    if options.loss != "hinge" or not np.isfinite(options.C):
        return {}
    kernel = _kernel_options(options)
    peer = Peer(C=options.C, **kernel, max_iter=10_000_000)
    began = time.perf_counter()
    peer.fit(train, y_train)
    seconds = time.perf_counter() - began
    row = {
        "test accuracy": f"{peer.score(test, y_test):.4f}",
        "support vectors": f"{peer.support_.size}",
        "seconds": f"{seconds:.4f}",
    }
    if classes.size == 2:
        beta = np.zeros(train.shape[0])
        beta[peer.support_] = np.asarray(
            peer.dual_coef_.todense() if hasattr(peer.dual_coef_, "todense") else peer.dual_coef_
        )[0]
        signs = np.where(y_train == classes[1], 1.0, -1.0)
        problem = DualProblem.hinge(Gram(train, kernel.pop("kernel"), **kernel), signs, options.C)
        row["certified gap"] = f"{problem.certify(problem.feasible(beta)).relative_gap:.1e}"
    return row


def _compare(options: argparse.Namespace) -> int:
    from zerogap import DualProblem, Gram, RelativeGap, compare

    X, y = _load(options)
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(f"compare takes a two-class problem; y has {classes.size} classes {classes[:5].tolist()}.")
    X = X if options.raw else _scaler(X).transform(X)
    kernel = _kernel_options(options)
    problem = getattr(DualProblem, options.loss)(
        Gram(X, kernel.pop("kernel"), **kernel), np.where(y == classes[1], 1.0, -1.0), options.C
    )
    print(f"{options.data}: {X.shape[0]} points, {X.shape[1]} features")
    print(f"{options.loss}, C={options.C:g}, kernel {options.kernel!r}, to a relative gap of {options.tol:g}\n")
    comparison = compare(
        problem,
        [name.strip() for name in options.solvers.split(",")],
        distance=options.y == "distance",
        stop=RelativeGap(options.tol),
        max_time=options.max_time,
        trace_every=options.trace_every or (10 if options.plot else None),
        random_state=options.seed,
    )
    print(comparison)
    if options.json:
        Path(options.json).write_text(json.dumps({"data": options.data, **comparison.to_dict()}, indent=1))
    if options.plot:
        comparison.plot(options.y, options.x).figure.savefig(options.plot, bbox_inches="tight")
    return _ended(any(row["status"] == "INTERRUPTED" for row in comparison.rows))


if __name__ == "__main__":
    raise SystemExit(main())
