"""NuSVR: a lookup on the exact path over epsilon, beside scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap
from zerogap import SVR, DualProblem, Gram, NuSVR, Status, leave_one_out, solve, svr_path
from zerogap.kernels import RBF


@pytest.fixture(scope="module")
def data():
    X, y = load_diabetes(return_X_y=True)
    return X[::3], y[::3]


@pytest.mark.long
@parametrize_with_checks([NuSVR()])
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "options",
    [
        {"nu": 0.5},
        {"nu": 0.1, "C": 100.0},
        {"nu": 0.9, "C": 10.0, "kernel": "linear"},
        {"nu": 0.02, "C": 5.0},
        {"nu": 0.3, "C": 50.0, "kernel": "poly", "coef0": 1.0},
    ],
    ids=str,
)
def test_it_is_scikit_learns_model(data, options):
    X, y = data
    ours, peer = NuSVR(**options).fit(X, y), sklearn.svm.NuSVR(**options, tol=1e-9).fit(X, y)
    assert ours.status_ is Status.CONVERGED
    assert ours.duality_gap_ <= 1e-9
    assert ours.nu_ == pytest.approx(options["nu"], rel=1e-9)
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-5 * np.ptp(y))
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-5 * np.ptp(y))
    # At its epsilon it is the SVR, and a share of no more than nu is outside the tube.
    same = SVR(
        options.get("C", 1.0), ours.epsilon_, tol=1e-9, **{k: v for k, v in options.items() if k not in ("nu", "C")}
    )
    np.testing.assert_allclose(same.fit(X, y).predict(X), ours.predict(X), atol=1e-6 * np.ptp(y))
    outside = np.abs(y - ours.predict(X)) > ours.epsilon_ * (1.0 + 1e-9)
    assert outside.mean() <= options["nu"] <= ours.support_.size / y.size


def test_where_no_tube_is_left_nu_is_less(data):
    """With all coefficients inside their box sum |beta| does not grow any more: epsilon is zero, as in LIBSVM."""
    X, y = data
    ours, peer = NuSVR(nu=1.0, C=1e4).fit(X, y), sklearn.svm.NuSVR(nu=1.0, C=1e4, tol=1e-8).fit(X, y)
    assert ours.epsilon_ == 0.0
    assert ours.nu_ < 0.9
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), atol=1e-4 * np.ptp(y))


def test_another_nu_is_a_lookup(data):
    X, y = data
    model = NuSVR(nu=0.4, C=10.0).fit(X, y)
    epsilons = []
    for nu in (0.05, 0.4, 1.0):
        other, fitted = model.at_nu(nu), NuSVR(nu=nu, C=10.0).fit(X, y)
        assert other.epsilon_ == pytest.approx(fitted.epsilon_, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(other.predict(X), fitted.predict(X), atol=1e-7 * np.ptp(y))
        assert (model.nu, other.nu) == (0.4, nu)
        epsilons.append(other.epsilon_)
    assert epsilons == sorted(epsilons, reverse=True)


def test_epsilon_of_nu_along_the_path(data):
    """At the epsilon it tells sum |beta| is that share of C sum(w)."""
    X, y = data
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], y.size)
    path = svr_path(X, y, over="epsilon", C=10.0, sample_weight=weight)
    for nu in (1e-3, 0.1, 0.5, 0.9):
        beta = path.coefficients_at(path.epsilon_of_nu(nu))
        assert np.abs(beta).sum() == pytest.approx(nu * 10.0 * weight.sum(), rel=1e-9)
    part = svr_path(X, y, over="epsilon", C=10.0, epsilon_min=0.5 * float(np.ptp(y)) * 0.9)
    with pytest.raises(ValueError, match=r"ends at epsilon=.*resume=path"):
        part.epsilon_of_nu(0.9)
    with pytest.raises(AttributeError, match="epsilon_of_nu"):
        path.C_of_nu(0.5)


def test_points_of_other_forms(data, tmp_path):
    X, y = data
    X = np.where(np.abs(X) < 0.02, 0.0, X)
    model = NuSVR(nu=0.3, C=10.0, gamma=5.0).fit(X, y)
    sparse = NuSVR(nu=0.3, C=10.0, gamma=5.0).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), model.predict(X), atol=1e-7 * np.ptp(y))
    matrix = np.exp(-5.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    given = NuSVR(nu=0.3, C=10.0, kernel="precomputed").fit(matrix, y)
    np.testing.assert_allclose(given.predict(matrix), model.predict(X), atol=1e-7 * np.ptp(y))
    model.save(tmp_path / "model")
    loaded = zerogap.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.at_nu(0.5).nu_ == pytest.approx(0.5)


def test_a_weight_of_two_is_the_row_twice(data):
    X, y = data
    weight = np.random.default_rng(1).integers(0, 3, y.size)
    weighted = NuSVR(nu=0.3, C=10.0, gamma=5.0).fit(X, y, weight)
    repeated = NuSVR(nu=0.3, C=10.0, gamma=5.0).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert weighted.epsilon_ == pytest.approx(repeated.epsilon_, rel=1e-9)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9 * np.ptp(y))


@pytest.mark.parametrize("y", [np.zeros(6), np.array([0.0, 0, 0, 1, 1, 1]), np.arange(6.0)], ids=["one", "two", "line"])
def test_awkward_targets(y):
    X = np.repeat([[0.0], [1.0], [2.0]], 2, axis=0)
    gram = Gram(X, RBF(1.5))
    for nu in (1e-3, 0.5, 1.0):
        model = NuSVR(nu=nu, gamma=1.5).fit(X, y)
        assert model.status_ is Status.CONVERGED

        def objective(epsilon, nu=nu):
            found = solve(DualProblem.epsilon_insensitive(gram, y, 1.0, epsilon)).certificate
            return found.primal + nu * epsilon * y.size

        # Coefficients at a tie are many; epsilon is the best of all.
        least = objective(model.epsilon_)
        for epsilon in np.linspace(0.0, 0.5 * np.ptp(y) + 0.1, 13):
            assert least <= objective(epsilon) + 1e-5


@pytest.mark.parametrize("seed", range(8))
def test_where_nu_jumps_epsilon_is_where_it_does(seed):
    """With rows that agree but for their targets nu is a step function of epsilon: between two steps it is constant."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (40, 2)).astype(float), rng.integers(0, 4, 40).astype(float)
    path = svr_path(X, y, over="epsilon", kernel="linear")
    for nu in (0.1, 0.5, 0.8):
        ours = NuSVR(nu=nu, kernel="linear").fit(X, y)
        peer = sklearn.svm.NuSVR(nu=nu, kernel="linear", tol=1e-9).fit(X, y)
        of_ours, of_peer = ours.predict(X), peer.predict(X)
        np.testing.assert_allclose(of_ours, of_peer, atol=1e-6)
        if ours.epsilon_ > 0.0:  # else nu may be less
            assert ours.nu_ == pytest.approx(nu, rel=1e-9)  # coefficients that make the same model may have another sum
        assert zerogap.certify(ours, X, y).relative_gap <= 1e-9
        epsilon = ours.epsilon_
        assert path.epsilon_of_nu(nu) >= epsilon * (1.0 - 1e-9)  # of several the largest; the model has the middle
        # No more than a share of nu is outside its tube, and no less outside of one a little narrower.
        outside = np.abs(y - of_ours)
        assert np.mean(outside > epsilon + 1e-6) <= nu <= np.mean(outside > epsilon - 1e-6)


def test_limits_leave_the_model_they_have_come_to(data):
    X, y = data
    for limit in ({"max_iter": 20}, {"max_time": 1e-6}):
        with pytest.warns(ConvergenceWarning, match=r"NuSVR was stopped.*on its way to nu=0.9.*smaller nu"):
            model = NuSVR(nu=0.9, C=10.0, **limit).fit(X, y)
        assert model.status_ is not Status.CONVERGED
        assert model.nu_ < 0.9
        assert np.isfinite(model.predict(X)).all()


def test_what_cannot_be(data):
    X, y = data
    for options, words in (({"nu": 0.0}, "nu"), ({"nu": 1.1}, "nu"), ({"C": 0.0}, "C"), ({"C": np.inf}, "C")):
        with pytest.raises(ValueError, match=f"^{words} must be"):
            NuSVR(**options).fit(X, y)
    model = NuSVR(C=10.0).fit(X, y)
    with pytest.raises(AttributeError, match=r"NuSVR has no forget.*the epsilon.*SVR"):
        _ = model.forget
    with pytest.raises(ValueError, match=r"model\.epsilon_"):
        leave_one_out(model)
    given = sklearn.svm.NuSVR().get_params()
    assert {name: clone(NuSVR(**given)).get_params()[name] for name in given} == given
