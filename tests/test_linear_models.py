"""LinearSVC and LinearSVR: scikit-learn's objective and its face, with a certificate; sparse points stay sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from zerogap import SVC, SVR, LinearSVC, LinearSVR, Status, certify, load, polish


@parametrize_with_checks([LinearSVC(), LinearSVR()])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
