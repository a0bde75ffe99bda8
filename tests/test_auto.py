"""Solver "auto": pairs, exchanges, and parts of problems that are too large for their whole matrix."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from naive import reference_objective
from sklearn.datasets import make_classification, make_moons

from zerogap import DualGrowth, DualProblem, Gram, RelativeGap, Status, run, solve
from zerogap.problem import Known
from zerogap.solvers import Auto, Info, auto
from zerogap.solvers.smo import working_set

X, y = make_classification(240, 6, n_informative=4, flip_y=0.15, random_state=0)
y = 2.0 * y - 1.0
weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 240)


def problems(cache_size=1000):
    """With a cache of 0.3 megabytes the matrix does not fit."""
    gram = Gram(X, cache_size=cache_size)
    yield "hinge", DualProblem.hinge(gram, y, 2.0)
    yield "large C", DualProblem.hinge(gram, y, 1e4)
    yield "weighted", DualProblem.hinge(gram, y, 2.0, sample_weight=weight)
    yield "fixed bias", DualProblem.hinge(gram, y, 2.0, fit_intercept=False)
    yield "squared hinge", DualProblem.squared_hinge(gram, y, 2.0)
    yield "regression", DualProblem.epsilon_insensitive(gram, X[:, 0] + 0.1 * X[:, 1], 2.0, 0.05)
    yield "squared regression", DualProblem.squared_epsilon_insensitive(gram, X[:, 0] ** 2, 2.0, 0.1)
    yield "linear", DualProblem.hinge(Gram(X, "linear", cache_size=cache_size), y, 10.0)
    yield "hard", DualProblem.hard_margin(Gram(X, "rbf", gamma=5.0, cache_size=cache_size), y)


PROBLEMS = dict(problems())
SLOW = ("large C", "squared hinge", "squared regression")  # part by part


@pytest.fixture
def small_parts(monkeypatch):
    """Parts so small that a problem takes several, of which the first is drawn."""
    monkeypatch.setattr(auto, "LARGEST_PART", 70)
    monkeypatch.setattr(auto, "HELD_PART", 60)  # rows get the rest of some hundred kilobytes


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", PROBLEMS)
def test_to_the_last_digits(name):
    problem = PROBLEMS[name]
    solution = solve(problem, "auto", stop=RelativeGap(1e-9))
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(-reference_objective(problem), rel=1e-7)


@pytest.mark.parametrize("tol", [pytest.param(1e-3, marks=pytest.mark.long), 1e-9])
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in PROBLEMS])
def test_part_by_part_to_the_same_optimum(name, tol, small_parts):
    problem = dict(problems(cache_size=0.3))[name]
    solution = solve(problem, Auto(), stop=RelativeGap(tol))
    assert solution.status is Status.CONVERGED
    assert not problem.gram.is_complete
    assert solution.certificate.dual == pytest.approx(-reference_objective(problem), rel=max(tol, 1e-7))


@pytest.mark.long
def test_rows_of_free_points_are_kept_in_the_memory_that_parts_leave(monkeypatch):
    """Where a part has room for all free points; the next solution, from there, computes far fewer."""
    monkeypatch.setattr(auto, "LARGEST_PART", 400)
    A, b = make_moons(2000, noise=0.2, random_state=0)
    exact = solve(DualProblem.hinge(Gram(A, gamma=8.0), 2.0 * b - 1.0, 110.0), "smo", stop=RelativeGap(1e-8))
    work = []
    for held_part, most in ((10**6, 0), (400, (6e6 - 16.0 * 400**2) / (8 * 2000))):
        monkeypatch.setattr(auto, "HELD_PART", held_part)
        gram = Gram(A, gamma=8.0, cache_size=6.0)
        first = solve(DualProblem.hinge(gram, 2.0 * b - 1.0, 100.0), Auto(), stop=RelativeGap(1e-6))
        kept, began = np.count_nonzero(gram.has_rows(slice(None))), gram.evaluations
        assert min(most, 1) <= kept <= most
        problem = DualProblem.hinge(gram, 2.0 * b - 1.0, 110.0)
        second = solve(problem, Auto(), stop=RelativeGap(1e-6), resume=1.1 * first.beta)
        assert second.status is Status.CONVERGED
        assert second.certificate.dual == pytest.approx(exact.certificate.dual, rel=1e-6)
        work.append(gram.evaluations - began)
    assert work[1] < 0.7 * work[0]


def test_a_run_from_another_s_solution_keeps_rows_of_points_that_are_bits(monkeypatch):
    """As counts; the run that follows moves about the same points, and computes far fewer values."""
    rng = np.random.default_rng(0)
    A = 1.0 * (rng.random((2000, 40)) < 0.3)
    b = np.where(A[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(2000) > 1.4, 1.0, -1.0)
    monkeypatch.setattr(auto, "LARGEST_PART", 1100)
    gram, plain = Gram(A, gamma=0.02, cache_size=25.0), Gram(A, gamma=0.02, cache_size=25.0)
    monkeypatch.setattr(plain, "hold", lambda *arguments: None)
    work = []
    for one in (gram, plain):
        first = solve(DualProblem.hinge(one, b, 1.0), Auto(), stop=RelativeGap(1e-6))
        for C in (1.1, 1.2):
            began, room, known = one.evaluations, one.room, Known(first.beta, one.dot(first.beta))
            problem = replace(DualProblem.hinge(one, b, C), known=known)
            first = solve(problem, Auto(), stop=RelativeGap(1e-6), resume=problem.feasible(first.beta))
            assert first.status is Status.CONVERGED
            assert first.certificate.relative_gap <= 1e-6
        work.append((one.evaluations - began, room))
    assert work[0][0] < 0.75 * work[1][0]  # half of what is left are the matrices of parts
    assert 16.0 * 1100**2 <= work[0][1] < work[1][1]


def test_the_first_part_is_drawn(small_parts):
    """At zero all points are alike; and of what the first part finds nearly all is right."""
    A, b = make_moons(2000, noise=0.2, random_state=0)
    problem = DualProblem.hinge(Gram(A, cache_size=1.0), 2.0 * b - 1.0, 1.0)
    state = Auto().init(problem)
    first = state.memory.first
    assert first.size == auto.LARGEST_PART == np.unique(first).size
    assert abs(b[first].mean() - b.mean()) < 0.2
    Auto().step(problem, state, 10_000, 1e-3)
    assert state.memory.first is None
    assert set(np.flatnonzero(state.beta)) <= set(first)
    assert Auto().init(problem, state.beta).memory.first is None  # who goes on from a point knows which violate


def test_where_more_points_are_free_than_a_part_has_it_grows(small_parts):
    """Else each part would leave what the one before has found."""
    A, b = make_moons(2000, noise=0.2, random_state=0)
    problem = DualProblem.hinge(Gram(A, gamma=50.0, cache_size=6.0), 2.0 * b - 1.0, 10.0)
    state = Auto().init(problem, solve(problem, "smo", stop=RelativeGap(1e-2)).beta)
    problem.gram.forget()  # the room is for parts
    n_free = auto._count_free(problem, state)
    assert n_free > 2 * auto.LARGEST_PART
    part = Auto()._opened(problem, state, 1e-9, *auto.smo.bounds(problem, state))
    assert part.points.size >= n_free
    assert 8.0 * part.points.size**2 <= auto.ROOM_OF_PART * 6e6


def test_exchanges_of_a_part_are_compared_by_what_they_change_in_the_whole(monkeypatch):
    """The objective of a part alone leaves out what the others pull: by that every exchange here looked like a step back."""
    monkeypatch.setattr(auto, "LARGEST_PART", 400)
    A, b = make_moons(2000, noise=0.2, random_state=0)
    problem, found, exchange = (
        DualProblem.hinge(Gram(A, gamma=0.5, cache_size=6.0), 2.0 * b - 1.0, 1e4),
        [],
        auto._exchange,
    )
    monkeypatch.setattr(auto, "_exchange", lambda *of: found.append((of[0].n, exchange(*of))) or found[-1][1])
    solution = solve(problem, Auto(), stop=RelativeGap(1e-4))
    assert solution.status is Status.CONVERGED
    of_parts = [is_better for n, (_, is_better, _) in found if n < 2000]
    assert len(of_parts) >= 3
    assert all(of_parts)


# Values in float32.


def open_part(problem, beta=None, target=1e-6):
    state = Auto().init(problem, beta)
    return state, Auto()._opened(problem, state, target, *auto.smo.bounds(problem, state))


def test_pairs_of_a_part_read_values_in_float32(small_parts):
    problem = dict(problems(cache_size=0.3))["hinge"]
    state, part = open_part(problem)
    assert state.memory.is_rounded
    assert part.problem.gram.is_rounded
    np.testing.assert_array_equal(
        part.problem.gram.full(), Gram(X).full()[np.ix_(*[part.points] * 2)].astype(np.float32)
    )


@pytest.mark.parametrize("power", [-40, 40])
def test_values_that_float32_has_no_room_for_are_not_rounded(power, small_parts):
    A = 10.0 ** (power / 2) * X
    problem = DualProblem.hinge(Gram(A, "poly", degree=1, gamma=1.0, cache_size=0.3), y, 10.0 ** (2 - power))
    _, part = open_part(problem)
    assert not part.problem.gram.is_rounded
    assert solve(problem, Auto(), stop=RelativeGap(1e-4), max_time=20).status is Status.CONVERGED


@pytest.mark.parametrize("loss", ["hard", "hinge"])
def test_points_that_float32_does_not_tell_apart(loss, small_parts):
    """The curvature of such a pair is zero in float32, and the dual without bound: in float64 it is not."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 4))
    A, b = np.concatenate([A, A + 1e-4 * rng.standard_normal((100, 4))]), np.repeat([-1.0, 1.0], 100)
    gram = Gram(A, gamma=1.0, cache_size=0.2)
    problem = DualProblem.hard_margin(gram, b) if loss == "hard" else DualProblem.hinge(gram, b, 1e8)
    _, part = open_part(problem)
    assert part.problem.gram.is_rounded
    solution = solve(problem, Auto(), stop=RelativeGap(1e-3))
    assert solution.status is Status.CONVERGED
    whole = solve(replace(problem, gram=Gram(A, gamma=1.0)), "auto", stop=RelativeGap(1e-3))
    assert solution.certificate.dual == pytest.approx(whole.certificate.dual, rel=2e-3)


def test_where_float32_leads_astray_a_part_is_not_put_back(small_parts, monkeypatch):
    """What was rounded is wrong by far here: the run goes on with values in float64."""
    rounded, kinds, opened = Gram.rounded, [], Auto._opened

    def wrong(gram):
        twin = rounded(gram)
        twin.full()[...] *= np.where(np.eye(twin.n), 1.0, 0.3)
        return twin

    def noted(*arguments):
        part = opened(*arguments)
        kinds.append(part.problem.gram.is_rounded)
        return part

    monkeypatch.setattr(Gram, "rounded", wrong)
    monkeypatch.setattr(Auto, "_opened", noted)
    problem = dict(problems(cache_size=0.3))["hinge"]
    solution = solve(problem, Auto(), stop=RelativeGap(1e-6))
    assert solution.status is Status.CONVERGED
    assert kinds[0]
    assert not kinds[-1]
    assert np.all(np.diff(solution.trace["dual"]) >= -1e-12 * solution.certificate.dual)


def test_where_exchanges_are_wanted_a_part_of_float32_does_not_cost_many_more(monkeypatch):
    """Half solved, and then too large for float64, it would be in the way of the smaller ones that follow."""
    rng, opened, counts = np.random.default_rng(5), Auto._opened, []
    A, b = rng.standard_normal((500, 3)), rng.choice([-1.0, 1.0], 3000)
    A = np.repeat(A, 6, axis=0) + 1e-3 * rng.standard_normal((3000, 3))

    def counted(*arguments):
        counts[-1] += 1
        return opened(*arguments)

    monkeypatch.setattr(Auto, "_opened", counted)
    for can_round in (auto._can_round, lambda problem: False):
        monkeypatch.setattr(auto, "_can_round", can_round)
        counts.append(0)
        problem = DualProblem.hinge(Gram(A, gamma=0.5, cache_size=20.0), b, 1e3)
        assert solve(problem, Auto(), stop=RelativeGap(1e-3)).status is Status.CONVERGED
    assert counts[0] <= 3 * counts[1]


@pytest.mark.parametrize("trace_every", [10, 500])
def test_a_part_that_is_open_says_nothing_of_growth(trace_every, small_parts):
    """What it has moved is not put back yet: a rule that asks for growth would end the run where it began."""
    problem = dict(problems(cache_size=0.3))["hinge"]
    solution = solve(problem, Auto(), stop=DualGrowth(1e-9), trace_every=trace_every)
    assert solution.certificate.relative_gap < 0.1


def test_moves_that_are_not_part_of_the_state_yet_are_no_standstill(monkeypatch):
    """Thousands of pairs of a part that is given up in the end."""
    step, left = Auto.step, [3]

    def waiting(solver, problem, state, max_steps, kkt_target):
        if left[0]:
            left[0] -= 1
            return state, Info(2000, is_pending=True)
        return step(solver, problem, state, max_steps, kkt_target)

    monkeypatch.setattr(Auto, "step", waiting)
    solution = solve(PROBLEMS["hinge"], Auto(), stop=RelativeGap(1e-6))
    assert solution.status is Status.CONVERGED
    assert not left[0]


def test_a_part_is_left_where_all_points_move(small_parts):
    """Rows that fill the memory leave no room for parts: then one that was open would undo what has moved since."""
    problem, solver = dict(problems(cache_size=0.3))["hinge"], Auto()
    solution = solve(problem, solver, stop=RelativeGap(1e-8), max_steps=60, trace_every=20)
    assert solution.state.memory.open is not None
    problem.gram.fill()
    second = solve(problem, solver, stop=RelativeGap(1e-8), max_steps=60, trace_every=20, resume=solution)
    assert second.state.memory.open is None
    problem.gram.forget()
    third = solve(problem, solver, stop=RelativeGap(1e-8), trace_every=20, resume=second)
    assert third.status is Status.CONVERGED
    assert np.all(np.diff(third.trace["dual"]) >= -1e-10 * third.certificate.dual)


def test_many_points_that_are_the_same_part_by_part(small_parts):
    rng = np.random.default_rng(0)
    corner = rng.integers(0, 2, (200, 2)).astype(float)
    label = np.where(rng.random(200) < 0.4 + 0.2 * corner[:, 0], 1.0, -1.0)
    problem = DualProblem.hinge(Gram(corner, cache_size=0.1), label, 1.0)
    solution = solve(problem, Auto(), stop=RelativeGap(1e-9))
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(-reference_objective(problem), rel=1e-7)


@pytest.mark.parametrize("at_once", [*(pytest.param(k, marks=pytest.mark.long) for k in (3, 9)), 50])
def test_in_steps_and_resumed(at_once, small_parts):
    problem = DualProblem.hinge(Gram(X, cache_size=0.3), y, 50.0)
    solver = Auto()
    whole = solve(problem, solver, stop=RelativeGap(1e-8))
    solution = solve(problem, solver, stop=RelativeGap(1e-8), max_steps=at_once)
    for _ in range(5000):
        if solution.status is not Status.MAX_STEPS:
            break
        before = solution.n_iter
        solution = solve(problem, solver, stop=RelativeGap(1e-8), max_steps=at_once, resume=solution)
        assert solution.n_iter <= before + at_once
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(whole.certificate.dual, rel=1e-7)


def test_exchanges_that_rounding_leads_astray_are_not_taken(monkeypatch):
    problem = PROBLEMS["large C"]
    state = Auto().init(problem)
    Auto().step(problem, state, 10_000, 0.0)
    beta = state.beta.copy()

    class Astray(auto.ActiveSet):
        def optimise(self, problem, tolerance=0.0, max_steps=None, together=1):
            self.residual -= 1e6 * np.sign(self.beta)  # an objective that weak duality forbids
            return 1

    monkeypatch.setattr(auto, "ActiveSet", Astray)
    assert auto._exchange(problem, state, 10, 0.0)[1] is False
    np.testing.assert_array_equal(state.beta, beta)


def test_pairs_go_on_where_they_cost_less():
    problem = PROBLEMS["hinge"]
    state = Auto().init(problem)
    state.memory.is_under_way = True
    Auto().step(problem, state, 10_000, 0.01)
    violation = auto._violation(problem, state)
    assert state.memory.per_halving > 0
    assert Auto()._pays(problem, state, violation, 0.9 * violation)
    assert not Auto()._pays(problem, state, violation, 1e-300)
    assert not Auto()._pays(problem, state, violation, 0.0)


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "regression", "fixed bias"])
def test_compiled_exchanges_keep_the_residual_in_step(name):
    problem = PROBLEMS[name]
    problem.gram.full()
    active = auto.ActiveSet(problem, solve(problem, "smo", stop=RelativeGap(0.3)).beta.copy())
    active.optimise(problem, 1e-6)
    scale = 1.0 + np.abs(active.beta).sum()
    np.testing.assert_allclose(active.residual, problem.residual(active.beta), rtol=0, atol=1e-13 * scale)


# A residual that its solver vouches for.


def test_a_residual_that_is_vouched_for_is_not_computed_again(small_parts, monkeypatch):
    monkeypatch.setattr(run, "WORK_PAST_LIMIT", 0)  # so that it would take long
    refreshed = []
    monkeypatch.setattr(run.SolverRun, "_refresh", lambda run, **_: refreshed.append(run))
    for name in ("hinge", "regression", "squared hinge"):
        problem = dict(problems(cache_size=0.3))[name]
        solution = solve(problem, Auto(), stop=RelativeGap(1e-3))
        assert solution.status is Status.CONVERGED
        assert not refreshed
        true = problem.certify(solution.beta, precisely=True)
        for part in ("gap", "primal", "dual"):
            found, exact = getattr(solution.certificate, part), getattr(true, part)
            assert abs(found - exact) <= solution.certificate.rounding + true.rounding


@dataclass(frozen=True)
class Careless:
    """A solver that spoils some residuals, and says that it has not."""

    def init(self, problem, beta=None):
        return Auto().init(problem, beta)

    def step(self, problem, state, max_steps, kkt_target):
        state, info = Auto().step(problem, state, max_steps, kkt_target)
        state.residual[::2] += 1e-3
        return state, replace(info, drift=0.0)


def test_who_vouches_for_a_wrong_residual_is_not_believed(small_parts, monkeypatch):
    monkeypatch.setattr(run, "WORK_PAST_LIMIT", 0)
    problem = dict(problems(cache_size=0.3))["hinge"]
    solution = solve(problem, Careless(), stop=RelativeGap(0.1), max_steps=10_000)
    true = problem.certify(solution.beta, precisely=True)
    assert abs(solution.certificate.gap - true.gap) <= solution.certificate.rounding + true.rounding


def test_a_part_that_takes_long_is_no_standstill(small_parts, monkeypatch):
    """Its points move before it is solved, and the others hear of it in time."""
    monkeypatch.setattr(run, "UNMOVED_AFTER", 0)
    monkeypatch.setattr(auto, "PAIR", 1e-15)  # pairs cost nothing: no exchanges
    monkeypatch.setattr(auto, "PER_POINT", 0.0)
    problem = dict(problems(cache_size=0.3))["large C"]
    solution = solve(problem, Auto(), stop=RelativeGap(1e-2), trace_every=50)
    assert solution.status is Status.CONVERGED
    assert max(np.diff(solution.trace["step"])) <= 50


@pytest.mark.parametrize("loss", [DualProblem.hinge, DualProblem.squared_hinge])
def test_where_pairs_crawl_exchanges_take_over(loss):
    """Kernel values from 1 to 1e5 and a large C: pairs alone would take millions of moves."""
    rng = np.random.default_rng(2)
    A, b = rng.standard_normal((30, 2)) * [1.0, 2.0], np.where(rng.random(30) < 0.5, 1.0, -1.0)
    problem = loss(Gram(A, "poly", degree=3, gamma=0.5, coef0=1.0), b, 1e3)
    assert solve(problem, "smo", stop=RelativeGap(1e-7), max_steps=100_000).status is Status.MAX_STEPS
    assert solve(problem, stop=RelativeGap(1e-7), max_steps=100_000).status is Status.CONVERGED


@dataclass(frozen=True)
class Cautious(Careless):
    """A solver that says its residual may be off by more than it is."""

    def step(self, problem, state, max_steps, kkt_target):
        state, info = Auto().step(problem, state, max_steps, kkt_target)
        return state, replace(info, drift=1e-5)


def test_what_a_solver_tells_of_its_residual_counts(small_parts, monkeypatch):
    monkeypatch.setattr(run, "WORK_PAST_LIMIT", 0)
    problem = dict(problems(cache_size=0.3))["hinge"]
    solution = solve(problem, Cautious(), stop=RelativeGap(0.1), max_steps=10_000)
    assert solution.status is Status.CONVERGED
    free = np.count_nonzero((solution.beta != 0.0) & (np.abs(solution.beta) < 2.0))
    assert solution.certificate.rounding >= 1e-5 * free  # a free point may cost a slope of one, at least, times that


def test_a_run_that_is_cut_tells_about_the_gap_of_its_point(monkeypatch):
    """By what its solver knows of its residual: a bound by the pairs that were moved told gaps that are no news."""
    monkeypatch.setattr(run, "WORK_PAST_LIMIT", 0)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 8))
    problem = DualProblem.epsilon_insensitive(Gram(A, cache_size=4.0), np.sin(A[:, 0]) + A[:, 1] ** 2, 100.0, 0.01)
    solution = solve(problem, Auto(), stop=RelativeGap(1e-12), max_time=0.5)
    assert solution.status is Status.MAX_TIME
    assert solution.n_iter > 0
    gap = problem.certify(solution.beta).relative_gap
    assert gap <= solution.certificate.relative_gap <= 1.0001 * gap


def test_a_part_is_solved_further_than_asked(monkeypatch):
    """Each part that follows would take the rows of all points that have moved."""
    monkeypatch.setattr(auto, "LARGEST_PART", 600)
    A, b = make_moons(2000, noise=0.2, random_state=0)
    problem = DualProblem.hinge(Gram(A, gamma=8.0, cache_size=6.0), 2.0 * b - 1.0, 10.0)
    state = Auto().init(problem, solve(problem, Auto(), stop=RelativeGap(1e-2)).beta)
    opened, asked = [], 0.5 * auto._violation(problem, state)
    monkeypatch.setattr(auto.smo, "working_set", lambda *of: opened.append(working_set(*of)) or opened[-1])
    Auto().step(problem, state, 10_000, asked)
    (points,) = opened
    assert state.memory.has_all_free
    above, below = (state.residual + state.up_offset)[points], (state.residual + state.low_offset)[points]
    assert above.max() - below.min() <= 0.101 * asked


def test_a_cap_that_no_coefficient_comes_near_costs_no_pairs():
    """Margins that are a little short are made longer at the end: what they would cost, a multiple of C, does not matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 30))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(700) > 0.0, 1.0, -1.0)
    gram = Gram(X)
    found = [solve(DualProblem.hinge(gram, y, C), "auto", stop=RelativeGap(1e-4)) for C in (1e3, 1e5, 1e7)]
    assert all(solution.status is Status.CONVERGED for solution in found)
    assert max(np.abs(solution.beta).max() for solution in found) < 100.0
    fewest, most = min(solution.n_iter for solution in found), max(solution.n_iter for solution in found)
    assert most <= 1.2 * fewest
