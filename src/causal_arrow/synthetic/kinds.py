"""Kinds of columns: categories and counts as variables of their own, whose effects feel the level they see.

A variable of some kind is computed as a number first, from its causes and its noise, and then cut: at random quantiles
into levels, or into a count with many zeros. From there on the number is gone. Each effect feels a level by a score
that the level has for this effect: rising with the level where levels have an order, any number where they have none.
"""

# B tasks, V variables (hidden causes first), P of them observed, T variables before the child, N observations,
# R rows: the tasks in which the child is of some kind; C cells of some kind; K levels at most, G score tables

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from causal_arrow.synthetic.noise import standardize


@dataclass(frozen=True)
class ColumnKind:
    """How many levels a column of this kind has, and how they are cut. A kind without levels is a count."""

    fewest: int = 0
    most: int = 0
    ordered: bool = False  # scores rise with the level
    folded: bool = False  # what is cut is the distance from a point: a level is no interval of the number behind it
    rare: bool = False  # 1 to 10% of the observations have the second level

    @property
    def is_count(self) -> bool:
        """Whether it has no levels."""
        return self.most == 0


COLUMN_KINDS: Mapping[str, ColumnKind] = {
    "binary_levels": ColumnKind(2, 2, ordered=True),
    "rare_event": ColumnKind(2, 2, ordered=True, rare=True),
    "ordered_levels": ColumnKind(3, 10, ordered=True),
    "nominal_levels": ColumnKind(3, 10),
    "folded_levels": ColumnKind(2, 10, folded=True),
    "many_levels": ColumnKind(11, 30),
    "zero_inflated": ColumnKind(),
}

MOST_LEVELS = max(kind.most for kind in COLUMN_KINDS.values())

# Of the columns of a task, this share is of some kind, uniform between the two; see recipes.
TYPED_SHARES: Mapping[str, tuple[float, float]] = {
    "numbers": (0.0, 0.0),
    "few_typed": (0.05, 0.3),
    "some_typed": (0.3, 0.95),
    "all_typed": (1.0, 1.0),
    "all_alike": (1.0, 1.0),
}

# A level has one score for each of this many effects; further effects of the same variable share these in turn.
SCORE_TABLES = 3
# Quantiles are those of so many observations: cuts are random anyway, and sorting all of them would cost more.
OBSERVATIONS_SORTED = 128
# An ordered or binary column is given as a number, not as a category, with this probability: people do.
GIVEN_AS_NUMBER = 0.15
# The order of an ordered column is told with this probability; else its levels are numbered at random like any other's.
ORDER_TOLD = 0.5


def quantiles(values: Tensor, share: Tensor, observations_sorted: int = OBSERVATIONS_SORTED) -> Tensor:
    """The value below which about `share` of a row lies, never its largest.  (..., N), (..., Q) -> (..., Q)"""
    some = values[..., :observations_sorted].sort(dim=-1).values
    place = (share * some.shape[-1]).long().clamp(0, some.shape[-1] - 2)
    return some.gather(-1, place)


def level_counts(kinds: Tensor, dial: Tensor) -> Tensor:
    """Number of levels of each column, few more often than many; 0 for counts.  (C,)

    `kinds` is 1 + the code of a kind, `dial` is Unif(0, 1).
    """
    count = torch.zeros_like(dial)
    for code, law in enumerate(COLUMN_KINDS.values(), 1):
        drawn = law.fewest + (dial.square() * (law.most - law.fewest + 1)).floor().clamp(max=law.most - law.fewest)
        count = torch.where(kinds == code, drawn, count)
    return count


def of_kind(kinds: Tensor, property_name: str) -> Tensor:
    """Where the kind of a column has a property of ColumnKind.  bool, as `kinds`"""
    # Built on the device: copying a table there would make the host wait.
    found = torch.zeros_like(kinds, dtype=torch.bool)
    for code, law in enumerate(COLUMN_KINDS.values(), 1):
        if getattr(law, property_name):
            found = found | (kinds == code)
    return found


def draw_cuts(kinds: Tensor, count: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Shares of the observations below each cut, rising; 1 where there is none.  (C, K − 1)

    Level shares are a softmax of Norm(0, σ²) with σ ~ Unif(0, 1.5): from all alike to a few that hold nearly all. The
    second level of a rare event has 1 to 10%, even on a log scale. A count has one cut: zeros are 40 to 95%.
    """
    device = count.device
    dials = torch.rand(2, len(count), 1, generator=generator, device=device)
    logits = 1.5 * dials[0] * torch.randn(len(count), most, generator=generator, device=device)
    exists = torch.arange(most, device=device) < count[:, None].clamp_min(1)
    below = torch.where(exists, logits, -torch.inf).softmax(1).cumsum(1)[:, :-1]
    below = torch.where(of_kind(kinds, "rare")[:, None], 1 - 0.1 * 0.1 ** dials[1], below)
    is_count = of_kind(kinds, "is_count")
    below = torch.where(is_count[:, None], 0.4 + 0.55 * dials[1], below)
    cuts = torch.where(is_count, 1.0, count - 1)[:, None]
    return torch.where(torch.arange(most - 1, device=device) < cuts, below.clamp_max(1 - 1e-6), 1.0)


def zero_inflated_counts(above: Tensor, generator: torch.Generator) -> Tensor:
    """0 where not `above` 0, else an exponential curve from 1 on, in whole numbers for half of the rows.  (R, N)"""
    steepness, size, whole = torch.rand(3, len(above), 1, generator=generator, device=above.device)
    grown = (0.5 + 9.5 * size) * torch.expm1(((0.3 + 1.2 * steepness) * above).clamp(0, 6))
    return torch.where(above > 0, 1 + torch.where(whole < 0.5, grown.floor(), grown), 0.0)


@dataclass(frozen=True)
class Categories:
    """The levels of the columns that have any, in generation order."""

    codes: Tensor  # (B, P, N) int64
    levels: Tensor  # (B, P) int64, how many, 0 for a column of numbers
    ordered: Tensor  # (B, P) bool, the order of the levels is told
    most: int  # no column has more levels

    @classmethod
    def none(cls, like: Tensor) -> Categories:
        """No column has levels, in tables like (B, P, N)."""
        levels = torch.zeros(like.shape[:2], dtype=torch.int64, device=like.device)
        return cls(torch.zeros(like.shape, dtype=torch.int64, device=like.device), levels, levels > 0, 1)

    def with_column(self, column: int, where: Tensor, codes: Tensor, most: int) -> Categories:
        """The same with another column, of at most `most` levels without order, in the tasks `where` (B,).

        `codes` is (B, N).
        """
        is_it = where[:, None] & (torch.arange(self.levels.shape[1], device=where.device) == column)  # (B, P)
        return Categories(
            torch.where(is_it[:, :, None], codes[:, None], self.codes),
            torch.where(is_it, codes.amax(1, keepdim=True) + 1, self.levels),
            self.ordered & ~is_it,
            max(self.most, most),
        )

    def numbered(self, observed: Tensor | None, generator: torch.Generator) -> Categories:
        """The same with codes 0, 1, 2, ... without gaps, in random order unless the order is told.

        Levels that are not observed are no levels: a table does not know of them.
        """
        device, most = self.codes.device, self.most
        slot = self.codes if observed is None else torch.where(observed, self.codes, most)
        present = torch.zeros(*self.levels.shape, most + 1, dtype=torch.bool, device=device)
        present = present.scatter_(2, slot, torch.ones_like(slot, dtype=torch.bool))[:, :, :most]
        place = torch.arange(most, device=device).repeat(*self.levels.shape, 1)
        number = torch.rand(present.shape, generator=generator, device=device)
        number = torch.where(self.ordered[:, :, None], place / most, number) + 2.0 * ~present
        rank = torch.zeros_like(place).scatter_(2, number.argsort(dim=2), place)
        codes = rank.gather(2, self.codes)
        has_levels = self.levels > 0
        return replace(self, codes=codes, levels=present.sum(2) * has_levels, ordered=self.ordered & has_levels)


class TypedColumns:
    """The columns of a run of tasks that are of some kind, settled one after the other in generation order."""

    def __init__(
        self,
        kinds: Tensor,
        kinds_on_host: Tensor,
        alike: Tensor,
        parents: Tensor,
        observations: int,
        generator: torch.Generator,
    ) -> None:
        """`kinds` (B, V) is 0 for numbers and 1 + the code of the kind otherwise; `alike` (B,) where all columns of a
        task are of one kind and have as many levels."""
        tasks, variables = kinds.shape
        device = kinds.device
        self.generator = generator
        counts = (kinds_on_host > 0).sum(0)  # (V,) tasks in which a variable is of some kind
        self.ends = counts.cumsum(0).tolist()
        self.has_counts = (kinds_on_host == 1 + list(COLUMN_KINDS).index("zero_inflated")).any(0).tolist()
        present = set(kinds_on_host.unique().tolist())
        self.most = max([2] + [law.most for code, law in enumerate(COLUMN_KINDS.values(), 1) if code in present])

        dials = torch.rand(tasks, variables, 3, generator=generator, device=device)
        dials = torch.where(alike[:, None, None], dials[:, :1], dials)
        # All cells of some kind, C of them, variable by variable: what a column is made of is drawn for all at once.
        cell = (kinds.mT == 0).flatten().byte().argsort(stable=True)[: self.ends[-1]]
        self.task = cell % tasks  # (C,)
        variable = torch.div(cell, tasks, rounding_mode="floor")
        kind = kinds[self.task, variable]
        dials = dials[self.task, variable]  # (C, 3)
        rising = of_kind(kind, "ordered")
        self.is_count, self.folded = of_kind(kind, "is_count"), of_kind(kind, "folded")
        self.level_count = level_counts(kind, dials[:, 0])
        self.cuts = draw_cuts(kind, self.level_count, self.most, generator)  # (C, K − 1)
        self.point = torch.rand(len(cell), 1, generator=generator, device=device) - 0.5
        scores = torch.randn(len(cell), SCORE_TABLES, self.most, generator=generator, device=device)
        self.scores = torch.where(rising[:, None, None], (0.2 + scores.abs()).cumsum(2), scores)  # (C, G, K)
        self.given_levels = torch.where(rising & (dials[:, 1] < GIVEN_AS_NUMBER), 0.0, self.level_count).long()
        told = torch.zeros(tasks, variables, dtype=torch.bool, device=device)
        told[self.task, variable] = rising & (dials[:, 2] < ORDER_TOLD)
        self.told = told

        # The r-th effect of a variable feels it by score table r, r + G, ...
        table = (parents.cumsum(1) - parents).long() % SCORE_TABLES  # (B, V, V): [b, k, j] for j → k
        place = torch.arange(tasks * variables, device=device).view(tasks, 1, variables)
        self.row = place * SCORE_TABLES + table
        self.felt = torch.empty(tasks, variables, SCORE_TABLES, observations, device=device)
        self.codes = torch.zeros(tasks, variables, observations, dtype=torch.int64, device=device)
        self.levels = torch.zeros(tasks, variables, dtype=torch.int64, device=device)  # 0 for numbers

    def categories(self, hidden: int) -> Categories:
        """Those of all variables but the hidden ones, which come first."""
        return Categories(self.codes[:, hidden:], self.levels[:, hidden:], self.told[:, hidden:], self.most)

    def felt_by(self, child: int) -> Tensor:
        """All variables before the child as the child feels them.  (B, T, N)"""
        row = self.row[:, child, :child]
        return self.felt.flatten(0, 2).index_select(0, row.flatten()).view(*row.shape, -1)

    def settle(self, child: int, values: Tensor) -> None:
        """Gives the child its kind: its numbers in `values` (B, V, N) become codes or counts, as its effects feel."""
        self.felt[:, child] = values[:, None, child]
        cells = slice(self.ends[child - 1] if child else 0, self.ends[child])
        if cells.start == cells.stop:
            return
        task = self.task[cells]  # (R,)
        number = values[task, child]
        cut = torch.where(self.folded[cells, None], (number - self.point[cells]).abs(), number)
        threshold = torch.where(self.cuts[cells] < 1, quantiles(cut, self.cuts[cells]), torch.inf)  # (R, K − 1)
        code = torch.searchsorted(threshold, cut)  # (R, N), how many thresholds lie below
        felt = self.scores[cells].gather(2, code[:, None].expand(-1, SCORE_TABLES, -1))  # (R, G, N)
        held = code.to(number.dtype)
        if self.has_counts[child]:
            is_count = self.is_count[cells, None]
            counts = zero_inflated_counts(number - threshold[:, :1], self.generator)
            held = torch.where(is_count, counts, held)
            felt = torch.where(is_count[:, None], held.log1p()[:, None], felt)
        # Ties may have left all observations in one place: such a column stays the number it was.
        settled = (held.amax(1) > held.amin(1))[:, None]  # (R, 1)
        self.felt[task, child] = standardize(torch.where(settled[:, None], felt, number[:, None]))
        self.codes[task, child] = code * settled
        self.levels[task, child] = self.given_levels[cells] * settled[:, 0]
        values[task, child] = torch.where(settled, held, number)
