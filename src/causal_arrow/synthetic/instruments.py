"""Instruments: groups of columns that read the same causes, each by its own curve, and readings that are noisy.

The columns of a group are effects of their causes and not of one another, and cause nothing. In half of the tasks with
groups each instrument weighs the causes by itself; in the other half all of a group read one quantity, an effect of the
causes that is in the table only by these readings. Where that quantity has noise of its own, or no cause in the table,
the readings share a hidden cause.

A noisy reading is what the table holds of a variable; effects feel the variable itself.
"""

# B tasks, P variables in generation order, N observations

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from causal_arrow.synthetic.columns import sinh_arcsinh, squash
from causal_arrow.synthetic.noise import standardize

FEWEST_IN_GROUP, MOST_IN_GROUP = 2, 6
MOST_SHARE = 0.7  # of the columns of a task are instruments at most
# The share of an instrument's own noise in its variance, even on a log scale between these.
QUIETEST, LOUDEST = 0.0005, 0.05
# The noise variance of a quantity that is a function of its causes, relative to its own: next to nothing.
EXACT = 1e-6


@dataclass(frozen=True)
class Instruments:
    """Which columns of a run of tasks are instruments, and of what."""

    leader: Tensor  # (B, P) int64, the first instrument of a column's group; the column itself if it is in none
    member: Tensor  # (B, P) bool, whether it is an instrument
    one_quantity: Tensor  # (B, 1) bool, all of a group read one quantity
    exact: Tensor  # (B, P) bool, that quantity is a function of its causes; the same for all of a group
    noise_share: Tensor  # (B, P) of an instrument's own noise in its variance
    spare: Tensor  # (B, P, P) bool, [b, j, k] a cause j for a group led by k, if it has no other

    def take(self, tasks: Tensor) -> Instruments:
        """Those of some of the tasks."""
        return Instruments(**{field.name: getattr(self, field.name)[tasks] for field in fields(self)})

    def rewired(self, causes: Tensor) -> Tensor:
        """Causes (B, L, P), with instruments as effects given the causes of their leader.  (B, L, P)"""
        return causes.gather(2, self.leader[:, None].expand_as(causes))

    def rewired_graph(self, adjacency: Tensor) -> Tensor:
        """The graph (B, P, P) in which instruments have no effects and the causes of their leader.  (B, P, P)"""
        kept = adjacency & ~self.member[:, :, None]
        return self.rewired(kept | (self.spare & ~kept.any(1, keepdim=True)))

    def quiet(self, has_causes: Tensor) -> Tensor:
        """Columns whose structural equation has only the noise of an instrument.  (B, P) bool"""
        return self.member & has_causes & (~self.one_quantity | self.exact)

    def noise_variance(self) -> Tensor:
        """Variance of the noise in the equation of a quiet column, relative to its signal's.  (B, P)

        What is read of a quantity has its noise added by `read`, each reading its own.
        """
        return torch.where(self.one_quantity, EXACT, self.noise_share / (1 - self.noise_share))

    def share_a_quantity(self, has_causes: Tensor) -> Tensor:
        """Pairs of instruments with a hidden cause: the quantity that they read.  (B, P, P) bool"""
        hidden = self.member & self.one_quantity & ~(self.exact & has_causes)
        return hidden[:, :, None] & (self.leader[:, :, None] == self.leader[:, None, :])

    def read(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """The values (B, P, N) as the instruments show them, standardized.  (B, P, N)"""
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
    """Groups of 2 to 6 instruments where `present` (B,), from two columns up to 70% of the `allowed` (B, P) ones.

    Effects more often than causes are instruments: late variables are preferred. A group without causes gets one in
    three cases out of four, where there is an earlier variable that is no instrument.
    """
    tasks, variables = allowed.shape
    device = allowed.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(tasks, *shape, generator=generator, device=device)

    size = FEWEST_IN_GROUP + (uniform(1) * (MOST_IN_GROUP - FEWEST_IN_GROUP + 1)).floor()
    most = max(FEWEST_IN_GROUP, int(MOST_SHARE * variables))
    instruments = (size + uniform(1) * (most - size)).floor().clamp(FEWEST_IN_GROUP, most)
    place = torch.arange(variables, device=device).expand(tasks, -1)
    lottery = uniform(variables) - 0.7 * place / variables + 2.0 * ~allowed
    rank = lottery.argsort(1).argsort(1)  # (B, P)
    member = (rank < instruments) & (lottery < 1) & present[:, None]
    group = torch.where(member, torch.div(rank, size, rounding_mode="floor").long(), variables)
    first = torch.full((tasks, variables + 1), variables, device=device).scatter_reduce_(1, group, place, "amin")
    leader = torch.where(member, first.gather(1, group), place)
    # For each leader the earlier variable with the luckiest number, unless that is 0.
    luck = uniform(variables, variables) * (allowed & ~member)[:, :, None] * (place[:, :, None] < place[:, None, :])
    luckiest = (luck == luck.amax(1, keepdim=True)) & (luck > 0)
    return Instruments(
        leader=leader,
        member=member,
        one_quantity=uniform(1) < 0.5,
        exact=(uniform(variables) < 0.5).gather(1, leader),
        noise_share=QUIETEST * (LOUDEST / QUIETEST) ** uniform(variables),
        spare=luckiest & member[:, None] & (uniform(1, variables) < 0.75),
    )


def noisy_readings(
    values: Tensor, codes: Tensor | None, noisy: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Values and codes (B, P, N) as the table shows them where the columns `noisy` (B, P) are read with noise.

    Noise makes up 2 to 50% of the variance that the table shows; a level is taken for that of another observation half
    as often.
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
    shown_codes = torch.where(misread, codes.roll(1, 2), codes)  # the next observation is any other observation
    # The one observation of a rare level may be the one misread: then all are read right.
    varied = shown_codes.amax(2, keepdim=True) > shown_codes.amin(2, keepdim=True)
    return values, torch.where(varied, shown_codes, codes)
