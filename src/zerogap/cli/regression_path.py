"""``zerogap path --regression``: support vector regression for every C, or for every epsilon, scored on held-out data."""

import argparse
import time
import warnings
from typing import Any

import numpy as np

from zerogap.cli import arguments, folds, pictures, solving
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import Split, load, split
from zerogap.cli.report import Report
from zerogap.wording import count, number

GRID = 25
SCORING = "r2"
TOY = 100


def add_options(parser: arguments.Parser) -> None:
    """Add what a regression asks for beside the range of C."""
    parser.add_argument("--regression", action="store_true", help="the target is a number to be estimated")
    parser.add_argument(
        "--over", default="C", choices=("C", "epsilon"), help="of --regression: what the path is over (default C)"
    )
    parser.add_argument("--epsilon", type=arguments.not_negative, help="of --regression over C: free errors (0.1)")
    parser.add_argument("--C", type=arguments.positive, help="of --regression --over epsilon: the cost of an error (1)")


def check(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if not options.regression:
        for name, is_given in (("--over epsilon", options.over != "C"), ("--epsilon", options.epsilon is not None),
                               ("--C", options.C is not None)):  # fmt: skip
            if is_given:
                raise UsageError(f"{name} is for --regression")
        return
    if options.over == "C" and options.C is not None:
        raise UsageError("--C is of --over epsilon; a path over C has --C-min and --C-max")
    if options.over == "epsilon" and options.epsilon is not None:
        raise UsageError("--epsilon is of --over C; a path over epsilon has every one")
    arguments.check_class_weight(options)
    if options.engine != "single":
        raise UsageError(f"--engine {options.engine} is for classes; leave it out with --regression")


def run(options: argparse.Namespace, report: Report) -> int:
    """Follow the path, score it, and run scikit-learn's grid beside it."""
    parts = loaded(options, report)
    model, seconds = followed(options, parts, report)
    path = model.path_
    is_interrupted, saved = path.status == "interrupted", None
    if options.save is not None and path.has_segments:  # before anything else can end the command
        path.save(options.save)
        saved = saved_name(options.save)
    if options.json is None:
        report.end_if_cut()
    if not path.has_segments:
        report.say(f"no solution yet at {path.words(path.value_of(path.lam[0]))}: {path.status}")
        return solving.ended(is_interrupted)
    which, X, y = parts.scored
    with report.working(f"scoring every {options.over}"):
        curve = model.score_curve(X, y, scoring=SCORING)
    results = {"data": options.data, "over": options.over, **_shown(options, model, curve, which, seconds, report)}
    if path.status == "complete" and options.over == "C" and not options.no_cv:
        results["cross_validation"] = _cross_validated(options, curve, which, parts, report)
    if not (options.no_grid or is_interrupted or which != "test"):
        results["grid"] = _grid(options, model, parts, report)
    _write_pictures(options, model, curve, which, parts, folds.choice(results.get("cross_validation")), report)
    if saved is not None:
        report.say(f"\nsaved: {saved}; zerogap.Path.load({saved!r}) in Python")
    report.write(results)
    return solving.ended(is_interrupted)


def loaded(options: argparse.Namespace, report: Report) -> Split:
    """Return the data, in two parts, and say how many points they have."""
    data = load(options, report, is_regression=True)
    parts = split(data, 1 / 3 if options.test_size is None else options.test_size, not options.raw, report)
    report.say(
        f"{parts.name}: {count(parts.y_train.size, 'point')} to train, {count(parts.y_test.size)} to test, "
        f"{count(data.X.shape[1], 'feature')}"
    )
    return parts


def saved_name(file: str) -> str:
    """Return the name that a file gets."""
    return file if file.endswith(".npz") else f"{file}.npz"


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    ends = {"C_min": options.C_min, "C_max": options.C_max, "max_events": options.max_events}
    if options.over == "C":
        one: dict[str, Any] = {"epsilon": arguments.EPSILON if options.epsilon is None else options.epsilon}
    else:
        one = {"C": 1.0 if options.C is None else options.C}
    return {**arguments.kernel_options(options), **ends, **one, "over": options.over}


def followed(options: argparse.Namespace, parts: Split, report: Report) -> tuple[Any, float]:
    """Return the fitted SVRPath, and the seconds it took."""
    from zerogap import SVRPath

    # That a path ends where it was asked to is no news.
    warnings.filterwarnings("ignore", message=r"SVRPath was stopped \(max_events")
    settings = _settings(options)
    X, y = solving.toy(4, TOY, 50)
    solving.warm_up(report, lambda: SVRPath(**settings).fit(X, y.astype(float)))
    model = SVRPath(**settings, max_time=options.max_time, verbose=options.verbose or report.is_live)
    return model, solving.timed_fit(report, "following the path", model, parts.train, parts.y_train)


def _shown(
    options: argparse.Namespace, model: Any, curve: Any, which: str, seconds: float, report: Report
) -> dict[str, Any]:
    """Print what was found, and return it."""
    path, over = model.path_, options.over
    values, gap = path.value_of(path.lam), model.largest_gap_
    fixed = f"epsilon {path.epsilon:g}" if over == "C" else f"C {path.cost:g}"
    report.say(
        f"every {over} from {values[0]:g} to {values[-1]:g}, {fixed}, kernel {options.kernel!r}: {path.status}\n"
    )
    report.say(f"  breakpoints            {len(values):>9}")
    report.say(f"  events                 {path.n_events:>9}")
    report.say(f"  most on the margin     {path.n_free.max():>9}")
    report.say(f"  largest certified gap  {gap:>9.1e}  over every {over}")
    score = f"best {which} R²"
    report.say(f"  {score:<22} {curve.best_score:>9.4f}  at {over} = {folds.in_words(curve.best_intervals)}")
    report.say(f"  seconds                {seconds:>9.3f}")
    return {
        "status": path.status, over: values.tolist(), "n_free": path.n_free.tolist(),
        "events": [event._asdict() for event in path.events], "largest_gap": gap, "seconds": seconds,
        "score_curve": {"scoring": SCORING, over: curve.edges.tolist(), "score": curve(curve.edges).tolist()},
        "best_score": curve.best_score, "best_intervals": curve.best_intervals,
    }  # fmt: skip


def _cross_validated(
    options: argparse.Namespace, curve: Any, which: str, parts: Split, report: Report
) -> dict[str, Any] | None:
    """Choose C by cross-validation of the training points alone, and tell what the others say of it."""
    from zerogap import SVRPathCV

    number_of = min(options.cv, parts.y_train.size // 2)  # a fold of one point has no R²
    if number_of < 2:
        return None
    settings = {name: value for name, value in _settings(options).items() if name not in ("over", "max_events")}
    model = SVRPathCV(
        **settings,
        scoring=SCORING,
        cv=folds.splitter(number_of, options.seed, is_regression=True),
        transformer=folds.scaler(parts.train, options.raw),
        max_time=options.max_time,
        verbose=options.verbose or report.is_live,
    )
    title = f"cross-validating every C, {number_of} folds (--no-cv leaves it out)"
    seconds = solving.timed_fit(report, title, model, parts.train, parts.y_train)
    report.say(f"\n  {f'{number_of}-fold R²':<22} {model.best_score_:>9.4f}  best for C = {number(model.C_)}")
    report.say(f"  standard error         {model.best_std_error_:>9.4f}")
    report.say(f"  {which + ' R²':<22} {curve(model.C_):>9.4f}  at this C")
    report.say(f"  seconds of folds       {seconds:>9.3f}")
    return {
        "folds": number_of, "C": model.C_, "score": model.best_score_, "std_error": model.best_std_error_,
        "best_intervals": model.best_intervals_, "score_of_choice": float(curve(model.C_)), "seconds": seconds,
    }  # fmt: skip


def _grid(options: argparse.Namespace, model: Any, parts: Split, report: Report) -> dict[str, Any]:
    """Fit scikit-learn's SVR for 25 values, as one does without a path."""
    from sklearn.svm import SVR

    over = options.over
    first, last = (float(value) for value in model.path_.value_of(model.path_.lam[[0, -1]]))
    values = np.geomspace(first, last, GRID) if over == "C" else np.linspace(first, last, GRID)
    settings = _settings(options)
    fixed = {"epsilon": settings["epsilon"]} if over == "C" else {"C": settings["C"]}
    began = time.perf_counter()
    with report.working(f"scikit-learn is fitting {GRID} values of {over} (--no-grid leaves it out)"):
        machines = [SVR(**{over: v}, **fixed, **arguments.kernel_options(options)) for v in values]
        scores = [float(one.fit(parts.train, parts.y_train).score(parts.test, parts.y_test)) for one in machines]
    seconds, best = time.perf_counter() - began, int(np.argmax(scores))
    report.say(f"\n  {f'scikit-learn, {GRID} {over}':<22} {seconds:>9.3f}  seconds")
    report.say(f"  best test R²           {scores[best]:>9.4f}  at {over} = {values[best]:.4g}")
    return {
        over: values.tolist(), "score": scores, "seconds": seconds, "best_score": scores[best],
        f"best_{over}": float(values[best]),
    }  # fmt: skip


def _write_pictures(
    options: argparse.Namespace, model: Any, curve: Any, which: str, parts: Split, chosen: Any, report: Report
) -> None:
    if options.plot:
        from zerogap.plots.look import stacked_axes

        axes = stacked_axes([3.0, 3.0, 2.4, 1.7])
        curve.plot(grid=None if options.no_grid else GRID, ax=axes[0])
        axes[0].set_ylabel(f"{which} R²")
        axes[0].set_xlabel("")
        pictures.mark(axes[0], chosen)
        model.path_.plot(ax=axes[1:])
        pictures.save(axes, options.plot)
        report.say(f"\ndrawn: {options.plot}")
    if options.explore:
        write_page(options.explore, model, curve, parts, parts.name, report, chosen)


def write_page(
    file: str, model: Any, curve: Any, parts: Split, title: str, report: Report, chosen: tuple[float, str] | None = None
) -> Any:
    """Write the explorer of a path with its score, and say where it is; return the file."""
    from zerogap.explorer.page import shown

    with report.working("writing the page"):
        page = shown(model._payload(curve, parts.feature_names, title, chosen), file)
    report.say(f"\n{page} ({page.stat().st_size / 1e6:.1f} MB): open it in a browser")
    return page
