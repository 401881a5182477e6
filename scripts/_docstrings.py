"""Extension for mkdocs.yml: docstrings that a class builds from parts when it is imported."""

import inspect
from typing import Any

import griffe


class BuiltDocstrings(griffe.Extension):
    """The docstring of a class that assigns its `__doc__` is taken from the imported class."""

    def on_class(self, *, cls: griffe.Class, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Import the class where its source assigns `__doc__`."""
        if cls.docstring is None and "__doc__" in cls.members:
            text = inspect.getdoc(griffe.dynamic_import(cls.path)) or ""
            parser = {"parser": loader.docstring_parser, "parser_options": loader.docstring_options}
            cls.docstring = griffe.Docstring(text, parent=cls, **parser)
            cls.del_member("__doc__")
