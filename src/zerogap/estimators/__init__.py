"""scikit-learn faces of the solvers."""

from typing import TYPE_CHECKING

from zerogap.lazy_import import loader

if TYPE_CHECKING:
    from zerogap.estimators.cv_curve import CVCurve
    from zerogap.estimators.gaussian_process import GaussianProcessRegressor
    from zerogap.estimators.linear_svc import LinearSVC
    from zerogap.estimators.linear_svr import LinearSVR
    from zerogap.estimators.loo import leave_one_out
    from zerogap.estimators.nu_svc import NuSVC
    from zerogap.estimators.nu_svr import NuSVR
    from zerogap.estimators.one_class import OneClassSVM
    from zerogap.estimators.one_class_path import OneClassSVMPath
    from zerogap.estimators.persistence import load
    from zerogap.estimators.pipelines import score_curve
    from zerogap.estimators.scoring import cost_matrix_scorer
    from zerogap.estimators.svc import SVC
    from zerogap.estimators.svc_path import SVCPath
    from zerogap.estimators.svc_path_cv import SVCPathCV
    from zerogap.estimators.svr import SVR
    from zerogap.estimators.svr_path import SVRPath
    from zerogap.estimators.svr_path_cv import SVRPathCV

__getattr__, __dir__ = loader(
    __name__,
    {
        "CVCurve": "cv_curve",
        "GaussianProcessRegressor": "gaussian_process",
        "LinearSVC": "linear_svc",
        "LinearSVR": "linear_svr",
        "NuSVC": "nu_svc",
        "NuSVR": "nu_svr",
        "OneClassSVM": "one_class",
        "OneClassSVMPath": "one_class_path",
        "SVC": "svc",
        "SVCPath": "svc_path",
        "SVCPathCV": "svc_path_cv",
        "SVR": "svr",
        "SVRPath": "svr_path",
        "SVRPathCV": "svr_path_cv",
        "cost_matrix_scorer": "scoring",
        "leave_one_out": "loo",
        "load": "persistence",
        "score_curve": "pipelines",
    },
)

__all__ = [
    "SVC",
    "SVR",
    "CVCurve",
    "GaussianProcessRegressor",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OneClassSVMPath",
    "SVCPath",
    "SVCPathCV",
    "SVRPath",
    "SVRPathCV",
    "cost_matrix_scorer",
    "leave_one_out",
    "load",
    "score_curve",
]
