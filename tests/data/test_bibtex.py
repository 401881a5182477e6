"""BibTeX files: braces, macros and accents; an entry that cannot be read is named, and costs no
other entry.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forerank.data.bibtex import parse_bibtex
from forerank.data.latex import plain_address, plain_text
from forerank.data.readers import read_table
from forerank.exceptions import CsvProblem, DataFileError


def fields(text, *names):
    return [tuple(row.get(name, "") for name in names) for row in parse_bibtex(text).rows]


def test_values_of_all_forms():
    text = r"""
    @string{jmlr = {Journal of } # "Machine Learning"}
    @comment{ @article{no, title={No}} }
    @preamble{"\newcommand{\x}{y}"}
    An address, me@example.org, is text between entries.
    @Article{one, Title = {The {DNA} of {E}rd{\H o}s}, journal = jmlr, year = 2001,
       month = "10~" # jan,
       author = "Knuth, Donald E. and {Simon and Schuster} AND M{\"u}ller, J.",}
    @book(two, title = "A {"}quoted{"} title" year = {1999})
    """
    names = ("entry_type", "citation_key", "title", "journal", "year", "month", "author")
    assert fields(text, *names) == [
        (
            *("article", "one", "The DNA of Erdős", "Journal of Machine Learning", "2001"),
            *("10 January", "Knuth, Donald E.; Simon and Schuster; Müller, J."),
        ),
        ("book", "two", 'A "quoted" title', "", "1999", "", ""),
    ]


def test_keys_and_comments_as_people_write_them():
    text = """
    @misc{Smith 2000, title = {A}}
    @misc{, title = {B}}
    @misc{title = {C}}
    @misc{same, title = {D}, % 100 % sure
      % year = 2000,
      note = {half of {\\%}}}
    @misc{same, title = {E}, title = {F}}
    """
    assert fields(text, "citation_key", "title", "note") == [
        ("Smith 2000", "A", ""),
        ("", "B", ""),
        ("", "C", ""),
        ("same", "D", "half of %"),
        ("same", "E; F", ""),
    ]


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("@misc{b, title = {B, year = 2000}", "a brace opens here and never closes"),
        ("@misc{b, title = {B}", "a brace opens here and never closes"),
        ('@misc{b, title = "B}', "a quote opens here and never closes"),
        ("@misc{b, title = }", "a value in braces or quotes"),
        ("@misc{b, title {B}}", "a field such as 'year = 2020'"),
    ],
)
def test_a_broken_entry_costs_no_other(broken, problem):
    text = f"@misc{{a, title = {{A}}}}\n{broken}\n@misc{{c, title = {{C}}}}\n@misc{{d, year = 1}}\n"
    found = parse_bibtex(text)
    assert [row["citation_key"] for row in found.rows] == ["a", "c", "d"]
    assert found.notes[0].startswith("1 entry that cannot be read skipped: line 2")
    assert problem in found.notes[0]


def test_braces_that_close_in_a_later_entry():
    text = "@misc{a,\n title = {A}\n@misc{b,\n title = {B}}\n@misc{c, title = {C}}}\n"
    found = parse_bibtex(text)
    assert [row["citation_key"] for row in found.rows] == ["b", "c"]
    assert "closes in a later entry" in found.notes[0]


def test_entries_behind_a_per_cent_sign_are_noted():
    found = parse_bibtex("@misc{a, year = 1}\n% @misc{b, year = 2}\n@misc{c, year = 3}\n")
    assert [row["citation_key"] for row in found.rows] == ["a", "c"]
    assert found.notes == ["1 entry after a per cent sign skipped: line 2"]


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"{\'e}t\'{e} \'et{\'{e}}", "été été"),
        (r"\v{S}{\o}ren \c{c}a \k{a} {\'\i} \^{\j}", "Šøren ça ą í ĵ"),
        (r"\aa ngstr\"om {\AA} \ss{} stra{\ss}e", "ångström Å ß straße"),
        (r"\textbf{bold} \emph{and {nested}}", "bold and nested"),
        (r"5--10 --- ``quoted'' A~B \& 5\% \$3 a\_b", "5–10 — “quoted” A B & 5% $3 a_b"),
        (r"$\alpha$-, \beta- and $x^2 < \lambda$; $\lambda$", r"α-, β- and $x^2 < \lambda$; λ"),
        ("plain\n  text", "plain text"),
    ],
)
def test_latex(latex, text):
    assert plain_text(latex) == text


def test_addresses_keep_their_characters():
    assert plain_address(r"https://a.org/x--y~z\_1") == "https://a.org/x--y~z_1"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"just text", "a.bib, line 1: there is no BibTeX entry"),
        (b"\n@misc{a, title = {A}", "a.bib, line 2: a brace opens here and never closes; correct"),
        ("\n@misc{a, title = {é}}".encode("latin-1"), "a.bib, line 2: not UTF-8 text"),
    ],
)
def test_bad_files(tmp_path, data, message):
    path = tmp_path / "a.bib"
    path.write_bytes(data)
    with pytest.raises(DataFileError, match=re.escape(message)):
        read_table(path)


def test_macros_do_not_grow_without_limit():
    doubled = "".join(f"@string{{m{k + 1} = m{k} # m{k}}}\n" for k in range(60))
    found = parse_bibtex(f"@string{{m0 = {{ha}}}}\n{doubled}@misc{{a, title = m60}}")
    assert len(found.rows[0]["title"]) < 100
    assert "a macro of more than 2,000 characters" in found.notes[0]


def test_long_and_deep_values():
    (row,) = parse_bibtex(
        "@misc{a, title = {" + "{" * 20_000 + "x" * 100_000 + "}" * 20_001 + "}"
    ).rows
    assert row["title"] == "x" * 100_000


plain = st.text("abcé 12.,:;()", max_size=15).map(lambda text: " ".join(text.split()))
names = st.sampled_from(["title", "abstract", "journal", "note", "year"])


@given(st.lists(st.dictionaries(names, plain.filter(bool)), min_size=1, max_size=4))
def test_plain_entries_are_read_as_they_were(entries):
    lines = [
        f"@misc{{key{k}, "
        + ", ".join(f"{name} = {{{value}}}" for name, value in entry.items())
        + "}"
        for k, entry in enumerate(entries)
    ]
    found = parse_bibtex("\n".join(lines))
    expected = [
        {name: value.replace("''", "”") for name, value in entry.items()} for entry in entries
    ]
    assert [dict(list(row.items())[2:]) for row in found.rows] == expected
    assert found.notes == []


pieces = st.sampled_from(
    [
        *("@misc{", "@book(", "@string{", "@comment{", "@preamble{", "{", "}", ")", '"', "#", "="),
        *(",", "%", "\n", " ", "title", "k", "12", "\\", "\\'", "$", "@", "é"),
    ]
)


@given(st.lists(pieces, max_size=30).map("".join))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse_bibtex(text)
    except CsvProblem:
        return
    assert found.rows


@given(st.lists(pieces, max_size=20).map("".join))
def test_whatever_stands_before_an_entry_on_a_line_of_its_own(text):
    """The entry is read, or a note or an error tells of trouble; a comment may hold it."""
    try:
        found = parse_bibtex(f"{text}\n@misc{{last, title = {{T}}, year = 2000}}\n")
    except CsvProblem:
        return
    read = any(row.get("citation_key") == "last" for row in found.rows)
    assert read or found.notes or "@comment{" in text
