"""A small network with random weights, for the tests and for the generator of bad inputs."""

from __future__ import annotations

import dataclasses

import torch

from causal_arrow.network.encoders.pairwise import PairwiseConfig
from causal_arrow.network.encoders.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE
from causal_arrow.network.model import ArrowConfig, ArrowModel


def random_network(any_table: bool = False) -> ArrowModel:
    """A network without training but with random weights everywhere, so that it has an opinion on every table.

    any_table: it also reads categories, missing cells and experiments, and tells hidden common causes.
    """
    small = PairwiseConfig(cell_width=16, pair_width=16, stages=1, pair_blocks=1, mixing_heads=2, outer_width=4)
    if any_table:
        small = dataclasses.replace(
            small,
            channels=CHANNELS_OF_ANY_TABLE,
            statistics=STATISTICS_OF_ANY_TABLE,
            canonical_signs=True,
            confounding_head=True,
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ArrowModel(ArrowConfig(small))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.5 * torch.randn_like(parameter))
            model.encoder.skeleton_head.out.bias.fill_(7.0 if any_table else 0.0)
            if any_table:
                model.encoder.confounding_head.out.bias.zero_()
    return model.eval()
