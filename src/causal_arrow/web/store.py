"""The store: sessions on this machine's disk, so that work is back after a restart.

Each session has a file with its table as it came, written once, and a work file, written whenever something changes.
Their names are hashes of the session's key, so that who sees the folder cannot open the session.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causal_arrow.tables import FileInMemory
from causal_arrow.web.messages import ReadingChoices
from causal_arrow.web.sessions import Session
from causal_arrow.web.work import ENDING, work_file

TABLE = ".table"
MEGABYTE = 2**20
SECONDS_KEPT = 30 * 24 * 3600.0
MAX_BYTES = 2048 * MEGABYTE


def default_folder() -> Path:
    """Where programs of this system keep their state."""
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "causal-arrow" / "work"


@dataclass(frozen=True)
class StoredSession:
    """A session as the store holds it: its table as it came, how it was to be read, and its work file, if any."""

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

    def save(self, session: Session) -> None:
        """Write what has changed about a session since it was written last; nothing for one that is there as it is."""
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
        """The file is complete or as it was, also after a crash."""
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".unfinished-", delete=False) as file:
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
