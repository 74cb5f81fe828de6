"""Pieces of one pass on several threads, each piece whole on one of them.

Torch splits every operation among its threads and lets them wait for each other at its end. The operations of a table
of usual size take a fraction of a millisecond: two threads that split each of them were 1.2 times as fast as one, two
threads that each work through pieces of their own nearly twice. Threads also wait less where other programs keep the
machine busy.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_WORKERS = 16
"""Python hands one operation at a time to torch, so that more threads would wait for it."""


def pieces(count: int, most: int, least: int) -> Iterator[slice]:
    """Slices that cover so many things, of at most `most`, all of about one size and enough of them for every thread.

    None is smaller than `least` where that can be helped; `most` counts first.
    """
    workers = _workers()
    needed = -(-count // max(1, most))
    wanted = -(-needed // workers) * workers
    number = max(needed, min(wanted, count // max(1, least)), 1)
    return (slice(count * place // number, count * (place + 1) // number) for place in range(number))


def each(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What the work gives for each item: one after the other, or on several threads if there are several of both."""
    todo = list(items)
    if len(todo) < 2 or _workers() == 1:
        return [work(item) for item in todo]
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def here(item: Item) -> Result:  # such modes belong to a thread
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            return work(item)

    return list(_pool().map(here, todo))


def _workers() -> int:
    """How many threads take pieces: those of torch, and one on a thread that works on a piece itself."""
    return 1 if getattr(_here, "takes_pieces", False) else min(torch.get_num_threads(), MOST_WORKERS)


_here = threading.local()
_kept: dict[tuple[int, int], ThreadPoolExecutor] = {}
_lock = threading.Lock()


def _pool() -> ThreadPoolExecutor:
    """The threads of this process, started once for each number of them. A fork has none of its parent's threads."""
    key = (os.getpid(), _workers())
    with _lock:
        if key not in _kept:
            _kept[key] = _started(key[1])
        return _kept[key]


def _started(workers: int) -> ThreadPoolExecutor:
    """A pool of threads, all of them started, on each of which torch works alone."""
    threads = torch.get_num_threads()
    all_there = threading.Barrier(workers + 1)

    def start() -> None:
        _here.takes_pieces = True
        torch.get_num_threads()  # a thread that has never asked would be given the number of all others again
        torch.set_num_threads(1)
        all_there.wait()

    pool = ThreadPoolExecutor(workers, thread_name_prefix="causal-arrow", initializer=start)
    for _ in range(workers):  # each starts a thread, as those before wait
        pool.submit(int)
    all_there.wait()
    # Torch gives a thread the number that was set last, by whichever thread; those to come shall have ours.
    torch.set_num_threads(threads)
    return pool
