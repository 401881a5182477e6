"""A few threads for kernels that release the interpreter lock; parallelism sits above the kernels, never in them."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from queue import Empty, Queue
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["ahead", "in_parallel", "in_row_chunks", "serial_blas", "side_by_side"]

A = TypeVar("A")
B = TypeVar("B")

# Multiplications below which a second thread costs more than it saves, and rows for the heavier work per row of sums.
_MULTIPLICATIONS_PER_THREAD = 300_000
_ROWS_PER_THREAD = 25_000


@cache
def _n_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_n_threads(), thread_name_prefix="forerank")


if hasattr(os, "register_at_fork"):
    # The threads of a parent process do not exist in a forked child.
    os.register_at_fork(after_in_child=_executor.cache_clear)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_blas_lock = Lock()
_blas_users: list[Any] = []


@contextmanager
def serial_blas() -> Iterator[None]:
    """Keep BLAS on one thread for a while.

    Solvers call BLAS on small matrices only, and its idle threads would spin on the cores that the kernels here use.
    The limit holds for the whole process: of fits in several threads the first sets it and the last lifts it.
    """
    with _blas_lock:
        _blas_users.append(_controller().limit(limits=1, user_api="blas") if not _blas_users else None)
    try:
        yield
    finally:
        with _blas_lock:
            if len(_blas_users) == 1:
                _blas_users[0].restore_original_limits()
                _blas_users.clear()
            else:
                _blas_users.pop()


def in_parallel(first: Callable[[], A], second: Callable[[], B], *, work: int) -> tuple[A, B]:
    """Both results; on two threads if there are that many rows to work on."""
    if work < 2 * _ROWS_PER_THREAD or _n_threads() == 1:
        return first(), second()
    future = _executor().submit(second)
    return first(), future.result()


def in_row_chunks(work: Callable[[int, int], None], n_rows: int, multiplications: int) -> None:
    """Call work(begin, end) over all rows, on several threads if there is enough to do."""
    n_chunks = min(_n_threads(), 1 + multiplications // _MULTIPLICATIONS_PER_THREAD)
    if n_chunks <= 1:
        work(0, n_rows)
        return
    bounds = [n_rows * k // n_chunks for k in range(n_chunks + 1)]
    futures = [_executor().submit(work, a, b) for a, b in pairwise(bounds[1:])]
    work(bounds[0], bounds[1])
    for future in futures:
        future.result()


def ahead(items: Iterator[A], depth: int = 4) -> Iterator[A]:
    """The same items, made in another thread while they are used, at most so many in advance."""
    waiting: Queue[tuple[bool, Any]] = Queue(depth)
    stopped = Event()

    def make() -> None:
        try:
            for item in items:
                waiting.put((True, item))
                if stopped.is_set():
                    return
            waiting.put((False, None))
        except BaseException as error:  # raised where the items are used
            waiting.put((False, error))

    thread = Thread(target=make, name="forerank-ahead", daemon=True)
    thread.start()
    try:
        while True:
            more, item = waiting.get()
            if more:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        stopped.set()
        while thread.is_alive():  # it may wait for room
            with suppress(Empty):
                waiting.get(timeout=0.05)


def side_by_side(work: Callable[[A], B], items: Iterator[A]) -> Iterator[B]:
    """The results of work on each item, in order, one item at work on each core and one more waiting."""
    with ThreadPoolExecutor(_n_threads()) as pool:
        coming: deque[Future[B]] = deque()
        for item in items:
            coming.append(pool.submit(work, item))
            if len(coming) > _n_threads():
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
