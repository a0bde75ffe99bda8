"""``zerogap certify``: the duality gap of a model on its training file, computed anew from the data."""

import argparse
from typing import Any

import numpy as np

from zerogap import tables
from zerogap.cli import arguments, libsvm, saved
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import Data, is_absent, label_text, load, source_of, split_rows
from zerogap.cli.features import DROP, ERROR, Preparation
from zerogap.cli.report import Report, certificate_record, check_output
from zerogap.wording import count

EXAMPLES = """\
  zerogap certify m.npz data.csv                   what zerogap fit data.csv --save m.npz wrote
  zerogap certify m.npz data.csv --gap 1e-4        exit code 1 if the gap is larger
  zerogap certify m.skops data.csv                 a model of scikit-learn, stored by skops
  zerogap certify data.model data.svm --C 10       what svm-train -c 10 data.svm data.model wrote"""
SHOWN = 10


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "certify", run, "compute the duality gap of a saved model on its training file", EXAMPLES
    )
    parser.add_argument(
        "model", metavar="MODEL", help="file of zerogap fit --save, model.save in Python, skops or svm-train"
    )
    arguments.add_file(parser, default=None)
    parser.add_argument("--gap", type=arguments.positive, help="fail, with exit code 1, if the relative gap is larger")
    parser.add_argument("--C", type=arguments.positive, help="of a model by svm-train, which does not keep it (-c)")
    parser.add_argument("--epsilon", type=arguments.not_negative, help="of its regression (-p, default 0.1)")
    parser.set_defaults(one_hot=[], drop=[], seed=0)
    arguments.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Certify; nothing is fitted."""
    check_output("--json", options.json)
    is_other = saved.check_model(options.model, lambda file: libsvm.is_model(file) or _is_skops(file))
    is_libsvm = is_other and not _is_skops(options.model)
    if not is_libsvm and not (options.C is None and options.epsilon is None):
        raise UsageError("--C and --epsilon are for models by svm-train; others know theirs")
    source_of(options.data)
    report = Report(options.json, options.quiet)
    words, names, found = _of_libsvm(options, report) if is_libsvm else _of_python(options, report)
    gap = max(certificate.relative_gap for certificate in found)
    report.say(f"{options.model}: {words}")
    for name, certificate in list(zip(names, found, strict=True))[:SHOWN]:
        report.say(f"certificate{f' of {name}' if len(found) > 1 else ''}: {certificate}")
    if len(found) > SHOWN:
        report.say(f"... and {count(len(found) - SHOWN, 'more pair')} of classes")
    report.say(f"certified gap: {gap:.2e}")
    records = [{"name": name, **certificate_record(item)} for name, item in zip(names, found, strict=True)]
    report.write({"model": options.model, "data": options.data, "relative_gap": gap, "certificates": records})
    if options.gap is not None and not gap <= options.gap:
        raise ValueError(f"{options.model}: the relative gap is {gap:.2e}, above --gap {options.gap:g}.")
    return 0


def _of_python(options: argparse.Namespace, report: Report) -> tuple[str, Any, Any]:
    """Certify a model that is an estimator: ours, or one that skops has stored."""
    from zerogap import certify

    model, preparation = (_read_skops(options.model), None) if _is_skops(options.model) else saved.load(options.model)
    X, y = _prepared(options, report, preparation) if preparation else _plain(options, report, model)
    try:
        with report.working("computing the certificate"):
            found = certify(model, X, y)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{options.model} with {options.data}: {error}") from error
    words = f"{found.estimator} on {count(y.size, 'point')} of {options.data}"
    return words, [_as_in_files(name, model) for name in found.names], found.certificates


def _as_in_files(name: str, model: Any) -> str:
    """Return the name of a pair of classes with its labels as they stand in a file: 1, where Python has 1.0."""
    classes = getattr(model, "classes_", ())
    written = {str(label): label_text(label) for label in classes}
    first, middle, second = name.partition(" against ")
    return f"{written.get(first, first)}{middle}{written.get(second, second)}"


def _plain(options: argparse.Namespace, report: Report, model: Any) -> tuple[Any, np.ndarray]:
    """Return the data as it is in the file, for a model that says nothing of columns."""
    from sklearn.base import is_regressor

    data = _as_it_is(options, report, is_regressor(model))
    return data.X, data.y


def _as_it_is(options: argparse.Namespace, report: Report, is_regression: bool) -> Data:
    try:
        return load(options, report, is_regression)
    except tables.NotANumber as error:
        error.remedy = (
            "The model takes numbers: give the file it was trained on, and --target if that is not the last column."
        )
        raise


def _prepared(options: argparse.Namespace, report: Report, preparation: Preparation) -> tuple[Any, np.ndarray]:
    """Read the training file as ``zerogap fit`` did, and take the rows that were not held out."""
    from zerogap.cli.predict import points

    options.missing = preparation.missing
    if options.target is None and not preparation.is_named and preparation.place is not None:
        options.target = str(preparation.place + 1)
    X, y, absent = points(options, report, None, preparation)
    if y is None:
        raise tables.NoColumn(f"{options.data} has no target column {preparation.target!r}.")
    known = ~(absent | (is_absent(y) if preparation.missing == DROP else False))
    X, y = X[known], y[known]
    if y.size != preparation.rows:
        raise tables.TableError(
            f"{options.data} has {y.size} rows; the model was trained on a file of {preparation.rows}: this is another file."
        )
    train, _ = split_rows(Data(options.data, X, y, preparation), preparation.test_size, preparation.seed)
    return X[train], y[train]


def _is_skops(file: str) -> bool:
    return file.endswith(".skops")


def _read_skops(file: str) -> Any:
    """Read a model that skops has stored; types it does not trust by itself are refused."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(f"{file}: pip install skops to read it.") from error
    try:
        return skops.io.load(file)
    except Exception as error:  # whatever a damaged file makes it raise
        raise ValueError(f"{file} is no model that skops reads ({type(error).__name__}: {error}).") from error


def _of_libsvm(options: argparse.Namespace, report: Report) -> tuple[str, Any, Any]:
    if options.C is None:
        raise UsageError(f"{options.model} is a model by svm-train, which does not keep C: give --C, its option -c")
    model = libsvm.read(options.model)
    options.missing = ERROR
    data = _as_it_is(options, report, model.is_regression)
    base = 1 if data.preparation.base is None else data.preparation.base
    epsilon = arguments.EPSILON if options.epsilon is None else options.epsilon
    with report.working("computing the certificate"):
        names, found = libsvm.certificates(model, data.X, data.y, base, options.C, epsilon)
    kind = "epsilon-SVR" if model.is_regression else "C-SVC"
    words = f"LIBSVM's {kind}, kernel {model.kernel!r}, C={options.C:g}, on {data.y.size} points of {options.data}"
    return words, names, found
