"""The engine and the proof for regression and for one class: against plain NumPy, in any units, and cut anywhere."""

import numpy as np
import pytest
from naive import from_python
from test_cut_anywhere import Clock

from zerogap.compiled import NO_POINT
from zerogap.path.engine import ELBOW, LEFT, RIGHT, Segment, Transition
from zerogap.path.events import PointArrays, _choose_side, ratio_test
from zerogap.path.family import Family
from zerogap.path.one_class import one_class_path
from zerogap.path.proof import Piece, Proof
from zerogap.path.regression import svr_path
from zerogap.path.rows import ElbowLines
from zerogap.path.screening import Candidates, Reference, departure
from zerogap.path.tolerances import SLOW

FAMILIES = ("tubes", "tube over C", "no tube", "one class")


def family_of(name, rng, w, first=()):
    t = rng.standard_normal(w.size)
    t[: len(first)] = first
    return {
        "tubes": lambda: Family.tubes(t, w),
        "tube over C": lambda: Family.insensitive(t, w, 0.1),
        "no tube": lambda: Family.insensitive(t, w, 0.0),
        "one class": lambda: Family.one_class(w, 0.01),
    }[name]()


def drawn_sides(family, rng):
    """Any side, where there are two."""
    return rng.choice([-1.0, 1.0], family.n) if family.is_two_sided else family.y.copy()


# The next event.


def drawn_points(name, seed, n=12, m=4):
    """Lines of any slope over points of a family, at a lam at which all are in their sets."""
    rng = np.random.default_rng(seed)
    family = family_of(name, rng, rng.uniform(0.5, 2.0, n))
    lam, y = rng.uniform(1.1, 2.0), drawn_sides(family, rng)
    E, status = rng.choice(n, m, replace=False), rng.choice([RIGHT, LEFT], n)
    status[E] = ELBOW
    low, w = family.low, family.w
    a = low[E] + rng.uniform(0.05, 0.95, m) * (w - low)[E]
    v = rng.standard_normal(m)
    none = np.zeros(n)
    points = PointArrays(
        y, w, low, status, none, none.copy(), family.target0, family.target1, family.target0 - y * family.eps0,
        family.target1 - y * family.eps1, family.tube, 0.0,
    )  # fmt: skip
    eps, q = family.eps(lam), rng.standard_normal(n)
    target = family.target0 + lam * family.target1
    inside = target + rng.uniform(-1.0, 1.0, n) * eps
    beyond = target - y * eps + np.where(status == LEFT, -1.0, 1.0) * y * rng.uniform(0.0, 1.0, n)
    F = np.where((status == RIGHT) & family.is_two_sided, inside, beyond)
    everyone = np.arange(n)
    return (
        family,
        lam,
        points,
        ElbowLines(E, y[E] * a - lam * v, v, 0.0),
        Candidates(everyone, everyone, F - lam * q, q),
    )


def roots_of(family, lam, points, elbow, candidates):
    """Where each point gets to the end of its set as lam falls, and for one at rest the side it gets to."""
    found = {}
    for i, u, v in zip(*elbow[:3], strict=True):
        rate, a = points.y[i] * v, points.y[i] * u
        found[int(i)] = ((points.low[i] if rate > 0 else points.w[i]) - a) / rate, 0.0
    for i in np.setdiff1d(candidates.points, elbow.points):
        is_inside = points.status[i] == RIGHT
        for side in (-1.0, 1.0) if is_inside and family.is_two_sided else (points.y[i],):
            # F meets the margin t - side eps; from inside it comes from beyond.
            margin0 = family.target0[i] - side * family.eps0
            margin1 = family.target1[i] - side * family.eps1
            slope = side * (candidates.q[i] - margin1)
            root = -side * (candidates.p[i] - margin0) / slope
            if (slope > 0.0) == is_inside and root > found.get(int(i), (-np.inf,))[0]:
                found[int(i)] = root, side
    return found


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("draws", [50, pytest.param(300, marks=pytest.mark.long)])
def test_the_ratio_test_finds_the_first_end_on_either_side(name, draws):
    sides = set()
    for seed in range(draws):
        family, lam, points, elbow, candidates = drawn_points(name, seed)
        expected = roots_of(family, lam, points, elbow, candidates)
        order = sorted(expected, key=lambda i: -expected[i][0])
        reference = Reference(elbow.points, elbow.v, 0.0, points.m1[elbow.points])
        before = points.y.copy()
        found = ratio_test(1e-3, lam, points, elbow, candidates, reference, 1.0)
        assert found.point == order[0]
        assert found.lam == pytest.approx(expected[order[0]][0], rel=1e-9)
        if expected[order[1]][0] > 0.0:
            assert found.second == pytest.approx(expected[order[1]][0], rel=1e-9)
        is_leaving = points.status[found.point] == ELBOW
        assert (found.position != NO_POINT) == is_leaving
        if not is_leaving:
            assert points.y[found.point] == expected[found.point][1]
            sides.add(bool(before[found.point] != points.y[found.point]))
        # The margins go with the side.
        np.testing.assert_allclose(points.m0, family.target0 - points.y * family.eps0, atol=1e-15)
        np.testing.assert_allclose(points.m1, family.target1 - points.y * family.eps1, atol=1e-15)
    assert sides == ({True, False} if family.is_two_sided else {False})


@pytest.mark.parametrize("name", ["tubes", "one class"])
def test_the_same_lines_about_another_anchor_lead_to_the_same_event(name):
    for seed in range(50):
        family, lam, points, elbow, candidates = drawn_points(name, seed)
        anchor = lam + 0.05 * (seed % 3 - 1)
        moved = points._replace(
            y=points.y.copy(), target0=points.target0 + anchor * points.target1, m0=points.m0 + anchor * points.m1,
            m1=points.m1.copy(), tube=family.tube._replace(eps0=family.eps0 + anchor * family.eps1), anchor=anchor,
        )  # fmt: skip
        lines = elbow._replace(u=elbow.u + anchor * elbow.v)
        values = candidates._replace(p=candidates.p + anchor * candidates.q)
        reference = Reference(elbow.points, elbow.v, 0.0, points.m1[elbow.points])
        first = ratio_test(1e-3, lam, points, elbow, candidates, reference, 1.0)
        again = ratio_test(1e-3, lam, moved, lines, values, reference, 1.0)
        assert (again.point, again.position) == (first.point, first.position)
        np.testing.assert_allclose(again[0], first[0], rtol=1e-12)
        np.testing.assert_array_equal(moved.y, points.y)
        np.testing.assert_allclose(moved.m0, points.m0 + anchor * points.m1, atol=1e-14)


def test_sides_are_chosen_for_points_inside_the_tube_alone():
    for seed in range(50):
        family, lam, points, elbow, candidates = drawn_points("tubes", seed)
        before = points.y.copy()
        for i, p, q in zip(candidates.points, candidates.p, candidates.q, strict=True):
            from_python(_choose_side)(i, lam, points, p, q, SLOW)
        expected = roots_of(family, lam, points, elbow, candidates)
        for i in range(family.n):
            is_inside = points.status[i] == RIGHT
            if not is_inside or i not in expected:
                assert points.y[i] == before[i]
            else:
                assert points.y[i] == expected[i][1]


def test_the_departure_of_the_direction_counts_the_sum_that_moves():
    rng = np.random.default_rng(0)
    for slope_of_total in (0.0, 0.7):
        X = rng.standard_normal((9, 4))
        K, m1 = X @ X.T + np.eye(9), rng.standard_normal(9)

        def lines(E, K=K, m1=m1, total=slope_of_total):
            A = np.block([[np.zeros((1, 1)), np.ones((1, E.size))], [np.ones((E.size, 1)), K[np.ix_(E, E)]]])
            v0, *v = np.linalg.solve(A, np.concatenate([[total], m1[E]]))
            return np.array(v), float(v0)

        E, then, everyone = np.array([0, 3, 5, 7]), np.array([1, 3, 4]), np.arange(9)
        (v, v0), (v_then, v0_then) = lines(E), lines(then)
        q = K[:, E] @ v + v0
        x = np.zeros(9)
        x[E] += v
        x[then] -= v_then
        found = departure(
            m1, slope_of_total, ElbowLines(E, v, v, v0), Reference(then, v_then, v0_then, m1[then]),
            Candidates(everyone, everyone, q, q),
        )  # fmt: skip
        assert found == pytest.approx(np.sqrt(x @ K @ x), rel=1e-9)


# One class: the elbow may lose its last point.


def test_where_the_last_point_of_the_elbow_leaves_the_bias_jumps_to_the_next():
    """On a line through the origin the farthest falls first: x = 4, then 2, then 1, each alone."""
    x, w = np.array([1.0, 4.0, 2.0]), np.array([1.0, 2.0, 1.0])
    path = one_class_path(x[:, None], kernel="linear", sample_weight=w, nu_min=0.01)
    assert path.largest_gap_ <= 1e-9
    np.testing.assert_allclose(path.nu, [1.0, 0.5, 0.25, 0.01], rtol=1e-12)
    for nu in (0.99, 0.6, 0.45, 0.3, 0.2, 0.05):
        left = 4.0 * nu
        expected = np.array([min(left, 1.0), max(left - 2.0, 0.0), np.clip(left - 1.0, 0.0, 1.0)])
        np.testing.assert_allclose(path.coefficients_at(nu), expected, atol=1e-12)
        free = 4.0 if left > 2.0 else 2.0 if left > 1.0 else 1.0
        assert path.bias_at(nu) == pytest.approx(-free * (expected @ x), rel=1e-12)
    assert path.n_backups == 0


def test_refilling_takes_the_one_that_is_first_to_fall():
    path = one_class_path(np.array([[1.0], [2.0], [3.0], [4.0]]), kernel="linear", nu_min=0.1)
    leaving = [event.index for event in path.events if event.target == "inside"]
    assert leaving == [3, 2, 1]


def test_all_points_at_the_origin():
    path = one_class_path(np.zeros((5, 2)), kernel="linear", merge_duplicates=False)
    assert path.largest_gap_ == 0.0
    for nu in (0.02, 0.5, 1.0):
        assert path.relative_gap(path.certificate_at(nu), nu) <= 1e-300
        assert path.coefficients_at(nu).sum() == pytest.approx(5.0 * nu, rel=1e-12)


def test_a_start_is_inside_its_box_beside_weights_of_any_size():
    rng = np.random.default_rng(0)
    w = 10.0 ** rng.uniform(-8, 8, 25)
    for nu_max in (1.0, 0.6):
        path = one_class_path(rng.standard_normal((25, 2)), sample_weight=w, nu_max=nu_max, nu_min=0.3)
        assert path.status == "complete"
        assert ((path.coefficients_at(0.5) >= 0.0) & (path.coefficients_at(0.5) <= w)).all()


# The proof.


def drawn_lines(name, rng, n=9, count=3):
    """Segments that solve nothing: coefficients and bias on any straight lines, points in any sets."""
    w = rng.uniform(0.5, 2.0, n)
    w[:2] = 300.0  # these take up the sum
    family = family_of(name, rng, w, first=(4.0, -4.0))
    X = 0.05 * rng.standard_normal((n, 4))
    K = X @ X.T + (50.0 if name == "one class" else 0.0)
    lams = np.sort(rng.uniform(1.1, 3.0, count + 1))[::-1]
    sets = rng.choice([-2, -1, 0, 1, 2] if family.is_two_sided else [0, 1, 2], (count, n))
    sets[:, :2] = [1, -1] if family.is_two_sided else 1
    pieces, before = [], sets[0]
    biases = rng.standard_normal(count + 1)
    for k, status in enumerate(sets):
        at = np.array([lams[k], lams[k + 1]])
        ends = np.stack([family.at_rest(status)] * 2)
        E = np.flatnonzero(np.abs(status) == ELBOW)
        way = np.where(status[E] < 0, -1.0, 1.0)
        low = family.low[E]
        ends[:, E] = way * (low + rng.uniform(0.1, 0.9, (2, E.size)) * (family.w[E] - low))
        ends[:, :2] = [0.0, 20.0 if name == "one class" else -100.0]
        ends[:, 0] = family.total(at) - ends.sum(axis=1)
        if name == "one class":  # decision values are large, and a bias takes them off
            biases[k] = -np.median(ends[0] @ K) if k == 0 else biases[k]
            biases[k + 1] = -np.median(ends[1] @ K)
        width = at[1] - at[0]
        line = Segment(E, ends[1, E], (ends[1, E] - ends[0, E]) / width, biases[k + 1],
                       (biases[k + 1] - biases[k]) / width, at[1])  # fmt: skip
        moves = [Transition(at[0], i, before[i], status[i]) for i in np.flatnonzero(before != status)]
        pieces.append((Piece(at[0], at[1], line, moves), ends))
        before = status
    return K, family, sets[0], pieces


def largest_on_a_grid(K, family, piece, ends, count=300):
    """The largest relative gap on a fine grid of one segment, from the losses and their conjugates."""
    share = np.linspace(0.0, 1.0, count)[:, None]
    lam, b = piece.lam + share * (piece.end - piece.lam), ends[0] + share * (ends[1] - ends[0])
    lower, upper = family.box
    eps = family.eps0 + lam * family.eps1
    F = b @ K
    target = family.target0 + lam * family.target1
    r = target - F - piece.segment.bias(lam)
    loss = np.maximum(upper * (r - eps), lower * (r + eps))
    if family.is_two_sided:
        loss = np.maximum(loss, 0.0)
    gap = (loss + eps * np.abs(b) - b * r).sum(axis=1)
    dual = (b * target).sum(axis=1) - (eps * np.abs(b)).sum(axis=1) - 0.5 * (b * F).sum(axis=1)
    # Of one class the dual objective is negative, and half of it at most is gap.
    if not ((dual < -2.0 * gap).all() if family.total1 else (dual > 0.0).all()):
        return None  # lines that solve nothing may have no objective to compare with
    size = np.abs(dual + gap) + family.floor(lam[:, 0], float(np.diagonal(K).max()))
    return float((gap / size).max())


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("draws", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_of_lines_that_solve_nothing_the_proof_is_the_maximum_over_a_fine_grid(name, draws):
    rng, compared = np.random.default_rng(0), 0
    for _ in range(draws):
        K, family, status, drawn = drawn_lines(name, rng)
        found = Proof(K, family, status, drawn[0][1][0])
        found.follow([piece for piece, _ in drawn])
        gaps = [largest_on_a_grid(K, family, piece, ends) for piece, ends in drawn]
        if None in gaps:
            continue
        compared += 1
        assert max(gaps) <= found.largest.gap * (1.0 + 1e-12)
        assert found.largest.gap <= (1.0 + 1e-3) * max(gaps)
    assert compared >= 0.9 * draws


# Ties.


def integers(seed, n, d, values):
    """Few points on a grid, most of them several times over, with few targets."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, values, (n, d)).astype(float), rng.integers(0, 4, n).astype(float)


def gaps_at(path, values):
    return [
        path.relative_gap(certificate, v) for certificate, v in zip(path.certificate_at(values), values, strict=True)
    ]


@pytest.mark.long
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 120), marks=pytest.mark.long)])
def test_where_the_tube_is_about_to_hold_all_targets_the_path_is_as_exact_as_elsewhere(seeds, kernel, C):
    """There the objective falls to zero, and all points of the largest and of the smallest target tie."""
    for seed in seeds:
        X, y = integers(seed, 24, 2, 4)
        for merge in (False, True):
            path = svr_path(X, y, over="epsilon", C=C, kernel=kernel, gamma=0.1, merge_duplicates=merge)
            assert path.largest_gap_ <= 1e-9, (seed, merge)
            assert path.n_backups == 0
            assert max(gaps_at(path, path.epsilon)) <= 1e-9


@pytest.mark.parametrize(
    ("seed", "merge"), [(12, True), (14, False), (14, True), (68, False), (75, True), (119, False)]
)
def test_at_the_widest_tube_a_part_that_is_not_exact_is_followed_again(seed, merge):
    """Which of these have a gap above the promise before that depends on the processor."""
    X, y = integers(seed, 24, 2, 4)
    path = svr_path(X, y, over="epsilon", C=10.0, kernel="rbf", gamma=0.1, merge_duplicates=merge)
    assert path.largest_gap_ <= 1e-9
    assert path.n_backups == 0
    assert max(gaps_at(path, path.epsilon)) <= 1e-9


def test_lines_as_steep_as_float64_allows_are_exact_at_both_their_ends():
    """A point that all but depends on the elbow: coefficients of size ten move by a hundred million for a lam of one."""
    rng = np.random.default_rng(302)
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 4))
    X = rng.integers(0, int(rng.integers(2, 5)), size=(n, d)).astype(float)
    y = rng.integers(0, int(rng.integers(1, 7)), size=n).astype(float)
    path = svr_path(X, y, over="epsilon", C=10.0, kernel="poly", gamma=0.1)
    assert path.largest_gap_ <= 1e-9


def test_behind_exchanges_a_segment_begins_at_the_coefficients_they_led_to():
    """Two places, several targets at each: at the first lam coefficients are exchanged, and no decision value moves."""
    x, y = np.array([1.0, 1.0, 0.0, 1.0, 0.0]), np.array([2.0, 3.0, 1.0, 0.0, 0.0])
    w = np.array([0.5, 0.5, 2.0, 4.0, 3.0])
    path = svr_path(x[:, None], y, over="epsilon", C=1.0, kernel="poly", gamma=1.0, sample_weight=w)
    assert path.largest_gap_ <= 1e-9
    inside = 0.5 * (path.epsilon[1:] + path.epsilon[:-1])
    assert max(gaps_at(path, inside)) <= 1e-9
    assert path.n_backups == 0


# Units.


def in_units(kind, X, y, kernel_unit, target_unit, shift):
    """The path of a problem in other units, and by what its parameter and its coefficients are multiplied."""
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) * kernel_unit
    cost, y = target_unit / kernel_unit, y * target_unit + shift
    # Of any weights, so that no sum of some is that of others, and there is one solution.
    options = {"kernel": "precomputed", "sample_weight": np.random.default_rng(1).uniform(0.5, 1.5, y.size)}
    if kind == "C":
        path = svr_path(K, y, epsilon=0.2 * target_unit, C_min=0.01 * cost, C_max=100.0 * cost, **options)
        return path, cost, cost
    if kind == "epsilon":
        return svr_path(K, y, over="epsilon", C=3.0 * cost, **options), target_unit, cost
    return one_class_path(K, **options), 1.0, 1.0


@pytest.mark.thin(5)
@pytest.mark.parametrize("kind", ["C", "epsilon", "nu"])
@pytest.mark.parametrize(
    ("kernel_unit", "target_unit", "shift"),
    [(1e-8, 1.0, 0.0), (1e8, 1.0, 0.0), (1.0, 1e-6, 0.0), (1.0, 1e6, 0.0), (1e8, 1e-6, 0.0), (1.0, 1.0, 1e6)],
)
def test_units_do_not_matter(kind, kernel_unit, target_unit, shift):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((14, 2))
    # Numbers that a shift does not round, so that it is the same problem.
    y = np.round(1024.0 * (np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(14))) / 1024.0
    plain, _, _ = in_units(kind, X, y, 1.0, 1.0, 0.0)
    path, unit, cost = in_units(kind, X, y, kernel_unit, target_unit, shift)
    at = plain.value_of(plain.lam)
    # A long segment may be cut where rounding says so; sets change where they do.
    assert [event[1:] for event in path.events] == [event[1:] for event in plain.events]
    where = np.array([event[0] for event in plain.events])
    np.testing.assert_allclose([event[0] for event in path.events], unit * where, rtol=1e-8, atol=1e-9 * unit)
    assert path.largest_gap_ <= 1e-9
    assert path.n_backups == 0
    for v in 0.5 * (at[1:] + at[:-1]):
        found, expected = path.coefficients_at(unit * v), cost * plain.coefficients_at(v)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * cost * max(v, 1.0))
        size = kernel_unit if kind == "nu" else target_unit
        bias = size * plain.bias_at(v) + (0.0 if kind == "nu" else shift)
        assert path.bias_at(unit * v) == pytest.approx(bias, rel=1e-7, abs=1e-7 * size)


# Limits.


def followed(kind, X, y, **options):
    if kind == "C":
        return svr_path(X, y, epsilon=0.2, C_min=0.1, C_max=50.0, **options)
    if kind == "no tube":
        return svr_path(X, y, epsilon=0.0, C_min=0.1, C_max=50.0, **options)
    if kind == "epsilon":
        return svr_path(X, y, over="epsilon", C=10.0, **options)
    return one_class_path(X, nu_min=0.1, **options)


@pytest.mark.parametrize("kind", ["C", "no tube", "epsilon", "nu"])
@pytest.mark.parametrize("tries", [4, pytest.param(1000, marks=pytest.mark.long)])
def test_a_path_that_is_cut_anywhere_goes_on_to_the_same_end(kind, tries):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((18, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(18)
    whole = followed(kind, X, y)
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch)
        followed(kind, X, y)
        questions, clock.asked = clock.asked, 0
        for after in np.unique(np.linspace(0, questions, min(tries, questions + 1)).astype(int)):
            clock.after, clock.asked = int(after), 0
            path = followed(kind, X, y, max_time=1e6)
            if path.status != "complete":
                clock.after, clock.asked = 3, 0
                followed(kind, X, y, max_time=1e6, resume=path)
            clock.after = None
            followed(kind, X, y, resume=path)
            assert path.status == "complete", after
            assert path.largest_gap_ <= 1e-9, after
            assert path.n_backups == 0
            for value in rng.uniform(*sorted(path.value_of(path.lam[[0, -1]])), 5):
                found, expected = path.coefficients_at(value), whole.coefficients_at(value)
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["C", "no tube", "epsilon", "nu"])
def test_in_pieces_a_path_has_the_same_breakpoints(kind):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((16, 2)), rng.standard_normal(16)
    whole, path, pieces = followed(kind, X, y), None, 0
    while path is None or path.status != "complete":
        path = followed(kind, X, y, max_events=3, resume=path)
        pieces += 1
        assert pieces < 100
    assert pieces > 3
    np.testing.assert_allclose(path.lam, whole.lam, rtol=1e-9)
    assert path.largest_gap_ <= 1e-9


@pytest.mark.long
@pytest.mark.parametrize("kind", ["C", "epsilon", "nu"])
def test_the_largest_gap_is_above_what_is_seen_anywhere(kind):
    """On integer problems with heavy duplication, by certificates at random values and at all breakpoints."""
    for seed in range(150):
        X, y = integers(seed, 20, 2, 3)
        path = followed(kind, X, y, kernel="rbf", gamma=1.0)
        ends = path.value_of(path.lam)
        values = np.concatenate([ends, np.random.default_rng(seed).uniform(ends.min(), ends.max(), 20)])
        for certificate, value in zip(path.certificate_at(values), values, strict=True):
            size = abs(certificate.primal) + path.floor_at(value)
            assert certificate.gap - certificate.rounding <= (path.largest_gap_ + 1e-10) * size
        assert path.largest_gap_ <= 1e-9
