"""The exact regularisation path: the solution for every C between two, from one run."""

from zerogap.path._svm_path import svm_path
from zerogap.path.approximate import ApproximatePath
from zerogap.path.checks import ENGINES
from zerogap.path.curve import SampledScoreCurve, ScoreCurve, score_curve
from zerogap.path.error_curve import ErrorCurve, error_curve
from zerogap.path.hastie import Hastie
from zerogap.path.lp import LP
from zerogap.path.one_class import NuEvent, NuPath, one_class_path
from zerogap.path.record import Event
from zerogap.path.regression import EpsilonEvent, EpsilonPath, RegressionPath, svr_path
from zerogap.path.result import Path
from zerogap.path.single import Single
from zerogap.path.solution_set import SolutionSet

__all__ = [
    "ENGINES",
    "LP",
    "ApproximatePath",
    "EpsilonEvent",
    "EpsilonPath",
    "ErrorCurve",
    "Event",
    "Hastie",
    "NuEvent",
    "NuPath",
    "Path",
    "RegressionPath",
    "SampledScoreCurve",
    "ScoreCurve",
    "Single",
    "SolutionSet",
    "error_curve",
    "one_class_path",
    "score_curve",
    "svm_path",
    "svr_path",
]
