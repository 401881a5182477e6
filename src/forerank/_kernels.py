"""Compiled kernels and the threads they run on.

`compiled` is numba's `njit` without the interpreter lock, cached on disk: in the directory
NUMBA_CACHE_DIR, otherwise beside the source, otherwise in the user's cache directory. Where none of
them is writable (read-only containers), or the disk is full, functions are compiled in each process
and one line is logged to "forerank" (a warning would be an error in many test suites). An entry
that cannot be read is compiled again and replaced. Entries are keyed by processor, so machines may
share a directory.

Kernels are serial; `in_row_chunks` and `in_parallel` run several calls of them on a few threads.
"""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise
from threading import Lock, local
from typing import Any, TypeVar

from numba import njit
from numba.core import caching
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.sigutils import normalize_signature
from threadpoolctl import ThreadpoolController

__all__ = ["compiled", "in_parallel", "in_row_chunks", "n_threads", "number_of_chunks"]
__all__ += ["serial_blas", "serial_kernels"]

A = TypeVar("A")
B = TypeVar("B")

# Functions that a process compiles before it logs a line: one or two take less than a second.
_FEW_FUNCTIONS = 2
# Multiplications for which a further thread is worth its cost, and rows of sums over pairs.
_MULTIPLICATIONS_PER_THREAD = 300_000
_ROWS_PER_THREAD = 25_000

_logger = logging.getLogger("forerank")


def compiled(function: Callable | None = None, **options: Any) -> Any:
    """Decorator: `numba.njit` without the interpreter lock, cached where possible.

    Options go to `numba.njit`: ``@compiled`` or ``@compiled(fastmath={"contract"})``.
    """
    if function is None:
        return lambda decorated: compiled(decorated, **options)
    dispatcher = njit(nogil=True, **options)(function)
    dispatcher._cache = _FunctionCache(function)
    return dispatcher


class _State:
    """Number of functions compiled by this process, and whether they can be cached."""

    n_compiled = 0
    cached = True

    def count(self) -> None:
        self.n_compiled += 1
        if self.n_compiled == _FEW_FUNCTIONS + 1:
            _logger.info("compiling %s, about 10 s", "once" if self.cached else "for this run")

    def warn_not_cached(self, reason: str) -> None:
        if self.cached:
            self.cached = False
            _logger.warning(
                "compiled code of forerank cannot be cached (%s), so every process compiles it; "
                "set NUMBA_CACHE_DIR to a writable directory",
                reason,
            )


_state = _State()


class _FunctionCache(NullCache):
    """The cache of one function: numba's own, opened at the first call; none where it fails."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        self._files: Any = None

    @property
    def cache_path(self) -> Any:
        return self._opened().cache_path

    def flush(self) -> None:
        self._opened().flush()

    def load_overload(self, signature: Any, context: Any) -> Any:
        files = self._opened()
        try:
            found = files.load_overload(signature, context)
            # Two processes that save at the same time can leave an index of the other one's code.
            if found is not None and found.signature.args == normalize_signature(signature)[0]:
                return found
        except Exception:  # a damaged pickle may raise anything
            with suppress(OSError):
                files.flush()  # a damaged index would also prevent saving
        _state.count()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            self._opened().save_overload(signature, result)
        except OSError as error:
            _state.warn_not_cached((error.strerror or str(error)).lower())

    def _opened(self) -> Any:
        if self._files is None:
            self._files = self._found()
        return self._files

    def _found(self) -> Any:
        for kind in (FunctionCache, _ReadOnlyCache):
            with suppress(RuntimeError, OSError):  # numba finds no directory
                return kind(self._function)
        _state.warn_not_cached("no directory is writable")
        return NullCache()


class _Exists:
    """A directory that need only exist; numba's locators require a writable one."""

    def ensure_cache_path(self) -> None:
        os.listdir(self.get_cache_path())  # type: ignore[attr-defined]


def _existing(name: str) -> type:
    """A locator of numba by its name, which begins with an underscore before numba 0.62."""
    return type(name, (_Exists, getattr(caching, name, None) or getattr(caching, f"_{name}")), {})


class _ReadOnlyCache(FunctionCache):
    """A cache filled when a container image was built, now read-only."""

    class _impl_class(CompileResultCacheImpl):
        _locator_classes = [  # noqa: RUF012
            _existing("UserProvidedCacheLocator"),
            _existing("InTreeCacheLocator"),
        ]


# --- Threads ---


@cache
def n_threads() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="forerank")


if hasattr(os, "register_at_fork"):
    # The threads of a parent process do not exist in a forked child.
    os.register_at_fork(after_in_child=_executor.cache_clear)


@cache
def _blas_libraries() -> list[Any]:
    return ThreadpoolController().select(user_api="blas").lib_controllers


_blas_lock = Lock()
_n_blas_users = 0
# Libraries that had more than one thread, with their number.
_limited: list[tuple[Any, int]] = []


@contextmanager
def serial_blas() -> Iterator[None]:
    """Context in which BLAS uses one thread.

    Solvers call BLAS on small matrices only, and its waiting threads would occupy the cores that
    the kernels use. The limit holds for the process: of fits in several threads the first sets it
    and the last removes it.
    """
    global _n_blas_users
    with _blas_lock:
        if not _n_blas_users:
            threads = [(library, library.get_num_threads()) for library in _blas_libraries()]
            _limited.extend((library, n) for library, n in threads if n is not None and n > 1)
            for library, _ in _limited:
                library.set_num_threads(1)
        _n_blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _n_blas_users -= 1
            if not _n_blas_users:
                for library, n in _limited:
                    library.set_num_threads(n)
                _limited.clear()


_serial = local()


@contextmanager
def serial_kernels() -> Iterator[None]:
    """Context in which kernels called from this thread use no other thread.

    For callers that run on several threads themselves; sums over rows then do not depend on the
    number of cores either.
    """
    before = getattr(_serial, "active", False)
    _serial.active = True
    try:
        yield
    finally:
        _serial.active = before


def _threads_here() -> int:
    return 1 if getattr(_serial, "active", False) else n_threads()


def in_parallel(first: Callable[[], A], second: Callable[[], B], *, work: int) -> tuple[A, B]:
    """Both results; computed on two threads if `work`, in rows, is large enough."""
    if work < 2 * _ROWS_PER_THREAD or _threads_here() == 1:
        return first(), second()
    future = _executor().submit(second)
    return first(), future.result()


def number_of_chunks(multiplications: int) -> int:
    """Number of threads, each with a chunk of the rows, on which so many multiplications run."""
    if multiplications < _MULTIPLICATIONS_PER_THREAD:
        return 1
    return min(_threads_here(), 1 + multiplications // _MULTIPLICATIONS_PER_THREAD)


def in_row_chunks(work: Callable[[int, int], None], n_rows: int, multiplications: int) -> None:
    """Call work(begin, end) over all rows, on several threads if `multiplications` are many."""
    n_chunks = number_of_chunks(multiplications)
    if n_chunks <= 1:
        work(0, n_rows)
        return
    bounds = [n_rows * k // n_chunks for k in range(n_chunks + 1)]
    futures = [_executor().submit(work, a, b) for a, b in pairwise(bounds[1:])]
    work(bounds[0], bounds[1])
    for future in futures:
        future.result()
