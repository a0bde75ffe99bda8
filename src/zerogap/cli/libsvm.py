"""LIBSVM's model files, as svm-train writes them: text, with the support vectors but not the cost they were found at."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

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
    biases: np.ndarray  # minus its rho, one for each pair of classes
    vectors: list[frozenset[tuple[int, float]]]


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
        biases = -np.array([float(rho) for rho in words["rho"]])
        if len(rows) != int(words["total_sv"][0]):
            raise ValueError(f"{len(rows)} of {words['total_sv'][0]} support vectors")
        if biases.size != len(pairs_of(width + 1)):
            raise ValueError(f"{biases.size} values of rho")
        return Model(
            file, TYPES[kind], KERNELS[kernel], float(words.get("gamma", ["1"])[0]), int(words.get("degree", ["3"])[0]),
            float(words.get("coef0", ["0"])[0]), np.array([float(label) for label in words.get("label", [])]),
            np.array([int(count) for count in words.get("nr_sv", [])], dtype=np.int64), coefficients, biases, vectors,
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
    from zerogap.foreign.certifying import certified

    if y.dtype.kind != "f" and not model.is_regression:
        raise ValueError(f"The classes of {model.file} are numbers; those of the data are text.")
    if not model.is_regression and not np.isin(y, model.labels).all():
        other = y[~np.isin(y, model.labels)][0]
        raise ValueError(f"The data has a class {other:g} that {model.file} does not know.")
    dual = np.zeros((len(model.coefficients), y.size))
    dual[:, _rows(model, X, y, base)] = model.coefficients
    parts = [_regression(model, X, y, dual[0], C, epsilon)] if model.is_regression else _pairs(model, X, y, dual, C)
    found = [(part.name, certified(part).certificate) for part in parts]
    return [name for name, _ in found], [certificate for _, certificate in found]


def _regression(model: Model, X: Any, y: np.ndarray, beta: np.ndarray, C: float, epsilon: float) -> Any:
    from zerogap import DualProblem
    from zerogap.foreign.parts import LOOKED_AT, Expansion

    gram, rows = partial(_gram, model, X), np.arange(y.size)
    problem = DualProblem.epsilon_insensitive(gram(LOOKED_AT), y, C, epsilon)
    return Expansion("", problem, rows, gram, beta, float(model.biases[0]))


def _pairs(model: Model, X: Any, y: np.ndarray, dual: np.ndarray, C: float) -> Iterator[Any]:
    """Yield the problems of the pairs of classes a < b; in its own files a is positive even if there are only two."""
    from zerogap import DualProblem
    from zerogap.foreign.parts import LOOKED_AT, Expansion

    labels, codes = model.labels, np.argmax(y[:, None] == model.labels, axis=1)
    for (a, b), bias in zip(pairs_of(labels.size), model.biases, strict=True):
        rows = np.flatnonzero((codes == a) | (codes == b))
        gram, beta = partial(_gram, model, X[rows]), coefficients(dual[:, rows], codes[rows], a, b)
        problem = DualProblem.hinge(gram(LOOKED_AT), np.where(codes[rows] == a, 1.0, -1.0), C)
        yield Expansion(f"{labels[a]:g} against {labels[b]:g}", problem, rows, gram, beta, float(bias))


def _gram(model: Model, X: Any, megabytes: float) -> Any:
    """Return the kernel matrix within so much memory."""
    from zerogap import Gram

    return Gram(X, model.kernel, gamma=model.gamma, degree=model.degree, coef0=model.coef0, cache_size=megabytes)


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
