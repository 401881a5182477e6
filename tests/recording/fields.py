"""Fields of an item: nested values as a flat mapping from paths to numbers, arrays, texts, names
and digests of bytes.
"""

import base64
import dataclasses
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from recording.masks import masked

# Keys whose values are durations, which are not recorded.
DURATIONS = re.compile(r"(?:^|_)(?:seconds|time)(?:$| per )")
# Keys whose values are names, which may be changed.
NAMES = {"method", "methods", "strategy", "best", "best_method_", "dtype"}
# Number of values up to which an array is recorded whole, so that `compare` can print the largest
# difference; of longer arrays a digest is recorded, to limit the size of the file.
MAX_WHOLE_ARRAY = 4000
# Number of values of an array that `compare` prints.
N_FIRST = 6

NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)\]%.-])[-+])?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
)
# Names of methods with a number in them, which is no result.
METHOD_WITH_NUMBER = re.compile(
    r"\btop[ -]\d+(?: ?%|-?percent|-?pct)?(?=[, -]+(?:share|squared))", re.IGNORECASE
)


@dataclasses.dataclass
class Text:
    """Text of which `figures` tells whether the numbers in it are recorded as results."""

    text: str
    figures: bool = True


def flatten(value: Any, path: str = "", key: str = "") -> dict[str, dict]:
    """Fields by path. Values of other types, such as estimators, are not recorded."""
    if DURATIONS.search(key):
        return {}
    if sp.issparse(value):
        value = value.toarray()
    if isinstance(value, str) and key in NAMES:
        return {path: name_field(value)}
    if value is None or isinstance(value, str):
        value = Text(str(value))
    if isinstance(value, Text):
        return {path: text_field(value.text, value.figures)}
    if isinstance(value, bytes):
        return {path: bytes_field(value)}
    if is_number(value):
        return {path: number_field(value)}
    if isinstance(value, np.ndarray):
        numeric = value.dtype.kind in "biuf"
        return {path: array_field(value)} if numeric else flatten(value.tolist(), path, key)
    value = as_mapping(value)
    if isinstance(value, Mapping):
        found = {}
        for name, each in value.items():
            if not str(name).startswith("_"):
                found |= flatten(each, f"{path}/{name}".lstrip("/"), str(name))
        return found
    return flatten_list(list(value), path, key) if isinstance(value, list | tuple) else {}


def flatten_list(values: list, path: str, key: str) -> dict[str, dict]:
    """Fields of a list: one for numbers or for texts, one per column for a table."""
    if values and all(is_number(each) for each in values):
        return {path: array_field(np.array(values))}
    if all(isinstance(each, str) for each in values):
        lines = "\n".join(values)
        return {path: name_field(lines) if key in NAMES else text_field(lines)}
    values = [as_mapping(each) for each in values]
    if all(isinstance(each, Mapping) for each in values) and len(set(map(tuple, values))) == 1:
        return flatten({name: [each[name] for each in values] for name in values[0]}, path)
    found = {}
    for number, each in enumerate(values):
        found |= flatten(each, f"{path}/{number}", key)
    return found


def as_mapping(value: Any) -> Any:
    """Mapping of a dataclass or a named tuple; other values as they are."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else value


def by_name(values: Mapping) -> dict:
    """Mapping from names as two columns: names may change, values may not."""
    return {"method": [str(name) for name in values], "value": list(values.values())}


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)


def name_field(text: str) -> dict:
    return {"kind": "name", "text": text}


def text_field(text: str, figures: bool = True) -> dict:
    text = masked(text)
    return {"kind": "text", "text": text, **({"figures": figures_of(text)} if figures else {})}


def figures_of(text: str) -> list[str]:
    """Numbers in a text, in their order, without separators of thousands."""
    return [found.replace(",", "") for found in NUMBER.findall(METHOD_WITH_NUMBER.sub("", text))]


def bytes_field(value: bytes) -> dict:
    return {"kind": "bytes", "size": len(value), "sha256": hashlib.sha256(value).hexdigest()}


def number_field(value: Any) -> dict:
    exact = float(value).hex() if isinstance(value, float | np.floating) else str(int(value))
    return {"kind": "number", "exact": exact, "shown": repr(value)}


def array_field(value: np.ndarray) -> dict:
    value = np.ascontiguousarray(value)
    raw = value.tobytes()
    field = {
        "kind": "array",
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "sha256": hashlib.sha256(raw).hexdigest(),
        "first": [str(each) for each in value.ravel()[:N_FIRST]],
    }
    if value.size <= MAX_WHOLE_ARRAY:
        field["bytes"] = base64.b64encode(raw).decode("ascii")
    return field
