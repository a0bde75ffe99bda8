"""
Tuning C and gamma, without a grid of C
=======================================

:class:`zerogap.SVCPathCV` follows one exact path for each fold and each gamma. The mean score is then a staircase over
C, known everywhere, and its best interval is the best of all C. A grid search looks at a few.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from zerogap import SVCPathCV

X, y = load_breast_cancer(return_X_y=True)
gammas = [0.003, 0.01, 0.03]
search = SVCPathCV(gamma=gammas, transformer=StandardScaler())
search.fit(X[::4], y[::4])  # what is compiled is loaded

began = time.perf_counter()
search.fit(X, y)
print(f"every C, {len(gammas)} gammas, 5 folds: {time.perf_counter() - began:.2f} s")
print(
    f"C = {search.C_:.4g}, gamma = {search.gamma_:g}: {search.best_score_:.4f}, standard error {search.best_std_error_:.4f}"
)

# %%
# A grid of the same gammas and 7 values of C, beside it.

began = time.perf_counter()
grid = {"svc__gamma": gammas, "svc__C": np.geomspace(0.01, 1000.0, 7)}
theirs = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid).fit(X, y)
print(f"21 models, 5 folds: {time.perf_counter() - began:.2f} s")
print(
    f"C = {theirs.best_params_['svc__C']:.4g}, gamma = {theirs.best_params_['svc__gamma']:g}: {theirs.best_score_:.4f}"
)

# %%
# One line for each gamma, with its standard error, and what was chosen.

search.plot()
plt.show()

# %%
# ``selection="one_se"`` would take the smallest C whose score is within one standard error of the best: the simplest
# model that is about as good.

curve = search.cv_curve_
print(
    f"C = {curve.one_se_C:.4g} in place of {search.C_:.4g}: {curve(curve.one_se_C):.4f} in place of {search.best_score_:.4f}"
)
