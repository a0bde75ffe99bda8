"""A path or a comparison as one HTML page that needs nothing else, or as a widget."""

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path as File
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap.explorer import geometry, lines, straight
from zerogap.explorer.encoding import array, text_of
from zerogap.wording import SCORES, number

if TYPE_CHECKING:
    from zerogap.path import Path, ScoreCurve

LARGEST = 15_000_000  # bytes of a page
MOST_INTERVALS = 200  # of best scores that are drawn
TITLE = "Every C of a support vector machine"
SHORT = {"neg_mean_squared_error": "−MSE", "neg_mean_absolute_error": "−MAE", "r2": "R²"}  # beside a number
BETWEEN = 400  # values between the edges of a score that is curved


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
    held_out: int | None = None,
    chosen: tuple[float, str] | None = None,
) -> dict[str, Any]:
    """Return the payload of paths of two classes, one for each pair; ``labels`` name the negative and the positive class.

    ``held_out`` is the number of points that the score, an accuracy, is of.  ``chosen`` is where the page opens, and why.
    """
    named = {} if curve is None else _of_curve(curve)
    if chosen is None and curve is not None:
        chosen = opening(curve, held_out)
    if chosen is not None:
        named["opening"] = {"value": chosen[0], "words": chosen[1]}
    return {
        "kind": "path",
        "title": title or TITLE.replace("C", paths[0].parameter, 1),
        "paths": [_of_path(p, names, feature_names) | named for p, names in zip(paths, labels, strict=True)],
    }


def _of_path(path: "Path", labels: tuple[str, str], feature_names: Any) -> dict[str, Any]:
    check_path(path)
    if path.kind != "path":
        return _of_any_path(path, labels, feature_names)
    gram = path.gram
    assert gram is not None
    of_segments = lines.encoded(path)
    found = geometry.described(gram, gram.X if path.X is None else path.X, path.y, feature_names)
    if lines.is_rounded(of_segments):
        found["note"] = (
            f"{found['note']} Coefficients are kept in single precision, or the page would be too large.".strip()
        )
    total = int((path.points.group >= 0).sum())  # rows, without those of weight zero
    return found | {"path": of_segments, "labels": list(labels), "largestGap": path.largest_gap_, "total": total}


def _of_any_path(path: Any, labels: tuple[str, str], feature_names: Any) -> dict[str, Any]:
    """Return the payload of a regression, of one class, or of an approximate path."""
    gram = path.gram
    mode = "classes" if path.family.is_hinge else "one-class" if path.parameter == "nu" else "tube"
    target = path.target if mode == "tube" else None
    sought = {"classes": path.y, "tube": target, "one-class": np.zeros(gram.n)}[mode]
    found = geometry.described(gram, gram.X if path.X is None else path.X, sought, feature_names)
    total = int((path.points.group >= 0).sum())
    found |= {"lines": straight.encoded(path), "mode": mode, "labels": list(labels), "largestGap": path.largest_gap_}
    found |= {"total": total, "isApproximate": path.kind == "ApproximatePath", "gap": getattr(path, "gap", None)}
    if target is not None:
        found |= {"target": array(target), "epsilon": path.epsilon if path.parameter == "C" else None}
    return found


def check_path(path: "Path") -> None:
    """Refuse a path that has lost its points."""
    path.check_not_empty()
    if path.gram is None:
        raise ValueError(
            "This path was loaded without its data, so there are no points to show. Set path.gram to the Gram matrix of the "
            "distinct points, Gram(X[path.points.rows], kernel), with the kernel it was made with."
        )


def opening(curve: Any, held_out: int | None) -> tuple[float, str] | None:
    """Return where a page opens, and why.

    Of an accuracy p of n points that is the first interval within one standard error, sqrt(p (1 - p) / n), of the best: the
    best itself is often some interval far off that a few points have made.  Of another score it is the middle of a best
    interval, the one that is nearest to the middle of the range.
    """
    best = curve.best_intervals
    if not best:
        return None
    is_log = getattr(curve, "parameter", "C") == "C"
    if held_out:
        error = float(np.sqrt(curve.best_score * (1.0 - curve.best_score) / held_out))
        k = int(np.argmax(curve.score >= curve.best_score - error))
        words = f"in the first interval within one standard error ({number(error, 2)}) of the best"
        return _middle((curve.C[k], curve.C[k + 1]), is_log), words
    edges = getattr(curve, "edges", None)
    edges = curve.C if edges is None else edges
    centre = _middle((edges[0], edges[-1]), is_log)
    far = (lambda value: abs(np.log(value / centre))) if is_log else (lambda value: abs(value - centre))
    middles = [_middle(ends, is_log) for ends in best]
    words = "where the score is best" + (", nearest to the middle of the range" if len(best) > 1 else "")
    return min(middles, key=far), words


def _middle(ends: tuple[float, float], is_log: bool) -> float:
    return float(np.sqrt(ends[0]) * np.sqrt(ends[1]) if is_log else 0.5 * (ends[0] + ends[1]))


def _of_curve(curve: Any) -> dict[str, Any]:
    best = curve.best_intervals[:MOST_INTERVALS]
    if hasattr(curve, "edges"):  # of a regression: parabolas, drawn as short lines
        C = curve.shown_values(BETWEEN)
        score = {"C": array(C), "score": array(curve(C)), "isSmooth": True, "name": SCORES[curve.scoring]}
        score["short"] = SHORT[curve.scoring]
        return {"curve": score, "best": best, "bestScore": curve.best_score}
    score = {"C": array(curve.C), "score": array(curve.score), "isExact": curve.is_exact}
    score |= {"name": curve.name, "short": curve.name}
    return {"curve": score, "best": best, "bestScore": curve.best_score if best else None}
