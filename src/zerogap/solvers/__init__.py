"""Training algorithms.  Each is a set of frozen options with ``init`` and ``step``; ``zerogap.solve`` runs them.

``base.py`` says what a solver is, ``registry.py`` lists those there are; docs/add-a-solver.md shows how to add one.
"""

from typing import TYPE_CHECKING

from zerogap.lazy_import import loader
from zerogap.solvers.base import Info, Solver, State
from zerogap.solvers.registry import SOLVERS, Entry, get_solver, name_of

if TYPE_CHECKING:  # for editors and type checkers, which cannot see what is loaded when first used
    from zerogap.solvers.auto import Auto
    from zerogap.solvers.cholesky import Cholesky
    from zerogap.solvers.conjugate_gradient import ConjugateGradient
    from zerogap.solvers.decomposition import Chunking, Decomposition
    from zerogap.solvers.direct_svm import DirectSVM
    from zerogap.solvers.gradient_ascent import SOR, GradientAscent
    from zerogap.solvers.keerthi import KeerthiSMO
    from zerogap.solvers.linear_cd import LinearCD
    from zerogap.solvers.npa import NPA
    from zerogap.solvers.platt import PlattSMO, SimpleSMO
    from zerogap.solvers.rosen import Rosen
    from zerogap.solvers.simple_svm import SimpleSVM
    from zerogap.solvers.smo import SMO

__getattr__, __dir__ = loader(__name__, {entry.class_name: entry.home.split(".")[0] for entry in SOLVERS.values()})

__all__ = [
    "NPA",
    "SMO",
    "SOLVERS",
    "SOR",
    "Auto",
    "Cholesky",
    "Chunking",
    "ConjugateGradient",
    "Decomposition",
    "DirectSVM",
    "Entry",
    "GradientAscent",
    "Info",
    "KeerthiSMO",
    "LinearCD",
    "PlattSMO",
    "Rosen",
    "SimpleSMO",
    "SimpleSVM",
    "Solver",
    "State",
    "get_solver",
    "name_of",
]
