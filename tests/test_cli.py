"""The commands, as a shell runs them: what they print, where, and with which exit code."""

import html
import json
import os
import re
import signal
import subprocess
import sys

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import forerank
from forerank.cli import app
from forerank.demo import compare_rankers, table_rows
from forerank.models import load_model
from test_ranked import table


def run(*words, code=0, given=None):
    result = CliRunner().invoke(app, [str(word) for word in words], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def fails(*words, given=None):
    """The one line that is said about what cannot be used."""
    result = run(*words, code=2, given=given)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("forerank: ")
    return lines[0]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A directory with a table and a model of it."""
    directory = tmp_path_factory.mktemp("work")
    table(300).to_csv(directory / "train.csv", index=False)
    table(100, seed=1).to_csv(directory / "new.csv", index=False)
    run(
        "fit",
        directory / "train.csv",
        "--target",
        "y",
        "-o",
        directory / "m.forerank",
        "--ranker",
        "PairwiseRanker",
        "--alpha",
        "0.01",
    )
    return directory


def test_version():
    assert forerank.__version__ in run("--version").output


def test_help_is_quick_and_has_examples():
    assert "demo" in CliRunner().invoke(app, []).output
    for command in [
        "fit",
        "rank",
        "evaluate",
        "compare",
        "report",
        "explain",
        "inspect",
        "export",
        "reproduce",
        "demo",
    ]:
        assert "Examples" in run(command, "--help").output
    # Nothing heavy is imported for a page of help.
    code = "import sys, forerank.cli; print(sorted({'sklearn', 'numba', 'pandas', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_fit_says_what_was_done(tmp_path, work):
    result = run("fit", work / "train.csv", "--target", "y", "-o", tmp_path / "m.forerank")
    for part in ("300 rows of train.csv", "'yes'", "ahead of 'no'", "1 numbers", "left out id", "AUC", "On 60 rows"):
        assert part in result.stdout
    assert "saved" in result.stdout
    quiet = run("fit", work / "train.csv", "--target", "y", "-o", tmp_path / "q.forerank", "-q", "--check", "0")
    assert quiet.stdout.startswith("chosen: ")
    assert quiet.stderr == ""


def test_parameters_come_from_options_or_toml(tmp_path, work):
    (tmp_path / "p.toml").write_text('ranker = "PairwiseRanker"\nalpha = 0.5\nloss = "logistic"\nmax_iter = 7\n')
    out = tmp_path / "m.forerank"
    words = ("fit", work / "train.csv", "-t", "y", "-o", out, "--params", tmp_path / "p.toml", "--alpha=2", "--json")
    printed = json.loads(run(*words).stdout)
    ranker = load_model(out).estimator[-1]
    assert (ranker.alpha, ranker.loss, ranker.max_iter) == (2, "logistic", 7)
    assert printed["params"]["alpha"] == 2
    assert printed["measures"][0]["name"] == "AUC"
    assert printed["model"] == str(out)
    words = ("fit", work / "train.csv", "-t", "y", "-o", out, "--force", "-q", "--ranker", "PartialAUCRanker")
    run(*words, "--fpr-range", "[0.0, 0.2]", "--max-iter", "20", "--alpha", "0.1")
    assert load_model(out).estimator[-1].fpr_range == (0.0, 0.2)


def test_rank_writes_a_list_to_a_file_or_a_pipe(tmp_path, work):
    out = tmp_path / "ranked.csv"
    result = run("rank", work / "m.forerank", work / "new.csv", "-o", out)
    assert result.stdout == ""
    assert "100 of 100 rows written" in result.stderr
    assert "not used by the model: id, y" in result.stderr
    piped = run("rank", work / "m.forerank", "-", "--quiet", given=(work / "new.csv").read_bytes())
    assert piped.stdout_bytes == out.read_bytes()
    assert piped.stderr == ""
    top = run("rank", work / "m.forerank", work / "new.csv", "--top", "3", "-q")
    assert out.read_text().startswith(top.stdout)
    summary = json.loads(run("rank", work / "m.forerank", work / "new.csv", "-o", out, "--force", "--json").stdout)
    assert (summary["rows"], summary["written"], summary["unused"]) == (100, 100, ["id", "y"])


def test_evaluate_explain_and_inspect(tmp_path, work):
    model, new = work / "m.forerank", work / "new.csv"
    picture = tmp_path / "curves.png"
    result = run("evaluate", model, new, "--by", "city", "--k", "7", "--curves", picture)
    for part in ("100 rows", "AUC", "precision at 7", "By city", "rome"):
        assert part in result.stdout
    assert matplotlib.image.imread(picture).shape[1] > 1000
    printed = json.loads(run("evaluate", model, new, "--by", "city", "--json").stdout)
    assert set(printed["by"]) == {"oslo", "rome"}
    assert printed["measures"][0]["low"] < printed["measures"][0]["value"]

    result = run("explain", model, new, "--row", "2", "--weights", "3")
    assert "Row 2: score" in result.stdout
    printed = json.loads(run("explain", model, new, "--json").stdout)
    assert len(printed["rows"]) == 5
    first = printed["rows"][0]
    assert_allclose(sum(t["adds"] for t in first["columns"].values()) + printed["intercept"], first["score"])

    result = run("inspect", model)
    for part in ("PairwiseRanker(alpha=0.01", "300 rows of train.csv", "sha256", "none: it can be loaded"):
        assert part in result.stdout
    assert json.loads(run("inspect", model, "--json").stdout)["target"] == "y"
    one_class = run("evaluate", model, new, "--by", "y", "--k", "1000")
    assert "one class only" in one_class.stdout
    assert "there are no 1000 rows" in one_class.stderr
    assert "is there already" in fails("evaluate", model, new, "--curves", picture)


def test_export(tmp_path, work):
    assert "cannot be exported" in fails("export", work / "m.forerank", "-o", tmp_path / "m.onnx")
    run("fit", work / "train.csv", "-t", "y", "--drop", "note", "-o", tmp_path / "m.forerank", "-q")
    assert "scores agree" in run("export", tmp_path / "m.forerank", "-o", tmp_path / "m.onnx").stdout
    words = ("export", tmp_path / "m.forerank", "-o", tmp_path / "m.onnx", "--force", "--json")
    assert json.loads(run(*words).stdout)["largest_difference"] < 1e-6


BAD = [
    ("ragged.csv", b"x,y\n1,yes\n2\n", "line 3: a row of 1 values"),
    ("mixed.csv", b"x,y\n1,1\n2,0\n3,yes\n", "line 4: mixed labels in 'y'"),
    ("target.csv", b"x,why\n1,1\n", "there is no column 'y'"),
    ("empty.csv", b"", "the file is empty"),
    ("junk.csv", b"\x00\x01\x02\xff" * 50, "this is not a text file"),
    ("junk.parquet", b"\x00\x01\x02\xff" * 50, "cannot be read as Parquet"),
    ("junk.npz", b"\x00\x01\x02\xff" * 50, "cannot be read as a NumPy archive"),
    ("quote.csv", b'x,y\n1,yes\n2,"no\n3,yes\n4,no\n', "line 3: a quote opens here and never closes"),
    ("utf16.csv", "x,y\n1,2\n".encode("utf-16"), "UTF-16"),
    ("latin.csv", b"x,y\n\xe9,yes\na,no\n", "line 2: not text in UTF-8"),
    ("none.csv", None, "there is no such file"),
]


@pytest.mark.parametrize(("name", "data", "message"), BAD)
def test_bad_files_are_named_in_one_line(tmp_path, name, data, message):
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    said = fails("fit", path, *(() if name.endswith("npz") else ("--target", "y")), "-o", tmp_path / "m.forerank")
    assert message in said
    assert name in said
    assert not (tmp_path / "m.forerank").exists()


def test_a_delimiter_that_is_wrong_and_a_qid_that_is_not_there(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1;yes\n2;no\n")
    said = fails("fit", tmp_path / "a.csv", "-t", "y", "--delimiter", ",", "-o", tmp_path / "m")
    assert "is the delimiter another one" in said
    (tmp_path / "a.svm").write_text("1 1:2\n0 1:3\n")
    said = fails("fit", tmp_path / "a.svm", "--group", "qid", "-o", tmp_path / "m")
    assert "a.svm: there is no qid in it" in said
    (tmp_path / "b.svm").write_text("1 1:2\n0 1:x\n")
    assert "b.svm, line 2: not a line of svmlight" in fails("fit", tmp_path / "b.svm", "-o", tmp_path / "m")


def test_what_cannot_be_is_said(tmp_path, work):
    model, new = work / "m.forerank", work / "new.csv"
    assert "is there already" in fails("fit", work / "train.csv", "-t", "y", "-o", model)
    misspelt = fails("fit", new, "-t", "y", "-o", tmp_path / "m", "-r", "PairwiseRanker", "--alfa", "1")
    assert "Did you mean 'alpha'" in misspelt
    assert "has no value" in fails("fit", new, "-t", "y", "-o", tmp_path / "m", "--alpha")
    assert "FILE comes first" in fails("fit", "--alpha", "1", new, "-t", "y", "-o", tmp_path / "m")
    assert "no option" in fails("fit", new, "more.csv", "-t", "y", "-o", tmp_path / "m")
    assert "alpha" in fails("fit", new, "-t", "y", "-o", tmp_path / "m", "-r", "PairwiseRanker", "--alpha", "-1")
    assert "no such file" in fails("rank", tmp_path / "no.forerank", new)
    assert "not a model file" in fails("rank", new, new)
    assert "must then go to a file" in fails("rank", model, new, "--json")
    assert "standard input, line 2" in fails("rank", model, "-", given="id,age,job,seen,note,city\n1,2\n")
    assert "no paper 'x'" in fails("reproduce", "x")
    assert "overwrite what is read" in fails("fit", new, "-t", "y", "-o", new, "--force")
    assert "overwrite what is read" in fails("rank", model, new, "-o", model, "--force")
    assert "a model goes into a file" in fails("fit", new, "-t", "y", "-o", "-")
    assert "ends in .png" in fails("evaluate", model, new, "--curves", tmp_path / "c.txt")
    assert "none.toml: no such file" in fails("fit", new, "-t", "y", "-o", tmp_path / "m", "--params", "none.toml")
    assert "this is a directory" in fails("fit", tmp_path, "-t", "y", "-o", tmp_path / "m")
    (tmp_path / "bad.toml").write_text("alpha = = 1")
    said = fails("fit", new, "-t", "y", "-o", tmp_path / "m", "--params", tmp_path / "bad.toml")
    assert "bad.toml: not TOML" in said
    assert list(tmp_path.iterdir()) == [tmp_path / "bad.toml"]


def test_warnings_are_remarks(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40), "q": np.repeat(np.arange(10), 4), "y": rng.integers(0, 2, 40)})
    frame.loc[frame["q"] == 0, "y"] = 0
    frame.to_csv(tmp_path / "a.csv", index=False)
    words = ("fit", tmp_path / "a.csv", "-t", "y", "--group", "q", "-o", tmp_path / "m.forerank", "--check", "0")
    assert "note: 1 of 10 groups" in run(*words).stderr
    assert run(*words, "--force", "-q").stderr == ""
    assert any("10 groups" in each for each in json.loads(run(*words, "--force", "--json").stdout)["warnings"])


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(
        st.binary(max_size=120),
        st.text(alphabet='xy,;"\n\r 01nes.é', max_size=160).map(lambda t: ("x,y\n" + t).encode()),
    ),
    suffix=st.sampled_from(["csv", "tsv", "csv.gz", "parquet", "feather"]),
)
def test_junk_is_refused_in_one_line_or_fitted(tmp_path, data, suffix):
    path = tmp_path / f"junk.{suffix}"
    path.write_bytes(data)
    result = CliRunner().invoke(
        app, ["fit", str(path), "--target", "y", "-o", str(tmp_path / "m.forerank"), "--force", "-q"]
    )
    assert result.exit_code in (0, 2), result.exception
    assert len(result.stderr.splitlines()) == (1 if result.exit_code == 2 else 0)


def test_the_reader_may_leave_early(tmp_path, work):
    command = f"'{sys.executable}' -m forerank.cli rank '{work / 'm.forerank'}' '{work / 'new.csv'}' -q | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.endswith(",score,rank\n")
    assert done.stderr == ""


def test_killed_at_any_moment_nothing_is_half_written(tmp_path, work):
    out = tmp_path / "m.forerank"
    rng = np.random.default_rng(0)
    command = [sys.executable, "-m", "forerank.cli", "fit", work / "train.csv", "-t", "y", "-o", out, "--force", "-q"]
    seen = 0
    for moment in (*rng.uniform(1.0, 4.0, 3), None):
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL) as child:
            try:
                child.wait(moment)
            except subprocess.TimeoutExpired:
                os.kill(child.pid, signal.SIGKILL)
        if out.exists():
            assert load_model(out).summary["rows"] == 300
            seen += 1
    assert seen >= 1


def odd_table(case):
    rng = np.random.default_rng(0)
    n = 10_000 if case == "three positives" else 400
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n) > 0.5
    if case == "three positives":
        y = np.arange(n) % 3334 == 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(y, "yes", "no"))
    if case == "leaky column":
        frame["known"] = y * 2.0 + 0.1 * rng.uniform(size=n)
    if case == "constant score":
        for name in "abc":
            frame[name] = np.where(np.arange(n) % 2 == 0, 1.0, 2.0)
        frame["y"] = np.where(np.arange(n) % 4 < 2, "yes", "no")
    if case == "one class in a group":
        frame["g"] = np.where(y, np.arange(n) % 5, np.arange(n) % 4)  # the last group has positives only
    return frame


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("leaky column", "'known'"),
        ("constant score", "alike|same score|a random order"),
        ("three positives", "3 of 10,000 rows|3 positive"),
        ("one class in a group", "one label|one class"),
    ],
)
def test_odd_data_are_spoken_of(tmp_path, case, words):
    odd_table(case).to_csv(tmp_path / "odd.csv", index=False)
    group = ["--group", "g"] if case == "one class in a group" else []
    fitted = run("fit", tmp_path / "odd.csv", "-t", "y", *group, "-o", tmp_path / "m.forerank")
    made = run("report", tmp_path / "odd.csv", "-t", "y", *group, "--against", "none", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    for text in (made.output, page, *([fitted.output] if case != "constant score" else [])):
        assert re.search(words, html.unescape(text)), text
    compared = run("compare", tmp_path / "odd.csv", "-t", "y", *group, "-m", "rows, logistic", "-m", "pairs, logistic")
    assert "pairs, logistic" in compared.stdout


def test_grades_by_all_commands(tmp_path):
    frame = table(300).assign(y=lambda f: np.digitize(f["age"].fillna(40), [30, 45, 60]))
    frame.to_csv(tmp_path / "grades.csv", index=False)
    words = [tmp_path / "grades.csv", "-t", "y", "--drop", "age"]
    assert "share of pairs in order" in run("fit", *words, "-o", tmp_path / "m.forerank").stdout
    for metric in ([], ["--metric", "wmw"], ["--metric", "ndcg@10"]):
        compared = run("compare", *words, *metric, "-m", "Ranker", "-m", "RankNCG", "--folds", "2").stdout
        assert "has the highest" in compared
    made = run("report", *words, "--against", "none", "--folds", "2", "-o", tmp_path / "r.html").stdout
    assert "a higher grade stands ahead" in made
    assert "choose wmw or ndcg@k" in fails("compare", *words, "--metric", "ap")


def test_report_says_in_words_what_it_shows(tmp_path, work):
    out = tmp_path / "r.html"
    words = ["report", work / "train.csv", "-t", "y", "--metric", "ap", "-o", out, "--folds", "3"]
    made = json.loads(run(*words, "--against", "rows, logistic", "--json").stdout)
    page = html.unescape(out.read_text()).replace("\N{NO-BREAK SPACE}", " ")
    assert all(sentence in page for sentence in made["sentences"])
    assert "rows, logistic" in page
    assert made["measures"][0]["name"] == "average precision"
    assert "is there already" in fails(*words)
    assert "would overwrite" in fails("report", work / "train.csv", "-t", "y", "-o", work / "train.csv", "--force")


def test_demo_does_the_main_job_and_draws(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    for part in ("forerank fit", "forerank rank", "forerank evaluate", "forerank explain", "RankSVM"):
        assert part in result.stdout
    assert len((tmp_path / "demo" / "ranked.csv").read_text().splitlines()) == 11
    for name in ("roc.png", "precision_recall.png"):
        picture = matplotlib.image.imread(tmp_path / "demo" / name)
        assert picture.shape[0] > 400
        assert np.ptp(picture) > 0.5


def test_comparison_is_on_rows_held_out():
    results = list(compare_rankers(n_splits=3))
    assert len({tuple(np.concatenate(r.y)) for r in results}) == 1
    assert all(len(np.concatenate(r.scores)) == 1797 for r in results)
    for _, auc, ap, top, milliseconds in table_rows(results):
        assert 0.9 < float(auc) < 1.0
        assert 0.5 < float(ap) < 1.0
        assert 0.0 <= float(top) < 1.0
        assert float(milliseconds) > 0.0
