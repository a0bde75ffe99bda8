"""Options: how they are written, and what is checked of them before any data is read."""

import argparse
import csv
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from zerogap import __version__, tables

KERNELS = ("linear", "poly", "rbf", "sigmoid")
LOSSES = ("hinge", "squared_hinge")
EPSILON = 0.1  # the default of SVR, and of svm-train
NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$|-inf$", re.IGNORECASE)  # a value, and no option
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}


class UsageError(Exception):
    """Options that cannot be meant."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def __init__(self, *args: Any, **options: Any):
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **{"allow_abbrev": False, **options})
        self._negative_number_matcher = NEGATIVE

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the options; what is left over is refused by the command that does not know it, not by all of them."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            getattr(options, "parser", self).error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def error(self, message: str) -> NoReturn:
        """Refuse the options."""
        raise UsageError(f"{message.removeprefix('argument ')} ({self.prog} --help lists the options)")


def make_parser() -> Parser:
    """Return the parser of all commands."""
    from zerogap.cli import bench, certify, compare, explore, fit, path, predict, reproduce, tune

    parser = Parser("zerogap", description="Support vector machines solved exactly, with a proof attached.")
    parser.add_argument("--version", action="version", version=f"zerogap {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (path, tune, explore, fit, predict, certify, compare, bench, reproduce):
        command.add(commands)
    return parser


def add_command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, examples: str) -> Parser:
    """Add a command with its help."""
    parser = commands.add_parser(name, help=text, description=f"{text}.", epilog=f"examples:\n{examples}")
    parser.set_defaults(command=run, parser=parser)
    return parser


# Kinds of values.


def positive(text: str) -> float:
    """Return a number above zero."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, and finite; got {text}")
    return value


def cost(text: str) -> float:
    """Return a C, which may be infinite."""
    value = _number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be a number above 0, or inf for the hard margin; got {text}")
    return value


def not_negative(text: str) -> float:
    """Return a number that is zero or more."""
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number, 0 or more; got {text}")
    return value


def finite(text: str) -> float:
    """Return a number."""
    value = _number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number; got {text}")
    return value


def count(text: str) -> int:
    """Return a whole number above zero."""
    return _whole(text, 1)


def count_or_zero(text: str) -> int:
    """Return a whole number, zero or more."""
    return _whole(text, 0)


def share(text: str) -> float:
    """Return a part of the rows."""
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a part of the rows, from 0 to less than 1; got {text}")
    return value


def gamma(text: str) -> float | str:
    """Return a number above zero, or one of two words."""
    if text in ("scale", "auto"):
        return text
    value = _number(text, "scale, auto or a number")
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be scale, auto or a number above 0; got {text}")
    return value


def list_of(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return a reader of values joined by commas; each is there once."""

    def read(text: str) -> list[Any]:
        if not text.strip(", "):
            raise argparse.ArgumentTypeError(f"must be numbers joined by commas; got {text!r}")
        values = [kind(part) for part in names(text)]
        for k, value in enumerate(values):
            if value in values[:k]:
                raise argparse.ArgumentTypeError(f"{value} is there twice")
        return values

    return read


def folds(text: str) -> int:
    """Return a number of folds."""
    return _whole(text, 2)


def jobs(text: str) -> int:
    """Return how much is done at once: a whole number, or -1 for as much as there are cores."""
    if text == "-1":
        return -1
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, or -1 for one a core; got {text!r}")
    return int(text)


def delimiter(text: str) -> str:
    """Return one character, or the one that a word stands for."""
    found = DELIMITERS.get(text, text)
    if len(found) != 1 or found.isalnum() or found in '"\r\n.-+':
        raise argparse.ArgumentTypeError(
            f"must be one character, or comma, semicolon, tab, pipe or space; got {text!r}"
        )
    return found


def names(text: str) -> list[str]:
    """Return names joined by commas; a name with a comma in it stands in double quotes."""
    found = [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"must be names joined by commas; got {text!r}")
    return found


def _number(text: str, expected: str = "a number") -> float:
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {expected}; got {text!r}") from None


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number, {least} or more; got {text!r}")
    return int(text)


# Options that several commands have.


def add_file(parser: Parser, default: str | None = "breast_cancer") -> None:
    """Add what says which data to read, and how."""
    optional = {"nargs": "?", "default": default} if default else {}
    parser.add_argument(
        "data",
        metavar="FILE",
        help="CSV, TSV, svmlight or Parquet file, plain or compressed (gzip, bzip2, xz); - for standard input; "
        "or the name of a data set" + (f" (default {default})" if default else ""),
        **optional,  # type: ignore[arg-type]
    )
    group = parser.add_argument_group("the file")
    group.add_argument("--format", choices=tables.FORMATS, help="default: by name and content")
    group.add_argument(
        "--target", metavar="COLUMN", help="name or number, from 1 on, of the target (default: the last)"
    )
    header = group.add_mutually_exclusive_group()
    header.add_argument("--header", dest="header", action="store_true", default=None, help="the first line has names")
    header.add_argument("--no-header", dest="header", action="store_false", help="it has not (default: found out)")
    group.add_argument("--delimiter", type=delimiter, help="such as ';', tab or space (default: found out)")
    group.add_argument("--decimal", choices=(".", ","), default=".", help="decimal point (default .)")
    group.add_argument(
        "--missing",
        choices=("error", "drop", "mean"),
        default="error",
        help="what to do about missing values: refuse them, leave their rows out, or fill in the mean "
        + ("(default error)" if default else "(default: as the model was trained)"),
    )


def add_columns(parser: Parser) -> None:
    """Add what is done to columns in training; a model remembers it."""
    group = parser.add_argument_group("its columns")
    group.add_argument(
        "--one-hot",
        type=names,
        default=[],
        metavar="NAMES",
        help="columns to make a 0/1 feature of each value; all: text",
    )
    group.add_argument("--drop", type=names, default=[], metavar="NAMES", help="columns to leave out")
    scale = group.add_mutually_exclusive_group()
    scale.add_argument("--raw", action="store_true", help="do not scale the features to mean 0 and variance 1")
    scale.add_argument("--scale", dest="raw", action="store_false", help="do (the default)")


def add_kernel(parser: Parser, *, several: bool = False) -> None:
    """Add the kernel; a command that chooses takes several gammas."""
    group = parser.add_argument_group("the kernel")
    group.add_argument("--kernel", default="rbf", choices=KERNELS, help="default rbf")
    if several:
        words = "scale, auto or numbers to choose from, joined by commas (default: four, from a tenth of scale to three times)"
        group.add_argument("--gamma", type=list_of(gamma), help=words)
    else:
        group.add_argument("--gamma", type=gamma, default="scale", help="scale, auto or a number (default scale)")
    group.add_argument("--degree", type=count_or_zero, default=3, help="of poly (default 3)")
    group.add_argument("--coef0", type=finite, default=0.0, help="of poly and sigmoid (default 0)")


def add_range(parser: Parser) -> None:
    """Add the range of C."""
    parser.add_argument("--C-min", type=positive, default=1e-2, help="smallest C (default 0.01)")
    parser.add_argument("--C-max", type=positive, default=1e3, help="largest C (default 1000)")


def add_class_weight(parser: Parser) -> None:
    """Add how much errors of a class count."""
    parser.add_argument(
        "--class-weight",
        choices=("balanced",),
        help="balanced: C counts for a class the more, the fewer rows it has (default: the same for all)",
    )


def check_class_weight(options: argparse.Namespace) -> None:
    """Refuse weights of classes where there are none."""
    if options.regression and options.class_weight is not None:
        raise UsageError("--class-weight is for classes; leave it out with --regression")


def check_range(options: argparse.Namespace) -> None:
    """Refuse a range of C without any."""
    if options.C_min >= options.C_max:
        raise UsageError(f"--C-min must be below --C-max; got {options.C_min:g} and {options.C_max:g}")


def add_output(parser: Parser) -> None:
    """Add where results go."""
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON; - is standard output")
    parser.add_argument("--quiet", action="store_true", help="no progress on the terminal")


def add_split(parser: Parser, saved: str = "") -> None:
    """Add what is held out."""
    parser.add_argument(
        "--test-size", type=share, help=f"part of the rows held out, to score (default a third{saved}); 0: none"
    )
    parser.add_argument("--seed", type=count_or_zero, default=0, help="seed of the split (default 0)")
    parser.add_argument("--verbose", action="store_true", help="show progress even where there is no terminal")


def kernel_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return what estimators take."""
    return {"kernel": options.kernel, "gamma": options.gamma, "degree": options.degree, "coef0": options.coef0}
