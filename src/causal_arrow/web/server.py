"""The server: one process on one address, and a guard that refuses requests which the page did not send.

A page on another site can make a browser send requests here, and can make its own name point to this machine (DNS
rebinding). So on a loopback address the Host header must name this machine, on any address a request that another
site's page started is refused, and where other machines can reach the server the API asks for a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import secrets
import socket
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.tables import Abilities, FileInMemory
from causal_arrow.web.uploads import Limits, read_apart

API = "/api/"
UPLOADS = "/api/sessions"
WINDOW_SECONDS = 8.0
MIN_BYTES_PER_WINDOW = 64 * 2**10  # a body must bring so much in so many seconds, or end
MAX_REQUEST = 4 * 2**20  # bytes of any request except an upload: knowledge about a few hundred variables is far smaller

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether a name or address is reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """ASGI middleware that refuses requests which the page did not send."""

    app: ASGIApp
    token: str | None = None  # the token that the API requires; None on a loopback address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            most = math.inf if scope["path"] == UPLOADS else MAX_REQUEST
            await self.app(scope, _bounded(receive, most), send_with_headers)
        else:
            status, sentence = refusal
            await JSONResponse({"message": sentence}, status)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and sentence for a request that is not answered."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if self.token is None and not is_loopback(name):
            return 421, "This server answers only to its own address, such as http://127.0.0.1:8765."
        in_api = scope["path"].startswith(API)
        of_another_site = headers.get("origin", f"http://{host}") not in (f"http://{host}", f"https://{host}")
        if of_another_site or (headers.get("sec-fetch-site") == "cross-site" and in_api):
            return 403, "Pages of other sites may not use this server."
        if self.token is not None and in_api:
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not secrets.compare_digest(given.encode(), self.token.encode()):
                return 401, "This server needs its token: open the address that it printed when it started."
        return None


def _bounded(receive: Receive, most: float) -> Receive:
    """Receive a body of at most so many bytes, while it comes at some speed; HTTPException for any other."""
    complete = False
    total, came, until = 0, 0, 0.0

    async def next_message() -> Message:
        nonlocal complete, total, came, until
        if complete:
            return await receive()
        now = asyncio.get_running_loop().time()
        if until == 0.0 or came >= MIN_BYTES_PER_WINDOW:
            came, until = 0, now + WINDOW_SECONDS
        try:
            message = await asyncio.wait_for(receive(), max(until - now, 0))
        except asyncio.TimeoutError:  # another class before Python 3.11
            message = {"type": "http.disconnect"}
        if message["type"] != "http.request":
            raise HTTPException(408, "The request did not arrive: it was too slow, or was broken off")
        came += len(message.get("body", b""))
        total += len(message.get("body", b""))
        if total > most:
            raise HTTPException(413, f"The request is larger than {MAX_REQUEST // 2**20} MB")
        complete = not message.get("more_body")
        return message

    return next_message


HEADER_SECONDS = 8.0
SECONDS_TO_READ_REPLY = 1.0
EVERY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Address:
    """Address at which the server listens, and the token that its API asks for where that is not a loopback address."""

    host: str
    port: int
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, host: str, port: int) -> Address:
        """The address, with a new token where it needs one."""
        return cls(host, port, None if is_loopback(host) else secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        """The address to open in a browser; the part after # stays in the browser."""
        host = socket.gethostname() if self.host in EVERY_ADDRESS else self.host
        place = f"[{host}]" if ":" in host else host
        return f"http://{place}:{self.port}/{f'#token={self.token}' if self.token else ''}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; ConfigurationError if that cannot be."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"Cannot listen on {host!r}: no such address.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. Choose another port."
        ) from error
    return listener


def file_in_memory(path: Path, limits: Limits) -> FileInMemory:
    """A file of this machine as the page would send it; TableError if it cannot be read or is too large."""
    try:
        if path.stat().st_size > limits.most_bytes:
            raise limits.too_many_bytes()
        file = FileInMemory(path.name, path.read_bytes())
    except FileNotFoundError:
        raise TableError(f"There is no file '{path}'.") from None
    except (OSError, ValueError) as error:
        raise TableError(f"Cannot read '{path}': {getattr(error, 'strerror', None) or error}.") from error
    read_apart(file, limits, Abilities())
    return file


def _impatient_protocol() -> Any:
    """Uvicorn's protocol, which closes connections whose request line and headers do not come in time."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class ImpatientProtocol(H11Protocol):
        patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.patience is not None:
                self.patience.cancel()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.conn.their_state is h11.SEND_BODY:  # an answer to a body that did not come to its end
                self.loop.call_later(SECONDS_TO_READ_REPLY, self.transport.close)

        def _wait(self) -> None:
            """Start to wait where a request has begun to come, and stop where its headers are there."""
            waits = self.conn.their_state is h11.IDLE
            if waits and self.patience is None:
                self.patience = self.loop.call_later(HEADER_SECONDS, self.transport.close)
            elif not waits and self.patience is not None:
                self.patience.cancel()
                self.patience = None

    return ImpatientProtocol


@contextlib.contextmanager
def running(
    listener: socket.socket, app: object, log_level: str = "warning", seconds_to_leave: int = 3
) -> Iterator[Thread]:
    """A thread that serves the application on the socket until the block ends."""
    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=_impatient_protocol(),
        ws="none",
        log_level=log_level,
        timeout_graceful_shutdown=seconds_to_leave,
        server_header=False,
    )
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="web", daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        server.should_exit = True
        thread.join(seconds_to_leave + 5)


def open_browser(url: str) -> None:
    """Show the page, where there is a browser to show it."""
    Thread(target=webbrowser.open, args=(url,), daemon=True).start()
