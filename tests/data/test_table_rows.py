"""Rows of a table that are made when they are needed are those of the transformer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from forerank.data import table_rows
from forerank.data.column_plan import plan_columns
from forerank.data.frames import as_frame
from forerank.data.table_rows import TableRows
from tables import dense, mixed_table


@pytest.mark.parametrize("form", ["plain", "additive"])
def test_matrix_blocks_and_stream_are_the_same_rows(form, monkeypatch):
    monkeypatch.setattr(table_rows, "_BLOCK_ROWS", 17)
    frame = as_frame(mixed_table())
    columns = plan_columns(frame).transformer(form).fit(frame)
    order = np.random.default_rng(0).permutation(len(frame))[:50]
    rows = TableRows(columns, frame, order)
    expected = dense(columns.transform_rows(frame, order))
    assert rows.shape == expected.shape
    assert_array_equal(dense(rows.matrix()), expected)
    single = rows.matrix(np.float32)
    assert single.dtype == np.float32
    assert_array_equal(dense(single), expected.astype(np.float32))
    parts = [(begin, end, dense(X)) for begin, end, X in rows.blocks()]
    assert [(begin, end) for begin, end, _ in parts] == [(0, 17), (17, 34), (34, 50)]
    assert_allclose(np.concatenate([X for *_, X in parts]), expected, rtol=1e-6, atol=1e-7)
    labels = np.arange(50) % 2
    with rows.stream(labels) as stream:
        blocks = list(stream.blocks())
        assert_array_equal(stream.classes, [0, 1])
    assert_allclose(np.concatenate([dense(b.X) for b in blocks]), expected, rtol=1e-6, atol=1e-7)
    assert_array_equal(np.concatenate([b.codes for b in blocks]), labels)


def test_the_estimated_size_is_that_of_the_matrix():
    frame = as_frame(mixed_table())
    columns = plan_columns(frame).transformer("trees").fit(frame)
    rows = TableRows(columns, frame, np.arange(len(frame)))
    assert rows.n_bytes == rows.matrix().nbytes
