"""The error of held-out points for every C, or epsilon: against samples, calculus and exact arithmetic."""

from fractions import Fraction

import naive
import numpy as np
import pytest

from zerogap import SVRPath
from zerogap.path import ErrorCurve
from zerogap.path.error_curve import _absolute, _squares

RNG = np.random.default_rng(2)
X = RNG.normal(size=(40, 2))
y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.normal(size=40)
X_test = RNG.normal(size=(25, 2))
y_test = np.sin(2.0 * X_test[:, 0]) + 0.3 * RNG.normal(size=25)
SCORINGS = ("neg_mean_squared_error", "neg_mean_absolute_error", "r2")


@pytest.fixture(scope="module", params=["C", "epsilon"])
def model(request):
    return SVRPath(over=request.param, C_min=1e-2, C_max=100.0, epsilon=0.05).fit(X, y)


def sampled(model, values, scoring):
    """The score from predictions at many values; of those on one segment all are in one product."""
    residuals = model.predict(X_test, **{model.over: values}) - y_test
    if scoring == "neg_mean_absolute_error":
        return -np.abs(residuals).mean(axis=1)
    squares = np.square(residuals).mean(axis=1)
    return -squares if scoring == "neg_mean_squared_error" else 1.0 - squares / np.var(y_test)


@pytest.mark.covering
@pytest.mark.parametrize("scoring", SCORINGS)
def test_no_sample_is_better_and_all_are_on_the_curve(model, scoring):
    curve = model.score_curve(X_test, y_test, scoring=scoring)
    first, last = curve.edges[[0, -1]]
    np.testing.assert_array_equal([first, last], np.sort(model.breakpoints_[[0, -1]]))
    share = np.random.default_rng(3).uniform(size=400)
    values = first * (last / first) ** share if model.over == "C" else first + share * (last - first)
    scores = sampled(model, values, scoring)
    # Predictions are sums of 40 terms, of coefficients up to C; what is between two breakpoints was never predicted.
    np.testing.assert_allclose(curve(values), scores, rtol=0, atol=1e-10)
    assert scores.max() <= curve.best_score + 1e-10
    best = getattr(curve, f"best_{model.over}")
    assert curve(best) == curve.best_score
    assert sampled(model, np.array([best]), scoring)[0] == pytest.approx(curve.best_score, abs=1e-10)
    assert curve.worst_score == pytest.approx(min(curve(curve.edges)), abs=1e-13)
    assert curve.worst_score <= scores.min() + 1e-10
    assert curve.is_exact


@pytest.mark.covering
@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_best_value_is_a_minimum_by_calculus(model, scoring):
    """On both sides of it the score falls, or it is an end; and inside a piece its derivative is zero."""
    curve = model.score_curve(X_test, y_test, scoring=scoring)
    best = getattr(curve, f"best_{model.over}")
    for step in (1e-3, 1e-6):
        for near in (best - step, best + step):
            if curve.edges[0] <= near <= curve.edges[-1]:
                assert curve(near) <= curve.best_score
    k = int(np.argmax(curve.top))
    if curve.edges[k] < best < curve.edges[k + 1]:
        assert curve.slope[k] == 0.0
        begin, end = curve.edges[k], curve.edges[k + 1]
        r0, r1 = (model.predict(X_test, **{model.over: x}) - y_test for x in (begin, end))
        r = model.predict(X_test, **{model.over: best}) - y_test
        assert abs(r @ (r1 - r0)) <= 1e-9 * np.linalg.norm(r) * np.linalg.norm(r1 - r0) + 1e-13


@pytest.mark.covering
@pytest.mark.parametrize("scoring", SCORINGS)
def test_pieces_meet(model, scoring):
    curve = model.score_curve(X_test, y_test, scoring=scoring)
    assert (np.diff(curve.edges) > 0.0).all()
    assert (curve.slope >= 0.0).all()
    assert (curve.curvature >= 0.0).all()
    assert ((curve.edges[:-1] <= curve.at) & (curve.at <= curve.edges[1:])).all()

    def of_piece(k, x):
        d = abs(x - curve.at[k])
        return curve.top[k] - curve.slope[k] * d - curve.curvature[k] * d**2

    left = [of_piece(k, curve.edges[k + 1]) for k in range(curve.top.size - 1)]
    right = [of_piece(k + 1, curve.edges[k + 1]) for k in range(curve.top.size - 1)]
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


def test_the_absolute_error_has_kinks_where_a_prediction_is_right(model):
    curve = model.score_curve(X_test, y_test, scoring="neg_mean_absolute_error")
    kinks = np.setdiff1d(curve.edges, model.breakpoints_)
    assert kinks.size > 10
    assert not curve.curvature.any()
    off = np.abs(model.predict(X_test, **{model.over: kinks}) - y_test).min(axis=1)
    np.testing.assert_allclose(off, 0.0, rtol=0, atol=1e-10)


def exactly(x0, x1, r0, r1, weight, x, size):
    """The error at x in exact arithmetic."""
    x0, x1, x = Fraction(x0), Fraction(x1), Fraction(x)
    s = (x - x0) / (x1 - x0)
    residuals = [(1 - s) * Fraction(a) + s * Fraction(b) for a, b in zip(r0.tolist(), r1.tolist(), strict=True)]
    return sum(Fraction(w) * size(r) for w, r in zip(weight.tolist(), residuals, strict=True))


@pytest.mark.parametrize("depth", [1.0, 1e-4, 1e-8])
@pytest.mark.parametrize("is_down", [False, True])
def test_deep_minima_have_all_their_digits(depth, is_down):
    """Residuals of size one that pass zero nearly together: at the minimum the error is ``depth`` squared of what it is at the
    ends, and a quadratic about an end would have lost so many digits there."""
    rng = np.random.default_rng(5)
    n, d = 20, rng.choice([-1.0, 1.0], size=20)
    r0 = -0.375 * d + 0.3 * depth * rng.normal(size=n)
    r1, weight = r0 + d, np.full(n, 1.0 / 16.0)
    x0, x1 = (3.0, 2.0) if is_down else (2.0, 3.0)
    (piece,) = _squares(x0, x1, r0, r1, weight)
    assert (piece.begin, piece.end) == (2.0, 3.0)
    for x in [*np.linspace(2.0, 3.0, 9), *(piece.at + depth * rng.uniform(-0.1, 0.1, 9))]:
        d = abs(x - piece.at)
        found = piece.least + piece.slope * d + piece.curvature * d**2
        # A unit in the last place of x alone, and of s in between, moves the error by its derivative times that.
        moved = (
            2.0 * 4.0 * naive.UNIT * x * (piece.slope + 2.0 * piece.curvature * d + piece.curvature * naive.UNIT * x)
        )
        truth = exactly(x0, x1, r0, r1, weight, x, lambda r: r * r)
        # Residuals between the ends are rounded to a unit of their ends, which are of size one.
        residual = 4.0 * naive.UNIT * 2.0 * np.sqrt(weight.sum() * float(truth))
        assert abs(found - truth) <= naive.sum_rounding(n, found) + moved + residual
    lowest = exactly(x0, x1, r0, r1, weight, piece.at, lambda r: r * r)
    for step in (-1e-3 * depth, 1e-3 * depth):
        assert exactly(x0, x1, r0, r1, weight, piece.at + step, lambda r: r * r) > lowest


def test_lines_of_the_absolute_error_by_exact_arithmetic():
    rng = np.random.default_rng(6)
    r0, r1 = rng.normal(size=(2, 15))
    weight = np.full(15, 1.0 / 16.0)
    pieces = list(_absolute(1.0, 4.0, r0, r1, weight))
    assert len(pieces) == 1 + np.count_nonzero((r0 < 0) != (r1 < 0))
    for piece in pieces:
        for x in np.linspace(piece.begin, piece.end, 5):
            found = piece.least + piece.slope * abs(x - piece.at)
            truth = exactly(1.0, 4.0, r0, r1, weight, x, abs)
            assert abs(found - truth) <= naive.sum_rounding(15, float(np.abs(r0).sum() + np.abs(r1).sum()))


def test_flat_and_several_best_places():
    one = np.ones(3)
    curve = ErrorCurve(
        "r2",
        "C",
        np.array([1.0, 2.0, 3.0, 4.0]),
        np.array([1.0, 2.5, 3.0]),
        0.5 * one,
        np.array([0.0, 0.0, 0.25]),
        0.0 * one,
    )
    assert curve.best_intervals == [(1.0, 3.0)]
    assert curve.best_C == 1.0
    assert curve.worst_score == 0.25
    assert curve(3.5) == 0.375
    assert "best 0.5 for C from 1 to 3, worst 0.25" in repr(curve)
    apart = curve._replace(top=np.array([0.5, 0.25, 0.5]), curvature=one)
    assert apart.best_intervals == [(1.0, 1.0), (3.0, 3.0)]
    assert "best 0.5 at C=1 and 1 other place" in repr(apart)
    assert "1, 3" in apart._repr_html_()


def test_what_is_not_on_the_curve(model):
    curve = model.score_curve(X_test, y_test)
    with pytest.raises(ValueError, match=rf"The curve runs from {model.over}=.*wider range"):
        curve(1e9)
    with pytest.raises(ValueError, match="The curve runs from"):
        curve([0.5, np.nan])
    other = "epsilon" if model.over == "C" else "C"
    with pytest.raises(AttributeError, match=rf"runs over {model.over}: it has best_{model.over}"):
        getattr(curve, f"best_{other}")
    assert isinstance(curve(0.5), float)
    assert curve([0.5, 0.6]).shape == (2,)


def test_shown(model):
    curve = model.score_curve(X_test, y_test)
    assert repr(curve).startswith(f"ErrorCurve(neg_mean_squared_error, {model.over} from ")
    html = curve._repr_html_()
    assert "best score" in html
    assert f"score over {model.over}" in html
    assert "<svg" in html


def test_no_error_at_all():
    """A line is met exactly from some C on."""
    line = np.arange(6.0)
    model = SVRPath(kernel="linear", epsilon=0.0, C_max=1000.0).fit(line[:, None], 2.0 * line)
    curve = model.score_curve(np.array([[2.5], [7.0]]), np.array([5.0, 14.0]))
    assert -1e-25 <= curve.best_score <= 0.0


def test_the_first_segment_of_a_wide_range():
    """From C=1e-8 to where the first point moves is one segment: digits near its beginning are not those of its end."""
    model = SVRPath(C_min=1e-8, C_max=1.0, epsilon=0.05).fit(X, y)
    curve = model.score_curve(X_test, y_test)
    C = np.geomspace(1e-8, model.breakpoints_[1], 20)
    np.testing.assert_allclose(curve(C), sampled(model, C, "neg_mean_squared_error"), rtol=1e-13)
