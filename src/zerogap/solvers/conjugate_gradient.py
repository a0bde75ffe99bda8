"""Conjugate gradient for Gaussian processes (chapter7 §7.6, Table 7.3), with Skilling's bounds.

Symbols: C = K + diag(ridge), with the noise sigma² as ridge; alpha (here beta) = C^-1 y; g = y - C beta, the residual;
h = direction; lambda = length of the step; gamma = how much of the last direction the next one keeps; P ~ C the
preconditioner, z = P^-1 g.

Skilling's bounds on the quadratic form y'C^-1 y (Gibbs and MacKay) hold for any two points u and v:

    2 y'u - u'Cu  <=  y'C^-1 y  <=  (y'y - 2 v'Ky + v'KCv) / sigma²

With u = v = beta the left side is twice the dual objective and the right side twice the primal objective of the problem, and
they differ by |g|²/sigma².  So the certificate's duality gap *is* Skilling's pair of bounds at one point, and
``RelativeGap(tol)`` stops where they agree to the fraction tol.  The lower bound grows with every iteration; the upper one may
rise for a while, and since each holds on its own the state keeps the best of both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg

from zerogap import limits, validation
from zerogap.gram import Gram
from zerogap.problem import DualProblem
from zerogap.solvers.base import Info

PRECONDITIONERS = ("nystrom",)

CHECK_EVERY = 100  # products between two residuals computed afresh
MAX_DRIFT = 0.1  # the share of the residual that may be rounding error
WORK_PER_STEP = 2_000_000  # multiplications between two tests of the certificate: a few milliseconds
DROP_TOGETHER = 8  # right hand sides that are done leave together, once they are one in so many
RANK_TOLERANCE = 1e-12  # a kernel matrix whose remainder is this small, relatively, has no further rank


class Bounds(NamedTuple):
    """Two numbers with y'C^-1 y between them."""

    lower: float
    upper: float


class Nystrom:
    """P = L L' + diag(ridge), where L L' is the Nyström approximation of K from a few of its rows.

    The rows are chosen greedily, each time that of the point least explained so far (partial Cholesky factor with pivots).
    P^-1 is applied by Woodbury's formula, in O(n rank).
    """

    def __init__(self, gram: Gram, ridge: np.ndarray, rank: int):
        self.L = _partial_cholesky(gram, rank)
        self.ridge = ridge
        self._scaled = self.L / ridge[:, None]
        inner = np.eye(self.L.shape[1]) + self.L.T @ self._scaled
        self._inner = scipy.linalg.cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)

    def __deepcopy__(self, memo: object) -> "Nystrom":
        return self  # nothing changes it

    def __call__(self, g: np.ndarray) -> np.ndarray:
        """Return P^-1 g, for one or several columns."""
        if not self.L.shape[1]:  # LAPACK of some versions refuses systems without equations
            return (g.T / self.ridge).T
        inner = scipy.linalg.cho_solve(self._inner, self._scaled.T @ g, check_finite=False)
        return (g.T / self.ridge).T - self._scaled @ inner

    def log_determinant(self) -> float:
        """Return log det P."""
        return float(np.log(self.ridge).sum() + 2 * np.log(np.diagonal(self._inner[0])).sum())

    def sample(self, rng: np.random.RandomState, count: int) -> np.ndarray:
        """Return columns drawn from the normal distribution with covariance P."""
        own = np.sqrt(self.ridge)[:, None] * rng.standard_normal((self.ridge.size, count))
        return self.L @ rng.standard_normal((self.L.shape[1], count)) + own


class CGState(NamedTuple):
    """What the next product needs; arrays are updated in place."""

    beta: np.ndarray  # (n,) the point
    residual: np.ndarray  # (n,) g = y - C beta
    direction: np.ndarray  # (n,) h
    precondition: Nystrom | None
    bounds: list[Bounds]  # on y'C^-1 y, after every iteration, the best so far

    @property
    def lower(self) -> float:
        """Skilling's lower bound on y'C^-1 y."""
        return self.bounds[-1].lower

    @property
    def upper(self) -> float:
        """Skilling's upper bound on y'C^-1 y."""
        return self.bounds[-1].upper


@dataclass(frozen=True)
class ConjugateGradient:
    """Conjugate gradient on (K + sigma² I) beta = y; an iteration is one product with the matrix (Table 7.3).

    ``preconditioner="nystrom"`` takes ``rank`` kernel rows first, and far fewer iterations then.  (A diagonal one would do
    nothing: most kernels have a constant diagonal.)  Products go through the Gram matrix: if it does not fit in its
    memory budget, what is missing is computed for every product anew, and no (n, n) array ever exists.

    Attributes
    ----------
    preconditioner : "nystrom" or None
        What the residual is multiplied by; None, the default, is nothing.
    rank : int
        Kernel rows in the preconditioner; 300 by default.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import ConjugateGradient
    >>> problem = DualProblem.gaussian_process(Gram([[0.0], [1.0], [2.0], [3.0]]), [0.0, 1.0, 0.0, 1.0], noise=0.1)
    >>> solve(problem, ConjugateGradient("nystrom", rank=2)).status.name
    'CONVERGED'
    """

    preconditioner: str | None = None
    rank: int = 300

    def __post_init__(self) -> None:
        if self.preconditioner is not None:
            validation.check_choice("preconditioner", self.preconditioner, PRECONDITIONERS)
        validation.check_positive("rank", self.rank, advice="It is the number of kernel rows in the preconditioner.")

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> CGState:
        """Start at beta, or at zero."""
        refuse_constraints(problem, "Conjugate gradient")
        beta = np.zeros(problem.n) if beta is None else np.array(beta, dtype=np.float64)
        problem.gram.fill()
        precondition = Nystrom(problem.gram, problem.ridge, int(self.rank)) if self.preconditioner else None
        residual = problem.residual(beta) if beta.any() else problem.target.copy()
        return CGState(beta, residual, np.zeros(problem.n), precondition, [_bounds(problem, beta, residual)])

    def step(self, problem: DualProblem, state: CGState, max_steps: int, kkt_target: float) -> tuple[CGState, Info]:
        """Make up to ``max_steps`` products, fewer if they take long or the violation falls to ``kkt_target`` before."""
        beta, g, h, precondition, bounds = state
        max_steps = min(max_steps, max(1, WORK_PER_STEP // problem.n**2))
        for k in range(max_steps):
            if h @ g <= 0:  # at the start, and should rounding ever spoil the direction
                h[:] = g if precondition is None else precondition(g)
            try:
                if _iterate(problem.gram, problem.ridge, precondition, beta, g, h) is None:
                    is_unbounded = _is_concave(problem, h)
                    return state, Info(k, is_done=True, is_unbounded=is_unbounded)
            except limits.Exceeded:  # in the product, before anything has moved
                return state, Info(k)
            if len(bounds) % CHECK_EVERY == 0:
                with limits.unlimited():
                    _correct(g, problem.residual(beta))
            now = _bounds(problem, beta, g)
            lower = max(now.lower, bounds[-1].lower)
            bounds.append(Bounds(lower, max(min(now.upper, bounds[-1].upper), lower)))  # crossed by rounding only
            violation = kkt_violation(g)
            if violation <= kkt_target:
                return state, Info(k + 1, is_done=violation == 0)
        return state, Info(max_steps)

    def __str__(self) -> str:
        return "cg" if self.preconditioner is None else f"cg-{self.preconditioner}"


def refuse_constraints(problem: DualProblem, method: str) -> None:
    """Refuse a problem whose solution is not that of a linear system."""
    if not problem.is_linear_system:
        raise ValueError(
            f"{method} solves a linear system: it takes problems without box, tube and bias, such as "
            "DualProblem.gaussian_process. For this one use solver='smo', which takes them all."
        )


def kkt_violation(g: np.ndarray) -> float:
    """KKT violation where every coefficient can move: the bias is fixed to zero."""
    return max(float(g.max()), 0.0) - min(float(g.min()), 0.0)


def _bounds(problem: DualProblem, beta: np.ndarray, g: np.ndarray) -> Bounds:
    """Skilling's bounds at one point: twice the dual, and twice the primal objective."""
    lower = float(beta @ (problem.target + g))
    return Bounds(lower, lower + float(g @ (g / problem.ridge)))


def _is_concave(problem: DualProblem, h: np.ndarray) -> bool:
    """Whether h'Ch is below zero by more than rounding, as no inner product has it."""
    # May be infinite: then nothing is told.
    noise = RANK_TOLERANCE * np.abs(problem.gram.diagonal).max() * np.abs(h).sum() ** 2
    return bool(h @ problem.gram.multiply(h) + h @ (problem.ridge * h) < -noise)


def _iterate(
    gram: Gram,
    ridge: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray] | None,
    x: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
) -> tuple[np.ndarray, np.ndarray] | None:
    """One pass of Table 7.3, in place, for one or several columns; return lambda and gamma, or None without descent.

    In exact arithmetic lambda = g'z / h'Ch and gamma = g₊'z₊ / g'z.  The forms below equal them, and stay a line search and a
    conjugate direction when g has just been replaced by the true residual.
    """
    Ch = gram.multiply(h)
    Ch += (ridge * h.T).T
    curvature = _products(h, Ch)
    if not (curvature > 0).all():
        return None
    length = _products(g, h) / curvature
    x += length * h
    g -= length * Ch
    z = g if precondition is None else precondition(g)
    kept = -_products(z, Ch) / curvature
    h *= kept
    h += z
    return length, kept


def _correct(g: np.ndarray, true: np.ndarray) -> None:
    """Replace the residual by the true one where they have come apart.

    The recurrence drifts with rounding; now and then one extra product buys the true residual.  To put it in place costs
    some of the conjugacy the directions have built up, so that is left until the drift matters.
    """
    drift = true - g
    g += np.where(_products(drift, drift) > MAX_DRIFT**2 * _products(true, true), 1.0, 0.0) * drift


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products column by column."""
    return np.einsum("i...,i...->...", a, b)


def _partial_cholesky(gram: Gram, rank: int) -> np.ndarray:
    """Return L (n, rank or fewer) with L L' equal to K on the chosen points, and below K everywhere."""
    rank = min(rank, gram.n)
    L, remainder = np.zeros((gram.n, rank), order="F"), gram.diagonal.copy()
    threshold = RANK_TOLERANCE * remainder.max()
    for k in range(rank):
        limits.check()
        p = int(np.argmax(remainder))
        if remainder[p] <= threshold:
            return L[:, :k]
        L[:, k] = (gram.block(np.array([p]))[0] - L[:, :k] @ L[p, :k]) / np.sqrt(remainder[p])
        remainder -= L[:, k] ** 2
    return L


# Several right hand sides.


class Solved(NamedTuple):
    """Solutions of C x = v for several columns v."""

    x: np.ndarray  # (n, m)
    residual: np.ndarray  # (n, m) v - C x
    gap: np.ndarray  # (m,) upper less lower bound on v'C^-1 v


def solve_columns(
    gram: Gram,
    ridge: np.ndarray,
    columns: np.ndarray,
    tol: np.ndarray,
    precondition: Nystrom | None = None,
    max_steps: int | None = None,
    record: Callable[[np.ndarray, np.ndarray, np.ndarray], None] | None = None,
) -> Solved:
    """Solve C x = v for every column v until Skilling's bounds on v'C^-1 v differ by at most its ``tol``.

    The columns share every kernel value computed; those that are done drop out.  ``record`` is called with
    (columns at work, lambda, gamma) after every iteration.  A column whose residual is down to rounding errors ends short of
    its tol; the gap tells.
    """
    tol = np.array(tol, dtype=np.float64)
    x, residual = np.zeros(columns.shape), columns.copy()
    max_steps = 10 * gram.n + 100 if max_steps is None else max_steps
    busy = np.flatnonzero(_gaps(residual, ridge) > tol)
    g = residual[:, busy]
    part, h = np.zeros(g.shape), (g.copy() if precondition is None else precondition(g))
    for k in range(max_steps):
        if not busy.size or (made := _iterate(gram, ridge, precondition, part, g, h)) is None:
            break
        if record is not None:
            record(busy, *made)
        done = np.flatnonzero(_gaps(g, ridge) <= tol[busy])
        if DROP_TOGETHER * done.size >= busy.size:
            g[:, done] = _true_residual(gram, ridge, columns[:, busy[done]], part[:, done])
            is_busy = _gaps(g, ridge) > tol[busy]
            done = np.flatnonzero(~is_busy)
            x[:, busy[done]], residual[:, busy[done]] = part[:, done], g[:, done]
            busy, part, g, h = busy[is_busy], part[:, is_busy], g[:, is_busy], h[:, is_busy]
        if k % CHECK_EVERY == CHECK_EVERY - 1:
            _correct(g, _true_residual(gram, ridge, columns[:, busy], part))
            size = np.abs(columns[:, busy]).max(axis=0) + gram.diagonal.max() * np.abs(part).sum(axis=0)
            tol[busy] = np.maximum(tol[busy], (np.finfo(float).eps * size) ** 2 * (1 / ridge).sum())
    x[:, busy], residual[:, busy] = part, g
    return Solved(x, residual, _gaps(residual, ridge))


def _true_residual(gram: Gram, ridge: np.ndarray, columns: np.ndarray, x: np.ndarray) -> np.ndarray:
    return columns - gram.multiply(x) - ridge[:, None] * x


def _gaps(g: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    return _products(g, g / ridge[:, None])


# The log determinant.


def log_determinant(
    gram: Gram,
    ridge: np.ndarray,
    precondition: Nystrom | None,
    probes: int,
    rng: np.random.RandomState,
    tol: float = 1e-10,
) -> tuple[float, float]:
    """Return an unbiased estimate of log det C, and its standard error.

    log det C = log det P + E[z'P^-1/2 log(M) P^-1/2 z] with M = P^-1/2 C P^-1/2 and z drawn with covariance P.  Conjugate
    gradient on C x = z is Lanczos' method on M: its lambda and gamma are the entries of a tridiagonal matrix T, and the
    expectation is that of (z'P^-1 z) [log T]_11, up to ``tol``.  The better P, the smaller the variance.
    """
    if precondition is None:
        z, start = rng.standard_normal((gram.n, probes)), 0.0
        weights = _products(z, z)
    else:
        z, start = precondition.sample(rng, probes), precondition.log_determinant()
        weights = _products(z, precondition(z))
    lengths: list[list[float]] = [[] for _ in range(probes)]
    kept: list[list[float]] = [[] for _ in range(probes)]

    def record(busy: np.ndarray, length: np.ndarray, gamma: np.ndarray) -> None:
        for j, one, other in zip(busy, length, gamma, strict=True):
            lengths[j].append(one)
            kept[j].append(max(other, 0.0))

    solve_columns(gram, ridge, z, tol * _gaps(z, ridge), precondition, record=record)
    values = start + weights * np.array([_log_corner(*one) for one in zip(lengths, kept, strict=True)])
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(probes)) if probes > 1 else np.inf


def _log_corner(length: list[float], kept: list[float]) -> float:
    """Return the first entry of log T, for the tridiagonal T that conjugate gradient has implied."""
    lam, gamma = np.array(length), np.array(kept[:-1])
    diagonal = 1 / lam
    diagonal[1:] += gamma / lam[:-1]
    beside = np.sqrt(gamma) / lam[:-1]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return float(vectors[0] ** 2 @ np.log(values))
