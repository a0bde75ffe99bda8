"""What tests of searches over every C share: a search, some C, and the scores of scikit-learn's."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from zerogap import SVCPathCV


@pytest.fixture(scope="module", name="cancer")
def cancer_points():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:150], y[:150]


@pytest.fixture(scope="module", name="found")
def cancer_search(cancer):
    return SVCPathCV(C_max=100.0).fit(*cancer)


def some_C(low=0.01, high=100.0, size=5, seed=0):
    return np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), size))


def fold_scores(search):
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(search.n_splits_)])
