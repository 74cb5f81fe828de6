"""Mechanisms: the signal f(parents) of structural equations, for many tasks at once.

A mechanism object holds the equations of one run of tasks. `signal(child, earlier, scale)` computes the signal of
variable `child` in every task from the standardized values of all variables before it; variables that are not parents
have weight zero. Dense products over all earlier variables read a few rows too many but need no index lists: in bytes
and launches they cost less than gathering the parents. Constants and factors on the whole signal are left out: the
signal is scaled against the noise and the sum standardized afterwards.
"""

# B tasks, P variables (hidden causes first), T variables before the child, N observations, H hidden units

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from causal_arrow_lab.synthetic._noise import TINY, look_up


@dataclass(frozen=True)
class Activation:
    """output_gain · squash(input_gain · z) + constant, where squash is tanh or, if hard, clipping to [−1, 1]."""

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

# Magnitudes of weights are uniform between two bounds, drawn once per task from two uniform numbers (u, v).
WEIGHT_RANGES: Mapping[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "weights_near_one": lambda u, v: (1 - 0.9 * u, 1 + 0.9 * u),  # the paper's [1 − a_w, 1 + a_w], a_w ~ Unif(0, 0.9)
    "wide_weights": lambda u, v: (0.1 + 0.7 * u, 0.1 + 0.7 * u + 0.2 + 1.8 * v),
}


def draw_weight_bounds(ranges: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw the smallest and largest weight of each task; `ranges` (B,) indexes WEIGHT_RANGES.  (B,), (B,)"""
    u, v = torch.rand(2, len(ranges), generator=generator, device=ranges.device)
    low, high = zip(*(bounds(u, v) for bounds in WEIGHT_RANGES.values()), strict=True)
    return look_up(ranges, low), look_up(ranges, high)


@dataclass(frozen=True)
class Equations:
    """The graphs and choices of a run of tasks, from which a mechanism is built."""

    parents: Tensor  # (B, P, P) float, [b, k, j] = 1 where j is a parent of k
    min_weight: Tensor  # (B,)
    max_weight: Tensor  # (B,)
    activation: Tensor  # (B,) indexes ACTIVATIONS
    soft_tasks: int  # the first tasks, this many, have a soft activation
    width: Tensor  # (B,) hidden units of each task
    max_width: int  # the widest of them
    generator: torch.Generator

    def uniform(self, *shape: int, low: float = 0.0) -> Tensor:
        """Draw Unif(low, 1)."""
        return torch.empty(shape, device=self.parents.device).uniform_(low, 1, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        """Draw Norm(0, 1)."""
        return torch.empty(shape, device=self.parents.device).normal_(generator=self.generator)

    def signed_weights(self, *shape: int) -> Tensor:
        """Draw weights of random sign, with magnitudes uniform between the task's bounds.  (B, *shape)"""
        bounds = (-1,) + (1,) * len(shape)
        low, high = self.min_weight.view(bounds), self.max_weight.view(bounds)
        return signed_weights(low, high - low, self.uniform(len(low), *shape, low=-1.0))

    def parent_weights(self) -> Tensor:
        """Draw one signed weight per parent; 0 for other variables.  (B, P, P)"""
        return self.signed_weights(*self.parents.shape[1:]) * self.parents

    def units_in_use(self) -> Tensor:
        """1 for the hidden units of a task, 0 for the padding up to the widest.  (B, 1, H)"""
        return (torch.arange(self.max_width, device=self.width.device) < self.width[:, None])[:, None].float()


def signed_weights(low: Tensor, spread: Tensor, uniform: Tensor) -> Tensor:
    """sign(u) · (low + spread · |u|): a random sign and an independent uniform magnitude if u ~ Unif(−1, 1)."""
    return torch.addcmul(torch.copysign(low, uniform), spread, uniform)


class Floats(NamedTuple):
    """Working memory of a task for one observation, for planning: so much for each of these."""

    variable: int = 0
    width: int = 0
    rest: int = 0

    def total(self, variables: int, width: int) -> int:
        """The floats of a task of this size."""
        return self.variable * variables + self.width * width + self.rest


class Mechanism(Protocol):
    """An entry of MECHANISMS."""

    def __init__(self, equations: Equations) -> None: ...

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        """f(parents) of variable `child`, from `earlier` (B, T, N) standardized and `scale` (B, T).  (B, N)"""
        ...

    max_width: ClassVar[int] = 1
    """Widths are uniform from 1 to this."""

    floats: ClassVar[Floats] = Floats(variable=1, rest=1)

    @classmethod
    def draw_width(cls, uniform: Tensor) -> Tensor:
        """Draw the width of each task's equations, given Unif(0, 1) numbers.  (B,)"""
        return (1 + cls.max_width * uniform).floor() if cls.max_width > 1 else torch.ones_like(uniform)


class WeightedSum(Mechanism):
    """wᵀx."""

    floats = Floats(rest=1)

    def __init__(self, equations: Equations) -> None:
        self.weights = equations.parent_weights()  # (B, P, P)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        weights = self.weights[:, child, :child]
        if scale is not None:
            # The only mechanism that sees a variable at its raw scale: the others would saturate.
            weights = weights * scale
        return torch.bmm(weights[:, None], earlier)[:, 0]


class Mlp(Mechanism):
    """cᵀφ(Wᵀx) with h hidden units, all weights of random sign within the task's bounds."""

    max_width = 64
    floats = Floats(width=1, rest=1)

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        input_gain = look_up(equations.activation, (each.input_gain for each in ACTIVATIONS.values()))
        output_gain = look_up(equations.activation, (each.output_gain for each in ACTIVATIONS.values()))
        spread = equations.max_weight - equations.min_weight
        # A weight is sign·low + spread·u, with low = spread = 0 for variables that are not parents.
        self.low = equations.parents * (input_gain * equations.min_weight)[:, None, None]  # (B, P, P)
        self.spread = equations.parents * (input_gain * spread)[:, None, None]
        readout = equations.signed_weights(equations.parents.shape[1], equations.max_width)
        self.readout = readout * equations.units_in_use() * output_gain[:, None, None]  # (B, P, H)

    def input_weights(self, child: int) -> Tensor:
        """Draw Wᵀ of variable `child`, times the activation's input gain.  (B, H, T)"""
        # Drawn when needed: for all children at once they would take H times the memory of the graph.
        uniform = self.equations.uniform(len(self.low), self.equations.max_width, child, low=-1.0)
        return signed_weights(self.low[:, child, None, :child], self.spread[:, child, None, :child], uniform)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        hidden = torch.bmm(self.input_weights(child), earlier)  # (B, H, N)
        soft = self.equations.soft_tasks
        hidden[:soft].tanh_()
        hidden[soft:].clamp_(-1, 1)
        return torch.bmm(self.readout[:, child, None], hidden)[:, 0]


class RandomFeatures(Mechanism):
    """A draw from a Gaussian process with squared-exponential kernel, by 32 random Fourier features.

    cᵀcos(Wᵀx + b) with W ~ Norm(0, 1/ℓ²), b ~ Unif(0, 2π), c ~ Norm(0, 1). The length scale is Unif(0.5, 2) per task,
    times √(number of parents), so that more parents do not make a rougher function.
    """

    features = 32
    floats = Floats(rest=33)

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


class Trees(Mechanism):
    """The sum of one to eight decision trees of depth three, each with one split per level and Norm(0, 1) leaves.

    A split compares one parent with a Norm(0, 0.7²) threshold. Parents take turns, so that each has at least one split;
    where there are more parents than splits, a split compares the sum of several.
    """

    depth = 3
    max_width = 8
    floats = Floats(width=14)

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.trees = equations.max_width
        tasks, variables, _ = equations.parents.shape
        splits = self.depth * self.trees
        # Parents are numbered around a circle from a random start: no parent gets more splits for being early.
        parent_count = equations.parents.sum(2, keepdim=True)  # (B, P, 1)
        start = (equations.uniform(tasks, variables, 1) * parent_count).floor()
        self.number = equations.parents.cumsum(2) + start  # (B, P, P)
        self.circle = parent_count.minimum(self.depth * equations.width[:, None, None]).clamp_min_(1)  # (B, P, 1)
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


class Interactions(Mechanism):
    """w₀ᵀx + Σ_m c_m (u_mᵀx)(v_mᵀx) with one to four products, weights of random sign within the task's bounds."""

    max_width = 4
    floats = Floats(width=3, rest=2)

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.products = equations.max_width
        variables = equations.parents.shape[1]
        self.low = equations.parents * equations.min_weight[:, None, None]  # (B, P, P)
        self.spread = equations.parents * (equations.max_weight - equations.min_weight)[:, None, None]
        self.readout = equations.signed_weights(variables, self.products) * equations.units_in_use()

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        uniform = self.equations.uniform(len(earlier), 2 * self.products + 1, child, low=-1.0)
        weights = signed_weights(self.low[:, child, None, :child], self.spread[:, child, None, :child], uniform)
        sums = torch.bmm(weights, earlier)
        products = sums[:, 1 : self.products + 1] * sums[:, self.products + 1 :]
        return torch.baddbmm(sums[:, :1], self.readout[:, child, None], products)[:, 0]


class EarlierVariables:
    """Numbers for the variables before a child, computed once: `numbers_of(slice of new ones, their values)`."""

    def __init__(self, variables: int, numbers_of: Callable[[slice, Tensor], Tensor]) -> None:
        self.variables, self.numbers_of = variables, numbers_of
        self.numbers: Tensor | None = None  # (B, P, ...)
        self.known = 0

    def before(self, child: int, earlier: Tensor) -> Tensor:
        """Numbers for the variables before the child, whose values or codes are `earlier`.  (B, T, ...)"""
        new = slice(self.known, child)
        found = self.numbers_of(new, earlier[:, new])
        if self.numbers is None:
            self.numbers = found.new_empty(len(earlier), self.variables, *found.shape[2:])
        self.numbers[:, new] = found
        self.known = child
        return self.numbers[:, :child]


class Splines(Mechanism):
    """Σ_j w_j g_j(x_j), each g_j a random smooth cubic spline. For evaluation only.

    g_j has eight cubic B-splines on equal knots 1.2 apart, which cover [−3, 3], and is constant beyond. Its
    coefficients are Norm(0, 1), then scaled so that g_j(x_j) has variance 1 on the data. The w_j are weights as above.
    """

    knot_distance = 1.2
    basis_size = 8
    floats = Floats(variable=basis_size, rest=4 * basis_size)

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.weights = equations.parent_weights()  # (B, P, P)
        variables = self.weights.shape[1]
        self.centered = EarlierVariables(variables, lambda _, values: self.centered_basis(values))  # (B, P, 8, N)
        self.covariance = EarlierVariables(variables, lambda _, basis: basis @ basis.mT / basis.shape[-1])

    def basis(self, values: Tensor) -> Tensor:
        """The eight B-splines at `values`.  (..., N) -> (..., 8, N)"""
        centers = torch.arange(self.basis_size, device=values.device)[:, None] - (self.basis_size - 1) / 2
        distance = (values.clamp(-3, 3)[..., None, :] / self.knot_distance - centers).abs()
        return ((2 - distance).clamp_min(0) ** 3 - 4 * (1 - distance).clamp_min(0) ** 3) / 6

    def centered_basis(self, values: Tensor) -> Tensor:
        """The B-splines minus their means.  (..., N) -> (..., 8, N)"""
        basis = self.basis(values)
        return basis - basis.mean(-1, keepdim=True)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        tasks = len(earlier)
        basis = self.centered.before(child, earlier)
        covariance = self.covariance.before(child, basis)
        coefficients = self.equations.normal(tasks, child, 1, self.basis_size)
        variance = coefficients @ covariance @ coefficients.mT  # (B, T, 1, 1)
        coefficients *= self.weights[:, child, :child, None, None] * variance.clamp_min(TINY).rsqrt()
        return torch.bmm(coefficients.view(tasks, 1, -1), basis.flatten(1, 2))[:, 0]


class Periodic(Mechanism):
    """Σ_j w_j sin(2π x_j / ℓ_j + b_j), periods ℓ_j ~ Unif(1, 2), phases b_j ~ Unif(0, 2π). For evaluation only.

    Causes have standard deviation 1, so that most values of one span two to four periods.
    """

    def __init__(self, equations: Equations) -> None:
        self.weights = equations.parent_weights()  # (B, P, P)
        self.period = 1 + equations.uniform(*equations.parents.shape)
        self.phase = 2 * math.pi * equations.uniform(*equations.parents.shape)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        frequency = 2 * math.pi / self.period[:, child, :child, None]
        waves = torch.addcmul(self.phase[:, child, :child, None], frequency, earlier).sin_()  # (B, T, N)
        return torch.bmm(self.weights[:, child, None, :child], waves)[:, 0]


class Distance(Mechanism):
    """√(Σ_j (w_j (x_j − c_j))²), the distance of the causes from a point, c_j ~ Unif(−1, 1). For evaluation only.

    The effect of one cause is V-shaped; with several it depends on the values of the others.
    """

    def __init__(self, equations: Equations) -> None:
        self.weights = equations.parent_weights()  # (B, P, P)
        self.center = equations.uniform(*equations.parents.shape, low=-1.0)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        # Sums of squares would need less memory, but near the point they cancel.
        apart = (earlier - self.center[:, child, :child, None]).mul_(self.weights[:, child, :child, None])  # (B, T, N)
        signal: Tensor = torch.linalg.vector_norm(apart, dim=1)
        return signal


class Maximum(Mechanism):
    """max(0, max_j w_j x_j): each observation depends on one cause, or on none. For evaluation only."""

    def __init__(self, equations: Equations) -> None:
        self.weights = equations.parent_weights()  # (B, P, P)

    def signal(self, child: int, earlier: Tensor, scale: Tensor | None) -> Tensor:
        # Variables that are not parents have weight 0, which is in the formula anyway.
        return (self.weights[:, child, :child, None] * earlier).amax(1).clamp_min_(0)


MECHANISMS: Mapping[str, type[Mechanism]] = {
    "linear": WeightedSum,
    "mlp": Mlp,
    "random_features": RandomFeatures,
    "trees": Trees,
    "interactions": Interactions,
    "splines": Splines,
    "periodic": Periodic,
    "distance": Distance,
    "maximum": Maximum,
}
