"""Whole sittings by keyboard: nothing is lost over reloads, kills and a lost connection."""

import csv

import numpy as np
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
    page.wait_for_function("() => document.activeElement.id === 'query'")
    with page.expect_response(lambda reply: "q=asthma&status=&" in reply.url):
        page.keyboard.type("asthma")
    with page.expect_response(lambda reply: "q=asthma&status=unread" in reply.url):
        page.locator("#status").select_option("unread")
    found = page.locator(".entries .entry-title").first
    page.wait_for_function(
        "() => document.querySelector('.entries .badge')"
        " && !document.querySelector('.entries .badge:not(.unread)')"
    )
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
    page.context.set_offline(True)
    given = read(page, 1)
    page.context.clear_cookies()
    page.context.set_offline(False)
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


def test_undo_of_an_earlier_sitting(browser, serve):
    """A label that replaced another one is undone to that one, also after a reload."""
    server = serve(made_records(60, 12, seed=8))
    page = open_page(browser, server)
    first = title(page)
    press(page, "r")
    go(page, "h", "History")
    page.locator(".entries button", has_text="Change").first.click()
    page.locator(".label-row button.irrelevant").click()
    page.wait_for_selector(".entries li:nth-child(2)")
    saved(page)
    page.reload()
    page.wait_for_selector(".entries li:nth-child(2)")

    # Without a connection nothing is undone, and the page says so.
    page.context.set_offline(True)
    page.keyboard.press("u")
    page.wait_for_selector(".notice.problem")
    assert "Nothing was undone" in page.locator(".notice.problem").inner_text()
    page.context.set_offline(False)
    page.keyboard.press("u")
    page.wait_for_selector(".entries li.undone")
    go(page, "s", "Search")
    page.locator("#query").fill(first)
    page.wait_for_selector(".badge.relevant")
    page.locator("h1").click()
    page.keyboard.press("u")
    row = page.locator(".entries li", has=page.get_by_text(first, exact=True))
    row.locator(".badge.unread").wait_for()
    page.evaluate("() => { location.hash = 'read'; }")
    page.wait_for_selector("#screen .record h1")
    assert title(page) == first
    page.context.close()


def test_hasty_keys_with_a_failing_connection(browser, serve):
    """Labels, skips and undos in any order leave what a list with push and pop would."""
    server = serve(made_records(200, 30, seed=7))
    page = open_page(browser, server)
    rng = np.random.default_rng(0)
    done = []
    for number in range(90):
        if number % 15 == 5:
            page.context.set_offline(True)
        if number % 15 == 12:
            page.context.set_offline(False)
        if number % 40 == 39:
            page.context.set_offline(False)
            saved(page)
            page.reload()
            page.wait_for_selector("#screen .record h1")
        key = rng.choice(list("riiisuu"))
        if key != "u":
            done.append((title(page), {"r": 1, "i": 0, "s": None}[key]))
            press(page, key)
        elif done:
            undone, _ = done.pop()
            page.keyboard.press("u")
            page.wait_for_function(
                "(title) => document.querySelector('#screen h1').innerText === title", arg=undone
            )
    page.context.set_offline(False)
    saved(page)
    expected = {name: value for name, value in done if value is not None}
    reply = page.evaluate("() => fetch('api/search?limit=200').then((reply) => reply.json())")
    labels = {each["title"]: each["mine_label"] for each in reply["results"]}
    assert {name: value for name, value in labels.items() if value is not None} == expected
    skipped = {each["title"] for each in reply["results"] if each["status"] == "skipped"}
    assert skipped == {name for name, value in done if value is None}
    page.context.close()
