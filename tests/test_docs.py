"""The guides for contributors: their code runs as it is printed, and what they build holds to what is asked of everyone."""

import functools
import re
from pathlib import Path

import naive
import pytest
import test_conformance
from test_conformance import ENTRIES, TOL

from zerogap import RelativeGap, solve
from zerogap.solvers import Entry

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENTS = ["add-a-loss.md", "add-a-solver.md"]


@functools.cache
def run(document):
    """Run the Python of a document, block after block, in one scope; return that."""
    text, scope = (DOCS / document).read_text(encoding="utf-8"), {"__name__": "__main__"}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, block.start()) + 1  # so that a traceback tells where
        exec(compile("\n" * line + block[1], document, "exec"), scope)
    return scope


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_code_of_a_document_runs(document):
    assert run(document).keys() > {"__name__", "__builtins__"}


@pytest.fixture(scope="module")
def greedy():
    return Entry("greedy.Greedy", free_bias=False), run("add-a-solver.md")["Greedy"]()


CHECKS = [
    test_conformance.test_reaches_the_optimum_of_a_reference_qp,
    test_conformance.test_a_run_can_be_repeated_to_the_last_bit,
    test_conformance.test_a_step_limit_is_exact_and_a_run_goes_on_from_there,
    test_conformance.test_a_run_that_has_converged_has_nothing_to_go_on_with,
    test_conformance.test_a_callback_sees_the_run_and_ends_it,
    test_conformance.test_every_step_leaves_the_state_in_order,
    test_conformance.test_a_step_comes_back_where_the_violation_is_small_enough,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_solver_of_the_guide_conforms(check, greedy, monkeypatch):
    entry, solver = greedy
    monkeypatch.setitem(ENTRIES, "greedy", entry)
    monkeypatch.setitem(test_conformance.MADE, "greedy", solver)
    for formulation in ("hinge", "squared-insensitive", "gaussian-process"):
        check.check("greedy", (formulation, "plain", False))
    test_conformance.test_what_a_solver_does_not_claim_it_refuses_by_name_of_one_that_can("greedy")


def test_every_solver_takes_the_losses_of_the_guide():
    scope = run("add-a-loss.md")
    X, y = scope["X"][:40], scope["y"][:40]
    for loss in (lambda gram: scope["pinball"](gram, y, 2.0, 0.9), lambda gram: scope["huber"](gram, y, 5.0, 0.3)):
        tried = 0
        for name, entry in ENTRIES.items():
            problem = loss(scope["Gram"](X, gamma=1.0))
            if entry.is_exact and entry.claims(problem):
                naive.assert_optimal(solve(problem, test_conformance.MADE[name], stop=RelativeGap(TOL)), problem)
                tried += 1
        assert tried >= 8
