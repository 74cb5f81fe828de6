"""Instruments, groups of columns that measure the same causes by different curves, and noisy measurements.

The columns of a group are effects of their causes, not of each other, and cause nothing. In half of the tasks with
groups each instrument has its own weights of the causes; in the other half all instruments of a group measure one
quantity, an effect of the causes that appears in the table only through these readings. If that quantity has noise, or
has no cause in the table, the readings share a hidden cause.

With noisy measurements the table holds readings of a variable, while effects depend on the variable itself.
"""

# B tasks, P variables in generation order, N observations

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from causal_arrow_lab.synthetic.columns import sinh_arcsinh, squash
from causal_arrow_lab.synthetic.noise import standardize

MIN_IN_GROUP, MAX_IN_GROUP = 2, 6
MAX_SHARE = 0.7  # of the columns of a task are instruments
# The share of measurement noise in an instrument's variance is even on a log scale between these.
MIN_NOISE_SHARE, MAX_NOISE_SHARE = 0.0005, 0.05
# Relative noise variance of a quantity that is a function of its causes: practically zero.
EXACT = 1e-6


@dataclass(frozen=True)
class Instruments:
    """The instruments among the columns of a run of tasks, and what they measure."""

    leader: Tensor  # (B, P) int64, the first instrument of a column's group; the column itself if it is in none
    member: Tensor  # (B, P) bool, whether the column is an instrument
    one_quantity: Tensor  # (B, 1) bool, all instruments of a group measure one quantity
    exact: Tensor  # (B, P) bool, that quantity is a function of its causes; equal within a group
    noise_share: Tensor  # (B, P) share of measurement noise in an instrument's variance
    spare: Tensor  # (B, P, P) bool, [b, j, k] a cause j for a group led by k that has no other

    def take(self, tasks: Tensor) -> Instruments:
        """The instruments of some of the tasks."""
        return Instruments(**{field.name: getattr(self, field.name)[tasks] for field in fields(self)})

    def rewired(self, causes: Tensor) -> Tensor:
        """Give instruments the causes of their leader.  (B, L, P) -> (B, L, P)"""
        return causes.gather(2, self.leader[:, None].expand_as(causes))

    def rewired_graph(self, adjacency: Tensor) -> Tensor:
        """Give instruments the causes of their leader, and no effects.  (B, P, P) -> (B, P, P)"""
        kept = adjacency & ~self.member[:, :, None]
        return self.rewired(kept | (self.spare & ~kept.any(1, keepdim=True)))

    def quiet(self, has_causes: Tensor) -> Tensor:
        """Columns whose structural equation has measurement noise only.  (B, P) bool"""
        return self.member & has_causes & (~self.one_quantity | self.exact)

    def noise_variance(self) -> Tensor:
        """Noise variance in the equation of a quiet column, relative to the signal's.  (B, P)

        Readings of one quantity get their noise in `read`.
        """
        return torch.where(self.one_quantity, EXACT, self.noise_share / (1 - self.noise_share))

    def share_a_quantity(self, has_causes: Tensor) -> Tensor:
        """Pairs of instruments with a hidden cause: the quantity that they measure.  (B, P, P) bool"""
        hidden = self.member & self.one_quantity & ~(self.exact & has_causes)
        return hidden[:, :, None] & (self.leader[:, :, None] == self.leader[:, None, :])

    def read(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Replace the values (B, P, N) of instruments by their readings, standardized.  (B, P, N)"""
        tasks, variables, _ = values.shape
        of_leader = values.gather(1, self.leader[:, :, None].expand_as(values))
        quantity = torch.where(self.one_quantity[:, :, None], of_leader, values)
        dials = torch.rand(tasks * variables, 4, generator=generator, device=values.device)
        rows = standardize(quantity).flatten(0, 1)
        rows = torch.where(dials[:, 3:] < 0.5, rows, -rows)
        curve = torch.where(dials[:, 2:3] < 0.5, sinh_arcsinh(rows, dials[:, :2]), squash(rows, dials[:, :2]))
        share = torch.where(self.one_quantity, self.noise_share, 0.0)[:, :, None]
        noise = torch.randn(values.shape, generator=generator, device=values.device)
        shown = (1 - share).sqrt() * standardize(curve).view_as(values) + share.sqrt() * noise
        return torch.where(self.member[:, :, None], standardize(shown), values)


def draw_instruments(present: Tensor, allowed: Tensor, generator: torch.Generator) -> Instruments:
    """Draw groups of 2 to 6 instruments where `present` (B,): two columns up to 70% of the `allowed` (B, P) ones.

    Late variables are preferred: effects are instruments more often than causes. In three of four cases a group without
    causes gets one, if there is an earlier variable that is not an instrument.
    """
    tasks, variables = allowed.shape
    device = allowed.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    size = MIN_IN_GROUP + (uniform(1) * (MAX_IN_GROUP - MIN_IN_GROUP + 1)).floor()
    limit = max(MIN_IN_GROUP, int(MAX_SHARE * variables))
    instruments = (size + uniform(1) * (limit - size)).floor().clamp(MIN_IN_GROUP, limit)
    index = torch.arange(variables, device=device).expand(tasks, -1)
    lottery = uniform(variables) - 0.7 * index / variables + 2.0 * ~allowed
    rank = lottery.argsort(1).argsort(1)  # (B, P)
    member = (rank < instruments) & (lottery < 1) & present[:, None]
    group = torch.where(member, torch.div(rank, size, rounding_mode="floor").long(), variables)
    first = torch.full((tasks, variables + 1), variables, device=device).scatter_reduce_(1, group, index, "amin")
    leader = torch.where(member, first.gather(1, group), index)
    # For each leader, the earlier variable with the largest random number.
    luck = uniform(variables, variables) * (allowed & ~member)[:, :, None] * (index[:, :, None] < index[:, None, :])
    luckiest = (luck == luck.amax(1, keepdim=True)) & (luck > 0)
    return Instruments(
        leader=leader,
        member=member,
        one_quantity=uniform(1) < 0.5,
        exact=(uniform(variables) < 0.5).gather(1, leader),
        noise_share=MIN_NOISE_SHARE * (MAX_NOISE_SHARE / MIN_NOISE_SHARE) ** uniform(variables),
        spare=luckiest & member[:, None] & (uniform(1, variables) < 0.75),
    )


def noisy_readings(
    values: Tensor, codes: Tensor | None, noisy: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Add measurement noise to the values and codes (B, P, N) of the columns `noisy` (B, P).

    Noise is 2 to 50% of the variance in the table; the probability that a level is taken for that of another
    observation is half that share.
    """
    device = values.device
    share = (0.02 + 0.48 * torch.rand(noisy.shape, generator=generator, device=device))[:, :, None]
    share = torch.where(noisy[:, :, None], share, 0.0)
    noise = torch.randn(values.shape, generator=generator, device=device)
    shown = standardize((1 - share).sqrt() * values + share.sqrt() * noise)
    values = torch.where(noisy[:, :, None], shown, values)
    if codes is None:
        return values, None
    misread = torch.rand(values.shape, generator=generator, device=device) < 0.5 * share
    shown_codes = torch.where(misread, codes.roll(1, 2), codes)  # of another observation
    # If the only observation of a rare level was misread, all are read right instead.
    varied = shown_codes.amax(2, keepdim=True) > shown_codes.amin(2, keepdim=True)
    return values, torch.where(varied, shown_codes, codes)
