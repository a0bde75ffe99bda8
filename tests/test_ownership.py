"""What a model keeps is its own: arrays that change after a call change nothing, and none of the user's is changed."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_moons

from zerogap import SVC, SVR, GaussianProcessRegressor, leave_one_out

X, Y = make_moons(60, noise=0.3, random_state=0)
X = np.where(np.abs(X) < 0.3, 0.0, X)
WEIGHT = np.random.default_rng(0).choice([0.5, 1.0, 2.0], size=60)


def spoil(*arrays):
    """Write something else into what the user still holds."""
    for array in arrays:
        if sp.issparse(array):
            array.data[:], array.indices[:] = 7.0, 0
        else:
            array[...] = 7 if array.dtype.kind in "iu" else 7.0


FORMS = {
    "dense": lambda A: A.copy(),
    "csr": sp.csr_matrix,
    "wide csr": lambda A: sp.csr_matrix(np.hstack([A, np.zeros((len(A), 300))])),
    "float32": lambda A: A.astype(np.float32),
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_reused_buffer_does_not_change_what_was_learnt_from_it(form):
    make = FORMS[form]
    model, expected = SVC(gamma=1.0), SVC(gamma=1.0)
    expected.partial_fit(make(X[:30]), Y[:30], sample_weight=WEIGHT[:30])
    expected.partial_fit(make(X[30:]), Y[30:], sample_weight=WEIGHT[30:])
    for part in (slice(0, 30), slice(30, 60)):
        batch, labels, weight = make(X[part]), Y[part].copy(), WEIGHT[part].copy()
        model.partial_fit(batch, labels, sample_weight=weight)
        spoil(batch, labels, weight)
    whole = make(X)
    np.testing.assert_array_equal(model.decision_function(whole), expected.decision_function(whole))
    np.testing.assert_array_equal(leave_one_out(model).decision_values, leave_one_out(expected).decision_values)
    np.testing.assert_array_equal(
        model.forget([1, 2, 40]).decision_function(whole), expected.forget([1, 2, 40]).decision_function(whole)
    )


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "model",
    [SVC(gamma=1.0), SVC(gamma=1.0, warm_start=True), SVR(gamma=1.0, warm_start=True), GaussianProcessRegressor(gamma=1.0),
     GaussianProcessRegressor(gamma=1.0, solver="cg"), SVC(kernel="linear")],
    ids=str,
)  # fmt: skip
def test_data_changed_after_a_fit_changes_nothing(model, form):
    make = FORMS[form]
    data, y = make(X), Y.astype(float)
    weights = () if isinstance(model, GaussianProcessRegressor) else (WEIGHT.copy(),)
    model, expected = clone(model).fit(data, y, *weights), clone(model).fit(make(X), Y.astype(float), *weights)
    spoil(data, y, *weights)
    fresh = make(X)
    ask = {SVC: lambda m: [m.decision_function(fresh), leave_one_out(m).decision_values, m.forget([0])._coefficients]}
    ask[SVR] = lambda m: [
        m.predict(fresh),
        leave_one_out(m).predictions,
        m.forget([0])._coefficients,
        m.fit(fresh, Y.astype(float))._coefficients,
        m.n_iter_,
    ]
    ask[GaussianProcessRegressor] = lambda m: [*m.predict(fresh, return_std=True), m.log_marginal_likelihood()]
    for a, b in zip(ask[type(model)](model), ask[type(model)](expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_precomputed_matrix_is_the_models_own():
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    K, kept = K.copy(), K
    several = np.arange(len(Y)) % 3
    models = [
        [make(kernel="precomputed").fit(matrix, labels) for matrix in (K, kept)]
        for make, labels in ((SVC, Y), (SVC, several), (SVR, Y))
    ]
    process = GaussianProcessRegressor(kernel="precomputed", solver="cg").fit(K, Y.astype(float))
    before = process.log_marginal_likelihood()
    spoil(K)
    for model, expected in models:
        np.testing.assert_array_equal(leave_one_out(model).decision_values, leave_one_out(expected).decision_values)
    assert process.log_marginal_likelihood() == before


@pytest.mark.parametrize("form", FORMS)
def test_no_call_changes_the_users_data(form):
    data, y, weight = FORMS[form](X), Y.copy(), WEIGHT.copy()
    before = data.copy()
    model = SVC(gamma=1.0).partial_fit(data, y, sample_weight=weight).partial_fit(data, y)
    model.forget([0, 70]).predict(data)
    leave_one_out(model)
    SVR().fit(data, y, weight).predict(data)
    GaussianProcessRegressor().fit(data, y).predict(data, return_std=True)
    assert (data != before).sum() == 0
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(weight, WEIGHT)


def test_a_sparse_matrix_with_repeated_entries_stays_as_it_is():
    """1 and 1 in the same place is 2: the rows are equal, and the matrix is the user's."""
    data = sp.csr_matrix((np.array([1.0, 1.0, 2.0, 3.0, 1.0]), np.array([0, 0, 0, 1, 0]), np.array([0, 2, 3, 4, 5])))
    parts = [part.copy() for part in (data.data, data.indices, data.indptr)]
    model = SVC(kernel="linear").fit(data, [0, 0, 1, 1])
    for part, was in zip((data.data, data.indices, data.indptr), parts, strict=True):
        np.testing.assert_array_equal(part, was)
    assert model._training.points.rows.size == 3
    dense = SVC(kernel="linear").fit(data.toarray(), [0, 0, 1, 1])
    np.testing.assert_allclose(model.dual_coef_.toarray(), dense.dual_coef_, atol=1e-12)


def test_only_one_copy_of_the_rows_is_kept():
    for model in (SVC().fit(X, Y), SVR().fit(X, Y)):
        assert model._training.rows.X.base is None
