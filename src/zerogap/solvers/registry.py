"""The solvers there are: one line each.

A name that is entered here can be passed to ``solve``, ``compare``, the estimators and the commands; its class can be imported
from ``zerogap.solvers``; and ``tests/test_conformance.py`` tries it on every problem it claims.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from zerogap.problem import DualProblem
from zerogap.solvers.base import Solver


@dataclass(frozen=True)
class Entry:
    """A line of the registry.

    Attributes
    ----------
    home : the module within this package and the class, "module.Class"; loaded when first used
    options : what the class is called with, if the name stands for more than its defaults
    is_seeded : whether it draws points at random: the class then takes ``random_state``
    free_bias : whether it takes problems whose bias is free, so that the sum of the coefficients is fixed
    hulls : whether it takes only problems that ask for the nearest points of two convex hulls: hard margins and the squared
        hinge, with a free bias
    linear : whether it takes only the linear kernel, losses that are finite, and coefficients that sum to zero if to anything
    constraints : whether it takes problems with a box or a tube; else linear systems alone, as a Gaussian process is
    indefinite : whether it takes kernels that are no inner products; else it may refuse them
    is_exact : whether it reaches the optimum of every problem it takes, whose kernel is an inner product, to any tolerance that
        float64 allows
    """

    home: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_seeded: bool = False
    free_bias: bool = True
    hulls: bool = False
    linear: bool = False
    constraints: bool = True
    indefinite: bool = True
    is_exact: bool = True

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.home.split(".")[1]

    def make(self, seed: int = 0) -> Solver:
        """Return the solver."""
        module, name = self.home.split(".")
        seeded = {"random_state": seed} if self.is_seeded else {}
        return getattr(import_module(f"zerogap.solvers.{module}"), name)(**self.options, **seeded)

    def claims(self, problem: DualProblem) -> bool:
        """Whether the solver takes this problem; one that does not says so in ``init``."""
        if not self.indefinite and not problem.gram.seems_positive():
            return False
        if self.hulls:
            return problem.is_nearest_point
        if self.linear:
            return problem.gram.kernel.is_linear and not problem.is_hard and problem.total in (None, 0.0)
        return problem.is_linear_system or (self.constraints and (self.free_bias or problem.total is None))


SOLVERS = {
    "auto": Entry("auto.Auto"),
    "smo": Entry("smo.SMO"),
    "smo-mvp": Entry("smo.SMO", {"second_order": False}),
    "smo-keerthi": Entry("keerthi.KeerthiSMO"),
    "smo-platt": Entry("platt.PlattSMO", is_seeded=True),
    "smo-simple": Entry("platt.SimpleSMO", is_seeded=True, is_exact=False),
    "gradient-ascent": Entry("gradient_ascent.GradientAscent", free_bias=False),
    "sor": Entry("gradient_ascent.SOR", free_bias=False),
    "linear-cd": Entry("linear_cd.LinearCD", is_seeded=True, linear=True),
    "chunking": Entry("decomposition.Chunking"),
    "decomposition": Entry("decomposition.Decomposition"),
    "rosen": Entry("rosen.Rosen"),
    "simple-svm": Entry("simple_svm.SimpleSVM"),
    "direct-svm": Entry("direct_svm.DirectSVM", hulls=True, is_exact=False),
    "npa": Entry("npa.NPA", hulls=True),
    "cholesky": Entry("cholesky.Cholesky", constraints=False, indefinite=False),
    "cg": Entry("conjugate_gradient.ConjugateGradient", constraints=False),
}


def get_solver(solver: str | Solver, seed: int = 0) -> Solver:
    """Return a configured solver as it is, or the one a name stands for.

    Parameters
    ----------
    solver : str or Solver
        A name of the registry, or an object with ``init`` and ``step``.
    seed : int, default 0
        For solvers that draw points at random.

    Returns
    -------
    Solver
        The solver.

    Examples
    --------
    >>> from zerogap.solvers import get_solver
    >>> str(get_solver("rosen"))
    'rosen'
    """
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"Unknown solver {solver!r}. Choose one of {', '.join(map(repr, SOLVERS))}.")
        return SOLVERS[solver].make(seed)
    if isinstance(solver, type):
        raise TypeError(
            f"solver must be a name or an object; got the class {solver.__name__}. Pass {solver.__name__}(...)."
        )
    if not (hasattr(solver, "init") and hasattr(solver, "step")):
        raise TypeError(
            f"solver must be a name or an object with init and step; got {type(solver).__name__}. "
            f"Names: {', '.join(map(repr, SOLVERS))}."
        )
    return solver


def name_of(solver: Solver) -> str:
    """Return the name that tables show: what the solver calls itself, or its class if it does not."""
    cls = type(solver)
    is_named = cls.__str__ is not object.__str__ or cls.__repr__ is not object.__repr__
    return str(solver) if is_named else cls.__name__
