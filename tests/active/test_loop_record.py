"""The record of a labelling loop: resumed, incomplete, of other data, changed."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from forerank.active import LabellingLoop, PoolRanker, RankingStable
from labelling import small_pool, start


def test_a_resumed_loop_has_every_label_and_its_batch(tmp_path):
    X, y = small_pool()
    record = tmp_path / "deep" / "labels.jsonl"
    loop = start(X, y, batch=3, record=record, stopping=RankingStable(1.0, 9))
    for _ in range(5):
        rows = loop.ask()
        loop.tell(rows, y[rows])
    asked = loop.ask()
    loop.tell(asked[:1], y[asked[:1]])
    again = LabellingLoop(X, batch=3, record=record, stopping=RankingStable(1.0, 9))
    assert_array_equal(again.labels, loop.labels)
    assert_array_equal(again.order, loop.order)
    assert again.steps == loop.steps
    assert again.random_state == loop.random_state == 0
    assert_array_equal(again.ask(), asked[1:])
    assert again.reading.agreement == loop.reading.agreement


def test_a_record_that_ends_anywhere_loses_at_most_its_last_line(tmp_path):
    X, y = small_pool(30)
    whole = tmp_path / "whole.jsonl"
    loop = start(X, y, batch=2, record=whole)
    for _ in range(3):
        rows = loop.ask()
        loop.tell(rows, y[rows])
    data = whole.read_bytes()
    ends = [k + 1 for k, byte in enumerate(data) if byte == ord("\n")]
    labels_after = []
    for end in ends:
        lines = [json.loads(line) for line in data[:end].splitlines()]
        labels_after.append(sum(len(line["rows"]) for line in lines[1:] if "labels" in line))
    for cut in range(ends[0], len(data), 3):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:cut])
        resumed = LabellingLoop(X, batch=2, record=path)
        assert (resumed.labels != -1).sum() == labels_after[sum(end <= cut for end in ends) - 1]
        rows = resumed.ask()
        resumed.tell(rows, y[rows])
        known = LabellingLoop(X, batch=2, record=path).labels
        assert_array_equal(known, resumed.labels)


def test_other_records_and_files_are_refused_and_kept(tmp_path):
    X, y = small_pool()
    record = tmp_path / "labels.jsonl"
    start(X, y, record=record)
    before = record.read_bytes()
    for other, options, what in (
        (X + 1, {}, "other values in X"),
        (X[:-1], {}, "rows = 120 in the file, 119 now"),
        (X, {"batch": 2}, "batch = 1 in the file, 2 now"),
        (X, {"strategy": "lossmin"}, "strategy = "),
        (X, {"ranker": PoolRanker(2.0)}, "ranker = "),
    ):
        with pytest.raises(ValueError, match=rf"record of another labelling loop \({what}"):
            LabellingLoop(other, record=record, **options)
    assert record.read_bytes() == before
    for text, message in (
        (b"title", "not the record of a labelling loop"),
        (b"title,abstract\n", "not the record of a labelling loop"),
        (b'{"a": 1}\n', "not the record of a labelling loop"),
        (before + b"\xff\xfe\n", "line 3: expected a JSON object"),
        (before + b'{"rows": [3], "labels": [7]}\n', "line 3: The label of row 3 is 7"),
        (before + b'{"what": 1}\n', "line 3: "),
    ):
        record.write_bytes(text)
        with pytest.raises(ValueError, match=message):
            LabellingLoop(X, record=record)
        assert record.read_bytes() == text


CHILD = """
import sys
import numpy as np
from forerank.active import LabellingLoop
X = np.random.default_rng(0).normal(size=(5000, 5))
loop = LabellingLoop(X, batch=2, record=sys.argv[1], random_state=0)
if not loop.steps:
    loop.tell([0, 1], [1, 0], seed=True)
while True:
    rows = loop.ask()
    loop.tell(rows, X[rows, 0] > 1)
    print(*rows, flush=True)
"""


def test_a_killed_loop_loses_nothing(tmp_path):
    record = tmp_path / "labels.jsonl"
    X = np.random.default_rng(0).normal(size=(5000, 5))
    acknowledged = []
    for lines in (1, 17):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, record], stdout=subprocess.PIPE, text=True
        ) as child:
            for _ in range(lines):
                acknowledged += [int(row) for row in child.stdout.readline().split()]
            os.kill(child.pid, signal.SIGKILL)
            acknowledged += [
                int(row) for line in child.stdout if line.endswith("\n") for row in line.split()
            ]
        loop = LabellingLoop(X, batch=2, record=record)
        assert np.isin(acknowledged, loop.order).all()
        assert_array_equal(loop.labels[loop.order], X[loop.order, 0] > 1)
        assert np.unique(loop.order).size == loop.order.size


def test_a_stopped_loop_is_stopped_when_resumed(tmp_path):
    X, y = small_pool()
    rule = RankingStable(0.5, patience=2)
    loop = start(X, y, batch=5, stopping=rule, record=tmp_path / "labels.jsonl")
    while (rows := loop.ask()).size:
        loop.tell(rows, y[rows])
    assert "rank correlation" in loop.stopped
    again = LabellingLoop(X, batch=5, stopping=rule, record=tmp_path / "labels.jsonl")
    assert again.stopped == loop.stopped
    assert again.ask().size == 0


def test_nothing_is_added_to_a_record_that_was_changed(tmp_path):
    X, _ = small_pool()
    path = tmp_path / "labels.jsonl"
    first = LabellingLoop(X, record=path, random_state=0)
    second = LabellingLoop(X, record=path)
    first.tell(0, 1)
    with pytest.raises(RuntimeError, match="was changed by another program or object"):
        second.tell(0, 0)
    assert second.labels[0] == -1
    assert LabellingLoop(X, record=path).labels[0] == 1
    path.unlink()
    with pytest.raises(RuntimeError, match="is gone"):
        first.tell(1, 1)
    assert not path.exists()


def test_other_groups_and_rows_are_refused(tmp_path):
    X, _ = small_pool(1000)
    qid = np.arange(1000) % 3
    path = tmp_path / "labels.jsonl"
    LabellingLoop(X, qid=qid, record=path, random_state=0)
    swapped = X.copy()
    swapped[[1, 2]] = swapped[[2, 1]]
    for rows, groups, what in (
        (X, qid[::-1], "other groups"),
        (X, None, "other groups"),
        (swapped, qid, "other values in X"),
    ):
        with pytest.raises(ValueError, match=what):
            LabellingLoop(rows, qid=groups, record=path)
    lists = LabellingLoop(X, qid=qid.tolist(), record=path)
    assert lists.random_state == 0


def test_the_same_script_may_be_run_again(tmp_path):
    X, y = small_pool()
    path = tmp_path / "labels.jsonl"
    for _ in range(2):
        loop = LabellingLoop(X, batch=3, record=path)
        loop.tell([0, 1], y[:2], seed=True)
        rows = loop.ask()
        loop.tell(rows, y[rows])
    assert len(loop.order) == 6
    with pytest.raises(ValueError, match="Row 119 is given as a seed"):
        loop.tell([0, 119], [y[0], 0], seed=True)


def test_a_failed_write_changes_nothing(tmp_path):
    X, y = small_pool()
    path = tmp_path / "labels.jsonl"
    loop = start(X, y, record=path, stopping=RankingStable(1.0, 9))
    loop.tell(loop.ask(), [0])
    rows = loop.ask()
    before = (loop.reading.agreement, loop.last_seconds)
    path.rename(tmp_path / "gone")
    with pytest.raises(RuntimeError, match="is gone"):
        loop.tell(rows, [0])
    assert (loop.reading.agreement, loop.last_seconds) == before
    (tmp_path / "gone").rename(path)
    loop.tell(rows, [0])
    path.unlink()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="is gone"):
            loop.ask()


def test_a_batch_of_unknown_rows_is_refused(tmp_path):
    X, _ = small_pool()
    path = tmp_path / "labels.jsonl"
    LabellingLoop(X, record=path)
    with path.open("a") as file:
        file.write('{"asked": [9999], "seconds": {}, "agreement": null}\n')
    with pytest.raises(ValueError, match="line 2: There is no row 9999"):
        LabellingLoop(X, record=path)
