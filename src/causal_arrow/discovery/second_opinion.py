"""Second opinions: what classical methods of installed packages find in the same table, and where they disagree.

FLOP, BOSS and PC read tables, PCMCI+ series. Each gets standardized numbers and returns a partially directed graph:
[j, k] and [k, j] are both true where the method leaves the direction open.
"""

# N observations, P variables, L lags

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import ConfigurationError, check_choice
from causal_arrow.tables.frames import WithFrames
from causal_arrow.tables.table import Bools, Floats, Table
from causal_arrow.text import Readable, counted, reason

if TYPE_CHECKING:
    import pandas as pd

    from causal_arrow.discovery.answer import Answer

INSTALL = 'pip install "causal-arrow[opinion]"'
SEED = 0
LEVEL_OF_PC, LEVEL_OF_PCMCI = 0.05, 0.01


def flop(values: Floats, penalty: float = 2.0, restarts: int = 50) -> Bools:
    """FLOP (Wienöbst et al. 2025): a search over orders by BIC; its random restarts take no seed.  (P, P)

    Where the covariance lacks full rank, as with fewer rows than columns, it gets rows with one that is `shrunk`.
    """
    search = import_module("flopsearch").flop
    if np.linalg.matrix_rank(values) < values.shape[1]:
        values, factor = shrunk(values)
        penalty *= factor
    return np.asarray(search(values, penalty, restarts=restarts)) > 0


def boss(values: Floats, penalty: float = 2.0) -> Bools:
    """BOSS (Andrews et al. 2023): best order score search by BIC, from causal-learn.  (P, P)"""
    search = import_module("causallearn.search.PermutationBased.BOSS").boss
    with repeatable():
        score = {"score_func": "local_score_BIC_from_cov", "parameters": {"lambda_value": penalty}}
        return pdag_of(search(values.copy(), verbose=False, **score))


def pc(values: Floats, level: float = LEVEL_OF_PC) -> Bools:
    """PC (Spirtes et al. 2001) with tests of partial correlations, from causal-learn.  (P, P)"""
    search = import_module("causallearn.search.ConstraintBased.PC").pc
    with repeatable():
        return pdag_of(search(values.copy(), alpha=level, indep_test="fisherz", show_progress=False).G)


def pcmci_plus(values: Floats, lags: int, unit: NDArray[Any] | None = None, level: float = LEVEL_OF_PCMCI) -> Any:
    """PCMCI+ (Runge 2020) with partial correlations, from tigramite: its own result, with `graph` [j, k, lag].

    Rows of one `unit` (N,) follow each other.
    """
    return tigramite(values, unit).run_pcmciplus(tau_min=0, tau_max=lags, pc_alpha=level)


def tigramite(values: Floats, unit: NDArray[Any] | None) -> Any:
    """The tigramite object of a series, or of several pieces of one."""
    processing = import_module("tigramite.data_processing")
    test = import_module("tigramite.independence_tests.parcorr").ParCorr()
    flag = 999.0
    cells = np.where(np.isnan(values), flag, values)
    if unit is None:
        frame = processing.DataFrame(cells, missing_flag=flag)
    else:
        pieces = {index: cells[unit == label] for index, label in enumerate(np.unique(unit))}
        frame = processing.DataFrame(pieces, missing_flag=flag, analysis_mode="multiple")
    return import_module("tigramite.pcmci").PCMCI(dataframe=frame, cond_ind_test=test, verbosity=0)


@dataclass(frozen=True)
class OtherMethod:
    """A method that can be asked about the same table."""

    title: str
    module: str  # which shows that its package is installed
    assumes: str
    most: int  # variables up to which it is fast: with more it has to be asked for by name
    search: Callable[[Floats], Bools] | None = None


BY_SCORE = "linear effects with normal noise of any size, no hidden common causes; the graph with the best BIC"
BY_TESTS = f"independence shows as a partial correlation of zero (tests at {LEVEL_OF_PC:g}), no hidden common causes"
OVER_TIME = f"linear effects that do not change over time, no hidden common causes (tests at {LEVEL_OF_PCMCI:g})"

METHODS: Mapping[str, OtherMethod] = {
    "flop": OtherMethod("FLOP", "flopsearch", BY_SCORE, 300, flop),
    "boss": OtherMethod("BOSS", "causallearn", BY_SCORE, 60, boss),
    "pc": OtherMethod("PC", "causallearn", BY_TESTS, 60, pc),
}
OF_SERIES: Mapping[str, OtherMethod] = {"pcmci+": OtherMethod("PCMCI+", "tigramite", OVER_TIME, 30)}


def chosen_methods(
    known: Mapping[str, OtherMethod], asked: Any, variables: int
) -> tuple[dict[str, OtherMethod], list[str]]:
    """The methods to ask, and sentences about those that are left out.

    ConfigurationError for a name that is unknown or not installed, or if no method is left.
    """
    chosen, left_out = {}, []
    for name in known if asked is None else [asked] if isinstance(asked, str) else asked:
        method = known.get(name)
        if method is None:
            raise ConfigurationError(f"There is no method {name!r}: expected some of {', '.join(known)}.")
        if find_spec(method.module) is None:
            left_out.append(f"{method.title} is not installed: {INSTALL}.")
        elif asked is None and variables > method.most:
            left_out.append(
                f"{method.title} was left out: with more than {method.most} variables it may take very long. To wait "
                f"for it, ask for {name!r} by name."
            )
        else:
            chosen[name] = method
    if not chosen or (asked is not None and left_out):
        raise ConfigurationError(" ".join(left_out) or "Expected the name of one method or more, got none.")
    return chosen, left_out


def standardized(values: Floats) -> Floats:
    """Scale each column to mean 0 and standard deviation 1, without its missing cells.  (N, P)"""
    centered = values - np.nanmean(values, axis=0)
    deviations = np.nanstd(centered, axis=0)
    return np.asarray(centered / np.where(deviations > 0, deviations, 1.0))


def shrunk(values: Floats) -> tuple[Floats, float]:
    """P + 1 rows whose covariance is that of standardized columns shrunk towards independence.  (P + 1, P)

    And the factor of the penalty that makes the BIC of so many rows proportional to that of the original rows.
    """
    from sklearn.covariance import ledoit_wolf

    rows, variables = values.shape
    covariance, _ = ledoit_wolf(values, assume_centered=True)
    contrasts = np.linalg.qr(np.eye(variables + 1)[:, :-1] - 1 / (variables + 1))[0]  # orthonormal, each of mean 0
    made = np.sqrt(variables + 1) * contrasts @ np.linalg.cholesky(covariance).T
    return standardized(made), (variables + 1) / rows * math.log(rows) / math.log(variables + 1)


def pdag_of(graph: Any) -> Bools:
    """Convert a graph of causal-learn, whose [j, k] is the mark at j: −1 a tail, 1 an arrowhead.  (P, P)

    PC may return j ↔ k, where its tests contradict each other; then the direction is unknown.
    """
    tail_at_j, head_at_j = graph.graph == -1, graph.graph == 1
    return np.asarray(tail_at_j | (head_at_j & head_at_j.T))


@contextmanager
def repeatable(seed: int = SEED) -> Iterator[None]:
    """Seed Python's random numbers, by which causal-learn shuffles, and restore them; ignore its warnings."""
    state = random.getstate()
    random.seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(state)


Edge = tuple[str, str]

MAX_CONFLICTS = 10  # that the sentences name
AGREES, OPEN, REVERSED, ABSENT = "same", "undirected", "reversed", "absent"


@dataclass(frozen=True)
class Opinion:
    """The graph that one method found."""

    method: str
    """Its name, as in `methods`."""
    title: str
    """Its name, as people write it."""
    edges: frozenset[Edge]
    """The edges; one in both directions where the method leaves the direction open."""
    assumes: str
    """The assumptions under which it is right."""

    def on(self, source: str, target: str) -> str:
        """The opinion on an edge: "same", "undirected", "reversed" or "absent"."""
        forth, back = (source, target) in self.edges, (target, source) in self.edges
        return (OPEN if back else AGREES) if forth else REVERSED if back else ABSENT


@dataclass(frozen=True, repr=False)
class SecondOpinion(Readable, WithFrames):
    """The graphs of other methods for the same table; `print` shows where they agree with the answer.

    Examples
    --------
    >>> from causal_arrow import discover, load_example
    >>> opinion = discover(load_example("hospital")).second_opinion()
    >>> ("day3", "stay") in opinion.agreed
    True
    """

    names: tuple[str, ...]
    """The variables; of a series, the columns of its window, such as `soil t-1`."""
    edges: tuple[Edge, ...]
    """The edges of the answer, the most probable first."""
    probabilities: tuple[float, ...]
    """Probabilities of these edges."""
    opinions: tuple[Opinion, ...]
    """The other methods."""
    remarks: tuple[str, ...] = ()
    """Notes on how methods read the table, and on methods that were left out."""

    def to_frame(self) -> pd.DataFrame:
        """A row per pair that is joined in any of the graphs: those of the answer first.

        `arrow` is the probability of the edge in the answer, 0 without one; a column per method holds "same",
        "undirected", "reversed" or "absent". Of a pair that the answer does not join, a method's own edge is shown:
        "same" means source → target.
        """
        import pandas as pd

        known = dict(zip(self.edges, self.probabilities, strict=True))
        rows = [
            [*pair, round(known.get(pair, 0.0), 6), *(each.on(*pair) for each in self.opinions)] for pair in self._pairs
        ]
        columns = ["source", "target", "arrow", *(each.method for each in self.opinions)]
        return self._framed(pd.DataFrame(rows, columns=columns))

    @property
    def agreed(self) -> tuple[Edge, ...]:
        """The edges of the answer that every method has, though it may leave the direction open."""
        return tuple(edge for edge in self.edges if all(each.on(*edge) in (AGREES, OPEN) for each in self.opinions))

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Contradictions between methods and the answer, a sentence for each pair of variables."""
        sentences = []
        for source, target in self._pairs:
            titles: dict[str, list[str]] = {}
            for each in self.opinions:
                titles.setdefault(each.on(source, target), []).append(each.title)
            if (source, target) in self.edges:
                words = {REVERSED: "reversed", ABSENT: "without it"}
                against = [f"{', '.join(titles[verdict])} {words[verdict]}" for verdict in words if verdict in titles]
                if against:
                    sentences.append(f"{source} → {target}: in the answer, {'; '.join(against)}")
            else:
                arrow = "→" if AGREES in titles and REVERSED not in titles else "—"
                who = [each.title for each in self.opinions if each.title not in titles.get(ABSENT, ())]
                sentences.append(f"{source} {arrow} {target}: not in the answer, only in {', '.join(who)}")
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        """The opinions as JSON can hold them."""
        opinions = [
            {name: getattr(each, name) for name in ("method", "title", "assumes")}
            | {"edges": sorted(map(list, each.edges))}
            for each in self.opinions
        ]
        agreed, conflicts = [list(edge) for edge in self.agreed], list(self.conflicts)
        return {"agreed": agreed, "conflicts": conflicts, "opinions": opinions, "remarks": list(self.remarks)}

    def draw(self, *paths: str | Path, method: str | None = None) -> None:
        """Write the answer and one other graph as one picture, by the endings of the files: .png, .svg or .pdf."""
        from causal_arrow.discovery.pictures import save_two_graphs

        names = [each.method for each in self.opinions]
        check_choice("method", names[0] if method is None else method, names)
        other = self.opinions[0 if method is None else names.index(method)]
        save_two_graphs(self.names, self.edges, other.edges, other.title, *paths)

    def __str__(self) -> str:
        titles = ", ".join(each.title for each in self.opinions)
        agreed, conflicts = [f"{source} → {target}" for source, target in self.agreed], self.conflicts
        count = counted(len(self.edges), "edge")
        lines = [
            f"Second opinion of {titles}: {len(agreed)} of {count} in all of their graphs.",
            *_first_lines(agreed),
            f"{counted(len(conflicts), 'conflict')}{':' if conflicts else '.'}",
            *_first_lines(conflicts),
            *(f"{each.title} assumes: {each.assumes}." for each in self.opinions),
            "Agreement is not proof: methods that share an assumption are wrong together.",
            *self.remarks,
        ]
        return "\n".join(lines)

    @property
    def _pairs(self) -> tuple[Edge, ...]:
        """Every pair that is joined anywhere, as the answer directs it, else as the first method that has it."""
        known = {frozenset(edge): edge for edge in self.edges}
        for opinion in self.opinions:
            for edge in sorted(opinion.edges):
                known.setdefault(frozenset(edge), edge)
        return tuple(known.values())


def _first_lines(items: Sequence[str]) -> list[str]:
    more = [f"... and {len(items) - MAX_CONFLICTS} more"] if len(items) > MAX_CONFLICTS else []
    return [f"  {item}" for item in [*items[:MAX_CONFLICTS], *more]]


def opinions_on_table(answer: Answer, table: Table, methods: Sequence[str] | str | None) -> SecondOpinion:
    """Ask other methods about a table, as the network read it: on its scales, with missing cells filled in."""
    from causal_arrow.discovery.effects.falsification import on_scale_of
    from causal_arrow.tables.reading import read_table

    chosen, remarks = chosen_methods(METHODS, methods, table.variables)
    if not table.observed.all():
        remarks.append("Missing cells were filled in for the other methods, which cannot read them.")
        table = read_table(table, missing="impute")
    if levels := [column.name for column in table.columns if len(column.levels) > 2]:
        remarks.append(f"They read levels as numbers, so take edges of {', '.join(levels)} lightly.")
    if table.intervened is not None:
        remarks.append("They do not know which values experiments have set, and read those as observed ones.")
    if answer.knowledge.to_dict():
        remarks.append("Only the answer uses your knowledge.")
    values = standardized(on_scale_of(answer, table).values)
    opinions, failures = asked(chosen, table.names, values)
    pairs = tuple((edge.source, edge.target) for edge in answer.edges)
    probabilities = tuple(edge.probability for edge in answer.edges)
    return SecondOpinion(answer.names, pairs, probabilities, opinions, (*remarks, *failures))


def asked(
    methods: Mapping[str, OtherMethod], names: Sequence[str], values: Floats
) -> tuple[tuple[Opinion, ...], list[str]]:
    """The opinions of methods on standardized values, and sentences about methods that failed."""
    opinions, failures = [], []
    for name, method in methods.items():
        assert method.search is not None
        try:
            graph = method.search(values)
        except Exception as error:  # of another package, of any kind
            failures.append(f"{method.title} could not read this table ({reason(error)}).")
            continue
        edges = frozenset((names[j], names[k]) for j, k in np.argwhere(graph).tolist())
        opinions.append(Opinion(name, method.title, edges, method.assumes))
    if not opinions:
        raise ConfigurationError(" ".join(failures))
    return tuple(opinions), failures
