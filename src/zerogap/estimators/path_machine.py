"""What estimators of a path share: the points they keep, kernel values of others against these, and pages."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import KernelMachine


class PathMachine(KernelMachine):
    """Base of an estimator with a path, or several of them."""

    _X: Any

    def _own(self, X: Any) -> Any:
        """Return a copy of the points, which no caller can change; of a kernel matrix only its shape is needed."""
        return np.broadcast_to(0.0, X.shape) if self._is_precomputed else X.copy()

    def _names(self, feature_names: Any) -> Any:
        """Return the names of the features: those that were given, or those of the data frame it was fitted to."""
        return getattr(self, "feature_names_in_", None) if feature_names is None else feature_names

    def _warn_of_other_scale(self, X: Any) -> None:
        """The last step of a pipeline does not know what the steps before it do; scores of raw points mean nothing."""
        how = "" if self._is_precomputed else validation.other_scale(self._check_points(X, reset=False), self._X)
        if how:
            name = type(self).__name__
            warnings.warn(
                f"The points are on another scale than those the path was fitted to: {how}. If {name} is the last step of a "
                "pipeline, use zerogap.score_curve(pipe, X, y), which transforms them first; else scale them as those were.",
                UserWarning,
                stacklevel=validation.callers_level(),
            )


class OnePath(PathMachine):
    """Base of an estimator with a ``path_``."""

    path_: Any

    def plot(self, show: str = "all", *, rows: Any = None, ax: Any = None) -> Any:
        """Draw the path: the trajectories of coefficients, the sets of points as bands, the size of the elbow.

        Parameters
        ----------
        show : str, default "all"
            "coefficients", "sets", "elbow", or all three one below another.
        rows : array of int, optional
            Rows of the data whose coefficients are drawn; by default the 150 that move most.
        ax : matplotlib axes, optional
            Where to draw, three of them for all; by default in a new figure.

        Returns
        -------
        matplotlib axes, or array of three
            The drawing.
        """
        check_is_fitted(self)
        return self.path_.plot(show, rows=rows, ax=ax)

    def explore(
        self, file: Any = None, *, curve: Any = None, feature_names: Any = None, title: str | None = None
    ) -> Any:
        """Show the solution at every value of the path: a page with a slider, or without a file a widget in a notebook.

        Parameters
        ----------
        file : str or path, optional
            The page to write, such as "page.html"; it needs nothing else, and no network.  Without it a widget is returned.
        curve : ErrorCurve, optional
            The score on held-out data, of a regression: ``model.score_curve(X, y)``.
        feature_names : list of str, optional
            Names of the features; by default those of the data frame it was fitted to.
        title : str, optional
            Title of the page.

        Returns
        -------
        pathlib.Path or widget
            The file; or the widget, whose ``C``, ``epsilon`` or ``nu`` is the one under the slider.
        """
        from zerogap.explorer.page import shown

        check_is_fitted(self)
        return shown(self._payload(curve, feature_names, title), file)

    def _payload(self, curve: Any, feature_names: Any, title: str | None, chosen: Any = None) -> dict[str, Any]:
        """Return what a page shows; ``chosen`` is where it opens, and why."""
        from zerogap.explorer.page import of_paths

        names = self._names(feature_names)
        return of_paths([self.path_], [("", "")], curve=curve, feature_names=names, title=title, chosen=chosen)

    def _against(self, X: Any) -> np.ndarray:
        """Kernel values of the path's distinct points against new ones."""
        check_is_fitted(self)
        X, rows = self._check_points(X, reset=False), self.path_.points.rows
        return np.ascontiguousarray((X[:, rows] if self._is_precomputed else self._kernel(X, self._X[rows])).T)


def check_pair(X: Any, y: Any, what: str) -> None:
    """Refuse held-out points without their labels or targets, and these without points."""
    if (X is None) != (y is None):
        raise ValueError(f"Held-out points and their {what} go together; pass both X and y, or neither.")
