"""The thread that writes: jobs run one after the other, those that wait together in one commit.

A job is answered after the commit of what it wrote.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from forerank.exceptions import ForerankError
from forerank.label.project import Project

__all__ = ["Refusal", "Writer"]

# Most jobs of one commit. A commit takes some milliseconds, in which few arrive.
_MOST_JOBS = 64


class Refusal(ForerankError, ValueError):
    """A request that cannot be carried out; nothing was changed. `status` is the HTTP status."""

    def __init__(self, problem: str, status: int = 400) -> None:
        self.status = status
        super().__init__(problem)


class Writer:
    """Runs jobs in one thread, inside transactions.

    Parameters
    ----------
    project : Project
    reload : callable
        Called before the next job where what is in memory may differ from the file: a commit
        failed, or a job ended with an error other than a `Refusal`.
    """

    def __init__(self, project: Project, reload: Callable[[], None]) -> None:
        self._project, self._reload = project, reload
        self._stale = False  # whether what is in memory may differ from the file
        self._closed = False
        self._lock = threading.Lock()  # of `_closed`: no job comes behind the mark of the end
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], Any]) -> Future:
        """The future result of a job; RuntimeError after `close`."""
        future: Future = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the project is closed; open it again first")
            self._jobs.put((job, future))
        return future

    def close(self) -> None:
        """Wait for the jobs given so far, and end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._jobs.get()) is not None:
            jobs, end = [first], False
            while len(jobs) < _MOST_JOBS and not self._jobs.empty():
                if (job := self._jobs.get()) is None:
                    end = True
                    break
                jobs.append(job)
            self._run_together(jobs)
            if end:
                return

    def _run_together(self, jobs: list[tuple[Callable[[], Any], Future]]) -> None:
        # From here on a future cannot be cancelled; one whose client has gone is not run.
        jobs = [(job, future) for job, future in jobs if future.set_running_or_notify_cancel()]
        answers: list[tuple[Future, Any, BaseException | None]] = []
        try:
            if self._stale:
                self._read_again()
            with self._project.transaction():
                for job, future in jobs:
                    answers.append((future, *self._run_one(job)))
        except BaseException as failure:
            self._stale = True
            for _, future in jobs:
                future.set_exception(failure)
            return
        problems = [problem for *_, problem in answers if problem is not None]
        if not all(isinstance(problem, Refusal) for problem in problems):
            self._stale = True
        for future, result, problem in answers:
            if problem is None:
                future.set_result(result)
            else:
                future.set_exception(problem)

    def _read_again(self) -> None:
        self._reload()
        self._stale = False

    def _run_one(self, job: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            with self._project.savepoint():
                return job(), None
        except Exception as error:
            return None, error
