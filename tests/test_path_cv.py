"""Searches over every C with folds: the curve, what is chosen, and awkward data."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from searches import cancer_points, cancer_search, fold_scores, some_C  # noqa: F401
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_classification
from sklearn.impute import SimpleImputer
from sklearn.metrics import f1_score, make_scorer, matthews_corrcoef
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import zerogap
from zerogap import SVC, SVR, SVCPathCV, SVRPathCV
from zerogap.estimators.cv_curve import cv_curve
from zerogap.estimators.fold_paths import FoldPath
from zerogap.estimators.path_cv import Candidate
from zerogap.kernels import RBF, Linear
from zerogap.path import ScoreCurve

UNSURE = 1e-4  # of a decision value: LIBSVM, with tol=1e-8 and kernel values in float32, is this near to the exact one


def is_sure(model, X):
    """Whether the sign of every decision value is certain: none is next to zero."""
    return np.abs(model.decision_function(X)).min() > UNSURE


def are_sure(X, y, cv, C, groups=None, **options):
    """Whether those of every fold, at every C, are certain: (folds, C)."""
    return np.array(
        [
            [is_sure(SVC(c, tol=1e-8, **options).fit(X[train], y[train]), X[test]) for c in C]
            for train, test in cv.split(X, y, groups)
        ]
    )


def check_against_grid_search(X, y, cv, groups=None, *, scoring="accuracy", C=None, **options):
    C, peer = some_C() if C is None else C, sklearn.svm.SVC(tol=1e-8, **options)
    search = GridSearchCV(peer, {"C": C}, cv=cv, scoring=scoring).fit(X, y, groups=groups)
    ours = SVCPathCV(C_max=100.0, cv=cv, scoring=scoring, **options).fit(X, y, groups=groups)
    sure = are_sure(X, y, cv, C, groups, **options)
    assert sure.mean() > 0.5
    np.testing.assert_allclose(ours.cv_curve_.fold_scores(C)[sure], fold_scores(search)[sure], rtol=0, atol=1e-12)
    if sure.all():
        np.testing.assert_allclose(ours.cv_curve_(C), search.cv_results_["mean_test_score"], rtol=0, atol=1e-11)
    assert ours.cv_curve_.best_score >= ours.cv_curve_(C).max()
    return ours


# The curve against scikit-learn's grid search, at C that nobody chose.


@pytest.mark.parametrize(
    "scoring",
    [
        "accuracy",
        pytest.param("f1", marks=pytest.mark.long),
        pytest.param("balanced_accuracy", marks=pytest.mark.long),
        pytest.param(make_scorer(matthews_corrcoef), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_fold_scores_are_those_of_a_grid_search(cancer, scoring):
    ours = check_against_grid_search(*cancer, StratifiedKFold(4), scoring=scoring)
    assert ours.cv_curve_.is_exact


@pytest.mark.parametrize(
    "cv",
    [
        pytest.param(KFold(3, shuffle=True, random_state=1), marks=pytest.mark.long),
        ShuffleSplit(2, random_state=0),
        TimeSeriesSplit(3),
        pytest.param(RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0), marks=pytest.mark.long),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_any_splitter(cancer, cv):
    check_against_grid_search(*cancer, cv)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear"},
        {"class_weight": {0: 2.0}},
        pytest.param({"kernel": "poly", "degree": 2, "coef0": 1.0}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_kernels_and_class_weights(cancer, options):
    X = StandardScaler().fit_transform(cancer[0])
    check_against_grid_search(X, cancer[1], StratifiedKFold(3), **options)


def test_without_a_bias(cancer):
    """Independent fits at a few C, without a bias: their scores, and the model in the end."""
    X, y = StandardScaler().fit_transform(cancer[0]), cancer[1]
    C, cv = some_C(size=3), StratifiedKFold(3)
    ours = SVCPathCV(C_max=100.0, cv=cv, fit_intercept=False).fit(X, y)
    target = np.asarray(X[:, 0], dtype=float) + 3.0
    curve = SVRPathCV(C_max=100.0, cv=KFold(3), fit_intercept=False).fit(X, target).cv_curve_
    for k, ((train, test), (rows, others)) in enumerate(zip(cv.split(X, y), KFold(3).split(X), strict=True)):
        for c in C:
            model = SVC(c, tol=1e-9, fit_intercept=False).fit(X[train], y[train])
            assert np.abs(model.decision_function(X[test])).min() > 1e-6
            assert ours.cv_curve_.fold_scores(c)[k] == model.score(X[test], y[test])
            regression = SVR(c, tol=1e-12, fit_intercept=False).fit(X[rows], target[rows])
            error = np.mean((regression.predict(X[others]) - target[others]) ** 2)
            assert curve.fold_scores(c)[k] == pytest.approx(-error, rel=1e-4)
    assert ours.best_estimator_.intercept_ == 0.0
    three = SVCPathCV(C_max=10.0, cv=2, fit_intercept=False).fit(*load_iris(return_X_y=True))
    assert not three.best_estimator_.intercept_.any()
    with pytest.raises(ValueError, match=r"fit_intercept must be True or False"):
        SVCPathCV(fit_intercept="no").fit(X, y)


def test_balanced_classes_are_those_of_each_fold(cancer):
    # At smaller C every point is at its bound, and in scikit-learn's bias one sees which of them rounding has left free.
    X = StandardScaler().fit_transform(cancer[0])
    check_against_grid_search(X, cancer[1], StratifiedKFold(3), C=some_C(low=0.1), class_weight="balanced")


def test_groups_stay_together(cancer):
    groups = np.arange(150) // 10
    check_against_grid_search(*cancer, GroupKFold(3), groups)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    ours, C = SVCPathCV(C_max=100.0, scoring="f1_macro", cv=3).fit(X, y), some_C(size=5)
    search = GridSearchCV(sklearn.svm.SVC(tol=1e-8), {"C": C}, scoring="f1_macro", cv=3).fit(X, y)
    # A point may be too near to a boundary to tell; at most C none is.
    assert np.mean(np.abs(ours.cv_curve_.fold_scores(C) - fold_scores(search)) < 1e-12) > 0.9


def test_scores_of_decision_values_are_known_at_samples_and_say_so(cancer):
    ours = SVCPathCV(C_min=1.0, C_max=2.0, scoring="roc_auc", cv=3).fit(*cancer)
    curve = ours.cv_curve_
    assert not curve.is_exact
    assert "sampled" in repr(curve)
    assert ours.C_ in curve.mean.samples
    C = np.append(curve.mean.samples[[7, 20]], ours.C_)
    search = GridSearchCV(sklearn.svm.SVC(tol=1e-8), {"C": C}, cv=3, scoring="roc_auc").fit(*cancer)
    np.testing.assert_allclose(curve.fold_scores(C), fold_scores(search), rtol=0, atol=1e-12)
    assert ours.best_score_ == pytest.approx(search.cv_results_["mean_test_score"][-1], abs=1e-12)


def test_a_transformer_is_fitted_to_each_fold(cancer):
    (X, y), C = cancer, some_C(size=4)
    ours = SVCPathCV(C_max=100.0, transformer=StandardScaler()).fit(X, y)
    pipe = make_pipeline(StandardScaler(), sklearn.svm.SVC(tol=1e-8))
    search = GridSearchCV(pipe, {"svc__C": C}).fit(X, y)
    np.testing.assert_allclose(ours.cv_curve_.fold_scores(C), fold_scores(search), rtol=0, atol=1e-12)
    last = make_pipeline(StandardScaler(), SVC(ours.C_, tol=1e-9)).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), last.predict(X))
    np.testing.assert_array_equal(ours.best_estimator_.predict(X), ours.predict(X))
    assert not hasattr(ours.transformer, "mean_")


def test_the_curve_has_the_score_of_the_model_at_every_interval(found, cancer):
    (X, y), table, compared = cancer, found.cv_curve_.table(), 0
    for k in np.linspace(0, table["C"].size - 1, 7).astype(int):
        scores = np.array([table[f"fold{j}"][k] for j in range(5)])
        for j, (train, test) in enumerate(StratifiedKFold(5).split(X, y)):
            model = SVC(table["C"][k], tol=1e-10).fit(X[train], y[train])
            if is_sure(model, X[test]):
                assert scores[j] == model.score(X[test], y[test])
                compared += 1
        assert table["mean"][k] == pytest.approx(np.mean(scores), abs=1e-12)
        assert table["std_error"][k] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(5), abs=1e-12)
        assert table["C_from"][k] < table["C"][k] < table["C_to"][k]
    assert compared > 17


# What is chosen.


def test_the_best_is_the_middle_of_the_widest_interval(found):
    curve = found.cv_curve_
    assert found.best_score_ == curve.best_score == curve.mean.score.max()
    low, high = max(found.best_intervals_, key=lambda ends: ends[1] / ends[0])
    assert pytest.approx(np.sqrt(low * high), rel=1e-12) == found.C_
    inside = np.array([np.sqrt(low * high) for low, high in found.best_intervals_])
    assert (curve(inside) == curve.best_score).all()
    grid = np.geomspace(0.01, 100.0, 20001)
    in_intervals = np.any([(grid > low) & (grid < high) for low, high in found.best_intervals_], axis=0)
    assert (curve(grid[in_intervals]) == curve.best_score).all()
    on_edge = np.isclose(grid[:, None], curve.edges, rtol=1e-12).any(axis=1)
    assert (curve(grid[~in_intervals & ~on_edge]) < curve.best_score).all()


def test_one_standard_error(found, cancer):
    ours, curve = SVCPathCV(C_max=100.0, selection="one_se").fit(*cancer), found.cv_curve_
    least = curve.best_score - curve.std_error(curve.best_C)
    assert ours.best_score_ == curve(ours.C_) >= least
    assert curve.best_C >= ours.C_
    table = curve.table()
    first = np.flatnonzero(table["mean"] >= least)[0]
    assert table["C_from"][first] <= ours.C_ <= table["C_to"][first]
    assert (table["mean"][:first] < least).all()
    assert ours.best_std_error_ == curve.std_error(ours.C_)


def test_among_candidates_the_best_is_taken(cancer):
    X, y = StandardScaler().fit_transform(cancer[0]), cancer[1]
    gammas = [0.001, 0.1, "scale"]
    ours = SVCPathCV(gamma=gammas, C_max=10.0, cv=3).fit(X, y)
    alone = [SVCPathCV(gamma=gamma, C_max=10.0, cv=3).fit(X, y) for gamma in gammas]
    best = int(np.argmax([one.best_score_ for one in alone]))
    assert ours.best_index_ == best
    assert (ours.C_, ours.gamma_, ours.best_score_) == (alone[best].C_, alone[best].gamma_, alone[best].best_score_)
    for curve, one in zip(ours.cv_curves_, alone, strict=True):
        np.testing.assert_array_equal(curve.edges, one.cv_curve_.edges)
        np.testing.assert_array_equal(curve.mean.score, one.cv_curve_.mean.score)
    results = ours.cv_results_
    assert results["mean_test_score"].tolist() == [one.best_score_ for one in alone]
    assert results["rank_test_score"][best] == 1
    assert results["params"][best] == ours.best_params_ == {"C": ours.C_, "kernel": "rbf", "gamma": gammas[best]}
    assert all(len(column) == 3 for column in results.values())

    assert pd.DataFrame(results).shape[0] == 3
    assert pd.DataFrame(ours.cv_curve_.table()).shape[0] == ours.cv_curve_.edges.size - 1


def test_kernels_in_a_list():
    X, y = make_classification(80, 4, random_state=0)
    ours = SVCPathCV(kernel=["linear", "rbf", RBF(0.5), Linear()], gamma=[0.1, 1.0], degree=2, C_max=10.0, cv=3).fit(
        X, y
    )
    tried = list(zip(ours.cv_results_["param_kernel"], ours.cv_results_["param_gamma"], strict=True))
    none = np.ma.masked  # those without a gamma
    assert tried == [("linear", none), ("rbf", 0.1), ("rbf", 1.0), (RBF(0.5), none), (Linear(), none)]
    assert [sorted(params) for params in ours.cv_results_["params"][:2]] == [["C", "kernel"], ["C", "gamma", "kernel"]]
    for k in (0, 4):
        np.testing.assert_allclose(ours.cv_curves_[k].edges, ours.cv_curves_[0].edges, rtol=1e-9)
    assert ours.kernel_ == tried[ours.best_index_][0]


def test_results_have_scikit_learns_names_where_they_mean_the_same(tmp_path):
    X, y = make_classification(60, 4, random_state=0)
    ours = SVCPathCV(kernel=["linear", "rbf"], gamma=[0.1, 1.0], C_max=10.0, cv=3).fit(X, y)
    results = ours.cv_results_
    params = [{name: [value] for name, value in one.items()} for one in results["params"]]
    theirs = GridSearchCV(sklearn.svm.SVC(tol=1e-8), params, cv=3).fit(X, y).cv_results_
    assert set(theirs) <= set(results)
    for name in ("mean_test_score", "std_test_score", "rank_test_score", "split2_test_score"):
        np.testing.assert_allclose(results[name], theirs[name], atol=1e-12)
    assert results["params"] == theirs["params"]
    for name in ("param_gamma", "param_kernel"):
        assert results[name].tolist() == theirs[name].tolist()
    assert (results["mean_fit_time"] > 0.0).all()
    assert (results["mean_score_time"] > 0.0).all()
    ours.save(tmp_path / "model.npz")
    same = zerogap.load(tmp_path / "model.npz").cv_results_
    assert same["param_gamma"].tolist() == [None, 0.1, 1.0]
    assert same["param_gamma"].mask.tolist() == [True, False, False]


def test_of_equally_good_candidates_the_widest_interval_then_the_smallest_C(monkeypatch):
    curves = {
        "narrow": ScoreCurve(np.array([0.1, 1.0, 2.0, 10.0]), np.array([0.5, 0.7, 0.5])),
        "wide": ScoreCurve(np.array([0.1, 1.0, 8.0, 10.0]), np.array([0.5, 0.7, 0.5])),
        "as wide": ScoreCurve(np.array([0.1, 0.5, 4.0, 10.0]), np.array([0.5, 0.7, 0.5])),
        "worse": ScoreCurve(np.array([0.1, 10.0]), np.array([0.6])),
    }
    for names, best in ((("narrow", "wide"), 1), (("wide", "as wide", "narrow", "worse"), 1), (("as wide", "wide"), 0)):
        model = SVCPathCV()
        model.cv_curves_ = [cv_curve([curves[name]] * 2) for name in names]
        model._tried, model.n_splits_ = [Candidate("rbf", name) for name in names], 2
        path = FoldPath(None, 10.0, 1, "complete", 0.0, 0.1, 0.1)
        model.cv_results_ = model._results([[path, path]] * len(names))
        model._choose(model._tried)
        assert model.best_index_ == best
        assert model._by_rank()[0] == best


def test_the_model_is_fitted_to_all_points(found, cancer):
    X, y = cancer
    model = SVC(found.C_, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))
    assert found.score(X, y) == model.score(X, y)
    assert found.gamma_ == model._kernel.gamma
    assert found.best_estimator_.duality_gap_ <= 1e-9
    assert (found.n_features_in_, found.classes_.tolist()) == (30, [0, 1])


# Awkward data.


def test_weights_are_repetition(cancer):
    X, y = cancer[0][:60], cancer[1][:60]
    weight = np.random.default_rng(0).integers(0, 4, 60)
    weight[:2] = 1
    fold = np.arange(60) % 3
    again = np.repeat(np.arange(60), weight)
    splits = [[(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(3)] for f in (fold, fold[again])]
    weighted = SVCPathCV(C_max=10.0, cv=splits[0]).fit(X, y, sample_weight=weight)
    repeated = SVCPathCV(C_max=10.0, cv=splits[1]).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.cv_curve_.edges, repeated.cv_curve_.edges, rtol=1e-9)
    np.testing.assert_allclose(weighted.cv_curve_.mean.score, repeated.cv_curve_.mean.score, atol=1e-11)
    assert pytest.approx(repeated.C_, rel=1e-9) == weighted.C_


def test_duplicates_labels_as_text_and_tiny_folds():
    X = np.repeat([[0.0], [1.0], [2.0], [3.0]], 3, axis=0)
    y = np.array(["a", "a", "b", "a", "b", "a", "b", "b", "a", "b", "b", "b"])
    ours = SVCPathCV(gamma=1.0, cv=LeaveOneOut(), C_max=10.0).fit(X, y)
    assert ours.n_splits_ == 12
    C = some_C(high=10.0, size=3)
    search = GridSearchCV(sklearn.svm.SVC(gamma=1.0, tol=1e-10), {"C": C}, cv=LeaveOneOut()).fit(X, y)
    np.testing.assert_allclose(ours.cv_curve_(C), search.cv_results_["mean_test_score"], atol=1e-11)
    assert set(ours.predict(X)) <= {"a", "b"}


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_features_of_any_size(scale, cancer):
    X, y = StandardScaler().fit_transform(cancer[0])[:80], cancer[1][:80]
    plain, other = (SVCPathCV(C_max=10.0, cv=3).fit(Z, y) for Z in (X, scale * X))
    assert plain.best_score_ == pytest.approx(other.best_score_, abs=1e-12)


def test_sparse_precomputed_and_functions(cancer):
    X, y = StandardScaler().fit_transform(cancer[0])[:90], cancer[1][:90]
    options = {"C_max": 10.0, "cv": 3}
    dense = SVCPathCV(gamma=0.05, **options).fit(X, y)
    others = [
        (SVCPathCV(gamma=0.05, **options), sp.csr_matrix(X), sp.csr_matrix(X)),
        (SVCPathCV(kernel="precomputed", **options), rbf_kernel(X, gamma=0.05), rbf_kernel(X, gamma=0.05)),
        (SVCPathCV(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.05), **options), X, X),
    ]
    for model, points, new in others:
        model.fit(points, y)
        assert pytest.approx(dense.C_, rel=1e-6) == model.C_
        assert model.best_score_ == dense.best_score_
        np.testing.assert_allclose(model.decision_function(new), dense.decision_function(X), atol=1e-6)


def test_a_single_fold_has_no_standard_error(cancer):
    ours = SVCPathCV(cv=ShuffleSplit(1, random_state=0), C_max=1.0).fit(*cancer)
    assert np.isnan(ours.best_std_error_)
    assert "±" not in repr(ours)
    with pytest.raises(ValueError, match="at least two folds"):
        SVCPathCV(cv=ShuffleSplit(1, random_state=0), C_max=1.0, selection="one_se").fit(*cancer)


def test_a_transformer_sees_the_points_as_they_are(cancer):
    """Gaps that an imputer fills, and columns by their names, as in a grid search over a pipeline."""
    X, y = cancer
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    ours = SVCPathCV(transformer=scaled, C_max=10.0, cv=3).fit(gaps, y)
    C = np.geomspace(0.02, 9.0, 5)
    theirs = GridSearchCV(make_pipeline(SimpleImputer(), StandardScaler(), sklearn.svm.SVC()), {"svc__C": C}, cv=3).fit(
        gaps, y
    )
    np.testing.assert_allclose(ours.cv_curve_(C), theirs.cv_results_["mean_test_score"], rtol=1e-12)
    assert ours.score(gaps, y) == ours.best_estimator_.score(gaps, y)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(kind=np.where(X[:, 2] > 0, "x", "y"))
    columns = make_column_transformer((OneHotEncoder(), ["kind"]), remainder=StandardScaler())
    mixed = SVCPathCV(transformer=columns, C_max=10.0, cv=3).fit(frame, y)
    assert mixed.predict(frame).shape == y.shape
    assert list(mixed.feature_names_in_) == ["a", "b", "kind"]
    with pytest.raises(TypeError, match=r"transformer must be one of scikit-learn's.*got str"):
        SVCPathCV(transformer="standard").fit(X, y)
    with pytest.raises(TypeError, match=r"got the class StandardScaler. Make one of it: StandardScaler\(\)"):
        SVCPathCV(transformer=StandardScaler).fit(X, y)
    with pytest.raises(TypeError, match=r"a pipeline that ends in SVC, .*SVCPathCV is the model itself"):
        SVCPathCV(transformer=make_pipeline(StandardScaler(), sklearn.svm.SVC())).fit(X, y)


# As one of scikit-learn's.


@pytest.mark.long
@parametrize_with_checks(
    [
        SVCPathCV(cv=2, C_max=10.0),
        SVCPathCV(cv=2, C_max=10.0, gamma=[0.1, 1.0], selection="one_se", transformer=StandardScaler(with_mean=False)),
        SVCPathCV(cv=2, C_max=10.0, kernel=["linear", "rbf"]),
        SVRPathCV(cv=2, C_max=10.0),
    ]
)
def test_scikit_learns_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_nested_in_pipelines_and_cross_validation(cancer):
    X, y = cancer
    pipe = make_pipeline(StandardScaler(), SVCPathCV(C_max=10.0, cv=3))
    scores = cross_val_score(pipe, X, y, cv=2)
    for score, (train, test) in zip(scores, StratifiedKFold(2).split(X, y), strict=True):
        scaler = StandardScaler().fit(X[train])
        inner = SVCPathCV(C_max=10.0, cv=3).fit(scaler.transform(X[train]), y[train])
        assert score == inner.score(scaler.transform(X[test]), y[test])


def test_score_is_by_scoring(cancer):
    X, y = cancer
    ours = SVCPathCV(C_min=0.5, C_max=1.0, cv=2, scoring="f1").fit(X, y)
    assert ours.score(X, y) == f1_score(y, ours.predict(X))
    weight = np.arange(150.0)
    assert ours.score(X, y, weight) == f1_score(y, ours.predict(X), sample_weight=weight)


def test_copies_and_files(found, cancer, tmp_path):
    X, y = cancer
    assert clone(found).get_params() == found.get_params()
    assert not hasattr(clone(found), "C_")
    sampled = SVCPathCV(C_min=0.9, C_max=1.0, cv=2, scoring="roc_auc").fit(X, y)
    regression = SVRPathCV(C_max=1.0, cv=3, epsilon=[0.1, 0.2]).fit(X, y)
    for model in (found, sampled, regression, SVCPathCV(gamma=[0.1, 1.0])):
        model.save(tmp_path / "model.npz")
        for other in (zerogap.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            assert repr(other) == repr(model)
            if hasattr(model, "C_"):
                np.testing.assert_array_equal(other.predict(X), model.predict(X))
                np.testing.assert_array_equal(other.cv_curve_.edges, model.cv_curve_.edges)
                assert type(other.cv_curve_.mean) is type(model.cv_curve_.mean)
                assert other.cv_results_["params"] == model.cv_results_["params"]
    assert isinstance(zerogap.load(tmp_path / "model.npz"), SVCPathCV)
    with pytest.raises(TypeError, match="StandardScaler cannot be stored"):
        SVCPathCV(C_max=1.0, cv=3, transformer=StandardScaler()).fit(X, y).save(tmp_path / "model.npz")


def test_it_tells_what_it_found(found, cancer):
    text = repr(found)
    assert text.startswith("SVCPathCV(C_max=100.0): C=")
    assert f"accuracy {found.best_score_:.4g} ± {found.best_std_error_:.2g} over 5 folds" in text
    page = found._repr_mimebundle_()["text/html"]
    assert "within one standard error" in page
    assert "<svg" in page
    assert page.partition("<style>")[0] == found._repr_html_().partition("<style>")[0]
    several = SVCPathCV(gamma=[0.001, 0.01], C_max=1.0, cv=3).fit(*cancer)
    assert "candidates" in several._repr_html_()
    assert "gamma=" in repr(several).partition("):")[2]
    assert "CVCurve" in found.cv_curve_._repr_html_()
    assert "standard error" not in SVCPathCV()._repr_html_()
    assert "5 folds, C from 0.01 to 100" in repr(found.cv_curve_)


def test_all_that_is_known_at_one_C(found):
    at = found.cv_curve_.at(1.0)
    assert at.C == 1.0
    assert at.folds.shape == (5,)
    assert at.mean == pytest.approx(at.folds.mean(), abs=1e-12)
    assert at.std_error == pytest.approx(at.folds.std(ddof=1) / np.sqrt(5))


def test_a_range_of_hundreds_of_decades(cancer):
    X, y = (part[::5] for part in cancer)
    found = SVCPathCV(cv=2, C_min=1e-200, C_max=1e110).fit(X, y)
    np.testing.assert_allclose(found.cv_curve_.edges[[0, -1]], [1e-200, 1e110], rtol=1e-14)


def test_set_params_changes_the_next_search_and_not_what_this_one_tells(cancer):
    X, y = cancer
    model = SVCPathCV(gamma=[0.001, 0.01], C_max=1.0, cv=3).fit(X, y)
    said, page = model.in_words(), model._result_html()
    model.set_params(scoring="f1", selection="one_se", C_min=1e-5, C_max=1e5, gamma=0.1, transformer=StandardScaler())
    assert model.in_words() == said
    assert model._result_html() == page
    assert repr(model).endswith(said)
    assert "scoring='f1'" in repr(model)
    assert ", fitted as SVCPathCV(C_max=1.0, cv=3, gamma=[0.001, 0.01]): C=" in repr(model)
    assert model.score(X, y) == model.best_estimator_.score(X, y)  # not by F1
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))
    with_transformer = SVCPathCV(C_max=1.0, cv=3, transformer=StandardScaler()).fit(X, y)
    found = with_transformer.predict(X)
    np.testing.assert_array_equal(with_transformer.set_params(transformer=None).predict(X), found)
    with pytest.raises(AttributeError, match="coef_"):
        with_transformer.coef_  # noqa: B018
