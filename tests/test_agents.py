"""An assistant drives the server over standard input and output, as a real client does, and never leaves its folder."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from causal_arrow import load_example
from causal_arrow.cli import _services as commands

mcp = pytest.importorskip("mcp")

TOOLS = {
    "check_table",
    "discover_graph",
    "add_knowledge",
    "estimate_effect",
    "test_graph",
    "propose_experiment",
    "draw_graph",
}
Ask = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An allowed folder, and things around it that are not."""
    base = tmp_path_factory.mktemp("study")
    (base / "data" / "inner").mkdir(parents=True)
    table = load_example("hospital")
    table.to_csv(base / "data" / "hospital.csv", index=False)
    table.to_csv(base / "secret.csv", index=False)
    table.to_csv(base / "data" / "inner" / "same.csv", index=False)
    (base / "data" / "link.csv").symlink_to(base / "secret.csv")
    (base / "data" / "way_out").symlink_to(base)
    (base / "data" / "within.csv").symlink_to(base / "data" / "hospital.csv")
    (base / "data" / "notes.md").write_text("no table")
    (base / "data" / "folder.csv").mkdir()
    os.mkfifo(base / "data" / "pipe.csv")
    return base / "data"


def talk(folder: Path, conversation: Callable[[Any, Ask], Awaitable[Any]], *options: str) -> Any:
    """Start the server in a process of its own and have a conversation with it."""

    async def session() -> Any:
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "causal_arrow", "mcp", "--allow", str(folder), *options],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        async with mcp.Client(server) as client:

            async def ask(tool: str, refused: bool = False, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert bool(result.is_error) is refused, result.content
                return result.content[0].text if refused else result

            return await conversation(client, ask)

    return asyncio.run(session())


def run_python(code: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "answer", "exec"), {})
    return said.getvalue()


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Any]:
    """The conversation that an assistant has: table, graph, knowledge, effect, and all the rest."""

    async def conversation(client: Any, ask: Ask) -> dict[str, Any]:
        said: dict[str, Any] = {"tools": (await client.list_tools()).tools, "instructions": client.instructions}
        calls = {
            "check": ("check_table", {"path": "hospital.csv"}),
            "found": ("discover_graph", {"path": "hospital.csv"}),
            "known": (
                "add_knowledge",
                {
                    "graph": "graph-1",
                    "roots": ["age", "smoker", "ward"],
                    "tiers": [["drug"], ["day3"], ["stay"]],
                    "beliefs": [{"statement": "drug ~> stay", "probability": 0.8, "who": "the person", "why": "hope"}],
                },
            ),
            "effect": ("estimate_effect", {"graph": "graph-2", "treatment": "drug", "outcome": "stay"}),
            "test": ("test_graph", {"graph": "graph-2"}),
            "plan": ("propose_experiment", {"graph": "graph-2", "treatment": "drug", "outcome": "stay"}),
            "again": (
                "discover_graph",
                {"path": str(folder / "inner" / ".." / "within.csv"), "reading": {"drop": ["ward"]}},
            ),
        }
        for name, (tool, arguments) in calls.items():
            said[name] = (await ask(tool, **arguments)).structured_content
        said["picture"] = (await ask("draw_graph", graph="graph-2")).content
        outside = ["../secret.csv", "link.csv", "way_out/secret.csv", "inner/../../secret.csv", "none.csv"]
        outside += [
            str(folder.parent / "secret.csv"),
            "/etc/passwd",
            "folder.csv/../../secret.csv",
            "a\0b.csv",
            "~/x.csv",
        ]
        said["outside"] = [await ask("check_table", refused=True, path=path) for path in outside]
        said["odd"] = [
            await ask("discover_graph", refused=True, path=path) for path in ("notes.md", "folder.csv", "pipe.csv")
        ]
        said["wrong"] = [
            await ask("estimate_effect", refused=True, graph="graph-9", treatment="drug", outcome="stay"),
            await ask("estimate_effect", refused=True, graph="graph-1", treatment="drugs", outcome="stay"),
            await ask("add_knowledge", refused=True, graph="graph-1", required=["drug -> day3", "day3 -> drug"]),
            await ask("add_knowledge", refused=True, graph="graph-1"),
            await ask("discover_graph", refused=True, path="hospital.csv", reading={"kinds": {"age": "nonsense"}}),
            await ask("discover_graph", refused=True, path="hospital.csv", reading={"colums": ["age"]}),
        ]
        return said

    return talk(folder, conversation)


def test_the_tools_are_read_only_and_described(answers: dict[str, Any]) -> None:
    assert {tool.name for tool in answers["tools"]} == TOOLS
    for tool in answers["tools"]:
        assert tool.annotations.read_only_hint
        assert tool.description
    assert "ask the person what comes first in time" in answers["instructions"]


def test_a_client_drives_table_graph_knowledge_effect(answers: dict[str, Any]) -> None:
    assert answers["check"]["usable"]
    assert {"name": "ward", "kind": "category"} in answers["check"]["columns"]
    assert (answers["found"]["graph"], answers["known"]["graph"]) == ("graph-1", "graph-2")
    assert answers["known"]["order"].index("drug") < answers["known"]["order"].index("stay")
    assert answers["known"]["beliefs"][0]["who"] == "the person"
    effect = answers["effect"]
    assert effect["low"] < -1.8 < effect["high"]  # the true effect is −1.8 days
    assert effect["answer"].startswith("stay changes by")
    assert answers["test"]["falsified"] is False
    assert answers["plan"]["experiments"][0]["variables"] == ["drug"]
    assert len(answers["again"]["variables"]) == 6


def test_every_answer_has_its_caveats(answers: dict[str, Any]) -> None:
    assert any("Nothing is known about this table yet" in caveat for caveat in answers["found"]["caveats"])
    for name in ("known", "effect", "test", "plan"):
        assert answers[name]["caveats"]
        assert not any("Nothing is known" in caveat for caveat in answers[name]["caveats"])
    for caveat in ("Poor overlap", "A hidden cause would have to explain"):
        assert any(caveat in line for line in answers["effect"]["caveats"])
        assert not any(caveat in line for line in answers["effect"]["details"])
    kinds = [content.type for content in answers["picture"]]
    assert kinds == ["image", "text"]
    assert "Caveats:\n- " in answers["picture"][1].text


@pytest.mark.parametrize("name", ["check", "found", "known", "effect", "test", "plan"])
def test_the_python_of_an_answer_reproduces_it(answers: dict[str, Any], name: str) -> None:
    said = run_python(answers[name]["python"])
    if name in ("found", "known"):
        edges = [(edge["cause"], edge["effect"]) for edge in answers[name]["edges"]]
        lines = [line.split() for line in said.splitlines()[3 : 3 + len(edges)]]
        assert [(line[0], line[1]) for line in lines] == edges
    else:
        assert answers[name].get("answer", answers[name].get("title")) in said


def test_the_python_names_the_model_of_the_server_and_how_the_table_is_read(folder: Path) -> None:
    reading = {"drop": ["ward"], "missing": "drop", "na": ["-999"]}

    async def conversation(client: Any, ask: Ask) -> Any:
        checked = await ask("check_table", path="hospital.csv")
        found = await ask("discover_graph", path="hospital.csv", reading=reading)
        return checked.structured_content, found.structured_content

    checked, found = talk(folder, conversation, "--model", "arrow-strict")
    assert not checked["usable"]
    assert "the model arrow-strict reads only numbers" in run_python(checked["python"])
    assert "leave out incomplete observations with missing" in checked["findings"][0]
    made: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(found["python"], made)
    edges = [(edge.source, edge.target, round(edge.probability, 3)) for edge in made["found"].answer.edges]
    assert edges == [(edge["cause"], edge["effect"], edge["probability"]) for edge in found["edges"]]


def test_files_outside_the_folder_are_refused_in_one_voice(answers: dict[str, Any]) -> None:
    for sentence in answers["outside"]:
        assert "There is no file" in sentence
        assert "in the folders that this server may read" in sentence
    assert "expected a name that ends in" in answers["odd"][0]
    assert "is not a file" in answers["odd"][1] or "Cannot open" in answers["odd"][1]
    assert "is not a file" in answers["odd"][2]


def test_what_is_wrong_is_a_sentence_for_the_assistant(answers: dict[str, Any]) -> None:
    assert "There is no graph 'graph-9' here" in answers["wrong"][0]
    assert "did you mean 'drug'?" in answers["wrong"][1]
    assert "form a cycle" in answers["wrong"][2]
    assert "Expected at least one statement" in answers["wrong"][3]
    assert "The arguments do not match the schema: reading.kinds.age: Input should be 'number'" in answers["wrong"][4]
    assert "reading.colums" in answers["wrong"][5]
    assert not any("\n" in sentence for sentence in answers["wrong"])


def test_the_same_conversation_has_the_same_answers(answers: dict[str, Any], folder: Path) -> None:
    async def conversation(client: Any, ask: Ask) -> Any:
        found = (await ask("discover_graph", path="hospital.csv")).structured_content
        effect = await ask("estimate_effect", graph="graph-1", treatment="drug", outcome="stay")
        again = await ask("estimate_effect", graph="graph-1", treatment="drug", outcome="stay")
        return found, effect.structured_content, again.structured_content

    found, effect, again = talk(folder, conversation)
    assert found == answers["found"]
    assert effect == again


def test_tables_beyond_the_limits_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from causal_arrow.agents import server
    from causal_arrow.errors import TableError

    folders = server.Folders.of([folder])
    monkeypatch.setattr(server, "LIMITS", server.Limits(most_bytes=100, surface="this server"))
    _, file = folders.file("hospital.csv")
    with pytest.raises(TableError, match="MB that this server takes"):
        server.LIMITS.check_file(file)
    assert len(file.content) == 101  # no more than that was read


def test_a_server_forgets_the_oldest_graphs(folder: Path) -> None:
    from causal_arrow.agents import server

    desk = server.Desk(server.Folders.of([folder]), server.Settings())
    for _ in range(server.MAX_GRAPHS + 2):
        desk.keep(None)  # type: ignore[arg-type]
    assert list(desk.kept) == [f"graph-{number}" for number in range(3, server.MAX_GRAPHS + 3)]


def test_the_skill_is_installed_once(tmp_path: Path, run: Any) -> None:
    status, out, _ = run("install-skill", tmp_path / "skills")
    written = tmp_path / "skills" / "causal-arrow" / "SKILL.md"
    assert (status, str(written) in out) == (0, True)
    assert written.read_bytes() == commands.SKILL.read_bytes()
    status, _, err = run("install-skill", tmp_path / "skills")
    assert (status, "already holds SKILL.md" in err) == (2, True)
    assert run("install-skill", tmp_path / "skills", "--overwrite")[0] == 0


def test_the_skill_asks_for_time_randomization_and_exogenous_columns_and_names_every_tool() -> None:
    text = commands.SKILL.read_text(encoding="utf-8")
    assert text.startswith("---\nname: causal-arrow\ndescription: ")
    for word in ("Time.", "Randomization.", "Exogenous columns.", *TOOLS):
        assert word in text


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, run: Any) -> None:
    status, _, err = run("mcp", "--allow", tmp_path / "none")
    assert (status, "Expected a folder to allow" in err) == (2, True)
