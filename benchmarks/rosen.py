"""Does Rosen's method need fewer iterations and kernel values than SMO?

    python benchmarks/rosen.py [--max-time 20]

smo, smo without rows computed ahead, smo-keerthi and rosen to a relative gap of 1e-10 on the first original training part of
every Raetsch set, with the C and sigma of the benchmark's site.  The paper's own tables are in experiments/lopez.
"""

import argparse
import time
from typing import Any

import numpy as np
from common import write

from zerogap import DualProblem, Gram, RelativeGap, Solution, datasets, solve
from zerogap.solvers import SMO, KeerthiSMO, Rosen

# C and sigma of the benchmark's site; the kernel is exp(-|d|² / sigma).
SETS = {
    "titanic": (1e5, 2.0), "heart": (3.162, 120.0), "breast_cancer": (15.19, 50.0), "thyroid": (10.0, 3.0),
    "diabetis": (1.0, 20.0), "flare_solar": (1.023, 30.0), "banana": (316.2, 1.0), "german": (3.162, 55.0),
    "image": (500.0, 30.0), "ringnorm": (1e9, 10.0), "splice": (1000.0, 70.0), "twonorm": (3.162, 40.0),
    "waveform": (1.0, 20.0),
}  # fmt: skip

COMPARED = {
    "smo": SMO(),
    "smo, no row ahead": SMO(rows_at_once=1, shrinking=False),
    "smo-keerthi": KeerthiSMO(),
    "rosen": Rosen(),
    "rosen, pairs": Rosen(drop="pair"),
}


def first_part(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (X, y) of the first training part."""
    folder = datasets.data_folder()
    if folder is None:
        raise SystemExit("This benchmark needs raetsch.npz: set ZEROGAP_DATA to the folder that holds it.")
    with np.load(folder / "raetsch.npz") as pool:
        rows = pool[f"{name}_train_orig"][0]
        return pool[f"{name}_x"][rows], pool[f"{name}_t"][rows].astype(np.float64)


def run(X: np.ndarray, y: np.ndarray, name: str, solver: Any, **options: Any) -> tuple[Solution, int, float]:
    """Return the solution, the kernel evaluations and the seconds."""
    C, sigma = SETS[name]
    began = time.perf_counter()
    gram = Gram(X, gamma=1.0 / sigma)
    solution = solve(DualProblem.hinge(gram, y, C), solver, **options)
    return solution, gram.evaluations, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-time", type=float, default=20.0)
    max_time = parser.parse_args().max_time
    rows = []
    print(f"{'set':<14}{'n':>5}  {'solver':<18}{'iterations':>11} {'rows':>7} {'seconds':>8} {'gap':>8} status")
    for name in SETS:
        X, y = first_part(name)
        for label, solver in COMPARED.items():
            run(X[:60], y[:60], name, solver, max_steps=50)  # compiled before the clock starts
            solution, evaluations, seconds = run(X, y, name, solver, stop=RelativeGap(1e-10), max_time=max_time)
            rows.append({
                "set": name, "n": y.size, "solver": label, "iterations": solution.n_iter, "kernel_evaluations": evaluations,
                "seconds": seconds, "gap": solution.certificate.relative_gap, "status": solution.status.name,
            })  # fmt: skip
            print(
                f"{name:<14}{y.size:>5}  {label:<18}{solution.n_iter:>11} {evaluations / y.size:>7.1f} {seconds:>8.3f} "
                f"{rows[-1]['gap']:8.1e} {rows[-1]['status']}",
                flush=True,
            )
    write("rosen_compare", rows)


if __name__ == "__main__":
    main()
