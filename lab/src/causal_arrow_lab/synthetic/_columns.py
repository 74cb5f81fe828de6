"""Kinds of columns: categories and counts, whose effects depend on the level that is observed.

A typed variable is computed as a number first, from its causes and its noise, and then cut: at random quantiles into
levels, or into a count with many zeros. The number is then discarded. Each effect sees a level as a score that the
level has for this effect: increasing with the level if levels are ordered, else any number.

After the equations are solved, columns are changed: monotone distortions, rounding, few levels, missing cells. Effects
see their causes undistorted, so a distorted task is an exact post-nonlinear structural equation model and the direct
causes stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from causal_arrow_lab.synthetic._noise import look_up, runs_of, standardize

# B tasks, V variables (hidden causes first), P of them observed, T variables before the child, N observations,
# R rows: the tasks in which the child is typed; C cells: typed variables of all tasks; K levels at most, G score tables


@dataclass(frozen=True)
class ColumnKind:
    """Number of levels of a column of this kind, and how they are cut. A kind without levels is a count."""

    min_levels: int = 0
    max_levels: int = 0
    ordered: bool = False  # scores increase with the level
    folded: bool = False  # the distance from a point is cut, so that levels are not intervals of the number
    rare: bool = False  # 1 to 10% of the observations have the second level

    @property
    def is_count(self) -> bool:
        """Whether the kind has no levels."""
        return self.max_levels == 0


COLUMN_KINDS: Mapping[str, ColumnKind] = {
    "binary_levels": ColumnKind(2, 2, ordered=True),
    "rare_event": ColumnKind(2, 2, ordered=True, rare=True),
    "ordered_levels": ColumnKind(3, 10, ordered=True),
    "nominal_levels": ColumnKind(3, 10),
    "folded_levels": ColumnKind(2, 10, folded=True),
    "many_levels": ColumnKind(11, 30),
    "zero_inflated": ColumnKind(),
}

MAX_LEVELS = max(kind.max_levels for kind in COLUMN_KINDS.values())

# The share of typed columns of a task is uniform between two bounds; see recipes.
TYPED_SHARES: Mapping[str, tuple[float, float]] = {
    "numbers": (0.0, 0.0),
    "few_typed": (0.05, 0.3),
    "some_typed": (0.3, 0.95),
    "all_typed": (1.0, 1.0),
    "all_alike": (1.0, 1.0),
    "early_typed": (0.1, 0.6),  # on average: it falls along the order of generation
}

SCORE_TABLES = 3  # a level has one score for each of this many effects; further effects reuse them in turn
OBSERVATIONS_SORTED = 128  # for quantiles: cuts are random anyway, and sorting all would cost more
GIVEN_AS_NUMBER = 0.15  # probability that an ordered or binary column is given as a number, as people do
ORDER_GIVEN = 0.5  # probability that the order of an ordered column is given; else its levels are numbered at random


def quantiles(values: Tensor, share: Tensor, observations_sorted: int = OBSERVATIONS_SORTED) -> Tensor:
    """Approximate quantiles of each row, never its largest value.  (..., N), (..., Q) -> (..., Q)"""
    some = values[..., :observations_sorted].sort(dim=-1).values
    index = (share * some.shape[-1]).long().clamp(0, some.shape[-1] - 2)
    return some.gather(-1, index)


def level_counts(kinds: Tensor, dial: Tensor) -> Tensor:
    """Draw the number of levels of each column by a Unif(0, 1) `dial`, few more often than many; 0 for counts.  (C,)"""
    spreads = ((kind.min_levels, kind.max_levels - kind.min_levels) for kind in COLUMN_KINDS.values())
    drawn = (low + (dial.square() * (spread + 1)).floor().clamp(max=spread) for low, spread in spreads)
    return look_up(kinds - 1, drawn)


def of_kind(kinds: Tensor, property_name: str) -> Tensor:
    """Mask of columns whose kind has a property of ColumnKind.  bool, as `kinds`"""
    return look_up(kinds - 1, (getattr(kind, property_name) for kind in COLUMN_KINDS.values())) > 0


def draw_cuts(kinds: Tensor, count: Tensor, max_levels: int, generator: torch.Generator) -> Tensor:
    """Draw the shares of observations below each cut, increasing; 1 where there is none.  (C, K − 1)

    Level shares are a softmax of Norm(0, σ²) with σ ~ Unif(0, 1.5): from all equal to a few that hold nearly all. The
    second level of a rare event has 1 to 10%, even on a log scale. A count has one cut: zeros are 40 to 95%.
    """
    device = count.device
    dials = torch.rand(2, len(count), 1, generator=generator, device=device)
    logits = 1.5 * dials[0] * torch.randn(len(count), max_levels, generator=generator, device=device)
    exists = torch.arange(max_levels, device=device) < count[:, None].clamp_min(1)
    below = torch.where(exists, logits, -torch.inf).softmax(1).cumsum(1)[:, :-1]
    below = torch.where(of_kind(kinds, "rare")[:, None], 1 - 0.1 * 0.1 ** dials[1], below)
    is_count = of_kind(kinds, "is_count")
    below = torch.where(is_count[:, None], 0.4 + 0.55 * dials[1], below)
    cuts = torch.where(is_count, 1.0, count - 1)[:, None]
    return torch.where(torch.arange(max_levels - 1, device=device) < cuts, below.clamp_max(1 - 1e-6), 1.0)


def zero_inflated_counts(above: Tensor, generator: torch.Generator) -> Tensor:
    """0 where `above` ≤ 0, else an exponential curve from 1 on, in whole numbers for half of the rows.  (R, N)"""
    steepness, size, whole = torch.rand(3, len(above), 1, generator=generator, device=above.device)
    grown = (0.5 + 9.5 * size) * torch.expm1(((0.3 + 1.2 * steepness) * above).clamp(0, 6))
    return torch.where(above > 0, 1 + torch.where(whole < 0.5, grown.floor(), grown), 0.0)


@dataclass(frozen=True)
class Categories:
    """The levels of the columns that have any, in generation order."""

    codes: Tensor  # (B, P, N) int64
    levels: Tensor  # (B, P) int64, number of levels, 0 for a column of numbers
    ordered: Tensor  # (B, P) bool, the order of the levels is given
    max_levels: int  # no column has more levels

    @classmethod
    def none(cls, like: Tensor) -> Categories:
        """Categories of tables (B, P, N) in which no column has levels."""
        levels = torch.zeros(like.shape[:2], dtype=torch.int64, device=like.device)
        return cls(torch.zeros(like.shape, dtype=torch.int64, device=like.device), levels, levels > 0, 1)

    def with_column(self, column: int, where: Tensor, codes: Tensor, max_levels: int) -> Categories:
        """Replace a column by unordered `codes` (B, N) of at most `max_levels` levels in the tasks `where` (B,)."""
        is_it = where[:, None] & (torch.arange(self.levels.shape[1], device=where.device) == column)  # (B, P)
        return Categories(
            torch.where(is_it[:, :, None], codes[:, None], self.codes),
            torch.where(is_it, codes.amax(1, keepdim=True) + 1, self.levels),
            self.ordered & ~is_it,
            max(self.max_levels, max_levels),
        )

    def numbered(self, observed: Tensor | None, generator: torch.Generator) -> Categories:
        """Renumber the levels that are observed 0, 1, 2, ..., in random order unless the order is given."""
        device, limit = self.codes.device, self.max_levels
        slot = self.codes if observed is None else torch.where(observed, self.codes, limit)
        present = torch.zeros(*self.levels.shape, limit + 1, dtype=torch.bool, device=device)
        present = present.scatter_(2, slot, torch.ones_like(slot, dtype=torch.bool))[:, :, :limit]
        index = torch.arange(limit, device=device).repeat(*self.levels.shape, 1)
        number = torch.rand(present.shape, generator=generator, device=device)
        number = torch.where(self.ordered[:, :, None], index / limit, number) + 2.0 * ~present
        rank = torch.zeros_like(index).scatter_(2, number.argsort(dim=2), index)
        codes = rank.gather(2, self.codes)
        has_levels = self.levels > 0
        return replace(self, codes=codes, levels=present.sum(2) * has_levels, ordered=self.ordered & has_levels)


class TypedColumns:
    """The typed columns of a run of tasks, converted one after the other in generation order."""

    def __init__(
        self,
        kinds: Tensor,
        kinds_on_host: Tensor,
        alike: Tensor,
        parents: Tensor,
        observations: int,
        generator: torch.Generator,
    ) -> None:
        """`kinds` (B, V) is 0 for numbers and 1 + the code of the kind otherwise; `alike` (B,) marks tasks whose
        columns all have one kind and the same number of levels."""
        tasks, variables = kinds.shape
        device = kinds.device
        self.generator = generator
        counts = (kinds_on_host > 0).sum(0)  # (V,) tasks in which a variable is typed
        self.ends = counts.cumsum(0).tolist()
        self.has_counts = (kinds_on_host == 1 + list(COLUMN_KINDS).index("zero_inflated")).any(0).tolist()
        present = set(kinds_on_host.unique().tolist())
        occurring = (kind for code, kind in enumerate(COLUMN_KINDS.values(), 1) if code in present)
        self.max_levels = max(2, *(kind.max_levels for kind in occurring))

        dials = torch.rand(tasks, variables, 3, generator=generator, device=device)
        dials = torch.where(alike[:, None, None], dials[:, :1], dials)
        # The C typed cells, variable by variable: the properties of all columns are drawn at once.
        cell = (kinds.mT == 0).flatten().byte().argsort(stable=True)[: self.ends[-1]]
        self.task = cell % tasks  # (C,)
        variable = torch.div(cell, tasks, rounding_mode="floor")
        kind = kinds[self.task, variable]
        dials = dials[self.task, variable]  # (C, 3)
        ordered = of_kind(kind, "ordered")
        self.is_count, self.folded = of_kind(kind, "is_count"), of_kind(kind, "folded")
        self.level_count = level_counts(kind, dials[:, 0])
        self.cuts = draw_cuts(kind, self.level_count, self.max_levels, generator)  # (C, K − 1)
        self.point = torch.rand(len(cell), 1, generator=generator, device=device) - 0.5
        scores = torch.randn(len(cell), SCORE_TABLES, self.max_levels, generator=generator, device=device)
        self.scores = torch.where(ordered[:, None, None], (0.2 + scores.abs()).cumsum(2), scores)  # (C, G, K)
        self.given_levels = torch.where(ordered & (dials[:, 1] < GIVEN_AS_NUMBER), 0.0, self.level_count).long()
        self.order_given = torch.zeros(tasks, variables, dtype=torch.bool, device=device)
        self.order_given[self.task, variable] = ordered & (dials[:, 2] < ORDER_GIVEN)

        # The r-th effect of a variable uses its score table r modulo G.
        table = (parents.cumsum(1) - parents).long() % SCORE_TABLES  # (B, V, V): [b, k, j] for j → k
        index = torch.arange(tasks * variables, device=device).view(tasks, 1, variables)
        self.row = index * SCORE_TABLES + table
        self.felt = torch.empty(tasks, variables, SCORE_TABLES, observations, device=device)
        self.codes = torch.zeros(tasks, variables, observations, dtype=torch.int64, device=device)
        self.levels = torch.zeros(tasks, variables, dtype=torch.int64, device=device)  # 0 for numbers

    def categories(self, hidden: int) -> Categories:
        """Categories of all variables except the hidden ones, which come first."""
        codes, levels, ordered = (part[:, hidden:] for part in (self.codes, self.levels, self.order_given))
        return Categories(codes, levels, ordered, self.max_levels)

    def felt_by(self, child: int) -> Tensor:
        """All variables before the child, as the child's equation sees them.  (B, T, N)"""
        row = self.row[:, child, :child]
        return self.felt.flatten(0, 2).index_select(0, row.flatten()).view(*row.shape, -1)

    def settle(self, child: int, values: Tensor) -> None:
        """Convert the child's numbers in `values` (B, V, N) to the codes or counts of its kind, and to scores."""
        self.felt[:, child] = values[:, None, child]
        cells = slice(self.ends[child - 1] if child else 0, self.ends[child])
        if cells.start == cells.stop:
            return
        task = self.task[cells]  # (R,)
        number = values[task, child]
        cut = torch.where(self.folded[cells, None], (number - self.point[cells]).abs(), number)
        threshold = torch.where(self.cuts[cells] < 1, quantiles(cut, self.cuts[cells]), torch.inf)  # (R, K − 1)
        code = torch.searchsorted(threshold, cut)  # (R, N), the number of thresholds below
        felt = self.scores[cells].gather(2, code[:, None].expand(-1, SCORE_TABLES, -1))  # (R, G, N)
        held = code.to(number.dtype)
        if self.has_counts[child]:
            is_count = self.is_count[cells, None]
            counts = zero_inflated_counts(number - threshold[:, :1], self.generator)
            held = torch.where(is_count, counts, held)
            felt = torch.where(is_count[:, None], held.log1p()[:, None], felt)
        # Ties may have left all observations at one value: such a column stays a number.
        settled = (held.amax(1) > held.amin(1))[:, None]  # (R, 1)
        self.felt[task, child] = standardize(torch.where(settled[:, None], felt, number[:, None]))
        self.codes[task, child] = code * settled
        self.levels[task, child] = self.given_levels[cells] * settled[:, 0]
        values[task, child] = torch.where(settled, held, number)


# Changes of columns: "dials" are (R, 2) uniform numbers, the parameters of R columns

# (R, N) standardized columns, (R, 2) dials -> (R, N)
ColumnChange = Callable[[Tensor, Tensor], Tensor]


def _facing_either_way(columns: Tensor, dial: Tensor) -> Tensor:
    """Negate half of the columns, so that a one-sided distortion may act on either side."""
    return torch.where(dial < 0.5, columns, -columns)


def exponential(columns: Tensor, dials: Tensor) -> Tensor:
    """exp(κx), κ in [0.3, 1.5], smaller where a wide column would span more than e⁶ on one side."""
    steepness = 0.3 + 1.2 * dials[:, :1]
    steepness = torch.minimum(steepness, 6 / columns.abs().amax(1, keepdim=True))
    return torch.exp(steepness * _facing_either_way(columns, dials[:, 1:]))


def power(columns: Tensor, dials: Tensor) -> Tensor:
    """sign(x) · |x|^γ, γ in [1/3, 3]."""
    exponent = 3 ** (2 * dials[:, :1] - 1)
    return torch.copysign(columns.abs() ** exponent, columns)


def sinh_arcsinh(columns: Tensor, dials: Tensor) -> Tensor:
    """sinh(δ · arcsinh(x) + ε), tail weight δ in [1/2, 2], skewness ε in [−1, 1]."""
    return torch.sinh(2 ** (2 * dials[:, :1] - 1) * torch.asinh(columns) + 2 * dials[:, 1:] - 1)


def softplus(columns: Tensor, dials: Tensor) -> Tensor:
    """log(1 + exp(κx)), κ in [0.5, 3]: flat on one side, straight on the other."""
    return torch.nn.functional.softplus((0.5 + 2.5 * dials[:, :1]) * _facing_either_way(columns, dials[:, 1:]))


def squash(columns: Tensor, dials: Tensor) -> Tensor:
    """tanh(κx + c), κ in [0.5, 2], c in [−1/2, 1/2]."""
    return torch.tanh((0.5 + 1.5 * dials[:, :1]) * columns + dials[:, 1:] - 0.5)


DISTORTION_SHAPES: Mapping[str, ColumnChange] = {
    "exponential": exponential,
    "power": power,
    "sinh_arcsinh": sinh_arcsinh,
    "softplus": softplus,
    "squash": squash,
}


def rounded(columns: Tensor, dials: Tensor) -> Tensor:
    """Round to multiples of 0.1 to 1 standard deviation with a random offset."""
    step = 0.1 + 0.9 * dials[:, :1]
    grid = torch.round(columns / step + 0.5 * dials[:, 1:])
    # The grid may miss a column whose values are nearly all equal: leave that column as it is.
    return torch.where(grid.amax(1, keepdim=True) > grid.amin(1, keepdim=True), grid, columns)


def ordinal(columns: Tensor, dials: Tensor) -> Tensor:
    """Cut into two to five levels at random quantiles."""
    observations = columns.shape[1]
    cuts = 1 + (4 * dials[:, :1]).floor()  # (R, 1) in {1, ..., 4}
    # Quantiles are spread evenly around the circle from a random start: no two coincide, and one dial sets them all.
    quantile = torch.remainder(dials[:, 1:] + torch.arange(4, device=columns.device) / cuts, 1.0)
    index = (quantile * (observations - 1)).long().clamp_max(observations - 2)
    threshold = columns.sort(dim=1).values.gather(1, index)  # (R, 4)
    used = torch.arange(4, device=columns.device) < cuts
    levels = torch.zeros_like(columns)
    for cut in range(4):
        levels += (columns > threshold[:, cut, None]) & used[:, cut, None]
    return torch.where(levels.amax(1, keepdim=True) > levels.amin(1, keepdim=True), levels, columns)


# The change of rounded columns, None for none.
ROUNDINGS: Mapping[str, ColumnChange | None] = {"continuous": None, "rounded": rounded, "ordinal": ordinal}


def change_columns(
    values: Tensor,
    kinds: Tensor,
    kind_counts: Sequence[int],
    changes: Sequence[ColumnChange | None],
    generator: torch.Generator,
) -> Tensor:
    """Change each column of `values` (B, P, N) by its kind and standardize it again.  (B, P, N)

    `kinds` (B, P) indexes `changes`, in which None leaves a column as it is; `kind_counts` counts them on the host.
    """
    columns = values.clone(memory_format=torch.contiguous_format).flatten(0, 1)
    by_kind = kinds.flatten().argsort(stable=True)
    for kind, run in runs_of(kind_counts):
        if change := changes[kind]:
            rows = by_kind[run]
            dials = torch.rand(len(rows), 2, generator=generator, device=values.device)
            columns[rows] = standardize(change(columns[rows], dials))
    return columns.view_as(values)


# Missing cells

# Probabilities that a column's cells are missing by chance, by another column, by the column itself.
MISSING: Mapping[str, tuple[float, float, float]] = {
    "complete": (0.0, 0.0, 0.0),
    "missing_by_chance": (1.0, 0.0, 0.0),
    "missing_by_another": (0.0, 1.0, 0.0),
    "missing_by_itself": (0.0, 0.0, 1.0),
    "missing_in_all_ways": (0.4, 0.3, 0.3),
}

MAX_MISSING_RATE = 0.9
SCORES_SORTED = 64  # rates are approximate: they are quantiles of the first observations, this many
MIN_SHARE_WITH_HOLES = 0.1  # the share of columns with missing cells, in a task that has any, is uniform from here to 1


def draw_observed(values: Tensor, missing: Tensor, generator: torch.Generator) -> Tensor:
    """Draw which cells of `values` (B, P, N) are observed; `missing` (B,) indexes MISSING.  (B, P, N) bool

    The largest missing rate of a task is 0.9 · u^1.5 with u ~ Unif(0, 1), for half of the tasks in all columns with
    holes, else each has a Unif(0, 1) share of it. In a quarter of the tasks, cells missing by chance are missing from
    all columns together: a record was cut short. A column whose observed cells would all be equal stays complete.
    """
    tasks, variables, observations = values.shape
    device = values.device
    uniform = partial(torch.rand, tasks, generator=generator, device=device)
    chance, another = (look_up(missing[:, None], (shares[way] for shares in MISSING.values())) for way in range(2))
    dial = uniform(variables)
    by_chance, by_another = dial < chance, (dial >= chance) & (dial < chance + another)

    index = torch.arange(variables, device=device)
    other = (index + 1 + (uniform(variables) * (variables - 1)).floor().clamp_max(variables - 2)) % variables
    driver = torch.where(by_another, other, index).long()
    steepness = 6 * uniform(variables) - 3
    steepness = torch.where(by_chance, 0.0, steepness + steepness.sign())[:, :, None]  # 1 to 4 in either direction
    luck = torch.logit(uniform(variables, observations), eps=1e-6)
    luck = torch.where((uniform(1, 1) < 0.25) & by_chance[:, :, None], luck[:, :1], luck)
    score = torch.addcmul(luck, steepness, values.gather(1, driver[:, :, None].expand_as(values)))

    may_have_holes = uniform(variables) < MIN_SHARE_WITH_HOLES + (1 - MIN_SHARE_WITH_HOLES) * uniform(1)
    rate = MAX_MISSING_RATE * uniform(1).pow(1.5) * torch.where(uniform(1) < 0.5, 1.0, uniform(variables))
    has_holes = may_have_holes & (missing > 0)[:, None]
    observed = (score <= quantiles(score, 1 - rate[:, :, None], SCORES_SORTED)) | ~has_holes[:, :, None]
    lowest = torch.where(observed, values, torch.inf).amin(2, keepdim=True)
    highest = torch.where(observed, values, -torch.inf).amax(2, keepdim=True)
    return observed | (highest <= lowest)


def standardized_where_observed(values: Tensor, observed: Tensor) -> Tensor:
    """Standardize each row over its observed cells (n−1 standard deviation 1); 0 elsewhere.  (B, P, N)"""
    count = observed.sum(2, keepdim=True)
    kept = values * observed
    centered = (kept - kept.sum(2, keepdim=True) / count) * observed
    # Center twice: the first mean was subtracted from numbers that may be far from 0.
    centered = (centered - centered.sum(2, keepdim=True) / count) * observed
    variance = centered.square().sum(2, keepdim=True) / (count - 1)
    return centered * variance.clamp_min(1e-20).rsqrt()
