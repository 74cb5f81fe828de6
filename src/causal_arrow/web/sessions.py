"""Sessions: one table of one browser tab, in memory only, under a name that cannot be guessed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pipeline import Discovery
from causal_arrow.errors import ArrowError
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.source_frame import FileInMemory
from causal_arrow.web.limits import Limits
from causal_arrow.web.queue import Job


class UnknownSessionError(ArrowError):
    """There is no such session, or no longer."""


class NoAnswerError(ArrowError):
    """The session has no graph yet."""


@dataclass(frozen=True)
class Choices:
    """How the table of a session is read."""

    drop: tuple[str, ...] = ()
    missing: str = "error"
    scale: str = "auto"


@dataclass(eq=False)
class Session:
    """A table, the network's answer to it once there is one, and that answer as the person has argued it."""

    file: FileInMemory
    report: TableReport
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    choices: Choices = field(default_factory=Choices)
    """Those behind `found`."""
    asked: Choices = field(default_factory=Choices)
    """Those behind `job`."""
    job: Job[Discovery] | None = None
    found: Discovery | None = None
    answer: Answer | None = None
    last_used: float = 0.0

    def settle(self) -> None:
        """Take over what the network has found since, with what the person had said of the variables that are left."""
        job = self.job
        if job is None or job.state != "done" or job.result is None or job.result is self.found:
            return
        self.found, self.choices = job.result, self.asked
        before, self.answer = self.answer, job.result.answer
        if before is not None:
            known = _about(before.knowledge, self.answer.names)
            self.answer = self.answer.refine(knowledge=known, rule=before.rule, threshold=before.threshold)

    def current(self) -> tuple[Discovery, Answer]:
        """The discovery and the answer as it stands."""
        if self.found is None or self.answer is None:
            raise NoAnswerError("This table has no graph yet: wait for the network, or start it.")
        return self.found, self.answer


def _about(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    """The statements that concern these variables alone."""
    there = set(names)
    edges = {
        kind: [edge for edge in getattr(knowledge, kind) if there.issuperset(edge)]
        for kind in ("required", "forbidden")
    }
    some = {kind: [name for name in getattr(knowledge, kind) if name in there] for kind in ("roots", "leaves")}
    return Knowledge(**edges, **some, tiers=[[name for name in tier if name in there] for tier in knowledge.tiers])


class Sessions:
    """All sessions of a server. Those not used for too long are dropped, and the oldest where room is needed."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.clock = clock
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, session: Session) -> Session:
        """The session, kept."""
        self.drop_old()
        while len(self._sessions) >= self.limits.most_sessions:
            del self._sessions[min(self._sessions.values(), key=lambda other: other.last_used).key]
        session.last_used = self.clock()
        self._sessions[session.key] = session
        return session

    def get(self, key: str) -> Session:
        """The session of this name, which counts as a use."""
        self.drop_old()
        session = self._sessions.get(key)
        if session is None:
            raise UnknownSessionError(
                "This session is over: tables are dropped an hour after their last use. Open the table again."
            )
        session.last_used = self.clock()
        session.settle()
        return session

    def drop(self, session: Session) -> None:
        """Forget the session and its table."""
        self._sessions.pop(session.key, None)

    def drop_old(self) -> None:
        """Forget what was not used for too long."""
        now = self.clock()
        for session in list(self._sessions.values()):
            if now - session.last_used > self.limits.session_seconds:
                del self._sessions[session.key]

    def is_waited_for(self, session: Session) -> bool:
        """Whether its page has asked after it lately."""
        idle = self.clock() - session.last_used
        return self._sessions.get(session.key) is session and idle <= self.limits.patience_seconds
