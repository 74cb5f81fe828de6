"""Effects by random forests, cross-fitted: no forest predicts an observation that it has learned from.

For a treatment that is yes or no, the augmented inverse probability weighting of Robins, Rotnitzky and Zhao (1994): the
mean difference if all were treated, right if either forest is. For a number, the partially linear model of Robinson
(1988) as in Chernozhukov et al. (2018): the slope of what is left of the outcome on what is left of the treatment.
"""

# N observations

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.linear import MIN_LEFT, SetEstimate

Floats = NDArray[np.float64]

FOLDS = 5
TREES = 100
MIN_LEAF = 5
"""Observations in each leaf of a tree."""
OVERLAP = 0.02
"""Probabilities of being treated are kept this far from 0 and 1, where weights would explode."""


def forest_estimate(
    treated: Floats, outcome: Floats, others: Floats, binary: bool, random: np.random.Generator
) -> SetEstimate | None:
    """The effect of a treatment (N,) on an outcome (N,) given the adjustment set `others` (N, k); None without overlap.

    Per unit of a number; for a `binary` treatment, of 0 and 1, the difference of the means.
    """
    scores = _weighted(treated, outcome, others, random) if binary else _partial(treated, outcome, others, random)
    if scores is None:
        return None
    effect, influence = scores
    error = float(np.sqrt(np.square(influence).mean() / (len(influence) - 1)))
    return SetEstimate(effect, error, float(len(influence) - 1), float("nan"))


def _weighted(
    treated: Floats, outcome: Floats, others: Floats, random: np.random.Generator
) -> tuple[float, Floats] | None:
    """The mean difference and its influence function."""
    groups = treated == 1
    if min(groups.sum(), (~groups).sum()) < 2 * FOLDS:
        return None
    folds = _folds(len(treated), random, groups)
    seed = int(random.integers(2**31))
    chance = _predictions(treated, others, folds, seed)
    chance = np.clip(chance, OVERLAP, 1 - OVERLAP)
    if_treated, if_not = (_predictions(outcome, others, folds, seed, among) for among in (groups, ~groups))
    scores = (
        if_treated - if_not + groups * (outcome - if_treated) / chance - ~groups * (outcome - if_not) / (1 - chance)
    )
    return float(scores.mean()), scores - scores.mean()


def _partial(
    treated: Floats, outcome: Floats, others: Floats, random: np.random.Generator
) -> tuple[float, Floats] | None:
    """The slope and its influence function."""
    folds = _folds(len(treated), random)
    seed = int(random.integers(2**31))
    t = treated - _predictions(treated, others, folds, seed)
    y = outcome - _predictions(outcome, others, folds, seed)
    spread = np.square(t).mean()
    if not spread > MIN_LEFT * treated.var():
        return None
    slope = float((t * y).mean() / spread)
    return slope, t * (y - slope * t) / spread


def _predictions(
    target: Floats, others: Floats, folds: NDArray[np.intp], seed: int, among: NDArray[np.bool_] | None = None
) -> Floats:
    """Each observation's target by a forest of the other folds, which learns from `among` alone.  (N,)"""
    among = np.ones(len(target), dtype=bool) if among is None else among
    predicted = np.empty(len(target))
    for fold in range(FOLDS):
        learning, asked = (folds != fold) & among, folds == fold
        if others.shape[1]:
            predicted[asked] = _forest(seed + fold).fit(others[learning], target[learning]).predict(others[asked])
        else:
            predicted[asked] = target[learning].mean()
    return predicted


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(TREES, min_samples_leaf=MIN_LEAF, max_features=0.5, random_state=seed)


def _folds(count: int, random: np.random.Generator, groups: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
    """The fold of each observation, as even as can be, within both groups where there are some.  (N,)"""
    folds = np.empty(count, dtype=np.intp)
    everything = np.ones(count, dtype=bool)
    for members in [everything] if groups is None else [groups, ~groups]:
        folds[members] = random.permutation(np.arange(members.sum()) % FOLDS)
    return folds
