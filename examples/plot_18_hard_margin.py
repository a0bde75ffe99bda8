"""
The hard margin, and when there is none
=======================================

With ``C=np.inf`` no point may be within the margin. Where the classes can be separated that is the largest margin
there is. Where they cannot, the dual objective has no bound; a solver that does not notice never ends. Here it is
told.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from zerogap import SVC, DualProblem, Gram, datasets, iterate

X, y = make_blobs(60, centers=[[-2, 0], [2, 0]], cluster_std=0.8, random_state=1)
model = SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X, y)
print(model.status_, "margin", 1.0 / np.linalg.norm(model.coef_), model.certificate_)

# %%
# One point of each class on the wrong side, and there is no margin: status ``UNBOUNDED``, with advice.

X_mixed, y_mixed = np.vstack([X, [[-2, 0.5], [2, 0.5]]]), np.append(y, [1, 0])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    refused = SVC(C=np.inf, kernel="linear").fit(X_mixed, y_mixed)
print(refused.status_, "-", caught[0].message)

# %%
# The dual objective says it in a picture: it settles where a margin exists, and grows without end where none does.

fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4))
w, b = model.coef_[0], model.intercept_[0]
across = np.array([-3.0, 3.0])
left.scatter(*X.T, c=np.where(y == 1, "#C77800", "#0072B2"), s=12)
left.scatter(*model.support_vectors_.T, s=90, facecolors="none", edgecolors="black")
for level, width in ((-1, 0.7), (0, 1.6), (1, 0.7)):
    left.plot((level - b - w[1] * across) / w[0], across, color="black", lw=width)
left.set(title="the largest margin", xticks=[], yticks=[])
for name, (A, labels) in {"separable": (X, y), "not separable": (X_mixed, y_mixed)}.items():
    problem = DualProblem.hard_margin(Gram(A, "linear"), 2.0 * labels - 1.0)
    dual = [info.dual for _, info in iterate(problem, "smo", max_steps=40)]
    right.plot(np.arange(1, len(dual) + 1), dual, ".-", label=name)
right.set(yscale="log", xlabel="pairs moved", ylabel="dual objective", title="bounded, or not")
right.legend()
plt.show()

# %%
# A Gaussian kernel separates any distinct points: two spirals, for instance.

spirals = SVC(C=np.inf, gamma=1.0).fit(*datasets.two_spirals())
print(spirals.status_, "training accuracy", spirals.score(*datasets.two_spirals()))
