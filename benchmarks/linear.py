"""Linear models: seconds of processor time to a certified relative gap, beside scikit-learn's LinearSVC (LIBLINEAR).

    python benchmarks/linear.py                      a9a, w8a and text-like data of 200,000 x 50,000, both losses; minutes
    python benchmarks/linear.py a9a --gap 1e-3       some of it; only a full run writes results/linear.csv
    python benchmarks/linear.py --quick              text-like data of 5,000 x 2,000 only

Both solve the same problem, the intercept being the weight of a constant feature.  Ours proves its gap, primal less dual
objective.  LIBLINEAR returns no dual point, so that nothing of its own proves anything: its gap is taken as how far its primal
objective is above the optimum, for which we have a bound to 1e-9.  That is generous: what its dual point is off does not count.
Its time is that of the largest tol on a ladder that has the gap; with squared hinge it may solve the primal problem or the dual
one, and the better one counts.  Fits alternate, warm, in one process, and the best of several counts.

Text-like data: words of a vocabulary drawn by Zipf's law, about 100 different ones a row, weighed by tf-idf, rows of norm one;
labels are the sign of a linear function of a tenth of the words, with noise.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from common import about, write
from sklearn.preprocessing import normalize

import zerogap
from zerogap import datasets

LADDER = (1e1, 3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6, 1e-7, 1e-8)
EXACT = 1e-9
MOST_ITERATIONS = 100_000  # of LIBLINEAR


def text_like(n: int = 200_000, d: int = 50_000, drawn: int = 128, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Return CSR points and labels, -1 or +1."""
    rng = np.random.default_rng(seed)
    shares = np.cumsum(1.0 / np.arange(1, d + 1))
    words = np.searchsorted(shares / shares[-1], rng.random(n * drawn)).astype(np.int32)
    X = sp.csr_matrix((np.ones(n * drawn), words, np.arange(0, n * drawn + 1, drawn)), shape=(n, d))
    X.sum_duplicates()
    rarity = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=d))) + 1
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    X = normalize(X)
    f = X @ np.where(rng.random(d) < 0.1, rng.standard_normal(d), 0.0)
    noisy = f - np.median(f) + 0.5 * f.std() * rng.standard_normal(n)
    return X, np.where(noisy > 0, 1.0, -1.0)


def data(name: str) -> tuple[Any, np.ndarray]:
    """Return the points of a set, and their labels."""
    if name.startswith("text"):
        n, d = map(int, name.removeprefix("text-").split("x"))
        return text_like(n, d)
    X, y = datasets.load(name)
    return sp.csr_matrix(X), np.where(y > 0, 1.0, -1.0)


def objective(model: Any, X: Any, y: np.ndarray, loss: str, C: float) -> float:
    """Return scikit-learn's objective."""
    w, b = model.coef_[0], float(model.intercept_[0])
    short = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return 0.5 * (float(w @ w) + b * b) + C * float(short.sum() if loss == "hinge" else short @ short)


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Return processor seconds, and the model."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit()
    return time.process_time() - began, model


def peer(X: Any, y: np.ndarray, loss: str, C: float, tol: float, dual: bool) -> tuple[float, Any]:
    """Fit scikit-learn's."""
    model = sklearn.svm.LinearSVC(loss=loss, C=C, tol=tol, dual=dual, max_iter=MOST_ITERATIONS, random_state=0)
    return timed(lambda: model.fit(X, y))


def ours(X: Any, y: np.ndarray, loss: str, C: float, tol: float) -> tuple[float, Any]:
    """Fit ours."""
    return timed(lambda: zerogap.LinearSVC(loss=loss, C=C, tol=tol).fit(X, y))


def climbed(
    X: Any, y: np.ndarray, loss: str, C: float, bound: float, least: float, most: float
) -> list[dict[str, Any]]:
    """Return what each tol of the ladder gave, for both forms, down to a gap, or until a fit takes too long."""
    found = []
    for dual in (True,) if loss == "hinge" else (True, False):
        for tol in LADDER:
            seconds, model = peer(X, y, loss, C, tol, dual)
            primal = objective(model, X, y, loss, C)
            found.append({"dual": dual, "tol": tol, "seconds": seconds, "gap": (primal - bound) / primal})
            if found[-1]["gap"] <= least or seconds > most:
                break
    return found


def measured(name: str, loss: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each gap."""
    (X, y), C = data(name), options.C
    few = np.concatenate([np.flatnonzero(y == sign)[:100] for sign in (-1.0, 1.0)])
    ours(X[few], y[few], loss, C, 1e-6)  # compiles
    seconds, exact = ours(X, y, loss, C, EXACT)
    bound = exact.certificate_.dual - exact.certificate_.rounding
    rungs = climbed(X, y, loss, C, bound, min(options.gap), options.max_seconds)
    rows = []
    for gap in options.gap:
        fits = [rung for rung in rungs if rung["gap"] <= gap]
        best = min(fits, key=lambda rung: rung["seconds"]) if fits else None
        own, theirs = np.inf, np.inf if best is None else best["seconds"]
        for _ in range(options.repeats):
            took, model = ours(X, y, loss, C, gap)
            own = min(own, took)
            if best is not None and theirs < options.max_seconds:
                theirs = min(theirs, peer(X, y, loss, C, best["tol"], best["dual"])[0])
        rows.append({
            "set": name, "loss": loss, "C": C, "gap": gap, "seconds": round(own, 3), "proved": f"{model.duality_gap_:.1e}",
            "iterations": model.n_iter_, "liblinear": round(theirs, 3), "dual": best and best["dual"],
            "tol": best and best["tol"], "liblinear_gap": best and f"{best['gap']:.1e}", "ratio": round(theirs / own, 2),
            "exact_seconds": round(seconds, 3),
        })  # fmt: skip
        show(rows[-1])
    return rows


def show(row: dict[str, Any]) -> None:
    """Print a row."""
    theirs = f"{row['liblinear']:8.3f} s (tol {row['tol']}, dual {row['dual']})" if row["tol"] else "   never"
    print(
        f"{row['set']:18} {row['loss']:14} C={row['C']:g} gap {row['gap']:g}: {row['seconds']:8.3f} s, proved "
        f"{row['proved']}; LIBLINEAR {theirs}, ratio {row['ratio']}",
        flush=True,
    )


def main() -> None:
    """Measure, show, and write what a full run gives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="a9a, w8a, text-NxD, or another set of the local folder")
    parser.add_argument("--gap", type=float, nargs="*", default=[1e-3, 1e-6])
    parser.add_argument("--loss", nargs="*", default=["hinge", "squared_hinge"])
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-seconds", type=float, default=120.0)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    names = options.names or (["text-5000x2000"] if options.quick else ["a9a", "w8a", "text-200000x50000"])
    if not options.names and not options.quick and datasets.data_folder() is None:
        print("no local data folder (set ZEROGAP_DATA): text-like data only")
        names = names[2:]
    print(about())
    rows = [row for name in names for loss in options.loss for row in measured(name, loss, options)]
    if not (options.names or options.quick):
        write("linear", rows)


if __name__ == "__main__":
    main()
