import math
from dataclasses import replace

import naive
import numpy as np
import pytest
from conftest import FORMULATIONS, points
from scipy.optimize import minimize_scalar

from zerogap import DualProblem, Gram, RelativeGap, Status, solve


def feasible_point(problem, seed=0):
    rng = np.random.default_rng(seed)
    width = np.where(np.isfinite(problem.upper - problem.lower), problem.upper - problem.lower, 3.0)
    draw = rng.uniform(size=problem.n) ** 2 * width * rng.choice([-1, 0, 1], size=problem.n)
    return problem.feasible(draw)


def textbook_loss(name, y):
    """The primal loss as it is usually written, for the formulations of conftest."""
    hinge = {"hinge": 2.0, "hinge-large-C": 1000.0}
    if name in hinge:
        return lambda i, r: hinge[name] * max(0.0, y[i] * r)  # y (t - f) = 1 - y f
    if name == "squared-hinge":
        return lambda i, r: 3.0 / 2 * max(0.0, y[i] * r) ** 2
    if name in ("insensitive", "absolute"):
        epsilon = 0.1 if name == "insensitive" else 0.0
        return lambda i, r: 1.5 * max(0.0, abs(r) - epsilon)
    if name == "squared-insensitive":
        return lambda i, r: 5.0 / 2 * max(0.0, abs(r) - 0.1) ** 2
    raise KeyError(f"no textbook loss for {name!r}")


@pytest.mark.thin(5)
@pytest.mark.parametrize("name", [name for name in FORMULATIONS if name != "hard-margin"])
@pytest.mark.parametrize("kind", ["plain", "duplicates", "two-points", "one-against-many"])
def test_certificate_is_the_textbook_primal_at_its_best_bias(name, kind, fit_intercept):
    X, y, t = points(kind)
    problem = FORMULATIONS[name](Gram(X), y, t, fit_intercept=fit_intercept)
    loss = textbook_loss(name, y)
    for seed in range(4):
        beta = feasible_point(problem, seed)
        certificate = problem.certify(beta)
        assert certificate.dual == pytest.approx(-naive.objective(problem, beta), rel=1e-12)
        assert certificate.kkt_violation == pytest.approx(naive.violation(problem, beta), abs=1e-10)
        assert certificate.primal == pytest.approx(naive.primal(problem, beta, certificate.bias, loss), rel=1e-10)
        assert certificate.gap >= 0
        if fit_intercept:
            reach = 10 + np.abs(certificate.bias) + np.abs(problem.residual(beta)).max()
            best = minimize_scalar(
                lambda b: naive.primal(problem, beta, b, loss),  # noqa: B023
                bounds=(-reach, reach), method="bounded", options={"xatol": 1e-10},
            )  # fmt: skip
            assert certificate.primal <= best.fun * (1 + 1e-9)
        else:
            assert certificate.bias == 0


@pytest.mark.thin(3)
def test_the_gap_bounds_the_distance_to_the_optimum(problem):
    optimum = naive.reference_objective(problem)
    for seed in range(3):
        beta = feasible_point(problem, seed)
        certificate = problem.certify(beta)
        assert naive.objective(problem, beta) - optimum <= certificate.gap + 1e-7 * abs(optimum)
        assert certificate.primal >= -optimum - 1e-7 * abs(optimum)


def test_hard_margin_primal_is_a_separating_function_of_margin_one(plain):
    X, y, _ = plain
    problem = DualProblem.hard_margin(Gram(X, gamma=2.0), y)
    beta = solve(problem, stop=RelativeGap(0.1)).beta
    certificate = problem.certify(beta)
    K = naive.matrix(problem)
    margins = y * (K @ beta + certificate.bias)
    assert margins.min() > 0
    assert certificate.primal == pytest.approx(0.5 * beta @ K @ beta / margins.min() ** 2)
    assert problem.certify(np.zeros(40)).relative_gap == np.inf


def test_a_point_of_weight_zero_asks_for_no_margin(plain, fit_intercept):
    """A copy of the first point in the other class would make the margin impossible; with weight zero it is not there."""
    X, y, _ = plain
    there = DualProblem.hard_margin(Gram(X), y, fit_intercept=fit_intercept)
    X, y = np.concatenate([X, X[:1]]), np.append(y, -y[0])
    for at_zero in (X, X[[40, *range(40)]]):
        labels = y if at_zero is X else y[[40, *range(40)]]
        weight = np.where((at_zero == X[0]).all(axis=1) & (labels != y[0]), 0.0, 1.0)
        gram = Gram(at_zero, gamma=there.gram.kernel.gamma)
        problem = DualProblem.hard_margin(gram, labels, sample_weight=weight, fit_intercept=fit_intercept)
        a, b = solve(problem, stop=RelativeGap(1e-8)), solve(there, stop=RelativeGap(1e-8))
        assert a.status is b.status is Status.CONVERGED
        assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=2e-8)


@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3])
def test_a_narrow_margin_is_a_margin(distance):
    """Two points with an rbf kernel: alpha = 2 / |phi(x) - phi(z)|² = 1 / (1 - k(x, z)), about a million for 1e-3."""
    X, y = np.array([[1.0], [1.0 + distance]]), np.array([-1.0, 1.0])
    solution = solve(DualProblem.hard_margin(Gram(X, gamma=1.0), y), stop=RelativeGap(1e-6))
    assert solution.status is Status.CONVERGED
    alpha = -1.0 / np.expm1(-((X[1, 0] - X[0, 0]) ** 2))
    # k is rounded to 1e-16 and 1 - k is 1/alpha, so alpha has 1e-16 alpha relative error, and 1e-6 of the gap is 1e-3 of it.
    np.testing.assert_allclose(solution.beta, [-alpha, alpha], rtol=1e-3)


def test_a_start_at_zero_says_nothing_of_the_margin():
    X, y, _ = points("plain")
    problem = DualProblem.hard_margin(Gram(X), y)
    assert not problem.is_unbounded(np.zeros(problem.n), problem.target)


def test_only_without_box_and_ridge_or_inner_product_can_the_dual_be_unbounded():
    X, y, _ = points("plain")
    gram = Gram(X, "linear")
    assert not DualProblem.hinge(gram, y, 1.0).may_be_unbounded
    assert not DualProblem.squared_hinge(gram, y, 1.0).may_be_unbounded
    assert DualProblem.hard_margin(gram, y).may_be_unbounded
    assert not DualProblem.hard_margin(Gram(1e-70 * X, "linear"), y).may_be_unbounded  # float64 ends first
    assert DualProblem.hinge(Gram(X, lambda A, B: -(A @ B.T)), y, 1.0).may_be_unbounded


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_where_every_bias_of_an_interval_is_best_it_is_the_middle(C):
    """As many points ask for more as for less; what their boxes sum to is rounded, in proportion to C."""
    r = np.array([-3.0, -1.0, -1.0, 2.0, 2.5, 4.0])
    problem = DualProblem.hinge(Gram(np.eye(6)), np.array([1.0, -1.0] * 3), C, sample_weight=np.full(6, 0.1))
    assert problem.best_bias(r) == 0.5


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_share_of_a_weight_is_that_weight(name, share):
    X, y, t = points("plain")
    made = FORMULATIONS[name]
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=40)
    problem = made(Gram(X), y, t, sample_weight=weight).reweighted(3, share)
    weight[3] *= share
    expected = made(Gram(X), y, t, sample_weight=weight)
    for array in ("lower", "upper", *(["ridge"] if share else [])):  # without a box a ridge means nothing
        np.testing.assert_allclose(getattr(problem, array), getattr(expected, array), rtol=1e-15)


@pytest.mark.parametrize("formulation", ["hinge", "insensitive", "squared-hinge"])
@pytest.mark.parametrize("seed", range(5))
def test_a_point_of_weight_zero_has_no_say_in_the_bias(formulation, seed):
    """Among few points of equal weight the bias has an interval to itself as a rule; one that is not there does not end it."""
    X, y, t = points("plain")
    rng = np.random.default_rng(seed)
    X, y, t, r = X[:6], np.array([1.0, -1.0] * 3), t[:6], rng.standard_normal(6)
    others = np.array([0, 1, 4, 5])
    weight = np.where(np.isin(np.arange(6), others), 0.1, 0.0)
    whole = FORMULATIONS[formulation](Gram(X), y, t, sample_weight=weight)
    part = FORMULATIONS[formulation](Gram(X[others]), y[others], t[others], sample_weight=weight[others])
    assert whole.best_bias(r) == pytest.approx(part.best_bias(r[others]), rel=1e-12)
    np.testing.assert_array_equal(whole.restricted(others).best_bias(r[others]), part.best_bias(r[others]))


@pytest.mark.parametrize("seed", range(5))
def test_the_best_bias_with_a_box_and_a_ridge(seed):
    """At the bias that minimises the primal objective the sum of the responses, which falls as it grows, passes the total."""
    X, _, t = points("plain")
    problem = DualProblem.squared_epsilon_insensitive(Gram(X), t, 5.0, 0.1)
    problem = replace(problem, lower=np.full(40, -0.1), upper=np.full(40, 0.2))
    r = np.random.default_rng(seed).standard_normal(40)
    bias = problem.best_bias(r)
    below, above = (problem.loss.response(r - (bias + shift)).sum() for shift in (-1e-9, 1e-9))
    assert below > problem.total > above


def test_ratio_7_3_and_relative_gap():
    X, y, _ = points("plain")
    certificate = DualProblem.hinge(Gram(X), y, 2.0).certify(np.zeros(40))
    # At zero the primal is 2 sum(1 - y b), least when the smaller class is given up.
    smaller = min((y > 0).sum(), (y < 0).sum())
    assert certificate.primal == pytest.approx(2.0 * 2 * smaller)
    assert certificate.dual == 0
    assert certificate.relative_gap == pytest.approx(1.0)
    assert certificate.feasibility_gap == pytest.approx(4 * smaller / (4 * smaller + 1))


def test_two_points_have_a_closed_form():
    """alpha = min(C, 2 / |phi(x) - phi(z)|²), by Theorem 7.12 started at zero."""
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    y = np.array([-1.0, 1.0])
    for C in (0.01, 1.0, np.inf):
        solution = solve(DualProblem.hinge(Gram(X, "linear"), y, C), stop=RelativeGap(1e-12))
        alpha = min(C, 2 / 25)
        np.testing.assert_allclose(solution.beta, [-alpha, alpha], rtol=1e-14)
    assert solution.bias == pytest.approx(-1.0)


def test_three_points_on_a_line_have_a_closed_form():
    """Classes {0, 1} and {3} on a line: the hard margin runs halfway between 1 and 3, so w = 1 and b = -2."""
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array([-1.0, -1.0, 1.0])
    solution = solve(DualProblem.hard_margin(Gram(X, "linear"), y), stop=RelativeGap(1e-12))
    np.testing.assert_allclose(solution.beta, [0.0, -0.5, 0.5], atol=1e-12)
    assert solution.bias == pytest.approx(-2.0)


def test_gaussian_process_is_a_linear_system(plain):
    X, _, t = plain
    problem = DualProblem.gaussian_process(Gram(X), t, 0.1)
    solution = solve(problem, stop=RelativeGap(1e-14))
    np.testing.assert_allclose(solution.beta, np.linalg.solve(naive.matrix(problem), t), atol=1e-5)


def test_a_weight_of_two_is_the_point_twice(plain, formulation, fit_intercept):
    X, y, t = plain
    weight = np.random.default_rng(1).integers(0, 4, size=40)
    weighted = formulation(Gram(X, gamma=0.3), y, t, sample_weight=weight, fit_intercept=fit_intercept)
    repeated = formulation(
        Gram(X.repeat(weight, axis=0), gamma=0.3), y.repeat(weight), t.repeat(weight), fit_intercept=fit_intercept
    )
    stop = RelativeGap(1e-9)
    a, b = solve(weighted, stop=stop).certificate, solve(repeated, stop=stop).certificate
    assert a.dual == pytest.approx(b.dual, rel=2e-9)


def test_feasible_restores_box_and_sum(problem):
    wild = np.random.default_rng(0).standard_normal(problem.n) * 10
    beta = problem.feasible(wild)
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    if problem.total is not None:
        assert abs(beta.sum()) <= 1e-12 * max(1.0, np.abs(beta).sum())


def test_what_rounding_left_in_the_sum_goes_to_a_free_coefficient(plain):
    X, y, t = plain
    for problem in (DualProblem.hinge(Gram(X), y, 2.0), DualProblem.epsilon_insensitive(Gram(X), t, 1.5, 0.1)):
        exact = feasible_point(problem)
        drifted = exact.copy()
        free = np.flatnonzero((exact != 0) & (exact > problem.lower) & (exact < problem.upper))
        drifted[free[0]] += 1e-9 * (problem.upper - problem.lower)[free[0]]
        drift = math.fsum(drifted)
        restored = problem.restore_sum(drifted.copy())
        changed = np.flatnonzero(restored != drifted)
        assert set(changed) <= set(free.tolist())
        assert abs(math.fsum(restored)) <= 2.0**-52 * np.abs(restored).max() < 1e-3 * abs(drift)
        assert ((restored >= problem.lower) & (restored <= problem.upper)).all()


def test_a_coefficient_a_little_off_its_bound_goes_there_before_another_leaves_one():
    problem = DualProblem.hinge(Gram(np.arange(3.0)[:, None]), np.array([-1.0, -1.0, 1.0]), 0.165)
    restored = problem.restore_sum(np.array([-0.165 + 1.5e-14, 0.0, 0.165]))
    np.testing.assert_array_equal(restored, [-0.165, 0.0, 0.165])
    off = problem.restore_sum(np.array([-0.165, 0.0, 0.165 - 1e-3]))  # the way back to its bound, were it only rounding
    assert math.fsum(off) == 0.0


@pytest.mark.parametrize(
    ("name", "beta"),
    [
        ("squared_hinge", [-1.05e31, 0.0, -3.8e-41, 0.0, -1.2e-62, 0.0]),  # each below the rounding of the one before
        ("squared_hinge", [-1e200, 0.0, -1.0, 3e-17, -1e-40, 0.0]),
        ("hinge", [-2.0, 2.0, -2.0, 0.0, -2.0, 0.0]),  # many at their bounds, as where duplicates are taken for one
        ("hinge", [0.0, 2.0, 0.0, 2.0, 0.0, 2.0]),
        ("epsilon_insensitive", [2.0, 2.0, 2.0, 1e-30, 0.0, 2.0]),
    ],
)
def test_a_sum_is_restored_by_as_many_coefficients_as_it_takes(name, beta):
    y = np.tile([-1.0, 1.0], 3)
    problem = getattr(DualProblem, name)(Gram(np.arange(6.0)[:, None], "linear"), y, 2.0)
    restored = problem.restore_sum(np.array(beta))
    assert abs(math.fsum(restored)) <= 16 * 2.0**-53 * np.abs(restored).sum()
    assert ((restored >= problem.lower) & (restored <= problem.upper)).all()


def test_bad_input_is_refused_with_advice(plain):
    X, y, t = plain
    gram = Gram(X)
    with pytest.raises(ValueError, match="C must be above 0; got C=0"):
        DualProblem.hinge(gram, y, 0)
    with pytest.raises(ValueError, match="C must be above 0 and finite"):
        DualProblem.epsilon_insensitive(gram, t, np.inf)
    with pytest.raises(ValueError, match=r"-1 and \+1.*use SVC"):
        DualProblem.hinge(gram, np.arange(40), 1.0)
    with pytest.raises(ValueError, match="both of them"):
        DualProblem.hinge(gram, np.ones(40), 1.0)
    with pytest.raises(ValueError, match=r"shape \(40,\)"):
        DualProblem.hinge(gram, y[:-1], 1.0)
    with pytest.raises(ValueError, match="at least 0; got -1"):
        DualProblem.hinge(gram, y, 1.0, sample_weight=-np.ones(40))
    with pytest.raises(ValueError, match="zero for every point"):
        DualProblem.hinge(gram, y, 1.0, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="epsilon must be at least 0"):
        DualProblem.epsilon_insensitive(gram, t, 1.0, -0.1)
    with pytest.raises(ValueError, match="NaN or infinity at row 3"):
        DualProblem.epsilon_insensitive(gram, np.where(np.arange(40) == 3, np.nan, t), 1.0)
    with pytest.raises(ValueError, match="noise"):
        DualProblem.gaussian_process(gram, t, 0.0)


# Some of the points alone.

SOME = np.arange(5, 17)


def away_from_zero(problem, is_alone):
    """A feasible point off the optimum; ``is_alone``: with nothing outside of SOME."""
    beta = feasible_point(problem, 3)
    if is_alone:
        beta[np.setdiff1d(np.arange(problem.n), SOME)] = 0.0
    return problem.feasible(beta)


@pytest.mark.parametrize("is_alone", [False, True], ids=["others", "alone"])
@pytest.mark.parametrize("name", FORMULATIONS)
def test_some_of_the_points_have_the_residuals_of_the_whole(name, fit_intercept, is_alone, plain):
    X, y, t = plain
    problem = FORMULATIONS[name](Gram(X), y, t, fit_intercept=fit_intercept)
    beta = away_from_zero(problem, is_alone)
    part, moved, constants = problem.restricted(SOME, beta), beta.copy(), []
    K = naive.matrix(problem)
    size = np.abs(K) @ np.abs(beta) + np.abs(problem.target)
    rounding = 4 * naive.sum_rounding(40, size.max() + np.abs(beta).sum() + 40.0)
    rest = np.setdiff1d(np.arange(40), SOME)
    np.testing.assert_allclose(part.target, (problem.target - K[:, rest] @ beta[rest])[SOME], rtol=0, atol=rounding)
    np.testing.assert_allclose(naive.matrix(part), K[np.ix_(SOME, SOME)], rtol=0, atol=1e-14 + 1e-15 * np.abs(K).max())
    if fit_intercept:
        assert abs(part.total + beta[rest].sum()) <= rounding
    for k in range(3):
        np.testing.assert_allclose(part.residual(moved[SOME]), problem.residual(moved)[SOME], rtol=0, atol=rounding)
        constants.append(problem.objective(moved) - part.objective(moved[SOME]))
        moved[SOME] = np.random.default_rng(k).uniform(-1.0, 1.0, SOME.size)
    assert np.ptp(constants) <= rounding * (np.abs(beta).sum() + 40.0)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_optimum_of_the_whole_is_that_of_every_part(name, fit_intercept, plain):
    X, y, t = plain
    problem = FORMULATIONS[name](Gram(X), y, t, fit_intercept=fit_intercept)
    solution = solve(problem, "simple-svm", stop=RelativeGap(1e-10))
    part = problem.restricted(SOME, solution.beta)
    assert naive.violation(part, solution.beta[SOME]) <= naive.violation(problem, solution.beta) + 1e-11
    free_of_others = problem.restricted(SOME)
    assert (free_of_others.total, free_of_others.known) == (problem.total, None)
    np.testing.assert_array_equal(free_of_others.target, problem.target[SOME])


def test_what_is_known_of_a_part_saves_kernel_values_and_its_certificate_is_true(plain):
    """A product that is known is not computed again; what it may be off counts."""
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    beta = away_from_zero(problem, False)
    part = problem.restricted(SOME, beta, residual=problem.residual(beta))
    own, before = beta[SOME], part.gram.evaluations
    np.testing.assert_allclose(part.residual(own), problem.residual(beta)[SOME], rtol=0, atol=1e-14)
    assert part.gram.evaluations == before
    plainly, knowingly = replace(part, known=None).certify(own), part.certify(own)
    assert knowingly.rounding >= plainly.rounding > 0
    assert abs(knowingly.dual - plainly.dual) <= knowingly.rounding + plainly.rounding
    assert abs(knowingly.primal - plainly.primal) <= knowingly.rounding + plainly.rounding


def test_the_rounding_of_an_outlier_does_not_count_at_the_others():
    X = np.array([[1e6], [1.0], [0.5], [-1.0]])
    problem = DualProblem.hinge(Gram(X, "linear"), [1, -1, 1, -1], 1.0)
    beta = np.array([1e-6, -1.0, 1.0, -1e-6])
    found = problem.roundings(beta)
    assert found[0] == pytest.approx(2.0**-52 * (1.0 + 1e6 * 2.500001))
    assert found[1] == pytest.approx(2.0**-52 * (1.0 + 2.500001))
    assert found.max() <= problem.rounding(beta)
    sigmoid = DualProblem.hinge(Gram(X, "sigmoid", gamma=1.0, coef0=-1.0), [1, -1, 1, -1], 1.0)
    assert (sigmoid.roundings(beta) == sigmoid.rounding(beta)).all()


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize(("margin", "is_none"), [(1e-5, False), (1e-7, True)])
def test_a_margin_is_none_below_a_millionth_of_the_radius(scale, margin, is_none):
    X = scale * np.array([[1.0, margin / 2], [1.0, -margin / 2]])
    problem = DualProblem.hard_margin(Gram(X, "linear"), [1, -1])
    beta = np.array([1.0, -1.0]) / (scale * margin) ** 2  # so that the residual has digits of K beta
    assert problem.is_unbounded(beta, problem.residual(beta)) is is_none


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"lower": 0.5, "upper": 1.0}, "lower <= 0 <= upper"),
        ({"lower": -1.0, "upper": -0.5}, "lower <= 0 <= upper"),
        ({"lower": 1.0, "upper": -1.0}, "lower <= 0 <= upper"),
        ({"lower": np.nan}, "lower <= 0 <= upper"),
        ({"target": np.nan}, "target must be finite"),
        ({"ridge": -1.0}, "ridge finite and not negative"),
        ({"ridge": np.inf}, "ridge finite and not negative"),
        ({"eps": -0.1}, "eps must be"),
        ({"eps": np.zeros(4)}, "eps must be"),
        ({"total": 5.0}, "total must be between -4 and 4"),
        ({"total": np.nan}, "total must be between -4 and 4"),
    ],
)
def test_what_is_no_normal_form_is_refused(wrong, said):
    """Solvers would take it, and the certificate of a point outside its box means nothing."""
    fields = {"target": np.ones(4), "lower": -np.ones(4), "upper": np.ones(4), "ridge": np.zeros(4)}
    wrong = {k: v * np.ones(4) if k in fields else v for k, v in wrong.items()}
    with pytest.raises((ValueError, TypeError), match=said):
        DualProblem(Gram(np.arange(4.0)[:, None]), **(fields | wrong))


@pytest.mark.parametrize("name", ["target", "lower", "upper", "ridge"])
def test_arrays_of_another_length_are_refused(name):
    fields = {"target": np.ones(4), "lower": -np.ones(4), "upper": np.ones(4), "ridge": np.zeros(4)}
    for value in (1.0, np.zeros(3)):
        with pytest.raises(ValueError, match=rf"{name} must hold one number for each of the 4 points; got shape"):
            DualProblem(Gram(np.arange(4.0)[:, None]), **(fields | {name: value}))


# Margins that are made longer.


def test_no_margin_is_short_of_one_once_it_is_stretched(fit_intercept):
    X, y, _ = points("plain")
    problem = DualProblem.hinge(Gram(X, gamma=1.0), y, 1e4, fit_intercept=fit_intercept)
    beta = solve(problem, "smo", stop=RelativeGap(1e-2)).beta
    r = problem.residual(beta)
    assert (y * (r - problem.best_bias(r))).max() > 0.0
    longer = problem.stretched(beta, r, 1e-3 * 1e4 * np.count_nonzero(beta))
    factor = float(np.abs(longer).sum() / np.abs(beta).sum())
    np.testing.assert_allclose(longer, factor * beta, rtol=1e-14)
    margins = factor * y * (y - r + problem.best_bias(r))
    # Rounding takes from the least margin 1e-3 at least, or more where it is uneven: it is longer by so much, times the factor.
    assert margins.min() >= 1.0 + 1e-3 * (1.0 - 1e-9) * factor
    assert problem.certify(problem.restore_sum(longer.copy())).primal > 0.0


def test_what_has_no_margins_or_no_room_is_not_stretched():
    X, y, t = points("plain")
    gram = Gram(X, gamma=1.0)
    for problem in (
        DualProblem.hinge(gram, y, 0.01),  # every coefficient is at its bound
        DualProblem.squared_hinge(gram, y, 1e4),
        DualProblem.hard_margin(gram, y),
        DualProblem.epsilon_insensitive(gram, t, 1e4, 0.1),
        DualProblem.one_class(gram, 0.5),
    ):
        beta = solve(problem).beta
        assert problem.stretched(beta, problem.residual(beta), 1e-9) is None
    zero = np.zeros(y.size)
    assert DualProblem.hinge(gram, y, 1.0).stretched(zero, y, 1e-9) is None
