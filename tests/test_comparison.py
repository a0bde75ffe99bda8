import builtins
import json
from dataclasses import dataclass

import matplotlib as mpl
import matplotlib.pyplot as plt
import naive
import numpy as np
import pytest
from conftest import points

from zerogap import Comparison, DualProblem, Gram, RelativeGap, Status, compare, datasets, solve
from zerogap.comparison import margin
from zerogap.plots import plot_comparison
from zerogap.solvers import SMO

mpl.use("Agg")

FAMILY = ("smo", "smo-mvp", "smo-platt")


def spiral_problem(n=300):
    """Figure 2 of spiral: 300 points, C = 0.5, mu = 10."""
    X, y = datasets.spiral(n, random_state=0)
    return DualProblem.hinge(Gram(X, gamma=10.0), y, 0.5)


@pytest.fixture
def spiral():
    return spiral_problem()


def test_each_solver_does_what_it_does_alone(spiral):
    spiral.gram.full()  # what is in memory must help no solver
    comparison = compare(spiral, FAMILY, stop=RelativeGap(1e-6))
    assert isinstance(comparison, Comparison)
    assert list(comparison.solutions) == list(FAMILY)
    for name in FAMILY:
        alone = replaced(spiral)
        solution = solve(alone, name, stop=RelativeGap(1e-6))
        row = comparison[name].row
        assert row["solver"] == name
        assert row["status"] == "CONVERGED"
        assert row["iterations"] == solution.n_iter
        assert row["kernel_evaluations"] == alone.gram.evaluations > 0
        assert row["relative_gap"] == solution.certificate.relative_gap <= 1e-6
        assert row["support_vectors"] == solution.support.size
        np.testing.assert_array_equal(comparison.solutions[name].beta, solution.beta)
        assert comparison.traces[name]["step"].tolist() == solution.trace["step"].tolist()


def replaced(problem):
    return DualProblem.hinge(Gram(problem.gram.X, gamma=10.0), problem.target, 0.5)


def test_the_order_of_the_solvers_does_not_matter(spiral):
    one, two = compare(spiral, FAMILY), compare(spiral, FAMILY[::-1])
    for name in FAMILY:
        a, b = one[name].row, two[name].row
        assert {**a, "seconds": 0} == {**b, "seconds": 0}


def test_solutions_hold_no_kernel_values_and_can_be_resumed(spiral):
    loose = compare(spiral, ["smo"], stop=RelativeGap(1e-2)).solutions["smo"]
    assert not loose.problem.gram.has_rows(slice(None)).any()
    tight = solve(loose.problem, "smo", stop=RelativeGap(1e-9), resume=loose)
    assert tight.status is Status.CONVERGED
    assert tight.trace["step"][: len(loose.trace)].tolist() == loose.trace["step"].tolist()


def test_a_solver_that_cannot_is_a_row_that_says_why(plain):
    X, y, t = plain
    comparison = compare(DualProblem.hinge(Gram(X), y, 1.0), ["smo", "cg", "cholesky"])
    assert comparison["cg"].solution is None
    assert comparison["cg"].row["status"] == "REFUSED"
    assert "solver='smo'" in comparison["cg"].reason
    assert "solver='smo'" in repr(comparison)
    assert list(comparison.solutions) == ["smo"]
    process = compare(DualProblem.gaussian_process(Gram(X), t, 0.1), ["smo", "cg", "cholesky"], stop=RelativeGap(1e-9))
    assert all(solution.status is Status.CONVERGED for solution in process.solutions.values())
    assert len(process.solutions) == 3


def test_what_is_wrong_for_all_is_an_error(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1.0)
    with pytest.raises(ValueError, match="max_steps"):
        compare(problem, ["smo"], max_steps=-1)
    with pytest.raises(TypeError, match=r"RelativeGap\(1e-4\)"):
        compare(problem, ["smo"], stop=1e-3)
    with pytest.raises(TypeError, match="max_step"):
        compare(problem, ["smo"], max_step=3)
    with pytest.raises(ValueError, match="Unknown solver 'sgd'"):
        compare(problem, ["smo", "sgd"])
    with pytest.raises(ValueError, match="Two solvers are called 'smo'"):
        compare(problem, [SMO(), SMO(shrinking=False)])
    with pytest.raises(ValueError, match="no solver to compare"):
        compare(problem, [])
    with pytest.raises(KeyError, match="No solver 'cg' took part"):
        compare(problem, "smo")["cg"]

    def fail(state, row):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        compare(problem, ["smo"], callback=fail)


def test_names_of_ones_own_limits_and_callbacks(spiral):
    seen = []
    comparison = compare(
        spiral,
        {"with": SMO(), "without": SMO(shrinking=False)},
        stop=RelativeGap(1e-8),
        max_steps=30,
        trace_every=10,
        callback=lambda state, row: seen.append(row.step),
    )
    assert [row["status"] for row in comparison.rows] == ["MAX_STEPS", "MAX_STEPS"]
    assert comparison.traces["with"]["step"].tolist() == [0, 10, 20, 30]
    assert seen == [0, 10, 20, 30] * 2


def test_compilation_is_charged_to_nobody(plain):
    X, y, _ = plain
    calls = []

    @dataclass(frozen=True)
    class Recorder(SMO):
        def init(self, problem, beta=None):
            calls.append(problem.n)
            return super().init(problem, beta)

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 2)), np.where(np.arange(1500) < 3, 1.0, -1.0)
    compare(DualProblem.hinge(Gram(X), y, 1.0), {"mine": Recorder()})
    assert calls[-1] == 1500
    assert all(small < 1200 for small in calls[:-1])
    assert len(calls) == 3  # a few points, then enough to shrink, then the run


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n", [80, pytest.param(300, marks=pytest.mark.long)])
def test_distance_to_the_optimum(n, loss):
    spiral = spiral_problem(n)
    spiral = getattr(DualProblem, loss)(spiral.gram, spiral.target, 0.5)
    comparison = compare(spiral, FAMILY, distance=True, trace_every=1, stop=RelativeGap(1e-8))
    assert comparison.reference.certificate.relative_gap <= 1e-12
    K, optimum = naive.matrix(spiral), comparison.reference.beta
    for name, trace in comparison.traces.items():
        distance = trace["distance"]
        assert len(distance) == len(trace["step"])
        assert distance[0] == pytest.approx(np.sqrt(optimum @ K @ optimum))
        last = comparison.solutions[name].beta - optimum
        assert distance[-1] == pytest.approx(np.sqrt(last @ K @ last), rel=1e-6, abs=1e-10)
        # Half the squared distance to the exact optimum is at most what the objective lacks; the reference is off it too.
        off = comparison.reference.certificate.gap
        behind = np.maximum(comparison.reference.certificate.dual - trace["dual"], 0) + off
        assert (distance <= np.sqrt(2 * behind) + np.sqrt(2 * off)).all()
        assert distance[-1] < 1e-3 * distance[0]


@pytest.mark.parametrize("rows", [1, 200], ids=["many-rows", "few-rows"])
def test_a_reference_of_ones_own(spiral, rows):
    exact = solve(spiral, stop=RelativeGap(1e-10))
    comparison = compare(spiral, ["smo"], distance=True, reference=exact, trace_every=rows)
    assert comparison.reference is exact
    assert comparison.traces["smo"]["distance"].min() < 0.1


def test_margin_of_a_hard_and_a_soft_margin():
    X, y, _ = points("plain")
    hard = compare(DualProblem.hard_margin(Gram(X), y), ["smo"], trace_every=5, stop=RelativeGap(1e-8))
    trace, solution = hard.traces["smo"], hard.solutions["smo"]
    K = naive.matrix(solution.problem)
    norm = np.sqrt(solution.beta @ K @ solution.beta)
    decision = y * (K @ solution.beta + solution.bias)
    assert trace["margin"][-1] == pytest.approx(decision.min() / norm, rel=1e-9)
    assert trace["margin"][-1] == pytest.approx(1 / norm, rel=1e-3)
    assert np.isnan(trace["margin"][0])
    assert np.nanmax(trace["margin"]) <= 1 / norm * (1 + 1e-3)  # no classifier has a wider one
    soft = compare(DualProblem.hinge(Gram(X), y, 1.0), ["smo"]).solutions["smo"]
    norm = np.sqrt(soft.beta @ K @ soft.beta)
    assert margin(soft.problem, soft.beta, soft.state.residual) == pytest.approx(1 / norm)
    regression = DualProblem.epsilon_insensitive(Gram(X), y, 1.0, 0.1)
    assert np.isnan(compare(regression, ["smo"]).traces["smo"]["margin"]).all()


def test_table_dict_and_frame(spiral):
    comparison = compare(spiral, ["smo", "cg"], trace_every=5)
    lines = repr(comparison).splitlines()
    assert lines[0].split() == ["solver", "status", "iterations", "evaluations", "seconds", "gap", "support"]
    assert lines[1].startswith("smo ")
    stored = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert stored["rows"] == comparison.rows
    assert stored["traces"]["smo"]["margin"][0] is None
    assert stored["points"] == 300
    assert "cg" in stored["refused"]
    X, y, _ = points("plain")
    hopeless = compare(DualProblem.hard_margin(Gram(X, "linear"), y), ["smo"], max_steps=3).to_dict()
    assert hopeless["rows"][0]["relative_gap"] is None  # infinite
    json.dumps(hopeless, allow_nan=False)
    frame = comparison.to_frame()
    assert frame.loc["smo", "iterations"] == comparison["smo"].solution.n_iter
    assert len(comparison) == len(frame) == 2


def test_all_solvers_by_default(plain):
    X, _, t = plain
    problem = DualProblem.gaussian_process(Gram(X), t, 0.5)
    comparison = compare(problem, max_time=5)
    assert {"smo", "cg", "cholesky"} <= set(comparison.solutions)
    assert "auto" not in comparison.runs


# Plots.


@pytest.fixture(scope="module")
def traced():
    return compare(spiral_problem(), ["smo", "smo-mvp", "cg"], distance=True, trace_every=5)


@pytest.fixture(scope="module")
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.mark.long
@pytest.mark.parametrize("y", ["gap", "dual", "margin", "distance", "violation", "support"])
@pytest.mark.parametrize(
    "x", ["step", *(pytest.param(x, marks=pytest.mark.long) for x in ("seconds", "kernel_evaluations"))]
)
def test_plots_show_the_traces(traced, ax, x, y):
    ax.clear()
    assert traced.plot(y, x, ax=ax) is ax
    assert [line.get_label() for line in ax.lines] == ["smo", "smo-mvp"]
    for line in ax.lines:
        trace = traced.traces[line.get_label()]
        shown = np.isfinite(trace[y])
        np.testing.assert_array_equal(line.get_xdata(), trace[x][shown])
        np.testing.assert_array_equal(line.get_ydata(), trace[y][shown])
    assert ax.get_yscale() == ("log" if y in ("gap", "distance", "violation") else "linear")
    assert ax.get_xlabel()
    ax.figure.canvas.draw()


def test_plots_say_what_is_missing(spiral, plain, monkeypatch):
    comparison = compare(spiral, ["smo"])
    with pytest.raises(ValueError, match="distance=True"):
        comparison.plot("distance")
    with pytest.raises(ValueError, match="Unknown y 'loss'"):
        comparison.plot("loss")
    with pytest.raises(ValueError, match="Unknown x 'epoch'"):
        plot_comparison(comparison, x="epoch")
    X, _, t = plain
    process = compare(DualProblem.gaussian_process(Gram(X), t, 0.1), ["cg"])
    with pytest.raises(ValueError, match="no margin"):
        process.plot("margin")
    ax = process.plot("gap")
    plt.close(ax.figure)
    real = builtins.__import__

    def without_extras(name, *args, **kwargs):
        if name.split(".")[0] in ("matplotlib", "pandas"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_extras)
    with pytest.raises(ImportError, match=r'pip install "zerogap\[plots\]"'):
        comparison.plot()
    with pytest.raises(ImportError, match="pip install pandas"):
        comparison.to_frame()
