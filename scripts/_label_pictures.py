"""Screenshots of the page of `forerank label`, for docs/images: label-*.png."""

import sys
import tempfile
from itertools import product
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from label_page import (
    Server,
    open_page,
    opened_browser,
    saved,
    title,
    write_table,
)

TREATMENTS = {
    "inhaled corticosteroids": True,
    "long-acting bronchodilators": True,
    "a smartphone reminder to inhale": True,
    "vitamin D": False,
    "a low-salt diet": False,
    "supervised exercise": False,
    "cognitive behavioural therapy": False,
    "a stop-smoking programme": False,
}
PATIENTS = ("adults with asthma", "children with asthma", "adults with hypertension",
            "people with type 2 diabetes", "older people with depression",
            "pregnant women", "people with chronic back pain")  # fmt: skip
DESIGNS = ("a randomised trial", "a cohort study", "a protocol")
ABSTRACT = (
    "Background: The effect of {treatment} in {patients} is uncertain. Methods: In {design} at "
    "{sites} centres, {n} participants were assigned to {treatment} or usual care and followed "
    "for {months} months. The primary outcome was {outcome}. Results: {outcome_start} differed "
    "between the groups by {difference} % (95 % confidence interval {low} to {high}). Adverse "
    "events were rare and similar in both groups. Conclusions: Larger studies of {treatment} are "
    "needed before it is recommended to {patients}."
)
WORDS = "asthma\nrandomised\ninhal*"
OTHER_WORDS = "cohort\nprotocol"
CRITERIA = "Include: inhaled treatment of asthma, at any age.\n\nExclude: reviews."


def records():
    """Made abstracts of studies, of which those of inhaled treatments of asthma are relevant."""
    for number, (treatment, patients, design) in enumerate(product(TREATMENTS, PATIENTS, DESIGNS)):
        outcome = "the rate of attacks" if "asthma" in patients else "quality of life"
        low = 1 + number % 5
        yield {
            "title": f"{treatment[0].upper()}{treatment[1:]} in {patients}: {design}",
            "abstract": ABSTRACT.format(
                treatment=treatment, patients=patients, design=design, sites=3 + number % 9,
                n=80 + 37 * (number % 13), months=6 + 6 * (number % 3), outcome=outcome,
                outcome_start=outcome[0].upper() + outcome[1:], difference=low + 4, low=low,
                high=low + 9,
            ),
            "authors": f"{'ABCDEFGH'[number % 8]}. Author; {'KLMNO'[number % 5]}. Writer",
            "year": str(2004 + number % 20),
            "doi": f"10.1000/example.{number + 1}",
        }  # fmt: skip


def is_relevant(text):
    inhaled = any(name in text.lower() for name, relevant in TREATMENTS.items() if relevant)
    return inhaled and "asthma" in text


def read(page, n):
    """Read n records, a little slower than the ranking learns."""
    for _ in range(n):
        before = title(page)
        page.keyboard.press("r" if is_relevant(before) else "i")
        page.wait_for_function(
            "(title) => document.querySelector('#screen h1').innerText !== title", arg=before
        )
        page.wait_for_timeout(150)


def show(page, name, ready):
    page.evaluate("(name) => { location.hash = name; }", name)
    page.wait_for_selector(f"body[data-screen={name}] {ready}")
    page.wait_for_timeout(400)


def take(page, images, name, **options):
    """A screenshot with few colours."""
    page.wait_for_function("() => !document.querySelector('.said')")
    path = images / f"label-{name}.png"
    page.screenshot(path=path, **options)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
    print(path, path.stat().st_size)


def one_reader(browser, folder, images):
    server = Server(write_table(folder / "inhaled-treatments.csv", records()))
    try:
        page = open_page(browser, server, viewport={"width": 1100, "height": 760})
        page.wait_for_function(
            "() => !/prepared/.test(document.querySelector('#progress').innerText)"
        )
        show(page, "settings", "#relevant-words")
        page.locator("#relevant-words").fill(WORDS)
        page.locator("#irrelevant-words").fill(OTHER_WORDS)
        page.locator("#criteria").fill(CRITERIA)
        page.locator("form button", has_text="Save").click()
        show(page, "read", ".record")
        read(page, 30)
        while not is_relevant(title(page)):
            read(page, 1)
        page.keyboard.press("c")
        take(page, images, "read")
        page.keyboard.press("c")
        read(page, 70)
        saved(page)
        show(page, "stop", ".charts svg")
        page.set_viewport_size({"width": 1100, "height": 900})
        take(page, images, "stop")
        page.set_viewport_size({"width": 1100, "height": 760})
        show(page, "sweep", ".sweep input")
        page.keyboard.press("x")
        take(page, images, "sweep")
        page.context.close()
        narrow = {"width": 360, "height": 640}
        page = open_page(browser, server, viewport=narrow, color_scheme="dark")
        page.wait_for_selector(".record")
        take(page, images, "narrow")
    finally:
        server.close()


def two_readers(browser, folder, images):
    people = ["--team", "Ada,Ben,Cleo", "--mode", "double"]
    server = Server(write_table(folder / "team.csv", records()), *people)
    try:
        ada, ben, cleo = (
            open_page(browser, server, person, viewport={"width": 1100, "height": 620})
            for person in range(3)
        )
        ada.keyboard.press("n")
        ada.keyboard.type("The comparison is unclear; see the full text.")
        ada.keyboard.press("Control+Enter")
        first = title(ada)
        ada.keyboard.press("r")
        saved(ada)
        ben.reload()
        ben.wait_for_selector(".record")
        while title(ben) != first:
            ben.keyboard.press("i")
            ben.wait_for_timeout(200)
        ben.keyboard.press("i")
        saved(ben)
        show(cleo, "conflicts", ".conflict")
        take(cleo, images, "conflict")
    finally:
        server.close()


def main():
    images = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, opened_browser() as browser:
        one_reader(browser, Path(folder), images)
        two_readers(browser, Path(folder), images)


if __name__ == "__main__":
    main()
