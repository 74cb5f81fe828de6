"""discover_together(): several tables, each with its own answer; tables of one shape share a pass of the network."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import infer, infer_together
from causal_arrow.discovery.pipeline import ReadyTable, prepare
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.many.manifest import NamedTable


@dataclass(frozen=True, eq=False)
class Outcome:
    """The discovery for a table, or the error instead, with the index of the table and its share of the time."""

    index: int
    result: Discovery | Exception
    seconds: float


def discover_together(tables: Sequence[NamedTable]) -> Iterator[Outcome]:
    """The outcome for each table as soon as it is there.

    Each answer is the one that `discover` gives to the table alone, up to rounding, and an error with one table does
    not affect the others.
    """
    clock = _Clock()
    groups: dict[tuple[int, int | None], dict[int, ReadyTable]] = {}  # with one network and one size of chunks
    for index, table in enumerate(tables):
        try:
            ready = prepare(table.source, table.settings)
            groups.setdefault((id(ready.network), ready.settings.observations_per_chunk), {})[index] = ready
            clock.charge(index)
        except Exception as error:
            yield clock.outcome(index, error)
    for group in groups.values():
        yield from _read(group, clock)


class _Clock:
    """How much of the time each table has taken."""

    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.seconds: dict[int, float] = {}

    def charge(self, *indices: int) -> None:
        """Share the time since the last call among these tables."""
        now = time.perf_counter()
        for index in indices:
            self.seconds[index] = self.seconds.get(index, 0.0) + (now - self.last) / len(indices)
        self.last = now

    def outcome(self, index: int, result: Discovery | Exception) -> Outcome:
        """The outcome for a table, which also takes the time since the last call."""
        self.charge(index)
        return Outcome(index, result, self.seconds[index])


def _read(group: Mapping[int, ReadyTable], clock: _Clock) -> Iterator[Outcome]:
    """Read the tables of a group together, or one after the other if that fails."""
    first = next(iter(group.values()))
    network, chunk = first.network, first.settings.observations_per_chunk
    ways = [(index, way) for index, table in group.items() for way in range(len(table.ways))]
    found: dict[int, dict[int, GraphDistribution]] = {index: {} for index in group}
    waiting = dict(group)
    try:
        for several in infer_together(network, [group[index].ways[way] for index, way in ways], chunk):
            clock.charge(*(ways[number][0] for number in several))
            for number, distribution in several.items():
                index, way = ways[number]
                found[index][way] = distribution
                if len(found[index]) == len(group[index].ways):
                    yield clock.outcome(index, _conclusion(waiting.pop(index), found[index]))
    except (MemoryError, RuntimeError):  # together they may need more memory than there is
        for index, table in waiting.items():
            try:
                alone = {way: infer(network, values, chunk) for way, values in enumerate(table.ways)}
            except Exception as error:
                yield clock.outcome(index, error)
            else:
                yield clock.outcome(index, _conclusion(table, alone))


def _conclusion(table: ReadyTable, found: Mapping[int, GraphDistribution]) -> Discovery | Exception:
    try:
        return table.conclude([found[way] for way in range(len(table.ways))])
    except Exception as error:
        return error
