"""Every screen of one reader: accessibility, narrow windows, keys, lists, charts."""

import pytest

from label_page import PATIENCE, go, made_records, open_page, press, read, saved, title

# Letters of the screens after "g", with their headings.
SCREENS = {
    "read": ("r", None),
    "sweep": ("w", "Sweep"),
    "search": ("s", "Search"),
    "history": ("h", "History"),
    "stop": ("p", "When to stop"),
    "export": ("e", "Export"),
    "settings": ("k", "Settings"),
}
# What a screen shows when it is complete.
CONTENTS = {
    "read": ".record h1",
    "sweep": ".sweep input",
    "search": ".entries li",
    "history": ".entries li",
    "stop": ".charts svg",
    "export": ".entries li",
    "settings": ".keys button",
}
CHARTS = ".charts figure"
# Buttons of an event in the history.
BUTTONS = ("Change", "Undo")
WIDE = {"width": 1280, "height": 700}


@pytest.fixture(scope="module")
def server(serve):
    return serve(records())


def records():
    """Records of which some are short, some long, and some without an abstract."""
    for number, record in enumerate(made_records(200, 30, seed=2)):
        long = record["abstract"] * (1, 1, 6, 1, 0)[number % 5]
        yield record | {"abstract": long, "journal": f"Journal of {number % 4}"}


@pytest.fixture
def page(browser, server):
    opened = open_page(browser, server)
    yield opened
    problems = opened.problems
    opened.context.close()
    assert problems == []


def show(page, name):
    page.evaluate("(name) => { location.hash = name; }", name)
    page.wait_for_selector(f"body[data-screen={name}] {CONTENTS[name]}")


@pytest.fixture(scope="module")
def labelled(browser, server):
    """The server after 25 labels, of both kinds, a note and a tag."""
    page = open_page(browser, server)
    read(page, 25)
    page.keyboard.press("n")
    page.keyboard.type("Adults only? <b>see</b> page 3")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("t")
    page.keyboard.type("adults, full text")
    page.keyboard.press("Enter")
    page.wait_for_selector(".tags li")
    saved(page)
    page.wait_for_function("() => /ranking knows/.test(document.body.innerText)")
    page.context.close()
    return server


def violations(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility(browser, labelled, theme):
    pytest.importorskip("axe_playwright_python")
    page = open_page(browser, labelled, color_scheme=theme)
    for name in SCREENS:
        show(page, name)
        assert violations(page) == [], name
    show(page, "read")
    for key in "?nt":
        page.keyboard.press(key)
        page.wait_for_selector("dialog[open]")
        assert violations(page) == [], key
        page.keyboard.press("Escape")
    for key in "hc":  # the words of the model, the criteria
        page.keyboard.press(key)
    page.wait_for_selector(".weights li")
    page.wait_for_selector(".criteria")
    assert violations(page) == []
    show(page, "history")
    page.locator(".entries button", has_text="Change").first.click()
    assert violations(page) == []
    show(page, "search")
    page.locator(".opener").first.click()
    page.wait_for_selector(".opened article")
    assert violations(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    page.locator("#menu").click()
    assert violations(page) == []
    page.context.close()


# A narrow phone, and a window of 1280 x 800 pixels at 200 %.
WINDOWS = {
    "320 px": {"viewport": {"width": 320, "height": 640}},
    "200 %": {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
}


@pytest.mark.parametrize("window", WINDOWS)
def test_no_horizontal_scrolling(browser, labelled, window):
    page = open_page(browser, labelled, **WINDOWS[window])
    for name in SCREENS:
        show(page, name)
        sizes = page.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert sizes[0] <= sizes[1], name
    page.context.close()


@pytest.mark.parametrize("window", [*WINDOWS, "wide"])
def test_buttons_do_not_move(browser, labelled, window):
    page = open_page(browser, labelled, **WINDOWS.get(window, {}))
    boxes, heights = set(), set()
    for _ in range(8):
        box = page.locator("#bar").bounding_box()
        buttons = [each.bounding_box() for each in page.locator("#bar button").all()]
        boxes.add(str([box, *buttons]))
        heights.add(page.evaluate("() => document.documentElement.scrollHeight"))
        press(page, "i")
    assert len(heights) > 1  # records of different lengths, with and without a scroll bar
    assert len(boxes) == 1
    for _ in range(8):
        press(page, "u")
    saved(page)
    page.context.close()


def test_rebound_keys_and_presets(page):
    go(page, "k", "Settings")
    row = page.locator(".keys li", has_text="Relevant").first.locator("button")
    row.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("i")  # the key of "Irrelevant"
    page.wait_for_function("() => /choose another/.test(document.body.innerText)")
    page.keyboard.press("Enter")
    page.keyboard.press("y")
    page.wait_for_function("() => document.querySelector('.keys kbd').innerText === 'y'")
    go(page, "r", title_of_read(page))
    assert "y" in page.locator("#bar button.relevant kbd").inner_text()
    before = title(page)
    page.keyboard.press("r")  # no longer bound
    assert title(page) == before
    press(page, "y")
    press(page, "u")
    go(page, "k", "Settings")
    page.locator("#preset").select_option("rayyan")
    page.wait_for_function("() => document.querySelector('.keys kbd').innerText === 'i'")
    page.locator(".keys button").first.focus()
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_selector("#bar button.relevant kbd")
    assert page.locator("#bar button.relevant kbd").inner_text() == "i"
    assert page.locator("#bar button.irrelevant kbd").inner_text() == "e"
    press(page, "e")
    press(page, "z")
    show(page, "settings")
    page.locator("#preset").select_option("default")
    page.wait_for_function("() => document.querySelector('.keys kbd').innerText === 'r'")


def title_of_read(page):
    """Heading of the screen "Read": the title of the record that comes next."""
    show(page, "read")
    return title(page)


def test_theme_is_kept(page):
    show(page, "settings")
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.locator("#theme").select_option("dark")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    dark = page.evaluate(colour)
    assert dark != light
    page.wait_for_selector(".said")
    page.reload()
    page.wait_for_selector(".keys button")
    assert page.evaluate(colour) == dark
    page.locator("#theme").select_option("")
    page.wait_for_selector(".said")


def test_words_criteria_and_tags_of_the_project(page, labelled):
    show(page, "settings")
    page.locator("#relevant-words").fill("asthma\nlow-dose (oral)\nair*")
    page.locator("#irrelevant-words").fill("soil")
    page.locator("#criteria").fill("Randomised trials in adults.")
    page.locator("#project-tags").fill("adults\nchildren")
    page.locator("form button", has_text="Save").click()
    page.wait_for_selector(".said")
    show(page, "search")
    page.locator("#query").fill("asthma airway")
    page.wait_for_function(
        "() => /^[1-9]\\d? record/.test(document.querySelector('#screen [role=status]').innerText)"
    )
    page.locator(".opener").first.click()
    page.wait_for_selector(".opened mark.word-relevant")
    marked = set(page.locator(".opened mark.word-relevant").all_inner_texts())
    assert {each.lower() for each in marked} <= {"asthma", "airway"}
    show(page, "read")
    page.keyboard.press("c")
    assert page.locator(".criteria-text").inner_text() == "Randomised trials in adults."
    page.keyboard.press("c")
    page.keyboard.press("h")
    page.wait_for_selector(".weights li")
    assert page.locator("mark.model-plus, mark.model-minus").count() > 0
    page.keyboard.press("h")
    page.wait_for_selector(".weights", state="detached")
    page.keyboard.press("t")
    assert page.locator("dialog .choice").all_inner_texts()[:2] == ["adults", "children"]
    page.keyboard.press("Escape")


def test_texts_that_are_not_saved_outlast_the_screen(page):
    show(page, "settings")
    before = page.locator("#criteria").input_value()
    page.locator("#criteria").fill("Adults only.")
    show(page, "read")
    show(page, "settings")
    assert page.locator("#criteria").input_value() == "Adults only."
    assert page.locator(".save-row").inner_text().split("\n")[-1].endswith("not saved yet")
    # A reload would lose the text, so that the page has the browser ask.
    asks = "() => !window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert page.evaluate(asks)
    page.locator("#criteria").fill(before)
    page.locator("form button", has_text="Save").click()
    page.wait_for_selector(".said")
    assert "not saved" not in page.locator(".save-row").inner_text()
    assert not page.evaluate(asks)
    assert page.locator(".notice").count() == 0  # one message, which goes away by itself
    show(page, "read")
    show(page, "settings")
    assert page.locator("#criteria").input_value() == before


def test_words_of_the_model_without_connection(browser, labelled):
    page = open_page(browser, labelled)
    page.context.set_offline(True)
    page.keyboard.press("h")
    page.wait_for_selector(".notice.problem")
    for key in "isi":
        with page.expect_event("requestfailed", lambda request: "weights" in request.url):
            press(page, key)
    assert page.locator(".notice").count() == 1
    page.context.set_offline(False)
    page.wait_for_selector(".notice", state="detached")
    page.wait_for_selector(".weights")  # the words are asked for again
    for _ in range(3):
        press(page, "u")
    saved(page)
    page.context.close()


def test_names_of_labels_are_not_broken_inside_words(browser, serve):
    names = "No,Maybe,Definitely relevant"
    page = open_page(browser, serve(None, "--labels", names), viewport=WIDE)
    lines = """() => [...document.querySelectorAll('.decisions button > span')].map((name) => {
        const text = name.lastChild;
        const range = document.createRange();
        return text.data.split(' ').map((word) => {
            const start = text.data.indexOf(word);
            range.setStart(text, start);
            range.setEnd(text, start + word.length);
            return range.getClientRects().length;
        });
    })"""
    beside = """() => [...document.querySelectorAll('#bar button')].every((button) =>
        button.scrollWidth <= button.clientWidth
        && button.getBoundingClientRect().right <= document.documentElement.clientWidth)"""
    for width in (1280, 800, 360, 320):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate(lines) == [[1], [1], [1, 1]], width
        assert page.evaluate(beside), width
    page.context.close()


def test_buttons_of_history_are_below_the_text_in_a_narrow_window(browser, labelled):
    page = open_page(browser, labelled, viewport={"width": 360, "height": 640})
    show(page, "history")
    page.locator("#history-status").select_option("relevant")
    row = page.locator(".entries li", has=page.get_by_role("button", name="Change")).first
    text = row.locator(".grow").bounding_box()
    change, undo = (row.get_by_role("button", name=each).bounding_box() for each in BUTTONS)
    assert change["y"] == undo["y"] >= text["y"] + text["height"]
    assert change["x"] == text["x"]
    page.context.close()


def test_sweep_and_its_undo(page, labelled):
    show(page, "read")
    n_read = int(page.locator("#progress b").first.inner_text())
    show(page, "sweep")
    titles = page.locator(".sweep label").all_inner_texts()
    assert len(titles) == 20
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert "1 relevant, the other 19 irrelevant" in page.locator("#bar").inner_text()
    page.keyboard.press("o")
    assert page.locator(".sweep article").count() == 1
    page.keyboard.press("d")
    page.wait_for_function(
        "(first) => document.querySelector('.sweep label')?.innerText !== first"
        " && document.querySelectorAll('.sweep label').length === 20",
        arg=titles[0],
    )
    assert page.locator("#progress b").first.inner_text() == str(n_read + 20)
    page.keyboard.press("u")
    page.wait_for_function(
        "(first) => document.querySelector('.sweep label')?.innerText === first", arg=titles[0]
    )
    assert page.locator(".sweep label").all_inner_texts() == titles
    assert page.locator(".sweep input:checked").count() == 1
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert "None of these: all 20 irrelevant" in page.locator("#bar").inner_text()
    page.keyboard.press("d")
    page.wait_for_function(
        "(first) => document.querySelector('.sweep label')?.innerText !== first", arg=titles[0]
    )
    saved(page)
    # After a reload, undo takes the whole sweep back as well.
    page.reload()
    page.wait_for_selector(".sweep input")
    page.keyboard.press("u")
    page.wait_for_function(
        "(n) => document.querySelector('#progress b').innerText === n", arg=str(n_read)
    )
    saved(page)


def test_history_filter_change_and_undo(page, labelled):
    show(page, "history")
    page.locator("#history-status").select_option("relevant")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.entries li')]"
        ".every((row) => row.querySelector('.badge.relevant'))"
    )
    first = page.locator(".entries li").first
    name = first.locator(".entry-title").inner_text()
    first.get_by_role("button", name="Change").click()
    first.locator(".label-row button.irrelevant").click()
    page.wait_for_function(
        "() => /replaced by a later/.test(document.querySelector('.entries li').innerText)"
    )
    page.locator("#history-status").select_option("")
    page.locator("#history-query").fill(name)
    page.wait_for_function("() => document.querySelectorAll('.entries li').length === 2")
    assert page.locator(".entries .badge").all_inner_texts() == ["✕ Irrelevant", "✓ Relevant"]
    page.locator(".entries li").first.get_by_role("button", name="Undo").click()
    page.wait_for_selector(".entries li.undone")
    saved(page)
    reply = page.evaluate(
        "(name) => fetch(`api/search?q=${encodeURIComponent(name)}`).then((reply) => reply.json())",
        name,
    )
    assert [each["status"] for each in reply["results"] if each["title"] == name] == ["relevant"]


def test_stop_audit_and_certificate(page, labelled):
    show(page, "stop")
    assert page.locator(CHARTS).count() == 2
    assert "Assumption:" in page.locator(".promise").inner_text()
    page.get_by_role("button", name="Start an audit").click()
    page.get_by_role("button", name="End the audit").wait_for(timeout=PATIENCE)
    assert "audit" in page.locator("#progress").inner_text()
    show(page, "read")
    press(page, "i")
    press(page, "u")
    saved(page)
    show(page, "stop")
    page.get_by_role("button", name="End the audit").click()
    page.get_by_role("button", name="Start an audit").wait_for()
    page.emulate_media(media="print")
    visible = page.locator(".certificate").is_visible()
    hidden = [page.locator(each).first.is_visible() for each in ("header", "footer", ".promise")]
    assert visible
    assert hidden == [False] * 3
    assert page.locator(CHARTS).first.is_visible()
    page.emulate_media(media="screen")
