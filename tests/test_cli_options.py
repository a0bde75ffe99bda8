"""The commands' options, exit codes, streams and progress."""

import io
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from zerogap import ticker
from zerogap.cli import bench, main, messages, report, solving
from zerogap.solution import Status


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return main(list(map(str, arguments))), *capsys.readouterr()

    return call


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    rows = np.column_stack([X, X[:, 0] > 0])
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header="a,b,kind", comments="")
    return "data.csv"


# Options are checked before anything is read: the file of these commands is never there.

WRONG = [
    ("fit --C -1", "--C: must be a number above 0, or inf for the hard margin; got -1"),
    ("fit --C nan", "--C: must be a number above 0"),
    ("fit --C ten", "--C: must be a number; got 'ten'"),
    ("fit --tol 0", "--tol: must be a number above 0, and finite; got 0"),
    ("fit --gamma wide", "--gamma: must be scale, auto or a number; got 'wide'"),
    ("fit --gamma 0", "--gamma: must be scale, auto or a number above 0; got 0"),
    ("fit --degree 1.5", "--degree: must be a whole number, 0 or more; got '1.5'"),
    ("fit --gamma -1e-3", "--gamma: must be scale, auto or a number above 0; got -1e-3"),
    ("fit --coef0 inf", "--coef0: must be a finite number; got inf"),
    ("fit --kernel laplace", "--kernel: invalid choice: 'laplace'"),
    ("fit --kernel precomputed", "--kernel: invalid choice"),
    ("fit --loss log", "--loss: invalid choice"),
    ("fit --solver sgd", "unknown solver 'sgd'; choose one of auto, smo"),
    ("fit --solver sor", "--solver sor is for problems whose bias is fixed; --solver auto takes any"),
    ("fit --solver npa", "--solver npa is for hard margins and squared hinges"),
    ("fit --solver cg", "--solver cg is for Gaussian processes"),
    ("fit --max-time 0", "--max-time: must be a number above 0"),
    ("fit --test-size 1", "--test-size: must be a part of the rows, from 0 to less than 1; got 1"),
    ("fit --seed -1", "--seed: must be a whole number, 0 or more"),
    ("fit --epsilon 1", "--epsilon is for --regression"),
    ("fit --regression --epsilon -1", "--epsilon: must be a number, 0 or more; got -1"),
    ("fit --raw --scale", "--scale: not allowed with argument --raw"),
    ("fit --delimiter ab", "--delimiter: must be one character, or comma, semicolon, tab, pipe or space; got 'ab'"),
    ("fit --missing guess", "--missing: invalid choice"),
    ("fit --save no/m", "--save no/m: no such folder"),
    ("fit --json no/m", "--json no/m: no such folder"),
    ("fit --json .", "--json .: is a directory"),
    ("fit --nothing", "unrecognized arguments: --nothing"),
    ("path --C-min 10 --C-max 1", "--C-min must be below --C-max; got 10 and 1"),
    ("path --C-max inf", "--C-max: must be a number above 0, and finite; got inf"),
    ("path --engine fast", "--engine: invalid choice"),
    ("path --linear-system qr", "--linear-system is a choice of --engine lp"),
    ("path --max-events 0", "--max-events: must be a whole number, 1 or more; got '0'"),
    ("path --cv 1", "--cv: must be a whole number, 2 or more; got '1'"),
    pytest.param("path --plot path.xyz", "--plot path.xyz: the ending must be one of", marks=pytest.mark.long),
    ("tune --C-min 10 --C-max 1", "--C-min must be below --C-max; got 10 and 1"),
    ("tune --gamma 0.1,wide", "--gamma: must be scale, auto or a number; got 'wide'"),
    ("tune --gamma 0.1,0.10", "--gamma: 0.1 is there twice"),
    ("tune --gamma ,", "--gamma: must be numbers joined by commas"),
    ("tune --cv 1", "--cv: must be a whole number, 2 or more; got '1'"),
    ("tune --n-jobs 0", "--n-jobs: must be a whole number, 1 or more, or -1 for one a core; got '0'"),
    ("tune --scoring good", "--scoring: unknown score 'good'; choose one of accuracy, balanced_accuracy"),
    (
        "tune --regression --scoring accuracy",
        "--scoring: unknown score 'accuracy'; choose one of neg_mean_squared_error",
    ),
    ("tune --selection worst", "--selection: invalid choice: 'worst'"),
    ("tune --epsilon 1", "--epsilon is for --regression"),
    ("tune --kernel linear --gamma 1", "--gamma is for --kernel rbf, poly and sigmoid; leave it out with linear"),
    ("tune --pos-label a", "--pos-label is for --scoring f1, precision, recall, jaccard, average_precision"),
    ("tune --scoring roc_auc --pos-label a", "roc_auc is the same whichever class is called positive"),
    ("tune --regression --pos-label a", "--pos-label is for --scoring f1"),
    ("tune --class-weight heavy", "--class-weight: invalid choice: 'heavy'"),
    ("tune --regression --class-weight balanced", "--class-weight is for classes; leave it out with --regression"),
    ("path --regression --class-weight balanced", "--class-weight is for classes; leave it out with --regression"),
    ("tune --regression --epsilon 1,-1", "--epsilon: must be a number, 0 or more; got -1"),
    ("tune --save no/m", "--save no/m: no such folder"),
    ("tune --plot no/m.png", "--plot no/m.png: no such folder"),
    ("compare --solvers smo,sgd", "--solvers: unknown solver 'sgd'"),
    ("compare --solvers smo,smo", "--solvers: smo is there twice"),
    ("compare --solvers ,", "--solvers: must be names joined by commas"),
    pytest.param("compare --plot gap.xyz", "--plot gap.xyz: the ending must be one of", marks=pytest.mark.long),
    ("compare --y height", "--y: invalid choice"),
    ("compare --trace-every x", "--trace-every: must be a whole number, 1 or more; got 'x'"),
    ("bench --gap 1e-3,0", "--gap: must be a number above 0"),
    ("bench --repeats 0", "--repeats: must be a whole number, 1 or more"),
]


@pytest.mark.parametrize(("line", "words"), WRONG)
def test_options_are_checked_before_data_is_read(run, line, words):
    command, *options = line.split()
    code, out, err = run(command, "absent.csv", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert err.startswith("zerogap: ")
    assert not re.search(r"np\.|callable|None", err)


@pytest.mark.parametrize("line", ["", "fit a b", "nothing", "predict", "reproduce nothing"])
def test_what_is_no_command_is_one_line(run, line):
    code, out, err = run(*line.split())
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("command", ["", "path", "tune", "fit", "predict", "certify", "compare", "bench", "reproduce"])
def test_every_command_has_help_with_examples(run, command):
    code, out, err = run(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert not command or f"examples:\n  zerogap {command}" in out
    assert run("--version")[1].startswith("zerogap 0.")


def test_examples_of_the_help_are_commands(run):
    """Every line under "examples" parses: what it complains about is a file that is not there."""
    for command in ("path", "tune", "fit", "predict", "certify", "compare", "bench"):
        for line in run(command, "--help")[1].partition("examples:\n")[2].splitlines():
            words = re.split(r"\s{2,}", line.strip())[0].partition("zerogap ")[2].split()
            if len(words) > 1 and "-" not in words:
                code, _, err = run(*words)
                assert (code, "no such file" in err) == (1, True), line


def test_the_page_on_the_command_line_has_every_option(run):
    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for command in ("path", "tune", "fit", "predict", "certify", "compare", "bench", "reproduce"):
        assert f"\n## {command}\n" in page
        options = set(re.findall(r"(?<![\w-])--[A-Za-z][\w-]*", run(command, "--help")[1].partition("examples:")[0]))
        assert len(options) > 2
        for option in options:
            assert re.search(rf"{option}\b(?!-)", page), (command, option)


# Streams.


def strict(text):
    def refuse(token):
        raise AssertionError(f"{token} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    "line",
    [
        "fit data.csv --no-peer",
        "fit data.csv --C inf",
        "path data.csv --no-grid --C-max 1",
        "compare data.csv --solvers smo,cg",
        "bench data.csv --C 1 --gap 1e-3 --repeats 1",
    ],
)
def test_json_on_standard_output_is_all_there_is(run, data, tmp_path, line):
    code, out, err = run(*line.split(), "--json", "-")
    assert code == 0
    results = strict(out)
    assert results["data"] == "data.csv"
    assert "data.csv: " in err  # the text for people
    assert run(*line.split(), "--json", "out.json")[1] != ""
    assert strict((tmp_path / "out.json").read_text()).keys() == results.keys()


def test_numbers_that_json_does_not_have_are_null():
    found = report.plain({"gap": math.inf, "a": [np.float64("nan"), 1.5], "b": np.arange(2), "c": (np.bool_(True),)})
    assert found == {"gap": None, "a": [None, 1.5], "b": [0, 1], "c": [True]}


def test_without_a_peer_scikit_learn_is_left_out(run, data, monkeypatch):
    import sklearn.svm

    monkeypatch.setattr(sklearn.svm.SVC, "fit", lambda *args: pytest.fail("scikit-learn was asked"))
    code, out, _ = run("fit", data, "--no-peer")
    assert code == 0
    assert "scikit-learn" not in out


def test_the_gap_of_the_peer_is_certified_for_several_classes(run):
    code, out, _ = run("fit", "iris", "--C", "100", "--json", "-")
    assert code == 0
    results = strict(out)
    assert results["relative_gap"] <= 1e-6 < results["scikit_learn"]["relative_gap"]


class Closed(io.StringIO):
    """A pipe that nobody reads."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


def test_a_broken_pipe_is_silent(monkeypatch, capsys, data, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", Closed())
    assert main(["fit", data, "--no-peer"]) == 141
    assert capsys.readouterr().err == ""


def test_a_fault_of_ours_is_one_line_too(run, monkeypatch, data):
    def broken(*args):
        raise KeyError("nothing\nhere")

    monkeypatch.setattr("zerogap.cli.fit.split", broken)
    code, _, err = run("fit", data)
    assert code == 1
    assert err.count("\n") == 1
    assert "KeyError" in err
    monkeypatch.setenv("ZEROGAP_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["fit", data])


def test_a_full_disk_or_memory_is_one_line(run, monkeypatch, data):
    for error, words in (
        (OSError(28, "No space left on device"), "no space left on device"),
        (MemoryError(), "memory"),
    ):

        def full(*args, error=error):
            raise error

        monkeypatch.setattr("zerogap.cli.fit.split", full)
        code, _, err = run("fit", data)
        assert (code, err.count("\n")) == (1, 1)
        assert words in err


# Words.


def test_messages_of_the_library_speak_of_options():
    assert messages.in_options("Use np.inf for the hard margin.\nNot C=-1.0, tol=1e-06.") == (
        "Use inf for the hard margin. Not --C -1.0, --tol 1e-06."
    )
    for status in Status:
        text = messages.in_options(f"({status.advice} (max_time=1.5).")
        assert "--max-time 1.5)." in text
        assert not re.search(r"np\.|resume|StandardScaler|loss=|solution", text), text


@pytest.mark.filterwarnings(f"default::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
def test_a_limit_is_told_with_its_option(run, data):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = run("fit", data, "--max-time", "1e-9", "--no-peer")
    assert code == 0
    assert "not the --tol 1e-06 asked for: the time limit was reached; raise it (--max-time 1e-09)." in err


# Measurements.


def test_bench_tells_the_time_to_a_gap(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearnex.svm", None)  # there or not, the table has what is asked for here
    code, out, _ = run("bench", "iris", "--C", "1,100", "--gap", "1e-2,1e-8", "--repeats", 1, "--json", "-")
    assert code == 0
    rows = strict(out)["rows"]
    assert [(row["C"], row["gap"]) for row in rows] == [(1.0, 1e-2), (1.0, 1e-8), (100.0, 1e-2), (100.0, 1e-8)]
    for row in rows:
        ours, peer = row["programs"]["zerogap"], row["programs"]["scikit-learn"]
        assert ours["outcome"] == "reached"
        assert ours["gap"] <= row["gap"]
        assert (peer["outcome"] == "reached") == (peer["gap"] <= row["gap"])
        assert (row["faster"] is None) == (peer["outcome"] != "reached")
    assert rows[-1]["programs"]["scikit-learn"]["outcome"] == "never"  # its kernel values are rounded to float32
    code, out, _ = run("bench", "diabetes_regression", "--regression", "--C", 1, "--gap", "1e-3", "--repeats", 1)
    assert code == 0
    assert re.search(r"^ +1 +1e-03 +\d+\.\d+ +\d+\.\d+ +\d+\.\dx$", out, flags=re.MULTILINE)


def test_faster_is_than_the_better_peer_that_has_reached_the_gap():
    def outcomes(**found):
        return {name: bench.Outcome(word, bench.Run(1e-3, 1e-6, seconds)) for name, (word, seconds) in found.items()}

    reached = outcomes(zerogap=("reached", 2.0), a=("reached", 6.0), b=("reached", 5.0), c=("never", 1.0))
    line = bench._line((10.0, 1e-6, reached))
    assert line.split() == ["10", "1e-06", "2.0000", "6.0000", "5.0000", "never", "(1.0e-06)", "2.5x"]
    late = bench._line((10.0, 1e-6, outcomes(zerogap=("late", 60.0), a=("reached", 6.0))))
    assert late.split() == ["10", "1e-06", ">", "60", "6.0000", "-"]


# Progress.


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_what_is_done_and_makes_way_for_more(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(ticker, "FIRST", 0.01)
    with report.Report().working("reading data.csv"):
        await_text(screen, "reading data.csv ... 0 s")
        with report.Report().working("fitting"):
            await_text(screen, "fitting ... 0 s")
            assert ticker.hand_over()
            assert not ticker.hand_over()
    assert screen.getvalue().endswith(ticker.CLEAR)
    assert not [thread for thread in threading.enumerate() if thread.name == ticker.THREAD]
    seen = screen.getvalue()
    with report.Report(quiet=True).working("reading"):
        time.sleep(0.05)
    assert screen.getvalue() == seen


def await_text(screen, text):
    for _ in range(1000):
        if text in screen.getvalue():
            return
        time.sleep(0.01)
    pytest.fail(f"{text!r} was never shown")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_command_tells_of_compilation_once_and_only_where_there_is_some(capsys, quiet):
    def compile_two():
        numba.njit(lambda x: x + 1)(1.0)
        numba.njit(lambda x: x + 2)(1.0)

    solving.warm_up(report.Report(quiet=quiet), compile_two)
    said = "zerogap: compiling the inner loops, which takes about a minute; later runs load them from disk\n"
    assert capsys.readouterr() == ("", "" if quiet else said)
    solving.warm_up(report.Report(quiet=quiet), lambda: None)
    numba.njit(lambda x: x + 3)(1.0)  # nobody listens any more
    assert capsys.readouterr() == ("", "")


# Processes.


def process(*arguments, **options):
    command = [sys.executable, "-m", "zerogap", *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **{**pipes, **options})


@pytest.mark.long
def test_a_pipe_of_commands(data, tmp_path):
    content = (tmp_path / data).read_bytes()
    fit = process("fit", "-", "--no-peer", "--save", tmp_path / "m", "--json", "-")
    out, _ = fit.communicate(content, timeout=300)
    assert fit.returncode == 0
    assert strict(out)["points"] == 40
    predict = process("predict", tmp_path / "m", "-", "--format", "csv")
    out, err = predict.communicate(content, timeout=300)
    assert predict.returncode == 0
    assert len(out.splitlines()) == 40
    assert b"accuracy" in err


@pytest.mark.long
def test_a_reader_that_leaves_early_is_no_error(data, tmp_path):
    lines = (tmp_path / data).read_bytes().splitlines(keepends=True)
    (tmp_path / "long.csv").write_bytes(lines[0] + b"".join(lines[1:]) * 3000)
    assert main(["fit", str(tmp_path / data), "--no-peer", "--save", str(tmp_path / "m")]) == 0
    with process("predict", tmp_path / "m", tmp_path / "long.csv") as predict:
        assert predict.stdout.readline()
        predict.stdout.close()
        err = predict.stderr.read()
        assert predict.wait(timeout=300) == 141
    assert err == b""


@pytest.mark.long
def test_ctrl_c_while_reading_ends_with_130():
    fit = process("fit", "-")
    fit.stdin.write(b"a,kind\n")
    fit.stdin.flush()
    time.sleep(3.0)  # libraries are loaded, and it waits for more
    fit.send_signal(signal.SIGINT)
    _, err = fit.communicate(timeout=300)
    assert fit.returncode in (130, -signal.SIGINT)
    assert err.splitlines() == [b"zerogap: interrupted"]


@pytest.mark.long
def test_a_terminal_shows_progress_from_the_first_second(data, tmp_path):
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    fit = process("fit", "-", stderr=slave)
    os.close(slave)
    seen, began = b"", time.monotonic()
    while b"reading standard input ... 1 s" not in seen and time.monotonic() - began < 60:
        if select.select([master], [], [], 1.0)[0]:
            seen += os.read(master, 4096)
    fit.communicate((tmp_path / data).read_bytes(), timeout=300)
    assert fit.returncode == 0
    assert b"reading standard input ... 1 s" in seen
    os.close(master)
