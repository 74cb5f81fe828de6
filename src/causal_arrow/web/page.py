"""The state of a server, and the work it does for a session: reading its table, and resampled ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import abilities, ready_model
from causal_arrow.discovery.pipeline import discover, read_for
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ArrowError, TableError
from causal_arrow.examples import load_example
from causal_arrow.examples.equations import KNOWN
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network import Network
from causal_arrow.series import SeriesOptions
from causal_arrow.series.discovery import SeriesDiscovery, discover_series
from causal_arrow.series.distribution import replace_edges
from causal_arrow.tables import FileInMemory, RawFrame
from causal_arrow.tables.options import ReadOptions
from causal_arrow.tables.table import Abilities
from causal_arrow.text import in_digits, reason
from causal_arrow.web._queue import Job, NetworkQueue, Pieces, stopped_when_unwanted
from causal_arrow.web._sessions import EffectAsked, Session, Sessions, about
from causal_arrow.web.messages import Facts
from causal_arrow.web.uploads import Limits, OpenedFile, apart, open_file, read_apart
from causal_arrow.web.work import ENDING, Store, StoredSession, read_work, session_of, take_up


@dataclass(frozen=True)
class ExampleTable:
    """A table, what it is about, and the question that it is there for."""

    title: str
    file: Callable[[], FileInMemory]
    question: tuple[str, str] | None = None  # a cause and an effect to ask about first
    wording: str = ""  # the question as a person asks it


def _bundled(name: str) -> FileInMemory:
    return FileInMemory(f"{name}.csv", load_example(name).to_csv(index=False, float_format="%.10g").encode())


EXAMPLES = {
    "hospital": ExampleTable(
        "800 patients of an imaginary hospital",
        partial(_bundled, "hospital"),
        ("drug", "stay"),
        "Does the drug lengthen the stay?",
    ),
    "beach": ExampleTable(
        "400 days at an imaginary beach",
        partial(_bundled, "beach"),
        ("ice_cream", "rescues"),
        "Does ice cream lead to rescues?",
    ),
    "sachs": ExampleTable("Proteins in 853 immune cells (Sachs et al. 2005)", partial(_bundled, "sachs")),
}


SECONDS_BETWEEN_UPKEEP = 0.5

READERS = 2  # threads that read files and draw pictures, next to the one that runs the network

CELLS_PER_PASS = 25_000  # cells of resampled tables per pass: few, so that other jobs get their turn and progress shows

Result = TypeVar("Result")


class Page:
    """The state of a server: the settings of the network, its sessions, and the queue for the network."""

    def __init__(
        self,
        settings: Settings | None = None,
        limits: Limits | None = None,
        given: FileInMemory | None = None,
        clock: Callable[[], float] = time.monotonic,
        store: Store | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.limits = limits or Limits()
        self.sessions = Sessions(self.limits, clock)
        self.queue = NetworkQueue(self.limits.most_waiting)
        self.examples = dict(EXAMPLES)
        self.given = None if given is None else "given"
        if given is not None:
            self.examples["given"] = ExampleTable(given.name, lambda: given)
        self.store = store
        self._restoring = asyncio.Lock()
        self._readers = asyncio.Semaphore(READERS)
        self._openers = asyncio.Semaphore(self.limits.most_readers)

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Do the work in a thread, so that the server stays responsive."""
        async with self._readers:
            return await asyncio.to_thread(work)

    async def open(self, file: FileInMemory) -> Session:
        """A session for a table or a work file; TableError if it is too large or cannot be read at all."""
        if file.suffix.lower() == ENDING:
            work = await self._apart(file, partial(read_work, file.content, file.name))
            self.limits.check_used(len(work.parts.answer.names))
            return self.sessions.add(session_of(work, self.settings))
        return self.sessions.add(self._session_of(file, await self.opened(file)))

    async def opened(self, file: FileInMemory) -> OpenedFile:
        """A file that was opened in a child process."""
        able = await self.aside(self.abilities)
        return await self._apart(file, partial(open_file, file, self.limits, able))

    async def _apart(self, file: FileInMemory, work: Callable[[], Result]) -> Result:
        """Do the work in a child process that ends when this coroutine is cancelled."""
        wanted = [True]
        async with self._openers:
            try:
                return await asyncio.to_thread(lambda: apart(file, self.limits, work, lambda: wanted[0]))
            finally:
                wanted[0] = False

    # The store

    async def restore(self, key: str) -> None:
        """Bring a session back from the store, if it is there and not in memory."""
        if self.store is None or self.sessions.has(key):
            return
        async with self._restoring:
            stored = None if self.sessions.has(key) else await self.aside(partial(self.store.load, key))
            if stored is None:
                return
            with contextlib.suppress(ArrowError):  # what cannot be read any more is as good as not there
                self.sessions.add(await self._restored(key, stored))

    async def _restored(self, key: str, stored: StoredSession) -> Session:
        work = None if stored.work is None else await self.aside(partial(read_work, stored.work, stored.file.name))
        if not stored.file.content:
            assert work is not None  # a session without a file came from a work file
            session = session_of(work, self.settings)
        else:
            opened = await self.opened(stored.file)
            session = self._session_of(stored.file, opened)
            session.asked = self.settings.changed(**stored.choices)
            if work is not None:
                read = work.parts.settings
                choices = self.settings.changed(scale=read.scale, **read.reading.to_dict())
                source = self._source(session, choices, lambda: True)
                table = await self.aside(lambda: read_for(self.abilities(), source, choices.reading))
                take_up(session, work, table, self.settings)
        session.key, session.example = key, stored.example
        return session

    async def upkeep(self) -> None:
        """Drop old sessions, and write what has changed to the store, until this coroutine is cancelled."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_UPKEEP)
            self.sessions.drop_old()
            if self.store is not None:
                for session in self.sessions:
                    await self._save(session, self.store)

    async def _save(self, session: Session, store: Store) -> None:
        async with self._restoring:  # or one that is closed meanwhile comes back from what is being written
            try:
                await asyncio.to_thread(store.save, session)
            except Exception as error:  # whatever it is, the upkeep of other sessions goes on
                session.notice = f"Your work could not be kept on this machine's disk ({reason(error)})."
            if session.closed:  # while it was written
                store.remove(session.key)

    def drop(self, session: Session) -> None:
        """Forget a session, on disk too."""
        session.closed = True
        for job in (session.job, session.resampling, session.series):
            self.queue.cancel(job)
        self.sessions.drop(session)
        if self.store is not None:
            self.store.remove(session.key)

    def _session_of(self, file: FileInMemory, opened: OpenedFile) -> Session:
        session = Session(file, opened.report, opened.raw, opened.columns)
        if opened.left_out:
            session.asked = session.asked.changed(drop=opened.left_out)
            session.notice = (
                f"The table has {len(opened.columns):,} columns. The first {self.limits.most_variables:,} are read: "
                "choose others under Columns and kinds."
            )
        return session

    def abilities(self) -> Abilities:
        """The parts of a table that the network reads besides numbers."""
        return abilities(self.settings.model, self._network())

    def _network(self) -> Network:
        return ready_model(self.settings.model, self.settings.device)

    # Work of the network

    def _submit(self, session: Session, work: Callable[[Job[Any]], Any]) -> Job[Any]:
        """Put work for a session in line for the network; it stops once nobody waits for it."""
        job: Job[Any] = Job(lambda: work(job), wanted=lambda: self.sessions.is_waited_for(session))
        return self.queue.submit(job)

    def start(self, session: Session, choices: Settings) -> None:
        """Put the table of a session in line for the network, unless it has answered the same before."""
        self.queue.cancel(session.job)
        self.queue.cancel(session.resampling)
        session.asked, session.resampling = choices, None
        if (known := session.known(choices)) is not None:
            session.job = Job.done(known)
            session.settle()
            return

        def work(job: Job[Any]) -> Discovery:
            with stopped_when_unwanted(self._network(), job):
                return discover(self._source(session, choices, lambda: job.is_wanted), choices)

        self.limits.check_used(len(session.columns) - len(choices.reading.drop or ()))
        session.job = self._submit(session, work)

    def _source(self, session: Session, choices: Settings, is_wanted: Callable[[], bool]) -> RawFrame:
        """The table in the file of a session; other signs of missing cells mean that it is read once more."""
        na = choices.reading.na
        if not na or not session.file.content:
            return session.raw
        return read_apart(session.file, self.limits, self.abilities(), ReadOptions(na=na), is_wanted).raw

    def start_resampling(self, session: Session, count: int) -> None:
        """Put resampled tables in line for the network, one after the other."""
        found = session.current()
        self.queue.cancel(session.resampling)

        def work(job: Job[Any]) -> Pieces[list[GraphDistribution]]:
            passes = -(-count * found.table.values.size // CELLS_PER_PASS)
            distributions = found.resampled(count, passes=passes)
            read: list[GraphDistribution] = []
            for _ in range(count):
                with stopped_when_unwanted(found.network, job):
                    read.append(next(distributions))
                yield len(read) / count
            return read

        session.resampling = self._submit(session, work)

    def start_series(self, session: Session, options: SeriesOptions) -> None:
        """Put the table as a time series in line. Tiers, roots and forbidden edges hold at every lag."""
        if any(finding.kind == "sampled" for finding in session.raw.findings):
            raise TableError(
                "The page reads a sample of this long table, which leaves gaps in time: use the command line."
            )
        self.queue.cancel(session.series)
        asked = session.asked
        settings = self.settings.changed(scale=asked.scale, **asked.reading.to_dict(), **options.to_dict())
        if session.answer is not None:
            names = [name for name in session.answer.names if name not in (options.time, options.unit)]
            known = about(session.answer.knowledge, names)
            settings = settings.changed(knowledge=replace_edges(known, forbidden=known.forbidden))

        def work(job: Job[Any]) -> SeriesDiscovery:
            with stopped_when_unwanted(self._network(), job):
                return discover_series(session.raw, settings)

        session.series = self._submit(session, work)

    def truth(self, session: Session, asked: EffectAsked) -> Facts | None:
        """The effect by the equations behind an example, for one step of its cause."""
        _, effects = KNOWN.get(session.example, ((), {}))
        value = effects.get((asked.cause, asked.effect))
        if value is None or asked.between not in (None, ("0", "1")):
            return None
        words = f"This table was simulated: by its equations the effect is {in_digits(value)}."
        return {"value": value, "words": words}
