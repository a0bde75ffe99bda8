"""scikit-learn faces of the solvers."""

from zerogap.estimators.gaussian_process import GaussianProcessRegressor
from zerogap.estimators.svc import SVC
from zerogap.estimators.svc_path import SVCPath
from zerogap.estimators.svr import SVR

__all__ = ["SVC", "SVR", "GaussianProcessRegressor", "SVCPath"]
