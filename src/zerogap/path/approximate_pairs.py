"""Approximate paths of pairs of classes, whose kernel values come from a matrix that they share."""

from typing import Any

import numpy as np

from zerogap.duplicates import Distinct
from zerogap.path.approximate import ApproximatePath
from zerogap.path.engine import Options
from zerogap.path.family import Family
from zerogap.path.following import approximated
from zerogap.path.pairwise import PairPath, Shared


class ApproximatePairPath(ApproximatePath, PairPath):
    """The approximate path of two of several classes; the rows of the others have no weight in it."""

    @classmethod
    def within(
        cls, gap: float, shared: Shared, places: np.ndarray, points: Distinct, y: np.ndarray, C_min: float
    ) -> "ApproximatePairPath":
        """Return a path without a segment, of distinct points that have these places in the matrix of all classes."""
        family, gram = Family.hinge(y, points.weight), shared.part(places)
        path: Any = cls(family, points, np.zeros(y.size), 1.0 / C_min, gram, gap=gap)
        return path.of(shared, places)

    def follow(
        self,
        options: Options,
        C_max: float,
        *,
        max_events: int | None,
        share: float | None,
        verbose: bool,
        prove: bool = True,
    ) -> "ApproximatePairPath":
        """Go along the path to C_max, or as far as limits allow; ``status`` says which.  It is proved on its way."""
        approximated(lambda: self, C_max, None, verbose=verbose, share=share)
        return self

    def release(self) -> "ApproximatePairPath":
        """Keep what is read, and let go of the matrix."""
        super().release()
        self._front = None
        return self
