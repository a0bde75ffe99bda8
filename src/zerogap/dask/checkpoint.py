"""Where a fit is, in a file: a client that was killed goes on from there.

The file holds the coefficients of every problem, by the numbers of the rows, and what they belong to: the data, by 64 bits that
depend on all of them, however they are parted, and the parameters that make the problem.  It is written whole or not at all.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zerogap import storage

KIND = "checkpoint of a fit on a cluster"


class Start(NamedTuple):
    """Coefficients of one problem, by the numbers of their rows in ascending order."""

    numbers: np.ndarray
    beta: np.ndarray


def path_of(file: "str | os.PathLike[str]") -> Path:
    """Return the file of that name; ".npz" is added if that is missing."""
    name = os.fspath(file)
    return Path(name if name.endswith(".npz") else f"{name}.npz")


def check_folder(file: "str | os.PathLike[str]") -> None:
    """Refuse a file that cannot be written, or is no checkpoint, before any data is read."""
    if not isinstance(file, str | os.PathLike):
        raise TypeError(f"checkpoint must be the name of a file; got {file!r} of type {type(file).__name__}.")
    folder = path_of(file).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"checkpoint is {os.fspath(file)}, and there is no folder {folder}. Make it, then fit again."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"checkpoint is {os.fspath(file)}, and {folder} cannot be written to. Name another folder."
        )
    if path_of(file).exists():
        _read(path_of(file))


def _read(file: Path) -> dict[str, Any]:
    try:
        arrays = storage.read_arrays(file, KIND)
        needed = {"belongs", "count"} | {f"{name}{k}" for k in range(int(arrays["count"])) for name in Start._fields}
        if needed - arrays.keys():
            raise ValueError(f"{file} lacks {min(needed - arrays.keys())}.")
        if any(np.size(arrays[f"numbers{k}"]) != np.size(arrays[f"beta{k}"]) for k in range(int(arrays["count"]))):
            raise ValueError(f"{file} has not one coefficient for each row.")
        return arrays
    except (ValueError, KeyError, IsADirectoryError) as error:
        raise ValueError(f"There is no checkpoint to go on from: {error} Delete the file, or name another.") from error


class Checkpoint:
    """The file, and the coefficients it has."""

    def __init__(self, file: "str | os.PathLike[str]", belongs: dict[str, Any]):
        self.file = path_of(file)
        self.belongs = {key: str(value) for key, value in belongs.items()}
        self.starts: dict[int, Start] = {}
        self.is_told = False  # that it could not be written
        if self.file.exists():
            self._read()

    def _read(self) -> None:
        arrays = _read(self.file)
        belongs = json.loads(arrays["belongs"])
        differing = [key for key in self.belongs if belongs.get(key) != self.belongs[key]]
        if differing:
            key = differing[0]
            raise ValueError(
                f"checkpoint {self.file} is of another fit: {key} was {belongs.get(key)} there, and is {self.belongs[key]} "
                "now. Delete the file, or name another."
            )
        for k in range(int(arrays["count"])):
            self.starts[k] = Start(np.atleast_1d(arrays[f"numbers{k}"]), np.atleast_1d(arrays[f"beta{k}"]))

    def write(self, k: int, numbers: np.ndarray, beta: np.ndarray) -> None:
        """Store the coefficients of problem k, the others staying as they are; problems before it have theirs."""
        some = np.flatnonzero(beta)
        self.starts[k] = Start(numbers[some], beta[some])
        arrays: dict[str, Any] = {"belongs": json.dumps(self.belongs), "count": max(self.starts) + 1}
        for number, start in self.starts.items():
            arrays |= {f"numbers{number}": start.numbers, f"beta{number}": start.beta}
        storage.write_arrays(self.file, arrays, KIND)

    def remove(self) -> None:
        """Remove the file: the fit has come to its end."""
        self.file.unlink(missing_ok=True)
