"""Text from files, as people may see it.

Names of columns and files, values, notes and whatever else a stranger wrote may hold characters that a terminal obeys
(colours, its title, the cursor), that turn around the order of what follows, or that cannot be seen. What leaves for a
screen goes through `printable`, which shows them as Python writes them; files keep what they were given.
"""

import unicodedata

__all__ = ["figure_label", "printable", "printable_json"]

# Control characters (C0 and C1), format characters (order of writing, zero width), halves of characters, and the two
# separators that some programs take for the end of a line.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    r"""A text with nothing in it that a terminal obeys or that cannot be seen, apart from the characters to `keep`.

    Examples
    --------
    >>> print(printable("red \x1b[31m, back \u202e, next\nline"))
    red \x1b[31m, back \u202e, next\nline
    >>> printable("Füße") == "Füße"
    True
    """
    if text.isprintable():
        return text
    return "".join(_escaped(each) if _is_unseen(each) and each not in keep else each for each in text)


def printable_json(text: str) -> str:
    r"""JSON that means the same, with nothing in it that a terminal obeys.

    Examples
    --------
    >>> print(printable_json('{"a": "\x9b\u202e"}'))
    {"a": "\u009b\u202e"}
    """
    if text.isascii():
        return text  # what is below a blank is escaped in any JSON
    return "".join(_json_escaped(each) if _is_unseen(each) and each != "\n" else each for each in text)


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
