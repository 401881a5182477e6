"""Whole sittings by keyboard: nothing is lost over reloads, kills and a lost connection."""

import csv

import pytest

from label_page import go, made_records, open_page, press, read, saved, title

SUMMARY = "#screen .counts dd"


def download(page, name):
    """Lines of an exported file, asked for with the Enter key."""
    page.locator(f'a[href="api/export/{name}"]').focus()
    with page.expect_download() as started:
        page.keyboard.press("Enter")
    with open(started.value.path(), encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_journey_by_keyboard(browser, serve):
    server = serve(made_records(120, 20))
    page = open_page(browser, server)
    given = read(page, 12)

    # Undo brings the record back, and it is labelled anew.
    last = list(given)[-1]
    page.keyboard.press("u")
    page.wait_for_function("t => document.querySelector('#screen h1').innerText === t", arg=last)
    given[last] = 1 - given[last]
    press(page, "r" if given[last] else "i")

    # A reload shows the same record.
    saved(page)
    before = title(page)
    page.reload()
    page.wait_for_selector("#screen .record h1")
    assert title(page) == before
    given |= read(page, 10)

    # Keys pressed while the server is gone are kept, and sent when it is back.
    saved(page)
    server.kill()
    given |= read(page, 3)
    page.wait_for_selector("#saving.unsaved")
    assert page.locator("#saving").inner_text().startswith("3 decisions not saved yet")
    shown = title(page)
    server.start()
    saved(page)
    assert title(page) == shown
    page.goto(server.links[0])  # the link of the second start works as well
    page.wait_for_selector("#screen .record h1")
    given |= read(page, 5)

    # Search, and label out of turn.
    page.keyboard.press("/")
    page.keyboard.type("asthma")
    page.wait_for_function("() => document.querySelector('.entry-title')?.innerText.match(/./)")
    page.locator("#status").select_option("unread")
    found = page.locator(".entries .entry-title").first
    page.wait_for_function("() => document.querySelectorAll('.entries .badge.unread').length > 0")
    page.locator("#query").focus()
    page.keyboard.press("ArrowDown")
    searched = found.inner_text()
    page.keyboard.press("r")
    page.wait_for_selector(".entries li:first-child .badge.relevant")
    given[searched] = 1
    assert len(given) == 31

    go(page, "p", "When to stop")
    page.wait_for_selector(SUMMARY)
    n_relevant = sum(given.values())
    assert page.locator(SUMMARY).all_inner_texts() == [str(n_relevant), "31", "89"]

    go(page, "e", "Export")
    rows = download(page, "csv")
    labelled = {row["title"]: int(row["forerank_label"]) for row in rows if row["forerank_label"]}
    assert labelled == given
    assert len(rows) == 120
    # The browser reports requests that failed while the server was gone; nothing else.
    assert [each for each in page.problems if "ERR_" not in each] == []


@pytest.fixture(scope="module")
def shared_server(serve):
    return serve(made_records(150, 25, seed=1))


def events(page, kind="label"):
    """Events of a kind, from the server."""
    reply = page.evaluate("fetch('api/history?limit=1000').then((reply) => reply.json())")
    return [event for event in reply["events"] if event["kind"] == kind]


def test_presses_without_connection_are_sent_once(browser, shared_server):
    page = open_page(browser, shared_server)
    n_before = len(events(page))
    page.context.set_offline(True)
    given = read(page, 5)
    page.wait_for_selector("#saving.unsaved")
    assert page.locator("#saving").inner_text().startswith("5 decisions not saved yet")
    page.context.set_offline(False)
    saved(page)
    taken = events(page)[: len(events(page)) - n_before]
    assert {event["title"]: event["value"] for event in taken} == given
    assert len(taken) == 5
    page.context.close()


def test_session_that_ended_and_came_back(browser, shared_server):
    page = open_page(browser, shared_server)
    n_before = len(events(page))
    cookies = page.context.cookies()
    page.context.clear_cookies()
    given = read(page, 1)
    page.wait_for_selector("#blocked")
    assert "1 decision not saved yet" in page.locator("#saving").inner_text()
    shown = title(page)
    page.keyboard.press("r")  # nothing is decided meanwhile
    assert title(page) == shown
    page.context.add_cookies(cookies)
    saved(page)
    page.wait_for_selector("#blocked", state="detached")
    taken = events(page)[: len(events(page)) - n_before]
    assert {event["title"]: event["value"] for event in taken} == given
    page.context.close()


def test_decision_whose_answer_was_lost_is_kept_once(browser, shared_server):
    page = open_page(browser, shared_server)
    n_before = len(events(page))
    lost = []

    def lose(route):
        lost.append(route.fetch().status)  # the server has it; the page does not learn of that
        route.abort()

    page.route("**/api/events", lose, times=2)
    given = read(page, 2)
    page.wait_for_selector("#saving.unsaved")
    saved(page)
    taken = events(page)[: len(events(page)) - n_before]
    assert lost == [200, 200]
    assert {event["title"]: event["value"] for event in taken} == given
    assert len(taken) == len({event["uuid"] for event in taken}) == 2
    page.context.close()
