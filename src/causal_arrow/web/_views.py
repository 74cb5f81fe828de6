"""The page's view of a session: its state, and the trust card of its table."""

from __future__ import annotations

from typing import Any

from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ArrowError
from causal_arrow.series.exports import summarize as summarize_series
from causal_arrow.series.pictures import as_svg
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.table import Finding
from causal_arrow.text import capitalized, counted
from causal_arrow.web._queue import Job, NetworkQueue
from causal_arrow.web._sessions import Session
from causal_arrow.web._wording import PAGE, failure, offers
from causal_arrow.web.graphs import graph_of
from causal_arrow.web.messages import Facts, ReadingChoices


def session_facts(session: Session, queue: NetworkQueue) -> Facts:
    """The session as the page sees it: `seconds` is how long the network has been at it."""
    job, answer = session.job, session.answer
    error = None if job is None else job.error
    return {
        "session": session.key,
        **_progress(job, queue, "ready"),
        "seconds": 0.0 if job is None or job.state != "running" else job.seconds,
        "offers": offers(error.remedies if isinstance(error, ArrowError) else ()),
        "notice": session.notice,
        "table": table_facts(session),
        "choices": _choices(session.choices if session.found is not None else session.asked),
        "asked": _choices(session.asked),  # those of the last reading, which may have failed
        "graph": None if answer is None else {**graph_of(answer), "version": session.version},
        "stability": "none" if session.resampling is None else session.resampling.state,
        "kept": kept_facts(session),
    }


def _progress(job: Job[Any] | None, queue: NetworkQueue, without: str = "none") -> Facts:
    """The state of a job, how many jobs come first, and why it failed."""
    if job is None:
        return {"state": without, "ahead": 0, "message": None}
    return {"state": job.state, "ahead": queue.ahead(job), "message": None if job.error is None else failure(job.error)}


def _choices(choices: Settings) -> Facts:
    facts: Facts = ReadingChoices.model_validate({"scale": choices.scale, **choices.reading.to_dict()}).model_dump()
    return facts


def kept_facts(session: Session) -> list[Facts]:
    """The answers that are kept for comparison, in the order they came."""
    return [{"number": each.number, "name": each.name} for each in session.kept]


def stability_facts(session: Session, queue: NetworkQueue) -> Facts:
    """Progress of the network with resampled tables, and the share of them that have each edge of the graph."""
    job, answer, stability = session.resampling, session.answer, session.stability()
    edges = []
    if stability is not None and answer is not None:
        for edge in answer.edges:
            frequency = stability.frequencies[answer.index_of(edge.source), answer.index_of(edge.target)]
            edges.append({"source": edge.source, "target": edge.target, "frequency": float(frequency)})
    return {
        **_progress(job, queue),
        "share": 0.0 if job is None else job.share,
        "resamples": 0 if session.resampled is None else len(session.resampled),
        "edges": edges,
    }


def series_facts(session: Session, queue: NetworkQueue) -> Facts:
    """Progress of the network with the table read as a time series, and its graphs."""
    found, graph = None if session.series is None else session.series.result, None
    if found is not None:
        said = summarize_series(found.answer, PAGE, most=len(found.answer.edges))
        graph = {
            "title": said.title,
            "variables": list(found.answer.names),
            "columns": list(said.headings),
            "edges": list(map(list, said.rows)),
            "sentences": said.sentences,
            "warnings": list(said.warnings),
            "summary": as_svg(found.answer, "summary"),
            "window": as_svg(found.answer, "window"),
        }
    return {**_progress(session.series, queue), "graph": graph}


# The trust card


def table_facts(session: Session) -> Facts:
    """The table and what speaks for and against it: of the answer if there is one, else of the file."""
    report, answer = session.report, session.answer
    findings = report.findings
    if session.found is not None and answer is not None:
        report, findings = session.found.report, answer.findings
    detected = {column.name: column.kind for column in session.report.columns}
    read = {column.name: column for column in report.columns}
    missing = sum(column.missing for column in session.columns if column.name in read)
    return {
        "name": session.file.name,
        "size": _size(report, session, missing),
        "usable": session.found is not None or not any(finding.severity == "problem" for finding in findings),
        "missing": missing,
        "columns": [
            {
                "name": column.name,
                "detected": detected.get(column.name),  # None for one that cannot be read
                "kind": read[column.name].kind if column.name in read else None,  # None for one that is not used
                "levels": list(read[column.name].levels) if column.name in read else [],
                "values": list(column.values),
                "missing": column.missing,
            }
            for column in session.columns
        ],
        "findings": [
            {"severity": finding.severity, "message": finding.message, "offers": offers(finding.remedies)}
            for finding in findings
        ],
        "against": _against(findings),
        "assumed": _assumed(answer),
    }


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
