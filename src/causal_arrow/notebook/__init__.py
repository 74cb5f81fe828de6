"""The graph of the page in Jupyter, marimo and VS Code: choose, require, forbid, ask, in step with Python."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from causal_arrow.discovery.discovery import Discovery
from causal_arrow.errors import ConfigurationError, warn

if TYPE_CHECKING:
    from causal_arrow.notebook._widget import GraphWidget

NEEDED = ("anywidget", "pydantic")
INSTALL = 'pip install "causal-arrow[notebook]"'


def explore(found: Discovery) -> GraphWidget | Discovery:
    """Show the graph of a discovery as a widget to argue with, in a notebook.

    Without the packages of a widget it is the discovery itself, which shows its picture, and an ArrowWarning says what
    to install.

    Parameters
    ----------
    found
        What `discover` returned, for a table.

    Examples
    --------
    >>> from causal_arrow import discover, explore, load_example
    >>> found = discover(load_example("hospital"))
    >>> shown = explore(found)  # the last line of a cell
    """
    found = getattr(found, "discovery_", found)
    if not isinstance(found, Discovery):
        raise ConfigurationError(f"Expected the discovery of a table, got {type(found).__name__}.")
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        warn(f"The widget needs {' and '.join(missing)}: {INSTALL}. Here is the picture instead.")
        return found
    from causal_arrow.notebook._widget import GraphWidget

    return GraphWidget(found)
