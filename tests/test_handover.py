"""From our graph to an effect: the example and the snippet of the page run, also where there is no effect."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, load_example

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def example() -> ModuleType:
    pytest.importorskip("dowhy")
    spec = importlib.util.spec_from_file_location("effect_estimate", ROOT / "examples" / "effect_estimate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["effect_estimate"] = module
    spec.loader.exec_module(module)
    return module


def chain_table(effect: float) -> pd.DataFrame:
    random = np.random.default_rng(0)
    z = random.normal(size=600)
    x = z + random.laplace(size=600)
    return pd.DataFrame({"z": z, "x": x, "y": effect * x + z + random.normal(size=600)})


@pytest.mark.filterwarnings("ignore")
def test_the_example_estimates_the_effect_with_an_interval_and_a_placebo(example: ModuleType) -> None:
    graph = nx.DiGraph([("z", "x"), ("z", "y"), ("x", "y")])
    effect = example.estimated_effect(chain_table(2.0), graph, "x", "y")
    assert effect.low < 2.0 < effect.high
    assert effect.high - effect.low < 0.3
    assert effect.adjusted_for == ("z",)
    assert abs(effect.placebo) < 0.2


@pytest.mark.parametrize("edges", [[("z", "x"), ("z", "y")], [("z", "x"), ("y", "x")], []])
def test_the_example_has_no_effect_to_estimate_where_there_is_no_path(
    example: ModuleType, edges: list[tuple[str, str]]
) -> None:
    graph = nx.DiGraph(edges)
    graph.add_nodes_from("zxy")
    assert example.estimated_effect(chain_table(0.0), graph, "x", "y") is None


@pytest.mark.filterwarnings("ignore")
def test_the_example_runs(
    example: ModuleType, usual_model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["effect_estimate.py", "--model", usual_model])
    example.main()
    out = capsys.readouterr().out
    assert "P(coupon causes spend)" in out
    assert "95% interval" in out or "no directed path" in out


@pytest.mark.filterwarnings("ignore")
def test_the_snippet_of_the_page_says_so_where_the_graph_has_no_path(usual_model: str) -> None:
    """With a path it is run by test_pages."""
    pytest.importorskip("dowhy")
    page = (ROOT / "docs" / "guides" / "export.md").read_text(encoding="utf-8")
    snippet = next(
        code for code in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "dowhy" in code
    )
    other = snippet.replace('["drug"], ["stay"]', '["stay"], ["drug"]')
    assert other != snippet
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(other, "guides/export.md", "exec"), {"table": load_example("hospital"), "Arrow": Arrow})
    assert said.getvalue() == "By this graph the drug has no effect on the stay.\n"


@pytest.mark.filterwarnings("ignore")
def test_econml_estimates_the_effect_with_the_adjustment_set_of_the_graph() -> None:
    dml = pytest.importorskip("econml.dml")
    table = chain_table(2.0)
    arrow = Arrow(knowledge={"tiers": [["z"], ["x"], ["y"]]}).fit(table)
    adjusted = arrow.adjustment_set_frequencies("x", "y")["adjustment_set"][0]
    assert adjusted == ("z",)
    model = dml.LinearDML(random_state=0).fit(table["y"], table["x"], X=None, W=table[list(adjusted)])
    low, high = model.const_marginal_ate_interval(alpha=0.01)
    assert low < 2.0 < high


@pytest.mark.filterwarnings("ignore")
def test_dowhy_pgmpy_and_causal_learn_take_the_graph_and_agree_on_its_edges() -> None:
    dowhy, pgmpy = pytest.importorskip("dowhy"), pytest.importorskip("pgmpy")
    pytest.importorskip("causallearn")
    table = chain_table(2.0)
    arrow = Arrow(knowledge={"required": ["z -> x", "z -> y", "x -> y"]}).fit(table)
    model = dowhy.CausalModel(table, treatment="x", outcome="y", graph=arrow.to_dowhy())
    estimand = model.identify_effect(proceed_when_unidentifiable=False)
    assert estimand.get_backdoor_variables() == ["z"]
    estimate = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
    assert abs(estimate.value - 2.0) < 0.3
    assert pgmpy.__version__
    assert set(arrow.to_pgmpy().edges()) == {("z", "x"), ("z", "y"), ("x", "y")}
    learned = arrow.to_causallearn()
    assert {(edge.get_node1().get_name(), edge.get_node2().get_name()) for edge in learned.get_graph_edges()} == {
        ("z", "x"),
        ("z", "y"),
        ("x", "y"),
    }
