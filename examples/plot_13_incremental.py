"""
Learning and unlearning, exactly
================================

Rows come and go. ``partial_fit`` and ``forget`` go from the present solution to the exact one of the rows that are
there now, by a few exchanges of points. Nothing drifts: the model is the one that a fresh fit would give.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from zerogap import SVC

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
gamma = 1.0 / X.shape[1]

model = SVC(C=10.0, gamma=gamma).fit(X[:100], y[:100])
gaps, moves = [], []
for k in range(100, 400, 10):
    model.partial_fit(X[k : k + 10], y[k : k + 10])
    gaps.append(model.duality_gap_)
    moves.append(model.n_iter_[0])
print(f"{model.shape_fit_[0]} rows, largest relative gap on the way {max(gaps):.1e}")

# %%
# Forget half of them again: a row that someone has withdrawn, say. A fresh fit on what is left agrees to the last
# digits.

model.forget(range(0, 400, 2))
left = np.arange(400)[1::2]
fresh = SVC(C=10.0, gamma=gamma, tol=1e-12).fit(X[left], y[left])
difference = np.abs(model.decision_function(X) - fresh.decision_function(X)).max()
print(f"{model.shape_fit_[0]} rows left; decision values differ by {difference:.1e} from a fresh fit's")

# %%
# What a batch of ten rows costs: exchanges of points with the free set, a handful each time.

fig, ax = plt.subplots(figsize=(7.0, 3.2))
ax.bar(np.arange(110, 410, 10), moves, width=8)
ax.set(xlabel="rows learnt", ylabel="exchanges for the last ten")
plt.show()
