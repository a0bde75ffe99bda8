"""nu in place of C: the lookup on a path, and the classifier that is made of it."""

import pickle
import signal
import time
import warnings

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap
from zerogap import SVC, NuSVC, Status, leave_one_out, svm_path
from zerogap.estimators import nu_svc

X4, Y4 = load_iris(return_X_y=True)


def cancer(n=None):
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


def least_norm(K, y, w, nu):
    """The nu-SVC as Schölkopf has it: the least b'Kb / 2 with half of nu sum(w) in each class, from below and from above.

    By a general interior-point solver, which is short of the digits it is asked for now and then.
    """
    n, half = y.size, 0.5 * nu * w.sum()
    signed = np.outer(y, y) * K
    A = np.concatenate([np.stack([y > 0, y < 0]).astype(float), -np.eye(n), np.eye(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(2), clarabel.NonnegativeConeT(2 * n)]
    solver = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix(signed), format="csc"),
        np.zeros(n),
        sp.csc_matrix(A),
        np.concatenate([[half, half], np.zeros(n), w]),
        cones,
        settings,
    )
    found = solver.solve()
    assert abs(found.obj_val - found.obj_val_dual) <= 1e-5 * max(1.0, abs(found.obj_val))  # else it tells nothing
    return found.obj_val_dual, found.obj_val


def assert_is_least(K, y, w, nu, beta, C):
    """b = beta / C is feasible for the nu-SVC, and its norm the least there is, as far as the QP solver knows that."""
    b = beta / C
    scale = w.sum()
    assert (y * b >= -1e-12 * scale).all()
    assert (y * b <= w * (1 + 1e-12)).all()
    assert abs(b.sum()) <= 1e-12 * scale
    assert abs(np.abs(b).sum() - nu * scale) <= 1e-11 * scale
    below, above = least_norm(K, y, w, nu)
    slack = 1e-9 * max(1.0, above)  # what its point is outside of the constraints
    assert below - slack <= 0.5 * b @ K @ b <= above + slack


def random_problem(seed, n):
    """Points on a coarse grid, so that many are the same, with weights now and then."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, 2)).astype(float)
    y = np.where(rng.uniform(size=n) < 0.5 + 0.3 * np.sign(X[:, 0] - 1.5), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    w = rng.integers(1, 4, size=n).astype(float) if seed % 2 else np.ones(n)
    return X, y, w, rng


# The lookup.


def check_lookup(seeds):
    reached = 0
    for seed in seeds:
        X, y, w, rng = random_problem(seed, 6 + seed % 9)
        K = rbf_kernel(X, gamma=0.4) if seed % 3 else X @ X.T
        path = svm_path(K, y, kernel="precomputed", sample_weight=w, C_min=1e-6, C_max=1e4)
        largest = 2 * min(w[y > 0].sum(), w[y < 0].sum()) / w.sum()
        nus = [*rng.uniform(0.0, largest, size=6), largest, 0.5 * largest, 2 / w.sum(), 4 / w.sum()]
        for nu in nus:
            if nu > largest:
                continue
            if nu < np.abs(path.coefficients_at(1e4)).sum() / (1e4 * w.sum()) - 1e-12:
                with pytest.raises(ValueError, match="beyond the end of this path"):
                    path.C_of_nu(nu)
                continue
            C = path.C_of_nu(nu)
            assert_is_least(K, y, w, nu, path.coefficients_at(C), C)
            reached += 1
    return reached


def test_the_solution_at_the_c_of_nu_is_the_nu_svc_of_a_general_solver():
    assert check_lookup(range(6)) > 20


@pytest.mark.long
def test_the_solution_at_the_c_of_nu_is_the_nu_svc_of_a_general_solver_on_many_problems():
    assert check_lookup(range(6, 400)) > 1500


def test_nu_falls_along_a_path_and_is_found_again():
    X, y = cancer(300)
    path = svm_path(X, y, C_min=1e-8, C_max=1e3)
    C = np.geomspace(1e-3, 1e3, 100)
    nu = np.array([np.abs(path.coefficients_at(c)).sum() for c in C]) / (C * len(y))
    assert (np.diff(nu) <= 1e-12).all()
    for c, share in zip(C, nu, strict=True):
        found = path.C_of_nu(share)
        # nu is known to some roundings, and C the less, the less nu depends on it.
        again = np.abs(path.coefficients_at(found)).sum() / (found * len(y))
        assert abs(again - share) <= 1e-12
        assert found <= c * (1 + 1e-9)  # the smallest C of this nu


def test_of_an_interval_of_c_the_smallest_is_returned():
    # One point of a class against three: where the one is alone on its margin nothing depends on C but the bias.
    X, y = np.array([[0.0], [1.0], [1.5], [4.0]]), np.array([1, 0, 0, 0])
    path = svm_path(X, y, kernel="linear", C_min=1e-6, C_max=1e3)
    nu = np.array([np.abs(path.coefficients_at(c)).sum() for c in path.C]) / (path.C * 4)
    flat = [k for k in range(1, len(path) - 1) if abs(nu[k] - nu[k + 1]) <= 1e-12]
    for k in flat:
        first = np.flatnonzero(np.abs(nu - nu[k]) <= 1e-12)[0]  # the bias may have kinks in between
        assert path.C_of_nu(nu[k + 1]) == pytest.approx(path.C[first], rel=1e-9)
    assert path.C_of_nu(0.5) == pytest.approx(1e-6)  # the largest nu, that of all C below the first event


def test_what_no_c_has_is_refused_with_the_c_that_would_do():
    X, y = make_moons(60, noise=0.05, random_state=0)
    path = svm_path(X, y, gamma=2.0, C_min=1e-8, C_max=1e6)
    with pytest.raises(ValueError, match=r"nu must be at most 1"):
        path.C_of_nu(1.2)
    with pytest.raises(ValueError, match=r"nu must be above 0"):
        path.C_of_nu(0.0)
    with pytest.raises(ValueError, match=r"specified nu is infeasible: it is at most 0\.5"):
        svm_path(X[:40], np.arange(40) % 4 == 0).C_of_nu(0.6)
    # Separable: the tail is the hard margin, and nu falls as 1 / C.
    size = np.abs(path.coefficients_at(1e6)).sum()
    nu = 0.5 * size / (1e6 * 60)
    with pytest.raises(ValueError, match=r"It is reached at C=2e\+06 \(nu falls as 1/C.*C_max=2\.02e\+06"):
        path.C_of_nu(nu)
    path = svm_path(X, y, gamma=2.0, C_min=1e-8, C_max=2.02e6, resume=path)
    assert path.C_of_nu(nu) == pytest.approx(2e6, rel=1e-9)
    later = svm_path(X, y, gamma=2.0, C_min=1.0, C_max=10.0)
    with pytest.raises(ValueError, match=r"begins at C=1, where nu is .*smaller C_min"):
        later.C_of_nu(0.99)
    # Two points in one place, of both classes: at every C they are within the margin.
    both = svm_path([[0.0], [0.0], [1.0], [3.0]], [0, 1, 0, 1], kernel="linear", C_max=1e3)
    with pytest.raises(ValueError, match=r"stays above 0\.666667 however large C is"):
        both.C_of_nu(0.3)


def test_a_copied_path_goes_on_as_the_path_does():
    X, y = cancer(150)
    path = svm_path(X, y, C_max=10.0, max_events=60)
    twin = pickle.loads(pickle.dumps(path))
    for one in (path, twin):
        svm_path(X, y, C_max=10.0, resume=one)
        assert one.largest_gap_ <= 1e-9
    np.testing.assert_allclose(twin.coefficients_at(5.0), path.coefficients_at(5.0), atol=1e-8)


# The estimator.


def infeasible(estimator):
    """Checks whose weights make one class too light for any nu but a tiny one; those of scikit-learn's NuSVC fail as well."""
    reasons = {"check_class_weight_classifiers": "with weights of 1000 and 0.0001 nu is at most 2e-7"}
    if estimator.nu == 0.5:
        names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
        reasons |= dict.fromkeys(names, "with its weights nu is at most 0.46")
    return reasons


@pytest.mark.long
@parametrize_with_checks([NuSVC()], expected_failed_checks=infeasible)
def test_scikit_learns_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.long
@parametrize_with_checks([NuSVC(nu=0.45, class_weight="balanced")], expected_failed_checks=infeasible)
def test_scikit_learns_estimator_checks_with_classes_of_one_weight(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def compared(ours, peer, X, atol):
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=atol, rtol=0)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=atol, rtol=0)
    sure = np.abs(peer.decision_function(X)).min(axis=-1) > atol if ours.classes_.size > 2 else slice(None)
    np.testing.assert_array_equal(ours.predict(X)[sure], peer.predict(X)[sure])


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("nu", [0.02, 0.5, *(pytest.param(nu, marks=pytest.mark.long) for nu in (0.2, 0.7))])
def test_it_is_scikit_learns_model(kernel, nu):
    X, y = cancer()
    options = {"kernel": kernel, "gamma": 0.03, "coef0": 1.0, "nu": nu}
    ours, peer = NuSVC(**options).fit(X, y), sklearn.svm.NuSVC(**options, tol=1e-10).fit(X, y)
    assert ours.duality_gap_ <= 1e-9
    assert ours.nu_ == pytest.approx([nu], rel=1e-12)
    # LIBSVM's kernel values are of single precision: its solution is off by about the root of that.
    compared(ours, peer, X, atol=1e-3 * np.abs(peer.decision_function(X)).max())
    beta = np.zeros(len(y))
    beta[peer.support_] = peer.dual_coef_[0]
    assert ours.C_[0] == pytest.approx(np.abs(beta).sum() / (nu * len(y)), rel=1e-4)
    mine = np.zeros(len(y))
    mine[ours.support_] = ours.dual_coef_[0]
    np.testing.assert_allclose(mine, beta, atol=2e-3 * ours.C_[0])
    # And it is the SVC with that C, certified as such.
    assert zerogap.certify(ours, X, y, tol=1e-8).relative_gap <= 1e-8  # of the nu problem
    exact = SVC(C=ours.C_[0], kernel=kernel, gamma=0.03, coef0=1.0, tol=1e-9).fit(X, y)
    assert abs(ours.certificate_.dual - exact.certificate_.dual) <= 2e-9 * exact.certificate_.primal


def test_several_classes_each_pair_a_problem_of_its_own():
    for X, y, nu in ((X4, Y4, 0.31), (X4, Y4, 0.055), (X4[20:], Y4[20:], 0.41)):
        options = {"gamma": 0.3, "nu": nu, "decision_function_shape": "ovo"}
        ours, peer = NuSVC(**options).fit(X, y), sklearn.svm.NuSVC(**options, tol=1e-10).fit(X, y)
        compared(ours, peer, X, atol=1e-4 * np.abs(peer.decision_function(X)).max())
        np.testing.assert_array_equal(ours.n_support_.shape, peer.n_support_.shape)
        assert ours.dual_coef_.shape[0] == peer.dual_coef_.shape[0]
        np.testing.assert_allclose(ours.nu_, nu, rtol=1e-12)
        assert len(ours.paths_) == len(ours.certificate_) == len(ours.C_) == 3
        assert not hasattr(ours, "path_")
        assert ours.duality_gap_ <= 1e-9
        threaded = NuSVC(**options, n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(threaded.dual_coef_, ours.dual_coef_)
    assert NuSVC(nu=0.3).fit(X4, np.array(["a", "b", "c"])[Y4]).predict(X4[:1]) == ["a"]


def test_attributes_and_parameters_are_those_of_scikit_learn():
    X, y = cancer(200)
    ours, peer = NuSVC(nu=0.3).fit(X, y), sklearn.svm.NuSVC(nu=0.3, tol=1e-10).fit(X, y)
    np.testing.assert_array_equal(ours.support_, peer.support_)
    np.testing.assert_array_equal(ours.support_vectors_, peer.support_vectors_)
    for name in ("n_support_", "intercept_", "dual_coef_", "support_", "n_iter_", "classes_", "class_weight_"):
        assert getattr(ours, name).shape == getattr(peer, name).shape, name
        assert getattr(ours, name).dtype == getattr(peer, name).dtype, name
    for name in ("shape_fit_", "fit_status_", "n_features_in_"):
        assert getattr(ours, name) == getattr(peer, name)
    given = sklearn.svm.NuSVC().get_params()
    assert {name: NuSVC(**given).get_params()[name] for name in given} == given
    assert repr(ours) == "NuSVC(nu=0.3)"
    assert ours.path_ is ours.paths_[0]
    assert ours.status_ is Status.CONVERGED
    assert not hasattr(ours, "partial_fit")
    with pytest.raises(AttributeError, match="NuSVC has no forget"):
        ours.forget([0])
    with pytest.raises(ValueError, match=r"Use an SVC with the C that it has found, model\.C_"):
        leave_one_out(ours)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_linear_weights_go_with_points_wherever_they_are(offset):
    X = X4 + offset
    model = NuSVC(nu=0.5, kernel="linear", decision_function_shape="ovo").fit(X, Y4)
    at_home = NuSVC(nu=0.5, kernel="linear", decision_function_shape="ovo").fit(X4, Y4)
    # What rounding of the points has done: half a unit in their last place, times w.
    away = 1e-9 + np.abs(at_home.coef_).sum(axis=1).max() * np.spacing(offset) * 10
    np.testing.assert_allclose(model.decision_function(X), at_home.decision_function(X4), atol=away)
    values = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(values, model.decision_function(X), atol=1e-9 + np.abs(values).max() * offset * 1e-12)


def test_sparse_precomputed_and_other_points_give_the_same_model():
    X, y = cancer(120)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = NuSVC(nu=0.3, gamma=0.05).fit(X, y)
    sparse = NuSVC(nu=0.3, gamma=0.05).fit(sp.csr_matrix(X), y)
    assert sp.issparse(sparse.dual_coef_)
    matrix = rbf_kernel(X, gamma=0.05)
    given = NuSVC(nu=0.3, kernel="precomputed").fit(matrix, y)
    words = [f"{k}" for k in range(len(X))]
    by_words = NuSVC(nu=0.3, kernel=lambda A, B: matrix[np.ix_(*([int(a) for a in S] for S in (A, B)))]).fit(words, y)
    for model, rows in ((sparse, sp.csr_matrix(X)), (given, matrix), (by_words, words)):
        np.testing.assert_allclose(model.decision_function(rows), dense.decision_function(X), atol=1e-9)
    assert by_words.at_nu(0.2).nu_ == pytest.approx([0.2])


def test_weights_are_repetitions_and_those_of_classes_are_weights():
    X, y = cancer(100)
    weight = np.random.default_rng(0).integers(1, 4, size=100)
    weighted, repeated = NuSVC(nu=0.3).fit(X, y, weight), NuSVC(nu=0.3).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert weighted.certificate_ == repeated.certificate_  # the same problem, to the last bit
    np.testing.assert_array_equal(weighted.C_, repeated.C_)
    peer = sklearn.svm.NuSVC(nu=0.3, gamma=0.03, tol=1e-10).fit(X, y, weight)
    compared(NuSVC(nu=0.3, gamma=0.03).fit(X, y, weight), peer, X, atol=1e-4)
    by_class = NuSVC(nu=0.3, gamma=0.03, class_weight={0: 2.0}).fit(X, y)
    by_row = NuSVC(nu=0.3, gamma=0.03).fit(X, y, np.where(y == 0, 2.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-10)
    balanced = NuSVC(nu=0.95, class_weight="balanced").fit(X, y)  # infeasible without
    assert balanced.nu_ == pytest.approx([0.95])


def test_another_nu_is_a_lookup_on_the_path():
    X, y = cancer(200)
    model = NuSVC(nu=0.3).fit(X, y)
    path = model.path_
    for nu in (0.29, 0.1, 0.03, 0.001, 0.5, 0.7):
        other, fitted = model.at_nu(nu), NuSVC(nu=nu).fit(X, y)
        assert other is not model
        assert (other.nu, other.nu_[0]) == (nu, pytest.approx(nu))
        assert other.duality_gap_ <= 1e-9
        scale = np.abs(fitted.decision_function(X)).max()
        np.testing.assert_allclose(other.decision_function(X), fitted.decision_function(X), atol=1e-8 * scale)
        assert (other.path_ is path) == (nu < 0.3)  # it was followed further, or another was begun
    assert (model.nu, model.nu_[0]) == (0.3, pytest.approx(0.3))
    events = path.n_events
    model.at_nu(0.2)
    assert path.n_events == events  # nothing was left to be followed
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        model.at_nu(0.99)


# Awkward data.

# Of a nu that no C has, the path is followed to the end, where it may have few digits left, and says so.
far = pytest.mark.filterwarnings("ignore:The path is not exact", "ignore:The rbf kernel has too few digits")


def test_one_point_of_each_class():
    for nu in (1.0, 0.5, 0.01):
        model = NuSVC(nu=nu, kernel="linear").fit([[0.0], [2.0]], [0, 1])
        # Any margin within which both are is one at nu = 1; the least is the widest that separates them.
        np.testing.assert_allclose(model.decision_function([[0.0], [1.0], [2.0]]), [-1.0, 0.0, 1.0], atol=1e-9)
        assert model.C_[0] == pytest.approx(0.5 / nu)


def test_all_points_within_the_margin():
    """nu = 1 and classes of one size: every coefficient is at its bound, and the margin as wide as one likes."""
    X, y = make_moons(40, noise=0.2, random_state=0)
    model = NuSVC(nu=1.0).fit(X, y)
    np.testing.assert_allclose(np.abs(model.dual_coef_), model.C_[0], rtol=1e-12)
    assert model.duality_gap_ <= 1e-9
    assert np.abs(model.decision_function(X)).max() <= 1.0 + 1e-9  # the least such margin ends at some point
    assert np.abs(model.decision_function(X)).max() == pytest.approx(1.0)
    assert model.score(X, y) >= 0.75
    with pytest.raises(ValueError, match="not finite"):
        sklearn.svm.NuSVC(nu=1.0).fit(X, y)


def test_of_an_interval_of_margins_the_middle_is_taken_as_in_libsvm():
    X, y = np.array([[0.0], [1.0], [1.5], [1.9], [4.0], [5.0], [5.2], [6.0]]), np.repeat([0, 1], 4)
    tried = 0
    for nu in (0.25, 0.5, 0.75):  # numbers that LIBSVM can add up without rounding
        ours = NuSVC(nu=nu, kernel="linear").fit(X, y)
        peer = sklearn.svm.NuSVC(nu=nu, kernel="linear", tol=1e-12).fit(X, y)
        begin, end = ours.path_._lam_of_nu(nu)
        tried += begin > end * (1 + 1e-9)
        np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-5)
    assert tried


@far
def test_points_in_the_same_place_constant_features_and_classes_that_overlap():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, size=30), np.full(30, 7.0)]).astype(float)
    y = rng.integers(0, 2, size=30)
    largest = 2 * min(np.mean(y == 0), np.mean(y == 1))
    model = NuSVC(nu=largest).fit(X, y)
    assert model.duality_gap_ <= 1e-9
    with pytest.raises(
        ValueError, match=r"specified nu is infeasible: the classes 0 and 1 overlap.*nu is 0\.\d+ still"
    ):
        NuSVC(nu=0.05).fit(X, y)
    same = NuSVC(nu=1.0).fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert same.duality_gap_ <= 1e-9
    np.testing.assert_allclose(same.decision_function(np.ones((1, 2))), 0.0, atol=1e-12)


def check_grids(seeds):
    found = 0
    for seed in seeds:
        X, y, w, rng = random_problem(seed, 8 + seed % 17)
        nu = float(rng.choice([rng.uniform(0.01, 1.0), rng.integers(1, 6) / 6]))
        largest = 2 * min(w[y > 0].sum(), w[y < 0].sum()) / w.sum()
        model = NuSVC(nu=nu, gamma=0.4)
        if nu > largest * (1 + 1e-12):
            with pytest.raises(ValueError, match="it is at most"):
                model.fit(X, y, w)
            continue
        if least_norm(rbf_kernel(X, gamma=0.4), y, w, nu)[1] <= 1e-5:  # the hulls of the classes meet
            with pytest.raises(ValueError, match="overlap"):
                model.fit(X, y, w)
            continue
        model.fit(X, y, w)
        beta = np.zeros(len(y))
        beta[model.support_] = model.dual_coef_[0]
        assert_is_least(rbf_kernel(X, gamma=0.4), y, w, nu, beta, model.C_[0])
        assert model.duality_gap_ <= 1e-9
        found += 1
    return found


@pytest.mark.long
@far
def test_models_of_points_on_a_grid_are_those_of_a_general_solver():
    assert check_grids(range(12)) > 2


@far
@pytest.mark.long
def test_models_of_many_points_on_a_grid_are_those_of_a_general_solver():
    assert check_grids(range(12, 600)) > 150


# Refusals, limits, storing.


def test_bad_input_is_refused_in_words():
    X, y = cancer(100)
    for nu in (0.0, 1.5, -1.0, np.nan, "half"):
        with pytest.raises(ValueError, match="nu must be"):
            NuSVC(nu=nu).fit(X, y)
    with pytest.raises(ValueError, match=r"specified nu is infeasible: for the classes 0 and 1.*balanced"):
        NuSVC(nu=0.9).fit(X, y)
    with pytest.raises(ValueError, match="NuSVC needs at least two classes"):
        NuSVC().fit(X, np.zeros(100))
    with pytest.raises(ValueError, match="positive semidefinite"):
        NuSVC(kernel="sigmoid", gamma=1.0, nu=0.3).fit(X, y)


def test_a_limit_leaves_the_model_that_there_is():
    X, y = cancer()
    with pytest.warns(
        ConvergenceWarning, match=r"NuSVC was stopped \(max_steps\) on its way to nu=0\.3: it has come to nu=0\.3"
    ):
        model = NuSVC(nu=0.3, max_iter=2).fit(X, y)
    assert model.status_ is Status.MAX_STEPS
    assert model.nu_[0] > 0.3
    assert model.duality_gap_ <= 1e-9  # of the SVC that it is
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"\(max_time\) on its way to nu=0\.3: it has (come to|not got)"):
        model = NuSVC(nu=0.3, max_time=1e-9).fit(X, y)
    assert time.perf_counter() - began < 5.0
    assert model.status_ is Status.MAX_TIME
    assert model.predict(X[:3]).shape == (3,)


def test_ctrl_c_leaves_what_there_is_and_one_warning(monkeypatch):
    pairs, fit_nu = [], NuSVC._fit_nu

    def fit_and_press(self, *pair):
        pairs.append(pair)
        if len(pairs) == 2:
            signal.raise_signal(signal.SIGINT)
        return fit_nu(self, *pair)

    monkeypatch.setattr(NuSVC, "_fit_nu", fit_and_press)
    with pytest.warns(ConvergenceWarning) as told:
        model = NuSVC(nu=0.3).fit(X4, Y4)
    assert [str(one.message) for one in told] == [
        "NuSVC was stopped in 2 of 3 pairs of classes (interrupted) on its way to nu=0.3: it has not got beyond its start."
    ]
    assert model.status_ == [Status.CONVERGED, Status.INTERRUPTED, Status.INTERRUPTED]
    assert model.nu_[0] == pytest.approx(0.3)
    decisions = model.set_params(decision_function_shape="ovo").decision_function(X4[:100])
    np.testing.assert_array_equal(decisions[:, 0] > 0, Y4[:100] == 0)


def test_where_the_first_guess_is_wrong_the_path_begins_at_its_beginning(monkeypatch):
    X, y = cancer(100)
    right = NuSVC(nu=0.3).fit(X, y)
    for guess in (None, (1e3, np.zeros(100)), (1e-3, np.zeros(100))):
        monkeypatch.setattr(nu_svc, "near_nu", lambda *problem, guess=guess: guess)
        model = NuSVC(nu=0.3).fit(X, y)
        np.testing.assert_allclose(model.C_, right.C_, rtol=1e-9)
        assert model.duality_gap_ <= 1e-9


def test_probabilities():
    X, y = cancer(150)
    model = NuSVC(nu=0.2, probability=True).fit(X, y)
    assert model.predict_proba(X).shape == (150, 2)
    assert ((model.predict_proba(X)[:, 1] > 0.5) == (y == 1)).mean() > 0.9
    assert model.at_nu(0.3).calibration_ is None


@pytest.mark.parametrize(
    "points", ["dense", *(pytest.param(p, marks=pytest.mark.long) for p in ("sparse", "precomputed"))]
)
def test_a_model_is_stored_and_goes_on(points, tmp_path):
    X, y = X4[20:130], Y4[20:130]
    data = {"dense": X, "sparse": sp.csr_matrix(X), "precomputed": X @ X.T}[points]
    model = NuSVC(nu=0.3, kernel="precomputed" if points == "precomputed" else "rbf").fit(data, y)
    model.save(tmp_path / "model")
    for twin in (zerogap.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.decision_function(data), model.decision_function(data))
        np.testing.assert_array_equal(twin.C_, model.C_)
        assert twin.certificate_ == model.certificate_
        for nu in (0.25, 0.1):
            expected = clone(model).set_params(nu=nu).fit(data, y).decision_function(data)
            found = twin.at_nu(nu)
            assert found.duality_gap_ <= 1e-9
            np.testing.assert_allclose(found.decision_function(data), expected, atol=1e-8 * np.abs(expected).max())
