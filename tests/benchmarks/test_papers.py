"""The reproductions run from end to end in their quick form, on one data set."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALWAYS = ("What was run", "A quick run", "Verdicts", "Commit: ", "Machine: ")

pytestmark = pytest.mark.skipif(
    not os.environ.get("FORERANK_DATA") or not (ROOT / "benchmarks").is_dir(),
    reason="FORERANK_DATA is not set, or benchmarks/ is not part of this copy",
)


def run(paper, out, *arguments, package="benchmarks.papers", jobs=1):
    """A quick run; each further process would import everything once more."""
    options = ["--quick", "--out", out, "--jobs", jobs, *arguments]
    command = [sys.executable, "-m", f"{package}.{paper}", *map(str, options)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def page_of(paper, out, *arguments, **options):
    """The page that a quick run writes."""
    done = run(paper, out, *arguments, **options)
    assert done.returncode == 0, done.stderr
    return (out / f"{paper}.md").read_text()


def run_here(monkeypatch, paper, out, *arguments):
    """A run that does no task, in this process."""
    monkeypatch.syspath_prepend(str(ROOT))
    options = map(str, ["--quick", "--out", out, *arguments])
    monkeypatch.setattr(sys, "argv", [paper, *options])
    runpy.run_module(f"benchmarks.papers.{paper}", run_name="__main__")


def check_parts(page, out, parts, figures):
    assert [part for part in (*parts, *ALWAYS) if part not in page] == []
    for name in figures:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def recorded(out):
    return (out / "results.jsonl").read_text().splitlines()


def test_shen2013(tmp_path, monkeypatch):
    letter = ("--data", "letter")
    page = page_of("shen2013", tmp_path, *letter, jobs=2)
    parts = [f"Table {k}" for k in (2, 3, 4, 5)] + [f"Figure {k}" for k in (1, 2, 3)]
    parts += ["Verdicts", "Exact CRC", "Time against the number of rows", "real-sim"]
    check_parts(page, tmp_path, parts, ["figure1", "figure2", "figure3", "growth"])
    # Every method reaches the paper's AUC on this data set, also with one fold and two pools.
    assert "Cells more than 0.005 below the paper: none." in page
    assert "did not reach their tolerance: none" in page

    # A second run resumes: only the task with an incomplete line is done again.
    lines = recorded(tmp_path)
    (tmp_path / "record.jsonl.gz").unlink()
    (tmp_path / "results.jsonl").write_text("\n".join([*lines[:-1], lines[-1][:100]]))
    assert page_of("shen2013", tmp_path, *letter) == page
    assert recorded(tmp_path) == lines

    # The packed record is all that a page needs.
    (tmp_path / "results.jsonl").unlink()
    (tmp_path / "figure1.png").unlink()
    (tmp_path / "shen2013.md").unlink()
    run_here(monkeypatch, "shen2013", tmp_path, "--page-only")
    assert (tmp_path / "shen2013.md").read_text() == page
    assert recorded(tmp_path) == lines
    check_parts(page, tmp_path, [], ["figure1"])

    with pytest.raises(SystemExit, match="the record of another benchmark"):
        run_here(monkeypatch, "shen2013", tmp_path, *letter, "--pools", 3)


def test_li2014(tmp_path):
    page = page_of("li2014", tmp_path, "--data", "diabetes")
    parts = ["Table 1", "Table 2", "Figure 1", "Theorem 2", "best or tied", "2 folds", "real-sim"]
    parts += [f"| {who} |" for who in ("InfinitePush", "OWPC", "L1SVIP", "AATP")]
    parts += ["| TopPush | O(", "| TopPush, Algorithm 1 | O("]
    check_parts(page, tmp_path, parts, ["figure1"])
    assert "did not reach their tolerance: none" in page

    # More trials add to those that are recorded.
    lines = recorded(tmp_path)
    page_of("li2014", tmp_path, "--data", "diabetes", "--trials", 3)
    assert recorded(tmp_path)[: len(lines)] == lines
    assert len(recorded(tmp_path)) == len(lines) + 9


def test_raykar2007(tmp_path, monkeypatch):
    data = ("--data", "machine-cpu", "randnet 1000")
    page = page_of("raykar2007", tmp_path, *data)
    parts = [f"Table {k}" for k in (1, 2, 3, 4)] + [f"Figure {k}" for k in (1, 2, 3)]
    parts += ["RankSVM quadratic", "RankNCG, rbf kernel", "rounding errors of 2e-15: yes"]
    check_parts(page, tmp_path, parts, ["figure1", "figure2", "figure3"])
    assert "| NO |\n" not in page  # a bound that did not hold
    assert "within one published deviation or above, the columns alone | yes |" in page
    assert "Fits of the tables that did not reach their tolerance: none." in page
    lines = recorded(tmp_path)
    run_here(monkeypatch, "raykar2007", tmp_path, *data)
    assert recorded(tmp_path) == lines
    assert (tmp_path / "raykar2007.md").read_text() == page


def test_kotlowski2011(tmp_path, monkeypatch, capsys):
    haberman = ("--data", "haberman")
    page = page_of("kotlowski2011", tmp_path, *haberman)
    parts = ["Table 1", "Figure 1", "When do pairs pay?", "all-pairs squared hinge"]
    parts += ["regret against its bound"]
    check_parts(page, tmp_path, parts, ["figure1", "regrets", "study"])
    assert "| NO |\n" not in page  # a bound that did not hold
    assert "rank loss of logistic within 0.01 of the paper or below | yes |" in page
    assert "2 random models in each panel" in page
    assert "did not reach their tolerance: none" in page

    # Recorded tasks can be done again and compared.
    options = (*haberman, "--jobs", 1, "--check", 2)
    run_here(monkeypatch, "kotlowski2011", tmp_path, *options)
    assert "2 of 2 tasks agree to 0.001, 2 of them exactly." in capsys.readouterr().out
    settings, *lines = recorded(tmp_path)
    wrong = [re.sub(r": 0\.\d", ": 7.0", line) for line in lines]
    (tmp_path / "results.jsonl").write_text("\n".join([settings, *wrong]) + "\n")
    run_here(monkeypatch, "kotlowski2011", tmp_path, *haberman, "--jobs", 1, "--check", 1)
    assert "differs by" in capsys.readouterr().out


def test_donmez2009(tmp_path):
    page = page_of("donmez2009", tmp_path)
    parts = ["Table 1", "Table 2", "Figure 3", "LossMin", "Greedy would choose"]
    parts += ["Forms of LossMin", "pairs (eq. 5)", "LossMin, 2 thresholds", "Compiling functions"]
    check_parts(page, tmp_path, parts, ["figure3-mq2008"])


def test_reviews(tmp_path):
    page = page_of("reviews", tmp_path, package="benchmarks")
    methods = ["weighted SVM, greedy", "TopPush, diverse"]
    check_parts(page, tmp_path, [*methods, "When to stop", "Review by review"], ["recall"])


def test_stopping_on_reviews(tmp_path):
    done = run("stopping", tmp_path, package="benchmarks.reviews")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "stopping.md").read_text()
    parts = ["When to stop", "late readers", "Estimates of what is missing", "left out"]
    assert [part for part in (*parts, "A quick run", "Commit: ") if part not in page] == []
    assert (tmp_path / "stopping.png").read_bytes().startswith(b"\x89PNG")
