"""The tables of docs/papers/index.md: every name, test and section of a page in them exists."""

import re
from pathlib import Path

import pytest

from test_docs import resolved

ROOT = Path(__file__).parent.parent
INDEX = (ROOT / "docs" / "papers" / "index.md").read_text()
PAPERS = re.findall(r"^### In (\w+)$", INDEX, re.M)
# What each paper numbers: equations, theorems and the like, tables, figures. The last number, or
# all of them.
NUMBERED = {
    "shen2013": {"eq.": 5, "Theorem": 1, "Algorithm": 1, "Table": 5, "Figure": 3},
    "donmez2009": {"eq.": 8, "Table": 2, "Figure": 3},
    "li2014": {"eq.": 9, "Theorem": 3, "Proposition": 1, "Algorithm": 1, "Table": 2, "Figure": 1},
    "kotlowski2011": {
        "eq.": 14,
        "Lemma": ["3.1"],
        "Theorem": ["3.1", "4.1"],
        "Table": 1,
        "Figure": 1,
    },
    "raykar2007": {"eq.": 11, "Table": 4, "Figure": 3},
}


def rows(paper):
    table = INDEX.partition(f"### In {paper}\n")[2].partition("\n### ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[1:]]


@pytest.mark.parametrize("paper", NUMBERED)
def test_everything_numbered_has_a_row(paper):
    places = ", ".join(row[0] for row in rows(paper))
    places = re.sub(r"eqs\. (\d+) to (\d+)", lambda m: _listed(int(m[1]), int(m[2])), places)
    for kind, numbers in NUMBERED[paper].items():
        every = numbers if isinstance(numbers, list) else range(1, numbers + 1)
        missing = [k for k in every if not re.search(rf"{re.escape(f'{kind} {k}')}\b", places)]
        assert missing == [], f"{paper}, {kind}"
    assert paper in PAPERS


def _listed(first, last):
    return ", ".join(f"eq. {k}" for k in range(first, last + 1))


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_row_leads_somewhere(paper):
    for row in rows(paper):
        assert len(row) == 4, row
        assert all(row), row
        place, _, where, shown = row
        names = re.findall(r"`([^`]+)`", where)
        assert names, f"{paper}, {place}: no name"
        for name in names:
            resolved(f"forerank.{name}")
        tests, sections = re.findall(r"`([^`]+)`", shown), re.findall(r"page: ([^;|]+)", shown)
        assert tests or sections, f"{paper}, {place}: no test and no section of a page"
        for test in tests:
            file, _, name = test.partition("::")
            assert f"def {name}(" in (ROOT / file).read_text(), f"{paper}, {place}: {test}"
        folder = ROOT / "benchmarks" / "papers" / paper
        written = "".join(path.read_text() for path in folder.glob("*.py"))
        for section in sections if written else ():
            named = section.strip() == "Absent" or f'"{section.strip()}' in written
            assert named, f"{paper}, {place}: {section}"
