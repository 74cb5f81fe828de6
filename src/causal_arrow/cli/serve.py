"""`causal-arrow serve`: a local page to drop a table into and to argue with its graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console
from causal_arrow.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTALL_WEB = 'pip install "causal-arrow[web]"'


@options.expanded
def serve(
    table: Annotated[
        Path | None,
        typer.Argument(
            help="A file to open at once: .csv, .tsv, .txt (also .gz), .parquet, .xlsx.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)] = 8765,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. If this is not a loopback address, clients must supply the printed token."
        ),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")] = True,
    autosave: Annotated[
        bool,
        typer.Option(
            "--autosave/--no-autosave", help="Whether to keep tables and work on this machine's disk for a month."
        ),
    ] = True,
    settings: Mapping[str, Any] = options.SETTINGS.only("model", "device"),
) -> None:
    """Open a local page: drop a table in, look at its causal graph, and argue with it.

    Tables and work are kept on this machine's disk for a month, in a folder of yours, so that they are back after a
    restart; --no-autosave keeps them in memory alone. Nothing is sent anywhere else. Stop it with ctrl-C.
    """
    try:
        import uvicorn  # noqa: F401

        from causal_arrow.web.app import create_app
        from causal_arrow.web.page import Page
        from causal_arrow.web.server import Address, file_in_memory, listen, open_browser, running
        from causal_arrow.web.work import Store, default_folder
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "pydantic", "starlette", "uvicorn"):
            raise
        raise ConfigurationError(f"The page needs packages that are not installed: {INSTALL_WEB}.") from error
    from causal_arrow.discovery.inference import ready_model
    from causal_arrow.discovery.settings import Settings
    from causal_arrow.web.uploads import Limits

    limits = Limits()
    given = None if table is None else file_in_memory(table, limits)
    ready_model(settings["model"], settings["device"])  # refuse a misspelled model here, not on the page
    listener = listen(host, port)
    address = Address.of(host, listener.getsockname()[1])
    store = Store(default_folder()) if autosave else None
    app = create_app(Page(Settings(**settings), limits, given, store=store), address.token)
    with running(listener, app) as thread:
        screen = console()
        screen.print(f"The page is at {escape(address.url)} (ctrl-C stops it).")
        if address.token:
            screen.print("Whoever has this address can use it: keep the token to yourself.")
        sys.stdout.flush()  # now: a program that waits for the address would wait as long as the server runs
        if browser:
            open_browser(address.url)
        while thread.is_alive():
            thread.join(0.5)


EXAMPLES = {
    "serve": (
        "causal-arrow serve",
        "causal-arrow serve table.csv",
        "causal-arrow serve --port 9000 --no-browser",
        "causal-arrow serve --host 0.0.0.0",
    ),
}
"""Commands to show in the help."""
