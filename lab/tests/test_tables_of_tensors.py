"""Tables of the lab's kinds for the product: tensors are read as arrays are, and scales of drawn tasks are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from causal_arrow import Arrow, read_table
from causal_arrow.errors import TableError
from causal_arrow.graphs.dag import topological_order
from causal_arrow.tables.scales import log_candidates
from causal_arrow_lab import TaskDistribution

VALUES = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize(
    "source",
    [
        torch.tensor(VALUES, requires_grad=True),
        torch.tensor(VALUES),
        [torch.tensor(row, requires_grad=True) for row in VALUES],
        {"x1": torch.tensor(VALUES[:, 0], requires_grad=True), "x2": VALUES[:, 1], "x3": VALUES[:, 2].tolist()},
    ],
    ids=lambda source: type(source).__name__,
)
def test_tensors_give_the_table_of_arrays(source: Any) -> None:
    assert np.allclose(read_table(source).values, VALUES, rtol=1e-12)


def test_half_precision_tensors_are_read() -> None:
    assert np.allclose(read_table(torch.tensor(VALUES).bfloat16()).values, VALUES, atol=0.02)


@pytest.mark.parametrize("source", [torch.empty(60, 3, device="meta"), torch.tensor(VALUES).to_sparse()])
def test_tensors_without_numbers_to_read_are_refused(source: torch.Tensor) -> None:
    with pytest.raises(TableError, match="cannot be read"):
        read_table(source)


@pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")
def test_the_reading_is_right_for_most_tables() -> None:
    """Tables that act by factors, exponentials of the paper's tasks, and tables of sums of positive parts."""
    tasks, observations, variables = 30, 200, 10
    batch = TaskDistribution.paper().sample(tasks, observations, variables, torch.Generator().manual_seed(5))
    random = np.random.default_rng(5)
    factors = sums = 0
    for values, adjacency in zip(batch.data.double().numpy(), batch.adjacency.numpy(), strict=True):
        factors += bool(Arrow().fit(np.exp(values)).answer_.log_columns)
        parts = random.lognormal(size=values.shape)
        for variable in topological_order(adjacency):
            causes = adjacency[:, variable]
            parts[:, variable] += parts[:, causes] @ random.uniform(0.3, 1.5, size=int(causes.sum()))
        assert log_candidates(parts).any()
        sums += bool(Arrow().fit(parts).answer_.log_columns)
    assert factors > 0.85 * tasks
    assert sums < 0.15 * tasks
