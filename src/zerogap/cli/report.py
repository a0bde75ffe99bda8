"""What a command says: text for people, JSON for programs, and a line on a terminal while it works."""

import contextlib
import json
import math
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from zerogap.cli.arguments import UsageError
from zerogap.ticker import Ticker, hand_over

STANDARD = "-"  # standard input or output


class Report:
    """Where a command writes to: text on standard output, or on standard error if JSON goes to standard output."""

    def __init__(
        self, json_to: str | None = None, quiet: bool = False, is_text_aside: bool = False, save_to: str | None = None
    ):
        self.json_to = json_to
        self.has_files = save_to is not None or json_to not in (None, STANDARD)  # that are still to be written
        self.is_cut = False  # nobody reads the text any more
        self.stream = sys.stderr if json_to == STANDARD or is_text_aside else sys.stdout
        self.is_quiet = quiet
        self.is_live = sys.stderr.isatty() and not quiet

    def say(self, text: object = "") -> None:
        """Print a line for people; it is there at once, even in a pipe."""
        self._print(text, self.stream)

    def note(self, text: str) -> None:
        """Tell what was decided for the user, on standard error."""
        self._print(f"zerogap: {text}", sys.stderr)

    def _print(self, text: object, stream: Any) -> None:
        hand_over()
        try:
            print(text, file=stream, flush=True)
        except BrokenPipeError:
            if not self.has_files:
                raise
            close(stream)  # files are asked for, too, and do not go down with the pipe
            self.is_cut = True

    def end_if_cut(self) -> None:
        """End the command if nobody reads what it prints, once its files are written."""
        if self.is_cut:
            raise BrokenPipeError

    def working(self, title: str) -> AbstractContextManager[Any]:
        """Show on a terminal what is being done, and for how long."""
        return Ticker(title) if self.is_live else nullcontext()

    def write(self, results: dict[str, Any]) -> None:
        """Write the results where ``--json`` says."""
        if self.json_to is None:
            return
        text = json.dumps(plain(results), indent=1, allow_nan=False, ensure_ascii=False)
        if self.json_to == STANDARD:
            print(text, flush=True)
        else:
            Path(self.json_to).write_text(text + "\n", encoding="utf-8")
            self.end_if_cut()


def close(stream: Any) -> None:
    """Let Python write what is left in a stream to nowhere when it ends: it would complain once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def plain(value: Any) -> Any:
    """Return what JSON can hold: NaN and infinity are null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def certificate_record(certificate: Any) -> dict[str, Any]:
    """Return a certificate for JSON."""
    return {**asdict(certificate), "relative_gap": certificate.relative_gap}


def check_output(option: str, name: str | None) -> None:
    """Refuse a file that cannot be written before anything is read or computed."""
    if name is None or name == STANDARD:
        return
    folder = Path(name).absolute().parent
    if Path(name).is_dir():
        raise UsageError(f"{option} {name}: is a directory")
    if not folder.is_dir():
        raise UsageError(f"{option} {name}: no such folder {folder}")
    if not os.access(name if Path(name).exists() else folder, os.W_OK):
        raise UsageError(f"{option} {name}: permission denied")
