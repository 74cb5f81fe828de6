"""A server of the Model Context Protocol: an assistant checks a table, finds its graph and asks questions about it.

It reads files in allowed folders, within limits of size, time and memory; it writes nothing and sends nothing anywhere.
The same calls give the same answers. Each answer has its caveats and the Python that reproduces it.
"""

from __future__ import annotations

import functools
import io
import os
import stat
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field, ValidationError, create_model

from causal_arrow._version import __version__
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import abilities, ready_model, training_range
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings
from causal_arrow.discovery.summary import remarks
from causal_arrow.errors import PYTHON, ArrowError, ConfigurationError, TableError, Wording, is_out_of_memory
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables import FileInMemory
from causal_arrow.tables.options import READ_OPTIONS
from causal_arrow.tables.table import Abilities
from causal_arrow.text import counted
from causal_arrow.web.messages import OF_FILES, TYPES
from causal_arrow.web.uploads import MEGABYTE, Limits, OpenedFile, read_apart

MAX_GRAPHS = 16  # discoveries that a server remembers; the one that was not used for longest goes first
MAX_LISTED = 200  # edges, hidden causes, findings and experiments in one answer
MAX_PIXELS = 2000
LIMITS = Limits(
    most_bytes=100 * MEGABYTE,
    most_observations=10**9,
    most_memory=4096 * MEGABYTE,
    most_read_seconds=20.0,
    surface="this server",
)
NOTHING_KNOWN = (
    "Nothing is known about this table yet. Ask which columns come first in time, which were randomized, and which "
    "nothing in the table can cause, and add that with add_knowledge before you believe any arrow."
)
INSTRUCTIONS = (
    "Causal discovery on local tables. Call check_table, then discover_graph, then ask the person what comes first in "
    "time, what was randomized and what is exogenous, and add it with add_knowledge. Only then ask for effects. Repeat "
    "the caveats of an answer with its numbers: an arrow is a hypothesis with a probability, not a fact."
)
WORDING: Wording = {
    "drop": lambda remedy: f"leave columns out with drop={list(remedy.columns)!r}",
    "choose": lambda remedy: "name the columns to use with columns=[...]",
    "missing": PYTHON["missing"],
    "na": lambda remedy: f"count {remedy.setting!r} as missing with na={[remedy.setting]!r}",
    "kind": lambda remedy: f"read it as a {remedy.setting} with kinds={{{remedy.columns[0]!r}: {remedy.setting!r}}}",
    "order": lambda remedy: f"name the levels in their order with ordered={{{remedy.columns[0]!r}: [...]}}",
    "interventions": lambda remedy: f"read it as that with interventions={remedy.columns[0]!r}",
    "require": lambda remedy: f"give required={list(remedy.columns)!r}",
    "between": lambda remedy: "name two values with between=[from, to]",
    "level": lambda remedy: "name it with level=...",
}

Names = list[str] | None
Answered = dict[str, Any]
Result = TypeVar("Result")
GraphId = Annotated[str, Field(description='The "graph" of an earlier answer.')]


class Reading(BaseModel, extra="forbid"):
    """Options for reading a table."""


Reading = create_model(  # type: ignore[misc, call-overload]
    "Reading",
    __base__=Reading,
    __doc__=Reading.__doc__,
    **{
        option.name: (TYPES[option.form] | None, Field(None, description=option.help))
        for option in READ_OPTIONS.values()
        if option.name not in OF_FILES
    },
)


@dataclass
class Folders:
    """The folders whose files may be read."""

    allowed: tuple[Path, ...]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> Folders:
        """The folders of these names; ConfigurationError for one that is not there."""
        for folder in folders:
            if not folder.is_dir():
                raise ConfigurationError(f"Expected a folder to allow, got '{folder}'.")
        return cls(tuple(folder.resolve() for folder in folders))

    def file(self, path: str) -> tuple[Path, FileInMemory]:
        """The file at a path, absolute or relative to an allowed folder, and its name without links."""
        for folder in self.allowed:
            try:
                real = (folder / path).resolve(strict=True)  # without links and ..
            except (OSError, RuntimeError, ValueError):
                continue
            if any(real.is_relative_to(allowed) for allowed in self.allowed):
                return real, self._read(real)
        raise TableError(
            f"There is no file {path!r} in the folders that this server may read: {', '.join(map(str, self.allowed))}."
        )

    def _read(self, path: Path) -> FileInMemory:
        try:
            # Not through a link that came in between, and without waiting for the other end of a pipe.
            handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with open(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise TableError(f"{path.name!r} is not a file.")
                content = file.read(LIMITS.most_bytes + 1)
        except OSError as error:
            raise TableError(f"Cannot open {path.name!r}: {error.strerror or error}.") from error
        return FileInMemory(path.name, content)


@dataclass
class Kept:
    """A discovery that was made here, and the lines of Python that make it again."""

    name: str
    found: Discovery
    python: tuple[str, ...]

    def answered(self, answer: str, line: str, caveats: Sequence[str] = (), **more: Any) -> Answered:
        """An answer about the graph, with its caveats and the Python for it, which ends with `line`."""
        caveats = [*caveats, *_caveats(self.found)]
        return {"graph": self.name, "answer": answer, **more, "caveats": caveats, "python": self.lines(line)}

    def lines(self, line: str) -> str:
        """The Python that makes the discovery again, with one more line."""
        return "\n".join([*self.python, line])


@dataclass
class Desk:
    """The discoveries of one server."""

    folders: Folders
    settings: Settings
    kept: OrderedDict[str, Kept] = field(default_factory=OrderedDict)
    made: int = 0

    @property
    def able(self) -> Abilities:
        """The parts of a table that the network of this server reads."""
        return abilities(self.settings.model, ready_model(self.settings.model, self.settings.device))

    def open(self, path: str, reading: Reading | None, **more: Any) -> tuple[OpenedFile, Settings, str]:
        """A file as a table, how to read it, and that in Python."""
        given = _given(**({} if reading is None else reading.model_dump()), **more)
        real, file = self.folders.file(path)
        opened = read_apart(file, LIMITS, self.able)
        return opened, self.settings.changed(**given), ", ".join([repr(str(real)), *_arguments(given)])

    def keep(self, found: Discovery, *python: str) -> Kept:
        """Remember a discovery under a name."""
        self.made += 1
        kept = Kept(f"graph-{self.made}", found, python)
        self.kept[kept.name] = kept
        while len(self.kept) > MAX_GRAPHS:
            self.kept.popitem(last=False)
        return kept

    def get(self, graph: str) -> Kept:
        """The discovery of this name."""
        if graph not in self.kept:
            there = ", ".join(self.kept) or "none yet"
            raise ConfigurationError(f"There is no graph {graph!r} here ({there}): call discover_graph.")
        self.kept.move_to_end(graph)
        return self.kept[graph]


class ArrowServer(MCPServer[Any]):
    """A server that says in one sentence which argument is not of the described form."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool by name."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            first = error.__cause__.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ToolError(f"The arguments do not match the schema: {where}: {first['msg']}.") from error


def create_server(folders: Sequence[Path], settings: Settings | None = None) -> MCPServer[Any]:
    """A server that reads tables in these folders."""
    desk = Desk(Folders.of(folders), settings or Settings())
    server = ArrowServer("causal-arrow", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    one_at_a_time = threading.Lock()
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    def tool(function: Callable[..., Result]) -> Callable[..., Result]:
        """Offer a function; what a person can put right is a sentence for the assistant."""

        @functools.wraps(function)
        def offered(**arguments: Any) -> Result:
            try:
                with one_at_a_time, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # they are among the caveats
                    return function(**arguments)
            except ArrowError as error:
                raise ToolError(error.worded(WORDING)) from error
            except Exception as error:
                if is_out_of_memory(error):
                    raise ToolError("There is not enough memory for this: use fewer rows or columns.") from error
                raise

        server.add_tool(offered, annotations=reads, structured_output=function.__annotations__["return"] == "Answered")
        return offered

    @tool
    def check_table(path: str, reading: Reading | None = None) -> Answered:
        """Check a table (.csv, .tsv, .txt, .xlsx, .parquet) before discovery: kinds of columns and what is wrong."""
        from causal_arrow.tables.reading import read_table
        from causal_arrow.tables.report import inspect_table

        opened, settings, call = desk.open(path, reading)
        table = read_table(opened.raw, settings.reading, abilities=desk.able, strict=False)
        report = inspect_table(table, training_range(settings.model), desk.able)
        findings = [f"{finding.severity}: {finding.worded(WORDING)}" for finding in report.findings]
        return {
            "usable": not any(finding.severity == "problem" for finding in report.findings),
            "title": report.title,
            "columns": [{"name": each.name, "kind": each.kind} for each in report.columns[:MAX_LISTED]],
            "findings": findings[:MAX_LISTED],
            "caveats": [finding for finding in findings[:MAX_LISTED] if not finding.startswith("note")],
            "python": "\n".join(
                [
                    "from causal_arrow import read_table",
                    "from causal_arrow.discovery.inference import abilities, ready_model, training_range",
                    "from causal_arrow.tables.report import inspect_table",
                    f"model = {str(settings.model)!r}",
                    "able = abilities(model, ready_model(model))",
                    f"table = read_table({call}, strict=False, abilities=able)",
                    "print(inspect_table(table, training_range(model), able))",
                ]
            ),
        }

    @tool
    def discover_graph(
        path: str,
        reading: Reading | None = None,
        randomized: Annotated[Names, Field(description="Columns whose values were drawn by chance.")] = None,
        decode: Literal["map", "shd", "f1"] = "map",
    ) -> Answered:
        """Find the causal graph of a table, with a probability for each edge."""
        more = {"randomized": randomized, "decode": None if decode == "map" else decode}
        opened, settings, call = desk.open(path, reading, **more)
        chosen = settings.reading.columns or [column.name for column in opened.columns]
        LIMITS.check_used(len(set(chosen) - set(settings.reading.drop or ())))
        found = discover(opened.raw, settings)
        usual = Settings()
        own = {name: getattr(settings, name) for name in ("model", "device")}  # of this server
        own = {name: str(value) for name, value in own.items() if value != getattr(usual, name)}
        lines = "from causal_arrow import discover", f"found = discover({', '.join([call, *_arguments(own)])})"
        return _graph(desk.keep(found, *lines))

    @tool
    def add_knowledge(
        graph: GraphId,
        required: Annotated[Names, Field(description='Edges that are there, such as "smoking -> cancer".')] = None,
        forbidden: Annotated[Names, Field(description='Edges that are not there; "* -> age" for all into age.')] = None,
        tiers: Annotated[
            list[list[str]] | None, Field(description="Groups of columns, the earliest in time first.")
        ] = None,
        roots: Annotated[Names, Field(description="Columns that nothing in the table causes.")] = None,
        leaves: Annotated[Names, Field(description="Columns that cause nothing in the table.")] = None,
        randomized: Annotated[Names, Field(description="Columns whose values were drawn by chance.")] = None,
        no_hidden_cause: Annotated[Names, Field(description='Pairs without a common hidden cause: "a <-> b".')] = None,
        beliefs: Annotated[
            list[dict[str, Any]] | None,
            Field(
                description='Beliefs, as in {"statement": "root age", "probability": 0.8, "who": ..., "why": '
                '...}. Statements: "a -> b", "a ~> b" (directly or not), "a before b", "root a", "leaf a", "a <-> b".'
            ),
        ] = None,
    ) -> Answered:
        """Answer again under more knowledge; the earlier graph stays as it was. Say only what a person has told you."""
        statements = _given(
            required=required,
            forbidden=forbidden,
            tiers=tiers,
            roots=roots,
            leaves=leaves,
            randomized=randomized,
            no_hidden_cause=no_hidden_cause,
            beliefs=beliefs,
        )
        if not statements:
            raise ConfigurationError("Expected at least one statement, such as roots or tiers.")
        before = desk.get(graph)
        found = before.found.refine(knowledge=before.found.answer.knowledge | Knowledge(**statements))
        line = f"found = found.refine({', '.join(_arguments(statements))})"
        return _graph(desk.keep(found, *before.python, line))

    @tool
    def estimate_effect(
        graph: GraphId,
        treatment: str,
        outcome: str,
        between: Annotated[list[str] | None, Field(description="Two values of the treatment, from and to.")] = None,
        level: Annotated[
            str | None, Field(description="For an outcome with levels: the level whose share counts.")
        ] = None,
        adjust_for: Annotated[Names, Field(description="Columns to adjust for instead of the graphs' sets.")] = None,
        randomized: Annotated[bool, Field(description="Whether chance decided on the treatment.")] = False,
    ) -> Answered:
        """Estimate what happens to the outcome when the treatment changes: its size, whether it exists, and a test."""
        kept = desk.get(graph)
        if between is not None and len(between) != 2:
            raise ConfigurationError("Expected between as two values of the treatment.")
        pair = None if between is None else tuple(between)
        given = _given(between=pair, level=level, adjust_for=adjust_for, randomized=randomized or None)
        effect = kept.found.effect(treatment, outcome, **given)
        call = ", ".join([repr(treatment), repr(outcome), *_arguments(given)])
        numbers = effect.to_dict()
        del numbers["by_adjustment_set"]
        caveats = [*numbers["sensitivity"], *numbers["notes"]]
        return kept.answered(
            effect.lines[0],
            f"print(found.effect({call}))",
            caveats,
            details=[line for line in effect.lines[1:] if line not in caveats],
            **{name: value for name, value in numbers.items() if not isinstance(value, list)},
        )

    @tool
    def test_graph(graph: GraphId) -> Answered:
        """Test whether the data contradict the independences that the graph implies. This cannot confirm directions."""
        kept = desk.get(graph)
        test = kept.found.falsify()
        content = test.to_dict()
        content |= {name: value[:MAX_LISTED] for name, value in content.items() if isinstance(value, list)}
        return kept.answered(content.pop("sentence"), "print(found.falsify())", **content)

    @tool
    def propose_experiment(
        graph: GraphId,
        outcome: Annotated[str | None, Field(description="The outcome whose causes matter.")] = None,
        treatment: Annotated[str | None, Field(description="With an outcome: whose effect on it matters.")] = None,
        candidates: Annotated[Names, Field(description="The columns that can be randomized.")] = None,
        rows: Annotated[int | None, Field(description="Rows of each experiment.", ge=1, le=10**6)] = None,
    ) -> Answered:
        """Propose which column to randomize next, or which hidden cause to measure, to learn most."""
        kept = desk.get(graph)
        if treatment is not None and outcome is None:
            raise ConfigurationError("Expected an outcome with the treatment.")
        target = outcome if treatment is None else (treatment, outcome)
        given = _given(target=target, candidates=candidates, rows=rows)
        plan = kept.found.next_experiment(**given)
        content = plan.to_dict()
        line = f"print(found.next_experiment({', '.join(_arguments(given))}))"
        return kept.answered(content["sentence"], line, experiments=content["experiments"][:MAX_LISTED])

    @tool
    def draw_graph(graph: GraphId) -> list[Any]:
        """Draw the graph as a picture, causes on top."""
        kept = desk.get(graph)
        caveats = "\n".join(f"- {caveat}" for caveat in _caveats(kept.found))
        python = kept.lines('found.draw("graph.png")')
        return [Image(data=picture(kept.found), format="png"), f"Caveats:\n{caveats}\n\nPython:\n{python}"]

    return server


def picture(found: Discovery) -> bytes:
    """The graph as PNG, of at most MAX_PIXELS in width and height."""
    import matplotlib

    with matplotlib.rc_context({"backend": "agg"}):
        from matplotlib.figure import Figure

        from causal_arrow.discovery import pictures

        figure = Figure(layout="constrained")
        axes = figure.add_subplot()
        pictures.draw_graph(found.answer, ax=axes)
        dpi = min(150.0, MAX_PIXELS / max(figure.get_size_inches()))
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=dpi)
    return file.getvalue()


def _graph(kept: Kept) -> Answered:
    """A graph, for an assistant."""
    answer = kept.found.answer
    edges = [
        {
            "cause": edge.source,
            "effect": edge.target,
            "probability": round(edge.probability, 3),
            "adjacent": round(edge.adjacency_probability, 3),
            "direction": "required" if edge.required else edge.direction,
        }
        for edge in answer.edges
    ]
    pairs = [[pair.first, pair.second, round(pair.probability, 3)] for pair in answer.hidden_causes]
    left_out = f"{counted(len(edges) - MAX_LISTED, 'edge')} more, less probable" if len(edges) > MAX_LISTED else ""
    return {
        "graph": kept.name,
        "rows": answer.observations,
        "variables": list(answer.names),
        "edges": edges[:MAX_LISTED],
        "left_out": left_out,
        "order": list(answer.order),
        "hidden_causes": pairs[:MAX_LISTED],
        "beliefs": [each.to_dict() for each in answer.beliefs],
        "knowledge": answer.knowledge.to_dict(),
        "caveats": _caveats(kept.found),
        "python": kept.lines("print(found)"),
    }


def _caveats(found: Discovery) -> list[str]:
    """Reasons to be careful, and knowledge that is still missing."""
    answer = found.answer
    known: Mapping[str, Any] = answer.knowledge.to_dict()
    return [*([] if known else [NOTHING_KNOWN]), *answer.worded_warnings(WORDING), *remarks(answer)[:MAX_LISTED]]


def _given(**options: Any) -> dict[str, Any]:
    """The options that an assistant has given."""
    return {name: value for name, value in options.items() if value not in (None, [])}


def _arguments(given: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in given.items()]
