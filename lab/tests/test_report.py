"""Laws of reports: what the numbers are, what is bold, what is said of failures, and that files stand alone."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.calibration import edge_reliability
from causal_arrow_lab.benchmarks.methods import METHODS
from causal_arrow_lab.benchmarks.records import Record, RecordWriter, read_packed, read_records, write_packed
from causal_arrow_lab.benchmarks.suites import SUITES, suite
from document import Cell, Grid, Heading, Picture, to_markdown
from report import report_blocks, write_report
from suite_pages import suite_page
from summaries import (
    MEASURES,
    MeanEstimate,
    PublishedTable,
    Summary,
    Variant,
    best_of,
    differing_datasets,
    published_results,
    reliability_by_method,
    summarize,
)

RUN = {
    "machine": {"cpu": "Test CPU", "cores": 2},
    "date": "2025-01-01",
    "timeout": 60.0,
    "processes": 2,
    "versions": {},
}


def record(
    row: str = "ECOLI70",
    index: int = 0,
    method: str = "boss",
    *,
    suite: str = "networks",
    status: str = "ok",
    settings: dict[str, str] | None = None,
    **measures: float,
) -> Record:
    """A record with some measures given and the others plausible."""
    content = {"nshd": 0.5, "f1": 0.5, "ap": 0.5, "true_edges": 70.0, "estimated_edges": 60.0, "shd": 35.0, **measures}
    ok = status == "ok"
    return Record(
        suite=suite,
        row=row,
        index=index,
        method=method,
        settings=settings or {},
        versions={"package": "1"},
        status=status,
        error=None if ok else "It broke.",
        seconds=content.pop("seconds", 1.0) if ok else None,
        measures=content if ok else {},
        dataset={"observations": 100, "variables": 46, "edges": 70},
        run=RUN,
    )


def random_records(suites: Iterable[str], methods: Iterable[str], datasets: int, seed: int = 0) -> list[Record]:
    generator = np.random.default_rng(seed)
    records = []
    for name in suites:
        for row in SUITES[name].rows():
            for method in methods:
                for index in range(datasets if row.distinct_datasets is None else 1):
                    nshd, f1, ap = generator.uniform(0, 1, 3)
                    seconds = float(generator.lognormal())
                    records.append(
                        record(row.name, index, method, suite=name, nshd=nshd, f1=f1, ap=ap, seconds=seconds)
                    )
    return records


def cells_of(summary: Summary, title: str, name: str = "networks") -> dict[str, Cell]:
    """The cells under a title on the page of a suite with one row, by method."""
    blocks = suite_page(summary, name, paper=published_results())
    start = next(number for number, block in enumerate(blocks) if isinstance(block, Heading) and block.text == title)
    table = next(block for block in blocks[start:] if isinstance(block, Grid))
    return {line[0].text: line[1] for line in table.rows}


NSHD, F1 = "nSHD (lower is better)", "F1 (higher is better)"


# Title and note


def test_reports_say_which_suites_are_for_development_and_how_tables_were_read() -> None:
    read = replace(record("nominal", suite="mixed", f1=0.5), reading={"categories": "codes"})
    others = [record("mediator-1000", suite="textbook", right=1.0, class_right=1.0, graph_right=0.0)]
    records = [read, *others]
    blocks = report_blocks(records, summarize(records), {})
    text = to_markdown(blocks, Path())
    assert text.count("This is a development suite") == 2
    assert "How tables were read: BOSS (categories: codes)." in text
    assert text.count("How tables were read") == 1
    titles = [block.text for block in blocks if isinstance(block, Heading)]
    assert {"Right (higher is better)", "Class right (higher is better)"} < set(titles)
    assert "development suite" not in to_markdown(report_blocks([record()], summarize([record()]), {}), Path())


# Numbers


def test_means_and_standard_errors_leave_out_what_has_no_meaning() -> None:
    estimate = MeanEstimate.of([1.0, 2.0, math.nan, 6.0])
    assert (estimate.mean, estimate.count) == (3.0, 3)
    assert estimate.standard_error == pytest.approx(np.std([1, 2, 6], ddof=1) / math.sqrt(3))
    assert math.isnan(MeanEstimate.of([2.0]).standard_error)
    assert math.isnan(MeanEstimate.of([]).mean)


def test_tables_print_mean_and_standard_error_over_datasets() -> None:
    summary = summarize([record(index=index, nshd=value) for index, value in enumerate((0.2, 0.4, 0.9))])
    shown = [cells_of(summary, title)["BOSS"].text for title in (NSHD, F1, "Datasets and failures")]
    assert shown == ["0.50\u00a0(0.21)", "0.50\u00a0(0.00)", "3"]


def test_methods_and_rows_come_in_the_order_of_their_tables() -> None:
    records = random_records(["herman", "networks"], ["empty", "dagma", "boss", "arrow"], 1)
    summary = summarize(records[::-1])
    assert summary.suites == ["networks", "herman"]
    assert [row.row for row in summary.of_suite("networks")] == [row.name for row in suite("networks").rows()]
    assert [variant.label for variant in summary.variants] == ["Arrow", "BOSS", "DAGMA", "Empty graph"]


def test_settings_of_a_method_are_never_averaged_together() -> None:
    records = [record(settings={"lambda": "1"}, f1=0.2), record(settings={"lambda": "2"}, f1=0.8)]
    cells = cells_of(summarize(records), F1)
    assert [cells[f"BOSS #{number}"].text for number in (1, 2)] == ["0.20\u00a0(–)", "0.80\u00a0(–)"]


# Bold


def test_bold_goes_to_the_best_and_to_ties_within_standard_errors() -> None:
    estimates = {
        "best": MeanEstimate(0.50, 0.02, 100),
        "tie": MeanEstimate(0.54, 0.02, 100),
        "close": MeanEstimate(0.55, 0.02, 100),
        "unknown": MeanEstimate(math.nan, math.nan, 0),
    }
    assert best_of(estimates, lower_is_better=True) == {"best", "tie"}
    assert best_of(estimates, lower_is_better=False) == {"close", "tie"}
    assert best_of({}, lower_is_better=True) == set()


def test_our_rule_gives_the_bold_of_the_papers_own_tables() -> None:
    """From rounded figures the rule can be checked up to rounding only, half a hundredth in each of four numbers."""
    rounding = 0.01  # for a mean and its standard error together
    for table in published_results().tables:
        for measure, bold in table.bold.items():

            def best(change: float, measure: str = measure, table: PublishedTable = table) -> set[str]:
                estimates = {
                    method: MeanEstimate(figures[measure][0], max(0.0, figures[measure][1] + change), table.datasets)
                    for method, figures in table.methods.items()
                }
                return best_of(estimates, bool(MEASURES[measure].lower_is_better))

            assert best(-rounding) <= set(bold) <= best(rounding), (table.row, measure)


def test_methods_that_did_not_answer_everything_are_not_bold_and_it_is_said() -> None:
    records = [record(index=index, method="boss", nshd=0.5 + 0.1 * index) for index in range(3)]
    records += [record(index=index, method="dagma", nshd=0.1) for index in range(2)]
    records += [record(index=2, method="dagma", status="timeout")]
    summary = summarize(records)
    cells = cells_of(summary, NSHD)
    assert cells["BOSS"].bold
    assert not cells["DAGMA"].bold
    assert cells_of(summary, "Datasets and failures")["DAGMA"].text == "2 of 3 (1 timed out)"
    assert "- DAGMA, 1 dataset: It broke." in to_markdown(report_blocks(records, summary, {}), Path())


def test_seconds_of_methods_that_never_answered_are_not_made_up() -> None:
    summary = summarize([record(method="boss"), record(method="dagma", status="failed")])
    assert [cells_of(summary, title)["DAGMA"].text for title in (NSHD, F1)] == ["–", "–"]
    assert "DAGMA" not in cells_of(summary, "Time")
    assert cells_of(summary, "Datasets and failures")["DAGMA"].text == "0 of 1 (1 failed)"


# The paper's figures


def test_published_figures_are_marked_and_take_no_part() -> None:
    summary = summarize([record(index=index, nshd=0.99, f1=0.01, ap=0.01) for index in range(3)])
    ours, theirs = cells_of(summary, NSHD), cells_of(summary, "nSHD, published")
    assert set(ours) == {"BOSS"}
    assert ours["BOSS"].bold
    assert theirs["Arrow"] == Cell("0.59\u00a0(0.00)", italic=True)
    assert not any(cell.bold for cell in theirs.values())


def test_published_tables_hold_what_the_paper_prints() -> None:
    table = published_results().table("sachs", "pooled-raw")
    assert table is not None
    assert table.methods["BCNP"]["ap"] == (0.35, 0.01)
    assert table.bold["ap"] == ("BCNP",)
    assert published_results().table("sachs", "pooled-log") is None


# Empty graphs


def test_datasets_without_edges_are_left_out_of_the_mean_and_counted() -> None:
    nothing = record(index=1, nshd=math.nan, ap=math.nan, true_edges=0.0)
    summary = summarize([record(nshd=0.4), nothing])
    assert cells_of(summary, NSHD)["BOSS"].text == "0.40\u00a0(–)"
    assert cells_of(summary, "Datasets and failures")["BOSS"].text == "2"
    page = to_markdown(suite_page(summary, "networks"), Path())
    assert "Datasets left out because their true graph has no edges: 1 in ECOLI70." in page


def test_where_nothing_is_to_be_found_false_edges_are_counted() -> None:
    records = [
        record("empty-normal", index, suite="controls", nshd=math.nan, ap=math.nan, true_edges=0.0, shd=shd, f1=f1)
        for index, (shd, f1) in enumerate([(4.0, 0.0), (0.0, 1.0)])
    ]
    titles = ("False edges (lower is better)", "Share of empty answers (higher is better)")
    shown = [cells_of(summarize(records), title, "controls")["BOSS"].text for title in titles]
    assert shown == ["2.0\u00a0(2.0)", "0.50\u00a0(0.50)"]


# Calibration


def test_reliability_is_pooled_over_the_datasets_of_a_suite() -> None:
    generator = np.random.default_rng(3)
    records, outcomes, probabilities = [], [], []
    for index in range(4):
        truth = np.triu(generator.random((6, 6)) < 0.4, 1)
        marginals = generator.random((6, 6)) / 2
        table = edge_reliability(truth, marginals)
        base = record(index=index, method="arrow")
        records.append(Record(**{**vars(base), "reliability": table, "reliability_above_floor": table}))
        off_diagonal = ~np.eye(6, dtype=bool)
        outcomes.append(truth[off_diagonal])
        probabilities.append(marginals[off_diagonal])
    summary = summarize(records)
    pooled = reliability_by_method(summary, "networks")["Arrow"]
    assert pooled.pairs.sum() == 4 * 30
    assert pooled.edges.sum() == np.concatenate(outcomes).sum()
    assert pooled.probability_sum.sum() == pytest.approx(np.concatenate(probabilities).sum())
    text = to_markdown(report_blocks(records, summary, {}), Path())
    assert f"{pooled.expected_calibration_error:.4f}" in text


def test_methods_that_saw_different_datasets_are_told() -> None:
    records = [
        replace(record(method=method), dataset={"observations": 9, "variables": 3, "graph_checksum": checksum})
        for method, checksum in (("boss", "a"), ("dagma", "b"), ("pc", "a"))
    ]
    assert differing_datasets(records) == [("networks", "ECOLI70", 0)]
    assert "did not see the same dataset" in to_markdown(report_blocks(records, summarize(records), {}), Path())
    assert differing_datasets(records[::2]) == []


# Files


def test_packed_records_give_the_same_report_and_are_small(tmp_path: Path) -> None:
    records = random_records(["networks", "herman"], ["arrow", "boss", "dagma"], 30)
    records.append(record(index=99, status="failed"))
    write_packed(records, tmp_path / "packed.jsonl.gz")
    assert (tmp_path / "packed.jsonl.gz").stat().st_size < 30 * len(records)
    back = read_records(tmp_path)
    assert len(back) == len(records)
    originals = {one.identity: one for one in records}
    for one in back:
        original = originals[one.identity]
        assert one.measures == pytest.approx(original.measures, rel=1e-3)
        assert one.seconds == (None if original.seconds is None else pytest.approx(original.seconds, rel=1e-2))
        assert (one.status, one.error, one.run) == (original.status, original.error, original.run)
    write_packed(back, tmp_path / "again.jsonl.gz")
    assert (tmp_path / "again.jsonl.gz").read_bytes() == (tmp_path / "packed.jsonl.gz").read_bytes()


def test_packing_keeps_pooled_reliability(tmp_path: Path) -> None:
    table = edge_reliability(np.eye(4, k=1, dtype=bool), np.full((4, 4), 0.3))
    records = [Record(**{**vars(record(index=index)), "reliability": table}) for index in range(5)]
    write_packed(records, tmp_path / "packed.jsonl.gz")
    pooled = reliability_by_method(summarize(list(read_packed(tmp_path / "packed.jsonl.gz"))), "networks")["BOSS"]
    np.testing.assert_allclose(pooled.pairs, 5 * table.pairs)
    np.testing.assert_allclose(pooled.probability_sum, 5 * table.probability_sum)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x1f\x8b\x08\x00broken"])
def test_a_damaged_packed_file_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "packed.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(BenchmarkError, match="damaged or not a file"):
        read_records(path)


def save(records: Iterable[Record], folder: Path) -> Path:
    writer = RecordWriter(folder)
    for one in records:
        writer.write(one)
    writer.close()
    return folder


def test_a_folder_without_records_says_how_to_make_some(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="causal-arrow-lab benchmark"):
        write_report(tmp_path)
    with pytest.raises(BenchmarkError, match="There is no"):
        write_report(tmp_path / "nowhere")


def test_markdown_reports_link_figures_that_exist(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    folder = save(random_records(["networks", "shifted"], ["arrow", "boss"], 4), tmp_path / "records")
    path = write_report(folder, output=tmp_path / "docs" / "benchmarks.md")
    links = re.findall(r"!\[[^]]*\]\(([^)]*)\)", path.read_text(encoding="utf-8"))
    assert {Path(link).stem for link in links} == {
        "networks-network",
        "networks-pareto",
        "shifted-shift",
        "shifted-pareto",
    }
    assert all((path.parent / link).stat().st_size > 1000 for link in links)


def test_bars_in_a_cell_do_not_end_it() -> None:
    assert "**a \\| b**" in to_markdown([Grid(("x",), ((Cell("a | b", bold=True),),))], Path())


def test_pictures_are_linked_from_where_the_report_lies(tmp_path: Path) -> None:
    picture = Picture(tmp_path / "docs" / "figures" / "a.png", "A")
    assert "![A](figures/a.png)" in to_markdown([picture], tmp_path / "docs")


# Figures


def test_the_frontier_holds_exactly_the_points_that_none_dominates() -> None:
    from figures import pareto_frontier

    generator = np.random.default_rng(4)
    for lower_is_better in (True, False):
        points = [tuple(point) for point in generator.integers(0, 8, (12, 2)).astype(float).tolist()]
        sign = 1 if lower_is_better else -1
        expected = {
            (time, accuracy)
            for time, accuracy in points
            if not any(
                other_time <= time
                and sign * other_accuracy <= sign * accuracy
                and (other_time, other_accuracy) != (time, accuracy)
                for other_time, other_accuracy in points
            )
        }
        frontier = pareto_frontier(points, lower_is_better)  # type: ignore[arg-type]
        assert set(frontier) == expected
        assert [time for time, _ in frontier] == sorted(time for time, _ in frontier)


def test_every_method_has_a_style_of_its_own() -> None:
    from figures import STYLES, style_of

    assert set(STYLES) == set(METHODS)
    assert len(set(STYLES.values())) == len(STYLES)
    for name, kind in METHODS.items():
        assert style_of(Variant(kind.title, name, {}, {})) == STYLES[name]
    assert style_of(Variant("Arrow (run)", "arrow:run", {}, {})) != STYLES["arrow"]
    assert style_of(Variant("Arrow, scale given", "arrow", {"scale": "given"}, {})) != STYLES["arrow"]


def test_each_panel_of_a_suite_gets_its_figure_and_the_same_records_the_same_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from figures import benchmark_figures, save_figure

    summary = summarize(random_records(["in-distribution", "controls"], ["arrow", "boss"], 2))
    plans = {plan.name: plan for plan in benchmark_figures(summary)}
    panels = {f"in-distribution-{row.panel}" for row in suite("in-distribution").rows()}
    assert panels | {"in-distribution-pareto"} <= set(plans)
    for path in (tmp_path / "first.svg", tmp_path / "second.svg"):
        save_figure(plans["in-distribution-observations"].draw(), path)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_accuracy_and_runtime_over_several_rows_show_methods_that_were_run_in_all_of_them() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from figures import benchmark_figures

    everywhere = [record(row, 0, method) for row in ("ECOLI70", "ARTH150") for method in ("arrow", "boss")]
    summary = summarize([*everywhere, record("ECOLI70", 0, "ges")])
    plans = {plan.name: plan for plan in benchmark_figures(summary)}
    legend = plans["networks-pareto"].draw().legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["Arrow", "BOSS"]
    assert "of the methods that were run in each" in plans["networks-pareto"].caption


def test_methods_that_take_no_time_are_drawn_without_their_time(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from figures import benchmark_figures, save_figure

    plans = {
        plan.name: plan
        for plan in benchmark_figures(summarize(random_records(["in-distribution", "shifted"], ["empty"], 2)))
    }
    assert plans
    assert not any(name.endswith("pareto") for name in plans)
    for name, plan in plans.items():
        save_figure(plan.draw(), tmp_path / f"{name}.png")
    assert not list(recwarn)


# Pretraining runs


def write_log(folder: Path, events: list[dict[str, object]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return folder


def step(number: int, loss: float) -> dict[str, object]:
    return {"event": "step", "step": number, "loss": loss, "tasks": 10 * number}


def validation(number: int, nll: float) -> dict[str, object]:
    scores = {"distribution": "paper", "observations": 100, "variables": 5, "tasks": 8}
    mean = {"nll": nll, "nshd": 0.5, "f1": 0.6, "ap": 0.7}
    return {"event": "validation", "step": number, "mean": mean, "scores": [{**scores, **mean}]}


def test_what_an_interrupted_run_did_after_its_last_save_is_forgotten(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from training_report import read_trajectory

    events = [{"event": "start", "step": 0}, step(10, 3.0), step(20, 2.0), validation(20, 1.9), step(30, 9.0)]
    events += [{"event": "start", "step": 20}, step(25, 1.5)]
    folder = write_log(tmp_path, events)
    with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"event": "st')
    trajectory = read_trajectory(folder / "log.jsonl")
    assert [(one["step"], one["loss"]) for one in trajectory.steps] == [(10, 3.0), (20, 2.0), (25, 1.5)]
    assert [one["step"] for one in trajectory.validations] == [20]


@pytest.mark.parametrize(("every", "records"), [(1, 25), (4, 6), (5, 5), (10, 2), (20, 1), (50, 1)])
def test_a_rolling_mean_is_of_the_records_that_come_nearest_to_its_iterations(every: int, records: int) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from training_report import rolling_mean

    values = np.random.default_rng(5).standard_normal(60)
    means, covered = rolling_mean(values, np.full(60, every), 25)
    np.testing.assert_allclose(means, [values[max(0, end - records) : end].mean() for end in range(1, 61)])
    np.testing.assert_array_equal(covered, [every * min(end, records) for end in range(1, 61)])


def test_in_a_rolling_mean_every_iteration_counts_the_same() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from training_report import rolling_mean

    means, covered = rolling_mean(np.array([1.0, 4.0, 2.0]), np.array([20, 4, 20]), 25)
    np.testing.assert_allclose(means, [1.0, (20 * 1.0 + 4 * 4.0) / 24, (4 * 4.0 + 20 * 2.0) / 24])
    np.testing.assert_array_equal(covered, [20, 24, 24])


def test_a_loss_is_of_the_iterations_since_the_last_start_validation_or_loss(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from training_report import read_trajectory

    events = [{"event": "start", "step": 500}, step(520, 3.0), step(540, 2.0), validation(548, 1.9), step(560, 1.8)]
    events += [validation(574, 1.7), {"event": "start", "step": 574}, step(580, 1.5)]
    trajectory = read_trajectory(write_log(tmp_path, events) / "log.jsonl")
    assert [one["iterations"] for one in trajectory.steps] == [20, 20, 12, 6]


@pytest.mark.parametrize(
    ("every", "said"),
    [
        (1, ["training, each iteration", "training, mean of 25 iterations"]),
        (10, ["training, mean of 10 iterations", "training, mean of 20 iterations"]),
        (20, ["training, mean of 20 iterations"]),
        (50, ["training, mean of 50 iterations"]),
    ],
)
def test_the_legend_says_over_how_many_iterations_each_line_is_a_mean(
    every: int, said: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from training_report import draw_trajectory, read_trajectory

    events = [step(every * number, 1 + 1 / number) for number in range(1, 60)]
    axis = draw_trajectory(read_trajectory(write_log(tmp_path, events) / "log.jsonl")).axes[0]
    assert [line.get_label() for line in axis.get_lines()] == said


def test_runs_are_compared_by_what_differs_and_where_they_ended(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from training_report import write_comparison

    configs = {
        "base": {"seed": 0, "model": {"encoder": "pairwise", "stages": 4}, "tasks": {"without": []}},
        "deeper": {"seed": 0, "model": {"encoder": "pairwise", "stages": 6}, "tasks": {"without": []}},
    }
    folders = [
        write_log(
            tmp_path / name,
            [
                {"event": "start", "step": 0, "config": config, "parameters": 1234},
                {**step(10, 2.0), "seconds": 60.0},
                {**validation(10, 1.9), "seconds": 66.0, "tasks": 100},
                {"event": "start", "step": 10, "config": config, "parameters": 1234},
                {**validation(20, 1.5 + number), "seconds": 54.0, "tasks": 200},
            ],
        )
        for number, (name, config) in enumerate(configs.items())
    ]
    text = write_comparison(folders, output=tmp_path / "both.md").read_text(encoding="utf-8")
    lines = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")]
        for line in text.split("\n")
        if "|" in line
    }
    assert "model.stages = 4" in text
    assert "model.stages = 6" in text
    assert "seed" not in text
    assert lines["base"][2:7] == ["1,234", "2.0", "20", "200", "1.5000"]  # the minutes of both starts
    assert lines["deeper"][6] == "2.5000"
    assert (tmp_path / "both-figures" / "runs.png").stat().st_size > 5000


def test_only_validated_pretraining_runs_can_be_compared(tmp_path: Path) -> None:
    from training_report import write_comparison

    good = write_log(tmp_path / "good", [validation(10, 1.0)])
    young = write_log(tmp_path / "young", [step(10, 1.0)])
    (tmp_path / "other").mkdir()
    with pytest.raises(BenchmarkError, match=r"other has no log\.jsonl"):
        write_comparison([good, tmp_path / "other"], output=tmp_path / "both.md")
    with pytest.raises(BenchmarkError, match="young has not been validated"):
        write_comparison([good, young], output=tmp_path / "both.md")
    assert not (tmp_path / "both.md").exists()


@pytest.mark.parametrize("validations", [True, False])
def test_a_run_gets_its_trajectory_and_its_last_validation(validations: bool, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    from training_report import is_training_run, write_training_report

    events = [step(10 * number, 1 + 1 / number) for number in range(1, 40)]
    folder = write_log(tmp_path / "run", events + ([validation(390, 1.05)] if validations else []))
    assert is_training_run(folder)
    path = write_training_report(folder)
    text = path.read_text(encoding="utf-8")
    assert "Step 390" in text
    assert ("1.0500" in text) == validations
    assert (folder / "report-figures" / "trajectory.png").stat().st_size > 5000
