"""X as products: scores X w and adjoints X^T g, for every storage."""

import scipy.sparse as sp

from forerank._typing import Matrix
from forerank.design.base import Design, sum_over_chunks
from forerank.design.csr import CSRDesign
from forerank.design.dense import DenseDesign, FortranDesign
from forerank.design.equal_rows import merge_equal_rows
from forerank.design.wrappers import ExtraRowDesign, InterceptDesign, standardise

__all__ = [
    "CSRDesign",
    "Design",
    "ExtraRowDesign",
    "make_design",
    "merge_equal_rows",
    "standardise",
    "sum_over_chunks",
]


def make_design(X: Matrix, *, intercept: bool = False) -> Design:
    """The design of an array or CSR matrix; with `intercept`, one more column of ones."""
    design: Design
    if sp.issparse(X):
        design = CSRDesign(X.data, X.indices, X.indptr, X.shape[1])
    elif X.flags.c_contiguous or not X.flags.f_contiguous:
        design = DenseDesign(X)
    else:
        design = FortranDesign(X)
    return InterceptDesign(design) if intercept else design
