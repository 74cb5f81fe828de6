"""Is a graph compatible with a table? Tests of the independences that it implies, against node-permuted graphs.

A causal graph says that each variable, given its direct causes, is independent of everything that it does not affect
(the local Markov property). Some tests of this fail by chance, or because relations are odd; so the same is counted for
graphs of the same shape whose variables have changed places (Eulig et al. 2023, as in DoWhy).

The test: every number has three functions, its value and the second and third Hermite function of its normal score; a
category has the indicators of its levels. With all functions of the causes regressed out, Wilks' likelihood ratio says
whether the value of the effect goes with any function of the other variable (Bartlett's correction, χ²). The value
alone, because its mean given the causes can be a sum of their functions when its other moments cannot.
"""

# N observations, P variables, Q functions, K graphs

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import TableError
from causal_arrow.graphs.dag import markov_equivalent, transitive_closure
from causal_arrow.network.basis import hermite_functions, normal_scores
from causal_arrow.tables.frames import WithFrames
from causal_arrow.tables.scales import has_logarithms, with_logarithms
from causal_arrow.tables.table import Table, in_safe_units
from causal_arrow.text import Readable, capitalized, counted, counted_share, first_few, listed

if TYPE_CHECKING:
    import pandas as pd

    from causal_arrow.discovery.answer import Answer

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVEL = 0.05
RIDGE = 1e-9
MAX_NAMED = 5

PERMUTATIONS = 100  # shuffled graphs that a graph is compared with
FEW_VARIABLES = 20  # variables up to which that takes a fraction of a second: the report card then runs the same test
REPORTED_PERMUTATIONS = 20
"""The number for more variables: the fewest with which a graph can do better than 95% of them."""
MAX_REPORTED = 60  # variables up to which these take a fraction of a second
MIN_COMPLETE = 50  # complete observations that the report card asks for


@dataclass(frozen=True, eq=False, repr=False)
class Falsification(Readable, WithFrames):
    """Result of testing the independences that a graph implies. `print(...)` says it in words."""

    names: tuple[str, ...]
    """The variables."""
    graph: Bools
    """The graph that was tested.  (P, P)"""
    independence: Floats
    """P-value that j is independent of k given the causes of k; NaN where nothing is implied.  (P, P)"""
    support: Floats
    """P-value that an edge j → k is not needed, given the other causes of k; NaN without an edge.  (P, P)"""
    permuted: Floats
    """Share of violated independences in each node-permuted graph.  (K,)"""
    equivalent: float
    """Share of the permuted graphs that imply exactly the same independences: if large, the test has little power."""

    @property
    def tests(self) -> int:
        """Number of independences that the graph implies."""
        return int((~np.isnan(self.independence)).sum())

    @property
    def violated(self) -> float:
        """Share of the independences that the data contradict, each at a level of 5%."""
        return violated_share(self.independence)

    @property
    def p_value(self) -> float:
        """Share of the permuted graphs that the data contradict no more than this graph."""
        return float((1 + (self.permuted <= self.violated).sum()) / (1 + len(self.permuted)))

    @property
    def falsified(self) -> bool:
        """Whether the data contradict the graph more than by chance, and node-permuted graphs no more than it."""
        if self.p_value <= LEVEL or self.equivalent > LEVEL:
            return False
        contradicted, as_good = round(self.violated * self.tests), int((self.permuted <= self.violated).sum())
        return max(_chance(contradicted, self.tests), _chance(as_good, len(self.permuted))) <= LEVEL

    @property
    def says_little(self) -> bool:
        """Whether the test has little power: the graph implies too little, or permuted graphs imply the same."""
        return not self.falsified and (self.p_value > LEVEL or self.equivalent > LEVEL)

    @property
    def contradictions(self) -> pd.DataFrame:
        """Independences that the data contradict even though many were tested (Holm), the clearest first."""
        return self._framed(self._contradictions)

    @cached_property
    def _contradictions(self) -> pd.DataFrame:
        import pandas as pd

        indices = np.argwhere(~np.isnan(self.independence))
        indices = indices[np.argsort(self.independence[tuple(indices.T)], kind="stable")]
        adjusted = holm(self.independence[tuple(indices.T)])
        rows = [
            (self.names[k], self.names[j], tuple(np.array(self.names)[self.graph[:, k]].tolist()), value)
            for (j, k), value in zip(indices, adjusted, strict=True)
            if value < LEVEL
        ]
        return pd.DataFrame(rows, columns=["variable", "depends_on", "given", "p_value"])

    @property
    def unsupported_edges(self) -> pd.DataFrame:
        """Edges that the test does not confirm: given its other causes, the mean of the effect does not depend on it.

        The network looks at more than means: such an edge is not refuted.
        """
        return self._framed(self._unsupported_edges)

    @cached_property
    def _unsupported_edges(self) -> pd.DataFrame:
        import pandas as pd

        indices = np.argwhere(self.support > LEVEL)
        rows = [(self.names[j], self.names[k], float(self.support[j, k])) for j, k in indices]
        frame = pd.DataFrame(rows, columns=["source", "target", "p_value"])
        return frame.sort_values("p_value", ascending=False, ignore_index=True, kind="stable")

    def to_dict(self) -> dict[str, Any]:
        """The test as JSON can hold it; docs/reference/json.md describes every field."""
        return {
            "tests": self.tests,
            "violated": self.violated,
            "shuffled": len(self.permuted),
            "p_value": self.p_value,
            "equivalent": self.equivalent,
            "falsified": self.falsified,
            "says_little": self.says_little,
            "contradictions": [
                {**row, "given": list(row["given"])} for row in self._contradictions.to_dict(orient="records")
            ],
            "unsupported_edges": self._unsupported_edges.to_dict(orient="records"),
            "sentence": str(self),
        }

    def __str__(self) -> str:
        if not self.tests:
            return "The graph implies no independence: no table could contradict it."
        violations, alike = round(self.violated * self.tests), float((self.permuted <= self.violated).mean())
        sentences = [
            f"The data contradict {violations:,} of {counted(self.tests, 'independence')} that the graph implies "
            f"({counted_share(self.violated)}; 5% would be chance). "
            f"{capitalized(counted_share(alike))} of {len(self.permuted)} node-permuted "
            f"graphs {'fit' if alike else 'fits'} as well."
        ]
        if self.equivalent > LEVEL:
            sentences.append(
                f"{counted_share(self.equivalent, 'permuted graphs')} imply the same independences: the test has "
                "little power here."
            )
        elif self.falsified:
            sentences.append("So the graph fits no better than chance: do not rely on it.")
        elif self.says_little:
            sentences.append("So the test has little power here.")
        else:
            sentences.append("This tests independences; it does not confirm directions.")
        # A pair without a direction may be tested from either end, and is named once.
        dependent: dict[frozenset[str], str] = {}
        for row in self._contradictions.itertuples():
            dependent.setdefault(frozenset((row.depends_on, row.variable)), f"{row.depends_on} – {row.variable}")
        if dependent:
            sentences.append(f"Dependent against the graph: {first_few(list(dependent.values()), MAX_NAMED)}.")
        if edges := [f"{row.source} → {row.target}" for row in self._unsupported_edges.itertuples()]:
            named = first_few(edges, MAX_NAMED)
            sentences.append(f"Not confirmed by this test, which looks at means alone: {named}.")
        return " ".join(sentences)


def falsify(
    graph: Bools, table: Table, permutations: int, random: np.random.Generator, hidden: Bools | None = None
) -> Falsification:
    """Test the independences that the graph (P, P) implies, and those of `permutations` node-permuted graphs."""
    functions = Functions.of(_testable(table))
    # What a `hidden` cause (P, P) of a variable leaves independent of it depends on more than its direct causes.
    touched = np.zeros(len(graph), dtype=bool) if hidden is None else np.asarray(hidden.any(axis=0))
    permuted, equivalent = [], 0
    for _ in range(permutations):
        indices = random.permutation(len(graph))
        shuffled = graph[np.ix_(indices, indices)]
        permuted.append(violated_share(local_independences(shuffled, functions, touched[indices])))
        equivalent += markov_equivalent(shuffled, graph)
    return Falsification(
        names=table.names,
        graph=graph,
        independence=local_independences(graph, functions, touched),
        support=_support(graph, functions),
        permuted=np.array(permuted),
        equivalent=equivalent / permutations,
    )


def compatibility(answer: Answer, table: Table, thorough: bool = False) -> Falsification | None:
    """Whether the graph of an answer is compatible with its table, for the report card; None if that takes long or
    there is nothing to test with."""
    wide = table.variables > MAX_REPORTED and not thorough
    if wide or why_not_tested(table):
        return None
    permutations = PERMUTATIONS if thorough or table.variables <= FEW_VARIABLES else REPORTED_PERMUTATIONS
    random = np.random.default_rng(0)
    return falsify(answer.adjacency, on_scale_of(answer, table), permutations, random, answer.suspected)


def why_not_tested(table: Table) -> str:
    """Why no graph can be tested with a table, in a sentence; empty if one can be."""
    untouched, fewest = _untouched(table)
    if untouched.sum() < fewest:
        count, whole = int(untouched.sum()), counted(table.observations, "observation")
        left = f"{count:,} of {whole} {'is' if count == 1 else 'are'} complete and without an experiment"
        return (
            f"The graph was not tested: {f'there are {whole}' if untouched.all() else left}, and at least {fewest} are "
            f"needed to test a graph of {counted(table.variables, 'variable')}."
        )
    constant = [name for name, values in zip(table.names, table.values.T, strict=True) if not np.ptp(values[untouched])]
    if constant:
        return (
            "The graph was not tested: in the observations that are complete and without an experiment, "
            f"{listed(constant)} {'has' if len(constant) == 1 else 'have'} the same value everywhere."
        )
    return ""


def _untouched(table: Table) -> tuple[Bools, int]:
    """True for complete observations in which no experiment intervened (N,), and how many of them a test needs."""
    complete = np.asarray(table.observed.all(axis=1))
    untouched = complete if table.intervened is None else complete & ~table.intervened.any(axis=1)
    return untouched, max(MIN_COMPLETE, 3 * table.variables)


def _testable(table: Table) -> Table:
    """These observations alone; TableError if some are left out and too few remain."""
    untouched, fewest = _untouched(table)
    if not untouched.all() and untouched.sum() < fewest:
        raise TableError(
            f"Only {untouched.sum()} of {counted(table.observations, 'observation')} are complete and without an "
            f"experiment: at least {fewest} are needed to test a graph of {counted(table.variables, 'variable')}."
        )
    return replace(table.only(untouched), intervened=None)


def on_scale_of(answer: Answer, table: Table) -> Table:
    """The table with the logarithms of the columns that the network read on a log scale, where they have some."""
    columns = zip(table.names, table.values.T, strict=True)
    chosen = [name in answer.log_columns and has_logarithms(values) for name, values in columns]
    return replace(table, values=with_logarithms(table.values, np.array(chosen)))


def holm(values: Floats) -> Floats:
    """p values that allow for so many comparisons (Holm 1979)."""
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1.0)
    return adjusted


def violated_share(independence: Floats) -> float:
    """Share of the p-values that are below 5%; 0 where nothing is tested."""
    values = independence[~np.isnan(independence)]
    return float((values < LEVEL).mean()) if len(values) else 0.0


def _chance(count: int, trials: int) -> float:
    """The probability of so many of the trials or more, if each of them comes by a chance of 5%."""

    def logarithm(hits: int) -> float:
        ways = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
        return ways + hits * math.log(LEVEL) + (trials - hits) * math.log1p(-LEVEL)

    return 1.0 - math.fsum(math.exp(logarithm(hits)) for hits in range(count))


# Tests


@dataclass(frozen=True, eq=False)
class Functions:
    """All variables as blocks of functions."""

    products: Floats  # (Q, Q), correlations
    indices: tuple[NDArray[np.intp], ...]  # of each variable, its functions; none of a constant
    means: tuple[int, ...]  # (P,) how many of the first are tested: the value of a number, levels of a category
    observations: int
    known: dict[tuple[int, bytes], Floats]  # what was computed before, of tables with few variables

    @classmethod
    def of(cls, table: Table) -> Functions:
        """The functions of a complete table."""
        assert table.observed.all()
        values, _ = in_safe_units(table.values)
        values = values - values.mean(axis=0)
        hermite = np.stack(hermite_functions(normal_scores(values[None])), axis=-1)[0]  # (N, P, 3)
        blocks = []
        for index, column in enumerate(table.columns):
            cells = values[:, index]
            if column.kind == "category":
                block = (cells[:, None] == np.unique(cells)[1:]).astype(np.float64)
            else:  # a number with two or three values has fewer functions
                bent = hermite[:, index, 1 : max(1, min(3, len(np.unique(cells)) - 1))]
                block = np.concatenate([cells[:, None], bent], axis=1)
            centered = block - block.mean(axis=0)
            deviations = centered.std(axis=0)
            kept = np.ptp(block, axis=0) > 0
            blocks.append(centered[:, kept] / deviations[kept])
        flat = np.concatenate(blocks, axis=1)  # (N, Q)
        products = flat.T @ flat / table.observations
        products[np.diag_indices(len(products))] = 1.0 + RIDGE
        ends = np.cumsum([block.shape[1] for block in blocks]).tolist()
        indices = tuple(np.arange(end - block.shape[1], end) for end, block in zip(ends, blocks, strict=True))
        kinds = zip(indices, table.columns, strict=True)
        means = tuple(len(own) if column.kind == "category" else min(1, len(own)) for own, column in kinds)
        return cls(products, indices, means, table.observations, {})

    @cached_property
    def by_size(self) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]:
        """The variables with as many functions as each other, and their functions.  (G,), (G, F)"""
        sizes = np.array([len(own) for own in self.indices])
        groups = (np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes > 0]))
        return tuple((members, np.stack([self.indices[member] for member in members])) for members in groups)

    def independences(self, variable: int, given: Bools) -> Floats:
        """P-values that each variable is independent of one, given others (P,); NaN for these and constants.  (P,)"""
        if len(self.indices) > FEW_VARIABLES:
            return self._independences(variable, given)
        key = variable, given.tobytes()
        if key not in self.known:
            self.known[key] = self._independences(variable, given)
        return self.known[key]

    def _independences(self, variable: int, given: Bools) -> Floats:
        values = np.full(len(self.indices), np.nan)
        own = self.indices[variable][: self.means[variable]]  # (M,)
        if not len(own):
            return values
        inside = np.concatenate([np.arange(0), *(self.indices[index] for index in np.flatnonzero(given))])
        across = self.products[inside]  # (k, Q)
        weights = np.linalg.solve(self.products[np.ix_(inside, inside)], across) if len(inside) else across
        left = self.products[np.ix_(own, own)] - across[:, own].T @ weights[:, own]
        own_volume = np.linalg.slogdet(left)[1]
        # Variables with as many functions as each other go together: each is padded to nothing.
        for members, functions in self.by_size:
            usable = ~given[members] & (members != variable)
            if not usable.any():
                continue
            members, functions = members[usable], functions[usable]  # (G,), (G, F)
            size, tested = functions.shape[1], len(own)
            joint = np.empty((len(members), size + tested, size + tested))
            taken, solved = across[:, functions], weights[:, functions]  # (k, G, F)
            joint[:, :size, :size] = self.products[functions[:, :, None], functions[:, None, :]]
            joint[:, :size, :size] -= np.einsum("kgf,kgh->gfh", taken, solved)
            joint[:, :size, size:] = self.products[functions[:, :, None], own]
            joint[:, :size, size:] -= np.einsum("kgf,km->gfm", taken, weights[:, own])
            joint[:, size:, :size] = joint[:, :size, size:].swapaxes(1, 2)
            joint[:, size:, size:] = left
            volumes = np.linalg.slogdet(joint[:, :size, :size])[1] + own_volume
            ratio = np.maximum(volumes - np.linalg.slogdet(joint)[1], 0.0)
            weight = max(self.observations - 1 - len(inside) - (size + tested + 1) / 2, 0.0)
            values[members] = chi_square_tail(size * tested, weight * ratio)
        return values


def chi_square_tail(freedom: int, statistic: Floats) -> Floats:
    """The probability that a χ² variable with so many degrees of freedom is larger.  (P,)"""
    # Whole numbers of degrees make it a finite sum; loading scipy's function would take longer than a whole report.
    half = np.asarray(statistic, dtype=np.float64) / 2
    powers = np.arange(freedom % 2 / 2, freedom / 2)
    log_gammas = np.array([math.lgamma(power + 1) for power in powers.tolist()])
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.where(powers > 0, powers * np.log(half[:, None]), 0.0)
    tail: Floats = np.exp(logarithms - half[:, None] - log_gammas).sum(axis=1)
    if freedom % 2:
        tail += np.array([math.erfc(math.sqrt(each)) for each in half.tolist()])
    return np.minimum(tail, 1.0)


def local_independences(graph: Bools, functions: Functions, touched: Bools | None = None) -> Floats:
    """P-values that j is independent of k given the causes of k; NaN where k affects j or is `touched` (P,).  (P, P)"""
    descends = transitive_closure(graph)
    values = np.full(graph.shape, np.nan)
    for k in range(len(graph)) if touched is None else np.flatnonzero(~touched).tolist():
        implied = ~descends[k] & ~graph[:, k]
        implied[k] = False
        if implied.any():
            values[implied, k] = functions.independences(k, graph[:, k].copy())[implied]
    return values


def _support(graph: Bools, functions: Functions) -> Floats:
    """P-values that k is independent of its cause j given its other causes.  (P, P)"""
    values = np.full(graph.shape, np.nan)
    for j, k in np.argwhere(graph):
        others = graph[:, k].copy()
        others[j] = False
        values[j, k] = functions.independences(int(k), others)[j]
    return values
