"""The pictures of the gallery, answers of the bundled model for benchmark tables: `python docs/make_gallery.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from causal_arrow.benchmarks.networks import load_network
from causal_arrow.benchmarks.sachs import OBSERVATIONAL, load_sachs
from causal_arrow.discovery import pictures
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pipeline import Settings, discover
from causal_arrow.graphs.knowledge import Knowledge

IMAGES = Path(__file__).parent / "images"
MOST_BYTES = 200_000


def answer_for(names: tuple[str, ...], values: np.ndarray, known: Knowledge | None = None) -> Answer:
    """What the bundled model says about a table."""
    table = dict(zip(names, values.T, strict=True))
    return discover(table, Settings(device="cpu", knowledge=known)).answer


def network_answer(name: str, observations: int) -> Answer:
    """What it says about observations of a network of the Bayesian Network Repository."""
    network = load_network(name)
    return answer_for(network.names, network.model.observe(observations, np.random.default_rng(0)))


def main() -> None:
    values, proteins = load_sachs()
    cells = np.log(values[:OBSERVATIONAL])
    sachs = answer_for(proteins, cells)
    informed = answer_for(proteins, cells, Knowledge(required=["raf -> mek", "mek -> erk"]))
    ecoli, arth = network_answer("ECOLI70", 500), network_answer("ARTH150", 500)
    pictures.save_graph(sachs, IMAGES / "sachs.png", dpi=100, title="853 cells, 11 proteins")
    pictures.save_graph(informed, IMAGES / "sachs-informed.png", dpi=100, title="with two required edges")
    pictures.save_probabilities(sachs, IMAGES / "sachs-map.png", dpi=80)
    pictures.save_graph(ecoli, IMAGES / "ecoli70.png", dpi=90)
    pictures.save_probabilities(ecoli, IMAGES / "ecoli70-map.png", dpi=80)
    pictures.save_graph(arth, IMAGES / "arth150.png", dpi=80)
    for image in sorted(IMAGES.glob("*.png")):
        # These pictures have few colors: a palette makes the file several times smaller.
        Image.open(image).convert("RGB").quantize(48).save(image, optimize=True)
        size = image.stat().st_size
        print(f"{image.name:<20}{size:>9,} bytes")
        assert size < MOST_BYTES, f"{image.name} is too large for the repository"


if __name__ == "__main__":
    main()
