"""What has to hold of a finished case, judged by the independent evaluation in ``truth``."""

import math
import re
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from fuzzing.draw import Case, formulated, raw, spec
from fuzzing.truth import UNIT, Digits, Long, Problem, Truth, evaluate

PATH_GAP = 1e-7  # relative gap up to which a path of engine "single" counts as exact
READ = 1e-10  # part of its box to which a coefficient of a path is known; as they are read their sum is put right
LP_VIOLATION = 1e-3  # what engine "lp" puts up with by default, as a violation of the optimality conditions

# Refusals: what the caller asked for cannot be done, and the message says what to do instead.  Anything else is a failure.
REFUSALS: tuple[tuple[type[BaseException], str], ...] = (
    (ValueError, r"kernel gives values too large for float64 on this data\. Scale the features"),
    (ValueError, r"gamma='scale' is 1 / .*is too (small|large) for float64\. Scale the features"),
    (ValueError, r"moves one coefficient at a time, which a free bias forbids.*Use a solver that moves pairs"),
    (ValueError, r"solves a linear system: it takes problems without box, tube and bias.*use solver='smo'"),
    (ValueError, r"keeps the vector w of a linear kernel.*Use a solver that takes all, such as 'smo'"),
    (ValueError, r"finds the nearest points of the convex hulls of two classes.*Use solver='smo'"),
    (ValueError, r"on its diagonal is not positive definite in float64\. Raise noise"),
    (ValueError, r"A precomputed kernel must be positive semidefinite.*Clip its eigenvalues"),
    (ValueError, r"are too large for float64: the objective overflows.*or scale the features"),
    (ValueError, r"(svm|svr|one_class)_path needs a positive semidefinite kernel.*or use (SVC|SVR|OneClassSVM)"),
    (ValueError, r"Every point of one class has weight zero"),
    (ValueError, r"Every point of class .* has weight zero\. Drop those rows"),
    (ValueError, r"needs at least two classes to separate.*Add points of another class"),
    (ValueError, r"The classes cannot be separated, so this hard margin model is none\. Fit it with a finite C"),
    (ValueError, r"Input X contains infinity or a value too large for dtype\('float32'\)"),
    (np.linalg.LinAlgError, r"Engine 'hastie' cannot (go on|resolve ties); use engine='single'"),
)
# Documented warnings; all others are errors.
WARNINGS: tuple[tuple[type[Warning], str], ...] = (
    (UserWarning, r".*kernel is not positive semidefinite on this data"),
    (RuntimeWarning, r"The path is not exact"),
    (RuntimeWarning, r"The path met a tie"),
    (RuntimeWarning, r"The .* kernel has too few digits"),
    (RuntimeWarning, r"No exactly optimal free set was found"),
)


def refusal(error: BaseException) -> str | None:
    """Return a short name of a clear refusal, or None if the exception is none."""
    for kind, pattern in REFUSALS:
        if isinstance(error, kind) and re.search(pattern, str(error)):
            return pattern.replace("\\", "")[:40]
    return None


def has_room(case: Case) -> bool:
    """Whether the data and its kernel values are so far from overflow that a refusal for their size is needless."""
    X = case.data.get("X")
    if X is None or np.abs(X).max() > 1e140:
        return False
    gamma = 1.0 / (X.shape[1] * float(np.var(X)) or 1.0) if "gamma='scale'" in "".join(case.code) else 1.0
    with np.errstate(all="ignore"):
        sizes = spec(case, gamma).size(raw(case), raw(case))
    return bool(np.isfinite(sizes).all() and sizes.max() < 1e250) and case.facts["kernel"] in ("linear", "rbf")


class Checker:
    """Gathers what is wrong with one case."""

    def __init__(self, case: Case):
        self.case = case
        self.failures: list[str] = []
        self.notes: dict[str, Any] = {}

    def fail(self, cause: str, message: str) -> None:
        self.failures.append(f"{cause}: {message}")

    def require(self, holds: bool, cause: str, message: Callable[[], str]) -> bool:
        if not holds:
            self.fail(cause, message())
        return holds


# A point and its certificate.


def ulps(*values: float) -> float:
    """A few units in the last place of numbers that were rounded once more to be reported."""
    return 4 * UNIT * sum(abs(v) for v in values if math.isfinite(v))


def rounding_of(certificate: Any) -> float:
    """What the certificate itself says rounding may have done."""
    stated = getattr(certificate, "rounding", None)
    if stated is None:  # certificates that do not say: what well-conditioned data would give
        size = sum(abs(v) for v in (certificate.primal, certificate.dual) if math.isfinite(v))
        return 1e-12 * size
    return float(stated)


def check_feasible(check: Checker, problem: Problem, beta: np.ndarray, slack: float = 0.0) -> bool:
    """The box exactly, the sum to a few units in the last place of what is summed."""
    if not check.require(np.isfinite(beta).all(), "nan", lambda: f"coefficients are not finite: {beta}"):
        return False
    lower, upper = problem.lower * (1 + slack), problem.upper * (1 + slack)
    with np.errstate(invalid="ignore"):
        outside = float(np.maximum(np.nan_to_num(lower) - beta, beta - upper).max())
        outside = max(outside, float(np.where(np.isinf(lower), -np.inf, lower - beta).max()))
    holds = bool(((beta >= lower) & (beta <= upper)).all())
    check.require(holds, "box", lambda: f"a coefficient is outside its box by {outside:.3g}")
    if problem.has_bias:
        total, size = math.fsum(beta), float(np.abs(beta).sum())
        # A sum in float64 runs in eight lanes: it is itself known to about n / 8 units only.
        allowed = (8 + beta.size / 8) * UNIT * size
        check.require(abs(total) <= allowed, "sum", lambda: f"sum(beta) = {total:.3g}, allowed {allowed:.3g}")
    return holds


def check_certificate(
    check: Checker,
    problem: Problem,
    beta: np.ndarray,
    bias: float,
    certificate: Any,
    tol: float | None,
    slack: float = 0.0,
) -> None:
    """No number of the certificate is better than the truth, and ``tol`` (of a converged run) is met.

    ``slack`` is a relative error of the coefficients that the certificate does not know of: shared among duplicates.
    """
    numbers = {name: float(getattr(certificate, name)) for name in ("primal", "dual", "gap")}
    if any(math.isnan(v) for v in numbers.values()) or math.isnan(rounding_of(certificate)):
        check.fail("nan", f"the certificate holds NaN: {numbers}")
        return
    if not math.isfinite(bias):
        check.fail("nan", f"the bias is {bias}")
        return
    if problem.is_indefinite or check.case.facts.get("is_indefinite"):
        check.notes["indefinite"] = True
        return  # a gap proves nothing here
    if not problem.has_finite_kernel:
        check.notes["near overflow"] = True
        return
    verdict = _judge(problem, beta, bias, certificate, numbers, tol, slack, Long)
    if verdict is None or verdict:  # undecided, or about to accuse: with all digits
        check.notes["digits"] = True
        verdict = _judge(problem, beta, bias, certificate, numbers, tol, slack, Digits)
    for cause, message in verdict or []:
        check.fail(cause, message)


def _judge(
    problem: Problem, beta: np.ndarray, bias: float, certificate: Any, numbers: dict[str, float], tol: float | None,
    slack: float, A: Any,
) -> list[tuple[str, str]] | None:  # fmt: skip
    """Return what is wrong, or None if this arithmetic cannot tell."""
    truth = evaluate(problem, beta, bias, A)
    rounding = rounding_of(certificate)
    spread = _spread(problem, beta, truth, slack) if slack else 0.0
    off = abs(math.fsum([*beta, -problem.total])) + 2 * UNIT * abs(problem.total)  # nu times the weights is rounded
    stray = abs(float(truth.bias)) * off if problem.has_bias else 0.0
    allowed = rounding + spread + ulps(*numbers.values())
    found: list[tuple[str, str]] = []
    undecided = False

    def compare(cause: str, difference: Any, error: float, bound: float, text: str) -> None:
        nonlocal undecided
        value = float(difference)
        if value > bound + error or (math.isnan(value) and A is Digits):
            found.append((cause, f"{text}: off by {value:.4g}, allowed {bound:.4g} (rounding {rounding:.3g})"))
        elif not value <= bound - error:
            undecided = True

    if math.isfinite(numbers["dual"]):
        off = abs(truth.dual - A.of(numbers["dual"])[()])
        compare("dual", off, truth.dual_error, allowed, f"dual is {float(truth.dual):.17g}, not {numbers['dual']:.17g}")
    if math.isfinite(numbers["primal"]):
        # An upper bound on the least primal objective, attained at the bias reported.
        stated = A.of(numbers["primal"])[()]
        least, attained = truth.primal, truth.at_bias_primal
        below = least - stated if math.isfinite(least) else math.inf
        compare(
            "primal", below, truth.primal_error, allowed + 2 * stray,
            f"primal is {float(least):.17g} at least, not {numbers['primal']:.17g}",
        )  # fmt: skip
        if math.isfinite(attained):
            last_place = truth.at_bias_error if A is Digits else 0.0
            compare(
                "primal", stated - attained, truth.dual_error + truth.at_bias_error, allowed + 2 * stray + last_place,
                f"primal is {float(attained):.17g} with this bias, not {numbers['primal']:.17g}",
            )  # fmt: skip
    if math.isfinite(numbers["gap"]):
        above = truth.gap - A.of(numbers["gap"])[()] if math.isfinite(truth.gap) else math.inf
        compare(
            "gap", above, truth.gap_error, allowed + stray, f"gap is {float(truth.gap):.6g}, not {numbers['gap']:.6g}"
        )
    if tol is not None:
        _judge_tolerance(problem, truth, tol, spread, A, compare)
    return None if undecided and A is Long else found


def _judge_tolerance(problem: Problem, truth: Truth, tol: float, spread: float, A: Any, compare: Any) -> None:
    """A run that says CONVERGED is at most tol off, with the bias that was reported."""
    primal = abs(float(truth.dual + truth.at_bias)) if math.isfinite(truth.at_bias) else math.inf
    gap = float(truth.at_bias)
    bound = tol * primal * (1 + 1e-9) + 4 * UNIT * primal + spread + 1e-290
    # The bias is a float64: what its last place does to the gap is allowed.
    last_place = float(truth.at_bias_error) if A is Digits else 0.0
    if math.isinf(gap):
        bound = 0.0
    compare(
        "tol", gap, float(truth.at_bias_error) + tol * truth.primal_error, bound + last_place,
        f"CONVERGED with a true relative gap of {gap / primal if primal else math.nan:.3g}, tol={tol:g}",
    )  # fmt: skip


def _spread(problem: Problem, beta: np.ndarray, truth: Truth, slack: float) -> float:
    """What a relative change of the coefficients by ``slack`` does to primal and dual, to first order, doubled."""
    sizes = np.asarray(problem.sizes, dtype=np.longdouble)
    moved = slack * (sizes @ np.abs(beta)) + slack * np.abs(problem.ridge * beta)
    cap = np.where(np.isfinite(problem.upper - problem.lower), np.maximum(problem.upper, -problem.lower), 0.0)
    own = slack * np.abs(beta) * (np.abs(problem.target) + abs(float(truth.bias)) + problem.eps)
    slope = np.maximum(np.abs(beta), cap)
    if (problem.ridge > 0).any():
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = np.where(
                problem.ridge > 0, (np.abs(problem.target) + moved / slack + abs(float(truth.bias))) / problem.ridge, 0
            )
        slope = np.maximum(slope, np.minimum(steep, 1e300))
    if problem.is_hard:
        slope = slope + np.abs(beta).sum() * 4
    return 2 * float((moved * slope).sum() + own.sum())


# Solutions.


def check_solution(
    check: Checker, problem: Problem, solution: Any, tol: float | None, steps: int | None = None
) -> None:
    """All that a Solution promises."""
    name = solution.status.name
    if name == "UNBOUNDED" and not problem.is_hard and not problem.is_indefinite:
        check.fail("unbounded", "UNBOUNDED, but no error costs infinitely much here")
    if not check_feasible(check, problem, solution.beta):
        return
    converged = name == "CONVERGED"
    if converged and tol is not None:
        stated = float(solution.certificate.relative_gap)
        check.require(
            stated <= tol, "tol", lambda: f"CONVERGED with a stated relative gap of {stated:.3g}, tol={tol:g}"
        )
    check_certificate(
        check, problem, solution.beta, float(solution.bias), solution.certificate, tol if converged else None
    )
    if steps is not None:
        check.require(solution.n_iter <= steps, "steps", lambda: f"{solution.n_iter} iterations, max_steps={steps}")


def check_gamma(check: Checker, gamma: float, weight: np.ndarray | None = None) -> None:
    """What "scale" and "auto" stand for: 1 / (d var(X)) and 1 / d, in long double."""
    X, code = check.case.data.get("X"), "".join(check.case.code)
    if X is None or "gamma='" not in code or check.case.facts["kernel"] not in ("rbf", "poly", "sigmoid"):
        return
    X = Long.of(X)
    w = np.ones(len(X)) if weight is None else weight
    mean = (w @ X).sum() / (w.sum() * X.shape[1])
    variance = (w @ ((X - mean) ** 2)).sum() / (w.sum() * X.shape[1])
    wanted = 1 / (X.shape[1] * variance) if "gamma='scale'" in code and variance > 0 else Long.of(1.0)[()]
    wanted = Long.of(1.0)[()] / X.shape[1] if "gamma='auto'" in code else wanted
    # The mean is off by a unit of the largest entry, and so is every deviation from it.
    cancelled = float((UNIT * np.abs(X).max()) ** 2 / variance) if variance > 0 else np.inf
    allowed = 1e-12 * len(X) + 10 * cancelled + 4 * math.sqrt(cancelled)
    off = abs(float(gamma / wanted - 1))
    check.require(not off > allowed, "gamma", lambda: f"gamma is {gamma!r}, not {float(wanted)!r}: off by {off:.3g}")


def _problem_of(check: Checker, scope: dict[str, Any]) -> Problem:
    case, gram = check.case, scope["gram"]
    kernel = getattr(gram.kernel, "left", gram.kernel)  # tau² is added to it
    gamma = float(getattr(kernel, "gamma", 1.0))
    check_gamma(check, gamma)
    return case.problem(gamma, gram.tau)


def _note_status(check: Checker, status: Any) -> None:
    check.notes["status"] = status.name


def check_solve(check: Checker, scope: dict[str, Any]) -> None:
    case, solution = check.case, scope["solution"]
    _note_status(check, solution.status)
    check_solution(check, _problem_of(check, scope), solution, case.facts["tol"], case.facts["steps"])


def _stray(problem: Problem, beta: np.ndarray, primal: Truth) -> float:
    """A dual point whose sum s rounding has left near zero proves P >= dual - b s, b being the bias of the primal point."""
    return abs(float(primal.bias)) * abs(math.fsum(beta)) if problem.has_bias else 0.0


def _objectives_agree(check: Checker, cause: str, problem: Problem, a: Any, b: Any) -> None:
    """Two points of one problem: each dual objective is below every primal one, so their gaps bound their distance."""
    if problem.is_indefinite or problem.is_hard or not problem.has_finite_kernel:
        return
    one, two = (evaluate(problem, s.beta, float(s.bias), Digits) for s in (a, b))
    for first, second, beta in ((one, two, a.beta), (two, one, b.beta)):
        excess = float(first.dual - second.primal)
        size = abs(float(first.dual)) + abs(float(second.primal))
        check.require(
            excess <= 1e-12 * size + _stray(problem, beta, second),
            cause,
            lambda e=excess: f"a dual objective is above a primal one by {e:.3g}",
        )


def check_resume(check: Checker, scope: dict[str, Any]) -> None:
    case, solution, whole, first = check.case, scope["solution"], scope["whole"], scope["first"]
    _note_status(check, solution.status)
    problem, facts = _problem_of(check, scope), case.facts
    check_solution(check, problem, first, facts["tol"], facts["first"])
    check_solution(check, problem, solution, facts["tol"], facts["first"] + facts["steps"])
    check.require(
        np.array_equal(scope["kept"], first.beta),
        "resume",
        lambda: "resuming changed the solution that was resumed from",
    )
    limited = {"MAX_TIME"} & {first.status.name, solution.status.name, whole.status.name}
    if facts["same"] and first.status.name == "CONVERGED":
        same = np.array_equal(solution.beta, first.beta)
        check.require(same, "resume", lambda: "a converged solution changed when resumed with the same rule")
    elif facts["same"] and not limited:
        check.notes["bits"] = bool(np.array_equal(solution.beta, whole.beta))
    if {solution.status.name, whole.status.name} == {"CONVERGED"}:
        _objectives_agree(check, "resume", problem, solution, whole)


def check_interrupt(check: Checker, scope: dict[str, Any]) -> None:
    case, first, solution, looks = check.case, scope["first"], scope["solution"], scope["looks"]
    _note_status(check, first.status)
    problem, facts = _problem_of(check, scope), case.facts
    check_solution(check, problem, first, facts["tol"], facts["steps"])
    check_solution(check, problem, solution, facts["tol"], 2 * facts["steps"])
    check.require(
        np.array_equal(scope["kept"], first.beta),
        "resume",
        lambda: "resuming changed the solution that was resumed from",
    )
    if facts["how"] != "time":
        check.require(
            len(looks) <= facts["at"], "interrupt", lambda: f"stopped at look {facts['at']}, but {len(looks)} were made"
        )
    if facts["how"] == "callback" and len(looks) == facts["at"]:
        check.require(
            first.status.name == "STOPPED", "interrupt", lambda: f"the callback stopped it: {first.status.name}"
        )


# Paths.


def check_path(check: Checker, scope: dict[str, Any]) -> None:
    path, facts = scope["path"], check.case.facts
    check.notes["status"] = path.status
    if path.status not in ("complete",):
        check.fail("path", f"the path ended with status {path.status!r}")
    C = np.asarray(path.C)
    if not check.require(bool(np.isfinite(C).all() and (np.diff(C) > 0).all()), "path", lambda: f"breakpoints: {C}"):
        return
    near = abs(C[0] / facts["C_min"] - 1) < 1e-9 and abs(C[-1] / facts["C_max"] - 1) < 1e-9
    check.require(
        near, "path", lambda: f"asked for {facts['C_min']:g} to {facts['C_max']:g}, got {C[0]:g} to {C[-1]:g}"
    )
    check.require(
        path.n_events == len(path.events), "path", lambda: f"n_events {path.n_events}, events {len(path.events)}"
    )
    if "events" in scope:
        check.notes["resumed"] = scope["first"] == "max_events"
        check.require(path.n_events >= scope["events"], "path", lambda: "events were lost when the path was resumed")
    reported = bool(path.n_backups or scope.get("warned"))
    check.notes["reported"] = reported
    for share in facts["at"]:
        _check_path_at(check, path, float(C[0] ** (1 - share) * C[-1] ** share), reported)
    if facts.get("saved"):
        _check_loaded(check, path, scope["loaded"])


def _check_path_at(check: Checker, path: Any, C: float, reported: bool) -> None:
    case = check.case
    C = min(max(C, path.C[0]), path.C[-1])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        beta, bias = np.asarray(path.coefficients_at(C)), float(path.bias_at(C))
    problem = formulated(
        "hinge", spec(case, getattr(path.gram.kernel, "gamma", 1.0)), raw(case), case.data["y"], C, 0.0, case.data.get("w"),
        True,
    )  # fmt: skip
    if not check.require(
        np.isfinite(beta).all() and math.isfinite(bias), "nan", lambda: f"at C={C!r}: {beta}, bias {bias}"
    ):
        return
    over = float(np.maximum(problem.lower - beta, beta - problem.upper).max())
    check.require(
        over <= 4 * UNIT * C * float(np.max(case.data.get("w", 1.0))),
        "box",
        lambda: f"path at C={C!r}: outside by {over:.3g}",
    )
    certificate = path.certificate_at(C)
    check.require(not math.isnan(certificate.relative_gap), "nan", lambda: f"path certificate at C={C!r} is NaN")
    if problem.is_indefinite or not problem.has_finite_kernel:
        check.notes["indefinite"] = True
        return
    if case.facts["engine"] != "single" or reported or told:
        return
    truth = evaluate(problem, beta, bias, Long)
    if not float(truth.at_bias) + truth.at_bias_error <= PATH_GAP * float(truth.primal):
        check.notes["digits"] = True
        truth = evaluate(problem, beta, bias, Digits)
    gap, primal = float(truth.at_bias) - float(truth.at_bias_error), float(truth.primal)
    check.require(
        gap <= PATH_GAP * primal,
        "path gap",
        lambda: f"true relative gap {gap / primal:.3g} at C={C!r}, nothing reported",
    )


def check_families(check: Checker, scope: dict[str, Any]) -> None:
    """Paths of regression and of one class."""
    path, facts = scope["path"], check.case.facts
    check.notes["status"] = path.status
    check.require(path.status == "complete", "path", lambda: f"the path ended with status {path.status!r}")
    values = np.asarray(path.value_of(path.lam))
    way = 1.0 if facts["over"] == "C" else -1.0
    if not check.require(
        bool(np.isfinite(values).all() and (way * np.diff(values) > 0).all()), "path", lambda: f"breakpoints: {values}"
    ):
        return
    begin, end = facts["begin"], facts["end"]
    near = np.allclose([values[0], values[-1]], [begin, end], rtol=1e-9, atol=1e-12 * max(begin, end))
    check.require(near, "path", lambda: f"asked for {begin:g} to {end:g}, got {values[0]:g} to {values[-1]:g}")
    if "events" in scope:
        check.notes["resumed"] = scope["first"] != "complete"
        check.require(path.n_events >= scope["events"], "path", lambda: "events were lost when the path was resumed")
    largest, reported = path.largest_gap_, bool(path.n_backups or scope.get("warned"))
    check.require(0.0 <= largest <= 1.0, "nan", lambda: f"the largest gap is {largest}")
    check.notes["reported"] = reported
    for share in facts["at"]:
        between = begin ** (1 - share) * end**share if facts["over"] == "C" else begin + share * (end - begin)
        _check_family_at(check, path, float(np.clip(between, values.min(), values.max())), largest, reported)
    for k in (0, values.size // 2, values.size - 1):
        _check_family_at(check, path, float(values[k]), largest, reported)


def _family_problem(case: Case, path: Any, value: float, *, merged: bool = False) -> Problem:
    """Return the problem of all rows, or that of the distinct points, which the certificates of a path are about.

    Where rows share the coefficient of a point its rounding is not that of the certificate: beside an outlier that is most of
    what is left of the objective.
    """
    facts, kernel = case.facts, spec(case, getattr(path.gram.kernel, "gamma", 1.0))
    X, y, w = raw(case), case.data["y"], case.data.get("w")
    if merged:
        rows, w = path.points.rows, path.points.weight
        X, y = X[np.ix_(rows, rows)] if kernel.name in ("precomputed", "callable") else X[rows], y[rows]
    if facts["over"] == "nu":
        return formulated("one_class", kernel, X, y, min(value, 1.0), 0.0, w, True)
    C, eps = (value, facts["eps"]) if facts["over"] == "C" else (facts["C"], max(value, 0.0))
    return formulated("epsilon_insensitive", kernel, X, y, C, eps, w, True)


def _check_family_at(check: Checker, path: Any, value: float, largest: float, reported: bool) -> None:
    where = f"{path.parameter}={value!r}"
    problem = _family_problem(check.case, path, value)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        beta, bias = np.asarray(path.coefficients_at(value)), float(path.bias_at(value))
    if not check.require(
        bool(np.isfinite(beta).all()) and math.isfinite(bias), "nan", lambda: f"at {where}: {beta}, bias {bias}"
    ):
        return
    size = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    over = float((np.maximum(problem.lower - beta, beta - problem.upper) - 8 * UNIT * size).max())
    check.require(over <= 0.0, "box", lambda: f"path at {where}: outside by {over:.3g}")
    certificate = path.certificate_at(value)
    check.require(not math.isnan(certificate.relative_gap), "nan", lambda: f"the certificate at {where} is NaN")
    if problem.is_indefinite or not problem.has_finite_kernel:
        check.notes["indefinite"] = True
        return
    if (
        path.gram.kernel.centre is None
    ):  # else it is about points that were moved, which what is left of the sum tells apart
        merged = _family_problem(check.case, path, value, merged=True)
        inside = np.clip(path.beta_at(value), merged.lower, merged.upper)
        check_certificate(check, merged, inside, float(certificate.bias), certificate, None)
    floor = path.floor_at(value)
    certificate = path.certificates(np.array([value]), from_data=False)[
        0
    ]  # the proof is about kernel values as computed
    values = np.asarray(problem.sizes, dtype=float) @ np.abs(beta) + np.abs(problem.target) + abs(bias)
    rounded = 16 * UNIT * float(size @ values)
    known = (largest + READ) * (abs(certificate.primal) + floor) + rounding_of(certificate) + rounded
    check.require(
        reported or not certificate.gap > known,
        "largest gap",
        lambda: (
            f"largest_gap_ is {largest:.3g}, but at {where} the gap is {certificate.gap:.3g} of {certificate.primal:.3g}"
        ),
    )
    if reported or told:
        return
    truth = evaluate(problem, beta, bias, Long)
    allowed = PATH_GAP * (abs(float(truth.primal)) + floor)
    if not float(truth.at_bias) + truth.at_bias_error <= allowed:
        check.notes["digits"] = True
        truth = evaluate(problem, beta, bias, Digits)
    gap = float(truth.at_bias) - float(truth.at_bias_error)
    check.require(
        gap <= allowed,
        "path gap",
        lambda: f"true gap {gap:.3g} at {where}, {allowed:.3g} is allowed, nothing reported",
    )


def _check_loaded(check: Checker, path: Any, loaded: Any) -> None:
    same = np.array_equal(path.C, loaded.C) and path.n_events == loaded.n_events and path.events == loaded.events
    for C in path.C[:: max(1, len(path.C) // 5)]:
        same = same and np.array_equal(path.coefficients_at(C), loaded.coefficients_at(C))
        same = same and path.bias_at(C) == loaded.bias_at(C)
    check.require(bool(same), "path", lambda: "the loaded path differs from the saved one")


# Estimators.


def _gamma_and_tau(model: Any) -> tuple[float, float]:
    kernel = model._kernel
    return float(getattr(kernel, "gamma", 1.0)), 0.0


def _rows(X: np.ndarray, rows: Any, is_matrix: bool) -> np.ndarray:
    return X[np.ix_(rows, rows)] if is_matrix else X[rows]


def _pair_problems(case: Case, model: Any, rows: np.ndarray) -> Any:
    """Yield for every pair of classes the rows of both, and the problem on them."""
    X, is_matrix = raw(case), case.facts["kernel"] in ("precomputed", "callable")
    y, w = case.data["y"][rows], case.data.get("w")
    weight = np.ones(rows.size) if w is None else w[rows]
    factors = case.facts.get("class_weight")
    if factors:
        weight = weight * np.array([factors[k] for k in y])
    classes = np.unique(y)
    for a, b in combinations(range(classes.size), 2):
        ours = np.flatnonzero((y == classes[a]) | (y == classes[b]))
        positive = classes[b] if classes.size == 2 else classes[a]
        sign = np.where(y[ours] == positive, 1.0, -1.0)
        points = _rows(X, rows[ours], is_matrix)
        yield a, b, ours, formulated(
            case.facts["formulation"], spec(case, *_gamma_and_tau(model)), points, sign, case.facts["C"], 0.0, weight[ours],
            case.facts["has_bias"],
        )  # fmt: skip


def _pair_coefficients(model: Any, a: int, b: int, n: int) -> np.ndarray:
    """The coefficients of a pair of classes out of LIBSVM's layout, over all rows."""
    beta = np.zeros(n)
    edges = np.concatenate([[0], np.cumsum(model.n_support_)])
    for own, other in ((a, b), (b, a)):
        part = slice(edges[own], edges[own + 1])
        beta[np.asarray(model.support_)[part]] = _dense(model.dual_coef_)[other - (other > own), part]
    return beta


def _dense(values: Any) -> np.ndarray:
    """Coefficients of sparse points are sparse, too."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def check_values(check: Checker, problem: Problem, beta: np.ndarray, bias: float, values: np.ndarray) -> None:
    """Predictions at the training points are those of the coefficients, to the rounding of what is summed."""
    if not (problem.has_finite_kernel and np.isfinite(beta).all() and math.isfinite(bias)):
        return
    K, S = problem.matrix(Long), problem.sizes
    expected = K @ Long.of(beta) + bias
    size = np.maximum(S, 1.0) if problem.kernel.name == "rbf" else S
    allowed = 1e-10 * (size @ np.abs(Long.of(beta)) + abs(bias)) + 1e-290
    with np.errstate(invalid="ignore"):
        off = np.abs(expected - values)
    k = int(np.argmax(off - allowed))
    holds = bool((off <= allowed).all()) or not bool(np.isfinite(allowed).all())
    check.require(
        holds,
        "values",
        lambda: f"row {k}: predicted {values[k]:.12g}, but sum(beta k) + b is {float(expected[k]):.12g}",
    )


def _classifier(check: Checker, model: Any, rows: np.ndarray, tol: float, values: np.ndarray | None = None) -> None:
    statuses = model.status_ if isinstance(model.status_, list) else [model.status_]
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    for p, (a, b, ours, problem) in enumerate(_pair_problems(check.case, model, rows)):
        beta = _pair_coefficients(model, a, b, rows.size)[ours]
        _estimated(check, problem, beta, float(model.intercept_[p]), certificates[p], statuses[p], tol)
        if values is not None:
            own = values if values.ndim == 1 else values[:, p]
            check_values(check, problem, beta, float(model.intercept_[p]), own[ours])
    check.notes["status"] = "/".join(sorted({status.name for status in statuses}))


def _estimated(
    check: Checker, problem: Problem, beta: np.ndarray, bias: float, certificate: Any, status: Any, tol: float
) -> None:
    """Equal rows share a coefficient by weight, which rounds: two units of slack."""
    if not check_feasible(check, problem, beta, 4 * UNIT):
        return
    if status.name == "CONVERGED":
        stated = float(certificate.relative_gap)
        check.require(
            stated <= tol, "tol", lambda: f"CONVERGED with a stated relative gap of {stated:.3g}, tol={tol:g}"
        )
    check_certificate(check, problem, beta, bias, certificate, tol if status.name == "CONVERGED" else None, 2 * UNIT)


def check_estimator(check: Checker, scope: dict[str, Any]) -> None:
    case, model = check.case, scope["model"]
    rows = np.arange(case.data["y"].size)
    if case.about["estimator"] == "SVC":
        _classifier(check, model, rows, case.facts["tol"], scope["values"])
    else:
        _regressor(check, model, scope["values"])
    variant = case.facts.get("variant")
    if variant and case.facts["kernel"] != "precomputed" and not _was_timed(model, scope["variant"]):
        _check_variant(check, variant, model, scope["variant"])


def _was_timed(*models: Any) -> bool:
    names = {s.name for m in models for s in (m.status_ if isinstance(m.status_, list) else [m.status_])}
    return "MAX_TIME" in names


def _check_variant(check: Checker, variant: str, model: Any, other: Any) -> None:
    """The problem is the same, bit for bit: so is what comes out."""
    both = [m.certificate_ if isinstance(m.certificate_, list) else [m.certificate_] for m in (model, other)]
    for one, two in zip(*both, strict=True):
        same = (one.primal, one.dual, one.bias) == (two.primal, two.dual, two.bias)
        check.require(same or one.primal != one.primal, variant, lambda o=one, t=two: f"another result: {o} and {t}")


def _regression_problem(case: Case, model: Any, rows: np.ndarray) -> Problem:
    facts, w = case.facts, case.data.get("w")
    points = _rows(raw(case), rows, case.facts["kernel"] in ("precomputed", "callable"))
    return formulated(
        facts["formulation"], spec(case, *_gamma_and_tau(model)), points, case.data["y"][rows], facts["C"], facts["eps"],
        None if w is None else w[rows], facts["has_bias"],
    )  # fmt: skip


def _regression_coefficients(model: Any, n: int) -> np.ndarray:
    beta = np.zeros(n)
    beta[model.support_] = _dense(model.dual_coef_)[0]
    return beta


def _regressor(check: Checker, model: Any, values: np.ndarray | None, rows: np.ndarray | None = None) -> None:
    case = check.case
    problem = _regression_problem(case, model, np.arange(case.data["y"].size) if rows is None else rows)
    beta = _regression_coefficients(model, problem.n)
    bias = float(model.intercept_[0]) if hasattr(model, "intercept_") else 0.0
    _estimated(check, problem, beta, bias, model.certificate_, model.status_, case.facts["tol"])
    if values is not None:
        check_values(check, problem, beta, bias, values)
    check.notes["status"] = model.status_.name


def check_gp(check: Checker, scope: dict[str, Any]) -> None:
    mean = scope["mean"]
    _regressor(check, scope["model"], mean)
    check.require(bool(np.isfinite(mean).all()) or check.notes["status"] != "CONVERGED", "nan", lambda: f"mean {mean}")


def check_incremental(check: Checker, scope: dict[str, Any]) -> None:
    case, model, fresh = check.case, scope["model"], scope["fresh"]
    rows, is_regressor = np.array(case.facts["held"]), case.about["estimator"] == "SVR"
    for one in (fresh, model):
        if is_regressor:
            _regressor(check, one, None, rows)
        else:
            _classifier(check, one, rows, case.facts["tol"])
    statuses = {status.name for m in (model, fresh) for status in _listed(m.status_)}
    parts = list(_parts(case, model, fresh, rows))
    if statuses == {"CONVERGED"} and not check.failures:
        for part in parts:
            _models_agree(check, *part)
        if case.facts["left_out"] is not None and not any(
            problem.is_indefinite or not problem.has_finite_kernel for problem, *_ in parts
        ):
            _check_left_out(check, scope)
        return
    for p, (problem, *_) in enumerate(parts):
        both = {_listed(m.status_)[p].name for m in (model, fresh)}
        if both >= {"UNBOUNDED", "CONVERGED"} and not problem.is_indefinite:
            # Without convexity one start may lead to a stationary point, another to a ray on which the objective rises.
            check.fail("incremental", f"of a model and a fresh fit one says UNBOUNDED, and one CONVERGED, of pair {p}")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parts(case: Case, model: Any, fresh: Any, rows: np.ndarray) -> Any:
    """Yield every problem, with both models' coefficients and intercepts."""
    if case.about["estimator"] == "SVR":
        problem = _regression_problem(case, model, rows)
        yield problem, *((_regression_coefficients(m, rows.size), float(m.intercept_[0])) for m in (model, fresh))
        return
    for p, (a, b, ours, problem) in enumerate(_pair_problems(case, model, rows)):
        points = ((_pair_coefficients(m, a, b, rows.size)[ours], float(m.intercept_[p])) for m in (model, fresh))
        yield problem, *points


def _models_agree(
    check: Checker, problem: Problem, one: tuple[np.ndarray, float], two: tuple[np.ndarray, float]
) -> None:
    if problem.is_indefinite or not problem.has_finite_kernel:
        return
    first_truth, second_truth = (evaluate(problem, beta, bias, Long) for beta, bias in (one, two))
    for first, second, beta in ((first_truth, second_truth, one[0]), (second_truth, first_truth, two[0])):
        excess = float(first.dual - second.primal) - first.dual_error - second.primal_error
        size = abs(float(first.dual)) + abs(float(second.primal))
        allowed = 1e-10 * size + _stray(problem, beta, second)
        check.require(
            excess <= allowed, "incremental", lambda e=excess: f"objectives differ by {e:.3g} beyond the gaps"
        )


def _check_left_out(check: Checker, scope: dict[str, Any]) -> None:
    """What is said of a row without it is what a fit without it says, of every pair of classes."""
    case, left_out, without = check.case, scope["left_out"], scope["without"]
    if any(status.name != "CONVERGED" for status in _listed(without.status_)):
        return
    row, held = case.facts["left_out"], np.array(case.facts["held"])
    rest = np.delete(np.arange(held.size), row)
    is_regressor = case.about["estimator"] == "SVR"
    found = np.atleast_1d((left_out.predictions if is_regressor else left_out.decision_values)[row])
    if left_out.status.name == "MAX_TIME" and np.isnan(found.astype(float)).any():
        return  # it says that it did not come to this row
    points = _rows(raw(case), held, case.facts["kernel"] == "callable")
    K = np.asarray(spec(case, *_gamma_and_tau(scope["model"])).values(points, points, Long), dtype=np.longdouble)

    def coefficients(model: Any, n: int) -> list[np.ndarray]:
        if is_regressor:
            return [_regression_coefficients(model, n)]
        return [_pair_coefficients(model, a, b, n) for a, b in combinations(range(model.classes_.size), 2)]

    starts = coefficients(scope["model"], held.size)
    for p, beta in enumerate(coefficients(without, rest.size)):
        # Exchanges lead from the model to the one without the row, and keep what its coefficients have left to rounding.
        size = float((np.abs(K) @ (np.abs(np.insert(beta, row, 0.0)) + np.abs(starts[p]))).max())
        bias, certificate = float(without.intercept_[p]), _listed(without.certificate_)[p]
        _check_left_out_value(check, K, row, rest, beta, bias, certificate, float(found[p]), size)


def _check_left_out_value(
    check: Checker, K: np.ndarray, row: int, rest: np.ndarray, beta: np.ndarray, bias: float, certificate: Any, value: float,
    size: float,
) -> None:  # fmt: skip
    """f(x) of two optima differs by at most sqrt(2 gap k(x, x)); the bias by its interval and as much again at other points."""
    expected = float(K[row, rest] @ beta) + bias
    low, high = certificate.bias_interval
    gap = certificate.gap + rounding_of(certificate)
    reach = math.sqrt(2 * gap * float(np.diagonal(K).max()))
    # The value may be read off a residual, t - f(x) with a target of one, or of its own size.
    target = float(np.abs(check.case.data["y"]).max())
    noise = 64 * len(K) * UNIT * size + 4 * UNIT * target
    free = bool(((np.abs(beta) > 1e-9 * np.abs(beta).max()) & (np.abs(beta) < 0.999 * np.abs(beta).max())).any())
    if not check.case.facts["has_bias"]:
        allowed = 4 * reach + noise
    elif not free:
        return  # the bias has an interval of its own, of which either side is right
    else:
        allowed = 10 * (reach + abs(high - low)) + noise + 1e-3 * (1 + abs(expected))
    check.require(
        abs(value - expected) <= allowed,
        "leave-one-out",
        lambda: f"row {row}: {value:.10g}, a fit without it {expected:.10g}",
    )


CHECKS: dict[str, Callable[[Checker, dict[str, Any]], None]] = {
    "solve": check_solve,
    "resume": check_resume,
    "interrupt": check_interrupt,
    "path": check_path,
    "families": check_families,
    "incremental": check_incremental,
    "estimator": check_estimator,
    "gp": check_gp,
}
