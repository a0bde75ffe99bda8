"""The coordinator's side of Dask: partitions as futures, questions to all of them, and workers that die.

A partition is asked where it is.  A worker that is gone takes its states with it: Dask computes the partition again from the
user's collection, on another worker, and what rounds have computed of it follows from all coefficients (``Renewal``).
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import dask
import distributed
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from zerogap import limits
from zerogap.dask import partition
from zerogap.dask.block import nbytes
from zerogap.dask.partition import Missing, Question, Renewal

POLL = 0.2  # seconds between two questions whether the limit is over
LOOK = 1.0  # seconds between two looks at which workers are there
WAIT_FOR_WORKERS = 5.0  # seconds, before the first question
WAIT_FOR_OTHERS = 60.0  # seconds, after all workers were lost: a nanny starts new ones
WAIT_FOR_SCHEDULER = 60.0  # seconds until it has to answer, however busy it is
MOST_TRIES = 10  # of one answer
INLINE = (
    100_000  # bytes of a question that goes along with every task; a larger one is sent once, and workers pass it on
)
LOST = (CancelledError, asyncio.CancelledError, KilledWorker, CommClosedError)  # how a task ends whose worker has died
NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "100GiB"}


class Reply(NamedTuple):
    """An answer, where it came from, and how long it took."""

    answer: Any
    address: str
    seconds: float


def current(client: Any) -> Any:
    """Return the client to work with, of a cluster that has workers."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise RuntimeError(
                "There is no Dask client. Make one first, such as client = dask.distributed.Client(), or pass client=."
            ) from None
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {type(client).__name__}.")
    if client.status in ("closing", "closed"):
        raise RuntimeError(
            "The Dask client is closed. Make another, client = dask.distributed.Client(), and pass client=."
        )
    if client.asynchronous:
        raise TypeError("An asynchronous client is not supported. Use Client(..., asynchronous=False).")
    if not workers_of(client):
        try:
            client.wait_for_workers(1, timeout=WAIT_FOR_WORKERS)
        except TimeoutError:
            raise RuntimeError(
                f"The Dask cluster at {client.scheduler.address} has no workers: none came within {WAIT_FOR_WORKERS:g} "
                "seconds. Start some (cluster.scale(2), or dask worker ADDRESS), then fit again."
            ) from None
    return client


def workers_of(client: Any) -> dict[str, int]:
    """Return the threads of every worker by its address; limits hold until the scheduler answers, and it has to."""
    deadline = time.perf_counter() + WAIT_FOR_SCHEDULER
    try:
        found = arrived(client, client.scheduler.ncores(workers=None), lambda: time.perf_counter() > deadline)
    except OSError as error:  # of its connections, too
        raise RuntimeError(_without_scheduler(client, "is not there any more")) from error
    if found is None:
        raise RuntimeError(_without_scheduler(client, f"has not answered for {WAIT_FOR_SCHEDULER:g} seconds"))
    return dict(found)


def _without_scheduler(client: Any, what: str) -> str:
    return (
        f"The Dask scheduler at {client.scheduler.address} {what}. Start another, connect a client and fit again; with "
        "checkpoint= it goes on from where it was."
    )


def arrived(client: Any, coroutine: Coroutine[Any, Any, Any], is_hopeless: Callable[[], bool]) -> Any:
    """Return what a coroutine of the client returns, None once that is hopeless; limits hold meanwhile."""
    arriving = asyncio.run_coroutine_threadsafe(coroutine, client.loop.asyncio_loop)
    try:
        while not wait_for([arriving], timeout=POLL).done:
            limits.check()
            if is_hopeless():
                return None
        return arriving.result()
    finally:
        arriving.cancel()


@contextmanager
def beside_tasks() -> Iterator[None]:
    """Work in a task of Dask that waits for others: they are given its place on the worker, as they might have no other."""
    if not _is_task():
        yield
        return
    distributed.secede()
    try:
        yield
    finally:
        distributed.rejoin()


def _is_task() -> bool:
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


class _Quiet:
    """Dask's settings are those of all threads: they are changed by the first fit, and set back by the last."""

    def __init__(self) -> None:
        self._lock, self._count, self._changed = threading.Lock(), 0, ExitStack()

    def enter(self) -> None:
        with self._lock:
            if not self._count:
                self._changed.enter_context(dask.config.set(NO_WARNING))
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                self._changed.close()


_quiet = _Quiet()


@contextmanager
def quietly() -> Iterator[None]:
    """Send arrays without a warning that they are large: that of a working set is what it is."""
    _quiet.enter()
    try:
        yield
    finally:
        _quiet.leave()


def work(block: Any, question: Question, renewal: Renewal | None) -> Reply:
    """Answer, on a worker."""
    began = time.perf_counter()
    answer = partition.ask(block, question, renewal)
    return Reply(answer, distributed.get_worker().address, time.perf_counter() - began)


def call(block: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Reply:
    """Return what a function makes of a partition, on a worker."""
    began = time.perf_counter()
    return Reply(function(block, *arguments), distributed.get_worker().address, time.perf_counter() - began)


class NotYet:
    """What is there instead of a reply that went with its worker while it was fetched: Dask computes it again."""


def _same(value: Any) -> Any:
    return value


class Cluster:
    """The partitions of a fit, and how to ask them."""

    def __init__(self, client: Any, blocks: list[Any]):
        self.client, self.blocks = client, blocks  # futures of blocks
        self.address: list[str | None] = [None] * len(blocks)  # where each was last
        self.bytes_moved = 0  # sent to workers and received from them, without the data itself
        self.seconds: list[float] = []  # of each partition, in the last round of questions
        self.renewals = 0  # of partitions that had lost their state

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: Any) -> None:
        """Let the cluster forget the fit: a traceback would keep the data there, and cycles until they are collected."""
        _release(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def workers(self) -> int:
        """Number of workers that hold partitions."""
        return max(1, len({address for address in self.address if address is not None}))

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function makes of every partition; arguments that are lists have an entry for each."""

        def submit(number: int, renewal: Any, where: dict[str, Any]) -> Any:
            own = tuple(value[number] if isinstance(value, list) else value for value in arguments)
            return self.client.submit(call, self.blocks[number], function, own, pure=False, **where)

        return self._gather(submit, None)

    def ask(self, question: Question, renewal: Callable[[], Renewal], *, is_new: bool = False) -> list[Any]:
        """Return the answers of all partitions; one that has lost its state is given all coefficients first.

        ``is_new``: all of them are given these at once.
        """
        self._count(question)
        held = [self._shared(question)]

        def fresh() -> Any:
            if len(held) == 1:
                value = renewal()
                self._count(value)
                held.append(self._shared(value))
            return held[1]

        def submit(number: int, needs_renewal: bool, where: dict[str, Any]) -> Any:
            given = fresh() if needs_renewal or is_new else None
            return self.client.submit(work, self.blocks[number], held[0], given, pure=False, **where)

        try:
            return self._gather(submit, Missing)
        finally:
            _release(held)

    def _count(self, value: Any) -> None:
        self.bytes_moved += self.workers * nbytes(tuple(vars(value).values()))

    def _shared(self, value: Any) -> Any:
        """Return something small as it is, and all else as a task of its own: Dask can make it again, too."""
        if nbytes(tuple(vars(value).values())) <= INLINE:
            return value
        with quietly():
            return self.client.submit(_same, value, pure=False)

    def _where(self, number: int, *, is_again: bool = False) -> dict[str, Any]:
        """Return where to ask: where the partition was, and nowhere else the first time, as it would have no state there."""
        address = self.address[number]
        return {} if address is None else {"workers": [address], "allow_other_workers": is_again}

    def _gather(self, submit: Callable[..., Any], missing: Any) -> list[Any]:
        """Return an answer of every partition, however many workers die on the way."""
        pending: dict[int, Any] = {}
        try:
            with quietly():
                for number in range(len(self)):
                    pending[number] = submit(number, False, self._where(number))
            return self._answers(submit, missing, pending)
        finally:
            _release(pending.values())

    def _answers(self, submit: Callable[..., Any], missing: Any, pending: dict[int, Any]) -> list[Any]:
        answers: list[Any] = [None] * len(self)
        tries, self.seconds = [0] * len(self), [0.0] * len(self)
        looked = time.perf_counter()
        while pending:
            again: dict[int, bool] = {}
            for number in self._wait(pending):
                reply = self._reply(pending[number])
                if isinstance(reply, NotYet):
                    continue
                _release([pending.pop(number)])
                if reply is not None:
                    self.address[number], self.seconds[number] = reply.address, reply.seconds
                if reply is None or (missing is not None and isinstance(reply.answer, missing)):
                    again[number] = reply is not None
                else:
                    answers[number] = reply.answer
                    self.bytes_moved += nbytes(reply.answer)
            if time.perf_counter() - looked > LOOK:
                again |= dict.fromkeys(self._lost(pending), False)
                looked = time.perf_counter()
            for number, needs_renewal in again.items():
                tries[number] += 1
                self._refuse_forgotten(number)
                self._refuse_endless(number, tries[number])
                self.renewals += needs_renewal
                if not needs_renewal:
                    self.address[number] = None
                with quietly():
                    pending[number] = submit(number, needs_renewal, self._where(number, is_again=True))
        return answers

    @staticmethod
    def _wait(pending: dict[int, Any]) -> list[int]:
        """Return the partitions that have answered, after a while at the latest."""
        try:
            distributed.wait(list(pending.values()), timeout=POLL, return_when="FIRST_COMPLETED")
        except TimeoutError:
            limits.check()
        except LOST:  # one of them was cancelled
            time.sleep(0.01)
        return [number for number, future in pending.items() if future.status != "pending"]

    def _reply(self, future: Any) -> Reply | NotYet | None:
        """Return what a task has returned, None if it was lost with its worker; raise what it has raised."""
        status = future.status
        if status in ("cancelled", "lost"):
            return None
        if status == "pending":  # again, since it was looked at
            return NotYet()
        try:
            return self._fetched(future) if status == "finished" else future.result()
        except LOST:
            return None

    def _fetched(self, future: Any) -> Reply | NotYet:
        """Return the result of a task that is done, however long it takes to come, unless limits end that.

        Its worker may have died since: then it is pending again, perhaps for ever, as it was for that worker alone.
        """
        coroutine = self.client.gather(future, asynchronous=True)
        found = arrived(self.client, coroutine, lambda: future.status != "finished")
        return NotYet() if found is None else found

    def _lost(self, pending: dict[int, Any]) -> list[int]:
        """Return the partitions whose answer is waited for from a worker that is gone."""
        began = time.perf_counter()
        while not (there := workers_of(self.client)):
            if time.perf_counter() - began > WAIT_FOR_OTHERS:
                raise RuntimeError(
                    f"All workers of the Dask cluster were lost, and none came back within {WAIT_FOR_OTHERS:g} seconds. "
                    "Start some and fit again; with checkpoint= it goes on from where it was."
                )
            limits.check()
            time.sleep(POLL)
        is_gone = {number for number in pending if self.address[number] not in (None, *there)}
        for number in is_gone:
            pending.pop(number).release()
        return sorted(is_gone)

    def _refuse_forgotten(self, number: int) -> None:
        """Refuse to go on with a partition that the scheduler knows nothing of any more: it cannot be computed again."""
        if self.blocks[number].status == "cancelled":
            raise RuntimeError(
                f"The Dask scheduler at {self.client.scheduler.address} has ended or was restarted, or the connection to it "
                "was lost, and with it the data of this fit. Fit again; with checkpoint= it goes on from where it was."
            )

    @staticmethod
    def _refuse_endless(number: int, tries: int) -> None:
        if tries > MOST_TRIES:
            raise RuntimeError(
                f"Partition {number} was lost {tries} times: the workers that take it over die, for want of memory as a rule. "
                "Cut the data into smaller partitions, or give workers more memory."
            )


def _release(values: Iterable[Any]) -> None:
    """Tell the cluster that those of them that are futures are not needed any more."""
    for value in values:
        if isinstance(value, distributed.Future):
            value.release()
