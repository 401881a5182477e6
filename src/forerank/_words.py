"""Numbers and lists as they stand in a sentence."""

from collections.abc import Iterable

__all__ = ["counted", "listed"]

# Names after which a list ends: more of them are read by no one, and a table may have thousands of columns.
_MOST_NAMES = 8


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
