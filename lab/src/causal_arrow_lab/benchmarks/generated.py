"""Datasets of the synthetic task distributions: the paper's, its shifts, other shapes, and hidden causes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from causal_arrow_lab.benchmarks.datasets import BoolArray, Dataset, FloatArray, draw_shape, unnamed

if TYPE_CHECKING:
    from causal_arrow_lab.synthetic.tasks import TaskDistribution


CONFOUNDED_OBSERVATIONS = 500
CONFOUNDED_VARIABLES = 24  # before any is hidden
MAX_HIDDEN = 4


def draw_paper_dataset(
    generator: np.random.Generator,
    *,
    only: str | None = None,
    observations: int | None = None,
    variables: int | None = None,
) -> Dataset:
    """Draw a dataset of the paper's distribution (section 4.1), or of one graph family, mechanism or noise in it."""
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    distribution = TaskDistribution.paper() if only is None else TaskDistribution.paper().only(only)
    return _draw_task(distribution, *draw_shape(generator, observations, variables), generator)


def draw_broad_dataset(generator: np.random.Generator, *, recipe: str | None = None) -> Dataset:
    """Draw a dataset of the mixture that arrow-base first trained on, or of one recipe in it."""
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    broad = TaskDistribution.broad()
    distribution = broad if recipe is None else TaskDistribution({recipe: broad.recipes[recipe]})
    return _draw_task(distribution, *draw_shape(generator), generator)


def draw_shifted_dataset(generator: np.random.Generator, *, shifts: tuple[str, ...]) -> Dataset:
    """Draw a dataset of the paper's distribution with graphs, functions or noise of kinds never trained on."""
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    return _draw_task(TaskDistribution.shifted(*shifts), *draw_shape(generator), generator)


def draw_held_out_dataset(generator: np.random.Generator, *, component: str | None = None) -> Dataset:
    """Draw a dataset of the paper's distribution with one held-out component, or with all of them mixed."""
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    return _draw_task(TaskDistribution.held_out(component), *draw_shape(generator), generator)


def draw_confounded_dataset(generator: np.random.Generator, *, hidden: int) -> Dataset:
    """Draw a dataset of the paper's distribution and remove `hidden` common causes, at most 4.

    Only sources with at least two children are hidden. The rest is then a DAG whose edges keep their meaning, and the
    children of a hidden variable depend on each other without an edge to explain it. Tasks with fewer than four such
    sources are drawn again, whatever `hidden` is, so that rows differ only in what is hidden.
    """
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    while True:
        task = _draw_task(TaskDistribution.paper(), CONFOUNDED_OBSERVATIONS, CONFOUNDED_VARIABLES, generator)
        adjacency = task.adjacency
        common_causes = np.flatnonzero(~adjacency.any(axis=0) & (adjacency.sum(axis=1) >= 2))
        if common_causes.size >= MAX_HIDDEN:
            break
    taken = generator.choice(common_causes, size=hidden, replace=False)
    kept = np.setdiff1d(np.arange(CONFOUNDED_VARIABLES), taken)
    confounded_pairs = _pairs_with_a_common_parent(adjacency[np.ix_(taken, kept)])
    return unnamed(task.data[:, kept], adjacency[np.ix_(kept, kept)], **task.details, confounded_pairs=confounded_pairs)


INDEPENDENT_NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "normal": lambda generator, shape: generator.standard_normal(shape),
    "uniform": lambda generator, shape: generator.uniform(size=shape),
    "lognormal": lambda generator, shape: generator.lognormal(size=shape),
}


def draw_independent_dataset(generator: np.random.Generator, *, noise: str) -> Dataset:
    """Draw independent columns: the graph is empty, and every edge found is false."""
    observations, variables = draw_shape(generator)
    data = INDEPENDENT_NOISE[noise](generator, (observations, variables))
    return unnamed(data, np.zeros((variables, variables), dtype=bool))


def _draw_task(
    distribution: TaskDistribution, observations: int, variables: int, generator: np.random.Generator
) -> Dataset:
    """Draw one task as a dataset with the names of its components."""
    import torch

    from causal_arrow_lab.synthetic.recipes import COMPONENTS

    torch_generator = torch.Generator().manual_seed(int(generator.integers(2**63)))
    batch = distribution.sample(tasks=1, observations=observations, variables=variables, generator=torch_generator)
    return unnamed(
        batch.data[0].double().numpy(),
        batch.adjacency[0].numpy(),
        graph_family=batch.names("graph_families")[0],
        mechanism=batch.names("mechanisms")[0],
        noises=sorted({COMPONENTS["noises"][code] for code in batch.noises[0].tolist()}),
    )


def _pairs_with_a_common_parent(edges: BoolArray) -> int:
    """Count the pairs of children that share a parent, given edges (parents, children)."""
    shared = edges.T.astype(int) @ edges.astype(int)
    return int(np.count_nonzero(np.triu(shared, k=1)))
