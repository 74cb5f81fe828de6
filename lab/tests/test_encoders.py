"""Laws of the encoder protocol: a third encoder needs no other module; inputs are named in the configuration."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from causal_arrow.batches import TableBatch
from causal_arrow.errors import CheckpointError, ConfigurationError
from causal_arrow.network import statistics
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow_lab import load_model, save_model
from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.network import model as registry
from causal_arrow_lab.network.encoder import Encoder, EncoderOutput
from causal_arrow_lab.network.model import ArrowConfig, ArrowModel, register_encoder
from causal_arrow_lab.network.pairwise import PairwiseEncoder
from causal_arrow_lab.network.paper import PaperConfig, PaperEncoder
from causal_arrow_lab.pretraining.config import read_config
from causal_arrow_lab.pretraining.train import pretrain

SMALL = PairwiseConfig(cell_width=16, pair_width=32, stages=2, pair_blocks=1, mixing_heads=4, outer_width=4)


# --- a third encoder, which only this file knows


@dataclass(frozen=True)
class CorrelationConfig:
    """Sizes of the encoder below."""

    width: int = 8
    powers: tuple[float, ...] = (1.0, 2.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "powers", tuple(self.powers))
        if self.width < 1:
            raise ConfigurationError(f"Expected a positive width, got {self.width}.")


class Block(nn.Module):
    """What repeats."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).tanh()


class CorrelationEncoder(Encoder):
    """Correlations of each pair, through two blocks; also an opinion on hidden causes."""

    repeated_blocks: ClassVar[tuple[type[nn.Module], ...]] = (Block,)
    reads: ClassVar[frozenset[str]] = frozenset({"intervened"})

    def __init__(self, config: CorrelationConfig) -> None:
        super().__init__(config)
        self.powers = config.powers
        self.layers = nn.Sequential(nn.Linear(len(config.powers), config.width), Block(config.width))
        self.heads = nn.Sequential(Block(config.width), nn.Linear(config.width, 3))

    def forward(self, tables: TableBatch, observations_per_chunk: int | None = None) -> EncoderOutput:
        correlations = tables.values.mT @ tables.values / tables.observations
        inputs = torch.stack([correlations.abs() ** power for power in self.powers], dim=-1)
        edges, scores, confounding = self.heads(self.layers(inputs)).unbind(-1)
        return EncoderOutput(edges + edges.mT, scores.mean(dim=-1), confounding + confounding.mT)

    def bytes_per_observation(self, variables: int, device_type: str) -> int:
        return 4 * variables

    def bytes_per_pair(self, device_type: str) -> int:
        return 4 * 4 * self.config.width


@pytest.fixture
def third() -> Iterator[None]:
    known = dict(registry.ENCODERS)
    register_encoder("correlation", CorrelationConfig, CorrelationEncoder)
    yield
    registry.ENCODERS.clear()
    registry.ENCODERS.update(known)


TOML = """
[model]
encoder = "correlation"
width = 4
powers = [1.0, 3.0]
[shapes]
observations = [20, 200]
variables = [3, 6]
[batch]
slots = 1
tasks_per_slot = 8
[optimization]
steps = 6
optimizer = "adamw"
learning_rate = 0.05
precision = "float32"
compile = false
[validation]
tasks = 4
shapes = [[30, 4]]
"""


@pytest.mark.usefixtures("third")
def test_a_third_encoder_is_configured_trained_saved_loaded_and_used_by_its_name(tmp_path: Path, table: object) -> None:
    (tmp_path / "third.toml").write_text(TOML)
    config = read_config(tmp_path / "third.toml", ["model.width=6"])
    assert config.model.encoder == CorrelationConfig(6, (1.0, 3.0))
    assert ArrowConfig.from_dict(json.loads(json.dumps(config.model.to_dict()))) == config.model
    pretrain(config, tmp_path / "run", device="cpu", echo=lambda line: None)
    config = dataclasses.replace(config, optimization=dataclasses.replace(config.optimization, steps=8))
    pretrain(config, tmp_path / "run", resume=True, device="cpu", echo=lambda line: None)
    pretrain(config, tmp_path / "next", init=tmp_path / "run" / "weights", device="cpu", echo=lambda line: None)
    model = load_model(tmp_path / "next" / "weights")
    assert model.config == config.model
    answer = model(torch.randn(2, 30, 4, generator=torch.Generator().manual_seed(0)))
    assert answer.confounding_logits is not None
    assert answer.confounding_logits.shape == (2, 4, 4)

    from causal_arrow import Arrow

    found = Arrow(model=str(tmp_path / "next" / "weights"), device="cpu").fit(table)
    assert found.adjacency_matrix_.shape == (6, 6)
    other = dataclasses.replace(config, model=ArrowConfig(CorrelationConfig(7, (1.0, 3.0))))
    with pytest.raises(ConfigurationError, match="this encoder cannot grow"):
        pretrain(other, tmp_path / "wider", init=tmp_path / "run" / "weights", device="cpu", echo=lambda line: None)


@pytest.mark.usefixtures("third")
def test_a_third_encoder_is_compiled_block_by_block() -> None:
    model = ArrowModel(ArrowConfig(CorrelationConfig()))
    data = torch.randn(2, 30, 4, generator=torch.Generator().manual_seed(0))
    expected = model(data).skeleton_order.skeleton_logits
    compiled: list[int] = []

    def backend(module: torch.fx.GraphModule, inputs: object) -> object:
        compiled.append(1)
        return module.forward

    model.compile_blocks(backend=backend)  # type: ignore[arg-type]
    assert torch.allclose(model(data).skeleton_order.skeleton_logits, expected)
    assert compiled
    assert sum(module._compiled_call_impl is not None for module in model.modules()) == 2


@pytest.mark.usefixtures("third")
def test_an_encoder_is_given_what_it_reads() -> None:
    model = ArrowModel(ArrowConfig(CorrelationConfig()))
    values = torch.randn(1, 30, 4, generator=torch.Generator().manual_seed(0))
    model(TableBatch(values, intervened=values > 1))
    with pytest.raises(ConfigurationError, match="missing values, which this network cannot read"):
        model(TableBatch(values, observed=values > 0))


def test_a_model_of_an_encoder_that_is_not_registered_is_one_clear_error(third: None, tmp_path: Path) -> None:
    model = ArrowModel(ArrowConfig(CorrelationConfig()))
    save_model(model, tmp_path)
    registry.ENCODERS.pop("correlation")
    with pytest.raises(CheckpointError, match="Unknown encoder 'correlation': expected one of pairwise, paper"):
        load_model(tmp_path)
    with pytest.raises(ConfigurationError, match="CorrelationConfig belongs to no known encoder"):
        model.config.to_dict()


@pytest.mark.usefixtures("third")
def test_names_and_classes_that_do_not_fit_are_not_registered() -> None:
    register_encoder("correlation", CorrelationConfig, CorrelationEncoder)  # the same again is no harm
    with pytest.raises(ConfigurationError, match="There already is an encoder 'pairwise'"):
        register_encoder("pairwise", CorrelationConfig, CorrelationEncoder)
    with pytest.raises(ConfigurationError, match="a dataclass for the configuration of 'other'"):
        register_encoder("other", dict, CorrelationEncoder)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="derived from Encoder for 'other'"):
        register_encoder("other", CorrelationConfig, nn.Linear)  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [ArrowConfig(SMALL), ArrowConfig(PaperConfig(width=16))])
def test_encoders_say_what_memory_they_need(config: ArrowConfig) -> None:
    encoder = ArrowModel(config).encoder
    for device in ("cpu", "cuda"):
        assert encoder.bytes_per_observation(20, device) == 2 * encoder.bytes_per_observation(10, device) > 0
        assert encoder.bytes_per_pair(device) > 0


# --- channels and statistics


@torch.no_grad()
def test_an_encoder_is_fed_the_groups_of_its_configuration() -> None:
    config = dataclasses.replace(SMALL, channels=("residuals",), statistics=("sizes", "cross_moments"))
    data = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0))
    encoder = PairwiseEncoder(config)
    channels, pairs = encoder.describe(TensorBatch(data))
    assert channels.shape == (2, 40, 5, 2)
    assert pairs.shape == (2, 5, 5, 3 + 7 * 2)
    assert encoder.cell_embedding.weight.shape == (16, 4 * 2)
    assert encoder.pair_embedding.weight.shape == (32, 3 + 7 * 2)
    assert ArrowModel(ArrowConfig(config))(data).skeleton_order.skeleton_logits.isfinite().all()


@torch.no_grad()
def test_a_new_group_is_one_entry_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = statistics.ChannelGroup(1, lambda measured: [torch.ones_like(measured.values)])
    pair_number = statistics.StatisticGroup(1, 0, lambda measured: measured.correlations[0].float()[:, None] ** 2)
    monkeypatch.setitem(statistics.CHANNELS, "ones", ones)
    monkeypatch.setitem(statistics.STATISTICS, "explained", pair_number)
    larger = dataclasses.replace(SMALL, channels=(*SMALL.channels, "ones"), statistics=("explained", *SMALL.statistics))
    model = ArrowModel(ArrowConfig.from_dict(json.loads(json.dumps(ArrowConfig(larger).to_dict()))))
    assert model.config.encoder == larger
    assert PairwiseEncoder.can_grow(larger, SMALL)
    data = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0))
    channels, pairs = PairwiseEncoder(larger).describe(TensorBatch(data))
    usual_channels, usual_pairs = PairwiseEncoder(SMALL).describe(TensorBatch(data))
    assert torch.equal(channels[..., :-1], usual_channels)
    assert torch.equal(channels[..., -1], torch.ones(2, 40, 5))
    names = larger.pair_inputs()
    places = [names.index(name) for name in SMALL.pair_inputs()]
    torch.testing.assert_close(pairs[..., places], usual_pairs, atol=1e-6, rtol=1e-6)
    assert model(data).skeleton_order.skeleton_logits.isfinite().all()


def test_weights_that_name_no_groups_are_fed_those_of_0_1(tmp_path: Path) -> None:
    settings = ArrowConfig(SMALL).to_dict()
    del settings["channels"], settings["statistics"]
    config = ArrowConfig.from_dict(settings)
    assert config.encoder == SMALL
    assert SMALL.channels == ("values", "normal_scores", "residuals")
    assert SMALL.statistics == ("correlations", "score_correlations", "sizes", "cross_moments")
    assert (len(SMALL.cell_inputs()), len(SMALL.pair_inputs())) == (16, 67)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"channels": ["values", "colours"]}, "Unknown name 'colours' in channels: expected some of values, normal"),
        ({"statistics": ["moments"]}, "Unknown name 'moments' in statistics: expected some of correlations"),
        ({"channels": []}, "Expected some of values, normal_scores, residuals, .* for channels, got \\[\\]"),
        ({"channels": "values"}, "for channels, got 'values'"),
        ({"channels": [1]}, "for channels, got \\[1\\]"),
        ({"statistics": {"sizes": 1}}, "for statistics, got"),
        ({"statistics": None}, "for statistics, got None"),
        ({"channels": ["values", "values"]}, "each name once in channels"),
        ({"rounds": 10**9}, "at most 64 for rounds"),
        ({"stages": True}, "positive whole number for stages"),
    ],
)
def test_groups_and_sizes_that_do_not_exist_are_refused_in_one_sentence(settings: dict, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ArrowConfig.from_dict({"encoder": "pairwise", **settings})
    with pytest.raises(ConfigurationError, match=message):
        PairwiseConfig(**settings)


@pytest.mark.parametrize(
    ("change", "can"),
    [
        ({}, True),
        ({"stages": 3, "pair_blocks": 2}, True),
        ({"stages": 1}, False),
        ({"pair_width": 64}, False),
        ({"order_head": "pooled"}, False),
        ({"channels": ("values", "normal_scores", "residuals")}, True),
        ({"channels": ("residuals", "values", "normal_scores")}, True),
        ({"channels": ("normal_scores", "values")}, False),
        ({"channels": ("residuals", "normal_scores", "values")}, True),
        ({"statistics": ("sizes", "cross_moments", "correlations")}, True),
        ({"statistics": ("correlations", "sizes")}, False),
    ],
)
def test_a_network_grows_from_one_with_fewer_blocks_and_inputs(change: dict, can: bool) -> None:
    start = dataclasses.replace(SMALL, channels=("residuals",), statistics=("sizes", "cross_moments"))
    assert PairwiseEncoder.can_grow(dataclasses.replace(start, **change), start) is can
    assert not PairwiseEncoder.can_grow(start, PaperConfig())
    assert not PaperEncoder.can_grow(PaperConfig(), start)


def test_inputs_that_change_places_are_no_growth() -> None:
    start = dataclasses.replace(SMALL, statistics=("sizes", "correlations"))
    assert not PairwiseEncoder.can_grow(dataclasses.replace(SMALL, statistics=("correlations", "sizes")), start)


def answer_of(model: ArrowModel, data: Tensor) -> Tensor:
    with torch.inference_mode():
        order = model.eval()(data).skeleton_order
    return torch.cat([order.skeleton_logits.flatten(), order.order_scores.flatten()])


@pytest.mark.parametrize(
    "channels", [("values", "residuals", "normal_scores"), ("normal_scores", "values", "residuals")]
)
def test_new_inputs_count_for_nothing_at_first(channels: tuple[str, ...]) -> None:
    start = dataclasses.replace(SMALL, channels=("values", "residuals"), statistics=("sizes", "cross_moments"))
    before = ArrowModel(ArrowConfig(start))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in before.parameters():
            parameter.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
    statistics_after = ("score_correlations", "sizes", "correlations", "cross_moments")
    after = ArrowModel(ArrowConfig(dataclasses.replace(start, channels=channels, statistics=statistics_after)))
    weights = {name: after.grown(name, tensor, before.config) for name, tensor in before.state_dict().items()}
    after.load_state_dict(weights)
    assert after.parameter_count() > before.parameter_count()
    for shape in [(2, 30, 6), (1, 200, 20)]:
        data = torch.randn(shape, generator=generator)
        # Zeros added to a sum change nothing, unless the machine adds up in another order.
        assert (answer_of(after, data) - answer_of(before, data)).abs().max() < 1e-6
