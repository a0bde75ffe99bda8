"""Docstrings are plain text with formulas: |f|², ``w*`` and ``C_`` would be markup in reStructuredText, and are escaped.

Literals, links, doctests and what is indented as code are left alone.
"""

import re
from typing import Any

from sphinx.application import Sphinx

# Literals, roles and links to the web are kept; then single characters that would be markup.
KEPT = r"``.+?``|:\w+(?::\w+)?:`.+?`|`[^`]+`_|https?://\S+"
MARKUP = re.compile(rf"({KEPT})|(\||\*|(?<=\w)_(?!\w))")


def escaped(line: str) -> str:
    """Return a line of a docstring with what would be markup escaped."""
    if line.lstrip().startswith((">>>", "...", "-----")):
        return line
    return MARKUP.sub(lambda match: match.group(1) or "\\" + match.group(2), line)


def escape(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape the lines of a docstring, in place, but for the results of doctests."""
    is_doctest = False
    for k, line in enumerate(lines):
        is_doctest = bool(line.strip()) and (is_doctest or line.lstrip().startswith(">>>"))
        lines[k] = line if is_doctest else escaped(line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook, ahead of numpydoc's."""
    app.connect("autodoc-process-docstring", escape, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
