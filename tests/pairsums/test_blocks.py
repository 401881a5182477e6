import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import oracles
from forerank.objectives import AllPairs
from forerank.pairsums import PairBlocks
from pair_problems import SETTINGS, problems


class TestBlocks:
    @SETTINGS
    @given(problem=problems(graded=True))
    def test_every_pair_stands_in_one_block(self, problem):
        _, w, grade, group, _ = problem
        blocks = PairBlocks.build(grade, weight=w, group=group)
        found = []
        for b in range(blocks.n_blocks):
            lower = blocks.rows[blocks.start[b] : blocks.split[b]]
            upper = blocks.rows[blocks.split[b] : blocks.start[b + 1]]
            found += [(int(i), int(j)) for i in upper for j in lower]
        expected = [
            (i, j) for i, j in oracles.pairs_of(grade, group, lambda a, b: a > b) if w[i] * w[j] > 0
        ]
        assert sorted(found) == sorted(expected)
        assert_allclose(blocks.total_weight, sum(w[i] * w[j] for i, j in expected))
        assert blocks.n_unpaired == grade.size - len({row for pair in expected for row in pair})

    def test_rows_stand_in_few_blocks(self):
        blocks = PairBlocks.build(np.arange(1000))
        assert np.bincount(blocks.rows).max() <= 10  # log2 of the number of grades

    @pytest.mark.parametrize(
        ("grade", "group"),
        [
            (np.arange(4000) % 2, None),
            (np.arange(4000) % 5, None),
            (np.arange(4000) % 2, np.arange(4000) // 8),
        ],
        ids=["two classes", "grades", "groups"],
    )
    def test_samples_are_unbiased(self, grade, group):
        rng = np.random.default_rng(7)
        s = rng.standard_normal(4000) + 0.5 * grade
        objective = AllPairs(grade, "squared_hinge", group=group)
        values = []
        for seed in range(200):
            rows, sampled = objective.sample(400, np.random.default_rng(seed))
            assert 200 <= rows.size <= 600
            values.append(sampled.at(s[rows]).value)
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - objective.at(s).value) < 4 * error

    def test_no_sample_where_little_is_saved(self):
        assert AllPairs(np.arange(100) % 2).sample(80, np.random.default_rng(0)) is None
