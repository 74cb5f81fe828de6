"""Choose the hidden causes to show: pairs that stand out from the level of their table.

In many real tables nearly every pair gets nearly the same probability of a hidden common cause. Such a table does not
distinguish hidden causes.
"""

# N observations, P variables

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from causal_arrow.discovery.arranged import Arranged, Hashes, hashes_of_ranks, mixed
from causal_arrow.discovery.inference import infer
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network import Network
from causal_arrow.network.arrays import quantile_table
from causal_arrow.tables.table import Bools, Column, Finding, Floats, Table

HIDDEN_CAUSE = 0.5  # the probability above which two variables are shown to share a hidden cause
STANDS_OUT = 2.0  # a pair stands out if its log-odds exceed the median of the table by more than this
MIN_PAIRS = 10  # with fewer pairs a table has no level, and every pair above the threshold stands out


@dataclass(frozen=True, eq=False)
class Level:
    """The usual probability of hidden causes in a table, and the pairs that stand out from it."""

    median: float  # probability of all pairs; 0 if there are fewer than MIN_PAIRS
    standing_out: Bools  # (P, P), of any probability


def level_of(probabilities: Floats, exempt: Bools) -> Level:
    """The level of a table, from the probabilities of pairs (P, P) that are not `exempt`."""
    pairs = np.triu(~exempt, 1)
    if pairs.sum() < MIN_PAIRS:
        return Level(0.0, ~exempt)
    median = float(np.median(probabilities[pairs]))
    least = log_odds(np.array(median)) + STANDS_OUT
    return Level(median, (log_odds(probabilities) > least) & ~exempt)


def is_flagged(probabilities: Floats, threshold: float = HIDDEN_CAUSE) -> Bools:
    """True for pairs above a threshold, with probabilities rounded as in files."""
    return np.asarray(np.round(probabilities, 6) > threshold)


def log_odds(probabilities: Floats) -> Floats:
    """The log-odds of probabilities, bounded, and rounded so that processors agree on what stands out."""
    bounded = np.clip(np.round(probabilities, 6), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(bounded) - np.log1p(-bounded))


# A second reading

MAX_FLAGGED = 0.2  # share of flagged pairs beyond which a table is read again
MIN_FLAGGED = 3  # pairs that have to be flagged for that, in small tables


def read_again(
    network: Network,
    arranged: Arranged,
    found: GraphDistribution,
    observations_per_chunk: int | None = None,
) -> tuple[GraphDistribution, tuple[Finding, ...]]:
    """The distribution with the hidden causes that survive a second reading, and a note about it."""
    first = found.confounding_probabilities()
    if first is None:
        return found, ()
    flagged = is_flagged(first[np.ix_(arranged.read, arranged.read)][np.triu_indices(len(arranged.read), 1)])
    if flagged.sum() < MIN_FLAGGED or flagged.mean() <= MAX_FLAGGED:
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
    note = Finding("second_reading", "note", (), message)
    return replace(found, confounding_logits=logits.astype(np.float32)), (note,)


def on_normal_scores(arranged: Arranged) -> Arranged:
    """Replace columns that have an order by normal scores; ties are broken at random, always the same way.

    A long table is reduced to the observations that are read one by one. Signs, units and orders do not matter.
    """
    values = arranged.values
    ordered = [
        index for index, column in enumerate(arranged.columns) if column.kind != "category" or len(column.levels) == 2
    ]
    ranks = np.stack([hashes_of_ranks(column) for column in values.T], axis=1)
    with np.errstate(over="ignore"):
        rows = mixed(ranks[:, arranged.read]).sum(axis=1, dtype=np.uint64)
        ascending = rows.argsort(kind="stable")
        repeats = np.empty_like(rows)  # how often a row has occurred before; without pandas, as bare machines are
        repeats[ascending] = np.arange(len(rows)) - np.searchsorted(rows[ascending], rows[ascending])
        rows = mixed(rows + mixed(repeats))
        columns = list(arranged.columns)
        for index in ordered:
            key = mixed(rows ^ ranks[:, index]).sum(dtype=np.uint64)
            values[:, index] = _normal_scores(values[:, index], mixed(rows + key), rows)
            columns[index] = Column(columns[index].name)
    table = Table(values, tuple(columns), intervened=arranged.intervened)
    order, rows = tuple(range(len(columns))), np.arange(len(values))
    return Arranged(table, table.columns, order, {}, rows, is_long=False, checksum="", copies=arranged.copies)


def _normal_scores(column: Floats, noise: Hashes, rows: Hashes) -> Floats:
    """Normal scores by rank; `noise` breaks ties, and `rows` decides which end of the column is its upper one.  (N,)"""
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
