"""Memory of a fit: the peak above the data, beside what ``cache_size`` allows, at default settings.

    python benchmarks/memory.py [NAME ...]

Every set is fitted in a process of its own, after a small fit that loads all code.  The budget is ``cache_size`` (1,000 MB by
default) and five copies of the data: its order, its scaled form as rows and as columns, support vectors, and one of a check.
"""

import argparse
import multiprocessing
import resource

import numpy as np
from common import named_set, write

import zerogap
from zerogap import datasets

NAMES = ("generated-1000x20", "generated-5000x50", "usps", "mnist.t", "generated-20000x50", "moons-20000", "a9a", "w8a")
COPIES = 5


def peak() -> float:
    """Return the largest memory of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, C: float, answers) -> None:
    X, y = named_set(name)
    few = np.concatenate([np.flatnonzero(y == label)[:150] for label in (-1, 1)])
    zerogap.SVC(C=C).fit(X[few], y[few])
    before = peak()
    model = zerogap.SVC(C=C).fit(X, y)
    data = 8e-6 * X.shape[0] * X.shape[1]
    answers.put((X.shape, data, before, peak(), model.duality_gap_, model.cache_size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--C", type=float, nargs="*", default=[1.0, 100.0])
    options = parser.parse_args()
    shipped = ("generated", "moons")
    names = options.names or [name for name in NAMES if datasets.data_folder() or name.startswith(shipped)]
    rows, context = [], multiprocessing.get_context("spawn")
    print(f"{'set':<20}{'n':>7}{'d':>5}{'C':>6}{'data MB':>9}{'above MB':>10}{'budget MB':>11}{'gap':>9}")
    for name in names:
        for C in options.C:
            answers = context.Queue()
            process = context.Process(target=measure, args=(name, C, answers))
            process.start()
            (n, d), data, before, after, gap, cache_size = answers.get()
            process.join()
            budget = cache_size + COPIES * data
            rows.append(
                {
                    "set": name,
                    "n": n,
                    "d": d,
                    "C": C,
                    "data": data,
                    "above": after - before,
                    "budget": budget,
                    "gap": gap,
                }
            )
            mark = "" if after - before <= budget else "  above"
            print(
                f"{name:<20}{n:>7}{d:>5}{C:>6g}{data:9.1f}{after - before:10.0f}{budget:11.0f}{gap:9.1e}{mark}",
                flush=True,
            )
    if not options.names:
        write("memory", rows)


if __name__ == "__main__":
    main()
