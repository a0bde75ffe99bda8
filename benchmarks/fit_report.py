"""What fit.py measured as tables and a picture; nothing is measured here.

A row is a problem, with a record for each gap.  An outcome is "reached", "late" (its time is a lower bound) or "never".
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

EXACT = 1e-9  # the gap at which we stand beside scikit-learn at its default tol
PEERS = ("scikit-learn", "intelex")
# Columns with their widths.
PROBLEMS = {
    "set": 19, "n": 6, "kernel": 6, "C": 6, "gap": 6, "scikit-learn": 14, "intelex": 14, "ours": 9, "ratio": 8, "SV": 6,
    "K/(SV n)": 8, "K/(n²/2)": 8, "status": 11,
}  # fmt: skip
SUMMARY = {
    "half": 8, "gap": 6, "problems": 8, "geometric mean": 14, "worst": 6, "of": 32, "below 3": 7, "below 1": 7, "at least": 8,
    "peers never": 11, "ours not": 8,
}  # fmt: skip
LEFT = ("set", "kernel", "status", "half", "of")


def ratio(record: dict[str, Any]) -> tuple[float, str]:
    """Return the better peer's time over ours, "≥" or "≤" where a limit makes it a bound.

    Infinite if no peer gets there, zero if only we do not, nan if nobody does.
    """
    theirs, outcome = min(
        (math.inf if peer["outcome"] == "never" else peer["seconds"], peer["outcome"])
        for peer in record["peers"].values()
    )
    if record["outcome"] == "reached":
        return theirs / record["seconds"], "≥" if outcome == "late" else ""
    if outcome != "reached":
        return math.nan, ""
    return (theirs / record["seconds"], "≤") if record["outcome"] == "late" else (0.0, "")


def cells(row: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """Return a line of the table of problems."""
    value, bound = ratio(record)
    return [
        row["set"] + "*" * (row["half"] == "held-out"), f"{row['n']}", row["kernel"], f"{row['C']:g}", f"{record['gap']:.0e}",
        *(time_cell(record["peers"].get(name)) for name in PEERS), time_cell(record), f"{bound}{value:.2f}",
        f"{record['support']}", f"{record['over_support']:.2f}", f"{record['over_half']:.2f}", record["status"],
    ]  # fmt: skip


def time_cell(record: dict[str, Any] | None) -> str:
    if record is None:
        return "-"
    if record["outcome"] != "reached":
        return "never" if record["outcome"] == "never" else f"> {record['seconds']:.1f}"
    return f"{record['seconds']:.3f}" + (f" @{record['tol']:.0e}" if "tol" in record else "")


def summarise(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return a line for every gap and half; infinite ratios are only counted, zeros are not part of the mean."""
    lines = []
    for gap in gaps_of(rows):
        for half in ("tuned", "held-out", "both"):
            some = [
                (*ratio(record), row, record)
                for row in rows if half in (row["half"], "both") for record in row["gaps"] if record["gap"] == gap
            ]  # fmt: skip
            finite = [found[:3] for found in some if math.isfinite(found[0])]
            if not finite:
                continue
            values = [value for value, *_ in finite]
            logs = [math.log(value) for value in values if value > 0]
            mean = math.exp(sum(logs) / len(logs)) if logs else 0.0
            least, bound, worst = min(finite, key=lambda found: found[0])
            counts = (
                *(sum(value < mark and bound != "≥" for value, bound, _ in finite) for mark in (3, 1)),
                sum(r[1] == "≥" for r in some), sum(r[0] == math.inf for r in some),
                sum(r[3]["outcome"] != "reached" for r in some),
            )  # fmt: skip
            whose = f"{worst['set']} {worst['kernel']} C={worst['C']:g}"
            lines.append(
                [half, f"{gap:.0e}", f"{len(some)}", f"{mean:.2f}", f"{bound}{least:.2f}", whose, *map(str, counts)]
            )
    return lines


def gaps_of(rows: list[dict[str, Any]]) -> list[float]:
    return sorted({record["gap"] for row in rows for record in row["gaps"]}, reverse=True)


def show(line: Iterable[str], widths: dict[str, int]) -> None:
    """Print a line in columns."""
    columns = zip(line, widths.items(), strict=True)
    print(" ".join(f"{cell:{'<' if title in LEFT else '>'}{width}}" for cell, (title, width) in columns), flush=True)


def markdown(lines: list[list[str]], titles: dict[str, int]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [list(titles), ["---"] * len(titles), *lines]) + "\n"


def report(rows: list[dict[str, Any]], file: Path | None, write_markdown: bool) -> None:
    """Print the summary; draw and write beside the JSON file."""
    print("\nThe better peer's time over ours; where no peer gets there it is infinite, and not counted:\n")
    lines = summarise(rows)
    for line in [list(SUMMARY), *lines]:
        show(line, SUMMARY)
    exact = [record["outcome"] == "reached" for row in rows for record in row["gaps"] if record["gap"] == EXACT]
    print(
        f"\n{sum(exact)} of {len(exact)} certified to {EXACT:.0e}; there the peer is scikit-learn at its default tol."
    )
    if file is None or not rows:
        return
    draw(rows, file.with_suffix(".png"))
    if write_markdown:
        problems = [cells(row, record) for row in rows for record in row["gaps"]]
        file.with_suffix(".md").write_text(f"{markdown(lines, SUMMARY)}\n{markdown(problems, PROBLEMS)}")


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw every ratio: a panel a gap, a line a set (the largest at the bottom), a colour a C; linear kernels hollow."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["set"] for row in sorted(rows, key=lambda row: -row["n"])))
    gaps, all_C = gaps_of(rows), sorted({row["C"] for row in rows})
    size = (2 + 3 * len(gaps), 1.8 + 0.27 * len(names))
    figure, axes = plt.subplots(
        1, len(gaps), figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    values = [value for row in rows for value, _ in map(ratio, row["gaps"]) if 0 < value < math.inf]
    edges = {0.0: min([0.5, *values]) / 3, math.inf: 3 * max([3.0, *values])}
    for ax, gap in zip(axes[0], gaps, strict=True):
        for row in rows:
            k, height = all_C.index(row["C"]), names.index(row["set"])
            if row["half"] == "held-out":
                ax.axhspan(height - 0.5, height + 0.5, color="0.93", zorder=0)
            for value, bound in (ratio(record) for record in row["gaps"] if record["gap"] == gap):
                x, marker = (edges[value], "x") if value in edges else (value, MARKERS[bound])
                face = "white" if row["kernel"] == "linear" else f"C{k}"
                y = height - 0.22 * (k - (len(all_C) - 1) / 2)
                ax.plot(x, y, marker, color=f"C{k}", markerfacecolor=face, markersize=5)  # nan is not drawn
        ax.axvline(1, color="0.3", linewidth=1)
        ax.axvline(3, color="0.3", linewidth=1, linestyle=":")
        ax.set_xscale("log")
        ax.set_title(f"gap {gap:.0e}" + ", scikit-learn at tol 1e-3" * (gap == EXACT), fontsize=10)
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].set_ylim(-0.6, len(names) - 0.4)
    figure.legend(handles=legend(all_C), loc="outside lower center", ncols=len(all_C) + 5, fontsize=9, frameon=False)
    figure.suptitle("Time of the better peer over ours, to a certified relative gap")
    figure.savefig(file, dpi=110)
    plt.close(figure)


MARKERS = {"": "o", "≥": ">", "≤": "<"}


def legend(all_C: list[float]) -> list[Any]:
    from matplotlib.lines import Line2D

    entries = [(f"C{k}", "o", f"C{k}", f"C={C:g}") for k, C in enumerate(all_C)]
    entries += [
        ("0.3", "o", "white", "linear kernel"), ("0.3", ">", "0.3", "at least"), ("0.3", "<", "0.3", "at most"),
        ("0.3", "x", "0.3", "only we (right) or a peer (left) get there"), ("0.8", "s", "0.93", "held out"),
    ]  # fmt: skip
    return [
        Line2D([], [], color=colour, marker=marker, markerfacecolor=face, linestyle="", label=label)
        for colour, marker, face, label in entries
    ]
