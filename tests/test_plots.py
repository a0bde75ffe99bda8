"""Pictures, by what they draw: lines, bands, spans, points and words, beside what the results themselves say."""

import builtins
import pickle
import re
from itertools import combinations, pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zerogap import (
    SVC,
    SVR,
    DualProblem,
    Gram,
    OneClassSVM,
    OneClassSVMPath,
    RelativeGap,
    SVCPath,
    SVCPathCV,
    SVRPath,
    SVRPathCV,
    one_class_path,
    plots,
    solve,
    svm_path,
    svr_path,
)
from zerogap.estimators.cv_curve import cv_curve
from zerogap.explorer.page import part
from zerogap.path import ErrorCurve, SampledScoreCurve, ScoreCurve
from zerogap.plots import look, paths
from zerogap.plots.boundary import decision_boundary

mpl.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(40) > 0, 1, 0)
T = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(40)
TWICE = np.r_[np.arange(40), :10]  # some rows come twice

PATHS = {
    "classes": lambda: svm_path(X[TWICE], Y[TWICE], C_min=0.01, C_max=100.0),
    "regression": lambda: svr_path(X, T, epsilon=0.1, C_min=0.01, C_max=10.0),
    "no tube": lambda: svr_path(X, T, epsilon=0.0, C_min=0.01, C_max=10.0),
    "epsilon": lambda: svr_path(X, T, over="epsilon", C=2.0),
    "nu": lambda: one_class_path(X, nu_min=0.1),
}


QUICK = ("classes", "no tube", "epsilon")
SOME = [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in PATHS]


class Followed(dict):
    """Paths by their names, each followed when it is first asked for."""

    def __missing__(self, name):
        self[name] = PATHS[name]()
        return self[name]


@pytest.fixture(scope="module")
def followed():
    return Followed()


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax):
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def spans(ax):
    """Return the parts of the axis that are shaded."""
    boxes = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    return sorted((box.x0, box.x1) for box in boxes)


# Paths.


def test_classes_have_one_colour_in_every_picture():
    points, labels = load_iris(return_X_y=True)
    model = SVCPath(C_max=1.0).fit(points[:, :2], labels)
    boundary = decision_boundary(model, points[:, :2], labels, steps=10)
    expected = {
        c.get_label(): to_rgba(c.get_facecolor()[0])[:3] for c in boundary.collections if "class" in c.get_label()
    }
    assert len(expected) == 3
    for pair in ((0, 2), (1, 2)):
        lines = model.plot("coefficients", pair=pair)
        found = {c.get_label(): to_rgba(c.get_color()[0])[:3] for c in lines.collections}
        assert found == {f"class {k}": expected[f"class {k}"] for k in pair}


def test_errors_that_grow_without_end_leave_room_for_the_rest():
    edges = np.array([0.1, 1.0, 10.0])

    def curve(end):
        return ErrorCurve("neg_mean_squared_error", "C", edges, edges[[1, 1]], np.array([-1.0, -1.0]),
                          np.array([1.0, (-1.0 - end) / 9.0]), np.zeros(2))  # fmt: skip

    model = SVRPathCV()
    model.cv_curves_, model.best_index_, model.C_, model.best_score_ = [cv_curve([curve(-1e6)] * 2)], 0, 1.0, -1.0
    model.cv_results_, model.best_intervals_ = {"param_kernel": ["rbf"]}, [(1.0, 1.0)]
    ax = model.plot()
    low, high = ax.get_ylim()
    assert -10.0 < low < -1.9 < -1.0 <= high
    assert [text.get_text() for text in ax.texts] == ["the curve goes on below"]


def test_a_sampled_score_has_one_best_interval_drawn():
    samples = np.geomspace(0.1, 10.0, 21)
    score = np.where(np.arange(21) % 2, 0.5, 0.7)
    score[10:13] = 0.7
    ax = SampledScoreCurve.at(samples, score).plot()
    (span,) = [patch for patch in ax.patches if patch.get_alpha() is None and patch.get_label().startswith("best")]
    low, high = ax.transData.inverted().transform(span.get_window_extent())[:, 0]
    assert (low, high) == pytest.approx((np.sqrt(samples[9] * samples[10]), np.sqrt(samples[12] * samples[13])))
    assert len(ax.patches) == 1
    assert "other interval" in span.get_label()


def test_a_sampled_score_has_all_wide_best_intervals_drawn():
    samples = np.geomspace(0.1, 10.0, 21)
    score = np.full(21, 0.5)
    score[[2, *range(5, 8), *range(12, 15)]] = 0.7
    ax = SampledScoreCurve.at(samples, score).plot()
    assert len(ax.patches) == 2


@pytest.mark.parametrize("name", SOME)
def test_a_path_draws_its_coefficients_its_sets_and_its_elbow(followed, name):
    path = followed[name]
    lines, bands, elbow = path.plot()
    assert lines.figure is bands.figure is elbow.figure
    assert_coefficients(path, lines, range(path.points.group.size))
    assert_bands(path, bands)
    drawn = elbow.patches[0].get_data()
    order = 1 if path.parameter == "C" else -1
    np.testing.assert_array_equal(drawn.values, path.n_free[:-1][::order])
    np.testing.assert_array_equal(drawn.edges, path.value_of(path.lam)[::order])
    assert elbow.get_xlabel() == path.parameter
    assert lines.get_ylabel()
    assert bands.get_ylabel()
    assert elbow.get_ylabel() in ("on the margin", "on the edge of the tube", "predicted exactly", "on the boundary")
    assert (elbow.get_ylabel() == "on the margin") == path.family.is_hinge
    assert (elbow.get_ylabel() == "on the boundary") == (path.parameter == "nu")
    assert elbow.get_xscale() == ("log" if path.parameter == "C" else "linear")


@pytest.mark.long
@pytest.mark.parametrize("name", PATHS)
def test_pictures_are_laid_out_without_a_word(followed, name):
    followed[name].plot()[0].figure.canvas.draw()
    ax = decision_boundary(SVC().fit(X, Y), X, Y)
    ax.figure.canvas.draw()


def assert_coefficients(path, ax, rows):
    """Every line is that of a row, at every value that is drawn."""
    drawn = [line for collection in ax.collections for line in collection.get_segments()]
    values = drawn[0][:, 0]
    scale = {"C": values[:, None], "epsilon": getattr(path, "cost", 1.0), "nu": 1.0}[path.parameter]
    expected = (path.coefficients_at(values) / scale)[:, list(rows)].T
    assert len(drawn) > 5
    for line in drawn:
        assert np.array_equal(line[:, 0], values)
        assert any(np.array_equal(line[:, 1], row) for row in expected)
    # Breakpoints are drawn where they are.
    assert np.isin(path.value_of(path.lam), values).all() or len(path) > paths.MOST_VALUES // 2
    moving = {tuple(row) for row in expected if np.ptp(row) > 0.0}
    assert len(drawn) == min(len(moving), paths.MOST_LINES)


PLAIN = [
    {"left": "inside the margin", "elbow": "on the margin", "right": "outside"},
    {"upper cap": "above the tube", "upper margin": "on its upper edge", "inside": "inside",
     "lower margin": "on its lower edge", "lower cap": "below the tube"},
    {"upper cap": "above the prediction", "on target": "predicted exactly", "lower cap": "below the prediction"},
    {"inside": "inside", "margin": "on the boundary", "outside": "outside"},
]  # fmt: skip


def assert_bands(path, ax):
    """The bands are the points of each set, in plain words, one on the other, wherever one looks."""
    (plain,) = [words for words in PLAIN if set(words) == set(path.sets.values())]
    names = {words: name for name, words in plain.items()}
    bands = {names[patch.get_label()]: patch.get_data() for patch in ax.patches}
    assert set(bands) == set(path.sets.values()) == {names[text] for text in texts(ax)}
    edges = next(iter(bands.values())).edges
    n = path.points.group.size
    for low, high in list(pairwise(edges))[::7]:
        k = np.searchsorted(edges, 0.5 * (low + high)) - 1
        sets = path.sets_at(path._position(path.lam_of(0.5 * (low + high))))[path.points.group]
        for code, name in path.sets.items():
            assert bands[name].values[k] - bands[name].baseline[k] == np.count_nonzero(sets == code)
    tops, bottoms = (
        np.stack([getattr(data, key) for data in bands.values()], axis=1) for key in ("values", "baseline")
    )
    assert (tops.max(axis=1) == n).all()
    assert (bottoms.min(axis=1) == 0).all()


def test_approximate_paths_say_that_they_are(followed):
    said = "approximate, within a relative gap of 0.01"
    model = SVCPath(gamma=1.0, C_max=10.0, gap=0.01).fit(X, Y)
    lines, bands, elbow = model.plot()
    assert lines.get_title(loc="right").startswith(said)
    assert texts(bands) == ["at the cap", "between the bounds", "at zero"]
    assert elbow.get_ylabel() == "between the bounds"
    assert said in model.plot("sets").get_title(loc="right")
    search = SVCPathCV(gamma=1.0, C_max=10.0, gap=0.01, cv=2).fit(X, Y)
    assert said in search.plot().get_title(loc="left")
    assert "approximate" not in followed["classes"].plot("sets").get_title(loc="right")


def test_rows_to_draw_can_be_chosen(followed):
    path = followed["classes"]
    ax = path.plot("coefficients", rows=[3, 5])
    drawn = [line for collection in ax.collections for line in collection.get_segments()]
    assert len(drawn) == 2
    values = drawn[0][:, 0]
    expected = path.coefficients_at(values) / values[:, None]
    sides = {3: Y[3], 5: Y[5]}
    for row in sorted(sides, key=lambda row: -sides[row]):  # those of the positive class first
        assert any(np.array_equal(line[:, 1], expected[:, row]) for line in drawn)
    assert "2 points of 40" in ax.get_title(loc="right")


def test_long_paths_draw_some_of_their_breakpoints_and_lines(monkeypatch, followed):
    monkeypatch.setattr(paths, "MOST_VALUES", 20)
    monkeypatch.setattr(paths, "MOST_LINES", 7)
    ax = followed["classes"].plot("coefficients")
    drawn = [line for collection in ax.collections for line in collection.get_segments()]
    assert len(drawn) == 7
    assert len(drawn[0]) <= 20
    assert drawn[0][0, 0] == pytest.approx(0.01)
    assert drawn[0][-1, 0] == pytest.approx(100.0)
    assert "those that move most" in ax.get_title(loc="right")


def test_a_path_draws_where_it_is_told(followed):
    figure, axes = plt.subplots(3, 1)
    assert followed["classes"].plot(ax=axes)[1] is axes[1]
    assert followed["classes"].plot("sets", ax=axes[0]) is axes[0]
    with pytest.raises(ValueError, match="needs 3 axes"):
        followed["classes"].plot(ax=axes[0])
    with pytest.raises(ValueError, match="Unknown show 'margin'"):
        followed["classes"].plot("margin")
    with pytest.raises(ValueError, match="rows out of 0 to 49"):
        followed["classes"].plot("coefficients", rows=[50])
    assert plt.get_fignums() == [figure.number, figure.number + 1]  # the last call had made one


def test_a_path_without_a_segment_says_so():
    empty = svm_path(X, Y, max_time=1e-9)
    with pytest.raises(ValueError, match="no segment yet"):
        empty.plot()


def test_estimators_of_paths_draw_them():
    model = SVCPath(C_min=0.01, C_max=10.0).fit(X, np.where(Y, "yes", "no"))
    ax = model.plot("coefficients")
    assert texts(ax) == ["class yes", "class no"]
    assert all(
        (line[:, 1] >= 0).all() for line in ax.collections[0].get_segments()
    )  # the second class is the positive one
    assert SVRPath(C_min=0.01, C_max=1.0).fit(X, T).plot("sets").get_xlabel() == "C"
    assert OneClassSVMPath(nu_min=0.2).fit(X).plot("elbow").get_xlabel() == "nu"


def test_of_several_classes_every_pair_is_drawn_or_one():
    points, kinds = load_iris(return_X_y=True)
    model = SVCPath(C_min=0.01, C_max=1.0).fit(points[::3], kinds[::3])
    ax = model.plot()
    assert texts(ax) == ["0 against 1", "0 against 2", "1 against 2"]
    assert ax.get_ylim()[1] > max(patch.get_data().values.max() for patch in ax.patches)
    for patch, path in zip(ax.patches, model.paths_, strict=True):
        data = patch.get_data()
        C = np.sqrt(data.edges[4] * data.edges[5])
        assert data.values[4] == np.count_nonzero(path.coefficients_at(C))
    lines = model.plot("coefficients", pair=(2, 1))
    assert texts(lines) == ["class 1", "class 2"]
    values = lines.collections[0].get_segments()[0][:, 0]
    expected = model.paths_[2].coefficients_at(values)[:, kinds[::3] == 1] / values[:, None]
    for line in lines.collections[0].get_segments():
        assert any(np.array_equal(line[:, 1], row) for row in expected.T)
    with pytest.raises(ValueError, match="needs a pair of them, such as"):
        model.plot("sets")
    with pytest.raises(ValueError, match=r"two of the classes \[0, 1, 2\]"):
        model.plot(pair=(0, 3))


# Curves.

CURVE = ScoreCurve(np.array([0.1, 0.5, 1.0, 4.0, 10.0]), np.array([0.5, 0.75, 0.6, 0.75]))


def test_a_score_curve_draws_every_change_and_shades_the_best():
    ax = CURVE.plot(label="accuracy")
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), CURVE.C)
    np.testing.assert_array_equal(line.get_ydata(), [0.5, 0.75, 0.6, 0.75, 0.75])
    assert line.get_drawstyle() == "steps-post"
    np.testing.assert_allclose(spans(ax), CURVE.best_intervals, rtol=1e-12)
    assert texts(ax) == ["every C", "best: 0.75 for C from 0.5 to 1 and 1 other interval"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("C", "accuracy", "log")


@pytest.mark.parametrize("grid", [3, [0.1, 1.0, 10.0]])
def test_a_grid_is_drawn_with_what_it_sees(grid):
    ax = CURVE.plot(grid=grid)
    found = ax.lines[-1]
    np.testing.assert_allclose(found.get_xdata(), [0.1, 1.0, 10.0], rtol=1e-12)
    np.testing.assert_array_equal(found.get_ydata(), CURVE(np.array([0.1, 1.0, 10.0])))
    assert texts(ax)[-1] == "grid of 3, best 0.75 at C = 10"


@pytest.mark.parametrize("grid", [[0.01, 1.0], [], [np.nan]])
def test_a_grid_beyond_the_curve_is_refused(grid):
    with pytest.raises(ValueError, match=r"grid must be values from 0\.1 to 10"):
        CURVE.plot(grid=grid)
    with pytest.raises(ValueError, match="grid must be a whole number above 0"):
        CURVE.plot(grid=0)
    assert not plt.get_fignums()  # nothing was begun


def test_a_sampled_curve_draws_its_samples():
    curve = SampledScoreCurve.at(np.array([0.1, 1.0, 10.0]), np.array([0.5, 0.75, np.nan]))
    ax = curve.plot()
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), curve.samples)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), curve.score)
    np.testing.assert_allclose(spans(ax), curve.best_intervals, rtol=1e-12)
    assert texts(ax)[0] == "sampled at 3 C"
    nowhere = ScoreCurve(np.array([0.1, 1.0]), np.array([np.nan])).plot(grid=2)
    assert texts(nowhere) == ["every C", "grid of 2"]


@pytest.mark.parametrize("over", ["C", "epsilon"])
def test_an_error_curve_draws_its_pieces_and_marks_the_best_of_all(over):
    model = SVRPath(over=over, C_min=0.01, C_max=10.0).fit(X[:30], T[:30])
    curve = model.score_curve(X[30:], T[30:])
    assert isinstance(curve, ErrorCurve)
    ax = curve.plot(grid=5)
    line, star, grid = ax.lines
    x = line.get_xdata()
    assert np.isin(curve.edges, x).all()
    np.testing.assert_array_equal(line.get_ydata(), curve(x))
    assert line.get_ydata().max() == curve.best_score == star.get_ydata()[0]
    assert star.get_xdata()[0] == curve.best_intervals[0][0]
    np.testing.assert_allclose(spans(ax), curve.best_intervals, rtol=1e-9)
    np.testing.assert_array_equal(grid.get_ydata(), curve(grid.get_xdata()))
    assert (ax.get_xlabel(), ax.get_ylabel()) == (over, "minus mean squared error")
    assert ax.get_xscale() == ("log" if over == "C" else "linear")


# Cross-validation.


@pytest.fixture(scope="module")
def searched():
    return SVCPathCV(gamma=[0.1, 1.0, 10.0], cv=3, C_max=100.0, selection="one_se").fit(X, Y)


def band(ax):
    """Return the edges of the band: C, and the lowest and the highest of it there."""
    (found,) = [part for part in ax.collections if part.get_label() == "± one standard error"]
    x, y = found.get_paths()[0].vertices.T
    C = np.unique(x)
    return C, np.array([y[x == one].min() for one in C]), np.array([y[x == one].max() for one in C])


def test_a_search_draws_every_curve_its_error_and_what_was_chosen(searched):
    ax = searched.plot(grid=5)
    lines = {line.get_label(): line for line in ax.lines}
    chosen = searched.best_index_
    for k, (gamma, curve) in enumerate(zip((0.1, 1.0, 10.0), searched.cv_curves_, strict=True)):
        name = f"gamma = {gamma:g},\nmean over 3 folds" if k == chosen else f"gamma = {gamma:g}"
        np.testing.assert_array_equal(lines[name].get_xdata(), curve.edges)
        np.testing.assert_array_equal(lines[name].get_ydata()[:-1], curve.mean.score)
    (at,), (score,) = lines[f"chosen: C = {searched.C_:.4g},\nby one standard error"].get_data()
    assert (at, score) == (searched.C_, searched.best_score_)
    np.testing.assert_allclose(spans(ax), searched.best_intervals_, rtol=1e-12)
    curve, limit = searched.cv_curve_, lines["one standard error\nbelow the best"].get_ydata()[0]
    assert limit == pytest.approx(curve.best_score - curve.std_error(curve.best_C))
    assert score >= limit
    (grid,) = [line for line in ax.lines if line.get_label().startswith("grid")]
    np.testing.assert_array_equal(grid.get_ydata(), searched.cv_curve_(grid.get_xdata()))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("C", "accuracy", "log")
    assert any(text.startswith(f"best: {searched.cv_curve_.best_score:.4g} ± ") for text in texts(ax))


def test_other_kernels_have_neither_the_colour_of_the_best_nor_of_the_grid(searched):
    for style in ("default", "dark_background"):
        with plt.style.context(style):
            ax = searched.plot(grid=5)
        others = {line.get_color() for line in ax.lines if line.get_label().startswith("gamma") and line.get_alpha()}
        assert len(others) == 2
        assert others.isdisjoint({look.GREEN, look.ORANGE, look.VERMILLION, look.palette(ax)[0]})


def test_candidates_are_named_by_what_they_have_and_the_grid_in_two_lines():
    """A linear kernel has no gamma; a long line in the legend would leave little of the picture."""
    model = SVCPathCV(kernel=["linear", "rbf"], gamma=[0.1, 1.0], cv=3, C_min=1.0, C_max=2.0).fit(X, Y)
    names = [text.split(",\nmean")[0] for text in texts(model.plot(grid=3))]
    assert {"kernel = linear", "kernel = rbf, gamma = 0.1", "kernel = rbf, gamma = 1"} <= set(names)
    assert any(name.startswith("grid of 3 with the same kernel") for name in names)


def test_scores_are_called_by_their_names(searched):
    model = SVCPath(gamma=1.0, C_max=10.0).fit(X, Y)
    assert model.score_curve(X, Y).plot().get_ylabel() == "accuracy"
    assert model.score_curve(X, Y, scoring="balanced_accuracy").plot().get_ylabel() == "balanced accuracy"
    assert model.score_curve(X, Y, scoring="roc_auc").plot().get_ylabel() == "ROC AUC"
    assert searched.cv_curve_.plot().get_ylabel() == "accuracy"
    assert pickle.loads(pickle.dumps(model.score_curve(X, Y))).name == "accuracy"


def test_the_band_is_one_standard_error_wide(searched):
    curve = searched.cv_curve_
    (found,) = [part for part in curve.plot().collections if part.get_label() == "± one standard error"]
    (shape,) = found.get_paths()
    tried = 0
    for low, high in list(pairwise(curve.edges))[::5]:
        C = np.sqrt(low * high)
        scores = [fold(C) for fold in curve.folds]
        error = np.std(scores, ddof=1) / np.sqrt(3)
        if error > 1e-6 and high > 1.0001 * low:
            for side in (-1.0, 1.0):
                assert shape.contains_point((C, np.mean(scores) + 0.99 * side * error))
                assert not shape.contains_point((C, np.mean(scores) + 1.01 * side * error))
            tried += 1
    assert tried >= 5


def test_searches_of_one_kernel_of_many_and_of_a_regression_are_drawn(searched):
    model = SVRPathCV(epsilon=[0.05, 0.1], cv=3, C_min=0.1, C_max=1.0).fit(X, T)
    ax = model.plot()
    assert ax.get_ylabel() == "minus mean squared error"
    curve = model.cv_curve_
    C, low, high = band(ax)
    np.testing.assert_allclose(0.5 * (low + high), curve(C), atol=1e-12)
    np.testing.assert_allclose(0.5 * (high - low), curve.std_error(C), atol=1e-12)
    assert sum(text.startswith("epsilon = ") for text in texts(ax)) == 2
    sampled = SVCPathCV(cv=3, C_min=8.0, C_max=10.0, scoring="roc_auc").fit(X, Y)
    ax = sampled.cv_curve_.plot(label="area")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), sampled.cv_curve_.mean.score)
    assert ax.get_ylabel() == "area"
    assert texts(sampled.plot())[0] == "mean over 3 folds"  # there is nothing else to tell it from
    with pytest.raises(NotFittedError):
        SVCPathCV().plot()


# Solutions.


def test_a_solution_draws_its_trace():
    problem = DualProblem.hinge(Gram(X), 2.0 * Y - 1.0, C=10.0)
    solution = solve(problem, "smo", stop=RelativeGap(1e-8), trace_every=5)
    ax = solution.plot()
    shown = solution.trace["gap"] > 0.0
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), solution.trace["step"][shown])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), solution.trace["gap"][shown])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("iterations", "relative duality gap", "log")
    assert texts(ax) == ["smo"]
    same = solution.plot("support", "kernel_evaluations", ax=ax)
    assert same is ax
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), solution.trace["support"])
    with pytest.raises(ValueError, match="Unknown y 'margin'"):
        solution.plot("margin")


# Boundaries.


def lines_at(ax, level):
    """Return the points of a contour line."""
    found = [
        path.vertices
        for contours in ax.collections
        if hasattr(contours, "levels") and not contours.filled and level in contours.levels
        for path in [contours.get_paths()[list(contours.levels).index(level)]]
    ]
    return np.concatenate(found)


def rows_marked(ax, name):
    """Return the points of a class, or with a ring, by the name in the legend."""
    (found,) = [
        s
        for s in ax.collections
        if s.get_gid() == name or (s.get_gid() is None and s.get_label().startswith(name) and len(s.get_offsets()))
    ]
    return np.asarray(found.get_offsets())


def rows_of_set(ax, name):
    """Return the points that have the colour of a set, of which the legend says how many there are."""
    (sample,) = [scatter for scatter in ax.collections if scatter.get_label().startswith(name)]
    drawn = [scatter for scatter in ax.collections if scatter.get_gid()]  # a class each
    colours = np.concatenate([scatter.get_facecolor() for scatter in drawn])
    points = np.concatenate([np.asarray(scatter.get_offsets()) for scatter in drawn])
    found = points[(colours == sample.get_facecolor()[0]).all(axis=1)]
    assert sample.get_label() == f"{name} ({len(found)})"
    return found


def as_set(points):
    return {*map(tuple, points)}


@pytest.mark.parametrize("kind", [SVC, pytest.param(sklearn.svm.SVC, marks=pytest.mark.long)])
def test_a_boundary_is_where_the_model_changes_its_mind(kind):
    model = kind(C=2.0, tol=1e-6).fit(X, Y)
    ax = decision_boundary(model, X, Y, steps=300)
    for level in (-1.0, 0.0, 1.0):
        f = model.decision_function(lines_at(ax, level))
        assert np.abs(f - level).max() < 0.01
    for k in (0, 1):
        assert as_set(rows_marked(ax, f"class {k}")) == as_set(X[k == Y])
    # The exact coefficients say which support vectors are at the cap.
    beta = np.abs(SVC(C=2.0, tol=1e-10).fit(X, Y).dual_coef_[0])
    support = SVC(C=2.0, tol=1e-10).fit(X, Y).support_
    is_free = beta < 2.0 * (1 - 1e-9)
    assert as_set(rows_of_set(ax, "on the margin")) == as_set(X[support[is_free]])
    assert as_set(rows_of_set(ax, "inside the margin")) == as_set(X[support[~is_free]])
    assert as_set(rows_of_set(ax, "outside the margin")) == as_set(np.delete(X, support, axis=0))
    assert (ax.get_xlabel(), ax.get_title(loc="left")) == ("feature 1", "SVC, C = 2")


def test_a_boundary_of_a_pipeline_is_drawn_in_its_own_features():
    frame = pd.DataFrame(X * [3.0, 100.0] + 7.0, columns=["length", "width"])
    model = make_pipeline(StandardScaler(), SVC(C=2.0)).fit(frame, Y)
    ax = decision_boundary(model, frame, Y)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")
    vertices = pd.DataFrame(lines_at(ax, 0.0), columns=frame.columns)
    assert np.abs(model.decision_function(vertices)).max() < 0.02
    assert as_set(rows_of_set(ax, "on the margin")) <= as_set(frame.to_numpy())
    search = GridSearchCV(model, {"svc__C": [2.0]}, cv=2).fit(frame, Y)
    np.testing.assert_array_equal(lines_at(decision_boundary(search, frame, Y), 0.0), lines_at(ax, 0.0))


def test_a_boundary_of_a_path_is_that_of_one_of_its_values():
    path = SVCPath(C_min=0.01, C_max=10.0, C=0.5).fit(X, Y)
    for at, C in ((None, 0.5), (3.0, 3.0)):
        ax = decision_boundary(path, X, Y, at=at)
        assert np.abs(path.decision_function(lines_at(ax, 0.0), C=C)).max() < 0.02
        assert ax.get_title(loc="left") == f"SVC, C = {C:g}"
    pipe = make_pipeline(StandardScaler(), SVCPath(C_min=0.01, C_max=10.0)).fit(X, Y)
    ax = decision_boundary(pipe, X, Y, at=3.0)
    assert np.abs(pipe[-1].decision_function(pipe[0].transform(lines_at(ax, 0.0)), C=3.0)).max() < 0.02
    nu = OneClassSVMPath(nu_min=0.1).fit(X)
    ax = decision_boundary(nu, X, at=0.3)
    assert np.abs(nu.decision_function(lines_at(ax, 0.0), nu=0.3)).max() < 0.05
    with pytest.raises(ValueError, match="at= chooses a model of a path; SVC is one model"):
        decision_boundary(path.at(1.0), X, Y, at=2.0)


def test_boundaries_of_one_class_and_of_three():
    model = OneClassSVM(nu=0.3).fit(X)
    ax = decision_boundary(model, X)
    marked = len(rows_of_set(ax, "on the boundary")) + len(rows_of_set(ax, "outside, at the cap"))
    assert marked == model.support_.size
    points, kinds = load_iris(return_X_y=True)
    three = SVC(C=5.0).fit(points[:, 2:], kinds)
    ax = decision_boundary(three, points[:, 2:], kinds, steps=50)
    assert texts(ax)[:3] == ["class 0", "class 1", "class 2"]
    assert texts(ax)[3] == f"support vectors ({three.support_.size})"
    np.testing.assert_array_equal(rows_marked(ax, "support"), points[three.support_, 2:])


def test_points_that_are_not_those_of_the_training_are_no_support_vectors():
    model = SVC(C=2.0).fit(X, Y)
    assert not [name for name in texts(decision_boundary(model, X + 0.1, Y)) if "margin (" in name]
    assert texts(decision_boundary(model, X))[2:] == ["points", f"support vectors ({model.support_.size})"]


def test_what_has_no_boundary_is_refused():
    model = SVC().fit(X, Y)
    with pytest.raises(ValueError, match=r"draws two features; X has shape \(40, 3\)"):
        decision_boundary(model, np.c_[X, X[:, 0]], Y)
    with pytest.raises(TypeError, match="got SVR"):
        decision_boundary(SVR().fit(X, T), X)
    with pytest.raises(TypeError, match="got SVC"):
        decision_boundary(SVC(), X, Y)
    with pytest.raises(ValueError, match=r"y must hold labels out of \[0, 1\]"):
        decision_boundary(model, X, Y + 1)
    with pytest.raises(ValueError, match="one label for each point"):
        decision_boundary(model, X, Y[:3])
    with pytest.raises(ValueError, match="steps must be a whole number"):
        decision_boundary(model, X, Y, steps=0.5)
    assert not plt.get_fignums()


# The look.


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_every_picture_is_legible_on_light_and_on_dark_ground(followed, style):
    """Lines and text differ from the ground by a ratio of luminances of at least three, as accessibility rules ask."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgba(colour)[:3]]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    def contrast(colour, ground):
        low, high = sorted([luminance(colour), luminance(ground)])
        return (high + 0.05) / (low + 0.05)

    with plt.style.context(style):
        axes = [followed["classes"].plot("coefficients"), CURVE.plot(grid=3), followed["nu"].plot("elbow")]
        for ax in axes:
            ground = ax.get_facecolor()
            assert contrast(look.ink(ax), ground) > 10.0
            drawn = [line.get_color() for line in ax.lines] + [look.GREEN]
            drawn += [
                colour for lines in ax.collections if isinstance(lines, LineCollection) for colour in lines.get_color()
            ]
            assert all(contrast(colour, ground) >= 3.0 for colour in drawn)
        assert look.is_dark(axes[0]) == (style == "dark_background")


def test_colours_are_those_of_the_axes_not_of_the_moment(followed):
    with plt.style.context("dark_background"):
        _, ax = plt.subplots()
    followed["classes"].plot("coefficients", ax=ax)
    assert to_rgba(ax.collections[0].get_color()[0])[:3] == to_rgba(look.CLASSES[1][1])[:3]
    ax.set_facecolor("none")  # then it is the ground of the figure that counts
    assert look.is_dark(ax)


def page_colours():
    """Return the colours of the explorer's pages by name, on light and on dark ground."""
    style = re.sub(r"/\*.*?\*/", "", part("bundle.css"))
    rules = re.findall(r"\.zg-root(?:\[data-theme=dark\])?\{([^}]*--zg-ink:[^}]*)\}", style)
    return [dict(re.findall(r"--zg-([\w-]+):\s*(#[0-9a-f]+)", rule)) for rule in rules]


def test_pictures_and_pages_have_the_same_colours():
    names = {
        "SETS": ("right", "elbow", "left"),
        "CLASSES": ("negative", "positive-line"),
        "REGIONS": ("negative", "positive"),
    }
    assert len(page_colours()) == 2
    for k, page in enumerate(page_colours()):
        for attribute, parts in names.items():
            expected = [to_rgba(page[name]) for name in parts]
            assert [*map(to_rgba, getattr(look, attribute)[k][: len(parts)])] == expected, (attribute, k)


# How colours are seen without one of the three kinds of cones: Machado, Oliveira and Fernandes (2009), in linear RGB.
SIGHTS = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def lab(colour, sight):
    """Return a colour as it is seen, in the coordinates L*a*b*, in which two are apart as far as they look different."""
    rgb = np.array(to_rgba(colour)[:3])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array(TO_XYZ) @ np.clip(np.array(sight) @ linear, 0.0, 1.0) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHTS)
def test_sets_and_classes_look_different_to_every_kind_of_sight(sight):
    """Ten times what is just seen, 2.3: sets from each other and from the ground, and one class from the other."""
    for sets, classes, ground in zip(look.SETS, look.CLASSES, ("#ffffff", "#1a2129"), strict=True):
        for group in ([*sets, ground], classes[:2]):
            seen = [lab(colour, SIGHTS[sight]) for colour in group]
            assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) >= 23.0


def test_without_matplotlib_every_picture_says_what_to_install(followed, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    solution = solve(DualProblem.hinge(Gram(X), 2.0 * Y - 1.0, C=1.0))
    model = SVC().fit(X, Y)
    monkeypatch.setattr(builtins, "__import__", without)
    for draw in (followed["nu"].plot, CURVE.plot, solution.plot, lambda: plots.decision_boundary(model, X, Y)):
        with pytest.raises(ImportError, match=r'pip install "zerogap\[plots\]"'):
            draw()


def test_whole_numbers_that_are_floats_name_classes_without_a_point():
    """Labels of a file are floats."""
    classes = np.tile([0.0, 1.0, 3.0], len(X) // 3 + 1)[: len(X)]
    model = SVCPath(gamma=1.0, C_max=1.0).fit(X, classes)
    assert texts(model.plot()) == ["0 against 1", "0 against 3", "1 against 3"]
    assert "class 1" in texts(model.plot(pair=(0.0, 1.0))[0])
