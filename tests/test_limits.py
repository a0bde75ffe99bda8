"""Time limits and Ctrl-C, by themselves."""

import signal
import threading
from types import SimpleNamespace

import pytest

from zerogap.limits import Exceeded, check, heard, interruptible, is_over, limits, unlimited


def test_without_a_limit_nothing_is_over():
    assert not is_over()
    check()


def test_a_deadline_holds_for_everything_inside():
    with limits(0.0) as limit:
        assert limit.is_over
        assert is_over()
        assert not limit.was_interrupted
        with pytest.raises(Exceeded):
            check()
        with unlimited():
            assert not is_over()
        with limits(1000.0) as inner:  # the earliest deadline counts
            assert inner.is_over
    assert not is_over()


def test_ctrl_c_is_one_flag_for_all_limits_and_is_forgotten_after_them():
    with limits() as outer:
        with limits(1000.0) as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner.was_interrupted
        assert outer.was_interrupted
        assert is_over()
    heard()  # else the next one raises: test_interrupted_loops.py
    with limits() as later:
        assert not later.was_interrupted


def test_a_second_ctrl_c_raises():
    with limits():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), limits():
            signal.raise_signal(signal.SIGINT)


def test_the_handler_of_before_is_back_even_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError), limits():
        raise RuntimeError
    assert signal.getsignal(signal.SIGINT) is before
    assert not is_over()


def test_other_threads_have_limits_of_their_own():
    seen = []

    def work():
        seen.append(is_over())
        with limits(0.0) as limit:
            seen.append(limit.is_over)

    with limits(1000.0):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not is_over()
    assert seen == [False, True]


def test_time_passes(monkeypatch):
    now = 100.0
    monkeypatch.setattr("zerogap.limits.time", SimpleNamespace(perf_counter=lambda: now))
    with limits(0.02) as limit:
        assert not limit.is_over
        now = 100.03
        assert limit.is_over


@pytest.mark.parametrize(
    "module",
    ["numba.core.serialize", "namedtuple_Moving", "llvmlite.binding.executionengine", "weakref", "zerogap.memory"],
)
def test_ctrl_c_never_raises_while_compiled_code_hands_over_its_results(module):
    """Numba has no test of what Python calls return there: it crashes.  The next question raises in their place."""
    hands_over = eval(
        "lambda: press(signal.SIGINT)", {"press": signal.raise_signal, "signal": signal, "__name__": module}
    )
    reached = []

    def work():
        with interruptible(), limits():
            hands_over()
            reached.append("after")
            is_over()
            reached.append("too far")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["after"]
    with limits():
        signal.raise_signal(signal.SIGINT)
        hands_over()  # the second one neither
        assert is_over()
    heard()
