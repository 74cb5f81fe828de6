"""Knowledge in the words of time: "x -> y at lag 0", "x -> y except at lag 1", tiers and roots among variables.

An edge without a lag stands for all lags, which a required edge cannot: it needs one. Tiers, roots, leaves and pairs
without a hidden cause are about variables. A variable's own past is free unless an edge names it.
"""

# P variables, L lags, C variables of the context

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import KnowledgeError
from causal_arrow.graphs.knowledge import ANY, Edge, Knowledge
from causal_arrow.series.distribution import WindowKnowledge
from causal_arrow.text import closest

Bools = NDArray[np.bool_]

WHEN = re.compile(r"(?P<name>.+?)\s+(?P<how>except at|at)\s+lags?\s+(?P<lags>\d[\d\s,to–-]*(?:and\s+\d+)?)")
SPAN = re.compile(r"(\d+)\s*(?:to|–|-)\s*(\d+)")


def window_knowledge(
    known: Knowledge,
    names: Sequence[str],
    context: Sequence[str],
    lags: int,
    *,
    always_set: Sequence[str] = (),
) -> WindowKnowledge:
    """The knowledge as matrices for P variables, C variables of the context, and L lags."""
    if known.beliefs:
        raise KnowledgeError("Beliefs are about tables, not yet about time series: leave them out.")
    count, everything = len(names), [*names, *context]
    index = {name: number for number, name in enumerate(everything)}
    required, forbidden = np.zeros((2, lags + 1, len(everything), count), dtype=bool)
    for edge in known.required:
        cause, effect, chosen = _where(edge, index, lags, count)
        if edge[1] in context:
            raise KnowledgeError(
                f"The required edge '{edge[0]} -> {edge[1]}' leads to {edge[1]!r}, which has no causes."
            )
        if len(chosen) != 1 and edge[0] not in context:
            example = f"{edge[0]} -> {WHEN.sub('', edge[1]) or edge[1]} at lag 1"
            raise KnowledgeError(f"The required edge '{edge[0]} -> {edge[1]}' needs one lag, as in '{example}'.")
        required[np.ix_(chosen[:1], cause, effect)] = True
    for edge in known.forbidden:
        cause, effect, chosen = _where(edge, index, lags, count)
        forbidden[np.ix_(chosen, cause, effect)] = True
    if known.search_space:
        allowed = np.zeros_like(forbidden)
        for edge in known.search_space:
            cause, effect, chosen = _where(edge, index, lags, count)
            allowed[np.ix_(chosen, cause, effect)] = True
        allowed[1:, np.arange(count), np.arange(count)] = True
        forbidden |= ~allowed
    about_variables = replace_edges(known).compile(everything).forbidden[:, :count].copy()
    fixed = [index[name] for name in always_set if name in names]
    about_variables[:, fixed] = True
    about_variables[np.arange(count), np.arange(count)] = False
    forbidden |= about_variables
    forbidden[1:, :, fixed] = True
    forbidden[0, np.arange(count), np.arange(count)] = False
    if (clash := np.argwhere(required & forbidden)).size:
        lag, j, k = clash[0].tolist()
        raise KnowledgeError(
            f"The edge '{everything[j]} -> {names[k]} at lag {lag}' is required, but other knowledge forbids it: give "
            "up one of them."
        )
    now = replace_edges(
        known,
        required=[(names[j], names[k]) for j, k in np.argwhere(required[0, :count])],
        forbidden=[(names[j], names[k]) for j, k in np.argwhere(forbidden[0, :count])],
    ).compile(everything)
    inside = now.rearranged(np.arange(count)).without_hidden_causes_of(always_set)
    return WindowKnowledge(
        inside,
        required[1:, :count],
        forbidden[1:, :count],
        required[0, count:],
        forbidden[0, count:],
    )


def replace_edges(known: Knowledge, required: Sequence[Edge] = (), forbidden: Sequence[Edge] = ()) -> Knowledge:
    """The knowledge about variables, with these edges in place of those that name lags."""
    return Knowledge(
        required=required,
        forbidden=forbidden,
        tiers=known.tiers,
        roots=known.roots,
        leaves=known.leaves,
        no_hidden_cause=known.no_hidden_cause,
    )


def _where(edge: Edge, index: dict[str, int], lags: int, variables: int) -> tuple[list[int], list[int], list[int]]:
    """Which causes, effects and lags an edge stands for."""
    cause, (effect, chosen) = edge[0], _with_lags(edge, index, lags)
    causes, effects = _members(cause, index), _members(effect, index)
    return causes, [effect for effect in effects if effect < variables], chosen


def _with_lags(edge: Edge, index: dict[str, int], lags: int) -> tuple[str, list[int]]:
    """The name of the effect, and the lags that follow it in words; all of them without words."""
    found = WHEN.fullmatch(edge[1])
    if edge[1] in index or found is None:
        return edge[1], list(range(lags + 1))
    named = {int(number) for number in re.findall(r"\d+", found["lags"])}
    for low, high in SPAN.findall(found["lags"]):
        named |= set(range(int(low), int(high) + 1))
    if beyond := sorted(named - set(range(lags + 1))):
        raise KnowledgeError(
            f"The knowledge '{edge[0]} -> {edge[1]}' names lag {beyond[0]}, but only lags 0 to {lags} are searched."
        )
    if found["how"] != "at":
        named = set(range(lags + 1)) - named
    return found["name"], sorted(named)


def _members(name: str, index: dict[str, int]) -> list[int]:
    """The variable of this name, or all of them."""
    if name == ANY and ANY not in index:
        return list(index.values())
    if name not in index:
        near = closest(name, index)
        hint = f" (did you mean {near!r}?)" if near is not None else ""
        raise KnowledgeError(f"Knowledge names a variable that is not in the table: {name!r}{hint}.")
    return [index[name]]
