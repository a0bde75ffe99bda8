"""Tables I-IV and figure 1 of Ong, Shao and Yang: SVMP with each linear system, and engine "single" beside it."""

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from sklearn.preprocessing import StandardScaler

from zerogap import DualProblem, Gram, Path, datasets, svm_path
from zerogap.path import LP
from zerogap.reproduce import Report, config

PAPER = config(__file__)
SETTINGS = PAPER["settings"]
GAMMA = 1.0 / SETTINGS["sigma"]
SYSTEMS = ("svd", "qr", "qr-update")
QUICK = {"linear": ("monk-2", "hill-valley"), "rbf": ("monk-1", "monk-2")}  # seconds each

# Sets we have exactly as the paper has them, as far as one can tell; of the others it has a part or version it does not give.
SAME = ("monk-1", "monk-2", "monk-3", "hill-valley", "madelon", "splice-c", "svmguide-c")
# Why what is printed may differ from ours, said beside every cell of a set.
WHY = {
    "sonar": "half of the set, which half is unknown",
    "heart": "the mean of partitions; the paper's 170 rows are one that is unknown",
    "diabetes": "the mean of partitions; the paper's 468 rows are one that is unknown",
    "ionosphere": "the paper's is a part of the set that it does not give: 193 points at most",
    "wbc": "the paper's is a part of the set that it does not give: 195 points at most",
    "german": "800 x 27 in the paper, 1000 x 24 here",
    "svmguide3": "another version: 920 events come out with no scaling of this one",
    **dict.fromkeys(
        ("monk-1, linear", "monk-2, linear", "monk-3, linear", "splice-c, linear", "splice-c, rbf"),
        "nominal features: with dependent points the sets of a solution are many, and ties decide which are met",
    ),
}


@dataclass
class Data:
    """One copy of a set: a partition, where there are several."""

    X: np.ndarray
    y: np.ndarray


def load(source: str) -> list[Data]:
    """Return the copies of a set, features scaled to mean 0 and variance 1."""
    if source.startswith("raetsch:"):
        name, folder = source.split(":")[1], datasets.data_folder()
        if folder is None or not (folder / "raetsch.npz").exists():
            raise FileNotFoundError(f"raetsch.npz with the partitions of {name}; set ZEROGAP_DATA to its folder")
        with np.load(folder / "raetsch.npz") as pool:
            X, y = pool[f"{name}_x"], pool[f"{name}_t"].astype(float)
            return [scaled(X[rows], y[rows]) for rows in pool[f"{name}_train_orig"]]
    source, _, every = source.partition("::")
    parts = [datasets.load(name) for name in source.split("+")]
    X = np.concatenate([part[0].toarray() if sp.issparse(part[0]) else part[0] for part in parts])
    y = np.concatenate([part[1] for part in parts])
    return [scaled(X[:: int(every or 1)], y[:: int(every or 1)])]


def scaled(X: np.ndarray, y: np.ndarray) -> Data:
    return Data(StandardScaler().fit_transform(X), np.where(y == y.max(), 1.0, -1.0))


def follow(data: Data, kernel: str, engine, merge: bool = False) -> Path:
    """Follow the paper's range of lam; it keeps duplicates apart, and so do we where counts are compared."""
    return svm_path(
        data.X, data.y, kernel=kernel, gamma=GAMMA, C_min=1 / SETTINGS["lam_max"], C_max=1 / SETTINGS["lam_min"], engine=engine,
        merge_duplicates=merge,
    )  # fmt: skip


@cache
def load_code(kernel: str) -> None:
    """Follow small paths by every engine: what is timed then finds its machine code loaded."""
    X, y = np.random.default_rng(0).standard_normal((120, 60)), np.where(np.arange(120) % 2, 1.0, -1.0)
    singular = X[:, :5].copy()
    singular[::5] = singular[1::5]  # duplicates with conflicting labels
    for data in (scaled(X, y), scaled(singular, y)):
        for engine in (*map(LP, SYSTEMS), "single"):
            follow(data, kernel, engine)


def cost(K: np.ndarray, y: np.ndarray, beta: np.ndarray, bias: float, C: float) -> float:
    """1/2 w'w + C sum of slacks, at this very bias."""
    f = K @ beta
    return 0.5 * beta @ f + C * np.maximum(0.0, 1.0 - y * (f + bias)).sum()


def libsvm_costs(data: Data, kernel: str, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel matrix and LIBSVM's costs, with its own bias."""
    X, y = data.X, data.y
    squares = (X**2).sum(axis=1)
    K = X @ X.T
    if kernel == "rbf":
        K = np.exp(-GAMMA * np.maximum(squares[:, None] + squares - 2 * K, 0.0))
    costs = []
    for c in C:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = sklearn.svm.SVC(C=c, kernel=kernel, gamma=GAMMA, max_iter=2_000_000, cache_size=500).fit(X, y)
        beta = np.zeros(y.size)
        beta[model.support_] = model.dual_coef_[0]
        costs.append(cost(K, y, beta, float(model.intercept_[0]), c))
    return K, np.array(costs)


def costs_of(path: Path, data: Data, K: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return the costs of a path's solutions, each with its own bias."""
    return np.array([cost(K, data.y, path.coefficients_at(c), path.bias_at(c), c) for c in C])


def table_1(report: Report, quick: bool) -> None:
    for name, (n_points, n_features, source) in PAPER["table_1"].items():
        try:
            data = load(source)[0]
        except FileNotFoundError as error:
            report.say(f"{name}: {error}")
            continue
        if n_points:
            report.equal(name, "points", n_points, data.y.size, WHY.get(name, ""))
        else:
            report.show(name, "points", None, data.y.size, "not printed")
        used = int((data.X.std(axis=0) > 0).sum())
        report.show(name, "features that vary", n_features, used)
        distinct = np.unique(np.column_stack([data.X, data.y]), axis=0).shape[0]
        report.show(name, "distinct points", None, distinct)


def small_sets(report: Report, quick: bool, kernel: str, table: str) -> None:
    """Tables II and III."""
    for name, paper in PAPER[table].items():
        if quick and name not in QUICK[kernel]:
            continue
        try:
            copies = load(PAPER["table_1"][name][2])
        except FileNotFoundError as error:
            report.say(f"{name}: {error}")
            continue
        one_row(report, name, kernel, paper, copies, quick)


def one_row(report: Report, name: str, kernel: str, paper: list, copies: list[Data], quick: bool) -> None:
    elbow, events, null, *times = paper[:7]
    costs, n_special, n_kkt = paper[7:-2], paper[-2], paper[-1]
    systems = ("qr-update",) if quick else SYSTEMS
    load_code(kernel)
    paths = {system: [follow(data, kernel, LP(system)) for data in copies] for system in systems}
    single = [follow(data, kernel, "single", merge=True) for data in copies]
    counts, why = [path.counts for path in paths[systems[0]]], why_of(name, kernel)
    judge_count(report, name, "|E|max", elbow, mean(c.largest_elbow for c in counts), why)
    judge_count(report, name, "events", events, mean(c.events for c in counts), why)
    judge_count(report, name, "(m-r)max", null, mean(c.largest_null_space for c in counts), why)
    judge_count(report, name, "N_SR", n_special, mean(c.special for c in counts), why)
    judge_count(report, name, "N_kkt", n_kkt, mean(c.kkt_backups for c in counts), why)
    report.show(name, "events, single", None, mean(path.counts.events for path in single))
    report.show(name, "|E|max, single", None, mean(path.counts.largest_elbow for path in single))
    report.show(name, "t_IR", times[0], mean(c.start_seconds for c in counts))
    for system, seconds in zip(SYSTEMS, times[1:], strict=True):
        if system in paths:
            report.show(name, f"t {system}", seconds, mean(path.counts.tracking_seconds for path in paths[system]))
    report.show(name, "t single", None, mean(path.counts.tracking_seconds for path in single))
    if not quick and kernel == "rbf":
        svd, qr = (mean(path.counts.tracking_seconds for path in paths[system]) for system in ("svd", "qr"))
        claim = "§VIII: QR brings the time with the Gaussian kernel down"
        report.claim(name, "QR / SVD", claim, qr < svd, qr / svd, times[2] / times[1])
    judge_costs(report, name, kernel, costs, copies[0], paths[systems[-1]][0], single[0], quick)


def why_of(name: str, kernel: str) -> str:
    return WHY.get(name, WHY.get(f"{name}, {kernel}", ""))


def judge_count(report: Report, row: str, column: str, paper: float, ours: float, why: str) -> None:
    """One rule for every count: a hundredth, and two for ties that rounding decides."""
    report.near(row, column, paper, ours, 2 + 0.01 * paper, why)


def judge_costs(
    report: Report, name: str, kernel: str, paper: list, data: Data, path: Path, single: Path, quick: bool
) -> None:
    """Costs at random lam, drawn evenly as the paper's seem to be (nearly all of them at small C), and evenly in log lam."""
    rng, many = np.random.default_rng(0), 10 if quick else SETTINGS["random_lam"]
    low, high = SETTINGS["lam_min"], SETTINGS["lam_max"]
    draws = {"even": rng.uniform(low, high, many), "log": 10 ** rng.uniform(np.log10(low), np.log10(high), many)}
    unchecked = follow(data, kernel, LP("qr-update", check_kkt=False)) if len(paper) > 1 and not quick else None
    for draw, lam in draws.items():
        C = 1.0 / lam
        K, peer = libsvm_costs(data, kernel, C)
        exact = costs_of(single, data, K, C)
        against = {"even": ("LIBSVM", peer), "log": ("exact path", exact)}[draw]
        for title, other, printed in (("cost %", path, paper[0]), ("cost % unchecked", unchecked, paper[-1])):
            if other is None:
                continue
            apart = 100 * np.abs(costs_of(other, data, K, C) / against[1] - 1.0).max()
            if draw == "even" and not quick:
                why = "the largest of 100 at random lam, against LIBSVM: its size is what can be compared"
                report.within_factor(name, f"{title}, even", printed, apart, 3.0, why)
            else:
                report.show(name, f"{title}, {draw}", None, apart, f"against the {against[0]}")
        above = float((exact / peer - 1.0).max())
        report.check(name, f"single above LIBSVM, {draw}", "at most 1e-09", above <= 1e-9, above)


def mean(values) -> float:
    values = list(values)
    result = float(np.mean(values))
    return int(result) if all(isinstance(v, int) for v in values) and result.is_integer() else result


def table_2(report: Report, quick: bool) -> None:
    small_sets(report, quick, "linear", "table_2")


def table_3(report: Report, quick: bool) -> None:
    small_sets(report, quick, "rbf", "table_3")


def table_4(report: Report, quick: bool) -> None:
    for name, paper in PAPER["table_4"].items():
        if quick and name != "svmguide3":
            continue
        try:
            data = load(PAPER["table_1"][name][2])[0]
        except FileNotFoundError as error:
            report.say(f"{name}: {error}")
            continue
        for kernel, (elbow, events, null, start, seconds) in (("linear", paper[:5]), ("rbf", paper[5:])):
            if quick and kernel == "rbf":
                continue
            row, why = f"{name}, {kernel}", why_of(name, kernel)
            load_code(kernel)
            single = follow(data, kernel, "single")
            judge_count(report, row, "|E|max, single", elbow, single.counts.largest_elbow, why)
            judge_count(report, row, "events of nonzero length, single", events, len(single) - 2, why)
            report.show(row, "t single", None, single.counts.tracking_seconds)
            counts = follow(data, kernel, LP("qr-update")).counts
            judge_count(report, row, "|E|max", elbow, counts.largest_elbow, why)
            judge_count(report, row, "events", events, counts.events, why)
            judge_count(report, row, "(m-r)max", null, counts.largest_null_space, why)
            report.show(row, "t_IR", start, counts.start_seconds)
            report.show(row, "t qr-update", seconds, counts.tracking_seconds)


def figure_1(report: Report, quick: bool) -> None:
    """The feasible set (50) of a linear program with one free direction, and what the theorem says of it."""
    # A rectangle of four points on two parallel lines, each class on one: its diagonals meet, so the four depend on each other.
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 2.0], [1.0, 2.0], [0.3, 3.0], [-0.2, -0.9], [0.1, 0.4]])
    y = np.array([-1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0])
    path = svm_path(X, y, kernel="linear", C_min=0.05, C_max=50.0, merge_duplicates=False)
    places = [C for C in np.sqrt(path.C[1:] * path.C[:-1]) if path.solution_set_at(C).dimension == 1]
    C = float(places[0])
    region = [(c, path.solution_set_at(float(c))) for c in np.linspace(*interval_of(path, C), 60)[1:-1]]
    claim = "Theorem (i): every beta in pi(lam) gives a solution"
    worst = max(path_gap(path, X, y, c, corner) for c, several in region for corner in several.vertices())
    report.check("one free direction", "largest gap over the region", claim, worst <= 1e-9, worst)
    several = path.solution_set_at(C)
    ends = several.vertices()
    claim = "the boundary of pi(lam) has two elements, in each of which a point of the elbow is at 0 or 1"
    cap = several.upper - several.lower
    at_bound = [int(((np.abs(end) <= 1e-12) | (np.abs(end) >= cap * (1 - 1e-12)))[cap > 0].sum()) for end in ends]
    report.check(
        "one free direction", "points at a bound there", claim, len(ends) == 2 and min(at_bound) >= 1, str(at_bound)
    )
    inside = several.coefficients
    claim = "and in the interior none: three combinations of sets for one lam"
    bound = int(((np.abs(inside) <= 1e-12) | (np.abs(inside) >= cap * (1 - 1e-12)))[cap > 0].sum())
    report.check("one free direction", "points at a bound inside", claim, bound == 0, bound)
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        report.say("no figure: matplotlib is not installed")
        return
    u = several.directions[:, 0]
    beta = np.array([[(corner - several.coefficients) @ u / c for corner in s.vertices()] for c, s in region])
    beta.sort(axis=1)
    lam = 1.0 / np.array([c for c, _ in region])
    figure, ax = plt.subplots(figsize=(6, 4))
    ax.fill_betweenx(
        lam - lam[0], beta[:, 0], beta[:, 1], alpha=0.25, label=r"$\Pi$, feasible $(\delta_\lambda, \beta)$"
    )
    k = lam.size // 2
    ax.plot(beta[k], [lam[k] - lam[0]] * 2, "o-", label=r"$\pi(\lambda)$ and its boundary")
    ax.set(xlabel=r"$\beta$", ylabel=r"$\delta_\lambda$", title="Where one direction of the elbow is free (r = m - 1)")
    ax.legend(loc="upper left", fontsize=9)
    report.save_figure(figure, "ong-figure-1")
    plt.close(figure)


def interval_of(path: Path, C: float) -> tuple[float, float]:
    """Return the breakpoints on both sides of C."""
    k = int(np.searchsorted(path.C, C))
    return float(path.C[k - 1]), float(path.C[k])


def path_gap(path: Path, X: np.ndarray, y: np.ndarray, C: float, beta: np.ndarray) -> float:
    return DualProblem.hinge(Gram(X, "linear"), y, C).certify(beta).relative_gap


EXPERIMENTS = {
    "ong-table-1": table_1, "ong-table-2": table_2, "ong-table-3": table_3, "ong-table-4": table_4, "ong-figure-1": figure_1,
}  # fmt: skip
