"""What a new user meets: files that a broken pipe must not cost, and messages that must name what helps."""

import json
import os
import pickle
import signal
import subprocess
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


@pytest.mark.parametrize("command", ["fit", "path", pytest.param("tune", marks=pytest.mark.long)])
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


def test_a_path_that_ends_early_gets_no_advice_in_python():
    model = zerogap.SVCPath(C_max=1.0, max_time=5.0).fit(X, KIND)
    model.path_.status = "max_time"
    with pytest.warns(Warning, match="resume=model.path_") as found:
        model._warn_of_limit()
    assert in_options(str(found[0].message)) == (
        "the path was stopped (--max-time 5.0) on its way to --C-max 1: the path ends at C = 1. Raise the limit."
    )
    y = np.where(np.asarray(KIND) == KIND[0], 1.0, -1.0)
    with pytest.warns(Warning, match="resume=path") as found:
        svm_path_with_ctrl_c(X, y)
    text = in_options(str(found[0].message))
    assert text.startswith("the path was stopped (interrupted) on its way to --C-max 1000: the path ")
    assert "resume" not in text


def svm_path_with_ctrl_c(points, y):
    def kernel(a, b):
        signal.raise_signal(signal.SIGINT)
        return a @ b.T + 1.0

    zerogap.svm_path(points, y, kernel=kernel, C_max=1000.0)


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


# Words.


def test_an_unknown_option_is_told_by_its_command(run):
    for command in ("fit", "reproduce"):
        code, _, err = run(command, "--nope")
        assert code == 2
        assert err == f"zerogap: unrecognized arguments: --nope (zerogap {command} --help lists the options)\n"


def test_every_compression_is_named(run, tmp_path):
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)))
    for text in (run("fit", "noise.csv")[2], run("fit", "--help")[1]):
        for word in ("gzip", "bzip2", "xz"):
            assert word in text


def svmlight(labels):
    return "".join(f"{label} 1:{a} 2:{b}\n" for label, (a, b) in zip(labels, X, strict=True))


def test_labels_of_svmlight_are_named_as_they_stand_in_the_file(run, tmp_path):
    (tmp_path / "data.svm").write_text(svmlight(np.arange(40) % 3))
    code, out, _ = run("fit", "data.svm", *FIT, "--save", "m")
    assert code == 0
    assert out.startswith("data.svm: svmlight, indices from 1 on; the target is the label, which comes first\n")
    of_fit = [line.partition(": ")[0] for line in out.splitlines() if line.startswith("certificate")]
    out = run("certify", "m", "data.svm")[1]
    assert of_fit == [line.partition(": ")[0] for line in out.splitlines() if line.startswith("certificate")]
    assert of_fit == [f"certificate of {pair}" for pair in ("0 against 1", "0 against 2", "1 against 2")]


def test_rows_of_a_path_have_names_of_their_own(run):
    out = run("path", "data.csv", "--engine", "lp", "--no-grid", "--C-max", "0.1")[1]
    titles = [line[:25] for line in out.splitlines() if line.startswith("  ")]
    assert len(set(titles)) == len(titles) > 8


def test_targets_that_are_no_classes_of_the_model_are_told(run, tmp_path):
    assert run("fit", "data.csv", *FIT, "--save", "m")[0] == 0

    def told(kind):
        (tmp_path / "new.csv").write_text(csv_text(kind=kind))
        code, out, err = run("predict", "m", "new.csv")
        assert code == 0
        assert out.count("\n") == 40
        return err

    assert told(["maybe"] * 40) == "zerogap: no score: no target, such as maybe, is a class of the model (no, yes)\n"
    assert told([1] * 40) == "zerogap: no score: no target, such as 1, is a class of the model (no, yes)\n"
    assert told([""] * 40) == "zerogap: no score: the targets are missing\n"
    assert told([*KIND[:-1], "maybe"]).endswith(
        "40 rows that have a target, 1 of them of a class that the model does not know\n"
    )
    (tmp_path / "labels.svm").write_text(svmlight(np.arange(40) % 2))
    assert run("fit", "labels.svm", *FIT, "--save", "n")[0] == 0
    (tmp_path / "labels.svm").write_text(svmlight(np.full(40, 7)))
    assert run("predict", "n", "labels.svm")[2] == (
        "zerogap: no score: no target, such as 7, is a class of the model (0, 1)\n"
    )
    assert run("fit", "data.csv", *FIT, "--target", "a", "--drop", "kind", "--regression", "--save", "r")[0] == 0
    (tmp_path / "new.csv").write_text(csv_text().replace(f"{X[0, 0]},", "x,"))
    assert "no score: the targets are text, such as '" in run("predict", "r", "new.csv")[2]


def test_one_is_singular(run, tmp_path):
    (tmp_path / "one.csv").write_text(csv_text(X.T[:1], names="a,kind"))
    assert ", 1 feature\n" in run("fit", "one.csv", *FIT)[1]
    assert ", 1 feature\n" in run("path", "one.csv", "--no-grid", "--C-max", "0.1")[1]
    assert ", 1 feature\n" in run("compare", "one.csv", "--solvers", "smo")[1]


def test_a_category_that_is_new_counts_as_none_of_those_that_are_known(run, tmp_path):
    colours = np.where(np.arange(40) % 2, "red", "blue")
    (tmp_path / "c.csv").write_text(csv_text((X[:, 0], colours)))
    assert run("fit", "c.csv", *FIT, "--one-hot", "b", "--save", "m")[0] == 0
    (tmp_path / "c.csv").write_text(csv_text((X[:, 0], np.where(np.arange(40) == 3, "green", colours))))
    err = run("predict", "m", "c.csv")[2]
    assert "column 'b': 'green' was not in training; it counts as none of the values that were\n" in err


def test_ctrl_c_while_libraries_are_loaded_ends_in_silence():
    code = """
import sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from zerogap.cli import main
raise SystemExit(main(["fit"]))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")
