"""A limit at every point where it is asked about: the run that is resumed ends where the uninterrupted one does."""

import copy

import numpy as np
import pytest
from test_solve import moons

from zerogap import SVC, DualProblem, Gram, RelativeGap, Status, limits, solve
from zerogap.active_set import ActiveSet
from zerogap.limits import Limit
from zerogap.solvers import Chunking, Decomposition, SimpleSVM, auto, compiled_loops, get_solver

TOL = 1e-6


class Clock:
    """A limit that is over from a question on; ``strictly`` every computation of kernel values asks first."""

    def __init__(self, patch, strictly=False):
        self.after, self.asked = None, 0
        patch.setattr(Limit, "is_over", property(lambda limit: self.is_over()))
        for name in ("_compute", "_block", "product", "multiply") if strictly else ():
            patch.setattr(Gram, name, asking(getattr(Gram, name)))

    def is_over(self):
        self.asked += 1
        return self.after is not None and self.asked > self.after

    def solve(self, after, *arguments, **options):
        """Solve under a limit that is over after so many questions; None is no limit."""
        self.after, self.asked = after, 0
        try:
            return solve(*arguments, stop=RelativeGap(TOL), max_steps=20_000, **options)
        finally:
            self.after = None


def asking(method):
    def asks_first(*arguments, **options):
        limits.check()
        return method(*arguments, **options)

    return asks_first


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """On some ten points a piece of work between two questions is to be as small as it is on many thousand."""
    monkeypatch.setattr(compiled_loops, "VALUES_PER_QUESTION", 100)
    monkeypatch.setattr(compiled_loops, "pairs_per_question", lambda n: 5)
    monkeypatch.setattr("zerogap.solvers.rosen.WORK_PER_CALL", 300)


def separable(n):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) < n // 2, -1.0, 1.0)
    return rng.normal(size=(n, 3)) + 3.0 * y[:, None], y


def problem_of(kind, n, cache_size):
    X, y = moons(n)
    gram, bias = Gram(X, gamma=2.0, cache_size=cache_size), not kind.endswith("fixed")
    if kind == "hard":
        points, signs = separable(n)
        return DualProblem.hard_margin(Gram(points, "linear", cache_size=cache_size), signs)
    if kind.startswith("linear"):
        return DualProblem.hinge(Gram(X, "linear", cache_size=cache_size), y, 10.0, fit_intercept=bias)
    if kind.startswith("squared"):
        return DualProblem.squared_hinge(gram, y, 10.0, fit_intercept=bias)
    if kind.startswith("tube"):
        return DualProblem.epsilon_insensitive(gram, X[:, 0] + 0.1 * y, 10.0, 0.1, fit_intercept=bias)
    if kind == "process":
        return DualProblem.gaussian_process(gram, y, 0.1)
    return DualProblem.hinge(gram, y, 10.0, fit_intercept=bias)


def assert_goes_on(clock, solver, kind, after, whole, n, cache_size, **options):
    """Cut a run off, resume it, cut that off at once, and go to the end."""
    problem = problem_of(kind, n, cache_size)
    first = clock.solve(after, problem, solver, **options)
    kept = first.beta.copy()
    if first.state is not None:
        state = first.state
        size = float(np.abs(state.beta).sum() * problem.diagonal.max() + np.abs(problem.target).max())
        np.testing.assert_allclose(state.residual, problem.residual(state.beta), rtol=0, atol=1e-12 * size)
    second = clock.solve(3, problem, solver, resume=first, **options)
    last = clock.solve(None, problem, solver, resume=second, **options)
    np.testing.assert_array_equal(first.beta, kept)
    if whole.status is Status.MAX_STEPS:  # the limit is that of a call: more calls come further
        assert last.status in (Status.CONVERGED, Status.MAX_STEPS), f"limit after question {after}"
        return
    assert last.status is whole.status, f"limit after question {after}"
    if whole.status is Status.CONVERGED:
        parts = (whole.certificate, last.certificate)
        allowed = sum(part.gap + part.rounding for part in parts)
        assert abs(parts[0].dual - parts[1].dual) <= allowed, f"limit after question {after}"


def cut_everywhere(solver, kind, n=24, cache_size=1000, strictly=False, most=None, **options):
    """Try a limit after every question, or at ``most`` of them; return how many were tried."""
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch, strictly)
        whole = clock.solve(None, problem_of(kind, n, cache_size), solver, **options)
        asked = clock.asked
        tried = np.unique(np.linspace(0, asked, min(most or asked + 1, asked + 1)).astype(int))
        for after in tried:
            assert_goes_on(clock, solver, kind, int(after), whole, n, cache_size, **options)
    return tried.size


@pytest.mark.long
def test_a_set_whose_part_came_too_late_is_not_mixed_up_with_the_next():
    """The last set is found solved, the limit comes before that is stored, and another set would be chosen."""
    assert cut_everywhere(Chunking(6, "simple-svm"), "hard", n=40, trace_every=2, most=60) > 20


@pytest.mark.parametrize("choice", ["greedy", "worst"])
def test_exchanges_whose_kernel_values_came_too_late(choice):
    """The point that was to enter is not left between the free ones and the others."""
    assert cut_everywhere(SimpleSVM(choice), "hinge", strictly=True, most=12) > 10


SOLVERS = {
    name: get_solver(name)
    for name in (
        *("smo", "smo-mvp", "smo-keerthi", "smo-platt", "gradient-ascent", "sor", "rosen", "simple-svm"),
        *("npa", "direct-svm", "cg", "cholesky", "auto"),
    )
} | {
    "simple-svm-worst": SimpleSVM("worst"),
    "chunking": Chunking(6),
    "chunking-exchanges": Chunking(6, "simple-svm"),
    "chunking-auto": Chunking(8, "auto"),
    "decomposition": Decomposition(6),
    "decomposition-rosen": Decomposition(6, "rosen"),
    "decomposition-gap": Decomposition(6, rule="gap"),
}
KINDS = ("hinge", "hinge-fixed", "squared", "squared-fixed", "hard", "linear", "tube", "tube-fixed", "process")


@pytest.mark.long
@pytest.mark.parametrize(("every", "strictly"), [(None, False), (2, True)], ids=["", "strictly"])
@pytest.mark.parametrize(
    ("kind", "n", "cache_size"), [*((kind, 24, 1000) for kind in KINDS), ("hinge", 80, 0.01), ("tube", 40, 0.005)]
)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_goes_on_wherever_it_was_cut_off(name, kind, n, cache_size, every, strictly):
    options = {} if every is None else {"trace_every": every}
    try:
        solve(problem_of(kind, n, cache_size), SOLVERS[name], max_steps=1)
    except ValueError:
        pytest.skip("no problem for this solver")
    assert cut_everywhere(SOLVERS[name], kind, n, cache_size, strictly, most=6, **options) > 3


# The parts of it.


def tight_gram(n=100):
    X, _ = moons(n)
    gram = Gram(X, gamma=2.0, cache_size=0.001)
    assert gram.capacity < n - 10
    return gram


def test_rows_that_were_not_computed_have_driven_none_out(monkeypatch):
    gram = tight_gram()
    gram.fetch(np.arange(gram.capacity // 2))
    gram.fetch(np.arange(gram.capacity // 2, gram.capacity))
    held = np.flatnonzero(gram.has_rows(slice(None)))
    with monkeypatch.context() as patch, limits.limits(0.0):
        patch.setattr(Gram, "_compute", asking(Gram._compute))
        with pytest.raises(limits.Exceeded):
            gram.fetch(np.array([90, 91]))
    np.testing.assert_array_equal(np.flatnonzero(gram.has_rows(slice(None))), held)
    exact = tight_gram().kernel.values(gram.X, gram.X)
    for wanted in np.random.default_rng(0).integers(0, gram.n, (200, 2)):
        gram.fetch(wanted)
        assert gram.has_rows(wanted).all()
        np.testing.assert_allclose(gram.row(int(wanted[0])), exact[wanted[0]], atol=1e-14)


def test_a_residual_is_brought_into_step_as_a_whole_or_not_at_all(monkeypatch):
    gram = tight_gram()
    known = gram.capacity - 2
    gram.fetch(np.arange(known // 2))
    gram.fetch(np.arange(known // 2, known))
    points = np.append(np.arange(known), 90)  # one row is missing: not in the first part, and too few to sum them apart
    residual, fetched = np.ones(gram.n), []

    def late(gram, wanted):
        fetched.append(wanted)
        raise limits.Exceeded

    with monkeypatch.context() as patch:
        patch.setattr(Gram, "fetch", late)
        with pytest.raises(limits.Exceeded):
            gram.subtract(points, np.ones(points.size), residual)
    assert 90 in fetched[0]
    assert 0 not in fetched[0]
    np.testing.assert_array_equal(residual, 1.0)


def test_a_point_whose_column_came_too_late_is_not_free(monkeypatch):
    problem = problem_of("hinge", 24, 1000)
    active = ActiveSet(problem, problem.feasible_start())
    i = active.worst(problem, active.tolerances(problem, 0.0))
    free = active.free.copy()
    with monkeypatch.context() as patch, limits.limits(0.0):
        patch.setattr(ActiveSet, "_column", asking(ActiveSet._column))
        with pytest.raises(limits.Exceeded):
            active.enter(problem, i)
    np.testing.assert_array_equal(active.free, free)
    np.testing.assert_array_equal(np.flatnonzero(active.side), np.sort(free))
    active.optimise(problem)
    assert problem.certify(active.beta).relative_gap <= 1e-10


def test_exchanges_that_a_limit_has_ended_are_made_later(monkeypatch):
    """``auto`` gives them up where they lead nowhere; that there was no time says nothing of that."""
    problem, solver = problem_of("hinge", 60, 1000), get_solver("auto")
    state, exchange, late = solver.init(problem), auto._exchange, []

    def cut_off(*arguments):
        late.append(True)
        return exchange(*arguments)

    monkeypatch.setattr(type(solver), "_pays", lambda *arguments: False)  # of so few points pairs cost less
    with monkeypatch.context() as patch:
        patch.setattr(auto, "_exchange", cut_off)
        patch.setattr(limits, "is_over", lambda: bool(late))
        while not late:
            state, info = solver.step(problem, state, 1000, 1e-9)
    assert info.iterations == 0
    assert copy.deepcopy(state).memory.may_exchange
    state, _ = solver.step(problem, state, 1000, 1e-9)
    assert problem.certify(state.beta).relative_gap <= 1e-9


def test_a_set_that_the_start_of_its_solver_solves_is_progress():
    """Exchanges solve for the points inside their box as they begin; others may violate their conditions yet."""
    problem, weight = problem_of("linear", 40, 1000), np.full(40, 10.0)
    weight[12] = 0.0
    part = DualProblem.hinge(problem.gram, problem.target, 1.0, sample_weight=weight)
    start = solve(part, "simple-svm", stop=RelativeGap(1e-10)).beta
    size = np.abs(start)
    i, j = np.flatnonzero((size > 0.1) & (size < 9.9))[:2]
    move = 0.9 * min(size[i], 10.0 - size[i], size[j], 10.0 - size[j])
    start[i] += move
    start[j] -= move
    solver = Chunking(2, "simple-svm")
    state, info = solver.step(problem, solver.init(problem, start), 1000, 1e-9)
    assert problem.certify(state.beta).relative_gap > 0.01  # point 12 is still to come
    assert not info.is_done
    assert info.iterations > 0
    assert solve(problem, solver, stop=RelativeGap(TOL), resume=start).status is Status.CONVERGED


# Hard margins that are narrow, seen from the origin.


def narrow(far):
    """Two classes that are 1e-3 apart, far from the origin."""
    X = np.array([[-0.7, 0.2], [-0.4, 0.9], [-1e-3, 0.3], [0.0, 0.35], [0.5, 0.1], [0.8, 0.6]])
    return X + far, np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("solver", ["auto", "smo", "smo-platt", "chunking"])
def test_classes_that_a_certificate_separates_are_not_called_inseparable(solver):
    X, y = narrow(3e4)
    problem = DualProblem.hard_margin(Gram(X, "linear"), y)
    near = solve(DualProblem.hard_margin(Gram(narrow(0.0)[0], "linear"), y), stop=RelativeGap(1e-9))
    assert problem.is_unbounded(near.beta, problem.residual(near.beta))  # closer than a millionth of their norms
    assert problem.has_margin(problem.certify(near.beta))
    solution = solve(problem, solver, stop=RelativeGap(1e-3))
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(near.certificate.dual, rel=2e-3)


def test_without_a_margin_or_an_inner_product_no_certificate_proves_one():
    X, y = narrow(0.0)
    meeting = DualProblem.hard_margin(Gram(np.append(X, [[-0.5, 0.3]], axis=0), "linear"), np.append(y, 1.0))
    solution = solve(meeting, stop=RelativeGap(TOL))
    assert solution.status is Status.UNBOUNDED
    assert not meeting.has_margin(solution.certificate)
    problem = DualProblem.hard_margin(Gram(X, "linear"), y)
    proof = solve(problem, stop=RelativeGap(TOL)).certificate
    assert problem.has_margin(proof)
    assert not DualProblem.hinge(problem.gram, y, 1.0).has_margin(proof)  # every margin may be violated there
    assert not DualProblem.hard_margin(Gram(X, lambda A, B: -(A @ B.T)), y).has_margin(proof)


def outlying():
    """Classes 1 and 3 are a point each, 6e-4 apart; that of class 2 which is 2e5 off has the origin taken far from both."""
    X = [9490.00166, 9490.00036, 9490.99908, 9490.0014, 9490.99939, 9489.99972, -203510.0]
    return np.array(X)[:, None], np.array([2, 3, 0, 2, 0, 1, 2])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_a_certificate_separates_no_model_calls_inseparable():
    """The margin is at the end of what float64 tells there: which of both models finds it depends on the processor."""
    X, y = outlying()
    options = {"C": np.inf, "kernel": "linear", "decision_function_shape": "ovo"}
    fresh = SVC(**options).fit(X, y)
    grown = SVC(**options).partial_fit(X[:-1], y[:-1]).partial_fit(X[-1:], y[-1:])
    pair = 4  # classes 1 and 3
    width = float(X[1, 0] - X[5, 0])
    separating = [model for model in (fresh, grown) if np.isfinite(model.certificate_[pair].relative_gap)]
    assert separating
    for model in separating:
        assert model.status_[pair] is not Status.UNBOUNDED
        certificate = model.certificate_[pair]
        assert abs(certificate.dual - 2.0 / width**2) <= certificate.gap + certificate.rounding
