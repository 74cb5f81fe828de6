"""The server: one process on one address, with a token where other machines can reach it."""

from __future__ import annotations

import contextlib
import secrets
import socket
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.tables import FileInMemory
from causal_arrow.web.guard import is_loopback
from causal_arrow.web.limits import Limits

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
    limits.check_file(file)
    return file


@contextlib.contextmanager
def running(
    listener: socket.socket, app: object, log_level: str = "warning", seconds_to_leave: int = 3
) -> Iterator[Thread]:
    """A thread that serves the application on the socket until the block ends."""
    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
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
