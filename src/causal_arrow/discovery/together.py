"""discover_together(): several tables, each with its own answer; those of one shape share a pass of the network."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from causal_arrow.discovery.inference import infer, infer_together
from causal_arrow.discovery.pipeline import Discovery, ReadyTable, Settings, prepare
from causal_arrow.graphs.graph_distribution import GraphDistribution


@dataclass(frozen=True, eq=False)
class Request:
    """What `discover` is asked: a table, and how to go about it."""

    source: Any
    settings: Settings = field(default_factory=Settings)
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a request: its place among them, the discovery or why there is none, and its share of the time."""

    place: int
    result: Discovery | Exception
    seconds: float


def discover_together(requests: Sequence[Request]) -> Iterator[Outcome]:
    """The outcome of each request, as soon as it is there.

    The answers are those that `discover` gives to each request alone, up to rounding. What goes wrong with one table
    concerns that table only.
    """
    clock = _Clock()
    ready: dict[int, ReadyTable] = {}
    for place, request in enumerate(requests):
        try:
            ready[place] = prepare(request.source, request.settings, request.reading)
            clock.charge(place)
        except Exception as error:
            yield clock.outcome(place, error)
    for places in _with_one_network(ready):
        yield from _read({place: ready[place] for place in places}, clock)


class _Clock:
    """Who has taken how much of the time."""

    def __init__(self) -> None:
        self.last = time.perf_counter()
        self.seconds: dict[int, float] = {}

    def charge(self, *places: int) -> None:
        """Share the time since the last call among these."""
        now = time.perf_counter()
        for place in places:
            self.seconds[place] = self.seconds.get(place, 0.0) + (now - self.last) / len(places)
        self.last = now

    def outcome(self, place: int, result: Discovery | Exception) -> Outcome:
        self.charge(place)
        return Outcome(place, result, self.seconds[place])


def _with_one_network(ready: Mapping[int, ReadyTable]) -> list[list[int]]:
    """Places of the tables that the same network reads in the same chunks and precision."""
    groups: dict[tuple[int, int | None, str], list[int]] = {}
    for place, table in ready.items():
        settings = table.settings
        key = id(table.network), settings.observations_per_chunk, settings.precision
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def _read(ready: Mapping[int, ReadyTable], clock: _Clock) -> Iterator[Outcome]:
    """What the one network of these tables says of them: together, and one after the other if that fails."""
    any_one = next(iter(ready.values()))
    how = any_one.settings.observations_per_chunk, any_one.settings.precision
    whose = [(place, way) for place, table in ready.items() for way in range(len(table.ways))]
    said: dict[int, dict[int, GraphDistribution]] = {place: {} for place in ready}
    waiting = dict(ready)
    try:
        for together in infer_together(any_one.network, [ready[place].ways[way] for place, way in whose], *how):
            clock.charge(*(whose[index][0] for index in together))
            for index, distribution in together.items():
                place, way = whose[index]
                said[place][way] = distribution
                if len(said[place]) == len(ready[place].ways):
                    yield clock.outcome(place, _conclusion(waiting.pop(place), said[place]))
    except (MemoryError, RuntimeError):  # together they may need more memory than there is
        for place, table in waiting.items():
            try:
                ways = {way: infer(table.network, values, *how) for way, values in enumerate(table.ways)}
            except Exception as error:
                yield clock.outcome(place, error)
            else:
                yield clock.outcome(place, _conclusion(table, ways))


def _conclusion(table: ReadyTable, said: Mapping[int, GraphDistribution]) -> Discovery | Exception:
    try:
        return table.conclude([said[way] for way in range(len(table.ways))])
    except Exception as error:
        return error
