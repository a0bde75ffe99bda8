"""Data: the spirals of the papers, data sets by name, and files of a user's own."""

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

# Columns of the svmlight files whose last features may be empty: without them the number of columns is only guessed.
_N_FEATURES = {
    "a1a": 123, "a4a": 123, "a7a": 123, "a9a": 123, "a9a.t": 123, "svmguide3": 22, "svmguide3.t": 22, "mnist.t": 784,
}  # fmt: skip

_SHIPPED = ("breast_cancer", "digits", "iris", "wine", "diabetes_regression")


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
    if name in _SHIPPED:
        return _shipped(name)
    folder = data_folder()
    if folder is not None and (folder / f"{name}.svm.gz").exists():
        return read(folder / f"{name}.svm.gz")
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(name, as_frame=False, parser="liac-arff", n_retries=1, delay=0.5)
    except Exception as error:
        raise FileNotFoundError(
            f"No data set {name!r}: it does not ship with scikit-learn, there is no file {name}.svm.gz in "
            f"{folder or 'a local folder (set ZEROGAP_DATA)'}, and OpenML did not give it ({error})."
        ) from error
    return np.asarray(bunch.data, dtype=np.float64), bunch.target


def _shipped(name: str) -> tuple[np.ndarray, np.ndarray]:
    import sklearn.datasets

    loader = {"diabetes_regression": "load_diabetes"}.get(name, f"load_{name}")
    X, y = getattr(sklearn.datasets, loader)(return_X_y=True)
    return X, y


def read(path: str | Path, target: str | None = None) -> tuple[Any, np.ndarray]:
    """Read a data file: svmlight (plain or compressed), or CSV with a header and the target in a named column.

    Parameters
    ----------
    path : str or path
        The file.
    target : str, optional
        Column of a CSV file that is the target, by default the last; all others must be numbers.

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
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}. Give a file in svmlight or CSV form.")
    if ".csv" in path.suffixes:
        return _read_csv(path, target)
    from sklearn.datasets import load_svmlight_file

    name = path.name.split(".svm")[0]
    X, y = load_svmlight_file(str(path), n_features=_N_FEATURES.get(name))
    # Half of the entries or more: a dense array is smaller and faster.
    if X.nnz * 2 >= np.prod(X.shape):
        return X.toarray(), y
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # other libraries take no larger ones
    return X, y


def _read_csv(path: Path, target: str | None) -> tuple[np.ndarray, np.ndarray]:
    with path.open(newline="") as file:
        lines = [[value.strip() for value in line] for line in csv.reader(file) if line]
    header, rows = lines[0], lines[1:]
    target = header[-1] if target is None else target
    if target not in header:
        raise ValueError(f"{path} has no column {target!r}; it has {', '.join(header)}.")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path}, line {number}: expected the {len(header)} values of the header; got {len(row)}.")
    table, k = np.array(rows), header.index(target)
    y = table[:, k]
    try:
        X = np.delete(table, k, axis=1).astype(np.float64)
    except ValueError as error:
        raise ValueError(f"{path}: all columns but the target {target!r} must be numbers ({error}).") from error
    try:
        return X, y.astype(np.float64)
    except ValueError:
        return X, y
