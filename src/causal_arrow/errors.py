"""What goes wrong for a user, by kind. Everything we raise on purpose is an ArrowError.

Each message is one sentence or two: what was expected, what came, what to do.
"""


class ArrowError(Exception):
    """Something the user can put right. The command line prints it and exits with status 2."""


class GraphError(ArrowError):
    """A graph is not what was asked for: it has a cycle, the wrong shape, or no consistent extension."""


class TableError(ArrowError, ValueError):
    """A table cannot be used as it is. Also a ValueError, as scikit-learn's users expect."""


class KnowledgeError(ArrowError):
    """Background knowledge contradicts itself or names unknown variables."""


class ConfigurationError(ArrowError):
    """A setting is outside its range, or settings do not fit together."""


class CheckpointError(ArrowError):
    """A file of weights or training state is missing, damaged, foreign or from a newer version."""


class TrainingError(ArrowError):
    """A pretraining run cannot go on: its loss is no longer a number, or has exploded."""


class BenchmarkError(ArrowError):
    """A benchmark suite or method cannot be run as asked."""
