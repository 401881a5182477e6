"""Texts that would run as script, break the layout or take long to draw are shown as texts."""

import pytest

from label_page import go, made_records, open_page, press, saved, title

TEXTS = {
    "script": "<script>alert(1); window.hacked = 1</script>",
    "image": '<img src=x onerror="window.hacked = 1; alert(1)">',
    "svg": "<svg/onload=alert(1)><animate onbegin=alert(1) attributeName=x dur=1s>",
    "attribute": "\" autofocus onfocus=alert(1) x=\"' onmouseover='alert(1)",
    "address": "javascript:alert(1)",
    "template": "{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= alert(1) %>",
    "formula": '=HYPERLINK("http://example.org","click") +1+cmd|\' /C calc\'!A0',
    "right to left": "\u202eevil\u202c \u2067isolate without an end \u05d0\u05d1 \u061c",
    "zero width": "a\u200bb\u200d\ufeffc\u0008d",
    "combining": "Z" + "\u0301\u0327" * 200,
    "one long word": "x" * 20_000,
    "closing tags": "</h1></article></main></body></html><base href='https://example.org/'>",
    "style": "<style>* { display: none }</style><link rel=stylesheet href=//example.org/a.css>",
    "form": '<form action="https://example.org"><input name=q><button>Go</button></form>',
    "surrogates": "\U0001f600" * 500,
    "regular expression": "(a+)+$ [z-a] \\ ** ??",
    "prototype": "__proto__ constructor toString",
}
# Signs of a policy that was violated, which the console does not always show.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.violations.push(event.violatedDirective));
"""


def hostile_records():
    plain = list(made_records(10, 3, seed=6))
    for name, text in TEXTS.items():
        yield dict(zip(plain[0], [f"{name} {text}"] + [text] * 4, strict=True)) | {"url": text}
    huge = "word <b>bold</b> asthma " * 45_000  # one megabyte
    yield plain[0] | {"title": "huge abstract", "abstract": huge, "url": ""}
    yield plain[1] | {"title": "long line", "abstract": "y" * 1_000_000, "url": ""}
    for record in plain[2:]:
        yield record | {"url": "https://example.org/a?b=c&d"}


@pytest.fixture(scope="module")
def page(browser, serve):
    names = "<b>Not</b> relevant,Marginally-relevant-perhaps,Relevant,Most relevant of all"
    server = serve(hostile_records(), "--labels", names, "--relevant-from", "2")
    opened = open_page(browser, server)
    opened.add_init_script(WATCH)
    opened.reload()
    opened.wait_for_selector("#screen .record h1")
    return opened


def nothing_ran(page):
    assert page.problems == []
    assert page.evaluate("() => [window.hacked ?? null, window.violations]") == [None, []]
    assert page.locator("#screen :is(script, img, form, style)").count() == 0
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0


def test_hostile_words_of_the_project(page):
    page.evaluate("() => { location.hash = 'settings'; }")
    page.locator("#relevant-words").fill("\n".join(text[:100] for text in TEXTS.values()))
    page.locator("#criteria").fill(TEXTS["script"])
    page.locator("form button", has_text="Save").click()
    page.wait_for_selector(".said")
    page.evaluate("() => { location.hash = 'read'; }")
    page.keyboard.press("c")
    page.wait_for_selector(".criteria-text")


def test_hostile_records_are_texts(page):
    seen = []
    for number in range(len(TEXTS) + 2):
        nothing_ran(page)
        seen.append(title(page).split(" <")[0])
        links = page.locator("#screen a").evaluate_all("(links) => links.map((a) => a.protocol)")
        assert set(links) <= {"http:", "https:"}
        if number == 0:
            page.keyboard.press("t")
            page.keyboard.type(TEXTS["image"])
            page.keyboard.press("Enter")
            page.wait_for_selector(".tags li")
        press(page, "ri"[number % 2])
    assert len(set(seen)) == len(seen)
    saved(page)


@pytest.mark.parametrize("name", ["search", "history", "stop", "sweep", "export", "read"])
def test_hostile_records_in_narrow_and_wide_windows(page, name):
    page.evaluate("(name) => { location.hash = name; }", name)
    page.wait_for_selector(f"body[data-screen={name}] #screen :is(li, figure, .record)")
    nothing_ran(page)
    page.set_viewport_size({"width": 320, "height": 640})
    nothing_ran(page)
    page.set_viewport_size({"width": 1280, "height": 720})


def test_huge_texts_stay_responsive(page):
    go(page, "s", "Search")
    for words in ("huge abstract", "long line"):
        page.locator("#query").fill(words)
        page.wait_for_function(
            "(words) => document.querySelector('.entry-title')?.innerText === words", arg=words
        )
        page.keyboard.press("ArrowDown")
        page.keyboard.press("o")
        page.wait_for_selector(".opened .piece")
        # The whole text comes, while keys are answered.
        page.keyboard.press("r")
        page.wait_for_selector(".entries .badge.relevant")
        page.wait_for_function(
            "() => document.querySelector('.opened .text').textContent.length >= 1e6"
        )
        nothing_ran(page)
        page.locator("#query").focus()
