"""Work that lasts: a session as a .causal file, which `Discovery.load` reads too, and sessions on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from causal_arrow.discovery import saved
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import model_name
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables import FileInMemory, as_frame, source_columns
from causal_arrow.tables.table import Table
from causal_arrow.web._sessions import MAX_QUESTIONS, EffectAsked, Session, read_off
from causal_arrow.web.messages import ReadingChoices

ENDING = saved.ENDING
Text = Annotated[str, Field(max_length=1000)]


def work_file(session: Session, table: bool = True) -> bytes:
    """The session as a file: graph, knowledge, kept answers and questions, with the table unless that is left out."""
    found = session.current()
    settings = session.choices.changed(**read_off(found.answer))
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


class _Kept(BaseModel):
    name: Text
    answer: Annotated[Any, AfterValidator(Answer.from_dict)]


class Work(BaseModel):
    """The checked content of a work file: the parts of its discovery, and what the page adds to them."""

    name: Text = ""
    example: Text = ""
    questions: list[EffectAsked] = []
    kept: list[_Kept] = []
    parts: Annotated[Any, Field(exclude=True)] = None  # saved.Parts


def read_work(content: bytes, name: str) -> Work:
    """Read a work file; ConfigurationError for a damaged one or any other file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"work{ENDING}"
        path.write_bytes(content)
        try:
            parts = saved.read(path)
        except ConfigurationError as error:
            raise ConfigurationError(error.message.replace(str(path), name).replace(path.name, name)) from error
    try:
        work = Work.model_validate(parts.work)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"The work in '{name}' is damaged or was changed by hand.") from error
    work.name, work.parts = work.name or f"{Path(name).stem}.csv", parts
    return work


def session_of(work: Work, settings: Settings) -> Session:
    """A session that goes on where the file ends, for a page with these settings."""
    table = work.parts.table
    without_rows: dict[str, list[float]] = {name: [] for name in work.parts.answer.names}
    raw = as_frame(without_rows if table is None else table)
    session = Session(FileInMemory(work.name, b""), work.parts.report, raw, source_columns(raw))
    take_up(session, work, table, settings)
    if work.parts.answer.model not in (None, model_name(settings.model)):
        session.notice = (
            f"The network {work.parts.answer.model} gave this answer, and this page has {model_name(settings.model)}: "
            "reading the table again, or resampled tables, may give another one."
        )
    return session


def take_up(session: Session, work: Work, table: Table | None, settings: Settings) -> None:
    """Give a session the answer, knowledge, questions and kept answers of a work file."""
    there = {column.name for column in session.columns}
    reading = work.parts.settings.reading.to_dict()
    reading |= {"drop": tuple(name for name in reading.get("drop", ()) if name in there)}
    choices = settings.changed(scale=work.parts.settings.scale, **reading)
    alone = work.parts.answer.refine(knowledge=Knowledge())
    # The network is that of the page: a file must not name which weights to load.
    session.found = Discovery(alone, table, work.parts.report, choices)
    session.argued, session.choices, session.asked = session.found.with_answer(work.parts.answer), choices, choices
    session.example = work.example
    session.questions = work.questions[-MAX_QUESTIONS:]
    for each in work.kept:
        session.keep(each.answer, each.name)


TABLE = ".table"
MEGABYTE = 2**20
UNFINISHED = ".unfinished-"
SECONDS_UNFINISHED = 600.0  # a file that is unfinished for longer was left by a server that was killed
SECONDS_KEPT = 30 * 24 * 3600.0
MAX_BYTES = 2048 * MEGABYTE


def default_folder() -> Path:
    """Folder in which programs of this system keep their state."""
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "causal-arrow" / "work"


@dataclass(frozen=True)
class StoredSession:
    """A stored session: its table as received, its reading options, and its work file, if any."""

    file: FileInMemory
    example: str
    choices: dict[str, Any]
    work: bytes | None


class Store:
    """A folder of sessions. Those not used for a month are dropped, and the oldest where room is needed."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time) -> None:
        self.folder, self.max_bytes, self.clock = folder, max_bytes, clock
        self._marks: dict[str, object] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in folder.glob(f"{UNFINISHED}*"):
            with contextlib.suppress(OSError):  # another server was faster
                if clock() - left.stat().st_mtime > SECONDS_UNFINISHED:
                    left.unlink()

    def save(self, session: Session) -> None:
        """Write what has changed in a session since it was last written; nothing if it is up to date."""
        marks = session.marks()
        if self._marks.get(session.key) == marks:
            return
        name = _name(session.key)
        header = {
            "name": session.file.name,
            "example": session.example,
            "choices": {"scale": session.asked.scale, **session.asked.reading.to_dict()},
        }
        table = json.dumps(header).encode() + b"\n" + session.file.content
        if session.key not in self._marks or (session.answer is None and session.found is None):
            self._write(name + TABLE, table)
        if session.answer is not None:
            self._write(name + ENDING, work_file(session, table=not session.file.content))
        self._marks[session.key] = marks
        self._make_room()

    def load(self, key: str) -> StoredSession | None:
        """The session of this key; None if the store does not have it."""
        path = self.folder / (_name(key) + TABLE)
        try:
            header, _, content = path.read_bytes().partition(b"\n")
            facts = json.loads(header)
            choices = ReadingChoices.model_validate(facts["choices"]).model_dump()
            file = FileInMemory(str(facts["name"]), content)
            work = path.with_suffix(ENDING)
            return StoredSession(file, str(facts["example"]), choices, work.read_bytes() if work.exists() else None)
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def remove(self, key: str) -> None:
        """Forget a session."""
        self._marks.pop(key, None)
        for ending in (TABLE, ENDING):
            (self.folder / (_name(key) + ending)).unlink(missing_ok=True)

    def _write(self, name: str, content: bytes) -> None:
        """Replace the file so that it is complete or unchanged, even after a crash."""
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=UNFINISHED, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, self.folder / name)

    def _make_room(self) -> None:
        files = [(path, path.stat()) for path in self.folder.iterdir() if path.is_file()]
        latest: dict[str, float] = {}
        for path, facts in files:
            latest[path.stem] = max(latest.get(path.stem, 0.0), facts.st_mtime)
        taken, now = sum(facts.st_size for _, facts in files), self.clock()
        for name in sorted(latest, key=lambda each: latest[each]):
            if taken <= self.max_bytes and now - latest[name] <= SECONDS_KEPT:
                break
            for path, facts in files:
                if path.stem == name:
                    path.unlink(missing_ok=True)
                    taken -= facts.st_size


def _name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]
