"""Synthetic causal discovery tasks: the stream that a model learns from.

graph_families → mechanisms, noise, strengths → equations make a task; columns disturbs its data; recipes names what can
be chosen and how often; tasks is the door.
"""

from causal_arrow.synthetic.tasks import TaskBatch, TaskDistribution

__all__ = ["TaskBatch", "TaskDistribution"]
