"""
Sample weights are repetitions
==============================

A row of weight two is that row twice. That sounds plain, and decides a lot: what ``gamma="scale"`` is, what
"balanced" means, what happens to duplicates. Here both models are the same, their intercepts to the last bit and
their decision values but for rounding. scikit-learn's are not the same.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC as TheirSVC

from zerogap import SVC

random = np.random.default_rng(0)
X, y = make_moons(100, noise=0.3, random_state=0)
X[:, 1] *= 3.0
weight = random.integers(1, 6, 100)
repeated_X, repeated_y = np.repeat(X, weight, axis=0), np.repeat(y, weight)

for name, cls in (("zerogap", SVC), ("scikit-learn", TheirSVC)):
    weighted = cls(C=10.0).fit(X, y, sample_weight=weight)
    repeated = cls(C=10.0).fit(repeated_X, repeated_y)
    difference = np.abs(weighted.decision_function(X) - repeated.decision_function(X)).max()
    print(f"{name}: intercepts {weighted.intercept_[0]:.12f} and {repeated.intercept_[0]:.12f}")
    print(f"    decision values differ by {difference:.1e}")

# %%
# scikit-learn's ``gamma="scale"`` does not look at weights, so the two are other kernels there. A weight moves the
# boundary towards what counts more:

x1, x2 = np.meshgrid(np.linspace(-2, 3, 150), np.linspace(-4, 6, 120))
grid = np.column_stack([x1.ravel(), x2.ravel()])
fig, axes = plt.subplots(1, 3, figsize=(8.8, 3.2), sharey=True)
for ax, factor in zip(axes, (0.1, 1.0, 10.0), strict=True):
    weights = np.where(y == 1, factor, 1.0)
    model = SVC(C=1.0, gamma=0.3).fit(X, y, sample_weight=weights)
    values = model.decision_function(grid).reshape(x1.shape)
    ax.contourf(x1, x2, values, levels=[-np.inf, 0, np.inf], colors=["#cfe3f0", "#fbeccc"])
    ax.scatter(*X.T, c=np.where(y == 1, "#C77800", "#0072B2"), s=8 + 4 * np.log2(1 + weights))
    ax.set(title=f"orange weighs {factor:g}", xticks=[], yticks=[])
plt.show()
