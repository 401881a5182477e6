"""The engine of the reproductions: records that go on elsewhere, and verdicts."""

import gzip
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="benchmarks/ is not part of this copy"
)
SETTINGS = {"quick": True, "folds": 2}


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def done(k):
    return [{"kind": "square", "k": k, "value": k**2 / 3}]


def never(k):
    raise AssertionError("a recorded task was run again")


def test_a_packed_record_goes_on_elsewhere(tmp_path):
    from benchmarks.papers.common import Results

    here, there = tmp_path / "here", tmp_path / "there"
    first = Results(here, SETTINGS)
    first.run([("square 1", done, 1), ("square 2", done, 2)])
    first.pack()
    there.mkdir()
    shutil.copy(here / "record.jsonl.gz", there)
    second = Results(there, SETTINGS)
    second.run([("square 1", never, 1), ("square 2", never, 2), ("square 3", done, 3)])
    second.pack()
    assert [record["k"] for record in second.select(kind="square")] == [1, 2, 3]
    assert second.found("k", [4, 3, 2]) == [3, 2]
    assert second.count("k", kind="square") == 3
    assert "3 units of work" in second.provenance()

    # What was done there is taken over here, beside what was done here in the meantime.
    first.run([("square 4", done, 4)])
    shutil.copy(there / "record.jsonl.gz", here)
    third = Results(here)
    assert third.settings == SETTINGS
    assert sorted(record["k"] for record in third.select()) == [1, 2, 3, 4]
    third.pack()
    content = (here / "record.jsonl.gz").read_bytes()
    third.pack()
    assert (here / "record.jsonl.gz").read_bytes() == content
    assert gzip.decompress(content) == (here / "results.jsonl").read_bytes()
    assert third.select(k=1)[0]["value"] == pytest.approx(1 / 3, rel=1e-5)


def test_other_settings_are_refused(tmp_path):
    from benchmarks.papers.common import Results

    Results(tmp_path, SETTINGS).pack()
    with pytest.raises(SystemExit, match="record of another benchmark"):
        Results(tmp_path, {**SETTINGS, "folds": 5})
    (tmp_path / "results.jsonl").unlink()
    with pytest.raises(SystemExit, match="record of another benchmark"):
        Results(tmp_path, {**SETTINGS, "folds": 5})
    with pytest.raises(SystemExit, match="has no record"):
        Results(tmp_path / "empty")


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        (True, "yes"),
        (False, "NO"),
        (None, "cannot be said"),
        ({}, "cannot be said"),
        ({"a": True}, "yes"),
        ({"a": True, "b": True}, "yes, on all 2"),
        ({"a": True, "b": False}, "on 1 of 2; NOT on b"),
        ({"a": False, "b": False}, "NO, on none of 2"),
        ({("a", "x"): True, ("a", "y"): False, ("b", "x"): True}, "on 2 of 3; NOT on a (y)"),
        (
            {(group, k): group == "a" for group in "abc" for k in "wxyz"[: 2 + 2 * (group == "c")]},
            "on 2 of 8; NOT on b (w, x); c (4 of 4)",
        ),
    ],
)
def test_verdicts(holds, verdict):
    from benchmarks.papers.pages import Claim

    assert Claim("Table 1", "it holds", "seen", holds).verdict == verdict


def test_numbers_of_pages():
    from benchmarks.papers.pages import compare_paired, slope, spread, table

    assert spread([0.25, 0.75], ".2f", zero=False) == ".50 ± .35"
    assert spread([]) == "-"
    assert slope([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]) == pytest.approx(2.0)
    assert str(slope([1.0], [2.0])) == "nan"
    assert compare_paired([1.0, 1.1, 1.2], [0.0, 0.0, 0.1], 0.1) == 1
    assert compare_paired([0.0, 0.0, 0.1], [1.0, 1.1, 1.2], 0.1) == -1
    assert compare_paired([1.0, 2.0], [0.0, 1.0], 0.1) == 0  # all differences are equal
    assert table(("a", "b"), [(1, 2)]).splitlines()[-1] == "| 1 | 2 |"
