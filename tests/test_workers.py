"""Where the tasks of a search run: here, in threads, or in processes, and that it does not change what they find."""

import multiprocessing
import os
import signal
import sys
import threading
import types
import warnings
from concurrent.futures import BrokenExecutor
from typing import NamedTuple

import numpy as np
import pytest
from joblib import parallel_config
from joblib.externals.loky import get_reusable_executor
from sklearn import config_context, get_config
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.preprocessing import scale

from zerogap import SVCPathCV
from zerogap.estimators import workers
from zerogap.estimators.fold_paths import Fold, Rows

ROWS = Rows(np.zeros((3, 1)), np.zeros(3), None)


class Found(NamedTuple):
    number: int
    seconds: float
    n_events: int = 0


class Pretended(NamedTuple):
    """A task that says how long it took."""

    number: int
    seconds: float
    fold: Fold = Fold(1, 1, np.arange(2), np.arange(1))
    holds: object = None

    def on(self, rows):
        return Found(self.number, self.seconds)


@pytest.fixture
def sent(monkeypatch):
    """Return the numbers of the tasks that were given to processes; nobody has searched before."""
    monkeypatch.setattr(workers, "_started", workers._Started())
    numbers = []

    def work(tasks, rows, n_jobs):
        numbers.extend(task.number for task in tasks)
        return workers._one_by_one(tasks, rows)

    monkeypatch.setattr(workers, "_in_processes", work)
    return numbers


def search(seconds, count=40, **options):
    tasks = [Pretended(k, seconds, **options) for k in range(count)]
    found = workers.run(tasks, ROWS, 2, verbose=False)
    assert [one.number for one in found] == list(range(count))


def test_a_long_search_goes_on_in_processes(sent):
    search(1.0)
    assert sent == list(range(2, 40))


def test_a_short_one_stays_here(sent):
    search(0.01)
    assert sent == []


def test_many_short_ones_are_a_long_one(sent):
    for _ in range(3):
        search(0.14)
    assert sent == list(range(2, 40))  # those of the third: the first two took 11 seconds


def test_processes_that_are_there_are_used(sent):
    workers._started.use()
    search(0.01)
    assert sent == list(range(1, 40))


def test_processes_that_are_there_have_all_long_tasks(sent):
    workers._started.use()
    search(1.0, fold=Fold(1, 1, np.arange(workers.WORTH_THREADS), np.arange(1)))
    assert sent == list(range(40))


def test_a_moment_of_work_is_not_worth_processes_that_are_there(sent):
    workers._started.use()
    search(0.001)
    assert sent == []


def test_one_that_grows_longer_is_handed_over_later(sent):
    tasks = [Pretended(k, 0.01 if k < 10 else 1.0) for k in range(40)]
    assert len(workers.run(tasks, ROWS, 2, verbose=False)) == 40
    assert sent == list(range(16, 40))  # once 1, 1, 2, 4 and 8 were done here


def test_the_first_task_may_have_code_to_load(sent):
    tasks = [Pretended(k, 20.0 if k == 0 else 0.01) for k in range(40)]
    workers.run(tasks, ROWS, 2, verbose=False)
    assert sent == []


def test_what_cannot_be_sent_stays_here(sent):
    search(1.0, holds=threading.Lock())
    assert sent == []


class Uncopied:
    def __reduce__(self):
        raise RuntimeError("there is one of me")


def test_what_says_so_itself_stays_here(sent):
    search(1.0, holds=Uncopied())
    assert sent == []


def test_a_forked_process_has_no_others(sent):
    workers._started.use()
    workers._started._process = -1  # that of another
    search(1.0)
    assert sent == []


def test_what_processes_leave_undone_is_done_here(sent, monkeypatch):
    def work(tasks, rows, n_jobs):
        yield from workers._one_by_one(tasks[:3], rows)
        raise BrokenExecutor("one has ended.\nIts exit code is -9")

    monkeypatch.setattr(workers, "_in_processes", work)
    with pytest.warns(RuntimeWarning, match=r"\(one has ended\.\) The other 35 paths are followed in this one") as told:
        search(1.0)
    assert told[0].filename == __file__


@pytest.mark.parametrize("n_jobs", [None, 1])
def test_one_job_has_no_others(n_jobs, sent):
    tasks = [Pretended(k, 1.0) for k in range(40)]
    assert len(workers.run(tasks, ROWS, n_jobs, verbose=False)) == 40
    assert sent == []


def test_who_chooses_threads_gets_them(sent):
    with parallel_config("threading"):
        search(1.0)
    assert sent == []


class Raises(Pretended):
    def on(self, rows):
        raise ZeroDivisionError


class Warns(Pretended):
    def on(self, rows):
        for _ in range(3):
            warnings.warn("of little use", stacklevel=1)
        return super().on(rows)


class Configured(Pretended):
    def on(self, rows):
        assert get_config()["transform_output"] == "pandas"
        return super().on(rows)


def test_processes_are_gone_once_a_task_fails(monkeypatch):
    monkeypatch.setattr(workers, "_started", workers._Started())
    workers._started.use()
    with parallel_config("sequential"), pytest.raises(ZeroDivisionError):
        list(workers._in_processes([Raises(0, 1.0)], ROWS, 2))
    assert not workers._started.pay(1.0)


@pytest.mark.parametrize("action", ["always", "default", "ignore", "error"])
def test_what_others_warn_of_is_told_here(action):
    tasks = [Warns(k, 1.0) for k in range(3)]
    with parallel_config("sequential"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        if action == "error":
            with pytest.raises(UserWarning, match="of little use"):
                list(workers._in_processes(tasks, ROWS, 2))
        else:
            assert len(list(workers._in_processes(tasks, ROWS, 2))) == 3
    assert len(told) == {"always": 3, "default": 1, "ignore": 0, "error": 0}[action]  # once a task at most
    assert all(one.filename == __file__ for one in told)


def test_scikit_learns_configuration_holds_in_threads_and_processes(monkeypatch):
    monkeypatch.setattr(workers, "WORTH_THREADS", 0)
    tasks = [Configured(k, 1.0) for k in range(3)]
    with config_context(transform_output="pandas"):
        config = get_config()
        with parallel_config("threading"):
            assert len(workers.run(tasks, ROWS, 2, verbose=False)) == 3
    found, said = workers._work(config, tasks[0], *ROWS)
    assert (found.number, said) == (0, [])
    assert get_config()["transform_output"] == "default"


# Real processes.


@pytest.fixture
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture
def processes(monkeypatch):
    """Make them pay at once, and end them afterwards."""
    monkeypatch.setattr(workers, "_started", workers._Started())
    monkeypatch.setattr(workers, "WORTH_STARTING", 0.0)
    yield
    get_reusable_executor().shutdown(wait=True)


@pytest.mark.long
def test_processes_find_the_same(cancer, processes):
    options = {"C_max": 100.0, "gamma": [0.01, 0.03], "cv": 3}
    here, there = SVCPathCV(**options).fit(*cancer), SVCPathCV(**options, n_jobs=2).fit(*cancer)
    assert workers._started.pay(1.0)  # they were used
    for ours, theirs in zip(here.cv_curves_, there.cv_curves_, strict=True):
        np.testing.assert_array_equal(ours.edges, theirs.edges)
        np.testing.assert_array_equal(ours.mean.score, theirs.mean.score)
    assert here.best_params_ == there.best_params_


@pytest.mark.long
def test_a_score_that_cannot_be_sent(cancer, processes):
    lock = threading.Lock()

    def score(y, predicted):
        with lock:
            return accuracy_score(y, predicted)

    options = {"C_max": 10.0, "gamma": [0.01, 0.03], "cv": 3, "scoring": make_scorer(score)}
    assert SVCPathCV(**options, n_jobs=2).fit(*cancer).best_score_ == SVCPathCV(**options).fit(*cancer).best_score_


@pytest.mark.long
@pytest.mark.parametrize("ends", ["killed", "unreadable"])
def test_processes_that_end_before_their_time(ends, cancer, processes, monkeypatch):
    """Out of memory they are killed; and a function of a module that was made, not imported, is sent by its name."""
    made, main = types.ModuleType("made_for_this_test"), os.getpid()

    def killed(y, predicted):
        if os.getpid() != main:
            os.kill(os.getpid(), signal.SIGKILL)
        return accuracy_score(y, predicted)

    exec("def score(y, predicted):\n    return float((y == predicted).mean())\n", made.__dict__)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    score = killed if ends == "killed" else made.score
    options = {"C_max": 10.0, "gamma": [0.01, 0.03], "cv": 3}
    with pytest.warns(RuntimeWarning, match="are followed in this one"):
        found = SVCPathCV(**options, scoring=score, n_jobs=2).fit(*cancer)
    assert found.best_score_ == SVCPathCV(**options).fit(*cancer).best_score_


def _fit_in_child(X, y, found):
    found.put(SVCPathCV(C_max=10.0, cv=3, gamma=[0.01, 0.03], n_jobs=2).fit(X, y).best_score_)


@pytest.mark.long
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_those_of_its_parent(cancer, processes):
    here = SVCPathCV(C_max=10.0, cv=3, gamma=[0.01, 0.03], n_jobs=2).fit(*cancer)
    assert workers._started.pay(1.0)
    context = multiprocessing.get_context("fork")
    found = context.Queue()
    child = context.Process(target=_fit_in_child, args=(*cancer, found))
    child.start()
    try:
        assert found.get(timeout=120) == here.best_score_
    finally:
        child.kill()
        child.join()


@pytest.mark.long
def test_ctrl_c_ends_processes(processes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 40))
    y = (X[:, 0] + rng.normal(size=1200) > 0).astype(int)
    model = SVCPathCV(gamma=np.geomspace(1e-3, 1.0, 30).tolist(), C_max=1e6, n_jobs=2)

    def press_once_they_work():
        while workers._started._last_used < 0.0 and not over.wait(0.05):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    over, thread = threading.Event(), threading.Thread(target=press_once_they_work)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        over.set()
        thread.join()
