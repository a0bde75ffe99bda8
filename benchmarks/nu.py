"""OneClassSVM and NuSVC beside scikit-learn's: processor time at default tol, gaps, and how far decision values are apart.

python benchmarks/nu.py

The gap of a model is what ``zerogap.certify`` proves for its nu problem, whoever has fitted it.  Decision values are compared
with scikit-learn's at tol=1e-10, as a share of its largest.
"""

import time
import warnings

import numpy as np
import sklearn.svm
from common import named_set, write
from sklearn.base import clone

import zerogap

REPEATS = 9
SETS = {"OneClassSVM": ("breast_cancer", "digits"), "NuSVC": ("breast_cancer", "digits", "digits-10")}
NU = (0.01, 0.05, 0.1, 0.2, 0.5)


def least(model, *data):
    """Return the least processor time of some fits."""
    seconds = []
    for _ in range(REPEATS):
        fresh, began = clone(model), time.process_time()
        fresh.fit(*data)
        seconds.append(time.process_time() - began)
    return min(seconds)


def main() -> None:
    rows = []
    times = f"{'ours ms':>8} {'peer ms':>8} {'peer/ours':>9}"
    print(f"{'model':<12}{'set':<15}{'nu':>5} {times} {'gap':>8} {'peer gap':>8} {'apart':>8}")
    for kind, sets in SETS.items():
        for name in sets:
            X, y = named_set(name)
            data = (X,) if kind == "OneClassSVM" else (X, y)
            for nu in NU:
                ours, peer = getattr(zerogap, kind)(nu=nu), getattr(sklearn.svm, kind)(nu=nu)
                ours.fit(*data)  # compiles
                seconds, of_peer = least(ours, *data), least(peer, *data)
                exact = clone(peer).set_params(tol=1e-10).fit(*data)
                values = exact.decision_function(X)
                apart = float(np.abs(ours.decision_function(X) - values).max() / np.abs(values).max())
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    gaps = [zerogap.certify(m, X, y, tol=1e-9).relative_gap for m in (ours, peer.fit(*data))]
                rows.append({
                    "model": kind, "set": name, "n": len(X), "nu": nu, "seconds": seconds, "peer_seconds": of_peer,
                    "gap": gaps[0], "peer_gap": gaps[1], "apart": apart,
                })  # fmt: skip
                print(
                    f"{kind:<12}{name:<15}{nu:>5g} {1e3 * seconds:8.1f} {1e3 * of_peer:8.1f} {of_peer / seconds:9.2f} "
                    f"{gaps[0]:8.1e} {gaps[1]:8.1e} {apart:8.1e}",
                    flush=True,
                )
    write("nu", rows)


if __name__ == "__main__":
    main()
