"""Models in files with what was done to their columns: no pickle, and nothing in a file runs."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from zerogap import storage
from zerogap.cli.features import ARRAYS, Preparation

KIND = storage.TABLE_MODEL
PICKLED = (".joblib", ".pkl", ".pickle")


def save(model: Any, preparation: Preparation, file: str) -> str:
    """Write a model and its preparation to one file; return the file's name."""
    from zerogap.estimators import persistence

    arrays = {f"preparation_{name}": getattr(preparation, name) for name in ARRAYS}
    more = {name: value for name, value in arrays.items() if value is not None}
    more["preparation"] = json.dumps(preparation.to_dict())
    return str(persistence.save(model, file, KIND, more))


def check_model(file: str, others: Callable[[str], bool] = lambda file: False) -> bool:
    """Refuse what is no file of a model; return whether it is one of others, which need not end in .npz."""
    if Path(file).is_file() and others(file):
        return True
    if Path(file if file.endswith(".npz") else f"{file}.npz").exists():
        return False
    if Path(file).is_file() and _is_pickle(file):
        raise ValueError(
            f"{file} is a pickle, and these are not read: reading one may run any code. zerogap certify takes models stored by "
            "skops.io.dump and by svm-train; in Python zerogap.certify(model, X, y) takes any."
        )
    if Path(file).is_file():
        raise ValueError(f"{file} is no model: zerogap fit --save and model.save write files that end in .npz.")
    raise FileNotFoundError(errno.ENOENT, "no such file", file)


def _is_pickle(file: str) -> bool:
    """Whether a file is Python's own form, as its name or its first bytes say: joblib compresses it in various ways."""
    with open(file, "rb") as stream:
        is_marked = stream.read(1) == b"\x80"  # the first byte of every pickle since Python 2.3
    return is_marked or file.lower().removesuffix(".gz").endswith(PICKLED)


def load(file: str) -> tuple[Any, Preparation | None]:
    """Return a model, and its preparation if the command line wrote it; a model saved from Python has none."""
    from zerogap.estimators import persistence

    kind = storage.kind_of(file)
    if kind != KIND:
        return persistence.load(file), None
    model, arrays = persistence.load_with(file, KIND)
    try:
        parts: dict[str, Any] = json.loads(arrays["preparation"])
        parts |= {name: np.asarray(arrays[f"preparation_{name}"]) for name in ARRAYS if f"preparation_{name}" in arrays}
        return model, Preparation(**parts)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} does not hold a whole model ({type(error).__name__}: {error}).") from error
