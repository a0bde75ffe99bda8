"""A fit that ended early is gone on with by another fit, with ``warm_start=True``."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

from zerogap import SVC, SVR, GaussianProcessRegressor, Status

X, Y = make_moons(300, noise=0.3, random_state=0)
IRIS = load_iris(return_X_y=True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("make", "data"),
    [(SVC, (X, Y)), (SVC, IRIS), (SVR, (X, X[:, 0] ** 2))],
    ids=["two-classes", "three-classes", "SVR"],
)
def test_a_fit_without_warm_start_is_gone_on_with(make, data):
    """The second fit begins where the first has ended, however that was fitted."""
    model = make(C=10.0, tol=1e-9, max_iter=20, solver="smo").fit(*data)
    first = np.atleast_1d(model.certificate_)
    model.set_params(warm_start=True).fit(*data)
    for before, after in zip(first, np.atleast_1d(model.certificate_), strict=True):
        assert after.dual > before.dual or after.relative_gap <= 1e-9
    there = make(C=10.0, tol=1e-9, solver="smo").fit(*data).set_params(warm_start=True).fit(*data)
    assert np.sum(there.n_iter_) == 0


def warning_of(call):
    with pytest.warns(ConvergenceWarning) as caught:
        call()
    return str(caught[0].message)


@pytest.mark.parametrize("make", [SVC, SVR])
def test_warnings_name_it(make):
    said = warning_of(lambda: make(max_iter=3, solver="smo").fit(X, Y))
    assert "raise it, loosen the tolerance, or fit again with warm_start=True to go on (max_iter=3)." in said
    said = warning_of(lambda: make(max_time=1e-9).fit(X, Y))
    assert "raise it, or fit again with warm_start=True to go on (max_time=1e-09)." in said


def test_rows_that_come_and_go_are_gone_on_with_by_forgetting_none():
    said = warning_of(lambda: SVC(max_time=1e-9).partial_fit(X, Y))
    assert "raise it, or call forget([]) to go on (max_time=1e-09)." in said


def test_where_there_is_no_way_to_go_on_none_is_named():
    said = warning_of(lambda: GaussianProcessRegressor(max_time=1e-9).fit(X, Y))
    assert "the time limit was reached; raise it (max_time=1e-09)." in said
    assert GaussianProcessRegressor()._advice(Status.MAX_STEPS).endswith("; raise it, or loosen the tolerance")
    assert GaussianProcessRegressor()._advice(Status.INTERRUPTED) == "interrupted"


@pytest.mark.parametrize("make", [SVC, SVR])
def test_other_rows_are_a_fresh_start(make):
    model = make(tol=1e-6, solver="smo").fit(X, Y).set_params(warm_start=True).fit(X[:200], Y[:200])
    fresh = make(tol=1e-6, solver="smo").fit(X[:200], Y[:200])
    np.testing.assert_array_equal(model.dual_coef_, fresh.dual_coef_)


def test_other_classes_are_a_fresh_start():
    y = np.where(X[:, 1] > 0.8, 2, Y)
    model = SVC(tol=1e-6, solver="smo").fit(X, Y).set_params(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, SVC(tol=1e-6, solver="smo").fit(X, y).dual_coef_)
