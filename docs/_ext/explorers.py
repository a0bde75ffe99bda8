"""The directive ``explorer``: a live page of ``explore()``, made when the site is, in a frame.

A page is one file that needs nothing else.  It is written beside the static files of the site, and never kept.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from docutils import nodes
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import zerogap

FOLDER = "_static/explorers"


def moons(file: Path) -> None:
    """Every C of two moons."""
    X, y = make_moons(240, noise=0.28, random_state=3)
    model = zerogap.SVCPath(gamma=1.2, C_min=1e-2, C_max=1e4).fit(X[:160], y[:160])
    model.explore(file, X[160:], y[160:], feature_names=["horizontal", "vertical"], title="Two moons, every C")


def breast_cancer(file: Path) -> None:
    """Every C of data with thirty features, behind a scaler."""
    data = load_breast_cancer()
    parts = train_test_split(data.data, data.target, test_size=1 / 3, random_state=0)
    pipe = make_pipeline(StandardScaler(), zerogap.SVCPath(C_min=1e-2)).fit(parts[0], parts[2])
    curve = zerogap.score_curve(pipe, parts[1], parts[3])
    pipe[-1].explore(file, curve=curve, feature_names=list(data.feature_names), title="Breast cancer, every C")


def tube(file: Path) -> None:
    """Every epsilon of a regression over one feature."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0.0, 6.0, 80))[:, None]
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=80)
    model = zerogap.SVRPath(over="epsilon", C=5.0).fit(X[::2], y[::2])
    model.explore(file, X[1::2], y[1::2], feature_names=["time"], title="A regression, every epsilon")


def race(file: Path) -> None:
    """Solvers at work, side by side."""
    X, y = make_moons(120, noise=0.25, random_state=3)
    problem = zerogap.DualProblem.hinge(zerogap.Gram(X, gamma=1.2), 2.0 * y - 1.0, C=10.0)
    solvers, stop = ["smo", "smo-platt", "rosen", "simple-svm"], zerogap.RelativeGap(1e-8)
    zerogap.compare(problem, solvers, frames=200, stop=stop).explore(file, title="Four solvers, step by step")


PAGES: dict[str, Callable[[Path], None]] = {
    "moons": moons, "breast_cancer": breast_cancer, "tube": tube, "race": race
}  # fmt: skip


class Explorer(SphinxDirective):
    """``{explorer} moons``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the frame; the page itself is made at the end of the build."""
        name = self.arguments[0]
        if name not in PAGES:
            raise self.error(f"explorer: one of {sorted(PAGES)} was expected; got {name!r}.")
        up = "../" * self.env.docname.count("/")
        source = f"{up}{FOLDER}/{name}.html"
        text = f'<iframe class="explorer" src="{source}" title="{name}" loading="lazy"></iframe>'
        return [nodes.raw("", f'{text}<p><a href="{source}">On a page of its own</a></p>', format="html")]


def write(app: Sphinx, problem: Exception | None) -> None:
    """Write the pages, once the rest of the site is there."""
    if problem is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        make(folder / f"{name}.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("explorer", Explorer)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
