"""
One class, for every nu
=======================

A one-class machine learns where data is. ``nu`` says which share of the points may be left outside.
:class:`zerogap.OneClassSVMPath` has the solution for every nu, so that the level sets of all of them come from one
fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from zerogap import OneClassSVMPath

X, _ = make_moons(150, noise=0.12, random_state=0)
path = OneClassSVMPath(gamma=2.0, nu_min=0.02).fit(X)
print(path.path_)

# %%
# The share of points outside is at most nu, and that of support vectors at least nu: for every nu.

x1, x2 = np.meshgrid(np.linspace(-1.8, 2.8, 120), np.linspace(-1.3, 1.8, 90))
grid = np.column_stack([x1.ravel(), x2.ravel()])
nu = np.linspace(0.03, 0.95, 60)
outside = (path.decision_function(X, nu=nu) < -1e-9).mean(axis=1)
support = np.count_nonzero(path.path_.coefficients_at(nu), axis=1) / len(X)

fig, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.6), width_ratios=(3, 2))
for k, level in enumerate([0.05, 0.2, 0.5, 0.8]):
    values = path.decision_function(grid, nu=level).reshape(x1.shape)
    left.contour(x1, x2, values, levels=[0.0], colors=[f"C{k}"])
    left.plot([], [], color=f"C{k}", label=f"nu = {level:g}")
left.scatter(*X.T, s=8, color="grey")
left.set(xlabel="feature 1", ylabel="feature 2", title="boundaries of four nu")
left.legend(loc="lower left", fontsize=8)
right.plot(nu, support, label="support vectors")
right.plot(nu, nu, ":", color="grey", label="nu")
right.plot(nu, outside, label="outside")
right.set(xlabel="nu", title="shares of the points")
right.legend()
plt.show()
