"""What SVCPathCV and SVRPathCV share: candidates, folds, the curve of each candidate, and the choice among them."""

import math
import time
import uuid
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted, check_X_y, indexable, validate_data

from zerogap import validation
from zerogap.estimators import fold_matrix
from zerogap.estimators.base import KernelMachine
from zerogap.estimators.cv_curve import CVCurve, cv_curve, spread
from zerogap.estimators.fold_paths import Fold, FoldPath, Rows, Task, transformed
from zerogap.estimators.scoring import scoring_name
from zerogap.estimators.workers import run
from zerogap.kernels import as_kernel, is_precomputed
from zerogap.limits import interruptible
from zerogap.path import ScoreCurve
from zerogap.path.checks import check_gap, check_limits, check_range
from zerogap.wording import count, number, score_in_words

REPR_LENGTH = 700  # characters, as scikit-learn has it
SELECTIONS = ("best", "one_se")
MEMBERS = 5  # rows a class, on average: with fewer y is hardly one of classes
INEXACT = 1e-6  # a relative gap that an exact path has nowhere, whatever rounding does to kernel values


class Candidate(NamedTuple):
    """A kernel to try, and of a regression an epsilon."""

    kernel: Any
    gamma: Any
    epsilon: float | None = None

    @property
    def has_gamma(self) -> bool:
        """Whether gamma has a part in it: only kernels by name take it."""
        return isinstance(self.kernel, str) and self.kernel in ("rbf", "poly", "sigmoid")

    @property
    def params(self) -> dict[str, Any]:
        """What it consists of, by name."""
        gamma = {"gamma": self.gamma} if self.has_gamma else {}
        return {"kernel": self.kernel} | gamma | ({} if self.epsilon is None else {"epsilon": self.epsilon})


class PathCV(KernelMachine):
    """Base of the estimators that choose C, and the kernel, by cross-validated paths."""

    C_min: float
    C_max: float
    fit_intercept: bool
    cv: Any
    scoring: Any
    selection: str
    gap: float | None = None
    cache_size: float = 1000  # of approximate paths
    transformer: Any
    n_jobs: int | None
    epsilon: Any = None
    _targets: str  # what y is called

    # What the two differ in.

    def _path_model(self, candidate: Candidate) -> Any:
        """Return the estimator of a path, not fitted."""
        raise NotImplementedError

    def _final_model(self, candidate: Candidate, C: float) -> Any:
        """Return the estimator at one C, not fitted."""
        raise NotImplementedError

    def _reader(self) -> Any:
        """Return a function of (fitted path, X, y, weight) that returns the curve of a fold."""
        raise NotImplementedError

    def _check_folds(self, rows: Rows, folds: Sequence[Fold]) -> None:
        """Refuse folds that no path can be followed for, or scored on."""

    # Fitting.

    def _checked(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Return X (and y), checked; where a transformer comes first it is to see the points as they are, gaps and all."""
        is_new = options.get("reset", True)
        if not (self.transformer is not None if is_new else self._has_transformed):
            return self._check_points(X, y, **options)
        if hasattr(X, "iloc"):  # a data frame keeps its columns
            how: dict[str, Any] = {"skip_check_array": True}
        else:
            how = {"dtype": None, "accept_sparse": "csr", "ensure_all_finite": False}
        X = validate_data(self, X, reset=is_new, **how)
        if isinstance(y, str):
            return X
        _, y = check_X_y(np.zeros((_num_samples(X), 1)), y, y_numeric=options.get("y_numeric", False), estimator=self)
        return X, y

    def _fit_rows(self, X: Any, y: np.ndarray, sample_weight: Any, groups: Any, *, stratified: bool) -> Any:
        """Follow all paths, choose, and fit the model that was chosen; X and y are checked."""
        began = time.time()
        candidates = self._check_cv_options()
        weight = None if sample_weight is None else validation.check_weights(sample_weight, y.size)
        rows = Rows(X, y, weight)
        folds = self._folds(rows, groups, stratified=stratified)
        self._check_folds(rows, folds)
        with interruptible():
            found = self._follow(candidates, rows, folds, began)
        self._take(candidates, folds, found)
        self._choose(candidates)
        self._refit(rows)
        self._asked = {
            name: getattr(self, name) for name in ("C_min", "C_max", "selection", "scoring", "_scoring", "_lists")
        }
        self._asked["parameters"] = super().__repr__(REPR_LENGTH)
        return self

    def _check_cv_options(self) -> list[Candidate]:
        check_range("C", self.C_min, self.C_max)
        validation.check_choice("selection", self.selection, SELECTIONS)
        check_limits(None, self.max_time)
        validation.check_flag("fit_intercept", self.fit_intercept)
        check_gap(self.gap, self.cache_size, "single", None, None, self.fit_intercept)
        _check_transformer(self.transformer, type(self).__name__)
        if self.transformer is not None and self._is_precomputed:
            raise ValueError("transformer= transforms points; with kernel='precomputed' there are none. Leave it out.")
        return self._candidates()

    def _candidates(self) -> list[Candidate]:
        """Return every kernel with every gamma, if it has one, and every epsilon."""
        epsilons = [None] if self.epsilon is None else _listed("epsilon", self.epsilon)
        found: list[Candidate] = []
        kernels = _listed("kernel", self.kernel)
        if len({is_precomputed(kernel) for kernel in kernels}) > 1:
            raise ValueError(
                "kernel='precomputed' takes a kernel matrix, the others take points: choose among one kind."
            )
        for kernel in kernels:
            for gamma in _listed("gamma", self.gamma):
                if len(kernels) > 1 and not isinstance(kernel, str):
                    gamma = "scale"  # gamma is for those by name
                as_kernel(kernel, gamma, *self._shape_of(kernel))
                found += [Candidate(kernel, gamma, epsilon) for epsilon in epsilons]
                if not found[-1].has_gamma:
                    break  # one without gamma is tried once
        return found

    def _shape_of(self, kernel: Any) -> tuple[Any, Any]:
        """Return degree and coef0 for a kernel: those of the model are for kernels by name."""
        is_named = isinstance(kernel, str) or not _is_list(self.kernel)
        return (self.degree, self.coef0) if is_named else (3, 0.0)

    @property
    def _is_precomputed(self) -> bool:
        kernels = self.kernel if _is_list(self.kernel) else [self.kernel]
        return any(is_precomputed(kernel) for kernel in kernels)

    def _folds(self, rows: Rows, groups: Any, *, stratified: bool) -> list[Fold]:
        splitter = check_cv(self.cv, rows.y, classifier=stratified)
        _, _, groups = indexable(rows.X, rows.y, groups)
        try:
            splits = list(splitter.split(rows.X, rows.y, groups))
        except ValueError as error:
            classes = np.unique(rows.y).size
            if stratified and classes > max(2, rows.y.size // MEMBERS):
                raise ValueError(
                    f"{error} y has {count(classes)} classes in {count(rows.y.size, 'row')}: if it is a number to be "
                    "estimated, use SVRPathCV."
                ) from error
            raise
        if not splits:
            raise ValueError(
                f"cv={self.cv!r} gives no fold. Use a number of at least 2, or a splitter of scikit-learn's."
            )
        return [Fold(k + 1, len(splits), *map(_as_rows, split)) for k, split in enumerate(splits)]

    def _follow(
        self, candidates: Sequence[Candidate], rows: Rows, folds: Sequence[Fold], began: float
    ) -> list[list[FoldPath]]:
        """Return a list of folds for every candidate."""
        number_of_tasks, at_once = len(candidates) * len(folds), effective_n_jobs(self.n_jobs)
        deadline = None if self.max_time is None else began + self.max_time
        tasks, search = list[Task](), uuid.uuid4().hex
        for candidate in candidates:
            model, read = self._path_model(candidate), self._reader()
            for fold in folds:
                left = number_of_tasks - len(tasks)
                tasks.append(Task(model, self.transformer, fold, read, deadline, min(at_once, left) / left, search))
        try:
            found = run(tasks, rows, self.n_jobs, verbose=bool(self.verbose))
        finally:
            fold_matrix.forget(search)
        return [found[k : k + len(folds)] for k in range(0, len(found), len(folds))]

    def _take(self, candidates: Sequence[Candidate], folds: Sequence[Fold], found: list[list[FoldPath]]) -> None:
        """Store the curve of every candidate, and one row of ``cv_results_`` for each."""
        whole = [k for k, paths in enumerate(found) if all(path.curve is not None for path in paths)]
        if not whole:
            raise ValueError(f"max_time={self.max_time} ended before one candidate had all its folds. Allow more time.")
        self.cv_curves_ = [cv_curve([path.curve for path in found[k]]) for k in whole]
        self._tried = [candidates[k] for k in whole]
        kept = [found[k] for k in whole]
        self.n_splits_ = len(folds)
        self.n_events_ = sum(path.n_events for paths in found for path in paths)
        self.cv_results_ = self._results(kept)
        self._warn_if_inexact()
        short = [path for paths in found for path in paths if path.status != "complete"]
        if short:
            ends = [path.C_end for paths in kept for path in paths]
            lost = f" {count(len(found) - len(whole), 'candidate')} of {len(found)} had no C in all folds." * (
                len(whole) < len(found)
            )
            warnings.warn(
                f"{type(self).__name__} was stopped (max_time={self.max_time}): {count(len(short))} of "
                f"{count(len(found) * len(folds), 'path')} ended before C_max={self.C_max:g}, the first at "
                f"C={number(min(ends))}, and the best C is of those that all folds have.{lost} Allow more time, or ask for "
                "fewer C.",
                ConvergenceWarning,
                stacklevel=validation.callers_level(),
            )

    def _warn_if_inexact(self) -> None:
        gaps = self.cv_results_["largest_gap"]
        worst, allowed = int(gaps.argmax()), INEXACT if self.gap is None else self.gap
        if gaps[worst] > allowed:
            warnings.warn(
                f"The paths of {_named(self._tried[worst].params)} are not exact: at some C a relative gap of "
                f"{gaps[worst]:.1e} is left. Scaled features and a smaller C_max help.",
                RuntimeWarning,
                stacklevel=validation.callers_level(),
            )

    def _results(self, kept: list[list[FoldPath]]) -> dict[str, Any]:
        """Return a row for every candidate, at its own best C, with the names that scikit-learn's searches have."""
        best = [curve.at(curve.best_C) if curve.best_intervals else None for curve in self.cv_curves_]
        results: dict[str, Any] = {
            f"{how}_{what}": measure([[getattr(path, of) for path in paths] for paths in kept], axis=1)
            for what, of in (("fit_time", "fit_seconds"), ("score_time", "score_seconds"))
            for how, measure in (("mean", np.mean), ("std", np.std))
        }
        names = ("kernel", "gamma") if self.epsilon is None else ("kernel", "gamma", "epsilon")
        results |= {f"param_{name}": _column([c.params.get(name, np.ma.masked) for c in self._tried]) for name in names}
        results["param_C"] = np.array([math.nan if one is None else one.C for one in best])
        results["params"] = [
            {"C": float(C)} | candidate.params for C, candidate in zip(results["param_C"], self._tried, strict=True)
        ]
        missing = np.full(self.n_splits_, math.nan)
        scores = np.array([missing if one is None else one.folds for one in best])
        results |= {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
        means = np.array([math.nan if one is None else one.mean for one in best])
        results["mean_test_score"], results["std_test_score"] = means, spread(scores.T, ddof=0)
        results["std_error_test_score"] = np.array([math.nan if one is None else one.std_error for one in best])
        results["rank_test_score"] = scipy.stats.rankdata(-np.nan_to_num(means, nan=-np.inf), "min").astype(np.int32)
        results["n_intervals"] = np.array([curve.edges.size - 1 for curve in self.cv_curves_])
        results["n_events"] = np.array([sum(path.n_events for path in paths) for paths in kept])
        results["largest_gap"] = np.array([max(path.gap for path in paths) for paths in kept])
        return results

    # Choosing.

    def _choose(self, candidates: Sequence[Candidate]) -> None:
        means = self.cv_results_["mean_test_score"]
        if np.isnan(means).all():
            raise ValueError(f"scoring={self.scoring!r} is not defined at any C: it is NaN in some fold. Use another.")
        equal = np.flatnonzero(means == np.nanmax(means))
        self.best_index_ = int(min(equal, key=lambda k: (-self.cv_curves_[k].width, self.cv_curves_[k].best_C)))
        curve, candidate = self.cv_curve_, self._tried[self.best_index_]
        self.C_ = curve.best_C if self.selection == "best" else curve.one_se_C
        found = curve.at(self.C_)
        self.best_score_, self.best_std_error_ = found.mean, found.std_error
        self.best_intervals_, self.kernel_ = curve.best_intervals, candidate.kernel
        self.best_params_ = self.cv_results_["params"][self.best_index_] | {"C": self.C_}
        if candidate.epsilon is not None:
            self.epsilon_ = candidate.epsilon

    @property
    def cv_curve_(self) -> CVCurve:
        """The curve of the kernel that was chosen."""
        check_is_fitted(self, "best_index_")
        return self.cv_curves_[self.best_index_]

    def _by_rank(self) -> np.ndarray:
        """Return the numbers of the candidates, best first: of equal ones that which was chosen, then as they were given."""
        ranks = self.cv_results_["rank_test_score"]
        return np.lexsort((np.arange(ranks.size) != self.best_index_, ranks))

    def _refit(self, rows: Rows) -> None:
        """Fit the model that was chosen to all rows: at one C that costs less than another path."""
        candidate = self._tried[self.best_index_]
        model = self._final_model(candidate, self.C_)
        X = rows.X
        steps = [] if self.transformer is None else [clone(self.transformer)]
        for step in steps:
            X = transformed(step, X, rows.y, rows.weight)
        model.fit(X, rows.y, rows.weight)
        self.gamma_ = getattr(model._kernel, "gamma", None)
        self.best_estimator_ = make_pipeline(*steps, model) if steps else model

    # Reading.

    def _as_fitted(self, name: str) -> Any:
        """Return a parameter as the search had it: ``set_params`` changes the next search, not what this one has found."""
        asked = self.__dict__.get("_asked", {})  # models of older versions do not have it
        return asked.get(name, getattr(self, name))

    @property
    def _has_transformed(self) -> bool:
        """Whether the search had a transformer."""
        return hasattr(self.best_estimator_, "steps")

    def _read(self, X: Any) -> tuple[Any, Any]:
        """Return the fitted model and checked points for it."""
        check_is_fitted(self, "best_estimator_")
        now = self._twin()  # another thread may fit meanwhile
        return now.best_estimator_, now._checked(X, reset=False)

    def predict(self, X: Any) -> np.ndarray:
        """Return what the model that was chosen predicts.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,)
            Labels, or targets.
        """
        model, X = self._read(X)
        return model.predict(X)

    def plot(self, grid: Any = None, *, ax: Any = None) -> Any:
        """Draw the curve of every kernel that was tried, what was chosen with one standard error on both sides.

        Parameters
        ----------
        grid : int or array, optional
            A grid beside the curve that was chosen: the number of its C, or their values.
        ax : matplotlib axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        matplotlib axes
            The drawing.
        """
        from zerogap.plots import plot_cv

        check_is_fitted(self, "best_index_")
        return plot_cv(self, grid, ax=ax)

    def explore(
        self,
        file: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
        title: str | None = None,
    ) -> Any:
        """Show the kernel that was chosen at every C, the score of the folds beside it: a page, or with None a widget.

        A search keeps its model at one C, and no path over all rows; so these are given once more, and that path is followed.

        Parameters
        ----------
        file : str, path or None
            The page to write, such as "page.html"; it needs nothing else, and no network.  With None a widget is returned.
        X : array or CSR matrix of shape (n, d)
            The points that the search was fitted to, or their kernel matrix with ``kernel="precomputed"``.
        y : array of shape (n,)
            Their labels, or targets.
        sample_weight : array of shape (n,), optional
            Their weights.
        feature_names : list of str, optional
            Names of the features; by default those of the data frame it was fitted to.
        title : str, optional
            Title of the page.

        Returns
        -------
        pathlib.Path or widget
            The file; or the widget, whose ``C`` is the one under the slider.
        """
        from zerogap.explorer.page import shown

        check_is_fitted(self, "best_estimator_")
        now = self._twin()
        X, y = now._checked(X, reset=False), np.asarray(y)
        if now._has_transformed:
            X = now.best_estimator_[:-1].transform(X)
        elif feature_names is None:
            feature_names = getattr(now, "feature_names_in_", None)
        path = now._path_model(now._tried[now.best_index_]).fit(X, y, sample_weight)
        return shown(now._explored(path, feature_names, title), file)

    def _explored(self, path: Any, feature_names: Any, title: str | None) -> dict[str, Any]:
        """Return what a page of a path over all rows shows."""
        chosen = self.C_, f"chosen by {count(self.cv_curve_.n_folds, 'fold')}"
        payload = path._payload(self.cv_curve_.mean, feature_names, title, chosen)
        for data in payload["paths"]:
            data["curve"] |= {"of": "cross-validated"}
            if data["curve"]["name"] == ScoreCurve.name:  # a mean has none
                data["curve"] |= dict.fromkeys(("name", "short"), score_in_words(self._as_fitted("_scoring")))
        return payload

    @property
    def coef_(self) -> Any:
        """Weights of the features; only if a linear kernel was chosen, without a transformer."""
        if not hasattr(self, "best_estimator_") or self._has_transformed:
            raise AttributeError("coef_ is there once a linear kernel was chosen, without a transformer.")
        return self.best_estimator_.coef_

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a model was chosen."""
        return hasattr(self, "best_estimator_")

    def in_words(self) -> str:
        """Return what was chosen, and its score.

        Returns
        -------
        str
            A line.
        """
        check_is_fitted(self, "best_estimator_")
        kernel = "" if len(self._tried) == 1 else f", {self._kernel_in_words()}"
        error = "" if self.n_splits_ == 1 else f" ± {number(self.best_std_error_, 2)}"
        folds = count(self.n_splits_, "fold")
        score = f"{self._as_fitted('_scoring')} {number(self.best_score_)}{error}"
        return f"C={number(self.C_)}{self._end_in_words()}{kernel}, {score} over {folds}"

    def _end_in_words(self) -> str:
        """Return which C are best up to an end of the range, if any are: beyond it they may be as good, or better still."""
        least, most = map(self._as_fitted, ("C_min", "C_max"))
        at_ends = [(low, high) for low, high in self.best_intervals_ if low <= least or high >= most]
        if not at_ends:
            return ""
        low, high = next((one for one in at_ends if one[0] <= self.C_ <= one[1]), at_ends[-1])
        if low <= least and high >= most:
            return " (every C is as good)"
        begin, end = "C_min" if low <= least else number(low), "C_max" if high >= most else number(high)
        words = f"at {end if high >= most else begin}" if low == high else f"from {begin} to {end}"
        if low <= self.C_ <= high:
            return f" (best {words})"
        return f" (as good {words})" if self._as_fitted("selection") == "best" else f" (the best {words})"

    def __repr__(self, N_CHAR_MAX: int = REPR_LENGTH) -> str:
        now = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "best_estimator_"):
            return now
        fitted = self.__dict__.get("_asked", {}).get("parameters", now)  # models of older versions do not have it
        return f"{now}: {self.in_words()}" if now == fitted else f"{now}, fitted as {fitted}: {self.in_words()}"

    def _repr_html_inner(self) -> str:
        return self._result_html() + super()._repr_html_inner()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        found = super()._repr_mimebundle_(**options)
        if "text/html" in found:
            found["text/html"] = self._result_html() + found["text/html"]
        return found

    def _result_html(self) -> str:
        from zerogap.estimators.cv_html import of_path_cv

        return of_path_cv(self) if hasattr(self, "best_estimator_") else ""

    def _kernel_in_words(self) -> str:
        candidate, several = self._tried[self.best_index_], self._as_fitted("_lists")
        words = [f"kernel={candidate.kernel!r}"] if "kernel" in several else []
        words += [f"gamma={number(self.gamma_)}"] if isinstance(self.gamma_, float) and "gamma" in several else []
        words += [f"epsilon={number(self.epsilon_)}"] if "epsilon" in several else []
        return ", ".join(words)

    @property
    def _lists(self) -> list[str]:
        """The parameters of which the search was given several values."""
        return [name for name in ("kernel", "gamma", "epsilon") if _is_list(getattr(self, name))]

    @property
    def _scoring(self) -> str:
        """The name of the score."""
        return scoring_name(self.scoring)


def _check_transformer(transformer: Any, search: str) -> None:
    """Refuse what does not transform points, such as a pipeline that ends in a model."""
    if transformer is None or (hasattr(transformer, "fit_transform") and not isinstance(transformer, type)):
        return
    expected = "transformer must be one of scikit-learn's, such as StandardScaler() or a pipeline of several; got"
    if isinstance(transformer, type):
        raise TypeError(f"{expected} the class {transformer.__name__}. Make one of it: {transformer.__name__}().")
    if hasattr(transformer, "steps"):
        last = type(transformer.steps[-1][1]).__name__
        raise TypeError(
            f"{expected} a pipeline that ends in {last}, which transforms nothing. {search} is the model itself: pass the "
            "steps before it."
        )
    raise TypeError(f"{expected} {type(transformer).__name__}.")


def _as_rows(rows: Any) -> np.ndarray:
    """Return rows of a fold as an array; of none NumPy makes one of floats, which is no index."""
    found = np.asarray(rows)
    return found if found.size else found.astype(np.intp)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _listed(name: str, value: Any) -> list[Any]:
    """Return a parameter that may be a list as one."""
    if not _is_list(value):
        return [value.item() if isinstance(value, np.ndarray) else value]
    values = value.tolist() if isinstance(value, np.ndarray) else list(value)
    if not values or np.ndim(value) == 2:
        raise ValueError(f"{name} must be a value, or a list of at least one; got {value!r}.")
    return values


def _column(values: list[Any]) -> np.ndarray:
    """Return values of any kind as an array of one dimension; some may be masked, as in scikit-learn's searches."""
    found: Any = np.ma.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        found[k] = value
    return found


def _named(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in params.items())
