"""Shared by the speed benchmarks."""

from collections.abc import Callable
from time import perf_counter


def best(call: Callable[[], object], repeats: int) -> float:
    """The fewest seconds of some calls."""
    seconds = []
    for _ in range(repeats):
        clock = perf_counter()
        call()
        seconds.append(perf_counter() - clock)
    return min(seconds)
