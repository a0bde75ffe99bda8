"""
Every C at once, against a grid
===============================

A grid of 25 values of C fits 25 models and knows the score at 25 places. The path knows it everywhere: between two
breakpoints the solution is a straight line in 1/C, so the C at which a held-out point changes sides is a linear
equation.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from zerogap import SVCPath, score_curve

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
pipe = make_pipeline(StandardScaler(), SVCPath(C_min=0.01))
pipe.fit(X_train[::4], y_train[::4])  # what is compiled is loaded

began = time.perf_counter()
pipe.fit(X_train, y_train)
curve = score_curve(pipe, X_test, y_test)
print(f"path and curve: {time.perf_counter() - began:.3f} s, {pipe[-1].n_events_} events")
print(
    f"best accuracy {curve.best_score:.4f} for C in", ", ".join(f"{a:.3g} to {b:.3g}" for a, b in curve.best_intervals)
)

# %%
# The grid, beside it.

began = time.perf_counter()
C = np.geomspace(0.01, 1000.0, 25)
scores = [make_pipeline(StandardScaler(), SVC(C=c)).fit(X_train, y_train).score(X_test, y_test) for c in C]
print(f"25 fits: {time.perf_counter() - began:.3f} s, best accuracy {max(scores):.4f}")

# %%
# The curve is a staircase, and all of it is known. The dots are the grid.

fig, ax = plt.subplots()
ax.stairs(curve.score, curve.C, baseline=None, label=f"every C: {curve.score.size} intervals")
ax.plot(C, scores, "o", color="#D55E00", ms=4, label="a grid of 25")
for low, high in curve.best_intervals:
    ax.axvspan(low, high, color="#0072B2", alpha=0.15, lw=0)
ax.set(xscale="log", xlabel="C", ylabel="held-out accuracy", ylim=(0.88, 0.99))
ax.legend(loc="lower right")
plt.show()
