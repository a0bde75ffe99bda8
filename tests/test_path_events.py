"""The compiled parts of engine "single", each against a few lines of plain NumPy on drawn lines."""

import numpy as np
import pytest

from zerogap import svm_path
from zerogap.compiled import NO_POINT
from zerogap.free_system import DenseFreeSystem
from zerogap.gram import Gram
from zerogap.path import single
from zerogap.path.engine import ELBOW, LEFT, RIGHT, Segment
from zerogap.path.events import PointArrays, Scale, line_residual, lines_hold, ratio_test, tied_candidates
from zerogap.path.family import Family
from zerogap.path.lines import Lines
from zerogap.path.rows import ElbowLines
from zerogap.path.screening import Candidates, Displacement, Reference, Screening
from zerogap.path.sets import Sets
from zerogap.path.single import NextEvent, Single, SingleEngine
from zerogap.path.tolerances import LEFT_OVER, ROUGH, SLOW


def point_arrays(y, w, status):
    """Points of two classes."""
    family, none = Family.hinge(y, w), np.zeros(y.size)
    return PointArrays(
        y,
        w,
        family.low,
        status,
        none.copy(),
        none.copy(),
        family.target0,
        family.target1,
        none,
        y.copy(),
        family.tube,
        0.0,
    )


def drawn(seed, n=12, m=4):
    """Lines of any slope; half of the points are candidates, and those of the elbow are not all among them."""
    rng = np.random.default_rng(seed)
    y, w = rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 2.0, n)
    E = rng.choice(n, m, replace=False)
    status = rng.choice([RIGHT, LEFT], n)
    status[E] = ELBOW
    lam = rng.uniform(0.5, 2.0)
    a = rng.uniform(0.05, 0.95, m) * w[E]  # y b at lam
    v = rng.standard_normal(m)
    u = y[E] * a - lam * v
    points = rng.permutation(n)[: n // 2 + 2]
    place_of = np.full(n, -1)
    place_of[points] = np.arange(points.size)
    p, q = rng.standard_normal((2, points.size))
    return (
        lam,
        point_arrays(y, w, status),
        ElbowLines(E, u, v, 0.0),
        Candidates(points, place_of, p, q),
    )


def roots_of(lam, points, elbow, candidates, largest=1.0):
    """Where each point gets to the end of its set as lam falls: pairs of lam and point, of the elbow and of the others."""
    y, w, status = points.y, points.w, points.status
    leaving, entering = [], []
    for i, u, v in zip(*elbow[:3], strict=True):
        rate, a = y[i] * v, y[i] * u
        if abs(rate) > SLOW * np.abs(elbow.v).max():
            leaving.append((min(lam, (-a if rate > 0 else w[i] - a) / rate), int(i)))
    for i, p, q in zip(candidates.points, candidates.p, candidates.q, strict=True):
        slope = y[i] * q - 1.0
        is_coming = slope > 0 if status[i] == RIGHT else slope < 0
        if status[i] != ELBOW and is_coming:
            entering.append((min(lam, -y[i] * p / slope), int(i)))
    return leaving, entering


@pytest.mark.parametrize("lam_end", [1e-3, 0.45])
def test_the_ratio_test_finds_the_first_and_the_second_end(lam_end):
    kinds = set()
    for seed in range(200):
        lam, points, elbow, candidates = drawn(seed)
        reference = Reference(elbow.points[:2], elbow.v[:2], 0.0, points.m1[elbow.points[:2]])
        found = ratio_test(lam_end, lam, points, elbow, candidates, reference, 1.0)
        leaving, entering = roots_of(lam, points, elbow, candidates)
        ends = sorted(((*end, kind) for kind, list_ in enumerate((leaving, entering)) for end in list_), reverse=True)
        ends = [end for end in ends if end[0] > lam_end]
        if not ends:
            assert (found.lam, found.point, found.position) == (lam_end, NO_POINT, NO_POINT)
            kinds.add("none")
            continue
        at, point, kind = ends[0]
        assert found.lam == pytest.approx(at, rel=1e-12)
        is_tied = len(ends) > 1 and ends[1][0] == at  # several are past their margin, and enter at once
        if not is_tied:
            assert found.point == point
            assert found.position == (NO_POINT if kind else elbow.points.tolist().index(point))
        if len(ends) > 1:
            assert found.second == pytest.approx(ends[1][0], rel=1e-12)
        else:
            assert found.second <= lam_end
        kinds.add(("leaves", "enters")[kind] + " tied" * bool(is_tied))
    assert {"leaves", "enters", "enters tied"} <= kinds


def test_what_the_ratio_test_tells_of_the_lines():
    for seed in range(50):
        lam, points, elbow, candidates = drawn(seed)
        E, u, v, _ = elbow
        u[0] += 3.0 * points.y[E[0]] * points.w[E[0]]  # outside
        found = ratio_test(1e-3, lam, points, elbow, candidates, Reference(E[:2], v[:2], 0.0, points.m1[E[:2]]), 1.0)
        a = points.y[E] * (u + lam * v)
        assert found.outside == pytest.approx(max(0.0, (-a / points.w[E]).max(), (a / points.w[E] - 1.0).max()))
        assert found.size == pytest.approx(np.abs(u).sum() + lam * np.abs(v).sum())
        seen = [(i, candidates.place_of[i]) for i in E if candidates.place_of[i] >= 0]
        left = [abs(candidates.p[j]) + lam * abs(candidates.q[j] - points.y[i]) for i, j in seen]
        assert found.left_over == pytest.approx(max(left, default=0.0))
        assert (found.left_over, found.size) == line_residual(lam, lam, points.m0, points.m1, elbow, candidates)


def test_of_ties_the_fastest_that_leaves_comes_first_else_all_that_enter_are_told():
    kinds = set()
    for seed in range(200):
        lam, points, elbow, candidates = drawn(seed)
        near = np.random.default_rng(seed).uniform(0.2, 1.0) * lam
        position, point, entering, leaves_at = tied_candidates(near, lam, points, elbow, candidates, 1.0)
        leave, enter = ([i for at, i in ends if at >= near] for ends in roots_of(lam, points, elbow, candidates))
        if leave:
            speed = dict(zip(elbow.points.tolist(), np.abs(elbow.v), strict=True))
            assert point == max(leave, key=speed.get) == elbow.points[position]
            assert entering.size == 0
            at, _ = roots_of(lam, points, elbow, candidates)
            assert leaves_at == pytest.approx(max(root for root, _ in at), rel=1e-12)
        else:
            assert (position, point) == (NO_POINT, NO_POINT)
            assert sorted(entering) == sorted(enter)
        kinds.add((bool(leave), bool(enter)))
    assert len(kinds) == 4


def test_a_point_alone_on_the_elbow_does_not_leave():
    lam, points, elbow, candidates = drawn(0)
    alone = ElbowLines(*(x[:1] for x in elbow[:3]), elbow.v0)
    none = Candidates(candidates.points[:0], candidates.place_of, candidates.p[:0], candidates.q[:0])
    found = ratio_test(
        1e-3, lam, points, alone, none, Reference(alone.points, alone.v, 0.0, points.m1[alone.points]), 1.0
    )
    assert (found.point, found.lam) == (NO_POINT, 1e-3)
    assert tied_candidates(1e-3, lam, points, alone, none, 1.0)[:2] == (NO_POINT, NO_POINT)


def test_a_rate_that_is_rounding_is_none():
    lam, points, elbow, candidates = drawn(3)
    none = Candidates(candidates.points[:0], candidates.place_of, candidates.p[:0], candidates.q[:0])
    slow = elbow._replace(v=np.array([1.0, 1e-14, 1e-14, 1e-14]) * points.y[elbow.points])
    slow = slow._replace(u=points.y[elbow.points] * 0.9 * points.w[elbow.points])
    found = ratio_test(1e-30, lam, points, slow, none, Reference(slow.points, slow.v, 0.0, points.m1[slow.points]), 1.0)
    assert found.point in (NO_POINT, elbow.points[0])


def test_a_slope_that_is_rounding_is_none():
    """y q - 1 is rounded at 1 at the least, however slowly the elbow moves."""
    lam, points, elbow, candidates = drawn(3)
    points.status[:] = np.where(points.status == ELBOW, ELBOW, RIGHT)
    still = elbow._replace(v=np.full(4, 1e-20) * points.y[elbow.points])
    still = still._replace(u=points.y[elbow.points] * 0.5 * points.w[elbow.points])
    for slope, is_met in ((0.5 * SLOW, False), (4.0 * SLOW, True)):
        q = points.y[candidates.points] * (1.0 + slope)
        p = -points.y[candidates.points] * slope * 0.5 * lam  # on its margin at lam / 2
        found = ratio_test(
            1e-3,
            lam,
            points,
            still,
            candidates._replace(p=p, q=q),
            Reference(still.points, still.v, 0.0, points.m1[still.points]),
            1.0,
        )
        assert (found.point != NO_POINT and points.status[found.point] == RIGHT) == is_met


def test_lines_hold_as_long_as_they_leave_little_and_were_not_steep():
    scale, lam = Scale(1.0, 1e-16, LEFT_OVER, 1e-14, 1e-13, 0.0), 0.1
    tolerance = LEFT_OVER * lam + 1e-13
    assert lines_hold(0.99 * tolerance, 1.0, lam, 0.0, scale) == (True, 1e-16)
    assert lines_hold(1.01 * tolerance, 1.0, lam, 0.0, scale) == (False, 1e-16)
    steep = ROUGH * 1e-16 + tolerance
    assert lines_hold(0.0, 1.0, lam, 0.99 * steep, scale) == (True, 0.99 * steep)
    assert lines_hold(0.0, 1.0, lam, 1.01 * steep, scale) == (False, 1.01 * steep)


@pytest.mark.parametrize("is_screened", [False, True])
def test_entering_and_leaving_keep_the_lines_of_all_candidates(is_screened):
    """From one elbow to the next by responses, against the bordered systems themselves."""
    rng = np.random.default_rng(1)
    n = 30
    X = rng.standard_normal((n, 20))
    K, y = X @ X.T, rng.choice([-1.0, 1.0], n)
    g = np.zeros(n)

    def solved(E, b_rest):
        A = np.block([[np.zeros((1, 1)), np.ones((1, E.size))], [np.ones((E.size, 1)), K[np.ix_(E, E)]]])
        rest = K @ b_rest
        right = np.array([[-b_rest.sum(), *(-rest[E])], [0.0, *y[E]]]).T
        (u0, v0), *x = np.linalg.solve(A, right)
        return np.ascontiguousarray(np.array(x).T), u0, v0, rest  # as paths keep them: no code is compiled for others

    E, b = np.arange(6), np.zeros(n)
    (u, v), u0, v0, rest = solved(E, b)
    system = DenseFreeSystem(K)
    for i in E:
        system.append(int(i))
    screening = Screening(K, Sets(K, Family.hinge(y, np.ones(n)), np.zeros(n, dtype=np.int64)), 25)
    screening.evaluate_all(Segment(E.copy(), u, v, u0, v0), g)
    if is_screened:
        screening.kept = screening.kept._replace(since=Displacement(10.0, 10.0, 10.0), moves=25)
        screening.room.norm[12:] = 0.0  # as if these could not be reached
        screening.p[12:], screening.q[12:] = 1e3 * y[12:], 0.0
        screening.screen(1.0, Displacement(0.0, 0.0, 0.0))
        assert screening.is_screened
    for kind, i in (("enter", 8), ("leave", 2), ("enter", 10), ("leave", 0), ("leave", 8), ("enter", 2)):
        E = system.points.copy()
        if kind == "enter":
            response = system.append(i)
            change = screening.enter(ElbowLines(E, u, v, v0), response, i, b[i])
            b[i] = 0.0
        else:
            position = E.tolist().index(i)
            response = system.remove_with_response(position)
            b[i] = 0.25 * y[i]
            change = screening.leave(ElbowLines(system.points, u, v, v0), response, i, position, b[i])
        u, v, u0, v0 = change.u, change.v, u0 + change.du * response.d0, v0 + change.dv * response.d0
        E = system.points
        (u_exact, v_exact), u0_exact, v0_exact, rest = solved(E, np.where(np.isin(np.arange(n), E), 0.0, b))
        np.testing.assert_allclose(u, u_exact, atol=1e-9)
        np.testing.assert_allclose(v, v_exact, atol=1e-9)
        assert (u0, v0) == (pytest.approx(u0_exact, abs=1e-9), pytest.approx(v0_exact, abs=1e-9))
        seen = screening.points
        np.testing.assert_array_equal(screening.place_of[seen], np.arange(seen.size))
        np.testing.assert_allclose(screening.p, (rest + K[:, E] @ u_exact + u0_exact)[seen], atol=1e-8)
        np.testing.assert_allclose(screening.q, (K[:, E] @ v_exact + v0_exact)[seen], atol=1e-8)


# Exchanges of a dependent point.


@pytest.fixture
def dependent_engine():
    """On a line two points span everything; the elbow has two, and any third depends on it."""
    X, y = np.array([[0.0], [1.0], [3.0], [4.0], [2.0]]), np.array([1, 1, 0, 0, 0])
    engine = svm_path(X, y, kernel="linear", C_max=0.5, C_min=0.1).engine
    assert isinstance(engine, SingleEngine)
    return engine


@pytest.mark.parametrize("room", [1e-3, 1e3])
def test_an_exchange_ends_at_the_first_bound_and_moves_no_decision_value(dependent_engine, room):
    engine = dependent_engine
    E = engine.lines.points.copy()
    assert E.size == 2
    i = next(j for j in range(engine.y.size) if j not in E)
    engine.sets.b[E] = 0.5 * engine.y[E] * engine.w[E]
    before, a = engine.sets.b.copy(), engine.y[E] * engine.sets.b[E]
    way = 1.0
    d = way * engine.lines.system.dependence(i)
    rate = engine.y[E] * d
    stops = np.where(rate < 0, a, engine.w[E] - a) / np.abs(rate)
    k, part = engine._exchange(i, way, room)
    assert part == pytest.approx(min(stops.min(), room))
    assert k == (NO_POINT if room < stops.min() else int(np.argmin(stops)))
    moved = engine.sets.b - before
    moved[i] += way * part
    np.testing.assert_allclose(engine.K @ moved, np.full(engine.y.size, (engine.K @ moved)[0]), atol=1e-12)
    assert moved.sum() == pytest.approx(0.0, abs=1e-12)


def test_a_shortened_event_is_a_quarter_of_lam_away_and_changes_no_set():
    event = NextEvent(0.2, 3, 1, LEFT, Displacement(1.8, 3.6, 0.9), 1e-15)
    short = single._shortened(event, 2.0)
    assert (short.lam, short.point, short.position, short.target) == (1.5, NO_POINT, NO_POINT, ELBOW)
    assert short.displacement == pytest.approx((0.5, 1.0, 0.25))
    assert short.outside == 1e-15


def test_margins_are_cleared_for_points_near_them_that_are_not_on_the_elbow():
    X = np.array([[0.0, 0.0], [1.0, 0.3], [3.0, 1.0], [4.0, 0.2]])
    engine = svm_path(X, [0, 0, 1, 1], kernel="linear", C_max=1e6).engine
    lines, near = engine.lines, []
    plain = lines._bias_between
    lines._bias_between = lambda v, points: near.append(points) or plain(v, points)
    others = np.setdiff1d(np.arange(4), lines.points)
    lines.screening.q[others[0]] = engine.y[others[0]] * (1.0 + 1e-9)
    lines._clear_margins()
    assert others[0] in near[0]
    assert others[-1] not in near[0] or engine.y[others[-1]] * lines.screening.q[others[-1]] < 1.0 + 1e-6


def test_at_a_breakpoint_the_segment_that_stays_in_the_box_is_read():
    """Of both, whichever it is: the one before, or the one behind."""
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2
    path = svm_path(X, y, C_min=0.1, C_max=10.0)
    for k in (5, 9):
        assert path._position(path.lam[k]) in (k - 1, k)
        for wrong, right, lam in ((k, k - 1, 1.0), (k - 1, k, 1.0), (k - 1, k, 1.0 + 1e-12), (k, k - 1, 1.0 - 1e-12)):
            kept = list(path._segments)
            path._segments[wrong] = kept[wrong]._replace(u=kept[wrong].u + 10.0 * path.y[kept[wrong].points])
            assert path._position(lam * path.lam[k]) == right
            path._segments[:] = kept


def tied_problem(kind):
    """Points whose margins are reached at a few C by many at once."""
    rng = np.random.default_rng(3)
    y = np.where(np.arange(60) < 25, 1.0, -1.0)
    if kind == "apart":  # kernel values between them are nothing
        return np.eye(60), y
    if kind == "weights":  # those of one weight tie
        return np.diag(rng.choice([1.0, 2.0, 4.0], 60)), y
    K = np.kron(np.eye(12), np.full((5, 5), 0.4)) + 0.6 * np.eye(60)  # groups of five, all as near to each other
    return K, y * np.where(rng.random(60) < 0.2, -1.0, 1.0)


@pytest.mark.parametrize("kind", ["apart", "weights", "groups"])
def test_points_that_tie_enter_the_elbow_together(kind, monkeypatch):
    K, y = tied_problem(kind)
    sizes, enter_all = [], Lines.enter_all

    def watched(lines, points):
        entered = enter_all(lines, points)
        sizes.append(entered.size)
        return entered

    monkeypatch.setattr(Lines, "enter_all", watched)
    path = svm_path(K, y, kernel="precomputed", C_min=1e-2)
    assert max(sizes) >= 8
    assert path.n_backups == 0
    assert path.largest_gap_ <= 1e-9
    monkeypatch.setattr(Lines, "enter_all", lambda lines, points: points[:0])
    one_by_one = svm_path(K, y, kernel="precomputed", C_min=1e-2)
    for C in (0.3, 0.7, 0.99, 1.01, 1.5, 3.0, 100.0):
        np.testing.assert_allclose(path.coefficients_at(C), one_by_one.coefficients_at(C), atol=1e-9 * C)


def test_tied_points_that_would_leave_their_box_do_not_enter():
    """As the others enter, those of the smaller class that are nearest to them are pushed back."""
    K, y = tied_problem("apart")
    engine = Single().start(Gram(K, "precomputed"), Family.hinge(y, np.ones(60)), 1.5)
    lines = engine.lines
    lines.solve(engine.lam)
    inside = np.setdiff1d(np.flatnonzero(y > 0), lines.points)[:10]
    outside = np.setdiff1d(np.flatnonzero(y > 0), [*lines.points, *inside])[:3]
    size, lines.sets.status[outside] = lines.points.size, RIGHT  # they would have to rise, and will fall
    assert sorted(lines.enter_all(np.concatenate([inside, outside]))) == sorted(inside)
    assert lines.points.size == size + 10
    assert lines.enter_all(outside).size == 0
