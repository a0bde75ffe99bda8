"""A path or a comparison as one HTML page that needs nothing else, or as a widget."""

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path as File
from string import Template
from typing import TYPE_CHECKING, Any

from zerogap.explorer import geometry, lines
from zerogap.explorer.encoding import array, text_of

if TYPE_CHECKING:
    from zerogap.path import Path, ScoreCurve

LARGEST = 15_000_000  # bytes of a page
MOST_INTERVALS = 200  # of best scores that are drawn
TITLE = "Every C of a support vector machine"


@cache
def part(name: str) -> str:
    """Return a file of this package: the template, the script or the style."""
    return files("zerogap.explorer").joinpath(name).read_text(encoding="utf-8")


def page(payload: dict[str, Any]) -> str:
    """Return the whole page."""
    return Template(part("template.html")).substitute(
        title=escape(payload["title"]), style=part("bundle.css"), script=part("bundle.js"), payload=text_of(payload)
    )


def shown(payload: dict[str, Any], file: Any) -> Any:
    """Write a page to a file and return its name, or return the widget."""
    if file is None:
        from zerogap.explorer.widget import widget

        return widget(payload)
    text = page(payload)
    if len(text) > LARGEST:
        raise ValueError(
            f"The page would have {len(text) / 1e6:.0f} MB, and a browser is slow beyond {LARGEST / 1e6:.0f}. Follow the path "
            "over a smaller range of C, of fewer points, or of two classes."
        )
    target = File(file)
    target.write_text(text, encoding="utf-8")
    return target


def of_paths(
    paths: Sequence["Path"],
    labels: Sequence[tuple[str, str]],
    *,
    curve: "ScoreCurve | None" = None,
    feature_names: Any = None,
    title: str | None = None,
) -> dict[str, Any]:
    """Return the payload of paths of two classes, one for each pair; ``labels`` name the negative and the positive class."""
    return {
        "kind": "path",
        "title": title or TITLE,
        "paths": [_of_path(p, names, curve, feature_names) for p, names in zip(paths, labels, strict=True)],
    }


def _of_path(path: "Path", labels: tuple[str, str], curve: "ScoreCurve | None", feature_names: Any) -> dict[str, Any]:
    check_path(path)
    gram = path.gram
    assert gram is not None
    of_segments = lines.encoded(path)
    found = geometry.described(gram, gram.X if path.X is None else path.X, path.y, feature_names)
    if lines.is_rounded(of_segments):
        found["note"] = (
            f"{found['note']} Coefficients are kept in single precision, or the page would be too large.".strip()
        )
    total = int((path.points.group >= 0).sum())  # rows, without those of weight zero
    found |= {"path": of_segments, "labels": list(labels), "largestGap": path.largest_gap_, "total": total}
    return found | ({} if curve is None else _of_curve(curve))


def check_path(path: "Path") -> None:
    """Refuse what is no path of two classes, or has lost its points."""
    if path.kind != "path":
        raise TypeError(
            f"explore() shows paths of two classes over C, by svm_path or SVCPath; got a {type(path).__name__}. "
            "Its events and coefficients can be read from path.events and path.coefficients_at."
        )
    path.check_not_empty()
    if path.gram is None:
        raise ValueError(
            "This path was loaded without its data, so there are no points to show. Set path.gram to the Gram matrix of the "
            "distinct points, Gram(X[path.points.rows], kernel), with the kernel it was made with."
        )


def _of_curve(curve: "ScoreCurve") -> dict[str, Any]:
    best = curve.best_intervals[:MOST_INTERVALS]
    score = {"C": array(curve.C), "score": array(curve.score), "isExact": curve.is_exact}
    return {"curve": score, "best": best, "bestScore": curve.best_score if best else None}
