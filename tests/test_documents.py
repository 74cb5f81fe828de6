"""Documents say what commands printed: the pages of evidence, and the accuracies in the research log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causal_arrow_lab.benchmarks.records import read_records
from summaries import RowSummary, paired_difference, summarize

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "evidence" / "records" / "benchmarks.jsonl.gz"
SHOWN = ("nshd", "f1", "ap")
POLICIES = ("Arrow", "Random choice", "Highest degree")

Rows = dict[str, RowSummary]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Every row that was measured, by the name the benchmark command knows it by."""
    return {f"{row.suite}/{row.row}": row for row in summarize(read_records(RECORDS)).rows}


def cells_of_table(document: Path, title: str) -> tuple[list[str], list[list[str]]]:
    """Header and lines of the first table after a title."""
    text = document.read_text(encoding="utf-8").split(f"## {title}\n", 1)[1]
    lines = re.search(r"(^\|.*\n)+", text, re.MULTILINE)
    assert lines is not None
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines[0].splitlines()]
    return cells[0], cells[2:]


def logged(run: str, event: str) -> list[dict[str, Any]]:
    """What the log of a training run says of one kind of event."""
    log = (ROOT / "lab" / "research" / "training-runs" / run / "log.jsonl").read_text(encoding="utf-8")
    return [record for record in map(json.loads, log.splitlines()) if record["event"] == event]


def training_notes() -> str:
    """The text of the training notes, its lines joined."""
    return " ".join((ROOT / "lab" / "research" / "log.md").read_text(encoding="utf-8").split())


def measured(row: RowSummary, method: str) -> str:
    entry = next(entry for entry in row.entries if entry.variant.label == method)
    return " ".join(f"{entry.estimate(name).mean:.2f}" for name in SHOWN)


def test_every_figure_that_the_pages_of_suites_show_is_there_and_no_other() -> None:
    evidence_pages = ROOT / "docs" / "evidence"
    pages = [*evidence_pages.glob("*.md"), *(evidence_pages / "suites").glob("*.md")]
    shown = [
        name for page in pages for name in re.findall(r"figures/([\w-]+\.png)\)", page.read_text(encoding="utf-8"))
    ]
    assert len(shown) > 20
    assert {path.name for path in (evidence_pages / "suites" / "figures").iterdir()} == set(shown)


def evidence(name: str) -> dict[tuple[str, str], Any]:
    """The entries of a page of evidence, by row and by the title of the method."""
    summary = summarize(read_records(ROOT / "docs" / "evidence" / "records" / f"{name}.jsonl.gz"))
    return {(row.row, entry.variant.label): entry for row in summary.rows for entry in row.entries}


@pytest.mark.parametrize(
    ("title", "measure", "digits"), [("RMSE", "squared_error", 3), ("coverage", "coverage_of_effects", 2)]
)
def test_the_figures_of_the_page_of_effects_are_those_of_the_records(title: str, measure: str, digits: int) -> None:
    text = (ROOT / "docs" / "understand" / "effect-methods.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {title} \| (.*) \|\n.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found is not None
    entries = evidence("effects-evidence")
    methods, lines = found[1].split(" | "), found[2].splitlines()
    assert len(lines) == 6
    for line in lines:
        row, *cells = line.strip("| ").split(" | ")
        assert cells == [f"{entries[row, method].estimate(measure).mean:.{digits}f}" for method in methods]


def test_the_figures_of_experiments_on_the_page_of_effects_are_those_of_the_records() -> None:
    text = (ROOT / "docs" / "understand" / "effect-methods.md").read_text(encoding="utf-8")
    entries = evidence("experiments-evidence")
    rows = re.findall(r"^\| (\S+) \| (.*) \|$", text.partition("experiments until half")[2], re.MULTILINE)
    shown = {row: cells.split(" | ") for row, cells in rows if (row, "Arrow") in entries}
    assert len(shown) == 4
    for row, cells in shown.items():
        expected = [f"{entries[row, method].estimate('until_half').mean:.2f}" for method in POLICIES]
        for other in POLICIES[1:]:
            apart = paired_difference(entries[row, "Arrow"], entries[row, other], "until_half")
            expected.append(f"{apart.mean:+.2f} ({apart.standard_error:.2f})".replace("-", "−"))
        assert cells == expected


def test_the_accuracies_of_the_training_notes_are_those_of_the_records(rows: Rows) -> None:
    header, lines = cells_of_table(ROOT / "lab" / "research" / "log.md", "Where it stands")
    assert header[:2] == ["Data", "arrow-base"]
    assert len(lines) >= 11
    for name, now, *_ in lines:
        assert now == measured(rows[name], "Arrow"), name


def test_what_the_training_notes_say_of_small_graphs_is_in_the_records() -> None:
    few: dict[str, list[float]] = {"arrow": [], "class-oracle": []}
    more: dict[str, list[float]] = {"arrow": [], "class-oracle": []}
    for record in read_records(RECORDS):
        if (record.suite, record.row) == ("herman", "IPA") and record.method in few:
            (few if record.measures["true_edges"] < 15 else more)[record.method].append(record.measures["f1"])
    assert len(few["arrow"]) + len(more["arrow"]) == 100
    small, large = ([float(np.mean(scores[method])) for method in few] for scores in (few, more))
    sentence = (
        f"{len(few['arrow'])} of the 100 IPA datasets have fewer than 15 edges, and there F1 is {small[0]:.2f} for "
        f"Arrow and {small[1]:.2f} for the oracle, with standard errors of 0.07; in the other {len(more['arrow'])} it "
        f"is {large[0]:.2f} and {large[1]:.2f}"
    )
    assert sentence in training_notes()


@pytest.mark.parametrize(
    ("title", "runs"),
    [
        ("The recipe", 12),
        ("Ablations", 9),
        ("Small networks", 8),
        ("The paper's encoder", 8),
        ("The paper's tasks alone", 4),
    ],
)
def test_the_validations_of_the_training_notes_are_those_of_the_logs(title: str, runs: int) -> None:
    header, lines = cells_of_table(ROOT / "lab" / "research" / "log.md", title)
    assert header[3:] == ["NLL/p", "F1", "AP"]
    assert len(lines) == runs
    for name, *cells in lines:
        means = [(record["step"], record["tasks"], record["mean"]) for record in logged(name, "validation")]
        shown = [
            [f"{step:,}", f"{tasks:,}", f"{mean['nll']:.4f}", *(f"{mean[measure]:.3f}" for measure in SHOWN[1:])]
            for step, tasks, mean in means
        ]
        assert cells in shown, name


def test_what_the_training_notes_say_of_the_papers_encoder_on_its_own_tasks_is_in_the_logs() -> None:
    last = {
        name: [score for score in logged(name, "validation")[-1]["scores"] if score["distribution"] == "paper"]
        for name in ("paper-encoder", "first")
    }
    ends = {
        name: [float(np.mean([score[measure] for score in scores])) for measure in ("nll", "ap")]
        for name, scores in last.items()
    }
    by_shape = {(score["observations"], score["variables"]): score["ap"] for score in last["paper-encoder"]}
    said = training_notes()
    assert "ends at NLL/p {:.2f} and AP {:.2f};".format(*ends["paper-encoder"]) in said
    assert "stood at {:.2f} and {:.2f} after the 12.7 minutes of the first slice".format(*ends["first"]) in said
    small, large = by_shape[500, 10], by_shape[1000, 100]
    assert f"(AP {small:.2f} at n = 500), and few yet among 100 ({large:.2f} at n = 1,000)" in said


def test_what_the_training_notes_say_of_the_papers_encoders_learning_rates_is_in_the_logs() -> None:
    usual = {record["step"]: record["loss"] for record in logged("paper-encoder", "step")}
    fast = {record["step"]: record["loss"] for record in logged("paper-encoder-fast", "step")}
    assert "its training loss was lower at first and higher from step 200 on" in training_notes()
    assert fast[20] < usual[20]
    later = [step for step in fast if step >= 200]
    assert len(later) == 4
    assert all(fast[step] > usual[step] for step in later)


def test_what_the_training_notes_say_of_the_papers_tasks_alone_is_in_the_log() -> None:
    def nll(record: dict[str, Any], square: bool) -> float:
        shapes = [(score["observations"] == score["variables"], score["nll"]) for score in record["scores"]]
        return float(np.mean([value for is_square, value in shapes if is_square == square]))

    validations = {record["step"]: record for record in logged("strict", "validation")}
    said = training_notes()
    first, half, last = (nll(validations[step], square=False) for step in (1000, 5452, 10604))
    assert f"from {first:.3f} at step 1,000 to {half:.3f} at step 5,452 and {last:.3f} at step 10,604" in said
    assert f"it is {nll(validations[10604], square=True):.2f} at the end" in said


def test_what_the_training_notes_say_of_small_networks_step_by_step_is_in_the_logs() -> None:
    """Runs of one seed see the same tasks in the same steps; up to step 400 all are at the full learning rate."""
    said = training_notes()

    def losses(name: str) -> list[float]:
        return [record["loss"] for record in logged(name, "step") if 100 <= record["step"] <= 400]

    usual = np.array(losses("small"))
    for name in ("small-rounds", "small-pooled", "small-wider", "small-deeper"):
        apart = np.array(losses(name)) - usual
        assert len(apart) == 7
        error = apart.std(ddof=1) / len(apart) ** 0.5
        assert f"*{name}*: {apart.mean():+.3f} ({error:.3f})".replace("-0", "−0") in said


def test_the_ablations_on_the_page_of_the_recipe_are_those_of_the_training_notes() -> None:
    page = (ROOT / "docs" / "model" / "recipe.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| .* \| ([\d.]+ \| [\d.]+ \| [−+][\d.]+ \([\d.]+\)) \|$", page, re.MULTILINE)
    assert len(shown) == 10
    for figures in shown:
        assert figures in training_notes()
