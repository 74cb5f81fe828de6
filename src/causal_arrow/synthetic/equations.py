"""Structural equations solved for many tasks at once, variable by variable in generation order."""

# B tasks, L hidden causes, P variables (in generation: the hidden ones first, then the others), N observations

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from causal_arrow.synthetic.choices import Choices, count_codes
from causal_arrow.synthetic.columns import DISTORTION_SHAPES, ROUNDINGS, change_columns
from causal_arrow.synthetic.conditions import push_by_conditions
from causal_arrow.synthetic.graph_families import draw_edge_counts, sample_graphs, sample_hidden_causes
from causal_arrow.synthetic.mechanisms import ACTIVATIONS, MECHANISMS, Equations, Mechanism, draw_weight_bounds
from causal_arrow.synthetic.noise import NOISES, TINY, draw_noise, standardize
from causal_arrow.synthetic.recipes import CODES
from causal_arrow.synthetic.strengths import draw_noise_variances

# A signal that came out constant (all observations in one leaf) would leave its variable without any variance.
LEAST_NOISE_VARIANCE = 1e-9
# Raw variances can grow exponentially with depth. From here on a variable is handed to its effects at this standard
# deviation: against noise of about 1 that is R² = 1 − 1e-8, and the noise still has three digits in float32.
LARGEST_SCALE = 1e4

_SOFT_ACTIVATIONS = sum(not activation.hard for activation in ACTIVATIONS.values())


@dataclass(frozen=True)
class Solved:
    """Tasks in generation order, hidden causes dropped."""

    values: Tensor  # (B, P, N) standardized
    adjacency: Tensor  # (B, P, P) bool, upper triangle
    explained_variance: Tensor  # (B, P)


def solve(choices: Choices, on_host: Choices, variables: int, observations: int, generator: torch.Generator) -> Solved:
    """Graphs, equations and data for tasks sorted by `choices.sorting_key`; `on_host` is a copy of `choices`."""
    hidden = max(on_host.present("hidden"))
    edges = draw_edge_counts(choices["edge_counts"], variables, generator)
    families = sorted(on_host.present("graph_families"))
    adjacency = sample_graphs(choices["graph_families"], families, edges, variables, generator)
    parents = torch.zeros(len(choices), hidden + variables, hidden + variables, device=generator.device)
    parents[:, hidden:, hidden:] = adjacency.mT
    if hidden:
        parents[:, hidden:, :hidden] = sample_hidden_causes(choices["hidden"], hidden, variables, generator).mT

    mechanisms = _mechanisms(choices, on_host, parents, generator)
    values, explained_variance = _in_order(choices, on_host, parents, hidden, mechanisms, observations, generator)
    # Where a signal is all but constant, subtracting its mean in float32 has left a small mean behind.
    values = standardize(values[:, hidden:])
    rounding = [change for change in ROUNDINGS.values() if change is not None]
    for name, changes in (("distortion", list(DISTORTION_SHAPES.values())), ("rounding", rounding)):
        kind_counts = count_codes(on_host[name], 1 + len(changes))
        values = change_columns(values, choices[name], kind_counts, changes, generator)
    return Solved(values, adjacency, explained_variance[:, hidden:])


def _mechanisms(
    choices: Choices, on_host: Choices, parents: Tensor, generator: torch.Generator
) -> list[tuple[slice, Mechanism]]:
    """The equations of each run of tasks that share a mechanism."""
    low, high = draw_weight_bounds(choices["weight_ranges"], generator)
    runs: list[tuple[slice, Mechanism]] = []
    first = 0
    for mechanism, count in zip(MECHANISMS.values(), count_codes(on_host["mechanisms"], len(MECHANISMS)), strict=True):
        if count:
            run = slice(first, first + count)
            equations = Equations(
                parents=parents[run],
                lowest_weight=low[run],
                highest_weight=high[run],
                activation=choices["activations"][run],
                soft_tasks=int((on_host["activations"][run] < _SOFT_ACTIVATIONS).sum()),
                width=choices["width"][run],
                most_width=int(on_host["width"][run].max()),
                generator=generator,
            )
            runs.append((run, mechanism(equations)))
            first += count
    return runs


def _noise(choices: Choices, on_host: Choices, slots: int, observations: int, generator: torch.Generator) -> Tensor:
    """Standardized noise of every variable; in the homogeneous setting all share one law and its parameters.  (B, P, N)

    `slots` variables, counted from the last: a batch may have drawn laws for more hidden causes than are needed here.
    """
    kinds = choices["noises"][:, -slots:]
    kind_counts = count_codes(on_host["noises"][:, -slots:], len(NOISES))
    dials = torch.rand(len(choices), slots, 2, generator=generator, device=generator.device)
    homogeneous = (choices["noise_settings"] == CODES["homogeneous"])[:, None, None]
    noise = draw_noise(kinds, kind_counts, torch.where(homogeneous, dials[:, :1], dials), observations, generator)
    if CODES["pooled_conditions"] in on_host.present("hidden_variables"):
        pooled = choices["hidden_variables"] == CODES["pooled_conditions"]
        noise = push_by_conditions(noise, pooled, generator)
    return noise


def _couplings(choices: Choices, on_host: Choices, has_causes: Tensor, generator: torch.Generator) -> Tensor | None:
    """How noise swells or fades with the signal z: as exp(κz), |κ| ~ Unif(0.3, 1); 0 for additive noise.  (B, P)"""
    if on_host.present("noise_couplings") == {CODES["additive_noise"]}:
        return None
    uniform = torch.empty(has_causes.shape, device=generator.device).uniform_(-1, 1, generator=generator)
    coupling = torch.copysign(0.3 + 0.7 * uniform.abs(), uniform)
    coupled = has_causes & (choices["noise_couplings"][:, None] != CODES["additive_noise"])
    return torch.where(coupled, coupling, 0.0)


def _in_order(
    choices: Choices,
    on_host: Choices,
    parents: Tensor,
    hidden: int,
    mechanisms: Sequence[tuple[slice, Mechanism]],
    observations: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Values of all variables, standardized, and the signal's share of each one's variance.  (B, P, N), (B, P)

    The values of raw equations are kept standardized as well, with their scale beside them: nothing overflows, and a
    small noise loses no digits to a large variance.
    """
    variables = parents.shape[1]
    values = _noise(choices, on_host, variables, observations, generator)  # a variable takes the place of its noise
    causes = parents.sum(2)  # (B, P)
    has_causes = causes > 0
    relative, absolute = draw_noise_variances(choices["signal_strengths"], choices["scales"], causes, generator)
    coupling = _couplings(choices, on_host, has_causes, generator)
    raw = choices["scales"][:, None] != CODES["restandardized"]  # (B, 1)
    scale = None
    if on_host.present("scales") != {CODES["restandardized"]}:
        scale = torch.where(raw, absolute.sqrt(), 1.0)  # (B, P), right for roots; the others follow one by one

    # Layer normalization divides by n where we mean n−1.
    bessel = observations / (observations - 1)
    bessel_weight = torch.full((observations,), bessel**-0.5, device=values.device)
    signal_variances, noise_variances = [], []
    first = max(1, hidden)  # hidden causes and the first variable are roots: their values are their noise
    for child in range(first, variables):
        signal = torch.cat(
            [
                mechanism.signal(child, values[run, :child], None if scale is None else scale[run, :child])
                for run, mechanism in mechanisms
            ]
        )  # (B, N)
        z, _, inverse_deviation = torch.native_layer_norm(signal, (observations,), None, None, TINY)
        signal_variance = bessel * inverse_deviation.pow(-2)  # (B, 1)
        noise = values[:, child]
        if coupling is not None:
            noise = standardize(noise * torch.exp(coupling[:, child, None] * z.clamp_(-3, 3)))
        noise_variance = torch.addcmul(absolute[:, child, None], relative[:, child, None], signal_variance)
        noise_variance.clamp_min_(LEAST_NOISE_VARIANCE)
        mixed = torch.addcmul(signal, noise, noise_variance.sqrt())
        values[:, child], _, inverse_deviation = torch.native_layer_norm(
            mixed, (observations,), bessel_weight, None, TINY
        )
        if scale is not None:
            deviation = (math.sqrt(bessel) / inverse_deviation).clamp_max_(LARGEST_SCALE)
            scale[:, child, None] = torch.where(raw, deviation, 1.0)
        signal_variances.append(signal_variance)
        noise_variances.append(noise_variance)

    explained = torch.zeros_like(absolute)
    if signal_variances:
        signal_variance, noise_variance = torch.cat(signal_variances, 1), torch.cat(noise_variances, 1)
        explained[:, first:] = signal_variance / (signal_variance + noise_variance)
    return values, explained * has_causes
