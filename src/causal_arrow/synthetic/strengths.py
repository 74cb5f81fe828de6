"""How strongly causes determine their effects: target R² laws, and raw structural equations without a target.

Either way a variable becomes signal + sd · noise with noise of variance 1 and
    sd² = relative · var(signal) + absolute.
With a target, relative = (1 − R²) / R² and absolute = 0. A raw equation has relative = 0 and a noise variance of its
own; so has a root, whose signal is zero.
"""

# B tasks, P variables

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from causal_arrow.synthetic.noise import beta

LARGEST_LOGIT_R2 = math.log(0.999 / 0.001)
SMALLEST_LOGIT_R2 = math.log(0.01 / 0.99)

# From a Beta(a, b) draw in [0, 1] and the number of causes to the noise's share of the variance, 1 − R². (Not R²: for
# the sake of digits when it is near 1.) a and b are Unif(1, 10), drawn once per task.
SIGNAL_STRENGTHS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "moderate_signal": lambda draw, causes: 0.9 - 0.8 * draw,  # the paper's R² in [0.1, 0.9]
    "weak_signal": lambda draw, causes: 0.99 - 0.19 * draw,  # R² in [0.01, 0.2]
    "strong_signal": lambda draw, causes: 0.1 * 0.01**draw,  # R² in [0.9, 0.999], 1 − R² even on a log scale
    "spread_signal": lambda draw, causes: torch.sigmoid(  # R² in [0.01, 0.999], even on the logit scale
        -(SMALLEST_LOGIT_R2 + (LARGEST_LOGIT_R2 - SMALLEST_LOGIT_R2) * draw)
    ),
    # Every cause adds its share, as genes do to a trait: R² / (1 − R²) is their number times 0.02 to 0.5, even on a log
    # scale. With a target that knows nothing of their number, many causes of one effect are each too weak to be seen.
    "accumulating_signal": lambda draw, causes: 1 / (1 + causes * 0.02 * 25**draw),
}

# Raw structural equations: the noise has this standard deviation, exp(spread · Unif(−1, 1)), and nothing is
# standardized along the way, so that variances, and R² with them, grow from cause to effect. None: targets instead.
SCALES: Mapping[str, float | None] = {
    "restandardized": None,
    "raw_equal_noise": 0.0,
    "raw_unequal_noise": 1.5,
}


def draw_noise_variances(
    strength: Tensor, scale: Tensor, causes: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """`relative` and `absolute` noise variance of every variable.  (B, P), (B, P)

    `strength` (B,) indexes SIGNAL_STRENGTHS and `scale` (B,) indexes SCALES; `causes` (B, P) is how many each has.
    """
    tasks, variables = causes.shape
    device = causes.device
    has_causes = causes > 0
    shapes = 1 + 9 * torch.rand(2, tasks, 1, generator=generator, device=device).expand(2, tasks, variables)
    draw = beta(shapes[0], shapes[1], generator)
    share = torch.zeros_like(draw)
    for code, law in enumerate(SIGNAL_STRENGTHS.values()):
        share = torch.where(strength[:, None] == code, law(draw, causes), share)

    exponent = 2 * torch.rand(tasks, variables, generator=generator, device=device) - 1
    absolute = torch.where(has_causes, 0.0, 1.0)
    raw = torch.zeros_like(has_causes)
    for code, spread in enumerate(SCALES.values()):
        if spread is not None:
            here = scale[:, None] == code
            absolute = torch.where(here, torch.exp(2 * spread * exponent), absolute)
            raw = raw | here
    relative = torch.where(raw | ~has_causes, 0.0, share / (1 - share))
    return relative, absolute
