"""``zerogap tune``, beside scikit-learn's own cross-validation with the same folds; and what ``zerogap path`` says of folds."""

import json
import os
import signal

import matplotlib.pyplot as plt
import numpy as np
import pytest
import sklearn.svm
from sklearn import metrics
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zerogap.cli import main, path, pictures, tune
from zerogap.cli.messages import in_options
from zerogap.limits import Exceeded
from zerogap.path import following

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((60, 2)) * [1.0, 50.0]).round(3)
KIND = np.where(X[:, 0] + 0.01 * X[:, 1] + 0.7 * RNG.standard_normal(60) > 0, "yes", "no")
T = (np.sin(2.0 * X[:, 0]) + 0.1 * RNG.standard_normal(60)).round(4)
QUICK = ("--C-min", "0.1", "--C-max", "10", "--cv", "3")


def rows_of(columns, target):
    return "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, target, strict=True))


@pytest.fixture
def few_values(monkeypatch):
    """Let scikit-learn's search have few values of C: a fit of each takes longer than all that is asked."""
    assert tune.GRID == 25
    monkeypatch.setattr(tune, "GRID", 5)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in a folder with two files; return its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("a,b,kind\n" + rows_of(X.T, KIND))
    (tmp_path / "numbers.csv").write_text("a,b,size\n" + rows_of(X.T, T))

    def call(*arguments):
        code = main(list(map(str, arguments)))
        return code, *capsys.readouterr()

    return call


def scores(machine, y, *, folds=3, is_scaled=True, scoring="accuracy", seed=0):
    """Return scikit-learn's scores of the folds that the command makes."""
    kind = StratifiedKFold if y.dtype.kind == "U" else KFold
    model = make_pipeline(StandardScaler(), machine) if is_scaled else machine
    return cross_val_score(model, X, y, cv=kind(folds, shuffle=True, random_state=seed), scoring=scoring)


@pytest.mark.usefixtures("few_values")
def test_tune_chooses_what_cross_validation_confirms(run, tmp_path):
    files = ("--json", "out.json", "--save", "m", "--plot", "scores.png")
    code, out, err = run("tune", "data.csv", *QUICK, "--gamma", "0.3,1", *files)
    assert (code, err) == (0, "")
    found = json.loads((tmp_path / "out.json").read_text())
    for one in found["candidates"]:
        machine = sklearn.svm.SVC(C=one["C"], gamma=one["gamma"], tol=1e-8)
        assert one["score"] == pytest.approx(scores(machine, KIND).mean(), abs=1e-12)
    widths = [max(high / low for low, high in one["best_intervals"]) for one in found["candidates"]]
    best = found["candidates"][max((0, 1), key=lambda k: (found["candidates"][k]["score"], widths[k]))]
    assert (found["score"], found["gamma"]) == (best["score"], best["gamma"])
    exact = scores(sklearn.svm.SVC(C=found["C"], gamma=found["gamma"], tol=1e-8), KIND)
    assert found["std_error"] == pytest.approx(exact.std(ddof=1) / np.sqrt(3), abs=1e-12)
    assert any(low <= found["C"] <= high for low, high in found["best_intervals"])
    # The grid is scikit-learn's own search over some values of C, which are among all of them.
    assert found["grid"]["fits"] == 5 * 2 * 3 + 1
    assert found["score"] >= found["grid"]["score"]
    grid = sklearn.svm.SVC(C=found["grid"]["C"], gamma=found["grid"]["gamma"])
    assert found["grid"]["score"] == pytest.approx(scores(grid, KIND).mean(), abs=1e-12)
    assert found["grid"]["std_error"] == pytest.approx(scores(grid, KIND).std(ddof=1) / np.sqrt(3), abs=1e-12)
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert "6 paths" in out
    assert f"chosen: C = {found['C']:.4g}, gamma = {found['gamma']:g}" in out


def test_what_tune_keeps_predicts_and_is_certified(run, tmp_path):
    code, out, _ = run("tune", "data.csv", *QUICK, "--no-peer", "--save", "m", "--json", "out.json")
    assert code == 0
    assert "GridSearchCV" not in out
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["grid"] is None
    assert len(found["candidates"]) == 4  # gammas about that of "scale"
    exact = make_pipeline(StandardScaler(), sklearn.svm.SVC(C=found["C"], gamma=found["gamma"], tol=1e-8)).fit(X, KIND)
    code, out, _ = run("predict", "m.npz", "data.csv")
    assert out.split() == exact.predict(X).tolist()
    assert run("certify", "m.npz", "data.csv", "--gap", "1e-8")[0] == 0


@pytest.mark.parametrize("scoring", ["r2", pytest.param("neg_mean_absolute_error", marks=pytest.mark.long)])
@pytest.mark.usefixtures("few_values")
def test_tune_of_a_regression(run, tmp_path, scoring):
    options = (
        "--regression",
        "--epsilon",
        "0.05,0.2",
        "--gamma",
        "0.5",
        "--scoring",
        scoring,
        "--json",
        "-",
        "--seed",
        "4",
    )
    code, out, err = run("tune", "numbers.csv", *QUICK, *options)
    assert code == 0
    assert "epsilon" in err  # the text goes beside
    found = json.loads(out)
    machine = sklearn.svm.SVR(C=found["C"], gamma=0.5, epsilon=found["epsilon"], tol=1e-10)
    assert found["score"] == pytest.approx(scores(machine, T, scoring=scoring, seed=4).mean(), abs=1e-6)
    # Between any two values of a grid there may be a better one, and never a worse one than its best.
    assert found["score"] >= found["grid"]["score"] - 1e-3
    wider = [
        sklearn.svm.SVR(C=C, gamma=0.5, epsilon=found["epsilon"], tol=1e-10) for C in (0.9, 1.1) * np.array(found["C"])
    ]
    assert all(found["score"] >= scores(one, T, scoring=scoring, seed=4).mean() - 1e-6 for one in wider)


def test_features_are_scaled_in_each_fold_unless_they_are_raw(run, tmp_path):
    found = {}
    for raw in (False, True):
        more = ("--no-peer", "--gamma", "0.001", "--json", "out.json", *(["--raw"] if raw else []))
        assert run("tune", "data.csv", *QUICK, *more)[0] == 0
        found[raw] = json.loads((tmp_path / "out.json").read_text())
        machine = sklearn.svm.SVC(C=found[raw]["C"], gamma=0.001, tol=1e-8)
        assert found[raw]["score"] == pytest.approx(scores(machine, KIND, is_scaled=not raw).mean(), abs=1e-12)
    assert found[True]["curve"] != found[False]["curve"]


def test_tune_takes_sparse_files_missing_values_and_a_rule(run, tmp_path):
    sparse = np.where(RNG.random((60, 40)) < 0.1, 1.0, 0.0)
    sparse[:, 0] = KIND == "yes"
    dump_svmlight_file(sparse, KIND == "yes", str(tmp_path / "sparse.svm"))
    assert run("tune", "sparse.svm", *QUICK, "--no-peer", "--gamma", "0.1")[0] == 0
    (tmp_path / "gaps.csv").write_text("a,b,kind\n" + rows_of([["", *X[1:, 0]], X[:, 1]], KIND))
    code, out, _ = run("tune", "gaps.csv", *QUICK, "--no-peer", "--missing", "mean", "--selection", "one_se")
    assert code == 0
    assert "the smallest within one standard error" in out


@pytest.mark.long
def test_tune_runs_on_the_breast_cancer_data(run, tmp_path):
    assert run("tune", "--json", "out.json")[0] == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["score"] >= found["grid"]["score"]
    assert found["relative_gap"] <= 1e-9
    points, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), sklearn.svm.SVC(C=found["C"], gamma=found["gamma"], tol=1e-8))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert found["score"] == pytest.approx(cross_val_score(model, points, y, cv=folds).mean(), abs=1e-12)


@pytest.mark.parametrize("name", ["f1", "average_precision"])
@pytest.mark.usefixtures("few_values")
def test_a_score_is_of_the_class_that_the_user_names(run, tmp_path, name):
    options = (*QUICK, "--gamma", "1", "--scoring", name, "--class-weight", "balanced", "--json", "out.json")
    code, out, _ = run("tune", "data.csv", *options, "--pos-label", "no", "--save", "m")
    assert code == 0
    assert f"best {'F1' if name == 'f1' else 'average precision'} of no " in out
    found = json.loads((tmp_path / "out.json").read_text())
    response = "decision_function" if name == "average_precision" else "predict"
    scoring = make_scorer(getattr(metrics, f"{name}_score"), response_method=response, pos_label="no")
    for C, ours in ((found["C"], found["score"]), (found["grid"]["C"], found["grid"]["score"])):
        machine = sklearn.svm.SVC(C=C, gamma=1.0, tol=1e-8, class_weight="balanced")
        assert ours == pytest.approx(scores(machine, KIND, scoring=scoring).mean(), abs=1e-6)
    assert run("certify", "m.npz", "data.csv", "--gap", "1e-8")[0] == 0


def test_what_a_score_lacks_is_told_in_what_can_be_typed(run, tmp_path):
    for name in ("f1", "average_precision"):
        code, _, err = run("tune", "data.csv", *QUICK, "--scoring", name)
        assert code == 1
        assert err.startswith(
            f"zerogap: --scoring {name} is of the class with label 1, and the labels are ['no', 'yes']."
        )
        assert err.endswith("or name the class with --pos-label yes.\n")
    code, _, err = run("tune", "data.csv", *QUICK, "--scoring", "f1", "--pos-label", "perhaps")
    assert (code, err) == (1, "zerogap: data.csv: column 'kind' has no class perhaps; the classes are no and yes.\n")
    (tmp_path / "digits.csv").write_text("a,b,kind\n" + rows_of(X.T, np.where(KIND == "yes", 7, 3)))
    code, out, _ = run(
        "tune", "digits.csv", *QUICK, "--gamma", "1", "--scoring", "f1", "--pos-label", "7.0", "--no-peer"
    )
    assert code == 0
    assert "best F1 of 7.0" in out
    (tmp_path / "three.csv").write_text("a,b,kind\n" + rows_of(X.T, np.arange(60) % 3))
    _, _, err = run("tune", "three.csv", *QUICK, "--scoring", "f1", "--pos-label", "2")
    assert "--scoring f1 is of two classes, and there are 3" in err
    assert in_options('make_scorer(f1_score, pos_label="don\'t know").') == "--pos-label 'don'\"'\"'t know'."


def test_a_choice_at_the_end_of_the_range_is_told(run):
    said = "the best interval reaches an end of the range, and beyond it C may be better or just as good: "
    options = ("--gamma", "1", "--cv", "3", "--no-peer")
    low = run("tune", "data.csv", "--C-min", "1e-4", "--C-max", "1e-3", *options)[1]  # as if every C were the same
    said_once = "every C from 0.0001 to 0.001 is as good; beyond, C may be better: "
    assert said_once + "lower --C-min (0.0001) or raise --C-max (0.001) to see\n" in low
    assert said not in low
    assert said not in run("tune", "data.csv", "--C-min", "0.01", "--C-max", "1e3", *options)[1]


def test_too_few_rows_for_the_folds_are_told(run, tmp_path):
    (tmp_path / "few.csv").write_text("a,b,kind\n" + rows_of(X[:20].T, ["rare"] * 2 + ["often"] * 18))
    code, _, err = run("tune", "few.csv", "--cv", "3")
    assert code == 1
    assert "has 2 rows of class rare, too few for 3 folds; lower --cv" in err
    assert err.count("\n") == 1
    (tmp_path / "one.csv").write_text("a,b,kind\n" + rows_of(X[:20].T, ["rare"] + ["often"] * 19))
    err = run("tune", "one.csv", "--cv", "3")[2]
    assert "has 1 row of class rare, too few for 3 folds, and for any; find more of them, or leave the class out" in err
    (tmp_path / "two.csv").write_text("a,b,size\n" + rows_of(X[:2].T, T[:2]))
    assert "has 2 rows, too few for 5 folds" in run("tune", "two.csv", "--regression")[2]


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--n-jobs", "0", "1 or more, or -1 for one a core; got '0'"),
        ("--gamma", ",", "must be numbers joined by commas; got ','"),
    ],
)
def test_numbers_that_are_none_are_told(option, text, said, run):
    code, _, err = run("tune", "data.csv", option, text)
    assert code == 2
    assert said in err


def test_a_kernel_without_a_path_is_told_of_the_data(run):
    code, _, err = run("tune", "data.csv", "--kernel", "sigmoid", "--gamma", "5", "--cv", "3", "--no-peer")
    assert code == 1
    assert err.startswith("zerogap: Fold 1 of 3: ")
    assert "positive semidefinite" in err


def test_a_search_that_ends_early_says_so_in_options():
    text = (
        "SVCPathCV was stopped (max_time=0.5): 3 of 5 paths ended before C_max=1000, the first at C=3.2, and the best C is of "
        "those that all folds have. Allow more time, or ask for fewer C."
    )
    assert in_options(text) == (
        "the search was stopped (--max-time 0.5): 3 of 5 paths ended before --C-max 1000, the first at C = 3.2, and the best C "
        "is of those that all folds have. Raise the limit, or ask for fewer C (--C-max)."
    )


def test_ctrl_c_ends_a_search_with_130(run, monkeypatch):
    start, begun = following.start_engine, []

    def interrupted(followed, *arguments):
        begun.append(followed)
        if len(begun) > 2:  # the first two are those that compile
            os.kill(os.getpid(), signal.SIGINT)
            raise Exceeded
        start(followed, *arguments)

    monkeypatch.setattr(following, "start_engine", interrupted)
    code, _, err = run("tune", "data.csv", *QUICK, "--gamma", "1", "--no-peer")
    assert code == 130
    assert err == "zerogap: interrupted\n"


def test_a_tube_that_holds_all_targets_is_told(run):
    options = ("--regression", "--target", "size", "--epsilon", "9", "--gamma", "1", "--cv", "3", "--no-peer")
    out = run("tune", "numbers.csv", *options, "--C-min", "0.1", "--C-max", "10")[1]
    assert "every C from 0.1 to 10 is as good: no target is outside of the tube; lower --epsilon\n" in out
    assert "beyond" not in out


def test_ctrl_c_in_the_grid_leaves_what_was_found(run, monkeypatch, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "_grid", interrupted)
    files = ("--save", "kept", "--plot", "drawn.png")
    code, out, err = run("tune", "data.csv", *QUICK, "--gamma", "1", *files)
    assert (code, err) == (130, "zerogap: interrupted\n")
    assert "chosen: C = " in out
    assert "kept.npz" in out
    assert "drawn: drawn.png" in out
    assert (tmp_path / "kept.npz").exists()


@pytest.mark.parametrize("where", ["_cross_validated", "_grid"])
def test_ctrl_c_beside_a_path_leaves_the_path(where, run, monkeypatch, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(path, where, interrupted)
    code, out, err = run("path", "data.csv", *QUICK, "--save", "kept", "--plot", "drawn.png")
    assert (code, err) == (130, "zerogap: interrupted\n")
    assert "drawn: drawn.png" in out
    assert "kept.npz" in out
    assert (tmp_path / "drawn.png").exists()


# zerogap path.


def test_path_balances_classes_of_different_sizes(run, tmp_path):
    rows = np.flatnonzero((KIND == "yes") | (np.arange(60) % 4 == 0))
    (tmp_path / "rare.csv").write_text("a,b,kind\n" + rows_of(X[rows].T, KIND[rows]))
    options = (*QUICK, "--gamma", "1", "--test-size", "0", "--raw", "--json", "out.json")
    found = {}
    for more in ((), ("--class-weight", "balanced")):
        assert run("path", "rare.csv", *options, *more)[0] == 0
        found[more] = json.loads((tmp_path / "out.json").read_text())
        for name, cv, at in (("score_curve", None, found[more]["score_curve"]["C"][-1]),
                             ("cross_validation", 3, found[more]["cross_validation"]["C"])):  # fmt: skip
            machine = sklearn.svm.SVC(C=at, gamma=1.0, tol=1e-8, class_weight="balanced" if more else None)
            if cv is None:
                ours, theirs = (
                    found[more][name]["score"][-1],
                    machine.fit(X[rows], KIND[rows]).score(X[rows], KIND[rows]),
                )
            else:
                folds = StratifiedKFold(cv, shuffle=True, random_state=0)
                ours, theirs = (
                    found[more][name]["score"],
                    cross_val_score(machine, X[rows], KIND[rows], cv=folds).mean(),
                )
            assert ours == pytest.approx(theirs, abs=1e-12)
    assert len({str(one["C"]) for one in found.values()}) == 2


def test_path_chooses_by_folds_of_its_training_points_and_draws(run, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(pictures, "save", lambda axes, name: drawn.append((axes, name)))
    files = ("--json", "out.json", "--plot", "path.pdf")
    code, out, _ = run("path", "data.csv", *QUICK, "--gamma", "1", "--no-grid", *files)
    assert code == 0
    assert "3-fold accuracy" in out
    results = json.loads((tmp_path / "out.json").read_text())
    found = results["cross_validation"]
    train, test = train_test_split(np.arange(60), test_size=1 / 3, random_state=0, stratify=KIND)
    model = make_pipeline(StandardScaler(), sklearn.svm.SVC(C=found["C"], gamma=1.0, tol=1e-8))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    assert found["score"] == pytest.approx(cross_val_score(model, X[train], KIND[train], cv=folds).mean(), abs=1e-12)
    edges = np.array(found["curve"]["C"])
    middles, means = np.sqrt(edges[:-1] * edges[1:])[::4], found["curve"]["score"][::4]
    for C, mean in zip(middles, means, strict=True):  # folds that are not scaled anew differ in some of them
        one = make_pipeline(StandardScaler(), sklearn.svm.SVC(C=C, gamma=1.0, tol=1e-8))
        assert mean == pytest.approx(cross_val_score(one, X[train], KIND[train], cv=folds).mean(), abs=1e-12)
    assert f"{found['score_of_choice']:.4f}  at C = {found['C']:.4g}, the middle of the folds' best interval" in out
    assert found["score_of_choice"] == pytest.approx(model.fit(X[train], KIND[train]).score(X[test], KIND[test]))
    assert found["score_of_choice"] <= results["best_score"]
    ((axes, name),) = drawn
    assert (len(axes), name) == (4, "path.pdf")
    np.testing.assert_array_equal(axes[0].lines[0].get_xdata(), results["score_curve"]["C"])
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata()[:-1], results["score_curve"]["score"])
    np.testing.assert_array_equal(axes[3].patches[0].get_data().values, results["n_free"][:-1])
    plt.close(axes[0].figure)
    _, out, _ = run("path", "data.csv", *QUICK, "--no-grid", "--no-cv")
    assert "fold" not in out


@pytest.mark.long
@pytest.mark.parametrize(("name", "begin"), [("path.png", b"\x89PNG"), ("path.pdf", b"%PDF"), ("path.svg", b"<?xml")])
def test_path_writes_pictures_of_two_classes_and_of_several(run, tmp_path, name, begin):
    kinds = np.arange(60) % 3
    (tmp_path / "three.csv").write_text("a,b,kind\n" + rows_of((X + kinds[:, None]).T, kinds))
    for data in ("data.csv", "three.csv"):
        code, out, _ = run("path", data, *QUICK, "--no-grid", "--no-cv", "--plot", name)
        assert code == 0
        assert f"drawn: {name}" in out
        assert (tmp_path / name).read_bytes().startswith(begin)
        (tmp_path / name).unlink()
    assert not plt.get_fignums()  # a program that draws many keeps none of them
