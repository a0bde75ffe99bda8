"""Progress of long work: decades of the gap, or of C."""

from typing import Any

import numpy as np
from tqdm.auto import tqdm

from zerogap import ticker
from zerogap.solution import TraceRow


def _delay() -> float:
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
            form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
            self._bar = tqdm(total=height, desc=self.title, delay=_delay(), bar_format=form, leave=False)
        if self._bar is not None:
            self._bar.n = max(self._bar.n, self._first - height)
            self._bar.set_postfix_str(f"gap {row.gap:.1e} of {self.tol:.0e}, {row.step} steps, {row.support} support")

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


class PathProgress:
    """Shows how far a path has come on its way from one C to another; appears after a second."""

    def __init__(self, C_min: float, C_max: float):
        self._first = np.log10(C_min)
        form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
        self._bar = tqdm(total=np.log10(C_max) - self._first, desc="path", delay=_delay(), bar_format=form, leave=False)

    def __call__(self, events: int, C: float, elbow: int) -> None:
        """Move the bar to this event."""
        if events % 20 == 0:
            self._bar.n = np.log10(C) - self._first
            self._bar.set_postfix_str(f"C {C:.3g}, {events} events, elbow {elbow}")

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()
