"""Data, peers and timing shared by the benchmarks."""

import csv
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

import zerogap
from zerogap import DualProblem, Gram, datasets

FILES = (
    "sonar", "heart", "ionosphere", "wbc", "wbc699", "monks-1.test", "monks-1.train", "monks-2.test", "monks-2.train",
    "monks-3.test", "monks-3.train", "diabetes", "hill-valley", "hill-valley.t", "german", "svmguide3", "madelon", "splice",
    "splice.t", "svmguide1", "svmguide1.t", "a1a", "a4a", "two-spirals",
)  # fmt: skip


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


def certify_peer(model: Any, X: Any, y: np.ndarray, C: float) -> Any:
    """Return our certificate of scikit-learn's coefficients."""
    beta = np.zeros(y.size)
    beta[model.support_] = np.asarray(
        model.dual_coef_.todense() if sp.issparse(model.dual_coef_) else model.dual_coef_
    )[0]
    gram = Gram(X, model.kernel, gamma=model._gamma)
    problem = DualProblem.hinge(gram, y, C)
    return problem.certify(problem.restore_sum(np.clip(beta, problem.lower, problem.upper)))


def peer(X: Any, y: np.ndarray, **options: Any) -> Any:
    """Fit scikit-learn's SVC, its own warnings aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sklearn.svm.SVC(cache_size=1000, **options).fit(X, y)


def ours(X: Any, y: np.ndarray, **options: Any) -> Any:
    """Fit zerogap's SVC; its status is in the table, so the warning need not be printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zerogap.SVC(**options).fit(X, y)


def seconds_of(fit: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Return the time of one call."""
    began = time.perf_counter()
    fit(*arguments, **options)
    return time.perf_counter() - began


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write results beside this file, with what they were measured on."""
    if not rows:
        return
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    about = {
        "zerogap": zerogap.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__,
        "python": platform.python_version(), "cpu": _cpu(), "cores": os.cpu_count(),
    }  # fmt: skip
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], *about])
        writer.writeheader()
        writer.writerows({**row, **about} for row in rows)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
