"""Laws of the threads that take pieces of a pass: all is done once, in order, and nothing else changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from causal_arrow import discover
from causal_arrow.network import forward
from causal_arrow.network.forward import each, one_thread_for_products, pieces, set_thread_count, thread_count


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    set_thread_count(2)
    yield
    set_thread_count(None)


def product_threads() -> list[int]:
    """How many threads libraries for matrix products take, without those that count for each caller apart (OpenMP)."""
    controller = forward._controller(os.getpid())
    libraries = [] if controller is None else controller.select(internal_api="openblas").info()
    return [library["num_threads"] for library in libraries if library["threading_layer"] == "pthreads"]


@pytest.mark.parametrize(("count", "most", "least"), [(1, 10, 4), (7, 10, 4), (8, 10, 4), (25, 10, 4), (25, 0, 4)])
def test_pieces_cover_everything_once_and_are_no_larger_than_allowed(count: int, most: int, least: int) -> None:
    parts = list(pieces(count, most, least))
    assert [index for part in parts for index in range(part.start, part.stop)] == list(range(count))
    assert max(part.stop - part.start for part in parts) <= max(1, most)


def test_every_thread_gets_as_many_pieces_of_about_one_size() -> None:
    sizes = [part.stop - part.start for part in pieces(2500, 2048, 256)]
    assert sizes == [1250, 1250]
    assert len(list(pieces(5000, 2048, 256))) == 4
    assert len(list(pieces(300, 2048, 256))) == 1  # too few for two


def test_results_come_in_the_order_of_the_pieces_and_from_several_threads() -> None:
    together = threading.Barrier(2, timeout=30)

    def work(item: int) -> tuple[int, str]:
        together.wait()
        return item**2, threading.current_thread().name

    results = each(work, range(6))
    assert [square for square, _ in results] == [0, 1, 4, 9, 16, 25]
    assert len({name for _, name in results}) == 2


def test_an_error_in_a_piece_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        each(lambda item: 1 / item, [1, 0, 2])


def test_pieces_may_be_divided_further() -> None:
    assert each(lambda outer: sum(each(lambda inner: inner, range(outer))), range(5)) == [0, 0, 1, 3, 6]


def test_progress_is_reported_after_each_piece() -> None:
    done = []
    each(lambda item: item, range(5), lambda: done.append(1))
    assert len(done) == 5


def test_matrix_products_take_one_thread_each_while_ours_work_and_all_of_theirs_afterwards() -> None:
    before = product_threads()
    assert each(lambda _: product_threads(), range(2)) == [[1] * len(before)] * 2
    with one_thread_for_products():
        with one_thread_for_products():
            assert set(product_threads()) <= {1}
        assert set(product_threads()) <= {1}  # the outer one goes on
    assert product_threads() == before


def test_callers_at_the_same_time_leave_the_number_of_threads_as_it_was() -> None:
    before = product_threads()
    entered, left = threading.Barrier(2, timeout=30), threading.Event()

    def first() -> None:
        with one_thread_for_products():
            entered.wait()
            left.wait(30)

    other = threading.Thread(target=first)
    other.start()
    with one_thread_for_products():
        entered.wait()
        left.set()
        other.join()
        assert set(product_threads()) <= {1}
    assert product_threads() == before


def test_the_environment_says_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    set_thread_count(None)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert thread_count() == 2
    for none in ("", "many", "0"):
        monkeypatch.setenv("OMP_NUM_THREADS", none)
        assert 1 <= thread_count() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("knowledge", [{}, {"roots": ["x2"], "forbidden": ["x4 -> x1"]}])
def test_the_number_of_threads_changes_no_probability(knowledge: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    table = random.laplace(size=(1500, 12)) @ np.triu(random.normal(size=(12, 12)) / 3 + np.eye(12))
    answers = []
    for count in (1, 2, 4):
        set_thread_count(count)
        answers.append(discover(table, knowledge=knowledge).answer.edge_probabilities)
    assert max(np.abs(other - answers[0]).max() for other in answers[1:]) < 1e-6
