"""Time limits, Ctrl-C, limits on events, storing, resuming, and what is refused at the door of a path."""

import os
import signal
import threading
import warnings
from contextvars import copy_context

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zerogap import Gram, Path, Status, SVCPath, limits, svm_path
from zerogap.active_set import ActiveSet
from zerogap.path import LP, exactness, score_curve, single, threaded
from zerogap.path import engine as engine_module
from zerogap.path import single as single_module
from zerogap.path.engine import Transition
from zerogap.path.family import Family
from zerogap.path.hastie import HastieEngine
from zerogap.path.lines import Lines
from zerogap.path.lp import LPEngine
from zerogap.path.single import SingleEngine
from zerogap.stopping import PlainGap

ENGINES = {"single": SingleEngine, "lp": LPEngine, "hastie": HastieEngine}


@pytest.fixture(scope="module")
def moons():
    return make_moons(200, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def whole(moons):
    return svm_path(*moons, C_max=100.0)


def press(*_):
    os.kill(os.getpid(), signal.SIGINT)


def raise_over(monkeypatch, owner, name, after=0, *, by=press):
    """Let a limit fall where a function is called the n-th time."""
    calls, plain = [], getattr(owner, name)

    def wrapped(*arguments, **options):
        calls.append(1)
        if len(calls) == after + 1:
            by()
        return plain(*arguments, **options)

    monkeypatch.setattr(owner, name, wrapped)


@pytest.mark.parametrize(
    "where", [(single_module, "optimum"), (single_module, "optimal_elbow"), (ActiveSet, "optimise")]
)
def test_ctrl_c_before_the_first_segment_leaves_a_path_that_says_so(moons, whole, where, monkeypatch):
    raise_over(monkeypatch, *where)
    with pytest.warns(ConvergenceWarning, match=r"svm_path was stopped \(interrupted\).*has not got beyond its start"):
        path = svm_path(*moons, C_max=100.0)
    assert path.status == "interrupted"
    assert not path.has_segments
    assert path.reached is not None
    assert path.C.tolist() == [pytest.approx(1e-4)]
    assert "interrupted" in repr(path)
    for read in (path.coefficients_at, path.bias_at, path.certificate_at):
        with pytest.raises(ValueError, match=r"no segment yet: it ended \(interrupted\).*resume=path"):
            read(1e-4)
    with pytest.raises(ValueError, match="no segment yet"):
        score_curve(path, path.gram.full(), path.y)
    with pytest.raises(ValueError, match="no segment yet"):
        _ = path.largest_gap_
    monkeypatch.undo()
    limits.heard()
    again = svm_path(*moons, C_max=100.0, resume=path)
    assert again is path
    assert path.status == "complete"
    np.testing.assert_allclose(path.C, whole.C, rtol=1e-9)


@pytest.mark.parametrize("gap", [None, 1e-3])
def test_nobody_is_told_to_go_on_with_the_path_of_a_search(moons, gap):
    found = []

    def follow():  # as a thread of a search does
        found.append(svm_path(*moons, gap=gap).status)

    def search():
        with limits.interruptible():
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            thread = threading.Thread(target=copy_context().run, args=(follow,))
            thread.start()
            thread.join()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            search()
    assert (found, told) == (["interrupted"], [])


def test_what_the_start_has_reached_is_gone_on_with(moons, monkeypatch):
    raise_over(monkeypatch, single_module, "optimal_elbow")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        path = svm_path(*moons)
    monkeypatch.undo()
    limits.heard()
    starts, solve = [], single.Single.start
    monkeypatch.setattr(
        single.Single,
        "start",
        lambda self, gram, family, lam, beta=None, status=None: (
            starts.append(beta) or solve(self, gram, family, lam, beta)
        ),
    )
    svm_path(*moons, resume=path)
    np.testing.assert_array_equal(starts[0], path.reached)


def test_a_limit_in_the_kernel_matrix_leaves_an_empty_path(moons, monkeypatch):
    def cut(self):
        raise limits.Exceeded

    monkeypatch.setattr(Gram, "full", cut)
    path = svm_path(*moons)
    assert (path.status, path.has_segments) == ("max_time", False)
    monkeypatch.undo()
    assert svm_path(*moons, resume=path).status == "complete"


@pytest.mark.parametrize("engine", ENGINES)
def test_no_time_at_all(moons, engine):
    path = svm_path(*moons, engine=engine, max_time=0.0)
    assert (path.status, path.has_segments) == ("max_time", False)
    svm_path(*moons, engine=engine, resume=path, C_max=1.0)
    assert path.status == "complete"
    assert path.largest_gap_ < 1e-2


@pytest.mark.thin(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("after", [0, 1, 10])
def test_ctrl_c_between_events_keeps_the_part_computed(moons, engine, after, monkeypatch):
    raise_over(monkeypatch, ENGINES[engine], "steps", after)
    with pytest.warns(
        ConvergenceWarning, match=r"interrupted\) on its way to C_max=100: the path ends at C=.*resume=path"
    ):
        path = svm_path(*moons, engine=engine, C_max=100.0)
    assert path.status == "interrupted"
    assert path.has_segments
    assert path.worst_certificate().relative_gap <= path.largest_gap_ + 1e-11
    monkeypatch.undo()
    limits.heard()
    svm_path(*moons, engine=engine, C_max=100.0, resume=path)
    assert (path.status, path.C[-1]) == ("complete", pytest.approx(100.0))
    assert path.largest_gap_ <= {"single": 1e-9, "hastie": 1e-6, "lp": 1e-2}[engine]


@pytest.mark.parametrize("after", [3, 17, 60])
def test_a_limit_in_the_middle_of_a_step_ends_at_the_breakpoint_before(moons, whole, after, monkeypatch, one_by_one):
    """The engine is left half way through an exchange, so that resume has to start it anew."""
    events, enter, enter_lines = [], SingleEngine._enter, Lines.enter

    def cut(self, i):
        if events[-1] > after:
            raise limits.Exceeded
        return enter_lines(self, i)

    monkeypatch.setattr(SingleEngine, "_enter", lambda self, i: events.append(self.counts.events) or enter(self, i))
    monkeypatch.setattr(Lines, "enter", cut)
    path = svm_path(*moons, C_max=100.0)
    monkeypatch.undo()
    assert path.status == "max_time"
    assert path.engine is None
    svm_path(*moons, C_max=100.0, resume=path)
    assert path.status == "complete"
    assert path.largest_gap_ <= 1e-9
    np.testing.assert_allclose(path.coefficients_at(50.0), whole.coefficients_at(50.0), atol=1e-7 * 50.0)


def test_a_limit_in_the_final_check_is_seen_and_the_check_is_made_when_asked_for(moons, monkeypatch):
    raise_over(monkeypatch, Path, "prove", 10**6)
    path = svm_path(*moons, C_max=100.0)
    prove = Path.prove

    def cut(self, least=1):
        raise limits.Exceeded

    monkeypatch.setattr(Path, "prove", cut)
    path = svm_path(*moons, C_max=100.0, max_events=20)
    assert path.n_unproved > 0
    monkeypatch.setattr(Path, "prove", prove)
    assert path.largest_gap_ <= 1e-9
    assert path.n_unproved == 0


def test_long_calls_do_not_keep_a_limit_waiting():
    never = threading.Event()
    with pytest.raises(limits.Exceeded), limits.limits(0.1):
        threaded.call_in_thread(threaded.LARGE, never.wait)
    never.set()
    with limits.limits(60.0):
        assert threaded.call_in_thread(threaded.LARGE, threading.get_ident) != threading.get_ident()
        assert threaded.call_in_thread(threaded.LARGE - 1, threading.get_ident) == threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            threaded.call_in_thread(threaded.LARGE, lambda: 1 / 0)


def test_the_linear_programs_of_many_points_are_waited_for(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    y = np.where(rng.random(60) < 0.5, 1, -1)
    sizes = []
    monkeypatch.setattr("zerogap.path.lp.call_in_thread", lambda rows, f, *a, **k: sizes.append(rows) or f(*a, **k))
    svm_path(X, y, kernel="linear", engine="lp", merge_duplicates=False, C_max=1.0)
    assert sizes


def test_a_path_of_an_estimator_says_where_it_was_stopped(moons, monkeypatch):
    raise_over(monkeypatch, SingleEngine, "step", 10)
    with pytest.warns(ConvergenceWarning, match=r"stopped \(interrupted\).*ends at C="):
        model = SVCPath().fit(*moons)
    assert model.predict(moons[0], C=model.breakpoints_[-1]).shape == (200,)
    monkeypatch.undo()
    limits.heard()
    steps, calls = SingleEngine.steps, []

    def press(engine, *args):
        calls.append(None)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return steps(engine, *args)

    monkeypatch.setattr(SingleEngine, "steps", press)
    with pytest.warns(
        ConvergenceWarning, match=r"\(interrupted\) on its way to C_max=1000: .* Go on with svm_path"
    ) as caught:
        model = make_pipeline(StandardScaler(), SVCPath()).fit(*moons)[-1]
    assert model.path_.status == "interrupted"
    assert f"the path ends at C={model.path_.C[-1]:g}." in str(caught[0].message)
    monkeypatch.undo()
    limits.heard()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.0.*has not got beyond its start"):
        model = SVCPath(max_time=0.0).fit(*moons)
    with pytest.raises(ValueError, match="no segment yet"):
        model.predict(moons[0])


# Loops that end.


def test_a_start_that_finds_no_optimal_elbow_goes_on_and_says_so(moons, monkeypatch):
    monkeypatch.setattr(ActiveSet, "optimise", lambda self, problem, tolerance: 0)
    monkeypatch.setattr(single_module, "START", PlainGap(1e-2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = svm_path(*moons, C_min=1.0, C_max=1.1)
    said = " ".join(str(warning.message) for warning in caught)
    assert "nearly optimal one" in said
    assert path.status == "complete"
    assert path.largest_gap_ <= 1e-9 or "not exact" in said


def test_a_point_that_depends_whatever_leaves_calls_the_backup(moons, monkeypatch, one_by_one):
    calls, enter = [], SingleEngine._enter

    def failing(self, index):
        calls.append(1)
        if len(calls) == 50:
            raise FloatingPointError
        return enter(self, index)

    monkeypatch.setattr(SingleEngine, "_enter", failing)
    monkeypatch.setattr(SingleEngine, "_reaches", lambda self, lam: False)
    with pytest.warns(RuntimeWarning, match="solved anew"):
        path = svm_path(*moons, C_max=100.0)
    assert (path.status, path.counts.loop_backups) == ("complete", 1)
    assert path.largest_gap_ <= 1e-9


def test_an_exchange_without_end_is_given_up(moons, monkeypatch):
    path = svm_path(*moons, max_events=30)
    engine = path.engine
    monkeypatch.setattr(Lines, "enter", lambda self, i: False)
    monkeypatch.setattr(SingleEngine, "_exchange", lambda self, index, way, room: (0, 0.0))
    monkeypatch.setattr(SingleEngine, "_leave", lambda self, position, target: None)
    with pytest.raises(FloatingPointError, match="whatever leaves it"):
        engine._enter(int(np.flatnonzero(engine.status == 0)[0]))


def test_a_backup_that_does_no_good_goes_on_further(moons, monkeypatch):
    """The violation stays above the tolerance whatever SMO does."""
    monkeypatch.setattr(LPEngine, "_violation", lambda self: 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = svm_path(*moons, C_min=1.0, C_max=2.0, engine="lp")
    assert path.status == "complete"
    assert path.counts.events < 1000


# Events.


@pytest.mark.parametrize("max_events", [-5, 1.5, "3", True, np.nan])
def test_numbers_of_events_that_mean_nothing_are_refused(moons, max_events):
    with pytest.raises(ValueError, match=r"max_events must be a whole number, 0 or more"):
        svm_path(*moons, max_events=max_events)
    with pytest.raises(ValueError, match=r"max_time must be"):
        svm_path(*moons, max_time=-1.0)


def test_no_event_at_all_solves_the_start_only(moons, whole):
    path = svm_path(*moons, max_events=0)
    assert (path.status, path.n_events, path.counts.events) == ("max_events", 0, 0)
    svm_path(*moons, resume=path, C_max=100.0)
    assert path.events == whole.events


def test_a_limit_on_events_counts_those_of_this_call(moons):
    path = svm_path(*moons, max_events=30)
    svm_path(*moons, resume=path, max_events=30)
    assert (path.status, path.counts.events) == ("max_events", 60)
    svm_path(*moons, resume=path, max_events=5)
    assert path.counts.events == 65


def test_segments_of_no_length_are_dropped():
    X = np.random.default_rng(0).integers(0, 2, size=(120, 6)).astype(float)
    y = np.where(X[:, :3].sum(axis=1) >= 2, 1, -1)
    y[:5] = -y[:5]
    path = svm_path(X, y, kernel="linear")
    assert path.n_events > len(path._segments)  # ties
    assert (np.diff(path.lam) < 0).all()
    assert len(path._segments) == len(path) - 1


def test_adding_a_segment_of_no_length_leaves_only_its_transitions(moons):
    path = svm_path(*moons, max_events=10)
    before, segment = len(path._segments), path._segments[-1]
    path.add(segment, path.end, [Transition(path.end, 3, 0, 1)])
    assert len(path._segments) == before
    assert path._transitions[-1].point == 3


def test_what_changes_before_the_first_segment_comes_with_it(moons):
    whole = svm_path(*moons, max_events=10)
    path = Path(whole.family, whole.points, whole.start, whole.lam[0], whole.gram)
    path.add(whole._segments[0], whole.lam[0], [Transition(whole.lam[0], 3, 0, 1)])  # no length
    path.add(whole._segments[0], whole.lam[1], [Transition(whole.lam[1], 4, 0, 1)])
    path.add(whole._segments[1], whole.lam[2], [])
    assert [[t.point for t in made] for *_, made in path.seal("complete").segments()] == [[3], [4]]


# Storing and resuming.


def test_the_name_a_path_is_stored_under_is_the_one_it_is_loaded_by(moons, tmp_path):
    path = svm_path(*moons, C_max=1.0)
    path.save(tmp_path / "p")
    for name in ("p", "p.npz"):
        loaded = Path.load(tmp_path / name)
        np.testing.assert_array_equal(loaded.coefficients_at(0.5), path.coefficients_at(0.5))
    (tmp_path / "text.npz").write_text("no path")
    with pytest.raises(ValueError, match=r"text\.npz is not a file that zerogap wrote"):
        Path.load(tmp_path / "text")
    np.savez(tmp_path / "arrays", lam=np.ones(3))
    with pytest.raises(ValueError, match="not those of a path"):
        Path.load(tmp_path / "arrays")


def test_a_path_without_a_segment_can_be_stored(moons, tmp_path):
    path = svm_path(*moons, max_time=0.0)
    path.save(tmp_path / "p")
    loaded = Path.load(tmp_path / "p", path.gram)
    assert (loaded.status, loaded.has_segments) == ("max_time", False)
    assert svm_path(*moons, resume=loaded, C_max=1.0).largest_gap_ <= 1e-9


@pytest.mark.parametrize("stored", [True, False])
def test_sets_are_right_after_an_engine_was_started_anew(stored, tmp_path):
    """The coefficients of points on a boundary do not tell their sets: the new engine takes those of the path."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(80, 3)).astype(float)
    y = np.where((X.sum(axis=1) >= 3) ^ (rng.random(80) < 0.15), 1, -1)
    changed = 0
    for stop in (5, 12, 25, 40):
        path = svm_path(X, y, kernel="linear", max_events=stop)
        if stored:
            path.save(tmp_path / "p")
            path = Path.load(tmp_path / "p", path.gram)
        path.engine = None
        before = path.n_events
        svm_path(X, y, kernel="linear", resume=path, max_events=1)
        changed += path.n_events - before > 1
        np.testing.assert_array_equal(path.sets_at(None), path.engine.status)
        svm_path(X, y, kernel="linear", resume=path, C_max=100.0)
        assert path.largest_gap_ <= 1e-9
        between = np.sqrt(path.C[1:] * path.C[:-1])
        assert path.worst_certificate(between).relative_gap <= 1e-9
    assert changed == 0


def test_sets_are_right_after_a_backup(moons, monkeypatch, one_by_one):
    steps = SingleEngine.steps

    def circling(self, lam_end, max_events):
        self.calls = getattr(self, "calls", 0) + 1
        self._degenerate_steps = 10**9 if self.calls % 10 == 0 else 0
        return steps(self, lam_end, max_events)

    monkeypatch.setattr(SingleEngine, "steps", circling)
    monkeypatch.setattr(SingleEngine, "_reaches", lambda self, lam: False)
    with pytest.warns(RuntimeWarning, match="solved anew"):
        path = svm_path(*moons, C_min=0.1, C_max=10.0)
    assert path.n_backups > 0
    np.testing.assert_array_equal(path.sets_at(None), path.engine.status)
    assert path.largest_gap_ <= 1e-9


def test_other_data_are_refused(moons, tmp_path):
    X, y = moons
    path = svm_path(X, y, C_max=1.0)
    path.save(tmp_path / "p")
    for part in (path, Path.load(tmp_path / "p", path.gram)):
        with pytest.raises(ValueError, match="200 rows; X has 199"):
            svm_path(X[:-1], y[:-1], resume=part)
        with pytest.raises(ValueError, match="X or y is not what"):
            svm_path(X[::-1] + 1.0, y[::-1], resume=part)
        moved = X.copy()
        moved[7, 1] += 1e-9
        with pytest.raises(ValueError, match="is not what the path"):
            svm_path(moved, y, resume=part)
        with pytest.raises(ValueError, match="is not what the path"):
            svm_path(X, 1 - y, resume=part)
        with pytest.raises(ValueError, match="sample_weight is not what"):
            svm_path(X, y, resume=part, sample_weight=np.full(200, 2.0))
        for other in ({"kernel": "linear"}, {"gamma": 0.3}, {"kernel": lambda A, B: A @ B.T}):
            with pytest.raises(ValueError, match="made with kernel"):
                svm_path(X, y, resume=part, **other)
        assert svm_path(sp.csr_matrix(X), y, resume=part, C_max=2.0).status == "complete"


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_other_data_are_refused_where_no_duplicates_are_looked_for(moons, form):
    X, y = moons
    path = svm_path(form(X), y, C_max=1.0, merge_duplicates=False)
    moved = X.copy()
    moved[7, 1] += 1e-9
    with pytest.raises(ValueError, match="X is not what the path"):
        svm_path(form(moved), y, resume=path, merge_duplicates=False)


def test_other_degrees_are_refused_only_where_they_matter(moons):
    X, y = moons
    path = svm_path(X, y, C_max=1.0)
    svm_path(X, y, degree=5, coef0=2.0, resume=path, C_max=2.0)
    path = svm_path(X, y, kernel="poly", degree=2, coef0=1.0, C_max=1.0)
    with pytest.raises(ValueError, match="made with kernel"):
        svm_path(X, y, kernel="poly", degree=3, coef0=1.0, resume=path)


def test_what_a_path_keeps_is_its_own(moons):
    X, y = moons[0].copy(), moons[1].copy()
    model = SVCPath(C_max=10.0).fit(X, y)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    of_kernel = SVCPath(kernel="precomputed", C_max=10.0).fit(K, y)
    test = moons[0][:50] + 0.1
    K_test = np.exp(-0.5 * ((test[:, None] - moons[0]) ** 2).sum(-1))
    before = model.decision_function(test, C=1.0), of_kernel.decision_function(K_test, C=1.0)
    gaps = model.path_.certificate_at(1.0).relative_gap, of_kernel.path_.certificate_at(1.0).relative_gap
    score = model.at(1.0).score(moons[0], moons[1])
    X[:], y[:], K[:] = 0.0, 0, 0.0
    np.testing.assert_array_equal(model.decision_function(test, C=1.0), before[0])
    np.testing.assert_array_equal(of_kernel.decision_function(K_test, C=1.0), before[1])
    assert (model.path_.certificate_at(1.0).relative_gap, of_kernel.path_.certificate_at(1.0).relative_gap) == gaps
    assert model.at(1.0).score(moons[0], moons[1]) == score
    assert of_kernel.at(1.0).shape_fit_ == (200, 200)


# Kernels of every size, and weights.


def test_a_kernel_in_single_precision(moons):
    X, y = moons
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    exact = svm_path(K, y, kernel="precomputed", C_max=10.0)
    noise = 1e-7 * np.random.default_rng(0).standard_normal(K.shape)  # no more symmetric than products in float32 are
    for form in (K.astype(np.float32), (K + noise).astype(np.float32)):
        path = svm_path(form, y, kernel="precomputed", C_max=10.0)
        assert path.largest_gap_ <= 1e-9
        np.testing.assert_allclose(path.certificate_at(1.0).dual, exact.certificate_at(1.0).dual, rtol=1e-4)
        assert SVCPath(kernel="precomputed", C_max=10.0).fit(form, y).largest_gap_ <= 1e-9
    with pytest.raises(ValueError, match="symmetric"):
        svm_path(K + noise, y, kernel="precomputed")


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-20, 1e-3])
def test_kernels_of_any_size(moons, scale):
    X, y = moons
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    path = svm_path(K * scale, y, kernel="precomputed", C_max=1e3)
    assert path.status == "complete"
    assert np.isfinite(path.coefficients_at(path.C)).all()
    assert path.certificate_at(1.0).relative_gap <= 1e-9


@pytest.mark.parametrize("scale", [1e-150, 1e20, *(pytest.param(s, marks=pytest.mark.long) for s in (1e-20, 1e150))])
def test_the_unit_of_a_kernel_matrix_does_not_matter(moons, scale):
    X, y = moons
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    path = svm_path(K * scale, y, kernel="precomputed", C_min=1e-4 / scale, C_max=1e2 / scale)
    assert path.status == "complete"
    assert path.largest_gap_ <= 1e-9
    assert path.worst_certificate().relative_gap <= 1e-9


def test_kernels_too_large_for_float64_are_refused(moons):
    X, y = moons
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    for fit in (lambda: svm_path(K * 1e300, y, kernel="precomputed"), SVCPath(kernel="precomputed").fit):
        with pytest.raises(ValueError, match=r"too large for float64.*Divide the kernel"):
            fit(K * 1e300, y) if fit.__name__ == "fit" else fit()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_of_very_different_size(moons, kernel):
    X, y = moons
    weight = 10.0 ** np.random.default_rng(0).uniform(-6, 6, y.size)
    path = svm_path(X, y, kernel=kernel, sample_weight=weight, C_min=1e-12, C_max=1e-5)
    assert (path.status, path.n_backups) == ("complete", 0)
    assert path.largest_gap_ <= 1e-9


# The score of every C.


def test_score_curve_counts_weights(moons):
    X, y = moons
    model = SVCPath(C_max=100.0).fit(X[:100], y[:100])
    weight = np.random.default_rng(0).uniform(0.1, 10.0, 100)
    curve = model.score_curve(X[100:], y[100:], sample_weight=weight)
    for C in 10 ** np.random.default_rng(1).uniform(-4, 2, 50):
        right = model.predict(X[100:], C=C) == y[100:]
        assert curve(C) == pytest.approx(np.average(right, weights=weight))
    assert not np.allclose(curve.best_score, model.score_curve(X[100:], y[100:]).best_score, atol=1e-6)


def test_options_of_the_lp_engine_promise_what_they_check():
    assert LP(epsilon_kkt=1e-4).violation == 1e-4
    assert LP(check_kkt=False).violation == np.inf


def test_a_backup_that_goes_far_records_which_points_changed_sets(moons, monkeypatch):
    monkeypatch.setattr(single_module, "BACKUP_STEP", 0.2)
    engine = svm_path(*moons, max_events=50).engine
    before, engine._degenerate_steps, lam = engine.status.copy(), 10**9, engine.lam
    engine.take_transitions()
    monkeypatch.setattr(single_module, "NEARER", ())
    with pytest.warns(RuntimeWarning, match="solved anew"):
        at_once, behind = engine.steps(1e-3, 1)
    changed = np.flatnonzero(before != engine.status)
    assert changed.size > 0
    assert sorted(t.point for t in at_once.transitions) == changed.tolist()
    assert (at_once.lam, behind.transitions) == (lam, [])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("pieces", [*(pytest.param(k, marks=pytest.mark.long) for k in (1, 3)), 8])
def test_a_path_that_is_stored_and_gone_on_with_in_pieces_has_the_same_events(kernel, pieces, tmp_path):
    """At a breakpoint a point is on the boundary of its set: the coefficients alone do not tell that it has changed sides."""
    X, y = make_moons(30, noise=0.3, random_state=0)
    whole = svm_path(X, y, kernel=kernel, C_max=100.0)
    path = svm_path(X, y, kernel=kernel, C_max=100.0, max_events=pieces)
    for _ in range(whole.n_events):
        if path.status == "complete":
            break
        path.save(tmp_path / "p")
        path = svm_path(X, y, kernel=kernel, C_max=100.0, max_events=pieces, resume=Path.load(tmp_path / "p"))
    assert path.status == "complete"
    assert abs(path.n_events - whole.n_events) <= 4  # ties at the beginning may fall in another order
    np.testing.assert_array_equal(path.sets_at(None), whole.sets_at(None))
    assert path.largest_gap_ <= 1e-7


def test_ctrl_c_in_the_final_check_keeps_the_path(moons, monkeypatch):
    def pressed(path):
        press()
        limits.check()
        raise AssertionError("the check has not ended")

    monkeypatch.setattr(exactness, "_warn_if_rough", pressed)
    path = svm_path(*moons, C_max=100.0)
    assert path.status == "complete"
    assert path.largest_gap_ <= 1e-9


def test_a_path_of_shifted_points_is_gone_on_with(moons):
    """Their linear kernel has an origin of its own, which is compared with that of the path."""
    X, y = moons
    path = svm_path(X + 1e4, y, kernel="linear", C_max=10.0, max_events=5)
    assert path.gram.kernel.centre is not None
    svm_path(X + 1e4, y, kernel="linear", C_max=10.0, resume=path)
    assert path.status == "complete"


def test_a_path_that_was_ended_early_says_how_to_go_on(moons):
    path = svm_path(*moons, C_max=100.0, max_events=20)
    with pytest.raises(ValueError, match=r"ended early \(max_events\): go on with svm_path\(\.\.\., resume=path\)"):
        path.coefficients_at(50.0)
    with pytest.raises(ValueError, match="Follow it over a wider range"):
        path.coefficients_at(1e-9)


@pytest.mark.parametrize("other", ["path.npz", SVCPath()])
def test_only_a_path_can_be_resumed(moons, other):
    with pytest.raises(TypeError, match=r"resume= takes the Path .* got (str|SVCPath)"):
        svm_path(*moons, resume=other)


def test_labels_the_other_way_round_are_not_blamed_on_x(moons):
    X, y = np.vstack([moons[0], moons[0][:3]]), np.concatenate([moons[1], moons[1][:3]])
    path = svm_path(X, y, max_events=20)
    with pytest.raises(ValueError, match="y is not what"):
        svm_path(X, 1 - y, resume=path)


def test_a_path_is_loaded_with_its_own_kernel_matrix_only(moons, tmp_path):
    X, y = moons
    svm_path(X, y, gamma=1.0, C_max=10.0).save(tmp_path / "path")
    rows = Path.load(tmp_path / "path").points.rows
    loaded = Path.load(tmp_path / "path", gram=Gram(X[rows], gamma=1.0))
    assert loaded.certificate_at(1.0).relative_gap <= 1e-9
    for wrong in (Gram(X[rows], gamma=2.0), Gram(X[rows][::-1], gamma=1.0)):
        with pytest.raises(ValueError, match="With this gram the path is not optimal"):
            Path.load(tmp_path / "path", gram=wrong)
    for wrong in (Gram(X[:7], gamma=1.0), X):
        with pytest.raises(ValueError, match=r"gram must be the Gram of the \d+ distinct points"):
            Path.load(tmp_path / "path", gram=wrong)


def test_warnings_point_to_the_line_that_called(moons, monkeypatch):
    monkeypatch.setattr(exactness, "_promised", lambda *_: -1.0)
    for call in (lambda: svm_path(*moons, C_max=0.1), lambda: SVCPath(C_max=0.1).fit(*moons)):
        with pytest.warns(RuntimeWarning, match="not exact") as told:
            call()
        assert {warning.filename for warning in told} == {__file__}


def test_where_pairs_do_not_reach_the_start_exchanges_go_on(moons, monkeypatch):
    X, y = moons
    gram, y, w = Gram(X), 2.0 * y - 1.0, np.ones(len(y))
    monkeypatch.setattr(engine_module, "PAIRS_PER_POINT", 1)
    found = engine_module.optimum(gram, Family.hinge(y, w), 0.1, PlainGap(1e-9), None)
    assert (found.status, str(found.solver)) == (Status.CONVERGED, "simple-svm")
    monkeypatch.undo()
    assert str(engine_module.optimum(gram, Family.hinge(y, w), 0.1, PlainGap(1e-9), None).solver) == "smo"


def test_a_path_cut_before_its_first_segment_was_proved_goes_on(monkeypatch):
    """That one and the next may be one line; but what was sealed stays, and is not joined with it."""
    X, y = make_moons(40, noise=0.3, random_state=0)
    prove = Path.prove

    def cut(self, least=1):
        raise limits.Exceeded

    monkeypatch.setattr(Path, "prove", cut)
    part = svm_path(X, y, C_min=1e-6, C_max=10.0, max_events=0)
    assert (part.status, part.n_unproved) == ("max_time", 1)
    monkeypatch.setattr(Path, "prove", prove)
    path, whole = svm_path(X, y, C_max=10.0, resume=part), svm_path(X, y, C_min=1e-6, C_max=10.0)
    assert set(whole.C) <= set(path.C)
    assert path.largest_gap_ <= 1e-9
    np.testing.assert_array_equal(path.coefficients_at(5.0), whole.coefficients_at(5.0))
