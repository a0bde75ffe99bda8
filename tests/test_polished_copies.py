"""One class, and nu of several classes: the copies of these models that polish returns predict from the exact solution.

What they are to be comes from decision values and coefficients by plain algebra, and from an interior point solver: neither
shares code with the package.  Two functions f and g that are within gaps a and b of one optimum have |f - g| at most
sqrt(2 a) + sqrt(2 b), as the objective is 1/2 |f|² and convex terms; and |f(x) - g(x)| is at most sqrt(k(x, x)) times that.
"""

import pickle
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC, OneClassSVM
from test_foreign import AGREE, letters, quadratic

from zerogap import certify, polish

GAMMA = 0.4
rng = np.random.default_rng(5)
LABELS = np.array(["c", "a", "b"])[np.arange(60) % 3]  # not in the order of their rows
X = rng.normal(size=(60, 3)) + 1.6 * np.eye(3)[np.arange(60) % 3]
WEIGHT = np.resize([1.0, 0.5, 3.0, 2.0, 0.7], 60)
UNIT = np.finfo(float).eps


def textbook(points, kernel="rbf"):
    """Return the kernel matrix."""
    if kernel == "poly":
        return polynomial_kernel(points, degree=3, gamma=GAMMA, coef0=1.0)
    return linear_kernel(points) if kernel == "linear" else rbf_kernel(points, gamma=GAMMA)


def by_rows(model, labels=LABELS):
    """Return the coefficients of every problem, (problems, 60), by LIBSVM's layout."""
    dual = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    if isinstance(model, OneClassSVM):
        found = np.zeros((1, 60))
        found[0, model.support_] = dual[0]
        return found
    codes, found = np.searchsorted(model.classes_, labels), []
    for a, b in combinations(range(model.classes_.size), 2):
        found.append(np.zeros(60))
        for k, row in enumerate(model.support_):
            if codes[row] in (a, b):
                found[-1][row] = dual[b - 1 if codes[row] == a else a, k]
    return np.array(found)


def values(model, points):
    """Return decision values, a column for each problem."""
    if isinstance(model, OneClassSVM):
        return model.decision_function(points)[:, None]
    return clone_of(model, decision_function_shape="ovo").decision_function(points)


def clone_of(model, **options):
    """Return the fitted model with other parameters."""
    return pickle.loads(pickle.dumps(model)).set_params(**options)


def optima_and_objectives(model, K, weight, decisions, labels):
    """Yield, for every problem, its optimum, and the objective of the model by what it predicts."""
    beta = by_rows(model, labels)
    if isinstance(model, OneClassSVM):
        total = model.nu * weight.sum()
        best = -quadratic(K, np.zeros(60), np.ones((1, 60)), np.array([total]), weight)
        loss = weight @ np.maximum(0.0, -decisions[:, 0])
        yield best, 0.5 * beta[0] @ K @ beta[0] + loss - total * float(model.offset_[0])
        return
    for k, (a, b) in enumerate(combinations(model.classes_, 2)):
        rows = np.flatnonzero(np.isin(labels, (a, b)) & (weight > 0))
        sign, w, part = np.where(labels[rows] == a, 1.0, -1.0), weight[rows], K[np.ix_(rows, rows)]
        total, scale = model.nu * w.sum(), model.nu * w.sum() / np.abs(beta[k]).sum()
        A, sums = np.array([sign, np.ones(rows.size)]), np.array([0.0, total])
        best = -quadratic(sign[:, None] * part * sign, np.zeros(rows.size), A, sums, w)
        own, margins = scale * beta[k, rows], scale * sign * decisions[rows, k]  # at the margin that is best
        loss = min(w @ np.maximum(0.0, m - margins) - m * total for m in margins)
        yield best, 0.5 * own @ part @ own + loss


def assert_exact(model, points, K, weight=None, tol=1e-9, labels=LABELS):
    """The copy has the type, the optimum and the gap, and predicts from the coefficients it shows."""
    before = clone_of(model)
    y = None if isinstance(model, OneClassSVM) else labels
    exact = polish(model, points, y, weight, tol=tol)
    assert vars(model).keys() == vars(before).keys()
    for name in ("support_", "intercept_", "_intercept_", "_n_support"):
        assert (getattr(model, name) == getattr(before, name)).all()
    assert (by_rows(model, labels) == by_rows(before, labels)).all()
    assert type(exact) is type(model)
    assert exact.get_params() == model.get_params()
    found = certify(exact, points, y, weight)
    assert found.relative_gap <= tol
    assert repr(found) == repr(exact.certificate_)
    assert exact.fit_status_ == 0
    beta, decisions = by_rows(exact, labels), values(exact, points)
    # A sum of 60 products, and exponentials that are within some units of each other.
    rounding = 100.0 * UNIT * (np.abs(K) @ np.abs(beta).T + np.abs(exact.intercept_))
    assert (np.abs(decisions - (K @ beta.T + exact.intercept_)) <= rounding).all()
    w = np.ones(60) if weight is None else weight
    for best, own in optima_and_objectives(exact, K, w, decisions, labels):
        assert own - best <= (AGREE + tol) * max(1.0, abs(best))
    if isinstance(model, OneClassSVM):
        assert (exact.offset_ == -exact.intercept_).all()
        assert (exact.predict(points) == np.where(decisions[:, 0] > 0, 1, -1)).all()
        assert np.abs(exact.score_samples(points)[:, None] - K @ beta.T).max() <= rounding.max()
        assert exact.n_support_.tolist() == [exact.support_.size]
    else:
        votes = np.zeros((60, 3))
        for k, (a, b) in enumerate(combinations(range(3), 2)):
            votes[np.arange(60), np.where(decisions[:, k] > 0, a, b)] += 1
        assert (exact.predict(points) == exact.classes_[votes.argmax(axis=1)]).all()
        assert exact.decision_function(points).shape == (60, 3)
        assert exact.n_support_.tolist() == [int((labels[exact.support_] == label).sum()) for label in exact.classes_]
    return exact


def given(A, B):
    """Return rbf values, of dense or sparse points."""
    return rbf_kernel(A, B, gamma=GAMMA)


FORMS = {
    "dense": ({"gamma": GAMMA}, X),
    "fortran": ({"gamma": GAMMA}, np.asfortranarray(X)),
    "sparse": ({"gamma": GAMMA}, sp.csr_matrix(X)),
    "poly": ({"kernel": "poly", "gamma": GAMMA, "coef0": 1.0}, X),
    "linear": ({"kernel": "linear"}, X),
    "precomputed": ({"kernel": "precomputed"}, textbook(X)),
    "function": ({"kernel": given}, X),
    "function-sparse": ({"kernel": given}, sp.csr_matrix(X)),
}
LONG = ("fortran", "function-sparse")
KINDS = {"one": OneClassSVM(nu=0.3), "nu": NuSVC(nu=0.42)}


@pytest.mark.long
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
@pytest.mark.parametrize("form", [pytest.param(form, marks=[pytest.mark.long] * (form in LONG)) for form in FORMS])
@pytest.mark.parametrize("kind", KINDS)
def test_the_copy_predicts_from_the_exact_solution(kind, form, weight):
    options, points = FORMS[form]
    model = clone(KINDS[kind]).set_params(**options)
    if kind == "one" and form == "linear":
        points = points + 3.0  # or the origin is amid the points
    model.fit(points, LABELS, sample_weight=weight)
    plain = points if form == "linear" else X
    exact = assert_exact(model, points, textbook(plain, model.kernel), weight)
    assert sp.issparse(exact.support_vectors_) == sp.issparse(exact.dual_coef_) == (form == "sparse")
    if form == "sparse":
        assert exact.dual_coef_.nnz == exact.dual_coef_.shape[0] * exact.dual_coef_.shape[1]
        assert np.abs(exact.decision_function(points) - exact.decision_function(points.toarray())).max() == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_where_a_fit_of_all_digits_ends(kind):
    nearest = clone(KINDS[kind]).set_params(gamma=GAMMA, tol=1e-12).fit(X, LABELS, sample_weight=WEIGHT)
    exact = polish(clone_of(nearest, tol=1e-3).fit(X, LABELS, sample_weight=WEIGHT), X, LABELS, WEIGHT, tol=1e-10)
    K = textbook(X)
    gaps = [certify(model, X, LABELS, WEIGHT, tol=1e-10).certificates for model in (nearest, exact)]
    for k, (theirs, ours) in enumerate(zip(*gaps, strict=True)):
        away = np.sqrt(2.0 * (theirs.gap + theirs.rounding)) + np.sqrt(2.0 * (ours.gap + ours.rounding))
        both = [by_rows(model)[k] for model in (nearest, exact)]
        if kind == "nu":  # divided by rho, which is told by the sum
            pair = [*combinations("abc", 2)][k]
            total = 0.42 * WEIGHT[np.isin(LABELS, pair)].sum()
            both = [total / np.abs(beta).sum() * beta for beta in both]
        assert np.abs(K @ (both[0] - both[1])).max() <= away < 1e-2
    # The intercepts, and the margins of the pairs, are those of free support vectors: as near as values are.
    near, own = values(nearest, X), values(exact, X)
    assert np.abs(own - near).max() <= 1e-4 * np.abs(near).max()
    certain = (np.abs(own) > np.abs(own - near).max()).all(axis=1)  # the free ones of one class are on the boundary
    assert certain.sum() > 30
    assert (exact.predict(X) == nearest.predict(X))[certain].all()


def test_intercepts_that_are_not_unique_are_the_middle_ones():
    # Two support vectors each, all at their bounds, and nothing on the margin.
    points = np.array([[-3.0], [-2.0], [2.0], [3.0], [7.0], [8.5]])
    labels = np.array([0, 0, 1, 1, 2, 2])
    model = NuSVC(nu=0.5, kernel="linear", decision_function_shape="ovo").fit(points, labels)
    exact = polish(model, points, labels)
    # nu = 1/2 of four points is one a class: w = x_a - x_b of the nearest two, margins of 1 halfway to the next ones.
    for k, (a, b) in enumerate(combinations(range(3), 2)):
        side = [np.sort(np.abs(exact.decision_function(points[labels == c])[:, k])) for c in (a, b)]
        assert [one.mean() for one in side] == pytest.approx([1.0, 1.0], abs=1e-9)


def test_words_are_points_too():
    alphabet = {"a": "abcab", "b": "cdecd", "c": "efgfg"}
    words = ["".join(rng.choice(list(alphabet[label]), size=6)) for label in LABELS]
    K = letters(words, words)
    for model, y in ((OneClassSVM(nu=0.3, kernel=letters), None), (NuSVC(nu=0.42, kernel=letters), LABELS)):
        exact = polish(model.fit(words, y), words, y)
        assert certify(exact, words, y).relative_gap <= 1e-9
        beta = by_rows(exact)
        away = np.abs(values(exact, words) - (K @ beta.T + exact.intercept_))
        assert away.max() <= 100.0 * UNIT * (K @ np.abs(beta).T + np.abs(exact.intercept_)).max()


@pytest.mark.covering
@pytest.mark.parametrize("form", ["sparse", "precomputed", pytest.param("function", marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_are_not_there(kind, form):
    # scikit-learn counts support vectors among the rows that are left, and takes other columns of a kernel matrix for them.
    options, points = FORMS[form]
    weight = np.where(np.arange(60) % 4 == 0, 0.0, WEIGHT)
    model = clone(KINDS[kind]).set_params(**options).fit(points, LABELS, sample_weight=weight)
    exact = assert_exact(model, points, textbook(X), weight)
    assert (weight[exact.support_] > 0).all()


# Awkward data.


@pytest.mark.covering
@pytest.mark.parametrize("nu", [1e-3, 0.02, 0.99, 1.0 - 1e-12, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_from_the_least_nu_to_the_largest(kind, nu):
    apart = X + 5.0 * np.eye(3)[np.arange(60) % 3]  # a small nu asks for classes that can be told apart
    model = clone(KINDS[kind]).set_params(gamma=GAMMA, nu=min(nu, 1.0 - 1e-12)).fit(apart, LABELS)
    model.nu = nu  # LIBSVM ends with no numbers at 1
    exact = assert_exact(model, apart, textbook(apart))
    if nu == 1.0:  # every coefficient at its bound
        sizes = np.abs(by_rows(exact))
        assert all(np.ptp(of_pair[of_pair > 0]) <= 10.0 * UNIT * of_pair.max() for of_pair in sizes)
        assert exact.support_.size == 60


def test_a_margin_that_libsvm_has_below_zero():
    points, labels = load_iris(return_X_y=True)
    model = NuSVC(nu=0.01).fit(points, labels)
    upright = model.dual_coef_.copy()
    own = labels[model.support_]
    pair = np.where(own == 1, upright[1], np.where(own == 2, -upright[1], 0.0))
    if pair.sum() > 0:  # here it is below zero; another LIBSVM may end elsewhere
        model.dual_coef_[1] = np.where(own > 0, -upright[1], upright[1])
        model.intercept_[2] = -model.intercept_[2]
    with pytest.raises(ValueError, match=r"for 1 against 2 are no feasible point.*nu=0\.01 is too small"):
        certify(model, points, labels)
    exact = polish(model, points, labels)
    assert certify(exact, points, labels).relative_gap <= 1e-9
    assert exact.score(points, labels) > 0.9
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        polish(model, points, labels, max_time=1e-9)


@pytest.mark.long
def test_a_margin_of_two_classes_that_libsvm_has_below_zero():
    points, labels = load_iris(return_X_y=True)
    exact = polish(NuSVC(nu=0.01).fit(points, labels), points, labels)
    two = labels > 0
    model = NuSVC(nu=0.01, gamma=exact._gamma).fit(points[two], labels[two])
    if model.dual_coef_[0] @ (2 * labels[two][model.support_] - 3) > 0:
        model.dual_coef_, model.intercept_ = -model.dual_coef_, -model.intercept_
    svc = polish(model, points[two], labels[two])
    assert np.abs(svc.dual_coef_).sum() == pytest.approx(0.01 * 100 * svc.C, rel=1e-8)
    assert svc.decision_function(points[two]) == pytest.approx(-values(exact, points[two])[:, 2], rel=1e-4, abs=1e-4)


def test_one_support_vector():
    points = np.array([[1.0, 2.0], [2.0, 1.5], [3.0, 4.0]])
    exact = polish(OneClassSVM(nu=0.2, kernel="linear").fit(points), points)
    assert exact.support_.tolist() == [0]  # nearest to the origin, and all others are beyond its plane
    assert exact.decision_function(points) == pytest.approx(0.6 * (points @ points[0] - 5.0), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_duplicates_and_constant_features(kind):
    points = np.column_stack([np.repeat(X[:15], 4, axis=0), np.full(60, 7.0)])
    labels = np.repeat(LABELS[:15], 4)
    model = clone(KINDS[kind]).set_params(gamma=GAMMA).fit(points, labels)
    assert_exact(model, points, textbook(points), labels=labels)
    same = np.full((60, 2), 3.0)
    exact = polish(OneClassSVM(nu=0.3).fit(same), same)
    assert np.abs(exact.decision_function(same)).max() <= 100.0 * UNIT * 18.0


def test_an_optimum_of_zero_is_told():
    around = np.concatenate([X - X.mean(axis=0), X.mean(axis=0) - X])
    with pytest.warns(ConvergenceWarning, match="no better than zero.*points all around the origin"):
        exact = polish(OneClassSVM(nu=0.5, kernel="linear").fit(around), around)
    assert exact.fit_status_ == 1
    assert np.abs(exact.coef_).max() < 1e-3
    assert exact.certificate_.worst.gap < 1e-6


# What is around it, and what is kept.


def test_pipelines_and_searches():
    pipeline = make_pipeline(StandardScaler(), OneClassSVM(nu=0.2)).fit(X)
    search = GridSearchCV(make_pipeline(StandardScaler(), NuSVC()), {"nusvc__nu": [0.4, 0.42]}, cv=2, refit=True).fit(
        X, LABELS
    )
    for model, y in ((pipeline, None), (search, LABELS)):
        exact = polish(model, X, y)
        assert certify(exact, X, y).relative_gap <= 1e-9
        scaled = exact[0].transform(X)
        assert (exact.predict(X) == exact[-1].predict(scaled)).all()
        assert not hasattr((model if y is None else model.best_estimator_)[-1], "certificate_")


def test_a_calibration_stays():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of scikit-learn, which has another way
        model = NuSVC(nu=0.42, gamma=GAMMA, probability=True, random_state=0).fit(X, LABELS)
    exact = polish(model, X, LABELS)
    assert np.abs(exact.predict_proba(X) - model.predict_proba(X)).max() < 1e-2
    assert exact.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(60))


@pytest.mark.parametrize("kind", KINDS)
def test_points_may_come_in_another_form_than_they_were_fitted_in(kind):
    model = clone(KINDS[kind]).set_params(gamma=GAMMA)
    for fitted, passed in ((X, sp.csr_matrix(X)), (sp.csr_matrix(X), X)):
        exact = polish(clone(model).fit(fitted, LABELS), passed, LABELS)
        near = values(clone(model).set_params(tol=1e-10).fit(fitted, LABELS), fitted)
        assert np.abs(values(exact, fitted) - near).max() <= 1e-3 * np.abs(near).max()


@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_model_is_exact_again_and_can_be_refitted(kind):
    model = clone(KINDS[kind]).set_params(gamma=GAMMA, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="Solver terminated early"):
        model.fit(X, LABELS)
    assert model.fit_status_ == 1
    exact = polish(model, X, LABELS)
    assert exact.fit_status_ == 0
    again = polish(exact, X, LABELS)
    assert again.support_.tolist() == exact.support_.tolist()
    assert np.abs(values(again, X) - values(exact, X)).max() <= 1e-6
    clone(exact).set_params(max_iter=-1).fit(X, LABELS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_no_worse_where_time_is_short(kind):
    model = clone(KINDS[kind]).set_params(gamma=GAMMA, tol=0.1).fit(X, LABELS)
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        exact = polish(model, X, LABELS, max_time=1e-9)
    assert exact.fit_status_ == 1
    for ours, theirs in zip(exact.certificate_.certificates, certify(model, X, LABELS).certificates, strict=True):
        assert ours.primal <= theirs.primal + ours.rounding + theirs.rounding


# What is refused.


def test_what_has_no_exact_model_is_told():
    model = NuSVC(nu=0.42, gamma=GAMMA).fit(X, LABELS)
    with pytest.raises(ValueError, match="y is missing"):
        polish(model, X)
    for ask in (certify, polish):
        with pytest.raises(ValueError, match=r"nu=0\.42 is infeasible for a against b: .* sum to .* lighter class has"):
            ask(model, X, LABELS, np.where(LABELS == "a", 0.01, 1.0))
    with pytest.raises(ValueError, match="are not the rows of X"):
        polish(OneClassSVM().fit(X), X[::-1])
    for indefinite in (OneClassSVM(kernel="sigmoid", gamma=5.0), NuSVC(nu=0.42, kernel="sigmoid", gamma=0.01)):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            polish(indefinite.fit(X, LABELS), X, LABELS)


def test_a_pair_without_a_margin_is_named():
    points = X + 6.0 * (LABELS == "c")[:, None]
    points[LABELS == "a"] = np.round(points[LABELS == "a"])
    points[LABELS == "b"] = points[LABELS == "a"]  # point for point: these two cannot be told apart
    model = NuSVC(nu=0.42, gamma=GAMMA).fit(X, LABELS)
    model.support_vectors_ = points[model.support_]
    with pytest.raises(ValueError, match=r"nu=0\.42 is too small for this data, a against b: the classes cannot"):
        polish(model, points, LABELS)


def test_a_model_that_does_not_predict_from_what_it_shows_is_told():
    other = pytest.importorskip("sklearnex.svm")
    model = other.NuSVC(nu=0.42, gamma=GAMMA).fit(X, LABELS)
    assert hasattr(model, "_onedal_estimator")
    with pytest.raises(TypeError, match=r"copy of a NuSVC of 3 classes.*sklearnex.*Fit sklearn\.svm\.NuSVC"):
        polish(model, X, LABELS)


@pytest.mark.long
@pytest.mark.parametrize("nu", [1e-4, 0.01, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("name", ["digits", "iris"])
def test_real_data(name, nu):
    points, labels = (load_digits if name == "digits" else load_iris)(return_X_y=True)
    for model, y in ((OneClassSVM(nu=nu), None), (NuSVC(nu=nu), labels)):
        exact = polish(model.fit(points, y), points, y)
        assert certify(exact, points, y).relative_gap <= 1e-9
        assert exact.predict(points).shape == labels.shape
