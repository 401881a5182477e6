"""Background threads for reading and writing files."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, TypeVar

from forerank._kernels import n_threads

__all__ = ["parallel_map", "prefetched"]

A = TypeVar("A")
B = TypeVar("B")


def prefetched(items: Iterator[A], depth: int = 4) -> Iterator[A]:
    """Iterate over `items` in a background thread, at most `depth` items ahead of the consumer."""
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

    thread = Thread(target=make, name="forerank-prefetch", daemon=True)
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


def parallel_map(work: Callable[[A], B], items: Iterator[A]) -> Iterator[B]:
    """Results of `work` on each item, in order; one item per core is running, and one is queued."""
    with ThreadPoolExecutor(n_threads()) as pool:
        coming: deque[Future[B]] = deque()
        for item in items:
            coming.append(pool.submit(work, item))
            if len(coming) > n_threads():
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
