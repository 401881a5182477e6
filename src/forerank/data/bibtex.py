"""BibTeX files: entries of named fields, with macros, concatenation and LaTeX accents.

A field is a column, in small letters; the type and the key of an entry are the columns
`entry_type` and `citation_key`. Authors are joined by "; ". Text between entries is a comment, as
BibTeX has it. An entry that cannot be read is skipped up to the next line that begins with "@", and
a note names it.
"""

import re
from collections.abc import Callable

from forerank._text import counted
from forerank.data.entries import Entries, named_lines
from forerank.data.latex import plain_address, plain_text
from forerank.exceptions import CsvProblem

__all__ = ["parse_bibtex"]

_ENTRY = re.compile(r"@[ \t]*([A-Za-z]+)\s*([{(])")
_ENTRY_ON_NEW_LINE = re.compile(r"^[ \t]*@[ \t]*[A-Za-z]+\s*[{(]", re.MULTILINE)
# The beginning of an entry with its first field. Inside of another entry it shows that a brace of
# that one is missing.
_ENTRY_INSIDE = re.compile(
    r"^[ \t]*@[ \t]*[A-Za-z]+[ \t]*[{(][ \t]*[^\s,={}]+[ \t]*,\s*[A-Za-z][\w-]*\s*=", re.MULTILINE
)
# White space, and comments from a line's per cent sign on, which Biber allows between fields.
_SPACE = re.compile(r"\s*(?:%[^\n]*\s*)*")
# The key of an entry, which may have spaces before its comma; without a comma it is one word.
_KEY = re.compile(r"""[^,={}"\n]*(?=,)|[^\s,={}"#%@]*""")
_FIELD = re.compile(r"""([^\s,={}"#%()@]+)\s*=""")
_WORD = re.compile(r"""[^\s,={}"#%()@]+""")
_BRACE = re.compile(r"[{}]")
_QUOTE_OR_BRACE = re.compile(r'["{]')
_AND = re.compile(r" and |[{}]", re.IGNORECASE)
# Macros that BibTeX styles define.
_MONTHS = "January February March April May June July August September October November December"
# Characters of a macro: the name of a journal has at most a few hundred. Macros made of macros
# could grow without limit.
_LONGEST_MACRO = 2000
_PEOPLE = {"author", "editor"}
_ADDRESSES = {"doi", "url", "file", "eprint", "link", "pdf", "howpublished"}


def parse_bibtex(text: str) -> Entries:
    """The entries of a BibTeX file; a file without any is an error, as is one of which none can be
    read.

    Cost: linear in the length of the text.
    """
    reader = _Reader(text)
    position, rows, bad, commented = 0, list[dict[str, str]](), list[_Malformed](), list[int]()
    while match := _ENTRY.search(text, position):
        if _is_commented(text, position, match.start()):
            commented.append(match.start())
            position = _line_end(text, match.start())
            continue
        try:
            row, position = reader.entry(match)
        except _Malformed as problem:
            bad.append(problem)
            following = _ENTRY_ON_NEW_LINE.search(text, _line_end(text, match.start()))
            position = following.start() if following else len(text)
        else:
            rows += [row] if row else []
    if bad and not rows:
        raise CsvProblem(f"{bad[0]}; correct the entry", reader.line_of(bad[0].position))
    if not rows:
        expected = "'@article{key, title = {...}}'"
        raise CsvProblem(f"there is no BibTeX entry such as {expected}; check its format", 1)
    notes = []
    if bad:
        lines = named_lines(reader.line_of(each.position) for each in bad)
        count = counted(len(bad), "entry", "entries")
        notes.append(f"{count} that cannot be read skipped: {lines} ({bad[0]})")
    if commented:
        count = counted(len(commented), "entry", "entries")
        lines = named_lines(map(reader.line_of, commented))
        notes.append(f"{count} after a per cent sign skipped: {lines}")
    return Entries(rows, notes)


class _Malformed(Exception):
    """An entry that cannot be read, and the position of the problem in the text."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(problem)
        self.position = position


class _Reader:
    """Entries of a text: positions of matching braces, and macros defined so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._close = _matching_braces(text)
        self._macros = {month[:3].lower(): month for month in _MONTHS.split()}
        self._line, self._line_at = 1, 0

    def line_of(self, position: int) -> int:
        """The line of a position, which must not be before that of the last call."""
        if position < self._line_at:
            return self._text.count("\n", 0, position) + 1
        self._line += self._text.count("\n", self._line_at, position)
        self._line_at = position
        return self._line

    def entry(self, match: re.Match[str]) -> tuple[dict[str, str], int]:
        """The fields of an entry (none of a comment or a macro), and the position after it."""
        kind, opening = match[1].lower(), match.end() - 1
        if kind == "comment":
            return {}, self._close.get(opening, match.end() - 1) + 1
        if match[2] == "{" and opening not in self._close:
            raise _Malformed("a brace opens here and never closes", match.start())
        if _ENTRY_INSIDE.search(self._text, match.end(), self._close.get(opening, match.end())):
            raise _Malformed("a brace opens here and closes in a later entry", match.start())
        position = self._after_space(match.end())
        if kind == "preamble":
            position = self._value(position)[1]
            return {}, self._end(position, match)
        if kind == "string":
            fields, position = self._fields(position, match)
            if any(len(text) > _LONGEST_MACRO for _, text in fields):
                problem = f"a macro of more than {_LONGEST_MACRO:,} characters"
                raise _Malformed(problem, match.start())
            self._macros |= {name.lower(): text for name, text in fields}
            return {}, position
        key = _KEY.match(self._text, position)
        row = {"entry_type": kind}
        if key and not self._text.startswith("=", self._after_space(key.end())):
            row["citation_key"], position = key[0].strip(), key.end()
        fields, position = self._fields(position, match)
        for name, value in fields:
            name = name.lower()
            text = _converted(name, value)
            if text:
                row[name] = f"{row[name]}; {text}" if name in row else text
        return row, position

    def _fields(self, position: int, match: re.Match[str]) -> tuple[list[tuple[str, str]], int]:
        """Names and values up to the end of an entry, and the position after it."""
        fields, end = list[tuple[str, str]](), ")" if match[2] == "(" else "}"
        while True:
            position = self._after_space(position)
            while self._text.startswith(",", position):
                position = self._after_space(position + 1)
            if self._text.startswith(end, position):
                return fields, position + 1
            name = _FIELD.match(self._text, position)
            if name is None:
                expected = f"a field such as 'year = 2020' or the closing {end!r} is expected here"
                raise _Malformed(expected, min(position, len(self._text) - 1))
            value, position = self._value(name.end())
            fields.append((name[1], value))

    def _value(self, position: int) -> tuple[str, int]:
        """A value, in LaTeX, and the position after it."""
        parts = []
        while True:
            part, position = self._part(self._after_space(position))
            parts.append(part)
            after = self._after_space(position)
            if not self._text.startswith("#", after):
                return "".join(parts), position
            position = after + 1

    def _part(self, position: int) -> tuple[str, int]:
        text = self._text
        if text.startswith("{", position):
            close = self._close.get(position)
            if close is None:
                raise _Malformed("a brace opens here and never closes", position)
            return text[position + 1 : close], close + 1
        if text.startswith('"', position):
            close = self._closing_quote(position)
            return text[position + 1 : close], close + 1
        word = _WORD.match(text, position)
        if word is None:
            problem = "a value in braces or quotes, a number or a macro is expected here"
            raise _Malformed(problem, min(position, len(text) - 1))
        return self._macros.get(word[0].lower(), word[0]), word.end()

    def _closing_quote(self, position: int) -> int:
        """The position of the next quote outside of braces."""
        at = position + 1
        while match := _QUOTE_OR_BRACE.search(self._text, at):
            if match[0] == '"':
                return match.start()
            if match.start() not in self._close:
                break
            at = self._close[match.start()] + 1
        raise _Malformed("a quote opens here and never closes", position)

    def _end(self, position: int, match: re.Match[str]) -> int:
        position = self._after_space(position)
        end = ")" if match[2] == "(" else "}"
        if not self._text.startswith(end, position):
            raise _Malformed(f"the closing {end!r} is expected here", match.start())
        return position + 1

    def _after_space(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position


def _matching_braces(text: str) -> dict[int, int]:
    """The position of the closing brace of each opening one that has one."""
    close, opened = dict[int, int](), list[int]()
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            close[opened.pop()] = brace.start()
    return close


def _is_commented(text: str, begin: int, position: int) -> bool:
    """Whether a per cent sign stands before a position in its line, after `begin`."""
    line = text.rfind("\n", begin, position)
    return "%" in text[max(begin, line + 1) : position]


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _converted(name: str, latex: str) -> str:
    """A field as plain text; people are joined by "; "."""
    convert: Callable[[str], str] = plain_address if name in _ADDRESSES else plain_text
    people = _people(latex) if name in _PEOPLE else [latex]
    return "; ".join(text for each in people if (text := convert(each)))


def _people(latex: str) -> list[str]:
    """Names that are separated by "and" outside of braces."""
    latex = " ".join(latex.split())
    names, begin, depth = list[str](), 0, 0
    for match in _AND.finditer(latex):
        if match[0] in "{}":
            depth += 1 if match[0] == "{" else -1
        elif depth <= 0:
            names.append(latex[begin : match.start()])
            begin = match.end()
    return [*names, latex[begin:]]
