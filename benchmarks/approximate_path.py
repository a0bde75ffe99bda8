"""Paths within a guaranteed gap, of more points than have a kernel matrix in memory: how long beside one fit from nothing?

    python benchmarks/approximate_path.py [NAME ...]

For each set, each in a process of its own: ``svm_path(X, y, C_min=0.01, C_max=100, gap=1e-3)``, and
``SVC(C=100, tol=1e-3).fit(X, y)``, the fit at the largest C to the same certified gap.  Seconds are those of the processor, all
threads counted, and by the clock; memory is the largest of the process.  Certificates at a few random C are computed from the
data afterwards.
"""

import argparse
import multiprocessing
import time

import numpy as np
from common import named_set, write
from memory import peak

from zerogap import SVC, svm_path

NAMES = ("a9a", "w8a")
RANDOM = 5  # C at which the path is certified


def path_of(X, y, options):
    return svm_path(X, y, C_min=options.C_min, C_max=options.C_max, gap=options.gap, cache_size=options.cache_size)


def fit_of(X, y, options):
    return SVC(C=options.C_max, tol=options.gap, cache_size=options.cache_size).fit(X, y)


def measure(name, which, options, answers) -> None:
    X, y = named_set(name)
    few = np.concatenate([np.flatnonzero(y == label)[:150] for label in (-1, 1)])
    run = {"path": path_of, "fit": fit_of}[which]
    run(X[few], y[few], options)  # loads all code
    began, clock = time.process_time(), time.perf_counter()
    found = run(X, y, options)
    seconds = {"seconds": time.process_time() - began, "clock": time.perf_counter() - clock}
    row = {"set": name, "n": y.size, "what": which, **seconds, "peak_mb": peak()}
    if which == "path":
        row |= {"status": found.status, "solutions": found.n_solutions, "gap": found.largest_gap_}
        C = 10.0 ** np.random.default_rng(0).uniform(*np.log10(found.C[[0, -1]]), RANDOM)
        row["random_gap"] = max(certificate.relative_gap for certificate in found.certificate_at(C))
    else:
        row |= {
            "status": found.status_.name,
            "solutions": 1,
            "gap": found.duality_gap_,
            "random_gap": found.duality_gap_,
        }
    answers.put(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--C-min", type=float, default=1e-2)
    parser.add_argument("--C-max", type=float, default=1e2)
    parser.add_argument("--cache-size", type=float, default=1000.0)
    options = parser.parse_args()
    rows, context = [], multiprocessing.get_context("spawn")
    print(
        f"{'set':<12}{'n':>7} {'what':<5}{'solutions':>10}{'s of CPU':>10}{'clock':>8}"
        f"{'gap':>9}{'random C':>10}{'peak MB':>9}  status"
    )
    for name in options.names or NAMES:
        for which in ("path", "fit"):
            answers = context.Queue()
            process = context.Process(target=measure, args=(name, which, options, answers))
            process.start()
            row = answers.get()
            process.join()
            rows.append(row)
            print(
                f"{name:<12}{row['n']:>7} {which:<5}{row['solutions']:>10}{row['seconds']:10.1f}{row['clock']:8.1f}"
                f"{row['gap']:9.1e}{row['random_gap']:10.1e}{row['peak_mb']:9.0f}  {row['status']}",
                flush=True,
            )
        cpu, clock = (rows[-2][key] / rows[-1][key] for key in ("seconds", "clock"))
        print(f"  the path takes as long as {cpu:.2f} fits, by the clock {clock:.2f}", flush=True)
    if not options.names:
        write("approximate_path", rows)


if __name__ == "__main__":
    main()
