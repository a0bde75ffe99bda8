"""The proof of a path beside its engine: on a thread of its own, if there is one, as the two hardly wait for each other."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from zerogap.path.proof import BLOCK
from zerogap.path.result import Path
from zerogap.threads import beside


class Proving:
    """Proves the segments of a path as they come, block by block."""

    def __init__(self, path: Path):
        self.path = path
        self._running: Future[Any] | None = None

    def go_on(self) -> None:
        """See that blocks which are there are proved; raise what has ended the proof."""
        if self._running is not None and self._running.done():
            self.wait()
        if self._running is None and self.path.n_unproved >= BLOCK:
            self._running = beside(self.path.prove, BLOCK)
            if self._running is None:
                self.path.prove(BLOCK)

    def wait(self) -> None:
        """Wait for what was begun."""
        running, self._running = self._running, None
        if running is not None:
            running.result()


@contextmanager
def proving(path: Path) -> Iterator[Proving]:
    """Prove a path while it is followed; at the end, and after an error, nothing is left that would still read it."""
    proof = Proving(path)
    try:
        yield proof
    except BaseException:
        if proof._running is not None:
            proof._running.exception()
        raise
    proof.wait()
    path.prove()
