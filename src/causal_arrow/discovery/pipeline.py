"""discover(): from a table to an answer. `Arrow`, the command line, the benchmark and `speed` all go through here."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from causal_arrow.discovery.answer import Answer, constraints_on, set_in_every
from causal_arrow.discovery.arranged import ArrangedLongTable, ArrangedTable, arrange
from causal_arrow.discovery.directions import DIRECTIONS, direction_temperature
from causal_arrow.discovery.inference import abilities, infer, is_model, model_name, ready_model, training_range
from causal_arrow.discovery.workload import Workload, check_memory, workload
from causal_arrow.errors import ConfigurationError, KnowledgeError, Remedy, check_choice
from causal_arrow.graphs.decoding import DECODING_RULES, check_threshold
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Constraints, Knowledge
from causal_arrow.network.bundled import DEFAULT_MODEL
from causal_arrow.network.protocol import PRECISIONS, Network
from causal_arrow.progress import Progress, ignore, progress_bar
from causal_arrow.tables.options import READ_OPTIONS, ReadOptions, check_names
from causal_arrow.tables.reading import check_readable, read_table
from causal_arrow.tables.report import TableReport, groups_of_copies, inspect_table
from causal_arrow.tables.scales import SCALES, chosen_reading, readings
from causal_arrow.tables.table import MIN_ROWS, Abilities, Finding, Table
from causal_arrow.text import counted, listed

KnowledgeSource = Knowledge | Mapping[str, Any] | str | Path | None


@dataclass(frozen=True)
class Settings:
    """How to go from a table to an answer; invalid settings are refused here, before any work.

    Parameters
    ----------
    model
        The name of a bundled model, a folder or file of weights, or a network that `load_model` returned.
    device
        "auto" and "cpu" are the processor; "cuda" and "cuda:1" need causal-arrow-lab.
    decode
        How to take one graph from the distribution: "map", "shd" or "f1".
    threshold
        For "map": edges are shown when the two variables are adjacent with more than this probability.
    knowledge
        A `Knowledge`, a mapping of its arguments, a TOML or JSON file, or pgmpy's ExpertKnowledge.
    scale
        How to read skewed columns of one sign: "auto", "given" or "log".
    directions
        Which probabilities directions have: "tempered" as real tables bear them out, "network" as the network has them.
    max_rows
        How many rows of a long table the network reads one by one, 20,000 by default.
    observations_per_chunk
        How many observations to read at a time; by default chosen so that memory stays bounded.
    precision
        Of the network's matrix products: "auto" and "float32", or "bfloat16" on a GPU.
    reading
        How to read the table.

    See Also
    --------
    Arrow : The same parameters, described at length.

    Examples
    --------
    >>> from causal_arrow import Settings
    >>> settings = Settings(decode="f1", knowledge={"roots": ["age"]})
    >>> settings.threshold
    0.5
    """

    model: str | Path | Network = DEFAULT_MODEL
    device: str = "auto"
    decode: str = "map"
    threshold: float = 0.5
    knowledge: KnowledgeSource = None
    scale: str = "auto"
    directions: str = "network"
    max_rows: int | None = None
    observations_per_chunk: int | None = None
    precision: str = "auto"
    reading: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        if not is_model(self.model):
            raise ConfigurationError(
                f"Expected model to be the name of a bundled model, a path, or a network, got {self.model!r}."
            )
        if not isinstance(self.device, str) or not self.device:
            raise ConfigurationError(f"Expected device to be auto, cpu, cuda or cuda:1, got {self.device!r}.")
        check_choice("decode", self.decode, DECODING_RULES)
        check_choice("scale", self.scale, SCALES)
        check_choice("directions", self.directions, DIRECTIONS)
        check_choice("precision", self.precision, PRECISIONS)
        check_threshold(self.threshold)
        if self.max_rows is not None:
            check_count("max_rows", self.max_rows, least=MIN_ROWS)
        if self.observations_per_chunk is not None:
            check_count("observations_per_chunk", self.observations_per_chunk)

    def changed(self, **changes: Any) -> Settings:
        """Change some of the settings or reading options; ConfigurationError for a name that is none of them.

        Parameters
        ----------
        **changes
            New values by name.

        Returns
        -------
        Settings
            A new object; this one stays as it is.

        Examples
        --------
        >>> changed = settings.changed(decode="shd", drop=["id"])
        >>> changed.decode, changed.reading.drop
        ('shd', ('id',))
        """
        own = [entry.name for entry in fields(self)]
        if former := [name for name in changes if name in FORMER_NAMES]:
            raise ConfigurationError(f"{former[0]!r} is now called {FORMER_NAMES[former[0]]}.")
        check_names(changes, [*READ_OPTIONS, *own])
        reading = {name: value for name, value in changes.items() if name in READ_OPTIONS}
        changes = {name: value for name, value in changes.items() if name in own}
        if reading:
            changes["reading"] = changes.get("reading", self.reading).changed(**reading)
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON can hold them; not for a model that is an object.

        Returns
        -------
        dict
            By the names of the parameters, with the reading options that are not the default; `from_dict` reads it
            back.

        Examples
        --------
        >>> settings.to_dict()["knowledge"]
        {'roots': ['age']}
        """
        if not isinstance(self.model, str | Path):
            raise ConfigurationError("Expected the name or path of a model, got a model itself: save it first.")
        own = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "reading"}
        known = as_knowledge(self.knowledge).to_dict()
        return {**own, "model": str(self.model), "knowledge": known or None, **self.reading.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Settings:
        """Read settings from a mapping of their names.

        Parameters
        ----------
        content
            Some of the parameters and reading options, by name, which may be those of earlier versions. An unknown
            name is a ConfigurationError.

        Returns
        -------
        Settings
            What is not given has its default.

        Examples
        --------
        >>> Settings.from_dict({"decode": "shd"}).decode
        'shd'
        """
        return cls().changed(**{FORMER_NAMES.get(name, name): value for name, value in content.items()})


FORMER_NAMES = {"observations": "max_rows"}
"""Of settings in earlier versions, which files may still have."""


@dataclass(frozen=True, eq=False)
class Discovery:
    """An answer, the table it is about, the report card of that table, and the network that gave it.

    Parameters
    ----------
    table
        The table as it was read.
    report
        What was noticed about the table.
    answer
        The graph and all probabilities.
    network
        The network that read the table.

    Examples
    --------
    >>> from causal_arrow import discover, load_example
    >>> found = discover(load_example("hospital"))
    >>> found.table.observations, found.answer.model
    (800, 'arrow-base')
    """

    table: Table
    report: TableReport
    answer: Answer
    network: Network


def discover(
    source: Any,
    settings: Settings | None = None,
    *,
    before: Callable[[Workload], None] | None = None,
    progress: bool | None = None,
    **changes: Any,
) -> Discovery:
    """The causal graph of a table, with the table as it was read and what was noticed about it.

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
        Settings and reading options (`ReadOptions`) by name; they override those of `settings`.

    Returns
    -------
    Discovery
        The `answer`, the `table`, the `report` and the `network`.

    Examples
    --------
    >>> from causal_arrow import Settings, discover, load_example
    >>> found = discover(load_example("sachs"), Settings(decode="f1"))
    >>> found.answer.observations, len(found.answer.names)
    (853, 11)
    """
    with progress_bar(progress) as tell:
        ready = prepare(source, (settings or Settings()).changed(**changes), tell)
        if before is not None:
            before(ready.workload)
        distributions = []
        for index, way in enumerate(ready.ways):

            def tell_of_way(stage: str, share: float, earlier: int = index) -> None:
                tell(stage, (earlier + share) / len(ready.ways))

            distributions.append(infer(ready.network, way, ready.settings.observations_per_chunk, tell_of_way))
    return ready.conclude(distributions)


@dataclass(frozen=True, eq=False)
class ReadyTable:
    """A table of which only the network's word is still missing: read, inspected, arranged, its knowledge compiled.

    The network reads it in each of its `ways`, which differ in the columns that are on a log scale; what it says of
    each goes to `conclude`.
    """

    table: Table
    report: TableReport
    arranged: ArrangedTable | ArrangedLongTable
    ways: tuple[ArrangedTable | ArrangedLongTable, ...]
    log_columns: tuple[tuple[str, ...], ...]
    """Of each way."""
    knowledge: Knowledge
    constraints: Constraints
    network: Network
    settings: Settings
    workload: Workload

    def conclude(self, distributions: Sequence[GraphDistribution]) -> Discovery:
        """The discovery, given the network's distribution over graphs for each way of reading the table."""
        chosen, findings = self._chosen_way(distributions)
        answer = Answer(
            names=self.table.names,
            distribution=distributions[chosen],
            knowledge=self.knowledge,
            decode=self.settings.decode,
            threshold=self.settings.threshold,
            arrangement=self.arranged.arrangement,
            observations=self.table.observations,
            model=model_name(self.settings.model),
            findings=(
                *self.report.findings,
                *_observations_finding(self.network, self.arranged, self.table.observations),
                *findings,
            ),
            log_columns=self.log_columns[chosen],
            columns=self.table.columns,
            experiments=_experiments(self.table),
            environment=self.table.environment,
            table_checksum=self.arranged.checksum,
            directions=self.settings.directions,
            direction_temperature=direction_temperature(self.table),
            compiled=self.constraints,
        )
        return Discovery(self.table, self.report, answer, self.network)

    def _chosen_way(self, distributions: Sequence[GraphDistribution]) -> tuple[int, tuple[Finding, ...]]:
        """Which way of reading the table counts, and what there is to say about that."""
        if len(distributions) == 1:
            return 0, ()
        doubts = [float(distribution.uncertainty()) for distribution in distributions]
        chosen = chosen_reading(doubts)
        return chosen, (_scale_finding(self.log_columns[-1], chosen, doubts),)


def prepare(source: Any, settings: Settings, progress: Progress = ignore) -> ReadyTable:
    """All that `discover` does with a table before the network reads it."""
    knowledge = as_knowledge(settings.knowledge)
    network = ready_model(settings.model, settings.device, settings.precision)
    able = abilities(settings.model, network)
    table = read_for(able, source, settings.reading, progress)
    arranged = arrange(table, settings.max_rows)
    read = len(arranged.drawn) if isinstance(arranged, ArrangedLongTable) else table.observations
    work = workload(network, read, table.variables, settings.observations_per_chunk)
    check_memory(work, network)
    # Compiled before the network runs: a misspelled name should not have to wait for it.
    always_set = set_in_every(table.observations, _experiments(table))
    constraints = constraints_on(arranged.names, knowledge, table.environment, always_set)
    report = inspect_table(table, training_range(settings.model), able)
    arranged = arranged.reading_once(groups_of_copies(report.findings))
    ways = readings(settings.scale, table.log_candidates[list(arranged.arrangement)])
    return ReadyTable(
        table,
        report,
        arranged,
        tuple(arranged.with_logarithms(columns) for columns in ways),
        tuple(arranged.names_of(columns) for columns in ways),
        knowledge,
        constraints,
        network,
        settings,
        work,
    )


def read_for(able: Abilities, source: Any, options: ReadOptions, progress: Progress = ignore) -> Table:
    """Read the table in a source for a network with these abilities; one that was read already is only checked."""
    unchanged = not set(options.to_dict()) - {"missing"}
    if isinstance(source, Table) and unchanged and (options.missing in ("auto", "model") or source.observed.all()):
        check_readable(source, able)
        return source
    return read_table(source, options, abilities=able, progress=progress)


def _experiments(table: Table) -> dict[str, int]:
    """In how many observations each variable was set, for those that were."""
    if table.intervened is None:
        return {}
    counts = zip(table.names, table.intervened.sum(axis=0).tolist(), strict=True)
    return {name: count for name, count in counts if count}


def _observations_finding(
    network: Network, arranged: ArrangedTable | ArrangedLongTable, observations: int
) -> tuple[Finding, ...]:
    """How many observations of a long table were read one by one, or of a wide one at all."""
    count = counted(observations, "observation")
    if isinstance(arranged, ArrangedLongTable):
        drawn = f"{len(arranged.drawn):,}"
        message = (
            f"Statistics of all {count}; {drawn} of them, drawn evenly, are read one by one."
            if network.has_statistics
            else f"{drawn} of the {count} are read, drawn evenly."
        )
    elif len(arranged.values) < observations:
        message = (
            f"{len(arranged.values):,} of the {count} are read, drawn evenly: where there are about as many as "
            "variables, fewer say more."
        )
    else:
        return ()
    return (Finding("observations_read", "note", (), message, (Remedy("observations"),)),)


# Scales


def _scale_finding(names: tuple[str, ...], chosen: int, doubts: Sequence[float]) -> Finding:
    """Which of two readings counts, and why."""
    given, logarithms = (f"{doubt:.2f}" for doubt in doubts)
    is_ = "is" if len(names) == 1 else "are"
    reason = (
        f"{is_} analysed on a log scale: uncertainty per edge is {logarithms} bits, against {given} untransformed"
        if chosen
        else f"{is_} analysed untransformed: uncertainty per edge is {given} bits, against {logarithms} on a log scale"
    )
    message = f"{listed(names)}, of one sign and skewed, {reason}. The scale 'given' or 'log' decides it."
    return Finding("log_scale", "note", names, message)


# Settings


def as_knowledge(source: Any) -> Knowledge:
    """Knowledge from whatever `Arrow` takes for it."""
    if source is None:
        return Knowledge()
    if isinstance(source, Knowledge):
        return source
    if isinstance(source, str | Path):
        return Knowledge.from_file(source)
    if isinstance(source, Mapping):
        return Knowledge.from_dict(source)
    if hasattr(source, "required_edges"):
        return Knowledge.from_pgmpy(source)
    raise KnowledgeError(
        "Expected knowledge as a Knowledge, a mapping, a TOML or JSON file, or pgmpy's ExpertKnowledge, "
        f"got {type(source).__name__}."
    )


def check_count(name: str, value: Any, most: float = math.inf, least: int = 1) -> int:
    """The value as a whole number of `least` or more; ConfigurationError for anything else."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not whole or not least <= int(value) <= most:
        limit = f"{least} or more" if math.isinf(most) else f"from {least} to {most:,.0f}"
        raise ConfigurationError(f"Expected {name} to be a whole number, {limit}, got {value!r}.")
    return int(value)
