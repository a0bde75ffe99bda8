"""The benchmarks certify other programs' models: that is checked here against objectives from their own decision values."""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics.pairwise import rbf_kernel

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import common

GAMMA = 0.5


def check(certificate, primal, dual):
    """The certificate bounds its own rounding; the sums here have no more."""
    assert primal - dual > 1e-3 * primal > 1e3 * certificate.rounding
    assert certificate.primal == pytest.approx(primal, rel=0, abs=2 * certificate.rounding)
    assert certificate.dual == pytest.approx(dual, rel=0, abs=2 * certificate.rounding)


@pytest.mark.parametrize("classes", [[0, 1, 2], [1, 2]])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_certifies_the_worst_pair(classes, form):
    X, y = load_iris(return_X_y=True)
    X, y = X[np.isin(y, classes)], y[np.isin(y, classes)]
    model = sklearn.svm.SVC(C=10.0, gamma=GAMMA, tol=0.1, decision_function_shape="ovo").fit(form(X), y)
    decisions = model.decision_function(form(X)).reshape(y.size, -1) - model.intercept_
    of_support = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    owner, found = y[model.support_], []
    for p, (a, b) in enumerate(combinations(range(len(classes)), 2)):
        of_pair, positive = np.isin(y, (classes[a], classes[b])), classes[a] if len(classes) > 2 else classes[b]
        f, sign = decisions[of_pair, p], np.where(y[of_pair] == positive, 1.0, -1.0)
        of_a, of_b = owner == classes[a], owner == classes[b]
        beta = np.concatenate([of_support[b - 1, of_a], of_support[a, of_b]])
        support = X[np.concatenate([model.support_[of_a], model.support_[of_b]])]
        square = beta @ rbf_kernel(support, gamma=GAMMA) @ beta
        losses = (model.C * np.maximum(1 - sign * (f + bias), 0).sum() for bias in sign - f)
        found.append((0.5 * square + min(losses), np.abs(beta).sum() - 0.5 * square))
    worst = max(found, key=lambda pair: (pair[0] - pair[1]) / pair[0])
    check(common.certify_peer(model, form(X), y), *worst)


def test_certifies_a_regression():
    X, y = load_diabetes(return_X_y=True)
    X, y = common.scaled(X), (y - y.mean()) / y.std()
    model = sklearn.svm.SVR(C=10.0, gamma=0.1, tol=0.1).fit(X, y)
    f, beta = model.predict(X) - model.intercept_, model.dual_coef_[0]
    square = beta @ f[model.support_]
    ends = np.concatenate([y - f - model.epsilon, y - f + model.epsilon])
    losses = (model.C * np.maximum(np.abs(y - f - bias) - model.epsilon, 0).sum() for bias in ends)
    dual = beta @ y[model.support_] - model.epsilon * np.abs(beta).sum() - 0.5 * square
    check(common.certify_peer(model, X, y), 0.5 * square + min(losses), dual)
