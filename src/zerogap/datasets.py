"""Data: the spirals of the papers, data sets by name, and files of a user's own."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from zerogap import tables

# Columns of the svmlight files whose last features may be empty: without them the number of columns is only guessed.
_N_FEATURES = {
    "a1a": 123, "a4a": 123, "a7a": 123, "a9a": 123, "a9a.t": 123, "svmguide3": 22, "svmguide3.t": 22, "mnist.t": 784,
}  # fmt: skip

SHIPPED = ("breast_cancer", "digits", "iris", "wine", "diabetes_regression")


def spiral(m: int = 600, noise: float = 0.2, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return m noisy points on two arms of a spiral, half of them of each class (spiral §1).

    Arm +1 is (r sin 2r, r cos 2r), arm -1 the same turned by pi, with r from 1 to 1 + 2 pi.

    Parameters
    ----------
    m : int, default 600
        Number of points.
    noise : float, default 0.2
        Standard deviation of the normal noise added to each coordinate.
    random_state : int or RandomState, default None
        Source of the noise.

    Returns
    -------
    X : array of shape (m, 2)
        Points.
    y : array of shape (m,)
        Labels, -1 or +1.

    Examples
    --------
    >>> from zerogap import datasets
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> X.shape, float(y.sum())
    ((100, 2), 0.0)
    """
    rng = check_random_state(random_state)
    sizes = (m - m // 2, m // 2)
    arms, labels = [], []
    for size, turn, label in zip(sizes, (0.0, np.pi), (1.0, -1.0), strict=True):
        r = np.linspace(1.0, 1.0 + 2.0 * np.pi, size)
        arms.append(np.column_stack([r * np.sin(2 * r + turn), r * np.cos(2 * r + turn)]))
        labels.append(np.full(size, label))
    X = np.concatenate(arms)
    return X + noise * rng.standard_normal(X.shape), np.concatenate(labels)


def two_spirals() -> tuple[np.ndarray, np.ndarray]:
    """Return the 194 points of the CMU two-spirals benchmark, the classes in turn.

    Returns
    -------
    X : array of shape (194, 2)
        Points.
    y : array of shape (194,)
        Labels, -1 or +1.

    Examples
    --------
    >>> from zerogap import datasets
    >>> X, y = datasets.two_spirals()
    >>> X.shape
    (194, 2)
    """
    i = np.arange(97)
    angle, radius = i * np.pi / 16, 6.5 * (104 - i) / 104
    arm = np.column_stack([radius * np.sin(angle), radius * np.cos(angle)])
    return np.stack([arm, -arm], axis=1).reshape(-1, 2), np.tile([1.0, -1.0], 97)


def data_folder() -> Path | None:
    """Return the local folder with data sets: ``ZEROGAP_DATA``, or ``../shared/data`` if it exists.

    Returns
    -------
    pathlib.Path or None
        None if there is none.

    Examples
    --------
    >>> from zerogap import datasets
    >>> folder = datasets.data_folder()
    >>> folder is None or folder.is_dir()
    True
    """
    folder = Path(os.environ.get("ZEROGAP_DATA", Path("..") / "shared" / "data"))
    return folder if folder.is_dir() else None


def load(name: str) -> tuple[Any, np.ndarray]:
    """Return (X, y) of a data set by name.

    Names that ship with scikit-learn come first (breast_cancer, digits, iris, wine, diabetes_regression), then files
    ``<name>.svm.gz`` of the local folder (the environment variable ZEROGAP_DATA), then OpenML.

    Parameters
    ----------
    name : str
        Name of the data set.

    Returns
    -------
    X : array or CSR matrix of shape (n, d)
        Points.
    y : array of shape (n,)
        Labels or targets.

    Examples
    --------
    >>> from zerogap import datasets
    >>> X, y = datasets.load("breast_cancer")
    >>> X.shape
    (569, 30)
    """
    if (found := load_local(name)) is not None:
        return found
    folder = data_folder()
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(name, as_frame=False, parser="liac-arff", n_retries=1, delay=0.5)
    except Exception as error:
        raise FileNotFoundError(
            f"No data set {name!r}: it does not ship with scikit-learn, there is no file {name}.svm.gz in "
            f"{folder or 'a local folder (set ZEROGAP_DATA)'}, and OpenML did not give it ({error})."
        ) from error
    return np.asarray(bunch.data, dtype=np.float64), bunch.target


def load_local(name: str) -> tuple[Any, np.ndarray] | None:
    """Return (X, y) of a data set that ships with scikit-learn or is in the local folder; None if there is none of that name.

    Parameters
    ----------
    name : str
        Name of the data set.

    Returns
    -------
    tuple of two arrays, or None
        X of shape (n, d), y of shape (n,).

    Examples
    --------
    >>> from zerogap import datasets
    >>> datasets.load_local("no-such-set") is None
    True
    """
    if name in SHIPPED:
        return _shipped(name)
    return read(_local_file(name)) if has_local(name) else None


def has_local(name: str) -> bool:
    """Whether the local folder has a data set of this name.

    Parameters
    ----------
    name : str
        Name of the data set.

    Returns
    -------
    bool
        Whether there is a file ``<name>.svm.gz``.

    Examples
    --------
    >>> from zerogap import datasets
    >>> datasets.has_local("no-such-set")
    False
    """
    return Path(name).name == name and data_folder() is not None and _local_file(name).exists()


def _local_file(name: str) -> Path:
    return (data_folder() or Path()) / f"{name}.svm.gz"


def _shipped(name: str) -> tuple[np.ndarray, np.ndarray]:
    import sklearn.datasets

    loader = {"diabetes_regression": "load_diabetes"}.get(name, f"load_{name}")
    X, y = getattr(sklearn.datasets, loader)(return_X_y=True)
    return X, y


def read(path: str | Path, target: str | None = None) -> tuple[Any, np.ndarray]:
    """Read a data file: CSV, TSV, svmlight or Parquet, plain or compressed.

    Delimiter and header are found from the content.  A missing number is NaN.

    Parameters
    ----------
    path : str or path
        The file.
    target : str, optional
        Column that is the target, by its name or its number from 1 on, by default the last; all others must be numbers.
        An svmlight file has its own.

    Returns
    -------
    X : array or CSR matrix of shape (n, d)
        Points.
    y : array of shape (n,)
        Labels or targets.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from zerogap import datasets
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "points.csv")
    ...     _ = file.write_text("height,class\\n1.5,a\\n2.5,b\\n")
    ...     X, y = datasets.read(file)
    >>> X.tolist(), y.tolist()
    ([[1.5], [2.5]], ['a', 'b'])
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {path}. Give a file in CSV, svmlight or Parquet form.")
    found = tables.read(path, text=[target])
    if isinstance(found, tables.Points):
        name = Path(path).name.split(".svm")[0]
        return tables.dense_or_sparse(tables.widened(found.X, _N_FEATURES.get(name, 0))), found.y
    k = found.index(target)
    X = np.column_stack([found.numbers(j) for j in range(len(found.names)) if j != k])
    return X, found.labels(k)
