"""The API of the page: sessions, the network's answer, arguments about it, questions, downloads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from causal_arrow._version import __version__
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import model_name
from causal_arrow.errors import ArrowError, ConfigurationError
from causal_arrow.series import SeriesOptions
from causal_arrow.series.pictures import curve_as_svg
from causal_arrow.tables import FileInMemory
from causal_arrow.web import _questions, messages
from causal_arrow.web._downloads import DOWNLOADS
from causal_arrow.web._queue import TooBusyError
from causal_arrow.web._sessions import EffectAsked, NoAnswerError, OutdatedError, Session, UnknownSessionError
from causal_arrow.web._views import kept_facts, series_facts, session_facts, stability_facts
from causal_arrow.web._wording import failure
from causal_arrow.web.graphs import NETWORK, NOW, answer_called, argued, comparison, graph_of, places_of, saved_answer
from causal_arrow.web.messages import Facts, Name
from causal_arrow.web.page import Page
from causal_arrow.web.server import UPLOADS, Guard
from causal_arrow.web.uploads import ENDINGS, Limits, warm_up
from causal_arrow.web.work import ENDING as WORK_ENDING
from causal_arrow.web.work import table_of

STATIC = Path(__file__).parent / "static"


class TooLargeError(ArrowError):
    """An upload is larger than it may be."""


STATUSES: dict[type[Exception], int] = {
    UnknownSessionError: 404,
    NoAnswerError: 409,
    OutdatedError: 409,
    TooLargeError: 413,
    TooBusyError: 503,
}
"""Status codes of errors other than a bad request (400)."""
TROUBLES: dict[int | str, dict[str, Any]] = {
    status: {"model": messages.Trouble} for status in (400, 401, 403, 404, 408, 409, 413, 421, 422, 503)
}
"""Status codes of refusals, which the description lists for every request."""

Key = Annotated[str, InPath(description="The session, as it was named when it was made.", max_length=100)]
QueryName = Annotated[Name, Field()]
OptionalName = Annotated[Name | None, Field()]
Which = Annotated[str, Field(max_length=20)]
Result = TypeVar("Result")


def _page(request: Request) -> Page:
    page: Page = request.app.state.page
    return page


ThePage = Annotated[Page, Depends(_page)]


async def _session(page: ThePage, session: Key) -> Session:
    await page.restore(session)
    return page.sessions.get(session)


Here = Annotated[Session, Depends(_session)]


async def _found(here: Here) -> Discovery:
    return here.current()


Found = Annotated[Discovery, Depends(_found)]
"""The discovery of the session as it stands; NoAnswerError before there is one."""


api = APIRouter(prefix="/api", responses=TROUBLES)
OCTETS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@api.get("/server")
async def server(page: ThePage) -> Facts:
    """Facts that the page needs: limits, the network, examples."""
    return {
        "version": __version__,
        "model": model_name(page.settings.model),
        "most_bytes": page.limits.most_bytes,
        "most_observations": page.limits.most_observations,
        "most_variables": page.limits.most_variables,
        "reads": sorted((await page.aside(page.abilities)).parts),  # what the network reads besides numbers
        "endings": [*ENDINGS, WORK_ENDING],
        "autosaves": page.store is not None,
        "examples": [
            {"name": name, "title": each.title, "question": each.question, "wording": each.wording}
            for name, each in page.examples.items()
        ],
        "given": page.given,
    }


# Sessions


@api.post(UPLOADS.removeprefix("/api"), status_code=201, openapi_extra=OCTETS)
async def open_table(page: ThePage, request: Request, name: Name) -> Facts:
    """Open a table or a work file: the file as the body, `name` with the ending of its format."""
    file = FileInMemory(_base_name(name), await _upload(request, page.limits))
    return session_facts(await _while_waited_for(request, page.open(file)), page.queue)


@api.post("/examples/{example}", status_code=201)
async def open_example(page: ThePage, example: Key) -> Facts:
    """Open one of the tables that come with the page."""
    if example not in page.examples:
        raise HTTPException(404, f"There is no example of this name: expected one of {', '.join(page.examples)}")
    file = await page.aside(page.examples[example].file)
    opened = await page.open(file)
    opened.example = example
    return session_facts(opened, page.queue)


@api.get("/sessions/{session}")
async def session_state(page: ThePage, here: Here) -> Facts:
    """The table, how far the network is, and the graph once there is one."""
    return session_facts(here, page.queue)


@api.delete("/sessions/{session}", status_code=204)
async def close(page: ThePage, here: Here) -> None:
    """Forget the table and everything about it."""
    page.drop(here)


@api.post("/sessions/{session}/discovery", status_code=202)
async def start(page: ThePage, here: Here, choices: messages.ReadingChoices) -> Facts:
    """Let the network read the table. Ask for the session until its state is done or failed."""
    page.start(here, page.settings.changed(**choices.model_dump()))
    return session_facts(here, page.queue)


@api.delete("/sessions/{session}/discovery")
async def stop(page: ThePage, here: Here) -> Facts:
    """Stop waiting for the network."""
    page.queue.cancel(here.job)
    return session_facts(here, page.queue)


# Stability


@api.post("/sessions/{session}/stability", status_code=202)
async def resample(page: ThePage, here: Here, request: messages.StabilityRequest) -> Facts:
    """Let the network read bootstrap resamples. Ask until its state is done or failed."""
    page.start_resampling(here, request.resamples)
    return stability_facts(here, page.queue)


@api.get("/sessions/{session}/stability")
async def stability(page: ThePage, here: Here, found: Found) -> Facts:
    """Progress of the network with them, and the frequency of each edge of the graph."""
    return await page.aside(lambda: stability_facts(here, page.queue))


@api.delete("/sessions/{session}/stability")
async def stop_resampling(page: ThePage, here: Here) -> Facts:
    """Stop reading resampled tables."""
    page.queue.cancel(here.resampling)
    return await page.aside(lambda: stability_facts(here, page.queue))


# Arguments


@api.put("/sessions/{session}/graph")
async def argue(here: Here, current: Found, argument: messages.Argument) -> Facts:
    """The graph under other knowledge, rule or threshold; the network does not run again."""
    here.check_version(argument.version)
    return await _take_over(here, argument.version, lambda: argued(current.answer, argument))


async def _take_over(here: Session, version: int | None, work: Callable[[], Answer]) -> Facts:
    """The session's new graph; OutdatedError if another one came first."""
    found = here.found
    assert found is not None  # or there were nothing to argue about
    answer = await asyncio.to_thread(work)
    here.argue(found, answer, version)
    return {**await asyncio.to_thread(graph_of, answer), "version": here.version}


@api.post("/sessions/{session}/places")
async def places(page: ThePage, here: Here, drawing: messages.Drawing) -> Facts:
    """Positions of boxes and edges of a drawing: those of a graph, of a part of it, or with groups as single boxes."""
    page.limits.check_used(len(drawing.names))
    if len({*drawing.names}) < len(drawing.names) or not {*chain(*drawing.edges)} <= {*drawing.names}:
        raise ConfigurationError("Expected edges between boxes with different names.")
    if any(source == target for source, target in drawing.edges):
        raise ConfigurationError("Expected edges between two different boxes.")
    canvas = drawing.width, drawing.height
    return await page.aside(lambda: places_of(drawing.names, drawing.edges, canvas))


# Questions


@api.get("/sessions/{session}/edge")
async def edge(page: ThePage, here: Here, found: Found, source: QueryName, target: QueryName) -> Facts:
    """The edge between two variables: its probabilities, what supports it, and their data."""
    return await page.aside(
        lambda: _questions.edge_details(found.answer, table_of(found), source, target, here.stability())
    )


@api.get("/sessions/{session}/question")
async def question(page: ThePage, found: Found, cause: QueryName, effect: QueryName) -> Facts:
    """Whether one variable causes another, and along which paths."""
    return await page.aside(lambda: _questions.causal_question(found, cause, effect))


@api.get("/sessions/{session}/effect")
async def effect(
    page: ThePage,
    here: Here,
    found: Found,
    cause: QueryName,
    effect: QueryName,
    first: OptionalName = None,
    second: OptionalName = None,
    estimator: Literal["flexible", "linear", "curved"] = "flexible",
    randomized: bool = False,
    level: OptionalName = None,
) -> Facts:
    """The effect of one variable on another, per unit or from `first` to `second`: what `Effect.to_dict` gives, unit,
    cautions, curve, and the difference without adjustment."""
    if (first is None) != (second is None):
        raise ConfigurationError("Expected two values to compare, from one to the other, or none; got one.")
    between = None if first is None or second is None else (first, second)
    asked = EffectAsked(cause, effect, between, estimator, randomized, level)
    facts = await page.aside(lambda: _questions.effect_facts(found, asked))
    here.remember_question(asked)
    return {**facts, "truth": page.truth(here, asked)}


@api.get("/sessions/{session}/effects")
async def effects(page: ThePage, found: Found, effect: QueryName, level: OptionalName = None) -> Facts:
    """The effects of all other variables on one, or on the share of one of its levels, the largest first
    (`Effects.to_dict`)."""
    return await page.aside(lambda: found.effects(effect, level=level).to_dict())


# What speaks against the graph


@api.get("/sessions/{session}/evidence")
async def speaks_against(page: ThePage, found: Found) -> Facts:
    """The independences that the graph implies, each tested, and the directions that no such test can decide."""
    return await page.aside(lambda: _questions.evidence(found))


@api.get("/sessions/{session}/probabilities")
async def matrix(page: ThePage, found: Found) -> Facts:
    """The probability of every edge, along the causal order."""
    return await page.aside(lambda: _questions.probabilities(found.answer))


@api.get("/sessions/{session}/experiments")
async def advise(page: ThePage, found: Found, cause: OptionalName = None, effect: OptionalName = None) -> Facts:
    """Rank what to randomize or to measure next to learn about the graph, the causes of a variable, or an effect, as
    `ExperimentPlan.to_dict` gives it."""
    return await page.aside(lambda: _questions.experiments(found, cause, effect))


@api.post("/sessions/{session}/experiments", openapi_extra=OCTETS)
async def learn(page: ThePage, here: Here, current: Found, request: Request, name: Name, variable: QueryName) -> Facts:
    """Learn from an experiment that randomized a variable: its table as the body. Edges that it makes improbable are
    forbidden."""
    current.answer.index_of(variable)
    version, file = here.version, FileInMemory(_base_name(name), await request.body())
    opened = await _while_waited_for(request, page.opened(file))
    return await _take_over(here, version, lambda: current.learn_from_experiment(variable, opened.raw).answer)


# Time series


@api.post("/sessions/{session}/series", status_code=202)
async def start_series(page: ThePage, here: Here, choices: messages.SeriesChoices) -> Facts:
    """Let the network read the table as a time series. Ask until its state is done or failed."""
    page.start_series(here, SeriesOptions(**choices.model_dump()))
    return await page.aside(lambda: series_facts(here, page.queue))


@api.get("/sessions/{session}/series")
async def series(page: ThePage, here: Here) -> Facts:
    """Progress of the network, and its graphs in words and as SVG."""
    return await page.aside(lambda: series_facts(here, page.queue))


@api.delete("/sessions/{session}/series")
async def stop_series(page: ThePage, here: Here) -> Facts:
    """Stop waiting for the network."""
    page.queue.cancel(here.series)
    return await page.aside(lambda: series_facts(here, page.queue))


@api.get("/sessions/{session}/series/response")
async def response(
    page: ThePage, here: Here, cause: QueryName, effect: QueryName, kind: Literal["pulse", "step"] = "pulse"
) -> Facts:
    """Estimate what happens to one variable 0, 1, 2, ... steps after another was raised by one."""
    found = None if here.series is None else here.series.result
    if found is None:
        raise NoAnswerError("This table was not read as a time series yet.")
    curve = await page.aside(lambda: found.response(cause, effect, kind=kind))
    return {"words": str(curve), "picture": await page.aside(lambda: curve_as_svg(curve))}


# Comparison


@api.post("/sessions/{session}/kept", status_code=201)
async def keep(here: Here, found: Found, request: messages.KeepRequest) -> list[Facts]:
    """Keep the answer as it stands, to compare others with it."""
    here.keep(found.answer, request.name)
    return kept_facts(here)


@api.post("/sessions/{session}/kept/file", status_code=201, openapi_extra=OCTETS)
async def keep_file(page: ThePage, here: Here, found: Found, request: Request, name: Name) -> list[Facts]:
    """Keep an answer that was saved as graph.json: its file as the body."""
    content = await request.body()
    answer = await page.aside(lambda: saved_answer(content))
    page.limits.check_used(len(answer.names))
    here.keep(answer, _base_name(name))
    return kept_facts(here)


@api.delete("/sessions/{session}/kept/{number}")
async def forget(here: Here, number: int) -> list[Facts]:
    """Forget an answer that was kept."""
    here.kept = [each for each in here.kept if each.number != number]
    return kept_facts(here)


@api.get("/sessions/{session}/comparison")
async def compare(page: ThePage, here: Here, left: Which = NETWORK, right: Which = NOW) -> Facts:
    """Two answers side by side: `now` as it stands, `network` without any knowledge, or one that was kept."""
    one, other = (answer_called(here, which) for which in (left, right))
    return await page.aside(lambda: comparison(one, other))


# Downloads

MEDIA_TYPES: dict[str, Any] = {name: {} for name in sorted({kind.media_type for kind in DOWNLOADS.values()})}


@api.get("/sessions/{session}/files/{file}", response_class=Response, responses={200: {"content": MEDIA_TYPES}})
async def download(page: ThePage, here: Here, found: Found, file: Key) -> Response:
    """A file of the current graph."""
    if file not in DOWNLOADS:
        raise HTTPException(404, f"There is no file of this name: expected one of {', '.join(DOWNLOADS)}")
    kind = DOWNLOADS[file]
    content = await page.aside(lambda: kind.make(here))
    attached = {"Content-Disposition": f'attachment; filename="{file}"'}
    return Response(content, media_type=kind.media_type, headers=attached)


def _base_name(name: str) -> str:
    """The name of a file without the folders that some browsers send along."""
    return Path(name.replace("\\", "/")).name[:200] or "table"


async def _while_waited_for(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of the work, which is cancelled when the sender of the request leaves."""

    async def leaves() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(leaves())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _upload(request: Request, limits: Limits) -> bytes:
    """The body, if it is not too large. A slightly larger one is read to its end: the browser then gets the reason."""
    content = bytearray()
    received = 0
    async for piece in request.stream():
        received += len(piece)
        if received <= limits.most_bytes:
            content += piece
        elif received > 8 * limits.most_bytes:
            break
    if received > limits.most_bytes:
        raise TooLargeError(limits.too_many_bytes().message)
    return bytes(content)


def create_app(page: Page, token: str | None = None) -> Guard:
    """The application: the API, the page itself, and the guard around both."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        upkeep = asyncio.create_task(page.upkeep())
        Thread(target=warm_up, daemon=True).start()
        yield
        upkeep.cancel()
        page.queue.close()

    app = FastAPI(
        title="Causal Arrow",
        version=__version__,
        description="The API behind `causal-arrow serve`.",
        docs_url=None,  # these pages would load programs from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.page = page
    app.include_router(api)
    app.mount("/static", StaticFiles(directory=STATIC))

    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    for kind in (ArrowError, RequestValidationError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _trouble)
    return Guard(app, token)


async def _trouble(request: Request, error: Exception) -> JSONResponse:
    """Any error as JSON with one message."""
    status, message = STATUSES.get(type(error), 400 if isinstance(error, ArrowError) else 500), ""
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        status, message = 422, f"The request does not match the schema: {where}: {first['msg']}."
    elif isinstance(error, HTTPException):
        status, message = error.status_code, f"{error.detail}."
    elif isinstance(error, ClientDisconnect):
        status, message = 408, "The request did not arrive: it was too slow, or was broken off."
    message = (message or failure(error)).encode("utf-8", "replace").decode()
    return JSONResponse({"message": message}, status, getattr(error, "headers", None))
