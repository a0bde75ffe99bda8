"""A line on the terminal that says what is being done, and for how long, until there is more to show."""

import contextlib
import sys
import threading
import time
from typing import Any

FIRST, EVERY = 0.3, 0.5  # seconds: what takes less needs no line
THREAD = "zerogap-ticker"
CLEAR = "\r\x1b[K"

_current: "Ticker | None" = None


class Ticker:
    """Shows a title and the seconds since it began, on standard error; work that has a bar of its own takes its place."""

    def __init__(self, title: str):
        self.title = title
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, name=THREAD, daemon=True)

    def __enter__(self) -> "Ticker":
        global _current
        hand_over()
        _current = self
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def stop(self) -> bool:
        """Take the line away; return whether it was there."""
        global _current
        if self._ended.is_set():
            return False
        self._ended.set()
        self._thread.join()
        _current = None
        return True

    def _show(self) -> None:
        began, is_shown = time.perf_counter(), False
        with contextlib.suppress(OSError, ValueError):  # nobody looks any more
            while not self._ended.wait(EVERY if is_shown else FIRST):
                sys.stderr.write(f"{CLEAR}{self.title} ... {time.perf_counter() - began:.0f} s")
                sys.stderr.flush()
                is_shown = True
            if is_shown:
                sys.stderr.write(CLEAR)
                sys.stderr.flush()


def hand_over() -> bool:
    """Take away the line that is shown now, for a bar in its place; return whether there was one."""
    return _current is not None and _current.stop()
