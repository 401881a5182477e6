"""Hostile model files: none of them is loaded, nothing in them runs, and `inspect` names the
problems.

`scripts/hostile` runs this file against every version of skops that pyproject.toml allows.
"""

import json
import warnings
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skops.io
from numpy.testing import assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

import hostile
import hostile_nodes
from forerank import estimators
from forerank.active import PoolRanker
from forerank.cli.app import app
from forerank.exceptions import ModelFileError
from forerank.models import Model, load_model, read_card, safety, save_model
from forerank.selection import Ranker
from forerank.workflows.fit import fit
from forerank.workflows.rankers import ranker_names

# Before 0.15 skops wrote a sparse array as an object like any other, and could not read it.
KNOWS_SPARSE_ARRAYS = tuple(map(int, skops.__version__.split(".")[:2])) >= (0, 15)


@pytest.fixture(params=list(hostile.CORPUS))
def hostile_file(request, tmp_path):
    case = hostile.CORPUS[request.param]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name", UserWarning)
        return case.make(tmp_path), case.message


def test_hostile_files_are_refused_and_inspect_names_the_reason(hostile_file, tmp_path):
    path, message = hostile_file
    with pytest.raises(ModelFileError) as refused:
        load_model(path)
    assert message in str(refused.value)
    shown = CliRunner().invoke(app, ["inspect", str(path)])
    words = " ".join((shown.stdout + shown.stderr).split())
    assert message in words
    assert "can be loaded" not in words
    as_json = CliRunner().invoke(app, ["inspect", "--json", str(path)])
    assert as_json.exit_code == 2 or json.loads(as_json.stdout)["problems"]
    assert not (tmp_path / "ran").exists()


def test_skops_is_not_asked_about_what_we_refuse(tmp_path, monkeypatch):
    """Not even to look at it: a fault in how it looks cannot be used."""
    path = hostile.CORPUS["methods of our classes"].make(tmp_path)
    for name in ("loads", "get_untrusted_types"):
        monkeypatch.setattr(skops.io, name, lambda *args, **kwargs: pytest.fail("skops was asked"))
    assert read_card(path)["problems"]
    with pytest.raises(ModelFileError):
        load_model(path)


def rows(n=160):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "gap": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "job": rng.choice(["clerk", "cook", "x"], n),
            "yes": rng.choice([True, False], n),
            "kind": pd.Categorical(rng.integers(0, 4, n)),
            "note": [
                " ".join(rng.choice(["late", "paid", "call", "again", "soon"], 6)) for _ in range(n)
            ],
            "seen": pd.date_range("2020-01-01", periods=n),
            "zone": pd.date_range("2020-01-01", periods=n, tz="Europe/Berlin"),
        }
    )
    return frame, (frame["age"] + rng.normal(size=n) > 0).astype(int).to_numpy()


def check_round_trip(estimator, X, path):
    save_model(Model(estimator), path)
    assert read_card(path)["problems"] == []
    assert_array_equal(
        load_model(path).estimator.decision_function(X), estimator.decision_function(X)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ranker_names())
def test_round_trip_of_every_ranker_on_a_table(tmp_path, name):
    frame, y = rows()
    model = fit(frame.assign(y=y), "y", ranker=name, check=0)
    check_round_trip(model.estimator, frame, tmp_path / "model.forerank")


@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@pytest.mark.parametrize("how", ["nystroem", "fourier", "quadratic"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_round_trip_of_feature_maps(tmp_path, how, storage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * (rng.random((200, 2)) < 0.8)
    y = ((X**2).sum(axis=1) < 1).astype(int)
    ranker = Ranker(maps=[how], cv=StratifiedKFold(3), random_state=np.random.RandomState(0))
    ranker.fit(storage(X), y)
    if how == "nystroem" and storage is sp.csr_array and not KNOWS_SPARSE_ARRAYS:
        with pytest.raises(
            ModelFileError, match=r"an ObjectNode of scipy\.sparse\._csr\.csr_array"
        ):
            save_model(Model(ranker), tmp_path / "model.forerank")
        return
    check_round_trip(ranker, storage(X), tmp_path / "model.forerank")


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_round_trip_of_calibrated_rankers(tmp_path, method):
    frame, y = rows()
    X = frame[["age"]].to_numpy()
    calibrated = CalibratedClassifierCV(estimators.PairwiseRanker(), method=method, cv=2).fit(X, y)
    path = tmp_path / "model.skops"
    path.write_bytes(skops.io.dumps(calibrated))
    contents = safety.check_estimator(path.read_bytes())
    assert contents.problems == []
    again = skops.io.loads(path.read_bytes(), trusted=sorted(contents.types))
    assert_array_equal(again.predict_proba(X), calibrated.predict_proba(X))


@pytest.mark.parametrize(
    "labels",
    [np.array(["no", "yes"]), np.array(["no", "yes"], dtype=object), np.array([False, True])],
)
@pytest.mark.parametrize("ranker", [estimators.PairwiseRanker(), PoolRanker()])
def test_round_trip_of_labels_of_any_type(tmp_path, labels, ranker):
    frame, y = rows()
    X = frame[["age"]].astype(np.float32)
    check_round_trip(ranker.fit(X, labels[y]), X, tmp_path / "model.forerank")


def test_a_model_of_the_first_format_is_still_read():
    data = Path(__file__).parents[1] / "model_files"
    card, model = read_card(data / "format-1.forerank"), load_model(data / "format-1.forerank")
    assert card["problems"] == []
    assert model.columns == card["columns"]


def test_the_classes_of_scikit_learn_are_where_we_say():
    """A name that no longer leads anywhere would refuse models that it should let through."""
    since = {"_TemperatureScaling"}  # scikit-learn 1.8
    lost = [
        f"{module}.{name}"
        for module, names in safety._SKLEARN.items()
        for name in names.split()
        if name not in since and not hasattr(import_module(module), name)
    ]
    assert lost == []


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    path = tmp_path / "model.forerank"
    X, y = np.arange(4.0)[:, None], [0, 1, 0, 1]
    message = r"it contains an ObjectNode of sklearn\.naive_bayes\.GaussianNB"
    with pytest.raises(ModelFileError, match=message):
        save_model(Model(import_module("sklearn.naive_bayes").GaussianNB().fit(X, y)), path)
    with pytest.raises(ModelFileError, match="take more than 16 MB"):
        save_model(Model(estimators.PairwiseRanker().fit(X, y), notes=["x" * (1 << 24)]), path)
    assert not path.exists()


def test_a_long_list_of_problems_is_shortened(tmp_path):
    many = hostile_nodes.listing(
        *(hostile_nodes.instance("evil", f"Class{k}") for k in range(1000))
    )
    path = hostile.model_file(tmp_path, hostile.of_schema(many))
    problems = read_card(path)["problems"]
    assert problems[-1] == "990 more"
    assert len(problems) == 11


def test_no_more_is_decompressed_than_is_allowed(tmp_path, monkeypatch):
    """Reading of a card of 500 MB ends after its first 16 MB."""
    path, decompressed = hostile.CORPUS["a card of 500 MB"].make(tmp_path), []
    read = zipfile.ZipExtFile.read

    def counted(self, n=-1):
        data = read(self, n)
        decompressed.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    with pytest.raises(ModelFileError):
        read_card(path)
    assert sum(decompressed) == (1 << 24) + 1


def spoilt_vocabulary(pipeline):
    words = pipeline[0].transformers_[-1][1].tfidf_.vocabulary_
    words["late"] = 10**6


def spoilt_widths(pipeline):
    encoder = pipeline[0].transformers_[1][1].encoders_[0]
    encoder.sparse_output, encoder._n_features_outs = False, [1]


def spoilt_groups(pipeline):
    encoder = pipeline[0].transformers_[1][1].encoders_[0]
    encoder._default_to_infrequent_mappings = [np.array([0, 1, 10**6])]


def spoilt_rare(pipeline):
    encoder = pipeline[0].transformers_[1][1].encoders_[0]
    encoder._infrequent_indices = [np.array([10**6])]


def spoilt_drop(pipeline):
    encoder = pipeline[0].transformers_[1][1].encoders_[0]
    encoder._drop_idx_after_grouping = np.array([10**6], dtype=object)


@pytest.mark.parametrize(
    "spoil", [spoilt_vocabulary, spoilt_widths, spoilt_groups, spoilt_rare, spoilt_drop]
)
def test_columns_outside_of_the_matrix_are_refused(tmp_path, spoil):
    frame, y = rows()
    model = fit(frame[["age", "job", "note"]].assign(y=y), "y", ranker="PairwiseRanker", check=0)
    spoil(model.estimator)
    save_model(model, tmp_path / "model.forerank")
    with pytest.raises(ModelFileError, match="have wrong column numbers"):
        load_model(tmp_path / "model.forerank")


def test_columns_outside_are_an_error_where_they_are_made(tmp_path):
    frame, y = rows()
    model = fit(frame[["age", "job"]].assign(y=y), "y", ranker="PairwiseRanker", check=0)
    model.estimator[0].transformers_[1][1].widths_ = [1]
    with pytest.raises(ValueError, match="indices"):
        model.estimator.decision_function(frame)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix])
def test_weights_that_are_too_few_are_an_error(storage):
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 2
    ranker = estimators.PairwiseRanker().fit(X, y)
    ranker.coef_ = ranker.coef_[:, :2]
    with pytest.raises(ValueError, match="2 weights for 5 columns"):
        ranker.decision_function(storage(X))


@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
@pytest.mark.parametrize("rare", [None, 3])
def test_round_trip_of_encoders(tmp_path, drop, rare):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(list("aaaabbbbc"), 60), rng.choice(["x", "y"], 60)]).astype(
        object
    )
    y = np.arange(60) % 2
    pipeline = make_pipeline(
        OneHotEncoder(drop=drop, min_frequency=rare), estimators.PairwiseRanker()
    ).fit(X, y)
    check_round_trip(pipeline, X, tmp_path / "model.forerank")
