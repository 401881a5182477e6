"""The labelling page for a table in memory, in a notebook or a script."""

import html
import os
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

from forerank.label.launch import SUFFIX, Page, create, make_page
from forerank.label.project import Project

__all__ = ["LabellingPage", "label"]


def label(
    frame: Any,
    project: str | os.PathLike | None = None,
    *,
    strategy: str = "greedy",
    target: float = 0.95,
    confidence: float = 0.95,
    random_state: int = 0,
    open_browser: bool = True,
) -> "LabellingPage":
    """A page on which the rows of a table are labelled, served by a thread of this process.

    Parameters
    ----------
    frame : DataFrame of pandas or polars, or table of pyarrow
        Columns called title and abstract, or those that look like texts, are shown as such; labels
        in a column with a usual name, such as "included", are taken over.
    project : path, optional
        Where the decisions are kept; an existing project of as many rows is continued. Default: a
        file in a temporary folder, which ends with the page.
    strategy, target, confidence
        As in `LabellingLoop` and `RecallBound`.
    random_state : int, default=0
    open_browser : bool, default=True
        Whether to open the page at once; its link is shown in any case.

    Returns
    -------
    LabellingPage
        `labels()` has the labels so far, `stop()` ends the page.

    Notes
    -----
    The ranker is trained in another process, which imports the main module: a script has to call
    this below ``if __name__ == "__main__":``, a notebook need not.
    """
    from forerank.label.importing import records_of_frame

    folder = None
    if project is None:
        folder = tempfile.TemporaryDirectory(prefix="forerank-")
        project = Path(folder.name) / f"table{SUFFIX}"
    path = Path(project)
    settings = {"strategy": strategy, "target": target, "confidence": confidence}
    settings["seed"] = random_state
    found = records_of_frame(frame)
    if path.exists():
        opened = Project(path)
        if (n := opened.n_records) != len(found.fields):
            opened.close()
            raise ValueError(
                f"{path} has {n:,} records and the table {len(found.fields):,} rows; give the same "
                "table as before, or another path."
            )
    else:
        opened, _ = create(path, found, path.name.removesuffix(SUFFIX), settings=settings)
    page = make_page(opened)
    page.serve_in_thread()
    if open_browser:
        webbrowser.open(page.url)
    return LabellingPage(page, folder)


class LabellingPage:
    """A page that is served; see `label`."""

    def __init__(self, page: Page, folder: Any = None) -> None:
        self._page, self._folder = page, folder
        self._service = page.service

    @property
    def url(self) -> str:
        """The link, which opens the page once."""
        return self._page.url

    def labels(self) -> Any:
        """The label of each row of the table, -1 for rows without one."""
        return self._service.submit(lambda: self._service.decisions.label.astype(int)).result()

    def scores(self) -> Any:
        """Scores of all rows by the latest ranker; None before the first one."""
        model = self._service.submit(lambda: self._service.model).result()
        return None if model is None else model.scores.copy()

    def stop(self) -> None:
        """End the page. Decisions stay in the project, if one was named."""
        self._page.stop()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> "LabellingPage":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"LabellingPage({self.url})"

    def _repr_html_(self) -> str:
        link = html.escape(self.url)
        return f'<a href="{link}" target="_blank" rel="noopener">Open the labelling page</a>'
