"""scikit-learn faces of the solvers."""

from zerogap.estimators.svc import SVC
from zerogap.estimators.svc_path import SVCPath
from zerogap.estimators.svr import SVR

__all__ = ["SVC", "SVR", "SVCPath"]
