"""Tables, pages and rankers for the tests of reports."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd

from forerank import PairwiseRanker

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
