"""Which solver? Every solver on six real sets, to the same certified gap.

    python benchmarks/solvers.py [--tol 1e-6] [--max-time 30] [NAME ...]

Solvers for a fixed bias get the same problem without one. Prints a table a set and writes results/solvers.csv.
"""

import argparse

from common import two_class_sets, write

from zerogap import DualProblem, Gram, RelativeGap, compare

SETS = ("breast_cancer", "digits", "german", "splice", "svmguide1", "a1a")
FREE_BIAS = (
    "smo", "smo-mvp", "smo-keerthi", "smo-platt", "smo-simple", "rosen", "simple-svm", "chunking", "decomposition",
)  # fmt: skip
FIXED_BIAS = ("smo", "gradient-ascent", "sor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-time", type=float, default=30.0)
    options = parser.parse_args()
    rows = []
    for name, X, y in two_class_sets():
        if name not in (options.names or SETS):
            continue
        for C in (1.0, 100.0):
            for fit_intercept, solvers in ((True, FREE_BIAS), (False, FIXED_BIAS)):
                problem = DualProblem.hinge(Gram(X), y, C, fit_intercept=fit_intercept)
                table = compare(problem, list(solvers), stop=RelativeGap(options.tol), max_time=options.max_time)
                print(
                    f"\n{name}, {y.size} points, C={C:g}, {'free' if fit_intercept else 'no'} bias\n{table}", flush=True
                )
                rows += [{"set": name, "n": y.size, "C": C, "bias": fit_intercept, **row} for row in table.rows]
    if not options.names:
        write("solvers", rows)


if __name__ == "__main__":
    main()
