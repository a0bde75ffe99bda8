"""Path: breakpoints, events, and on every segment the coefficients of the elbow, from which the rest follows."""

import hashlib
import math
import sys
import warnings
from bisect import bisect_left
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
from zerogap.path.engine import ELBOW, Counts, Engine, Log, Segment, Transition
from zerogap.path.family import Family
from zerogap.path.proof import BLOCK, LargestGap, Piece, Proof, Stacked
from zerogap.path.solution_set import SolutionSet, solutions
from zerogap.path.store import Segments
from zerogap.precision import dot, products, with_sum_zero
from zerogap.problem import Certificate, DualProblem
from zerogap.storage import kind_of, read_arrays, write_arrays
from zerogap.wording import count

PRECISE_ABOVE = 1e-11  # a relative gap above this is computed again in twice the precision, if rounding is most of it
FAR = 1e-7  # relative gap of f(x) about an origin far from the points, above which there is a warning
LOADED = 1e-6  # relative gap above which a path that was loaded cannot be one of the kernel matrix it is given
ON_MARGIN = 1e-10  # a decision value this near to its margin is on it: what a path leaves between events at one C
SAME_LAM = 1e-15  # relative: a few roundings of lam = 1 / C
AT_BREAKPOINT = 1e-10  # relative: nearer to a breakpoint than ``tolerances.TIE`` its order with an event is not known
SAME_SIZE = 1e-12  # of all weight: sums of |b| that differ by rounding only
BEYOND_END = 1e-12  # relative: a C outside the path by no more than this was rounded on its way, and is its end
SAME_WEIGHT = 1e-12  # of all weight: a difference between the classes that is the rounding of a sum
LEAST_DISTANCE = (
    1e-15  # squared, of the largest kernel value: what rounding leaves of zero, where all points are the same
)
SETS = {0: "right", 1: "elbow", 2: "left"}


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
        Breakpoints, ascending: both ends, the C of events, and those where a bias that is not unique has a kink.
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
    largest_gap_as_read_ : float
        A bound on that of coefficients as they are read, with their rounding.
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

    parameter, end_name = "C", "C_max"  # what lam stands for, and the name of the end that is asked for
    begin_name = "C_min"
    domain: tuple[float, float, str] = (5e-324, sys.float_info.max, "above zero")  # the least, the largest, in words
    # What makes such paths, what solves at one C and at all, and where fewer digits are needed.
    function, estimator, path_estimator, easier = "svm_path", "SVC", "SVCPath", "a smaller C"
    rows_of_data = "X, y"  # what that function takes
    sets = SETS
    event_type: Any = Event
    kind = "path"  # of the files that hold one
    begins_at_rest = False  # on the constant segment all points are at zero, and none on a margin

    def __init__(self, family: Family, points: Distinct, status: np.ndarray, lam: float, gram: Gram | None = None):
        self.family, self.points, self.gram = family, points, gram
        self.y = y = family.y  # -1/+1 over the distinct points
        self.target = family.target1  # what the data give for each of them
        self.start = status.astype(np.int8)  # sets of the distinct points at the start
        self.lam = np.array([lam])
        self.status = "started"  # or "complete", "max_events", "max_time", "interrupted"
        self.X: Any = None  # the distinct points, to compare with when the path is resumed; None if it was loaded
        self.reached: np.ndarray | None = None  # coefficients at C[0], where a limit fell before they were optimal
        self.counts = Counts()
        self.engine: Engine | None = None  # where the path can be gone on with
        self.unit = 1.0  # of the engine's lam
        self._segments = Segments()
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

    # What lam means.

    def value_of(self, lam: Any) -> Any:
        """Return the C of lam."""
        return 1.0 / lam

    def lam_of(self, value: Any) -> Any:
        """Return the lam of C."""
        return 1.0 / value

    def scale_at(self, value: float) -> float:
        """Return beta over the scaled coefficients b, and f over the scaled decision values."""
        return value

    def shift(self) -> float:
        """Return what decision values have beside the scaled ones."""
        return 0.0

    def problem_at(self, value: float) -> DualProblem:
        """Return the problem that is solved there."""
        return DualProblem.hinge(
            self._known_gram(), self.y, value, sample_weight=self.points.weight, fit_intercept=self.fit_intercept
        )

    @property
    def fit_intercept(self) -> bool:
        """Whether the bias is free; else it is zero."""
        return self.family.has_bias

    def floor_at(self, value: float) -> float:
        """Return what gaps are relative to, beside the primal objective; see ``Family.floor``."""
        if self.family.is_over_C and not self.family.is_flat:
            return 0.0
        size = float(np.abs(self._known_gram().diagonal).max()) or 1.0  # with all points at the origin any will do
        return self.scale_at(value) ** 2 * self.family.floor(self.lam_of(value), size)

    def relative_gap(self, certificate: Certificate, value: float) -> float:
        """Return the relative gap that the certificate of a solution tells of."""
        floor = self.floor_at(value)
        if floor == 0.0:
            return certificate.relative_gap
        return (certificate.gap + certificate.rounding) / (abs(certificate.primal) + floor)

    def words(self, value: float) -> str:
        """Return where that is."""
        return f"{self.parameter}={value:g}"

    def constant_from(self, gram: Gram) -> float:
        """Return a lam above which only the bias depends on it, in the units of ``gram``; zero if all of the path is like that.

        There the margin holds points of one class only.  With points of both classes on their margins
        2 lam = F_i - F_j = <phi_i - phi_j, sum_k b_k phi_k>, and this is at most half the squared diameter of the points times
        sum |b|, that is times twice the lighter class's weight.
        With a bias of zero all points are at their caps there, as long as no y F is as large as lam.
        """
        K, w = gram.full(), self.points.weight
        if not self.fit_intercept:
            margin = float((self.y * (K @ (self.y * w))).max())
            return 2.0 * margin if margin > LEAST_DISTANCE * np.abs(gram.diagonal).max() * w.sum() else 0.0
        distance = np.maximum(gram.diagonal + K[0, 0] - 2.0 * K[0], LEAST_DISTANCE * np.abs(gram.diagonal).max())
        weight = min(w[self.y > 0].sum(), w[self.y < 0].sum())
        return float(4.0 * distance.max() * weight)  # twice what it need be

    def constant_segment(self, engine: Engine) -> Segment:
        """Return the solution above the lam where an engine begins: b stays, and the bias keeps one class on its margin."""
        E, b, bias = engine.current_solution()
        if not self.fit_intercept:
            return Segment(E, b, np.zeros(E.size), 0.0, 0.0, engine.lam)
        # The heavier class is the one on its margin; with equal weights all points are capped, and either will do.
        w = self.points.weight
        excess = float(w @ self.y)
        sign = np.sign(excess) if abs(excess) > SAME_WEIGHT * w.sum() else (self.y[E[0]] if E.size else 1.0)
        on_elbow = self.start[E] == ELBOW
        return Segment(E[on_elbow], b[on_elbow], np.zeros(int(on_elbow.sum())), bias, float(sign), engine.lam)

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
        if lam < self.end and self.value_of(lam) != self.value_of(self.end):  # two lam may have the same C
            if self._goes_on(segment):  # one line is one segment
                self._segments.pop()
                self._before.pop()
                self._tail.pop()
            # A proof may read along on another thread: a segment comes last, when all else of it is there.
            self._before.append(len(self._transitions))
            self._tail.append(lam)
            self._segments.append(segment)
        self.note(transitions)

    def add_all(self, log: Log) -> None:
        """Append segments of some length, with one transition at the end of each."""
        made = log.transitions()
        self.add(log.segment(0), made[0].lam, made[:1])
        self._before.extend(range(len(self._transitions), len(self._transitions) + len(made) - 1))
        self._tail.extend(log.numbers[1:, 0].tolist())
        self._transitions.extend(made[1:])
        self._segments.extend_by(log, 1)

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
        first, last = (self.words(self.value_of(lam)) for lam in (self.lam[0], self.lam[-1]))
        return f"ends at {last}" if self.has_segments else f"has not got beyond its start at {first}"

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
                self._proof = self._begin_proof(self._proved)  # the first not yet proved
            first = len(self._segments) - self.n_unproved
            self._follow(self._proof, first, self._proved)

    def _follow(self, proof: Proof, first: int, begun: int) -> None:
        """Let a proof go along the next block of segments."""
        stop = min(first + BLOCK, len(self._segments))
        done = self._before[max(first - 1, begun)]  # earlier transitions are where the proof begins
        moves = [(t.point, t.target) for t in self._transitions[done : self._before[stop - 1]]]
        if proof.may_cut(len(moves)):
            proof.follow(self._pieces(first, stop, begun))
            return
        lam = self._edges(first, stop)
        edges, E, u, v, numbers = self._segments.stack(first, stop)
        counts = np.array([0, *(k - done for k in self._before[first:stop])])
        made = np.array(moves, dtype=np.int64).reshape(-1, 2)
        proof.follow_block(Stacked(np.stack([lam[:-1], lam[1:], *numbers.T]), edges, E, u, v, counts, made))

    def _begin_proof(self, k: int) -> Proof:
        """Return a proof that has come to segment k."""
        gram, status, done = self._known_gram(), self.start.copy(), self._before[k]
        if len(self._moved) >= done:  # else it is growing
            status = self.sets_at(k)
        else:
            for t in self._transitions[:done]:
                status[t.point] = t.target
        segment, b = self._segments[k], self.family.at_rest(status)
        b[segment.points] = segment.coefficients(self._edge(k))
        return Proof(
            gram.full(),
            self.family,
            status,
            b,
            is_positive=gram.is_positive,
            kernel_error=gram.distance_from_positive(),
        )

    def _replace_segments(self, parts: dict[int, list[tuple[float, Segment]]]) -> None:
        """Put parts in the place of some segments of a sealed path, where each begins and with the same b, and prove them.

        Segments that were not proved yet are left for later.
        """
        if not parts:
            return
        proved, more = len(self._segments) - self.n_unproved, 0
        again: list[int] = []
        for k in sorted(parts):
            if k < proved:
                again += range(k + more, k + more + len(parts[k]))
                more += len(parts[k]) - 1
        times, begins = np.ones(len(self._segments) + 1, dtype=np.int64), self.lam
        times[list(parts)] = list(map(len, parts.values()))
        self.lam, first = np.repeat(begins, times), np.cumsum(times) - times
        for k, own in parts.items():
            self.lam[first[k] : first[k] + len(own)] = [begin for begin, _ in own]
        self._before = np.repeat(self._before, times[:-1]).tolist()
        self._segments = self._segments.replaced({k: [part for _, part in own] for k, own in parts.items()})
        self._proved += more  # no matter whether the proof or an earlier one has come by
        self._prove_anew(again)

    def _prove_anew(self, some: list[int]) -> None:
        """Prove some segments apart from all others."""
        if not some:
            return
        proof, done, pieces = self._begin_proof(some[0]), self._before[some[0]], []
        for k in some:
            made = self._transitions[done : self._before[k]]
            pieces.append(Piece(float(self.lam[k]), float(self.lam[k + 1]), self._segments[k], made))
            done = self._before[k]
        proof.follow(pieces)
        if proof.largest.gap > self._largest.gap:
            self._largest = LargestGap(proof.largest.gap, float(self.value_of(proof.largest.C)))

    def _edge(self, k: int) -> float:
        return float(self.lam[k]) if k < self.lam.size else self._tail[k - self.lam.size]

    def _edges(self, first: int, stop: int) -> np.ndarray:
        """Return the lam at both ends of some segments."""
        size = self.lam.size
        return np.concatenate([self.lam[first : stop + 1], self._tail[max(first - size, 0) : max(stop + 1 - size, 0)]])

    def _pieces(self, first: int, stop: int, begun: int) -> list[Piece]:
        lam = self._edges(first, stop).tolist()
        # Earlier transitions are where the proof begins.
        before = pairwise([self._before[max(first - 1, begun)], *self._before[first:stop]])
        return [
            Piece(begin, end, segment, self._transitions[a:b])
            for (begin, end), segment, (a, b) in zip(pairwise(lam), self._segments[first:stop], before, strict=True)
        ]

    @property
    def proved(self) -> LargestGap:
        """The largest gap of the segments that have been proved so far."""
        if self._proof is None or self._proof.largest.gap <= self._largest.gap:
            return self._largest
        gap, lam = self._proof.largest
        return LargestGap(gap, float(self.value_of(lam)))

    @property
    def largest(self) -> LargestGap:
        """The largest relative duality gap over every C of the path, in closed form, and a C that has it."""
        self.check_not_empty()
        if self.n_unproved:
            with limits.unlimited():
                self.prove()
        known = self.proved
        # Without any gap every C has the largest; and the proof may have gone a little further than the path.
        lam = max(self.lam_of(known.C), self.lam[-1]) if known.gap > 0.0 else self.lam[0]
        return LargestGap(known.gap, float(known.C if lam == self.lam_of(known.C) else self.value_of(lam)))

    @property
    def largest_gap_(self) -> float:
        """The largest relative duality gap over every C of the path: its bound, not a sample of it.

        Computed from the stored segments and the kernel matrix; what rounding can have done to it there is counted.  What
        rounding does besides to coefficients that are read at one C, ``largest_gap_as_read_`` counts as well.
        """
        return self.largest.gap

    @property
    def largest_gap_as_read_(self) -> float:
        """A bound on the relative duality gap of the coefficients as they are read, in float64, at any C of the path.

        Every C has roundings of its own, and this is the worst they can add up to: far more than what they do as a rule, where
        C times a kernel value is large.  For kernel values as they are; a certificate counts their rounding, too.  It is
        computed when it is asked for, and takes as long as a proof.
        """
        self.check_not_empty()
        with limits.unlimited():
            proof = self._begin_proof(0)
            proof.is_read, proof.centre = True, self.shift() / self.scale_at(self.value_of(1.0))
            for first in range(0, len(self._segments), BLOCK):
                self._follow(proof, first, begun=0)
        return proof.largest.gap

    # Reading.

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

    def _coefficients_at(self, C: float, *, on_few: bool = False) -> np.ndarray:
        """Return coefficients over the rows: duplicates share theirs by weight, or as few as may be have them."""
        points, beta, scale = self.points, self.beta_at(C), self.scale_at(C)
        cap = scale * np.where(points.group >= 0, points.share * self.family.w[points.group], 0.0)
        rows = points.on_few(beta, cap) if on_few else points.spread(beta, C if self.family.is_over_C else 0.0)
        if not self.fit_intercept:
            return rows
        return with_sum_zero(rows, cap, *self._visibility(C, points.group), total=self._total_at(C))

    def _total_at(self, C: float) -> float:
        """Return what the coefficients sum to."""
        return 0.0

    def beta_at(self, C: float) -> np.ndarray:
        """Return beta over the distinct points, within the box; what rounding left of sum(beta) is put right."""
        lam, scale, family = self._lam(C), self.scale_at(C), self.family
        segment, status = self._segments[k := self._position(lam)], self.sets_at(k)
        beta = scale * family.at_rest(status)
        # On the last segment u is zero and beta is v itself, without any rounding, however large C is.
        is_plain = segment.anchor == 0.0 and family.is_over_C
        beta[segment.points] = (
            scale * segment.u + self.value_of(1.0) * segment.v if is_plain else scale * segment.coefficients(lam)
        )
        lower, upper = family.box
        if (
            family.is_two_sided
        ):  # on its own side of zero: past it by rounding, a coefficient would cost the width of the tube
            lower, upper = np.where(status > 0, 0.0, lower), np.where(status < 0, 0.0, upper)
        beta = np.clip(beta, scale * lower, scale * upper)
        if not self.fit_intercept:
            return beta
        is_elbow = np.zeros(beta.size, dtype=bool)  # on their margins, where a change of a coefficient costs nothing
        is_elbow[segment.points] = True
        cap, total = scale * family.w, self._total_at(C)
        return with_sum_zero(beta, cap, *self._visibility(C), total=total, rather=is_elbow)

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
        several = [c for part in self._chunks(np.atleast_1d(C)) for c in self.certificates(part)]
        return several[0] if np.ndim(C) == 0 else several

    def _known_gram(self) -> Gram:
        if self.gram is None:
            raise ValueError(
                "This path was loaded without its data, so nothing can be certified. Set path.gram to the Gram matrix of the "
                "distinct points, X[path.points.rows], with the kernel it was made with."
            )
        return self.gram

    def certificates(
        self, C: np.ndarray, *, precisely: bool = True, from_data: bool = True, betas: list[np.ndarray] | None = None
    ) -> list[Certificate]:
        """Certify a few C at once, so that the kernel matrix is read once for all of them.

        Those of which rounding is the larger part are computed again in twice the precision, ``from_data`` with their kernel
        values.  ``betas`` are the coefficients there, if they are known.
        """
        gram = self._known_gram()
        problems = [self.problem_at(float(c)) for c in C]
        betas = [self.beta_at(float(c)) for c in C] if betas is None else betas
        betas = [np.clip(beta, p.lower, p.upper) for beta, p in zip(betas, problems, strict=True)]
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
        values = self.value_of(self.lam) if C is None else np.atleast_1d(C)
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

    def sets_at(self, k: int | None) -> np.ndarray:
        """Return the set of every distinct point on segment k, or behind the last one: 0 right, 1 elbow, 2 left.

        Those of a regression with a tube are negative on its lower side.
        """
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
                f"This path has no segment yet: it ended ({self.status}) before its first one at "
                f"{self.words(self.value_of(self.lam[0]))} was found. Go on with {self.function}(..., resume=path)."
            )

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
        if np.ndim(C) == 0:
            return value(float(C))
        return np.array([value(float(c)) for c in np.asarray(C)])

    def __len__(self) -> int:
        return self.lam.size

    def __repr__(self) -> str:
        proved = "" if self.n_unproved or not self._segments else f"; largest relative gap {self.proved.gap:.1e}"
        ends = self.value_of(self.lam[[0, -1]])
        return (
            f"{type(self).__name__}({self.status}: {self.parameter} from {ends[0]:g} to {ends[1]:g}, "
            f"{count(self.lam.size, 'breakpoint')}, "
            f"{count(self.n_events, 'event')}, at most {self.n_free.max() if self._segments else 0} of "
            f"{count(self.points.rows.size)} distinct points on the margin{proved})"
        )

    def plot(self, show: str = "all", *, rows: Any = None, ax: Any = None) -> Any:
        """Draw the path: the trajectories of coefficients, the sets of points as bands, the size of the elbow.

        Coefficients are drawn as shares of C, so that those at the cap are at one, or at their weights.

        Parameters
        ----------
        show : str, default "all"
            "coefficients", "sets", "elbow", or all three one below another.
        rows : array of int, optional
            Rows of the data whose coefficients are drawn; by default the 150 that move most.
        ax : matplotlib axes, optional
            Where to draw, three of them for all; by default in a new figure.

        Returns
        -------
        matplotlib axes, or array of three
            The drawing.
        """
        from zerogap.plots import plot_path

        return plot_path(self, show, rows=rows, ax=ax)

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_path

        return of_path(self)

    def explore(
        self, file: str | File | None = None, *, curve: Any = None, labels: Any = None, feature_names: Any = None,
        title: str | None = None,
    ) -> Any:  # fmt: skip
        """Show the solution at every C, epsilon or nu: a page with a slider, or without a file a widget in a notebook.

        Parameters
        ----------
        file : str or path, optional
            The page to write, such as "page.html"; it needs nothing else, and no network.  Without it a widget is returned.
        curve : ScoreCurve or ErrorCurve, optional
            The score on held-out data, drawn with its best intervals.
        labels : tuple of str, optional
            Names of the negative and of the positive class.
        feature_names : list of str, optional
            Names of the features.
        title : str, optional
            Title of the page.

        Returns
        -------
        pathlib.Path or widget
            The file; or the widget, whose ``C`` is the one under the slider, or whose ``epsilon`` or ``nu``.
        """
        from zerogap.explorer.page import of_paths, shown

        negative, positive = labels or ("class -1", "class +1")
        names = [(str(negative), str(positive))]
        return shown(of_paths([self], names, curve=curve, feature_names=feature_names, title=title), file)

    # Storing.

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the Gram matrix as arrays: what changes at each event, and the elbow of each segment.

        Returns
        -------
        dict of str to array
            What ``from_dict`` takes.
        """
        edges, elbow, u, v, numbers = self._segments.stack()
        return {
            "kind": self.kind, "fit_intercept": self.fit_intercept,
            "y": self.y, "rows": self.points.rows, "group": self.points.group, "weight": self.points.weight,
            "centre_products": self.centre_products,
            "squared_centre": self.squared_centre, "share": self.points.share, "norm": self.norm,
            "start": self.start, "lam": self.lam, "status": self.status, "sizes": np.diff(edges),
            "elbow": elbow, "u": u, "v": v, "u0": numbers[:, 0], "v0": numbers[:, 1], "origin": numbers[:, 2],
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
        kind = str(data.get("kind", "path"))  # paths of two classes were stored without it
        if kind != cls.kind:
            raise ValueError(f"These are the arrays of a {kind}; a {cls.kind} was asked for.")
        points = Distinct(*(np.asarray(data[name]) for name in ("rows", "group", "weight", "share")))
        path = cls._bare(data, points, gram)
        path.lam, path.centre_products = np.asarray(data["lam"]), np.asarray(data["centre_products"])
        path.squared_centre, path._norm = float(data["squared_centre"]), np.asarray(data["norm"])
        path.counts = Counts(**{name: type(value)(data[name]) for name, value in asdict(Counts()).items()})
        edges = np.concatenate([[0], np.cumsum(data["sizes"])])
        parts = [slice(a, b) for a, b in pairwise(edges)]
        elbow, u, v = (np.asarray(data[name]) for name in ("elbow", "u", "v"))
        path._segments = Segments(
            Segment(elbow[s], u[s], v[s], *(float(value) for value in rest))
            for s, *rest in zip(parts, *(np.asarray(data[name]) for name in ("u0", "v0", "origin")), strict=True)
        )
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

    @classmethod
    def _bare(cls, data: dict[str, Any], points: Distinct, gram: Gram | None) -> "Path":
        """Return the path without its segments."""
        family = Family.hinge(np.asarray(data["y"]), points.weight, has_bias=is_bias_free(data))
        return cls(family, points, np.asarray(data["start"]), 1.0, gram)

    def save(self, file: str | File) -> None:
        """Write the path to a compressed NumPy file, which ``Path.load`` reads.

        Parameters
        ----------
        file : str or path
            Its name; ".npz" is added if that is missing.
        """
        write_arrays(file, self.to_dict(), self.kind)

    @classmethod
    def load(cls, file: str | File, gram: Gram | None = None) -> "Path":
        """Read a path that ``save`` wrote: ``Path.load`` one of any kind, other classes one of their own.

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
        kind = cls._kind_in(file)
        data = read_arrays(file, kind.kind)
        n = len(data["y"])
        if gram is not None and (not isinstance(gram, Gram) or gram.n != n):
            found = f"that of {gram.n}" if isinstance(gram, Gram) else type(gram).__name__
            raise ValueError(
                f"gram must be the Gram of the {n} distinct points, Gram(X[path.points.rows], kernel); got {found}."
            )
        path = kind.from_dict(data, gram)
        if gram is not None:
            path._check_gram()
        return path

    @classmethod
    def _kind_in(cls, file: str | File) -> type["Path"]:
        """Return the class that wrote a file, if it is one of these; else this one, which will say so."""
        if cls is not Path:
            return cls
        kinds = {one.kind: one for one in cls.__subclasses__() if one.kind != cls.kind}
        return kinds.get(kind_of(file), cls)

    def _check_gram(self) -> None:
        """Refuse a kernel matrix with which the path is not what it was proved to be."""
        if self.has_segments and not self.is_optimal_at_end():
            raise ValueError(
                "With this gram the path is not optimal: it was made with other points, in another order, or with another "
                "kernel. It takes Gram(X[path.points.rows], kernel)."
            )

    def is_optimal_at_end(self) -> bool:
        """Whether the gap where the path ends is what it was proved to be, but for rounding."""
        end = self.value_of(self.lam[-1])
        return self.relative_gap(self.certificate_at(end), end) <= max(LOADED, 10.0 * self.proved.gap)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the engine and the proof, which hold views of arrays that a copy would not be; both can be begun anew."""
        proved = len(self._segments) - self.n_unproved
        return {**self.__dict__, "engine": None, "_proved": proved, "_largest": self.proved, "_proof": None}

    # The share nu of a nu-SVC in place of C.

    def C_of_nu(self, nu: float) -> float:
        """Return the C at which the SVM is the nu-SVC of a given nu.

        nu is sum |beta| / (C sum w), an upper bound on the share of points within the margin and a lower one on that of support
        vectors.  It falls as C grows, on a segment on a straight line in 1/C: so one equation tells the C.

        Parameters
        ----------
        nu : float
            Above 0 and at most 2 min(W+, W-) / (W+ + W-), W+ and W- being the weights of the classes; 1 with a fixed bias.

        Returns
        -------
        float
            Where nu stays the same from a C to a larger one, as it does while points of one class only are on their margins,
            the smallest of these; at the largest nu of all, where they begin at zero, the C at which the path begins.

        Raises
        ------
        ValueError
            If no C has this nu, or none that the path has come to; it says which C would have it.
        """
        return 1.0 / self._lam_of_nu(nu)[0]

    def _lam_of_nu(self, nu: float) -> tuple[float, float]:
        """Return the largest and the smallest lam at which sum |b| is a share nu of all weight."""
        self.check_not_empty()
        nu, total, last = validation.check_nu(nu), float(self.points.weight.sum()), len(self._segments)
        wanted, slack = nu * total, SAME_SIZE * total

        def size(k: int) -> float:
            return self._size_on(min(k, last - 1), self.lam[k])

        if wanted > size(0) + slack:
            raise ValueError(self._nu_too_large(nu, size(0) / total))
        if wanted < size(last) - slack:
            raise ValueError(self._nu_too_small(nu, size(last) / total))
        first = bisect_left(range(last + 1), True, key=lambda k: size(k) <= wanted + slack)
        beyond = bisect_left(range(last + 1), True, key=lambda k: size(k) < wanted - slack)
        begin = self._lam_of_size(first - 1, wanted) if first > 0 else float(self.lam[0])
        end = self._lam_of_size(beyond - 1, wanted) if beyond <= last else float(self.lam[last])
        return begin, min(begin, end)

    def _size_on(self, k: int, lam: float) -> float:
        """Return sum |b| at lam by the lines of segment k."""
        segment, sets = self._segments[k], self.sets_at(k)
        a = np.abs(self.family.at_rest(sets))
        a[segment.points] = self._sides_on(k, sets) * segment.coefficients(lam)
        return float(a.sum())

    def _sides_on(self, k: int, sets: np.ndarray | None = None) -> np.ndarray:
        """Return the signs of the coefficients of segment k."""
        points, sets = self._segments[k].points, self.sets_at(k) if sets is None else sets
        return np.where(sets[points] < 0, -self.y[points], self.y[points])

    def _lam_of_size(self, k: int, size: float) -> float:
        """Return the lam of segment k at which sum |b| is this; between its ends."""
        segment = self._segments[k]
        slope = float(self._sides_on(k) @ segment.v)
        lam = segment.anchor + (size - self._size_on(k, segment.anchor)) / slope if slope else self.lam[k]
        return float(np.clip(lam, self.lam[k + 1], self.lam[k]))

    def _nu_too_large(self, nu: float, largest: float) -> str:
        weight = self.points.weight
        lighter = min(float(weight[self.y > 0].sum()), float(weight[self.y < 0].sum()))
        of_classes = 2.0 * lighter / float(weight.sum()) if self.fit_intercept else 1.0
        if nu > of_classes * (1.0 + SAME_SIZE):
            return (
                f"specified nu is infeasible: it is at most {of_classes:g}, twice the share of the lighter class; got "
                f"nu={nu:g}. Choose a smaller one, or weights with which the classes weigh the same."
            )
        return (
            f"This path begins at C={self.C[0]:g}, where nu is {largest:g}; nu={nu:g} is that of a smaller C. Follow it from "
            "a smaller C_min."
        )

    def _nu_too_small(self, nu: float, least: float) -> str:
        C = self._C_beyond(nu)
        ends = f"nu={nu:g} is that of a C beyond the end of this path, C={self.C[-1]:g}, where nu is {least:g}. "
        if C is None:
            return (
                f"{ends}As its last segment goes nu stays above {self._size_on(-1, 0.0) / self.points.weight.sum():g} however "
                "large C is, and where classes overlap some nu are never reached. Choose a larger nu, or see if events to come "
                "change that: go on with svm_path(..., resume=path) to a larger C_max."
            )
        is_hard = self._size_on(-1, 0.0) <= SAME_SIZE * float(self.points.weight.sum())
        how = "nu falls as 1/C from there on" if is_hard else "if no further point changes sets"
        return f"{ends}It is reached at C={C:g} ({how}): go on with svm_path(..., resume=path, C_max={1.01 * C:.3g})."

    def _C_beyond(self, nu: float) -> float | None:
        """Return the C beyond the end at which the last segment, if it went on, would have this nu; None if it never has."""
        segment = self._segments[-1]
        slope = float(self.y[segment.points] @ segment.v)
        missing = nu * float(self.points.weight.sum()) - max(self._size_on(-1, 0.0), 0.0)
        return slope / missing if missing > SAME_SIZE * slope * float(self.lam[-1]) else None


def is_bias_free(data: dict[str, Any]) -> bool:
    """Whether the arrays are those of a path with a free bias; older ones do not say so, and all are."""
    return bool(data.get("fit_intercept", True))


def digest_of(X: Any) -> str:
    """Return a few bytes that tell points from others; sparse and dense form give the same."""
    if X is None:
        return ""
    rows = X.toarray() if sp.issparse(X) else np.ascontiguousarray(X)
    return hashlib.blake2b((rows + 0.0).tobytes(), digest_size=16).hexdigest()
