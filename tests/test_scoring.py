"""Scores of a path for every C: any scorer of predictions exactly, those of decision values sampled."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import (
    accuracy_score,
    adjusted_rand_score,
    average_precision_score,
    cohen_kappa_score,
    f1_score,
    fbeta_score,
    get_scorer,
    make_scorer,
    precision_score,
    roc_auc_score,
    zero_one_loss,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zerogap import SVCPath, cost_matrix_scorer, score_curve
from zerogap.estimators import formulas
from zerogap.estimators import scoring as scoring_module
from zerogap.path import SampledScoreCurve, ScoreCurve
from zerogap.wording import number, score_in_words

WORDS = np.array(["no", "yes", "maybe"])


def data(k, n=45, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = rng.normal(size=(n, 2)) + 1.2 * np.array([[c == 1, c == 2] for c in y])
    return X, WORDS[y]


@pytest.fixture(scope="module")
def models():
    return {k: SVCPath(C_min=1e-2, C_max=30.0).fit(*data(k)) for k in (2, 3)}


def streaks(y_true, y_pred, sample_weight=None):
    """A metric of the order of the points: the confusion matrix does not tell it."""
    return float(np.count_nonzero(y_pred[1:] != y_pred[:-1]))


def share_of_yes(y_true, y_pred):
    return float(np.mean(y_pred == "yes"))


COSTS = [[0.0, 3.0, 1.0], [0.5, 0.0, 2.0], [1.0, 1.0, -0.25]]
SCORERS = {
    "balanced_accuracy": (2, 3),
    "f1_macro": (2, 3),
    "f1_weighted": (2, 3),
    "precision_micro": (2, 3),
    "jaccard_macro": (2, 3),
    "matthews_corrcoef": (2, 3),
    "adjusted_mutual_info_score": (2, 3),
    "kappa": (2, 3),
    "f1 of yes": (2,),
    "f2 of no": (2,),
    "precision of two": (3,),
    "errors": (2, 3),
    "costs": (2, 3),
    "rand": (3,),
    "streaks": (2, 3),
    "share of yes": (2, 3),
}


QUICK = [("f1_macro", 3), ("f1 of yes", 2), ("costs", 3), ("streaks", 3)]


def scorer(name, k):
    return pytest.param(name, k, marks=() if (name, k) in QUICK else pytest.mark.long)


def made(name, k):
    return {
        "kappa": make_scorer(cohen_kappa_score),
        "f1 of yes": make_scorer(f1_score, pos_label="yes"),
        "f2 of no": make_scorer(fbeta_score, beta=2.0, pos_label="no"),
        "precision of two": make_scorer(precision_score, labels=["no", "yes"], average="macro", zero_division=1.0),
        "errors": make_scorer(zero_one_loss, greater_is_better=False, normalize=False),
        "costs": cost_matrix_scorer(np.array(COSTS)[:k, :k], labels=WORDS[:k]),
        "rand": adjusted_rand_score,
        "streaks": streaks,
        "share of yes": share_of_yes,
    }.get(name, name)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize(("name", "k"), [scorer(name, k) for name, several in SCORERS.items() for k in several])
def test_a_curve_is_the_score_of_the_model_at_every_C(models, name, k):
    path, (X, y) = models[k], data(k, 40, seed=1)
    scoring = made(name, k)
    curve = path.score_curve(X, y, scoring=scoring)
    assert type(curve) is ScoreCurve
    assert curve.is_exact
    as_scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    as_scorer = make_scorer(as_scorer) if name in ("rand", "streaks", "share of yes") else as_scorer
    rng = np.random.default_rng(2)
    edges = rng.permutation(curve.C[1:-1])[:5]
    for C in np.concatenate([10 ** rng.uniform(-2, 1.4, 8), edges * (1 + 1e-9), edges * (1 - 1e-9)]):
        assert curve(C) == pytest.approx(as_scorer(path.at(C), X, y), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "name", ["f1_macro", *(pytest.param(n, marks=pytest.mark.long) for n in ("balanced_accuracy", "costs"))]
)
def test_weights_of_points(models, name):
    path, (X, y) = models[3], data(3, 40, seed=1)
    weight = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 7.7], 40)
    scoring = made(name, 3)
    curve = path.score_curve(X, y, weight, scoring=scoring)
    as_scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    for C in 10 ** np.random.default_rng(3).uniform(-2, 1.4, 8):
        assert curve(C) == pytest.approx(as_scorer(path.at(C), X, y, sample_weight=weight), rel=1e-12)


def test_weights_leave_nothing_behind():
    """A point of weight 1e16 hides those of weight one in a sum: what they leave is seen when it goes."""
    found = scoring_module.Predictions(
        np.array([0, 0]), np.array([1.0, 2.0]), np.array([0, 0]), np.array([1, 0]), (0.5, 3.0)
    )
    held = scoring_module.Held([], np.zeros((0, 2)), [], np.array([0, 1]), np.array([1, 1]), np.array([1e16, 1.0]))
    pieces = scoring_module._Pieces(held, found)
    for k, expected in enumerate(([1e16 + 1.0, 0.0], [1.0, 1e16], [1e16 + 1.0, 0.0])):
        pieces.go_to(k)
        assert pieces.weights[1].tolist() == expected


def test_accuracy_by_any_way_is_the_same(models):
    path, (X, y) = models[3], data(3, 40, seed=1)
    plain = path.score_curve(X, y)
    for scoring in ("accuracy", accuracy_score, make_scorer(accuracy_score)):
        curve = path.score_curve(X, y, scoring=scoring)
        np.testing.assert_array_equal(curve.C, plain.C)
        np.testing.assert_allclose(curve.score, plain.score, rtol=1e-15)


def test_the_confusion_matrix_is_enough_where_it_is(models, monkeypatch):
    path, (X, y) = models[3], data(3, 40, seed=1)
    calls = []
    of_labels = scoring_module._Score.of_labels
    monkeypatch.setattr(scoring_module._Score, "of_labels", lambda *a: calls.append(1) or of_labels(*a))
    path.score_curve(X, y, scoring=make_scorer(cohen_kappa_score))
    assert 1 <= len(calls) <= 4  # those that verify it
    calls.clear()
    curve = path.score_curve(X, y, scoring=streaks)
    different = {path.predict(X, C).tobytes() for C in np.sqrt(curve.C[:-1] * curve.C[1:])}
    assert len(calls) >= len(different) > 20


CELLS = ["f1", "f1_micro", "f1_macro", "f1_weighted", "precision", "precision_macro", "recall", "recall_weighted", "jaccard",
         "jaccard_micro", "jaccard_weighted", "balanced_accuracy", "accuracy", "matthews_corrcoef"]  # fmt: skip


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.UndefinedMetricWarning", "ignore:y_pred contains classes", "ignore:A single label"
)
def test_formulas_are_scikit_learns_scores(k, weighted):
    """Confusion matrices of few points, so that classes are missing, predictions empty and weights zero."""
    rng, compared = np.random.default_rng(0), 0
    names = CELLS if k == 2 else [name for name in CELLS if get_scorer(name)._kwargs.get("average") != "binary"]
    for name in names:
        metric = get_scorer(name)
        formula = formulas.of_cells(metric, np.arange(k))
        for _ in range(6):
            y, found = rng.integers(k, size=(2, rng.integers(2, 9)))
            weight = rng.choice([0.0, 0.3, 2.0], y.size) if weighted else np.ones(y.size)
            counts, weights = np.zeros((k, k), dtype=int), np.zeros((k, k))
            np.add.at(counts, (y, found), 1)
            np.add.at(weights, (y, found), weight)
            value = formula(counts, weights)
            if value is not None:
                options = {"sample_weight": weight} if weighted else {}
                assert value == pytest.approx(
                    metric._score_func(y, found, **metric._kwargs, **options), rel=4e-15, abs=4e-15
                )
                compared += 1
    assert compared > 2 * len(names)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("formula", "expected"),
    [(formulas.area_under_roc, roc_auc_score), (formulas.average_precision, average_precision_score)],
)
def test_formulas_of_decision_values_are_scikit_learns(weighted, formula, expected):
    """Values of three sizes, so that many are equal."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        y, values = rng.integers(2, size=12), rng.integers(3, size=12).astype(float)
        y[:2] = 0, 1
        weight = rng.choice([0.0, 0.5, 3.0], 12) if weighted else None
        if weight is not None:
            weight[:2] = 1.0
        found = formula(values, y == 1, weight)
        assert found == pytest.approx(expected(y, values, sample_weight=weight), rel=4e-15)
    assert formulas.area_under_roc(values, np.ones(12, dtype=bool), None) is None
    assert formulas.average_precision(values, np.zeros(12, dtype=bool), None) is None


def test_average_precision_by_its_name_is_a_formula(models, monkeypatch):
    calls = []
    call = scoring_module._Score._call
    monkeypatch.setattr(scoring_module._Score, "_call", lambda *a: calls.append(1) or call(*a))
    X, y = data(2, 40, seed=1)
    path = SVCPath(C_min=0.1, C_max=10.0, gamma=1.0).fit(X, y == "yes")
    curve = path.score_curve(X, y == "yes", scoring="average_precision")
    assert len(calls) == 1 < curve.score.size
    at = float(curve.samples[curve.samples.size // 2])
    assert curve(at) == pytest.approx(get_scorer("average_precision")(path.at(at), X, y == "yes"), abs=1e-12)


def test_the_best_C_is_in_the_middle_of_the_widest_interval():
    curve = ScoreCurve(np.array([0.1, 0.2, 1.0, 9.0, 10.0]), np.array([0.9, 0.5, 0.9, 0.7]))
    assert curve.best_C == pytest.approx(3.0, rel=1e-15)
    samples = SampledScoreCurve.at(np.array([0.1, 1.0, 2.0, 10.0]), np.array([0.5, 0.75, 0.75, 0.6]))
    assert len(samples.best_intervals) == 1  # neighbours with one score are one
    assert samples.best_C == 1.0  # where the score is known; the middle is at about 1.19
    with pytest.raises(ValueError, match="not defined"):
        _ = ScoreCurve(np.array([0.1, 1.0]), np.array([np.nan])).best_C


def test_scores_have_names():
    costs = cost_matrix_scorer([[0, 10], [1, 0]], labels=[0, 1])
    assert scoring_module.scoring_name("roc_auc") == "roc_auc"
    assert scoring_module.scoring_name(costs) == "neg_mean_cost"
    assert scoring_module.scoring_name(accuracy_score) == "accuracy_score"
    assert scoring_module.scoring_name(lambda y, p: 0.0) == "score"
    assert [score_in_words(name) for name in ("roc_auc", "neg_mean_cost", "f1_macro")] == [
        "ROC AUC",
        "minus mean cost",
        "f1 macro",
    ]
    assert [number(value, 2) for value in (134.0, 0.00456, 1.34e7)] == ["130", "0.0046", "1.3e+07"]


def test_no_scorer_is_called_a_thousand_times(models, monkeypatch):
    """Formulas where there are some, one call for each order of the values of others."""
    calls = []
    call = scoring_module._Score._call
    monkeypatch.setattr(scoring_module._Score, "_call", lambda *a: calls.append(1) or call(*a))
    (X, y), path = data(2, 40, seed=1), models[2]
    curve = path.score_curve(X, y, scoring="roc_auc")
    assert len(calls) == 1 < curve.score.size
    path.score_curve(X, y, scoring="f1_macro")
    assert len(calls) == 2
    path.score_curve(
        X, y, scoring=make_scorer(average_precision_score, response_method="decision_function", pos_label="yes")
    )
    orders = {np.argsort(path.decision_function(X, C), kind="stable").tobytes() for C in curve.samples}
    assert len(calls) - 3 <= len(orders) < curve.score.size


def test_a_score_that_needs_more_points_than_cells_is_asked_of_all(models):
    """R² of one point is not defined: where all predictions are right and of one class there is one cell only."""
    X, y = data(2, 20)
    path = SVCPath(C_min=1e-3, C_max=1e3, gamma=1.0).fit(X, y == "yes")
    truth = np.array([0.0, 1.0, 1.0, 0.0])
    curve = path.score_curve(X[:4], truth.astype(bool), scoring="r2")
    for C in 10 ** np.random.default_rng(3).uniform(-3, 3, 8):
        assert curve(C) == pytest.approx(get_scorer("r2")(path.at(C), X[:4], truth.astype(bool)))


# Decision values.


@pytest.mark.parametrize(("name", "k"), [("roc_auc", 2), scorer("average_precision", 2), scorer("top_k_accuracy", 3)])
def test_scores_of_decision_values_are_sampled_and_say_so(models, name, k):
    path, (X, y) = models[k], data(k, 40, seed=1)
    scorer = make_scorer(get_scorer(name)._score_func, response_method="decision_function", pos_label="yes")
    scoring = scorer if name == "average_precision" else name
    curve = path.score_curve(X, y, scoring=scoring)
    assert isinstance(curve, SampledScoreCurve)
    assert not curve.is_exact
    assert set(path.breakpoints_) <= set(curve.samples)
    C, score = curve  # still a pair
    assert C.size == score.size + 1 == curve.samples.size + 1
    assert (C[0], C[-1]) == (path.breakpoints_[0], path.breakpoints_[-1])
    for at in np.random.default_rng(0).choice(curve.samples, 6):
        expected = (scorer if name == "average_precision" else get_scorer(name))(path.at(at), X, y)
        assert curve(at) == pytest.approx(expected, abs=1e-12)
    assert "sampled at" in repr(curve)
    assert "not exact in between" in repr(curve)
    assert "sampled" in curve._repr_html_()
    assert "ScoreCurve" in repr(curve)


def test_decision_values_come_in_the_shape_asked_for(models):
    (X, y), seen = data(3, 40, seed=1), []

    def columns(y_true, values):
        seen.append(values.shape)
        return 0.0

    scorer = make_scorer(columns, response_method="decision_function")
    for shape in ("ovr", "ovo"):
        path = SVCPath(C_min=0.1, C_max=1.0, decision_function_shape=shape).fit(*data(3))
        path.score_curve(X, y, scoring=scorer)
    assert set(seen) == {(40, 3)}


def test_what_cannot_be_computed_is_refused(models):
    X, y = data(3, 40, seed=1)
    with pytest.raises(ValueError, match=r"scoring='neg_log_loss' needs more than .*probabilities.*not calibrated"):
        models[3].score_curve(X, y, scoring="neg_log_loss")
    with pytest.raises(TypeError, match=r"takes \(estimator, X, y\).*make_scorer"):
        models[3].score_curve(X, y, scoring=lambda estimator, X, y: 0.0)
    with pytest.raises(TypeError, match="got list"):
        models[3].score_curve(X, y, scoring=["accuracy", "f1_macro"])
    with pytest.raises(ValueError, match="accuracyy"):
        models[3].score_curve(X, y, scoring="accuracyy")
    with pytest.raises(TypeError, match=r"must give a number; got ndarray of shape \(3,\)"):
        models[3].score_curve(X, y, scoring=make_scorer(lambda y_true, y_pred: np.zeros(3)))
    with pytest.raises(TypeError, match="takes no sample_weight"):
        models[3].score_curve(X, y, np.ones(40), scoring=adjusted_rand_score)


def test_a_cost_matrix_is_of_its_labels(models):
    X, y = data(2, 40, seed=1)
    with pytest.raises(ValueError, match="shape \\(2, 3\\)"):
        cost_matrix_scorer([[0, 1, 2], [1, 0, 2]], labels=["no", "yes"])
    with pytest.raises(ValueError, match=r"costs are of labels \['maybe', 'no'\]; y is .*yes"):
        models[2].score_curve(X, y, scoring=cost_matrix_scorer([[0, 1], [1, 0]], labels=["no", "maybe"]))
    turned = cost_matrix_scorer([[0.0, 0.5], [3.0, 0.0]], labels=["yes", "no"])
    same = cost_matrix_scorer([[0.0, 3.0], [0.5, 0.0]], labels=["no", "yes"])
    curves = [models[2].score_curve(X, y, scoring=scorer) for scorer in (turned, same)]
    np.testing.assert_array_equal(curves[0].score, curves[1].score)


def test_a_score_that_is_nowhere_defined(models):
    X, y = data(2, 20)
    curve = models[2].score_curve(X, y, scoring=lambda y_true, y_pred: np.nan)
    assert np.isnan(curve.best_score)
    assert curve.best_intervals == []
    assert "no score is defined" in repr(curve)
    assert "not defined" in curve._repr_html_()


def test_through_a_pipeline(models):
    X, y = data(3)
    pipe = make_pipeline(StandardScaler(), SVCPath(C_max=10.0)).fit(X, y)
    curve = score_curve(pipe, X, y, scoring="f1_macro")
    assert curve(3.0) == pytest.approx(f1_score(y, pipe.predict(X, C=3.0), average="macro"))


def test_known_answers_are_an_estimator():
    assert isinstance(scoring_module._Known(WORDS), BaseEstimator)
    assert "maybe" in repr(scoring_module._Known(WORDS))
