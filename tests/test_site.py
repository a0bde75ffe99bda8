"""The documentation site: nothing public is missing from it, and what it says of two libraries is so.

Sphinx itself is not needed here.  ``sphinx-build -W`` (CONTRIBUTING.md) runs the examples, and fails on a link that leads
nowhere.
"""

import ast
import importlib.util
import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import sklearn.svm

import zerogap
from zerogap import datasets

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MACHINES = ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")
LINEAR = ("LinearSVC", "LinearSVR")


# The reference.


def listed() -> dict[str, list[str]]:
    """Return the names that the reference explains, by module: rows of autosummary, and py:data."""
    names: dict[str, list[str]] = {}
    module, is_table = "", False
    for line in (DOCS / "api" / "index.rst").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match.group(1)
        elif match := re.match(r"\.\. py:data:: (\S+)", line):
            names.setdefault(module, []).append(match.group(1))
        elif line and not line.startswith(" "):
            is_table = line.startswith(".. autosummary::")
        elif is_table and re.fullmatch(r"   \w+", line):
            names.setdefault(module, []).append(line.strip())
    return names


def public(module: str) -> set[str]:
    """Return the names of a module that are for users, submodules aside."""
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None)
    if names is None:
        names = [k for k, v in inspect.getmembers(loaded, inspect.isfunction) if v.__module__ == module and k[0] != "_"]
    return {name for name in names if not inspect.ismodule(getattr(loaded, name))}


@pytest.mark.parametrize(
    "module",
    [
        "zerogap",
        "zerogap.kernels",
        "zerogap.datasets",
        "zerogap.solvers",
        "zerogap.path",
        "zerogap.plots",
        "zerogap.dask",
    ],
)
def test_the_reference_has_every_public_name_once(module):
    if module == "zerogap.dask":
        pytest.importorskip("distributed", reason='machines on a cluster need dask: pip install "zerogap[dask]"')
    found = listed()[module]
    assert len(found) == len(set(found))
    elsewhere = (
        set(listed()["zerogap"]) if module == "zerogap.path" else set()
    )  # svm_path, Path: they are zerogap's own
    assert set(found) | elsewhere >= public(module)
    assert set(found) <= public(module)


def test_the_reference_is_read_as_it_stands():
    assert "spiral" in public(datasets.__name__)
    assert {"SVC", "solve"} <= set(listed()["zerogap"])
    assert "UNIT" in listed()["zerogap.kernels"]


# Side by side with scikit-learn.


def rows(title: str) -> dict[str, list[str]]:
    """Return the rows of the table below a heading of docs/scikit-learn.md, by the name in their first column."""
    text = (DOCS / "scikit-learn.md").read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0].strip("` |"): row[1:] for row in cells}


def machines(cell: str, everything: tuple[str, ...] = MACHINES) -> set[str]:
    return set(everything) if cell == "all" else set(cell.split(", "))


def defaults(library: object, name: str) -> dict[str, object]:
    parameters = inspect.signature(getattr(library, name)).parameters
    return {key: parameter.default for key, parameter in parameters.items()}


@pytest.mark.parametrize("name", MACHINES)
def test_every_parameter_stands_beside_that_of_scikit_learn(name):
    theirs, ours, table = defaults(sklearn.svm, name), defaults(zerogap, name), rows("Side by side: every parameter")
    assert {key for key, row in table.items() if name in machines(row[0])} == set(theirs) | set(ours)
    for key, row in table.items():
        if name in machines(row[0]):
            said = [re.findall(r"`([^`]+)`", cell) for cell in row[1:]]
            assert str(ours[key]) in [value.strip("'\"") for value in said[1]]
            assert key in theirs or row[1].startswith("not there") or key == "random_state"
            if key in theirs and key != "probability":  # its default says that it is deprecated, in some versions
                assert said[0][0].strip("'\"") == str(theirs[key])


@pytest.mark.parametrize("name", MACHINES)
def test_every_attribute_stands_beside_that_of_scikit_learn(name):
    table = rows("Side by side: every attribute")
    beside = {key for key, row in table.items() if name in machines(row[0])}
    theirs, ours = (attributes(getattr(library, name)) for library in (sklearn.svm, zerogap))
    assert theirs | ours | {"n_features_in_", "feature_names_in_"} == beside
    for key in beside:
        assert ("not there" in table[key][1]) == (key not in theirs)
        assert table[key][2].startswith("not there") == (key in ("probA_", "probB_"))


@pytest.mark.parametrize("name", LINEAR)
def test_every_parameter_and_attribute_of_linear_models_stands_beside_that_of_scikit_learn(name):
    theirs, ours = defaults(sklearn.svm, name), defaults(zerogap, name)
    table = rows("LinearSVC and LinearSVR: every parameter")
    beside = {key for key, row in table.items() if name in machines(row[0], LINEAR)}
    assert beside == set(theirs) | set(ours)
    for key in beside:
        said = [[value.strip("'\"") for value in re.findall(r"`([^`]+)`", cell)] for cell in table[key][1:]]
        assert str(ours[key]) in said[1]
        assert table[key][1].startswith("not there") == (key not in theirs)
        assert key not in theirs or str(theirs[key]) in said[0] or float(theirs[key]) == float(said[0][0])
    table = rows("LinearSVC and LinearSVR: every attribute")
    beside = {key for key, row in table.items() if name in machines(row[0], LINEAR)}
    theirs, ours = (attributes(getattr(library, name)) for library in (sklearn.svm, zerogap))
    assert beside == theirs | ours
    for key in beside:
        assert ("not there" in table[key][1]) == (key not in theirs)


def attributes(cls: type) -> set[str]:
    """Return what a class says of its attributes in its docstring."""
    text = re.split(r"^Attributes\n-+\n", inspect.getdoc(cls), flags=re.MULTILINE)[1]
    text = re.split(r"^[A-Z]\w+(?: \w+)?\n-+\n", text, flags=re.MULTILINE)[0]
    return {
        name
        for line in re.findall(r"^(\w+_(?:, \w+_)*)(?= :|$)", text, flags=re.MULTILINE)
        for name in line.split(", ")
    }


# Links.


def heading_anchors(text: str) -> set[str]:
    """Return the names of the headings of a page, as GitHub and the site make them."""
    titles = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), flags=re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", title.lower().strip()).replace(" ", "-") for title in titles}


def broken_links(file: Path) -> list[str]:
    """Return the links of a page to other files, or to headings, that lead nowhere."""
    text, found = file.read_text(encoding="utf-8"), []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        if re.match(r"\w+:", link) or "docs/gallery/" in str(target):  # elsewhere; or made by the build
            continue
        if not target.exists() or (anchor and anchor not in heading_anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


def test_every_link_between_pages_leads_somewhere():
    pages = [
        *ROOT.glob("*.md"),
        *DOCS.glob("*.md"),
        *DOCS.glob("papers/*.md"),
        *ROOT.glob("experiments/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
    ]
    assert len(pages) > 30
    assert {str(page): links for page in pages if (links := broken_links(page))} == {}


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page, of one\n[a](page.md) [b](#a-page-of-one) [c](https://d.e) [f](gone.md) [g](page.md#gone)\n"
    )
    assert broken_links(page) == ["gone.md", "page.md#gone"]
    # The built site is checked by docs/_ext/links.py.
    (tmp_path / "one.html").write_text('<a href="two.html#here">1</a><a href="two.html#gone">2</a><img src="gone.png">')
    (tmp_path / "two.html").write_text(
        '<p id="here"></p><a href="#">3</a><a href="https://d.e/f">4</a><a href="one.html">5</a>'
    )
    assert site_links().broken(tmp_path) == ["one.html: gone.png", "one.html: two.html#gone"]


def site_links():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("links", DOCS / "_ext" / "links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Examples.


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_has_a_title_an_explanation_and_a_picture(file):
    text = file.read_text(encoding="utf-8")
    title, line, _, *explanation = ast.get_docstring(ast.parse(text)).splitlines()
    assert file.stem.startswith("plot_")
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert len(" ".join(explanation)) > 100
    assert "plt.show()" in text


def test_there_are_examples_and_the_first_is_why():
    assert len(EXAMPLES) >= 15
    assert "14 %" in EXAMPLES[0].read_text(encoding="utf-8").splitlines()[1]


# How it is built.


def test_what_the_build_needs_is_in_the_extra():
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    needed = {"sphinx", "pydata-sphinx-theme", "numpydoc", "sphinx-gallery", "myst-parser", "matplotlib"}
    assert needed <= {re.split("[<>=]", requirement)[0] for requirement in extra}


def test_nothing_that_is_generated_is_kept():
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    kept = subprocess.run(["git", "ls-files", "docs"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not re.findall(r"docs/(?:_build|gallery|api/generated)/.*", kept)


def test_every_page_of_the_guide_is_in_a_table_of_contents():
    contents = [file.read_text(encoding="utf-8") for file in DOCS.rglob("*.md") if "{toctree}" in file.read_text()]
    within = "\n".join(re.findall(r"```\{toctree\}.*?```", "\n".join(contents), flags=re.DOTALL))
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert pages <= set(re.findall(r"[\w-]+", within))
