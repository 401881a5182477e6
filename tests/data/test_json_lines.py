"""JSON lines: an object per line, flat or not; a line that is no object is named."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forerank.data.json_lines import parse_json_lines
from forerank.data.readers import read_table
from forerank.exceptions import CsvProblem, DataFileError


def written(tmp_path, data):
    path = tmp_path / "a.jsonl"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_types_of_columns(tmp_path):
    lines = [
        '{"n": 1, "x": NaN, "mixed": 1, "flag": true, "text": "a\\nb"}',
        "",
        '{"n": 2, "x": 1.5, "mixed": "one", "flag": false, "new": null}',
    ]
    frame = read_table(written(tmp_path, "\n".join(lines)))
    assert frame["n"].tolist() == [1, 2]
    assert frame["x"].isna().tolist() == [True, False]
    assert frame["mixed"].tolist() == ["1", "one"]
    assert frame["text"].tolist()[0] == "a\nb"
    assert frame[["text", "new"]].isna().to_numpy().tolist() == [[False, True], [True, True]]


def test_parts_are_kept_as_text():
    line = json.dumps({"authors": ["A", None, 2], "nested": {"a": [1]}, "lists": [[1], "é"], "": 1})
    (row,) = parse_json_lines(line).rows
    assert row == {"authors": "A; 2", "nested": '{"a": [1]}', "lists": '[[1], "é"]', "": 1}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks(tmp_path, encoding):
    path = written(tmp_path, '{"t": "é"}\r\n'.encode(encoding))
    assert read_table(path)["t"].tolist() == ["é"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"a": 1}\n\n{"a": 1,}\n', "a.jsonl, line 3: not JSON"),
        ('{"a": 1}\n[1]\n', "a.jsonl, line 2: this is a list; an object such as"),
        ('{"a": 1}\nnull\n', "a.jsonl, line 2: this is null"),
        ('{"a": 1, "a": 2}', "a.jsonl, line 1: the name 'a' appears twice in an object"),
        ('{"a": ' + "[" * 10_000 + "]" * 10_000 + "}", "a.jsonl, line 1: not JSON"),
        ('{"a": ' + "9" * 5000 + "}", "a.jsonl, line 1: not JSON"),
        ("{}\n{}\n", "a.jsonl: there is no record"),
        ("\n\n", "a.jsonl: there is no record"),
        ('{"a": 1}\n{"a": "é"}'.encode("latin-1"), "a.jsonl, line 2: not UTF-8 text"),
        ('{"a": 1}'.encode("utf-16-le"), "this looks like UTF-16 text"),
    ],
)
def test_bad_files(tmp_path, data, message):
    with pytest.raises(DataFileError, match=re.escape(message)) as error:
        read_table(written(tmp_path, data))
    assert "\n" not in str(error.value)


def test_too_many_names_are_refused(tmp_path):
    lines = "\n".join(f'{{"n{k}": 1}}' for k in range(11_000))
    with pytest.raises(DataFileError, match="11,000 records with 11,000 different fields"):
        read_table(written(tmp_path, lines))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=2) | st.dictionaries(st.text(max_size=2), part, max_size=2)
    ),
    max_leaves=5,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=4)


@given(st.lists(objects, min_size=1, max_size=4).filter(any))
def test_objects_come_back(rows):
    found = parse_json_lines("\n".join(map(json.dumps, rows))).rows
    assert len(found) == len(rows)
    for before, after in zip(rows, found, strict=True):
        plain = {
            name: value for name, value in before.items() if not isinstance(value, dict | list)
        }
        assert repr({name: after[name] for name in plain}) == repr(plain)


@given(st.lists(st.sampled_from(['{"a": 1}', "{", "}", "[", '"', "\n", "\n", "NaN", "\\", "1"])))
def test_any_text_is_read_or_refused(pieces):
    text = "".join(pieces)
    try:
        found = parse_json_lines(text)
    except CsvProblem:
        return
    assert len(found.rows) == sum(bool(line.strip()) for line in text.split("\n"))
