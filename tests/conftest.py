"""Seeded problems that many tests share, and how the suite runs: the same examples everywhere, side by side."""

import contextlib
import gc
import importlib
import os
import signal
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import zerogap  # its names are loaded when they are used: the process that hands out the tests does without them

# Drawn examples are the same on every machine and at every run; ``--hypothesis-profile campaign`` draws others each time.
settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.register_profile("campaign", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("suite")

# Two processes that begin at once are not to compile the same functions.  The one that begins with the first of the suite
# compiles the path's, and with them SMO; the one that begins at its middle compiles solvers that the path does not need.
FIRST = (
    "test_path",
    "test_path_events",
    "test_path_guards",
    "test_path_limits",
    "test_path_proof",
    "test_cli",
    "test_leave_one_out",
)
FIRST += ("test_incremental", "test_several_classes", "test_incremental_regression")
FIRST += ("test_simple_svm", "test_path_engines", "test_solution_set", "test_path_families", "test_several_paths")
FIRST += ("test_svr_path", "test_svr_path_estimator", "test_error_curve", "test_scoring", "test_pipelines")
FIRST += ("test_nu_svc", "test_nu_svr", "test_one_class", "test_one_class_path", "test_polished_copies")
FIRST += ("test_refusals", "test_notebook", "test_ownership")
MIDDLE = tuple(  # of test_limits_in_solvers
    f"{name}-roomy-soon" for name in ("rosen", "gradient-ascent", "smo-keerthi", "smo-platt")
)
LAST = (
    "test_docstrings",
    "test_kernel_objects",
    "test_model_storage",
    "test_comparison",
    "test_conformance",
    "test_gradient_ascent",
    "test_solve",
    "test_rosen",
    "test_properties",
    "test_package",
)


SEEN = pytest.StashKey[Counter]()  # cases of each test of a file so far


def pytest_configure(config):
    """Give each of the processes that run tests side by side one BLAS thread; they are started after this."""
    if getattr(config.option, "numprocesses", None):
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
    gc.set_threshold(20_000, 20, 20)  # looking for cycles takes a tenth of what compilation takes, and finds little
    # A shell starts what runs in the background with Ctrl-C ignored, and children inherit that: tests that press it would wait.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session):
    """Read the files from the last to the first in the second process: each finds on disk what the other has rewritten."""
    config = session.config
    if getattr(config, "workerinput", {}).get("workerid") == "gw1" and config.args == config.getini("testpaths"):
        for file in sorted(Path(__file__).parent.glob("test_*.py"), reverse=True):
            with contextlib.suppress(Exception, pytest.skip.Exception):  # collection tells
                importlib.import_module(file.stem)


@pytest.hookimpl(tryfirst=True)  # before those that are not asked for go
def pytest_itemcollected(item):
    """Leave to the long form all but every k-th case of a test that is marked ``thin(k)``."""
    if (mark := item.get_closest_marker("thin")) is None:
        return
    seen = item.parent.stash.setdefault(SEEN, Counter())
    if seen[item.originalname] % mark.args[0]:
        item.add_marker(pytest.mark.long)
    seen[item.originalname] += 1


def left_out(cases):
    """Return the cases of a test but for some that together hold every value of every parameter; few of them, greedily."""
    held = [{(name, id(value)) for name, value in case.callspec.params.items()} for case in cases]
    missing, others, uses = set().union(*held), set(range(len(cases))), Counter()
    while missing:  # what is new first, then what is rare
        best = max(others, key=lambda k: (len(missing & held[k]), -sum(uses[value] for value in held[k]), -k))
        others.remove(best)
        missing -= held[best]
        uses.update(held[best])
    return [cases[k] for k in others]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Leave to the long form what ``covering`` can do without; when those that are not asked for are gone, order the rest."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("covering") and not item.get_closest_marker("long"):
            cases[item.parent, item.originalname].append(item)
    for several in cases.values():
        for item in left_out(several):
            item.add_marker(pytest.mark.long)
    yield
    in_order(items)


def in_order(items):
    """Order the files; of two processes the second begins at the middle."""
    rank = {name: k - len(FIRST) for k, name in enumerate(FIRST)} | {name: k + 1 for k, name in enumerate(LAST)}
    names = [f"test_a_step_ends_soon_after_its_limit[{name}]" for name in MIDDLE]
    middle = sorted((item for item in items if item.name in names), key=lambda item: names.index(item.name))
    others = sorted((item for item in items if item.name not in names), key=lambda item: rank.get(item.path.stem, 0))
    half = len(items) // 2
    items[:] = others[:half] + middle + others[half:]


@pytest.fixture(autouse=True)
def _ctrl_c_is_of_one_test():
    """Ctrl-C that ended the last fit of a test does not concern the first of the next, nor what a module prepares for it."""
    from zerogap import limits

    limits.heard()
    yield
    limits.heard()


FORMULATIONS = {
    "hinge": lambda g, y, t, **o: zerogap.DualProblem.hinge(g, y, 2.0, **o),
    "hinge-large-C": lambda g, y, t, **o: zerogap.DualProblem.hinge(g, y, 1000.0, **o),
    "hard-margin": lambda g, y, t, **o: zerogap.DualProblem.hard_margin(g, y, **o),
    "squared-hinge": lambda g, y, t, **o: zerogap.DualProblem.squared_hinge(g, y, 3.0, **o),
    "insensitive": lambda g, y, t, **o: zerogap.DualProblem.epsilon_insensitive(g, t, 1.5, 0.1, **o),
    "absolute": lambda g, y, t, **o: zerogap.DualProblem.epsilon_insensitive(g, t, 1.5, 0.0, **o),
    "squared-insensitive": lambda g, y, t, **o: zerogap.DualProblem.squared_epsilon_insensitive(g, t, 5.0, 0.1, **o),
}

SOLVERS = ("smo", "smo-mvp", "smo-keerthi", "smo-platt")


def points(kind: str):
    """Seeded data, easy and awkward: (X, labels, targets); an rbf kernel separates the classes unless points conflict."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 3))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0)
    t = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(40)
    if kind == "duplicates":
        X, y, t = np.repeat(X[:20], 2, axis=0), np.repeat(y[:20], 2), np.repeat(t[:20], 2)
    elif kind == "two-points":
        X, y, t = X[:2], np.array([1.0, -1.0]), t[:2]
    elif kind == "one-against-many":
        X, t = X[:15], t[:15]
        y = np.where(np.arange(15) == 4, 1.0, -1.0)
    elif kind == "constant-feature":
        X = np.column_stack([X[:, 0], np.full(40, 5.0)])
        y = np.where(X[:, 0] > 0.2, 1.0, -1.0)
    elif kind == "huge":
        X = X * 1e6
    elif kind == "tiny":
        X = X * 1e-6
    return X, y, t


KINDS = ("plain", "duplicates", "two-points", "one-against-many", "constant-feature", "huge", "tiny")


@pytest.fixture(autouse=True)
def _commands_compile_in_silence(request):
    """What a command says does not depend on whether its functions were compiled before, by other tests or yesterday."""
    if not request.path.stem.startswith("test_cli") or "tells_of_compilation" in request.node.name:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zerogap.cli.solving.telling_of_compilation", lambda report: contextlib.nullcontext())
        yield


@pytest.fixture(params=KINDS)
def data(request):
    return points(request.param)


@pytest.fixture(params=FORMULATIONS)
def formulation(request):
    return FORMULATIONS[request.param]


@pytest.fixture(params=[True, False], ids=["bias", "no-bias"])
def fit_intercept(request):
    return request.param


@pytest.fixture
def problem(data, formulation, fit_intercept):
    X, y, t = data
    return formulation(zerogap.Gram(X), y, t, fit_intercept=fit_intercept)


@pytest.fixture
def plain():
    return points("plain")


@pytest.fixture
def one_by_one(monkeypatch):
    """Let engine "single" make every event by a step of its own, and none in the compiled loop."""
    monkeypatch.setattr("zerogap.path.single.SingleEngine._pass_ordinary", lambda self, lam_end, max_events: None)
