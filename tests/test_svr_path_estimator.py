"""SVRPath: one SVR for every C, or every epsilon, as scikit-learn's estimators are used."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap
from zerogap import SVR, NuSVR, OneClassSVMPath, Status, SVRPath, certify, score_curve, svr_path
from zerogap.path import EpsilonPath, RegressionPath

RNG = np.random.default_rng(1)
X = RNG.normal(size=(50, 3))
y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.normal(size=50)
X_test, NEW = RNG.normal(size=(30, 3)), np.arange(30)
y_test = np.sin(2.0 * X_test[:, 0]) + 0.3 * RNG.normal(size=30)


@pytest.fixture(scope="module")
def over_C():
    return SVRPath(C_min=0.01, C_max=50.0, C=2.0, epsilon=0.05).fit(X, y)


@pytest.fixture(scope="module")
def over_epsilon():
    return SVRPath(over="epsilon", C=2.0, epsilon=0.05).fit(X, y)


@pytest.fixture
def either(request, over_C, over_epsilon):
    return {"C": over_C, "epsilon": over_epsilon}[request.param]


both = pytest.mark.parametrize("either", ["C", "epsilon"], indirect=True)


@pytest.mark.long
@parametrize_with_checks([SVRPath(), SVRPath(over="epsilon"), SVRPath(kernel="linear", C_max=10.0)])
def test_scikit_learns_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unscaled data, and data scikit-learn itself warns about
        check(estimator)


@both
def test_what_is_fitted(either):
    path = either.path_
    assert type(path) is (RegressionPath if either.over == "C" else EpsilonPath)
    np.testing.assert_array_equal(either.breakpoints_, getattr(path, either.over))
    assert either.n_events_ == path.n_events > 50
    assert either.largest_gap_ == path.largest_gap_ <= 1e-9


@both
def test_at_is_the_fitted_model(either):
    value = 0.7
    model = either.at(value)
    assert type(model) is SVR
    assert (model.C, model.epsilon) == ((value, 0.05) if either.over == "C" else (2.0, value))
    assert model.status_ is Status.CONVERGED
    assert model.duality_gap_ <= 1e-9
    other = SVR(C=model.C, epsilon=model.epsilon, tol=1e-9).fit(X, y)
    # Both normal vectors are within the root of twice their gap of the best one; the bias has an interval of its own.
    apart = sum(np.sqrt(2.0 * (m.certificate_.gap + m.certificate_.rounding)) for m in (model, other))
    biases = [*model.certificate_.bias_interval, *other.certificate_.bias_interval]
    off = apart + max(biases) - min(biases) + 1e-12
    np.testing.assert_allclose(model.predict(X_test), other.predict(X_test), rtol=0, atol=off)
    np.testing.assert_allclose(model.predict(X_test), either.predict(X_test, **{either.over: value}), rtol=0, atol=off)
    assert model.n_support_[0] == model.support_.size == np.count_nonzero(either.path_.coefficients_at(value))
    assert certify(model, X, y).relative_gap <= 1e-9


@both
def test_predict_takes_one_value_or_several(either):
    values = np.array([0.3, 0.7, 1.1])
    several = either.predict(X_test, **{either.over: values})
    assert several.shape == (3, 30)
    for value, row in zip(values, several, strict=True):
        np.testing.assert_allclose(either.predict(X_test, **{either.over: value}), row, rtol=0, atol=1e-14)
    own = either.predict(X_test, **{either.over: getattr(either, either.over)})
    np.testing.assert_array_equal(either.predict(X_test), own)
    assert either.score(X_test, y_test) == r2_score(y_test, own)


@both
def test_the_parameter_that_is_fixed_is_refused(either):
    other = "epsilon" if either.over == "C" else "C"
    with pytest.raises(ValueError, match=rf"runs over {either.over}, at {other}=.*predict takes {either.over}="):
        either.predict(X_test, **{other: 0.5})
    with pytest.raises(ValueError, match=rf"This path runs from {either.over}="):
        either.predict(X_test, **{either.over: 1e4})
    with pytest.raises(ValueError, match=rf"This path runs from {either.over}="):
        either.at(1e4)


@pytest.mark.parametrize("targets", [y, np.full(50, 2.0), 1e-3 * y], ids=["usual", "constant", "within the tube"])
def test_the_models_own_epsilon_is_on_the_path(targets):
    model = SVRPath(over="epsilon", epsilon=0.2).fit(X, targets)
    assert model.path_.epsilon[0] == pytest.approx(max(0.2, 0.5 * np.ptp(targets)))
    assert np.isfinite(model.predict(X_test)).all()
    assert model.at(model.path_.epsilon[0]).status_ is Status.CONVERGED  # of an objective that is zero but for rounding


def test_sparse_points_weights_and_precomputed_kernels(over_C):
    weight = 1.0 + np.arange(50) % 3
    dense = SVRPath(C_max=10.0, gamma=0.5).fit(X, y, sample_weight=weight)
    sparse = SVRPath(C_max=10.0, gamma=0.5).fit(sp.csr_matrix(X), y, sample_weight=weight)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X_test), C=3.0), dense.predict(X_test, C=3.0), atol=1e-9)
    kernel = dense._kernel
    given = SVRPath(C_max=10.0, kernel="precomputed").fit(kernel(X, X), y, sample_weight=weight)
    np.testing.assert_allclose(given.predict(kernel(X_test, X), C=3.0), dense.predict(X_test, C=3.0), atol=1e-9)
    np.testing.assert_allclose(given.at(3.0).predict(kernel(X_test, X)), dense.predict(X_test, C=3.0), atol=1e-9)
    repeated = SVRPath(C_max=10.0, gamma=0.5).fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    )
    np.testing.assert_allclose(repeated.predict(X_test, C=3.0), dense.predict(X_test, C=3.0), atol=1e-9)


def test_in_a_pipeline_and_a_search():
    pipe = make_pipeline(StandardScaler(), SVRPath(C_min=0.1, C_max=10.0)).fit(1000.0 * X, y)
    raw = 1000.0 * X_test
    curve = score_curve(pipe, raw, y_test, scoring="r2")
    assert curve.best_score == pytest.approx(r2_score(y_test, pipe.predict(raw, C=curve.best_C)), rel=1e-12)
    final = make_pipeline(*pipe[:-1], pipe[-1].at(curve.best_C))
    assert final.score(raw, y_test) == pytest.approx(curve.best_score, abs=1e-9)
    with pytest.warns(UserWarning, match="If SVRPath is the last step of a pipeline, use zerogap.score_curve"):
        pipe[-1].score_curve(raw, y_test)
    search = GridSearchCV(pipe, {"svrpath__gamma": [0.1, 1.0]}, cv=2).fit(1000.0 * X, y)
    assert score_curve(search, raw, y_test).best_score >= score_curve(search, raw, y_test)(1.0)
    assert certify(pipe, 1000.0 * X, y).relative_gap <= 1e-9


@pytest.mark.covering
@both
@pytest.mark.parametrize("way", ["file", "pickle"])
def test_stored_and_read(either, way, tmp_path):
    if way == "file":
        either.save(tmp_path / "model")
        same = zerogap.load(tmp_path / "model")
    else:
        same = pickle.loads(pickle.dumps(either))
    assert type(same) is SVRPath
    np.testing.assert_array_equal(same.predict(X_test), either.predict(X_test))
    assert same.at(0.5).certificate_ == either.at(0.5).certificate_
    assert same.largest_gap_ == either.largest_gap_
    assert same.score_curve(X_test, y_test).best_score == either.score_curve(X_test, y_test).best_score


@both
def test_a_limit_is_told(either):
    model = clone(either).set_params(max_events=5)
    end = either.path_.end_name
    with pytest.warns(
        ConvergenceWarning, match=rf"SVRPath was stopped \(max_events=5\) on its way to {end}=.*svr_path\(X, y"
    ):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"ended early \(max_events\): go on with svr_path"):
        model.predict(X_test, **{either.over: either.breakpoints_[-1]})
    options = {"C_max": 50.0} if either.over == "C" else {"C": 2.0}
    path = svr_path(X, y, over=either.over, epsilon=0.05, resume=model.path_, **options)
    np.testing.assert_allclose(path.coefficients_at(0.7), either.path_.coefficients_at(0.7), rtol=0, atol=1e-9)


SAME_POINT, CONFLICT = np.ones((2, 1)), np.array([0.0, 1.0])
THROUGH_THE_ORIGIN = np.array([[1.0], [-1.0]])


@pytest.mark.parametrize(
    "model",
    [
        lambda: NuSVR().fit(SAME_POINT, CONFLICT),
        lambda: NuSVR(nu=0.9).fit(SAME_POINT, CONFLICT),
        lambda: SVRPath(over="epsilon").fit(SAME_POINT, CONFLICT).at(0.5),
        lambda: SVRPath(over="epsilon").fit(SAME_POINT, CONFLICT).at(0.5 - 1e-10),
        lambda: OneClassSVMPath(kernel="linear").fit(THROUGH_THE_ORIGIN).at(0.9),
        lambda: OneClassSVMPath(kernel="linear").fit(np.zeros((3, 1))).at(0.9),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of no plane
def test_gap_of_a_converged_model_is_within_tol_where_the_objective_is_zero(model):
    found = model()
    assert found.status_ is Status.CONVERGED
    assert 0.0 <= found.duality_gap_ <= found.tol


def test_bad_input():
    with pytest.raises(ValueError, match="Unknown over 'nu'"):
        SVRPath(over="nu").fit(X, y)
    with pytest.raises(ValueError, match="epsilon must be"):
        SVRPath(over="epsilon", epsilon=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="C must be"):
        SVRPath(over="epsilon", C=0.0).fit(X, y)
    with pytest.raises(NotFittedError):
        SVRPath().predict(X)
    with pytest.raises(NotFittedError):
        SVRPath().at(1.0)
    with pytest.raises(TypeError, match="SVCPath or SVRPath"):
        score_curve(SVR().fit(X, y), X, y)


@both
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": y_test[:-1]}, "one number for each of the 30 points"),
        ({"y": np.where(NEW == 3, np.nan, y_test)}, "NaN or infinity at row 3"),
        ({"scoring": "accuracy"}, "Unknown scoring 'accuracy'. Choose one of 'neg_mean_squared_error'"),
        ({"scoring": "neg_root_mean_squared_error"}, "smallest where that is"),
        ({"sample_weight": np.ones(3)}, "weight"),
        ({"X": X_test[:, :2]}, "features"),
        ({"scoring": "r2", "y": np.ones(30)}, "the variance of y, which is zero"),
    ],
)
def test_bad_input_of_a_curve(either, change, message):
    with pytest.raises(ValueError, match=message):
        either.score_curve(**{"X": X_test, "y": y_test, **change})


@both
def test_curves_are_the_scores_of_scikit_learn(either):
    weight = RNG.uniform(size=30)
    values = np.linspace(0.02, 1.0, 9)
    predicted = either.predict(X_test, **{either.over: values})
    for scoring, error, sign in (
        ("neg_mean_squared_error", mean_squared_error, -1.0),
        ("neg_mean_absolute_error", mean_absolute_error, -1.0),
        ("r2", r2_score, 1.0),
    ):
        curve = either.score_curve(X_test, y_test, weight, scoring=scoring)
        expected = [sign * error(y_test, row, sample_weight=weight) for row in predicted]
        np.testing.assert_allclose(curve(values), expected, rtol=0, atol=1e-11)
        assert curve.parameter == either.over
