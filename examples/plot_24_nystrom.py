"""
What an approximation costs, proved
===================================

Nyström features and a linear model are what one takes where there are too many points for their kernel matrix. How far
is such a model from the machine with the kernel itself? ``certify_full`` gives its duality gap *on that problem*: the
objective of the model as it predicts, and a bound that no model is below.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from zerogap import LinearSVC, certify_full

X, y = make_moons(1500, noise=0.3, random_state=0)
sizes, found = (5, 10, 20, 40, 80, 160), []
for components in sizes:
    features = Nystroem(gamma=1.0, n_components=components, random_state=0)
    model = make_pipeline(features, LinearSVC(loss="hinge", tol=1e-6)).fit(X, y)
    found.append(certify_full(model, X, y))
    print(f"{components:4} components: {found[-1]}")

# %%
# The last point is a good start for the exact solver.

exact = found[-1].resume(tol=1e-9)
print(exact)

# %%
# Objective and bound close in on the optimum of the kernel problem; nobody has to trust the approximation.

fig, ax = plt.subplots()
ax.semilogx(sizes, [one.primal for one in found], "o-", label="objective of the model")
ax.semilogx(sizes, [one.dual for one in found], "o-", label="bound")
ax.axhline(exact.certificate.dual, color="k", ls=":", lw=1, label="optimum")
ax.set(xlabel="Nyström components", ylabel="objective on the kernel problem")
ax.legend(frameon=True)
plt.show()
