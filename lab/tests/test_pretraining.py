"""Laws of the pretraining program: it resumes exactly, shares work exactly, stops on time, and learns."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from causal_arrow.errors import ConfigurationError, TrainingError
from causal_arrow.graphs import metrics
from causal_arrow.network import checkpoint
from causal_arrow.network.checkpoint import read_extra
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow.output import claimed_folder
from causal_arrow_lab.network.checkpoint import load_model, load_state
from causal_arrow_lab.network.model import ArrowConfig, ArrowModel
from causal_arrow_lab.pretraining import _processes, _trainer, train
from causal_arrow_lab.pretraining.__main__ import HELP, main
from causal_arrow_lab.pretraining._optimizer import Muon, build_optimizers, schedule
from causal_arrow_lab.pretraining._processes import Decision, Pace
from causal_arrow_lab.pretraining._stream import (
    MemoryModel,
    Shape,
    TaskStream,
    draw_shape,
    fit_memory_model,
    tasks_per_slot,
)
from causal_arrow_lab.pretraining._trainer import Trainer
from causal_arrow_lab.pretraining.config import (
    CONFIGS_FOLDER,
    OptimizationConfig,
    PretrainingConfig,
    ShapeConfig,
    read_config,
    shipped_configs,
)
from causal_arrow_lab.pretraining.train import pretrain
from causal_arrow_lab.pretraining.validation import draw_validation, format_scores, task_scores, validate
from causal_arrow_lab.skeleton_order import SkeletonOrder

TINY = PretrainingConfig.from_dict(
    {
        "model": {
            "encoder": "pairwise",
            "cell_width": 8,
            "pair_width": 16,
            "stages": 1,
            "pair_blocks": 1,
            "mixing_heads": 2,
            "outer_width": 2,
        },
        "shapes": {"observations": [20, 40], "variables": [2, 6]},
        "batch": {"slots": 2, "tasks_per_slot": 4, "steps_per_shape": 3},
        "optimization": {"steps": 12, "warmup_steps": 3, "averaging": 0.9, "precision": "float32", "compile": False},
        "validation": {"tasks": 8, "shapes": [[30, 4]], "every_steps": 100},
        "log": {"every_steps": 4, "save_every_steps": 1},
    }
)
TINY_TOML = """
[model]
encoder = "pairwise"
cell_width = 8
pair_width = 16
stages = 1
pair_blocks = 1
mixing_heads = 2
outer_width = 2
[shapes]
observations = [20, 40]
variables = [2, 6]
[batch]
slots = 2
tasks_per_slot = 4
steps_per_shape = 3
[optimization]
steps = 12
warmup_steps = 3
averaging = 0.9
precision = "float32"
compile = false
[validation]
tasks = 8
shapes = [[30, 4]]
every_steps = 100
[log]
every_steps = 4
save_every_steps = 1
"""


def until(steps: int) -> PretrainingConfig:
    return dataclasses.replace(TINY, optimization=dataclasses.replace(TINY.optimization, steps=steps))


def quiet(line: str) -> None:
    pass


def state_of(directory: Path) -> dict[str, torch.Tensor]:
    return load_state(directory)[0]


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never interrupted."""
    directory = tmp_path_factory.mktemp("whole")
    pretrain(TINY, directory, device="cpu", echo=quiet)
    return directory


def command(config: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "causal_arrow_lab.pretraining", str(config), "--device", "cpu", *arguments]


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


# --- going on


@pytest.mark.parametrize("stop", [1, 4, 8])
def test_resumed_run_equals_uninterrupted_run(stop: int, whole: Path, tmp_path: Path) -> None:
    pretrain(until(stop), tmp_path, device="cpu", echo=quiet)
    assert not same(state_of(tmp_path), state_of(whole))
    pretrain(TINY, tmp_path, resume=True, device="cpu", echo=quiet)
    assert same(state_of(tmp_path), state_of(whole))


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    with claimed_folder(tmp_path), pytest.raises(ConfigurationError, match="Another process is writing"):
        pretrain(until(1), tmp_path, device="cpu", echo=quiet)
    pretrain(until(1), tmp_path, device="cpu", echo=quiet)


def test_killed_run_resumes_to_the_same_weights(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(TINY_TOML.replace("steps = 12", "steps = 40"))
    untouched, killed = tmp_path / "untouched", tmp_path / "killed"
    subprocess.run(command(config, "--output", str(untouched)), check=True, env=one_thread(), stdout=subprocess.DEVNULL)
    moments = random.Random(0)
    kills = 0
    while kills < 3:
        where = ["--resume", str(killed)] if (killed / "state.json").exists() else ["--output", str(killed)]
        run = subprocess.Popen(command(config, *where), env=one_thread(), stdout=subprocess.DEVNULL)
        before = _saved_step(killed)
        while run.poll() is None and _saved_step(killed) < before + 3:  # it saves at every step, so that most of the
            time.sleep(0.002)  # time it is in the middle of saving
        time.sleep(moments.uniform(0, 0.05))
        run.send_signal(signal.SIGKILL)
        run.wait()
        kills += 1
    assert 0 < _saved_step(killed) < 40
    subprocess.run(command(config, "--resume", str(killed)), check=True, env=one_thread(), stdout=subprocess.DEVNULL)
    assert same(state_of(killed), state_of(untouched))


def _saved_step(directory: Path) -> int:
    try:
        return int(json.loads((directory / "state.json").read_text())["scalars"]["step"])
    except FileNotFoundError:
        return 0


def test_weights_alone_can_be_the_start(whole: Path, tmp_path: Path) -> None:
    pretrain(until(1), tmp_path, init=whole / "weights", device="cpu", echo=quiet)
    start = dict(load_model(whole / "weights").named_parameters())
    moved = [
        (start[name.removeprefix("model.")] - tensor).abs().max().item()
        for name, tensor in state_of(tmp_path).items()
        if name.startswith("model.")
    ]
    assert 0 < max(moved) < 0.05


def test_weights_remember_the_runs_they_come_from(whole: Path, tmp_path: Path) -> None:
    first = read_extra(whole / "weights")["training"]
    assert first["earlier"] == []
    assert first["tasks"] == 12 * 2 * 4
    run = tmp_path / "run"
    pretrain(until(2), run, init=whole / "weights", device="cpu", echo=quiet)
    pretrain(until(3), run, resume=True, device="cpu", echo=quiet)
    pretrain(until(1), tmp_path / "next", init=run / "weights" / "model.safetensors", device="cpu", echo=quiet)
    last = read_extra(tmp_path / "next" / "weights")["training"]
    assert [(record["steps"], record["tasks"]) for record in last["earlier"]] == [(12, 96), (3, 24)]
    assert all("validation" not in record for record in last["earlier"])


@pytest.mark.parametrize("resume", [True, False])
def test_a_deeper_network_starts_with_the_answers_of_the_one_it_grows_from(
    resume: bool, whole: Path, tmp_path: Path
) -> None:
    encoder = TINY.model.encoder
    assert isinstance(encoder, PairwiseConfig)
    deeper = ArrowConfig(dataclasses.replace(encoder, stages=encoder.stages + 2, pair_blocks=encoder.pair_blocks + 1))
    config = until(TINY.optimization.steps + 1 if resume else 1)
    still = dataclasses.replace(config.optimization, learning_rate=0.0, adamw_learning_rate=0.0)
    config = dataclasses.replace(config, model=deeper, optimization=still)
    if resume:
        shutil.copytree(whole, tmp_path / "run")
    init = None if resume else whole / "weights"
    pretrain(config, tmp_path / "run", resume=resume, init=init, device="cpu", echo=quiet)
    if resume:
        before, after = network_in(whole, TINY.model), network_in(tmp_path / "run", deeper)
    else:
        before, after = load_model(whole / "weights"), load_model(tmp_path / "run" / "weights")
    assert after.parameter_count() > 1.5 * before.parameter_count()
    data = torch.randn(2, 30, 6, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected, found = before(data).skeleton_order, after(data).skeleton_order
    assert torch.allclose(found.skeleton_logits, expected.skeleton_logits, atol=1e-5)
    assert torch.allclose(found.order_scores, expected.order_scores, atol=1e-5)


def network_in(run: Path, config: ArrowConfig) -> ArrowModel:
    """The network as it was when its state was saved, without averaging."""
    model = ArrowModel(config)
    tensors, _ = load_state(run)
    own = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    model.load_state_dict(own)
    return model.eval()


def test_a_run_that_has_grown_goes_on_learning(whole: Path, tmp_path: Path) -> None:
    encoder = TINY.model.encoder
    assert isinstance(encoder, PairwiseConfig)
    deeper = ArrowConfig(dataclasses.replace(encoder, stages=encoder.stages + 1))
    shutil.copytree(whole, tmp_path / "run")
    for more in (1, 2):
        config = dataclasses.replace(until(TINY.optimization.steps + more), model=deeper)
        pretrain(config, tmp_path / "run", resume=True, device="cpu", echo=quiet)
        tensors, scalars = load_state(tmp_path / "run")
        assert scalars["step"] == TINY.optimization.steps + more
    new = f"model.encoder.stages.{encoder.stages}.from_cells.weight"
    assert tensors[new].abs().max() > 0
    with pytest.raises(ConfigurationError, match="only stages and pair_blocks of the pairwise encoder may grow"):
        pretrain(until(20), tmp_path / "run", resume=True, device="cpu", echo=quiet)


@pytest.mark.parametrize("size", ["stages", "cell_width"])
def test_a_network_grows_in_depth_alone(size: str, whole: Path, tmp_path: Path) -> None:
    sizes = dataclasses.asdict(TINY.model.encoder)
    other = ArrowConfig(PairwiseConfig(**{**sizes, size: sizes[size] * 2}))
    larger = dataclasses.replace(until(1), model=other)
    pretrain(larger, tmp_path / "larger", device="cpu", echo=quiet)
    start, config = (tmp_path / "larger", TINY) if size == "stages" else (whole, larger)
    with pytest.raises(ConfigurationError, match="only stages and pair_blocks of the pairwise encoder may grow"):
        pretrain(config, tmp_path / "run", init=start / "weights", device="cpu", echo=quiet)
    with pytest.raises(ConfigurationError, match="only stages and pair_blocks of the pairwise encoder may grow"):
        pretrain(config, start, resume=True, device="cpu", echo=quiet)


FEWER = dataclasses.replace(
    TINY,
    model=ArrowConfig(
        dataclasses.replace(TINY.model.encoder, channels=("values",), statistics=("sizes", "cross_moments"))
    ),
)
"""A run whose network is fed less than that of TINY."""


@pytest.mark.parametrize("resume", [True, False])
def test_a_network_with_more_inputs_starts_with_the_answers_of_the_one_it_grows_from_and_goes_on_learning(
    resume: bool, tmp_path: Path
) -> None:
    start, run = tmp_path / "start", tmp_path / "run"
    pretrain(FEWER, start, device="cpu", echo=quiet)
    if resume:
        shutil.copytree(start, run)
    steps = TINY.optimization.steps if resume else 0
    init = None if resume else start / "weights"
    pretrain(until(steps), run, resume=resume, init=init, device="cpu", echo=quiet)  # no step yet
    before, after = network_in(start, FEWER.model), network_in(run, TINY.model)
    if not resume:
        before, after = load_model(start / "weights"), load_model(run / "weights")
    assert after.parameter_count() > before.parameter_count()
    data = torch.randn(2, 30, 6, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected, found = before(data).skeleton_order, after(data).skeleton_order
    assert (found.skeleton_logits - expected.skeleton_logits).abs().max() < 1e-6
    assert (found.order_scores - expected.order_scores).abs().max() < 1e-6
    pretrain(until(steps + 2), run, resume=True, device="cpu", echo=quiet)
    tensors, scalars = load_state(run)
    assert scalars["step"] == steps + 2
    for layer, inputs in (("cell_embedding", "cell_inputs"), ("pair_embedding", "pair_inputs")):
        known = getattr(FEWER.model.encoder, inputs)()
        new = [name not in known for name in getattr(TINY.model.encoder, inputs)()]
        assert tensors[f"model.encoder.{layer}.weight"][:, new].abs().max() > 0
    with pytest.raises(ConfigurationError, match="channels and statistics may be added"):
        pretrain(FEWER, run, resume=True, device="cpu", echo=quiet)


def test_weights_to_start_from_are_read_once(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = checkpoint.read_bytes
    opened: list[str] = []
    monkeypatch.setattr(checkpoint, "read_bytes", lambda path, count=-1: opened.append(path.name) or read(path, count))
    pretrain(until(0), tmp_path / "run", init=whole / "weights", device="cpu", echo=quiet)
    assert opened.count("model.safetensors") == 1


def test_a_run_is_not_overwritten_by_another(whole: Path) -> None:
    with pytest.raises(ConfigurationError, match="already holds a run"):
        pretrain(TINY, whole, device="cpu", echo=quiet)


def test_compiled_code_is_kept_in_a_file(tmp_path: Path) -> None:
    cache = tmp_path / "compiled"
    numbers = torch.arange(8.0)
    torch.testing.assert_close(torch.compile(lambda x: x.sin() * 2 + 1)(numbers), numbers.sin() * 2 + 1)
    train._save_compiler_cache(cache)
    assert cache.stat().st_size > 1000
    assert torch.compiler.load_cache_artifacts(cache.read_bytes()) is not None
    # A whole network takes minutes to compile on a CPU, so here the file only has to come through a run unharmed.
    pretrain(until(1), tmp_path / "run", compiler_cache=cache, device="cpu", echo=quiet)
    assert torch.compiler.load_cache_artifacts(cache.read_bytes()) is not None


# --- stopping


def test_a_loss_that_is_not_a_number_ends_the_run_and_keeps_the_last_good_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Trainer.step

    def spoiled(self: Trainer, share: float, drawing: object) -> torch.Tensor:
        loss = step(self, share, drawing)  # type: ignore[arg-type]
        return loss * float("nan") if self.step_number > 6 else loss

    monkeypatch.setattr(Trainer, "step", spoiled)
    with pytest.raises(TrainingError, match="The loss became nan"):
        pretrain(TINY, tmp_path, device="cpu", echo=quiet)
    assert _saved_step(tmp_path) == 6
    assert all(tensor.isfinite().all() for tensor in state_of(tmp_path).values())


def test_an_exploding_loss_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Trainer.step
    monkeypatch.setattr(
        Trainer,
        "step",
        lambda self, share, drawing: step(self, share, drawing) * (1000 if self.step_number > 6 else 1),
    )
    with pytest.raises(TrainingError, match="The loss became"):
        pretrain(TINY, tmp_path, device="cpu", echo=quiet)


class TickingTime:
    """A clock that moves on by 20 ms whenever it is read: a busy machine changes nothing."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.02
        return self.now

    perf_counter = monotonic


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> TickingTime:
    clock = TickingTime()
    monkeypatch.setattr(_processes, "time", clock)
    return clock


def test_a_run_with_a_clock_is_done_and_saved_in_time(tmp_path: Path, ticking: TickingTime) -> None:
    pretrain(until(10**6), tmp_path, minutes=0.15, device="cpu", echo=quiet)
    assert 5 < ticking.now <= 9
    assert _saved_step(tmp_path) > 1
    assert load_model(tmp_path / "weights").parameter_count() > 0


def test_a_run_with_a_clock_finds_out_in_good_time_how_long_its_end_takes(tmp_path: Path, ticking: TickingTime) -> None:
    rare = dataclasses.replace(TINY.validation, every_steps=10**6)
    pretrain(dataclasses.replace(until(10**6), validation=rare), tmp_path, minutes=0.1, device="cpu", echo=quiet)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    first, last = (record["seconds"] for record in records if record["event"] == "validation")
    assert 3 <= first < last


def test_a_falling_learning_rate_leaves_the_state_from_before_the_fall(tmp_path: Path, ticking: TickingTime) -> None:
    rarely_saved = dataclasses.replace(TINY.log, every_steps=1, save_every_steps=10**6)
    endless = dataclasses.replace(until(10**6), log=rarely_saved)
    pretrain(endless, tmp_path, minutes=0.15, decay_minutes=0.05, device="cpu", echo=quiet)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    shares = [record["learning_rate_share"] for record in records if record["event"] == "step"]
    assert shares[-1] < 0.5
    last = max(record["step"] for record in records if record["event"] == "validation")
    assert 0 < _saved_step(tmp_path) < last


def test_the_logged_learning_rate_is_that_of_the_step_logged(tmp_path: Path) -> None:
    every_step = dataclasses.replace(until(5), log=dataclasses.replace(TINY.log, every_steps=1))
    pretrain(every_step, tmp_path, device="cpu", echo=quiet)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    shares = [record["learning_rate_share"] for record in records if record["event"] == "step"]
    assert shares == pytest.approx([1 / 3, 2 / 3, 1, 1, 1])


def test_a_clock_asks_for_a_rehearsal_then_for_a_fall_then_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(_processes.time, "monotonic", lambda: now)
    pace = Pace(10, decay_minutes=2)
    assert pace.decide(0) == Decision()
    now = 301.0  # more than half of 600 seconds
    assert pace.decide(0) == Decision(rehearse=True)
    pace.rehearsed = True
    assert pace.decide(6) == Decision()  # it leaves 10 seconds for an end of 6
    now = 530.0
    assert pace.decide(6) == Decision(falling=True, fall=0.5)
    now = 591.0
    assert pace.decide(6) == Decision(falling=True, stop=True, fall=0.0)
    endless = Pace(None, decay_minutes=2)
    assert endless.decide(1e9) == Decision()


# --- many processes


def torchrun(config: Path, output: Path, processes: int) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    program = ["-m", "causal_arrow_lab.pretraining", str(config), "--device", "cpu", "--output", str(output)]
    return subprocess.run([*launcher, *program], env=one_thread(), capture_output=True, text=True, timeout=900)


def test_two_processes_give_the_weights_of_one(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(TINY_TOML)
    pretrain(read_config(config), tmp_path / "one", device="cpu", echo=quiet)
    assert torchrun(config, tmp_path / "two", 2).returncode == 0
    one, two = state_of(tmp_path / "one"), state_of(tmp_path / "two")
    assert one.keys() == two.keys()
    # The sums of gradients are rounded in another order; Newton–Schulz in bfloat16 blows that up a little.
    for name, tensor in one.items():
        assert (tensor - two[name]).abs().max() < 5e-3, name
    counters = [json.loads((tmp_path / run / "state.json").read_text())["scalars"] for run in ("one", "two")]
    assert counters[0]["tasks_seen"] == counters[1]["tasks_seen"]


def test_the_gradients_of_two_processes_are_those_of_one(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    # One step of plain AdamW: its first update is the sign of the gradient, its state holds the gradient itself.
    config.write_text(TINY_TOML.replace("steps = 12", 'steps = 1\noptimizer = "adamw"'))
    pretrain(read_config(config), tmp_path / "one", device="cpu", echo=quiet)
    assert torchrun(config, tmp_path / "two", 2).returncode == 0
    one, two = state_of(tmp_path / "one"), state_of(tmp_path / "two")
    momenta = [name for name in one if ".exp_avg." in name]
    assert momenta
    for name in momenta:
        assert (one[name] - two[name]).abs().max() < 1e-6, name


def test_a_run_that_loses_a_process_ends_with_an_error_and_resumes(tmp_path: Path) -> None:
    config = tmp_path / "tiny.toml"
    config.write_text(TINY_TOML.replace("steps = 12", "steps = 100000"))
    output = tmp_path / "run"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    program = ["-m", "causal_arrow_lab.pretraining", str(config), "--device", "cpu", "--output", str(output)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen([*launcher, *program], env=one_thread(), **silent)
    deadline = time.monotonic() + 300
    while _saved_step(output) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    assert run.wait(timeout=300) != 0
    reached = _saved_step(output)
    assert reached >= 2
    pretrain(until(reached + 2), output, resume=True, device="cpu", echo=quiet)
    assert _saved_step(output) == reached + 2


def test_only_the_clock_of_the_first_process_counts(tmp_path: Path) -> None:
    """With a say of its own, the second process, whose clock has run out, would end the run or hang it."""
    (tmp_path / "tiny.toml").write_text(TINY_TOML)
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, sys
from causal_arrow_lab.pretraining import _processes
from causal_arrow_lab.pretraining.__main__ import main
if os.environ["RANK"] == "1":
    _processes.Pace.seconds_left = lambda *_: -1000.0
broadcast = _processes.dist.broadcast
def counted(*arguments, **options):
    print("DECISION", flush=True)
    return broadcast(*arguments, **options)
_processes.dist.broadcast = counted
sys.exit(main(sys.argv[1:]))
"""
    )
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    options = [str(tmp_path / "tiny.toml"), "--device", "cpu", "--output", str(tmp_path / "run"), "--minutes", "60"]
    result = subprocess.run([*launcher, *options], env=one_thread(), capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr
    assert _saved_step(tmp_path / "run") == TINY.optimization.steps
    assert result.stdout.count("DECISION") == 2 * TINY.optimization.steps  # one per step and process


def test_slots_must_divide_among_processes() -> None:
    from causal_arrow_lab.pretraining._processes import Processes

    with pytest.raises(ConfigurationError, match="slots that 3 processes can share"):
        Trainer(TINY, Processes(0, 3, torch.device("cpu")))


# --- the stream


def test_the_stream_is_decided_by_step_and_slot() -> None:
    first, second = (TaskStream(TINY, torch.device("cpu")) for _ in range(2))
    later = second.tasks(7, 1)
    for step in range(8):
        again = first.tasks(step, 1)
    assert torch.equal(again.data, later.data)
    assert torch.equal(again.adjacency, later.adjacency)


def test_no_task_comes_twice() -> None:
    stream = TaskStream(TINY, torch.device("cpu"))
    batches = [stream.tasks(step, slot) for step in range(9) for slot in range(2)]
    seen = [float(table.sum()) for batch in batches for table in batch.data.abs()]
    assert len(set(seen)) == len(seen) == 9 * 2 * 4


def test_slots_change_shapes_at_different_steps() -> None:
    batch = dataclasses.replace(TINY.batch, slots=2, steps_per_shape=4)
    stream = TaskStream(dataclasses.replace(TINY, batch=batch), torch.device("cpu"))
    changes: dict[int, list[int]] = {0: [], 1: []}
    for step in range(12):
        for slot in (0, 1):
            if stream.needs_draw(step, slot):
                changes[slot].append(step)
            stream.tasks(step, slot)
    assert changes == {0: [0, 4, 8], 1: [0, 2, 6, 10]}


def test_one_shape_for_all_slots_means_other_tasks_of_the_same_shape() -> None:
    batch = dataclasses.replace(TINY.batch, one_shape=True, steps_per_shape=1)
    stream = TaskStream(dataclasses.replace(TINY, batch=batch), torch.device("cpu"))
    shapes = []
    for step in range(6):
        first, second = stream.tasks(step, 0), stream.tasks(step, 1)
        assert Shape.of(first.tables) == Shape.of(second.tables)
        assert not torch.equal(first.data, second.data)
        shapes.append(Shape.of(first.tables))
    assert len(set(shapes)) > 1


# --- shapes and memory


def test_some_shapes_are_long() -> None:
    config = ShapeConfig((20, 100), "log_uniform", (2, 6), "uniform", long_share=0.2, long_observations=(1000, 8000))
    random_numbers = np.random.default_rng(0)
    observations = np.array([draw_shape(config, random_numbers).observations for _ in range(4000)])
    assert ((observations <= 100) | (observations >= 1000)).all()
    long = observations[observations >= 1000]
    assert abs(len(long) / 4000 - 0.2) < 0.03
    assert abs(np.log(long / 1000).mean() / np.log(8) - 0.5) < 0.05
    with pytest.raises(ConfigurationError, match="long_share"):
        dataclasses.replace(config, long_share=1.5)


def test_some_shapes_are_wide() -> None:
    config = ShapeConfig((20, 100), "log_uniform", (2, 6), "uniform", long_share=0.2, wide_share=0.3)
    random_numbers = np.random.default_rng(0)
    shapes = [draw_shape(config, random_numbers) for _ in range(4000)]
    wide = np.array([shape.variables for shape in shapes if shape.variables > 6])
    assert abs(len(wide) / 4000 - 0.3) < 0.03
    assert wide.min() >= 110
    assert 240 < wide.max() <= 256
    assert all(shape.observations <= 100 for shape in shapes if shape.variables > 6)
    with pytest.raises(ConfigurationError, match="add up to more than 1"):
        dataclasses.replace(config, wide_share=0.9)


def test_shapes_follow_their_laws() -> None:
    random_numbers = np.random.default_rng(0)
    config = ShapeConfig((100, 2000), "log_uniform", (2, 100), "uniform")
    shapes = [draw_shape(config, random_numbers) for _ in range(4000)]
    observations = np.array([shape.observations for shape in shapes])
    variables = np.array([shape.variables for shape in shapes])
    assert observations.min() >= 100
    assert observations.max() <= 2000
    assert {variables.min(), variables.max()} == {2, 100}
    assert abs(np.median(observations) / np.sqrt(100 * 2000) - 1) < 0.06  # the middle on the logarithmic scale
    assert abs(np.median(variables) - 51) < 3
    mixed = dataclasses.replace(config, variables_law="mixed")
    variables = np.array([draw_shape(mixed, random_numbers).variables for _ in range(4000)])
    uniform, log_uniform = 50 / 99, np.log(100.5 / 50.5) / np.log(100.5 / 1.5)  # more than fifty
    assert abs((variables > 50).mean() - (uniform + log_uniform) / 2) < 0.025
    with pytest.raises(ConfigurationError, match="Unknown variables_law 'normal'"):
        draw_shape(dataclasses.replace(config, variables_law="normal"), random_numbers)


def test_slots_hold_equal_work() -> None:
    batch = dataclasses.replace(TINY.batch, tasks_per_slot=None, work_per_slot=100_000, cells_per_pair=10.0)
    assert tasks_per_slot(batch, Shape(100, 10)) == 50  # 1000 cells + 100 pairs worth 1000 cells
    assert tasks_per_slot(batch, Shape(10_000, 100)) == 1
    assert tasks_per_slot(dataclasses.replace(batch, most_tasks_per_slot=7), Shape(100, 10)) == 7


def test_the_memory_model_recovers_what_made_the_peaks() -> None:
    truth = MemoryModel(5e8, 3000.0, 40000.0, 1e11)
    fitted = fit_memory_model(lambda shape, tasks: truth.fixed + tasks * truth.bytes_per_task(shape), 1e11)
    for name in ("fixed", "per_cell", "per_pair"):
        assert abs(getattr(fitted, name) / getattr(truth, name) - 1) < 1e-6
    shape = Shape(100, 100)
    fitting = fitted.tasks_that_fit(shape)
    used = [truth.fixed + tasks * truth.bytes_per_task(shape) for tasks in (fitting, fitting + 1)]
    assert used[0] <= 1e11 < used[1]


def test_splitting_a_slot_into_microbatches_changes_no_gradient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adamw = dataclasses.replace(TINY.optimization, optimizer="adamw", steps=1)
    config = dataclasses.replace(TINY, optimization=adamw)
    pretrain(config, tmp_path / "whole", device="cpu", echo=quiet)
    monkeypatch.setattr(_trainer, "UNLIMITED", MemoryModel(0.0, 1.0, 1e-9, 130.0))  # a task or two at a time
    pretrain(config, tmp_path / "split", device="cpu", echo=quiet)
    whole, split = state_of(tmp_path / "whole"), state_of(tmp_path / "split")
    for name in whole:
        if ".exp_avg." in name:
            assert (whole[name] - split[name]).abs().max() < 1e-6, name


def test_the_plain_sum_of_equation_1_has_gradients_as_many_times_as_large_as_there_are_variables() -> None:
    from causal_arrow_lab.pretraining._processes import Processes

    plain = dataclasses.replace(TINY, optimization=dataclasses.replace(TINY.optimization, loss_per_variable=False))
    gradients, losses = [], []
    for config in (TINY, plain):
        trainer_ = Trainer(config, Processes(0, 1, torch.device("cpu")))
        tasks = trainer_.stream.tasks(0, 0)
        losses.append(float(trainer_.backward(tasks.tables, tasks.truth, 1.0)))
        gradients.append(torch.cat([p.grad.flatten() for p in trainer_.model.parameters() if p.grad is not None]))
    assert losses[0] == losses[1]  # what is logged stays NLL/p
    torch.testing.assert_close(gradients[1], tasks.tables.variables * gradients[0], rtol=1e-4, atol=1e-6)


def test_validation_can_have_the_shapes_of_training() -> None:
    config = dataclasses.replace(TINY.validation, tasks=60, drawn_shapes=30)
    device = torch.device("cpu")
    parts = draw_validation(config, TINY.shapes, device)
    shapes = [(part.tasks.tables.observations, part.tasks.tables.variables) for part in parts]
    assert len(parts) == 30
    assert all(20 <= n <= 40 and 2 <= p <= 6 for n, p in shapes)
    assert {p for _, p in shapes} == {2, 3, 4, 5, 6}
    again = draw_validation(config, TINY.shapes, device)
    assert all(torch.equal(a.tasks.tables.values, b.tasks.tables.values) for a, b in zip(parts, again, strict=True))
    model = ArrowModel(TINY.model).eval()
    scores = validate(model, parts, lambda shape: 8)
    assert format_scores(scores).count("\n") == 1  # too many shapes to read: the mean alone


def test_the_papers_configuration_names_what_is_ours_and_validates_on_its_own_shapes() -> None:
    config = read_config("paper")
    assert config.validation.drawn_shapes > 0
    assert config.optimization.loss_per_variable
    text = (CONFIGS_FOLDER / "paper.toml").read_text(encoding="utf-8")
    ours = {line.partition(" =")[0] for line in text.splitlines() if "# ours" in line}
    assert ours >= {"learning_rate", "weight_decay", "betas", "clip", "loss_per_variable", "averaging", "warmup_steps"}
    assert not read_config("paper", ["optimization.loss_per_variable=false"]).optimization.loss_per_variable


def test_parts_of_tasks_cover_them_once() -> None:
    tasks = TaskStream(TINY, torch.device("cpu")).distribution.sample(10, 5, 3, torch.Generator().manual_seed(0))
    parts = list(tasks.split(4))
    assert [len(part) for part in parts] == [3, 4, 3]
    whole = list(tasks.tensors())
    assert len(whole) >= 6
    for number, tensor in enumerate(whole):
        assert torch.equal(torch.cat([list(part.tensors())[number] for part in parts]), tensor)
    assert [tensor.device.type for tensor in tasks.to("meta").tensors()] == ["meta"] * len(whole)


# --- the optimizer


def test_batched_muon_equals_torch_muon() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(12, 20), (20, 12), (12, 20), (16, 16)]
    start = [torch.randn(shape, generator=generator) for shape in shapes]
    ours = [torch.nn.Parameter(matrix.clone()) for matrix in start]
    theirs = [torch.nn.Parameter(matrix.clone()) for matrix in start]
    muon = Muon(ours, lr=0.01, weight_decay=0.1, momentum=0.95)
    reference = torch.optim.Muon(theirs, lr=0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw")
    for _ in range(5):
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=generator)
            other.grad = mine.grad.clone()
        muon.step()
        reference.step()
    for mine, other, before in zip(ours, theirs, start, strict=True):
        moved = (other - before).norm()
        assert (mine - other).norm() < 0.02 * moved  # both round to bfloat16 inside, in another order


def test_every_parameter_has_exactly_one_optimizer() -> None:
    from causal_arrow_lab.network.model import ArrowConfig, ArrowModel

    model = ArrowModel(ArrowConfig.base())
    for kind in ("muon", "adamw"):
        optimizers = build_optimizers(model, OptimizationConfig(optimizer=kind))
        owned = [id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
        assert sorted(owned) == sorted(id(p) for p in model.parameters())
    with pytest.raises(ConfigurationError, match="Unknown optimizer 'sgd'"):
        build_optimizers(model, OptimizationConfig(optimizer="sgd"))


def test_the_learning_rate_rises_stays_and_falls() -> None:
    config = OptimizationConfig(steps=100, warmup_steps=10, decay_steps=20)
    shares = [schedule(config, step) for step in range(100)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[9:80] == [1.0] * 71
    assert shares[80] == 1.0
    assert shares[99] == pytest.approx(0.05)
    assert all(later <= earlier for earlier, later in pairwise(shares[9:]))


# --- validation


def test_validation_scores_are_those_of_metrics() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20, 6, 6, generator=generator) * 3
    graphs = SkeletonOrder(logits + logits.mT, torch.randn(20, 6, generator=generator))
    truth = torch.rand(20, 6, 6, generator=generator).triu(1) > 0.7
    truth[0] = False
    scores = task_scores(graphs, truth)
    estimates, marginals = graphs.most_probable_dag().numpy(), graphs.edge_marginals().numpy()
    for task in range(20):
        graph = truth[task].numpy()
        for name, expected in (
            ("nshd", metrics.normalized_shd(graph, estimates[task])),
            ("f1", metrics.f1(graph, estimates[task])),
            ("ap", metrics.average_precision(graph, marginals[task])),
        ):
            np.testing.assert_allclose(scores[name][task].item(), expected, rtol=1e-5, equal_nan=True)


# --- configurations


def test_shipped_configurations_are_read_whole() -> None:
    for path in CONFIGS_FOLDER.glob("*.toml"):
        config = read_config(path)
        assert PretrainingConfig.from_dict(config.to_dict()) == config
    paper = read_config(CONFIGS_FOLDER / "paper.toml")
    assert paper.batch.slots * (paper.batch.tasks_per_slot or 0) == 2048
    assert paper.optimization.steps == 250_000
    assert paper.optimization.optimizer == "adamw"


def test_settings_of_the_file_can_be_changed_one_by_one() -> None:
    smoke = CONFIGS_FOLDER / "smoke.toml"
    changes = ["batch.slots=7", "tasks.without=['mlp']", "tasks.weights.normal=2", "seed = 3", "log.every_steps=9"]
    changed = read_config(smoke, [*changes, "model.stages=5", "optimization.optimizer=adamw"])
    assert (changed.batch.slots, changed.tasks.without, changed.tasks.weights) == (7, ("mlp",), {"normal": 2.0})
    assert (changed.seed, changed.log.every_steps, changed.model.encoder.stages) == (3, 9, 5)
    assert changed.optimization.optimizer == "adamw"
    assert changed.shapes == read_config(smoke).shapes
    of_one_recipe = read_config("any", ['tasks.weights."typed.rare_event"=0', "tasks.weights.paper=2"]).tasks.weights
    assert of_one_recipe == {**read_config("any").tasks.weights, "typed.rare_event": 0.0, "paper": 2.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("batch.slots", "SECTION.KEY=VALUE, got 'batch.slots'"),
        ("=3", "SECTION.KEY=VALUE, got '=3'"),
        ("batch.slot=3", "Unknown setting 'slot' in"),
        ("batch.slots=many", "Expected int for batch.slots, got 'many'"),
        ("seed.slots=3", "seed is not a section"),
        ("model.depth=3", "Unknown setting 'depth' for the pairwise encoder"),
        ("model.encoder=['paper']", "Unknown encoder ['paper']"),
        ("model.order_head=['pooled']", "Expected potential or pooled for order_head, got ['pooled']"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_in_one_sentence(
    change: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(CONFIGS_FOLDER / "smoke.toml"), "--set", change]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "tpu"], "Unknown device 'tpu'"),
        (["--device", "meta"], "The network runs on cpu and cuda"),
        (["--device", "cuda:99"], "There is no "),
        (["--minutes", "-1"], "Expected 0 or more minutes, got -1.0"),
        (["--minutes", "nan"], "Expected 0 or more minutes, got nan"),
        (["--minutes", "5", "--decay-minutes", "-1"], "Expected 0 or more minutes of decay, got -1.0"),
        (["--minutes", "5", "--decay-minutes", "nan"], "Expected 0 or more minutes of decay, got nan"),
        (["--minutes", "5", "--decay-minutes", "inf"], "Expected 0 or more minutes of decay, got inf"),
        (["--output", "FILE"], "Expected a folder for the run, but"),
        (["--output", "FILE/run"], "Cannot make the folder"),
        (["--output", ""], "Expected a name for --output, got ''"),
        (["--output", "a\0b"], "Expected a name for --output"),
        (["--output", "x" * 5000], "File name too long"),
        (["--resume", "FOLDER"], "No training state in"),
        (["--resume", "FILE"], "Expected a folder for the run, but"),
        (["--init", "nowhere"], "No model 'nowhere'"),
        (["--init", "FILE"], "not a safetensors file"),
        (["--compiler-cache", "FILE"], "is damaged or not a compiler cache"),
        (["--compiler-cache", "FOLDER"], "Cannot read the compiler cache"),
        (["--set", f"seed={2**70}"], "Expected from 0 to 9223372036854775807 for seed, got"),
        (["--set", "seed=-1"], "Expected from 0 to"),
        (["--set", f"validation.seed={2**70}"], "for validation.seed, got"),
        (["--set", "log.every_steps=0"], "Expected 1 or more for log.every_steps, got 0"),
        (["--set", "batch.slots=0"], "Expected 1 or more for batch.slots, got 0"),
        (["--set", "batch.tasks_per_slot=0"], "Expected 1 or more for batch.tasks_per_slot, got 0"),
        (["--set", "batch.cells_per_pair=nan"], "Expected 0 or more for batch.cells_per_pair, got nan"),
        (["--set", "optimization.learning_rate=-1"], "for optimization.learning_rate, got -1.0"),
        (["--set", "optimization.learning_rate=inf"], "for optimization.learning_rate, got inf"),
        (["--set", "optimization.betas=[0.9,1.0]"], "from 0 to below 1 for optimization.betas"),
        (["--set", "optimization.averaging=2.0"], "Expected from 0.0 to 1.0 for optimization.averaging, got 2.0"),
        (["--set", "shapes.variables=[9,3]"], "the smaller first, for shapes.variables, got (9, 3)"),
        (["--set", "shapes.observations=[1,3]"], "2 or more and the smaller first, for shapes.observations"),
        (["--set", "shapes.variables_law=normal"], "Unknown variables_law 'normal'"),
        (["--set", "validation.shapes=[[1,1]]"], "Expected 2 or more of each for validation.shapes, got [1, 1]"),
        (["--set", "validation.shapes=[]"], "Expected at least one entry for validation.shapes"),
        (["--set", "model.channels=['colours']"], "Unknown name 'colours' in channels"),
        (["--set", "model.statistics=sizes"], "for statistics, got 'sizes'"),
        (["--set", "model=3"], "Expected a table for [model], got 3"),
    ],
)
def test_nonsense_on_the_command_line_is_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "FILE").write_text("something else, of some length")
    (tmp_path / "FOLDER").mkdir()
    places = {"FILE": tmp_path / "FILE", "FILE/run": tmp_path / "FILE" / "run", "FOLDER": tmp_path / "FOLDER"}
    arguments = [str(places.get(argument, argument)) for argument in arguments]
    (tmp_path / "tiny.toml").write_text(TINY_TOML)
    elsewhere = [] if {"--output", "--resume"} & set(arguments) else ["--output", str(tmp_path / "run")]
    device = [] if "--device" in arguments else ["--device", "cpu"]
    assert main([str(tmp_path / "tiny.toml"), *elsewhere, *device, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_both_front_ends_say_the_same(
    run: Callable[..., tuple[int, str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["--device", "tpu"], ["--minutes", "nan"], ["--output", ""], ["--set", f"seed={2**70}"]):
        assert main(["smoke", *arguments]) == 2
        expected = capsys.readouterr().err
        assert run("pretrain", "smoke", *arguments) == (2, "", f"causal-arrow-lab: {expected}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "Cannot read the configuration"),
        ("binary", "is not a TOML file"),
        ("deep", "is not a TOML file"),
        ("a\0b", "There is no configuration"),
        ("x" * 5000, "Cannot read the configuration"),
        ("", "Cannot read the configuration"),
    ],
)
def test_a_configuration_that_is_no_text_file_is_one_sentence(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(random.Random(0).randbytes(1000))
    (tmp_path / "deep").write_text("a = " + "[" * 10**5)
    assert main([name]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.strip().splitlines()) == 1


def test_the_help_names_every_shipped_configuration() -> None:
    assert f"({', '.join(sorted(shipped_configs()))})" in HELP["config"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[batch]\nslot = 3", "Unknown setting 'slot' in \\[batch\\]"),
        ("[batch]\nslots = 2.5", "Expected int for batch.slots, got 2.5"),
        ("[shapes]\nvariables = [2]", "Expected 2 values for shapes.variables"),
        ("[model]\nencoder = 'mine'", "Unknown encoder 'mine'"),
        ("batch = 3", "Expected a table for \\[batch\\]"),
        ("[tasks]\ndistribution = 'shifted'", "shifted"),
        ("[tasks.weights]\nlattice = 1", "^Training tasks must not contain 'lattice': kept for evaluation.$"),
        ("[optimization]\nprecision = 'float8'", "Unknown precision 'float8'"),
        ("not toml", "is not a TOML file"),
    ],
)
def test_bad_configurations_are_refused_in_one_sentence(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "bad.toml"
    config.write_text(text)
    assert main([str(config), "--output", str(tmp_path / "run"), "--device", "cpu"]) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert re.search(message, captured.err)
    assert not (tmp_path / "run").exists()


def test_a_missing_configuration_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.toml")]) == 2
    assert "There is no configuration" in capsys.readouterr().err


# --- learning


def test_the_smoke_configuration_learns_something_visible(tmp_path: Path) -> None:
    config = read_config(CONFIGS_FOLDER / "smoke.toml")
    short = dataclasses.replace(config, optimization=dataclasses.replace(config.optimization, steps=0))
    untrained = pretrain(short, tmp_path / "untrained", device="cpu", echo=quiet)
    short = dataclasses.replace(config, optimization=dataclasses.replace(config.optimization, steps=80, decay_steps=20))
    trained = pretrain(short, tmp_path / "trained", device="cpu", echo=quiet)
    before = np.mean([score.ap for score in untrained])
    after = np.mean([score.ap for score in trained])
    assert after > before + 0.2
    records = [json.loads(line) for line in (tmp_path / "trained" / "log.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if record["event"] == "step"]
    assert losses[-1] < 0.75 * losses[0]
