"""`causal-arrow serve`, `mcp` and `install-skill`: for a browser, and for assistants."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from causal_arrow.cli import options
from causal_arrow.cli.console import console, folder
from causal_arrow.errors import ConfigurationError
from causal_arrow.output import written_together

SKILL = Path(__file__).parents[1] / "agents" / "skill" / "SKILL.md"


@contextlib.contextmanager
def _extra(what: str, name: str, *packages: str) -> Iterator[None]:
    """Explain how to install the packages of an extra if one of them is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        raise ConfigurationError(
            f'{what} needs packages that are not installed: pip install "causal-arrow[{name}]".'
        ) from error


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
    with _extra("The page", "web", "fastapi", "pydantic", "starlette", "uvicorn"):
        import uvicorn  # noqa: F401

        from causal_arrow.web.app import create_app
        from causal_arrow.web.page import Page
        from causal_arrow.web.server import Address, file_in_memory, listen, open_browser, running
        from causal_arrow.web.work import Store, default_folder
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
        screen.print(f"The page is at {address.url} (ctrl-C stops it).")
        if address.token:
            screen.print("Whoever has this address can use it: keep the token to yourself.")
        sys.stdout.flush()  # now: a program that waits for the address would wait as long as the server runs
        if browser:
            open_browser(address.url)
        while thread.is_alive():
            thread.join(0.5)


@options.expanded
def mcp(
    allow: Annotated[
        list[Path] | None,
        options.described(
            "A folder whose tables may be read, with the folders in it; can be given several times. By default "
            "the working folder.",
            parser=folder,
            metavar="DIR",
        ),
    ] = None,
    settings: Mapping[str, Any] = options.SETTINGS.only("model", "device"),
) -> None:
    """Serve assistants over standard input and output, by the Model Context Protocol.

    Tools: check_table, discover_graph, add_knowledge, estimate_effect, test_graph, propose_experiment, draw_graph.
    Reads files of the allowed folders and nothing else, writes nothing, and sends nothing anywhere but to the
    assistant.
    """
    with _extra("This server", "agents", "mcp", "mcp_types", "pydantic"):
        from causal_arrow.agents.server import create_server
    from causal_arrow.discovery.inference import ready_model
    from causal_arrow.discovery.settings import Settings

    ready_model(settings["model"], settings["device"])  # refuse a misspelled model here
    create_server(allow or [Path()], Settings(**settings)).run("stdio")


def install_skill(
    destination: Annotated[
        Path, typer.Argument(help="The folder in which your assistant looks for skills.", parser=folder)
    ] = Path(".agents/skills"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the skill of an earlier version.")] = False,
) -> None:
    """Write the skill that teaches an assistant to ask before it believes arrows.

    It goes into a folder "causal-arrow" inside the one that you name, such as .claude/skills.
    """
    home = destination / "causal-arrow"
    with written_together(home, [SKILL.name], overwrite) as unfinished:
        (unfinished / SKILL.name).write_bytes(SKILL.read_bytes())
    console().print(f"Wrote {home / SKILL.name}")


EXAMPLES = {
    "serve": (
        "causal-arrow serve",
        "causal-arrow serve table.csv",
        "causal-arrow serve --port 9000 --no-browser",
        "causal-arrow serve --host 0.0.0.0",
    ),
    "mcp": ("causal-arrow mcp", "causal-arrow mcp --allow data --allow ~/studies"),
    "install-skill": ("causal-arrow install-skill", "causal-arrow install-skill ~/.claude/skills"),
}
"""Commands to show in the help."""
