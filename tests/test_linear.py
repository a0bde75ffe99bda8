"""Linear kernels solved for w: Newton steps from centre to centre, exchanges near the margin, refinement."""

import copy
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from naive import reference_objective
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

from zerogap import SVC, SVR, DualProblem, Gram, RelativeGap, Status, solve
from zerogap.kernels import UNIT
from zerogap.solvers import linear, pair

X, y = make_classification(160, 6, n_informative=4, flip_y=0.1, random_state=0)
y = 2.0 * y - 1.0
t = X[:, 0] - 0.5 * X[:, 1] ** 2
weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 160)


@pytest.fixture
def no_pairs(monkeypatch):
    """Newton steps from the start, however small the problem is."""
    monkeypatch.setattr(linear, "TRIED", 0.0)


def gram_of(points, **options):
    return Gram(points, "linear", **options)


FORMULATIONS = {
    "hinge": lambda g, **o: DualProblem.hinge(g, y, 10.0, **o),
    "large C": lambda g, **o: DualProblem.hinge(g, y, 1e5, **o),
    "small C": lambda g, **o: DualProblem.hinge(g, y, 1e-4, **o),
    "squared hinge": lambda g, **o: DualProblem.squared_hinge(g, y, 100.0, **o),
    "regression": lambda g, **o: DualProblem.epsilon_insensitive(g, t, 100.0, 0.1, **o),
    "absolute": lambda g, **o: DualProblem.epsilon_insensitive(g, t, 100.0, 0.0, **o),
    "squared regression": lambda g, **o: DualProblem.squared_epsilon_insensitive(g, t, 100.0, 0.1, **o),
}
OPTIONS = {"": {}, "fixed bias": {"fit_intercept": False}, "weighted": {"sample_weight": weight}}


@pytest.mark.parametrize("option", ["", *(pytest.param(o, marks=pytest.mark.long) for o in ("fixed bias", "weighted"))])
@pytest.mark.parametrize("name", FORMULATIONS)
def test_every_formulation_to_the_optimum(name, option, no_pairs):
    problem = FORMULATIONS[name](gram_of(X), **OPTIONS[option])
    solution = solve(problem, stop=RelativeGap(1e-9))
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(-reference_objective(problem), rel=1e-7)
    assert not problem.gram.is_complete  # nothing but the diagonal was computed of all points
    assert solution.n_iter < 200


def test_large_C_takes_no_more_steps_than_small_C():
    """Pairs alone are still at a relative gap of one after so many iterations."""
    A, labels = make_classification(200, 20, n_informative=10, flip_y=0.05, random_state=0)
    problem = DualProblem.hinge(gram_of(A), 2.0 * labels - 1.0, 1e6)
    solution = solve(problem, stop=RelativeGap(1e-9), max_steps=50_000)
    assert solution.status is Status.CONVERGED


def test_sparse_points_about_a_centre_and_the_same_points():
    """Another origin is the same problem, and so is CSR."""
    A = np.where(np.abs(X) > 0.8, X, 0.0)
    plain, sparse = gram_of(A), gram_of(sp.csr_matrix(A))
    sparse.X = sp.csr_matrix(A)  # few points would be made dense
    shifted = gram_of(A + 1e6, centre=np.full(6, 1e6))
    duals = []
    for gram in (plain, sparse, shifted):
        solution = solve(DualProblem.hinge(gram, y, 1e3), stop=RelativeGap(1e-10))
        assert solution.status is Status.CONVERGED
        duals.append(solution.certificate.dual)
    assert duals[1] == pytest.approx(duals[0], rel=2e-10)
    assert duals[2] == pytest.approx(duals[0], rel=1e-8)  # the points themselves are rounded to 1e-10


def awkward():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(60, 3))
    labels = np.where(A[:, 0] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)
    yield "duplicates", np.repeat(A[:15], 4, axis=0), labels
    yield "collinear", A[:, :1] @ np.ones((1, 3)), labels
    yield "constant features", np.hstack([A, np.ones((60, 2)), np.zeros((60, 1))]), labels
    yield "integers", np.rint(A), labels
    yield "one feature", A[:, :1], labels
    yield "huge", 1e80 * A, labels
    yield "tiny", 1e-80 * A, labels
    yield "features of all sizes", A * [1e-6, 1.0, 1e6], labels
    yield "one of a class", A, np.where(np.arange(60) == 7, 1.0, -1.0)
    yield "two points", np.array([[0.0], [1.0]]), np.array([-1.0, 1.0])
    yield "all points the same", np.ones((60, 2)), labels
    yield "separable", A + 5.0 * labels[:, None], labels
    yield "an outlier", np.vstack([A[:-1], 1e4 * A[-1:]]), labels


AWKWARD = {name: (points, labels) for name, points, labels in awkward()}


@pytest.mark.parametrize("C", [1.0, pytest.param(1e4, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_points(name, C, no_pairs):
    points, labels = AWKWARD[name]
    scale = float(np.median(np.square(points).sum(axis=1)))
    problem = DualProblem.hinge(gram_of(points), labels, C / scale)
    solution = solve(problem, stop=RelativeGap(1e-9), max_steps=100_000)
    assert solution.status is Status.CONVERGED
    if 1e-6 < scale < 1e6:  # the reference is no solver for numbers beyond
        assert solution.certificate.dual == pytest.approx(-reference_objective(problem), rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_no_worse_than_liblinear(loss, no_pairs):
    """LIBLINEAR has its bias in |w|²: with it fixed both minimise the same objective, C being half as large for squares."""
    C = 3.0
    model = SVC(kernel="linear", C=C, loss=loss, fit_intercept=False, tol=1e-9).fit(X, y)
    share = C if loss == "hinge" else C / 2.0
    peer = LinearSVC(C=share, loss=loss, fit_intercept=False, dual=True, max_iter=200_000, tol=1e-8).fit(X, y)

    def objective(w):
        xi = np.maximum(0.0, 1.0 - y * (X @ w))
        return 0.5 * w @ w + share * float(np.sum(xi if loss == "hinge" else xi**2))

    ours, theirs = objective(model.coef_.ravel()), objective(peer.coef_.ravel())
    assert ours <= theirs * (1.0 + 1e-9)
    assert ours == pytest.approx(theirs, rel=1e-4)


def test_free_points_go_to_the_cheap_side_of_the_margin(no_pairs):
    """Of separable points each has a small coefficient, and what rounding leaves of its residual costs C on one side only."""
    labels = np.where(np.arange(80) % 2, 1.0, -1.0)
    for seed in range(20):
        A = 1e3 * (np.random.default_rng(seed).normal(size=(80, 12)) + 2.0 * labels[:, None])
        solution = solve(DualProblem.hinge(gram_of(A), labels, 1e6), stop=RelativeGap(1e-9))
        assert solution.status is Status.CONVERGED, seed
        assert np.abs(solution.beta).max() < 1e-3


@pytest.mark.parametrize("at_once", [1, 7])
def test_in_steps_and_resumed(at_once, no_pairs):
    problem = DualProblem.hinge(gram_of(X), y, 100.0)
    whole = solve(problem, stop=RelativeGap(1e-9))
    solution = solve(problem, stop=RelativeGap(1e-9), max_steps=at_once)
    for _ in range(1000):
        if solution.status is not Status.MAX_STEPS:
            break
        before = solution.beta.copy()
        resumed = solve(problem, stop=RelativeGap(1e-9), max_steps=at_once, resume=solution)
        assert np.array_equal(solution.beta, before)
        assert resumed.n_iter <= solution.n_iter + at_once
        assert resumed.certificate.dual >= solution.certificate.dual * (1.0 - 1e-12)
        solution = resumed
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(whole.certificate.dual, rel=2e-9)


def test_the_same_bits_every_time(no_pairs):
    first, second = (solve(DualProblem.hinge(gram_of(X), y, 50.0), stop=RelativeGap(1e-9)) for _ in range(2))
    assert np.array_equal(first.beta, second.beta)


def test_starts_from_a_point(no_pairs):
    problem = DualProblem.hinge(gram_of(X), y, 50.0)
    exact = solve(problem, stop=RelativeGap(1e-9))
    again = solve(problem, stop=RelativeGap(1e-9), resume=exact.beta)
    assert again.status is Status.CONVERGED
    assert again.n_iter == 0


def test_violators_join_the_points_near_the_margin(no_pairs, monkeypatch):
    """With hardly any points near the margin it takes several sets of them."""
    monkeypatch.setattr(linear, "PART", 2)
    monkeypatch.setattr(linear, "PART_PER_FEATURE", 0.0)
    monkeypatch.setattr(linear.System, "step", lambda *given: None)
    exchanged = []
    plain = linear.Descent._exchange
    monkeypatch.setattr(linear.Descent, "_exchange", lambda *given: exchanged.append(1) or plain(*given))
    problem = DualProblem.hinge(gram_of(X), y, 10.0)
    solution = solve(problem, stop=RelativeGap(1e-9))
    assert solution.status is Status.CONVERGED
    assert len(exchanged) > 2
    assert solution.certificate.dual == pytest.approx(-reference_objective(problem), rel=1e-7)


@pytest.mark.parametrize("answer", [None, "worse"])
def test_without_newton_steps_others_go_on(answer, no_pairs, monkeypatch):
    """No Newton step in float64, or centres that are no better: then exchanges and pairs end at the same optimum."""
    if answer is None:
        monkeypatch.setattr(linear.System, "step", lambda *given: None)
    else:
        monkeypatch.setattr(linear, "take", lambda *given: False)
    for name in ("hinge", "squared hinge"):
        problem = FORMULATIONS[name](gram_of(X))
        solution = solve(problem, stop=RelativeGap(1e-7))
        assert solution.status is Status.CONVERGED
        assert solution.certificate.dual == pytest.approx(-reference_objective(problem), rel=1e-6)


def test_what_is_not_solved_for_w():
    assert linear.suits(DualProblem.hinge(gram_of(X), y, 1.0))
    assert not linear.suits(DualProblem.hard_margin(gram_of(X), y))
    assert not linear.suits(DualProblem.hinge(Gram(X), y, 1.0))
    assert not linear.suits(DualProblem.hinge(gram_of(X[:5]), [1, -1, 1, -1, 1], 1.0))  # more features than points


def test_pairs_are_tried_where_they_are_cheap():
    small, large = (DualProblem.hinge(gram_of(X[:m]), y[:m], 1.0) for m in (40, 160))
    many = DualProblem.hinge(gram_of(np.repeat(X, 40, axis=0)), np.repeat(y, 40), 1.0)
    assert linear.Descent(small).pairs > linear.Descent(large).pairs > linear.Descent(many).pairs == 0


def test_a_copy_goes_its_own_way(no_pairs):
    problem = DualProblem.hinge(gram_of(X), y, 1.0)
    descent, state = linear.Descent(problem), pair.start(problem, None, None)
    descent.step(problem, state, 2)
    twin, others = copy.deepcopy(descent), copy.deepcopy(state)
    before = descent.system.response.copy(), descent.system.H.copy()
    twin.share = 0.0
    twin.step(problem, others, 1)
    assert descent.share == linear.FIRST
    assert np.array_equal(descent.system.response, before[0])
    assert np.array_equal(descent.system.H, before[1])


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_the_newton_system_follows_the_points_that_move(share, has_bias):
    """Brought up to date from step to step, it is what all points say at the last one: sparse, half sparse and dense."""
    rng = np.random.default_rng(3)
    A = np.where(rng.random((60, 8)) < share, rng.normal(size=(60, 8)), 0.0)
    lower, upper, slope = -rng.random(60), rng.random(60), 0.5 + rng.random(60)
    z = rng.normal(size=60)
    for points in (sp.csr_matrix(A), A):
        system = linear.System(points, slope, has_bias)
        for _ in range(12):
            some = rng.choice(60, 4, replace=False)
            z = z.copy()
            z[some] = rng.normal(size=4)
            system.respond(z, lower, upper, 0.1)
        soft = np.sign(z) * np.maximum(np.abs(z) - 0.1, 0.0) / slope
        J = (soft > lower) & (soft < upper) & (soft != 0.0)
        assert np.array_equal(system.inside, J)
        np.testing.assert_allclose(system.response, np.clip(soft, lower, upper), rtol=1e-15)
        np.testing.assert_allclose(system.product, A.T @ system.response, atol=1e-13)
        B = np.hstack([A, np.ones((60, 1))]) if has_bias else A
        np.testing.assert_allclose(np.triu(system.H), np.triu(B[J].T @ (B[J] / slope[J, None])), atol=1e-12)


def test_products_by_way_of_w_are_within_their_bound():
    """Against exact arithmetic, for points far from zero, of very different sizes, and coefficients that cancel."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 4)) * [1e-3, 1.0, 1e3, 1.0] + [0.0, 0.0, 0.0, 1e4]
    beta = rng.normal(size=30) * 10.0 ** rng.integers(-3, 4, 30)
    beta[-1] -= beta.sum()
    gram = gram_of(A)
    product, bound = gram.dot(beta), gram.dot_error(beta)
    assert not gram.is_complete
    exact = [[Fraction(a) for a in row] for row in A.tolist()]
    w = [sum(Fraction(b) * row[k] for b, row in zip(beta.tolist(), exact, strict=True)) for k in range(4)]
    truth = [sum(a * c for a, c in zip(row, w, strict=True)) for row in exact]
    off = np.array([float(abs(Fraction(p) - v)) for p, v in zip(product.tolist(), truth, strict=True)])
    assert (off <= bound).all()
    assert (off > 1e-6 * bound).any()  # the bound is one of this size


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_estimators_reach_1e9(C):
    for model, target in ((SVC(kernel="linear", C=C, tol=1e-9), y), (SVR(kernel="linear", C=C, tol=1e-9), t)):
        model.fit(X, target)  # a warning would fail the test
        assert model.duality_gap_ <= 1e-9


@pytest.mark.long
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("shape", [(500, 3), (500, 60), (2000, 20), (300, 250)])
def test_many_shapes_and_C(shape, C):
    """To 1e-9, or to what the roundings of the free coefficients cost: each moves the others off the margin."""
    n, d = shape
    A, labels = make_classification(n, d, n_informative=max(2, d // 2), n_redundant=0, flip_y=0.05, random_state=0)
    problem = DualProblem.hinge(gram_of(A), 2.0 * labels - 1.0, C)
    solution = solve(problem, stop=RelativeGap(1e-9))
    size = np.abs(solution.beta)
    free = np.flatnonzero((size > 0.0) & (size < C))
    moved = UNIT * np.abs(A[free] @ A[free].T) @ size[free]
    assert solution.certificate.relative_gap <= max(1e-9, C * float(moved.sum()) / solution.certificate.primal)
