"""Laws of the model: units never matter, a table is a table however it comes, answers of 0.1 stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from causal_arrow.batches import TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.network.bundled import bundled_models
from causal_arrow.network.checkpoint import load_model
from causal_arrow.network.devices import resolve_device
from causal_arrow.network.model import ArrowModel, standardize

GOLDEN = Path(__file__).parent / "golden_answers.json"
"""Two tables, and what networks answered for them. arrow-strict has the form of version 0.1, whose files still load."""


def tables(tasks: int = 2, observations: int = 60, variables: int = 5, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(tasks, observations, variables, generator=generator, dtype=dtype)
    return noise @ torch.randn(variables, variables, generator=generator, dtype=dtype) + 3


# --- standardization


def test_standardized_columns_have_mean_zero_and_standard_deviation_one() -> None:
    for dtype in (torch.float32, torch.float64):
        standardized = standardize(tables(dtype=dtype))
        assert standardized.dtype == torch.float32
        assert standardized.mean(dim=1).abs().max() < 1e-6
        assert (standardized.std(dim=1) - 1).abs().max() < 1e-6


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e-20, 1e-8, 1e-3, 1e3, 1e8, 1e20, 1e150, 1e300])
def test_the_units_of_a_column_do_not_matter(unit: float) -> None:
    values = tables()
    assert (standardize(values * unit) - standardize(values)).abs().max() < 1e-6


@pytest.mark.parametrize("unit", [1e-30, 1e-8, 1e8, 1e30])
def test_the_units_of_a_column_do_not_matter_in_single_precision(unit: float) -> None:
    values = tables(dtype=torch.float32)
    assert (standardize(values * unit) - standardize(values)).abs().max() < 1e-5


@pytest.mark.parametrize("power", [-400, -100, -27, -1, 1, 60, 500, 900])
def test_a_power_of_two_as_unit_changes_no_bit(power: int) -> None:
    values = tables()
    assert torch.equal(standardize(torch.ldexp(values, torch.tensor(power))), standardize(values))


@pytest.mark.parametrize("constant", [0.0, 41.0, -0.1, 1e-30, 1e30, 1 / 3, 1e-300, 1e150])
def test_a_constant_becomes_zeros(constant: float) -> None:
    for dtype in (torch.float32, torch.float64) if 1e-38 < abs(constant) < 1e38 else (torch.float64,):
        values = tables(observations=1234, dtype=dtype)
        values[:, :, 2] = constant
        standardized = standardize(values)
        assert not standardized[:, :, 2].any()
        assert standardized.isfinite().all()


def test_a_small_spread_beside_a_large_mean_is_not_taken_for_a_constant() -> None:
    values = tables()
    assert (standardize(values + 1e6) - standardize(values)).abs().max() < 1e-5
    assert (standardize(1e-9 * values + 1.0) - standardize(values)).abs().max() < 1e-5


@torch.no_grad()
def test_a_model_answers_alike_in_all_units(small_model: ArrowModel) -> None:
    values = tables()
    units = torch.tensor([1e-8, 1e8, 1.0, 1e150, 1e-3], dtype=torch.float64)
    usual, other = small_model(values).skeleton_order, small_model(values * units).skeleton_order
    torch.testing.assert_close(other.skeleton_logits, usual.skeleton_logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(other.order_scores, usual.order_scores, atol=1e-4, rtol=0)


# --- what a model takes and gives


@torch.no_grad()
def test_bare_values_are_complete_tables_of_numbers(small_model: ArrowModel) -> None:
    values = tables()
    everything = torch.ones(values.shape, dtype=torch.bool)
    nothing = torch.zeros(values.shape, dtype=torch.bool)
    numbers = torch.zeros(len(values), values.shape[2], dtype=torch.long)
    expected = small_model(values)
    for batch in (TableBatch(values), TableBatch(values, everything, nothing, numbers)):
        answer = small_model(batch)
        assert torch.equal(answer.skeleton_order.skeleton_logits, expected.skeleton_order.skeleton_logits)
    assert expected.confounding_logits is None
    assert expected.variables == 5


@pytest.mark.parametrize(
    ("part", "message"),
    [("observed", "missing values"), ("intervened", "values set by experiments"), ("levels", "categories")],
)
def test_what_an_encoder_cannot_read_is_refused(small_model: ArrowModel, part: str, message: str) -> None:
    values = tables()
    marks = torch.zeros(values.shape if part != "levels" else values.shape[::2], dtype=torch.bool)
    marks[0, 0] = True
    with pytest.raises(ConfigurationError, match=f"{message}, which the pairwise encoder cannot read"):
        small_model(TableBatch(values, **{part: ~marks if part == "observed" else marks}))


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_chunk_of_no_observations_is_refused(small_model: ArrowModel, chunk: int) -> None:
    with pytest.raises(ConfigurationError, match=f"observations_per_chunk must be at least 1, got {chunk}"):
        small_model(tables(), chunk)


@pytest.mark.parametrize("name", ["arrow-base", "arrow-strict"])
@torch.no_grad()
def test_bundled_networks_answer_as_they_did(name: str) -> None:
    if name not in bundled_models():
        pytest.skip("a checkout without weights")
    model = load_model(name)
    for case in json.loads(GOLDEN.read_text(encoding="utf-8")):
        answer = model(torch.tensor(case["table"], dtype=torch.float64)[None])[0].skeleton_order
        off_diagonal = ~torch.eye(answer.order_scores.shape[-1], dtype=torch.bool)
        expected = torch.tensor(case[name]["skeleton_logits"])
        assert (answer.skeleton_logits - expected)[off_diagonal].abs().max() < 1e-3
        assert (answer.order_scores - torch.tensor(case[name]["order_scores"])).abs().max() < 1e-3
        assert expected[off_diagonal].std() > 1


# --- devices


def test_devices_go_by_their_names() -> None:
    assert resolve_device("cpu") == resolve_device(torch.device("cpu")) == torch.device("cpu")
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    "device", ["tpu", "gpu", "", "cuda:x", "cuda:-1", "cpu cpu", "\udce9", "a\0b", 5, None, ["cpu"]]
)
def test_a_device_that_is_none_is_refused(device: object) -> None:
    with pytest.raises(ConfigurationError, match="expected auto, cpu, cuda or cuda:1"):
        resolve_device(device)  # type: ignore[arg-type]


def test_a_device_that_cannot_be_used_here_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="The network runs on cpu and cuda"):
        resolve_device("meta")
    with pytest.raises(ConfigurationError, match="There is no "):
        resolve_device("cuda:99")
