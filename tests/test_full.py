"""certify_full: the gap of an approximate model on the problem of the kernel itself."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zerogap import SVC, DualProblem, Gram, LinearSVC, LinearSVR, RelativeGap, Status, certify_full, solve

GAMMA = 1.0


def moons(n=300):
    return make_moons(n, noise=0.3, random_state=0)


def fitted(linear, components=60, **options):
    X, y = moons()
    features = Nystroem(gamma=GAMMA, n_components=components, random_state=0, **options)
    return make_pipeline(StandardScaler(), features, linear).fit(X, y), X, y


def optimum(X, y, loss, C=1.0):
    gram = Gram(StandardScaler().fit_transform(X), gamma=GAMMA)
    problem = getattr(DualProblem, loss)(gram, np.where(y == 1, 1.0, -1.0), C if loss == "hinge" else 2 * C)
    return solve(problem, stop=RelativeGap(1e-10)).certificate.dual


@pytest.mark.covering
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("linear", [LinearSVC, sklearn.svm.LinearSVC])
@pytest.mark.parametrize("components", [5, 60])
def test_the_optimum_is_between_bound_and_objective(linear, loss, components):
    model, X, y = fitted(linear(loss=loss, random_state=0, max_iter=10_000), components)
    found = certify_full(model, X, y)
    best = optimum(X, y, loss)
    assert found.dual <= best * (1 + 1e-9)
    assert found.primal >= best * (1 - 1e-9)
    assert components < 60 or found.relative_gap < 0.01


def test_the_objective_is_that_of_the_model_as_it_predicts():
    """Computed by hand: the norm in the space of the kernel is c'Kc with c = N'w, and losses are those of decision values."""
    model, X, y = fitted(LinearSVC(loss="hinge"), 20)
    features, linear = model[1], model[2]
    Z = features.components_
    c = features.normalization_.T @ linear.coef_[0]
    short = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * model.decision_function(X))
    expected = 0.5 * c @ rbf_kernel(Z, Z, gamma=GAMMA) @ c + short.sum()
    assert certify_full(model, X, y).primal == pytest.approx(expected, rel=1e-9)


def test_resume_goes_to_the_exact_optimum_with_less_work():
    model, X, y = fitted(LinearSVC(loss="squared_hinge", C=10.0), 100)
    found = certify_full(model, X, y)
    options = {"solver": "smo", "trace_every": 1}
    warm = found.resume(tol=1e-6, **options)
    cold = solve(found.problems[0], stop=RelativeGap(1e-6), **options)
    assert warm.status is cold.status is Status.CONVERGED
    assert warm.certificate.dual == pytest.approx(optimum(X, y, "squared_hinge", 10.0), rel=2e-6)
    assert warm.n_iter < 0.7 * cold.n_iter


def test_more_components_cost_less():
    gaps = [certify_full(*fitted(LinearSVC(loss="hinge"), m)).relative_gap for m in (10, 30, 100)]
    assert gaps[0] > gaps[1] > gaps[2]


def test_weights_a_fixed_bias_and_regression():
    X, y = load_diabetes(return_X_y=True)
    weight = np.resize([1.0, 2.0, 0.0], y.size)
    features = Nystroem(gamma=0.5, n_components=150, random_state=0)
    for linear in (LinearSVR(C=5.0, epsilon=2.0), LinearSVR(C=5.0, fit_intercept=False)):
        model = make_pipeline(features, linear)
        model.fit(X, y, linearsvr__sample_weight=weight)
        found = certify_full(model, X, y, weight)
        options = {"sample_weight": weight, "fit_intercept": linear.fit_intercept}
        problem = DualProblem.epsilon_insensitive(Gram(X, gamma=0.5), y, 5.0, linear.epsilon, **options)
        best = solve(problem, stop=RelativeGap(1e-9)).certificate.dual
        assert found.dual <= best * (1 + 1e-9) <= found.primal * (1 + 2e-9)


def test_several_classes_and_a_search():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(Nystroem(n_components=30, random_state=0), LinearSVC())
    search = GridSearchCV(pipeline, {"linearsvc__C": [1.0, 10.0]}, cv=2).fit(X, y)
    found = certify_full(search, X, y)
    assert len(found.names) == len(found.problems) == 3
    assert found.names[0] == "0 against the rest"
    assert all(certificate.gap >= 0 for certificate in found.certificates)


def test_other_features_need_the_kernel_and_are_certified_by_their_dual_point():
    X, y = moons()
    model = make_pipeline(RBFSampler(gamma=GAMMA, n_components=200, random_state=0), LinearSVC(loss="hinge")).fit(X, y)
    with pytest.raises(ValueError, match="pass it"):
        certify_full(model, X, y)
    found = certify_full(model, X, y, kernel="rbf", gamma=GAMMA)
    exact = SVC(gamma=GAMMA, tol=1e-9).fit(X, y).certificate_
    assert found.dual <= exact.primal
    assert found.primal >= exact.dual


def test_what_is_no_approximation_is_refused():
    model, X, y = fitted(LinearSVC())
    for other in (model[-1], make_pipeline(StandardScaler(), SVC()).fit(X, y)):
        with pytest.raises(TypeError, match="Pipeline is expected"):
            certify_full(other, X, y)
    with pytest.raises(ValueError, match="very data"):
        certify_full(model, X[::-1], y[::-1])


def indefinite():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] * X[:, 1] + 0.2 * rng.standard_normal(60) > 0).astype(int)
    features = Nystroem(kernel="sigmoid", gamma=1.0, coef0=-1.0, n_components=60, random_state=0)
    return make_pipeline(features, LinearSVC(loss="hinge", C=10.0)).fit(X, y), X, y


def test_an_indefinite_kernel_is_refused():
    """The dual objective of such a problem bounds nothing: the primal one has no minimum."""
    with pytest.raises(ValueError, match=r"is expected; the sigmoid kernel is not positive semidefinite.*Use another"):
        certify_full(*indefinite())


def test_a_square_below_zero_proves_nothing_even_where_nobody_has_looked(monkeypatch):
    monkeypatch.setattr(Gram, "seems_positive", lambda self: True)
    assert certify_full(*indefinite()).relative_gap == np.inf


@pytest.mark.parametrize("linear", [LinearSVC, sklearn.svm.LinearSVC])
def test_other_data_is_refused_in_a_line(linear):
    model, X, y = fitted(linear(C=0.1, random_state=0))
    with pytest.raises(ValueError, match=r"fitted on \d+ rows.*X has 30\. Pass the very data"):
        certify_full(model, X[:30], y[:30])
    with pytest.raises(ValueError, match=r"all 2 classes .* got none of \[0\]"):
        certify_full(model, X, np.ones(y.size, dtype=int))


def test_sparsified_weights_and_pipelines_in_pipelines_are_the_same_model():
    model, X, y = fitted(LinearSVC(C=0.1))
    expected = certify_full(model, X, y)
    model[-1].sparsify()
    scaler, features, linear = model[0], model[1], model[2]
    for same in (model, make_pipeline(scaler, make_pipeline(features, linear)), make_pipeline(model[:2], linear)):
        assert certify_full(same, X, y).relative_gap == expected.relative_gap
