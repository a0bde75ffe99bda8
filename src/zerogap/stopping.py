"""Stopping rules as objects: every solver works with every rule (the three criteria of chapter7 §7.1)."""

from dataclasses import dataclass

from zerogap import validation
from zerogap.certificate import Certificate


class Stop:
    """A stopping rule; join several with ``|``: the first to be met ends the run."""

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Return whether to stop.

        Parameters
        ----------
        now : Certificate
            That of the present point.
        before : Certificate or None
            That of the trace row before; None at the first.

        Returns
        -------
        bool
            True ends the run.
        """
        raise NotImplementedError

    def kkt_target(self, now: Certificate) -> float:
        """Return the KKT target: the violation at which the rule is to be tested again.

        Parameters
        ----------
        now : Certificate
            That of the present point.

        Returns
        -------
        float
            A KKT violation; the solver's step ends when it gets there.
        """
        raise NotImplementedError

    def __or__(self, other: "Stop") -> "Stop":
        return AnyOf((self, other))


@dataclass(frozen=True)
class RelativeGap(Stop):
    """Stop when the duality gap is at most ``tol`` times the primal objective; criterion 3 of chapter7 without its + 1.

    Attributes
    ----------
    tol : float, default 1e-4
        The relative gap to reach, rounding included.

    Examples
    --------
    >>> from zerogap import DualGrowth, RelativeGap
    >>> stop = RelativeGap(1e-6) | DualGrowth(1e-12)
    """

    tol: float = 1e-4

    def __post_init__(self) -> None:
        validation.check_positive("tol", self.tol, advice="It is the relative duality gap to reach.")

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Whether the gap is small enough."""
        return now.relative_gap <= self.tol

    def kkt_target(self, now: Certificate) -> float:
        """Near the optimum the gap is about proportional to the violation."""
        return _target(now.kkt_violation, self.tol, now.relative_gap)


@dataclass(frozen=True)
class PlainGap(RelativeGap):
    """A relative gap as float64 has it, whatever rounding may hide: for a starting point that is made exact afterwards."""

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Whether the gap is small enough, rounding left out."""
        return now.is_zero or now.gap <= self.tol * abs(now.primal)


@dataclass(frozen=True)
class FeasibilityGap(Stop):
    """Stop when the duality gap is at most ``tol`` times the primal objective plus one: the ratio (7.3) of chapter7.

    Against ``RelativeGap`` the one makes it an absolute gap where the objective is small: the rule is met sooner, and
    depends on the scale of C and of the kernel.

    Attributes
    ----------
    tol : float, default 1e-3
        The ratio to reach, rounding included; the default is the chapter's.

    Examples
    --------
    >>> from zerogap import DualProblem, FeasibilityGap, Gram, solve
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0)
    >>> bool(solve(problem, stop=FeasibilityGap(1e-6)).certificate.feasibility_gap <= 1e-6)
    True
    """

    tol: float = 1e-3

    def __post_init__(self) -> None:
        validation.check_positive("tol", self.tol, advice="It is the ratio (7.3) of gap and primal objective to reach.")

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Whether the ratio is small enough."""
        return now.feasibility_gap <= self.tol

    def kkt_target(self, now: Certificate) -> float:
        """As for the relative gap."""
        return _target(now.kkt_violation, self.tol, now.feasibility_gap)


@dataclass(frozen=True)
class KKTViolation(Stop):
    """Stop when no optimality condition is violated by more than ``tol`` (criterion 2 of chapter7 §7.1).

    Attributes
    ----------
    tol : float, default 1e-3
        The KKT violation to reach.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, KKTViolation, solve
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0)
    >>> solve(problem, stop=KKTViolation(1e-6)).certificate.kkt_violation <= 1e-6
    True
    """

    tol: float = 1e-3

    def __post_init__(self) -> None:
        validation.check_positive("tol", self.tol, advice="It is the KKT violation to reach.")

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Whether the violation is small enough."""
        return now.kkt_violation <= self.tol

    def kkt_target(self, now: Certificate) -> float:
        """The tolerance itself."""
        return self.tol


@dataclass(frozen=True)
class DualGrowth(Stop):
    """Stop when the dual objective grows by less than the fraction ``tol`` between trace rows (criterion 1 of chapter7 §7.1).

    Unreliable: slow progress counts as the end, however far the optimum.  Kept for comparison; the certificate still tells.

    Attributes
    ----------
    tol : float, default 1e-9
        The fractional growth.

    Examples
    --------
    >>> from zerogap import DualGrowth, DualProblem, Gram, solve
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0)
    >>> solve(problem, stop=DualGrowth(1e-6)).status.name
    'CONVERGED'
    """

    tol: float = 1e-9

    def __post_init__(self) -> None:
        validation.check_positive("tol", self.tol, advice="It is the fractional growth of the dual objective.")

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Whether the dual objective has all but ceased to grow."""
        return before is not None and now.dual - before.dual <= self.tol * abs(now.dual)

    def kkt_target(self, now: Certificate) -> float:
        """No violation is too small for this rule."""
        return 0.0


def _target(violation: float, tol: float, gap: float) -> float:
    """Return the violation at which a gap may have come down to the tolerance, at most 0.8 of the present one.

    Far from the optimum the gap tells little: a fortieth of the violation is as far as it goes.
    """
    least = 0.025 if gap > 0.9 else 1e-6
    return violation * max(least, min(0.8, 0.8 * tol / gap) if gap > 0 else 0.8)


@dataclass(frozen=True)
class AnyOf(Stop):
    """Stop when the first of several rules is met."""

    rules: tuple[Stop, ...]

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Whether any rule is met."""
        return any(rule.is_met(now, before) for rule in self.rules)

    def kkt_target(self, now: Certificate) -> float:
        """The violation at which the first rule may be met."""
        return max(rule.kkt_target(now) for rule in self.rules)
