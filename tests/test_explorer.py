"""Pages of the explorer: what they hold, against the path itself."""

import json
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler
from test_docs import DOCS, run

from zerogap import (
    DualProblem,
    Gram,
    OneClassSVMPath,
    Path,
    RelativeGap,
    SVCPath,
    SVCPathCV,
    SVRPath,
    SVRPathCV,
    compare,
    datasets,
    one_class_path,
    svm_path,
    svr_path,
)
from zerogap.comparison import Frame, _Film
from zerogap.explorer import geometry, lines, page, straight
from zerogap.explorer.encoding import array, decoded, text_of
from zerogap.explorer.page import opening
from zerogap.kernels import RBF, Function, Linear
from zerogap.path import ScoreCurve


def payload_of(text):
    """Return the payload of a page."""
    return json.loads(
        re.search(r'<script id="zerogap-payload" type="application/json">(.*?)</script>', text, re.DOTALL)[1]
    )


def opened(value):
    """Return a payload with its arrays, as the browser has it."""
    if isinstance(value, dict) and set(value) == {"type", "data"}:
        return decoded(value)
    if isinstance(value, dict):
        return {key: opened(item) for key, item in value.items()}
    return [opened(item) for item in value] if isinstance(value, list) else value


def scaled_at(found, lam):
    """Return b at lam from what a page holds, and the scaled bias: the obvious version of explorer/src/path.js."""
    cap, status = found["y"] * found["weight"], found["start"].copy()
    b, done, at = np.where(status == 2, cap, 0.0), 0, 0
    for k, size in enumerate(found["sizes"]):
        for e in range(done, found["before"][k]):
            i, status[found["point"][e]] = found["point"][e], found["target"][e]
            b[i] = {0: 0.0, 1: b[i], 2: cap[i]}[int(status[i])]
        done = found["before"][k]
        E = np.array(found["elbows"].get(str(k), np.flatnonzero(status == 1)))
        begin, end = found["begins"].get(str(k), b[E]), found["end"][at : at + size]
        at += size
        first, last = found["lam"][k : k + 2]
        if last <= lam or k == found["sizes"].size - 1:
            share = (first - lam) / (first - last)
            b[E] = (1 - share) * begin + share * end
            return b, (1 - share) * found["biasBegin"][k] + share * found["biasEnd"][k]
        b[E] = end
    raise AssertionError("the path has no such lam")


def blobs(n=60, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, d)) + 1.2 * y[:, None], y


def grid_of_points(n=81, seed=1):
    """Points on a grid, many of them repeated and dependent: ties at nearly every event."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, 2)).astype(float)
    return X, (X.sum(axis=1) + rng.integers(0, 2, n) > 2).astype(int)


@pytest.mark.parametrize(
    ("X", "y", "options"),
    [
        (*blobs(), {}),
        (*blobs(30, 5), {"kernel": "linear"}),
        (*blobs(30, 2), {"kernel": "poly", "degree": 2, "coef0": 1.0}),
        (*grid_of_points(), {"kernel": "linear"}),
        (*grid_of_points(), {"gamma": 0.7}),
        (*grid_of_points(), {"gamma": 0.7, "merge_duplicates": False}),
        (1e4 + blobs(30)[0], blobs(30)[1], {"kernel": "linear"}),
        (np.array([[0.0], [1.0]]), np.array([0, 1]), {}),
        (np.array([[0.0, 0.0]] * 4 + [[1.0, 1.0]]), np.array([0, 0, 1, 1, 1]), {}),
    ],
    ids=["blobs", "linear", "poly", "grid", "grid-rbf", "duplicates", "far", "two-points", "conflict"],
)
def test_a_page_holds_the_solution_at_every_C(X, y, options):
    path = svm_path(X, y, C_min=1e-3, C_max=1e4, **options)
    found = opened(json.loads(text_of(lines.encoded(path))))
    C = np.unique(np.concatenate([path.C[[0, -1]], np.sqrt(path.C[1:] * path.C[:-1])[:: max(1, len(path) // 40)]]))
    for c in C:
        b, bias = scaled_at(found, 1.0 / c)
        # Lines that meet within SAME of a cap are joined, and rounding is a few units of that.
        assert np.abs(b - path.scaled_at(1.0 / c)).max() <= 2 * lines.SAME * path.points.weight.max()
        assert abs(bias - path.bias_in_gram(c) / c) <= 1e-12 * (1.0 + abs(bias))


def test_a_segment_that_begins_elsewhere_is_kept_and_few_do():
    path = svm_path(*grid_of_points(), kernel="linear", C_max=1e3)
    found = lines.encoded(path)
    begins = {int(k) for k in found["begins"]}
    assert len(begins) < len(path) / 2  # the others go on where the one before has ended
    plain = svm_path(*blobs(), C_max=1e3)
    assert set(lines.encoded(plain)["begins"]) <= {0, 1}


def test_large_paths_are_kept_in_single_precision_and_say_so(monkeypatch, tmp_path):
    monkeypatch.setattr(lines, "FLOAT64_BYTES", 1000)
    path = svm_path(*blobs(), C_max=1e3)
    data = payload_of(path.explore(tmp_path / "page.html").read_text())["paths"][0]
    assert data["path"]["end"]["type"] == "f4"
    assert "single precision" in data["note"]


def test_a_page_needs_nothing_else(tmp_path):
    file = tmp_path / "page.html"
    assert svm_path(*blobs(), C_max=10).explore(str(file), title="</script><b>&") == file
    text = file.read_text()
    assert len(text) < 300_000
    assert not re.search(r"""(src|href)\s*=|url\(\s*['"]?http|@import|import\s*\(|fetch\(|XMLHttpRequest""", text)
    assert "default-src 'none'" in text
    assert payload_of(text)["title"] == "</script><b>&"
    assert "<title>&lt;/script&gt;&lt;b&gt;&amp;</title>" in text


def test_labels_names_and_the_score_are_those_of_the_model(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    kinds = np.where(y, "benign", "malignant")
    model = SVCPath(C_max=10.0).fit(X[::4], kinds[::4])
    data = payload_of(model.explore(tmp_path / "page.html", X[1::4], kinds[1::4]).read_text())["paths"][0]
    curve = model.score_curve(X[1::4], kinds[1::4])
    assert data["labels"] == ["benign", "malignant"]
    assert data["features"]["names"] == X.columns.tolist()
    assert data["best"] == [list(interval) for interval in curve.best_intervals]
    assert data["bestScore"] == curve.best_score
    np.testing.assert_array_equal(decoded(data["curve"]["score"]), curve.score)
    assert data["largestGap"] == model.largest_gap_
    names = [f"f{k}" for k in range(30)]
    given = payload_of(model.explore(tmp_path / "page.html", curve=curve, feature_names=names).read_text())
    assert given["paths"][0]["bestScore"] == curve.best_score
    assert given["paths"][0]["features"]["names"] == names


def test_several_classes_are_a_path_for_each_pair(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SVCPath(C_max=10.0).fit(X, y)
    paths = payload_of(model.explore(tmp_path / "page.html", X, y).read_text())["paths"]
    assert [data["labels"] for data in paths] == [["1", "0"], ["2", "0"], ["2", "1"]]
    for data, path in zip(paths, model.paths_, strict=True):
        assert data["n"] == path.y.size
        np.testing.assert_array_equal(decoded(data["path"]["y"]), path.y)


def test_of_many_features_some_are_shown(monkeypatch):
    monkeypatch.setattr(geometry, "COORDINATES", 300)
    X, y = blobs(60, 7)
    X[:, 4] += 5 * y
    found = geometry.described(Gram(X), X, y - 0.5)
    assert found["features"]["names"][0] == "x5"
    assert len(found["features"]["columns"]) == 5
    assert "5 of 7 features can be shown, those whose means differ most between the classes" in found["note"]
    X[:, 2] *= 10
    alike = geometry.described(Gram(X), X, np.zeros(60))
    assert alike["features"]["names"][0] == "x3"
    assert "those that vary most" in alike["note"]
    numbers = geometry.described(Gram(X), X, X[:, 1] + 0.1 * X[:, 6])
    assert numbers["features"]["names"][0] == "x2"
    assert "those that go most with the target" in numbers["note"]
    assert "gram" in found  # without all features a browser cannot compute kernel values among the points


def test_columns_that_are_numbered_are_called_features():
    X, y = blobs(20, 3)
    found = geometry.described(Gram(X), X, y - 0.5, ["1", 2, "width"])
    assert found["features"]["names"] == ["feature 1", "feature 2", "width"]


def test_planes_are_orthonormal_and_distances_are_kept():
    X, _ = blobs(50, 6)
    axes, shares = geometry.principal_axes(X)
    np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
    variance = np.linalg.eigvalsh(np.cov(X.T))
    np.testing.assert_allclose(shares, variance[:-3:-1] / variance.sum())
    plane = opened(geometry.described(Gram(X, gamma=0.3), X, np.ones(50))["principal"])
    square = np.square(X - X.mean(axis=0)).sum(axis=1)
    np.testing.assert_allclose(plane["px"] ** 2 + plane["py"] ** 2 + plane["rest"], square)


def test_many_points_with_many_features_have_the_same_planes(monkeypatch):
    X, _ = blobs(40, 30)
    whole, shares = geometry.principal_axes(X)
    monkeypatch.setattr(geometry, "MANY", 10)
    np.testing.assert_allclose(geometry.principal_axes(X)[0], whole, atol=1e-8)
    np.testing.assert_allclose(geometry.principal_axes(X)[1], shares)


@pytest.mark.parametrize("kernel", [RBF(0.5) + 0.3 * Linear(), Function(lambda X, Z: (X @ Z.T + 1.0) ** 2)])
def test_of_a_kernel_that_browsers_do_not_know_values_are_kept(kernel, monkeypatch):
    X, y = blobs(40)
    gram = Gram(X, kernel)
    found = opened(geometry.described(gram, X, y - 0.5))
    assert found["kernel"]["name"] == "other"
    np.testing.assert_array_equal(found["gram"].reshape(40, 40), gram.full())
    grid = found["features"]["grid"]
    s = np.linspace(*grid["xRange"], grid["columns"])[3] + X[:, 0].mean()
    t = np.linspace(*grid["yRange"][::-1], grid["rows"])[5] + X[:, 1].mean()
    values = grid["values"].reshape(40, grid["rows"], grid["columns"])[:, 5, 3]
    np.testing.assert_allclose(values, gram.kernel(X, np.array([[s, t]]))[:, 0])
    monkeypatch.setattr(geometry, "GRID_VALUES", 1000)
    monkeypatch.setattr(geometry, "KERNEL_VALUES", 1000)
    found = geometry.described(gram, X, y - 0.5)
    assert "no boundary is drawn" in found["note"]
    assert "no decision axis" in found["note"]


def test_a_precomputed_kernel_has_a_decision_axis(tmp_path):
    X, y = blobs(20)
    path = svm_path(np.exp(-np.square(X[:, None] - X).sum(axis=2)), y, kernel="precomputed", C_max=10)
    data = payload_of(path.explore(tmp_path / "page.html").read_text())["paths"][0]
    assert "features" not in data
    assert decoded(data["gram"]).size == 400


# Paths of other kinds.


def any_path(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[1] = X[0]  # a point that is there twice
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=40)
    return {
        "C": lambda: svr_path(X, y, epsilon=0.1, C_min=0.01, C_max=50.0),
        "no tube": lambda: svr_path(X, y, epsilon=0.0, C_min=0.01, C_max=5.0),
        "epsilon": lambda: svr_path(X, y, over="epsilon", C=3.0),
        "far": lambda: svr_path(X + 100.0, 1e3 * y + 1e6, epsilon=10.0, kernel="linear", C_max=10.0),
        "nu": lambda: one_class_path(X, nu_min=0.05),
        "gap": lambda: svm_path(X, y > 0, gap=1e-3, C_min=0.01, C_max=50.0),
    }[kind]()  # fmt: skip


def read_straight(found, value):
    """Return coefficients, bias and sets at a value: the obvious version of explorer/src/lines.js."""
    found = opened(found)
    values, k = (
        found["value"],
        int(np.clip(np.searchsorted(found["value"], value, "right") - 1, 0, len(found["value"]) - 2)),
    )
    b, offset = np.zeros((len(values), len(found["rows"]))), np.concatenate([[0], np.cumsum(found["counts"])])
    for at in range(len(values)):
        b[at] = b[at - 1] if at else 0.0
        own = slice(offset[at], offset[at + 1])
        b[at, found["index"][own]] = found["new"][own]
    t = found["t"]
    share = ((1.0 / value if found["isLog"] else value) - t[k]) / (t[k + 1] - t[k])
    sets = found["start"].copy()
    for e in range(found["before"][k]):
        sets[found["point"][e]] = found["target"][e]
    scale = value if found["isLog"] else 1.0
    bias = (1.0 - share) * found["biasBegin"][k] + share * found["biasEnd"][k]
    return scale * ((1.0 - share) * b[k] + share * b[k + 1]), scale * bias, sets


@pytest.mark.parametrize("kind", ["C", "no tube", "epsilon", "far", "nu", "gap"])
def test_any_path_is_straight_lines_between_its_breakpoints(kind, tmp_path):
    path = any_path(kind)
    (found,) = payload_of(path.explore(tmp_path / "page.html").read_text())["paths"]
    ends = np.sort(path.value_of(path.lam))
    rng = np.random.default_rng(1)
    K, codes = path.gram.full(), sorted(path.sets)
    for value in ends[:-1] + rng.uniform(0.1, 0.9, ends.size - 1) * np.diff(ends):  # on each: the bias may jump
        beta, bias, sets = read_straight(found["lines"], float(value))
        f = K @ path.beta_at(value) + path.bias_in_gram(value)
        # A dozen roundings of terms as large as the caps.
        size = np.abs(K) @ np.abs(path.beta_at(value)) + abs(path.bias_in_gram(value))
        np.testing.assert_allclose(K @ beta + bias, f, rtol=0, atol=1e-11 * size.max())
        k = int(np.searchsorted(-path.lam, -path.lam_of(value), side="right")) - 1  # however short the segment is
        np.testing.assert_array_equal(np.array(codes)[sets], path.sets_at(k))
    assert found["mode"] == {"nu": "one-class", "gap": "classes"}.get(kind, "tube")
    assert found["isApproximate"] == (kind == "gap")


def test_estimators_of_such_paths_are_explored(tmp_path):
    X = np.linspace(0.0, 6.0, 40)[:, None]
    y = np.sin(X[:, 0])
    model = SVRPath(C_max=10.0).fit(X[::2], y[::2])
    curve = model.score_curve(X[1::2], y[1::2], scoring="r2")
    (found,) = payload_of(model.explore(tmp_path / "page.html", curve=curve, feature_names=["time"]).read_text())[
        "paths"
    ]
    found = opened(found)
    assert found["features"]["names"] == ["time"]
    assert found["curve"]["name"] == "R²"
    np.testing.assert_allclose(found["curve"]["score"], curve(found["curve"]["C"]), rtol=1e-12)
    assert found["curve"]["score"].max() == curve.best_score
    assert OneClassSVMPath().fit(X).explore(tmp_path / "one.html").exists()


# What is refused.


def test_a_page_opens_at_the_first_interval_within_one_standard_error_of_the_best():
    curve = ScoreCurve(np.array([0.01, 0.1, 1.0, 4.0, 100.0, 1e4]), np.array([0.5, 0.85, 0.92, 0.89, 0.95]))
    value, words = opening(curve, 80)  # the error is sqrt(0.95 * 0.05 / 80) = 0.0244: 0.9256 is the limit
    assert value == pytest.approx(1000.0)
    assert "one standard error (0.024)" in words
    assert opening(curve, 40)[0] == pytest.approx(2.0)  # 0.0345: 0.9155
    assert opening(curve, None) == (pytest.approx(1000.0), "where the score is best")
    twice = ScoreCurve(np.array([0.01, 0.1, 1.0, 4.0, 100.0]), np.array([0.9, 0.8, 0.9, 0.7]))
    assert opening(twice, None)[0] == pytest.approx(2.0)  # nearer to the middle, which is 1
    assert opening(ScoreCurve(np.array([0.1, 1.0]), np.array([np.nan])), 10) is None


def opened_at(file):
    (found,) = payload_of(file.read_text())["paths"]
    return found["opening"]["value"], found["opening"]["words"], found["curve"]


def test_a_page_opens_where_it_is_told(tmp_path):
    X, y = blobs()
    model = SVCPath(gamma=1.0, C_max=10.0).fit(X, y)
    assert opened_at(model.explore(tmp_path / "page.html", X, y, C=3.0))[:2] == (3.0, "as it was told to")
    with pytest.raises(ValueError, match="C=10"):
        model.explore(tmp_path / "page.html", X, y, C=11.0)


def test_a_regression_is_explored_with_held_out_points(tmp_path):
    X = np.linspace(0.0, 6.0, 30)[:, None]
    model = SVRPath(C_max=10.0).fit(X[::2], np.sin(X[::2, 0]))
    page, held_out = tmp_path / "page.html", (X[1::2], np.sin(X[1::2, 0]))
    at, _, curve = opened_at(model.explore(page, *held_out, scoring="r2"))
    assert at == pytest.approx(model.score_curve(*held_out, scoring="r2").best_C)
    assert (curve["name"], curve["short"]) == ("R²", "R²")
    assert opened_at(model.explore(page, *held_out))[2]["short"] == "−MSE"
    with pytest.raises(ValueError, match="pass both X and y"):
        model.explore(page, X)


@pytest.mark.parametrize("is_regression", [False, pytest.param(True, marks=pytest.mark.long)])
def test_searches_are_explored_over_all_rows(tmp_path, is_regression):
    X, y = blobs()
    options = {"gamma": [0.5, 1.0], "C_max": 10.0, "cv": 3, "transformer": StandardScaler()}
    search = (SVRPathCV if is_regression else SVCPathCV)(**options).fit(X, np.asarray(y, dtype=float))
    file = search.explore(tmp_path / "page.html", X, np.asarray(y, dtype=float))
    at, words, curve = opened_at(file)
    assert (at, words) == (search.C_, "chosen by 3 folds")
    assert curve["of"] == "cross-validated"
    assert curve["name"] == ("minus mean squared error" if is_regression else "accuracy")
    (found,) = payload_of(file.read_text())["paths"]
    assert found["kernel"]["gamma"] == search.best_params_["gamma"]
    assert found["n"] == len(X)


def test_what_cannot_be_shown_is_refused_with_what_to_do(tmp_path, monkeypatch):
    X, y = blobs()
    monkeypatch.setattr(straight, "LARGEST", 10)
    with pytest.raises(ValueError, match=r"more than 10 changes of coefficients.*smaller range of C"):
        svr_path(X, y.astype(float), C_max=1.0).explore(tmp_path / "page.html")
    path = svm_path(X, y, C_max=10)
    with pytest.raises(ValueError, match="a name for each of the 2 features; got 1"):
        path.explore(tmp_path / "page.html", feature_names=["a"])
    path.save(tmp_path / "path")
    with pytest.raises(ValueError, match=r"loaded without its data.*Set path.gram"):
        Path.load(tmp_path / "path").explore(tmp_path / "page.html")
    with pytest.raises(ValueError, match="pass both X and y"):
        SVCPath(C_max=1.0).fit(X, y).explore(tmp_path / "page.html", X)
    monkeypatch.setattr(page, "LARGEST", 1000)
    with pytest.raises(ValueError, match="a browser is slow beyond"):
        path.explore(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_loaded_path_is_shown_with_its_gram(tmp_path):
    X, y = blobs()
    path = svm_path(X, y, C_max=10, gamma=0.5)
    path.save(tmp_path / "path")
    again = Path.load(tmp_path / "path", Gram(X[path.points.rows], gamma=0.5))
    assert again.explore(tmp_path / "a.html").read_text() == path.explore(tmp_path / "b.html").read_text()


# Widgets.


def test_without_anywidget_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r'pip install "zerogap\[explorer\]".*page.html'):
        svm_path(*blobs(), C_max=1.0).explore()


def test_a_widget_holds_the_page_and_its_C():
    pytest.importorskip("anywidget", reason='the widget needs anywidget: pip install "zerogap[explorer]"')
    path = svm_path(*blobs(), C_max=1.0)
    other = svr_path(*blobs(), over="epsilon").explore()
    other.epsilon = 0.25
    assert other.C == other.epsilon == 0.25
    widget = path.explore()
    assert not hasattr(widget, "epsilon")
    assert json.loads(widget.payload)["kind"] == "path"
    assert widget.C is None
    widget.C = 0.5
    assert widget.get_state()["C"] == 0.5
    assert "render" in widget._esm
    widget.close()


# Solvers step by step.


def frame(k):
    return Frame(k, 0.0, 0, 0.0, 0.0, np.zeros(0, dtype=int), np.zeros(0))


@pytest.mark.parametrize("rows", [1, 2, 9, 10, 11, 57, 1000])
@pytest.mark.parametrize("most", [2, 3, 10])
def test_a_film_keeps_first_rows_even_ones_and_the_last(rows, most):
    film = _Film(most)
    for k in range(rows):
        film.add(lambda k=k: frame(k))
    steps = [kept.step for kept in film.all]
    assert len(steps) <= most
    assert steps[: most // 3] == list(range(min(rows, most // 3)))
    assert steps[-1] == rows - 1
    assert steps == sorted(set(steps))
    assert rows >= most or steps == list(range(rows))
    middle = np.diff(steps[most // 3 : -1])
    assert middle.size == 0 or (middle == middle[0]).all()


def replayed(solver, n, at):
    """Return the coefficients of a frame from what a page holds."""
    beta, edges = np.zeros(n), np.concatenate([[0], np.cumsum(solver["sizes"])])
    for k in range(at + 1):
        some = slice(edges[k], edges[k + 1])
        beta[solver["index"][some]] = solver["value"][some]
    return beta


@pytest.mark.parametrize("formulation", ["hinge", "squared_hinge"])
def test_the_frames_of_a_comparison_are_the_iterates(formulation, tmp_path):
    X, y = datasets.two_spirals()
    problem = getattr(DualProblem, formulation)(Gram(X[::3]), y[::3], C=1.0)
    comparison = compare(problem, ["smo", "simple-svm", "cholesky"], frames=25, stop=RelativeGap(1e-8))
    found = opened(payload_of(comparison.explore(tmp_path / "race.html").read_text()))
    assert [solver["name"] for solver in found["solvers"]] == ["smo", "simple-svm"]
    for solver in found["solvers"]:
        run, n = comparison[solver["name"]], problem.n
        assert 2 <= solver["sizes"].size <= 25
        assert len(run.trace["step"]) > solver["step"].size or len(run.trace["step"]) <= 25
        places = np.searchsorted(run.trace["step"], solver["step"])
        np.testing.assert_array_equal(run.trace["step"][places], solver["step"])
        np.testing.assert_array_equal(run.trace["gap"][places], solver["gap"])
        last = replayed(solver, n, solver["sizes"].size - 1)
        np.testing.assert_allclose(last, run.solution.beta, atol=1e-9 * np.abs(last).max())
        for at in (0, solver["sizes"].size // 2):
            beta = replayed(solver, n, at)
            row = np.flatnonzero(run.trace["step"] == solver["step"][at])[0]
            assert -problem.objective(beta) == pytest.approx(run.trace["dual"][row], rel=1e-9, abs=1e-12)
            assert solver["bias"][at] == pytest.approx(problem.certify(beta).bias, rel=1e-6, abs=1e-6)


def test_a_comparison_without_frames_or_of_a_regression_is_refused(tmp_path):
    X, y = blobs()
    problem = DualProblem.hinge(Gram(X), 2.0 * y - 1, C=1.0)
    with pytest.raises(ValueError, match=re.escape("compare(..., frames=200)")):
        compare(problem, ["smo"]).explore(tmp_path / "race.html")
    with pytest.raises(ValueError, match="frames must be a whole number above 0"):
        compare(problem, ["smo"], frames=0)
    regression = DualProblem.epsilon_insensitive(Gram(X), X[:, 0], 1.0, 0.1)
    with pytest.raises(TypeError, match="two classes"):
        compare(regression, ["smo"], frames=5).explore(tmp_path / "race.html")


@pytest.mark.long
def test_the_code_of_its_page_in_the_docs_runs():
    page = ModuleType("explorer_page")
    run(DOCS / "explorer.md", page)
    assert page.written == {"moons.html", "curve.html", "race.html"}


def test_arrays_come_back_as_they_were():
    for kind, values in (("f8", [0.1, np.inf, -0.0]), ("f4", [0.5]), ("i4", [-7, 2**31 - 1]), ("i1", [-1, 2])):
        np.testing.assert_array_equal(decoded(array(values, kind)), np.array(values, dtype=f"<{kind}"))
