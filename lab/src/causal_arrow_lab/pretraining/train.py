"""The training loop: draw tasks, accumulate gradients, step, log, save, and stop on time.

The folder of a run:
    state.json, state-*.safetensors   everything needed to continue as if the run had not stopped
    weights/                          the averaged weights, a model for `load_model`
    log.jsonl                         one record per line
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from causal_arrow.errors import ConfigurationError, TrainingError
from causal_arrow.output import claimed_folder, make_folder, replace_file
from causal_arrow_lab.network.checkpoint import STATE_FILE
from causal_arrow_lab.pretraining._optimizer import schedule
from causal_arrow_lab.pretraining._processes import Decision, Pace, Processes, Stopwatch, joined
from causal_arrow_lab.pretraining._stream import UNLIMITED
from causal_arrow_lab.pretraining._trainer import Trainer
from causal_arrow_lab.pretraining.config import PretrainingConfig
from causal_arrow_lab.pretraining.validation import Score, draw_validation, format_scores, mean_score

EXPLOSION = 20.0  # a loss this many times the average ends the run


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
    """Train until the configured steps are done or `minutes` have passed, and return the last validation scores.

    With `decay_minutes` the learning rate falls to zero over the last minutes. The saved state is the one before the
    fall, so that the next run continues from there; the weights are those after it.
    """
    if minutes is not None and not minutes >= 0:  # which NaN is not either
        raise ConfigurationError(f"Expected 0 or more minutes, got {minutes}.")
    if not 0 <= decay_minutes < math.inf:
        raise ConfigurationError(f"Expected 0 or more minutes of decay, got {decay_minutes}.")
    # os.path, unlike Path, accepts names that no file can have.
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise ConfigurationError(f"Expected a folder for the run, but {directory} is a file.")
    pace = Pace(minutes, decay_minutes)
    if compiler_cache is not None and os.path.exists(compiler_cache):
        _load_compiler_cache(compiler_cache)
    with joined(device) as processes, contextlib.ExitStack() as claim:
        trainer = Trainer(config, processes, init)
        if resume:
            trainer.load(directory)
        elif processes.is_first and os.path.exists(directory / STATE_FILE):
            raise ConfigurationError(f"{directory} already holds a run: resume it, or name another folder.")
        if processes.is_first:
            claim.enter_context(claimed_folder(directory))
        log = RunLog(directory, processes.is_first, echo)
        run = Run(trainer, directory, pace, log)
        on = processes.device
        machine = f"{processes.count} × {torch.cuda.get_device_name(on) if on.type == 'cuda' else on.type}"
        log.say(f"{trainer.model.parameter_count():,} parameters on {machine}")
        trainer.measure_memory()
        if trainer.memory is not UNLIMITED:
            log.say(f"memory: {trainer.memory}")
        log.write(
            "start",
            trainer.step_number,
            config=config.to_dict(),
            parameters=trainer.model.parameter_count(),
            memory=asdict(trainer.memory),
        )
        scores = run.train()
        if compiler_cache is not None and processes.is_first:
            _save_compiler_cache(compiler_cache)
        log.say(format_scores(scores) if scores else "")
        processes.wait()
        return scores


class Run:
    """A trainer with its losses, clock and log."""

    def __init__(self, trainer: Trainer, directory: Path, pace: Pace, log: RunLog) -> None:
        self.trainer = trainer
        self.processes = trainer.processes
        self.directory = directory
        self.pace = pace
        self.log = log
        config = trainer.config
        self.parts = (
            draw_validation(config.validation, config.shapes, trainer.device) if self.processes.is_first else []
        )
        self.scores: list[Score] = []
        self.losses = Losses(self.processes)
        self.falling = False
        self.seconds_to_end = 0.0  # the longest time to validate and save, which must be left at the end
        self.drawing = Stopwatch(trainer.device)
        self.since_record = time.perf_counter(), trainer.tasks_seen

    def train(self) -> list[Score]:
        """Run all steps and return the scores at the end."""
        trainer, config = self.trainer, self.trainer.config
        while trainer.step_number < config.optimization.steps:
            decision = self.decide()
            if decision.rehearse:
                self.validate_and_save()
                continue
            if decision.falling and not self.falling:
                self.save_state()  # the next run continues from before the fall
                self.falling = True
            if decision.stop:
                break
            share = schedule(config.optimization, trainer.step_number) * decision.fall
            self.losses.add(trainer.step(share, self.drawing))
            if trainer.step_number % config.log.every_steps == 0:
                self.log_step(share)
            if trainer.step_number % config.validation.every_steps == 0:
                self.validate_and_save()
            elif trainer.step_number % config.log.save_every_steps == 0:
                self.save_state()
        self.validate_and_save()
        return self.scores

    def decide(self) -> Decision:
        """The decision by the clock of the first process, the same on every process."""
        decision = self.pace.decide(self.seconds_to_end) if self.processes.is_first else Decision()
        rehearse, falling, stop, fall = self.processes.from_first(decision)
        return Decision(bool(rehearse), bool(falling), bool(stop), fall)

    def save_state(self) -> None:
        """Save the state, unless the learning rate is falling: then the one before the fall is kept."""
        self.check_losses()
        if self.processes.is_first and not self.falling:
            self.trainer.save(self.directory)

    def validate_and_save(self) -> None:
        """Validate, save and log, on the first process."""
        self.pace.rehearsed = True
        began = time.monotonic()
        self.save_state()
        if self.processes.is_first:
            self.scores = self.trainer.validate(self.parts)
            self.trainer.save_weights(self.directory / "weights", self.scores)
            self.log_validation()
        self.seconds_to_end = max(self.seconds_to_end, time.monotonic() - began)

    def check_losses(self) -> float | None:
        """The mean loss since the last check; raises TrainingError if it is not a number or has exploded."""
        mean = self.losses.mean()
        if self.losses.exploded:
            raise TrainingError(
                f"The loss became {mean:.4g} before step {self.trainer.step_number}. The state saved last is kept in "
                f"{self.directory}; resume from it with a smaller learning rate."
            )
        return mean

    def log_step(self, share: float) -> None:
        """Log the steps since the last record; `share` is the factor of the learning rate in this step."""
        trainer, loss = self.trainer, self.check_losses()
        now, (began, tasks_before) = time.perf_counter(), self.since_record
        speed = (trainer.tasks_seen - tasks_before) / (now - began)
        drawing_share = self.drawing.read() / (now - began)
        memory, seconds = _peak_memory(trainer.device), self.pace.seconds_spent()
        self.log.write(
            "step",
            trainer.step_number,
            seconds=seconds,
            tasks=trainer.tasks_seen,
            loss=loss,
            tasks_per_second=speed,
            drawing_share=drawing_share,
            memory_gib=memory,
            learning_rate_share=share,
        )
        self.log.say(
            f"step {trainer.step_number:>7,}  loss {loss:.4f}  {speed:>7,.0f} tasks/s  drawing {drawing_share:>4.0%}  "
            f"{memory:.1f} GiB  {seconds:.0f} s"
        )
        self.since_record = time.perf_counter(), trainer.tasks_seen

    def log_validation(self) -> None:
        """Log the last scores."""
        mean = mean_score(self.scores)
        self.log.write(
            "validation",
            self.trainer.step_number,
            seconds=self.pace.seconds_spent(),
            tasks=self.trainer.tasks_seen,
            mean=mean,
            scores=[asdict(score) for score in self.scores],
        )
        self.log.say(
            f"step {self.trainer.step_number:>7,}  validation  NLL/p {mean['nll']:.4f}  nSHD {mean['nshd']:.3f}  "
            f"F1 {mean['f1']:.3f}  AP {mean['ap']:.3f}"
        )


class RunLog:
    """Log to the console and, as records, to `log.jsonl`; only the first process does."""

    def __init__(self, directory: Path, is_first: bool, echo: Callable[[str], None]) -> None:
        self._path = directory / "log.jsonl"
        self._is_first = is_first
        self._echo = echo
        if is_first:
            make_folder(directory)

    def say(self, line: str) -> None:
        """Print a line on the console."""
        if self._is_first:
            self._echo(line)

    def write(self, event: str, step: int, **facts: Any) -> None:
        """Add a record to the log."""
        if not self._is_first:
            return
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"event": event, "step": step, **facts}) + "\n")
        except OSError as error:
            raise TrainingError(f"Cannot write {self._path}: {error.strerror}.") from error


class Losses:
    """The losses of the last steps, compared with their average."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.exploded = False
        self._recent: list[Tensor] = []
        self._usual: float | None = None

    def add(self, loss: Tensor) -> None:
        """Add the loss of a step, without waiting for the device."""
        self._recent.append(loss)

    def mean(self) -> float | None:
        """The mean over all processes since the last call; the average loss if there was no step since."""
        if not self._recent:
            return self._usual
        mean = float(self.processes.mean(torch.stack(self._recent).mean()).item())
        self._recent.clear()
        self.exploded = not mean < EXPLOSION * (self._usual or math.inf)
        self._usual = mean if self._usual is None else 0.9 * self._usual + 0.1 * mean
        return mean


def _load_compiler_cache(path: Path) -> None:
    """Load compiled code."""
    # The code runs when it is used: load only files that the user named.
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"Cannot read the compiler cache {path}: {error.strerror}.") from error
    warnings = logging.getLogger("torch.compiler._cache")
    before, warnings.disabled = warnings.disabled, True  # it would print a traceback
    try:
        loaded = torch.compiler.load_cache_artifacts(content)
    finally:
        warnings.disabled = before
    if loaded is None:
        raise ConfigurationError(f"{path} is damaged or not a compiler cache: delete it, or name another file.")


def _save_compiler_cache(path: Path) -> None:
    """Write compiled code, if there is any."""
    artifacts = torch.compiler.save_cache_artifacts()
    if artifacts is not None:
        replace_file(path, artifacts[0])


def _peak_memory(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
