"""Remarks of a report: how to read it, where it ran, and the sentences below each table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from causal_arrow_lab.benchmarks.methods import title_of
from causal_arrow_lab.benchmarks.records import Record
from causal_arrow_lab.benchmarks.suites import SUITES
from document import Block, Paragraph
from summaries import BETTER_OF, DEVELOPMENT, PublishedResults, RowSummary, Summary

SUITES_OF_REAL_DATA = ("sachs",)

STEERED = (
    "This suite steered development: what arrow-base is trained on was chosen with these rows in view. They flatter "
    "arrow-base, and no other method."
)

STANDARD_ERRORS = (
    "Standard errors are over the datasets of a row and nothing else. They exclude what would change with "
    "another training run of the same network, with other networks, experiments or distributions of parameters than "
    "those of the suite, and with other suites."
)
BOLD = (
    "Bold marks the methods that no other beats by more than two standard errors of the difference, paired on the "
    "datasets that both answered, nor on clearly more of these datasets than it loses (two standard errors of a "
    "coin); where that would be all of them, none is bold."
)
HOW_TO_READ: Mapping[str, tuple[str, ...]] = {
    "graphs": (
        "Entries are means over datasets, with the standard error in parentheses. nSHD is the structural Hamming "
        "distance divided by the number of true edges, a reversed edge counting once; F1 is of directed edges; AP "
        "is the average precision over all ordered pairs; seconds are those of the method alone, on one core. "
        "Datasets whose true graph has no edges are left out of every measure that compares edges, for all methods"
        " alike.",
        STANDARD_ERRORS,
        "In the rows of the paper's tables bold follows the paper: the best mean, and ties whose standard error "
        f"intervals overlap with it. Elsewhere: {BOLD} A method that was run on less than a fifth of a row's datasets "
        "takes no part.",
        "PC, GES, BOSS, GRaSP, FLOP and GIES answer with an equivalence class, that is a CPDAG: nSHD and F1 are of one "
        "DAG of that class, and for AP a directed edge counts 1 and an undirected one ½ in both directions. DAGMA,"
        " NOTEARS and SDCD are ranked for AP by their weights, which is kinder than the paper: the published "
        "figures of DAGMA and SDCD are of the thresholded graph, which further measures show as “AP of the graph”.",
    ),
    "effects": (
        "Entries are means over datasets, with the standard error in parentheses. Bias is away from zero (+) or "
        "towards it (−) where there is an effect. RMSE is the root of the mean squared error of all effects, in "
        "standard deviations of the outcome or as a share. Coverage is of the 90% intervals: of all effects, most of "
        "which are zero, and of those that are not. Width is theirs too.",
        STANDARD_ERRORS,
        BOLD,
    ),
    "experiments": (
        "Entries are means over datasets, with the standard error in parentheses. SHD is the structural Hamming "
        "distance of the graph that is shown after so many experiments, a reversed edge counting once. The last column "
        "is how many experiments it takes until at most half of the mistakes without any are left, 6 where five were "
        "not enough. Seconds are those of the choices.",
        STANDARD_ERRORS,
        BOLD,
    ),
}
"""Paragraphs for what a suite asks for."""

MARKS_OF_FCI = (
    "Of FCI's marks, → and o→ count as edges and o–o as one in either direction; in rankings an open mark counts half, "
    "and ↔ is a hidden cause."
)


def asked_for(summary: Summary) -> list[str]:
    """The things that the suites ask methods for; graphs for an unknown suite."""
    return list(dict.fromkeys(SUITES[suite].judged_by if suite in SUITES else "graphs" for suite in summary.suites))


def development_remarks(summary: Summary) -> list[Block]:
    """A paragraph about the suites for development, if there are any."""
    names = [suite for suite in summary.suites if suite in DEVELOPMENT]
    if not names:
        return []
    return [
        Paragraph(
            f"Suites for development: {', '.join(names)}. Weights may be chosen by them, so they show what a network "
            "can do, not what it will do on unseen tables; the suite held-out is frozen for that."
            + (f" {MARKS_OF_FCI}" if "graphs" in asked_for(summary) else "")
        )
    ]


def readings(rows: Sequence[RowSummary]) -> str:
    """Describe how methods read categories, holes and experiments that they cannot read exactly."""
    by_method: dict[str, dict[str, None]] = {}
    for row in rows:
        for entry in row.entries:
            for record in entry.finished if entry.variant.method not in BETTER_OF else ():
                parts = [f"{what}: {how}" for what, how in (record.reading or {}).items()]
                by_method.setdefault(entry.variant.label, {}).update(dict.fromkeys(parts))
    return "; ".join(f"{label} ({', '.join(parts)})" for label, parts in by_method.items() if parts)


def remarks_of_suite(rows: Sequence[RowSummary], only_empty: bool, paper: PublishedResults | None) -> list[str]:
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
    if paper is not None and any(paper.table(row.suite, row.row) for row in rows):
        remarks.append(
            f"Lines in italics are published figures, from {paper.authors[0]} et al., {paper.title}: their "
            f"measurements, on other draws of the data and on their machine ({paper.hardware}). They take no part in "
            "our means and bold."
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
                f"{label}{where}: of {settings} the one with the better mean, chosen for each row and measure anew."
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
