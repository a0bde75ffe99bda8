"""Machines on a Dask cluster: the same answer as on one machine, however the data is parted."""

import importlib.util
import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from clusters import AGREE, PARTS, SPEC, check_same, client, da, parted, points  # noqa: F401
from sklearn.base import clone

import zerogap
import zerogap.dask as zd
from zerogap import DualProblem, Gram, Status
from zerogap.dask import bias, partition
from zerogap.dask.block import load
from zerogap.dask.cluster import Cluster
from zerogap.dask.rounds import Rounds
from zerogap.loss import Loss


def objective(model, X, sign, C, weight, square):
    """Return the primal objective of two classes by its definition."""
    K = model._kernel(model.support_vectors_, model.support_vectors_)
    (beta,) = model._pair_coefficients()
    slack = np.maximum(0.0, 1.0 - sign * model.decision_function(X))
    losses = 0.5 * slack**2 if square else slack
    return 0.5 * beta @ K @ beta + C * float(weight @ losses)


CASES = [
    ("hinge", "rbf", 7, "dense", "none"),
    ("squared_hinge", "linear", 2, "csr", "sample"),
    pytest.param("squared_hinge", "rbf", 7, "dense", "both", marks=pytest.mark.long),
    pytest.param("hinge", "linear", 7, "dense", "class", marks=pytest.mark.long),
]
CASES += [
    pytest.param(loss, kernel, parts, form, weights, marks=pytest.mark.long)
    for loss in ("hinge", "squared_hinge")
    for kernel in ("linear", "rbf")
    for parts in PARTS
    for form in ("dense", "csr")
    for weights in ("none", "both")
]


@pytest.mark.parametrize(("loss", "kernel", "parts", "form", "weights"), CASES)
def test_two_classes_have_the_objective_of_one_machine(loss, kernel, parts, form, weights):
    X, y, _ = points()
    weight = np.random.default_rng(0).integers(0, 4, y.size).astype(float)
    options = {"C": 2.0, "loss": loss, "kernel": kernel, "tol": 1e-10}
    if weights in ("class", "both"):
        options["class_weight"] = "balanced"
    given = weight if weights in ("sample", "both") else None
    points_ = sp.csr_matrix(X) if form == "csr" else X
    expected = zerogap.SVC(**options).fit(points_, y, given)
    model = zd.SVC(**options, working_set=80)
    sizes = PARTS[parts]
    dask_weight = None if given is None else parted(given, sizes)
    if form == "csr":  # an empty block of a sparse array is dense
        sizes = [size for size in sizes if size]
        dask_weight = None if given is None else parted(given, sizes)
    model.fit(parted(points_, sizes), parted(y, sizes), dask_weight)
    check_same(model, expected)
    local = model.to_local()
    sign, w = np.where(y == "oak", 1.0, -1.0), np.ones(y.size) if given is None else given
    w = w * expected.class_weight_[np.searchsorted(expected.classes_, y)]
    assert objective(local, points_, sign, 2.0, w, loss != "hinge") == pytest.approx(
        expected.certificate_.primal, rel=AGREE
    )
    assert local.intercept_ == pytest.approx(expected.intercept_, abs=1e-3)
    assert sp.issparse(local.support_vectors_) == (form == "csr")


@pytest.mark.long
@pytest.mark.parametrize("parts", PARTS)
def test_three_classes_have_the_objectives_of_one_machine(parts):
    X, y, _ = points(3)
    options = {"C": 1.0, "class_weight": {"oak": 2.0, "ash": 1.0, "elm": 0.5}, "tol": 1e-10}
    expected = zerogap.SVC(**options).fit(X, y)
    model = zd.SVC(**options, working_set=90).fit(parted(X, PARTS[parts]), parted(y, PARTS[parts]))
    check_same(model, expected)
    lazy = model.predict(parted(X, PARTS[parts]))
    assert isinstance(lazy, da.Array)
    assert (lazy.compute() == expected.predict(X)).mean() > 0.98
    shape = model.decision_function(parted(X, PARTS[parts]))
    assert shape.compute() == pytest.approx(expected.decision_function(X), abs=1e-3)
    assert np.isin(model.support_, expected.support_).mean() > 0.98


@pytest.mark.parametrize(
    "loss", ["epsilon_insensitive", pytest.param("squared_epsilon_insensitive", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("has_bias", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_regression_has_the_objective_of_one_machine(loss, has_bias):
    X, _, t = points()
    options = {"C": 3.0, "epsilon": 0.1, "loss": loss, "tol": 1e-10, "fit_intercept": has_bias}
    expected = zerogap.SVR(**options).fit(X, t)
    model = zd.SVR(**options, working_set=80).fit(parted(X, PARTS[2]), parted(t, PARTS[2]))
    check_same(model, expected)
    assert float(model.score(parted(X, (75, 75)), parted(t, (75, 75)))) == pytest.approx(expected.score(X, t), abs=1e-4)
    assert model.predict(X) == pytest.approx(expected.predict(X), abs=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["duplicates", "two-points", "one-against-many", "constant-feature", "huge", "tiny", "far"]
)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_awkward_data(kind, kernel):
    from conftest import points as awkward

    if kernel == "linear" and kind == "huge":  # of this float64 has too few digits, on one machine too
        pytest.skip("no digits left")
    X, y, _ = awkward("plain" if kind == "far" else kind)
    X = X + 1e6 if kind == "far" else X
    options = {"C": 2.0, "kernel": kernel, "tol": 1e-8}
    expected = zerogap.SVC(**options).fit(X, y)
    sizes = (1, y.size - 1)
    model = zd.SVC(**options, working_set=10).fit(parted(X, sizes), parted(y, sizes))
    assert model.duality_gap_ <= 1e-8
    assert model.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-7)


@pytest.mark.long
def test_more_free_points_than_a_working_set_holds():
    """Sets alternate: the dual objective grows with every round, and the optimum is reached all the same."""
    X, y, _ = points(n=400)
    options = {"C": 100.0, "gamma": 0.5, "tol": 1e-6}
    model = zd.SVC(**options, working_set=20, cache_size=0.02).fit(parted(X, (100, 300)), parted(y, (100, 300)))
    expected = zerogap.SVC(**options).fit(X, y)
    assert np.count_nonzero(np.abs(model.dual_coef_) < 100.0 * (1 - 1e-12)) > 35  # 0.02 MB are sets of 35
    assert model.duality_gap_ <= 1e-6
    assert (np.diff(model.trace_["dual"]) >= -1e-12 * expected.certificate_.dual).all()
    assert model.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-5)


def test_without_a_bias_all_violators_of_one_side_are_chosen():
    """With a tiny C all coefficients go to their bounds, and what other points can do is no bound on a bias of zero."""
    rng = np.random.default_rng(2100)
    X = rng.standard_normal((200, 2))
    y = (X[:, 0] + 0.5 * rng.standard_normal(200) > 0).astype(int)
    options = {"C": 1e-6, "fit_intercept": False, "tol": 1e-8}
    model = zd.SVC(**options, working_set=40).fit(X, y)
    expected = zerogap.SVC(**options).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.dual == pytest.approx(expected.certificate_.dual, rel=1e-7)


# The model is an ordinary one.


def test_the_model_is_an_ordinary_one_and_progress_tells_of_rounds(tmp_path, capsys, monkeypatch):
    X, y, _ = points()
    monkeypatch.setattr("zerogap.progress.bar_delay", lambda: 0.0)
    model = zd.SVC(working_set=90, verbose=True).fit(X, y)  # plain arrays: a part for each worker
    said = capsys.readouterr().err
    assert "ash against oak" in said
    assert " rounds, " in said
    assert "MB moved" in said
    local = model.to_local()
    assert type(local) is zerogap.SVC
    assert (local.predict(X) == model.predict(X)).all()
    model.save(tmp_path / "model")
    again = zerogap.load(tmp_path / "model")
    assert type(again) is zerogap.SVC
    assert again.decision_function(X) == pytest.approx(model.decision_function(X), rel=1e-12)
    assert zerogap.certify(local, X, y).relative_gap <= 2e-4
    copied = pickle.loads(pickle.dumps(model))
    assert copied.client is None
    assert (copied.predict(X) == model.predict(X)).all()
    assert clone(zd.SVC(C=3.0, client=model.client)).C == 3.0
    score = model.score(parted(X, (70, 80)), parted(y, (70, 80)))
    assert isinstance(score, da.Array)
    assert float(score) == model.score(X, y)
    assert len(model.rounds_) == model.n_iter_[0]
    assert model.bytes_moved_ > X.nbytes / 2


def test_another_fit_leaves_nothing_of_the_one_before():
    model = zd.SVC()
    model._take(zerogap.SVC().fit(pd_frame(), [0, 1]), [], Cluster(None, []))
    assert list(model.feature_names_in_) == ["a"]
    model._take(zerogap.SVC().fit([[0.0], [1.0]], [0, 1]), [], Cluster(None, []))
    assert not hasattr(model, "feature_names_in_")


def pd_frame():
    """Return a dataframe of two rows."""
    return pytest.importorskip("pandas").DataFrame({"a": [0.0, 1.0]})


# The parts of the certificate, and the bias, without a cluster.


def states(y, X, spec, beta, edges):
    """Return the states of partitions that have been told coefficients."""
    found, support = [], np.flatnonzero(beta)
    owner = np.searchsorted(edges, support, side="right") - 1
    told = partition.Coefficients(X[support], beta[support], owner, support - np.array(edges)[owner], beta[support])
    for k, (a, b) in enumerate(pairwise(edges)):
        block = load(X[a:b], y[a:b], None, k, spec.classes is not None)
        partition.Renewal(spec, 1, told).make(block)
        found.append(block.states[spec.key])
    return found


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"])
def test_the_bias_is_that_of_one_machine(loss):
    rng = np.random.default_rng(5)
    for draw in range(16):
        n = int(rng.integers(2, 60))
        sign = np.where(np.arange(n) == 0, 1.0, np.where(np.arange(n) == 1, -1.0, rng.choice([-1.0, 1.0], n)))
        r = rng.standard_normal(n) if draw % 2 else rng.integers(-2, 3, n) / 2.0  # ties, and level parts
        terms = zerogap.formulations
        is_class = loss.endswith("hinge")
        build = terms.class_terms if is_class else terms.regression_terms
        part = build(loss, sign if is_class else r, 1.5, np.ones(n))
        eps = 0.0 if is_class else 0.25
        whole = Loss(part.lower, part.upper, part.ridge, eps)
        cuts = np.array_split(np.arange(n), 3)

        def state(rows, part=part, r=r, eps=eps):
            made = partition.State.__new__(partition.State)
            made.r, made.terms = r[rows], partition.Part(rows, *(values[rows] for values in part))
            made.loss = Loss(made.terms.lower, made.terms.upper, made.terms.ridge, eps)
            made.spec = replace(SPEC, eps=eps)
            return made

        parts = [state(rows) for rows in cuts]

        def slopes(biases, parts=parts):
            found = [partition._slopes(one, biases) for one in parts]
            return sum(one.sums for one in found), sum(one.knots for one in found)

        def knots(intervals, parts=parts):
            found = [partition.Knots(SPEC, 0, intervals).answer(one) for one in parts]
            return tuple(map(np.concatenate, zip(*found, strict=True)))

        grid = bias.first_biases(r.min() - eps, r.max() + eps, rng.standard_normal())
        found = bias.best_bias(grid, slopes, knots, 0.0, has_ridge=loss.startswith("squared"))
        assert found == pytest.approx(whole.best_bias(r, 0.0), abs=1e-12)
        near = bias.best_bias(grid, slopes, knots, 0.0, has_ridge=loss.startswith("squared"), rough=0.05)
        assert near == pytest.approx(found, abs=0.05)


def test_sums_of_partitions_are_the_certificate_of_the_whole():
    """At any point and bias: the terms are the same, and nothing cancels between partitions."""
    X, y, _ = points()
    codes = (y == "oak").astype(int)
    sign = 2.0 * codes - 1.0
    problem = DualProblem.hinge(Gram(X, zerogap.kernels.RBF(0.5)), sign, 1.5)
    beta = problem.feasible(sign * np.random.default_rng(0).uniform(0, 1.5, y.size))
    parts = states(codes, X, SPEC, beta, (0, 30, 31, 100, 150))
    certificate = problem.certify(beta)
    answers = [
        partition.Measure(SPEC, 1, certificate.bias, *(np.empty(0, dtype=int),) * 2, np.empty(0, dtype=bool)).answer(
            one
        )
        for one in parts
    ]
    rounds = Rounds.__new__(Rounds)
    rounds.total, rounds.bias, rounds.table = 0.0, certificate.bias, type("Table", (), {"beta": beta})
    joined = rounds._certificate(answers)
    assert joined.gap == pytest.approx(certificate.gap, rel=1e-12)
    assert joined.dual == pytest.approx(certificate.dual, rel=1e-12)
    assert joined.kkt_violation == pytest.approx(certificate.kkt_violation, rel=1e-12)
    assert certificate.rounding / 3 <= joined.rounding <= 3 * certificate.rounding
    exact = np.concatenate([one.r for one in parts]) - (sign - Gram(X, zerogap.kernels.RBF(0.5)).full() @ beta)
    assert (np.abs(exact) <= 2 * np.concatenate([one.error for one in parts])).all()


def test_without_dask_it_is_said_what_to_install(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else found(name))
    source = Path(zd.__file__)
    spec = importlib.util.spec_from_file_location("zerogap.dask_again", source)
    with pytest.raises(ImportError, match=r'pip install "zerogap\[dask\]"'):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
