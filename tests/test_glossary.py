"""The glossary names what the code holds."""

import re
from functools import cache
from pathlib import Path

import pytest

from zerogap.wording import SET_WORDS

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"


def rows() -> list[list[str]]:
    lines = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_row_has_every_column():
    title, *body = rows()
    assert title == ["term", "in the code", "ong", "lopez", "ssvm", "chapter7", "spiral", "meaning"]
    assert all(len(row) == len(title) and all(row) for row in body)


@cache
def names_in(folder: Path) -> set[str]:
    return set(re.findall(r"\w+", "\n".join(file.read_text() for file in folder.rglob("*.py"))))


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in rows()[1:]])
def test_every_name_is_in_the_source(row):
    source = ROOT / "src" / "zerogap"
    known = names_in(source)
    for quoted in re.findall(r"`([^`]+)`", row[1] + row[7]):
        if quoted.endswith((".py", "/")):
            assert (source / quoted).exists(), quoted
        else:
            assert set(re.findall(r"[A-Za-z_]\w*", quoted)) <= known, quoted


def test_words_of_pictures_are_explained():
    plain = GLOSSARY.read_text().split("## In the code")[0]
    for words in SET_WORDS.values():
        for word in words:
            assert f"*{word}*" in plain, word
