"""
What C does
===========

C is the price of a point on the wrong side of its margin. A small C buys a wide margin that many points violate; a
large one a narrow margin that follows single points. :class:`zerogap.SVCPath` has the solution for every C, so that
pictures of any of them cost nothing more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from zerogap import SVCPath

X, y = make_moons(120, noise=0.28, random_state=3)
path = SVCPath(gamma=1.0, C_min=0.01, C_max=1000.0).fit(X, y)
print(path.path_)

# %%
# One fit, six machines. The thick line is the boundary, the thin ones are the margins; circles are the points on
# their margin.

x1, x2 = np.meshgrid(np.linspace(-1.9, 2.9, 120), np.linspace(-1.4, 1.9, 90))
grid = np.column_stack([x1.ravel(), x2.ravel()])

fig, axes = plt.subplots(2, 3, figsize=(8.4, 5.0), sharex=True, sharey=True)
for ax, C in zip(axes.flat, [0.02, 0.2, 1.0, 10.0, 100.0, 1000.0], strict=True):
    values = path.decision_function(grid, C=C).reshape(x1.shape)
    ax.contourf(x1, x2, values, levels=[-np.inf, 0, np.inf], colors=["#cfe8e8", "#f7dcc9"])
    ax.contour(x1, x2, values, levels=[-1, 0, 1], colors="black", linewidths=[0.6, 1.6, 0.6], linestyles="solid")
    ax.scatter(*X.T, c=np.where(y == 1, "#d1642c", "#0b6e6e"), s=9)
    on_margin = path.path_.on_margin_at(C)
    ax.scatter(*X[on_margin].T, s=55, facecolors="none", edgecolors="black", linewidths=0.8)
    ax.set(title=f"C = {C:g}, {np.count_nonzero(path.path_.coefficients_at(C))} support vectors", xticks=[], yticks=[])
plt.show()
