"""Cases of the campaign in benchmarks/fuzz.py (long: 500), and tests of its evaluation: it has to see what is false."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import zerogap

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from fuzzing.checks import Checker, check_certificate, check_feasible, refusal
from fuzzing.draw import KINDS, Case, draw, formulated
from fuzzing.pool import campaign
from fuzzing.run import run, write_snippet
from fuzzing.truth import Digits, KernelSpec, Long, evaluate

SEED, QUICK, CASES, CHUNK = 2026, 25, 500, 25
LIMIT = 60.0  # seconds of processor time; a case needs some hundredths, once its code is compiled


@pytest.mark.parametrize(
    "first",
    [
        *range(0, QUICK, CHUNK),
        *(pytest.param(first, marks=pytest.mark.long) for first in range(QUICK, CASES, CHUNK)),
    ],
)
def test_nothing_is_false_hangs_or_breaks(first):
    failed = [o for o in (run(SEED, number, limit=LIMIT) for number in range(first, first + CHUNK)) if o.failures]
    assert not failed, "\n\n".join(str(outcome.snippet) for outcome in failed)


# The evaluation.


def _two_points(C=10.0, **options):
    """x = -1 and +1 with a linear kernel: w = 1, alpha = 1/2 each, both objectives 1/2."""
    X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    return formulated("hinge", KernelSpec("linear"), X, y, C, 0.0, None, True)


@pytest.mark.parametrize("arithmetic", [Long, Digits])
def test_the_optimum_of_two_points_has_no_gap(arithmetic):
    truth = evaluate(_two_points(), np.array([-0.5, 0.5]), 0.0, arithmetic)
    assert (float(truth.primal), float(truth.dual), float(truth.gap)) == (0.5, 0.5, 0.0)


@pytest.mark.parametrize("arithmetic", [Long, Digits])
def test_half_of_the_optimum_has_the_gap_of_both_hinges(arithmetic):
    # beta = +-1/4: f = x/2, so 1/2 |f|² = 1/8 and each hinge costs C/2; the dual is 1/2 - 1/8.
    truth = evaluate(_two_points(C=2.0), np.array([-0.25, 0.25]), 0.0, arithmetic)
    assert float(truth.primal) == pytest.approx(1 / 8 + 2.0, rel=1e-15)
    assert float(truth.dual) == pytest.approx(3 / 8, rel=1e-15)
    assert float(truth.gap) == pytest.approx(1 / 8 + 2.0 - 3 / 8, rel=1e-15)


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize(
    "formulation", ["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive", "hard_margin"]
)
def test_long_double_is_as_near_to_all_digits_as_it_says(kernel, formulation):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(10, 2)) + 1e3, np.where(np.arange(10) % 2, 1.0, -1.0)
    problem = formulated(formulation, KernelSpec(kernel, 1e-3, 3, 0.5), X, y, 7.0, 0.1, None, True)
    beta = np.repeat(rng.uniform(0, 1, 5), 2) * y  # sums to zero without rounding
    short, long = (evaluate(problem, beta, 0.3, arithmetic) for arithmetic in (Long, Digits))
    for name, error in (("primal", "primal_error"), ("dual", "dual_error"), ("gap", "gap_error")):
        if np.isfinite(float(getattr(long, name))):
            off = abs(float(Digits.of(getattr(short, name))[()] - getattr(long, name)))
            assert off <= getattr(short, error) + 1e-18 * abs(float(getattr(long, name)))


@pytest.mark.long
def test_the_best_bias_is_the_best_of_many():
    rng = np.random.default_rng(6)
    for formulation in ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"):
        y = np.where(rng.random(8) < 0.5, 1.0, -1.0)
        weight = rng.uniform(0.1, 3, size=8)
        problem = formulated(formulation, KernelSpec("rbf"), rng.normal(size=(8, 2)), y, 2.0, 0.1, weight, True)
        beta = rng.uniform(0, 0.1, size=8) * y
        best = evaluate(problem, beta, 0.0)
        others = [evaluate(problem, beta, bias).at_bias for bias in np.linspace(-3, 3, 301)]
        assert float(best.gap) <= float(min(others)) * (1 + 1e-15)


# What the checks see.


@pytest.fixture
def solved():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(20, 2)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    solution = zerogap.solve(
        zerogap.DualProblem.hinge(zerogap.Gram(X, gamma=1.0), y, 3.0), "smo", stop=zerogap.RelativeGap(1e-6)
    )
    return solution, formulated("hinge", KernelSpec("rbf", 1.0), X, y, 3.0, 0.0, None, True)


def _judged(problem, beta, bias, certificate, tol=None):
    check = Checker(Case(0, 0, "solve"))
    check_certificate(check, problem, beta, bias, certificate, tol)
    return {failure.split(":")[0] for failure in check.failures}


def test_a_true_certificate_passes(solved):
    solution, problem = solved
    assert _judged(problem, solution.beta, solution.bias, solution.certificate, 1e-6) == set()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"dual": 1e-9}, "dual"),
        ({"dual": -1e-9}, "dual"),
        ({"primal": -1e-4}, "primal"),
        ({"primal": 1e-4}, "primal"),
        ({"gap": -0.9}, "gap"),
    ],
)
def test_a_certificate_that_is_off_is_seen(solved, change, cause):
    solution, problem = solved
    certificate = solution.certificate
    wrong = replace(certificate, **{name: getattr(certificate, name) * (1 + part) for name, part in change.items()})
    assert cause in _judged(problem, solution.beta, solution.bias, wrong)


def test_a_nan_is_seen(solved):
    solution, problem = solved
    assert _judged(problem, solution.beta, solution.bias, replace(solution.certificate, gap=np.nan)) == {"nan"}
    assert _judged(problem, solution.beta, np.inf, solution.certificate) == {"nan"}


def test_a_tolerance_that_is_not_met_is_seen(solved):
    solution, problem = solved
    assert "tol" in _judged(problem, solution.beta, solution.bias, solution.certificate, 1e-12)
    assert "tol" in _judged(problem, solution.beta, solution.bias + 0.01, solution.certificate, 1e-6)


@pytest.mark.parametrize(
    ("index", "value", "cause"), [(0, np.nextafter(3.0, 4), "box"), (0, None, "sum"), (0, np.nan, "nan")]
)
def test_a_point_that_is_not_feasible_is_seen(solved, index, value, cause):
    solution, problem = solved
    beta = solution.beta.copy()
    k = int(np.argmax(np.where(problem.target > 0, np.minimum(beta, 3.0 - beta), -1)))  # a free one
    beta[k] = beta[k] * (1 - 1e-12) if value is None else value
    check = Checker(Case(0, 0, "solve"))
    check_feasible(check, problem, beta)
    assert cause in {failure.split(":")[0] for failure in check.failures}


def test_only_clear_refusals_are_accepted():
    assert refusal(ValueError("zero-size array to reduction operation maximum which has no identity")) is None
    assert refusal(ZeroDivisionError("float division by zero")) is None
    with pytest.raises(ValueError) as refused:
        zerogap.Gram(np.array([[1e200], [1.0]]), "linear")
    assert refusal(refused.value) is not None


# The cases.


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_a_function_of_its_number(kind):
    one, two = (draw(3, 17, kind) for _ in range(2))
    assert one.code == two.code
    assert all(np.array_equal(one.data[name], two.data[name]) for name in one.data)
    assert draw(3, 18, kind).code != one.code


def test_a_snippet_does_what_the_case_did(capsys):
    case = draw(SEED, 3, "solve")
    scope = {"np": np, "zerogap": zerogap, **case.data}
    exec("import scipy.sparse as sp\n" + "\n".join(case.code), scope)
    again = {}
    exec(write_snippet(case, ["some failure"]), again)
    assert np.array_equal(scope["solution"].beta, again["solution"].beta)
    assert "Solution(" in capsys.readouterr().out


@pytest.mark.long
def test_a_worker_that_hangs_is_ended_and_the_others_go_on():
    """With no time at all for a case every one of them hangs; with enough time none does."""
    numbers = list(range(4))
    hanging = list(campaign(SEED, numbers, "solve", workers=1, limit=-1.0))
    assert sorted(outcome.number for outcome in hanging) == numbers
    assert any(failure.startswith("hang") for outcome in hanging for failure in outcome.failures)
    done = list(campaign(SEED, numbers, "solve", workers=2, limit=60.0))
    assert [(o.number, o.failures) for o in sorted(done)] == [(n, []) for n in numbers]
