"""`causal-arrow serve`: a local page to drop a table into and to argue with its graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console
from causal_arrow.errors import ConfigurationError
from causal_arrow.network.bundled import DEFAULT_MODEL

INSTALL_WEB = 'pip install "causal-arrow[web]"'


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
            help="Address to listen on. Other than a loopback address, everyone who reaches it needs the token that is "
            "printed."
        ),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")] = True,
    model: options.Model = DEFAULT_MODEL,
    device: options.Device = "auto",
) -> None:
    """Open a local page: drop a table in, look at its causal graph, and argue with it.

    Tables stay in the memory of this process and are dropped an hour after their last use. Nothing is sent anywhere
    else. Stop it with ctrl-C.
    """
    try:
        import uvicorn  # noqa: F401

        from causal_arrow.web.app import create_app
        from causal_arrow.web.page import Page
        from causal_arrow.web.server import Address, file_in_memory, listen, open_browser, running
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "pydantic", "starlette", "uvicorn"):
            raise
        raise ConfigurationError(f"The page needs packages that are not installed: {INSTALL_WEB}.") from error
    from causal_arrow.discovery.inference import ready_model
    from causal_arrow.discovery.pipeline import Settings
    from causal_arrow.web.limits import Limits

    limits = Limits()
    given = None if table is None else file_in_memory(table, limits)
    settings = Settings(model=model, device=device)
    ready_model(model, device)  # a misspelled model should be told here, not to whoever opens the page
    listener = listen(host, port)
    address = Address.of(host, listener.getsockname()[1])
    app = create_app(Page(settings, limits, given), address.token)
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
    "serve": """
**Examples**

`causal-arrow serve`

`causal-arrow serve table.csv`

`causal-arrow serve --port 9000 --no-browser`

`causal-arrow serve --host 0.0.0.0`
"""
}
