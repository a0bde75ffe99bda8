"""What a solver is: frozen options with ``init`` and ``step``, a state, and what a step reports.

The loop in ``zerogap.solve`` does the rest for every solver alike: stopping rules, certificates, limits, the trace, the
callback and resuming.  ``docs/add-a-solver.md`` walks through the smallest solver there can be.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np

from zerogap.problem import DualProblem


@dataclass(frozen=True)
class Info:
    """What a step reports; the loop reads every field after every step.

    Attributes
    ----------
    iterations : moves made, in the unit that ``max_steps`` and ``trace_every`` count: pairs for SMO, products with the matrix
        for conjugate gradient, and so on.  Zero says that nothing moved: after some such steps in a row the loop ends the run.
    is_done : nothing is left to do at the solver's own precision.  The loop then certifies the point from the data.  If the
        stopping rule is not met it computes the residual afresh and asks again a few times, then ends the run as STALLED,
        PRECISION or NO_PROGRESS.
    is_own_rule : together with ``is_done``, the rule that ended it does not imply the optimum: the run ends as EXHAUSTED.
    is_unbounded : the dual objective grows for ever along a direction that was found: no hard margin exists, or the kernel is
        no inner product.  The loop checks it against the problem before it says UNBOUNDED.
    is_divergent : the solver's own options make the dual objective worse: the run ends as DIVERGED.  The state has to be the
        best point known.
    is_pending : what has moved is not part of the state yet, which is as it was: rules that ask for growth wait.
    drift : how far rounding has put any residual off in this step, at most, for a solver that can tell.  It vouches for its
        residual so: where computing it from the data takes long, the loop takes its word, and looks at some points only.
    """

    iterations: int
    _: KW_ONLY
    is_done: bool = False
    is_own_rule: bool = False
    is_unbounded: bool = False
    is_divergent: bool = False
    is_pending: bool = False
    drift: float = math.inf


class State(Protocol):
    """What a solver knows between two steps.  A named tuple will do; further fields are the solver's own.

    Between two steps the loop may write into both arrays: it puts right what rounding has done to the sum of ``beta``, and
    computes ``residual`` afresh.  A state is copied with ``copy.deepcopy`` when a run is resumed, so that the solution it
    belongs to stays as it is; what is cheaper to make again than to copy leaves itself out in its own ``__deepcopy__``.
    """

    @property
    def beta(self) -> np.ndarray:
        """The point, (n,) signed coefficients: inside the box to the last bit, their sum right but for rounding."""

    @property
    def residual(self) -> np.ndarray:
        """t - (K + diag(ridge)) beta, (n,), in step with beta but for rounding: minus the gradient of the smooth part of D."""


class Solver(Protocol):
    """A training algorithm: options, a start, and a step.

    A frozen dataclass: a run can be resumed only by a solver that equals (``==``) the one it began with.  ``str(solver)`` is
    the name that tables show; without one of its own, that of the class.  What is learnt on the way belongs to the state, so
    that one solver can serve several runs and threads at once.

    An attribute ``patience``, if there is one, says how many times the iterations of a pair's solver this one may go without
    progress before the loop ends the run as NO_PROGRESS: 1 by default, more where an iteration does less than a pair's.
    An attribute ``leaves_stretching``, if there is one and it is True, lets the loop end a run at a multiple of the solver's
    point, a little above one, at which no margin is short of one (``DualProblem.stretched``).
    """

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> Any:
        """Return the state at a point, or at the solver's own start.

        Parameters
        ----------
        problem : DualProblem
            Nothing in it may be changed but the cache and the count of its ``gram``.
        beta : array (n,) or None
            A feasible point.  It belongs to the caller: the state gets a copy.

        Returns
        -------
        State

        Raises
        ------
        ValueError
            The problem is none that this solver can solve.  The message names one that can.
        limits.Exceeded
            A limit came first, where kernel values have to be computed before there is a state.
        """

    def step(self, problem: DualProblem, state: Any, max_steps: int, kkt_target: float) -> tuple[Any, Info]:
        """Go on for a while: as long as a tenth of a second or so, or until ``limits.is_over()``.

        Parameters
        ----------
        problem : DualProblem
            The one the state was made for.
        state : State
            What ``init`` or the last step returned.  Its arrays may be updated in place.
        max_steps : int
            Make at most so many iterations, at least 1.
        kkt_target : float
            Come back earlier where the KKT violation is at most this: the stopping rule may then be met.  Below it nothing
            has to be gained.

        Returns
        -------
        (State, Info)
            A feasible point again, whose objective is no worse, its residual in step with it.
        """
