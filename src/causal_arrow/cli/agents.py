"""`causal-arrow mcp` and `causal-arrow install-skill`: for assistants."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console, folder
from causal_arrow.errors import ConfigurationError
from causal_arrow.output import written_together

SKILL = Path(__file__).parents[1] / "agents" / "skill" / "SKILL.md"


@options.expanded
def mcp(
    allow: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder whose tables may be read, with the folders in it; can be given several times. By default "
            "the working folder.",
            parser=folder,
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    settings: Mapping[str, Any] = options.SETTINGS.only("model", "device"),
) -> None:
    """Serve assistants over standard input and output, by the Model Context Protocol.

    Tools: check_table, discover_graph, add_knowledge, estimate_effect, test_graph, propose_experiment, draw_graph.
    Reads files of the allowed folders and nothing else, writes nothing, and sends nothing anywhere but to the
    assistant.
    """
    try:
        from causal_arrow.agents.server import create_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise ConfigurationError(
            'This server needs packages that are not installed: pip install "causal-arrow[agents]".'
        ) from error
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
    console().print(f"Wrote {escape(str(home / SKILL.name))}")


EXAMPLES = {
    "mcp": (
        "causal-arrow mcp",
        "causal-arrow mcp --allow data --allow ~/studies",
    ),
    "install-skill": (
        "causal-arrow install-skill",
        "causal-arrow install-skill ~/.claude/skills",
    ),
}
"""Commands to show in the help."""
