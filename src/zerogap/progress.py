"""Progress of long fits: how many decades of the gap are done."""

from typing import Any

import numpy as np
from tqdm.auto import tqdm

from zerogap.loop import Look


class GapProgress:
    """A callback for ``solve`` that shows the gap on its way down to ``tol``; appears after a second."""

    def __init__(self, tol: float, title: str = "fit"):
        self.tol, self.title = tol, title
        self._bar: Any = None
        self._first = 0.0

    def __call__(self, state: Any, look: Look) -> None:
        """Move the bar to where this look is."""
        height = np.log10(max(look.gap, self.tol) / self.tol) if np.isfinite(look.gap) else 0.0
        if self._bar is None and height > 0:
            self._first = height
            form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
            self._bar = tqdm(total=height, desc=self.title, delay=1.0, bar_format=form, leave=False)
        if self._bar is not None:
            self._bar.n = max(self._bar.n, self._first - height)
            self._bar.set_postfix_str(
                f"gap {look.gap:.1e} of {self.tol:.0e}, {look.step} steps, {look.support} support"
            )

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
