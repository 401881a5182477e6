"""Tables that several tests read and fit."""

import numpy as np
import pandas as pd


def table(n=300, seed=0):
    """Rows with an id, a number, two categories, a date, a text, gaps, and the label y."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"{k:05d}" for k in rng.permutation(n)],
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["clerk", "cook", "pilot, first"], n),
            "seen": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "note": [
                " ".join(rng.choice(["late", "paid", 'call "me"', "again\nand"], 5))
                for _ in range(n)
            ],
            "city": rng.choice(["rome", "oslo"], n),
        }
    )
    frame.loc[rng.uniform(size=n) < 0.1, ["age", "job"]] = None
    frame["y"] = np.where(
        frame["age"].fillna(40) / 20 + (frame["job"] == "cook") + rng.normal(size=n) > 3,
        "yes",
        "no",
    )
    return frame


def typed_table(n=300, seed=0):
    """The same rows, with dates in place of their strings."""
    return table(n, seed).assign(seen=lambda frame: pd.to_datetime(frame["seen"]))
