"""The paths of a classifier: how they are followed, one for every pair of classes, and what they keep to be read."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.duplicates import Distinct, distinct
from zerogap.estimators.pairs import each, pairs_of, signs
from zerogap.estimators.path_machine import PathMachine
from zerogap.gram import Gram
from zerogap.kernels import Kernel
from zerogap.path import ApproximatePath, Path, svm_path
from zerogap.path.approximate_pairs import ApproximatePairPath
from zerogap.path.checks import engine_of
from zerogap.path.pairwise import CACHE, PairPath, Shared, follow_all
from zerogap.progress import several_paths
from zerogap.wording import count

BLOCK_BYTES = 100_000_000  # of kernel values of new points against those of an approximate path, at once


class ClassPaths(PathMachine):
    """Base of a classifier with a path for every pair of classes."""

    C_min: float
    C_max: float
    engine: Any
    linear_system: str | None
    fit_intercept: bool
    class_weight: Any
    max_events: int | None
    gap: float | None
    cache_size: float
    n_jobs: int | None
    paths_: list[Path]
    class_weight_: np.ndarray
    _rows: np.ndarray  # of the distinct points of all classes
    _shared: Shared  # their kernel matrix, of more than two classes
    _proves = True  # whether the largest gap is proved at once, or when it is asked for

    # Following.

    def _follow_one(self, X: Any, codes: np.ndarray, weight: np.ndarray) -> Path:
        kernel: Any = {"kernel": self.kernel, "gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if self.class_weight is not None:
            points = self._distinct(X, codes.astype(np.float64), weight)
            kernel, weight = {"kernel": self._fixed_kernel(X, points)}, weight * self.class_weight_[codes]
        path = self._followed(X, codes, weight, kernel)
        assert path.gram is not None
        self._kernel, self._rows = path.gram.kernel, path.points.rows
        return path

    def _followed(self, X: Any, codes: np.ndarray, weight: np.ndarray, kernel: dict[str, Any]) -> Path:
        return svm_path(
            X,
            codes,
            **kernel,
            sample_weight=weight,
            C_min=self.C_min,
            C_max=self.C_max,
            engine=self.engine,
            linear_system=self.linear_system,
            fit_intercept=self.fit_intercept,
            max_events=self.max_events,
            max_time=self.max_time,
            gap=self.gap,
            cache_size=self.cache_size,
            verbose=bool(self.verbose),
        )

    def _follow_pairs(self, X: Any, codes: np.ndarray, weight: np.ndarray, began: float) -> list[Path]:
        C_min, C_max = self._range()
        if self._is_precomputed and X.dtype == np.float32:  # symmetric and definite but for rounding there
            X = (0.5 * (X + X.T)).astype(np.float32)
        points = self._distinct(X, codes.astype(np.float64), weight)
        self._kernel, self._rows = self._fixed_kernel(X, points), points.rows
        self._shared = self._share(X)
        pairs = pairs_of(self.classes_.size)

        def begin(k: int) -> PairPath:
            a, b = pairs[k]
            sign = signs(codes, a, b, self.classes_.size)
            own = self._distinct(X, sign, np.where((codes == a) | (codes == b), weight, 0.0))
            own = own._replace(weight=own.weight * self.class_weight_[codes[own.rows]])
            pair = (self._shared, self._places(own), own, sign[own.rows], C_min)
            if self.gap is not None:
                return ApproximatePairPath.within(self.gap, *pair)
            return PairPath.begin(*pair, has_bias=self._has_bias)

        with several_paths(len(pairs)) if self.verbose else nullcontext():
            return follow_all(
                begin,
                len(pairs),
                engine_of(self.engine, self.linear_system),
                C_max,
                max_events=self.max_events,
                deadline=None if self.max_time is None else began + self.max_time,
                verbose=bool(self.verbose),
                each=lambda work, number: each(work, number, self.n_jobs),
                at_once=effective_n_jobs(self.n_jobs),
                prove=self._proves,
            )

    def _range(self) -> tuple[float, float]:
        C_min, C_max = (validation.check_positive(name, getattr(self, name)) for name in ("C_min", "C_max"))
        if C_min >= C_max:
            raise ValueError(f"C_min must be below C_max; got C_min={C_min:g} and C_max={C_max:g}.")
        return C_min, C_max

    def _distinct(self, X: Any, y: np.ndarray, weight: np.ndarray) -> Distinct:
        return distinct(X, y, weight, merge=not self._is_precomputed)

    def _fixed_kernel(self, X: Any, points: Distinct) -> Kernel:
        """Return the kernel with its parameters as numbers; the weights of classes have no part in them."""
        asked = self._asked_kernel()
        some = asked.taken(X, points.rows)
        fixed = asked.resolved(some, points.weight)
        return fixed.centred(some) if self._has_bias else fixed

    def _share(self, X: Any) -> Shared:
        """Return the kernel matrix of all classes."""
        cache_size = CACHE if self.gap is None else self.cache_size
        return Shared(self._gram(X, self._rows, cache_size), cache_size)

    def _places(self, points: Distinct) -> np.ndarray:
        """Return where the distinct points of a path are among those of all classes."""
        order = np.argsort(self._rows)
        return order[np.searchsorted(self._rows, points.rows, sorter=order)]

    def _all_breakpoints(self) -> np.ndarray:
        if len(self.paths_) == 1:
            return self.paths_[0].C
        low, high = self._ends
        every = np.unique(np.concatenate([path.C for path in self.paths_]))
        return every[(every >= low) & (every <= high)]

    @property
    def _ends(self) -> tuple[float, float]:
        """The range of C that all paths have."""
        return max(float(path.C[0]) for path in self.paths_), min(float(path.C[-1]) for path in self.paths_)

    def _warn_of_limit(self) -> None:
        """Tell where a limit has ended a path; of Ctrl-C a single path itself tells."""
        short = [path for path in self.paths_ if path.status != "complete"]
        several = len(self.paths_) > 1
        if not short or (not several and short[0].status == "interrupted"):
            return
        path = min(short, key=lambda path: (path.has_segments, path.C[-1]))
        reason = path.status if path.status == "interrupted" else f"{path.status}={getattr(self, path.status)}"
        where, advice = f"the path {path._where_it_ends}", "or go on with svm_path(X, y, ..., resume=model.path_)."
        if several:
            pairs = f"{count(len(short))} of {len(self.paths_)} pairs of classes"
            where = f"{pairs} have no whole path, and one of them {path._where_it_ends}"
            advice = "or ask for fewer C."
        warnings.warn(
            f"SVCPath was stopped ({reason}) on its way to C_max={self.C_max:g}: {where}. "
            f"{'Fit again' if path.status == 'interrupted' else 'Raise the limit'}, {advice}",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )

    # Kernel values of other points.

    def _against(self, X: Any) -> Callable[[], Iterator[np.ndarray]]:
        """Return what yields kernel values of the distinct points of all classes against new ones, some after the other.

        Those of exact paths come all at once; approximate ones may have very many points, of which those that never have a
        coefficient are left out.
        """
        check_is_fitted(self)
        X, used = self._check_points(X, reset=False), self._used()
        rows = self._rows[used]
        points = None if self._is_precomputed else self._X[rows]
        at_once = X.shape[0] if self.gap is None else max(1, BLOCK_BYTES // (8 * max(rows.size, 1)))

        def blocks() -> Iterator[np.ndarray]:
            for begin in range(0, X.shape[0], at_once):
                some = X[begin : begin + at_once]
                yield np.ascontiguousarray((some[:, rows] if points is None else self._kernel(some, points)).T)

        return blocks

    def _used(self) -> np.ndarray:
        """Return which of the distinct points of all classes may have a coefficient at some C."""
        if self.gap is None:
            return np.arange(self._rows.size)
        used = [self._places(path.points)[path.ever_used()] for path in self._approximate_paths()]
        return np.unique(np.concatenate(used))

    def _approximate_paths(self) -> list[ApproximatePath]:
        return [path for path in self.paths_ if isinstance(path, ApproximatePath)]

    def _places_in_blocks(self) -> list[np.ndarray]:
        """Return where the distinct points of each path are in what ``_against`` yields, negative for those left out."""
        place = np.full(self._rows.size, -1)
        used = self._used()
        place[used] = np.arange(used.size)
        return [place[self._places(path.points)] for path in self.paths_]

    def _check_not_empty(self) -> None:
        """Refuse to read paths of which some have no solution."""
        if len(self.paths_) == 1:
            return self.paths_[0].check_not_empty()
        empty = [
            pair for pair, path in zip(pairs_of(self.classes_.size), self.paths_, strict=True) if not path.has_segments
        ]
        if empty:
            a, b = self.classes_[list(empty[0])]
            raise ValueError(
                f"{count(len(empty), 'pair')} of classes, the first of them {a} against {b}, ended before their first segment "
                "was found. Fit again with more time."
            )

    # Storing.

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Models of older versions have one path, and no list of them."""
        if "path_" in state:
            path = state["path_"]
            state = {**state, "paths_": [path], "class_weight_": np.ones(2), "_rows": path.points.rows}
            del state["path_"]
        super().__setstate__(state)

    def _state_in_file(self) -> dict[str, Any]:
        """Return what is stored without pickle: no kernel values but those that cannot be computed again."""
        state = dict(super().__getstate__())
        shared = state.pop("_shared", None)
        if self._is_precomputed and "paths_" in state:
            gram = self.paths_[0].gram if shared is None else shared.gram
            assert gram is not None
            state["_matrix"] = gram.full()
        return state

    def _attach_kernel_matrix(self) -> None:
        """Give paths that were stored without kernel values the way to them."""
        matrix = self.__dict__.pop("_matrix", None)
        is_computed = matrix is None
        gram = self._gram(self._X, self._rows, CACHE) if is_computed else Gram.of_checked(matrix, self._kernel, CACHE)
        if len(self.paths_) == 1:
            self.paths_[0].gram = gram
            return
        self._shared = Shared(gram)
        for path in self.paths_:
            assert isinstance(path, PairPath)
            path.of(self._shared, self._places(path.points))
