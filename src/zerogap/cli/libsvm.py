"""LIBSVM's model files, as svm-train writes them: text, with the support vectors but not the cost they were found at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zerogap.cli.arguments import UsageError
from zerogap.estimators.pairs import coefficients, pairs_of

KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid"}
TYPES = {"c_svc": False, "epsilon_svr": True}  # whether it is a regression
DIGITS = 8  # significant ones that svm-train writes of a feature


@dataclass(frozen=True)
class Model:
    """What a file holds."""

    file: str
    is_regression: bool
    kernel: str
    gamma: float
    degree: int
    coef0: float
    labels: np.ndarray  # in the order of the file
    counts: np.ndarray  # of the support vectors of each class, which stand in that order
    coefficients: np.ndarray  # (classes - 1, s), of a regression (1, s)
    vectors: list[frozenset[tuple[int, float]]]


class Part(NamedTuple):
    """Two classes of a model, or a regression: rows, target, signed coefficients."""

    rows: np.ndarray
    target: np.ndarray
    beta: np.ndarray


def is_model(file: str) -> bool:
    """Whether a file begins as LIBSVM's do."""
    with open(file, "rb") as stream:
        return stream.read(9) == b"svm_type "


def read(file: str) -> Model:
    """Read a model of C-SVC or epsilon-SVR."""
    with open(file, encoding="latin-1") as stream:
        head, _, body = stream.read().partition("\nSV\n")
    words = {line.split()[0]: line.split()[1:] for line in head.splitlines() if line.split()}
    try:
        kind, kernel = words["svm_type"][0], words["kernel_type"][0]
        if kind not in TYPES:
            raise UsageError(f"{file}: a model of type {kind}; certify takes {' and '.join(TYPES)}")
        if kernel not in KERNELS:
            raise UsageError(f"{file}: a {kernel} kernel; certify takes {', '.join(KERNELS)}")
        rows = [line.split() for line in body.splitlines() if line.strip()]
        width = 1 if TYPES[kind] else int(words["nr_class"][0]) - 1
        coefficients = np.array([[float(cell) for cell in row[:width]] for row in rows]).T.reshape(width, len(rows))
        vectors = [frozenset(_features(row[width:])) for row in rows]
        if len(rows) != int(words["total_sv"][0]):
            raise ValueError(f"{len(rows)} of {words['total_sv'][0]} support vectors")
        return Model(
            file, TYPES[kind], KERNELS[kernel], float(words.get("gamma", ["1"])[0]), int(words.get("degree", ["3"])[0]),
            float(words.get("coef0", ["0"])[0]), np.array([float(label) for label in words.get("label", [])]),
            np.array([int(count) for count in words.get("nr_sv", [])], dtype=np.int64), coefficients, vectors,
        )  # fmt: skip
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{file} is no whole model of LIBSVM ({error}).") from error


def _features(cells: list[str]) -> Iterator[tuple[int, float]]:
    for cell in cells:
        index, _, value = cell.partition(":")
        if float(value):
            yield int(index), float(value)


def certificates(
    model: Model, X: Any, y: np.ndarray, base: int, C: float, epsilon: float
) -> tuple[list[str], list[Any]]:
    """Return the certificates of a model on its training points, one for each pair of classes, and names for the pairs."""
    from zerogap import DualProblem, Gram

    if y.dtype.kind != "f" and not model.is_regression:
        raise ValueError(f"The classes of {model.file} are numbers; those of the data are text.")
    if not model.is_regression and not np.isin(y, model.labels).all():
        other = y[~np.isin(y, model.labels)][0]
        raise ValueError(f"The data has a class {other:g} that {model.file} does not know.")
    dual = np.zeros((len(model.coefficients), y.size))
    dual[:, _rows(model, X, y, base)] = model.coefficients
    options: dict[str, Any] = {"gamma": model.gamma, "degree": model.degree, "coef0": model.coef0}
    if model.is_regression:
        parts = [Part(np.arange(y.size), y, dual[0])]
    else:
        codes = np.argmax(y[:, None] == model.labels, axis=1)
        parts = list(_pairs(dual, codes))
    found = []
    for part in parts:
        gram = Gram(X[part.rows], model.kernel, **options)
        problem = (
            DualProblem.epsilon_insensitive(gram, part.target, C, epsilon)
            if model.is_regression
            else DualProblem.hinge(gram, part.target, C)
        )
        found.append(problem.certify(problem.restore_sum(np.clip(part.beta, problem.lower, problem.upper))))
    pairs = [f"{model.labels[a]:g} against {model.labels[b]:g}" for a, b in pairs_of(model.labels.size)]
    return ["" for _ in found] if model.is_regression else pairs, found


def _pairs(dual: np.ndarray, codes: np.ndarray) -> Iterator[Part]:
    """Yield the pairs of classes a < b; in its own files a is positive even if there are only two."""
    for a, b in pairs_of(len(dual) + 1):
        rows = np.flatnonzero((codes == a) | (codes == b))
        is_a = codes[rows] == a
        yield Part(rows, np.where(is_a, 1.0, -1.0), coefficients(dual[:, rows], codes[rows], a, b))


def _rows(model: Model, X: Any, y: np.ndarray, base: int) -> np.ndarray:
    """Return the training rows that are the support vectors; of equal rows each is taken once."""
    places: dict[Any, list[int]] = {}
    for i in reversed(range(y.size)):
        row = X[[i]].tocoo() if hasattr(X, "tocoo") else None
        cells = zip(row.col, row.data, strict=True) if row is not None else enumerate(X[i])
        key = frozenset((int(k) + base, float(f"{value:.{DIGITS}g}")) for k, value in cells if value)
        places.setdefault((key, None if model.is_regression else y[i]), []).append(i)
    owners = _owners(model)
    found: list[int] = []
    for vector, owner in zip(model.vectors, owners, strict=True):
        rows = places.get((vector, owner))
        if not rows:
            raise ValueError(
                f"Support vector {len(found) + 1} of {model.file} is no row of the data: was it trained on this file?"
            )
        found.append(rows.pop())
    return np.array(found, dtype=np.int64)


def _owners(model: Model) -> list[float | None]:
    """Return the class of every support vector."""
    if model.is_regression:
        return [None] * len(model.vectors)
    return np.repeat(model.labels, model.counts).tolist()
