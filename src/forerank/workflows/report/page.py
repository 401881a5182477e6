"""The page of a report: one HTML file without scripts or references to other files."""

from dataclasses import dataclass
from importlib import resources
from typing import Any

from forerank._text import printable
from forerank.data.files import opened_atomically, refuse_existing
from forerank.metrics.estimates import Estimate
from forerank.models import Model
from forerank.workflows.report.cross_validation import HeldOut
from forerank.workflows.report.formatting import unbroken

__all__ = ["Report"]


@dataclass
class Report:
    """A report on a ranking.

    Attributes
    ----------
    sentences : list of str
        The result.
    warnings : list of str
        Problems of the data, and reasons to doubt the values.
    measures : list of Estimate
        Means over the folds, the requested measure first; empty if nothing could be held out.
    model : Model
        Fitted on all rows.
    held_out : HeldOut
        Relative ranks of all rows by models fitted without them, and their scores by all models.
    page : dict
        The contents of the page.
    """

    sentences: list[str]
    warnings: list[str]
    measures: list[Estimate]
    model: Model
    held_out: HeldOut
    page: dict[str, Any]

    def html(self) -> str:
        """The page as HTML."""
        from jinja2 import Environment, StrictUndefined

        folder = resources.files("forerank.workflows.report")
        text = folder.joinpath("template.html.j2").read_text(encoding="utf-8")
        options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
        environment = Environment(undefined=StrictUndefined, finalize=_printable, **options)  # type: ignore[arg-type]
        environment.filters["unbroken"] = unbroken
        return environment.from_string(text).render(**self.page)

    def save(self, path: Any, force: bool = False) -> None:
        """Write the page; FileExistsError if the file exists and `force` is False."""
        refuse_existing(path, force=force)
        data = self.html().encode("utf-8")
        with opened_atomically(path, force=force) as file:
            file.write(data)


def _printable(value: Any) -> Any:
    """Text without control characters: some reverse the order of letters in a browser, too."""
    return printable(value, keep="\n") if type(value) is str else value
