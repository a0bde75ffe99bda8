"""
NuSVC is a lookup
=================

A nu-SVC is an SVC with some C, which one cannot know beforehand. On the exact path that C is the root of a linear
equation. So :class:`zerogap.NuSVC` reaches nu to the last digits, and every other nu is a lookup.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC as TheirNuSVC

from zerogap import NuSVC, certify, svm_path

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = NuSVC(nu=0.1).fit(X, y)
print("C:", model.C_, "nu reached:", np.abs(model.dual_coef_).sum() / (model.C_[0] * len(y)))
print("zerogap:     ", certify(model, X, y))
print("scikit-learn:", certify(TheirNuSVC(nu=0.1).fit(X, y), X, y))

# %%
# ``at_nu`` continues the path that found the first model. Its C is here, beside that of every other nu.

fewer = model.at_nu(0.05)
path = svm_path(X, y, C_min=1e-3, C_max=1e3)
nu = np.geomspace(0.02, 0.7, 200)
fig, ax = plt.subplots()
ax.loglog(nu, [path.C_of_nu(v) for v in nu])
for m in (model, fewer):
    ax.plot(m.nu, m.C_, "o", ms=8)
    ax.annotate(f"nu = {m.nu:g}, C = {m.C_[0]:.3g}", (m.nu, m.C_[0]), xytext=(8, 4), textcoords="offset points")
ax.set(xlabel="nu", ylabel="C of the SVC that is the nu-SVC")
ax.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5], labels=["0.02", "0.05", "0.1", "0.2", "0.5"])
ax.minorticks_off()
plt.show()
