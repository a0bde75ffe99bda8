"""Mutation run: what would the tests not see?

    pip install ".[test,mutation]"
    python benchmarks/mutation.py --count 100 --seed 0

draws single mutations of the source at random (arithmetic, comparisons, constants, conditions, loops) with Cosmic Ray.
Each is tried in a copy of the tree, first with the tests that concern its module, then with the others of the quick suite that
can see it, up to the first that fails.  Those that survive are written as diffs to ``results/mutation.md``; whether one of them
changes anything is for a reader to say.
"""

import argparse
import ast
import contextlib
import difflib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]

# What is mutated, and the tests that see it first; the others follow.
TESTS = {
    "loss.py": ("problem", "certificate", "solve", "conformance", "properties"),
    "certificate.py": ("problem", "certificate", "solve", "conformance", "properties"),
    "formulations.py": ("problem", "certificate", "solve", "conformance", "properties"),
    "problem.py": ("problem", "certificate", "solve", "conformance", "properties"),
    "precision.py": ("precision", "certificate", "duplicates", "path_proof"),
    "gram.py": ("gram", "rounding", "decomposition", "solve", "conformance"),
    "kernels": ("kernels", "rounding", "gram", "estimators"),
    "loop.py": ("solve", "iterate", "conformance", "progress", "comparison"),
    "run.py": ("solve", "iterate", "conformance", "progress", "comparison"),
    "limits.py": ("limits", "interrupts", "solve"),
    "active_set.py": ("active_set", "simple_svm", "incremental", "leave_one_out"),
    "free_system.py": ("free_system", "active_set", "simple_svm", "path"),
    "path": ("path_events", "path_guards", "path_limits", "path_proof", "path", "path_engines"),
    "estimators": (
        *("estimators", "incremental", "incremental_regression", "several_classes", "leave_one_out", "model_storage"),
        *("path", "gaussian_process"),
    ),
}

# These see no more of those files than the others do: they are about other modules, or run the same code in the large.
BLIND = ("datasets", "package", "reproduce", "storage")

# And these do not run some of them at all: solvers need neither a path nor an estimator.
SOLVERS = (
    "certificate", "comparison", "conformance", "decomposition", "duplicates", "gradient_ascent", "gram", "kernels",
    "limits", "limits_in_solvers", "pair", "precision", "problem", "progress", "rosen", "rounding_in_solvers",
    "simple_svm", "solve",
)  # fmt: skip
UNSEEN = {
    "path": (
        *SOLVERS,
        "active_set",
        "free_system",
        "gaussian_process",
        "incremental",
        "incremental_regression",
        "leave_one_out",
        "properties",
        "rounding",
    ),
    "estimators": (*SOLVERS, "free_system"),
}

# Decorators choose how, not what, is computed; variables are replaced at random, mostly by nonsense that any test sees.
LEFT_OUT = ("NoOp", "RemoveDecorator", "Variable")
BITS = (
    "BitAnd",
    "BitOr",
    "BitXor",
    "LShift",
    "RShift",
)  # in place of arithmetic they raise at once, and the other way round


class Mutation(NamedTuple):
    """One change of one file."""

    file: str  # below src/zerogap
    operator: str
    source: str
    mutated: str

    @property
    def diff(self) -> str:
        """The lines that differ."""
        lines = difflib.unified_diff(self.source.splitlines(), self.mutated.splitlines(), lineterm="", n=1)
        return "\n".join(list(lines)[2:])


# Drawing.


class Places(Visitor):
    """Where an operator can be applied, in the order in which Cosmic Ray counts."""

    def __init__(self, operator):
        self.operator, self.found = operator, []

    def visit(self, node):
        """Keep the places in a node."""
        self.found += [start for start, _ in self.operator.mutation_positions(node)]
        return node


def draw(count: int, seed: int, only: str) -> list[Mutation]:
    """Draw places uniformly over all the files, and at each of them one of the mutations it allows."""
    sites: dict[tuple, list[tuple]] = {}
    for file in files():
        if only in file:
            source = (ROOT / "src/zerogap" / file).read_text()
            tree = get_ast(source)
            for name in operator_names():
                if is_used(name):
                    places = Places(get_operator(name)())
                    places.walk(tree)
                    for k, start in enumerate(places.found):
                        sites.setdefault((file, start), []).append((name, k))
    rng = random.Random(seed)
    order, drawn = sorted(sites), []
    rng.shuffle(order)
    for file, start in order:
        name, k = rng.choice(sites[file, start])
        source = (ROOT / "src/zerogap" / file).read_text()
        mutation = Mutation(file, name.split("/")[-1], source, mutate_code(source, get_operator(name)(), k))
        if is_real(mutation):
            drawn.append(mutation)
        if len(drawn) == count:
            break
    return drawn


def is_used(operator: str) -> bool:
    """Whether an operator of Cosmic Ray makes mutations that can be hard to see."""
    if "BinaryOperator" in operator:
        _, old, new = operator.split("_")
        return (old in BITS) == (new in BITS)
    return not any(part in operator for part in LEFT_OUT)


def files() -> Iterator[str]:
    """Return the files to mutate."""
    package = ROOT / "src/zerogap"
    for name in TESTS:
        found = sorted((package / name).glob("*.py")) if (package / name).is_dir() else [package / name]
        yield from (str(file.relative_to(package)) for file in found if file.exists())


def is_real(mutation: Mutation) -> bool:
    """Whether a mutation compiles and touches more than annotations and the text of messages."""
    try:
        return bare(mutation.mutated) != bare(mutation.source)
    except SyntaxError:
        return False


def bare(source: str) -> str:
    """Return the code without annotations."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


# Trying.


def tests_of(file: str, ignored: Collection[str], *, own: bool) -> list[str]:
    """Return the files of tests that can see a mutation of a file, those that concern it first, or those alone."""
    folder = file.split("/")[0]
    first = TESTS.get(file) or TESTS[folder]
    others = [] if own else sorted(path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py"))
    left_out = {*first, *ignored, *UNSEEN.get(folder, ())}
    return [f"tests/test_{name}.py" for name in (*first, *(name for name in others if name not in left_out))]


# Pytest with the tests in the order of their files on the command line, which the suite itself does not keep.
IN_ORDER = """
import sys, pytest
class InOrder:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: sys.argv.index(f"tests/{item.path.name}"))
sys.exit(pytest.main(sys.argv[1:], plugins=[InOrder()]))
"""


def pytest(folder: Path, files: list[str], limit: float) -> tuple[str, str]:
    """Run tests in a copy of the tree up to the first that fails; return "passed", its name or "too long", and the output.

    The limit is one of processor time, as the machine may have other things to do.
    """
    options = ["-p", "no:cacheprovider", "-n", "0", "-x"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(folder / "src")}
    environment.pop("NUMBA_CACHE_DIR", None)  # machine code lies beside the source, and is copied with it
    with subprocess.Popen(
        [sys.executable, "-c", IN_ORDER, *options, *files], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=partial(hold, limit),
    ) as process:  # fmt: skip
        try:
            out, _ = process.communicate(timeout=20 * limit)
        except subprocess.TimeoutExpired:  # it waits for something
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return "too long", ""
    if process.returncode == -signal.SIGXCPU:
        return "too long", out
    failed = re.findall(r"^(?:FAILED|ERROR) tests/test_(\S+)", out, flags=re.MULTILINE)
    return "passed" if process.returncode == 0 else failed[0] if failed else "crashed", out


def hold(seconds: float) -> None:
    """Let a mutation of a loop or of a size fail by itself, before the machine does."""
    resource.setrlimit(resource.RLIMIT_CPU, (round(seconds), round(seconds) + 10))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))


def copied(source: Path, target: Path) -> Path:
    """Copy a tree with the times of its files, by which compiled code is known to be that of its source."""
    ignored = shutil.ignore_patterns(".*", "build", "dist", "results")
    return shutil.copytree(source, target, ignore=ignored)


def attempt(mutation: Mutation, tests: list[str], pristine: Path, folder: Path, limit: float) -> str:
    """Return the test that catches a mutation, "too long", or "survived"."""
    copied(pristine, folder)
    try:
        (folder / "src/zerogap" / mutation.file).write_text(mutation.mutated)
        outcome, _ = pytest(folder, tests, limit)
        return "survived" if outcome == "passed" else outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    mutations: dict[int, Mutation], tests: dict[int, list[str]], jobs: int, limit: float, report: Path
) -> dict[int, str]:
    """Try all; write the report as results come, so that a run cut short is not lost."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as place:
        pristine = copied(ROOT, Path(place) / "pristine")
        began = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        outcome, said = pytest(pristine, sorted({file for files in tests.values() for file in files}), 3600)
        if outcome != "passed":
            raise SystemExit(f"The tests fail without any mutation:\n{said[-3000:]}")
        took = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
        print(f"without mutation the tests pass, in {took:.0f} s of processor time", flush=True)
        results: dict[int, str] = {}
        with ThreadPoolExecutor(jobs) as pool:
            tasks = {
                pool.submit(attempt, mutation, tests[k], pristine, Path(place) / str(k), limit): k
                for k, mutation in mutations.items()
            }
            for done in as_completed(tasks):
                k = tasks[done]
                results[k] = done.result()
                report.parent.mkdir(exist_ok=True)
                report.write_text(table(mutations, results))
                print(f"{len(results):4d} of {len(tasks)}  {k:3d}  {mutations[k].file:<28} {results[k]}", flush=True)
    return results


def table(mutations: dict[int, Mutation], results: dict[int, str]) -> str:
    """Return the report: how many were caught and how, and every survivor as a diff."""
    outcomes = Counter(
        result if result in ("survived", "too long", "crashed") else "a test" for result in results.values()
    )
    lines = ["# Mutations", "", "| outcome | mutations |", "|---|---|"]
    lines += [f"| {outcome} | {count} |" for outcome, count in sorted(outcomes.items())]
    lines += [f"| all | {len(results)} |", "", "## Survivors", ""]
    for k in sorted(results):
        if results[k] == "survived":
            mutation = mutations[k]
            lines += [f"### {k}: {mutation.file}, {mutation.operator}", "", "```diff", mutation.diff, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="mutations to draw (default 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", help="mutate files with this in their path only, such as path/ or loop.py"
    )
    parser.add_argument("--numbers", type=int, nargs="*", help="try these of the drawn only, such as earlier survivors")
    parser.add_argument("--own", action="store_true", help="only the tests that concern a file, none of the others")
    parser.add_argument("--jobs", type=int, default=1, help="tried at once (default 1)")
    parser.add_argument("--limit", type=float, default=600, help="seconds of processor time for each (default 600)")
    parser.add_argument("--ignore", nargs="*", default=BLIND, help=f"tests never run (default {' '.join(BLIND)})")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results/mutation.md")
    parser.add_argument("--list", action="store_true", help="print the mutations and try none")
    options = parser.parse_args()
    drawn = enumerate(draw(options.count, options.seed, options.only))
    mutations = {k: mutation for k, mutation in drawn if options.numbers is None or k in options.numbers}
    if options.list:
        for k, mutation in mutations.items():
            print(f"{k}: {mutation.file}, {mutation.operator}\n{mutation.diff}\n")
        return
    chosen = {k: tests_of(mutation.file, options.ignore, own=options.own) for k, mutation in mutations.items()}
    results = run(mutations, chosen, options.jobs, options.limit, options.output)
    survived = sum(result == "survived" for result in results.values())
    print(f"{survived} of {len(mutations)} survived: {options.output}")


if __name__ == "__main__":
    main()
