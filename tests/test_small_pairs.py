"""Small problems that a compiled function solves and certifies: the same answers, and the same proofs, as by ``solve``."""

import signal
import warnings

import mpmath as mp
import numpy as np
import pytest
from naive import sum_rounding
from sklearn.datasets import load_digits, load_iris

from zerogap import SVC, DualProblem, Gram, RelativeGap, Status, certify, loss, solve
from zerogap.certificate import Certificate
from zerogap.estimators import small_pairs
from zerogap.kernels import RBF, UNIT
from zerogap.limits import limits
from zerogap.loss import crossing

AWKWARD = {
    "plain": lambda X: X,
    "shifted": lambda X: X + 1e6,
    "tiny": lambda X: 1e-8 * X,
    "huge": lambda X: 1e8 * X,
    "outlier": lambda X: np.where(np.arange(len(X))[:, None] == 3, 1e7, X),
    "constant": lambda X: np.zeros_like(X),
    "collinear": lambda X: X[:, :1] * np.ones(X.shape[1]),
}


def drawn(seed, n=60, kind="plain"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weight = np.where(rng.random(n) < 0.3, rng.uniform(0.1, 3.0, n), 1.0)
    return AWKWARD[kind](X), y, weight


def solved(gram, y, cap, *, has_bias=True, tol=1e-4):
    gram.full()
    problems = small_pairs.Problems.of([np.arange(y.size)], [y], [cap])
    assert small_pairs.suits(gram, problems)
    found = small_pairs.separate(gram, problems, has_bias=has_bias, tol=tol)
    assert found.outcomes[0] is not None
    return found.beta, found.outcomes[0].certificate


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize(("C", "tol"), [(0.01, 1e-4), (1.0, 1e-4), (1e4, 0.99)])
def test_the_proof_is_the_one_of_the_problem(kind, C, tol, has_bias):
    X, y, weight = drawn(1, kind=kind)
    gram = Gram(X, RBF("scale") if np.ptp(X) else RBF(1.0))
    beta, told = solved(gram, y, C * weight, has_bias=has_bias, tol=tol)
    problem = DualProblem.hinge(gram, y, C, sample_weight=weight, fit_intercept=has_bias)
    assert (problem.lower <= beta).all()
    assert (beta <= problem.upper).all()
    known = problem.certify(beta)
    assert told.relative_gap <= tol
    # Two sums of the same numbers, each off by at most what it says.
    for name in ("primal", "dual", "gap"):
        assert abs(getattr(told, name) - getattr(known, name)) <= told.rounding + known.rounding, name
    assert told.rounding <= 2.0 * known.rounding
    assert told.sum_residual == known.sum_residual
    np.testing.assert_allclose(told.kkt_violation, known.kkt_violation, atol=sum_rounding(y.size, C * weight.sum()))


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_optimum(seed):
    X, y, weight = drawn(seed)
    gram = Gram(X, RBF(0.5))
    _, told = solved(gram, y, 3.0 * weight, tol=1e-6)
    exact = solve(DualProblem.hinge(gram, y, 3.0, sample_weight=weight), stop=RelativeGap(1e-12)).certificate
    assert exact.dual - 1e-6 * exact.dual <= told.dual <= exact.dual + 1e-11 * exact.dual


@pytest.mark.parametrize(("tol", "C", "has_bias"), [(1e-4, 1e7, True), (1e-4, 1e4, False), (1e-9, 1e7, True)])
def test_a_large_cap_does_not_keep_a_problem_from_its_proof(tol, C, has_bias):
    """Margins are made longer: what rounding takes from them, or pairs have left, no longer costs the cap times it."""
    X, y, weight = drawn(1)
    gram = Gram(X, RBF(10.0))
    beta, told = solved(gram, y, C * weight, has_bias=has_bias, tol=tol)
    problem = DualProblem.hinge(gram, y, C, sample_weight=weight, fit_intercept=has_bias)
    residual = problem.residual(beta)
    assert (y * (residual - told.bias)).max() < 0.0
    assert told.sum_residual == problem.excess(beta)
    known, exact = problem.certify(beta), solve(problem, stop=RelativeGap(1e-12)).certificate
    assert known.relative_gap <= tol
    assert exact.dual - tol * exact.primal <= told.dual <= exact.primal + exact.rounding


def test_what_is_short_of_the_tolerance_goes_on_from_there():
    X, y = load_iris(return_X_y=True)
    model = SVC(C=1e4, tol=1e-11).fit(X, y)
    assert model.status_ == [Status.CONVERGED] * 3
    assert model.duality_gap_ <= 1e-11
    assert [trace[-1].gap <= 1e-11 for trace in model.trace_] == [True] * 3


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"class_weight": {1: 3.0}}, {"C": 100.0}])
def test_a_model_says_what_that_of_solve_says(options):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    quick, slow = SVC(**options).fit(X, y), SVC(solver="smo", **options).fit(X, y)
    assert [len(trace) for trace in quick.trace_] == [2] * 45
    for a, b in zip(quick.certificate_, slow.certificate_, strict=True):
        assert max(a.dual, b.dual) <= min(a.primal, b.primal) + a.rounding + b.rounding
    # |f - f*|² is at most twice the gap (strong convexity), and so are differences of decision values, k(x, x) being one.
    gaps = [np.sqrt(2.0 * (a.gap + a.rounding)) + np.sqrt(2.0 * (b.gap + b.rounding)) for a, b in
            zip(quick.certificate_, slow.certificate_, strict=True)]  # fmt: skip
    difference = (quick._pair_decisions(X) - quick._biases) - (slow._pair_decisions(X) - slow._biases)
    assert (np.abs(difference) <= np.array(gaps) * (1.0 + 1e-9) + 1e-9).all()


def test_limits_that_a_user_sets_go_the_long_way():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(Warning, match="max_iter=3"):
        assert SVC(max_iter=3).fit(X, y).status_ == [Status.MAX_STEPS] * 3
    with pytest.warns(Warning, match="max_time=1e-09"):
        assert SVC(max_time=1e-9).fit(X, y).status_ == [Status.MAX_TIME] * 3
    assert SVC(max_time=100.0).fit(X, y).status_ == [Status.CONVERGED] * 3


def test_classes_of_one_point():
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array(["a", "b", "c"])
    model = SVC(C=10.0, tol=1e-9).fit(X, y)
    assert model.predict(X).tolist() == ["a", "b", "c"]
    assert model.duality_gap_ <= 1e-9


def test_ctrl_c_leaves_pairs_undone():
    X, y = load_iris(return_X_y=True)
    gram = Gram(X)
    gram.full()
    places = [np.flatnonzero(y != k) for k in range(3)] * 100
    signs = [np.where(y[place] == y[place[0]], 1.0, -1.0) for place in places]
    problems = small_pairs.Problems.of(places, signs, [np.ones(place.size) for place in places])
    with limits():
        signal.raise_signal(signal.SIGINT)
        found = small_pairs.separate(gram, problems, has_bias=True, tol=1e-4)
    assert found.outcomes[0] is not None
    assert found.outcomes[-1] is None
    assert found.n_iter[0] > 0 > found.n_iter[-1]


def test_a_sum_that_is_left_counts_in_the_gap():
    found = small_pairs.Measured(0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    certificate = Certificate.of(found, 2.0, 1e-3)
    assert certificate.gap == pytest.approx(2e-3)
    assert certificate.rounding == pytest.approx(4e-3)


# The bias, by quickselect instead of sorting.


def crossing_of_sorted(knots, drops, excess, rounding):
    for k, knot in enumerate(order := np.argsort(knots, kind="stable")):
        excess -= drops[knot]
        if excess <= rounding:
            is_level = excess >= -rounding and k + 1 < len(order)
            return 0.5 * (knots[knot] + knots[order[k + 1]]) if is_level else knots[knot]
    return knots.min()


@pytest.mark.parametrize("kind", [0, 1])
def test_the_crossing_is_that_of_sorted_knots(kind):
    for seed in range(kind, 400, 2):
        assert_crossing(seed)


def assert_crossing(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    is_whole = seed % 2 == 0  # ties, and levels that are met exactly
    knots = rng.integers(-3, 4, n).astype(float) if is_whole else rng.standard_normal(n)
    drops = rng.integers(1, 4, n).astype(float) if is_whole else rng.uniform(0.1, 2.0, n)
    total = float(rng.integers(1, drops.sum() + 1)) if is_whole else rng.uniform(0.0, drops.sum())
    rounding = 8.0 * n * UNIT * drops.sum()
    assert crossing(knots, drops, total, rounding) == crossing_of_sorted(knots, drops, total, rounding)


def test_some_of_many_knots_tell_near_which_the_crossing_is():
    rng, found = np.random.default_rng(0), []
    for seed in range(80):
        n = int(rng.integers(loss.MANY + 1, 3 * loss.MANY))
        knots = rng.normal(size=n)
        if seed % 4 == 1:  # ties
            knots = np.round(5.0 * knots)
        drops = 10.0 ** rng.uniform(-8.0, 8.0, n) if seed % 4 == 2 else rng.choice([1.0, 2.0], n)
        excess = float(drops[knots <= np.quantile(knots, rng.choice([0.0, 0.03, 0.5, 0.9, 1.0]))].sum())  # a level
        excess += 0.25 * (seed % 2)
        rounding = 1e-13 * float(drops.sum())
        near = loss._near_crossing(knots, drops, excess, rounding)
        if near is not None:
            assert crossing(*near, rounding) == crossing(knots, drops, excess, rounding)
            found.append(near[0].size / n)
    assert len(found) > 20
    assert np.median(found) < 0.4


@pytest.mark.parametrize("drop", [0.0, np.inf])
def test_knots_at_which_nothing_falls_or_without_end_tell_nothing(drop):
    n = loss.MANY + 1
    assert loss._near_crossing(np.arange(n, dtype=float), np.full(n, drop), 0.0, 0.0) is None


def test_terms_far_below_the_targets_are_not_rounded_as_those_are():
    """One point of a huge weight, and many whose coefficients are tiny: what rounding leaves in f counts 1e14 times."""
    d, C = 290, 2.868316813342009e-10
    X = np.vstack([np.zeros(d), np.eye(d), -np.eye(d)])
    y, weight = np.r_[1.0, -np.ones(2 * d)], np.r_[1e14, np.ones(2 * d)]
    model = SVC(C, gamma=0.3).fit(X, y, weight)
    beta, told = np.zeros(y.size), model.certificate_
    beta[model.support_] = model.dual_coef_[0]
    with mp.workdps(50):
        b, k = [mp.mpf(float(v)) for v in beta], [mp.exp(-mp.mpf(0.3) * q) for q in (0, 1, 2, 4)]
        S, f = mp.fsum(b[1:]), [b[0] + k[1] * mp.fsum(b[1:])]
        for i in range(1, 2 * d + 1):
            other = (i - 1 + d) % (2 * d) + 1
            f.append(b[0] * k[1] + b[i] + b[other] * k[3] + (S - b[i] - b[other]) * k[2])
        square = mp.fsum(p * q for p, q in zip(b, f, strict=True))
        slack = [max(0, 1 - int(s) * (v + mp.mpf(told.bias))) for s, v in zip(y, f, strict=True)]
        primal = square / 2 + mp.fsum(mp.mpf(float(C * w)) * v for w, v in zip(weight, slack, strict=True))
        dual = mp.fsum(int(s) * v for s, v in zip(y, b, strict=True)) - square / 2
        assert primal - dual <= mp.mpf(told.gap) + mp.mpf(told.rounding)
        assert abs(primal - mp.mpf(told.primal)) <= mp.mpf(told.rounding)


@pytest.mark.parametrize("kind", ["plain", "shifted", "tiny", "outlier", "collinear"])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_linear_kernels_of_several_classes_have_the_proof_of_their_pairs(kind, C):
    """Pairs that crawl, as those of a linear kernel do where C is large, are left to ``solve``."""
    X, codes = AWKWARD[kind](drawn(2, n=90)[0]), np.arange(90) % 3
    model = SVC(kernel="linear", C=C, tol=1e-4).fit(X, codes)
    assert all(certificate.relative_gap <= 1e-4 for certificate in model.certificate_)
    known = certify(model, X, codes)
    assert max(known.relative_gap for known in known.certificates) <= 1e-4 * (1.0 + 1e-6)
    reference = SVC(kernel="linear", C=C, tol=1e-4, max_iter=10**9).fit(X, codes)  # a limit: not in compiled code
    for told, exact in zip(model.certificate_, reference.certificate_, strict=True):
        assert told.dual - told.rounding <= exact.primal + exact.rounding
        assert exact.dual - exact.rounding <= told.primal + told.rounding


def test_linear_kernels_of_several_classes_are_solved_in_compiled_code(monkeypatch):
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    monkeypatch.setattr(SVC, "_fit_pair", None)  # no call of it
    model = SVC(kernel="linear").fit(X, y)
    assert all(status is Status.CONVERGED for status in model.status_)


# One problem: exchanges follow where they cost less than the pairs that are left.


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize(("kernel", "C", "tol"), [("linear", 1.0, 1e-4), ("linear", 1.0, 1e-9), ("rbf", 100.0, 1e-9)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_exchanges_have_the_proof_of_the_problem(kind, kernel, C, tol, has_bias):
    X, y, weight = drawn(3, n=120, kind=kind)
    model = SVC(C, kernel=kernel, gamma=0.5, tol=tol, fit_intercept=has_bias)
    reference = SVC(
        C, kernel=kernel, gamma=0.5, tol=tol, fit_intercept=has_bias, max_iter=10**9
    )  # not in compiled code
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # huge and shifted points have no more digits than that, whoever solves
        model.fit(X, y, weight), reference.fit(X, y, weight)
    told, known = model.certificate_, certify(model, X, y, sample_weight=weight).certificates[0]
    assert told.relative_gap <= max(tol, 1.01 * reference.duality_gap_)
    assert known.gap - known.rounding <= told.gap + told.rounding
    assert told.dual - told.rounding <= reference.certificate_.primal + reference.certificate_.rounding
    assert reference.certificate_.dual - reference.certificate_.rounding <= told.primal + told.rounding


def test_one_linear_problem_is_solved_by_exchanges(monkeypatch):
    X, y, _ = drawn(4, n=200)
    monkeypatch.setattr(SVC, "_fit_pair", None)  # no call of it
    model = SVC(kernel="linear", tol=1e-9).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.trace_[0].gap > 1e-9  # pairs have gone to a rough point alone
    assert model.certificate_.relative_gap <= 1e-9


def test_exchanges_do_not_begin_where_pairs_crawl():
    """A linear kernel with a large C: another solver goes on, from the start."""
    X, y, _ = drawn(5, n=200)
    gram, cap = Gram(X, "linear"), np.full(200, 1e6)
    gram.full()
    problems = small_pairs.Problems.of([np.arange(200)], [y], [cap])
    found = small_pairs.separate(gram, problems, has_bias=True, tol=1e-6)
    assert found.outcomes[0] is None
    before = found.beta.copy()
    assert small_pairs.exchanged(DualProblem.hinge(gram, y, 1e6), found.beta, int(found.n_iter[0]), tol=1e-6) is None
    np.testing.assert_array_equal(found.beta, before)
    assert SVC(1e6, kernel="linear", tol=1e-6).fit(X, y).duality_gap_ <= 1e-6
