"""The command line: each command checks its options, reads data, makes one library call, and prints.

Exit codes: 0; 1 for what is wrong with data or files; 2 with options; 130 after Ctrl-C.  An error is one line.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

DATA, USAGE, INTERRUPTED = 1, 2, 130  # 130 is what shells make of a program that Ctrl-C has ended
BROKEN_PIPE = 141  # and this of one that wrote where nobody reads


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    try:  # libraries are loaded here, where Ctrl-C is met: there is nothing to tell of yet
        from zerogap.cli.arguments import UsageError
        from zerogap.cli.messages import described
        from zerogap.cli.report import close
    except KeyboardInterrupt:
        return INTERRUPTED
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a label that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _run(arguments)
            sys.stdout.flush()
            return code
    except UsageError as error:
        return _failed(str(error), USAGE)
    except BrokenPipeError:
        close(sys.stdout)
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except Exception as error:
        if os.environ.get("ZEROGAP_TRACEBACK"):
            raise
        return _failed(described(error), DATA)


def _run(arguments: Sequence[str] | None) -> int:
    from zerogap.cli.arguments import make_parser
    from zerogap.cli.report import Report

    try:
        options = make_parser().parse_args(arguments)
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    # Loading libraries takes seconds on a slow disk; whatever a command shows first takes the place of this line.
    with Report(quiet=getattr(options, "quiet", False)).working("starting"):
        return options.command(options)


def _failed(message: str, code: int) -> int:
    from zerogap.ticker import hand_over

    hand_over()
    with contextlib.suppress(OSError):
        print(f"zerogap: {message}", file=sys.stderr)
    return code


def _show_warning(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    from zerogap.cli.messages import in_options
    from zerogap.ticker import hand_over

    hand_over()
    with contextlib.suppress(OSError):  # a fit does not end because nobody reads its warnings
        print(f"zerogap: {in_options(str(message))}", file=sys.stderr)
