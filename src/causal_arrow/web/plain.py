"""The difference that a table shows without adjustment: what a person sees first, and what an effect is judged by."""

from __future__ import annotations

import numpy as np

from causal_arrow.tables.table import Column, Table
from causal_arrow.text import in_digits
from causal_arrow.web.messages import PlainDifference
from causal_arrow.web.sessions import EffectAsked

MIN_ROWS = 3


def plain_difference(table: Table, asked: EffectAsked) -> PlainDifference | None:
    """The difference in means, or the slope of a straight line; None for an outcome that has neither."""
    cause, effect = (table.columns[table.names.index(name)] for name in (asked.cause, asked.effect))
    if effect.kind == "category":
        return None
    values = table.values[:, [table.names.index(asked.cause), table.names.index(asked.effect)]]
    x, y = values[~np.isnan(values).any(axis=1)].T
    if cause.levels:
        first, second = asked.between or (cause.levels[0], cause.levels[min(1, len(cause.levels) - 1)])
        groups = [y[x == cause.levels.index(level)] for level in (first, second) if level in cause.levels]
        if len(groups) < 2 or min(map(len, groups)) < 1:
            return None
        difference = float(groups[1].mean() - groups[0].mean())
        means = [in_digits(float(group.mean())) for group in groups]
        words = f"{_of(effect, 'Mean')}: {means[0]} with {cause.name} = {first}, {means[1]} with {second}."
        return PlainDifference(value=difference, words=f"{words} {_CAUTION}")
    if len(x) < MIN_ROWS or x.std() == 0:
        return None
    change = _distance(asked)
    if change is None:
        return None
    slope = float(np.cov(x, y)[0, 1] / x.var(ddof=1)) * change
    over = "by one" if asked.between is None else f"from {asked.between[0]} to {asked.between[1]}"
    words = f"Along a straight line, {_of(effect)} changes by {in_digits(slope)} when {cause.name} goes up {over}."
    if asked.between is not None:
        words = words.replace(" goes up from", " goes from")
    return PlainDifference(value=slope, words=f"{words} {_CAUTION}")


_CAUTION = "That is the plain difference, without adjustment."


def _of(effect: Column, statistic: str = "") -> str:
    """What is compared: a number, the share of the second of two levels, or the place among several in order."""
    if len(effect.levels) == 2:
        return f"{'Share' if statistic else 'the share'} of {effect.name} = {effect.levels[1]}"
    name = f"{effect.name} (levels counted from 0)" if effect.levels else effect.name
    return f"{statistic} of {name}" if statistic else name


def _distance(asked: EffectAsked) -> float | None:
    if asked.between is None:
        return 1.0
    try:
        return float(asked.between[1]) - float(asked.between[0])
    except ValueError:
        return None
