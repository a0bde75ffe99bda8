"""Kernel machines on a Dask cluster: the data stay where they are, only working sets travel, and the proof is the same.

It needs ``dask.distributed``: ``pip install "zerogap[dask]"``.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from zerogap.lazy_import import loader

for _needed in ("dask", "distributed"):
    if find_spec(_needed) is None:
        raise ImportError(
            f"zerogap.dask needs the package {_needed!r}, which is not installed. "
            'Run: pip install "zerogap[dask]", or pip install "dask[array,dataframe,distributed]".'
        )

if TYPE_CHECKING:
    from zerogap.dask.machines import SVC, SVR

__getattr__, __dir__ = loader(__name__, {"SVC": "machines", "SVR": "machines"})

__all__ = ["SVC", "SVR"]
