"""OneClassSVMPath: the estimator of one_class_path."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap
from zerogap import OneClassSVM, OneClassSVMPath, Status


@pytest.fixture(scope="module")
def points():
    return StandardScaler().fit_transform(load_iris().data)


def at_zero(estimator):
    """Training points on the margin have a decision value of zero: its sign is rounding, and so is their prediction."""
    return {f"check_sample_weight_equivalence_on_{kind}_data": at_zero.__doc__ for kind in ("dense", "sparse")}


@pytest.mark.long
@parametrize_with_checks([OneClassSVMPath()], expected_failed_checks=at_zero)
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(4))
def test_points_on_the_margin_are_no_outliers_alone_or_with_others(seed):
    X = 3.0 * np.random.default_rng(seed).random((20, 3))
    path = OneClassSVMPath(nu_min=0.05).fit(X)
    for nu in (0.1, 0.3, 0.5, 0.8):
        on_margin = X[path.path_.points.rows[path.path_.on_margin_at(nu)]]
        assert len(on_margin)
        for model, at in ((path, {"nu": nu}), (path.at(nu), {})):
            assert (model.predict(on_margin, **at) == 1).all()
            assert all(model.predict(x[None], **at) == 1 for x in on_margin)
            np.testing.assert_array_equal(model.decision_function(X, **at) >= 0.0, model.predict(X, **at) == 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_model_of_every_nu(points, weighted):
    rng = np.random.default_rng(0)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], points.shape[0]) if weighted else None
    path = OneClassSVMPath().fit(points, sample_weight=weight)
    assert path.largest_gap_ <= 1e-9
    assert (path.breakpoints_[0], path.breakpoints_[-1]) == pytest.approx((1.0, 0.01))
    for nu in (0.01, 0.07, *rng.uniform(0.02, 0.99, 5), 1.0):
        model, fitted = path.at(nu), OneClassSVM(nu=nu, tol=1e-9).fit(points, sample_weight=weight)
        assert model.status_ is Status.CONVERGED
        assert model.dual_coef_.sum() == pytest.approx(nu * (points.shape[0] if weight is None else weight.sum()))
        np.testing.assert_allclose(model.score_samples(points), fitted.score_samples(points), rtol=1e-6)
        np.testing.assert_allclose(path.decision_function(points, nu), model.decision_function(points), atol=1e-9)
        if weight is None:  # no more than nu are left behind, and no fewer are support vectors
            assert (
                (model.decision_function(points) < -1e-9).mean()
                <= nu + 1e-12
                <= model.support_.size / len(points) + 1e-9
            )
    np.testing.assert_array_equal(path.predict(points, nu=[0.1, 0.5])[1], path.predict(points))
    np.testing.assert_allclose(path.decision_function(points) + path.offset_, path.score_samples(points), atol=1e-12)


def test_other_forms_and_storing(points, tmp_path):
    X = np.where(np.abs(points) < 0.3, 0.0, points)
    path = OneClassSVMPath(gamma=0.5).fit(X)
    expected = path.decision_function(X, nu=[0.2, 0.8])
    sparse = OneClassSVMPath(gamma=0.5).fit(sp.csr_matrix(X)).decision_function(sp.csr_matrix(X), nu=[0.2, 0.8])
    np.testing.assert_allclose(sparse, expected, atol=1e-9)
    matrix = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    given = OneClassSVMPath(kernel="precomputed").fit(matrix)
    np.testing.assert_allclose(given.decision_function(matrix, nu=[0.2, 0.8]), expected, atol=1e-9)
    path.save(tmp_path / "path")
    loaded = zerogap.load(tmp_path / "path")
    np.testing.assert_allclose(loaded.decision_function(X, nu=[0.2, 0.8]), expected, atol=1e-12)
    assert loaded.at(0.3).status_ is Status.CONVERGED
    pipe = make_pipeline(StandardScaler(), OneClassSVMPath()).fit(load_iris().data)
    expected = pipe[-1].at(0.1).decision_function(points)
    off_margin = np.abs(expected) > 1e-9  # there signs are rounding
    np.testing.assert_array_equal(pipe.predict(load_iris().data, nu=0.1)[off_margin], np.sign(expected)[off_margin])


def test_limits_and_bad_input(points):
    with pytest.warns(ConvergenceWarning, match=r"max_events=5.*nu_min=0\.01.*resume=model\.path_"):
        path = OneClassSVMPath(max_events=5).fit(points)
    assert path.breakpoints_[-1] > 0.5
    with pytest.raises(ValueError, match=r"runs from nu=1 to nu=.*go on with one_class_path"):
        path.predict(points, nu=0.1)
    for options in ({"nu_min": 0.0}, {"nu_max": 1.5}, {"nu_min": 0.5, "nu_max": 0.2}):
        with pytest.raises(ValueError, match="nu_m"):
            OneClassSVMPath(**options).fit(points)
