"""What several test files share: a small network with random weights, saved as a model, and a table to show it.

Imports wait for the fixtures: tests of the lower layers also run where only torch, numpy and safetensors are installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pandas as pd

    from causal_arrow.model import ArrowModel


@pytest.fixture(scope="session")
def small_model() -> ArrowModel:
    """A network without training but with random weights everywhere, so that it has an opinion on every table."""
    import torch

    from causal_arrow.encoders.pairwise import PairwiseConfig
    from causal_arrow.model import ArrowConfig, ArrowModel

    small = PairwiseConfig(cell_width=16, pair_width=16, stages=1, pair_blocks=1, mixing_heads=2, outer_width=4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ArrowModel(ArrowConfig(small))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.5 * torch.randn_like(parameter))
            model.encoder.skeleton_head.out.bias.zero_()
    return model.eval()


@pytest.fixture(scope="session")
def small_model_folder(small_model: ArrowModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `save_model` makes of it."""
    from causal_arrow.checkpoint import save_model

    folder = tmp_path_factory.mktemp("models") / "small"
    save_model(small_model, folder)
    return folder


@pytest.fixture(scope="session")
def usual_model(small_model_folder: Path) -> str:
    """What a person would use: the bundled model where there is one, the small one in a checkout without weights."""
    from causal_arrow.checkpoint import bundled_models

    return "arrow-base" if "arrow-base" in bundled_models() else str(small_model_folder)


@pytest.fixture
def table() -> pd.DataFrame:
    """Six variables with relations of several kinds, 120 observations, values in strange units."""
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(7)
    a, b = random.normal(size=(2, 120))
    c = a + 0.7 * b + random.laplace(size=120)
    d = np.tanh(c) + 0.3 * random.normal(size=120)
    e = random.exponential(size=120)
    f = 0.5 * d - e + random.normal(size=120)
    return pd.DataFrame({"age": 40 + 9 * a, "dose": b, "blood pressure": 1e4 * c, "d": d, "e": 1e-3 * e, "outcome": f})
