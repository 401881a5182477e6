"""Type aliases of the whole package."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Index", "Mask", "Matrix", "Queries", "Random", "Vector", "Weights"]

Vector: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
# An array or a CSR matrix, as scikit-learn's validate_data returns it.
Matrix: TypeAlias = Any
# A generator, or the seed of one, which is made where numbers are drawn: that takes 10 us.
Random: TypeAlias = np.random.Generator | int
# A group for each row; None where all rows are of one group.
Queries: TypeAlias = ArrayLike | Sequence[Hashable] | None
# A weight for each row; None where all are 1.
Weights: TypeAlias = ArrayLike | None
