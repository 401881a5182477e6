"""AATPRanker: the search for the anchor."""

import numpy as np

from forerank import (
    AATPRanker,
)
from top_rows import data


def test_aatp_over_all_rows_is_no_worse_than_its_search():
    X, y = data(n=60)
    auto, every = (
        AATPRanker(0.2, alpha=0.1, anchors=anchors).fit(X, y) for anchors in ("auto", "all")
    )
    loss = {}
    for name, ranker in (("auto", auto), ("all", every)):
        scores = X @ ranker.coef_[0]
        cut = np.sort(scores)[::-1][int(np.ceil(0.2 * 60)) - 1]
        margin = np.where(y == 1, scores - cut, cut - scores)
        loss[name] = np.maximum(0.0, 1.0 - margin).mean() + 0.05 * np.sum(ranker.coef_**2)
    assert loss["all"] <= loss["auto"] + 1e-3
    assert 0 <= auto.anchor_ < 60
