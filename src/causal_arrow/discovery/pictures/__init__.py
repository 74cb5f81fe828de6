"""Pictures of an answer, with matplotlib alone: the causal graph in layers, the same compared with a known truth, and
the edge probabilities as a heat map.

In a graph, wide dark lines are probable edges and thin light ones less so. A filled arrowhead is a direction that the
network strongly prefers, an open one a moderate preference, and a dashed line with an open head a weak one. A dashed
arc with heads at both ends is a hidden common cause. Where only the most probable edges are drawn, "+3" at a box says
how many of its edges are not, and a dashed box that none of them is.

Names in letters that no installed font has stay as they are in SVG, where the reader's fonts count; elsewhere the
number of the column stands for them.
"""

from causal_arrow.discovery.pictures.comparison import draw_comparison, save_comparison
from causal_arrow.discovery.pictures.graph import MOST_EDGES, draw_graph, layout_of, save_graph
from causal_arrow.discovery.pictures.heat_map import draw_probabilities, save_probabilities

__all__ = [
    "MOST_EDGES",
    "draw_comparison",
    "draw_graph",
    "draw_probabilities",
    "layout_of",
    "save_comparison",
    "save_graph",
    "save_probabilities",
]
