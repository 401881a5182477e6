"""Reports with a comparison or a selection of methods: one number per measure."""

import base64
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import StratifiedKFold

from forerank import PointwiseRanker
from forerank.data.readers import Matrix
from forerank.workflows.report import figures, make_report
from reports import NASTY, Choosing, Page, table

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
            others -= {*means.values(), *re.findall(r"lower by ([0-9.]+[0-9])", text)}
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
    assert (
        "the same method and alpha were fitted as on all rows" in found.page["weights"]["sentence"]
    )


def test_a_column_that_no_fold_has_rows_for_has_no_weight_there():
    rng = np.random.default_rng(0)
    number = rng.integers(0, 21, 400)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(number, "D")  # a Monday
    late = number % 7 > 3  # 57 rows for each weekday, 46 in a fold
    data = pd.DataFrame({"day": days, "y": late + rng.standard_normal(400) > 1.0})
    params = {"methods": "auto", "families": "additive", "alphas": 3}
    found = make_report(data, "y", params=params, folds=5)
    shown = {row["name"]: row["range"] for row in found.page["weights"]["rows"]}
    weekdays = [name for name in shown if "weekday" in name]
    assert weekdays
    assert len(weekdays) < len(shown)
    for name, text in shown.items():
        assert (text == "no column") == (name in weekdays)
        assert any(name in fold for fold in found.held_out.weights) == (name not in weekdays)


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


@pytest.mark.parametrize("second", [0.7, np.nan])
def test_captions_say_which_lines_are_of_methods_that_were_dropped_early(second):
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    ranker = Choosing().fit(X, y)
    ranker.cv_results_ |= {
        "method": ["pairs", "rows"],
        "split0_test_score": [0.8, 0.9],
        "split1_test_score": [0.8, second],
    }
    path = figures.alpha_path(ranker, "AUC")
    for text in (path.caption, path.alt):
        assert ("Dashed lines: methods dropped early" in text) == np.isnan(second)
    image = base64.b64decode(path.uri.partition(",")[2]).decode()
    assert ("dropped early: first folds only" in image) == np.isnan(second)
