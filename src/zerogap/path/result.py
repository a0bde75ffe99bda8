"""Path: breakpoints, events, and on every segment the coefficients of the elbow, from which the rest follows."""

import hashlib
import math
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path as File
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap import limits, validation
from zerogap.compiled import HUGE
from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.path.engine import LEFT, Counts, Engine, Segment, Step, Transition
from zerogap.path.proof import BLOCK, LargestGap, Piece, Proof
from zerogap.path.solution_set import SolutionSet, solutions
from zerogap.precision import dot, products, with_sum_zero
from zerogap.problem import Certificate, DualProblem
from zerogap.storage import read_arrays, write_arrays
from zerogap.wording import count

PRECISE_ABOVE = 1e-11  # a relative gap above this is computed again in twice the precision, if rounding is most of it
FAR = 1e-7  # relative gap of f(x) about an origin far from the points, above which there is a warning
LOADED = 1e-6  # relative gap above which a path that was loaded cannot be one of the kernel matrix it is given
ON_MARGIN = 1e-10  # a decision value this near to its margin is on it: what a path leaves between events at one C
SAME_LAM = 1e-15  # relative: a few roundings of lam = 1 / C
AT_BREAKPOINT = 1e-10  # relative: nearer to a breakpoint than ``tolerances.TIE`` its order with an event is not known
BEYOND_END = 1e-12  # relative: a C outside the path by no more than this was rounded on its way, and is its end
SETS = ("right", "elbow", "left")


class Event(NamedTuple):
    """A point changes sets: "right" (no support vector), "elbow" (on the margin), "left" (at the cap).

    Attributes
    ----------
    C : float
        Where.
    index : int
        Row of the data; duplicates change together, and the first of them stands for all.
    origin : str
        The set it leaves.
    target : str
        The set it enters.

    Examples
    --------
    >>> from zerogap import datasets, svm_path
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> path = svm_path(X, y, C_min=0.1, C_max=10.0)
    >>> sorted({event.target for event in path.events}) == ["elbow", "left", "right"]
    True
    """

    C: float
    index: int  # type: ignore[assignment]
    origin: str
    target: str

    def __repr__(self) -> str:
        return f"Event(C={self.C:.6g}: point {self.index} from {self.origin} to {self.target})"


class Path:
    """The solution for every C from ``C[0]`` to ``C[-1]``.

    On the segment between two breakpoints the scaled coefficients lam beta, lam = 1/C, are linear in lam: those of the elbow
    are u + lam v, those of the left are at their caps, those of the right zero.  Only u and v of the elbow are kept, and the
    changes of sets.  Made by :func:`zerogap.svm_path`.

    Attributes
    ----------
    C : array of shape (k,)
        Breakpoints, ascending.
    lam : array of shape (k,)
        1 / C.
    status : str
        "complete", "max_events", "max_time" or "interrupted".
    events : list of Event
        Changes of sets, in the order of C.
    n_events : int
        Their number.
    n_free : array of shape (k,)
        Points in the elbow on the segment that begins at each breakpoint; the last is repeated.
    largest_gap_ : float
        The largest relative duality gap over every C, in closed form.
    n_backups : int
        How often the engine had to solve anew by SMO.
    counts : Counts
        What the engine counted on its way.
    points : Distinct
        The distinct points of the data, and their rows.
    y : array of shape (m,)
        Their labels, -1 or +1.
    gram : Gram or None
        Their kernel matrix; None if the path was loaded without it.

    Examples
    --------
    >>> from zerogap import datasets, svm_path
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> path = svm_path(X, y, C_min=0.1, C_max=10.0)
    >>> bool(abs(path.coefficients_at(2.0).sum()) < 1e-12)
    True
    >>> bool(path.certificate_at(2.0).relative_gap < 1e-9)
    True
    """

    def __init__(self, y: np.ndarray, points: Distinct, status: np.ndarray, lam: float, gram: Gram | None = None):
        self.y, self.points, self.gram = y, points, gram  # y: -1/+1 over the distinct points
        self.start = status.astype(np.int8)  # sets of the distinct points at the start
        self.lam = np.array([lam])
        self.status = "started"  # or "complete", "max_events", "max_time", "interrupted"
        self.X: Any = None  # the distinct points, to compare with when the path is resumed; None if it was loaded
        self.reached: np.ndarray | None = None  # coefficients at C[0], where a limit fell before they were optimal
        self.counts = Counts()
        self.engine: Engine | None = None  # where the path can be gone on with
        self.unit = 1.0  # of the engine's lam
        self._segments: list[Segment] = []
        self._before: list[int] = []  # transitions made before each segment
        self._transitions: list[Transition] = []
        self._moved = np.zeros((0, 2), dtype=np.int64)
        self._tail: list[float] = []
        # For a linear kernel about a centre c: <x - c, c> of the points, as pairs, and |c|².  Its bias has <w, c> too much.
        centre = None if gram is None else gram.kernel.centre
        self.centre_products, self.squared_centre = np.zeros((2, y.size)), 0.0
        if gram is not None and centre is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                self.centre_products = np.stack(products(gram.X, centre, centre, np.zeros_like(centre)))
                self.squared_centre = min(float(centre @ centre), HUGE)
            if not np.isfinite(self.centre_products).all():  # too large to be split into halves
                self.centre_products = np.stack([gram.kernel.moved(gram.X) @ centre, np.zeros(y.size)])
        self._norm = np.zeros(y.size) if gram is None else None
        self.digest = ""  # of X, kept when the path is stored
        self._proof: Proof | None = None
        self._proved, self._largest = 0, LargestGap(0.0, np.nan)  # segments that were proved before those of the proof

    @property
    def norm(self) -> np.ndarray:
        """|phi(x)| of the points; those of a kernel without features tell as well how large its values are."""
        if self._norm is None:  # a limit may have come before the diagonal was known
            self._norm = np.sqrt(np.abs(self._known_gram().diagonal))
        return self._norm

    # Growing.

    @property
    def has_segments(self) -> bool:
        """Whether there is a solution to be read."""
        return bool(self._segments)

    @property
    def end(self) -> float:
        """The smallest lam reached."""
        return self._tail[-1] if self._tail else float(self.lam[-1])

    def is_at(self, lam: float) -> bool:
        """Whether the path has come to lam, or is still on the way to where its engine began."""
        return self.end >= lam * (1 - SAME_LAM) if len(self._segments) <= 1 else abs(self.end - lam) <= SAME_LAM * lam

    def add(self, segment: Segment, lam: float, transitions: Iterable[Transition]) -> None:
        """Append a segment that ends at lam, and the transitions made there; a segment of no length leaves only those."""
        if 1.0 / lam > 1.0 / self.end:  # two lam may have the same C
            if self._goes_on(segment):  # one line is one segment
                self._segments.pop()
                self._before.pop()
                self._tail.pop()
            self._segments.append(segment)
            self._before.append(len(self._transitions))
            self._tail.append(lam)
        self.note(transitions)

    def add_all(self, steps: list[Step]) -> None:
        """Append segments of some length, with one transition at the end of each."""
        self.add(*steps[0])
        segments, lam, transitions = zip(*steps[1:], strict=True) if len(steps) > 1 else ((), (), ())
        self._segments.extend(segments)
        self._before.extend(range(len(self._transitions), len(self._transitions) + len(segments)))
        self._tail.extend(lam)
        self._transitions.extend(transition for (transition,) in transitions)

    def _goes_on(self, segment: Segment) -> bool:
        """Whether this is the second of two segments at the beginning on which b does not change."""
        if len(self._segments) != 1 or not self._tail or self._transitions or self.n_unproved == 0:
            return False
        first = self._segments[0]
        return np.array_equal(first.points, segment.points) and not segment.v.any() and first.v0 == segment.v0

    def note(self, transitions: Iterable[Transition]) -> None:
        """Append transitions made where the path ends now."""
        self._transitions.extend(transitions)

    def seal(self, status: str) -> "Path":
        """Finish growing for now."""
        self.lam, self._tail, self.status = np.concatenate([self.lam, self._tail]), [], status
        self._moved = np.array([(t.point, t.target) for t in self._transitions], dtype=np.int64).reshape(-1, 2)
        return self

    @property
    def _where_it_ends(self) -> str:
        """How far it has come, in words."""
        return f"ends at C={self.C[-1]:g}" if self.has_segments else f"has not got beyond its start at C={self.C[0]:g}"

    # Proving.

    @property
    def n_unproved(self) -> int:
        """Number of segments whose largest gap is not yet known."""
        return len(self._segments) - self._proved - (self._proof.done if self._proof is not None else 0)

    def prove(self, least: int = 1) -> None:
        """Compute the largest gap of the segments added since the last call, as long as there are so many of them.

        A limit leaves the rest for later.
        """
        while self.n_unproved >= least:
            if self._proof is None:
                self._proof = self._begin_proof()
            first = len(self._segments) - self.n_unproved
            self._proof.follow(self._pieces(first, min(first + BLOCK, len(self._segments))))

    def _begin_proof(self) -> Proof:
        """Return a proof that has come to the first segment not yet proved."""
        k, gram, w = self._proved, self._known_gram(), self.points.weight
        status = self.start.copy()
        for t in self._transitions[: self._before[k]]:
            status[t.point] = t.target
        segment, b = self._segments[k], np.where(status == LEFT, self.y * w, 0.0)
        b[segment.points] = segment.coefficients(self._edge(k))
        return Proof(
            gram.full(), self.y, w, status, b, is_positive=gram.is_positive, kernel_error=gram.distance_from_positive()
        )

    def _edge(self, k: int) -> float:
        return float(self.lam[k]) if k < self.lam.size else self._tail[k - self.lam.size]

    def _pieces(self, first: int, stop: int) -> list[Piece]:
        lam = [self._edge(k) for k in range(first, stop + 1)]
        # Earlier transitions are where the proof begins.
        before = pairwise([self._before[max(first - 1, self._proved)], *self._before[first:stop]])
        return [
            Piece(begin, end, segment, self._transitions[a:b])
            for (begin, end), segment, (a, b) in zip(pairwise(lam), self._segments[first:stop], before, strict=True)
        ]

    @property
    def proved(self) -> LargestGap:
        """The largest gap of the segments that have been proved so far."""
        of_proof = self._largest if self._proof is None else self._proof.largest
        return max(self._largest, of_proof, key=lambda largest: largest.gap)

    @property
    def largest(self) -> LargestGap:
        """The largest relative duality gap over every C of the path, in closed form, and a C that has it."""
        self.check_not_empty()
        if self.n_unproved:
            with limits.unlimited():
                self.prove()
        known = self.proved
        # Without any gap every C has the largest; and the proof may have gone a little further than the path.
        C = self.C
        return LargestGap(known.gap, float(min(known.C, C[-1]) if known.gap > 0.0 else C[0]))

    @property
    def largest_gap_(self) -> float:
        """The largest relative duality gap over every C of the path: its bound, not a sample of it.

        Computed from the stored segments and the kernel matrix; what rounding can have done to it there is counted.
        """
        return self.largest.gap

    # Reading.

    @property
    def C(self) -> np.ndarray:
        """Breakpoints, ascending."""
        return 1.0 / self.lam

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
        sizes = [segment.points.size for segment in self._segments] or [0]
        return np.array(sizes + sizes[-1:] * bool(self._segments))

    @property
    def events(self) -> list[Event]:
        """Changes of sets, in the order of C."""
        rows = self.points.rows
        return [Event(1.0 / t.lam, int(rows[t.point]), SETS[t.origin], SETS[t.target]) for t in self._transitions]

    def coefficients_at(self, C: Any) -> np.ndarray:
        """Return the signed coefficients beta over the rows of the data.

        Parameters
        ----------
        C : float or array of shape (k,)
            Within the range of the path.

        Returns
        -------
        array of shape (n,) or (k, n)
            The coefficients, within the box, and summing to zero.
        """
        return self._for_each(C, self._coefficients_at)

    def _coefficients_at(self, C: float, *, on_few: bool = False) -> np.ndarray:
        """Return coefficients over the rows: duplicates share theirs by weight, or as few as may be have them."""
        points, beta = self.points, self.beta_at(C)
        cap = C * np.where(points.group >= 0, points.share * points.weight[points.group], 0.0)
        rows = points.on_few(beta, cap) if on_few else points.spread(beta, C)
        return with_sum_zero(rows, cap, *self._visibility(C, points.group))

    def beta_at(self, C: float) -> np.ndarray:
        """Return beta over the distinct points, within the box; what rounding left of sum(beta) is put right."""
        lam = self._lam(C)
        segment, status, cap = self._segments[k := self._position(lam)], self.sets_at(k), C * self.points.weight
        beta = np.where(status == LEFT, self.y * cap, 0.0)
        # On the last segment u is zero and beta is v itself, without any rounding, however large C is.
        is_plain = segment.anchor == 0.0
        beta[segment.points] = C * segment.u + segment.v if is_plain else C * segment.coefficients(lam)
        return with_sum_zero(self.y * np.clip(self.y * beta, 0.0, cap), cap, *self._visibility(C))

    def _visibility(self, C: float, points: Any = slice(None)) -> tuple[np.ndarray, float]:
        """Return by how much a decision value changes with the coefficient of some points, and with the sum of all, at most."""
        largest = float(self.norm.max(initial=0.0))
        return largest * self.norm[points], 1.0 + abs(self.bias_in_gram(C)) + math.sqrt(self.squared_centre) * largest

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
        gram, beta, bias = self._known_gram(), self.beta_at(C), self.bias_in_gram(C)
        distance = np.abs(1.0 - self.y * (gram.dot(beta) + bias))
        is_on = distance <= off + gram.dot_error(beta) + 8.0 * UNIT * (1.0 + abs(bias))
        is_on[self.segment_at(C).points] = True
        return np.flatnonzero(is_on)

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
        lam = self._lam(C)
        return float(self.segment_at(C).bias(lam)) / lam

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
        primal, w = float(np.abs(beta).sum()) - 0.5 * float(np.square(beta @ X).sum()), self.points.weight
        if C * off * float(w.sum()) <= FAR * primal:
            return
        gap = C * off * float(w[self.on_margin_at(C, off)].sum())
        if gap > FAR * primal:
            warnings.warn(
                f"The points are so far from the origin that f(x) = sum_i beta_i <x_i, x> + bias has too few digits at "
                f"C={C:g}: a relative gap of {gap / primal if primal > 0 else math.inf:.1e}. Centre the features, or use "
                "SVCPath, which moves the origin.",
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
        excess = self.y * (gram.dot(self.beta_at(C)) + self.bias_in_gram(C)) - 1.0
        on_margin = np.abs(excess) <= ON_MARGIN
        on_margin[self.segment_at(C).points] = True
        rows = np.flatnonzero(np.append(on_margin, False)[points.group])  # -1 is the group of rows without a weight
        cap = np.zeros(beta.size)
        has_weight = points.group >= 0
        group = points.group[has_weight]
        cap[has_weight] = self.y[group] * C * points.share[has_weight] * points.weight[group]
        bounds = np.minimum(cap, 0.0), np.maximum(cap, 0.0)
        K = gram.full()[np.ix_(points.group[rows], points.group[rows])]
        return solutions(C, np.clip(beta, *bounds), *bounds, rows, K)

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
        for begin, end in pairwise(self.C.tolist()):
            limits.check()
            dimension = self.solution_set_at(math.sqrt(begin * end)).dimension
            if dimension and found and found[-1][1:] == (begin, dimension):
                begin = found.pop()[0]
            if dimension:
                found.append((begin, end, dimension))
        return found

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
        several = [c for part in self._chunks(np.atleast_1d(C)) for c in self.certificates(part)]
        return several[0] if np.ndim(C) == 0 else several

    def _known_gram(self) -> Gram:
        if self.gram is None:
            raise ValueError(
                "This path was loaded without its data, so nothing can be certified. Set path.gram to the Gram matrix of the "
                "distinct points, X[path.points.rows], with the kernel it was made with."
            )
        return self.gram

    def certificates(self, C: np.ndarray, *, precisely: bool = True, from_data: bool = True) -> list[Certificate]:
        """Certify a few C at once, so that the kernel matrix is read once for all of them.

        Those of which rounding is the larger part are computed again in twice the precision, ``from_data`` with their kernel
        values.
        """
        gram = self._known_gram()
        problems = [DualProblem.hinge(gram, self.y, float(c), sample_weight=self.points.weight) for c in C]
        betas = [np.clip(self.beta_at(float(c)), p.lower, p.upper) for c, p in zip(C, problems, strict=True)]
        residuals = [p.target - f for p, f in zip(problems, np.stack(betas) @ gram.full(), strict=True)]
        found = [p.certify(b, r) for p, b, r in zip(problems, betas, residuals, strict=True)]
        return [
            p.certify(b, r, precisely=True, from_data=from_data)
            if precisely and c.relative_gap > PRECISE_ABOVE and c.rounding > c.gap
            else c
            for c, p, b, r in zip(found, problems, betas, residuals, strict=True)
        ]

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
        worst = [
            max(self.certificates(part), key=lambda c: c.relative_gap)
            for part in self._chunks(self.C if C is None else np.atleast_1d(C))
        ]
        return max(worst, key=lambda c: c.relative_gap)

    def scaled_at(self, lam: float) -> np.ndarray:
        """Return lam beta over the distinct points, within the box."""
        segment, status = self._segments[k := self._position(lam)], self.sets_at(k)
        b = np.where(status == LEFT, self.y * self.points.weight, 0.0)
        b[segment.points] = segment.coefficients(lam)
        return self.y * np.clip(self.y * b, 0.0, self.points.weight)

    def sets_at(self, k: int | None) -> np.ndarray:
        """Return the set of every distinct point on segment k, or behind the last one: 0 right, 1 elbow, 2 left."""
        status, done = self.start.copy(), None if k is None else self._before[k]
        status[self._moved[:done, 0]] = self._moved[:done, 1]  # of several changes of a point the last one stays
        return status

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

    def check_not_empty(self) -> None:
        """Raise if there is no solution to be read."""
        if not self._segments:
            raise ValueError(
                f"This path has no segment yet: it ended ({self.status}) before its first one at C={self.C[0]:g} was found. "
                "Go on with svm_path(..., resume=path)."
            )

    def _overshoot(self, k: int, lam: float) -> float:
        segment = self._segments[k]
        a = self.y[segment.points] * segment.coefficients(lam)
        return max(float(-a.min(initial=0.0)), float((a - self.points.weight[segment.points]).max(initial=0.0)))

    def _lam(self, C: float) -> float:
        self.check_not_empty()
        first, last = 1.0 / self.lam[0], 1.0 / self.lam[-1]
        if not first * (1 - BEYOND_END) <= C <= last * (1 + BEYOND_END):
            advice = "Follow it over a wider range."
            if last < C and self.status != "complete":
                advice = f"It was ended early ({self.status}): go on with svm_path(..., resume=path)."
            raise ValueError(f"This path runs from C={first:g} to C={last:g}; got C={C:g}. {advice}")
        return 1.0 / C

    def _for_each(self, C: Any, value: Any) -> Any:
        if np.ndim(C) == 0:
            return value(float(C))
        return np.array([value(float(c)) for c in np.asarray(C)])

    def __len__(self) -> int:
        return self.lam.size

    def __repr__(self) -> str:
        proved = "" if self.n_unproved or not self._segments else f"; largest relative gap {self.proved.gap:.1e}"
        return (
            f"Path({self.status}: C from {self.C[0]:g} to {self.C[-1]:g}, {count(self.lam.size, 'breakpoint')}, "
            f"{count(self.n_events, 'event')}, at most {self.n_free.max() if self._segments else 0} of "
            f"{count(self.points.rows.size)} distinct points on the margin{proved})"
        )

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_path

        return of_path(self)

    # Storing.

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the Gram matrix as arrays: what changes at each event, and the elbow of each segment.

        Returns
        -------
        dict of str to array
            What ``from_dict`` takes.
        """
        sizes = np.array([s.points.size for s in self._segments])
        empty = [np.zeros(0)]
        joined = [np.concatenate(empty + [getattr(s, name) for s in self._segments]) for name in ("points", "u", "v")]
        return {
            "y": self.y, "rows": self.points.rows, "group": self.points.group, "weight": self.points.weight,
            "centre_products": self.centre_products,
            "squared_centre": self.squared_centre, "share": self.points.share, "norm": self.norm,
            "start": self.start, "lam": self.lam, "status": self.status, "sizes": sizes,
            "elbow": joined[0].astype(np.int64), "u": joined[1], "v": joined[2],
            **{name: np.array([getattr(s, name) for s in self._segments]) for name in ("u0", "v0")},
            "origin": np.array([s.anchor for s in self._segments]),
            "before": np.array(self._before, dtype=np.int64), **asdict(self.counts),
            "proved": len(self._segments) - self.n_unproved, "largest_gap": self.proved.gap,
            "largest_gap_C": self.proved.C,
            "reached": np.zeros(0) if self.reached is None else self.reached, "digest": self.digest or digest_of(self.X),
            "event_lam": np.array([t.lam for t in self._transitions]),
            "event": np.array([t[1:] for t in self._transitions], dtype=np.int64).reshape(-1, 3),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: dict[str, Any], gram: Gram | None = None) -> "Path":
        """Return the path that ``to_dict`` described.

        Parameters
        ----------
        data : dict
            What ``to_dict`` returned.
        gram : Gram, optional
            Kernel matrix of the distinct points; without it nothing can be certified.

        Returns
        -------
        Path
            The same path.
        """
        points = Distinct(*(np.asarray(data[name]) for name in ("rows", "group", "weight", "share")))
        path = cls(np.asarray(data["y"]), points, np.asarray(data["start"]), 1.0, gram)
        path.lam, path.centre_products = np.asarray(data["lam"]), np.asarray(data["centre_products"])
        path.squared_centre, path._norm = float(data["squared_centre"]), np.asarray(data["norm"])
        path.counts = Counts(**{name: type(value)(data[name]) for name, value in asdict(Counts()).items()})
        edges = np.concatenate([[0], np.cumsum(data["sizes"])])
        parts = [slice(a, b) for a, b in pairwise(edges)]
        elbow, u, v = (np.asarray(data[name]) for name in ("elbow", "u", "v"))
        path._segments = [
            Segment(elbow[s], u[s], v[s], *(float(value) for value in rest))
            for s, *rest in zip(parts, *(np.asarray(data[name]) for name in ("u0", "v0", "origin")), strict=True)
        ]
        path._before = [int(k) for k in np.asarray(data["before"])]
        path._transitions = [
            Transition(float(lam), *(int(k) for k in row))
            for lam, row in zip(np.asarray(data["event_lam"]), np.asarray(data["event"]), strict=True)
        ]
        path._proved = int(data["proved"])
        path._largest = LargestGap(float(data["largest_gap"]), float(data["largest_gap_C"]))
        path.reached = np.asarray(data["reached"]) if np.size(data["reached"]) else None
        path.digest = str(data["digest"])
        return path.seal(str(data["status"]))

    def save(self, file: str | File) -> None:
        """Write the path to a compressed NumPy file.

        Parameters
        ----------
        file : str or path
            Its name; ".npz" is added if that is missing.
        """
        write_arrays(file, self.to_dict(), "path")

    @classmethod
    def load(cls, file: str | File, gram: Gram | None = None) -> "Path":
        """Read a path that ``save`` wrote.

        Parameters
        ----------
        file : str or path
            Its name.
        gram : Gram, optional
            Kernel matrix of the distinct points, the rows ``X[path.points.rows]``; without it nothing can be certified.

        Returns
        -------
        Path
            The same path.
        """
        data = read_arrays(file, "path")
        n = len(data["y"])
        if gram is not None and (not isinstance(gram, Gram) or gram.n != n):
            found = f"that of {gram.n}" if isinstance(gram, Gram) else type(gram).__name__
            raise ValueError(
                f"gram must be the Gram of the {n} distinct points, Gram(X[path.points.rows], kernel); got {found}."
            )
        path = cls.from_dict(data, gram)
        if gram is not None:
            path._check_gram()
        return path

    def _check_gram(self) -> None:
        """Refuse a kernel matrix with which the path is not what it was proved to be."""
        if self._segments and not self.certificate_at(self.C[-1]).relative_gap <= self._largest_expected:
            raise ValueError(
                "With this gram the path is not optimal: it was made with other points, in another order, or with another "
                "kernel. It takes Gram(X[path.points.rows], kernel)."
            )

    @property
    def _largest_expected(self) -> float:
        """The relative gap a loaded path may have at some C: that it was proved to have, and rounding."""
        return max(LOADED, 10.0 * self.proved.gap)


def digest_of(X: Any) -> str:
    """Return a few bytes that tell points from others; sparse and dense form give the same."""
    if X is None:
        return ""
    rows = X.toarray() if sp.issparse(X) else np.ascontiguousarray(X)
    return hashlib.blake2b((rows + 0.0).tobytes(), digest_size=16).hexdigest()
