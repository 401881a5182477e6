"""The commands, as a shell runs them: what they print, where, and with which exit code."""

import html
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import forerank
from forerank.cli.app import app
from forerank.models import load_model
from forerank.workflows.demo import compare_rankers, table_rows
from tables import table


def run(*words, code=0, given=None):
    result = CliRunner().invoke(app, [str(word) for word in words], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert code is None or result.exit_code == code, result.output
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
        "demo",
    ]:
        assert "Examples" in run(command, "--help").output
    # Nothing heavy is imported for a page of help.
    code = "import sys, forerank.cli.app; print(sorted({'sklearn', 'numba', 'pandas', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_fit_says_what_was_done(tmp_path, work):
    result = run("fit", work / "train.csv", "--target", "y", "-o", tmp_path / "m.forerank")
    for part in (
        "300 rows of train.csv",
        "'yes'",
        "ahead of 'no'",
        "1 number,",
        "left out id",
        "AUC",
        "On 60 rows",
    ):
        assert part in result.stdout
    assert "saved" in result.stdout
    quiet = run(
        "fit",
        work / "train.csv",
        "--target",
        "y",
        "-o",
        tmp_path / "q.forerank",
        "-q",
        "--check",
        "0",
    )
    assert quiet.stdout.startswith("Chosen: ")
    assert quiet.stderr == ""


def test_parameters_come_from_options_or_toml(tmp_path, work):
    (tmp_path / "p.toml").write_text(
        'ranker = "PairwiseRanker"\nalpha = 0.5\nloss = "logistic"\nmax_iter = 7\n'
    )
    out = tmp_path / "m.forerank"
    words = (
        "fit",
        work / "train.csv",
        "-t",
        "y",
        "-o",
        out,
        "--params",
        tmp_path / "p.toml",
        "--alpha=2",
        "--json",
    )
    printed = json.loads(run(*words).stdout)
    ranker = load_model(out).estimator[-1]
    assert (ranker.alpha, ranker.loss, ranker.max_iter) == (2, "logistic", 7)
    assert printed["params"]["alpha"] == 2
    assert printed["measures"][0]["name"] == "AUC"
    assert printed["model"] == str(out)
    words = (
        "fit",
        work / "train.csv",
        "-t",
        "y",
        "-o",
        out,
        "--force",
        "-q",
        "--ranker",
        "PartialAUCRanker",
    )
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
    summary = json.loads(
        run("rank", work / "m.forerank", work / "new.csv", "-o", out, "--force", "--json").stdout
    )
    assert (summary["rows"], summary["written"], summary["unused"]) == (100, 100, ["id", "y"])


def test_probabilities_from_fit_to_list(tmp_path, work):
    model = tmp_path / "m.forerank"
    fails_with = fails("rank", work / "m.forerank", work / "new.csv", "--probability")
    assert (
        "the model has no probabilities; fit it with 'forerank fit ... --calibrate'" in fails_with
    )
    words = ("fit", work / "train.csv", "-t", "y", "--drop", "note", "--check", "0", "-q")
    assert "Ranker has it" in fails(*words, "-o", model, "--ranker", "TopPush", "--calibrate")
    run(*words, "-o", model, "--calibrate")
    (tmp_path / "p.toml").write_text("calibrate = true\n")
    run(*words, "-o", tmp_path / "same.forerank", "--params", tmp_path / "p.toml")
    fitted = load_model(model).estimator
    frame = pd.read_csv(work / "new.csv", parse_dates=["seen"])
    expected = fitted.predict_proba(frame)[:, 1]
    assert_allclose(
        load_model(tmp_path / "same.forerank").estimator.predict_proba(frame)[:, 1], expected
    )
    for out in ("list.csv", "list.parquet"):
        run("rank", model, work / "new.csv", "--probability", "-o", tmp_path / out)
        ranked = (
            pd.read_csv(tmp_path / out) if out.endswith("csv") else pd.read_parquet(tmp_path / out)
        )
        assert list(ranked.columns[-3:]) == ["score", "probability", "rank"]
        assert_allclose(ranked["probability"], np.sort(expected)[::-1], rtol=1e-9)
        assert (ranked["rank"].diff().dropna() >= 0).all()
    assert "probability" not in run("rank", model, work / "new.csv", "-q").stdout
    run("export", model, "-o", tmp_path / "m.onnx")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_scores_have_six_digits_in_a_terminal_and_all_in_a_pipe(work):
    import pty

    words = [
        sys.executable,
        "-m",
        "forerank.cli.app",
        "rank",
        work / "m.forerank",
        work / "new.csv",
        "--top",
        "1",
        "-q",
    ]
    ours, theirs = pty.openpty()
    with subprocess.Popen([str(word) for word in words], stdout=theirs):
        os.close(theirs)
        shown = os.read(ours, 10_000).decode()
        with suppress(OSError):  # the terminal is closed
            while part := os.read(ours, 10_000).decode():
                shown += part
    os.close(ours)
    piped = run(*words[3:]).stdout
    score, on_screen = (text.strip().split(",")[-2] for text in (piped, shown))
    assert on_screen == f"{float(score):.6g}"
    assert len(score) > len(on_screen)


def test_words_follow_their_numbers(tmp_path):
    frame = pd.DataFrame(
        {"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 0, 1, 1]} | {f"z{k}": [1, 4, 2, 3] for k in range(9)}
    )
    frame.to_csv(tmp_path / "in.csv", index=False)
    fitted = run(
        "fit", tmp_path / "in.csv", "-t", "y", "-o", tmp_path / "m.forerank", "--check", "0"
    )
    assert "and 2 more" in fitted.stdout
    frame.iloc[:1].assign(**{f"more {k}": 1 for k in range(12)}).to_csv(
        tmp_path / "one.csv", index=False
    )
    ranked = run(
        "rank", tmp_path / "m.forerank", tmp_path / "one.csv", "-o", tmp_path / "list.csv"
    ).stderr
    assert "1 of 1 row written" in ranked
    assert "more 5, more 6, and 5 more" in ranked
    compared = run(
        "compare", tmp_path / "in.csv", "-t", "y", "-m", "PairwiseRanker", "--folds", "2", code=None
    )
    head = next(line for line in compared.stdout.splitlines() if "method" in line)
    assert "AUC" in head
    assert "auc" not in head


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
    assert_allclose(
        sum(t["adds"] for t in first["columns"].values()) + printed["intercept"], first["score"]
    )

    result = run("inspect", model)
    for part in (
        "PairwiseRanker(alpha=0.01",
        "300 rows of train.csv",
        "sha256",
        "none: it can be loaded",
    ):
        assert part in result.stdout
    assert json.loads(run("inspect", model, "--json").stdout)["target"] == "y"
    one_class = run("evaluate", model, new, "--by", "y", "--k", "1000")
    assert "one class only" in one_class.stdout
    assert "there are fewer than 1,000 rows" in one_class.stderr
    assert "is there already" in fails("evaluate", model, new, "--curves", picture)


def shown_rows(text):
    """The rows of the tables that were printed, as lists of cells."""
    return [
        [cell.strip() for cell in line.strip("│").split("│")]
        for line in text.splitlines()
        if line[:1] == "│"
    ]


@pytest.mark.parametrize("weights", [1, 3, 20, 0])
def test_what_explain_shows_adds_up_to_the_score(work, weights):
    words = (
        "explain",
        work / "m.forerank",
        work / "new.csv",
        "--row",
        "2",
        "--weights",
        str(weights),
        "-q",
    )
    *rows, total = [(row[0], float(row[2])) for row in shown_rows(run(*words).stdout)]
    assert total[0] == "score"
    assert_allclose(sum(adds for _, adds in rows), total[1], atol=1e-4 * len(rows))
    names = [name for name, _ in rows]
    assert names[-1] == "constant"
    assert (f"{5 - weights} other columns" in names) == (0 < weights < 5)
    assert any(name.startswith("note: ") for name in names) == (weights != 1)
    printed = json.loads(run(*words, "--json").stdout)["rows"][0]
    assert_allclose(
        printed["constant"] + sum(each["adds"] for each in printed["columns"].values()),
        printed["score"],
    )
    note = printed["columns"]["note"]
    assert_allclose(sum(note["words"].values()) + note["other_words"]["adds"], note["adds"])


def test_types_and_labels_are_said_by_options(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {"zip": rng.choice([1010, 8010], n), "age": rng.uniform(18, 80, n).round(1).astype(str)}
    )
    frame["city"] = rng.choice(["Zürich", "Málaga"], n)
    frame["y"] = np.where(frame["zip"] + 1000 * rng.normal(size=n) > 4500, "yes", "no")
    frame.loc[7, "age"], frame.loc[11, "y"], frame.loc[13, "y"] = "unknwon", None, " yes"
    path = tmp_path / "rows"
    frame.to_csv(path, index=False, encoding="cp1252")
    fit = ["fit", path, "-t", "y", "-o", tmp_path / "m.forerank"]
    assert fails(*fit).endswith("name its format (--format csv)")
    fit += ["--format", "csv"]
    assert fails(*fit).endswith("or save it in UTF-8 (--encoding cp1252)")
    fit += ["--encoding", "cp1252"]
    assert "line 13: the label 'y' is missing here (1 of 300 rows has none)" in fails(*fit)
    assert fails(*fit).endswith("(--skip-unlabelled)")
    fit += ["--skip-unlabelled", "--category", "zip"]
    assert "line 9: the column 'age' has 'unknwon', and a number is expected" in fails(
        *fit, "--number", "age"
    )
    assert "'zip' is said to be category and text" in fails(*fit, "--text", "zip")
    said = run(*fit).stdout
    assert "1 of 300 rows without a label are left out" in said
    assert "age: 1 of 299 values is no number ('unknwon' in line 9): taken as missing" in said
    assert "name the type of the column (--number, --category, --text or --ignore COLUMN)" in said
    assert "' yes' (1) as 'yes'" in said
    assert load_model(tmp_path / "m.forerank").columns == {
        "age": "number",
        "zip": "category",
        "city": "category",
    }
    read = [tmp_path / "m.forerank", path, "--format", "csv"]
    assert "1 of 300 rows without a label are left out" in run("evaluate", *read).stderr
    assert len(run("rank", *read, "-q").stdout.splitlines()) == 301
    assert "zip" in run("explain", *read).stdout
    piped = run("rank", tmp_path / "m.forerank", "-", "-q", given=path.read_bytes())
    assert piped.stdout == run("rank", *read, "-q").stdout
    options = ["-t", "y", *fit[6:], "--ignore", "city"]
    compared = run(
        "compare", path, *options, "-m", "rows, logistic", "-m", "pairs, logistic", "--folds", "2"
    )
    for part in (
        "1 of 300 rows without a label are left out",
        "left out city: as asked",
        "299 rows",
    ):
        assert part in compared.stdout
    run("report", path, *options, "--against", "none", "--folds", "2", "-o", tmp_path / "r.html")
    assert "1 of 300 rows without a label are left out" in html.unescape(
        (tmp_path / "r.html").read_text()
    )


def test_no_rows_to_rank_are_no_error(tmp_path, work):
    header = (work / "new.csv").read_text().splitlines()[0]
    result = run("rank", work / "m.forerank", "-", given=header + "\n")
    assert result.stdout == header + ",score,rank\n"
    assert "0 of 0 rows written" in result.stderr


def test_a_missing_column_comes_with_its_option(tmp_path, work):
    assert fails("rank", work / "m.forerank", "-", given="id,age\n1,2\n").endswith(
        "(--allow-missing)"
    )


def test_export(tmp_path, work):
    assert "cannot be exported" in fails("export", work / "m.forerank", "-o", tmp_path / "m.onnx")
    run("fit", work / "train.csv", "-t", "y", "--drop", "note", "-o", tmp_path / "m.forerank", "-q")
    assert (
        "scores agree" in run("export", tmp_path / "m.forerank", "-o", tmp_path / "m.onnx").stdout
    )
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
    (
        "quote.csv",
        b'x,y\n1,yes\n2,"no\n3,yes\n4,no\n',
        "line 3: a quote opens here and never closes",
    ),
    (
        "utf16.csv",
        "x,y\n1,2\n".encode("utf-16-le"),
        "this looks like text in UTF-16 without a byte order mark",
    ),
    (
        "latin.csv",
        b"x,y\n\xe9,yes\na,no\n",
        "line 2: not text in UTF-8: the byte 0xE9 is 'é' in cp1252",
    ),
    (
        "plain.npz",
        b"x,y\n1,2\n",
        "cannot be read as a NumPy archive: it is none, whatever its name says",
    ),
    ("none.csv", None, "there is no such file"),
]


@pytest.mark.parametrize(("name", "data", "message"), BAD)
def test_bad_files_are_named_in_one_line(tmp_path, name, data, message):
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    said = fails(
        "fit",
        path,
        *(() if name.endswith("npz") else ("--target", "y")),
        "-o",
        tmp_path / "m.forerank",
    )
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
    assert "b.svm, line 2: not a line of svmlight" in fails(
        "fit", tmp_path / "b.svm", "-o", tmp_path / "m"
    )


def test_what_cannot_be_is_said(tmp_path, work):
    model, new = work / "m.forerank", work / "new.csv"
    assert "is there already" in fails("fit", work / "train.csv", "-t", "y", "-o", model)
    misspelt = fails(
        "fit", new, "-t", "y", "-o", tmp_path / "m", "-r", "PairwiseRanker", "--alfa", "1"
    )
    assert "Did you mean 'alpha'" in misspelt
    assert "has no value" in fails("fit", new, "-t", "y", "-o", tmp_path / "m", "--alpha")
    assert "FILE comes first" in fails("fit", "--alpha", "1", new, "-t", "y", "-o", tmp_path / "m")
    assert "no option" in fails("fit", new, "more.csv", "-t", "y", "-o", tmp_path / "m")
    assert "alpha" in fails(
        "fit", new, "-t", "y", "-o", tmp_path / "m", "-r", "PairwiseRanker", "--alpha", "-1"
    )
    assert "no such file" in fails("rank", tmp_path / "no.forerank", new)
    assert "not a forerank model file" in fails("rank", new, new)
    assert "must then go to a file" in fails("rank", model, new, "--json")
    assert "standard input, line 2" in fails(
        "rank", model, "-", given="id,age,job,seen,note,city\n1,2\n"
    )
    assert "overwrite what is read" in fails("fit", new, "-t", "y", "-o", new, "--force")
    assert "overwrite what is read" in fails("rank", model, new, "-o", model, "--force")
    assert "a model goes into a file" in fails("fit", new, "-t", "y", "-o", "-")
    assert "ends in .png" in fails("evaluate", model, new, "--curves", tmp_path / "c.txt")
    assert "none.toml: no such file" in fails(
        "fit", new, "-t", "y", "-o", tmp_path / "m", "--params", "none.toml"
    )
    assert "this is a directory" in fails("fit", tmp_path, "-t", "y", "-o", tmp_path / "m")
    (tmp_path / "bad.toml").write_text("alpha = = 1")
    said = fails("fit", new, "-t", "y", "-o", tmp_path / "m", "--params", tmp_path / "bad.toml")
    assert "bad.toml: not TOML" in said
    assert list(tmp_path.iterdir()) == [tmp_path / "bad.toml"]


def test_warnings_are_remarks(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=40), "q": np.repeat(np.arange(10), 4), "y": rng.integers(0, 2, 40)}
    )
    frame.loc[frame["q"] == 0, "y"] = 0
    frame.to_csv(tmp_path / "a.csv", index=False)
    words = (
        "fit",
        tmp_path / "a.csv",
        "-t",
        "y",
        "--group",
        "q",
        "-o",
        tmp_path / "m.forerank",
        "--check",
        "0",
    )
    assert "note: 1 of 10 groups" in run(*words).stderr
    assert run(*words, "--force", "-q").stderr == ""
    assert any(
        "10 groups" in each
        for each in json.loads(run(*words, "--force", "--json").stdout)["warnings"]
    )


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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
        app,
        ["fit", str(path), "--target", "y", "-o", str(tmp_path / "m.forerank"), "--force", "-q"],
    )
    assert result.exit_code in (0, 2), result.exception
    assert len(result.stderr.splitlines()) == (1 if result.exit_code == 2 else 0)


def test_the_reader_may_leave_early(tmp_path, work):
    command = f"'{sys.executable}' -m forerank.cli.app rank '{work / 'm.forerank'}' '{work / 'new.csv'}' -q | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.endswith(",score,rank\n")
    assert done.stderr == ""


def test_killed_at_any_moment_nothing_is_half_written(tmp_path, work):
    out = tmp_path / "m.forerank"
    rng = np.random.default_rng(0)
    command = [
        sys.executable,
        "-m",
        "forerank.cli.app",
        "fit",
        work / "train.csv",
        "-t",
        "y",
        "-o",
        out,
        "--force",
        "-q",
    ]
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
        frame["g"] = np.where(
            y, np.arange(n) % 5, np.arange(n) % 4
        )  # the last group has positives only
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
    made = run(
        "report",
        tmp_path / "odd.csv",
        "-t",
        "y",
        *group,
        "--against",
        "none",
        "-o",
        tmp_path / "r.html",
    )
    page = (tmp_path / "r.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    for text in (made.output, page, *([fitted.output] if case != "constant score" else [])):
        assert re.search(words, html.unescape(text)), text
    compared = run(
        "compare",
        tmp_path / "odd.csv",
        "-t",
        "y",
        *group,
        "-m",
        "rows, logistic",
        "-m",
        "pairs, logistic",
    )
    assert "pairs, logistic" in compared.stdout


def test_grades_by_all_commands(tmp_path):
    frame = table(300).assign(y=lambda f: np.digitize(f["age"].fillna(40), [30, 45, 60]))
    frame.to_csv(tmp_path / "grades.csv", index=False)
    words = [tmp_path / "grades.csv", "-t", "y", "--drop", "age"]
    assert "share of pairs in order" in run("fit", *words, "-o", tmp_path / "m.forerank").stdout
    for metric in ([], ["--metric", "wmw"], ["--metric", "ndcg@10"]):
        compared = run(
            "compare", *words, *metric, "-m", "Ranker", "-m", "RankNCG", "--folds", "2"
        ).stdout
        assert "has the highest" in compared
    made = run(
        "report", *words, "--against", "none", "--folds", "2", "-o", tmp_path / "r.html"
    ).stdout
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
    assert "would overwrite" in fails(
        "report", work / "train.csv", "-t", "y", "-o", work / "train.csv", "--force"
    )


def test_demo_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    def missing(results, out):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr("forerank.workflows.demo.draw", missing)
    monkeypatch.setattr("forerank.workflows.demo.compare_rankers", lambda seed: iter(()))
    monkeypatch.setattr("forerank.cli.app.app", lambda words, standalone_mode: 0)
    result = run("demo", "-o", tmp_path, "-q", code=2)
    assert (
        result.stderr == "forerank: matplotlib is needed for this: pip install 'forerank[plots]'\n"
    )


def test_demo_does_the_main_job_and_draws(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    for part in (
        "forerank fit",
        "forerank rank",
        "forerank evaluate",
        "forerank explain",
        "RankSVM",
    ):
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


def test_an_interval_without_width_is_not_shown_as_certainty():
    from forerank.cli.app import _interval

    assert _interval({"value": 1.0, "low": 1.0, "high": 1.0}) == "1.0000"
    assert _interval({"value": 0.9, "low": 0.8, "high": 1.0}) == "0.9000  [0.8000, 1.0000]"
