"""Which hidden causes to show: pairs that stand out from the level of their table.

In many real tables nearly every pair gets nearly the same probability of a hidden common cause. That is no finding
about pairs: such a table does not distinguish hidden causes.
"""

# N observations, P variables

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.arranged import ArrangedLongTable, ArrangedTable, hashes_of_ranks, mixed
from causal_arrow.discovery.inference import infer
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network.arrays import quantile_table
from causal_arrow.network.protocol import Network
from causal_arrow.tables.table import Column, Finding

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

HIDDEN = ("none", "standing-out", "all")
"""Choices for the hidden causes to show: no pair, pairs that stand out from their table, or all above the threshold."""
HIDDEN_CAUSE = 0.5
"""Above this probability, two variables are shown to share a hidden cause, unless another threshold is given."""

STANDS_OUT = 2.0
"""A pair stands out if its log-odds exceed the median of the table by more than this."""
MIN_PAIRS = 10
"""With fewer pairs a table has no level, and every pair above the threshold stands out."""


@dataclass(frozen=True, eq=False)
class Level:
    """How probable hidden causes are in a table, and which pairs are more probable than that."""

    median: float
    """Of the probabilities of all pairs; 0 for a table of few."""
    standing_out: Bools  # (P, P), of any probability


def level_of(probabilities: Floats, exempt: Bools) -> Level:
    """The level of a table, given the probabilities of pairs (P, P), without the pairs that are `exempt`."""
    pairs = np.triu(~exempt, 1)
    if pairs.sum() < MIN_PAIRS:
        return Level(0.0, ~exempt)
    median = float(np.median(probabilities[pairs]))
    least = log_odds(np.array(median)) + STANDS_OUT
    return Level(median, (log_odds(probabilities) > least) & ~exempt)


def is_flagged(probabilities: Floats, threshold: float = HIDDEN_CAUSE) -> Bools:
    """Which pairs are above a threshold, by the digits that files have."""
    return np.asarray(np.round(probabilities, 6) > threshold)


def log_odds(probabilities: Floats) -> Floats:
    """The log-odds of probabilities, bounded, and to a few digits: what stands out must not depend on a processor."""
    bounded = np.clip(np.round(probabilities, 6), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(bounded) - np.log1p(-bounded))


# A second reading


Hashes = NDArray[np.uint64]

MAX_FLAGGED = 0.2
"""Share of flagged pairs beyond which a table is read again."""
MIN_FLAGGED = 3
"""Pairs that have to be flagged for that, in small tables."""


def read_again(
    network: Network,
    arranged: ArrangedTable | ArrangedLongTable,
    found: GraphDistribution,
    observations_per_chunk: int | None = None,
) -> tuple[GraphDistribution, tuple[Finding, ...]]:
    """The distribution with the hidden causes that survive a second reading, and what to say about it."""
    first = found.confounding_probabilities()
    if first is None or not _is_read_again(first[np.ix_(arranged.read, arranged.read)]):
        return found, ()
    second = infer(network, on_normal_scores(arranged), observations_per_chunk).confounding_probabilities()
    assert second is not None
    assert found.confounding_logits is not None
    logits = np.where(second >= first, found.confounding_logits, log_odds(second))
    before, after = (int(np.triu(is_flagged(each), 1).sum()) for each in (first, np.minimum(first, second)))
    pairs = len(first) * (len(first) - 1) // 2
    message = (
        f"{before:,} of {pairs:,} pairs seemed to share a hidden cause. The table was read again with normal scores in "
        f"place of its numbers, which leaves {after:,} of them."
    )
    return replace(found, confounding_logits=logits.astype(np.float32)), (
        Finding("second_reading", "note", (), message),
    )


def _is_read_again(probabilities: Floats) -> bool:
    pairs = is_flagged(probabilities[np.triu_indices(len(probabilities), 1)])
    return bool(pairs.sum() >= MIN_FLAGGED and pairs.mean() > MAX_FLAGGED)


def on_normal_scores(arranged: ArrangedTable | ArrangedLongTable) -> ArrangedTable:
    """The table with normal scores for all columns that have an order; ties are broken at random, always the same way.

    Of a long table the observations that the network reads one by one. Signs, units, names of levels, and the order of
    rows and columns change nothing.
    """
    values, intervened = _values_read(arranged)
    ordered = [index for index, column in enumerate(arranged.columns) if _has_order(column)]
    ranks = np.stack([hashes_of_ranks(column) for column in values.T], axis=1)
    with np.errstate(over="ignore"):
        rows = mixed(ranks[:, arranged.read]).sum(axis=1, dtype=np.uint64)
        rows = mixed(rows + mixed(_repeated(rows)))
        columns = list(arranged.columns)
        for index in ordered:
            key = mixed(rows ^ ranks[:, index]).sum(dtype=np.uint64)
            values[:, index] = _normal_scores(values[:, index], mixed(rows + key), rows)
            columns[index] = Column(columns[index].name)
    return ArrangedTable(tuple(columns), arranged.arrangement, values, intervened, copies=arranged.copies)


def _values_read(arranged: ArrangedTable | ArrangedLongTable) -> tuple[Floats, Bools | None]:
    """A copy of the values that the network reads one by one, and which of them experiments have set.  (N, P) each"""
    if isinstance(arranged, ArrangedTable):
        return arranged.values.copy(), arranged.intervened
    drawn, order = arranged.drawn, list(arranged.arrangement)
    values = np.stack([arranged.column(index)[drawn] for index in range(len(order))], axis=1)
    marks = arranged.table.intervened
    return values, None if marks is None else marks[drawn][:, order]


def _has_order(column: Column) -> bool:
    return column.kind != "category" or len(column.levels) == 2


def _repeated(rows: Hashes) -> Hashes:
    """How many times each number came before.  (N,)"""
    order = np.argsort(rows, kind="stable")
    in_order = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    lengths = np.diff(np.append(starts, len(rows)))
    earlier = np.empty(len(rows), dtype=np.uint64)
    earlier[order] = np.arange(len(rows)) - np.repeat(starts, lengths)
    return earlier


def _normal_scores(column: Floats, noise: Hashes, rows: Hashes) -> Floats:
    """Normal scores by rank; `noise` decides ties, and `rows` which end of the column counts as its upper one.  (N,)"""
    there = ~np.isnan(column)
    values = column[there]
    middle = np.median(values)
    with np.errstate(over="ignore"):
        below, above = (rows[there][each].sum(dtype=np.uint64) for each in (values < middle, values > middle))
    sign = 1.0 if above >= below else -1.0
    order = np.lexsort((noise[there], sign * values))
    scores = np.empty(len(values))
    scores[order] = sign * quantile_table(len(values))[1::2]
    result = np.full(len(column), np.nan)
    result[there] = scores
    return result
