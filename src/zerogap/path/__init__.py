"""The exact regularisation path: the solution for every C between two, from one run."""

from zerogap.path._svm_path import ENGINES, svm_path
from zerogap.path.curve import ScoreCurve, score_curve
from zerogap.path.hastie import Hastie
from zerogap.path.lp import LP
from zerogap.path.result import Event, Path
from zerogap.path.single import Single
from zerogap.path.solution_set import SolutionSet

__all__ = [
    "ENGINES",
    "LP",
    "Event",
    "Hastie",
    "Path",
    "ScoreCurve",
    "Single",
    "SolutionSet",
    "score_curve",
    "svm_path",
]
