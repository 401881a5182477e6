"""The session of docs/files.md does what the page says."""

import os
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tour
from forerank.demo import write_tables

README = tour.PAGE.parent.parent / "README.md"
needs_data = pytest.mark.skipif(not os.environ.get("FORERANK_DATA"), reason="FORERANK_DATA is not set")


@needs_data
def test_the_recorded_session_happens_again(tmp_path):
    tour.write_files(tmp_path)
    page = tour.PAGE.read_text()
    again = tour.replayed(page, tmp_path)
    number = re.compile(r"-?\d+\.\d+")
    # The words are the same, and the figures, but for the seconds and the last digits.
    without_seconds = [re.sub(r", \d+\.\d s\n", ", SECONDS\n", text) for text in (page, again)]
    page_words, again_words = (number.sub("NUMBER", text) for text in without_seconds)
    assert again_words == page_words
    page_numbers, again_numbers = (np.array(number.findall(text), dtype=float) for text in without_seconds)
    assert_allclose(again_numbers, page_numbers, rtol=1e-3, atol=2e-4)
    assert page_numbers.size > 100


def test_the_list_in_the_readme(tmp_path):
    write_tables(tmp_path)
    assert tour.output_of("forerank fit tumours.csv --target diagnosis -o my.forerank --quiet", tmp_path)
    page = README.read_text()
    again = tour.replayed(page, tmp_path)
    assert [rounded(line) for line in again.splitlines()] == [rounded(line) for line in page.splitlines()]


def rounded(line):
    return re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number[0]):.4f}", line)


@needs_data
def test_bank_is_the_table_of_the_repository():
    bank = tour.bank_table()
    assert bank.shape == (45_211, 17)
    assert (bank["y"] == "yes").sum() == 5_289
    first = bank.iloc[0].to_dict()
    assert (first["age"], first["job"], first["balance"], first["month"]) == (58, "management", 2143, "may")
    assert bank.nunique()[["job", "marital", "education", "month", "poutcome"]].tolist() == [12, 3, 4, 12, 4]
