"""``zerogap path``: the solution for every C, scored on held-out data."""

import argparse
import time
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

from zerogap.cli import arguments, folds, pictures, regression_path, solving
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import Split, check_classes, load, pair_names, source_of, split
from zerogap.cli.report import STANDARD, Report, check_output
from zerogap.wording import count

EXAMPLES = """\
  zerogap path                                     breast cancer, which ships with scikit-learn
  zerogap path data.csv --target kind --C-max 1e5
  zerogap path houses.csv --target price --regression --over epsilon
  zerogap path data.svm.gz --no-grid --save path   keep the path itself, for zerogap.Path.load"""
ENGINES = ("single", "lp", "hastie")
LINEAR_SYSTEMS = ("svd", "qr", "qr-update")
GRID = 25


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "path", run, "follow the solution for every C, and score it on held-out data", EXAMPLES
    )
    arguments.add_file(parser)
    arguments.add_columns(parser)
    arguments.add_kernel(parser)
    add_range(parser)
    regression_path.add_options(parser)
    parser.add_argument("--engine", default="single", choices=ENGINES, help="lp is that of Ong et al. (default single)")
    parser.add_argument("--linear-system", choices=LINEAR_SYSTEMS, help="of engine lp")
    arguments.add_split(parser)
    parser.add_argument("--cv", type=arguments.folds, default=5, help="folds of the training points (default 5)")
    parser.add_argument(
        "--no-cv", action="store_true", help="do not cross-validate; other engines than single never do"
    )
    parser.add_argument("--no-grid", action="store_true", help="do not run scikit-learn's grid for comparison")
    parser.add_argument(
        "--save",
        metavar="FILE",
        help="write the path itself, to be read by zerogap.Path.load, and that of several classes by zerogap.load",
    )
    pictures.add_option(parser, "the score and the path over C")
    parser.add_argument("--explore", metavar="FILE", help="write a page to look at it, with a slider over C")
    arguments.add_output(parser)


def add_range(parser: arguments.Parser) -> None:
    """Add which C to follow the path over, what it is multiplied by, and when to stop."""
    arguments.add_range(parser)
    arguments.add_class_weight(parser)
    parser.add_argument("--max-events", type=arguments.count, help="stop after so many events")
    parser.add_argument("--max-time", type=arguments.positive, help="limit in seconds")


def run(options: argparse.Namespace) -> int:
    """Follow the path, score it, and run scikit-learn's grid beside it."""
    settings = settings_of(options)
    regression_path.check(options)
    check_output("--json", options.json)
    check_output("--save", options.save)
    pictures.check(options.plot)
    check_page("--explore", options.explore)
    source_of(options.data)
    report = Report(options.json, options.quiet, save_to=options.save)
    if options.regression:
        return regression_path.run(options, report)
    data = load(options, report)
    check_classes(data, "path")
    parts = split(data, 1 / 3 if options.test_size is None else options.test_size, not options.raw, report)
    report.say(
        f"{parts.name}: {count(parts.y_train.size, 'point')} to train, {count(parts.y_test.size)} to test, "
        f"{count(data.X.shape[1], 'feature')}"
    )
    model, seconds = followed(options, settings, parts, report)
    status = status_of(model)
    is_interrupted, has_segments = status == "interrupted", all(path.has_segments for path in model.paths_)
    is_saved = options.save is not None and has_segments
    if is_saved:  # before anything else can end the command
        (model if len(model.paths_) > 1 else model.path_).save(options.save)
    if options.json is None:
        report.end_if_cut()
    if not has_segments:
        report.say(f"no solution yet at C = {options.C_min:g}: {status}")
        return solving.ended(is_interrupted)
    curve, which = _scored(model, parts, report)
    results = {"data": options.data, **_shown(options, model, curve, which, seconds, report)}
    if status == "complete" and options.engine == "single" and not options.no_cv:
        found, is_interrupted = solving.unless_interrupted(
            lambda: _cross_validated(options, curve, which, parts, report)
        )
        results |= {} if is_interrupted else {"cross_validation": found}
    chosen = folds.choice(results.get("cross_validation"))
    if not (options.no_grid or is_interrupted or not parts.y_test.size):
        with report.working(f"scikit-learn is fitting {GRID} values of C (--no-grid leaves it out)"):
            grid, is_interrupted = solving.unless_interrupted(lambda: _grid(options, model.breakpoints_[-1], parts))
        if not is_interrupted:
            results["grid"] = grid
            report.say(f"\n  scikit-learn, {GRID} C     {grid['seconds']:>9.3f}  seconds")
            report.say(f"  best test accuracy     {grid['best_score']:>9.4f}  for C = {grid['best_C']:.4g}")
    if options.plot:
        pictures.save(_drawn(model, curve, f"{which} accuracy", not options.no_grid, chosen), options.plot)
        report.say(f"\ndrawn: {options.plot}")
    if options.explore:
        write_page(options.explore, model, parts, parts.name, report, chosen)
    if is_saved:
        reader = "zerogap.load" if len(model.paths_) > 1 else "zerogap.Path.load"
        saved = regression_path.saved_name(options.save)
        report.say(f"\nsaved: {saved}; {reader}({saved!r}) in Python")
    report.write(results)
    return solving.ended(is_interrupted)


def check_page(option: str, file: str | None) -> None:
    """Refuse a page that cannot be written."""
    if file == STANDARD:
        raise UsageError(f"{option} is a file, such as page.html")
    check_output(option, file)


def write_page(
    file: str, model: Any, parts: Split, title: str, report: Report, chosen: tuple[float, str] | None = None
) -> Any:
    """Write the explorer of a path with its held-out points, and say where it is; return the file."""
    from zerogap.explorer.page import shown

    held_out = (parts.test, parts.y_test) if parts.y_test.size else (None, None)
    with report.working("writing the page"):
        curve, count = model._held_out(*held_out, None, None)
        payload = model._payload(curve, parts.feature_names, title, chosen, count)
        for data in payload["paths"]:
            data["labels"] = parts.class_names(data["labels"])
        page = shown(payload, file)
    report.say(f"\n{page} ({page.stat().st_size / 1e6:.1f} MB): open it in a browser")
    return page


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return what SVCPath is given; refuse options that contradict each other."""
    arguments.check_range(options)
    if options.linear_system and options.engine != "lp":
        raise UsageError(f"--linear-system is a choice of --engine lp; got --engine {options.engine}")
    return {
        **arguments.kernel_options(options), "C_min": options.C_min, "C_max": options.C_max,
        "class_weight": options.class_weight, "max_events": options.max_events, "engine": options.engine,
        "linear_system": options.linear_system,
    }  # fmt: skip


def followed(options: argparse.Namespace, settings: dict[str, Any], parts: Split, report: Report) -> tuple[Any, float]:
    """Return the fitted SVCPath, and the seconds it took."""
    from zerogap import SVC, SVCPath

    # That a path ends where it was asked to is no news.
    warnings.filterwarnings("ignore", message=r"SVCPath was stopped \(max_events")

    def fit_toys() -> None:
        SVCPath(**settings).fit(*solving.toy(4, 300 if options.engine == "single" else 60))
        # Exchanges: a path may start with some.
        SVC(gamma=1.0).partial_fit(*solving.toy(4, 20)).partial_fit(*solving.toy(4, 30))

    solving.warm_up(report, fit_toys)
    model = SVCPath(**settings, max_time=options.max_time, verbose=options.verbose or report.is_live)
    return model, solving.timed_fit(report, "following the path", model, parts.train, parts.y_train)


def status_of(model: Any) -> str:
    """Return that of all paths: the first that is not complete."""
    return next((path.status for path in model.paths_ if path.status != "complete"), "complete")


def _scored(model: Any, parts: Split, report: Report) -> tuple[Any, str]:
    """Return the score for every C, and which points it is of."""
    which, X, y = parts.scored
    with report.working("scoring every C"):
        return model.score_curve(X, y), which


def _shown(
    options: argparse.Namespace, model: Any, curve: Any, which: str, seconds: float, report: Report
) -> dict[str, Any]:
    """Print what was found, and return it."""
    paths, gap, C, status = model.paths_, model.largest_gap_, model.breakpoints_, status_of(model)
    best = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in curve.best_intervals)
    score = f"best {which} accuracy"
    report.say(f"every C from {C[0]:g} to {C[-1]:g}, kernel {options.kernel!r}: {status}\n")
    if len(paths) > 1:
        report.say(f"  pairs of classes       {len(paths):>9}")
    report.say(f"  breakpoints            {len(C):>9}")
    report.say(f"  events                 {model.n_events_:>9}")
    report.say(f"  most on the margin     {max(path.n_free.max() for path in paths):>9}")
    report.say(f"  largest certified gap  {gap:>9.1e}  over every C")
    report.say(f"  {score:<22} {curve.best_score:>9.4f}  for C in {best}")
    report.say(f"  seconds                {seconds:>9.3f}")
    if options.engine == "lp":
        counts = [path.counts for path in paths]
        report.say(f"  largest null space     {max(count.largest_null_space for count in counts):>9}")
        report.say(f"  special events         {sum(count.special for count in counts):>9}")
        violated = sum(count.kkt_backups for count in counts)
        report.say(
            f"  backups                {sum(path.n_backups for path in paths):>9}  of them {violated} for violated conditions"
        )
        tracking, start = sum(count.tracking_seconds for count in counts), sum(count.start_seconds for count in counts)
        report.say(f"  seconds of tracking    {tracking:>9.3f}  and {start:.3f} for the start")
    records = [_record(path) for path in paths]
    if len(paths) > 1:
        names = pair_names(model.classes_)
        pairs = [{"pair": name, **record} for name, record in zip(names, records, strict=True)]
        records = [{"status": status, "C": C.tolist(), "pairs": pairs}]
    return {
        **records[0], "largest_gap": gap, "seconds": seconds,
        "score_curve": {"C": curve.C.tolist(), "score": curve.score.tolist()},
        "best_score": curve.best_score, "best_intervals": curve.best_intervals,
    }  # fmt: skip


def _cross_validated(
    options: argparse.Namespace, curve: Any, which: str, parts: Split, report: Report
) -> dict[str, Any] | None:
    """Choose C by cross-validation of the training points alone, and tell what the others say of it."""
    from zerogap import SVCPathCV

    number_of = min(options.cv, int(np.unique(parts.y_train, return_counts=True)[1].min()))
    if number_of < 2:  # a class has one row only
        return None
    model = SVCPathCV(
        **arguments.kernel_options(options),
        C_min=options.C_min,
        C_max=options.C_max,
        class_weight=options.class_weight,
        cv=folds.splitter(number_of, options.seed),
        # Points that are scaled already are scaled anew, as if they were not.
        transformer=folds.scaler(parts.train, options.raw),
        max_time=options.max_time,
        verbose=options.verbose or report.is_live,
    )
    title = f"cross-validating every C, {number_of} folds (--no-cv leaves it out)"
    seconds = solving.timed_fit(report, title, model, parts.train, parts.y_train)
    score, error, C = model.best_score_, model.best_std_error_, model.C_
    said = f"{number_of}-fold accuracy"
    report.say(f"\n  {said:<22} {score:>9.4f}  best for C in {folds.in_words(model.best_intervals_)}")
    report.say(f"  standard error         {error:>9.4f}")
    report.say(f"  {which + ' accuracy':<22} {curve(C):>9.4f}  at C = {C:.4g}, the middle of the folds' best interval")
    report.say(f"  seconds of folds       {seconds:>9.3f}")
    return {
        "folds": number_of, "C": C, "score": score, "std_error": error, "best_intervals": model.best_intervals_,
        "score_of_choice": float(curve(C)), "seconds": seconds,
        "curve": {"C": model.cv_curve_.edges.tolist(), "score": model.cv_curve_.mean.score.tolist()},
    }  # fmt: skip


def _drawn(model: Any, curve: Any, label: str, has_grid: bool, chosen: tuple[float, str] | None) -> Any:
    """Draw the score above the path."""
    from zerogap.plots.look import stacked_axes

    axes = stacked_axes([3.0, 3.0, 2.4, 1.7] if len(model.paths_) == 1 else [3.0, 3.0])
    curve.plot(grid=GRID if has_grid else None, ax=axes[0], label=label)
    pictures.mark(axes[0], chosen)
    axes[0].set_xlabel("")
    model.plot(ax=axes[1:] if len(model.paths_) == 1 else axes[1])
    return axes


def _record(path: Any) -> dict[str, Any]:
    return {
        "status": path.status, "C": path.C.tolist(), "n_free": path.n_free.tolist(),
        "events": [event._asdict() for event in path.events], "counts": asdict(path.counts),
    }  # fmt: skip


def _grid(options: argparse.Namespace, C_max: float, parts: Split) -> dict[str, Any]:
    """Fit scikit-learn's SVC for 25 values of C, as one does without a path."""
    from sklearn.svm import SVC

    values = np.geomspace(options.C_min, C_max, GRID)
    began = time.perf_counter()
    fixed = {**arguments.kernel_options(options), "class_weight": options.class_weight}
    models = [SVC(C=C, **fixed).fit(parts.train, parts.y_train) for C in values]
    seconds = time.perf_counter() - began
    scores = [float(model.score(parts.test, parts.y_test)) for model in models]
    best = int(np.argmax(scores))
    return {
        "C": values.tolist(), "score": scores, "seconds": seconds, "best_score": scores[best], "best_C": float(values[best])
    }  # fmt: skip
