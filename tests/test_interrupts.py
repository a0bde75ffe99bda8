"""Ctrl-C and time limits end the whole, keep what there is, and say so.  The signal is a real one."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, make_moons

from zerogap import SVC, SVR, DualProblem, Gram, RelativeGap, Status, compare, leave_one_out, solve
from zerogap.active_set import ActiveSet
from zerogap.cli import main
from zerogap.estimators.incremental import Training
from zerogap.limits import Exceeded, _current, heard, interruptible, limits
from zerogap.solvers import SMO

HARD = {"C": 1e6, "gamma": 1e-3, "tol": 1e-13, "solver": "smo-mvp"}  # takes minutes to the tolerance


def hard_points(n=1500):
    """Noise that no smooth function explains."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 4)), np.arange(n)


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """A fit loads code when it is first called; Ctrl-C is to come while it computes."""
    X, codes = hard_points(40)
    SVC(**{**HARD, "tol": 0.5}).fit(X, codes % 4)


class CtrlC:
    """Press Ctrl-C after so many seconds."""

    def __init__(self, seconds):
        self.timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))

    def __enter__(self):
        self.timer.start()

    def __exit__(self, *_):
        self.timer.cancel()
        self.timer.join()


def caught_warnings(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return call(), [str(w.message) for w in caught]


def assert_sound(model, X, y):
    """Whatever ended the fit: its certificate is that of its coefficients, which are feasible."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    problem = DualProblem.hinge(Gram(X, gamma=model._kernel.gamma), np.where(y == 1, 1.0, -1.0), model.C)
    assert (problem.lower <= beta).all()
    assert (beta <= problem.upper).all()
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    now = problem.certify(beta)
    assert now.dual == pytest.approx(model.certificate_.dual, rel=1e-6)
    assert np.isfinite(model.decision_function(X)).all()


# Several classes.


def test_ctrl_c_ends_a_fit_of_several_classes():
    X, codes = hard_points()
    with CtrlC(0.2):
        model, said = caught_warnings(lambda: SVC(**HARD).fit(X, codes % 4))
    assert Status.INTERRUPTED in model.status_
    assert [s for s in said if "interrupted" in s] == said[-1:]
    assert f"{model.status_.count(Status.INTERRUPTED)} of 6 pairs of classes" in said[-1]
    assert len(model.certificate_) == 6
    assert np.isfinite(model.decision_function(X)).all()
    after = model.status_.index(Status.INTERRUPTED)
    assert all(status is Status.INTERRUPTED for status in model.status_[after:])
    assert not model.n_iter_[after + 1 :].any()  # their start, not even tried


def test_the_pairs_that_were_solved_when_ctrl_c_came_are_kept(monkeypatch):
    X, codes = hard_points(300)
    whole = SVC(solver="smo").fit(X, codes % 3)
    fit_pair, pairs = SVC._fit_pair, []

    def counted(self, rows, points, a, b, start, whole):
        pairs.append((a, b))
        if len(pairs) == 3:
            signal.raise_signal(signal.SIGINT)
        return fit_pair(self, rows, points, a, b, start, whole)

    monkeypatch.setattr(SVC, "_fit_pair", counted)
    model, said = caught_warnings(lambda: SVC(solver="smo").fit(X, codes % 3))
    assert model.status_ == [Status.CONVERGED, Status.CONVERGED, Status.INTERRUPTED]
    np.testing.assert_allclose(model._pair_decisions(X)[:, :2], whole._pair_decisions(X)[:, :2])
    assert len(said) == 1
    assert "1 of 3 pairs of classes" in said[0]
    assert model.duality_gap_ == model.certificate_[2].relative_gap > 0.1


def test_ctrl_c_ends_pairs_of_classes_on_threads_too(monkeypatch):
    X, codes = hard_points(300)
    fit_pair, pairs = SVC._fit_pair, []

    def counted(self, rows, points, a, b, start, whole):
        pairs.append((a, b))
        if len(pairs) == 3:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.02)  # joblib hands out the later ones in threads of its own
        return fit_pair(self, rows, points, a, b, start, whole)

    monkeypatch.setattr(SVC, "_fit_pair", counted)
    model, _ = caught_warnings(lambda: SVC(solver="smo", n_jobs=2).fit(X, codes % 6))
    assert [status is Status.INTERRUPTED for status in model.status_[4:]] == [True] * 11


def test_the_flag_is_lowered_when_the_fit_is_over():
    with limits() as limit:
        signal.raise_signal(signal.SIGINT)
        assert limit.is_over
    heard()  # else a fit that follows at once raises, which is another test
    X, y = make_moons(50, random_state=0)
    assert SVC().fit(X, y).status_ is Status.CONVERGED


@pytest.mark.long
def test_every_pair_of_classes_obeys_max_time():
    X, codes = hard_points(900)
    began = time.process_time()
    model, said = caught_warnings(lambda: SVC(**HARD, max_time=0.2).fit(X, codes % 3))
    assert time.process_time() - began < 30  # to the tolerance each takes minutes
    assert model.status_ == [Status.MAX_TIME] * 3
    assert len(said) == 1
    assert "3 of 3 pairs of classes" in said[0]
    assert "max_time=0.2" in said[0]


@pytest.mark.parametrize("estimator", [SVC, SVR])
def test_what_comes_before_the_solver_counts_as_time(estimator, monkeypatch):
    """On a clock that jumps by two seconds while duplicates are merged nothing is left of one second."""
    clock, late, prepare = time.perf_counter, [0.0], estimator._prepare

    def slowly(self, *arguments):
        late[0] = 2.0
        return prepare(self, *arguments)

    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late[0])
    monkeypatch.setattr(estimator, "_prepare", slowly)
    X, y = make_moons(50, random_state=0)
    model, said = caught_warnings(lambda: estimator(max_time=1.0).fit(X, y))
    assert model.status_ is Status.MAX_TIME
    assert "max_time=1.0" in said[0]


# Rows added and forgotten.


class Countdown:
    """A limit that is reached when it has been asked so many times."""

    def __init__(self, monkeypatch, asks):
        self.left = asks
        monkeypatch.setattr("zerogap.limits.is_over", self.is_over)
        monkeypatch.setattr("zerogap.limits.Limit.is_over", property(lambda limit: self.left <= 0))

    def is_over(self):
        if _current.get() is None:  # what has to be finished is
            return False
        self.left -= 1
        return self.left <= 0


def moons(n=120):
    return make_moons(n, noise=0.3, random_state=0)


@pytest.mark.covering
@pytest.mark.parametrize("asks", [1, 2, 4, 6])
@pytest.mark.parametrize("step", ["add", "forget"])
def test_a_limit_anywhere_in_a_change_leaves_a_sound_model_that_goes_on(step, asks):
    X, y = moons()
    options = {"C": 50.0, "gamma": 1.0}
    model = SVC(**options).partial_fit(X[:60], y[:60])
    with pytest.MonkeyPatch.context() as patch:
        Countdown(patch, asks)
        call = (lambda: model.partial_fit(X[60:], y[60:])) if step == "add" else (lambda: model.forget(np.arange(30)))
        _, said = caught_warnings(call)
    X, y = (X, y) if step == "add" else (X[30:60], y[30:60])
    assert model.status_ is Status.MAX_TIME
    assert "time limit" in said[0]
    assert model.shape_fit_ == X.shape
    assert model.duality_gap_ > 1e-4
    assert_sound(model, X, y)
    model.forget([])  # goes on
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.dual == pytest.approx(SVC(**options, tol=1e-10).fit(X, y).certificate_.dual, rel=1e-9)


def test_a_limit_during_the_first_batch_is_made_up_for_by_the_next():
    X, y = moons()
    with pytest.MonkeyPatch.context() as patch:
        Countdown(patch, 0)
        model, _ = caught_warnings(lambda: SVC(C=50.0, gamma=1.0, tol=1e-9).partial_fit(X[:60], y[:60]))
    assert model.status_ is Status.MAX_TIME
    model.partial_fit(X[60:], y[60:])
    assert model.status_ is Status.CONVERGED
    assert_sound(model, X, y)


@pytest.mark.long
def test_max_time_is_that_of_the_model():
    X, codes = hard_points(1200)
    y = codes % 2
    model, said = caught_warnings(lambda: SVC(**HARD, max_time=0.15).partial_fit(X[:1000], y[:1000]))
    assert model.status_ is Status.MAX_TIME
    model.set_params(max_time=1e-6)
    _, said = caught_warnings(lambda: model.partial_fit(X[1000:], y[1000:]))
    assert model.status_ is Status.MAX_TIME
    assert "max_time=1e-06" in said[0]
    assert model.shape_fit_[0] == 1200
    assert_sound(model, X, y)


def test_ctrl_c_during_a_change(monkeypatch):
    X, codes = hard_points(1200)
    y = codes % 2
    model, _ = caught_warnings(lambda: SVC(**HARD, max_time=0.15).partial_fit(X[:1000], y[:1000]))
    model.set_params(max_time=None)
    add = Training.add

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return add(*arguments)

    monkeypatch.setattr(Training, "add", interrupted)
    _, said = caught_warnings(lambda: model.partial_fit(X[1000:], y[1000:]))
    assert model.status_ is Status.INTERRUPTED
    assert "interrupted" in said[-1]
    assert_sound(model, X, y)


# Leave-one-out.


@pytest.mark.parametrize("asks", [1, 60, 200])
def test_leave_one_out_returns_the_rows_it_came_to(asks):
    X, y = moons(60)
    model = SVC(C=5.0).fit(X, y)
    whole = leave_one_out(SVC(C=5.0).fit(X, y))
    assert whole.status is Status.CONVERGED
    with pytest.MonkeyPatch.context() as patch:
        Countdown(patch, asks)
        result, said = caught_warnings(lambda: leave_one_out(model))
    done = np.isfinite(result.decision_values)
    assert result.status is Status.MAX_TIME
    assert not done.all()
    assert done.any() == (asks > 1)
    assert f"{done.sum()} of 60 rows" in said[0]
    np.testing.assert_allclose(result.decision_values[done], whole.decision_values[done], atol=1e-9)
    assert result.predictions[done].tolist() == whole.predictions[done].tolist()
    assert all(prediction is None for prediction in result.predictions[~done])
    assert result.error == np.mean(whole.predictions[done] != y[done]) if done.any() else np.isnan(result.error)
    again = leave_one_out(model)  # nothing half done is left behind
    np.testing.assert_allclose(again.decision_values, whole.decision_values, atol=1e-9)


@pytest.mark.parametrize("whose", ["model", "argument"])
def test_leave_one_out_has_the_models_limit_and_its_own(whose):
    X, y = moons(60)
    model = SVC(C=5.0, max_time=None).fit(X, y)
    if whose == "model":
        model.set_params(max_time=1e-9)
    result, said = caught_warnings(lambda: leave_one_out(model, max_time=1e-9 if whose == "argument" else None))
    assert result.status is Status.MAX_TIME
    assert "0 of 60 rows" in said[0]
    with pytest.raises(ValueError, match="max_time must be above 0"):
        leave_one_out(model, max_time=-1.0)


def test_ctrl_c_during_leave_one_out():
    X, codes = hard_points(600)
    model = SVC(C=10.0, gamma=0.5).fit(X, codes % 2)
    leave_one_out(SVC().fit(*moons(40)))
    with limits():
        signal.raise_signal(signal.SIGINT)
        result, said = caught_warnings(lambda: leave_one_out(model))
    assert result.status is Status.INTERRUPTED
    assert "interrupted" in said[0]


# Loops that used to have no end.


@pytest.mark.thin(3)
@pytest.mark.parametrize("seed", range(40))
def test_forgetting_points_of_both_classes_whose_weights_cancel(seed):
    X, y = np.random.default_rng(seed).normal(size=(4, 2)), np.array([1, 1, 0, 0])
    model = SVC(C=0.01, kernel="linear").partial_fit(X, y).forget([0, 3])
    fresh = SVC(C=0.01, kernel="linear", tol=1e-10).fit(X[1:3], y[1:3])
    np.testing.assert_allclose(model.dual_coef_, fresh.dual_coef_, atol=1e-15)
    assert model.status_ is Status.CONVERGED


def test_where_no_free_point_can_take_up_a_change_a_new_start_is_made():
    """All others at the ends the change would move them to: only rounding can ask for that, and it must not go on for ever."""
    problem = DualProblem.hinge(Gram(np.eye(3), "linear"), np.array([1.0, -1.0, 1.0]), 1.0)
    active = ActiveSet(problem, np.array([1.0, -1.0, 0.0]))
    assert not active.drive(problem, np.array([1, 2]), np.array([0.0, 1.0]))  # asks the first to go below zero by two
    active.restart(problem)
    active.optimise(problem)
    assert problem.certify(active.beta).gap <= 1e-12


def test_points_that_are_driven_do_not_take_up_their_own_change():
    problem = DualProblem.hinge(Gram(np.eye(2), "linear"), np.array([1.0, -1.0]), 4.0)
    active = ActiveSet(problem, np.array([1.0, -1.0]))
    assert not active.drive(problem, np.arange(2), np.array([0.0, -1.0]))  # they would no longer sum to zero


def test_exchanges_that_rounding_leads_astray_are_followed_by_a_solver(monkeypatch):
    X, y = moons(60)
    model = SVC(C=50.0, gamma=1.0).partial_fit(X[:40], y[:40])
    monkeypatch.setattr(ActiveSet, "optimise", lambda self, problem, *rest: self.sync(problem) or 0)
    model.partial_fit(X[40:], y[40:])
    assert model.status_ is Status.CONVERGED
    assert model.duality_gap_ <= model.tol
    assert_sound(model, X, y)
    result = leave_one_out(model)
    monkeypatch.undo()
    np.testing.assert_allclose(
        result.decision_values, leave_one_out(SVC(C=50.0, gamma=1.0).fit(X, y)).decision_values, atol=1e-3
    )


# Comparisons.


def test_ctrl_c_ends_a_comparison_and_keeps_the_rows_there_are():
    X, codes = hard_points(1200)
    problem = DualProblem.hinge(Gram(X, gamma=1e-3), np.where(codes % 2, 1.0, -1.0), 1e6)
    pressed = []

    def press(state, row):  # in the second run that counts: the first has ended, the third has not begun
        if row.step == 0:
            pressed.append(row)
        if len(pressed) == 2 and row.step > 0:
            os.kill(os.getpid(), signal.SIGINT)

    solvers = {"first": "smo", "second": "smo-mvp", "third": "smo-keerthi"}
    comparison, said = caught_warnings(
        lambda: compare(problem, solvers, callback=press, max_steps=3000, trace_every=500, distance=True)
    )
    assert [row["status"] for row in comparison.rows] == ["MAX_STEPS", "INTERRUPTED", "INTERRUPTED"]
    assert comparison["second"].solution is not None
    assert comparison["third"].solution is None
    assert comparison["third"].reason == "not run"
    assert "1 of 3 solvers" in said[-1]
    assert "not run" in repr(comparison)
    assert comparison.to_dict()["refused"] == {"third": "not run"}


def test_ctrl_c_during_a_warm_up_run_ends_the_comparison():
    X, codes = hard_points(1200)
    problem = DualProblem.hinge(Gram(X, gamma=1e-3), np.where(codes % 2, 1.0, -1.0), 1e6)
    with limits():
        os.kill(os.getpid(), signal.SIGINT)
        comparison, _ = caught_warnings(lambda: compare(problem, ["smo", "smo-mvp"]))
    assert [row["status"] for row in comparison.rows] == ["INTERRUPTED"] * 2
    assert comparison.solutions == {}


def test_where_no_point_is_kept_ctrl_c_raises_at_once():
    X, codes = hard_points(1200)
    with pytest.raises(KeyboardInterrupt), CtrlC(0.2), interruptible():
        SVC(**HARD).fit(X, codes % 2)


# The command.


@pytest.fixture(scope="module")
def hard_file(tmp_path_factory):
    X, codes = hard_points(3000)
    path = tmp_path_factory.mktemp("data") / "hard.svm"
    dump_svmlight_file(X, codes % 2, str(path))
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["path", "--gamma", "1e-3"], id="path"),
        pytest.param(
            ["fit", "--C", "1e6", "--gamma", "1e-3", "--tol", "1e-13", "--solver", "smo-mvp"],
            id="fit",
            marks=pytest.mark.long,
        ),
    ],
)
def test_an_interrupted_command_ends_with_130(hard_file, arguments):
    """Wherever it is when Ctrl-C comes: in loading, compiling or solving."""
    command = [sys.executable, "-u", "-m", "zerogap.cli", arguments[0], hard_file, *arguments[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    # Python itself ends by the signal if it met Ctrl-C in code that was made from a string, such as a dataclass being defined,
    # whatever was caught since; a shell makes 130 of either.
    assert process.returncode in (130, -signal.SIGINT)
    assert err.splitlines()[-1] == "zerogap: interrupted"
    assert "Traceback" not in err


def press_before(monkeypatch, name, count):
    """Press Ctrl-C when a function of the package is called for the n-th time."""
    module, _, attribute = name.rpartition(".")
    function, calls = getattr(__import__(module, fromlist=[attribute]), attribute), []

    def pressed(*args, **kwargs):
        calls.append(args)
        if len(calls) == count:
            signal.raise_signal(signal.SIGINT)
        return function(*args, **kwargs)

    monkeypatch.setattr(name, pressed)


@pytest.mark.filterwarnings("always:.*stopped:sklearn.exceptions.ConvergenceWarning")
def test_an_interrupted_fit_shows_what_there_is(monkeypatch, capsys):
    press_before(monkeypatch, "zerogap.estimators.base.solve", 4)  # three pairs of classes are there to compile
    assert main(["fit", "iris", "--solver", "smo"]) == 130
    out, err = capsys.readouterr()
    assert "certified gap" in out
    assert "3 of 3 pairs of classes" in err
    assert err.splitlines()[-1] == "zerogap: interrupted"


@pytest.mark.filterwarnings("always:compare was:sklearn.exceptions.ConvergenceWarning")
def test_an_interrupted_comparison_shows_what_there_is(monkeypatch, capsys, tmp_path):
    press_before(monkeypatch, "zerogap.comparison._run", 2)
    file = tmp_path / "out.json"
    assert main(["compare", "--solvers", "smo,smo-mvp", "--json", str(file)]) == 130
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("smo")}
    assert rows["smo"][0] == "converged"
    assert rows["smo-mvp"] == ["interrupted", "not", "run"]
    assert err.splitlines()[-1] == "zerogap: interrupted"
    assert [row["status"] for row in json.loads(file.read_text())["rows"]] == ["CONVERGED", "INTERRUPTED"]


def test_an_interrupted_experiment_is_none(monkeypatch, capsys):
    press_before(monkeypatch, "zerogap.estimators.base.solve", 1)
    monkeypatch.setattr("zerogap.reproduce.reproduce", lambda *args, **options: SVC(solver="smo").fit(*moons(50)))
    assert main(["reproduce", "ong-table-2"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "zerogap: interrupted"


def drop_ctrl_c():
    """Do what a compiler does with what its callbacks raise."""
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with limits() as limit:
        assert limit.is_over


def test_where_ctrl_c_is_to_raise_at_once_it_does_so_even_if_a_callback_drops_it():
    with pytest.raises(KeyboardInterrupt), interruptible():
        drop_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_step_that_a_limit_cuts_off_counts_no_iteration(monkeypatch):
    X, y = make_moons(60, noise=0.3, random_state=0)
    problem = DualProblem.hinge(Gram(X), np.where(y == 1, 1.0, -1.0), 1.0)
    step, calls = SMO.step, []

    def cut(self, problem, state, most, target):
        calls.append(1)
        if len(calls) > 1:
            os.kill(os.getpid(), signal.SIGINT)
            raise Exceeded
        return step(self, problem, state, most, target)

    monkeypatch.setattr(SMO, "step", cut)
    solution = solve(problem, "smo", stop=RelativeGap(1e-9), trace_every=5)
    assert (solution.status, solution.n_iter) == (Status.INTERRUPTED, 5)


def test_ctrl_c_before_the_first_certificate_ends_the_run_at_a_certified_point():
    """The bound on the rounding of a function's values is computed for the first certificate, and asks for limits itself."""
    X, y = moons(40)
    gram = Gram(X, lambda A, B: np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2)), tau="radius")
    problem = DualProblem.hinge(gram, np.where(y == 1, 1.0, -1.0), 1.0, fit_intercept=False)

    def press(state, row):
        signal.raise_signal(signal.SIGINT)

    solution = solve(problem, "gradient-ascent", stop=RelativeGap(10.0), callback=press)
    assert solution.status is Status.INTERRUPTED
    assert solution.certificate.gap <= problem.certify(solution.beta).gap + solution.certificate.rounding
