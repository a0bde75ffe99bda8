"""What a path records as it grows: segments, changes of sets, and the proof that goes along."""

import sys
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE
from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.path.block import Stacked
from zerogap.path.engine import ELBOW, Counts, Engine, Log, Segment, Transition
from zerogap.path.family import Family
from zerogap.path.proof import BLOCK, ExactProduct, LargestGap, Piece, Proof
from zerogap.path.store import Segments
from zerogap.precision import products
from zerogap.problem import Certificate, DualProblem

SAME_LAM = 1e-15  # relative: a few roundings of lam = 1 / C
SAME_WEIGHT = 1e-12  # of all weight: a difference between the classes that is the rounding of a sum
LEAST_DISTANCE = (
    1e-15  # squared, of the largest kernel value: what rounding leaves of zero, where all points are the same
)
# A proof certifies a solution whenever lam has fallen so far since the last one, or after so many segments.
CERTIFIED_APART, CERTIFIED_AFTER = 8.0, 20 * BLOCK
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


class Record:
    """The segments of a path, what lam means on it, and the largest gap of those that have been proved."""

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
        self._first_product: ExactProduct | None = None  # of the first b that one was asked for
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
        lower, upper = (value * bound for bound in self.family.box)
        total = 0.0 if self.fit_intercept else None
        return DualProblem(self._known_gram(), self.y, lower, upper, ridge=np.zeros(self.y.size), total=total)

    @property
    def fit_intercept(self) -> bool:
        """Whether the bias is free; else it is zero."""
        return self.family.has_bias

    def floor_at(self, value: float) -> float:
        """Return what gaps are relative to, beside the primal objective; see ``Family.floor``."""
        if self.family.is_over_C and not self.family.is_flat:
            return 0.0
        size = float(np.abs(self._known_gram().diagonal).max()) or 1.0  # with all points at the origin any will do
        scale = self.scale_at(value)  # its square may be beyond float64
        return scale * (scale * self.family.floor(self.lam_of(value), size))

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

    def seal(self, status: str) -> Self:
        """Finish growing for now."""
        self.lam, self._tail, self.status = np.concatenate([self.lam, self._tail]), [], status
        self._moved = np.array([(t.point, t.target) for t in self._transitions], dtype=np.int64).reshape(-1, 2)
        return self

    def _cut_back(self, k: int) -> None:
        """Take segments from k on back from a sealed path, with their proof, so that it can be followed again from there."""
        done = self._before[k]
        self.lam, self.engine = self.lam[: k + 1], None
        del self._segments[k:], self._before[k:]
        del self._transitions[done if k else 0 :]
        self._proof, self._proved, self._largest = None, 0, LargestGap(0.0, np.nan)
        self.seal(self.status)

    def _copied_record(self) -> dict[str, Any]:
        """Return what ``_cut_back`` and growing again change, as it is now."""
        copies = {name: copy(getattr(self, name)) for name in ("_segments", "_before", "_transitions", "counts")}
        return {**self.__dict__, **copies}

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
        counts = np.array([done, *self._before[first:stop]]) - done
        made, lines = np.array(moves, dtype=np.int64).reshape(-1, 2), np.empty((5, stop - first))
        lines[0], lines[1], lines[2:] = lam[:-1], lam[1:], numbers.T
        proof.follow_block(Stacked(lines, edges, E, u, v, counts, made))
        if self.family.is_hinge and not proof.is_read:
            self._certify_on_the_way(proof, float(lam[-1]))

    def _certify_on_the_way(self, proof: Proof, lam: float) -> None:
        """Certify the solution where a block ends, now and then: its K b is known there, which takes longest."""
        next_lam, next_segment = proof.next_certificate
        if lam > next_lam and proof.done < next_segment:
            return
        C = float(self.value_of(lam))
        problem = self.problem_at(C)
        beta = np.clip(C * proof.b, problem.lower, problem.upper)
        now = problem.certify(beta, problem.target - C * (proof.F + proof.lost))
        proof.certified.append((lam, self.relative_gap(now, C)))
        proof.next_certificate = lam / CERTIFIED_APART, proof.done + CERTIFIED_AFTER

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
            is_whole=k == 0,
            product=self._product_of(b),
        )

    def _product_of(self, b: np.ndarray) -> ExactProduct:
        """Return K b, from that of another b, if it is known and not too far."""
        known, K = self._first_product, self._known_gram().full()
        is_near = known is not None and known.K is K and 2 * np.count_nonzero(b != known.b) < np.count_nonzero(b)
        found = known.copy() if is_near and known is not None else ExactProduct(K)
        found.move_to(b)
        if known is None:
            self._first_product = found.copy()
        return found

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
        for k in _bridged(some):
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

    def _certificates_on_the_way(self) -> list[tuple[float, float]]:
        """Return the lam and the relative gaps of what the proof has certified on its way, if it has gone all the way."""
        return self._proof.certified if self._proof is not None and self._proof.is_whole else []

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

        Every C has roundings of its own, that of its bias among them, and this is the worst they can add up to: far more than
        what they do as a rule, where C times a kernel value is large.  For kernel values as they are; a certificate counts
        their rounding, too.  It is computed when it is asked for, and takes as long as a proof.
        """
        self.check_not_empty()
        with limits.unlimited():
            proof = self._begin_proof(0)
            proof.is_read, proof.centre = True, self.shift() / self.scale_at(self.value_of(1.0))
            for first in range(0, len(self._segments), BLOCK):
                self._follow(proof, first, begun=0)
        return proof.largest.gap

    # What is known on each segment.

    def _known_gram(self) -> Gram:
        if self.gram is None:
            raise ValueError(
                "This path was loaded without its data, so nothing can be certified. Set path.gram to the Gram matrix of the "
                "distinct points, X[path.points.rows], with the kernel it was made with."
            )
        return self.gram

    def sets_at(self, k: int | None) -> np.ndarray:
        """Return the set of every distinct point on segment k, or behind the last one: 0 right, 1 elbow, 2 left.

        Those of a regression with a tube are negative on its lower side.
        """
        status, done = self.start.copy(), None if k is None else self._before[k]
        status[self._moved[:done, 0]] = self._moved[:done, 1]  # of several changes of a point the last one stays
        return status

    def check_not_empty(self) -> None:
        """Raise if there is no solution to be read."""
        if not self._segments:
            raise ValueError(
                f"This path has no segment yet: it ended ({self.status}) before its first one at "
                f"{self.words(self.value_of(self.lam[0]))} was found. Go on with {self.function}(..., resume=path)."
            )


def _bridged(some: list[int]) -> Iterator[int]:
    """Yield some segments, and those between two of them that are near: a proof goes along more easily than it jumps."""
    for k, following in pairwise([*some, some[-1] + 1]):
        yield from range(k, following) if following - k <= BLOCK else (k,)
