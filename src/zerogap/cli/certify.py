"""``zerogap certify``: the duality gap of a model on its training file, computed anew from the data."""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap import tables
from zerogap.cli import arguments, libsvm, saved, solving
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import Data, is_absent, label_text, load, source_of, split_rows
from zerogap.cli.features import DROP, Preparation
from zerogap.cli.fit import certificate_record
from zerogap.cli.report import Report, check_output

EXAMPLES = """\
  zerogap certify m.npz data.csv                   what zerogap fit data.csv --save m.npz wrote
  zerogap certify m.npz data.csv --gap 1e-4        exit code 1 if the gap is larger
  zerogap certify data.model data.svm --C 10       what svm-train -c 10 data.svm data.model wrote"""
SHOWN = 10
DIFFERENT = 1e-9  # share of its size by which a row may differ from the support vector it is, for another way to round


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "certify", run, "compute the duality gap of a saved model on its training file", EXAMPLES
    )
    parser.add_argument(
        "model", metavar="MODEL", help="what zerogap fit --save, model.save in Python or svm-train wrote"
    )
    arguments.add_file(parser, default=None)
    parser.add_argument("--gap", type=arguments.positive, help="fail, with exit code 1, if the relative gap is larger")
    parser.add_argument("--C", type=arguments.positive, help="of a model by svm-train, which does not keep it (-c)")
    parser.add_argument(
        "--epsilon", type=arguments.not_negative, default=0.1, help="of its regression (-p, default 0.1)"
    )
    arguments.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Certify; nothing is fitted."""
    check_output("--json", options.json)
    is_libsvm = saved.check_model(options.model, libsvm.is_model)
    source_of(options.data)
    report = Report(options.json, options.quiet)
    found, words = _of_libsvm(options, report) if is_libsvm else _of_zerogap(options, report)
    gap = max(certificate.relative_gap for certificate in found)
    report.say(f"{options.model}: {words}")
    for certificate in found[:SHOWN]:
        report.say(f"certificate: {certificate}")
    if len(found) > SHOWN:
        report.say(f"... and {len(found) - SHOWN} more pairs of classes")
    report.say(f"certified gap: {gap:.2e}")
    report.write(
        {"model": options.model, "data": options.data, "relative_gap": gap,
         "certificates": [certificate_record(certificate) for certificate in found]}
    )  # fmt: skip
    if options.gap is not None and not gap <= options.gap:
        raise ValueError(f"{options.model}: the relative gap is {gap:.2e}, above --gap {options.gap:g}.")
    return 0


def _of_zerogap(options: argparse.Namespace, report: Report) -> tuple[list[Any], str]:
    from zerogap import SVC, SVR

    model, preparation = saved.load(options.model)
    if not isinstance(model, SVC | SVR) or not hasattr(model, "support_"):
        raise UsageError(f"{options.model} holds a {type(model).__name__}; certify takes a fitted SVC or SVR")
    X, y = _training_rows(options, report, model, preparation)
    with report.working("computing the certificate"):
        found = solving.certificates(model, X, y)
    words = f"{type(model).__name__}(C={model.C:g}, kernel={model.kernel!r}, loss={model.loss!r})"
    return found, f"{words} on {y.size} points of {options.data}"


def _training_rows(
    options: argparse.Namespace, report: Report, model: Any, preparation: Preparation | None
) -> tuple[Any, np.ndarray]:
    """Return the points that the model was trained on; a file that does not hold them is refused."""
    options.one_hot = options.drop = []
    options.seed = 0
    is_regression = not hasattr(model, "classes_")
    if preparation is None:
        options.missing = "error"
        data = load(options, report, is_regression)
        X, y = data.X, data.y
    else:
        X, y = _prepared(options, report, preparation, is_regression)
    if X.shape != tuple(model.shape_fit_):
        raise tables.TableError(
            f"{options.data} has {X.shape[0]} rows of {X.shape[1]} features to train on; the model was trained on "
            f"{model.shape_fit_[0]} of {model.shape_fit_[1]}: this is another file."
        )
    rows, vectors = _dense(X[model.support_]), _dense(model.support_vectors_)
    wrong = np.abs(rows - vectors) > DIFFERENT * np.maximum(np.abs(vectors), 1.0)
    if wrong.any():
        row = model.support_[np.flatnonzero(wrong.any(axis=1))[0]]
        raise tables.TableError(
            f"{options.data}: training row {row + 1} is not the one that the model was trained on: this is another file."
        )
    if not is_regression and not np.isin(y, model.classes_).all():
        other = y[~np.isin(y, model.classes_)][0]
        raise tables.TableError(f"{options.data} has a class {label_text(other)} that the model does not know.")
    return X, y


def _prepared(
    options: argparse.Namespace, report: Report, preparation: Preparation, is_regression: bool
) -> tuple[Any, np.ndarray]:
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
    data = Data(options.data, X, y, preparation)
    if y.size != preparation.rows:
        raise tables.TableError(
            f"{options.data} has {y.size} rows; the model was trained on a file of {preparation.rows}: this is another file."
        )
    train, _ = split_rows(data, preparation.test_size, preparation.seed)
    return X[train], y[train].astype(np.float64) if is_regression else y[train]


def _of_libsvm(options: argparse.Namespace, report: Report) -> tuple[list[Any], str]:
    if options.C is None:
        raise UsageError(f"{options.model} is a model by svm-train, which does not keep C: give --C, its option -c")
    model = libsvm.read(options.model)
    options.one_hot, options.drop, options.seed, options.missing = [], [], 0, "error"
    data = load(options, report, model.is_regression)
    base = 1 if data.preparation.base is None else data.preparation.base
    with report.working("computing the certificate"):
        found = libsvm.certificates(model, data.X, data.y.astype(np.float64), base, options.C, options.epsilon)
    kind = "epsilon-SVR" if model.is_regression else "C-SVC"
    return (
        found,
        f"LIBSVM's {kind}, kernel {model.kernel!r}, C={options.C:g}, on {data.y.size} points of {options.data}",
    )


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
