"""The mean of curves, with its best values."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from zerogap import SVCPathCV, SVRPathCV
from zerogap.estimators.cv_curve import cv_curve, spread
from zerogap.path import ErrorCurve, SampledScoreCurve, ScoreCurve


def random_curves(rng, count):
    curves = []
    for _ in range(count):
        edges = np.concatenate(
            [[0.1], np.sort(np.exp(rng.uniform(np.log(0.1), np.log(10.0), rng.integers(0, 9)))), [10.0]]
        )
        curves.append(ScoreCurve(edges, rng.integers(0, 7, edges.size - 1) / 6))
    return curves


@pytest.mark.thin(4)
@pytest.mark.parametrize("seed", range(20))
def test_means_of_random_curves(seed):
    rng = np.random.default_rng(seed)
    folds = random_curves(rng, int(rng.integers(1, 6)))
    curve, C = cv_curve(folds), np.exp(rng.uniform(np.log(0.1), np.log(10.0), 300))
    np.testing.assert_allclose(curve(C), np.mean([fold(C) for fold in folds], axis=0), atol=1e-12)
    assert curve.best_score >= curve(C).max()
    assert curve(curve.best_C) == curve.best_score
    for (_, end), (begin, _) in zip(curve.best_intervals[:-1], curve.best_intervals[1:], strict=True):
        assert end < begin  # neighbours are one interval


def test_equal_means_are_equal_whatever_the_order_of_the_folds():
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.7])
    edges = np.geomspace(1.0, 10.0, 6)
    folds = [ScoreCurve(edges, np.roll(scores, k)) for k in range(5)]
    assert len({float(sum(fold.score[k] for fold in folds)) for k in range(5)}) > 1
    assert cv_curve(folds).best_intervals == [(1.0, 10.0)]


def test_the_mean_of_quadratics_has_its_maximum_between_those_of_the_folds():
    def parabola(at):
        return ErrorCurve("r2", "C", np.array([0.5, 8.0]), *(np.array([v]) for v in (at, 1.0, 0.0, 0.01)))

    curve = cv_curve([parabola(2.0), parabola(5.0)])
    assert curve.best_C == pytest.approx(3.5, rel=1e-14)
    assert curve.best_score == pytest.approx(1.0 - 0.01 * 1.5**2, rel=1e-14)
    kinked = ErrorCurve(
        "r2", "C", np.array([0.5, 3.0, 8.0]), np.array([3.0, 3.0]), *np.array([[1, 1], [0.5, 0.5], [0, 0.0]])
    )
    assert cv_curve([kinked, parabola(5.0)]).best_C == 3.0


def test_curves_that_end_early_share_a_range():
    folds = [ScoreCurve(np.array([0.1, 1.0, end]), np.array([0.5, 0.7])) for end in (4.0, 9.0)]
    assert cv_curve(folds).edges.tolist() == [0.1, 1.0, 4.0]


def test_a_score_that_is_nowhere_defined():
    curve = cv_curve([ScoreCurve(np.array([0.1, 1.0]), np.array([np.nan]))])
    assert curve.best_intervals == []
    assert "no score is defined" in repr(curve)


def test_a_curve_that_is_sampled_keeps_the_samples_all_folds_have():
    samples = np.geomspace(0.1, 10.0, 9)
    folds = [SampledScoreCurve.at(samples[:k], np.linspace(0.5, 0.7, k)) for k in (9, 6)]
    curve = cv_curve(folds)
    np.testing.assert_array_equal(curve.mean.samples, samples[:6])
    assert curve.best_C == samples[5]


def test_equal_folds_have_no_standard_error_and_infinite_scores_are_no_best():
    edges = np.array([0.1, 1.0, 10.0])
    equal = cv_curve([ScoreCurve(edges, np.array([0.4, 0.7]))] * 3)
    assert equal.std_error(np.array([0.5, 5.0])).tolist() == [0.0, 0.0]
    some = cv_curve([ScoreCurve(edges, np.array([score, 2.5])) for score in (-np.inf, 0.5, 0.5)])
    assert (some.best_score, some.best_intervals, some(0.5)) == (2.5, [(1.0, 10.0)], -np.inf)
    assert np.isnan(some.std_error(0.5))


def test_values_that_are_no_numbers_have_no_score():
    X, y = make_moons(60, noise=0.3, random_state=0)
    for search in (SVCPathCV(gamma=1.0, cv=3), SVRPathCV(gamma=1.0, cv=3, C_max=10.0)):
        curve = search.fit(X, y).cv_curve_
        for C in ("1", True, None, [1.0, "2"]):
            with pytest.raises(ValueError, match="C must be a number, or an array of them; got"):
                curve(C)
        with pytest.raises(ValueError, match="C must be a number"):
            curve.at("1")
        with pytest.raises(ValueError, match=r"at\(C\) is of one C; got 2 of them"):
            curve.at([1.0, 2.0])
        assert curve([[1.0, 2.0]]).shape == (1, 2)
        assert curve(np.float32(2)) == curve(2) == curve(np.array(2.0)) == curve.at(2).mean


def test_scores_that_differ_in_their_last_digits_have_no_spread():
    scores = np.array([[0.9666, 0.5], [0.9666 + 1.1e-16, 0.7], [0.9666 - 1.1e-16, 0.6]])
    assert spread(scores, ddof=1).tolist() == [0.0, pytest.approx(0.1)]
