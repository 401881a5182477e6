"""Model files: the loaded model equals the saved one, files are written atomically, and foreign
classes are refused.
"""

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hostile
from forerank import PairwiseRanker, TopPush
from forerank.active import PoolRanker
from forerank.data.column_plan import plan_columns
from forerank.exceptions import ModelFileError
from forerank.models import Model, load_model, read_card, save_model
from forerank.workflows.fit import fit


def data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=80),
            "job": rng.choice(["clerk", "cook"], 80),
            "note": [" ".join(rng.choice(["late", "paid", "call", "again"], 5)) for _ in range(80)],
            "seen": pd.date_range("2020-01-01", periods=80),
        }
    )
    return frame, (frame["age"] + rng.normal(size=80) > 0).astype(int)


def fitted(ranker=None):
    frame, y = data()
    pipeline = make_pipeline(
        plan_columns(frame).transformer(), ranker or PairwiseRanker(alpha=1e-2)
    ).fit(frame, y)
    columns = {"age": "number", "job": "category", "note": "text", "seen": "date"}
    return Model(pipeline, columns=columns, target="y", summary={"rows": 80}, notes=["a", "b"])


@pytest.mark.parametrize(
    "ranker", [PairwiseRanker("logistic", alpha=1e-2), TopPush(alpha=1e-2), PoolRanker()]
)
def test_a_loaded_model_gives_the_same_scores(tmp_path, ranker):
    model = fitted(ranker)
    path = tmp_path / "deep" / "model.forerank"
    digest = save_model(model, path)
    again = load_model(path)
    frame, _ = data()
    assert_array_equal(
        again.estimator.decision_function(frame), model.estimator.decision_function(frame)
    )
    assert (again.columns, again.target, again.group) == (model.columns, "y", None)
    assert (again.summary, again.notes) == ({"rows": 80}, ["a", "b"])
    assert {"forerank", "scikit-learn", "numpy"} <= set(again.versions)
    assert len(digest) == 64
    assert [entry.name for entry in path.parent.iterdir()] == ["model.forerank"]


def test_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "model.forerank"
    save_model(fitted(), path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        save_model(fitted(TopPush(alpha=1e-2)), path)
    assert path.read_bytes() == before
    save_model(fitted(TopPush(alpha=1e-2)), path, force=True)
    assert isinstance(load_model(path).estimator[-1], TopPush)
    assert len(list(tmp_path.iterdir())) == 1


def foreign(x):
    return x


def test_foreign_types_are_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    pipeline = make_pipeline(FunctionTransformer(foreign), LogisticRegression()).fit(X, X[:, 0] > 0)
    path = hostile.model_file(tmp_path, skops.io.dumps(pipeline))
    with pytest.raises(ModelFileError, match=r"a FunctionNode of [\w.]*foreign\. .*could run code"):
        load_model(path)
    path.unlink()
    save_model(Model(LogisticRegression().fit(X, X[:, 0] > 0)), path)
    assert load_model(path).columns == {}


def test_an_estimator_alone_is_no_model(tmp_path):
    path = tmp_path / "model.forerank"
    for single in (fitted().estimator, PairwiseRanker(), None):
        words = (
            rf"as forerank\.workflows\.fit\.fit returns it; got {type(single).__name__}\. .*joblib"
        )
        with pytest.raises(TypeError, match=words):
            save_model(single, path)
    assert not path.exists()


def test_an_object_that_is_no_estimator_is_refused(tmp_path):
    path = hostile.model_file(tmp_path, skops.io.dumps({"a": 1}))
    with pytest.raises(
        ModelFileError,
        match="it contains a dict, which is not an estimator with a decision_function",
    ):
        load_model(path)


def test_a_small_file_that_decompresses_to_much_is_refused(tmp_path):
    path = tmp_path / "bomb.forerank"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("card.json", json.dumps(hostile.card_of(b"")))
        with archive.open("model.skops", "w") as member:
            for _ in range(600):
                member.write(bytes(1 << 20))
    for read in (load_model, read_card):
        with pytest.raises(ModelFileError, match="decompresses to more than 512 MB"):
            read(path)


def test_file_systems_without_links(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError("no links here")

    monkeypatch.setattr("forerank.data.files.os.link", refuse)
    path = tmp_path / "model.forerank"
    save_model(fitted(), path)
    with pytest.raises(FileExistsError):
        save_model(fitted(), path)
    assert load_model(path).target == "y"
    (tmp_path / "link.forerank").symlink_to(path)
    save_model(fitted(TopPush(alpha=1e-2)), tmp_path / "link.forerank", force=True)
    assert (tmp_path / "link.forerank").is_symlink()
    assert isinstance(load_model(path).estimator[-1], TopPush)


def rewritten(path, **changes):
    with zipfile.ZipFile(path) as archive:
        card, estimator = json.loads(archive.read("card.json")), archive.read("model.skops")
    card.update({key: value for key, value in changes.items() if key != "estimator"})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "card.json",
            json.dumps({k: v for k, v in card.items() if k not in changes or v is not None}),
        )
        archive.writestr("model.skops", changes.get("estimator", estimator))


CHANGED_CARDS: list[tuple[dict, str]] = [
    ({"format": 99, "versions": {"forerank": "7.0"}}, "written by forerank 7.0, in a newer format"),
    ({"format": 99, "versions": []}, "written by forerank of a newer version"),
    ({"format": "one"}, "the card has no format"),
    ({"format": True}, "the card has no format"),
    ({"notes": None}, "the card lacks notes"),
    ({"columns": []}, r"'columns' should be a dictionary from names to number, .*, found \[\]"),
    ({"columns": {"age": "wine"}}, "date or date with zone, found {'age': 'wine'}"),
    ({"columns": {"age": ["number"]}}, r"found {'age': \['number'\]}"),
    ({"target": 3, "group": []}, "field 'target' should be a string or null, found a number"),
    ({"notes": 3}, "not a forerank model file: the card's field 'notes' should be a list of str"),
    ({"notes": ["a", {}]}, r"field 'notes' should be a list of strings, found \['a', {}\]"),
    ({"versions": {"forerank": 1}}, "the card's field 'versions' should be a dictionary of string"),
    ({"summary": {"rows": "many"}}, "the card's field 'rows' should be an integer, found a string"),
    ({"summary": {"rows": True}}, "the card's field 'rows' should be an integer, found a boolean"),
    ({"summary": {"zero_based": "no"}}, "'zero_based' should be a boolean, found a string"),
    ({"summary": {"classes": {"yes": "few"}}}, "'classes' should be a dictionary of integers"),
    ({"summary": {"measures": [{"name": "AUC"}]}}, "should be a list of measures with name"),
    ({"estimator": b"something else"}, "does not have the hash in the card; the file is damaged"),
]


@pytest.mark.parametrize(("changes", "message"), CHANGED_CARDS)
def test_wrong_fields_of_a_card_are_named(tmp_path, changes, message):
    path = tmp_path / "model.forerank"
    save_model(fitted(), path)
    rewritten(path, **changes)
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(ModelFileError, match="the file does not exist"):
        load_model(tmp_path / "none")
    path = tmp_path / "some.skops"
    skops.io.dump(LogisticRegression(), path)
    with pytest.raises(ModelFileError, match="not a forerank model file"):
        load_model(path)


WHOLE: list[bytes] = []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.floats(0, 1),
    junk=st.binary(max_size=40),
    how=st.sampled_from(["cut", "overwrite", "insert", "junk"]),
)
def test_damaged_files_give_clear_errors_only(tmp_path, place, junk, how):
    path = tmp_path / "model.forerank"
    if not WHOLE:
        save_model(Model(PairwiseRanker().fit([[0.0], [1.0]], [0, 1])), path, force=True)
        WHOLE.append(path.read_bytes())
    data, at = WHOLE[0], int(place * len(WHOLE[0]))
    path.write_bytes(
        {
            "cut": data[:at],
            "overwrite": data[:at] + junk + data[at + len(junk) :],
            "insert": data[:at] + junk + data[at:],
            "junk": junk,
        }[how]
    )
    try:
        model = load_model(path)
    except ModelFileError:
        return
    assert model.estimator.coef_.shape == (1, 1)


# A process that saves until it is killed, for each line: all of them share the imports of one.
# Without freezing, each would begin with a garbage collection of all that was imported, and be
# killed there and not while it writes.
CHILD = """
import gc, os, signal, sys
import numpy as np
from forerank import PairwiseRanker
from forerank.models import Model, save_model
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 300))
model = Model(PairwiseRanker().fit(X, X[:, 0] > 0))
save_model(model, sys.argv[1] + "-first", force=True)
gc.freeze()
for _ in sys.stdin:
    pid = os.fork()
    while pid == 0:
        save_model(model, sys.argv[1], force=True)
    print(pid, flush=True)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_files_are_complete_after_a_kill_at_any_time(tmp_path):
    path = tmp_path / "model.forerank"
    rng = np.random.default_rng(0)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", CHILD, path], **pipes) as child:
        for number in range(100):
            child.stdin.write("\n")
            child.stdin.flush()
            saving = int(child.stdout.readline())
            time.sleep(0.05 + rng.uniform(0, 0.3))
            os.kill(saving, signal.SIGKILL)
            if path.exists():  # a busy machine takes several tries to save the first
                assert load_model(path).estimator.coef_.shape == (1, 300)
                if number >= 4:
                    break
        child.stdin.close()
    assert child.returncode == 0  # none had ended by itself
    assert path.exists()


def test_words_of_a_text_are_not_written_one_by_one(tmp_path):
    """A member of the archive for each word would take time that grows with the square of their
    number.
    """
    words = [f"word{k}" for k in range(500)]
    frame = pd.DataFrame(
        {"text": [" ".join(words[k % 50 :: 50]) for k in range(200)], "y": [0, 1] * 100}
    )
    save_model(fit(frame, "y", ranker="PairwiseRanker", check=0.0), tmp_path / "m.forerank")
    with zipfile.ZipFile(tmp_path / "m.forerank") as archive:
        inner = zipfile.ZipFile(io.BytesIO(archive.read("model.skops")))
    assert len(inner.namelist()) < 50
