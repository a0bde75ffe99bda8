"""Searches over every C: what they refuse, and what they say of it."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from searches import cancer_points  # noqa: F401
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    fbeta_score,
    hamming_loss,
    hinge_loss,
    log_loss,
    make_scorer,
    matthews_corrcoef,
    roc_auc_score,
    zero_one_loss,
)
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from zerogap import SVCPathCV, SVRPathCV, cost_matrix_scorer
from zerogap.kernels import RBF


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": []}, "gamma must be a value, or a list of at least one"),
        ({"kernel": []}, "kernel must be a value, or a list of at least one"),
        ({"gamma": [0.1, -1.0]}, "gamma"),
        ({"C_min": 10.0, "C_max": 1.0}, "C_min must be below C_max"),
        ({"C_min": 0.0}, "C_min"),
        ({"selection": "worst"}, "selection"),
        ({"gap": -1.0}, "gap"),
        ({"scoring": "no_such_score"}, "scoring"),
        ({"cv": 1}, "n_splits|k-fold"),
        ({"cv": []}, "gives no fold"),
        ({"kernel": ["rbf", "precomputed"]}, "kernel matrix"),
        ({"kernel": "rbfs"}, "Unknown kernel"),
        ({"kernel": RBF(0.1), "gamma": [0.1, 0.2]}, "would have no effect"),
        ({"kernel": "precomputed", "transformer": StandardScaler()}, "transformer"),
        ({"decision_function_shape": "x"}, "decision_function_shape"),
        ({"break_ties": True, "decision_function_shape": "ovo"}, "break_ties"),
        ({"max_time": -1.0}, "max_time"),
        ({"scoring": "neg_log_loss"}, "probabilities"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options, words):
    X, y = make_classification(30, 4, random_state=0)
    with pytest.raises((ValueError, TypeError), match=words):
        SVCPathCV(**options).fit(X, y)


@pytest.mark.parametrize(
    ("scoring", "labels", "words"),
    [
        ("roc_auc", "abc", r"scoring='roc_auc' is of two classes; of 3 .*'balanced_accuracy'"),
        ("f1", "abc", r"^scoring='f1' is of two classes, and there are 3. Use 'f1_macro'.* or 'f1_weighted'"),
        (make_scorer(f1_score), "abc", r"is of two classes, and there are 3. Use average='macro'"),
        (
            "f1",
            "ab",
            r"of the class with label 1, and the labels are \['a', 'b'\].*make_scorer\(f1_score, pos_label='b'\)",
        ),
        ("average_precision", "ab", r"pos_label='b', response_method='decision_function'\)"),
        ("neg_log_loss", "ab", r"not calibrated \(a path has none of .* predict_proba\). Use a score of predictions"),
    ],
    ids=str,
)
def test_scores_that_do_not_fit_the_labels_are_refused_before_any_path(scoring, labels, words, monkeypatch):
    monkeypatch.setattr(SVCPathCV, "_follow", lambda *a: pytest.fail("a path was followed"))
    y = np.array(list(labels) * 30)[:30]
    for kind in (y.dtype, object):  # text of pandas is of the second kind
        with pytest.raises(ValueError, match=words):
            SVCPathCV(scoring=scoring).fit(np.arange(30.0)[:, None], y.astype(kind))


def test_a_score_of_one_class_takes_text_labels_of_pandas():
    X, y = make_classification(40, 4, random_state=0)
    status = pd.Series(np.where(y == 1, "sold", "kept"), dtype=object)
    scorer = make_scorer(f1_score, pos_label="kept")
    ours = SVCPathCV(C_min=0.5, C_max=1.0, cv=2, scoring=scorer).fit(X, status)
    theirs = cross_val_score(sklearn.svm.SVC(C=ours.C_, tol=1e-8), X, status, cv=2, scoring=scorer)
    assert ours.best_score_ == pytest.approx(theirs.mean(), abs=1e-12)


def test_what_cannot_be_stored_is_told_with_what_can(tmp_path):
    X, y = load_iris(return_X_y=True)
    for options, words in (
        ({"cv": StratifiedKFold(2)}, r"A StratifiedKFold cannot be stored.*Give cv= as a number.*best_estimator_"),
        (
            {"cv": 2, "scoring": make_scorer(matthews_corrcoef)},
            r"A scorer of matthews_corrcoef cannot.*scoring= by its name",
        ),
        ({"cv": 2, "transformer": StandardScaler()}, r"A StandardScaler cannot.*Transform the points beforehand"),
    ):
        model = SVCPathCV(C_min=0.5, C_max=1.0, **options).fit(X, y)
        with pytest.raises(TypeError, match=words):
            model.save(tmp_path / "model.npz")


def test_folds_that_cannot_be_learned_from_are_named():
    X, y = np.arange(12.0)[:, None], np.repeat([0, 1], 6)
    with pytest.raises(ValueError, match="Fold 1 of 2 has training points of one class only"):
        SVCPathCV(cv=KFold(2)).fit(X, y)
    three = np.array([0, 1, 2] + [0, 1] * 4 + [1])
    for labels, words in ((three, "2"), (np.array(["x", "y", "z"])[three], "'z'")):
        with pytest.raises(ValueError, match=f"Fold 1 of 3 has test points of class {words}, and no training point"):
            SVCPathCV(cv=KFold(3)).fit(X, labels)
    halves, weight = (
        [(np.arange(12), np.arange(6)), (np.arange(12), np.arange(6, 9))],
        np.repeat([1.0, 0.0, 1.0], [6, 3, 3]),
    )
    with pytest.raises(ValueError, match="Fold 2 of 2 has no test point with a weight above zero"):
        SVCPathCV(cv=halves).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="Fold 2 of 2 has no test point"):
        SVCPathCV(cv=[halves[0], (np.arange(12), [])]).fit(X, y)
    with pytest.raises(ValueError, match="Fold 1 of 12: scoring='r2' compares with the variance"):
        SVRPathCV(cv=LeaveOneOut(), scoring="r2").fit(X, X[:, 0])


def test_bad_data_are_refused(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="NaN"):
        SVCPathCV().fit(np.where(X > 20, np.nan, X), y)
    with pytest.raises(ValueError, match="at least two classes"):
        SVCPathCV().fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="inconsistent"):
        SVCPathCV().fit(X, y[:-1])
    with pytest.raises(NotFittedError):
        SVCPathCV().predict(X)
    with pytest.raises(ValueError, match="Unknown scoring"):
        SVRPathCV(scoring="max_error").fit(X, y)
    with pytest.raises(ValueError, match="epsilon"):
        SVRPathCV(epsilon=[-1.0]).fit(X, y)
    with pytest.raises(TypeError, match="takes no sample_weight"):
        SVCPathCV(scoring=lambda y, found: 1.0, C_max=1.0).fit(X, y, sample_weight=np.ones(150))


def test_a_curve_ends_where_its_paths_do(cancer):
    ours = SVCPathCV(C_max=10.0, cv=3).fit(*cancer)
    for C in (10.5, 0.001, -1.0):
        with pytest.raises(ValueError, match=r"runs from C=0.01 to C=10; got"):
            ours.cv_curve_(C)
        with pytest.raises(ValueError, match="wider range"):
            ours.cv_curve_.at(C)


def test_a_choice_at_the_end_of_the_range_is_told(cancer):
    model = SVCPathCV(C_max=0.02, cv=3).fit(*cancer)
    assert "C=0.01414 (every C is as good), accuracy" in model.in_words()
    for intervals, C, selection, said in (
        ([(0.01, 0.02)], 0.015, "best", " (every C is as good)"),
        ([(0.01, 0.012)], 0.011, "best", " (best from C_min to 0.012)"),
        ([(0.018, 0.02)], 0.015, "one_se", " (the best from 0.018 to C_max)"),
        ([(0.012, 0.016), (0.018, 0.02)], 0.014, "best", " (as good from 0.018 to C_max)"),
        ([(0.02, 0.02)], 0.02, "best", " (best at C_max)"),
        ([(0.01, 0.01)], 0.01, "best", " (best at C_min)"),
        ([(0.012, 0.016)], 0.014, "best", ""),
    ):
        model._asked["selection"], model.C_, model.best_intervals_ = selection, C, intervals
        assert f"C={C:g}{said}, accuracy" in model.in_words()


@pytest.mark.parametrize("scoring", [zero_one_loss, hamming_loss])
def test_a_loss_is_not_maximised(cancer, scoring):
    with pytest.raises(ValueError, match=rf"make_scorer\({scoring.__name__}, greater_is_better=False\)"):
        SVCPathCV(scoring=scoring).fit(*cancer)
    given = make_scorer(scoring, greater_is_better=False)
    losses = [
        1.0 - SVCPathCV(cv=3, C_max=1.0).fit(*cancer).best_score_,
        -SVCPathCV(scoring=given, cv=3, C_max=1.0).fit(*cancer).best_score_,
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)


def test_a_loss_is_told_by_its_function_and_taken_with_its_options(cancer):
    words = r"make_scorer\(zero_one_loss, greater_is_better=False, normalize=False\)"
    with pytest.raises(ValueError, match=words):
        SVCPathCV(scoring=partial(zero_one_loss, normalize=False)).fit(*cancer)
    beta = SVCPathCV(scoring=partial(fbeta_score, beta=2.0), cv=3, C_max=1.0).fit(*cancer)
    same = SVCPathCV(scoring=make_scorer(fbeta_score, beta=2.0), cv=3, C_max=1.0).fit(*cancer)
    assert beta.best_score_ == same.best_score_


def test_losses_that_labels_do_not_have(cancer):
    for scoring in (log_loss, partial(brier_score_loss, pos_label=1)):
        with pytest.raises(ValueError, match="is of probabilities, and a path is not calibrated"):
            SVCPathCV(scoring=scoring).fit(*cancer)
    with pytest.raises(ValueError, match=r"hinge_loss, greater_is_better=False, response_method='decision_function'\)"):
        SVCPathCV(scoring=hinge_loss).fit(*cancer)


def test_a_score_of_values_is_asked_for_by_its_name(cancer):
    for scoring in (roc_auc_score, average_precision_score):
        with pytest.raises(ValueError, match="in place of decision values"):
            SVCPathCV(scoring=scoring).fit(*cancer)


@pytest.mark.filterwarnings("ignore:The least populated class")  # scikit-learn's, of the folds
def test_a_class_of_one_row_and_numbers_that_are_no_classes_are_told():
    X, y = load_iris(return_X_y=True)
    y[0] = 3
    with pytest.raises(ValueError, match=r"class 3, and no training point\. It has one row in all"):
        SVCPathCV().fit(X, y)
    only = np.arange(51) < 50  # of the two classes that are left one has a single row
    for cv in (3, KFold(3)):
        with pytest.raises(ValueError, match=r"one class only, \[True\]\. The other has one row in all"):
            SVCPathCV(cv=cv).fit(X[:51], only)
    with pytest.raises(ValueError, match="numbers are no classes, SVRPathCV is what you want"):
        SVCPathCV().fit(*load_diabetes(return_X_y=True))


def test_an_error_in_a_fold_names_the_search():
    X, y = load_iris(return_X_y=True)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="SVCPathCV does not accept missing values"):
        SVCPathCV(transformer=StandardScaler()).fit(X, y)


def test_a_gap_is_checked_before_any_fold_and_gamma_may_be_an_array_of_none(cancer):
    for gap in (2.0, 1e-30):
        with pytest.raises(ValueError, match=r"^gap must be below 1"):
            SVCPathCV(gap=gap).fit(*cancer)
    assert SVCPathCV(gamma=np.array(0.5), C_max=1.0, cv=2).fit(*cancer).gamma_ == 0.5


def test_numbers_that_are_no_classes_are_told_where_to_go(cancer):
    X, _ = cancer
    with pytest.raises(
        ValueError, match=r"number of members in each class. y has 20 classes in 60 rows: .*use SVRPathCV"
    ):
        SVCPathCV().fit(X[:60], np.repeat(np.arange(20), 3))
    with pytest.raises(ValueError, match=r"members in each class\.$"):
        SVCPathCV(cv=9).fit(X[:16], np.tile([0, 1], 8))


def test_a_search_by_costs_is_printed_in_one_line():
    assert "\n" not in repr(SVCPathCV(scoring=cost_matrix_scorer([[0, 10], [1, 0]], labels=[0, 1])))


def test_what_a_score_raises_tells_where():
    def score(y, found):
        if y.size == 3:
            raise ZeroDivisionError("no such score")
        return 1.0

    X, y = np.arange(12.0)[:, None], np.tile([0, 1], 6)
    folds = [(np.arange(6), np.arange(6, 12)), (np.arange(6), np.arange(3))]
    with pytest.raises(ZeroDivisionError, match="no such score") as caught:
        SVCPathCV(cv=folds, scoring=score, gamma=0.5).fit(X, y)
    assert caught.value.__notes__ == ["In fold 2 of 2, 'rbf', gamma=0.5."]
