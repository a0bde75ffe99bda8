"""zerogap: support vector machines solved exactly, with a proof attached.

Names are loaded when first used, so that ``import zerogap`` costs next to nothing.
"""

from typing import TYPE_CHECKING

from zerogap.lazy_import import loader

__version__ = "0.1.0"

if TYPE_CHECKING:
    from zerogap import datasets, kernels, plots
    from zerogap.certificate import Certificate
    from zerogap.comparison import Comparison, compare
    from zerogap.estimators import (
        SVC,
        SVR,
        CVCurve,
        GaussianProcessRegressor,
        LinearSVC,
        LinearSVR,
        NuSVC,
        NuSVR,
        OneClassSVM,
        OneClassSVMPath,
        SVCPath,
        SVCPathCV,
        SVRPath,
        SVRPathCV,
        cost_matrix_scorer,
        leave_one_out,
        load,
        score_curve,
    )
    from zerogap.foreign import FullCertificate, ModelCertificate, certify, certify_full, polish
    from zerogap.gram import Gram
    from zerogap.loop import Steps, iterate, solve
    from zerogap.path import Path, one_class_path, svm_path, svr_path
    from zerogap.problem import DualProblem
    from zerogap.solution import Solution, Status, Trace
    from zerogap.stopping import DualGrowth, FeasibilityGap, KKTViolation, RelativeGap

__getattr__, __dir__ = loader(
    __name__,
    {
        "Comparison": "comparison",
        "compare": "comparison",
        "CVCurve": "estimators",
        "GaussianProcessRegressor": "estimators",
        "LinearSVC": "estimators",
        "LinearSVR": "estimators",
        "NuSVC": "estimators",
        "NuSVR": "estimators",
        "OneClassSVM": "estimators",
        "OneClassSVMPath": "estimators",
        "SVC": "estimators",
        "SVCPath": "estimators",
        "SVCPathCV": "estimators",
        "SVR": "estimators",
        "SVRPath": "estimators",
        "SVRPathCV": "estimators",
        "cost_matrix_scorer": "estimators",
        "leave_one_out": "estimators",
        "load": "estimators",
        "score_curve": "estimators",
        "FullCertificate": "foreign",
        "ModelCertificate": "foreign",
        "certify": "foreign",
        "certify_full": "foreign",
        "polish": "foreign",
        "Gram": "gram",
        "Certificate": "certificate",
        "DualProblem": "problem",
        "DualGrowth": "stopping",
        "FeasibilityGap": "stopping",
        "KKTViolation": "stopping",
        "RelativeGap": "stopping",
        "Solution": "solution",
        "Status": "solution",
        "Steps": "loop",
        "Trace": "solution",
        "iterate": "loop",
        "solve": "loop",
        "Path": "path",
        "one_class_path": "path",
        "svm_path": "path",
        "svr_path": "path",
        "datasets": "",
        "kernels": "",
        "plots": "",
    },
    elsewhere=("zerogap.solvers", "zerogap.path", "zerogap.kernels"),
)

__all__ = [
    "SVC",
    "SVR",
    "CVCurve",
    "Certificate",
    "Comparison",
    "DualGrowth",
    "DualProblem",
    "FeasibilityGap",
    "FullCertificate",
    "GaussianProcessRegressor",
    "Gram",
    "KKTViolation",
    "LinearSVC",
    "LinearSVR",
    "ModelCertificate",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OneClassSVMPath",
    "Path",
    "RelativeGap",
    "SVCPath",
    "SVCPathCV",
    "SVRPath",
    "SVRPathCV",
    "Solution",
    "Status",
    "Steps",
    "Trace",
    "certify",
    "certify_full",
    "compare",
    "cost_matrix_scorer",
    "datasets",
    "iterate",
    "kernels",
    "leave_one_out",
    "load",
    "one_class_path",
    "plots",
    "polish",
    "score_curve",
    "solve",
    "svm_path",
    "svr_path",
]
