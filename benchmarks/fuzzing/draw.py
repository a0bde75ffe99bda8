"""Cases: each a pure function of (seed, number), and a few lines of Python that are run as they are printed in a failure."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzzing.truth import KernelSpec, Problem
from zerogap.path import ENGINES
from zerogap.solvers import SOLVERS as ALL

# How often each kind is drawn, in thousandths.
KINDS = {
    "solve": 500, "resume": 100, "interrupt": 60, "path": 110, "families": 60, "incremental": 70, "estimator": 80, "gp": 20
}  # fmt: skip
FORMULATIONS = (
    "hinge", "hard_margin", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive", "absolute",
    "gaussian_process",
)  # fmt: skip
IN_W = [name for name, entry in ALL.items() if entry.linear]  # for linear kernels, and no hard margin
SOLVERS = {name: entry for name, entry in ALL.items() if name not in IN_W}
LINEAR_SYSTEM = [name for name, entry in SOLVERS.items() if not entry.constraints]
HULLS = [name for name, entry in SOLVERS.items() if entry.hulls]  # for hard margins and the squared hinge, with a bias
ONE_AT_A_TIME = [name for name, entry in SOLVERS.items() if not entry.free_bias]  # solvers for a fixed bias
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed", "callable")
# Iterations that keep a run to some tens of milliseconds; what is not done then ends with MAX_STEPS, and is checked too.
STEPS = {"rosen": 400, "simple-svm": 400, "chunking": 3000, "decomposition": 3000, "cg": 400, "smo-platt": 20000}
MOST_STEPS, MOST_SECONDS = 10000, 0.5

CALLABLES = {
    "cauchy": "def kernel(A, B):\n    return 1.0 / (1.0 + ((A[:, None] - B[None]) ** 2).sum(axis=2))",
    "laplace": "def kernel(A, B):\n    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))",
    "distance": "def kernel(A, B):  # conditionally negative: indefinite\n    return ((A[:, None] - B[None]) ** 2).sum(axis=2)",
    "minus": "def kernel(A, B):  # negative definite\n    return -np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))",
}


@dataclass
class Case:
    """What to run, and what the checks need to know of it."""

    seed: int
    number: int
    kind: str
    about: dict[str, Any] = field(default_factory=dict)  # what the summary counts
    data: dict[str, Any] = field(default_factory=dict)  # arrays, by the names the code uses
    code: list[str] = field(default_factory=list)  # the lines that are run
    facts: dict[str, Any] = field(default_factory=dict)  # numbers the checks use
    problem: Any = None  # the independent description, a function of what the run settles (gamma)

    def describe(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.about.items())


def draw(seed: int, number: int, only: str | None = None) -> Case:
    """Return case ``number`` of a campaign."""
    rng = np.random.default_rng([seed, number])
    names = list(KINDS)
    kind = names[rng.choice(len(names), p=np.array(list(KINDS.values())) / sum(KINDS.values()))]
    case = Case(seed, number, only or kind)
    _DRAWERS[case.kind](case, rng)
    return case


# Data.


def _size(rng: np.random.Generator, most: int = 200) -> int:
    """Mostly about a dozen points, now and then hundreds."""
    kind = rng.random()
    if kind < 0.1:
        return int(rng.integers(2, 4))
    if kind < 0.93:
        return min(most, int(np.exp(rng.normal(2.45, 0.5))) + 2)
    return int(rng.integers(min(30, most), most + 1))


def _power_of_ten(rng: np.random.Generator, low: float, high: float) -> float:
    return float(f"{10 ** rng.uniform(low, high):.3g}")


def _scale(rng: np.random.Generator) -> float:
    kind = rng.random()
    if kind < 0.7:
        return 1.0
    return _power_of_ten(rng, *((-4, 4) if kind < 0.9 else (-150, 150)))


def _points(rng: np.random.Generator, n: int, d: int, about: dict[str, Any]) -> np.ndarray:
    shape = str(rng.choice(["normal", "uniform", "grid", "binary", "collinear", "clusters", "few", "sparse"]))
    X = {
        "normal": lambda: rng.normal(size=(n, d)),
        "uniform": lambda: rng.uniform(size=(n, d)),
        "grid": lambda: rng.integers(-2, 3, size=(n, d)).astype(float),
        "binary": lambda: rng.integers(0, 2, size=(n, d)).astype(float),
        "collinear": lambda: rng.normal(size=(n, 1)) * rng.integers(-2, 3, size=d),
        "clusters": lambda: rng.normal(size=(n, d)) * 1e-3 + rng.integers(0, 2, size=(n, 1)),
        "few": lambda: rng.normal(size=(3, d))[rng.integers(0, 3, size=n)],
        "sparse": lambda: rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3),
    }[shape]()
    marks = [shape]
    if rng.random() < 0.2:  # rows that come twice
        X[rng.integers(n, size=n // 2)] = X[rng.integers(n, size=n // 2)]
        marks.append("duplicates")
    if rng.random() < 0.1:
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3.7])
        marks.append("constant feature")
    if rng.random() < 0.12:
        X[rng.integers(n), rng.integers(d)] = rng.choice([-1, 1]) * _power_of_ten(rng, 2, 12)
        marks.append("outlier")
    if rng.random() < 0.2:
        X = X + rng.choice([-1, 1]) * _power_of_ten(rng, 0, 8)
        marks.append("shift")
    if rng.random() < 0.1:
        X[:, rng.integers(d)] *= _power_of_ten(rng, -8, 8)
        marks.append("uneven")
    scale = _scale(rng)
    if scale != 1:
        X *= scale
        marks.append("scaled" if 1e-5 < scale < 1e5 else "extreme scale")
    if rng.random() < 0.1 and np.abs(X).max() < 1e30:
        X = X.astype(np.float32).astype(np.float64)
        marks.append("float32")
    about["data"] = "+".join(marks)
    return X


def _signs(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Labels of both classes: at random, by a feature with some noise, or a single point against the rest."""
    n, kind = len(X), rng.random()
    if kind < 0.4:
        y = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1.0, -1.0)
    elif kind < 0.85:
        values = X[:, rng.integers(X.shape[1])]
        y = np.where(values > np.median(values), 1.0, -1.0) * np.where(rng.random(n) < rng.choice([0, 0.1]), -1, 1)
    else:
        y = np.ones(n)
        y[rng.integers(n)] = -1.0
    first, second = rng.choice(n, 2, replace=False)
    if np.unique(y).size < 2:
        y[first], y[second] = 1.0, -1.0
    return y


def _targets(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    kind, n = rng.random(), len(X)
    if kind < 0.1:
        t = np.full(n, rng.choice([0.0, 1.0, -1e6]))
    elif kind < 0.3:
        t = rng.integers(-2, 3, size=n).astype(float)
    elif kind < 0.6:
        spread = np.abs(X).max() or 1.0
        t = (X / spread).sum(axis=1) + 0.1 * rng.normal(size=n)
    else:
        t = rng.normal(size=n)
    return t * (1.0 if rng.random() < 0.7 else _power_of_ten(rng, -6, 6)) + (
        0.0 if rng.random() < 0.9 else _power_of_ten(rng, 0, 6)
    )


def _weights(rng: np.random.Generator, n: int, chance: float = 0.3) -> np.ndarray | None:
    if rng.random() >= chance:
        return None
    w = rng.integers(1, 4, size=n).astype(float) if rng.random() < 0.4 else 10 ** rng.uniform(-6, 6, size=n)
    if rng.random() < 0.5:
        w[rng.random(n) < 0.3] = 0.0
    if not w.any():
        w[0] = 1.0
    return w


# Kernels.


def _kernel(rng: np.random.Generator, case: Case, X: np.ndarray, names: Any = KERNELS) -> tuple[str, str]:
    """Draw a kernel; return the expressions of the data and of the kernel's options."""
    weights = np.array([{"rbf": 4, "linear": 3, "poly": 2}.get(name, 1) for name in names], dtype=float)
    name = str(rng.choice(names, p=weights / weights.sum()))
    case.about["kernel"] = name
    case.facts["kernel"] = name
    if name == "precomputed":
        K = _matrix(rng, X)
        case.data["K"] = K
        return "K", "'precomputed'"
    points = _points_expression(rng, case, X)
    if name == "callable":
        function = str(rng.choice(list(CALLABLES)))
        if function != "cauchy" and rng.random() < 0.5:
            function = "laplace"
        case.code.append(CALLABLES[function])
        case.about["kernel"] = f"callable {function}"
        case.facts["function"] = function
        return "X", "kernel"
    options = []
    if name != "linear":
        options.append(f"gamma={_gamma(rng, X, name)!r}")
    if name == "poly":
        degree = int(rng.integers(0, 9))
        options.append(f"degree={degree}")
        case.facts["degree"] = degree
    if name in ("poly", "sigmoid"):
        coef0 = float(rng.choice([0.0, 1.0, 0.5, -0.5, -2.0, 100.0]))
        options.append(f"coef0={coef0!r}")
        case.facts["coef0"] = coef0
    return points, ", ".join([repr(name), *options])


def _gamma(rng: np.random.Generator, X: np.ndarray, name: str) -> float | str:
    kind = rng.random()
    if kind < 0.4:
        return "scale"
    if kind < 0.45:
        return "auto"
    if name != "rbf":
        return _power_of_ten(rng, -3, 1)
    spread = np.float64(np.median(np.abs(X - np.median(X))) or np.abs(X).max() or 1.0)
    with np.errstate(over="ignore"):  # its square may be beyond float64
        return float(f"{10 ** rng.uniform(-3, 3) / spread**2:.6g}")


def _points_expression(rng: np.random.Generator, case: Case, X: np.ndarray) -> str:
    case.data["X"] = X
    form = rng.random()
    if form < 0.12:
        case.about["form"] = "CSR"
        return "sp.csr_matrix(X)"
    if "float32" in case.about["data"] and form < 0.9:
        case.about["form"] = "float32"
        return "X.astype(np.float32)"
    return "X"


def _matrix(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """A kernel matrix that is positive semidefinite but for rounding, perhaps of low rank or far from one in size."""
    spread = np.abs(X).max() or 1.0
    Z = X / spread
    K = Z @ Z.T if rng.random() < 0.5 else np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2) * rng.choice([1.0, 30.0]))
    K = 0.5 * (K + K.T) * (1.0 if rng.random() < 0.7 else _power_of_ten(rng, -150, 150))
    return K + (np.eye(len(K)) * np.abs(K).max() if rng.random() < 0.2 else 0.0)


def spec(case: Case, gamma: float, tau: float = 0.0) -> KernelSpec:
    """The kernel as numbers; what "scale" stands for is read from the run, and checked by itself."""
    name = case.facts["kernel"]
    return KernelSpec(name, float(gamma), case.facts.get("degree", 3), case.facts.get("coef0", 0.0), tau)


def raw(case: Case) -> np.ndarray:
    """The points, or the float64 kernel matrix that stands for itself."""
    if case.facts["kernel"] == "precomputed":
        return case.data["K"]
    if case.facts["kernel"] == "callable":
        scope: dict[str, Any] = {"np": np}
        exec(CALLABLES[case.facts["function"]], scope)
        with np.errstate(all="ignore"):
            return scope["kernel"](case.data["X"], case.data["X"])
    return case.data["X"]


# Formulations.


def _box(y: np.ndarray, cap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.where(y < 0, -cap, 0.0), np.where(y > 0, cap, 0.0)


def _ridge(C: float, w: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(w > 0, 1.0 / (C * w), 0.0)


def formulated(
    formulation: str, kernel: KernelSpec, X: np.ndarray, t: np.ndarray, C: float, eps: float, w: np.ndarray | None,
    has_bias: bool,
) -> Problem:  # fmt: skip
    """Return the independent description of a formulation; C is the noise of a Gaussian process."""
    w, zero = np.ones(t.size) if w is None else w, np.zeros(t.size)
    unbounded = np.where(w > 0, np.inf, 0.0)
    if formulation == "hard_margin" or (formulation == "hinge" and np.isinf(C)):
        return Problem(kernel, X, t, *_box(t, unbounded), zero, 0.0, has_bias)
    if formulation == "hinge":
        return Problem(kernel, X, t, *_box(t, C * w), zero, 0.0, has_bias)
    if formulation == "squared_hinge":
        return Problem(kernel, X, t, *_box(t, unbounded), _ridge(C, w), 0.0, has_bias)
    if formulation in ("epsilon_insensitive", "absolute"):
        return Problem(kernel, X, t, -C * w, C * w, zero, eps, has_bias)
    if formulation == "squared_epsilon_insensitive":
        return Problem(kernel, X, t, -unbounded, unbounded, _ridge(C, w), eps, has_bias)
    if formulation == "one_class":  # C is nu
        return Problem(kernel, X, t, zero, w, zero, 0.0, has_bias, C * math.fsum(w))
    return Problem(kernel, X, t, -unbounded, unbounded, np.full(t.size, C), 0.0, False)


def _formulation(rng: np.random.Generator, case: Case, X: np.ndarray) -> str:
    """Draw a formulation; return the expression of the problem on ``gram``."""
    name = str(rng.choice(FORMULATIONS, p=[0.3, 0.1, 0.15, 0.15, 0.12, 0.08, 0.1]))
    C, w = _power_of_ten(rng, -12, 12) if rng.random() < 0.5 else _power_of_ten(rng, -2, 4), None
    eps = 0.0 if name == "absolute" else float(rng.choice([0.0, 0.01, 0.1, 1.0, 1e-6]))
    has_bias = bool(rng.random() < 0.65) and name != "gaussian_process"
    case.data["y"] = _signs(rng, X) if name in ("hinge", "hard_margin", "squared_hinge") else _targets(rng, X)
    arguments = ["gram", "y"]
    if name != "hard_margin":
        arguments.append(f"{C!r}")
    if "insensitive" in name or name == "absolute":
        arguments.append(f"{eps!r}")
    if name != "gaussian_process":
        w = _weights(rng, len(X))
        if w is not None:
            case.data["w"] = w
            arguments.append("sample_weight=w")
        arguments.append(f"fit_intercept={has_bias}")
    case.about.update(formulation=name, n=len(X), bias=has_bias, C=C, weights=w is not None)
    case.facts.update(formulation=name, C=C, eps=eps, has_bias=has_bias)
    method = "epsilon_insensitive" if name == "absolute" else name
    return f"zerogap.DualProblem.{method}({', '.join(arguments)})"


def _describe_problem(case: Case) -> None:
    """How the checks build the independent problem once gamma and tau are known."""
    facts = case.facts

    def build(gamma: float, tau: float) -> Problem:
        return formulated(
            facts["formulation"], spec(case, gamma, tau), raw(case), case.data["y"], facts["C"], facts["eps"],
            case.data.get("w"), facts["has_bias"],
        )  # fmt: skip

    case.problem = build


def _solver(rng: np.random.Generator, case: Case) -> str:
    names = [s for s in SOLVERS if s not in LINEAR_SYSTEM or case.facts["formulation"] == "gaussian_process"]
    if case.facts["has_bias"]:
        names = [s for s in names if s not in ONE_AT_A_TIME]
    if not (case.facts["has_bias"] and case.facts["formulation"] in ("squared_hinge", "hard_margin")):
        names = [s for s in names if s not in HULLS]
    name = str(rng.choice(names)) if rng.random() < 0.98 else str(rng.choice(list(SOLVERS)))
    is_linear = case.about["kernel"] == "linear" and case.facts["formulation"] not in (
        "hard_margin",
        "gaussian_process",
    )
    if is_linear and case.number % 4 == 0:  # not drawn: the other cases stay what they are
        name = IN_W[0]
    case.about["solver"] = name
    return name


def _tolerance(rng: np.random.Generator, case: Case) -> float:
    tol = _power_of_ten(rng, -10, -2)
    case.facts["tol"] = tol
    case.about["tol"] = tol
    return tol


def _setup(case: Case, rng: np.random.Generator, most: int = 200) -> tuple[str, float, int]:
    """Draw data, kernel, formulation and solver; the lines up to ``problem``."""
    n = _size(rng, most)
    X = _points(rng, n, int(rng.integers(1, 6)), case.about)
    data, options = _kernel(rng, case, X)
    expression = _formulation(rng, case, X)
    solver, tol = _solver(rng, case), _tolerance(rng, case)
    extra = ""
    if not case.facts["has_bias"] and rng.random() < 0.3:
        tau = rng.choice(["radius", 1.0, 0.01, 100.0])
        extra = f", tau={'radius' if tau == 'radius' else float(tau)!r}".replace("=radius", "='radius'")
        case.about["tau"] = True
    if n > 64 and rng.random() < 0.5:
        extra += ", cache_size=1e-4"
    case.code.append(f"gram = zerogap.Gram({data}, {options}{extra})")
    case.code.append(f"problem = {expression}")
    _describe_problem(case)
    steps = STEPS.get(solver, MOST_STEPS)
    case.facts["steps"] = steps
    return solver, tol, steps


def _solve(case: Case, rng: np.random.Generator) -> None:
    solver, tol, steps = _setup(case, rng)
    stop = f"zerogap.RelativeGap({tol!r})"
    if rng.random() < 0.05:
        stop = f"zerogap.KKTViolation({tol!r})"
        case.facts["tol"] = None
    case.code.append(
        f"solution = zerogap.solve(problem, {solver!r}, stop={stop}, max_steps={steps}, max_time={MOST_SECONDS}, "
        f"random_state={int(rng.integers(100))})"
    )


def _resume(case: Case, rng: np.random.Generator) -> None:
    """Stop at a limit on iterations, go on with the same or another solver, and run once without the stop."""
    solver, tol, steps = _setup(case, rng, 60)
    first = int(rng.integers(0, max(2, int(10 ** rng.uniform(0, np.log10(steps))))))
    other = solver if rng.random() < 0.7 else str(rng.choice(["smo", "smo-mvp", "simple-svm", "rosen"]))
    case.facts.update(same=other == solver, first=first)
    case.about["resumed by"] = "the same" if other == solver else other
    options = f"stop=zerogap.RelativeGap({tol!r}), max_time={MOST_SECONDS}"
    case.code += [
        f"first = zerogap.solve(problem, {solver!r}, {options}, max_steps={first})",
        "kept = first.beta.copy()",
        f"solution = zerogap.solve(problem, {other!r}, {options}, max_steps={steps}, resume=first)",
        f"whole = zerogap.solve(problem, {solver!r}, {options}, max_steps={first + steps})",
    ]


def _interrupt(case: Case, rng: np.random.Generator) -> None:
    """Ctrl-C, a callback that stops, or hardly any time; then go on."""
    solver, tol, steps = _setup(case, rng, 60)
    how, at = str(rng.choice(["ctrl-c", "callback", "time"])), int(rng.integers(1, 6))
    case.about["by"] = how
    case.facts.update(how=how, at=at)
    options = f"stop=zerogap.RelativeGap({tol!r})"
    act = {"ctrl-c": "signal.raise_signal(signal.SIGINT)", "callback": "return True", "time": "pass"}[how]
    seconds = repr(_power_of_ten(rng, -6, -2)) if how == "time" else str(MOST_SECONDS)
    case.code += [
        f"looks = []\ndef callback(state, look):\n    looks.append(look)\n    if len(looks) == {at}:\n        {act}",
        f"first = zerogap.solve(problem, {solver!r}, {options}, max_steps={steps}, max_time={seconds}, callback=callback, "
        f"trace_every={int(rng.integers(1, 50))})",
        "kept = first.beta.copy()",
        f"solution = zerogap.solve(problem, {solver!r}, {options}, max_steps={steps}, max_time={MOST_SECONDS}, "
        "resume=first)",
    ]


def _path(case: Case, rng: np.random.Generator) -> None:
    n = _size(rng, 40)
    X = _points(rng, n, int(rng.integers(1, 5)), case.about)
    data, options = _kernel(rng, case, X)
    case.data["y"] = _signs(rng, X)
    w = _weights(rng, n, 0.25)
    engine = str(rng.choice([*ENGINES, "single", "single"]))
    low = rng.uniform(-10, 4)
    C_min, C_max = (float(f"{10**p:.3g}") for p in (low, min(8.0, low + rng.uniform(0.3, 8))))
    arguments = f"kernel={options}, C_min={C_min!r}, C_max={C_max!r}, engine={engine!r}"
    if w is not None:
        case.data["w"] = w
        arguments += ", sample_weight=w"
    if rng.random() < 0.2:
        arguments += ", merge_duplicates=False"
    case.about.update(engine=engine, n=n, C_min=C_min, C_max=C_max, weights=w is not None)
    most = int(rng.integers(1, 30)) if rng.random() < 0.4 else None
    case.facts.update(engine=engine, C_min=C_min, C_max=C_max, most=most, at=rng.random(4).tolist())
    case.code.append(f"path = zerogap.svm_path({data}, y, {arguments}, max_events={most})")
    if most is not None:
        case.code.append(
            "first, events = path.status, path.n_events\n"
            f"if path.status == 'max_events':\n    path = zerogap.svm_path({data}, y, {arguments}, resume=path)"
        )
    if rng.random() < 0.3:
        case.facts["saved"] = True
        case.code.append(
            "with tempfile.TemporaryDirectory() as folder:\n    path.save(folder + '/path.npz')\n"
            "    loaded = zerogap.Path.load(folder + '/path.npz')"
        )


def _families(case: Case, rng: np.random.Generator) -> None:
    """Paths of regression over C and over epsilon and of one class, with limits, saved and loaded."""
    n, over = _size(rng, 40), str(rng.choice(["C", "epsilon", "nu"]))
    X = _points(rng, n, int(rng.integers(1, 5)), case.about)
    data, options = _kernel(rng, case, X)
    w, y = _weights(rng, n, 0.3), _targets(rng, X)
    case.data["y"] = np.zeros(n) if over == "nu" else y
    spread = 0.5 * float(np.ptp(y)) or 1.0
    arguments, facts = [f"kernel={options}"], case.facts
    if over == "C":
        low = rng.uniform(-8, 3)
        C_min, C_max = (float(f"{10**p:.3g}") for p in (low, min(6.0, low + rng.uniform(0.3, 8))))
        eps = float(rng.choice([0.0, 0.1, 0.5, 1e-3, 1.5])) * spread
        facts.update(begin=C_min, end=C_max, eps=eps, C=None)
        arguments += [f"C_min={C_min!r}", f"C_max={C_max!r}", f"epsilon={eps!r}"]
    elif over == "epsilon":
        C, most, least = _power_of_ten(rng, -4, 4), rng.choice([1.0, 1.0, 0.5, 1.7]), rng.choice([0.0, 0.0, 0.1])
        facts.update(begin=float(most * spread), end=float(least * spread), eps=None, C=C)
        arguments += [f"C={C!r}", f"epsilon_max={facts['begin']!r}", f"epsilon_min={facts['end']!r}", "over='epsilon'"]
    else:
        facts.update(begin=float(rng.choice([1.0, 1.0, 0.6])), end=_power_of_ten(rng, -3, -0.4), eps=0.0, C=1.0)
        arguments += [f"nu_max={facts['begin']!r}", f"nu_min={facts['end']!r}"]
    if w is not None:
        case.data["w"] = w
        arguments.append("sample_weight=w")
    if rng.random() < 0.3:
        arguments.append("merge_duplicates=False")
    case.about.update(over=over, n=n, weights=w is not None)
    facts.update(over=over, at=rng.random(4).tolist())
    name = "one_class_path" if over == "nu" else "svr_path"
    module = "one_class" if over == "nu" else "regression"
    call = f"{name}({data}{'' if over == 'nu' else ', y'}, {', '.join(arguments)}"
    case.code.append(f"from zerogap.path.{module} import {name}")
    limit = rng.random()
    if limit < 0.3:
        case.code.append(f"path = {call}, max_events={int(rng.integers(0, 30))})")
    elif limit < 0.5:
        case.code.append(f"path = {call}, max_time={_power_of_ten(rng, -5, -2)!r})")
    if limit < 0.5:
        case.code.append(f"first, events = path.status, path.n_events\npath = {call}, resume=path)")
    else:
        case.code.append(f"path = {call})")
    facts["is_limited"] = limit < 0.5


def _incremental(case: Case, rng: np.random.Generator) -> None:
    """Rows come and go; at the end the model is that of a fresh fit on the rows it holds."""
    n, d = min(_size(rng, 40) + 3, 40), int(rng.integers(1, 5))
    X = _points(rng, n, d, case.about)
    data, options = _kernel(rng, case, X, ("linear", "poly", "rbf", "callable"))
    if "callable" in case.about["kernel"] and case.facts["function"] in ("distance", "minus"):
        case.facts["is_indefinite"] = True
    if "gamma='" in options:
        options = options.replace("gamma='scale'", "gamma=0.7").replace("gamma='auto'", "gamma=0.7")
    eps, kind = 0.0, rng.random()
    if kind < 0.2:
        y, estimator = _targets(rng, X), "SVR"
        loss, eps = (
            str(rng.choice(["epsilon_insensitive", "squared_epsilon_insensitive"])),
            float(rng.choice([0.0, 0.1])),
        )
    else:
        y, estimator = _signs(rng, X), "SVC"
        if kind < 0.45:
            y = rng.integers(0, 4, size=n)
            y[:2] = 0, 1  # of some no row may be left
        loss = str(rng.choice(["hinge", "hinge", "squared_hinge"]))
    case.data["y"] = y
    C = (
        float("inf")
        if rng.random() < 0.05 and estimator == "SVC"
        else _power_of_ten(rng, -8, 8)
        if rng.random() < 0.4
        else _power_of_ten(rng, -2, 3)
    )
    has_bias = bool(rng.random() < 0.8)
    tol = _power_of_ten(rng, -9, -3)
    held, lines = _history(rng, n, y if estimator == "SVC" else np.zeros(n))
    more = "decision_function_shape='ovo', " if estimator == "SVC" else f"epsilon={eps!r}, "
    make = (
        f"zerogap.{estimator}(C={'np.inf' if np.isinf(C) else repr(C)}, kernel={options}, loss={loss!r}, {more}"
        f"fit_intercept={has_bias}, "
    )
    case.about.update(estimator=estimator, formulation=loss, n=n, C=C, bias=has_bias, tol=tol)
    case.facts.update(formulation=loss, C=C, eps=eps, has_bias=has_bias, tol=tol, held=held)
    case.code += [f"data = {data}", f"model = {make}tol={tol!r}, max_iter={MOST_STEPS}, max_time={MOST_SECONDS})"]
    case.code += lines
    case.code.append(f"held = {held}")
    case.code.append(
        f"fresh = {make}tol={tol!r}, max_iter={MOST_STEPS}, max_time={MOST_SECONDS}).fit(data[held], y[held])"
    )
    case.facts["left_out"] = None
    if rng.random() < 0.3:
        row = int(rng.integers(len(held)))
        rest = [k for i, k in enumerate(held) if i != row]
        if rest and (estimator == "SVR" or np.unique(y[rest]).size == np.unique(y).size):
            case.facts["left_out"] = row
            case.code.append("left_out = zerogap.leave_one_out(model)")
            case.code.append(
                f"without = {make}tol=1e-9, max_iter={10 * MOST_STEPS}, max_time={MOST_SECONDS}).fit(data[{rest}], y[{rest}])"
            )


def _history(rng: np.random.Generator, n: int, y: np.ndarray) -> tuple[list[int], list[str]]:
    """Return the rows held at the end, and the calls that lead there."""
    order = rng.permutation(n)
    first = np.unique(y[order], return_index=True)[1]
    order = np.concatenate([order[first], np.delete(order, first)])
    held = list(map(int, order[: max(2, first.size, int(rng.integers(2, n + 1)))]))
    waiting = list(map(int, order[len(held) :]))
    lines = [f"model.partial_fit(data[{held}], y[{held}])"]
    for _ in range(int(rng.integers(1, 5))):
        if waiting and rng.random() < 0.5:
            more, waiting = waiting[: (k := int(rng.integers(1, 5)))], waiting[k:]
            held = held + more
            lines.append(f"model.partial_fit(data[{more}], y[{more}])")
        elif len(held) > 2:
            gone = sorted(map(int, rng.choice(len(held), int(rng.integers(1, max(2, len(held) // 2))), replace=False)))
            left = [k for i, k in enumerate(held) if i not in gone]
            if np.unique(y[left]).size < first.size:
                continue
            waiting += [held[i] for i in gone]
            held = left
            lines.append(f"model.forget({gone})")
    return held, lines


def _estimator(case: Case, rng: np.random.Generator) -> None:
    """A classifier of several classes or a regressor, as rows come, in another order, and with rows repeated."""
    n, d = _size(rng, 60), int(rng.integers(1, 5))
    X = _points(rng, n, d, case.about)
    data, options = _kernel(rng, case, X)
    is_regressor = bool(rng.random() < 0.35)
    C = _power_of_ten(rng, -8, 8) if rng.random() < 0.4 else _power_of_ten(rng, -2, 3)
    tol, has_bias = _tolerance(rng, case), bool(rng.random() < 0.8)
    left_out = (*LINEAR_SYSTEM, *HULLS, *(ONE_AT_A_TIME if has_bias else ()))
    # As users leave it every other time: small classes are then solved by compiled code of their own.
    is_plain = bool(rng.random() < 0.5)
    solver = "auto" if is_plain else str(rng.choice([s for s in SOLVERS if s not in left_out]))
    steps = STEPS.get(solver, MOST_STEPS)
    limit = "" if is_plain else f"max_iter={steps}, "
    common = (
        f"kernel={options}, tol={tol!r}, solver={solver!r}, fit_intercept={has_bias}, {limit}"
        f"max_time={MOST_SECONDS}, random_state=0"
    )
    w = _weights(rng, n)
    if is_regressor:
        loss = str(rng.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
        eps = float(rng.choice([0.0, 0.1]))
        case.data["y"] = _targets(rng, X)
        make = f"zerogap.SVR({C!r}, {eps!r}, loss={loss!r}, {common})"
    else:
        loss, eps = str(rng.choice(["hinge", "hinge", "squared_hinge"])), 0.0
        classes = int(rng.choice([2, 3, 4])) if n >= 4 else 2
        y = rng.integers(0, classes, size=n)
        y[rng.choice(n, classes, replace=False)] = np.arange(classes)
        case.data["y"] = y
        factors = None
        if rng.random() < 0.3:
            factors = {k: _power_of_ten(rng, -3, 3) for k in range(classes)}
        case.facts["class_weight"] = factors
        make = f"zerogap.SVC({C!r}, loss={loss!r}, class_weight={factors}, decision_function_shape='ovo', {common})"
    if w is not None:
        case.data["w"] = w
    case.about.update(
        estimator="SVR" if is_regressor else "SVC", formulation=loss, solver=solver, n=n, C=C, bias=has_bias
    )
    case.facts.update(formulation=loss, C=C, eps=eps, has_bias=has_bias, steps=steps)
    weight = ", w" if w is not None else ""
    case.code += [f"data = {data}", f"model = {make}.fit(data, y{weight})"]
    _variants(case, rng, make, data, n, w)
    case.code.append(f"values = model.{'predict' if is_regressor else 'decision_function'}(data)")


def _variants(case: Case, rng: np.random.Generator, make: str, data: str, n: int, w: np.ndarray | None) -> None:
    """The same rows in another order, or repeated instead of weighted."""
    is_matrix, kind = data == "K", rng.random()
    if kind < 0.15:
        order = rng.permutation(n)
        case.data["order"] = order
        rows = "data[np.ix_(order, order)]" if is_matrix else "data[order]"
        case.facts["variant"] = "order"
        case.code.append(f"variant = {make}.fit({rows}, y[order]{', w[order]' if w is not None else ''})")
    elif kind < 0.3 and (w is None or np.array_equal(w, np.round(w))):
        times = rng.integers(1, 4, size=n) if w is None else w.astype(int)
        case.data["times"] = times
        case.facts["variant"] = "repeated"
        rows = "data[np.ix_(twice, twice)]" if is_matrix else "data[twice]"
        case.code += [
            "twice = np.repeat(np.arange(y.size), times)",
            f"variant = {make}.fit({rows}, y[twice])",
            f"model = {make}.fit(data, y, times.astype(float))",
        ]
        case.data["w"] = times.astype(float)


def _gp(case: Case, rng: np.random.Generator) -> None:
    n = _size(rng, 60)
    X = _points(rng, n, int(rng.integers(1, 4)), case.about)
    data, options = _kernel(rng, case, X)
    noise, solver, tol = _power_of_ten(rng, -8, 4), str(rng.choice(["cholesky", "cg"])), _tolerance(rng, case)
    case.data["y"] = _targets(rng, X)
    case.about.update(estimator="GaussianProcessRegressor", formulation="gaussian_process", solver=solver, n=n, C=noise)
    case.facts.update(formulation="gaussian_process", C=noise, eps=0.0, has_bias=False, steps=STEPS["cg"])
    case.code += [
        f"data = {data}",
        f"model = zerogap.GaussianProcessRegressor({options}, "
        f"noise={noise!r}, solver={solver!r}, tol={tol!r}, max_iter={STEPS['cg']}, max_time={MOST_SECONDS}).fit(data, y)",
        "mean = model.predict(data)",
    ]


_DRAWERS = {
    "solve": _solve,
    "resume": _resume,
    "interrupt": _interrupt,
    "path": _path,
    "families": _families,
    "incremental": _incremental,
    "estimator": _estimator,
    "gp": _gp,
}
