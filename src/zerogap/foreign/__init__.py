"""Anyone's fitted support vector machine: how far from optimal it is, and the exact one."""

from typing import TYPE_CHECKING

from zerogap.lazy_import import loader

if TYPE_CHECKING:
    from zerogap.foreign.certifying import certify
    from zerogap.foreign.full import FullCertificate, certify_full
    from zerogap.foreign.polishing import polish
    from zerogap.foreign.report import ModelCertificate

__getattr__, __dir__ = loader(
    __name__,
    {
        "FullCertificate": "full",
        "ModelCertificate": "report",
        "certify": "certifying",
        "certify_full": "full",
        "polish": "polishing",
    },
)

__all__ = ["FullCertificate", "ModelCertificate", "certify", "certify_full", "polish"]
