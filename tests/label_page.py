"""A server of `forerank label` and a browser on its page, for tests, benchmarks and pictures."""

import csv
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A test waits this long for what should be on the page, in milliseconds: long on a busy machine.
PATIENCE = 60_000

_TOPIC = ("asthma", "inhaler", "airway", "wheezing", "bronchial", "corticosteroid")
_OTHER = ("tillage", "harvest", "nitrogen", "wheat", "irrigation", "pasture", "seedling", "soil")
_COMMON = ("trial", "effect", "group", "outcome", "measured", "study", "period", "control", "rate")


def made_records(n, n_relevant, seed=0, n_sentences=6, n_rare=0):
    """Rows of a table of references, of which the relevant ones are about asthma.

    Each abstract has `n_rare` words besides that are as rare as those of real texts.
    """
    rng = np.random.default_rng(seed)
    relevant = set(rng.choice(n, n_relevant, replace=False).tolist())
    for number in range(n):
        words = _TOPIC if number in relevant else _OTHER
        first, second = rng.choice(words, 2, replace=False)
        rare = " ".join(f"term{each}" for each in rng.zipf(1.3, n_rare) % 50_000)
        yield {
            "title": f"{first.capitalize()} and {second} in a study of {number + 1}",
            "abstract": " ".join([*(_sentence(rng, words) for _ in range(n_sentences)), rare]),
            "authors": f"Author{number % 50} A; Writer{number % 7} B",
            "year": str(1990 + number % 35),
            "doi": f"10.1000/made.{number + 1}",
        }


def _sentence(rng, words):
    chosen = [*rng.choice(words, 3), *rng.choice(_COMMON, 7)]
    return " ".join(rng.permutation(chosen)).capitalize() + "."


def is_relevant(title):
    """Whether a made record is about asthma."""
    return title.split()[0].lower() in _TOPIC


def write_table(path, records):
    """A CSV file of records."""
    records = list(records)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return Path(path)


def free_port():
    """A port that nothing listens to."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """`forerank label` in a process of its own; it can be killed and started again."""

    def __init__(self, file, *options):
        self.port = free_port()
        self.command = [sys.executable, "-m", "forerank", "label", str(file), "--no-browser"]
        self.command += ["--port", str(self.port), *options]
        self.n_people = 1
        if "--team" in options:
            self.n_people = len(options[options.index("--team") + 1].split(","))
        self.sessions = {}  # cookies of each person, since a link opens once
        self.log = Path(file).parent / "server.log"
        self.start()

    def start(self):
        """Start the program and wait until it has printed its links."""
        with self.log.open("a") as errors:
            self.process = subprocess.Popen(
                self.command, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.links = []
        for line in self.process.stdout:
            self.links += re.findall(r"https?://\S+", line)
            if len(self.links) == self.n_people:
                return
        self.close()
        raise RuntimeError(f"the server did not start: {self.log.read_text()[-2000:]}")

    @property
    def address(self):
        """Address of the page."""
        return self.links[0].split("?")[0]

    def kill(self):
        """End the program as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def interrupt(self):
        """Ask the program to end, as Ctrl C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def close(self):
        """End the program as Ctrl C does, and wait for that."""
        self.interrupt()
        self._wait()

    def _wait(self):
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def browser_program():
    """Path of an installed Chromium or Chrome, or None."""
    named = os.environ.get("FORERANK_BROWSER")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def opened_browser():
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Scroll bars take room, as they do for most people.
        browser = playwright.chromium.launch(
            executable_path=browser_program(),
            args=ARGUMENTS,
            ignore_default_args=["--hide-scrollbars"],
        )
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser, server, person=0, **options):
    """A page with a browser profile of its own; `page.problems` lists errors and dialogs."""
    known = server.sessions.get(person)
    context = browser.new_context(storage_state=known, **options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.problems = []
    page.on("dialog", lambda dialog: (page.problems.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: _note(page, message))
    page.goto(server.address if known else server.links[person])
    page.wait_for_selector("#nav a", state="attached")
    server.sessions[person] = context.storage_state()
    return page


def _note(page, message):
    if message.type == "error":
        page.problems.append(f"{message.text} {message.location.get('url', '')}")


def title(page):
    """Title of the record on the screen."""
    return page.locator("#screen h1").inner_text()


def press(page, key):
    """Press a key and wait until another record is on the screen."""
    before = title(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.querySelector('#screen h1')?.innerText !== before", arg=before
    )


def read(page, n):
    """Label n records as they should be; the labels by title."""
    given = {}
    for _ in range(n):
        given[title(page)] = int(is_relevant(title(page)))
        press(page, "r" if given[title(page)] else "i")
    return given


def saved(page):
    """Wait until the server has every decision: the outbox is empty, and the page says so."""
    page.wait_for_function(
        "() => Object.keys(localStorage).every((name) => !name.startsWith('forerank.event.'))"
        " && document.querySelector('#saving.saved')"
    )


def go(page, letter, heading):
    """Go to a screen by its letter."""
    page.keyboard.press("g")
    page.keyboard.press(letter)
    page.wait_for_function(
        "heading => document.querySelector('#screen h1')?.innerText === heading", arg=heading
    )
