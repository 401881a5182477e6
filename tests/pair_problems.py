"""Random scores, weights, groups and grades for the tests of sums over pairs."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

SETTINGS = settings(max_examples=60)


@st.composite
def problems(draw, graded=False):
    """Scores with many ties and pairs exactly on the margin, weights with zeros, groups, grades."""
    n = draw(st.integers(2, 25))
    score = st.integers(-8, 8).map(lambda k: k / 4)
    s = np.array(draw(st.lists(score, min_size=n, max_size=n)))
    w = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5]), min_size=n, max_size=n)))
    grade = np.array(draw(st.lists(st.integers(0, 9 if graded else 1), min_size=n, max_size=n)))
    group = (
        np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
        if draw(st.booleans())
        else None
    )
    return s, w, grade, group, np.cos(np.arange(n))
