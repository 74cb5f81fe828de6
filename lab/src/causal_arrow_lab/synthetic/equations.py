"""Solve structural equations of numbers for many tasks at once, variable by variable in generation order."""

# B tasks, L hidden causes, P variables (in generation: the hidden ones first, then the others), N observations

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from causal_arrow_lab.synthetic.choices import TaskChoices, count_codes, tasks_with
from causal_arrow_lab.synthetic.experiments import push_by_classes, push_by_conditions
from causal_arrow_lab.synthetic.kinds import TypedColumns
from causal_arrow_lab.synthetic.mechanisms import ACTIVATIONS, MECHANISMS, Equations, Mechanism, draw_weight_bounds
from causal_arrow_lab.synthetic.noise import NOISES, TINY, draw_noise, draw_noise_variances, standardize
from causal_arrow_lab.synthetic.recipes import CODES
from causal_arrow_lab.synthetic.structure import Causes, Solution

# A constant signal (all observations in one leaf) would leave its variable without any variance.
MIN_NOISE_VARIANCE = 1e-9
# Raw variances can grow exponentially with depth. Effects see a variable at most at this standard deviation: against
# noise of about 1 that is R² = 1 − 1e-8, and the noise still has three digits in float32.
MAX_SCALE = 1e4

_SOFT_ACTIVATIONS = sum(not activation.hard for activation in ACTIVATIONS.values())


def solve_equations(
    choices: TaskChoices, on_host: TaskChoices, causes: Causes, observations: int, generator: torch.Generator
) -> Solution:
    """Solve tasks of numbers, sorted by `choices.sorting_key`; `on_host` is a copy of `choices`."""
    hidden = causes.hidden
    parents = causes.parents(through_equations=True)
    mechanisms = _mechanisms(choices, on_host, parents, generator)
    typed = _typed_columns(choices, on_host, parents, hidden, observations, generator)
    values, explained_variance, touched = _in_order(
        choices, on_host, parents, causes, mechanisms, typed, observations, generator
    )
    # Where a signal is nearly constant, subtracting its mean in float32 has left a small mean behind.
    values = standardize(values[:, hidden:])
    if causes.instruments is not None:
        task = tasks_with(choices, on_host, "instruments")
        values[task] = causes.instruments.take(task).read(values[task], generator)
    categories = None if typed is None else typed.categories(hidden)
    return Solution(values, explained_variance[:, hidden:], categories, touched)


def _typed_columns(
    choices: TaskChoices,
    on_host: TaskChoices,
    parents: Tensor,
    hidden: int,
    observations: int,
    generator: torch.Generator,
) -> TypedColumns | None:
    """The typed columns, None if no task has any. Hidden causes are numbers."""
    if not on_host["kind"].any():
        return None
    kinds, kinds_on_host = (torch.nn.functional.pad(codes["kind"], (hidden, 0)) for codes in (choices, on_host))
    alike = choices["kinds"] == CODES["all_alike"]
    return TypedColumns(kinds, kinds_on_host, alike, parents, observations, generator)


def _mechanisms(
    choices: TaskChoices, on_host: TaskChoices, parents: Tensor, generator: torch.Generator
) -> list[tuple[slice, Mechanism]]:
    """Build the equations of each run of tasks that share a mechanism."""
    low, high = draw_weight_bounds(choices["weight_ranges"], generator)
    runs: list[tuple[slice, Mechanism]] = []
    first = 0
    for mechanism, count in zip(MECHANISMS.values(), count_codes(on_host["mechanisms"], len(MECHANISMS)), strict=True):
        if count:
            run = slice(first, first + count)
            equations = Equations(
                parents=parents[run],
                min_weight=low[run],
                max_weight=high[run],
                activation=choices["activations"][run],
                soft_tasks=int((on_host["activations"][run] < _SOFT_ACTIVATIONS).sum()),
                width=choices["width"][run],
                max_width=int(on_host["width"][run].max()),
                generator=generator,
            )
            runs.append((run, mechanism(equations)))
            first += count
    return runs


def _noise(
    choices: TaskChoices, on_host: TaskChoices, slots: int, observations: int, generator: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Draw standardized noise, and tell which variables hidden conditions or classes touch.  (B, P, N), (B, P)

    In the homogeneous setting all variables share one distribution and its parameters. There are `slots` variables,
    counted from the last: a batch may have drawn distributions for more hidden causes than are needed here.
    """
    kinds = choices["noises"][:, -slots:]
    kind_counts = count_codes(on_host["noises"][:, -slots:], len(NOISES))
    dials = torch.rand(len(choices), slots, 2, generator=generator, device=generator.device)
    homogeneous = (choices["noise_settings"] == CODES["homogeneous"])[:, None, None]
    noise = draw_noise(kinds, kind_counts, torch.where(homogeneous, dials[:, :1], dials), observations, generator)
    touched = None
    for name, push in (("pooled_conditions", push_by_conditions), ("hidden_classes", push_by_classes)):
        if CODES[name] in on_host.present("hidden_variables"):
            noise, touched_here = push(noise, choices["hidden_variables"] == CODES[name], generator)
            touched = touched_here if touched is None else touched | touched_here
    return noise, touched


def _couplings(
    choices: TaskChoices, on_host: TaskChoices, has_causes: Tensor, generator: torch.Generator
) -> Tensor | None:
    """Draw κ, by which noise scales with the signal z as exp(κz), |κ| ~ Unif(0.3, 1); 0 for additive noise.  (B, P)"""
    if on_host.present("noise_couplings") == {CODES["additive_noise"]}:
        return None
    uniform = torch.empty(has_causes.shape, device=generator.device).uniform_(-1, 1, generator=generator)
    coupling = torch.copysign(0.3 + 0.7 * uniform.abs(), uniform)
    coupled = has_causes & (choices["noise_couplings"][:, None] != CODES["additive_noise"])
    return torch.where(coupled, coupling, 0.0)


def _in_order(
    choices: TaskChoices,
    on_host: TaskChoices,
    parents: Tensor,
    causes: Causes,
    mechanisms: Sequence[tuple[slice, Mechanism]],
    typed: TypedColumns | None,
    observations: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Standardized values, the signal's share of variance, and observed variables that hidden conditions touch.

    The values of raw equations are kept standardized as well, with a separate scale: nothing overflows, and a small
    noise loses no digits to a large variance.  (B, P, N), (B, P), (B, P) or None
    """
    variables, hidden = parents.shape[1], causes.hidden
    # Variables overwrite their noise.
    values, touched = _noise(choices, on_host, variables, observations, generator)
    if causes.environments is not None:
        values[:, hidden:] = causes.environments.changed_noise(values[:, hidden:])
    if causes.regimes is not None:
        values[:, hidden:] = causes.regimes.shifted(values[:, hidden:])
    cause_count = parents.sum(2)  # (B, P)
    has_causes = cause_count > 0
    relative, absolute = draw_noise_variances(choices["signal_strengths"], choices["scales"], cause_count, generator)
    if causes.instruments is not None:
        quiet = causes.instruments.quiet(has_causes[:, hidden:])
        noise_variance = causes.instruments.noise_variance()
        relative[:, hidden:] = torch.where(quiet, noise_variance, relative[:, hidden:])
        absolute[:, hidden:] = torch.where(quiet, 0.0, absolute[:, hidden:])
    coupling = _couplings(choices, on_host, has_causes, generator)
    raw = choices["scales"][:, None] != CODES["restandardized"]  # (B, 1)
    scale = None
    if on_host.present("scales") != {CODES["restandardized"]}:
        scale = torch.where(raw, absolute.sqrt(), 1.0)  # (B, P), correct for roots; the others follow one by one

    def settle(variable: int, value: Tensor, noise: Tensor) -> None:
        """Store the value of a variable, or what an experiment sets it to, as the level that it belongs to."""
        if causes.regimes is not None and variable >= hidden:
            value = causes.regimes.set(variable - hidden, value, noise)
        values[:, variable] = value
        if typed is not None:
            typed.settle(variable, values)

    # Layer normalization divides by n instead of n−1.
    bessel = observations / (observations - 1)
    bessel_weight = torch.full((observations,), bessel**-0.5, device=values.device)
    signal_variances, noise_variances = [], []
    first = max(1, hidden)  # hidden causes and the first variable are roots: their values are their noise
    if typed is not None or causes.regimes is not None:
        for root in range(first):
            settle(root, values[:, root].clone(), values[:, root].clone())
    for child in range(first, variables):
        felt = values[:, :child] if typed is None else typed.felt_by(child)
        signal = torch.cat(
            [
                mechanism.signal(child, felt[run], None if scale is None else scale[run, :child])
                for run, mechanism in mechanisms
            ]
        )  # (B, N)
        if causes.environments is not None and child >= hidden:
            signal = causes.environments.changed_signal(child - hidden, signal)
        z, _, inverse_deviation = torch.native_layer_norm(signal, (observations,), None, None, TINY)
        signal_variance = bessel * inverse_deviation.pow(-2)  # (B, 1)
        noise = values[:, child]
        if coupling is not None:
            noise = standardize(noise * torch.exp(coupling[:, child, None] * z.clamp_(-3, 3)))
        noise_variance = torch.addcmul(absolute[:, child, None], relative[:, child, None], signal_variance)
        noise_variance.clamp_min_(MIN_NOISE_VARIANCE)
        mixed = torch.addcmul(signal, noise, noise_variance.sqrt())
        value, _, inverse_deviation = torch.native_layer_norm(mixed, (observations,), bessel_weight, None, TINY)
        settle(child, value, noise)
        if scale is not None:
            deviation = (math.sqrt(bessel) / inverse_deviation).clamp_max_(MAX_SCALE)
            scale[:, child, None] = torch.where(raw, deviation, 1.0)
        signal_variances.append(signal_variance)
        noise_variances.append(noise_variance)

    explained = torch.zeros_like(absolute)
    if signal_variances:
        signal_variance, noise_variance = torch.cat(signal_variances, 1), torch.cat(noise_variances, 1)
        explained[:, first:] = signal_variance / (signal_variance + noise_variance)
    return values, explained * has_causes, None if touched is None else touched[:, hidden:]
