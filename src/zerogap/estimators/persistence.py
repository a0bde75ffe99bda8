"""Models in a file of our own form: arrays, and one line of JSON that says how they belong together; no pickle.

What a model holds is a tree.  Numbers, text and None are themselves, everything else is a pair {kind: content}:

    array, scalar  the name of a stored array         objects, list, tuple, dict  their parts, in order
    sparse         type, shape, data, indices, indptr  record  one of ``HOMES``: its name and its parts
    path, pairpath the arrays of a Path, or PairPath   state   one of ``HOMES``: its name and its attributes
    status         its name                            random  the state of a RandomState
    masked         values, and which are missing
    sampled        samples and scores of a SampledScoreCurve
"""

import json
import os
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap import storage
from zerogap.solution import Status

KIND = "model"
CACHE = 1000.0  # megabytes for the kernel rows of a path
PATHS = ("Path", "ApproximatePath", "RegressionPath", "EpsilonPath", "NuPath")

# Whatever else a file names is refused, so that reading one never runs code of its author's choice.
HOMES = {
    "SVC": "estimators.svc",
    "SVR": "estimators.svr",
    "LinearSVC": "estimators.linear_svc",
    "LinearSVR": "estimators.linear_svr",
    "OneClassSVM": "estimators.one_class",
    "OneClassSVMPath": "estimators.one_class_path",
    "NuSVC": "estimators.nu_svc",
    "NuSVR": "estimators.nu_svr",
    "SVCPath": "estimators.svc_path",
    "SVRPath": "estimators.svr_path",
    "SVCPathCV": "estimators.svc_path_cv",
    "SVRPathCV": "estimators.svr_path_cv",
    "Candidate": "estimators.path_cv",
    "CVCurve": "estimators.cv_curve",
    "ErrorCurve": "path",
    "ScoreCurve": "path",
    "GaussianProcessRegressor": "estimators.gaussian_process",
    "Rows": "estimators.incremental",
    "Training": "estimators.incremental",
    "Certificate": "certificate",
    "Distinct": "duplicates",
    "Factor": "solvers.cholesky",
    "Constant": "kernels",
    "Function": "kernels",
    "Linear": "kernels",
    "Polynomial": "kernels",
    "Precomputed": "kernels",
    "Product": "kernels",
    "RBF": "kernels",
    "Scaled": "kernels",
    "Sigmoid": "kernels",
    "Sum": "kernels",
    "TraceRow": "solution",
    "Nystrom": "solvers.conjugate_gradient",
    "Trace": "solution",
}


def save(model: Any, file: str | os.PathLike[str], kind: str = KIND, more: dict[str, Any] | None = None) -> Path:
    """Write a model, fitted or not, to a file that ``load`` reads; ".npz" is added to its name if missing.

    ``more`` are arrays to go with it, of another kind of file: ``load_with`` returns them.
    """
    writer = _Writer()
    tree = writer.encode(model)
    return storage.write_arrays(file, {**writer.arrays, **(more or {}), "tree": json.dumps(tree)}, kind)


def load(file: str | os.PathLike[str]) -> Any:
    """Return the model that ``save`` wrote to a file.

    Unlike unpickling, reading a file runs nothing that is in it.

    Parameters
    ----------
    file : str or path
        Its name.

    Returns
    -------
    estimator
        The model as it was stored.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from zerogap import SVC, load
    >>> model = SVC().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "model.npz"))
    ...     same = load(Path(folder, "model.npz"))
    >>> same.predict([[0.1]]).tolist()
    [0]
    """
    return load_with(file, KIND)[0]


def load_with(file: str | os.PathLike[str], kind: str) -> tuple[Any, dict[str, Any]]:
    """Return a model, and all arrays of its file."""
    arrays = storage.read_arrays(file, kind)
    try:
        return _whole(_Reader(arrays).decode(json.loads(arrays["tree"]))), arrays
    except (KeyError, TypeError, AttributeError, IndexError, json.JSONDecodeError) as error:
        raise ValueError(f"{os.fspath(file)} does not hold a whole model ({type(error).__name__}: {error}).") from error


def _whole(model: Any) -> Any:
    """Give paths the kernel values that they were stored without."""
    if hasattr(model, "_restore_paths"):
        model._restore_paths()
    elif hasattr(model, "paths_"):
        model._attach_kernel_matrix()
    else:
        path = getattr(model, "path_", None)
        if path is not None and path.gram is None:
            path.gram = model._gram(model._X, path.points.rows, CACHE)
    return model


class _Writer:
    """Turns what a model holds into a tree, and gathers the arrays on the way; one that is held twice is stored once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}

    def encode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Status):
            return {"status": value.name}
        if isinstance(value, np.ma.MaskedArray):
            return {"masked": [self._array(value.filled(None)), self._name(np.ma.getmaskarray(value))]}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return {"scalar": self._name(value.reshape(1))}
        if sp.issparse(value):
            parts = (value.data, value.indices, value.indptr)
            return {"sparse": [type(value).__name__, list(value.shape), *(self._name(part) for part in parts)]}
        if isinstance(value, np.random.RandomState):
            return {"random": self.encode(list(value.get_state()))}
        if isinstance(value, dict):
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.encode(item) for item in value]}
        return self._object(value)

    def _array(self, value: np.ndarray) -> dict[str, Any]:
        if value.dtype == object:
            return {"objects": [list(value.shape), [self.encode(item) for item in value.ravel()]]}
        return {"array": self._name(value)}

    def _name(self, value: np.ndarray) -> str:
        name = self._names.setdefault(id(value), f"array{len(self.arrays)}")
        self.arrays[name] = value  # and so it lives, and its id with it, as long as we do
        return name

    def _object(self, value: Any) -> dict[str, Any]:
        name = type(value).__name__
        if name in ("PairPath", "ApproximatePairPath") and hasattr(value, "to_dict"):
            return {"pairpath": self.encode(value.to_dict())}
        if name in PATHS and hasattr(value, "to_dict"):
            return {"path": self.encode(value.to_dict())}
        if name == "SampledScoreCurve" and hasattr(value, "samples"):
            return {"sampled": [self.encode(value.samples), self.encode(value.score)]}
        if _class_named(name) is not type(value):
            raise TypeError(
                f"{_described(value)} cannot be stored in a file without pickle. {_instead_of(value)}, or store the model "
                "with pickle or joblib."
            )
        if isinstance(value, tuple):
            return {"record": [name, [self.encode(item) for item in value]]}
        state = value._state_in_file() if hasattr(value, "_state_in_file") else value.__getstate__()
        return {"state": [name, self.encode(dict(state or {}))]}


class _Reader:
    """Turns a tree back into what a model holds."""

    def __init__(self, arrays: dict[str, Any]):
        self.arrays = arrays

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        ((kind, content),) = tree.items()
        return getattr(self, f"_{kind}")(content)

    def _status(self, name: str) -> Status:
        return Status[name]

    def _array(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def _masked(self, content: list[Any]) -> Any:
        values, mask = content
        return np.ma.MaskedArray(self.decode(values), mask=self.arrays[mask], fill_value=None)

    def _scalar(self, name: str) -> Any:
        return self.arrays[name][0]

    def _sparse(self, content: list[Any]) -> Any:
        kind, shape, *parts = content
        form = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}[kind]
        return form(tuple(self.arrays[name] for name in parts), shape=tuple(shape))

    def _random(self, content: Any) -> np.random.RandomState:
        state = np.random.RandomState()
        state.set_state(tuple(self.decode(content)))
        return state

    def _objects(self, content: list[Any]) -> np.ndarray:
        shape, items = content
        values = np.empty(len(items), dtype=object)
        values[:] = self._list(items)
        return values.reshape(shape)

    def _list(self, content: list[Any]) -> list[Any]:
        return [self.decode(item) for item in content]

    def _tuple(self, content: list[Any]) -> tuple[Any, ...]:
        return tuple(self._list(content))

    def _dict(self, content: list[Any]) -> dict[Any, Any]:
        return {self.decode(key): self.decode(item) for key, item in content}

    def _path(self, content: Any) -> Any:
        path = import_module("zerogap.path")
        arrays = self.decode(content)
        kind = str(arrays.get("kind", "path"))
        found = next((name for name in PATHS if getattr(path, name).kind == kind), None)
        if found is None:
            raise KeyError(f"no path is called {kind!r} here")
        return getattr(path, found).from_dict(arrays)

    def _pairpath(self, content: Any) -> Any:
        from zerogap.path.approximate_pairs import ApproximatePairPath
        from zerogap.path.pairwise import PairPath

        arrays = self.decode(content)
        is_approximate = arrays.get("kind") == ApproximatePairPath.kind
        return (ApproximatePairPath if is_approximate else PairPath).from_dict(arrays)

    def _sampled(self, content: list[Any]) -> Any:
        from zerogap.path import SampledScoreCurve

        return SampledScoreCurve.at(*self._list(content))

    def _record(self, content: list[Any]) -> Any:
        name, items = content
        return _known(name)(*self._list(items))

    def _state(self, content: list[Any]) -> Any:
        name, state = content
        kind = _known(name)
        value, state = kind.__new__(kind), self.decode(state)
        if hasattr(value, "__setstate__"):
            value.__setstate__(state)
        else:
            value.__dict__.update(state)
        return value


def _known(name: str) -> Any:
    found = _class_named(name)
    if found is None:
        raise KeyError(f"nothing is called {name!r} here")
    return found


def _class_named(name: str) -> Any:
    """Return one of the classes a stored model is made of, or a configured solver's; None for any other name."""
    if name in HOMES:
        return getattr(import_module(f"zerogap.{HOMES[name]}"), name)
    solvers = import_module("zerogap.solvers")
    found = getattr(solvers, name) if name in solvers.__all__ else None
    return found if isinstance(found, type) and is_dataclass(found) else None


def _instead_of(value: Any) -> str:
    """Return what can be stored in place of something that cannot."""
    if hasattr(value, "get_n_splits"):
        return "Give cv= as a number of folds, or save model.best_estimator_ alone"
    if hasattr(value, "_score_func"):
        return "Give scoring= by its name, such as 'f1_macro', or save model.best_estimator_ alone"
    if hasattr(value, "transform"):
        return "Transform the points beforehand, without transformer="
    return "Use a kernel or a solver by its name, one of zerogap.kernels or zerogap.solvers"


def _described(value: Any) -> str:
    if hasattr(value, "_score_func"):
        return f"A scorer of {value._score_func.__name__}"
    return f"The function {value.__name__!r}" if hasattr(value, "__name__") else f"A {type(value).__name__}"
