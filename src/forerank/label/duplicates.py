"""Duplicates among bibliographic records: the same DOI, or the same title."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

__all__ = ["duplicates", "normal_doi", "normal_title", "year_of"]

_DOI = re.compile(r"10\.\d{4,9}/\S+")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_NO_LETTER = re.compile(r"[\W_]+")
# Titles that many different texts have; alone they say nothing.
_COMMON_TITLES = frozenset(
    {
        "abstract",
        "abstracts",
        "authors reply",
        "book review",
        "book reviews",
        "comment",
        "commentary",
        "conclusion",
        "correction",
        "correspondence",
        "corrigendum",
        "discussion",
        "editorial",
        "erratum",
        "foreword",
        "in reply",
        "introduction",
        "letter",
        "letter to the editor",
        "letters to the editor",
        "preface",
        "reply",
        "response",
        "untitled",
    }
)
# Stands for any year in the table of titles.
_ANY = "any"


def duplicates(
    known: Sequence[Mapping[str, str]], new: Sequence[Mapping[str, str]]
) -> list[int | None]:
    """For each new record the number of an earlier one that it repeats, or None.

    Two records are the same if their DOIs are equal, or if their titles are equal, at least one of
    them has no DOI, and their years are equal or one is missing. DOIs are compared without the
    address of the resolver and in small letters; titles without case, accents, punctuation and
    repeated spaces. Titles that many texts have, such as "Editorial", do not count. A record that
    repeats one without a DOI or a year gives it its own: others with another one are not the same.

    Parameters
    ----------
    known, new : sequences of mappings
        Records by role: `title`, `doi` and `year`, all optional; see `ImportedRecords.by_role`.

    Returns
    -------
    list of int or None
        Of each new record. Known records are numbered from 0, new ones from `len(known)`. The first
        record of several equal ones is named; of a record that repeats a duplicate, what that one
        repeats. Cost: linear in the number of records.
    """
    earlier, result = _Earlier(), list[int | None]()
    for number, record in enumerate([*known, *new]):
        doi, title = normal_doi(record.get("doi", "")), normal_title(record.get("title", ""))
        year = year_of(record.get("year", ""))
        is_new = number >= len(known)
        found = earlier.find(doi, title, year) if is_new else None
        if is_new:
            result.append(found)
        earlier.add(number if found is None else found, doi, title, year)
    return result


class _Earlier:
    """Numbers of the first of several equal records, by DOI and by title, year, and whether there
    is a DOI; and the DOI and year of each.
    """

    def __init__(self) -> None:
        self._by_doi: dict[str, int] = {}
        self._by_title: dict[tuple[str, str, bool], int] = {}
        self._doi: dict[int, str] = {}
        self._year: dict[int, str] = {}

    def add(self, number: int, doi: str, title: str, year: str) -> None:
        """A record that is, or repeats, that of this number."""
        if doi:
            self._by_doi.setdefault(doi, number)
            self._doi.setdefault(number, doi)
        if year:
            self._year.setdefault(number, year)
        if title:
            for each in (year, _ANY):
                self._by_title.setdefault((title, each, bool(doi)), number)

    def find(self, doi: str, title: str, year: str) -> int | None:
        if doi in self._by_doi:
            return self._by_doi[doi]
        if not title:
            return None
        keys = [
            (title, each, with_doi)
            for each in ((year, "") if year else (_ANY,))
            for with_doi in ((False,) if doi else (False, True))
        ]
        found = [self._by_title[key] for key in keys if key in self._by_title]
        fitting = [number for number in found if self._fits(number, doi, year)]
        return min(fitting, default=None)

    def _fits(self, number: int, doi: str, year: str) -> bool:
        """Whether no record of this number has another DOI or another year."""
        known_doi, known_year = self._doi.get(number, ""), self._year.get(number, "")
        return not (doi and known_doi) and not (year and known_year and year != known_year)


def normal_doi(text: str) -> str:
    """A DOI in small letters without the address of a resolver; "" where there is none.

    Examples
    --------
    >>> normal_doi("https://doi.org/10.1000/ABC."), normal_doi("doi: 10.1000/x"), normal_doi("n/a")
    ('10.1000/abc', '10.1000/x', '')
    """
    match = _DOI.search(unquote(text) if "%" in text else text)
    if match is None:
        return ""
    doi = match[0].rstrip(".,;").lower()
    while doi.endswith(")") and doi.count(")") > doi.count("("):  # of a text in parentheses
        doi = doi[:-1].rstrip(".,;")
    return doi


def normal_title(text: str) -> str:
    """A title in small letters without accents, punctuation and repeated spaces; "" for a title
    that many texts have.

    Examples
    --------
    >>> normal_title("  Étude of follow-up: a REVIEW. "), normal_title("Editorial")
    ('etude of follow up a review', '')
    """
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    title = _NO_LETTER.sub(" ", text.casefold()).strip()
    return "" if title in _COMMON_TITLES else title


def year_of(text: str) -> str:
    """The first year from 1500 to 2099 in a text, or "".

    Examples
    --------
    >>> year_of("2005/03/12/"), year_of("12 May 1998"), year_of("in press")
    ('2005', '1998', '')
    """
    match = _YEAR.search(text)
    return match[0] if match else ""
