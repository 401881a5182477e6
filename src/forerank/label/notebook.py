"""The labelling page for a table in memory, in a notebook or a script."""

import html
import json
import multiprocessing
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from forerank._text import listed
from forerank.label.launch import SUFFIX, change_settings, check_settings, create
from forerank.label.page import Page, make_page
from forerank.label.project import Project

__all__ = ["LabellingPage", "label"]


def label(
    frame: Any,
    project: str | os.PathLike | None = None,
    *,
    strategy: str | None = None,
    target: float | None = None,
    confidence: float | None = None,
    random_state: int | None = None,
    open_browser: bool = True,
) -> "LabellingPage":
    """A page on which the rows of a table are labelled, served by a thread of this process.

    Parameters
    ----------
    frame : DataFrame of pandas or polars, or table of pyarrow
        Columns called title and abstract, or those that look like texts, are shown as such; labels
        in a column with a usual name, such as "included", are taken over.
    project : path, optional
        Where the decisions are kept; an existing project of the same rows is continued. Default:
        a file in a temporary folder, which ends with the page.
    strategy, target, confidence
        As in `LabellingLoop` and `RecallBound`. Default: "greedy", 0.95 and 0.95, or in an
        existing project what it has. Target and confidence are fixed when reading has begun.
    random_state : int, optional
        Default: 0, or what the project has, which cannot change.
    open_browser : bool, default=True
        Whether to open the page at once; otherwise its link is printed.

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

    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "this process is one that label() starts for the ranker, and it imports the main "
            'module: call label() below if __name__ == "__main__":'
        )
    wanted = {"strategy": strategy, "target": target, "confidence": confidence}
    wanted["seed"] = random_state
    settings = {name: value for name, value in wanted.items() if value is not None}
    check_settings(settings)
    found = records_of_frame(frame)
    folder = None
    if project is None:
        folder = tempfile.TemporaryDirectory(prefix="forerank-")
        project = Path(folder.name) / f"table{SUFFIX}"
    path = Path(project)
    if path.exists():
        opened = _continued(path, found.fields, settings)
    else:
        opened, _ = create(path, found, path.name.removesuffix(SUFFIX), settings=settings)
    page = make_page(opened)
    page.serve_in_thread()
    if open_browser:
        webbrowser.open(page.url)
    else:
        print(page.url, file=sys.stderr, flush=True)
    return LabellingPage(page, folder)


def _continued(path: Path, rows: list[dict[str, str]], settings: dict[str, Any]) -> Project:
    """An existing project of the same rows, with the settings that were given."""
    project = Project(path)
    try:
        _check_rows(project, rows)
        with project.transaction():
            change_settings(project, settings)
    except BaseException:
        project.close()
        raise
    return project


def _check_rows(project: Project, rows: list[dict[str, str]]) -> None:
    """An error unless the records of a project are these rows in this order."""
    remedy = "give the same table as before, or another path."
    if (n := project.n_records) != len(rows):
        problem = f"{project.path} has {n:,} records and the table {len(rows):,} rows"
        raise ValueError(f"{problem}; {remedy}")
    with closing(project.reader()) as db:
        stored = db.execute("SELECT fields FROM record ORDER BY id")
        for number, (row, (fields,)) in enumerate(zip(rows, stored, strict=True)):
            if row == (known := json.loads(fields)):
                continue
            differing = [name for name in known | row if known.get(name) != row.get(name)]
            problem = f"row {number:,} of the table (from 0) is not that of {project.path}"
            raise ValueError(f"{problem}: it differs in {listed(map(repr, differing))}; {remedy}")


class LabellingPage:
    """A page that is served; see `label`."""

    def __init__(self, page: Page, folder: Any = None) -> None:
        self._page, self._folder = page, folder
        self._service = page.service
        self._stopped = False

    @property
    def url(self) -> str:
        """The link, which opens the page once."""
        return self._page.url

    def labels(self) -> Any:
        """The label of each row of the table, -1 for rows without one; the last ones after
        `stop`.
        """
        return self._ask(lambda: self._service.decisions.label.astype(int))

    def scores(self) -> Any:
        """Scores of all rows by the latest ranker; None before the first one."""
        model = self._ask(lambda: self._service.model)
        return None if model is None else model.scores.copy()

    def _ask(self, question: Callable[[], Any]) -> Any:
        """The answer of the writer's thread; after its end nothing changes any more."""
        return question() if self._stopped else self._service.submit(question).result()

    def stop(self) -> None:
        """End the page. Decisions stay in the project, if one was named."""
        if self._stopped:
            return
        self._page.stop()
        self._stopped = True
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
