"""An answer about a series in words: what acts on what after how many steps, and what to be careful about."""

from __future__ import annotations

import html

from causal_arrow.discovery.summary import MAX_HIDDEN_CAUSES
from causal_arrow.series.answer import LaggedEdge, SeriesAnswer
from causal_arrow.text import counted

MAX_EDGES = 40
COLUMNS = ("cause", "lag", "effect", "probability", "direction")


def title(answer: SeriesAnswer) -> str:
    """The size of the series."""
    size = counted(len(answer.names), "variable")
    if answer.steps is None:
        return size
    units = f" of {counted(answer.units, 'unit')}" if answer.units > 1 else ""
    return f"{counted(answer.steps, 'step')}{units}, {size}, {counted(answer.lags, 'lag')}"


def cells(edge: LaggedEdge) -> tuple[str, ...]:
    """The cells of an edge in a table with COLUMNS."""
    direction = "time" if edge.lag else f"{edge.direction} ({edge.direction_probability:.2f})"
    probability = "required" if edge.required else f"{edge.probability:.2f}"
    return edge.source, str(edge.lag), edge.target, probability, "required" if edge.required else direction


def sentences(answer: SeriesAnswer) -> list[str]:
    """What else is good to know: lags, own pasts, order, context, hidden causes, experiments, what was taken out."""
    expected = ", ".join(f"lag {lag}: {number:.1f}" for lag, number in enumerate(answer.edges_per_lag.tolist()))
    lines = [f"{counted(len(answer.edges), 'edge')} between variables. Expected number at each lag: {expected}."]
    if answer.graph[0].any():
        lines.append(f"Causal order within a step: {', '.join(answer.order)}")
    own: dict[str, list[int]] = {}
    for edge in answer.own_past:
        own.setdefault(edge.source, []).append(edge.lag)
    if own:
        pasts = ", ".join(f"{name} (lag {', '.join(map(str, sorted(lags)))})" for name, lags in own.items())
        lines.append(f"Depend on their own past: {pasts}")
    if answer.context_edges:
        pairs = ", ".join(f"{edge.source} → {edge.target} ({edge.probability:.2f})" for edge in answer.context_edges)
        lines.append(f"From the context: {pairs}")
    if pairs_hidden := answer.hidden_causes:
        more = f" and {len(pairs_hidden) - MAX_HIDDEN_CAUSES} more" if len(pairs_hidden) > MAX_HIDDEN_CAUSES else ""
        shown = ", ".join(map(str, pairs_hidden[:MAX_HIDDEN_CAUSES]))
        lines.append(f"Probably with a hidden common cause at lag 0: {shown}{more}")
    if answer.experiments:
        sets = ", ".join(f"{name} (in {counted(count, 'step')})" for name, count in answer.experiments.items())
        lines.append(f"Set by experiments: {sets}")
    lines += prepared_sentences(answer)
    return [*lines, *(finding.message for finding in answer.findings if finding.kind == "lags")]


def prepared_sentences(answer: SeriesAnswer) -> list[str]:
    """What was done to the series before it was read."""
    done = answer.prepared
    lines = []
    if done.get("difference"):
        lines.append(f"Changes from step to step are analyzed of: {', '.join(done['difference'])}")
    if done.get("season"):
        lines.append(f"Taken out: the mean of each of {done['season']} phases of a season.")
    if done.get("levels"):
        lines.append("Taken out: the level of each unit.")
    if done.get("log"):
        lines.append(f"Analyzed on a log scale: {', '.join(done['log'])}")
    return lines


NO_EDGES = "No variable acts on another with enough probability to show an edge."


def to_text(answer: SeriesAnswer, most: int = MAX_EDGES) -> str:
    """The whole summary as plain text, one line per edge."""
    lines = [_title_with_model(answer), ""]
    if answer.edges:
        rows = [COLUMNS, *(cells(edge) for edge in answer.edges[:most])]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        if len(answer.edges) > most:
            lines.append(f"... and {len(answer.edges) - most} more")
    else:
        lines.append(NO_EDGES)
    lines += ["", *sentences(answer)]
    return "\n".join([*lines, *(f"Careful: {warning}" for warning in answer.warnings)])


def to_html(answer: SeriesAnswer, most: int = MAX_EDGES) -> str:
    """The whole summary for a notebook: picture, edges, sentences, warnings."""
    from causal_arrow.series import pictures

    head = "".join(f"<th>{heading}</th>" for heading in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells(edge)) + "</tr>"
        for edge in answer.edges[:most]
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else f"<p>{NO_EDGES}</p>"
    more = f"<p>... and {len(answer.edges) - most} more</p>" if len(answer.edges) > most else ""
    careful = [f"<b>Careful:</b> {html.escape(warning)}" for warning in answer.warnings]
    paragraphs = "".join(f"<p>{line}</p>" for line in [*map(html.escape, sentences(answer)), *careful])
    heading = html.escape(_title_with_model(answer))
    picture = pictures.as_svg(answer, adapts=False)
    return f"<div><p><b>{heading}</b></p>{picture}{table}{more}{paragraphs}</div>"


def _title_with_model(answer: SeriesAnswer) -> str:
    return f"{title(answer)}, read by {answer.model}" if answer.model else title(answer)
