"""Is the objective ever above scikit-learn's, is the gap what tol says, and are the predictions the same?

    python benchmarks/objective.py [--tol 1e-8] [--max-time 30] [NAME ...]

For every two-class set up to 5,000 points, linear and rbf, C in {0.01, 1, 100}: scikit-learn at its default tolerance beside
zerogap at ``tol``, both certified by zerogap.  A prediction counts as different only where scikit-learn's decision value is
larger than its own possible error, by the bound |f - f*| <= sqrt(2 gap) |phi(x)| (plus the difference of the biases).
"""

import argparse
import time

import numpy as np
from common import certify_peer, ours, peer, two_class_sets, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tol", type=float, default=1e-8)
    parser.add_argument("--max-time", type=float, default=30.0)
    options = parser.parse_args()
    rows = []
    titles = f"{'our gap':>8} {'sk gap':>8} {'excess':>9} differ  {'s':>6} {'sk s':>6} status"
    print(f"{'set':<22}{'n':>6} {'kernel':<7}{'C':>6}  {titles}")
    for name, X, y in two_class_sets():
        if options.names and name not in options.names:
            continue
        for kernel in ("linear", "rbf"):
            for C in (0.01, 1.0, 100.0):
                began = time.perf_counter()
                theirs = peer(X, y, C=C, kernel=kernel, max_iter=2_000_000)
                middle = time.perf_counter()
                mine = ours(X, y, C=C, kernel=kernel, gamma=theirs._gamma, tol=options.tol, max_time=options.max_time)
                ended = time.perf_counter()
                certificate = certify_peer(theirs, X, y)
                excess = (certificate.dual - mine.certificate_.dual) / abs(certificate.dual)
                rows.append({
                    "set": name, "n": y.size, "kernel": kernel, "C": C, "gap": mine.duality_gap_,
                    "peer_gap": certificate.relative_gap, "objective_excess": excess,
                    "different_predictions": different_predictions(theirs, mine, X, certificate),
                    "seconds": ended - middle, "peer_seconds": middle - began, "status": mine.status_.name,
                })  # fmt: skip
                r = rows[-1]
                print(
                    f"{name:<22}{y.size:>6} {kernel:<7}{C:>6g}  {r['gap']:8.1e} {r['peer_gap']:8.1e} {excess:9.1e} "
                    f"{r['different_predictions']:>6}  {r['seconds']:6.2f} {r['peer_seconds']:6.2f} {r['status']}",
                    flush=True,
                )
    worst = max(row["objective_excess"] for row in rows)
    short = [row for row in rows if row["status"] != "CONVERGED"]
    print(f"\n{len(rows)} problems; objective above scikit-learn's by at most {worst:.1e} relative;")
    print(f"{sum(row['different_predictions'] for row in rows)} predictions differ beyond scikit-learn's own error;")
    print(f"{len(short)} short of the tolerance: {[(r['set'], r['kernel'], r['C'], r['status']) for r in short]}")
    if not options.names:
        write("objective", rows)


def different_predictions(theirs, mine, X, certificate) -> int:
    norms = np.sqrt(mine._kernel.diagonal(X))
    reach = np.sqrt(2 * certificate.gap) * norms + abs(theirs.intercept_[0] - mine.intercept_[0])
    values = theirs.decision_function(X)
    return int(((theirs.predict(X) != mine.predict(X)) & (np.abs(values) > reach)).sum())


if __name__ == "__main__":
    main()
