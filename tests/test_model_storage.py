"""Models written and read: in our own form, by skops and by pickle, in every state they can be in."""

import json
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import zerogap
from zerogap import SVC, SVR, GaussianProcessRegressor, Status, SVCPath, leave_one_out, storage
from zerogap.kernels import RBF, Constant, Function, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from zerogap.solvers import SMO

X, y = load_iris(return_X_y=True)
X2, y2 = X[50:], y[50:]
WORDS = np.array(["setosa", "versicolor", "virginica"], dtype=object)


def short(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


STATES = {
    "unfitted": lambda: SVC(C=3.0, class_weight={1: 0.3, 2: 2.0}),
    "two classes": lambda: SVC(class_weight={1: 0.3, 2: 2.0}).fit(X2, y2),
    "several classes": lambda: SVC(decision_function_shape="ovo").fit(X, y),
    "labels that are words": lambda: SVC().fit(X, WORDS[y]),
    "labels that are text": lambda: SVC().fit(X, WORDS[y].astype(str)),
    "sparse": lambda: SVC().fit(sp.csr_matrix(X2), y2),
    "sparse array": lambda: SVC().fit(sp.csr_array(X2), y2),
    "precomputed": lambda: SVC(kernel="precomputed").fit(X2 @ X2.T, y2),
    "precomputed object": lambda: SVC(kernel=Precomputed()).fit(X2 @ X2.T, y2),
    "unfitted with a kernel": lambda: SVC(kernel=RBF("scale") + 2.0 * Linear()),
    "kernel object": lambda: SVC(kernel=RBF("scale")).fit(X2, y2),
    "linear far from zero": lambda: SVC(kernel=Linear()).fit(sp.csr_matrix(X2 + 1e4), y2),
    "sum of kernels": lambda: SVR(kernel=RBF("auto") + 2.0 * Linear() + 1.0).fit(X, X[:, 0]),
    "product of kernels": lambda: GaussianProcessRegressor(RBF(0.3) * Polynomial(2, 0.1, 1.0), tol=1e-8).fit(X, y),
    "path with a kernel": lambda: SVCPath(kernel=0.5 * RBF("scale"), C_max=10.0).fit(X2, y2),
    "sigmoid and a constant": lambda: SVC(kernel=Sigmoid(1e-6, 0.5) + Constant(1.0)).fit(X2, y2),
    "grown": lambda: SVC().partial_fit(X2[::2], y2[::2], sample_weight=np.full(50, 0.1)).forget([0, 3]),
    "grown sparse": lambda: SVC().partial_fit(sp.csr_matrix(X2), y2),
    "grown, several classes": lambda: SVC().partial_fit(X, y),
    "not converged": lambda: short(SVC(C=100.0, max_iter=3), X2, y2),
    "unbounded": lambda: short(SVC(C=np.inf, kernel="linear"), X2[:, :1], y2),
    "configured solver": lambda: SVC(solver=SMO(second_order=False)).fit(X2, y2),
    "random state": lambda: SVC(solver="smo-platt", random_state=np.random.RandomState(3)).fit(X2, y2),
    "warm start": lambda: SVC(warm_start=True).fit(X2, y2),
    "regression": lambda: SVR().fit(X, X[:, 0]),
    "unfitted regression": lambda: SVR(epsilon=0.2),
    "warm regression": lambda: SVR(warm_start=True).fit(sp.csr_matrix(X), X[:, 0]),
    "process": lambda: GaussianProcessRegressor(normalize_y=True).fit(X, X[:, 0]),
    "process by cg": lambda: GaussianProcessRegressor(solver="cg").fit(X, X[:, 0]),
    "process without preconditioner": lambda: GaussianProcessRegressor(solver="cg", preconditioner=None).fit(X, y),
    "precomputed process": lambda: GaussianProcessRegressor(kernel="precomputed", solver="cg").fit(X @ X.T, y),
    "unfitted process": lambda: GaussianProcessRegressor(noise=0.3),
    "path": lambda: SVCPath(C_max=10.0).fit(X2, y2),
    "path of several classes": lambda: SVCPath(C_max=10.0, class_weight="balanced").fit(X, WORDS[y]),
    "path of a kernel matrix": lambda: SVCPath(kernel="precomputed", C_max=10.0).fit(X @ X.T + 1.0, y),
    "unfitted path": lambda: SVCPath(C_max=10.0),
}


def by_file(model, folder):
    model.save(folder / "model")
    assert [file.name for file in folder.iterdir()] == ["model.npz"]
    return zerogap.load(folder / "model")


def by_skops(model, folder):
    skops.io.dump(model, folder / "model.skops")
    unknown = skops.io.get_untrusted_types(file=folder / "model.skops")
    return skops.io.load(folder / "model.skops", trusted=unknown)


def by_pickle(model, folder):
    return pickle.loads(pickle.dumps(model))


def outputs(model):
    """Everything a model says, as a list of arrays."""
    data = (X @ X.T if model.shape_fit_[0] == 150 else X2 @ X2.T) if model._is_precomputed else X
    data = data[:, : model.n_features_in_]
    found = [
        model.predict(data),
        model._coefficients,
        model.intercept_ if hasattr(model, "intercept_") else model.noise,
    ]
    found += [model.support_, model.n_iter_, model.duality_gap_]
    found += [trace["gap"] for trace in (model.trace_ if isinstance(model.trace_, list) else [model.trace_])]
    if isinstance(model, SVC):
        found.append(model.decision_function(data))
    if isinstance(model, GaussianProcessRegressor) and model.kernel != "precomputed":
        found += model.predict(data, return_std=True)
    if isinstance(model, GaussianProcessRegressor):
        found += [model.log_marginal_likelihood("lanczos"), model.log_marginal_likelihood()]
    return found


@pytest.mark.parametrize(
    "way", [by_file, *(pytest.param(way, marks=pytest.mark.long) for way in (by_skops, by_pickle))]
)
@pytest.mark.parametrize("state", STATES)
def test_what_is_read_is_what_was_written(state, way, tmp_path):
    model = STATES[state]()
    twin = way(model, tmp_path)
    assert type(twin) is type(model)
    theirs, ours = twin.get_params(), model.get_params()
    assert type(theirs.pop("random_state", None)) is type(ours.pop("random_state", None))
    assert theirs == ours
    if state.startswith("unfitted"):
        with pytest.raises(NotFittedError):
            twin.predict(X)
        return
    if isinstance(model, SVCPath):
        points = X @ X.T + 1.0 if model.kernel == "precomputed" else X
        np.testing.assert_array_equal(twin.decision_function(points, C=2.0), model.decision_function(points, C=2.0))
        np.testing.assert_array_equal(twin.at(3.0).predict(points), model.at(3.0).predict(points))
        assert twin.at(3.0).duality_gap_ == pytest.approx(model.at(3.0).duality_gap_, abs=1e-12)
        return
    for a, b in zip(outputs(model), outputs(twin), strict=True):
        np.testing.assert_array_equal(a, b)
    assert twin.status_ == model.status_
    assert twin.certificate_ == model.certificate_


def test_the_state_of_a_random_generator_goes_along(tmp_path):
    model = STATES["random state"]()
    assert by_file(model, tmp_path).random_state.randint(1000) == model.random_state.randint(1000)


@pytest.mark.parametrize(
    "way", [by_file, *(pytest.param(way, marks=pytest.mark.long) for way in (by_skops, by_pickle))]
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_a_grown_model_goes_on_growing(way, form, tmp_path):
    model = SVC(gamma=0.5).partial_fit(form(X2[20:70]), y2[20:70])
    twin = way(model, tmp_path)
    for one in (model, twin):
        one.partial_fit(form(X2[70:]), y2[70:]).forget(np.arange(5))
    np.testing.assert_allclose(twin.decision_function(X2), model.decision_function(X2), atol=1e-9)
    np.testing.assert_allclose(leave_one_out(twin).decision_values, leave_one_out(model).decision_values, atol=1e-9)


@pytest.mark.parametrize("way", [by_file, by_pickle])
def test_a_fit_is_stored_without_its_rows(way, tmp_path):
    twin = way(SVC().fit(X2, y2), tmp_path)
    with pytest.raises(ValueError, match="no longer holds its training rows"):
        twin.partial_fit(X2, y2)


def test_functions_cannot_be_stored_and_leave_no_file(tmp_path):
    def product(a, b):
        return a @ b.T

    wrapped = RBF(0.5) + Function(product)
    for model in (SVC(kernel=product).fit(X2, y2), SVC(kernel=product), SVC(kernel=wrapped)):
        with pytest.raises(TypeError, match=r"The function 'product' cannot be stored.*pickle"):
            model.save(tmp_path / "model")
    with pytest.raises(TypeError, match=r"A Own cannot be stored.*one of zerogap.kernels"):
        SVC(kernel=2.0 * type("Own", (Kernel,), {"values": None})()).save(tmp_path / "model")
    with pytest.raises(TypeError, match="A Mine cannot be stored"):
        SVC(solver=type("Mine", (), {"init": None, "step": None})()).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_wrong_files_get_a_clear_line(tmp_path):
    SVR().save(tmp_path / "svr.npz")
    with pytest.raises(ValueError, match=r"svr\.npz holds SVR; SVC was asked for"):
        SVC.load(tmp_path / "svr.npz")
    assert isinstance(SVR.load(tmp_path / "svr"), SVR)
    with pytest.raises(FileNotFoundError):
        zerogap.load(tmp_path / "nothing")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ValueError, match="not a file that zerogap wrote"):
        zerogap.load(tmp_path / "text")
    storage.write_arrays(tmp_path / "path", {"lam": np.ones(3)}, "path")
    with pytest.raises(ValueError, match="holds a path; a model was asked for"):
        zerogap.load(tmp_path / "path")


@pytest.mark.parametrize(
    "tree",
    [
        "no json",
        json.dumps({"state": ["Popen", {"dict": []}]}),  # only what models are made of is made
        json.dumps({"state": ["os", {"dict": []}]}),
        json.dumps({"record": ["TraceRow", [1, 2]]}),
        json.dumps({"array": "missing"}),
        json.dumps({"strange": []}),
        json.dumps({"status": "BEST"}),
    ],
)
def test_a_damaged_or_foreign_tree_is_refused(tmp_path, tree):
    storage.write_arrays(tmp_path / "model", {"tree": tree}, "model")
    with pytest.raises(ValueError, match="does not hold a whole model"):
        zerogap.load(tmp_path / "model")


def test_a_stored_status_is_its_name():
    assert Status("MAX_TIME") is Status.MAX_TIME  # whatever the words of advice are then
    assert Status(Status.MAX_TIME.value) is Status.MAX_TIME
    assert b"time limit" not in pickle.dumps(Status.MAX_TIME)
    with pytest.raises(ValueError, match="NEVER"):
        Status("NEVER")


def test_a_model_of_an_older_version_has_new_parameters_at_their_defaults():
    X, y = make_moons(40, random_state=0)
    state = SVC(C=3.0).fit(X, y).__getstate__()
    del state["break_ties"], state["shrinking"], state["probability"]
    model = SVC.__new__(SVC)
    model.__setstate__(state)
    assert (model.C, model.break_ties, model.shrinking) == (3.0, False, True)
    np.testing.assert_array_equal(model.predict(X), SVC(C=3.0).fit(X, y).predict(X))


def test_results_are_found_where_older_versions_kept_them():
    """Pickles name the module of a class: these were all in ``zerogap.loop`` once."""
    from zerogap import loop, solution

    for name in ("Solution", "Status", "Trace", "TraceRow"):
        assert getattr(loop, name) is getattr(solution, name)
