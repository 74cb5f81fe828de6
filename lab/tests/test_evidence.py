"""Laws of fair comparisons: what is bold, which setting stands for a method, what is left out, what can be trusted."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from calibration_tables import calibration_blocks, pooled_by_tables, share_right
from causal_arrow.errors import BenchmarkError, ConfigurationError
from causal_arrow.graphs import metrics
from causal_arrow_lab.benchmarks import calibration
from causal_arrow_lab.benchmarks.methods import MethodOptions, prepare
from causal_arrow_lab.benchmarks.records import Record, read_records, write_packed
from causal_arrow_lab.benchmarks.suites import SUITES
from causal_arrow_lab.benchmarks.worker import run_job
from docs_scripts import DOCS, load_script
from figures import benchmark_figures
from remarks import remarks_of_suite
from report import write_report
from summaries import graph_ap, published_results, summarize

OPTIONS = {"environments": None, "device": "cpu", "scale": "auto"}


def record(
    method: str, index: int, suite: str = "shifted", row: str = "all", edges: int = 3, **measures: float
) -> Record:
    return Record(
        suite,
        row,
        index,
        method,
        {},
        {"package": "1"},
        "ok",
        seconds=1.0,
        measures={"true_edges": edges, **measures},
        dataset={"observations": 100, "variables": 10, "edges": edges},
    )


def row_of(records: list[Record]) -> Any:
    return summarize(records).rows[0]


# Bold


def test_a_paired_difference_tells_apart_what_standard_errors_of_means_do_not() -> None:
    hardness = np.linspace(0, 1, 20)
    records = [record("arrow", index, nshd=hard) for index, hard in enumerate(hardness)]
    records += [record("pc", index, nshd=hard + 0.02 + 0.001 * (-1) ** index) for index, hard in enumerate(hardness)]
    assert row_of(records).best("nshd") == {"Arrow"}


def test_in_the_rows_of_the_papers_tables_its_own_rule_decides() -> None:
    hardness = np.linspace(0, 1, 20)
    place = {"suite": "networks", "row": "ECOLI70"}
    records = [record("arrow", index, nshd=hard, **place) for index, hard in enumerate(hardness)]
    records += [record("pc", index, nshd=hard + 0.02, **place) for index, hard in enumerate(hardness)]
    assert row_of(records).best("nshd") == {"Arrow", "PC"}


def test_nothing_is_bold_where_nothing_was_told_apart() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 30))
    records = [record(name, i, nshd=float(noise[k, i])) for k, name in enumerate(("arrow", "pc")) for i in range(30)]
    assert row_of(records).best("nshd") == set()
    alone = [record("arrow", 0, nshd=0.1), record("pc", 0, nshd=0.9)]
    assert row_of(alone).best("nshd") == set()  # one dataset tells nothing apart


def test_a_method_run_on_less_than_a_fifth_of_the_datasets_is_not_compared() -> None:
    records = [record("arrow", index, nshd=0.5 + 0.01 * (index % 2)) for index in range(100)]
    records += [record("pc", index, nshd=0.6 + 0.01 * (index % 2)) for index in range(100)]
    few = [record("ges", index, nshd=0.1 + 0.01 * (index % 3)) for index in range(19)]
    enough = [record("ges", index, nshd=0.1 + 0.01 * (index % 3)) for index in range(20)]
    assert row_of(records + few).best("nshd") == {"Arrow"}
    assert row_of(records + enough).best("nshd") == {"GES"}


def test_an_oracle_or_a_trivial_method_with_more_datasets_takes_nobody_out_of_the_comparison() -> None:
    records = [record("arrow", index, nshd=0.5 + 0.01 * (index % 2)) for index in range(10)]
    records += [record("pc", index, nshd=0.6 + 0.01 * (index % 2)) for index in range(10)]
    oracle = [record("class-oracle", index, nshd=0.1) for index in range(100)]
    assert row_of(records + oracle).best("nshd") == {"Arrow"}
    trivial = [record("varsort", index, nshd=0.9 + 0.01 * (index % 2)) for index in range(100)]
    assert row_of(records + trivial).best("nshd") == {"Arrow"}


# The better of two settings


def two_settings() -> list[Record]:
    values = {"none": (0.5, 0.4), "all": (0.5, 0.9)}
    return [
        record(method, index, row=row, nshd=value + 0.01 * index)
        for row, pair in values.items()
        for method, value in zip(("boss", "boss-1"), pair, strict=True)
        for index in range(5)
    ]


def test_the_setting_that_does_better_in_a_row_stands_for_a_method_there() -> None:
    summary = summarize(two_settings())
    entries = {row.row: row.entry_of("boss-better") for row in summary.rows}
    means = {row: entry.estimate("nshd").mean for row, entry in entries.items() if entry}
    assert means == pytest.approx({"none": 0.42, "all": 0.52})
    assert "boss-better" not in {variant.method for variant in summary.variants}
    remark = next(text for text in remarks_of_suite(summary.rows, False) if text.startswith("BOSS, better of two"))
    assert "of BOSS and BOSS, λ = 1 the one with the better mean over the datasets that both answered" in remark


def test_each_measure_has_the_setting_that_does_better_by_it() -> None:
    better_nshd = [record("pc", index, nshd=0.4 + 0.01 * index, f1=0.3) for index in range(5)]
    better_f1 = [record("pc-0.01", index, nshd=0.5 + 0.01 * index, f1=0.6) for index in range(4)]
    faster = [replace(one, seconds=0.1) for one in better_f1]
    entry = row_of(better_nshd + faster).entry_of("pc-better")
    assert entry is not None
    assert entry.estimate("nshd").mean == pytest.approx(0.42)
    assert entry.estimate("f1").mean == pytest.approx(0.6)
    assert entry.by_index("f1") == dict.fromkeys(range(4), 0.6)
    assert entry.estimate("seconds").mean == pytest.approx(1.0)  # of the setting that the first measure chooses
    assert len(entry.records) == 4


def test_one_enormous_value_does_not_make_the_worse_method_bold() -> None:
    ours = [record("arrow", index, nshd=0.04) for index in range(20)]
    theirs = [record("varsort", index, nshd=98.0 if index == 7 else 0.5) for index in range(20)]
    assert row_of(ours + theirs).best("nshd") == {"Arrow"}
    # In as many datasets better as worse, with no larger difference than chance makes: nothing is told apart.
    even = [record("varsort", index, nshd=0.03 if index % 2 else 0.06) for index in range(20)]
    assert row_of(ours + even).best("nshd") == set()


def test_a_method_run_on_few_datasets_is_not_bold_in_the_rows_of_the_paper_either() -> None:
    ours = [record("arrow", index, suite="networks", row="ECOLI70", nshd=0.5 + 0.01 * index) for index in range(20)]
    few = [record("sdcd", index, suite="networks", row="ECOLI70", nshd=0.1) for index in range(3)]
    assert row_of(ours + few).in_the_paper
    assert row_of(ours + few).best("nshd") == {"Arrow"}


def test_a_setting_run_on_few_of_the_datasets_stands_for_nothing() -> None:
    many = [record("boss", index, nshd=0.5) for index in range(100)]
    few = [record("boss-1", index, nshd=0.1) for index in range(19)]
    assert row_of(many + few).entry_of("boss-better") is None
    assert row_of([*many, *few, record("boss-1", 19, nshd=0.1)]).entry_of("boss-better") is not None


def test_without_both_settings_there_is_no_better_one() -> None:
    only = [one for one in two_settings() if one.method == "boss"]
    assert all(row.entry_of("boss-better") is None for row in summarize(only).rows)


# What measures leave out


def test_datasets_without_true_edges_are_left_out_of_all_measures_that_compare_edges() -> None:
    nothing = {"nshd": math.nan, "f1": 1.0, "ap": math.nan, "skeleton_f1": 1.0, "shd": 0.0}
    something = {"nshd": 0.5, "f1": 0.5, "ap": 0.5, "skeleton_f1": 0.5, "shd": 2.0}
    mixed = row_of([record("arrow", 0, edges=0, **nothing), record("arrow", 1, **something)]).entries[0]
    assert [mixed.estimate(name).count for name in ("nshd", "f1", "ap", "skeleton_f1", "shd")] == [1, 1, 1, 1, 2]
    empty = row_of([record("arrow", index, edges=0, **nothing) for index in range(2)]).entries[0]
    assert empty.estimate("f1").mean == 1  # where no graph has edges it is the share of empty answers


def test_the_ap_of_a_graph_follows_from_its_counts() -> None:
    random = np.random.default_rng(0)
    for density in (0.0, 0.2, 0.6):
        truth, estimate = np.triu(random.random((2, 10, 10)) < 0.3, k=1)
        estimate = np.triu(random.random((10, 10)) < density, k=1)
        one = record("dagma", 0, edges=int(truth.sum()), **metrics.evaluate(truth, estimate))
        assert graph_ap(one) == pytest.approx(metrics.average_precision(truth, estimate))


# Trust


def test_directions_are_judged_among_pairs_that_are_truly_adjacent() -> None:
    truth = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    edges = np.array([[0, 0.9, 0.1], [0.05, 0, 0.99], [0.3, 0.0, 0]])  # 1 → 3 is not adjacent, 3 → 1 is favored wrongly
    table = calibration.reliabilities(truth, edges, None)["directions"]
    assert table.pairs.sum() == 2
    assert share_right(table, 0.9, 0.95) == (1.0, 1)  # 0.9 of 0.95
    assert share_right(table, 0.75, 0.9) == (0.0, 1)  # 0.3 of 0.4


def test_honest_probabilities_are_right_as_often_as_they_say() -> None:
    random = np.random.default_rng(0)
    parts: dict[str, list[calibration.Reliability]] = {"adjacencies": [], "directions": []}
    for _ in range(60):
        nu, q = np.triu(random.random((2, 20, 20)), k=1)
        edges = np.triu(nu * q, k=1) + np.triu(nu * (1 - q), k=1).T
        drawn = np.triu(random.random((20, 20)) < nu, k=1)
        forward = random.random((20, 20)) < q
        truth = (drawn & forward) | (drawn & ~forward).T
        parts["adjacencies"].append(calibration.reliabilities(truth, edges, None)["adjacencies"])
        parts["directions"].append(calibration.reliabilities(truth, edges, None)["directions"])
    for tables in parts.values():
        table = calibration.pool(tables)
        error = np.sqrt(0.25 / np.maximum(table.pairs, 1))
        assert np.nanmax(np.abs(table.mean_probability - table.edge_frequency) / error) < 4
    assert calibration.pool(parts["adjacencies"]).pairs.sum() == 60 * 190


def test_ancestors_are_judged_by_directed_paths() -> None:
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    paths = np.array([[0, 0.8, 0.7], [0.1, 0, 0.9], [0.0, 0.0, 0]])
    table = calibration.reliabilities(chain, None, paths)["ancestors"]
    assert table.pairs.sum() == 6
    assert table.edges.sum() == 3
    assert share_right(table, 0.7, 0.75) == (1.0, 1)


def judged(suite: str, row: str, method: str, index: int = 0, **options: str) -> dict[str, Any]:
    job = {"suite": suite, "row": row, "index": index, "method": method, "options": {**OPTIONS, **options}}
    answer = run_job(job)
    assert answer["status"] == "ok", answer
    return answer


def recorded(suite: str, row: str, method: str, index: int = 0, **options: str) -> Record:
    ready = prepare(method, MethodOptions(**options))  # type: ignore[arg-type]
    facts = {"suite": suite, "row": row, "index": index, "method": ready.name, "settings": dict(ready.settings)}
    return Record.from_json(
        json.dumps({**facts, "versions": dict(ready.versions), **judged(suite, row, method, index, **options)})
    )


@pytest.fixture(scope="module")
def arrow_record() -> Record:
    return recorded("sachs", "pooled-raw", "arrow")


def test_records_of_arrow_say_how_far_to_trust_it_and_survive_packing(arrow_record: Record, tmp_path: Path) -> None:
    assert arrow_record.adjacencies is not None
    assert arrow_record.directions is not None
    assert arrow_record.ancestors is not None
    assert arrow_record.adjacencies.pairs.sum() == 55
    assert arrow_record.directions.pairs.sum() == 20
    assert arrow_record.ancestors.pairs.sum() == 110
    write_packed([arrow_record], tmp_path / "records.jsonl.gz")
    again = read_records(tmp_path / "records.jsonl.gz")[0]
    assert again.ancestors is not None
    np.testing.assert_array_equal(again.ancestors.edges, arrow_record.ancestors.edges)
    second = Record.from_json(json.dumps({**json.loads(again.to_json()), "index": 1}))
    assert pooled_by_tables([again], "directions") == {}  # a single table of a world of its own
    assert pooled_by_tables([again, second], "directions")["sachs/pooled-raw"].pairs.sum() == 40


def test_the_page_of_trust_is_of_one_network(arrow_record: Record) -> None:
    other = Record.from_json(json.dumps({**json.loads(arrow_record.to_json()), "settings": {"weights": "other"}}))
    assert len(calibration_blocks([arrow_record])) == 10  # three tables with titles, and which suites steered
    with pytest.raises(BenchmarkError, match="one network"):
        calibration_blocks([arrow_record, other])


# Options of the benchmark


def test_a_scale_that_was_asked_for_makes_another_variant(arrow_record: Record) -> None:
    given = recorded("sachs", "pooled-raw", "arrow", scale="given")
    labels = [entry.variant.label for entry in row_of([given, arrow_record]).entries]
    assert labels == ["Arrow", "Arrow, scale given"]
    assert given.measures != arrow_record.measures
    with pytest.raises(ConfigurationError, match="--scale"):
        prepare("arrow", MethodOptions(scale="cubic"))


def test_another_device_makes_another_variant() -> None:
    assert "device" not in prepare("arrow", MethodOptions()).settings
    assert prepare("arrow", MethodOptions(device="cuda")).settings["device"] == "cuda"


def test_the_bare_command_writes_the_records_of_the_benchmark_and_prints_its_tables(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "causal_arrow_lab.benchmarks", "limit/UUMC", "--methods", "exact-bayes"]
    options = ["--datasets", "2", "--jobs", "1", "--device", "cpu", "--output", str(tmp_path)]
    for _ in range(2):  # the second time there is nothing to do
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(r"limit/UUMC +exact-bayes +2 of 2", done.stdout)
    assert [one.index for one in read_records(tmp_path)] == [0, 1]
    wrong = subprocess.run([*command[:3], "nowhere"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("There is no benchmark suite 'nowhere'")


# Pages


def test_suites_that_steered_development_say_so_beside_their_tables(tmp_path: Path) -> None:
    records = [record("pc", i, suite="networks", row="ECOLI70", nshd=0.5, f1=0.5, ap=0.5) for i in range(2)]
    page = write_report(_packed(records, tmp_path), figures=False).read_text(encoding="utf-8")
    assert "This suite steered development" in page
    other = [record("pc", i, nshd=0.5, f1=0.5, ap=0.5) for i in range(2)]
    page = write_report(_packed(other, tmp_path), figures=False).read_text(encoding="utf-8")
    assert "This suite steered development" not in page
    assert {name for name, suite in SUITES.items() if suite.steered} == {"networks", "herman", "sachs"}


@pytest.mark.parametrize(("suite", "end"), [("in-distribution", 1.02), ("wide", 2.0)])
def test_the_nshd_axis_of_the_papers_curves_ends_where_the_papers_does(suite: str, end: float) -> None:
    """At 1 in its curves over n and p, which is what the empty graph scores; elsewhere at 2."""
    rows = [row.name for row in SUITES[suite].rows("variables")]
    records = [record("pc", i, suite=suite, row=row, nshd=2.5, f1=0.5, ap=0.5) for row in rows for i in range(2)]
    plan = next(plan for plan in benchmark_figures(summarize(records)) if plan.name == f"{suite}-variables")
    assert plan.draw().axes[0].get_ylim() == (0, end)
    assert f"axis ends at {round(end):g}, and some" in plan.caption


def test_directions_in_real_cells_are_compared_with_chance() -> None:
    row = {"suite": "sachs", "row": "pooled-raw", "edges": 20}
    coin = [record("pc", i, orientation_accuracy=0.5 + 0.1 * (-1) ** i, **row) for i in range(20)]
    good = [record("ges", i, orientation_accuracy=0.8 + 0.01 * (-1) ** i, **row) for i in range(20)]
    remarks = remarks_of_suite(summarize(coin + good).rows, False)
    remark = next(text for text in remarks if text.startswith("The share of directions"))
    assert "where a coin has 0.50: PC 0.50; GES 0.80." in remark
    assert "too few to be distinguished from a coin" in remark


def test_the_papers_tables_of_pretrained_models_are_printed_as_published() -> None:
    first, second = load_script("make_pages").property_tables().values()
    assert [row[0].text for row in first.rows] == list(published_results().pretrained_models)
    arrow = first.rows[-1]
    assert [cell.text for cell in arrow] == ["Arrow", "✓", "✓", "Very high"]
    assert [cell.text for cell in second.rows[1]] == ["CSIvA", "✗", "✓", "✗", "✗", "Low"]


@pytest.fixture(scope="module")
def make_pages() -> ModuleType:
    return load_script("make_pages")


def test_every_page_is_what_its_records_say(make_pages: ModuleType) -> None:
    differing = [path.name for path in make_pages.differing_pages()]
    assert not differing, "write them anew: python docs/tools/make_pages.py"


def test_a_page_without_its_part_is_refused(make_pages: ModuleType) -> None:
    with pytest.raises(SystemExit, match="lacks the part 'limit'"):
        make_pages.with_part("no markers", "limit", [])


@pytest.mark.parametrize(
    ("name", "suite", "row", "method"),
    [
        ("limit", "limit", "normal-wishart", "exact-bayes"),
        ("limit", "limit", "paper", "boss-1"),
        ("benchmarks", "networks", "MAGIC-NIAB", "boss"),
        ("benchmarks", "sachs", "pooled-raw", "pc"),
        ("benchmarks", "herman", "UUMC", "r2sort"),
        ("benchmarks", "shifted", "all", "r2sort"),
    ],
)
def test_the_committed_records_can_be_made_again(name: str, suite: str, row: str, method: str) -> None:
    committed = [
        one for one in committed_records(name) if (one.suite, one.row, one.method, one.index) == (suite, row, method, 0)
    ]
    again = judged(suite, row, method)["measures"]
    for one in committed:
        assert again["true_edges"] == one.measures["true_edges"]
        for measure in ("estimated_edges", "nshd", "f1", "ap"):
            if not math.isnan(one.measures[measure]):
                assert again[measure] == pytest.approx(one.measures[measure], rel=1e-3), measure
    assert committed


@pytest.mark.parametrize(
    ("name", "suite", "row", "index", "method", "options"),
    [
        ("benchmarks", "networks", "ECOLI70", 0, "arrow", {}),
        ("benchmarks", "networks", "MAGIC-NIAB", 1, "arrow:arrow-strict", {}),
        ("benchmarks", "sachs", "pooled-raw", 2, "arrow", {"scale": "given"}),
        ("any-table", "discrete", "CHILD-500", 3, "arrow", {}),
        ("any-table", "missing", "itself-50%", 1, "arrow", {}),
        ("any-table", "interventional", "class-1000x20", 1, "arrow", {}),
        ("any-table", "hidden", "ECOLI70", 1, "arrow", {}),
    ],
)
def test_the_committed_records_of_arrow_can_be_made_again(
    name: str, suite: str, row: str, index: int, method: str, options: dict[str, str]
) -> None:
    committed = {
        one.index: one
        for one in committed_records(name)
        if (one.suite, one.row, one.method, one.settings.get("scale")) == (suite, row, method, options.get("scale"))
    }
    again = judged(suite, row, method, index, **options)["measures"]
    assert beyond_rounding(again, committed[index].measures) == []
    assert beyond_rounding(again, committed[index + 1].measures)  # a table that was not asked about does not fit


@cache
def committed_records(name: str) -> list[Record]:
    return read_records(DOCS / "evidence" / "records" / f"{name}.jsonl.gz")


def beyond_rounding(measures: dict[str, float], committed: Mapping[str, float]) -> list[str]:
    """Measures that differ by more than what the rounding of another processor may do to one table.

    Where two graphs are nearly as probable it may choose the other: one edge is allowed to differ.
    """
    true, estimated = committed["true_edges"], committed["estimated_edges"]
    allowed = {
        "true_edges": 0.0,
        "estimated_edges": 1.0,
        "shd": 1.0,
        "nshd": 1 / true,
        "f1": 2 / (true + estimated),
        "ap": 0.005,
        "ece": 0.005,
        "hidden_ap": 0.005,
    }
    shared = [measure for measure in allowed if not math.isnan(committed.get(measure, math.nan))]
    assert len(shared) >= 7
    # Packed records have four digits.
    return [name for name in shared if abs(measures[name] - committed[name]) > allowed[name] + 1e-3]


def _packed(records: list[Record], folder: Path) -> Path:
    path = folder / "records.jsonl.gz"
    write_packed(records, path)
    return path
