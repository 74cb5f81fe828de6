"""The requests and responses of the API, as `/openapi.json` describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from causal_arrow.tables.options import READ_OPTIONS, Form, Kind, Missing

Probability = Annotated[float, BeforeValidator(lambda value: min(max(float(value), 0.0), 1.0)), Field(ge=0, le=1)]
"""Rounding may leave one a hair outside its range."""
Name = Annotated[str, Field(min_length=1, max_length=10_000)]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
MAX_STATEMENTS = 50_000
MAX_COLUMNS = 5000


class Message(BaseModel):
    """Base of everything here: unknown fields are refused, so that a misspelled one is not ignored."""

    model_config = ConfigDict(extra="forbid")


class Trouble(Message):
    """The error, in one sentence or two."""

    message: str


class Example(Message):
    """A table that comes with the page, or that the server was started with."""

    name: str
    title: str
    question: tuple[str, str] | None = Field(description="A cause and an effect to ask about first.")
    wording: str = Field(description="That question as a person asks it.")


class Server(Message):
    """Facts about the server that the page needs."""

    version: str
    model: str
    most_bytes: int
    most_observations: int
    most_variables: int
    reads: list[str] = Field(
        description="What the network reads besides numbers: levels, observed (missing cells), intervened."
    )
    endings: list[str]
    autosaves: bool = Field(description="Whether sessions are kept on this machine's disk.")
    examples: list[Example]
    given: str | None = Field(description="The example that `causal-arrow serve TABLE` was started with.")


# Tables


class ColumnFacts(Message):
    """A column of the file, used or not."""

    name: str
    detected: str | None = Field(description="The kind it is read as by default; null for one that cannot be read.")
    kind: str | None = Field(description="The kind it is read as now; null for one that is not used.")
    levels: list[str]
    values: list[str] = Field(description="Its different values, sorted; none if there are many.")
    missing: int = Field(description="How many of its cells are empty.")


class Offer(Message):
    """Something that the page can do about a finding."""

    label: str
    drop: list[str] = []
    missing: Missing | None = None
    na: list[str] = []
    kinds: dict[str, Kind] = {}


class FindingFacts(Message):
    """Something noticed about the table."""

    severity: Literal["problem", "warning", "note"]
    message: str
    offers: list[Offer]


class TableFacts(Message):
    """The report card of the table."""

    name: str
    size: str
    usable: bool
    missing: int = Field(description="How many cells of the columns in use are empty in the file.")
    columns: list[ColumnFacts]
    findings: list[FindingFacts]
    against: str = Field(description="What speaks against trusting the answer, in a line.")
    assumed: str = Field(description="What was assumed, in a line.")


class ReadingChoices(Message):
    """Options for reading the table, before the network does."""

    scale: Literal["auto", "given", "log"] = "auto"


NOT_ON_THE_PAGE = ("columns", "delimiter", "decimal", "sheet", "header")
"""Reading options for which people change the file."""
_TYPES: Mapping[Form, Any] = {
    "names": Annotated[list[Name], Field(max_length=MAX_COLUMNS)],
    "missing": Missing,
    "kinds": Annotated[dict[Name, Kind], Field(max_length=MAX_COLUMNS)],
    "orders": Annotated[dict[Name, list[Name]], Field(max_length=MAX_COLUMNS)],
    "column": Name | None,
}
_EMPTY: Mapping[Form, Any] = {"names": [], "kinds": {}, "orders": {}}

ReadingChoices = create_model(  # type: ignore[misc, call-overload]
    "ReadingChoices",
    __base__=ReadingChoices,
    __doc__=ReadingChoices.__doc__,
    **{
        option.name: (_TYPES[option.form], Field(_EMPTY.get(option.form, option.default), description=option.help))
        for option in READ_OPTIONS.values()
        if option.name not in NOT_ON_THE_PAGE
    },
)


# Graphs


class BelievedStatement(Message):
    """A statement that is probably true."""

    statement: Annotated[str, Field(max_length=2000)]
    probability: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    who: Annotated[str, Field(max_length=1000)] = ""
    why: Annotated[str, Field(max_length=1000)] = ""


class KnowledgeStatements(Message):
    """The person's knowledge about the graph."""

    required: Annotated[list[Pair], Field(max_length=MAX_STATEMENTS)] = []
    forbidden: Annotated[list[Pair], Field(max_length=MAX_STATEMENTS)] = []
    tiers: Annotated[list[list[Name]], Field(max_length=1000)] = []
    roots: Annotated[list[Name], Field(max_length=5000)] = []
    leaves: Annotated[list[Name], Field(max_length=5000)] = []
    no_hidden_cause: Annotated[list[Pair], Field(max_length=MAX_STATEMENTS)] = []
    randomized: Annotated[list[Name], Field(max_length=5000)] = []
    beliefs: Annotated[list[BelievedStatement], Field(max_length=1000)] = []


class Argument(Message):
    """Options for decoding the graph from the network's answer."""

    knowledge: KnowledgeStatements = KnowledgeStatements()
    decode: Literal["map", "shd", "f1"] = "map"
    threshold: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    directions: Literal["tempered", "network"] = "tempered"
    hidden: Literal["none", "standing-out", "all"] = "standing-out"
    hidden_threshold: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    version: int | None = Field(default=None, description="That of the graph which it changes; another one is refused.")


class EdgeFacts(Message):
    """One edge of the graph."""

    source: str
    target: str
    probability: Probability
    adjacency_probability: Probability
    direction: Literal["strong", "moderate", "weak"]
    decided: Literal["required", "by knowledge", "by environment", "by experiment"] | None = Field(
        description="What decides the direction in place of the network."
    )
    required: bool


class ShownHiddenCause(Message):
    """Two variables that probably share a cause outside the table."""

    variables: list[str]
    probability: Probability


class Suggestion(Message):
    """Knowledge that column names suggest and the graph contradicts."""

    words: str
    names: list[str]
    kind: Literal["first tier", "roots"]


class Graph(Message):
    """The current graph, with the argument that led to it."""

    argument: Argument
    variables: list[str]
    edges: list[EdgeFacts]
    hidden_causes: list[ShownHiddenCause]
    judges_hidden_causes: bool = Field(description="Whether the network gives probabilities of hidden causes.")
    order: list[str]
    remarks: list[str]
    suggestion: Suggestion | None
    version: int = Field(default=0, description="Goes up with every change of the session.")


class StabilityRequest(Message):
    """Number of tables to draw from the observations, with replacement."""

    resamples: Annotated[int, Field(ge=2, le=100)] = 50


class StableEdge(Message):
    """An edge of the graph, and the share of the resampled tables whose graph has it too."""

    source: str
    target: str
    frequency: Probability


class Stability(Message):
    """Progress of the network with resampled tables, and the frequency of each edge in them."""

    state: JobState | Literal["none"]
    ahead: int
    share: Probability = Field(description="How much is done.")
    message: str | None = Field(description="Why it failed.")
    resamples: int
    edges: list[StableEdge]


class KeptFacts(Message):
    """An answer that is kept for comparison."""

    number: int
    name: str


class SessionFacts(Message):
    """A session: its table, how far the network is, and the graph once there is one."""

    session: str
    state: JobState | Literal["ready"]
    ahead: int = Field(description="How many tables come first.")
    seconds: float = Field(description="How long the network has been at it.")
    message: str | None = Field(description="Why it failed.")
    offers: list[Offer] = Field(description="What can be done about that.")
    notice: str | None = Field(description="What to know about the last reading.")
    table: TableFacts
    choices: ReadingChoices = Field(description="The choices behind the graph.")
    asked: ReadingChoices = Field(description="The choices of the last reading, which may have failed.")
    graph: Graph | None
    stability: JobState | Literal["none"]
    kept: list[KeptFacts]


class Node(Message):
    """Position of a variable in pixels; y grows downwards."""

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float


class Drawing(Message):
    """The graph to draw and the room for it in pixels; most edges follow the order of the names."""

    names: Annotated[list[Name], Field(max_length=MAX_COLUMNS)]
    edges: Annotated[list[Pair], Field(max_length=MAX_STATEMENTS)]
    width: Annotated[float, Field(ge=100, le=10_000)]
    height: Annotated[float, Field(ge=100, le=10_000)]


class DrawnEdge(Message):
    """The points an edge runs through, from the box of its cause to that of its effect."""

    source: str
    target: str
    points: list[list[float]]


class Places(Message):
    """The layout of the graph: causes on top."""

    nodes: list[Node]
    routes: list[DrawnEdge]


# Questions


class Axis(Message):
    """A variable of a plot; the values of one with levels are codes 0, 1, 2, ..."""

    name: str
    levels: list[str]
    log: bool = Field(default=False, description="Whether the network read it on a log scale.")


class LevelSummary(Message):
    """The observations with one level of a variable, and the values of a number among them."""

    level: str
    count: int
    mean: float | None
    deviation: float | None = Field(description="Standard deviation.")


class Plot(Message):
    """Two variables against each other: points (some of them if there are many), or how often levels meet."""

    x: Axis
    y: Axis
    points: list[list[float]]
    counts: list[list[int]] | None = Field(description="For two variables with levels: rows are levels of y.")
    summaries: list[LevelSummary] = Field(description="For a variable with levels and a number: one per level.")
    shown: int
    observations: int


class PairStability(Message):
    """The edges between two variables in the graphs of resampled tables."""

    resamples: int
    frequency: Probability
    reversed_frequency: Probability
    words: str


class EdgeDetails(Message):
    """All there is to say about the edge between two variables."""

    source: str
    target: str
    words: str
    sentences: list[str]
    probability: Probability
    reversed_probability: Probability
    no_edge_probability: Probability
    in_graph: bool
    hidden_cause_probability: Probability | None = Field(description="Null where the network gives none.")
    stability: PairStability | None
    plot: Plot | None = Field(description="Null for a work file without its table.")


class CausalPath(Message):
    """A path from cause to effect, and in which share of the graphs it is the shortest."""

    variables: list[str]
    share: Probability


class CausalQuestion(Message):
    """Does one variable cause another, and along which paths?"""

    cause: str
    effect: str
    words: str
    probability: Probability
    reversed_probability: Probability
    graphs: int
    paths: list[CausalPath]
    hidden_causes: str | None = Field(description="On probable hidden causes along the path, in a sentence.")


# Comparison


class Independence(Message):
    """An independence that the graph implies: of two variables, given the direct causes of the first."""

    variable: str
    other: str
    given: list[str]
    p_value: Probability
    contradicted: bool


class Evidence(Message):
    """Evidence against the current graph."""

    words: str = Field(description="Whether the data contradict the graph, or why that was not tested.")
    tests: int = Field(description="How many independences were tested.")
    independences: list[Independence] = Field(description="The clearest contradictions first.")
    reversible: list[list[str]] = Field(description="Edges that no test of independence can direct.")
    equivalence: str


class Probabilities(Message):
    """The probability of every edge: a row per cause, a column per effect, along the causal order."""

    names: list[str]
    rows: list[list[Probability]]


class KeepRequest(Message):
    """Keep the answer as it stands under a name."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class ComparedAnswer(Message):
    """One of two answers that are compared."""

    name: str
    words: str
    graph: Graph


class Difference(Message):
    """One way in which two answers differ."""

    kind: Literal["only_left", "only_right", "reversed", "probability", "variable", "statement", "hidden_cause"]
    words: str
    pair: list[str] | None = Field(description="The variables of the edge it is about.")


class Comparison(Message):
    """Two answers, where to draw both, and how they differ."""

    left: ComparedAnswer
    right: ComparedAnswer
    places: Places
    words: str
    differences: list[Difference]
