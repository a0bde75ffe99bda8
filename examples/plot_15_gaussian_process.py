"""
A Gaussian process by conjugate gradient
========================================

The mean of a Gaussian process solves one linear system, (K + noise I) beta = y. Conjugate gradient needs products
with K only, and Skilling's bounds say after every step how far the value still can be off: the same certificate as
that of a support vector machine.
"""

import matplotlib.pyplot as plt
import numpy as np

from zerogap import DualProblem, GaussianProcessRegressor, Gram, RelativeGap, solve
from zerogap.solvers import ConjugateGradient

random = np.random.default_rng(1)
X = np.sort(random.uniform(0.0, 10.0, 60))[:, None]
y = np.sin(X[:, 0]) + 0.1 * random.normal(size=60)
model = GaussianProcessRegressor(gamma=0.5, noise=0.01, solver="cg").fit(X, y)
print(model.certificate_)

# %%
# Mean and deviation, as scikit-learn's regressor of the same kernel has them.

x = np.linspace(-1.5, 11.5, 300)[:, None]
mean, deviation = model.predict(x, return_std=True)
fig, ax = plt.subplots()
ax.fill_between(x[:, 0], mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="two deviations")
ax.plot(x, mean, label="mean")
ax.plot(X, y, ".", color="#D55E00", label="observations")
ax.legend(ncols=3, loc="lower center")
ax.set(ylim=(-2.4, 2.0), xlabel="x", ylabel="y")
plt.show()

# %%
# How fast it goes depends on the noise: little of it makes a badly conditioned matrix. A Nyström preconditioner, some
# rows of K in place of the matrix, repairs most of that.

X = random.normal(size=(800, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * random.normal(size=800)
fig, ax = plt.subplots()
for noise, color in ((0.1, "C0"), (0.001, "C1")):
    for preconditioner, style in ((None, "-"), ("nystrom", "--")):
        problem = DualProblem.gaussian_process(Gram(X, gamma=0.5), y, noise)
        solver = ConjugateGradient(preconditioner=preconditioner, rank=20)
        trace = solve(problem, solver, stop=RelativeGap(1e-10), trace_every=1).trace
        name = f"noise {noise:g}" + (", preconditioned" if preconditioner else "")
        ax.semilogy(trace["step"], trace["gap"], style, color=color, label=name)
ax.set(xlabel="products with K", ylabel="relative gap", ylim=(1e-11, 2))
ax.legend()
plt.show()
