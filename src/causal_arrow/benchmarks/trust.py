"""How often Arrow's probabilities were right, by kind of table: the page of calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from causal_arrow.benchmarks.document import Block, Cell, Grid, Heading, Paragraph
from causal_arrow.benchmarks.records import Record
from causal_arrow.benchmarks.suites import SUITES
from causal_arrow.benchmarks.summaries import DEVELOPMENT, summarize
from causal_arrow.errors import BenchmarkError
from causal_arrow.graphs.calibration import FINE_BINS
from causal_arrow.graphs.metrics import Reliability, pool

LEAST_PAIRS = 20
"""A share of fewer pairs says nothing."""

ROWS_APART = ("networks", "sachs")
"""Suites whose rows are different worlds; the rows of the others are put together."""


@dataclass(frozen=True)
class Question:
    """Something that the answer gives a probability of, and how the page asks about it."""

    name: str  # of the reliability in the records
    title: str
    text: str
    ranges: tuple[tuple[float, float], ...]  # of the probability, the lower end included; bins of a twentieth


QUESTIONS = (
    Question(
        "directions",
        "Directions",
        "Among pairs that are truly adjacent, whether or not they were found: how often the more probable direction "
        "was the true one, by its probability.",
        ((0.95, 1.0), (0.75, 0.95), (0.5, 0.75)),
    ),
    Question(
        "adjacencies",
        "Adjacencies",
        "How often two variables were truly adjacent, by the probability that they are.",
        ((0.95, 1.0), (0.5, 0.95), (0.05, 0.5), (0.0, 0.05)),
    ),
    Question(
        "ancestors",
        "Ancestors",
        "How often one variable was truly a cause of another, directly or through others, by the share of sampled "
        "graphs with a directed path.",
        ((0.95, 1.0), (0.5, 0.95), (0.05, 0.5), (0.0, 0.05)),
    ),
)


def share_right(table: Reliability, low: float, high: float) -> tuple[float, int]:
    """How often it came out where the probability was from `low` to `high`, and over how many pairs."""
    bins = slice(round(low * FINE_BINS), round(high * FINE_BINS))
    pairs = int(table.pairs[bins].sum())
    return (float(table.edges[bins].sum()) / pairs if pairs else float("nan")), pairs


def pooled_by_tables(records: Sequence[Record], name: str, method: str = "arrow") -> dict[str, Reliability]:
    """The reliability of a method in each kind of tables: a suite, or a row where rows are different worlds."""
    parts: dict[str, list[Reliability]] = {}
    for row in summarize(records).rows:
        entry = row.entry_of(method)
        if entry is None or (row.suite in ROWS_APART and len(entry.records) < 2):
            continue  # a single table tells how it went once
        tables = [table for record in entry.records if (table := getattr(record, name)) is not None]
        title = f"{row.suite}/{row.row}" if row.suite in ROWS_APART else row.suite
        parts.setdefault(title, []).extend(tables)
    return {title: pool(tables) for title, tables in parts.items() if tables}


def calibration_blocks(records: Sequence[Record]) -> list[Block]:
    """One table for each question, one line for each kind of tables."""
    arrows = {record.method_identity for record in records if record.method == "arrow"}
    if len(arrows) != 1:
        raise BenchmarkError(f"Expected records of one network for its calibration, got {len(arrows)}.")
    blocks: list[Block] = []
    for question in QUESTIONS:
        tables = pooled_by_tables(records, question.name)
        header = tuple(_range(low, high) for low, high in question.ranges)
        lines = tuple(
            (Cell(title), *(Cell(_share(table, low, high)) for low, high in question.ranges))
            for title, table in tables.items()
        )
        blocks += [
            Heading(question.title),
            Paragraph(question.text),
            Grid(("Tables", *header), lines),
        ]
        if question.name == "directions":
            blocks += _worst_and_best(tables)
    steered = [name for name, suite in SUITES.items() if suite.steered or name in DEVELOPMENT]
    return [*blocks, Paragraph(f"Suites by which choices were made: small (in part), {', '.join(steered)}.")]


def _range(low: float, high: float) -> str:
    if high == 1.0:
        return f"{low:.2f} or more"
    return f"below {high:.2f}" if low in (0.0, 0.5) and high in (0.05, 0.75) else f"{low:.2f} to {high:.2f}"


def _share(table: Reliability, low: float, high: float) -> str:
    share, pairs = share_right(table, low, high)
    return f"{_percent(share)} of {pairs:,}" if pairs >= LEAST_PAIRS else "–"


def _percent(share: float) -> str:
    """A share in percent, with a digit more where it is nearly all or nearly nothing."""
    return f"{share:.1%}" if 0.99 < share < 1 or 0 < share < 0.01 else f"{share:.0%}"


def sure_directions(records: Sequence[Record]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Where a direction given 0.95 or more was right most often, and where least often: the tables, and the share."""
    best, worst = _best_and_worst(pooled_by_tables(records, "directions")) or (("none", "–"), ("none", "–"))
    return best, worst


def _best_and_worst(tables: dict[str, Reliability]) -> tuple[tuple[str, str], tuple[str, str]] | None:
    shares = {
        title: share
        for title, table in tables.items()
        for share, pairs in [share_right(table, 0.95, 1.0)]
        if pairs >= LEAST_PAIRS
    }
    if not shares:
        return None
    ends = max(shares, key=lambda title: shares[title]), min(shares, key=lambda title: shares[title])
    return (ends[0], _percent(shares[ends[0]])), (ends[1], _percent(shares[ends[1]]))


def _worst_and_best(tables: dict[str, Reliability]) -> list[Block]:
    """Where a strong preference for a direction was right most often and least often, if it is known anywhere."""
    found = _best_and_worst(tables)
    if found is None:
        return []
    (best, most), (worst, least) = found
    sentence = (
        f"So a direction with a probability of 0.95 or more was right in {most} of the cases in {best}, and in {least} "
        f"in {worst}. A coin is right in half of them."
    )
    return [Paragraph(sentence)]
