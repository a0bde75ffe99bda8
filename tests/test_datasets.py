import gzip

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from zerogap import datasets


def test_spiral_follows_the_papers_formula_without_noise():
    X, y = datasets.spiral(10, noise=0.0)
    r = 1 + np.arange(5) * 2 * np.pi / 4
    np.testing.assert_allclose(X[y > 0], np.column_stack([r * np.sin(2 * r), r * np.cos(2 * r)]))
    np.testing.assert_allclose(X[y < 0], -X[y > 0], atol=1e-12)  # half a turn
    a, b = datasets.spiral(20, 0.3, random_state=1)[0], datasets.spiral(20, 0.3, random_state=1)[0]
    np.testing.assert_array_equal(a, b)
    assert len(datasets.spiral(7)[1]) == 7


def test_two_spirals():
    X, y = datasets.two_spirals()
    assert X.shape == (194, 2)
    np.testing.assert_allclose(X[0], [0.0, 6.5])
    np.testing.assert_array_equal(X[0::2], -X[1::2])
    assert (y[0::2] == 1).all()
    assert (y[1::2] == -1).all()


def test_two_spirals_equal_the_file():
    folder = datasets.data_folder()
    if folder is None:
        pytest.skip("no local data folder; set ZEROGAP_DATA to run this")
    X, y = datasets.load("two-spirals")
    expected, labels = datasets.two_spirals()
    np.testing.assert_allclose(X, expected, atol=1e-5)
    np.testing.assert_array_equal(y, labels)


def test_names_that_ship_with_scikit_learn():
    X, _ = datasets.load("breast_cancer")
    assert X.shape == (569, 30)


def test_local_files_by_name(tmp_path, monkeypatch):
    X, y = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([1.0, -1.0, 1.0])
    with gzip.open(tmp_path / "mine.svm.gz", "wb") as file:
        dump_svmlight_file(X, y, file, zero_based=False)
    monkeypatch.setenv("ZEROGAP_DATA", str(tmp_path))
    got, labels = datasets.load("mine")
    np.testing.assert_array_equal(got.toarray(), X)
    np.testing.assert_array_equal(labels, y)


def test_csv_with_a_named_target(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,kind,b\n1,yes,2\n3,no,4.5\n")
    X, y = datasets.read(path, target="kind")
    np.testing.assert_array_equal(X, [[1.0, 2.0], [3.0, 4.5]])
    assert y.tolist() == ["yes", "no"]
    with pytest.raises(ValueError, match="no column 'label'; it has a, kind, b"):
        datasets.read(path, target="label")
    with pytest.raises(ValueError, match="column 'kind': 'yes' is no number"):
        datasets.read(path)
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match="expected 2 values as in the header"):
        datasets.read(path)
    with pytest.raises(FileNotFoundError, match="no file"):
        datasets.read(tmp_path / "absent.csv")
