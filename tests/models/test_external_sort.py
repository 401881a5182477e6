"""The external merge sort is a stable sort by score, also with little memory."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from forerank.models.external_sort import ExternalSorter


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    levels=st.integers(1, 30),
    n_groups=st.integers(0, 4),
    top=st.one_of(st.none(), st.integers(1, 30)),
    memory=st.sampled_from([1, 400, 1 << 30]),
    seed=st.integers(0, 1000),
)
def test_stable_sort_with_any_memory(tmp_path_factory, sizes, levels, n_groups, top, memory, seed):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    score = rng.integers(0, levels, n).astype(float)
    group = rng.integers(0, n_groups, n) if n_groups else None
    sorter = ExternalSorter(top, memory=memory, directory=tmp_path_factory.mktemp("runs"), batch=7)
    begin = 0
    for size in sizes:
        part = slice(begin, begin + size)
        sorter.add(
            pa.table({"row": np.arange(n)[part]}),
            score[part],
            None if group is None else group[part].astype(np.int64),
        )
        begin += size
    parts = list(sorter.sorted())
    order = np.lexsort((np.arange(n), -score, np.zeros(n) if group is None else group))
    numbers = np.zeros(n, dtype=int) if group is None else group
    ranks = np.array([1 + np.sum((score > score[i]) & (numbers == numbers[i])) for i in order])
    if top is not None:
        place = np.array([np.sum(numbers[order[:k]] == numbers[order[k]]) for k in range(n)])
        order, ranks = order[place < top], ranks[place < top]
    assert_array_equal(np.concatenate([part.table["row"].to_numpy() for part in parts]), order)
    assert_array_equal(np.concatenate([part.score for part in parts]), score[order])
    assert_array_equal(np.concatenate([part.rank for part in parts]), ranks)
