"""A million points on a cluster of this machine: time against the number of points and of workers, memory, and the gap.

    python benchmarks/scale.py                              # 50,000 to 1,000,000 points, two workers; efficiency at 500,000
    python benchmarks/scale.py --points 50000 100000        # these only
    python benchmarks/scale.py --efficiency 0               # without the comparison of one worker with two

Two normal classes in 20 features, 2 mu apart: no rule is right more often than 1 - Phi(-mu), of mu = 3 that is an error of
0.00135.  Workers draw their own partitions: the whole set is nowhere in one place.  Every worker is a process with one thread
and a limit on its memory; the coordinator is another.  Peaks are those of whole processes, Python and the libraries included.
A small fit comes first, so that compilation is not in the times.
"""

import argparse
import logging
import os
import resource
import sys
import time
from statistics import NormalDist
from typing import Any

import numpy as np

FEATURES, TEST = 20, 100_000
REPEATS = 3  # of the comparison of one worker with two
SIZES = (50_000, 100_000, 200_000, 500_000, 1_000_000)


def draw(n: int, mu: float, seed: int) -> np.ndarray:
    """Return labels and points, as the columns of one array."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, FEATURES))
    X[:, 0] += mu * (2 * y - 1)
    return np.column_stack([y, X])


def data(n: int, mu: float, partitions: int, seed: int = 0) -> tuple[Any, Any]:
    """Return X and y as Dask arrays, which workers draw."""
    import dask
    import dask.array as da

    sizes = np.diff(np.linspace(0, n, partitions + 1).astype(int)).tolist()
    parts = [dask.delayed(draw)(size, mu, seed + k) for k, size in enumerate(sizes)]
    drawn = [da.from_delayed(part, (size, FEATURES + 1), float) for part, size in zip(parts, sizes, strict=True)]
    whole = da.concatenate(drawn)
    return whole[:, 1:], whole[:, 0].astype(int)


def peak() -> float:
    """Return the peak of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def measure(n: int, workers: int, options: argparse.Namespace) -> dict[str, Any]:
    """Fit on a new cluster."""
    from dask.distributed import Client, LocalCluster

    import zerogap.dask

    partitions = options.partitions or 4 * max(workers, 2)
    limit = f"{options.memory}GB"
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        few = zerogap.dask.SVC(tol=1e-2, working_set=500)
        few.fit(*data(4000, options.mu, workers))
        X, y = data(n, options.mu, partitions)
        began, used = time.perf_counter(), time.process_time()
        model = zerogap.dask.SVC(
            C=options.C, tol=options.gap, working_set=options.working_set, verbose=options.verbose
        ).fit(X, y)
        seconds, coordinator = time.perf_counter() - began, time.process_time() - used
        error = 1.0 - float(model.score(*data(TEST, options.mu, 2, seed=10**6)))
        peaks = list(client.run(peak).values())
    rounds = model.rounds_
    if options.verbose:
        print(model.trace_, *rounds, sep="\n")
    return {
        "n": n, "workers": workers, "partitions": partitions, "status": model.status_.name, "gap": model.duality_gap_,
        "rounds": len(rounds), "support": model.support_.size, "seconds": seconds, "solving": sum(r.solving for r in rounds),
        "updating": sum(r.updating for r in rounds), "working": sum(r.working for r in rounds), "coordinator_cpu": coordinator,
        "kernel_evaluations": model.kernel_evaluations_, "moved_mb": model.bytes_moved_ / 1e6, "worker_peak_mb": max(peaks),
        "coordinator_peak_mb": peak(), "share_mb": 8e-6 * (FEATURES + 1) * n / workers, "test_error": error,
    }  # fmt: skip


HEAD = f"{'n':>9}{'workers':>8}{'status':>11}{'gap':>9}{'rounds':>7}{'support':>8}{'seconds':>9}{'solving':>9}{'updating':>9}"
HEAD += f"{'MB moved':>9}{'peak MB':>9}{'error':>9}"


def show(row: dict[str, Any]) -> None:
    print(
        f"{row['n']:>9}{row['workers']:>8}{row['status']:>11}{row['gap']:9.1e}{row['rounds']:>7}{row['support']:>8}"
        f"{row['seconds']:9.1f}{row['solving']:9.1f}{row['updating']:9.1f}{row['moved_mb']:9.1f}{row['worker_peak_mb']:9.0f}"
        f"{row['test_error']:9.5f}",
        flush=True,
    )


def best_of(repeats: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the best run of one worker and that of two, of several in turn: a neighbour on the machine slows down either."""
    runs: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    for _ in range(repeats):
        for workers, of_so_many in runs.items():
            of_so_many.append(measure(options.efficiency, workers, options))
            show(of_so_many[-1])
    return [min(found, key=lambda row: row["updating"]) for found in runs.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, nargs="+", default=SIZES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--efficiency", type=int, default=500_000, help="points of the comparison of one worker with two"
    )
    parser.add_argument("--partitions", type=int, default=0, help="by default four for each worker")
    parser.add_argument("--memory", type=float, default=4.0, help="gigabytes of a worker")
    parser.add_argument("--working-set", type=int, default=4000)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--mu", type=float, default=3.0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores; least possible error {NormalDist().cdf(-options.mu):.5f}\n{HEAD}")
    rows = []
    for n in options.points:
        rows.append(measure(n, options.workers, options))
        show(rows[-1])
    if options.efficiency:
        one, two = best_of(REPEATS, options)
        print(f"efficiency of two workers on residual updates: {one['updating'] / (2 * two['updating']):.2f}")
        rows += [one, two]
    if tuple(options.points) == SIZES and options.efficiency:
        from common import write

        write("scale", rows)


if __name__ == "__main__":
    main()
