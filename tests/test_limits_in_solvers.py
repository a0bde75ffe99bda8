"""Every solver gives up soon after its limit is over, with its state in order, and goes on from there."""

import copy

import numpy as np
import pytest
from test_solve import moons

from zerogap import DualProblem, Gram, RelativeGap, Status, limits, solve
from zerogap.gram import Gram as GramClass
from zerogap.solvers import (
    SMO,
    SOR,
    Chunking,
    ConjugateGradient,
    Decomposition,
    GradientAscent,
    SimpleSVM,
    compiled_loops,
    get_solver,
)

FREE_BIAS = {
    "smo": SMO(),
    "smo-mvp": SMO(second_order=False),
    "smo-plain": SMO(shrinking=False),
    "smo-keerthi": get_solver("smo-keerthi"),
    "smo-platt": get_solver("smo-platt"),
    "smo-simple": get_solver("smo-simple"),
    "rosen": get_solver("rosen"),
    "simple-svm": SimpleSVM(),
    "simple-svm-worst": SimpleSVM("worst"),
    "chunking": Chunking(60),
    "decomposition": Decomposition(60),
    "decomposition-rosen": Decomposition(60, "rosen"),
}
HULLS = {"direct-svm": get_solver("direct-svm"), "npa": get_solver("npa")}
SOLVERS = FREE_BIAS | HULLS | {"gradient-ascent": GradientAscent(), "sor": SOR()}
solvers = pytest.mark.parametrize("name", SOLVERS)


class Questions:
    """Stands for the clock: over after so many questions."""

    def __init__(self, after):
        self.asked, self.after = 0, after

    def __call__(self):
        self.asked += 1
        return self.asked > self.after


def step_within(questions, solver, problem, state, most, kkt_target):
    """Make a step that is told that its limit is over after so many questions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "is_over", questions)
        return solver.step(problem, state, most, kkt_target)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """On some hundred points a piece of work between two questions is to be as small as it is on many thousand."""
    monkeypatch.setattr(compiled_loops, "VALUES_PER_QUESTION", 3000)
    monkeypatch.setattr(compiled_loops, "pairs_per_question", lambda n: 5)
    monkeypatch.setattr("zerogap.solvers.rosen.WORK_PER_CALL", 3000)


def problem_for(name, n=1200, cache_size=1000):
    X, y = moons(n)
    gram = Gram(X, gamma=2.0, cache_size=cache_size)
    if name in HULLS:
        return DualProblem.squared_hinge(gram, y, 10.0)
    return DualProblem.hinge(gram, y, 10.0, fit_intercept=name in FREE_BIAS)


def assert_in_order(problem, state):
    beta, size = state.beta, np.abs(state.beta).sum() + 1.0
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    if problem.total is not None:
        assert abs(beta.sum()) <= 1e-13 * size
    np.testing.assert_allclose(state.residual, problem.residual(beta), atol=1e-13 * size)
    for array, expected in (("up_offset", problem.up_offset), ("low_offset", problem.low_offset)):
        if hasattr(state, array):
            np.testing.assert_array_equal(getattr(state, array), expected(beta))


@pytest.mark.parametrize(
    "questions_asked", [(0, 1, 4, 9), pytest.param((15, 40), marks=pytest.mark.long)], ids=["soon", "late"]
)
@pytest.mark.parametrize("cache_size", [1000, 0.5], ids=["roomy", "tight"])
@solvers
def test_a_step_ends_soon_after_its_limit(name, cache_size, questions_asked):
    problem, solver = problem_for(name, cache_size=cache_size), SOLVERS[name]
    state = solver.init(problem)
    for after in questions_asked:
        questions = Questions(after)
        state, info = step_within(questions, solver, problem, state, 1_000_000, 1e-9)
        assert questions.asked <= after + 12  # once it is over there are few more questions
        assert info.iterations < 1_000_000
        assert not info.is_done
        assert_in_order(problem, state)


@pytest.mark.long
@solvers
def test_a_run_in_small_pieces_reaches_the_optimum(name):
    problem, solver = problem_for(name, 300), SOLVERS[name]
    whole = solve(problem, solver, stop=RelativeGap(1e-6))
    state, taken = solver.init(problem), 0
    for _ in range(5000):
        state, info = step_within(Questions(40), solver, problem, copy.deepcopy(state), 1000, 1e-7)
        taken += info.iterations
        if info.is_done or problem.certify(state.beta, state.residual).relative_gap <= 1e-6:
            break
    gap = problem.certify(state.beta).relative_gap
    assert gap <= max(1.001e-6, 1.5 * whole.certificate.relative_gap)
    assert taken > 0


def test_what_a_part_has_reached_is_not_lost_when_the_limit_falls_between():
    """The part has moved, the rows of the others are missing: the point stays, and a later step goes on, copied or not."""
    problem, solver = problem_for("smo", 2000, cache_size=0.5), SMO()
    for after in range(400, 0, -2):
        state, info = step_within(Questions(after), solver, problem, solver.init(problem), 2000, 1e-9)
        if state.memory.moved is not None and not state.beta.any():
            break
    assert info.iterations > 0
    assert_in_order(problem, state)
    waiting = state.memory.moved.beta.copy()
    assert waiting.any()
    for start in (copy.deepcopy(state), state):
        resumed, _ = solver.step(problem, start, 0, 0.0)
        assert resumed.memory.moved is None
        np.testing.assert_array_equal(resumed.beta[resumed.beta != 0], waiting[waiting != 0])
        assert_in_order(problem, resumed)


@pytest.mark.parametrize("outer", [Chunking, Decomposition])
def test_a_subproblem_is_put_back_later_when_its_rows_came_too_late(outer, monkeypatch):
    problem, solver = problem_for("chunking", 400, cache_size=0.5), outer(50)
    state, dot = solver.init(problem), GramClass.dot

    def late(gram, beta):
        if gram is problem.gram:
            raise limits.Exceeded
        return dot(gram, beta)

    with monkeypatch.context() as patch:
        patch.setattr(GramClass, "dot", late)
        state, info = solver.step(problem, state, 1000, 1e-9)
    assert info.iterations > 0
    assert not state.beta.any()
    for start in (copy.deepcopy(state), state):
        resumed, _ = solver.step(problem, start, 1, 1e9)
        assert resumed.beta.any()
        assert_in_order(problem, resumed)
    assert solve(problem, solver, stop=RelativeGap(1e-7)).status is Status.CONVERGED


@pytest.mark.parametrize("fails_at", [0, 1, 5])
def test_conjugate_gradient_stops_before_the_product_that_is_too_long(fails_at, monkeypatch):
    X, y = moons(200)
    problem = DualProblem.gaussian_process(Gram(X, cache_size=0.1), y, 0.1)
    solver, multiply, products = get_solver("cg"), GramClass.multiply, []
    state = solver.init(problem)

    def late(gram, V):
        products.append(V)
        if len(products) > fails_at:
            raise limits.Exceeded
        return multiply(gram, V)

    with monkeypatch.context() as patch:
        patch.setattr(GramClass, "multiply", late)
        state, info = solver.step(problem, state, 10, 0.0)
    assert info.iterations == fails_at
    assert_in_order(problem, state)
    assert not info.is_done


@pytest.mark.parametrize("preconditioner", [None, "nystrom"])
def test_a_start_that_takes_too_long_is_given_up(preconditioner, monkeypatch):
    X, y = moons(200)
    problem = DualProblem.gaussian_process(Gram(X), y, 0.1)
    problem.gram.full()
    monkeypatch.setattr(limits, "is_over", Questions(5))
    if preconditioner is None:
        assert not ConjugateGradient().init(problem).beta.any()
        return
    with pytest.raises(limits.Exceeded):
        ConjugateGradient(preconditioner).init(problem)


@pytest.mark.parametrize("start", [None, np.linspace(-1.0, 1.0, 200)], ids=["zero", "resume"])
def test_a_run_that_is_over_before_it_begins_returns_its_start(start, monkeypatch):
    X, y = moons(200)
    problem = DualProblem.gaussian_process(Gram(X), y, 0.1)
    problem.gram.full()
    monkeypatch.setattr(limits, "is_over", Questions(5))
    solution = solve(problem, ConjugateGradient("nystrom"), resume=start)
    assert solution.status is Status.MAX_TIME
    np.testing.assert_array_equal(solution.beta, np.zeros(200) if start is None else start)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_closest_pair_is_any_pair_when_there_is_no_time(kernel, monkeypatch):
    X, y = moons(300)
    problem = DualProblem.hinge(Gram(X, kernel, coef0=1.0), y, 10.0)
    with monkeypatch.context() as patch:
        patch.setattr(limits, "is_over", Questions(0))
        state = SimpleSVM().init(problem)
    assert_in_order(problem, state)
    assert solve(problem, SimpleSVM(), stop=RelativeGap(1e-8)).status is Status.CONVERGED
