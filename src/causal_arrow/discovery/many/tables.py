"""Which tables: files, folders, manifests, or tables in memory, each with a name and with settings of its own."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from causal_arrow.discovery.pipeline import Settings, as_knowledge
from causal_arrow.errors import ArrowError, ConfigurationError, TableError
from causal_arrow.tables.files import ENDINGS
from causal_arrow.text import closest, counted, listed, reason, shown

COMPRESSED = ".gz"
LONGEST_NAME = 200  # bytes, with room for an ending
READING = ("columns", "drop", "na", "delimiter", "decimal", "sheet", "header", "interventions", "environments")
SETTINGS = ("decode", "threshold", "knowledge", "scale", "missing", "kinds", "ordered")
MANIFEST_FIELDS = ("table", "name", *SETTINGS, *READING)
MANIFEST_ENDINGS = (".csv", ".json", ".tsv", ".txt")


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A table to be answered: what to call it, the absolute path of its file or itself, and how to read it."""

    name: str
    source: Any
    settings: Settings
    reading: Mapping[str, Any]


def named_tables(tables: Any, settings: Settings, reading: Mapping[str, Any]) -> list[NamedTable]:
    """The tables that a user named, each once; ConfigurationError or TableError for what cannot be meant.

    tables    A folder with tables; a manifest, a CSV or JSON file that names them; several files or folders; or a
              mapping of names to whatever `read_table` takes.
    """
    if isinstance(tables, Mapping):
        entries: list[Entry] = [(str(name), _absolute(source), {}) for name, source in tables.items()]
    else:
        paths = _paths(tables)
        if len(paths) == 1 and not paths[0].is_dir():
            entries = _manifest(paths[0])
        else:
            files = [file for path in paths for file in _files(path)]
            entries = [(name_of(file), str(file), {}) for file in files]
    if not entries:
        raise TableError("Expected one table or more, got none.")
    _check_names([(name, source) for name, source, _ in entries])
    return [_table(name, source, own, settings, reading) for name, source, own in entries]


Entry = tuple[str, Any, Mapping[str, Any]]
"""The name of a table, its source, and what a manifest says of it."""


def _absolute(source: Any) -> Any:
    return str(Path(source).expanduser().absolute()) if isinstance(source, str | os.PathLike) else source


def _paths(tables: Any) -> list[Path]:
    several = (
        [tables] if isinstance(tables, str | os.PathLike) else list(tables) if isinstance(tables, Iterable) else []
    )
    if not several or not all(isinstance(one, str | os.PathLike) and str(one) for one in several):
        raise TableError(
            f"Expected a folder, a manifest, a list of files, or a mapping of names to tables, got {shown(tables)}."
        )
    paths = [Path(one).expanduser().absolute() for one in several]
    try:
        missing = [str(path) for path in paths if not path.exists()]
    except (OSError, ValueError) as error:
        raise TableError(f"Cannot open {shown(tables, 200)}: {reason(error)}.") from error
    if missing:
        raise TableError(f"There is no file or folder {listed(missing)}.")
    return paths


def _files(path: Path) -> list[Path]:
    """The file itself, or the tables in a folder, in the order of their names."""
    if not path.is_dir():
        if path.suffix.lower() == ".json":
            raise TableError(f"'{path.name}' is a manifest, not a table: name it alone.")
        return [path]
    try:
        inside = sorted(path.iterdir())
    except OSError as error:
        raise TableError(f"Cannot look into '{path}': {error.strerror or error}.") from error
    files = [
        file for file in inside if file.suffix.lower() in ENDINGS and not file.name.startswith(".") and file.is_file()
    ]
    if not files:
        raise TableError(f"There is no table in '{path}': expected files whose names end in {', '.join(ENDINGS)}.")
    return files


def name_of(file: Path) -> str:
    """What to call the table in a file: the name of the file without its ending."""
    return Path(file.stem).stem if file.suffix.lower() == COMPRESSED else file.stem


def _check_names(named: Sequence[tuple[str, Any]]) -> None:
    """ConfigurationError unless every table has a name of its own that a file can have."""
    for name, _ in named:
        if not name.strip(" .") or any(sign in name for sign in "/\\\0\n\r") or len(os.fsencode(name)) > LONGEST_NAME:
            raise ConfigurationError(
                f"{shown(name)} cannot be the name of a table: its answer goes to a file of that name, so it may not "
                f"be empty, hold / or \\, or be longer than {LONGEST_NAME} bytes."
            )
    sources: dict[str, list[str]] = {}  # some systems do not tell Sales.json from sales.json
    for name, source in named:
        sources.setdefault(name.casefold(), []).append(str(source) if isinstance(source, str) else repr(name))
    for name, _ in named:
        if len(several := sources[name.casefold()]) > 1:
            raise ConfigurationError(
                f"Two tables are called {name!r}, {several[0]} and {several[1]}: rename one of them, or give each a "
                "name in a manifest."
            )


def _table(
    name: str, source: Any, own: Mapping[str, Any], settings: Settings, reading: Mapping[str, Any]
) -> NamedTable:
    """The table with what its manifest says of it in place of what is said of all of them."""
    if not own:
        return NamedTable(name, source, settings, reading)
    try:
        changes = {key: value for key, value in own.items() if key in SETTINGS}
        if "knowledge" in changes:
            changes["knowledge"] = as_knowledge(settings.knowledge) | as_knowledge(changes["knowledge"])
        everything = {entry.name: getattr(settings, entry.name) for entry in fields(settings)}
        changed = Settings(**(everything | changes))
    except ArrowError as error:
        raise type(error)(f"Table {name!r} of the manifest: {error.message}", error.remedies) from error
    return NamedTable(name, source, changed, {**reading, **{key: own[key] for key in own if key in READING}})


# Manifests


def _manifest(path: Path) -> list[Entry]:
    """The tables that a manifest names; paths in it are relative to it."""
    if path.suffix.lower() not in MANIFEST_ENDINGS:
        raise TableError(
            "Expected several tables, a folder with tables, or a manifest (CSV or JSON), got the one file "
            f"'{path.name}': `discover` is for one table."
        )
    rows = _json_rows(path) if path.suffix.lower() == ".json" else _text_rows(path)
    if not rows:
        raise TableError(f"The manifest '{path.name}' names no tables.")
    known = ", ".join(MANIFEST_FIELDS)
    entries: list[Entry] = []
    missing = []
    for number, row in enumerate(rows, start=1):
        if unknown := [key for key in row if key not in MANIFEST_FIELDS]:
            near = closest(str(unknown[0]), MANIFEST_FIELDS)
            hint = f"did you mean {near!r}?" if near else f"expected some of {known}."
            raise ConfigurationError(
                f"The manifest '{path.name}' has a field {shown(unknown[0])} that means nothing: {hint}"
            )
        said = {key: value for key, value in row.items() if value is not None}
        if not isinstance(table := said.pop("table", None), str) or not table:
            raise ConfigurationError(f"Entry {number} of the manifest '{path.name}' names no table: expected its path.")
        if isinstance(said.get("knowledge"), str):
            said["knowledge"] = path.parent / said["knowledge"]
        source = path.parent / Path(table).expanduser()
        name = said.pop("name", None)
        if not source.is_file():
            missing.append(table)
        entries.append((name_of(source) if name is None else str(name), str(source), said))
    if missing:
        raise TableError(
            f"The manifest '{path.name}' names {counted(len(missing), 'file')} that "
            f"{'is' if len(missing) == 1 else 'are'} not there: {listed(missing)}."
        )
    return entries


def _json_rows(path: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise TableError(f"Cannot read the manifest '{path.name}': {reason(error)}.") from error
    rows = content.get("tables") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TableError(
            f'Expected the manifest \'{path.name}\' to hold a list of objects such as {{"table": "one.csv"}}.'
        )
    return rows


def _text_rows(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise TableError(f"Cannot read the manifest '{path.name}': {reason(error)}.") from error
    header = text.split("\n", 1)[0]
    delimiter = next((sign for sign in ("\t", ",", ";") if sign in header), ",")
    try:
        lines = [[cell.strip() for cell in line] for line in csv.reader(text.splitlines(), delimiter=delimiter)]
    except csv.Error as error:
        raise TableError(f"Cannot read the manifest '{path.name}': {reason(error)}.") from error
    names = lines[0] if lines else []
    if "table" not in names:
        raise ConfigurationError(
            f"'{path.name}' has no column 'table', so it is no manifest: a manifest has a line for each table, with "
            "its path in that column. `discover` is for one table."
        )
    rows = []
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cells):
            continue
        if len(cells) > len(names):
            raise TableError(
                f"Line {number} of the manifest '{path.name}' has {counted(len(cells), 'field')}, more than the "
                f"{len(names)} columns."
            )
        given = {key: cell for key, cell in zip(names, cells, strict=False) if cell}
        rows.append({key: _value(key, cell, f"line {number} of '{path.name}'") for key, cell in given.items()})
    return rows


def _value(field: str, cell: str, where: str) -> Any:
    """What a cell of a manifest says, by its column."""
    try:
        return _CELLS.get(field, str)(cell)
    except ValueError:
        raise ConfigurationError(f"Expected {field} as {_EXAMPLES[field]} in {where}, got {shown(cell)}.") from None


def _several(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";") if part.strip()]


def _pairs(cell: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in _several(cell)]
    if not pairs or not all(name.strip() and said.strip() for name, _, said in pairs):
        raise ValueError
    return {name.strip(): said.strip() for name, _, said in pairs}


def _orders(cell: str) -> dict[str, list[str]]:
    return {name: [level.strip() for level in levels.split(",")] for name, levels in _pairs(cell).items()}


def _yes_or_no(cell: str) -> bool:
    if cell.lower() not in ("true", "false", "yes", "no"):
        raise ValueError
    return cell.lower() in ("true", "yes")


_CELLS: dict[str, Callable[[str], Any]] = {
    "threshold": float,
    "kinds": _pairs,
    "ordered": _orders,
    "columns": _several,
    "drop": _several,
    "na": _several,
    "header": _yes_or_no,
}
"""How to read the cells of a manifest in text; the others are text themselves."""
_EXAMPLES = {
    "threshold": "a number between 0 and 1",
    "kinds": "zip=category;age=number",
    "ordered": "size=small,medium,large",
    "header": "true or false",
}
