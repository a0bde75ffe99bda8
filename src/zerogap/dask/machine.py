"""What machines on a cluster share: the way from collections to a model, and predictions block by block."""

import copy
import inspect
import os
import re
import secrets
import warnings
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.certificate import Certificate
from zerogap.dask import block, facts
from zerogap.dask.checkpoint import Checkpoint, Start, check_folder
from zerogap.dask.cluster import Cluster, beside_tasks, current, quietly
from zerogap.dask.collections import blocks_of, check_alike, is_collection, parts_of
from zerogap.dask.facts import Facts
from zerogap.dask.partition import Spec
from zerogap.dask.rounds import Point, Round, Rounds
from zerogap.dask.table import Table
from zerogap.estimators.base import Outcome
from zerogap.gram import Gram
from zerogap.limits import limits
from zerogap.progress import RoundProgress
from zerogap.solution import Status, TraceRow


class DaskMachine(BaseEstimator):
    """Base of the machines: a fit in rounds, after which the model is an ordinary one."""

    _local_class: type
    _is_classifier: bool
    client: Any
    working_set: int
    checkpoint: Any

    def __sklearn_clone__(self) -> Any:
        """A clone has the same client, which cannot be copied."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(client=client, **{name: clone(value, safe=False) for name, value in parameters.items()})

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "client": None}  # a connection cannot be stored

    def _unfitted(self) -> Any:
        """Return the machine on one computer with these parameters."""
        names = set(inspect.signature(self._local_class).parameters)
        return self._local_class(**{name: value for name, value in self.get_params().items() if name in names})

    def to_local(self) -> Any:
        """Return the fitted model as an ordinary one, which needs no cluster.

        Returns
        -------
        zerogap.SVC or zerogap.SVR
            A model of its own: it predicts, is saved and loaded as any other.
        """
        return copy.deepcopy(self._fitted)

    @property
    def _fitted(self) -> Any:
        """The model on one computer."""
        check_is_fitted(self, "_model")
        return self._model

    def save(self, file: "str | os.PathLike[str]") -> None:
        """Write the fitted model to a file of arrays, without pickle; :func:`zerogap.load` reads it as an ordinary one.

        Parameters
        ----------
        file : str or path
            Its name; ".npz" is added if that is missing.
        """
        self.to_local().save(file)

    @property
    def coef_(self) -> Any:
        """Weights of the features; only for the linear kernel."""
        return self._fitted.coef_

    # The fit.

    def _check_options(self, model: Any) -> None:
        model._check_options()
        validation.check_count("working_set", self.working_set, advice="It is a number of points, for instance 4000.")
        validation.check_positive("C", self.C, advice="A hard margin is not solved on a cluster; use a large C.")
        if self.checkpoint is not None:
            check_folder(self.checkpoint)
        if model._is_precomputed:
            raise ValueError(
                'kernel="precomputed" is not for clusters: a matrix of kernel values has no partitions of points. '
                "Pass the points, and the kernel by name or as an object."
            )

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        model = self._unfitted()
        self._check_options(model)
        check_alike(X=X, y=y, sample_weight=sample_weight)
        with beside_tasks():
            client = current(self.client)
            with quietly():
                blocks = blocks_of(client, X, y, sample_weight, is_classifier=self._is_classifier)
            with Cluster(client, blocks) as cluster:
                return self._fit_on(cluster, model)

    def _fit_on(self, cluster: Cluster, model: Any) -> Any:
        known = facts.gather(cluster, is_classifier=self._is_classifier)
        _describe(model, known)
        model._kernel = known.resolved(model._asked_kernel(), has_bias=model._has_bias)
        specs = self._specs(model, known, secrets.token_hex(8))
        saved = self._opened(cluster, known, model._asked_kernel())
        starts = self._starts(known, len(specs)) | (saved.starts if saved else {})
        runs = []
        with limits():
            for k, spec in enumerate(specs):
                runs.append(self._run(cluster, known, spec, k, starts.get(k), saved))
        outcomes = [self._outcome(run, status) for run, status in runs]
        self._store(model, known, [point_of(run).table for run, _ in runs], outcomes)
        _warn_if_indefinite(model, [point_of(run).table for run, _ in runs])
        if saved and all(outcome.status is Status.CONVERGED for outcome in outcomes):
            saved.remove()
        self._take(model, [run for run, _ in runs], cluster)
        model._warn(outcomes)
        return self

    def _run(
        self, cluster: Cluster, known: Facts, spec: Spec, k: int, start: Start | None, saved: Checkpoint | None
    ) -> tuple[Rounds, Status]:
        """Solve one of the problems."""
        rounds = Rounds(
            cluster,
            spec,
            known.edges,
            Table.empty(known.d, is_sparse=known.is_sparse),
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            solver=self.solver,
            cache_size=self.cache_size,
            size=self.working_set,
        )
        progress = RoundProgress(self.tol, self._title(spec)) if self.verbose else None

        def watch(run: Rounds, row: TraceRow) -> None:
            if saved is not None:
                _keep(saved, k, run.table)
            if progress is not None:
                progress.bytes_moved = cluster.bytes_moved
                progress(None, row)

        try:
            with limits(self.max_time) as limit:
                most = np.inf if self.max_iter == -1 else self.max_iter
                status = rounds.run(limit, most, watch, start)
        finally:
            if progress is not None:
                progress.close()
        return rounds, status

    def _opened(self, cluster: Cluster, known: Facts, asked: Any) -> Checkpoint | None:
        """Return the checkpoint, if one is wanted, with what it has.

        The kernel is the one that was asked for: in other partitions "scale" differs by a last digit.
        """
        if self.checkpoint is None:
            return None
        prints = cluster.map(block.fingerprint, known.edges[:-1].tolist())
        data = 0
        for one in prints:
            data ^= one
        same = {name: getattr(self, name, None) for name in ("C", "loss", "epsilon", "fit_intercept", "class_weight")}
        kernel = re.sub(r" at 0x\w+", "", repr(asked))  # of a function its name
        return Checkpoint(
            self.checkpoint, {"rows": known.n, "features": known.d, "data": data, "kernel": kernel, **same}
        )

    @staticmethod
    def _outcome(run: Rounds, status: Status) -> Outcome:
        table, now = point_of(run)
        return Outcome(table.beta, now.bias, now, status, len(run.rounds), run.trace, run.evaluations)

    def _take(self, model: Any, runs: list[Rounds], cluster: Cluster) -> None:
        """Become the fitted machine."""
        fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
        rounds: list[list[Round]] = [run.rounds for run in runs]
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:  # of another fit
            delattr(self, name)
        self.__dict__.update(fitted)
        self._model, self.bytes_moved_ = model, cluster.bytes_moved
        self.rounds_ = rounds[0] if len(rounds) == 1 else rounds

    def _specs(self, model: Any, known: Facts, key: str) -> list[Spec]:
        raise NotImplementedError

    def _starts(self, known: Facts, count: int) -> dict[int, Start]:
        """Return the coefficients of the last fit, if they are wanted and fit."""
        raise NotImplementedError

    def _store(self, model: Any, known: Facts, tables: list[Table], outcomes: list[Outcome]) -> None:
        raise NotImplementedError

    def _title(self, spec: Spec) -> str:
        return "fit"

    # Predictions.

    def _apply(self, X: Any, method: str, columns: int, dtype: Any) -> Any:
        """Return what a method of the model makes of X: lazily, block by block, for a Dask collection."""
        if not is_collection(X):
            return getattr(self._fitted, method)(X)
        self._check_features(X)
        shape = () if columns == 1 else (columns,)
        meta = np.empty((0, *shape), dtype=dtype)
        if isinstance(X, da.Array):
            X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
            chunks: dict[str, Any] = {"drop_axis": 1} if columns == 1 else {"chunks": (X.chunks[0], (columns,))}
            return X.map_blocks(_of_block, self._fitted, method, meta, dtype=dtype, meta=meta, **chunks)
        apply, model = dask.delayed(_of_block, pure=True), dask.delayed(self._fitted)
        found = [apply(part, model, method, meta) for part in X.to_delayed()]
        blocks = [da.from_delayed(one, (np.nan, *shape), meta=meta) for one in found]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    def _check_features(self, X: Any) -> None:
        """Refuse a collection that cannot be predicted for before anything is computed of it."""
        width, own = X.shape[1] if X.ndim == 2 else None, self._fitted.n_features_in_
        if width is None or not (np.isnan(width) or width == own):
            raise ValueError(
                f"X must have two dimensions and the {own} features that the model was fitted with; got {X.ndim} dimension(s)"
                f"{'' if width is None else f' and {width} features'}."
            )


def point_of(run: Rounds) -> Point:
    """Return the best point of a run; zero, of which nothing is known, if a limit came before the first certificate."""
    if run.best is not None:
        return run.best
    return Point(run.table.taken(np.empty(0, dtype=np.int64)), Certificate.nothing())


def _keep(saved: Checkpoint, k: int, table: Table) -> None:
    """Write the checkpoint; a disk that is full costs that, and not the fit."""
    try:
        saved.write(k, table.number, table.beta)
    except OSError as error:
        if not saved.is_told:
            warnings.warn(
                f"The checkpoint {saved.file} cannot be written ({error.strerror}). The fit goes on without.",
                RuntimeWarning,
                stacklevel=2,
            )
        saved.is_told = True


def _describe(model: Any, known: Facts) -> None:
    """Give a model what ``fit`` learns of the features."""
    model.n_features_in_ = known.d
    if known.names is not None:
        model.feature_names_in_ = np.array(known.names, dtype=object)


def _warn_if_indefinite(model: Any, tables: list[Table]) -> None:
    table = max(tables, key=lambda one: one.size)
    if table.size and not model._kernel.is_positive:
        model._warn_if_indefinite(Gram.of_checked(table.points, model._kernel, 1.0))


def _of_block(points: Any, model: Any, method: str, meta: np.ndarray) -> np.ndarray:
    """Return what a method makes of a block, which may be empty."""
    return getattr(model, method)(points) if points.shape[0] else meta.copy()


def sums_of(X: Any, y: Any, weight: Any, function: Callable[..., np.ndarray], *arguments: Any) -> Any:
    """Return what a function makes of every part, ``function(x, y, weight, ...)``, summed, as an array of Dask."""
    check_alike(X=X, y=y, sample_weight=weight)
    apply = dask.delayed(_sums, pure=True)
    found = [apply(function, *part, *arguments) for part in parts_of(X, y, weight)]
    return da.from_delayed(dask.delayed(sum)(found), shape=(2,), meta=np.empty(0))


def _sums(function: Callable[..., np.ndarray], x: Any, y: Any, weight: Any, *arguments: Any) -> np.ndarray:
    y = np.asarray(y).ravel()
    weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=np.float64).ravel()
    return function(x, y, weight, *arguments) if y.size else np.zeros(2)


def hits(x: Any, y: np.ndarray, weight: np.ndarray, model: Any) -> np.ndarray:
    """Return the weight of rows that are predicted right, and of all."""
    return np.array([weight @ (model.predict(x) == y), weight.sum()])


def targets(x: Any, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return targets summed by weight, and the weights."""
    return np.array([weight @ y, weight.sum()])


def squares_about(x: Any, y: np.ndarray, weight: np.ndarray, model: Any, sums: np.ndarray) -> np.ndarray:
    """Return squares of y - f, and of y about its mean, summed by weight."""
    return np.array([weight @ (y - model.predict(x)) ** 2, weight @ (y - sums[0] / sums[1]) ** 2])


def r_squared(squares: np.ndarray) -> np.ndarray:
    """Return 1 - squares[0] / squares[1], and as scikit-learn has it for targets that are all the same: 1 if met, or else 0."""
    left, whole = squares
    return np.asarray(1.0 - left / whole if whole else float(left == 0.0))
