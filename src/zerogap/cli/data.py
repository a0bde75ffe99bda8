"""From a command's options to points and targets."""

import argparse
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap import tables
from zerogap.cli.arguments import UsageError
from zerogap.cli.features import DROP, ERROR, MEAN, Preparation
from zerogap.cli.report import STANDARD, Report
from zerogap.estimators.pairs import pairs_of

OPENML = "openml:"
MANY_CLASSES = 20  # from here on a number of classes near that of the rows is remarked upon


class Names(NamedTuple):
    """What a data set of scikit-learn calls its features and its classes, on pages."""

    features: list[str]
    classes: dict[str, str]  # by the label in words

    @classmethod
    def of(cls, name: str) -> "Names | None":
        """Return those of a set that ships with scikit-learn; None for others."""
        import sklearn.datasets

        from zerogap import datasets

        if name not in datasets.SHIPPED:
            return None
        found = getattr(sklearn.datasets, f"load_{name.removesuffix('_regression')}")()
        classes = {str(code): str(word) for code, word in enumerate(found.get("target_names", []))}
        return cls([str(word) for word in found.feature_names], classes)


@dataclass(frozen=True)
class Data:
    """Points and targets of a training file, and where they come from."""

    name: str
    X: Any  # (n, d), NaN where a value is missing and is to be filled in
    y: np.ndarray
    preparation: Preparation
    words: str = ""  # on what the file was taken for
    notes: list[str] = field(default_factory=list)
    names: "Names | None" = None  # of a set that has some

    @property
    def target(self) -> str:
        """Words for the target."""
        target, is_named = self.preparation.target, self.preparation.is_named
        return "the label" if target is None else f"column {target!r}" if is_named else f"column {target}"


def source_of(name: str) -> str:
    """Return where data comes from, "file", "set" or "openml"; a name that is neither is refused."""
    from zerogap import datasets

    if name == STANDARD:
        return "file"
    if name.startswith(OPENML):
        return "openml"
    if Path(name).exists() and not Path(name).is_dir():
        with open(name, "rb"):  # or it is refused here, before anything is computed
            return "file"
    if name in datasets.SHIPPED or datasets.has_local(name):
        return "set"
    if Path(name).is_dir():
        raise IsADirectoryError(21, "is a directory", name)
    if any(sign in name for sign in "/\\.") or not datasets.SHIPPED:
        raise FileNotFoundError(2, "no such file", name)
    raise FileNotFoundError(
        2, f"no such file, and no data set of that name ({', '.join(datasets.SHIPPED)}; {OPENML}NAME asks OpenML)", name
    )


def form_of(options: argparse.Namespace) -> tables.Form:
    """Return how a file is to be read."""
    return tables.Form(options.format, options.delimiter, options.header, options.decimal)


def read_file(options: argparse.Namespace, report: Report, text: Any) -> tables.Table | tables.Points:
    """Read the file that a command is given; "-" is standard input."""
    name = options.data
    if name == STANDARD:
        if sys.stdin is None or sys.stdin.closed:
            raise tables.TableError("standard input is closed: there is nothing to read.")
        with report.working("reading standard input"):
            found = tables.read("standard input", form_of(options), text, stream=sys.stdin.buffer)
    else:
        with report.working(f"reading {name}"):
            found = tables.read(name, form_of(options), text)
    return found


def load_set(options: argparse.Namespace, report: Report) -> tuple[Any, np.ndarray]:
    """Return points and targets of a data set that goes by its name."""
    from zerogap import datasets

    with report.working(f"loading {options.data}"):
        return datasets.load(options.data.removeprefix(OPENML))


def load(options: argparse.Namespace, report: Report, is_regression: bool = False) -> Data:
    """Read the data to train on; the source was checked before."""
    kind = source_of(options.data)
    if kind == "file":
        data = _of_file(options, report, is_regression)
    else:
        if options.target is not None:
            raise UsageError(f"--target is for files; the data set {options.data} has its own")
        X, y = load_set(options, report)
        names = [str(k + 1) for k in range(X.shape[1])]
        preparation = Preparation(names, place=len(names), base=1, is_sparse=sp.issparse(X))
        data = Data(options.data, X, y, preparation, names=Names.of(options.data.removeprefix(OPENML)))
    if not data.X.shape[1]:
        raise tables.TableError(f"{data.name} has one column, the target, and no features.")
    y = _numbers(data) if is_regression else data.y
    notes = data.notes if is_regression else [*data.notes, *_checked_labels(data)]
    preparation = replace(
        data.preparation, is_regression=is_regression, rows=data.X.shape[0], missing=options.missing, seed=options.seed
    )
    return replace(data, y=y, preparation=preparation, notes=notes)


def _of_file(options: argparse.Namespace, report: Report, is_regression: bool) -> Data:
    one_hot = [] if options.one_hot == ["all"] else options.one_hot
    found = read_file(options, report, [options.target, *one_hot])
    if isinstance(found, tables.Table):
        return _of_table(options, found, one_hot, is_regression)
    if options.target is not None:
        raise UsageError(f"--target is for tables; {found.source} is svmlight, where the label comes first")
    names = [str(k + found.base) for k in range(found.X.shape[1])]
    X = tables.dense_or_sparse(found.X)
    words = f"{found.source}: svmlight, indices from {found.base} on; the target is the label, which comes first"
    return Data(found.source, X, found.y, Preparation(names, base=found.base, is_sparse=sp.issparse(X)), words)


def _of_table(options: argparse.Namespace, table: tables.Table, one_hot: list[str], is_regression: bool) -> Data:
    """Return the columns as features and target; ``one_hot`` are those that are named."""
    target = table.index(options.target)
    if is_regression:
        _refuse_text(table, target)
    dropped, hot = {table.index(name) for name in options.drop}, [table.index(name) for name in one_hot]
    if target in dropped:
        raise UsageError(f"--drop: {table.column_place(target)} is the target")
    if target in hot:
        raise UsageError(f"--one-hot: {table.column_place(target)} is the target, which may be text as it is")
    places = [k for k in range(len(table.names)) if k != target and k not in dropped]
    if options.one_hot == ["all"]:
        hot = [k for k in places if table.is_text(k)]
    categories = {table.names[k]: sorted({*table.text(k)} - {""}) for k in hot if k in places}
    names, place = [table.names[k] for k in places], None if dropped else target
    preparation = Preparation(names, table.is_named, categories, table.names[target], place)
    X, y, notes = preparation.points(table, places), table.labels(target), list(table.notes)
    if options.missing == DROP:
        kept = ~(np.isnan(X).any(axis=1) | is_absent(y))
        if not kept.any():
            raise tables.TableError(f"{table.source}: every row has a missing value; --drop leaves columns out.")
        if not kept.all():
            notes.append(f"{np.sum(~kept)} of {kept.size} rows are left out, where values are missing")
        X, y = X[kept], y[kept]
    else:
        _check_values(options, table, preparation, X, y, places, target)
    last = ", the last (--target names another)" if options.target is None else ""
    words = f"{table.source}: {table.described}; the target is {table.column_place(target)}{last}"
    return Data(table.source, X, y, preparation, words, notes)


def _refuse_text(table: tables.Table, target: int) -> None:
    """Refuse a target of a regression that is no number."""
    if table.labels(target).dtype.kind != "f":
        try:
            table.numbers(target)
        except tables.NotANumber as error:
            raise tables.TableError(f"{error} --regression needs a target of numbers; --target names one.") from error


def _check_values(
    options: argparse.Namespace,
    table: tables.Table,
    preparation: Preparation,
    X: np.ndarray,
    y: np.ndarray,
    places: list[int],
    target: int,
) -> None:
    """Refuse missing values where none may be, or where nothing is there to fill in."""
    absent = np.flatnonzero(is_absent(y))
    if absent.size:
        where = table.place(int(absent[0]), target)
        raise tables.TableError(f"{where}: the target is missing. --missing drop leaves such rows out.")
    if options.missing == ERROR:
        preparation.refuse_missing(table, X, places)
    if options.missing == MEAN and (empty := np.flatnonzero(np.isnan(X).all(axis=0))).size:
        raise tables.TableError(
            f"{table.source}: column {preparation.feature_names[empty[0]]!r} holds no value at all; --drop leaves it out."
        )


def is_absent(y: np.ndarray) -> np.ndarray:
    """Return which targets are missing."""
    return np.isnan(y) if y.dtype.kind == "f" else y == ""


def _numbers(data: Data) -> np.ndarray:
    try:
        y = np.asarray(data.y, dtype=np.float64)
    except ValueError as error:
        raise tables.TableError(f"{data.name}: {data.target} holds text; --regression needs numbers.") from error
    if not np.isfinite(y).all():
        raise tables.TableError(f"{data.name}: {data.target} holds a number that is infinite.")
    return y


def _checked_labels(data: Data) -> list[str]:
    """Refuse targets that are no classes; return what is remarkable about others."""
    classes = np.unique(data.y)
    if classes.size < 2:
        raise tables.TableError(
            f"{data.name}: {data.target} holds one class only, {label_text(classes[0])}; two are needed to tell apart."
        )
    if classes.dtype.kind == "f" and not (classes == np.floor(classes)).all():
        broken = classes[classes != np.floor(classes)][0]
        raise tables.TableError(
            f"{data.name}: {data.target} holds numbers that are no classes, such as {broken:g}; zerogap fit and zerogap "
            f"tune take them with --regression{_other_target(data)}."
        )
    if classes.size > MANY_CLASSES and 5 * classes.size > data.y.size:
        return [
            f"{data.target} has {classes.size} values in {data.y.size} rows, each taken for a class; --regression fits "
            f"numbers{_other_target(data)}"
        ]
    return []


def _other_target(data: Data) -> str:
    """Return advice to name another column; data without columns has none."""
    return "" if data.preparation.target is None else ", --target names another column"


def _refuse_amounts(data: Data, advice: str) -> None:
    """Refuse a target of very many whole numbers, some of them in one row only: as classes they make thousands of pairs."""
    if data.preparation.is_regression or data.y.dtype.kind not in "iuf":
        return
    classes, counts = np.unique(data.y, return_counts=True)
    if classes.size > MANY_CLASSES and 5 * classes.size > data.y.size and counts.min() == 1:
        raise tables.TableError(
            f"{data.name}: {data.target} has {classes.size} different numbers in {data.y.size} rows, which are hardly classes; "
            f"{advice}{_other_target(data)}."
        )


def two_classes(data: Data, command: str) -> np.ndarray:
    """Return the two classes of a problem that has two."""
    classes = np.unique(data.y)
    if classes.size != 2:
        _refuse_amounts(data, f"zerogap {command} takes two classes, zerogap fit --regression fits numbers")
        shown = ", ".join(label_text(label) for label in classes[:5]) + (", ..." if classes.size > 5 else "")
        raise tables.TableError(
            f"{data.name}: zerogap {command} takes two classes; {data.target} has {classes.size} ({shown}). "
            "zerogap fit takes any number."
        )
    return classes


def check_classes(data: Data, command: str) -> None:
    """Refuse a target that is hardly one of classes."""
    _refuse_amounts(data, f"zerogap {command} takes classes, zerogap fit --regression fits numbers")


def label_text(label: Any) -> str:
    """Return a label, or a predicted number, as it would stand in a file."""
    return tables.number_text(float(label)) if isinstance(label, float | np.floating) else str(label)


def pair_names(classes: Any) -> list[str]:
    """Return names for the pairs of classes, in the order of their certificates; two classes need none."""
    pairs = pairs_of(len(classes))
    return [f"{label_text(classes[a])} against {label_text(classes[b])}" for a, b in pairs] if len(pairs) > 1 else [""]


def split_rows(data: Data, test_size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those held out, of each class its share."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(data.y.size)
    if not test_size:
        return rows, rows[:0]
    stratify = None
    if not data.preparation.is_regression:
        classes, codes, counts = np.unique(data.y, return_inverse=True, return_counts=True)
        stratify, lone = codes, int(counts.argmin())
        if counts[lone] < 2:
            raise tables.TableError(
                f"{data.name}: {data.target} has one row of class {label_text(classes[lone])}, which cannot be both trained "
                "on and held out; --test-size 0 holds nothing out."
            )
    try:
        train, test = train_test_split(rows, test_size=test_size, random_state=seed, stratify=stratify)
    except ValueError as error:
        raise tables.TableError(
            f"{data.name}: {data.y.size} rows are too few to hold {test_size:.3g} of them out, some of each class; "
            "--test-size 0 holds nothing out."
        ) from error
    return train, test


@dataclass(frozen=True)
class Split:
    """Points to train on and points held out, both scaled by the former."""

    name: str
    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray
    preparation: Preparation
    names: Names | None = None

    @property
    def feature_names(self) -> list[str]:
        """What features are called on pages."""
        return self.preparation.feature_names if self.names is None else self.names.features

    def class_names(self, labels: list[str]) -> list[str]:
        """Return what classes are called on pages."""
        known = {} if self.names is None else self.names.classes
        return [known.get(label, label) for label in labels]

    @property
    def scored(self) -> tuple[str, Any, np.ndarray]:
        """Which points a score is of, "test" or "training", and these; a single point has no R²."""
        if self.y_test.size > int(self.preparation.is_regression):
            return "test", self.test, self.y_test
        return "training", self.train, self.y_train


def split(data: Data, test_size: float, is_scaled: bool, report: Report) -> Split:
    """Hold some rows out, and prepare both parts by the training part; then tell what the file was taken for."""
    _refuse_amounts(data, "--regression fits numbers")
    train, test = split_rows(data, test_size, data.preparation.seed)
    if not data.preparation.is_regression and np.unique(data.y[train]).size < np.unique(data.y).size:
        raise tables.TableError(f"{data.name}: too few rows of some class are left to train on; lower --test-size.")
    preparation = replace(data.preparation.fitted(data.X[train], is_scaled), test_size=test_size)
    for note in data.notes:
        report.note(f"{data.name}: {note}")
    if data.words:
        report.say(data.words)
    return Split(
        data.name,
        preparation.apply(data.X[train]),
        data.y[train],
        preparation.apply(data.X[test]) if test.size else data.X[test],
        data.y[test],
        preparation,
        data.names,
    )
