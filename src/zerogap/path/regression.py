"""svr_path(): regression for every C at one epsilon, or for every epsilon at one C."""

import sys
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np

from zerogap import validation
from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.kernels import Kernel, as_kernel
from zerogap.path.checks import check_limits, check_range
from zerogap.path.data import SAME, Data
from zerogap.path.engine import Engine, Segment
from zerogap.path.family import Family
from zerogap.path.following import follow
from zerogap.path.result import SAME_SIZE, Path, is_bias_free
from zerogap.path.single import Single
from zerogap.problem import DualProblem

TUBE_SETS = {-2: "lower cap", -1: "lower margin", 0: "inside", 1: "upper margin", 2: "upper cap"}
LINE_SETS = {0: "lower cap", 1: "on target", 2: "upper cap"}  # without a tube


class EpsilonEvent(NamedTuple):
    """A point changes sets as the tube gets narrower.

    Sets are "inside" (no support vector), "lower margin" and "upper margin" (on the edge of the tube), "lower cap" and "upper
    cap" (outside, the coefficient at its bound).

    Attributes
    ----------
    epsilon : float
        Where.
    index : int
        Row of the data; duplicates change together, and the first of them stands for all.
    origin : str
        The set it leaves.
    target : str
        The set it enters.

    Examples
    --------
    >>> from zerogap import svr_path
    >>> path = svr_path([[0.0], [1.0], [2.0]], [0.0, 0.0, 3.0], over="epsilon")
    >>> path.events[0]
    EpsilonEvent(epsilon=1.5: point 0 from inside to lower margin)
    """

    epsilon: float
    index: int  # type: ignore[assignment]
    origin: str
    target: str

    def __repr__(self) -> str:
        return f"EpsilonEvent(epsilon={self.epsilon:.6g}: point {self.index} from {self.origin} to {self.target})"


class LargestGapOverEpsilon(NamedTuple):
    """The largest relative duality gap over every epsilon, and an epsilon that has it."""

    gap: float
    epsilon: float


class RegressionPath(Path):
    """The solution of a regression for every C from ``C[0]`` to ``C[-1]``, at one epsilon.

    It is read, stored and resumed as a :class:`zerogap.Path` is.  A point is in one of five sets: "inside" the tube (no support
    vector), on its "lower margin" or "upper margin", at the "lower cap" or "upper cap" outside.  Without a tube, epsilon = 0,
    there are three: "on target", "lower cap" and "upper cap".  Made by :func:`zerogap.svr_path`.

    Attributes
    ----------
    C : array of shape (k,)
        Breakpoints, ascending.
    epsilon : float
        Half the width of the tube.
    target : array of shape (m,)
        Targets of the distinct points.
    status : str
        "complete", "max_events", "max_time" or "interrupted".
    events : list of Event
        Changes of sets, in the order of C.
    n_events : int
        Their number.
    n_free : array of shape (k,)
        Points on a margin on the segment that begins at each breakpoint; the last is repeated.
    largest_gap_ : float
        The largest relative duality gap over every C, in closed form.
    n_backups : int
        How often the engine had to solve anew by SMO.
    points : Distinct
        The distinct points of the data, and their rows.
    gram : Gram or None
        Their kernel matrix; None if the path was loaded without it.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import svr_path
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> path = svr_path(X, np.sin(X[:, 0]), epsilon=0.05, C_min=0.01, C_max=10.0)
    >>> bool(path.certificate_at(2.0).relative_gap < 1e-9), bool(np.abs(path.coefficients_at(2.0)).max() <= 2.0)
    (True, True)
    """

    function, estimator, path_estimator = "svr_path", "SVR", "SVRPath"
    kind = "RegressionPath"

    def __init__(
        self,
        target: np.ndarray,
        points: Distinct,
        status: np.ndarray,
        C: float,
        gram: Gram | None = None,
        *,
        epsilon: float,
        fit_intercept: bool = True,
    ):
        self.centre, self.unit_of_target = _units(target, has_bias=fit_intercept)
        self.epsilon = epsilon
        t, eps = (target - self.centre) / self.unit_of_target, epsilon / self.unit_of_target
        family = Family.insensitive(t, points.weight, eps, has_bias=fit_intercept)
        super().__init__(family, points, status, self.unit_of_target / C, gram)
        self.target = target
        self.sets = TUBE_SETS if self.family.is_two_sided else LINE_SETS

    def value_of(self, lam: Any) -> Any:
        """Return the C of lam."""
        return self.unit_of_target / lam

    def lam_of(self, value: Any) -> Any:
        """Return the lam of C."""
        return self.unit_of_target / value

    def shift(self) -> float:
        """Return what decision values have beside the scaled ones."""
        return self.centre

    def problem_at(self, value: float) -> DualProblem:
        """Return the problem that is solved there."""
        return DualProblem.epsilon_insensitive(
            self._known_gram(), self.target, value, self.epsilon, sample_weight=self.points.weight,
            fit_intercept=self.fit_intercept,
        )  # fmt: skip

    def constant_from(self, gram: Gram) -> float:
        """Return a lam above which only the bias depends on it: zero where the tube holds all targets."""
        return 0.0 if self.family.is_flat else np.inf

    def constant_segment(self, engine: Engine) -> Segment:
        """Return the constant in the middle of all targets, or zero; without a tube all points are on it."""
        zero = np.zeros(0 if self.family.is_two_sided else self.family.n)
        return Segment(np.arange(zero.size), zero, zero, 0.0, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the Gram matrix as arrays.

        Returns
        -------
        dict of str to array
            What ``from_dict`` takes.
        """
        return super().to_dict() | {"target": self.target, "epsilon": self.epsilon}

    @classmethod
    def _bare(cls, data: dict[str, Any], points: Distinct, gram: Gram | None) -> "RegressionPath":
        target, start = np.asarray(data["target"]), np.asarray(data["start"])
        free = is_bias_free(data)
        return cls(target, points, start, 1.0, gram, epsilon=float(data["epsilon"]), fit_intercept=free)


class EpsilonPath(Path):
    """The solution of a regression at one C for every epsilon from ``epsilon[0]`` down to ``epsilon[-1]``.

    The coefficients are linear in epsilon between two breakpoints.  It is read, stored and resumed as a :class:`zerogap.Path`
    is; methods take epsilon where those of ``Path`` say C.  Made by :func:`zerogap.svr_path` with ``over="epsilon"``.

    Attributes
    ----------
    epsilon : array of shape (k,)
        Breakpoints, descending: the order in which the path is followed.
    cost : float
        The C of the path.
    target : array of shape (m,)
        Targets of the distinct points.
    status : str
        "complete", "max_events", "max_time" or "interrupted".
    events : list of EpsilonEvent
        Changes of sets, in the order of the path.
    n_events : int
        Their number.
    n_free : array of shape (k,)
        Points on a margin on the segment that begins at each breakpoint; the last is repeated.
    largest_gap_ : float
        The largest relative duality gap over every epsilon, in closed form.
    n_backups : int
        How often the engine had to solve anew by SMO.
    points : Distinct
        The distinct points of the data, and their rows.
    gram : Gram or None
        Their kernel matrix; None if the path was loaded without it.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import svr_path
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> path = svr_path(X, np.sin(X[:, 0]) + np.tile([0.1, -0.1], 20), over="epsilon")
    >>> bool(path.epsilon[0] > path.epsilon[-1] == 0.0)
    True
    >>> bool(np.count_nonzero(path.coefficients_at(0.5)) < np.count_nonzero(path.coefficients_at(0.01)))
    True
    """

    parameter, end_name, begin_name = "epsilon", "epsilon_min", "epsilon_max"
    domain = (0.0, sys.float_info.max, "of zero or more")
    function, estimator, path_estimator, easier, sets = "svr_path", "SVR", "SVRPath", "a larger epsilon", TUBE_SETS
    event_type, kind, begins_at_rest = EpsilonEvent, "EpsilonPath", True

    def __init__(
        self,
        target: np.ndarray,
        points: Distinct,
        status: np.ndarray,
        epsilon: float,
        gram: Gram | None = None,
        *,
        C: float,
        fit_intercept: bool = True,
    ):
        self.centre, self.unit_of_target = _units(target, has_bias=fit_intercept)
        self.cost = C
        t, cap = (target - self.centre) / self.unit_of_target, C * points.weight / self.unit_of_target
        family = Family.tubes(t, cap, has_bias=fit_intercept)
        super().__init__(family, points, status, 1.0 + epsilon / self.unit_of_target, gram)
        self.target = target

    @property
    def epsilon(self) -> np.ndarray:
        """Breakpoints, descending."""
        return self.value_of(self.lam)

    def epsilon_of_nu(self, nu: float) -> float:
        """Return the epsilon at which the regression is the nu-SVR of a given nu.

        nu is sum |beta| / (C sum w), an upper bound on the share of points outside the tube and a lower one on that of support
        vectors.  It grows as epsilon falls, on a segment on a straight line: so one equation tells the epsilon.

        Parameters
        ----------
        nu : float
            Above 0 and at most 1.

        Returns
        -------
        float
            The largest epsilon whose nu is no less; zero if even without a tube it is less, as nu-SVR has it.

        Raises
        ------
        ValueError
            If the path ends before it comes to this nu.
        """
        return self._epsilons_of_nu(nu)[0]

    def _epsilons_of_nu(self, nu: float) -> tuple[float, float]:
        """Return the largest and the smallest epsilon of a nu."""
        self.check_not_empty()
        nu, total, last = validation.check_nu(nu), float(self.family.w.sum()), len(self._segments)
        wanted, slack = nu * total, SAME_SIZE * total

        def size(k: int) -> float:
            return self._size_on(min(k, last - 1), self.lam[k])

        end = max(float(self.value_of(self.lam[-1])), 0.0)
        if wanted > size(last) + slack:
            if end > 0.0:
                raise ValueError(
                    f"This path ends at epsilon={end:g}, where nu is {size(last) / total:g}; nu={nu:g} is that of a smaller "
                    "epsilon. Go on with svr_path(..., resume=path, epsilon_min=0.0)."
                )
            return 0.0, 0.0
        first = bisect_left(range(last + 1), True, key=lambda k: size(k) >= wanted - slack)
        beyond = bisect_left(range(last + 1), True, key=lambda k: size(k) > wanted + slack)
        begin = self._lam_of_size(first - 1, wanted) if first > 0 else self.lam[0]
        finish = self.lam[last] if beyond > last else self._lam_of_size(beyond - 1, wanted) if beyond > 0 else begin
        largest = max(float(self.value_of(begin)), 0.0)
        return largest, max(float(self.value_of(min(begin, finish))), 0.0)

    def C_of_nu(self, nu: float) -> float:
        """Not there: this path runs over epsilon."""
        raise AttributeError("This path runs over epsilon: path.epsilon_of_nu(nu) tells the epsilon of a nu-SVR.")

    @property
    def C(self) -> np.ndarray:
        """Not there: this path runs over epsilon."""
        raise AttributeError("This path runs over epsilon: its breakpoints are path.epsilon, and its C is path.cost.")

    @property
    def largest(self) -> Any:
        """The largest relative duality gap over every epsilon of the path, in closed form, and an epsilon that has it."""
        return LargestGapOverEpsilon(*super().largest)

    def value_of(self, lam: Any) -> Any:
        """Return the epsilon of lam."""
        return self.unit_of_target * (lam - 1.0)

    def lam_of(self, value: Any) -> Any:
        """Return the lam of epsilon."""
        return 1.0 + value / self.unit_of_target

    def scale_at(self, value: float) -> float:
        """Return beta over the scaled coefficients b, and f over the scaled decision values."""
        return self.unit_of_target

    def shift(self) -> float:
        """Return what decision values have beside the scaled ones."""
        return self.centre

    def problem_at(self, value: float) -> DualProblem:
        """Return the problem that is solved there."""
        return DualProblem.epsilon_insensitive(
            self._known_gram(), self.target, self.cost, max(value, 0.0), sample_weight=self.points.weight,
            fit_intercept=self.fit_intercept,
        )  # fmt: skip

    def constant_from(self, gram: Gram) -> float:
        """Return the lam above which the tube holds all targets, in the units of ``gram``."""
        return float(1.0 + np.abs(self.family.target0).max()) / self.unit

    def constant_segment(self, engine: Engine) -> Segment:
        """Return the constant in the middle of all targets, or zero.

        It is about its end: nothing about zero goes on below that, as what is in proportion to lam does.
        """
        none = np.zeros(0)
        return Segment(np.arange(0), none, none, 0.0, 0.0, engine.lam)

    @staticmethod
    def _between(begin: float, end: float) -> float:
        return 0.5 * (begin + end)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the Gram matrix as arrays.

        Returns
        -------
        dict of str to array
            What ``from_dict`` takes.
        """
        return super().to_dict() | {"target": self.target, "cost": self.cost}

    @classmethod
    def _bare(cls, data: dict[str, Any], points: Distinct, gram: Gram | None) -> "EpsilonPath":
        target, start, free = np.asarray(data["target"]), np.asarray(data["start"]), is_bias_free(data)
        return cls(target, points, start, 1.0, gram, C=float(data["cost"]), fit_intercept=free)


def _units(target: np.ndarray, *, has_bias: bool) -> tuple[float, float]:
    """Return the middle of the targets, and a power of two that is no less than half their range.

    Only a free bias can be moved there: one that is fixed leaves them about zero.
    """
    low, high = float(target.min()), float(target.max())
    centre = 0.5 * low + 0.5 * high if has_bias else 0.0
    half = max(high - centre, centre - low)
    return centre, float(2.0 ** np.ceil(np.log2(half))) if half > 0.0 else 1.0


def smallest_idle_tube(target: np.ndarray, *, has_bias: bool) -> float:
    """Return the epsilon from which on the tube holds all targets, so that no coefficient is needed."""
    return 0.5 * float(np.ptp(target)) if has_bias else float(np.abs(target).max())


class Regression(Data):
    """Targets that are numbers."""

    path_type: type[Path] = RegressionPath

    def checked(self, y: Any, n: int) -> np.ndarray:
        """Return the targets."""
        return validation.check_target(y, n)

    def begin(self, C_min: float, epsilon: float) -> Path:
        """Return a path over C without a segment."""
        gram, status = self.matrix(), np.zeros(self.y.size)
        options: Any = {"epsilon": epsilon, "fit_intercept": self.has_bias}
        return self.begun(RegressionPath(self.y, self.points, status, C_min, gram, **options))


class Tubes(Regression):
    """The same, to be followed over epsilon."""

    path_type = EpsilonPath

    def begin(self, epsilon_max: float, C: float) -> Path:
        """Return a path over epsilon without a segment."""
        gram, status = self.matrix(), np.zeros(self.y.size)
        return self.begun(EpsilonPath(self.y, self.points, status, epsilon_max, gram, C=C, fit_intercept=self.has_bias))


def svr_path(
    X: Any,
    y: Any,
    *,
    over: str = "C",
    kernel: Any = "rbf",
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    sample_weight: Any = None,
    C: float = 1.0,
    epsilon: float = 0.1,
    C_min: float = 1e-4,
    C_max: float = 1e3,
    epsilon_min: float = 0.0,
    epsilon_max: float | None = None,
    fit_intercept: bool = True,
    merge_duplicates: bool = True,
    max_events: int | None = None,
    max_time: float | None = None,
    resume: Path | None = None,
    verbose: bool = False,
) -> Path:
    """Return the solution of support vector regression for every C at one epsilon, or for every epsilon at one C.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Points, or the kernel matrix (n, n) itself with ``kernel="precomputed"``.
    y : array of shape (n,)
        Targets.
    over : str, default "C"
        "C", every C from C_min to C_max at one epsilon; or "epsilon", every epsilon from epsilon_max down to epsilon_min at one
        C.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two sets of points.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid, "scale" or "auto", as in :class:`zerogap.SVR`.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    sample_weight : array of shape (n,), optional
        A point of weight two counts as two points.
    C : float, default 1.0
        That of a path over epsilon.
    epsilon : float, default 0.1
        That of a path over C; it may be zero.
    C_min, C_max : float, default 1e-4 and 1e3
        The range of C.
    epsilon_min : float, default 0.0
        The end of a path over epsilon.
    epsilon_max : float, optional
        Its beginning; by default half the range of the targets, from where on the tube holds all of them, and without a free
        bias the largest of their absolute values.
    fit_intercept : bool, default True
        Whether the bias is free; without it f(x) = sum_i beta_i k(x_i, x), and nothing constrains the sum of coefficients.
    merge_duplicates : bool, default True
        Whether rows that agree in every feature and the target become one weighted point; the result is the same.
    max_events : int, optional
        Stop after so many events of this call; ``resume`` goes on from there.  With 0 only the start is solved.
    max_time : float, optional
        Stop after so many seconds, wherever that is; ``resume`` goes on from there.
    resume : RegressionPath or EpsilonPath, optional
        A path of the same data that ended early, or before C_max or epsilon_min; it is extended in place.  It keeps its
        beginning.
    verbose : bool, default False
        Show progress.

    Returns
    -------
    RegressionPath or EpsilonPath
        With ``status`` "complete", "max_events", "max_time" or "interrupted"; a limit and Ctrl-C keep the part computed.
        ``largest_gap_`` is the largest relative duality gap over all of it.

    Warns
    -----
    ConvergenceWarning
        If Ctrl-C has ended the path, with the value it has come to; a limit that was asked for is told by ``status`` alone.
    RuntimeWarning
        If the largest gap is above 1e-9, with the value that has it.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import svr_path
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + np.tile([0.1, -0.1], 20)
    >>> path = svr_path(X, y, epsilon=0.05, C_max=10.0)
    >>> path.status, bool(path.largest_gap_ <= 1e-9)
    ('complete', True)
    >>> tubes = svr_path(X, y, over="epsilon", C=1.0)
    >>> bool(np.allclose(tubes.coefficients_at(0.05), path.coefficients_at(1.0), atol=1e-6))
    True
    """
    validation.check_choice("over", over, ("C", "epsilon"))
    validation.check_flag("fit_intercept", fit_intercept)
    check_limits(max_events, max_time)
    chosen: Kernel = as_kernel(kernel, gamma, degree, coef0)
    if over == "C":
        C_min, C_max = check_range("C", C_min, C_max)
        epsilon = validation.check_positive("epsilon", epsilon, zero=True)
        data = Regression(X, y, chosen, sample_weight, merge_duplicates, has_bias=fit_intercept)
        begun = None if resume is None else data.check_same(resume)
        if isinstance(begun, RegressionPath) and begun.epsilon != epsilon:
            raise ValueError(
                f"The path of resume= was made with epsilon={begun.epsilon:g}, not with {epsilon:g}. {SAME}"
            )
        return follow(lambda: data.begin(C_min, epsilon), begun, C_max, Single(), max_events, max_time, verbose)
    C = validation.check_positive("C", C)
    tubes = Tubes(X, y, chosen, sample_weight, merge_duplicates, has_bias=fit_intercept)
    largest = smallest_idle_tube(tubes.y, has_bias=fit_intercept) or 1.0  # of one target any does
    epsilon_max = largest if epsilon_max is None else validation.check_positive("epsilon_max", epsilon_max, zero=True)
    epsilon_min = validation.check_positive("epsilon_min", epsilon_min, zero=True)
    if epsilon_min >= epsilon_max:
        raise ValueError(
            f"epsilon_min must be below epsilon_max; got epsilon_min={epsilon_min:g} and epsilon_max={epsilon_max:g}."
        )
    begun = None if resume is None else tubes.check_same(resume)
    if isinstance(begun, EpsilonPath) and begun.cost != C:
        raise ValueError(f"The path of resume= was made with C={begun.cost:g}, not with {C:g}. {SAME}")
    return follow(lambda: tubes.begin(epsilon_max, C), begun, epsilon_min, Single(), max_events, max_time, verbose)
