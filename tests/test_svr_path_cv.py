"""Searches over every C of a regression, beside single fits."""

import numpy as np
import pytest
from searches import some_C
from sklearn.datasets import load_diabetes
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold

from zerogap import SVR, SVRPathCV
from zerogap.kernels import RBF, Linear


@pytest.mark.parametrize(
    "scoring", ["neg_mean_squared_error", "neg_mean_absolute_error", pytest.param("r2", marks=pytest.mark.long)]
)
def test_the_error_of_a_regression_has_its_minimum_over_all_C(scoring):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:90], y[:90]
    ours = SVRPathCV(epsilon=10.0, scoring=scoring, cv=3).fit(X, y)
    curve, grid = ours.cv_curve_, np.geomspace(0.01, 1000.0, 5001)
    means = curve.fold_scores(grid).mean(axis=0)
    # Both are sums of the same terms in another order.
    np.testing.assert_allclose(curve(grid), means, rtol=1e-11, atol=1e-11)
    assert ours.best_score_ >= means.max()
    assert ours.best_score_ - means.max() < 1e-4 * abs(means.max())
    near = ours.C_ * (1.0 + np.linspace(-1e-3, 1e-3, 101))
    assert ours.best_score_ >= curve.fold_scores(near).mean(axis=0).max() * (1 - 1e-14 * np.sign(means.max()))
    scorer = get_scorer(scoring)
    for k, (train, test) in enumerate(KFold(3).split(X)):
        for c in some_C(high=500.0, size=4):
            model = SVR(c, epsilon=10.0, tol=1e-12).fit(X[train], y[train])
            assert curve.folds[k](c) == pytest.approx(scorer(model, X[test], y[test]), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("size", [pytest.param(1e160, marks=pytest.mark.long), 1e200])
def test_targets_of_any_size(size):
    """What is chosen does not depend on the unit of the targets; a score that is too large for float64 is refused."""
    X, y = load_diabetes(return_X_y=True)
    X, y, unit = X[:60], y[:60], 2.0 ** np.round(np.log2(size))

    def search(unit, **options):  # a kernel of the same unit, so that coefficients have none
        options |= {"kernel": unit * RBF(100.0), "epsilon": 10.0 * unit}
        return SVRPathCV(cv=3, C_min=1.0, C_max=100.0, **options).fit(X, y * unit)

    for scoring, power in (("r2", 0), ("neg_mean_absolute_error", 1)):
        plain, ours = search(1.0, scoring=scoring), search(unit, scoring=scoring)
        assert ours.best_score_ == pytest.approx(plain.best_score_ * unit**power, rel=1e-9, abs=0)
        assert ours.best_std_error_ == pytest.approx(plain.best_std_error_ * unit**power, rel=1e-6, abs=0)
    with pytest.raises(ValueError, match=r"Targets of \de\+\d+ have errors whose .* too large for float64. Divide y"):
        search(unit)


def test_one_standard_error_where_the_score_is_steep():
    """With a kernel of the same unit a score of squares rises by its square, whose square is beyond float64."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    plain, steep = (
        SVRPathCV(kernel=unit * Linear(), epsilon=0.1 * unit, C_min=1e-4, C_max=100.0, selection="one_se").fit(
            X, unit * y
        )
        for unit in (1.0, 2.0**330)
    )
    assert pytest.approx(plain.C_, rel=1e-9) == steep.C_


def test_one_standard_error_of_a_regression():
    X, y = load_diabetes(return_X_y=True)
    ours = SVRPathCV(epsilon=10.0, selection="one_se", cv=3).fit(X[:90], y[:90])
    curve = ours.cv_curve_
    least = curve.best_score - curve.std_error(curve.best_C)
    assert ours.best_score_ == pytest.approx(least, rel=1e-12)
    assert (curve(np.geomspace(0.01, ours.C_ * (1 - 1e-9), 2000)) < least).all()


def test_regression_chooses_among_epsilons():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:50], y[:50]
    ours = SVRPathCV(epsilon=[1.0, 20.0], gamma=[10.0, 40.0], cv=3, C_max=100.0).fit(X, y)
    alone = [SVRPathCV(epsilon=e, gamma=g, cv=3, C_max=100.0).fit(X, y) for g in (10.0, 40.0) for e in (1.0, 20.0)]
    best = max(alone, key=lambda one: one.best_score_)
    assert (ours.epsilon_, ours.gamma_, ours.C_) == (best.epsilon_, best.gamma_, best.C_)
    np.testing.assert_allclose(
        ours.predict(X), SVR(ours.C_, ours.epsilon_, gamma=ours.gamma_, tol=1e-9).fit(X, y).predict(X)
    )
    assert ours.score(X, y) == pytest.approx(1 - np.mean((ours.predict(X) - y) ** 2) / y.var())
