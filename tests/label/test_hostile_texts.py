"""Records with hostile texts: nothing breaks, nothing is lost, nothing becomes a formula."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from forerank.label.exporting import write_csv
from forerank.label.importing import read_records
from label_service import event, make_client, send, service_of

csv.field_size_limit(10_000_000)
PARTS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</textarea><svg/onload=x>",
    "=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r\n=1", "＝1", "\u200b=1", "'=1",
    "\u202egpj.exe", "\u2066\u2069", "\x00", "\x1b[31m", "\ud800", "\udfff\ud800", "\ufeff",
    "'; DROP TABLE event; --", "{{7*7}}", "${x}", "%s%n", "\\u0000", "\u0130\u00df",
    "\uffff", "ﷺ" * 50, "🙂" * 30,
    "javascript:alert(1)", "data:text/html,x", "TY  - JOUR\r\nER  - ", "a" * 2000, "", " ", "\n\n",
]  # fmt: skip
# Characters with which a spreadsheet begins a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def hostile_frame(n=1000, seed=0):
    rng = np.random.default_rng(seed)

    def text():
        return "".join(rng.choice(PARTS, int(rng.integers(1, 5))))

    names = ("title", "abstract", "authors", "url", "other =1+1")
    columns = {name: [text() for _ in range(n)] for name in names}
    columns["abstract"][0] = "<script>" * 125_000  # a megabyte
    columns["title"][1] = "=" + "9" * 1_000_000
    # Of the dtype object: texts of pandas cannot have lone surrogates.
    return pd.DataFrame(columns, dtype=object)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "made.forerank-project"
    with service_of(path, frame=hostile_frame()) as made:
        yield made


@pytest.fixture
def client(service):
    return make_client(service)


def test_every_record_is_shown_as_it_was(service, client):
    frame = hostile_frame()
    for record in range(1, 1001):
        shown = client.get(f"/api/records/{record}").json
        given = frame["abstract"][record - 1].replace("\x00", "�")
        assert _plain(shown["abstract"]) == _plain(given)


def _plain(text):
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("?", "�")


def test_replies_stay_moderate(client):
    reply = client.get("/api/queue?n=20")
    assert len(reply.body) < 10_000_000
    assert reply.json["records"]


@pytest.mark.parametrize("text", PARTS)
def test_search_notes_tags_and_names_take_any_text(service, client, text):
    from urllib.parse import quote

    query = quote(text.encode("utf-8", "replace"))
    assert client.get(f"/api/search?q={query}&limit=3").status == 200
    assert client.get(f"/api/history?q={query}").status == 200
    events = [event("note", 5, text), event("tags", 5, [text])]
    reply = client.post("/api/events", {"events": events})
    assert reply.status == 200
    assert reply.json["refused"] == []
    assert client.post("/api/settings", {"shared": {"criteria": text}}).status == 200
    theme = {"mine": {"theme": f"x{text}"}}
    assert client.post("/api/settings", theme).status == 400
    assert client.get("/api/history").status == 200


def test_exports_have_no_cell_that_is_a_formula(service, client):
    send(service, 1, event("note", 3, "=1+1"), event("tags", 3, ["@x", "-y"]))
    for name in ("csv", "rest", "prisma"):
        body = client.get(f"/api/export/{name}").body.decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(body, newline="")))
        bad = [cell for row in rows for cell in row if cell.startswith(FORMULA)]
        assert all(_is_number(cell) for cell in bad)
        invisible = "\u200b\ufeff \x00\u202e\u2066\u2069\x1b"
        hidden = [c for row in rows for c in row if c.lstrip(invisible).startswith(FORMULA[:4])]
        assert all(_is_number(cell) for cell in hidden)


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_cells_of_a_workbook_are_texts_or_numbers(client):
    import openpyxl

    body = client.get("/api/export/xlsx").body
    book = openpyxl.load_workbook(io.BytesIO(body))
    kinds = {cell.data_type for row in book["records"].iter_rows() for cell in row}
    assert kinds <= {"s", "n", "inlineStr"}


def test_an_export_is_read_again_with_its_labels(service, client, tmp_path):
    send(service, 1, event("label", 8, 1), event("label", 9, 0))
    for name in ("csv", "ris"):
        path = tmp_path / f"again.{name}"
        path.write_bytes(client.get(f"/api/export/{name}").body)
        found = read_records(path)
        assert len(found.fields) == 1000
        assert found.labels[7:9] == [1, 0]


def test_events_are_json_lines(service, client):
    lines = client.get("/api/export/events").body.splitlines()
    assert len(lines) == service.decisions.n_events
    assert all(json.loads(line)["uuid"] for line in lines)


def test_write_csv_of_nothing():
    file = io.BytesIO()
    write_csv([], file)
    assert file.getvalue().startswith(b"\xef\xbb\xbf")
