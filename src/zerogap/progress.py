"""Progress of long work: decades of the gap, or of C."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from zerogap import ticker
from zerogap.solution import TraceRow

FORM = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


def bar_delay() -> float:
    """Return the seconds after which a bar appears: at once if it takes the place of a line."""
    return 0.0 if ticker.hand_over() else 1.0


class GapProgress:
    """A callback for ``solve`` that shows the gap on its way down to ``tol``; appears after a second."""

    def __init__(self, tol: float, title: str = "fit"):
        self.tol, self.title = tol, title
        self._bar: Any = None
        self._first = 0.0

    def __call__(self, state: Any, row: TraceRow) -> None:
        """Move the bar to the gap of this trace row."""
        height = np.log10(max(row.gap, self.tol) / self.tol) if np.isfinite(row.gap) else 0.0
        if self._bar is None and height > 0:
            self._first = height
            self._bar = tqdm(total=height, desc=self.title, delay=bar_delay(), bar_format=FORM, leave=False)
        if self._bar is not None:
            self._bar.n = max(self._bar.n, self._first - height)
            self._bar.set_postfix_str(self._said(row))

    def _said(self, row: TraceRow) -> str:
        return f"gap {row.gap:.1e} of {self.tol:.0e}, {row.step} steps, {row.support} support"

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


class RoundProgress(GapProgress):
    """The same for rounds on a cluster, with what they have moved between machines."""

    bytes_moved = 0

    def _said(self, row: TraceRow) -> str:
        moved = f"{self.bytes_moved / 1e6:.3g} MB moved"
        return f"gap {row.gap:.1e} of {self.tol:.0e}, {row.step} rounds, {row.support} support, {moved}"


class PathProgress:
    """Shows how far a path has come on its way to the value of its parameter where it ends; appears after a second.

    Of several paths, inside ``several_paths``, it moves the bar that all of them have.
    """

    def __init__(self, path: Any, end: float):
        self._name, self._size = path.parameter, np.log10 if path.family.is_over_C else float  # C runs over decades
        self._first = self._size(path.value_of(path.lam[-1]))
        self._total = abs(self._size(end) - self._first)
        self._all, self._done = _several.get(), 0.0
        if self._all is None:
            self._bar = tqdm(total=self._total, desc="path", delay=bar_delay(), bar_format=FORM, leave=False)

    def __call__(self, events: int, value: float, elbow: int) -> None:
        """Move the bar to this event."""
        if events % 20:
            return
        done = abs(self._size(value) - self._first)
        if self._all is not None:
            self._move(done / self._total)
        else:
            self._bar.n = done
            self._bar.set_postfix_str(f"{self._name} {value:.3g}, {events} events, elbow {elbow}")

    def _move(self, share: float) -> None:
        assert self._all is not None
        self._all.update(share - self._done)
        self._done = share

    def close(self) -> None:
        """Take the bar away; that of several paths counts this one as done."""
        if self._all is not None:
            self._move(1.0)
        else:
            self._bar.close()


_several: ContextVar[Any] = ContextVar("several", default=None)


@contextmanager
def several_paths(count: int) -> Iterator[None]:
    """Show one bar for so many paths that are followed inside, in threads too."""
    bar = tqdm(total=count, desc=f"{count} paths", delay=bar_delay(), bar_format=FORM, leave=False)
    token = _several.set(bar)
    try:
        yield
    finally:
        _several.reset(token)
        bar.close()
