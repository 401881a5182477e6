"""Record files of comparisons, and the command."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import (
    PredefinedSplit,
)
from typer.testing import CliRunner

from comparisons import DUMMY, PAIRS, rows
from forerank import compare
from forerank.cli.app import app
from tables import table

# --- The record ---


def test_a_record_is_gone_on_with(tmp_path):
    X, y = rows()
    path, shares = tmp_path / "new" / "r.jsonl", []
    first = compare(X, y, [PAIRS], record=path, cv=3)
    lines = path.read_text().splitlines()
    assert [json.loads(line) for line in lines[1:]] == first.records
    again = compare(X, y, [PAIRS], record=path, cv=3, progress=shares.append)
    assert path.read_text().splitlines() == lines
    assert again.records == first.records
    assert shares == [1.0]
    # More methods and seeds add to it; asked for fewer, the others are left where they are.
    more = compare(X, y, [PAIRS, DUMMY], record=path, cv=3, seeds=2)
    assert len(path.read_text().splitlines()) == 1 + 12
    assert path.read_text().splitlines()[: len(lines)] == lines
    assert len(more.records) == 12
    assert compare(X, y, [DUMMY], record=path, cv=3).methods == ["DummyClassifier"]
    assert len(path.read_text().splitlines()) == 1 + 12


def test_a_torn_line_is_done_again(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"
    compare(X, y, [DUMMY], record=path, cv=3)
    whole = path.read_bytes()
    for torn in (whole[:-1], whole[:-30], whole[:20]):
        path.write_bytes(torn)
        found = compare(X, y, [DUMMY], record=path, cv=3)
        assert len(found.records) == 3
        lines = path.read_bytes().splitlines()
        assert len(lines) == 4
        assert all(json.loads(line) for line in lines)


def test_other_data_and_other_files_are_refused(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"
    compare(X, y, [DUMMY], record=path, cv=3)
    before = path.read_bytes()
    changed = X.copy()
    changed[0, 0] += 1
    flipped = y.copy()
    flipped[[np.argmin(y), np.argmax(y)]] = [1, 0]
    for data, options, words in (
        ((X[:150], y[:150]), {}, "rows = 200 in the file, 150 now"),
        ((changed, y), {}, "other values or labels"),
        ((sp.csr_matrix(X), y), {}, "other values or labels"),
        ((X, flipped), {}, "other values or labels"),
        ((X, y), {"metric": "ap"}, "metric = 'auc' in the file, 'ap' now"),
        ((X, y), {"cv": 4}, "folds = 3 in the file, 4 now"),
        ((X, y), {"cv": PredefinedSplit(np.arange(200) % 3)}, "other folds"),
        ((X, y), {"sample_weight": np.ones(200)}, "other values or labels"),
    ):
        with pytest.raises(ValueError, match=words):
            compare(*data, [DUMMY], record=path, **{"cv": 3} | options)
    with pytest.raises(ValueError, match="'DummyClassifier' with other parameters"):
        compare(
            X, y, {"DummyClassifier": DummyClassifier(strategy="stratified")}, record=path, cv=3
        )
    assert path.read_bytes() == before
    path.write_bytes(before + b"{broken\n")
    with pytest.raises(ValueError, match=r"r.jsonl, line 5: expected a JSON object"):
        compare(X, y, [DUMMY], record=path, cv=3)
    path.write_text("a,b\n1,2")
    with pytest.raises(ValueError, match="is not the record of a comparison"):
        compare(X, y, [DUMMY], record=path, cv=3)
    assert path.read_text() == "a,b\n1,2"


KILLED = """
import sys, time
import numpy as np
from sklearn.dummy import DummyClassifier
from forerank import compare
class Slow(DummyClassifier):
    def fit(self, X, y):
        time.sleep(0.05)
        print("fit", flush=True)
        return super().fit(X, y)
X = np.random.default_rng(0).standard_normal((200, 3))
print(len(compare(X, X[:, 0] > 0, {"slow": Slow()}, seeds=8, record=sys.argv[1]).records))
"""


def test_a_comparison_that_is_killed_redoes_nothing(tmp_path):
    path = tmp_path / "r.jsonl"
    words = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(12):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    kept = path.read_bytes()
    n_kept = kept.count(b"\n") - 1
    assert 11 <= n_kept < 40
    done = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert done.count("fit") == 40 - n_kept
    assert done[-1] == "40"
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])


class Interrupted(DummyClassifier):
    calls = 0

    def fit(self, X, y):
        Interrupted.calls += 1
        if Interrupted.calls == 3:
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_an_interrupt_leaves_the_record_whole(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"
    with pytest.raises(KeyboardInterrupt):
        compare(X, y, {"a": Interrupted()}, record=path)
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 3
    assert len(compare(X, y, {"a": Interrupted()}, record=path).records) == 5
    assert Interrupted.calls == 6


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_two_at_a_time_are_refused(tmp_path):
    X, y = rows()
    path = tmp_path / "r.jsonl"

    def other(share):
        with pytest.raises(ValueError, match="is being written by another comparison"):
            compare(X, y, [DUMMY], record=path)

    compare(X, y, [DUMMY], record=path, progress=other)


# --- The command ---


def run(*words, code=0):
    result = CliRunner().invoke(app, ["compare", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "t.csv"
    table(200).to_csv(path, index=False)
    return path


def test_the_command_prints_a_table_and_the_result(csv, tmp_path):
    record = tmp_path / "r.jsonl"
    words = (
        csv,
        "-t",
        "y",
        "-m",
        PAIRS,
        "-m",
        DUMMY,
        "--folds",
        3,
        "--seeds",
        2,
        "--record",
        record,
    )
    shown = run(*words).stdout
    for part in (
        "200 rows, 3 folds, 2 times",
        "DummyClassifier",
        "has the highest AUC",
        "left out id",
    ):
        assert part in shown
    assert len(record.read_text().splitlines()) == 13
    found = json.loads(run(*words, "--json").stdout)
    assert found["best"] == PAIRS
    assert len(found["records"]) == 12
    assert set(found["ranks"]) == {PAIRS, "DummyClassifier"}
    assert found["critical_difference"] == pytest.approx(1.96 * np.sqrt(6 / 36), abs=1e-3)
    quiet = run(*words, "--quiet")
    assert quiet.stderr == ""
    assert "left out" not in quiet.stdout
    assert "Examples" in run("--help").stdout


def test_the_command_says_in_one_line_what_is_wrong(csv, tmp_path):
    for words, said in (
        ((csv, "-t", "z", "-m", PAIRS), "z"),
        ((csv, "-m", PAIRS), "no target was given"),
        ((csv, "-t", "y", "-m", "Foo"), "There is no ranker"),
        ((csv, "-t", "y", "-m", PAIRS, "--metric", "f1"), "f1"),
        ((csv, "-t", "y", "-m", PAIRS, "--record", csv), "choose another output file"),
        ((csv, "-t", "y", "-m", PAIRS, "--jobs", 0), "--jobs 0"),
        ((tmp_path / "none.csv", "-t", "y"), "no such file"),
    ):
        result = run(*words, code=2)
        assert result.stdout == ""
        assert result.stderr.startswith("forerank: ")
        assert len(result.stderr.splitlines()) == 1
        assert said in result.stderr


def test_the_command_names_leaks_and_failures(tmp_path):
    frame = table(400)
    frame["outcome"] = np.where(frame["y"] == "yes", 5.0, 1.0) + np.arange(400) / 1000
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run(tmp_path / "t.csv", "-t", "y", "-m", DUMMY, "--folds", 2)
    assert "note: The column 'outcome' alone ranks the labels perfectly" in result.stderr
    failing = run(
        tmp_path / "t.csv",
        "-t",
        "y",
        "-m",
        "sklearn.svm.NuSVC(nu=1.0)",
        "--folds",
        2,
        "--drop",
        "outcome",
        code=1,
    )
    assert "Every fit failed" in failing.stdout
