"""Laws of the methods for tables with categories, holes, experiments or hidden causes; how Arrow reads them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs import dag
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.table import Column, Table
from causal_arrow_lab.benchmarks.methods import MethodOptions, Observed, prepare
from causal_arrow_lab.benchmarks.methods._packages import (
    CIRCLE,
    HEAD,
    TAIL,
    DegenerateGaussianScore,
    answer_from_pag,
    indicator_blocks,
    read_as_levels,
    regimes_of,
)
from causal_arrow_lab.benchmarks.methods.arrow import as_far_as_it_reads
from causal_arrow_lab.benchmarks.records import Record, read_packed, write_packed
from causal_arrow_lab.benchmarks.suites import suite
from causal_arrow_lab.benchmarks.worker import options_to_json, run_job
from document import Cell, Grid, Heading
from report import report_blocks
from summaries import best_paired, paired_difference, summarize

CATEGORIES = ["pc-chi2", "hc-bic", "hc-bdeu", "boss-indicators", "fci"]
PACKAGES = {"hc-bic": "pgmpy", "hc-bdeu": "pgmpy", "gies": "gies"}


def require(method: str) -> None:
    pytest.importorskip(PACKAGES.get(method, "causallearn"), reason=f"{method} needs another package")


def nominal_collider(observations: int = 3000, seed: int = 0) -> Observed:
    """0 → 2 ← 1 with levels whose codes say nothing, and a number in the last place that has to do with nothing."""
    random = np.random.default_rng(seed)
    first, second = random.integers(3, size=(2, observations))
    agrees = random.random(observations) < 0.8
    third = np.where(agrees, (first + 2 * second) % 4, random.integers(4, size=observations))
    values = np.column_stack([first, second, third, random.standard_normal(observations)]).astype(float)
    columns = (
        *(Column(name, "category", tuple("abcd"[:count])) for name, count in (("x", 3), ("y", 3), ("z", 4))),
        Column("number"),
    )
    return Observed(Table(values, columns))


@pytest.mark.parametrize("name", CATEGORIES)
def test_methods_of_categories_find_a_collider_between_levels_without_an_order(name: str) -> None:
    require(name)
    observed = nominal_collider()
    kept = observed.table.values.copy()
    answer = prepare(name, MethodOptions()).start()(observed, np.random.default_rng(1))
    np.testing.assert_array_equal(observed.table.values, kept)
    assert dag.is_acyclic(answer.adjacency)
    joined = dag.skeleton_of(answer.adjacency)
    assert joined[0, 2]
    assert joined[1, 2]
    assert not joined[3].any()
    # Hill climbing takes its first step in either direction, which the score cannot tell apart, and may stay with it.
    if not name.startswith("hc-"):
        np.testing.assert_array_equal(np.argwhere(answer.adjacency), [[0, 2], [1, 2]])
    assert answer.reading is not None


def test_numbers_become_levels_of_equal_frequency_and_codes_are_those_that_occur() -> None:
    codes, reading = read_as_levels(nominal_collider())
    assert reading == {"numbers": "4 levels"}
    assert np.bincount(codes[:, 3]).tolist() == [750] * 4
    gaps = Observed(Table.of_numbers(np.array([[0.0, 5.0], [7.0, 5.0], [9.0, 1.0]]), ["x", "y"]))
    np.testing.assert_array_equal(read_as_levels(gaps)[0], [[0, 1], [1, 1], [2, 0]])


def test_the_degenerate_gaussian_score_is_the_same_for_all_graphs_of_a_class() -> None:
    score = DegenerateGaussianScore(indicator_blocks(nominal_collider().table))
    forward = score.score(0, []) + score.score(2, [0]) + score.score(3, [0, 2])
    backward = score.score(3, []) + score.score(2, [3]) + score.score(0, [2, 3])
    assert forward == pytest.approx(backward)


def test_the_degenerate_gaussian_score_of_numbers_is_the_bic_of_a_regression() -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal(500)
    y = 0.5 * x + random.standard_normal(500)
    score = DegenerateGaussianScore([x[:, None], y[:, None]])
    gain = score.score(1, [0]) - score.score(1, [])
    explained = np.corrcoef(x, y)[0, 1] ** 2
    assert gain == pytest.approx(-250 * math.log(1 - explained) - 0.5 * math.log(500), rel=1e-3)


def test_indicator_columns_are_one_fewer_than_the_levels() -> None:
    widths = [block.shape[1] for block in indicator_blocks(nominal_collider().table)]
    assert widths == [2, 2, 3, 1]


# Holes


@pytest.mark.parametrize("name", CATEGORIES)
def test_methods_that_cannot_read_holes_say_so(name: str) -> None:
    require(name)
    holey = Observed(Table.of_numbers(np.array([[1.0, np.nan], [2.0, 1.0], [0.5, 3.0]]), ["x", "y"]))
    with pytest.raises(BenchmarkError, match="cannot read missing values"):
        prepare(name, MethodOptions()).start()(holey, np.random.default_rng(0))


@pytest.mark.parametrize(("name", "missing"), [("boss-imputed", "impute"), ("boss-complete", "drop")])
def test_boss_without_holes_is_boss_on_the_table_without_them(name: str, missing: str) -> None:
    require(name)
    dataset = suite("missing").row("chance-10%").dataset(0)
    answer = prepare(name, MethodOptions()).start()(Observed(dataset.table), np.random.default_rng(1))
    table = read_table(dataset.data, missing=missing)
    expected = prepare("boss", MethodOptions()).start()(table.values, np.random.default_rng(1))
    np.testing.assert_array_equal(answer.adjacency, expected.adjacency)
    assert answer.reading == {"missing": missing}


def test_too_few_complete_observations_are_one_sentence() -> None:
    require("boss-complete")
    result = run_job(job("missing/itself-50%", "boss-complete"))
    assert result == {"status": "failed", "error": "Fewer than 20 observations have no missing cell."}


# Experiments


def test_observations_are_grouped_by_what_was_set_in_them() -> None:
    intervened = np.array([[0, 0], [1, 0], [0, 0], [1, 1]], dtype=bool)
    regimes, targets = regimes_of(np.arange(8.0).reshape(4, 2), intervened)
    assert targets == [[], [0], [0, 1]]
    assert [regime.tolist() for regime in regimes] == [[[0, 1], [4, 5]], [[2, 3]], [[6, 7]]]
    assert regimes_of(np.ones((3, 2)), None)[1] == [[]]


def test_gies_directs_an_edge_by_an_experiment_that_observations_cannot() -> None:
    require("gies")
    random = np.random.default_rng(3)
    cause = random.standard_normal(600)
    effect = 0.8 * cause + random.standard_normal(600)
    effect[300:] = random.uniform(-2, 2, 300)
    intervened = np.zeros((600, 2), dtype=bool)
    intervened[300:, 1] = True
    table = Table.of_numbers(np.column_stack([cause, effect]), ["cause", "effect"])
    solve = prepare("gies", MethodOptions()).start()
    told = solve(Observed(table, intervened), random)
    np.testing.assert_array_equal(told.scores, [[0, 1], [0, 0]])
    seen = solve(Observed(Table.of_numbers(table.values[:300], table.names)), random)
    np.testing.assert_array_equal(seen.scores, [[0, 0.5], [0.5, 0]])


# Hidden causes


def test_marks_of_an_ancestral_graph_are_edges_hidden_causes_or_halves() -> None:
    endpoints = np.zeros((5, 5))
    endpoints[0, 1], endpoints[1, 0] = TAIL, HEAD  # 0 → 1
    endpoints[1, 2], endpoints[2, 1] = HEAD, HEAD  # 1 ↔ 2
    endpoints[3, 2], endpoints[2, 3] = CIRCLE, HEAD  # 3 o→ 2
    endpoints[3, 4], endpoints[4, 3] = CIRCLE, CIRCLE  # 3 o–o 4
    answer = answer_from_pag(endpoints, 0.0)
    assert answer.confounding is not None
    assert (answer.scores[0, 1], answer.scores[1, 0], answer.scores[3, 2], answer.scores[3, 4]) == (1, 0, 0.5, 0.5)
    assert (answer.confounding[1, 2], answer.confounding[2, 3], answer.confounding[3, 4]) == (1, 0.5, 0.25)
    np.testing.assert_array_equal(answer.confounding, answer.confounding.T)
    assert answer.adjacency[0, 1]
    assert answer.adjacency[3, 2]
    assert answer.adjacency[3, 4] ^ answer.adjacency[4, 3]
    assert not answer.adjacency[[1, 2], [2, 1]].any()


def test_fci_tells_a_hidden_cause_from_an_arrow() -> None:
    require("fci")
    random = np.random.default_rng(4)
    hidden, left, right = random.standard_normal((3, 4000))
    first, second = hidden + left + 0.7 * random.standard_normal(4000), hidden + right + random.standard_normal(4000)
    table = Table.of_numbers(np.column_stack([left, first, second, right]), ["left", "first", "second", "right"])
    answer = prepare("fci", MethodOptions()).start()(Observed(table), random)
    assert answer.confounding is not None
    assert np.argwhere(np.triu(answer.confounding == answer.confounding.max())).tolist() == [[1, 2]]


# How Arrow reads


def test_a_network_of_numbers_reads_codes_fills_holes_and_hears_of_no_experiment() -> None:
    observed = nominal_collider(60)
    table, reading = as_far_as_it_reads(observed, frozenset())
    assert reading == {"categories": "codes"}
    np.testing.assert_array_equal(table.values, observed.table.values)
    assert {column.kind for column in table.columns} == {"number"}
    dataset = suite("missing").row("itself-30%").dataset(0)
    table, reading = as_far_as_it_reads(Observed(dataset.table, np.zeros(dataset.data.shape, dtype=bool)), frozenset())
    assert reading == {"experiments": "ignored", "missing": "impute"}
    np.testing.assert_array_equal(table.values, read_table(dataset.data, missing="impute").values)
    complete = np.random.default_rng(0).standard_normal((30, 3))
    assert as_far_as_it_reads(Observed.of(complete), frozenset())[1] == {}


def test_a_network_that_reads_more_is_given_more() -> None:
    reads = frozenset({"levels", "observed", "intervened"})
    observed = nominal_collider(60)
    mask = np.zeros(observed.table.values.shape, dtype=bool)
    mask[:5, 0] = True
    holed = np.where(mask, np.nan, observed.table.values)
    given = Observed(replace(observed.table, values=holed), mask)
    table, reading = as_far_as_it_reads(given, reads)
    assert reading == {}
    assert table.columns == observed.table.columns
    np.testing.assert_array_equal(table.values, holed)
    np.testing.assert_array_equal(table.intervened, mask)


def job(place: str, method: str) -> dict[str, object]:
    name, _, row = place.partition("/")
    options = options_to_json(MethodOptions())
    return {"suite": name, "row": row, "index": 0, "method": method, "options": options}


def test_records_say_how_a_table_was_read_and_hold_the_measures_of_their_suite() -> None:
    textbook = run_job(job("textbook/normal-200", "empty"))
    assert (textbook["measures"]["right"], textbook["measures"]["class_right"]) == (0.0, 0.0)
    assert "reading" not in textbook
    assert run_job(job("mixed/nominal", "varsort"))["reading"] == {"categories": "codes"}
    assert run_job(job("interventional/linear-200x10", "varsort"))["reading"] == {"experiments": "ignored"}
    failed = run_job(job("missing/chance-10%", "varsort"))
    assert (failed["status"], failed["error"]) == ("failed", "The method varsort cannot read missing values.")
    twins = run_job(job("symmetries/iris-signs", "r2sort"))
    assert twins["measures"]["edges_changed"] == 0
    assert "nshd" not in twins["measures"]


def test_suites_of_the_paper_keep_their_measures_and_say_nothing_of_reading() -> None:
    result = run_job(job("networks/ECOLI70", "empty"))
    assert set(result) == {"status", "dataset", "seconds", "measures"}
    assert len(result["measures"]) == 13


SHAPE = {"observations": 500, "variables": 20, "edges": 3}


def made_record(index: int, method: str, f1: float, reading: dict[str, str] | None = None) -> Record:
    measures = {"true_edges": 3.0, "f1": f1}
    return Record("mixed", "nominal", index, method, {}, {}, "ok", None, 1.0, measures, SHAPE, run={}, reading=reading)


def test_how_a_table_was_read_survives_packing(tmp_path: Path) -> None:
    records = [made_record(index, "boss", 0.5, {"categories": "codes"}) for index in range(3)]
    records += [made_record(index, "empty", 0.0) for index in range(3)]
    write_packed(records, tmp_path / "records.jsonl.gz")
    again = list(read_packed(tmp_path / "records.jsonl.gz"))
    assert [record.reading for record in again] == [{"categories": "codes"}] * 3 + [None] * 3
    assert Record.from_json(records[0].to_json()).reading == {"categories": "codes"}
    assert "reading" not in records[-1].to_json()


def test_bold_in_suites_for_development_goes_by_differences_on_the_same_datasets() -> None:
    """Scores vary much from dataset to dataset and are .1 apart on each: intervals overlap, the methods differ."""
    scores = [0.1, 0.3, 0.5, 0.7, 0.9]
    records = [made_record(index, "boss", score) for index, score in enumerate(scores)]
    records += [made_record(index, "pc", score - 0.1 + 0.01 * (index % 2)) for index, score in enumerate(scores)]
    records += [made_record(index, "ges", scores[4 - index]) for index in range(5)]
    (row,) = summarize(records).rows
    entries = {entry.variant.label: entry for entry in row.entries}
    apart = paired_difference(entries["BOSS"], entries["PC"], "f1")
    assert apart.mean == pytest.approx(0.096)
    assert apart.standard_error < 0.01 < entries["BOSS"].estimate("f1").standard_error
    assert best_paired(entries, "f1") == {"BOSS", "GES"}
    assert row.best("f1") == {"BOSS", "GES"}
    records += [made_record(index, "arrow", score + 0.1 + 0.01 * (index % 2)) for index, score in enumerate(scores)]
    blocks = report_blocks(records, summarize(records), {})
    titles = [block.text if isinstance(block, Heading) else "" for block in blocks]
    paired = blocks[titles.index("Arrow minus others: F1") + 1]
    assert isinstance(paired, Grid)
    differences = {line[0].text: line[1] for line in paired.rows}
    assert differences["BOSS"] == Cell("+0.10\u00a0(0.00)", bold=True)
    assert differences["GES"].text.startswith("+0.10\u00a0(0.2")
    assert not differences["GES"].bold
    once = [record for record in records if record.method != "arrow" or record.index == 4]
    assert summarize(once).rows[0].best("f1") == {"BOSS", "GES"}  # the best mean, of one easy dataset
    assert best_paired({"BOSS": entries["BOSS"]}, "f1") == set()
