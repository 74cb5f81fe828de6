"""Many tables on real clusters of two workers, one of which is killed in the middle. `make cluster-test` runs this."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from causal_arrow import Settings, discover, discover_many
from causal_arrow.errors import ConfigurationError
from causal_arrow.many import workers
from many_tables import check_nothing_lost_or_done_twice, killing_a_worker, tables_of_many_shapes

PACKAGES = {"ray": "ray", "dask": "distributed"}


@pytest.mark.parametrize("backend", PACKAGES)
def test_a_killed_worker_of_a_cluster_costs_nothing_that_was_finished(
    backend: str, small_model_folder: Path, tmp_path: Path
) -> None:
    if importlib.util.find_spec(PACKAGES[backend]) is None:
        pytest.skip(f"{backend} is not installed: pip install causal-arrow[{backend}]")
    output, tables = tmp_path / "out", tables_of_many_shapes(tmp_path / "tables")
    settings = Settings(str(small_model_folder))
    with killing_a_worker(output) as fate:
        answers = discover_many(tables, output, settings, backend=backend, jobs=2)
    check_nothing_lost_or_done_twice(output, tables, fate, answers)
    alone = discover(tables / "t07.csv", settings).answer
    assert abs(answers["t07"].edge_probabilities - alone.edge_probabilities).max() < 1e-5


@pytest.mark.parametrize(("backend", "address"), [("dask", "tcp://127.0.0.1:1"), ("dask", "nonsense://x")])
def test_a_cluster_that_cannot_be_reached_is_told_in_a_sentence(
    backend: str, address: str, small_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "CONNECT_SECONDS", 1)
    if importlib.util.find_spec(PACKAGES[backend]) is None:
        pytest.skip(f"{backend} is not installed: pip install causal-arrow[{backend}]")
    tables = tables_of_many_shapes(tmp_path / "tables", 2)
    with pytest.raises(ConfigurationError, match="Cannot reach the Dask cluster at"):
        discover_many(tables, tmp_path / "out", Settings(str(small_model_folder)), backend=backend, cluster=address)
