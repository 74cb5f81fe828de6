"""The table of a session read as a time series: its window graph, its summary graph and effects over time."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import Field

from causal_arrow.discovery.inference import ready_model
from causal_arrow.errors import TableError
from causal_arrow.series import MAX_LAGS, SeriesOptions
from causal_arrow.series.discovery import SeriesDiscovery, discover_series
from causal_arrow.series.distribution import replace_edges
from causal_arrow.series.exports import COLUMNS, cells, sentences, title
from causal_arrow.series.pictures import as_svg, curve_as_svg
from causal_arrow.web.messages import MAX_COLUMNS, JobState, Message, Name
from causal_arrow.web.page import Page
from causal_arrow.web.queue import Job, stopped_when_unwanted
from causal_arrow.web.sessions import NoAnswerError, Session, about
from causal_arrow.web.views import failure
from causal_arrow.web.wording import PAGE

Key = Annotated[str, InPath(description="The session, as it was named when it was made.", max_length=100)]


class SeriesChoices(Message):
    """Options for reading the table as a time series."""

    lags: Annotated[int, Field(ge=1, le=MAX_LAGS)] | Literal["auto"] = "auto"
    time: Name | None = Field(None, description="The column with the time of each row; else rows are in order.")
    unit: Name | None = Field(None, description="The column with the unit of each row, in a panel.")
    difference: Annotated[list[Name], Field(max_length=MAX_COLUMNS)] | bool = Field(
        False, description="Columns whose changes are analyzed, or true for all numbers."
    )
    season: Annotated[int, Field(ge=2, le=10**6)] | None = None
    resample: Annotated[str, Field(max_length=20)] | None = Field(
        None, description="Length of the equal steps to bring irregular times to, such as D, W, MS or a number."
    )
    contemporaneous: bool = True


class SeriesGraph(Message):
    """A window graph in words and pictures."""

    title: str
    variables: list[str]
    columns: list[str] = Field(description="Names of the columns of the table of edges.")
    edges: list[list[str]]
    sentences: list[str]
    warnings: list[str]
    summary: str = Field(description="The summary graph as SVG.")
    window: str = Field(description="The window graph as SVG.")


class SeriesFacts(Message):
    """The progress of the network, and the graph once there is one."""

    state: JobState | Literal["none"]
    ahead: int
    message: str | None
    graph: SeriesGraph | None


class ResponseFacts(Message):
    """An effect over time."""

    words: str
    picture: str = Field(description="The curve with its interval as SVG.")


def series_routes(page: Page) -> APIRouter:
    """The part of the API that is about time series."""
    api = APIRouter()
    session_of = page.sessions.get

    @api.post("/sessions/{session}/series", status_code=202)
    async def start(session: Key, choices: SeriesChoices) -> SeriesFacts:
        """Let the network read the table as a time series. Ask until its state is done or failed."""
        here = session_of(session)
        _start(page, here, SeriesOptions(**choices.model_dump()))
        return await page.aside(lambda: _facts(page, here))

    @api.get("/sessions/{session}/series")
    async def state(session: Key) -> SeriesFacts:
        """The progress of the network, and its graphs."""
        here = session_of(session)
        return await page.aside(lambda: _facts(page, here))

    @api.delete("/sessions/{session}/series")
    async def stop(session: Key) -> SeriesFacts:
        """Stop waiting for the network."""
        here = session_of(session)
        page.queue.cancel(here.series)
        return await page.aside(lambda: _facts(page, here))

    @api.get("/sessions/{session}/series/response")
    async def response(
        session: Key, cause: Name, effect: Name, kind: Literal["pulse", "step"] = "pulse"
    ) -> ResponseFacts:
        """Estimate what happens to one variable 0, 1, 2, ... steps after another was raised by one."""
        here = session_of(session)
        found = None if here.series is None else here.series.result
        if found is None:
            raise NoAnswerError("This table was not read as a time series yet.")
        curve = await page.aside(lambda: found.response(cause, effect, kind=kind))
        return ResponseFacts(words=str(curve), picture=await page.aside(lambda: curve_as_svg(curve)))

    return api


def _start(page: Page, session: Session, options: SeriesOptions) -> None:
    """Put the series in line for the network. Tiers, roots and forbidden edges hold at every lag."""
    if any(finding.kind == "sampled" for finding in session.raw.findings):
        raise TableError("The page reads a sample of this long table, which leaves gaps in time: use the command line.")
    page.queue.cancel(session.series)
    asked = session.asked
    settings = page.settings.changed(scale=asked.scale, **asked.reading.to_dict(), **options.to_dict())
    if session.answer is not None:
        names = [name for name in session.answer.names if name not in (options.time, options.unit)]
        known = about(session.answer.knowledge, names)
        settings = settings.changed(knowledge=replace_edges(known, forbidden=known.forbidden))
    network = ready_model(page.settings.model, page.settings.device)

    def work() -> SeriesDiscovery:
        with stopped_when_unwanted(network, lambda: job):
            return discover_series(session.raw, settings)

    job: Job[SeriesDiscovery] = Job(work, wanted=lambda: page.sessions.is_waited_for(session))
    session.series = page.queue.submit(job)


def _facts(page: Page, session: Session) -> SeriesFacts:
    job = session.series
    if job is None:
        return SeriesFacts(state="none", ahead=0, message=None, graph=None)
    found = job.result
    return SeriesFacts(
        state=job.state,  # type: ignore[arg-type]
        ahead=page.queue.ahead(job),
        message=None if job.error is None else failure(job.error),
        graph=None if found is None else _graph(found),
    )


def _graph(found: SeriesDiscovery) -> SeriesGraph:
    answer = found.answer
    return SeriesGraph(
        title=title(answer),
        variables=list(answer.names),
        columns=list(COLUMNS),
        edges=[list(cells(edge)) for edge in answer.edges],
        sentences=sentences(answer),
        warnings=list(answer.worded_warnings(PAGE)),
        summary=as_svg(answer, "summary"),
        window=as_svg(answer, "window"),
    )
