"""Machines on a Dask cluster: dataframes, and data, options and clusters that are refused."""

import time

import numpy as np
import pytest
from clusters import PARTS, check_same, client, da, distributed, parted, points  # noqa: F401
from sklearn.metrics import r2_score

import zerogap
import zerogap.dask as zd
from zerogap.dask import cluster
from zerogap.dask.block import fingerprint, load, summary
from zerogap.dask.collections import parts_of
from zerogap.dask.facts import _check_labels

# Dataframes.


@pytest.mark.long
def test_workers_read_parquet(tmp_path):
    """Partitions of a dataframe, of which sizes are not known, are read by processes."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, _ = points()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=y, weight=1.0 + np.arange(y.size) % 3)
    for k, rows in enumerate(np.split(np.arange(150), (30, 90))):
        frame.iloc[rows].to_parquet(tmp_path / f"part{k}.parquet")
    options = {"tol": 1e-10}
    cluster_ = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster_, distributed.Client(cluster_) as other:
        table = dd.read_parquet(str(tmp_path / "*.parquet"))
        assert table.npartitions == 3
        features = table[["a", "b", "c"]]
        model = zd.SVC(**options, working_set=40, client=other).fit(features, table["kind"], table["weight"])
        lazy = model.predict(features)
        found, score = lazy.compute(), float(model.score(features, table["kind"]))
    expected = zerogap.SVC(**options).fit(frame[["a", "b", "c"]], y, frame["weight"])
    check_same(model, expected)
    assert list(model.to_local().feature_names_in_) == ["a", "b", "c"]
    assert (found == model.predict(frame[["a", "b", "c"]])).all()
    assert score == pytest.approx((found == y).mean())


def test_sizes_of_partitions_need_not_be_known():
    X, y, _ = points()
    rows = parted(np.column_stack([X, y == "oak"]).astype(float), (50, 60, 40))
    kept = rows[rows[:, 0] > -10.0]  # all of them, but Dask does not know
    assert np.isnan(kept.shape[0])
    model = zd.SVC(tol=1e-2).fit(kept[:, :3], kept[:, 3])
    assert model.shape_fit_ == (150, 3)
    with pytest.raises(ValueError, match=r"X has 3 partitions and y has 1, .*compute_chunk_sizes"):
        zd.SVC().fit(kept[:, :3], parted((y == "oak").astype(float), (150,)))


def frames(**columns):
    """Return points and labels as dataframes of Dask in two partitions, which it has from two places."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, y, _ = points()
    X, y = pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y)
    index = columns.get("index", y.index)
    X.index, y.index = index, columns.get("other", index)
    return tuple(dd.from_pandas(one, npartitions=2, sort=False).clear_divisions() for one in (X, y)), X, y


def test_rows_of_dataframes_belong_together_by_their_place():
    """Dask would join them by their index, which repeats rows where it has some twice, and puts them in another order."""
    (X, y), rows, labels = frames(index=np.tile(np.arange(75), 2))
    parts = [(x.compute(), t.compute()) for x, t, _ in parts_of(X, y, None)]
    assert np.array_equal(np.concatenate([x for x, _ in parts]), rows)
    assert np.array_equal(np.concatenate([t for _, t in parts]), labels)


def test_another_index_or_number_of_rows_is_refused():
    (X, y), *_ = frames(other=np.arange(150) + 7)
    with pytest.raises(
        ValueError, match=r"The index of y is not that of X: it begins \[(7, 8, 9|82, 83, 84)\].*y.values"
    ):
        zd.SVC().fit(X, y)
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    y = dd.from_pandas(pd.Series(np.arange(400) % 2), npartitions=2)
    with pytest.raises(ValueError, match=r"Partition [01]: X has 75 rows and y has 200"):
        zd.SVC().fit(X, y)
    with pytest.raises(ValueError, match=r"index of y is from 0 to 399, and that of X from 0 to 149"):
        zd.SVC().fit(dd.from_pandas(X.compute(), npartitions=2), y)


# What is refused.


def bad(**changes):
    """Return X and y in two partitions, with something wrong."""
    X, y, _ = points()
    X, y = X.copy(), y.copy()
    if "nan" in changes:
        X[changes["nan"], 1] = np.nan
    if "one" in changes:
        y[:] = "oak"
    return parted(X, PARTS[2]), parted(y, PARTS[2])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (lambda: bad(nan=60), ValueError, "Partition 1: .*NaN"),
        (lambda: bad(one=True), ValueError, "needs at least two classes"),
        (lambda: (bad()[0], points()[1]), TypeError, "must all be Dask collections, or all be plain arrays"),
        (lambda: (points()[0], points()[1][:-1]), ValueError, r"X has 150 rows, and y shape \(149,\)"),
        (lambda: (bad()[0], bad()[1][:-1]), ValueError, "X has 150 rows"),
        (lambda: (bad()[0][:0], bad()[1][:0]), ValueError, "All partitions are empty"),
        (lambda: (*bad(), parted(np.zeros(150), PARTS[2])), ValueError, "sample_weight is zero for every point"),
        (
            lambda: (*bad(), parted(np.where(np.arange(150) == 7, -1.0, 1.0), PARTS[2])),
            ValueError,
            "Partition 0: sample_weight must be finite",
        ),
    ],
    ids=["nan", "one-class", "mixed", "lengths", "rows", "empty", "no-weight", "negative-weight"],
)
def test_bad_data_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        zd.SVC().fit(*given())


def test_labels_of_two_types_are_refused():
    """Joined they would be text: 1 and "1" one class."""
    rows = np.zeros((2, 1))
    parts = [load(rows, labels, None, k, True) for k, labels in enumerate((np.array([0, 1]), np.array(["0", "1"])))]
    with pytest.raises(
        ValueError, match=r"Labels must be of one type; got .*0.* in partition 0 and .*'0'.* in partition 1"
    ):
        _check_labels({k: summary(one, True) for k, one in enumerate(parts)})


@pytest.mark.parametrize("kind", ["delayed", "bag"])
def test_collections_that_are_no_arrays_are_refused(kind):
    import dask
    import dask.bag

    given = dask.delayed([1, 2]) if kind == "delayed" else dask.bag.from_sequence([1, 2])
    with pytest.raises(TypeError, match=r"X must be a Dask array or dataframe, or a plain array; got (Delayed|Bag)"):
        parts_of(given, given, None)


def test_predictions_for_other_features_are_refused_before_they_are_computed():
    X, y, _ = points()
    model = zd.SVC()
    model._take(zerogap.SVC(tol=1e-2).fit(X, y), [], cluster.Cluster(None, []))
    with pytest.raises(ValueError, match=r"the 3 features that the model was fitted with; got .* and 2 features"):
        model.predict(parted(X[:, :2], PARTS[2]))
    with pytest.raises(ValueError, match=r"two dimensions .* got 1 dimension"):
        model.decision_function(parted(X[:, 0], PARTS[2]))


def test_an_error_that_takes_other_arguments_names_the_partition(monkeypatch):
    def unreadable(_):
        raise UnicodeDecodeError("utf-8", b"a", 0, 1, "no text")

    monkeypatch.setattr("zerogap.validation.check_points", unreadable)
    with pytest.raises(ValueError, match=r"Partition 3: 'utf-8' codec"):
        load(np.ones((2, 1)), np.array([0, 1]), None, 3, True)


@pytest.mark.parametrize("none", [None, np.nan, "NA"])
def test_labels_that_are_missing_are_refused(none):
    X, y, _ = points()
    labels = y.astype(object)
    labels[50] = pytest.importorskip("pandas").NA if none == "NA" else none
    with pytest.raises(ValueError, match=r"Partition 1: y has no label at row 10; got (None|nan|<NA>)"):
        zd.SVC().fit(parted(X, PARTS[2]), parted(labels, PARTS[2]))


def test_a_checkpoint_needs_its_folder_before_data_is_read(tmp_path):
    X, y, _ = points()
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing. Make it"):
        zd.SVC(checkpoint=tmp_path / "missing" / "fit", client="none is asked for").fit(X, y)


def test_a_fingerprint_depends_on_the_whole_of_a_label():
    X, codes = np.ones((4, 2)), np.array([0, 0, 1, 1])
    names = np.array(["class_0", "class_1"])
    one, other = (fingerprint(load(X, names[of_all], None, 0, True), 0) for of_all in (codes, 1 - codes))
    assert one != other
    assert one == fingerprint(load(X, names[codes].astype(object), None, 0, True), 0)


@pytest.mark.long
def test_scores_are_those_of_scikit_learn_for_equal_targets_and_refuse_mixtures():
    X, _, t = points()
    model, rows = zd.SVR(tol=1e-2).fit(X, t), parted(X, PARTS[2])
    for target in (np.zeros(150), np.full(150, 2.0), t):
        assert float(model.score(rows, parted(target, PARTS[2]))) == pytest.approx(r2_score(target, model.predict(X)))
    flat = zd.SVR().fit(X, np.zeros(150))
    assert float(flat.score(rows, parted(np.zeros(150), PARTS[2]))) == r2_score(np.zeros(150), flat.predict(X)) == 1.0
    with pytest.raises(
        TypeError, match="must all be Dask collections, or all be plain arrays; got X of dask, y of numpy"
    ):
        model.score(rows, t)


def test_features_that_differ_are_refused():
    import dask

    X, y, _ = points()
    parts = [dask.delayed(X[:40]), dask.delayed(X[40:, :2])]
    rows = da.concatenate([da.from_delayed(part, (n, 3), float) for part, n in zip(parts, (40, 110), strict=True)])
    with pytest.raises(ValueError, match="Partition 0 has 3 features and partition 1 has 2"):
        zd.SVC().fit(rows, parted(y, PARTS[2]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": np.inf}, "C must be above 0 and finite; .*use a large C"),
        ({"kernel": "precomputed"}, "has no partitions of points"),
        ({"working_set": 0}, "working_set must be a whole number"),
        ({"tol": -1.0}, "tol must be above 0"),
    ],
    ids=["C", "precomputed", "working_set", "tol"],
)
def test_bad_options_are_refused(options, words):
    X, y, _ = points()
    with pytest.raises(ValueError, match=words):
        zd.SVC(**options).fit(X, y)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf, "a"])
def test_a_bad_epsilon_is_refused_in_the_words_of_one_machine(epsilon):
    """One below zero would have a certificate of a problem that is not convex."""
    X, _, t = points()
    with pytest.raises(ValueError, match=r"^epsilon must be .*It is the half width of the tube") as local:
        zerogap.SVR(epsilon=epsilon).fit(X, t)
    with pytest.raises(ValueError, match=r"^epsilon must be") as found:
        zd.SVR(epsilon=epsilon, client="none is asked for").fit(X, t)
    assert str(found.value) == str(local.value)


def test_a_client_is_needed():
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client; got str"):
        zd.SVC(client="tcp://somewhere").fit(*points()[:2])
    assert cluster.current(None) is distributed.default_client()


def test_a_closed_client_is_refused():
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as alone:
        other = distributed.Client(alone, set_as_default=False)
        other.close()
        with pytest.raises(RuntimeError, match=r"The Dask client is closed. Make another"):
            zd.SVC(client=other).fit(*points()[:2])


def test_a_cluster_without_workers_says_so_within_seconds(monkeypatch):
    monkeypatch.setattr(cluster, "WAIT_FOR_WORKERS", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as other,
    ):
        began = time.perf_counter()
        with pytest.raises(RuntimeError, match="has no workers"):
            zd.SVC(client=other).fit(*points()[:2])
        assert time.perf_counter() - began < 5.0
