"""Prediction: seconds for 100,000 rows, beside scikit-learn's and scikit-learn-intelex's SVC with the same kernel and C.

    pip install ".[benchmark]"
    python benchmarks/predict.py [NAME ...]

The rows are drawn from the set itself.  All programs run warm, in one process, and the best time counts; scikit-learn,
which takes one to two orders of magnitude longer, gets a tenth of the rows and its time ten times.
"""

import argparse

import numpy as np
from common import fitted, named_set, seconds_of, write
from fit import all_programs

from zerogap import Gram

NAMES = ("generated-5000x20", "digits", "digits-10", "usps", "usps-10", "a4a")
ROWS, FEWER, WARM = 100_000, 10, 5000  # rows; one in so many for scikit-learn; rows predicted before


def best_seconds(name: str, predict, Z, repeats: int) -> float:
    """Return the seconds that all rows take."""
    share = FEWER if name == "scikit-learn" else 1
    rows = Z[: Z.shape[0] // share]
    predict(Z[:WARM])
    return share * min(seconds_of(predict, rows) for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows, programs = [], all_programs(60.0)
    print(
        f"{'set':<20}{'SV':>6} {'method':<18}"
        + "".join(f"{program.name:>14}" for program in programs)
        + f"{'ratio':>8}"
    )
    for name in options.names or NAMES:
        X, y = named_set(name)
        Z = X[np.random.default_rng(0).integers(0, X.shape[0], ROWS)]
        common = {"C": options.C, "gamma": Gram(X).kernel.gamma, "cache_size": 1000}
        models = {program.name: fitted(program.classifier, X, y, **common) for program in programs}
        for method in ("predict", "decision_function"):
            seconds = {
                program: best_seconds(program, getattr(model, method), Z, options.repeats)
                for program, model in models.items()
            }
            own, *others = seconds.values()
            row = {"set": name, "support": models["zerogap"].support_.size, "method": method, **seconds}
            rows.append(row | {"ratio": min(others) / own})
            print(
                f"{name:<20}{row['support']:>6} {method:<18}"
                + "".join(f"{value:14.3f}" for value in seconds.values())
                + f"{min(others) / own:8.2f}",
                flush=True,
            )
    if not options.names:
        write("predict", rows)


if __name__ == "__main__":
    main()
