"""Experiments of the papers, rerun: the paper's numbers beside ours, and whether what should hold holds.

An experiment is a function in ``experiments/<paper>/run.py`` that adds cells to a ``Report``.  A cell is judged by a rule: an
equality for what the paper determines, a tolerance with its reason for what it does not, or nothing, for information.
"""

import csv
import importlib.util
import io
import os
import platform
import sys
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zerogap
from zerogap import validation

PAPERS = ("ong", "lopez", "ssvm", "spiral", "chapter7")

Run = Callable[["Report", bool], None]  # (report, quick)


@dataclass(frozen=True)
class Cell:
    """One number of a table or figure."""

    row: str
    column: str
    paper: Any  # the paper's value, None if it gives none
    ours: Any
    rule: str = ""  # what should hold, in words; empty: shown for information
    holds: bool | None = None
    note: str = ""  # why we differ, if we do


@dataclass
class Report:
    """The cells of one experiment, printed as they come."""

    name: str
    folder: Path | None = None  # where figures go
    cells: list[Cell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    def show(self, row: str, column: str, paper: Any, ours: Any, note: str = "") -> None:
        """Add a value that nothing determines: a time, or a count that depends on choices the paper leaves open."""
        self._add(Cell(row, column, paper, ours, note=note))

    def equal(self, row: str, column: str, paper: Any, ours: Any, note: str = "") -> None:
        """Add a value that must be the paper's."""
        self._add(Cell(row, column, paper, ours, "equal", paper == ours, note))

    def near(self, row: str, column: str, paper: float, ours: float, tolerance: float, why: str) -> None:
        """Add a value that must lie within ``tolerance`` of the paper's, for the reason given."""
        self._add(Cell(row, column, paper, ours, f"within {tolerance:g}", bool(abs(ours - paper) <= tolerance), why))

    def at_most(
        self, row: str, column: str, paper: float, ours: float, note: str = "", limit: float | None = None
    ) -> None:
        """Add a value that must not exceed the paper's, or a limit of its own."""
        limit = paper if limit is None else limit
        self._add(Cell(row, column, paper, ours, f"at most {limit:g}", bool(ours <= limit), note))

    def check(
        self, row: str, column: str, claim: str, holds: bool, ours: Any, paper: Any = None, note: str = ""
    ) -> None:
        """Add a claim in words."""
        self._add(Cell(row, column, paper, ours, claim, bool(holds), note))

    def say(self, note: str) -> None:
        """Add a remark to the whole experiment, such as data that is not there."""
        self.notes.append(note)
        print(f"  {note}", flush=True)

    def save_figure(self, figure: Any, name: str) -> None:
        """Keep a matplotlib figure, in 64 colours: a third of the size, without a visible difference."""
        if self.folder is not None:
            from PIL import Image  # matplotlib brings it along

            picture = io.BytesIO()
            figure.savefig(picture, dpi=110, bbox_inches="tight")
            Image.open(picture).convert("RGB").quantize(64).save(self.folder / f"{name}.png", optimize=True)
            self.figures.append(f"{name}.png")

    def _add(self, cell: Cell) -> None:
        self.cells.append(cell)
        mark = {True: "holds", False: "DIFFERS", None: ""}[cell.holds]
        paper = "-" if cell.paper is None else _text(cell.paper)
        print(
            f"  {cell.row:<26} {cell.column:<26} paper {paper:>12}   ours {_text(cell.ours):>12}   {mark}", flush=True
        )

    @property
    def judged(self) -> list[Cell]:
        """The cells with a rule."""
        return [cell for cell in self.cells if cell.holds is not None]

    def summary(self) -> str:
        """Return one line: how many cells agree."""
        judged = self.judged
        good = sum(bool(cell.holds) for cell in judged)
        return (
            f"{self.name}: {good} of {len(judged)} judged cells hold, {len(self.cells) - len(judged)} for information"
        )

    # Writing.

    def write(self, folder: Path) -> None:
        """Write ``<name>.csv`` with machine and versions, and ``<name>.md`` with the table."""
        folder.mkdir(parents=True, exist_ok=True)
        about = machine()
        with (folder / f"{self.name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["experiment", *Cell.__dataclass_fields__, *about])
            writer.writeheader()
            writer.writerows({"experiment": self.name, **asdict(cell), **about} for cell in self.cells)
        (folder / f"{self.name}.md").write_text(self.markdown())

    def markdown(self) -> str:
        """Return the table: ours, the paper's in brackets, and a cross where a rule does not hold."""
        rows, columns = (
            list(dict.fromkeys(c.row for c in self.cells)),
            list(dict.fromkeys(c.column for c in self.cells)),
        )
        at = {(cell.row, cell.column): cell for cell in self.cells}
        lines = [
            f"# {self.name}",
            "",
            "Ours, with the paper's value in brackets; **✗** where a rule does not hold.",
            "",
        ]
        lines += [_line(["", *columns]), _line(["---"] * (len(columns) + 1))]
        lines += [_line([row, *(_entry(at.get((row, column))) for column in columns)]) for row in rows]
        lines += ["", self.summary() + "."]
        rules = dict.fromkeys((c.column, c.rule, c.note) for c in self.cells if c.rule or c.note)
        lines += ["", *(f"- {' · '.join(part for part in rule if part)}" for rule in rules)] if rules else []
        lines += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        lines += ["", *(f"![{name}]({name})" for name in self.figures)] if self.figures else []
        return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _entry(cell: Cell | None) -> str:
    if cell is None:
        return ""
    paper = "" if cell.paper is None else f" ({_text(cell.paper)})"
    return f"{_text(cell.ours)}{paper}{' **✗**' if cell.holds is False else ''}"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def machine() -> dict[str, Any]:
    """Return what results were measured on."""
    import numba
    import scipy
    import sklearn

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "zerogap": zerogap.__version__, "python": platform.python_version(), "numpy": np.__version__,
        "scipy": scipy.__version__, "scikit-learn": sklearn.__version__, "numba": numba.__version__, "cpu": cpu,
        "cores": os.cpu_count(),
    }  # fmt: skip


# Finding and running.


def home() -> Path:
    """Return the folder of the experiments: that of a checkout, else the one installed with the package."""
    package = Path(__file__).parent
    for folder in (Path.cwd() / "experiments", package / "experiments", package.parents[1] / "experiments"):
        if (folder / "ong" / "run.py").exists():
            return folder
    raise FileNotFoundError("The experiments are not installed. Run this in a checkout of the repository.")


def experiments() -> dict[str, Run]:
    """Return every experiment by name, such as "ong-table-2"."""
    found: dict[str, Run] = {}
    for paper in PAPERS:
        file = home() / paper / "run.py"
        if file.exists():
            found |= _load(file).EXPERIMENTS
    return found


def _load(file: Path) -> Any:
    name = f"zerogap_experiment_{file.parent.name}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def config(file: str) -> dict[str, Any]:
    """Read the ``config.toml`` beside a run script."""
    return tomllib.loads((Path(file).parent / "config.toml").read_text())


def reproduce(names: Iterable[str], *, quick: bool = False, output: str | Path | None = None) -> list[Report]:
    """Run experiments by name, "all" of them or those of a paper; write tables, CSV and figures below ``output``."""
    known = experiments()
    chosen: list[str] = []
    for name in names:
        of_paper = [key for key in known if name == "all" or key.startswith(f"{name}-")]
        if name not in known and not of_paper:
            validation.check_choice("experiment", name, (*known, "all", *PAPERS))
        chosen += of_paper or [name]
    reports = []
    for name in dict.fromkeys(chosen):
        folder = None if output is None else Path(output) / name.split("-")[0]
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        print(f"{name}{' (quick)' if quick else ''}", flush=True)
        report = Report(name, folder)
        try:
            known[name](report, quick)
        except FileNotFoundError as error:
            report.say(f"not run, data is missing: {str(error).splitlines()[0]}")
        print(f"{report.summary()}\n", flush=True)
        if folder is not None:
            report.write(folder)
        reports.append(report)
    if output is not None:
        (Path(output) / "summary.md").write_text(summary(Path(output)))
    return reports


def summary(folder: Path) -> str:
    """Return how many cells of all results below a folder agree, and which do not."""
    lines = ["# Summary", "", _line(["experiment", "hold", "judged", "for information"]), _line(["---"] * 4)]
    apart, totals = [], np.zeros(3, dtype=int)
    for file in sorted(file for paper in PAPERS for file in (folder / paper).glob(f"{paper}-*.csv")):
        with file.open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        counts = np.array([sum(row["holds"] == value for row in rows) for value in ("True", "False", "")])
        totals += counts
        name = file.stem
        link = f"[{name}]({file.parent.name}/{name}.md)"
        lines.append(_line([link, str(counts[0]), str(counts[0] + counts[1]), str(counts[2])]))
        apart += [(name, row) for row in rows if row["holds"] == "False"]
    lines.append(_line(["all", str(totals[0]), str(totals[0] + totals[1]), str(totals[2])]))
    lines += ["", "Cells that do not hold:" if apart else "Every judged cell holds.", ""]
    for name, row in apart:
        what = (
            f"{row['row']}, {row['column']}: paper {row['paper'] or '-'}, ours {row['ours']}, should be {row['rule']}"
        )
        lines.append(f"- {name}: {what}{'; ' + row['note'] if row['note'] else ''}")
    return "\n".join(lines).rstrip() + "\n"
