"""Check the site's own links, once it is built: every page, picture and anchor that a page points to is there.

Sphinx warns of references that lead nowhere in its sources.  This reads what it has written: frames, redirects, links of the
theme, and links in pages that were included as they stand.
"""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
OWN_WORK = ("_static/", "_downloads/")  # below these are no pages of ours


class Page(HTMLParser):
    """What a page points to, and the places on it that can be pointed to."""

    def __init__(self, text: str):
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag points to, and its name."""
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "base":
                self.targets.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken(folder: Path) -> list[str]:
    """Return the links of all pages in a folder that lead nowhere, with the page that has them."""
    files = [file for file in folder.rglob("*.html") if not str(file.relative_to(folder)).startswith(OWN_WORK)]
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in files}
    found = []
    for file, page in pages.items():
        for link in sorted(page.targets):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchor = unquote(parts.fragment)
            is_missing = not target.exists()
            if is_missing or (anchor and target in pages and anchor not in pages[target].anchors):
                found.append(f"{file.relative_to(folder.resolve())}: {link}")
    return found


def check(app: Sphinx, problem: Exception | None) -> None:
    """Warn of every link that leads nowhere."""
    if problem is None and app.builder.format == "html":
        for link in broken(Path(app.outdir)):
            LOGGER.warning("a link leads nowhere: %s", link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check when everything else has been written."""
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
