"""Tables of the calibration page: how often Arrow's probabilities were right, by kind of table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.calibration import CALIBRATION_FLOOR, FINE_BINS, Reliability, pool
from causal_arrow_lab.benchmarks.records import Record
from causal_arrow_lab.benchmarks.suites import SUITES
from document import Block, Cell, Grid, Heading, Paragraph
from summaries import DEVELOPMENT, Summary, reliability_by_method, summarize

MIN_PAIRS = 20
"""Shares of fewer pairs are not shown."""

ROWS_APART = ("networks", "sachs")
"""Suites whose rows are different worlds; the rows of the others are pooled."""


@dataclass(frozen=True)
class Statement:
    """Something that an answer gives a probability of, with its title and text on the page."""

    name: str  # of the reliability in the records
    title: str
    text: str
    ranges: tuple[tuple[float, float], ...]  # of the probability, the lower end included; bins of a twentieth


STATEMENTS = (
    Statement(
        "directions",
        "Directions",
        "Among pairs that are truly adjacent, whether or not they were found: how often the more probable direction "
        "was the true one, by its probability.",
        ((0.95, 1.0), (0.75, 0.95), (0.5, 0.75)),
    ),
    Statement(
        "adjacencies",
        "Adjacencies",
        "How often two variables were truly adjacent, by the probability that they are.",
        ((0.95, 1.0), (0.5, 0.95), (0.05, 0.5), (0.0, 0.05)),
    ),
    Statement(
        "ancestors",
        "Ancestors",
        "How often one variable was truly a cause of another, directly or through others, by the share of sampled "
        "graphs with a directed path.",
        ((0.95, 1.0), (0.5, 0.95), (0.05, 0.5), (0.0, 0.05)),
    ),
)


def share_right(table: Reliability, low: float, high: float) -> tuple[float, int]:
    """The share of pairs with a probability from `low` to `high` in which it was true, and their number."""
    bins = slice(round(low * FINE_BINS), round(high * FINE_BINS))
    pairs = int(table.pairs[bins].sum())
    return (float(table.edges[bins].sum()) / pairs if pairs else float("nan")), pairs


def pooled_by_tables(records: Sequence[Record], name: str, method: str = "arrow") -> dict[str, Reliability]:
    """The pooled reliability of a method for each suite, or for each row of ROWS_APART."""
    parts: dict[str, list[Reliability]] = {}
    for row in summarize(records).rows:
        entry = row.entry_of(method)
        if entry is None or (row.suite in ROWS_APART and len(entry.records) < 2):
            continue  # of one table
        tables = [table for record in entry.records if (table := getattr(record, name)) is not None]
        title = f"{row.suite}/{row.row}" if row.suite in ROWS_APART else row.suite
        parts.setdefault(title, []).extend(tables)
    return {title: pool(tables) for title, tables in parts.items() if tables}


def calibration_blocks(records: Sequence[Record]) -> list[Block]:
    """One table for each of STATEMENTS, with a line for each kind of tables."""
    arrows = {record.method_identity for record in records if record.method == "arrow"}
    if len(arrows) != 1:
        raise BenchmarkError(f"Expected records of one network for its calibration, got {len(arrows)}.")
    blocks: list[Block] = []
    for statement in STATEMENTS:
        tables = pooled_by_tables(records, statement.name)
        header = tuple(_range(low, high) for low, high in statement.ranges)
        lines = tuple(
            (Cell(title), *(Cell(_share(table, low, high)) for low, high in statement.ranges))
            for title, table in tables.items()
        )
        blocks += [Heading(statement.title), Paragraph(statement.text), Grid(("Tables", *header), lines)]
        if statement.name == "directions":
            blocks += _worst_and_best(tables)
    steered = [name for name, suite in SUITES.items() if suite.steered or name in DEVELOPMENT]
    return [*blocks, Paragraph(f"Suites by which choices were made: small (in part), {', '.join(steered)}.")]


def _range(low: float, high: float) -> str:
    if high == 1.0:
        return f"{low:.2f} or more"
    return f"below {high:.2f}" if low in (0.0, 0.5) and high in (0.05, 0.75) else f"{low:.2f} to {high:.2f}"


def _share(table: Reliability, low: float, high: float) -> str:
    share, pairs = share_right(table, low, high)
    return f"{_percent(share)} of {pairs:,}" if pairs >= MIN_PAIRS else "–"


def _percent(share: float) -> str:
    """A share in percent, with a digit more where it is nearly all or nearly nothing."""
    return f"{share:.1%}" if 0.99 < share < 1 or 0 < share < 0.01 else f"{share:.0%}"


def sure_directions(records: Sequence[Record]) -> tuple[tuple[str, str], tuple[str, str]]:
    """The kinds of tables where directions given 0.95 or more were right most and least often, with the shares."""
    best, worst = _best_and_worst(pooled_by_tables(records, "directions")) or (("none", "–"), ("none", "–"))
    return best, worst


def _best_and_worst(tables: dict[str, Reliability]) -> tuple[tuple[str, str], tuple[str, str]] | None:
    shares = {
        title: share
        for title, table in tables.items()
        for share, pairs in [share_right(table, 0.95, 1.0)]
        if pairs >= MIN_PAIRS
    }
    if not shares:
        return None
    ends = max(shares, key=lambda title: shares[title]), min(shares, key=lambda title: shares[title])
    return (ends[0], _percent(shares[ends[0]])), (ends[1], _percent(shares[ends[1]]))


def _worst_and_best(tables: dict[str, Reliability]) -> list[Block]:
    """A sentence about where sure directions were right most and least often, if that is known anywhere."""
    found = _best_and_worst(tables)
    if found is None:
        return []
    (best, most), (worst, least) = found
    sentence = (
        f"So a direction with a probability of 0.95 or more was right in {most} of the cases in {best}, and in {least} "
        f"in {worst}. A coin is right in half of them."
    )
    return [Paragraph(sentence)]


def calibration_errors(summary: Summary) -> list[Block]:
    """Expected calibration errors of the probabilities of directed edges by suite and method."""
    errors = []
    for suite in summary.suites:
        above_floor = reliability_by_method(summary, suite, "reliability_above_floor")
        for label, table in reliability_by_method(summary, suite).items():
            if label not in above_floor:
                continue
            above = above_floor[label].expected_calibration_error
            errors.append(
                (
                    Cell(suite),
                    Cell(label),
                    Cell(f"{table.expected_calibration_error:.4f}"),
                    Cell("–" if math.isnan(above) else f"{above:.4f}"),
                    Cell(f"{table.pairs.sum():,.0f}"),
                    Cell(f"{above_floor[label].pairs.sum():,.0f}"),
                )
            )
    return [
        Paragraph(
            "The expected calibration error of the probabilities of directed edges, over the ordered pairs of all "
            "datasets of a suite together: all of them, and those with a probability of at least "
            f"{CALIBRATION_FLOOR}."
        ),
        Grid(("Suite", "Method", "ECE", "ECE above 0.05", "Pairs", "Pairs above 0.05"), tuple(errors), text_columns=2),
    ]
