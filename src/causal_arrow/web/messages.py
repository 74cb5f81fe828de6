"""The requests of the API, as `/openapi.json` describes them; it answers with JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from causal_arrow.series import MAX_LAGS
from causal_arrow.tables.options import READ_OPTIONS, Form, Kind, Missing

MAX_STATEMENTS = 50_000
MAX_COLUMNS = 5000
Facts = dict[str, Any]  # a JSON object of an answer
Name = Annotated[str, Field(min_length=1, max_length=10_000)]
Names = Annotated[list[Name], Field(max_length=MAX_COLUMNS)]
Pairs = Annotated[list[Annotated[list[Name], Field(min_length=2, max_length=2)]], Field(max_length=MAX_STATEMENTS)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class Message(BaseModel):
    """Base of everything here: unknown fields are refused, so that a misspelled one is not ignored."""

    model_config = ConfigDict(extra="forbid")


class Trouble(Message):
    """The error, in one sentence or two."""

    message: str


class ReadingChoices(Message):
    """Options for reading the table, before the network does."""

    scale: Literal["auto", "given", "log"] = "auto"


OF_FILES = ("delimiter", "decimal", "sheet", "header")  # reading options for which people change the file
TYPES: Mapping[Form, Any] = {
    "names": Names,
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
        option.name: (TYPES[option.form], Field(_EMPTY.get(option.form, option.default), description=option.help))
        for option in READ_OPTIONS.values()
        if option.name not in (*OF_FILES, "columns")
    },
)


class SeriesChoices(Message):
    """Options for reading the table as a time series."""

    lags: Annotated[int, Field(ge=1, le=MAX_LAGS)] | Literal["auto"] = "auto"
    time: Name | None = Field(None, description="The column with the time of each row; else rows are in order.")
    unit: Name | None = Field(None, description="The column with the unit of each row, in a panel.")
    difference: Names | bool = Field(False, description="Columns whose changes are analyzed, or true for all numbers.")
    season: Annotated[int, Field(ge=2, le=10**6)] | None = None
    resample: Annotated[str, Field(max_length=20)] | None = Field(
        None, description="Length of the equal steps to bring irregular times to, such as D, W, MS or a number."
    )
    contemporaneous: bool = True


class BelievedStatement(Message):
    """A statement that is probably true."""

    statement: Annotated[str, Field(max_length=2000)]
    probability: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    who: Annotated[str, Field(max_length=1000)] = ""
    why: Annotated[str, Field(max_length=1000)] = ""


class KnowledgeStatements(Message):
    """The person's knowledge about the graph."""

    required: Pairs = []
    forbidden: Pairs = []
    tiers: Annotated[list[list[Name]], Field(max_length=1000)] = []
    roots: Names = []
    leaves: Names = []
    no_hidden_cause: Pairs = []
    randomized: Names = []
    beliefs: Annotated[list[BelievedStatement], Field(max_length=1000)] = []


class Argument(Message):
    """Options for decoding the graph from the network's answer."""

    knowledge: KnowledgeStatements = KnowledgeStatements()
    decode: Literal["map", "shd", "f1"] = "map"
    threshold: Share = 0.5
    directions: Literal["tempered", "network"] = "tempered"
    hidden: Literal["none", "standing-out", "all"] = "standing-out"
    hidden_threshold: Share = 0.5
    version: int | None = Field(default=None, description="That of the graph which it changes; another one is refused.")


class StabilityRequest(Message):
    """Number of tables to draw from the observations, with replacement."""

    resamples: Annotated[int, Field(ge=2, le=100)] = 50


class KeepRequest(Message):
    """Keep the answer as it stands under a name."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class Drawing(Message):
    """The graph to draw and the room for it in pixels; most edges follow the order of the names."""

    names: Names
    edges: Pairs
    width: Annotated[float, Field(ge=100, le=10_000)]
    height: Annotated[float, Field(ge=100, le=10_000)]
