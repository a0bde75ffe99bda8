"""
Why "converged" can be off by 14 %
==================================

A solver of support vector machines stops when its optimality conditions are violated by less than ``tol``. That is
not the same as being near the optimum. Here scikit-learn's ``SVC`` ends without a warning, and
:func:`zerogap.certify` proves how far it may be off.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import zerogap

X, y = load_breast_cancer(return_X_y=True)
model = make_pipeline(StandardScaler(), SVC(C=1e4)).fit(X, y)
print(zerogap.certify(model, X, y))

# %%
# scikit-learn had said that it converged. The bound comes from the dual problem, so it is a proof: no machine with
# these parameters has an objective below it. :func:`zerogap.polish` returns the exact model in the place of this one.

exact = zerogap.polish(model, X, y)
print(zerogap.certify(exact, X, y))

# %%
# Does a smaller ``tol`` help? Only so far. scikit-learn's solver keeps kernel values in single precision, and from
# some point on a smaller tolerance changes nothing. zerogap's own ``tol`` *is* the certified gap.

tolerances = np.logspace(-1, -8, 8)
theirs, ours = [], []
for tol in tolerances:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it also runs into its limit on iterations
        theirs.append(SVC(C=1e4, tol=tol, max_iter=200_000).fit(StandardScaler().fit_transform(X), y))
    ours.append(zerogap.SVC(C=1e4, tol=tol).fit(StandardScaler().fit_transform(X), y))

scaled = StandardScaler().fit_transform(X)
fig, ax = plt.subplots()
ax.loglog(tolerances, [zerogap.certify(m, scaled, y).relative_gap for m in theirs], "o-", label="sklearn.svm.SVC")
ax.loglog(tolerances, [m.duality_gap_ for m in ours], "s-", label="zerogap.SVC")
ax.loglog(tolerances, tolerances, ":", color="grey", label="what was asked for")
ax.invert_xaxis()
ax.set(xlabel="tol", ylabel="certified relative duality gap", title="breast cancer, rbf, C = 10,000")
ax.legend()
plt.show()
