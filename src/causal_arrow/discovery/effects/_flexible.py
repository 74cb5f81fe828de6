"""Effects without assuming straight lines, cross-fitted: no model predicts an observation that it has learned from.

Models are ridge regressions on curves of every column of the adjustment set and on products of these columns. For a
treatment of 0 and 1, augmented inverse probability weighting (Robins, Rotnitzky and Zhao 1994), which is right if
either the model of the outcome or that of the treatment is; for a number, the partially linear model of Robinson (1988)
as in Chernozhukov et al. (2018).
"""

# N observations, Q columns of the basis

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.effects.linear import MIN_LEFT, Clusters, Moments, SetEstimate, estimate_from

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FOLDS = 5
MIN_ROWS = 100  # observations below which straight lines are used
MIN_ARM = 25  # treated and untreated observations below which straight lines are used
MAX_COLUMNS = 120
ROWS_PER_COLUMN = 8
KNOTS = (0.1, 0.4, 0.6, 0.9)  # quantiles at which curves bend
MIN_SHARED = 0.2  # share of the observations with the same value from which a curve may jump there
PENALTIES = 10.0 ** np.arange(-4.0, 1.6, 0.5)
"""Ridge penalties to choose from, in units of the variance of a standardized column."""
MAX_NEWTON_STEPS = 30
CLIP = 0.01  # probabilities of being treated are kept this far from 0 and 1
EXTREME = 0.05  # probabilities of being treated this near to 0 or 1 show poor overlap
MIN_OVERLAP = 0.9  # share of those an average is about that must have a probability of treatment that is not extreme
MIN_EFFECTIVE = 0.1
"""Effective number of observations after weighting, as a share of their number, below which few carry the estimate."""

ESTIMANDS = {
    "ATE": "the average effect over all observations",
    "ATT": "the average effect over the treated observations",
    "overlap": "the average effect where treated and untreated observations overlap (weighted by variance)",
    "slope": "the average slope, weighted by the variance of the treatment that the adjustment leaves",
}


@dataclass(frozen=True, eq=False)
class Flexible:
    """A question given one adjustment set, with what does not depend on the estimand."""

    treated: Floats  # (N,)
    outcome: Floats  # (N,)
    basis: Floats  # (N, Q)
    folds: NDArray[np.intp]  # (N,)
    clusters: Clusters
    chance: Floats | None  # (N,), of being treated; None for a number

    @property
    def extreme(self) -> float:
        """Share of the observations whose probability of treatment is near 0 or 1."""
        return 0.0 if self.chance is None else float((np.abs(self.chance - 0.5) > 0.5 - EXTREME).mean())

    def supports(self, estimand: str) -> bool:
        """Whether nearly all observations of the estimand have enough comparable ones in the other arm."""
        if self.chance is None:
            return False
        chance, treated = np.clip(self.chance, CLIP, 1 - CLIP), self.treated > 0
        if estimand == "ATE":
            arms = (_effective_share(1 / chance[treated]), _effective_share(1 / (1 - chance[~treated])))
            return 1 - self.extreme >= MIN_OVERLAP and min(arms) >= MIN_EFFECTIVE
        odds = chance[~treated] / (1 - chance[~treated])
        effective = _effective_share(odds) * len(odds) / treated.sum()
        return float((self.chance[treated] <= 1 - EXTREME).mean()) >= MIN_OVERLAP and effective >= MIN_EFFECTIVE

    def estimate(self, estimand: str) -> SetEstimate | None:
        """The effect; None if nothing of the treatment is left."""
        treated, outcome, basis, folds = self.treated, self.outcome, self.basis, self.folds
        if self.chance is None or estimand == "overlap":
            left = treated - (_ridge(basis, treated, folds) if self.chance is None else self.chance)
            if not np.square(left).mean() > MIN_LEFT * treated.var():
                return None
            moments = Moments(left * (outcome - _ridge(basis, outcome, folds)), np.square(left))
            return estimate_from(moments, len(treated) - 1, self.clusters)
        chance = np.clip(self.chance, CLIP, 1 - CLIP)
        untreated = outcome - _ridge(basis, outcome, folds, treated == 0)
        if estimand == "ATT":
            moments = Moments((treated - (1 - treated) * chance / (1 - chance)) * untreated, treated)
        else:
            both = outcome - _ridge(basis, outcome, folds, treated == 1)
            scores = untreated - both + treated * both / chance - (1 - treated) * untreated / (1 - chance)
            moments = Moments(scores, np.ones(len(treated)))
        return estimate_from(moments, len(treated) - 1, self.clusters)


def flexible(
    treated: Floats, outcome: Floats, columns: Floats, binary: bool, seed: int, clusters: Clusters = None
) -> Flexible | None:
    """The question of a treatment (N,) given the standardized columns (N, k) of a set; None with too few rows."""
    count = len(treated)
    if count < MIN_ROWS or (binary and min(treated.sum(), (1 - treated).sum()) < MIN_ARM):
        return None
    random = np.random.default_rng(seed)
    basis = basis_of(columns, np.stack([treated, outcome], axis=1))
    # As even as can be; observations of a cluster stay together.
    members = count if clusters is None else int(clusters.max()) + 1
    folds = random.permutation(np.arange(members) % min(FOLDS, members))
    folds = folds if clusters is None else folds[clusters]
    chance = _logistic(basis, treated, folds, random) if binary else None
    return Flexible(treated, outcome, basis, folds, clusters, chance)


def best_estimand(models: Sequence[Flexible]) -> str:
    """The population for which all adjustment sets can estimate the effect."""
    if models[0].chance is None:
        return "slope"
    return next((each for each in ("ATE", "ATT") if all(model.supports(each) for model in models)), "overlap")


def basis_of(columns: Floats, targets: Floats) -> Floats:
    """Standardized columns (N, Q): the columns themselves (N, k), curves of them, and products of two of them, those
    most correlated with the `targets` (N, 2), as many as the observations bear."""
    count = len(columns)
    limit = min(MAX_COLUMNS, count // ROWS_PER_COLUMN)
    curves = [bend for column in columns.T for bend in _bends(column)]
    parts = [columns, np.stack(curves, axis=1) if curves else columns[:, :0]]
    room = limit - sum(part.shape[1] for part in parts)
    first, second = np.triu_indices(columns.shape[1], 1)
    if room > 0 and len(first):
        products = _standardized(columns[:, first] * columns[:, second])
        related = np.abs(products.T @ _standardized(targets)).max(axis=1)
        kept = np.sort(np.argsort(-np.round(related / count, 9), kind="stable")[:room])
        parts.append(products[:, kept])
    basis = _standardized(np.concatenate(parts, axis=1))
    return basis[:, : max(limit, columns.shape[1])]


def _bends(column: Floats) -> list[Floats]:
    """Curves of a standardized column: a natural cubic spline without its straight part, a square if it has few values;
    and an indicator of a value that many observations share, such as no income."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= 2:
        return []
    often = counts.argmax()
    indicators = [(column == values[often]).astype(np.float64)] if counts[often] > MIN_SHARED * len(column) else []
    knots = np.unique(np.quantile(column, KNOTS))
    if len(values) <= len(KNOTS) or len(knots) < 3:
        return [*indicators, np.square(column)]
    *inner, before, last = knots.tolist()

    def cube(knot: float) -> Floats:
        return np.asarray((np.maximum(column - knot, 0) ** 3 - np.maximum(column - last, 0) ** 3) / (last - knot))

    return [*indicators, *(cube(knot) - cube(before) for knot in inner)]


def _standardized(columns: Floats) -> Floats:
    centered = columns - columns.mean(axis=0)
    deviations = centered.std(axis=0)
    return np.asarray(centered / np.where(deviations > 1e-9, deviations, np.inf))


def _effective_share(weights: Floats) -> float:
    """Effective number of observations with these weights (Kish), as a share of their number."""
    return float(weights.sum() ** 2 / np.square(weights).sum() / len(weights))


def _ridge(basis: Floats, target: Floats, folds: NDArray[np.intp], among: Bools | None = None) -> Floats:
    """Each observation's target by a ridge regression on the other folds, or on those `among` them.  (N,)"""
    among = np.ones(len(target), dtype=bool) if among is None else among
    predicted = np.empty((len(PENALTIES), len(target)))
    for fold in range(folds.max() + 1):
        learning = (folds != fold) & among
        rows, values = basis[learning], target[learning]
        center, level = rows.mean(axis=0), values.mean()
        products = rows.T @ rows / len(rows) - np.outer(center, center)
        scales, ways = np.linalg.eigh(products)
        along = ways.T @ (rows.T @ values / len(rows) - center * level)
        weights = ways @ (along / (np.maximum(scales, 0) + PENALTIES[:, None])).T  # (Q, penalties)
        predicted[:, folds == fold] = (level + (basis[folds == fold] - center) @ weights).T
    errors = np.square(predicted[:, among] - target[among]).mean(axis=1)  # over all folds
    return np.asarray(predicted[int(np.argmin(np.round(errors / errors.max(), 9)))])


def _logistic(basis: Floats, treated: Floats, folds: NDArray[np.intp], random: np.random.Generator) -> Floats:
    """Each observation's probability of being treated, by a logistic ridge regression on the other folds.  (N,)"""
    # Enough to choose a penalty, as many of either group as can be: a rare treatment would hardly be among them.
    shuffled = random.permutation(len(treated))
    some = np.sort(np.concatenate([shuffled[treated[shuffled] == arm][:1000] for arm in (0, 1)]))

    def predicted(rows: NDArray[np.intp], penalty: float) -> Floats:
        chances = np.empty(len(rows))
        for fold in range(folds.max() + 1):
            asked = folds[rows] == fold
            weights = _newton(basis[rows[~asked]], treated[rows[~asked]], penalty)
            chances[asked] = _chance(basis[rows[asked]], weights)
        return chances

    def loss(penalty: float) -> float:
        chances = np.clip(predicted(some, penalty), 1e-6, 1 - 1e-6)
        return round(float(-np.log(np.where(treated[some] > 0, chances, 1 - chances)).mean()), 9)

    best = min(PENALTIES[2::2], key=loss)
    return predicted(np.arange(len(treated)), float(best) * len(some) / len(treated))


def _newton(basis: Floats, treated: Floats, penalty: float) -> Floats:
    """Coefficients of a logistic regression with a ridge penalty, the unpenalized intercept last.  (Q + 1,)"""
    rows = np.column_stack([basis, np.ones(len(basis))])
    ridge = np.full(rows.shape[1], penalty)
    ridge[-1] = 1e-9

    def loss(weights: Floats) -> float:
        scores = rows @ weights
        return float(np.mean(np.logaddexp(0, scores) - treated * scores) + 0.5 * ridge @ np.square(weights))

    weights = np.zeros(rows.shape[1])
    share = float(np.clip(treated.mean(), 1e-6, 1 - 1e-6))
    weights[-1] = np.log(share / (1 - share))
    current = loss(weights)
    for _ in range(MAX_NEWTON_STEPS):
        chance = _chance(basis, weights)
        slope = rows.T @ (treated - chance) / len(rows) - ridge * weights
        curvature = (rows * (chance * (1 - chance))[:, None]).T @ rows / len(rows) + np.diag(ridge)
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(ridge)), slope)
        gain, length = float(slope @ step), 1.0
        # A full step can overshoot where probabilities are near 0 or 1.
        while (reached := loss(weights + length * step)) > current - 1e-4 * length * gain and length > 1e-6:
            length /= 2
        weights, current = weights + length * step, reached
        if gain < 1e-10:
            break
    return weights


def _chance(basis: Floats, weights: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(basis @ weights[:-1] + weights[-1]))
