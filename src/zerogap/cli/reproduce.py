"""``zerogap reproduce``: the experiments of the papers."""

import argparse
import warnings
from typing import Any

from zerogap.cli import arguments
from zerogap.cli.arguments import UsageError
from zerogap.limits import interruptible
from zerogap.ticker import hand_over

EXAMPLES = """\
  zerogap reproduce                          the list of experiments
  zerogap reproduce ong-table-2 --quick      seconds
  zerogap reproduce all --output results     everything, with tables and figures"""


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "reproduce", run, "rerun the experiments of the papers, their numbers beside ours", EXAMPLES
    )
    parser.add_argument("names", nargs="*", help="such as ong-table-2, a paper, or all; without any, the list of them")
    parser.add_argument("--quick", action="store_true", help="a smaller form that takes seconds")
    parser.add_argument("--output", metavar="FOLDER", help="write tables, CSV files and figures there")


def run(options: argparse.Namespace) -> int:
    """Rerun experiments; only what must hold whatever a paper says is a failure."""
    from zerogap import reproduce

    hand_over()  # it prints by itself
    if not options.names:
        print("\n".join(reproduce.experiments()))
        return 0
    try:
        # What is missing is told for every set.
        warnings.filterwarnings("ignore", message="A network error occurred")
        with interruptible():  # half an experiment is none
            reports = reproduce.reproduce(options.names, quick=options.quick, output=options.output)
    except ValueError as error:  # a name that is unknown, or results that would be replaced
        raise UsageError(str(error).replace("leave quick out", "leave --quick out")) from error
    if lacking := [report for report in reports if not report.cells]:
        files = ", ".join(dict.fromkeys(name for report in lacking for name in report.missing))
        raise FileNotFoundError(
            f"{', '.join(report.name for report in lacking)}: not run, data is missing"
            f"{f' ({files})' if files else ''}. Put the files into a folder, sets as svmlight, and set ZEROGAP_DATA to it."
        )
    return int(any(not cell.holds for report in reports for cell in report.judged(reproduce.SELF)))
