"""An answer in words: what was found, how certain it is, what to be careful about.

`summarize` makes the one model of it that text, notebooks, the command line and the page show.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from causal_arrow.discovery.answer import Answer, DirectedEdge, why_uncaused
from causal_arrow.errors import PYTHON, Remedy, Wording
from causal_arrow.text import counted, first_few, listed

if TYPE_CHECKING:
    from causal_arrow.discovery.effects.falsification import Falsification

MAX_EDGES = 40
MAX_VANISHED = 5
MAX_HIDDEN_CAUSES = 10
Decision = Literal["required", "by knowledge", "by environment", "by experiment"]
COLUMNS = ("cause", "effect", "probability", "adjacent", "direction")
RIGHT_ON_REAL_TABLES = (
    "In real tables about 6 in 10 arrows point the right way; of those called strong, more than 9 in 10."
)
"""61% of 1,985 arrows between columns of known order, and 99% of 67, over both halves of the lab's `real-orders`."""
# Names of columns that nothing else in a table causes, and words that may stand next to those: a birth weight is not
# a date of birth.
_FIRST = re.compile(
    r"age|sex|gender|male|female|race|ethnicity|ethnic|black|white|hispanic|nationality|region|birth|birthdate|birthday"
    r"|birthyear|born|dob|year|date"
)
_QUALIFIERS = re.compile(
    r"of|in|at|is|the|years|yrs|months|group|category|code|baseline|entry|origin|country|place|month|day"
)


def title(answer: Answer) -> str:
    """The size of the table."""
    size = counted(len(answer.names), "variable")
    return size if answer.observations is None else f"{counted(answer.observations, 'observation')} of {size}"


def decided_by(answer: Answer, cause: str, effect: str) -> Decision | None:
    """The reason, other than the network, why an edge points from cause to effect; None for the network."""
    j, k = answer.index_of(cause), answer.index_of(effect)
    if answer.constraints.required[j, k]:
        return "required"
    if answer.constraints.forbidden[j, k] or not answer.constraints.forbidden[k, j]:
        return None
    if why_uncaused(answer, cause):
        return "by environment" if cause == answer.environment else "by experiment"
    return "by knowledge"


def _cells(answer: Answer, edge: DirectedEdge) -> tuple[str, ...]:
    """An edge in words, with what decides its direction."""
    probability = "required" if edge.required else f"{edge.probability:.2f}"
    preference = f"{edge.direction} ({edge.direction_probability:.2f})"
    decision = decided_by(answer, edge.source, edge.target) or preference
    return edge.source, edge.target, probability, f"{edge.adjacency_probability:.2f}", decision


def remarks(answer: Answer, wording: Wording = PYTHON) -> list[str]:
    """Sentences about rows, scales, beliefs, directions, hidden common causes, experiments and environments."""
    sentences = [finding.message for finding in answer.findings if finding.kind == "observations_read"]
    if answer.log_columns:
        sentences.append(f"Analyzed on a log scale: {', '.join(answer.log_columns)}")
    linked = {name for edge in answer.edges for name in (edge.source, edge.target)}
    alone = [name for name in answer.names if name not in linked]
    if alone and answer.edges:
        sentences.append(f"Without edges: {', '.join(alone)}")
    sentences += map(str, [*answer.beliefs, *answer.vanished[:MAX_VANISHED]])
    if (more := len(answer.vanished) - MAX_VANISHED) > 0:
        sentences.append(f"The knowledge removes {counted(more, 'more such adjacency', 'more such adjacencies')}.")
    undecided = any(decided_by(answer, edge.source, edge.target) is None for edge in answer.edges)
    if undecided and answer.directions == "tempered":
        sentences.append(RIGHT_ON_REAL_TABLES)
    if suggested := suggestion_sentence(answer, wording):
        sentences.append(suggested)
    sentences += hidden_cause_sentences(answer)
    if answer.experiments:
        sets = ", ".join(f"{name} (in {counted(count, 'observation')})" for name, count in answer.experiments.items())
        sentences.append(f"Intervened on by experiments: {sets}")
    if answer.environment is not None:
        shifted = ", ".join(f"{edge.target} ({edge.probability:.2f})" for edge in answer.shifted)
        sentences.append(f"Shifted directly between environments ({answer.environment}): {shifted or 'nothing'}")
    return sentences


def is_first_by_name(name: str) -> bool:
    """Whether the name of a column says that nothing else in the table causes it, as "age" or "birth_year" do."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+", name)]
    others = [word for word in words if not _FIRST.fullmatch(word)]
    return len(others) < len(words) and all(_QUALIFIERS.fullmatch(word) for word in others)


def suggestion(answer: Answer) -> Remedy | None:
    """The knowledge to offer where arrows point into columns that come first by their names; `setting` counts them."""
    known = answer.constraints
    first = np.array([is_first_by_name(name) for name in answer.names], dtype=bool) & ~known.required.any(axis=0)
    into = answer.adjacency & ~first[:, None] & first & ~known.forbidden.T
    if not (arrows := int(into.sum())):
        return None
    if answer.knowledge.tiers:
        first &= into.any(axis=0)
    names = tuple(name for name, chosen in zip(answer.names, first.tolist(), strict=True) if chosen)
    return Remedy("roots" if answer.knowledge.tiers else "first tier", names, str(arrows))


def suggestion_sentence(answer: Answer, wording: Wording = PYTHON) -> str:
    """The suggestion in the words of a surface; empty if there is none."""
    remedy = suggestion(answer)
    if remedy is None:
        return ""
    count = int(remedy.setting)
    whose, them = ("its name", "it") if len(remedy.columns) == 1 else ("their names", "them")
    sentence = (
        f"By {whose}, nothing else in the table causes {listed(remedy.columns)}, but "
        f"{counted(count, 'arrow points', 'arrows point')} into {them}."
    )
    if remedy.action not in wording:
        return sentence
    arrows = "it" if count == 1 else "them"
    aim = f"turn {arrows} around" if remedy.action == "first tier" else f"rule {arrows} out"
    return f"{sentence} To {aim}, {wording[remedy.action](remedy)}."


def hidden_cause_sentences(answer: Answer) -> list[str]:
    """Name pairs that may share a hidden cause, and count those that do not stand out from the level of the table."""
    pairs, others, level = answer.hidden_causes, answer.undistinguished, answer.hidden_level
    sentences = []
    if pairs:
        shown = first_few(list(map(str, pairs)), MAX_HIDDEN_CAUSES)
        sentences.append(f"Possible hidden common cause: {shown}")
    if others and level is not None:
        do, are = ("does", "is") if others == 1 else ("do", "are")
        count = f"{counted(others, 'further pair' if pairs else 'pair')} above {answer.hidden_threshold:g}"
        fact = f"{count} {do} not stand out from the median of all pairs ({level.median:.2f})"
        sentences.append(
            f"Hidden causes: {fact} and {are} not shown."
            if pairs
            else f"This table does not distinguish hidden causes: {fact}."
        )
    return sentences


@dataclass(frozen=True)
class Summary:
    """An answer in words, in the order in which every surface shows it: text, notebook, command line, report."""

    title: str  # the size of the table
    model: str | None
    headings: tuple[str, ...]  # of the columns of edges
    rows: tuple[tuple[str, ...], ...]  # the edges, the most probable first; the first few of many
    edges: int  # all of them
    count: str  # of edges, in a sentence
    order: str  # the causal order, in a sentence
    remarks: tuple[str, ...]
    test: str  # whether the data contradict the graph; empty where it was not tested
    contradicted: bool
    warnings: tuple[str, ...]
    if_none: str = "No two variables are adjacent with enough probability to show an edge."

    @property
    def sentences(self) -> list[str]:
        """The sentences that follow the edges."""
        return [f"{self.count} {self.order}", *self.remarks, *([self.test] if self.test else [])]

    @property
    def title_with_model(self) -> str:
        """The title, and which model has read the table."""
        return f"{self.title}, read by {self.model}" if self.model else self.title

    @property
    def no_edges(self) -> str:
        """The sentence instead of an empty table; empty if there are edges."""
        return "" if self.edges else self.if_none

    @property
    def more(self) -> str:
        """The number of edges that are not listed, in words; empty if all are."""
        return f"... and {self.edges - len(self.rows)} more" if self.edges > len(self.rows) else ""


def summarize(
    answer: Answer,
    test: Falsification | None = None,
    wording: Wording = PYTHON,
    most: int = MAX_EDGES,
    not_tested: str = "",
) -> Summary:
    """Put an answer into words, with up to `most` edges, and with a test of its graph if there is one."""
    return Summary(
        title=title(answer),
        model=answer.model,
        headings=COLUMNS,
        rows=tuple(_cells(answer, edge) for edge in answer.edges[:most]),
        edges=len(answer.edges),
        count=f"{counted(len(answer.edges), 'edge')}.",
        order=f"Causal order: {', '.join(answer.order)}",
        remarks=tuple(remarks(answer, wording)),
        test=not_tested if test is None else str(test),
        contradicted=test is not None and test.falsified,
        warnings=answer.worded_warnings(wording),
    )


def to_text(summary: Summary) -> str:
    """The summary as plain text, one line per edge."""
    lines = [summary.title_with_model, ""]
    if summary.rows:
        rows = [summary.headings, *summary.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    lines += [line for line in (summary.more, summary.no_edges) if line]
    return "\n".join([*lines, "", *summary.sentences, *(f"Careful: {warning}" for warning in summary.warnings)])


def to_html(summary: Summary, picture: str = "") -> str:
    """The summary for a notebook or a report: picture, edges, order, test, warnings."""
    lines = [html.escape(line) for line in (summary.more, summary.no_edges, *summary.sentences) if line]
    lines += [f"<b>Careful:</b> {html.escape(warning)}" for warning in summary.warnings]
    head = f"<p><b>{html.escape(summary.title_with_model)}</b></p>{picture}"
    paragraphs = "".join(f"<p>{line}</p>" for line in lines)
    return f"<div>{head}{html_table(summary.headings, summary.rows)}{paragraphs}</div>"


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of text cells, apart from each other also in a notebook without styles; empty without rows."""
    if not rows:
        return ""
    apart = "style='padding: .2em .6em'"
    head = "".join(f"<th {apart}>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td {apart}>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture_of(answer: Answer) -> str:
    """The graph as an SVG element."""
    from causal_arrow.discovery.pictures import save_graph
    from causal_arrow.discovery.pictures.scene import as_svg

    return as_svg(lambda file: save_graph(answer, file))
