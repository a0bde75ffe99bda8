"""``zerogap fit``: one model with its certificate, beside scikit-learn's."""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap.cli import arguments, solving
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import Split, load, pair_names, source_of, split
from zerogap.cli.report import Report, certificate_record, check_output
from zerogap.wording import count

EXAMPLES = """\
  zerogap fit                                            breast cancer, which ships with scikit-learn
  zerogap fit data.csv --target kind --C 100 --save m    train on every row, and keep the model in m.npz
  zerogap fit houses.parquet --target price --regression --epsilon 0.5
  zcat data.csv.gz | zerogap fit - --no-peer --json -    JSON on standard output, and nothing else"""
SHOWN = 3  # certificates of pairs of classes
TOY, TOY_TOL = 200, 1e-12  # points that load the code, and how far: there is code that only the last digits need
PEER_ITERATIONS = 10_000_000
REGRESSION_LOSS = {"hinge": "epsilon_insensitive", "squared_hinge": "squared_epsilon_insensitive"}


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "fit", run, "fit a model, certify it, and compare with scikit-learn", EXAMPLES
    )
    arguments.add_file(parser)
    arguments.add_columns(parser)
    arguments.add_kernel(parser)
    parser.add_argument("--C", type=arguments.cost, default=10.0, help="cost of an error; inf allows none (default 10)")
    parser.add_argument("--loss", default="hinge", choices=arguments.LOSSES, help="default hinge; of errors beyond")
    parser.add_argument("--regression", action="store_true", help="the target is a number to be estimated")
    parser.add_argument("--epsilon", type=arguments.not_negative, help="of --regression: errors that are free (0.1)")
    parser.add_argument("--tol", type=arguments.positive, default=1e-6, help="relative duality gap to certify (1e-6)")
    parser.add_argument("--solver", default="auto", help="default auto")
    parser.add_argument("--max-time", type=arguments.positive, help="limit in seconds, for each pair of classes")
    arguments.add_split(parser, ", with --save none")
    parser.add_argument("--no-peer", action="store_true", help="leave scikit-learn out")
    parser.add_argument("--save", metavar="FILE", help="keep the model, for zerogap predict and certify")
    arguments.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Fit, certify, compare, keep."""
    settings = _settings(options)
    check_output("--json", options.json)
    check_output("--save", options.save)
    source_of(options.data)
    report = Report(options.json, options.quiet, save_to=options.save)
    test_size = (0.0 if options.save else 1 / 3) if options.test_size is None else options.test_size
    parts = split(load(options, report, options.regression), test_size, not options.raw, report)
    model, seconds = _fitted(options, settings, parts, report)
    saved = _save(options, model, parts)
    if options.json is None:
        report.end_if_cut()
    is_interrupted = solving.ended_by(model, "INTERRUPTED")
    ours = _row(model, parts, seconds, model.duality_gap_)
    theirs = None if is_interrupted or options.no_peer else _peer(options, settings, parts, report)
    _show(report, model, options, parts, ours, theirs)
    if saved is not None:
        report.say(f"saved: {saved}; zerogap predict {saved} FILE")
    report.write(
        {
            "data": options.data, "target": parts.preparation.target, "points": int(parts.y_train.size),
            "held_out": int(parts.y_test.size), "features": parts.preparation.feature_names, "options": _plain(settings),
            "status": [status.name for status in solving.as_list(model.status_)], **ours,
            "classes": getattr(model, "classes_", None), "kernel_evaluations": model.kernel_evaluations_,
            "certificates": [certificate_record(certificate) for certificate in solving.as_list(model.certificate_)],
            "scikit_learn": theirs,
            "model": saved,
        }
    )  # fmt: skip
    return solving.ended(is_interrupted)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the estimator; options that do not go together are refused."""
    if options.epsilon is not None and not options.regression:
        raise UsageError("--epsilon is for --regression")
    settings = {"C": options.C, **arguments.kernel_options(options), "solver": options.solver, "loss": options.loss}
    if options.regression:
        settings |= {
            "loss": REGRESSION_LOSS[options.loss],
            "epsilon": arguments.EPSILON if options.epsilon is None else options.epsilon,
        }
    if options.regression:
        # Without a bound on the cost SVR solves for a large one.
        solving.check_solver(options.solver, settings["loss"], min(options.C, 1.0), settings["epsilon"])
    else:
        solving.check_solver(options.solver, settings["loss"], options.C)
    return settings


def _fitted(options: argparse.Namespace, settings: dict[str, Any], parts: Split, report: Report) -> tuple[Any, float]:
    from zerogap import SVC, SVR

    kind = SVR if options.regression else SVC
    n_features = parts.train.shape[1]
    report.say(
        f"{parts.name}: {count(parts.y_train.size, 'point')} to train, {count(parts.y_test.size)} to test, "
        f"{count(n_features, 'feature')}"
    )
    shown = f"C={options.C:g}, kernel={options.kernel!r}, loss={settings['loss']!r}, tol={options.tol:g}"
    report.say(f"{kind.__name__}({shown})\n")
    warm = kind(**settings, tol=TOY_TOL, max_time=solving.WARM_UP_SECONDS)
    X, y = solving.toy(n_features, TOY, min(np.unique(parts.y_train).size, 3))
    solving.warm_up(report, lambda: warm.fit(sp.csr_matrix(X) if sp.issparse(parts.train) else X, y))
    model = kind(**settings, tol=options.tol, max_time=options.max_time, verbose=options.verbose or report.is_live)
    return model, solving.timed_fit(report, "fitting", model, parts.train, parts.y_train)


def _row(model: Any, parts: Split, seconds: float, gap: float) -> dict[str, Any]:
    _, X, y = parts.scored
    return {
        "score": float(model.score(X, y)), "support_vectors": int(model.support_.size), "relative_gap": float(gap),
        "seconds": seconds,
    }  # fmt: skip


def _peer(options: argparse.Namespace, settings: dict[str, Any], parts: Split, report: Report) -> dict[str, Any] | None:
    """Fit scikit-learn's where it has the same problem, and certify what it found."""
    from sklearn.svm import SVC, SVR

    if options.loss != "hinge" or not np.isfinite(options.C):
        return None
    same = {"C": options.C, **arguments.kernel_options(options), "max_iter": PEER_ITERATIONS}
    peer = SVR(**same, epsilon=settings["epsilon"]) if options.regression else SVC(**same)
    title = "scikit-learn is fitting (--no-peer leaves it out)"
    seconds = solving.timed_fit(report, title, peer, parts.train, parts.y_train)
    with report.working("certifying what scikit-learn found"):
        gap = solving.certified_gap(peer, parts.train, parts.y_train)
    return _row(peer, parts, seconds, gap)


def _show(
    report: Report, model: Any, options: argparse.Namespace, parts: Split, ours: dict[str, Any], theirs: Any
) -> None:
    score = "R²" if options.regression else "accuracy"
    lines = ((f"{parts.scored[0]} {score}", "score", ".4f"), ("support vectors", "support_vectors", "d"),
             ("certified gap", "relative_gap", ".1e"), ("seconds", "seconds", ".4f"))  # fmt: skip
    peer = "" if options.no_peer else f"{'scikit-learn':>16}"
    report.say(f"  {'':<18}{'zerogap':>14}{peer}")
    for title, key, form in lines:
        beside = (
            ""
            if options.no_peer
            else f"{format(theirs[key], form) if theirs and theirs[key] == theirs[key] else '-':>16}"
        )
        report.say(f"  {title:<18}{format(ours[key], form):>14}{beside}")
    report.say()
    certificates = solving.as_list(model.certificate_)
    for name, certificate in list(zip(_names(model), certificates, strict=True))[:SHOWN]:
        report.say(f"certificate{f' of {name}' if name else ''}: {certificate}")
    if len(certificates) > SHOWN:
        more = count(len(certificates) - SHOWN, "more pair")
        report.say(f"... and {more} of classes; the largest gap is {model.duality_gap_:.1e}")


def _names(model: Any) -> list[str]:
    """Return names for the certificates; that of a regression has none."""
    return pair_names(model.classes_) if hasattr(model, "classes_") else [""]


def _save(options: argparse.Namespace, model: Any, parts: Split) -> str | None:
    """Keep the model, before anything else can end the command."""
    if options.save is None:
        return None
    from zerogap.cli import saved

    return saved.save(model.set_params(verbose=False), parts.preparation, options.save)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: "inf" if value == np.inf else value for key, value in settings.items()}
