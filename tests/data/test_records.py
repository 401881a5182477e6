"""Record files: lines are read back, an incomplete one is dropped, other work is refused."""

import json

import pytest

from forerank.data.records import RecordFile

SETTINGS = {"format": 1, "rows": 100, "data": "a1b2", "versions": {"numpy": "2.0"}}
OPTIONS = {"kind": "study", "hashes": {"data": "other values"}, "noted": ("versions",)}


def opened(path, **changed):
    return RecordFile(path, SETTINGS | changed, **OPTIONS)


def written(path, n=3):
    record = opened(path)
    for run in range(n):
        record.append({"run": run, "name": "übung\udc80", "value": 1 / 3})
    return path.read_bytes()


def test_lines_are_read_back(tmp_path):
    path = tmp_path / "deep" / "runs.jsonl"
    data = written(path)
    again = opened(path, rows=100, versions={"numpy": "3.0"})
    assert [line["run"] for line in again.lines] == [0, 1, 2]
    assert again.lines[0] == {"run": 0, "name": "übung\udc80", "value": 1 / 3}
    assert again.settings == SETTINGS
    assert path.read_bytes() == data
    again.append({"run": 3})
    assert again.parsed(lambda line: line["run"]) == [0, 1, 2]
    assert opened(path).parsed(lambda line: line["run"]) == [0, 1, 2, 3]
    assert [path] == list(path.parent.iterdir())


def test_settings_are_compared_as_json(tmp_path):
    path = tmp_path / "runs.jsonl"
    RecordFile(path, {"seeds": (1, 2), "by": {3: None}}, kind="study")
    assert RecordFile(path, {"seeds": (1, 2), "by": {3: None}}, kind="study").lines == []


def test_a_file_that_ends_anywhere_loses_only_the_incomplete_line(tmp_path):
    path = tmp_path / "runs.jsonl"
    data = written(path)
    for end in range(len(data) + 1):
        path.write_bytes(data[:end])
        record = opened(path)
        assert len(record.lines) == max(0, data[:end].count(b"\n") - 1)
        record.append({"run": 9})
        assert opened(path).lines == [*record.lines, {"run": 9}]


def test_lines_that_end_as_on_windows(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(written(path).replace(b"\n", b"\r\n"))
    assert len(opened(path).lines) == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": 99}, r"another study \(rows = 100 in the file, 99 now\)\. Use the same"),
        ({"rows": 99, "data": "c3"}, r"\(rows = 100 in the file, 99 now; other values\)"),
        ({"data": "c3"}, r"another study \(other values\)"),
        ({"more": True}, r"\(more = None in the file, True now\)"),
    ],
)
def test_other_settings_are_refused(tmp_path, changed, message):
    path = tmp_path / "runs.jsonl"
    data = written(path)[:-3]
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        opened(path, **changed)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "content", [b"title,abstract\n1,2\n", b"title", b'{"a": 1}\n', b"[1]\n", b"\n\n", b"\xff\xfe\n"]
)
def test_other_files_are_refused_and_kept(tmp_path, content):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"runs.jsonl is not the record of a study; choose"):
        opened(path)
    assert path.read_bytes() == content


def test_unusable_lines_are_named(tmp_path):
    path = tmp_path / "runs.jsonl"
    data = written(path)
    for line in (b"[1]", b"half a li", b"\xff", b""):
        path.write_bytes(data + line + b"\n" + data[data.find(b"\n") + 1 :])
        with pytest.raises(ValueError, match=r"runs.jsonl, line 5: expected a JSON object, found"):
            opened(path)
    path.write_bytes(data + b'{"value": "x"}\n')
    with pytest.raises(ValueError, match=r"line 5: the entry 'run' is missing\. Delete this line"):
        opened(path).parsed(lambda line: line["run"])
    with pytest.raises(
        ValueError, match=r"line 5: could not convert string to float: 'x'\. Delete"
    ):
        opened(path).parsed(lambda line: float(line["value"]))


def test_nothing_is_added_to_a_file_that_was_changed(tmp_path):
    path = tmp_path / "runs.jsonl"
    first, second = opened(path), opened(path)
    first.append({"run": 0})
    with pytest.raises(RuntimeError, match="was changed by another program or object"):
        second.append({"run": 1})
    assert opened(path).lines == [{"run": 0}]
    path.unlink()
    with pytest.raises(RuntimeError, match="is gone"):
        first.append({"run": 1})
    assert not path.exists()


def test_one_writer_at_a_time_where_that_is_asked(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "runs.jsonl"
    with RecordFile(path, SETTINGS, kind="study", exclusive=True) as record:
        record.append({"run": 0})
        with pytest.raises(ValueError, match="is being written by another study; wait"):
            RecordFile(path, SETTINGS, kind="study", exclusive=True)
        record.append({"run": 1})
    with RecordFile(path, SETTINGS, kind="study", exclusive=True) as record:
        assert len(record.lines) == 2
    assert [json.loads(line) for line in path.read_text().splitlines()[1:]] == record.lines


def test_no_path_keeps_nothing():
    with RecordFile(None, SETTINGS, kind="study", exclusive=True) as record:
        record.append({"run": 0})
    assert record.lines == []
