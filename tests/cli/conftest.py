"""Fixtures of the tests of commands."""

import pytest

from commands import run
from tables import table


@pytest.fixture(scope="package")
def work(tmp_path_factory):
    """A directory with a table to fit, a table to rank, and a model."""
    directory = tmp_path_factory.mktemp("work")
    table(300).to_csv(directory / "train.csv", index=False)
    table(100, seed=1).to_csv(directory / "new.csv", index=False)
    fit = "--target y --ranker PairwiseRanker --alpha 0.01 -o"
    run("fit", directory / "train.csv", fit, directory / "m.forerank")
    return directory
