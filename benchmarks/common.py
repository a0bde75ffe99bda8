"""Data, peers and timing shared by the benchmarks."""

import csv
import importlib.metadata
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
import sklearn.svm
from sklearn.base import is_regressor
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_moons
from sklearn.preprocessing import StandardScaler

import zerogap
from zerogap import DualProblem, Gram, datasets

FILES = (
    "sonar", "heart", "ionosphere", "wbc", "wbc699", "monks-1.test", "monks-1.train", "monks-2.test", "monks-2.train",
    "monks-3.test", "monks-3.train", "diabetes", "hill-valley", "hill-valley.t", "german", "svmguide3", "madelon", "splice",
    "splice.t", "svmguide1", "svmguide1.t", "a1a", "a4a", "two-spirals",
)  # fmt: skip
REGRESSION = ("housing", "abalone", "cpusmall")


def two_class_sets(largest: int = 5000) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield (name, X, y in -1/+1): what ships with scikit-learn, then every two-class set of the local folder."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer", scaled(X), np.where(y == 1, 1.0, -1.0)
    X, y = load_digits(return_X_y=True)
    yield "digits", scaled(X), np.where(y >= 5, 1.0, -1.0)
    folder = datasets.data_folder()
    if folder is None:
        print("no local data folder (set ZEROGAP_DATA): only the sets that ship with scikit-learn")
        return
    for name in FILES:
        X, y = datasets.load(name)
        if X.shape[0] <= largest:
            yield name, scaled(X), np.where(y > 0, 1.0, -1.0)
    with np.load(folder / "raetsch.npz") as pool:
        for key in sorted(pool):
            if key.endswith("_x") and len(pool[key]) <= largest:
                name = key.removesuffix("_x")
                yield f"raetsch-{name}", scaled(pool[key]), pool[f"{name}_t"].astype(np.float64)


def scaled(X: Any) -> Any:
    """Columns of mean 0 and variance 1; sparse (binary) data as it is."""
    return X if sp.issparse(X) else StandardScaler().fit_transform(X)


def named_set(name: str) -> tuple[Any, np.ndarray]:
    """Return (X, y) of a set that ships with scikit-learn, is generated (moons-N, generated-NxD) or in the local folder.

    Two classes are -1/+1: of ten the last five are +1, unless the name ends in -10, which keeps them all.
    """
    kind, _, size = name.partition("-")
    if kind == "generated":
        n, d = map(int, size.split("x"))
        X, y = make_classification(n, d, n_informative=d // 2, flip_y=0.05, random_state=0)
    elif kind == "moons":
        X, y = make_moons(int(size), noise=0.3, random_state=0)
    else:
        X, y = datasets.load(name.removesuffix("-10"))
    if name in REGRESSION:
        return scaled(X), (y - y.mean()) / y.std()
    return scaled(X), y if name.endswith("-10") else np.where(y > np.unique(y).mean(), 1.0, -1.0)


def certify_peer(model: Any, X: Any, y: np.ndarray) -> Any:
    """Return our certificate of another program's coefficients; of several classes, that of the worst pair."""
    certificates = []
    for rows, target, beta in pairs(model, y):
        gram = Gram(X[rows], model.kernel, gamma=model._gamma)
        if is_regressor(model):
            problem = DualProblem.epsilon_insensitive(gram, target, model.C, model.epsilon)
        else:
            problem = DualProblem.hinge(gram, target, model.C)
        certificates.append(problem.certify(problem.restore_sum(np.clip(beta, problem.lower, problem.upper))))
    return max(certificates, key=lambda certificate: certificate.relative_gap)


def pairs(model: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows, target and signed coefficients of each pair of classes, as LIBSVM lays them out; a regression is one."""
    of_support = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    dual = np.zeros((len(of_support), y.size))
    dual[:, model.support_] = of_support
    if is_regressor(model):
        yield np.arange(y.size), y, dual[0]
        return
    k, codes = model.classes_.size, np.searchsorted(model.classes_, y)
    for a, b in combinations(range(k), 2):
        rows = np.flatnonzero((codes == a) | (codes == b))
        is_a = codes[rows] == a
        # The first class is positive, but the second if there are only two.
        target = np.where(is_a == (k > 2), 1.0, -1.0)
        yield rows, target, np.where(is_a, dual[b - 1, rows], dual[a, rows])


def peer(X: Any, y: np.ndarray, **options: Any) -> Any:
    """Fit scikit-learn's SVC."""
    return fitted(sklearn.svm.SVC, X, y, cache_size=1000, **options)


def ours(X: Any, y: np.ndarray, **options: Any) -> Any:
    """Fit zerogap's SVC."""
    return fitted(zerogap.SVC, X, y, **options)


def fitted(estimator: Callable[..., Any], X: Any, y: np.ndarray, **options: Any) -> Any:
    """Fit; what came of it is in the tables, so warnings need not be printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**options).fit(X, y)


def timed(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Return the time of one call, and its result."""
    began = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - began, result


def seconds_of(function: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Return the time of one call."""
    return timed(function, *arguments, **options)[0]


def about(*packages: str) -> dict[str, Any]:
    """Return what is measured on: versions and machine."""
    more = {name: importlib.metadata.version(name) for name in packages}
    return {
        "zerogap": zerogap.__version__, "scikit-learn": sklearn.__version__, **more, "numpy": np.__version__,
        "python": platform.python_version(), "cpu": _cpu(), "cores": os.cpu_count(),
    }  # fmt: skip


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write results beside this file, with what they were measured on."""
    if not rows:
        return
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    machine = about()
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], *machine])
        writer.writeheader()
        writer.writerows({**row, **machine} for row in rows)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
