"""
The path over epsilon
=====================

Epsilon is half the width of the tube in which errors cost nothing. A wide tube needs few support vectors, and at zero
every point is one. ``svr_path(..., over="epsilon")`` follows the solution from the tube that holds all points down to
none.
"""

import matplotlib.pyplot as plt
import numpy as np

from zerogap import svr_path

random = np.random.default_rng(0)
X = np.sort(random.uniform(0.0, 6.0, 80))[:, None]
y = np.sin(X[:, 0]) + 0.25 * random.normal(size=80)
path = svr_path(X, y, over="epsilon", C=10.0, gamma=0.5)
print(path)

# %%
# Three tubes of one path. Filled points are support vectors.

x = np.linspace(0.0, 6.0, 300)
kernel = np.exp(-0.5 * (x[:, None] - X[:, 0]) ** 2)
fig, axes = plt.subplots(1, 3, figsize=(8.8, 3.2), sharey=True)
for ax, epsilon in zip(axes, [0.6, 0.3, 0.05], strict=True):
    beta = path.coefficients_at(epsilon)
    f = kernel @ beta + path.bias_at(epsilon)
    support = beta != 0
    ax.fill_between(x, f - epsilon, f + epsilon, alpha=0.15)
    ax.plot(x, f)
    ax.scatter(X[~support, 0], y[~support], s=14, facecolors="none", edgecolors="grey")
    ax.scatter(X[support, 0], y[support], s=14, color="#D55E00")
    ax.set(title=f"epsilon = {epsilon:g}: {support.sum()} support vectors", xlabel="x")
axes[0].set_ylabel("y")
plt.show()

# %%
# And the number of support vectors for every epsilon.

epsilon = np.linspace(path.epsilon[-1] + 1e-9, path.epsilon[0], 600)
fig, ax = plt.subplots(figsize=(7.0, 3.0))
ax.plot(epsilon, np.count_nonzero(path.coefficients_at(epsilon), axis=1))
ax.set(xlabel="epsilon", ylabel="support vectors")
plt.show()
