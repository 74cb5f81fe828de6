"""From a table to a decision, where the plain answer has the wrong sign; then real proteins: `make demo`.

A hospital gives a new drug to those who are sickest, and patients with the drug stay longer. Does it harm? The table is
made by known equations (`causal_arrow/examples/hospital.py`), so each step can be held against the truth. Everything is
written to demo/: tables, answers in every format, pictures.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from causal_arrow import Arrow, ArrowWarning, load_example
from causal_arrow.cli import main as causal_arrow
from causal_arrow.discovery import pictures
from causal_arrow.discovery.inference import ready_model
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow.text import counted_share


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a bundled name, a folder or a file")
    parser.add_argument("--output", type=Path, default=Path("demo"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ArrowWarning)  # the summaries say the same
    hospital(options.model, options.output)
    sachs(options.model, options.output)
    heading(f"Look at the pictures in {options.output}")


def hospital(model: str, output: Path) -> None:
    """A drug that seems to lengthen the stay, and shortens it."""
    table = load_example("hospital")
    truth = table.attrs["effects"]["drug -> stay"]
    file = output / "hospital.csv"
    table.to_csv(file, index=False)

    heading("1. A table: numbers, yes or no, a category, missing cells")
    print(table.head(5).to_string(index=False))
    with_drug, without = (table.loc[table["drug"] == given, "stay"].mean() for given in (1, 0))
    print(f"\nDays in hospital: {with_drug:.2f} with the drug, {without:.2f} without. It seems to add", end=" ")
    print(f"{with_drug - without:.2f} days. By the equations behind the table it takes {-truth:.2f} days away.")

    heading("2. The graph, given only that age, smoking and the ward have no causes here")
    reads = ready_model(model).reads
    reading: dict[str, object] = {"knowledge": {"roots": ["age", "smoker", "ward"]}}
    if "levels" not in reads:  # a network of numbers needs an order: the wards by their number of beds
        reading["ordered"] = {"ward": ["west", "north", "south"]}
    if "observed" not in reads:
        reading["missing"] = "impute"
    arrow = Arrow(model, **reading).fit(table)
    print(arrow.summary())
    known = [f"{cause} → {effect}" for cause, effect in table.attrs["edges"]]
    print(f"\nThe truth: {', '.join(known)}")
    pictures.save_graph(arrow.answer_, output / "hospital.png", title="What happens in the hospital")

    heading("3. The effect of the drug, over all graphs that are possible")
    report(arrow, truth)
    picture(arrow.effect("drug", "stay"), output / "effect-before.png")

    heading("4. What to do next")
    plan = arrow.next_experiment(("drug", "stay"), rows=200)
    print(plan)
    picture(plan, output / "next-experiment.png")

    heading("5. That experiment: for 200 patients a coin decides on the drug")
    informed = arrow.learn_from_experiment("drug", load_example("hospital-trial"))
    before = arrow.edge_probabilities_
    news = [edge for edge in informed.answer_.knowledge.forbidden if before.loc[edge] > 0.1]
    ruled_out = ", ".join(f"{cause} → {effect}" for cause, effect in news)
    print(f"It rules out {ruled_out or 'no edge that was probable'}.\n")
    report(informed, truth)
    picture(informed.effect("drug", "stay"), output / "effect-after.png")


def report(arrow: Arrow, truth: float) -> None:
    """Print the effect of the drug and compare it with the truth."""
    effect = arrow.effect("drug", "stay")
    low, high = effect.interval
    print(effect.sentence)
    where = "in the interval" if low <= truth <= high else "outside the interval"
    print(f"The truth, {truth:.2f}, is {where}.", *effect.sensitivity_sentences())


def picture(drawn: object, path: Path) -> None:
    import matplotlib.pyplot as plt

    ax = drawn.plot()  # type: ignore[attr-defined]
    ax.figure.savefig(path, dpi=150)
    plt.close(ax.figure)


def sachs(model: str, output: Path) -> None:
    """Real measurements, where experts know the graph in part."""
    table = load_example("sachs")
    file = output / "sachs.csv"
    table.to_csv(file, index=False)
    heading("6. Real measurements: proteins in 853 immune cells")
    command("check", str(file))
    command("discover", str(file), "--output", str(output / "sachs"), "--overwrite", "--model", model)
    arrow = Arrow(model).fit(table)
    # The cascade from Raf over Mek to Erk is textbook knowledge. The network is not run again.
    informed = arrow.refine(knowledge={"required": ["raf -> mek", "mek -> erk"]})
    known = set(table.attrs["edges"])
    for name, fitted in (("without knowledge", arrow), ("with knowledge", informed)):
        shown = {(edge.source, edge.target) for edge in fitted.edges_}
        turned = sum(edge[::-1] in known for edge in shown - known)
        print(
            f"{name}: {len(shown)} edges, {len(shown & known)} of them among the 17 of the expert consensus, "
            f"{turned} the other way round"
        )
    pictures.save_graph(informed.answer_, output / "sachs-with-knowledge.png", title="Sachs, with background knowledge")
    share = counted_share(informed.path_probability("pkc", "akt"), "1,000 graphs")
    print(f"\npkc causes akt, directly or not, in {share}.")
    command("next-experiment", str(file), "--budget", "2", "--show", "5", "--model", model)


if __name__ == "__main__":
    main()
