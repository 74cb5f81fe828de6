"""The tutorials run, and their text agrees with their results."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("nbclient", reason="the tutorials need the extra 'docs'")
pytest.importorskip("mkdocs", reason="the tutorials need the extra 'docs'")

import nbformat

from docs_scripts import DOCS, load_script

pytestmark = pytest.mark.usefixtures("network_with_noise")

TUTORIALS = sorted((DOCS / "tutorials").glob("*.ipynb"))


@cache
def notebooks() -> ModuleType:
    return load_script("../hooks/notebooks")


def results(name: str, *expressions: str) -> Any:
    """What expressions are worth after the cells of a notebook were run."""
    question = f"import json; print(json.dumps([{', '.join(expressions)}], default=float))"
    notebook = notebooks().executed(DOCS / "tutorials" / f"{name}.ipynb", then=question)
    return json.loads(notebook.cells[-1].outputs[0].text)


def test_the_first_table_comes_out_right_and_fails_without_rows_or_without_the_important_column() -> None:
    edges = "{(e.source, e.target) for e in %s.edges_}"
    right, wrong, few, unsure, missed, missing_path = results(
        "first-table",
        f"sorted({edges % 'arrow'}) == sorted(map(tuple, truth))",
        f"len({edges % 'few'} - set(map(tuple, truth)))",
        "len(few.edges_)",
        "sum(e.direction != 'strong' for e in few.edges_) / len(few.edges_)",
        f"('drug', 'day3') not in {edges % 'blind'}",
        "blind.effect('drug', 'stay').probability_of_none",
    )
    assert right
    assert wrong > few / 2  # "more than half of this is wrong"
    assert unsure > 0.9
    assert missed
    assert missing_path > 0.5


def test_knowledge_turns_edges_around_and_does_not_find_missing_ones() -> None:
    first, then, counts, directions, cascade, in_tiers = results(
        "what-you-know",
        "count(few, truth)",
        "count(ordered_patients, truth)",
        "counts",
        "[e.direction_probability for e in arrow.edges_]",
        "[e.direction_probability for e in informed.edges_ if (e.source, e.target) == ('raf', 'mek')]",
        "[[e.source, e.target] for e in informed.edges_ if (e.source, e.target) in {('mek', 'raf'), ('erk', 'mek')}]",
    )
    assert first["reversed"] > 0 == then["reversed"]
    assert then["right"] > first["right"]
    alone, with_cascade, whole_order, required = counts.values()
    for counted in counts.values():  # every true edge is counted once
        assert sum(counted[kind] for kind in ("right", "required by us", "reversed", "missing")) == 17
        assert counted["missing"] > 17 / 2
    assert alone["reversed"] == alone["right"] + alone["extra"] == 3  # "three of the six are wrong"
    assert alone == with_cascade  # "nothing moved"
    assert min(directions) > 0.6  # "none of these directions is near one half"
    assert cascade == [1.0]
    assert not in_tiers
    assert whole_order["right"] == alone["right"] + 1
    assert whole_order["missing"] == alone["missing"]  # "it did not find a missing one"
    assert required["required by us"] == 2


def test_the_hidden_temperature_is_detected_and_the_trial_settles_what_the_records_cannot() -> None:
    found, seen, wrong, detected, suspected, first, edges, all_rows, trial_rows, truth = results(
        "experiments-and-hidden-causes",
        "sorted((e.source, e.target) for e in beach.edges_) == sorted(map(tuple, days.attrs['edges']))",
        "[sorted([h.first, h.second]) for h in blind.hidden_causes_]",
        "[e.source for e in blind.edges_ if [e.source, e.target] not in [list(edge) for edge in days.attrs['edges']]]",
        "[detected, joined]",
        "probability",
        "observed.effect('drug', 'stay').probability_of_none",
        "[answer.edge_probabilities_.loc['drug', 'day3'] for answer in (labeled, unlabeled)]",
        "from_all.interval",
        "from_trial.interval",
        "truth",
    )
    assert found
    assert seen == [["ice_cream", "swimmers"]]
    assert not wrong  # the page shows no false arrow, and speaks of none
    assert detected[0] >= 14  # "in most of these tables"
    assert 0 < detected[1] < 20  # "in some of them there is also an arrow"
    assert suspected < 0.5  # "not enough to be shown"
    assert first > 0.5  # no effect, which is wrong
    assert edges[0] > edges[1] + 0.2  # "much more probable"
    assert not all_rows[0] <= truth <= all_rows[1]
    assert trial_rows[0] <= truth <= trial_rows[1]


def test_time_gives_the_graph_of_the_greenhouse_and_fails_as_the_page_says() -> None:
    right, plain, sure, curve, course, missed, lags, weekly, blind, informed, walks = results(
        "time-series",
        "lagged_edges(found) == truth",
        "sorted((e.source, e.target) for e in shuffled.answer.edges if e.direction == 'strong')",
        "('watering', 'growth') in {(e.source, e.target) for e in shuffled.answer.edges}",
        "list(curve.estimate)",
        "list(course)",
        "sorted(truth - lagged_edges(short))",
        "chosen.answer.lags",
        "[[e.lag, e.direction] for e in weekly.answer.edges]",
        "sorted(lagged_edges(blind) - truth)",
        "len(lagged_edges(informed) - truth)",
        "[[len(each.answer.edges), [it.kind for it in each.answer.findings]] for each in (wandering, changes)]",
    )
    assert right
    assert not plain  # "no direction is sure"
    assert sure  # "such as watering → growth"
    assert min(curve[1:3]) > 0 > max(curve[3:6])  # "wetter for two days", then "drier than before"
    assert max(abs(found - true) for found, true in zip(curve, course, strict=True)) < 0.15
    assert missed == [["soil", "growth", 2]]
    assert lags == 2
    assert sum(lag == 0 for lag, _ in weekly) > len(weekly) / 2  # "most edges are now at lag 0"
    assert "strong" not in [direction for _, direction in weekly]
    assert blind == [["temperature", "growth", 1]]
    assert informed == 0
    (edges_of_walks, warned), (edges_of_changes, _) = walks
    assert edges_of_walks > 0 == edges_of_changes
    assert {"random_walk", "effective_rows"} <= set(warned)


def test_the_graph_gives_the_effect_that_neither_means_nor_a_regression_on_everything_gives() -> None:
    plain, everything, interval, of_data_alone, covered, first, trial, precise, truth = results(
        "from-graph-to-effect",
        "plain",
        "everything",
        "effect.interval",
        "Arrow().fit(table).effect('drug', 'stay').interval",
        "covered.sum()",
        "str(plan).splitlines()[0]",
        "randomized.effect('drug', 'stay').interval",
        "adjusted.interval",
        "truth",
    )
    assert plain > 0 > truth
    assert abs(everything) < 0.3
    assert interval[0] <= truth <= interval[1] < 0
    assert of_data_alone[0] <= truth <= of_data_alone[1]
    assert of_data_alone[1] - of_data_alone[0] > 2 * (interval[1] - interval[0])  # "the interval is wide"
    assert covered >= 15
    assert "drug" in first
    assert trial[0] <= truth <= trial[1]
    assert precise[1] - precise[0] < trial[1] - trial[0]


def test_a_real_trial_shows_a_conflict_and_its_design_gives_the_published_effect() -> None:
    difference, conflict, no_path, plain, median, interval, backwards, first = results(
        "a-real-table",
        "difference",
        "str(effect).startswith('Conflict')",
        "effect.probability_of_none",
        "effect.interval",
        "trial.effect('treat', 're78').median",
        "trial.effect('treat', 're78').interval",
        "[e.target for e in informed.edges_ if (e.source, e.target) in {('re75', 're74'), ('educ', 'age')}]",
        "sorted((e.source, e.target) for e in arrow.edges_)",
    )
    assert conflict
    assert no_path > 0.5
    assert plain[0] > 0
    assert median == pytest.approx(difference, rel=0.01) == pytest.approx(1794, rel=0.01)
    assert interval == [pytest.approx(688, rel=0.05), pytest.approx(2900, rel=0.05)]
    assert not backwards
    assert ["re75", "re74"] in first
    assert not [edge for edge in first if "treat" in edge]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_notebooks_have_no_outputs_and_begin_with_goals_and_end_with_exercises(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    opening = notebook.cells[0].source
    assert opening.startswith("# ")
    assert all(promise in opening for promise in ("**You will learn**", "**Time:**", "**You need**"))
    assert any("## Exercises" in cell.source for cell in notebook.cells)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None


def test_every_tutorial_has_a_test_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert TUTORIALS
    for path in TUTORIALS:
        assert f'"{path.stem}"' in text, f"nothing checks what {path.name} tells"


def test_a_notebook_as_a_page_has_its_text_its_code_and_a_place_for_each_output() -> None:
    cells = [
        nbformat.v4.new_markdown_cell("# Title\nWords."),
        nbformat.v4.new_code_cell("print('<b>')", outputs=[nbformat.v4.new_output("stream", text="<b>\n")]),
    ]
    text, outputs = notebooks().as_markdown(nbformat.v4.new_notebook(cells=cells), "name")
    assert text.startswith("# Title\n\n<div data-notebook-output=")
    assert "```python\nprint('<b>')\n```" in text
    assert "&lt;b&gt;</pre>" in outputs[0]
    assert 'href="../name.ipynb"' in outputs[1]
