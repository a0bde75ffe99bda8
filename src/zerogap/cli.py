"""The command line: each command parses, makes one library call, and prints."""

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerogap import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except (ValueError, TypeError, OSError) as error:
        print(f"zerogap: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "zerogap", description="Support vector machines solved exactly, with a proof attached."
    )
    parser.add_argument("--version", action="version", version=f"zerogap {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    fit = commands.add_parser("fit", help="fit a classifier, certify it, and compare with scikit-learn")
    fit.add_argument("data", nargs="?", default="breast_cancer", help="svmlight or CSV file, or a data set's name")
    fit.add_argument("--target", help="target column of a CSV file (default: the last)")
    fit.add_argument(
        "--C", type=float, default=10.0, help="cost of a violated margin; inf is the hard margin (default 10)"
    )
    fit.add_argument("--kernel", default="rbf", help="linear, poly, rbf or sigmoid (default rbf)")
    fit.add_argument("--gamma", default="scale", help="scale, auto or a number (default scale)")
    fit.add_argument("--degree", type=int, default=3)
    fit.add_argument("--coef0", type=float, default=0.0)
    fit.add_argument("--loss", default="hinge", choices=["hinge", "squared_hinge"])
    fit.add_argument("--tol", type=float, default=1e-6, help="relative duality gap to certify (default 1e-6)")
    fit.add_argument("--solver", default="auto")
    fit.add_argument("--max-time", type=float, help="limit in seconds")
    fit.add_argument("--test-size", type=float, default=1 / 3, help="part of the rows held out (default a third)")
    fit.add_argument("--seed", type=int, default=0, help="seed of the split (default 0)")
    fit.add_argument("--raw", action="store_true", help="do not scale the features to mean 0 and variance 1")
    fit.add_argument("--verbose", action="store_true", help="show progress")
    fit.set_defaults(command=_fit)
    return parser


def _fit(options: argparse.Namespace) -> int:
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC as Peer

    from zerogap import SVC, DualProblem, Gram

    X, y = _load(options.data, options.target)
    parts = train_test_split(X, y, test_size=options.test_size, random_state=options.seed, stratify=y)
    train, test, y_train, y_test = _scaled(parts, options.raw)
    gamma = options.gamma if options.gamma in ("scale", "auto") else float(options.gamma)
    shared: dict[str, Any] = {
        "C": options.C, "kernel": options.kernel, "gamma": gamma, "degree": options.degree, "coef0": options.coef0,
    }  # fmt: skip
    model = SVC(
        **shared,
        loss=options.loss,
        tol=options.tol,
        solver=options.solver,
        max_time=options.max_time,
        verbose=options.verbose,
    )
    # Loading compiled code (the first time ever, compiling it) is no part of training, nor is it of the peer's time.
    SVC(**shared, loss=options.loss, solver=options.solver, max_time=1.0).fit(*_toy(train.shape[1]))
    began = time.perf_counter()
    model.fit(train, y_train)
    seconds = time.perf_counter() - began

    print(f"{options.data}: {train.shape[0]} points to train, {test.shape[0]} to test, {train.shape[1]} features")
    print(f"SVC(C={options.C:g}, kernel={options.kernel!r}, loss={options.loss!r}, tol={options.tol:g})\n")
    rows = [("", "zerogap", "scikit-learn")]
    can_compare = options.loss == "hinge" and np.isfinite(options.C)
    peer, peer_seconds, peer_gap = None, float("nan"), "not computed"
    if can_compare:
        peer = Peer(**shared, max_iter=10_000_000)
        began = time.perf_counter()
        peer.fit(train, y_train)
        peer_seconds = time.perf_counter() - began
        if model.classes_.size == 2:
            signs = np.where(y_train == model.classes_[1], 1.0, -1.0)
            beta = np.zeros(signs.size)
            beta[peer.support_] = peer.dual_coef_[0]
            problem = DualProblem.hinge(Gram(train, options.kernel, gamma=gamma, degree=options.degree, coef0=options.coef0),
                                        signs, options.C)  # fmt: skip
            peer_gap = f"{problem.certify(beta).relative_gap:.1e}"

    def row(title: str, ours: str, theirs: str) -> None:
        rows.append((title, ours, theirs if peer is not None else "-"))

    row("test accuracy", f"{model.score(test, y_test):.4f}", f"{peer.score(test, y_test):.4f}" if peer else "")
    row("support vectors", f"{model.support_.size}", f"{peer.support_.size}" if peer else "")
    row("certified gap", f"{model.duality_gap_:.1e}", peer_gap)
    row("seconds", f"{seconds:.4f}", f"{peer_seconds:.4f}")
    for title, ours, theirs in rows:
        print(f"  {title:<18}{ours:>14}{theirs:>16}")
    print()
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    for certificate in certificates[:3]:
        print(f"certificate: {certificate}")
    if len(certificates) > 3:
        print(f"... and {len(certificates) - 3} more pairs of classes; the largest gap is {model.duality_gap_:.1e}")
    return 0


def _toy(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Two points: the least that runs every compiled function."""
    return np.outer([-1.0, 1.0], np.ones(n_features)), np.array([0, 1])


def _load(data: str, target: str | None) -> tuple[Any, np.ndarray]:
    from zerogap import datasets

    return datasets.read(data, target) if Path(data).exists() else datasets.load(data)


def _scaled(parts: list[Any], is_raw: bool) -> list[Any]:
    """Scale the features of both parts by the training part; a sparse matrix is not shifted, so that it stays sparse."""
    import scipy.sparse as sp
    from sklearn.preprocessing import StandardScaler

    if is_raw:
        return parts
    scaler = StandardScaler(with_mean=not sp.issparse(parts[0])).fit(parts[0])
    return [scaler.transform(parts[0]), scaler.transform(parts[1]), parts[2], parts[3]]


def _show_warning(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    print(f"zerogap: {message}", file=sys.stderr)


warnings.showwarning = _show_warning if Path(sys.argv[0]).name == "zerogap" else warnings.showwarning

if __name__ == "__main__":
    raise SystemExit(main())
