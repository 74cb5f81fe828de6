"""Pictures of an answer with matplotlib: the causal graph in layers, the graph compared with a known truth, and the
edge probabilities as a heat map.

In a graph, wide dark lines are probable edges and thin light ones improbable. A filled arrowhead shows a strong
preference for a direction, an open one a moderate preference, a dashed line with an open head a weak one. A dashed arc
with heads at both ends is a hidden common cause. If only the most probable edges are drawn, "+3" at a box counts its
edges that are not, and a dashed box has edges of which none is drawn.

Names in letters that no installed font has stay as they are in SVG, which uses the reader's fonts; elsewhere they are
replaced by the number of the column.
"""

from causal_arrow.discovery.pictures.graph import (
    MAX_EDGES,
    draw_comparison,
    draw_graph,
    draw_probabilities,
    layout_of,
    save_comparison,
    save_graph,
    save_probabilities,
)

__all__ = [
    "MAX_EDGES",
    "draw_comparison",
    "draw_graph",
    "draw_probabilities",
    "layout_of",
    "save_comparison",
    "save_graph",
    "save_probabilities",
]
