"""Samples of the rows of frames."""

import numpy as np
import pandas as pd
import pytest

from forerank.data.frame_sample import draw_rows, sample_size


def frames(n_frames=20, n=500):
    for k in range(n_frames):
        numbers = np.arange(k * n, (k + 1) * n)
        yield pd.DataFrame({"number": numbers, "group": numbers // 25})


def test_all_rows_in_their_order_where_they_fit():
    drawn = draw_rows(frames(), 10_000, 0)
    assert drawn["number"].tolist() == list(range(10_000))
    assert list(drawn.columns) == ["number", "group"]
    assert draw_rows([], 10, 0) is None
    assert draw_rows([pd.DataFrame({"a": []})], 10, 0) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_has_rows_of_all_frames(seed):
    drawn = draw_rows(frames(), 3_000, seed)
    assert 1_000 < len(drawn) <= 3_000
    # Shares of 20 frames: 6 standard deviations.
    counts = np.bincount(drawn["number"] // 500, minlength=20)
    expected = len(drawn) / 20
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)
    pd.testing.assert_frame_equal(drawn, draw_rows(frames(), 3_000, seed))


def test_groups_are_complete_and_one_stays():
    drawn = draw_rows(frames(), 3_000, 0, "group")
    assert 0 < len(drawn) <= 3_000
    assert (drawn["group"].value_counts() == 25).all()
    # A group in two frames, of which only the second has fractions and so another text for it.
    for shift in range(10):
        label = np.repeat([0.0, 1.0, 2.0, 2.0, 3.5, 4.0], 5) + shift
        parts = [pd.DataFrame({"group": label[:15]}), pd.DataFrame({"group": label[15:]})]
        counts = draw_rows(parts, 15, 0, "group")["group"].value_counts()
        assert all(n == np.sum(label == each) for each, n in counts.items())
    one = draw_rows((frame.assign(group="a") for frame in frames()), 100, 0, "group")
    assert len(one) == 10_000


def test_the_size_of_a_sample_follows_from_the_memory():
    head = pd.DataFrame({"a": np.zeros(1_000), "b": np.zeros(1_000)})
    assert sample_size(head, 10**5) == 1_000
    assert sample_size(head, 10**12) == 200_000
    per_row = head.memory_usage().sum() / 1_000
    assert sample_size(head, 10**7) == int(10**7 / 32 / per_row)
