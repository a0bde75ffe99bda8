import csv
import sys
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from zerogap import reproduce
from zerogap.cli import main
from zerogap.reproduce import Report, summary


def fake(monkeypatch, run, name="fake-table-1"):
    monkeypatch.setattr(reproduce, "experiments", lambda: {name: run})


# The frame.


@pytest.mark.parametrize(
    ("add", "holds"),
    [
        (lambda r: r.show("a", "b", 1, 2), None),
        (lambda r: r.equal("a", "b", 3, 3), True),
        (lambda r: r.equal("a", "b", 3, 4), False),
        (lambda r: r.near("a", "b", 1.0, 1.25, 0.25, "drawn once"), True),
        (lambda r: r.near("a", "b", 1.0, 1.26, 0.25, "drawn once"), False),
        (lambda r: r.near("a", "b", 1.0, 0.75, 0.25, "drawn once"), True),
        (lambda r: r.near("a", "b", 1.0, 0.74, 0.25, "drawn once"), False),
        (lambda r: r.near("a", "b", -1.0, -1.26, 0.25, "drawn once"), False),
        (lambda r: r.near("a", "b", 1.0, np.nan, 0.25, "drawn once"), False),
        (lambda r: r.at_most("a", "b", 2.0, 2.0), True),
        (lambda r: r.at_most("a", "b", 2.0, 2.1), False),
        (lambda r: r.within_factor("a", "b", 2.0, 6.0, 3.0, "a size"), True),
        (lambda r: r.within_factor("a", "b", 2.0, 6.1, 3.0, "a size"), False),
        (lambda r: r.within_factor("a", "b", 2.0, 0.6, 3.0, "a size"), False),
        (lambda r: r.between("a", "b", 2.0, 3.0, 3.0), True),
        (lambda r: r.between("a", "b", 2.0, 3.0, 1.9), False),
        (lambda r: r.claim("a", "b", "grows", np.True_, 1), True),
        (lambda r: r.claim("a", "b", "grows", np.False_, 1), False),
        (lambda r: r.check("a", "b", "is sorted", np.True_, 1), True),
        (lambda r: r.check("a", "b", "is sorted", np.False_, 1), False),
    ],
)
def test_rules(add, holds, capsys):
    report = Report("name")
    add(report)
    cell = report.cells[0]
    assert cell.holds is holds
    # Only self-checks are not of the paper.
    assert cell.kind == ("" if holds is None else "self" if cell.rule == "is sorted" else "paper")
    assert len(report.judged("paper")) == (cell.kind == "paper")
    mark = {True: "holds", False: "DIFFERS", None: ""}[holds]
    assert capsys.readouterr().out.rstrip().endswith(mark)


def three_cells(report, quick):
    report.equal("monk", "events", 10, 10 if quick else 11)
    report.near("wbc", "events", 20.0, 20.5, 1.0, "ties | backups")
    report.show("wbc", "seconds", None, 0.123456)
    report.check("wbc", "order", "sorted", True, "yes")
    report.say("the third set is not there")


def test_markdown_shows_the_papers_value_and_what_does_not_hold():
    report = Report("fake-table-1")
    three_cells(report, quick=False)
    report.figures.append("fake.png")
    lines = report.markdown().splitlines()
    assert "|  | events | seconds | order |" in lines
    assert "| monk | 11 (10) **✗** |  |  |" in lines
    assert "| wbc | 20.5 (20) | 0.1235 | yes |" in lines
    assert "fake-table-1: 1 of 2 paper cells hold, 1 of 1 self-checks hold, 1 for information." in lines
    assert "- events · within 1 · ties | backups" in lines
    assert "- the third set is not there" in lines
    assert lines[-1] == "![fake.png](fake.png)"


def test_results_are_written_with_machine_and_versions(monkeypatch, tmp_path):
    fake(monkeypatch, three_cells)
    (report,) = reproduce.reproduce(["fake-table-1"], output=tmp_path)
    with (tmp_path / "fake" / "fake-table-1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["holds"] for row in rows] == ["False", "True", "", "True"]
    assert [row["kind"] for row in rows] == ["paper", "paper", "", "self"]
    assert [row["paper"] for row in rows] == ["10", "20.0", "", ""]
    assert {row["experiment"] for row in rows} == {"fake-table-1"}
    assert rows[0]["numpy"] == np.__version__
    assert rows[0]["cpu"]
    assert (tmp_path / "fake" / "fake-table-1.md").read_text() == report.markdown()


def test_the_summary_counts_all_results_and_lists_what_does_not_hold(tmp_path):
    for paper, ours, why in (("ong", 3, ""), ("lopez", 4, "other data"), ("ssvm", 5, "")):
        report = Report(f"{paper}-table-1")
        report.equal("set", "events", 3, ours, why)
        report.check("set", "order", "sorted", paper != "ssvm", "yes")
        report.show("set", "seconds", 1.0, 2.0)
        report.write(tmp_path / paper)
    text = summary(tmp_path)
    assert "| [ong-table-1](ong/ong-table-1.md) | 1 | 1 | 1 | 1 | 1 |" in text
    assert "| all | 3 | 1 | 3 | 2 | 3 |" in text
    assert "**1 of 3 paper cells hold**" in text
    assert "- lopez-table-1: set, events: paper 3, ours 4, should be equal; other data" in text
    assert "- ssvm-table-1: set, events: paper 3, ours 5, should be equal; unexplained" in text
    assert "- ssvm-table-1: set, order: paper -, ours yes, should be sorted; unexplained" in text
    assert "summary.png" not in text
    pytest.importorskip("matplotlib")
    reproduce.draw_summary(tmp_path)
    assert (tmp_path / "summary.png").stat().st_size > 1_000
    assert "](summary.png)" in summary(tmp_path)


def test_the_summary_has_no_more_digits_than_the_tables(tmp_path):
    report = Report("ong-table-1")
    report.near("set", "events", 10 / 3, 1.23456789, 1.0, "drawn once")
    report.equal("set", "points", 1_234_567, 7_654_321)
    report.write(tmp_path / "ong")
    assert "set, events: paper 3.333, ours 1.235, should be" in summary(tmp_path)
    assert "set, points: paper 1234567, ours 7654321, should be" in summary(tmp_path)


def test_the_picture_rings_the_cells_that_differ_and_no_others(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    report, shown = Report("ong-table-1"), []
    for ours in (3, 4, 3):
        report.equal("set", f"events {len(report.cells)}", 3, ours)
    report.write(tmp_path / "ong")
    monkeypatch.setattr(reproduce, "save_figure", lambda figure, file, **_: shown.append(figure))
    reproduce.draw_summary(tmp_path)
    points, rings = shown[0].axes[0].collections
    assert points.get_offsets().tolist() == [[3, 3], [3, 4], [3, 3]]
    assert rings.get_offsets().tolist() == [[3, 4]]


def test_the_command_fails_where_a_self_check_does(monkeypatch, capsys):
    fake(monkeypatch, three_cells)
    assert main(["reproduce"]) == 0
    assert capsys.readouterr().out == "fake-table-1\n"
    assert main(["reproduce", "fake-table-1", "--quick"]) == 0
    assert main(["reproduce", "fake"]) == 0  # that a paper says otherwise is a result
    out = capsys.readouterr().out
    assert "fake-table-1 (quick)" in out
    assert out.count("paper cells hold") == 2
    fake(monkeypatch, lambda report, quick: report.check("wbc", "order", "sorted", False, "no"))
    assert main(["reproduce", "fake"]) == 1


def test_the_picture_has_zeros_on_its_margins_and_what_is_far_off_at_its_edge(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    report, shown = Report("ong-table-1"), []
    for paper, ours in ((3.0, 3.0), (300.0, 1e9), (0.0, 0.0), (0.0, 3.0), (3.0, 0.0)):
        report.equal("set", f"events {len(report.cells)}", paper, ours)
    report.claim("set", "in words", "grows", True, 2.0)
    report.write(tmp_path / "ong")
    monkeypatch.setattr(reproduce, "save_figure", lambda figure, file, **_: shown.append(figure))
    reproduce.draw_summary(tmp_path)
    (ax,) = shown[0].axes
    points = ax.collections[0].get_offsets().tolist()
    zero = points[2][0]
    assert points == [[3, 3], [300, 900], [zero, zero], [zero, 3], [3, zero]]
    assert ax.get_xlim()[0] < zero < 1.0
    (tmp_path / "summary.png").touch()
    assert "the 5 paper cells in which both values are numbers" in summary(tmp_path)


@pytest.mark.long
def test_the_quick_form_is_marked_and_does_not_replace_full_results(monkeypatch, tmp_path, capsys):
    fake(monkeypatch, three_cells, "ong-table-1")
    csv_file = tmp_path / "ong" / "ong-table-1.csv"
    reproduce.reproduce(["ong-table-1"], quick=True, output=tmp_path)
    reproduce.reproduce(["ong-table-1"], quick=True, output=tmp_path)  # its own it may replace
    assert csv_file.with_suffix(".md").read_text().startswith("# ong-table-1 (quick)\n")
    assert "quick form" in csv_file.with_suffix(".md").read_text()
    assert {row["form"] for row in csv.DictReader(csv_file.read_text().splitlines())} == {"quick"}
    assert "| [ong-table-1](ong/ong-table-1.md) (quick) |" in summary(tmp_path)
    assert "Quick forms are among them" in summary(tmp_path)

    reproduce.reproduce(["ong-table-1"], output=tmp_path)
    before = csv_file.read_text()
    assert {row["form"] for row in csv.DictReader(csv_file.read_text().splitlines())} == {"full"}
    assert "uick" not in summary(tmp_path) + csv_file.with_suffix(".md").read_text()
    capsys.readouterr()
    assert main(["reproduce", "ong-table-1", "--quick", "--output", str(tmp_path)]) == 2
    out, error = capsys.readouterr()
    assert out == ""  # nothing was run
    assert "ong-table-1" in error
    assert csv_file.read_text() == before


def test_several_experiments_end_with_a_total(monkeypatch, capsys):
    monkeypatch.setattr(reproduce, "experiments", lambda: {"ong-table-1": three_cells, "ong-table-2": three_cells})
    reproduce.reproduce(["ong"], quick=True)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "all 2: 4 of 4 paper cells hold, 2 of 2 self-checks hold, 2 for information"


def test_each_experiment_runs_once_however_it_is_named(monkeypatch):
    fake(monkeypatch, three_cells)
    assert len(reproduce.reproduce(["all", "fake", "fake-table-1"], quick=True)) == 1


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"experiment.*spiral-figure-9") as error:
        reproduce.reproduce(["spiral-figure-9"])
    assert "spiral-figure-2" in str(error.value)


def test_missing_data_is_one_line(monkeypatch, capsys):
    def run(report, quick):
        raise FileNotFoundError("no file sonar; set ZEROGAP_DATA\nand a second line")

    fake(monkeypatch, run)
    (report,) = reproduce.reproduce(["fake-table-1"])
    assert report.notes == ["not run, data is missing: no file sonar; set ZEROGAP_DATA"]
    assert report.cells == []
    assert "second" not in capsys.readouterr().out


def test_other_errors_are_not_hidden(monkeypatch):
    fake(monkeypatch, lambda report, quick: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        reproduce.reproduce(["fake-table-1"])


# The experiments, in their quick form.

# Each of these takes more than a second; of every paper some are left that do not.
LONG = (
    "ong-table-2", "ong-table-3", "ong-table-4", "ong-figure-1", "lopez-variants", "lopez-table-1", "lopez-table-2",
    "lopez-finish", "lopez-cost", "ong-table-1", "ssvm-table-2", "spiral-figure-1",
    "lopez-titanic", "lopez-flare", "spiral-figure-6",
    "ssvm-table-1", "ssvm-table-3", "ssvm-table-4", "ssvm-figure-1", "spiral-figure-2", "spiral-figure-3", "spiral-figure-4",
    "spiral-figure-5", "spiral-table-1", "spiral-complexity", "chapter7-exercise-1", "chapter7-exercise-2",
    "chapter7-exercise-3", "chapter7-stopping", "chapter7-gaussian-process",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in reproduce.experiments()]
)
def test_quick_form(name, tmp_path):
    (report,) = reproduce.reproduce([name], quick=True, output=tmp_path)
    folder = tmp_path / name.split("-")[0]
    assert all("\n" not in note for note in report.notes)
    if not report.cells:
        assert report.notes
        pytest.skip(report.notes[0])
    assert [cell for cell in report.judged("self") if not cell.holds] == []
    with (reproduce.home() / folder.name / f"{name}.csv").open(newline="") as file:
        held = {(row["row"], row["column"]) for row in csv.DictReader(file) if row["holds"] == "True"}
    lost = [cell for cell in report.judged("paper") if not cell.holds and (cell.row, cell.column) in held]
    assert lost == []  # what agrees with a paper in the results that are kept agrees here
    assert (folder / f"{name}.md").exists()
    for figure in report.figures:
        assert 1_000 < (folder / figure).stat().st_size < 100_000


# The spirals.


@pytest.fixture
def spiral():
    return reproduce._load(reproduce.home() / "spiral" / "run.py")


@pytest.mark.parametrize("has_matplotlib", [True, False])
def test_figures_are_drawn_if_matplotlib_is_there(has_matplotlib, monkeypatch, tmp_path):
    if has_matplotlib:
        pytest.importorskip("matplotlib")
    else:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    (report,) = reproduce.reproduce(["spiral-figure-1"], quick=True, output=tmp_path)
    assert report.figures == (["spiral-figure-1.png"] if has_matplotlib else [])
    assert report.notes == ([] if has_matplotlib else ["no figure: matplotlib is not installed"])


def test_each_split_takes_every_point_once(spiral):
    for split in spiral.SPLITS:
        data = spiral.draw(spiral.BEST[0], split, 3)
        assert (data.X.shape, data.X_test.shape) == ((300, 2), (300, 2))
        assert len(np.unique(np.concatenate([data.X, data.X_test]), axis=0)) == 600
        assert data.y.sum() + data.y_test.sum() == 0
    X, _ = spiral.datasets.spiral(600, 0.2, random_state=3)
    assert (X[::2] == spiral.draw(spiral.BEST[0], "every other", 3).X).all()


def test_the_course_of_a_run(spiral):
    course = spiral.run(spiral.BEST[0], 0, mu=5, tolerance=1e-4)
    n, K = course.star.size, spiral.Gram(course.data.X, gamma=5).full()
    assert course.distance[0] == pytest.approx(course.star @ K @ course.star)
    assert course.distance.size == course.violation.size == course.iterations + 1
    assert course.violation[-1] <= 1e-4 < course.violation[:-1].min()
    assert np.abs(course.star).max() == course.largest == course.C
    assert 0 < course.settled < course.iterations
    assert course.least <= course.iterations
    assert 0 < course.free.size < n


def test_the_constant_of_section_3_2(spiral):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((7, 2)), np.array([1, -1, 1, 1, -1, -1, 1.0])
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    Q = y[:, None] * K * y
    inverse = np.linalg.inv(Q)
    share = (y @ inverse @ y / np.abs(inverse).sum()) ** 2
    smallest = min(np.linalg.eigvalsh(np.linalg.inv(Q[np.ix_(B, B)]))[0] for B in combinations(range(7), 2))
    expected = smallest / (2 * 7 * np.linalg.eigvalsh(inverse)[-1]) * share
    assert spiral.one_minus_c(K) == pytest.approx(expected)


def test_a_plane_is_found_where_there_is_one(spiral):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert spiral.is_separable(X, np.array([-1.0, -1.0, 1.0, 1.0]))
    assert not spiral.is_separable(X, np.array([1.0, -1.0, -1.0, 1.0]))


@pytest.mark.parametrize(("growth", "holds"), [(0.8, True), (2.0, True), (2.1, False), (-0.05, False), (np.nan, False)])
def test_an_iteration_that_does_not_grow_is_no_evidence_of_a_bound_on_its_growth(growth, holds, spiral):
    report = reproduce.Report("spiral-complexity")
    spiral.judge_iteration(report, growth)
    assert report.cells[0].holds is holds


def test_the_time_of_an_iteration_leaves_out_the_start(spiral, monkeypatch):
    clock = [0.0]

    def step(self, problem, state, iterations, target):
        clock[0] += 5.0 + 0.5 * iterations  # the start takes as long as ten iterations
        return state, SimpleNamespace(iterations=iterations)

    monkeypatch.setattr(spiral.SMO, "step", step)
    monkeypatch.setattr(spiral.time, "process_time", lambda: clock[0])
    X, y = spiral.datasets.spiral(20, 0.2, random_state=0)
    assert spiral.iteration_time(spiral.DualProblem.hinge(spiral.Gram(X), y, 1.0)) == pytest.approx(0.5)


# Tolerances do not depend on what came out.


def test_a_larger_error_of_ours_is_given_no_more_room(spiral):
    report = reproduce.Report("spiral-table-1")
    for mean in (0.0, 0.2):
        spiral.judge_error(report, "row", "test", (*spiral.BEST, spiral.LARGEST_C, 1), 0.01, np.full(4, mean))
    assert [cell.holds for cell in report.cells] == [True, False]
    assert len({cell.rule for cell in report.cells}) == 1


def test_counts_that_scatter_are_given_no_more_room():
    lopez = reproduce._load(reproduce.home() / "lopez" / "run.py")
    report, far = reproduce.Report("lopez-table-1"), 30.0 + np.array([-50.0, 50.0] * 50)
    for counts in (np.full(100, 30.0), far):
        lopez.judge_support(report, "row", "SVs", (20.0, 5.0), lopez.Extremes(counts, counts, 0.0))
    assert [cell.holds for cell in report.cells] == [False, False]
    assert lopez.spread(5.0, 100) == pytest.approx(3 * 5 * np.sqrt(2 / 100))
