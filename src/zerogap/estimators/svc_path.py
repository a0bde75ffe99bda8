"""The support vector classifier for every C at once."""

import time
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import Outcome
from zerogap.estimators.class_paths import ClassPaths
from zerogap.estimators.pairs import check_present, check_ties, chosen, class_factors, each, pairs_of, shaped
from zerogap.estimators.path_machine import check_pair
from zerogap.estimators.scoring import Held, curve_of, scoring_name
from zerogap.estimators.svc import SVC
from zerogap.limits import limits
from zerogap.path import ApproximatePath, Path, ScoreCurve
from zerogap.path.checks import check_gap, check_limits, engine_of
from zerogap.path.exactness import gap_as_read
from zerogap.solution import Status, Trace
from zerogap.wording import label, score_in_words


class SVCPath(ClassifierMixin, ClassPaths):
    """Support vector classifier, solved exactly for every C from C_min to C_max.

    Of more than two classes every pair has a path of its own, and a prediction is the vote of all pairs, as in
    :class:`zerogap.SVC`.

    Parameters
    ----------
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two sets of points.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.  Beside other
        names and functions it has no effect, as in scikit-learn; beside a kernel object it is refused.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    C_min, C_max : float, default 1e-4 and 1e3
        The range of C.
    C : float, default 1.0
        The one that ``predict`` and ``decision_function`` use unless told otherwise.
    engine : str or options, default "single"
        How the path is followed: "single", "lp" or "hastie", see :func:`zerogap.svm_path`.
    linear_system : str, optional
        "svd", "qr" or "qr-update", for engine "lp".
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero, and nothing constrains the sum of coefficients.  Engine "single" only.
    class_weight : dict or "balanced", default None
        Multiplies C per class, as in :class:`zerogap.SVC`.
    max_events : int, optional
        Stop after so many events, of each pair of classes; the path then ends at a smaller C, and a ConvergenceWarning says
        at which.
    max_time : float, optional
        Stop after so many seconds; the path then ends at a smaller C, and a ConvergenceWarning says at which.  Of more than
        two classes the pairs share the time, so that there is a range of C which all of them have.
    gap : float, optional
        A relative duality gap that is small enough at every C: then the path is approximate, straight lines between a few
        solutions, for data of which the exact one would take too long or too much memory; see :func:`zerogap.svm_path`.
    cache_size : float, default 1000
        Megabytes for kernel rows, with ``gap``; an exact path holds the whole matrix.
    decision_function_shape : str, default "ovr"
        Of ``decision_function`` with more than two classes: "ovr", a column a class, or "ovo", a column a pair of them.
    break_ties : bool, default False
        Whether ``predict`` takes the class with the largest decision value of "ovr" where there are more than two, not the
        first of those with the most votes.
    n_jobs : int, optional
        Threads for pairs of classes, as joblib counts them: None is one, -1 all.
    verbose : bool, default False
        Show progress.

    Attributes
    ----------
    paths_ : list of Path
        The solution for every C, of each pair of classes in the order (0, 1), (0, 2), ..., (1, 2), ...; of two classes a list
        of one.  With more than two, decision values are positive for the first class of a pair, and in its path the rows of
        other classes have no weight.
    path_ : Path
        That of two classes; with more there is none.
    breakpoints_ : array
        The C at which a point changes sets in any of the paths, ascending, with both ends of the range that all of them have.
    n_events_ : int
        Number of changes of sets, of all pairs.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    class_weight_ : array of shape (n_classes,)
        What multiplies C for each class.
    largest_gap_ : float
        The largest relative duality gap over every C, of all pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from zerogap import SVCPath
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = SVCPath(C_max=100.0).fit(X[::2], y[::2])
    >>> curve = path.score_curve(X[1::2], y[1::2])
    >>> bool(curve.best_score >= path.at(1.0).score(X[1::2], y[1::2]))
    True

    Three classes are three pairs of them:

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = SVCPath(C_max=100.0).fit(X[::2], y[::2])
    >>> len(path.paths_), bool(path.largest_gap_ <= 1e-9)
    (3, True)
    >>> path.score_curve(X[1::2], y[1::2], scoring="f1_macro").is_exact
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C_min: float = 1e-4,
        C_max: float = 1e3,
        C: float = 1.0,
        engine: Any = "single",
        linear_system: str | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        max_events: int | None = None,
        max_time: float | None = None,
        gap: float | None = None,
        cache_size: float = 1000,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        verbose: Any = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C_min = C_min
        self.C_max = C_max
        self.C = C
        self.engine = engine
        self.linear_system = linear_system
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_events = max_events
        self.max_time = max_time
        self.gap = gap
        self.cache_size = cache_size
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVCPath":
        """Follow the path.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.
        y : array of shape (n,)
            Labels, of two or more classes.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVCPath
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, y, sample_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "SVCPath":
        began = time.perf_counter()
        self._check_options()
        X, y = self._check_points(X, y)
        validation.check_labels(y)
        weight = validation.check_weights(sample_weight, X.shape[0])
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_present("SVCPath", self.classes_, codes, weight)
        self.class_weight_ = class_factors(self.class_weight, self.classes_, codes, weight)
        self._X, self._y = self._own(X), y.copy()
        if self.classes_.size == 2:
            self.paths_ = [self._follow_one(X, codes, weight)]
        else:
            with limits(self._time_left(began)):
                self.paths_ = self._follow_pairs(X, codes, weight, began)
        self.breakpoints_, self.n_events_ = self._all_breakpoints(), sum(path.n_events for path in self.paths_)
        self._warn_of_limit()
        return self

    def _check_options(self) -> None:
        self._asked_kernel()
        validation.check_flag("fit_intercept", self.fit_intercept)
        engine_of(self.engine, self.linear_system, self.fit_intercept)
        check_limits(self.max_events, self.max_time)
        check_gap(self.gap, self.cache_size, self.engine, self.linear_system, self.max_events, self.fit_intercept)
        validation.check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        validation.check_flag("break_ties", self.break_ties)

    # Reading.

    @property
    def path_(self) -> Path:
        """The path of two classes."""
        check_is_fitted(self)
        if len(self.paths_) > 1:
            raise AttributeError(
                f"With {self.classes_.size} classes there is no single path_; paths_ has one for each of the "
                f"{len(self.paths_)} pairs of them."
            )
        return self.paths_[0]

    @property
    def largest_gap_(self) -> float:
        """The largest relative duality gap over every C, of all pairs of classes."""
        check_is_fitted(self)
        return max(path.largest_gap_ for path in self.paths_)

    def at(self, C: float) -> SVC:
        """Return the fitted SVC for this C, the one ``SVC(C=C).fit`` would give.

        It has converged if its certificates say so; else its status and a ConvergenceWarning tell the gap.

        Parameters
        ----------
        C : float
            Within the range of the path.

        Returns
        -------
        SVC
            A model of its own.
        """
        check_is_fitted(self)
        C = validation.check_single("C", C)
        self._check_not_empty()
        gamma = getattr(self._kernel, "gamma", self.gamma) if isinstance(self.kernel, str) else self.gamma
        model = SVC(
            C=C,
            kernel=self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            tol=1e-9 if self.gap is None else self.gap,
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
            n_jobs=self.n_jobs,
        )
        model.classes_, model._kernel, model.n_features_in_ = self.classes_, self._kernel, self.n_features_in_
        model.class_weight_ = self.class_weight_.copy()
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        outcomes = each(lambda k: self._outcome(self.paths_[k], C, model.tol), len(self.paths_), self.n_jobs)
        model._warn(outcomes)
        beta = np.array([path._coefficients_at(C, on_few=True) for path in self.paths_])
        model._store(self._X, np.searchsorted(self.classes_, self._y), beta, outcomes)
        if len(self.paths_) > 1:
            model.kernel_evaluations_ += self._shared.gram.evaluations
        return model

    @staticmethod
    def _outcome(path: Path, C: float, tol: float) -> Outcome:
        """Return what is known of the solution at C."""
        gram = path.gram
        assert gram is not None
        certificate = path.certificate_at(C)
        status, bias = Status.of(certificate, tol), path.bias_in_gram(C)
        b_up, b_low = certificate.bias_interval
        # Rounding may have moved it out of the interval, or the interval itself, where a coefficient is at its bound but for
        # rounding.  If it costs more than that, the certificate's own is the better one.  That of an approximate path, which
        # has hardly ever an interval, is the one that was proved.
        is_exact = not isinstance(path, ApproximatePath)
        is_out = is_exact and not b_up <= bias <= b_low
        if is_out and gap_as_read(path, C, from_data=False) > tol * abs(certificate.primal):
            bias = certificate.bias
        return Outcome(path.beta_at(C), bias, certificate, status, 0, Trace(), gram.evaluations)

    def decision_function(self, X: Any, C: Any = None) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        C : float or array of shape (k,), optional
            By default the model's own.

        Returns
        -------
        array of shape (n,) or (n, columns), or (k, n) or (k, n, columns) for several C
            For two classes positive for ``classes_[1]``; else a column a class, or a pair of classes with "ovo".
        """
        now = self._twin()  # another thread may store another path meanwhile
        C = now._default(C)
        found = [shaped(one, now.classes_.size, now.decision_function_shape) for one in now._pair_decisions(X, C)]
        return found[0] if np.ndim(C) == 0 else np.array(found)

    def predict(self, X: Any, C: Any = None) -> np.ndarray:
        """Return the class of each point.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        C : float or array of shape (k,), optional
            By default the model's own.

        Returns
        -------
        array of shape (n,) or (k, n)
            Labels; with more than two classes the one most pairs vote for, or with ``break_ties`` the one of the largest
            decision value.
        """
        now = self._twin()  # another thread may store another path meanwhile
        check_is_fitted(now)
        check_ties(break_ties=now.break_ties, shape=now.decision_function_shape)
        C = now._default(C)
        found = [chosen(one, now.classes_.size, break_ties=now.break_ties) for one in now._pair_decisions(X, C)]
        return now.classes_[found[0] if np.ndim(C) == 0 else np.array(found)]

    def _pair_decisions(self, X: Any, C: Any) -> np.ndarray:
        """Return f(x) for every C and every pair of classes, (k, n, pairs)."""
        blocks = self._against(X)
        self._check_not_empty()
        several = validation.check_values("C", C)
        beta = [np.atleast_2d([path.beta_at(c) for c in several]) for path in self.paths_]
        bias = [np.array([[path.bias_in_gram(c)] for c in several]) for path in self.paths_]
        places, values = self._places_in_blocks(), []
        for K in blocks():
            of_pairs = []
            for b, place in zip(beta, places, strict=True):
                is_used = place >= 0
                of_pairs.append(b @ K if len(places) == 1 and is_used.all() else b[:, is_used] @ K[place[is_used]])
            values.append(np.stack([f + b for f, b in zip(of_pairs, bias, strict=True)], axis=2))
        return np.concatenate(values, axis=1)

    def score_curve(self, X: Any, y: Any, sample_weight: Any = None, *, scoring: Any = None) -> ScoreCurve:
        """Return the score on held-out data for every C of the path: every change of it, not samples.

        Of a pipeline that ends in a path it is :func:`zerogap.score_curve`, which transforms the points as the pipeline does.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        y : array of shape (n,)
            Their labels.
        sample_weight : array of shape (n,), optional
            Weights of the points in the score.
        scoring : str or callable, optional
            The score: a name of scikit-learn's, such as "balanced_accuracy" or "f1_macro", a scorer by ``make_scorer``, a
            function of true and predicted labels, or :func:`zerogap.cost_matrix_scorer`; larger is better.  By default the
            accuracy.  One of decision values, such as "roc_auc", changes between any two C: it is computed at every breakpoint
            and in the middle between two, and the curve is a :class:`zerogap.path.SampledScoreCurve`.

        Returns
        -------
        ScoreCurve
            Piecewise constant in C.

        Warns
        -----
        UserWarning
            If the points are plainly on another scale than the training points, as those are that a pipeline has yet to scale.
        """
        now = self._twin()
        check_is_fitted(now)
        now._warn_of_other_scale(X)
        return now._curve(X, y, sample_weight, scoring)

    def _curve(self, X: Any, y: Any, sample_weight: Any, scoring: Any, samples: np.ndarray | None = None) -> ScoreCurve:
        """Return the score for every C; one of decision values at these ``samples`` of C, if given."""
        K, n = self._against(X), np.shape(X)[0]
        self._check_not_empty()
        check_ties(break_ties=self.break_ties, shape=self.decision_function_shape)
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y must hold {n} labels out of {self.classes_.tolist()}; got shape {y.shape}.")
        validation.check_known_labels(y, self.classes_)
        weight = None if sample_weight is None else validation.check_weights(sample_weight, y.size)
        held = Held(self.paths_, K, self._places_in_blocks(), self.classes_, y, weight)
        curve = curve_of(
            held,
            scoring,
            break_ties=self.break_ties,
            shape=self.decision_function_shape,
            each=lambda work, number: each(work, number, self.n_jobs),
            samples=samples,
        )
        if scoring is not None:
            curve.name = score_in_words(scoring_name(scoring))
        return curve

    def plot(self, show: str = "all", *, pair: Any = None, rows: Any = None, ax: Any = None) -> Any:
        """Draw the path: the trajectories of coefficients, the sets of points as bands, the size of the elbow.

        Of more than two classes it is the path of one pair; without ``pair`` the support vectors of each.

        Parameters
        ----------
        show : str, default "all"
            "coefficients", "sets", "elbow", or all three one below another.
        pair : tuple of two labels, optional
            The pair of classes to draw, where there are more than two.
        rows : array of int, optional
            Rows of the data whose coefficients are drawn; by default the 150 that move most.
        ax : matplotlib axes, optional
            Where to draw, three of them for all; by default in a new figure.

        Returns
        -------
        matplotlib axes, or array of three
            The drawing.
        """
        from zerogap.plots import plot_pairs, plot_path

        check_is_fitted(self)
        pairs = [tuple(self.classes_[[a, b]].tolist()) for a, b in pairs_of(self.classes_.size)]
        if len(pairs) > 1 and pair is None:
            if show != "all":
                raise ValueError(
                    f"With {self.classes_.size} classes show={show!r} needs a pair of them, such as {pairs[0]}."
                )
            return plot_pairs(self.paths_, (f"{label(a)} against {label(b)}" for a, b in pairs), ax)
        wanted = pairs[0] if pair is None else tuple(pair)
        if wanted not in pairs and wanted[::-1] not in pairs:
            raise ValueError(f"pair must be two of the classes {self.classes_.tolist()}; got {pair!r}.")
        k = pairs.index(wanted if wanted in pairs else wanted[::-1])
        # Of several classes the first of a pair is the positive one.
        a, b = pairs_of(self.classes_.size)[k]
        places = (a, b) if len(pairs) == 1 else (b, a)
        classes = self.classes_[list(places)].tolist()
        return plot_path(self.paths_[k], show, rows=rows, classes=classes, places=places, ax=ax)

    def explore(
        self,
        file: Any = None,
        X: Any = None,
        y: Any = None,
        *,
        scoring: Any = None,
        curve: ScoreCurve | None = None,
        C: float | None = None,
        feature_names: Any = None,
        title: str | None = None,
    ) -> Any:
        """Show the solution at every C: a page with a slider, or without a file a widget in a notebook.

        Parameters
        ----------
        file : str or path, optional
            The page to write, such as "page.html"; it needs nothing else, and no network.  Without it a widget is returned.
        X : array or CSR matrix of shape (n, d), optional
            Held-out points, whose score is drawn for every C.
        y : array of shape (n,), optional
            Their labels.
        scoring : str or callable, optional
            The score, as in ``score_curve``.
        curve : ScoreCurve, optional
            The score itself, in place of points: ``zerogap.score_curve(pipe, X, y)`` of a pipeline.
        C : float, optional
            Where the page opens; by default in the first interval of C whose accuracy on the held-out points is within one
            standard error of the best, or where another score is best.
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

        now = self._twin()
        check_is_fitted(now)
        chosen = None
        if C is not None:
            now.paths_[0].beta_at(C)  # which says where the path ends, if C is beyond it
            chosen = float(C), "as it was told to"
        curve, held_out = now._held_out(X, y, scoring, curve)
        return shown(now._payload(curve, feature_names, title, chosen, held_out), file)

    def _payload(
        self, curve: Any, feature_names: Any, title: str | None, chosen: Any = None, held_out: int | None = None
    ) -> dict[str, Any]:
        """Return what a page shows; ``chosen`` is where it opens, and why, ``held_out`` of how many points the curve is."""
        from zerogap.explorer.page import of_paths

        options = {"feature_names": self._names(feature_names), "title": title, "held_out": held_out, "chosen": chosen}
        return of_paths(self.paths_, self._label_pairs(), curve=curve, **options)

    def _held_out(self, X: Any, y: Any, scoring: Any, curve: Any) -> tuple[Any, int | None]:
        """Return the curve of held-out points, if there are any, and their number where a standard error follows from it."""
        check_pair(X, y, "labels")
        if X is None:
            return curve, None
        return self.score_curve(X, y, scoring=scoring), len(y) if scoring in (None, "accuracy") else None

    def _label_pairs(self) -> list[tuple[str, str]]:
        """Return the labels of the negative and the positive class of every path."""
        labels = [str(label) for label in self.classes_.tolist()]
        if len(labels) == 2:
            return [(labels[0], labels[1])]
        return [(labels[b], labels[a]) for a, b in pairs_of(len(labels))]

    def _default(self, C: Any) -> Any:
        """Return C, or the model's own: where the path does not reach that it says so."""
        return self.C if C is None else C
