"""What the first seconds feel like: import, first fit and first path ever, first fit in a new process.

    python benchmarks/startup.py

Runs new processes; for the first fit and the first path ever it points Numba's cache at an empty folder.
"""

import os
import statistics
import subprocess
import sys
import tempfile

IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
FIT = """
import time
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
from zerogap import {name}
t = time.perf_counter()
{name}().fit(X, y)
print(time.perf_counter() - t)
"""


def run(code: str, **environment: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    for code in ("from sklearn.svm import SVC", "import zerogap", "from zerogap import SVC"):
        print(f"{code:<27} {statistics.median(run(IMPORT.format(code)) for _ in range(7)):.3f} s")
    fit, path = FIT.format(name="SVC"), FIT.format(name="SVCPath")
    with tempfile.TemporaryDirectory() as folder:
        print(f"first fit ever              {run(fit, NUMBA_CACHE_DIR=folder):.3f} s")
        times = [run(fit, NUMBA_CACHE_DIR=folder) for _ in range(7)]
        print(f"first fit in a new process  {statistics.median(times):.3f} s (median of 7; best {min(times):.3f})")
        print(f"first path after a fit      {run(path, NUMBA_CACHE_DIR=folder):.3f} s")
        times = [run(path, NUMBA_CACHE_DIR=folder) for _ in range(7)]
        print(f"first path in a new process {statistics.median(times):.3f} s (median of 7; best {min(times):.3f})")
    with tempfile.TemporaryDirectory() as folder:
        print(f"first path ever             {run(path, NUMBA_CACHE_DIR=folder):.3f} s")


if __name__ == "__main__":
    main()
