"""Figures 1-6, Table 1 and section 3.4 of Ding: SMO-Simple against SVM-Light's choice of pairs on the spirals.

The paper draws its data once and does not say how; we show one run beside the average of many, for every reading of its text.
Symbols: mu = gamma of the kernel; q_k = (beta_k - beta*)'K(beta_k - beta*), which is (alpha_k - alpha*)'Q(alpha_k - alpha*).
"""

import hashlib
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import sklearn.svm
from scipy.optimize import linprog

from zerogap import SVC, DualProblem, Gram, KKTViolation, RelativeGap, Solution, Status, datasets, solve
from zerogap.reproduce import Report, config
from zerogap.solvers import SMO, SimpleSMO

PAPER = config(__file__)
SETTINGS = PAPER["settings"]
C, MU, TOLERANCE = SETTINGS["C"], SETTINGS["mu"], SETTINGS["tolerance"]
NOISES = {"deviation 0.2": SETTINGS["noise"], "variance 0.2": SETTINGS["noise"] ** 0.5}
SPLITS = ("every other", "at random")
RULES = {"smo-mvp": "SVM-Light (smo-mvp)", "smo-simple": "SMO-Simple"}
OTHER_BIAS = "smo-simple, Platt's bias"  # not that of §2.2.3
# The reading that Table 1 fits best; figures of one run show it, with the first seed.
BEST = ("deviation 0.2", "every other")

# Table 1 does not give its C: besides that of §3.1, the largest of §3.3 and one beyond; mu = 0.1 asks for more still.
LARGEST_C, BEYOND, SEPARATING_C = 10.0, 1000.0, 1e5

FAR_TOO_MANY = 20_000  # iterations: several times what the longest of these runs takes
EXACT = 1e-12  # relative gap of beta*
# q is trusted down to this part of its start, about 1e-10: from beta* with this gap to one with 1e-15 it is 1e-20.
TRUSTED = 1e-12


def seeds(quick: bool) -> range:
    return range(2 if quick else SETTINGS["seeds"])


# Data.


@dataclass(frozen=True)
class Data:
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@cache
def draw(noise: str, split: str, seed: int) -> Data:
    """Return one draw of the spirals, half of it to train; "uniformly" may mean every other point, or a random half."""
    X, y = datasets.spiral(SETTINGS["points"], NOISES[noise], random_state=seed)
    order = np.arange(y.size).reshape(-1, 2).T.ravel()
    if split == "at random":
        order = np.random.default_rng(seed).permutation(y.size)
    train, test = np.split(order, [SETTINGS["train"]])
    return Data(X[train], y[train], X[test], y[test])


# Runs.


@dataclass(frozen=True)
class Course:
    """What one solver did from zero to the tolerance; of the coefficients themselves only a digest is kept."""

    data: Data
    mu: float
    C: float
    distance: np.ndarray  # (iterations + 1,) q_k, squared distance to the optimum
    violation: np.ndarray  # (iterations + 1,)
    star: np.ndarray  # beta*
    settled: int  # from here on every coefficient is at the bound where beta* has it, or free if it is there
    largest: float  # largest |beta| on the way
    digest: bytes  # of all coefficients on the way

    @property
    def iterations(self) -> int:
        return len(self.distance) - 1

    @property
    def support(self) -> int:
        return int(np.count_nonzero(self.star))

    @property
    def least(self) -> int:
        """Iterations without which no solver gets there: each support vector has to be moved, two an iteration."""
        return -(-self.support // 2)

    @property
    def free(self) -> np.ndarray:
        return np.flatnonzero(sides(self.star, self.C) == 0)

    @property
    def ratio(self) -> np.ndarray:
        """q_{k+1} / q_k: what figures 2, 4 and 5 show."""
        return self.distance[1:] / self.distance[:-1]

    def first(self, is_there: np.ndarray) -> int:
        """Return the first iteration at which something is there, the last if it never is."""
        return int(np.argmax(is_there)) if is_there.any() else self.iterations


def run(
    noise: str, seed: int, solver: str = "smo-mvp", mu: float = MU, C: float = C, tolerance: float = TOLERANCE
) -> Course:
    data = draw(noise, BEST[1], seed)
    problem = DualProblem.hinge(Gram(data.X, gamma=mu), data.y, C)
    betas, violations = [], []

    def look(state, seen) -> None:
        if seen.step == len(betas):  # the loop looks twice where a solver has nothing left to move
            betas.append(state.beta.copy())
            violations.append(seen.violation)

    made: Any = {
        "smo-simple": SimpleSMO(tolerance, random_state=seed, bias="mean"),  # the bias of §2.2.3
        OTHER_BIAS: SimpleSMO(tolerance, random_state=seed),
    }.get(solver, solver)
    stop = KKTViolation(tolerance)
    end = solve(problem, made, stop=stop, callback=look, trace_every=1, max_steps=FAR_TOO_MANY)
    assert end.status in (Status.CONVERGED, Status.EXHAUSTED), end
    exact = solve(problem, stop=RelativeGap(EXACT))
    assert exact.certificate.relative_gap <= EXACT
    beta, star = np.array(betas), exact.beta
    apart = beta - star
    distance = np.einsum("ki,ki->k", apart @ problem.gram.full(), apart)
    differs = (sides(beta, C) != sides(star, C)).any(axis=1)
    settled = int(np.flatnonzero(differs).max(initial=-1)) + 1
    largest, digest = float(np.abs(beta).max()), hashlib.sha256(beta.tobytes()).digest()
    return Course(data, mu, C, distance, np.array(violations), star, settled, largest, digest)


def sides(beta: np.ndarray, C: float) -> np.ndarray:
    """Return -1 for coefficients at zero, 1 for those at C, 0 for the free ones."""
    return np.where(beta == 0, -1, np.where(np.abs(beta) == C, 1, 0))


def errors(data: Data, mu: float, C: float) -> tuple[float, float]:
    """Return the part of the training and of the test points on the wrong side, at the optimum."""
    model = SVC(C, gamma=mu, tol=1e-8).fit(data.X, data.y)
    return 1.0 - float(model.score(data.X, data.y)), 1.0 - float(model.score(data.X_test, data.y_test))


def average(values) -> float:
    return float(np.mean(list(values)))


# Drawing.


def plotting(report: Report) -> ModuleType | None:
    """Return pyplot without a screen, or None where it is not installed or no figure is kept."""
    if report.folder is None:
        return None
    try:
        import matplotlib
    except ImportError:
        report.say("no figure: matplotlib is not installed")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def axes(plt: ModuleType, columns: int, title: str):
    figure, panels = plt.subplots(1, columns, figsize=(4.2 * columns, 3.4), layout="constrained", squeeze=False)
    figure.suptitle(title, fontsize=10)
    return figure, panels[0]


def keep(report: Report, plt: ModuleType, figure) -> None:
    report.save_figure(figure, report.name)
    plt.close(figure)


def draw_ratio(panel, courses: dict[str, Course], *, most: int = SETTINGS["max_iterations"]) -> None:
    for label, course in courses.items():
        panel.plot(course.ratio[:most], lw=0.7, label=label)
    panel.axhline(1.0, color="black", lw=0.6)
    panel.set(xlabel="iteration k", ylabel="$q_{k+1} / q_k$", ylim=(0.6, 1.15))
    panel.legend(fontsize=7)


def draw_distance(panel, courses: dict[str, list[Course]], *, most: int = SETTINGS["max_iterations"]) -> None:
    """One run as a thin line, the median of all as a thick one; a run that has ended stays where it is."""
    for color, (label, runs) in enumerate(courses.items()):
        length = min(most, max(course.iterations for course in runs)) + 1
        relative = np.stack([extended(course.distance / course.distance[0], length) for course in runs])
        panel.semilogy(relative[0], lw=0.7, color=f"C{color}", alpha=0.6)
        panel.semilogy(np.median(relative, axis=0), lw=1.6, color=f"C{color}", label=label)
    panel.set(xlabel="iteration k", ylabel="$q_k / q_0$ (thin: one run, thick: median)")
    panel.legend(fontsize=7)


def extended(values: np.ndarray, length: int) -> np.ndarray:
    return np.append(values[:length], np.full(max(0, length - values.size), values[-1]))


# Figure 1.


def figure_1(report: Report, quick: bool) -> None:
    exact, _ = datasets.spiral(SETTINGS["points"], 0.0)
    report.check("without noise", "formula", "the paper's formula, to rounding", *formula_error(exact))
    for noise, deviation in NOISES.items():
        X, y = datasets.spiral(SETTINGS["points"], deviation, random_state=0)
        off = 4 * deviation / np.sqrt(2 * X.size)
        found = float((X - exact).std())
        rule = f"within {off:g} of {deviation:.4g}: four standard errors"
        report.check(noise, "noise", rule, abs(found - deviation) <= off, found)
        report.claim(noise, "linearly separable", "no plane separates the classes", not is_separable(X, y), "no", "no")
        report.show(noise, "nearest of other class", None, average(nearest_other(s, deviation) for s in seeds(quick)))
    if (plt := plotting(report)) is not None:
        figure, panels = axes(plt, len(NOISES), "Spiral data, m = 600")
        for panel, (noise, deviation) in zip(panels, NOISES.items(), strict=True):
            scatter(panel, *datasets.spiral(SETTINGS["points"], deviation, random_state=0))
            panel.set_title(f"0.2 as {noise.split()[0]}", fontsize=9)
        keep(report, plt, figure)


def formula_error(X: np.ndarray) -> tuple[bool, float]:
    """Return whether these are the points of §1, and by how much not."""
    m = len(X) // 2
    expected = []
    for turn in (0.0, np.pi):
        for i in range(1, m + 1):
            r = 1 + (i - 1) * 2 * np.pi / (m - 1)
            expected.append((r * np.sin(2 * r + turn), r * np.cos(2 * r + turn)))
    error = float(np.abs(X - expected).max())
    return error < 1e-12, error


def is_separable(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether some w, b have y (w'x + b) >= 1 everywhere: a linear program."""
    rows = -y[:, None] * np.column_stack([X, np.ones(y.size)])
    return linprog(np.zeros(3), A_ub=rows, b_ub=-np.ones(y.size), bounds=(None, None)).status == 0


def nearest_other(seed: int, deviation: float) -> float:
    X, y = datasets.spiral(SETTINGS["points"], deviation, random_state=seed)
    return float(np.linalg.norm(X[y > 0][:, None] - X[y < 0], axis=2).min())


def scatter(panel, X: np.ndarray, y: np.ndarray) -> None:
    for label, color in ((1, "C3"), (-1, "C0")):
        panel.scatter(*X[y == label].T, s=5, color=color, label=f"{label:+d}")
    panel.set(xlabel="$x_1$", ylabel="$x_2$")
    panel.set_aspect("equal")


# Figures 2 and 3: the two rules, and the rate of SVM-Light's.


def figure_2(report: Report, quick: bool) -> None:
    courses = {}
    for noise in NOISES:
        courses[noise] = {rule: [run(noise, seed, rule) for seed in seeds(quick)] for rule in RULES}
        for rule, name in RULES.items():
            judge_rule(report, f"{name}, {noise}", PAPER["figure_2"][rule], courses[noise][rule])
        other = average(run(noise, seed, OTHER_BIAS).iterations for seed in seeds(quick))
        report.show(f"SMO-Simple, {noise}", "iterations, Platt's bias", None, other, "average; not the text's §2.2.3")
        compare_rules(report, noise, courses[noise]["smo-mvp"], courses[noise]["smo-simple"])
    if (plt := plotting(report)) is not None:
        figure, panels = axes(plt, 2, f"Two ways to choose a pair: C = {C}, mu = {MU}, 0.2 as deviation")
        shown = {RULES[rule]: runs for rule, runs in courses[BEST[0]].items()}
        draw_ratio(panels[0], {label: runs[0] for label, runs in reversed(shown.items())}, most=400)
        draw_distance(panels[1], shown)
        keep(report, plt, figure)


def judge_rule(report: Report, row: str, paper: int, runs: list[Course]) -> None:
    one = runs[0]
    report.show(row, "iterations, one run", paper, one.iterations, "to a KKT violation of 0.001; simple: its own rule")
    judge_count(report, row, paper, runs)
    now = min(paper, one.iterations)
    report.show(row, "violation at the paper's", TOLERANCE, float(one.violation[now]), "one run")
    report.show(row, "q_k / q_0 there", None, float(one.distance[now] / one.distance[0]))


def judge_count(report: Report, row: str, paper: int, runs: list[Course]) -> None:
    """The paper's count against those of all seeds, and against the least that is possible at all."""
    counts = [course.iterations for course in runs]
    claim = "the paper's count lies between the least and the largest of the seeds"
    note = f"{min(counts)} to {max(counts)}"
    report.claim(row, "iterations, average", claim, min(counts) <= paper <= max(counts), average(counts), paper, note)
    least = min(course.least for course in runs)
    claim = "the paper's count is at least half the support vectors: an iteration moves two coefficients"
    note = "" if paper >= least else "that run ended before every support vector had been moved once"
    report.claim(row, "least possible", claim, paper >= least, least, paper, note)


def compare_rules(report: Report, row: str, light: list[Course], simple: list[Course]) -> None:
    paper = PAPER["figure_2"]["smo-simple"] / PAPER["figure_2"]["smo-mvp"]
    times = average(b.iterations / a.iterations for a, b in zip(light, simple, strict=True))
    holds = all(a.iterations < b.iterations for a, b in zip(light, simple, strict=True))
    report.claim(row, "simple / light", "SVM-Light needs fewer iterations, every seed", holds, times, paper)
    rough = [average(map(roughness, runs)) for runs in (light, simple)]
    claim = "SMO-Simple's progress fluctuates more"
    note = "mean change of q_{k+1} / q_k between iterations over the mean of 1 - q_{k+1} / q_k, while q falls to a hundredth"
    report.claim(row, "fluctuation, light", claim, rough[0] < rough[1], rough[0], note=note)
    report.show(row, "fluctuation, simple", None, rough[1])


def roughness(course: Course) -> float:
    """Mean change of the ratio between iterations, over the mean progress, on the way to a hundredth of the distance."""
    ratio = course.ratio[: course.first(course.distance <= 0.01 * course.distance[0])]
    return float(np.abs(np.diff(ratio)).mean() / (1 - ratio).mean())


def figure_3(report: Report, quick: bool) -> None:
    courses = {noise: [run(noise, seed, tolerance=1e-6) for seed in seeds(quick)] for noise in NOISES}
    for noise, runs in courses.items():
        local = [local_ratios(course) for course in runs]
        enough = [k for k, ratios in enumerate(local) if ratios.size >= 10]
        report.show(noise, "runs long enough", None, len(enough), "ten iterations or more with settled bounds")
        report.show(noise, "settled after", None, average(course.settled for course in runs), "every bound is right")
        report.show(noise, "iterations in all", None, average(course.iterations for course in runs))
        report.show(noise, "free coefficients", None, average(runs[k].free.size for k in enough))
        rises = average((course.ratio[: course.settled] > 1).sum() for course in runs)
        report.show(
            noise, "ratios above 1 before", 0, rises, "while bounds change, q may grow although the dual does not"
        )
        worst = [float(local[k].max()) for k in enough]
        bounds = [rate_bound(runs[k]) for k in enough]
        claim = "below 1 once the bounds have settled (§3.2), every seed"
        report.claim(noise, "largest ratio after", claim, max(worst) < 1, max(worst))
        claim = "no ratio above the constant of §3.2 for the free points, every seed"
        holds = all(ratio <= 1 - below for ratio, (below, _) in zip(worst, bounds, strict=True))
        report.claim(noise, "1 - c, free", claim, holds, average(below for below, _ in bounds))
        report.show(noise, "1 - c, all points", None, average(below for _, below in bounds), "Q of all 300, as printed")
        report.show(noise, "1 - rate", None, average(1 - np.exp(np.log(local[k]).mean()) for k in enough))
        straight = average(straightness(course) for course in (runs[k] for k in enough))
        report.claim(noise, "straight line", "log q falls along a line: R² above 0.9", straight > 0.9, straight)
    if (plt := plotting(report)) is not None:
        draw_rate(report, plt, courses[BEST[0]])


def is_local(course: Course) -> slice:
    """The iterations with settled bounds, as long as beta* is known well enough to measure q."""
    q = course.distance
    return slice(course.settled, max(course.settled, course.first(q < TRUSTED * q[0])))


def local_ratios(course: Course) -> np.ndarray:
    return course.ratio[is_local(course)]


def straightness(course: Course) -> float:
    """R² of log q as a linear function of k, once the bounds have settled."""
    log_q = np.log(course.distance[is_local(course)])
    return float(np.corrcoef(np.arange(log_q.size), log_q)[0, 1] ** 2)


def rate_bound(course: Course) -> tuple[float, float]:
    """Return 1 - c of §3.2 for the free points, which are those that still move, and for all points as it is printed."""
    K = Gram(course.data.X, gamma=course.mu).full()
    return one_minus_c(K[np.ix_(course.free, course.free)]), one_minus_c(K)


def one_minus_c(K: np.ndarray) -> float:
    """min over pairs B of  min eig(Q_BB^-1) / (2 l max eig(Q^-1)) (y'Q^-1 y / sum |Q^-1|)²; labels cancel, K_ii = 1."""
    inverse = np.linalg.inv(K)
    largest = (K - np.eye(len(K))).max()  # min eig of the inverse of [[1, k], [k, 1]] is 1 / (1 + k)
    smallest_eigenvalue = np.linalg.eigvalsh(K)[0]
    share = inverse.sum() / np.abs(inverse).sum()
    return float(smallest_eigenvalue / (1 + largest) / (2 * len(K)) * share**2)


def draw_rate(report: Report, plt: ModuleType, runs: list[Course]) -> None:
    figure, panels = axes(plt, 2, f"Rate of SVM-Light's rule: C = {C}, mu = {MU}, 0.2 as deviation")
    one = runs[0]
    draw_distance(panels[0], {"smo-mvp": runs}, most=one.iterations)
    panels[0].axvline(one.settled, color="black", lw=0.6, ls=":", label="bounds settled (one run)")
    panels[0].legend(fontsize=7)
    local = is_local(one)
    steps = np.arange(local.stop - local.start)
    q = one.distance[local]
    panels[1].semilogy(local.start + steps, q, label="one run, bounds settled")
    panels[1].semilogy(local.start + steps, q[0] * (1 - rate_bound(one)[0]) ** steps, ls="--", label="bound c of §3.2")
    panels[1].set(xlabel="iteration k", ylabel="$q_k$")
    panels[1].legend(fontsize=7)
    keep(report, plt, figure)


# Figures 4 and 5: the parameters.


def figure_4(report: Report, quick: bool) -> None:
    values, courses = PAPER["figure_4"]["mu"], {}
    for noise in NOISES:
        courses[noise] = {mu: [run(noise, seed, mu=mu) for seed in seeds(quick)] for mu in values}
        for mu, runs in courses[noise].items():
            row = f"mu = {mu}, {noise}"
            report.show(row, "iterations, one run", None, runs[0].iterations)
            report.show(row, "iterations, average", None, average(course.iterations for course in runs))
            report.show(row, "to a tenth of q_0", None, average(to_a_tenth(course) for course in runs))
            report.show(row, "support vectors", None, average(course.support for course in runs))
        tenth = [average(map(to_a_tenth, runs)) for runs in courses[noise].values()]
        whole = [average(course.iterations for course in runs) for runs in courses[noise].values()]
        row = f"all mu, {noise}"
        claim = "slower as mu grows, to a tenth of the distance"
        found = "rising" if is_rising(tenth) else "not rising"
        report.claim(row, "to a tenth of q_0", claim, is_rising(tenth), found, "slower")
        claim = "slower as mu grows, to the tolerance"
        note = "a larger mu makes K nearer to the identity: more points to move, but a better conditioned problem"
        found = "rising" if is_rising(whole) else "falling" if is_rising(whole[::-1]) else "neither"
        report.claim(row, "iterations, average", claim, is_rising(whole), found, "slower", note)
    if (plt := plotting(report)) is not None:
        figure, panels = axes(plt, 2, f"Several mu: C = {C}, 0.2 as deviation")
        shown = {f"mu = {mu}": runs for mu, runs in courses[BEST[0]].items()}
        draw_ratio(panels[0], {label: runs[0] for label, runs in shown.items()}, most=300)
        draw_distance(panels[1], shown)
        keep(report, plt, figure)


def to_a_tenth(course: Course) -> int:
    return course.first(course.distance <= 0.1 * course.distance[0])


def is_rising(values: list[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def figure_5(report: Report, quick: bool) -> None:
    paper, courses = dict(PAPER["figure_5"]["runs"]), {}
    for noise in NOISES:
        courses[noise] = {value: [run(noise, seed, C=value) for seed in seeds(quick)] for value in paper}
        for value, runs in courses[noise].items():
            row = f"C = {value}, {noise}"
            report.show(row, "iterations, one run", paper[value], runs[0].iterations)
            judge_count(report, row, paper[value], runs)
        compare_boxes(report, noise, courses[noise])
    if (plt := plotting(report)) is not None:
        figure, panels = axes(plt, 2, f"Several C: mu = {MU}, 0.2 as deviation")
        shown = {f"C = {value}": runs for value, runs in courses[BEST[0]].items()}
        draw_ratio(panels[0], {label: runs[0] for label, runs in shown.items()}, most=300)
        draw_distance(panels[1], shown)
        keep(report, plt, figure)


def compare_boxes(report: Report, noise: str, courses: dict[float, list[Course]]) -> None:
    """The paper has the same run twice; that is so as long as no coefficient reaches the smaller C under the larger one."""
    for small, large in ((0.1, 0.5), (5, 10)):
        row = f"C = {small} and {large}, {noise}"
        pairs = list(zip(courses[small], courses[large], strict=True))
        same = [a.digest == b.digest for a, b in pairs]
        untouched = [b.largest < small for _, b in pairs]
        claim = "the same run with both, every seed"
        note = "" if all(same) else "coefficients of the second go beyond the first C"
        report.claim(row, "same run, part of seeds", claim, all(same), average(same), 1, note)
        report.show(row, "never at the smaller C, part of seeds", None, average(untouched))


# Table 1 and figure 6: errors.


def table_1(report: Report, quick: bool) -> None:
    readings = [(noise, split, C) for noise in NOISES for split in SPLITS]
    readings += [(*BEST, value) for value in (LARGEST_C, BEYOND, SEPARATING_C)]
    for noise, split, value in readings:
        for mu, *paper in PAPER["table_1"]["rows"]:
            if value == SEPARATING_C and mu != 0.1:
                continue
            found = np.array([errors(draw(noise, split, seed), mu, value) for seed in seeds(quick)])
            row = f"mu = {mu}, {noise}, {split}, C = {value:g}"
            for k, kind in enumerate(("train", "test")):
                judge_error(report, row, kind, (noise, split, value, mu), paper[k], found[:, k])
            if (noise, split) == BEST and value <= LARGEST_C:
                check_peer(report, row, mu, value, found[0])


def judge_error(report: Report, row: str, kind: str, reading: tuple, paper: float, found: np.ndarray) -> None:
    noise, split, value, mu = reading
    mean = float(found.mean())
    if (noise, split, value) == (*BEST, LARGEST_C):
        part = max(paper, 1 / SETTINGS["test"])  # not ours: a larger error of ours must not be let pass for it
        room = 3 * np.sqrt(part * (1 - part) / SETTINGS["test"])
        report.near(row, kind, paper, mean, room, "three deviations of a count out of 300, the paper's one run")
    elif value == SEPARATING_C and kind == "train":
        report.equal(row, kind, paper, mean, "with so large a C no training point is left on the wrong side")
    elif noise == "variance 0.2" and mu == 1:
        report.show(row, kind, paper, mean, "the arms overlap: not the paper's reading")
    else:
        report.show(row, kind, paper, mean)


def check_peer(report: Report, row: str, mu: float, C: float, ours: np.ndarray) -> None:
    """LIBSVM finds the same errors, so it is not our optimum that makes the difference."""
    data = draw(*BEST, 0)
    peer = sklearn.svm.SVC(C=C, gamma=mu, tol=1e-6).fit(data.X, data.y)
    theirs = 1.0 - float(peer.score(data.X_test, data.y_test))
    claim = "LIBSVM has the same test error on the first seed, but for a point next to f = 0"
    report.check(row, "test, LIBSVM", claim, abs(theirs - ours[1]) <= 1.5 / SETTINGS["test"], theirs)


def figure_6(report: Report, quick: bool) -> None:
    paper = PAPER["figure_6"]
    mu, box = paper["mu"], paper["C"]
    for noise in NOISES:
        for split in SPLITS:
            row = f"{noise}, {split}"
            found = np.array([errors(draw(noise, split, seed), mu, box) for seed in seeds(quick)])
            for k, kind in enumerate(("train", "test")):
                if (noise, split) == BEST:
                    report.equal(row, f"{kind}, one run", paper[kind], float(found[0, k]))
                else:
                    report.show(row, f"{kind}, one run", paper[kind], float(found[0, k]))
                report.show(row, f"{kind}, average", paper[kind], float(found[:, k].mean()))
            report.show(row, "seeds without test error", None, average(found[:, 1] == 0))
    data = draw(*BEST, 0)
    model = SVC(box, gamma=mu, tol=1e-8).fit(data.X, data.y)
    if (plt := plotting(report)) is not None:
        figure, panels = axes(plt, 2, f"Decision region: C = {box}, mu = {mu}, 0.2 as deviation")
        for panel, X, y, title in zip(
            panels, (data.X, data.X_test), (data.y, data.y_test), ("train", "test"), strict=True
        ):
            draw_region(panel, model)
            scatter(panel, X, y)
            panel.set_title(title, fontsize=9)
        keep(report, plt, figure)


def draw_region(panel, model: SVC) -> None:
    axis = np.linspace(-8.5, 8.5, 160)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    values = model.decision_function(grid.reshape(-1, 2)).reshape(axis.size, axis.size)
    panel.contourf(axis, axis, values, levels=[-np.inf, 0.0, np.inf], colors=["#cfe0f3", "#f7d5d0"])
    panel.contour(axis, axis, values, levels=[-1.0, 0.0, 1.0], colors="black", linewidths=(0.3, 0.8, 0.3))


# Section 3.4: time and memory.


def complexity(report: Report, quick: bool) -> None:
    """How SVM-Light's rule grows with the number of points, its kernel rows kept or only a few of them."""
    sizes = (300, 600, 1200) if quick else (300, 600, 1200, 2400)
    few = 64 if not quick else 8
    found: dict[str, list[float]] = {name: [] for name in ("iteration", "run", "kept", "few")}
    for m in sizes:
        row, ready = f"m = {m}", Gram(datasets.spiral(m, SETTINGS["noise"], random_state=0)[0], gamma=MU)
        ready.full()
        seconds, iterations = median_time(partial(train, m, lambda gram=ready: gram))
        an_iteration = iteration_time(problem_of(m, ready))
        peaks, values = [], []
        for cache_size in (1000.0, few * 8e-6 * m):
            peak, solution = peak_memory(partial(train, m, partial(Gram, ready.X, gamma=MU, cache_size=cache_size)))
            peaks.append(peak)
            values.append(solution.problem.gram.evaluations)
        report.show(row, "iterations", None, iterations)
        note = "CPU time without that of the start, kernel matrix given; varies from run to run"
        report.show(row, "us an iteration", None, 1e6 * an_iteration, note)
        report.show(row, "ms in all", None, 1e3 * seconds)
        report.show(row, "MB, all rows kept", None, peaks[0] / 1e6)
        report.show(row, f"MB, {few} rows kept", None, peaks[1] / 1e6)
        report.show(row, "more kernel values for it, %", None, 100 * (values[1] / values[0] - 1))
        for name, value in zip(found, (an_iteration, seconds, *peaks), strict=True):
            found[name].append(value)
    growth = {name: exponent(sizes, values) for name, values in found.items()}
    judge_iteration(report, growth["iteration"])
    report.show("all m", "ms in all", None, growth["run"], "exponent of m; iterations grow with m too")
    claim = "§3.4.2: O(qm + q² + m) with q = 2, linear in m: an exponent of at most 1 but for a tenth"
    report.claim("all m", f"MB, {few} rows kept", claim, growth["few"] <= 1.1, growth["few"], 1)
    report.show("all m", "MB, all rows kept", None, growth["kept"], "exponent of m")


def judge_iteration(report: Report, growth: float) -> None:
    """Judge the exponent of m in the time of an iteration."""
    claim = (
        "§3.4.1: O(m²), for the search of a pair goes over all m points in each of two loops: an exponent of at most 2"
    )
    claim += ", and of at least 0.5, for less were no growth"
    note = "one loop after the other, which is O(m)" if growth < 1.5 else ""
    report.claim("all m", "us an iteration", claim, 0.5 <= growth <= 2, growth, 2, note)


SVM_LIGHT = SMO(second_order=False, shrinking=False, rows_at_once=1)  # computes no kernel row that is not used


def problem_of(m: int, gram: Gram) -> DualProblem:
    return DualProblem.hinge(gram, datasets.spiral(m, SETTINGS["noise"], random_state=0)[1], C)


def train(m: int, gram: Callable[[], Gram]) -> Solution:
    """Train on m points by SVM-Light's rule."""
    return solve(problem_of(m, gram()), SVM_LIGHT, stop=KKTViolation(TOLERANCE))


def median_time(call: Callable[[], Solution], times: int = 9) -> tuple[float, int]:
    """Return the CPU seconds of a call, the median of several after a first one, and its iterations."""
    iterations, seconds = call().n_iter, []
    for _ in range(times):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return float(np.median(seconds)), iterations


def iteration_time(problem: DualProblem, times: int = 25) -> float:
    """Return the CPU seconds of an iteration: what a long run takes more than a short one, the median of several.

    What a run does once, besides its iterations, takes as long as hundreds of them.
    """

    def seconds(iterations: int) -> float:
        state = SVM_LIGHT.init(problem)
        began = time.process_time()
        _, info = SVM_LIGHT.step(problem, state, iterations, 0.0)
        assert info.iterations == iterations
        return time.process_time() - began

    short, long = 50, 250
    seconds(long)  # compiles, loads
    return float(np.median([seconds(long) - seconds(short) for _ in range(times)])) / (long - short)


def peak_memory(call: Callable[[], Solution]) -> tuple[float, Solution]:
    """Return the most bytes that a call holds at a time, and what it returns."""
    tracemalloc.start()
    solution = call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return float(peak), solution


def exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """Slope of log value over log size."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


EXPERIMENTS = {
    "spiral-figure-1": figure_1,
    "spiral-figure-2": figure_2,
    "spiral-figure-3": figure_3,
    "spiral-figure-4": figure_4,
    "spiral-figure-5": figure_5,
    "spiral-figure-6": figure_6,
    "spiral-table-1": table_1,
    "spiral-complexity": complexity,
}
