"""Exact leave-one-out beside as many refits: time, ratio, and how far the decision values are apart.

python benchmarks/leave_one_out.py [--refits N]

Every refit is a fresh ``SVC(..., tol=1e-10)`` on n - 1 rows; with --refits only that many rows, evenly spread, are refitted and
the time is scaled up.
"""

import argparse
import time

import numpy as np
from common import scaled, write
from sklearn.datasets import load_breast_cancer, load_digits

from zerogap import SVC, leave_one_out


def cases():
    X, y = load_breast_cancer(return_X_y=True)
    for loss in ("hinge", "squared_hinge"):
        for C in (1.0, 100.0):
            yield "breast_cancer", scaled(X), y, {"C": C, "loss": loss}
    X, y = load_digits(return_X_y=True)
    yield "digits, 5 and up", scaled(X), (y >= 5).astype(int), {"C": 1.0}
    yield "digits", scaled(X), y, {"C": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--refits", type=int, default=None)
    options = parser.parse_args()
    rows = []
    times = f"{'ours s':>8} {'refits s':>9} {'ratio':>7}"
    print(f"{'set':<18}{'n':>6} {'loss':<14}{'C':>5} {'SVs':>5} {'error':>8} {times} {'apart':>8}")
    for name, X, y, parameters in cases():
        model = SVC(**parameters).fit(X, y)
        leave_one_out(model)  # compiles
        model = SVC(**parameters).fit(X, y)
        began = time.perf_counter()
        ours = leave_one_out(model)
        seconds = time.perf_counter() - began
        n, gamma = y.size, getattr(model._kernel, "gamma", 1.0)
        some = np.arange(n) if options.refits is None else np.unique(np.linspace(0, n - 1, options.refits).astype(int))
        theirs, spent = [], 0.0
        for i in some:
            others = np.arange(n) != i
            rest, labels = X[others], y[others]
            began = time.perf_counter()
            refit = SVC(**parameters, gamma=gamma, tol=1e-10).fit(rest, labels)
            spent += time.perf_counter() - began
            theirs.append(refit.decision_function(X[i : i + 1])[0])
        spent *= n / some.size
        apart = float(np.abs(np.array(theirs) - ours.decision_values[some]).max())
        rows.append({
            "set": name, "n": n, "loss": model.loss, "C": model.C, "support": model.support_.size, "error": ours.error,
            "seconds": seconds, "refit_seconds": spent, "refits": some.size, "ratio": spent / seconds, "apart": apart,
        })  # fmt: skip
        r = rows[-1]
        print(
            f"{name:<18}{n:>6} {r['loss']:<14}{r['C']:>5g} {r['support']:>5} {ours.error:8.5f} {seconds:8.3f} {spent:9.2f} "
            f"{r['ratio']:7.1f} {apart:8.1e}",
            flush=True,
        )
    if options.refits is None:
        write("leave_one_out", rows)


if __name__ == "__main__":
    main()
