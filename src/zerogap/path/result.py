"""Path: breakpoints, events, and on every segment the coefficients of the elbow, from which the rest follows."""

import hashlib
from bisect import bisect_left
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from zerogap import validation
from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.path.engine import Counts, Segment, Transition
from zerogap.path.family import Family
from zerogap.path.proof import LargestGap
from zerogap.path.reading import Readable
from zerogap.path.store import Segments
from zerogap.storage import kind_of, read_arrays, write_arrays
from zerogap.wording import count

LOADED = 1e-6  # relative gap above which a path that was loaded cannot be one of the kernel matrix it is given
OF_ESTIMATORS = "SVCPath, SVRPath and OneClassSVMPath have it, with the same options: their path_ is such a path."
SAME_SIZE = 1e-12  # of all weight: sums of |b| that differ by rounding only


class Path(Readable):
    """The solution for every C from ``C[0]`` to ``C[-1]``.

    On the segment between two breakpoints the scaled coefficients lam beta, lam = 1/C, are linear in lam: those of the elbow
    are u + lam v, those of the left are at their caps, those of the right zero.  Only u and v of the elbow are kept, and the
    changes of sets.  Made by :func:`zerogap.svm_path`.

    Attributes
    ----------
    C : array of shape (k,)
        Breakpoints, ascending: both ends, the C of events, and those where a bias that is not unique has a kink.
    lam : array of shape (k,)
        1 / C.
    status : str
        "complete", "max_events", "max_time" or "interrupted".
    events : list of Event
        Changes of sets, in the order of C.
    n_events : int
        Their number.
    n_free : array of shape (k,)
        Points in the elbow on the segment that begins at each breakpoint; the last is repeated.
    largest_gap_ : float
        The largest relative duality gap over every C, in closed form.
    largest_gap_as_read_ : float
        A bound on that of coefficients as they are read, with their rounding.
    n_backups : int
        How often the engine had to solve anew by SMO.
    counts : Counts
        What the engine counted on its way.
    points : Distinct
        The distinct points of the data, and their rows.
    y : array of shape (m,)
        Their labels, -1 or +1.
    gram : Gram or None
        Their kernel matrix; None if the path was loaded without it.

    Examples
    --------
    >>> from zerogap import datasets, svm_path
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> path = svm_path(X, y, C_min=0.1, C_max=10.0)
    >>> bool(abs(path.coefficients_at(2.0).sum()) < 1e-12)
    True
    >>> bool(path.certificate_at(2.0).relative_gap < 1e-9)
    True
    """

    def __len__(self) -> int:
        return self.lam.size

    def __repr__(self) -> str:
        proved = "" if self.n_unproved or not self._segments else f"; largest relative gap {self.proved.gap:.1e}"
        ends = self.value_of(self.lam[[0, -1]])
        return (
            f"{type(self).__name__}({self.status}: {self.parameter} from {ends[0]:g} to {ends[1]:g}, "
            f"{count(self.lam.size, 'breakpoint')}, "
            f"{count(self.n_events, 'event')}, at most {self.n_free.max() if self._segments else 0} of "
            f"{count(self.points.rows.size)} distinct points on the margin{proved})"
        )

    def plot(self, show: str = "all", *, rows: Any = None, ax: Any = None) -> Any:
        """Draw the path: the trajectories of coefficients, the sets of points as bands, the size of the elbow.

        Coefficients are drawn as shares of C, so that those at the cap are at one, or at their weights.

        Parameters
        ----------
        show : str, default "all"
            "coefficients", "sets", "elbow", or all three one below another.
        rows : array of int, optional
            Rows of the data whose coefficients are drawn; by default the 150 that move most.
        ax : matplotlib axes, optional
            Where to draw, three of them for all; by default in a new figure.

        Returns
        -------
        matplotlib axes, or array of three
            The drawing.
        """
        from zerogap.plots import plot_path

        return plot_path(self, show, rows=rows, ax=ax)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Tell where models are: a path has coefficients."""
            if name in ("at", "predict", "decision_function", "score_curve"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. {OF_ESTIMATORS}")
            return self.__getattribute__(name)  # says again what is wrong

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_path

        return of_path(self)

    def explore(
        self, file: str | File | None = None, *, curve: Any = None, labels: Any = None, feature_names: Any = None,
        title: str | None = None,
    ) -> Any:  # fmt: skip
        """Show the solution at every C, epsilon or nu: a page with a slider, or without a file a widget in a notebook.

        Parameters
        ----------
        file : str or path, optional
            The page to write, such as "page.html"; it needs nothing else, and no network.  Without it a widget is returned.
        curve : ScoreCurve or ErrorCurve, optional
            The score on held-out data, drawn with its best intervals.
        labels : tuple of str, optional
            Names of the negative and of the positive class.
        feature_names : list of str, optional
            Names of the features.
        title : str, optional
            Title of the page.

        Returns
        -------
        pathlib.Path or widget
            The file; or the widget, whose ``C`` is the one under the slider, or whose ``epsilon`` or ``nu``.
        """
        from zerogap.explorer.page import of_paths, shown

        negative, positive = labels or ("class -1", "class +1")
        names = [(str(negative), str(positive))]
        return shown(of_paths([self], names, curve=curve, feature_names=feature_names, title=title), file)

    # Storing.

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the Gram matrix as arrays: what changes at each event, and the elbow of each segment.

        Returns
        -------
        dict of str to array
            What ``from_dict`` takes.
        """
        edges, elbow, u, v, numbers = self._segments.stack()
        return {
            "kind": self.kind, "fit_intercept": self.fit_intercept,
            "y": self.y, "rows": self.points.rows, "group": self.points.group, "weight": self.points.weight,
            "centre_products": self.centre_products,
            "squared_centre": self.squared_centre, "share": self.points.share, "norm": self.norm,
            "start": self.start, "lam": self.lam, "status": self.status, "sizes": np.diff(edges),
            "elbow": elbow, "u": u, "v": v, "u0": numbers[:, 0], "v0": numbers[:, 1], "origin": numbers[:, 2],
            "before": np.array(self._before, dtype=np.int64), **asdict(self.counts),
            "proved": len(self._segments) - self.n_unproved, "largest_gap": self.proved.gap,
            "largest_gap_C": self.proved.C,
            "reached": np.zeros(0) if self.reached is None else self.reached, "digest": self.digest or digest_of(self.X),
            "event_lam": np.array([t.lam for t in self._transitions]),
            "event": np.array([t[1:] for t in self._transitions], dtype=np.int64).reshape(-1, 3),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: dict[str, Any], gram: Gram | None = None) -> "Path":
        """Return the path that ``to_dict`` described.

        Parameters
        ----------
        data : dict
            What ``to_dict`` returned.
        gram : Gram, optional
            Kernel matrix of the distinct points; without it nothing can be certified.

        Returns
        -------
        Path
            The same path.
        """
        kind = str(data.get("kind", "path"))  # paths of two classes were stored without it
        if kind != cls.kind:
            raise ValueError(f"These are the arrays of a {kind}; a {cls.kind} was asked for.")
        points = Distinct(*(np.asarray(data[name]) for name in ("rows", "group", "weight", "share")))
        path = cls._bare(data, points, gram)
        path.lam, path.centre_products = np.asarray(data["lam"]), np.asarray(data["centre_products"])
        path.squared_centre, path._norm = float(data["squared_centre"]), np.asarray(data["norm"])
        path.counts = Counts(**{name: type(value)(data[name]) for name, value in asdict(Counts()).items()})
        edges = np.concatenate([[0], np.cumsum(data["sizes"])])
        parts = [slice(a, b) for a, b in pairwise(edges)]
        elbow, u, v = (np.asarray(data[name]) for name in ("elbow", "u", "v"))
        path._segments = Segments(
            Segment(elbow[s], u[s], v[s], *(float(value) for value in rest))
            for s, *rest in zip(parts, *(np.asarray(data[name]) for name in ("u0", "v0", "origin")), strict=True)
        )
        path._before = [int(k) for k in np.asarray(data["before"])]
        path._transitions = [
            Transition(float(lam), *(int(k) for k in row))
            for lam, row in zip(np.asarray(data["event_lam"]), np.asarray(data["event"]), strict=True)
        ]
        path._proved = int(data["proved"])
        path._largest = LargestGap(float(data["largest_gap"]), float(data["largest_gap_C"]))
        path.reached = np.asarray(data["reached"]) if np.size(data["reached"]) else None
        path.digest = str(data["digest"])
        return path.seal(str(data["status"]))

    @classmethod
    def _bare(cls, data: dict[str, Any], points: Distinct, gram: Gram | None) -> "Path":
        """Return the path without its segments."""
        family = Family.hinge(np.asarray(data["y"]), points.weight, has_bias=is_bias_free(data))
        return cls(family, points, np.asarray(data["start"]), 1.0, gram)

    def save(self, file: str | File) -> None:
        """Write the path to a compressed NumPy file, which ``Path.load`` reads.

        Parameters
        ----------
        file : str or path
            Its name; ".npz" is added if that is missing.
        """
        write_arrays(file, self.to_dict(), self.kind)

    @classmethod
    def load(cls, file: str | File, gram: Gram | None = None) -> "Path":
        """Read a path that ``save`` wrote: ``Path.load`` one of any kind, other classes one of their own.

        Parameters
        ----------
        file : str or path
            Its name.
        gram : Gram, optional
            Kernel matrix of the distinct points, the rows ``X[path.points.rows]``; without it nothing can be certified.

        Returns
        -------
        Path
            The same path.
        """
        kind = cls._kind_in(file)
        data = read_arrays(file, kind.kind)
        n = len(data["y"])
        if gram is not None and (not isinstance(gram, Gram) or gram.n != n):
            found = f"that of {gram.n}" if isinstance(gram, Gram) else type(gram).__name__
            raise ValueError(
                f"gram must be the Gram of the {n} distinct points, Gram(X[path.points.rows], kernel); got {found}."
            )
        path = kind.from_dict(data, gram)
        if gram is not None:
            path._check_gram()
        return path

    @classmethod
    def _kind_in(cls, file: str | File) -> type["Path"]:
        """Return the class that wrote a file, if it is one of these; else this one, which will say so."""
        if cls is not Path:
            return cls
        kinds = {one.kind: one for one in cls.__subclasses__() if one.kind != cls.kind}
        return kinds.get(kind_of(file), cls)

    def _check_gram(self) -> None:
        """Refuse a kernel matrix with which the path is not what it was proved to be."""
        if self.has_segments and not self.is_optimal_at_end():
            raise ValueError(
                "With this gram the path is not optimal: it was made with other points, in another order, or with another "
                "kernel. It takes Gram(X[path.points.rows], kernel)."
            )

    def is_optimal_at_end(self) -> bool:
        """Whether the gap where the path ends is what it was proved to be, but for rounding."""
        end = self.value_of(self.lam[-1])
        return self.relative_gap(self.certificate_at(end), end) <= max(LOADED, 10.0 * self.proved.gap)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the engine and the proof, which hold views of arrays that a copy would not be; both can be begun anew."""
        proved = len(self._segments) - self.n_unproved
        left_out = {"engine": None, "_proof": None, "_first_product": None}
        return {**self.__dict__, "_proved": proved, "_largest": self.proved, **left_out}

    # The share nu of a nu-SVC in place of C.

    def C_of_nu(self, nu: float) -> float:
        """Return the C at which the SVM is the nu-SVC of a given nu.

        nu is sum |beta| / (C sum w), an upper bound on the share of points within the margin and a lower one on that of support
        vectors.  It falls as C grows, on a segment on a straight line in 1/C: so one equation tells the C.

        Parameters
        ----------
        nu : float
            Above 0 and at most 2 min(W+, W-) / (W+ + W-), W+ and W- being the weights of the classes; 1 with a fixed bias.

        Returns
        -------
        float
            Where nu stays the same from a C to a larger one, as it does while points of one class only are on their margins,
            the smallest of these; at the largest nu of all, where they begin at zero, the C at which the path begins.

        Raises
        ------
        ValueError
            If no C has this nu, or none that the path has come to; it says which C would have it.
        """
        return 1.0 / self._lam_of_nu(nu)[0]

    def _lam_of_nu(self, nu: float) -> tuple[float, float]:
        """Return the largest and the smallest lam at which sum |b| is a share nu of all weight."""
        self.check_not_empty()
        nu, total, last = validation.check_nu(nu), float(self.points.weight.sum()), len(self._segments)
        wanted, slack = nu * total, SAME_SIZE * total

        def size(k: int) -> float:
            return self._size_on(min(k, last - 1), self.lam[k])

        if wanted > size(0) + slack:
            raise ValueError(self._nu_too_large(nu, size(0) / total))
        if wanted < size(last) - slack:
            raise ValueError(self._nu_too_small(nu, size(last) / total))
        first = bisect_left(range(last + 1), True, key=lambda k: size(k) <= wanted + slack)
        beyond = bisect_left(range(last + 1), True, key=lambda k: size(k) < wanted - slack)
        begin = self._lam_of_size(first - 1, wanted) if first > 0 else float(self.lam[0])
        end = self._lam_of_size(beyond - 1, wanted) if beyond <= last else float(self.lam[last])
        return begin, min(begin, end)

    def _size_on(self, k: int, lam: float) -> float:
        """Return sum |b| at lam by the lines of segment k."""
        segment, sets = self._segments[k], self.sets_at(k)
        a = np.abs(self.family.at_rest(sets))
        a[segment.points] = self._sides_on(k, sets) * segment.coefficients(lam)
        return float(a.sum())

    def _sides_on(self, k: int, sets: np.ndarray | None = None) -> np.ndarray:
        """Return the signs of the coefficients of segment k."""
        points, sets = self._segments[k].points, self.sets_at(k) if sets is None else sets
        return np.where(sets[points] < 0, -self.y[points], self.y[points])

    def _lam_of_size(self, k: int, size: float) -> float:
        """Return the lam of segment k at which sum |b| comes to this: its end, where it is flat and a jump follows."""
        segment, begin, end = self._segments[k], self.lam[k], self.lam[k + 1]
        low, high = sorted((self._size_on(k, begin), self._size_on(k, end)))
        slope = float(self._sides_on(k) @ segment.v)
        is_flat = high - low <= SAME_SIZE * float(self.family.w.sum())
        if slope == 0.0 or (is_flat and not low <= size <= high):
            return float(end)
        lam = segment.anchor + (size - self._size_on(k, segment.anchor)) / slope
        return float(np.clip(lam, end, begin))

    def _nu_too_large(self, nu: float, largest: float) -> str:
        weight = self.points.weight
        lighter = min(float(weight[self.y > 0].sum()), float(weight[self.y < 0].sum()))
        of_classes = 2.0 * lighter / float(weight.sum()) if self.fit_intercept else 1.0
        if nu > of_classes * (1.0 + SAME_SIZE):
            return (
                f"specified nu is infeasible: it is at most {of_classes:g}, twice the share of the lighter class; got "
                f"nu={nu:g}. Choose a smaller one, or weights with which the classes weigh the same."
            )
        return (
            f"This path begins at C={self.C[0]:g}, where nu is {largest:g}; nu={nu:g} is that of a smaller C. Follow it from "
            "a smaller C_min."
        )

    def _nu_too_small(self, nu: float, least: float) -> str:
        C = self._C_beyond(nu)
        ends = f"nu={nu:g} is that of a C beyond the end of this path, C={self.C[-1]:g}, where nu is {least:g}. "
        if C is None:
            return (
                f"{ends}As its last segment goes nu stays above {self._size_on(-1, 0.0) / self.points.weight.sum():g} however "
                "large C is, and where classes overlap some nu are never reached. Choose a larger nu, or see if events to come "
                "change that: go on with svm_path(..., resume=path) to a larger C_max."
            )
        is_hard = self._size_on(-1, 0.0) <= SAME_SIZE * float(self.points.weight.sum())
        how = "nu falls as 1/C from there on" if is_hard else "if no further point changes sets"
        return f"{ends}It is reached at C={C:g} ({how}): go on with svm_path(..., resume=path, C_max={1.01 * C:.3g})."

    def _C_beyond(self, nu: float) -> float | None:
        """Return the C beyond the end at which the last segment, if it went on, would have this nu; None if it never has."""
        segment = self._segments[-1]
        slope = float(self.y[segment.points] @ segment.v)
        missing = nu * float(self.points.weight.sum()) - max(self._size_on(-1, 0.0), 0.0)
        return slope / missing if missing > SAME_SIZE * slope * float(self.lam[-1]) else None


def is_bias_free(data: dict[str, Any]) -> bool:
    """Whether the arrays are those of a path with a free bias; older ones do not say so, and all are."""
    return bool(data.get("fit_intercept", True))


def digest_of(X: Any) -> str:
    """Return a few bytes that tell points from others; sparse and dense form give the same."""
    if X is None:
        return ""
    rows = X.toarray() if sp.issparse(X) else np.ascontiguousarray(X)
    return hashlib.blake2b((rows + 0.0).tobytes(), digest_size=16).hexdigest()
