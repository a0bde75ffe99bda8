"""Code on pages of docs/ runs, in the order in which it stands there, and what it builds holds to what is asked of everyone."""

import contextlib
import dataclasses
import functools
import inspect
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import naive
import numpy as np
import pytest
import test_conformance
from test_conformance import ENTRIES, TOL

from zerogap import RelativeGap, kernels, solve
from zerogap.solvers import Entry

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    "add-a-kernel.md", "add-a-loss.md", "add-a-solver.md", "certify.md", "gaussian-processes.md", "incremental.md",
    "index.md", "path.md", "plots.md", "problem.md", "scaling-up.md", "scaling.md", "scikit-learn.md", "solvers.md",
    "tuning.md",
]  # fmt: skip
# Pages whose code takes long, and the package that it needs.
LONG = {"add-a-kernel.md": "zerogap", "path.md": "zerogap", "plots.md": "matplotlib", "scaling.md": "distributed"}
LONG |= {"scaling-up.md": "zerogap", "tuning.md": "zerogap"}


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return the Python blocks of a page, and the lines they begin at."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [(text[: match.start(1)].count("\n"), match.group(1)) for match in found]


def run(page: Path, module: ModuleType) -> int:
    """Run the blocks of a page in one module; return how many there were.  Errors point to lines of the page."""
    found = blocks(page)
    with (
        contextlib.redirect_stdout(io.StringIO()) as printed,
        tempfile.TemporaryDirectory() as folder,  # some write files
        contextlib.chdir(folder),
    ):
        for line, code in found:
            exec(compile("\n" * line + code, str(page), "exec"), vars(module))
        module.written = set(os.listdir())
    module.printed = printed.getvalue()
    return len(found)


@functools.cache
def scope(name: str) -> dict:
    """Return what the code of a page defines."""
    module = ModuleType(f"page_{PAGES.index(name)}")
    sys.modules[module.__name__] = module  # classes that are stored are looked for there
    assert run(DOCS / name, module) >= (1 if name == "index.md" else 2)
    return vars(module)


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.long) if page in LONG else page for page in PAGES]
)
def test_the_code_of_a_page_runs(page):
    if page in LONG:
        pytest.importorskip(LONG[page])
    assert len(scope(page)) > 2


@pytest.mark.long
@pytest.mark.parametrize("page", ["path.md", "tuning.md"])
def test_a_page_shows_what_its_code_prints(page):
    def rounded(text):  # the last digits depend on the processor
        return re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.8g}", text).splitlines()

    text = (DOCS / page).read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    shown = "".join(block for language, block in fenced if not language)
    assert rounded(shown) == rounded(scope(page)["printed"])


def test_blocks_are_found_where_they_are_and_what_they_assert_counts(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\n```\n\n```\nnot code\n```\n\n```python\nassert x == 2\n```\n")
    assert [line for line, _ in blocks(page)] == [3, 11]
    with pytest.raises(AssertionError) as failure:
        run(page, ModuleType("page"))
    assert failure.traceback[-1].lineno == 11  # counted from zero


def test_the_guide_lists_every_kernel_with_its_parameters():
    rows = re.findall(r"^\| `(\w+)(\(.*?\))`.*?\|", (DOCS / "add-a-kernel.md").read_text(), flags=re.MULTILINE)
    made = {name: value for name, value in vars(kernels).items() if inspect.isclass(value)}
    known = {name for name, value in made.items() if issubclass(value, kernels.Kernel) and value is not kernels.Kernel}
    assert {name for name, _ in rows} == known
    for name, written in rows:
        own = [field for field in dataclasses.fields(made[name]) if field.name != "centre"]  # estimators set it
        defaults = [f"={field.default!r}" if field.default is not dataclasses.MISSING else "" for field in own]
        said = ", ".join(field.name + value for field, value in zip(own, defaults, strict=True)).replace("'", '"')
        assert written.replace("(f)", "(function)") == f"({said})"


@pytest.fixture(scope="module")
def greedy():
    return Entry("greedy.Greedy", free_bias=False), scope("add-a-solver.md")["Greedy"]()


CHECKS = [
    test_conformance.test_reaches_the_optimum_of_a_reference_qp,
    test_conformance.test_a_run_can_be_repeated_to_the_last_bit,
    test_conformance.test_a_step_limit_is_exact_and_a_run_goes_on_from_there,
    test_conformance.test_a_run_that_has_converged_has_nothing_to_go_on_with,
    test_conformance.test_a_callback_sees_the_run_and_ends_it,
    test_conformance.test_every_step_leaves_the_state_in_order,
    test_conformance.test_a_step_comes_back_where_the_violation_is_small_enough,
]


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_solver_of_the_guide_conforms(check, greedy, monkeypatch):
    entry, solver = greedy
    monkeypatch.setitem(ENTRIES, "greedy", entry)
    monkeypatch.setitem(test_conformance.MADE, "greedy", solver)
    for formulation in ("hinge", "squared-insensitive", "gaussian-process"):
        check.check("greedy", (formulation, "plain", False))
    test_conformance.test_what_a_solver_does_not_claim_it_refuses_by_name_of_one_that_can("greedy")


@pytest.mark.long
def test_every_solver_takes_the_losses_of_the_guide():
    page = scope("add-a-loss.md")
    X, y = page["X"][:40], page["y"][:40]
    weight = np.arange(40) % 3
    losses = [lambda gram: page["huber"](gram, y, 5.0, 0.3)]
    for options in ({}, {"fit_intercept": False}, {"sample_weight": weight}):
        losses.append(functools.partial(page["FORMULATIONS"]["pinball"], y=None, t=y, **options))
    for loss in losses:
        tried = 0
        for name, entry in ENTRIES.items():
            problem = loss(page["Gram"](X, gamma=1.0))
            if entry.is_exact and entry.claims(problem):
                naive.assert_optimal(solve(problem, test_conformance.MADE[name], stop=RelativeGap(TOL)), problem)
                tried += 1
        assert tried >= 8
