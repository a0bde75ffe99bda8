"""scikit-learn faces of the solvers."""

from typing import TYPE_CHECKING

from zerogap.lazy_import import loader

if TYPE_CHECKING:
    from zerogap.estimators.gaussian_process import GaussianProcessRegressor
    from zerogap.estimators.loo import leave_one_out
    from zerogap.estimators.persistence import load
    from zerogap.estimators.pipelines import score_curve
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
        "leave_one_out": "loo",
        "load": "persistence",
        "score_curve": "pipelines",
    },
)

__all__ = ["SVC", "SVR", "GaussianProcessRegressor", "SVCPath", "leave_one_out", "load", "score_curve"]
