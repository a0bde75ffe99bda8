"""Where the bias is not unique a path has the middle of all that are optimal, at every C, as solvers for one C have it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from zerogap import SVC, SVR, SVCPath, SVRPath, svm_path, svr_path
from zerogap.path.middle import envelope
from zerogap.path.proof import Proof
from zerogap.path.record import Record, _bridged

KINDS = ("two classes", "three classes", "C", "epsilon")
QUICK, LONG = (3, 4, 5), 200  # seeds; those have a bias that is not unique
WIDE = 1e-6  # an interval of the bias that is more than rounding


def drawn(kind, seed):
    """Return a path of a few points on a coarse grid, most of which tie, what fits one model, and its paths."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n, d, reach = (int(rng.integers(*ends)) for ends in ((3, 15), (1, 4), (1, 4)))
    X = rng.integers(-reach, reach + 1, size=(n, d)) * (rng.random((n, d)) < rng.choice([0.5, 1.0]))
    options = {"kernel": str(rng.choice(["rbf", "linear", "poly"])), "gamma": 0.5, "coef0": 1.0, "degree": 2}
    weight = rng.integers(1, 4, size=n).astype(float) if rng.random() < 0.4 else np.ones(n)
    if "classes" in kind:
        k = 2 if kind == "two classes" else 3
        y = np.arange(n) % k if rng.random() < 0.7 else np.r_[np.arange(k), rng.integers(0, k, size=n - k)]
        path = SVCPath(C_min=0.01, C_max=100.0, **options).fit(X, y, weight)
        return rng, path, path.paths_, lambda C: SVC(C, tol=1e-10, **options).fit(X, y, weight)
    y = rng.integers(0, rng.integers(2, 5), size=n).astype(float)
    if kind == "C":
        epsilon = float(rng.choice([0.0, 0.1, 0.3]))
        path = SVRPath(epsilon=epsilon, C_min=0.01, C_max=100.0, **options).fit(X, y, weight)
        return rng, path, [path.path_], lambda C: SVR(C, epsilon, tol=1e-10, **options).fit(X, y, weight)
    C = float(rng.choice([0.01, 0.1, 1.0, 10.0]))
    path = SVRPath(over="epsilon", C=C, **options).fit(X, y, weight)
    return rng, path, [path.path_], lambda epsilon: SVR(C, epsilon, tol=1e-10, **options).fit(X, y, weight)


def some_values(rng, paths, size=3):
    """Return values of the parameter that all paths have: random ones, and breakpoints, kinks among them."""
    edges = [path.value_of(path.lam) for path in paths]
    low, high = max(min(x) for x in edges), min(max(x) for x in edges)
    among = paths[0].value_of(rng.uniform(paths[0].lam[-1], paths[0].lam[0], size))
    spread = np.exp(rng.uniform(np.log(max(low, 1e-3)), np.log(max(high, 1e-3)), size))
    return np.clip(np.concatenate([among, spread, rng.choice(np.concatenate(edges), 2 * size)]), low, high)


def check(kind, seed):
    """Compare the biases of a path with those of single fits; return how many of them are in an interval."""
    rng, path, paths, fitted = drawn(kind, seed)
    found = 0
    for value in some_values(rng, paths):
        model, single = path.at(value), fitted(value)
        several = zip(np.atleast_1d(single.certificate_), model.intercept_, single.intercept_, strict=True)
        for certificate, ours, theirs in several:
            low, high = certificate.bias_interval
            if high - low > WIDE:  # else it is unique, and SMO knows it to the root of its gap
                found += 1
                assert abs(ours - theirs) <= 1e-9 * (1.0 + abs(theirs)), (seed, value)
    assert path.largest_gap_ <= 1e-9
    return found


@pytest.mark.filterwarnings("ignore:SVR stopped")  # where the tube holds nearly all points the objective is nearly zero
@pytest.mark.parametrize("kind", KINDS)
def test_the_bias_of_a_path_is_that_of_single_fits(kind):
    assert sum(check(kind, seed) for seed in QUICK) >= 2


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:SVR stopped")
@pytest.mark.parametrize("kind", KINDS)
def test_the_bias_of_many_paths_is_that_of_single_fits(kind):
    assert sum(check(kind, seed) for seed in range(LONG) if seed not in QUICK) > 100


OPTIONS = {"kernel": "linear", "sample_weight": np.array([1.0, 2.0, 1.0, 1.0, 2.0]), "C_min": 1e-4}
X, Y = np.array([[2.0], [2.0], [5.0], [4.0], [4.0]]), np.array([-1, 1, -1, 1, -1])


def middle(beta, C):
    """Return the middle of all optimal biases, if no coefficient is between its bounds; else None."""
    cap, r = C * OPTIONS["sample_weight"], Y - X @ (beta @ X)
    if ((np.abs(beta) > 1e-9 * cap) & (np.abs(beta) < (1.0 - 1e-9) * cap)).any():
        return None
    is_low = np.abs(beta) < 0.5 * cap
    can_rise = is_low == (Y > 0)
    return 0.5 * (r[can_rise].max() + r[~can_rise].min())


def test_a_kink_is_a_breakpoint_without_an_event():
    path = svm_path(X, Y, C_max=10.0, **OPTIONS)
    assert path.C[1] == pytest.approx(1.0 / 3.0, rel=1e-14)  # from where on another point is the nearest
    first = path.events[0].C
    assert first == pytest.approx(0.5, rel=1e-14)
    for C in np.geomspace(1e-4, 0.499, 50):
        bias = middle(path.coefficients_at(C), C)
        assert path.bias_at(C) == pytest.approx(bias, abs=1e-13)
    assert len(path.to_dict()["v0"]) == len(path) - 1 == len(path.n_free) - 1


@pytest.mark.parametrize("cut", [0.1, 1.0 / 3.0, 0.4, 0.5, 1.0])
def test_a_path_in_two_parts_has_the_same_biases(cut):
    whole, part = svm_path(X, Y, C_max=10.0, **OPTIONS), svm_path(X, Y, C_max=cut, **OPTIONS)
    assert part.bias_at(cut) == pytest.approx(whole.bias_at(cut), abs=1e-13)
    both = svm_path(X, Y, C_max=10.0, resume=part, **OPTIONS)
    assert both.n_unproved == 0
    assert both.largest_gap_ <= 1e-12
    C = np.concatenate([np.geomspace(1e-4, 10.0, 40)[1:-1], whole.C])
    np.testing.assert_allclose(both.bias_at(C), whole.bias_at(C), atol=1e-13)


def test_of_a_tube_the_middle_has_many_kinks():
    """At a small C half of the targets are above the constant, half below: the interval is that of a median, which moves."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    path = svr_path(X, y, epsilon=0.0, C_min=1e-4, C_max=1.0)
    for C in np.geomspace(1e-4, 1.0, 30):
        single = SVR(C, 0.0, tol=1e-12).fit(X, y)
        low, high = single.certificate_.bias_interval
        if high - low > WIDE:
            assert path.bias_in_gram(C) == pytest.approx(float(single.intercept_[0]), abs=1e-10)


def test_the_envelope_is_the_largest_of_all_lines():
    rng = np.random.default_rng(0)
    for seed in range(20):
        constant, slope = rng.integers(-4, 5, size=(2, 1 + seed)).astype(float)
        found = envelope(constant, slope, 3.0, 0.5)
        for lam in rng.uniform(0.5, 3.0, 20):
            a, b = found.from_lam(lam)
            assert a + lam * b == pytest.approx((constant + lam * slope).max(), abs=1e-13)
        assert (np.diff(found.slope) < 0).all()


def test_what_is_between_two_level_segments_is_gone_along(monkeypatch):
    """Else b jumps from one to the next, so that no decision value but those of the points that move is known well enough."""
    X, y = load_digits(return_X_y=True)
    is_asked, (X, y) = [], (X[y < 2], y[y < 2])
    few = min(np.count_nonzero(y == 0), np.count_nonzero(y == 1))
    rows = np.concatenate([np.flatnonzero(y == k)[:few] for k in (0, 1)])  # as many of either: at first all are capped
    again, sharpened = Record._prove_anew, Proof._sharpened

    def prove_anew(self, some):
        with monkeypatch.context() as patch:
            patch.setattr(Proof, "_sharpened", lambda *of: is_asked.append(of) or sharpened(*of))
            again(self, some)
        proved.append(some)

    proved = []
    monkeypatch.setattr(Record, "_prove_anew", prove_anew)
    path = svm_path(X[rows], y[rows], C_min=1e-2)
    assert len(proved[0]) > 10
    assert np.diff(proved[0]).max() > 1
    assert not is_asked
    assert path.largest_gap_ <= 1e-9


def test_far_from_each_other_level_segments_are_not_joined():
    assert list(_bridged([3, 4, 7, 80, 82])) == [3, 4, 5, 6, 7, 80, 81, 82]
    assert list(_bridged([5])) == [5]
