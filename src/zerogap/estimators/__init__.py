"""scikit-learn faces of the solvers."""

from zerogap.estimators.gaussian_process import GaussianProcessRegressor
from zerogap.estimators.leaving_out import leave_one_out
from zerogap.estimators.svc import SVC
from zerogap.estimators.svc_path import SVCPath
from zerogap.estimators.svr import SVR

__all__ = ["SVC", "SVR", "GaussianProcessRegressor", "SVCPath", "leave_one_out"]
