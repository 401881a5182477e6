"""The pages of docs/: code runs and prints what is shown, links lead somewhere, nothing is left
out.

    python tests/test_docs.py [PAGE ...]     # write the shown outputs anew

A block of `python` runs, the blocks of a page one after the other in one namespace; a block of
`text` right behind it is what it prints. A block of `console` is a terminal session in a directory
with the tables of `forerank demo`. Words and whole numbers must agree, others to two units of the
last digit shown or a thousandth: processors differ.
"""

import contextlib
import importlib
import importlib.util
import io
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

import forerank
import tour
from forerank.workflows.demo import write_tables

HAS_TORCH = importlib.util.find_spec("torch") is not None
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}

FENCE = re.compile(
    r"^```(?P<kind>\S*)[^\n]*\n(?P<body>.*?)^```$(?:\n\n?^```text\n(?P<shown>.*?)^```$)?",
    re.M | re.S,
)
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")
LINK = re.compile(r"(?<!\\)!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
DIRECTIVE = re.compile(r"^::: (\S+)$", re.M)


def runnable(page):
    """Code blocks with what is shown as their output, or None."""
    return [(match["kind"], match["body"], match["shown"]) for match in FENCE.finditer(page)]


def printed(code, namespace, name):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, name, "exec"), namespace)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def session(body, directory):
    """A console block with the output of its commands; programs import for seconds, so that only
    those of the README (test_tour.py) and those with pipes are started.
    """
    return "".join(
        f"{line}\n{tour.output_of(line[2:], directory, own_process=False)}"
        for line in body.splitlines()
        if line.startswith("$ ")
    )


def words_and_numbers(text):
    text = re.sub(r", \d+\.\d s\b", ", SECONDS", text)
    return NUMBER.sub("NUMBER", text).splitlines(), NUMBER.findall(text)


def assert_same_output(found, shown, where):
    (found_words, found_numbers), (shown_words, shown_numbers) = (
        words_and_numbers(found),
        words_and_numbers(shown),
    )
    assert found_words == shown_words, f"{where} prints:\n{found}"
    for new, old in zip(found_numbers, shown_numbers, strict=True):
        mantissa, _, exponent = old.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        assert abs(float(new) - float(old)) <= max(2.0001 * unit, 1e-3 * float(old)), (
            f"{where} prints:\n{found}"
        )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, path in PAGES.items()
        if re.search(r"^```(python|console)", path.read_text(), re.M)
    ],
)
def test_code_runs_and_prints_what_is_shown(name, tmp_path, monkeypatch):
    if not HAS_TORCH and re.search(r"^(import|from) torch", PAGES[name].read_text(), re.M):
        pytest.skip("torch is not installed")
    write_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for number, (kind, body, shown) in enumerate(runnable(PAGES[name].read_text()), start=1):
        where = f"{name}, block {number}"
        if kind == "python":
            found = printed(body, namespace, where)
            assert_same_output(found, shown or "", where)
        elif kind == "console":
            assert_same_output(session(body, tmp_path), body, where)


@pytest.mark.parametrize("name", PAGES)
def test_blocks_are_of_a_known_kind(name):
    kinds = {kind for kind, _, _ in runnable(PAGES[name].read_text())}
    assert kinds <= {"bash", "console", "python", "text", "toml"}
    assert ">>>" not in PAGES[name].read_text(), (
        "write a block of python, and what it prints as a block of text"
    )


# --- Links ---


def slug(heading):
    """The anchor of a heading, as the toc extension of Markdown makes it."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def without_code(page):
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", page))


def anchors(path):
    page = path.read_text()
    found = {slug(heading) for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", page), re.M)}
    for target in DIRECTIVE.findall(page):
        found.add(target)
        documented = resolved(target)
        found.update(f"{target}.{member}" for member in getattr(documented, "__all__", ()))
    return found


def resolved(target):
    """The object that a dotted path names; None for those of packages that are not installed."""
    if target.startswith("forerank.torch") and not HAS_TORCH:
        return None
    parts = target.split(".")
    for end in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            found = importlib.import_module(".".join(parts[:end]))
            break
    for part in parts[end:]:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("path", [*PAGES.values(), ROOT / "README.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in LINK.findall(without_code(path.read_text())):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file) if file else path
        assert there.exists(), f"{path.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{path.name}: {target}"


@pytest.mark.parametrize("name", PAGES)
def test_formulas_in_text_are_code(name):
    """Markdown drops <a, b> as a tag, and takes [..]_+ twice in a line for emphasis."""
    text = re.sub(r"^    .*$", "", without_code(PAGES[name].read_text()), flags=re.M)
    assert re.findall(r"<[A-Za-z][^>]*>|\]_\W", text) == []


# --- Nothing is left out ---


def test_the_navigation_lists_every_page():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"[\w/-]+\.md", nav)
    results = [name for name in PAGES if re.match(r"papers/results/\w+/", name)]
    assert sorted(listed) == sorted(set(PAGES) - set(results))
    # Pages of reproductions are in the list that is written with them.
    written = PAGES["papers/results/index.md"].read_text()
    assert [name for name in results if name.removeprefix("papers/results/") not in written] == []


def test_every_public_name_is_in_the_reference():
    targets = [
        target
        for name, path in PAGES.items()
        if name.startswith("api/")
        for target in DIRECTIVE.findall(path.read_text())
    ]
    documented = [resolved(target) for target in targets]
    folders = {target.split(".")[1] for target in targets}
    missing = [
        name
        for name in forerank.__all__
        if name not in folders and not any(getattr(forerank, name) is each for each in documented)
    ]
    assert missing == []


def test_every_ranker_is_in_the_table_of_objectives():
    page = PAGES["api/objectives.md"].read_text()
    rankers = [
        name
        for name in forerank.__all__
        if name[0].isupper() and hasattr(getattr(forerank, name), "rank")
    ]
    assert [name for name in rankers if f"`{name}" not in page] == []


def test_pages_ask_for_nothing_from_elsewhere():
    """Scripts, styles, fonts and pictures come with the site."""
    assert not re.search(r"https?://", (ROOT / "mkdocs.yml").read_text())
    for name, path in PAGES.items():
        assert not re.search(
            r"!\[[^\]]*\]\(https?:|<(script|link|img|iframe)\b", without_code(path.read_text())
        ), name


# --- Writing the outputs anew ---


def written_anew(name, path):
    """The page with what its blocks print now."""
    with tempfile.TemporaryDirectory() as directory:
        here = Path.cwd()
        write_tables(Path(directory))
        os.chdir(directory)
        namespace = {"__name__": "__main__"}

        def run(block):
            kind, body = block["kind"], block["body"]
            if kind == "console":
                return f"```console\n{session(body, Path(directory))}```"
            if kind != "python":
                return block[0]
            out = printed(body, namespace, name)
            return f"```python\n{body}```" + (f"\n\n```text\n{out}```" if out else "")

        try:
            return FENCE.sub(run, path.read_text())
        finally:
            os.chdir(here)


if __name__ == "__main__":
    warnings.simplefilter("error")
    for asked in sys.argv[1:] or PAGES:
        page = (
            PAGES[Path(asked).resolve().relative_to(DOCS).as_posix()]
            if Path(asked).exists()
            else PAGES[asked]
        )
        page.write_text(written_anew(page.relative_to(DOCS).as_posix(), page))
