r"""LaTeX in BibTeX fields as plain text: accents, special letters, and braces.

Commands for letters and accents become the characters; of other commands the argument remains, and
formulas between dollar signs stay as they are.
"""

import re
import unicodedata

__all__ = ["plain_address", "plain_text"]

# The combining character of each accent.
_ACCENTS = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    "u": "\u0306",
    ".": "\u0307",
    '"': "\u0308",
    "r": "\u030a",
    "H": "\u030b",
    "v": "\u030c",
    "d": "\u0323",
    "c": "\u0327",
    "k": "\u0328",
    "b": "\u0331",
}
_LETTERS = {
    "ss": "ß",
    "SS": "ẞ",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "i": "ı",
    "j": "ȷ",
    "dh": "ð",
    "DH": "Ð",
    "dj": "đ",
    "DJ": "Đ",
    "ng": "ŋ",
    "NG": "Ŋ",
    "th": "þ",
    "TH": "Þ",
    "textquoteright": "’",
    "textquoteleft": "‘",
    "textquotedblleft": "“",
    "textquotedblright": "”",
    "textendash": "–",
    "textemdash": "—",
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textunderscore": "_",
    "textless": "<",
    "textgreater": ">",
    "textdegree": "°",
    "textregistered": "®",
    "texttrademark": "™",
    "copyright": "©",
    "dots": "…",
    "ldots": "…",
    "S": "§",
    "P": "¶",
    "pounds": "£",
    "euro": "€",
}
# Names of Greek letters that Unicode spells in another way.
_GREEK_NAMES = {"lambda": "lamda", "varepsilon": "epsilon", "vartheta": "theta", "varphi": "phi"}
# A formula that is one Greek letter, as reference managers write them.
_GREEK_FORMULA = re.compile(r"\$\s*\\([A-Za-z]+)\s*\$")
# A formula; a command of letters or of one other character; a dash; the characters with a meaning.
_TOKEN = re.compile(r"\$[^$]*\$|\\([A-Za-z]+)[ \t\n]*|\\(.)|(---?|``|''|~|[{}])", re.DOTALL)
_MARKS = {"---": "—", "--": "–", "``": "“", "''": "”", "~": " ", "{": "", "}": ""}
# What an accent stands on: a letter, also in braces, or the dotless i and j.
_BASE = re.compile(r"[ \t\n]*(?:\{[ \t\n]*)*(?:\\([ij])(?![A-Za-z])[ \t\n]*|([^\W\d_]))")


def plain_text(latex: str) -> str:
    r"""The text of a field: one line of Unicode without commands and braces.

    Examples
    --------
    >>> plain_text(r"{K\"o}nig, \'{E}va \& Stra{\ss}e, \v{s}, \'{\i}, {\O}re")
    'König, Éva & Straße, š, í, Øre'
    >>> plain_text(r"The {DNA} of \emph{E. coli} at $\alpha < 0.05$")
    'The DNA of E. coli at $\\alpha < 0.05$'
    >>> plain_text(r"{$\beta$}-blockers, {\textmu}m")
    'β-blockers, μm'
    """
    if not any(mark in latex for mark in "\\{}$~-`'"):
        return " ".join(latex.split())
    parts, position = list[str](), 0
    while match := _TOKEN.search(latex, position):
        parts.append(latex[position : match.start()])
        text, position = _replacement(latex, match)
        parts.append(text)
    text = "".join([*parts, latex[position:]])
    return " ".join(unicodedata.normalize("NFC", text).split())


def plain_address(latex: str) -> str:
    r"""A URL or an identifier without braces and the backslashes before special characters.

    Examples
    --------
    >>> plain_address(r"{https://a.org/~b{\_}c\%20}")
    'https://a.org/~b_c%20'
    """
    return re.sub(r"\\([_%&#$~])|[{}]", r"\1", latex).strip()


def _replacement(latex: str, match: re.Match[str]) -> tuple[str, int]:
    """The text in place of a token, and the position after it."""
    word, character, mark = match.groups()
    end = match.end()
    if mark is not None:
        return _MARKS[mark], end
    if word is None and character is None:
        return _formula(match[0]), end
    command = character if word is None else word
    if command in _ACCENTS:
        base = _BASE.match(latex, match.end(1) if word else end)
        if base:
            return (base[1] or base[2]) + _ACCENTS[command], base.end()
    if word is None:
        return (command if command in "&%$#_{}" else " "), end
    return _LETTERS.get(word) or _greek(word), end


def _formula(latex: str) -> str:
    """A formula as it is, unless it is one Greek letter."""
    match = _GREEK_FORMULA.fullmatch(latex)
    return (_greek(match[1]) if match else "") or latex


def _greek(word: str) -> str:
    """The letter of a command such as alpha, Delta or textmu; "" for another command."""
    name = word.removeprefix("text")
    case = "SMALL" if name.islower() else "CAPITAL"
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {_GREEK_NAMES.get(name, name)}")
    except KeyError:
        return ""
