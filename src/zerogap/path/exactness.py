"""Whether a path is what was promised: what its proof leaves open is asked at a few C, and told."""

import math
import warnings
from contextlib import suppress

import numpy as np

from zerogap import validation
from zerogap.kernels import UNIT
from zerogap.limits import Exceeded, check
from zerogap.loss import Loss
from zerogap.path.engine import Options
from zerogap.path.reading import certified, products, solved_at
from zerogap.path.result import Path

EXACT = 1e-9  # the largest relative gap that a path of engine "single" may have, at any C

# The same with all that rounding may have done to kernel values and sums, much of which is only a bound.
EXACT_ROUNDED = 1e-7
SURE = 0.1 * EXACT_ROUNDED  # a bound below this at all those C leaves enough for what is between them
SOME_COORDINATES, MOST_COORDINATES = 5_000_000, 50_000_000  # read to compute kernel values there, at one C and at all
SAMPLES = 5  # C at which that is asked, and about as many segments
APART = 64.0  # as a share of C: farther from each other they are not left
PRECISE = 2  # so many of them are computed in twice the precision, if need be; and those of which the bound is rough
OVERFLOW = 1e300


def check_result(path: Path, options: Options) -> None:
    """Warn of what is not exact, under the limits of the path."""
    with suppress(Exceeded):
        if len(path) > 1 and not path.n_unproved and not _warn_if_inexact(path, options):
            _warn_if_rough(path)


def _warn_if_inexact(path: Path, options: Options) -> bool:
    """Compare the largest gap with what the engine promises, and warn: one that has lost its way would not notice."""
    gap, C = path.largest
    promised = _promised(path, options, C)
    if gap > promised:
        warnings.warn(
            f"The path is not exact: the relative gap at {path.words(C)} is {gap:.1e}, where {promised:.1g} or less was "
            f"expected. Look at path.certificate_at({path.parameter}), and fit {path.estimator} where it is large; scaled "
            f"features and {path.easier} at the end help.",
            RuntimeWarning,
            stacklevel=validation.callers_level(),
        )
    return gap > promised


def _warn_if_rough(path: Path) -> None:
    """The proof is about kernel values as they were computed; here they are computed from the data, at a few C."""
    assert path.gram is not None
    samples = _samples(path)
    check()
    problems, betas = solved_at(path, samples)
    found = products(path, betas)
    coarse = certified(problems, betas, found, precisely=False)
    gaps = np.array([path.relative_gap(certificate, C) for certificate, C in zip(coarse, samples, strict=True)])
    if gaps.max() <= SURE:
        return
    known = 10.0 * path.largest_gap_  # what the engine may leave
    if gaps.max() > EXACT_ROUNDED:  # the bounds count the rounding of coefficients, and more
        primal = [abs(certificate.primal) + path.floor_at(C) for certificate, C in zip(coarse, samples, strict=True)]
        least = max(EXACT_ROUNDED, known)
        is_quiet = all(
            _relative(_most_noise(path, *at), size) <= least for *at, size in zip(samples, betas, primal, strict=True)
        )
        noise = [] if is_quiet else [_relative(_noise(path, C), size) for C, size in zip(samples, primal, strict=True)]
        if max(noise, default=0.0) > least:  # it may be, and some of it is seen
            lost = [_relative(gap_as_read(path, C), size) for C, size in zip(samples, primal, strict=True)]
            many = _dense_samples(path)  # what is rounding at one C is nothing at the next
            for C, at in zip(many, path.certificates(many, from_data=False), strict=True):
                check()
                seen = max(at.gap, _gap_of_shares(path, C), gap_as_read(path, C, from_data=False))
                lost.append(_relative(seen, abs(at.primal) + path.floor_at(C)))
            if max(lost) > EXACT:
                C = samples[np.argmax(noise)]
                _warn_of_precision(path, C, max(noise), "the last digits of its coefficients alone may make")
                return
    is_open = np.flatnonzero(gaps > SURE)
    again = [problems[k] for k in is_open], [betas[k] for k in is_open], found[is_open]
    finer = certified(*again, from_data=False)
    gaps[is_open] = [path.relative_gap(*found) for found in zip(finer, samples[is_open], strict=True)]
    n, work = path.y.size, 0
    precise = PRECISE if path.gram.precise_work(n, n) <= MOST_COORDINATES else 0
    suspect = [k for rank, k in enumerate(np.argsort(-gaps)) if gaps[k] > (SURE if rank < precise else EXACT_ROUNDED)]
    for rank, k in enumerate(suspect):
        check()
        work += path.gram.precise_work(n, int(np.count_nonzero(path.beta_at(samples[k]))))
        if rank > 0 and work > MOST_COORDINATES:  # the worst of them is asked at any rate
            return
        C, certificate = float(samples[k]), path.certificate_at(samples[k])
        gap = _relative(max(certificate.gap, gap_as_read(path, C)), abs(certificate.primal) + path.floor_at(C))
        as_certified = path.relative_gap(certificate, C)
        if gap > max(EXACT, known) or as_certified > max(EXACT_ROUNDED, known):
            gap = max(gap, as_certified)
            as_they_are = _relative(gap_as_read(path, C, from_data=False), abs(certificate.primal) + path.floor_at(C))
            cause = "for kernel values with all their digits it has"
            if as_they_are > max(EXACT, known):  # then these do not help
                cause = "the last digits of its coefficients and its bias alone make"
            _warn_of_precision(path, C, gap, cause)
            return


def _samples(path: Path) -> np.ndarray:
    """Return a few C of all sizes, but for those near which the proof was sure on its way; the largest in any case."""
    known, last = path._certificates_on_the_way(), float(path.lam[-1])
    if not known:
        lam = path.lam
        k = np.unique(np.linspace(0, lam.size - 2, SAMPLES - 1).astype(int))
        some = [*np.geomspace(lam[0], last, SAMPLES), *np.sqrt(lam[k]) * np.sqrt(lam[k + 1])]
    else:
        some, before = [last], float(path.lam[0])
        for at, gap in [*known, (last, 0.0)]:
            between = int(math.log(before / at) / math.log(APART))  # of these a few C as well
            some += np.geomspace(before, at, between + 2)[1:-1].tolist()
            some += [at] if gap > SURE else []
            before = at
    return np.unique(path.value_of(np.clip(some, last, path.lam[0])))


def _warn_of_precision(path: Path, C: float, gap: float, cause: str) -> None:
    assert path.gram is not None
    warnings.warn(
        f"The {path.gram.kernel.name} kernel has too few digits on this data: the path is exact for its values as float64 has "
        f"them, but at {path.words(C)} {cause} a relative gap of {gap:.1e}. Centre and scale the features, or end at "
        f"{path.easier}.",
        RuntimeWarning,
        stacklevel=validation.callers_level(),
    )


def _noise(path: Path, C: float) -> float:
    """Return the gap that the rounding of every coefficient at C may make, through the points on the margin."""
    assert path.gram is not None
    near = path.on_margin_at(C)
    off = np.abs(path.gram.full()[near]) @ np.abs(path.beta_at(C))
    return UNIT * path.scale_at(C) * float(path.family.w[near] @ off)


def _most_noise(path: Path, C: float, beta: np.ndarray) -> float:
    """Return a bound on that without a product: all points are on the margin, and |K_ij| is at most norm_i norm_j."""
    w, norm = path.family.w, path.norm
    return 2.0 * UNIT * path.scale_at(C) * float(w @ norm) * float(norm @ np.abs(beta))


def gap_as_read(path: Path, C: float, *, from_data: bool = True) -> float:
    """Return the gap with the coefficients and the bias as they are read: a certificate has a bias of its own.

    ``from_data``: with kernel values in twice the precision, where they are not too many.
    """
    assert path.gram is not None
    problem, (beta, bias) = path.problem_at(C), path.solution_at(C)
    error = path.gram.dot_error(beta)
    rows = np.flatnonzero((beta != 0) | (path.excess_at(C)[0] < error))
    from_data = from_data and path.gram.precise_work(int(np.count_nonzero(beta)), rows.size) <= SOME_COORDINATES
    product = path.gram.precise_dot(beta, rows, from_data=from_data)
    low = product.low + path.gram.full()[rows] @ path.share_error_at(C)
    loss = Loss(problem.lower[rows], problem.upper[rows], problem.ridge[rows], problem.eps)
    return float(loss.gap_shares(beta[rows], ((problem.target[rows] - product.high) - bias) - low).sum())


def _dense_samples(path: Path) -> np.ndarray:
    """Return many C of all sizes."""
    return path.value_of(np.geomspace(path.lam[0], path.lam[-1], 64)[1:-1])


def _gap_of_shares(path: Path, C: float) -> float:
    """Return the gap that comes of what rows which share the coefficient of a point have more or less than it."""
    assert path.gram is not None
    error = path.share_error_at(C)
    if not error.any():
        return 0.0
    near = path.on_margin_at(C)
    return float(path.scale_at(C) * path.family.w[near] @ np.abs(path.gram.full()[near] @ error))


def _relative(gap: float, primal: float) -> float:
    if gap < OVERFLOW * float(primal):  # NumPy's numbers would warn where this is infinite
        return gap / primal
    return np.inf if gap > 0.0 else 0.0


def _promised(path: Path, options: Options, C: float) -> float:
    """Return the relative gap that an engine may leave at C.

    A violation of v at the breakpoint before costs v times the weight of all points, and more as lam falls.
    """
    violation = getattr(options, "violation", None)
    if violation is None:
        return EXACT
    before = path.C[max(int(np.searchsorted(path.C, C)) - 1, 0)]
    primal = path.certificate_at(C).primal
    return float(1.1 * violation * (C / before) * C * path.points.weight.sum() / primal) if primal > 0 else np.inf
