"""How Sphinx makes the site.  From the top of the repository: ``sphinx-build -W -c docs . docs/_build``.

The source folder is the repository itself, so that README.md, docs/ and experiments/ are pages of one site as they are, and a
link between two of them works in a checkout and on the site alike.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs" / "_ext")]

import zerogap  # noqa: E402

project = "zerogap"
author = "the zerogap developers"
version = release = zerogap.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**.md", "docs/**.rst", "experiments/**.md", "benchmarks/README.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
]  # fmt: skip
exclude_patterns = [
    ".*",
    "src",
    "tests",
    "examples",
    "explorer",
    "build",
    "dist",
    "docs/_*",
    "**/__pycache__",
    "docs/gallery/*.md5",
]

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx.ext.mathjax", "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery", "sphinx_design", "sphinx_copybutton", "results", "members", "plain_text", "explorers",
    "links",
]  # fmt: skip

# A reference that leads nowhere is a warning, and a warning fails the build.
nitpicky = True
nitpick_ignore_regex = [
    # What belongs to others: there is no network when the site is built, so nothing to ask where it is explained.
    (r"py:.*", r"(numpy|np|scipy|sklearn|matplotlib|pandas|joblib|collections|pathlib|typing|threading)\b.*"),
]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

autosummary_generate = True
autodoc_typehints = "none"  # docstrings have the types, in words and with shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 0,
    "doc_module": ("zerogap",),
    "backreferences_dir": "docs/gallery/uses",
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("figures.reset",),
    "plot_gallery": "True",
    "copyfile_regex": r".*\.html",
}

templates_path = [str(ROOT / "docs" / "_templates")]  # Sphinx and autosummary look from different folders
html_theme = "pydata_sphinx_theme"
html_title = "zerogap"
html_context = {"default_mode": "auto"}  # light or dark as the reader has it
html_static_path = ["_static"]
html_css_files = ["zerogap.css"]
html_additional_pages = {"index": "redirect.html"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "zerogap"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"docs/index": [], "docs/gallery/index": [], "docs/scikit-learn": []}
copyright = "the zerogap developers. BSD-3-Clause"
