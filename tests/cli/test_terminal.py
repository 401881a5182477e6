"""Commands print no control characters, wherever in their input these are."""

import base64
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import hostile
from forerank import PairwiseRanker, plots
from forerank._text import printable, printable_json
from forerank.cli import terminal
from forerank.cli.app import app
from forerank.models import read_card

TITLE, RED, CSI, TURNED, BACK, LINE = "\x1b]0;pwned\x07", "\x1b[31m", "\x9b", "\u202e", "\r", "\n"
ALL = TITLE + RED + CSI + TURNED + BACK + LINE
Y, JOB = f"y{ALL}", f"job{ALL}"
FIT = ["-t", Y, "--positive", f"yes{ALL}", "-r", "PairwiseRanker"]
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def raw(text, keep="\n"):
    """The characters of a text that should have been escaped."""
    return {each for each in text if unicodedata.category(each) in UNSEEN and each not in keep}


def run(*words, code=0, stdin=None):
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.output
    assert not raw(result.stdout)
    assert not raw(result.stderr)
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table and a model of it, with such characters in names of columns, values, labels and
    files.
    """
    directory = tmp_path_factory.mktemp(f"dir{RED}")
    rng = np.random.default_rng(0)
    n = 120
    age = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "first, to show what parts columns": 0.0,
            f"age{ALL}$x$": age,
            f"id{ALL}": np.arange(n),
            f"same{ALL}": "one",
            f"job{ALL}": rng.choice(
                [f"cook{RED}", f"clerk{TURNED}{CSI}", f"sm{BACK}i{LINE}th{TITLE}"], n
            ),
            f"note{ALL}": [
                " ".join(rng.choice(["late", f"paid{RED}", "call", "again", "soon"], 6))
                for _ in range(n)
            ],
            f"y{ALL}": np.where(age + rng.normal(size=n) > 0, f"yes{ALL}", f"no{ALL}"),
        }
    )
    table, model = (
        directory / f"train{ALL}.csv".replace("/", ""),
        directory / f"model{ALL}.forerank",
    )
    frame.to_csv(table, index=False)
    run("fit", table, *FIT, "-o", model)
    return directory, table, model


def test_fit_and_inspect(files):
    _, table, model = files
    shown = run("fit", table, *FIT, "-o", model, "--force")
    assert "\\x1b]0;pwned\\x07\\x1b[31m\\x9b\\u202e\\r\\n" in shown.stdout
    assert "id\\x1b" in run("inspect", model).stdout
    assert read_card(model)["target"] == Y  # the file has what was there
    for words in (
        ["fit", table, "-t", Y, "-o", model, "--force", "-r", "PairwiseRanker"],
        ["inspect", model],
    ):
        assert any(f"id{ALL}" in note for note in json.loads(run(*words, "--json").stdout)["notes"])


def test_fit_that_chooses(files):
    _, table, model = files
    run("fit", table, "-t", Y, "-o", model.with_name("chosen"), "--metric", "auc")


def test_evaluate_and_explain(files):
    _, table, model = files
    assert "cook\\x1b[31m" in run("evaluate", model, table, "--by", JOB).stdout
    assert (
        f"cook{RED}"
        in json.loads(run("evaluate", model, table, "--by", JOB, "--json").stdout)["by"]
    )
    assert "\\x1b" in run("explain", model, table, "--row", 1).stdout
    run("explain", model, table, "--row", 1, "--json")


def test_rank_keeps_what_files_hold(files):
    directory, table, model = files
    out = directory / f"ranked{ALL}.csv"
    run("rank", model, table, "-o", out)
    before, after = pd.read_csv(table, dtype=str), pd.read_csv(out, dtype=str)
    assert sorted(after[JOB]) == sorted(before[JOB])
    smaller = directory / "smaller.csv"
    pd.read_csv(table).drop(columns=[JOB]).assign(**{f"new{ALL}": 1}).to_csv(smaller, index=False)
    assert "new\\x1b" in run("rank", model, smaller, "--allow-missing", "-o", out, "--force").stderr
    assert "job\\x1b" in run("rank", model, smaller, "-o", out, "--force", code=2).stderr


def test_compare_and_report(files):
    directory, table, _ = files
    methods = ["-m", "PairwiseRanker", "-m", "PointwiseRanker", "--folds", 2]
    run("compare", table, "-t", Y, *methods)
    run("compare", table, "-t", Y, *methods, "--json")
    page = directory / f"page{ALL}.html"
    options = ["-t", Y, "-r", "PairwiseRanker", "--against", "none", "--folds", 2]
    run("report", table, *options, "-o", page)
    html = page.read_bytes().decode()
    assert not raw(html)
    plots = [
        base64.b64decode(each).decode()
        for each in re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", html)
    ]
    assert plots
    assert not any(raw(each, keep="\n\t") for each in plots)
    assert any("age\\x1b" in each for each in plots)


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", f"none{ALL}"],
        ["fit", f"none{ALL}.csv", "-o", "m"],
        ["fit", "TABLE", "-t", f"none{ALL}", "-o", "m"],
        ["fit", "TABLE", "-t", Y, "--positive", f"none{ALL}", "-o", "m"],
        ["fit", "TABLE", "-t", Y, "--drop", f"none{ALL}", "-o", "m"],
        ["fit", "TABLE", "-t", Y, "-r", f"none{ALL}", "-o", "m"],
        ["fit", "TABLE", f"extra{ALL}", "-o", "m"],
        ["evaluate", "MODEL", "TABLE", "--by", f"none{ALL}"],
        ["evaluate", "MODEL", "TABLE", f"extra{ALL}"],
        ["evaluate", "MODEL", "TABLE", "--k", f"ten{ALL}"],
        ["evaluate", "MODEL", "TABLE", f"--none{ALL}"],
        ["compare", "TABLE", "-t", Y, "-m", f"none{ALL}"],
        ["rank", "TABLE", "TABLE"],
        ["rank", "MODEL", "MODEL"],
        [f"none{ALL}"],
    ],
)
def test_errors_are_printable(files, words):
    _, table, model = files
    result = run(*[{"TABLE": table, "MODEL": model}.get(word, word) for word in words], code=2)
    assert (
        "\\x1b" in result.stderr or "\\x9b" in result.stderr or words[0] == "rank" or "--k" in words
    )


def test_bad_rows_are_printable(files, tmp_path):
    _, table, model = files
    text = table.read_bytes()
    (tmp_path / "ragged.csv").write_bytes(text + f"1,2,{RED}\n".encode())
    assert run("rank", model, tmp_path / "ragged.csv", code=2).stderr


def test_cards_are_printable(tmp_path):
    """Whatever a card says, also what no model would have been given as a name, such as half a
    character.
    """
    odd = ALL + "\ud800[bold]:x:"
    path = hostile.model_file(
        tmp_path,
        hostile.fitted(),
        columns={odd: "number"},
        target=odd,
        group=odd,
        notes=[odd],
        versions={odd: odd},
        summary={
            "ranker": odd,
            "params": {odd: odd},
            "source": odd,
            "rows": 1,
            "positive": odd,
            "classes": {odd: 1},
            "measures": [{"name": odd, "value": 0.5, "low": None, "high": None}],
        },
    )
    assert "\\ud800[bold]:x:" in run("inspect", path).stdout
    assert json.loads(run("inspect", path, "--json").stdout)["target"] == odd
    evil = hostile.model_file(tmp_path, hostile.of_schema(hostile.instance("os", odd)), notes=[odd])
    assert "os.\\x1b" in run("inspect", evil).stdout
    (tmp_path / "new.csv").write_text("a\n1\n")
    assert "os.\\x1b" in run("rank", evil, tmp_path / "new.csv", code=2).stderr
    wrong = hostile.model_file(tmp_path, hostile.fitted(), target=[odd])
    assert "'target' should be" in run("inspect", wrong, code=2).stderr


def test_warnings_are_printable(tmp_path):
    """scikit-learn warns of the version that a file names."""
    X, y = np.arange(8.0)[:, None], np.arange(8) > 3
    written = skops.io.dumps(make_pipeline(StandardScaler(), PairwiseRanker()).fit(X, y))
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    version, other = (
        json.dumps(json.dumps(each)).encode() for each in (sklearn.__version__, f"1{TITLE}{CSI}")
    )
    members["schema.json"] = members["schema.json"].replace(version, other)
    path = hostile.model_file(
        tmp_path, hostile.zipped(list(members.items())), summary={"n_columns": 1}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("explain", path)
    assert "note: " in result.stderr
    assert "1\\x1b]0;pwned\\x07\\x9b" in result.stderr


def test_unexpected_errors_are_printable(capsys):
    terminal.show_exception(TypeError, TypeError(ALL), None)
    shown = capsys.readouterr().err
    assert "TypeError: \\x1b" in shown
    assert not raw(shown)


def test_a_list_is_printable_on_a_terminal_and_as_it_is_elsewhere(files, tmp_path):
    pty = pytest.importorskip("pty", exc_type=ImportError)  # Windows has none
    _, table, model = files
    small = tmp_path / "small.csv"
    pd.read_csv(table).head(5).to_csv(small, index=False)
    command = [sys.executable, "-m", "forerank", "rank", str(model), str(small), "-q"]
    piped = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert RED in piped
    reader, writer = pty.openpty()
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL) as child:
        os.close(writer)
        shown = b""
        while part := _read(reader):
            shown += part
    os.close(reader)
    assert child.returncode == 0
    # Where colorama is installed numba loads it, and it resets the colours of a terminal at the
    # end.
    text = shown.decode().replace("\r\n", "\n").removesuffix("\x1b[0m")
    assert "\\x1b[31m" in text
    assert not raw(text)


def _read(reader):
    try:
        return os.read(reader, 1 << 16)
    except OSError:  # the end, on Linux
        return b""


def test_displays_show_names_as_they_are():
    matplotlib = pytest.importorskip("matplotlib.figure")
    ax = matplotlib.Figure().subplots()
    y, scores = np.array([0, 1] * 20), np.linspace(0, 1, 40)
    plots.HitsDisplay.from_predictions(y, scores, name=f"$a$ {ALL}", ax=ax)
    plots.ScoreDistributionDisplay.from_predictions(
        y, scores, labels={0: f"no{ALL}", 1: "$yes$"}, ax=ax
    )
    file = io.BytesIO()
    with matplotlib.mpl.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(file, format="svg")
    svg = file.getvalue().decode()
    assert not raw(svg, keep="\n\t")
    assert "no\\x1b]0;pwned" in svg
    assert "$yes$" in svg


@given(st.text(st.characters(codec=None, categories=None), max_size=30))
def test_printable_says_what_was_there(text):
    shown = printable(text)
    assert not raw(shown, keep="")
    assert printable(shown) == shown
    assert (shown == text) == (not raw(text, keep=""))
    written = printable_json(json.dumps(text, ensure_ascii=False))
    assert not raw(written, keep="")
    assert json.loads(written) == text
