"""What a path tells at one C: coefficients, bias, solution set and certificate."""

import math
import warnings
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from zerogap import limits, threads, validation
from zerogap.kernels import UNIT
from zerogap.path.engine import Segment, Transition
from zerogap.path.record import Record
from zerogap.path.solution_set import SolutionSet, solutions
from zerogap.precision import dot, with_sum_zero
from zerogap.problem import Certificate, DualProblem

PRECISE_ABOVE = 1e-11  # a relative gap above this is computed again in twice the precision, if rounding is most of it
FAR = 1e-7  # relative gap of f(x) about an origin far from the points, above which there is a warning
ON_MARGIN = 1e-10  # a decision value this near to its margin is on it: what a path leaves between events at one C
AT_BREAKPOINT = 1e-10  # relative: nearer to a breakpoint than ``tolerances.TIE`` its order with an event is not known
FEW = 3  # beta for which rows of their points are added up sooner than a product reads the whole matrix
COLUMNS = 1024  # of the kernel matrix that one thread multiplies
BEYOND_END = 1e-12  # relative: a C outside the path by no more than this was rounded on its way, and is its end


class Readable(Record):
    """A record that is read at any C of its range."""

    @property
    def C(self) -> np.ndarray:
        """Breakpoints, ascending."""
        return self.value_of(self.lam)

    @property
    def n_events(self) -> int:
        """Number of changes of sets."""
        return len(self._transitions)

    @property
    def n_backups(self) -> int:
        """How often the engine had to solve anew by SMO."""
        return self.counts.kkt_backups + self.counts.loop_backups

    @property
    def n_free(self) -> np.ndarray:
        """Points in the elbow, for each breakpoint but the last on the segment that begins there."""
        sizes, _ = self._segments.numbers()
        return np.append(sizes, sizes[-1:] if sizes.size else 0)

    @property
    def events(self) -> list[Any]:
        """Changes of sets, in the order of the path."""
        rows, sets = self.points.rows, self.sets
        return [
            self.event_type(float(self.value_of(t.lam)), int(rows[t.point]), sets[t.origin], sets[t.target])
            for t in self._transitions
        ]

    def coefficients_at(self, C: Any) -> np.ndarray:
        """Return the signed coefficients beta over the rows of the data.

        Parameters
        ----------
        C : float or array of shape (k,)
            Within the range of the path.

        Returns
        -------
        array of shape (n,) or (k, n)
            The coefficients, within the box, and summing to zero if the bias is free.
        """
        return self._for_each(C, self._coefficients_at)

    def _coefficients_at(self, C: float, *, on_few: bool = False, beta: np.ndarray | None = None) -> np.ndarray:
        """Return coefficients over the rows: duplicates share theirs by weight, or as few as may be have them.

        ``beta`` are those of the distinct points, if they are others than those of ``beta_at``.
        """
        points, (found, bias), scale = self.points, self.solution_at(C), self.scale_at(C)
        beta = found if beta is None else beta
        cap = scale * np.where(points.group >= 0, points.share * self.family.w[points.group], 0.0)
        rows = points.on_few(beta, cap) if on_few else points.spread(beta, C if self.family.is_over_C else 0.0)
        if not self.fit_intercept:
            return rows
        return with_sum_zero(rows, cap, *self._visibility(bias, points.group), total=self._total_at(C))

    def _total_at(self, C: float) -> float:
        """Return what the coefficients sum to."""
        return 0.0

    def beta_at(self, C: float) -> np.ndarray:
        """Return beta over the distinct points, within the box; what rounding left of sum(beta) is put right."""
        return self.solution_at(C)[0]

    def solution_at(self, C: float, on: int | None = None) -> tuple[np.ndarray, float]:
        """Return beta over the distinct points, as ``beta_at`` does, and the bias that goes with ``gram.kernel``.

        ``on`` is the segment whose lines are taken, at a breakpoint that two of them have.
        """
        lam, scale, family = self._lam(C), self.scale_at(C), self.family
        segment, status = self._segments[k := self._position(lam) if on is None else on], self.sets_at(k)
        bias = float(segment.bias(lam)) * scale + self.shift()
        beta = scale * family.at_rest(status)
        # On the last segment u is zero and beta is v itself, without any rounding, however large C is.
        is_plain = segment.anchor == 0.0 and family.is_over_C
        beta[segment.points] = (
            scale * segment.u + self.value_of(1.0) * segment.v if is_plain else scale * segment.coefficients(lam)
        )
        lower, upper = family.box
        if family.is_two_sided:  # on its own side of zero: past it by rounding it would cost the width of the tube
            lower, upper = np.where(status > 0, 0.0, lower), np.where(status < 0, 0.0, upper)
        beta = np.clip(beta, scale * lower, scale * upper)
        if not self.fit_intercept:
            return beta, bias
        is_elbow = np.zeros(beta.size, dtype=bool)  # on their margins, where a change of a coefficient costs nothing
        is_elbow[segment.points] = True
        cap, total = scale * family.w, self._total_at(C)
        return with_sum_zero(beta, cap, *self._visibility(bias), total=total, rather=is_elbow), bias

    def _visibility(self, bias: float, points: Any = slice(None)) -> tuple[np.ndarray, float]:
        """Return by how much a decision value changes with the coefficient of some points, and with the sum of all, at most."""
        largest = float(self.norm.max(initial=0.0))
        return largest * self.norm[points], 1.0 + abs(bias) + math.sqrt(self.squared_centre) * largest

    def share_error_at(self, C: float) -> np.ndarray:
        """Return what the rows of each point have, summed exactly, less what the point has: rounding, if they share it."""
        group, beta, rows = self.points.group, self.beta_at(C), self._coefficients_at(C)
        order = np.argsort(group, kind="stable")
        edges = np.searchsorted(group[order], np.arange(beta.size + 1))
        parts = (rows[order[a:b]] for a, b in pairwise(edges))
        return np.array([math.fsum([*part, -b]) for part, b in zip(parts, beta, strict=True)])

    def segment_at(self, C: float) -> Segment:
        """Return the lines that hold at C."""
        return self._segments[self._position(self._lam(C))]

    def on_margin_at(self, C: float, off: float = 0.0) -> np.ndarray:
        """Return the distinct points on their margins, as far as rounding tells.

        The elbow, and those that depend on it: a duplicate with another weight, or an affine combination.

        Parameters
        ----------
        C : float
            Within the range of the path.
        off : float, default 0.0
            How far decision values may be off, besides rounding.

        Returns
        -------
        array
            Their numbers, ascending.
        """
        beta, bias = self.beta_at(C), self.bias_in_gram(C)
        excess, _ = self.excess_at(C)
        size = float(np.abs(self.problem_at(C).target).max())
        is_on = np.abs(excess) <= off + self._known_gram().dot_error(beta) + 8.0 * UNIT * (size + abs(bias))
        is_on[self.segment_at(C).points] = True
        return np.flatnonzero(is_on)

    def excess_at(self, C: float) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much the distinct points are beyond their margins, inside a tube beyond the nearer one, and sides.

        A side is 1 where the coefficient can only be positive, or fall from its upper cap, and -1 otherwise.
        """
        problem, beta = self.problem_at(C), self.beta_at(C)
        r = problem.target - (problem.gram.dot(beta) + self.bias_in_gram(C))
        side = (
            np.where(beta != 0.0, np.sign(beta), np.where(r < 0.0, -1.0, 1.0)) if self.family.is_two_sided else self.y
        )
        return problem.eps - side * r, side

    def bias_at(self, C: Any) -> Any:
        """Return the bias: f(x) = sum_i beta_i k(x_i, x) + bias.

        Parameters
        ----------
        C : float or array of shape (k,)
            Within the range of the path.

        Returns
        -------
        float or array of shape (k,)
            The bias.
        """
        return self._for_each(C, self._bias_at)

    def bias_in_gram(self, C: float) -> float:
        """Return the bias that goes with ``gram.kernel``, whose origin may have been moved."""
        bias = float(self.segment_at(C).bias(self._lam(C)))
        return bias * self.scale_at(C) + self.shift()

    def _bias_at(self, C: float) -> float:
        bias = self.bias_in_gram(C)
        if self.squared_centre == 0.0:
            return bias
        beta, (high, low) = self._coefficients_at(C), self.centre_products[:, self.points.group]
        # sum(beta) is zero but for rounding; far from the origin that little is seen as well.
        total = math.fsum(beta)
        bias -= dot(beta, high) + (dot(beta, low) + total * self.squared_centre)
        self._warn_if_far(C, total, bias)
        return bias

    def _warn_if_far(self, C: float, total: float, bias: float) -> None:
        """About the origin f(x) is off by sum(beta) <c, x - c> and the rounding of the bias: tell where that is a gap."""
        if self.gram is None:
            return
        beta, X = self.beta_at(C), self.gram.kernel.moved(self.gram.X)
        reach = math.sqrt(self.squared_centre) * float(np.sqrt(np.square(X).sum(axis=1).max()))
        off = abs(total) * reach + float(np.spacing(abs(bias)))
        problem, w = self.problem_at(C), self.scale_at(C) * self.family.w
        gain = float(problem.target @ beta) - problem.eps * float(np.abs(beta).sum())
        primal = gain - 0.5 * float(np.square(beta @ X).sum())
        if off * float(w.sum()) <= FAR * primal:
            return
        gap = off * float(w[self.on_margin_at(C, off)].sum())
        if gap > FAR * primal:
            warnings.warn(
                f"The points are so far from the origin that f(x) = sum_i beta_i <x_i, x> + bias has too few digits at "
                f"{self.words(C)}: a relative gap of {gap / primal if primal > 0 else math.inf:.1e}. Centre the features, or "
                f"use {self.path_estimator}, which moves the origin.",
                RuntimeWarning,
                stacklevel=validation.callers_level(),
            )

    def solution_set_at(self, C: float) -> SolutionSet:
        """Return all solutions at C: many, where rows on their margins are duplicates or depend on each other.

        They have one decision function.  Points count as on their margins within 1e-10, and as dependent within rounding.

        Parameters
        ----------
        C : float
            Within the range of the path.

        Returns
        -------
        SolutionSet
            Its dimension, directions, ends and vertices; ``coefficients_at`` is one of them.
        """
        gram, points, beta = self._known_gram(), self.points, self._coefficients_at(C)
        excess, side = self.excess_at(C)
        on_margin = np.abs(excess) <= ON_MARGIN * max(1.0, float(np.abs(self.problem_at(C).target).max()))
        on_margin[self.segment_at(C).points] = True
        rows = np.flatnonzero(np.append(on_margin, False)[points.group])  # -1 is the group of rows without a weight
        (cap, low), scale = np.zeros((2, beta.size)), self.scale_at(C)
        has_weight = points.group >= 0
        group = points.group[has_weight]
        cap[has_weight] = side[group] * scale * points.share[has_weight] * self.family.w[group]
        low[has_weight] = side[group] * scale * points.share[has_weight] * self.family.low[group] + 0.0  # no -0.0
        bounds = np.minimum(cap, low), np.maximum(cap, low)
        K = gram.full()[np.ix_(points.group[rows], points.group[rows])]
        return solutions(C, np.clip(beta, *bounds), *bounds, rows, K, has_bias=self.fit_intercept)

    def not_unique(self) -> list[tuple[float, float, int]]:
        """Return where the solution is not unique.

        Returns
        -------
        list of (float, float, int)
            From a C to a C, and the dimension of the solutions in between; it may be larger at a breakpoint.

        Notes
        -----
        Every segment is looked at: a product with the kernel matrix and a factor of the points on their margins for each, the
        eigenvalues of these where the factor leaves it open.
        """
        found: list[tuple[float, float, int]] = []
        for begin, end in pairwise(self.value_of(self.lam).tolist()):
            limits.check()
            dimension = self.solution_set_at(self._between(begin, end)).dimension
            if dimension and found and found[-1][1:] == (begin, dimension):
                begin = found.pop()[0]
            if dimension:
                found.append((begin, end, dimension))
        return found

    @staticmethod
    def _between(begin: float, end: float) -> float:
        return math.sqrt(begin * end)

    def certificate_at(self, C: Any) -> Any:
        """Return the certificate of the solution at C, computed from the data.

        Parameters
        ----------
        C : float or array of shape (k,)
            Within the range of the path.

        Returns
        -------
        Certificate or list of Certificate
            One for each C.
        """
        several = [c for part in self._chunks(self._several(C)) for c in self.certificates(part)]
        return several[0] if np.ndim(C) == 0 else several

    def certificates(
        self, C: np.ndarray, *, precisely: bool = True, from_data: bool = True, betas: list[np.ndarray] | None = None
    ) -> list[Certificate]:
        """Certify a few C at once, so that the kernel matrix is read once for all of them.

        Those of which rounding is the larger part are computed again in twice the precision, ``from_data`` with their kernel
        values.  ``betas`` are the coefficients there, if they are known.
        """
        problems, betas = solved_at(self, C, betas)
        return certified(problems, betas, products(self, betas), precisely=precisely, from_data=from_data)

    def _several(self, C: Any) -> np.ndarray:
        return np.array(validation.check_values(self.parameter, C))

    @staticmethod
    def _chunks(C: np.ndarray, size: int = 64) -> list[np.ndarray]:
        return [C[k : k + size] for k in range(0, C.size, size)]

    def worst_certificate(self, C: Any = None) -> Certificate:
        """Return the certificate with the largest relative gap over some C.

        Parameters
        ----------
        C : float or array of shape (k,), optional
            Where to look; by default at all breakpoints.

        Returns
        -------
        Certificate
            The worst of them.
        """
        values = self.value_of(self.lam) if C is None else self._several(C)
        found = [
            (self.relative_gap(certificate, value), certificate)
            for part in self._chunks(values)
            for value, certificate in zip(part, self.certificates(part), strict=True)
        ]
        return max(found, key=lambda pair: pair[0])[1]

    def scaled_at(self, lam: float) -> np.ndarray:
        """Return lam beta over the distinct points, within the box."""
        segment, status = self._segments[k := self._position(lam)], self.sets_at(k)
        b = self.family.at_rest(status)
        b[segment.points] = segment.coefficients(lam)
        return self.family.clipped(b)

    def segments(self) -> Iterable[tuple[float, float, Segment, list[Transition]]]:
        """Yield every segment: where it begins and ends in lam, its coefficients, and the transitions made before it."""
        done = 0
        for k, segment in enumerate(self._segments):
            yield self.lam[k], self.lam[k + 1], segment, self._transitions[done : self._before[k]]
            done = self._before[k]

    def _position(self, lam: float) -> int:
        """Return the segment of lam; at a breakpoint that of both in which rounding takes no point further out of its box."""
        self.check_not_empty()
        last = len(self._segments) - 1
        k = min(max(int(np.searchsorted(-self.lam, -lam, side="right")) - 1, 0), last)
        near = AT_BREAKPOINT * lam
        both = [
            j
            for j in (k, k - 1, k + 1)
            if 0 <= j <= last and self.lam[j] >= lam - near and self.lam[j + 1] <= lam + near
        ]
        return min(both, key=lambda j: self._overshoot(j, lam)) if len(both) > 1 else k

    def _overshoot(self, k: int, lam: float) -> float:
        segment = self._segments[k]
        b, (lower, upper) = segment.coefficients(lam), (bound[segment.points] for bound in self.family.box)
        return max(float((lower - b).max(initial=0.0)), float((b - upper).max(initial=0.0)))

    def _lam(self, C: float) -> float:
        self.check_not_empty()
        with np.errstate(divide="ignore"):
            lam = self.lam_of(np.float64(C))
        first, last = self.lam[0], self.lam[-1]
        if not last * (1 - BEYOND_END) <= lam <= first * (1 + BEYOND_END):
            advice = self._wider(float(C), ends_before=bool(lam < last))
            if lam < last and self.status != "complete":
                advice = f"It was ended early ({self.status}): go on with {self.function}(..., resume=path)."
            begin, end = (self.words(self.value_of(at)) for at in (first, last))
            raise ValueError(f"This path runs from {begin} to {end}; got {self.words(C)}. {advice}")
        return float(lam)

    def _wider(self, value: float, *, ends_before: bool) -> str:
        """Return which end to ask for, so that the path has this value; some no path has."""
        least, largest, words = self.domain
        if not least <= value <= largest:
            return f"Use {self.parameter} {words}."
        name, how = (
            self.end_name if ends_before else self.begin_name,
            "more" if value > self.value_of(self.lam[0]) else "less",
        )
        return f"Follow it over a wider range: with {name}={value:g} or {how}."

    def _for_each(self, C: Any, value: Any) -> Any:
        if isinstance(C, float):
            return value(float(C))
        found = [value(c) for c in validation.check_values(self.parameter, C)]
        return found[0] if np.ndim(C) == 0 else np.array(found)


def solved_at(
    path: Readable, C: np.ndarray, betas: list[np.ndarray] | None = None
) -> tuple[list[DualProblem], list[np.ndarray]]:
    """Return the problems at a few C, and coefficients within their boxes."""
    problems = [path.problem_at(float(c)) for c in C]
    betas = [path.beta_at(float(c)) for c in C] if betas is None else betas
    return problems, [np.clip(beta, p.lower, p.upper) for beta, p in zip(betas, problems, strict=True)]


def products(path: Readable, betas: list[np.ndarray]) -> np.ndarray:
    """Return K beta for a few beta, a row for each; columns on all threads, where they are many."""
    K = path._known_gram().full()
    if len(betas) <= FEW:
        return np.stack([path._known_gram().dot(beta) for beta in betas])
    some = np.stack(betas)
    found = np.empty(some.shape)

    def multiply(columns: slice) -> None:
        np.matmul(some, K[:, columns], out=found[:, columns])

    threads.share(multiply, (slice(at, at + COLUMNS) for at in range(0, len(K), COLUMNS)))
    return found


def certified(
    problems: list[DualProblem],
    betas: list[np.ndarray],
    products: np.ndarray,
    *,
    precisely: bool = True,
    from_data: bool = True,
) -> list[Certificate]:
    """Return certificates of coefficients whose products with the kernel matrix are known; see ``Readable.certificates``."""
    residuals = [p.target - f for p, f in zip(problems, products, strict=True)]
    found = [p.certify(b, r) for p, b, r in zip(problems, betas, residuals, strict=True)]
    return [
        p.certify(b, r, precisely=True, from_data=from_data)
        if precisely and c.relative_gap > PRECISE_ABOVE and c.rounding > c.gap
        else c
        for c, p, b, r in zip(found, problems, betas, residuals, strict=True)
    ]
