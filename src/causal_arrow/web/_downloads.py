"""Files of a session: graph files, pictures, a report in one HTML file, and Python that gives the same answer."""

from __future__ import annotations

import csv
import html
import io
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from causal_arrow._version import __version__
from causal_arrow.discovery import exports, pictures, summary
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ArrowError
from causal_arrow.text import counted_share, in_digits
from causal_arrow.web._questions import MAX_LISTED, effect_of
from causal_arrow.web._sessions import EffectAsked, Session, read_off
from causal_arrow.web._views import table_facts
from causal_arrow.web._wording import failure
from causal_arrow.web.graphs import statements
from causal_arrow.web.work import work_file

ESTIMATORS = {"flexible": "", "linear": " (estimated with straight lines)", "curved": " (estimated with curves)"}
FORMULA_SIGNS = ("=", "+", "-", "@")
_PAINTING = threading.Lock()  # matplotlib's settings belong to the whole process


@dataclass(frozen=True)
class Download:
    """A kind of file: its media type and how to make it."""

    media_type: str
    make: Callable[[Session], bytes]


def _text(export: Callable[[Answer], str]) -> Callable[[Session], bytes]:
    return lambda session: export(session.current().answer).encode("utf-8")


def _edges_csv(answer: Answer) -> str:
    """`to_csv`, with an apostrophe before names that a spreadsheet program would take for formulas."""
    if not any(name.lstrip().startswith(FORMULA_SIGNS) for name in answer.names):
        return exports.to_csv(answer)
    rows = list(csv.reader(io.StringIO(exports.to_csv(answer), newline="")))
    marked = [[f"'{cell}" if cell.lstrip().startswith(FORMULA_SIGNS) else cell for cell in row[:2]] for row in rows]
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([*cells, *row[2:]] for cells, row in zip(marked, rows, strict=True))
    return file.getvalue()


def _picture(name: str) -> Callable[[Session], bytes]:
    def make(session: Session) -> bytes:
        with _PAINTING, tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            pictures.save_graph(session.current().answer, file)
            return file.read_bytes()

    return make


def python_lines(session: Session) -> str:
    """A program that gives the same answer to the same file, and the same answers to what was asked about it."""
    answer, usual = session.current().answer, Settings()
    chosen = {**read_off(answer), "scale": session.choices.scale, "knowledge": answer.knowledge.to_dict() or None}
    settings = {name: value for name, value in chosen.items() if value != getattr(usual, name)}
    settings = {"model": answer.model, "decode": answer.decode, "threshold": answer.threshold, **settings}
    reading = session.choices.reading.to_dict()
    lines = [
        f"# The answer of causal-arrow {__version__} to this table, as it was argued on the page.",
        "from causal_arrow import Arrow, read_table",
        "",
        "table = read_table(",
        f"    {session.file.name!r},",
        *(f"    {name}={value!r}," for name, value in reading.items()),
        ")",
        "arrow = Arrow(",
        *(f"    {name}={value!r}," for name, value in settings.items()),
        ")",
        "arrow.fit(table)",
        "print(arrow.summary())",
    ]
    for asked in _questions(session):
        options = "".join(f", {name}={value!r}" for name, value in asked.options.items())
        lines.append(f"print(arrow.effect({asked.cause!r}, {asked.effect!r}{options}))")
    if session.resampled is not None:
        lines.append(f"print(arrow.stability(n_resamples={len(session.resampled)}).to_frame().to_string())")
    return "\n".join([*lines, ""])


def _questions(session: Session) -> list[EffectAsked]:
    """The questions about effects of variables that are still there."""
    there = set(session.current().answer.names)
    return [asked for asked in session.questions if {asked.cause, asked.effect} <= there]


def report_page(session: Session) -> str:
    """The trust card, the graph, what was known, the effects and the stability that were asked for, and the program, as
    one HTML file that needs nothing else."""
    answer = session.current().answer
    facts = table_facts(session)
    name = html.escape(facts["name"])
    card = [facts["size"], facts["against"], facts["assumed"]]
    findings = [f"{finding['severity']}: {finding['message']}" for finding in facts["findings"]]
    with _PAINTING:
        # Without findings: the card above has them, in the words of the page.
        graph = summary.to_html(summary.summarize(replace(answer, findings=())), summary.picture_of(answer))
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" ',
            "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">",
            '<meta name="viewport" content="width=device-width">',
            f"<title>{name}: causal graph</title><style>{REPORT_STYLE}</style></head><body>",
            f"<h1>{name}</h1>",
            _paragraphs(card),
            "<h2>Graph</h2>",
            graph,
            _section("What was known", statements(answer.knowledge)),
            *_effects(session),
            *_stability(session),
            _section("Findings", findings),
            f"<h2>The same in Python</h2><pre>{html.escape(python_lines(session))}</pre>",
            "</body></html>\n",
        ]
    )


def _effects(session: Session) -> list[str]:
    """A section with the effects that were asked for, of variables that are still there."""
    found, parts = session.current(), []
    for asked in _questions(session):
        how = " (chance decided on the cause)" if asked.randomized else ESTIMATORS[asked.estimator]
        parts.append(f"<h3>{html.escape(f'{asked.cause} → {asked.effect}{how}')}</h3>")
        try:
            effect = effect_of(found, asked)
        except ArrowError as error:  # a level that it compares is gone since
            parts.append(_paragraphs([failure(error)]))
            continue
        parts.append(_paragraphs([" ".join(effect.lines)]))
        rows = [
            (
                ", ".join(row.adjustment_set) or "nothing",
                counted_share(row.frequency),
                in_digits(row.effect),
                f"{in_digits(row.low)} to {in_digits(row.high)}",
            )
            for row in effect.by_adjustment_set.head(MAX_LISTED).itertuples(index=False)
        ]
        parts.append(summary.html_table(("adjusted for", "graphs", "effect", "90% interval"), rows))
    return ["<h2>Effects</h2>", *parts] if parts else []


def _stability(session: Session) -> list[str]:
    """A section with the shares of resampled tables that show each edge, once they are read."""
    stability, answer = session.stability(), session.current().answer
    if stability is None:
        return []
    rows = []
    for edge in answer.edges:
        j, k = answer.index_of(edge.source), answer.index_of(edge.target)
        shares = stability.frequencies[j, k], stability.frequencies[k, j]
        rows.append((edge.source, edge.target, *(counted_share(float(share)) for share in shares)))
    words = f"Shares of {stability.resamples} bootstrap resamples."
    head = ("cause", "effect", "show this edge", "show it reversed")
    return ["<h2>Stability</h2>", _paragraphs([words]), summary.html_table(head, rows)]


def _paragraphs(lines: list[str]) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def _section(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"


REPORT_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#14202e}"
    "svg{max-width:100%;height:auto}table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}"
    "pre{background:#f4f6fa;padding:1rem;overflow:auto}"
)

DOWNLOADS = {
    "work.causal": Download("application/zip", work_file),
    "work-without-table.causal": Download("application/zip", partial(work_file, table=False)),
    "graph.png": Download("image/png", _picture("graph.png")),
    "graph.svg": Download("image/svg+xml", _picture("graph.svg")),
    "graph.json": Download("application/json", _text(exports.to_json)),
    "edges.csv": Download("text/csv", _text(_edges_csv)),
    "graph.graphml": Download("application/xml", _text(exports.to_graphml)),
    "graph.dot": Download("text/vnd.graphviz", _text(exports.to_dot)),
    "graph.dagitty.txt": Download("text/plain", _text(exports.to_dagitty)),
    "report.html": Download("text/html", lambda session: report_page(session).encode("utf-8", "backslashreplace")),
    "reproduce.py": Download("text/x-python", lambda session: python_lines(session).encode("utf-8")),
}
