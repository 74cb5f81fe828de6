"""Draw the pictures of answers in the documents, by the bundled model: `python docs/tools/make_gallery.py`.

They are SVG files that turn dark with the page; the README has that of the hospital as PNG on white.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from causal_arrow import load_example
from causal_arrow.discovery import pictures
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings
from causal_arrow.examples import OBSERVATIONAL, consensus_graph, load_sachs
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow_lab.benchmarks.networks import load_network

IMAGES = Path(__file__).parents[1] / "images"
MAX_BYTES = 250_000

IN_TIME = Knowledge(tiers=[["age", "smoker", "ward", "inflammation"], ["drug"], ["day3"], ["stay"]])
"""The knowledge from the home page about the hospital."""

Edges = list[tuple[str, str]]


def answer_for(names: tuple[str, ...], values: np.ndarray, known: Knowledge | None = None) -> Answer:
    """The answer of the bundled model for a table."""
    table = dict(zip(names, values.T, strict=True))
    return discover(table, Settings(device="cpu", knowledge=known)).answer


def network_answer(name: str, observations: int) -> tuple[Answer, Edges]:
    """Its answer for observations of a network of the Bayesian Network Repository, and the true edges."""
    network = load_network(name)
    answer = answer_for(network.names, network.model.observe(observations, np.random.default_rng(0)))
    return answer, named_edges(network.names, network.model.weights != 0)


def named_edges(names: tuple[str, ...], adjacency: np.ndarray) -> Edges:
    """The edges of a matrix as pairs of names."""
    return [(names[j], names[k]) for j, k in np.argwhere(adjacency)]


def main() -> None:
    values, proteins = load_sachs()
    cells = np.log(values[:OBSERVATIONAL])
    sachs = answer_for(proteins, cells)
    informed = answer_for(proteins, cells, Knowledge(required=["raf -> mek", "mek -> erk"]))
    consensus = named_edges(proteins, consensus_graph(17))
    hospital = discover(load_example("hospital"), Settings(device="cpu", knowledge=IN_TIME)).answer
    ecoli, true_ecoli = network_answer("ECOLI70", 500)
    arth, _ = network_answer("ARTH150", 500)
    title = "ECOLI70 from 500 observations: 46 genes, {right} of {true} edges recovered"
    right = len(set(true_ecoli) & {(edge.source, edge.target) for edge in ecoli.edges})
    pictures.save_comparison(
        ecoli, true_ecoli, IMAGES / "ecoli70.svg", title=title.format(right=right, true=len(true_ecoli)), adapts=True
    )
    pictures.save_graph(hospital, IMAGES / "hospital.svg", IMAGES / "hospital.png", dpi=100, adapts=True)
    pictures.save_graph(ecoli, IMAGES / "ecoli70-graph.svg", adapts=True)
    pictures.save_probabilities(ecoli, IMAGES / "ecoli70-map.svg", adapts=True)
    pictures.save_graph(arth, IMAGES / "arth150.svg", adapts=True)
    pictures.save_graph(sachs, IMAGES / "sachs.svg", title="853 cells, 11 proteins", adapts=True)
    pictures.save_graph(informed, IMAGES / "sachs-informed.svg", title="with two required edges", adapts=True)
    pictures.save_comparison(sachs, consensus, IMAGES / "sachs-truth.svg", adapts=True)
    pictures.save_probabilities(sachs, IMAGES / "sachs-map.svg", adapts=True)
    # These pictures have few colors: a palette makes the file several times smaller.
    Image.open(IMAGES / "hospital.png").convert("RGB").quantize(48).save(IMAGES / "hospital.png", optimize=True)
    for image in sorted([*IMAGES.glob("*.svg"), IMAGES / "hospital.png"]):
        size = image.stat().st_size
        print(f"{image.name:<20}{size:>9,} bytes")
        assert size < MAX_BYTES, f"{image.name} is too large for the repository"


if __name__ == "__main__":
    main()
