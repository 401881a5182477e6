"""The label of a record as a keyword of a RIS file, which reference managers show and search; and
labels that ASReview and Rayyan have written into notes.
"""

import re

from forerank.data.ris import SEPARATOR

__all__ = ["keyword_status", "label_keyword", "noted_label", "without_label"]

_KEYWORD = re.compile(r"forerank: (relevant|irrelevant|skipped|conflict)(?:, grade (\d+))?")

_ASREVIEW = re.compile(r"\bASReview_(relevant|irrelevant)\b", re.IGNORECASE)
# The decision of each reader, such as {"Ann"=>"Included", "Bob"=>"Maybe"}.
_RAYYAN = re.compile(r"RAYYAN-INCLUSION:\s*\{([^}]*)\}")
_RAYYAN_DECISION = re.compile(r'=>\s*"(\w+)"')


def noted_label(notes: str) -> int | None:
    """The label in the notes of an export of ASReview or Rayyan; None where there is none, or where
    readers differ.

    Examples
    --------
    >>> noted_label("ASReview_irrelevant"), noted_label('RAYYAN-INCLUSION: {"Ann"=>"Included"}')
    (0, 1)
    """
    if match := _ASREVIEW.search(notes):
        return int(match[1].lower() == "relevant")
    found = {
        word for match in _RAYYAN.finditer(notes) for word in _RAYYAN_DECISION.findall(match[1])
    }
    return {"Included": 1, "Excluded": 0}.get(found.pop()) if len(found) == 1 else None


def label_keyword(status: str, label: int | None) -> str:
    """The keyword of a status and a label; "" for a record that nobody has read.

    Examples
    --------
    >>> label_keyword("relevant", 1), label_keyword("relevant", 3), label_keyword("unread", None)
    ('forerank: relevant', 'forerank: relevant, grade 3', '')
    """
    if status == "unread":
        return ""
    usual = {"relevant": 1, "irrelevant": 0}.get(status)
    grade = "" if label is None or label < 0 or label == usual else f", grade {label}"
    return f"forerank: {status}{grade}"


def keyword_status(keywords: str) -> str:
    """The status that `label_keyword` has written among keywords, or "".

    Examples
    --------
    >>> keyword_status("adult; forerank: irrelevant, grade 1"), keyword_status("adult")
    ('irrelevant', '')
    """
    found = (_KEYWORD.fullmatch(keyword) for keyword in keywords.split(SEPARATOR))
    return next((match[1] for match in found if match is not None), "")


def without_label(keywords: str) -> tuple[str, int | None]:
    """Keywords joined by "; " without that of the label, and the label; None where there is none.

    Examples
    --------
    >>> without_label("adult; forerank: relevant"), without_label("adult")
    (('adult', 1), ('adult', None))
    """
    label, kept = None, []
    for keyword in keywords.split(SEPARATOR):
        match = _KEYWORD.fullmatch(keyword)
        if match is None:
            kept.append(keyword)
        elif match[2]:
            label = int(match[2])
        else:
            label = {"relevant": 1, "irrelevant": 0}.get(match[1], label)
    return SEPARATOR.join(kept), label
