r"""Texts for people: counts and lists in sentences, and texts from files made safe for a terminal.

Column names, values and file names may contain control characters that a terminal obeys (colours,
its title, the cursor), that reverse the order of writing, or that are invisible. Everything printed
to a terminal passes through `printable`, which shows them as Python escapes; files keep the
original characters.
"""

import unicodedata
from collections.abc import Iterable

__all__ = ["counted", "figure_label", "listed", "printable", "printable_json"]

# Names that a list shows before "and ... more"; a table may have thousands of columns.
_MOST_NAMES = 8
# Unicode categories to escape: control characters (C0 and C1), format characters (writing order,
# zero width), surrogates, and the line and paragraph separators.
_ESCAPED_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, in the singular or the plural.

    Examples
    --------
    >>> counted(1, "row"), counted(2500, "row"), counted(0, "category", "categories")
    ('1 row', '2,500 rows', '0 categories')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def listed(names: Iterable[str], most: int = _MOST_NAMES) -> str:
    """The first names, and the number of the others.

    Examples
    --------
    >>> listed(["age", "job"]), listed("abcdefghij")
    ('age, job', 'a, b, c, d, e, f, g, h, and 2 more')
    """
    names = list(names)
    more = [f"and {len(names) - most:,} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def printable(text: str, keep: str = "") -> str:
    r"""A text with control, format and other invisible characters escaped, except those in `keep`.

    Examples
    --------
    >>> print(printable("red \x1b[31m, back \u202e, next\nline"))
    red \x1b[31m, back \u202e, next\nline
    >>> printable("Füße") == "Füße"
    True
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or not _is_escaped(c) else _python_escape(c) for c in text)


def printable_json(text: str) -> str:
    r"""JSON with the same meaning, with control and format characters escaped.

    Examples
    --------
    >>> print(printable_json('{"a": "\x7f\x9b\u202e"}'))
    {"a": "\u007f\u009b\u202e"}
    """
    if text.isascii() and "\x7f" not in text:
        return text  # JSON always escapes the other control characters of ASCII
    return "".join(c if c == "\n" or not _is_escaped(c) else _json_escape(c) for c in text)


def figure_label(text: object) -> str:
    r"""A text for a matplotlib figure: dollar signs, which would begin a formula, are escaped.

    Examples
    --------
    >>> print(figure_label("$5 to $9"))
    \$5 to \$9
    """
    return printable(str(text)).replace("$", r"\$")


def _is_escaped(character: str) -> bool:
    return unicodedata.category(character) in _ESCAPED_CATEGORIES


def _python_escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return _SHORT_ESCAPES.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")  # a pair of units above U+FFFF
    return "".join(f"\\u{data[k : k + 2].hex()}" for k in range(0, len(data), 2))
