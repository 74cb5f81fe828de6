"""What goes over the wire: the requests and answers of the API, as `/openapi.json` describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Probability = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1, max_length=10_000)]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]
MOST_STATEMENTS = 50_000


class Message(BaseModel):
    """Base of everything here: unknown fields are refused, so that a misspelled one is not ignored."""

    model_config = ConfigDict(extra="forbid")


class Trouble(Message):
    """What went wrong, in one sentence or two."""

    message: str


class Example(Message):
    """A table that comes with the page, or that the server was started with."""

    name: str
    title: str


class Server(Message):
    """What the page has to know of the server."""

    version: str
    model: str
    most_bytes: int
    most_observations: int
    most_variables: int
    endings: list[str]
    examples: list[Example]
    given: str | None = Field(description="The example that `causal-arrow serve TABLE` was started with.")


# Tables


class ColumnFacts(Message):
    """A column of the table."""

    name: str
    kind: str
    levels: list[str]


class Offer(Message):
    """Something that the page can do about a finding."""

    label: str
    drop: list[str] = []
    missing: Literal["error", "drop", "impute"] | None = None


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
    columns: list[ColumnFacts]
    findings: list[FindingFacts]
    against: str = Field(description="What speaks against trusting the answer, in a line.")
    assumed: str = Field(description="What was assumed, in a line.")


class ReadingChoices(Message):
    """How to read the table before the network does."""

    drop: Annotated[list[Name], Field(max_length=5000)] = []
    missing: Literal["error", "drop", "impute"] = "error"
    scale: Literal["auto", "given", "log"] = "auto"


# Graphs


class KnowledgeStatements(Message):
    """What the person knows about the graph."""

    required: Annotated[list[Pair], Field(max_length=MOST_STATEMENTS)] = []
    forbidden: Annotated[list[Pair], Field(max_length=MOST_STATEMENTS)] = []
    tiers: Annotated[list[list[Name]], Field(max_length=1000)] = []
    roots: Annotated[list[Name], Field(max_length=5000)] = []
    leaves: Annotated[list[Name], Field(max_length=5000)] = []


class Argument(Message):
    """How the graph is to be read off the network's answer."""

    knowledge: KnowledgeStatements = KnowledgeStatements()
    rule: Literal["map", "shd", "f1"] = "map"
    threshold: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5


class EdgeFacts(Message):
    """One edge of the graph."""

    source: str
    target: str
    probability: Probability
    adjacency_probability: Probability
    direction: Literal["certain", "likely", "uncertain"]
    required: bool


class HiddenCause(Message):
    """Two variables that probably share a cause outside the table."""

    variables: list[str]
    probability: Probability


class Graph(Message):
    """The graph as it stands, with the argument that led to it."""

    argument: Argument
    variables: list[str]
    edges: list[EdgeFacts]
    hidden_causes: list[HiddenCause]
    order: list[str]
    remarks: list[str]


class SessionFacts(Message):
    """A session: its table, how far the network is, and the graph once there is one."""

    session: str
    state: Literal["ready", "waiting", "running", "done", "failed", "cancelled"]
    ahead: int = Field(description="How many tables come first.")
    message: str | None = Field(description="Why it failed.")
    table: TableFacts
    choices: ReadingChoices
    graph: Graph | None


class Node(Message):
    """Where a variable stands, in pixels; y grows downwards."""

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float


class Bends(Message):
    """The points an edge passes between its two variables."""

    source: str
    target: str
    points: list[list[float]]


class Places(Message):
    """The layout of the graph: causes on top."""

    nodes: list[Node]
    bends: list[Bends]


# Questions


class Axis(Message):
    """A variable of a plot; the values of one with levels are codes 0, 1, 2, ..."""

    name: str
    levels: list[str]


class Plot(Message):
    """Two variables against each other: points (some of them if there are many), or how often levels meet."""

    x: Axis
    y: Axis
    points: list[list[float]]
    counts: list[list[int]] | None = Field(description="For two variables with levels: rows are levels of y.")
    shown: int
    observations: int


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
    plot: Plot


class CausalPath(Message):
    """A way from cause to effect, and in which share of the graphs it is the shortest."""

    variables: list[str]
    share: Probability


class AdjustmentSet(Message):
    """Variables to adjust for, and the share of the graphs with an effect that ask for exactly these."""

    variables: list[str]
    share: Probability


class CausalQuestion(Message):
    """Does one variable cause another, on which ways, and what to adjust for to measure the effect."""

    cause: str
    effect: str
    words: str
    probability: Probability
    reversed_probability: Probability
    graphs: int
    paths: list[CausalPath]
    adjustment_sets: list[AdjustmentSet]
