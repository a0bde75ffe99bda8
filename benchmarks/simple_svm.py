"""SimpleSVM beside the paper's tables I-IV: iterations, support vectors and kernel evaluations for every C'.

python benchmarks/simple_svm.py [two-spirals | wbc | a1a | a4a ...] [--choice greedy|worst]

As in the paper: squared hinge, exp(-|x - z|² / (2 sigma²)), features as they come, y f > 0.999 to stop (each of the two classes
may be off by 0.001, so the KKT violation by 0.002).  Kernel evaluations are given in units of n², the whole matrix.
"""

import argparse
import time

from common import write

from zerogap import DualProblem, Gram, KKTViolation, datasets, solve
from zerogap.solvers import SimpleSVM

VARIANCE = {"two-spirals": 0.5, "wbc": 4.0, "a1a": 10.0, "a4a": 10.0}  # sigma²

# C', iterations, support vectors, kernel evaluations in millions.  Table III has two columns exchanged for C' = 1.
PAPER = {
    "two-spirals": (
        (0.03, 192, 194, 0.038), (0.1, 192, 194, 0.038), (0.2, 192, 194, 0.038), (0.3, 192, 194, 0.038),
        (0.6, 192, 194, 0.038), (1.0, 192, 194, 0.038), (2.0, 199, 194, 0.038), (3.0, 201, 194, 0.038), (5.0, 204, 188, 0.040),
        (10, 204, 184, 0.039), (50, 240, 182, 0.044), (100, 240, 180, 0.045), (500, 250, 178, 0.054), (1000, 250, 176, 0.055),
    ),
    "wbc": (
        (0.03, 665, 652, 0.490), (0.1, 599, 505, 0.518), (0.2, 587, 473, 0.493), (0.3, 549, 434, 0.461),
        (0.6, 476, 360, 0.411), (1.0, 454, 352, 0.414), (2.0, 420, 330, 0.384), (3.0, 399, 327, 0.372), (5.0, 400, 320, 0.434),
        (10, 383, 311, 0.406), (50, 372, 304, 0.456), (100, 364, 302, 0.451), (500, 356, 296, 0.443),
    ),
    "a1a": (
        (0.03, 1603, 1602, 2.58), (0.1, 1535, 1377, 3.07), (0.2, 1459, 1246, 3.03), (0.3, 1394, 1192, 2.99),
        (0.6, 1315, 1119, 2.83), (1.0, 1272, 1077, 2.73), (2.0, 1257, 1032, 2.77), (3.0, 1252, 996, 2.90),
        (5.0, 1217, 951, 2.23), (10, 1191, 898, 2.88), (50, 1176, 776, 2.82), (100, 1188, 735, 3.18), (500, 1200, 687, 3.08),
        (1000, 1224, 677, 3.20),
    ),
    "a4a": (
        (0.03, 4554, 4112, 26.5), (0.1, 4051, 3571, 25.7), (0.2, 3799, 3384, 24.5), (0.3, 3700, 3305, 23.9),
        (0.6, 3605, 3201, 24.0), (1.0, 3552, 3117, 23.6), (2.0, 3517, 2999, 24.4), (3.0, 3466, 2911, 26.6),
        (5.0, 3448, 2882, 26.3), (10, 3486, 2679, 26.4), (50, 3336, 2313, 26.4), (100, 3420, 2194, 30.6),
        (500, 3590, 2032, 27.4), (1000, 3662, 1967, 30.2),
    ),
}  # fmt: skip


def run(name: str, X, y, choice: str) -> list[dict]:
    rows = []
    for C, iterations, support, evaluations in PAPER[name]:
        gram = Gram(X, gamma=0.5 / VARIANCE[name])
        began = time.perf_counter()
        problem = DualProblem.squared_hinge(gram, y, C)
        solution = solve(problem, SimpleSVM(choice), stop=KKTViolation(2e-3))
        rows.append({
            "set": name, "n": y.size, "choice": choice, "C": C, "iterations": solution.n_iter, "paper_iterations": iterations,
            "support": solution.support.size, "paper_support": support, "evaluations": gram.evaluations,
            "paper_evaluations": round(1e6 * evaluations), "status": solution.status.name,
            "gap": solution.certificate.relative_gap, "seconds": time.perf_counter() - began,
        })  # fmt: skip
        r, n2 = rows[-1], y.size**2
        print(
            f"{name:<12}{C:>7g} {solution.n_iter:>6}{iterations:>6} {r['support']:>6}{support:>6} "
            f"{gram.evaluations / n2:>7.3f}{1e6 * evaluations / n2:>7.3f} "
            f"{'' if gram.evaluations <= r['paper_evaluations'] else 'MORE':>4} {r['gap']:8.1e} {r['seconds']:7.2f}",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="data sets, by default all four")
    parser.add_argument("--choice", choices=["greedy", "worst"], default="greedy")
    options = parser.parse_args()
    print(
        f"{'set':<12}{'C':>7} {'iterations':>6}{'':>2} {'support':>9}{'':>3} {'evaluations/n²':>14}      {'gap':>8} {'s':>7}"
    )
    print(f"{'':<19} {'ours':>6}{'paper':>6} {'ours':>6}{'paper':>6} {'ours':>7}{'paper':>7}")
    rows = []
    for name in options.names or PAPER:
        if name != "two-spirals" and datasets.data_folder() is None:
            print(f"{name}: no local data folder (set ZEROGAP_DATA)")
            continue
        X, y = datasets.two_spirals() if name == "two-spirals" else datasets.load(name)
        rows += run(name, X, y, options.choice)
    if not options.names and options.choice == "greedy":
        write("simple_svm", rows)


if __name__ == "__main__":
    main()
