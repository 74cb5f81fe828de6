"""The training loop: draw tasks, accumulate gradients, step, log, save; and stop on time.

A run lives in a folder:
    state.json, state-*.safetensors   everything needed to go on as if it had not stopped
    weights/                          the averaged weights, a model that `load_model` reads
    log.jsonl                         what happened, a record a line
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from causal_arrow.errors import ConfigurationError, TrainingError
from causal_arrow.network.checkpoint import load_model, load_state, read_extra, replace_file, save_model, save_state
from causal_arrow.network.encoders.pairwise import PairwiseConfig
from causal_arrow.network.model import ArrowConfig, ArrowModel
from causal_arrow.pretraining.clock import Clock, Stopwatch
from causal_arrow.pretraining.config import PretrainingConfig
from causal_arrow.pretraining.optimizer import AveragedWeights, build_optimizers, schedule, set_learning_rates
from causal_arrow.pretraining.processes import Processes, joined, without_averaging
from causal_arrow.pretraining.shapes import UNLIMITED, MemoryModel, Shape, fit_memory_model
from causal_arrow.pretraining.stream import Tasks, TaskStream
from causal_arrow.pretraining.validation import (
    Score,
    ValidationPart,
    draw_validation,
    format_scores,
    mean_score,
    validate,
)

EXPLOSION = 20.0
"""A loss this many times the usual one ends the run."""

MEMORY_SHARE = 0.8
"""Of the device's memory, what microbatches may fill."""

PRECISIONS = {"bfloat16": torch.bfloat16, "float32": torch.float32}


class Trainer:
    """A network in training, and all that must be saved to go on with it."""

    def __init__(self, config: PretrainingConfig, processes: Processes, init: str | Path | None = None) -> None:
        if config.batch.slots % processes.count:
            raise ConfigurationError(
                f"Expected a number of slots that {processes.count} processes can share, got {config.batch.slots}."
            )
        if config.optimization.precision not in PRECISIONS:
            raise ConfigurationError(
                f"Unknown precision {config.optimization.precision!r}: expected one of {', '.join(PRECISIONS)}."
            )
        self.config = config
        self.processes = processes
        self.device = processes.device
        self.model = _initial_model(config, init).to(self.device).train()
        if config.optimization.compile:
            self.model.compile_blocks()
        self.replica = processes.replicate(self.model)
        self.optimizers = build_optimizers(self.model, config.optimization)
        self.averaged = AveragedWeights(self.model, config.optimization.averaging)
        self.stream = TaskStream(config, self.device)
        self.memory = UNLIMITED
        self.step_number = 0
        self.tasks_seen = 0
        self.earlier = _earlier_training(init)

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """The arithmetic of forward passes."""
        dtype = PRECISIONS[self.config.optimization.precision]
        return torch.autocast(self.device.type, dtype, enabled=dtype != torch.float32)

    def backward(self, tasks: Tasks, weight: float) -> Tensor:
        """Gradients of `weight` times the mean over tasks of NLL/p, added up; the loss itself is returned."""
        with self.precision():
            graphs = self.replica(tasks.data)
        loss: Tensor = graphs.composite_nll(tasks.adjacency).mean() / tasks.shape.variables
        (weight * loss).backward()
        return loss.detach()

    def step(self, learning_rate_share: float, drawing: Stopwatch) -> Tensor:
        """One optimizer step; the mean loss of this process's slots."""
        slots = range(self.processes.rank, self.config.batch.slots, self.processes.count)
        losses = []
        for slot in slots:
            with drawing:
                tasks = self.stream.tasks(self.step_number, slot)
            pieces = list(tasks.split(self.memory.tasks_that_fit(tasks.shape)))
            for number, piece in enumerate(pieces):
                last = slot == slots[-1] and number == len(pieces) - 1
                share = len(piece) / len(tasks) / len(slots)
                with contextlib.nullcontext() if last else without_averaging(self.replica):
                    losses.append(self.backward(piece, share) * share)
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
        """Plan microbatches from the memory that a few probes take on this device."""
        if self.device.type != "cuda":
            return

        def peak(shape: Shape, tasks: int) -> float:
            probe = Tasks(
                torch.randn(tasks, shape.observations, shape.variables, device=self.device),
                torch.zeros(tasks, shape.variables, shape.variables, dtype=torch.bool, device=self.device),
            )
            for _ in range(2):  # the first pass also compiles
                torch.cuda.reset_peak_memory_stats(self.device)
                with without_averaging(self.replica):
                    self.backward(probe, 0.0)
            return float(torch.cuda.max_memory_allocated(self.device))

        available = MEMORY_SHARE * torch.cuda.get_device_properties(self.device).total_memory
        self.memory = fit_memory_model(peak, available)
        self.model.zero_grad(set_to_none=True)

    def validate(self, parts: list[ValidationPart]) -> list[Score]:
        """Scores of the averaged weights."""
        with _weights_of(self.model, self.averaged.tensors), self.precision():
            return validate(self.model.eval(), parts, lambda shape: 4 * self.memory.tasks_that_fit(shape))

    def save(self, directory: Path) -> None:
        """Everything, in one step."""
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
        """Go on from what `save` wrote. Blocks that it does not know stay as they are, identities."""
        tensors, scalars = load_state(directory)
        _check_growth(ArrowConfig.from_dict(scalars["config"]["model"]), self.config.model, f"state in {directory}")
        parameters = dict(self.model.named_parameters())
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            if kind == "model":
                parameters[rest].data.copy_(tensor)
            elif kind == "averaged":
                self.averaged.tensors[rest].copy_(tensor)
            else:
                index, key, parameter_name = rest.split(".", 2)
                parameter = parameters[parameter_name]
                self.optimizers[int(index)].state[parameter][key] = tensor.to(parameter.device)
        self.step_number, self.tasks_seen = scalars["step"], scalars["tasks_seen"]
        self.earlier = scalars.get("earlier", [])

    def save_weights(self, directory: Path, scores: list[Score]) -> None:
        """The averaged weights as a model of their own, in half the bytes."""
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


def pretrain(
    config: PretrainingConfig,
    directory: Path,
    *,
    resume: bool = False,
    init: str | Path | None = None,
    minutes: float | None = None,
    decay_minutes: float = 0.0,
    compiler_cache: Path | None = None,
    device: str = "auto",
    echo: Callable[[str], None] = print,
) -> list[Score]:
    """Train until the configured steps are done or `minutes` have passed; the last validation scores.

    With `decay_minutes` the learning rate falls to zero over the last of the minutes. The state that is kept is the one
    before the fall, so that the next run goes on from there; the weights are those after it. `compiler_cache` is a file
    that spares a fresh machine the time to compile: read at the start if it is there, written at the end.
    """
    clock = Clock(minutes)
    if compiler_cache is not None and compiler_cache.exists():
        # Holds compiled code, which runs when it is used: only ever a file of one's own, named on purpose.
        torch.compiler.load_cache_artifacts(compiler_cache.read_bytes())
    with joined(device) as processes:
        trainer = Trainer(config, processes, init)
        if resume:
            trainer.load(directory)
        elif processes.is_first and (directory / "state.json").exists():
            raise ConfigurationError(
                f"{directory} already holds a run: continue it with --resume, or name another folder."
            )
        say, write = _voices(directory, processes.is_first, echo)
        parts = draw_validation(config.validation, processes.device) if processes.is_first else []
        say(f"{trainer.model.parameter_count():,} parameters on {_describe(processes)}")
        trainer.measure_memory()
        if trainer.memory is not UNLIMITED:
            say(_describe_memory(trainer.memory))
        write(
            {
                "event": "start",
                "step": trainer.step_number,
                "config": config.to_dict(),
                "parameters": trainer.model.parameter_count(),
                "memory": asdict(trainer.memory),
            }
        )
        scores = _loop(trainer, directory, clock, decay_minutes, parts, say, write)
        if compiler_cache is not None and processes.is_first:
            _save_compiler_cache(compiler_cache)
        say(format_scores(scores) if scores else "")
        processes.wait()
        return scores


def _loop(
    trainer: Trainer,
    directory: Path,
    clock: Clock,
    decay_minutes: float,
    parts: list[ValidationPart],
    say: Callable[[str], None],
    write: Callable[[dict[str, Any]], None],
) -> list[Score]:
    """Steps until the end; the scores at the end."""
    config, processes = trainer.config, trainer.processes
    drawing = Stopwatch(trainer.device)
    losses: list[Tensor] = []
    usual_loss: float | None = None
    scores: list[Score] = []
    decaying = False
    ending = Stopwatch(trainer.device)  # how long it takes to validate and save: the time to leave at the end
    rehearsed = math.isinf(clock.seconds_left())  # whether that is known; a run with a clock finds out in good time
    began, tasks_before = time.perf_counter(), trainer.tasks_seen

    def check_losses() -> float | None:
        """The mean loss since the last check; ends the run if it is not a number or has exploded."""
        nonlocal usual_loss
        if not losses:
            return usual_loss
        mean = float(processes.mean(torch.stack(losses).mean()).item())
        losses.clear()
        if not mean < EXPLOSION * (usual_loss or float("inf")):
            raise TrainingError(
                f"The loss became {mean:.4g} before step {trainer.step_number}. The state saved last is kept in "
                f"{directory}; resume from it with a smaller learning rate."
            )
        usual_loss = mean if usual_loss is None else 0.9 * usual_loss + 0.1 * mean
        return mean

    def finish_part() -> None:
        nonlocal scores, rehearsed
        rehearsed = True
        check_losses()
        with ending:
            if processes.is_first:
                scores = trainer.validate(parts)
                if not decaying:
                    trainer.save(directory)
                trainer.save_weights(directory / "weights", scores)
        if processes.is_first:
            mean = mean_score(scores)
            write(
                {
                    "event": "validation",
                    "step": trainer.step_number,
                    "seconds": clock.seconds_spent(),
                    "tasks": trainer.tasks_seen,
                    "mean": mean,
                    "scores": [asdict(score) for score in scores],
                }
            )
            say(
                f"step {trainer.step_number:>7,}  validation  NLL/p {mean['nll']:.4f}  nSHD {mean['nshd']:.3f}  "
                f"F1 {mean['f1']:.3f}  AP {mean['ap']:.3f}"
            )

    while trainer.step_number < config.optimization.steps:
        left = clock.seconds_left() - clock.reserve(ending.longest())
        if not rehearsed and processes.any(left > 0 and (clock.is_half_over() or left < 60 * decay_minutes)):
            finish_part()
            continue
        if decay_minutes and not decaying and processes.any(left < 60 * decay_minutes):
            check_losses()
            if processes.is_first:
                trainer.save(directory)
            decaying = True
        if processes.any(left < 0):
            break
        fall = max(0.0, min(1.0, left / (60 * decay_minutes))) if decaying else 1.0
        losses.append(trainer.step(schedule(config.optimization, trainer.step_number) * fall, drawing))
        step = trainer.step_number
        if step % config.log.every_steps == 0:
            loss = check_losses()
            seconds = time.perf_counter() - began
            record = {
                "event": "step",
                "step": step,
                "seconds": clock.seconds_spent(),
                "tasks": trainer.tasks_seen,
                "loss": loss,
                "tasks_per_second": (trainer.tasks_seen - tasks_before) / seconds,
                "drawing_share": drawing.total() / seconds,
                "memory_gib": _peak_memory(trainer.device),
                "learning_rate_share": schedule(config.optimization, step) * fall,
            }
            began, tasks_before = time.perf_counter(), trainer.tasks_seen
            drawing.reset()
            write(record)
            say(
                f"step {step:>7,}  loss {loss:.4f}  {record['tasks_per_second']:>7,.0f} tasks/s  "
                f"drawing {record['drawing_share']:>4.0%}  {record['memory_gib']:.1f} GiB  "
                f"{clock.seconds_spent():.0f} s"
            )
        if step % config.validation.every_steps == 0:
            finish_part()
        elif step % config.log.save_every_steps == 0 and not decaying:
            check_losses()
            if processes.is_first:
                trainer.save(directory)
    finish_part()
    return scores


def _initial_model(config: PretrainingConfig, init: str | Path | None) -> ArrowModel:
    """A network with fresh weights, the same for the same seed, or with those of `init`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = ArrowModel(config.model)
    if init is not None:
        start = load_model(init)
        _check_growth(start.config, config.model, f"model {init}")
        # Blocks that the weights do not know start as identities: the deeper network answers as the given one does.
        model.load_state_dict(start.state_dict(), strict=False)
    return model


def _earlier_training(init: str | Path | None) -> list[dict[str, Any]]:
    """The runs that the weights of `init` come from, oldest first, without their validation."""
    record = {} if init is None else dict(read_extra(init).get("training", {}))
    if not record:
        return []
    earlier = record.pop("earlier", [])
    record.pop("validation", None)
    return [*earlier, record]


def _check_growth(start: ArrowConfig, config: ArrowConfig, origin: str) -> None:
    """The network of `config` is that of `start`, or that with blocks added at the ends of its lists, or an error."""
    ours, grown = config.encoder, start.encoder
    if isinstance(ours, PairwiseConfig) and isinstance(grown, PairwiseConfig):
        stages, pair_blocks = max(grown.stages, ours.stages), max(grown.pair_blocks, ours.pair_blocks)
        grown = dataclasses.replace(grown, stages=stages, pair_blocks=pair_blocks)
    if ours != grown:
        raise ConfigurationError(
            f"The {origin} belongs to another [model] than the configuration's; only stages and pair_blocks of the "
            "pairwise encoder may grow."
        )


def _save_compiler_cache(path: Path) -> None:
    """Write what has been compiled, if anything was."""
    artifacts = torch.compiler.save_cache_artifacts()
    if artifacts is not None:
        replace_file(path, artifacts[0])


@contextlib.contextmanager
def _weights_of(model: nn.Module, tensors: dict[str, Tensor]) -> Any:
    """The model with other weights, put back afterwards."""
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


def _voices(
    directory: Path, is_first: bool, echo: Callable[[str], None]
) -> tuple[Callable[[str], None], Callable[[dict[str, Any]], None]]:
    """A voice for people and one for the log; both silent on all processes but the first."""
    if not is_first:
        return (lambda line: None), (lambda record: None)
    directory.mkdir(parents=True, exist_ok=True)

    def write(record: dict[str, Any]) -> None:
        with open(directory / "log.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    return echo, write


def _describe(processes: Processes) -> str:
    device = processes.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return f"{processes.count} × {name}"


def _describe_memory(memory: MemoryModel) -> str:
    return (
        f"memory: {memory.fixed / 2**30:.2f} GiB + {memory.per_cell / 2**10:.1f} KiB a cell + "
        f"{memory.per_pair / 2**10:.1f} KiB a pair of variables, of {memory.available / 2**30:.0f} GiB"
    )


def _peak_memory(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
