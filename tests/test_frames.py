"""Data frames of every library give the same answer, in frames of that library."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, discover, load_example, read_table
from causal_arrow.errors import ConfigurationError
from causal_arrow.tables.frames import in_library, library_of


def from_polars(frame: pd.DataFrame) -> Any:
    polars = importlib.import_module("polars")
    columns = {}
    for name in frame:
        cells = [None if pd.isna(cell) else cell for cell in frame[name].tolist()]
        levels = polars.Enum(list(frame[name].cat.categories)) if frame[name].dtype == "category" else None
        columns[name] = polars.Series(cells, dtype=levels)
    return polars.DataFrame(columns)


def from_pyarrow(frame: pd.DataFrame) -> Any:
    return importlib.import_module("pyarrow").Table.from_pandas(frame)


LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": from_polars,
    "pyarrow": from_pyarrow,
    "duckdb": lambda frame: importlib.import_module("duckdb").from_df(frame),
    "modin": lambda frame: importlib.import_module("modin.pandas").DataFrame(frame),
    "cudf": lambda frame: importlib.import_module("cudf").from_pandas(frame),
}


def made_by(library: str, frame: pd.DataFrame) -> Any:
    pytest.importorskip(library)
    return LIBRARIES[library](frame)


def as_pandas(frame: Any, rows: str | None = None) -> pd.DataFrame:
    """A frame of an answer, as pandas; `rows` is its column of row labels."""
    plain = frame.df() if hasattr(frame, "df") else importlib.import_module("narwhals").from_native(frame).to_pandas()
    return plain if rows is None else plain.set_index(rows)


def everything() -> pd.DataFrame:
    """Numbers with gaps, words, truth values, levels with an order, whole numbers."""
    draw = np.random.default_rng(0)
    dose = draw.normal(size=200)
    response = dose + draw.normal(size=200)
    return pd.DataFrame(
        {
            "dose": np.where(draw.random(200) < 0.05, np.nan, dose),
            "response": response,
            "site": draw.choice(["north", "south", "west"], 200),
            "woman": draw.random(200) < 0.5,
            "stage": pd.Categorical.from_codes(
                np.digitize(response, [-1, 1]), categories=["early", "middle", "late"], ordered=True
            ),
            "visits": draw.poisson(3, 200),
        }
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_each_library_is_the_same_table(library: str) -> None:
    frame = everything()
    read, same = read_table(frame), read_table(made_by(library, frame))
    assert same.columns == read.columns
    assert np.array_equal(same.values, read.values, equal_nan=True)
    assert [finding.message for finding in same.findings] == [finding.message for finding in read.findings]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_each_library_gets_the_same_answer_in_frames_of_that_library(library: str) -> None:
    frame = everything()
    source = made_by(library, frame)
    usual, found = discover(frame), discover(source)
    assert np.array_equal(found.answer.edge_probabilities, usual.answer.edge_probabilities)
    assert {library_of(each) for each in (found.edges, found.graph, found.order_scores)} == {library}
    assert as_pandas(found.edges)["source"].tolist() == usual.edges["source"].tolist()
    for mine, plain in ((found.graph, usual.graph), (found.probabilities, usual.probabilities)):
        assert np.array_equal(as_pandas(mine, "variable").to_numpy(), plain.to_numpy())
        assert as_pandas(mine, "variable").index.tolist() == plain.index.tolist()
    sets = as_pandas(found.parent_set_frequencies("response", 50))
    assert sets["frequency"].tolist() == usual.parent_set_frequencies("response", 50)["frequency"].tolist()
    assert library_of(found.refine(roots=["site"]).graph) == library


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_the_results_of_every_question_have_frames_of_that_library(library: str) -> None:
    frame = load_example("hospital")
    found = discover(frame if library == "pandas" else made_by(library, frame))
    usual = discover(frame)

    def frames(found: Any) -> dict[str, Any]:
        effect, test = found.effect("drug", "stay", n_graphs=50), found.falsify(permutations=5)
        return {
            "sets": effect.by_adjustment_set,
            "groups": effect.by("ward"),
            "effects": found.effects("stay", n_graphs=50).to_frame(),
            "plan": found.next_experiment("stay", n_graphs=50).to_frame(),
            "stability": found.stability(n_resamples=2, progress=False).to_frame(),
            "contradictions": test.contradictions,
            "unsupported": test.unsupported_edges,
        }

    for (name, mine), plain in zip(frames(found).items(), frames(usual).values(), strict=True):
        assert library_of(mine) == library, name
        rows = mine if library == "pandas" else as_pandas(mine)
        assert (list(rows.columns), len(rows)) == (list(plain.columns), len(plain))
        for column in plain.select_dtypes("float"):
            assert np.allclose(rows[column].astype(float), plain[column], equal_nan=True)
    assert "robustness_value" in str(found.effect("drug", "stay", n_graphs=50).to_dict()["by_adjustment_set"][0])


def test_a_lazy_polars_frame_is_collected() -> None:
    lazy = made_by("polars", everything()).lazy()
    assert read_table(lazy).observations == 200
    assert library_of(discover(lazy).edges) == "polars"


def test_a_series_comes_back_in_its_library() -> None:
    polars = pytest.importorskip("polars")
    days = load_example("greenhouse")
    found = discover(polars.DataFrame(days.to_dict("list")), lags=1, time="day")
    usual = discover(days, lags=1, time="day")
    assert library_of(found.edges) == library_of(found.graph) == "polars"
    assert found.window_graph.columns[:2] == ["cause", "lag"]
    assert library_of(found.next_experiment(n_graphs=50).to_frame()) == "polars"
    assert library_of(found.response("watering", "soil", steps=1, n_graphs=5).to_frame()) == "polars"
    assert library_of(found.responses("growth", steps=1, n_graphs=5).to_frame()) == "polars"
    assert np.array_equal(found.window_graph[:, 2:].to_numpy(), usual.window_graph.to_numpy())


def test_the_library_can_be_chosen_and_is_saved(tmp_path: Any) -> None:
    pytest.importorskip("polars")
    found = discover(everything(), frames="polars")
    assert library_of(found.edges) == "polars"
    found.save(tmp_path / "found.causal")
    assert library_of(type(found).load(tmp_path / "found.causal").edges) == "polars"
    assert library_of(Arrow(frames="polars").fit(everything()).adjacency_matrix_) == "polars"
    with pytest.raises(ConfigurationError, match="Expected frames to be one of auto, pandas, polars"):
        discover(everything(), frames="excel")


def test_a_variable_may_be_called_like_the_column_of_names() -> None:
    pytest.importorskip("polars")
    square = pd.DataFrame([[0, 1], [0, 0]], index=["variable", "b"], columns=["variable", "b"])
    assert in_library(square, "polars", "variable").columns == ["variable_", "variable", "b"]


@pytest.mark.parametrize("source", ["pandas.DataFrame({'a': [1.0]})", "pandas.array([1.0])", "{'a': [1.0]}", "'a.csv'"])
def test_narwhals_is_imported_for_frames_of_other_libraries_only(source: str) -> None:
    program = (
        "import sys, pandas; from causal_arrow.tables.frames import library_of; "
        f"assert library_of({source}) == 'pandas'; print('narwhals' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_scikit_learn_routes_labels_and_frames_through_a_pipeline(library: str) -> None:
    """`set_output` decides in which library a table arrives, metadata routing brings the labels of its rows."""
    from sklearn import config_context
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pytest.importorskip(library)
    frame = everything()[["response", "visits"]].assign(third=np.random.default_rng(1).normal(size=200))
    sites = np.repeat(["north", "south"], 100)
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_output(transform=library)
        pipeline = make_pipeline(scaler, Arrow().set_fit_request(environments=True)).fit(frame, environments=sites)
        routed = pipeline[-1]
    assert library_of(routed.adjacency_matrix_) == library
    assert routed.answer_.environment == "environment"
    scaled = pd.DataFrame(StandardScaler().fit_transform(frame), columns=frame.columns)
    direct = Arrow().fit(scaled, environments=sites)
    assert np.allclose(routed.answer_.edge_probabilities, direct.answer_.edge_probabilities)
