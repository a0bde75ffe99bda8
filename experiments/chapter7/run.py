"""Exercises 1 to 3 of chapter 7, its three stopping criteria, and conjugate gradient with Skilling's bounds.

The chapter prints no numbers; the claims judged here are in config.toml, each with its place in the text.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from zerogap import DualProblem, FeasibilityGap, Gram, KKTViolation, RelativeGap, Solution, Status, datasets, solve
from zerogap.comparison import margin
from zerogap.reproduce import Report, config
from zerogap.solvers import (
    SMO,
    SOR,
    Chunking,
    ConjugateGradient,
    Decomposition,
    GradientAscent,
    KeerthiSMO,
    PlattSMO,
    SimpleSMO,
)
from zerogap.solvers.passes import ORDERS, VISITS

PAPER = config(__file__)
SETTINGS, CLAIMS = PAPER["settings"], PAPER["claims"]
ROUNDING = 1e-11  # relative, of a sum of some hundred terms
EXACT = RelativeGap(1e-11)
EXACT_VALUES = KKTViolation(1e-10)  # a gap g leaves decision values off by sqrt(2 g): for them and the bias
MOST_STEPS = 50_000_000  # iterations of a run that may be slow; not seconds, which would count the compiler too


# Data.


def half_plane(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in a square, labelled by a line off the origin, those next to it left out."""
    X = np.random.default_rng(0).uniform(-1, 1, (4 * m, 2))
    side = X @ [0.6, 0.8] - 0.3
    kept = np.flatnonzero(np.abs(side) > 0.05)[:m]
    return X[kept], np.sign(side[kept])


def clouds(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Two normal clouds that overlap."""
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    X = np.random.default_rng(1).standard_normal((m, 2))
    X[:, 0] += y + 0.5
    return X, y


def classes(name: str, positive: Callable[[np.ndarray], np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A data set with features scaled to mean 0 and variance 1; by default the largest label is the positive class."""
    X, y = datasets.load(name)
    X = X if isinstance(X, np.ndarray) else X.toarray()
    is_positive = y == y.max() if positive is None else positive(y)
    return StandardScaler().fit_transform(X), np.where(is_positive, 1.0, -1.0)


def local(names: tuple[str, ...], report: Report, quick: bool) -> list[str]:
    """Names of the sets that are in the local folder; without it one line says what is left out."""
    if quick:
        return []
    folder = datasets.data_folder()
    there = [name for name in names if folder is not None and (folder / f"{name}.svm.gz").exists()]
    missing = [name for name in names if name not in there]
    if missing:
        report.say(f"not in the local data folder, left out (set ZEROGAP_DATA): {', '.join(missing)}")
    return there


# Runs.


@dataclass
class Run:
    """A solution and what was seen on the way."""

    solution: Solution
    columns: dict[str, np.ndarray]  # of the trace, and margin; visits where the solver counts them

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    @property
    def visits(self) -> int:
        """Points looked at, moved or not: turns of the inner loop of Table 7.1."""
        return int(self.solution.state.memory.integers[VISITS])

    @property
    def falls(self) -> int:
        """Looks at which the dual objective was below the look before, by more than rounding."""
        dual = self["dual"]
        return int(np.count_nonzero(np.diff(dual) < -ROUNDING * np.abs(dual[1:])))


def run(
    problem: DualProblem, solver: Any, every: int | None = None, see: Callable | None = None, **options: Any
) -> Run:
    """Solve with a kernel matrix of its own; ``see(problem, state)`` at every look gives more columns, by name."""
    own, seen, steps = replace(problem, gram=problem.gram.fresh()), [], [-1]

    def callback(state: Any, look: Any) -> None:
        if look.step > steps[0]:
            steps[0] = look.step
            more = {"visits": state.memory.integers[VISITS]} if isinstance(solver, GradientAscent | SOR) else {}
            more |= {"margin": margin(own, state.beta, state.residual)}
            seen.append(more | (see(own, state) if see else {}))

    solution = solve(own, solver, trace_every=every, callback=callback, **options)
    columns = {name: solution.trace[name] for name in solution.trace.columns}
    return Run(solution, columns | {name: np.array([row[name] for row in seen]) for name in seen[0]})


def optimum(problem: DualProblem, stop: Any = EXACT) -> Solution:
    """The solution by second-order SMO, or as far as rounding lets it."""
    return solve(replace(problem, gram=problem.gram.fresh()), SMO(), stop=stop, max_steps=MOST_STEPS)


def missing(run_or_dual: Any, best: Solution) -> Any:
    """What is missing to the optimal dual objective, as a fraction of it."""
    return (best.certificate.dual - run_or_dual) / abs(best.certificate.dual)


def decision_values(solution: Solution) -> np.ndarray:
    """f at the points: t - residual without the ridge's part, plus the bias."""
    problem, beta = solution.problem, solution.beta
    return problem.target - problem.residual(beta) - problem.ridge * beta + solution.bias


def kkt_breaches(solution: Solution) -> tuple[float, float]:
    """The largest |y f - 1 + ridge alpha| where 0 < alpha < C, and how far y f falls short elsewhere (criterion 2)."""
    problem, beta = solution.problem, solution.beta
    alpha, cap = np.abs(beta), np.maximum(problem.upper, -problem.lower)
    excess = problem.target * decision_values(solution) - 1 + problem.ridge * alpha
    is_free = (alpha > 0) & (alpha < cap)
    elsewhere = np.where(alpha == 0, -excess, excess)[~is_free]
    return np.abs(excess[is_free]).max(initial=0.0), max(elsewhere.max(initial=0.0), 0.0)


def figure(columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # an optional extra, and no window is wanted

    rows, across = (1, columns) if columns <= 2 else (-(-columns // 2), 2)  # four in a row are too small to read
    drawing = Figure(figsize=(3.2 * across, 2.8 * rows), layout="constrained")
    return drawing, drawing.subplots(rows, across, squeeze=False).ravel()[:columns]


def thin(length: int, most: int = 80) -> np.ndarray:
    """Some of the looks of a run, evenly in the logarithm: enough for a curve."""
    return np.unique(np.geomspace(1, length, most).astype(int)) - 1


# Exercise 1: the maximal margin by gradient ascent.

ASCENTS: dict[str, Any] = {order: GradientAscent(order=order) for order in ORDERS}
RELAXED: dict[str, Any] = {f"sor 1.3, {order}": SOR(1.3, order) for order in ORDERS}


def exercise_1(report: Report, quick: bool) -> None:
    m = 60 if quick else 200
    grams = {
        "half plane": (Gram(half_plane(m)[0], "linear", tau="radius"), half_plane(m)[1]),
        "spiral": (Gram(datasets.spiral(m, 0.1, 0)[0], gamma=1.0, tau="radius"), datasets.spiral(m, 0.1, 0)[1]),
    }
    drawing, axes = figure(2)
    for (name, (gram, y)), ax in zip(grams.items(), axes, strict=True):
        problem = DualProblem.hard_margin(gram, y, fit_intercept=False)
        best = optimum(problem)
        exact = margin(best.problem, best.beta, best.problem.residual(best.beta))
        runs = {kind: run(problem, solver, m, stop=RelativeGap(1e-6)) for kind, solver in (ASCENTS | RELAXED).items()}
        for k, (kind, one) in enumerate(runs.items()):
            judge_ascent(report, f"{name}, {kind}", one, best, exact)
            shown = thin(one["step"].size)
            style = {
                "color": f"C{k % len(ASCENTS)}",
                "ls": "--" if "sor" in kind else "-",
                "lw": 1,
            }  # an order, a colour
            ax.plot(one["visits"][shown], one["margin"][shown], label=kind, **style)
        judge_visits(report, name, runs)
        ax.axhline(exact, color="black", lw=0.5)
        ax.set(xscale="log", ylim=(-0.5 * exact, 1.15 * exact), xlabel="points looked at", title=name)
    axes[0].set_ylabel("margin (line: the largest)")
    drawing.legend(*axes[0].get_legend_handles_labels(), fontsize=7, loc="outside lower center", ncols=3)
    report.save_figure(drawing, "chapter7-exercise-1-margin")
    learning_rates(report, *grams["spiral"])
    rates_of_points_and_time(report, "half plane", *grams["half plane"])
    batch(report, "half plane", *grams["half plane"])
    batch(report, "spiral", *grams["spiral"])
    augmented_margins(report, half_plane(m), quick)


def judge_ascent(report: Report, row: str, one: Run, best: Solution, exact: float) -> None:
    solution, tol = one.solution, 1e-6
    report.show(row, "points looked at", None, one.visits)
    report.show(row, "updates", None, solution.n_iter)
    # A relative gap g says 1/(2 margin²) <= (1 + g/(1 - g)) / (2 exact²), so that margin >= (1 - g) exact.
    ratio = one["margin"][-1] / exact
    is_there = solution.status is Status.CONVERGED and 1 - tol <= ratio <= 1 + tol
    report.claim(row, "margin / maximal margin", CLAIMS["margin"], is_there, ratio)
    report.check(row, "falls of W", CLAIMS["monotone"], one.falls == 0, one.falls)
    left = missing(one["dual"], best)
    left = left[left > 1e-8]
    worst = float((left[1:] / left[:-1]).max(initial=0.0))
    report.claim(row, "largest factor of W* - W, n updates", CLAIMS["linear"], worst < 1, worst)
    free, bound = kkt_breaches(solution)
    report.check(row, "|y f - 1|, alpha > 0", CLAIMS["kkt"], free <= SETTINGS["kkt"], free)
    report.check(row, "1 - y f, alpha = 0", CLAIMS["kkt"], bound <= SETTINGS["kkt"], bound)


def judge_visits(report: Report, name: str, runs: dict[str, Run]) -> None:
    for kind, one in runs.items():
        if not kind.endswith("sequential"):
            plain = runs[kind.replace(kind.split(", ")[-1], "sequential")]
            share = one.visits / plain.visits
            report.claim(f"{name}, {kind}", "looked at / sequential", CLAIMS["visits"], share < 1, share)
            report.show(f"{name}, {kind}", "updates / sequential", None, one.solution.n_iter / plain.solution.n_iter)


def learning_rates(report: Report, gram: Gram, y: np.ndarray) -> None:
    """The same rate for every point; the spiral's kernel has the same K_ii for all of them."""
    problem = DualProblem.hard_margin(gram, y, fit_intercept=False)
    for factor in SETTINGS["rates"]:
        solver = GradientAscent(rate=factor / problem.diagonal.max())
        solution = run(problem, solver, stop=RelativeGap(1e-4), max_steps=MOST_STEPS).solution
        expected, claim = (Status.CONVERGED, "rate_below") if factor < 2 else (Status.DIVERGED, "rate_above")
        row = f"spiral, eta K_ii = {factor:g}"
        report.claim(row, "ends as", CLAIMS[claim], solution.status is expected, solution.status.name)
        report.show(row, "updates", None, solution.n_iter)


def rates_of_points_and_time(report: Report, name: str, gram: Gram, y: np.ndarray) -> None:
    """A rate for each point (Table 7.1), one for all, and rates that change from pass to pass."""
    problem = DualProblem.hard_margin(gram, y, fit_intercept=False)
    own = 1 / problem.diagonal
    rules: dict[str, Any] = {
        "each its own": own,
        "one for all": float(own.min()),
        "1.5, later 1": lambda t: own * (1.5 if t < 20 else 1.0),
        "1 + 0.9^(t+1)": lambda t: own * (1 + 0.9 ** (t + 1)),
        "1 + 0.8 on odd passes": lambda t: own * (1.0 + 0.8 * (t % 2)),
        "1/(t+1)": lambda t: own / (t + 1),
    }
    updates = {}
    for kind, rate in rules.items():
        solution = run(
            problem, GradientAscent(rate), stop=RelativeGap(1e-6), max_steps=SETTINGS["most_updates"]
        ).solution
        updates[kind] = solution.n_iter if solution.status is Status.CONVERGED else np.inf
        row = f"{name}, rates: {kind}"
        report.show(row, "ends as", None, solution.status.name)
        report.show(row, "updates", None, solution.n_iter)
        report.show(row, "relative gap", None, solution.certificate.relative_gap)
    share = updates["each its own"] / updates["one for all"]
    report.claim(name, "updates, own rates / one rate", CLAIMS["own_rate"], share < 1, share)
    timed = min(list(rules)[2:], key=lambda kind: updates[kind])
    share = updates[timed] / updates["each its own"]
    report.claim(name, "updates, rates of time / constant", CLAIMS["timed_rate"], share < 1, share, note=timed)


def batch(report: Report, name: str, gram: Gram, y: np.ndarray) -> None:
    """Strict gradient ascent: a pass moves all n points by one gradient; against the on-line form at the same gap."""
    problem, stop = DualProblem.hard_margin(gram, y, fit_intercept=False), RelativeGap(1e-2)
    online = run(problem, GradientAscent(), stop=stop).solution
    largest = float(np.linalg.eigvalsh(problem.gram.full())[-1])
    most = SETTINGS["most_updates"] // problem.n
    report.show(f"{name}, on-line", "passes of n updates", None, online.n_iter / problem.n)
    rates = {"1 / largest row sum": None} | {
        f"{f:g} / largest eigenvalue": f / largest for f in SETTINGS["batch_rates"]
    }
    rates["1 / K_ii"] = 1 / problem.diagonal
    for kind, rate in rates.items():
        row = f"{name}, batch, {kind}"
        one = run(problem, GradientAscent(rate, batch=True), problem.n, stop=stop, max_steps=most)
        solution = one.solution
        report.show(row, "passes of n updates", None, solution.n_iter)
        report.show(row, "relative gap", None, solution.certificate.relative_gap)
        if kind == "1 / K_ii":
            report.show(
                row, "ends as", None, solution.status.name, note="the on-line rate; each point alone would climb"
            )
        elif rate is None or rate * largest < 2:
            report.show(row, "ends as", None, solution.status.name, note=f"at most {most:,} passes")
            report.check(row, "falls of W", CLAIMS["batch_below"], one.falls == 0, one.falls)
        else:
            is_so = solution.status is Status.DIVERGED
            report.claim(row, "ends as", CLAIMS["rate_above"], is_so, solution.status.name)
        if rate is None:
            share = solution.n_iter * problem.n / online.n_iter
            report.claim(row, "updates / on-line", CLAIMS["online"], share > 1, share)


def strip(report: Report, name: str, X: np.ndarray, y: np.ndarray, kernel: dict) -> None:
    """A free bias by gradient ascent: |sum(alpha y)| <= zeta_t, which falls from pass to pass."""
    problem, tol = DualProblem.hinge(Gram(X, **kernel), y, 1.0), SETTINGS["gap"]
    best = optimum(problem)
    strips: dict[str, Any] = {f"{zeta:g}/(t+1)": zeta for zeta in (1.0, 10.0)}
    strips |= {f"{share:g}^t": lambda t, share=share: share**t for share in (0.9, 0.99)}
    for kind, zeta in strips.items():
        row = f"{name}, 1-norm, C = 1, zeta = {kind}"
        solution = run(
            problem, GradientAscent(strip=zeta), stop=FeasibilityGap(tol), max_steps=SETTINGS["most_updates"] // 10
        ).solution
        left = float(missing(solution.certificate.dual, best))
        ratio = solution.certificate.feasibility_gap
        report.claim(
            row, "(7.3), free bias", CLAIMS["strip"], ratio <= tol, ratio, note=f"ends as {solution.status.name}"
        )
        report.show(row, "(W* - W)/W*, free bias", None, left)
        report.show(row, "updates", None, solution.n_iter)


def augmented_margins(report: Report, data: tuple[np.ndarray, np.ndarray], quick: bool) -> None:
    """Remark 7.4 on the half plane: margins in the space of the points and in the augmented one, for a range of tau."""
    X, y = data
    free = optimum(DualProblem.hard_margin(Gram(X, "linear"), y), EXACT_VALUES)
    norm = float(np.linalg.norm(X.T @ free.beta))
    best, bias, R = 1 / norm, abs(free.bias) / norm, float(np.linalg.norm(X, axis=1).max())
    report.check("half plane", "|b| / R", CLAIMS["bias"], bias <= R, bias / R)
    ratios = []
    for factor in SETTINGS["taus"]:
        row, tau = f"half plane, tau = {factor:g} R", factor * R
        solution = optimum(
            problem := DualProblem.hard_margin(Gram(X, "linear", tau=tau), y, fit_intercept=False), EXACT_VALUES
        )
        w, b = X.T @ solution.beta, solution.problem.gram.constant(solution.beta)
        own = float((y * (X @ w + b)).min() / np.linalg.norm(w))
        augmented = float((y * (X @ w + b)).min() / np.hypot(np.linalg.norm(w), b / tau))
        least = best / np.sqrt(1 + bias**2 / tau**2)
        is_between = least * (1 - 1e-9) <= augmented <= best * (1 + 1e-9)
        report.check(row, "augmented margin / maximal margin", CLAIMS["tau_margin"], is_between, augmented / best)
        report.show(row, "(1 + b²/tau²)^-1/2", None, least / best)
        report.show(row, "(1 + R²/tau²)^-1/2", None, 1 / np.sqrt(1 + 1 / factor**2))
        report.show(row, "margin / maximal margin", None, own / best)
        if factor == 1:
            growth = ((R**2 + tau**2) / augmented**2) / (R**2 / best**2)
            report.check(row, "growth of R²/margin²", CLAIMS["tau_safe"], growth <= 4, growth)
        ratios.append(own / best)
        if not quick or factor <= 3:
            ascent = run(problem, GradientAscent(order="free-first"), stop=RelativeGap(1e-4), max_steps=MOST_STEPS)
            report.show(row, "updates", None, ascent.solution.n_iter)
    is_rising = bool((np.diff(ratios) > -1e-9).all()) and ratios[-1] > 0.999
    report.claim("half plane, all tau", "margin / maximal margin", CLAIMS["tau_limit"], is_rising, ratios[-1])


# Exercise 2: soft margins on data that cannot be separated.

LOSSES = {"1-norm": DualProblem.hinge, "2-norm": DualProblem.squared_hinge}


def exercise_2(report: Report, quick: bool) -> None:
    sets = {"clouds": (*clouds(60 if quick else 200), {"kernel": "rbf"})}
    X, y = classes("breast_cancer")
    sets["breast_cancer"] = (X[:150] if quick else X, y[:150] if quick else y, {"kernel": "rbf"})
    sets |= {
        name: (*classes(name), {"kernel": "rbf"}) for name in local(("heart", "sonar", "ionosphere"), report, quick)
    }
    hard = DualProblem.hard_margin(
        Gram(sets["clouds"][0], "linear", tau="radius"), sets["clouds"][1], fit_intercept=False
    )
    status = solve(hard, GradientAscent(), max_steps=MOST_STEPS).status
    report.claim("clouds, hard margin", "ends as", CLAIMS["unbounded"], status is Status.UNBOUNDED, status.name)
    for name, (X, y, kernel) in sets.items():
        gram = Gram(X, tau="radius", **kernel)
        for loss, build in LOSSES.items():
            for C in SETTINGS["C"][1:2] if quick else SETTINGS["C"]:
                soft_margin(report, f"{name}, {loss}, C = {C:g}", build(gram, y, C, fit_intercept=False))
    over_relaxation(report, "clouds", *sets["clouds"])
    if not quick:
        over_relaxation(report, "breast_cancer", *sets["breast_cancer"])
        slow_case(report, *sets["clouds"][:2])
    strip(report, "clouds", *sets["clouds"])
    strip(report, "breast_cancer", *sets["breast_cancer"])
    same_by_shift(report, "breast_cancer", *sets["breast_cancer"])
    augmented_soft_margin(report, "breast_cancer", *sets["breast_cancer"])


def soft_margin(report: Report, row: str, problem: DualProblem) -> None:
    best, tol = optimum(problem), 1e-4
    runs = {
        kind: run(problem, solver, 5 * problem.n, stop=RelativeGap(tol), max_steps=MOST_STEPS)
        for kind, solver in ASCENTS.items()
    }
    f = decision_values(best)
    report.show(row, "training error", None, float((f * problem.target <= 0).mean()))
    report.show(row, "support vectors", None, best.support.size)
    for kind, one in runs.items():
        left = float(missing(one.solution.certificate.dual, best))
        is_solved = one.solution.status is Status.CONVERGED and left <= tol
        report.check(row, f"(W* - W)/W*, {kind}", CLAIMS["soft"], is_solved, left, note="relative gap 1e-4 asked for")
        report.show(row, f"updates, {kind}", None, one.solution.n_iter)
    stopped = run(problem, ASCENTS["ranked"], stop=KKTViolation(SETTINGS["kkt"]), max_steps=MOST_STEPS).solution
    breach, at_gap = max(kkt_breaches(stopped)), max(kkt_breaches(runs["ranked"].solution))
    report.show(row, "breach of KKT, by criterion 2", None, breach)
    report.show(row, "breach of KKT, at gap 1e-4", None, at_gap)
    falls = sum(one.falls for one in runs.values())
    report.check(row, "falls of W", CLAIMS["monotone"], falls == 0, falls)
    for kind in ORDERS[1:]:
        share = runs[kind].visits / runs["sequential"].visits
        is_dense = share >= 1 and best.support.size > 0.9 * problem.n
        note = "nearly all points are support vectors: to go over these first leaves out nobody" if is_dense else ""
        report.claim(row, f"looked at / sequential, {kind}", CLAIMS["visits"], share < 1, share, note=note)


def slow_case(report: Report, X: np.ndarray, y: np.ndarray) -> None:
    """What the end of §7.2 warns of: few dimensions and a small shift of the diagonal, so hardly any curvature."""
    problem = DualProblem.squared_hinge(Gram(X, "linear", tau="radius"), y, 10.0, fit_intercept=False)
    for name, solver in (("gradient ascent", GradientAscent()), ("SMO", SMO())):
        one = run(problem, solver, stop=RelativeGap(1e-4), max_steps=MOST_STEPS).solution
        row = f"clouds, linear, 2-norm, C = 10, {name}"
        report.show(row, "ends as", None, one.status.name, note=f"at most {MOST_STEPS:,} updates")
        report.show(row, "updates", None, one.n_iter)
        report.show(row, "relative gap", None, one.certificate.relative_gap)


def over_relaxation(report: Report, name: str, X: np.ndarray, y: np.ndarray, kernel: dict) -> None:
    problem = DualProblem.hinge(Gram(X, tau="radius", **kernel), y, 1.0, fit_intercept=False)
    drawing, axes = figure(1)
    ax = axes[0]
    for omega in SETTINGS["omegas"]:
        one = run(problem, SOR(omega, "free-first"), problem.n, stop=RelativeGap(1e-6), max_steps=MOST_STEPS)
        row, status = f"{name}, omega = {omega:g}", one.solution.status
        report.claim(row, "ends as", CLAIMS["omega"], status is Status.CONVERGED, status.name)
        report.check(row, "falls of W", CLAIMS["monotone"], one.falls == 0, one.falls)
        report.show(row, "updates", None, one.solution.n_iter)
        ax.plot(one["step"], one["gap"], label=f"omega = {omega:g}")
    ax.set(xscale="log", yscale="log", xlabel="updates", ylabel="relative gap", title=f"{name}, 1-norm, C = 1")
    ax.legend(fontsize=7)
    report.save_figure(drawing, f"chapter7-exercise-2-omega-{name}")


def same_by_shift(report: Report, name: str, X: np.ndarray, y: np.ndarray, kernel: dict) -> None:
    """Remark 7.10 taken literally: a precomputed K + I/C, and no soft margin at all."""
    C = 1.0
    soft = optimum(DualProblem.squared_hinge(Gram(X, **kernel), y, C), EXACT_VALUES)
    shifted = Gram(X, **kernel).full() + np.eye(y.size) / C
    hard = optimum(DualProblem.hard_margin(Gram(shifted, "precomputed"), y), EXACT_VALUES)
    difference = float(np.abs(soft.beta - hard.beta).max() / np.abs(soft.beta).max())
    report.check(f"{name}, 2-norm, C = 1", "alpha, to shifted kernel", CLAIMS["shift"], difference < 1e-8, difference)


def augmented_soft_margin(report: Report, name: str, X: np.ndarray, y: np.ndarray, kernel: dict) -> None:
    """With b = b* the augmented problem has the free bias' objective plus b*²/(2 tau²), and it never has less."""
    free = optimum(DualProblem.hinge(Gram(X, **kernel), y, 1.0), EXACT_VALUES)
    f, distances = decision_values(free), []
    for factor in SETTINGS["taus"]:
        gram = Gram(X, tau=factor, **kernel)  # R = 1 for the Gaussian kernel
        augmented = optimum(DualProblem.hinge(gram, y, 1.0, fit_intercept=False), EXACT_VALUES)
        above, most = augmented.certificate.dual - free.certificate.dual, free.bias**2 / (2 * factor**2)
        slack = 1e-9 * free.certificate.primal
        row = f"{name}, 1-norm, tau = {factor:g} R"
        report.check(row, "above free bias", CLAIMS["tau_objective"], -slack <= above <= most + slack, above)
        report.show(row, "b²/(2 tau²)", None, most)
        distances.append(float(np.abs(decision_values(augmented) - f).max()))
        report.show(row, "largest change of f", None, distances[-1])
    row = f"{name}, 1-norm, all tau"
    report.claim(row, "largest change of f", CLAIMS["tau_limit"], distances[-1] < 0.01 * distances[0], distances[-1])


# Exercise 3: SMO on a range of sets.

SMOS: dict[str, Any] = {
    "smo-platt": PlattSMO(increase=SETTINGS["increase"]),  # §7.5.2: a significant increase of the dual objective
    "smo-platt, by slope": PlattSMO(),
    "smo-keerthi": KeerthiSMO(),
    "smo-mvp": SMO(False),
    "smo": SMO(),
}
WORKING_SETS: dict[str, Any] = {"chunking": Chunking, "decomposition": Decomposition}
WORKING_SHARE = 0.05  # of the points: a working set well below them
BY_ROW = SMO(rows_at_once=1, shrinking=False)  # computes no kernel row that it does not use
FEW_ROWS = 0.05  # of the matrix


def exercise_3(report: Report, quick: bool) -> None:
    sets = {
        "iris, versicolor": classes("iris", lambda y: y == 1),
        "wine, class 1": classes("wine", lambda y: y == 1),
        "breast_cancer": classes("breast_cancer"),
        "digits, eights": classes("digits", lambda y: y == 8),
    }
    if quick:
        sets["digits, eights"] = tuple(part[:500] for part in sets["digits, eights"])  # type: ignore[assignment]
    sets |= {
        name: classes(name)
        for name in local(
            ("sonar", "heart", "ionosphere", "wbc", "german", "splice", "svmguide1", "a1a"), report, quick
        )
    }
    for name, (X, y) in sets.items():
        smo_row(report, f"{name}, C = 1", DualProblem.hinge(Gram(X), y, 1.0), quick)
    X, y = sets["breast_cancer"]
    smo_row(report, "breast_cancer, hard", DualProblem.hard_margin(Gram(X), y), quick)
    smo_row(report, "breast_cancer, 2-norm", DualProblem.squared_hinge(Gram(X), y, 1.0), quick)
    convergence_of_pairs(report, X, y, quick)
    fixed_bias(report, X, y)


def smo_row(report: Report, row: str, problem: DualProblem, quick: bool) -> None:
    best, tol = optimum(problem), 1e-6
    claim = CLAIMS["hard" if problem.is_hard else "smo"]
    for name, solver in SMOS.items() if not quick else (("smo-platt", SMOS["smo-platt"]), ("smo", SMOS["smo"])):
        one = run(problem, solver, stop=RelativeGap(tol), max_steps=MOST_STEPS)
        left = float(missing(one.solution.certificate.dual, best))
        is_solved = one.solution.status is Status.CONVERGED and abs(left) <= tol
        report.check(row, f"(W* - W)/W*, {name}", claim, is_solved, left, note="relative gap 1e-6 asked for")
        report.show(row, f"pairs, {name}", None, one.solution.n_iter)
    report.show(row, "points", None, problem.n)
    report.show(row, "support vectors", None, best.support.size)
    size = max(8, 2 * int(0.5 * WORKING_SHARE * problem.n))
    report.show(row, "size of a working set", None, size)
    for name, made in WORKING_SETS.items():
        one = run(problem, made(size), stop=RelativeGap(tol), max_steps=MOST_STEPS)
        left = float(missing(one.solution.certificate.dual, best))
        is_solved = one.solution.status is Status.CONVERGED and abs(left) <= tol
        report.check(row, f"(W* - W)/W*, {name}", CLAIMS["working_set"], is_solved, left)
    kernel_rows(report, row, problem, best)


def kernel_rows(report: Report, row: str, problem: DualProblem, best: Solution) -> None:
    """How much of the matrix SMO looks at, and the same with room for a twentieth of it."""
    tol = SETTINGS["gap"]
    one = solve(replace(problem, gram=problem.gram.fresh()), BY_ROW, stop=RelativeGap(tol))
    share = one.problem.gram.evaluations / problem.n**2
    column = "rows computed / points"
    if best.support.size < 0.3 * problem.n:
        report.claim(row, column, CLAIMS["smo_share"], share < 0.5, share, note=f"to a relative gap of {tol:g}")
    else:
        report.show(row, column, None, share, note="not sparse, nothing follows")
    small = Gram(problem.gram.X, cache_size=FEW_ROWS * 8e-6 * problem.n**2)
    poor = solve(replace(problem, gram=small), BY_ROW, stop=RelativeGap(1e-6), max_steps=MOST_STEPS)
    left = abs(float(missing(poor.certificate.dual, best)))
    held = small.capacity
    report.check(
        row,
        "(W* - W)/W*, few rows kept",
        CLAIMS["smo_rows"],
        left <= 1e-6,
        left,
        note="room for 64 rows or a twentieth of K",
    )
    report.show(row, "rows kept", None, held)


def convergence_of_pairs(report: Report, X: np.ndarray, y: np.ndarray, quick: bool) -> None:
    """What the choice of the pair is worth: a partner at random, by |E1 - E2|, and by the gain."""
    problem = DualProblem.hinge(Gram(X), y, 10.0)
    solvers = {"smo-simple": SimpleSMO(passes=100), **SMOS}
    drawing, axes = figure(1)
    ax, pairs = axes[0], {}
    for name, solver in solvers.items():
        one = run(problem, solver, 50, stop=RelativeGap(1e-6), max_steps=100_000)
        reached = one["gap"] <= SETTINGS["gap"]
        pairs[name] = int(one["step"][np.argmax(reached)]) if reached.any() else np.inf
        report.show("breast_cancer, C = 10", f"pairs to 1e-3, {name}", None, pairs[name])
        ax.plot(one["step"], one["gap"], label=name)
    report.claim(
        "breast_cancer, C = 10", "pairs, platt / simple", CLAIMS["heuristic"], pairs["smo-platt"] < pairs["smo-simple"],
        pairs["smo-platt"] / pairs["smo-simple"],
    )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="pairs moved", ylabel="relative gap", title="breast_cancer, C = 10")
    ax.legend(fontsize=7)
    report.save_figure(drawing, "chapter7-exercise-3-pairs")


def fixed_bias(report: Report, X: np.ndarray, y: np.ndarray) -> None:
    problem = DualProblem.hinge(Gram(X), y, 1.0, fit_intercept=False)
    ascent, smo = (run(problem, solver, stop=RelativeGap(1e-8)).solution for solver in (GradientAscent(), PlattSMO()))
    difference = abs(ascent.certificate.dual / smo.certificate.dual - 1)
    report.check("breast_cancer, bias 0", "W, ascent to SMO", CLAIMS["ascent_smo"], difference <= 1e-8, difference)


# The three stopping criteria.


def stopping(report: Report, quick: bool) -> None:
    X, y = classes("breast_cancer")
    X, y = (X[:200], y[:200]) if quick else (X, y)
    C = 100.0
    free, fixed = DualProblem.hinge(Gram(X), y, C), DualProblem.hinge(Gram(X, tau="radius"), y, C, fit_intercept=False)
    runs = {
        "gradient ascent, each cycle": (fixed, GradientAscent(), y.size),
        "gradient ascent, each update": (fixed, GradientAscent(), 1),
        "SMO, each pair": (free, SMO(False, shrinking=False), 1),
        "Platt's SMO, each pair": (free, SMOS["smo-platt"], 1),
    }
    most = 3_000 if quick else 60_000
    drawing, axes = figure(2)
    for name, (problem, solver, every) in runs.items():
        best = optimum(problem)
        stop = RelativeGap(1e-6 if quick else 1e-9)
        one = run(problem, solver, every, free_point_gap, stop=stop, max_steps=most * every)
        criteria(report, name, problem, one, best)
        rule_of_the_ratio(report, name, problem, solver, every, most * every, best)
        if name in ("gradient ascent, each cycle", "SMO, each pair"):
            draw_criteria(axes[0 if "cycle" in name else 1], name, one, best)
    axes[0].legend(fontsize=7)
    report.save_figure(drawing, "chapter7-stopping")
    hard_margin_box(report, quick)


def free_point_gap(problem: DualProblem, state: Any) -> dict[str, float]:
    """The gap of §7.1 with the bias that puts some free point on its margin, as chapter and Remark 7.15 have it."""
    beta, r = state.beta, state.residual
    is_free = (beta > problem.lower) & (beta < problem.upper) & (beta != 0)
    bias = 0.0 if problem.total is None or not is_free.any() else float(r[np.argmax(is_free)])
    return {"own gap": float(problem.gap_shares(beta, r - bias).sum()), "has free": bool(is_free.any())}


def measures(one: Run) -> dict[str, np.ndarray]:
    """The quantity each criterion watches, at every look."""
    dual, gap = one["dual"], one["gap"]
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.concatenate([[np.inf], np.diff(dual) / np.abs(dual[1:])])
        primal = dual / (1 - gap)
    ratio = np.where(gap < 1, (primal - dual) / (primal + 1), np.inf)  # (7.3)
    return {"growth": growth, "KKT": one["violation"], "gap": ratio}


def rule_of_the_ratio(
    report: Report, name: str, problem: DualProblem, solver: Any, every: int, most: int, best: Solution
) -> None:
    """Criterion 3 as a rule of its own, ``FeasibilityGap``: it ends the run where the ratio (7.3) is first reached."""
    tol = SETTINGS["gap"]
    own = run(problem, solver, every, stop=FeasibilityGap(tol), max_steps=most)
    if own.solution.status is Status.MAX_STEPS:
        report.show(name, "stopped by the rule (7.3)", None, "not reached", note=f"within {most:,} updates")
        return
    ratio = measures(own)["gap"]
    holds = own.solution.status is Status.CONVERGED and bool((ratio[:-1] > tol).all() and ratio[-1] <= tol)
    report.check(name, "stopped by the rule (7.3)", CLAIMS["ratio"], holds, own.solution.n_iter)
    report.show(name, "missing, stopped by (7.3)", None, float(missing(own.solution.certificate.dual, best)))


def criteria(report: Report, name: str, problem: DualProblem, one: Run, best: Solution) -> None:
    """Where each criterion stops for a range of tolerances, and what is then missing."""
    left, seen, factors = np.maximum(missing(one["dual"], best), 0.0), measures(one), []
    for tol in SETTINGS["tolerances"]:
        row = f"{name}, {tol:g}"
        for kind, values in seen.items():
            reached = np.flatnonzero(values <= tol)
            if not reached.size:
                report.show(row, f"iteration, {kind}", None, "not reached")
                continue
            k = int(reached[0])
            report.show(row, f"iteration, {kind}", None, int(one["step"][k]))
            if kind == "growth":
                report.show(row, "missing, growth", None, float(left[k]))
                report.show(row, "certified gap, growth", None, float(one["gap"][k]))
                factors.append(float(left[k] / tol))
            else:
                report.show(row, f"missing, {kind}", None, float(left[k]))
    report.claim(name, "missing / tolerance, growth, at worst", CLAIMS["early"], max(factors) > 10, max(factors))
    report.check(name, "falls of W", CLAIMS["monotone"], one.falls == 0, one.falls)
    if problem.total is not None:
        judge_bias(report, name, one)


def judge_bias(report: Report, name: str, one: Run) -> None:
    """Remark 7.15: compare both gaps at the looks where there is a free point to take the bias from."""
    best_bias = one["gap"] * one["dual"] / (1 - np.where(one["gap"] < 1, one["gap"], np.nan))
    shown = one["has free"].astype(bool) & np.isfinite(best_bias)
    ratio = one["own gap"][shown] / np.maximum(best_bias[shown], 1e-300)
    report.show(name, "gap by a free point / least gap", None, float(np.median(ratio)), note="median")


def draw_criteria(ax: Any, name: str, one: Run, best: Solution) -> None:
    titles = {"growth": "1: growth of W", "KKT": "2: KKT violation", "gap": "3: (7.3)"}
    shown = thin(one["step"].size, 600)
    for kind, values in measures(one).items():
        ax.plot(one["step"][shown], values[shown], label=titles[kind], lw=0.8)
    ax.plot(
        one["step"][shown],
        np.maximum(missing(one["dual"], best)[shown], 1e-12),
        label="missing, (W* - W)/W*",
        color="black",
    )
    ax.set(xscale="log", yscale="log", ylim=(1e-11, 1e2), xlabel="updates", title=name)


def hard_margin_box(report: Report, quick: bool) -> None:
    """§7.1: for the maximal margin, the gap of the 1-norm problem with the box C_t = max alpha + 1."""
    X, y = half_plane(60 if quick else 200)
    problem = DualProblem.hard_margin(Gram(X, "linear"), y)
    best = optimum(problem)

    def box_gap(problem: DualProblem, state: Any) -> dict[str, float]:
        C = np.abs(state.beta).max() + 1
        boxed = DualProblem.hinge(problem.gram, y, C)
        return {"box gap": boxed.certify(state.beta, state.residual).gap, "C": C}

    one = run(problem, SMO(False), 1, box_gap, stop=EXACT_VALUES, max_steps=MOST_STEPS)
    covers = one["C"] >= np.abs(best.beta).max()
    W, last = best.certificate.dual, one["box gap"][-1]
    row = "half plane, hard margin"
    report.show(row, "gap in the box C_t, at the end", None, float(last / W))
    early = int(np.count_nonzero(one["box gap"][~covers] < W - one["dual"][~covers]))
    note = "C_t does not cover the solution yet"
    report.claim(row, "looks where it is below W* - W", CLAIMS["box"], early == 0, early, note=note)
    report.show("half plane, hard margin", "looks", None, one["step"].size)


# Gaussian processes.

MOST_FOR_WIDROW_HOFF = (
    400  # points; its updates grow with the condition of K + sigma² I, and 2000 of abalone take minutes
)


def gaussian_process(report: Report, quick: bool) -> None:
    rng = np.random.default_rng(0)
    m = 100 if quick else 400
    x = np.sort(rng.uniform(-3, 3, m))[:, None]
    sets = {"sine": (x, np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(m), 1.0)}
    X, y = datasets.load("diabetes_regression")
    sets["diabetes_regression"] = (X[: 2 * m], y[: 2 * m], 0.05)
    for name in local(("housing", "abalone"), report, quick):
        X, y = datasets.load(name)
        sets[name] = (np.asarray(X)[:2000], y[:2000], 0.1)
    drawing, axes = figure(len(sets))
    for (name, (X, y, gamma)), ax in zip(sets.items(), axes, strict=True):
        gram = Gram(StandardScaler().fit_transform(X), gamma=gamma)
        target = (y - y.mean()) / y.std()
        for noise in (1.0, 0.1, 0.01):
            problem = DualProblem.gaussian_process(gram, target, noise)
            one_process(report, f"{name}, noise {noise:g}", problem, ax if noise == 0.1 else None)
        part = np.arange(min(y.size, MOST_FOR_WIDROW_HOFF))
        one_by_one = DualProblem.gaussian_process(gram.subset(part), target[part], 1.0)
        widrow_hoff(report, f"{name}, first {part.size}, noise 1", one_by_one)
    axes[0].legend(fontsize=6)
    report.save_figure(drawing, "chapter7-gaussian-process")
    cost_of_stopping_early(report, *sets["diabetes_regression"])


def one_process(report: Report, row: str, problem: DualProblem, ax: Any) -> None:
    direct = solve(replace(problem, gram=problem.gram.fresh()), "cholesky", stop=RelativeGap(1e-12))
    y, n = problem.target, problem.n
    exact = float(y @ direct.beta)
    points: list[np.ndarray] = []
    one = run(
        problem, ConjugateGradient(), 1, lambda _, state: points.append(state.beta.copy()) or {},
        stop=RelativeGap(1e-10), max_steps=3 * n,
    )  # fmt: skip
    bounds = np.array(one.solution.state.bounds)
    lower, upper = bounds.T
    slack = 1e-10 * exact  # of the direct solution's own rounding
    holds = bool((lower <= exact + slack).all() and (upper >= exact - slack).all())
    report.show(row, "points", None, n)
    report.check(row, "y'C^-1 y", CLAIMS["enclose"], holds, exact)
    report.check(row, "falls of the lower bound", CLAIMS["shrink"], one.falls == 0, one.falls)
    with np.errstate(invalid="ignore"):
        raw = 2 * one["dual"] / (1 - one["gap"])  # twice the primal objective at the point itself
    report.show(
        row,
        "rises of the upper bound",
        None,
        int(np.count_nonzero(np.diff(raw) > 0)),
        note="at the point itself, not the best so far",
    )
    is_there = one.solution.status is Status.CONVERGED and one.solution.n_iter <= n
    report.claim(row, "iterations to 1e-10", CLAIMS["at_most_n"], is_there, one.solution.n_iter)
    for tol in (1e-1, 1e-2, 1e-4):
        k = int(np.argmax(upper - lower <= tol * upper))
        off = (exact - lower[k]) / exact
        report.show(row, f"error, stopped at {tol:g}", None, off)
        report.show(row, f"iterations, stopped at {tol:g}", None, k)
        step = points[k] - direct.beta
        squared = float(step @ (problem.gram.dot(step) + problem.ridge * step))  # |alpha - alpha*|² in the norm of C
        report.show(row, f"|error of alpha|², {tol:g}", None, squared)
    zeros = int(np.count_nonzero(direct.beta == 0))
    report.claim(row, "zeros in alpha", CLAIMS["dense"], zeros == 0, zeros)
    helped = run(
        problem, ConjugateGradient("nystrom", rank=min(100, n // 4)), 1, stop=RelativeGap(1e-10), max_steps=3 * n
    )
    report.show(row, "iterations, Nyström", None, helped.solution.n_iter, note="preconditioned, beyond the chapter")
    if ax is not None:
        draw_bounds(ax, row, bounds, exact)


def cost_of_stopping_early(report: Report, X: np.ndarray, y: np.ndarray, gamma: float) -> None:
    """Operations of conjugate gradient, stopped at a hundredth, over those of the direct solution, for parts of a set."""
    X, y, shares = StandardScaler().fit_transform(X), (y - y.mean()) / y.std(), []
    for n in (y.size // 4, y.size // 2, y.size):
        problem = DualProblem.gaussian_process(Gram(X[:n], gamma=gamma), y[:n], 0.1)
        k = run(problem, ConjugateGradient(), 1, stop=RelativeGap(1e-2)).solution.n_iter
        shares.append(k * 2 * n**2 / (n**3 / 3))
        report.show(f"diabetes_regression, first {n}", "iterations, stopped at 0.01", None, k)
        report.show(f"diabetes_regression, first {n}", "operations / direct", None, shares[-1])
    is_falling = bool((np.diff(shares) < 0).all())
    report.claim("diabetes_regression, all sizes", "operations / direct", CLAIMS["cheap"], is_falling, shares[-1])


def draw_bounds(ax: Any, title: str, bounds: np.ndarray, exact: float) -> None:
    k = np.arange(len(bounds))
    ax.plot(k, np.maximum(exact - bounds[:, 0], 1e-16 * exact) / exact, label="exact less lower bound")
    ax.plot(k, np.maximum(bounds[:, 1] - exact, 1e-16 * exact) / exact, label="upper bound less exact")
    ax.plot(k, (bounds[:, 1] - bounds[:, 0]) / exact, label="difference: Skilling's rule", color="black", lw=0.8)
    ax.set(yscale="log", ylim=(1e-12, None), xlabel="iterations", ylabel="distance / exact value", title=title)


def widrow_hoff(report: Report, row: str, problem: DualProblem) -> None:
    """One coefficient at a time on K + sigma² I: gradient ascent as in Table 7.1, without a box."""
    direct = solve(replace(problem, gram=problem.gram.fresh()), "cholesky", stop=RelativeGap(1e-12))
    ascent = run(problem, GradientAscent(), stop=RelativeGap(1e-6), max_steps=MOST_STEPS).solution
    f, g = (decision_values(one) for one in (ascent, direct))
    distance = float(np.abs(f - g).max())
    holds = ascent.status is Status.CONVERGED and distance <= 1e-2 * float(np.abs(g).max())
    note = "relative gap 1e-6 asked for; a hundredth of the largest value is close"
    report.claim(row, "f, gradient to direct", CLAIMS["widrow"], holds, distance, note=note)
    report.show(row, "updates, gradient", None, ascent.n_iter)


EXPERIMENTS = {
    "chapter7-exercise-1": exercise_1,
    "chapter7-exercise-2": exercise_2,
    "chapter7-exercise-3": exercise_3,
    "chapter7-stopping": stopping,
    "chapter7-gaussian-process": gaussian_process,
}
