"""Laws of the threads that take pieces of a pass: all is done once, in order, and nothing else changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from causal_arrow.network.kernels.workers import each, pieces


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("count", "most", "least"), [(1, 10, 4), (7, 10, 4), (8, 10, 4), (25, 10, 4), (25, 0, 4)])
def test_pieces_cover_everything_once_and_are_no_larger_than_allowed(count: int, most: int, least: int) -> None:
    parts = list(pieces(count, most, least))
    assert [place for part in parts for place in range(part.start, part.stop)] == list(range(count))
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


def test_what_fails_in_a_piece_fails_for_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        each(lambda item: 1 / item, [1, 0, 2])


def test_a_piece_may_have_pieces_of_its_own() -> None:
    assert each(lambda outer: sum(each(lambda inner: inner, range(outer))), range(5)) == [0, 0, 1, 3, 6]


def test_a_thread_works_alone_and_other_threads_keep_their_number() -> None:
    assert each(lambda _: torch.get_num_threads(), range(4)) == [1, 1, 1, 1]
    seen = [torch.get_num_threads()]
    fresh = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    fresh.start()
    fresh.join()
    assert seen == [2, 2]


@pytest.mark.parametrize("inference", [False, True])
def test_pieces_are_computed_in_the_mode_of_the_caller(inference: bool) -> None:
    with torch.inference_mode(inference), torch.no_grad():
        modes = each(lambda _: (torch.is_inference_mode_enabled(), torch.is_grad_enabled()), range(2))
    assert modes == [(inference, False)] * 2
