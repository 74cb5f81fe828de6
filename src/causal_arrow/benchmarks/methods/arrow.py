"""Arrow with any weights: bundled ones by name, a folder or file of weights, or a published ArrowFM checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causal_arrow._version import __version__
from causal_arrow.benchmarks.datasets import FloatArray
from causal_arrow.benchmarks.methods.protocol import Answer, Method, MethodOptions, Solve, file_checksum, timed
from causal_arrow.errors import BenchmarkError

if TYPE_CHECKING:
    from causal_arrow.network.model import ArrowModel

PREFERRED_BUNDLED_MODEL = "base"


def prepare_arrow(argument: str, options: MethodOptions, *, name: str, rule: str) -> Method:
    """Arrow with the weights after the colon, else those of the options, else the bundled ones."""
    source = argument or options.weights or _bundled_model()
    checksum = file_checksum(_weights_file(source))
    label = weights_label(source)
    return Method(
        name=f"{name}:{label}" if argument else name,
        settings={"weights": label, "weights_checksum": checksum, "rule": rule},
        versions={"causal-arrow": __version__},
        start=lambda: start_arrow(source, rule),
    )


def weights_label(source: str) -> str:
    """What to call weights in records, which travel: no path, only the last name in it that says something."""
    names = [part for part in Path(source).parts if Path(part).stem not in ("weights", "model")]
    return names[-1] if names else source


def start_arrow(source: str, rule: str) -> Solve:
    """Loads the weights, and answers a small table once so that no dataset pays for what torch does the first time."""
    import torch

    from causal_arrow.network.checkpoint import load_model

    torch.set_num_threads(1)
    model = load_model(source)

    def solve(data: FloatArray, generator: np.random.Generator) -> Answer:
        (adjacency, probabilities), seconds = timed(lambda: infer(model, data, rule))
        # The rule decides on the graph alone. The probabilities are those of the plain method, and judged there.
        return Answer(adjacency, probabilities, probabilities if rule == "map" else None, seconds)

    solve(np.random.default_rng(0).standard_normal((20, 3)), np.random.default_rng(0))
    return solve


def infer(model: ArrowModel, data: FloatArray, rule: str = "map") -> tuple[np.ndarray, np.ndarray]:
    """A graph by the rule, and the probability of every edge, by a model on whatever device.  (P, P) each"""
    import torch

    from causal_arrow.discovery.inference import chunk_size
    from causal_arrow.graphs.decoding import decode
    from causal_arrow.tables.scales import chosen_reading, readings, with_logarithms

    with torch.inference_mode():
        distributions = []
        for columns in readings(data, "auto"):
            values = np.ascontiguousarray(with_logarithms(data, columns))
            table = torch.from_numpy(values)[None].to(next(model.parameters()).device)  # (1, N, P)
            distributions.append(model(table, observations_per_chunk=chunk_size(model, *data.shape)).to("cpu")[0])
        distribution = distributions[chosen_reading([float(distribution.doubt()) for distribution in distributions])]
        adjacency = (
            distribution.most_probable_dag().numpy() if rule == "map" else decode(distribution, rule=rule).adjacency
        )
        return adjacency, distribution.edge_marginals().double().numpy()


def _bundled_model() -> str:
    from causal_arrow.network.checkpoint import bundled_models

    names = list(bundled_models())
    if not names:
        raise BenchmarkError("This installation has no weights of its own. Say which to use: --weights PATH")
    return PREFERRED_BUNDLED_MODEL if PREFERRED_BUNDLED_MODEL in names else names[0]


def _weights_file(source: str) -> Path:
    """The file that determines the answers."""
    from causal_arrow.network.checkpoint import WEIGHTS_FILE, bundled_models

    path = bundled_models().get(source, Path(source).expanduser())
    path = path / WEIGHTS_FILE if path.is_dir() else path
    if not path.is_file():
        raise BenchmarkError(
            f"No weights at {source!r}: expected a bundled model ({', '.join(bundled_models()) or 'there are none'}), "
            f"a folder with {WEIGHTS_FILE}, or a file."
        )
    return path
