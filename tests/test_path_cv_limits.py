"""Searches over every C: many at once, limits and Ctrl-C; what ends early says so."""

import contextlib
import io
import os
import signal
import threading

import numpy as np
import pytest
from joblib import parallel_config
from searches import cancer_points, cancer_search, some_C  # noqa: F401
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from zerogap import SVCPath, SVCPathCV
from zerogap.estimators import fold_paths, svc_path_cv, workers
from zerogap.path.following import follow


def test_threads_find_the_same(found, cancer, monkeypatch):
    ran, begun = set(), fold_paths.Task.on
    monkeypatch.setattr(fold_paths.Task, "on", lambda *task: ran.add(threading.get_ident()) or begun(*task))
    SVCPathCV(C_max=100.0, n_jobs=2).fit(*cancer)
    assert ran == {threading.get_ident()}  # of so few points they would wait for each other
    monkeypatch.setattr(workers, "WORTH_THREADS", 0)
    other = SVCPathCV(C_max=100.0, n_jobs=2).fit(*cancer)
    assert len(ran) > 1
    assert other.C_ == found.C_
    np.testing.assert_array_equal(other.cv_curve_.edges, found.cv_curve_.edges)
    np.testing.assert_array_equal(other.cv_curve_.mean.score, found.cv_curve_.mean.score)


def same_in(backend, found, cancer):
    with parallel_config(backend):
        other = SVCPathCV(C_max=100.0, n_jobs=2).fit(*cancer)
    assert other.C_ == found.C_
    np.testing.assert_array_equal(other.cv_curve_.edges, found.cv_curve_.edges)
    np.testing.assert_array_equal(other.cv_curve_.fold_scores(some_C()), found.cv_curve_.fold_scores(some_C()))
    np.testing.assert_array_equal(other.decision_function(cancer[0]), found.decision_function(cancer[0]))


@pytest.mark.long
def test_processes_find_the_same(found, cancer):
    same_in("loky", found, cancer)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of the cluster
def test_a_dask_cluster_finds_the_same(found, cancer):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        same_in("dask", found, cancer)


def test_a_time_limit_leaves_the_C_that_all_folds_have(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="max_time=0 ended before one candidate"):
        SVCPathCV(max_time=0).fit(X, y)


def test_paths_that_end_early_leave_the_C_that_all_folds_have(cancer, monkeypatch):
    def cut(begin, begun, end, options, max_events, max_time, verbose, *, prove):
        return follow(begin, begun, end, options, 20, max_time, verbose, prove=prove)

    whole = SVCPathCV(cv=3, C_max=100.0).fit(*cancer)
    monkeypatch.setattr("zerogap.estimators.svc_path_cv.follow", cut)
    with pytest.warns(ConvergenceWarning, match="3 of 3 paths ended before C_max=100, the first at C="):
        ours = SVCPathCV(cv=3, C_max=100.0).fit(*cancer)
    end = ours.cv_curve_.edges[-1]
    assert ours.C_ <= end < 100.0
    C = np.geomspace(0.01, end, 200)[:-1]
    np.testing.assert_array_equal(ours.cv_curve_(C), whole.cv_curve_(C))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_ctrl_c_ends_it(n_jobs):
    X = np.random.default_rng(0).normal(size=(1500, 40))
    y = (X[:, 0] + np.random.default_rng(1).normal(size=1500) > 0).astype(int)
    SVCPathCV(C_max=1.0, cv=2).fit(X[:20], y[:20])  # loads the code
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            SVCPathCV(gamma=[1e-4, 1e-3], C_max=1e6, n_jobs=n_jobs).fit(X, y)
    finally:
        timer.cancel()


def test_progress(cancer):
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        SVCPathCV(C_max=1.0, cv=3, verbose=True).fit(*cancer)
    assert "3 paths" in shown.getvalue()
    assert "3 of 3" in shown.getvalue()


def test_a_path_that_has_lost_its_way_is_told(cancer, monkeypatch):
    assert SVCPathCV(C_max=1.0, cv=2).fit(*cancer).cv_results_["largest_gap"][0] < 1e-9
    monkeypatch.setattr("zerogap.estimators.fold_paths.gap_of", lambda path: 0.02)
    search = SVCPathCV(C_max=1.0, cv=2)
    with pytest.warns(RuntimeWarning, match=r"gamma='scale'.* are not exact: at some C a relative gap of 2.0e-02"):
        search.fit(*cancer)
    assert search.cv_results_["largest_gap"].tolist() == [0.02]


def test_memory_of_approximate_paths_and_of_the_final_model(cancer, monkeypatch):
    X, y = cancer
    asked, follow = [], svc_path_cv.svm_path

    def followed(*arguments, **options):
        asked.append(options["cache_size"])
        return follow(*arguments, **options)

    monkeypatch.setattr(svc_path_cv, "svm_path", followed)
    search = SVCPathCV(cv=2, C_min=0.1, C_max=2.0, gap=1e-2, cache_size=0.5).fit(X, y)
    assert asked == [0.5, 0.5]
    assert search.best_estimator_.cache_size == 0.5
    with pytest.raises(ValueError, match="cache_size must be"):
        SVCPathCV(gap=1e-2, cache_size=0).fit(X, y)


@pytest.mark.skipif("gap" not in SVCPath().get_params(), reason="paths are exact")
@pytest.mark.parametrize("classes", [2, 3])
def test_approximate_paths(classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    exact, near = (SVCPathCV(cv=2, C_min=0.1, C_max=2.0, gap=gap).fit(X, y) for gap in (None, 1e-3))
    assert near.best_score_ == pytest.approx(exact.best_score_, abs=0.03)
    assert 0.0 < near.cv_results_["largest_gap"][0] <= 1e-3
    assert exact.cv_results_["largest_gap"][0] < 1e-9
