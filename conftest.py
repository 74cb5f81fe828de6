"""What several test files share: a small network with random weights, saved as a model, and a table to show it.

Imports wait for the fixtures: tests of the lower layers also run where only numpy and safetensors are installed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pandas as pd

    from causal_arrow.network.pairwise import PairwiseNetwork


if importlib.util.find_spec("causal_arrow_lab") is None:
    DOCUMENTS = ("code_blocks", "documents", "pages", "reference", "release")  # of both distributions
    collect_ignore = [f"tests/test_{name}.py" for name in DOCUMENTS]


@pytest.fixture(scope="session")
def small_model() -> PairwiseNetwork:
    """A network without training but with random weights everywhere, so that it has an opinion on every table."""
    from small_network import random_network

    return random_network()


@pytest.fixture(scope="session")
def small_model_folder(small_model: PairwiseNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its weights."""
    from small_network import save_network

    folder = tmp_path_factory.mktemp("models") / "small"
    save_network(small_model, folder)
    return folder


@pytest.fixture(scope="session")
def any_table_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small random network that reads tables of any kind and answers about hidden common causes."""
    from small_network import random_network, save_network

    folder = tmp_path_factory.mktemp("models") / "any-table"
    save_network(random_network(any_table=True), folder)
    return folder


@pytest.fixture(scope="session")
def usual_model(small_model_folder: Path) -> str:
    """What a person would use: the bundled model where there is one, the small one in a checkout without weights."""
    from causal_arrow.network import bundled_models

    return "arrow-base" if "arrow-base" in bundled_models() else str(small_model_folder)


@pytest.fixture
def network_with_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Noise of 1e-6 on probabilities of the network, here and in processes that are started meanwhile."""
    from joblib.externals.loky import get_reusable_executor

    from causal_arrow.graphs.graph_distribution import GraphDistribution
    from perturbation import noise

    get_reusable_executor().shutdown()  # its processes have no noise, and those of later tests must have none
    folders = [str(Path(noise.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    monkeypatch.setenv(noise.SEED, "1")
    monkeypatch.setattr(GraphDistribution, "with_copies", noise.with_noise(GraphDistribution.with_copies, 1))
    yield
    get_reusable_executor().shutdown()


@pytest.fixture
def program() -> Callable[[list[str]], None]:
    """The program that `run` runs: causal-arrow, and for the lab's tests causal-arrow-lab."""
    from causal_arrow.cli import main

    return main


@pytest.fixture
def run(
    program: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the program in this process: exit status, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            program([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(leaving.value.code or 0), captured.out, captured.err

    return run


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
