"""Reports of pretraining runs from their logs: the figure of the paper's appendix D, and the last validation.

Several runs are compared at equal time: the differences of their configurations, and the results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.datasets import FloatArray
from document import Block, Cell, Grid, Heading, Paragraph, Picture, write_blocks
from figures import panels, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_FILE = "log.jsonl"
ROLLING_ITERATIONS = 25  # as in the paper
SCORES = {"nll": "NLL / p", "nshd": "nSHD", "f1": "F1", "ap": "AP"}
RUN_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
Counts = np.ndarray[Any, np.dtype[np.int64]]
VALIDATION_MEASURES = {"nshd": ("nSHD", "#0072B2", "s"), "f1": ("F1", "#D55E00", "o"), "ap": ("AP", "#009E73", "^")}


@dataclass(frozen=True)
class Trajectory:
    """Step and validation records of a run, by step. Steps repeated after going back to a saved state count once."""

    steps: tuple[dict[str, Any], ...]
    """Each `loss` is the mean over `iterations` iterations."""
    validations: tuple[dict[str, Any], ...]
    start: dict[str, Any]
    """The last start of the run: its configuration, and the number of parameters."""


def is_training_run(folder: Path) -> bool:
    """Whether a folder was written by pretraining."""
    return (folder / LOG_FILE).is_file()


def read_trajectory(path: Path) -> Trajectory:
    """Read the log of a run, ignoring an incomplete last line."""
    events: dict[str, dict[int, dict[str, Any]]] = {"step": {}, "validation": {}}
    start: dict[str, Any] = {}
    before = now = 0.0  # seconds in training: at this start, and at this record
    reached = 0  # the step of the last record: a loss is the mean since then
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BenchmarkError(f"Line {number} of {path} is damaged. Delete it to draw the rest.") from error
        if record.get("event") == "start":
            # The run went back to this step: ignore what an earlier attempt logged after it.
            for kept in events.values():
                for step in [step for step in kept if step > record.get("step", 0)]:
                    del kept[step]
            start, reached = record, record.get("step", 0)
            before = now = max(
                (kept["seconds"] for by_step in events.values() for kept in by_step.values()), default=0.0
            )
        elif record.get("event") in events:
            now = record["seconds"] = before + record["seconds"] if "seconds" in record else now
            if record["event"] == "step":
                record["iterations"] = max(record["step"] - reached, 1)
            reached = record["step"]
            events[record["event"]][record["step"]] = record
    steps, validations = (tuple(events[name][step] for step in sorted(events[name])) for name in events)
    return Trajectory(steps, validations, start)


def write_training_report(folder: Path, *, figure_format: str = "png", output: Path | None = None) -> Path:
    """Write the trajectory and the last validation of a run, and return the path of the report."""
    trajectory = read_trajectory(folder / LOG_FILE)
    if not trajectory.steps:
        raise BenchmarkError(f"{folder / LOG_FILE} has no steps yet.")
    output = output or folder / "report.md"
    picture = output.parent / f"{output.stem}-figures" / f"trajectory.{figure_format}"
    save_figure(draw_trajectory(trajectory), picture)
    blocks: list[Block] = [
        Heading("Pretraining run", 1),
        Paragraph(_where_it_stands(trajectory)),
        Picture(
            picture, "Negative log-likelihood for each variable in training and validation, and validation measures."
        ),
    ]
    if trajectory.validations:
        blocks += [Heading("Last validation"), _validation_table(trajectory.validations[-1])]
    return write_blocks(blocks, output)


def write_comparison(folders: Sequence[Path], *, figure_format: str = "png", output: Path | None = None) -> Path:
    """Write a comparison of runs: their differences, and the last validation of each. Return its path."""
    for folder in folders:
        if not is_training_run(folder):
            raise BenchmarkError(f"Expected folders of pretraining runs to compare, but {folder} has no {LOG_FILE}.")
    trajectories = {name: read_trajectory(folder / LOG_FILE) for name, folder in _names(folders).items()}
    for name, trajectory in trajectories.items():
        if not trajectory.validations:
            raise BenchmarkError(f"The run {name} has not been validated yet: there is nothing to compare.")
    output = output or Path("comparison.md")
    picture = output.parent / f"{output.stem}-figures" / f"runs.{figure_format}"
    save_figure(draw_comparison(trajectories), picture)
    blocks: list[Block] = [
        Heading("Pretraining runs compared", 1),
        Grid(("Run", "Settings that are not the same in all"), tuple(_differences(trajectories)), text_columns=2),
        Heading("Where they ended"),
        _comparison_table(trajectories),
        Picture(picture, "Validation of each run over its time in training."),
    ]
    return write_blocks(blocks, output)


def _names(folders: Sequence[Path]) -> dict[str, Path]:
    """Folders by their last part, or by the whole path if the last part is not unique."""
    names = [folder.resolve().name for folder in folders]
    return {
        (name if names.count(name) == 1 else str(folder)): folder for name, folder in zip(names, folders, strict=True)
    }


def _differences(trajectories: Mapping[str, Trajectory]) -> list[tuple[Cell, ...]]:
    settings = {name: _flat(trajectory.start.get("config", {})) for name, trajectory in trajectories.items()}
    keys = list(dict.fromkeys(key for flat in settings.values() for key in flat))
    different = [key for key in keys if len({json.dumps(flat.get(key)) for flat in settings.values()}) > 1]
    return [
        (Cell(name), Cell(", ".join(f"{key} = {json.dumps(flat[key])}" for key in different if key in flat) or "–"))
        for name, flat in settings.items()
    ]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables to one with dots in its keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return flat


def _comparison_table(trajectories: Mapping[str, Trajectory]) -> Grid:
    header = ("Run", "Parameters", "Minutes", "Steps", "Tasks seen", *SCORES.values())
    rows = []
    for name, trajectory in trajectories.items():
        last, parameters = trajectory.validations[-1], trajectory.start.get("parameters")
        rows.append(
            (
                Cell(name),
                Cell("–" if parameters is None else f"{parameters:,}"),
                Cell(f"{last['seconds'] / 60:.1f}"),
                Cell(f"{last['step']:,}"),
                Cell(f"{last.get('tasks', 0):,}"),
                *_scores(last["mean"]),
            )
        )
    return Grid(header, tuple(rows))


def draw_comparison(trajectories: Mapping[str, Trajectory]) -> Figure:
    """Draw validation likelihood and average precision of each run over its minutes."""
    figure, axes = panels(2, width=11, height=3.8)
    for number, (name, trajectory) in enumerate(trajectories.items()):
        minutes = [record["seconds"] / 60 for record in trajectory.validations]
        style: dict[str, Any] = {"color": RUN_COLORS[number % len(RUN_COLORS)], "marker": "os^Dv"[number % 5]}
        for axis, measure in zip(axes, ("nll", "ap"), strict=True):
            values = [record["mean"][measure] for record in trajectory.validations]
            axis.plot(minutes, values, label=name, linewidth=1.3, markersize=5, **style)
    for axis, title in zip(axes, ("Negative log-likelihood / p", "AP"), strict=True):
        axis.set(xlabel="Minutes", ylabel=f"{title}, validation")
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def draw_trajectory(trajectory: Trajectory) -> Figure:
    """Draw the training loss with validation points, and nSHD, F1 and AP in validation.

    The dark line is a mean over about 25 iterations. If records are of fewer, a faint line shows them.
    """
    figure, axes = panels(2, width=11, height=3.6)
    loss_axis, measure_axis = axes
    steps = np.array([record["step"] for record in trajectory.steps])
    losses = np.array([record["loss"] for record in trajectory.steps], dtype=np.float64)
    iterations = np.array([record["iterations"] for record in trajectory.steps])
    smooth, covered = rolling_mean(losses, iterations, ROLLING_ITERATIONS)
    if np.median(covered) > np.median(iterations):
        label = f"training, {_of_iterations(iterations)}"
        loss_axis.plot(steps, losses, color="#0072B2", alpha=0.25, linewidth=0.8, label=label)
    loss_axis.plot(steps, smooth, color="#0B3C68", linewidth=1.3, label=f"training, {_of_iterations(covered)}")
    at = [record["step"] for record in trajectory.validations]
    means = [record["mean"] for record in trajectory.validations]
    marks: dict[str, Any] = {"linewidth": 1.1, "markersize": 5.5, "zorder": 3}
    if means:
        loss_axis.plot(at, [mean["nll"] for mean in means], color="#D55E00", marker="o", label="validation", **marks)
    # The first losses are far above all others, and would dominate the axis.
    shown = np.concatenate([smooth[len(smooth) // 50 :], [mean["nll"] for mean in means]])
    low, high = min(shown.min(), np.quantile(losses, 0.02)), np.quantile(shown, 0.98)
    loss_axis.set_ylim(low - 0.08 * (high - low + 1e-9), high + 0.25 * (high - low + 1e-9))
    loss_axis.set(xlabel="Iteration", ylabel="Negative log-likelihood / p")
    for name, (title, color, marker) in VALIDATION_MEASURES.items():
        if means:
            measure_axis.plot(at, [mean[name] for mean in means], color=color, marker=marker, label=title, **marks)
    measure_axis.set(xlabel="Iteration", ylabel="Validation", ylim=(0, max(1.02, measure_axis.get_ylim()[1])))
    measure_axis.set_xlim(loss_axis.get_xlim())
    for axis in axes:
        axis.ticklabel_format(axis="x", style="plain")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        handles, labels = axis.get_legend_handles_labels()
        if handles:
            axis.legend(
                handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9
            )
    return figure


def rolling_mean(losses: FloatArray, iterations: Counts, window: int) -> tuple[FloatArray, Counts]:
    """The mean loss of the last iterations at each record, and the number of iterations.  (N,), (N,)

    Over the whole records, at least one, whose iterations are closest to `window`.
    """
    means, covered = np.empty_like(losses), np.empty_like(iterations)
    for end in range(len(losses)):
        first, total = end, iterations[end]
        while first > 0 and abs(total + iterations[first - 1] - window) < abs(total - window):
            first -= 1
            total += iterations[first]
        members = slice(first, end + 1)
        means[end], covered[end] = np.average(losses[members], weights=iterations[members]), total
    return means, covered


def _of_iterations(counts: Counts) -> str:
    """Label of a line of losses that are means over these numbers of iterations."""
    usual = int(np.median(counts))
    return "each iteration" if usual == 1 else f"mean of {usual} iterations"


def _where_it_stands(trajectory: Trajectory) -> str:
    last = trajectory.steps[-1]
    sentence = f"Step {last['step']:,}, training loss {last['loss']:.4f}"
    if "tasks" in last:
        sentence += f", {last['tasks']:,} tasks seen"
    return f"{sentence}."


def _validation_table(record: dict[str, Any]) -> Grid:
    from causal_arrow_lab.pretraining.validation import MAX_SHAPES_SHOWN

    header = ("Distribution", "n", "p", "Tasks", *SCORES.values())
    scores: Sequence[dict[str, Any]] = record.get("scores", [])
    rows = [
        (
            Cell(score["distribution"]),
            *(Cell(f"{score[name]:,}") for name in ("observations", "variables", "tasks")),
            *_scores(score),
        )
        for score in (scores if len(scores) <= MAX_SHAPES_SHOWN else [])
    ]
    rows.append((Cell("mean"), Cell(""), Cell(""), Cell(""), *_scores(record["mean"])))
    return Grid(header, tuple(rows))


def _scores(means: Mapping[str, float]) -> tuple[Cell, ...]:
    return tuple(Cell(f"{means[name]:.4f}") for name in SCORES)
