"""``zerogap predict``: one prediction a line, by a model that ``zerogap fit --save`` or ``model.save`` wrote."""

import argparse
import sys
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap import tables
from zerogap.cli import arguments
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import is_absent, label_text, load_set, read_file, source_of
from zerogap.cli.features import DROP, MEAN, Preparation, places_by_training
from zerogap.cli.report import STANDARD, Report, check_output
from zerogap.wording import count

EXAMPLES = """\
  zerogap predict m.npz new.csv                          one prediction a line
  zerogap predict m.npz new.csv --output out.csv --decision
  cut -f2- old.tsv | zerogap predict m.npz - --format tsv"""


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(commands, "predict", run, "predict with a model that was saved", EXAMPLES)
    parser.add_argument("model", metavar="MODEL", help="what zerogap fit --save wrote, or model.save in Python")
    arguments.add_file(parser, default=None)
    parser.set_defaults(missing=None)
    parser.add_argument("--output", metavar="FILE", help="where predictions go (default -, standard output)")
    parser.add_argument(
        "--decision", action="store_true", help="add decision values: of two classes one, else one a class"
    )
    arguments.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Read, prepare as in training, predict."""
    from zerogap.cli import saved

    check_output("--json", options.json)
    check_output("--output", options.output)
    if options.json == STANDARD and options.output == STANDARD:
        raise UsageError("--json - and --output - cannot both write to standard output")
    saved.check_model(options.model)
    source_of(options.data)
    report = Report(options.json, options.quiet, is_text_aside=True)
    with report.working(f"loading {options.model}"):
        model, preparation = saved.load(options.model)
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{options.model} holds a {type(model).__name__} that was never fitted.")
    if options.decision and not hasattr(model, "decision_function"):
        raise UsageError(
            f"--decision is for classifiers; {options.model} is a regression, whose prediction is the value"
        )
    X, y, absent = points(options, report, model, preparation)
    if absent.any():
        report.note(f"{options.data}: {absent.sum()} of {absent.size} rows lack values: their lines are empty")
    # Columns were put in the order of training by their names.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    with report.working("predicting"):
        known = ~absent
        predicted = model.predict(X[known])
        decision = np.atleast_2d(model.decision_function(X[known]).T).T if options.decision else None
    score, words = _score(predicted, y, known, model)
    labels = _lines(predicted, absent)
    values = None if decision is None else _lines(decision, absent)
    if options.output is not None or options.json != STANDARD:
        _write(options.output or STANDARD, labels, values)
    if words:
        report.note(words)
    report.write(
        {"model": options.model, "data": options.data, "predictions": labels, "decision": values,
         "score": None if score is None else score["value"], "rows_scored": 0 if score is None else score["rows"]}
    )  # fmt: skip
    return 0


def points(
    options: argparse.Namespace, report: Report, model: Any, preparation: Preparation | None
) -> tuple[Any, np.ndarray | None, np.ndarray]:
    """Return points as the model wants them, their targets if the file has them, and which rows lack values."""
    preparation = preparation or _of_python(model)
    if source_of(options.data) != "file":
        return _of_set(options, report, preparation)
    wanted = [name for name in (options.target,) if name is not None]
    found = read_file(options, report, wanted)
    if isinstance(found, tables.Points):
        X = aligned(found, preparation)
        return preparation.apply(X), found.y, np.zeros(X.shape[0], dtype=bool)
    given = None if options.target is None else found.index(options.target)
    places = places_by_training(preparation, found, given)
    target = _target(found, preparation, places) if given is None else given
    try:
        X = preparation.points(found, places)
    except tables.NotANumber as error:
        empty = "" if model is None else ", or empty it and add --missing drop"  # the training file stays as it was
        error.remedy = f"The model was trained on numbers there: correct the cell{empty}."
        raise
    missing = options.missing or preparation.missing
    absent = np.isnan(X).any(axis=1)
    if missing == MEAN and model is not None and options.missing is None and absent.any():
        rows = f"{absent.sum()} of {absent.size} rows lack values"
        report.note(
            f"{found.source}: {rows}: the model puts its training means there (--missing error refuses them, drop leaves "
            "their lines empty)"
        )
    if missing == MEAN and preparation.fill is None and absent.any():
        raise UsageError("--missing mean: the model keeps no means; train it with zerogap fit --missing mean")
    if missing == MEAN:
        absent = np.zeros(len(found), dtype=bool)
    elif missing != DROP:
        preparation.refuse_missing(found, X, places)
    for note in [*(f"{found.source}: {note}" for note in found.notes), *preparation.unknown(found, places)]:
        report.note(note)
    X[absent] = 0.0
    return preparation.apply(X), None if target is None else found.labels(target), absent


def _of_set(options: argparse.Namespace, report: Report, preparation: Preparation) -> Any:
    X, y = load_set(options, report)
    if X.shape[1] != preparation.width:
        raise tables.NoColumn(
            f"{options.data} has {count(X.shape[1], 'feature')}; the model was trained on {preparation.width}."
        )
    return preparation.apply(X), y, np.zeros(y.size, dtype=bool)


def _of_python(model: Any) -> Preparation:
    """Return the columns of a model that was saved from Python."""
    names, width = getattr(model, "feature_names_in_", None), model.n_features_in_
    if names is not None:
        return Preparation([str(name) for name in names], is_named=True, place=width)
    # As elsewhere, a target is in the last column unless --target says otherwise.
    return Preparation([str(k + 1) for k in range(width)], place=width, base=1)


def aligned(found: tables.Points, preparation: Preparation) -> Any:
    """Return sparse points with as many features as in training; absent ones are zero."""
    base, width = preparation.base, preparation.width
    if base is None:
        raise tables.TableError(
            f"{found.source} is an svmlight file; the model was trained on a table of {count(width, 'feature')}."
        )
    X = found.X
    if found.base != base:  # the same index is the same feature
        shift = found.base - base
        if shift < 0:
            raise tables.TableError(f"{found.source} has a feature of index 0; those of training begin at 1.")
        X = sp.csr_matrix((X.data, X.indices + shift, X.indptr), shape=(X.shape[0], X.shape[1] + shift))
    if X.shape[1] > width:
        raise tables.NoColumn(
            f"{found.source} has a feature {X.shape[1] - 1 + base}; the model was trained on features {base} to "
            f"{width - 1 + base}."
        )
    X = tables.widened(X, width)
    return X if preparation.is_sparse else X.toarray()


def _target(found: tables.Table, preparation: Preparation, places: list[int]) -> int | None:
    """Return the column that holds the target, if there is one."""
    if found.is_named and preparation.is_named:
        name = preparation.target
        k = found.names.index(name) if name is not None and name in found.names else None
        return None if k in places else k
    left = set(range(len(found.names))) - set(places)
    return left.pop() if len(left) == 1 else None


def _score(predicted: np.ndarray, y: Any, known: np.ndarray, model: Any) -> tuple[dict[str, Any] | None, str]:
    """Return how good predictions are where the file tells, and words for it, or for why there is no score."""
    if y is None:
        return None, ""
    classes = getattr(model, "classes_", None)
    if classes is not None and classes.dtype.kind in "UO" and y.dtype.kind == "f":
        y = np.array(["" if np.isnan(label) else label_text(label) for label in y])
    told = known & ~is_absent(y)
    truth, guess, more = y[told], predicted[told[known]], ""
    if not truth.size:
        return None, "no score: the targets are missing"
    if classes is None:
        if y.dtype.kind != "f":
            return None, f"no score: the targets are text, such as {str(truth[0])!r}; the model predicts numbers"
        if truth.size < 2:
            return None, "no score: R² takes two rows that have a target"
        from sklearn.metrics import r2_score

        value, what = float(r2_score(truth, guess)), "R²"
    else:
        is_class = np.isin(truth, classes) if (classes.dtype.kind in "UO") == (y.dtype.kind in "UO") else truth != truth
        if not is_class.any():
            shown = ", ".join(label_text(label) for label in classes[:5]) + (", ..." if classes.size > 5 else "")
            return None, f"no score: no target, such as {label_text(truth[0])}, is a class of the model ({shown})"
        if not is_class.all():
            more = f", {count(int((~is_class).sum()))} of them of a class that the model does not know"
        value, what = float(np.mean(truth == guess)), "accuracy"
    words = (
        f"{what} {value:.4f} on {count(truth.size, 'row')} that {'has' if truth.size == 1 else 'have'} a target{more}"
    )
    return {"value": value, "rows": int(truth.size)}, words


def _lines(values: np.ndarray, absent: np.ndarray) -> list[Any]:
    """Return a value for each row of the file, None where there is none."""
    found = iter(values.tolist())
    return [None if is_absent_row else next(found) for is_absent_row in absent]


def _write(name: str, labels: list[Any], values: list[Any] | None) -> None:
    import csv

    target = nullcontext(sys.stdout) if name == STANDARD else open(name, "w", newline="", encoding="utf-8")  # noqa: SIM115
    with target as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for k, label in enumerate(labels):
            text = "" if label is None else label_text(label)
            more = [] if values is None or values[k] is None else [repr(value) for value in values[k]]
            if text or more:
                writer.writerow([text, *more])
            else:
                stream.write("\n")
