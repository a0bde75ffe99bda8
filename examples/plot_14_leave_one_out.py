"""
Leave-one-out, exactly
======================

The decision value of every row by the model that never saw it: n models. :func:`zerogap.leave_one_out` finds them
from the one with all rows. A row that supports nothing changes nothing, and the others need a few exchanges.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from zerogap import SVC, leave_one_out

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = SVC(C=10.0, gamma=1.0 / 30).fit(X, y)
leave_one_out(SVC(C=10.0).fit(X[:60], y[:60]))  # what is compiled is loaded

began = time.perf_counter()
result = leave_one_out(model)
print(f"{len(y)} models in {time.perf_counter() - began:.2f} s")
print(f"error {result.error:.4f}, on the training rows {1 - model.score(X, y):.4f}")

# %%
# One of them, checked against a fit without the row.

row = int(model.support_[0])
others = np.arange(len(y)) != row
without = SVC(C=10.0, gamma=1.0 / 30, tol=1e-12).fit(X[others], y[others])
print(f"row {row}: {result.decision_values[row]:.12f}, by a fit {without.decision_function(X[[row]])[0]:.12f}")

# %%
# Only support vectors move. Those whose value changes its sign are the errors that training hides.

with_row = model.decision_function(X)
fig, ax = plt.subplots(figsize=(5.2, 4.6))
support = np.isin(np.arange(len(y)), model.support_)
for rows, color, label in ((~support, "#bbbbbb", "no support vector"), (support, "#0072B2", "support vector")):
    ax.scatter(with_row[rows], result.decision_values[rows], s=12, color=color, label=label)
wrong = np.sign(with_row) != np.sign(result.decision_values)
ax.scatter(
    with_row[wrong], result.decision_values[wrong], s=60, facecolors="none", edgecolors="#D55E00", label="changes sides"
)
ax.axhline(0, color="grey", lw=0.6)
ax.axvline(0, color="grey", lw=0.6)
ax.set(xlabel="decision value with the row", ylabel="without it", xlim=(-3, 4), ylim=(-3, 4))
ax.legend()
plt.show()
