"""Tables I-IV of Ong, Shao and Yang: SVMP with each linear system, and engine "single" beside it."""

import os
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from sklearn.preprocessing import StandardScaler

from zerogap import Path, datasets, svm_path
from zerogap.path import LP
from zerogap.reproduce import Report, config

PAPER = config(__file__)
SETTINGS = PAPER["settings"]
GAMMA = 1.0 / SETTINGS["sigma"]
SYSTEMS = ("svd", "qr", "qr-update")
QUICK = ("monk-2", "hill-valley")

# Sets we have exactly as the paper has them, as far as one can tell; of the others it is a subset or version it does not give.
SAME = ("monk-1", "monk-2", "monk-3", "hill-valley", "madelon", "splice-c", "svmguide-c")
# On these, duplicates and dependent points leave the sets of an optimal solution open: counts depend on how ties are broken.
DEGENERATE = ("monk-1", "monk-2", "monk-3", "wbc", "splice-c", "german", "ionosphere")


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
        if name in SAME or name in ("heart", "diabetes"):
            report.equal(name, "points", n_points, data.y.size)
        else:
            report.show(name, "points", n_points or None, data.y.size, "the paper does not say which rows it took")
        used = int((data.X.std(axis=0) > 0).sum())
        report.show(name, "features that vary", n_features, used)
        distinct = np.unique(np.column_stack([data.X, data.y]), axis=0).shape[0]
        report.show(name, "distinct points", None, distinct)


def small_sets(report: Report, quick: bool, kernel: str, table: str) -> None:
    """Tables II and III."""
    for name, paper in PAPER[table].items():
        if quick and name not in QUICK:
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
    paths = {system: [follow(data, kernel, LP(system)) for data in copies] for system in systems}
    single = [follow(data, kernel, "single", merge=True) for data in copies]
    counts = [path.counts for path in paths[systems[0]]]
    judge_counts(report, name, "|E|max", elbow, [c.largest_elbow for c in counts])
    backups = abs(mean(c.kkt_backups for c in counts) - n_kkt)  # each is a pass of the main loop, and so an event
    judge_counts(report, name, "events", events, [c.events for c in counts], backups)
    report.show(name, "events, single", None, mean(path.counts.events for path in single))
    report.show(name, "|E|max, single", None, mean(path.counts.largest_elbow for path in single))
    report.show(name, "(m-r)max", null, mean(c.largest_null_space for c in counts), "depends on how ties are broken")
    report.show(name, "t_IR", times[0], mean(c.start_seconds for c in counts))
    for system, seconds in zip(SYSTEMS, times[1:], strict=True):
        if system in paths:
            report.show(name, f"t {system}", seconds, mean(path.counts.tracking_seconds for path in paths[system]))
    report.show(name, "t single", None, mean(path.counts.tracking_seconds for path in single))
    if not quick and kernel == "rbf" and mean(c.largest_elbow for c in counts) > 150:
        svd, qr = (mean(path.counts.tracking_seconds for path in paths[system]) for system in ("svd", "qr"))
        note = (
            "here the linear programs take most of the time" if mean(c.largest_null_space for c in counts) > 5 else ""
        )
        claim = "QR is cheaper than SVD where the elbow is large"
        report.check(name, "QR below SVD", claim, qr < svd, qr / svd, note=note)
    report.show(name, "N_SR", n_special, mean(c.special for c in counts))
    report.show(name, "N_kkt", n_kkt, mean(c.kkt_backups for c in counts))
    judge_costs(report, name, kernel, costs, copies[0], paths[systems[-1]][0], single[0], quick)


def judge_counts(report: Report, name: str, column: str, paper: float, ours: list[int], extra: float = 0.0) -> None:
    value = mean(ours)
    if len(ours) > 1:
        tolerance = max(max(ours) - min(ours), 0.1 * paper)
        report.near(name, column, paper, value, tolerance, "spread over the partitions; the paper's is unknown")
    elif name == "sonar":
        report.near(name, column, paper, value, max(6, 0.1 * paper), "half of the set, which half is unknown")
    elif name in SAME and name not in DEGENERATE:
        why = "the same data, nothing degenerate: ties of rounding, and backups"
        report.near(name, column, paper, value, max(5, 0.01 * paper) + extra, why)
    else:
        why = "ties leave it open" if name in DEGENERATE else "not the same rows as the paper's"
        report.show(name, column, paper, value, why)


def judge_costs(
    report: Report, name: str, kernel: str, paper: list, data: Data, path: Path, single: Path, quick: bool
) -> None:
    """Costs at random lam, drawn evenly as the paper's seem to be (nearly all of them at small C), and evenly in log lam."""
    rng, many = np.random.default_rng(0), 10 if quick else SETTINGS["random_lam"]
    low, high = SETTINGS["lam_min"], SETTINGS["lam_max"]
    draws = {"even": rng.uniform(low, high, many), "log": 10 ** rng.uniform(np.log10(low), np.log10(high), many)}
    unchecked = follow(data, kernel, LP("qr-update", check_kkt=False)) if len(paper) > 1 else None
    for draw, lam in draws.items():
        C = 1.0 / lam
        K, peer = libsvm_costs(data, kernel, C)
        exact = costs_of(single, data, K, C)
        against = {"even": ("LIBSVM", peer), "log": ("exact path", exact)}[draw]
        for title, other, printed in (("cost %", path, paper[0]), ("cost % unchecked", unchecked, paper[-1])):
            if other is not None:
                apart = 100 * np.abs(costs_of(other, data, K, C) / against[1] - 1.0).max()
                report.show(
                    name, f"{title}, {draw}", printed if draw == "even" else None, apart, f"against the {against[0]}"
                )
        report.at_most(name, f"single above LIBSVM, {draw}", 0.0, float((exact / peer - 1.0).max()), limit=1e-9)


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
            row = f"{name}, {kernel}"
            judge = judge_large if name in ("madelon", "svmguide-c") else show_large
            single = follow(data, kernel, "single")
            judge(report, row, ", single", elbow, events, single.counts.largest_elbow, len(single) - 2)
            report.show(row, "t single", None, single.counts.tracking_seconds)
            if (name, kernel) == ("splice-c", "rbf") and not os.environ.get("ZEROGAP_LONG"):
                report.say(f"{row}: engine lp takes more than an hour (2 in the paper); set ZEROGAP_LONG=1 to run it")
                continue
            path = follow(data, kernel, LP("qr-update"))
            judge(report, row, "", elbow, events, path.counts.largest_elbow, path.counts.events)
            report.show(row, "(m-r)max", null, path.counts.largest_null_space)
            report.show(row, "t_IR", start, path.counts.start_seconds)
            report.show(row, "t qr-update", seconds, path.counts.tracking_seconds)


def judge_large(
    report: Report, row: str, engine: str, elbow: int, events: int, our_elbow: int, our_events: int
) -> None:
    report.near(row, f"|E|max{engine}", elbow, our_elbow, 2, "the same data; ties")
    report.near(
        row, f"events{engine}", events, our_events, max(5, 0.0075 * events), "the same data; ties of duplicates"
    )


def show_large(report: Report, row: str, engine: str, elbow: int, events: int, our_elbow: int, our_events: int) -> None:
    report.show(row, f"|E|max{engine}", elbow, our_elbow)
    report.show(
        row, f"events{engine}", events, our_events, "of engine single those of nonzero length" if engine else ""
    )


EXPERIMENTS = {"ong-table-1": table_1, "ong-table-2": table_2, "ong-table-3": table_3, "ong-table-4": table_4}
