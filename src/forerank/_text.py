"""Texts for people: counts and lists in sentences, and texts from files made safe for a terminal.

Names of columns and files, values, notes and whatever else comes from a file may hold characters
that a terminal interprets (colours, its title, the cursor), that reverse the order of what follows,
or that are invisible. What is written to a screen goes through `printable`, which shows them as
Python escapes; files keep what they were given.
"""

import unicodedata
from collections.abc import Iterable

__all__ = ["counted", "figure_label", "listed", "printable", "printable_json"]

# Names after which a list ends: more of them are read by no one, and a table may have thousands of
# columns.
_MOST_NAMES = 8
# Control characters (C0 and C1), format characters (order of writing, zero width), halves of
# characters, and the two separators that some programs take for the end of a line.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, in the singular or the plural.

    Examples
    --------
    >>> counted(1, "row"), counted(2500, "row"), counted(0, "category", "categories")
    ('1 row', '2,500 rows', '0 categories')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listed(names: Iterable[str], most: int = _MOST_NAMES) -> str:
    """The first names, and how many more there are.

    Examples
    --------
    >>> listed(["age", "job"]), listed("abcdefghij")
    ('age, job', 'a, b, c, d, e, f, g, h, and 2 more')
    """
    names = list(names)
    more = [f"and {len(names) - most:,} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def printable(text: str, keep: str = "") -> str:
    r"""A text with nothing in it that a terminal obeys or that cannot be seen, apart from the
    characters to `keep`.

    Examples
    --------
    >>> print(printable("red \x1b[31m, back \u202e, next\nline"))
    red \x1b[31m, back \u202e, next\nline
    >>> printable("Füße") == "Füße"
    True
    """
    if text.isprintable():
        return text
    return "".join(
        _escaped(each) if _is_unseen(each) and each not in keep else each for each in text
    )


def printable_json(text: str) -> str:
    r"""JSON that means the same, with nothing in it that a terminal obeys.

    Examples
    --------
    >>> print(printable_json('{"a": "\x9b\u202e"}'))
    {"a": "\u009b\u202e"}
    """
    if text.isascii():
        return text  # what is below a blank is escaped in any JSON
    return "".join(
        _json_escaped(each) if _is_unseen(each) and each != "\n" else each for each in text
    )


def figure_label(text: object) -> str:
    r"""A text as matplotlib shows it as it is: what is between two dollars would be a formula.

    Examples
    --------
    >>> print(figure_label("$5 to $9"))
    \$5 to \$9
    """
    return printable(str(text)).replace("$", r"\$")


def _is_unseen(each: str) -> bool:
    return unicodedata.category(each) in _UNSEEN


def _escaped(each: str) -> str:
    code = ord(each)
    if code < 0x100:
        return _SHORT.get(each, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escaped(each: str) -> str:
    data = each.encode("utf-16-be", "surrogatepass")  # two units beyond the first 65,536 characters
    return "".join(f"\\u{data[k : k + 2].hex()}" for k in range(0, len(data), 2))
