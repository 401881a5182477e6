"""Duplicates: by DOI and by title, and never by a chain of records that are different."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forerank.label.duplicates import duplicates, normal_doi, normal_title, year_of


@pytest.mark.parametrize(
    "doi",
    [
        *(
            "10.1000/Ab(1)c",
            "https://doi.org/10.1000/AB(1)C",
            "doi:10.1000/ab(1)c.",
            "DOI 10.1000/ab(1)c",
        ),
        *("http://dx.doi.org/10.1000%2Fab(1)c", "(10.1000/ab(1)c).", "10.1000/ab(1)c [doi]"),
    ],
)
def test_forms_of_a_doi(doi):
    assert normal_doi(doi) == "10.1000/ab(1)c"


def test_titles_without_case_accents_and_punctuation():
    assert normal_title("Über-große  STUDIES: a review?") == normal_title(
        "uber grosse studies – A Review"
    )
    assert normal_title("Editorial") == normal_title(" ... ") == ""
    assert normal_title("日本語の題") == "日本語の題"
    assert (year_of("c2004-05"), year_of("12005"), year_of("")) == ("2004", "", "")


def of(title="", doi="", year=""):
    return {"title": title, "doi": doi, "year": year}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([of("A b", "10.1000/x"), of("Other", "10.1000/X")], [None, 0]),
        ([of("A b", "10.1000/x"), of("A b", "10.1000/y")], [None, None]),
        ([of("A b", "10.1000/x"), of("A b")], [None, 0]),
        ([of("A b", year="2001"), of("A b", year="2002"), of("A b")], [None, None, 0]),
        # One without a DOI is the first of two that have different ones.
        ([of("A b"), of("A b", "10.1000/x"), of("A b", "10.1000/y")], [None, 0, None]),
        ([of("A b", year="2001"), of("A b", "10.1000/x"), of("A b", year="2002")], [None, 0, None]),
        ([of("Editorial"), of("Editorial")], [None, None]),
        ([of(), of()], [None, None]),
    ],
)
def test_small_cases(records, expected):
    assert duplicates([], records) == expected


def test_known_records_come_first():
    known = [of("A b"), of("A b"), of("C d", "10.1000/c")]
    assert duplicates(known, [of("a B!"), of("E f"), of("", "10.1000/C"), of("e f")]) == [
        0,
        None,
        2,
        4,
    ]


records = st.builds(
    of,
    st.sampled_from(["A b", "a  B", "C d", ""]),
    st.sampled_from(["", "", "10.1000/x", "10.1000/y"]),
    st.sampled_from(["", "2001", "2002"]),
)


@given(st.lists(records, max_size=8))
def test_groups_have_one_doi_and_nothing_else_is_merged(new):
    found = duplicates([], new)
    groups = {}
    for number, first in enumerate(found):
        assert first is None or (first < number and found[first] is None)
        groups.setdefault(number if first is None else first, []).append(new[number])
    for group in groups.values():
        assert len({record["doi"] for record in group} - {""}) <= 1
        by_title = [record for record in group if not record["doi"]]
        assert len({record["year"] for record in by_title} - {""}) <= 1
    for one, other in itertools.combinations(range(len(new)), 2):
        if new[one]["doi"] and new[one]["doi"] == new[other]["doi"]:
            assert found[other] is not None  # equal DOIs are always found


def test_number_of_lookups_is_linear(monkeypatch):
    calls = []
    original = duplicates.__globals__["_Earlier"]._fits
    monkeypatch.setattr(
        duplicates.__globals__["_Earlier"],
        "_fits",
        lambda *each: calls.append(1) or original(*each),
    )
    new = [of("Same title", f"10.1000/{k}") for k in range(500)] + [of("Same title")] * 500
    assert duplicates([], new)[500:] == [0] * 500
    assert len(calls) <= 4 * len(new)
