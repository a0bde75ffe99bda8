"""Every solver of the registry on every problem it claims: what ``zerogap/solvers/base.py`` asks of a solver is checked here.

A new solver needs no test of these; its own file tests what is its own.
"""

import copy
import functools
import itertools
import operator
from dataclasses import replace

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import FORMULATIONS, KINDS, points

from zerogap import DualProblem, Gram, KKTViolation, RelativeGap, Status, solve
from zerogap import solvers as package
from zerogap.solvers import (
    SOLVERS,
    SOR,
    Chunking,
    ConjugateGradient,
    Decomposition,
    GradientAscent,
    PlattSMO,
    SimpleSVM,
)

TOL = 1e-8

# Options that change what a solver does on few points.
VARIANTS = {
    "chunking": [Chunking(6, rule="gap")],
    "decomposition": [Decomposition(16, rule="gap")],
    "gradient-ascent": [GradientAscent(order="free-first"), GradientAscent(order="ranked")],
    "sor": [SOR(order="free-first"), SOR(order="ranked")],
    "smo-platt": [PlattSMO(increase=1e-3)],
    "simple-svm": [SimpleSVM("worst")],
    "cg": [ConjugateGradient("nystrom", rank=10)],
}
# Instead of those whose defaults are meant for many points: forty would be one working set.
SMALLER = {"chunking": Chunking(6), "decomposition": Decomposition(16)}


def everyone():
    """Yield (id, line of the registry, solver); a second name for the same solver is not tried again."""
    seen = []
    for name, entry in sorted(SOLVERS.items(), key=lambda item: item[0] == "auto"):
        if entry in seen:
            continue
        seen.append(entry)
        for k, solver in enumerate([SMALLER.get(name, entry.make()), *VARIANTS.get(name, [])]):
            yield f"{name}-{k}" if k else name, entry, solver


ENTRIES = {name: entry for name, entry, _ in everyone()}
MADE = {name: solver for name, _, solver in everyone()}


# Problems.


def gaussian_process(gram, y, t, **options):
    return DualProblem.gaussian_process(gram, t, 0.1)


ALL = FORMULATIONS | {"gaussian-process": gaussian_process}
SCALE = 2.0**20  # a power of two, which rounds nothing


def precomputed(X):
    return Gram(X @ X.T + 1.0, "precomputed")


def sparse(X):
    return Gram(sp.csr_matrix(np.hstack([np.where(np.abs(X) < 0.5, 0.0, X), np.zeros((len(X), 400))])))


# Data besides those of conftest, which have an rbf kernel: how the matrix is made of the plain points.
MATRICES = {
    "linear": lambda X: Gram(X, "linear"),  # of rank 3
    "poly": lambda X: Gram(X, "poly", coef0=1.0),
    "precomputed": precomputed,
    "sparse": sparse,
    "weights": Gram,
    "huge-values": lambda X: Gram(SCALE * X, "linear"),
    "tiny-values": lambda X: Gram(X / SCALE, "linear"),
}
WEIGHT = np.resize([1.0, 0.5, 3.0, 0.0, 2.0], 40)


@functools.cache
def made(formulation: str, kind: str, has_bias: bool) -> DualProblem:
    X, y, t = points(kind)
    gram = MATRICES.get(kind, Gram)(X)
    options = {"sample_weight": WEIGHT} if kind == "weights" else {}
    problem = ALL[formulation](gram, y, t, fit_intercept=has_bias, **options)
    size = {"huge-values": SCALE, "tiny-values": 1 / SCALE}.get(kind, 1.0) ** 2
    return replace(problem, lower=problem.lower / size, upper=problem.upper / size, ridge=problem.ridge * size)


def problem_of(name: tuple[str, str, bool]) -> DualProblem:
    """Return the problem with nothing computed yet."""
    problem = made(*name)
    return replace(problem, gram=problem.gram.fresh())


@functools.cache
def reference(formulation: str, kind: str, has_bias: bool) -> float:
    """Return the least D, by an interior-point solver whose own two bounds agree to 1e-8.

    X times s, C over s² and a ridge times s² are the same problem in other units, of which D is 1 / s² as much: the
    interior-point solver gets the one whose numbers are near one.
    """
    size = {"huge-values": SCALE, "tiny-values": 1 / SCALE}.get(kind, 1.0) ** 2
    if size != 1.0:
        return reference(formulation, "linear", has_bias) / size
    return naive.reference_objective(made(formulation, kind, has_bias))


# An rbf kernel with gamma="scale" does not see the scale of the points: the last two are for the kernels' own tests.
SEEN = [kind for kind in KINDS if kind not in ("huge", "tiny")]


def names():
    """Yield the problems: all formulations on the data of conftest, and some on other matrices."""
    for formulation in FORMULATIONS:
        for has_bias in (True, False):
            yield from ((formulation, kind, has_bias) for kind in SEEN)
    yield from (("gaussian-process", kind, False) for kind in ("plain", "duplicates"))
    for kind in MATRICES:
        yield from (
            ("hinge", kind, True),
            ("hinge", kind, False),
            ("squared-hinge", kind, True),
            ("insensitive", kind, False),
        )
        if kind != "weights":
            yield "gaussian-process", kind, False


def claimed(chosen=None):
    """Make a check of one solver on one problem a test of every solver on the problems it claims, all of them or those chosen.

    At once each solver has one problem of each formulation, another kind of points each time; the long form has them all
    together, which is faster, and says which of them has failed.  Variants of a solver are among the long forms.
    """
    key = operator.itemgetter(0, 2)  # formulation, and whether it has a bias
    groups = itertools.groupby(sorted(names() if chosen is None else chosen, key=key), key=key)
    groups = {f"{formulation}-{'bias' if bias else 'no-bias'}": list(group) for (formulation, bias), group in groups}
    claims = [
        (solver, label, mine)
        for solver, entry in ENTRIES.items()
        for label, group in groups.items()
        if (mine := [name for name in group if entry.claims(made(*name))])
    ]
    pairs = [
        pytest.param(
            solver,
            [mine[turn % len(mine)]],
            id=f"{label}-{solver}",
            marks=[] if solver in SOLVERS else pytest.mark.long,
        )
        for turn, (solver, label, mine) in enumerate(claims)
    ]
    pairs += [
        pytest.param(solver, mine, id=f"{label}-{solver}-all", marks=pytest.mark.long)
        for solver, label, mine in claims
        if len(mine) > 1
    ]

    def decorate(check):
        @pytest.mark.parametrize(("solver", "problems"), pairs)
        def test(solver, problems):
            for name in problems:
                try:
                    check(solver, name)
                except Exception as error:
                    error.add_note(f"The problem is {name}.")
                    raise

        test.check = check
        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


# Problems that take every solver some steps, with a box, a ridge, a kink, a bias or none.
PLAIN = [("hinge-large-C", "plain", True), ("hinge-large-C", "plain", False), ("squared-hinge", "plain", True)]
PLAIN += [("insensitive", "plain", True), ("squared-insensitive", "plain", False), ("gaussian-process", "plain", False)]


# What everyone has to do.


def arrays(problem):
    X = problem.gram.X
    return [
        problem.target,
        problem.lower,
        problem.upper,
        problem.ridge,
        *((X.data, X.indices) if sp.issparse(X) else (X,)),
    ]


def assert_feasible(problem, beta, sum_residual):
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    assert abs(sum_residual) <= 4 * np.spacing(np.abs(beta).sum())


def assert_true(problem, solution, optimum):
    """The optimum lies between the two objectives; ``slack`` is what the reference is off."""
    certificate, slack = solution.certificate, 1e-8 * abs(optimum)
    assert certificate.dual - certificate.rounding <= optimum + slack
    assert certificate.primal + certificate.rounding >= optimum - slack
    K, beta = naive.matrix(problem), np.abs(solution.beta)
    size = 0.5 * beta @ np.abs(K) @ beta + np.abs(problem.target) @ beta + problem.eps * beta.sum()
    off = abs(naive.objective(problem, solution.beta) + certificate.dual)
    assert off <= certificate.rounding + 2 * naive.sum_rounding(problem.n, size)


@claimed()
def test_reaches_the_optimum_of_a_reference_qp(solver, name):
    problem, entry, optimum = problem_of(name), ENTRIES[solver], -reference(*name)
    before = [array.copy() for array in arrays(problem)]
    solution = solve(problem, MADE[solver], stop=RelativeGap(TOL))
    for array, was in zip(arrays(problem), before, strict=True):
        np.testing.assert_array_equal(array, was)
    assert_feasible(problem, solution.beta, solution.certificate.sum_residual)
    assert_true(problem, solution, optimum)
    if entry.is_exact:
        assert solution.status is Status.CONVERGED
        assert solution.certificate.relative_gap <= TOL
        assert abs(solution.certificate.dual - optimum) <= 2 * TOL * abs(optimum)
    else:
        assert solution.status in (Status.CONVERGED, Status.EXHAUSTED)


# Runs.


@pytest.mark.long
@claimed(PLAIN)
def test_a_run_can_be_repeated_to_the_last_bit(solver, name):
    seeded = ENTRIES[solver].make(7) if ENTRIES[solver].is_seeded else MADE[solver]
    a, b = (solve(problem_of(name), seeded, stop=RelativeGap(TOL)) for _ in range(2))
    assert (a.n_iter, a.status, a.certificate) == (b.n_iter, b.status, b.certificate)
    np.testing.assert_array_equal(a.beta, b.beta)


@pytest.mark.thin(3)
@claimed(PLAIN)
def test_a_step_limit_is_exact_and_a_run_goes_on_from_there(solver, name):
    """It ends where the uninterrupted run does, within both gaps, and what was handed out does not move."""
    problem, made_solver = problem_of(name), MADE[solver]
    problem.gram.full()  # so that all runs read the same kernel values
    steps = (0, 1) if solver == "cholesky" else (7, 8)  # with the factor one step is enough
    first = solve(problem, made_solver, max_steps=steps[0], stop=RelativeGap(1e-13))
    assert (first.status, first.n_iter) == (Status.MAX_STEPS, steps[0])
    beta, rows, state = first.beta.copy(), list(first.trace), copy.deepcopy(first.state)
    a, b = (solve(problem, made_solver, max_steps=steps[1], stop=RelativeGap(1e-13), resume=first) for _ in range(2))
    np.testing.assert_array_equal(a.beta, b.beta)
    assert first.n_iter < a.n_iter == b.n_iter <= sum(steps)
    assert a.status is not Status.MAX_STEPS or a.n_iter == sum(steps)
    assert a.certificate.dual >= first.certificate.dual - first.certificate.rounding
    assert list(a.trace)[: len(rows)] == rows == list(first.trace)
    assert a.trace["step"][[0, len(rows) - 1, -1]].tolist() == [0, first.n_iter, a.n_iter]
    np.testing.assert_array_equal(first.beta, beta)
    np.testing.assert_array_equal(first.state.residual, state.residual)
    resumed, straight = (solve(problem, made_solver, stop=RelativeGap(TOL), resume=start) for start in (a, None))
    assert_feasible(problem, resumed.beta, resumed.certificate.sum_residual)
    if ENTRIES[solver].is_exact:
        assert resumed.status is straight.status is Status.CONVERGED
        known = resumed.certificate, straight.certificate
        apart = sum(certificate.gap + certificate.rounding for certificate in known)
        assert abs(known[0].dual - known[1].dual) <= apart


@pytest.mark.thin(3)
@claimed(PLAIN)
def test_a_run_that_has_converged_has_nothing_to_go_on_with(solver, name):
    tol = 0.1 if not ENTRIES[solver].is_exact else TOL
    problem = problem_of(name)
    first = solve(problem, MADE[solver], stop=RelativeGap(tol))
    again = solve(problem, MADE[solver], stop=RelativeGap(tol), resume=first)
    assert first.status is again.status is Status.CONVERGED
    np.testing.assert_array_equal(again.beta, first.beta)
    assert (again.n_iter, again.certificate) == (first.n_iter, first.certificate)


@claimed(PLAIN)
def test_a_callback_sees_the_run_and_ends_it(solver, name):
    seen = []

    def callback(state, look):
        seen.append((look.step, state.beta.copy()))
        return len(seen) == 3

    problem = problem_of(name)
    solution = solve(problem, MADE[solver], stop=RelativeGap(1e-13), trace_every=1, callback=callback)
    assert solution.status is (Status.STOPPED if len(seen) == 3 else Status.CONVERGED)
    assert len(seen) >= 2
    assert [step for step, _ in seen] == list(range(len(seen)))
    # The loop may yet put right the last digits of the sum.
    np.testing.assert_allclose(seen[-1][1], solution.beta, rtol=0, atol=1e-14 * np.abs(solution.beta).sum())


@pytest.mark.thin(3)
@claimed([name for name in names() if name[1] == "plain"])
def test_every_step_leaves_the_state_in_order(solver, name):
    """The loop would mend a residual gone wrong before it certifies; a solver must not count on that."""
    problem, made_solver = problem_of(name), MADE[solver]
    start = problem.feasible_start()
    state, worst = made_solver.init(problem, start), problem.objective(start)
    assert not np.shares_memory(state.beta, start)
    for most in (1, 1, 5, 20, 100, 1000):
        state, info = made_solver.step(problem, state, most, 0.0)
        assert (0 if info.is_done else 1) <= info.iterations <= most
        beta = state.beta
        size = np.abs(problem.target).max() + problem.diagonal.max() * np.abs(beta).sum()
        # A residual has been updated by all moves so far, each with the rounding of a sum of that size.
        np.testing.assert_allclose(state.residual, problem.residual(beta), rtol=0, atol=1e-13 * size)
        assert (beta >= problem.lower).all()
        assert (beta <= problem.upper).all()
        assert abs(problem.excess(beta)) <= 1e-13 * np.abs(beta).sum()
        objective = problem.objective(beta)
        assert objective <= worst + 1e-13 * size * np.abs(beta).sum()
        worst = min(worst, objective)
        for array, expected in (("up_offset", problem.up_offset), ("low_offset", problem.low_offset)):
            if hasattr(state, array):
                np.testing.assert_array_equal(getattr(state, array), expected(beta))
    assert not start.any()
    assert worst < 0


@pytest.mark.thin(3)
@claimed(PLAIN)
def test_a_step_comes_back_where_the_violation_is_small_enough(solver, name):
    """``KKTViolation`` is what the loop then makes of it."""
    solution = solve(problem_of(name), MADE[solver], stop=KKTViolation(1e-4))
    assert solution.status is Status.CONVERGED or not ENTRIES[solver].is_exact
    if solution.status is Status.CONVERGED:
        assert naive.violation(solution.problem, solution.beta) <= 1.001e-4


def crowd(entry, n, **options):
    """Some hundred points with noise, in the formulation that suits."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    gram = Gram(X, gamma=1.0, **options)
    if not entry.constraints:
        return DualProblem.gaussian_process(gram, y, 0.1)
    if entry.hulls:
        return DualProblem.squared_hinge(gram, y, 1.0)
    return DualProblem.hinge(gram, y, 10.0 if entry.free_bias else 1.0, fit_intercept=entry.free_bias)


@pytest.mark.long
@pytest.mark.parametrize(
    ("solver", "n"),
    [
        (name, n)
        for name, entry in ENTRIES.items()
        if not entry.linear  # which needs no rows
        for n in ([200] if entry.is_exact else [100, 200])
    ],
)
def test_a_small_cache_changes_nothing_but_the_cost(solver, n):
    entry = ENTRIES[solver]
    problems = [crowd(entry, n, **options) for options in ({}, {"cache_size": 0.001})]
    roomy, tight = problems[0].gram, problems[1].gram
    assert not tight.holds_all
    a, b = (solve(problem, MADE[solver], stop=RelativeGap(1e-7)) for problem in problems)
    assert a.status is b.status
    assert a.status is Status.CONVERGED or not entry.is_exact
    assert a.certificate.dual == pytest.approx(b.certificate.dual, rel=2e-7 if entry.is_exact else 1e-3)
    assert roomy.evaluations <= tight.evaluations
    if solver != "cholesky":  # its matrix is its own, whatever the budget
        assert roomy.evaluations < tight.evaluations
        if "decomposition" not in entry.home:  # whose parts have matrices of their own
            assert roomy.evaluations <= n**2


# What cannot be done.


@pytest.mark.parametrize(
    "solver",
    [
        pytest.param(name, marks=[] if name in SOLVERS else pytest.mark.long)
        for name, entry in ENTRIES.items()
        if entry.constraints and not entry.linear
    ],
)
def test_a_hard_margin_that_does_not_exist_is_recognised(solver):
    """Classes that no plane separates; and a point in both classes, which is a long way for one coefficient at a time."""
    (X, y, _), has_bias = points("plain"), ENTRIES[solver].free_bias
    problems = [DualProblem.hard_margin(Gram(X, "linear"), y, fit_intercept=has_bias)]
    if has_bias:
        problems.append(DualProblem.hard_margin(Gram(np.concatenate([X, X[:1]])), np.append(y, -y[0])))
    for problem in problems:
        solution = solve(problem, MADE[solver])
        assert solution.status is Status.UNBOUNDED
        assert "finite C" in solution.status.advice


@pytest.mark.parametrize("solver", ENTRIES)
def test_what_a_solver_does_not_claim_it_refuses_by_name_of_one_that_can(solver):
    for formulation in ALL:
        for has_bias in (True, False):
            problem = made(formulation, "plain", has_bias)
            if ENTRIES[solver].claims(problem):
                MADE[solver].init(problem_of((formulation, "plain", has_bias)))
                continue
            with pytest.raises(ValueError, match=r"'smo'"):
                solve(problem, MADE[solver])


@pytest.mark.parametrize("solver", ENTRIES)
def test_an_indefinite_kernel_is_refused_or_survived(solver):
    X, _, t = points("plain")
    problem = DualProblem.gaussian_process(Gram(X, lambda A, B: -(A @ B.T)), t, 0.1)
    if ENTRIES[solver].claims(problem):
        assert np.isfinite(solve(problem, MADE[solver], max_steps=1000).beta).all()
    else:
        names_another = ENTRIES[solver].hulls or ENTRIES[solver].linear
        with pytest.raises(ValueError, match="'smo'" if names_another else "not positive definite"):
            solve(problem, MADE[solver])


def test_every_class_of_the_registry_can_be_imported():
    for name, entry in SOLVERS.items():
        assert type(entry.make()) is getattr(package, entry.class_name), name
        assert entry.class_name in package.__all__
        assert entry.class_name in dir(package)
    for name in set(MADE) & set(SOLVERS):
        assert str(MADE[name]) == name  # what tables show
