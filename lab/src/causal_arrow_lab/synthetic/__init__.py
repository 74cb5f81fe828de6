"""Synthetic causal discovery tasks, the stream that networks learn from.

`recipes` names the components and how often they are chosen. `graph_families`, `noise`, `mechanisms` and `structure`
make tasks of numbers, `discrete` those of categories only, `columns` what a table shows, `tables` all of it together.
"""

from causal_arrow_lab.synthetic.tasks import TaskBatch, TaskDistribution

__all__ = ["TaskBatch", "TaskDistribution"]
