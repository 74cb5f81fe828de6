"""How causes make their effects: the signal f(parents) of a structural equation, for many tasks at once.

A mechanism object holds the equations of one run of tasks. `signal(child, earlier, scale)` is the signal of variable
`child` in every task, from the standardized values of all variables before it; the weight of what is not a parent is
zero. Dense products over all earlier variables read a few rows too many and need no index lists: counted in bytes and
launches they cost less than gathering the parents. What a constant or a factor on the whole signal would change is
left out: the signal is scaled against the noise and the sum standardized afterwards.
"""

# B tasks, P variables (hidden causes first), T variables before the child, N observations, H hidden units

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from causal_arrow.synthetic.noise import TINY


@dataclass(frozen=True)
class Activation:
    """output_gain · squash(input_gain · z) + constant, squash being tanh or, if hard, clipping to [−1, 1]."""

    hard: bool
    input_gain: float
    output_gain: float


# sigmoid(z) = ½ tanh(z/2) + ½, hardsigmoid(z) = clip(z/6 + ½, 0, 1) = ½ hardtanh(z/3) + ½: two kernels serve all four.
# The soft ones come first, so that tasks sorted by activation fall into one soft and one hard block.
ACTIVATIONS: Mapping[str, Activation] = {
    "tanh": Activation(hard=False, input_gain=1.0, output_gain=1.0),
    "sigmoid": Activation(hard=False, input_gain=1 / 2, output_gain=1 / 2),
    "hardtanh": Activation(hard=True, input_gain=1.0, output_gain=1.0),
    "hardsigmoid": Activation(hard=True, input_gain=1 / 3, output_gain=1 / 2),
}

# Magnitudes are uniform between two bounds, drawn once per task from two uniform numbers: name -> (u, v) -> bounds.
WEIGHT_RANGES: Mapping[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "weights_near_one": lambda u, v: (1 - 0.9 * u, 1 + 0.9 * u),  # the paper's [1 − a_w, 1 + a_w], a_w ~ Unif(0, 0.9)
    "wide_weights": lambda u, v: (0.1 + 0.7 * u, 0.1 + 0.7 * u + 0.2 + 1.8 * v),
}


def draw_weight_bounds(law: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Lowest and highest weight magnitude of each task, `law` (B,) indexing WEIGHT_RANGES.  (B,), (B,)"""
    u, v = torch.rand(2, len(law), generator=generator, device=law.device)
    low = high = torch.zeros_like(u)
    for code, bounds in enumerate(WEIGHT_RANGES.values()):
        law_low, law_high = bounds(u, v)
        low, high = torch.where(law == code, law_low, low), torch.where(law == code, law_high, high)
    return low, high


@dataclass(frozen=True)
class Equations:
    """What a mechanism is built from: the graph and the choices of a run of tasks."""

    parents: Tensor  # (B, P, P) float, [b, k, j] = 1 where j is a parent of k
    lowest_weight: Tensor  # (B,)
    highest_weight: Tensor  # (B,)
    activation: Tensor  # (B,) indexes ACTIVATIONS
    soft_tasks: int  # how many of the tasks, the first ones, have a soft activation
    width: Tensor  # (B,) hidden units of each task
    most_width: int  # the widest of them
    generator: torch.Generator

    def uniform(self, *shape: int, low: float = 0.0) -> Tensor:
        """Unif(low, 1) draws."""
        return torch.empty(shape, device=self.parents.device).uniform_(low, 1, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        """Norm(0, 1) draws."""
        return torch.empty(shape, device=self.parents.device).normal_(generator=self.generator)

    def signed_weights(self, *shape: int) -> Tensor:
        """Weights of random sign, magnitudes uniform between the task's bounds.  (B, *shape)"""
        bounds = (-1,) + (1,) * len(shape)
        low, high = self.lowest_weight.view(bounds), self.highest_weight.view(bounds)
        return signed_weights(low, high - low, self.uniform(len(low), *shape, low=-1.0))

    def units_in_use(self) -> Tensor:
        """1 for the hidden units that a task has, 0 for the padding up to the widest.  (B, 1, H)"""
        return (torch.arange(self.most_width, device=self.width.device) < self.width[:, None])[:, None].float()


def signed_weights(low: Tensor, spread: Tensor, uniform: Tensor) -> Tensor:
    """sign(u) · (low + spread · |u|): from u ~ Unif(−1, 1), a random sign and an independent uniform magnitude."""
    return torch.addcmul(torch.copysign(low, uniform), spread, uniform)


class Mechanism(Protocol):
    """What MECHANISMS holds."""

    def __init__(self, equations: Equations) -> None: ...

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        """f(parents) of variable `child`, from `earlier` (B, T, N) standardized and `scale` (B, T).  (B, N)"""
        ...

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        """How wide each task's equations are, from Unif(0, 1) draws.  (B,)"""
        ...

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        """Working memory of one task, for planning."""
        ...


class Linear:
    """wᵀx."""

    def __init__(self, equations: Equations) -> None:
        variables = equations.parents.shape[1]
        self.weights = equations.signed_weights(variables, variables) * equations.parents  # (B, P, P)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        weights = self.weights[:, child, :child]
        if scale is not None:
            # The only mechanism that sees a variable at its raw scale: the others would just saturate.
            weights = weights * scale
        return torch.bmm(weights[:, None], earlier)[:, 0]

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return torch.ones_like(uniform)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return 1


class Mlp:
    """cᵀφ(Wᵀx), h hidden units, all weights of random sign within the task's bounds."""

    most_hidden_units = 64

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        input_gain, output_gain = torch.zeros(2, *equations.activation.shape, device=equations.activation.device)
        for code, activation in enumerate(ACTIVATIONS.values()):
            input_gain = torch.where(equations.activation == code, activation.input_gain, input_gain)
            output_gain = torch.where(equations.activation == code, activation.output_gain, output_gain)
        spread = equations.highest_weight - equations.lowest_weight
        # A weight is sign·low + spread·u: what is not a parent has low = spread = 0.
        self.low = equations.parents * (input_gain * equations.lowest_weight)[:, None, None]  # (B, P, P)
        self.spread = equations.parents * (input_gain * spread)[:, None, None]
        readout = equations.signed_weights(equations.parents.shape[1], equations.most_width)
        self.readout = readout * equations.units_in_use() * output_gain[:, None, None]  # (B, P, H)

    def input_weights(self, child: int) -> Tensor:
        """Wᵀ of variable `child`, times the activation's input gain.  (B, H, T)"""
        # Drawn when needed: for all children at once they would take H times the memory of the graph.
        uniform = self.equations.uniform(len(self.low), self.equations.most_width, child, low=-1.0)
        return signed_weights(self.low[:, child, None, :child], self.spread[:, child, None, :child], uniform)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        hidden = torch.bmm(self.input_weights(child), earlier)  # (B, H, N)
        soft = self.equations.soft_tasks
        hidden[:soft].tanh_()
        hidden[soft:].clamp_(-1, 1)
        return torch.bmm(self.readout[:, child, None], hidden)[:, 0]

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return (1 + Mlp.most_hidden_units * uniform).floor()

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return width + 1


class RandomFeatures:
    """A draw from a Gaussian process with squared-exponential kernel, by 32 random Fourier features.

    cᵀcos(Wᵀx + b) with W ~ Norm(0, 1/ℓ²), b ~ Unif(0, 2π), c ~ Norm(0, 1). The length scale is Unif(0.5, 2) a task,
    times √(number of parents), so that more parents do not make a rougher function.
    """

    features = 32

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        tasks, variables, _ = equations.parents.shape
        length_scale = 0.5 + 1.5 * equations.uniform(tasks, 1, 1)
        parent_count = equations.parents.sum(2, keepdim=True).clamp_min(1)
        self.frequency_scale = equations.parents / (length_scale * parent_count.sqrt())  # (B, P, P)
        self.phase = 2 * math.pi * equations.uniform(tasks, variables, self.features, 1)
        self.readout = equations.normal(tasks, variables, self.features)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        frequencies = self.equations.normal(len(earlier), self.features, child)
        frequencies *= self.frequency_scale[:, child, None, :child]
        hidden = torch.bmm(frequencies, earlier).add_(self.phase[:, child]).cos_()
        return torch.bmm(self.readout[:, child, None], hidden)[:, 0]

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return torch.full_like(uniform, RandomFeatures.features)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return width + 1


class Trees:
    """The sum of one to eight decision trees of depth three, each with one split a level and Norm(0, 1) leaves.

    A split compares one parent with a Norm(0, 0.7²) threshold. Splits go round the parents, so that each parent has one
    at least; where there are more parents than splits, a split compares the sum of several.
    """

    depth = 3
    most_trees = 8

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.trees = equations.most_width
        tasks, variables, _ = equations.parents.shape
        splits = self.depth * self.trees
        # Parents are numbered around a circle from a random start: no parent gets more splits for being early.
        parent_count = equations.parents.sum(2, keepdim=True)  # (B, P, 1)
        number = equations.parents.cumsum(2) + (equations.uniform(tasks, variables, 1) * parent_count).floor()
        own_splits = self.depth * equations.width[:, None, None]
        self.circle = torch.minimum(parent_count, own_splits).clamp_min_(1)  # (B, P, 1)
        self.number = number  # (B, P, P)
        self.split = torch.arange(splits, device=equations.parents.device)[:, None]  # (D·trees, 1)
        self.threshold = 0.7 * equations.normal(tasks, variables, splits, 1)
        leaves = equations.normal(tasks, variables, self.trees, 2**self.depth)
        self.leaves = leaves * equations.units_in_use()[:, :, :, None]
        self.level_value = 2 ** torch.arange(self.depth, device=equations.parents.device)[:, None]

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        number, circle = self.number[:, child, None, :child], self.circle[:, child, None]  # (B, 1, T), (B, 1, 1)
        asks = (torch.remainder(number - self.split, circle) == 0) * self.equations.parents[:, child, None, :child]
        above = torch.bmm(asks, earlier) > self.threshold[:, child]  # (B, D·trees, N)
        leaf = (above.view(len(above), self.trees, self.depth, -1) * self.level_value).sum(2)  # (B, trees, N)
        return self.leaves[:, child].gather(2, leaf).sum(1)

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return (1 + Trees.most_trees * uniform).floor()

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return 14 * width


class Interactions:
    """w₀ᵀx + Σ_m c_m (u_mᵀx)(v_mᵀx), one to four products, weights of random sign within the task's bounds."""

    most_products = 4

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.products = equations.most_width
        variables = equations.parents.shape[1]
        self.low = equations.parents * equations.lowest_weight[:, None, None]  # (B, P, P)
        self.spread = equations.parents * (equations.highest_weight - equations.lowest_weight)[:, None, None]
        self.readout = equations.signed_weights(variables, self.products) * equations.units_in_use()

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        uniform = self.equations.uniform(len(earlier), 2 * self.products + 1, child, low=-1.0)
        weights = signed_weights(self.low[:, child, None, :child], self.spread[:, child, None, :child], uniform)
        sums = torch.bmm(weights, earlier)
        products = sums[:, 1 : self.products + 1] * sums[:, self.products + 1 :]
        return torch.baddbmm(sums[:, :1], self.readout[:, child, None], products)[:, 0]

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return (1 + Interactions.most_products * uniform).floor()

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return 3 * width + 2


class Splines:
    """Σ_j w_j g_j(x_j), each g_j a random smooth cubic spline. Only ever for evaluation.

    g_j has eight cubic B-splines on equal knots 1.2 apart, which cover [−3, 3], and is constant beyond. Its
    coefficients are Norm(0, 1), then scaled so that g_j(x_j) has variance 1 on the data. The w_j are weights as above.
    """

    knot_distance = 1.2
    basis_size = 8

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.weights = equations.signed_weights(*equations.parents.shape[1:]) * equations.parents  # (B, P, P)
        self.known = 0  # variables whose basis functions are in the two tables below, filled as values come in
        self.basis_values = torch.empty(0)  # (B, P, 8, N)
        self.basis_covariance = torch.empty(0)  # (B, P, 8, 8)

    def basis(self, values: Tensor) -> Tensor:
        """The eight B-splines at `values`.  (..., N) -> (..., 8, N)"""
        places = torch.arange(self.basis_size, device=values.device)[:, None] - (self.basis_size - 1) / 2
        distance = (values.clamp(-3, 3)[..., None, :] / self.knot_distance - places).abs()
        return ((2 - distance).clamp_min(0) ** 3 - 4 * (1 - distance).clamp_min(0) ** 3) / 6

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        tasks, _, observations = earlier.shape
        if self.known == 0:
            variables = self.weights.shape[1]
            self.basis_values = earlier.new_empty(tasks, variables, self.basis_size, observations)
            self.basis_covariance = earlier.new_empty(tasks, variables, self.basis_size, self.basis_size)
        new = slice(self.known, child)
        basis = self.basis(earlier[:, new])
        basis = basis - basis.mean(-1, keepdim=True)
        self.basis_values[:, new] = basis
        self.basis_covariance[:, new] = basis @ basis.mT / observations
        self.known = child

        coefficients = self.equations.normal(tasks, child, 1, self.basis_size)
        variance = coefficients @ self.basis_covariance[:, :child] @ coefficients.mT  # (B, T, 1, 1)
        coefficients *= self.weights[:, child, :child, None, None] * variance.clamp_min(TINY).rsqrt()
        return torch.bmm(coefficients.view(tasks, 1, -1), self.basis_values[:, :child].flatten(1, 2))[:, 0]

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return torch.ones_like(uniform)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return (variables + 4) * Splines.basis_size


class Periodic:
    """Σ_j w_j sin(2π x_j / ℓ_j + b_j), periods ℓ_j ~ Unif(1, 2), phases b_j ~ Unif(0, 2π). Only ever for evaluation.

    Causes have standard deviation 1, so that most of one passes through two to four periods.
    """

    def __init__(self, equations: Equations) -> None:
        self.weights = equations.signed_weights(*equations.parents.shape[1:]) * equations.parents  # (B, P, P)
        self.period = 1 + equations.uniform(*equations.parents.shape)
        self.phase = 2 * math.pi * equations.uniform(*equations.parents.shape)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        frequency = 2 * math.pi / self.period[:, child, :child, None]
        waves = torch.addcmul(self.phase[:, child, :child, None], frequency, earlier).sin_()  # (B, T, N)
        return torch.bmm(self.weights[:, child, None, :child], waves)[:, 0]

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return torch.ones_like(uniform)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return variables + 1


class Distance:
    """√(Σ_j (w_j (x_j − c_j))²), how far the causes are from a point, c_j ~ Unif(−1, 1). Only ever for evaluation.

    The effect of one cause is a V; with several it depends on where the others are.
    """

    def __init__(self, equations: Equations) -> None:
        self.weights = equations.signed_weights(*equations.parents.shape[1:]) * equations.parents  # (B, P, P)
        self.center = equations.uniform(*equations.parents.shape, low=-1.0)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        # Not from sums of squares, three products that would do with less memory: near the point they cancel.
        apart = (earlier - self.center[:, child, :child, None]).mul_(self.weights[:, child, :child, None])  # (B, T, N)
        signal: Tensor = torch.linalg.vector_norm(apart, dim=1)
        return signal

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return torch.ones_like(uniform)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return variables + 1


class Maximum:
    """max(0, max_j w_j x_j): at any observation one cause counts, or none. Only ever for evaluation."""

    def __init__(self, equations: Equations) -> None:
        self.weights = equations.signed_weights(*equations.parents.shape[1:]) * equations.parents  # (B, P, P)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        # What is not a parent has weight 0 and puts in the 0 that the formula asks for anyway.
        return (self.weights[:, child, :child, None] * earlier).amax(1).clamp_min_(0)

    @staticmethod
    def draw_width(uniform: Tensor) -> Tensor:
        return torch.ones_like(uniform)

    @staticmethod
    def floats_per_observation(width: int, variables: int) -> int:
        return variables + 1


MECHANISMS: Mapping[str, type[Mechanism]] = {
    "linear": Linear,
    "mlp": Mlp,
    "random_features": RandomFeatures,
    "trees": Trees,
    "interactions": Interactions,
    "splines": Splines,
    "periodic": Periodic,
    "distance": Distance,
    "maximum": Maximum,
}
