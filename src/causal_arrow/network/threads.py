"""Pieces of one pass on several threads, each piece whole on one of them.

The operations of a table of usual size take a fraction of a millisecond. Threads that share each of them wait for each
other at its end: two such threads were 1.2 times as fast as one, two that work through pieces of their own nearly
twice. So the library for matrix products gets one thread while ours are at work.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 16
"""Python starts one operation at a time, so that more threads would wait for it."""

_here = threading.local()
_chosen: int | None = None
_lock = threading.Lock()
_inside = 0  # callers of `one_thread_for_products`
_limit: Any = None


def thread_count() -> int:
    """The number of threads of a pass: OMP_NUM_THREADS if that is set, else the processors this process may use."""
    if _chosen is not None:
        return _chosen
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_thread_count(count: int | None) -> None:
    """Set the number of threads; None for the number that the environment gives."""
    global _chosen
    _chosen = count


def _threads_here() -> int:
    """The number of threads that may take pieces: one on a thread that works on a piece itself."""
    return 1 if getattr(_here, "takes_pieces", False) else min(thread_count(), MAX_THREADS)


def pieces(count: int, most: int, least: int) -> Iterator[slice]:
    """Slices that cover `count` things, of about equal size, at most `most` each, and enough of them for every thread.

    They have at least `least` things each if `most` allows it.
    """
    threads = _threads_here()
    needed = -(-count // max(1, most))
    wanted = -(-needed // threads) * threads
    number = max(needed, min(wanted, count // max(1, least)), 1)
    return (slice(count * index // number, count * (index + 1) // number) for index in range(number))


def each(work: Callable[[Item], Result], items: Iterable[Item], done: Callable[[], None] | None = None) -> list[Result]:
    """Do the work for each item, one after the other or on several threads; `done` is called after each."""
    todo = list(items)
    several = len(todo) > 1 and _threads_here() > 1
    results = []
    with one_thread_for_products():
        for result in _pool().map(work, todo) if several else map(work, todo):
            results.append(result)
            if done is not None:
                done()
    return results


def _pool() -> ThreadPoolExecutor:
    """The threads of this process, started once for each number of them. A fork has none of its parent's threads."""
    return _started(os.getpid(), _threads_here())


@lru_cache(maxsize=8)
def _started(process: int, threads: int) -> ThreadPoolExecutor:
    def start() -> None:
        _here.takes_pieces = True

    return ThreadPoolExecutor(threads, thread_name_prefix="causal-arrow", initializer=start)


@contextlib.contextmanager
def one_thread_for_products() -> Iterator[None]:
    """Numpy's matrix products take one thread each meanwhile; the last caller to leave puts the number back."""
    global _inside, _limit
    with _lock:
        if _inside == 0 and (controller := _controller(os.getpid())) is not None:
            _take_control(controller)
            _limit = controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _limit is not None:
                _take_control(_controller(os.getpid()))
                _limit.restore_original_limits()


def _take_control(controller: Any) -> None:
    """Let this thread set limits: threadpoolctl from 3.8 on ignores all threads but the first that has set one."""
    for library in controller.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@lru_cache(maxsize=1)
def _controller(process: int) -> Any:
    """The object that sets the number of threads; None if there is one anyway, or if its package is not installed."""
    if os.environ.get("OPENBLAS_NUM_THREADS") == os.environ.get("MKL_NUM_THREADS", "1") == "1":
        return None
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # a bare machine, where the network is torch's
        return None
    return ThreadpoolController()
