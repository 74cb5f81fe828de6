"""What the page shows of a session: its state, the trust card, the graph, where everything stands."""

from __future__ import annotations

import numpy as np

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.labels import shortened
from causal_arrow.discovery.summary import remarks
from causal_arrow.errors import ArrowError, Remedy
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.graphs.layout import layered_layout
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.table import Finding
from causal_arrow.text import capitalized, counted, visible
from causal_arrow.web.messages import (
    Argument,
    Bends,
    ColumnFacts,
    EdgeFacts,
    FindingFacts,
    Graph,
    HiddenCause,
    KnowledgeStatements,
    Node,
    Offer,
    Places,
    ReadingChoices,
    SessionFacts,
    TableFacts,
)
from causal_arrow.web.queue import NetworkQueue
from causal_arrow.web.sessions import Session
from causal_arrow.web.wording import PAGE, button

# Pixels of the page's font, wide letters included.
LETTER_WIDTH, LINE_HEIGHT = 7.4, 17.0
PADDING = (20.0, 14.0)
LONGEST_LINE, MOST_LINES = 16, 2


def session_facts(session: Session, queue: NetworkQueue) -> SessionFacts:
    """The session as the page sees it."""
    job, answer = session.job, session.answer
    state = "ready" if job is None else job.state
    error = None if job is None else job.error
    return SessionFacts(
        session=session.key,
        state=state,  # type: ignore[arg-type]
        ahead=0 if job is None else queue.ahead(job),
        message=None if error is None else failure(error),
        table=table_facts(session),
        choices=ReadingChoices(
            drop=list(session.choices.drop),
            missing=session.choices.missing,  # type: ignore[arg-type]
            scale=session.choices.scale,  # type: ignore[arg-type]
        ),
        graph=None if answer is None else graph_of(answer),
    )


def failure(error: Exception) -> str:
    """Why something failed, in a sentence."""
    if isinstance(error, ArrowError):
        return error.worded(PAGE)
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return "There is not enough memory for this: use fewer observations or fewer variables."
    return f"This failed in a way it should not ({type(error).__name__}): please report it."


# The trust card


def table_facts(session: Session) -> TableFacts:
    """The table and what speaks for and against it: of the answer if there is one, else of the file."""
    report, answer = session.report, session.answer
    findings = report.findings
    if session.found is not None and answer is not None:
        report, findings = session.found.report, answer.findings
    return TableFacts(
        name=session.file.name,
        size=_size(report, session),
        usable=not any(finding.severity == "problem" for finding in session.report.findings),
        columns=[
            ColumnFacts(name=column.name, kind=column.kind, levels=list(column.levels))
            for column in session.report.columns
        ],
        findings=[_finding(finding) for finding in findings],
        against=_against(findings),
        assumed=_assumed(answer),
    )


def _size(report: TableReport, session: Session) -> str:
    left_out = len(session.choices.drop) if session.found is not None else 0
    without = f", {counted(left_out, 'column')} left out" if left_out else ""
    return f"{report.title}{without}."


def _against(findings: tuple[Finding, ...]) -> str:
    problems = [finding for finding in findings if finding.severity == "problem"]
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if problems:
        return f"{capitalized(counted(len(problems), 'problem'))} must be solved before the network can read the table."
    if not warnings:
        return "Nothing about the table stands out."
    more = f" ({counted(len(warnings) - 1, 'more warning')} below)" if len(warnings) > 1 else ""
    return f"{warnings[0].message}{more}"


def _assumed(answer: Answer | None) -> str:
    hidden = (
        "no hidden common causes" if answer is None or answer.graph.bidirected is None else "hidden causes in pairs"
    )
    said = 0 if answer is None else sum(map(len, answer.knowledge.to_dict().values()))
    known = f" You added {counted(said, 'statement')}." if said else ""
    return f"No feedback, {hidden}, independent observations of one population.{known}"


def _finding(finding: Finding) -> FindingFacts:
    return FindingFacts(
        severity=finding.severity,  # type: ignore[arg-type]
        message=finding.message,
        offers=[_offer(remedy, label) for remedy in finding.remedies if (label := button(remedy)) is not None],
    )


def _offer(remedy: Remedy, label: str) -> Offer:
    if remedy.action == "drop":
        return Offer(label=label, drop=list(remedy.columns))
    return Offer(label=label, missing=remedy.setting)  # type: ignore[arg-type]


# The graph


def graph_of(answer: Answer) -> Graph:
    """The graph of an answer."""
    return Graph(
        argument=argument_of(answer),
        variables=list(answer.names),
        edges=[
            EdgeFacts(
                source=edge.source,
                target=edge.target,
                probability=_probability(edge.probability),
                adjacency_probability=_probability(edge.adjacency_probability),
                direction=edge.direction,  # type: ignore[arg-type]
                required=edge.required,
            )
            for edge in answer.edges
        ],
        hidden_causes=_hidden_causes(answer),
        order=list(answer.order),
        remarks=[*remarks(answer), *(() if answer.decoding.exact else answer.worded_warnings(PAGE)[-1:])],
    )


def _hidden_causes(answer: Answer) -> list[HiddenCause]:
    pairs, probabilities = answer.graph.bidirected, answer.confounding_probabilities
    if pairs is None or probabilities is None:
        return []
    return [
        HiddenCause(variables=[answer.names[j], answer.names[k]], probability=_probability(probabilities[j, k]))
        for j, k in np.argwhere(np.triu(pairs)).tolist()
    ]


def argument_of(answer: Answer) -> Argument:
    """The argument that led to an answer."""
    statements = answer.knowledge.to_dict()
    statements.pop("search_space", None)
    return Argument(
        knowledge=KnowledgeStatements(**statements),
        rule=answer.rule,  # type: ignore[arg-type]
        threshold=answer.threshold,
    )


def argued(answer: Answer, argument: Argument) -> Answer:
    """The answer under another argument; KnowledgeError or ConfigurationError where that does not hold together."""
    return answer.refine(
        knowledge=Knowledge.from_dict(argument.knowledge.model_dump()),
        rule=argument.rule,
        threshold=argument.threshold,
    )


def places_of(answer: Answer) -> Places:
    """The layout of our pictures, for boxes in the page's font."""
    labels = [shortened(" ".join(visible(name).split()), MOST_LINES, LONGEST_LINE) for name in answer.names]
    widths = [max(map(len, label.split("\n"))) * LETTER_WIDTH + PADDING[0] for label in labels]
    height = max((label.count("\n") + 1 for label in labels), default=1) * LINE_HEIGHT + PADDING[1]
    layout = layered_layout(answer.adjacency.astype(bool), widths, height, gap=18.0, layer_gap=52.0)
    return Places(
        nodes=[
            Node(name=name, label=label, x=float(x), y=float(layout.height - y), width=width, height=height)
            for name, label, width, (x, y) in zip(answer.names, labels, widths, layout.centers, strict=True)
        ],
        bends=[
            Bends(
                source=answer.names[route.source],
                target=answer.names[route.target],
                points=[[float(x), float(layout.height - y)] for x, y in route.points[1:-1]],
            )
            for route in layout.routes
        ],
    )


def _probability(value: float) -> float:
    """Rounding may leave a probability a hair outside its range."""
    return min(max(float(value), 0.0), 1.0)
