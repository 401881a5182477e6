"""Screening abstracts: how much must be read, by which strategy, and when may one stop?

    python examples/screening.py [picture.png] [records.csv]

The file has the columns title, abstract and label (1 for relevant). Without one, a thousand
abstracts are made up of words, and every twentieth is about a topic of its own. Each run knows one
relevant and one irrelevant record and reads on as its strategy says; a last run, with
`RecallBound`, stops by itself.
"""

import sys

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from forerank.active import RecallBound, compare_strategies, simulate


def made_up(n: int = 1000, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Abstracts of 60 words with Zipf frequencies; relevant ones have a few words of a topic."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{k}" for k in range(3000)])
    share = 1.0 / np.arange(1, words.size + 1)
    relevant = rng.permutation(n) < n // 20
    drawn = rng.choice(words, (n, 60), p=share / share.sum())
    topic = rng.choice(words[100:], 15, replace=False)
    drawn[relevant, :4] = rng.choice(topic, (relevant.sum(), 4))
    return [" ".join(row) for row in drawn], relevant.astype(int)


def read(path: str) -> tuple[list[str], np.ndarray]:
    from forerank.data.readers import read_table

    frame = read_table(path, columns=["title", "abstract", "label"]).fillna(
        {"title": "", "abstract": ""}
    )
    return (frame["title"] + " " + frame["abstract"]).tolist(), frame["label"].to_numpy()


def main(picture: str | None = None, path: str | None = None) -> None:
    texts, y = read(path) if path else made_up()
    X = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.95).fit_transform(texts)
    found = compare_strategies(
        X, y, strategies=["greedy", "lossmin", "random"], n_runs=5, batch=0.05, progress=False
    )
    print(f"{'strategy':>10} {'to 50 %':>8} {'to 95 %':>8} {'WSS@95':>7}")
    for line in found.table():
        half, most = line["records to 50%"], line["records to 95%"]
        print(f"{line['method']:>10} {half:>8.0f} {most:>8.0f} {line['WSS@95']:>7.2f}")
    run = simulate(X, y, batch=0.05, stopping=RecallBound(0.95, 0.95), random_state=0)
    print(f"\nRead {len(run.order)} of {run.n_records} records and stopped: {run.stopped}.")
    print(f"In truth the recall was {run.recall[-1]:.3f}.")
    if picture:
        found.plot("recall").figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:3])
