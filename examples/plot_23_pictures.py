"""
Pictures in one call
====================

Paths, score curves, solutions and comparisons draw themselves with ``plot()``, and
:func:`zerogap.plots.decision_boundary` draws a model over two features. Each call returns matplotlib's axes, to go on
with.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from zerogap import SVCPath
from zerogap.plots import decision_boundary

X, y = make_moons(400, noise=0.3, random_state=0)
model = SVCPath(gamma=1.0, C_min=0.01).fit(X[::2], y[::2])

# %%
# The path: coefficients as shares of C, the sets of points, and how many are on the margin.

model.plot()
plt.show()

# %%
# The score of held-out points for every C, beside what a grid of ten would have seen.

curve = model.score_curve(X[1::2], y[1::2])
curve.plot(grid=10, label="held-out accuracy")
plt.show()

# %%
# And the model at one of the best C, with its margins and its support vectors.

low, high = curve.best_intervals[0]
decision_boundary(model.at((low * high) ** 0.5), X[::2], y[::2])
plt.show()
