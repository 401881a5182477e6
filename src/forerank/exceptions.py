"""Exceptions of the package.

ForerankError
├── DataFileError (ValueError)    a data file that cannot be read: path, line, problem
├── CsvProblem (ValueError)       the same within readers of text, which do not know the path
├── ModelFileError (ValueError)   a model file that cannot be used
├── ProjectFileError (ValueError) a labelling project that cannot be used
└── Refused (ValueError)          the same within the checks of its contents

Wrong arguments raise ValueError or TypeError; estimators that did not converge warn with
scikit-learn's ConvergenceWarning.
"""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "CsvProblem",
    "DataFileError",
    "ForerankError",
    "ModelFileError",
    "ProjectFileError",
    "Refused",
]


class ForerankError(Exception):
    """The base of all exceptions of this package."""


class DataFileError(ForerankError, ValueError):
    """A data file that cannot be read; the message is one line: file, line, problem and remedy.

    Attributes
    ----------
    path
    problem : str
    line : int or None
    arguments : dict
        Arguments of the function that was called, by name, with which the file may be read.
    """

    def __init__(
        self,
        path: Any,
        problem: str,
        line: int | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.path, self.problem, self.line = path, problem, line
        self.arguments = dict(arguments or {})
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {problem}")


class CsvProblem(ForerankError, ValueError):
    """A problem of a text file, with its line and the arguments of the reader that may help."""

    def __init__(
        self, problem: str, line: int | None = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        self.problem, self.line, self.arguments = problem, line, dict(arguments or {})
        super().__init__(problem)


class ModelFileError(ForerankError, ValueError):
    """A model file that cannot be used; the message is one line: file, problem and remedy."""

    def __init__(self, path: Any, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


class ProjectFileError(ForerankError, ValueError):
    """A labelling project that cannot be opened or made; the message is one line."""

    def __init__(self, path: Any, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


class Refused(ForerankError, ValueError):
    """A model file, or a part of it, that is not read any further, with the reason."""
