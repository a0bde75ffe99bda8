"""SVCPathCV beside GridSearchCV, and beside TorchKM if it is there: the same folds and gammas, every C against 25 of them.

python benchmarks/tuning.py                       # all sets, 25 C, 8 gammas, 5 folds, two jobs
python benchmarks/tuning.py german --gammas 3     # one set, fewer gammas
python benchmarks/tuning.py --gap 1e-3            # approximate paths, with this gap at every C

Each search runs in a process of its own, after a small one that compiles our code and starts the workers of joblib, as it is
in a session at work.  Seconds of the processor are those of all processes and threads together, so that a busy machine does not
change them; seconds by the clock tell what it does with two cores.  Memory is the largest of the process, plus that of each of
its workers.
"""

import argparse
import importlib.util
import json
import multiprocessing
import resource
import sys
import time
from typing import Any

import numpy as np
import psutil
import sklearn.svm
from common import named_set, write
from joblib import parallel_config
from joblib.externals.loky import get_reusable_executor
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import zerogap

SETS = ("german", "svmguide1", "diabetes", "breast_cancer", "digits", "a1a", "splice")
C_MIN, C_MAX = 1e-2, 1e3
GAMMAS = (1e-4, 1.0)
SEARCHES = ("ours", "grid", "torchkm")
CLOCKS = ("cpu_seconds", "seconds")


def gammas_of(count: int) -> np.ndarray:
    """Return values of gamma for features of variance one."""
    return np.geomspace(*GAMMAS, count)


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return points as an array, and labels."""
    X, y = named_set(name)
    return (X.toarray() if hasattr(X, "toarray") else X), y


def some(y: np.ndarray, count: int) -> np.ndarray:
    """Return a few rows."""
    return np.random.default_rng(0).permutation(len(y))[:count]


def folds() -> StratifiedKFold:
    """Return the folds, the same for all."""
    return StratifiedKFold(5, shuffle=True, random_state=0)


def ours(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> dict[str, Any]:
    """Every C, by a path for each fold and gamma."""

    def search(rows: Any, gammas: Any) -> Any:
        model = zerogap.SVCPathCV(
            gamma=gammas, C_min=C_MIN, C_max=C_MAX, cv=folds(), gap=options.gap, n_jobs=options.jobs
        )
        return model.fit(X[rows], y[rows])

    for backend in ("threading", "loky"):
        with parallel_config(backend):
            search(some(y, 400), [0.01, 1.0])  # compiles, also what large elbows need
    began = spent()
    model = search(slice(None), gammas_of(options.gammas).tolist())
    return {"score": model.best_score_, "C": model.C_, "gamma": model.gamma_, "events": model.n_events_, **since(began)}


def grid(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> dict[str, Any]:
    """Some C, a fit for each fold, gamma and C."""

    def search(rows: Any, values: dict[str, Any]) -> Any:
        model = GridSearchCV(sklearn.svm.SVC(cache_size=500), values, cv=folds(), n_jobs=options.jobs)
        return model.fit(X[rows], y[rows])

    search(some(y, 200), {"C": [1.0, 10.0]})
    began = spent()
    values = {"C": np.geomspace(C_MIN, C_MAX, options.values), "gamma": gammas_of(options.gammas)}
    model = search(slice(None), values)
    return {"score": model.best_score_, **model.best_params_, "events": 0, **since(began)}


def torchkm(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> dict[str, Any]:
    """The same C and gammas by TorchKM's cross-validation, on the processor, at its own tolerances and number of steps."""
    import torch
    from torchkm.cvksvm import cvksvm
    from torchkm.functions import rbf_kernel

    torch.set_num_threads(options.jobs)
    labels, n = torch.from_numpy(y), len(y)
    parts = np.empty(n, dtype=int)
    for k, (_, test) in enumerate(folds().split(X, y)):
        parts[test] = k + 1
    C = np.geomspace(C_MIN, C_MAX, options.values)
    lam = torch.from_numpy(1.0 / (2.0 * n * C))  # it minimises mean hinge loss + lam |f|²
    began, best = spent(), {"score": -1.0}
    for gamma in gammas_of(options.gammas):
        K = rbf_kernel(torch.from_numpy(X), 0.5 * float(gamma))  # exp(-2 sigma |x - z|²)
        model = cvksvm(
            Kmat=K, y=labels, nlam=C.size, ulam=lam, foldid=torch.from_numpy(parts), nfolds=5, device="cpu",
        )  # fmt: skip
        model.fit()
        errors = model.cv(model.pred, labels).numpy()
        k = int(errors.argmin())
        if 1.0 - errors[k] > best["score"]:
            best = {"score": float(1.0 - errors[k]), "C": float(C[k]), "gamma": float(gamma)}
    return {**best, "events": 0, **since(began)}


def spent() -> tuple[float, float]:
    """Return processor seconds of this process and of its workers, and the clock."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(time.user + time.system for time in times), time.perf_counter()


def since(began: tuple[float, float]) -> dict[str, float]:
    """Return what was spent since then."""
    cpu, wall = (now - then for now, then in zip(spent(), began, strict=True))
    return {"cpu_seconds": cpu, "seconds": wall}


def measured(kind: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what a search finds and costs, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_run, args=(kind, name, options, there))
    process.start()
    there.close()
    found = json.loads(here.recv())
    process.join()
    return found


def _run(kind: str, name: str, options: argparse.Namespace, pipe: Any) -> None:
    X, y = data_of(name)
    found = globals()[kind](X, y, options)
    get_reusable_executor().shutdown(wait=True)  # the memory of workers is known once they have ended
    own, worker = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    pipe.send(json.dumps({**found, "megabytes": (own + options.jobs * worker) / 1024, "n": len(y), "d": X.shape[1]}))


def row_of(name: str, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a line of the results."""
    row: dict[str, Any] = {"set": name, "n": found["ours"]["n"], "d": found["ours"]["d"]}
    for kind, one in found.items():
        row |= {f"{kind}_{key}": value for key, value in one.items() if key not in ("n", "d")}
    return row


def tell(name: str, found: dict[str, dict[str, Any]]) -> None:
    """Print a line for each search."""
    for kind, one in found.items():
        cpu, wall = (one[key] / found["ours"][key] for key in CLOCKS)
        print(
            f"{name:<14}{one['n']:>6}  {kind:<8}{one['score']:8.4f} {one['C']:9.3g} {one['gamma']:8.2g} "
            f"{one['cpu_seconds']:9.2f} {cpu:7.2f} {one['seconds']:9.2f} {wall:7.2f} {one['megabytes']:7.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--gammas", type=int, default=8)
    parser.add_argument("--values", type=int, default=25, help="of C, in the grid")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--gap", type=float, help="of approximate paths")
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=SEARCHES)
    options = parser.parse_args()
    kinds = [kind for kind in options.searches if kind != "torchkm" or importlib.util.find_spec("torchkm")]
    print(
        f"{'set':<14}{'n':>6}  {'search':<8}{'score':>8} {'C':>9} {'gamma':>8} "
        f"{'cpu s':>9} {'/ ours':>7} {'clock s':>9} {'/ ours':>7} {'MB':>7}"
    )
    rows, ratios = [], []
    for name in options.sets or SETS:
        found = {kind: measured(kind, name, options) for kind in dict.fromkeys(("ours", *kinds))}
        tell(name, found)
        rows.append(row_of(name, found))
        if "grid" in found:
            ratios.append([found["grid"][key] / found["ours"][key] for key in CLOCKS])
    if ratios:
        cpu, wall = np.exp(np.mean(np.log(ratios), axis=0))
        print(f"geometric mean {cpu:.1f} times less processor time than the grid, {wall:.1f} times by the clock")
    if len(rows) == len(SETS) and options.gammas == 8:
        write("tuning" if options.gap is None else "tuning_gap", rows)


if __name__ == "__main__":
    sys.exit(main())
