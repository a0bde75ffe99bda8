import math
import os
import signal
import threading
import time
from dataclasses import replace

import naive
import numpy as np
import pytest
from conftest import SOLVERS, points

from zerogap import (
    Certificate,
    DualGrowth,
    DualProblem,
    FeasibilityGap,
    Gram,
    KKTViolation,
    RelativeGap,
    Solution,
    Status,
    run,
    solve,
)
from zerogap.kernels import RBF, UNIT
from zerogap.limits import heard
from zerogap.solvers import SMO, Info, smo
from zerogap.solvers.smo import _sample, restrict


def test_simple_smo_says_what_it_reached(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    solution = solve(problem, "smo-simple", stop=RelativeGap(1e-10))
    assert solution.status is Status.EXHAUSTED
    assert 1e-10 < solution.certificate.relative_gap < 0.05
    optimum = -naive.reference_objective(problem)
    assert solution.certificate.dual <= optimum <= solution.certificate.primal
    loose = solve(problem, "smo-simple", stop=RelativeGap(0.05))
    assert loose.status is Status.CONVERGED


# Stopping rules and limits.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("stop", [RelativeGap(1e-5), KKTViolation(1e-4), DualGrowth(1e-12)], ids=str)
def test_every_solver_works_with_every_rule(solver, stop, plain):
    X, y, _ = plain
    solution = solve(DualProblem.hinge(Gram(X), y, 2.0), solver, stop=stop)
    assert solution.status is Status.CONVERGED
    if isinstance(stop, KKTViolation):
        assert naive.violation(solution.problem, solution.beta) <= 1e-4
    else:
        assert solution.certificate.relative_gap <= 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_ends_at_the_first_look_that_meets_its_rule(solver, plain):
    X, y, _ = plain
    solution = solve(DualProblem.hinge(Gram(X), y, 10.0), solver, stop=RelativeGap(1e-2), trace_every=1)
    assert solution.status is Status.CONVERGED
    assert (solution.trace["gap"][:-1] > 1e-2).all()


def test_the_feasibility_gap_is_over_primal_plus_one_rounding_included(plain):
    """(7.3) of chapter7: what rounding can have hidden counts in gap and objective alike."""
    near = Certificate(0.1, 0.1 - 1e-3, 1e-3, 0.0, 0.0, (0.0, 0.0), 0.0, 0.0)
    assert FeasibilityGap(1e-3).is_met(near, None)  # 1e-3 / 1.1
    assert not RelativeGap(1e-3).is_met(near, None)
    assert not FeasibilityGap(0.9e-3).is_met(near, None)
    assert not FeasibilityGap(1e-3).is_met(replace(near, rounding=2e-4), None)  # 1.2e-3 / 1.0998
    assert not FeasibilityGap(1e-3).is_met(replace(near, gap=0.0, rounding=1.2), None)
    X, y, _ = plain
    solution = solve(DualProblem.hinge(Gram(X), y, 2.0), stop=FeasibilityGap(1e-7))
    now = solution.certificate
    assert solution.status is Status.CONVERGED
    assert (now.gap + now.rounding) / (now.primal + 1 - now.rounding) <= 1e-7
    assert now.relative_gap > 1e-9  # and did not go on for ever


def test_rules_join_and_the_first_met_ends_the_run(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    joined = RelativeGap(1e-12) | KKTViolation(0.5)
    early = solve(problem, stop=joined)
    assert early.certificate.kkt_violation <= 0.5
    assert early.certificate.relative_gap > 1e-12
    assert solve(problem, stop=RelativeGap(0.5) | KKTViolation(1e-12)).certificate.kkt_violation > 1e-12


def test_growth_of_the_dual_objective_is_unreliable():
    """Criterion 1 of chapter7: far from the optimum the objective may creep for a long stretch."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) * [1.0, 1e-3]
    y = np.where(X[:, 1] > 0, 1.0, -1.0)
    problem = DualProblem.hinge(Gram(X, "linear"), y, 1e6)
    fooled = solve(problem, "smo-mvp", stop=DualGrowth(1e-3), trace_every=10)
    assert fooled.status is Status.CONVERGED  # says the rule
    assert fooled.certificate.relative_gap > 0.5  # says the certificate


def test_a_kkt_violation_bounds_the_gap(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    certificate = solve(problem, stop=KKTViolation(1e-3)).certificate
    assert certificate.gap <= certificate.kkt_violation * (problem.upper - problem.lower).sum()


class Clock:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_seconds_of_a_resumed_run_go_on_and_its_time_limit_begins_anew(plain, monkeypatch):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1000.0)
    solve(problem, "smo", max_steps=1)  # compiles by the real clock
    monkeypatch.setattr(time, "perf_counter", Clock())
    first = solve(problem, "smo", max_steps=100, trace_every=1, stop=RelativeGap(1e-9))
    long = first.trace[-1].seconds
    assert long >= 100
    second = solve(problem, "smo", max_steps=3, trace_every=1, stop=RelativeGap(1e-9), resume=first, max_time=90)
    assert (second.status, second.n_iter) == (Status.MAX_STEPS, 103)
    assert len(second.trace) == 104
    own = second.trace["seconds"][-3:] - long
    assert own[0] > 0
    assert own[-1] < 90


def test_resume_from_another_problem_or_solver_starts_at_its_point(plain):
    X, y, _ = plain
    gram = Gram(X)
    small = solve(DualProblem.hinge(gram, y, 1.0), stop=RelativeGap(1e-8))
    cold = solve(DualProblem.hinge(gram, y, 1.1), stop=RelativeGap(1e-8))
    warm = solve(DualProblem.hinge(gram, y, 1.1), stop=RelativeGap(1e-8), resume=small)
    assert warm.status is Status.CONVERGED
    assert warm.n_iter < cold.n_iter
    again = solve(small.problem, "smo-keerthi", stop=RelativeGap(1e-8), resume=small.beta)
    assert again.n_iter == 0
    with pytest.raises(ValueError, match="resume must hold 40 coefficients"):
        solve(small.problem, resume=np.zeros(3))


def test_time_limit_keeps_a_feasible_point():
    X, y, _ = points("plain")
    problem = DualProblem.hinge(Gram(X * [1.0, 1e-4, 1e-8], "linear"), y, 1e8)
    solution = solve(problem, "smo-mvp", stop=RelativeGap(1e-14), max_time=0.005)
    assert solution.status is Status.MAX_TIME
    assert abs(solution.beta.sum()) <= 1e-9 * np.abs(solution.beta).sum()
    assert np.isfinite(solution.certificate.gap)


def test_ctrl_c_keeps_the_point_and_gives_the_keyboard_back():
    X, y, _ = points("plain")
    problem = DualProblem.hinge(Gram(X * [1.0, 1e-4, 1e-8], "linear"), y, 1e8)
    before = signal.getsignal(signal.SIGINT)

    def press(state, row):
        if row.step >= 1000:
            os.kill(os.getpid(), signal.SIGINT)

    solution = solve(problem, "smo-mvp", stop=RelativeGap(1e-14), trace_every=500, callback=press)
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter > 0
    assert signal.getsignal(signal.SIGINT) is before
    heard()
    more = solve(problem, "smo-mvp", stop=RelativeGap(1e-14), max_steps=100, resume=solution)
    assert more.certificate.dual >= solution.certificate.dual


def test_where_kernel_values_are_dear_a_limit_leaves_a_certificate_of_the_running_residual(monkeypatch):
    """It says how far that may be off: every iteration adds a rounding of up to n products of the largest size."""
    monkeypatch.setattr(run, "WORK_PAST_LIMIT", 0)
    X, y = moons(500)
    problem = DualProblem.hinge(Gram(X, cache_size=0.1), y, 10.0)

    def press(state, row):
        if row.step >= 200:
            signal.raise_signal(signal.SIGINT)

    solution = solve(problem, "smo-mvp", stop=RelativeGap(1e-10), callback=press, trace_every=100)
    assert solution.status is Status.INTERRUPTED
    assert problem.gram.work_of(solution.beta) > 0  # rows that would have to be computed again
    now, truth = solution.certificate, problem.certify(solution.beta, precisely=True)
    assert abs(now.primal - truth.primal) + abs(now.dual - truth.dual) <= 2.0 * (now.rounding + truth.rounding)
    n, most = problem.n, problem.upper.max()
    drift = 2.0**-52 * (n + 8) * (solution.n_iter + 1) * (1.0 + n * most)
    without = problem.certify(solution.beta, solution.state.residual).rounding
    assert without < now.rounding <= without + 4.0 * n * most * drift


def test_a_second_ctrl_c_raises(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1000.0)
    before = signal.getsignal(signal.SIGINT)
    presses = 0

    def press(state, row):
        nonlocal presses
        presses += 1
        signal.raise_signal(signal.SIGINT)
        presses += 1
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        solve(problem, callback=press)
    assert presses == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_solve_works_outside_the_main_thread(plain):
    X, y, _ = plain
    found: list[Solution] = []
    thread = threading.Thread(target=lambda: found.append(solve(DualProblem.hinge(Gram(X), y, 2.0))))
    thread.start()
    thread.join()
    assert found[0].status is Status.CONVERGED


def test_callback_sees_every_look_and_can_stop(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1000.0)
    seen = []

    def callback(state, row):
        seen.append((row.step, state.beta.copy()))
        return row.step >= 20

    solution = solve(problem, callback=callback, trace_every=5)
    assert solution.status is Status.STOPPED
    assert [step for step, _ in seen] == [0, 5, 10, 15, 20]
    np.testing.assert_allclose(seen[-1][1], solution.beta, rtol=1e-12)


def test_trace_is_a_table_with_a_growing_dual(plain):
    X, y, _ = plain
    solution = solve(DualProblem.hinge(Gram(X), y, 1000.0), trace_every=1, stop=RelativeGap(1e-6))
    trace = solution.trace
    assert trace.columns == ("step", "seconds", "dual", "violation", "gap", "kernel_evaluations", "support")
    assert trace["step"].tolist() == list(range(solution.n_iter + 1))
    assert (np.diff(trace["dual"]) >= -1e-12 * abs(trace["dual"][-1])).all()
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert (np.diff(trace["kernel_evaluations"]) >= 0).all()
    assert trace[-1].support == solution.support.size
    assert set(trace.to_dict()) == set(trace.columns)
    assert "..." in repr(trace)
    with pytest.raises(KeyError, match="no column"):
        trace["loss"]


# Outcomes that are not errors.


def test_a_gap_below_rounding_ends_for_want_of_precision(plain):
    X, y, _ = plain
    solution = solve(DualProblem.hinge(Gram(X), y, 1e5), stop=RelativeGap(1e-25))
    assert solution.status is Status.PRECISION
    assert solution.certificate.gap <= naive.gap_of_rounding(solution.problem, solution.beta)


def test_second_order_moves_fewer_pairs_than_the_most_violating(plain):
    X, y, _ = plain
    counts = {
        solver: solve(DualProblem.hinge(Gram(X), y, 1000.0), solver, stop=RelativeGap(1e-8)).n_iter
        for solver in ("smo", "smo-mvp")
    }
    assert counts["smo"] < counts["smo-mvp"]


def moons(n):
    rng = np.random.default_rng(0)
    angle, y = rng.uniform(0, np.pi, n), rng.choice([-1.0, 1.0], n)
    X = np.column_stack([np.cos(angle) + 0.5 * (y > 0), np.sin(angle) - 0.3]) * y[:, None]
    return X + 0.2 * rng.standard_normal((n, 2)), y


def test_rows_not_asked_for_are_not_computed():
    X, y = moons(2000)
    frugal, speculative = Gram(X), Gram(X)
    a = solve(DualProblem.hinge(frugal, y, 1.0), SMO(rows_at_once=1, shrinking=False))
    b = solve(DualProblem.hinge(speculative, y, 1.0), SMO(shrinking=False))
    assert a.certificate.dual == pytest.approx(b.certificate.dual, rel=2e-4)
    assert frugal.evaluations <= 2000 * (2 * a.n_iter + 1)
    assert frugal.evaluations < speculative.evaluations < 2000**2


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "cache_size", "tol"),
    [
        pytest.param(700, 1000, 1e-7, id="all"),
        pytest.param(1500, 1000, 1e-7, id="many", marks=pytest.mark.long),
        pytest.param(700, 0.4, 1e-2, id="small-cache", marks=pytest.mark.long),
        pytest.param(1500, 1, 1e-7, id="small-cache-to-the-end", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "epsilon_insensitive"])
def test_shrinking_changes_nothing_but_the_cost(n, cache_size, tol, second_order, fit_intercept, name, monkeypatch):
    monkeypatch.setattr(smo, "SHRINK_FROM", 500)
    X, y = moons(n)
    runs = []
    for shrinking in (True, False):
        gram = Gram(X, gamma=2.0, cache_size=cache_size)
        problem = getattr(DualProblem, name)(gram, y, 10.0, fit_intercept=fit_intercept)
        runs.append(solve(problem, SMO(second_order, shrinking), stop=RelativeGap(tol)))
    shrunk, plain_run = runs
    assert shrunk.status is plain_run.status is Status.CONVERGED
    assert shrunk.certificate.dual == pytest.approx(plain_run.certificate.dual, rel=2 * tol)
    assert shrunk.state.memory.points.size < n


@pytest.mark.parametrize("solver", [SMO(), SMO(second_order=False)], ids=str)
def test_every_step_leaves_all_arrays_in_step_with_the_point(solver):
    """The loop would mend a residual gone wrong before it certifies; a solver must not count on that."""
    X, y = moons(1500)
    problem = DualProblem.hinge(Gram(X, gamma=2.0), y, 10.0)
    state = solver.init(problem)
    for kkt_target in (0.5, 0.1, 0.01):
        state, _ = solver.step(problem, state, 5000, kkt_target)
        below, above = problem.bias_interval(state.beta, state.residual)
        assert below - above <= kkt_target
        np.testing.assert_allclose(state.residual, problem.residual(state.beta), atol=1e-10)
        np.testing.assert_array_equal(state.up_offset, problem.up_offset(state.beta))
        np.testing.assert_array_equal(state.low_offset, problem.low_offset(state.beta))
    assert state.memory.points.size < 1500


def test_another_working_set_of_the_same_size_gets_its_own_kernel_values():
    X, y = moons(1500)
    problem = DualProblem.hinge(Gram(X, gamma=2.0), y, 10.0)
    state = SMO().init(problem)
    for points_ in (np.arange(0, 40), np.arange(20, 60)):
        part, _ = restrict(problem, state, points_)
        np.testing.assert_allclose(part.gram.full(), problem.gram.kernel(X[points_], X[points_]), atol=1e-13)


class Careless:
    """SMO that lets its residual and the sum of its coefficients drift, far more than rounding would."""

    def init(self, problem, beta=None):
        return SMO().init(problem, beta)

    def step(self, problem, state, most, kkt_target):
        state, info = SMO().step(problem, state, most, 0.0)
        state.residual[:] += 1e-6
        free = np.flatnonzero((state.beta != 0) & (state.beta > problem.lower) & (state.beta < problem.upper))
        state.beta[free[:1]] += 1e-7
        return state, info


def test_after_so_many_iterations_residual_and_sum_are_made_exact(plain, monkeypatch):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1000.0)
    monkeypatch.setattr(run, "REFRESH_EVERY", 50)
    drift = {}

    def row(state, row):
        off = state.residual - problem.residual(state.beta)
        drift[row.step] = (np.abs(off).max(), abs(math.fsum(state.beta)))

    solution = solve(problem, Careless(), stop=RelativeGap(1e-12), trace_every=10, max_steps=100, callback=row)
    assert sorted(drift) == list(range(0, 101, 10))
    size = np.abs(solution.beta).sum()
    for step, (residual, total) in drift.items():
        if step % 50 == 0:  # K_ij <= 1 and 40 terms: what summing them can leave
            assert residual <= 40 * 2.0**-52 * size
            assert total <= 2.0**-52 * size
        else:
            assert residual >= 0.9e-6
            assert total >= 0.9e-7


class Infeasible:
    """A solver with an error: what it returns has a larger dual objective than the optimum, and a negative "gap"."""

    def __init__(self, point):
        self.point = point

    def init(self, problem, beta=None):
        return SMO().init(problem, beta)

    def step(self, problem, state, most, kkt_target):
        state.beta[:] = self.point(problem)
        state.residual[:] = problem.residual(state.beta)
        return state, Info(1)

    def __str__(self):
        return "mine"


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (lambda problem: 50.0 * problem.target, r"coefficient \d+ is -?50, outside its box of"),
        (lambda problem: np.where(problem.target > 0, problem.upper, 0.0), r"the coefficients sum to \d.*, not to 0"),
    ],
    ids=["box", "sum"],
)
@pytest.mark.parametrize("is_cut_short", [False, True])
def test_a_point_that_is_not_feasible_is_refused_and_never_certified(plain, point, message, is_cut_short, monkeypatch):
    X, y, _ = plain
    if is_cut_short:  # then the running residual is certified
        monkeypatch.setattr(run.SolverRun, "_is_expensive", lambda run: True)
        monkeypatch.setattr(run.SolverRun, "verdict", lambda run: Status.MAX_TIME if run.steps else None)
    with pytest.raises(RuntimeError, match=rf"Solver mine left a point that is not feasible: {message}"):
        solve(DualProblem.hinge(Gram(X), y, 2.0), Infeasible(point), max_steps=10)


def test_what_large_coefficients_have_left_in_the_sum_is_put_right(plain):
    """Where digits end pairs may take coefficients to 1e100 and back; what is left in the sum is then more than all of them."""
    X, y, _ = plain

    def point(problem):
        beta = np.zeros(problem.n)
        beta[np.flatnonzero(problem.target < 0)[:3]] = -1.05e31, -3.8e-41, -1.2e-62
        return beta

    problem = DualProblem.squared_hinge(Gram(X), y, 2.0)
    solution = solve(problem, Infeasible(point), max_steps=3)
    np.testing.assert_array_equal(solution.beta, 0.0)
    assert solution.certificate.dual == 0.0


class Cut:
    """SMO whose running residual and sum are off, and which Ctrl-C ends before they can be computed afresh."""

    def init(self, problem, beta=None):
        return SMO().init(problem, beta)

    def step(self, problem, state, most, kkt_target):
        state, info = SMO().step(problem, state, 500, 0.0)
        free = np.flatnonzero((state.beta != 0) & (state.beta > problem.lower) & (state.beta < problem.upper))
        state.beta[free[0]] += 2e-7
        state.residual[:] = problem.residual(state.beta)
        state.residual[:] += self.off * problem.target
        signal.raise_signal(signal.SIGINT)
        return state, info

    def __init__(self, off):
        self.off = off


@pytest.mark.parametrize("is_large", [False, True])
def test_a_certificate_that_a_limit_cuts_is_about_the_residual_it_has(is_large, monkeypatch):
    """Of a small problem it is made anew; of a large one it is made of a residual in step with the coefficients."""
    monkeypatch.setattr(run.SolverRun, "_can_be_expensive", is_large)
    X, y = moons(300)
    solution = solve(DualProblem.hinge(Gram(X, cache_size=0.05), y, 1.0), Cut(0.0 if is_large else 1e-6))
    known, true = solution.certificate, DualProblem.hinge(Gram(X), y, 1.0).certify(solution.beta, precisely=True)
    assert solution.status in (Status.INTERRUPTED, Status.CONVERGED)
    assert (solution.certificate.sum_residual > 1.9e-7) == is_large  # or it has been restored
    assert abs(known.dual - true.dual) <= known.rounding + true.rounding
    assert abs(known.primal - true.primal) <= known.rounding + true.rounding


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda state: state, r"got \(ndarray, ndarray"),
        (lambda state: (state, 3), r"got \(PairState, int\)"),
        (lambda state: None, "got NoneType"),
        (lambda state: (state, Info(1.5)), r"got Info\(1.5\).*whole number"),
        (lambda state: (state, Info(-1)), r"got Info\(-1\).*whole number"),
    ],
)
def test_a_step_that_returns_something_else_is_told_what_it_has_to_return(plain, returned, message):
    class Mine(SMO):
        def step(self, problem, state, max_steps, kkt_target):
            return returned(state)

    X, y, _ = plain
    with pytest.raises(TypeError, match=rf"A step of solver .* has to return its state and an Info.*{message}"):
        solve(DualProblem.hinge(Gram(X), y, 2.0), Mine())


def test_a_class_is_no_solver(plain):
    X, y, _ = plain
    with pytest.raises(TypeError, match=r"got the class SMO. Pass SMO\(...\)"):
        solve(DualProblem.hinge(Gram(X), y, 2.0), SMO)


def test_a_resumed_run_does_not_take_the_running_residual_for_that_of_the_data(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1000.0)
    first = solve(problem, stop=RelativeGap(1e-12), max_steps=20)
    true = problem.certify(first.beta)
    first.state.residual[::2] += 0.1  # far more than rounding would, so that it shows
    for steps in (0, 1):
        resumed = solve(problem, stop=RelativeGap(1e-12), max_steps=steps, resume=first)
        expected = true if steps == 0 else problem.certify(resumed.beta)
        assert resumed.certificate.gap == pytest.approx(expected.gap, rel=1e-9)
        assert resumed.certificate.dual >= true.dual - true.rounding


def test_a_run_that_rounding_leads_astray_returns_the_start_if_that_is_better():
    """Far from zero a polynomial kernel has no digits left: what is found has a dual objective below zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4)) + 1e8
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    solution = solve(DualProblem.hinge(Gram(X, "poly"), y, 1.0), max_steps=20_000)
    assert solution.status is not Status.CONVERGED
    assert solution.certificate.dual >= 0.0
    assert solution.certificate.primal <= 60.0 * 2.0


def test_resuming_a_converged_run_changes_nothing_though_rounding_decides():
    """Kernel values of one outlier swamp the others: the gap is that of twice the precision.  Some runs stall there."""
    y, count = np.where(np.arange(12) == 6, -1.0, 1.0), 0
    for seed in range(12):
        few, *rest = np.array([330.0, 1776.0, 397.0, 4815.0, 252.0]) * (
            1.0 + 0.01 * np.random.default_rng(seed).random(5)
        )
        X = np.array([rest[:2], rest[2:], [few, 105.0], [few, -1.16e10]])[[0, 0, 1, 0, 2, 0, 2, 1, 1, 1, 3, 0]]
        problem = DualProblem.hinge(Gram(X, "poly", degree=5, coef0=100.0), y, 37.9)
        first = solve(problem, stop=RelativeGap(2.22e-7))
        if first.status is not Status.CONVERGED or problem.certify(first.beta).relative_gap <= 2.22e-7:
            continue
        count += 1  # the gap as float64 has it is too large
        again = solve(problem, stop=RelativeGap(2.22e-7), resume=first)
        np.testing.assert_array_equal(again.beta, first.beta)
        assert again.certificate == first.certificate
    assert count >= 6


def test_shrinking_survives_a_start_in_which_a_class_is_missing():
    """Three positive points in 1,500, and the first sample holds none of them."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((1500, 2)), np.full(1500, -1.0)
    rare = np.setdiff1d(np.arange(1500), _sample(1500))[:3]
    X[rare] += 6.0
    y[rare] = 1.0
    solution = solve(DualProblem.hinge(Gram(X), y, 10.0), stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED


def test_bad_arguments_are_refused_with_advice(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    with pytest.raises(ValueError, match=r"Unknown solver 'sgd'.*'smo-platt'"):
        solve(problem, "sgd")
    with pytest.raises(TypeError, match="init and step"):
        solve(problem, 3)
    with pytest.raises(TypeError, match=r"RelativeGap\(1e-4\)"):
        solve(problem, stop=1e-4)
    with pytest.raises(ValueError, match="tol must be above 0"):
        RelativeGap(0.0)
    with pytest.raises(ValueError, match="tol must be above 0"):
        FeasibilityGap(-1.0)
    with pytest.raises(ValueError, match="max_steps"):
        solve(problem, max_steps=-3)
    with pytest.raises(ValueError, match="max_time"):
        solve(problem, max_time=-1.0)


@pytest.mark.parametrize("solver", ["auto", "smo"])
def test_no_kernel_value_is_computed_again_where_margins_can_be_longer(solver, monkeypatch):
    """At C = 1e6 what rounding takes from a margin costs a million times that, but not on the other side of it."""
    X, y, _ = points("plain")
    problem = DualProblem.hinge(Gram(X, gamma=10.0), y, 1e6)
    monkeypatch.setattr(RBF, "precisely", None)  # no call of it
    solution = solve(problem, solver, stop=RelativeGap(1e-10))
    assert solution.status is Status.CONVERGED
    z = solution.problem.residual(solution.beta) - solution.bias
    assert (y * z).max() < 0.0
    assert abs(problem.excess(solution.beta)) <= 2.0 * UNIT * np.abs(solution.beta).sum()
    known = problem.certify(solution.beta)
    assert known.relative_gap <= 1e-10
    assert solution.certificate.gap <= known.gap + known.rounding
