"""What results say of themselves, in text and as HTML: words and numbers a reader understands, no arrays."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from zerogap import (
    SVC,
    Certificate,
    DualProblem,
    Gram,
    ModelCertificate,
    RelativeGap,
    Status,
    SVCPath,
    Trace,
    certify,
    compare,
    datasets,
    leave_one_out,
    solve,
    svm_path,
)
from zerogap.estimators.loo import LeaveOneOut
from zerogap.kernels import RBF, Linear
from zerogap.notebook import MOST_POINTS, MOST_ROWS, ORANGE, Scale, card
from zerogap.path import Event, ScoreCurve
from zerogap.solution import TraceRow
from zerogap.wording import count, duration, number, objectives


@pytest.fixture(scope="module")
def points():
    return datasets.spiral(60, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def problem(points):
    return DualProblem.hinge(Gram(points[0], gamma=0.5), points[1], C=5.0)


@pytest.fixture(scope="module")
def results(points, problem):
    """One of each kind, and those that ended early."""
    X, y = points
    model = SVCPath(C_min=0.1, C_max=10.0, gamma=0.5).fit(X, y)
    solution = solve(problem, "smo", trace_every=5, stop=RelativeGap(1e-6))
    return {
        "solution": solution,
        "stopped": solve(problem, "rosen", max_steps=3, trace_every=1),
        "not begun": replace(solution, certificate=Certificate.nothing(), status=Status.MAX_TIME, trace=Trace()),
        "certificate": solution.certificate,
        "nothing": Certificate.nothing(),
        "trace": solution.trace,
        "empty trace": Trace(),
        "comparison": compare(problem, {"smo": "smo", "a < b": "smo-mvp", "cholesky": "cholesky"}, trace_every=5),
        "path": model.path_,
        "short path": svm_path(X, y, max_events=2),
        "no path": svm_path(X, y, max_time=0.0),
        "curve": model.score_curve(X, y),
        "flat curve": ScoreCurve(np.array([0.1, 1.0]), np.array([0.5])),
        "problem": problem,
        "gram": problem.gram,
        "small gram": Gram(np.arange(400.0)[:, None], cache_size=0.1),
        "leave one out": leave_one_out(SVC().fit(X, y)),
        "cut short": LeaveOneOut(np.array([1.0, np.nan]), np.array([1, None]), 0.0, Status.MAX_TIME),
        "model": certify(SVC().fit(X, y), X, y),
        "model of many": certify(SVC().fit(X, np.arange(60) % 8), X, np.arange(60) % 8),
        "short model": ModelCertificate(
            "SVC", ("",), (solution.certificate,), (3,), 60, ("bound not solved for: max_time",)
        ),
        "unknown model": ModelCertificate("SVC", ("",), (Certificate.nothing(),), (3,), 60),
        "event": model.path_.events[0],
        "row": solution.trace[-1],
        "solution set": model.path_.solution_set_at(1.0),
        "run": compare(problem, ["smo"])["smo"],
    }


KINDS = (
    "solution", "stopped", "not begun", "certificate", "nothing", "trace", "empty trace", "comparison", "path", "short path",
    "no path", "curve", "flat curve", "problem", "gram", "small gram", "leave one out", "cut short", "model",
    "model of many", "short model", "unknown model", "event", "row", "solution set", "run",
)  # fmt: skip
IN_TEXT_ALONE = ("event", "row", "solution set", "run")
TABLES = ("trace", "empty trace", "comparison")


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_short_and_holds_no_arrays(results, kind):
    assert set(results) == set(KINDS)
    text = repr(results[kind])
    assert "array(" not in text
    assert "object at 0x" not in text
    assert "np.float64" not in text
    assert len(text) < (2000 if kind in TABLES else 300)
    assert kind in TABLES or "\n" not in text
    assert not re.search(r"\d\.\d{12}", text)  # digits that say nothing


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in IN_TEXT_ALONE])
def test_html_is_small_and_well_formed(results, kind):
    html = results[kind]._repr_html_()
    tree = ET.fromstring(html.replace("&nbsp;", " ").replace("&hellip;", "..."))
    assert type(results[kind]).__name__ in tree.find(".//b").text
    assert len(html) < 20_000
    assert "array(" not in html
    assert "<script" not in html
    assert not re.search(r"(?<![\w-])(background|color):(#|white|black)", html)  # the page has its own, light or dark
    for svg in tree.iter("{http://www.w3.org/2000/svg}svg"):
        assert svg.find("{http://www.w3.org/2000/svg}title").text
        for path in svg.iter("{http://www.w3.org/2000/svg}path"):
            pixels = [float(v) for v in re.findall(r"-?\d+\.\d|-?\d+", path.get("d"))]
            assert all(-1.0 <= v <= float(svg.get("width")) for v in pixels)


def words(result):
    """Return what a reader sees of the HTML."""
    return " ".join("".join(part + " " for part in ET.fromstring(clean(result)).itertext()).split())


def clean(result):
    return result._repr_html_().replace("&nbsp;", " ").replace("&hellip;", "...")


def test_a_solution_tells_how_it_ended_and_what_is_proved(results):
    good, stopped, nothing = results["solution"], results["stopped"], results["not begun"]
    gap = f"{good.certificate.relative_gap:.2g}"
    for text in (repr(good), words(good)):
        assert gap in text
        assert f"{good.n_iter} iterations" in text
        assert f"{good.support.size}" in text
    assert repr(good).startswith("Solution(CONVERGED by smo after")
    assert "converged, by smo" in words(good)
    assert "hinge loss with C=5, 60 points with 2 features" in words(good)
    assert Status.MAX_STEPS.advice in words(stopped)
    assert "nothing is proved" in repr(nothing)
    assert "nothing is proved" in words(nothing)


def test_a_certificate_shows_the_digits_that_differ(problem):
    for tol in (1e-2, 1e-5, 1e-9):
        certificate = solve(problem, stop=RelativeGap(tol)).certificate
        dual, primal = objectives(certificate)
        assert dual != primal or certificate.gap < 1e-13 * certificate.primal
        assert f"optimum between {dual} and {primal}" in repr(certificate)
        assert float(dual) == pytest.approx(certificate.dual, rel=max(certificate.relative_gap, 1e-14))
    assert objectives(replace(certificate, gap=0.0, rounding=0.0, primal=0.1, dual=0.1)) == ("0.1", "0.1")


def test_a_trace_shows_its_ends(results):
    trace = results["trace"]
    assert len(trace) > 12
    assert repr(trace).count("\n") == 12
    assert f"{len(trace)} rows" in words(trace)
    assert clean(trace).count("<tr") == 13
    assert "0 rows" in words(results["empty trace"])
    assert "<svg" not in results["empty trace"]._repr_html_()


def test_a_comparison_names_all_and_marks_the_least(results):
    comparison = results["comparison"]
    text = words(comparison)
    assert "3 solvers on hinge loss" in text
    assert "a < b" in text
    assert comparison["cholesky"].reason in text
    html, seconds = comparison._repr_html_(), [run.seconds for run in comparison.runs.values() if run.solution]
    assert f"<b>{min(seconds):.3f}</b>" in html
    assert html.count("<b>") == 2  # with the title: kernel values are as many for both
    assert comparison._repr_html_().count("<svg") == 2


def test_a_path_tells_its_range_and_its_proof(results):
    path = results["path"]
    for text in (repr(path), words(path)):
        assert f"{path.largest_gap_:.1e}" in text or f"{path.largest_gap_:.2g}" in text
        assert str(path.n_free.max()) in text
    assert "max events" in words(results["short path"])
    assert "no segment yet" in words(results["no path"])


def test_a_repr_proves_nothing(points):
    path = svm_path(*points, C_min=0.1, C_max=1.0)
    path._proof, path._proved = None, 0  # as a limit may leave it
    assert path.n_unproved
    assert "largest relative gap" not in repr(path) + words(path)
    assert path.n_unproved


def test_a_curve_tells_the_best(results):
    curve = results["curve"]
    assert f"best {curve.best_score:.4g} for C from" in repr(curve)
    assert f"best score {curve.best_score:.4g}" in words(curve)
    assert 1 <= curve._repr_html_().count("<rect") <= 20
    several = ScoreCurve(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.9, 0.8, 0.9]))
    assert "for C from 1 to 2 and 1 other interval, worst 0.8" in repr(several)


def test_long_curves_are_thinned_and_keep_what_counts():
    score = np.zeros(10_001)
    score[4321] = 1.0
    html = ScoreCurve(np.geomspace(1e-4, 1e4, 10_002), score)._repr_html_()
    assert html.count("H") < MOST_POINTS + 20
    lowest = min(float(v) for v in re.findall(r"V(\d+\.\d)", html))
    assert lowest == 22.0  # the one peak is drawn


WEIGHT = np.arange(60) % 3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda g, y: DualProblem.hinge(g, y, 5.0), "hinge loss with C=5,"),
        (lambda g, y: DualProblem.hinge(g, y, 5.0, sample_weight=WEIGHT), "hinge loss with C=5 to 10,"),
        (lambda g, y: DualProblem.hinge(g, y, 5.0, fit_intercept=False), "hinge loss with C=5 without a bias,"),
        (lambda g, y: DualProblem.squared_hinge(g, y, 5.0), "squared hinge loss with C=5,"),
        (lambda g, y: DualProblem.squared_hinge(g, y, 5.0, sample_weight=WEIGHT), "squared hinge loss with C=5 to 10,"),
        (lambda g, y: DualProblem.hard_margin(g, y), "hard margin,"),
        (lambda g, y: DualProblem.hard_margin(g, y, sample_weight=WEIGHT), "hard margin,"),
        (
            lambda g, y: DualProblem.epsilon_insensitive(g, y + 0.5, 3.0, 0.2),
            "epsilon-insensitive loss with C=3, epsilon=0.2,",
        ),
        (
            lambda g, y: DualProblem.squared_epsilon_insensitive(g, y + 0.5, 3.0, 0.2),
            "squared epsilon-insensitive loss with C=3, epsilon=0.2,",
        ),
        (lambda g, y: DualProblem.gaussian_process(g, y, 0.1), "Gaussian process, or kernel ridge, with noise 0.1,"),
        (lambda g, y: replace(DualProblem.hinge(g, y, 5.0), ridge=np.ones(60)), "a loss of its own,"),
        (lambda g, y: replace(DualProblem.hinge(g, y, 5.0), total=2.0), "hinge loss with C=5, sum 2,"),
        (lambda g, y: replace(DualProblem.hinge(g, y, 5.0), target=2.0 * y), "a loss of its own,"),
        (
            lambda g, y: replace(DualProblem.hinge(g, y, 5.0), lower=np.zeros(60), upper=np.zeros(60)),
            "a loss of its own,",
        ),
    ],
)
def test_problems_go_by_the_names_of_books(points, make, said):
    problem = make(Gram(points[0], gamma=0.5), points[1])
    assert repr(problem) == f"DualProblem({said} 60 points with 2 features, rbf(gamma=0.5) kernel)"
    assert words(problem).startswith(f"DualProblem {said} 60 points with 2 features")


def test_a_matrix_tells_kernel_memory_and_work(points):
    X = points[0]
    gram = Gram(X, "linear", centre=X.mean(axis=0))
    assert repr(gram) == (
        "Gram(60 points with 2 features, linear kernel: 0 of 60 rows are in memory, which has room for all (0.029 MB); "
        "60 kernel values computed)"
    )
    gram.full()
    assert "the whole matrix is in memory; 2,764 kernel values computed" in repr(gram)
    assert "room for 64 (0.2 MB)" in repr(Gram(np.arange(400.0)[:, None], cache_size=0.1))
    assert "precomputed kernel" in repr(Gram(X @ X.T, "precomputed"))
    assert repr(Gram(X @ X.T, "precomputed")).startswith("Gram(60 points, ")
    assert "rbf + linear kernel" in repr(Gram(X, RBF(0.5) + Linear()))


def test_rows_and_events_are_sentences():
    row = TraceRow(1200, 0.0031, 12.5, 0.25, 0.01, 36000, 1)
    assert repr(row) == (
        "TraceRow(step 1,200: relative gap 0.01, dual 12.5, violation 0.25, 1 support vector, 36,000 kernel values, 3.1 ms)"
    )
    assert repr(Event(0.123456789, 7, "left", "elbow")) == "Event(C=0.123457: point 7 from left to elbow)"


def test_text_of_others_is_escaped():
    html = card("<b>", "a & b", [("<i>", '"<script>alert(1)</script>"')])
    assert "<script>" not in html
    assert "<i>" not in html
    assert "a &amp; b" in html


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 µs"),
        (2e-5, "20 µs"),
        (1e-3, "1 ms"),
        (0.0123, "12 ms"),
        (0.5, "500 ms"),
        (1.0, "1 s"),
        (12.34, "12 s"),
        (3600.0, "3600 s"),
    ],
)
def test_durations_have_units(seconds, said):
    assert duration(seconds) == said


def test_numbers_are_written_as_people_do():
    assert (count(1), count(1234567), count(1, "row"), count(2, "row")) == ("1", "1,234,567", "1 row", "2 rows")
    assert [number(v) for v in (0.1 + 0.2, np.inf, -np.inf, np.nan)] == ["0.3", "infinite", "-infinite", "?"]


def test_scales_hold_their_ends_and_one_value_is_in_the_middle():
    scale = Scale.of(np.array([0.01, 1.0, 100.0]), is_log=True)
    assert scale(np.array([0.01, 1.0, 100.0]), 0, 10).tolist() == [0.0, 5.0, 10.0]
    assert scale.ends == ("0.01", "100")
    assert Scale.of(np.array([3.0, 3.0]))(np.array([3.0]), 0, 10).tolist() == [5.0]


def test_leave_one_out_of_several_classes_counts_rows_and_not_values():
    values = np.array([[1.0, 2.0, 3.0], [np.nan, np.nan, np.nan]])
    found = LeaveOneOut(values, np.array([2, None]), 0.0, Status.MAX_TIME)
    assert "over 1 rows of 2" in repr(found)
    assert ">1 of 2<" in found._repr_html_()


# Certificates of models.


def test_how_far_a_model_is_off_is_told_first(results):
    found = results["model"]
    said = words(found)
    assert said.startswith(f"ModelCertificate SVC: up to {found.relative_gap:.1e} off the optimum")
    for term, value in (
        ("objective", f"{found.primal:.7g}"),
        ("optimum at least", f"{found.dual:.7g}"),
        ("points", "60"),
        ("coefficients not zero", str(found.n_support[0])),
    ):
        assert f"{term} {value}" in said
    assert ORANGE not in found._repr_html_()


def test_of_many_problems_the_worst_come_first(results):
    found = results["model of many"]
    assert len(found.names) == 28
    said, rows = words(found), list(ET.fromstring(clean(found)).iter("tbody"))[-1]
    assert f"worst problem {found.worst_name}, of 28" in said
    shown = [["".join(cell.itertext()) for cell in row] for row in rows]
    assert len(shown) == MOST_ROWS + 1
    assert shown[0][0] == found.worst_name
    assert shown[-1][0] == "and 8 more"
    gaps = {name: certificate.relative_gap for name, certificate in zip(found.names, found.certificates, strict=True)}
    assert [row[0] for row in shown[:-1]] == sorted(gaps, key=lambda name: -gaps[name])[:MOST_ROWS]
    assert [row[1] for row in shown[:-1]] == [f"{gaps[row[0]]:.1e}" for row in shown[:-1]]


def test_a_bound_that_is_short_or_none_is_marked(results):
    assert "not as asked for bound not solved for: max_time" in words(results["short model"])
    assert "nothing proves how far it is off" in words(results["unknown model"])
    for kind in ("short model", "unknown model"):
        assert ORANGE in results[kind]._repr_html_()


def test_names_of_classes_are_no_html():
    known = Certificate.nothing()
    found = ModelCertificate("SVC", ("<i> against b", "c against d"), (known, known), (1, 1), 4)
    assert "<i>" not in found._repr_html_()
