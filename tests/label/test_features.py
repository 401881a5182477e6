"""Features of records: tf-idf of their words, and other columns by their kinds."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from forerank.label.features import Features, record_features
from forerank.label.project import create_project

TEXTS = ["alpha beta", "beta gamma", "gamma delta alpha"]


@pytest.fixture
def features(tmp_path):
    def make(texts, others=None, is_text=True):
        others = others or {}
        path = tmp_path / "a"
        path.unlink(missing_ok=True)
        project = create_project(path, {"columns": {"is_text": is_text, "others": list(others)}})
        fields = [
            json.dumps({name: values[k] for name, values in others.items()})
            for k in range(len(texts))
        ]
        with project.transaction():
            project.add_records(
                ("f", text, "", "", "", "", "", each, "", -1)
                for text, each in zip(texts, fields, strict=True)
            )
        reader = project.reader()
        try:
            return record_features(reader)
        finally:
            reader.close()
            project.close()

    return make


def test_words_are_those_of_scikit_learn(features):
    found = features(TEXTS)
    peer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    assert abs(found.X - peer.fit_transform(TEXTS)).max() < 1e-12
    assert found.words.tolist() == peer.get_feature_names_out().tolist()


def test_other_columns_are_numbers_and_categories(features):
    n = 40
    others = {
        "n": [str(k) if k else "" for k in range(n)],
        "kind": ["a" if k % 2 else "b" for k in range(n)],
    }
    found = features(["word"] * n, others, is_text=False)
    assert found.X.shape == (n, 3)
    assert found.words.size == 0
    numbers = found.X[:, 0].toarray().ravel()[1:]
    assert np.corrcoef(numbers, np.arange(1, n))[0, 1] == pytest.approx(1.0)
    both = features([f"word w{k % 3}" for k in range(n)], others)
    assert both.X.shape[1] == both.words.size + 3


@pytest.mark.parametrize("texts", [["", ""], ["a", "!"], ["..."]])
def test_records_without_words(features, texts):
    found = features(texts)
    assert found.X.shape[0] == len(texts)
    assert found.X.nnz == 0
    assert found.telling_words(np.ones(1), 5) == []


def test_nothing_to_learn_from(features):
    assert features(["x", "y"], is_text=False).X.shape == (2, 1)
    assert features(["x", "y"], {"empty": ["", ""]}, is_text=False).X.shape == (2, 1)


def test_telling_words_have_the_largest_weights_of_both_signs():
    words = np.array(["a", "b", "c", "d"], dtype=object)
    found = Features(None, words)
    weights = np.array([0.5, -2.0, 0.0, 1.0, 9.0])  # the last is not that of a word
    assert found.telling_words(weights, 1) == [("b", -2.0), ("d", 1.0)]
    assert found.telling_words(weights, 9) == [("a", 0.5), ("b", -2.0), ("d", 1.0)]
