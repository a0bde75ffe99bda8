"""What a new user meets: files that a broken pipe must not cost, and messages that must name what helps."""

import json
import os
import pickle
import sys

import numpy as np
import pytest

import zerogap
from zerogap.cli import main
from zerogap.cli.messages import in_options

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2)).round(3)
KIND = np.where(X[:, 0] > 0, "yes", "no")
FIT = ("--no-peer", "--C", "1")


def csv_text(columns=X.T, kind=KIND, names="a,b,kind"):
    rows = zip(*columns, kind, strict=True)
    return names + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in a folder with data.csv; return its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(csv_text())

    def call(*arguments):
        code = main(list(map(str, arguments)))
        return code, *capsys.readouterr()

    return call


# A pipe that nobody reads.


@pytest.fixture
def into_nothing(tmp_path, monkeypatch):
    """Run a command whose standard output is a pipe that nobody reads; return its exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(csv_text())

    def call(*arguments):
        read, write = os.pipe()
        os.close(read)
        with open(write, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            return main(list(arguments))

    return call


@pytest.mark.parametrize("command", ["fit", "path"])
def test_a_broken_pipe_does_not_cost_the_model(tmp_path, into_nothing, command):
    more = "--no-grid" if command == "path" else "--no-peer"
    assert into_nothing(command, "data.csv", "--save", "q", more) == 141
    assert (tmp_path / "q.npz").exists()


def test_a_broken_pipe_does_not_cost_the_json(tmp_path, into_nothing):
    assert into_nothing("fit", "data.csv", *FIT, "--json", "out.json") == 141
    assert json.loads((tmp_path / "out.json").read_text())["points"] > 0


def test_without_a_file_to_write_a_broken_pipe_ends_the_command(monkeypatch, into_nothing):
    monkeypatch.setattr(zerogap.SVC, "fit", lambda *_: pytest.fail("fitted for nobody"))
    assert into_nothing("fit", "data.csv", *FIT) == 141


def test_path_tells_where_it_was_saved(run):
    code, out, _ = run("path", "data.csv", "--no-grid", "--save", "q.npz", "--C-max", "1")
    assert code == 0
    assert "saved: q.npz;" in out
    assert zerogap.Path.load("q.npz").C[-1] == pytest.approx(1.0)


# Targets that are numbers.


def test_a_target_of_many_numbers_is_refused_as_classes_before_anything_else(run, tmp_path):
    (tmp_path / "amounts.csv").write_text(csv_text(kind=[*range(100, 135), *range(100, 105)]))
    for more in ((), ("--test-size", "0"), ("--save", "q")):
        code, out, err = run("fit", "amounts.csv", *FIT, *more)
        assert (code, out) == (1, "")
        assert err == (
            "zerogap: amounts.csv: column 'kind' has 35 different numbers in 40 rows, which are hardly classes; "
            "--regression fits numbers, --target names another column.\n"
        )
    assert run("fit", "amounts.csv", *FIT, "--regression")[0] == 0


@pytest.mark.parametrize("command", ["compare", "path"])
def test_commands_for_two_classes_point_to_regression_where_the_target_is_an_amount(run, command):
    code, _, err = run(command, "diabetes_regression")
    assert code == 1
    assert "zerogap fit --regression fits numbers." in err
    assert "any number" not in err
    assert "--target" not in err  # the data set has its own


def test_many_classes_with_rows_enough_are_classes(run, tmp_path):
    (tmp_path / "many.csv").write_text(csv_text(kind=np.arange(40) % 21))  # two of them have one row
    assert run("fit", "many.csv", *FIT, "--test-size", "0")[0] == 1
    (tmp_path / "many.csv").write_text(csv_text(np.tile(X, (3, 1)).T, np.arange(120) % 30))
    code, _, err = run("fit", "many.csv", *FIT, "--test-size", "0")
    assert code == 0
    assert "has 30 values in 120 rows, each taken for a class" in err


# Advice that the command can follow.


def test_text_in_a_column_of_numbers_gets_advice_that_predict_and_certify_have(run, tmp_path):
    assert run("fit", "data.csv", *FIT, "--save", "m")[0] == 0
    (tmp_path / "bad.csv").write_text(csv_text().replace(f"{X[3, 0]},", "oops,"))
    zerogap.SVC().fit(X, KIND).save(tmp_path / "plain")
    for command in (("predict", "m"), ("certify", "m"), ("certify", "plain")):
        code, out, err = run(*command, "bad.csv")
        assert (code, out) == (1, "")
        assert "bad.csv, row 4 (line 5), column 'a': 'oops' is no number. The model" in err
        assert "--one-hot" not in err
        assert "--drop" not in err
    assert "correct the cell" in run("predict", "m", "bad.csv")[2]
    (tmp_path / "bad.csv").write_text(csv_text().replace(f"{X[3, 0]},", ","))
    code, out, _ = run("predict", "m", "bad.csv", "--missing", "drop")  # what was advised
    assert code == 0
    assert out.count("\n") == 40


@pytest.mark.parametrize("status", ["interrupted", "max_time"])
def test_a_path_that_ends_early_gets_no_advice_in_python(status):
    model = zerogap.SVCPath(C_max=1.0, max_time=5.0).fit(X, KIND)
    model.path_.status = status
    with pytest.warns(Warning, match="resume=model.path_") as found:
        model._warn_of_limit()
    cause = "interrupted" if status == "interrupted" else "--max-time 5.0"
    limit = "" if status == "interrupted" else " Raise the limit."
    assert in_options(str(found[0].message)) == (
        f"the path was stopped ({cause}) on its way to --C-max 1: the path ends at C = 1.{limit}"
    )


# Experiments without their data.


@pytest.mark.parametrize("quick", [True, False])
def test_an_experiment_without_its_data_is_an_error_that_names_the_files(run, monkeypatch, quick):
    monkeypatch.setattr(zerogap.datasets, "data_folder", lambda: None)

    def unreachable(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    code, out, err = run("reproduce", "ong-table-2", *["--quick"] * quick, "--output", "results")
    assert code == 1
    assert "  hill-valley: there is no hill-valley.svm.gz\n" in out
    assert "0 of 0" not in out
    assert err.startswith("zerogap: ong-table-2: not run, data is missing (")
    assert err.count("\n") == 1
    for name in ("monks-2.test.svm.gz", "hill-valley.svm.gz", "ZEROGAP_DATA", *["raetsch.npz"] * (not quick)):
        assert err.count(name) == 1


# Files that are no models, and numbers with commas.


def test_what_is_no_model_file_is_told_without_numpys_hint_to_run_it(run, tmp_path):
    for content in (b"nonsense", pickle.dumps([1, 2]), b""):
        (tmp_path / "m.npz").write_bytes(content)
        for command in ("predict", "certify"):
            code, out, err = run(command, "m.npz", "data.csv")
            assert (code, out) == (1, "")
            assert "m.npz is not a file that zerogap wrote, or it is damaged" in err
            assert "pickle" not in err


@pytest.mark.parametrize(
    ("name", "content"), [("m.joblib", b"x\x9c"), ("m.pkl", pickle.dumps([1])), ("m", pickle.dumps([1]))]
)
def test_pickles_are_refused_with_what_is_read_instead(run, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    for command in ("predict", "certify"):
        code, _, err = run(command, name, "data.csv")
        assert code == 1
        for word in ("is a pickle", "not read", "skops", "svm-train", "zerogap.certify("):
            assert word in err


@pytest.mark.parametrize(
    ("cells", "has", "has_not"),
    [
        (("1,000", "2,500"), ("may separate thousands", "--decimal ,"), ("seems",)),
        (("1,000", "12,345.5"), ("Commas separate thousands",), ("--decimal", "--one-hot")),
        (("1,000", "1,234,567"), ("Commas separate thousands",), ("--decimal", "--one-hot")),
        (("1,000", "2,5"), ("seems to be the decimal point", "--decimal ,"), ("thousands",)),
        (("0,125", "2,500"), ("seems to be the decimal point", "--decimal ,"), ("thousands",)),
    ],
)
def test_commas_in_groups_of_three_may_separate_thousands(run, tmp_path, cells, has, has_not):
    (tmp_path / "data.csv").write_text("a;kind\n" + "".join(f"{cell};x\n7;y\n" for cell in cells))
    code, _, err = run("fit", "data.csv", *FIT)
    assert code == 1
    for word in has:
        assert word in err
    for word in has_not:
        assert word not in err
