"""Machines on a Dask cluster: what dies, is lost or ended on the way of a fit, and what it goes on from."""

import asyncio
import gc
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from clusters import PARTS, SPEC, check_same, client, distributed, environment, parted, points  # noqa: F401
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import zerogap
import zerogap.dask as zd
from zerogap import Status
from zerogap.dask import cluster, machine, partition
from zerogap.dask.block import Block, load
from zerogap.dask.checkpoint import Checkpoint
from zerogap.dask.rounds import Rounds
from zerogap.dask.table import Table


def test_a_lost_state_costs_one_product_and_not_the_run(monkeypatch):
    """A block comes without its states after a fault: they are made again from the coefficients."""
    X, y, _ = points()
    expected = zerogap.SVC(tol=1e-10).fit(X, y)
    made, lost = partition.Renewal.make, []
    asked = partition.ask

    def forgetful(block, question, renewal=None):
        if isinstance(question, partition.Advance) and block.number == 1 and question.version == 3 and not lost:
            lost.append(1)
            block.states = pickle.loads(pickle.dumps(block)).states
        return asked(block, question, renewal)

    renewed = []
    monkeypatch.setattr(partition, "ask", forgetful)
    monkeypatch.setattr(
        partition.Renewal, "make", lambda self, block: (renewed.append(block.number), made(self, block))
    )
    model = zd.SVC(tol=1e-10, working_set=40).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    assert lost
    assert sorted(renewed) == [0, 1, 1]  # at the beginning each, and the one that was lost
    check_same(model, expected)


DRAWN = """
import os, signal, sys, threading, time
import numpy as np
import dask
import dask.array as da
from dask.distributed import Client, LocalCluster
import zerogap, zerogap.dask
from zerogap.dask.rounds import Rounds

dask.config.set({"distributed.deploy.lost-worker-timeout": "120s"})  # a busy machine takes longer to start one than 15
rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 4))
y = (X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.3 * rng.standard_normal(3000) > 0.2).astype(int)
parts = da.from_array(X, chunks=(500, 4)), da.from_array(y, chunks=500)
"""

KILLED_WORKER = (
    DRAWN
    + """
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        followed = Rounds._next
        def kill(self, *arguments):
            if len(self.rounds) == 2:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)  # in the middle of the next
            return followed(self, *arguments)
        Rounds._next = kill
        model = zerogap.dask.SVC(tol=1e-8, working_set=300).fit(*parts)
    expected = zerogap.SVC(tol=1e-9).fit(X, y)
    print(model.status_.name, len(model.rounds_), abs(model.certificate_.dual / expected.certificate_.dual - 1) < 1e-7)
"""
)


@pytest.mark.long
def test_a_worker_killed_in_the_middle_of_a_fit_does_not_end_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(KILLED_WORKER)
    done = subprocess.run([sys.executable, program], env=environment(), capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[::2] == ["CONVERGED", "True"], done.stderr
    assert int(done.stdout.split()[1]) > 3


ALL_KILLED = (
    DRAWN
    + """
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        replied, pids = zerogap.dask.cluster.Cluster._reply, list(client.run(os.getpid).values())
        def kill(self, future):
            while Rounds.reached and future.status == "finished" and pids:  # answers are there, and nobody has fetched them
                os.kill(pids.pop(), signal.SIGKILL)
            return replied(self, future)
        followed = Rounds._next
        def reach(self, *arguments):
            Rounds.reached = len(self.rounds) >= 2
            return followed(self, *arguments)
        Rounds.reached = False
        zerogap.dask.cluster.Cluster._reply, Rounds._next = kill, reach
        model = zerogap.dask.SVC(tol=1e-8, working_set=300, max_time=200).fit(*parts)
    expected = zerogap.SVC(tol=1e-9).fit(X, y)
    print(model.status_.name, not pids, abs(model.certificate_.dual / expected.certificate_.dual - 1) < 1e-7)
"""
)


@pytest.mark.long
def test_all_workers_killed_with_their_answers_do_not_hold_a_fit(tmp_path):
    """New ones take over; the tasks that had answered were for those that are gone alone."""
    program = tmp_path / "program.py"
    program.write_text(ALL_KILLED)
    done = subprocess.run([sys.executable, program], env=environment(), capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["CONVERGED", "True", "True"], done.stderr


LOST_SCHEDULER = (
    DRAWN
    + """
if __name__ == "__main__":
    from distributed.scheduler import Scheduler
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    client = Client(cluster)
    followed = Rounds._next
    def lose(self, *arguments):
        if len(self.rounds) == 2:
            began.append(time.perf_counter())
            if sys.argv[1] == "dead":
                cluster.sync(cluster.scheduler.close)
            else:  # it answers nobody any more
                Scheduler.get_ncores = cluster.scheduler.handlers["ncores"] = hang
                cluster.scheduler.stream_handlers["client-releases-keys"] = lambda **_: None
                cluster.scheduler.update_graph = cluster.scheduler.stream_handlers["update-graph"] = hang
        return followed(self, *arguments)
    async def hang(*_, **__):
        await __import__("asyncio").sleep(3600)
    began = []
    Rounds._next = lose
    zerogap.dask.cluster.WAIT_FOR_SCHEDULER = 60.0 if sys.argv[1] == "dead" else 3.0
    try:
        zerogap.dask.SVC(tol=1e-8, working_set=300).fit(*parts)
    except RuntimeError as error:
        print(error, flush=True)
    print(time.perf_counter() - began[0] < 60, flush=True)
    os._exit(0)
"""
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "words"),
    [("dead", "has ended or was restarted|is not there any more"), ("silent", "has not answered for 3 sec")],
)
def test_a_lost_scheduler_ends_a_fit_with_a_clear_line(how, words, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LOST_SCHEDULER)
    command = [sys.executable, program, how]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    said, is_soon = done.stdout.strip().splitlines()
    assert re.search(words, said), done.stderr
    assert "with checkpoint= it goes on" in said
    assert is_soon == "True"


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch):
    async def hang(**_):
        await asyncio.sleep(3600)

    async def refuse(**_):
        raise distributed.comm.CommClosedError("closed")

    monkeypatch.setattr(cluster, "WAIT_FOR_SCHEDULER", 0.1)
    own = distributed.default_client()
    loop = type("Client", (), {"loop": own.loop})()
    for answer, words in ((hang, "has not answered for 0.1 seconds"), (refuse, "is not there any more")):
        loop.scheduler = type("Scheduler", (), {"ncores": staticmethod(answer), "address": "tcp://there"})
        with pytest.raises(
            RuntimeError, match=f"The Dask scheduler at tcp://there {words}.*with checkpoint= it goes on"
        ):
            cluster.workers_of(loop)


def test_nothing_is_left_on_the_cluster_and_a_fit_in_a_task_ends():
    """A task that waits for others gives them its place: both workers have one, and are in such a task."""
    own = distributed.default_client()
    X, y, _ = points()

    def fit(X, y):
        return zd.SVC(tol=1e-2).fit(X, y).duality_gap_

    tasks = [own.submit(fit, X, y, pure=False) for _ in range(2)]
    assert max(task.result(timeout=60) for task in tasks) <= 1e-2
    del tasks
    gc.disable()
    try:
        with pytest.raises(ValueError, match="at least two classes") as error:
            zd.SVC().fit(parted(X, PARTS[2]), parted(np.zeros(150), PARTS[2]))
        began = time.perf_counter()
        while (left := list(own.cluster.scheduler.tasks)) and time.perf_counter() - began < 5.0:
            time.sleep(0.02)
    finally:
        gc.enable()
    assert error.traceback
    assert not left


def test_settings_of_dask_are_as_they_were_after_two_fits_at_once():
    import dask

    name = "distributed.admin.large-graph-warning-threshold"
    before = dask.config.get(name, None)
    one, other = cluster.quietly(), cluster.quietly()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert dask.config.get(name, None) != before
    other.__exit__(None, None, None)
    assert dask.config.get(name, None) == before


def test_limits_hold_while_an_answer_does_not_come(monkeypatch):
    """Its worker has died, as it may be, and Dask waits for it."""
    X, y, _ = points()
    rounds, gathered = Rounds._next, distributed.Client._gather

    def hold(self, *arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return asyncio.sleep(3600)

    def lose(self, *arguments):
        if len(self.rounds) == 2:
            monkeypatch.setattr(distributed.Client, "_gather", hold)
        return rounds(self, *arguments)

    monkeypatch.setattr(Rounds, "_next", lose)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = zd.SVC(tol=1e-10, working_set=30).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    assert distributed.Client._gather is not gathered
    assert len(model.rounds_) == 2
    assert 1e-10 < model.duality_gap_ < 1.0


RESUMED = (
    DRAWN
    + """
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        followed = Rounds._next
        def slow(self, *arguments):
            print(len(self.rounds), flush=True)
            if sys.argv[2] == "slow" and len(self.rounds) == 4:
                time.sleep(600)  # until it is killed
            return followed(self, *arguments)
        Rounds._next = slow
        model = zerogap.dask.SVC(tol=1e-8, working_set=300, checkpoint=sys.argv[1]).fit(*parts)
    print(model.status_.name, model.certificate_.dual, flush=True)
"""
)


@pytest.mark.long
def test_a_killed_client_goes_on_from_its_checkpoint(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RESUMED)
    command = [sys.executable, str(program), str(tmp_path / "fit")]
    with subprocess.Popen([*command, "slow"], env=environment(), stdout=subprocess.PIPE, text=True) as first:
        while first.stdout.readline().strip() != "4":
            assert first.poll() is None
        first.kill()
    assert (tmp_path / "fit.npz").exists()
    done = subprocess.run([*command, "quick"], env=environment(), capture_output=True, text=True, timeout=300)
    *rounds, last = done.stdout.strip().splitlines()
    status, dual = last.split()
    assert status == "CONVERGED", done.stderr
    whole = zd.SVC(tol=1e-8, working_set=300)
    scope = {}
    exec(DRAWN, scope)
    whole.fit(*scope["parts"])
    assert float(dual) == pytest.approx(whole.certificate_.dual, rel=1e-7)
    assert len(rounds) < len(whole.rounds_)
    assert not (tmp_path / "fit.npz").exists()


@pytest.mark.long
@pytest.mark.parametrize("comes_back", [True, False])
def test_all_workers_are_lost(comes_back, monkeypatch):
    """Another one takes over; where none comes that is said."""
    X, y, _ = points()
    monkeypatch.setattr(cluster, "WAIT_FOR_OTHERS", 10.0 if comes_back else 0.5)
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=1, **options) as alone,
        distributed.Client(alone, set_as_default=False) as other,
    ):
        rounds = Rounds._next

        def lose(self, *arguments):
            if len(self.rounds) == 2:
                alone.scale(0)
                while other.nthreads():
                    time.sleep(0.01)
                alone.scale(int(comes_back))
            return rounds(self, *arguments)

        monkeypatch.setattr(Rounds, "_next", lose)
        model = zd.SVC(tol=1e-10, working_set=40, client=other)
        if comes_back:
            check_same(model.fit(parted(X, PARTS[2]), parted(y, PARTS[2])), zerogap.SVC(tol=1e-10).fit(X, y))
        else:
            with pytest.raises(RuntimeError, match="All workers of the Dask cluster were lost"):
                model.fit(parted(X, PARTS[2]), parted(y, PARTS[2]))


def test_a_fit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, y, _ = points()
    file, rounds = tmp_path / "fit", Rounds._next

    def end(self, *arguments):
        if len(self.rounds) == 2:
            raise ZeroDivisionError
        return rounds(self, *arguments)

    model = zd.SVC(tol=1e-10, working_set=50, checkpoint=file)
    with monkeypatch.context() as patch:
        patch.setattr(Rounds, "_next", end)
        with pytest.raises(ZeroDivisionError):
            model.fit(parted(X, (75, 75)), parted(y, (75, 75)))
    assert not hasattr(model, "support_")
    with pytest.raises(ValueError, match=r"is of another fit: C was 1.0 there, and is 2.0 now"):
        clone(model).set_params(C=2.0).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    other = X.copy()
    other[70, 1] += 1e-9
    with pytest.raises(ValueError, match="is of another fit: data was"):
        clone(model).set_params().fit(parted(other, PARTS[2]), parted(y, PARTS[2]))
    model.fit(parted(X, PARTS[2]), parted(y, PARTS[2]))  # in other partitions
    assert model.trace_[0].support > 20
    check_same(model, zerogap.SVC(tol=1e-10).fit(X, y))
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_checkpoint_is_refused_before_data_is_read(tmp_path):
    X, y, _ = points()
    file = tmp_path / "fit.npz"
    model = zd.SVC(checkpoint=file, client="none is asked for")
    good = Checkpoint(file, {})
    good.write(0, np.array([1, 2]), np.ones(2))
    whole = file.read_bytes()
    arrays = dict(np.load(file))
    for content, words in ((whole[: len(whole) // 2], "damaged"), (b"text", "holds no arrays"), (b"", "damaged")):
        file.write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"no checkpoint to go on from: .*{words}.* Delete the file, or name another"
        ):
            model.fit(X, y)
    np.savez(file, **{name: value for name, value in arrays.items() if name != "beta0"})
    with pytest.raises(ValueError, match="lacks beta0"):
        model.fit(X, y)
    np.savez(file, **{**arrays, "beta0": np.ones(3)})
    with pytest.raises(ValueError, match="not one coefficient for each row"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="checkpoint must be the name of a file; got 3 of type int"):
        model.set_params(checkpoint=3).fit(X, y)


def test_a_folder_that_cannot_be_written_to_is_refused_and_a_full_disk_is_told_once(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda *_: False)
        with pytest.raises(PermissionError, match=r"cannot be written to. Name another folder"):
            zd.SVC(checkpoint=tmp_path / "fit", client="none is asked for").fit(*points()[:2])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zerogap.storage.write_arrays", full)
    saved, table = Checkpoint(tmp_path / "fit", {}), Table.empty(2, is_sparse=False)
    with pytest.warns(RuntimeWarning, match=r"cannot be written \(No space left on device\). The fit goes on"):
        machine._keep(saved, 0, table)
    machine._keep(saved, 0, table)  # a warning would be an error


def test_warm_start_goes_on_and_limits_keep_the_best_point():
    X, y, _ = points()
    model = zd.SVC(tol=1e-8, working_set=50, max_iter=2, warm_start=True)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 steps .* fit again with warm_start=True"):
        model.fit(X, y)
    assert model.status_ is Status.MAX_STEPS
    before = model.duality_gap_
    assert zerogap.certify(model.to_local(), X, y).relative_gap == pytest.approx(before, rel=1e-6)
    model.set_params(max_iter=-1).fit(X, y)
    assert model.duality_gap_ <= 1e-8 < before
    assert model.trace_[0].gap <= before * (1 + 1e-6)
    with pytest.warns(ConvergenceWarning, match="max_time=1e-09"):
        model.set_params(max_time=1e-9, warm_start=False).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.predict(X).shape == y.shape


@pytest.mark.long
def test_a_warm_start_leaves_rows_of_another_class():
    X, y, _ = points(3)
    other = np.random.default_rng(0).permutation(y)
    model = zd.SVC(tol=1e-8, working_set=60, warm_start=True, C=0.5).fit(X, y).set_params(C=1.0).fit(X, other)
    expected = zerogap.SVC(tol=1e-8).fit(X, other)
    assert [one.dual for one in model.certificate_] == pytest.approx(
        [one.dual for one in expected.certificate_], rel=1e-7
    )


def test_ctrl_c_returns_the_best_point(monkeypatch):
    X, y, _ = points()
    rounds = Rounds._next

    def press(self, *arguments):
        if len(self.rounds) == 2:
            signal.raise_signal(signal.SIGINT)
        return rounds(self, *arguments)

    monkeypatch.setattr(Rounds, "_next", press)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = zd.SVC(tol=1e-10, working_set=30).fit(parted(X, PARTS[2]), parted(y, PARTS[2]))
    assert model.status_ is Status.INTERRUPTED
    assert 1e-10 < model.duality_gap_ < 1.0
    assert zerogap.certify(model.to_local(), X, y).relative_gap == pytest.approx(model.duality_gap_, rel=1e-6)


def test_a_change_is_made_once_and_only_to_the_state_before_it():
    """An answer may be lost on its way, and be asked for again; a state may be older than the coordinator thinks."""
    block = load(np.arange(6.0).reshape(3, 2), np.array([0, 1, 1]), None, 0, True)
    none, change = (
        np.empty(0, dtype=int),
        (np.ones((1, 2)), np.ones(1), np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.ones(1)),
    )
    partition.Renewal(SPEC, 1, partition.Coefficients(np.empty((0, 2)), np.empty(0), none, none, np.empty(0))).make(
        block
    )
    question = partition.Advance(SPEC, 2, 2, np.empty(0), partition.Coefficients(*change))
    assert isinstance(partition.ask(block, replace(question, version=3)), partition.Missing)
    first = partition.ask(block, question)
    r = block.states[SPEC.key].r.copy()
    assert partition.ask(block, question)[:3] == first[:3]
    assert (block.states[SPEC.key].r == r).all()
    assert r[0] == pytest.approx(-1.0 - np.exp(-0.5 * 1.0))  # t - k(x, z), x = (0, 1), z = (1, 1)


def test_a_change_is_made_once_by_two_threads(monkeypatch):
    block = load(np.arange(6.0).reshape(3, 2), np.array([0, 1, 1]), None, 0, True)
    none, first = np.empty(0, dtype=int), np.zeros(1, dtype=int)
    partition.Renewal(SPEC, 1, partition.Coefficients(np.empty((0, 2)), np.empty(0), none, none, np.empty(0))).make(
        block
    )
    change = partition.Coefficients(np.ones((1, 2)), np.ones(1), first, first, np.ones(1))
    question, product = partition.Advance(SPEC, 2, 2, np.empty(0), change), partition.State.product

    def slow(self, change):
        time.sleep(0.05)
        return product(self, change)

    monkeypatch.setattr(partition.State, "product", slow)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(partition.ask(block, question))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(answer) for answer in answers] == [partition.Standing] * 2
    assert block.states[SPEC.key].r[0] == pytest.approx(-1.0 - np.exp(-0.5))


def test_a_block_is_moved_without_its_states():
    block = load(np.ones((3, 2)), np.array([0, 1, 1]), None, 4, True)
    before = sys.getsizeof(block)
    partition.Renewal(SPEC, 1, partition.Coefficients(np.empty((0, 2)), *(np.empty(0),) * 4)).make(block)
    assert sys.getsizeof(block) > before
    moved = pickle.loads(pickle.dumps(block))
    assert isinstance(moved, Block)
    assert moved.number == 4
    assert not moved.states
    assert block.states
    assert isinstance(partition.ask(moved, partition.Slope(SPEC, 1, np.zeros(1))), partition.Missing)
