"""Laws of the measurements of wide tables."""

from __future__ import annotations

import pytest

import scale


def test_exponents_are_those_of_a_power_law() -> None:
    records = [
        {
            "kind": "wide",
            "method": "arrow",
            "variables": size,
            "seconds": 1.0,
            "processor_seconds": 3.0 * size**2.5,
            "peak_gb": 0.1 * size**2,
        }
        for size in (100, 200, 400)
    ]
    low, high, time, memory = scale.exponents(records)
    assert (low, high) == (200, 400)
    assert time == pytest.approx(2.5)
    assert memory == pytest.approx(2.0)


def test_a_wide_dataset_has_about_two_edges_per_variable() -> None:
    dataset = scale.draw_wide_dataset(30, index=1, observations=40)
    assert dataset.data.shape == (40, 30)
    assert 54 <= dataset.adjacency.sum() <= 66


def test_a_wide_table_is_measured_in_a_separate_process() -> None:
    record = scale.in_own_process(["10", "arrow", "0"], timeout=600)
    assert record is not None
    assert record["variables"] == 10
    assert record["processor_seconds"] > 0
    assert 0 < record["ap"] <= 1
    assert scale.in_own_process(["10", "arrow", "0"], timeout=1) is None
