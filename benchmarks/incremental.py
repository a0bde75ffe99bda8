"""Rows added and forgotten beside a fit of all rows: processor time, and how far the objectives are apart.

python benchmarks/incremental.py

The fit is one to tol=1e-4, the default, and one to 1e-10; rows are added and forgotten to the last digits.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import scaled, write
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from zerogap import SVC, SVR

REPEATS = 5
BATCHES = (1, 10)
GAMMA = 0.02


def cases():
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast_cancer", scaled(X), y, SVC
    X, y = load_digits(return_X_y=True)
    yield "digits", scaled(X), y, SVC
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", scaled(X), (y - y.mean()) / y.std(), SVR


def milliseconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return 1e3 * (time.process_time() - began)


def objective(model: Any) -> float:
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    return sum(certificate.dual for certificate in certificates)


def measured(make: Any, X: np.ndarray, y: np.ndarray, batch: int, rng: np.random.Generator) -> dict[str, float]:
    """Return processor times in milliseconds, and the largest relative difference of objectives."""
    held, gone = slice(0, y.size - batch), rng.choice(y.size - batch, batch, replace=False)
    grown = make(gamma=GAMMA).partial_fit(X[held], y[held]).partial_fit(X[:1], y[:1]).forget(-1)
    rough, exact = make(gamma=GAMMA), make(gamma=GAMMA, tol=1e-10)
    times = {
        "fit_ms": milliseconds(lambda: rough.fit(X, y)),
        "fit_1e-10_ms": milliseconds(lambda: exact.fit(X, y)),
        "add_ms": milliseconds(lambda: grown.partial_fit(X[-batch:], y[-batch:])),
    }
    apart = abs(objective(grown) - objective(exact)) / objective(exact)
    return {**times, "forget_ms": milliseconds(lambda: grown.forget(gone)), "apart": apart}


def main() -> None:
    rows = []
    print(f"{'set':<15}{'n':>6}{'batch':>6} {'fit ms':>8} {'to 1e-10':>9} {'add ms':>8} {'forget ms':>10} {'apart':>8}")
    for name, X, y, make in cases():
        rng = np.random.default_rng(0)
        order = rng.permutation(y.size)
        for batch in BATCHES:
            found = [measured(make, X[order], y[order], batch, rng) for _ in range(REPEATS + 1)][
                1:
            ]  # the first compiles
            best = {key: (max if key == "apart" else min)(one[key] for one in found) for key in found[0]}
            rows.append({"set": name, "n": y.size, "batch": batch, **best})
            numbers = "{fit_ms:8.1f} {fit_1e-10_ms:9.1f} {add_ms:8.1f} {forget_ms:10.1f} {apart:8.1e}".format(**best)
            print(f"{name:<15}{y.size:>6}{batch:>6} {numbers}", flush=True)
    write("incremental", rows)


if __name__ == "__main__":
    main()
