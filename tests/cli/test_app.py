"""The application: help, version, and behaviour that all commands share."""

import html
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import forerank
from commands import fails, run
from forerank.cli.app import app
from forerank.models import load_model
from tables import table

COMMANDS = ["fit", "rank", "evaluate", "compare", "report", "explain", "inspect", "export", "demo"]


def test_version():
    assert forerank.__version__ in run("--version").output


def test_help_has_examples_and_imports_nothing_heavy():
    assert all(command in CliRunner().invoke(app, []).output for command in COMMANDS)
    for command in COMMANDS:
        assert "Examples" in run(command, "--help").output
    code = (
        "import sys, forerank.cli.app\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'pandas', 'pyarrow', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_options_for_types_and_labels(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({"zip": rng.choice([1010, 8010], n)})
    frame["age"] = rng.uniform(18, 80, n).round(1).astype(str)
    frame["city"] = rng.choice(["Zürich", "Málaga"], n)
    frame["y"] = np.where(frame["zip"] + 1000 * rng.normal(size=n) > 4500, "yes", "no")
    frame.loc[7, "age"], frame.loc[11, "y"], frame.loc[13, "y"] = "unknwon", None, " yes"
    path, model = tmp_path / "rows", tmp_path / "m.forerank"
    frame.to_csv(path, index=False, encoding="cp1252")
    fit = ["fit", path, "-t y -o", model]
    assert fails(*fit).endswith("(--format csv)")
    assert fails(*fit, "--format csv").endswith("(--encoding cp1252)")
    options = "--format csv --encoding cp1252"
    unlabelled = fails(*fit, options)
    assert "line 13: the label 'y' is missing here (1 of 300 rows has none)" in unlabelled
    assert unlabelled.endswith("(--skip-unlabelled)")
    options += " --skip-unlabelled --category zip"
    wrong_number = fails(*fit, options, "--number age")
    assert "line 9: the column 'age' has 'unknwon', and a number is expected" in wrong_number
    assert "'zip' is given two types, category and text" in fails(*fit, options, "--text zip")
    printed = run(*fit, options).stdout
    excluded = "1 of 300 rows without a label are excluded"
    assert excluded in printed
    assert "age: 1 of 299 values is not a number ('unknwon' in line 9): taken as missing" in printed
    assert "(--number, --date, --category, --text or --ignore COLUMN)" in printed
    assert "' yes' (1) as 'yes'" in printed
    kinds = {"age": "number", "zip": "category", "city": "category"}
    assert load_model(model).columns == kinds
    read = [model, path, "--format csv"]
    assert excluded in run("evaluate", *read).stderr
    assert len(run("rank", *read, "-q").stdout.splitlines()) == 301
    assert "zip" in run("explain", *read).stdout
    piped = run("rank", model, "- -q", given=path.read_bytes())
    assert piped.stdout == run("rank", *read, "-q").stdout
    options += " -t y --ignore city --folds 2"
    methods = "-m pointwise-logistic -m pairwise-logistic"
    compared = run("compare", path, options, methods).stdout
    for part in (excluded, "left out city: as requested", "299 rows"):
        assert part in compared
    run("report", path, options, "--against none -o", tmp_path / "r.html")
    assert excluded in html.unescape((tmp_path / "r.html").read_text())


def test_counts_and_their_nouns(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 0, 1, 1]})
    frame = frame.assign(**{f"z{k}": [1, 4, 2, 3] for k in range(9)})
    train, one, model = tmp_path / "in.csv", tmp_path / "one.csv", tmp_path / "m.forerank"
    frame.to_csv(train, index=False)
    assert "and 2 more" in run("fit", train, "-t y --check 0 -o", model).stdout
    frame.iloc[:1].assign(**{f"more {k}": 1 for k in range(12)}).to_csv(one, index=False)
    ranked = run("rank", model, one, "-o", tmp_path / "list.csv").stderr
    assert "1 of 1 row written" in ranked
    assert "more 5, more 6, and 5 more" in ranked
    compared = run("compare", train, "-t y -m PairwiseRanker --folds 2", code=None)
    head = next(line for line in compared.stdout.splitlines() if "method" in line)
    assert "AUC" in head
    assert "auc" not in head


def suspicious_table(case):
    rng = np.random.default_rng(0)
    n = 10_000 if case == "three positives" else 400
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n) > 0.5
    row = np.arange(n)
    if case == "three positives":
        y = row % 3334 == 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(y, "yes", "no"))
    if case == "leaky column":
        frame["known"] = y * 2.0 + 0.1 * rng.uniform(size=n)
    if case == "constant score":
        for name in "abc":
            frame[name] = np.where(row % 2 == 0, 1.0, 2.0)
        frame["y"] = np.where(row % 4 < 2, "yes", "no")
    if case == "one class in a group":
        frame["g"] = np.where(y, row % 5, row % 4)  # the last group has positives only
    return frame


@pytest.mark.parametrize(
    ("case", "pattern"),
    [
        ("leaky column", "'known'"),
        ("constant score", "alike|same score|a random order"),
        ("three positives", "3 of 10,000 rows|3 positive"),
        ("one class in a group", "one label|one class"),
    ],
)
def test_warnings_on_suspicious_data(tmp_path, case, pattern):
    path, page = tmp_path / "odd.csv", tmp_path / "r.html"
    suspicious_table(case).to_csv(path, index=False)
    options = "-t y --group g" if case == "one class in a group" else "-t y"
    fitted = run("fit", path, options, "-o", tmp_path / "m.forerank")
    made = run("report", path, options, "--against none -o", page)
    shown = [made.output, page.read_text().replace("\N{NO-BREAK SPACE}", " ")]
    shown += [fitted.output] if case != "constant score" else []
    for text in shown:
        assert re.search(pattern, html.unescape(text)), text
    compared = run("compare", path, options, "-m pointwise-logistic -m pairwise-logistic")
    assert "pairwise-logistic" in compared.stdout


def test_grades_in_all_commands(tmp_path):
    frame = table(300).assign(y=lambda f: np.digitize(f["age"].fillna(40), [30, 45, 60]))
    frame.to_csv(tmp_path / "grades.csv", index=False)
    data = [tmp_path / "grades.csv", "-t y --drop age"]
    assert "share of pairs in order" in run("fit", *data, "-o", tmp_path / "m.forerank").stdout
    for options in (
        "-m Ranker -m RankNCG",
        "-m pairwise-logistic -m RankNCG --metric wmw",
        "-m pairwise-logistic -m RankNCG --metric ndcg@10",
    ):
        assert "has the highest" in run("compare", *data, options, "--folds 2").stdout
    made = run("report", *data, "--against none --folds 2 -o", tmp_path / "r.html").stdout
    assert "a row of a higher grade is ranked above" in made
    error = fails("compare", *data, "--metric ap")
    assert "wmw" in error
    assert "ndcg@k" in error


def test_reader_of_the_output_may_stop_early(work):
    model, new = work / "m.forerank", work / "new.csv"
    command = f"'{sys.executable}' -m forerank rank '{model}' '{new}' -q | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.endswith(",score,rank\n")
    assert done.stderr == ""


def test_no_incomplete_model_after_a_kill(tmp_path, work):
    out = tmp_path / "m.forerank"
    rng = np.random.default_rng(0)
    options = ["-t", "y", "-r", "PairwiseRanker", "--force", "-q", "-o", str(out)]
    command = [sys.executable, "-m", "forerank", "fit", str(work / "train.csv"), *options]
    loaded = 0
    for seconds in (*rng.uniform(1.0, 4.0, 3), None):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                os.kill(child.pid, signal.SIGKILL)
        if out.exists():
            assert load_model(out).summary["rows"] == 300
            loaded += 1
    assert loaded >= 1
