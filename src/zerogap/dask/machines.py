"""SVC and SVR on a Dask cluster."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

import zerogap
from zerogap import validation
from zerogap.dask.checkpoint import Start
from zerogap.dask.collections import is_collection
from zerogap.dask.facts import Facts
from zerogap.dask.machine import DaskMachine, hits, r_squared, squares_about, sums_of, targets
from zerogap.dask.partition import Spec
from zerogap.dask.table import Table
from zerogap.estimators.base import Outcome
from zerogap.estimators.pairs import check_present, check_ties, class_factors, pairs_of


class SVC(ClassifierMixin, DaskMachine):
    """Support vector classifier on a Dask cluster, with the certificate of ``zerogap.SVC``.

    The data stays on the workers, partition by partition.  A round gathers the points that violate most, solves for them
    exactly, and sends them with their coefficients to all partitions, which bring their residuals into step and return their
    part of the certificate.  ``docs/scaling.md`` says what a round costs.

    Parameters
    ----------
    C : float, default 1.0
        Cost of a violated margin; finite.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", a function of two sets of points, or a kernel object with its own parameters.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()) over all partitions, "auto" is
        1 / n_features.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    loss : str, default "hinge"
        "hinge", C sum_i max(0, 1 - y_i f(x_i)), or "squared_hinge", C/2 times the sum of its squares.
    tol : float, default 1e-4
        Certified relative duality gap, over all partitions.
    solver : str or Solver, default "auto"
        What solves a working set.
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero.
    class_weight : dict or "balanced", default None
        Multiplies C per class.
    cache_size : float, default 1000
        Memory of the coordinator for the kernel values of a working set in megabytes.
    max_iter : int, default -1
        Limit on the rounds; -1 is none.
    max_time : float, optional
        Limit in seconds for each two-class problem; reading the data does not count.
    warm_start : bool, default False
        Start from the coefficients of the last fit, if the data has as many rows.
    decision_function_shape : str, default "ovr"
        Of ``decision_function`` with more than two classes: "ovr", a column a class, or "ovo", a column a pair of them.
    break_ties : bool, default False
        Whether ``predict`` takes the class with the largest decision value of "ovr" where there are more than two.
    verbose : bool, default False
        Show rounds, gap, support vectors and bytes moved on fits that take longer than a second.
    client : dask.distributed.Client, optional
        The cluster to work on; by default the current client.
    working_set : int, default 4000
        Points of a working set; more where more are free, as far as ``cache_size`` allows.
    checkpoint : str or path, optional
        File that has the coefficients after every round: a fit of the same data with the same parameters goes on from
        there.  It is removed once the tolerance is reached.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_ : arrays
        As in ``zerogap.SVC``; rows are counted over all partitions, in their order.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the solution; with more than two classes lists, an entry a pair.
    duality_gap_ : float
        The relative duality gap, the largest over pairs of classes.
    n_iter_ : array
        Rounds, for each pair of classes.
    kernel_evaluations_ : int
        Kernel values computed, on all machines.
    rounds_ : list of Round
        What each round has cost: points, changed coefficients, seconds, bytes; with more than two classes a list for each
        pair.
    bytes_moved_ : int
        What was sent to workers and received from them, the data itself aside.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> import zerogap.dask
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = zerogap.dask.SVC().fit(da.from_array(X, (100, 2)), da.from_array(y, 100))
    >>> bool(model.duality_gap_ <= 1e-4), type(model.to_local()).__name__
    (True, 'SVC')
    """

    _local_class = zerogap.SVC
    _is_classifier = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "hinge",
        tol: float = 1e-4,
        solver: Any = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        cache_size: float = 1000,
        max_iter: int = -1,
        max_time: float | None = None,
        warm_start: bool = False,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        verbose: Any = False,
        client: Any = None,
        working_set: int = 4000,
        checkpoint: Any = None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.tol = tol
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.verbose = verbose
        self.client = client
        self.working_set = working_set
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVC":
        """Fit the model.

        Parameters
        ----------
        X : Dask array or dataframe, array or sparse matrix of shape (n, d)
            Training points.  Blocks of a Dask array may be CSR matrices.  Plain arrays are cut, a part for each worker.
        y : Dask array or series, or array, of shape (n,)
            Labels, of two or more classes, in the same partitions as X.
        sample_weight : Dask array or series, or array, of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVC
            The fitted model itself.
        """
        return self._fit(X, y, sample_weight)

    def _specs(self, model: Any, known: Facts, key: str) -> list[Spec]:
        model.classes_, codes = known.labels, np.arange(known.labels.size)
        check_present("SVC", known.labels, codes, known.weights)
        model.class_weight_ = class_factors(self.class_weight, known.labels, codes, known.weights)
        return [
            Spec(
                f"{key}-{a}-{b}",
                model._kernel,
                float(self.C),
                self.loss,
                0.0,
                known.labels,
                model.class_weight_,
                (a, b),
            )
            for a, b in pairs_of(known.labels.size)
        ]

    def _starts(self, known: Facts, count: int) -> dict[int, Start]:
        last = getattr(self, "_model", None)
        if not self.warm_start or last is None or last.shape_fit_ != (known.n, known.d):
            return {}
        if not np.array_equal(last.classes_, known.labels):
            return {}
        order = np.argsort(last.support_)
        numbers = last.support_[order].astype(np.int64)
        found = {}
        for k, beta in enumerate(last._pair_coefficients()[:, order]):
            found[k] = Start(numbers[beta != 0], beta[beta != 0])
        return found

    def _store(self, model: Any, known: Facts, tables: list[Table], outcomes: list[Outcome]) -> None:
        used = [table.taken(np.flatnonzero(table.beta)) for table in tables]
        numbers = np.unique(np.concatenate([table.number for table in used]))
        whole = used[0]
        for table in used[1:]:
            whole = whole.joined(table.taken(np.flatnonzero(~whole.has(table.number))))
        beta, codes = np.zeros((len(used), numbers.size)), np.zeros(numbers.size, dtype=np.int64)
        for k, (table, (a, b)) in enumerate(zip(used, pairs_of(known.labels.size), strict=True)):
            at = np.searchsorted(numbers, table.number)
            beta[k, at] = table.beta
            positive = b if known.labels.size == 2 else a
            codes[at] = np.where(table.target > 0, positive, a + b - positive)
        model._store(whole.points, codes, beta, outcomes)
        model.support_ = numbers[model.support_].astype(np.int32 if known.n < 2**31 else np.int64)
        model.shape_fit_ = (known.n, known.d)

    def _title(self, spec: Spec) -> str:
        assert spec.classes is not None
        a, b = spec.pair
        return f"{spec.classes[a]} against {spec.classes[b]}"

    def decision_function(self, X: Any) -> Any:
        """Return f(x).

        Parameters
        ----------
        X : Dask array or dataframe, array or sparse matrix of shape (n, d)
            Points.

        Returns
        -------
        array or Dask array of shape (n,) or (n, k)
            For two classes positive for ``classes_[1]``; else a column a class, or a pair of classes with "ovo".  Of a Dask
            collection an array of Dask, which is not computed yet.
        """
        k = getattr(self, "classes_", np.empty(2)).size
        columns = 1 if k == 2 else k if self.decision_function_shape == "ovr" else k * (k - 1) // 2
        return self._apply(X, "decision_function", columns, np.float64)

    def predict(self, X: Any) -> Any:
        """Return the class of each point.

        Parameters
        ----------
        X : Dask array or dataframe, array or sparse matrix of shape (n, d)
            Points.

        Returns
        -------
        array or Dask array of shape (n,)
            Labels; of a Dask collection an array of Dask, which is not computed yet.
        """
        check_ties(break_ties=self.break_ties, shape=self.decision_function_shape)
        return self._apply(X, "predict", 1, getattr(self, "classes_", np.empty(0)).dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return the accuracy.

        Parameters
        ----------
        X : Dask array or dataframe, array or sparse matrix of shape (n, d)
            Points.
        y : Dask array or series, or array, of shape (n,)
            Their labels.
        sample_weight : Dask array or series, or array, of shape (n,), optional
            Their weights.

        Returns
        -------
        float or Dask array of shape ()
            Share of points that are predicted right; of Dask collections a number of Dask, which ``float`` computes.
        """
        if not is_collection(X):
            return super().score(X, y, sample_weight)
        right, whole = sums_of(X, y, sample_weight, hits, self._fitted)
        return right / whole


class SVR(RegressorMixin, DaskMachine):
    """Support vector regression on a Dask cluster, with the certificate of ``zerogap.SVR``.

    Parameters
    ----------
    C : float, default 1.0
        Cost of a deviation beyond the tube; finite.
    epsilon : float, default 0.1
        Half width of the tube within which deviations are free.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", a function of two sets of points, or a kernel object with its own parameters.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()) over all partitions, "auto" is
        1 / n_features.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    loss : str, default "epsilon_insensitive"
        "epsilon_insensitive", C sum_i max(0, |y_i - f(x_i)| - epsilon), or "squared_epsilon_insensitive", C/2 times the sum of
        its squares.
    tol : float, default 1e-4
        Certified relative duality gap, over all partitions.
    solver : str or Solver, default "auto"
        What solves a working set.
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero.
    cache_size : float, default 1000
        Memory of the coordinator for the kernel values of a working set in megabytes.
    max_iter : int, default -1
        Limit on the rounds; -1 is none.
    max_time : float, optional
        Limit in seconds; reading the data does not count.
    warm_start : bool, default False
        Start from the coefficients of the last fit, if the data has as many rows.
    verbose : bool, default False
        Show rounds, gap, support vectors and bytes moved on fits that take longer than a second.
    client : dask.distributed.Client, optional
        The cluster to work on; by default the current client.
    working_set : int, default 4000
        Points of a working set; more where more are free, as far as ``cache_size`` allows.
    checkpoint : str or path, optional
        File that has the coefficients after every round: a fit of the same data with the same parameters goes on from
        there.  It is removed once the tolerance is reached.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_ : arrays
        As in ``zerogap.SVR``; rows are counted over all partitions, in their order.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the solution.
    duality_gap_ : float
        The relative duality gap.
    n_iter_ : int
        Rounds.
    kernel_evaluations_ : int
        Kernel values computed, on all machines.
    rounds_ : list of Round
        What each round has cost: points, changed coefficients, seconds, bytes.
    bytes_moved_ : int
        What was sent to workers and received from them, the data itself aside.

    Examples
    --------
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> import zerogap.dask
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = zerogap.dask.SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.1), bool(model.duality_gap_ <= 1e-4)
    (True, True)
    """

    _local_class = zerogap.SVR
    _is_classifier = False

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "epsilon_insensitive",
        tol: float = 1e-4,
        solver: Any = "auto",
        fit_intercept: bool = True,
        cache_size: float = 1000,
        max_iter: int = -1,
        max_time: float | None = None,
        warm_start: bool = False,
        verbose: Any = False,
        client: Any = None,
        working_set: int = 4000,
        checkpoint: Any = None,
    ):
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.tol = tol
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.verbose = verbose
        self.client = client
        self.working_set = working_set
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVR":
        """Fit the model.

        Parameters
        ----------
        X : Dask array or dataframe, array or sparse matrix of shape (n, d)
            Training points.  Blocks of a Dask array may be CSR matrices.  Plain arrays are cut, a part for each worker.
        y : Dask array or series, or array, of shape (n,)
            Targets, in the same partitions as X.
        sample_weight : Dask array or series, or array, of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVR
            The fitted model itself.
        """
        return self._fit(X, y, sample_weight)

    def _check_options(self, model: Any) -> None:
        super()._check_options(model)
        validation.check_positive("epsilon", self.epsilon, zero=True, advice="It is the half width of the tube.")

    def _specs(self, model: Any, known: Facts, key: str) -> list[Spec]:
        model._cost = self.C
        return [Spec(key, model._kernel, float(self.C), self.loss, float(self.epsilon))]

    def _starts(self, known: Facts, count: int) -> dict[int, Start]:
        last = getattr(self, "_model", None)
        if not self.warm_start or last is None or last.shape_fit_ != (known.n, known.d):
            return {}
        return {0: Start(last.support_.astype(np.int64), last._coefficients[0])}

    def _store(self, model: Any, known: Facts, tables: list[Table], outcomes: list[Outcome]) -> None:
        used = tables[0].taken(np.flatnonzero(tables[0].beta))
        model._store(used.points, used.beta, outcomes[0])
        model.support_ = used.number.astype(np.int32 if known.n < 2**31 else np.int64)
        model.shape_fit_ = (known.n, known.d)

    def predict(self, X: Any) -> Any:
        """Return f(x).

        Parameters
        ----------
        X : Dask array or dataframe, array or sparse matrix of shape (n, d)
            Points.

        Returns
        -------
        array or Dask array of shape (n,)
            Predicted targets; of a Dask collection an array of Dask, which is not computed yet.
        """
        return self._apply(X, "predict", 1, np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return R², the share of the variance of y that is explained.

        Parameters
        ----------
        X : Dask array or dataframe, array or sparse matrix of shape (n, d)
            Points.
        y : Dask array or series, or array, of shape (n,)
            Their targets.
        sample_weight : Dask array or series, or array, of shape (n,), optional
            Their weights.

        Returns
        -------
        float or Dask array of shape ()
            1 - sum (y - f)² / sum (y - mean)²; where all y are the same 1 if f meets them, or else 0.  Of Dask collections a
            number of Dask, which ``float`` computes.
        """
        if not is_collection(X):
            return super().score(X, y, sample_weight)
        sums = sums_of(X, y, sample_weight, targets)
        squares = sums_of(X, y, sample_weight, squares_about, self._fitted, sums)
        return squares.map_blocks(r_squared, drop_axis=0, dtype=np.float64, meta=np.empty(()))
