"""What a path is made from, checked, and compared with what it was begun with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap import validation
from zerogap.duplicates import distinct
from zerogap.gram import Gram
from zerogap.kernels import Kernel
from zerogap.path.approximate import ApproximatePath
from zerogap.path.family import Family
from zerogap.path.result import Path, digest_of

SAME = "Resume with the data and kernel the path was begun with, or follow a new one."


class Data:
    """What a path is made from, checked: distinct points, their targets and weights, and the kernel."""

    targets = "y"
    path_type: type[Path] = Path
    moves_origin = True  # of a linear kernel: coefficients sum to zero, if the bias is free
    gap: float | None = None  # of an approximate path
    part_of_matrix: Callable[[Kernel, np.ndarray], Gram | None] | None = None  # of more rows, if somebody has it
    cache_size = 1000.0

    def __init__(self, X: Any, y: Any, kernel: Kernel, sample_weight: Any, merge: bool, *, has_bias: bool = True):
        self.has_bias = has_bias
        is_coarse = kernel.is_precomputed and getattr(X, "dtype", None) in (np.float32, np.float16)
        X = validation.check_precomputed(X) if kernel.is_precomputed else validation.check_points(X)
        target, weight = self.checked(y, X.shape[0]), validation.check_weights(sample_weight, X.shape[0])
        self.points = distinct(X, target, weight, merge=merge and not kernel.is_precomputed)
        rows = self.points.rows
        self.y = target[rows]
        self.check_enough()
        self.X = kernel.taken(X, rows)  # indexed by arrays: our own copy
        if is_coarse:  # symmetric and definite but for rounding in single precision: Gram is to know that too
            self.X = (0.5 * (self.X + self.X.T)).astype(np.float32)
        self.kernel = kernel.resolved(self.X, self.points.weight)
        if self.moves_origin and has_bias:
            self.kernel = self.kernel.centred(self.X)

    def checked(self, y: Any, n: int) -> np.ndarray:
        """Return the targets of n points."""
        raise NotImplementedError

    def check_enough(self) -> None:
        """Raise if there is no problem without the points of weight zero."""

    def check_same(self, path: Path) -> Path:
        """Return the path, if it was made from these data."""
        if not isinstance(path, self.path_type):
            name = self.path_type.__name__
            raise TypeError(
                f"resume= takes the {name} that an earlier call returned, or {name}.load(file); got {type(path).__name__}. "
                "That of a fitted estimator is its path_."
            )
        if self.has_bias != path.fit_intercept:
            raise ValueError(
                f"The path of resume= was made with fit_intercept={path.fit_intercept}, not with {self.has_bias}. {SAME}"
            )
        self._refuse_other_gap(path)
        if self.points.group.size != path.points.group.size:
            raise ValueError(
                f"resume= goes on with a path of {path.points.group.size} rows; X has {self.points.group.size}. {SAME}"
            )
        if not all(map(np.array_equal, (self.points.rows, self.points.group), (path.points.rows, path.points.group))):
            raise ValueError(
                f"X or y is not what the path of resume= was made from, or merge_duplicates is not. {SAME}"
            )
        if not np.array_equal(self.y, path.target):
            raise ValueError(f"y is not what the path of resume= was made from. {SAME}")
        if not np.array_equal(self.points.weight, path.points.weight):
            raise ValueError(f"sample_weight is not what the path of resume= was made from. {SAME}")
        if not (_are_equal(self.X, path.X) if path.X is not None else digest_of(self.X) == path.digest):
            raise ValueError(f"X is not what the path of resume= was made from. {SAME}")
        if path.X is None:  # it was loaded, and does not know its kernel: but it is optimal with no other
            path.gram = Gram(self.X, self.kernel, cache_size=self.cache_size)
            if path.has_segments and not path.is_optimal_at_end():
                path.gram = None
                raise ValueError(
                    f"The path of resume= was not made with kernel {self.kernel!r}: it is not optimal. {SAME}"
                )
        assert path.gram is not None
        if not self.kernel.is_close(path.gram.kernel):
            raise ValueError(
                f"The path of resume= was made with kernel {path.gram.kernel!r}, not with {self.kernel!r}. {SAME}"
            )
        return path

    def _refuse_other_gap(self, path: Path) -> None:
        """Refuse to go on exactly with an approximate path, the other way round, or with another gap."""
        begun = path.gap if isinstance(path, ApproximatePath) else None
        if begun != self.gap:
            found, asked = ("exact" if gap is None else f"one with gap={gap:g}" for gap in (begun, self.gap))
            raise ValueError(
                f"The path of resume= is {found}; {asked} was asked for. Go on with gap={begun}, or follow a new one."
            )

    def matrix(self) -> Gram:
        """Return the kernel matrix of the distinct points."""
        part = None if self.part_of_matrix is None else self.part_of_matrix(self.kernel, self.points.rows)
        return Gram(self.X, self.kernel, cache_size=self.cache_size) if part is None else part

    def begun(self, path: Path) -> Path:
        """Return a path without a segment, which knows its points."""
        path.X = self.X
        return path


class TwoClasses(Data):
    """Labels of two classes."""

    def checked(self, y: Any, n: int) -> np.ndarray:
        """Return the labels as -1 and 1."""
        return _two_classes(y, n)

    def check_enough(self) -> None:
        """Raise if one class has no weight."""
        if np.unique(self.y).size < 2:
            raise ValueError("Every point of one class has weight zero; a path needs both classes.")

    def begin(self, C_min: float) -> Path:
        """Return a path without a segment."""
        family, status = Family.hinge(self.y, self.points.weight, has_bias=self.has_bias), np.zeros(self.y.size)
        gram = self.matrix()
        if self.gap is None:
            return self.begun(Path(family, self.points, status, 1.0 / C_min, gram))
        return self.begun(ApproximatePath(family, self.points, status, 1.0 / C_min, gram, gap=self.gap))


def _are_equal(X: Any, other: Any) -> bool:
    if sp.issparse(X) and sp.issparse(other):
        return X.shape == other.shape and abs(X - other).nnz == 0
    X, other = (Z.toarray() if sp.issparse(Z) else Z for Z in (X, other))
    return np.array_equal(X, other)


def _two_classes(y: Any, n: int) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} points, shape ({n},); got shape {y.shape}.")
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(
            f"A path is followed for two classes; y has {classes.size}: {classes[:5].tolist()}. SVCPath takes more."
        )
    return np.where(y == classes[1], 1.0, -1.0)
