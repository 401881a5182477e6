"""Reports: measures as the metrics define them, and a page that stands by itself."""

import base64
import hashlib
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import StratifiedKFold

from forerank import PairwiseRanker, metrics
from forerank.data.problem import read_problem
from forerank.data.readers import Matrix
from forerank.metrics.top_k import Depth
from forerank.workflows.report import make_report
from forerank.workflows.report.formatting import unbroken
from reports import NASTY, Choosing, Page, table


@pytest.fixture(scope="module")
def report():
    return make_report(table(), "y", ranker="PairwiseRanker", params={"alpha": 0.01}, seed=3)


@pytest.fixture(scope="module")
def page(report):
    return Page(report.html())


# --- What it says ---


def test_held_out_scores_are_those_of_models_that_have_not_seen_the_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 4 == 0
    folds = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    found = make_report(
        Matrix(X, y.astype(float), None), ranker="PairwiseRanker", folds=folds
    ).held_out
    for number, (train, test) in enumerate(folds):
        mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
        ranker = (
            PairwiseRanker(random_state=0)
            if "random_state" in PairwiseRanker().get_params()
            else PairwiseRanker()
        )
        scores = ranker.fit((X[train] - mean) / deviation, y[train]).decision_function(
            (X - mean) / deviation
        )
        assert_allclose(found.by_model[number], scores, rtol=1e-5, atol=1e-7)
        behind = (scores[test][:, None] > scores[test]).mean(axis=1) + 0.5 / test.size
        assert_allclose(found.scores[test], behind)
        assert (found.fold[test] == number).all()


def test_measures_are_means_over_the_folds(report):
    y = (table()["y"] == "yes").to_numpy()
    found = {each.name: each for each in report.measures}
    fold, scores = report.held_out.fold, report.held_out.by_model
    parts = [(y[fold == k], scores[k][fold == k]) for k in range(5)]
    assert_allclose(found["AUC"].value, np.mean([metrics.roc_auc(*part) for part in parts]))
    assert_allclose(
        found["average precision"].value,
        np.mean([metrics.average_precision(*part) for part in parts]),
    )
    third = [metrics.precision_at_k(*part, k=Depth(100 / 300 * part[0].size)) for part in parts]
    assert_allclose(found["precision at 100"].value, np.mean(third))
    assert found["precision at 100"].depth == "of 300 rows (first 33.3 %)"
    assert (
        f"AUC is {found['AUC'].value:.3f} (95 % interval {found['AUC'].low:.3f} to"
        in report.sentences[1]
    )
    assert "better than a random order (0.500)" in report.sentences[1]
    assert report.sentences[0].startswith(f"300 rows of a table in memory, of which {y.sum()} (")
    ten = 10 * found["precision at 10"].value
    assert f"Of the first 10 rows about {ten:.0f} are positive" in report.sentences[2]


@pytest.mark.parametrize(
    ("metric", "name", "words"),
    [
        ("ap", "average precision", "Average precision is"),
        ("pos_at_top", "positives at the top", "The share of positives at the top is"),
        ("recall@20", "recall at 20", "the first 20 rows hold"),
        ("pauc@0.2", "partial AUC (FPR to 0.2)", "better than a random order (0.100)"),
        ("ndcg@10", "NDCG at 10", "of the best possible one"),
    ],
)
def test_the_measure_that_was_asked_for_comes_first(metric, name, words):
    data = table(120)[["age", NASTY, "y"]]
    found = make_report(data, "y", ranker="PairwiseRanker", metric=metric, folds=3)
    assert found.measures[0].name == name
    assert words in found.sentences[1]
    assert found.measures[0].low <= found.measures[0].value <= found.measures[0].high


def test_a_ranker_with_a_measure_of_its_own_is_fitted_for_it_and_its_choice_is_told():
    found = make_report(
        table(150)[["age", NASTY, "y"]], "y", ranker=Choosing("ap"), metric="ap", folds=3
    )
    assert "Pairs win by a nose." in found.sentences
    assert "More rows would help." in found.sentences
    text = Page(found.html()).text
    assert "On all rows: pairs with alpha = 0.01." in text
    assert "In the 3 folds, each selecting separately: pairs (3), alpha from 0.01 to 0.01." in text
    assert "Regularisation path" in text
    assert "Learning curve. More rows would help" in text


@pytest.mark.parametrize("graded", [False, True])
def test_the_ranker_that_chooses_is_the_default(graded):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3 if graded else 2, 200)
    data = pd.DataFrame({"a": rng.normal(size=200) + y, "b": rng.normal(size=200), "y": y})
    quick = {"methods": ["pairwise-logistic", "pairwise-squared-hinge"], "alphas": 3, "cv": 3}
    found = make_report(data, "y", params=quick, metric="ndcg@20", folds=3)
    ranker = found.model.estimator[-1]
    assert type(ranker).__name__ == "Ranker"
    assert (ranker.metric, ranker.random_state) == ("ndcg@20", 0)
    assert any(ranker.best_method_ in line.lower() for line in found.sentences)
    path, learning = found.page["selection"]["figures"]
    assert "Regularisation path" in path.caption
    assert len(found.held_out.choices) == 3
    assert "Bars: one standard deviation over the folds." in learning.caption
    assert found.page["weights"]["rows"][0]["name"] == "a"


def test_trees_are_shown_by_their_number_of_rounds():
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    data = pd.DataFrame({"a": rng.normal(size=200) + y, "b": rng.normal(size=200), "y": y})
    found = make_report(data, "y", params={"families": "linear,trees", "cv": 3}, folds=3)
    path, rounds = found.page["selection"]["figures"][:2]
    assert "Trees and averages, which have none, are not shown." in path.caption
    assert rounds.caption.startswith("Boosted trees: ")
    assert "against rounds, 2 methods" in rounds.alt


# --- The page ---


def test_the_page_stands_by_itself(report, page):
    assert not page.all("script")
    assert not page.all("link")
    assert not page.all("iframe")
    assert all(attrs["src"].startswith("data:image/svg+xml;base64,") for attrs in page.all("img"))
    html = report.html()
    assert not re.search(r"(src|href)\s*=\s*[\"']?(http|//)", html)
    assert not re.search(r"url\(|@import", html)
    assert len(html.encode()) < 1_500_000


def test_pictures_have_words_and_tables_have_heads(page):
    assert len(page.all("img")) == 7
    assert all(len(attrs["alt"]) > 20 for attrs in page.all("img"))
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    assert len([tag for tag, _ in page.tags if tag == "h1"]) == 1
    assert page.all("html")[0]["lang"] == "en"


def test_names_of_columns_are_text_wherever_they_stand(report, page):
    html = report.html()
    assert NASTY not in html
    assert NASTY in page.text
    assert '$cost$ & "x"' in page.text
    for attrs in page.all("img"):
        svg = base64.b64decode(attrs["src"].split(",", 1)[1]).decode()
        assert "<script" not in svg
        assert r"\$" not in svg


def test_the_order_of_contents(page):
    heads = [
        "Ranking report",
        "of which",
        "Measures",
        "ROC, precision and recall",
        "Positives among the first k",
        "Calibration",
        "not probabilities",
        "Distribution by class",
        "Stability of the top",
        "Methods compared",
        "Weights by column",
        "1 text, words by tf-idf: text",
        "How to reproduce this report",
    ]
    places = [page.text.index(words) for words in heads]
    assert places == sorted(places)


def test_the_weights_are_those_of_the_model_fitted_on_all_rows(report, page):
    from forerank.models.explain import explain

    first = explain(report.model).weights[0]
    shown = report.page["weights"]["rows"]
    assert shown[0]["name"] == first.name
    assert_allclose(float(shown[0]["weight"]), first.weight, rtol=0.01)
    assert len(shown) <= 20
    low, high = map(float, shown[0]["range"].split(" to "))
    own = [each[first.name] for each in report.held_out.weights]
    assert_allclose([low, high], [min(own), max(own)], rtol=0.02)


def test_the_same_seed_makes_the_same_page():
    data = table(100)[["age", NASTY, "y"]]
    pages = [make_report(data, "y", ranker="PairwiseRanker", folds=3).html() for _ in range(2)]
    pages = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", each) for each in pages]
    assert pages[0] == pages[1]


def test_a_file_its_hash_and_its_command(tmp_path):
    path = tmp_path / "leads.csv"
    table(100)[["age", "city", "y"]].to_csv(path, index=False)
    heard = []
    command = "forerank report leads.csv --target y"
    found = make_report(
        path, "y", ranker="PairwiseRanker", folds=3, seed=7, command=command, say=heard.append
    )
    text = Page(found.html()).text
    assert "Ranking report: leads.csv" in text
    assert hashlib.sha256(path.read_bytes()).hexdigest() in text
    assert command in text
    assert "fold 3 of 3" in heard
    again = make_report(path, "y", ranker="PairwiseRanker", folds=3, seed=7, drop=["city"])
    assert (
        f"make_report({str(path)!r}, 'y', ranker='PairwiseRanker', metric='auc', folds=3, seed=7, "
        "drop=['city'])" in (Page(again.html()).text)
    )

    out = tmp_path / "report.html"
    found.save(out)
    assert out.read_text(encoding="utf-8") == found.html()
    with pytest.raises(FileExistsError, match="force"):
        found.save(out)
    again.save(out, force=True)
    assert out.read_text(encoding="utf-8") == again.html()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["leads.csv", "report.html"]


def test_no_line_ends_between_a_number_and_its_unit(report):
    html = report.html()
    blocks = re.finditer(r"(?s)<(p|li|th|td|figcaption)\b[^>]*>(.*?)</\1>", html)
    texts = " ".join(unescape(found[2]) for found in blocks)
    assert "95\N{NO-BREAK SPACE}% interval" in texts
    assert "300\N{NO-BREAK SPACE}rows" in texts
    assert not re.search(r"\d (%|rows)", texts)
    assert unbroken("p = 0.4 ± 0.1 at 50") == "p_=_0.4_±_0.1 at_50".replace(
        "_", "\N{NO-BREAK SPACE}"
    )


def test_no_comparison_is_said(page):
    assert "No comparison was given" in page.text


def test_notes_describe_the_columns_as_they_were_fitted():
    """On the page and in the model; trees take codes of categories, not a column for each."""
    found = make_report(table(120), "y", ranker="BoostedRanker", params={"rounds": 5}, folds=2)
    notes = read_problem(table(120), "y").notes_on("trees")
    assert any("as codes, rare values together: city" in note for note in notes)
    assert found.model.notes == notes
    text = Page(found.html()).text
    assert all(" ".join(note.split()) in text for note in notes)
    assert "one column per value" not in text
