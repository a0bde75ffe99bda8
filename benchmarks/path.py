"""The exact path: is it exact everywhere, has it the papers' number of events, and is it faster than a grid?

python benchmarks/path.py exact [NAME ...]     the largest gap over every C, and that of certificates at 1,000 random C
python benchmarks/path.py random [--count N]   random integer-valued problems with heavy duplication
python benchmarks/path.py grids [--count N]    binary and other grids, up to 600 points: nearly every event is a tie
python benchmarks/path.py libsvm [NAME ...]    the objective beside LIBSVM's at 100 random C; unnamed, sets up to 2,000 points
python benchmarks/path.py speed [NAME ...]     the whole path beside a 25-point grid of scikit-learn's SVC
python benchmarks/path.py classes              several classes: gaps of all pairs, the score of the vote, CPU time beside a grid
python benchmarks/path.py integers [--count N] random integer-valued problems of three to five classes
python benchmarks/path.py losses [NAME ...]    regression over C and epsilon, one class over nu: gaps, and time beside a grid
python benchmarks/path.py profile [NAME ...]   where the time of an event goes
python benchmarks/path.py memory               largest memory of a path over 5,000 points, beside the kernel matrix
"""

import argparse
import resource
import time
import warnings
from functools import partial

import numpy as np
from common import certify_peer, fitted, peer, scaled, seconds_of, two_class_sets, write
from sklearn.datasets import load_digits, load_iris, load_wine, make_moons
from sklearn.svm import SVR, OneClassSVM

from zerogap import SVCPath, datasets, one_class_path, svm_path, svr_path

EXACT = (
    "sonar", "heart", "ionosphere", "wbc", "monks-1.test", "monks-2.test", "monks-3.test", "diabetes", "hill-valley", "german",
    "splice-c", "svmguide-c", "raetsch-titanic", "raetsch-flare_solar", "mushrooms",
)  # fmt: skip
REGRESSION = ("housing", "bodyfat", "pyrim", "triazines", "abalone", "cpusmall")
ONE_CLASS = ("breast_cancer", "usps")
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


def classes(options) -> None:
    """Seconds of the processor and by the clock, one after the other in each round, the least of all rounds."""
    columns = f"{'set':<10}{'n':>6}{'pairs':>6}{'events':>8} {'gap':>8} {'random C':>8} {'path s':>7} {'grid s':>7}"
    print(f"{columns} {'clock':>7} {'grid':>7} {'wrong scores':>13}")
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        X = X if name == "digits" else scaled(X)
        model = SVCPath(C_min=1e-2).fit(X, y)
        rounds = [(spent(SVCPath(C_min=1e-2).fit, X, y), spent(fit_grid, X, y)) for _ in range(options.repeats)]
        (ours, clock), (grid, grid_clock) = np.min(rounds, axis=0)
        C = 10 ** np.random.default_rng(0).uniform(-2, 3, options.random)
        random = max(path.worst_certificate(C).relative_gap for path in model.paths_)
        half = SVCPath(C_min=1e-2).fit(X[::2], y[::2])
        curve, some = half.score_curve(X[1::2], y[1::2]), C[: options.random // 10]
        wrong = sum(curve(c) != half.at(c).score(X[1::2], y[1::2]) for c in some)
        print(
            f"{name:<10}{y.size:>6}{len(model.paths_):>6}{model.n_events_:>8} {model.largest_gap_:8.1e} {random:8.1e} "
            f"{ours:7.3f} {grid:7.3f} {clock:7.3f} {grid_clock:7.3f} {f'{wrong} of {some.size}':>13}",
            flush=True,
        )


def spent(function, *arguments) -> tuple[float, float]:
    """Return seconds of the processor, and by the clock."""
    began, clock = time.process_time(), time.perf_counter()
    function(*arguments)
    return time.process_time() - began, time.perf_counter() - clock


def integers(options) -> None:
    worst, count, backups = 0.0, 0, 0
    for seed, X, _, kernel in integer_problems(options.count):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(3, 6))
        if len(X) < k:
            continue
        y = np.concatenate([np.arange(k), rng.integers(0, k, len(X) - k)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SVCPath(**kernel).fit(X, y)
        worst, count = max(worst, model.largest_gap_), count + 1
        backups += sum(path.n_backups for path in model.paths_)
        if model.largest_gap_ > 1e-9:
            print(f"seed {seed}, {X.shape}, {k} classes, {kernel}: gap {model.largest_gap_:.1e}", flush=True)
    print(f"{count} problems: largest gap {worst:.1e}, {backups} backups")


def losses(options) -> None:
    """The other paths, each beside a 25-point grid of scikit-learn over its range; by the processor, and by the clock."""
    rows = []
    print(
        f"{'set':<14} {'over':<14}{'n':>5}{'events':>8}{'elbow':>7} {'path s':>8} {'grid s':>8} {'ratio':>6} {'clock':>6} "
        f"{'proved':>8} {'at all':>8} {'random':>8} backups"
    )
    for name, over, follow, grid_of_fits in loss_paths(options.names):
        path = follow()
        (ours, clock), (grid, grid_clock) = (least(run, options.repeats) for run in (follow, grid_of_fits))
        lam = np.random.default_rng(0).uniform(size=options.random)
        ends = path.value_of(path.lam[[0, -1]])
        some = ends[0] * (ends[1] / ends[0]) ** lam if over == "C" else ends[0] + lam * (ends[1] - ends[0])
        rows.append({
            "set": name, "over": over, "n": path.points.group.size, "events": path.n_events,
            "largest_elbow": int(path.n_free.max()), "path_seconds": ours, "grid_seconds": grid, "ratio": grid / ours,
            "clock_ratio": grid_clock / clock, "proved_gap": path.largest_gap_,
            "breakpoint_gap": worst_gap(path, path.value_of(path.lam)),
            "random_gap": worst_gap(path, some), "backups": path.n_backups,
        })  # fmt: skip
        r = rows[-1]
        print(
            f"{name:<14} {over:<14}{r['n']:>5}{r['events']:>8}{r['largest_elbow']:>7} {ours:8.3f} {grid:8.3f} "
            f"{r['ratio']:6.2f} {r['clock_ratio']:6.2f} {r['proved_gap']:8.1e} {r['breakpoint_gap']:8.1e} "
            f"{r['random_gap']:8.1e} {r['backups']:>7}",
            flush=True,
        )
    if not options.names:
        write("path_losses", rows)


def loss_paths(names):
    """Yield a set, what its path is over, how to follow it, and how to fit scikit-learn's estimator at 25 values of that."""
    for name in (*REGRESSION, *ONE_CLASS):
        if names and name not in names:
            continue
        X, y = datasets.load(name)
        X = scaled(np.asarray(X[:2000]))
        gamma = 1.0 / (X.shape[1] * X.var())
        if name in ONE_CLASS:
            follow = partial(one_class_path, X, gamma=gamma)
            yield (
                name,
                "nu",
                follow,
                partial(fit_others, OneClassSVM, X, None, gamma, "nu", np.geomspace(0.01, 0.99, 25)),
            )
            continue
        y = scaled(y[:2000, None])[:, 0]
        follow = partial(svr_path, X, y, gamma=gamma)
        over_C = partial(fit_others, SVR, X, y, gamma, "C", np.geomspace(1e-2, 1e3, 25))
        yield name, "C", partial(follow, C_min=1e-2), over_C
        # Half of the tubes of an even grid hold nearly all targets, and are fitted in no time.
        widest, follow = 0.5 * np.ptp(y), partial(follow, over="epsilon")
        for grid, tubes in (("", np.geomspace(widest, 1e-3 * widest, 25)), (", even", np.linspace(widest, 0.0, 25))):
            yield name, f"epsilon{grid}", follow, partial(fit_others, SVR, X, y, gamma, "epsilon", tubes)


def fit_others(estimator, X, y, gamma, over, values) -> None:
    for value in values:
        fitted(estimator, X, y, gamma=gamma, cache_size=1000, **{over: value})


def worst_gap(path, values) -> float:
    """Return the largest certified relative gap at some values, rounding included, in twice the precision where need be."""
    worst = 0.0
    for some in np.array_split(values, max(values.size // 64, 1)):
        for value, certificate in zip(some, path.certificates(some, precisely=False), strict=True):
            gap = path.relative_gap(certificate, value)
            worst = max(worst, gap if gap <= 1e-9 else path.relative_gap(path.certificate_at(value), value))
    return worst


def least(run, repeats) -> np.ndarray:
    """Return the least of several times, of the processor and by the clock; what takes long is measured once."""
    found = np.array(spent(run))
    for _ in range(repeats - 1):
        if found[0] > 10.0:
            break
        found = np.minimum(found, spent(run))
    return found


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
    from zerogap.path import Path, lines, proving, screening, single
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
    proving.beside = lambda *work: None  # the proof in this thread, whose clock this is
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
    parser.add_argument(
        "what",
        choices=["exact", "libsvm", "random", "grids", "speed", "classes", "integers", "losses", "profile", "memory"],
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--random", type=int, default=1000, help="random C certified on each path")
    options = parser.parse_args()
    globals()[options.what](options)


if __name__ == "__main__":
    main()
