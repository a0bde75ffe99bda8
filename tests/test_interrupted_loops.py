"""Ctrl-C ends a program's loop over fits, as it ends any loop; a person at a prompt keeps the point there is."""

import signal
import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score

from zerogap import SVC, SVR, DualProblem, GaussianProcessRegressor, Gram, Status, compare, iterate, solve, svm_path
from zerogap.limits import IDLE, limits
from zerogap.solvers import SMO

X, Y = make_moons(60, noise=0.3, random_state=0)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Pressing(SMO):
    """A solver during whose first step in a test Ctrl-C is pressed."""

    name = "pressing"
    runs = 0

    def init(self, *args):
        type(self).runs += 1
        return super().init(*args)

    def step(self, *args):
        if type(self).runs == 1:
            signal.raise_signal(signal.SIGINT)
        return super().step(*args)


@pytest.fixture
def pressing(monkeypatch):
    monkeypatch.setattr(Pressing, "runs", 0)
    return Pressing()


def a_problem():
    return DualProblem.hinge(Gram(X), np.where(Y == 1, 1.0, -1.0), 1.0)


def interrupted():
    """Leave a run behind that Ctrl-C has ended."""
    with limits():
        signal.raise_signal(signal.SIGINT)


def wait(monkeypatch, seconds):
    """Let a thread do nothing for so long, on the clock that zerogap reads."""
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + seconds)


def work(monkeypatch, seconds):
    """Let a thread compute for so long, on the clocks that zerogap reads."""
    of_thread = time.thread_time
    wait(monkeypatch, seconds)
    monkeypatch.setattr(time, "thread_time", lambda: of_thread() + seconds)


def test_ctrl_c_ends_a_cross_validation(pressing):
    with pytest.raises(KeyboardInterrupt, match="fit before this one"):
        cross_val_score(SVC(solver=pressing), X, Y)
    assert Pressing.runs == 1


def test_ctrl_c_ends_a_search(pressing):
    search = GridSearchCV(SVC(solver=pressing), {"C": [1.0, 10.0]}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert Pressing.runs == 1


@pytest.mark.parametrize(
    "begin",
    [
        lambda: solve(a_problem()),
        lambda: iterate(a_problem()),
        lambda: compare(a_problem(), ["smo"]),
        lambda: svm_path(X, Y, C_min=0.1, C_max=1.0),
        lambda: SVC().fit(X, Y),
        lambda: SVC().partial_fit(X, Y),
        lambda: SVR().fit(X, Y),
        lambda: GaussianProcessRegressor().fit(X, Y),
    ],
    ids=["solve", "iterate", "compare", "svm_path", "SVC", "partial_fit", "SVR", "gaussian-process"],
)
def test_whatever_is_begun_next_raises_once(begin):
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        begin()
    begin()  # which is how to go on
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_matrix_is_free_again_after_that():
    problem = a_problem()
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        solve(problem)
    assert solve(problem).status is Status.CONVERGED


def test_a_person_at_a_prompt_goes_on(pressing, monkeypatch):
    model = SVC(solver=pressing).fit(X, Y)
    assert model.status_ is Status.INTERRUPTED
    model.predict(X)
    wait(monkeypatch, 1.1 * IDLE)
    assert SVC().fit(X, Y).status_ is Status.CONVERGED


def test_scores_of_a_fold_may_take_their_time(monkeypatch):
    interrupted()
    work(monkeypatch, 60.0)
    with pytest.raises(KeyboardInterrupt):
        SVC().fit(X, Y)


def test_a_run_that_has_raised_is_over():
    def press_twice():
        with limits():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        press_twice()
    assert SVC().fit(X, Y).status_ is Status.CONVERGED


def test_steps_that_have_raised_go_on(pressing):
    steps = iterate(a_problem(), pressing)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert steps.solution.status is Status.STOPPED
    Pressing.runs = 2  # no more of it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [info.step for _, info in steps]


def test_steps_go_on_after_a_second_press_as_well(monkeypatch):
    """It raises in the middle of a step, and with that the loop of the run is over."""
    problem, step, left = a_problem(), SMO.step, [2]

    def pressed(*arguments):
        while left[0]:
            left[0] -= 1
            signal.raise_signal(signal.SIGINT)
        return step(*arguments)

    steps = iterate(problem, SMO(), trace_every=5)
    monkeypatch.setattr(SMO, "step", pressed)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert [info.step for _, info in steps]
    assert steps.solution.status is Status.CONVERGED


def test_who_resumes_an_interrupted_run_knows_of_it(pressing):
    problem = a_problem()
    first = solve(problem, pressing)
    assert first.status is Status.INTERRUPTED
    assert solve(problem, resume=first).status is Status.CONVERGED
    first = solve(problem, type(pressing)())
    assert iterate(problem, resume=first).solution.beta.size == problem.n
