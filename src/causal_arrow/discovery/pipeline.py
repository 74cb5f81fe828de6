"""discover(): from a table to an answer. `Arrow`, the command line, the benchmark and `speed` all go through here."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from causal_arrow.discovery.answer import Answer, constraints_on, set_in_every
from causal_arrow.discovery.arranged import ArrangedLongTable, ArrangedTable, arrange
from causal_arrow.discovery.inference import abilities, infer, model_name, ready_model, training_range
from causal_arrow.discovery.progress_bar import progress_bar
from causal_arrow.discovery.workload import Workload, check_memory, workload
from causal_arrow.errors import ConfigurationError, KnowledgeError, Remedy, check_choice
from causal_arrow.graphs.decoding import DECODING_RULES, check_threshold
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Constraints, Knowledge
from causal_arrow.network.bundled import DEFAULT_MODEL
from causal_arrow.network.model import ArrowModel
from causal_arrow.network.precision import PRECISIONS
from causal_arrow.progress import Progress, unheard
from causal_arrow.tables.copies import groups_of_copies
from causal_arrow.tables.declarations import check_declared
from causal_arrow.tables.missing_values import MISSING_CHOICES
from causal_arrow.tables.reading import check_readable, read_table
from causal_arrow.tables.report import TableReport, inspect_table
from causal_arrow.tables.scales import SCALES, chosen_reading, readings
from causal_arrow.tables.table import FEWEST_OBSERVATIONS, Abilities, Finding, Table
from causal_arrow.text import closest, counted, listed, shown

KnowledgeSource = Knowledge | Mapping[str, Any] | str | Path | None


@dataclass(frozen=True)
class Settings:
    """How to go from a table to an answer; invalid settings are refused here, before any work.

    Parameters
    ----------
    model
        The name of a bundled model, a folder or file written by `save_model`, or an `ArrowModel`.
    device
        "auto" (a GPU where there is one), "cpu", "cuda", "cuda:1".
    decode
        How to take one graph from the distribution: "map", "shd" or "f1".
    threshold
        For "map": edges are shown when the two variables are adjacent with more than this probability.
    knowledge
        A `Knowledge`, a mapping of its arguments, a TOML or JSON file, or pgmpy's ExpertKnowledge.
    scale
        How to read skewed columns of one sign: "auto", "given" or "log".
    missing
        What to do about missing values: "auto", "model", "error", "drop" or "impute".
    kinds
        What columns hold, where that should not be detected: {"zip": "category"}.
    ordered
        Columns whose levels have an order, the smallest first.
    observations
        How many observations of a long table are read one by one, 20,000 by default.
    observations_per_chunk
        How many observations to read at a time; by default chosen so that memory stays bounded.
    precision
        Of the network's matrix products: "auto", "float32" or "bfloat16".

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

    model: str | Path | ArrowModel = DEFAULT_MODEL
    device: str = "auto"
    decode: str = "map"
    threshold: float = 0.5
    knowledge: KnowledgeSource = None
    scale: str = "auto"
    missing: str = "auto"
    kinds: Mapping[str, str] | None = None
    ordered: Mapping[str, Sequence[str]] | None = None
    observations: int | None = None
    observations_per_chunk: int | None = None
    precision: str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.model, str | Path | ArrowModel) or not str(self.model):
            raise ConfigurationError(
                f"Expected model to be the name of a bundled model, a path, or an ArrowModel, got {self.model!r}."
            )
        if not isinstance(self.device, str) or not self.device:
            raise ConfigurationError(f"Expected device to be auto, cpu, cuda or cuda:1, got {self.device!r}.")
        check_choice("decode", self.decode, DECODING_RULES)
        check_choice("scale", self.scale, SCALES)
        check_choice("missing", self.missing, MISSING_CHOICES)
        check_choice("precision", self.precision, PRECISIONS)
        check_threshold(self.threshold)
        check_declared(self.kinds, self.ordered)
        if self.observations is not None:
            check_count("observations", self.observations, least=FEWEST_OBSERVATIONS)
        if self.observations_per_chunk is not None:
            check_count("observations_per_chunk", self.observations_per_chunk)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON can hold them; not for a model that is an object.

        Returns
        -------
        dict
            By the names of the parameters; `from_dict` reads it back.

        Examples
        --------
        >>> settings.to_dict()["knowledge"]
        {'roots': ['age']}
        """
        if isinstance(self.model, ArrowModel):
            raise ConfigurationError("Expected the name or path of a model, got a model itself: save it first.")
        known = as_knowledge(self.knowledge).to_dict()
        return {**{entry.name: getattr(self, entry.name) for entry in fields(self)}, "model": str(self.model)} | {
            "knowledge": known or None,
            "kinds": None if self.kinds is None else {str(name): kind for name, kind in self.kinds.items()},
            "ordered": None
            if self.ordered is None
            else {str(name): [str(level) for level in levels] for name, levels in self.ordered.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Settings:
        """The settings in a mapping of their names.

        Parameters
        ----------
        content
            Some of the parameters, by name. An unknown name is a ConfigurationError.

        Returns
        -------
        Settings
            What is not given has its default.

        Examples
        --------
        >>> Settings.from_dict({"decode": "shd"}).decode
        'shd'
        """
        known = [entry.name for entry in fields(cls)]
        if unknown := sorted(set(content) - set(known)):
            raise ConfigurationError(f"Unknown setting {unknown[0]!r}: expected some of {', '.join(known)}.")
        return cls(**content)


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
    network: ArrowModel


def discover(
    source: Any,
    settings: Settings | None = None,
    *,
    before: Callable[[Workload], None] | None = None,
    progress: bool | None = None,
    **reading: Any,
) -> Discovery:
    """The causal graph of a table, with the table as it was read and what was noticed about it.

    Parameters
    ----------
    source
        A `Table`, or whatever `read_table` takes.
    settings
        The model, what is known, and how to decode; those of `Arrow` by default.
    before
        Called with the `Workload` (time and memory) once the table is read and before the network starts. A table that
        needs more memory than there is gets a TableError first.
    progress
        Whether to show a bar for a long table on standard error; by default only on a terminal.
    **reading
        Options of `read_table`, among them `interventions` and `environments`; `missing`, `kinds` and `ordered`
        overrule those of the settings.

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
        ready = prepare(source, settings or Settings(), reading, tell)
        if before is not None:
            before(ready.workload)
        distributions = []
        for place, way in enumerate(ready.ways):

            def tell_of_way(stage: str, share: float, earlier: int = place) -> None:
                tell(stage, (earlier + share) / len(ready.ways))

            chunk, precision = ready.settings.observations_per_chunk, ready.settings.precision
            distributions.append(infer(ready.network, way, chunk, precision, tell_of_way))
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
    network: ArrowModel
    settings: Settings
    workload: Workload

    def conclude(self, distributions: Sequence[GraphDistribution]) -> Discovery:
        """The discovery, given the network's distribution over graphs for each way of reading the table."""
        chosen, findings = self._chosen_way(distributions)
        answer = Answer(
            names=self.table.names,
            distribution=distributions[chosen],
            knowledge=self.knowledge,
            rule=self.settings.decode,
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
            compiled=self.constraints,
        )
        return Discovery(self.table, self.report, answer, self.network)

    def _chosen_way(self, distributions: Sequence[GraphDistribution]) -> tuple[int, tuple[Finding, ...]]:
        """Which way of reading the table counts, and what there is to say about that."""
        if len(distributions) == 1:
            return 0, ()
        doubts = [float(distribution.skeleton_order.doubt()) for distribution in distributions]
        chosen = chosen_reading(doubts)
        return chosen, (_scale_finding(self.log_columns[-1], chosen, doubts),)


def prepare(source: Any, settings: Settings, reading: Mapping[str, Any], progress: Progress = unheard) -> ReadyTable:
    """All that `discover` does with a table before the network reads it."""
    settings, reading = with_reading(settings, reading)
    knowledge = as_knowledge(settings.knowledge)
    network = ready_model(settings.model, settings.device)
    able = abilities(settings.model, network)
    table = read_for(able, source, settings, **reading, progress=progress)
    arranged = arrange(table, settings.observations)
    read = len(arranged.drawn) if isinstance(arranged, ArrangedLongTable) else table.observations
    work = workload(network, read, table.variables, settings.observations_per_chunk)
    check_memory(work, next(network.parameters()).device)
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


READING_OPTIONS = tuple(
    name
    for name in inspect.signature(read_table).parameters
    if name not in ("source", "abilities", "strict", "progress")  # which the pipeline decides
)
"""What `discover` and `discover_many` hand on to `read_table`."""


def with_reading(settings: Settings, reading: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """The settings, with those that the options of `read_table` overrule, and the other options.

    ConfigurationError for a name that is no option, so that a slip fails at once and not in each of many tables.
    """
    known = [entry.name for entry in fields(settings)]
    for name in reading:
        if name in READING_OPTIONS:
            continue
        if name in known:
            raise ConfigurationError(f"{name!r} is no option of read_table but a setting: give Settings({name}=...).")
        near = closest(str(name), [*READING_OPTIONS, *known])
        hint = f"did you mean {near!r}?" if near else f"expected some of {', '.join(READING_OPTIONS)}."
        raise ConfigurationError(f"Unknown option {shown(name)}: {hint}")
    overruled = {name: value for name, value in reading.items() if name in known and value is not None}
    return replace(settings, **overruled), {name: value for name, value in reading.items() if name not in known}


def read_for(able: Abilities, source: Any, settings: Settings, **reading: Any) -> Table:
    """The table in a source, for a network with these abilities; one that was read already is only checked."""
    untouched = set(reading) <= {"progress"} and settings.kinds is None and settings.ordered is None
    if isinstance(source, Table) and untouched and (settings.missing in ("auto", "model") or source.observed.all()):
        check_readable(source, able)
        return source
    return read_table(
        source, missing=settings.missing, kinds=settings.kinds, ordered=settings.ordered, abilities=able, **reading
    )


def _experiments(table: Table) -> dict[str, int]:
    """In how many observations each variable was set, for those that were."""
    if table.intervened is None:
        return {}
    counts = zip(table.names, table.intervened.sum(axis=0).tolist(), strict=True)
    return {name: count for name, count in counts if count}


def _observations_finding(
    network: ArrowModel, arranged: ArrangedTable | ArrangedLongTable, observations: int
) -> tuple[Finding, ...]:
    """How many observations of a long table were read one by one, or of a wide one at all."""
    count = counted(observations, "observation")
    if isinstance(arranged, ArrangedLongTable):
        drawn = f"{len(arranged.drawn):,}"
        message = (
            f"Statistics of all {count}; {drawn} of them, drawn evenly, are read one by one."
            if network.encoder.has_statistics
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
