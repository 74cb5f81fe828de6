"""Questions about a graph: an edge and its data, whether and how much one variable causes another, the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order
from scipy.stats import spearmanr

from causal_arrow.discovery.answer import Answer, direction_strength, why_uncaused
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.effects.effect import Effect
from causal_arrow.discovery.effects.falsification import LEVEL, Falsification, why_not_tested
from causal_arrow.discovery.summary import Decision, decided_by
from causal_arrow.discovery.uncertainty import EdgeStability, ancestor_frequencies, hidden_causes_on_the_way
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.tables.scales import has_logarithms
from causal_arrow.tables.table import Table
from causal_arrow.text import counted, counted_share, in_digits
from causal_arrow.web._sessions import EffectAsked
from causal_arrow.web.messages import Facts

MAX_POINTS = 500
MAX_LISTED = 5
CURVE_POINTS = 160
SEED = 0


def probability_words(probability: float) -> str:
    """A probability as people say it."""
    probability = round(probability, 2)  # as it is shown next to the words
    for least, words in ((0.99, "Almost certainly"), (0.9, "Very probably"), (0.7, "Probably"), (0.5, "Perhaps")):
        if probability >= least:
            return words
    return "Probably not" if probability >= 0.1 else "Almost certainly not"


def _two(answer: Answer, first: str, second: str) -> tuple[int, int]:
    indices = answer.index_of(first), answer.index_of(second)
    if indices[0] == indices[1]:
        raise ConfigurationError(f"Choose two different variables: {first!r} was chosen twice.")
    return indices


# The edge


def edge_details(
    answer: Answer, table: Table | None, source: str, target: str, stability: EdgeStability | None = None
) -> Facts:
    """The probability of the edge in both directions, in words, its stability, and the data of the two variables if
    there are any."""
    j, k = _two(answer, source, target)
    forward, backward = (min(float(answer.edge_probabilities[pair]), 1.0) for pair in ((j, k), (k, j)))
    hidden = answer.confounding_probabilities
    return {
        "source": source,
        "target": target,
        "words": _edge_words(answer, source, target),
        "sentences": _evidence(answer, table, j, k),
        "probability": forward,
        "reversed_probability": backward,
        "no_edge_probability": 1 - min(forward + backward, 1.0),
        "in_graph": bool(answer.adjacency[j, k]),
        "hidden_cause_probability": None if hidden is None else float(hidden[j, k]),
        "stability": None if stability is None else _pair_stability(stability, j, k),
        "plot": None if table is None else plot_of(table, source, target, answer.log_columns),
    }


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
    """The probability that the two are adjacent, the likelier direction, and its share of that probability."""
    j, k = answer.index_of(source), answer.index_of(target)
    forward, backward = (float(answer.edge_probabilities[pair]) for pair in ((j, k), (k, j)))
    likely = (source, target) if forward >= backward else (target, source)
    return min(forward + backward, 1.0), likely, max(forward, backward) / ((forward + backward) or 1.0)


def _pair_stability(stability: EdgeStability, j: int, k: int) -> Facts:
    source, target = stability.names[j], stability.names[k]
    forward, backward = float(stability.frequencies[j, k]), float(stability.frequencies[k, j])
    counts = [round(share * stability.resamples) for share in (forward, backward, 1 - forward - backward)]
    return {
        "resamples": stability.resamples,
        "frequency": forward,
        "reversed_frequency": backward,
        "words": f"Of {stability.resamples} bootstrap resamples, {counts[0]} show {source} → {target}, "
        f"{counts[1]} show {target} → {source}, {counts[2]} show no edge.",
    }


RESTS_ON: dict[Decision | None, str] = {
    None: "the shape of the data",
    "required": "what you know",
    "by knowledge": "what you know",
    "by environment": "what an environment is",
    "by experiment": "the experiment",
}


def _evidence(answer: Answer, table: Table | None, j: int, k: int) -> list[str]:
    """Sentences on the edge from knowledge, the equivalence class and the data."""
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
            else f"Independences alone cannot decide this direction: it rests on {basis}."
        )
    if table is not None and (correlation := _rank_correlation(table, source, target)) is not None:
        sentences.append(f"Rank correlation of the two: {correlation:.2f}.".replace("-", "−"))
    if tuple(sorted((source, target))) in answer.knowledge.no_hidden_cause:
        sentences.append("You say that they share no hidden cause.")
    elif {source, target} & set(answer.always_set):
        sentences.append("They share no hidden cause: an experiment alone decided on one of them.")
    return sentences


def _rank_correlation(table: Table, source: str, target: str) -> float | None:
    """Rank correlation of two ordered variables over rows that have both; None where there is none."""
    indices = [table.names.index(name) for name in (source, target)]
    if any(table.columns[index].kind == "category" for index in indices):
        return None
    pair = table.values[:, indices][table.observed[:, indices].all(axis=1)]
    if len(pair) <= 2 or (pair == pair[0]).all(axis=0).any():
        return None
    return float(spearmanr(pair).statistic)


def plot_of(table: Table, x: str, y: str, log_columns: Sequence[str] = ()) -> Facts:
    """The observations of two variables (some of them if there are many), or counts of their levels.

    The values of one with levels are codes 0, 1, 2, ...; the rows of counts are levels of y.
    """
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
    on_log = [
        name in log_columns and not column.levels and len(chosen) > 0 and has_logarithms(numbers)
        for name, column, numbers in zip((x, y), (across, up), chosen.T, strict=True)
    ]
    x_axis, y_axis = (
        {"name": column.name, "levels": list(column.levels), "log": log}
        for column, log in zip((across, up), on_log, strict=True)
    )
    return {
        "x": x_axis,
        "y": y_axis,
        "points": chosen.tolist(),
        "counts": counts,
        "summaries": summaries,
        "shown": len(chosen),
        "observations": len(values),
    }


def _level_summaries(levels: tuple[str, ...], codes: NDArray[np.float64], numbers: NDArray[np.float64]) -> list[Facts]:
    """The number of observations with each level of one variable, and mean and deviation of the other among them."""
    groups = [numbers[codes == code] for code in range(len(levels))]
    return [
        {
            "level": level,
            "count": len(among),
            "mean": float(among.mean()) if len(among) else None,
            "deviation": float(among.std(ddof=1)) if len(among) > 1 else None,
        }
        for level, among in zip(levels, groups, strict=True)
    ]


# Cause and effect


def causal_question(found: Discovery, cause: str, effect: str) -> Facts:
    """The share of graphs drawn from the distribution in which one variable causes the other, and how."""
    answer = found.answer
    j, k = _two(answer, cause, effect)
    graphs = found.sample()
    causes = ancestor_frequencies(graphs)
    ways = Counter(way for graph in graphs if (way := shortest_path(graph, j, k)) is not None)
    share = float(causes[j, k])
    return {
        "cause": cause,
        "effect": effect,
        "words": f"Does {cause} cause {effect}, directly or through others? {probability_words(share)} "
        f"(in {counted_share(share, 'graphs')}).",
        "probability": share,
        "reversed_probability": float(causes[k, j]),
        "graphs": len(graphs),
        "paths": [
            {"variables": [answer.names[index] for index in way], "share": count / len(graphs)}
            for way, count in ways.most_common(MAX_LISTED)
        ],
        "hidden_causes": hidden_causes_on_the_way(answer, graphs, j, k),
    }


def shortest_path(graph: NDArray[np.bool_], start: int, goal: int) -> tuple[int, ...] | None:
    """A directed path with as few edges as possible, both ends included; None where there is none."""
    _, came_from = breadth_first_order(graph, start)
    path = [goal]
    while path[0] != start:
        if (before := int(came_from[path[0]])) < 0:
            return None
        path.insert(0, before)
    return tuple(path)


def effect_of(found: Discovery, asked: EffectAsked) -> Effect:
    """The effect that is asked for."""
    _two(found.answer, asked.cause, asked.effect)
    return found.effect(asked.cause, asked.effect, **asked.options)


def effect_facts(found: Discovery, asked: EffectAsked) -> Facts:
    """`Effect.to_dict`, the unit, cautions, the curve of its distribution, and the difference without adjustment."""
    effect = effect_of(found, asked)
    humps = effect.distribution.humps() if effect.design == "observed" else ()
    disagree = f"The adjustment sets disagree: estimates gather near {' and '.join(map(in_digits, humps))}."
    return {
        **effect.to_dict(),
        "unit": effect.unit if effect.level is None else f"in {effect.subject}",
        "cautions": [*([disagree] if len(humps) > 1 else []), *effect.notes],
        "plot": _effect_plot(effect),
        "plain": _plain_difference(found, asked),
    }


def _effect_plot(effect: Effect) -> Facts:
    """Densities at points, stacked by adjustment set; the rarest sets together."""
    mixture = effect.distribution
    points = mixture.points(CURVE_POINTS)
    densities = np.nan_to_num(mixture.densities(points), posinf=0.0)  # (S, X); infinite where nothing is uncertain
    labels = [", ".join(each.adjustment_set) or "nothing" for each in effect.sets]
    if len(densities) > MAX_LISTED:
        labels = [*labels[:MAX_LISTED], f"{len(densities) - MAX_LISTED} more"]
        densities = np.vstack([densities[:MAX_LISTED], densities[MAX_LISTED:].sum(axis=0)])
    layers = [{"label": label, "densities": shares} for label, shares in zip(labels, densities.tolist(), strict=False)]
    return {"points": points.tolist(), "layers": layers}


def _plain_difference(found: Discovery, asked: EffectAsked) -> Facts:
    """The difference without adjustment: of means, or along a straight line."""
    between, level = asked.between, asked.level
    plain = found.effect(asked.cause, asked.effect, between=between, level=level, estimator="linear", adjust_for=[])
    words = f"{plain.subject} changes by {in_digits(plain.median)} {plain.change}"
    return {"value": plain.median, "words": f"{words}: that is the plain difference, without adjustment."}


MAX_INDEPENDENCES = 500  # number of independences to list, those that the data contradict most first
MAX_EXPERIMENTS = 20


def evidence(found: Discovery) -> Facts:
    """The independences that the graph implies, each with its test, and the edges that could be reversed."""
    test = found.compatibility(thorough=True)
    reversible = [[edge.source, edge.target] for edge in found.answer.edges if not edge.compelled]
    return {
        "words": str(test) if test else why_not_tested(found.table),
        "tests": test.tests if test else 0,
        "independences": _independences(test) if test else [],
        "reversible": reversible,
        "equivalence": _equivalence(len(found.answer.edges), len(reversible)),
    }


def _independences(test: Falsification) -> list[Facts]:
    """Each independence of a variable of another one, given its direct causes; the clearest contradictions first."""
    pairs = np.argwhere(~np.isnan(test.independence)).tolist()
    tested = sorted((float(test.independence[j, k]), j, k) for j, k in pairs)
    return [
        {
            "variable": test.names[k],
            "other": test.names[j],
            "given": [test.names[index] for index in np.flatnonzero(test.graph[:, k]).tolist()],
            "p_value": value,
            "contradicted": value < LEVEL,
        }
        for value, j, k in tested[:MAX_INDEPENDENCES]
    ]


def _equivalence(edges: int, reversible: int) -> str:
    """The directions that independences cannot decide, in a sentence."""
    if not edges:
        return "The graph has no edge."
    if not reversible:
        return "Every graph with the same independences has all these directions."
    return (
        f"{counted(reversible, 'edge')} of {edges} can point the other way in graphs with the same independences: "
        "no test of independence can decide these directions. They rest on the shape of the data or on what you know."
    )


def probabilities(answer: Answer) -> Facts:
    """The probability of every edge, along the causal order: rows are causes, columns effects."""
    order = [answer.index_of(name) for name in answer.order]
    rows = np.clip(answer.edge_probabilities[np.ix_(order, order)], 0.0, 1.0)
    return {"names": list(answer.order), "rows": np.round(rows, 4).tolist()}


def experiments(found: Discovery, cause: str | None, effect: str | None) -> Facts:
    """Rank what to randomize or to measure next, to learn about one effect, the causes of a variable, or the graph."""
    if cause is not None and effect is None:
        raise ConfigurationError("Expected an effect together with the cause.")
    plan = found.next_experiment(effect if cause is None or effect is None else (cause, effect))
    words = [f"{each}: {plan.amount(each.gain)}" for each in plan.experiments]
    return {**plan.to_dict(), "words": words[:MAX_EXPERIMENTS]}
