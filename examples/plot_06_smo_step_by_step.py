"""
SMO, one step at a time
=======================

Sequential minimal optimisation moves two coefficients at a time: the smallest set that can move while their sum stays
the same. :func:`zerogap.iterate` stands still after every step, to look at it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from zerogap import DualProblem, Gram, iterate

X, y = make_blobs(40, centers=2, cluster_std=1.6, random_state=6)
problem = DualProblem.hinge(Gram(X, "linear"), 2.0 * y - 1.0, C=1.0)

before, shots = problem.feasible_start(), []
steps = iterate(problem, "smo")
for state, info in steps:
    moved = np.flatnonzero(state.beta != before)
    if info.step <= 6:
        print(f"step {info.step}: points {moved.tolist()} move, dual {info.dual:.4f}, relative gap {info.gap:.3f}")
    shots.append((info, moved, state.beta.copy(), state.residual.copy()))
    before = state.beta.copy()
print(steps.solution)

# %%
# The pair that moves is ringed. The line is the boundary after the move, with the bias in the middle of the interval
# that the points allow so far.

fig, axes = plt.subplots(2, 3, figsize=(8.4, 5.0), sharex=True, sharey=True)
across = np.array([X[:, 0].min() - 1.0, X[:, 0].max() + 1.0])
for ax, shot in zip(axes.flat, [*shots[:5], shots[-1]], strict=True):
    info, moved, beta, residual = shot
    w, bias = X.T @ beta, np.mean(problem.bias_interval(beta, residual))
    ax.plot(across, -(w[0] * across + bias) / w[1], color="black")
    ax.scatter(*X.T, c=np.where(y == 1, "#C77800", "#0072B2"), s=12 + 60 * np.abs(beta))
    ax.scatter(*X[moved].T, s=150, facecolors="none", edgecolors="black")
    ax.set(
        title=f"step {info.step}, gap {info.gap:.2g}", ylim=(X[:, 1].min() - 1, X[:, 1].max() + 1), xticks=[], yticks=[]
    )
plt.show()
