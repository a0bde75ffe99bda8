"""Where the tasks of a search run: one after another, in threads, in other processes, or where joblib was told to.

What a task finds does not depend on it, to the last digit; how long all of them take does.  Threads need no copies and begin at
once, but wait for each other wherever the time goes into Python.  Processes do not, and take seconds to start: they pay in long
searches, and in all that follow, as joblib keeps them for a while.  So the first tasks are run here, and tell how long the
others will take.

Wherever they run, tasks work under scikit-learn's configuration of whoever asked, and what they warn of is told here.
"""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextvars import copy_context
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky.backend import reduction
from joblib.parallel import BACKENDS, get_active_backend
from sklearn import config_context, get_config
from tqdm.auto import tqdm

from zerogap import threads, validation
from zerogap.estimators import fold_matrix
from zerogap.estimators.fold_paths import FoldPath, Rows, Task
from zerogap.progress import FORM, bar_delay
from zerogap.wording import count

WORTH_THREADS = 500  # points of a fold: of fewer most of the time is Python's, in which threads wait for each other
# Seconds of one core that are worth processes which are there, and those that are not: these take about three to start.
WORTH_WORKERS, WORTH_STARTING = 0.2, 12.0
KEPT = 240.0  # seconds that processes without work are there for certain; joblib ends them after five minutes


class _Started:
    """What is known of joblib's processes: when they were last used, and how long searches have run without them."""

    def __init__(self) -> None:
        self._last_used, self._searched = -KEPT, 0.0
        self._process = os.getpid()

    def pay(self, seconds: float) -> bool:
        """Whether work of so many seconds is worth them.  Who has searched for long will search again.

        A forked process has none: joblib there waits for those of its parent, for ever.
        """
        if os.getpid() != self._process:
            return False
        return seconds > WORTH_WORKERS if self.are_there else self._searched + seconds > WORTH_STARTING

    @property
    def are_there(self) -> bool:
        """Whether they run already, for this process."""
        return os.getpid() == self._process and time.monotonic() - self._last_used < KEPT

    def use(self) -> None:
        """Note that they are at work."""
        self._last_used = time.monotonic()

    def forget(self) -> None:
        """Note that they are gone: joblib ends them where a task fails, and at Ctrl-C."""
        self._last_used = -KEPT

    def note(self, seconds: float) -> None:
        """Note work that was done without them."""
        self._searched += seconds


_started = _Started()


def run(tasks: Sequence[Task], rows: Rows, n_jobs: int | None, *, verbose: bool) -> list[FoldPath]:
    """Return what every task finds, in the order of the tasks."""
    form = {"bar_format": FORM, "leave": False, "disable": not verbose, "delay": bar_delay() if verbose else 0.0}
    bar = tqdm(total=len(tasks), desc=f"{len(tasks)} paths", **form)
    found = []
    with bar, threads.several_at_once():
        for one in _results(tasks, rows, n_jobs):
            found.append(one)
            bar.update()
            bar.set_postfix_str(f"{len(found)} of {len(tasks)}, {sum(f.n_events for f in found):,} events")
    return found


def _results(tasks: Sequence[Task], rows: Rows, n_jobs: int | None) -> Iterator[FoldPath]:
    if len(tasks) == 1 or effective_n_jobs(n_jobs) == 1:
        return _one_by_one(tasks, rows)
    backend, _ = get_active_backend(prefer="threads")
    if not _shares_memory(backend):
        return _in_processes(tasks, rows, n_jobs)
    usual, _ = get_active_backend()
    if _shares_memory(usual):  # somebody has chosen threads, or does several searches at once
        return _here(tasks, rows, n_jobs)
    return _where_it_pays(tasks, rows, n_jobs)


def _where_it_pays(tasks: Sequence[Task], rows: Rows, n_jobs: int | None) -> Iterator[FoldPath]:
    """Run tasks in this process, a few at first, and the rest in others as soon as it is long enough."""
    if _started.are_there and max(task.fold.train.size for task in tasks) >= WORTH_THREADS and _can_be_sent(tasks[0]):
        yield from _in_processes_or_here(tasks, rows, n_jobs)
        return
    first = tasks[0].on(rows)
    yield first
    # It may have code to load.  Then it tells of the others that they take less: enough, where processes are there.
    tasks, size, seconds = tasks[1:], 1, first.seconds if _started.are_there else 0.0
    while tasks:
        if _started.pay(len(tasks) * seconds) and _can_be_sent(tasks[0]):
            yield from _in_processes_or_here(tasks, rows, n_jobs)
            return
        some, tasks = tasks[:size], tasks[size:]
        seconds = 0.0
        for found in _here(some, rows, n_jobs):
            seconds += found.seconds
            yield found
        _started.note(seconds)
        seconds /= len(some)
        size *= 2


def _in_processes_or_here(tasks: Sequence[Task], rows: Rows, n_jobs: int | None) -> Iterator[FoldPath]:
    """Run tasks in processes that nobody asked for; if these end before their time the rest is done without them."""
    done = 0
    try:
        for found in _in_processes(tasks, rows, n_jobs):
            done += 1
            yield found
        return
    except BrokenExecutor as error:
        left = tasks[done:]
        warnings.warn(
            f"Processes for a long search ended, or could not read what was sent to them ({str(error).splitlines()[0]}) The "
            f"other {count(len(left), 'path')} are followed in this one. joblib.parallel_config('threading') starts no others.",
            RuntimeWarning,
            stacklevel=validation.callers_level(),
        )
    yield from _here(left, rows, n_jobs)


def _here(tasks: Sequence[Task], rows: Rows, n_jobs: int | None) -> Iterator[FoldPath]:
    if max(task.fold.train.size for task in tasks) < WORTH_THREADS:
        return _one_by_one(tasks, rows)
    # Compiled code lets other threads run.  Limits, and Ctrl-C, hold in all of them.
    config = get_config()
    calls = [delayed(copy_context().run)(_configured, config, task.on, rows) for task in tasks]
    return iter(Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")(calls))


def _in_processes(tasks: Sequence[Task], rows: Rows, n_jobs: int | None) -> Iterator[FoldPath]:
    """Run tasks in processes of joblib's backend: of this machine, unless it was told of others."""
    backend, _ = get_active_backend()
    is_lazy = getattr(backend, "supports_return_generator", False)
    options: dict[str, Any] = {"return_as": "generator"} if is_lazy else {}
    config, told = get_config(), dict[Any, int]()
    try:
        # One by one: joblib would send short tasks together, and at the end of a search one process waits for the other.
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, **options)
        for found, said in parallel(delayed(_work)(config, task, *rows) for task in tasks):
            if isinstance(backend, BACKENDS["loky"]):
                _started.use()
            for message, category, file, line in said:
                warnings.warn_explicit(message, category, file, line, registry=told)
            yield found
    except BaseException:
        _started.forget()
        raise


def _one_by_one(tasks: Sequence[Task], rows: Rows) -> Iterator[FoldPath]:
    return (task.on(rows) for task in tasks)


Said = tuple[Any, type[Warning], str, int]  # a warning: its message, category, file and line


def _work(config: dict[str, Any], task: Task, *rows: Any) -> tuple[FoldPath, list[Said]]:
    """Do a task in another process, or on another machine; arrays are arguments of their own, which clusters send once.

    Return what it finds, and what it warns of: here nobody would see that, nor has anybody said what is an error.
    """
    with threads.several_at_once(), fold_matrix.kept_for_a_while():
        # In a thread of a cluster's: warnings would be those of all its threads.
        if threading.current_thread() is not threading.main_thread():
            return _configured(config, task.on, Rows(*rows)), []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = _configured(config, task.on, Rows(*rows))
    said = {(str(one.message), one.filename, one.lineno): one for one in caught}
    return found, [(one.message, one.category, one.filename, one.lineno) for one in said.values()]


def _configured(config: dict[str, Any], work: Callable[..., Any], *arguments: Any) -> Any:
    """Do some work under scikit-learn's configuration of another thread, or process."""
    with config_context(**config):
        return work(*arguments)


def _shares_memory(backend: Any) -> bool:
    return getattr(backend, "supports_sharedmem", False)


def _can_be_sent(task: Task) -> bool:
    """Whether a task can go to another process: functions of a user's, such as kernels and scores, may hold what cannot."""
    try:
        reduction.dumps(task)
    except Exception:  # their own code says how they are copied
        return False
    return True
