"""
Several classes, every C
========================

Of ten classes there are 45 pairs, and each has a path of its own. A prediction is the vote of all of them, so its
held-out score, too, is known for every C.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from zerogap import SVCPath

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
model = SVCPath(C_min=0.01, C_max=100.0).fit(X_train, y_train)
print(
    f"{len(model.paths_)} paths, {model.n_events_} events, largest relative gap {model.largest_gap_:.1e} over every C"
)

# %%
# The accuracy of the vote, on every interval of C on which no prediction changes.

curve = model.score_curve(X_test, y_test)
print(f"{curve.score.size} intervals, best accuracy {curve.best_score:.4f}")
fig, ax = plt.subplots()
ax.stairs(curve.score, curve.C, baseline=None)
ax.set(xscale="log", xlabel="C", ylabel="held-out accuracy", ylim=(0.6, 1.0))
plt.show()

# %%
# ``predict`` takes many C at once. Here is which digit profits from which C: the share of its images that are found.

C = np.geomspace(0.03, 100.0, 60)
predicted = model.predict(X_test, C=C)
found = np.array([(predicted[:, y_test == digit] == digit).mean(axis=1) for digit in range(10)])
fig, ax = plt.subplots(figsize=(7.0, 3.4))
image = ax.pcolormesh(C, np.arange(10), found, cmap="viridis", vmin=0.5)
ax.set(xscale="log", xlabel="C", ylabel="digit", yticks=range(10))
fig.colorbar(image, label="share found")
plt.show()

# %%
# And the model at one of the best C is an ordinary, fitted :class:`zerogap.SVC`, with a certificate for each pair.

best = model.at(np.sqrt(np.prod(curve.best_intervals[0])))
print(best.C, best.duality_gap_, best.score(X_test, y_test))
