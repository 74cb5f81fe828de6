"""Questions about two variables: the edge between them, the data behind it, whether one causes the other, and by how
much."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import Answer, direction_strength, why_uncaused
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.effects.effect import Effect
from causal_arrow.discovery.summary import Decision, decided_by
from causal_arrow.discovery.uncertainty import EdgeStability, ancestor_frequencies, hidden_causes_on_the_way
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables.table import Table
from causal_arrow.text import counted_share, in_digits
from causal_arrow.web.messages import (
    AdjustmentSet,
    Axis,
    CausalPath,
    CausalQuestion,
    EdgeDetails,
    EffectFacts,
    EffectLayer,
    EffectPlot,
    LevelSummary,
    PairStability,
    Plot,
    RankedEffect,
    RankedEffects,
)
from causal_arrow.web.sessions import EffectAsked

MAX_POINTS = 500
MAX_LISTED = 5
CURVE_POINTS = 160
SEED = 0

Bools = NDArray[np.bool_]


def probability_words(probability: float) -> str:
    """A probability as people say it."""
    probability = round(probability, 2)  # as it is shown beside the words
    for least, words in ((0.99, "Almost certainly"), (0.9, "Very probably"), (0.7, "Probably"), (0.5, "Perhaps")):
        if probability >= least:
            return words
    return "Probably not" if probability >= 0.1 else "Almost certainly not"


def _two(answer: Answer, first: str, second: str) -> tuple[int, int]:
    indices = answer.index_of(first), answer.index_of(second)
    if indices[0] == indices[1]:
        raise ConfigurationError(f"Choose two different variables: {first!r} was chosen twice.")
    return indices


def _in_range(probability: float) -> float:
    """Rounding may leave a probability a hair outside its range."""
    return min(max(float(probability), 0.0), 1.0)


# The edge


def edge_details(
    answer: Answer, table: Table | None, source: str, target: str, stability: EdgeStability | None = None
) -> EdgeDetails:
    """How probable the edge is in both directions, in words, how stable, and the data of the two variables if there
    are any."""
    j, k = _two(answer, source, target)
    forward, backward = (_in_range(answer.edge_probabilities[pair]) for pair in ((j, k), (k, j)))
    adjacent = min(forward + backward, 1.0)
    return EdgeDetails(
        source=source,
        target=target,
        words=_edge_words(answer, source, target),
        sentences=_evidence(answer, table, j, k),
        probability=forward,
        reversed_probability=backward,
        no_edge_probability=1 - adjacent,
        in_graph=bool(answer.adjacency[j, k]),
        hidden_cause_probability=None
        if answer.confounding_probabilities is None
        else _in_range(answer.confounding_probabilities[j, k]),
        stability=None if stability is None else _pair_stability(stability, j, k),
        plot=None if table is None else plot_of(table, source, target, answer.log_columns),
    )


def _edge_words(answer: Answer, source: str, target: str) -> str:
    """Whether the two are adjacent and which way the edge points; what knowledge decides is not called a preference."""
    adjacent, (cause, effect), share = _judgement(answer, source, target)
    words = f"Are {source} and {target} adjacent? {probability_words(adjacent)} ({adjacent:.2f})."
    if adjacent == 0:
        return words
    arrow, decided = f"{cause} → {effect}", decided_by(answer, cause, effect)
    if decided is None:
        return f"{words} If so, the network's preference for {arrow} is {direction_strength(share)} ({share:.2f})."
    if decided in ("by environment", "by experiment"):
        return f"{words} If so, it can only be {arrow}."
    adjacent, likely, share = _judgement(answer.refine(knowledge=Knowledge()), source, target)
    alone = f"the network alone prefers {' → '.join(likely)} ({share:.2f})."
    if decided == "required":
        without = f"Without that, are the two adjacent? {probability_words(adjacent)} ({adjacent:.2f})."
        return f"You require {arrow}. {without} If so, {alone}"
    return f"{words} If so, it can only be {arrow}; {alone}"


def _judgement(answer: Answer, source: str, target: str) -> tuple[float, tuple[str, str], float]:
    """How probably the two are adjacent, the likelier direction, and its share of that probability."""
    j, k = answer.index_of(source), answer.index_of(target)
    forward, backward = (_in_range(answer.edge_probabilities[pair]) for pair in ((j, k), (k, j)))
    likely = (source, target) if forward >= backward else (target, source)
    return min(forward + backward, 1.0), likely, max(forward, backward) / ((forward + backward) or 1.0)


def _pair_stability(stability: EdgeStability, j: int, k: int) -> PairStability:
    source, target = stability.names[j], stability.names[k]
    forward, backward = float(stability.frequencies[j, k]), float(stability.frequencies[k, j])
    counts = [round(share * stability.resamples) for share in (forward, backward, 1 - forward - backward)]
    return PairStability(
        resamples=stability.resamples,
        frequency=min(forward, 1.0),
        reversed_frequency=min(backward, 1.0),
        words=f"Of {stability.resamples} tables with the observations drawn again, {counts[0]} show "
        f"{source} → {target}, {counts[1]} show {target} → {source}, {counts[2]} show no edge.",
    )


RESTS_ON: dict[Decision | None, str] = {
    None: "the shape of the data",
    "required": "what you know",
    "by knowledge": "what you know",
    "by environment": "what an environment is",
    "by experiment": "the experiment",
}


def _evidence(answer: Answer, table: Table | None, j: int, k: int) -> list[str]:
    """What knowledge, the equivalence class and the data say about the edge."""
    source, target = answer.names[j], answer.names[k]
    sentences = []
    for first, second in ((j, k), (k, j)):
        # That a required edge is not reversed goes without saying.
        if answer.constraints.forbidden[first, second] and not answer.constraints.required[second, first]:
            name = answer.names[second]
            reason = why_uncaused(answer, name)
            ruled_out = f"Your knowledge rules out {answer.names[first]} → {name}."
            sentences.append(f"Nothing in the table causes {name}: it {reason}." if reason else ruled_out)
    if answer.adjacency[j, k]:
        basis = RESTS_ON[decided_by(answer, source, target)]
        sentences.append(
            "Every graph with the same independences has this direction."
            if not answer.cpdag[k, j]
            else f"Independences alone cannot tell this direction: it rests on {basis}."
        )
    if table is not None and (correlation := _rank_correlation(table, source, target)) is not None:
        sentences.append(f"Rank correlation of the two: {correlation:.2f}.".replace("-", "−"))
    if tuple(sorted((source, target))) in answer.knowledge.no_hidden_cause:
        sentences.append("You say that they share no hidden cause.")
    elif {source, target} & set(answer.always_set):
        sentences.append("They share no hidden cause: an experiment alone decided on one of them.")
    return sentences


def _rank_correlation(table: Table, source: str, target: str) -> float | None:
    """That of two variables with an order, over the rows that have both; None where there is none."""
    indices = [table.names.index(name) for name in (source, target)]
    if any(table.columns[index].kind == "category" for index in indices):
        return None
    both = table.observed[:, indices].all(axis=1)
    pair = [_ranks(table.values[both, index]) for index in indices]
    if both.sum() <= 2 or any(ranks.std() == 0 for ranks in pair):
        return None
    return float(np.corrcoef(pair[0], pair[1])[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=np.float64)


def plot_of(table: Table, x: str, y: str, log_columns: Sequence[str] = ()) -> Plot:
    """The observations of two variables, or counts of their levels."""
    across, up = (table.columns[table.names.index(name)] for name in (x, y))
    values = table.values[:, [table.names.index(x), table.names.index(y)]]
    values = values[~np.isnan(values).any(axis=1)]
    counts = None
    if across.levels and up.levels:
        grid = np.zeros((len(up.levels), len(across.levels)), dtype=int)
        np.add.at(grid, (values[:, 1].astype(int), values[:, 0].astype(int)), 1)
        counts = grid.tolist()
    summaries = []
    if bool(across.levels) != bool(up.levels):
        levels, number = (0, 1) if across.levels else (1, 0)
        summaries = _level_summaries((across, up)[levels].levels, values[:, levels], values[:, number])
    chosen = values if counts is None else values[:0]
    if len(chosen) > MAX_POINTS:
        random = np.random.default_rng(SEED)
        chosen = chosen[np.sort(random.choice(len(chosen), MAX_POINTS, replace=False))]
    return Plot(
        x=Axis(name=x, levels=list(across.levels), log=x in log_columns),
        y=Axis(name=y, levels=list(up.levels), log=y in log_columns),
        points=chosen.tolist(),
        counts=counts,
        summaries=summaries,
        shown=len(chosen),
        observations=len(values),
    )


def _level_summaries(
    levels: tuple[str, ...], codes: NDArray[np.float64], numbers: NDArray[np.float64]
) -> list[LevelSummary]:
    summaries = []
    for code, level in enumerate(levels):
        among = numbers[codes == code]
        summaries.append(
            LevelSummary(
                level=level,
                count=len(among),
                mean=float(among.mean()) if len(among) else None,
                deviation=float(among.std(ddof=1)) if len(among) > 1 else None,
            )
        )
    return summaries


# Cause and effect


def causal_question(found: Discovery, cause: str, effect: str) -> CausalQuestion:
    """The share of graphs drawn from the distribution in which one variable causes the other, and how."""
    answer = found.answer
    j, k = _two(answer, cause, effect)
    graphs = found.sample()
    causes = ancestor_frequencies(graphs)
    ways = Counter(way for graph in graphs if (way := shortest_path(graph, j, k)) is not None)
    share = float(causes[j, k])
    return CausalQuestion(
        cause=cause,
        effect=effect,
        words=f"Does {cause} cause {effect}, directly or through others? {probability_words(share)} "
        f"(in {counted_share(share, 'graphs')}).",
        probability=share,
        reversed_probability=float(causes[k, j]),
        graphs=len(graphs),
        paths=[
            CausalPath(variables=[answer.names[index] for index in way], share=count / len(graphs))
            for way, count in ways.most_common(MAX_LISTED)
        ],
        hidden_causes=hidden_causes_on_the_way(answer, graphs, j, k),
    )


def effect_facts(found: Discovery, asked: EffectAsked) -> EffectFacts:
    """The effect of one variable on another with its interval, by adjustment set, and its distribution."""
    _two(found.answer, asked.cause, asked.effect)
    effect = found.effect(
        asked.cause, asked.effect, between=asked.between, estimator=asked.estimator, randomized=asked.randomized
    )
    rows = [
        AdjustmentSet(variables=list(row[0]), share=row[1], effect=row[2], low=row[4], high=row[5])
        for row in effect.by_adjustment_set.itertuples(index=False, name=None)
    ]
    return EffectFacts(
        cause=asked.cause,
        effect=asked.effect,
        words=effect.sentence,
        verdict=effect.verdict,
        unit=effect.unit if effect.level is None else f"in {effect.subject}",
        change=effect.change,
        sentences=list(effect.lines[1:]),
        cautions=_cautions(effect),
        median=effect.median,
        low=effect.interval[0],
        high=effect.interval[1],
        p_value=None if math.isnan(effect.p_value) else _in_range(effect.p_value),
        tested_set=list(effect.tested_set),
        probability_of_path=_in_range(effect.probability_of_path),
        probability_of_none=_in_range(effect.probability_of_none),
        probability_not_identified=_in_range(effect.probability_not_identified),
        probability_not_estimated=_in_range(effect.probability_not_estimated),
        why_not_estimated=effect.why_not_estimated,
        graphs=effect.graphs,
        sets=rows[:MAX_LISTED],
        more_sets=len(rows) - len(rows[:MAX_LISTED]),
        plot=_effect_plot(effect),
    )


def _cautions(effect: Effect) -> list[str]:
    humps = effect.distribution.humps() if effect.design == "observed" else ()
    disagree = f"The adjustment sets disagree: estimates gather near {' and '.join(map(in_digits, humps))}."
    return [*([disagree] if len(humps) > 1 else []), *effect.notes]


def ranked_effects(found: Discovery, outcome: str) -> RankedEffects:
    """The effects of all other variables on one, the largest first."""
    found.answer.index_of(outcome)
    effects = found.effects(outcome)
    return RankedEffects(
        effect=outcome,
        causes=[
            RankedEffect(
                cause=each.treatment,
                probability=_in_range(each.probability_of_path),
                identified=each.verdict != "not identified",
                effect=each.median,
                low=each.interval[0],
                high=each.interval[1],
                standardized=each.standardized,
            )
            for each in effects.effects
        ],
        others=[f"No estimate for {name!r}: {reason}." for name, reason in effects.why_not_estimated.items()],
    )


def _effect_plot(effect: Effect) -> EffectPlot:
    mixture = effect.distribution
    points = mixture.points(CURVE_POINTS)
    densities = np.nan_to_num(mixture.densities(points), posinf=0.0)  # (S, X); infinite where nothing is uncertain
    layers = [
        EffectLayer(label=", ".join(each.adjustment_set) or "nothing", densities=shares.tolist())
        for each, shares in zip(effect.sets[:MAX_LISTED], densities, strict=False)
    ]
    if len(densities) > MAX_LISTED:
        rest = densities[MAX_LISTED:].sum(axis=0)
        layers.append(EffectLayer(label=f"{len(densities) - MAX_LISTED} more", densities=rest.tolist()))
    return EffectPlot(points=points.tolist(), layers=layers)


def shortest_path(graph: Bools, start: int, goal: int) -> tuple[int, ...] | None:
    """A directed path with as few edges as possible, both ends included; None where there is none."""
    came_from = {start: start}
    line = deque([start])
    while line:
        here = line.popleft()
        if here == goal:
            path = [goal]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return tuple(reversed(path))
        for there in np.flatnonzero(graph[here]).tolist():
            if there not in came_from:
                came_from[there] = here
                line.append(there)
    return None
