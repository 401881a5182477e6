"""Cells of exported tables: names of the columns that an export adds, and texts that no spreadsheet
runs as a formula.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula, also after spaces, and some
take the full-width forms of these characters. Such a text gets an apostrophe before it (`guarded`),
which `unguarded` removes again. So does what follows a semicolon, a tab, a bar or a line end within
a text: a spreadsheet that expects another delimiter begins a cell there.
"""

import re

__all__ = [
    "EXPORTED_NAMES",
    "LABEL_NAME",
    "NOTE_NAME",
    "READER_PREFIX",
    "STATUS_NAME",
    "TAGS_NAME",
    "guarded",
    "is_exported",
    "storable",
    "unguarded",
]

LABEL_NAME, STATUS_NAME = "forerank_label", "forerank_status"
NOTE_NAME, TAGS_NAME = "forerank_note", "forerank_tags"
# Columns of an export that describe its state, which a new import does not take for fields.
EXPORTED_NAMES = (
    LABEL_NAME,
    STATUS_NAME,
    "forerank_rank",
    "forerank_score",
    "forerank_decided_at",
    "forerank_cut",
)
# Before the name of a person in the name of the column of their labels.
READER_PREFIX = "forerank_label_of "
# White space, control characters, and characters without width, which may stand before a formula.
_INVISIBLE = r"\s\x00-\x20\x7f-\xa0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff"
_SIGNS = "[-=+@＝＋－＠﹣﹢﹦﹫]"
_FORMULA = re.compile(rf"[\t\r\n]|[{_INVISIBLE}]*{_SIGNS}")
# A place within a text at which a cell may begin, and what a formula there looks like.
_BOUNDARY, _INSIDE = r"(?<=[;|\t\r\n])", rf"'*(?:(?![\t\r\n])[{_INVISIBLE}\"])*{_SIGNS}"
_BEFORE_FORMULA = re.compile(rf"{_BOUNDARY}(?={_INSIDE})")
_GUARD = re.compile(rf"{_BOUNDARY}'(?={_INSIDE})")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def guarded(text: str) -> str:
    """A text with an apostrophe before it where a spreadsheet could take it for a formula.

    Numbers stay as they are.

    Examples
    --------
    >>> guarded("=1+1"), guarded("-1.5"), guarded(" @sum"), guarded("a = b")
    ("'=1+1", '-1.5', "' @sum", 'a = b')
    >>> guarded("a;=b")
    "a;'=b"
    """
    text = _BEFORE_FORMULA.sub("'", text)
    return f"'{text}" if _is_dangerous(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given.

    Examples
    --------
    >>> unguarded("'=1+1"), unguarded("'quoted'")
    ('=1+1', "'quoted'")
    """
    text = text[1:] if text.startswith("'") and _is_dangerous(text[1:]) else text
    return _GUARD.sub("", text)


def storable(text: str) -> str:
    """A text with a replacement character for each zero character and lone surrogate."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def is_exported(name: str) -> bool:
    """Whether a column is one that an export adds, other than notes and tags."""
    return name in EXPORTED_NAMES or name.startswith(READER_PREFIX)


def _is_dangerous(text: str) -> bool:
    """Whether a text begins like a formula, also behind apostrophes, so that each text has another
    guarded form.
    """
    if _FORMULA.match(text.lstrip("'")) is None:
        return False
    return _NUMBER.fullmatch(text) is None
