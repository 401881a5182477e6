"""Items command/report* and command/demo: the page of a report and its pictures."""

import base64
import re
import shlex
from html.parser import HTMLParser

import numpy as np

from recording.commands import TARGET
from recording.fields import Text
from recording.items import item
from recording.workspace import content, run, workspace

PICTURE = re.compile(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)")


class VisibleText(HTMLParser):
    """Visible text of a page, a line per element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.tag = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tag = tag

    def handle_endtag(self, tag: str) -> None:
        self.tag = ""

    def handle_data(self, data: str) -> None:
        if self.tag not in ("style", "script") and data.strip():
            self.lines.append(" ".join(data.split()))


def page_parts(page: str) -> dict:
    """Visible text of a page, its source without pictures, and its pictures."""
    pictures = [base64.b64decode(each).decode() for each in PICTURE.findall(page)]
    source = PICTURE.sub("<picture>", page)
    return {
        "text": "\n".join(VisibleText(source).lines),
        "source": Text(source, figures=False),
        "pictures": {
            str(k): {"svg": picture.encode(), "lines": np.array(coordinates(picture))}
            for k, picture in enumerate(pictures)
        },
    }


def coordinates(picture: str) -> list[float]:
    """Coordinates of the lines and markers of a picture without its texts, which are reworded."""
    without = re.sub(r'<g id="text_\d+">.*?</g>\s*</g>', "", picture, flags=re.DOTALL)
    drawn = re.findall(r'<path d="([^"]*)" clip-path', without)
    return [float(each) for path in drawn for each in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", path)]


def report(line: str, page: str) -> dict:
    """Output of a report and the parts of its page."""
    found = run("report", *shlex.split(line), "-o", page)
    path = workspace() / page
    return {**found, **(page_parts(path.read_text()) if path.exists() else {})}


item("command/report", f"train.csv {TARGET} --folds 3 --drop note", "page.html")(report)
item(
    "command/report-parquet",
    f"train.parquet {TARGET} --folds 3 --ranker PairwiseRanker --metric recall@40"
    " --against TopPush --json",
    "page-recall.html",
)(report)
item(
    "command/report-graded",
    "queries.svm --ranker PairwiseRanker --folds 3 --metric ndcg@5",
    "page-graded.html",
)(report)


@item("command/demo")
def demo() -> dict:
    found = run("demo", "-o", "demo")
    files = sorted(path.name for path in (workspace() / "demo").iterdir())
    written = {"ranked": content("demo/ranked.csv"), "roc": content("demo/roc.png")}
    return {**found, "files": files, **written}
