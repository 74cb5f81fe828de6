"""Muon for matrices, AdamW for the rest; the schedule of the learning rate; the averaged weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from causal_arrow_lab.pretraining.config import OptimizationConfig

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
_NEWTON_SCHULZ_STEPS = 5


def orthogonalize(matrices: Tensor) -> Tensor:
    """Approximate the nearest orthogonal matrices: a quintic iteration moves singular values to 1.  (K, M, N)"""
    a, b, c = _NEWTON_SCHULZ
    x = matrices.bfloat16()  # which suffices: singular values need only be near 1
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-7)
    for _ in range(_NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    orthogonal: Tensor = x.mT if tall else x
    return orthogonal


class Muon(torch.optim.Optimizer):
    """Momentum whose matrices are orthogonalized before each step (Jordan et al. 2024), scaled to AdamW's step size.

    The same as torch.optim.Muon with adjust_lr_fn="match_rms_adamw", but matrices of one shape are orthogonalized
    together: the network has many small ones, and a GPU would otherwise spend the step on launches.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float, momentum: float) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
                for parameter in parameters:
                    if "momentum" not in self.state[parameter]:
                        self.state[parameter]["momentum"] = torch.zeros_like(parameter)
                momenta = [self.state[parameter]["momentum"] for parameter in parameters]
                torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
                ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
                updates = orthogonalize(torch.stack(ahead)).float()
                scale = 0.2 * max(shape) ** 0.5
                torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(parameters, list(updates.unbind(0)), alpha=-group["lr"] * scale)


def _is_hidden_matrix(name: str, parameter: Tensor) -> bool:
    return parameter.ndim == 2 and min(parameter.shape) > 8 and "embedding" not in name


def build_optimizers(model: nn.Module, config: OptimizationConfig) -> list[torch.optim.Optimizer]:
    """Make the optimizers, which share the parameters of a model."""
    fused = next(model.parameters()).is_cuda

    def adamw(parameters: list[nn.Parameter], rate: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=rate, betas=config.betas, weight_decay=config.weight_decay, fused=fused)

    if config.optimizer == "adamw":
        return [adamw(list(model.parameters()), config.learning_rate)]
    matrices = [p for name, p in model.named_parameters() if _is_hidden_matrix(name, p)]
    rest = [p for name, p in model.named_parameters() if not _is_hidden_matrix(name, p)]
    return [
        Muon(matrices, config.learning_rate, config.weight_decay, config.momentum),
        adamw(rest, config.adamw_learning_rate),
    ]


def schedule(config: OptimizationConfig, step: int) -> float:
    """Factor of the learning rate at a step: up over warmup_steps, then 1, then down over the last decay_steps."""
    up = min(1.0, (step + 1) / max(1, config.warmup_steps))
    down = min(1.0, (config.steps - step) / config.decay_steps) if config.decay_steps else 1.0
    return up * max(0.0, down)


def set_learning_rates(optimizers: list[torch.optim.Optimizer], share: float) -> None:
    """Set every group to `share` of its initial rate."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = share * group.setdefault("full_lr", group["lr"])


class AveragedWeights:
    """An exponential moving average of a model's weights, which is validated and shipped."""

    def __init__(self, model: nn.Module, keep: float) -> None:
        self.keep = keep
        self.tensors = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Move towards the model, faster in the first steps, so that the initial weights are forgotten."""
        keep = min(self.keep, (1 + step) / (10 + step))
        targets = [parameter.detach() for parameter in model.parameters()]
        torch._foreach_lerp_(list(self.tensors.values()), targets, 1 - keep)
