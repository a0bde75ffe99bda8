"""iterate(): the loop of solve, a step at a time; and solvers of one's own at every door."""

import os
import pickle
import signal
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from zerogap import (
    SVC,
    SVR,
    DualProblem,
    Gram,
    RelativeGap,
    Status,
    compare,
    datasets,
    iterate,
    limits,
    loop,
    solve,
    svm_path,
)
from zerogap.kernels import UNIT
from zerogap.path import LP
from zerogap.solvers import SOLVERS, Info


@pytest.fixture(scope="module")
def points():
    return datasets.spiral(40, noise=0.3, random_state=0)


@pytest.fixture
def problem(points):
    return DualProblem.hinge(Gram(points[0]), points[1], C=5.0)


def problems(points):
    """One problem of each kind, in the order in which solvers take them."""
    (X, y), gram = points, Gram(points[0])
    return (
        DualProblem.hinge(gram, y, 5.0),
        DualProblem.squared_hinge(gram, y, 5.0),
        DualProblem.hinge(gram, y, 5.0, fit_intercept=False),
        DualProblem.gaussian_process(gram, X[:, 0], 0.1),
        DualProblem.hinge(Gram(X, "linear"), y, 5.0),
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_leaves_a_readable_point_after_every_single_move(name, points):
    """Feasible, its residual that of the data but for rounding, the dual objective growing, every iteration seen."""
    problem = next(p for p in problems(points) if SOLVERS[name].claims(p))
    steps = iterate(problem, name, stop=RelativeGap(1e-6), max_steps=60)
    start, highest = steps.state.beta.copy(), -np.inf
    seen = []
    for state, info in steps:
        beta, size = state.beta, np.abs(state.beta).sum()
        assert state is steps.state
        assert ((beta >= problem.lower) & (beta <= problem.upper)).all()
        # Every move adds some roundings of n products of the size of the sum.
        off = 8.0 * UNIT * (problem.n + 8) * (info.step + 1.0) * (1.0 + size * problem.diagonal.max())
        if problem.total is not None:
            assert abs(beta.sum() - problem.total) <= off
        assert np.abs(problem.residual(beta) - state.residual).max() <= off
        assert info.dual >= highest - off * size
        assert info.support == np.count_nonzero(beta)
        highest = info.dual
        seen.append(info)
    assert [info.step for info in seen] == list(range(1, len(seen) + 1))
    assert steps.trace.rows[1:] == seen
    assert not np.array_equal(steps.state.beta, start)
    assert steps.solution.status in (Status.CONVERGED, Status.MAX_STEPS, Status.EXHAUSTED)
    assert steps.solution.n_iter == len(seen)


def test_it_ends_where_solve_does_with_the_same_rows(problem):
    steps = iterate(problem, "smo", trace_every=20, stop=RelativeGap(1e-6))
    rows = [info for _, info in steps]
    solution = solve(problem, "smo", trace_every=20, stop=RelativeGap(1e-6))
    np.testing.assert_array_equal(steps.solution.beta, solution.beta)
    assert steps.solution.certificate == solution.certificate
    assert steps.status is steps.solution.status is Status.CONVERGED
    assert [row.step for row in rows] == solution.trace["step"].tolist()[1:]
    assert [row.gap for row in rows] == solution.trace["gap"].tolist()[1:]
    assert list(steps) == []  # and stays there
    assert steps.solution is steps.solution


def test_a_loop_that_was_left_has_a_solution_and_goes_on(problem):
    problem.gram.full()  # so that all runs read the same kernel values
    steps = iterate(problem, "rosen", stop=RelativeGap(1e-8))
    for _state, info in steps:
        if info.step == 5:
            break
    early = steps.solution
    assert (early.status, early.n_iter, steps.status) == (Status.STOPPED, 5, None)
    assert early.certificate == problem.certify(early.beta)
    kept, rows = early.beta.copy(), list(early.trace)
    assert next(steps)[1].step == 6
    resumed = solve(problem, early.solver, resume=early, stop=RelativeGap(1e-8))
    assert resumed.trace.rows[: len(rows)] == rows == list(early.trace)  # what was handed out does not move
    np.testing.assert_array_equal(early.state.beta, kept)
    for _ in steps:
        pass
    plain = iterate(problem, "rosen", stop=RelativeGap(1e-8))
    for _ in plain:
        pass
    np.testing.assert_array_equal(steps.solution.beta, plain.solution.beta)  # looking has changed nothing


def test_nothing_is_held_between_two_steps(problem):
    handler = signal.getsignal(signal.SIGINT)
    next(iterate(problem, "smo"))
    assert signal.getsignal(signal.SIGINT) is handler
    errors = np.geterr()
    both = zip(iterate(problem, "smo", max_steps=9), iterate(problem, "smo", max_steps=9), strict=True)
    for (one, _), (other, _) in both:  # in turn, with one cache of rows
        np.testing.assert_array_equal(one.beta, other.beta)
    assert np.geterr() == errors
    found = []
    steps = iterate(problem, "smo", stop=RelativeGap(1e-6))
    next(steps)
    worker = threading.Thread(target=lambda: found.extend(steps))
    worker.start()
    worker.join(60)
    assert steps.solution.status is Status.CONVERGED
    assert found


def test_another_thread_that_has_the_matrix_is_waited_for(problem):
    steps = iterate(problem, "smo")
    taken, done = threading.Event(), threading.Event()

    def hold():
        with problem.gram.exclusive():
            taken.set()
            done.wait(60)

    worker, moved = threading.Thread(target=hold), []
    worker.start()
    taken.wait(60)
    stepper = threading.Thread(target=lambda: moved.append(next(steps)))
    stepper.start()
    time.sleep(0.05)
    assert not moved
    done.set()
    stepper.join(60)
    worker.join(60)
    assert len(moved) == 1


class Clock:
    """A clock that goes on by a second whenever it is asked, and by more when told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_time_between_two_steps_does_not_count(problem, monkeypatch):
    solve(problem, "smo")  # compiles by the real clock
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    whole = iterate(problem, "smo", stop=RelativeGap(1e-9))
    for _ in whole:
        clock.now += 1e6
    assert whole.status is Status.CONVERGED
    seconds = whole.trace[-1].seconds
    assert len(whole.trace) <= seconds < 1e5
    half = iterate(problem, "smo", stop=RelativeGap(1e-9), max_time=seconds / 2)
    for _ in half:
        clock.now += 1e6
    assert half.status is Status.MAX_TIME
    assert 0.3 * len(whole.trace) < len(half.trace) < 0.7 * len(whole.trace)


class Late:
    """Its start takes longer than there is time for."""

    def init(self, problem, beta=None):
        raise limits.Exceeded

    def step(self, problem, state, max_steps, kkt_target):
        raise AssertionError("there is no state to step from")


def test_a_run_that_cannot_begin_says_so(problem):
    steps = iterate(problem, Late(), max_time=0.0)
    assert (steps.status, steps.state, len(steps.trace)) == (Status.MAX_TIME, None, 0)
    assert list(steps) == []
    assert not steps.solution.beta.any()
    assert repr(steps) == "Steps(Late: not begun, MAX_TIME)"


class Presses:
    """Presses Ctrl-C in its third step, then moves on as its solver does."""

    def __init__(self, solver):
        self.solver, self.calls = solver, 0

    def init(self, problem, beta=None):
        return self.solver.init(problem, beta)

    def step(self, problem, state, max_steps, kkt_target):
        self.calls += 1
        if self.calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return self.solver.step(problem, state, max_steps, kkt_target)


def test_ctrl_c_raises_and_the_steps_can_be_gone_on_with(problem):
    solver = Presses(SOLVERS["smo"].make())
    steps = iterate(problem, solver, stop=RelativeGap(1e-6))
    seen = [next(steps)[1].step, next(steps)[1].step]
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert steps.status is None
    assert steps.solution.status is Status.STOPPED
    for _state, info in steps:
        seen.append(info.step)
    assert seen[2] in (3, 4)  # the move in which it was pressed was finished, or not made
    assert steps.solution.status is Status.CONVERGED


class Pressing(RelativeGap):
    """A rule in the middle of which Ctrl-C is pressed, when it is asked for the third time."""

    asked = 0

    def is_met(self, now, before):
        type(self).asked += 1
        if self.asked == 3:
            signal.raise_signal(signal.SIGINT)
        return super().is_met(now, before)


def test_ctrl_c_between_two_moves_raises_too(problem):
    steps = iterate(problem, "smo", stop=Pressing(1e-6))
    with pytest.raises(KeyboardInterrupt):
        list(steps)
    assert steps.status is None
    seen = [info.step for _, info in steps]
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    assert steps.solution.status is Status.CONVERGED


class Idle(Presses):
    """Does nothing in every second step."""

    def step(self, problem, state, max_steps, kkt_target):
        self.calls += 1
        if self.calls % 2:
            return state, Info(0)
        return self.solver.step(problem, state, max_steps, kkt_target)


def test_a_step_in_which_nothing_moves_is_not_shown(problem):
    steps = iterate(problem, Idle(SOLVERS["smo"].make()), max_steps=8)
    assert [info.step for _, info in steps] == list(range(1, 9))


def test_wrong_options_are_refused_at_once(problem):
    with pytest.raises(ValueError, match="max_steps must be a whole number"):
        iterate(problem, max_steps=-1)
    with pytest.raises(ValueError, match="trace_every"):
        iterate(problem, trace_every=0)
    with pytest.raises(ValueError, match="Unknown solver 'nobody'"):
        iterate(problem, "nobody")
    with pytest.raises(ValueError, match="solver='smo'"):
        iterate(problem, "cholesky")
    assert list(iterate(problem, max_steps=0)) == []


# max_steps counts this call.


def test_a_limit_on_steps_begins_anew_with_every_call(problem):
    solution = solve(problem, "smo", max_steps=4, stop=RelativeGap(1e-9))
    for total in (7, 10):
        solution = solve(problem, "smo", max_steps=3, stop=RelativeGap(1e-9), resume=solution)
        assert (solution.status, solution.n_iter, solution.trace[-1].step) == (Status.MAX_STEPS, total, total)
    steps = iterate(problem, "smo", max_steps=2, stop=RelativeGap(1e-9), resume=solution)
    assert [info.step for _, info in steps] == [11, 12]
    nothing = solve(problem, "smo", max_steps=0, stop=RelativeGap(1e-9), resume=solution)
    assert (nothing.status, nothing.n_iter) == (Status.MAX_STEPS, 10)
    np.testing.assert_array_equal(nothing.beta, solution.beta)


# A solver of one's own.


class Point(NamedTuple):
    beta: np.ndarray
    residual: np.ndarray


class Mine:
    """The most violating pair in NumPy: no dataclass, no name, no registration."""

    def init(self, problem, beta=None):
        beta = problem.feasible_start() if beta is None else beta.copy()
        return Point(beta, problem.residual(beta))

    def step(self, problem, state, max_steps, kkt_target):
        (beta, r), K = state, problem.gram.full()
        for moved in range(max_steps):
            up, low = r + problem.up_offset(beta), r + problem.low_offset(beta)
            i, j = int(np.argmax(up)), int(np.argmin(low))
            if up[i] - low[j] <= kkt_target:
                return state, Info(moved, is_done=up[i] <= low[j])
            size = max(K[i, i] + K[j, j] - 2.0 * K[i, j], 1e-12)
            step = min((up[i] - low[j]) / size, problem.upper[i] - beta[i], beta[j] - problem.lower[j])
            if problem.eps and beta[i] < 0.0 < -beta[i] < step:  # the slope changes at zero
                step = -beta[i]
            if problem.eps and 0.0 < beta[j] < step:
                step = beta[j]
            beta[i] += step
            beta[j] -= step
            r -= step * (K[i] - K[j])
        return state, Info(max_steps)


def test_a_solver_of_ones_own_needs_no_registration(problem, points):
    X, y = points
    assert solve(problem, Mine()).status is Status.CONVERGED
    assert "by Mine after" in repr(solve(problem, Mine()))
    steps = iterate(problem, Mine())
    assert [info.step for _, info in steps][:3] == [1, 2, 3]
    assert steps.solution.status is Status.CONVERGED
    table = compare(problem, ["smo", Mine()])
    assert [row["solver"] for row in table.rows] == ["smo", "Mine"]
    assert {row["status"] for row in table.rows} == {"CONVERGED"}
    model = clone(SVC(C=5.0, solver=Mine())).fit(X, y)
    assert model.status_ is Status.CONVERGED
    np.testing.assert_allclose(model.decision_function(X), SVC(C=5.0).fit(X, y).decision_function(X), atol=0.05)
    assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)
    assert np.isfinite(cross_val_score(SVC(solver=Mine()), X, y, cv=3)).all()
    assert SVR(solver=Mine()).fit(X, X[:, 0]).status_ is Status.CONVERGED
    assert svm_path(X, y, C_min=0.5, C_max=1.0, engine=LP(solver=Mine())).status == "complete"
    mine = Mine()
    resumed = solve(problem, mine, max_steps=4, resume=solve(problem, mine, max_steps=3))
    assert resumed.n_iter == 7


def test_several_classes_and_what_cannot_be_stored(points, tmp_path):
    three = SVC(solver=Mine()).fit(points[0], np.arange(40) % 3)
    assert set(three.status_) == {Status.CONVERGED}
    with pytest.raises(TypeError, match=r"A Mine cannot be stored.*a solver by its name"):
        three.save(tmp_path / "model")


class WithoutResidual(Mine):
    def init(self, problem, beta=None):
        return type("Bare", (), {"beta": problem.feasible_start()})()


class OfIntegers(Mine):
    def init(self, problem, beta=None):
        return Point(np.zeros(problem.n, dtype=int), problem.target.copy())


@pytest.mark.parametrize(
    ("solver", "found"), [(WithoutResidual(), "a Bare whose residual is a NoneType"), (OfIntegers(), "beta is int64")]
)
def test_a_state_that_is_none_is_told(problem, solver, found):
    with pytest.raises(TypeError, match=rf"init of solver {type(solver).__name__} has to return a state.*{found}"):
        solve(problem, solver)


def test_what_stands_still_says_where(problem):
    steps = iterate(problem, "smo")
    assert repr(steps) == "Steps(smo: can go on after 0 iterations, relative gap 1)"
    next(steps)
    assert "after 1 iteration," in repr(steps)
    assert loop.Steps is type(steps)
