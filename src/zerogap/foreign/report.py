"""What is known of a fitted model, in words and numbers."""

from dataclasses import dataclass

import numpy as np

from zerogap.certificate import Certificate
from zerogap.wording import share


@dataclass(frozen=True)
class ModelCertificate:
    """How far from optimal a fitted model is.

    The objective is that of the model as it predicts, with its own intercept.  No model has an objective below the bound, so
    the model is at most ``relative_gap`` of its objective above the optimum; that is a proof, with what float64 rounds counted.

    Attributes
    ----------
    estimator : str
        Name of the model's class.
    names : tuple of str
        The problems it consists of: one, or pairs of classes, or classes against the rest.
    certificates : tuple of Certificate
        One for each: ``primal`` is the objective of the model, ``dual`` the bound, ``bias`` its intercept.
    n_support : tuple of int
        Coefficients of each that are not zero.
    n_points : int
        Number of training points.
    shortfalls : tuple of str
        For each problem, in what its bound is short of the tolerance it was to be solved to, and why; empty where it is not.
    relative_gap : float
        (objective - bound) / objective with rounding counted, the largest over all problems.
    worst : Certificate
        The one that belongs to it.
    worst_name, shortfall : str
        Name and shortfall of that problem.
    primal, dual : float
        Objective and bound of that problem.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from zerogap import certify, datasets
    >>> X, y = datasets.two_spirals()
    >>> found = certify(SVC(C=1e4).fit(X, y), X, y)
    >>> found.estimator, len(found.certificates), bool(found.relative_gap < 0.1)
    ('SVC', 1, True)
    """

    estimator: str
    names: tuple[str, ...]
    certificates: tuple[Certificate, ...]
    n_support: tuple[int, ...]
    n_points: int
    shortfalls: tuple[str, ...] = ()

    @property
    def _k(self) -> int:
        return int(np.argmax([certificate.relative_gap for certificate in self.certificates]))

    @property
    def worst(self) -> Certificate:
        """The certificate of the problem that is furthest from its optimum."""
        return self.certificates[self._k]

    @property
    def worst_name(self) -> str:
        """The name of that problem; empty if there is only one."""
        return self.names[self._k]

    @property
    def relative_gap(self) -> float:
        """(objective - bound) / objective with rounding counted, the largest over all problems."""
        return self.worst.relative_gap

    @property
    def shortfall(self) -> str:
        """In what the bound of that problem is short of the tolerance it was to be solved to, and why; empty if it is not."""
        return self.shortfalls[self._k] if self.shortfalls else ""

    @property
    def primal(self) -> float:
        """Objective of the model in that problem."""
        return self.worst.primal

    @property
    def dual(self) -> float:
        """Bound on the optimum of that problem."""
        return self.worst.dual

    def __repr__(self) -> str:
        worst, found = self.worst, ""
        short = f" ({self.shortfall})" if self.shortfall else ""
        if len(self.certificates) > 1:
            found = f", in the worst of {len(self.certificates)} problems, {self.worst_name}"
        if not np.isfinite(self.relative_gap):
            known = (
                "nothing proves how far its objective" if np.isfinite(worst.primal) else "no number of float64 holds it"
            )
            above = f"of {worst.primal:.6g} is above the optimum, at least {worst.dual:.6g}"
            return f"{self.estimator}: {known} {above}{found}{short}"
        return (
            f"{self.estimator}: up to {share(self.relative_gap)} off the optimum{found}: objective {worst.primal:.7g}, "
            f"optimum at least {worst.dual:.7g}{short}"
        )

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_model_certificate

        return of_model_certificate(self)
