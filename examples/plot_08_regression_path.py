"""
The best C of a regression, not of a grid
=========================================

On a segment of the path predictions are linear in C, so the squared error of held-out points is a parabola. The least
error over *all* C is therefore the vertex of one of these parabolas: an exact minimum, without a grid.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from zerogap import SVRPath

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
path = SVRPath(epsilon=20.0, C_min=0.1, C_max=1e4).fit(X_train, y_train)
curve = path.score_curve(X_test, y_test, scoring="neg_mean_squared_error")
print(path.path_)
print(f"least squared error {-curve.best_score:.6f} at C = {curve.best_C:.10f}")
assert np.isclose(curve.best_score, curve(curve.best_C))

# %%
# The model at that C is there, with its certificate.

best = path.at(curve.best_C)
print(best, best.certificate_)

# %%
# A grid of ten values comes near, and does not know how near.

grid = np.geomspace(0.1, 1e4, 10)
C = np.geomspace(0.1, 1e4, 2000)
fig, ax = plt.subplots()
ax.plot(C, -curve(C), label="every C")
ax.plot(grid, -curve(grid), "o", label="a grid of ten")
ax.plot(curve.best_C, -curve.best_score, "*", ms=14, color="#009E73", label="the minimum")
ax.set(xscale="log", xlabel="C", ylabel="held-out squared error")
ax.legend()
plt.show()
