"""Arrays in a file: written whole or not at all, read without pickle, and refused clearly if the file is another one."""

import os
import secrets
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1  # of the files; one written by a later version may hold what this one does not know
KIND, VERSION = "zerogap_kind", "zerogap_format"
TABLE_MODEL = "model with its columns"  # what the command line writes


def write_arrays(file: str | os.PathLike[str], arrays: dict[str, Any], kind: str) -> Path:
    """Write named arrays to a compressed NumPy file, ".npz" added to its name if that is missing; return its name.

    A file of that name is replaced only when the new one is complete.
    """
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    for name, value in arrays.items():
        if value.dtype.hasobject:
            raise TypeError(f"Only numbers and text can be stored; {name!r} holds Python objects.")
    target = _file_name(file).resolve()  # behind a symbolic link: the file itself is replaced, not the link
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with open(partial, "xb") as stream:
            np.savez_compressed(stream, **{**arrays, KIND: np.array(kind), VERSION: np.array(FORMAT)})
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def read_arrays(file: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read what ``write_arrays`` wrote as this kind: arrays by name, single values as Python's own."""
    name = _file_name(file)
    data = _read(name)
    found, version = data.pop(KIND, None), data.pop(VERSION, None)
    if found is None or version is None:
        raise ValueError(f"{name} holds arrays, but not those of a {kind} stored by this version of zerogap.")
    if found.item() != kind:
        reader = "`zerogap predict`" if found.item() == TABLE_MODEL else "the class that wrote it"
        raise ValueError(f"{name} holds a {found.item()}; a {kind} was asked for. Load it with {reader}.")
    if version.item() > FORMAT:
        raise ValueError(
            f"{name} was written by a later version of zerogap (format {version.item()}); upgrade to read it."
        )
    return {key: value.item() if value.ndim == 0 else value for key, value in data.items()}


def kind_of(file: str | os.PathLike[str]) -> str:
    """Return the kind of a file that ``write_arrays`` wrote; "" if it does not say."""
    found = _read(_file_name(file), (KIND,)).get(KIND)
    return "" if found is None else str(found.item())


def _read(name: Path, only: tuple[str, ...] | None = None) -> dict[str, Any]:
    try:
        with open(name, "rb") as stream:
            stored = np.load(stream, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise ValueError("a single array")
            return {key: stored[key] for key in stored.files if only is None or key in only}
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, NotImplementedError) as error:
        # NumPy takes what it does not know for a pickle, and tells how to run it.
        reason = "it holds no arrays" if "pickle" in str(error) else error
        raise ValueError(f"{name} is not a file that zerogap wrote, or it is damaged ({reason}).") from error


def _file_name(file: str | os.PathLike[str]) -> Path:
    """Return the name with ".npz" at its end, so that reading and writing mean the same file."""
    name = os.fspath(file)
    return Path(name if name.endswith(".npz") else f"{name}.npz")
