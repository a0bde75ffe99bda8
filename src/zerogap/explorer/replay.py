"""Several solvers on one problem, step by step."""

from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap.explorer import geometry
from zerogap.explorer.encoding import array
from zerogap.wording import problem_in_words

if TYPE_CHECKING:
    from zerogap.comparison import Comparison, Run

TITLE = "Solvers at work"


def of_comparison(comparison: "Comparison", *, feature_names: Any = None, title: str | None = None) -> dict[str, Any]:
    """Return the payload of runs whose frames were kept."""
    problem, runs = comparison.problem, [run for run in comparison.runs.values() if run.solution is not None]
    if not any(run.frames for run in runs):
        raise ValueError("The steps were not kept. Call compare(..., frames=200), and explore() that.")
    if ((problem.lower < 0) & (problem.upper > 0)).any() or not problem.target.all():
        raise TypeError(
            "explore() shows solvers of problems of two classes; this one is a regression, or of one class."
        )
    y = np.sign(problem.target)
    of_points = geometry.described(problem.gram, problem.gram.X, y, feature_names)
    cap = np.minimum(np.maximum(problem.upper, -problem.lower), np.finfo(float).max)
    return {
        "kind": "replay",
        "title": title or TITLE,
        "words": problem_in_words(problem),
        "problem": of_points | {"y": array(y, "i1"), "cap": array(cap)},
        "solvers": [_of_run(run, problem.n, problem.gram.tau) for run in runs],
    }


def _of_run(run: "Run", n: int, tau: float) -> dict[str, Any]:
    """Return the frames of a run; of each only the coefficients that have changed."""
    now, changed, values = np.zeros(n), [], []
    for frame in run.frames:
        beta = np.zeros(n)
        beta[frame.support] = frame.values
        moved = np.flatnonzero(beta != now)
        changed.append(moved)
        values.append(beta[moved])
        now = beta
    # A constant feature is a part of the bias that depends on the coefficients.
    bias = [frame.bias + tau**2 * float(frame.values.sum()) for frame in run.frames]
    columns = {name: array([getattr(frame, name) for frame in run.frames]) for name in ("step", "seconds", "gap")}
    assert run.solution is not None
    status = run.solution.status.name.lower().replace("_", " ")
    return {
        "name": run.name, "words": f"{status} after {run.solution.n_iter} iterations", **columns,
        "evaluations": array([frame.kernel_evaluations for frame in run.frames]), "bias": array(bias),
        "sizes": array([moved.size for moved in changed], "i4"), "index": array(np.concatenate(changed), "i4"),
        "value": array(np.concatenate(values)),
    }  # fmt: skip
