"""Difference between a recorded field and the present one."""

import base64
import difflib
from collections import Counter

import numpy as np

from recording.fields import text_field

EQUAL, REWORDED, DIFFERENT, NEW = "equal", "text differs, figures equal", "DIFFERENT", "new"
# Numbers of lines of a text, characters of a line and figures that are printed at most.
MAX_LINES, MAX_WIDTH, MAX_FIGURES = 14, 220, 12


def compare_fields(old: dict | None, new: dict | None) -> tuple[str, list[str]]:
    """State of a field, and lines that describe the difference."""
    if old is not None and old["kind"] == "text":  # the recording may be older than a mask
        old = text_field(old["text"], "figures" in old)
    if old == new:
        return EQUAL, []
    if old is None:
        return NEW, [f"not in the recording: {shown(new)}"]
    if new is None:
        return DIFFERENT, [f"is missing; it was {shown(old)}"]
    values = f"was {shown(old)}, is {shown(new)}"
    if old["kind"] != new["kind"] or old["kind"] == "number":
        return DIFFERENT, [values]
    if old["kind"] in ("name", "bytes"):
        return REWORDED, [values]
    if old["kind"] == "text":
        return compare_texts(old, new)
    return DIFFERENT, [values, *largest_difference(old, new)]


def compare_texts(old: dict, new: dict) -> tuple[str, list[str]]:
    """State of a text, and its lines that differ."""
    texts = (field["text"].split("\n") for field in (old, new))
    lines = list(difflib.unified_diff(*texts, lineterm="", n=0))[2:]
    lines = [line[:MAX_WIDTH] for line in lines if not line.startswith("@@")]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"... and {len(lines) - MAX_LINES} lines more"]
    before, after = old.get("figures", []), new.get("figures", [])
    if before == after:
        return REWORDED, lines
    gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
    if not gone and not come:
        return DIFFERENT, ["the same figures in another order", *lines]
    first = (" ".join(list(figures)[:MAX_FIGURES]) or "-" for figures in (gone, come))
    return DIFFERENT, ["figures gone: {}; figures come: {}".format(*first), *lines]


def largest_difference(old: dict, new: dict) -> list[str]:
    """Line on the number of values that differ and the largest difference, where known."""
    if old["shape"] != new["shape"] or "bytes" not in old or "bytes" not in new:
        return []
    raw = [(base64.b64decode(field["bytes"]), field["dtype"]) for field in (old, new)]
    before, after = (np.frombuffer(data, dtype=dtype).astype(float) for data, dtype in raw)
    differing = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    if not differing.any():
        return ["the values are equal: the dtype, the sign of a zero or the bits of a NaN differ"]
    largest = np.nanmax(np.abs(before - after))
    return [f"{differing.sum()} of {before.size} values differ, at most by {largest:.3g}"]


def shown(field: dict | None) -> str:
    """Field in at most one line."""
    assert field is not None
    match field["kind"]:
        case "number":
            return field["shown"]
        case "array":
            return f"{field['dtype']} {field['shape']} [{', '.join(field['first'])} ...]"
        case "bytes":
            return f"{field['size']} bytes {field['sha256'][:12]}"
        case _:
            return repr(field["text"][:160])
