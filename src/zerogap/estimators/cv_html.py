"""How cross-validated curves, and what was chosen by them, look in a notebook."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap.notebook import MOST_POINTS, Scale, card, picture, table
from zerogap.path.error_curve import ErrorCurve
from zerogap.wording import count, number

if TYPE_CHECKING:
    from zerogap.estimators.cv_curve import CVCurve

MOST_CANDIDATES = 20  # of a table, the best first


def of_cv_curve(curve: "CVCurve") -> str:
    """Return the best score, where it is, and the mean with that marked."""
    low, high = curve.edges[0], curve.edges[-1]
    said = f"{count(curve.n_folds, 'fold')}, every C from {number(low)} to {number(high)}"
    if not curve.is_exact:
        said = f"{count(curve.n_folds, 'fold')}, C from {number(low)} to {number(high)}, sampled"
    return card("CVCurve", said, _rows(curve), beside=_picture(curve))


def of_path_cv(model: Any) -> str:
    """Return what was chosen, the curve it was chosen by, and the other candidates."""
    rows = [
        (
            "selection",
            "the best score" if model._as_fitted("selection") == "best" else "within one standard error of the best",
        )
    ]
    if model._as_fitted("gap") is not None:
        rows.append(("paths", f"within a relative gap of {number(model._as_fitted('gap'))}"))
    below = ""
    if len(model.cv_curves_) > 1:
        rows.append(("candidates", count(len(model.cv_curves_))))
        below = _candidates(model)
    rows += _rows(model.cv_curve_)
    return card(type(model).__name__, model.in_words(), rows, beside=_picture(model.cv_curve_), below=below)


def _rows(curve: "CVCurve") -> list[tuple[str, str]]:
    best = curve.best_intervals
    if not best:
        return [("best score", "not defined")]
    where = [number(low) if low == high else f"{number(low)} to {number(high)}" for low, high in best[:3]]
    error = "" if curve.n_folds == 1 else f" ± {number(float(curve.std_error(curve.best_C)), 2)}"
    rows = [
        ("best score", f"{number(curve.best_score)}{error}"),
        ("for C", ", ".join(where + ["..."] * (len(best) > 3))),
    ]
    if curve.n_folds > 1:
        rows.append(("within one standard error", f"first at C={number(curve.one_se_C)}"))
    kind = "quadratic or linear on" if isinstance(curve.mean, ErrorCurve) else "constant on"
    pieces = count(curve.edges.size - 1, "piece" if isinstance(curve.mean, ErrorCurve) else "interval")
    if not curve.is_exact:
        kind, pieces = "computed at", f"{count(curve.mean.score.size)} C; not exact in between"
    return [*rows, (kind, pieces)]


def _picture(curve: "CVCurve") -> str:
    is_smooth = isinstance(curve.mean, ErrorCurve)
    C = curve.edges
    if is_smooth:
        C = np.unique(np.concatenate([C, curve.mean.at, np.geomspace(C[0], C[-1], MOST_POINTS // 2)[1:-1]]))
    score = np.asarray(curve(C))
    known = np.isfinite(score)
    if not known.any():
        return ""
    C, score = C[known], score[known]
    title = "mean score over C (log), the best marked"
    across, up = Scale.of(C, is_log=True), Scale.of(score)
    keep, spans = int(score.argmax()), curve.best_intervals[:20]
    return picture(title, C, score, across, up, steps=not is_smooth, keep=keep, spans=spans)


def _candidates(model: Any) -> str:
    results = model.cv_results_
    names = [name for name in ("kernel", "gamma", "epsilon") if f"param_{name}" in results]
    order = model._by_rank()[:MOST_CANDIDATES]
    rows = []
    for k in order:
        values = [results[f"param_{name}"][k] for name in names]
        texts = [escape(number(value) if isinstance(value, float | int) else str(value)) for value in values]
        scores = [results[name][k] for name in ("param_C", "mean_test_score", "std_error_test_score")]
        rows.append([*texts, *(number(float(value)) for value in scores)])
    return table([*names, "best C", "score", "standard error"], rows, texts=len(names))
