"""
A fit that ends when told to
============================

Large C on badly scaled data is where fits go on for ever. ``max_time`` and ``max_iter`` end one, Ctrl-C does, and
what there is stays usable: a feasible model, its gap, and a status that says what happened. ``warm_start`` goes on
from there.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from zerogap import SVC, certify

X, y = load_breast_cancer(return_X_y=True)  # not scaled: features from 0.001 to 4,000
model = SVC(C=1e4, gamma=1e-6, solver="smo", max_iter=2000, warm_start=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.fit(X, y)
print(model.status_, "-", caught[0].message)

# %%
# Again and again from where it was. Each time the model can be used, and its certificate is true.

gaps = [model.duality_gap_]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for _ in range(10):
        gaps.append(model.fit(X, y).duality_gap_)

# %%
# Pairs crawl here. The default solver, ``auto``, finds the free points and solves for them directly.

quick = SVC(C=1e4, gamma=1e-6).fit(X, y)
print("auto:", quick.status_, certify(quick, X, y))

fig, ax = plt.subplots()
ax.semilogy(2000 * np.arange(1, len(gaps) + 1), gaps, "o-", label="smo, 2,000 pairs at a time")
ax.axhline(quick.duality_gap_, color="#D55E00", label="auto")
ax.set(xlabel="pairs moved in all", ylabel="certified relative gap")
ax.legend()
plt.show()
