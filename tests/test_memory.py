"""Memory that the next matrix uses again."""

import numpy as np
import pytest

from zerogap import Gram, memory

needs_pages = pytest.mark.skipif(not memory._CAN_KEEP, reason="this system cannot take pages back: nothing is kept")


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(memory, "_kept", [])


@needs_pages
def test_memory_is_used_again_but_not_while_any_view_of_it_lives():
    first = memory.matrix(700, 500)
    first[:] = 7.0
    address, row = first.ctypes.data, first[3, :10]
    del first
    other = memory.matrix(700, 500)
    assert other.ctypes.data != address
    other[:] = 1.0
    assert (row == 7.0).all()
    del row
    again = memory.matrix(600, 450)  # smaller, but not far smaller
    assert again.ctypes.data == address
    assert again.shape == (600, 450)
    assert again.flags.c_contiguous
    assert again.flags.writeable


@needs_pages
def test_pieces_far_too_large_and_more_than_is_worth_keeping_are_not_used(monkeypatch):
    large = memory.matrix(2000, 2000)
    address = large.ctypes.data
    del large
    assert memory.matrix(600, 600).ctypes.data != address
    monkeypatch.setattr(memory, "MOST", 8_000_000)
    pieces = [memory.matrix(600, 600) for _ in range(5)]
    del pieces
    assert sum(map(len, memory._kept)) <= 8_000_000
    assert memory._kept


@needs_pages
def test_memory_does_not_grow_from_one_task_to_the_next():
    """Each asks for a large matrix and for smaller ones, in another order: none takes a large piece for little."""
    sizes = [1000, 600, 800, 1500, 700]
    for task in range(20):
        held = [memory.matrix(size, size) for size in np.random.default_rng(task).permutation(sizes).tolist()]
        del held
    assert sum(map(len, memory._kept)) <= 1.5 * sum(8 * size * size for size in sizes)
    assert len(memory._kept) <= len(sizes)


def test_small_matrices_and_systems_without_such_pages_are_numpy_s(monkeypatch):
    assert memory.matrix(3, 4).base is None
    monkeypatch.setattr(memory, "_CAN_KEEP", False)
    assert memory.matrix(700, 500).base is None
    assert not memory._kept


def test_a_matrix_does_not_show_what_was_in_its_memory_before():
    X = np.random.default_rng(0).standard_normal((600, 3))
    K = Gram(X).full().copy()
    for scale in (2.0, 1.0):
        gram = Gram(scale * X, gamma=Gram(X).kernel.gamma)
        gram.full()
        del gram
    np.testing.assert_array_equal(Gram(X).full(), K)
    gram = Gram(X)
    gram.row(5)
    np.testing.assert_allclose(gram.full(), K, rtol=1e-12)  # a row was there: it was computed alone
