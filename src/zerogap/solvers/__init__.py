"""Training algorithms.  Each is a set of frozen options with ``init`` and ``step``; ``zerogap.solve`` runs them.

To add one, write a file with such a class and enter it in ``SOLVERS`` and in the table of homes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from zerogap.lazily import loader
from zerogap.problem import DualProblem
from zerogap.solvers.pair import Info

if TYPE_CHECKING:
    from zerogap.solvers.cholesky import Cholesky
    from zerogap.solvers.conjugate_gradient import ConjugateGradient
    from zerogap.solvers.decomposition import Chunking, Decomposition
    from zerogap.solvers.gradient_ascent import SOR, GradientAscent
    from zerogap.solvers.keerthi import KeerthiSMO
    from zerogap.solvers.platt import PlattSMO, SimpleSMO
    from zerogap.solvers.rosen import Rosen
    from zerogap.solvers.simple_svm import SimpleSVM
    from zerogap.solvers.smo import SMO

_load, __dir__ = loader(
    __name__,
    {
        "Cholesky": "cholesky",
        "ConjugateGradient": "conjugate_gradient",
        "Chunking": "decomposition",
        "Decomposition": "decomposition",
        "SOR": "gradient_ascent",
        "GradientAscent": "gradient_ascent",
        "KeerthiSMO": "keerthi",
        "PlattSMO": "platt",
        "SimpleSMO": "platt",
        "Rosen": "rosen",
        "SimpleSVM": "simple_svm",
        "SMO": "smo",
    },
)
__getattr__ = _load


class State(Protocol):
    """What every solver's state holds; arrays are updated in place."""

    @property
    def beta(self) -> np.ndarray:
        """Feasible point."""

    @property
    def residual(self) -> np.ndarray:
        """t - K beta, kept in step with beta."""


class Solver(Protocol):
    """A training algorithm: options, a start, and a step."""

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> Any:
        """Return the state at beta, or at the solver's own start."""

    def step(self, problem: DualProblem, state: Any, most: int, until: float) -> tuple[Any, Info]:
        """Make up to ``most`` iterations, fewer if the KKT violation falls to ``until`` before."""


SOLVERS: dict[str, Callable[[int], Solver]] = {
    "auto": lambda seed: _load("SMO")(),
    "smo": lambda seed: _load("SMO")(),
    "smo-mvp": lambda seed: _load("SMO")(second_order=False),
    "smo-keerthi": lambda seed: _load("KeerthiSMO")(),
    "smo-platt": lambda seed: _load("PlattSMO")(random_state=seed),
    "smo-simple": lambda seed: _load("SimpleSMO")(random_state=seed),
    "gradient-ascent": lambda seed: _load("GradientAscent")(),
    "sor": lambda seed: _load("SOR")(),
    "chunking": lambda seed: _load("Chunking")(),
    "decomposition": lambda seed: _load("Decomposition")(),
    "rosen": lambda seed: _load("Rosen")(),
    "simple-svm": lambda seed: _load("SimpleSVM")(),
    "cholesky": lambda seed: _load("Cholesky")(),
    "cg": lambda seed: _load("ConjugateGradient")(),
}


def get_solver(solver: str | Solver, seed: int = 0) -> Solver:
    """Return a configured solver as it is, or the one a name stands for."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"Unknown solver {solver!r}. Choose one of {', '.join(map(repr, SOLVERS))}.")
        return SOLVERS[solver](seed)
    if not (hasattr(solver, "init") and hasattr(solver, "step")):
        raise TypeError(
            f"solver must be a name or an object with init and step; got {type(solver).__name__}. "
            f"Names: {', '.join(map(repr, SOLVERS))}."
        )
    return solver


__all__ = [
    "SMO",
    "SOLVERS",
    "SOR",
    "Cholesky",
    "Chunking",
    "ConjugateGradient",
    "Decomposition",
    "GradientAscent",
    "Info",
    "KeerthiSMO",
    "PlattSMO",
    "Rosen",
    "SimpleSMO",
    "SimpleSVM",
    "Solver",
    "State",
    "get_solver",
]
