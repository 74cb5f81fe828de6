"""The .causal file of a discovery: a zip archive of discovery.json, the table, and the work of a person on the page.

Reading trusts nothing: names and sizes are checked before anything is unpacked, and no part of the file is ever run.
"""

# N observations, P variables

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from causal_arrow import storage
from causal_arrow._version import __version__
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.exports import json_text
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ConfigurationError
from causal_arrow.inputs import parse_json
from causal_arrow.output import written_together
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.table import Finding, Table
from causal_arrow.text import reason

ENDING = ".causal"
FORMAT, VERSION = "causal-arrow-discovery", 1
CONTENT, TABLE, WORK = "discovery.json", "table.safetensors", "work.json"
MAX_CONTENT_BYTES = 2**30  # of discovery.json: an answer about 3,000 variables takes less
MAX_HEADER_BYTES = 2**16  # of names and shapes in table.safetensors


def write(
    path: Path,
    answer: Answer,
    settings: Settings,
    report: TableReport,
    table: Table | None,
    overwrite: bool,
    work: Mapping[str, Any] | None = None,
) -> None:
    """Write the parts of a discovery to a file; it is complete or not there at all.

    `work` is the data of the page, such as questions and answers that were kept.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "causal_arrow": __version__,
        "settings": _settings_to_dict(settings.changed(knowledge=answer.knowledge)),
        "report": [finding.to_dict() for finding in report.findings],
        "answer": answer.to_dict(),
    }
    tensors: dict[str, Any] = {} if table is None else {"values": table.values, "intervened": table.intervened}
    parts = {CONTENT: json_text(content).encode()}
    if work is not None:
        parts[WORK] = json_text(dict(work)).encode()
    if tensors := {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items() if tensor is not None}:
        parts[TABLE] = save(tensors)
    write_parts(path, parts, overwrite)


def write_parts(path: Path, parts: Mapping[str, bytes], overwrite: bool) -> None:
    """Write named parts to a .causal file."""
    if path.suffix.lower() != ENDING:
        raise ConfigurationError(f"Expected a file that ends in {ENDING}, got '{path.name}'.")
    if not overwrite and os.path.lexists(path):
        raise ConfigurationError(f"'{path}' is there already: name another file, or pass overwrite=True.")
    with (
        written_together(path.parent, [path.name], overwrite) as folder,
        zipfile.ZipFile(folder / path.name, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, part in parts.items():
            archive.writestr(name, part, compresslevel=None if name.endswith(".json") else 1)


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a discovery as a file holds them."""

    answer: Answer
    settings: Settings
    report: TableReport
    table: Table | None
    names_model: bool
    """Whether the settings name the network; one that was an object is not in the file."""
    work: Mapping[str, Any]
    """The data of the page, unchecked; empty in files that Python wrote."""


def read(path: Path) -> Parts:
    """Read the parts of a discovery; ConfigurationError for a damaged file or any other."""
    with archive_at(path, "Discovery.save") as archive:
        return _parts(archive)


@contextmanager
def archive_at(path: Path, writer: str) -> Iterator[zipfile.ZipFile]:
    """Open a .causal file; ConfigurationError if it, or what is read from it, is not what its writer wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except OSError as error:
        raise ConfigurationError(f"Cannot open '{path}': {error.strerror or error}.") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"In '{path.name}': {error.message}") from error
    except _DAMAGE as error:
        why = reason(error) if isinstance(error, zipfile.BadZipFile) else f"{type(error).__name__}: {reason(error)}"
        raise ConfigurationError(
            f"Expected a {ENDING} file that {writer} wrote, got '{path.name}', which is damaged or something else "
            f"({why})."
        ) from error


_DAMAGE = (
    zipfile.BadZipFile,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,  # of deep nesting, encryption, and compression that Python lacks
    EOFError,
    SafetensorError,
    zlib.error,
)
"""Exceptions that a damaged archive may raise."""


def _parts(archive: zipfile.ZipFile) -> Parts:
    members = {entry.filename: entry for entry in archive.infolist()}
    if len(members) < len(archive.infolist()) or not {CONTENT} <= set(members) <= {CONTENT, TABLE, WORK}:
        raise ValueError(f"it holds {', '.join(sorted(members)[:3]) or 'nothing'}")
    for name in {CONTENT, WORK} & set(members):
        if members[name].file_size > MAX_CONTENT_BYTES:
            raise ValueError(f"{name} takes {storage.in_words(members[name].file_size)}")
    content = parse_json(archive.read(CONTENT))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f'{CONTENT} has no "format": "{FORMAT}"')
    if content["version"] != VERSION:
        raise ConfigurationError(
            f"Expected version {VERSION} of a saved discovery, got {content['version']!r}: it was written by another "
            "version of causal-arrow."
        )
    answer = Answer.from_dict(content["answer"])
    if not answer.columns or type(answer.observations) is not int or answer.observations < 1:
        raise ValueError("the answer does not say what its columns hold")
    findings = tuple(Finding.from_dict(finding) for finding in content["report"])
    table = _table(archive, members[TABLE], answer, answer.observations) if TABLE in members else None
    settings = Settings.from_dict({name: value for name, value in content["settings"].items() if value is not None})
    report = TableReport(answer.observations, answer.columns, findings)
    work = parse_json(archive.read(WORK)) if WORK in members else {}
    if not isinstance(work, dict):
        raise ValueError(f"{WORK} holds no object")
    return Parts(answer, settings, report, table, content["settings"]["model"] is not None, work)


def _settings_to_dict(settings: Settings) -> dict[str, Any]:
    """The settings without what no file holds: a network that is an object, and labels of rows in an array."""
    labels = {name: getattr(settings.reading, name) for name in ("interventions", "environments")}
    arrays = {name: None for name, value in labels.items() if value is not None and not isinstance(value, str)}
    if isinstance(settings.model, str | Path):
        return settings.changed(**arrays).to_dict()
    return {**settings.changed(**arrays, model="none").to_dict(), "model": None}


def _table(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, answer: Answer, observations: int) -> Table:
    """The table, checked against its description in the answer."""
    shape, cells = (observations, len(answer.names)), observations * len(answer.names)
    if not 8 * cells <= entry.file_size <= 9 * cells + MAX_HEADER_BYTES:  # with a byte per cell for interventions
        raise ValueError(f"{TABLE} does not have the size of the table that the answer is about")
    free = storage.free_memory()
    if free is not None and 2 * entry.file_size > free:
        raise ConfigurationError(
            f"The table takes {storage.in_words(2 * entry.file_size)} of memory, and {storage.in_words(free)} are free."
        )
    tensors = load(archive.read(TABLE))
    found = {name: (tensor.shape, tensor.dtype.name) for name, tensor in tensors.items()}
    allowed = {"values": (shape, "float64"), "intervened": (shape, "bool")}
    if "values" not in found or not found.items() <= allowed.items():
        raise ValueError(f"{TABLE} does not hold the table that the answer is about")
    values = tensors["values"]
    for column, cells_of in zip(answer.columns, values.T, strict=True):
        given = cells_of[~np.isnan(cells_of)]
        codes = not column.levels or bool(np.isin(given, np.arange(len(column.levels))).all())
        if not np.isfinite(given).all() or not codes:
            raise ValueError(f"the column {column.name!r} has values that no table has")
    values.setflags(write=False)
    return Table(values, answer.columns, answer.findings, tensors.get("intervened"), answer.environment)
