"""The pictures of the gallery: `python docs/make_gallery.py`.

Graphs of benchmark networks, with probabilities made up so that every kind of edge occurs; and, where weights are
bundled, the network's own answer for the Sachs table.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from causal_arrow import inference, pictures
from causal_arrow.answer import Answer
from causal_arrow.benchmarks.networks import load_network
from causal_arrow.benchmarks.sachs import OBSERVATIONAL, consensus_graph, load_sachs
from causal_arrow.checkpoint import bundled_models
from causal_arrow.dag import topological_order
from causal_arrow.graph_distribution import SkeletonOrder
from causal_arrow.knowledge import Knowledge
from causal_arrow.tables import read_table

IMAGES = Path(__file__).parent / "images"
MOST_BYTES = 200_000


def doubtful(names: tuple[str, ...], adjacency: np.ndarray, known: Knowledge | None = None) -> Answer:
    """An answer with the edges of a graph, sure of some of them and of some directions."""
    random = np.random.default_rng(3)
    order = topological_order(adjacency)
    scores = np.empty(len(names))
    scores[order] = -np.cumsum(random.exponential(0.6, size=len(names)))
    edges = np.where(adjacency | adjacency.T, random.uniform(0.2, 5, size=adjacency.shape), -random.exponential(3))
    logits = np.triu(edges, k=1)
    return Answer(names, SkeletonOrder(torch.tensor(logits + logits.T), torch.tensor(scores)), known or Knowledge())


def main() -> None:
    _, proteins = load_sachs()
    sachs = doubtful(proteins, consensus_graph(17), Knowledge(required=["raf -> mek"]))
    ecoli, arth = (
        doubtful(network.names, network.model.weights != 0) for network in map(load_network, ("ECOLI70", "ARTH150"))
    )
    pictures.save_graph(sachs, IMAGES / "consensus.png", dpi=100, title="11 proteins")
    pictures.save_graph(ecoli, IMAGES / "ecoli70.png", dpi=90)
    pictures.save_probabilities(ecoli, IMAGES / "ecoli70-map.png", dpi=80)
    pictures.save_graph(arth, IMAGES / "arth150.png", dpi=80)
    if "arrow-base" in bundled_models():
        values, names = load_sachs()
        table = read_table(dict(zip(names, np.log(values[:OBSERVATIONAL]).T, strict=True)))
        answer = inference.answer_table(table, inference.ready_model("arrow-base", "cpu"))
        pictures.save_graph(answer, IMAGES / "sachs.png", dpi=100, title="Answer of arrow-base for 853 cells")
        pictures.save_probabilities(answer, IMAGES / "sachs-map.png", dpi=80)
    for image in sorted(IMAGES.glob("*.png")):
        # These pictures have few colors: a palette makes the file several times smaller.
        Image.open(image).convert("RGB").quantize(48).save(image, optimize=True)
        size = image.stat().st_size
        print(f"{image.name:<20}{size:>9,} bytes")
        assert size < MOST_BYTES, f"{image.name} is too large for the repository"


if __name__ == "__main__":
    main()
