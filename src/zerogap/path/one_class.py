"""one_class_path(): the one-class problem for every nu."""

from typing import Any, NamedTuple

import numpy as np

from zerogap import limits, validation
from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.kernels import as_kernel
from zerogap.path.checks import check_limits
from zerogap.path.data import Data
from zerogap.path.engine import Engine, Segment
from zerogap.path.family import Family
from zerogap.path.following import follow
from zerogap.path.result import Path
from zerogap.path.single import Single
from zerogap.problem import DualProblem

ONE_CLASS_SETS = {0: "inside", 1: "margin", 2: "outside"}


class NuEvent(NamedTuple):
    """A point changes sets as nu falls: "inside" (no support vector), "margin", "outside" (at the cap).

    Attributes
    ----------
    nu : float
        Where.
    index : int
        Row of the data; duplicates change together, and the first of them stands for all.
    origin : str
        The set it leaves.
    target : str
        The set it enters.

    Examples
    --------
    >>> from zerogap import one_class_path
    >>> path = one_class_path([[0.0], [1.0], [3.0]], nu_min=0.1)
    >>> path.events[-1].origin, path.events[-1].target
    ('outside', 'margin')
    """

    nu: float
    index: int  # type: ignore[assignment]
    origin: str
    target: str

    def __repr__(self) -> str:
        return f"NuEvent(nu={self.nu:.6g}: point {self.index} from {self.origin} to {self.target})"


class LargestGapOverNu(NamedTuple):
    """The largest relative duality gap over every nu, and a nu that has it."""

    gap: float
    nu: float


class NuPath(Path):
    """The solution of the one-class problem for every nu from ``nu[0]`` down to ``nu[-1]``.

    The coefficients, between zero and the weights of the points and summing to nu times all of it, are linear in nu between two
    breakpoints: scikit-learn's scale.  It is read, stored and resumed as a :class:`zerogap.Path` is; methods take nu where
    those of ``Path`` say C.  The bias is minus rho: f(x) is positive inside.  Made by :func:`zerogap.one_class_path`.

    Attributes
    ----------
    nu : array of shape (k,)
        Breakpoints, descending: the order in which the path is followed.
    status : str
        "complete", "max_events", "max_time" or "interrupted".
    events : list of NuEvent
        Changes of sets, in the order of the path.
    n_events : int
        Their number.
    n_free : array of shape (k,)
        Points on the margin on the segment that begins at each breakpoint; the last is repeated.
    largest_gap_ : float
        The largest relative duality gap over every nu, in closed form.
    n_backups : int
        How often the engine had to solve anew by SMO.
    points : Distinct
        The distinct points of the data, and their rows.
    gram : Gram or None
        Their kernel matrix; None if the path was loaded without it.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import one_class_path
    >>> path = one_class_path(np.random.default_rng(0).normal(size=(50, 2)), nu_min=0.1)
    >>> beta = path.coefficients_at(0.2)
    >>> bool(abs(beta.sum() - 0.2 * 50) < 1e-9), bool(0.0 <= beta.min() and beta.max() <= 1.0)
    (True, True)
    """

    parameter, end_name, function, estimator, easier = "nu", "nu_min", "one_class_path", "OneClassSVM", "a larger nu"
    path_estimator, domain = "", (5e-324, 1.0, "above zero and at most one")
    rows_of_data, sets, event_type, kind = "X", ONE_CLASS_SETS, NuEvent, "NuPath"

    def __init__(
        self,
        target: np.ndarray,
        points: Distinct,
        status: np.ndarray,
        nu: float,
        gram: Gram | None = None,
        *,
        size: float,
    ):
        self.size, self.weight = size, float(points.weight.sum())
        super().__init__(Family.one_class(points.weight, size), points, status, nu * self.weight * size, gram)
        self.target = target

    @property
    def nu(self) -> np.ndarray:
        """Breakpoints, descending."""
        return self.value_of(self.lam)

    @property
    def C(self) -> np.ndarray:
        """Not there: this path runs over nu."""
        raise AttributeError("This path runs over nu: its breakpoints are path.nu.")

    @property
    def largest(self) -> Any:
        """The largest relative duality gap over every nu of the path, in closed form, and a nu that has it."""
        return LargestGapOverNu(*super().largest)

    def value_of(self, lam: Any) -> Any:
        """Return the nu of lam."""
        return lam / (self.weight * self.size)

    def lam_of(self, value: Any) -> Any:
        """Return the lam of nu."""
        return value * (self.weight * self.size)

    def scale_at(self, value: float) -> float:
        """Return beta over the scaled coefficients b: they are the same."""
        return 1.0

    def problem_at(self, value: float) -> DualProblem:
        """Return the problem that is solved there."""
        return DualProblem.one_class(self._known_gram(), min(value, 1.0), sample_weight=self.points.weight)

    def _total_at(self, value: float) -> float:
        return min(value, 1.0) * self.weight

    def constant_from(self, gram: Gram) -> float:
        """Return infinity: nothing is constant."""
        return np.inf

    def constant_segment(self, engine: Engine) -> Segment:
        """Return nothing: the engine begins where the path does."""
        raise NotImplementedError

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
        return super().to_dict() | {"size": self.size}

    @classmethod
    def _bare(cls, data: dict[str, Any], points: Distinct, gram: Gram | None) -> "NuPath":
        start = np.asarray(data["start"])
        return cls(np.zeros(points.rows.size), points, start, 1.0, gram, size=float(data["size"]))


class OneClass(Data):
    """Points without targets."""

    path_type, moves_origin = NuPath, False

    def checked(self, y: Any, n: int) -> np.ndarray:
        """Return the same for all points."""
        return np.zeros(n)

    def begin(self, nu: float) -> Path:
        """Return a path without a segment."""
        gram = Gram(self.X, self.kernel)
        with limits.unlimited():  # of the path there is nothing yet that could be gone on with
            size = float(np.abs(gram.diagonal).max())
        unit = float(2.0 ** np.round(np.log2(size))) if size > 0.0 else 1.0
        return self.begun(NuPath(self.y, self.points, np.zeros(self.y.size), nu, gram, size=unit))


def one_class_path(
    X: Any,
    *,
    kernel: Any = "rbf",
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    sample_weight: Any = None,
    nu_min: float = 0.01,
    nu_max: float = 1.0,
    merge_duplicates: bool = True,
    max_events: int | None = None,
    max_time: float | None = None,
    resume: Path | None = None,
    verbose: bool = False,
) -> Path:
    """Return the solution of the one-class problem for every nu from nu_max down to nu_min.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Points, or the kernel matrix (n, n) itself with ``kernel="precomputed"``.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two sets of points.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid, "scale" or "auto", as in :class:`zerogap.SVC`.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    sample_weight : array of shape (n,), optional
        A point of weight two counts as two points.
    nu_min, nu_max : float, default 0.01 and 1.0
        The range of nu: at most that share of the points is outside, at least that share has a coefficient.
    merge_duplicates : bool, default True
        Whether rows that agree in every feature become one weighted point; the result is the same.
    max_events : int, optional
        Stop after so many events of this call; ``resume`` goes on from there.  With 0 only the start is solved.
    max_time : float, optional
        Stop after so many seconds, wherever that is; ``resume`` goes on from there.
    resume : NuPath, optional
        A path of the same data that ended early, or at a larger nu_min; it is extended in place.  It keeps its nu_max.
    verbose : bool, default False
        Show progress.

    Returns
    -------
    NuPath
        With ``status`` "complete", "max_events", "max_time" or "interrupted"; a limit and Ctrl-C keep the part computed.
        ``largest_gap_`` is the largest relative duality gap over every nu of it.

    Warns
    -----
    ConvergenceWarning
        If Ctrl-C has ended the path, with the nu it has come to; a limit that was asked for is told by ``status`` alone.
    RuntimeWarning
        If the largest gap is above 1e-9, with the nu that has it.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import one_class_path
    >>> path = one_class_path(np.random.default_rng(0).normal(size=(50, 2)), nu_min=0.05)
    >>> path.status, bool(path.largest_gap_ <= 1e-9)
    ('complete', True)
    """
    nu_min = validation.check_positive("nu_min", nu_min)
    nu_max = validation.check_positive("nu_max", nu_max, advice="It is a share of the points, at most 1.")
    if not nu_min < nu_max <= 1.0:
        raise ValueError(
            f"nu_min must be below nu_max, and nu_max at most 1; got nu_min={nu_min:g} and nu_max={nu_max:g}."
        )
    check_limits(max_events, max_time)
    data = OneClass(X, None, as_kernel(kernel, gamma, degree, coef0), sample_weight, merge_duplicates)
    begun = None if resume is None else data.check_same(resume)
    return follow(lambda: data.begin(nu_max), begun, nu_min, Single(), max_events, max_time, verbose)
