"""The reproductions run from end to end in their quick form, on one data set."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

needs_data = pytest.mark.skipif(
    not os.environ.get("FORERANK_DATA") or not (ROOT / "benchmarks").is_dir(),
    reason="FORERANK_DATA is not set, or the benchmarks are not here",
)


def reproduce(paper, *arguments, package="benchmarks.papers"):
    return subprocess.run(
        [sys.executable, "-m", f"{package}.{paper}", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@needs_data
def test_shen2013(tmp_path):
    done = reproduce("shen2013", "--quick", "--data", "letter", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "shen2013.md").read_text()
    for part in (
        "Table 2",
        "Table 3",
        "Table 4",
        "Table 5",
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Commit",
    ):
        assert part in page
    # Every method reaches the paper's AUC on this data set, also with one fold and two pools.
    assert "Cells more than 0.005 below the paper: none." in page
    assert "did not reach their tolerance: none" in page
    for number in (1, 2, 3):
        assert (tmp_path / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")

    # A second run takes up what is there: only the record that an interruption cut short is made
    # again.
    results = tmp_path / "results.jsonl"
    lines = results.read_text().splitlines()
    results.write_text("\n".join([*lines[:-1], lines[-1][:100]]))
    again = reproduce("shen2013", "--quick", "--data", "letter", "--out", tmp_path)
    assert again.returncode == 0, again.stderr
    assert results.read_text().splitlines() == lines

    other = reproduce("shen2013", "--quick", "--data", "letter", "--out", tmp_path, "--pools", 3)
    assert other.returncode != 0
    assert "the record of another benchmark" in other.stderr


@needs_data
def test_li2014(tmp_path):
    done = reproduce("li2014", "--quick", "--data", "diabetes", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "li2014.md").read_text()
    for part in (
        "Table 1",
        "Table 2",
        "Figure 1",
        "InfinitePush",
        "AATP",
        "best or tied",
        "Commit",
    ):
        assert part in page
    assert "did not reach their tolerance: none" in page
    assert (tmp_path / "figure1.png").read_bytes().startswith(b"\x89PNG")

    # More trials add to those that are there.
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    again = reproduce("li2014", "--quick", "--data", "diabetes", "--out", tmp_path, "--trials", 3)
    assert again.returncode == 0, again.stderr
    longer = (tmp_path / "results.jsonl").read_text().splitlines()
    assert longer[: len(lines)] == lines
    assert len(longer) == len(lines) + 7


@needs_data
def test_raykar2007(tmp_path):
    done = reproduce(
        "raykar2007", "--quick", "--data", "machine-cpu", "randnet 1000", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "raykar2007.md").read_text()
    for part in (
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 4",
        "Figure 2",
        "Figure 3",
        "RankSVM quadratic",
        "Commit",
    ):
        assert part in page
    assert (
        "the columns alone: RankNCG fast within one published deviation or above on 1 of 1 real "
        "sets" in page
    )
    assert "Fits of the tables that did not reach their tolerance: none." in page
    for number in (2, 3):
        assert (tmp_path / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    again = reproduce(
        "raykar2007", "--quick", "--data", "machine-cpu", "randnet 1000", "--out", tmp_path
    )
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "results.jsonl").read_text().splitlines() == lines


@needs_data
def test_kotlowski2011(tmp_path):
    done = reproduce("kotlowski2011", "--quick", "--data", "haberman", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "kotlowski2011.md").read_text()
    for part in ("Table 1", "Figure 1", "When do pairs pay?", "all-pairs squared hinge", "Commit"):
        assert part in page
    assert "Table 1, logistic: within 0.01 of the paper or below on 1 of 1 sets." in page
    assert "did not reach their tolerance: none" in page
    for name in ("figure1", "study"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@needs_data
def test_donmez2009(tmp_path):
    done = reproduce("donmez2009", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "donmez2009.md").read_text()
    for part in ("Table 1", "Table 2", "Figure 3", "LossMin", "Greedy would choose", "Commit"):
        assert part in page
    assert (tmp_path / "figure3-mq2008.png").read_bytes().startswith(b"\x89PNG")


@needs_data
def test_reviews(tmp_path):
    done = reproduce("reviews", "--quick", "--out", tmp_path, package="benchmarks")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reviews.md").read_text()
    for part in (
        "weighted SVM, greedy",
        "TopPush, diverse",
        "When to stop",
        "Review by review",
        "Commit",
    ):
        assert part in page
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")
