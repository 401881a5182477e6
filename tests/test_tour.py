"""The session in the README does what it says; those of docs/ are in test_docs."""

import re

import tour
from forerank.workflows.demo import write_tables


def test_the_list_in_the_readme(tmp_path):
    write_tables(tmp_path)
    assert tour.output_of(
        "forerank fit tumours.csv --target diagnosis -o my.forerank --quiet", tmp_path
    )
    page = tour.README.read_text()
    again = tour.replayed(page, tmp_path)
    assert [rounded(line) for line in again.splitlines()] == [
        rounded(line) for line in page.splitlines()
    ]


def rounded(line):
    return re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number[0]):.4f}", line)
