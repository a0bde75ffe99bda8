"""The problems a path runs through, one for each lam: a box that stays, and targets, a tube and a sum that are linear in lam.

    minimise  1/2 b'K b - t(lam)'b + eps(lam) |b|_1   subject to  sum(b) = total(lam)  and  low <= y b <= w

Symbols: as in ``engine``.  Between two changes of the sets the solution of such a family is linear in lam:

    path                    lam         b              t           eps         total   box
    two classes, over C     1 / C       lam beta       lam y       0           0       0 <= y b <= w
    regression, over C      1 / C       lam beta       lam t       lam eps     0       |b| <= w
    regression, over eps    1 + eps     beta           t           lam - 1     0       |b| <= C w
    one class, over nu      nu sum(w)   beta           0           0           lam     0 <= b <= w

Targets are in units in which they are of size one, and so is eps; of one class the sum is in units of kernel values.  Then lam
is the size of decision values, which the tolerances of an engine are relative to, wherever it is.
With a tube, eps > 0, zero is a set of its own, from which a point gets to the margin of either side.  y is the side of zero
that a point is on.  Without one, eps = 0, coefficients pass zero without notice: y is one and low is -w.

Where the bias is fixed at zero there is no sum.  That is the same with a free bias and one more point, at the origin of the
feature space: its kernel values are zero, so that its coefficient moves no decision value, and its own is the bias.  It has a
target of zero and no tube, so that it is on its margin where the bias is zero, and a box wider than all the others can sum to,
so that it is on its margin always, and its coefficient is minus the sum of the others.  ``with_origin`` adds it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zerogap.gram import Gram
from zerogap.problem import DualProblem

RIGHT, ELBOW, LEFT = 0, 1, 2

# Of an objective's natural size.  To 1e-9 of this it is known in float64: where all points are on their margins, each is known
# to some fifty units in the last place, and of one class there may be a hundred times the weight of the coefficients.
SMALL_OBJECTIVE = 1e-4


class Tube(NamedTuple):
    """The numbers of a family, for compiled code."""

    eps0: float
    eps1: float
    total1: float
    is_two_sided: bool


@dataclass(frozen=True, eq=False)
class Family:
    """Problems over lam: t = target0 + lam target1, and eps and total likewise."""

    y: np.ndarray  # (n,) the label, or one
    w: np.ndarray  # (n,) the largest y b
    low: np.ndarray  # (n,) the smallest
    target0: np.ndarray
    target1: np.ndarray
    eps0: float = 0.0
    eps1: float = 0.0
    total0: float = 0.0
    total1: float = 0.0
    is_two_sided: bool = False  # zero is a kink, and coefficients of both signs are allowed: -w <= b <= w
    is_over_C: bool = True  # b = lam beta
    is_flat: bool = False  # a tube holds all targets, so that the objective is zero at every lam
    unit: float = 1.0  # of lam
    has_bias: bool = True  # a free one: else it is zero, and nothing constrains the sum
    has_origin: bool = False  # whether the last point is the one at the origin

    @classmethod
    def hinge(cls, y: np.ndarray, w: np.ndarray, *, has_bias: bool = True) -> "Family":
        """Return the soft margin of two classes, over C."""
        zero = np.zeros(y.size)
        return cls(y, w, zero, zero, y, has_bias=has_bias)

    @classmethod
    def insensitive(cls, t: np.ndarray, w: np.ndarray, eps: float, *, has_bias: bool = True) -> "Family":
        """Return regression with a tube of half width eps, over C."""
        zero, one = np.zeros(t.size), np.ones(t.size)
        reach = 0.5 * np.ptp(t) if has_bias else np.abs(t).max()
        return cls(
            one, w, zero if eps > 0.0 else -w, zero, t, eps1=eps, is_two_sided=eps > 0.0, is_flat=bool(reach <= eps),
            has_bias=has_bias,
        )  # fmt: skip

    @classmethod
    def tubes(cls, t: np.ndarray, cap: np.ndarray, *, has_bias: bool = True) -> "Family":
        """Return regression at one C, over the half width eps = lam - 1 of the tube."""
        zero, one = np.zeros(t.size), np.ones(t.size)
        return cls(one, cap, zero, t, zero, eps0=-1.0, eps1=1.0, is_two_sided=True, is_over_C=False, has_bias=has_bias)

    @classmethod
    def one_class(cls, w: np.ndarray, size: float) -> "Family":
        """Return the one-class problem, over nu: lam is the sum of all coefficients, times the size of kernel values."""
        zero, one = np.zeros(w.size), np.ones(w.size)
        return cls(one, w, zero, zero, zero, total1=1.0 / size, is_over_C=False)

    def in_units(self, unit: float) -> "Family":
        """Return the family of lam / unit, for a kernel matrix that is divided by the same."""
        if unit == 1.0:
            return self
        return replace(self, target0=self.target0 / unit, eps0=self.eps0 / unit, total1=self.total1 * unit, unit=unit)

    def with_origin(self) -> "Family":
        """Return the family with one more point, at the origin, which makes a free bias zero."""
        width = 2.0 * float(self.w.sum())

        def more(x: np.ndarray, of_origin: float) -> np.ndarray:
            return np.append(x, of_origin)

        return replace(
            self, y=more(self.y, 1.0), w=more(self.w, width), low=more(self.low, -width),
            target0=more(self.target0, self.eps0), target1=more(self.target1, self.eps1), has_origin=True,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of points."""
        return self.y.size

    @cached_property
    def is_hinge(self) -> bool:
        """Whether this is the soft margin of two classes."""
        own = slice(-1 if self.has_origin else None)
        is_one_sided = self.is_over_C and not self.is_two_sided and not self.low[own].any()
        return is_one_sided and np.array_equal(self.target1[own], self.y[own])

    @cached_property
    def cost(self) -> np.ndarray:
        """What it costs to be off by one: the weight of a point, nothing at the origin."""
        return np.append(self.w[:-1], 0.0) if self.has_origin else self.w

    @property
    def tube(self) -> Tube:
        """Its numbers."""
        return Tube(self.eps0, self.eps1, self.total1, self.is_two_sided)

    @cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest b."""
        if self.is_two_sided:
            return -self.w, self.w
        ends = self.y * self.low, self.y * self.w
        return np.minimum(*ends), np.maximum(*ends)

    def eps(self, lam: float) -> float:
        """Return the half width of the tube, in the units of decision values."""
        return max(self.eps0 + lam * self.eps1, 0.0)

    def total(self, lam: Any) -> Any:
        """Return what the coefficients sum to."""
        return self.total0 + lam * self.total1

    def scale(self, lam: float) -> float:
        """Return beta / b."""
        return 1.0 / lam if self.is_over_C else 1.0

    def problem(self, gram: Gram, lam: float) -> DualProblem:
        """Return the problem at lam, in beta."""
        lower, upper = (self.scale(lam) * bound for bound in self.box)
        zero, total = np.zeros(self.n), self.total(lam) if self.has_bias else None
        if self.is_over_C:
            return DualProblem(gram, self.target1, lower, upper, ridge=zero, eps=self.eps1, total=total)
        target = self.target0 + lam * self.target1
        return DualProblem(gram, target, lower, upper, ridge=zero, eps=self.eps(lam), total=total)

    def floor(self, lam: Any, size: float) -> Any:
        """Return what gaps are relative to beside the objective, which may fall to zero; ``size`` is that of kernel values.

        As eps grows a tube takes up all points: a little of what it costs to be off by one everywhere.  And where the origin is
        among the points of one class there is no plane between: a little of what it would be if all were at one place, which
        is at a distance of one where all are at the origin.
        """
        if self.total1:
            return SMALL_OBJECTIVE * 0.5 * (size or 1.0) * self.total(lam) ** 2
        if self.is_flat or self.eps0:
            return SMALL_OBJECTIVE * float(self.cost.sum()) * (lam if self.is_flat else lam / lam / self.unit)
        return 0.0 * lam

    def words(self, lam: float) -> str:
        """Return where lam is, for messages."""
        if self.is_over_C:
            return f"C={1.0 / (self.unit * lam):g}"
        return f"epsilon={self.unit * lam - 1.0:g}" if self.is_two_sided else f"nu={self.total(lam) / self.w.sum():g}"

    def at_rest(self, status: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """Return the b of some points at a bound; zero for those of the elbow.  Sets of a side other than y are negative."""
        y, w, low = self.y[rows], self.w[rows], self.low[rows]
        if not self.is_two_sided:
            return y * np.where(status == LEFT, w, np.where(status == RIGHT, low, 0.0))
        return np.where(status < 0, -y, y) * np.where(np.abs(status) == LEFT, w, np.where(status == RIGHT, low, 0.0))

    def clipped(self, b: np.ndarray) -> np.ndarray:
        """Return b within the box."""
        return np.clip(b, *self.box)
