"""X as products: scores X w and adjoints X^T g, whatever the storage."""

from forerank.design.base import (
    CSRDesign,
    Design,
    ExtraRowDesign,
    FortranDesign,
    make_design,
    summed_over_chunks,
)

__all__ = [
    "CSRDesign",
    "Design",
    "ExtraRowDesign",
    "FortranDesign",
    "make_design",
    "summed_over_chunks",
]
