"""Training time: seconds to a certified relative gap, beside scikit-learn's and scikit-learn-intelex's SVC and SVR.

    pip install ".[benchmark]"
    python benchmarks/fit.py                                    everything, hours; writes results/fit.json and fit.png
    python benchmarks/fit.py --resume                           go on where a run was ended, or show what it wrote
    python benchmarks/fit.py german a1a --C 1 100 --gap 1e-4    some sets; written only where --output says
    python benchmarks/fit.py --quick                            sets of up to 2,000 points, fits of up to 5 seconds

A problem is a set with a kernel (rbf with gamma="scale"; up to 2,000 points linear, too) and C.  A peer runs at the largest
tol of 1e-1, 3e-2, ... 1e-12 whose coefficients we certify to the gap, in float64 and of several classes for every pair.  It is
"never" if none is small enough or the gap no longer improves over three of them, and "> s" if its fits take too long.  The line
of gap 1e-9 has our time beside scikit-learn's at its default tol, whatever gap that gives.  All get the same gamma, cache_size
and time limit, run warm in one process and in turn, and the best time counts.  The ratio is the better peer's time over ours, K
the kernel values that we compute, SV the support vectors.

Sets are in two halves: what is tuned is tuned on one, and the other is held out.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.svm
from common import REGRESSION, about, certify_peer, fitted, named_set, pairs, timed
from fit_report import EXACT, PROBLEMS, cells, report, show

import zerogap
from zerogap import Gram, datasets

# Name and points.  Sets of one source are in one half, but for generated ones.
TUNED = {
    "generated-200x20": 200, "breast_cancer": 569, "german": 1000, "generated-1000x50": 1000, "a1a": 1605, "madelon": 2000,
    "abalone": 4177, "a4a": 4781, "moons-5000": 5000, "generated-5000x20": 5000, "usps": 7291, "usps-10": 7291, "a7a": 16100,
    "generated-20000x50": 20000, "a9a": 32561,
}  # fmt: skip
HELD_OUT = {
    "generated-200x50": 200, "housing": 506, "splice": 1000, "generated-1000x20": 1000, "digits": 1797, "digits-10": 1797,
    "svmguide1": 3089, "generated-5000x50": 5000, "mushrooms": 8124, "cpusmall": 8192, "mnist.t": 10000, "mnist.t-10": 10000,
    "moons-20000": 20000, "generated-20000x20": 20000, "w8a": 49749,
}  # fmt: skip
SIZES = dict(sorted({**TUNED, **HELD_OUT}.items(), key=lambda item: item[1]))
SHIPPED = ("breast_cancer", "digits", "generated", "moons")
SMALL = 2000
# Down to where float64 ends: scikit-learn-intelex improves all the way, and a large C needs it.
LADDER = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12)
DEFAULT_TOL = 1e-3  # of both peers
CACHE_SIZE = 1000
FOLDER = Path(__file__).parent / "results"


class Program(NamedTuple):
    name: str
    classifier: Any
    regressor: Any
    limit: str  # the option that ends a fit
    first_limit: float


class Job(NamedTuple):
    program: Program
    tol: float
    limit: float


class Run(NamedTuple):
    model: Any
    seconds: float
    busy: float  # no more than processor time: limits are on this, as a wait is not the program's
    iterations: int  # of the pair of classes with most


class Rung(NamedTuple):
    job: Job
    gap: float  # infinite if the fit was ended
    run: Run


@dataclass(frozen=True)
class Problem:
    """A set with a kernel and C."""

    name: str
    X: Any
    y: np.ndarray
    kernel: str
    gamma: float
    C: float

    def fit(self, job: Job) -> Any:
        estimator = job.program.regressor if self.name in REGRESSION else job.program.classifier
        options = {"C": self.C, "kernel": self.kernel, "gamma": self.gamma, "tol": job.tol, "cache_size": CACHE_SIZE}
        return fitted(estimator, self.X, self.y, **options, **{job.program.limit: job.limit})


def all_programs(max_seconds: float) -> list[Program]:
    """Return zerogap, then its peers; their limit is on iterations, and the first some seconds on the largest sets."""
    found = [
        Program("zerogap", zerogap.SVC, zerogap.SVR, "max_time", max_seconds),
        Program("scikit-learn", sklearn.svm.SVC, sklearn.svm.SVR, "max_iter", 20_000),
    ]
    try:
        from sklearnex.svm import SVC, SVR
    except ImportError:
        print('no scikit-learn-intelex (pip install ".[benchmark]"): only scikit-learn beside us')
        return found
    return [*found, Program("intelex", SVC, SVR, "max_iter", 20)]  # one of its iterations solves a block of up to 1,024


class Clock:
    """Fits, and the seconds that are left for them; certificates take none."""

    def __init__(self, seconds: float, whole: "Clock | None" = None):
        self.left = seconds
        self.whole = whole

    def part(self, sharers: int) -> "Clock":
        """Return the clock of the next of several that share what is left."""
        return Clock(self.left / sharers, self)

    def fit(self, problem: Problem, job: Job) -> Run:
        began = time.process_time()
        seconds, model = timed(problem.fit, job)
        run = Run(model, seconds, min(seconds, time.process_time() - began), int(np.max(model.n_iter_)))
        clock: Clock | None = self
        while clock is not None:
            clock.left -= run.busy
            clock = clock.whole
        return run


def climb(peer: Program, problem: Problem, least: float, max_seconds: float, clock: Clock) -> tuple[list[Rung], str]:
    """Fit with smaller and smaller tol down to a gap; return what each gave, and what becomes of gaps not reached.

    Only time ends it before the default tol, for scikit-learn's time there is asked for, too.
    """
    rungs: list[Rung] = []
    limit = peer.first_limit
    for tol in LADDER:
        rung = fit_in_time(problem, Job(peer, tol, limit), max_seconds, clock)
        rungs.append(rung)
        if rung.run.busy > max_seconds or clock.left < 0:
            return rungs, "late"
        if tol <= DEFAULT_TOL and (rung.gap <= least or stands_still([rung.gap for rung in rungs])):
            break
        limit = max(peer.first_limit, raised(rung.run, max_seconds))
    return rungs, "never"


def stands_still(gaps: list[float]) -> bool:
    """Near one a relative gap says little: a primal objective far too large can fall a long way without moving it."""
    return 0.5 > min(gaps[-3:]) > 0.9 * min(gaps[:-3])


def fit_in_time(problem: Problem, job: Job, max_seconds: float, clock: Clock) -> Rung:
    """Fit with a limit on iterations, raised until the fit ends by itself or takes too long."""
    while True:
        run = clock.fit(problem, job)
        if run.iterations < job.limit:
            gap = certify_peer(run.model, problem.X, problem.y).relative_gap
            return Rung(job, float(gap), run._replace(model=None))
        if run.busy > max_seconds:
            return Rung(job, math.inf, run._replace(model=None))
        job = job._replace(limit=raised(run, max_seconds))


def raised(run: Run, max_seconds: float) -> int:
    """Return a limit for the next fit: with some room, but not for much more than the time it may take."""
    more = min(max(1.5 * max_seconds / (run.busy + 1e-9), 2.0), 4.0)
    return min(int(more * run.iterations) + 1, 2**31 - 1)


def measure(problem: Problem, programs: list[Program], options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """Return a record for each gap, with seconds and outcome of every program, and all that the peers were tried with."""
    ours, *peers = programs
    ladders = {}
    for k, peer in enumerate(peers):
        part = clock.part(len(programs) - k)  # the last share is for ours and the repeats
        ladders[peer.name] = climb(peer, problem, min(options.gap), options.max_seconds, part)
    found = {gap: {name: first(*ladder, gap) for name, ladder in ladders.items()} for gap in options.gap}
    found[EXACT] = {"scikit-learn": at_default(ladders["scikit-learn"][0])}
    jobs = {gap: Job(ours, gap, options.max_seconds) for gap in found}
    runs = our_runs(problem, jobs, clock)
    best = {job: runs[gap].seconds for gap, job in jobs.items() if runs[gap].model.duality_gap_ <= gap}
    for outcome, rung in (pair for of_gap in found.values() for pair in of_gap.values()):
        if outcome == "reached":
            best[rung.job] = rung.run.seconds
    for _ in range(options.repeats):
        for job, seconds in best.items():
            if seconds < clock.left:
                best[job] = min(seconds, clock.fit(problem, job).seconds)
    records = [
        {
            "gap": gap,
            "seconds": best.get(job, runs[gap].seconds),
            **our_record(problem, runs[gap].model, gap),
            "peers": {name: peer_record(*pair, best) for name, pair in found[gap].items()},
        }
        for gap, job in jobs.items()
    ]
    tried = {name: [rung_record(rung) for rung in rungs] for name, (rungs, _) in ladders.items()}
    return {"gaps": records, "tried": tried}


def our_runs(problem: Problem, jobs: dict[float, Job], clock: Clock) -> dict[float, Run]:
    """Fit to each gap, the largest first; as with the peers, a fit that was ended is not tried with a smaller tol."""
    runs: dict[float, Run] = {}
    for gap, job in sorted(jobs.items(), reverse=True):
        ended = (run for run in runs.values() if our_status(run.model) == "MAX_TIME")
        runs[gap] = next(ended, None) or clock.fit(problem, job)
    return runs


def our_status(model: Any) -> str:
    """Return the status; of several classes the first that is not CONVERGED."""
    statuses = model.status_ if isinstance(model.status_, list) else [model.status_]
    return next((status.name for status in statuses if status.name != "CONVERGED"), "CONVERGED")


def first(rungs: list[Rung], otherwise: str, gap: float) -> tuple[str, Rung]:
    """Return the largest tol with that gap, or the last that was tried and what is to be said of it."""
    return next((("reached", rung) for rung in rungs if rung.gap <= gap), (otherwise, rungs[-1]))


def at_default(rungs: list[Rung]) -> tuple[str, Rung]:
    return next(
        (("reached", rung) for rung in rungs if rung.job.tol == DEFAULT_TOL and rung.gap < math.inf),
        ("late", rungs[-1]),
    )


def rung_record(rung: Rung) -> dict[str, Any]:
    return {"tol": rung.job.tol, "gap": finite(rung.gap), "seconds": rung.run.busy}


def peer_record(outcome: str, rung: Rung, best: dict[Job, float]) -> dict[str, Any]:
    record = {"outcome": outcome, **rung_record(rung)}
    return {**record, "seconds": best[rung.job]} if outcome == "reached" else record


def our_record(problem: Problem, model: Any, gap: float) -> dict[str, Any]:
    """Kernel values are counted for every pair of classes, and so are the sizes they are compared with."""
    parts = [(rows.size, np.count_nonzero(beta)) for rows, _, beta in pairs(model, problem.y)]
    status, values = our_status(model), int(model.kernel_evaluations_)
    short = "late" if status == "MAX_TIME" else "never"
    return {
        "outcome": "reached" if model.duality_gap_ <= gap else short, "our_gap": finite(model.duality_gap_), "status": status,
        "support": int(model.support_.size), "kernel_evaluations": values,
        "over_support": values / max(sum(n * support for n, support in parts), 1),
        "over_half": values / sum(0.5 * n * n for n, _ in parts),
    }  # fmt: skip


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"sets, by default all: {', '.join(SIZES)}")
    parser.add_argument("--gap", type=float, nargs="+", default=[1e-3, 1e-4, 1e-6], help="certified relative gaps")
    parser.add_argument("--C", type=float, nargs="+", default=[1.0, 100.0, 1e4])
    parser.add_argument("--kernel", choices=["rbf", "linear"], help="one kernel only")
    parser.add_argument("--half", choices=["tuned", "held-out"], help="one half of the sets only")
    parser.add_argument("--quick", action="store_true", help=f"sets of up to {SMALL} points, with the smaller limits")
    parser.add_argument("--repeats", type=int, help="timed runs after the first, of which the best counts (5; quick 2)")
    parser.add_argument("--max-seconds", type=float, help="longer fits are not tried with a smaller tol (60; quick 5)")
    parser.add_argument(
        "--budget", type=float, help="seconds of fits for a set, shared by its problems (1800; quick 120)"
    )
    parser.add_argument("--output", type=Path, help="JSON file, the picture beside it; in full results/fit.json")
    parser.add_argument("--markdown", action="store_true", help="write the tables beside the JSON file, too")
    parser.add_argument("--resume", action="store_true", help="keep the problems that are in the JSON file")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SIZES):
        parser.error(f"no set {', '.join(sorted(unknown))}; there are {', '.join(SIZES)}")
    if min(options.gap) <= EXACT:
        parser.error(f"--gap must be above {EXACT:.0e}, which is always measured")
    is_part = options.names or options.kernel or options.half or options.quick
    is_part = is_part or any(getattr(options, name) != parser.get_default(name) for name in ("gap", "C"))
    if options.output is None and (options.resume or not is_part):
        options.output = FOLDER / "fit.json"
    limits = (2, 5.0, 120.0) if options.quick else (5, 60.0, 1800.0)
    for name, value in zip(("repeats", "max_seconds", "budget"), limits, strict=True):
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def chosen_sets(options: argparse.Namespace) -> list[str]:
    names = [name for name in SIZES if not options.names or name in options.names]
    if options.half:
        names = [name for name in names if (name in HELD_OUT) == (options.half == "held-out")]
    if options.quick:
        names = [name for name in names if SIZES[name] <= SMALL]
    if datasets.data_folder() is None:
        print("no local data folder (set ZEROGAP_DATA): only generated sets and those that ship with scikit-learn")
        names = [name for name in names if name.startswith(SHIPPED)]
    return names


def stored_rows(options: argparse.Namespace, header: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the problems that were measured before, on the same machine with the same options."""
    if not options.resume or not options.output.exists():
        return []
    stored = json.loads(options.output.read_text())
    if {key: stored[key] for key in header} != header:
        sys.exit(
            f"{options.output} was measured with other versions or options: {stored['about']}, {stored['options']}."
        )
    return stored["problems"]


def measure_set(
    name: str, todo: list[tuple[str, float]], programs: list[Program], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield a row for each kernel and C, which share what is left of the time for the set."""
    if not todo:
        return
    X, y = named_set(name)
    gamma = Gram(X).kernel.gamma
    some = np.random.default_rng(0).permutation(y.size)[:300]
    for program in programs:  # compiled code is loaded, threads are there
        for kernel in {kernel for kernel, _ in todo}:
            Problem(name, X[some], y[some], kernel, gamma, 1.0).fit(Job(program, DEFAULT_TOL, program.first_limit))
    clock = Clock(options.budget)
    for k, (kernel, C) in enumerate(todo):
        problem = Problem(name, X, y, kernel, gamma, C)
        yield {
            "set": name, "half": "held-out" if name in HELD_OUT else "tuned", "n": y.size, "d": X.shape[1], "kernel": kernel,
            "gamma": gamma, "C": C, **measure(problem, programs, options, clock.part(len(todo) - k)),
        }  # fmt: skip


def main() -> None:
    options = parse()
    programs = all_programs(options.max_seconds)
    header = {
        "about": about(*(["scikit-learn-intelex"] if len(programs) > 2 else [])),
        "options": {key: getattr(options, key) for key in ("gap", "repeats", "max_seconds", "budget")},
    }
    names, rows = chosen_sets(options), stored_rows(options, header)
    print(", ".join(f"{key} {value}" for key, value in header["about"].items()) + "; * is held out\n")
    show(PROBLEMS, PROBLEMS)
    for row in rows:
        show_row(row)
    done = {(row["set"], row["kernel"], row["C"]) for row in rows}
    for name in names:
        kernels = ("rbf", "linear") if SIZES[name] <= SMALL else ("rbf",)
        todo = [(kernel, C) for kernel in kernels if options.kernel in (None, kernel) for C in options.C]
        todo = [(kernel, C) for kernel, C in todo if (name, kernel, C) not in done]
        for row in measure_set(name, todo, programs, options):
            rows.append(row)
            show_row(row)
            if options.output:
                save({**header, "problems": rows}, options.output)
    report(rows, options.output, options.markdown)


def save(results: dict[str, Any], file: Path) -> None:
    """Write beside the file first: a run that is ended leaves the old one or the new one."""
    file.parent.mkdir(exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    part.replace(file)


def show_row(row: dict[str, Any]) -> None:
    for record in row["gaps"]:
        show(cells(row, record), PROBLEMS)


if __name__ == "__main__":
    main()
