"""What to adjust for: a valid set for each graph, and whether there is one where causes may be hidden."""

# K graphs, P variables

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.uncertainty import ADJUSTMENTS, GRAPHS_PER_PIECE, adjustment_sets
from causal_arrow.errors import check_choice
from causal_arrow.graphs.dag import transitive_closure

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Set = tuple[int, ...]


@dataclass(frozen=True)
class AdjustmentCounts:
    """In how many graphs an effect is estimated by which set, is zero, or cannot be had by any adjustment."""

    sets: dict[Set, int]
    without_effect: int
    not_identified: int

    @property
    def graphs(self) -> int:
        """K"""
        return sum(self.sets.values()) + self.without_effect + self.not_identified


def count_adjustments(
    graphs: Bools, treatment: int, outcome: int, kind: str = "optimal", hidden: Bools | None = None
) -> AdjustmentCounts:
    """The sets that the graphs (K, P, P) ask for.

    `hidden` (K, P, P), symmetric, marks pairs that share a hidden cause. Where the set of the chosen kind leaves a path
    through a hidden cause open, the largest candidate is tried: all ancestors of treatment and outcome that are not
    affected by the treatment on its way. If even that leaves one open, no set of variables will do (van der Zander,
    Liśkiewicz and Textor 2019), and the graph counts as not identified.
    """
    check_choice("adjustment", kind, list(ADJUSTMENTS))
    if hidden is None:
        counts = adjustment_sets(graphs, treatment, outcome, kind)
        without = counts.pop(None, 0)
        return AdjustmentCounts(_by_frequency(counts), without, 0)
    found: Counter[Set | None] = Counter()
    without = lost = 0
    for start in range(0, len(graphs), GRAPHS_PER_PIECE):
        piece, shared = graphs[start : start + GRAPHS_PER_PIECE], hidden[start : start + GRAPHS_PER_PIECE]
        descends = transitive_closure(piece)
        effective = descends[:, treatment, outcome]
        without += int((~effective).sum())
        piece, shared, descends = piece[effective], shared[effective], descends[effective]
        first = ADJUSTMENTS[kind](piece, descends, treatment, outcome)
        last = all_ancestors(descends, treatment, outcome)
        first_closes = closes_back_doors(piece, shared, treatment, outcome, first)
        last_closes = closes_back_doors(piece, shared, treatment, outcome, last)
        lost += int((~first_closes & ~last_closes).sum())
        chosen = np.where(first_closes[:, None], first, last)[first_closes | last_closes]
        found.update(tuple(np.flatnonzero(members).tolist()) for members in chosen)
    return AdjustmentCounts(_by_frequency(found), without, lost)


def closes_back_doors(graphs: Bools, hidden: Bools, treatment: int, outcome: int, members: Bools) -> Bools:
    """Whether the set `members` (K, P) leaves no path open but the causal ones from treatment to outcome.  (K,)

    The edges that start causal paths are taken out. In what is left treatment and outcome must be m-separated: apart in
    the augmented graph over ancestors, where all that a chain of colliders joins is adjacent (Richardson 2003).
    """
    descends = transitive_closure(graphs)
    on_path = descends[:, :, outcome].copy()
    on_path[:, outcome] = True
    rest = graphs.copy()
    rest[:, treatment, :] &= ~on_path
    ends = members.copy()
    ends[:, [treatment, outcome]] = True
    ancestors = ends | (transitive_closure(rest) & ends[:, None, :]).any(axis=2)
    within = ancestors[:, :, None] & ancestors[:, None, :]
    itself = np.eye(graphs.shape[1], dtype=bool)
    districts = transitive_closure(hidden & within) | itself
    reaches = ((rest & within) | itself).astype(np.float64)  # [j, k]: j is k or a cause of k
    augmented = reaches @ districts @ reaches.swapaxes(1, 2) > 0
    open_ = ~members & ancestors
    connected = transitive_closure(augmented & open_[:, :, None] & open_[:, None, :])
    return np.asarray(~connected[:, treatment, outcome])


def all_ancestors(descends: Bools, treatment: int, outcome: int) -> Bools:
    """Ancestors of treatment and outcome that the treatment does not affect on its way to the outcome.  (K, P)"""
    on_path = descends[:, treatment, :] & descends[:, :, outcome]
    on_path[:, outcome] = True
    affected = on_path | (descends & on_path[:, :, None]).any(axis=1)
    chosen = (descends[:, :, treatment] | descends[:, :, outcome]) & ~affected
    chosen[:, treatment] = False
    return np.asarray(chosen)


def _by_frequency(counts: Counter[Set | None]) -> dict[Set, int]:
    named = {members: count for members, count in counts.items() if members is not None}
    return dict(sorted(named.items(), key=lambda entry: (-entry[1], entry[0])))
