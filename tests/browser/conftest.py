"""A browser for each file of tests, and servers that end with their test."""

import pytest

from label_page import Server, browser_program, made_records, opened_browser, write_table


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("playwright", reason="the tests of the page need playwright")
    if browser_program() is None:
        pytest.skip("the tests of the page need Chromium or Chrome (or FORERANK_BROWSER)")
    with opened_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """A function that starts a server on a table of records."""
    servers = []

    def start(records=None, *options):
        folder = tmp_path_factory.mktemp("label")
        table = write_table(folder / "records.csv", records or made_records(120, 20))
        servers.append(Server(table, *options))
        return servers[-1]

    yield start
    for server in servers:  # all at once, since each takes a while to end
        server.interrupt()
    for server in servers:
        server.close()
