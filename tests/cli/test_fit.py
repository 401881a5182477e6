"""The command fit: parameters, notes, and files that cannot be read."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import fails, run
from forerank.models import load_model


def test_printed_summary(tmp_path, work):
    data = work / "train.csv"
    quick = "--alphas 3 --cv 3 --target y -o"
    printed = run("fit", data, quick, tmp_path / "m.forerank").stdout
    rows = ("300 rows of train.csv", "positive 'yes'", "negative 'no'", "1 number,", "left out id")
    for part in (*rows, "AUC", "On 60 held-out rows", "saved"):
        assert part in printed
    quiet = run("fit", data, "-q --check 0 --families linear", quick, tmp_path / "q.forerank")
    assert quiet.stdout.startswith("Selected: ")
    assert quiet.stderr == ""


def test_parameters_from_options_and_toml(tmp_path, work):
    toml, out = tmp_path / "p.toml", tmp_path / "m.forerank"
    toml.write_text('ranker = "PairwiseRanker"\nalpha = 0.5\nloss = "logistic"\nmax_iter = 7\n')
    fit = ["fit", work / "train.csv", "-t y -o", out]
    printed = json.loads(run(*fit, "--params", toml, "--alpha=2 --json").stdout)
    ranker = load_model(out).estimator[-1]
    assert (ranker.alpha, ranker.loss, ranker.max_iter) == (2, "logistic", 7)
    assert printed["params"]["alpha"] == 2
    assert printed["measures"][0]["name"] == "AUC"
    assert printed["model"] == str(out)
    parameters = "--fpr-range '[0.0, 0.2]' --max-iter 20 --alpha 0.1"
    run(*fit, "--force -q --ranker PartialAUCRanker", parameters)
    assert load_model(out).estimator[-1].fpr_range == (0.0, 0.2)
    run(*fit, "--force -q --check 0 --ranker TopPush --params", toml, "--alpha 3 --max-iter 9")
    assert type(load_model(out).estimator[-1]).__name__ == "TopPush"


def test_boosted_trees_by_name(tmp_path, work):
    pytest.importorskip("lightgbm")
    fit = ["fit", work / "train.csv", "-t y -r BoostedRanker --max-rounds 5 --cv 2 -o"]
    shown = fails(*fit, tmp_path / "m.forerank", "--metric foo")
    assert "metric must be one of" in shown
    assert not (tmp_path / "m.forerank").exists()
    shown = fails(*fit, tmp_path / "m.forerank", "--categorical-features job")
    assert "categorical_features='job' is for arrays and frames" in shown
    assert shown.endswith(" (--category COLUMN)")
    assert not (tmp_path / "m.forerank").exists()
    run(*fit, tmp_path / "m.forerank", "--metric ap --check 0 --category age")
    assert load_model(tmp_path / "m.forerank").columns["age"] == "category"
    assert load_model(tmp_path / "m.forerank").estimator[-1].metric == "ap"


def test_patterns_and_memory(tmp_path, work):
    frame = pd.read_csv(work / "train.csv")
    frame.iloc[:150].to_parquet(tmp_path / "part0.parquet")
    frame.iloc[150:].to_parquet(tmp_path / "part1.parquet")
    fit = ["fit", tmp_path / "part*.parquet", "-t y -r PairwiseRanker --force --json -o"]
    found = json.loads(run(*fit, tmp_path / "m.forerank").stdout)
    assert (found["rows"], found["source"]) == (300, "2 files, part0.parquet to part1.parquet")
    assert "not a size in bytes" in fails(*fit, tmp_path / "m.forerank", "--memory much")
    large = pd.concat([frame] * 150, ignore_index=True)
    large["id"] = range(len(large))
    large.to_csv(tmp_path / "large.csv", index=False)
    options = "-t y -r PairwiseRanker --check 0 --memory 1MB --json -o"
    found = json.loads(run("fit", tmp_path / "large.csv", options, tmp_path / "l.forerank").stdout)
    assert found["rows"] == len(large) > found["sample_rows"]
    options = "-t y -r PairwiseRanker --memory 1MB -o"
    shown = run("fit", tmp_path / "large.csv", options, tmp_path / "m.forerank --force").stdout
    assert "held-out rows of the sample, before the fit on all rows" in shown
    assert "The first k of the sample are the same share of the held-out rows." in shown
    assert load_model(tmp_path / "l.forerank").estimator[-1].coef_.any()


JUNK = b"\x00\x01\x02\xff" * 50
BAD = [
    ("ragged.csv", b"x,y\n1,yes\n2\n", "line 3: a row of 1 values"),
    ("mixed.csv", b"x,y\n1,1\n2,0\n3,yes\n", "line 4: mixed labels in 'y'"),
    ("target.csv", b"x,why\n1,1\n", "there is no column 'y'"),
    ("empty.csv", b"", "the file is empty"),
    ("junk.csv", JUNK, "this is not a text file"),
    ("junk.parquet", JUNK, "cannot be read as Parquet"),
    ("junk.npz", JUNK, "cannot be read as a NumPy archive"),
    ("quote.csv", b'x,y\n1,yes\n2,"no\n3,yes\n', "line 3: a quote opens here and never closes"),
    ("utf16.csv", "x,y\n1,2\n".encode("utf-16-le"), "UTF-16 text without a byte order mark"),
    ("latin.csv", b"x,y\n\xe9,yes\na,no\n", "line 2: not UTF-8 text: the byte 0xE9 is 'é'"),
    ("plain.npz", b"x,y\n1,2\n", "cannot be read as a NumPy archive"),
    ("none.csv", None, "there is no such file"),
]


@pytest.mark.parametrize(("name", "data", "message"), BAD)
def test_unreadable_files_are_named_in_one_line(tmp_path, name, data, message):
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    target = "" if name.endswith("npz") else "--target y"
    error = fails("fit", path, target, "-o", tmp_path / "m.forerank")
    assert message in error
    assert name in error
    assert not (tmp_path / "m.forerank").exists()


def test_wrong_delimiter_and_missing_qid(tmp_path):
    csv, svm, out = tmp_path / "a.csv", tmp_path / "a.svm", tmp_path / "m"
    csv.write_text("x;y\n1;yes\n2;no\n")
    assert "is the delimiter another one" in fails("fit", csv, "-t y --delimiter , -o", out)
    svm.write_text("1 1:2\n0 1:3\n")
    assert "a.svm: it has no groups" in fails("fit", svm, "--group qid -o", out)
    svm.write_text("1 1:2\n0 1:x\n")
    assert "a.svm, line 2: not a line of svmlight" in fails("fit", svm, "-o", out)


def test_unusable_options(tmp_path, work):
    model, new, out = work / "m.forerank", work / "new.csv", tmp_path / "m"
    exists = fails("fit", work / "train.csv", "-t y -o", model)
    assert "exists already" in exists
    assert exists.endswith("(--force)")
    fit = ["fit", new, "-t y -o", out]
    assert "Did you mean 'alpha'" in fails(*fit, "-r PairwiseRanker --alfa 1")
    assert "needs a value" in fails(*fit, "--alpha")
    assert "FILE comes first" in fails("fit --alpha 1", new, "-t y -o", out)
    assert "not an option" in fails("fit", new, "more.csv -t y -o", out)
    assert "alpha" in fails(*fit, "-r PairwiseRanker --alpha -1")
    assert "choose another output file" in fails("fit", new, "-t y --force -o", new)
    assert "give a file: -o MODEL" in fails("fit", new, "-t y -o -")
    assert "none.toml: no such file" in fails(*fit, "--params none.toml")
    assert "this is a directory" in fails("fit", tmp_path, "-t y -o", out)
    (tmp_path / "bad.toml").write_text("alpha = = 1")
    assert "bad.toml: not TOML" in fails(*fit, "--params", tmp_path / "bad.toml")
    assert list(tmp_path.iterdir()) == [tmp_path / "bad.toml"]


def test_warnings_are_printed_as_notes(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40), "q": np.repeat(np.arange(10), 4)})
    frame["y"] = rng.integers(0, 2, 40)
    frame.loc[frame["q"] == 0, "y"] = 0
    frame.to_csv(tmp_path / "a.csv", index=False)
    fit = ["fit", tmp_path / "a.csv", "-t y --group q --check 0 -o", tmp_path / "m.forerank"]
    assert "note: 1 of 10 groups" in run(*fit).stderr
    fit.append("-r PairwiseRanker")
    assert "note: 1 of 10 groups" in run(*fit, "--force").stderr
    assert run(*fit, "--force -q").stderr == ""
    printed = json.loads(run(*fit, "--force --json").stdout)
    assert any("10 groups" in warning for warning in printed["warnings"])


LINES = st.text(alphabet='xy,;"\n\r 01nes.é', max_size=160).map(lambda t: ("x,y\n" + t).encode())


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(st.binary(max_size=120), LINES),
    suffix=st.sampled_from(["csv", "tsv", "csv.gz", "parquet", "feather"]),
)
def test_random_files_are_refused_in_one_line_or_fitted(tmp_path, data, suffix):
    path = tmp_path / f"junk.{suffix}"
    path.write_bytes(data)
    result = run("fit", path, "-t y --force -q -o", tmp_path / "m.forerank", code=None)
    assert result.exit_code in (0, 2)
    assert len(result.stderr.splitlines()) == (1 if result.exit_code == 2 else 0)
