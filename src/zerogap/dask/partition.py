"""The worker's side of a round: what a partition is asked, and how it answers.

Symbols: r = t - K beta, without the ridge; W = working set; Z = points whose coefficients have changed, or all support vectors.

A question is a small object with ``answer``, sent to every partition.  What a partition knows of a problem is its ``State``:
box and target of its points, their coefficients, r and how far rounding can have put it off.  It has the ``version`` of the
coefficients it belongs to.  Where there is none of the version that a question needs, as on a worker that has taken over from
one that died, the answer is ``Missing``, and the coordinator sends all coefficients: ``Renewal``.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap import formulations
from zerogap.certificate import Measured, Residual, measured
from zerogap.dask.block import Block, nbytes
from zerogap.gram import Gram
from zerogap.kernels import UNIT, Kernel
from zerogap.loss import Loss
from zerogap.problem import LAST_DIGITS, DualProblem

TILE = 50_000  # rows of a partition whose kernel values against Z are worked on at a time
CACHE = 1.0  # megabytes for kernel rows that nobody asks for


class Missing(NamedTuple):
    """The answer of a partition that has no state of the version that is asked for."""


@dataclass(frozen=True)
class Spec:
    """One of the problems of a fit, as every partition has its part of it."""

    key: str  # of this fit and problem
    kernel: Kernel
    C: float
    loss: str
    eps: float = 0.0
    classes: np.ndarray | None = None  # all labels; None for a regression
    factors: np.ndarray | None = None  # what multiplies C for each of them
    pair: tuple[int, int] = (0, 1)  # the two that are separated

    def part(self, block: Block) -> "Part":
        """Return the rows of a partition that have a part in it, with targets, boxes and ridges."""
        if self.classes is None or self.factors is None:
            weight = block.weight
            return Part(np.arange(weight.size), *formulations.regression_terms(self.loss, block.y, self.C, weight))
        codes = np.searchsorted(self.classes, block.y)
        rows = np.flatnonzero((codes == self.pair[0]) | (codes == self.pair[1]))
        positive = self.pair[1] if self.classes.size == 2 else self.pair[0]
        sign = np.where(codes[rows] == positive, 1.0, -1.0)
        weight = block.weight[rows] * self.factors[codes[rows]]
        return Part(rows, *formulations.class_terms(self.loss, sign, self.C, weight))


class Part(NamedTuple):
    """What a problem is at some points."""

    rows: np.ndarray  # their numbers in the partition
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray


class Coefficients(NamedTuple):
    """Points with coefficients, or with changes of them: what is sent to every partition."""

    points: Any  # (m, d)
    values: np.ndarray  # (m,) what K is multiplied with
    owner: np.ndarray  # (m,) partition of each
    place: np.ndarray  # (m,) row of each in its partition
    beta: np.ndarray  # (m,) their coefficients now


class State:
    """What a partition knows of a problem."""

    def __init__(self, spec: Spec, block: Block):
        self.spec, self.block, self.version = spec, block, 0
        self.terms = spec.part(block)
        self.loss = Loss(self.terms.lower, self.terms.upper, self.terms.ridge, spec.eps)
        n = self.terms.rows.size
        self.beta = np.zeros(n)
        self.r, self.low, self.error = self.terms.target.copy(), np.zeros(n), np.zeros(n)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return nbytes([*self.terms, self.beta, self.r, self.low, self.error])

    @property
    def residual(self) -> np.ndarray:
        """t - (K + diag(ridge)) beta."""
        return self.r - self.terms.ridge * self.beta

    def local(self, places: np.ndarray) -> np.ndarray:
        """Return where rows of the partition are among the points of the problem."""
        return np.searchsorted(self.terms.rows, places)

    def take(self, coefficients: Coefficients) -> None:
        """Give points of this partition their coefficients."""
        own = coefficients.owner == self.block.number
        self.beta[self.local(coefficients.place[own])] = coefficients.beta[own]

    def product(self, coefficients: Coefficients) -> tuple[np.ndarray, np.ndarray]:
        """Return K times the values at all points of the partition, and how far each may be off, by tiles of rows."""
        n = self.terms.rows.size
        product, error = np.zeros(n), np.zeros(n)
        if not coefficients.values.size:
            return product, error
        for start in range(0, n, TILE):
            tile = slice(start, start + TILE)
            gram, rows, beta = self._joined(coefficients, self.terms.rows[tile])
            points = np.arange(rows.stop, gram.n)
            product[tile] = gram.product(points, coefficients.values, rows)
            error[tile] = gram.dot_error(beta)[rows]
        return product, error

    def _joined(self, coefficients: Coefficients, rows: np.ndarray) -> tuple[Gram, slice, np.ndarray]:
        """Return the kernel matrix of some rows and then Z, where the rows are in it, and the values of Z behind zeros."""
        X, Z = self.block.X[rows], coefficients.points
        joined = sp.vstack([X, Z], format="csr") if sp.issparse(X) or sp.issparse(Z) else np.concatenate([X, Z])
        beta = np.concatenate([np.zeros(rows.size), coefficients.values])
        return Gram.of_checked(joined, self.spec.kernel, CACHE), slice(0, rows.size), beta

    def advance(self, change: Coefficients) -> None:
        """Bring r into step with a change of coefficients."""
        product, error = self.product(change)
        self.r -= product
        self.error += error + 2.0 * UNIT * (np.abs(self.r) + np.abs(product))
        self.low[:] = 0.0
        self.take(change)

    def renew(self, all_of_them: Coefficients) -> None:
        """Compute r from all coefficients: t - K beta, with the rounding of one product."""
        self.beta[:], self.low[:] = 0.0, 0.0
        self.take(all_of_them)
        product, self.error = self.product(all_of_them)
        self.r = self.terms.target - product
        if all_of_them.values.size:
            self.error += 2.0 * UNIT * np.abs(self.r)

    def refine(self, all_of_them: Coefficients, bias: float, *, from_data: bool) -> None:
        """Compute r in twice the precision where that matters: of support vectors and near the margin."""
        z, error = self.r - bias, 2.0 * self.error
        shares = np.maximum(self.loss.gap_shares(self.beta, z - error), self.loss.gap_shares(self.beta, z + error))
        near = np.flatnonzero((shares > 0) | (self.beta != 0))
        for start in range(0, near.size, TILE):
            at = near[start : start + TILE]
            gram, rows, beta = self._joined(all_of_them, self.terms.rows[at])
            blank = np.zeros(gram.n)
            target, r, error = (_padded(part[at], gram.n) for part in (self.terms.target, self.r, self.error))
            problem = DualProblem(gram, target, blank, blank, blank, total=None)
            found = problem.refined(beta, Residual(r, 0.0, error), np.arange(at.size), from_data)
            high, low, error = found.arrays()
            self.r[at], self.low[at], self.error[at] = high[rows], low[rows], error[rows]


def _padded(values: np.ndarray, n: int) -> np.ndarray:
    """Return values with zeros behind them."""
    return np.concatenate([values, np.zeros(n - values.size)])


# Questions.


@dataclass(frozen=True)
class Question:
    """What every partition is asked; it needs a state of this version."""

    spec: Spec
    version: int

    def state(self, block: Block) -> State | None:
        """Return the state that it needs; None if there is none."""
        state = block.states.get(self.spec.key)
        return state if state is not None and state.version == self.version else None

    def answer(self, state: State) -> Any:
        """Return the answer."""
        raise NotImplementedError


class Offer(NamedTuple):
    """Points that violate most, on either side: their rows, and the bounds on the bias that they are."""

    up_rows: np.ndarray
    up: np.ndarray
    low_rows: np.ndarray
    low: np.ndarray


@dataclass(frozen=True)
class Has(Question):
    """Which of some rows have a part in the problem?"""

    owner: np.ndarray
    place: np.ndarray

    def answer(self, state: State) -> np.ndarray:
        """Return whether each row of the partition among them has."""
        return np.isin(self.place[self.owner == state.block.number], state.terms.rows)


class Slopes(NamedTuple):
    """S(b) = sum_i response_i(r_i - b) at several b, and how many knots it has between each and the one before."""

    sums: np.ndarray
    knots: np.ndarray


class Standing(NamedTuple):
    """Where a partition stands after a round."""

    n: int  # points that have a part in the problem
    b_up: float
    b_low: float
    least: float  # r
    largest: float
    slopes: Slopes
    offer: Offer


@dataclass(frozen=True)
class Stand(Question):
    """Where does it stand, at some biases too, and which so many points on either side violate most?"""

    count: int
    biases: np.ndarray

    def answer(self, state: State) -> Standing:
        """Return bounds on the bias, the range of r, and the points."""
        beta, residual, (rows, _, lower, upper, _) = state.beta, state.residual, state.terms
        slopes = _slopes(state, self.biases)
        if not beta.size:
            empty = np.empty(0)
            return Standing(0, -np.inf, np.inf, np.inf, -np.inf, slopes, Offer(rows, empty, rows, empty))
        eps = self.spec.eps
        below = np.where(beta < upper, residual - np.where(beta >= 0, eps, -eps), -np.inf)
        above = np.where(beta > lower, residual - np.where(beta > 0, eps, -eps), np.inf)
        up, low = _largest(below, self.count), _largest(-above, self.count)
        offer = Offer(rows[up], below[up], rows[low], above[low])
        ends = float(below.max()), float(above.min()), float(state.r.min()), float(state.r.max())
        return Standing(beta.size, *ends, slopes, offer)


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of so many largest values that are finite."""
    chosen = np.argpartition(values, -count)[-count:] if count < values.size else np.arange(values.size)
    return chosen[np.isfinite(values[chosen])]


@dataclass(frozen=True)
class Advance(Stand):
    """The same, after coefficients have changed; the state becomes one of the next version."""

    change: Coefficients

    def state(self, block: Block) -> State | None:
        """Return the state, brought into step; one that is already, because an answer was lost, stays as it is."""
        state = block.states.get(self.spec.key)
        if state is None or state.version not in (self.version - 1, self.version):
            return None
        if state.version < self.version:
            state.version = -1  # of no version, should this be ended half way
            state.advance(self.change)
            state.version = self.version
        return state


@dataclass(frozen=True)
class Renewal:
    """All coefficients, from which a partition that has no state makes one."""

    spec: Spec
    version: int
    coefficients: Coefficients
    bias: float = 0.0
    precision: str = ""  # "sums": kernel values as they are, summed in twice the precision; "data": these, too

    def make(self, block: Block) -> None:
        """Make the state."""
        state = State(self.spec, block)
        state.renew(self.coefficients)
        if self.precision:
            state.refine(self.coefficients, self.bias, from_data=self.precision == "data")
        state.version = self.version
        block.states = {self.spec.key: state}  # one problem at a time


@dataclass(frozen=True)
class Sample(Question):
    """Which so many points on either side, drawn at random, are to be worked on first?"""

    count: int

    def answer(self, state: State) -> Offer:
        """Return points that can rise, and points that can fall."""
        rng = np.random.default_rng(state.block.number)
        rows, _, lower, upper, _ = state.terms
        up, low = (_drawn(np.flatnonzero(able), self.count, rng) for able in (upper > 0, lower < 0))
        return Offer(rows[up], state.residual[up], rows[low], state.residual[low])


def _drawn(points: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return points if points.size <= count else rng.choice(points, count, replace=False)


@dataclass(frozen=True)
class Slope(Question):
    """What is the slope of the loss in the bias, at several of them, in ascending order?"""

    biases: np.ndarray

    def answer(self, state: State) -> Slopes:
        """Return the sums of responses, and the number of knots up to each bias."""
        return _slopes(state, self.biases)


@dataclass(frozen=True)
class Knots(Question):
    """Where between two biases does the slope bend or step, and by how much?"""

    intervals: tuple[tuple[float, float], ...]  # each without its lower end

    def answer(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return the knots, and how far the slope falls at each; zero where it only bends."""
        knots, drops = _knots(state)
        inside = np.zeros(knots.size, dtype=bool)
        for low, high in self.intervals:
            inside |= (low < knots) & (knots <= high)
        places, which = np.unique(knots[inside], return_inverse=True)
        return places, np.bincount(which, weights=drops[inside], minlength=places.size)


def _slopes(state: State, biases: np.ndarray) -> Slopes:
    """Return the sums of responses at biases, and the number of knots up to each."""
    sums = np.array([state.loss.response(state.r - bias).sum() for bias in biases])
    knots, _ = _knots(state)
    if state.loss.has_ridge:  # a bend at a bias itself leaves S straight on both sides
        knots = knots[~np.isin(knots, biases)]
    counts = np.bincount(np.searchsorted(biases, knots), minlength=biases.size + 1)
    return Slopes(sums, counts[: biases.size])


def _knots(state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return the biases at which the slope of a loss bends or steps."""
    r, eps, (_, _, lower, upper, ridge) = state.r, state.spec.eps, state.terms
    if not state.loss.has_ridge:
        knots = np.concatenate([r - eps, r + eps]) if eps else r
        drops = np.concatenate([upper, -lower]) if eps else upper - lower
        return knots[drops > 0], drops[drops > 0]
    with np.errstate(invalid="ignore"):  # of an infinite box times no ridge
        ends = (r - eps - ridge * upper, r - eps, r + eps, r + eps - ridge * lower)
    knots = np.concatenate(ends)
    knots = knots[np.isfinite(knots)]
    return knots, np.zeros(knots.size)


class Rows(NamedTuple):
    """Points of the working set that a partition has."""

    points: Any
    terms: Part
    r: np.ndarray  # of all that are asked for, new or not


class Measurement(NamedTuple):
    """A partition's part of the certificate, and the rows that are asked for."""

    sums: Measured
    nearly_zero: float  # what targets cost that are off by a few last digits
    rows: Rows


@dataclass(frozen=True)
class Measure(Question):
    """What is its part of the certificate at a bias; and which are the points of the working set?"""

    bias: float
    owner: np.ndarray  # (m,) of the working set
    place: np.ndarray
    is_new: np.ndarray  # (m,) whether the coordinator has the point not yet

    def answer(self, state: State) -> Measurement:
        """Return the sums, and the rows."""
        _, target, lower, upper, ridge = state.terms
        found = measured(
            state.beta, target, state.r, state.low, state.error, lower, upper, ridge, self.spec.eps, self.bias
        )
        return Measurement(Measured(*found), self._nearly_zero(state), self._rows(state))

    def _nearly_zero(self, state: State) -> float:
        eps, target = self.spec.eps, state.terms.target
        reach = eps + LAST_DIGITS * (eps + np.abs(target))
        zero = np.zeros(target.size)
        above, below = (state.loss.gap_shares(zero, side * reach) for side in (1.0, -1.0))
        return math.fsum(np.maximum(above, below)) if not state.beta.any() else 0.0

    def _rows(self, state: State) -> Rows:
        own = self.owner == state.block.number
        new = state.local(self.place[own & self.is_new])
        terms = Part(*(part[new] for part in state.terms))
        at = state.local(self.place[own])
        return Rows(state.block.X[terms.rows], terms, state.r[at] + state.low[at])


def ask(block: Block, question: Question, renewal: Renewal | None = None) -> Any:
    """Return the answer of a partition, or ``Missing``; with a renewal it makes the state first, if it has to."""
    with block.lock:
        state = question.state(block)
        if state is None and renewal is not None:
            renewal.make(block)
            state = question.state(block)
        return Missing() if state is None else question.answer(state)
