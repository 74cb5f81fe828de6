"""discover(): from a table to an answer. `Arrow`, the command line and the benchmark all go through here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, constraints_on, set_in_every
from causal_arrow.discovery.arranged import Arranged, arrange
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.hidden import read_again
from causal_arrow.discovery.inference import (
    Workload,
    abilities,
    check_memory,
    infer,
    model_name,
    ready_model,
    training_range,
    workload,
)
from causal_arrow.discovery.settings import Settings, as_knowledge
from causal_arrow.errors import ConfigurationError, Remedy
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Constraints, Knowledge
from causal_arrow.inputs import checked
from causal_arrow.network import Network
from causal_arrow.progress import Progress, ignore, progress_bar
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.reading import check_readable, read_table
from causal_arrow.tables.report import TableReport, groups_of_copies, inspect_table
from causal_arrow.tables.scales import chosen_reading, readings
from causal_arrow.tables.table import Abilities, Finding, Table
from causal_arrow.text import counted, listed

if TYPE_CHECKING:
    from causal_arrow.series.discovery import SeriesDiscovery


@overload
def discover(
    source: Any, settings: Settings | None = None, *, lags: int | Literal["auto"], **changes: Any
) -> SeriesDiscovery: ...


@overload
def discover(
    source: Any,
    settings: Settings | None = None,
    *,
    before: Callable[[Workload], None] | None = None,
    progress: bool | None = None,
    **changes: Any,
) -> Discovery: ...


@checked
def discover(
    source: Any,
    settings: Settings | None = None,
    *,
    before: Callable[[Workload], None] | None = None,
    progress: bool | None = None,
    **changes: Any,
) -> Discovery | SeriesDiscovery:
    """Find the causal graph of a table; of a time series or a panel where `lags` are given.

    Parameters
    ----------
    source
        A `Table`, or whatever `read_table` takes.
    settings
        The model, what is known, and how to decode; those of `Arrow` by default.
    before
        Called with the `Workload` (sizes and memory) once the table is read and before the network starts. A table that
        needs more memory than there is gets a TableError first.
    progress
        Whether to show a bar for a long table on standard error; by default only on a terminal.
    **changes
        Settings, reading options (`ReadOptions`) and options of a time series (`lags`, `time`, `unit` and others of
        `SeriesOptions`) by name; they override those of `settings`. Arguments of `Knowledge`, such as
        `randomized="treat"`, add to what is known.

    Examples
    --------
    >>> from causal_arrow import Settings, discover, load_example
    >>> found = discover(load_example("sachs"), Settings(decode="f1"))
    >>> found.answer.observations, len(found.answer.names)
    (853, 11)
    >>> discover(load_example("greenhouse"), lags=2, time="day").answer.lags
    2
    """
    settings = (settings or Settings()).changed(**changes)
    if settings.series.are_given:
        from causal_arrow.series.discovery import discover_series

        return discover_series(source, settings, before=before, progress=progress)
    with progress_bar(progress) as report:
        ready = prepare(source, settings, report)
        if before is not None:
            before(ready.workload)
        chunk, count = ready.settings.observations_per_chunk, len(ready.ways)
        distributions = [
            infer(ready.network, way, chunk, part_of(report, index, count)) for index, way in enumerate(ready.ways)
        ]
    return ready.conclude(distributions)


def part_of(progress: Progress, index: int, count: int) -> Progress:
    """Report the progress of one of several passes as part of the whole."""
    return lambda stage, share: progress(stage, (index + share) / count)


@dataclass(frozen=True, eq=False)
class ReadyTable:
    """A table ready for the network: read, inspected, arranged, its knowledge compiled."""

    table: Table
    report: TableReport
    ways: tuple[Arranged, ...]  # each with other columns on a log scale
    knowledge: Knowledge
    constraints: Constraints
    network: Network
    settings: Settings
    workload: Workload

    def conclude(self, distributions: Sequence[GraphDistribution]) -> Discovery:
        """The discovery, given the network's distribution over graphs for each way of reading the table."""
        findings = [*self.report.findings, *self._observations_finding()]
        chosen = 0
        if len(distributions) > 1:
            bits = [float(distribution.uncertainty()) for distribution in distributions]
            chosen = chosen_reading(bits)
            findings.append(scale_finding(self.ways[-1].log_columns, chosen, bits))
        way, chunk = self.ways[chosen], self.settings.observations_per_chunk
        distribution, about_hidden_causes = read_again(self.network, way, distributions[chosen], chunk)
        copies = [way.arrangement[copy] for copy in way.copies]
        answer = Answer(
            names=self.table.names,
            distribution=distribution,
            knowledge=self.knowledge,
            decode=self.settings.decode,
            threshold=self.settings.threshold,
            arrangement=way.arrangement,
            observations=self.table.observations,
            model=model_name(self.settings.model),
            findings=(*findings, *about_hidden_causes),
            log_columns=way.log_columns,
            columns=self.table.columns,
            experiments=self.table.experiments,
            environment=self.table.environment,
            table_checksum=way.checksum,
            directions=self.settings.directions,
            direction_temperature=direction_temperature(self.table, copies),
            hidden=self.settings.hidden,
            hidden_threshold=self.settings.hidden_threshold,
            compiled=self.constraints,
        )
        return Discovery(answer, self.table, self.report, self.settings, self.network)

    def _observations_finding(self) -> tuple[Finding, ...]:
        """A note on the rows that were read: those of a long table read one by one, or of a wide one at all."""
        read, count = len(self.ways[0].rows), counted(self.table.observations, "observation")
        if read == self.table.observations:
            return ()
        message = f"{read:,} of the {count} are read, drawn evenly"
        if not self.ways[0].is_long:
            message += ": accuracy drops where there are about as many rows as variables."
        elif self.network.has_statistics:
            message = f"Statistics of all {count}; {read:,} of them, drawn evenly, are read one by one."
        else:
            message += "."
        return (Finding("observations_read", "note", (), message, (Remedy("observations"),)),)


def prepare(source: Any, settings: Settings, progress: Progress = ignore) -> ReadyTable:
    """All that `discover` does with a table before the network reads it."""
    if settings.series.are_given:
        raise ConfigurationError("Time series are read one by one: call discover for each, or leave out lags.")
    settings = settings.for_source(source)
    knowledge = as_knowledge(settings.knowledge)
    network = ready_model(settings.model, settings.device, settings.precision)
    able = abilities(settings.model, network)
    table = read_for(able, source, settings.reading, progress)
    arranged = arrange(table, settings.max_rows)
    work = workload(network, len(arranged.rows), table.variables, settings.observations_per_chunk)
    check_memory(work, network)
    # Compiled before the network runs: a misspelled name should not have to wait for it.
    always_set = set_in_every(table.observations, table.experiments)
    constraints = constraints_on(arranged.names, knowledge, table.environment, always_set)
    report = inspect_table(table, training_range(settings.model), able)
    arranged = arranged.reading_once(groups_of_copies(report.findings))
    scales = readings(settings.scale, table.log_candidates[list(arranged.arrangement)])
    ways = tuple(arranged.with_logarithms(columns) for columns in scales)
    return ReadyTable(table, report, ways, knowledge, constraints, network, settings, work)


def read_for(able: Abilities, source: Any, options: ReadOptions, progress: Progress = ignore) -> Table:
    """Read the table in a source for a network with these abilities; one that was read already is only checked."""
    unchanged = not set(options.to_dict()) - {"missing"}
    if isinstance(source, Table) and unchanged and (options.missing in ("auto", "model") or source.observed.all()):
        check_readable(source, able)
        return source
    return read_table(source, options, abilities=able, progress=progress)


def scale_finding(names: Sequence[str], chosen: int, bits: Sequence[float]) -> Finding:
    """Say which scale is used, and why."""
    given, logarithms = (f"{each:.2f}" for each in bits)
    is_ = "is" if len(names) == 1 else "are"
    reason = (
        f"{is_} analyzed on a log scale: uncertainty per edge is {logarithms} bits, against {given} untransformed"
        if chosen
        else f"{is_} analyzed untransformed: uncertainty per edge is {given} bits, against {logarithms} on a log scale"
    )
    skewed = "which is skewed" if len(names) == 1 else "which are skewed"
    message = f"{listed(names)}, {skewed}, {reason}. The scale 'given' or 'log' overrules this."
    return Finding("log_scale", "note", tuple(names), message)


# Directions: the network has learned from synthetic tables, and is surer of directions than real tables bear out. The
# suite `real-orders` of causal-arrow-lab has 271 real tables whose causal order is partly known. On the half for
# development, directions that the network gave a probability of .8 to .95 were right in 63 of 100 cases. Dividing the
# log-odds by a number that grows with the share of columns of two values mends most of that: the log loss per edge
# falls from .768 to .606 there, and from .888 to .665 on the other half, which had no part in the choice.
#
#     python -m causal_arrow_lab.benchmarks.real_orders --methods arrow-tempered,arrow
#     python -m causal_arrow_lab.benchmarks.real_orders --methods arrow-tempered,arrow --held-out
#
# A temperature leaves the causal order as it is, and so the graph that "map" shows without knowledge.

TEMPERATURE = 1.5  # of a table without two-valued columns
BINARY_FACTOR = 6.0  # if all columns are two-valued


def direction_temperature(table: Table, copies: Iterable[int] = ()) -> float:
    """Return the number to divide the order scores of a table by; columns that only copy others do not count."""
    read = np.delete(table.values, list(copies), axis=1)
    binary = sum(_has_two_values(column) for column in read.T)
    return float(TEMPERATURE * BINARY_FACTOR ** (binary / read.shape[1]))


def _has_two_values(column: NDArray[np.float64]) -> bool:
    least, most = np.nanmin(column), np.nanmax(column)
    return bool(least < most and ((column == least) | (column == most) | np.isnan(column)).all())
