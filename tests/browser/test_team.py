"""Two people in two browsers: no double work, and nothing of the other before both have read."""

import pytest

from label_page import go, made_records, open_page, press, read, saved, title

PEOPLE = ["--team", "Ada,Ben,Cleo"]


def reply(page, path):
    return page.evaluate("(path) => fetch(path).then((reply) => reply.json())", path)


def problems(*pages):
    return [problem for page in pages for problem in page.problems]


def test_single_reading_without_double_work(browser, serve):
    server = serve(made_records(80, 15, seed=3), *PEOPLE)
    ada, ben = open_page(browser, server, 0), open_page(browser, server, 1)
    hers, his = {}, {}
    for _ in range(6):  # in turns
        hers |= read(ada, 2)
        his |= read(ben, 2)
    assert len(hers) == len(his) == 12
    assert not hers.keys() & his.keys()

    # Ada closes her browser: Ben gets the records that she held.
    saved(ada)
    saved(ben)
    held = title(ada)
    assert held not in his
    ada.context.close()
    for _ in range(40):
        if title(ben) == held:
            break
        his |= read(ben, 1)
    assert title(ben) == held
    saved(ben)
    go(ben, "t", "Team")
    ben.wait_for_selector("table")
    names = ben.locator("tbody th bdi").all_inner_texts()
    labelled = ben.locator("tbody td.number:nth-child(2)").all_inner_texts()
    expected = {"Ada": 12, "Ben": len(his), "Cleo": 0}
    assert dict(zip(names, map(int, labelled), strict=True)) == expected
    assert problems(ada, ben) == []


def test_owner_adds_a_person(browser, serve):
    server = serve(made_records(60, 8, seed=4), *PEOPLE)
    ada = open_page(browser, server, 0)
    go(ada, "t", "Team")
    ada.wait_for_selector("#person-name")
    ada.locator("#person-name").fill("Dora <i>D.</i>")
    ada.keyboard.press("Enter")
    ada.wait_for_selector("#person-link")
    server.links.append(ada.locator("#person-link").input_value())
    assert "Dora <i>D.</i>" in ada.locator("tbody").inner_text()
    dora = open_page(browser, server, 3)
    assert len(read(dora, 2)) == 2
    go(dora, "w", "Sweep")
    dora.wait_for_function("() => document.querySelectorAll('.sweep input').length === 20")
    swept = dora.locator(".sweep label").first.inner_text()
    dora.keyboard.press("d")
    dora.wait_for_function(
        "(title) => document.querySelector('.sweep label')?.innerText !== title", arg=swept
    )
    dora.wait_for_function("() => document.querySelectorAll('.sweep input').length === 20")
    assert problems(ada, dora) == []


@pytest.fixture(scope="module")
def double(serve):
    return serve(made_records(40, 8, seed=5), *PEOPLE, "--mode", "double")


def test_blinded_double_reading_and_a_conflict(browser, double):
    ada, ben, cleo = (open_page(browser, double, person) for person in range(3))
    # Ada reads one record and notes something about it.
    first = title(ada)
    ada.keyboard.press("n")
    ada.keyboard.type("secret remark")
    ada.keyboard.press("Control+Enter")
    ada.wait_for_selector(".note")
    press(ada, "r")
    saved(ada)

    # Ben sees nothing of that anywhere.
    for path in ("history", "search", "conflicts", "team", "stop", "state", "queue?n=20&have="):
        text = str(reply(ben, f"api/{path}"))
        assert "secret remark" not in text
        assert "Ada" not in text or path == "team"
    assert reply(ben, "api/history")["total"] == 0
    assert {each["status"] for each in reply(ben, "api/search")["results"]} <= {"unread", "leased"}
    people = {each["name"]: each for each in reply(ben, "api/team")["people"]}
    assert people["Ada"]["labelled"] == 0

    # Ben reads until he has had the same record, and decides otherwise.
    for _ in range(40):
        if title(ben) == first:
            break
        press(ben, "i")
    assert title(ben) == first
    press(ben, "i")
    saved(ben)

    # The conflict counts as unread; Ben, who has read it, does not resolve it, but Cleo may.
    go(ben, "c", "Conflicts")
    ben.wait_for_selector(".conflict")
    shown = ben.locator(".conflict").inner_text()
    assert "secret remark" in shown  # both are in
    assert "Another person resolves" in shown
    assert reply(ben, "api/state")["counts"]["conflicts"] == 1
    go(cleo, "c", "Conflicts")
    cleo.wait_for_selector(".conflict .label-row button")
    cleo.locator(".conflict .label-row button.relevant").focus()
    cleo.keyboard.press("Enter")
    cleo.wait_for_function("() => /There are no conflicts/.test(document.body.innerText)")
    counts = reply(cleo, "api/state")["counts"]
    assert (counts["conflicts"], counts["read"], counts["relevant"]) == (0, 1, 1)
    assert problems(ada, ben, cleo) == []


def test_screens_of_a_team_are_accessible(browser, double):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    for theme in ("light", "dark"):
        page = open_page(browser, double, color_scheme=theme)
        page.set_viewport_size({"width": 320, "height": 640})
        for name, ready in (("conflicts", "[role=status]"), ("team", "table")):
            page.evaluate("(name) => { location.hash = name; }", name)
            page.wait_for_selector(f"body[data-screen={name}] #screen {ready}")
            found = axe.Axe().run(page).response["violations"]
            assert [each["id"] for each in found] == []
            scrolls = "() => document.documentElement.scrollWidth - innerWidth"
            assert page.evaluate(scrolls) <= 0
        page.context.close()
