"""The directive ``results``: the table and figures of an experiment, taken from the file that ``zerogap reproduce`` wrote.

What follows the table there, the rule of every cell, stays on the page of the experiment, which a link leads to.
"""

import re
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

READING = "Ours, the paper's value in brackets, ✗ where a rule does not hold:"
IMAGE = re.compile(r"^!\[(.*?)\]\((.*?)\)$", flags=re.MULTILINE)


def shortened(text: str, folder: str, name: str) -> str:
    """Return table, count and figures of a page of results, with a link to the page and images found from the top."""
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    count = next(line for line in text.splitlines() if line.startswith(f"{name}: "))
    images = [f"![{label or name}](/experiments/{folder}/{file})" for label, file in IMAGE.findall(text)]
    link = f"{READING} {count.replace(f'{name}: ', '')} [Every rule](/experiments/{folder}/{name}.md)"
    return "\n\n".join([table, link, *images])


class Results(SphinxDirective):
    """``{results} ong/ong-table-2``."""

    required_arguments = 1
    option_spec: ClassVar = {"figures-only": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Parse the part of the file that is shown."""
        folder, _, name = self.arguments[0].partition("/")
        file = Path(self.env.srcdir) / "experiments" / folder / f"{name}.md"
        self.env.note_dependency(str(file))
        text = shortened(file.read_text(encoding="utf-8"), folder, name)
        if "figures-only" in self.options:
            text = "\n\n".join(part for part in text.split("\n\n") if not part.startswith("|"))
        shown = self.parse_text_to_nodes(text)
        for table in (node for node in shown if isinstance(node, nodes.table)):
            table["classes"].append("results")  # numbers, which need no second line
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
