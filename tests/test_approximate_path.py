"""Paths within a guaranteed gap: the proof against exact arithmetic, the guarantee at random C, and all that reads a path."""

import os
import signal
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler

from zerogap import SVC, DualProblem, Gram, Path, Status, SVCPath, load, svm_path
from zerogap.estimators import class_paths
from zerogap.path import ApproximatePath, approximate, straight_line
from zerogap.path.proof import LargestGap
from zerogap.path.straight_line import Anchor, Points, largest_ratio
from zerogap.problem import Known


@pytest.fixture(scope="module")
def moons():
    return make_moons(200, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def path(moons):
    return svm_path(*moons, C_min=1e-2, C_max=100.0, gap=1e-3)


def random_C(path, count, seed=0):
    return 10.0 ** np.random.default_rng(seed).uniform(np.log10(path.C[0]), np.log10(path.C[-1]), count)


def exact_gap(K, y, w, lam, b, bias):
    """Relative gap of b and a bias at lam, all of them fractions, as the textbook has it: primal less dual."""
    n = len(y)
    f = [sum(K[i][j] * b[j] for j in range(n)) for i in range(n)]
    energy = sum(x * z for x, z in zip(b, f, strict=True)) / 2
    losses = sum(w[i] * max(0, lam - y[i] * (f[i] + bias)) for i in range(n))
    primal, dual = energy + losses, lam * sum(abs(x) for x in b) - energy
    return (primal - dual) / primal


def fractions(values):
    return [Fraction(float(x)) for x in values]


def integer_problem(seed):
    """A few points on a small grid, so that many coincide, with either label, and weights of different sizes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    X, y = rng.integers(-2, 3, size=(n, 2)).astype(float), rng.choice([-1, 1], n)
    y[:2] = -1, 1
    return X, y, rng.choice([0.5, 1.0, 1.0, 3.0, 100.0], n)


def gaps_in_fractions(path, X, C):
    """Relative gaps of what is read from a path of a linear kernel, in exact arithmetic."""
    centre = path.gram.kernel.centre
    rows = [fractions(x) for x in X[path.points.rows] - (0.0 if centre is None else centre)]
    K = [[sum(p * q for p, q in zip(x, z, strict=True)) for z in rows] for x in rows]
    y, w = fractions(path.y), fractions(path.points.weight)
    found = []
    for c in C:
        beta, lam = fractions(path.beta_at(c)), 1 / Fraction(float(c))
        found.append(exact_gap(K, y, w, lam, [lam * x for x in beta], lam * Fraction(path.bias_in_gram(c))))
    return found


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.long)])
def test_the_gap_of_what_is_read_is_within_the_proof_in_exact_arithmetic(count):
    for seed in range(count):
        X, y, weight = integer_problem(seed)
        gap = (1e-2, 1e-3, 1e-6)[seed % 3]
        path = svm_path(X, y, sample_weight=weight, kernel="linear", C_min=1e-3, C_max=1e2, gap=gap)
        assert path.largest_gap_ <= gap
        C = np.concatenate([random_C(path, 20, seed), path.C[::7]])
        assert max(gaps_in_fractions(path, X, np.clip(C, path.C[0], path.C[-1]))) <= path.largest_gap_


@pytest.mark.long
def test_kernel_values_with_all_their_digits_change_nothing(moons):
    X, y = moons[0][:40] * 30.0 + 500.0, moons[1][:40]  # far from the origin: rbf by expansion loses digits
    path = svm_path(X, y, gamma=1e-2, C_min=0.1, C_max=10.0, gap=1e-4)
    points, gamma = X[path.points.rows], path.gram.kernel.gamma
    with mp.workdps(40):
        K = [
            [mp.exp(-mp.mpf(gamma) * mp.fsum((mp.mpf(p) - q) ** 2 for p, q in zip(x, z, strict=True))) for z in points]
            for x in points
        ]
        for c in random_C(path, 20):
            lam = 1 / mp.mpf(c)
            b = [lam * mp.mpf(x) for x in path.beta_at(c)]
            assert (
                exact_gap(K, path.y.tolist(), path.points.weight.tolist(), lam, b, lam * path.bias_in_gram(c))
                <= path.largest_gap_
            )


# The proof alone, of points that are no solutions.


def random_ends(rng, n, shape=1.0, size=1.0):
    """Two points in their boxes with a sum of zero, a kernel matrix, and a lam for each."""
    Z = rng.normal(size=(n, 3)) * size
    K, y = shape * (Z @ Z.T), np.where(np.arange(n) % 2, 1.0, -1.0)
    w = rng.choice([0.5, 1.0, 5.0], n)
    lams = np.sort(10.0 ** rng.uniform(-2, 2, 2))[::-1] * shape
    problem = DualProblem.hinge(Gram(K, "precomputed"), y, 1.0, sample_weight=w)
    return K, Points(y, w, np.sqrt(np.diagonal(K))), [anchor(K, y, problem, rng, lam) for lam in lams]


def anchor(K, y, problem, rng, lam):
    a = rng.choice([0.0, 1.0, 0.3], y.size)  # as shares of the box
    b = problem.feasible(np.where(a == 1.0, problem.upper + problem.lower, a * (problem.upper + problem.lower)))
    product, bias = K @ b, float(rng.normal()) * lam
    return Anchor(lam, b, bias, product, lam * y - product - bias, 1e-15 * lam * np.ones(y.size), 0.0)


def ratios_between(K, points, ends, places):
    """gap / dual on the line between two points, from their coefficients, at many places."""
    first, last = ends
    for t in places:
        lam, b, bias = ((1.0 - t) * getattr(first, name) + t * getattr(last, name) for name in ("lam", "b", "bias"))
        f, a = K @ b, points.y * b
        h = lam - points.y * (f + bias)
        yield np.maximum((points.w - a) * h, -a * h).sum() / (lam * a.sum() - 0.5 * b @ f)


@pytest.mark.parametrize("shape", [1.0, 1e6, 1e-6])
def test_the_closed_form_is_the_largest_of_many_samples(shape):
    rng, compared = np.random.default_rng(0), 0
    for _ in range(20):
        K, points, ends = random_ends(rng, 12, shape, rng.choice([0.1, 0.5]))
        ratio, lam = largest_ratio(*ends, points)
        if not np.isfinite(ratio):  # the dual is not positive everywhere
            continue
        compared += 1
        first, last = (end.lam for end in ends)
        assert last <= lam <= first
        found = list(ratios_between(K, points, ends, [*np.linspace(0.0, 1.0, 201), (first - lam) / (first - last)]))
        assert max(found) <= ratio
        assert ratio <= found[-1] * (1.0 + 1e-5)  # which is where the proof says
    assert compared >= 10


def test_a_dual_that_is_not_positive_proves_nothing():
    _, points, ends = random_ends(np.random.default_rng(0), 6)
    ends = [end._replace(product=1e6 * end.b) for end in ends]
    assert largest_ratio(*ends, points)[0] == np.inf


def test_what_k_b_is_off_counts():
    _, points, ends = random_ends(np.random.default_rng(3), 12, size=0.1)
    plain = largest_ratio(*ends, points)[0]
    rough = [end._replace(error=np.full(12, 1e-3)) for end in ends]
    off = [
        end._replace(product=end.product + d, slack=end.slack - d)
        for end, d in zip(rough, ([1e-3] * 12, [-1e-3] * 12), strict=True)
    ]
    # Whatever in between is true, both are within the proof that counts it.
    assert plain < largest_ratio(*rough, points)[0]
    assert (
        largest_ratio(*(end._replace(error=np.zeros(12)) for end in off), points)[0] <= largest_ratio(*rough, points)[0]
    )


def test_a_wrong_proof_is_noticed(moons, monkeypatch):
    """With the switches forgotten the proof promises too much, and certificates say so."""
    honest = straight_line._gap
    monkeypatch.setattr(
        straight_line, "_gap", lambda *args: (honest(*args)[0] * 0.3, *(0.3 * x for x in honest(*args)[1:]))
    )
    path = svm_path(*moons, C_min=1e-2, C_max=100.0, gap=1e-3)
    assert max(c.relative_gap for c in path.certificate_at(random_C(path, 300))) > path.largest_gap_


# The guarantee.


def standardised(loader):
    X, y = loader(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def sets():
    rng = np.random.default_rng(0)
    X, y = make_moons(120, noise=0.3, random_state=1)
    cancer, kinds = standardised(load_breast_cancer)
    yield "moons", X, y, {}
    yield "weights", X, y, {"sample_weight": rng.choice([0.0, 0.1, 1.0, 30.0], 120)}
    yield "duplicates", np.repeat(X[:40], 3, axis=0), np.concatenate([y[:40], y[40:80], y[:40]]), {}
    yield "cancer", cancer[::2], kinds[::2], {}
    yield "polynomial", cancer[::4], kinds[::4], {"kernel": "poly"}
    yield "linear", cancer[::4], kinds[::4], {"kernel": "linear"}
    yield "outlier", np.vstack([X, [[1e4, -1e4]]]), np.append(y, 1), {"gamma": 1.0}
    yield "sparse", sp.csr_matrix(np.round(X)), y, {}
    yield "unequal", X[(y == 0) | (np.arange(120) % 10 == 0)], y[(y == 0) | (np.arange(120) % 10 == 0)], {}


@pytest.mark.thin(2)
@pytest.mark.parametrize(("X", "y", "options"), [pytest.param(*rest, id=name) for name, *rest in sets()])
def test_the_guarantee_holds_at_random_C(X, y, options):
    path = svm_path(X, y, C_min=1e-2, C_max=1e2, gap=1e-3, **options)
    assert path.status == "complete"
    assert path.C[[0, -1]].tolist() == [1e-2, 1e2]
    C = np.concatenate([random_C(path, 60), path.C])
    gaps = [c.relative_gap for c in path.certificate_at(np.clip(C, path.C[0], path.C[-1]))]
    assert max(gaps) <= path.largest_gap_ <= 1e-3
    assert max(gaps) > 1e-5  # no solution at every C


@pytest.mark.long
@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("ends", [(1.0, 10.0), (1e-4, 1e4)])
def test_the_guarantee_holds_at_a_thousand_C(gap, ends):
    X, y = standardised(load_breast_cancer)
    path = svm_path(X, y, C_min=ends[0], C_max=ends[1], gap=gap)
    assert max(c.relative_gap for c in path.certificate_at(random_C(path, 1000))) <= path.largest_gap_ <= gap


@pytest.mark.parametrize("ends", [(1.0, 10.0), (1e-4, 1e4)])
def test_ranges_of_one_decade_and_of_eight(moons, ends):
    path = svm_path(*moons, C_min=ends[0], C_max=ends[1], gap=1e-2)
    assert path.C[[0, -1]].tolist() == list(ends)
    assert max(c.relative_gap for c in path.certificate_at(random_C(path, 100))) <= path.largest_gap_ <= 1e-2


@pytest.mark.long
def test_a_gap_of_a_millionth(moons):
    X, y = moons[0][:60], moons[1][:60]
    path = svm_path(X, y, C_min=0.1, C_max=10.0, gap=1e-6)
    assert max(c.relative_gap for c in path.certificate_at(random_C(path, 200))) <= path.largest_gap_ <= 1e-6
    exact = svm_path(X, y, C_min=0.1, C_max=10.0)
    for C in random_C(path, 20):  # by strong convexity |f - f*|² <= 2 gap
        K, off = path.gram.full(), path.beta_at(C) - exact.beta_at(C)
        assert off @ K @ off <= 2.0 * 1e-6 * exact.certificate_at(C).primal * (1.0 + 1e-6)


def test_where_nothing_changes_lines_are_long(moons):
    assert svm_path(*moons, C_min=1e-12, C_max=1e-5, gap=1e-6).n_solutions <= 8


def constant_pieces(problem_at, lam, lam_end, gap):
    """Number of solutions if each stays, with beta = b / lam, as long as its gap allows: found by bisection on log C."""
    used = 0
    while lam > lam_end:
        used += 1
        b = approximate.solve(problem_at(lam), stop=approximate.RelativeGap(0.25 * gap)).beta * lam
        near, far = 0.0, 8.0
        for _ in range(30):
            step = 0.5 * (near + far)
            at = lam * np.exp(-step)
            is_good = problem_at(at).certify(b / at).relative_gap <= gap
            near, far = (step, far) if is_good else (near, step)
        lam *= np.exp(-near)
    return used


@pytest.mark.long
def test_fewer_solutions_than_with_one_for_every_piece(moons):
    X, y = moons[0][:50], 2.0 * moons[1][:50] - 1.0
    gram = Gram(X)
    path = svm_path(X, y, C_min=0.1, C_max=10.0, gap=1e-2)
    used = constant_pieces(lambda lam: DualProblem.hinge(gram, y, 1.0 / lam), 10.0, 0.1, 1e-2)
    assert 1.5 * path.n_solutions < used


# Small and awkward data.


def test_two_points():
    path = svm_path([[0.0], [1.0]], [0, 1], kernel="linear", C_min=1e-3, C_max=1e3, gap=1e-3)
    assert path.largest_gap_ <= 1e-3
    np.testing.assert_allclose(path.coefficients_at(100.0), [-2.0, 2.0], rtol=1e-2)


def test_points_that_are_all_the_same():
    path = svm_path(np.ones((6, 2)), [0, 1, 0, 1, 0, 0], gamma=1.0, gap=1e-3)
    assert max(c.relative_gap for c in path.certificate_at(random_C(path, 30))) <= path.largest_gap_ <= 1e-3


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_kernel_values_of_any_size(moons, scale):
    X, y = moons[0][:60], moons[1][:60]
    path = svm_path(scale * X, y, kernel="linear", C_min=1e-2 / scale**2, C_max=1e2 / scale**2, gap=1e-3)
    one = svm_path(X, y, kernel="linear", C_min=1e-2, C_max=1e2, gap=1e-3)
    assert path.largest_gap_ <= 1e-3
    assert max(c.relative_gap for c in path.certificate_at(random_C(path, 50))) <= path.largest_gap_
    assert abs(path.n_solutions - one.n_solutions) <= 0.3 * one.n_solutions


def test_a_kernel_matrix_and_a_function_are_paths_of_their_points(moons):
    X, y = moons[0][:50], moons[1][:50]
    K = X @ X.T
    found = [
        svm_path(*data, kernel=kernel, C_max=10.0, gap=1e-3)
        for data, kernel in (((K, y), "precomputed"), ((X, y), lambda x, z: x @ z.T))
    ]
    exact = svm_path(X, y, kernel="linear", C_max=10.0)
    for one in found:
        assert one.largest_gap_ <= 1e-3
        assert (
            abs(one.certificate_at(3.0).dual - exact.certificate_at(3.0).dual)
            <= 1e-3 * exact.certificate_at(3.0).primal
        )


def test_what_float64_cannot_prove_is_told(moons):
    X, y = moons[0][:40] + 1e6, moons[1][:40]
    with pytest.warns(RuntimeWarning, match="not within gap=1e-06"):
        path = svm_path(X, y, kernel="poly", gamma=1.0, C_min=1e-25, C_max=1e-24, gap=1e-6)
    assert path.status == "complete"
    assert path.largest_gap_ > 1e-6


def test_rounding_that_twice_the_precision_settles(moons):
    """Of kernel values of 1e10 that differ by 1e5 a plain sum proves less than is asked for."""
    X, y = moons[0][:40] + 1e5, moons[1][:40]
    path = svm_path(X, y, kernel="poly", degree=2, gamma=1.0, C_min=1e-11, C_max=1e-10, gap=1e-3)
    assert path.largest_gap_ <= 1e-3


# Memory: rows on demand.


def test_rows_on_demand_give_the_same_guarantee(monkeypatch):
    X, y = make_moons(700, noise=0.3, random_state=0)
    plain = Gram.full
    monkeypatch.setattr(Gram, "full", lambda gram: plain(gram) if gram.n < 500 else pytest.fail("the whole matrix"))
    path = svm_path(X, y, C_min=1e-2, C_max=10.0, gap=1e-3, cache_size=0.5)
    assert not path.gram.holds_all
    assert max(c.relative_gap for c in path.certificate_at(random_C(path, 30))) <= path.largest_gap_ <= 1e-3


def test_what_is_known_of_a_product_counts_where_it_is_gone_on_from(moons):
    problem = DualProblem.hinge(Gram(moons[0]), 2.0 * moons[1] - 1.0, 1.0)
    beta = approximate.solve(problem).beta
    product = problem.gram.dot(beta)
    rough = replace(problem, known=Known(beta, product + 1e-3, np.full(200, 1e-3)))
    assert (rough._product_error(beta) >= 1e-3).all()
    assert rough.certify(beta).gap + rough.certify(beta).rounding >= problem.certify(beta).gap


# Reading, storing, going on.


def test_a_path_says_what_it_is(path):
    assert isinstance(path, ApproximatePath)
    assert isinstance(path, Path)
    assert path.gap == 1e-3
    assert path.largest.C == path.proved.C
    assert path.n_solutions == path.C.size == len(path)
    assert path.events == []
    assert path.n_events == 0
    assert f"{path.n_solutions} solutions" in repr(path)
    assert "within a relative gap of 0.001" in repr(path)
    assert "ApproximatePath" in path._repr_html_()
    assert path.n_free.shape == path.C.shape


def test_solutions_are_solutions(path, moons):
    problem = path.problem_at(float(path.C[3]))
    assert problem.certify(path.beta_at(path.C[3])).relative_gap <= 0.3e-3
    assert path.bias_at(path.C[3]) == path.bias_in_gram(path.C[3])
    assert abs(path.coefficients_at(3.0).sum()) <= 1e-12


def test_what_only_an_exact_path_knows_is_refused(path):
    with pytest.raises(ValueError, match="only an exact one"):
        path.C_of_nu(0.3)
    with pytest.raises(
        ValueError, match="without gap=, tells which points are on their margins, and with them all solutions"
    ):
        path.solution_set_at(1.0)
    with pytest.raises(ValueError, match="only an exact one"):
        path.not_unique()


def test_stored_and_loaded(path, tmp_path):
    path.save(tmp_path / "path")
    same = ApproximatePath.load(tmp_path / "path", gram=path.gram)
    assert repr(same) == repr(path)
    assert same.largest == path.largest
    np.testing.assert_array_equal(same.coefficients_at([0.1, 3.0]), path.coefficients_at([0.1, 3.0]))
    assert type(Path.load(tmp_path / "path")) is ApproximatePath
    svm_path([[0.0], [1.0]], [0, 1], C_max=1.0).save(tmp_path / "exact")
    with pytest.raises(ValueError, match="holds a path; a ApproximatePath was asked for"):
        ApproximatePath.load(tmp_path / "exact")
    with pytest.raises(ValueError, match="not optimal"):
        ApproximatePath.load(tmp_path / "path", gram=Gram(path.gram.X, gamma=17.0))


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_path_goes_on_to_a_larger_C(moons, tmp_path, is_loaded):
    path = svm_path(*moons, C_min=0.1, C_max=1.0, gap=1e-3)
    assert path.largest_gap_ <= 1e-3
    if is_loaded:
        path.save(tmp_path / "path")
        path = ApproximatePath.load(tmp_path / "path")
    longer = svm_path(*moons, C_min=0.1, C_max=10.0, gap=1e-3, resume=path)
    assert longer is path
    assert longer.C[[0, -1]].tolist() == [0.1, 10.0]
    assert max(c.relative_gap for c in longer.certificate_at(random_C(longer, 100))) <= longer.largest_gap_ <= 1e-3


def test_going_on_otherwise_is_refused(moons, path):
    with pytest.raises(ValueError, match=r"Go on with gap=0\.001"):
        svm_path(*moons, resume=path)
    with pytest.raises(ValueError, match=r"Go on with gap=0\.001"):
        svm_path(*moons, resume=path, gap=1e-4)
    with pytest.raises(ValueError, match=r"is exact; one with gap=0\.001 was asked for"):
        svm_path(*moons, resume=svm_path(*moons, C_max=1.0), gap=1e-3)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"gap": 0.0}, "gap must be"),
        ({"gap": 2.0}, "gap must be below 1"),
        ({"gap": 1e-12}, "at least 1e-09, which an exact path has"),
        ({"gap": 1e-3, "engine": "lp"}, "engine='lp' is an option of exact paths"),
        ({"gap": 1e-3, "max_events": 3}, "max_events=3 is an option of exact paths"),
        ({"gap": 1e-3, "cache_size": -1}, "cache_size must be"),
    ],
)
def test_options_that_mean_nothing(moons, options, match):
    with pytest.raises(ValueError, match=match):
        svm_path(*moons, **options)
    with pytest.raises(ValueError, match=match):
        SVCPath(**options).fit(*moons)


def test_an_indefinite_kernel_is_refused(moons):
    with pytest.raises(ValueError, match="positive semidefinite"):
        svm_path(*moons, kernel="sigmoid", gamma=1.0, coef0=-1.0, gap=1e-3)


# Limits.


def cut_after(monkeypatch, count, by):
    """Let a limit fall in the n-th solution."""
    calls, plain = [], approximate.solve

    def cut(*arguments, **options):
        calls.append(1)
        if len(calls) == count:
            by()
        return plain(*arguments, **options)

    monkeypatch.setattr(approximate, "solve", cut)


def test_ctrl_c_keeps_what_is_proved(moons, monkeypatch):
    cut_after(monkeypatch, 8, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.warns(ConvergenceWarning, match="resume=path"):
        path = svm_path(*moons, C_min=1e-2, C_max=100.0, gap=1e-3)
    monkeypatch.undo()
    assert path.status == "interrupted"
    assert 0.01 < path.C[-1] < 100.0
    assert path.largest_gap_ <= 1e-3
    assert path.certificate_at(path.C[-1]).relative_gap <= 1e-3
    whole = svm_path(*moons, C_min=1e-2, C_max=100.0, gap=1e-3, resume=path)
    assert whole.status == "complete"
    assert max(c.relative_gap for c in whole.certificate_at(random_C(whole, 50))) <= whole.largest_gap_ <= 1e-3


def test_no_time_at_all(moons):
    path = svm_path(*moons, C_min=1e-2, C_max=1.0, gap=1e-3, max_time=0)
    assert path.status == "max_time"
    assert not path.has_segments
    assert "max_time" in repr(path)
    with pytest.raises(ValueError, match="no segment yet"):
        path.coefficients_at(0.1)
    assert svm_path(*moons, C_max=1.0, gap=1e-3, resume=path).status == "complete"


def test_progress_is_shown(moons, capsys):
    svm_path(*moons, C_max=1.0, gap=1e-3, verbose=True)


# The estimator.


@pytest.fixture(scope="module")
def cancer():
    X, y = standardised(load_breast_cancer)
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def model(cancer):
    return SVCPath(C_min=1e-2, C_max=100.0, gap=1e-3).fit(*cancer[:2])


def test_a_model_at_one_C(model, cancer):
    one = model.at(3.0)
    assert isinstance(one, SVC)
    assert one.status_ is Status.CONVERGED
    assert one.tol == 1e-3
    assert one.duality_gap_ <= 1e-3
    np.testing.assert_allclose(one.decision_function(cancer[2]), model.decision_function(cancer[2], C=3.0), atol=1e-12)
    assert model.largest_gap_ <= 1e-3
    assert model.breakpoints_.size == model.path_.n_solutions


def test_in_a_notebook_it_is_not_called_exact(model):
    html = model.path_._repr_html_()
    assert "within a relative gap of 0.001 at every C" in html
    assert f"{model.path_.n_solutions}, and straight lines between them" in html
    assert "exact" not in html
    assert "change sets" not in html


@pytest.mark.parametrize("name", ["at", "predict"])
def test_what_models_have_is_looked_for_at_estimators(model, name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. SVCPath, SVRPath and OneClassSVMPath have it"):
        getattr(model.path_, name)
    assert not hasattr(model.path_, "nothing")


def test_the_score_of_every_C_is_that_of_the_approximate_path(model, cancer):
    X, y = cancer[2:]
    curve = model.score_curve(X, y)
    assert curve.is_exact
    for C in random_C(model.path_, 40):
        assert curve(C) == accuracy_score(y, model.predict(X, C=C))


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_blocks_of_points_give_the_same_scores(model, cancer, monkeypatch, scoring):
    whole = model.score_curve(*cancer[2:], scoring=scoring)
    decisions = model.decision_function(cancer[2], C=[0.1, 2.0])
    monkeypatch.setattr(class_paths, "BLOCK_BYTES", 8 * 150 * 100)
    parts = model.score_curve(*cancer[2:], scoring=scoring)
    np.testing.assert_allclose(parts.C, whole.C, rtol=1e-9)
    np.testing.assert_array_equal(parts.score, whole.score)
    np.testing.assert_allclose(model.decision_function(cancer[2], C=[0.1, 2.0]), decisions, atol=1e-12)


def test_points_that_never_have_a_coefficient_are_left_out(model, cancer):
    used = model.path_.ever_used()
    beta = model.path_.coefficients_at(np.concatenate([random_C(model.path_, 50), model.path_.C]))
    assert set(np.flatnonzero(np.abs(beta).max(axis=0))) <= set(model.path_.points.rows[used])
    assert used.size < model.path_.y.size
    assert next(model._against(cancer[2])()).shape[0] == used.size


def test_several_classes():
    X, y = standardised(load_iris)
    options = {"C_min": 0.1, "C_max": 10.0, "class_weight": "balanced"}
    model, exact = SVCPath(gap=1e-3, **options).fit(X, y), SVCPath(**options).fit(X, y)
    assert model.largest_gap_ <= 1e-3
    assert len(model.paths_) == 3
    for C in (0.15, 1.0, 9.0):
        assert max(c.relative_gap for path in model.paths_ for c in [path.certificate_at(C)]) <= 1e-3
        assert (model.predict(X, C=C) == exact.predict(X, C=C)).mean() >= 0.97
        assert model.score_curve(X, y)(C) == accuracy_score(y, model.predict(X, C=C))
        assert max(certificate.relative_gap for certificate in model.at(C).certificate_) <= 1e-3


@pytest.mark.parametrize("loader", [load_breast_cancer, load_iris])
def test_a_model_is_stored_without_pickle(loader, tmp_path):
    X, y = standardised(loader)
    X, y = X[::3], y[::3]
    model = SVCPath(C_min=0.1, C_max=10.0, gap=1e-2).fit(X, y)
    model.save(tmp_path / "model")
    same = load(tmp_path / "model")
    np.testing.assert_array_equal(same.decision_function(X, C=2.0), model.decision_function(X, C=2.0))
    assert same.largest_gap_ == model.largest_gap_ <= 1e-2
    assert same.paths_[0].certificate_at(2.0).relative_gap <= 1e-2


def test_a_proof_that_counts_less_rounding_than_a_certificate_is_no_other_matrix(moons, monkeypatch):
    path = svm_path(*moons, C_min=0.1, C_max=1.0, gap=1e-2)
    end = path.certificate_at(path.C[-1])
    end = replace(end, rounding=0.05 * end.gap)
    monkeypatch.setattr(ApproximatePath, "certificate_at", lambda self, C: end)
    # What is proved may be as small as the gap itself, where the worst C is the last.
    path._largest = LargestGap(end.gap / end.primal, float(path.C[-1]))
    assert path.proved.gap < end.relative_gap
    assert path.is_optimal_at_end()
    path._largest = LargestGap(0.9 * path.proved.gap, float(path.C[-1]))
    assert not path.is_optimal_at_end()


def test_the_worst_of_all_lines_is_kept(path):
    assert path._largest == max(path._largest, LargestGap(0.0, 1.0))
    assert path.C[0] <= path.largest.C <= path.C[-1]
    at = path.certificate_at(path.largest.C)
    assert at.gap <= path.largest_gap_ * at.primal
    assert at.relative_gap >= 0.5 * path.largest_gap_  # its own bias is a little better than the line's


@pytest.mark.parametrize(("excess", "most"), [(1e-13, 1), (0.05, 40), (20.0, 200)])
def test_the_sum_of_a_start_is_put_right_by_few_points(path, excess, most):
    """Points at a bound stay there, and so do most others: each that moves may take a kernel row."""
    walk = approximate.Walk(path, 1e-9)
    y, w = walk.y, walk.w
    a = 0.5 * w
    a[::5], a[1::5] = 0.0, w[1::5]
    is_free = (a > 0.0) & (a < w)
    a[is_free & (y > 0)] += (excess - y @ a) / np.count_nonzero(is_free & (y > 0))
    assert (np.abs(a - 0.5 * w)[is_free] < 0.5 * w[is_free]).all()
    found = walk._feasible(y * a)
    assert abs(found.sum()) <= 1e-15 * y.size * w.sum()
    np.testing.assert_array_equal(np.clip(y * found, 0.0, w), y * found)
    np.testing.assert_array_equal(found[~is_free], (y * a)[~is_free])
    assert np.count_nonzero(found != y * a) <= min(most, np.count_nonzero(is_free))
