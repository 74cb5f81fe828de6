"""The API of the page: sessions, the network's answer, arguments about it, questions, downloads."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import Field
from starlette.exceptions import HTTPException

from causal_arrow._version import __version__
from causal_arrow.discovery.inference import abilities, model_name, ready_model
from causal_arrow.discovery.pipeline import Discovery, Settings, discover
from causal_arrow.errors import ArrowError
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.report import inspect_table
from causal_arrow.tables.source_frame import FileInMemory
from causal_arrow.web import messages
from causal_arrow.web.downloads import DOWNLOADS
from causal_arrow.web.examples import EXAMPLES, ExampleTable
from causal_arrow.web.guard import UPLOADS, Guard
from causal_arrow.web.limits import ENDINGS, Limits
from causal_arrow.web.messages import Name
from causal_arrow.web.questions import causal_question, edge_details
from causal_arrow.web.queue import Job, NetworkQueue, TooBusyError
from causal_arrow.web.sessions import Choices, NoAnswerError, Session, Sessions, UnknownSessionError
from causal_arrow.web.views import argued, failure, graph_of, places_of, session_facts

STATIC = Path(__file__).parent / "static"
READERS = 2
"""Threads that read files and draw pictures beside the one that runs the network."""
SWEEP_SECONDS = 60.0
STATUSES: dict[type[Exception], int] = {UnknownSessionError: 404, NoAnswerError: 409, TooBusyError: 503}
"""Of errors that are not simply a request to put right (400)."""
TROUBLES: dict[int | str, dict[str, Any]] = {
    status: {"model": messages.Trouble, "description": description}
    for status, description in {
        400: "Something to put right, in a sentence",
        401: "No token, or a wrong one",
        403: "The request comes from the page of another site",
        404: "No such session, example or file",
        409: "The session has no graph yet",
        413: "Too large",
        421: "Addressed to another host",
        422: "Not of the described form",
        503: "Too many tables wait",
    }.items()
}

Result = TypeVar("Result")
Key = Annotated[str, InPath(description="The session, as it was named when it was made.", max_length=100)]
QueryName = Annotated[Name, Field()]


class TooLargeError(ArrowError):
    """An upload is larger than it may be."""


class Page:
    """What a server holds: the settings of the network, its sessions, and the line in front of the network."""

    def __init__(
        self,
        settings: Settings | None = None,
        limits: Limits | None = None,
        given: FileInMemory | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings or Settings()
        self.limits = limits or Limits()
        self.sessions = Sessions(self.limits, clock)
        self.queue = NetworkQueue(self.limits.most_waiting)
        self.examples = dict(EXAMPLES)
        self.given = None if given is None else "given"
        if given is not None:
            self.examples["given"] = ExampleTable(given.name, lambda: given)
        self._readers = asyncio.Semaphore(READERS)

    async def aside(self, work: Callable[[], Result]) -> Result:
        """What the work gives, done by a thread so that other pages are answered meanwhile."""
        async with self._readers:
            return await asyncio.to_thread(work)

    async def open(self, file: FileInMemory) -> Session:
        """A session for a table; TableError if it is too large or cannot be read at all."""

        def read() -> Session:
            self.limits.check_file(file)
            able = abilities(self.settings.model, ready_model(self.settings.model, self.settings.device))
            table = read_table(file, strict=False, missing="error", abilities=able)
            self.limits.check_table(table)
            return Session(file, inspect_table(table, abilities=able))

        return self.sessions.add(await self.aside(read))

    def start(self, session: Session, choices: Choices) -> None:
        """Put the table of a session in line for the network."""
        if session.job is not None:
            self.queue.cancel(session.job)

        def work() -> Discovery:
            return discover(session.file, self._settings_for(choices), drop=list(choices.drop))

        session.asked = choices
        session.job = self.queue.submit(Job(work, wanted=lambda: self.sessions.is_waited_for(session)))

    def _settings_for(self, choices: Choices) -> Settings:
        return Settings(
            model=self.settings.model, device=self.settings.device, missing=choices.missing, scale=choices.scale
        )

    def facts(self, session: Session) -> messages.SessionFacts:
        """The session as the page sees it."""
        return session_facts(session, self.queue)


def create_app(page: Page, token: str | None = None) -> Guard:
    """The application: the API, the page itself, and the guard around both."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(_sweep(page.sessions))
        yield
        sweeper.cancel()
        page.queue.close()

    app = FastAPI(
        title="Causal Arrow",
        version=__version__,
        description="The API behind `causal-arrow serve`.",
        docs_url=None,  # these pages would load programs from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(_routes(page))
    app.mount("/static", StaticFiles(directory=STATIC))

    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    _explain_errors(app)
    return Guard(app, token)


async def _sweep(sessions: Sessions) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        sessions.drop_old()


def _explain_errors(app: FastAPI) -> None:
    """Every error is JSON with one message."""

    def trouble(status: int, message: str) -> JSONResponse:
        return JSONResponse({"message": message.encode("utf-8", "replace").decode()}, status)

    @app.exception_handler(ArrowError)
    async def to_put_right(request: Request, error: ArrowError) -> JSONResponse:
        return trouble(413 if isinstance(error, TooLargeError) else STATUSES.get(type(error), 400), failure(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return trouble(422, f"The request is not of the described form: {where}: {first['msg']}.")

    @app.exception_handler(HTTPException)
    async def not_there(request: Request, error: HTTPException) -> JSONResponse:
        response = trouble(error.status_code, f"{error.detail}.")
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        return trouble(500, failure(error))


def _routes(page: Page) -> APIRouter:
    api = APIRouter(prefix="/api", responses=TROUBLES)
    session_of = page.sessions.get

    @api.get("/server")
    async def server() -> messages.Server:
        """What the page has to know: limits, the network, examples."""
        limits = page.limits
        return messages.Server(
            version=__version__,
            model=model_name(page.settings.model),
            most_bytes=limits.most_bytes,
            most_observations=limits.most_observations,
            most_variables=limits.most_variables,
            endings=list(ENDINGS),
            examples=[messages.Example(name=name, title=each.title) for name, each in page.examples.items()],
            given=page.given,
        )

    # Sessions

    octets = {
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    }

    @api.post(UPLOADS.removeprefix("/api"), status_code=201, openapi_extra=octets)
    async def open_table(request: Request, name: Name) -> messages.SessionFacts:
        """Open a table: its file as the body, `name` with the ending that tells its format."""
        content = await _upload(request, page.limits)
        return page.facts(await page.open(FileInMemory(Path(name.replace("\\", "/")).name or "table", content)))

    @api.post("/examples/{example}", status_code=201)
    async def open_example(example: Key) -> messages.SessionFacts:
        """Open one of the tables that come with the page."""
        if example not in page.examples:
            raise HTTPException(404, f"There is no example of this name: expected one of {', '.join(page.examples)}")
        return page.facts(await page.open(await page.aside(page.examples[example].file)))

    @api.get("/sessions/{session}")
    async def session_state(session: Key) -> messages.SessionFacts:
        """The table, how far the network is, and the graph once there is one."""
        return page.facts(session_of(session))

    @api.delete("/sessions/{session}", status_code=204)
    async def close(session: Key) -> None:
        """Forget the table and everything about it."""
        here = session_of(session)
        if here.job is not None:
            page.queue.cancel(here.job)
        page.sessions.drop(here)

    @api.post("/sessions/{session}/discovery", status_code=202)
    async def start(session: Key, choices: messages.ReadingChoices) -> messages.SessionFacts:
        """Let the network read the table. Ask for the session until its state is done or failed."""
        here = session_of(session)
        page.start(here, Choices(tuple(choices.drop), choices.missing, choices.scale))
        return page.facts(here)

    @api.delete("/sessions/{session}/discovery")
    async def stop(session: Key) -> messages.SessionFacts:
        """Stop waiting for the network."""
        here = session_of(session)
        if here.job is not None:
            page.queue.cancel(here.job)
        return page.facts(here)

    # Arguments

    @api.put("/sessions/{session}/graph")
    async def argue(session: Key, argument: messages.Argument) -> messages.Graph:
        """The graph under other knowledge, rule or threshold; the network does not run again."""
        here = session_of(session)
        found, _ = here.current()
        refined = await asyncio.to_thread(argued, found.answer, argument)
        if here.found is found:  # and not a newer one, of other columns
            here.answer = refined
        return await asyncio.to_thread(graph_of, refined)

    @api.get("/sessions/{session}/places")
    async def places(session: Key) -> messages.Places:
        """Where the variables and edges of the graph stand."""
        _, answer = session_of(session).current()
        return await page.aside(lambda: places_of(answer))

    @api.get("/sessions/{session}/edge")
    async def edge(session: Key, source: QueryName, target: QueryName) -> messages.EdgeDetails:
        """What there is to say about the edge between two variables."""
        found, answer = session_of(session).current()
        return await page.aside(lambda: edge_details(answer, found.table, source, target))

    @api.get("/sessions/{session}/question")
    async def question(session: Key, cause: QueryName, effect: QueryName) -> messages.CausalQuestion:
        """Whether one variable causes another, on which ways, and what to adjust for."""
        _, answer = session_of(session).current()
        return await page.aside(lambda: causal_question(answer, cause, effect))

    # Downloads

    files: dict[str, Any] = {name: {} for name in sorted({download.media_type for download in DOWNLOADS.values()})}

    @api.get("/sessions/{session}/files/{file}", response_class=Response, responses={200: {"content": files}})
    async def download(session: Key, file: Key) -> Response:
        """A file of the graph as it stands."""
        here = session_of(session)
        here.current()
        if file not in DOWNLOADS:
            raise HTTPException(404, f"There is no file of this name: expected one of {', '.join(DOWNLOADS)}")
        kind = DOWNLOADS[file]
        content = await page.aside(lambda: kind.make(here))
        return Response(
            content, media_type=kind.media_type, headers={"Content-Disposition": f'attachment; filename="{file}"'}
        )

    return api


async def _upload(request: Request, limits: Limits) -> bytes:
    """The body, if it is not too large. One that is a little so is read to its end, so that the browser hears why."""
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
