"""Work files: a session as one .causal file, which `Discovery.load` reads too, and a session from such a file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from causal_arrow.discovery import saved
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import model_name
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables import FileInMemory, as_frame, source_columns
from causal_arrow.tables.table import Table
from causal_arrow.web.sessions import MAX_KEPT, MAX_QUESTIONS, EffectAsked, KeptAnswer, Session

ENDING = saved.ENDING
MAX_TEXT = 1000
"""Letters of a name in a work file."""


def work_file(session: Session, table: bool = True) -> bytes:
    """The session as a file: graph, knowledge, kept answers and questions, with the table unless that is left out."""
    found = session.current()
    settings = session.choices.changed(
        decode=found.answer.decode,
        threshold=found.answer.threshold,
        directions=found.answer.directions,
        hidden=found.answer.hidden,
        hidden_threshold=found.answer.hidden_threshold,
    )
    work = {
        "name": session.file.name,
        "example": session.example,
        "questions": [asdict(each) for each in session.questions],
        "kept": [{"name": each.name, "answer": each.answer.to_dict()} for each in session.kept],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"work{ENDING}"
        saved.write(
            path, found.answer, settings, found.report, table_of(found) if table else None, overwrite=False, work=work
        )
        return path.read_bytes()


def table_of(found: Discovery) -> Table | None:
    """The table of a discovery; None for one that was saved without it."""
    try:
        return found.table
    except ConfigurationError:
        return None


@dataclass(frozen=True, eq=False)
class Work:
    """What a work file holds, checked."""

    name: str
    example: str
    answer: Answer
    settings: Settings
    discovery: saved.Parts
    questions: tuple[EffectAsked, ...]
    kept: tuple[KeptAnswer, ...]


def read_work(content: bytes, name: str) -> Work:
    """Read a work file; ConfigurationError for a damaged one or any other file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"work{ENDING}"
        path.write_bytes(content)
        try:
            parts = saved.read(path)
        except ConfigurationError as error:
            raise ConfigurationError(error.message.replace(str(path), name).replace(path.name, name)) from error
    work = parts.work
    questions, kept = _list(work, "questions"), _list(work, "kept")
    try:
        return Work(
            name=_text(work.get("name") or f"{Path(name).stem}.csv"),
            example=_text(work.get("example", "")),
            answer=parts.answer,
            settings=parts.settings,
            discovery=parts,
            questions=tuple(_question(each) for each in questions[-MAX_QUESTIONS:]),
            kept=tuple(
                KeptAnswer(number, _text(each["name"]), Answer.from_dict(each["answer"]))
                for number, each in enumerate(kept[-MAX_KEPT:], 1)
            ),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"The work in '{name}' is damaged or was changed by hand.") from error


def _list(work: Mapping[str, Any], name: str) -> list[Any]:
    entries = work.get(name, [])
    return entries if isinstance(entries, list) else []


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise TypeError
    return value


def _question(asked: Mapping[str, Any]) -> EffectAsked:
    between = asked["between"]
    return EffectAsked(
        cause=_text(asked["cause"]),
        effect=_text(asked["effect"]),
        between=None if between is None else (_text(between[0]), _text(between[1])),
        estimator=_text(asked["estimator"]),
        randomized=bool(asked["randomized"]),
    )


def session_of(work: Work, settings: Settings) -> Session:
    """A session that goes on where the file ends, for a page with these settings."""
    table = work.discovery.table
    raw = as_frame(table if table is not None else _without_rows(work.answer))
    session = Session(FileInMemory(work.name, b""), work.discovery.report, raw, source_columns(raw))
    take_up(session, work, table, settings)
    if work.answer.model not in (None, model_name(settings.model)):
        session.notice = (
            f"The network {work.answer.model} gave this answer, and this page has {model_name(settings.model)}: "
            "reading the table again, or resampled tables, may give another one."
        )
    return session


def take_up(session: Session, work: Work, table: Table | None, settings: Settings) -> None:
    """Give a session the answer, knowledge, questions and kept answers of a work file."""
    there = {column.name for column in session.columns}
    reading = work.settings.reading.to_dict()
    reading |= {"drop": tuple(name for name in reading.get("drop", ()) if name in there)}
    choices = settings.changed(scale=work.settings.scale, **reading)
    alone = work.answer.refine(knowledge=Knowledge())
    # The network is that of the page: a file must not name which weights to load.
    session.found = Discovery(alone, table, work.discovery.report, choices)
    session.answer, session.choices, session.asked = work.answer, choices, choices
    session.example = work.example
    session.questions, session.kept = list(work.questions), list(work.kept)
    session.numbers = len(session.kept)


def _without_rows(answer: Answer) -> dict[str, list[float]]:
    return {name: [] for name in answer.names}
