"""The commands with files of every kind, good and bad: what they read, what they refuse, in which words."""

import bz2
import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC as Peer
from sklearn.svm import SVR as PeerSVR

import zerogap
from zerogap import tables
from zerogap.cli import main

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)).round(3)
KIND = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    colour=np.where(np.arange(60) % 3 == 0, "red", "blue"), kind=KIND
)
NUMBERS = FRAME.drop(columns="colour")
FIT = ("--no-peer", "--C", "1")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in a folder of its own; return its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(list(map(str, arguments)))
        return code, *capsys.readouterr()

    return call


def refused(result, *words, code=1):
    """Check that a command failed with one line that holds these words."""
    found, out, err = result
    assert found == code
    assert err.count("\n") == 1, err
    assert err.startswith("zerogap: ")
    for word in words:
        assert word in err
    assert "Traceback" not in err
    return out


def csv_text(frame=NUMBERS, **options):
    return frame.to_csv(index=False, **options)


def svmlight(points, labels, base=1):
    rows = (" ".join(f"{k + base}:{value!r}" for k, value in enumerate(row) if value) for row in points.tolist())
    return "".join(f"{float(label)!r} {row}\n" for label, row in zip(labels, rows, strict=True))


SIGNS = np.where(KIND == "yes", 1.0, -1.0)


# Files that are read, and all to the same model.


def parquet(frame):
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


KINDS = {
    "data.csv": csv_text().encode(),
    "bom.csv": b"\xef\xbb\xbf" + csv_text().encode(),
    "crlf.csv": csv_text(lineterminator="\r\n").encode(),
    "cr.csv": csv_text(lineterminator="\r").encode(),
    "utf16.csv": csv_text().encode("utf-16"),
    "data.tsv": csv_text(sep="\t").encode(),
    "semicolon.csv": csv_text(sep=";").encode(),
    "pipe.txt": csv_text(sep="|").encode(),
    "space.data": csv_text(sep=" ").encode(),
    "quoted.csv": csv_text(quoting=1).encode(),
    "no-header.csv": csv_text(header=False).encode(),
    "blank-lines.csv": b"\n" + csv_text().replace("\n", "\n\n").encode() + b",,,\n\n",
    "trailing.csv": csv_text().replace("\n", ",\n").encode(),
    "trailing-rows.csv": csv_text().replace("no\n", "no,\n").replace("yes\n", "yes,\n").encode(),
    "index.csv": NUMBERS.to_csv().encode(),
    "counted.csv": csv_text(NUMBERS.set_axis([0, 1, 2, "kind"], axis=1)).encode(),
    "data.csv.gz": gzip.compress(csv_text().encode()),
    "data.csv.bz2": bz2.compress(csv_text().encode()),
    "data.parquet": parquet(NUMBERS),
    "no-ending": csv_text().encode(),
    "data.svm": svmlight(X, SIGNS).encode(),
    "data.svm.gz": gzip.compress(svmlight(X, SIGNS).encode()),
    "zero-based.svm": svmlight(X, SIGNS, 0).encode(),
    "svmlight.txt": svmlight(X, SIGNS).encode(),
    "comments.libsvm": b"# made by hand\n" + svmlight(X, SIGNS).replace("\n", " # a row\n").encode(),
}


PIPED = ("data.csv", "data.csv.gz", "data.parquet", "data.svm")


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    ("name", "is_stdin"),
    [
        *((name, False) for name in KINDS),
        *(pytest.param(name, True, marks=[] if name in PIPED else pytest.mark.long) for name in KINDS),
    ],
)
def test_files_of_every_kind_give_the_same_model(run, tmp_path, monkeypatch, name, is_stdin):
    if is_stdin:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(KINDS[name])))
    else:
        (tmp_path / name).write_bytes(KINDS[name])
    code, out, err = run("fit", "-" if is_stdin else name, *FIT, "--json", "-")
    assert code == 0, err
    results = json.loads(out)
    assert (results["points"], results["held_out"], len(results["features"])) == (40, 20, 3)
    expected = reference()
    assert results["support_vectors"] == expected["support_vectors"]
    assert results["certificates"][0]["dual"] == pytest.approx(expected["dual"], rel=1e-6)


def reference():
    """Return what scikit-learn's own reading and scaling lead to."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    train, _, y, _ = train_test_split(X, KIND, test_size=1 / 3, random_state=0, stratify=KIND)
    model = zerogap.SVC(C=1.0, tol=1e-6).fit(StandardScaler().fit_transform(train), y)
    return {"support_vectors": model.support_.size, "dual": model.certificate_.dual}


@pytest.mark.parametrize("name", ["no-header.csv", "counted.csv", "data.csv"])
def test_the_output_says_what_a_file_was_taken_for(run, tmp_path, name):
    (tmp_path / name).write_bytes(KINDS[name])
    _, out, err = run("fit", name, *FIT)
    assert err == ""
    is_named = name != "no-header.csv"
    assert f"{name}: {'names in the first line' if is_named else 'no header'}, separated by commas" in out
    assert f"the target is column {repr('kind') if is_named else 4}, the last (--target names another)" in out


def test_a_header_can_be_forced(run, tmp_path):
    (tmp_path / "numbers.csv").write_text("5,7,1\n" + csv_text(NUMBERS[["a", "b"]].assign(t=SIGNS), header=False))
    assert json.loads(run("fit", "numbers.csv", *FIT, "--test-size", 0, "--json", "-")[1])["points"] == 61
    with_header = json.loads(run("fit", "numbers.csv", "--header", *FIT, "--test-size", 0, "--json", "-")[1])
    assert (with_header["points"], with_header["features"], with_header["target"]) == (60, ["5", "7"], "1")
    (tmp_path / "data.csv").write_text(csv_text())
    refused(run("fit", "data.csv", "--no-header"), "row 1 (line 1), column 1: 'a' is no number", "--header")


@pytest.mark.parametrize("target", ["kind", "2", "-4"])
def test_the_target_goes_by_name_or_number(run, tmp_path, target):
    (tmp_path / "data.csv").write_text(csv_text(NUMBERS[["a", "kind", "b", "c"]].assign(d=1.0)))
    code, out, _ = run("fit", "data.csv", "--target", target, *FIT, "--json", "-")
    assert code == 0
    assert json.loads(out)["target"] == "kind"
    assert json.loads(out)["features"] == ["a", "b", "c", "d"]


def test_text_is_one_hot_on_request(run, tmp_path):
    (tmp_path / "data.csv").write_text(csv_text(FRAME))
    refused(run("fit", "data.csv"), "data.csv, row 1 (line 2), column 'colour': 'red' is no number", "--one-hot colour")
    features = ["a", "b", "c", "colour=blue", "colour=red"]
    for columns in ("colour", "4", "all"):
        assert json.loads(run("fit", "data.csv", *FIT, "--one-hot", columns, "--json", "-")[1])["features"] == features
    refused(run("fit", "data.csv", "--one-hot", "kind"), "--one-hot: column 'kind' is the target", code=2)
    refused(run("fit", "data.csv", "--drop", "kind"), "--drop: column 'kind' is the target", code=2)
    code, out, _ = run("fit", "data.csv", *FIT, "--drop", "colour,c", "--json", "-")
    assert code == 0
    assert json.loads(out)["features"] == ["a", "b"]


def test_true_and_false_are_numbers(run, tmp_path):
    (tmp_path / "data.csv").write_text(csv_text(NUMBERS.assign(c=X[:, 2] > 0)))
    assert run("fit", "data.csv", *FIT)[0] == 0


def test_text_far_down_a_column_is_found_where_it_is(run, tmp_path):
    rows = 3 * tables.CHUNK
    frame = pd.DataFrame({"a": np.arange(rows).astype(object), "kind": np.arange(rows) % 2})
    frame.loc[2 * tables.CHUNK + 5, "a"] = "oops"
    (tmp_path / "data.csv").write_text(csv_text(frame))
    row = 2 * tables.CHUNK + 6
    refused(run("fit", "data.csv"), f"row {row} (line {row + 1}), column 'a': 'oops' is no number")


def test_missing_values(run, tmp_path):
    frame = FRAME.copy()
    frame.loc[16, "b"] = np.nan
    frame.loc[20, "colour"] = np.nan
    (tmp_path / "data.csv").write_text(csv_text(frame, na_rep="n/a"))
    hot = ("--one-hot", "colour")
    words = ("row 17 (line 18), column 'b': the value is missing", "1 more row", "--missing drop", "--missing mean")
    refused(run("fit", "data.csv", *hot), *words)
    code, out, err = run("fit", "data.csv", *hot, *FIT, "--missing", "drop", "--test-size", 0, "--json", "-")
    assert (code, json.loads(out)["points"]) == (0, 58)
    assert "2 of 60 rows are left out" in err
    code, out, _ = run("fit", "data.csv", *hot, *FIT, "--missing", "mean", "--test-size", 0, "--json", "-")
    assert (code, json.loads(out)["points"]) == (0, 60)
    frame.loc[:, "b"] = np.nan
    (tmp_path / "data.csv").write_text(csv_text(frame))
    refused(run("fit", "data.csv", *hot, "--missing", "mean"), "column 'b' holds no value at all", "--drop")
    (tmp_path / "data.csv").write_text(csv_text(NUMBERS.assign(kind=np.where(np.arange(60) == 3, "", KIND))))
    refused(run("fit", "data.csv"), "row 4 (line 5), column 'kind': the target is missing", "--missing drop")


def test_a_decimal_comma_is_told_and_read(run, tmp_path):
    (tmp_path / "data.csv").write_text(csv_text(sep=";", decimal=","))
    refused(run("fit", "data.csv"), "A comma seems to be the decimal point", "--decimal ,")
    code, out, _ = run("fit", "data.csv", "--decimal", ",", *FIT, "--json", "-")
    assert code == 0
    assert json.loads(out)["certificates"][0]["dual"] == pytest.approx(reference()["dual"], rel=1e-6)


def test_names_of_columns_may_be_anything(run, tmp_path):
    (tmp_path / "data.csv").write_text('größe,"a, first",größe,Klasse\n' + csv_text(header=False), encoding="utf-8")
    code, out, err = run("fit", "data.csv", *FIT, "--target", "Klasse", "--drop", '"a, first"', "--json", "-")
    assert code == 0
    assert json.loads(out)["features"] == ["größe", "größe.1"]
    assert "columns of the same name are called größe.1" in err
    refused(run("fit", "data.csv", "--target", "größe"), "several columns called 'größe'", "number")
    (tmp_path / "data.csv").write_bytes("größe,b,c,kind\n".encode("cp1252") + csv_text(header=False).encode())
    assert json.loads(run("fit", "data.csv", *FIT, "--json", "-")[1])["features"][0] == "größe"


def test_labels_that_are_huge_whole_numbers_stay_apart(run, tmp_path):
    labels = np.where(SIGNS > 0, "9007199254740993", "9007199254740992")
    (tmp_path / "data.csv").write_text(csv_text(NUMBERS.assign(kind=labels)))
    code, out, _ = run("fit", "data.csv", *FIT, "--json", "-")
    assert (code, json.loads(out)["classes"]) == (0, ["9007199254740992", "9007199254740993"])


# Files that are refused.

REFUSED = {
    "empty.csv": (b"", "empty.csv is empty"),
    "blank.csv": (b" \n\n", "blank.csv is empty"),
    "header.csv": (b"a,b,kind\n", "header.csv has a header, 'a, b, kind', and no rows"),
    "one-column.csv": (b"kind\nx\ny\nx\ny\n", "one column, the target, and no features"),
    "one-class.csv": (b"a,kind\n1,x\n2,x\n", "column 'kind' holds one class only, x"),
    "lone.csv": (b"a,kind\n1,x\n2,x\n3,y\n", "one row of class y", "--test-size 0"),
    "numbers.csv": (b"a,size\n1,2.5\n2,3.5\n3,1\n", "no classes, such as 2.5", "--regression", "--target"),
    "short.csv": (b"a,b,kind\n1,2,x\n3,y\n", "line 3: expected 3 values as in the header, separated by commas; got 2"),
    "long.csv": (b"a,b,kind\n1,2,x\n3,4,5,y\n", "line 3: expected 3 values", "got 4", "quotes"),
    "quote.csv": (b'a,kind\n1,x\n"2,y\n', "line 3", "quote left open"),
    "infinite.csv": (b"a,kind\n1,x\n1e999,y\n", "row 2 (line 3), column 'a': the number is infinite"),
    "grouped.csv": (b"a,kind\n1_000,x\n2,y\n", "row 1 (line 2), column 'a': '1_000' is no number"),
    "junk.csv": (bytes(range(256)) * 20, "is no text"),
    "junk.parquet": (b"PAR1 and then nothing", "is no Parquet file, or damaged"),
    "cut.csv.gz": (gzip.compress(csv_text().encode())[:-50], "compressed, and damaged or cut off"),
    "bad.svm": (b"1 1:2\n-1 2:x\n", "line 2: expected index:value; got '2:x'"),
    "label.svm": (b"1 1:2\nx 2:1\n", "line 2: an svmlight line begins with a number, the label; got 'x'"),
    "order.svm": (b"1 1:2\n1 2:1 1:1\n", "line 2: indices must increase; 1 comes after 2"),
    "nan.svm": (b"1 1:2\n1 2:nan\n", "row 2, feature 2: the value is missing or infinite"),
    "no-features.svm": (b"1\n-1\n", "no features"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_with_a_file_is_told_in_one_line(run, tmp_path, name):
    content, *words = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    assert refused(run("fit", name), name, *words) == ""


def test_what_is_no_file(run, tmp_path):
    refused(run("fit", "absent.csv"), "absent.csv: no such file")
    refused(run("fit", "absent"), "absent: no such file", "breast_cancer", "openml:NAME")
    (tmp_path / "folder").mkdir()
    refused(run("fit", "folder"), "folder: is a directory")
    (tmp_path / "data.csv").write_text(csv_text())
    refused(run("fit", "data.csv", "--target", "size"), "no column 'size'; it has a, b, c, kind")
    refused(run("fit", "data.csv", "--target", "5"), "no column '5'", "numbered from 1 to 4")


def test_a_file_that_may_not_be_read(run, tmp_path, monkeypatch):
    (tmp_path / "secret.csv").write_text(csv_text())

    def denied(*args, **options):
        raise PermissionError(13, "Permission denied", "secret.csv")

    monkeypatch.setattr("builtins.open", denied)  # root may read anything
    refused(run("fit", "secret.csv"), "secret.csv: permission denied")


def test_a_parquet_file_without_pyarrow(run, tmp_path, monkeypatch):
    (tmp_path / "data.parquet").write_bytes(KINDS["data.parquet"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(run("fit", "data.parquet"), "zerogap[parquet]")


def test_dates_of_a_parquet_file_can_be_left_out(run, tmp_path):
    (tmp_path / "data.parquet").write_bytes(
        parquet(NUMBERS[["a", "b", "kind"]].assign(when=pd.Timestamp("2020-01-01"), flag=X[:, 0] > 0))
    )
    refused(run("fit", "data.parquet", "--target", "kind"), "row 1, column 'when': '2020-01-01 00:00:00' is no number")
    code, out, _ = run("fit", "data.parquet", "--target", "kind", "--drop", "when", *FIT, "--json", "-")
    assert (code, json.loads(out)["features"]) == (0, ["a", "b", "flag"])


def test_many_values_of_a_target_are_remarked_upon(run, tmp_path):
    (tmp_path / "data.csv").write_text(csv_text(NUMBERS.assign(kind=np.arange(60) // 2)))
    _, _, err = run("fit", "data.csv", "--test-size", 0, "--tol", "1e-2", "--no-peer")
    assert "30 values in 60 rows, each taken for a class; --regression" in err


# Models in files.


@pytest.fixture
def saved(run, tmp_path):
    """A model of a table with text, trained on all its rows."""
    (tmp_path / "data.csv").write_text(csv_text(FRAME))
    assert run("fit", "data.csv", "--one-hot", "colour", "--save", "m", *FIT)[0] == 0
    return "m.npz"


def predicted(result):
    code, out, err = result
    assert code == 0, err
    return out.splitlines()


def test_predictions_are_those_of_the_library(run, saved, tmp_path):
    from sklearn.preprocessing import StandardScaler

    hot = np.column_stack([X, FRAME["colour"] == "blue", FRAME["colour"] == "red"]).astype(float)
    scaled = StandardScaler().fit_transform(hot)
    model = zerogap.SVC(C=1.0, tol=1e-6).fit(scaled, KIND)
    assert predicted(run("predict", saved, "data.csv")) == model.predict(scaled).tolist()
    lines = [line.split(",") for line in predicted(run("predict", saved, "data.csv", "--decision"))]
    np.testing.assert_allclose([float(value) for _, value in lines], model.decision_function(scaled), atol=1e-6)
    (tmp_path / "shuffled.tsv").write_text(csv_text(FRAME[["kind", "c", "colour", "b", "a"]], sep="\t"))
    assert predicted(run("predict", saved, "shuffled.tsv")) == model.predict(scaled).tolist()


def test_the_score_is_told_where_the_file_has_the_target(run, saved, tmp_path):
    _, out, err = run("predict", saved, "data.csv")
    right = np.mean(np.array(out.splitlines()) == KIND)
    assert err == f"zerogap: accuracy {right:.4f} on 60 rows that have a target\n"
    (tmp_path / "new.csv").write_text(csv_text(FRAME.drop(columns="kind")))
    assert run("predict", saved, "new.csv") == (0, out, "")


def test_predictions_go_to_a_file_or_to_json(run, saved, tmp_path):
    lines = predicted(run("predict", saved, "data.csv"))
    assert run("predict", saved, "data.csv", "--output", "out.csv")[1] == ""
    assert (tmp_path / "out.csv").read_text().splitlines() == lines
    results = json.loads(run("predict", saved, "data.csv", "--json", "-")[1])
    assert results["predictions"] == lines
    assert results["rows_scored"] == 60
    both = run("predict", saved, "data.csv", "--json", "-", "--output", "-")
    refused(both, "cannot both write to standard output", code=2)


def test_columns_that_a_model_lacks_or_does_not_know(run, saved, tmp_path):
    (tmp_path / "lacks.csv").write_text(csv_text(FRAME.drop(columns=["a", "b"])))
    refused(run("predict", saved, "lacks.csv"), "lacks columns 'a', 'b' that the model was trained on")
    (tmp_path / "more.csv").write_text(csv_text(FRAME.assign(more="text")))
    assert predicted(run("predict", saved, "more.csv")) == predicted(run("predict", saved, "data.csv"))
    (tmp_path / "new.csv").write_text(csv_text(FRAME.assign(colour="mauve")))
    code, _, err = run("predict", saved, "new.csv")
    assert code == 0
    assert "row 1 (line 2), column 'colour': 'mauve' was not in training (and 59 more such rows)" in err
    (tmp_path / "data.svm").write_text(svmlight(X, SIGNS))
    refused(run("predict", saved, "data.svm"), "svmlight file; the model was trained on a table of 5 features")


def test_rows_that_lack_values_have_empty_lines_or_means(run, saved, tmp_path):
    frame = FRAME.copy()
    frame.loc[1, "a"] = np.nan
    (tmp_path / "gap.csv").write_text(csv_text(frame))
    lines = predicted(run("predict", saved, "data.csv"))
    refused(run("predict", saved, "gap.csv"), "row 2 (line 3), column 'a': the value is missing")
    assert predicted(run("predict", saved, "gap.csv", "--missing", "drop")) == [lines[0], "", *lines[2:]]
    refused(run("predict", saved, "gap.csv", "--missing", "mean"), "the model keeps no means", code=2)
    assert run("fit", "gap.csv", "--one-hot", "colour", "--missing", "mean", "--save", "means", *FIT)[0] == 0
    assert len([line for line in predicted(run("predict", "means", "gap.csv")) if line in ("yes", "no")]) == 60
    (tmp_path / "filled.csv").write_text(csv_text(frame.fillna({"a": frame["a"].mean()})))
    assert predicted(run("predict", "means", "filled.csv")) == predicted(run("predict", "means", "gap.csv"))
    told = "gap.csv: 1 of 60 rows lack values: the model puts its training means there"  # nobody has asked for it
    assert told in run("predict", "means", "gap.csv")[2]
    assert "lack values" not in run("predict", "means", "filled.csv")[2]
    assert "lack values" not in run("predict", "means", "gap.csv", "--missing", "mean")[2]
    refused(
        run("predict", "means", "gap.csv", "--missing", "error"), "row 2 (line 3), column 'a': the value is missing"
    )


def test_tables_without_a_header_go_by_the_numbers_of_columns(run, tmp_path):
    (tmp_path / "data.csv").write_text(csv_text(NUMBERS[["a", "kind", "b", "c"]], header=False))
    assert run("fit", "data.csv", "--target", 2, "--save", "m", *FIT)[0] == 0
    lines = predicted(run("predict", "m", "data.csv"))
    (tmp_path / "new.csv").write_text(csv_text(NUMBERS[["a", "b", "c"]], header=False))
    assert predicted(run("predict", "m", "new.csv")) == lines
    (tmp_path / "two.csv").write_text(csv_text(NUMBERS[["a", "b"]], header=False))
    refused(run("predict", "m", "two.csv"), "two.csv has 2 columns; the model was trained on 3 features and a target")


@pytest.mark.covering
@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_svmlight_files_are_padded_but_not_cut(run, tmp_path, base, is_sparse):
    wide = np.column_stack([X, np.zeros((60, 9))]) if is_sparse else X
    if is_sparse:
        wide[0, -1] = 1.0
    (tmp_path / "train.svm").write_text(svmlight(wide, SIGNS, base))
    assert run("fit", "train.svm", "--save", "m", *FIT)[0] == 0
    lines = predicted(run("predict", "m", "train.svm"))
    assert set(lines) == {"1", "-1"}
    narrow = wide.copy()
    narrow[:, -1] = 0.0
    (tmp_path / "less.svm").write_text(svmlight(narrow, SIGNS, base))
    assert len(predicted(run("predict", "m", "less.svm"))) == 60
    (tmp_path / "more.svm").write_text(svmlight(np.column_stack([wide, np.ones(60)]), SIGNS, base))
    width = wide.shape[1]
    words = f"has a feature {width + base}; the model was trained on features {base} to {width - 1 + base}"
    refused(run("predict", "m", "more.svm"), words)
    without_first = wide.copy()
    without_first[:, 0] = 0.0
    (tmp_path / "first.svm").write_text(svmlight(without_first, SIGNS, base))
    model, preparation = load_saved("m")
    expected = model.predict(preparation.apply(without_first))
    assert predicted(run("predict", "m", "first.svm")) == [f"{label:g}" for label in expected]


def load_saved(file):
    from zerogap.cli import saved

    return saved.load(file)


def test_a_model_saved_from_python_predicts_and_is_certified(run, tmp_path):
    zerogap.SVC(C=1.0).fit(NUMBERS[["a", "b", "c"]], KIND).save(tmp_path / "m.npz")
    (tmp_path / "data.csv").write_text(csv_text(NUMBERS[["kind", "c", "b", "a"]]))
    model = zerogap.load(tmp_path / "m.npz")
    assert predicted(run("predict", "m.npz", "data.csv")) == model.predict(NUMBERS[["a", "b", "c"]]).tolist()
    (tmp_path / "data.csv").write_text(csv_text())
    code, out, _ = run("certify", "m.npz", "data.csv", "--json", "-")
    assert code == 0
    assert json.loads(out)["relative_gap"] == pytest.approx(model.duality_gap_, rel=1e-3)


def test_a_model_without_names_goes_by_number_with_the_target_last_or_where_it_is_said_to_be(run, tmp_path):
    zerogap.SVC(C=1.0).fit(X, KIND).save(tmp_path / "m.npz")
    expected = zerogap.load(tmp_path / "m.npz").predict(X).tolist()
    for columns, target in ((["a", "b", "c"], ()), (["a", "b", "c", "kind"], ()), (["kind", "a", "b", "c"], ("1",))):
        (tmp_path / "data.csv").write_text(csv_text(NUMBERS[columns], header=False))
        code, out, err = run("predict", "m", "data.csv", *(("--target", *target) if target else ()))
        assert (code, out.splitlines()) == (0, expected)
        assert ("accuracy" in err) == ("kind" in columns)
    zerogap.SVC().save(tmp_path / "new.npz")
    refused(run("predict", "new", "data.csv"), "new holds a SVC that was never fitted")


def test_a_model_of_a_named_set_takes_svmlight_files(run, tmp_path):
    assert run("fit", "iris", "--save", "m", *FIT)[0] == 0
    points, labels = zerogap.datasets.load("iris")
    (tmp_path / "iris.svm").write_text(svmlight(points, labels))
    assert predicted(run("predict", "m", "iris.svm")) == predicted(run("predict", "m", "iris"))


def test_a_model_of_the_command_line_is_not_taken_for_one_without_columns(run, saved):
    with pytest.raises(ValueError, match="holds a model with its columns; a model was asked for"):
        zerogap.load(saved)


def test_what_is_no_model(run, tmp_path):
    (tmp_path / "data.csv").write_text(csv_text())
    refused(run("predict", "data.csv", "data.csv"), "data.csv is no model", ".npz")
    refused(run("predict", "absent.npz", "data.csv"), "absent.npz: no such file")
    (tmp_path / "junk.npz").write_bytes(b"junk")
    refused(run("predict", "junk.npz", "data.csv"), "junk.npz is not a file that zerogap wrote")
    assert run("path", "data.csv", "--no-grid", "--save", "path.npz", "--C-max", 1)[0] == 0
    refused(run("predict", "path.npz", "data.csv"), "path.npz holds a path; a model was asked for")


# Regression.


def test_a_regression_is_fitted_saved_and_certified(run, tmp_path):
    frame = NUMBERS[["a", "b", "c"]].assign(size=X[:, 0] - X[:, 1] + 0.5)
    (tmp_path / "data.csv").write_text(csv_text(frame))
    code, out, _ = run("fit", "data.csv", "--regression", "--epsilon", 0.05, "--save", "m", "--json", "-")
    assert code == 0
    results = json.loads(out)
    assert results["relative_gap"] <= 1e-6
    assert results["scikit_learn"]["score"] == pytest.approx(results["score"], abs=1e-3)
    _, out, err = run("predict", "m", "data.csv")
    np.testing.assert_allclose([float(line) for line in out.splitlines()], frame["size"], atol=0.3)
    assert "R² 0.9" in err
    assert run("certify", "m", "data.csv")[0] == 0
    refused(run("predict", "m", "data.csv", "--decision"), "--decision is for classifiers", code=2)
    code, out, _ = run("fit", "data.csv", "--regression", "--C", "inf", "--save", "hard", "--json", "-")
    assert (code, json.loads(out)["scikit_learn"]) == (0, None)  # it is left out where there is no bound
    assert run("certify", "hard", "data.csv", "--gap", 1e-6)[0] == 0
    (tmp_path / "text.csv").write_text(csv_text())
    refused(
        run("fit", "text.csv", "--regression"),
        "row 1 (line 2), column 'kind'",
        "--regression needs a target of numbers",
    )


# Certificates.


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--test-size", "0.4", "--seed", "3"],
        ["--kernel", "linear", "--C", "inf"],
        ["--loss", "squared_hinge", "--raw"],
    ],
    ids=["all rows", "some held out", "hard margin", "squared hinge"],
)
def test_a_saved_model_is_certified_on_its_training_file(run, tmp_path, options):
    separable = NUMBERS[(np.abs(X[:, 0] + 0.3 * X[:, 1]) > 0.1)]
    (tmp_path / "data.csv").write_text(csv_text(separable))
    fit = json.loads(run("fit", "data.csv", "--no-peer", "--save", "m", *options, "--json", "-")[1])
    code, out, _ = run("certify", "m", "data.csv", "--json", "-", "--gap", "1e-6")
    assert code == 0
    assert json.loads(out)["relative_gap"] == pytest.approx(fit["relative_gap"], rel=1e-2)
    refused((*run("certify", "m", "data.csv", "--gap", "1e-14"),), "above --gap 1e-14")
    (tmp_path / "other.csv").write_text(csv_text(separable.iloc[1:]))
    refused(run("certify", "m", "other.csv"), "this is another file")
    (tmp_path / "other.csv").write_text(csv_text(separable.assign(a=separable["a"] + 0.5)))
    refused(run("certify", "m", "other.csv"), "other.csv")


def test_several_classes_have_a_certificate_a_pair(run):
    assert run("fit", "iris", "--save", "m", *FIT)[0] == 0
    code, out, _ = run("certify", "m", "iris")
    assert code == 0
    assert out.count("certificate of ") == 3


@pytest.mark.long
def test_a_model_of_skops_is_certified(run, tmp_path):
    skops = pytest.importorskip("skops.io")
    peer = Peer(C=100.0).fit(X, KIND)
    skops.dump(peer, tmp_path / "m.skops")
    (tmp_path / "data.csv").write_text(csv_text())
    code, out, _ = run("certify", "m.skops", "data.csv", "--json", "-")
    assert code == 0
    assert json.loads(out)["relative_gap"] == pytest.approx(zerogap.certify(peer, X, KIND).relative_gap)
    (tmp_path / "junk.skops").write_bytes(b"junk")
    refused(run("certify", "junk.skops", "data.csv"), "junk.skops is no model that skops reads")


def libsvm_file(peer, gamma, is_regression=False):
    """Return what svm-train writes of scikit-learn's model, which is LIBSVM's but for the signs of two classes."""
    sign = 1.0 if is_regression or peer.classes_.size > 2 else -1.0
    dual = sign * peer.dual_coef_
    head = [f"svm_type {'epsilon_svr' if is_regression else 'c_svc'}", "kernel_type rbf", f"gamma {gamma!r}"]
    head += [f"nr_class {2 if is_regression else peer.classes_.size}", f"total_sv {peer.support_.size}"]
    head += [f"rho {' '.join(map(repr, (-sign * peer.intercept_).tolist()))}"]
    if not is_regression:
        head += [f"label {' '.join(f'{label:g}' for label in peer.classes_)}"]
        head += [f"nr_sv {' '.join(map(str, peer.n_support_))}"]
    rows = [
        " ".join([*map(repr, dual[:, k].tolist()), *(f"{j + 1}:{value:.8g}" for j, value in enumerate(row))])
        for k, row in enumerate(peer.support_vectors_)
    ]
    return "\n".join([*head, "SV", *rows]) + "\n"


@pytest.mark.parametrize("classes", [2, 3, 0], ids=["two classes", "three classes", "regression"])
def test_a_model_by_svm_train_is_certified(run, tmp_path, classes):
    rng = np.random.default_rng(1)
    points = np.repeat(rng.standard_normal((40, 3)).round(4), 2, axis=0)  # equal rows are told apart
    labels = (
        np.digitize(points[:, 0] + 0.5 * rng.standard_normal(80), [0.0, 0.8][: classes - 1])
        if classes
        else points[:, 0]
    )
    peer = (Peer if classes else PeerSVR)(C=10.0, gamma=0.5, tol=1e-3).fit(points, labels)
    (tmp_path / "data.model").write_text(libsvm_file(peer, 0.5, not classes))
    (tmp_path / "data.svm").write_text(svmlight(points, labels))
    code, out, err = run("certify", "data.model", "data.svm", "--C", 10, "--json", "-")
    assert code == 0, err
    assert json.loads(out)["relative_gap"] == pytest.approx(
        zerogap.certify(peer, points, labels).relative_gap, rel=1e-6
    )
    refused(run("certify", "data.model", "data.svm", "--C", 1), "are no feasible point of the problem")
    refused(run("certify", "data.model", "data.svm"), "does not keep C: give --C", code=2)
    (tmp_path / "other.svm").write_text(svmlight(points + 1.0, labels))
    refused(run("certify", "data.model", "other.svm", "--C", 10), "is no row of the data")
    text = (tmp_path / "data.model").read_text()
    (tmp_path / "data.model").write_text(text[: len(text) // 2].rpartition("\n")[0])
    refused(run("certify", "data.model", "data.svm", "--C", 10), "is no whole model of LIBSVM")
    (tmp_path / "data.model").write_text(text.replace("rbf", "precomputed"))
    refused(run("certify", "data.model", "data.svm", "--C", 10), "precomputed kernel", code=2)
