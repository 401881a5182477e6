"""OWPCRanker."""

import numpy as np
import pytest

from forerank import (
    OWPCRanker,
)
from top_rows import data


def test_ordered_weights_as_numbers():
    X, y = data()
    n = int(np.sum(y == 0))
    by_name = OWPCRanker("harmonic", alpha=1e-2, tol=1e-5).fit(X, y)
    by_numbers = OWPCRanker(1.0 / np.arange(1, n + 1), alpha=1e-2, tol=1e-5).fit(X, y)
    assert by_name.objective_ == pytest.approx(by_numbers.objective_, rel=2e-5)
