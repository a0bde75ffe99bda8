"""Experiments of the papers, rerun: the paper's numbers beside ours, and whether what should hold holds.

An experiment is a function in ``experiments/<paper>/run.py`` that adds cells to a ``Report``.  Two kinds of them are judged and
counted apart: *paper cells*, a printed number or claim against ours, and *self-checks*, which only a defect of ours can fail.
The rule is an equality for what the paper determines, a tolerance with its reason for what it does not; a cell without a rule
is for information.  Tolerances do not depend on what came out.
"""

import csv
import importlib.util
import io
import os
import platform
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zerogap
from zerogap import validation

PAPERS = ("ong", "lopez", "ssvm", "spiral", "chapter7")

PAPER, SELF = "paper", "self"  # kinds of judged cells
FULL, QUICK = "full", "quick"  # forms of an experiment

# How data sets that are not there are told, by ``datasets.load`` and by experiments.
_MISSING = re.compile(r"No data set .*there is no file (?P<set>\S+) in .*|(?P<pool>\w+\.npz) with the .*", re.DOTALL)

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
    note: str = ""  # the reason of a tolerance, or why we differ
    kind: str = ""  # "paper" or "self"


@dataclass
class Report:
    """The cells of one experiment, printed as they come."""

    name: str
    folder: Path | None = None  # where figures go
    is_quick: bool = False  # the smaller form
    cells: list[Cell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # files with data that are not there

    def show(self, row: str, column: str, paper: Any, ours: Any, note: str = "") -> None:
        """Add a value that nothing determines: a time, or a count that depends on choices the paper leaves open."""
        self._add(Cell(row, column, paper, ours, note=note))

    # Paper cells.

    def equal(self, row: str, column: str, paper: Any, ours: Any, note: str = "") -> None:
        """Add a value that must be the paper's."""
        self._add(Cell(row, column, paper, ours, "equal", paper == ours, note, PAPER))

    def near(self, row: str, column: str, paper: float, ours: float, tolerance: float, why: str) -> None:
        """Add a value that must lie within ``tolerance`` of the paper's, for the reason given."""
        holds = bool(abs(ours - paper) <= tolerance)
        self._add(Cell(row, column, paper, ours, f"within {tolerance:g}", holds, why, PAPER))

    def within_factor(self, row: str, column: str, paper: float, ours: float, factor: float, why: str) -> None:
        """Add a value of which the size must be the paper's."""
        holds = bool(paper / factor <= ours <= paper * factor)
        self._add(Cell(row, column, paper, ours, f"within a factor of {factor:g}", holds, why, PAPER))

    def at_most(self, row: str, column: str, paper: float, ours: float, note: str = "") -> None:
        """Add a value that must not exceed the paper's."""
        self._add(Cell(row, column, paper, ours, f"at most {paper:g}", bool(ours <= paper), note, PAPER))

    def between(self, row: str, column: str, low: float, high: float, ours: float, note: str = "") -> None:
        """Add a value that the paper gives as a range."""
        printed = f"{low:g} to {high:g}"
        self._add(Cell(row, column, printed, ours, f"within {printed}", bool(low <= ours <= high), note, PAPER))

    def claim(
        self, row: str, column: str, claim: str, holds: bool, ours: Any, paper: Any = None, note: str = ""
    ) -> None:
        """Add what the paper says in words, and whether it holds here."""
        self._add(Cell(row, column, paper, ours, claim, bool(holds), note, PAPER))

    # Self-checks.

    def check(self, row: str, column: str, rule: str, holds: bool, ours: Any, note: str = "") -> None:
        """Add what must hold here whatever the paper says."""
        self._add(Cell(row, column, None, ours, rule, bool(holds), note, SELF))

    def say(self, note: str) -> None:
        """Add a remark to the whole experiment, such as data that is not there; of that only the file is told."""
        if found := _MISSING.search(note):
            self.missing.append(found["set"] or found["pool"])
            note = f"{note[: found.start()]}there is no {self.missing[-1]}"
        self.notes.append(note)
        print(f"  {note}", flush=True)

    def save_figure(self, figure: Any, name: str) -> None:
        """Keep a matplotlib figure."""
        if self.folder is not None:
            save_figure(figure, self.folder / f"{name}.png")
            self.figures.append(f"{name}.png")

    def _add(self, cell: Cell) -> None:
        self.cells.append(cell)
        mark = {True: "holds", False: "DIFFERS", None: ""}[cell.holds]
        paper = "-" if cell.paper is None else _text(cell.paper)
        print(
            f"  {cell.row:<26} {cell.column:<26} paper {paper:>12}   ours {_text(cell.ours):>12}   {mark}", flush=True
        )

    def judged(self, kind: str) -> list[Cell]:
        """Return the cells of a kind that is judged."""
        return [cell for cell in self.cells if cell.kind == kind]

    def summary(self) -> str:
        """Return one line: how many cells agree."""
        return _counts(self.title, self.cells)

    @property
    def title(self) -> str:
        """The name, and that it is the quick form if it is."""
        return f"{self.name} (quick)" if self.is_quick else self.name

    # Writing.

    def write(self, folder: Path) -> None:
        """Write ``<name>.csv`` with machine and versions, and ``<name>.md`` with the table."""
        folder.mkdir(parents=True, exist_ok=True)
        about = {"form": QUICK if self.is_quick else FULL, **machine()}
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
            f"# {self.title}",
            "",
            "Ours, with the paper's value in brackets; **✗** where a rule does not hold.",
            "",
        ]
        lines += ["**The quick form**: fewer sets, parts or points than the paper has.", ""] if self.is_quick else []
        lines += [_line(["", *columns]), _line(["---"] * (len(columns) + 1))]
        lines += [_line([row, *(_entry(at.get((row, column))) for column in columns)]) for row in rows]
        lines += ["", self.summary() + "."]
        rules = dict.fromkeys((c.column, c.rule, c.note) for c in self.cells if c.rule or c.note)
        lines += ["", *(f"- {' · '.join(part for part in rule if part)}" for rule in rules)] if rules else []
        lines += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        lines += ["", *(f"![{name}]({name})" for name in self.figures)] if self.figures else []
        return "\n".join(lines) + "\n"


def _counts(title: str, cells: list[Cell]) -> str:
    parts = []
    for kind, words in ((PAPER, "paper cells"), (SELF, "self-checks")):
        judged = [bool(cell.holds) for cell in cells if cell.kind == kind]
        parts.append(f"{sum(judged)} of {len(judged)} {words} hold")
    return f"{title}: {', '.join(parts)}, {sum(not cell.kind for cell in cells)} for information"


def save_figure(figure: Any, file: Path, colours: int = 64) -> None:
    """Write a matplotlib figure in few colours: a third of the size, without a visible difference."""
    from PIL import Image  # matplotlib brings it along

    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, bbox_inches="tight")
    Image.open(picture).convert("RGB").quantize(colours).save(file, optimize=True)


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
    """Run experiments by name, "all" of them or those of a paper; write tables, CSV and figures below ``output``.

    The quick form does not replace results of the full one: where there are any, nothing is run.
    """
    known = experiments()
    chosen: list[str] = []
    for name in names:
        of_paper = [key for key in known if name == "all" or key.startswith(f"{name}-")]
        if name not in known and not of_paper:
            validation.check_choice("experiment", name, (*known, "all", *PAPERS))
        chosen += of_paper or [name]
    if quick and output is not None:
        _check_no_full_results(Path(output), chosen)
    reports = []
    for name in dict.fromkeys(chosen):
        folder = None if output is None else Path(output) / name.split("-")[0]
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        report = Report(name, folder, is_quick=quick)
        print(report.title, flush=True)
        try:
            known[name](report, quick)
        except FileNotFoundError as error:
            report.say(f"not run, data is missing: {str(error).splitlines()[0]}")
        print(f"{report.summary() if report.cells else f'{report.title}: not run'}\n", flush=True)
        if folder is not None and report.cells:  # nothing does not replace an earlier result
            report.write(folder)
        reports.append(report)
    if len(reports) > 1:
        print(_counts(f"all {len(reports)}", [cell for report in reports for cell in report.cells]), flush=True)
    if output is not None:
        with suppress(ImportError):  # matplotlib is not installed
            draw_summary(Path(output))
        (Path(output) / "summary.md").write_text(summary(Path(output)))
    return reports


def _check_no_full_results(folder: Path, names: Iterable[str]) -> None:
    kept = [name for name, rows in _results(folder).items() if name in names and not _is_quick(rows)]
    if kept:
        raise ValueError(
            f"{folder} holds results of the full run ({', '.join(kept)}), which the quick form would replace. Write them to "
            "another folder, or leave quick out."
        )


def summary(folder: Path) -> str:
    """Return how many cells of all results below a folder agree, and which do not, with a picture of all of them."""
    kinds, header = (PAPER, SELF), ["experiment", "paper cells", "hold", "self-checks", "hold", "for information"]
    lines = [_line(header), _line(["---"] * len(header))]
    results, totals = _results(folder), np.zeros(5, dtype=int)
    for name, rows in results.items():
        judged = [[row["holds"] for row in rows if row["kind"] == kind] for kind in kinds]
        counts = [n for holds in judged for n in (len(holds), holds.count("True"))] + [
            sum(not row["kind"] for row in rows)
        ]
        totals += counts
        link = f"[{name}]({name.split('-')[0]}/{name}.md){' (quick)' if _is_quick(rows) else ''}"
        lines.append(_line([link, *map(str, counts)]))
    lines.append(_line(["all", *map(str, totals)]))
    lines += ["", f"**{totals[1]} of {totals[0]} paper cells hold**, a printed number or claim against ours; "]
    lines[-1] += f"{totals[3]} of {totals[2]} self-checks, which only a defect of ours can fail."
    if any(_is_quick(rows) for rows in results.values()):
        lines[-1] += " **Quick forms are among them**: fewer sets, parts or points than the papers have."
    if (folder / PICTURE).exists():
        pairs = [pair for rows in results.values() for pair in _numbers(rows)]
        lines += ["", f"![paper cells with two numbers, ours against the paper's]({PICTURE})", ""]
        lines.append(
            f"The picture has the {len(pairs)} paper cells in which both values are numbers, zeros on the margins. "
        )
        lines[-1] += (
            "What is farther off than its range is at its edge. Claims in words and printed ranges have no place there."
        )
    apart = {
        kind: [_what(name, row) for name, rows in results.items() for row in rows if _differs(row, kind)]
        for kind in kinds
    }
    for kind, title in ((PAPER, "Paper cells that do not hold"), (SELF, "Self-checks that do not hold")):
        if apart[kind]:
            lines += ["", f"{title}:", "", *apart[kind]]
    return "\n".join(["# Summary", "", *lines]).rstrip() + "\n"


PICTURE = "summary.png"
HUES = ("Blues", "Oranges", "Greens", "Purples", "Greys")  # one for each paper, its tables from dark to light


def _differs(row: dict[str, str], kind: str) -> bool:
    return row["kind"] == kind and row["holds"] == "False"


def _what(name: str, row: dict[str, str]) -> str:
    what = f"paper {_short(row['paper']) or '-'}, ours {_short(row['ours'])}, should be {row['rule']}"
    return f"- {name}: {row['row']}, {row['column']}: {what}; {row['note'] or 'unexplained'}"


def _short(text: str) -> str:
    """Return a number as the tables have it, anything else as it is."""
    return text if text.lstrip("-").isdigit() or np.isnan(_number(text)) else _text(_number(text))


def _is_quick(rows: list[dict[str, str]]) -> bool:
    return any(row.get("form") == QUICK for row in rows)


def _results(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows of all results below a folder, by experiment."""
    found = {}
    for file in sorted(file for paper in PAPERS for file in (folder / paper).glob(f"{paper}-*.csv")):
        with file.open(newline="") as opened:
            found[file.stem] = list(csv.DictReader(opened))
    return found


def draw_summary(folder: Path) -> None:
    """Draw every paper cell with two numbers: ours against the paper's, log-log, coloured by table; zeros on the margins."""
    import matplotlib.pyplot as plt

    points = {name: _numbers(rows) for name, rows in _results(folder).items()}
    points = {name: cells for name, cells in points.items() if cells}
    if not points:
        return
    figure, ax = plt.subplots(figsize=(8.5, 7.0))
    shades = {paper: plt.get_cmap(hue) for paper, hue in zip(PAPERS, HUES, strict=True)}
    printed = [cell[0] for cells in points.values() for cell in cells if cell[0] > 0] or [1.0]
    low, high = min(printed) / 3.0, max(printed) * 3.0  # what is farther off is drawn at the edge
    margin = low / 10.0  # zero has no place on a logarithmic axis
    ax.plot([low, high], [low, high], color="0.6", linewidth=0.8, zorder=0)
    for name, cells in points.items():
        paper = name.split("-")[0]
        tables = [table for table in points if table.startswith(f"{paper}-")]
        colour = shades[paper](0.9 - 0.55 * tables.index(name) / max(1, len(tables) - 1))
        x, y = (_placed(np.array([cell[k] for cell in cells]), low, high, margin) for k in (0, 1))
        differs = np.array([not cell[2] for cell in cells])
        ax.scatter(x, y, s=22, color=colour, linewidth=0, label=name)
        ax.scatter(x[differs], y[differs], s=44, facecolor="none", edgecolor="black", linewidth=0.7)
    for line in (ax.axvline, ax.axhline):
        line(np.sqrt(margin * low), color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    ax.annotate("0", (margin, 0), (0, -4), ("data", "axes fraction"), "offset points", ha="center", va="top")
    ax.annotate("0", (0, margin), (-4, 0), ("axes fraction", "data"), "offset points", ha="right", va="center")
    ends = margin / 3.0, high
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([tick for tick in axis.get_majorticklocs() if low <= tick <= high])
        axis.set_ticks([], minor=True)
    title = "Paper cells with two numbers; ringed where they differ.\nZeros on the margins, what is off the range at its edge."
    ax.set(xlabel="the paper's", ylabel="ours", title=title)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=7, frameon=False)
    save_figure(figure, folder / PICTURE, colours=256)
    plt.close(figure)


def _placed(values: np.ndarray, low: float, high: float, margin: float) -> np.ndarray:
    """Return where values are drawn: within the range, zeros on the margin."""
    return np.where(values > 0, np.clip(values, low, high), margin)


def _numbers(rows: list[dict[str, str]]) -> list[tuple[float, float, bool]]:
    """Return (the paper's, ours, whether it holds) of the paper cells in which both are numbers, none of them negative."""
    cells = [
        (_number(row["paper"]), _number(row["ours"]), row["holds"] == "True") for row in rows if row["kind"] == PAPER
    ]
    return [cell for cell in cells if cell[0] >= 0 and cell[1] >= 0]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
