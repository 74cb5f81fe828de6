"""Adjustment sets: a valid one for each graph, or the finding that hidden causes leave none."""

# K graphs, P variables

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.uncertainty import ADJUSTMENTS, GRAPHS_PER_PIECE
from causal_arrow.errors import check_choice
from causal_arrow.graphs.dag import transitive_closure

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Set = tuple[int, ...]

MAX_TRIED = 60  # graphs without a valid set that are searched for the pairs that block it


@dataclass(frozen=True)
class AdjustmentCounts:
    """Number of graphs that ask for each set; the others have a causal path from outcome to treatment."""

    sets: dict[Set, int]  # the most frequent first
    graphs: int
    with_path: int  # graphs with a causal path from treatment to outcome
    reversed: int = 0  # graphs with a causal path from outcome to treatment, which ask for no set
    not_identified: int = 0  # graphs whose set is not valid, because no set closes a path through a hidden cause
    blocking: tuple[Set, ...] = ()
    """Pairs whose hidden cause leaves these graphs without a valid set, the most frequent first."""


def in_pieces(*arrays: Bools) -> Iterator[tuple[Bools, ...]]:
    """Some graphs at a time, to bound the memory: the same slice of every array (K, ...)."""
    for start in range(0, len(arrays[0]), GRAPHS_PER_PIECE):
        yield tuple(each[start : start + GRAPHS_PER_PIECE] for each in arrays)


def most_frequent_first(counts: Counter[Set]) -> dict[Set, int]:
    """Sets or pairs with their counts; of equally frequent ones, the first by its indices first."""
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def count_adjustments(
    graphs: Bools, treatment: int, outcome: int, kind: str = "optimal", hidden: Bools | None = None
) -> AdjustmentCounts:
    """The sets that the graphs (K, P, P) ask for, given that the treatment comes before the outcome.

    A graph with a causal path asks for the set of the `kind`, one without for the causes of the treatment. Where that
    leaves a path through a `hidden` cause (K, P, P) open, the largest candidate is tried: all ancestors of both that
    the treatment does not affect on its way. If even that leaves one open, no set will do (van der Zander,
    Liśkiewicz and Textor 2019), and the graph counts as not identified.
    """
    check_choice("adjustment", kind, list(ADJUSTMENTS))
    found: Counter[Set] = Counter()
    blocking: Counter[Set] = Counter()
    with_path = backwards = lost = 0
    for piece, *more in in_pieces(graphs) if hidden is None else in_pieces(graphs, hidden):
        descends = transitive_closure(piece)
        forwards = ~descends[:, outcome, treatment]
        backwards += int((~forwards).sum())
        piece, descends = piece[forwards], descends[forwards]
        shared = more[0][forwards] if more else None
        members, valid = valid_sets(piece, descends, treatment, outcome, kind, shared)
        with_path += int(descends[:, treatment, outcome].sum())
        found.update(tuple(np.flatnonzero(row).tolist()) for row in members)
        if shared is not None and not valid.all():
            tried = np.flatnonzero(~valid)[: max(0, MAX_TRIED - lost)]
            some, reached = piece[tried], descends[tried]

            def is_valid(hidden: Bools, some: Bools = some, reached: Bools = reached) -> Bools:
                return valid_sets(some, reached, treatment, outcome, kind, hidden)[1]

            blocking.update(blocking_pairs(shared[tried], treatment, is_valid, np.ones(len(tried), dtype=bool)))
        lost += int((~valid).sum())
    pairs = tuple(most_frequent_first(blocking))
    return AdjustmentCounts(most_frequent_first(found), len(graphs), with_path, backwards, lost, pairs)


def valid_sets(
    graphs: Bools, descends: Bools, treatment: int, outcome: int, kind: str = "optimal", hidden: Bools | None = None
) -> tuple[Bools, Bools]:
    """The adjustment set of each graph (K, P), and whether it is valid (K,)."""
    path = descends[:, treatment, outcome, None]
    members = np.where(path, ADJUSTMENTS[kind](graphs, descends, treatment, outcome), graphs[:, :, treatment])
    if hidden is None:
        return members, np.ones(len(graphs), dtype=bool)
    closes = closes_back_doors(graphs, hidden, treatment, outcome, members)
    largest = all_ancestors(descends, treatment, outcome)
    also = closes_back_doors(graphs, hidden, treatment, outcome, largest)
    return np.where((also & ~closes)[:, None], largest, members), closes | also


def blocking_pairs(hidden: Bools, treatment: int, is_valid: Callable[[Bools], Bools], lost: Bools) -> Counter[Set]:
    """Count for each pair with the treatment the `lost` graphs (K,) without a valid set because of its hidden cause.

    `is_valid` gives the graphs (K,) with a valid set under other hidden causes (K, P, P).
    """
    found: Counter[Set] = Counter()
    for other in np.flatnonzero(hidden[lost][:, treatment].any(axis=0)).tolist():
        here = hidden[:, treatment, other] & lost
        alone = np.zeros_like(hidden)
        without = hidden.copy()
        for j, k in ((treatment, other), (other, treatment)):
            alone[:, j, k] = hidden[:, j, k]
            without[:, j, k] = False
        if count := int((here & (~is_valid(alone) | is_valid(without))).sum()):
            found[treatment, other] = count
    return found


def instruments(graphs: Bools, treatment: int, outcome: int, hidden: Bools) -> Floats:
    """Share of the graphs in which a variable affects the treatment, and is tied to the outcome only by that.  (P,)"""
    # Without the edges out of the treatment, it has then no common cause with the outcome, hidden or not.
    shared = hidden | np.eye(graphs.shape[1], dtype=bool)
    rest = graphs.copy()
    rest[:, treatment, :] = False
    reaches = (transitive_closure(rest) | np.eye(graphs.shape[1], dtype=bool)).astype(np.float64)  # [j, k]: j causes k
    tied = reaches.swapaxes(1, 2) @ (shared @ reaches[:, :, [outcome]]) > 0  # (K, P, 1)
    found = (reaches[:, :, treatment] > 0) & ~tied[:, :, 0]
    found[:, [treatment, outcome]] = False
    return np.asarray(found.mean(axis=0))


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
    affected = affected_on_the_way(descends, treatment, outcome)
    chosen = (descends[:, :, treatment] | descends[:, :, outcome]) & ~affected
    chosen[:, treatment] = False
    return np.asarray(chosen)


def affected_on_the_way(descends: Bools, treatment: int, outcome: int) -> Bools:
    """Variables on the paths from treatment to outcome, the outcome, and all that these affect.  (K, P)"""
    on_path = descends[:, treatment, :] & descends[:, :, outcome]
    on_path[:, outcome] = True
    return np.asarray(on_path | (descends & on_path[:, :, None]).any(axis=1))
