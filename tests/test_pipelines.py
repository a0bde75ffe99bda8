"""Score curves of pipelines, and points on another scale than the path was fitted to."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import betabinom, hypergeom
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from zerogap import SVC, SVCPath, datasets, score_curve, validation

SHIPPED = ("breast_cancer", "digits", "iris", "wine", "diabetes_regression")


@pytest.fixture(scope="module")
def cancer():
    X, y = datasets.load("breast_cancer")
    return train_test_split(X, y, random_state=0)


@pytest.fixture(scope="module")
def pipe(cancer):
    X, _, y, _ = cancer
    return make_pipeline(StandardScaler(), SVCPath(C_min=0.1, C_max=10.0)).fit(X, y)


def test_the_score_curve_of_a_pipeline_is_that_of_its_predictions(cancer, pipe):
    _, X, _, y = cancer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = score_curve(pipe, X, y)
    for C in np.sqrt(curve.C[:-1] * curve.C[1:])[::5]:
        assert curve(C) == pytest.approx(np.mean(pipe.predict(X, C=C) == y))
    assert curve.best_score > 0.97
    final = make_pipeline(*pipe[:-1], pipe[-1].at(3.0))
    assert final.score(X, y) == pytest.approx(curve(3.0))
    weighted = score_curve(pipe, X, y, sample_weight=y + 1.0)
    assert weighted(3.0) == pytest.approx(np.average(pipe.predict(X, C=3.0) == y, weights=y + 1.0))


def test_steps_within_steps_and_searches_are_gone_through(cancer, pipe):
    X, test, y, y_test = cancer
    expected = score_curve(pipe, test, y_test)
    plain = SVCPath(C_min=0.1, C_max=10.0)
    nested = Pipeline([("scale", StandardScaler()), ("rest", make_pipeline(plain))]).fit(X, y)
    np.testing.assert_array_equal(score_curve(nested, test, y_test).score, expected.score)
    search = GridSearchCV(make_pipeline(StandardScaler(), plain), {"svcpath__C": [1.0]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(score_curve(search, test, y_test).score, expected.score)
    alone = score_curve(pipe[-1], pipe[:-1].transform(test), y_test)
    np.testing.assert_array_equal(alone.score, expected.score)


def test_other_models_are_refused(cancer):
    X, test, y, y_test = cancer
    with pytest.raises(TypeError, match="takes a fitted SVCPath or SVRPath, or a pipeline that ends in one; got SVC"):
        score_curve(SVC(), test, y_test)
    with pytest.raises(TypeError, match="got Pipeline, which ends in SVC"):
        score_curve(make_pipeline(StandardScaler(), SVC()).fit(X, y), test, y_test)


def test_raw_points_of_a_pipeline_are_warned_of(cancer, pipe):
    """Its last step scores them as they are, 0.64 where the pipeline has 0.99."""
    _, X, _, y = cancer
    with pytest.warns(
        UserWarning, match=r"another scale.*in 9 of 30 features.*zerogap\.score_curve\(pipe, X, y\)"
    ) as caught:
        raw = pipe[-1].score_curve(X, y)
    assert raw.best_score < 0.7
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(UserWarning, match="another scale"):
        pipe[-1].score_curve(X[:8], y[:8])


def test_a_kernel_matrix_has_no_scale_of_features(cancer):
    X, test, y, y_test = (part[:60] for part in cancer)
    path = SVCPath(kernel="precomputed", C_min=0.1, C_max=1.0).fit(X @ X.T, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.score_curve(1e-3 * test @ X.T, y_test)


# When points are on another scale.


def splits(X, rng, count):
    """Yield random parts of all sizes."""
    for _ in range(count):
        for m in (1, 2, 5, 20, X.shape[0] // 5, X.shape[0] // 2):
            if X.shape[0] >= m + 10:
                order = rng.permutation(X.shape[0])
                yield X[order[m:]][:2000], X[order[:m]][:2000]


def alarms(X, rng, count):
    return [said for known, held_out in splits(X, rng, count) if (said := validation.other_scale(held_out, known))]


@pytest.mark.parametrize("name", SHIPPED)
def test_no_alarm_on_random_splits(name):
    X = datasets.load(name)[0]
    assert alarms(X, np.random.default_rng(0), 10) == []
    assert alarms(StandardScaler().fit_transform(X), np.random.default_rng(1), 5) == []
    half = X.shape[0] // 2
    for known, held_out in ((X[:half], X[half:]), (X[half:], X[:half])):  # iris and wine are sorted by class
        assert not validation.other_scale(held_out, known)


@pytest.mark.parametrize("n", [20, 200, 2000])
def test_no_alarm_on_heavy_tails(n):
    rng = np.random.default_rng(n)
    for X in (rng.lognormal(0.0, 3.0, (n, 1)), rng.standard_cauchy((n, 3)), rng.integers(0, 2, (n, 5)) * 1.0):
        assert alarms(X, rng, 20) == []


@pytest.mark.long
def test_no_alarm_on_random_splits_of_local_data():
    folder = datasets.data_folder()
    if folder is None:
        pytest.skip("no local data folder; set ZEROGAP_DATA to run this")
    told = names = 0
    for file in sorted(folder.glob("*.svm.gz")):
        X, _ = datasets.read(file)
        if X.shape[0] * X.shape[1] > 2e7:
            continue
        X = X.toarray() if sparse.issparse(X) else X
        rng = np.random.default_rng(0)
        assert alarms(X, rng, 20) == [], file.name
        X = X[rng.permutation(X.shape[0])][:3000]
        half = X.shape[0] // 2
        told += bool(validation.other_scale(X[half:], StandardScaler().fit_transform(X[:half])))
        names += 1
    assert told >= 0.6 * names  # raw against standardised: the others have about the same range


@pytest.mark.covering
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("name", SHIPPED)
def test_raw_points_against_scaled_ones_are_told(name, scaler):
    X = np.random.default_rng(0).permutation(datasets.load(name)[0])
    half = X.shape[0] // 2
    scaled = scaler.fit_transform(X[:half])
    assert validation.other_scale(X[half:], scaled)
    assert validation.other_scale(X[half : half + 20], scaled)
    assert not validation.other_scale(scaler.transform(X[half:]), scaled)


def test_what_cannot_be_told_is_not():
    rng = np.random.default_rng(0)
    known, far = rng.normal(size=(100, 3)), 100.0 + rng.normal(size=(50, 3))
    assert "in 3 of 3 features most of them are farther" in validation.other_scale(far, known)
    assert not validation.other_scale(sparse.csr_matrix(far), sparse.csr_matrix(known))
    assert not validation.other_scale(far[:1], known)  # one point may be an outlier
    assert not validation.other_scale(far, known[:3])
    assert not validation.other_scale(far, np.ones((100, 3)))  # a feature that does not vary has no scale
    assert not validation.other_scale(np.concatenate([far[:20], known[:30]]), known)  # nor do outliers make one
    assert "where only" in validation.other_scale(0.01 * known, known)


def improbable_far(n, m, d):
    """The least number of points beyond all others that is improbable enough, from the law of ranks in SciPy."""
    for h in range((m + 1) // 2, m + 1):
        # The h largest of n + m are all among the m.
        if 2 * d * hypergeom(n + m, m, h).pmf(h) <= validation.IMPROBABLE:
            return h
    return math.inf


@pytest.mark.parametrize(
    ("n", "m", "d"), [(20, 10, 1), (20, 60, 2), (100, 5, 1), (100, 5, 200), (50, 8, 3), (1000, 3, 1)]
)
def test_the_probability_of_points_far_off_is_that_of_ranks(n, m, d):
    known, found = np.tile(np.linspace(0.0, 1.0, n)[:, None], (1, d)), math.inf
    for h in range(m, 0, -1):
        X = np.full((m, d), 0.5)
        X[:h] = 5.0
        if "farther" in validation.other_scale(X, known):
            found = h
    assert found == improbable_far(n, m, d)


@pytest.mark.parametrize(
    ("n", "m", "d"),
    [(20, 20, 1), (100, 12, 1), (100, 14, 3), pytest.param(1000, 12, 1, marks=pytest.mark.long), (300, 13, 40)],
)
def test_the_probability_of_a_narrow_range_is_that_of_ranks(n, m, d):
    known = np.tile(np.arange(n, dtype=float)[:, None], (1, d))
    for k in range(n // 5 + 2):
        X = np.tile(np.linspace(-0.25, k - 0.75, m)[:, None], (1, d)) if k else np.full((m, d), 0.5)
        rare = d * betabinom(n, m - 1, 2).cdf(k) <= validation.IMPROBABLE and k <= validation.NARROW * n
        assert bool(validation.other_scale(X, known)) == rare, k
