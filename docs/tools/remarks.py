"""Remarks of pages and reports: where methods ran, and the sentences below the tables of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from causal_arrow_lab.benchmarks.methods import title_of
from causal_arrow_lab.benchmarks.records import Record
from document import Block, Paragraph
from summaries import BETTER_OF, RowSummary

SUITES_OF_REAL_DATA = ("sachs",)

STEERED = (
    "This suite steered development: what arrow-base is trained on was chosen with these rows in view. They flatter "
    "arrow-base, and no other method."
)


def readings(rows: Sequence[RowSummary]) -> str:
    """Describe how methods read categories, holes and experiments that they cannot read exactly."""
    by_method: dict[str, dict[str, None]] = {}
    for row in rows:
        for entry in row.entries:
            for record in entry.finished if entry.variant.method not in BETTER_OF else ():
                parts = [f"{what}: {how}" for what, how in (record.reading or {}).items()]
                by_method.setdefault(entry.variant.label, {}).update(dict.fromkeys(parts))
    return "; ".join(f"{label} ({', '.join(parts)})" for label, parts in by_method.items() if parts)


def remarks_of_suite(rows: Sequence[RowSummary], only_empty: bool) -> list[str]:
    """The sentences below the table of a suite."""
    remarks = []
    without_edges = {row.row: max(entry.empty_truths for entry in row.entries) for row in rows}
    if any(without_edges.values()) and not only_empty:
        counts = ", ".join(f"{count} in {row}" for row, count in without_edges.items() if count)
        remarks.append(f"Datasets left out because their true graph has no edges: {counts}.")
    if not only_empty and any(row.entry_of("class-oracle") for row in rows):
        remarks.append(
            "The Markov-equivalence oracle is given the true graph and answers with a random member of its Markov "
            "equivalence class: what perfect independence tests would know. Linear models with normal noise "
            "identify no more than that, unless scales or strengths follow the causal order. It takes no part in bold."
        )
    if any(row.entry_of("exact-bayes") for row in rows):
        remarks.append(
            "The exact posterior over all graphs has this suite's prior of graphs, and a prior of parameters under "
            "which graphs of one equivalence class explain every table equally well. In the row normal-wishart both "
            "are those of the data: however many edges one takes, no method can expect more of them to be right. "
            "Elsewhere it is what can be known without knowing how coefficients were drawn. It takes no part in bold."
        )
    remarks += [*_better_settings(rows), *_directions(rows)]
    if any(not entry.complete for row in rows for entry in row.entries):
        remarks.append(
            "Methods that failed or ran out of time on some datasets are measured on the others only. Those may be the "
            "easier ones, so these methods are not compared for bold."
        )
    return remarks


def _better_settings(rows: Sequence[RowSummary]) -> list[str]:
    """Sentences about methods that are represented by one of several settings."""
    remarks = []
    for name, (label, methods) in BETTER_OF.items():
        having = [row.row for row in rows if row.entry_of(name) is not None]
        if having:
            where = "" if len(having) == len(rows) else f" (in {', '.join(having)})"
            settings = " and ".join(title_of(method) for method in methods)
            remarks.append(
                f"{label}{where}: of {settings} the one with the better mean over the datasets that both answered, "
                "chosen for each row and measure anew."
            )
    return remarks


def _directions(rows: Sequence[RowSummary]) -> list[str]:
    """Shares of correct directions in real data, compared with a coin."""
    if not rows or rows[0].suite not in SUITES_OF_REAL_DATA:
        return []
    shares = {
        entry.variant.label: estimate
        for row in rows[:1]
        for entry in row.entries
        if (estimate := entry.estimate("orientation_accuracy")).count > 1 and entry.variant.method not in BETTER_OF
    }
    if not shares:
        return []
    listed = "; ".join(f"{label} {share.mean:.2f}" for label, share in shares.items())
    return [
        f"The share of directions that are right, of the true edges that were found in {rows[0].row}, where a coin has "
        f"0.50: {listed}. All subsamples have one true graph, and methods find the same few of its edges again and "
        "again. So these shares rest on a handful of directions, too few to be distinguished from a coin, which their "
        "standard errors do not show."
    ]


# The run


def circumstances(records: Sequence[Record]) -> list[Block]:
    """Machines, versions and dates: one sentence per set of circumstances."""
    sentences = Counter(describe_circumstances(record.run) for record in records)
    return [Paragraph(f"{sentence} ({count} records)") for sentence, count in sentences.items()]


def describe_circumstances(run: Any) -> str:
    """Describe the machine, limits and versions of a run in a sentence."""
    machine = run.get("machine", {})
    gpu = f" with {machine['gpu']} for Arrow" if "gpu" in machine else ""
    memory = f", {machine['memory_gib']} GiB of memory" if "memory_gib" in machine else ""
    versions = ", ".join(f"{name} {version}" for name, version in run.get("versions", {}).items())
    limit = f"a time limit of {run['timeout']:g} s" if run.get("timeout") else "no time limit"
    clock = "; seconds of the processor" if run.get("clock") == "processor" else ""
    return (
        f"Measured on {run.get('date', 'an unknown day')} on {machine.get('cpu', 'an unknown machine')}{gpu}, "
        f"{machine.get('cores', '?')} cores{memory}, {machine.get('system', '')}: {run.get('processes', 1)} at a time, "
        f"one core each, with {limit}{clock}. {versions}."
    )
