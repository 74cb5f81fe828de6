"""An answer in words: what was found, how certain it is, what to be careful about. For `print` and notebooks."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from causal_arrow.discovery.answer import Answer, DirectedEdge, why_uncaused
from causal_arrow.text import counted

MAX_EDGES = 40
MAX_VANISHED = 5
MAX_HIDDEN_CAUSES = 10
Decision = Literal["required", "by knowledge", "by environment", "by experiment"]
COLUMNS = ("cause", "effect", "probability", "adjacent", "direction")


def title(answer: Answer) -> str:
    """The size of the table."""
    size = counted(len(answer.names), "variable")
    return size if answer.observations is None else f"{counted(answer.observations, 'observation')} of {size}"


def decided_by(answer: Answer, cause: str, effect: str) -> Decision | None:
    """What makes an edge between the two point from cause to effect in place of the network; None if nothing does."""
    j, k = answer.index_of(cause), answer.index_of(effect)
    if answer.constraints.required[j, k]:
        return "required"
    if answer.constraints.forbidden[j, k] or not answer.constraints.forbidden[k, j]:
        return None
    if why_uncaused(answer, cause):
        return "by environment" if cause == answer.environment else "by experiment"
    return "by knowledge"


def direction_words(answer: Answer, edge: DirectedEdge) -> str:
    """How sure the direction of an edge is, or what decides it in place of the network."""
    return decided_by(answer, edge.source, edge.target) or f"{edge.direction} ({edge.direction_probability:.2f})"


def edges_sentence(answer: Answer) -> str:
    """The number of edges."""
    return f"{counted(len(answer.edges), 'edge')}."


def order_sentence(answer: Answer) -> str:
    """The causal order."""
    return f"Causal order: {', '.join(answer.order)}"


def remarks(answer: Answer) -> list[str]:
    """What else is good to know about the graph: what was read of a long or wide table, scales, variables without
    edges, edges that knowledge took away, hidden common causes, experiments and environments."""
    sentences = [finding.message for finding in answer.findings if finding.kind == "observations_read"]
    if answer.log_columns:
        sentences.append(f"Analysed on a log scale: {', '.join(answer.log_columns)}")
    linked = {name for edge in answer.edges for name in (edge.source, edge.target)}
    alone = [name for name in answer.names if name not in linked]
    if alone and answer.edges:
        sentences.append(f"Without edges: {', '.join(alone)}")
    sentences += vanished_sentences(answer)
    return [*sentences, *hidden_cause_sentences(answer), *experiment_sentences(answer)]


def hidden_cause_sentences(answer: Answer) -> list[str]:
    """Which pairs probably share a hidden cause, and how many more do not stand out from the level of the table."""
    pairs, others, level = answer.hidden_causes, answer.undistinguished, answer.hidden_level
    sentences = []
    if pairs:
        more = f" and {len(pairs) - MAX_HIDDEN_CAUSES} more" if len(pairs) > MAX_HIDDEN_CAUSES else ""
        sentences.append(f"Probably with a hidden common cause: {', '.join(map(str, pairs[:MAX_HIDDEN_CAUSES]))}{more}")
    if others and level is not None:
        count = f"{counted(others, 'further pair' if pairs else 'pair')} above {answer.hidden_threshold:g}"
        verb = "does" if others == 1 else "do"
        sentences.append(
            f"Hidden causes: {count} {verb} not stand out from the median of all pairs ({level.median:.2f}) and "
            f"{'is' if others == 1 else 'are'} not shown."
            if pairs
            else f"This table does not distinguish hidden causes: {count} {verb} not stand out from the median of all "
            f"pairs ({level.median:.2f})."
        )
    return sentences


def experiment_sentences(answer: Answer) -> list[str]:
    """What experiments have set, and what differs between environments."""
    sentences = []
    if answer.experiments:
        sets = ", ".join(f"{name} (in {counted(count, 'observation')})" for name, count in answer.experiments.items())
        sentences.append(f"Set by experiments: {sets}")
    if answer.environment is not None:
        shifted = ", ".join(f"{edge.target} ({edge.probability:.2f})" for edge in answer.shifted)
        sentences.append(f"Shifted directly between environments ({answer.environment}): {shifted or 'nothing'}")
    return sentences


def vanished_sentences(answer: Answer) -> list[str]:
    """For each pair that is probably adjacent but not shown because of the knowledge, why; the first few of many."""
    sentences = [str(pair) for pair in answer.vanished[:MAX_VANISHED]]
    if (more := len(answer.vanished) - MAX_VANISHED) > 0:
        sentences.append(f"The knowledge takes away {counted(more, 'more such adjacency', 'more such adjacencies')}.")
    return sentences


def to_text(answer: Answer, most: int = MAX_EDGES, more: Sequence[str] = ()) -> str:
    """The whole summary as plain text, one line per edge, and `more` sentences after what is good to know."""
    lines = [_title_with_model(answer), ""]
    if answer.edges:
        rows = [COLUMNS, *(_cells(answer, edge) for edge in answer.edges[:most])]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        for row in rows:
            lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if len(answer.edges) > most:
            lines.append(f"... and {len(answer.edges) - most} more")
    else:
        lines.append("No two variables are adjacent with enough probability to show an edge.")
    lines += ["", f"{edges_sentence(answer)} {order_sentence(answer)}", *remarks(answer), *more]
    lines += [f"Careful: {warning}" for warning in answer.warnings]
    return "\n".join(lines)


def to_html(answer: Answer, most: int = MAX_EDGES, more: Sequence[str] = ()) -> str:
    """The whole summary for a notebook: picture, edges, order, `more` sentences, warnings."""
    head = "".join(f"<th>{heading}</th>" for heading in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(answer, edge)) + "</tr>"
        for edge in answer.edges[:most]
    )
    others = f"<p>... and {len(answer.edges) - most} more</p>" if len(answer.edges) > most else ""
    table = (
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{others}"
        if answer.edges
        else "<p>No two variables are adjacent with enough probability to show an edge.</p>"
    )
    sentences = [f"{edges_sentence(answer)} {order_sentence(answer)}", *remarks(answer), *more]
    careful = [f"<b>Careful:</b> {html.escape(warning)}" for warning in answer.warnings]
    paragraphs = "".join(f"<p>{line}</p>" for line in [*map(html.escape, sentences), *careful])
    return f"<div><p><b>{html.escape(_title_with_model(answer))}</b></p>{_picture(answer)}{table}{paragraphs}</div>"


def _title_with_model(answer: Answer) -> str:
    return f"{title(answer)}, read by {answer.model}" if answer.model else title(answer)


def _picture(answer: Answer) -> str:
    """The graph as an SVG element."""
    from causal_arrow.discovery import pictures

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.svg"
        pictures.save_graph(answer, file)
        text = file.read_text(encoding="utf-8")
    return text[text.index("<svg") :]


def _cells(answer: Answer, edge: DirectedEdge) -> tuple[str, ...]:
    return (
        edge.source,
        edge.target,
        "required" if edge.required else f"{edge.probability:.2f}",
        f"{edge.adjacency_probability:.2f}",
        direction_words(answer, edge),
    )
