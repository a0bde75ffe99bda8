"""Machines on a Dask cluster: the same answer as on one machine, however the data is parted and whatever dies on the way."""

import asyncio
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

import zerogap
from zerogap import DualProblem, Gram, Status
from zerogap.loss import Loss

da = pytest.importorskip("dask.array", reason='machines on a cluster need dask: pip install "zerogap[dask]"')
distributed = pytest.importorskip("distributed", reason='machines on a cluster need it: pip install "zerogap[dask]"')

import zerogap.dask as zd  # noqa: E402
from zerogap.dask import bias, cluster, partition  # noqa: E402
from zerogap.dask.block import Block, fingerprint, load  # noqa: E402
from zerogap.dask.rounds import Rounds  # noqa: E402

AGREE = 1e-9  # of the objective: both are within 1e-10 of the optimum, by their certificates
PARTS = {1: (150,), 2: (40, 110), 7: (30, 1, 44, 25, 0, 20, 30)}  # the first 30 are of one class


@pytest.fixture(scope="module", autouse=True)
def client():
    """A cluster in this process."""
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as found:
        yield found


def points(classes=2, n=150):
    """Points that no kernel separates, the first thirty of one class; labels are texts, in no order."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 3))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.standard_normal(n)
    codes = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    order = np.concatenate(
        [np.flatnonzero(codes == 0)[:30], np.setdiff1d(np.arange(n), np.flatnonzero(codes == 0)[:30])]
    )
    names = np.array(["oak", "ash", "elm"])[:classes]
    return X[order], names[codes[order]], np.sin(2 * X[order, 0]) + 0.2 * rng.standard_normal(n)


def parted(values, sizes):
    """Return rows as a Dask array of so many each; CSR stays CSR."""
    if sp.issparse(values):
        edges = np.cumsum([0, *sizes])
        parts = [
            da.from_array(values[a:b], chunks=values[a:b].shape, asarray=False) for a, b in pairwise(edges) if b > a
        ]
        return da.concatenate(parts)
    return da.from_array(values, chunks=(tuple(sizes), *((n,) for n in values.shape[1:])))


def objective(model, X, sign, C, weight, square):
    """Return the primal objective of two classes by its definition."""
    K = model._kernel(model.support_vectors_, model.support_vectors_)
    (beta,) = model._pair_coefficients()
    slack = np.maximum(0.0, 1.0 - sign * model.decision_function(X))
    losses = 0.5 * slack**2 if square else slack
    return 0.5 * beta @ K @ beta + C * float(weight @ losses)


def check_same(found, expected):
    """The same certificate to ten digits, for every pair of classes; and so the same decisions but for a few digits."""
    pairs = zip(*(np.atleast_1d(np.array(m.certificate_, dtype=object)) for m in (found, expected)), strict=True)
    for one, other in pairs:
        assert one.relative_gap <= 1e-10
        assert one.dual == pytest.approx(other.dual, rel=AGREE)
        assert one.primal == pytest.approx(other.primal, rel=AGREE)


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


SPEC = partition.Spec("k", zerogap.kernels.RBF(0.5), 1.5, "hinge", 0.0, np.array([0, 1]), np.ones(2))


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


# What dies on the way.


def test_a_lost_state_costs_one_product_and_not_the_run(monkeypatch):
    """A block comes without its states after a fault: they are made again from the coefficients."""
    X, y, _ = points()
    expected = zerogap.SVC(tol=1e-10).fit(X, y)
    made, lost = partition.Renewal.make, []
    asked = partition.ask

    def forgetful(block, question, renewal=None):
        if isinstance(question, partition.Advance) and block.number == 1 and question.version == 3 and not lost:
            lost.append(1)
            block.states = pickle.loads(pickle.dumps(block)).states
        return asked(block, question, renewal)

    renewed = []
    monkeypatch.setattr(partition, "ask", forgetful)
    monkeypatch.setattr(
        partition.Renewal, "make", lambda self, block: (renewed.append(block.number), made(self, block))
    )
    model = zd.SVC(tol=1e-10, working_set=40).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    assert lost
    assert sorted(renewed) == [0, 1, 1]  # at the beginning each, and the one that was lost
    check_same(model, expected)


def environment():
    """Return that of a program with a cluster of processes."""
    return os.environ | {"PYTHONPATH": str(Path(zerogap.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


DRAWN = """
import os, signal, sys, threading, time
import numpy as np
import dask.array as da
from dask.distributed import Client, LocalCluster
import zerogap, zerogap.dask
from zerogap.dask.rounds import Rounds

rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 4))
y = (X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.3 * rng.standard_normal(3000) > 0.2).astype(int)
parts = da.from_array(X, chunks=(500, 4)), da.from_array(y, chunks=500)
"""

KILLED_WORKER = (
    DRAWN
    + """
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        followed = Rounds._next
        def kill(self, *arguments):
            if len(self.rounds) == 2:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)  # in the middle of the next
            return followed(self, *arguments)
        Rounds._next = kill
        model = zerogap.dask.SVC(tol=1e-8, working_set=300).fit(*parts)
    expected = zerogap.SVC(tol=1e-9).fit(X, y)
    print(model.status_.name, len(model.rounds_), abs(model.certificate_.dual / expected.certificate_.dual - 1) < 1e-7)
"""
)


@pytest.mark.long
def test_a_worker_killed_in_the_middle_of_a_fit_does_not_end_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(KILLED_WORKER)
    done = subprocess.run([sys.executable, program], env=environment(), capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[::2] == ["CONVERGED", "True"], done.stderr
    assert int(done.stdout.split()[1]) > 3


ALL_KILLED = (
    DRAWN
    + """
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        replied, pids = zerogap.dask.cluster.Cluster._reply, list(client.run(os.getpid).values())
        def kill(self, future):
            while Rounds.reached and future.status == "finished" and pids:  # answers are there, and nobody has fetched them
                os.kill(pids.pop(), signal.SIGKILL)
            return replied(self, future)
        followed = Rounds._next
        def reach(self, *arguments):
            Rounds.reached = len(self.rounds) >= 2
            return followed(self, *arguments)
        Rounds.reached = False
        zerogap.dask.cluster.Cluster._reply, Rounds._next = kill, reach
        model = zerogap.dask.SVC(tol=1e-8, working_set=300, max_time=200).fit(*parts)
    expected = zerogap.SVC(tol=1e-9).fit(X, y)
    print(model.status_.name, not pids, abs(model.certificate_.dual / expected.certificate_.dual - 1) < 1e-7)
"""
)


@pytest.mark.long
def test_all_workers_killed_with_their_answers_do_not_hold_a_fit(tmp_path):
    """New ones take over; the tasks that had answered were for those that are gone alone."""
    program = tmp_path / "program.py"
    program.write_text(ALL_KILLED)
    done = subprocess.run([sys.executable, program], env=environment(), capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["CONVERGED", "True", "True"], done.stderr


def test_limits_hold_while_an_answer_does_not_come(monkeypatch):
    """Its worker has died, as it may be, and Dask waits for it."""
    X, y, _ = points()
    rounds, gathered = Rounds._next, distributed.Client._gather

    def hold(self, *arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return asyncio.sleep(3600)

    def lose(self, *arguments):
        if len(self.rounds) == 2:
            monkeypatch.setattr(distributed.Client, "_gather", hold)
        return rounds(self, *arguments)

    monkeypatch.setattr(Rounds, "_next", lose)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = zd.SVC(tol=1e-10, working_set=30).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    assert distributed.Client._gather is not gathered
    assert len(model.rounds_) == 2
    assert 1e-10 < model.duality_gap_ < 1.0


RESUMED = (
    DRAWN
    + """
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        followed = Rounds._next
        def slow(self, *arguments):
            print(len(self.rounds), flush=True)
            if sys.argv[2] == "slow" and len(self.rounds) == 4:
                time.sleep(600)  # until it is killed
            return followed(self, *arguments)
        Rounds._next = slow
        model = zerogap.dask.SVC(tol=1e-8, working_set=300, checkpoint=sys.argv[1]).fit(*parts)
    print(model.status_.name, model.certificate_.dual, flush=True)
"""
)


@pytest.mark.long
def test_a_killed_client_goes_on_from_its_checkpoint(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RESUMED)
    command = [sys.executable, str(program), str(tmp_path / "fit")]
    with subprocess.Popen([*command, "slow"], env=environment(), stdout=subprocess.PIPE, text=True) as first:
        while first.stdout.readline().strip() != "4":
            assert first.poll() is None
        first.kill()
    assert (tmp_path / "fit.npz").exists()
    done = subprocess.run([*command, "quick"], env=environment(), capture_output=True, text=True, timeout=300)
    *rounds, last = done.stdout.strip().splitlines()
    status, dual = last.split()
    assert status == "CONVERGED", done.stderr
    whole = zd.SVC(tol=1e-8, working_set=300)
    scope = {}
    exec(DRAWN, scope)
    whole.fit(*scope["parts"])
    assert float(dual) == pytest.approx(whole.certificate_.dual, rel=1e-7)
    assert len(rounds) < len(whole.rounds_)
    assert not (tmp_path / "fit.npz").exists()


@pytest.mark.long
@pytest.mark.parametrize("comes_back", [True, False])
def test_all_workers_are_lost(comes_back, monkeypatch):
    """Another one takes over; where none comes that is said."""
    X, y, _ = points()
    monkeypatch.setattr(cluster, "WAIT_FOR_OTHERS", 10.0 if comes_back else 0.5)
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=1, **options) as alone,
        distributed.Client(alone, set_as_default=False) as other,
    ):
        rounds = Rounds._next

        def lose(self, *arguments):
            if len(self.rounds) == 2:
                alone.scale(0)
                while other.nthreads():
                    time.sleep(0.01)
                alone.scale(int(comes_back))
            return rounds(self, *arguments)

        monkeypatch.setattr(Rounds, "_next", lose)
        model = zd.SVC(tol=1e-10, working_set=40, client=other)
        if comes_back:
            check_same(model.fit(parted(X, PARTS[2]), parted(y, PARTS[2])), zerogap.SVC(tol=1e-10).fit(X, y))
        else:
            with pytest.raises(RuntimeError, match="All workers of the Dask cluster were lost"):
                model.fit(parted(X, PARTS[2]), parted(y, PARTS[2]))


def test_a_fit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, y, _ = points()
    file, rounds = tmp_path / "fit", Rounds._next

    def end(self, *arguments):
        if len(self.rounds) == 2:
            raise ZeroDivisionError
        return rounds(self, *arguments)

    model = zd.SVC(tol=1e-10, working_set=50, checkpoint=file)
    with monkeypatch.context() as patch:
        patch.setattr(Rounds, "_next", end)
        with pytest.raises(ZeroDivisionError):
            model.fit(parted(X, (75, 75)), parted(y, (75, 75)))
    assert not hasattr(model, "support_")
    with pytest.raises(ValueError, match=r"is of another fit: C was 1.0 there, and is 2.0 now"):
        clone(model).set_params(C=2.0).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    other = X.copy()
    other[70, 1] += 1e-9
    with pytest.raises(ValueError, match="is of another fit: data was"):
        clone(model).set_params().fit(parted(other, PARTS[2]), parted(y, PARTS[2]))
    model.fit(parted(X, PARTS[2]), parted(y, PARTS[2]))  # in other partitions
    assert model.trace_[0].support > 20
    check_same(model, zerogap.SVC(tol=1e-10).fit(X, y))
    assert not list(tmp_path.iterdir())


def test_warm_start_goes_on_and_limits_keep_the_best_point():
    X, y, _ = points()
    model = zd.SVC(tol=1e-8, working_set=50, max_iter=2, warm_start=True)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 steps .* fit again with warm_start=True"):
        model.fit(X, y)
    assert model.status_ is Status.MAX_STEPS
    before = model.duality_gap_
    assert zerogap.certify(model.to_local(), X, y).relative_gap == pytest.approx(before, rel=1e-6)
    model.set_params(max_iter=-1).fit(X, y)
    assert model.duality_gap_ <= 1e-8 < before
    assert model.trace_[0].gap <= before * (1 + 1e-6)
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09"):
        model.set_params(max_time=1e-9, warm_start=False).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.predict(X).shape == y.shape


@pytest.mark.long
def test_a_warm_start_leaves_rows_of_another_class():
    X, y, _ = points(3)
    other = np.random.default_rng(0).permutation(y)
    model = zd.SVC(tol=1e-8, working_set=60, warm_start=True, C=0.5).fit(X, y).set_params(C=1.0).fit(X, other)
    expected = zerogap.SVC(tol=1e-8).fit(X, other)
    assert [one.dual for one in model.certificate_] == pytest.approx(
        [one.dual for one in expected.certificate_], rel=1e-7
    )


def test_ctrl_c_returns_the_best_point(monkeypatch):
    X, y, _ = points()
    rounds = Rounds._next

    def press(self, *arguments):
        if len(self.rounds) == 2:
            signal.raise_signal(signal.SIGINT)
        return rounds(self, *arguments)

    monkeypatch.setattr(Rounds, "_next", press)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = zd.SVC(tol=1e-10, working_set=30).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    assert model.status_ is Status.INTERRUPTED
    assert 1e-10 < model.duality_gap_ < 1.0
    assert zerogap.certify(model.to_local(), X, y).relative_gap == pytest.approx(model.duality_gap_, rel=1e-6)


# Dataframes.


@pytest.mark.long
def test_workers_read_parquet(tmp_path):
    """Partitions of a dataframe, of which sizes are not known, are read by processes."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, _ = points()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=y, weight=1.0 + np.arange(y.size) % 3)
    for k, rows in enumerate(np.split(np.arange(150), (30, 90))):
        frame.iloc[rows].to_parquet(tmp_path / f"part{k}.parquet")
    options = {"tol": 1e-10}
    cluster_ = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster_, distributed.Client(cluster_) as other:
        table = dd.read_parquet(str(tmp_path / "*.parquet"))
        assert table.npartitions == 3
        features = table[["a", "b", "c"]]
        model = zd.SVC(**options, working_set=40, client=other).fit(features, table["kind"], table["weight"])
        lazy = model.predict(features)
        found, score = lazy.compute(), float(model.score(features, table["kind"]))
    expected = zerogap.SVC(**options).fit(frame[["a", "b", "c"]], y, frame["weight"])
    check_same(model, expected)
    assert list(model.to_local().feature_names_in_) == ["a", "b", "c"]
    assert (found == model.predict(frame[["a", "b", "c"]])).all()
    assert score == pytest.approx((found == y).mean())


def test_sizes_of_partitions_need_not_be_known():
    X, y, _ = points()
    rows = parted(np.column_stack([X, y == "oak"]).astype(float), (50, 60, 40))
    kept = rows[rows[:, 0] > -10.0]  # all of them, but Dask does not know
    assert np.isnan(kept.shape[0])
    model = zd.SVC(tol=1e-2).fit(kept[:, :3], kept[:, 3])
    assert model.shape_fit_ == (150, 3)
    with pytest.raises(ValueError, match=r"X has 3 partitions and y has 1, .*compute_chunk_sizes"):
        zd.SVC().fit(kept[:, :3], parted((y == "oak").astype(float), (150,)))


# What is refused.


def bad(**changes):
    """Return X and y in two partitions, with something wrong."""
    X, y, _ = points()
    X, y = X.copy(), y.copy()
    if "nan" in changes:
        X[changes["nan"], 1] = np.nan
    if "one" in changes:
        y[:] = "oak"
    return parted(X, PARTS[2]), parted(y, PARTS[2])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (lambda: bad(nan=60), ValueError, "Partition 1: .*NaN"),
        (lambda: bad(one=True), ValueError, "needs at least two classes"),
        (lambda: (bad()[0], points()[1]), TypeError, "must all be Dask collections, or all be plain arrays"),
        (lambda: (points()[0], points()[1][:-1]), ValueError, r"X has 150 rows, and y shape \(149,\)"),
        (lambda: (bad()[0], bad()[1][:-1]), ValueError, "X has 150 rows"),
        (lambda: (bad()[0][:0], bad()[1][:0]), ValueError, "All partitions are empty"),
        (lambda: (*bad(), parted(np.zeros(150), PARTS[2])), ValueError, "sample_weight is zero for every point"),
        (
            lambda: (*bad(), parted(np.where(np.arange(150) == 7, -1.0, 1.0), PARTS[2])),
            ValueError,
            "Partition 0: sample_weight must be finite",
        ),
    ],
    ids=["nan", "one-class", "mixed", "lengths", "rows", "empty", "no-weight", "negative-weight"],
)
def test_bad_data_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        zd.SVC().fit(*given())


@pytest.mark.parametrize("none", [None, np.nan, "NA"])
def test_labels_that_are_missing_are_refused(none):
    X, y, _ = points()
    labels = y.astype(object)
    labels[50] = pytest.importorskip("pandas").NA if none == "NA" else none
    with pytest.raises(ValueError, match=r"Partition 1: y has no label at row 10; got (None|nan|<NA>)"):
        zd.SVC().fit(parted(X, PARTS[2]), parted(labels, PARTS[2]))


def test_a_checkpoint_needs_its_folder_before_data_is_read(tmp_path):
    X, y, _ = points()
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing. Make it"):
        zd.SVC(checkpoint=tmp_path / "missing" / "fit", client="none is asked for").fit(X, y)


def test_a_fingerprint_depends_on_the_whole_of_a_label():
    X, codes = np.ones((4, 2)), np.array([0, 0, 1, 1])
    names = np.array(["class_0", "class_1"])
    one, other = (fingerprint(load(X, names[of_all], None, 0, True), 0) for of_all in (codes, 1 - codes))
    assert one != other
    assert one == fingerprint(load(X, names[codes].astype(object), None, 0, True), 0)


def test_scores_are_those_of_scikit_learn_for_equal_targets_and_refuse_mixtures():
    X, _, t = points()
    model, rows = zd.SVR(tol=1e-2).fit(X, t), parted(X, PARTS[2])
    for target in (np.zeros(150), np.full(150, 2.0), t):
        assert float(model.score(rows, parted(target, PARTS[2]))) == pytest.approx(r2_score(target, model.predict(X)))
    flat = zd.SVR().fit(X, np.zeros(150))
    assert float(flat.score(rows, parted(np.zeros(150), PARTS[2]))) == r2_score(np.zeros(150), flat.predict(X)) == 1.0
    with pytest.raises(
        TypeError, match="must all be Dask collections, or all be plain arrays; got X of dask, y of numpy"
    ):
        model.score(rows, t)


def test_features_that_differ_are_refused():
    import dask

    X, y, _ = points()
    parts = [dask.delayed(X[:40]), dask.delayed(X[40:, :2])]
    rows = da.concatenate([da.from_delayed(part, (n, 3), float) for part, n in zip(parts, (40, 110), strict=True)])
    with pytest.raises(ValueError, match="Partition 0 has 3 features and partition 1 has 2"):
        zd.SVC().fit(rows, parted(y, PARTS[2]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": np.inf}, "C must be above 0 and finite; .*use a large C"),
        ({"kernel": "precomputed"}, "has no partitions of points"),
        ({"working_set": 0}, "working_set must be a whole number"),
        ({"tol": -1.0}, "tol must be above 0"),
    ],
    ids=["C", "precomputed", "working_set", "tol"],
)
def test_bad_options_are_refused(options, words):
    X, y, _ = points()
    with pytest.raises(ValueError, match=words):
        zd.SVC(**options).fit(X, y)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf, "a"])
def test_a_bad_epsilon_is_refused_in_the_words_of_one_machine(epsilon):
    """One below zero would have a certificate of a problem that is not convex."""
    X, _, t = points()
    with pytest.raises(ValueError, match=r"^epsilon must be .*It is the half width of the tube") as local:
        zerogap.SVR(epsilon=epsilon).fit(X, t)
    with pytest.raises(ValueError, match=r"^epsilon must be") as found:
        zd.SVR(epsilon=epsilon, client="none is asked for").fit(X, t)
    assert str(found.value) == str(local.value)


def test_a_client_is_needed(client):
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client; got str"):
        zd.SVC(client="tcp://somewhere").fit(*points()[:2])
    assert cluster.current(None) is client


def test_a_closed_client_is_refused():
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as alone:
        other = distributed.Client(alone, set_as_default=False)
        other.close()
        with pytest.raises(RuntimeError, match=r"The Dask client is closed. Make another"):
            zd.SVC(client=other).fit(*points()[:2])


def test_a_cluster_without_workers_says_so_within_seconds(monkeypatch):
    monkeypatch.setattr(cluster, "WAIT_FOR_WORKERS", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as other,
    ):
        began = time.perf_counter()
        with pytest.raises(RuntimeError, match="has no workers"):
            zd.SVC(client=other).fit(*points()[:2])
        assert time.perf_counter() - began < 5.0


def test_a_change_is_made_once_and_only_to_the_state_before_it():
    """An answer may be lost on its way, and be asked for again; a state may be older than the coordinator thinks."""
    block = load(np.arange(6.0).reshape(3, 2), np.array([0, 1, 1]), None, 0, True)
    none, change = (
        np.empty(0, dtype=int),
        (np.ones((1, 2)), np.ones(1), np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.ones(1)),
    )
    partition.Renewal(SPEC, 1, partition.Coefficients(np.empty((0, 2)), np.empty(0), none, none, np.empty(0))).make(
        block
    )
    question = partition.Advance(SPEC, 2, 2, np.empty(0), partition.Coefficients(*change))
    assert isinstance(partition.ask(block, replace(question, version=3)), partition.Missing)
    first = partition.ask(block, question)
    r = block.states[SPEC.key].r.copy()
    assert partition.ask(block, question)[:3] == first[:3]
    assert (block.states[SPEC.key].r == r).all()
    assert r[0] == pytest.approx(-1.0 - np.exp(-0.5 * 1.0))  # t - k(x, z), x = (0, 1), z = (1, 1)


def test_without_dask_it_is_said_what_to_install(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else found(name))
    source = Path(zd.__file__)
    spec = importlib.util.spec_from_file_location("zerogap.dask_again", source)
    with pytest.raises(ImportError, match=r'pip install "zerogap\[dask\]"'):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_a_block_is_moved_without_its_states():
    block = load(np.ones((3, 2)), np.array([0, 1, 1]), None, 4, True)
    before = sys.getsizeof(block)
    partition.Renewal(SPEC, 1, partition.Coefficients(np.empty((0, 2)), *(np.empty(0),) * 4)).make(block)
    assert sys.getsizeof(block) > before
    moved = pickle.loads(pickle.dumps(block))
    assert isinstance(moved, Block)
    assert moved.number == 4
    assert not moved.states
    assert block.states
    assert isinstance(partition.ask(moved, partition.Slope(SPEC, 1, np.zeros(1))), partition.Missing)
