"""Code on pages of docs/ runs, in the order in which it stands there, and what it asserts holds."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ["add-a-kernel.md"]


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return the Python blocks of a page, and the lines they begin at."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [(text[: match.start(1)].count("\n"), match.group(1)) for match in found]


def run(page: Path, module: ModuleType) -> int:
    """Run the blocks of a page in one module; return how many there were.  Errors point to lines of the page."""
    found = blocks(page)
    for line, code in found:
        exec(compile("\n" * line + code, str(page), "exec"), vars(module))
    return len(found)


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, monkeypatch):
    module = ModuleType(f"page_{PAGES.index(page)}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert run(DOCS / page, module) >= 3


def test_blocks_are_found_where_they_are_and_what_they_assert_counts(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\n```\n\n```\nnot code\n```\n\n```python\nassert x == 2\n```\n")
    assert [line for line, _ in blocks(page)] == [3, 11]
    with pytest.raises(AssertionError) as failure:
        run(page, ModuleType("page"))
    assert failure.traceback[-1].lineno == 11  # counted from zero
