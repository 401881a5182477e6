"""Items of the recording by name."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from recording.fields import flatten

ITEMS: dict[str, Callable[[], Any]] = {}


def item(name: str, *arguments: Any, **options: Any) -> Callable:
    """Decorator of a function that returns the values to record when called with `arguments`."""

    def add(function: Callable) -> Callable:
        if name in ITEMS:
            raise ValueError(f"two items are named {name!r}: rename one.")
        ITEMS[name] = partial(function, *arguments, **options)
        return function

    return add


def fields_of(name: str) -> dict[str, dict]:
    """Fields of an item by path, its warnings among them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = flatten(ITEMS[name]())
        except Exception as error:  # recorded, and the other items follow
            found = flatten({"exception": described(error)})
    texts = [f"{each.category.__name__}: {each.message}" for each in caught]
    return found | flatten({"warnings": texts} if texts else {})


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def value_or_error(call: Callable[[], Any]) -> Any:
    """Value of a call, or the text of its exception."""
    try:
        return call()
    except Exception as error:  # recorded in place of the value
        return described(error)


def error_of(call: Callable[[], Any]) -> str:
    """Text of the exception of a call, "no error" without one."""
    try:
        call()
    except Exception as error:  # its text is recorded
        return described(error)
    return "no error"
