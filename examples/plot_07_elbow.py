"""
The elbow: which points are on the margin
=========================================

Along the path every point is in one of three sets. *Left*: within the margin, at its cap. *Elbow*: on the margin,
with a coefficient in between. *Right*: beyond the margin, no support vector. Nothing happens between two breakpoints
but straight lines.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from zerogap import svm_path

X, y = make_moons(60, noise=0.3, random_state=1)
path = svm_path(X, y, gamma=1.0, C_min=0.05, C_max=500.0)
for event in path.events[:5]:
    print(f"C = {event.C:.4f}: point {event.index} from {event.origin} to {event.target}")
print(f"... {path.n_events} events in all")

# %%
# On the left the scaled coefficients b = beta / C, whose cap is one. Against 1/C they are straight between two
# events; the axis here is logarithmic in C, which bends them. On the right the size of the three sets.

C = np.geomspace(0.05, 500.0, 800)
scaled = np.abs(path.coefficients_at(C)) / C[:, None]

fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.8))
left.plot(C, scaled, lw=0.8, color="#0b6e6e", alpha=0.6)
left.set(xscale="log", xlabel="C", ylabel="|beta| / C", title="every coefficient")
right.stackplot(
    C,
    [(scaled > 1 - 1e-9).sum(axis=1), ((scaled > 1e-9) & (scaled < 1 - 1e-9)).sum(axis=1), (scaled < 1e-9).sum(axis=1)],
    labels=["inside the margin, at the cap", "on the margin", "outside, no support vector"],
    colors=["#d1642c", "#6a5acd", "#cfe8e8"],
)
right.set(xscale="log", xlabel="C", ylabel="points", title="three sets", xlim=(C[0], C[-1]), ylim=(0, 60))
right.legend(loc="upper right", frameon=True)
plt.show()
