"""``zerogap compare``: several solvers on one problem."""

import argparse
from typing import Any

import numpy as np

from zerogap.cli import arguments, pictures, solving
from zerogap.cli.arguments import UsageError
from zerogap.cli.data import load, source_of, split, two_classes
from zerogap.cli.report import Report, check_output
from zerogap.wording import count

EXAMPLES = """\
  zerogap compare                                          the SMO family on breast cancer
  zerogap compare data.csv --solvers auto,smo --C 100 --tol 1e-8
  zerogap compare data.svm --plot gap.png --x seconds"""
SMO_FAMILY = "smo,smo-mvp,smo-keerthi,smo-platt,smo-simple"
PLOTTED = ("gap", "dual", "margin", "distance", "violation", "support")
AGAINST = ("step", "seconds", "kernel_evaluations")


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "compare", run, "run several solvers on one problem, and count what each needs", EXAMPLES
    )
    arguments.add_file(parser)
    arguments.add_columns(parser)
    arguments.add_kernel(parser)
    parser.add_argument(
        "--solvers",
        type=arguments.names,
        default=SMO_FAMILY.split(","),
        help=f"names joined by commas (default {SMO_FAMILY})",
    )
    parser.add_argument(
        "--C", type=arguments.cost, default=10.0, help="cost of an error; inf is the hard margin (default 10)"
    )
    parser.add_argument("--loss", default="hinge", choices=arguments.LOSSES, help="default hinge")
    parser.add_argument("--tol", type=arguments.positive, default=1e-6, help="relative duality gap to reach (1e-6)")
    parser.add_argument(
        "--max-time", type=arguments.positive, default=60.0, help="limit in seconds for each solver (default 60)"
    )
    parser.add_argument("--seed", type=arguments.count_or_zero, default=0, help="seed of the solvers (default 0)")
    pictures.add_option(parser, "the convergence")
    parser.add_argument("--y", default="gap", choices=PLOTTED, help="what to draw (default gap)")
    parser.add_argument("--x", default="step", choices=AGAINST, help="against what (default step)")
    parser.add_argument("--trace-every", type=arguments.count, help="iterations between two points of the plot")
    arguments.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Run the solvers, and print the table."""
    _check(options)
    from zerogap import DualProblem, Gram, RelativeGap, compare

    report = Report(options.json, options.quiet)
    data = load(options, report)
    classes = two_classes(data, "compare")
    parts = split(data, 0.0, not options.raw, report)
    X, kernel = parts.train, arguments.kernel_options(options)
    problem = getattr(DualProblem, options.loss)(
        Gram(X, kernel.pop("kernel"), **kernel), np.where(data.y == classes[1], 1.0, -1.0), options.C
    )
    report.say(f"{parts.name}: {count(X.shape[0], 'point')}, {count(X.shape[1], 'feature')}")
    report.say(f"{options.loss}, C={options.C:g}, kernel {options.kernel!r}, to a relative gap of {options.tol:g}\n")
    with report.working(f"running {len(options.solvers)} solvers"):
        comparison = compare(
            problem,
            options.solvers,
            distance=options.y == "distance",
            stop=RelativeGap(options.tol),
            max_time=options.max_time,
            trace_every=options.trace_every or (10 if options.plot else None),
            random_state=options.seed,
        )
    report.say(comparison)
    if options.plot:
        pictures.save(comparison.plot(options.y, options.x), options.plot)
    report.write({"data": options.data, **comparison.to_dict()})
    return solving.ended(any(row["status"] == "INTERRUPTED" for row in comparison.rows))


def _check(options: argparse.Namespace) -> None:
    check_output("--json", options.json)
    from zerogap.solvers import SOLVERS

    for name in options.solvers:
        if name not in SOLVERS:
            raise UsageError(f"--solvers: unknown solver {name!r}; choose from {', '.join(SOLVERS)}")
        if options.solvers.count(name) > 1:
            raise UsageError(f"--solvers: {name} is there twice")
    pictures.check(options.plot)
    source_of(options.data)
