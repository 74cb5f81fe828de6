"""A network in training: the optimizer step, and the state that a run needs to continue."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from causal_arrow.errors import CheckpointError, ConfigurationError
from causal_arrow_lab.batches import TensorBatch, Truth
from causal_arrow_lab.network.checkpoint import load_model, load_state, save_model, save_state
from causal_arrow_lab.network.devices import computing_in
from causal_arrow_lab.network.model import ENCODERS, ArrowConfig, ArrowModel, encoder_name
from causal_arrow_lab.pretraining._optimizer import AveragedWeights, build_optimizers, set_learning_rates
from causal_arrow_lab.pretraining._processes import Processes, Stopwatch, without_averaging
from causal_arrow_lab.pretraining._stream import UNLIMITED, Shape, TaskStream, fit_memory_model
from causal_arrow_lab.pretraining.config import PretrainingConfig
from causal_arrow_lab.pretraining.validation import Score, ValidationPart, validate
from causal_arrow_lab.skeleton_order import NetworkOutput

MEMORY_SHARE = 0.8  # share of the device's memory that microbatches may fill


def confounding_loss(graphs: NetworkOutput, truth: Truth) -> Tensor:
    """Cross-entropy of hidden causes, summed over pairs, divided by the number of variables, mean over tasks."""
    assert graphs.confounding_logits is not None
    logits = graphs.confounding_logits.float()
    target = torch.zeros_like(logits) if truth.confounded is None else truth.confounded.float()
    terms = torch.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return terms.triu(1).sum(dim=(1, 2)).mean() / logits.shape[-1]


class Trainer:
    """A network in training, with its optimizers, averaged weights and task stream."""

    def __init__(self, config: PretrainingConfig, processes: Processes, init: str | Path | None = None) -> None:
        if config.batch.slots % processes.count:
            raise ConfigurationError(
                f"Expected a number of slots that {processes.count} processes can share, got {config.batch.slots}."
            )
        self.config = config
        self.processes = processes
        self.device = processes.device
        self.dtype: torch.dtype = getattr(torch, config.optimization.precision)
        model, self.earlier = _initial_model(config, init)
        self.model = model.to(self.device).train()
        if config.optimization.compile:
            self.model.compile_blocks()
        self.replica = processes.replicate(self.model)
        self.optimizers = build_optimizers(self.model, config.optimization)
        self.averaged = AveragedWeights(self.model, config.optimization.averaging)
        self.stream = TaskStream(config, self.device)
        self.memory = UNLIMITED
        self.step_number = 0
        self.tasks_seen = 0

    def backward(self, tables: TensorBatch, truth: Truth, weight: float) -> Tensor:
        """Add the gradients of `weight` times the mean loss over tasks, and return the mean of NLL/p."""
        with computing_in(self.dtype, self.device):
            graphs = self.replica(tables)
        loss: Tensor = graphs.skeleton_order.composite_nll(truth.adjacency).mean() / tables.variables
        counted = loss if self.config.optimization.loss_per_variable else loss * tables.variables
        total = counted if graphs.confounding_logits is None else counted + confounding_loss(graphs, truth)
        (weight * total).backward()
        return loss.detach()

    def step(self, learning_rate_share: float, drawing: Stopwatch) -> Tensor:
        """Do one optimizer step and return the mean loss of this process's slots."""
        slots = range(self.processes.rank, self.config.batch.slots, self.processes.count)
        losses = []
        for slot in slots:
            with drawing:
                tasks = self.stream.tasks(self.step_number, slot)
            pieces = list(tasks.split(self.memory.tasks_that_fit(Shape.of(tasks.tables))))
            for number, piece in enumerate(pieces):
                last = slot == slots[-1] and number == len(pieces) - 1
                share = len(piece) / len(tasks) / len(slots)
                with contextlib.nullcontext() if last else without_averaging(self.replica):
                    losses.append(self.backward(piece.tables, piece.truth, share) * share)
            self.tasks_seen += len(tasks) * self.processes.count
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimization.clip)
        set_learning_rates(self.optimizers, learning_rate_share)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.averaged.update(self.model, self.step_number)
        self.step_number += 1
        return torch.stack(losses).sum()

    def measure_memory(self) -> None:
        """Plan microbatches by measuring the memory of a few probes on this device."""
        if self.device.type != "cuda":
            return

        def peak(shape: Shape, tasks: int) -> float:
            values = torch.randn(tasks, shape.observations, shape.variables, device=self.device)
            nothing = torch.zeros(tasks, shape.variables, shape.variables, dtype=torch.bool, device=self.device)
            for _ in range(2):  # the first pass also compiles
                torch.cuda.reset_peak_memory_stats(self.device)
                with without_averaging(self.replica):
                    self.backward(TensorBatch(values), Truth(nothing), 0.0)
            return float(torch.cuda.max_memory_allocated(self.device))

        available = MEMORY_SHARE * torch.cuda.get_device_properties(self.device).total_memory
        self.memory = fit_memory_model(peak, available)
        self.model.zero_grad(set_to_none=True)

    def validate(self, parts: list[ValidationPart]) -> list[Score]:
        """Scores of the averaged weights."""
        with _weights_of(self.model, self.averaged.tensors), computing_in(self.dtype, self.device):
            return validate(self.model.eval(), parts, lambda shape: 4 * self.memory.tasks_that_fit(shape))

    def save(self, directory: Path) -> None:
        """Save the whole state atomically."""
        tensors = {f"model.{name}": parameter.detach() for name, parameter in self.model.named_parameters()}
        tensors |= {f"averaged.{name}": tensor for name, tensor in self.averaged.tensors.items()}
        names: dict[Tensor, str] = {parameter: name for name, parameter in self.model.named_parameters()}
        for index, optimizer in enumerate(self.optimizers):
            for parameter, state in optimizer.state.items():
                for key, value in state.items():
                    tensors[f"optimizer.{index}.{key}.{names[parameter]}"] = value
        counters = {"step": self.step_number, "tasks_seen": self.tasks_seen, "earlier": self.earlier}
        save_state(directory, tensors, {**counters, "config": self.config.to_dict()})

    def load(self, directory: Path) -> None:
        """Load what `save` wrote. New blocks and inputs keep their initial values, which have no effect."""
        tensors, scalars = load_state(directory)
        try:
            start = ArrowConfig.from_dict(scalars["config"]["model"])
            self.step_number, self.tasks_seen = int(scalars["step"]), int(scalars["tasks_seen"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"The state in {directory} is not one of a training run: {error}.") from error
        _check_growth(start, self.config.model, f"state in {directory}")
        parameters = dict(self.model.named_parameters())
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            if kind == "model":
                parameters[rest].data.copy_(self.model.grown(rest, tensor, start))
            elif kind == "averaged":
                self.averaged.tensors[rest].copy_(self.model.grown(rest, tensor, start))
            else:
                index, key, parameter_name = rest.split(".", 2)
                parameter = parameters[parameter_name]
                value = self.model.grown(parameter_name, tensor, start).to(parameter.device)
                self.optimizers[int(index)].state[parameter][key] = value
        self.earlier = scalars.get("earlier", [])

    def save_weights(self, directory: Path, scores: list[Score]) -> None:
        """Save the averaged weights as a model, in float16."""
        record = {
            "steps": self.step_number,
            "tasks": self.tasks_seen,
            "task_distribution": asdict(self.config.tasks),
            "shapes": asdict(self.config.shapes),
            "earlier": self.earlier,
            "validation": [asdict(score) for score in scores],
        }
        with _weights_of(self.model, self.averaged.tensors):
            save_model(self.model, directory, {"training": record}, dtype=torch.float16)


def _initial_model(config: PretrainingConfig, init: str | Path | None) -> tuple[ArrowModel, list[dict[str, Any]]]:
    """A network with weights from the seed or from `init`, and the runs that made the latter, oldest first."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = ArrowModel(config.model)
    if init is None:
        return model, []
    start = load_model(init)
    _check_growth(start.config, config.model, f"model {init}")
    # New blocks start as identities and new inputs with weight 0: the larger network answers like the given one.
    weights = {name: model.grown(name, tensor, start.config) for name, tensor in start.state_dict().items()}
    model.load_state_dict(weights, strict=False)
    record = dict(start.extra.get("training", {}))
    record.pop("validation", None)
    earlier = record.pop("earlier", [])
    return model, [*earlier, record] if record else []


def _check_growth(start: ArrowConfig, config: ArrowConfig, origin: str) -> None:
    """Raise ConfigurationError unless the network of `config` is that of `start` or can grow from it."""
    kind = ENCODERS[encoder_name(config.encoder)].encoder
    if not kind.can_grow(config.encoder, start.encoder):
        raise ConfigurationError(f"The {origin} belongs to another [model] than the configuration's; {kind.growth}.")


@contextlib.contextmanager
def _weights_of(model: nn.Module, tensors: dict[str, Tensor]) -> Any:
    """Give the model other weights inside a block."""
    own = {name: parameter.data for name, parameter in model.named_parameters()}
    training = model.training
    try:
        for name, parameter in model.named_parameters():
            parameter.data = tensors[name]
        yield
    finally:
        for name, parameter in model.named_parameters():
            parameter.data = own[name]
        model.train(training)
