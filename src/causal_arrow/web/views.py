"""The page's view of a session: its state, the trust card, the graph and its layout."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pictures.scene import shortened
from causal_arrow.discovery.settings import Settings
from causal_arrow.discovery.summary import decided_by, remarks, suggestion, suggestion_sentence
from causal_arrow.errors import ArrowError, is_out_of_memory
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.graphs.layout import layered_layout
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.table import Finding
from causal_arrow.text import capitalized, counted, visible
from causal_arrow.web import messages
from causal_arrow.web.queue import NetworkQueue
from causal_arrow.web.sessions import READ_OFF, Session, read_off
from causal_arrow.web.wording import PAGE, offers

STATEMENTS = (
    ("required", "{} is required", " → "),
    ("forbidden", "{} is forbidden", " → "),
    ("roots", "nothing causes {}", ""),
    ("leaves", "{} causes nothing", ""),
    ("randomized", "{} was randomized", ""),
    ("no_hidden_cause", "{} share no hidden cause", " and "),
)
"""Kinds of statements about single edges, variables and pairs, their words, and what joins the two of a pair."""

MAX_NAMED = 12
"""Edges of a search space that its statement names."""


def statements(knowledge: Knowledge) -> list[str]:
    """Each statement as a sentence without its full stop; tiers are one statement, and so is a search space."""
    words = [
        template.format(entry if isinstance(entry, str) else joint.join(entry))
        for kind, template, joint in STATEMENTS
        for entry in getattr(knowledge, kind)
    ]
    if knowledge.tiers:
        words.append("; ".join(f"tier {index}: {', '.join(tier)}" for index, tier in enumerate(knowledge.tiers, 1)))
    words += [f"believed: {belief}" for belief in knowledge.beliefs]
    if knowledge.search_space:
        words.append(f"only these edges may exist: {_some(knowledge.search_space)}")
    return words


def _some(edges: Sequence[tuple[str, str]]) -> str:
    more = f" and {len(edges) - MAX_NAMED} more" if len(edges) > MAX_NAMED else ""
    return ", ".join(" → ".join(edge) for edge in edges[:MAX_NAMED]) + more


# Pixels of the page's font, wide letters included.
LETTER_WIDTH, LINE_HEIGHT = 7.4, 17.0
PADDING = (20.0, 14.0)
MAX_LETTERS, MAX_LINES = 16, 2
SPACINGS = ((18.0, 52.0, 1.0), (30.0, 26.0, 1.5))
"""Gaps in and between layers, and how much wider than the canvas to aim at: long paths leave a layout too tall."""
MAX_TRIED = 100
CANVAS = (960.0, 600.0)
MAX_ZOOM = 1.6  # as in graph.js


def session_facts(session: Session, queue: NetworkQueue) -> messages.SessionFacts:
    """The session as the page sees it."""
    job, answer = session.job, session.answer
    error = None if job is None else job.error
    remedies = error.remedies if isinstance(error, ArrowError) else ()
    return messages.SessionFacts(
        session=session.key,
        state="ready" if job is None else job.state,  # type: ignore[arg-type]
        ahead=0 if job is None else queue.ahead(job),
        seconds=0.0 if job is None or job.state != "running" else job.seconds,
        message=None if error is None else failure(error),
        offers=offers(remedies),
        notice=session.notice,
        table=table_facts(session),
        choices=_choices(session.choices if session.found is not None else session.asked),
        asked=_choices(session.asked),
        graph=None if answer is None else graph_of(answer).model_copy(update={"version": session.version}),
        stability="none" if session.resampling is None else session.resampling.state,  # type: ignore[arg-type]
        kept=kept_facts(session),
    )


def _choices(choices: Settings) -> messages.ReadingChoices:
    return messages.ReadingChoices.model_validate({"scale": choices.scale, **choices.reading.to_dict()})


def kept_facts(session: Session) -> list[messages.KeptFacts]:
    """The answers that are kept for comparison, in the order they came."""
    return [messages.KeptFacts(number=each.number, name=each.name) for each in session.kept]


def stability_facts(session: Session, queue: NetworkQueue) -> messages.Stability:
    """Progress of the network with resampled tables, and the share of them that have each edge of the graph."""
    job, answer = session.resampling, session.answer
    edges = []
    if (stability := session.stability()) is not None and answer is not None:
        edges = [
            messages.StableEdge(
                source=edge.source,
                target=edge.target,
                frequency=stability.frequencies[answer.index_of(edge.source), answer.index_of(edge.target)],
            )
            for edge in answer.edges
        ]
    return messages.Stability(
        state="none" if job is None else job.state,  # type: ignore[arg-type]
        ahead=0 if job is None else queue.ahead(job),
        share=0.0 if job is None else job.share,
        message=None if job is None or job.error is None else failure(job.error),
        resamples=0 if session.resampled is None else len(session.resampled),
        edges=edges,
    )


def failure(error: Exception) -> str:
    """Why something failed, in a sentence."""
    if isinstance(error, ArrowError):
        return error.worded(PAGE)
    if is_out_of_memory(error):
        return "There is not enough memory for this: use fewer observations or fewer variables."
    return f"This failed in a way it should not ({type(error).__name__}): please report it."


# The trust card


def table_facts(session: Session) -> messages.TableFacts:
    """The table and what speaks for and against it: of the answer if there is one, else of the file."""
    report, answer = session.report, session.answer
    findings = report.findings
    if session.found is not None and answer is not None:
        report, findings = session.found.report, answer.findings
    missing = _missing_cells(report, session)
    return messages.TableFacts(
        name=session.file.name,
        size=_size(report, session, missing),
        usable=session.found is not None or not any(finding.severity == "problem" for finding in findings),
        missing=missing,
        columns=_columns(report, session),
        findings=[_finding(finding) for finding in findings],
        against=_against(findings),
        assumed=_assumed(answer),
    )


def _columns(report: TableReport, session: Session) -> list[messages.ColumnFacts]:
    detected = {column.name: column.kind for column in session.report.columns}
    read = {column.name: column for column in report.columns}
    return [
        messages.ColumnFacts(
            name=column.name,
            detected=detected.get(column.name),
            kind=read[column.name].kind if column.name in read else None,
            levels=list(read[column.name].levels) if column.name in read else [],
            values=list(column.values),
            missing=column.missing,
        )
        for column in session.columns
    ]


def _missing_cells(report: TableReport, session: Session) -> int:
    used = {column.name for column in report.columns}
    return sum(column.missing for column in session.columns if column.name in used)


DONE_ABOUT_MISSING = {
    "drop": "incomplete observations left out",
    "impute": "filled with predictions",
    "model": "left to the network",
    "auto": "left to the network",
}


def _size(report: TableReport, session: Session, missing: int) -> str:
    """Rows, columns, kinds, and what is missing."""
    kinds = "" if any(column.kind != "number" for column in report.columns) else ", all numbers"
    gaps = "no cell is missing"
    if missing:
        done = f", {DONE_ABOUT_MISSING.get(session.choices.reading.missing, '')}" if session.found is not None else ""
        gaps = f"{counted(missing, 'cell')} {'is' if missing == 1 else 'are'} missing{done}"
    left_out = len(session.choices.reading.drop or ()) if session.found is not None else 0
    without = f"; {counted(left_out, 'column')} left out" if left_out else ""
    return f"{report.title}{kinds}; {gaps}{without}."


def _against(findings: tuple[Finding, ...]) -> str:
    problems = [finding for finding in findings if finding.severity == "problem"]
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if problems:
        return f"{capitalized(counted(len(problems), 'problem'))} must be solved before the network can read the table."
    if not warnings:
        return "Nothing about the table stands out."
    more = f" ({counted(len(warnings) - 1, 'more warning')} below)" if len(warnings) > 1 else ""
    return f"{_first_sentence(warnings[0].message)}{more}"


def _first_sentence(message: str) -> str:
    """Up to the first full stop outside of a quoted name."""
    start = ""
    for piece in message.split(". "):
        start += piece
        if start.count("'") % 2 == 0:
            return start if start.endswith(".") else f"{start}."
        start += ". "
    return message


def _assumed(answer: Answer | None) -> str:
    judged = answer is not None and answer.graph.bidirected is not None
    sufficient = "" if judged else "no hidden common causes, "
    told = " Hidden common causes are judged for each pair." if judged else ""
    said = 0 if answer is None else sum(map(len, answer.knowledge.to_dict().values()))
    known = f" You added {counted(said, 'statement')}." if said else ""
    population = "one population" if answer is None or answer.environment is None else "each environment"
    return f"No feedback, {sufficient}independent observations of {population}.{told}{known}"


def _finding(finding: Finding) -> messages.FindingFacts:
    return messages.FindingFacts(
        severity=finding.severity,  # type: ignore[arg-type]
        message=finding.message,
        offers=offers(finding.remedies),
    )


# The graph


def graph_of(answer: Answer) -> messages.Graph:
    """The graph of an answer."""
    return messages.Graph(
        argument=argument_of(answer),
        suggestion=_suggestion(answer),
        variables=list(answer.names),
        edges=[
            messages.EdgeFacts(
                source=edge.source,
                target=edge.target,
                probability=edge.probability,
                adjacency_probability=edge.adjacency_probability,
                direction=edge.direction,  # type: ignore[arg-type]
                decided=decided_by(answer, edge.source, edge.target),
                required=edge.required,
            )
            for edge in answer.edges
        ],
        hidden_causes=_hidden_causes(answer),
        judges_hidden_causes=answer.confounding_probabilities is not None,
        order=list(answer.order),
        remarks=[
            *(words for words in remarks(answer, PAGE) if words != suggestion_sentence(answer, PAGE)),
            *(() if answer.decoding.exact else answer.worded_warnings(PAGE)[-1:]),
        ],
    )


def _suggestion(answer: Answer) -> messages.Suggestion | None:
    """Knowledge that column names suggest and the graph contradicts; the page adds it in one click."""
    remedy = suggestion(answer)
    if remedy is None:
        return None
    words = suggestion_sentence(answer, {})
    return messages.Suggestion(words=words, names=list(remedy.columns), kind=remedy.action)  # type: ignore[arg-type]


def _hidden_causes(answer: Answer) -> list[messages.ShownHiddenCause]:
    return [
        messages.ShownHiddenCause(variables=[pair.first, pair.second], probability=pair.probability)
        for pair in answer.hidden_causes
    ]


def argument_of(answer: Answer) -> messages.Argument:
    """The argument that led to an answer."""
    statements = answer.knowledge.to_dict()
    statements.pop("search_space", None)
    return messages.Argument(knowledge=messages.KnowledgeStatements(**statements), **read_off(answer))


def argued(answer: Answer, argument: messages.Argument) -> Answer:
    """The answer under another argument; KnowledgeError or ConfigurationError where that does not hold together."""
    knowledge = Knowledge.from_dict(argument.knowledge.model_dump())
    return answer.refine(knowledge=knowledge, **argument.model_dump(include=set(READ_OFF)))


def places_of(
    names: Sequence[str], edges: Collection[Sequence[str]], canvas: tuple[float, float] = CANVAS
) -> messages.Places:
    """The layout of our pictures, for boxes in the page's font, as large as fits a canvas (width, height).

    Edges against the order of the names run upwards.
    """
    if not names:
        return messages.Places(nodes=[], routes=[])
    index = {name: number for number, name in enumerate(names)}
    downwards = np.zeros((len(names), len(names)), dtype=bool)
    for source, target in edges:
        downwards[tuple(sorted((index[source], index[target])))] = True
    labels = [shortened(" ".join(visible(name).split()), MAX_LINES, MAX_LETTERS) for name in names]
    widths = [max(map(len, label.split("\n"))) * LETTER_WIDTH + PADDING[0] for label in labels]
    height = max((label.count("\n") + 1 for label in labels), default=1) * LINE_HEIGHT + PADDING[1]
    aspect = canvas[0] / canvas[1]
    layouts = [
        layered_layout(downwards, widths, height, gap=gap, layer_gap=layer_gap, aspect=stretch * aspect)
        for gap, layer_gap, stretch in (SPACINGS if len(names) <= MAX_TRIED else SPACINGS[-1:])
    ]
    layout = max(layouts, key=lambda each: min(canvas[0] / each.width, canvas[1] / each.height, MAX_ZOOM))
    routes = {
        (names[each.source], names[each.target]): [[float(x), float(layout.height - y)] for x, y in each.points]
        for each in layout.routes
    }
    return messages.Places(
        nodes=[
            messages.Node(name=name, label=label, x=float(x), y=float(layout.height - y), width=width, height=height)
            for name, label, width, (x, y) in zip(names, labels, widths, layout.centers, strict=True)
        ],
        routes=[
            messages.DrawnEdge(
                source=source, target=target, points=routes.get((source, target)) or routes[target, source][::-1]
            )
            for source, target in edges
        ],
    )
