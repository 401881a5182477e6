"""The trainer: starts the worker process, sends it labels, and passes its models on.

Labels are sent only to an idle worker; those that come meanwhile are kept, and the latest are sent
when it has finished. A worker that ends is started again.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank.label.worker import run

__all__ = ["PREPARING", "Trainer"]

# The message until the worker has read the records.
PREPARING = "the ranker is being prepared"
# Times that a worker which ended is started again; a project that ends it every time is reported.
_MOST_STARTS = 3


class Trainer:
    """A worker process and the thread that listens to it.

    Parameters
    ----------
    path : path
        The project.
    settings : mapping
        "strategy", "n_labels", "threshold", "seed".
    on_model : callable
        Called in the thread with (trained_on, scores, ranking, words), or without arguments where
        the labels are all the same and there is no model.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        settings: Mapping[str, Any],
        on_model: Callable[..., None],
    ) -> None:
        self._arguments = (os.fspath(path), dict(settings))
        self._on_model = on_model
        self._lock = threading.Lock()
        self._pending: tuple[int, NDArray[np.int8]] | None = None
        self._busy = True  # until the worker has read the records
        self._closed = False
        self._starts = 0
        self._was_ready = False
        self.message = PREPARING
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=run, args=(other, *self._arguments), daemon=True)
        self._process.start()
        other.close()  # so that the end of the worker closes the connection
        self._starts += 1
        self._thread = threading.Thread(target=self._listen, name="trainer", daemon=True)
        self._thread.start()

    @property
    def is_training(self) -> bool:
        """Whether the worker is at work."""
        return self._busy

    def submit(self, number: int, labels: NDArray[np.int8]) -> None:
        """Have the ranker trained on these labels, now or after the fit under way."""
        with self._lock:
            self._pending = (number, labels.copy())
            self._send()

    def _send(self) -> None:
        if self._busy or self._pending is None or self._closed:
            return
        pending, self._pending = self._pending, None
        self._busy = True
        try:
            self._connection.send(pending)
        except OSError:  # the worker has ended; the listener starts it again
            self._pending = pending

    def _listen(self) -> None:
        connection = self._connection
        try:
            while True:
                self._receive(connection.recv())
        except (EOFError, OSError):
            pass
        with self._lock:
            if self._closed:
                return
            if self._starts >= _MOST_STARTS:
                problem = "ended repeatedly" if self._was_ready else "could not be started"
                self.message = f"the ranker {problem}; records keep their last order"
                self._busy = False
                return
            if self._was_ready:
                self.message = "the ranker ended and was started again"
            self._busy = True
            self._start()

    def _receive(self, message: tuple[Any, ...]) -> None:
        kind, *rest = message
        self._was_ready = True
        if kind == "model":
            self.message = ""
            self._on_model(*rest[1:])
        elif kind == "none":
            self.message = ""
            self._on_model()
        elif kind == "failed":
            self.message = f"the ranker could not be trained: {rest[1]}"
        else:
            self.message = ""
        with self._lock:
            self._busy = False
            self._send()

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            self._closed = True
        self._connection.close()
        self._process.terminate()
        self._process.join(timeout=5)
