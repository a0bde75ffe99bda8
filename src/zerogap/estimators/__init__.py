"""scikit-learn faces of the solvers."""

from typing import TYPE_CHECKING

from zerogap.lazily import loader

if TYPE_CHECKING:
    from zerogap.estimators.gaussian_process import GaussianProcessRegressor
    from zerogap.estimators.leaving_out import leave_one_out
    from zerogap.estimators.storing import load
    from zerogap.estimators.svc import SVC
    from zerogap.estimators.svc_path import SVCPath
    from zerogap.estimators.svr import SVR

__getattr__, __dir__ = loader(
    __name__,
    {
        "GaussianProcessRegressor": "gaussian_process",
        "SVC": "svc",
        "SVCPath": "svc_path",
        "SVR": "svr",
        "leave_one_out": "leaving_out",
        "load": "storing",
    },
)

__all__ = ["SVC", "SVR", "GaussianProcessRegressor", "SVCPath", "leave_one_out", "load"]
