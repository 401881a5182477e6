"""Labels of rows: two classes of which one is positive, or grades."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Mask, Vector
from forerank.data.frames import as_frame, distinct, parses_as_number

__all__ = ["Labels", "is_unlabelled", "label_text", "read_labels"]

# Most grades of a target; a column of more different numbers is a quantity.
_MOST_GRADES = 32
# Names of a positive class, in small letters, that are understood without a note.
_POSITIVE_NAMES = ("y", "yes", "t", "true", "p", "pos", "positive")
# Most negative labels that are counted one by one.
_MOST_NEGATIVES = 8
# Number of labels that a message lists.
_LABELS_SHOWN = 6
# Advice where the positive label is unknown, and the argument that it means.
_ADVICE, _ARGUMENTS = "set the parameter positive", {"positive": "LABEL"}

Error: TypeAlias = Callable[..., Exception]


@dataclass(frozen=True)
class Labels:
    """Labels that rankers accept, and the names of the classes.

    Attributes
    ----------
    y : array of bool, or of numbers
        True for the positive rows; or grades as integers, those of the column divided by `unit`.
    classes : dict
        Number of rows of each label by its name, the positive one first; more than eight negative
        labels have one entry, such as "all 12 others". Of grades, the lowest first.
    positive, negative : str or None
        Names of the two classes; None for grades. `negative` is None where several labels are
        negative.
    unit : float
        Step of the grades, such as 0.5 for 0, 0.5 and 1; 1.0 for classes.
    notes : list of str
        Information for the user.
    """

    y: NDArray
    classes: dict[str, int]
    positive: str | None = None
    negative: str | None = None
    unit: float = 1.0
    notes: list[str] = field(default_factory=list)

    @property
    def graded(self) -> bool:
        """Whether the labels are grades."""
        return self.positive is None

    @property
    def names(self) -> dict[bool, str]:
        """What the positive rows (True) and the others are called; not for grades."""
        others = [name for name in self.classes if name != self.positive]
        are_few = self.negative is not None or len(others) == 2
        return {True: str(self.positive), False: " or ".join(others) if are_few else "any other"}


def read_labels(
    column: Any, target: str, positive: Any, error: Error, negative: str | None = None
) -> Labels:
    """Labels of a column.

    Parameters
    ----------
    column : array, or series of a frame from `forerank.data.frames.as_frame`
    target : str
        Name of the column, for messages.
    positive : label or None
        The positive class; None for the larger of two labels. Numbers of more than two values are
        grades.
    error : callable
        Makes the exception from a message, a row (counted from 0) and helpful arguments, as
        `forerank.data.source.DataSource.error` does.
    negative : label, optional
        The only other label that may occur.
    """
    codes, values, notes = _coded(column, target)
    if (codes < 0).any():
        n_missing = int(np.count_nonzero(codes < 0))
        has = f"{n_missing:,} of {codes.size:,} rows {'has' if n_missing == 1 else 'have'} none"
        problem = f"the label {target!r} is missing here ({has}); give it, or skip the rows"
        row, advice = int(np.argmax(codes < 0)), {"skip_unlabelled": True}
        raise error(f"{problem} without a label", row, advice)
    ascending = np.argsort(values)
    shown = _listed(values[ascending])
    if values.size < 2:
        problem = (
            f"all labels in {target!r} are {shown}; ranking needs rows of at least two classes"
        )
        raise error(problem)
    if positive is not None:
        hit = np.array([_same_label(value, positive) for value in values])
        if not hit.any():
            raise error(f"no label in {target!r} is {positive!r}; choose one of {shown}")
        others = values[~hit] if negative is not None else values[:0]
        others = [value for value in others if not _same_label(value, negative)]
        if others:
            problem = f"labels in {target!r} that are neither {positive!r} nor {negative!r}"
            raise error(f"{problem}: {_listed(others)}")
        name, counts = str(positive).strip(), np.bincount(codes)
        found = {label_text(values[k]): int(counts[k]) for k in ascending if not hit[k]}
        return _classes(hit[codes], name, found, negative, notes)
    if not np.issubdtype(values.dtype, np.number):
        _check_strings(codes, values, target, shown, error)
    if values.size == 2:
        low, high = values[ascending]
        if (
            isinstance(high, str)
            and not parses_as_number(high)
            and high.lower() not in _POSITIVE_NAMES
        ):
            note = f"{high!r} is taken for the positive label, being the last in alphabetical order"
            notes.append(f"{note}; if it is not, {_ADVICE}")
        found = {label_text(low): int(np.count_nonzero(codes == ascending[0]))}
        return _classes(codes == ascending[1], label_text(high), found, None, notes)
    if values.size > _MOST_GRADES:
        problem = f"{target!r} has {values.size} different numbers; a ranker accepts two classes "
        problem += f"or up to {_MOST_GRADES} grades. Bin them into grades, or {_ADVICE}"
        raise error(problem, arguments=_ARGUMENTS)
    counts = np.bincount(codes)
    classes = {label_text(values[k]): int(counts[k]) for k in ascending}
    grades = values.astype(np.float64)
    unit = _unit(grades)
    y = (grades if unit == 1.0 else np.round(grades / unit))[codes]
    return Labels(y, classes, unit=unit, notes=notes)


def is_unlabelled(column: Any) -> Mask:
    """Rows without a label: the value is missing, or consists of spaces."""
    import pandas as pd

    codes, values = distinct(pd.Series(column))
    blank = np.array([isinstance(value, str) and not value.strip() for value in values] + [True])
    return blank[codes]


def label_text(value: Any) -> str:
    """A label as text; integers without a decimal point."""
    if isinstance(value, int | float | np.number):
        return str(int(value)) if float(value).is_integer() else str(float(value))
    return str(value)


def _coded(column: Any, target: str) -> tuple[NDArray, NDArray, list[str]]:
    """Number of each row's label (-1: missing), the labels, and a note on spaces around them."""
    import pandas as pd

    if not isinstance(column, pd.Series):
        column = as_frame(pd.DataFrame({target: column}))[target]
    codes, found = distinct(column)
    values = np.asarray(found)
    if np.issubdtype(values.dtype, np.number):
        return codes, values, []
    values = np.array([str(value) for value in found], dtype=object)
    trimmed = np.array([value.strip() for value in values], dtype=object)
    changed = np.flatnonzero(trimmed != values)
    if not changed.size:
        return codes, values, []
    new_codes, kept = pd.factorize(np.array([text or None for text in trimmed], dtype=object))
    counts = np.bincount(codes[codes >= 0], minlength=values.size)
    shown = [f"{values[k]!r} ({counts[k]:,}) as {trimmed[k]!r}" for k in changed if trimmed[k]]
    shown = shown[:3] + (["..."] if len(shown) > 3 else [])
    note = f"labels in {target!r} are read without the spaces around them: {', '.join(shown)}"
    codes = np.append(new_codes, -1)[codes]  # the last entry is for missing labels
    return codes, np.asarray(kept, dtype=object), [note] if shown else []


def _check_strings(codes: NDArray, values: NDArray, target: str, shown: str, error: Error) -> None:
    """An error where strings need a positive label: numbers among them, or more than two values."""
    words = np.array([not parses_as_number(value) for value in values])
    if words.any() and not words.all():
        rows = words[codes]
        row = int(np.argmax(rows if rows.mean() <= 0.5 else ~rows))
        problem = f"mixed labels in {target!r}: {values[codes[row]]!r} among {shown}"
        raise error(f"{problem}; {_ADVICE}", row, _ARGUMENTS)
    if values.size > 2:
        problem = f"{target!r} has {values.size} different labels ({shown}); {_ADVICE}"
        raise error(problem, arguments=_ARGUMENTS)


def _unit(grades: Vector) -> float:
    """The largest number of which all grades are integer multiples: 0.5 for 0, 0.5 and 1.

    Estimators accept integers as classes. Measures do not depend on the unit: the gain of NDCG is
    linear.
    """
    for parts in (*range(1, 101), 1000, 10_000, 1_000_000):
        scaled = grades * parts
        rounded = np.round(scaled)
        close = np.allclose(scaled, rounded, rtol=0, atol=1e-6)
        if close and np.unique(rounded).size == grades.size:
            return 1.0 / parts
    shown = ", ".join(map(label_text, grades[:_LABELS_SHOWN]))
    raise ValueError(f"The grades {shown} have no common unit; round them.")


def _same_label(value: Any, wanted: Any) -> bool:
    """Whether two labels are the same string, or the same number: 1, 1.0 and "1"."""
    texts = [str(label).strip() for label in (value, wanted)]
    texts = [text.lower() if text.lower() in ("true", "false") else text for text in texts]
    if texts[0] == texts[1]:
        return True
    return parses_as_number(value) and parses_as_number(wanted) and float(value) == float(wanted)


def _classes(
    hit: Mask, positive: str, others: dict[str, int], negative: str | None, notes: list[str]
) -> Labels:
    """Two classes; `others` are the rows of each other label, `negative` the name of the only one
    that there may be.
    """
    n_others = int(np.count_nonzero(~hit))
    if negative is None and len(others) == 1:
        negative = next(iter(others))
    if negative is not None:
        others = {negative: n_others}
    elif len(others) > _MOST_NEGATIVES:
        others = {f"all {len(others):,} others": n_others}
    return Labels(hit, {positive: hit.size - n_others, **others}, positive, negative, notes=notes)


def _listed(values: Any) -> str:
    """Labels in a message: strings in quotes, so that spaces are seen."""
    shown = [repr(v) if isinstance(v, str) else label_text(v) for v in values[:_LABELS_SHOWN]]
    return ", ".join([*shown, "..."] if len(values) > _LABELS_SHOWN else shown)
