"""Validation on tasks drawn once before training: NLL/p, nSHD, F1 and AP for each shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from causal_arrow.batches import TableBatch
from causal_arrow_lab.pretraining._stream import Shape, draw_shape, draw_tasks
from causal_arrow_lab.pretraining.config import ShapeConfig, ValidationConfig
from causal_arrow_lab.skeleton_order import NetworkOutput, SkeletonOrder
from causal_arrow_lab.synthetic.tasks import TaskBatch, TaskDistribution

# B tasks, P variables

MAX_SHAPES_SHOWN = 24


@dataclass(frozen=True)
class ValidationPart:
    """Tasks of one distribution and one shape."""

    distribution: str
    tasks: TaskBatch


@dataclass(frozen=True)
class Score:
    """Means over the tasks of one part. nSHD leaves out tasks whose graph is empty."""

    distribution: str
    observations: int
    variables: int
    tasks: int
    nll: float
    nshd: float
    f1: float
    ap: float


def draw_validation(config: ValidationConfig, training: ShapeConfig, device: torch.device) -> list[ValidationPart]:
    """Draw the fixed tasks of a configuration, equally many per distribution and shape, the same in every run."""
    shapes = [Shape(*shape) for shape in config.shapes]
    if config.drawn_shapes:
        random = np.random.default_rng([config.seed, config.drawn_shapes])
        shapes = [draw_shape(training, random) for _ in range(config.drawn_shapes)]
    cells = [(name, shape) for name in config.distributions for shape in shapes]
    count = max(1, config.tasks // len(cells))
    parts = []
    for index, (name, shape) in enumerate(cells):
        seed = int(np.random.SeedSequence((config.seed, index)).generate_state(1, np.uint32)[0])
        tasks = draw_tasks(TaskDistribution.for_training(name), count, shape, seed, device)
        parts.append(ValidationPart(name, tasks))
    return parts


def task_scores(graphs: SkeletonOrder, adjacency: Tensor) -> dict[str, Tensor]:
    """NLL/p, nSHD, F1 and AP of each task; nSHD is nan where the true graph is empty.  4 × (B,)"""
    variables = adjacency.shape[-1]
    truth = adjacency.bool()
    estimate = graphs.most_probable_dag().bool()
    edges = truth.sum(dim=(-2, -1))
    # A pair of variables is wrong unless both entries are right: a reversed edge counts once.
    wrong = (truth ^ estimate) | (truth ^ estimate).mT
    distance = wrong.triu(diagonal=1).sum(dim=(-2, -1))
    hits = (truth & estimate).sum(dim=(-2, -1))
    found = estimate.sum(dim=(-2, -1))
    f1 = torch.where(edges + found > 0, 2 * hits / (edges + found).clamp_min(1), torch.ones_like(hits).float())
    return {
        "nll": graphs.composite_nll(adjacency) / variables,
        "nshd": torch.where(edges > 0, distance / edges, torch.nan),
        "f1": f1,
        "ap": average_precisions(graphs.edge_marginals(), truth),
    }


def average_precisions(scores: Tensor, truth: Tensor) -> Tensor:
    """Average precision over the ordered pairs of each task; nan where the true graph is empty.  (B,)"""
    variables = truth.shape[-1]
    off_diagonal = ~torch.eye(variables, dtype=torch.bool, device=truth.device)
    ranked = scores[:, off_diagonal].argsort(dim=-1, descending=True)
    positives = truth[:, off_diagonal].gather(-1, ranked).float()  # (B, P(P−1)), most probable first
    ranks = torch.arange(1, positives.shape[-1] + 1, device=truth.device)
    precision = positives.cumsum(dim=-1) / ranks
    return (precision * positives).sum(dim=-1) / positives.sum(dim=-1)


@torch.no_grad()
def validate(
    forward: Callable[[TableBatch], NetworkOutput],
    parts: Iterable[ValidationPart],
    tasks_that_fit: Callable[[Shape], int],
) -> list[Score]:
    """The scores of each part."""
    scores = []
    for part in parts:
        shape = Shape.of(part.tasks.tables)
        pieces = [
            task_scores(forward(piece.tables).skeleton_order, piece.truth.adjacency)
            for piece in part.tasks.split(tasks_that_fit(shape))
        ]
        means = {name: torch.cat([piece[name] for piece in pieces]).nanmean().item() for name in pieces[0]}
        scores.append(Score(part.distribution, shape.observations, shape.variables, len(part.tasks), **means))
    return scores


def mean_score(scores: list[Score]) -> dict[str, float]:
    """Means over all parts."""
    return {name: float(np.mean([asdict(score)[name] for score in scores])) for name in ("nll", "nshd", "f1", "ap")}


def format_scores(scores: list[Score]) -> str:
    """Format scores as a table, with only the means if there are too many shapes."""
    shown = scores if len(scores) <= MAX_SHAPES_SHOWN else []
    total = sum(score.tasks for score in scores)
    mean = {"distribution": "mean", "observations": "", "variables": "", "tasks": total, **mean_score(scores)}
    head = f"{'distribution':<12} {'n':>6} {'p':>4} {'tasks':>6} {'NLL/p':>7} {'nSHD':>6} {'F1':>6} {'AP':>6}"
    row = (
        "{distribution:<12} {observations:>6} {variables:>4} {tasks:>6} {nll:>7.4f} {nshd:>6.3f} {f1:>6.3f} {ap:>6.3f}"
    )
    return "\n".join([head, *(row.format(**cells) for cells in (*map(asdict, shown), mean))])
