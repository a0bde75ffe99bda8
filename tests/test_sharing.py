"""Threads for pieces of work: every piece once, BLAS held meanwhile, errors and limits told."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from zerogap import limits, threads
from zerogap.limits import Exceeded


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture
def two(monkeypatch):
    monkeypatch.setattr(threads._Blas, "threads", lambda self: 2)


def test_every_piece_once(two):
    done = []
    threads.share(done.append, range(1000))
    assert sorted(done) == list(range(1000))


def test_blas_is_held_to_one_thread_and_let_go(two):
    np.ones((2, 2)) @ np.ones((2, 2))
    before, seen = blas_threads(), []
    threads.share(lambda piece: seen.append(blas_threads()), range(3))
    assert all(set(counts) == {1} for counts in seen)
    assert blas_threads() == before


def test_the_last_who_holds_lets_go():
    blas, before = threads._blas(), blas_threads()
    with blas.held():
        with blas.held():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
        assert blas.threads() == max(before)
    assert blas_threads() == before


def test_a_users_limit_is_ours():
    with threadpool_limits(1, user_api="blas"):
        assert threads._blas().threads() == 1


@pytest.mark.parametrize("by_helper", [True, False])
def test_an_error_is_raised_wherever_it_comes_from(two, by_helper):
    main, both = threading.current_thread(), threading.Barrier(2)

    def work(piece):
        if piece < 2:
            both.wait(10)
            if (threading.current_thread() is not main) == by_helper:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.share(work, range(10))


def test_a_limit_ends_it_after_a_piece(two):
    done = []
    with limits.limits(0.0), pytest.raises(Exceeded):
        threads.share(done.append, range(100_000))
    assert 1 <= len(done) < 100_000


def test_the_last_piece_is_the_end_though_the_limit_is_over(two):
    done = []
    with limits.limits(0.0):
        threads.share(done.append, [3])
    assert done == [3]


def test_what_blas_had_is_what_it_gets_back():
    """With libraries of our own: those of the suite have one thread each."""

    class Library:
        def __init__(self, count):
            self.count = count

        def get_num_threads(self):
            return self.count

        def set_num_threads(self, count):
            self.count = count

    blas = threads._Blas()
    blas._libraries = [Library(4), Library(3)]
    assert blas.threads() == 4
    for _ in range(2):
        with blas.held(), blas.held():
            assert [library.count for library in blas._libraries] == [1, 1]
            assert blas.threads() == 4
        assert [library.count for library in blas._libraries] == [4, 3]
