"""Try to break it: draw problems, paths and histories, and check what comes out in extended precision.

    python benchmarks/fuzz.py [--count 10000] [--seed 0] [--only KIND] [--case NUMBER] [--markdown FILE]

Every case is a pure function of (seed, number).  A failure is written to a folder as Python that reproduces it.
docs/reliability.md says what is promised and what is checked.
"""

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzzing.draw import KINDS
from fuzzing.pool import campaign
from fuzzing.run import Outcome, run
from tqdm import tqdm


class Summary:
    """Counts of what was drawn and what came of it."""

    def __init__(self) -> None:
        self.cases = 0
        self.counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("kind", "formulation", "solver", "kernel", "engine", "status", "refusal")
        }
        self.failed: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.bits: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        self.cases += 1
        entries = {
            "kind": outcome.kind,
            "refusal": outcome.refused,
            "status": outcome.notes.get("status"),
            **outcome.about,
        }
        for name, counter in self.counts.items():
            if entries.get(name) is not None:
                counter[str(entries[name])] += 1
        self.failed[outcome.kind] += bool(outcome.failures)
        self.seconds[outcome.kind] += outcome.seconds
        self.failures.update({cause(failure) for failure in outcome.failures})
        if "bits" in outcome.notes:
            self.bits[f"{outcome.about['solver']} {'same bits' if outcome.notes['bits'] else 'other bits'}"] += 1
        for note in ("digits", "indefinite", "near overflow"):
            self.bits[note] += bool(outcome.notes.get(note))

    def tables(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """Return titled tables of strings, the first row of each its head."""
        kinds: list[tuple[str, ...]] = [("kind", "cases", "ms a case", "failed")]
        for kind, count in self.counts["kind"].most_common():
            kinds.append((kind, str(count), f"{1e3 * self.seconds[kind] / count:.1f}", str(self.failed[kind])))
        tables: list[tuple[str, list[tuple[str, ...]]]] = [("Cases", kinds)]
        for name in ("formulation", "solver", "kernel", "engine", "status", "refusal"):
            if self.counts[name]:
                tables.append((name.capitalize(), [(name, "cases"), *_rows(self.counts[name].most_common())]))
        tables.append(("Evaluation", [("note", "cases"), *_rows(sorted(self.bits.items()))]))
        if self.failures:
            tables.append(("Failures", [("cause", "cases"), *((k, str(v)) for k, v in self.failures.most_common())]))
        return tables

    def __str__(self) -> str:
        parts = [f"{self.cases} cases, {sum(self.failed.values())} failed"]
        for title, rows in self.tables():
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            lines = ["  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip() for row in rows]
            parts.append("\n  ".join([title, *lines]))
        return "\n\n".join(parts)

    def markdown(self) -> str:
        """The same as tables for the documentation."""
        parts = [f"{self.cases:,} cases, {sum(self.failed.values()):,} failed."]
        for title, (head, *rows) in self.tables():
            body = [" | ".join(row) for row in (head, tuple("---" for _ in head), *rows)]
            parts.append(f"### {title}\n\n" + "\n".join(f"| {line} |" for line in body))
        return "\n\n".join(parts) + "\n"


def _rows(counts: Iterable[tuple[str, int]]) -> list[tuple[str, ...]]:
    return [(name, str(count)) for name, count in counts]


def cause(failure: str) -> str:
    """The class of a failure: its first word, and where an exception was raised."""
    first, _, rest = failure.partition(":")
    place = re.search(r"\[([^\[\]]*)\]$", failure)
    return f"{first} {rest.split(':')[0].strip()} {place[1]}" if place and first in ("exception", "checker") else first


def write_failure(folder: Path, seed: int, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    assert outcome.snippet is not None
    (folder / f"{outcome.kind}-{seed}-{outcome.number}.py").write_text(outcome.snippet)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(KINDS), help="draw this kind alone")
    parser.add_argument("--case", type=int, help="run this one case here, and print its code and what is wrong")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds after which a case counts as hanging")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="folder for the snippets")
    parser.add_argument("--markdown", type=Path, help="write the summary to this file")
    options = parser.parse_args(arguments)
    if options.case is not None:
        return _one(options)
    summary = _all(options)
    print(summary)
    if options.markdown is not None:
        options.markdown.write_text(summary.markdown())
    return int(any(summary.failed.values()))


def _one(options: Any) -> int:
    from fuzzing.draw import draw
    from fuzzing.run import warm_up, write_snippet

    print(write_snippet(draw(options.seed, options.case, options.only), [], options.only))
    warm_up()
    outcome = run(options.seed, options.case, options.only)
    print("refused" if outcome.refused else "", outcome.notes, *outcome.failures or ["nothing is wrong"], sep="\n")
    return int(bool(outcome.failures))


def _all(options: Any) -> Summary:
    summary, numbers = Summary(), list(range(options.first, options.first + options.count))
    outcomes = campaign(options.seed, numbers, options.only, options.workers, options.limit)
    with tqdm(total=options.count, unit=" cases", file=sys.stderr, mininterval=1.0) as bar:
        for outcome in outcomes:
            summary.add(outcome)
            if outcome.failures:
                write_failure(options.failures, options.seed, outcome)
                bar.set_postfix(failed=sum(summary.failed.values()), refresh=False)
            bar.update()
    return summary


if __name__ == "__main__":
    raise SystemExit(main())
