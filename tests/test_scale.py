"""Laws of the page about scale: its sections are what the records say, and each is written alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from causal_arrow.benchmarks import scale, scale_page
from causal_arrow.errors import BenchmarkError

ROOT = Path(__file__).parents[1]


def test_the_page_says_what_the_records_say(tmp_path: Path) -> None:
    page = tmp_path / "scale.md"
    page.write_text((ROOT / "docs" / "evidence" / "scale.md").read_text(encoding="utf-8"), encoding="utf-8")
    before = page.read_text(encoding="utf-8")
    scale_page.write_sections(scale.read_records(ROOT / "docs" / "evidence" / "records" / "scale.jsonl"), page)
    assert page.read_text(encoding="utf-8") == before


def test_a_section_is_written_without_touching_the_others() -> None:
    text = "a\n<!-- section: x -->\nold\n<!-- end of x -->\nb\n<!-- section: y -->\nkept\n<!-- end of y -->\n"
    assert scale_page.replace_section(text, "x", "new") == text.replace("old", "\nnew\n")


def test_a_page_without_the_marks_of_a_section_is_refused() -> None:
    with pytest.raises(BenchmarkError, match="Expected the page to hold the marks"):
        scale_page.replace_section("nothing", "wide", "new")


def test_exponents_are_those_of_a_power_law() -> None:
    records = [
        {
            "kind": "wide",
            "method": "arrow",
            "precision": "float32",
            "variables": size,
            "seconds": 1.0,
            "processor_seconds": 3.0 * size**2.5,
            "peak_gb": 0.1 * size**2,
        }
        for size in (100, 200, 400)
    ]
    low, high, time, memory = scale_page.exponents(records)["float32"]
    assert (low, high) == (200, 400)
    assert time == pytest.approx(2.5)
    assert memory == pytest.approx(2.0)


def test_a_wide_dataset_has_about_two_edges_per_variable() -> None:
    dataset = scale.draw_wide_dataset(30, index=1, observations=40)
    assert dataset.data.shape == (40, 30)
    assert 54 <= dataset.adjacency.sum() <= 66


def test_a_wide_table_is_measured_in_a_process_of_its_own() -> None:
    record = scale.in_own_process(["10", "arrow", "bfloat16", "0"], timeout=600)
    assert record is not None
    assert record["variables"] == 10
    assert record["processor_seconds"] > 0
    assert 0 < record["ap"] <= 1
    assert scale.in_own_process(["10", "arrow", "bfloat16", "0"], timeout=1) is None


def test_what_bfloat16_changes_is_measured() -> None:
    record = scale.measure_precision("sachs", "observational-raw", 0)
    assert record["probabilities"] == 110
    assert 0 < record["mean"] <= record["largest"] < 0.1
