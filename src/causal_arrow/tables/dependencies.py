"""Groups of variables that determine each other almost exactly: near-copies, totals and their parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# P variables

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DETERMINED = 100.0
"""Variance inflation, 1 / (1 − R²), from which on a variable counts as determined by others."""
RIDGE = 1e-10
MOST_ELIMINATED = 40  # members of a group that are tried one by one


def determined_groups(correlation: Floats, observations: int, most: int) -> tuple[list[list[int]], list[int]]:
    """Groups in each of which every variable is almost exactly a linear combination of the others; and what is left.

    Pairs first: variables that all determine each other two by two form one group. Then, with one variable of each
    such group, combinations of three or more, no member of which can be spared. Leaving out one variable of a
    combination ends it, so the search goes on without its most determined member, until no variable is determined, or
    `most` groups are found: then the variables that still determine each other are the second part of the answer.
    """
    pairs = near_copies(correlation)
    groups, spare = pairs[:most], {place for group in pairs for place in group[1:]}
    rest = [place for place in range(len(correlation)) if place not in spare]
    core = _mutually_determined(correlation, rest, observations)
    while core and len(groups) < most:
        group, strongest = _smallest_group(correlation, core, observations)
        groups.append(group)
        core = _mutually_determined(correlation, [place for place in core if place != strongest], observations)
    return groups, [*(place for group in pairs[most:] for place in group), *core]


def near_copies(correlation: Floats) -> list[list[int]]:
    """Groups of two or more variables any two of which determine each other."""
    close = correlation**2 > 1 - 1 / DETERMINED
    groups: list[list[int]] = []
    for place in np.flatnonzero((close & ~np.eye(len(close), dtype=bool)).any(axis=1)).tolist():
        home = next((group for group in groups if close[place, group].all()), None)
        if home is None:
            groups.append([place])
        else:
            home.append(place)
    return [group for group in groups if len(group) > 1]


def related_groups(related: Bools) -> list[list[int]]:
    """The groups of two or more variables that a symmetric relation connects."""
    related = related | related.T
    unseen = np.ones(len(related), dtype=bool)
    groups = []
    for first in np.flatnonzero((related & ~np.eye(len(related), dtype=bool)).any(axis=1)).tolist():
        if not unseen[first]:
            continue
        group = np.arange(len(related)) == first
        while (grown := group | related[group].any(axis=0)).sum() > group.sum():
            group = grown
        unseen &= ~group
        groups.append(np.flatnonzero(group).tolist())
    return groups


def _mutually_determined(correlation: Floats, among: Sequence[int], observations: int) -> list[int]:
    """The largest set of variables in which each is determined by the others.

    A variable is never determined by fewer others if it is not by more: those that are not can go at once.
    """
    members = list(among)
    while len(members) > 1:
        if observations < len(members) + 2:
            return []
        determined = _inflation(_precision(correlation, members), observations) > DETERMINED
        if determined.all():
            return members
        members = [place for place, stays in zip(members, determined.tolist(), strict=True) if stays]
    return []


def _smallest_group(correlation: Floats, core: Sequence[int], observations: int) -> tuple[list[int], int]:
    """The most determined variable of a core, and the group around it that no member can be spared from."""
    precision = _precision(correlation, core)
    strongest = int(_inflation(precision, observations).argmax())
    partial = np.abs(precision[strongest]) / np.sqrt(precision.diagonal() * precision[strongest, strongest])
    partners = [core[place] for place in np.argsort(-partial, kind="stable").tolist() if place != strongest]
    first, group = core[strongest], list(core)
    size = 1
    while size < len(partners):
        smaller = _mutually_determined(correlation, [first, *partners[:size]], observations)
        if first in smaller:
            group = smaller
            break
        size *= 2
    if len(group) <= MOST_ELIMINATED:
        for place in reversed(partners):
            if place in group:
                smaller = _mutually_determined(correlation, [each for each in group if each != place], observations)
                group = smaller if first in smaller else group
    return sorted(group), first


def _precision(correlation: Floats, members: Sequence[int]) -> Floats:
    return np.asarray(np.linalg.inv(correlation[np.ix_(members, members)] + RIDGE * np.eye(len(members))))


def _inflation(precision: Floats, observations: int) -> Floats:
    """Variance inflation of each variable by the others, less what chance adds: of as many observations as variables,
    anything is determined."""
    chance = (observations - len(precision)) / (observations - 1)
    return np.asarray(precision.diagonal() * chance)
