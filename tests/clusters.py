"""What tests of machines on a cluster share: points in partitions, a cluster in this process, and what agreement is."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import zerogap

da = pytest.importorskip("dask.array", reason='machines on a cluster need dask: pip install "zerogap[dask]"')
distributed = pytest.importorskip("distributed", reason='machines on a cluster need it: pip install "zerogap[dask]"')

from zerogap.dask import partition  # noqa: E402

AGREE = 1e-9  # of the objective: both are within 1e-10 of the optimum, by their certificates
PARTS = {1: (150,), 2: (40, 110), 7: (30, 1, 44, 25, 0, 20, 30)}  # the first 30 are of one class


@pytest.fixture(scope="module", autouse=True)
def client():
    """A cluster in this process."""
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as found:
        yield found


def points(classes=2, n=150):
    """Points that no kernel separates, the first thirty of one class; labels are texts, in no order."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 3))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.standard_normal(n)
    codes = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    order = np.concatenate(
        [np.flatnonzero(codes == 0)[:30], np.setdiff1d(np.arange(n), np.flatnonzero(codes == 0)[:30])]
    )
    names = np.array(["oak", "ash", "elm"])[:classes]
    return X[order], names[codes[order]], np.sin(2 * X[order, 0]) + 0.2 * rng.standard_normal(n)


def parted(values, sizes):
    """Return rows as a Dask array of so many each; CSR stays CSR."""
    if sp.issparse(values):
        edges = np.cumsum([0, *sizes])
        parts = [
            da.from_array(values[a:b], chunks=values[a:b].shape, asarray=False) for a, b in pairwise(edges) if b > a
        ]
        return da.concatenate(parts)
    return da.from_array(values, chunks=(tuple(sizes), *((n,) for n in values.shape[1:])))


def check_same(found, expected):
    """The same certificate to ten digits, for every pair of classes; and so the same decisions but for a few digits."""
    pairs = zip(*(np.atleast_1d(np.array(m.certificate_, dtype=object)) for m in (found, expected)), strict=True)
    for one, other in pairs:
        assert one.relative_gap <= 1e-10
        assert one.dual == pytest.approx(other.dual, rel=AGREE)
        assert one.primal == pytest.approx(other.primal, rel=AGREE)


def environment():
    """Return that of a program with a cluster of processes."""
    return os.environ | {"PYTHONPATH": str(Path(zerogap.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


SPEC = partition.Spec("k", zerogap.kernels.RBF(0.5), 1.5, "hinge", 0.0, np.array([0, 1]), np.ones(2))
