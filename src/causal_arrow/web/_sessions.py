"""Sessions: one table and the work on it, in memory, under a name that cannot be guessed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.settings import Settings
from causal_arrow.discovery.uncertainty import EdgeStability, edge_stability
from causal_arrow.errors import ArrowError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.series.discovery import SeriesDiscovery
from causal_arrow.tables import FileInMemory, RawFrame, SourceColumn
from causal_arrow.tables.report import TableReport
from causal_arrow.web._queue import Job
from causal_arrow.web.uploads import Limits

MAX_KEPT = 12  # answers that a session keeps for comparison
MAX_QUESTIONS = 20  # questions about effects that the report answers and the Python lines repeat
MAX_EARLIER = 8
EARLIER_BYTES = 16 * 2**20
"""Memory for the tables of earlier readings, so that returning to them needs no pass of the network."""


class UnknownSessionError(ArrowError):
    """The session does not exist, or no longer."""


class OutdatedError(ArrowError):
    """The graph was changed elsewhere since the sender saw it."""


class NoAnswerError(ArrowError):
    """The session has no graph yet."""


@dataclass(frozen=True)
class EffectAsked:
    """A question about an effect: of what, on what, and between which values of the cause."""

    cause: str
    effect: str
    between: tuple[str, str] | None = None
    estimator: str = "flexible"
    randomized: bool = False  # whether chance decided on the cause
    level: str | None = None  # the level whose share is the outcome, for an outcome with levels

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `Discovery.effect` that differ from those of the page."""
        chosen = {each.name: getattr(self, each.name) for each in fields(self)[2:]}
        return {name: value for name, value in chosen.items() if value != getattr(EffectAsked, name)}


@dataclass(frozen=True, eq=False)
class KeptAnswer:
    """An answer that was kept to be compared, and what to call it."""

    number: int
    name: str
    answer: Answer


@dataclass(eq=False)
class Session:
    """A table, the network's answer to it once there is one, and that answer as the person has argued it."""

    file: FileInMemory
    report: TableReport  # the report on the table, read with default options
    raw: RawFrame  # the table in the file, before anything is decided about its columns
    columns: tuple[SourceColumn, ...] = ()
    example: str = ""  # the name of the example that it is, if it is one
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    choices: Settings = field(default_factory=Settings)  # settings behind `found`
    asked: Settings = field(default_factory=Settings)  # settings behind `job`
    job: Job[Discovery] | None = None
    found: Discovery | None = None  # as the network has answered
    argued: Discovery | None = None  # the same as the person has argued it; None before there is an answer
    notice: str | None = None  # a note about the last reading
    resampling: Job[list[GraphDistribution]] | None = None
    series: Job[SeriesDiscovery] | None = None  # the table read as a time series
    questions: list[EffectAsked] = field(default_factory=list)
    kept: list[KeptAnswer] = field(default_factory=list)
    last_used: float = 0.0
    closed: bool = False  # whether a person has closed it: the disk must not keep it either
    version: int = 0  # goes up with every change of the answer, so that two tabs do not undo each other's
    _earlier: list[tuple[Settings, Discovery]] = field(default_factory=list)
    _stability: tuple[Answer, EdgeStability] | None = None
    numbers: int = 0  # number of answers kept so far

    @property
    def answer(self) -> Answer | None:
        """The answer as the person has argued it."""
        return None if self.argued is None else self.argued.answer

    def current(self) -> Discovery:
        """The discovery with the answer as it stands; graphs that were drawn for one question serve the next."""
        if self.argued is None:
            raise NoAnswerError("This table has no graph yet: wait for the network, or start it.")
        return self.argued

    def settle(self) -> None:
        """Adopt the network's new result, with the person's knowledge about the remaining variables."""
        job = self.job
        if job is None or job.state != "done" or job.result is None or job.result is self.found:
            return
        before, found, choices = self.answer, self.found, self.choices
        self.found = self.argued = job.result
        self.choices, self._stability = self.asked, None
        self.version += 1
        if before is None or found is None:
            return
        self.notice = None
        self._remember(choices, found)
        self.keep(before, "before the table was read again", once=True)
        answer = self.found.answer.refine(**read_off(before))
        try:
            answer = answer.refine(knowledge=about(before.knowledge, answer.names))
        except ArrowError as error:
            self.notice = f"Your knowledge no longer fits the table and was removed: {error.message}"
        self.argued = self.found.with_answer(answer)

    def marks(self) -> object:
        """A value that changes whenever there is something new to keep on disk."""
        return id(self.argued), tuple(self.questions), tuple(each.number for each in self.kept), self.asked

    def argue(self, found: Discovery, answer: Answer, version: int | None) -> None:
        """Take over an answer that was argued from a version; OutdatedError if that is not the latest."""
        self.check_version(version)
        if self.found is found:  # and not a newer one, of other columns
            self.argued, self.version = found.with_answer(answer), self.version + 1

    def check_version(self, version: int | None) -> None:
        """OutdatedError if a version is not the latest one."""
        if version is not None and version != self.version:
            raise OutdatedError(
                "This graph was changed in another tab. You now see that version: repeat your change if it still fits."
            )

    def known(self, choices: Settings) -> Discovery | None:
        """The discovery from the last time the table was read this way; None if it was dropped."""
        if self.found is not None and choices == self.choices:
            return self.found
        return next((found for earlier, found in self._earlier if earlier == choices), None)

    def _remember(self, choices: Settings, found: Discovery) -> None:
        """Keep the latest readings while they are small."""
        self._earlier = [*(each for each in self._earlier if each[0] != choices), (choices, found)]
        while self._earlier and (
            len(self._earlier) > MAX_EARLIER
            or sum(each.table.values.nbytes for _, each in self._earlier) > EARLIER_BYTES
        ):
            del self._earlier[0]

    @property
    def resampled(self) -> list[GraphDistribution] | None:
        """The network's distributions for resampled tables, once it has read them all."""
        return None if self.resampling is None else self.resampling.result

    def stability(self) -> EdgeStability | None:
        """Frequency of each edge in resampled tables, decoded as the answer stands; None before they are read."""
        resampled, answer = self.resampled, self.answer
        if resampled is None or answer is None:
            return None
        if self._stability is None or self._stability[0] is not answer:
            self._stability = answer, edge_stability(answer, resampled)
        return self._stability[1]

    def keep(self, answer: Answer, name: str, once: bool = False) -> None:
        """Keep an answer under a name; with `once`, in place of the one that had the name."""
        if once:
            self.kept = [each for each in self.kept if each.name != name]
        self.numbers += 1
        self.kept = [*self.kept, KeptAnswer(self.numbers, name, answer)][-MAX_KEPT:]

    def remember_question(self, question: EffectAsked) -> None:
        """Keep a question about an effect for the report and the Python lines."""
        self.questions = [*(each for each in self.questions if each != question), question][-MAX_QUESTIONS:]


READ_OFF = ("decode", "threshold", "directions", "hidden", "hidden_threshold")
"""Settings of how a graph is read off the network's answer."""


def read_off(answer: Answer) -> dict[str, Any]:
    """Words for how the graph of an answer was decoded."""
    return {name: getattr(answer, name) for name in READ_OFF}


def about(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    """The statements that concern these variables alone."""
    there = set(names)
    edges = {
        kind: [edge for edge in getattr(knowledge, kind) if there.issuperset(edge)]
        for kind in ("required", "forbidden", "no_hidden_cause")
    }
    variables = {
        kind: [name for name in getattr(knowledge, kind) if name in there] for kind in ("roots", "leaves", "randomized")
    }
    tiers = [[name for name in tier if name in there] for tier in knowledge.tiers]
    beliefs = [belief for belief in knowledge.beliefs if there.issuperset(belief.names)]
    return Knowledge(**edges, **variables, tiers=[tier for tier in tiers if tier], beliefs=beliefs)


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

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def has(self, key: str) -> bool:
        """Whether there is a session of this name."""
        return key in self._sessions

    def get(self, key: str) -> Session:
        """The session of this name, which counts as a use."""
        self.drop_old()
        session = self._sessions.get(key)
        if session is None:
            raise UnknownSessionError(
                "This session is over: its table was dropped some time after its last use. Open the table again."
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
        """Whether its page has sent a request lately."""
        idle = self.clock() - session.last_used
        return self._sessions.get(session.key) is session and idle <= self.limits.patience_seconds
