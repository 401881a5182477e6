"""A random sample of the rows of a table that is read block by block as frames."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from forerank.data.group_labels import group_hashes, group_values

__all__ = ["draw_rows", "sample_size"]

# Most rows of a sample on which columns are prepared and methods chosen, and the fewest.
_MOST_ROWS, _FEWEST_ROWS = 200_000, 1_000
# Share of the memory for a sample, and the ratio of what is made of its rows to their own size.
_MEMORY_SHARE, _COPIES = 0.25, 8.0
# Name of the column of random numbers of a sample.
_RANDOM = "forerank random number"


def sample_size(head: Any, memory: int) -> int:
    """Number of rows of a sample: they and what is made of them take about a quarter of the memory,
    if all rows are as large as those of the frame `head`.
    """
    per_row = max(float(head.memory_usage(deep=True).sum()) / max(len(head), 1), 1.0)
    size = min(_MOST_ROWS, _MEMORY_SHARE * memory / (_COPIES * per_row))
    return int(max(size, _FEWEST_ROWS))


def draw_rows(frames: Iterable[Any], size: float, seed: int, group: str | None = None) -> Any:
    """A random sample of at most `size` rows of all frames, or None where there are no rows.

    With `group`, the name of a column, the sample has complete groups; one of them stays however
    large it is.
    """
    import pandas as pd

    rng, share, kept = np.random.default_rng(seed), 1.0, list[Any]()
    for frame in frames:
        u = rng.uniform(size=len(frame))
        if group is not None:
            u = group_hashes(group_values(frame[group])).astype(float) / 2.0**64
        chosen = u < share
        if chosen.any():
            kept.append(frame.assign(**{_RANDOM: u})[chosen])
        while sum(map(len, kept)) > size and any(_below(each, 0.5 * share).any() for each in kept):
            share *= 0.5
            kept = [each[_below(each, share)] for each in kept]
            kept = [each for each in kept if len(each)]
    return pd.concat(kept, ignore_index=True).drop(columns=_RANDOM) if kept else None


def _below(frame: Any, share: float) -> Any:
    return frame[_RANDOM] < share
