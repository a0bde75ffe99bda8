"""Mutation run: what would the tests not see?

    pip install ".[test,mutation]"
    python benchmarks/mutation.py --count 100 --seed 0

draws single mutations of the source at random (arithmetic, comparisons, constants, conditions, loops) with Cosmic Ray.
Each is tried in a copy of the tree, first with the tests that concern its module, then with the rest of the quick suite.
Those that survive are written as diffs to ``results/mutation.md``; whether one of them changes anything is for a reader to say.
"""

import argparse
import ast
import contextlib
import difflib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]

# What is mutated, and the tests that see it first; the others follow.
SOLVING = ("problem", "solve", "properties")
TESTS = {
    "problem.py": SOLVING,
    "precision.py": SOLVING,
    "gram.py": ("gram", "solve", "decomposition"),
    "kernels.py": ("kernels", "gram", "estimators"),
    "loop.py": ("solve", "comparison"),
    "limits.py": ("solve", "estimators"),
    "active_set.py": ("simple_svm", "incremental", "leave_one_out"),
    "elbow.py": ("elbow", "simple_svm", "path"),
    "path": ("path", "path_engines"),
    "estimators": ("estimators", "incremental", "leave_one_out", "path", "gaussian_process"),
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


def first_tests(file: str) -> list[str]:
    """Return the tests that concern a file."""
    names = TESTS.get(file) or TESTS[file.split("/")[0]]
    return [f"tests/test_{name}.py" for name in names]


def pytest(folder: Path, arguments: list[str], limit: float) -> tuple[str, str]:
    """Run tests in a copy of the tree; return "passed", "failed" or "too long", and the end of what they printed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(folder / "src")}
    environment.pop("NUMBA_CACHE_DIR", None)  # machine code lies beside the source, and is copied with it
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=limit_memory,
    ) as process:  # fmt: skip
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return "too long", ""
    return "failed" if process.returncode else "passed", "\n".join(out.splitlines()[-15:])


def limit_memory() -> None:
    """Let a mutation of a size fail by itself, before the machine does."""
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))


def copied(source: Path, target: Path) -> Path:
    """Copy a tree with the times of its files, by which compiled code is known to be that of its source."""
    ignored = shutil.ignore_patterns(".*", "build", "dist", "results")
    return shutil.copytree(source, target, ignore=ignored)


def attempt(mutation: Mutation, pristine: Path, folder: Path, limit: float, ignored: list[str]) -> str:
    """Return how a mutation is caught, or "survived"."""
    copied(pristine, folder)
    try:
        (folder / "src/zerogap" / mutation.file).write_text(mutation.mutated)
        first = first_tests(mutation.file)
        outcome, _ = pytest(folder, ["-n", "0", "-x", *first], limit)
        if outcome != "passed":
            return f"{outcome}, its own tests"
        rest = [f"--ignore={file}" for file in (*first, *ignored)]
        outcome, _ = pytest(folder, ["-n", "0", "-x", *rest, "tests"], limit)
        return "survived" if outcome == "passed" else f"{outcome}, the other tests"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(mutations: list[Mutation], jobs: int, limit: float, ignored: list[str], report: Path) -> int:
    """Try all; write the report as results come, so that a run cut short is not lost."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as place:
        pristine = copied(ROOT, Path(place) / "pristine")
        began = time.perf_counter()
        outcome, said = pytest(pristine, ["-n", str(jobs), *(f"--ignore={file}" for file in ignored)], 3600)
        if outcome != "passed":
            raise SystemExit(f"The tests fail without any mutation:\n{said}")
        print(f"without mutation the tests pass, in {time.perf_counter() - began:.0f} s", flush=True)
        results: dict[int, str] = {}
        with ThreadPoolExecutor(jobs) as pool:
            tasks = {
                pool.submit(attempt, mutation, pristine, Path(place) / str(k), limit, ignored): k
                for k, mutation in enumerate(mutations)
            }
            for done in as_completed(tasks):
                k = tasks[done]
                results[k] = done.result()
                report.write_text(table(mutations, results))
                print(f"{len(results):4d} of {len(mutations)}  {mutations[k].file:<28} {results[k]}", flush=True)
    return sum(result == "survived" for result in results.values())


def table(mutations: list[Mutation], results: dict[int, str]) -> str:
    """Return the report: how many were caught by what, and every survivor as a diff."""
    lines = ["# Mutations", "", "| outcome | mutations |", "|---|---|"]
    for outcome in sorted(set(results.values())):
        lines.append(f"| {outcome} | {sum(result == outcome for result in results.values())} |")
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
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="tried at once (default: cores)")
    parser.add_argument("--limit", type=float, default=600, help="seconds a run of tests may take (default 600)")
    parser.add_argument("--ignore", nargs="*", default=["tests/test_reproduce.py"], help="tests never run")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results/mutation.md")
    parser.add_argument("--list", action="store_true", help="print the mutations and try none")
    options = parser.parse_args()
    mutations = draw(options.count, options.seed, options.only)
    if options.list:
        for k, mutation in enumerate(mutations):
            print(f"{k}: {mutation.file}, {mutation.operator}\n{mutation.diff}\n")
        return
    survived = run(mutations, options.jobs, options.limit, options.ignore, options.output)
    print(f"{survived} of {len(mutations)} survived: {options.output}")


if __name__ == "__main__":
    main()
