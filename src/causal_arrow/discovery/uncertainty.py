"""Count over many possible graphs: ancestors, parents, adjustment sets, and how stable edges are.

The graphs are drawn from the network's distribution (`Answer.sample`), or decoded from resampled tables.
"""

# K graphs, P variables

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow.discovery import inference
from causal_arrow.discovery.answer import Answer, HiddenCause
from causal_arrow.discovery.arranged import Arranged, arrange
from causal_arrow.discovery.hidden import read_again
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.inputs import checked
from causal_arrow.network import Network
from causal_arrow.progress import progress_bar
from causal_arrow.tables.frames import WithFrames
from causal_arrow.tables.report import groups_of_copies
from causal_arrow.tables.table import Bools, Floats, Table
from causal_arrow.text import Readable, counted, counted_share, first_few

if TYPE_CHECKING:
    import pandas as pd

    from causal_arrow.many.workers import Job

GRAPHS_PER_PIECE = 256  # paths are followed in this many at a time, to bound the memory
PASSES_PER_WORKER = 4  # over resampled tables, at least
MAX_PAIRS = 5  # with a hidden cause that a sentence names


# Counting over graphs


def ancestor_frequencies(graphs: Bools) -> Floats:
    """Share of the graphs (K, P, P) with a directed path from j to k.  (P, P)"""
    counts = np.zeros(graphs.shape[1:])
    for _, descends in _with_paths(graphs):
        counts += descends.sum(axis=0)
    return counts / len(graphs)


def _with_paths(graphs: Bools) -> Iterator[tuple[Bools, Bools]]:
    """The graphs (K, P, P) in pieces, each with its transitive closure."""
    for start in range(0, len(graphs), GRAPHS_PER_PIECE):
        piece = graphs[start : start + GRAPHS_PER_PIECE]
        yield piece, transitive_closure(piece)


def parent_sets(graphs: Bools, variable: int) -> Counter[tuple[int, ...]]:
    """The number of graphs (K, P, P) with exactly these parents of the variable."""
    return _count_sets(graphs[:, :, variable])


def adjustment_sets(
    graphs: Bools, treatment: int, outcome: int, kind: str = "optimal"
) -> Counter[tuple[int, ...] | None]:
    """The number of graphs (K, P, P) that ask for exactly these variables to be adjusted for.

    None counts the graphs without a directed path from treatment to outcome: there the effect is zero.
    """
    if kind not in ADJUSTMENTS:
        raise ConfigurationError(f"Unknown kind of adjustment set {kind!r}: expected one of {', '.join(ADJUSTMENTS)}.")
    if treatment == outcome:
        raise ConfigurationError("Expected two different variables as treatment and outcome, got the same twice.")
    counts: Counter[tuple[int, ...] | None] = Counter()
    for piece, descends in _with_paths(graphs):
        effective = descends[:, treatment, outcome]
        counts.update(_count_sets(ADJUSTMENTS[kind](piece[effective], descends[effective], treatment, outcome)))
        counts[None] += int((~effective).sum())
    return +counts  # drops what was counted zero times


def _parents_of_treatment(graphs: Bools, descends: Bools, treatment: int, outcome: int) -> Bools:
    """The causes of the treatment: always enough, often more than is good for precision.  (K, P)"""
    return graphs[:, :, treatment]


def _optimal_set(graphs: Bools, descends: Bools, treatment: int, outcome: int) -> Bools:
    """The valid set with the smallest asymptotic variance in linear models.  (K, P)

    Henckel, Perković and Maathuis (2022): parents of the variables on directed paths from treatment to outcome, without
    the treatment, those variables themselves and their descendants.
    """
    on_path = descends[:, treatment, :] & descends[:, :, outcome]
    on_path[:, outcome] = True
    parents = (graphs & on_path[:, None, :]).any(axis=2)
    forbidden = on_path | (descends & on_path[:, :, None]).any(axis=1)
    forbidden[:, treatment] = True
    return np.asarray(parents & ~forbidden)


ADJUSTMENTS: dict[str, Callable[[Bools, Bools, int, int], Bools]] = {
    "optimal": _optimal_set,
    "parents": _parents_of_treatment,
}


def _count_sets(members: Bools) -> Counter[tuple[int, ...]]:
    """Count each set of variables among the rows.  (K, P)"""
    rows, counts = np.unique(members, axis=0, return_counts=True)
    return Counter({tuple(np.flatnonzero(row).tolist()): int(n) for row, n in zip(rows, counts, strict=True)})


def hidden_causes_on_the_way(answer: Answer, graphs: Bools, cause: int, effect: int) -> str | None:
    """One sentence on pairs that share a hidden cause among two variables and what lies between them in most graphs."""
    on_the_way = np.zeros(len(answer.names))
    for _, descends in _with_paths(graphs):
        on_the_way += (descends[:, cause, :] & descends[:, :, effect]).sum(axis=0)
    members = {answer.names[index] for index in np.flatnonzero(on_the_way >= 0.5 * len(graphs)).tolist()}
    members |= {answer.names[cause], answer.names[effect]}
    return hidden_causes_sentence([pair for pair in answer.hidden_causes if {pair.first, pair.second} <= members])


def hidden_causes_sentence(pairs: Sequence[HiddenCause]) -> str | None:
    """A sentence that paths and adjustment sets leave hidden common causes aside, and which; None without any."""
    if not pairs:
        return None
    some = first_few(list(map(str, pairs)), MAX_PAIRS)
    return (
        f"Paths and adjustment sets do not take hidden common causes into account, and these variables probably share "
        f"one: {some}. Part of what looks like an effect may be theirs."
    )


# Stability


MAX_SHOWN = 40  # edges of a stability that its text lists


@dataclass(frozen=True, eq=False, repr=False)
class EdgeStability(Readable, WithFrames):
    """Frequencies of edges when the observations are drawn again: the result of `stability`."""

    names: tuple[str, ...]
    """The variables."""
    frequencies: Floats
    """Share of the decoded graphs with j → k.  (P, P)"""
    mean_probabilities: Floats
    """Mean of the edge probabilities.  (P, P)"""
    resamples: int
    """Number of tables drawn."""

    def __str__(self) -> str:
        rows = self._edges().head(MAX_SHOWN).itertuples(index=False)
        lines = [f"Edges in {counted(self.resamples, 'resampled table')}, by the share that has them:"]
        return "\n".join([*lines, *(f"  {row.source} → {row.target}: {counted_share(row.frequency)}" for row in rows)])

    def to_frame(self) -> pd.DataFrame:
        """The edges that occurred at least once, the most frequent first.

        `frequency` is the share of the resampled tables whose graph has source → target, `reversed_frequency` the share
        with target → source, `mean_probability` the mean probability of source → target over all of them.
        """
        return self._framed(self._edges())

    def _edges(self) -> pd.DataFrame:
        import pandas as pd

        names, pairs = np.array(self.names, dtype=object), np.nonzero(self.frequencies > 0)
        frame = pd.DataFrame({"source": names[pairs[0]], "target": names[pairs[1]]})
        frame["frequency"], frame["reversed_frequency"] = self.frequencies[pairs], self.frequencies.T[pairs]
        frame["mean_probability"] = self.mean_probabilities[pairs]
        return frame.sort_values(["frequency", "source", "target"], ascending=[False, True, True], ignore_index=True)


@checked
def bootstrap(
    answer: Answer,
    model: Network,
    table: Table,
    count: int,
    random: np.random.Generator,
    settings: Settings,
    *,
    progress: bool | None = None,
    backend: str = "loky",
    jobs: int | None = None,
    cluster: str | None = None,
) -> EdgeStability:
    """Frequencies of edges when the observations of the answer's table are drawn again, `count` times.

    Without a cluster or a number of `jobs` this process does all the work.
    """
    from causal_arrow.many.workers import started

    arranged = as_answered(answer, table, settings.max_rows)
    chunk = settings.observations_per_chunk
    share = {"answer": answer, "network": model, "arranged": arranged, "observations_per_chunk": chunk}
    jobs = 1 if jobs is None and backend == "loky" else jobs
    with started(backend, jobs, cluster, model.device) as workers:
        passes = 1 if workers.count == 1 else PASSES_PER_WORKER * workers.count
        draws = inference.resampled_rows(model, arranged, count, random, passes)
        work = ({**share, "rows": rows} for rows in draws)
        parts: list[EdgeStability] = []
        with progress_bar(progress, pieces=count) as report:
            while pieces := list(islice(work, max(1, 2 * workers.count))):
                for result in workers.run(stability_of_rows, pieces):
                    if result["status"] != "ok":
                        raise ConfigurationError(result["error"])
                    parts.append(result["stability"])
                    report("Resampling", sum(each.resamples for each in parts) / count)
    weights = [part.resamples / count for part in parts]
    frequencies = np.average([part.frequencies for part in parts], axis=0, weights=weights)
    probabilities = np.average([part.mean_probabilities for part in parts], axis=0, weights=weights)
    return EdgeStability(answer.names, frequencies, probabilities, count)


def answer_of_rows(answer: Answer, model: Network, rows: Table, settings: Settings) -> Answer:
    """The answer for some rows of the answer's table, with the same knowledge, logarithms and decoding."""
    arranged = _read_alike(answer, arrange(rows, settings.max_rows))
    distribution = inference.infer(model, arranged, settings.observations_per_chunk)
    distribution, _ = read_again(model, arranged, distribution, settings.observations_per_chunk)
    return replace(
        answer,
        distribution=distribution,
        arrangement=arranged.arrangement,
        observations=rows.observations,
        experiments=rows.experiments,
        table_checksum=arranged.checksum,
        compiled=None,
    )


def as_answered(answer: Answer, table: Table, max_rows: int | None) -> Arranged:
    """The table as the network read it for the answer; a TableError for another table."""
    arranged = arrange(table, max_rows)
    if arranged.checksum != answer.table_checksum:
        raise TableError("Expected the table that was fitted, got another one: call fit with it first.")
    return _read_alike(answer, arranged)


def _read_alike(answer: Answer, arranged: Arranged) -> Arranged:
    """The table on the scales on which the network read it for the answer."""
    on_log_scale = np.array([name in answer.log_columns for name in arranged.names])
    return arranged.with_logarithms(on_log_scale).reading_once(groups_of_copies(answer.findings))


def stability_of_rows(job: Job) -> dict[str, Any]:
    """Frequencies of edges in the tables made of some rows: the work of one process, for `run_job`."""
    distributions = inference.infer_rows(job["network"], job["arranged"], job["rows"], job["observations_per_chunk"])
    return {"stability": edge_stability(job["answer"], distributions)}


def edge_stability(answer: Answer, distributions: Iterable[GraphDistribution]) -> EdgeStability:
    """Frequencies of edges when the distributions, arranged as the answer's, are decoded as the answer was."""
    frequencies, probabilities = np.zeros((2, len(answer.names), len(answer.names)))
    answer = replace(answer, compiled=answer.constraints_as_arranged)
    resamples = 0
    for distribution in distributions:
        resampled = replace(answer, distribution=distribution)
        frequencies += resampled.adjacency
        probabilities += resampled.edge_probabilities
        resamples += 1
    if not resamples:
        raise ConfigurationError("Expected at least one resampled table, got none.")
    return EdgeStability(answer.names, frequencies / resamples, probabilities / resamples, resamples)
