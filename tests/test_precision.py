"""Laws of precision and memory: what is chosen, what it changes, and that too little memory is told at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from causal_arrow import Arrow, storage
from causal_arrow.discovery import workload
from causal_arrow.discovery.inference import ready_model
from causal_arrow.discovery.pipeline import Settings, discover
from causal_arrow.errors import COMMAND_LINE, ConfigurationError, TableError
from causal_arrow.network import precision
from causal_arrow.network.encoders.pairwise import PairwiseConfig, PairwiseEncoder
from causal_arrow.network.precision import LARGE, PRECISIONS, processor_gains, resolve_precision

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def table(observations: int = 200, variables: int = 12) -> np.ndarray:
    random = np.random.default_rng(0)
    noise = random.standard_normal((observations, variables))
    return noise @ (np.eye(variables) + np.triu(random.uniform(-1, 1, (variables, variables)), 1))


def test_auto_is_float32_for_usual_tables_and_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "processor_gains", lambda: True)
    assert resolve_precision("auto", CPU, LARGE / 2) == torch.float32
    assert resolve_precision("auto", CPU, 2 * LARGE) == torch.bfloat16
    assert resolve_precision("auto", CUDA, 2 * LARGE) == torch.float32
    monkeypatch.setattr(precision, "processor_gains", lambda: False)
    assert resolve_precision("auto", CPU, 2 * LARGE) == torch.float32


@pytest.mark.parametrize("name", PRECISIONS[1:])
def test_a_precision_that_is_named_is_taken(name: str) -> None:
    for device in (CPU, CUDA):
        for operations in (1.0, 10 * LARGE):
            assert str(resolve_precision(name, device, operations)) == f"torch.{name}"


def test_a_processor_without_instructions_for_bfloat16_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_has_instructions", lambda: False)
    processor_gains.cache_clear()
    assert not processor_gains()
    processor_gains.cache_clear()


def test_a_processor_that_is_slower_in_bfloat16_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_has_instructions", lambda: True)
    monkeypatch.setattr(precision, "_seconds", lambda dtype: 2.0 if dtype == torch.bfloat16 else 1.0)
    processor_gains.cache_clear()
    assert not processor_gains()
    processor_gains.cache_clear()


def test_bfloat16_hardly_moves_a_probability() -> None:
    exact, rough = (Arrow(precision=name).fit(table()).answer_ for name in ("float32", "bfloat16"))
    moved = np.abs(exact.edge_probabilities - rough.edge_probabilities)
    assert 0 < moved.max() < 0.01
    assert moved.mean() < 0.001


def test_what_is_no_precision_is_told() -> None:
    with pytest.raises(ConfigurationError, match="precision to be one of auto, float32, bfloat16, got 'half'"):
        Arrow(precision="half").fit(table())


def test_operations_count_every_matrix_product() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from causal_arrow.batches import TableBatch

    encoder = PairwiseEncoder(PairwiseConfig(cell_width=16, pair_width=32, stages=2, mixing_heads=4, outer_width=4))
    with FlopCounterMode(display=False) as counter:  # with gradients: it does not count products in place
        encoder(TableBatch(torch.randn(1, 60, 20)))
    counted = counter.get_total_flops()
    assert 0.7 * counted < encoder.operations(60, 20) < counted  # statistics, embeddings and heads are left out


# Memory


def test_too_little_memory_is_told_before_the_network_starts(
    small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_available", lambda: 10_000)
    with pytest.raises(
        TableError, match=r"needs too much memory: 12 variables take up to .* and 0.0 GB are free"
    ) as told:
        discover(table(), Settings(model=small_model_folder))
    assert "--columns" in told.value.worded(COMMAND_LINE)
    assert "read_table(table, columns=[...])" in str(told.value)


def test_the_workload_is_told_before_the_network_starts(small_model_folder: Path) -> None:
    heard: list[workload.Workload] = []
    discover(table(), Settings(model=small_model_folder), before=heard.append)
    assert [(work.observations, work.variables) for work in heard] == [(200, 12)]
    assert heard[0].memory > 0


def test_memory_grows_with_pairs_and_is_bounded_in_observations() -> None:
    model = ready_model("arrow-base", "cpu")
    wide = [workload.workload(model, 100, variables, None).memory for variables in (500, 1000)]
    assert 3.5 < wide[1] / wide[0] < 4.0
    long = [workload.workload(model, observations, 20, None).memory for observations in (10**6, 10**7)]
    assert long[0] == long[1] < 3e9


def test_a_thousand_variables_fit_into_ten_gigabytes() -> None:
    assert workload.workload(ready_model("arrow-base", "cpu"), 1000, 1000, None).memory < 10e9


def test_a_container_has_less_memory_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, use = tmp_path / "max", tmp_path / "current"
    monkeypatch.setattr(storage, "LIMIT_FILES", (str(limit),))
    monkeypatch.setattr(storage, "USE_FILES", (str(use),))
    monkeypatch.setattr(storage, "_available", lambda: 9000)
    assert workload.free_memory(CPU) == 9000
    limit.write_text("5000\n")
    use.write_text("2000\n")
    assert workload.free_memory(CPU) == 3000
    limit.write_text("max\n")
    assert workload.free_memory(CPU) == 9000
