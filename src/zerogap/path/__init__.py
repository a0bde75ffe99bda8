"""The exact regularisation path: the solution for every C between two, from one run."""

from zerogap.path.curve import ScoreCurve, score_curve
from zerogap.path.follow import svm_path
from zerogap.path.path import Event, Path

__all__ = ["Event", "Path", "ScoreCurve", "score_curve", "svm_path"]
