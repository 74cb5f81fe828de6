"""The server: one process on one address, with a token where other machines can reach it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.tables import Abilities, FileInMemory
from causal_arrow.web.guard import is_loopback
from causal_arrow.web.limits import Limits
from causal_arrow.web.uploads import read_apart

HEADER_SECONDS = 8.0
SECONDS_TO_HEAR = 1.0
EVERY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Address:
    """Where the server listens, and the token that its API asks for where that is not a loopback address."""

    host: str
    port: int
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, host: str, port: int) -> Address:
        """The address, with a new token where it needs one."""
        return cls(host, port, None if is_loopback(host) else secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        """What to open in a browser; the part behind # stays in the browser."""
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
                self.loop.call_later(SECONDS_TO_HEAR, self.transport.close)

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
