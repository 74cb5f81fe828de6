"""`causal-arrow models`: what is bundled, how it was trained, what it is not for."""

from __future__ import annotations

import json
from typing import Any

from rich.markup import escape

from causal_arrow.cli import options
from causal_arrow.cli.console import console

CHOICE = (
    "arrow-base is the default and reads every table: numbers, categories, missing cells, experiments, environments. "
    "arrow-strict is for comparisons: a network like it for complete tables of numbers, trained on the paper's tasks "
    "alone. It fails on tables with no more rows than columns, since the paper's training tasks hardly have any."
)

LIMITS = (
    "arrow-base says which pairs may share a common cause that is not in the table; arrow-strict assumes that there is "
    "none. No model allows for feedback. Outside the range of sizes it was trained on, and on data unlike its training "
    "tasks, its probabilities may be off."
)


def models(as_json: options.AsJson = False) -> None:
    """List the models that come with the package, their training and their limits."""
    from causal_arrow.network import bundled_models
    from causal_arrow.network.checkpoint import CONFIG_FILE, WEIGHTS_FILE

    described = {}
    for name, folder in bundled_models().items():
        config: dict[str, Any] = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        described[name] = {
            "folder": str(folder),
            "megabytes": round((folder / WEIGHTS_FILE).stat().st_size / 1e6, 1),
            "parameters": config.get("parameters"),
            "encoder": config.get("model", {}).get("encoder"),
            "training": config.get("extra", {}),
        }
    if as_json:
        print(json.dumps({"models": described, "limits": LIMITS}, indent=2))
        return
    screen = console()
    for name, facts in described.items():
        size = f"{facts['parameters']:,} parameters, {facts['megabytes']} MB, {facts['encoder']} encoder"
        screen.print(f"[bold]{escape(name)}[/bold]  {escape(size)}")
        for line in _training_lines(facts["training"].get("training", {})):
            screen.print(f"  {escape(line)}")
        screen.print(f"  [dim]{escape(facts['folder'])}[/dim]")
    if not described:
        screen.print("No models are bundled with this installation: give `discover` a folder or a file with --model.")
    else:
        screen.print(f"\n{CHOICE}")
    screen.print(f"\n{LIMITS}")


def _training_lines(record: dict[str, Any]) -> list[str]:
    """How a model was trained and how it did on fresh tasks, as lines for people."""
    if not record:
        return ["no record of its training"]
    tasks, shapes = record["task_distribution"], record["shapes"]
    seen = record["tasks"] + sum(run["tasks"] for run in record.get("earlier", []))
    without = f" without {', '.join(tasks['without'])}" if tasks["without"] else ""
    observations, variables = shapes["observations"], shapes["variables"]
    lines = [
        f"trained on {seen:,} tasks of the distribution '{tasks['distribution']}'{without}, "
        f"{observations[0]} to {observations[1]} observations, {variables[0]} to {variables[1]} variables",
        f"on {sum(part['tasks'] for part in record['validation']):,} tasks it never saw:",
    ]
    return lines + [
        f"  {part['distribution']:<6} n={part['observations']:<5} p={part['variables']:<4} "
        f"nSHD {part['nshd']:.2f}  F1 {part['f1']:.2f}  AP {part['ap']:.2f}"
        for part in record["validation"]
    ]
