"""``zerogap explore``: a page on which the solution moves through every C, of a regression also through every epsilon."""

import argparse
from pathlib import Path
from typing import Any

from zerogap.cli import arguments, path, regression_path, solving
from zerogap.cli.data import check_classes, load, source_of, split
from zerogap.cli.report import Report
from zerogap.wording import count

EXAMPLES = """\
  zerogap explore                                         breast cancer, to explorer.html
  zerogap explore data.csv --target kind --output page.html
  zerogap explore iris --kernel linear --C-max 100 --open
  zerogap explore houses.csv --target price --regression --over epsilon"""
OUTPUT = "explorer.html"


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "explore", run, "write a page to look at the solution for every C, with a slider", EXAMPLES
    )
    arguments.add_file(parser)
    arguments.add_columns(parser)
    arguments.add_kernel(parser)
    path.add_range(parser)
    regression_path.add_options(parser)
    arguments.add_split(parser)
    parser.add_argument("--output", metavar="FILE", default=OUTPUT, help=f"the page to write (default {OUTPUT})")
    parser.add_argument("--title", help="title of the page (default: the name of the data)")
    parser.add_argument("--open", action="store_true", help="open it in a browser")
    parser.add_argument("--quiet", action="store_true", help="no progress on the terminal")
    parser.set_defaults(json=None, engine="single", linear_system=None)


def run(options: argparse.Namespace) -> int:
    """Follow the path, score it, and write the page."""
    settings = path.settings_of(options)
    regression_path.check(options)
    path.check_page("--output", options.output)
    source_of(options.data)
    report = Report(quiet=options.quiet, save_to=options.output)
    if options.regression:
        return _run_regression(options, report)
    data = load(options, report)
    check_classes(data, "explore")
    parts = split(data, 1 / 3 if options.test_size is None else options.test_size, not options.raw, report)
    report.say(
        f"{parts.name}: {count(parts.y_train.size, 'point')} to train, {count(parts.y_test.size)} to test, "
        f"{count(data.X.shape[1], 'feature')}"
    )
    model, _ = path.followed(options, settings, parts, report)
    status = path.status_of(model)
    if not all(found.has_segments for found in model.paths_):
        report.say(f"no solution yet at C = {options.C_min:g}: {status}")
        return solving.ended(status == "interrupted")
    C = model.breakpoints_
    report.say(f"every C from {C[0]:g} to {C[-1]:g}: {count(model.n_events_, 'event')}, {status}")
    written = path.write_page(options.output, model, parts, options.title or parts.name, report)
    if options.open:
        _open(written)
    report.end_if_cut()
    return solving.ended(status == "interrupted")


def _run_regression(options: argparse.Namespace, report: Report) -> int:
    """Follow a regression over C, or over epsilon, score it, and write the page."""
    parts = regression_path.loaded(options, report)
    model, _ = regression_path.followed(options, parts, report)
    found = model.path_
    if not found.has_segments:
        report.say(f"no solution yet at {found.words(found.value_of(found.lam[0]))}: {found.status}")
        return solving.ended(found.status == "interrupted")
    values = found.value_of(found.lam)
    events = count(found.n_events, "event")
    report.say(f"every {options.over} from {values[0]:g} to {values[-1]:g}: {events}, {found.status}")
    _, X, y = parts.scored
    with report.working(f"scoring every {options.over}"):
        curve = model.score_curve(X, y, scoring=regression_path.SCORING)
    written = regression_path.write_page(options.output, model, curve, parts, options.title or parts.name, report)
    if options.open:
        _open(written)
    report.end_if_cut()
    return solving.ended(found.status == "interrupted")


def _open(page: Path) -> None:
    import webbrowser

    webbrowser.open(page.resolve().as_uri())
