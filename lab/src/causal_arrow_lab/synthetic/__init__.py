"""Synthetic causal discovery tasks, the stream that networks learn from.

`recipes` names the components and how often they are chosen, `choices` draws from them. Tasks of numbers are made by
graph_families → mechanisms and noise → equations, with kinds, experiments and instruments on the way; tasks of
categories only by `discrete`, those that identify only an equivalence class by `equivalence`. `columns` changes what a
table shows, `tables` combines all of it, and `tasks` holds the public names.
"""

from causal_arrow_lab.synthetic.tasks import TaskBatch, TaskDistribution

__all__ = ["TaskBatch", "TaskDistribution"]
