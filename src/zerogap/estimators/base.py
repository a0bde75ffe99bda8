"""What the estimators share: the way from rows to a solved problem, and kernels for new points."""

import copy
import inspect
import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from zerogap import validation
from zerogap.certificate import Certificate
from zerogap.duplicates import Distinct, distinct
from zerogap.gram import Gram
from zerogap.kernels import Function, Kernel, as_kernel, is_precomputed
from zerogap.kernels.base import dense_if_cheap, is_dense_cheap
from zerogap.limits import Exceeded
from zerogap.loop import default_max_steps, solve
from zerogap.problem import DualProblem
from zerogap.progress import GapProgress
from zerogap.solution import Solution, Status, Trace
from zerogap.solvers import get_solver
from zerogap.stopping import RelativeGap, Stop

CHUNK = 50_000_000  # bytes of kernel values held at once when predicting


@dataclass(frozen=True)
class Outcome:
    """A point that a model is made of and what is known of it, found by a solver, by exchanges or on a path."""

    beta: np.ndarray  # over the distinct points
    bias: float
    certificate: Certificate
    status: Status
    n_iter: int  # of the solver, or points that entered the free set
    trace: Trace
    kernel_evaluations: int
    gap_on_path: float | None = None  # the relative gap, where it is not that of the certificate

    @property
    def relative_gap(self) -> float:
        """What ``duality_gap_`` tells, and the status goes by."""
        return self.certificate.relative_gap if self.gap_on_path is None else self.gap_on_path

    @classmethod
    def of(cls, solution: Solution) -> "Outcome":
        """Return that of a run."""
        return cls(
            solution.beta,
            solution.bias,
            solution.certificate,
            solution.status,
            solution.n_iter,
            solution.trace,
            solution.problem.gram.evaluations,
        )


def judged(certificate: Certificate, path: Any, value: float, tol: float) -> tuple[Status, float]:
    """Return the status and the relative gap of a point of a path.

    Where the objective is nearly zero, as with a tube that holds all points, or with no plane between them and the origin,
    there is nothing that a gap could be relative to: it is measured as that of the path is.
    """
    gap = path.relative_gap(certificate, value)
    if gap <= tol < certificate.relative_gap:
        return Status.CONVERGED, gap
    return Status.of(certificate, tol), certificate.relative_gap


class KernelMachine(BaseEstimator):
    """Base of the estimators: parameters of the kernel, of the solver, and of the certificate."""

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    tol: float
    solver: Any
    cache_size: float
    max_iter: int
    max_time: float | None
    random_state: Any
    verbose: Any
    _objects: Any = None  # the training points, if they are no rows of numbers
    _kernel: Kernel

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def save(self, file: "str | os.PathLike[str]") -> None:
        """Write the model, fitted or not, to a file of arrays, without pickle; :func:`zerogap.load` reads it.

        A kernel that is a function of the user's cannot be stored.

        Parameters
        ----------
        file : str or path
            Its name; ".npz" is added if that is missing.
        """
        from zerogap.estimators.persistence import save

        save(self, file)

    @classmethod
    def load(cls, file: "str | os.PathLike[str]") -> Any:
        """Read a model of this class that ``save`` wrote.

        Parameters
        ----------
        file : str or path
            Its name.

        Returns
        -------
        estimator
            The model as it was stored.
        """
        from zerogap.estimators.persistence import load

        model = load(file)
        if not isinstance(model, cls):
            raise ValueError(
                f"{os.fspath(file)} holds {type(model).__name__}; {cls.__name__} was asked for. zerogap.load reads any of them."
            )
        return model

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Parameters that came since an older version stored the model have their defaults."""
        parameters = inspect.signature(type(self).__init__).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        super().__setstate__(defaults | state)

    def _twin(self) -> Any:
        """Return the model as it is now, with every attribute its own: what is stored in one is not seen in the other."""
        twin = type(self).__new__(type(self))
        twin.__dict__ = self.__dict__.copy()
        return twin

    def _become(self, twin: Any) -> Any:
        """Take over a twin at once, so that no other thread predicts with half of it: what it has lost is gone, too."""
        self.__dict__ = twin.__dict__
        return self

    def _check_options(self) -> None:
        self._asked_kernel()
        validation.check_positive(
            "tol", self.tol, advice="It is the relative duality gap to certify, for instance 1e-4."
        )
        validation.check_positive(
            "cache_size", self.cache_size, advice="It is the memory for kernel rows in megabytes."
        )
        get_solver(self._chosen_solver())
        if self.max_iter != -1:
            validation.check_count("max_iter", self.max_iter, advice="Use -1 for no limit.")
        for name in ("fit_intercept", "warm_start", "normalize_y", "shrinking", "break_ties"):
            if hasattr(self, name):
                validation.check_flag(name, getattr(self, name))
        validation.check_max_time(self.max_time)

    def _time_left(self, began: float) -> float | None:
        """Return what is left of ``max_time``: what comes before the solver, merging duplicates above all, takes time too."""
        return None if self.max_time is None else max(self.max_time - (time.perf_counter() - began), 0.0)

    def _chosen_solver(self) -> Any:
        """Return the name of a solver, or a configured one; those that set points aside do not without ``shrinking``."""
        if getattr(self, "shrinking", True) or not isinstance(self.solver, str):
            return self.solver
        solver: Any = get_solver(self.solver)
        may_shrink = is_dataclass(solver) and any(field.name == "shrinking" for field in fields(solver))
        return replace(solver, shrinking=False) if may_shrink else self.solver

    def _check_training(self, X: Any, y: Any, **options: Any) -> Any:
        """Return X and y as ``_check_points`` does; a function as kernel may take points that are no rows of numbers.

        Such objects are kept as they are, and stand for themselves by their numbers: whoever works with the rows has an array.
        """
        self._objects = None
        if not isinstance(self._asked_kernel(), Function) or are_numbers(X):
            return self._check_points(X, y, **options)
        check_consistent_length(X, y)
        y = column_or_1d(y, warn=True)
        self._objects = copy.copy(X)  # what the caller does to it later is no part of the model
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        return np.arange(y.size, dtype=np.float64)[:, None], y

    def _object_values(self, kernel: Kernel, X: Any) -> np.ndarray:
        """Return kernel values of objects against those of the training, which the function sees whole, as in scikit-learn."""
        return _object_values(kernel, X, self._objects)

    def _release_objects(self) -> None:
        """Let go of the kernel matrix of objects: predictions ask the function, and nothing else can ask for rows."""
        if self._objects is not None:
            self._kernel = self._asked_kernel()
            self.__dict__.pop("_training", None)

    def _check_points(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Return X (and y) as scikit-learn wants them checked, in float64."""
        if options.get("reset", True) and _are_plain(X, y):  # its checks take longer than some fits
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = X.shape[1]
            return (X.copy() if options.get("copy") else X), y
        dtype: Any = np.float64
        if self._is_precomputed:
            validation.refuse_sparse_kernel(X)
            dtype = (np.float64, np.float32)  # a kernel matrix in float32 may be further from symmetric and definite
        checked = validate_data(self, X, y, dtype=dtype, order="C", accept_sparse="csr", **options)
        if isinstance(checked, tuple):
            return validation.summed_up(checked[0]), checked[1]
        return validation.summed_up(checked)

    @property
    def _is_precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    def _asked_kernel(self) -> Kernel:
        """Return the kernel that the parameters ask for."""
        return as_kernel(self.kernel, self.gamma, self.degree, self.coef0)

    @property
    def _has_bias(self) -> bool:
        """Whether the bias is free, so that the linear kernel may have its origin anywhere."""
        return bool(getattr(self, "fit_intercept", False))

    def _prepare(self, X: Any, y: np.ndarray, weight: np.ndarray) -> Distinct:
        """Merge duplicates, and fix the kernel's parameters on the training data."""
        # The rows of a kernel matrix are no features: equal points are not told by equal rows alone.
        points = distinct(X, y, weight, merge=not self._is_precomputed)
        self._fix_kernel(X if self._is_precomputed else X[points.rows], points.weight)
        return points

    def _fix_kernel(self, X: Any, weight: np.ndarray | None = None) -> None:
        if self._objects is not None:
            self._kernel = looked_up(self._asked_kernel(), self._objects)
            return
        kernel = self._asked_kernel().resolved(X, weight)
        self._kernel = kernel.centred(X) if self._has_bias else kernel

    def _gram(self, X: Any, rows: np.ndarray, cache_size: float | None = None) -> Gram:
        """Return the Gram matrix of some rows."""
        if self._is_precomputed:
            return Gram(X[np.ix_(rows, rows)] if X.shape[0] == X.shape[1] else X, self._kernel)
        return Gram.of_checked(X[rows], self._kernel, self.cache_size if cache_size is None else cache_size)

    def _solve(self, problem: DualProblem, start: np.ndarray | None, title: str) -> Solution:
        """Solve one problem."""
        self._warn_if_indefinite(problem.gram)
        progress = GapProgress(self.tol, title) if self.verbose else None
        max_steps = default_max_steps(problem.n) if self.max_iter == -1 else int(self.max_iter)
        try:
            solution = solve(
                problem,
                self._chosen_solver(),
                stop=self._stop(problem),
                max_steps=max_steps,
                max_time=self.max_time,
                callback=progress,
                resume=start,
                random_state=int(check_random_state(self.random_state).randint(2**31 - 1)),
            )
        finally:
            if progress is not None:
                progress.close()
        return solution

    def _stop(self, problem: DualProblem) -> Stop:
        """Return the rule by which a problem counts as solved."""
        return RelativeGap(self.tol)

    def _warn(self, outcomes: Sequence[Outcome | Solution]) -> None:
        """Say which outcomes are short of the tolerance, once for each kind of them."""
        for status in dict.fromkeys(outcome.status for outcome in outcomes):
            if status is not Status.CONVERGED:
                alike = [outcome for outcome in outcomes if outcome.status is status]
                message = self._shortfall(status, alike, len(outcomes))
                warnings.warn(message, ConvergenceWarning, stacklevel=validation.callers_level())

    def _shortfall(self, status: Status, outcomes: Sequence[Outcome | Solution], count: int) -> str:
        """Return the message on outcomes of one status, which are some of so many."""
        worst = max(outcomes, key=lambda outcome: outcome.certificate.relative_gap)
        limit = {
            Status.MAX_STEPS: f" (max_iter={self.max_iter}{', that is ten million' if self.max_iter == -1 else ''})",
            Status.MAX_TIME: f" (max_time={self.max_time})",
        }.get(status, "")
        pairs = "" if count == 1 else f" in {len(outcomes)} of {count} pairs of classes, the worst"
        return (
            f"{type(self).__name__} stopped{pairs} after {worst.n_iter} steps with a relative duality gap of "
            f"{worst.certificate.relative_gap:.2g}, not the tol={self.tol:g} asked for: {self._advice(status)}{limit}."
        )

    def _advice(self, status: Status) -> str:
        """Return what to do about a status in the words of an estimator, whose user has no solution to resume from."""
        way = self._way_to_go_on
        if not way:
            shorter = status.advice.replace(
                ", loosen the tolerance, or resume from this solution", ", or loosen the tolerance"
            )
            return shorter.replace(", or resume from this solution", "").replace(
                "; resume from this solution to go on", ""
            )
        return status.advice.replace("resume from this solution", way).replace(f"{way} to go on", way)

    @property
    def _way_to_go_on(self) -> str:
        """How to go on from where a fit has ended, if there is a way."""
        if not hasattr(self, "warm_start"):
            return ""
        training = getattr(self, "_training", None)
        is_growing = training is not None and training.is_growing
        return "call forget([]) to go on" if is_growing else "fit again with warm_start=True to go on"

    def _warn_if_indefinite(self, gram: Gram) -> None:
        """Kernels that need not be inner products are tried on a sample of the points, as long as the limit allows."""
        try:
            is_positive = gram.seems_positive()
        except Exceeded:  # nothing is solved then
            return
        if not is_positive:
            warnings.warn(
                f"The {gram.kernel.name} kernel is not positive semidefinite on this data: the dual problem is not convex, and "
                "the duality gap proves a stationary point only. Another kernel, such as rbf, has no such problem.",
                UserWarning,
                stacklevel=validation.callers_level(),
            )

    def _store_support(self, X: Any, support: np.ndarray) -> None:
        self.support_ = support.astype(np.int32)
        has_rows = not self._is_precomputed and self._objects is None
        self.shape_fit_ = X.shape if self._objects is None else X.shape[:1]
        self.support_vectors_ = X[support] if has_rows else np.empty((0, 0))

    def _sparse_if_points_are(self, values: np.ndarray) -> Any:
        """Return coefficients in the form that scikit-learn gives them: CSR beside sparse support vectors."""
        return type(self.support_vectors_)(values) if sp.issparse(self.support_vectors_) else values

    @property
    def _coefficients(self) -> np.ndarray:
        """``dual_coef_`` as an array."""
        return self.dual_coef_.toarray() if sp.issparse(self.dual_coef_) else self.dual_coef_

    def _products(self, X: Any, groups: list[tuple[slice, np.ndarray]]) -> list[np.ndarray]:
        """Return kernel values against groups of support vectors times their coefficients (s, k), for every group."""
        if self._objects is None:
            X = self._check_points(X, reset=False)
        if self._is_precomputed or self._objects is not None:
            K = (X if self._objects is None else self._object_values(self._kernel, X))[:, self.support_]
            return [K[:, group] @ coefficients for group, coefficients in groups]
        if self.support_.size == 0:
            return [np.zeros((X.shape[0], coefficients.shape[1])) for _, coefficients in groups]
        columns = self._kernel.against(self.support_vectors_)
        prepared = columns.prepare(_alike(X, self.support_vectors_))
        found = [columns.dot(prepared, coefficients, group) for group, coefficients in groups]
        if not all(is_finite for _, is_finite in found):
            raise ValueError(self._too_large())
        return [product for product, _ in found]

    def _too_large(self) -> str:
        return (
            f"The {self._kernel.name} kernel gives values too large for float64 between these points and the support "
            "vectors. Scale the features (StandardScaler) as those of the training points were."
        )

    def _kernel_values(self, X: Any) -> Any:
        """Yield slices of the rows of X with their kernel values against the support vectors, a chunk at a time."""
        check_is_fitted(self)
        X = self._check_points(X, reset=False)
        if self._is_precomputed:
            yield slice(None), X[:, self.support_]
            return
        if self.support_.size == 0:
            yield slice(None), np.zeros((X.shape[0], 0))
            return
        columns = self._kernel.against(self.support_vectors_)
        width = self.support_.size if self._kernel.centre is None else max(self.support_.size, X.shape[1])
        rows = max(1, CHUNK // (8 * width))  # about a centre points are dense
        for start in range(0, X.shape[0], rows):
            part = slice(start, start + rows)
            values = columns.block(_alike(X[part], self.support_vectors_))
            if not np.isfinite(values).all():
                raise ValueError(self._too_large())
            yield part, values

    @property
    def coef_(self) -> Any:
        """Weights of the features; only for the linear kernel.  They follow from ``dual_coef_``, and are to be read only."""
        if not self._asked_kernel().is_linear:
            raise AttributeError(f"coef_ is there for the linear kernel only; this model has kernel={self.kernel!r}.")
        if not sp.issparse(self.dual_coef_):
            weights: Any = self._weights() + self._centre_correction()
        elif self._kernel.centre is None and not is_dense_cheap(
            self.support_vectors_
        ):  # very many features, few in use
            weights = self._sparse_if_points_are(self._pair_coefficients()) @ self.support_vectors_
        else:
            weights = self._sparse_if_points_are(self._weights() + self._centre_correction())
        (weights.data if sp.issparse(weights) else weights).flags.writeable = False
        return weights

    def _weights(self) -> np.ndarray:
        """Return w of the points about the kernel's centre."""
        raise NotImplementedError

    def _moved_support(self) -> Any:
        """Return the support vectors about the kernel's centre, in one form: products of both would differ in last digits."""
        return dense_if_cheap(self._kernel.moved(self.support_vectors_))

    def _pair_coefficients(self) -> np.ndarray:
        """Return the coefficients of the support vectors, a row for every pair of classes."""
        return self._coefficients

    def _centre_correction(self) -> Any:
        """Return what w is more about the origin: far from it one sees that coefficients sum to zero only but for rounding."""
        if self._kernel.centre is None:
            return 0.0
        return np.outer([math.fsum(row) for row in self._pair_coefficients()], self._kernel.centre)

    def _set_biases(self, biases: list[float]) -> None:
        """Store the intercepts; a bias that goes with a linear kernel about a centre is the intercept plus <w, centre>."""
        centre, self._exact_biases, self._shift = self._kernel.centre, np.array(biases), np.zeros(len(biases))
        if centre is not None:
            self._shift = (self._weights() + self._centre_correction()) @ centre
        self.intercept_ = self._exact_biases - self._shift

    @property
    def _biases(self) -> np.ndarray:
        """The biases that go with the kernel as it is, and with them a change that was made to ``intercept_``."""
        return self._exact_biases + (self.intercept_ - (self._exact_biases - self._shift))


class _Table:
    """Kernel values of objects that have numbers, looked up."""

    def __init__(self, K: np.ndarray):
        self.K = K

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the values of some objects against others, whose numbers are in columns."""
        return self.K[np.ix_(X[:, 0].astype(np.int64), Z[:, 0].astype(np.int64))]


def looked_up(kernel: Kernel, objects: Any) -> Function:
    """Return a kernel of the numbers of some objects, with the values that a function has for these."""
    return Function(_Table(validation.check_symmetric(_object_values(kernel, objects, objects))))


def _object_values(kernel: Kernel, X: Any, Z: Any) -> np.ndarray:
    return validation.check_kernel_values(kernel.values(X, Z), (len(X), len(Z)), kernel.name)


def are_numbers(X: Any) -> bool:
    """Whether these are rows of numbers; all else is for a kernel that is a function to understand."""
    if sp.issparse(X):
        return True
    try:
        X = np.asarray(X)
        if X.ndim == 2 and X.dtype.kind not in "fiubc":
            X.astype(np.float64)
    except (ValueError, TypeError):  # rows of different lengths, and what no number can be made of
        return False
    return X.ndim == 2


def _are_plain(X: Any, y: Any) -> bool:
    """Whether points and targets are arrays of finite numbers, which scikit-learn's checks would return as they are."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray or X.dtype != np.float64 or y.dtype.kind not in "biuf":
        return False
    if X.ndim != 2 or not X.size or y.shape != X.shape[:1] or not X.flags.c_contiguous:
        return False
    return bool(np.isfinite(X).all() and np.isfinite(y).all())


def _alike(X: Any, Z: Any) -> Any:
    """Return points as an array or a sparse matrix, whichever others are."""
    if sp.issparse(X) == sp.issparse(Z):
        return X
    return X.toarray() if sp.issparse(X) else sp.csr_matrix(X)
