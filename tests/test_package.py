import ast
import errno
import functools
import gc
import importlib
import math
import operator
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import zerogap
from zerogap import compiled, precision

SOURCE = Path(zerogap.__file__).parent


def test_every_public_name_loads():
    for name in zerogap.__all__:
        assert getattr(zerogap, name) is not None
        assert name in dir(zerogap)
    with pytest.raises(AttributeError, match="has no attribute 'Svc'"):
        _ = zerogap.Svc


@pytest.mark.parametrize(("name", "home"), [("Rosen", "solvers"), ("LP", "path"), ("RBF", "kernels")])
def test_a_class_that_lives_elsewhere_is_refused_with_its_address(name, home):
    with pytest.raises(AttributeError, match=f"from zerogap.{home} import {name}"):
        getattr(zerogap, name)


@pytest.mark.long
def test_names_are_right_whatever_was_loaded_first():
    code = "import zerogap; zerogap.SVC; assert callable(zerogap.solve); assert zerogap.datasets.spiral(4)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_is_lazy():
    code = "import sys, zerogap; assert not {'numba', 'sklearn', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Which module knows which.


def order() -> list[str]:
    """Return the modules and folders of the package in the order in which CONTRIBUTING.md lists them."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    tree = text.partition("src/zerogap/\n")[2].partition("\ntests/")[0]
    names = [re.split(r"\s{3,}", line.strip())[0] for line in tree.splitlines()]  # what they are for follows
    return re.findall(r"(\w+)(?:\.py|/)", " ".join(names))


def imported(source: str) -> set[str]:
    """Return the modules of the package that a source loads when it is itself loaded: not within functions, nor for types."""
    statements = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom) and node.module]
    within = {node.module.split(".")[1] for node in statements if node.module.startswith("zerogap.")}
    return within | {
        alias.name for node in statements if node.module == "zerogap" for alias in node.names if alias.name[0] != "_"
    }


def test_a_module_imports_only_from_those_above_it():
    names = order()
    here = {file.stem for file in SOURCE.glob("[!_]*.py")} | {file.parent.name for file in SOURCE.glob("*/__init__.py")}
    assert len(names) == len(set(names))
    assert set(names) == here
    for name in names:
        known = set(names[: names.index(name)]) | {name}
        for file in (SOURCE / name).glob("*.py") if (SOURCE / name).is_dir() else [SOURCE / f"{name}.py"]:
            assert imported(file.read_text()) <= known, file


def test_imports_are_seen_where_they_count():
    lines = [
        "from zerogap import loop, plots",
        "from zerogap.path.single import SingleEngine",
        "if TYPE_CHECKING:\n    from zerogap.cli import main",
        "def f():\n    from zerogap.storage import read",
    ]
    assert imported("\n".join(lines)) == {"loop", "plots", "path"}


# Machine code on disk.


def python(code: str, path: Path, **environment: str) -> str:
    """Run code in a new process that finds modules below a folder first, with no cache but the one named."""
    dropped = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    kept |= {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    return subprocess.run([sys.executable, "-c", code], check=True, env=kept, capture_output=True, text=True).stdout


ONE_FUNCTION = (
    "import numpy as np, zerogap; from zerogap.precision import dot; "
    "print(zerogap.__file__, dot(np.ones(3), np.ones(3)))"
)
A_MODEL = (
    "import zerogap; model = zerogap.SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]); "
    "print(zerogap.__file__, model.predict([[0.1], [2.9]]).tolist(), model.status_.name)"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "result"),
    [(ONE_FUNCTION, "3.0"), pytest.param(A_MODEL, "[0, 1] CONVERGED", marks=pytest.mark.long)],
    ids=["function", "model"],
)
def test_where_nothing_can_be_written_code_is_compiled_in_memory_and_nothing_is_said(code, result, tmp_path):
    """A read-only installation and no home: files stand where Numba would make its folders, so that not even root can."""
    shutil.copytree(Path(zerogap.__file__).parent, tmp_path / "zerogap", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [tmp_path / "zerogap", *(tmp_path / "zerogap").rglob("*/")]:
        (folder / "__pycache__").write_text("no folder")
    home = tmp_path / "home"
    home.write_text("no folder")
    said = python(f"import warnings; warnings.simplefilter('error'); {code}", tmp_path, HOME=str(home))
    assert said == f"{tmp_path / 'zerogap' / '__init__.py'} {result}\n"
    assert not list(tmp_path.rglob("*.nbc"))


CALLEE = """
from typing import NamedTuple
from zerogap.compiled import jit
class {record}(NamedTuple):
    {fields[0]}: float
    {fields[1]}: float
Pair = {record}
CONSTANT = {constant}
@jit
def inner(x):
    return x + {added}
"""

# Names of another module, imported one by one or with their module.
CALLERS = {
    "names": """
from callee import CONSTANT, Pair, inner
from zerogap.compiled import jit
@jit
def add(pair):
    return inner(pair.x) * CONSTANT
def outer(x):
    return add(Pair(x, x + 0.5)), add
""",
    "module": """
import callee
from zerogap.compiled import jit
@jit
def add(pair):
    return callee.inner(pair.x) * callee.CONSTANT
def outer(x):
    return add(callee.Pair(x, x + 0.5)), add
""",
}


@pytest.fixture(params=CALLERS)
def load(request, tmp_path, monkeypatch):
    """Import two modules of compiled functions, one calling the other, as a new process would: with the cache on disk only."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "caller.py").write_text(CALLERS[request.param])

    def run(added=1, constant=10, fields="xy", record="Pair"):
        """Return a result, and how often machine code was found on disk."""
        callee, source = (
            tmp_path / "callee.py",
            CALLEE.format(added=added, constant=constant, fields=fields, record=record),
        )
        if not callee.exists() or callee.read_text() != source:
            callee.write_text(source)
        importlib.invalidate_caches()
        for name in ("caller", "callee"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        result, add = importlib.import_module("caller").outer(1.0)
        return result, sum(add.stats.cache_hits.values())

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield run
    for name in ("caller", "callee"):
        sys.modules.pop(name, None)


@pytest.mark.long
def test_machine_code_is_loaded_until_the_source_of_a_callee_changes(load):
    assert load(1, 10) == (20.0, 0)
    assert load(1, 10) == (20.0, 1)
    assert load(2, 10) == (30.0, 0)
    assert load(2, 11) == (33.0, 0)
    assert load(2, 11) == (33.0, 1)
    assert load(2, 11, "yx") == (38.5, 0)  # Pair(y=1.0, x=1.5)


def test_machine_code_of_a_record_that_is_no_more_is_compiled_again(load):
    assert load(record="Old") == (20.0, 0)
    assert load(record="New") == (20.0, 0)
    assert load(record="New") == (20.0, 1)


@pytest.mark.long
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [pytest.param(0, id="empty", marks=pytest.mark.long), pytest.param(40, id="cut-off")])
def test_a_broken_file_of_the_cache_is_written_again(load, tmp_path, ending, left):
    assert load() == (20.0, 0)
    for file in tmp_path.glob(f"cache/*/*.{ending}"):
        file.write_bytes(file.read_bytes()[:left])
    assert load() == (20.0, 0)
    assert load() == (20.0, 1)


@pytest.mark.long
def test_a_full_disk_costs_time_only(load, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(compiled._CacheFiles, "_save_data", full)
        assert load() == (20.0, 0)
        assert load() == (20.0, 0)
    assert load() == (20.0, 0)
    monkeypatch.setattr(compiled._CacheFiles, "_load_index", full)
    assert load() == (20.0, 0)


def test_what_is_found_on_disk_serves_a_new_caller(tmp_path, monkeypatch):
    """Of a helper there is no machine code, but code to be linked into that of a caller; of others there is, to be called."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helping.py").write_text(
        "from zerogap.compiled import inline, jit\n@inline\ndef half(x):\n    return x / 2\n"
        "@jit\ndef third(x):\n    return x / 3\n"
        "@inline\ndef more(x):\n    return half(x) + 1\n"
    )
    for times, found in (3, 0), (5, 1):
        name = f"caller_{times}"
        (tmp_path / f"{name}.py").write_text(
            "from helping import more, third\nfrom zerogap.compiled import jit\n"
            f"@jit\ndef f(x):\n    return {times} * more(x) + third(x)\n"
        )
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, "helping", raising=False)
        caller = importlib.import_module(name)
        assert caller.f(6.0) == 4.0 * times + 2.0
        assert caller.third(6.0) == 2.0
        assert sum(caller.more.stats.cache_hits.values()) == found
        assert sum(caller.third.stats.cache_hits.values()) == found
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "helping")


def test_compilation_leaves_the_search_for_cycles_as_it_was():
    @compiled.jit
    def nonsense(x):
        return x.no_such_attribute

    assert gc.isenabled()
    with pytest.raises(numba.TypingError):
        nonsense(1.0)
    assert gc.isenabled()


def test_arrays_live_as_long_as_they_are_used():
    """References are counted in ``doubled``, which makes an array, and need not be in the others."""

    @compiled.inline
    def summed(rows, a):
        return rows[a].sum() if rows.size else 0.0

    @compiled.jit
    def doubled(record):
        return record.values * 2.0

    @compiled.jit
    def total(record):
        rows, s = record.values[1:], 0.0
        for a in range(rows.shape[0]):
            s += summed(rows, a)
        return s + record.shift

    values = np.arange(300_000.0).reshape(3, -1)
    record = Record(values, 0.5)
    for _ in range(20):
        twice = doubled(Record(doubled(record), 0.0))
        assert total(Record(twice, record.shift)) == 4.0 * values[1:].sum() + 0.5
        assert sys.getrefcount(twice) == 2
    assert total(record) == values[1:].sum() + 0.5
    assert sys.getrefcount(values) == 3


class Record(NamedTuple):
    values: np.ndarray
    shift: float


def test_code_is_made_once_for_callers_of_either_kind():
    """Machine code of what compiled code calls is made when Python calls it, from what was compiled for the other."""

    @compiled.jit
    def inner(record):
        return Record(record.values * 2.0, record.shift + 1.0)

    @compiled.jit
    def outer(record):
        return inner(inner(record)).shift

    record = Record(np.arange(3.0), 0.5)
    assert outer(record) == 2.5
    assert not inner.overloads
    doubled = inner(record)
    assert type(doubled) is Record
    assert doubled.values.tolist() == [0.0, 2.0, 4.0]
    assert len(inner.overloads) == len(inner.helper.overloads) == 1
    again = pickle.loads(pickle.dumps(inner))  # in this process the same
    assert again is inner


RECORDS = """
import sys
from typing import NamedTuple
from zerogap.compiled import jit
class Pair(NamedTuple):
    x: float
    y: float
@jit
def swapped(pair):
    if pair.x == 7.0:
        raise ValueError("seven")
    return Pair(pair.y, pair.x)
@jit
def difference(pair):
    other = swapped(pair)
    return other.x - other.y
if __name__ == "__main__":
    import records
    print(records.difference(records.Pair(1.0, 3.0)), records.swapped(records.Pair(1.0, 3.0)))
    for function in (records.swapped, records.difference):
        try:
            function(records.Pair(7.0, 3.0))
        except ValueError as error:
            print(error)
"""


def test_records_are_returned_by_code_from_disk_whoever_was_loaded_first(tmp_path):
    """Python's classes are kept with the way in, not with the helper, which the code of callers brings along."""
    (tmp_path / "records.py").write_text(RECORDS)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "records.py")],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "2.0 Pair(x=3.0, y=1.0)\nseven\nseven\n"


def test_functions_of_users_may_be_called_by_compiled_code_and_by_python():
    @numba.njit
    def users(x):
        return x + 1.0

    @compiled.jit
    def ours(x):
        return users(x) * 2.0

    assert ours(1.0) == 4.0
    assert users(1.0) == 2.0


def indexed(x, rows, flags, i, k, u):
    """Read and write elements, rows and slices of arrays in all the ways that are compiled in our own manner."""
    found = [
        x[i],
        x[-1],
        x[u],
        rows[i, k],
        rows[k][i],
        rows[i, -2],
        rows.T[k, i],
        rows[u, 1],
        float(x.size),
        float(len(rows)),
    ]
    found += [
        1.0 if flags[i] else 0.0,
        float(rows.shape[1]),
        rows[:, k].sum(),
        rows[i:, k:].sum(),
        rows[:k, 0].sum(),
        rows[i].sum(),
    ]
    found += [x[i:k].sum(), x[k:i].sum(), x[-3:].sum(), x[: -k - 99].sum(), x[2:99].sum(), x[1:][k], x[:-1].sum()]
    copy, table, marks = x.copy(), rows.copy(), flags.copy()
    copy[i], copy[-1], copy[u] = 3, 4.0, True
    table[i, k], table[k, -1] = 5.0, 6
    table[u][1] = 7.0
    table[0, 1:] = 8.0
    part = table[:, 2:]
    part[1] += 1.0
    marks[k] = not marks[k]
    total = 0.0
    for row in table:
        total += row[0]
    while i < 3:  # one assignment each, used in blocks further down
        step = x[i]
        if step > 1.0:
            total += step
        i += 1
    found += [total, copy.sum(), table.sum(), 1.0 if marks[k] else 0.0]
    return found


@pytest.mark.parametrize("order", "CF")
def test_elements_rows_and_slices_are_those_of_numpy(order):
    x, rows = np.arange(6.0), np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    wide = np.arange(48.0).reshape(6, 8)[::2, ::2]
    function = compiled.jit(indexed)
    for i, k in (0, 1), (1, 2), (-1, -2), (2, 0):
        for table in rows, wide:
            args = x, table, np.array([True, False, True]), i, k, np.uint64(2)
            assert function(*args) == indexed(*args)
    assert function(x[::-1], rows, np.zeros(3, dtype=bool), 1, 1, np.uint64(0))[0] == 4.0


def test_sums_keep_their_order_whoever_calls_first():
    """Numba compiles a function with the fast-math flags of its first caller, unless it has its own."""

    @compiled.jit
    def total(x):
        s = 0.0
        for k in range(x.size):
            s += x[k]
        return s

    @compiled.jit_sums
    def caller(x):
        return total(x)

    x = np.random.default_rng(0).standard_normal(1000)
    in_order = functools.reduce(operator.add, x.tolist(), 0.0)
    assert in_order != math.fsum(x)
    assert caller(x) == total(x) == in_order


def test_a_helper_of_compiled_code_refuses_to_be_called_from_python():
    """It has no way in: the call would end the process."""
    with pytest.raises(TypeError, match="two_sum is a helper of compiled functions"):
        precision.two_sum(1.0, 2.0)
