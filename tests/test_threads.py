"""Several threads on one problem, one Gram matrix, one model: each gets what it would get alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from zerogap import (
    SVC,
    SVR,
    DualProblem,
    GaussianProcessRegressor,
    Gram,
    RelativeGap,
    Status,
    SVCPath,
    leave_one_out,
    solve,
    threads,
)

THREADS = 4


def together(work, count=THREADS):
    """Start the same work in several threads at once, and return what each found."""
    gate = threading.Barrier(count)

    def start(k):
        gate.wait()
        return work(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((700, 6))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(700) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize(
    "solver",
    [
        "smo",
        *(pytest.param(s, marks=pytest.mark.long) for s in ("rosen", "simple-svm", "smo-platt", "decomposition")),
    ],
)
def test_one_problem(data, solver):
    X, y = data
    tol = 1e-3
    alone = solve(DualProblem.hinge(Gram(X), y, 1.0), stop=RelativeGap(1e-6))
    problem = DualProblem.hinge(Gram(X, cache_size=0.6), y, 1.0)  # a hundred rows: they drive each other out
    for solution in together(lambda k: solve(problem, solver, stop=RelativeGap(tol))):
        assert solution.status is Status.CONVERGED
        assert solution.problem is problem
        assert alone.certificate.dual * (1 - 1.01 * tol) <= solution.certificate.dual <= alone.certificate.primal
        # What the thread was told is what the point is.
        again = DualProblem.hinge(Gram(X), y, 1.0).certify(solution.beta)
        assert again.dual == pytest.approx(solution.certificate.dual, rel=1e-10)


def test_one_gram(data):
    X, _ = data
    gram, whole = Gram(X, cache_size=0.6), Gram(X).full()
    betas = np.random.default_rng(0).standard_normal((THREADS, len(X)))

    def work(k):
        products = [gram.dot(betas[k]) for _ in range(20)]
        rows = np.arange(50 * k, 50 * k + 120)
        return products, gram.block(rows), gram.multiply(betas[k]), gram.full() if k == 0 else None

    for k, (products, rows, product, full) in enumerate(together(work)):
        truth = whole @ betas[k]
        for one in (*products, product):
            np.testing.assert_allclose(one, truth, rtol=0, atol=1e-12 * np.abs(betas[k]).sum())
        np.testing.assert_allclose(rows, whole[50 * k : 50 * k + 120], rtol=0, atol=1e-13)
        if full is not None:
            np.testing.assert_allclose(full, whole, rtol=0, atol=1e-13)


def test_a_run_and_certificates_of_the_same_problem(data):
    X, y = data
    problem = DualProblem.hinge(Gram(X, cache_size=0.6), y, 1.0)
    beta = problem.feasible(np.where(np.arange(len(y)) % 3, y, 0.0))
    truth = DualProblem.hinge(Gram(X), y, 1.0).certify(beta)

    def work(k):
        if k == 0:
            return solve(problem, stop=RelativeGap(1e-4)).status
        return [problem.certify(beta) for _ in range(5)]

    status, *certificates = together(work)
    assert status is Status.CONVERGED
    for certificate in (one for several in certificates for one in several):
        assert certificate.dual == pytest.approx(truth.dual, rel=1e-12)
        assert certificate.gap == pytest.approx(truth.gap, rel=1e-10)


def test_one_model(data):
    X, y = data
    model = SVC(C=2.0).partial_fit(X[:150], y[:150])
    values = model.decision_function(X)
    left_out = leave_one_out(SVC(C=2.0).partial_fit(X[:150], y[:150])).decision_values

    def work(k):
        return leave_one_out(model).decision_values if k % 2 else model.decision_function(X)

    for k, found in enumerate(together(work)):
        np.testing.assert_allclose(found, left_out if k % 2 else values, rtol=0, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 3])
def test_readers_see_whole_models_while_one_grows(data, n_classes):
    """Every prediction is that of the model before a change of the rows or after it, never one of a mixture."""
    X, _ = data
    y = np.arange(len(X)) % n_classes if n_classes > 2 else data[1]
    sizes = range(100, 220, 10)
    allowed, model = [], SVC(C=2.0, gamma=0.2).partial_fit(X[:100], y[:100])
    for k in sizes:
        model.partial_fit(X[k : k + 10], y[k : k + 10])
        allowed.append(model.decision_function(X[:50]))
    model, is_done, seen = SVC(C=2.0, gamma=0.2).partial_fit(X[:100], y[:100]), threading.Event(), []
    allowed.append(model.decision_function(X[:50]))

    def work(k):
        if k == 0:
            for size in sizes:
                model.partial_fit(X[size : size + 10], y[size : size + 10])
            is_done.set()
        else:
            while not is_done.is_set():
                seen.append(model.decision_function(X[:50]))

    together(work)
    assert len(seen) > len(sizes)
    for values in seen:
        assert min(np.abs(values - other).max() for other in allowed) <= 1e-9


@pytest.mark.parametrize("model", [SVC(), SVR(), SVCPath(C_max=10.0), GaussianProcessRegressor(noise=0.1)])
def test_a_fit_that_fails_leaves_the_model_as_it_was(data, model):
    X, y = data
    model = clone(model).fit(X[:100], y[:100])
    values = model.predict(X)
    with pytest.raises(ValueError, match=r"scale|NaN|classes|float64"):
        model.fit(np.full((50, 3), 1e200), np.where(np.arange(50) % 2 == 0, 1.0, np.nan))
    np.testing.assert_array_equal(model.predict(X), values)


@pytest.mark.parametrize("model", [SVC(), SVR(), SVCPath(C_max=10.0), GaussianProcessRegressor(noise=0.1)])
def test_a_prediction_is_that_of_one_model(data, model):
    """The kernel itself fits the model anew, as another thread may at that moment."""
    X, y = data
    interruptions = []

    def linear(A, B):
        if interruptions:
            interruptions.pop()()
        return A @ B.T

    model = clone(model).set_params(kernel=linear).fit(X[:50], y[:50])
    values = model.predict(X[:20])
    interruptions.append(lambda: model.fit(X[50:150] + 1.0, 2.0 * y[50:150]))
    np.testing.assert_array_equal(model.predict(X[:20]), values)
    assert not interruptions


def test_a_matrix_is_not_copied_while_its_rows_are_moved():
    """While one thread keeps the whole matrix, another that makes a twin would find old places in new rows."""
    X = np.random.default_rng(0).standard_normal((30, 3))
    gram, beta, found = Gram(X, gamma=0.5), np.arange(30.0), []
    gram.fetch(np.arange(5, 10))
    K = gram.fresh().matrix()
    other = threading.Thread(target=lambda: found.append(gram.dot(beta)))
    with gram._lock, gram._layout:
        gram._complete, gram._rows = K, K
        other.start()
        other.join(0.2)
        assert other.is_alive()
        gram._keep_all(K)
    other.join()
    np.testing.assert_allclose(found[0], K @ beta, rtol=1e-12)


def test_any_thread_holds_blas_to_one_thread_and_lets_it_go():
    """Of threadpoolctl 3.8 the first thread that sets a number of threads is the only one that can."""
    blas = threads._blas()
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        before = blas._found()

        def held():
            with threads.several_at_once():
                return blas._found()

        with threads.several_at_once():
            pass
        assert pool.submit(held).result() == [1] * len(before)
        assert blas._found() == before


def test_who_lets_go_of_blas_last_need_not_be_who_held_it_first():
    blas, is_held, may_go = threads._blas(), threading.Event(), threading.Event()
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        before = blas._found()

        def held():
            with threads.several_at_once():
                is_held.set()
                assert may_go.wait(60.0)

        with threads.several_at_once():
            longer = pool.submit(held)
            assert is_held.wait(60.0)
        may_go.set()
        longer.result()
        assert blas._found() == before
