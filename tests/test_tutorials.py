"""The tutorials run, and what they tell is what comes out."""

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


def test_the_first_table_comes_out_right_and_sixty_patients_are_too_few() -> None:
    edges = "{(e.source, e.target) for e in %s.edges_}"
    right, wrong, unsure, tested = results(
        "first-table",
        f"sorted({edges % 'arrow'}) == sorted(map(tuple, truth))",
        f"len({edges % 'few'} - set(map(tuple, truth)))",
        "sum(e.direction != 'strong' for e in few.edges_) / len(few.edges_)",
        "'independences that the graph implies' in str(few)",
    )
    assert right
    assert wrong > 5
    assert unsure > 0.9
    assert tested


def test_knowledge_turns_edges_around_and_does_not_find_missing_ones() -> None:
    counts, first, then, required, later_above = results(
        "what-you-know",
        "counts",
        "[e.direction_probability for e in arrow.edges_ if (e.source, e.target) == ('raf', 'mek')]",
        "[e.direction_probability for e in informed.edges_ if (e.source, e.target) == ('raf', 'mek')]",
        "[[e.source, e.target] for e in required.edges_ if e.required]",
        "[[e.source, e.target] for e in informed.edges_ if (e.source, e.target) in {('mek', 'raf'), ('erk', 'mek')}]",
    )
    alone, cascade, order, two = counts.values()
    assert alone["reversed"] >= 2  # the cautionary tale
    assert alone == cascade  # "nothing moved"
    assert (first, then) == ([pytest.approx(0.77, abs=0.01)], [1.0])
    assert cascade["reversed"] > order["reversed"]
    assert cascade["right"] < order["right"]
    assert abs(order["edges"] - alone["edges"]) <= 1
    assert min(count["missing"] for count in counts.values()) > 17 / 2  # most of the consensus
    assert sorted(required) == [["mek", "erk"], ["raf", "mek"]]
    assert two["edges"] > 2
    assert not later_above


def test_the_hidden_temperature_is_detected_and_the_trial_settles_what_the_records_cannot() -> None:
    found, seen, detected, suspected, first, told, ignored, all_rows, trial_rows, truth = results(
        "experiments-and-hidden-causes",
        "sorted((e.source, e.target) for e in beach.edges_) == sorted(map(tuple, days.attrs['edges']))",
        "[sorted([h.first, h.second]) for h in blind.hidden_causes_]",
        "detected",
        "probability",
        "observed.effect('drug', 'stay').probability_of_none",
        "told.edge_probabilities_.loc['drug', 'day3']",
        "ignored.edge_probabilities_.loc['drug', 'day3']",
        "from_all.interval",
        "from_trial.interval",
        "truth",
    )
    assert found
    assert seen == [["ice_cream", "swimmers"]]
    assert detected >= 14  # "in most of the tables"
    assert suspected < 0.5  # "not enough to show it"
    assert first > 0.5  # "no effect", which is wrong
    assert told > 0.9 > ignored
    assert not all_rows[0] <= truth <= all_rows[1]
    assert trial_rows[0] <= truth <= trial_rows[1]


def test_the_graph_gives_the_effect_that_neither_means_nor_a_regression_on_everything_gives() -> None:
    plain, everything, interval, held_out, advice, randomized, error, truth = results(
        "from-graph-to-effect",
        "plain",
        "everything",
        "effect.interval",
        "held_out.effect('drug', 'stay').interval",
        "str(plan)",
        "randomized",
        "error",
        "truth",
    )
    assert plain > 0 > truth
    assert abs(everything) < 0.3
    assert interval[0] <= truth <= interval[1]
    assert held_out[0] <= truth <= held_out[1]
    assert "set drug" in advice.splitlines()[0]
    assert abs(randomized - truth) < 2 * error


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs_and_start_with_a_title(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
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
