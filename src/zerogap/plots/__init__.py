"""Pictures of results; nothing is solved here.  They need matplotlib: ``pip install "zerogap[plots]"``.

Results draw themselves, ``path.plot()``, ``curve.plot()``, ``solution.plot()``, ``comparison.plot()``, by what is here.
"""

from zerogap.plots.boundary import decision_boundary
from zerogap.plots.cross_validation import plot_cv, plot_cv_curve
from zerogap.plots.curves import plot_error_curve, plot_score_curve
from zerogap.plots.paths import plot_pairs, plot_path
from zerogap.plots.traces import plot_comparison, plot_solution

__all__ = [
    "decision_boundary",
    "plot_comparison",
    "plot_cv",
    "plot_cv_curve",
    "plot_error_curve",
    "plot_pairs",
    "plot_path",
    "plot_score_curve",
    "plot_solution",
]
