"""Regression for every C and for every epsilon, and one class for every nu: exact, at their limits, cut short and stored."""

import math
import os
import signal

import naive
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from zerogap import DualProblem, Gram, NuSVR, Path, RelativeGap, limits, one_class_path, solve, svm_path, svr_path
from zerogap.kernels import RBF
from zerogap.path import EpsilonEvent, EpsilonPath, Event, NuEvent, NuPath, RegressionPath
from zerogap.path import lines as lines_module
from zerogap.path.events import pass_ordinary
from zerogap.path.screening import Screening
from zerogap.path.single import SingleEngine
from zerogap.progress import PathProgress

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.normal(size=40)
CLASSES = (RegressionPath, EpsilonPath, NuPath)
FIXED = (0.5, 1e-3)  # C and epsilon of the paths over the other


def over_C(X=X, y=y, **options):
    return svr_path(X, y, **{"epsilon": FIXED[1], "C_min": 1e-3, "C_max": 100.0, **options})


def over_epsilon(X=X, y=y, **options):
    return svr_path(X, y, over="epsilon", **{"C": FIXED[0], **options})


def over_nu(X=X, y=y, **options):
    return one_class_path(X, **options)


FOLLOW = {"C": over_C, "epsilon": over_epsilon, "nu": over_nu}
SHORTER = {"C": {"C_max": 0.3}, "epsilon": {"epsilon_min": 0.4}, "nu": {"nu_min": 0.5}}


@pytest.fixture(scope="module")
def paths():
    return {name: follow() for name, follow in FOLLOW.items()}


def assert_exact(path, count=20, *, at_breakpoints=True):
    """Complete, without a backup, and certified at breakpoints and in between."""
    assert path.status == "complete"
    assert path.n_backups == 0
    assert path.largest_gap_ <= 1e-9
    for values in (path.value_of(path.lam)[:: 1 if at_breakpoints else 20], naive.values_along(path, count)):
        assert max(path.relative_gap(*pair) for pair in zip(path.certificate_at(values), values, strict=True)) <= 1e-9


@pytest.mark.parametrize("over", FOLLOW)
def test_it_is_what_solve_finds(paths, over):
    path = paths[over]
    assert_exact(path)
    for value in naive.values_along(path, 3):
        problem, certificate, beta = path.problem_at(value), path.certificate_at(value), path.beta_at(value)
        solution = solve(problem, stop=RelativeGap(1e-9))
        # Both are above the least objective by no more than their gaps, and half the squared distance of the normal vectors
        # from the best one is no more than that; decision values of an rbf kernel differ by no more than the vectors.
        gaps = [c.gap + c.rounding for c in (certificate, solution.certificate)]
        rounding = naive.sum_rounding(
            problem.n**2, float(np.abs(beta).sum() ** 2), float(np.abs(problem.target @ beta))
        )
        assert abs(naive.objective(problem, beta) - naive.objective(problem, solution.beta)) <= sum(gaps) + rounding
        apart = np.abs(path.gram.full() @ (beta - solution.beta)).max()
        assert apart <= sum(math.sqrt(2.0 * gap) for gap in gaps) + 2.0 * problem.rounding(beta)


@pytest.mark.covering
@pytest.mark.parametrize("over", FOLLOW)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_tiny_problems_have_the_objective_of_a_general_solver(over, kernel):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        points, targets = rng.integers(0, 3, size=(7, 2)).astype(float), rng.integers(-2, 3, size=7).astype(float)
        weight = rng.integers(1, 3, size=7).astype(float)
        path = FOLLOW[over](points, targets, kernel=kernel, sample_weight=weight)
        for value in naive.values_along(path, 2, seed):
            problem = path.problem_at(value)
            reference = naive.reference_objective(problem)
            beta = path.beta_at(value)
            assert abs(naive.objective(problem, beta) - reference) <= 2e-8 * max(1.0, abs(reference))
            assert (beta >= problem.lower).all()
            assert (beta <= problem.upper).all()


def grid_problem(seed):
    """Few places, many rows at each, targets that contradict each other."""
    rng = np.random.default_rng(seed)
    n, d, top = int(rng.integers(2, 40)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    return rng.integers(0, top + 1, size=(n, d)).astype(float), rng.integers(-3, 4, size=n).astype(float)


def assert_grid_problem_is_exact(over, seed):
    options = {"kernel": ("linear", "rbf")[seed % 2]}
    if over == "C":
        options["epsilon"] = (0.0, 0.1, 0.5, 1.0)[seed % 4]
    path = FOLLOW[over](*grid_problem(seed), **options)
    assert_exact(path, 5)


@pytest.mark.covering
@pytest.mark.parametrize("over", FOLLOW)
@pytest.mark.parametrize("seed", range(4))
def test_duplicates_with_targets_that_contradict_each_other(over, seed):
    assert_grid_problem_is_exact(over, seed)


@pytest.mark.long
@pytest.mark.parametrize("over", FOLLOW)
@pytest.mark.parametrize("start", range(4, 204, 50))
def test_many_problems_with_duplicates(over, start):
    for seed in range(start, start + 50):
        assert_grid_problem_is_exact(over, seed)


# Limits.


def test_for_small_C_the_median_is_left():
    path = over_C(X[:9], y[:9], epsilon=0.0, C_min=1e-9, C_max=1e-3)
    beta, bias = path.coefficients_at(1e-9), path.bias_at(1e-9)
    # The kernel is at most one, so no decision value is farther from the bias than the sum of all caps.
    assert abs(bias - np.median(y[:9])) <= 9 * 1e-9
    sides = np.sign(y[:9] - np.median(y[:9]))
    np.testing.assert_allclose(beta, 1e-9 * sides, rtol=0, atol=1e-9 * 1e-12)


def test_without_a_tube_coefficients_pass_zero():
    path = over_C(epsilon=0.0)
    assert_exact(path)
    assert {event.target for event in path.events} <= {"lower cap", "on target", "upper cap"}
    beta = path.coefficients_at(path.C)
    assert (np.diff(np.sign(beta), axis=0) != 0).any()


@pytest.mark.parametrize("wider", [1.0, 2.0])
def test_a_tube_that_holds_all_targets_has_no_support_vectors(wider):
    half = 0.5 * float(np.ptp(y))
    path = over_C(epsilon=half * wider)
    assert path.status == "complete"
    assert path.n_events == 0
    assert path.largest_gap_ <= 1e-9
    for C in (1e-3, 1.0, 100.0):
        assert not path.coefficients_at(C).any()
        assert abs(path.bias_at(C) - 0.5 * (y.min() + y.max())) <= half * (wider - 1.0) + 1e-15
    tubes = over_epsilon(epsilon_max=3.0 * half)
    # At the breakpoint itself a coefficient is known to a few units in the last place of u in u + lam v, and u is about 2.
    np.testing.assert_allclose(tubes.coefficients_at(half * wider), 0.0, rtol=0, atol=0.0 if wider > 1.0 else 1e-15)
    assert tubes.bias_at(3.0 * half) == pytest.approx(0.5 * (y.min() + y.max()), abs=1e-15)
    narrower = tubes.coefficients_at(0.99 * half)
    assert narrower[y.argmin()] < 0.0 < narrower[y.argmax()]


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "stored"])
def test_a_path_that_begins_above_all_targets(stored):
    half = 0.5 * float(np.ptp(y))
    path = over_epsilon(epsilon_max=3.0 * half, epsilon_min=1.5 * half)
    assert path.status == "complete"
    assert path.n_events == 0
    assert not path.n_free.any()
    if stored:
        path = EpsilonPath.from_dict(path.to_dict())
    whole = over_epsilon(resume=path)
    assert_exact(whole)
    sides = {event.index: event.target for event in whole.events if event.epsilon >= half * (1.0 - 1e-9)}
    assert (sides[y.argmin()], sides[y.argmax()]) == ("lower margin", "upper margin")
    np.testing.assert_allclose(whole.coefficients_at(0.1), over_epsilon().coefficients_at(0.1), rtol=0, atol=1e-9)


def test_where_all_are_capped():
    path = over_epsilon(X[:10], y[:10], C=1e-3)
    beta = path.coefficients_at(0.0)
    np.testing.assert_allclose(np.abs(beta), 1e-3, rtol=0, atol=1e-15)
    assert_exact(path)
    all_of_one_class = over_nu(X[:10])
    np.testing.assert_allclose(all_of_one_class.coefficients_at(1.0), 1.0, rtol=0, atol=1e-14)


@pytest.mark.covering
@pytest.mark.parametrize("over", FOLLOW)
@pytest.mark.parametrize("rows", [[0], [0, 1], [0, 0, 0]], ids=["one point", "two points", "one point thrice"])
def test_very_few_points(over, rows):
    path = FOLLOW[over](X[rows], y[rows])
    assert_exact(path)
    beta = path.coefficients_at(naive.values_along(path, 2))
    assert np.isfinite(beta).all()
    if over != "nu" and len(set(rows)) == 1:
        assert not beta.any()
        assert path.bias_at(naive.values_along(path, 1)[0]) == y[rows[0]]


def test_one_class_at_the_origin():
    path = one_class_path(np.zeros((5, 1)), kernel="linear")
    assert_exact(path)
    assert path.bias_at(0.3) == 0.0


@pytest.mark.parametrize("follow", [over_C, over_epsilon])
def test_a_constant_target(follow):
    path = follow(X, np.full(40, 3.5))
    assert path.status == "complete"
    values = naive.values_along(path, 3)
    assert not path.coefficients_at(values).any()
    assert all(abs(bias - 3.5) <= (FIXED[1] if follow is over_C else values.max()) for bias in path.bias_at(values))


@pytest.mark.parametrize("over", FOLLOW)
def test_weights_are_repetitions(over):
    weight = np.arange(40) % 3
    rows = np.repeat(np.arange(40), weight)
    weighted, repeated = FOLLOW[over](sample_weight=weight, gamma=0.4), FOLLOW[over](X[rows], y[rows], gamma=0.4)
    for value in naive.values_along(weighted, 3):
        together = np.bincount(rows, repeated.coefficients_at(value), 40)
        np.testing.assert_allclose(
            weighted.coefficients_at(value), together, rtol=0, atol=1e-12 * np.abs(together).max()
        )
        assert weighted.bias_at(value) == pytest.approx(repeated.bias_at(value), abs=1e-12)


@pytest.mark.parametrize("over", ["C", "epsilon"])
def test_targets_of_any_size_and_place(over):
    """With targets, epsilon and C times a power of two and targets shifted by a whole number all numbers are the same."""
    targets = np.round(y * 256.0) / 256.0  # so that a shift loses nothing
    plain = svr_path(X, targets, over=over, epsilon=0.125, C=0.5, C_min=0.25, C_max=8.0)
    large = svr_path(
        X, 1024.0 * (targets + 64.0), over=over, epsilon=128.0, C=512.0, C_min=256.0, C_max=8192.0, epsilon_min=0.0
    )
    value = 2.0 if over == "C" else 0.25
    np.testing.assert_allclose(
        large.coefficients_at(1024.0 * value), 1024.0 * plain.coefficients_at(value), rtol=1e-10, atol=1e-9
    )
    assert large.bias_at(1024.0 * value) == pytest.approx(1024.0 * (plain.bias_at(value) + 64.0), rel=1e-12)


def test_targets_whose_squares_are_beyond_float64():
    huge, usual = 2.0**996, over_epsilon(fit_intercept=False)
    path = over_epsilon(y=huge * y, fit_intercept=False)
    assert path.largest_gap_ <= 1e-9
    assert path.floor_at(0.3 * huge) == pytest.approx(huge * usual.floor_at(0.3), rel=1e-14)
    assert path.relative_gap(path.certificate_at(0.3 * huge), 0.3 * huge) <= 1e-9


def test_nu_of_targets_whose_squares_are_beyond_float64():
    """With a kernel of the same unit coefficients have none."""
    huge = 2.0**520
    usual, model = (NuSVR(kernel=unit * RBF(0.5)).fit(X, unit * y) for unit in (1.0, huge))
    assert model.duality_gap_ <= model.tol
    assert model.nu_ == pytest.approx(usual.nu_)
    assert model.epsilon_ == pytest.approx(huge * usual.epsilon_)


def test_both_paths_of_a_regression_meet():
    at = over_C().coefficients_at(FIXED[0]), over_epsilon().coefficients_at(FIXED[1])
    np.testing.assert_allclose(*at, rtol=0, atol=1e-9)


# Names.


@pytest.mark.parametrize("over", FOLLOW)
def test_events_and_breakpoints_are_called_by_what_the_path_runs_over(paths, over):
    path = paths[over]
    assert type(path) is CLASSES[list(FOLLOW).index(over)]
    values = getattr(path, over)
    np.testing.assert_array_equal(values, path.value_of(path.lam))
    kind = {"C": Event, "epsilon": EpsilonEvent, "nu": NuEvent}[over]
    events = path.events
    assert len(events) == path.n_events > 20
    assert all(type(event) is kind for event in events)
    assert f"{kind.__name__}({over}=" in repr(events[0])
    assert all(
        np.abs(values / getattr(event, over) - 1.0).min() <= 1e-9 for event in events if getattr(event, over) > 1e-6
    )
    ordered = np.diff(values)
    assert (ordered > 0.0).all() if over == "C" else (ordered < 0.0).all()
    assert f"{type(path).__name__}(complete: {over} from" in repr(path)
    html = path._repr_html_()
    assert f"over every {over}" in html
    assert type(path).__name__ in html
    gap, where = path.largest
    assert (gap, where) == (path.largest_gap_, getattr(path.largest, over))
    assert values.min() <= where <= values.max()


def test_a_path_over_epsilon_or_nu_has_no_C(paths):
    with pytest.raises(
        AttributeError, match=r"runs over epsilon: its breakpoints are path.epsilon, and its C is path.cost"
    ):
        _ = paths["epsilon"].C
    with pytest.raises(AttributeError, match=r"runs over nu: its breakpoints are path.nu"):
        _ = paths["nu"].C
    assert paths["epsilon"].cost == FIXED[0]
    assert paths["C"].epsilon == FIXED[1]


def test_sets_are_those_of_the_coefficients(paths):
    path = paths["C"]
    sets = dict.fromkeys(range(40), "inside")
    for event in path.events:
        assert sets[event.index] == event.origin or event.origin != "inside"
        sets[event.index] = event.target
    beta, C = path.coefficients_at(100.0), 100.0
    moved = {event.index for event in path.events}
    for k in moved:
        is_at_cap, side = abs(beta[k]) >= C * (1 - 1e-9), "upper" if beta[k] > 0 else "lower"
        expected = f"{side} cap" if is_at_cap else "inside" if abs(beta[k]) <= 1e-9 else f"{side} margin"
        assert sets[k] == expected


@pytest.mark.parametrize("over", FOLLOW)
def test_where_the_solution_is_not_unique(over):
    """Two rows at one place, not merged, share their coefficient in many ways while they are on the margin."""
    rows = [*range(7), 3, 5]
    path = FOLLOW[over](X[rows], y[rows], merge_duplicates=False)
    found = path.not_unique()
    assert found
    begin, end, dimension = found[0]
    assert dimension >= 1
    several = path.solution_set_at(path._between(begin, end))
    assert several.dimension == dimension


@pytest.mark.parametrize("over", FOLLOW)
def test_progress_is_shown(paths, over, monkeypatch, capsys):
    monkeypatch.setattr("zerogap.progress.bar_delay", lambda: 0.0)
    path = FOLLOW[over](max_events=0, verbose=True)
    progress = PathProgress(path, paths[over].value_of(paths[over].lam[-1]))
    progress(20, 0.5, 3)
    progress.close()
    way = {"C": math.log10(0.5 / 1e-3) / 5.0, "epsilon": 1.0 - 0.5 / path.value_of(path.lam[0]), "nu": 0.5 / 0.99}[over]
    assert f"{100 * way:3.0f}%" in (shown := capsys.readouterr().err)
    assert f"{over} 0.5, 20 events, elbow 3" in shown


# Limits of the run, storing, resuming.


@pytest.mark.covering
@pytest.mark.parametrize("over", FOLLOW)
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "stored"])
def test_a_path_that_was_ended_goes_on(paths, over, stored, tmp_path):
    whole = paths[over]
    path = FOLLOW[over](max_events=7)
    assert path.status == "max_events"
    assert path.counts.events == 7
    if stored:
        path.save(tmp_path / "path")
        path = type(path).load(tmp_path / "path")
    again = FOLLOW[over](resume=path)
    assert again is path
    assert_exact(again, 5, at_breakpoints=False)
    values = naive.values_along(whole, 3)
    np.testing.assert_allclose(again.coefficients_at(values), whole.coefficients_at(values), rtol=0, atol=1e-9)


@pytest.mark.parametrize("over", FOLLOW)
def test_no_time_at_all(over):
    path = FOLLOW[over](max_time=0.0)
    assert path.status == "max_time"
    with pytest.raises(ValueError, match=rf"no segment yet: it ended \(max_time\).*{over}="):
        path.coefficients_at(1.0)
    assert "no segment yet" in path._repr_html_()
    assert_exact(FOLLOW[over](resume=path), 5, at_breakpoints=False)


@pytest.mark.parametrize("over", FOLLOW)
def test_ctrl_c(over, monkeypatch):
    plain, calls = SingleEngine.steps, []

    def pressed(*arguments):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(*arguments)

    monkeypatch.setattr(SingleEngine, "steps", pressed)
    function, data = ("one_class_path", "X") if over == "nu" else ("svr_path", "X, y")
    with pytest.warns(
        ConvergenceWarning, match=rf"{function} was stopped .*with {function}\({data}, \.\.\., resume=path\)"
    ) as said:
        path = FOLLOW[over]()
    assert path.status == "interrupted"
    assert f"ends at {over}=" in str(said[0].message) or "has not got beyond its start" in str(said[0].message)
    assert "SVCPath" not in str(said[0].message)
    monkeypatch.undo()
    limits.heard()
    assert_exact(FOLLOW[over](resume=path), 5, at_breakpoints=False)


@pytest.mark.parametrize("over", FOLLOW)
def test_a_longer_path(paths, over):
    path = FOLLOW[over](**SHORTER[over])
    assert path.status == "complete"
    value = 1.5 * path.value_of(path.lam[-1]) if over == "C" else 0.5 * path.value_of(path.lam[-1])
    with pytest.raises(ValueError, match=rf"This path runs from {over}=.* to {over}=.*; got {over}=.*wider range"):
        path.coefficients_at(value)
    longer = FOLLOW[over](resume=path)
    np.testing.assert_allclose(longer.coefficients_at(value), paths[over].coefficients_at(value), rtol=0, atol=1e-9)


@pytest.mark.parametrize("over", FOLLOW)
def test_stored_and_read(paths, over, tmp_path):
    path = paths[over]
    path.save(tmp_path / "path")
    same = type(path).load(tmp_path / "path.npz", gram=path.gram)
    assert type(same) is type(path)
    assert repr(same) == repr(path)
    assert same.events == path.events
    for value in naive.values_along(path, 3):
        np.testing.assert_array_equal(same.coefficients_at(value), path.coefficients_at(value))
        assert same.bias_at(value) == path.bias_at(value)
        assert same.certificate_at(value) == path.certificate_at(value)
    assert same.largest_gap_ == path.largest_gap_
    with pytest.raises(ValueError, match="With this gram the path is not optimal"):
        type(path).load(tmp_path / "path", gram=Gram(X, gamma=3.0))


@pytest.mark.parametrize("over", FOLLOW)
def test_a_file_of_another_kind_is_refused(paths, over, tmp_path):
    path = paths[over]
    path.save(tmp_path / "path")
    same = Path.load(tmp_path / "path")  # which reads all of them
    assert type(same) is type(path)
    assert repr(same) == repr(path)
    for other in set(CLASSES) - {type(path)}:
        with pytest.raises(ValueError, match=rf"holds a {type(path).__name__}; a \w+ was asked for"):
            other.load(tmp_path / "path")
        with pytest.raises(ValueError, match=rf"arrays of a {type(path).__name__}; a {other.kind} was asked for"):
            other.from_dict(path.to_dict())


def test_paths_of_two_classes_stored_before_there_were_kinds():
    labels = np.where(y > 0, 1, -1)
    path = svm_path(X, labels, C_min=0.1, C_max=1.0)
    arrays = path.to_dict()
    del arrays["kind"]
    np.testing.assert_array_equal(Path.from_dict(arrays).coefficients_at(0.5), path.coefficients_at(0.5))
    with pytest.raises(ValueError, match="arrays of a path; a NuPath was asked for"):
        NuPath.from_dict(arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over": "gamma"}, "Unknown over 'gamma'. Choose one of 'C', 'epsilon'"),
        ({"epsilon": -0.1}, "epsilon must be"),
        ({"C_min": 0.0}, "C_min must be"),
        ({"C_min": 2.0, "C_max": 1.0}, "C_min must be below C_max"),
        ({"C_max": np.inf}, "C_max must be"),
        ({"max_events": -1}, "max_events must be a whole number"),
        ({"max_time": -1.0}, "max_time"),
        ({"over": "epsilon", "C": 0.0}, "C must be"),
        ({"over": "epsilon", "C": np.nan}, "C must be"),
        ({"over": "epsilon", "epsilon_min": 1.0, "epsilon_max": 1.0}, "epsilon_min must be below epsilon_max"),
        ({"over": "epsilon", "epsilon_min": -1.0}, "epsilon_min must be"),
        ({"over": "epsilon", "epsilon_max": np.inf}, "epsilon_max must be"),
        ({"y": y[:-1]}, "one number for each of the 40 points"),
        ({"y": np.where(y > 1, np.nan, y)}, "NaN or infinity"),
        ({"X": X[:0], "y": y[:0]}, "0 sample"),
        ({"sample_weight": np.zeros(40)}, "weight"),
        ({"sample_weight": -np.ones(40)}, "weight"),
        ({"kernel": "sigmoid", "gamma": 5.0, "coef0": -3.0}, r"svr_path needs a positive semidefinite .* or use SVR"),
        ({"kernel": "precomputed"}, "square"),
    ],
)  # fmt: skip
def test_bad_input_of_a_regression(change, message):
    with pytest.raises(ValueError, match=message):
        svr_path(**{"X": X, "y": y, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nu_min": 0.0}, "nu_min must be"),
        ({"nu_max": 1.5}, "nu_max at most 1"),
        ({"nu_min": 0.5, "nu_max": 0.5}, "nu_min must be below nu_max"),
        ({"X": np.where(X > 1, np.inf, X)}, "infinity"),
        ({"sample_weight": np.ones(3)}, "weight"),
        ({"max_events": 1.5}, "max_events must be a whole number"),
    ],
)
def test_bad_input_of_one_class(change, message):
    with pytest.raises(ValueError, match=message):
        one_class_path(**{"X": X, **change})


def test_targets_that_are_no_numbers():
    with pytest.raises(TypeError, match="one number for each of the 40 points; it begins with 'a'"):
        svr_path(X, ["a"] * 40)


def test_what_cannot_be_resumed(paths):
    with pytest.raises(TypeError, match=r"resume= takes the RegressionPath.*got EpsilonPath"):
        over_C(resume=paths["epsilon"])
    with pytest.raises(TypeError, match=r"resume= takes the NuPath.*got RegressionPath"):
        over_nu(resume=paths["C"])
    with pytest.raises(TypeError, match=r"got Path"):
        over_C(resume=svm_path(X, np.where(y > 0, 1, -1), C_max=0.1))
    with pytest.raises(ValueError, match=r"was made with epsilon=0.001, not with 0.2"):
        over_C(epsilon=0.2, resume=paths["C"])
    with pytest.raises(ValueError, match=r"was made with C=0.5, not with 0.7"):
        over_epsilon(C=0.7, resume=paths["epsilon"])
    for over, follow in FOLLOW.items():
        with pytest.raises(ValueError, match="is not what the path of resume= was made from"):
            follow(X + 1e-9, resume=paths[over])
        with pytest.raises(ValueError, match="was made with kernel"):
            follow(gamma=0.123, resume=paths[over])
    with pytest.raises(ValueError, match="y is not what the path of resume= was made from"):
        over_C(y=y + 1e-9, resume=paths["C"])


def test_one_class_is_that_of_the_problem():
    path = over_nu(sample_weight=np.arange(40) % 3 + 1.0)
    problem = DualProblem.one_class(path.gram, 0.3, sample_weight=path.points.weight)
    beta = path.beta_at(0.3)
    assert beta.sum() == pytest.approx(problem.total, rel=1e-14)
    inside = path.gram.full() @ beta + path.bias_at(0.3)
    assert (
        path.points.weight[inside < -1e-9].sum() <= 0.3 * path.points.weight.sum()
    )  # at most nu of the weight is outside
    assert path.points.weight[beta > 0].sum() >= 0.3 * path.points.weight.sum()  # at least nu of it has coefficients


def test_screening_again_in_the_compiled_loop_misses_no_event_over_epsilon(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (300, 2))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(300)
    passed = []

    def counted(*arguments):
        log, count, moving, is_special = pass_ordinary(*arguments)
        passed.append((count, moving.kept.n_candidates, moving.kept.moves))
        return log, count, moving, is_special

    with monkeypatch.context() as patch:
        patch.setattr(lines_module, "pass_ordinary", counted)
        path = svr_path(X, y, over="epsilon", gamma=1.0)
    count, candidates, moves = map(np.array, zip(*passed, strict=True))
    assert candidates.min() < 200
    assert (moves < count).any()  # all were evaluated again on the way
    # Step by step, with all points looked at for every event.
    monkeypatch.setattr(SingleEngine, "_pass_ordinary", lambda self, lam_end, most: None)
    monkeypatch.setattr(Screening, "screen", lambda self, lam, move: None)
    slow = svr_path(X, y, over="epsilon", gamma=1.0)
    assert [event[1:] for event in path.events] == [event[1:] for event in slow.events]
    np.testing.assert_allclose(path.lam, slow.lam, rtol=1e-9)
    assert path.largest_gap_ <= 1e-9
