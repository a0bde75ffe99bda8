"""A problem that does not fit in memory: peak memory, time and gap of chunking, decomposition, and SMO with the same cache.

    python benchmarks/decomposition.py [--data a9a] [--gap 1e-3] [--cache 200] [--C 1] [SOLVER ...]

rbf with gamma="scale".  The kernel matrix of a9a (32,561 points) would take 8.5 GB.  Every solver runs in a process of its own,
so that the peak is its own too; it includes Python, the libraries and the data.  Compilation is done before the clock starts.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from typing import Any

SOLVERS = ("decomposition", "chunking", "smo")


def measure(solver: str, data: str, gap: float, cache: float, C: float) -> dict[str, Any]:
    import numpy as np
    from common import scaled

    from zerogap import DualProblem, Gram, RelativeGap, datasets, solve

    X, y = datasets.load(data)
    X, y = scaled(X), np.where(y > 0, 1.0, -1.0)
    few = np.concatenate([np.flatnonzero(y > 0)[:1000], np.flatnonzero(y < 0)[:1000]])
    solve(DualProblem.hinge(Gram(X[few]), y[few], C), solver, stop=RelativeGap(0.1))
    gram = Gram(X, cache_size=cache)
    began = time.perf_counter()
    solution = solve(DualProblem.hinge(gram, y, C), solver, stop=RelativeGap(gap))
    seconds = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "set": data, "n": y.size, "C": C, "cache_mb": cache, "solver": solver, "status": solution.status.name,
        "gap": solution.certificate.relative_gap, "support": solution.support.size, "iterations": solution.n_iter,
        "kernel_evaluations": gram.evaluations, "seconds": seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solvers", nargs="*", default=SOLVERS)
    parser.add_argument("--data", default="a9a")
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--cache", type=float, default=200)
    parser.add_argument("--C", type=float, default=1.0)
    options = parser.parse_args()
    rows = []
    print(f"{'solver':<16}{'status':>10}{'gap':>9}{'support':>9}{'evaluations':>13}{'seconds':>9}{'peak MB':>9}")
    for solver in options.solvers:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure, (solver, options.data, options.gap, options.cache, options.C))
        rows.append(row)
        print(
            f"{row['solver']:<16}{row['status']:>10}{row['gap']:9.1e}{row['support']:>9}{row['kernel_evaluations']:13.2e}"
            f"{row['seconds']:9.1f}{row['peak_mb']:9.0f}",
            flush=True,
        )
    if tuple(options.solvers) == SOLVERS:
        from common import write

        write("decomposition", rows)


if __name__ == "__main__":
    main()
