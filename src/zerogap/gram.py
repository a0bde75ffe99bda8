"""The kernel matrix behind one door: rows on demand within a memory budget, every evaluation counted.

The cache of rows belongs to one thread at a time (``exclusive``).  Products know how far rounding can have put them off
(``dot_error``), and can be summed in twice the precision (``precise_dot``).
"""

import copy
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsymv

from zerogap import limits, memory, precision, threads, validation
from zerogap.compiled import inline, jit
from zerogap.kernels import (
    UNDERFLOW,
    UNIT,
    Constant,
    Kernel,
    Rounding,
    Sum,
    all_finite,
    as_kernel,
    dense_if_cheap,
)
from zerogap.row_sums import COLUMN_BLOCK, combine
from zerogap.wording import kernel_in_words, memory_in_words, points_in_words, work_in_words

MIN_ROWS = 64  # kept in memory however small the budget: a pair step needs two at once, a fetch brings a few more
TILE_ROWS = 128  # of the full matrix: only the squares on the diagonal are computed twice
QUICK = 16  # multiplications that take hardly longer than to read a number that is in no cache
STREAMED = 8  # more rows than the capacity divided by this are not kept: they would drive out too many
SAMPLE = 300  # points on which a kernel is tried that need not be positive semidefinite
EVERYWHERE = slice(None)
WORTH_THREADS = 1_000_000  # numbers of the matrix: to read so many takes longer than to wake a thread
STRETCH = COLUMN_BLOCK  # of a sum of rows that a thread adds up at a time
SAMPLE_ROWS = 16  # of them between two questions whether the limit is over
MAX_PRECISE_WORK = 6_000_000_000  # coordinates read to compute kernel values in twice the precision: some seconds


class PreciseProduct(NamedTuple):
    """K beta as an unevaluated sum ``high + low``, and a bound on how far that is off."""

    high: np.ndarray
    low: np.ndarray
    error: np.ndarray


class RowCache(NamedTuple):
    """The rows in memory, for compiled code.  The functions at the end of this file read it."""

    rows: np.ndarray  # (capacity, n)
    slot: np.ndarray  # (n,) which of them is the row of each point; negative if it is not in memory
    stamp: np.ndarray  # (capacity,) when each was last used


class Gram:
    """Kernel matrix of the rows of X, computed row by row when asked for.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Points, or the kernel matrix (n, n) itself with ``kernel="precomputed"``.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a function of two sets of points, or a kernel object, such as
        ``zerogap.kernels.RBF(0.5)``.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid by name: a number, "scale" or "auto".
    degree : int, default 3
        Degree of the polynomial kernel by name.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels by name.
    tau : float or "radius", default 0.0
        Adds tau² to every kernel value, a constant feature: with a fixed bias the model then has a bias after all, one that
        counts in |f|² (Remark 7.4 of chapter7).  "radius", a safe choice, is the largest sqrt(K_ii).
    cache_size : float, default 1000
        Megabytes for kernel rows.  If all n rows fit they are computed once; else the least recently used go.
    centre : array of shape (d,), optional
        Another origin for the linear kernel, <x - centre, z - centre>; with a free bias that is the same problem.

    Attributes
    ----------
    X : array or CSR matrix of shape (n, d)
        The points.
    kernel : Kernel
        The kernel, with its gamma a number.
    n : int
        Number of points.
    evaluations : int
        Kernel values computed so far, repeats included; a value used twice counts once.
    diagonal : array of shape (n,)
        The diagonal of the matrix.
    capacity : int
        Number of rows that memory can hold.
    holds_all : bool
        Whether memory can hold all rows.
    is_complete : bool
        Whether the whole matrix is in memory.

    Examples
    --------
    >>> from zerogap import Gram
    >>> gram = Gram([[0.0], [1.0], [3.0]], "linear")
    >>> gram.row(1).tolist(), gram.evaluations  # the diagonal, and one row
    ([0.0, 1.0, 3.0], 6)
    """

    def __init__(
        self,
        X: Any,
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tau: float | str = 0.0,
        cache_size: float = 1000,
        centre: np.ndarray | None = None,
    ):
        self.kernel = as_kernel(kernel, gamma, degree, coef0)
        if tau != "radius":
            validation.check_positive("tau", tau, zero=True, advice='Or use "radius", the largest sqrt(K_ii).')
        validation.check_positive("cache_size", cache_size, advice="It is the memory for kernel rows in megabytes.")
        self.X = self.kernel.checked(X)
        self.kernel = self.kernel.resolved(self.X)
        if centre is not None:
            self.kernel = self.kernel.about(centre)
        self._begin(cache_size, tau)

    @classmethod
    def of_checked(cls, X: Any, kernel: Kernel, cache_size: float, *, keep_sparse: bool = False) -> "Gram":
        """Return the Gram matrix of points that were checked already, with a kernel whose parameters are numbers.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points in float64, none of them NaN or infinite.
        kernel : Kernel
            The kernel.
        cache_size : float
            Megabytes for kernel rows.
        keep_sparse : bool, default False
            Whether sparse points stay so where blocks of kernel values would be faster with an array.

        Returns
        -------
        Gram
            The matrix.
        """
        gram = cls.__new__(cls)
        gram.X, gram.kernel = X if kernel.is_precomputed or keep_sparse else dense_if_cheap(X), kernel
        gram._begin(cache_size, 0.0)
        return gram

    def _begin(self, cache_size: float, tau: float | str) -> None:
        self.evaluations, self.tau = 0, 0.0
        self._diagonal: np.ndarray | None = None
        with suppress(limits.Exceeded):  # whoever needs it, a solver as a rule, will ask again, and be told
            self._diagonal = self._new_diagonal()
        if tau:
            self._augment(float(np.sqrt(max(self.diagonal.max(), 0.0))) if tau == "radius" else float(tau))
        self._make_locks()
        self._open(cache_size * 1e6)

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal of the matrix."""
        if self._diagonal is None:
            self._diagonal = self._new_diagonal()
        return self._diagonal

    def _new_diagonal(self) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is found, and explained, by _checked
            diagonal = self._checked(self.kernel.checked_diagonal(self.X))
        self.evaluations += 0 if self.kernel.knows_diagonal else self.n
        return diagonal

    def _make_locks(self) -> None:
        self._lock = threading.RLock()  # of whoever works with the cache
        self._layout = threading.RLock()  # of whoever changes where rows are, or copies that

    def __getstate__(self) -> dict[str, Any]:
        with self._layout:
            kept = {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_layout")}
            return kept | {"_counted": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_locks()

    @contextmanager
    def exclusive(self, *, wait: bool = False) -> Iterator["Gram"]:
        """Yield this matrix, whose cache is then this thread's alone; while it is another's, a twin with its own cache.

        ``wait``: until the other thread is done with it, and no twin.
        """
        if self._lock.acquire(blocking=wait):
            try:
                yield self
            finally:
                self._lock.release()
            return
        twin = copy.copy(self)
        twin._make_locks()
        twin.evaluations = 0
        if twin._complete is None:
            twin.forget()
        try:
            yield twin
        finally:
            self._count(twin.evaluations)

    def _count(self, values: int) -> None:
        """Count kernel values that were computed; those of a subset are the whole matrix's too."""
        self.evaluations += values
        if self._whole is not None:
            self._whole[0]._count(values)

    def _augment(self, tau: float) -> None:
        """Add tau² to every kernel value."""
        self.tau, self._diagonal = tau, self._checked(self.diagonal + tau * tau)
        if self.kernel.is_precomputed:
            self.X = self._checked(self.X + tau * tau)
        else:
            self.kernel = Sum(self.kernel, Constant(tau * tau))

    def constant(self, beta: np.ndarray) -> float:
        """Return tau² sum(beta): the part of f(x) = sum_i beta_i k(x_i, x) that is the same for all x, its bias."""
        return self.tau * self.tau * float(beta.sum())

    def _open(self, budget: float) -> None:
        """Lay out the cache of rows in so many bytes."""
        with self._layout:
            self._lay_out(budget)

    def _lay_out(self, budget: float) -> None:
        n, self._memory = self.n, budget
        self._whole: tuple[Gram, np.ndarray] | None = None  # for a subset, the matrix it is part of and its points
        self._carried: Rounding | None = None  # that of another matrix, if some rows come from there
        self._own_rounding: Rounding | None = None
        self._complete: np.ndarray | None = None
        self._counted: Any = None  # rows that are kept as counts of bits
        self._made: tuple[Any, Any] | None = None
        if self.kernel.is_precomputed:
            self._keep_all(self.X)
            return
        capacity = min(n, max(MIN_ROWS, int(budget / (8 * n))))
        # Memory not yet written to costs nothing, so the whole budget can be laid out at once.
        self._keep(RowCache(memory.matrix(capacity, n), np.full(n, -1), np.zeros(capacity, dtype=np.int64)))
        self._row_in = np.full(capacity, -1)  # whose row each is
        self._used = 0  # rows are laid down one after the other
        self._clock = 0

    @property
    def _columns(self) -> Any:
        """The kernel against all points, made when values are first computed."""
        return self._sides[0]

    @property
    def _prepared(self) -> Any:
        """The points as rows of blocks."""
        return self._sides[1]

    @property
    def _sides(self) -> tuple[Any, Any]:
        if self._made is None:
            columns = self.kernel.against(self.X)
            self._made = columns, columns.prepare(self.X)
        return self._made

    def _keep(self, cache: RowCache) -> None:
        self._cache = cache
        self._rows, self._slot, self._stamp = cache

    def _keep_all(self, K: np.ndarray) -> None:
        with self._layout:
            self._complete, self._row_in, self._counted = K, np.arange(self.n), None
            self._keep(RowCache(K, np.arange(self.n), np.zeros(self.n, dtype=np.int64)))
            self._used, self._clock = self.n, 0

    def fresh(self) -> "Gram":
        """Return the same matrix with nothing computed yet and the count at its start.

        Returns
        -------
        Gram
            A matrix of its own.
        """
        copied = copy.copy(self)
        copied.evaluations = 0 if self.kernel.knows_diagonal else self.n
        copied.forget()
        return copied

    def __repr__(self) -> str:
        memory, work = memory_in_words(self), work_in_words(self)
        return f"Gram({points_in_words(self)}, {kernel_in_words(self)} kernel: {memory}; {work})"

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_gram

        return of_gram(self)

    @property
    def is_positive(self) -> bool:
        """Whether the matrix is known to be positive semidefinite: of the kernel, or because it was looked at."""
        return self.kernel.is_positive or self.kernel.is_precomputed

    def distance_from_positive(self) -> float:
        """Return the least e known for which K is within e sqrt(K_ii K_jj) of a positive semidefinite matrix; or infinity."""
        if not self.is_positive or self.diagonal.min() <= 0.0:
            return math.inf
        if (
            self.kernel.is_precomputed
        ):  # it was looked at, with a tolerance for values of float32 if it may have been of that
            with np.errstate(over="ignore"):
                is_coarse = bool((self.X.astype(np.float32) == self.X).all())
            tolerance = validation.FLOAT32_ROUNDING if is_coarse else validation.ROUNDING
            return tolerance * float(np.abs(self.X).max() / self.diagonal.min())
        norm, rounding = np.sqrt(self.diagonal), self.rounding
        p, q = (rounding.relative * (rounding.magnitude / norm)).max(axis=2)
        r, s = (rounding.absolute / norm).max(axis=2)
        return float(1.01 * UNIT * (p @ q + r @ s))

    def seems_positive(self) -> bool:
        """Whether the matrix is positive semidefinite: known to be, or tried on some hundred of the points."""
        if self.is_positive:
            return True
        sample = self.X[np.unique(np.linspace(0, self.n - 1, SAMPLE).astype(int))]
        columns, values = self.kernel.against(sample), []
        for start in range(0, sample.shape[0], SAMPLE_ROWS):
            limits.check()
            values.append(columns.block(sample[start : start + SAMPLE_ROWS]))
        return validation.is_positive_semidefinite(np.concatenate(values))

    def is_same_as(self, other: "Gram") -> bool:
        """Whether this is the matrix of the same points with the same kernel."""
        if self.kernel != other.kernel or self.X.shape != other.X.shape or sp.issparse(self.X) != sp.issparse(other.X):
            return False
        if self.X is other.X:
            return True
        return (self.X != other.X).nnz == 0 if sp.issparse(self.X) else np.array_equal(self.X, other.X)

    def forget(self) -> None:
        """Free the memory of all rows; what was computed stays counted."""
        self._open(self._memory)

    def subset(self, points: np.ndarray) -> "Gram":
        """Return the Gram matrix of some of the points.

        It takes from this one the rows that are there.  What it computes is counted in both.

        Parameters
        ----------
        points : array of shape (m,)
            Their numbers.

        Returns
        -------
        Gram
            The matrix (m, m).
        """
        part = copy.copy(self)
        part.evaluations, part._diagonal = 0, self.diagonal[points]
        part.X = self.kernel.taken(self.X, points)
        if self.is_complete and not self.kernel.is_precomputed:
            part._make_locks()
            part._whole, part._made = None, None
            part._own_rounding = Rounding(*map(np.ascontiguousarray, self.rounding.taken(points)))
            part._keep_all(self.submatrix(points))
            return part
        part._open(self.room)
        part._whole = (self, points)
        part._carried = self.rounding.taken(points)
        return part

    def rearranged(self, X: Any, origin: np.ndarray, kept: np.ndarray, cache_size: float | None = None) -> "Gram":
        """Return the Gram matrix of points X, of which X[k] is our point ``origin[k]``, or a new one where that is -1.

        Of the rows in memory those of the points ``kept``, numbers in X, are carried over and only their new entries computed.
        It counts its own evaluations, and may have other megabytes for its rows.
        """
        other = copy.copy(self)
        other.X, other.evaluations = dense_if_cheap(X), 0
        new, old = np.flatnonzero(origin < 0), np.flatnonzero(origin >= 0)
        other._diagonal = np.empty(origin.size)
        other._diagonal[old] = self.diagonal[origin[old]]
        other._diagonal[new] = self._checked(self.kernel.checked_diagonal(other.X[new])) if new.size else 0.0
        other.evaluations += 0 if self.kernel.knows_diagonal else new.size
        other._open(self._memory if cache_size is None else cache_size * 1e6)
        other._carried = self.rounding.taken(origin)
        kept = kept[(origin[kept] >= 0) & (self._slot[origin[kept]] >= 0)][: other.capacity]
        rows = other._rows[: kept.size]
        rows[:, old] = self._rows[np.ix_(self._slot[origin[kept]], origin[old])]
        if new.size and kept.size:
            rows[:, new] = other._block(kept, new)
        other._slot[kept], other._row_in[: kept.size] = np.arange(kept.size), kept
        other._used = kept.size
        return other

    @property
    def n(self) -> int:
        """Number of points."""
        return self.X.shape[0]

    def __len__(self) -> int:
        return self.n

    @property
    def capacity(self) -> int:
        """Number of rows that memory can hold."""
        return len(self._rows)

    @property
    def holds_all(self) -> bool:
        """Whether memory can hold all rows."""
        return self.capacity == self.n

    @property
    def is_complete(self) -> bool:
        """Whether the whole matrix is in memory."""
        return self._complete is not None

    @property
    def is_quick(self) -> bool:
        """Whether a kernel value takes hardly longer to compute than to read from memory, so that rows need not be kept."""
        return bool(self._columns.cost <= QUICK)

    @property
    def features(self) -> Any:
        """The points relative to the centre of a linear kernel, whose matrix is X X'; None for any other kernel."""
        return self._prepared.X if self.kernel.is_linear else None

    def has_rows(self, points: np.ndarray | slice) -> np.ndarray:
        """Return, for each of some points, whether its row is in memory.

        Parameters
        ----------
        points : array of shape (m,) or slice
            Their numbers.

        Returns
        -------
        array of bool, shape (m,)
            Whether it is.
        """
        return self._slot[points] >= 0

    def cache(self) -> RowCache:
        """Return the rows in memory for compiled code; ``full`` lays them out anew, so ask again before every call."""
        return self._cache

    def row(self, i: int) -> np.ndarray:
        """Return one row, computed if it is not in memory.

        Parameters
        ----------
        i : int
            Number of the point.

        Returns
        -------
        array of shape (n,)
            A view, valid until the next ``fetch``.
        """
        if self._slot[i] < 0:
            self.fetch(np.array([i]))
        return self._rows[self._slot[i]]

    def values(self, i: int, points: np.ndarray) -> np.ndarray:
        """Return the kernel values of a point with others, from its row if that is in memory; else they are not kept.

        Parameters
        ----------
        i : int
            Number of the point.
        points : array of shape (m,)
            Those of the others.

        Returns
        -------
        array of shape (m,)
            An array of the caller's own.
        """
        if self._slot[i] >= 0:
            return self._rows[self._slot[i], points]
        return self._block(np.array([i]), points)[0]

    def submatrix(self, points: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the matrix of some points among each other.

        Parameters
        ----------
        points : array of shape (m,)
            Their numbers; their rows must be in memory.
        out : array of at least (m, m), optional
            Where to write it.

        Returns
        -------
        array of shape (m, m)
            A copy, or ``out``.
        """
        out = memory.matrix(points.size, points.size, self._rows.dtype) if out is None else out
        slots, m = self._slot[points], points.size
        if m**2 < WORTH_THREADS:
            return copy_submatrix(self._rows, slots, points, out)

        def copy(a: int) -> None:
            copy_submatrix(self._rows, slots[a : a + TILE_ROWS], points, out[a : a + TILE_ROWS])

        with limits.unlimited():
            threads.share(copy, range(0, m, TILE_ROWS))
        return out

    def values_between(self, points: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of some points against others.

        Parameters
        ----------
        points : array of shape (m,)
            Their numbers; their rows must be in memory.
        others : array of shape (k,)
            Those of the others.

        Returns
        -------
        array of shape (m, k)
            A copy.
        """
        return copy_submatrix(self._rows, self._slot[points], others, np.empty((points.size, others.size)))

    def fetch(self, wanted: np.ndarray) -> None:
        """Bring rows into memory, in place of those used longest ago.

        At most half of the capacity may be asked for at once, so that what a caller has just used is still there.

        Parameters
        ----------
        wanted : array of int
            Numbers of the points.
        """
        rows, slot, stamp = self._cache
        self._clock = max(self._clock, int(stamp.max())) + 1
        wanted = np.unique(wanted)
        slots = slot[wanted]
        present = slots >= 0
        stamp[slots[present]] = self._clock
        missing = wanted[~present]
        if not missing.size:
            return
        if self._used + missing.size <= len(rows):
            places = np.arange(self._used, self._used + missing.size)
            self._compute(missing, rows[self._used : self._used + missing.size])
            self._used += missing.size
        else:
            places = np.argpartition(stamp, missing.size - 1)[: missing.size]
            values = self._compute(missing)  # a limit may raise here: until then no row has left
            evicted = self._row_in[places]
            slot[evicted[evicted >= 0]] = -1
            rows[places] = values
            self._used = len(rows)
        slot[missing] = places
        self._row_in[places] = missing
        stamp[places] = self._clock

    def _fetch_all(self, wanted: np.ndarray) -> None:
        """Bring in rows where all can be kept, a few at a time, as long as the limit allows."""
        missing = wanted[self._slot[wanted] < 0]
        for start in range(0, missing.size, MIN_ROWS):
            limits.check()
            self.fetch(missing[start : start + MIN_ROWS])

    def hold(self, wanted: np.ndarray, spare: float) -> None:
        """Bring rows into memory as far as there is room; rows of other points go for it if they have to.

        If a limit comes in between, the rows that have come are kept.

        Parameters
        ----------
        wanted : array of int
            Numbers of the points, those first that matter most.
        spare : float
            Bytes of the budget that rows are to leave.
        """
        if self.is_quick:
            self._hold_counts(wanted, spare)
            return
        most = min(int((self._memory - spare) / (8.0 * self.n)), self.capacity)
        missing = wanted[self._slot[wanted] < 0]
        others = np.setdiff1d(self._row_in[: self._used], wanted)
        places = np.concatenate([np.arange(self._used, max(most, self._used)), self._slot[others]])
        missing, places = missing[: places.size], places[: missing.size]
        for start in range(0, missing.size, MIN_ROWS):
            limits.check()
            points, at = missing[start : start + MIN_ROWS], places[start : start + MIN_ROWS]
            is_new = (
                at[0] == self._used and at[-1] - at[0] == at.size - 1
            )  # one after another, and nothing is there yet
            values = self._compute(points, self._rows[at[0] : at[-1] + 1] if is_new else None)
            evicted = self._row_in[at]
            self._slot[evicted[evicted >= 0]] = -1
            if not is_new:
                self._rows[at] = values
            self._slot[points], self._row_in[at] = at, points
            self._used = max(self._used, int(at.max()) + 1)

    def _hold_counts(self, wanted: np.ndarray, spare: float) -> None:
        """Keep rows of values that take hardly longer to compute than to read as counts of bits, where there are any."""
        if self._counted is None:
            capacity = min(int((self.room - spare) / self.n), self.n)
            if capacity > 0:
                self._counted = self._columns.counted_rows(self._prepared, capacity)
        if self._counted is not None:
            self._count(self._counted.hold(wanted))

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return rows of the matrix, from memory where they are kept.

        Parameters
        ----------
        rows : array of shape (m,)
            Numbers of the points.

        Returns
        -------
        array of shape (m, n)
            An array of the caller's own.
        """
        with self.exclusive() as own:
            return own._rows_of(np.asarray(rows))

    def _rows_of(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((rows.size, self.n))
        present = self._slot[rows] >= 0
        out[present] = self._rows[self._slot[rows[present]]]
        if not present.all():
            out[~present] = self._compute(rows[~present])
        return out

    def _columns_of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if (self._slot[rows] < 0).any():
            return self._rows_of(rows)[:, columns]
        return self._rows[np.ix_(self._slot[rows], columns)]

    def dot(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta, from the rows of the nonzero coefficients.

        Parameters
        ----------
        beta : array of shape (n,)
            Coefficients.

        Returns
        -------
        array of shape (n,)
            The product.
        """
        with self.exclusive() as own, np.errstate(over="ignore", invalid="ignore"):
            return own._dot(beta)

    def dot_error(self, beta: np.ndarray) -> np.ndarray:
        """Return a bound, for every point, on how far ``dot`` is from K beta in exact arithmetic.

        With u the unit roundoff and |K_ij| <= a_i a_j, a sum over m terms is off by at most m u a_i sum_j a_j |beta_j|, and so
        are the kernel values, by as many u as they have roundings.  By way of w = X'beta a product has the same roundings:
        m in w, d with it.  Only what w loses below the normal numbers counts as often as a feature is large.

        Parameters
        ----------
        beta : array of shape (n,)
            Coefficients.

        Returns
        -------
        array of shape (n,)
            The bounds.
        """
        rounding, d = self.rounding, self.X.shape[1]
        error = product_error(beta, rounding.magnitude, rounding.relative, rounding.absolute, d + 2.0)
        if self.kernel.is_linear:
            error += UNDERFLOW * (np.count_nonzero(beta) + 2.0) * math.sqrt(d) * rounding.magnitude
        return error

    @property
    def rounding(self) -> Rounding:
        """How far kernel values can be off; those that come from another matrix, as far as they were there."""
        if self._own_rounding is None:
            own = self._columns.rounding(self.diagonal)
            if self.tau:  # its square is rounded, and the sum with it
                more = Rounding.within(own.magnitude, 2.0).absolute
                own = own._replace(absolute=np.concatenate([own.absolute, more], axis=1))
            own = own if self._carried is None else own.joined(self._carried)
            self._own_rounding = Rounding(*map(np.ascontiguousarray, own))
        return self._own_rounding

    def precise_dot(self, beta: np.ndarray, rows: np.ndarray, *, from_data: bool = True) -> PreciseProduct:
        """Return K beta at some rows in twice the precision, kernel values included where it is known how and not too dear.

        Not ``from_data``: kernel values as they are, far cheaper, and what they may be off by is told.
        """
        with self.exclusive() as own, np.errstate(over="ignore", invalid="ignore"):
            support = np.flatnonzero(beta)
            # By way of w no kernel value is needed: it is the cheaper way where there are none.
            by_weights = self.kernel.is_linear and (self.X.shape[1] <= support.size or not self.is_complete)
            if not from_data and not by_weights:
                return own._precise_sum(beta, support, rows)
            roundings = own.kernel.precise_roundings(self.X.shape[1])
            if roundings is None or own.precise_work(rows.size, support.size) > MAX_PRECISE_WORK:
                return own._precise_sum(beta, support, rows)
            high, low = own.kernel.precisely(self.X[rows], self.X[support], beta[support])
        size, d, a = np.abs(beta), self.X.shape[1], self.rounding.magnitude
        # Sums of m pairs (Ogita, Rump and Oishi), and what the kernel values are off.
        error = 2.0 * ((support.size + 4.0) ** 2 + roundings) * UNIT**2 * a[rows] * float(a @ size)
        if self.tau:  # its square is rounded
            error += 4.0 * UNIT * self.tau**2 * abs(math.fsum(beta.tolist()))
        return PreciseProduct(high, low, error + UNDERFLOW * self.kernel.gain * (d + 2.0) * float(size.sum()))

    def precise_work(self, rows: int, columns: int) -> int:
        """Return about how many coordinates are read to compute kernel values in twice the precision."""
        return self.kernel.precise_work(rows, columns, self.X.shape[1])

    def _precise_sum(self, beta: np.ndarray, support: np.ndarray, rows: np.ndarray) -> PreciseProduct:
        """Add up kernel values as they are: the error that is left is their own."""
        (p, q), (r, s) = self.rounding.relative, self.rounding.absolute
        high, low, sizes = np.zeros((3, rows.size))
        weighted = np.zeros((len(q), rows.size))
        for start in range(0, support.size, MIN_ROWS):
            limits.check()
            part = support[start : start + MIN_ROWS]
            precision.add_rows(self._columns_of(part, rows), beta[part], q[:, part], high, low, sizes, weighted)
        d, size = self.X.shape[1], np.abs(beta)
        error = (s @ size) @ r[:, rows] + np.einsum("ki,ki->i", p[:, rows], weighted)
        error = 1.01 * UNIT * error + 8.0 * support.size * UNIT**2 * sizes
        return PreciseProduct(high, low, error + UNDERFLOW * (d + 2.0) * float(size.sum()))

    def _dot(self, beta: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(beta)
        if self.is_complete:
            if 2 * support.size > self.n and self.n**2 < WORTH_THREADS:
                return beta @ self._rows
            product = np.zeros(self.n)
            self._subtract_kept(support, -beta[support], product)
            return product
        if self.kernel.is_linear:
            return self._by_weights(support, beta[support])
        if self._used == 0 and 2 * support.size > self.n:  # computing each pair of entries once is less work
            return self.multiply(beta)
        if self.holds_all:
            self._fetch_all(support)
        # A sweep over more rows than memory holds must not drive out those a solver is using.
        return self.product(support, beta[support])

    def _by_weights(self, points: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return the product of the rows of some points with coefficients for a linear kernel: X w, w = sum_j change_j x_j."""
        limits.check()
        X = self.features
        with threads.alone(X.shape[0] * X.shape[1]):
            is_most = 2 * points.size > self.n
            return X @ (X.T @ _scattered(points, change, self.n) if is_most else X[points].T @ change)

    @property
    def room(self) -> float:
        """Bytes of the budget that no row takes up."""
        counted = 0 if self._counted is None else self._counted.bytes_used
        return max(0.0, self._memory - self._rows.itemsize * self._used * self.n - counted)

    def product(self, points: np.ndarray, change: np.ndarray, at: slice = EVERYWHERE) -> np.ndarray:
        """Return the product of the rows of some points with coefficients; rows that are not in memory are not kept.

        Parameters
        ----------
        points : array of shape (m,)
            Their numbers.
        change : array of shape (m,)
            Their coefficients.
        at : slice, default slice(None)
            The points at which it is wanted; by default all.

        Returns
        -------
        array of shape (n,)
            The product.
        """
        if self.kernel.is_linear:
            return self._by_weights(points, change)[at]
        is_kept = self._slot[points] >= 0
        if is_kept.any():
            product = self._kept_product(self._slot[points[is_kept]], change[is_kept])[at]
            rest = ~is_kept
            return product + self.product(points[rest], change[rest], at) if rest.any() else product
        limits.check()
        if self._counted is not None and (is_counted := self._counted.has(points)).any():
            product, rest = self._counted.product(points[is_counted], change[is_counted])[at], ~is_counted
            return product + self.product(points[rest], change[rest], at) if rest.any() else product
        rows = self._prepared if at == EVERYWHERE else self._prepared[at]
        product, is_finite = self._columns.dot(rows, change[:, None], points)
        self._count(len(product) * points.size)
        self._refuse(not is_finite)
        return product[:, 0]

    def _kept_product(self, slots: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return the product of rows in memory with coefficients."""
        if 3 * slots.size > self._used:  # skipping rows would mean copying the others
            return _scattered(slots, change, self._used) @ self._rows[: self._used]
        product = np.zeros(self.n)
        self._subtract_kept(slots, -change, product)
        return product

    def _subtract_kept(self, slots: np.ndarray, change: np.ndarray, residual: np.ndarray) -> None:
        """Subtract ``change`` times rows in memory from a residual; stretches of it on all threads, where it is long work.

        One core does not read memory as fast as two do.
        """
        rows, n = self._rows, residual.size
        if slots.size * n < WORTH_THREADS:
            subtract_rows(rows, slots, change, residual, 0, n)
            return

        def subtract(begin: int) -> None:
            subtract_rows(rows, slots, change, residual, begin, min(begin + STRETCH, n))

        with limits.unlimited():  # it is over soon, and half of it would be of no use
            threads.share(subtract, range(0, n, STRETCH))

    def part_of_product(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return K beta at some rows; kernel values are computed, and not kept.

        Parameters
        ----------
        rows : array of shape (m,)
            Their numbers.
        beta : array of shape (n,)
            Coefficients.

        Returns
        -------
        array of shape (m,)
            The products.
        """
        support = np.flatnonzero(beta)
        return self._block(rows, support) @ beta[support]

    def work_of(self, beta: np.ndarray) -> int:
        """Return how many kernel values a product with beta would have to compute."""
        if self.kernel.is_linear:
            return 0
        return int(np.count_nonzero(self._slot[np.flatnonzero(beta)] < 0)) * self.n

    def fill(self) -> None:
        """Compute as many rows as the budget holds, before products with all points begin."""
        if self.holds_all:
            self.full()
        elif self._used < self.capacity:
            self.fetch(np.flatnonzero(self._slot < 0)[: self.capacity - self._used])

    def multiply(self, V: np.ndarray) -> np.ndarray:
        """Return K V for one or several columns.

        Rows in memory are used from there.  What is left, a square, is computed anew by tiles of its upper triangle, each of
        which serves twice and is then forgotten: no more than one tile is added to the budget.

        Parameters
        ----------
        V : array of shape (n,) or (n, k)
            The columns.

        Returns
        -------
        array of the shape of V
            The products.
        """
        with self.exclusive() as own:
            return own._multiply(V)

    def _multiply(self, V: np.ndarray) -> np.ndarray:
        if self.holds_all:
            K = self.full()
            return dsymv(1.0, K.T, V) if V.ndim == 1 else K @ V  # a product with one column waits for memory: read half
        kept, rest = self._row_in[: self._used], np.flatnonzero(self._slot < 0)
        known, product = self._rows[: self._used], np.zeros(V.shape)
        product[kept] = known @ V
        product[rest] = (V[kept].T @ known).T[rest]
        V, part = V[rest], np.zeros((rest.size, *V.shape[1:]))
        for a, tile in self._tiles(rest):
            b = a + len(tile)
            part[a:b] += tile @ V[a:]
            part[b:] += tile[:, b - a :].T @ V[a:b]
        product[rest] += part
        return product

    def subtract(self, points: np.ndarray, change: np.ndarray, residual: np.ndarray) -> None:
        """Subtract ``change`` times the rows of some points from a residual.

        Parameters
        ----------
        points : array of shape (m,)
            Their numbers.
        change : array of shape (m,)
            What their coefficients have changed by.
        residual : array of shape (n,)
            Changed in place.
        """
        if self.kernel.is_linear and (self._slot[points] < 0).any():
            residual -= self._by_weights(points, change)
            return
        if self.holds_all:
            self._fetch_all(points)  # first of all: a residual half updated would be of no use
        elif np.count_nonzero(self._slot[points] < 0) > self.capacity // STREAMED:
            residual -= self._dot(_scattered(points, change, self.n))
            return
        at_once = self.n if self.holds_all else max(1, self.capacity // 4)
        updated = residual.copy()
        for start in range(0, points.size, at_once):
            part = slice(start, start + at_once)
            if (self._slot[points[part]] < 0).any():
                self.fetch(points[part])
            self._subtract_kept(self._slot[points[part]], change[part], updated)
        residual[:] = updated  # all of it, or with a limit in between none

    def full(self) -> np.ndarray:
        """Return the whole matrix, and keep it.

        Returns
        -------
        array of shape (n, n)
            The rows themselves, no copy.
        """
        with self.exclusive() as own:
            if own._complete is None:
                own._keep_all(
                    own._new_matrix(own._rows if own.holds_all and not own._used else memory.matrix(own.n, own.n))
                )
            return own._rows

    def rounded(self) -> "Gram":
        """Return the whole matrix with values in float32: half the memory, of which pairs read twice as many in a second.

        Returns
        -------
        Gram
            A matrix of its own.
        """
        with self.exclusive() as own:
            K = own._new_matrix(memory.matrix(own.n, own.n, np.float32))
            rounded = copy.copy(own)
            rounded._make_locks()
            rounded._whole = None
            rounded._keep_all(K)
            return rounded

    @property
    def is_rounded(self) -> bool:
        """Whether values are in float32."""
        return bool(self._rows.dtype == np.float32)

    def matrix(self) -> np.ndarray:
        """Return the whole matrix, computed by tiles of the upper triangle.

        Returns
        -------
        array of shape (n, n)
            An array of the caller's own.
        """
        return self._new_matrix(memory.matrix(self.n, self.n)) if self._complete is None else self._complete.copy()

    def _new_matrix(self, K: np.ndarray) -> np.ndarray:
        """Compute the whole matrix."""
        limits.check()
        is_finite = self._columns.fill_square(self._prepared, self.diagonal, K)
        self._count(self._columns.values_of_square(self.n))
        self._refuse(not is_finite)
        return K

    def _tiles(self, points: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the upper triangle of the matrix of some points by tiles: where a tile begins, and its values."""
        for a in range(0, points.size, TILE_ROWS):
            limits.check()
            rows = points[a : a + TILE_ROWS]
            tile = self._block(rows, points[a:])
            tile[np.arange(rows.size), np.arange(rows.size)] = self.diagonal[rows]
            yield a, tile

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Compute the kernel values of some points against some points."""
        out = np.empty((rows.size, columns.size))
        with np.errstate(over="ignore", invalid="ignore"):
            is_range = columns.size and (np.diff(columns) == 1).all()
            chosen = slice(columns[0], columns[-1] + 1) if is_range else columns  # a slice needs no copy of the points
            is_finite = self._columns.fill(self._prepared[rows], out, chosen)
        self._count(out.size)
        self._refuse(not is_finite)
        return out

    def _compute(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty((rows.size, self.n)) if out is None else out
        is_known = np.zeros(rows.size, dtype=bool)
        if self._whole is not None:
            whole, points = self._whole
            slots = whole._slot[points[rows]]
            is_known = slots >= 0
            out[is_known] = whole._rows[np.ix_(slots[is_known], points)]
        if not is_known.any():
            self._evaluate(rows, out)
        elif not is_known.all():
            values = np.empty((np.count_nonzero(~is_known), self.n))
            self._evaluate(rows[~is_known], values)
            out[~is_known] = values
        return out

    def _evaluate(self, rows: np.ndarray, out: np.ndarray) -> None:
        self._count(out.size)
        with np.errstate(over="ignore", invalid="ignore"):
            is_finite = self._columns.fill(self._prepared[rows], out)
        self._refuse(not is_finite)
        out[np.arange(rows.size), rows] = self.diagonal[rows]

    def _checked(self, values: np.ndarray) -> np.ndarray:
        self._refuse(not all_finite(values))
        return values

    def _refuse(self, has_overflow: bool) -> None:
        if has_overflow:
            raise ValueError(
                f"The {self.kernel.name} kernel gives values too large for float64 on this data. "
                "Scale the features (StandardScaler), or lower degree or gamma."
            )


def _scattered(points: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Return an array of zeros, but for the values at some points."""
    array = np.zeros(n)
    array[points] = values
    return array


@inline
def has_row(cache, i):
    """Whether the row of a point is in memory."""
    return cache.slot[i] >= 0


@inline
def row_of(cache, i):
    """Return the row of a point; it is in memory."""
    return cache.rows[cache.slot[i]]


@inline
def kernel_value(cache, i, j):
    """Return K_ij from the row of point i, which is in memory."""
    return cache.rows[cache.slot[i], j]


@inline
def next_stamp(cache):
    """Return a time later than that of any use so far."""
    latest = 0
    for k in range(cache.stamp.size):
        latest = max(latest, cache.stamp[k])
    return latest + 1


@inline
def mark_used(cache, i, time):
    """Note when a row was used: those used longest ago make room for others."""
    cache.stamp[cache.slot[i]] = time


@jit
def product_error(beta, a, relative, absolute, operations):
    """Return a bound on how far K beta is off, for every point; see ``dot_error`` and ``Rounding``."""
    k, m = relative.shape[1], absolute.shape[1]
    weighted, apart, count, sizes, total = np.zeros(k), np.zeros(m), 4.0, 0.0, 0.0
    for j in range(beta.size):
        size = abs(beta[j])
        if size != 0.0:
            count += 1.0
            total += size
            sizes += a[j] * size
            for i in range(k):
                weighted[i] += relative[1, i, j] * (a[j] * size)
            for i in range(m):
                apart[i] += absolute[1, i, j] * size
    error = np.full(beta.size, count * sizes)
    for i in range(k):
        for j in range(beta.size):
            error[j] += relative[0, i, j] * weighted[i]
    for j in range(beta.size):
        error[j] *= a[j]
    for i in range(m):
        for j in range(beta.size):
            error[j] += absolute[0, i, j] * apart[i]
    for j in range(beta.size):
        bound = 1.01 * UNIT * error[j] + UNDERFLOW * operations * total
        error[j] = np.inf if np.isnan(bound) else bound  # nothing is known where products of features overflow
    return error


@jit
def copy_submatrix(rows, slots, points, K):
    """Write the rows in some slots, at some points, into K; where many points follow each other they are copied together."""
    m = points.size
    ends, runs = np.empty(m, dtype=np.int64), 0
    for b in range(m):
        if b + 1 == m or points[b + 1] != points[b] + 1:
            ends[runs] = b + 1
            runs += 1
    for a in range(slots.size):
        row, out, start = rows[slots[a]], K[a], 0
        if 4 * runs > m:
            for b in range(m):
                out[b] = row[points[b]]
            continue
        for run in range(runs):
            first, length = points[start], ends[run] - start
            source, target = row[first : first + length], out[start : start + length]
            for k in range(length):
                target[k] = source[k]
            start = ends[run]
    return K


@jit
def subtract_rows(rows, slots, change, residual, begin, end):
    """Bring residuals from one on, up to another, into step with changes of coefficients whose rows are in memory."""
    minus = -change
    for first in range(begin, end, COLUMN_BLOCK):
        combine(rows, slots, minus, first, residual[first : min(first + COLUMN_BLOCK, end)])
