"""What Causal Arrow does, on the protein measurements of Sachs et al. (2005): `make demo`.

Writes everything to demo/: the table, the answer in every format, pictures, and the same under background knowledge.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from causal_arrow.benchmarks.sachs import OBSERVATIONAL, consensus_graph, load_sachs
from causal_arrow.cli import main as causal_arrow
from causal_arrow.discovery import pictures
from causal_arrow.discovery.estimator import Arrow
from causal_arrow.graphs import metrics


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)


def command(*arguments: str) -> None:
    """Run a command of the command line, and show it."""
    heading("$ causal-arrow " + " ".join(arguments))
    try:
        causal_arrow(arguments)
    except SystemExit as leaving:
        if leaving.code:
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="arrow-base", help="a bundled name, a folder or a file")
    parser.add_argument("--output", type=Path, default=Path("demo"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    # The 853 cells without intervention. Concentrations are positive and skewed: take their logarithms.
    values, names = load_sachs()
    table = pd.DataFrame(np.log(values[:OBSERVATIONAL]), columns=list(names)).round(5)
    file = options.output / "sachs.csv"
    table.to_csv(file, index=False)

    command("check", str(file))
    answer = options.output / "answer"
    resampling = ("--samples", "1000", "--bootstrap", "20")
    command("discover", str(file), "--output", str(answer), "--overwrite", *resampling, "--model", options.model)

    heading("The same from Python, and what is known about these proteins added")
    arrow = Arrow(options.model).fit(table)
    # The cascade from Raf over Mek to Erk is textbook knowledge. The network is not run again.
    informed = arrow.refine(knowledge={"required": ["raf -> mek", "mek -> erk"]})
    pictures.save_graph(
        informed.answer_, options.output / "with-knowledge.png", title="Sachs, with background knowledge"
    )
    for name, fitted in (("without knowledge", arrow), ("with knowledge", informed)):
        edges = fitted.adjacency_matrix_.to_numpy()
        truth = consensus_graph(17)
        print(
            f"{name + ':':<19}{edges.sum():>3} edges; against the 17 of the expert consensus "
            f"SHD {metrics.shd(truth, edges)}, F1 {metrics.f1(truth, edges):.2f}"
        )

    heading("Questions that one graph cannot answer")
    print(f"P(pkc causes akt, directly or not) = {informed.path_probability('pkc', 'akt'):.2f}")
    print("\nWhat to adjust for when estimating the effect of mek on erk, in 1000 possible graphs:")
    print(informed.adjustment_set_frequencies("mek", "erk").head(5).to_string(index=False))

    heading(
        f"Look at {answer / 'graph.png'}, {answer / 'probabilities.png'} and {options.output / 'with-knowledge.png'}"
    )


if __name__ == "__main__":
    main()
