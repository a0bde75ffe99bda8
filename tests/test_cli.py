import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from zerogap import SVR, Path, load
from zerogap.cli import main, pictures, solving
from zerogap.limits import Exceeded
from zerogap.path import following


def test_fit_runs_on_the_breast_cancer_data(capsys):
    assert main(["fit"]) == 0
    out = capsys.readouterr().out
    assert "379 points to train, 190 to test" in out
    gap = next(line for line in out.splitlines() if "certified gap" in line).split()
    assert float(gap[2]) <= 1e-6 < float(gap[3])
    accuracy = next(line for line in out.splitlines() if "accuracy" in line).split()
    assert float(accuracy[2]) > 0.94
    assert "certificate: primal" in out


def test_fit_says_nothing_of_points_that_only_load_its_code(monkeypatch, capsys):
    monkeypatch.setattr(solving, "WARM_UP_SECONDS", 1e-9)  # as if compiling took longer
    assert main(["fit"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["svm", "csv"])
def test_fit_reads_files(tmp_path, capsys, form):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / f"iris.{form}"
    if form == "svm":
        dump_svmlight_file(X, y, str(path))
    else:
        rows = np.column_stack([y, X])
        np.savetxt(path, rows, delimiter=",", header="kind,a,b,c,d", comments="")
    target = ["--target", "kind"] if form == "csv" else []
    assert main(["fit", str(path), *target, "--C", "1", "--kernel", "linear", "--tol", "1e-5"]) == 0
    out = capsys.readouterr().out
    assert "100 points to train" in out
    assert out.count("certificate of ") == 3


def test_fit_without_a_peer(capsys):
    assert main(["fit", "--loss", "squared_hinge", "--gamma", "0.1", "--raw"]) == 0
    assert "-" in next(line for line in capsys.readouterr().out.splitlines() if "seconds" in line)


@pytest.mark.long
def test_path_runs_on_the_breast_cancer_data(capsys, tmp_path):
    assert main(["path", "--json", str(tmp_path / "out.json"), "--save", str(tmp_path / "path.npz")]) == 0
    out = capsys.readouterr().out
    assert "every C from 0.01 to 1000" in out
    results = json.loads((tmp_path / "out.json").read_text())
    assert results["largest_gap"] <= 1e-9
    assert results["best_score"] >= max(results["grid"]["score"])  # a grid sees only some of the C
    path = Path.load(tmp_path / "path.npz")
    assert path.n_events == len(results["events"])


def test_path_reads_files(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X[50:], y[50:], str(tmp_path / "two.svm"))
    assert main(["path", str(tmp_path / "two.svm"), "--kernel", "linear", "--no-grid", "--max-events", "5"]) == 0
    assert "max_events" in capsys.readouterr().out


@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_path_takes_several_classes(tmp_path, capsys):
    files = ["--json", str(tmp_path / "out.json"), "--save", str(tmp_path / "model.npz")]
    assert main(["path", "iris", "--C-max", "10", *files]) == 0
    assert "pairs of classes               3" in capsys.readouterr().out
    results, model = json.loads((tmp_path / "out.json").read_text()), load(tmp_path / "model.npz")
    assert [pair["pair"] for pair in results["pairs"]] == ["0 against 1", "0 against 2", "1 against 2"]
    assert results["largest_gap"] == model.largest_gap_ <= 1e-9
    assert results["C"] == model.breakpoints_.tolist()
    assert results["best_score"] >= max(results["grid"]["score"])
    assert main(["path", "iris", "--engine", "lp", "--no-grid", "--C-max", "0.1"]) == 0
    assert "seconds of tracking" in capsys.readouterr().out
    assert main(["path", "iris", "--max-time", "1e-9", "--no-grid"]) == 0
    out, err = capsys.readouterr()
    assert "no solution yet at C = 0.01: max_time" in out
    assert "3 of 3 pairs of classes have no whole path" in err


@pytest.mark.parametrize("over", [pytest.param("C", marks=pytest.mark.long), "epsilon"])
def test_path_of_a_regression(tmp_path, capsys, over):
    """Over C or over epsilon, with the score of the machine at the best value alone."""
    X, y = load_diabetes(return_X_y=True)
    np.savetxt(tmp_path / "data.csv", np.c_[X, y][:60], delimiter=",")
    asked = ["--epsilon", "5", "--C-max", "100", "--cv", "2"] if over == "C" else ["--over", "epsilon", "--C", "10"]
    files = [
        "--json",
        str(tmp_path / "out.json"),
        "--save",
        str(tmp_path / "path"),
        "--plot",
        str(tmp_path / "out.png"),
    ]
    files += ["--explore", str(tmp_path / "page.html")]
    assert main(["path", str(tmp_path / "data.csv"), "--regression", *asked, *files]) == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000
    out = capsys.readouterr().out
    assert f"saved: {tmp_path / 'path.npz'}; zerogap.Path.load" in out
    results, path = json.loads((tmp_path / "out.json").read_text()), Path.load(tmp_path / "path.npz")
    assert results["largest_gap"] < 1e-9
    assert path.n_events == len(results["events"])
    assert path.parameter == over
    assert results["best_score"] >= results["grid"]["best_score"] - 1e-3  # LIBSVM's tolerance
    assert ("cross_validation" in results) == (over == "C")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    train, test = train_test_split(np.arange(60), test_size=1 / 3, random_state=0)
    scaled = StandardScaler().fit(X[train])
    best = results["best_intervals"][0][0]
    fixed = {"epsilon": 5.0} if over == "C" else {"C": 10.0}
    alone = SVR(**{over: best}, **fixed, tol=1e-12).fit(scaled.transform(X[train]), y[train])
    assert np.ptp(alone.certificate_.bias_interval) < 1e-6  # else the path may have another bias
    assert results["best_score"] == pytest.approx(alone.score(scaled.transform(X[test]), y[test]), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--over", "epsilon"], "--over epsilon is for --regression"),
        (["--epsilon", "1"], "--epsilon is for --regression"),
        (["--regression", "--C", "1"], "--C is of --over epsilon"),
        (["--regression", "--over", "epsilon", "--epsilon", "1"], "--epsilon is of --over C"),
        (["--regression", "--engine", "lp"], "--engine lp is for classes"),
    ],
    ids=str,
)
def test_options_of_a_regression_path(options, words, capsys):
    assert main(["path", *options]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.long
def test_path_with_the_papers_engine(capsys):
    assert main(["path", "--engine", "lp", "--linear-system", "qr", "--no-grid", "--C-max", "1"]) == 0
    out = capsys.readouterr().out
    assert "special events" in out
    assert "largest null space             0" in out
    assert main(["path", "--linear-system", "qr"]) == 2
    assert "choice of --engine lp" in capsys.readouterr().err


@pytest.mark.long
def test_compare_runs_the_smo_family_on_the_breast_cancer_data(capsys):
    assert main(["compare"]) == 0
    out = capsys.readouterr().out
    assert "569 points, 30 features" in out
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("smo")}
    assert list(rows) == ["smo", "smo-mvp", "smo-keerthi", "smo-platt", "smo-simple"]
    for name in ("smo", "smo-mvp", "smo-keerthi", "smo-platt"):
        assert rows[name][1] == "converged"
        assert float(rows[name][5]) <= 1e-6


def test_compare_reads_files_and_writes_json_and_a_plot(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X[50:], y[50:], str(tmp_path / "two.svm"))
    options = ["--solvers", "smo,cg", "--C", "5", "--kernel", "linear", "--gamma", "0.5", "--tol", "1e-8"]
    options += ["--max-time", "20", "--y", "distance", "--x", "seconds"]
    files = ["--json", str(tmp_path / "out.json"), "--plot", str(tmp_path / "out.png")]
    assert main(["compare", str(tmp_path / "two.svm"), *options, *files]) == 0
    assert "solver='smo'" in capsys.readouterr().out  # why cg refused
    results = json.loads((tmp_path / "out.json").read_text())
    assert [row["status"] for row in results["rows"]] == ["CONVERGED", "REFUSED"]
    assert results["traces"]["smo"]["gap"][-1] <= 1e-8
    assert results["traces"]["smo"]["distance"][-1] < 1e-3 * results["traces"]["smo"]["distance"][0]
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert main(["compare", "iris"]) == 1
    assert "two classes" in capsys.readouterr().err
    assert main(["compare", "--solvers", "smo,sgd"]) == 2
    assert "unknown solver 'sgd'" in capsys.readouterr().err


def test_mistakes_are_told_in_one_line(capsys):
    assert main(["fit", "--C", "-1"]) == 2
    assert capsys.readouterr().err.startswith("zerogap: --C: must be a number above 0")
    assert main(["fit", "no-such-data.csv"]) == 1
    assert capsys.readouterr().err == "zerogap: no-such-data.csv: no such file\n"


def test_module_and_version():
    done = subprocess.run(
        [sys.executable, "-m", "zerogap.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("zerogap 0.")


def shown(capsys, *arguments):
    assert main([*arguments]) == 0
    return [line for line in capsys.readouterr().out.splitlines() if "seconds" not in line]


def test_the_seed_is_that_of_the_split(capsys):
    first = shown(capsys, "fit", "--seed", "1", "--C", "1")
    assert shown(capsys, "fit", "--seed", "1", "--C", "1") == first
    assert shown(capsys, "fit", "--seed", "2", "--C", "1") != first


def test_the_seed_is_that_of_the_solvers(capsys):
    def evaluations(seed):
        lines = shown(capsys, "compare", "--solvers", "smo-platt", "--seed", seed, "--tol", "1e-3")
        return next(line for line in lines if line.startswith("smo-platt")).split()[2:4]

    assert evaluations("1") == evaluations("1") != evaluations("2")


@pytest.mark.long
def test_raw_features_are_not_scaled(capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) * [1.0, 1000.0]
    dump_svmlight_file(X, (X[:, 0] > 0).astype(int), str(tmp_path / "two.svm"))
    for command, options in (
        ("fit", ["--C", "1"]),
        ("compare", ["--solvers", "smo", "--C", "1"]),
        ("path", ["--no-grid"]),
    ):
        kernel = ["--gamma", "1", "--seed", "3"]
        scaled = without_times(shown(capsys, command, str(tmp_path / "two.svm"), *options, *kernel))
        raw = without_times(shown(capsys, command, str(tmp_path / "two.svm"), *options, *kernel, "--raw"))
        assert raw != scaled


def without_times(lines):
    """A solver's line in a comparison without its seconds, which differ from run to run."""
    return [re.sub(r" \d+\.\d{3} ", " ", line) for line in lines]


@pytest.mark.filterwarnings("ignore:svm_path was stopped")
def test_a_path_that_is_interrupted_before_its_first_segment_ends_with_130(monkeypatch, capsys):
    start, begun = following.start_engine, []

    def interrupted(path, *arguments):
        begun.append(path)
        if len(begun) > 1:  # the first path is the one that compiles
            os.kill(os.getpid(), signal.SIGINT)
            raise Exceeded
        start(path, *arguments)

    monkeypatch.setattr(following, "start_engine", interrupted)
    assert main(["path"]) == 130
    assert "no solution yet" in capsys.readouterr().out


def test_explore_writes_a_page(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["explore", "iris", "--C-max", "10", "--output", str(page), "--title", "Iris & more"]) == 0
    said = capsys.readouterr().out
    assert "100 points to train, 50 to test, 4 features" in said
    assert f"{page} (0." in said
    text = page.read_text()
    assert "Iris &amp; more" in text
    assert '"labels":["versicolor","setosa"]' in text  # as scikit-learn has them
    assert '"sepal length (cm)"' in text


@pytest.mark.parametrize(("over", "value"), [("C", "C from 0.01 to 1"), ("epsilon", "epsilon from")])
def test_explore_writes_a_page_of_a_regression(over, value, tmp_path, capsys):
    rng = np.random.default_rng(0)
    data, page = tmp_path / "houses.csv", tmp_path / "page.html"
    size = rng.uniform(size=40)
    rows = [f"{a:.4f},{np.sin(6 * a) + 0.1 * rng.standard_normal():.4f}" for a in size]
    data.write_text("\n".join(["size,price", *rows]))
    options = ["--C-max", "1"] if over == "C" else ["--over", "epsilon", "--C", "2"]
    command = ["explore", str(data), "--target", "price", "--regression", *options, "--output", str(page)]
    assert main(command) == 0
    assert f"every {value}" in capsys.readouterr().out
    text = page.read_text()
    assert f'"parameter":"{over}"' in text
    assert '"mode":"tube"' in text
    assert '"names":["size"]' in text
    assert '"short":"R\\u00b2"' in text  # of the points held out


def test_explore_refuses_what_contradicts_itself(capsys):
    assert main(["explore", "--over", "epsilon"]) == 2
    assert "--over epsilon is for --regression" in capsys.readouterr().err
    assert main(["explore", "diabetes", "--regression", "--C", "2"]) == 2
    assert "--C is of --over epsilon" in capsys.readouterr().err


def test_pages_and_pictures_of_a_path_show_the_C_that_folds_have_chosen(tmp_path, monkeypatch, capsys):
    drawn, page, out = [], tmp_path / "page.html", tmp_path / "out.json"
    monkeypatch.setattr(pictures, "save", lambda axes, name: drawn.append(axes[0]))
    files = ["--explore", str(page), "--json", str(out), "--plot", str(tmp_path / "out.png")]
    assert main(["path", "iris", "--C-max", "10", "--cv", "3", "--no-grid", *files]) == 0
    C = json.loads(out.read_text())["cross_validation"]["C"]
    assert f'"opening":{{"value":{C!r},"words":"chosen by 3 folds"}}' in page.read_text()
    (line,) = [line for line in drawn[0].lines if line.get_label() == f"C = {C:.4g}, chosen by 3 folds"]
    assert line.get_xdata()[0] == C


@pytest.mark.parametrize("output", ["-", "nowhere/page.html"])
def test_explore_refuses_a_page_that_cannot_be_written(output, capsys):
    assert main(["explore", "--output", output]) == 2
    assert "--output" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:SVCPath was stopped")
def test_explore_says_where_no_solution_was_found_in_time(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["explore", "--max-time", "1e-9", "--output", str(page)]) == 0
    assert "no solution yet at C = 0.01" in capsys.readouterr().out
    assert not page.exists()
