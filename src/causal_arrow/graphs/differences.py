"""The edges in which two graphs differ."""

from __future__ import annotations

Edge = tuple[str, str]


def edge_differences(ours: set[Edge], theirs: set[Edge]) -> dict[str, list[Edge]]:
    """The edges in which two graphs differ: only the first has them, only the second, or both in another way.

    An edge is "directed in one" if one of the graphs has it undirected; it is given as the other directs it.
    """
    joined, their_joined = ({frozenset(edge) for edge in edges} for edges in (ours, theirs))
    missing, extra = joined - their_joined, their_joined - joined
    undirected = {frozenset(edge) for edges in (ours, theirs) for edge in edges if edge[::-1] in edges}
    differing = {frozenset(edge) for edge in ours ^ theirs} - missing - extra
    return {
        "missing": sorted(edge for edge in ours if frozenset(edge) in missing),
        "extra": sorted(edge for edge in theirs if frozenset(edge) in extra),
        "reversed": sorted(edge for edge in ours if frozenset(edge) in differing - undirected),
        "directed_in_one": sorted(edge for edge in ours & theirs if frozenset(edge) in differing & undirected),
    }
