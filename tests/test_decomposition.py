"""Chunking and decomposition: their working sets, their subproblems, and their memory."""

import copy
import tracemalloc

import naive
import numpy as np
import pytest
from conftest import FORMULATIONS, points
from hypothesis import given
from hypothesis import strategies as st
from test_properties import awkward_points, slow, soft
from test_solve import moons

from zerogap import DualProblem, Gram, RelativeGap, Status, solve
from zerogap.solvers import Chunking, Decomposition
from zerogap.solvers.decomposition import WorkingSet, _gram_of, _open

SOLVERS = {
    "chunking": Chunking(6),
    "chunking-gap": Chunking(6, rule="gap"),
    "decomposition": Decomposition(16),
    "decomposition-gap": Decomposition(16, rule="gap"),
}
solvers = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


@pytest.mark.covering
@pytest.mark.parametrize("inner", ["smo-mvp", "smo-keerthi", "smo-platt", "chunking", Decomposition(6)], ids=str)
@pytest.mark.parametrize("outer", [Chunking, Decomposition])
def test_any_solver_can_do_the_subproblems(outer, inner, plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 5.0)
    solution = solve(problem, outer(12, inner), stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED
    assert naive.objective(problem, solution.beta) == pytest.approx(naive.reference_objective(problem), rel=2e-8)


@pytest.mark.parametrize("outer", [Chunking, Decomposition])
def test_subproblems_with_a_fixed_bias_by_gradient_ascent(outer, plain):
    X, y, _ = plain
    solver = outer(12, "gradient-ascent")
    problem = DualProblem.hinge(Gram(X), y, 5.0, fit_intercept=False)
    assert solve(problem, solver, stop=RelativeGap(1e-8)).status is Status.CONVERGED
    with pytest.raises(ValueError, match="fit_intercept=False"):
        solve(DualProblem.hinge(Gram(X), y, 5.0), solver)


def test_decomposition_with_two_points_is_smo(plain):
    """§7.5: the idea taken to its extreme.  Sets of the most violating pair, each solved in one move."""
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 5.0)
    pairs = solve(problem, Decomposition(2), stop=RelativeGap(1e-6))
    smo = solve(problem, "smo-mvp", stop=RelativeGap(1e-6), max_steps=pairs.n_iter)
    assert pairs.status is Status.CONVERGED
    assert pairs.n_iter == pairs.state.working_set.count
    assert pairs.certificate.dual == pytest.approx(smo.certificate.dual, rel=1e-5)


# The working sets.


def working_sets(solver, problem, steps=12):
    """Yield (beta before, the working set, beta after)."""
    state = solver.init(problem)
    for _ in range(steps):
        before = state.beta.copy()
        state, info = solver.step(problem, state, 100_000, 1e-6)
        if info.iterations:
            yield before, state.working_set.points, state.beta.copy()


@solvers
def test_each_set_holds_the_most_violating_pair_and_gains(solver):
    X, y = moons(300)
    problem = DualProblem.hinge(Gram(X, gamma=2.0), y, 10.0)
    count = 0
    for before, chosen, after in working_sets(solver, problem):
        residual = problem.residual(before)
        assert {
            np.argmax(residual + problem.up_offset(before)),
            np.argmin(residual + problem.low_offset(before)),
        } <= set(chosen)
        assert problem.objective(after) < problem.objective(before)
        assert set(np.flatnonzero(after != before)) <= set(chosen)
        count += 1
    assert count == 12


@pytest.mark.parametrize("rule", ["violation", "gap"])
def test_a_chunk_is_the_support_vectors_and_the_worst(rule):
    X, y = moons(300)
    problem = DualProblem.hinge(Gram(X, gamma=2.0), y, 10.0)
    sizes = []
    for before, chosen, _ in working_sets(Chunking(20, rule=rule), problem, 40):
        support = np.flatnonzero(before)
        assert set(support) <= set(chosen)
        added = np.setdiff1d(chosen, support)
        assert added.size <= 20
        r, outside = problem.residual(before), np.setdiff1d(np.flatnonzero(before == 0), added)
        # Outside the set no point of either side wants to move more than the one on that side that was let in last.
        if support.size and rule == "violation" and added.size == 20:
            rising, falling = added[problem.upper[added] > 0], added[problem.lower[added] < 0]
            assert r[outside][problem.upper[outside] > 0].max() <= r[rising].min()
            assert r[outside][problem.lower[outside] < 0].min() >= r[falling].max()
        sizes.append(chosen.size)
    assert max(np.diff(sizes)) > 0 > min(np.diff(sizes))  # it grows, and sheds points too


def test_decomposition_keeps_its_size_and_part_of_the_last_set():
    X, y = moons(300)
    problem = DualProblem.hinge(Gram(X, gamma=2.0), y, 10.0)
    for kept in (0, 10, 38, None):
        last = None
        for _, chosen, _ in working_sets(Decomposition(40, kept=kept), problem):
            assert chosen.size <= 40
            if last is not None:
                new = np.setdiff1d(chosen, last).size
                assert new <= 40 - (20 if kept is None else kept)
            last = chosen


def test_the_gap_rule_takes_the_largest_shares():
    """Remark 7.2, with the share written as the book has it."""
    X, y = moons(300)
    C = 10.0
    problem = DualProblem.hinge(Gram(X, gamma=2.0), y, C)
    start = solve(problem, stop=RelativeGap(0.3)).beta
    solver = Decomposition(14, rule="gap", kept=0)
    f, alpha = naive.matrix(problem) @ start, start * y
    bias = problem.best_bias(problem.target - f)
    shares = alpha * (y * (f + bias) - 1) + C * np.maximum(0.0, 1 - y * (f + bias))
    chosen = solver._choose(problem, solver.init(problem, start))
    left_out = np.setdiff1d(np.arange(300), chosen)
    wants_up = problem.target - f - bias > 0
    for side in (wants_up, ~wants_up):
        inside = chosen[side[chosen]]
        assert inside.size >= 6
        # All but the most violating pair are there for their share.
        assert np.sort(shares[inside])[1] >= shares[left_out][side[left_out]].max() * (1 - 1e-9)


def test_the_subproblem_is_the_problem_with_the_others_held(plain):
    X, _, t = plain
    problem = DualProblem.squared_epsilon_insensitive(Gram(X), t, 5.0, 0.1)
    state = Decomposition(10).init(problem, solve(problem, max_steps=30).beta)
    _, part, part_state, _ = _open(problem, state, np.arange(5, 15), Decomposition(10), 0.0)
    size = np.abs(state.beta).sum()  # K_ij <= 1, and the ridge is 1/5
    assert abs(part.total + np.delete(state.beta, np.arange(5, 15)).sum()) <= naive.sum_rounding(40, size)
    rng, shifted = np.random.default_rng(0), state.beta.copy()
    values = []
    for _ in range(3):
        shifted[5:15] = rng.standard_normal(10)
        values.append(problem.objective(shifted) - part.objective(shifted[5:15]))
        np.testing.assert_allclose(part.residual(shifted[5:15]), problem.residual(shifted)[5:15], atol=1e-10)
    assert np.ptp(values) <= 1e-10 * max(1.0, abs(values[0]))
    rounding = naive.sum_rounding(40, 2 * size + np.abs(t).max())
    np.testing.assert_allclose(part_state.residual, state.residual[5:15], rtol=0, atol=rounding)


def test_the_gram_matrix_of_a_set_is_not_that_of_another_of_its_size(plain):
    X, y, _ = plain
    problem, working_set = DualProblem.hinge(Gram(X), y, 5.0), WorkingSet()
    K = naive.matrix(problem)
    for points_of in (np.arange(6), np.arange(10, 16), np.array([0, 1, 2, 3, 4, 6]), np.array([0, 1, 2, 3, 4, 6])):
        gram = _gram_of(problem, working_set, points_of)
        np.testing.assert_allclose(gram.full(), K[np.ix_(points_of, points_of)], atol=1e-14)
    assert _gram_of(problem, working_set, points_of) is gram  # the same set again: what it has computed is kept


# What every solver must do.


@solvers
def test_a_copied_state_goes_on_counting_its_sets(solver, plain):
    X, y, _ = plain
    state = solve(DualProblem.hinge(Gram(X), y, 1000.0), solver, max_steps=15).state
    assert copy.deepcopy(state).working_set.count == state.working_set.count > 0


@solvers
def test_a_loop_that_mends_the_state_between_steps_does_no_harm(solver, plain):
    """The loop may restore the sum of beta and compute the residual afresh while a subproblem is under way."""
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1000.0)
    state = solver.init(problem)
    for _ in range(3000):
        state, info = solver.step(problem, state, 3, 1e-9)
        problem.restore_sum(state.beta)
        state.residual[:] = problem.residual(state.beta)
        if info.iterations == 0:
            break
    assert info.iterations == 0
    assert naive.violation(problem, state.beta) <= 1e-8
    assert abs(state.beta.sum()) <= 1e-12 * np.abs(state.beta).sum()


@pytest.mark.long
@pytest.mark.parametrize("solver", [Chunking(), Decomposition()], ids=str)
def test_memory_stays_in_proportion_to_the_budget(solver):
    """6,000 points: the full matrix would take 288 MB; with a cache of 10 MB a run needs a few times that."""
    X, y = moons(6000)
    solve(DualProblem.hinge(Gram(X[:100]), y[:100], 1.0), solver)  # compiled beforehand
    tracemalloc.start()
    solution = solve(DualProblem.hinge(Gram(X, cache_size=10), y, 1.0), solver, stop=RelativeGap(1e-3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.status is Status.CONVERGED
    assert peak < 80e6


def test_an_inner_solver_without_a_guarantee_is_no_dead_end(plain):
    X, y, _ = plain
    solution = solve(DualProblem.hinge(Gram(X), y, 2.0), Decomposition(20, "smo-simple"))
    assert solution.status in (Status.CONVERGED, Status.EXHAUSTED)


any_solver = st.sampled_from(list(SOLVERS.values()))


# Sets of four crawl where C is large and points are nearly the same: that takes thousands of sets, and a long form.
@pytest.mark.long
@given(awkward_points(), soft.filter(lambda name: name != "hinge-large-C"), any_solver, st.booleans())
@slow
def test_awkward_data(data, formulation, solver, fit_intercept):
    assert_optimal_on(data, formulation, solver, fit_intercept)


@pytest.mark.long
@given(awkward_points(), soft, any_solver, st.booleans())
@slow
def test_awkward_data_and_large_C(data, formulation, solver, fit_intercept):
    assert_optimal_on(data, formulation, solver, fit_intercept)


def assert_optimal_on(data, formulation, solver, fit_intercept):
    X, y, weight = data
    problem = FORMULATIONS[formulation](Gram(X), y, 1.5 * y, sample_weight=weight, fit_intercept=fit_intercept)
    solution = solve(problem, type(solver)(4, rule=solver.rule), stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED
    reference = naive.reference_objective(problem)
    assert abs(naive.objective(problem, solution.beta) - reference) <= 3e-8 * max(1.0, abs(reference))


def test_bad_options_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"Unknown rule 'random'.*'gap'"):
        Chunking(rule="random")
    for size in (1, 2.5, "many"):
        with pytest.raises(ValueError, match="chunk_size must be a whole number"):
            Chunking(size)
        with pytest.raises(ValueError, match="size must be a whole number"):
            Decomposition(size)
    with pytest.raises(ValueError, match="kept must be"):
        Decomposition(10, kept=9)
    X, y, _ = points("plain")
    with pytest.raises(ValueError, match="Unknown solver 'sgd'"):
        solve(DualProblem.hinge(Gram(X), y, 1.0), Chunking(inner="sgd"))
