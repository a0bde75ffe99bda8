"""The largest gap over every C, in closed form, against certificates at many C, and paths that are wrong somewhere."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from conftest import KINDS, points
from naive import UNIT, from_python
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from zerogap import SVC, Gram, Path, SVCPath, datasets, svm_path
from zerogap.kernels import as_kernel
from zerogap.limits import Exceeded
from zerogap.path import LP, Single, block, exactness, proof, proving
from zerogap.path.data import TwoClasses
from zerogap.path.engine import Segment, Transition
from zerogap.path.family import Family
from zerogap.path.following import follow
from zerogap.path.proof import BLOCK, LargestGap, Piece, Proof
from zerogap.path.store import Segments
from zerogap.solution import Status


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer_path(cancer):
    return svm_path(*cancer)


def proved_again(path):
    """The proof from the stored segments, begun anew."""
    path._proof, path._proved, path._largest = None, 0, LargestGap(0.0, np.nan)
    return path.largest


def random_C(path, count, seed=0):
    return 10 ** np.random.default_rng(seed).uniform(np.log10(path.C[0]), np.log10(path.C[-1]), count)


def gap_seen(path, C):
    """The largest gap at some C, without the bound on rounding: the proof is about the matrix of kernel values as it is."""
    return max(certificate.gap / certificate.primal for certificate in path.certificate_at(C))


def within_segments(path, seed=0):
    """A C within every segment, at a random place, and two hardly inside its ends."""
    rng = np.random.default_rng(seed)
    lam, end = path.lam[:-1], path.lam[1:]
    return [1.0 / (lam + t * (end - lam)) for t in (rng.random(lam.size), 1e-6, 1.0 - 1e-6)]


def test_a_proof_that_is_left_open_is_made_when_it_is_asked_for(cancer, cancer_path):
    X, y = cancer
    data = TwoClasses(X, y, as_kernel("rbf", "scale", 3, 0.0), None, True)
    path = follow(lambda: data.begin(1e-4), None, 1e3, Single(), None, None, False, prove=False)
    assert path.status == "complete"
    assert path.n_unproved == len(path._segments) == len(cancer_path._segments)
    assert path.largest == cancer_path.largest
    assert not path.n_unproved


@pytest.mark.parametrize("one_in", [8, pytest.param(1, marks=pytest.mark.long)])
def test_no_certificate_is_above_the_largest_gap(cancer_path, one_in):
    largest = cancer_path.largest
    assert largest.gap <= 1e-9
    assert cancer_path.C[0] <= largest.C <= cancer_path.C[-1]
    for C in (cancer_path.C, random_C(cancer_path, 300), *within_segments(cancer_path)):
        assert gap_seen(cancer_path, C[::one_in]) <= largest.gap + 1e-11  # the certificate's own rounding


def worst_on_a_grid(path, per_segment=150):
    """The largest gap by brute force: dense algebra in extended precision on a fine grid of every segment."""
    K, y, w = path.gram.full().astype(np.longdouble), path.y, path.points.weight
    worst = 0.0
    for k, (begin, end, segment, _) in enumerate(path.segments()):
        status = path.sets_at(k)
        for lam in begin + np.linspace(0.0, 1.0, per_segment) ** 2 * (end - begin):
            b = np.where(status == 2, y * w, 0.0)
            b[segment.points] = segment.coefficients(lam)
            b = y * np.clip(y * b, 0.0, w)
            bias = segment.bias(lam)
            F = K @ b + bias
            h = lam - y * F
            gap = np.maximum((w - y * b) * h, -y * b * h).sum() + abs(bias * b.astype(np.longdouble).sum())
            primal = 0.5 * b @ (F - bias) + (w * np.maximum(h, 0.0)).sum()
            worst = max(worst, float(gap / primal))
    return worst


def approximate(path, error, seed=0):
    """Disturb all lines of a path, and the bias: an approximate path with a gap worth the name."""
    rng = np.random.default_rng(seed)
    for k, segment in enumerate(path._segments):
        path._segments[k] = segment._replace(
            u=segment.u * (1.0 + error * rng.standard_normal(segment.u.size)),
            u0=segment.u0 + error * rng.standard_normal(),
        )
    return path


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("error", [1e-3, pytest.param(1e-6, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [pytest.param("plain", marks=pytest.mark.long), "duplicates", "one-against-many"])
def test_is_the_maximum_over_a_fine_grid(kind, error, kernel):
    X, y, _ = points(kind)
    path = approximate(svm_path(X, y, kernel=kernel, C_min=1e-2, C_max=10.0), error)
    largest, grid = proved_again(path).gap, worst_on_a_grid(path)
    assert grid <= largest * (1 + 1e-9)
    # What takes a coefficient outside its box back there is bounded, not followed; without it the two agree.
    assert largest <= 30.0 * grid


@pytest.mark.long
def test_without_coefficients_outside_the_maximum_is_exact():
    """Only the bias is wrong, so that points are on the wrong side of the margin, and switch."""
    X, y, _ = points("plain")
    path = svm_path(X, y, C_min=1e-2, C_max=10.0)
    for k, segment in enumerate(path._segments):
        path._segments[k] = segment._replace(u0=segment.u0 + 0.05 * (-1) ** k, v0=segment.v0 + 0.1)
    assert proved_again(path).gap == pytest.approx(worst_on_a_grid(path, 700), rel=1e-3)


def drawn_lines(rng, n=14, count=3):
    """Segments that solve nothing, with jumps between them: any sets, and any coefficients in the box that sum to zero.

    Every term of the gap is large.  The first two points are always on the elbow, and make up for the sum of the others.
    """
    X, y, w = 0.15 * rng.standard_normal((n, 4)), rng.choice([-1.0, 1.0], n), rng.uniform(0.2, 3.0, n)
    X[:2] *= 0.1
    y[:2], w[:2] = (1.0, -1.0), 100.0
    lams, biases = np.sort(rng.uniform(0.5, 3.0, count + 1))[::-1], rng.standard_normal(count + 1)
    sets = rng.choice([0, 1, 2], (count, n))
    sets[:, :2] = 1
    pieces, before = [], sets[0]
    for k, status in enumerate(sets):
        ends = np.where(status == 1, rng.uniform(0.1, 0.9, (2, n)), status / 2.0) * y * w
        ends[:, 0], ends[:, 1] = 50.0, -50.0
        ends[:, 0] -= ends.sum(axis=1)
        E, width = np.flatnonzero(status == 1), lams[k + 1] - lams[k]
        line = Segment(E, ends[1, E], (ends[1, E] - ends[0, E]) / width, biases[k + 1],
                       (biases[k + 1] - biases[k]) / width, lams[k + 1])  # fmt: skip
        moves = [Transition(lams[k], i, before[i], status[i]) for i in np.flatnonzero(before != status)]
        pieces.append((Piece(lams[k], lams[k + 1], line, moves), ends))
        before = status
    return X @ X.T, y, w, sets[0], pieces


def largest_on_a_grid(K, y, w, piece, ends, count=400):
    """The largest gap / primal on a fine grid of one segment."""
    t = np.linspace(0.0, 1.0, count)[:, None]
    lam, b = piece.lam + t * (piece.end - piece.lam), ends[0] + t * (ends[1] - ends[0])
    F, a = b @ K, y * b
    h = lam - y * (F + piece.segment.bias(lam))
    gap = np.maximum((w - a) * h, -a * h).sum(axis=1)
    dual = lam[:, 0] * a.sum(axis=1) - 0.5 * (b * F).sum(axis=1)
    assert (dual > 0).all()
    return (gap / (gap + dual)).max()


@pytest.mark.long
@pytest.mark.parametrize(("sharp", "above"), [(proof.SHARP, 1e-4), (np.inf, 0.5)])
def test_of_lines_that_solve_nothing_it_is_the_maximum_over_a_fine_grid(sharp, above, monkeypatch):
    """In blocks, without sharper sums, a jump between two segments counts like rounding: as a bound."""
    monkeypatch.setattr(proof, "SHARP", sharp)
    rng = np.random.default_rng(0)
    for _ in range(200):
        K, y, w, status, drawn = drawn_lines(rng)
        found = Proof(K, Family.hinge(y, w), status, drawn[0][1][0])
        found.follow([piece for piece, _ in drawn])
        expected = max(largest_on_a_grid(K, y, w, piece, ends) for piece, ends in drawn)
        assert expected <= found.largest.gap * (1.0 + 1e-12)
        assert found.largest.gap <= (1.0 + above) * expected


@pytest.mark.parametrize("what", ["u", "v", "u0", "v0", "end"])
def test_one_wrong_segment_is_found(cancer, what):
    path = svm_path(*cancer, C_max=10.0)
    k = len(path) // 2
    segment = path._segments[k]
    begin, end = path.C[k], path.C[k + 1]
    wrong = {
        "u": segment._replace(u=segment.u + 1e-3 * np.eye(1, segment.u.size)[0]),
        "v": segment._replace(v=segment.v * (1 + 1e-3)),
        "u0": segment._replace(u0=segment.u0 + 1e-3),
        "v0": segment._replace(v0=segment.v0 + 1e-3),
        "end": segment._replace(points=np.append(segment.points[:-1], np.setdiff1d(np.arange(100), segment.points)[0])),
    }
    path._segments[k] = wrong[what]
    largest = proved_again(path)
    assert largest.gap > 1e-8
    assert begin * (1 - 1e-9) <= largest.C <= end * (1 + 1e-9)  # and not further on, where it is right again


def test_a_transition_left_out_is_found(cancer):
    path = svm_path(*cancer, C_max=10.0)
    left = next(k for k, t in enumerate(path._transitions) if k > 100 and t.target == 2)
    path._transitions[left] = path._transitions[left]._replace(target=0)
    assert proved_again(path.seal(path.status)).gap > 1e-6


@pytest.mark.thin(3)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_is_proved(kind, kernel):
    X, y, _ = points(kind)
    size = np.abs(Gram(X, kernel).diagonal).mean()
    path = svm_path(X, y, kernel=kernel, C_min=1e-3 / size, C_max=1e2 / size)
    assert path.n_unproved == 0
    assert path.largest_gap_ <= 1e-9
    assert gap_seen(path, np.concatenate(within_segments(path))) <= path.largest_gap_ + 1e-11


def test_decision_values_are_carried_in_twice_the_precision(plain):
    X, y, _ = plain
    path = svm_path(X, y)
    exact = [
        sum(Fraction(k) * Fraction(b) for k, b in zip(row, path._proof.b, strict=True)) for row in path.gram.full().T
    ]
    carried = [Fraction(a) + Fraction(b) for a, b in zip(path._proof.F, path._proof.lost, strict=True)]
    assert max(abs(a - b) for a, b in zip(exact, carried, strict=True)) <= 1e-25


def test_blocks_and_chunks_do_not_matter(plain, monkeypatch):
    X, y, _ = plain
    path = approximate(svm_path(X, y, C_max=10.0), 1e-4)
    whole = proved_again(path).gap
    for length, chunk in ((1, 3), (7, 5), (1000, 1000)):
        monkeypatch.setattr(proof, "BLOCK", length)
        monkeypatch.setattr(proof, "CHUNK", chunk)
        assert proved_again(path).gap == pytest.approx(whole, rel=1e-9)


def test_rounding_counts_unless_sums_are_sharper(cancer_path, monkeypatch):
    rounded = proved_again(cancer_path).gap
    monkeypatch.setattr(proof, "SHARP", 0.0)
    assert 1e-15 < 3.0 * proved_again(cancer_path).gap < rounded
    monkeypatch.undo()
    proved_again(cancer_path)


def test_a_kernel_that_is_no_inner_product_has_wider_bounds():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    y, w = np.array([1.0, -1.0]), np.ones(2)
    assert (Proof(K, Family.hinge(y, w), np.zeros(2), np.zeros(2)).norm == 1.0).all()
    np.testing.assert_allclose(
        Proof(K, Family.hinge(y, w), np.zeros(2), np.zeros(2), is_positive=False).norm, np.sqrt(3.0)
    )


def maximum(N, D, h0, h1, weight):
    """The maximum of one segment."""
    rows = (np.array(part, dtype=float)[None] for part in (N, D, [0.0, 0.0, 0.0], h0, h1))
    return proof._maximum(proof.Shares(*rows, weight), 0)


def test_the_maximum_of_a_piecewise_ratio_is_that_of_a_fine_grid():
    """(N + sum of weight max(0, h)) / D, where N, D are quadratic in z and h stands for (h0 + h1 z)(1 + z)."""
    rng, z = np.random.default_rng(0), np.tan(np.linspace(0.0, np.pi / 2, 20_001)[:-1])
    powers = np.stack([np.ones(z.size), 2.0 * z, z**2])
    for count in range(6):
        for _ in range(20):
            N, weight = rng.uniform(0.0, 1.0, 3), rng.uniform(0.5, 2.0, count)
            h0, h1 = rng.choice([-1.0, 0.0, 1.0], (2, count)) * rng.uniform(0.0, 3.0, (2, count))
            D = rng.uniform(0.5, 2.0, 3)
            D[1] = rng.uniform(-0.9, 1.0) * np.sqrt(D[0] * D[2])  # so that it has no root
            values = N @ powers + (1.0 + z) * (weight @ np.maximum(h0[:, None] + h1[:, None] * z, 0.0))
            ratio, where = maximum(N, D, h0, h1, weight)
            assert ratio >= (values / (D @ powers)).max() * (1.0 - 1e-12)
            ends = [weight @ np.maximum(h, 0.0) for h in (h0, h1)]
            assert block._bound.py_func((N[0] + ends[0], N[1] + 0.5 * sum(ends), N[2] + ends[1]), tuple(D)) >= ratio * (
                1.0 - 1e-12
            )
            if np.isfinite(where):
                at = N @ [1.0, 2.0 * where, where**2] + (1.0 + where) * weight @ np.maximum(h0 + h1 * where, 0.0)
                assert ratio == pytest.approx(at / (D @ [1.0, 2.0 * where, where**2]), rel=1e-9)


@pytest.mark.parametrize("size", [0, 1, 64, 65, 131])
def test_the_product_of_a_block(size):
    rng = np.random.default_rng(size)
    K, x = rng.standard_normal((size, 30)), rng.standard_normal((5, size))
    found, rounding = np.zeros((5, 30)), block._roundings.py_func(size) * UNIT
    from_python(block._add_product_of)(x, K, found)
    exact = [[sum(Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)) for column in K.T] for row in x]
    off = np.array(
        [[float(abs(Fraction(a) - b)) for a, b in zip(*rows, strict=True)] for rows in zip(found, exact, strict=True)]
    )
    assert (off <= rounding * (np.abs(x) @ np.abs(K))).all()
    if size:
        assert (off <= from_python(block._spread)(x, K, rounding)).all()


def test_what_rounding_leaves_in_the_decision_values_of_a_block():
    rng = np.random.default_rng(0)
    y, w, norm = rng.choice([-1.0, 1.0], 4), rng.uniform(0.5, 2.0, 4), rng.uniform(0.1, 3.0, 4)
    edges, E, rounding = np.array([0, 2, 5]), np.array([0, 2, 0, 1, 3]), 1e-12
    u, v = rng.uniform(-0.1, 2.2, (2, 5))
    v[2] = v[0]
    u[2] = u[0]
    numbers, nothing = (
        np.array([[3.0, 2.0, 0.0, 0.0, 0.0], [2.0, 1.5, 0.0, 0.0, 0.5]]),
        np.zeros((0, 2), dtype=np.int64),
    )
    stacked = block.Stacked(np.ascontiguousarray(numbers.T), edges, E, u, v, np.zeros(3, dtype=np.int64), nothing)
    status, b = np.array([2, 0, 2, 0]), rng.standard_normal(4)
    none = np.zeros(4)
    side, way, start, stop, ends, jumps, radius, outside = from_python(block._rows_of)(
        stacked, np.arange(4), status, block.PointConstants(y, w, none, none, y, norm), b, rounding
    )
    np.testing.assert_array_equal(way, [y, y])
    for k, (lam, end, *_, anchor) in enumerate(numbers):
        own = slice(edges[k], edges[k + 1])
        first, last = np.where(status == 2, y * w, 0.0), np.where(status == 2, y * w, 0.0)
        first[E[own]], last[E[own]] = u[own] + (lam - anchor) * v[own], u[own] + (end - anchor) * v[own]
        before = stop[k - 1] if k else b
        np.testing.assert_allclose(start[k], first)
        np.testing.assert_allclose(stop[k], last)
        np.testing.assert_allclose(ends[k], last - b)
        np.testing.assert_allclose(jumps[k], first - before, atol=1e-15)
        assert (side[k] == np.where(np.isin(np.arange(4), E[own]), 0.0, status - 1.0)).all()
        jump, moved = norm @ np.abs(first - before), norm @ np.abs(last - b)
        np.testing.assert_allclose(radius[k], [rounding * jump, rounding * moved, jump, 1.0])
        over, past = (np.maximum(np.maximum(-y * x, y * x - w), 0.0)[E[own]] for x in (first, last))
        np.testing.assert_allclose(outside[k], [norm[E[own]] @ over, norm[E[own]] @ past, over.sum(), past.sum()])


@pytest.mark.parametrize("kernel_error", [1e-15, np.inf])
def test_points_that_are_not_near_stay_on_their_side(cancer, kernel_error, monkeypatch):
    """At every breakpoint of a block the decision values of all points, in comparison with those that were looked at."""
    path, seen = svm_path(*cancer, C_max=10.0), []
    whole = Proof._note

    def note(self, block, bounds):
        seen.append((block, set(block.points.tolist()), self.b.copy(), self.status.copy()))
        whole(self, block, bounds)

    monkeypatch.setattr(Proof, "_note", note)
    path._proof, path._proved = None, 0
    path._proof = path._begin_proof(0)
    path._proof.kernel_error = kernel_error
    path.prove()
    K, y, shares = path.gram.full(), path.y, []
    for laid_out, looked_at, b, status in seen:
        others = np.array(sorted(set(range(y.size)) - looked_at), dtype=int)
        shares.append(others.size / y.size)
        for lam, bias, stop in zip(laid_out.end, laid_out.bias[:, 1], laid_out.stop, strict=True):
            b[laid_out.points[: laid_out.n_own]] = stop[: laid_out.n_own]
            excess = y * (K @ b + bias) - lam
            assert (np.where(status == 2, -excess, excess)[others] > 0.0).all()
    assert np.mean(shares) > (0.5 if kernel_error < 1.0 else 0.0)


@pytest.mark.parametrize("peak", [2, 6])
def test_a_point_that_leaves_its_side_and_comes_back_within_a_block_is_near(peak, monkeypatch):
    """Coefficients go away and come back in one half of a block: at the ends of both halves nothing is to be seen of it."""
    y, K = np.array([-1.0, 1.0, 1.0, 1.0]), np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    K, lam, b = np.vstack([K, [[1.0, 0.0, 1.0, 0.0], [0.0] * 4]]), np.linspace(1.0, 0.9, 9), np.zeros(9)
    b[peak - 1 : peak + 2] = 2.5, 5.0, 2.5
    pieces, seen = [], []
    for k in range(8):
        u, v = np.array([-b[k], b[k]]), np.array([b[k] - b[k + 1], b[k + 1] - b[k]]) / (lam[k + 1] - lam[k])
        pieces.append(Piece(lam[k], lam[k + 1], Segment(np.arange(2), u, v, 3.0, 0.0, lam[k]), []))
    monkeypatch.setattr(Proof, "_note", lambda self, block, bounds: seen.append(block.points.tolist()))
    found = Proof(K, Family.hinge(y, np.full(4, 10.0)), np.array([1, 1, 0, 0]), np.zeros(4), kernel_error=1e-15)
    found.follow(pieces)
    assert seen == [[0, 1, 2]]  # of the third F is 3 - b, and lam is about one; the last has F = 3


def test_a_point_that_is_near_counts_if_it_is_on_the_wrong_side(cancer, monkeypatch):
    path, seen = svm_path(*cancer, C_max=10.0), []
    monkeypatch.setattr(Proof, "_note", lambda self, laid_out, bounds: seen.append((laid_out, bounds)))
    proved_again(path)
    laid_out, bounds = next(one for one in seen if one[0].points.size > one[0].n_own)
    for j in range(laid_out.n_own, laid_out.points.size):
        at_begins, at_ends = laid_out.at_begins.copy(), laid_out.at_ends.copy()
        is_capped = laid_out.status_near[j - laid_out.n_own] == 2
        at_begins[:, j] = at_ends[:, j] = (1.0 if is_capped else -1.0) * path.y[laid_out.points[j]] * 100.0
        wrong = laid_out._replace(at_begins=at_begins, at_ends=at_ends)
        assert (path._proof._sums(wrong, proof.NOTHING, proof.NOTHING)[2] > np.maximum(1e3 * bounds, 1e-3)).all()


def test_only_the_first_two_segments_are_ever_joined(cancer):
    """One line is one segment, at the beginning; further on equal lines are those of different sets."""
    path = svm_path(*cancer, C_max=1.0)
    first = path._segments[0]
    flat = first._replace(v=np.zeros(first.points.size), u=first.u)
    grown = Path(path.family, path.points, path.start, 3.0, path.gram)
    grown.add(flat, 2.0, [])
    grown.add(flat, 1.5, [])
    assert len(grown._segments) == 1
    grown.add(flat._replace(u0=1.0, v0=flat.v0 + 1.0), 1.0, [])
    grown.add(flat, 0.5, [])
    assert len(grown._segments) == 3


def test_the_maximum_of_a_ratio_whose_derivative_has_one_root():
    """(2 - z + z²) / (1 - z + z²) is 7/3 at 1/2, where the quadratic equation has lost its square."""
    nothing = np.zeros(0)
    found = maximum([2.0, -0.5, 1.0], [1.0, -0.5, 1.0], nothing, nothing, nothing)
    assert found == pytest.approx((7.0 / 3.0, 0.5), rel=1e-15)


@pytest.mark.parametrize("D", [(-1.0, 0.0, 1.0), (1.0, 0.0, -1.0), (1.0, -2.0, 1.0)])
def test_where_the_dual_may_be_negative_there_is_no_ratio(D):
    nothing = np.zeros(0)
    assert maximum(np.ones(3), D, nothing, nothing, nothing)[0] == np.inf
    assert block._bound.py_func((1.0, 1.0, 1.0), D) == np.inf


def test_a_dual_that_is_not_positive_proves_nothing():
    path = svm_path(*points("plain")[:2], C_max=10.0)
    path._segments[0] = path._segments[0]._replace(u=path._segments[0].u - 1e3)
    assert proved_again(path).gap == 1.0


def test_it_is_kept_when_stored_and_goes_on_when_resumed(cancer, tmp_path):
    part = svm_path(*cancer, C_max=1.0)
    part.save(tmp_path / "p")
    loaded = Path.load(tmp_path / "p")
    assert loaded.largest == part.largest  # needs no kernel matrix
    loaded.gram = part.gram
    svm_path(*cancer, resume=loaded, C_max=10.0)
    svm_path(*cancer, resume=part, C_max=10.0)
    assert loaded.n_unproved == part.n_unproved == 0
    assert max(loaded.largest_gap_, part.largest_gap_) <= 1e-9
    assert proved_again(loaded).gap <= 1e-9


@pytest.mark.parametrize("engine", ["lp", "hastie"])
def test_other_engines_have_it_too(cancer, engine):
    X, y = cancer[0][:200], cancer[1][:200]
    path = svm_path(X, y, engine=engine, C_max=10.0)
    assert gap_seen(path, random_C(path, 100)) <= path.largest_gap_ + 1e-11
    assert path.largest_gap_ < 0.1


def test_an_lp_path_beyond_its_tolerance_says_so(plain, monkeypatch):
    X, y, _ = plain
    options = LP(epsilon_kkt=1e-9, epsilon_smo=1e-11, tau=1e-9, tau_2=1e-13)
    svm_path(X, y, engine=options, C_min=1e-2, C_max=10.0)
    monkeypatch.setattr(LP, "violation", property(lambda self: 1e-15))
    with pytest.warns(RuntimeWarning, match="not exact"):
        svm_path(X, y, engine=options, C_min=1e-2, C_max=10.0)


@pytest.mark.parametrize("C_min", [1e-6, 1e-10, 1e-15])
def test_the_smallest_C_costs_no_digits(cancer, cancer_path, C_min):
    path = svm_path(*cancer, C_min=C_min)
    assert path.largest_gap_ <= 1e-9
    assert path.C[0] == pytest.approx(C_min)
    assert path.worst_certificate(random_C(path, 50)).relative_gap <= 1e-9
    assert [event[1:] for event in path.events] == [event[1:] for event in cancer_path.events]
    np.testing.assert_allclose(path.C[1:], cancer_path.C[1:], rtol=1e-9)


@pytest.mark.parametrize("scale", [pytest.param(1e-2, marks=pytest.mark.long), 1e-4, 1e-6, 1e-10])
def test_small_features_cost_no_digits(cancer, scale):
    path = svm_path(cancer[0] * scale, cancer[1], kernel="linear")
    assert path.largest_gap_ <= 1e-9
    assert path.worst_certificate().relative_gap <= 1e-9


@pytest.mark.covering
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e8])
@pytest.mark.parametrize("engine", ["single", "lp", "hastie"])
def test_the_unit_of_the_kernel_does_not_matter(scale, engine):
    X, y, _ = points("plain")
    one = svm_path(X, y, kernel="linear", engine=engine, C_min=1e-3, C_max=10.0)
    path = svm_path(X * scale, y, kernel="linear", engine=engine, C_min=1e-3 / scale**2, C_max=10.0 / scale**2)
    if engine != "lp":  # whose constants are the paper's
        C, expected = (np.array([event.C for event in p.events]) for p in (path, one))
        np.testing.assert_allclose(C * scale**2, expected, rtol=1e-7)
    assert path.largest_gap_ <= {"single": 1e-9, "hastie": 1e-6, "lp": 1e-3}[engine]


@pytest.mark.long
def test_however_large_C_becomes_the_last_segment_is_exact(cancer):
    path = svm_path(*cancer, C_max=1e9)
    assert path.largest_gap_ <= 1e-9
    assert path.worst_certificate(np.geomspace(100.0, 1e9, 50)).relative_gap <= 1e-9


def test_an_event_found_late_leaves_no_coefficient_outside(cancer):
    """Between the end of a segment and lines that begin outside the box the path goes on straight."""
    path = svm_path(*cancer)
    w, worst = path.points.weight, 0.0
    for begin, end, segment, _ in path.segments():
        for lam in (begin, end):
            a = path.y[segment.points] * segment.coefficients(lam)
            worst = max(worst, np.max(np.maximum(-a, a - w[segment.points]), initial=0.0))
    assert worst <= 2e-14


# SVCPath.at is as honest.


def test_at_says_what_its_certificate_says(plain):
    X, y, _ = plain
    model = SVCPath(C_max=10.0).fit(X, y)
    assert model.largest_gap_ == model.path_.largest_gap_ <= 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.at(1.0).status_ is Status.CONVERGED
    k = len(model.path_) // 2
    model.path_._segments[k] = model.path_._segments[k]._replace(v=0.9 * model.path_._segments[k].v)
    C = float(np.sqrt(model.path_.C[k] * model.path_.C[k + 1]))
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .*tol=1e-09"):
        wrong = model.at(C)
    assert isinstance(wrong, SVC)
    assert wrong.status_ is not Status.CONVERGED
    assert wrong.duality_gap_ > 1e-9


def test_a_segment_is_all_the_proof_needs():
    """Two points: b = min(1, lam / |x - z|²) from both ends, by hand."""
    K, y = np.array([[0.0, 0.0], [0.0, 4.0]]), np.array([-1.0, 1.0])
    path = svm_path(np.array([[0.0], [2.0]]), y, kernel="linear", C_max=10.0)
    assert path.C[1] == pytest.approx(0.5)
    pieces = [Piece(*piece) for piece in path.segments()]
    begun = Proof(K, path.family, path.start, path.scaled_at(path.lam[0]))
    begun.follow(pieces)
    assert begun.done == len(pieces)
    assert begun.largest.gap <= 1e-12


def test_a_segment_in_proportion_to_lam_need_not_be_the_last():
    """With as much weight capped on both sides u is zero, although events are still to come."""
    rng = np.random.default_rng(192270)
    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 4))
    X = rng.integers(0, 3, size=(n, d)).astype(float)
    y = np.concatenate([[-1, 1], rng.choice([-1, 1], size=n - 2)])
    path = svm_path(X, y, kernel="linear", sample_weight=rng.choice([0.5, 1.0, 2.0], size=n), C_max=100.0)
    assert any(not segment.u.any() and segment.v.any() for segment in path._segments[:-1])
    assert path.largest_gap_ <= 1e-9  # what is promised of every path


def test_the_segment_without_capped_points_is_cut_at_a_power_of_two():
    """It has no transition of its own, and it is the only one: no point is left that could be capped."""
    y = np.array([1.0, -1.0])
    line = Segment(np.arange(2), np.zeros(2), 0.5 * y, 0.0, 0.0)
    found = Proof(np.eye(2), Family.hinge(y, np.ones(2)), np.ones(2), 0.5 * 1.5 * y)
    assert [(p.lam, p.end) for p in found._cut([Piece(1.5, 0.3, line, [])])] == [(1.5, 1.0), (1.0, 0.25)]
    found.status[0] = 2
    assert [(p.lam, p.end) for p in found._cut([Piece(1.5, 0.3, line, [])])] == [(1.5, 0.3)]


def test_digits_that_matter_at_some_C_only_are_told():
    """The last digit of the coefficient of a point at 4e8 costs a gap, or none, as it falls on one side or the other."""
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [0.0], [0.0], [0.0], [0.0], [392000000.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    w = np.array([3.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0, 1.0, 3.0, 3.0])
    with pytest.warns(RuntimeWarning, match="last digits of its coefficients"):
        path = svm_path(X, y, kernel="linear", C_min=7.65, C_max=1e8, sample_weight=w)
    assert max(certificate.relative_gap for certificate in path.certificates(np.geomspace(8.0, 1e8, 50))) > 1e-6


@pytest.mark.parametrize("far", [0.0, 100.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_kernel_values_are_as_near_to_an_inner_product_as_is_said(kernel, far):
    X = np.random.default_rng(0).standard_normal((40, 3)) + far
    gram, Z = Gram(X, kernel, gamma=0.5, degree=2, coef0=1.0), X.astype(np.longdouble)
    products, squares = Z @ Z.T, np.square(Z[:, None] - Z[None]).sum(axis=2)
    exact = {"rbf": np.exp(-0.5 * squares), "linear": products, "poly": (0.5 * products + 1.0) ** 2}[kernel]
    norm, error = np.sqrt(gram.diagonal), gram.distance_from_positive()
    assert (np.abs(gram.full() - exact) <= error * np.outer(norm, norm)).all()
    assert error <= 1e-9


def test_without_an_inner_product_nothing_is_said_of_a_kernel_matrix():
    X = np.random.default_rng(0).standard_normal((40, 3))
    assert Gram(X, "sigmoid").distance_from_positive() == np.inf
    X[0] = 0.0
    assert Gram(X, "linear").distance_from_positive() == np.inf  # a point that no bound relative to its norm holds for
    K = Gram(X, "rbf").full()
    assert Gram(K, "precomputed").distance_from_positive() == pytest.approx(1e-9)
    assert Gram(K.astype(np.float32), "precomputed").distance_from_positive() == pytest.approx(1e-5)


@pytest.mark.parametrize("size", [1e-180, 1e180])
def test_a_ratio_of_numbers_whose_products_are_beyond_float64_is_found_or_bounded(size):
    nothing = np.empty(0)
    D = size * np.array([1.0, 1.0, 1.0])
    ratio, _ = maximum(0.5 * D, D, nothing, nothing, nothing)
    assert ratio >= 0.5 * (1 - 1e-15)  # and nothing warns


# On a thread beside the engine.


class Watched(Segments):
    """A list of segments that sees whether all else that a proof reads of them is there when they come."""

    def __init__(self, path):
        super().__init__()
        self.path, self.is_whole = path, True

    def insert(self, k, segment):
        super().insert(k, segment)
        self.look()

    def extend_by(self, log, first):
        super().extend_by(log, first)
        self.look()

    def look(self):
        path = self.path
        begun = len(path._before) == len(self) == path.lam.size - 1 + len(path._tail)
        self.is_whole &= begun and max(path._before) <= len(path._transitions)


def test_a_segment_comes_when_all_else_of_it_is_there(cancer):
    X, y = cancer
    data, made = TwoClasses(X, y, as_kernel("rbf", "scale", 3, 0.0), None, True), []

    def begin():
        path = data.begin(1e-2)
        path._segments = Watched(path)
        made.append(path._segments)
        return path

    path = follow(begin, None, 1e3, Single(), None, None, False)
    assert len(made[0]) > 500
    assert made[0].is_whole
    assert path.largest_gap_ <= 1e-9


@pytest.mark.parametrize("is_beside", [False, True])
def test_what_ends_a_proof_ends_the_path(cancer, cancer_path, monkeypatch, is_beside):
    """A limit leaves the rest of the proof for later, an error is raised, wherever the proof runs."""
    if not is_beside:
        monkeypatch.setattr(proving, "beside", lambda *work: None)
    whole, blocks = Proof._follow, []

    def cut(self, stacked):
        blocks.append(stacked)
        if len(blocks) == 3:
            raise failure
        whole(self, stacked)

    with monkeypatch.context() as patch:
        patch.setattr(Proof, "_follow", cut)
        failure = Exceeded()
        path = svm_path(*cancer)
        assert path.status == "max_time"
        assert path.n_unproved
        blocks.clear()
        failure = FloatingPointError("no digits")
        with pytest.raises(FloatingPointError, match="no digits"):
            svm_path(*cancer)
    svm_path(*cancer, resume=path)
    assert path.status == "complete"
    assert path.largest.gap == pytest.approx(cancer_path.largest.gap, rel=1e-6)
    assert path.n_events == cancer_path.n_events


# Certificates that a proof makes on its way.


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_certificates_on_the_way_are_those_of_the_solutions_there(kernel, fit_intercept):
    X, y = datasets.spiral(400, random_state=0)
    path = svm_path(X + 3.0, y, kernel=kernel, C_min=1e-3, C_max=1e4, fit_intercept=fit_intercept)
    found = path._certificates_on_the_way()
    if len(path) > 4 * BLOCK:
        assert len(found) > 1
    for lam, gap in found:
        at = path.certificates(np.array([1.0 / lam]), precisely=False)[0]
        # The same sums in another order: both are the optimum but for what they tell of rounding.
        assert abs(gap - at.relative_gap) <= 2.0 * (at.gap + at.rounding) / at.primal
        assert gap >= at.rounding / at.primal / 3.0


def test_only_doubtful_places_are_asked_once_more():
    X, y = datasets.spiral(400, random_state=0)
    path = svm_path(X, y, C_min=1e-2, C_max=1e3)
    before = [(lam, 0.0) for lam in np.geomspace(path.lam[0], 2.0 * path.lam[-1], 12)]
    path._proof.certified[:] = before
    np.testing.assert_allclose(exactness._samples(path), [1e3])
    path._proof.certified[3] = before[3][0], 2.0 * exactness.SURE
    np.testing.assert_allclose(exactness._samples(path), [1.0 / before[3][0], 1e3])
    path._proof.certified[:] = before[:1] + before[-1:]  # nothing is known in between
    known = np.sort([*exactness._samples(path), *(1.0 / lam for lam, _ in path._proof.certified)])
    assert (known[1:] / known[:-1] < exactness.APART).all()
    path._proof.is_whole = False
    assert exactness._samples(path).size > 5
