"""Text in other encodings than UTF-8."""

import gzip

import pandas as pd
import pytest

from forerank.data.encodings import usual_encoding
from forerank.data.readers import read_table
from forerank.exceptions import DataFileError
from tables import written

ACCENTS = "città;größe;t\n" + 'Zürich;1,5;a\nParis;2;"é\nè"\n' * 30_000


@pytest.mark.parametrize(
    "encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "utf-8-sig", "mac-roman"]
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_encodings(tmp_path, encoding, packed):
    path = tmp_path / f"a.csv{packed}"
    path.write_bytes((gzip.compress if packed else bytes)(ACCENTS.encode(encoding)))
    plain = tmp_path / "plain.csv"
    plain.write_text(ACCENTS, encoding="utf-8", newline="")
    expected = read_table(plain)
    assert expected.columns.tolist() == ["città", "größe", "t"]
    pd.testing.assert_frame_equal(read_table(path, encoding=encoding), expected)
    if encoding in ("utf-16", "utf-8-sig"):  # a byte order mark is enough
        pd.testing.assert_frame_equal(read_table(path), expected)
        assert usual_encoding(path, "cp1252") is None
    else:
        with pytest.raises(DataFileError) as caught:
            read_table(path)
        assert caught.value.arguments == {
            "encoding": "utf-16-le" if encoding == "utf-16-le" else "cp1252"
        }
        assert "pass the encoding" in str(caught.value)
        assert usual_encoding(path, encoding) == encoding
    assert usual_encoding(plain, encoding) is None


def test_encodings_that_are_none(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,\x81\n")
    for encoding in ("utf8000", "base64", "rot13"):
        with pytest.raises(DataFileError, match=f"there is no encoding '{encoding}'"):
            read_table(path, encoding=encoding)
    with pytest.raises(DataFileError, match="not text in the given encoding"):
        read_table(path, encoding="cp1252")
    with pytest.raises(DataFileError, match="encoding applies to text files only"):
        read_table(written(tmp_path, ".parquet"), encoding="cp1252")
