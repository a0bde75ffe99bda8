"""The guards of the exchanges against rounding, each alone."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from zerogap import SVC, DualProblem, Gram, solve
from zerogap.active_set import NO_POINT, ActiveSet, _first_block, feasible
from zerogap.stopping import RelativeGap


def relative_gap(problem, beta):
    """Without the bound on rounding."""
    now = problem.certify(beta)
    return now.gap / now.primal


def is_exact(problem, beta):
    """Whether the gap is no more than rounding can make of zero."""
    now = problem.certify(beta)
    return now.gap <= now.rounding


def moons(n=80):
    return make_moons(n, noise=0.3, random_state=0)


def at_optimum(C=5.0, n=60):
    X, y = moons(n)
    problem = DualProblem.hinge(Gram(X, gamma=1.0), np.where(y == 1, 1.0, -1.0), C)
    active = ActiveSet(problem, solve(problem, stop=RelativeGap(1e-3)).beta)
    active.optimise(problem)
    assert is_exact(problem, active.beta)
    return problem, active


def test_free_points_that_drifted_are_solved_for_again():
    """None of them is a violator in the eyes of ``worst``, which looks at the others only."""
    problem, active = at_optimum()
    exact, E = active.beta.copy(), active.free.copy()
    active.beta[E[:2]] += [1e-4, -1e-4]
    active.refresh(problem)
    assert relative_gap(problem, active.beta) > 1e-11
    assert active.optimise(problem) == 0
    # The free points' system is solved to its condition number times rounding.
    error = 64 * np.finfo(float).eps * np.linalg.cond(problem.gram.full()[np.ix_(E, E)])
    np.testing.assert_allclose(active.beta, exact, atol=error * np.abs(exact).max())
    assert is_exact(problem, active.beta)


def test_a_point_at_its_bound_does_not_block_because_of_rounding():
    E, beta, side = np.arange(3), np.array([0.5, 0.0, 0.4]), np.ones(3, dtype=np.int8)
    lower, upper = np.zeros(3), np.ones(3)
    d = np.array([0.3, -1e-17, -0.3])
    assert _first_block(E, d, beta, side, lower, upper, 1.0) == (1.0, NO_POINT)
    d[1] = -1e-10  # this is no rounding
    assert _first_block(E, d, beta, side, lower, upper, 1.0) == (0.0, 1)
    assert _first_block(E, np.array([1.0, 0.0, -1.0]), beta, side, lower, upper, 1.0) == (0.4, 2)


@pytest.mark.parametrize("change", ["add", "forget"])
def test_a_factor_that_updates_have_worn_out_is_built_anew(change):
    X, y = moons()
    model = SVC(C=5.0, gamma=1.0).partial_fit(X[:60], y[:60])
    _, active = model._training.exact[0]
    m = active.free.size
    active.system._factor[:m, :m] *= 1.5
    if change == "add":
        model.partial_fit(X[60:], y[60:])
    else:
        model.forget(np.arange(20))
    assert model.duality_gap_ <= 1e-11
    _, active = model._training.exact[0]  # and what comes next starts from a good one
    m = active.free.size
    K = model._kernel(X, X)[np.ix_(*[model._training.points.rows[active.free]] * 2)] if change == "add" else None
    if K is not None:
        factor = np.tril(active.system._factor[:m, :m])
        np.testing.assert_allclose(factor @ factor.T, K + active.system.tau, atol=1e-10)


def test_a_residual_that_updates_have_worn_out_is_computed_anew(monkeypatch):
    X, y = moons()
    model = SVC(C=5.0, gamma=1.0).partial_fit(X[:60], y[:60])
    adapt, rng = ActiveSet.adapt, np.random.default_rng(0)

    def worn(self, old, new):
        entered = adapt(self, old, new)
        self.residual += 1e-3 * rng.standard_normal(self.residual.size)
        return entered

    monkeypatch.setattr(ActiveSet, "adapt", worn)
    model.partial_fit(X[60:], y[60:])
    assert model.duality_gap_ <= 1e-11
    problem, active = model._training.exact[0]
    np.testing.assert_allclose(active.residual, problem.residual(active.beta), atol=1e-11)


def test_points_that_only_rounding_puts_off_their_sum_stay_where_they_are():
    problem, active = at_optimum()
    beta = active.beta.copy()
    capped = (beta == problem.lower) | (beta == problem.upper)
    beta[active.free[0]] += 1e-14
    near = feasible(problem, beta)
    np.testing.assert_array_equal(near[capped], beta[capped])
    assert abs(near.sum()) <= 1e-15 * np.abs(near).sum()
    far = feasible(problem, 2.0 * beta + 0.1)
    assert (problem.lower <= far).all()
    assert (far <= problem.upper).all()
    assert abs(far.sum()) <= 1e-12 * np.abs(far).sum()


def test_a_restart_forgets_what_went_before():
    problem, active = at_optimum()
    exact = active.beta.copy()
    active.kkt_error[:], active.bias, active.is_unbounded, active.beta[0] = 3.0, np.nan, True, 100.0
    active.restart(problem)
    active.optimise(problem)
    np.testing.assert_allclose(active.beta, exact, atol=1e-9)
    assert not active.is_unbounded


def test_dependent_points_with_a_ridge_too_small_to_see_have_a_minimum():
    """The kernel values are beyond 1e13 times the ridge, 1/C: to the factor both points of a class are one."""
    X = np.array([[1e7], [1e7], [-1e7], [-1e7]]) * [[1.0], [1.0 + 1e-9], [1.0], [1.0 + 1e-9]]
    model = SVC(C=1e3, kernel="linear", loss="squared_hinge").partial_fit(X[[0, 2]], [1, 0])
    model.partial_fit(X, [1, 1, 0, 0])
    assert model.status_.name == "CONVERGED"
    np.testing.assert_allclose(model.predict(X), [1, 1, 0, 0])
    assert not model._training.exact[0][1].is_unbounded


def test_driving_points_solves_for_what_the_free_ones_had_left():
    """A limit leaves KKT errors; on the way to the new values they are made up for as well."""
    problem, active = at_optimum()
    gone, E = active.free[:2].copy(), active.free[2:4]
    active.beta[E] += np.array([1e-3, -1e-3])
    active.refresh(problem)
    E = active.free
    active.kkt_error[E] = active.residual[E] - active.bias
    assert np.abs(active.kkt_error).max() > 1e-5
    assert active.drive(problem, gone, np.zeros(2))
    np.testing.assert_array_equal(active.beta[gone], 0.0)
    active.refresh(problem)
    E = active.free
    assert E.size > 3
    np.testing.assert_allclose(active.residual[E] - active.bias, 0.0, atol=1e-10)
    np.testing.assert_array_equal(active.kkt_error[E], 0.0)
