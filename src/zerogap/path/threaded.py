"""Calls into LAPACK and HiGHS that take long: made in a thread, so that a time limit or Ctrl-C need not wait for their end."""

import threading
from collections.abc import Callable
from typing import Any

from zerogap import limits

LARGE = 250  # rows of a matrix from which on a call is worth a thread
POLL_EVERY = 0.05  # seconds


def call_in_thread(rows: int, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return function(*arguments, **options); raise ``limits.Exceeded`` once a limit is reached, and leave it to itself."""
    if rows < LARGE:
        return function(*arguments, **options)
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.extend((function(*arguments, **options), None))
        except Exception as error:
            outcome.extend((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL_EVERY)
        limits.check()
    result, error = outcome
    if error is not None:
        raise error
    return result
