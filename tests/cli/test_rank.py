"""The command rank: ranked lists in files, pipes and terminals, with probabilities."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from commands import fails, run
from forerank.models import load_model


def test_list_in_a_file_and_in_a_pipe(tmp_path, work):
    model, new, out = work / "m.forerank", work / "new.csv", tmp_path / "ranked.csv"
    result = run("rank", model, new, "-o", out)
    assert result.stdout == ""
    assert "100 of 100 rows written" in result.stderr
    assert "not used by the model: id, y" in result.stderr
    piped = run("rank", model, "- --quiet", given=new.read_bytes())
    assert piped.stdout_bytes == out.read_bytes()
    assert piped.stderr == ""
    assert out.read_text().startswith(run("rank", model, new, "--top 3 -q").stdout)
    summary = json.loads(run("rank", model, new, "--force --json -o", out).stdout)
    assert (summary["rows"], summary["written"], summary["unused"]) == (100, 100, ["id", "y"])
    assert summary["strangers"] == summary["unknown_values"] == []


def test_names_that_are_taken_are_said(tmp_path, work):
    frame = pd.read_csv(work / "new.csv").assign(score=1.0)
    frame.to_csv(tmp_path / "new.csv", index=False)
    printed = run("rank", work / "m.forerank", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    expected = "a column called score: those that are added are called forerank_score, forerank"
    assert expected in " ".join(printed.stderr.split())
    assert pd.read_csv(tmp_path / "out.csv").columns[-1] == "forerank_rank"


def test_probabilities(tmp_path, work):
    model, same, toml = (tmp_path / name for name in ("m.forerank", "same.forerank", "p.toml"))
    new = work / "new.csv"
    without = fails("rank", work / "m.forerank", new, "--probability")
    assert "has no probabilities; fit it with 'forerank fit ... --calibrate'" in without
    fit = ["fit", work / "train.csv", "-t y --drop note --check 0 -q"]
    assert "Ranker has it" in fails(*fit, "-o", model, "--ranker TopPush --calibrate")
    run(*fit, "-o", model, "--calibrate")
    toml.write_text("calibrate = true\n")
    run(*fit, "-o", same, "--params", toml)
    frame = pd.read_csv(new, parse_dates=["seen"])
    expected = load_model(model).estimator.predict_proba(frame)[:, 1]
    assert_allclose(load_model(same).estimator.predict_proba(frame)[:, 1], expected)
    for out, read in (("list.csv", pd.read_csv), ("list.parquet", pd.read_parquet)):
        run("rank", model, new, "--probability -o", tmp_path / out)
        ranked = read(tmp_path / out)
        assert list(ranked.columns[-3:]) == ["score", "probability", "rank"]
        assert_allclose(ranked["probability"], np.sort(expected)[::-1], rtol=1e-9)
        assert (ranked["rank"].diff().dropna() >= 0).all()
    assert "probability" not in run("rank", model, new, "-q").stdout
    run("export", model, "-o", tmp_path / "m.onnx")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_digits_of_scores_in_a_terminal_and_in_a_pipe(work):
    import pty

    words = ["rank", work / "m.forerank", work / "new.csv", "--top", "1", "-q"]
    command = [sys.executable, "-m", "forerank", *map(str, words)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs):
        os.close(theirs)
        shown = os.read(ours, 10_000).decode()
        with suppress(OSError):  # the terminal is closed
            while part := os.read(ours, 10_000).decode():
                shown += part
    os.close(ours)
    piped = run(*words).stdout
    score, on_screen = (text.strip().split(",")[-2] for text in (piped, shown))
    assert on_screen == f"{float(score):.6g}"
    assert len(score) > len(on_screen)


def test_file_without_rows(work):
    header = (work / "new.csv").read_text().splitlines()[0]
    result = run("rank", work / "m.forerank", "-", given=header + "\n")
    assert result.stdout == header + ",score,rank\n"
    assert "0 of 0 rows written" in result.stderr


def test_unusable_files_and_options(tmp_path, work):
    model, new = work / "m.forerank", work / "new.csv"
    missing = fails("rank", model, "-", given="id,age\n1,2\n")
    assert missing.endswith("(--allow-missing)")
    assert "does not exist" in fails("rank", tmp_path / "no.forerank", new)
    assert "not a forerank model file" in fails("rank", new, new)
    assert "write the list to a file" in fails("rank", model, new, "--json")
    ragged = fails("rank", model, "-", given="id,age,job,seen,note,city\n1,2\n")
    assert "standard input, line 2" in ragged
    assert "choose another output file" in fails("rank", model, new, "--force -o", model)
    assert list(tmp_path.iterdir()) == []
