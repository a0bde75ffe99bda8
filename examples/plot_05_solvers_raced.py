"""
Solvers raced under one stopping rule
=====================================

"Converged" means something else in every package. Here all solvers get one problem and one rule, a certified relative
gap, and kernel evaluations are counted in the same way for all. So the race is fair.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from zerogap import DualProblem, Gram, RelativeGap, compare

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
problem = DualProblem.hinge(Gram(X, "rbf"), 2.0 * y - 1.0, C=10.0)
race = compare(problem, ["smo", "smo-mvp", "smo-platt", "rosen", "simple-svm"], stop=RelativeGap(1e-8), trace_every=10)
print(race)

# %%
# Who is first depends on what is counted. In iterations the second order rule of ``smo`` beats the most violating
# pair, ``smo-mvp``. In kernel evaluations, which is what counts where a kernel is expensive, ``rosen`` and
# ``simple-svm`` look at a part of the matrix only.

fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), sharey=True)
race.plot("gap", "step", ax=axes[0])
race.plot("gap", "kernel_evaluations", ax=axes[1])
axes[0].set_xscale("log")
axes[1].legend_.remove()
axes[1].set_ylabel("")
axes[1].ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
plt.show()
