"""What the pages of reproductions are made of: claims with verdicts, tables, figures, numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

# Of pages that are published, in docs/papers/results.
INDEX = """# Pages of the reproductions

Written by `scripts/paper NAME --publish`, each with its pictures and the packed record of the run
behind it, from which `scripts/paper NAME --publish --page-only` makes the page anew and
`scripts/paper NAME --publish` takes an unfinished run up again, on any machine. The page on
stopping is that of `scripts/reviews-stopping`, with the same options.
"""


# On every page with times, below what was run.
TIMES = """Times are processor seconds of one thread, so that other work on the machine does not
count; published times are those of the paper's machine."""

# Cases of a group in which a claim fails, up to which a verdict names them.
FEW_CASES = 2


@dataclass(frozen=True)
class Claim:
    """A claim of a paper with its place, what is seen here, and whether it holds.

    `holds` may have a value for each case, such as a data set, or for pairs of a group and a case,
    which are listed by group; None: too little was run to say.
    """

    where: str
    text: str
    found: str
    holds: bool | Mapping[Any, bool] | None

    @property
    def verdict(self) -> str:
        if not isinstance(self.holds, Mapping):
            return {True: "yes", False: "NO", None: "cannot be said"}[self.holds]
        n_cases, n_fails = len(self.holds), list(self.holds.values()).count(False)
        if not self.holds:
            return "cannot be said"
        if not n_fails:
            return f"yes, on all {n_cases}" if n_cases > 1 else "yes"
        if n_fails == n_cases:
            return f"NO, on none of {n_fails}" if n_fails > 1 else "NO"
        return f"on {n_cases - n_fails} of {n_cases}; NOT on {_failing(self.holds)}"


def _failing(holds: Mapping[Any, bool]) -> str:
    """The cases that fail; of pairs of a group and a case the group, with its cases if few fail,
    and with their number otherwise.
    """
    groups: dict[str, list[str]] = {}
    for case, held in holds.items():
        group, name = case if isinstance(case, tuple) else (case, "")
        groups.setdefault(group, []).extend([] if held else [name])
    sizes = Counter(case[0] for case in holds if isinstance(case, tuple))
    parts = []
    for group, fails in groups.items():
        some = f"{len(fails)} of {sizes[group]}" if len(fails) > FEW_CASES else ", ".join(fails)
        parts += [f"{group} ({some})" if some else group] if fails else []
    return "; ".join(parts)


@dataclass(frozen=True)
class Page:
    """A page: what was run, the claims, titled sections, what is absent, what differs and why."""

    title: str
    run: str
    claims: Sequence[Claim]
    sections: Mapping[str, str]
    absent: str
    differences: str
    times: str = TIMES


def write_page(path: Path, page: Page, command: str, quick: str | None, provenance: str) -> Path:
    """Write a page as Markdown; `quick` says what a quick run did."""
    run = [f"Made by `{command}`. {page.run}", *([page.times] if page.times else [])]
    if quick:
        run.append(f"**A quick run ({quick}): its values only show that everything works.**")
    rows = [(c.where, c.text, c.verdict, c.found) for c in page.claims]
    claims = table(("in the paper", "claim", "holds here", "what is seen"), rows, "---")
    sections = {
        "What was run": "\n\n".join(run),
        "Verdicts": claims if rows else "",
        **page.sections,
        "Absent": page.absent,
        "What differs, and why": page.differences,
        "Where this was made": provenance,
    }
    text = [f"# {page.title}", *(f"## {name}\n\n{body}" for name, body in sections.items() if body)]
    path.write_text("\n\n".join(text) + "\n")
    return path


def write_index(folder: Path) -> None:
    """Write the list of the pages in a folder."""
    pages = sorted(folder.glob("*/*.md"))
    lines = [
        f"- [{page.read_text().splitlines()[0].removeprefix('# ')}]({page.parent.name}/{page.name})"
        for page in pages
    ]
    (folder / "index.md").write_text(INDEX + "\n" + "\n".join(lines or ["None yet."]) + "\n")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], align: str = "---:") -> str:
    """A Markdown table; the first column is text, the others are numbers unless `align` is ---."""
    lines = ["| " + " | ".join(head) + " |", "|---" + f"|{align}" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


@contextmanager
def figure(
    path: Path, n_rows: int = 1, n_columns: int = 1, *, size: tuple[float, float], **options: Any
) -> Iterator[tuple[Any, Any]]:
    """A figure with its panels, written to a file at the end of the block."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    options = {"figsize": size, "layout": "constrained", **options}
    drawn, panels = pyplot.subplots(n_rows, n_columns, **options)
    yield drawn, panels
    drawn.savefig(path, dpi=110)
    pyplot.close(drawn)


def spread(values: Any, form: str = ".4f", *, zero: bool = True) -> str:
    """Mean ± standard deviation; without the zero before the point if `zero` is false."""
    values = np.asarray(values, dtype=float)
    if values.size == 0:
        return "-"
    numbers = [values.mean(), *([values.std(ddof=1)] if values.size > 1 else [])]
    return " ± ".join(decimals(number, form, zero=zero) for number in numbers)


def decimals(value: float, form: str = ".4f", *, zero: bool = False) -> str:
    return format(value, form) if zero else format(value, form).removeprefix("0")


def bold(text: str, wanted: Any) -> str:
    return f"**{text}**" if wanted else text


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of log y in log x; NaN for fewer than two different x."""
    if len(set(x)) < 2:
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def compare_paired(a: Any, b: Any, level: float) -> int:
    """1 (-1) where the mean of a is significantly above (below) that of b by a paired t-test."""
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    if difference.size < 2 or np.ptp(difference) == 0.0:
        return 0
    if stats.ttest_1samp(difference, 0.0).pvalue >= level:
        return 0
    return 1 if difference.mean() > 0.0 else -1


def listed(items: Iterable[str]) -> str:
    return ", ".join(items) or "none"
