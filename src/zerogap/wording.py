"""What results say of themselves: numbers as people write them, and problems by the names they have in books."""

import math
import numbers
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from zerogap.certificate import Certificate
    from zerogap.gram import Gram
    from zerogap.problem import DualProblem

LEAST_DIGITS, MOST_DIGITS = 4, 15
WRITTEN_OUT = 6  # digits before the point without an exponent
SMALL = 1e-3  # below it a share is not told in per cent


def count(number: int, noun: str = "", nouns: str = "") -> str:
    """Return a whole number with its thousands apart, and what is counted: in the plural unless it is one."""
    words = noun if number == 1 else nouns or f"{noun}s"
    return f"{number:,} {words}" if noun else f"{number:,}"


def number(value: float, digits: int = LEAST_DIGITS) -> str:
    """Return a number with a few digits: 134 with two of them is 130, not 1.3e+02."""
    if not math.isfinite(value):
        return {math.inf: "infinite", -math.inf: "-infinite"}.get(value, "?")
    return f"{float(f'{value:.{digits}g}'):.{max(digits, WRITTEN_OUT)}g}"


def label(value: object) -> str:
    """Return a class by its label: 1, whether it is stored as 1 or as 1.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def share(number: float) -> str:
    """Return a share in words: per cent if it is worth it."""
    return f"{100.0 * number:.3g} %" if number >= SMALL else f"{number:.1e}"


def span(values: np.ndarray) -> str:
    """Return the value that all have, or the smallest and the largest."""
    low, high = number(values.min()), number(values.max())
    return low if low == high else f"{low} to {high}"


def duration(seconds: float) -> str:
    """Return a time in units in which it is neither tiny nor huge."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}" if seconds >= 100 * size else f"{seconds / size:.2g} {unit}"
    return f"{seconds / 1e-6:.0f} µs"


def objectives(certificate: "Certificate") -> tuple[str, str]:
    """Return dual and primal objective, with as many digits as it takes to see the gap between them."""
    gap = certificate.relative_gap
    digits = MOST_DIGITS if gap <= 0.0 else 2 - math.floor(math.log10(gap)) if math.isfinite(gap) else LEAST_DIGITS
    digits = min(max(digits, LEAST_DIGITS), MOST_DIGITS)
    return number(certificate.dual, digits), number(certificate.primal, digits)


# A kernel matrix.


def points_in_words(gram: "Gram") -> str:
    """Return what it is the matrix of."""
    points = count(gram.n, "point")
    return points if gram.kernel.is_precomputed else f"{points} with {count(gram.X.shape[1], 'feature')}"


def kernel_in_words(gram: "Gram") -> str:
    """Return the kernel by its name, with the numbers it has; its centre changes nothing but rounding."""
    options = {
        name: value for name, value in getattr(gram.kernel, "__dict__", {}).items() if isinstance(value, numbers.Real)
    }
    values = ", ".join(f"{name}={number(float(value))}" for name, value in options.items())
    return f"{gram.kernel.name}({values})" if values else gram.kernel.name


def memory_in_words(gram: "Gram") -> str:
    """Return how much of the matrix memory holds."""
    if gram.is_complete:
        return "the whole matrix is in memory"
    rows = count(int(np.count_nonzero(gram.has_rows(slice(None)))))
    room = "all" if gram.holds_all else count(gram.capacity)
    return f"{rows} of {count(gram.n)} rows are in memory, which has room for {room} ({8e-6 * gram.capacity * gram.n:.2g} MB)"


def work_in_words(gram: "Gram") -> str:
    """Return how many kernel values have been computed so far."""
    return f"{count(gram.evaluations, 'kernel value')} computed"


# A problem.


def problem_in_words(problem: "DualProblem") -> str:
    """Return which formulation it is, with its parameters, and of how many points."""
    return f"{_formulation(problem)}{_bias(problem)}, {points_in_words(problem.gram)}"


def box_in_words(problem: "DualProblem") -> str:
    """Return how large coefficients may become."""
    cap = _caps(problem)
    cap = cap[cap > 0]
    if not cap.size:
        return "every coefficient is zero"
    return (
        "coefficients have no bound"
        if np.isinf(cap).all()
        else f"coefficients are at most {span(cap)} in absolute value"
    )


def _caps(problem: "DualProblem") -> np.ndarray:
    """Return the largest absolute value of each coefficient."""
    return np.maximum(problem.upper, -problem.lower)


def _bias(problem: "DualProblem") -> str:
    if problem.is_linear_system:
        return ""
    return (
        " without a bias" if problem.total is None else "" if problem.total == 0 else f", sum {number(problem.total)}"
    )


def _formulation(problem: "DualProblem") -> str:
    """As box, ridge and tube have it; a point of weight zero has no box."""
    cap = _caps(problem)
    seen = cap > 0
    cap, ridge = cap[seen], problem.ridge[seen]
    has_ridge, is_free = bool((ridge > 0).all()), bool(np.isinf(cap).all())
    if problem.is_linear_system:
        return f"Gaussian process, or kernel ridge, with noise {span(ridge)}"
    is_hinge = np.isfinite(cap).all() and not ridge.any()  # or the loss of a tube
    is_squared, is_hard = is_free and has_ridge, is_free and not ridge.any()
    if not seen.any() or not (is_hinge or is_squared or is_hard):
        return "a loss of its own"
    cost = "" if is_hard else f" with C={span(1.0 / ridge if is_squared else cap)}"
    sides = np.sign(problem.upper) + np.sign(problem.lower)
    if np.array_equal(sides[seen], problem.target[seen]) and not problem.eps:
        return "hard margin" if is_hard else f"{'squared ' * is_squared}hinge loss{cost}"
    if is_hinge and problem.total and not (problem.target.any() or problem.lower.any() or problem.eps):
        return f"one class with nu={number(problem.total / cap.sum())}"
    if not is_hard and np.array_equal(problem.lower, -problem.upper):
        return f"{'squared ' * is_squared}epsilon-insensitive loss{cost}, epsilon={number(problem.eps)}"
    return "a loss of its own"


SCORES = {
    "neg_mean_squared_error": "minus mean squared error",
    "neg_mean_absolute_error": "minus mean absolute error",
    "r2": "R²",
    "roc_auc": "ROC AUC",
    "f1": "F1",
}


def score_in_words(name: str) -> str:
    """Return what a score of scikit-learn's is called in pictures."""
    return SCORES.get(name, name.replace("neg_", "minus ", name.startswith("neg_")).replace("_", " "))


SET_WORDS = {  # of paths, from the lowest code on, by a name that only sets of that kind have
    "elbow": ("outside", "on the margin", "inside the margin"),
    "upper margin": ("below the tube", "on its lower edge", "inside", "on its upper edge", "above the tube"),
    "on target": ("below the prediction", "predicted exactly", "above the prediction"),
    "margin": ("inside", "on the boundary", "outside"),
}
APPROXIMATE_SETS = ("at zero", "between the bounds", "at the cap")  # where nobody knows what is exactly on the margin


def set_words(sets: dict[int, str]) -> dict[int, str]:
    """Return what the sets of a path are called in plain words, for pictures."""
    words = next(words for name, words in SET_WORDS.items() if name in sets.values())
    return dict(zip(sorted(sets), words, strict=True))


def within(gap: float) -> str:
    """Return what a picture of an approximate path says of it."""
    return f"approximate, within a relative gap of {number(gap)}"
