"""Worker processes that survive their cases: one that hangs is ended, and its case reported."""

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from fuzzing.run import Outcome, run, warm_up, write_snippet

CHUNK = 32  # cases handed out at once
STARTING = 600.0  # seconds for a new process to import and compile


def _work(pipe: Connection, seed: int, only: str | None, log: str, limit: float) -> None:
    """Run the cases whose numbers come through the pipe, and send what came of each."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(log, "w") as file:
        if hasattr(faulthandler, "register"):
            faulthandler.register(signal.SIGUSR1, file=file, all_threads=False)
        warm_up()
        pipe.send("ready")
        while (numbers := pipe.recv()) is not None:
            for number in numbers:
                pipe.send(number)
                pipe.send(run(seed, number, only, limit))
            pipe.send("more")


def processor_seconds(pid: int | None) -> float:
    """Return the processor time a process has used, 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


class Worker:
    """A process, the cases it still has to do, and since when it has been at the present one."""

    def __init__(self, seed: int, only: str | None, limit: float):
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(
                name, "1"
            )  # for the process to come: the cases are small, and every core has a worker
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        handle, self.log = tempfile.mkstemp(prefix="fuzz-", suffix=".log")
        os.close(handle)
        self.process = context.Process(target=_work, args=(theirs, seed, only, self.log, max(limit, 1.0)), daemon=True)
        self.process.start()
        theirs.close()
        self.numbers: list[int] = []
        self.present: int | None = None
        self.since, self.is_ready, self.spent = time.monotonic(), False, 0.0

    def touch(self) -> None:
        """Something came: the clocks begin anew."""
        self.since, self.spent = time.monotonic(), processor_seconds(self.process.pid)

    def is_stuck(self, limit: float) -> bool:
        """Whether the present case has had its seconds: of processor time, as the machine may be busy, else of the clock."""
        waited = time.monotonic() - self.since
        if self.present is None:  # not yet at a case: it may be waiting for a processor
            return waited > STARTING
        if waited <= limit:
            return False
        used = processor_seconds(self.process.pid) - self.spent
        return used > limit or waited > 10 * limit or used == 0.0

    def hand(self, numbers: list[int]) -> None:
        self.numbers = list(numbers)
        self.pipe.send(numbers)

    def trace(self) -> str:
        """Where the process is, as far as it can tell."""
        if hasattr(signal, "SIGUSR1") and self.process.is_alive():
            with contextlib.suppress(OSError, TypeError):
                os.kill(self.process.pid, signal.SIGUSR1)  # type: ignore[arg-type]
                time.sleep(0.5)
        return Path(self.log).read_text()[-3000:]

    def end(self) -> None:
        self.process.kill()
        self.process.join(10)
        self.pipe.close()
        with contextlib.suppress(OSError):
            Path(self.log).unlink()


def campaign(
    seed: int, numbers: list[int], only: str | None = None, workers: int = 2, limit: float = 30.0
) -> Iterator[Outcome]:
    """Yield the outcome of every case, in the order they finish; one that takes longer than ``limit`` seconds has failed."""
    chunks = [numbers[k : k + CHUNK] for k in range(0, len(numbers), CHUNK)][::-1]
    team = [Worker(seed, only, limit) for _ in range(min(workers, len(chunks)))]
    try:
        while team:
            ready = wait([worker.pipe for worker in team], timeout=1.0)
            for worker in list(team):
                lost = None
                if worker.pipe in ready:
                    try:
                        yield from _messages(worker, chunks)
                    except (EOFError, OSError):
                        worker.process.join(5)
                        lost = f"crash: the process ended with exit code {worker.process.exitcode}"
                if worker.numbers == [] and worker.is_ready and not chunks and worker.present is None:
                    team.remove(worker)
                    worker.end()
                    continue
                if lost is None and worker.is_stuck(1.5 * limit + 1.0 if limit > 0 else limit):
                    lost = f"hang: no result after {limit:g} seconds"
                if lost is not None:
                    if worker.present is not None:
                        yield _lost(seed, only, worker, lost)
                    rest = [n for n in worker.numbers if n != worker.present]
                    if rest:
                        chunks.append(rest)
                    team.remove(worker)
                    worker.end()
                    if chunks:
                        team.append(Worker(seed, only, limit))
    finally:
        for worker in team:
            worker.end()


def _messages(worker: Worker, chunks: list[list[int]]) -> Iterator[Outcome]:
    """Take in what a worker has sent."""
    while worker.pipe.poll():
        message: Any = worker.pipe.recv()
        worker.touch()
        if isinstance(message, str):
            worker.is_ready, worker.present = True, None
            worker.numbers = []
            if chunks:
                worker.hand(chunks.pop())
        elif isinstance(message, int):
            worker.present = message
        else:
            worker.numbers.remove(message.number)
            worker.present = None
            yield message


def _lost(seed: int, only: str | None, worker: Worker, what: str) -> Outcome:
    from fuzzing.draw import draw

    assert worker.present is not None
    case = draw(seed, worker.present, only)
    trace = worker.trace()
    failures = [f"{what}\n{trace}" if trace else what]
    snippet = write_snippet(case, failures, only)
    return Outcome(case.number, case.kind, case.about, failures, None, {}, 0.0, snippet)
