"""What the first second feels like: import, first fit ever, first fit in a new process.

    python benchmarks/startup.py

Runs new processes; for the first fit ever it points Numba's cache at an empty folder.
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
X, y = load_breast_cancer(return_X_y=True)
from zerogap import SVC
t = time.perf_counter()
SVC().fit(X, y)
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
    with tempfile.TemporaryDirectory() as folder:
        print(f"first fit ever              {run(FIT, NUMBA_CACHE_DIR=folder):.3f} s")
        times = [run(FIT, NUMBA_CACHE_DIR=folder) for _ in range(7)]
        print(f"first fit in a new process  {statistics.median(times):.3f} s (median of 7; best {min(times):.3f})")


if __name__ == "__main__":
    main()
