"""
An approximate path, with a proof for every C
=============================================

An exact path has an event for each change of sets, thousands of them on large data. If a relative gap of a thousandth
is enough, ``svm_path(..., gap=1e-3)`` goes in straight lines between a few solutions, and proves for every C on a line
that its gap is no larger. Nothing is sampled: on a line the gap is a quotient of quadratics in 1/C.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from zerogap import svm_path

X, y = make_moons(600, noise=0.3, random_state=0)
exact = svm_path(X, y, gamma=1.0, C_min=0.01, C_max=100.0)
print(f"exact: {exact.n_events} events, largest relative gap {exact.largest_gap_:.1e}")

# %%
# The smaller the gap, the more solutions in between.

paths = {gap: svm_path(X, y, gamma=1.0, C_min=0.01, C_max=100.0, gap=gap) for gap in (1e-1, 1e-2, 1e-3)}
for gap, path in paths.items():
    print(f"gap {gap:g}: {len(path.C)} solutions, largest relative gap {path.largest_gap_:.1e}")

# %%
# The gap along each path. It is smallest at the solutions, and stays below what was asked for everywhere.

C = np.geomspace(0.01, 100.0, 300)
fig, ax = plt.subplots()
for k, (gap, path) in enumerate(paths.items()):
    ax.loglog(C, [path.certificate_at(c).relative_gap for c in C], color=f"C{k}", lw=1.2, label=f"gap={gap:g}")
    ax.axhline(gap, color=f"C{k}", ls=":", lw=1)
ax.set(xlabel="C", ylabel="relative duality gap", ylim=(1e-6, 0.3))
ax.legend(loc="lower right", frameon=True)
plt.show()
