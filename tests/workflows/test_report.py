"""A report says what the metrics say, stands by itself, and words what is odd about the data
instead of failing.
"""

import base64
import hashlib
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from forerank import PairwiseRanker, PointwiseRanker, metrics
from forerank.data.readers import Matrix
from forerank.metrics.top_k import Depth
from forerank.workflows.report import make_report
from forerank.workflows.report.formatting import unbroken

NASTY = "<script>alert(1)</script>"


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.uniform(size=n) < 0.3
    words = np.array(["late payment", "new customer", "call again", "no interest"])
    return pd.DataFrame(
        {
            "age": rng.normal(size=n) + y,
            NASTY: rng.normal(size=n) + y,
            '$cost$ & "x"': rng.normal(size=n),
            "city": rng.choice(["Rome", "Oslo", "$5 & $6"], n),
            "text": [" ".join(rng.choice(words, 6)) for _ in range(n)],
            "y": np.where(y, "yes", "no"),
        }
    )


class Page(HTMLParser):
    """Tags, their attributes and the text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags[-1:] and self.tags[-1][0] != "style":
            self.words.append(data)

    def all(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]


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
    assert found.page["selection"]["path"] is not None
    assert len(found.held_out.choices) == 3
    assert (
        "Bars: one standard deviation over the folds."
        in found.page["selection"]["learning"].caption
    )
    assert found.page["weights"]["rows"][0]["name"] == "a"


class Choosing(PairwiseRanker):
    """Stands for a ranker that tries methods."""

    def __init__(self, metric="auc", alpha=0.01):
        super().__init__(alpha=alpha)
        self.metric = metric

    def fit(self, X, y, sample_weight=None, qid=None):
        super().fit(X, y)
        self.cv_results_ = {
            "method": ["pairs"] * 2,
            "alpha": [0.1, 0.01],
            "mean_test_score": [0.8, 0.9],
        }
        self.best_method_, self.best_alpha_, self.reason_ = "pairs", 0.01, "pairs win by a nose"
        self.learning_curve_ = {
            "rows": [10, 20],
            "scores": [0.5, 0.6],
            "more_data_helps": True,
            "sentence": "more rows would help",
        }
        return self


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
        f"make_report({str(path)!r}, 'y', ranker='PairwiseRanker', metric='auc', folds=3, seed=7, drop=['city'])"
        in (Page(again.html()).text)
    )

    out = tmp_path / "report.html"
    found.save(out)
    assert out.read_text(encoding="utf-8") == found.html()
    with pytest.raises(FileExistsError, match="force"):
        found.save(out)
    again.save(out, force=True)
    assert out.read_text(encoding="utf-8") == again.html()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["leads.csv", "report.html"]


# --- Comparisons ---


class Compared:
    cd = 0.7

    def table(self):
        return [
            {"method": "A", "mean": 0.9, "std": 0.01, "seconds": 1.5},
            {"method": "B", "mean": 0.8, "std": None},
        ]

    def differences(self):
        return [{"method": "B", "difference": -0.1, "p": 0.0002}]

    def ranks(self):
        return {"A": 1.2, "B": 1.8}


@pytest.mark.parametrize("form", ["object", "dicts", "frame"])
def test_comparisons_of_several_kinds(form):
    rows = [
        {"method": "A", "mean": 0.9, "std": 0.01, "seconds": 1.5},
        {"method": "B", "mean": 0.8, "std": np.nan, "difference": -0.1, "p": 0.0002},
    ]
    comparison = {
        "object": Compared(),
        "dicts": rows,
        "frame": pd.DataFrame(rows).set_index("method"),
    }[form]
    data = table(80)[["age", "y"]]
    found = make_report(data, "y", ranker="PairwiseRanker", folds=2, comparison=comparison).page[
        "comparison"
    ]
    assert found["rows"][0]["mean"].startswith("0.900 ±")
    assert found["rows"][1] == {
        "method": "B",
        "mean": "0.800",
        "difference": "-0.1000",
        "p": "< 0.001",
        "seconds": "–",
    }
    assert found["figure"] is None  # two methods have nothing to show beside their difference


def test_a_comparison_of_this_package():
    from forerank.workflows.compare import compare

    data = table(100)[["age", NASTY, "y"]]
    methods = ["PairwiseRanker", "PointwiseRanker", "TopPush"]
    compared = compare(data, "y", methods, cv=3)
    report = make_report(data, "y", ranker="PairwiseRanker", folds=3, comparison=compared)
    found = report.page["comparison"]
    assert {row["method"] for row in found["rows"]} == set(methods)
    assert found["figure"] is not None
    assert found["sentence"]
    # The same folds give the same number.
    assert_allclose(
        np.mean(list(compared.values()["PairwiseRanker"].values())), report.measures[0].value
    )
    assert found["folds"] == "Means and standard deviations are over the folds of this report."
    other = make_report(data, "y", ranker="PairwiseRanker", folds=4, comparison=compared)
    assert (
        f"than the AUC of {other.measures[0].value:.3f} above" in other.page["comparison"]["folds"]
    )


def test_a_comparison_that_was_cut_is_said():
    from forerank.workflows.compare import compare

    data = table(100)[["age", NASTY, "y"]]
    compared = compare(data, "y", ["PairwiseRanker", "PointwiseRanker"], cv=3, time_budget=1e-9)
    report = make_report(data, "y", ranker="PairwiseRanker", folds=3, comparison=compared)
    text = Page(report.html()).text
    assert "The time budget of 1e-09 seconds ended the comparison after 2 of 6 fits." in text
    assert (
        f"over other folds, or of other fits, than the AUC of {report.measures[0].value:.3f} above"
        in text
    )


def test_no_comparison_is_said(page):
    assert "No comparison was given" in page.text


# --- One number per measure ---


def said_of(name, html):
    """The sentences and captions of a page, and the words in its pictures, that give a number for a
    measure.
    """
    pictures = [
        base64.b64decode(each).decode() for each in re.findall(r'svg\+xml;base64,([^"]+)', html)
    ]
    texts = [found[2] for found in re.finditer(r"(?s)<(p|li|figcaption)\b[^>]*>(.*?)</\1>", html)]
    texts += [text for picture in pictures for text in re.findall(r">([^<>]+)</text>", picture)]
    for text in texts:
        plain = unescape(re.sub(r"<[^>]+>", " ", text)).replace("\N{NO-BREAK SPACE}", " ")
        bare = re.sub(r"\([^()]*\)", "", plain)  # without intervals, random orders and depths
        values = re.findall(r"(?<![\d.])[01]\.\d{3,4}(?!\d)", bare)
        if name.lower() in plain.lower() and values:
            yield " ".join(plain.split()), values


def odd_table(kind):
    rng = np.random.default_rng(5)
    n = 171
    y = rng.permutation(np.arange(n) < 40).astype(int)
    if kind == "grades":
        y = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += y
    X[:, 1] *= 100.0
    data = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    return data.assign(q=np.arange(n) % 19) if kind == "groups" else data


@pytest.mark.parametrize(
    ("kind", "metric", "name"),
    [
        ("binary", "auc", "AUC"),
        ("binary", "recall@50", "recall at 50"),
        ("binary", "ap", "average precision"),
        ("binary", "pos_at_top", "positives at the top"),
        ("grades", "auc", "pairs in order"),
        ("grades", "ndcg@20", "NDCG at 20"),
        ("groups", "recall@3", "recall at 3"),
    ],
)
def test_one_report_has_one_number_per_measure(kind, metric, name):
    from forerank.workflows.compare import compare

    data, group = odd_table(kind), {"group": "q"} if kind == "groups" else {}
    quick = {"methods": ["pairwise-logistic", "pairwise-squared-hinge"], "alphas": 3, "cv": 3}
    listed = ", ".join(f"{name}={value!r}" for name, value in quick.items())
    methods = [f"Ranker({listed})", "PairwiseRanker(alpha=0.01)"]
    compared = compare(data, "y", methods, metric=metric, cv=4, **group)
    report = make_report(
        data, "y", metric=metric, params=quick, folds=4, comparison=compared, **group
    )
    html, page = report.html(), report.page
    main = page["measures"][0]["value"]
    means = {row["method"]: row["mean"].partition(" ")[0] for row in page["comparison"]["rows"]}
    assert means[methods[0]] == main
    found = list(said_of(name, html))
    assert report.sentences[1] in [text for text, _ in found]
    # The choice was measured in folds of its own: one sentence says so at the top, another below
    # the pictures.
    sentence = f"; {main} is measured on rows that were not"
    explanation = next(k for k, text in enumerate(report.sentences) if sentence in text)
    explained = report.sentences[explanation - 2 : explanation]
    assert "in the folds in which the method was selected" in page["selection"]["note"]
    for text, values in found:
        others = {value for value in values if value != main}
        if text == page["comparison"]["sentence"]:
            others -= set(means.values())
        known = text in explained or "Learning curve" in text or "In single folds" in text
        assert not others or known, (text, main)


def test_weights_of_folds_are_of_the_method_and_penalty_that_were_chosen_on_all_rows():
    data = odd_table("binary")
    X, y = data[list("abcd")].to_numpy(), data["y"].to_numpy()
    found = make_report(
        Matrix(X, y.astype(float), None), params={"methods": ["pointwise-logistic"]}, folds=4
    )
    chosen = found.model.estimator[-1]
    assert (
        len({alpha for _, alpha in found.held_out.choices}) > 1
    )  # the folds themselves have chosen otherwise
    for number, (train, _) in enumerate(
        StratifiedKFold(4, shuffle=True, random_state=0).split(X, y)
    ):
        Z = (X[train] - X[train].mean(axis=0)) / X[train].std(axis=0)
        alone = PointwiseRanker("logistic", alpha=chosen.best_alpha_).fit(Z, y[train])
        own = found.held_out.weights[number]
        assert_allclose(
            [own[f"column {k}"] for k in range(4)], alone.coef_[0], rtol=1e-3, atol=1e-6
        )
    for row in found.page["weights"]["rows"]:
        low, high = map(float, row["range"].split(" to "))
        assert low - (high - low) <= float(row["weight"]) <= high + (high - low)
    assert "the same method and alpha were fitted" in found.page["weights"]["sentence"]


def test_folds_that_choose_another_method_are_said():
    data = table(90)[["age", NASTY, "y"]]
    same = make_report(data, "y", ranker=Choosing(), folds=3)
    assert "Each fold selected its method separately; all selected pairs." in same.sentences
    other = make_report(data, "y", ranker=ChoosingByRows(), folds=3)
    said = other.sentences[-1]
    assert "separately: rows in 3 of 3. The measures are those of this procedure" in said
    assert said.endswith("the model that is described below and was fitted on all rows is pairs.")


class ChoosingByRows(Choosing):
    def fit(self, X, y, sample_weight=None, qid=None):
        super().fit(X, y)
        self.best_method_ = "pairs" if len(y) == 90 else "rows"
        return self


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


def test_an_interval_without_width_is_left_out():
    y = np.arange(200) % 4 == 0
    noise = np.random.default_rng(0).normal(size=200)
    data = pd.DataFrame({"a": 8.0 * y + noise, "y": y})
    found = make_report(data, "y", ranker="PairwiseRanker", folds=3)
    assert (
        "Of the first 10 rows all are positive; a random order would have about 2.5."
        in found.sentences
    )
    assert found.page["first_rows"][0]["interval"] == "–"
    assert "A dash: resampled rows do not vary" in found.page["measure_note"] or np.isnan(
        found.measures[0].low
    )


# --- What is odd is said ---


def test_a_leaky_column():
    data = table(200)[["age", "y"]]
    data["paid back"] = 1.0 * (data["y"] == "yes")
    found = make_report(data, "y", ranker="PairwiseRanker", folds=3)
    assert any("'paid back' alone" in line for line in found.warnings)
    assert any("nearly) perfect" in line and "paid back" in line for line in found.warnings)


def test_a_constant_score():
    found = make_report(
        table(100)[["age", "y"]], "y", ranker=DummyClassifier(strategy="prior"), folds=3
    )
    assert found.measures[0].value == 0.5
    assert "not significantly different from a random order" in found.sentences[1]
    assert any("this is no ranking" in line for line in found.warnings)
    assert "no weights by column" in Page(found.html()).text


def test_three_positives_in_ten_thousand_rows():
    rng = np.random.default_rng(0)
    y = np.zeros(10_000, dtype=int)
    y[[5, 500, 5000]] = 1
    found = make_report(
        pd.DataFrame({"a": rng.normal(size=y.size) + y, "y": y}), "y", ranker="PairwiseRanker"
    )
    assert found.held_out.n_folds == 3
    assert any(
        "3 folds instead of 5: there are 3 rows of the smaller class." in line
        for line in found.warnings
    )
    assert any("too few for intervals" in line for line in found.warnings)
    assert np.isnan(found.measures[0].low)
    assert "too few rows for a comparison with a random order" in found.sentences[1]
    assert "at least ten rows of each class" in Page(found.html()).text  # no calibration


def test_a_single_positive():
    data = pd.DataFrame({"a": np.arange(50) % 7 * 1.0, "y": np.arange(50) == 3})
    found = make_report(data, "y", ranker="PairwiseRanker")
    assert found.measures == []
    assert "could not be measured" in found.sentences[0]
    assert any("No row could be held out" in line for line in found.warnings)
    assert "no row could be held out" in Page(found.html()).text


def test_a_fold_of_one_class():
    data = table(120)[["age", "y"]].sort_values("y", ascending=False, ignore_index=True)
    fold = np.arange(120) // 20
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(6)]
    found = make_report(data, "y", ranker="PairwiseRanker", folds=folds)
    assert any("Rows of one class only in fold 1" in line for line in found.warnings)
    assert found.measures
    # Where nothing but one class is left to learn from, the fold goes without a model.
    positive = np.flatnonzero(data["y"] == "yes")
    two = [(np.setdiff1d(np.arange(120), positive), positive), *folds[:2]]
    found = make_report(data, "y", ranker="PairwiseRanker", folds=two)
    assert any("Fold 1 was excluded" in line for line in found.warnings)
    assert any("rows were in no fold that could be scored" in line for line in found.warnings)


def test_a_ranker_without_weights():
    forest = RandomForestClassifier(10, random_state=0)
    found = make_report(table(150)[["age", NASTY, "y"]], "y", ranker=forest, folds=3)
    assert "RandomForestClassifier is not linear" in Page(found.html()).text
    assert found.measures[0].value > 0.5


@pytest.mark.parametrize("grouped", [False, True])
def test_grades(grouped):
    rng = np.random.default_rng(0)
    grade = rng.integers(-1, 3, 240)
    data = pd.DataFrame(
        {"a": rng.normal(size=240) + grade, "grade": grade, "q": rng.integers(0, 12, 240)}
    )
    group = {"group": "q"} if grouped else {"drop": ["q"]}
    found = make_report(data, "grade", ranker="PairwiseRanker", metric="ndcg@10", folds=3, **group)
    assert found.measures[0].name == "NDCG at 10"
    qid = data["q"].to_numpy() if grouped else None
    values = []
    for k in range(3):
        rows = found.held_out.fold == k
        depth = 10 if grouped else Depth(10 * rows.sum() / 240)
        own = None if qid is None else qid[rows]
        values.append(
            metrics.ndcg(grade[rows] + 1, found.held_out.by_model[k][rows], k=depth, qid=own)
        )
    assert_allclose(found.measures[0].value, np.mean(values))
    text = Page(found.html()).text
    assert "the labels are grades" in text
    assert "4 grades" in found.sentences[0]
    with pytest.raises(ValueError, match="metric='ap' is for two classes"):
        make_report(data, "grade", ranker="PairwiseRanker", metric="ap", **group)


def test_many_grades():
    rng = np.random.default_rng(0)
    score = rng.normal(size=320)
    data = pd.DataFrame(
        {"a": score + rng.normal(size=320), "grade": np.argsort(np.argsort(score)) // 10}
    )
    found = make_report(data, "grade", ranker="PairwiseRanker", folds=3)
    assert "32 grades" in found.sentences[0]
    picture = found.page["figures"]["distributions"]
    assert "grade = 31" in picture.caption
    assert "grade = 30" not in picture.caption  # the lowest and the highest stand for the others
    legend = base64.b64decode(picture.uri.partition(",")[2]).decode()
    assert ("grade = 31" in legend, "grade = 30" in legend) == (True, False)


@pytest.mark.parametrize("metric", ["auc", "pauc@0.3"])
def test_groups(metric):
    data = table(300)[["age", NASTY, "y"]]
    data["q"] = np.arange(300) % 15
    found = make_report(data, "y", group="q", ranker="PairwiseRanker", metric=metric, folds=3)
    y = (data["y"] == "yes").to_numpy()
    value = found.measures[0].value
    if metric == "auc":
        assert_allclose(value, metrics.roc_auc(y, found.held_out.scores, qid=data["q"].to_numpy()))
    assert found.measures[0].low < value < found.measures[0].high
    for number in range(3):  # a group is in one fold
        assert data["q"][found.held_out.fold == number].nunique() == 5
    assert "within 15 groups" in found.sentences[0]
    text = Page(found.html()).text
    assert "ranked within groups" in text
    assert "mean over groups" in text
    one = make_report(data.assign(q=1), "y", group="q", ranker="PairwiseRanker")
    assert any("needs at least 2 groups; the data have 1" in line for line in one.warnings)


@pytest.mark.parametrize("kind", ["svm", "dense", "sparse"])
def test_matrices(kind, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3 == 0
    X = np.where(rng.uniform(size=(150, 5)) < 0.6, rng.normal(size=(150, 5)) + y[:, None], 0.0)
    data = Matrix(sp.csr_matrix(X) if kind == "sparse" else X, y.astype(float), None)
    if kind == "svm":
        from sklearn.datasets import dump_svmlight_file

        data = tmp_path / "rows.svm"
        dump_svmlight_file(X, y.astype(int), str(data), zero_based=False)
    found = make_report(data, ranker=PointwiseRanker(), folds=3)
    assert found.measures[0].value > 0.6
    assert found.page["weights"]["rows"][0]["name"].startswith("column ")


def test_warnings_of_the_fits_are_told():
    found = make_report(table(100)[["age", "y"]], "y", ranker=Worrying(), folds=2)
    assert "While fitting: this is not quite right." in found.warnings


class Worrying(PairwiseRanker):
    def fit(self, X, y):
        import warnings

        warnings.warn("this is not quite right", UserWarning, stacklevel=2)
        return super().fit(X, y)


def test_a_fold_that_cannot_be_fitted_is_told():
    found = make_report(table(100)[["age", "y"]], "y", ranker=Failing(), folds=2)
    assert found.measures == []
    assert any("Fold 2 was excluded: cannot learn from 50 rows" in line for line in found.warnings)
    assert "Not drawn" in Page(found.html()).text


class Failing(PairwiseRanker):
    def fit(self, X, y):
        if y.size < 100:
            raise ValueError(f"cannot learn from {y.size} rows")
        return super().fit(X, y)


# --- What is refused ---


def test_bad_arguments():
    data = table(60)[["age", "y"]]
    with pytest.raises(ValueError, match=r"metric must be one of .* got 'f1'"):
        make_report(data, "y", ranker="PairwiseRanker", metric="f1")
    with pytest.raises(ValueError, match="1 is not a number of folds"):
        make_report(data, "y", ranker="PairwiseRanker", folds=1)
    with pytest.raises(ValueError, match="both to train on and to test on"):
        make_report(data, "y", ranker="PairwiseRanker", folds=[(np.arange(60), np.arange(5))])
    with pytest.raises(ValueError, match="There is no ranker 'PairRanker'"):
        make_report(data, "y", ranker="PairRanker")
    with pytest.raises(ValueError, match="row without a method"):
        make_report(data, "y", ranker="PairwiseRanker", folds=2, comparison=[{"mean": 0.5}])


def test_a_missing_extra_is_named_before_the_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ImportError, match=r"A report needs jinja2: pip install 'forerank\[report\]'"
    ):
        make_report("no such file.csv", "y")


def test_importing_it_loads_no_optional_package():
    code = "import sys, forerank.workflows.report, forerank.plots; print(*{'matplotlib', 'jinja2'} & set(sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        == []
    )
