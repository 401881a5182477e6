"""The worker process: holds the matrix of all records and a ranker that learns from the labels.

Messages in: (number, labels of all records, -1 for none). Messages out: ("ready",), ("model",
number, trained_on, scores, ranking, words), ("none", number) where the labels are all the same, and
("failed", number, reason).
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

import numpy as np

from forerank.data.files import first_line
from forerank.label.project import open_reader

__all__ = ["run"]

# Words of either sign that are sent with a model, to be marked in the records.
_WORDS = 150
# Added to the priority value of the process, so that fits do not slow down the page.
_NICENESS = 5


def run(connection: Any, path: str, settings: Mapping[str, Any]) -> None:
    """Serve a trainer until it closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this one
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        _serve(connection, path, settings)


def _end_with_parent() -> None:
    """End this process when the server has ended, also if that was killed during a fit."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(connection: Any, path: str, settings: Mapping[str, Any]) -> None:
    from threadpoolctl import threadpool_limits

    from forerank.active import LabellingLoop
    from forerank.label.features import record_features

    with threadpool_limits(1):
        with closing(open_reader(path)) as db:
            features = record_features(db)
        loop = LabellingLoop(
            features.X,
            strategy=settings["strategy"],
            n_grades=settings["n_labels"],
            relevant_from=settings["threshold"],
            random_state=settings["seed"],
        )
        connection.send(("ready",))
        while True:
            number, labels = connection.recv()
            while connection.poll():  # labels that came meanwhile replace these
                number, labels = connection.recv()
            connection.send(_message(loop, features, number, labels))


def _message(loop: Any, features: Any, number: int, labels: Any) -> tuple[Any, ...]:
    try:
        loop.set_labels(labels)
        if np.unique(labels[labels >= 0]).size < 2:
            loop.ranker_ = None  # labels that were taken back are forgotten
            return ("none", number)
        return ("model", number, *_model(loop, features))
    except Exception as error:  # the page goes on with the last ranking
        return ("failed", number, first_line(error))


def _model(loop: Any, features: Any) -> tuple[int, Any, Any, list[tuple[str, float]]]:
    """Number of labels, scores of all records, unread ones in the order to read, and words."""
    loop.fit()
    scores = loop.scores()
    words: list[tuple[str, float]] = []
    if hasattr(loop.ranker_, "coef_"):
        words = features.telling_words(np.ravel(loop.ranker_.coef_), _WORDS)
    trained_on = int(np.count_nonzero(loop.labels >= 0))
    return trained_on, scores.astype(np.float32), (loop.rank() + 1).astype(np.int32), words
