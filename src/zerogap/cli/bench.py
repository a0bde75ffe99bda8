"""``zerogap bench``: seconds to a certified gap on the user's own data, beside the programs that are installed.

A peer has no option for a gap: it runs at smaller and smaller tol until what it found is certified to the gap.
"""

import argparse
import math
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from zerogap.cli import arguments, solving
from zerogap.cli.data import load, source_of, split
from zerogap.cli.report import Report, check_output
from zerogap.wording import count

EXAMPLES = """\
  zerogap bench                                breast cancer, which ships with scikit-learn
  zerogap bench data.csv --target kind --C 1,1000 --gap 1e-3,1e-6
  zerogap bench houses.csv --regression --kernel linear --json -"""
LADDER = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
NO_BETTER = 3  # values of tol, each no better than what was before, after which a peer is given up
FIRST_ITERATIONS = {"scikit-learn": 20_000, "intelex": 20}  # they are ended by iterations only; more are tried in time
WARM_UP = 300


class Run(NamedTuple):
    """A fit: its certified gap, infinite if it was ended, and the seconds it took."""

    tol: float
    gap: float
    seconds: float


class Outcome(NamedTuple):
    """What became of a program and a gap: "reached", "never" or "late"."""

    word: str
    run: Run

    @property
    def cell(self) -> str:
        """Words for the table."""
        if self.word == "reached":
            return f"{self.run.seconds:.4f}"
        return f"> {self.run.seconds:.0f}" if self.word == "late" else f"never ({self.run.gap:.1e})"


def add(commands: Any) -> None:
    """Add the command."""
    parser = arguments.add_command(
        commands, "bench", run, "measure the time to a certified gap, beside scikit-learn", EXAMPLES
    )
    arguments.add_file(parser)
    arguments.add_columns(parser)
    arguments.add_kernel(parser)
    parser.add_argument(
        "--C",
        type=arguments.list_of(arguments.positive),
        default=[1.0, 100.0],
        help="values joined by commas (default 1,100)",
    )
    parser.add_argument("--gap", type=_gaps, default=[1e-3, 1e-6], help="certified relative gaps (default 1e-3,1e-6)")
    parser.add_argument("--regression", action="store_true", help="the target is a number to be estimated")
    parser.add_argument(
        "--epsilon", type=arguments.not_negative, default=arguments.EPSILON, help="of --regression (0.1)"
    )
    parser.add_argument("--repeats", type=arguments.count, default=3, help="runs of which the best counts (default 3)")
    parser.add_argument("--max-time", type=arguments.positive, default=60.0, help="seconds for a fit (default 60)")
    parser.set_defaults(seed=0)
    arguments.add_output(parser)


def _gaps(text: str) -> list[float]:
    return sorted(arguments.list_of(arguments.positive)(text), reverse=True)


def run(options: argparse.Namespace) -> int:
    """Measure every C, and print a line for each gap."""
    check_output("--json", options.json)
    source_of(options.data)
    report = Report(options.json, options.quiet)
    parts = split(load(options, report, options.regression), 0.0, not options.raw, report)
    X, y = parts.train, parts.y_train
    programs = _programs(options.regression)
    bench = _Bench(options, X, y)
    report.say(f"{parts.name}: {count(X.shape[0], 'point')}, {count(X.shape[1], 'feature')}, kernel {options.kernel!r}")
    report.say(f"seconds to a certified relative gap, best of {options.repeats}\n")
    report.say(f"{'C':>8} {'gap':>8}" + "".join(f"{name:>16}" for name in programs) + f"{'faster':>9}")
    solving.warm_up(report, lambda: bench.warm_up(programs))
    rows = []
    for C in options.C:
        for row in bench.measured(programs, C, report):
            report.say(_line(row))
            rows.append(_record(row))
    report.write(
        {"data": options.data, "points": X.shape[0], "features": X.shape[1], "kernel": options.kernel, "rows": rows}
    )
    return 0


def _programs(is_regression: bool) -> dict[str, Any]:
    """Return the estimators to measure: ours, then those that are installed."""
    import sklearn.svm

    import zerogap

    name = "SVR" if is_regression else "SVC"
    found = {"zerogap": getattr(zerogap, name), "scikit-learn": getattr(sklearn.svm, name)}
    try:
        import sklearnex.svm
    except ImportError:
        return found
    return {**found, "intelex": getattr(sklearnex.svm, name)}


class _Bench:
    """Fits of one data set."""

    def __init__(self, options: argparse.Namespace, X: Any, y: np.ndarray):
        from zerogap import Gram

        self.options, self.X, self.y = options, X, y
        self.settings = arguments.kernel_options(options) | ({"epsilon": options.epsilon} if options.regression else {})
        if options.kernel != "linear":  # one number for all, however each counts points
            self.settings["gamma"] = Gram(X, options.kernel, gamma=options.gamma).kernel.gamma  # type: ignore[attr-defined]
        self.settings["cache_size"] = 1000

    def warm_up(self, programs: dict[str, Any]) -> None:
        """Fit some points by every program: code is loaded, threads are there."""
        some = np.random.default_rng(0).permutation(self.y.size)[:WARM_UP]
        if not self.options.regression:  # every class
            some = np.union1d(some, np.unique(self.y, return_index=True)[1])
        for estimator in programs.values():
            _fitted(estimator(C=1.0, **self.settings), self.X[some], self.y[some])

    def measured(
        self, programs: dict[str, Any], C: float, report: Report
    ) -> list[tuple[float, float, dict[str, Outcome]]]:
        """Return C, gap and the outcome of every program, for each gap."""
        ladders: dict[str, tuple[list[Run], str]] = {}
        for name, estimator in programs.items():
            with report.working(f"C={C:g}: {name}"):
                ladders[name] = self._ours(estimator, C) if name == "zerogap" else self._climbed(name, estimator, C)
        rows = []
        for gap in self.options.gap:
            outcomes = {}
            for name, (runs, otherwise) in ladders.items():
                found = next((run for run in runs if run.gap <= gap), None)
                if found is None:
                    finite = [run for run in runs if math.isfinite(run.gap)]
                    least = min(finite, key=lambda run: run.gap) if finite and otherwise == "never" else runs[-1]
                    outcomes[name] = Outcome(otherwise, least)
                else:
                    with report.working(f"C={C:g}, gap {gap:.0e}: {name} again"):
                        outcomes[name] = Outcome("reached", self._best(programs[name], name, C, found))
            rows.append((C, gap, outcomes))
        return rows

    def _ours(self, estimator: Any, C: float) -> tuple[list[Run], str]:
        runs, word = [], "never"
        for gap in self.options.gap:
            model, seconds = self._timed(estimator(C=C, tol=gap, max_time=self.options.max_time, **self.settings))
            runs.append(Run(gap, float(model.duality_gap_), seconds))
            if solving.ended_by(model, "MAX_TIME"):
                return runs, "late"
        return runs, word

    def _climbed(self, name: str, estimator: Any, C: float) -> tuple[list[Run], str]:
        """Fit at smaller and smaller tol until the smallest gap is reached, nothing improves, or it takes too long."""
        runs: list[Run] = []
        limit = FIRST_ITERATIONS[name]
        for tol in LADDER:
            while True:  # a limit on iterations is the only one it has
                model, seconds = self._timed(estimator(C=C, tol=tol, max_iter=limit, **self.settings))
                if np.max(model.n_iter_) < limit:
                    break
                if seconds > self.options.max_time or limit >= 2**31 - 1:
                    return [*runs, Run(tol, math.inf, seconds)], "late"
                more = 1.5 * self.options.max_time / (seconds + 1e-9)
                limit = min(int(limit * min(max(more, 2.0), 4.0)), 2**31 - 1)
            runs.append(Run(tol, solving.certified_gap(model, self.X, self.y), seconds))
            found = [run.gap for run in runs]
            if found[-1] <= min(self.options.gap) or min(found[-NO_BETTER:]) > 0.9 * min(
                found[:-NO_BETTER], default=math.inf
            ):
                break
        return runs, "never"

    def _best(self, estimator: Any, name: str, C: float, run: Run) -> Run:
        """Return the run with the best of several times."""
        limit = {"max_time": self.options.max_time} if name == "zerogap" else {}
        times = [
            self._timed(estimator(C=C, tol=run.tol, **limit, **self.settings))[1]
            for _ in range(self.options.repeats - 1)
        ]
        return run._replace(seconds=min([run.seconds, *times]))

    def _timed(self, model: Any) -> tuple[Any, float]:
        began = time.perf_counter()
        _fitted(model, self.X, self.y)
        seconds = time.perf_counter() - began
        if hasattr(model, "status_") and solving.ended_by(model, "INTERRUPTED"):
            raise KeyboardInterrupt
        return model, seconds


def _fitted(model: Any, X: Any, y: np.ndarray) -> Any:
    """Fit; what came of it is in the table, so that warnings need not be shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def _faster(outcomes: dict[str, Outcome]) -> float | None:
    """Return the time of the best peer over ours, where both have reached the gap."""
    ours = outcomes["zerogap"]
    peers = [
        outcome.run.seconds for name, outcome in outcomes.items() if name != "zerogap" and outcome.word == "reached"
    ]
    return min(peers) / ours.run.seconds if peers and ours.word == "reached" else None


def _line(row: tuple[float, float, dict[str, Outcome]]) -> str:
    C, gap, outcomes = row
    ratio = _faster(outcomes)
    cells = "".join(f"{outcome.cell:>16}" for outcome in outcomes.values())
    return f"{C:>8g} {gap:>8.0e}{cells}" + (f"{ratio:>8.1f}x" if ratio is not None else f"{'-':>9}")


def _record(row: tuple[float, float, dict[str, Outcome]]) -> dict[str, Any]:
    C, gap, outcomes = row
    return {
        "C": C,
        "gap": gap,
        "programs": {name: {"outcome": outcome.word, **outcome.run._asdict()} for name, outcome in outcomes.items()},
        "faster": _faster(outcomes),
    }
