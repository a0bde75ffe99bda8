"""Pages of the explorer in a browser: what they draw is what Python computes, and everything that can be pressed works."""

import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.metrics import r2_score

from zerogap import DualProblem, Gram, OneClassSVMPath, RelativeGap, SVCPath, SVRPath, compare, svm_path
from zerogap.explorer import geometry
from zerogap.explorer.encoding import text_of
from zerogap.explorer.geometry import principal_axes
from zerogap.explorer.page import of_paths, part
from zerogap.kernels import RBF, Linear

NEEDED = 'a browser is driven by playwright: pip install "zerogap[browser]"'
playwright = pytest.importorskip("playwright.sync_api", reason=NEEDED)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium; apt-get install chromium, or another way to it"
)

QUIET = (
    "no-sandbox",
    "disable-gpu",
    "disable-background-networking",
    "disable-extensions",
    "disable-sync",
    "no-first-run",
)
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
CLOSE = 1e-6


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=[f"--{option}" for option in QUIET])
        yield running
        running.close()


@pytest.fixture
def show(browser):
    """Open a file; at the end nothing may have gone wrong, and nothing may have been asked of a network."""
    contexts, wrong = [], []

    def opened(file, size=DESKTOP, scheme="light"):
        context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=size is PHONE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None)
        page.goto(file.as_uri())
        wait(page, "globalThis.zerogap !== undefined")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def wait(page, condition, seconds=30):
    """Wait until a condition holds; playwright's own way would evaluate a string in the page, which its policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(15)


def moons(n=80):
    return make_moons(n, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def model():
    return SVCPath(gamma=1.0, C_min=0.01, C_max=1e3).fit(*moons())


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    X, y = make_moons(60, noise=0.3, random_state=1)
    return model.explore(tmp_path_factory.mktemp("pages") / "moons.html", X, y)


def on_grid(page, C):
    """Return what the page draws at C: points of the plane, (m, 2), and f."""
    found = page.evaluate("(C) => { zerogap.setC(C); zerogap.drawPicture(); return zerogap.gridValues(); }", C)
    x, y = np.meshgrid(found["x"], found["y"])
    return np.stack([x.ravel(), y.ravel()], axis=1), np.array(found["f"])


def off(C):
    """Return how far f may be off: coefficients of the elbow, at most a hundred points, by 1e-12 of their caps each."""
    return min(1e-10 * max(C, 1.0), CLOSE)


def test_the_boundary_is_that_of_python_at_any_C_in_any_order(show, file, model):
    page = show(file)
    for C in (3.0, 0.02, 1000.0, 0.7, model.path_.C[40]):
        points, f = on_grid(page, float(C))
        assert f.size > 5000
        assert np.abs(f - model.decision_function(points, C=C)).max() <= off(C)


def now(page):
    return page.evaluate("zerogap.C")


def test_everything_that_can_be_pressed_works(show, file, model):
    page, path = show(file), model.path_
    curve = model.score_curve(*make_moons(60, noise=0.3, random_state=1))
    error = np.sqrt(curve.best_score * (1 - curve.best_score) / 60)
    k = np.flatnonzero(curve.score >= curve.best_score - error)[0]
    assert now(page) == pytest.approx(
        np.sqrt(curve.C[k] * curve.C[k + 1])
    )  # the first that is about as good as the best
    where = page.locator(".zg-c").inner_text()
    assert page.locator(".zg-value").inner_text() == where  # the same digits
    assert f"Opened at {where.removeprefix('C = ')}," in page.locator(".zg-score-chart small").inner_text()
    page.locator("input[type=range]").fill("0.5")
    assert now(page) == pytest.approx(10**0.5)
    wait(page, "document.querySelector('.zg-c').textContent === 'C = 3.162'")
    sets = np.bincount(path.sets_at(path._position(1 / 10**0.5)), minlength=3)
    assert page.locator("[data-stat=support]").inner_text() == str(sets[1] + sets[2])
    assert page.locator("[data-stat=left]").inner_text() == str(sets[2])
    assert page.locator("[data-stat=score]").inner_text() == f"{float(curve(10**0.5)):.4g}"
    # Keys go from breakpoint to breakpoint.
    k = int(np.searchsorted(path.C, 10**0.5))
    for key, expected in (
        ("ArrowRight", k),
        ("ArrowRight", k + 1),
        ("ArrowLeft", k),
        ("Home", 0),
        ("End", len(path) - 1),
    ):
        page.keyboard.press(key)
        assert now(page) == pytest.approx(path.C[expected], rel=1e-12), key
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    wait(page, "zerogap.playing && zerogap.C > 0.0101")
    page.keyboard.press("Space")
    assert not page.evaluate("zerogap.playing")
    page.locator(".zg-play").click()
    wait(page, "zerogap.playing")
    page.locator(".zg-play").click()
    stopped = now(page)
    assert 0.01 < stopped < 1000
    # An event: the picture is that right behind it, and its point is marked.
    page.locator(".zg-list").evaluate("(list) => { list.scrollTop = 34 * 50; }")
    page.locator("[data-event='52']").click()
    event = path.events[52]
    assert now(page) == pytest.approx(event.C, rel=1e-12)
    assert page.evaluate("zerogap.path.rows[zerogap.selected]") == event.index
    status = page.evaluate("zerogap.cursor.status[zerogap.selected]")
    assert path.sets[status] == event.target
    # Another view, and another theme.
    page.locator(".zg-way").select_option("decision")
    wait(page, "zerogap.way === 'decision' && zerogap.known && !zerogap.isMoving")
    f = np.array(page.evaluate("Array.from(zerogap.decisions)"))
    np.testing.assert_allclose(f, model.decision_function(moons()[0][path.points.rows], C=event.C), atol=1e-9)
    ground = "getComputedStyle(document.querySelector('.zg-root')).backgroundColor"
    before = page.evaluate(ground)
    page.locator(".zg-theme").click()
    assert page.evaluate("document.querySelector('.zg-root').dataset.theme") == "dark"
    assert page.evaluate(ground) != before
    certificate = path.certificate_at(event.C)
    known = page.evaluate("zerogap.known")
    assert known["primal"] == pytest.approx(certificate.primal, rel=1e-9)
    assert known["dual"] == pytest.approx(certificate.dual, rel=1e-9)
    assert known["gap"] <= 1e-9
    wrong = np.sum(np.sign(f) != path.y)
    assert known["errors"] == wrong


DRAWN = "(k) => { zerogap.drawRun(zerogap.runs[k], zerogap.scenes[k]); return zerogap.gridValues(k); }"


def test_solvers_are_replayed_step_by_step(show, tmp_path):
    X, y = moons(40)
    problem = DualProblem.hinge(Gram(X, gamma=1.0), 2.0 * y - 1, C=10.0)
    comparison = compare(problem, ["smo", "simple-svm"], frames=60, stop=RelativeGap(1e-8))
    page = show(comparison.explore(tmp_path / "race.html"))
    slider = page.locator("input[type=range]")
    assert float(slider.input_value()) == pytest.approx(
        float(slider.get_attribute("min"))
    )  # everything is at the first step
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("zerogap.runs[0].step[zerogap.runs[0].at]") >= 1
    page.keyboard.press("End")
    for k, name in enumerate(comparison.solutions):
        found = page.evaluate(DRAWN, k)
        x, t = np.meshgrid(found["x"], found["y"])
        solution = comparison[name].solution
        K = problem.gram.kernel(np.stack([x.ravel(), t.ravel()], axis=1), X)
        np.testing.assert_allclose(found["f"], K @ solution.beta + solution.bias, atol=CLOSE)
        assert page.evaluate("(k) => zerogap.runs[k].gap.at(-1)", k) <= 1e-8
    for step in (9, 4, 0, 7):  # backwards, to where they started, and forwards again
        page.evaluate("(step) => zerogap.set(step ? Math.log10(step) : zerogap.low)", step)
        for k, name in enumerate(comparison.solutions):
            frame = max(
                (frame for frame in comparison[name].frames if frame.step <= step), key=lambda frame: frame.step
            )
            beta = np.array(page.evaluate("(k) => Array.from(zerogap.runs[k].beta)", k))
            np.testing.assert_array_equal(np.flatnonzero(beta), frame.support)
            np.testing.assert_array_equal(beta[frame.support], frame.values)
    page.locator(".zg-tools select").select_option("evaluations")
    page.locator(".zg-play").click()
    wait(page, "zerogap.measure === 'evaluations' && zerogap.value > zerogap.low")


WIDGET = """async ([script, payload]) => {
  const { default: widget } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const state = { payload, C: 2.0 }, listeners = [];
  globalThis.model = {
    get: (name) => state[name], set: (name, value) => { state[name] = value; }, save_changes: () => { state.saved = state.C; },
    on: (_, f) => listeners.push(f), off: (_, f) => listeners.splice(listeners.indexOf(f), 1),
    change: (C) => { state.C = C; listeners.forEach((f) => f()); }, state, listeners,
  };
  globalThis.end = widget.render({ model, el: document.body });
  globalThis.view = document.querySelector(".zg-root").zerogap;
}"""


NOTEBOOK = """
  .jp-OutputArea-output dl { display: block }
  .jp-OutputArea-output dt { float: left; width: 20%; font-weight: bold }
  .jp-OutputArea-output dd { margin-left: 20% }"""


def test_a_widget_and_python_move_each_other(browser, model):
    page = browser.new_page()
    page.add_style_tag(content=NOTEBOOK)
    page.evaluate("document.body.className = 'jp-OutputArea-output'")
    page.evaluate(WIDGET, [part("bundle.js"), text_of(of_paths([model.path_], [("0", "1")]))])
    assert page.evaluate("view.C") == 2.0
    page.add_style_tag(content=part("bundle.css"))  # which may come later than the script
    wait(page, "view.scene.colours.elbow !== ''")
    assert page.evaluate("getComputedStyle(document.querySelector('dl')).display") == "grid"
    places = page.evaluate("[...document.querySelectorAll('dt')].map((e) => getComputedStyle(e).float)")
    assert set(places) == {"none"}
    page.locator("input[type=range]").fill("1")
    assert page.evaluate("[model.state.C, model.state.saved]") == [10.0, 10.0]
    page.evaluate("model.change(0.5)")  # by Python
    assert page.evaluate("view.C") == 0.5
    assert float(page.locator("input[type=range]").input_value()) == pytest.approx(np.log10(0.5))
    page.evaluate("end()")
    assert page.evaluate("[document.querySelectorAll('.zg-root').length, model.listeners.length]") == [0, 0]
    page.close()


# Paths of other kinds.


OTHERS = {
    "C": lambda X, y: SVRPath(epsilon=0.2, C_min=0.01, C_max=100.0).fit(X, y),
    "epsilon": lambda X, y: SVRPath(over="epsilon", C=2.0).fit(X, y),
    "nu": lambda X, y: OneClassSVMPath(gamma=1.0).fit(X),
}


def at_value(page, value):
    """Return f of all training points on the page, and how many there are in each kind of set."""
    return page.evaluate(
        "(v) => { zerogap.setC(v); zerogap.isMoving = false; zerogap.decisions = null; "
        "while (zerogap.decisions === null) zerogap.evaluate(); "  # what has no time in one frame goes on in the next
        "return [Array.from(zerogap.decisions), zerogap.cursor.counts, zerogap.C]; }",
        value,
    )


@pytest.mark.parametrize("kind", OTHERS)
def test_other_paths_are_those_of_python_at_any_value_in_any_order(show, tmp_path, kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 6.0, (50, 2 if kind == "nu" else 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)
    model = OTHERS[kind](X, y)
    path = model.path_
    page = show(model.explore(tmp_path / "page.html"))
    ends = np.sort(path.value_of(path.lam))
    for value in (*rng.permutation(ends)[:4], *rng.uniform(ends[0], min(ends[-1], 5.0), 4)):
        found, counts, at = at_value(page, float(value))
        assert at == pytest.approx(value, rel=1e-12)
        expected = path.gram.full() @ path.beta_at(value) + path.bias_in_gram(value)
        assert np.abs(np.array(found) - expected).max() <= 1e-9 * max(1.0, np.abs(expected).max())
        assert sum(counts) == 50
        certificate, known = path.certificate_at(value), page.evaluate("zerogap.known")
        scale = max(abs(certificate.primal), 1e-4 * path.points.weight.sum())  # an objective of zero has no digits
        assert abs(known["primal"] - certificate.primal) <= 1e-9 * scale
        assert abs(known["dual"] - certificate.dual) <= 1e-9 * scale
        assert known["gap"] <= 1e-9
    inner = float(np.sqrt(ends[len(ends) // 2] * ends[len(ends) // 2 + 1]))
    sets = path.sets_at(path._position(path.lam_of(inner)))
    _, counts, _ = at_value(page, inner)
    assert counts[1] == np.count_nonzero(np.abs(sets) == 1)
    assert page.locator(".zg-c").text_content().startswith(f"{path.parameter} = ")
    before = page.evaluate("zerogap.C")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("zerogap.C") > before
    # The list is drawn anew as the value moves: a row may be another one between the two halves of a click.
    page.evaluate("document.querySelectorAll('.zg-event')[2].click()")
    assert page.evaluate("zerogap.selected") is not None


def said_at(page, C):
    """Return the title and the sentence that the page shows at C, at rest."""
    page.evaluate("(C) => zerogap.setC(C)", C)
    wait(page, "!zerogap.isMoving && zerogap.known !== null")
    page.evaluate("zerogap.tell()")
    return page.locator(".zg-story h2").inner_text(), page.locator(".zg-say").inner_text()


def test_a_machine_that_takes_all_for_the_larger_class_is_no_compromise(show, tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((95, 2)), rng.standard_normal((5, 2)) + 1.2])
    y = np.repeat(["healthy", "ill"], [95, 5])
    model = SVCPath(gamma=0.5, C_min=0.01, C_max=1e3).fit(X, y)
    assert (model.predict(X, C=0.02) == "healthy").all()
    page = show(model.explore(tmp_path / "page.html"))
    title, text = said_at(page, 0.02)
    assert title == "Everything is taken for healthy"
    assert "All 5 points of ill are on the wrong side" in text
    wrong = y[model.predict(X, C=900.0) != y]
    assert 0 < wrong.size < 5
    title, text = said_at(page, 900.0)
    assert title == "A larger C changes little here"
    assert "of the 5 of ill, the smaller class" in text


def test_a_straight_boundary_does_not_bend_and_beyond_a_hard_margin_nothing_is_better(show, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], np.repeat(["setosa", "versicolor"], 50)
    straight = show(SVCPath(kernel="linear", C_min=1e-3, C_max=100.0).fit(X, y).explore(tmp_path / "a.html", X, y))
    for C in (2e-3, 0.3):
        assert not any(word in said_at(straight, C)[1] for word in ("bends", "smooth"))
    assert said_at(straight, 99.0)[0] == "Hard margin"
    assert (
        "up to the end of the range: a larger C changes nothing"
        in straight.locator(".zg-score-chart small").inner_text()
    )
    X, y = moons()
    bent = show(SVCPath(gamma=1.0, C_min=1e-2, C_max=1e5).fit(X, y).explore(tmp_path / "b.html"))
    assert "bends" in said_at(bent, 9e4)[1]
    assert "an average of nearly all points" in said_at(bent, 0.05)[1]
    page = show(SVCPath(gamma=1.0).fit(np.zeros((4, 2)), [0, 1, 0, 1]).explore(tmp_path / "c.html"))
    assert said_at(page, 1.0)[0] == "No boundary"


def test_a_regression_is_flat_by_what_it_explains_and_not_by_the_width_of_its_tube(show, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (60, 2))
    y = 3.0 * X[:, 0] + rng.standard_normal(60)  # nearly all errors are beyond a tube of 0.01
    model = SVRPath(kernel="linear", epsilon=0.01, C_min=1e-5, C_max=1.0).fit(X, y)
    page = show(model.explore(tmp_path / "page.html", X, y))
    for C, expected in ((2e-5, "Small C: a flat model"), (0.05, "Medium C: the outline")):
        share = r2_score(y, model.predict(X, C=C))
        assert (share < 0.3) == (expected == "Small C: a flat model")
        assert said_at(page, C)[0] == expected
        np.testing.assert_allclose(page.evaluate("zerogap.explained"), share, atol=1e-9)
    assert "target above its prediction" in page.locator(".zg-classes").inner_text()


def test_charts_have_no_slopes_that_are_not_there(show, tmp_path):
    """Two points: one event; then both coefficients fall as 1 / C, and no set changes."""
    model = SVCPath(gamma=2.0).fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    page = show(model.explore(tmp_path / "page.html"))
    C, shares, sizes = page.evaluate("[zerogap.samples, zerogap.trajectories[0], zerogap.setCounts[1]]")
    C = np.array(C)
    kink = 1.0 / (1.0 - np.exp(-4.0))  # beta (K11 - K12) = 1
    np.testing.assert_allclose(shares, np.minimum(kink / C, 1.0), atol=1e-9)
    assert np.diff(np.log10(C)).max() < 0.05
    assert (np.array(sizes) == np.where(kink * (1 - 1e-9) > C, 1, 2)).all()
    assert page.evaluate("zerogap.sets.options.series.every((one) => one.paths)")
    assert "1 event ·" in page.locator(".zg-sub").inner_text()


def test_a_page_says_that_it_shows_one_pair_of_several(show, tmp_path):
    X, y = load_iris(return_X_y=True)
    page = show(SVCPath(C_max=1.0).fit(X[::6], y[::6]).explore(tmp_path / "page.html"))
    assert "3 classes: a machine for each of 3 pairs" in page.locator(".zg-pairs").inner_text()
    names = page.locator(".zg-tools option").all_inner_texts()
    assert names == ["0 against 1 (1 of 3)", "0 against 2 (2 of 3)", "1 against 2 (3 of 3)"]


def test_pages_of_many_classes_and_of_four_solvers_fit_their_screens(show, tmp_path):
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    file = SVCPath(C_max=10.0).fit(X[::3], names[::3]).explore(tmp_path / "iris.html", X[1::3], names[1::3])
    for width in (390, 360):
        page = show(file, {"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for name in (".zg-tools select", ".zg-theme", ".zg-play", ".zg-slide"):
            box = page.locator(name).bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["y"] + box["height"] <= 844
        ends = page.evaluate(ENDS_OF_NUMBERS)
        assert all(end <= begin for _, end, begin in ends), ends
    problem = DualProblem.hinge(Gram(moons(40)[0], gamma=1.0), 2.0 * moons(40)[1] - 1, C=10.0)
    race = compare(problem, ["smo", "simple-svm", "smo-mvp", "smo-keerthi"], frames=9).explore(tmp_path / "race.html")
    for width, rows in ((1280, 1), (1000, 2)):
        page = show(race, {"width": width, "height": 800})
        tops = page.evaluate("[...document.querySelectorAll('.zg-run')].map((e) => e.getBoundingClientRect().top)")
        assert len(set(tops)) == rows


# Where each number ends, and where the next one in its row begins.
ENDS_OF_NUMBERS = """() => {
  const boxes = [...document.querySelectorAll("dd")].filter((e) => e.offsetParent).map((e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    return [e.textContent, range.getBoundingClientRect()];
  });
  return boxes.slice(1).flatMap(([text, box], k) => (box.top === boxes[k][1].top ? [[text, boxes[k][1].right, box.left]] : []));
}"""


def test_a_curve_of_one_feature_and_its_tube(show, tmp_path):
    X = np.linspace(0.0, 6.0, 40)[:, None]
    y = np.sin(X[:, 0])
    model = SVRPath(epsilon=0.1, C_max=10.0).fit(X[::2], y[::2])
    page = show(model.explore(tmp_path / "page.html", X[1::2], y[1::2], feature_names=["time"]))
    values, xs = page.evaluate(
        "() => { zerogap.setC(2); const { dense, bias, lam } = zerogap.cursor; "
        "const f = Array.from(zerogap.curveSum.of(dense, bias), (F) => F / lam); "
        "return [f, Array.from(zerogap.plane.xs, (s) => s + zerogap.plane.cx)]; }"
    )
    np.testing.assert_allclose(values, model.predict(np.array(xs)[:, None], C=2.0), atol=1e-10)
    assert "minus mean squared error" in page.locator(".zg-score-chart h3").text_content()
    assert page.locator(".zg-score dt").inner_text() == "held-out −MSE"
    page.locator(".zg-way").select_option("fit")
    wait(page, "zerogap.way === 'fit'")


def test_an_approximate_path_is_drawn_with_its_gap(show, tmp_path):
    X, y = make_moons(80, noise=0.2, random_state=0)
    path = svm_path(X, y, gap=1e-3, C_max=100.0)
    page = show(path.explore(tmp_path / "page.html"))
    for C in (0.3, 50.0, 0.01):
        points, f = on_grid(page, C)
        expected = path.beta_at(C) @ path.gram.kernel(X[path.points.rows], points) + path.bias_in_gram(C)
        assert np.abs(f - expected).max() <= 1e-8
        gap = page.evaluate(
            "() => { zerogap.isMoving = false; do zerogap.evaluate(); while (zerogap.known === null); "
            "return zerogap.known.gap; }"
        )
        # The page takes the path's bias and counts no rounding; the certificate takes the best bias, and is off by its own.
        best = path.certificate_at(C)
        assert (best.gap - best.rounding) / (best.primal + best.rounding) <= gap <= 1e-3
    assert "an approximate path" in page.locator(".zg-proved").text_content()
    assert page.locator(".zg-approximate").inner_text() == "approximate: within a relative gap of 0.001 at every C"
    # What only an exact path knows is not claimed: points on the margin, events.
    said = page.locator(".zg-root").inner_text()
    assert "on the margin" not in said
    assert "event" not in said.lower()
    assert "between the bounds" in page.locator(".zg-say").inner_text()
    page.locator("[data-event='2']").click()
    assert now(page) == pytest.approx(path.C[2], rel=1e-12)
    assert page.locator("[data-event='2']").get_attribute("aria-current") == "true"


# Longer.


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 3, "coef0": 1.0},
        {"gamma": 0.05},
        {"kernel": RBF(0.1) + 0.2 * Linear()},
    ],
    ids=["linear", "poly", "rbf", "sum"],
)
@pytest.mark.parametrize("shift", [0.0, 1e4], ids=["near", "far"])
def test_slices_of_many_features_are_those_of_python(show, tmp_path, options, shift):
    if shift and options.get("kernel", "linear") != "linear":
        pytest.skip("products of points so far from the origin have few digits, unless the kernel moves it")
    X, y = load_breast_cancer(return_X_y=True)
    X = (X[::4, :6] - X[::4, :6].mean(axis=0)) / X[::4, :6].std(axis=0) + shift
    model = SVCPath(C_min=0.01, C_max=100, **options).fit(X, y[::4])
    page = show(model.explore(tmp_path / "page.html"))
    distinct = X[model.path_.points.rows]
    mean, axes = distinct.mean(axis=0), principal_axes(distinct)[0]
    ways = [("principal", 0, 1, axes, np.zeros(2))]
    if isinstance(options.get("kernel", ""), str):  # of others values are kept on one plane
        ways.append(("features", 4, 1, np.eye(6)[[4, 1]], mean[[4, 1]]))
    for way, a, b, directions, centre in ways:
        page.evaluate("([way, a, b]) => zerogap.setWay(way, a, b)", [way, a, b])
        for C in (0.03, 1.0, 80.0):
            place, f = on_grid(page, C)
            points = mean + (place - centre) @ directions
            expected = model.decision_function(points, C=C)
            assert np.abs(f - expected).max() <= CLOSE * max(1.0, np.abs(expected).max()), (way, C)


def awkward():
    """Paths that have little to show."""
    rng = np.random.default_rng(0)
    one, two = rng.standard_normal((20, 1)), np.array([[0.0, 0.0], [1.0, 1.0]])
    constant = np.column_stack([rng.standard_normal(30), np.ones(30), np.zeros(30)])
    y = np.arange(30) % 2
    return {
        "one-feature": svm_path(one, one[:, 0] > 0, C_max=10),
        "two-points": svm_path(two, [0, 1], C_max=10),
        "no-events": svm_path(two, [0, 1], C_min=1e-4, C_max=1e-3),
        "one-place": svm_path(np.zeros((6, 2)), [0, 0, 1, 1, 1, 0], C_max=10),
        "constant": svm_path(constant, y, C_max=10),
        "huge": svm_path(1e150 * rng.standard_normal((20, 2)), np.arange(20) % 2, C_max=10),
        "sparse": svm_path(sp.csr_matrix(constant), y, kernel="linear", C_max=10),
    }


@pytest.mark.long
def test_awkward_paths_are_shown_without_an_error(show, tmp_path):
    for name, path in awkward().items():
        page = show(path.explore(tmp_path / f"{name}.html"))
        for way in page.locator(".zg-way option").evaluate_all("(all) => all.map((one) => one.value)"):
            page.locator(".zg-way").select_option(way)
            for key in ("Home", "ArrowRight", "End", "ArrowLeft"):
                page.keyboard.press(key)
            wait(page, "!zerogap.isMoving && zerogap.known !== null")
            assert page.evaluate("zerogap.known.gap") <= 1e-9, (name, way)
        assert page.locator(".zg-say").inner_text()


@pytest.mark.long
def test_a_page_says_where_it_has_nothing_to_draw(show, tmp_path, monkeypatch):
    monkeypatch.setattr(geometry, "KERNEL_VALUES", 100)
    X, y = moons(40)
    path = svm_path(X @ X.T, y, kernel="precomputed", C_max=10)
    page = show(path.explore(tmp_path / "page.html"))
    assert "no decision axis" in page.locator(".zg-note").inner_text()
    assert not page.locator(".zg-picture").first.is_visible()
    page.keyboard.press("End")
    assert now(page) == pytest.approx(path.C[-1])


@pytest.mark.long
def test_pairs_of_classes_can_be_chosen(show, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SVCPath(C_max=100.0).fit(X, y)
    page = show(model.explore(tmp_path / "page.html", X, y))
    page.locator(".zg-tools select").select_option("2")
    wait(page, "zerogap.data.labels[0] === '2' && zerogap.data.labels[1] === '1'")
    page.locator("input[type=range]").fill("1")
    place, f = on_grid(page, 10.0)
    path = model.paths_[2]
    distinct = X[path.points.rows]
    points = distinct.mean(axis=0) + place @ principal_axes(distinct)[0]
    expected = path.gram.kernel(points, distinct) @ path.beta_at(10.0) + path.bias_in_gram(10.0)
    np.testing.assert_allclose(f, expected, atol=CLOSE)
    page.keyboard.press("End")
    assert now(page) == pytest.approx(path.C[-1])


@pytest.mark.long
def test_a_precomputed_kernel_is_seen_on_its_decision_axis(show, tmp_path):
    X, y = moons(40)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    path = svm_path(K, y, kernel="precomputed", C_max=100)
    page = show(path.explore(tmp_path / "page.html"))
    page.evaluate("zerogap.setC(7)")
    wait(page, "zerogap.known && !zerogap.isMoving")
    assert page.evaluate("zerogap.way") == "decision"
    f = K @ path.coefficients_at(7.0) + path.bias_at(7.0)
    np.testing.assert_allclose(page.evaluate("Array.from(zerogap.decisions)"), f, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_it_fits_the_screen_in_light_and_dark(show, file, tmp_path, size, scheme):
    page = show(file, size, scheme)
    page.wait_for_timeout(400)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert page.evaluate("document.querySelector('.zg-root').dataset.theme") == scheme
    bar, picture, story = (
        page.locator(name).bounding_box() for name in (".zg-bar", ".zg-picture >> nth=0", ".zg-story")
    )
    assert bar["y"] + bar["height"] == pytest.approx(size["height"], abs=1)  # the slider is always in sight
    for box in (picture, story):  # and so are the picture and what is said about it, without scrolling
        assert box["y"] + 0.9 * box["height"] <= bar["y"]
        assert box["width"] >= 0.25 * size["width"]
    for name in (".zg-play", ".zg-slide"):  # large enough for a thumb
        assert page.locator(name).bounding_box()["height"] >= 44
    shot = tmp_path / "page.png"
    page.screenshot(path=shot)
    assert shot.stat().st_size > 20_000


@pytest.mark.long
def test_five_thousand_points_and_ten_thousand_events_stay_smooth(show, tmp_path):
    X, y = make_moons(5000, noise=0.35, random_state=0)
    model = SVCPath(gamma=1.8, C_min=0.01, C_max=1e3).fit(X, y)
    assert model.n_events_ >= 10_000
    file = model.explore(tmp_path / "page.html", X[::10], y[::10])
    assert file.stat().st_size < 15_000_000
    page = show(file)
    wait(page, "zerogap.known && !zerogap.isMoving", 60)
    for C in (0.05, 30.0, 900.0):
        points, f = on_grid(page, C)
        assert np.abs(f - model.decision_function(points, C=C)).max() <= off(C)
    spent = processor_seconds(page)
    for way in ("features", "decision"):
        page.evaluate("(way) => { zerogap.setWay(way); zerogap.set(zerogap.low); zerogap.play(); }", way)
        wait(page, "zerogap.C > 0.1", 60)
        page.evaluate("zerogap.frames.length = 0")
        before = spent()
        wait(page, "zerogap.frames.length > 150", 60)
        frames, after = np.sort(page.evaluate("zerogap.frames")), spent()
        page.evaluate("zerogap.pause()")
        processor = 1000 * (after - before) / frames.size
        middle, slow = np.percentile(frames, [50, 95])
        print(f"{way}: {processor:.1f} ms of the processor a frame; by the clock {middle:.1f}, 95 % within {slow:.1f}")
        # Sixty frames a second are 16.7 ms each, for everything that the page does, laying out and painting among it.
        assert processor <= 1000 / 60, way
        # By the clock: another process may have the processor in any of them, but not in a quarter.
        assert frames[frames.size // 4] <= 1000 / 60, frames


def processor_seconds(page):
    """Return a function that tells how long the page's main thread has had the processor."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    return spent


SITE = Path(__file__).parents[1] / "docs" / "_build" / "docs"


@pytest.mark.long
@pytest.mark.parametrize(("name", "number_of"), [("live.html", 4), ("gallery/plot_02_what_c_does.html", 1)])
def test_live_explorers_of_the_site_work(browser, name, number_of):
    if not (SITE / name).exists():
        pytest.skip("the site is not built: sphinx-build -c docs . docs/_build")
    page, wrong = browser.new_page(viewport=DESKTOP), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto((SITE / name).as_uri())
    frames = page.locator("iframe.explorer")
    assert frames.count() == number_of
    for k in range(number_of):
        frames.nth(k).scroll_into_view_if_needed()  # they are loaded when they come into sight
        inner = frames.nth(k).element_handle().content_frame()
        wait(inner, "globalThis.zerogap !== undefined && zerogap.frames.length > 0")
        before = inner.evaluate("zerogap.value")
        inner.evaluate("zerogap.position.set((zerogap.low + 3 * zerogap.high) / 4)")
        assert inner.evaluate("zerogap.value") != before
        assert inner.locator(".zg-value").inner_text()
    page.close()
    assert wrong == []
