"""Synthetic causal discovery tasks: the stream that a model learns from.

recipes names what can be chosen and how often, choices draws from it. A task of numbers is made by graph_families →
mechanisms, noise, strengths → equations; kinds, conditions, experiments and instruments come in on the way. Tasks of
categories alone are made by discrete, those that tell nothing beyond an equivalence class by normal_wishart. columns
and holes change what the table shows of a task, tables puts all of it together, and tasks is the door.
"""

from causal_arrow.synthetic.tasks import TaskBatch, TaskDistribution

__all__ = ["TaskBatch", "TaskDistribution"]
