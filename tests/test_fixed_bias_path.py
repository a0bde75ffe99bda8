"""Paths without a free bias: two classes over C, regression over C and over epsilon, several classes."""

import itertools
import math

import naive
import numpy as np
import pytest

from zerogap import SVC, SVR, DualProblem, Path, RelativeGap, SVCPath, SVRPath, solve, svm_path, svr_path
from zerogap.path import LP, EpsilonPath, RegressionPath
from zerogap.path.family import ELBOW, LEFT, RIGHT, Family

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) + 0.4
y = np.where(X[:, 0] + 0.5 * RNG.normal(size=40) > 0.3, 1, -1)
t = X[:, 0] ** 2 + 0.3 * RNG.normal(size=40) + 1.0


def two_classes(X=X, y=y, **options):
    return svm_path(X, y, fit_intercept=False, **{"C_min": 1e-3, "C_max": 100.0, **options})


def over_C(X=X, y=t, **options):
    return svr_path(X, y, fit_intercept=False, **{"epsilon": 0.05, "C_min": 1e-3, "C_max": 100.0, **options})


def over_epsilon(X=X, y=t, **options):
    return svr_path(X, y, over="epsilon", fit_intercept=False, **{"C": 2.0, **options})


FOLLOW = {"classes": two_classes, "C": over_C, "epsilon": over_epsilon}
CLASSES = {"classes": Path, "C": RegressionPath, "epsilon": EpsilonPath}


@pytest.fixture(scope="module")
def paths():
    return {name: follow() for name, follow in FOLLOW.items()}


def assert_exact(path, most=1e-9):
    """Complete, without a backup, without a bias, and certified at breakpoints and in between."""
    assert path.status == "complete"
    assert path.n_backups == 0
    assert not path.fit_intercept
    assert path.largest_gap_ <= most
    values = np.concatenate([path.value_of(path.lam), naive.values_along(path, 10)])
    gaps = [path.relative_gap(*pair) for pair in zip(path.certificate_at(values), values, strict=True)]
    assert max(gaps) <= most
    assert not np.any(path.bias_at(values))


@pytest.mark.thin(5)
@pytest.mark.parametrize("over", FOLLOW)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_it_is_what_solve_finds(paths, over, kernel, is_weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 40) if is_weighted else None
    path = paths[over] if kernel == "rbf" and not is_weighted else FOLLOW[over](kernel=kernel, sample_weight=weight)
    assert_exact(path)
    for value in naive.values_along(path, 2)[:-1]:
        problem, certificate, beta = path.problem_at(value), path.certificate_at(value), path.beta_at(value)
        assert problem.total is None
        solution = solve(problem, stop=RelativeGap(1e-6), max_steps=200_000)
        gaps = [c.gap + c.rounding for c in (certificate, solution.certificate)]
        # Half the squared distance of a normal vector from the best one is no more than its gap.
        apart = (np.abs(path.gram.full() @ (beta - solution.beta)) / np.sqrt(path.gram.diagonal)).max()
        rounding = 2.0 * problem.rounding(beta) / math.sqrt(path.gram.diagonal.min())
        assert apart <= sum(math.sqrt(2.0 * gap) for gap in gaps) + rounding


def brute_force(K, y, w, lam):
    """The b of the sets, of all there are, that satisfy the optimality conditions at lam."""
    for sets in itertools.product((RIGHT, ELBOW, LEFT), repeat=y.size):
        status = np.array(sets)
        b, E = np.where(status == LEFT, y * w, 0.0), status == ELBOW
        if E.any():
            b[E] = np.linalg.lstsq(K[np.ix_(E, E)], lam * y[E] - (K @ b)[E], rcond=1e-12)[0]
        a, excess = y * b, y * (K @ b) - lam
        is_right = np.where(
            status == RIGHT, excess >= -1e-12, np.where(status == LEFT, excess <= 1e-12, abs(excess) <= 1e-12)
        )
        if is_right.all() and (a >= -1e-12).all() and (a <= w + 1e-12).all():
            return b
    raise AssertionError("no sets are optimal")


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_best_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed % 4
    Z = rng.integers(-2, 3, size=(n, 2)) if seed % 2 else rng.normal(size=(n, 2))
    labels = np.where(np.arange(n) < max(n // 2, 1), -1, 1)
    path = svm_path(Z, labels, kernel="poly", degree=2, gamma=1.0, coef0=1.0, fit_intercept=False, C_max=50.0)
    K = (1.0 + Z @ Z.T) ** 2
    for C in np.geomspace(1e-4, 50.0, 9):
        b = brute_force(K, labels.astype(float), np.ones(n), 1.0 / C)
        np.testing.assert_allclose(K @ path.coefficients_at(C) / C, K @ b, atol=1e-9 * K.max())


def test_where_C_is_small_all_points_are_at_their_caps_and_none_is_on_a_margin(paths):
    path = paths["classes"]
    assert (path.start == LEFT).all()
    assert path.n_free[0] == 0
    np.testing.assert_array_equal(path.coefficients_at(1e-3), 1e-3 * y)
    first = path.C[1]  # the first margin that is reached
    K = path.gram.full()
    assert first == pytest.approx(1.0 / (path.y * (K @ path.y)).max(), rel=1e-12)
    assert path.n_free[1] == 1


def test_where_no_margin_can_be_reached_all_points_stay_at_their_caps():
    path = svm_path(
        [[1.0], [1.0], [1.0]], [-1, 1, 1], kernel="linear", fit_intercept=False, sample_weight=[2.0, 1.0, 1.0]
    )
    assert_exact(path)
    np.testing.assert_array_equal(path.coefficients_at(7.0), [-14.0, 7.0, 7.0])
    origin = svm_path(np.zeros((4, 2)), [-1, -1, 1, 1], kernel="linear", fit_intercept=False)
    assert_exact(origin)
    np.testing.assert_array_equal(origin.coefficients_at(3.0), [-3.0, -3.0, 3.0, 3.0])


def test_a_large_C_is_the_hard_margin():
    Z = RNG.normal(size=(30, 3))
    labels = np.where(Z @ [1.0, -2.0, 0.5] > 0, 1, -1)
    path = svm_path(Z, labels, kernel="linear", fit_intercept=False, C_max=1e8)
    assert_exact(path)
    hard = solve(DualProblem.hard_margin(path.gram, path.y, fit_intercept=False), stop=RelativeGap(1e-9))
    np.testing.assert_allclose(path.beta_at(1e8), hard.beta, atol=1e-5 * np.abs(hard.beta).max())


@pytest.mark.thin(5)
@pytest.mark.parametrize("over", FOLLOW)
@pytest.mark.parametrize("kind", ["duplicates", "one point a class", "a point at the origin", "large", "small", "tied"])
def test_awkward_points(over, kind):
    Z, labels, target = X[:20].copy(), y[:20].copy(), t[:20].copy()
    if kind == "duplicates":  # of all points, some with another label or target
        Z, labels, target = np.repeat(Z[:10], 2, axis=0), labels, np.repeat(target[:10], 2) + np.tile([0.0, 0.5], 10)
    elif kind == "one point a class":
        Z, labels, target = Z[:2], np.array([-1, 1]), target[:2]
    elif kind == "a point at the origin":
        Z[3] = 0.0
    elif kind in ("large", "small"):
        Z = Z * (1e4 if kind == "large" else 1e-4)
    elif kind == "tied":
        Z, target = np.round(Z), np.round(target)
    kernel = "rbf" if kind in ("duplicates", "one point a class") else "linear"
    data = labels if over == "classes" else target
    scale = {"large": 1e-8, "small": 1e8}.get(kind, 1.0)
    options = {"C": 2.0 * scale} if over == "epsilon" else {"C_min": 1e-3 * scale, "C_max": 10.0 * scale}
    for merge in (True, False):
        assert_exact(FOLLOW[over](Z, data, kernel=kernel, merge_duplicates=merge, **options))


@pytest.mark.parametrize("over", FOLLOW)
def test_the_largest_gap_is_that_of_the_stored_path(paths, over):
    """A path spoiled a little is proved to be off, and by no less than its certificates say."""
    path = FOLLOW[over](max_events=10)
    k = len(path._segments) - 1
    segment = path._segments[k]
    path._segments[k] = segment._replace(u=segment.u * (1.0 + 1e-4))
    path._proof, path._proved, path._largest = None, 0, type(path._largest)(0.0, np.nan)
    values = path.value_of(np.linspace(*path.lam[[k, k + 1]], 5))
    seen = max(path.relative_gap(*pair) for pair in zip(path.certificate_at(values), values, strict=True))
    assert path.largest_gap_ >= 0.99 * seen > 1e-9


@pytest.mark.parametrize("over", FOLLOW)
def test_stored_and_resumed(paths, over, tmp_path):
    whole, cls = paths[over], CLASSES[over]
    part = FOLLOW[over](max_events=15)
    part.save(tmp_path / "part")
    again = cls.load(tmp_path / "part")
    assert not again.fit_intercept
    for begun in (part, again):
        path = FOLLOW[over](resume=begun)
        assert path.status == "complete"
        for value in naive.values_along(whole, 4):
            scale = np.abs(whole.coefficients_at(value)).max()
            np.testing.assert_allclose(
                path.coefficients_at(value), whole.coefficients_at(value), atol=1e-8 * (scale + 1e-300)
            )
    data = whole.to_dict()
    copied = cls.from_dict(data, whole.gram)
    values = naive.values_along(whole, 5)
    np.testing.assert_array_equal(copied.coefficients_at(values), whole.coefficients_at(values))
    assert copied.largest_gap_ == whole.largest_gap_


def test_paths_stored_before_there_was_a_choice_have_a_free_bias():
    data = svm_path(X, y, C_max=1.0).to_dict()
    del data["fit_intercept"]
    assert Path.from_dict(data).fit_intercept


def test_a_path_is_not_resumed_with_another_bias(paths):
    with pytest.raises(ValueError, match="made with fit_intercept=False, not with True"):
        svm_path(X, y, C_max=100.0, resume=paths["classes"])
    free = svr_path(X, t, epsilon=0.05, C_max=1.0)
    with pytest.raises(ValueError, match="made with fit_intercept=True, not with False"):
        over_C(resume=free)


@pytest.mark.parametrize("engine", ["lp", "hastie", LP(epsilon_kkt=1e-8)])
def test_other_engines_refuse_it(engine):
    with pytest.raises(ValueError, match="fit_intercept=False is followed by engine 'single' alone"):
        svm_path(X, y, engine=engine, fit_intercept=False)
    with pytest.raises(ValueError, match="fit_intercept=False is followed by engine 'single' alone"):
        SVCPath(engine=engine, fit_intercept=False).fit(X, y)


@pytest.mark.parametrize("follow", [svm_path, svr_path])
def test_a_flag_is_true_or_false(follow):
    with pytest.raises(ValueError, match="fit_intercept must be True or False"):
        follow(X, y, fit_intercept="no")


def test_a_tube_that_holds_all_targets_about_zero_needs_no_coefficient(paths):
    path = paths["epsilon"]
    assert path.epsilon[0] == np.abs(t).max()
    assert not path.coefficients_at(path.epsilon[0]).any()
    wide = over_C(epsilon=1.01 * np.abs(t).max())
    assert_exact(wide)
    assert not wide.coefficients_at(50.0).any()
    # Half the range would do with a free bias, and does not without.
    assert over_C(epsilon=0.6 * np.ptp(t)).coefficients_at(1.0).any()


def test_both_paths_of_a_regression_meet(paths):
    np.testing.assert_allclose(paths["epsilon"].coefficients_at(0.05), paths["C"].coefficients_at(2.0), atol=1e-7)


def test_all_solutions_need_no_sum():
    """Points at 1 and -1 are on their margins together; one at the origin has any coefficient, if its margin is zero."""
    path = svm_path([[1.0], [-1.0]], [1, -1], kernel="linear", fit_intercept=False, C_max=10.0)
    several = path.solution_set_at(10.0)
    assert several.dimension == 1  # with a free bias both are 1/2
    np.testing.assert_allclose(several.vertices(), [[0.0, -1.0], [1.0, 0.0]], atol=1e-12)
    tied = svr_path(
        [[1.0], [0.0]], [0.5, 0.5], kernel="linear", over="epsilon", C=1.0, fit_intercept=False, epsilon_max=1.0
    )
    assert (
        tied.solution_set_at(0.5).dimension == 2 - 1
    )  # at the origin, f = 0 and the target is on the edge of the tube
    assert svm_path(X, y, fit_intercept=False, C_max=1.0).not_unique() == []


def test_nu_is_a_share_of_all_weight(paths):
    path = paths["classes"]
    C = path.C_of_nu(0.5)
    assert np.abs(path.coefficients_at(C)).sum() == pytest.approx(0.5 * C * 40, rel=1e-9)
    with pytest.raises(ValueError, match="Follow it from a smaller C_min"):
        svm_path(X, y, fit_intercept=False, C_min=50.0).C_of_nu(0.999)


# Estimators.


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_estimator_is_svc_at_every_C(kernel):
    model = SVCPath(kernel=kernel, fit_intercept=False, C_max=10.0).fit(X, y)
    for C in (1e-3, 0.07, 2.0):
        at, fitted = model.at(C), SVC(C=C, kernel=kernel, fit_intercept=False, tol=1e-9).fit(X, y)
        assert at.fit_intercept is False
        assert not at.intercept_.any()
        assert at.status_.name == "CONVERGED"
        np.testing.assert_allclose(at.decision_function(X), fitted.decision_function(X), atol=1e-4)
        np.testing.assert_allclose(model.decision_function(X, C=C), at.decision_function(X), atol=1e-9)


def test_several_classes():
    labels = np.digitize(X[:, 0], [0.0, 0.8])
    for kernel in ("rbf", "linear"):
        model = SVCPath(kernel=kernel, fit_intercept=False, C_max=10.0).fit(X, labels)
        assert not any(path.fit_intercept for path in model.paths_)
        assert model.largest_gap_ <= 1e-9
        fitted = SVC(C=0.5, kernel=kernel, fit_intercept=False, tol=1e-9, decision_function_shape="ovo").fit(X, labels)
        ovo = model.at(0.5)
        assert not ovo.intercept_.any()
        ovo.decision_function_shape = "ovo"
        np.testing.assert_allclose(ovo.decision_function(X), fitted.decision_function(X), atol=1e-4)


def test_score_curves_know_that_there_is_no_bias():
    model = SVCPath(fit_intercept=False, C_min=0.01, C_max=10.0).fit(X[::2], y[::2])
    curve = model.score_curve(X[1::2], y[1::2])
    for C in np.geomspace(0.011, 9.9, 7):
        assert curve(C) == model.at(C).score(X[1::2], y[1::2])
    errors = SVRPath(fit_intercept=False, C_min=0.01, C_max=10.0).fit(X[::2], t[::2])
    curve = errors.score_curve(X[1::2], t[1::2], scoring="neg_mean_absolute_error")
    for C in (0.02, 0.5, 8.0):
        expected = -np.abs(errors.at(C).predict(X[1::2]) - t[1::2]).mean()
        assert curve(C) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("over", ["C", "epsilon"])
def test_the_estimator_is_svr_at_every_value(over, tmp_path):
    model = SVRPath(over=over, fit_intercept=False, C=2.0, epsilon=0.3).fit(X, t)
    assert model.path_.value_of(model.path_.lam[0]) == (1e-4 if over == "C" else np.abs(t).max())
    for value in (0.05, 0.7):
        C, epsilon = (value, 0.3) if over == "C" else (2.0, value)
        at, fitted = model.at(value), SVR(C, epsilon, fit_intercept=False, tol=1e-9).fit(X, t)
        assert at.fit_intercept is False
        assert at.intercept_ == 0.0
        np.testing.assert_allclose(at.predict(X), fitted.predict(X), atol=1e-4)
    model.save(tmp_path / "model")
    again = SVRPath.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.fit_intercept is False


def test_the_point_at_the_origin_takes_up_the_sum():
    for family in (
        Family.hinge(y.astype(float), np.ones(40), has_bias=False),
        Family.insensitive(t, np.ones(40), 0.1, has_bias=False),
        Family.tubes(t, np.ones(40), has_bias=False),
    ):
        more, lam = family.with_origin(), 1.7
        assert more.n == 41
        assert more.is_hinge == family.is_hinge
        assert more.cost[-1] == 0.0
        # Its margin is where the bias is zero, and no sum of the others gets it to a bound.
        assert more.target0[-1] + lam * more.target1[-1] - family.eps(lam) == pytest.approx(0.0, abs=1e-15)
        assert more.low[-1] < -family.w.sum() < family.w.sum() < more.w[-1]


def test_where_no_kernel_value_counts_every_point_outside_the_tube_is_at_its_cap():
    scale = 1e100
    path = over_epsilon(y=scale * t, C=1.0)
    assert path.largest_gap_ <= 1e-9
    for epsilon in (0.3, 1.1, 2.0):
        expected = np.where(np.abs(t) > epsilon, np.sign(t), 0.0)
        np.testing.assert_array_equal(path.coefficients_at(scale * epsilon), expected)
