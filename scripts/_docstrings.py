"""For mkdocs.yml: docstrings that are put together from parts, which reading the source does not
show.
"""

import inspect
from typing import Any

import griffe


class BuiltDocstrings(griffe.Extension):
    """Takes the docstring of a class that assigns its `__doc__` from the class itself."""

    def on_class(self, *, cls: griffe.Class, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Import the class where its source has no plain docstring but an assignment."""
        if cls.docstring is None and "__doc__" in cls.members:
            text = inspect.getdoc(griffe.dynamic_import(cls.path)) or ""
            cls.docstring = griffe.Docstring(
                text,
                parent=cls,
                parser=loader.docstring_parser,
                parser_options=loader.docstring_options,
            )
            cls.del_member("__doc__")
