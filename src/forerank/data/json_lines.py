"""JSON lines: an object on each line, whose names are columns.

A list of plain values is one text, joined by "; "; objects, and lists with objects or lists in
them, are kept as JSON text.
"""

import json
from typing import Any

from forerank.data.entries import Entries, value_text
from forerank.data.files import first_line
from forerank.exceptions import CsvProblem

__all__ = ["clean_text", "flat_value", "parse_json_lines"]

_EXPECTED = 'an object such as {"title": "..."} is expected on each line'


def parse_json_lines(text: str) -> Entries:
    """The objects of a text, one per line; empty lines are skipped."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=_object)
        except _Twice as twice:
            problem = f"the name {twice.args[0]!r} appears twice in an object; rename one"
            raise CsvProblem(problem, number) from None
        except (ValueError, RecursionError) as error:
            problem = f"not JSON ({first_line(error)}); {_EXPECTED}"
            raise CsvProblem(problem, number) from None
        if not isinstance(value, dict):
            raise CsvProblem(f"this is {_kind(value)}; {_EXPECTED}", number)
        rows.append({clean_text(name): flat_value(each) for name, each in value.items()})
    if not any(rows):
        raise CsvProblem(f"there is no record; {_EXPECTED}")
    return Entries(rows)


def flat_value(value: Any) -> Any:
    """A value without parts: text for a list or an object."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | tuple) and not any(
        isinstance(each, dict | list | tuple) for each in value
    ):
        return clean_text("; ".join(value_text(each) for each in value if each is not None))
    if isinstance(value, dict | list | tuple):
        return clean_text(json.dumps(value, ensure_ascii=False, default=str))
    return value


def clean_text(text: str) -> str:
    r"""A text with a replacement character for each lone surrogate, which no encoding represents.

    Examples
    --------
    >>> clean_text("a\ud800b") == "a\N{REPLACEMENT CHARACTER}b"
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _Twice(Exception):
    """A name that an object has more than once."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return found


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "a number")
