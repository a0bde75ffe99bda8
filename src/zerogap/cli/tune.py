"""``zerogap tune``: the C with the best cross-validated score of all, and the kernel, beside what a grid finds."""

import argparse
import math
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap.cli import arguments, folds, pictures, solving
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import Data, label_text, load, source_of, split
from zerogap.cli.features import Preparation
from zerogap.cli.report import Report, check_output
from zerogap.tables import TableError
from zerogap.wording import count, number, score_in_words

EXAMPLES = """\
  zerogap tune                                                 breast cancer, which ships with scikit-learn
  zerogap tune data.csv --target kind --gamma 0.01,0.03,0.1 --save m   choose C and gamma, keep the model in m.npz
  zerogap tune data.csv --scoring f1_macro --cv 10 --selection one_se
  zerogap tune data.csv --target status --scoring f1 --pos-label sold --class-weight balanced
  zerogap tune houses.parquet --target price --regression --epsilon 1,10 --scoring r2 --plot scores.png"""
SELECTIONS = ("best", "one_se")
ERRORS = (
    "neg_mean_squared_error",
    "neg_mean_absolute_error",
    "r2",
)  # the scores of a regression that are in closed form
ABOUT_SCALE = (0.1, 0.3, 1.0, 3.0)  # by default gamma is chosen among so many times "scale"
OF_ONE_CLASS = ("f1", "precision", "recall", "jaccard", "average_precision")  # the scores that --pos-label is for
GRID = 25  # values of C, in scikit-learn's search
SHOWN = 12  # candidates in the table
TOY = 60


class Tuning(NamedTuple):
    """All that a search is over: rows, folds, and the search itself with its settings."""

    name: str
    X: Any  # (n, d) not scaled
    y: np.ndarray
    preparation: Preparation  # fitted to all rows, for the model that is kept
    cv: Any
    transformer: Any
    scorer: Any  # the name of a score, or what scikit-learn makes of it for one class
    settings: dict[str, Any]


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "tune", run, "choose C of all values, and the kernel, by cross-validation", EXAMPLES
    )
    arguments.add_file(parser)
    arguments.add_columns(parser)
    arguments.add_kernel(parser, several=True)
    arguments.add_range(parser)
    arguments.add_class_weight(parser)
    parser.add_argument("--regression", action="store_true", help="the target is a number to be estimated")
    parser.add_argument(
        "--epsilon", type=arguments.list_of(arguments.not_negative), help="of --regression: errors that are free (0.1)"
    )
    parser.add_argument("--cv", type=arguments.folds, default=5, help="number of folds (default 5)")
    parser.add_argument("--seed", type=arguments.count_or_zero, default=0, help="seed of the folds (default 0)")
    parser.add_argument(
        "--scoring",
        help="the score to be largest, by scikit-learn's name (accuracy), or of --regression one of "
        + ", ".join(ERRORS),
    )
    parser.add_argument(
        "--pos-label",
        metavar="LABEL",
        help=f"the class that --scoring {', '.join(OF_ONE_CLASS[:-1])} or {OF_ONE_CLASS[-1]} is of (default: the one named 1)",
    )
    parser.add_argument(
        "--selection",
        default="best",
        choices=SELECTIONS,
        help="the best C, or the smallest within one standard error of it (default best)",
    )
    parser.add_argument("--n-jobs", type=arguments.jobs, default=1, help="paths at once; -1: one a core (default 1)")
    parser.add_argument("--max-time", type=arguments.positive, help="limit in seconds")
    parser.add_argument("--no-peer", action="store_true", help=f"leave out scikit-learn's grid of {GRID} C")
    parser.add_argument("--save", metavar="FILE", help="keep the model, for zerogap predict and certify")
    pictures.add_option(parser, "the score over C")
    parser.add_argument("--verbose", action="store_true", help="show progress even where there is no terminal")
    arguments.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Search, compare, keep."""
    settings = _settings(options)
    check_output("--json", options.json)
    check_output("--save", options.save)
    pictures.check(options.plot)
    source_of(options.data)
    report = Report(options.json, options.quiet, save_to=options.save or options.plot)
    tuning = _prepared(options, settings, load(options, report, options.regression), report)
    model, seconds = _searched(options, tuning, report)
    saved = _save(options, model, tuning)
    if options.plot:
        pictures.save(model.plot(grid=None if options.no_peer else GRID), options.plot)
    if options.json is None:
        report.end_if_cut()
    _show_candidates(report, model)
    theirs, is_interrupted = None, False
    if not options.no_peer:
        theirs, is_interrupted = solving.unless_interrupted(lambda: _grid(options, tuning, report))
    _show(report, options, model, tuning.y.size, seconds, theirs)
    if saved is not None:
        report.say(f"saved: {saved}; zerogap predict {saved} FILE")
    if options.plot:
        report.say(f"drawn: {options.plot}")
    report.write(
        {
            "data": options.data, "target": tuning.preparation.target, "points": int(tuning.y.size),
            "features": tuning.preparation.feature_names,
            "options": {**settings, "cv": options.cv, "seed": options.seed, "pos_label": options.pos_label},
            **_record(model), "seconds": seconds, "grid": theirs, "model": saved, "plot": options.plot,
        }
    )  # fmt: skip
    return solving.ended(is_interrupted)


# Before.


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the search; options that do not go together are refused."""
    arguments.check_range(options)
    if options.epsilon is not None and not options.regression:
        raise UsageError("--epsilon is for --regression")
    if options.gamma is not None and options.kernel == "linear":
        raise UsageError("--gamma is for --kernel rbf, poly and sigmoid; leave it out with linear")
    arguments.check_class_weight(options)
    _check_pos_label(options)
    settings = {
        **arguments.kernel_options(options), "C_min": options.C_min, "C_max": options.C_max,
        "scoring": _scoring(options), "selection": options.selection, "n_jobs": options.n_jobs,
        "max_time": options.max_time,
    }  # fmt: skip
    if not options.regression:
        settings["class_weight"] = options.class_weight
    if options.regression:
        settings["epsilon"] = [arguments.EPSILON] if options.epsilon is None else options.epsilon
    return settings


def _scoring(options: argparse.Namespace) -> str:
    if options.regression:
        known, default = ERRORS, ERRORS[0]
    else:
        from sklearn.metrics import get_scorer_names

        known, default = tuple(get_scorer_names()), "accuracy"
    if options.scoring is not None and options.scoring not in known:
        some = ", ".join(known) if len(known) < 10 else "accuracy, balanced_accuracy, f1, f1_macro, roc_auc, ..."
        raise UsageError(f"--scoring: unknown score {options.scoring!r}; choose one of {some}")
    return default if options.scoring is None else options.scoring


def _check_pos_label(options: argparse.Namespace) -> None:
    """Refuse a class where the score is not of one."""
    if options.pos_label is None or options.scoring in OF_ONE_CLASS:
        return
    why = "; roc_auc is the same whichever class is called positive" if options.scoring == "roc_auc" else ""
    raise UsageError(f"--pos-label is for --scoring {', '.join(OF_ONE_CLASS)}{why}")


def _scorer(options: argparse.Namespace, data: Data) -> Any:
    """Return the score by its name, or as a scorer of the class that --pos-label names."""
    name, classes = _scoring(options), np.unique(data.y)
    if options.pos_label is None or classes.size != 2:  # of more classes the search says what to use instead
        return name
    label = next((one for one in classes.tolist() if _is_label(options.pos_label, one)), None)
    if label is None:
        known = " and ".join(label_text(one) for one in classes)
        raise TableError(f"{data.name}: {data.target} has no class {options.pos_label}; the classes are {known}.")
    from sklearn import metrics

    response = "decision_function" if name == "average_precision" else "predict"
    return metrics.make_scorer(getattr(metrics, f"{name}_score"), response_method=response, pos_label=label)


def _is_label(text: str, label: Any) -> bool:
    """Whether a text names a label; a number may be written in any way."""
    if text == label_text(label):
        return True
    with suppress(ValueError):
        return isinstance(label, float | int) and float(text) == label
    return False


def _prepared(options: argparse.Namespace, settings: dict[str, Any], data: Data, report: Report) -> Tuning:
    """Return rows that are not scaled: every fold is, by its own training rows.  Missing values are filled in for all."""
    parts = split(data, 0.0, False, report)
    folds.check_rows(data, options.cv)
    preparation = replace(data.preparation.fitted(data.X, not options.raw), test_size=0.0)
    if settings["gamma"] is None:
        settings["gamma"] = _gammas(preparation.apply(data.X))
    cv = folds.splitter(options.cv, options.seed, is_regression=options.regression)
    scaler = folds.scaler(parts.train, options.raw)
    scorer = _scorer(options, data)
    return Tuning(parts.name, parts.train, parts.y_train, preparation, cv, scaler, scorer, settings)


def _gammas(X: Any) -> list[Any]:
    """Return some values about that of "scale"; where all features are constant there is none."""
    variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
    scale = 1.0 / (X.shape[1] * variance) if variance > 0.0 else 0.0
    return [float(f"{factor * scale:.4g}") for factor in ABOUT_SCALE] if 0.0 < scale < math.inf else ["scale"]


def _search(options: argparse.Namespace, tuning: Tuning, **more: Any) -> Any:
    from zerogap import SVCPathCV, SVRPathCV

    kind: Any = SVRPathCV if options.regression else SVCPathCV
    found = {**tuning.settings, "cv": tuning.cv, "transformer": tuning.transformer, "scoring": tuning.scorer}
    return kind(**{**found, **more})


def _searched(options: argparse.Namespace, tuning: Tuning, report: Report) -> tuple[Any, float]:
    report.say(
        f"{tuning.name}: {count(tuning.y.size, 'point')}, {count(tuning.X.shape[1], 'feature')}, {_in_words(options)}"
    )
    report.say(f"every C from {options.C_min:g} to {options.C_max:g}, kernel {options.kernel!r}\n")

    def fit_toys() -> None:
        X, y = solving.toy(tuning.X.shape[1], TOY, 2 if options.regression else min(np.unique(tuning.y).size, 3))
        few: dict[str, Any] = {"gamma": "scale", "cv": 2, "transformer": None, "max_time": None, "scoring": None}
        with suppress(ValueError):  # what is wrong with the kernel is told of the data, not of these
            _search(options, tuning, **few).fit(sp.csr_matrix(X) if sp.issparse(tuning.X) else X, y)

    solving.warm_up(report, fit_toys)
    model = _search(options, tuning, verbose=options.verbose or report.is_live)
    return model, solving.timed_fit(report, "following paths of all folds", model, tuning.X, tuning.y)


def _in_words(options: argparse.Namespace) -> str:
    return f"{options.cv} folds" + ("" if options.raw else ", each scaled by its own training rows")


def _save(options: argparse.Namespace, model: Any, tuning: Tuning) -> str | None:
    """Keep the model, before anything else can end the command: it scales as its file says."""
    if options.save is None:
        return None
    from zerogap.cli import saved

    return saved.save(machine_of(model), tuning.preparation, options.save)


def machine_of(model: Any) -> Any:
    """Return the machine that a search has fitted, without what is before it."""
    best = model.best_estimator_
    return best[-1] if hasattr(best, "steps") else best


# scikit-learn's search.


def _grid(options: argparse.Namespace, tuning: Tuning, report: Report) -> dict[str, Any]:
    """Run GridSearchCV with the same folds and kernels, and 25 values of C."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline
    from sklearn.svm import SVC, SVR

    fixed = {"kernel": options.kernel, "degree": options.degree, "coef0": options.coef0}
    steps = [("svm", SVR(**fixed) if options.regression else SVC(**fixed, class_weight=options.class_weight))]
    if tuning.transformer is not None:
        steps.insert(0, ("scaler", tuning.transformer))
    values: dict[str, Any] = {"svm__C": np.geomspace(options.C_min, options.C_max, GRID)}
    if options.kernel != "linear":
        values["svm__gamma"] = tuning.settings["gamma"]
    if options.regression:
        values["svm__epsilon"] = tuning.settings["epsilon"]
    search = GridSearchCV(Pipeline(steps), values, cv=tuning.cv, scoring=tuning.scorer, n_jobs=options.n_jobs)
    fits = math.prod(len(part) for part in values.values()) * options.cv
    began = time.perf_counter()
    title = f"scikit-learn is fitting {count(fits, 'model')} (--no-peer leaves it out)"
    with report.working(title), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(tuning.X, tuning.y)
    seconds, best = time.perf_counter() - began, search.best_index_
    spread = float(search.cv_results_["std_test_score"][best]) / math.sqrt(options.cv - 1)
    found = {name.removeprefix("svm__"): value for name, value in search.best_params_.items()}
    return {"score": float(search.best_score_), "std_error": spread, **found, "fits": fits + 1, "seconds": seconds}


# After.


def _score_name(options: argparse.Namespace) -> str:
    of = "" if options.pos_label is None else f" of {options.pos_label}"
    return score_in_words(_scoring(options)) + of


def _show_candidates(report: Report, model: Any) -> None:
    """Print a line for each of several kernels, the best first."""
    results, curves = model.cv_results_, model.cv_curves_
    if len(curves) == 1:
        return
    names = [name for name in ("gamma", "epsilon") if len({str(v) for v in results.get(f"param_{name}", [])}) > 1]
    titles = "".join(f"{name:>10}" for name in names)
    report.say(f"  {titles}{'score':>12}{'std error':>12}   best C")
    order = model._by_rank()
    for k in order[:SHOWN]:
        values = "".join(f"{_plain(results[f'param_{name}'][k]):>10}" for name in names)
        where = folds.in_words(curves[k].best_intervals)
        mean, error = results["mean_test_score"][k], results["std_error_test_score"][k]
        report.say(f"  {values}{number(mean):>12}{number(error, 2):>12}   {where}")
    if order.size > SHOWN:
        report.say(f"  ... and {count(order.size - SHOWN)} more")
    report.say()


def _plain(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _show(report: Report, options: argparse.Namespace, model: Any, points: int, seconds: float, theirs: Any) -> None:
    """Print what was chosen beside what the grid found, and what is proved of it."""
    machine, C = machine_of(model), model.C_
    lines = [
        (f"best {_score_name(options)}", number(model.cv_curve_.best_score), theirs and number(theirs["score"])),
        ("standard error", number(float(model.cv_curve_.std_error(model.cv_curve_.best_C)), 2),
         theirs and number(theirs["std_error"], 2)),
        ("best C", folds.in_words(model.cv_curve_.best_intervals, most=1), theirs and number(theirs["C"])),
    ]  # fmt: skip
    if len(model.cv_curves_) > 1:
        names = [name for name in ("gamma", "epsilon") if name in model.best_params_]
        lines += [(name, _plain(model.best_params_[name]), theirs and _plain(theirs.get(name))) for name in names]
    paths = len(model.cv_curves_) * options.cv
    lines += [
        ("values of C", _how_many(model), theirs and str(GRID)),
        ("followed, or fitted", count(paths, "path"), theirs and count(theirs["fits"] - 1, "model")),
        ("seconds", f"{seconds:.3f}", theirs and f"{theirs['seconds']:.3f}"),
    ]
    left = max(24, *(len(title) + 2 for title, _, _ in lines))
    width = max(18, *(len(ours) + 2 for _, ours, _ in lines))
    report.say(f"  {'':<{left}}{'zerogap':>{width}}" + ("" if theirs is None else f"{'GridSearchCV':>16}"))
    for title, ours, other in lines:
        report.say(f"  {title:<{left}}{ours:>{width}}" + ("" if theirs is None else f"{other:>16}"))
    rule = (
        "" if options.selection == "best" else f", the smallest within one standard error: {number(model.best_score_)}"
    )
    report.say(f"\nchosen: C = {number(C)}{_others(model)}{rule}")
    ends = _ends_reached(options, model)
    if len(ends) == 2 and len(model.cv_curve_.best_intervals) == 1:
        beyond = f"; beyond, C may be better: {' or '.join(ends)} to see"
        if not machine.support_.size:
            beyond = ": no target is outside of the tube; lower --epsilon"
        report.say(f"every C from {options.C_min:g} to {options.C_max:g} is as good{beyond}")
        ends = []
    for end in ends:
        report.say(
            f"the best interval reaches an end of the range, and beyond it C may be better or just as good: {end} to see"
        )
    report.say(f"fitted to all {count(points, 'point')}; certified gap {machine.duality_gap_:.1e}")


def _ends_reached(options: argparse.Namespace, model: Any) -> list[str]:
    """Return what to change where a best interval goes up to an end of the range."""
    found = model.cv_curve_.best_intervals
    least = min(low for low, _ in found) <= options.C_min
    most = max(high for _, high in found) >= options.C_max
    return [f"lower --C-min ({options.C_min:g})"] * least + [f"raise --C-max ({options.C_max:g})"] * most


def _others(model: Any) -> str:
    """Return what was chosen beside C, with gamma as a number."""
    words = [] if model.gamma_ is None else [f"gamma = {number(model.gamma_)}"]
    words += [f"epsilon = {number(model.epsilon_)}"] if hasattr(model, "epsilon_") else []
    return "".join(f", {word}" for word in words)


def _record(model: Any) -> dict[str, Any]:
    """Return what was found, for JSON."""
    results, curve, machine = model.cv_results_, model.cv_curve_, machine_of(model)
    return {
        "C": model.C_, "gamma": model.gamma_, "epsilon": getattr(model, "epsilon_", None), "score": model.best_score_,
        "std_error": model.best_std_error_, "best_score": curve.best_score, "best_intervals": curve.best_intervals,
        "relative_gap": machine.duality_gap_, "support_vectors": int(machine.support_.size), "events": model.n_events_,
        "candidates": [
            {**params, "score": score, "std_error": error, "best_intervals": one.best_intervals}
            for params, score, error, one in zip(
                results["params"], results["mean_test_score"], results["std_error_test_score"], model.cv_curves_, strict=True
            )
        ],
        "curve": {name: column for name, column in curve.table().items() if not name.startswith("fold")},
    }  # fmt: skip


def _how_many(model: Any) -> str:
    """Return at how many C the score is known."""
    return "all" if model.cv_curve_.is_exact else count(model.cv_curve_.mean.score.size)
