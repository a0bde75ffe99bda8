"""
The elbow: which points are on the margin
=========================================

Along the path every point is in one of three sets. *Left*: inside the margin, at its cap. *Elbow*: on the margin,
with a coefficient in between. *Right*: outside the margin, no support vector. Nothing happens between two breakpoints
but straight lines.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from zerogap import svm_path

X, y = make_moons(60, noise=0.3, random_state=1)
path = svm_path(X, y, gamma=1.0, C_min=0.05, C_max=500.0)
for event in path.events[:5]:
    print(f"C = {event.C:.4f}: point {event.index} from {event.origin} to {event.target}")
print(f"... {path.n_events} events in all")

# %%
# Above the coefficients as shares of C, whose cap is one: against 1/C they are straight between two events, and the
# axis, logarithmic in C, bends them. Below them the sizes of the three sets, and of the elbow alone.

path.plot()
plt.show()
