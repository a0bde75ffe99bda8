"""The exact path: is it exact everywhere, has it the papers' number of events, and is it faster than a grid?

python benchmarks/path.py exact [NAME ...]     the largest gap over every C, and that of certificates at 1,000 random C
python benchmarks/path.py random [--count N]   random integer-valued problems with heavy duplication
python benchmarks/path.py grids [--count N]    binary and other grids, up to 600 points: nearly every event is a tie
python benchmarks/path.py libsvm [NAME ...]    the objective beside LIBSVM's at 100 random C; unnamed, sets up to 2,000 points
python benchmarks/path.py speed [NAME ...]     the whole path beside a 25-point grid of scikit-learn's SVC
python benchmarks/path.py profile [NAME ...]   where the time of an event goes
python benchmarks/path.py memory               largest memory of a path over 5,000 points, beside the kernel matrix
"""

import argparse
import resource
import time
import warnings

import numpy as np
from common import certify_peer, peer, scaled, seconds_of, two_class_sets, write
from sklearn.datasets import make_moons

from zerogap import datasets, svm_path

EXACT = (
    "sonar", "heart", "ionosphere", "wbc", "monks-1.test", "monks-2.test", "monks-3.test", "diabetes", "hill-valley", "german",
    "splice-c", "svmguide-c", "raetsch-titanic", "raetsch-flare_solar", "mushrooms",
)  # fmt: skip
SPEED = ("svmguide1", "german", "a1a", "splice", "diabetes", "breast_cancer", "digits", "moons")


def all_sets():
    yield from two_class_sets()
    yield "moons", *make_moons(5000, noise=0.3, random_state=0)
    if datasets.data_folder() is None:
        return
    for name in ("splice", "svmguide1"):
        (X, y), (X_test, y_test) = datasets.load(name), datasets.load(f"{name}.t")
        joined = "splice-c" if name == "splice" else "svmguide-c"
        yield joined, scaled(np.concatenate([X, X_test])), np.concatenate([y, y_test])
    X, y = datasets.load("mushrooms")
    yield "mushrooms", X[:2000], y[:2000]


def exact(options) -> None:
    rows = []
    titles = f"{'points':>7}{'events':>8}{'of length':>10}{'elbow':>6} {'gap':>8} {'random':>8} backups {'s':>7}"
    print(f"{'set':<20}{'n':>6} {'kernel':<7}{titles}")
    for name, X, y in all_sets():
        if name not in (options.names or EXACT):
            continue
        for kernel in ("linear", "rbf"):
            began = time.perf_counter()
            path = svm_path(X, y, kernel=kernel)
            seconds = time.perf_counter() - began
            gap = path.largest_gap_
            C = 10 ** np.random.default_rng(0).uniform(-4, 3, options.random)
            certificates = (c for part in np.array_split(C, 16) for c in path.certificates(part, precisely=False))
            random = max(c.gap / c.primal for c in certificates)
            rows.append({
                "set": name, "n": y.size, "kernel": kernel, "points": path.points.rows.size, "events": path.n_events,
                "of_length": len(path) - 2, "largest_elbow": int(path.n_free.max()), "gap": gap, "random_gap": random,
                "backups": path.n_backups, "seconds": seconds,
            })  # fmt: skip
            r = rows[-1]
            print(
                f"{name:<20}{y.size:>6} {kernel:<7}{r['points']:>7}{r['events']:>8}{r['of_length']:>10}{r['largest_elbow']:>6} "
                f"{gap:8.1e} {random:8.1e} {r['backups']:>7} {seconds:7.2f}",
                flush=True,
            )
    if not options.names:
        write("path_exact", rows)


def random(options) -> None:
    follow_all(integer_problems(options.count))


def grids(options) -> None:
    follow_all(grid_problems(options.count))


def integer_problems(count):
    """Few distinct values, heavy duplication, labels by chance."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n, d, top = int(rng.integers(2, 40)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        X = rng.integers(0, top + 1, size=(n, d)).astype(float)
        y = np.concatenate([[-1, 1], rng.choice([-1, 1], size=n - 2)])
        yield seed, X, y, {"kernel": ("linear", "rbf")[seed % 2]}


def grid_problems(count):
    """Labels by a vote of some features, now and then against it."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n, d, top = int(rng.integers(20, 601)), int(rng.integers(2, 17)), int(rng.choice([1, 1, 2, 4]))
        X = rng.integers(0, top + 1, size=(n, d)).astype(float)
        votes = X[:, : int(rng.integers(1, d + 1))].mean(axis=1)
        y = np.where((votes >= np.median(votes)) ^ (rng.random(n) < rng.choice([0.0, 0.05, 0.3])), 1, -1)
        y[:2] = -1, 1
        kernel = ("linear", "linear", "poly", "rbf")[seed % 4]
        yield seed, X, y, {"kernel": kernel, "degree": 2, "coef0": 1.0}


def follow_all(problems) -> None:
    worst, backups, events, count = 0.0, 0, 0, 0
    for seed, X, y, options in problems:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is printed here
            path = svm_path(X, y, **options)
        gap = path.largest_gap_
        if gap > 1e-9 or path.n_backups or path.status != "complete":
            print(
                f"seed {seed}, {X.shape}, {options['kernel']}: gap {gap:.1e}, {path.n_backups} backups, {path}",
                flush=True,
            )
        worst, backups, events, count = max(worst, gap), backups + path.n_backups, events + path.n_events, count + 1
    print(f"{count} problems, {events} events: largest gap {worst:.1e}, {backups} backups")


def speed(options) -> None:
    rows = []
    print(f"{'set':<16}{'n':>6}{'events':>8}{'elbow':>7} {'path s':>8} {'grid s':>8} {'ratio':>6}")
    for name, X, y in all_sets():
        if name not in (options.names or SPEED):
            continue
        path = svm_path(X, y, C_min=1e-2)
        ours = min(seconds_of(svm_path, X, y, C_min=1e-2) for _ in range(options.repeats))
        grid = min(seconds_of(fit_grid, X, y) for _ in range(options.repeats))
        rows.append({
            "set": name, "n": y.size, "events": path.n_events, "largest_elbow": int(path.n_free.max()), "path_seconds": ours,
            "grid_seconds": grid, "ratio": grid / ours,
        })  # fmt: skip
        r = rows[-1]
        print(
            f"{name:<16}{y.size:>6}{r['events']:>8}{r['largest_elbow']:>7} {ours:8.3f} {grid:8.3f} {r['ratio']:6.2f}",
            flush=True,
        )
    if not options.names:
        write("path_speed", rows)


def libsvm(options) -> None:
    """Objective at random C, as the paper compares it: ours less LIBSVM's, relative, which must not be positive."""
    for name, X, y in all_sets():
        if name not in options.names and (options.names or name not in EXACT or y.size > 2000):
            continue
        for kernel in ("linear", "rbf"):
            path = svm_path(X, y, kernel=kernel)
            gamma, excess = getattr(path.gram.kernel, "gamma", 1.0), []
            for C in 10 ** np.random.default_rng(0).uniform(-4, 3, 100):
                model = peer(X, y, kernel=kernel, gamma=gamma, C=C, max_iter=1_000_000)
                theirs = certify_peer(model, X, y)
                excess.append((theirs.dual - path.certificate_at(C).dual) / abs(theirs.dual))
            above, below = max(excess), -min(excess)
            print(
                f"{name:<20} {kernel:<7} above LIBSVM's by at most {above:8.1e}, below by up to {below:7.1e}",
                flush=True,
            )


def profile(options) -> None:
    """Wrap the parts of an event with a clock each; parts called by other parts are taken out of those."""
    from zerogap.free_system import DenseFreeSystem
    from zerogap.path import Path, lines, screening, single
    from zerogap.path.screening import Screening
    from zerogap.path.sets import Sets

    spent, stack = {}, [0.0]

    def clocked(title, function):
        def run(*arguments):
            began = time.perf_counter()
            stack.append(0.0)
            result = function(*arguments)
            seconds, inner = time.perf_counter() - began, stack.pop()
            spent[title] = spent.get(title, 0.0) + seconds - inner
            stack[-1] += seconds
            return result

        return run

    parts = [
        (DenseFreeSystem, "solve", "solves"),
        (DenseFreeSystem, "append", "append"),
        (DenseFreeSystem, "remove_with_response", "remove"),
        (Screening, "evaluate_all", "lines afresh"),
        (screening, "change_candidates", "lines updated"),
        (Screening, "screen", "screening"),
        (lines, "ratio_test", "next event"),
        (lines, "pass_ordinary", "ordinary events"),
        (Sets, "move", "bound contribution"),
        (Sets, "sum_bound_contribution", "bound contribution summed afresh"),
        (single.SingleEngine, "steps", "the rest of a step"),
        (Path, "add", "storing"),
        (Path, "add_all", "storing"),
        (Path, "prove", "proof"),
    ]
    names = options.names or SPEED
    svm_path(*make_moons(100, noise=0.3, random_state=0))
    for owner, name, title in parts:
        setattr(owner, name, clocked(title, getattr(owner, name)))
    for name, X, y in all_sets():
        if name in names:
            spent.clear()
            path = svm_path(X, y, C_min=1e-2)
            counts = path.counts
            print(
                f"{name}: {y.size} points, {counts.events} events, mean elbow {path.n_free.mean():.0f}; start "
                f"{counts.start_seconds:.2f} s, tracking {counts.tracking_seconds:.2f} s, of an event in microseconds:"
            )
            for title, seconds in sorted(spent.items(), key=lambda item: -item[1]):
                print(f"  {title:<20} {1e6 * seconds / counts.events:8.1f}")


def memory(options) -> None:
    """Peak memory of a fresh process, as it stands before the path and after it."""
    X, y = make_moons(5000, noise=0.45, random_state=0)
    svm_path(X[:100], y[:100])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    path = svm_path(X, y, C_min=1e-2, max_events=10_000, gamma=3.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    matrix = path.gram.full().nbytes / 2**20
    print(path)
    rest = peak - before - matrix
    print(f"peak {peak:.0f} MB: {before:.0f} before the path, {matrix:.0f} the kernel matrix, {rest:.0f} the rest")


def fit_grid(X, y) -> None:
    for C in np.geomspace(1e-2, 1e3, 25):
        peer(X, y, C=C)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["exact", "libsvm", "random", "grids", "speed", "profile", "memory"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--random", type=int, default=1000, help="random C certified on each path")
    options = parser.parse_args()
    globals()[options.what](options)


if __name__ == "__main__":
    main()
