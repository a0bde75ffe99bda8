"""The one-class machine: every solver on its problem, scikit-learn's interface, and data that is awkward for it."""

import functools
import pickle
import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from conftest import KINDS, points
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_conformance import ENTRIES, MADE

import zerogap
from zerogap import DualProblem, Gram, OneClassSVM, RelativeGap, Status, solve
from zerogap.solvers import SMO, Auto

TOL = 1e-8
WEIGHT = np.resize([1.0, 0.5, 3.0, 0.0, 2.0], 40)


def cancer(n=None):
    return StandardScaler().fit_transform(load_breast_cancer().data)[:n]


# The problem: the coefficients sum to nu n, not to zero.


def problems():
    """Yield problems, easy and awkward; a start at the first points has some coefficients at both bounds."""
    for kind in KINDS:
        for nu in (0.05, 0.5, 1.0):
            yield f"{kind}-{nu}", DualProblem.one_class(Gram(points(kind)[0]), nu)
    X = points("plain")[0]
    yield "weights", DualProblem.one_class(Gram(X), 0.3, sample_weight=WEIGHT)
    yield "linear", DualProblem.one_class(Gram(X + 3.0, "linear"), 0.3)  # far enough from the origin for a plane
    yield "poly", DualProblem.one_class(Gram(X, "poly", coef0=1.0), 0.3)


PROBLEMS = dict(problems())


CLAIMED = [name for name, entry in ENTRIES.items() if entry.claims(PROBLEMS["weights"])]


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("solver", CLAIMED)
def test_every_solver_that_claims_it_reaches_the_optimum(solver, is_whole):
    is_exact, turn = ENTRIES[solver].is_exact, CLAIMED.index(solver)
    for name, problem in list(PROBLEMS.items())[0 if is_whole else turn % 4 :: 1 if is_whole else 4]:
        solution = solve(problem, MADE[solver], stop=RelativeGap(TOL if is_exact else 0.1))
        assert solution.status is Status.CONVERGED, name
        if is_exact:
            naive.assert_optimal(solution, problem)
        assert abs(solution.beta.sum() - problem.total) <= naive.sum_rounding(problem.n, problem.total), name


@functools.cache
def dual_of(n, nu):
    problem = DualProblem.one_class(Gram(np.random.default_rng(0).normal(size=(n, 4))), nu)
    return solve(problem, SMO(shrinking=False), stop=RelativeGap(TOL)).certificate.dual


@pytest.mark.covering
@pytest.mark.parametrize("nu", [0.03, 0.5])
@pytest.mark.parametrize("solver", [SMO(), Auto(), Auto(whole=100), SMO(second_order=False)], ids=repr)
def test_points_that_are_set_aside_keep_their_part_of_the_sum(solver, nu):
    """More points than are shrunk, and solved part by part: what the others sum to is not zero."""
    X = np.random.default_rng(0).normal(size=(1200, 4))
    problem = DualProblem.one_class(Gram(X, cache_size=4.0 if solver == Auto(whole=100) else 1000.0), nu)
    solution = solve(problem, solver, stop=RelativeGap(TOL))
    assert solution.status is Status.CONVERGED
    assert abs(solution.beta.sum() - problem.total) <= naive.sum_rounding(problem.n, problem.total)
    # What two solutions of a gap of TOL differ by in |f|² / 2 is no more than both gaps.
    assert solution.certificate.dual == pytest.approx(dual_of(len(X), nu), rel=2 * TOL)


def test_rows_of_a_few_points_are_enough_for_a_small_nu():
    X = np.random.default_rng(0).normal(size=(2000, 4))
    problem = DualProblem.one_class(Gram(X), 0.01)
    solution = solve(problem, "auto", stop=RelativeGap(TOL))
    assert solution.status is Status.CONVERGED
    assert problem.gram.evaluations < 0.2 * problem.n**2 / 2


def test_where_pairs_crawl_all_rows_are_computed_after_all(monkeypatch):
    monkeypatch.setattr("zerogap.solvers.auto.PATIENCE", 0.01)
    X = np.random.default_rng(0).normal(size=(700, 4))
    problem = DualProblem.one_class(Gram(X, "poly", coef0=1.0), 0.05)
    assert solve(problem, "auto", stop=RelativeGap(TOL)).status is Status.CONVERGED
    assert problem.gram.is_complete


def test_the_problem_tells_what_it_is():
    said = "one class with nu=0.3, sum 12, 40 points with 3 features"
    assert said in repr(DualProblem.one_class(Gram(points("plain")[0]), 0.3))
    weighted = DualProblem.one_class(Gram(points("plain")[0]), 0.3, sample_weight=WEIGHT)
    assert "one class with nu=0.3" in repr(weighted)


def test_a_point_short_of_the_sum_is_moved_to_its_bounds():
    problem = DualProblem.one_class(Gram(points("plain")[0]), 0.5)
    beta = np.full(40, 0.4)
    near = problem.feasible(beta)  # 4 short of 20: a sixth of the room of each
    np.testing.assert_allclose(near, 0.5, rtol=1e-12)
    assert problem.excess(near) == pytest.approx(0.0, abs=1e-14)


# The estimator.


# Checks of outlier detectors hand points to a precomputed kernel as well, so that is left to a test below.
def at_zero(estimator):
    """Training points on the margin have a decision value of zero: its sign is rounding, and so is their prediction."""
    return {f"check_sample_weight_equivalence_on_{kind}_data": at_zero.__doc__ for kind in ("dense", "sparse")}


@parametrize_with_checks([OneClassSVM()], expected_failed_checks=at_zero)
def test_scikit_learns_estimator_checks(estimator, check):
    check_as_they_do(estimator, check)


@pytest.mark.long
@parametrize_with_checks([OneClassSVM(kernel="linear", nu=0.9), OneClassSVM(kernel="poly", nu=0.2)])
def test_scikit_learns_estimator_checks_with_other_kernels(estimator, check):
    check_as_they_do(estimator, check)


def check_as_they_do(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of data with the origin in its middle, and few steps
        check(estimator)


def reach(ours, peer, X, weight=None):
    """Bound on how far apart decision values of two models are, from their gaps, and what LIBSVM's float32 kernel adds."""
    beta = np.zeros(len(X))
    np.add.at(beta, peer.support_, peer.dual_coef_[0])
    gram = Gram(X, ours.kernel, gamma=peer._gamma, degree=peer.degree, coef0=peer.coef0)
    problem = DualProblem.one_class(gram, peer.nu, sample_weight=weight)
    theirs = problem.certify(problem.feasible(beta))
    # 1/2 |f - f'|² is at most the sum of the gaps; |f(x) - f'(x)| at most |f - f'| |phi(x)|, and a sum that is rounded.
    gaps = sum(found.gap + found.rounding for found in (theirs, ours.certificate_))
    rounding = naive.sum_rounding(sum(X.shape), problem.total * gram.diagonal.max())
    return np.sqrt(2 * gaps * gram.diagonal.max()) + rounding, theirs


@pytest.mark.thin(5)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("nu", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("has_weights", [False, True])
def test_it_is_scikit_learns_model(kernel, nu, has_weights):
    X = cancer(300) + (3.0 if kernel == "linear" else 0.0)
    weight = np.random.default_rng(0).integers(1, 4, size=len(X)).astype(float) if has_weights else None
    options = {"kernel": kernel, "nu": nu, "gamma": 0.03, "coef0": 1.0}
    peer = sklearn.svm.OneClassSVM(**options, tol=1e-10).fit(X, sample_weight=weight)
    ours = OneClassSVM(**options, tol=1e-9).fit(X, sample_weight=weight)
    assert ours.duality_gap_ <= 1e-9
    away, theirs = reach(ours, peer, X, weight)
    assert away <= 1e-2 * np.abs(peer.score_samples(X)).max()  # else nothing is compared
    assert ours.certificate_.dual + ours.certificate_.gap >= theirs.dual - theirs.rounding - ours.certificate_.rounding
    np.testing.assert_allclose(ours.score_samples(X), peer.score_samples(X), atol=away, rtol=0)
    # rho is the value of free points; without any, all between those of two others are as good.
    b_up, b_low = ours.certificate_.bias_interval
    assert b_up - away <= peer.intercept_[0] <= b_low + away
    apart = away + abs(peer.offset_[0] - ours.offset_[0])
    assert apart <= 2 * away + (b_low - b_up)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=apart, rtol=0)
    sure = np.abs(peer.decision_function(X)) > apart
    assert sure.mean() > 0.5
    np.testing.assert_array_equal(ours.predict(X)[sure], peer.predict(X)[sure])
    np.testing.assert_array_equal(ours.intercept_, -ours.offset_)
    total = nu * (len(X) if weight is None else weight.sum())
    assert ours.dual_coef_.sum() == pytest.approx(total, rel=1e-12)
    assert peer.dual_coef_.sum() == pytest.approx(total, rel=1e-6)
    if kernel == "linear":
        np.testing.assert_allclose(X @ ours.coef_[0] + ours.intercept_, ours.decision_function(X), rtol=1e-9, atol=1e-9)


def test_attributes_are_those_of_scikit_learn():
    X = cancer(200)
    ours, peer = OneClassSVM(nu=0.2, tol=1e-9).fit(X), sklearn.svm.OneClassSVM(nu=0.2, tol=1e-9).fit(X)
    np.testing.assert_array_equal(ours.support_, peer.support_)
    np.testing.assert_array_equal(ours.support_vectors_, peer.support_vectors_)
    for name in ("n_support_", "offset_", "intercept_", "dual_coef_", "support_"):
        assert getattr(ours, name).shape == getattr(peer, name).shape, name
        assert getattr(ours, name).dtype == getattr(peer, name).dtype, name
    for name in ("shape_fit_", "fit_status_", "n_features_in_"):
        assert getattr(ours, name) == getattr(peer, name)
    assert isinstance(ours.n_iter_, int)
    assert ours.status_ is Status.CONVERGED
    assert ours.predict(X).dtype == peer.predict(X).dtype
    given = {name: value for name, value in peer.get_params().items() if name != "tol"}
    assert {name: ours.get_params()[name] for name in given if name != "cache_size"} == {
        name: value for name, value in given.items() if name != "cache_size"
    }
    np.testing.assert_array_equal(ours.fit_predict(X), ours.predict(X))
    with pytest.raises(AttributeError, match="linear kernel only"):
        _ = ours.coef_
    with pytest.raises(NotFittedError):
        clone(ours).score_samples(X)


def test_sparse_precomputed_and_other_points_give_the_same_model():
    X = np.where(np.abs(cancer(150)) < 0.5, 0.0, cancer(150))
    dense = OneClassSVM(nu=0.2, gamma=0.05, tol=1e-10).fit(X)
    sparse = OneClassSVM(nu=0.2, gamma=0.05, tol=1e-10).fit(sp.csr_matrix(X))
    assert sp.issparse(sparse.support_vectors_)
    assert sp.issparse(sparse.dual_coef_)
    matrix = rbf_kernel(X, gamma=0.05)
    given = OneClassSVM(nu=0.2, kernel="precomputed", tol=1e-10).fit(matrix)
    words = [f"{k}" for k in range(len(X))]
    looked_up = OneClassSVM(
        nu=0.2, tol=1e-10, kernel=lambda A, B: matrix[np.ix_(*([int(a) for a in S] for S in (A, B)))]
    )
    objects = looked_up.fit(words)
    expected = dense.decision_function(X)
    # Each is off by no more than its gap allows; k(x, x) is one.
    away = 2 * np.sqrt(2 * 2e-10 * abs(dense.certificate_.primal)) * 2
    for model, rows in ((sparse, sp.csr_matrix(X)), (given, matrix), (objects, words)):
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=away, rtol=0)


def test_a_weight_is_a_repetition_and_duplicates_are_merged():
    X = cancer(80)
    weight = np.random.default_rng(1).integers(0, 4, size=80)
    weighted = OneClassSVM(nu=0.3).fit(X, sample_weight=weight)
    repeated = OneClassSVM(nu=0.3).fit(X.repeat(weight, axis=0))
    assert weighted.certificate_ == repeated.certificate_  # the same problem, to the last bit
    np.testing.assert_array_equal(weighted.intercept_, repeated.intercept_)
    for model, caps in ((weighted, weight), (repeated, np.ones(weight.sum()))):
        assert (model.dual_coef_[0] > 0).all()
        assert (model.dual_coef_[0] <= caps[model.support_]).all()
    assert repeated.support_.size <= np.count_nonzero(weighted.dual_coef_[0] > 0) * 3


@pytest.mark.parametrize("nu", [0.01, 0.5, 1.0])
def test_awkward_data(nu):
    same = OneClassSVM(nu=nu).fit(np.ones((7, 2)) * 3.0)
    assert same.status_ is Status.CONVERGED
    assert same.decision_function([[3.0, 3.0]]) == pytest.approx(0.0, abs=1e-12)
    one = OneClassSVM(nu=nu, gamma=1.0).fit([[1.0, 2.0]])
    np.testing.assert_allclose(one.dual_coef_, [[nu]])
    np.testing.assert_allclose(one.offset_, [nu])  # k(x, x) = 1
    constant = OneClassSVM(nu=nu, tol=1e-9).fit(np.column_stack([cancer(60)[:, 0], np.full(60, 5.0)]))
    assert constant.duality_gap_ <= 1e-9
    two = OneClassSVM(nu=nu, gamma=1.0, tol=1e-9).fit([[0.0], [1.0]])
    np.testing.assert_allclose(two.dual_coef_, [[nu, nu]], rtol=1e-6)  # by symmetry


def test_all_of_the_weight_is_one_point_of_the_problem():
    """With nu = 1 all coefficients are at their bounds, and rho is the least decision value: no point is left behind."""
    X = cancer(50)
    model = OneClassSVM(nu=1.0, gamma=0.1).fit(X)
    np.testing.assert_allclose(model.dual_coef_, np.ones((1, 50)))
    assert model.certificate_.gap == 0.0
    np.testing.assert_allclose(model.score_samples(X), rbf_kernel(X, gamma=0.1).sum(axis=1), rtol=1e-10)


def test_a_linear_kernel_with_the_origin_in_the_middle_is_told():
    X = cancer(200)
    with pytest.warns(ConvergenceWarning, match="no plane between the origin and the points"):
        model = OneClassSVM(kernel="linear", nu=0.2).fit(X)
    assert model.status_ is Status.STALLED
    assert model.fit_status_ == 1
    assert np.linalg.norm(model.coef_) <= 1e-6 * 0.2 * 200 * np.sqrt((X**2).sum(axis=1).max())
    assert OneClassSVM(kernel="linear", nu=0.2).fit(X + 10.0).status_ is Status.CONVERGED


def test_bad_input_is_refused_in_words():
    X = cancer(20)
    for nu in (0.0, 1.5, -1.0, np.nan, "half"):
        with pytest.raises(ValueError, match="nu must be"):
            OneClassSVM(nu=nu).fit(X)
    with pytest.raises(ValueError, match="sample_weight must be finite and at least 0"):
        OneClassSVM().fit(X, sample_weight=-np.ones(20))
    with pytest.raises(ValueError, match="weight"):
        OneClassSVM().fit(X, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="NaN"):
        OneClassSVM().fit(np.where(X > 2, np.nan, X))
    with pytest.warns(ConvergenceWarning, match="OneClassSVM stopped after 3 steps.*max_iter=3"):
        short = OneClassSVM(max_iter=3, nu=0.2).fit(cancer())
    assert short.fit_status_ == 1


def test_a_warm_start_goes_on_from_the_last_model():
    X = cancer()
    with pytest.warns(ConvergenceWarning, match="warm_start=True to go on"):
        model = OneClassSVM(max_iter=40, nu=0.2, solver="smo").fit(X)
    gap = model.duality_gap_
    model.set_params(warm_start=True, max_iter=-1)
    steps = OneClassSVM(nu=0.2, solver="smo").fit(X).n_iter_
    model.fit(X)
    assert model.duality_gap_ <= 1e-4 < gap
    assert model.n_iter_ < steps
    again = model.fit(X)
    assert again.n_iter_ == 0


def test_a_model_is_stored_and_shown(tmp_path):
    X = cancer(100)
    model = OneClassSVM(nu=0.3).fit(X)
    model.save(tmp_path / "model")
    for twin in (
        zerogap.load(tmp_path / "model"),
        OneClassSVM.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(twin.offset_, model.offset_)
        assert twin.certificate_ == model.certificate_
        assert twin.status_ is Status.CONVERGED
    assert repr(model) == "OneClassSVM(nu=0.3)"
    pipe = make_pipeline(StandardScaler(), OneClassSVM(nu=0.1)).fit(X)
    assert set(pipe.predict(X)) == {-1, 1}
