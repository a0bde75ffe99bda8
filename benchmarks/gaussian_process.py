"""Gaussian process regression: conjugate gradient beside the Cholesky factor, in seconds and in memory.

    python benchmarks/gaussian_process.py [--points 10000] [--noise 0.1] [--repeats 3]

rbf with gamma="scale" on scaled features, on smooth synthetic data in 4 dimensions and, where present, on cpusmall.  Each fit
has a process of its own; memory is its peak less what it had before the fit; seconds are the median.  "difference" is the
largest between its means and those of the Cholesky factor at 200 training points, in deviations of the targets.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import scaled, write

FITS: dict[str, dict[str, Any]] = {
    "scikit-learn": {},
    "cholesky": {"solver": "cholesky"},
    "cg": {"solver": "cg"},
    "cg, 100 MB": {"solver": "cg", "cache_size": 100},
    "cg, plain": {"solver": "cg", "preconditioner": None},
}


def data(name: str, points: int) -> tuple[np.ndarray, np.ndarray]:
    if name == "cpusmall":
        from zerogap import datasets

        X, y = datasets.load(name)
        return scaled(np.asarray(X.todense()) if hasattr(X, "todense") else X), (y - y.mean()) / y.std()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((points, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2]) + 0.3 * rng.standard_normal(points)
    return X, (y - y.mean()) / y.std()


def peak() -> float:
    """Peak memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit(name: str, points: int, noise: float, options: dict[str, Any], means: str) -> None:
    """In a process of its own: fit, and print what it took."""
    from sklearn.base import clone
    from sklearn.gaussian_process import GaussianProcessRegressor as Peer
    from sklearn.gaussian_process.kernels import RBF

    from zerogap import GaussianProcessRegressor

    X, y = data(name, points)
    gamma = 1 / (X.shape[1] * X.var())
    model = (
        GaussianProcessRegressor(gamma=gamma, noise=noise, **options)
        if options
        else Peer(RBF(1 / np.sqrt(2 * gamma)), alpha=noise, optimizer=None)
    )
    clone(model).fit(X[:50], y[:50])  # loads what is loaded on first use
    before, began = peak(), time.perf_counter()
    model.fit(X, y)
    seconds, memory = time.perf_counter() - began, peak() - before
    np.save(means, model.predict(X[:200]))
    print(json.dumps({
        "n": len(y), "d": X.shape[1], "seconds": seconds, "megabytes": memory, "iterations": getattr(model, "n_iter_", None),
        "gap": getattr(model, "duality_gap_", None), "evaluations": getattr(model, "kernel_evaluations_", None),
    }))  # fmt: skip


def measure(name: str, fit_name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    means = str(folder / f"{fit_name}.npy")
    command = [sys.executable, __file__, "--fit", fit_name, "--set", name, "--means", means]
    command += ["--points", str(options.points), "--noise", str(options.noise)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(options.repeats)
    ]
    row = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
    row["megabytes"] = max(run["megabytes"] for run in runs)
    reference = folder / "cholesky.npy"
    row["difference"] = float(np.abs(np.load(means) - np.load(reference)).max()) if reference.exists() else None
    return {"set": name, "fit": fit_name, "threads": os.environ.get("OMP_NUM_THREADS", "all"), **row}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=3)
    for hidden in ("--fit", "--set", "--means"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit(options.set, options.points, options.noise, FITS[options.fit], options.means)
        return
    from zerogap import datasets

    names, rows = ["smooth"], []
    folder = datasets.data_folder()
    if folder is not None and (folder / "cpusmall.svm.gz").exists():
        names.append("cpusmall")
    for name in names:
        with tempfile.TemporaryDirectory() as means:
            # The factor first: the others are compared with it.
            for fit_name in sorted(FITS, key=lambda key: key != "cholesky"):
                row = measure(name, fit_name, options, Path(means))
                rows.append(row)
                if fit_name == "cholesky":
                    print(
                        f"\n{name}: {row['n']} points, {row['d']} features, full matrix {8e-6 * row['n'] ** 2:.0f} MB"
                    )
                    print(f"{'':<14}{'seconds':>8} {'MB':>6} {'iterations':>10} {'gap':>8} {'difference':>10}")
                gap = "-" if row["gap"] is None else f"{row['gap']:.1e}"
                print(
                    f"{fit_name:<14}{row['seconds']:8.2f} {row['megabytes']:6.0f} {row['iterations'] or '-':>10} {gap:>8} "
                    f"{row['difference']:10.1e}",
                    flush=True,
                )
    write("gaussian_process", rows)


if __name__ == "__main__":
    main()
