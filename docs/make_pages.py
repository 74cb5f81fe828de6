"""Every page, table and figure that is made from records: `python docs/make_pages.py`.

    python docs/make_pages.py --check                 says what would change, and writes nothing
    python docs/make_pages.py --run                   with other weights: Arrow's own records first, on all cores
    python docs/make_pages.py --run --device cuda     or on a GPU

`--run` replaces Arrow's records in the packed files; those of other methods stay. To add some of theirs:

    causal-arrow benchmark networks --methods boss,boss-1,pc --output records
    python docs/make_pages.py --add records benchmarks
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from causal_arrow.benchmarks.collected import read_records
from causal_arrow.benchmarks.document import Block, Cell, Grid, Heading, Paragraph, to_markdown
from causal_arrow.benchmarks.packed import write_packed
from causal_arrow.benchmarks.published import property_tables, published_results
from causal_arrow.benchmarks.records import Record
from causal_arrow.benchmarks.report import paired_blocks, suite_blocks, write_report
from causal_arrow.benchmarks.summaries import Entry, RowSummary, Summary, paired_difference, summarize
from causal_arrow.benchmarks.training import LOG_FILE, draw_trajectory, read_trajectory
from causal_arrow.benchmarks.trust import calibration_blocks, pooled_by_tables, share_right

DOCS = Path(__file__).parent
ROOT = DOCS.parent

# What `--run` runs for each file of records: suites, datasets of each row, options.
RUNS: dict[str, tuple[tuple[str, int, str], ...]] = {
    "benchmarks": (
        ("in-distribution broad shifted networks herman sachs small confounded controls", 100, ""),
        ("wide long", 20, ""),
        ("sachs networks", 100, "--methods arrow-shd,arrow-f1"),
        ("herman shifted", 100, "--methods arrow-f1"),
        ("sachs", 100, "--scale given"),
    ),
    "any-table": (
        ("textbook independent", 10, ""),
        ("symmetries mixed missing interventional instruments measurement-error hidden", 5, ""),
        ("discrete", 3, ""),
    ),
    "limit": (("limit", 200, ""),),
}

# Columns of the README's table, each with the labels it may have in the records, the first that is there.
README_METHODS = {"Arrow": ("Arrow",), "BOSS": ("BOSS, better of two", "BOSS"), "DAGMA": ("DAGMA",)}
README_SUITES = ("networks", "sachs", "herman", "shifted")
RUN_SHOWN = DOCS / "model" / "training-runs" / "paper-encoder"
SHOWN = ("nshd", "f1", "ap")
TRIVIAL = ("Empty graph", "Random graph", "R² sorting")
ARROW_RULES = ("arrow-shd", "arrow-f1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="run Arrow over all suites first")
    parser.add_argument("--device", default="cpu", help="where --run runs it")
    parser.add_argument("--only", choices=list(RUNS), help="with --run: for this file of records alone")
    parser.add_argument("--add", nargs=2, metavar=("FROM", "NAME"), help="add records to a packed file")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    if arguments.add:
        source, name = arguments.add
        keep(name, [*records_of(name), *read_records(Path(source))])
    if arguments.run:
        for name in [arguments.only] if arguments.only else RUNS:
            run_arrow(name, arguments.device)
    if arguments.check:
        differing = differing_pages()
        print("\n".join(f"{path.name} would change" for path in differing) or "Every page is as its records say.")
        return int(bool(differing))
    write_pages()
    return 0


# Records


def packed(name: str) -> Path:
    return DOCS / "evidence" / "records" / f"{name}.jsonl.gz"


def records_of(name: str) -> list[Record]:
    return read_records(packed(name))


def calibration_records() -> list[Record]:
    """Records that say how often probabilities were right: a file of their own, else all those of Arrow."""
    if packed("calibration").exists():
        return records_of("calibration")
    every = [record for name in ("benchmarks", "any-table") for record in records_of(name)]
    return [record for record in every if record.method == "arrow" and "scale" not in record.settings]


def keep(name: str, records: Sequence[Record]) -> None:
    """Pack records, each work once, the last try of it."""
    write_packed(list({record.identity: record for record in records}.values()), packed(name))
    print(f"{len(records)} records in {packed(name).name}")


def run_arrow(name: str, device: str) -> None:
    """Arrow over the suites of a file, in place of what the file has of it."""
    with tempfile.TemporaryDirectory() as folder:
        for suites, datasets, options in RUNS[name]:
            command = [sys.executable, "-m", "causal_arrow.benchmarks", "record", *suites.split(), *options.split()]
            limits = ["--datasets", str(datasets), "--device", device, "--output", folder]
            subprocess.run([*command, *limits], check=True)
        fresh = read_records(Path(folder))
    others = [record for record in records_of(name) if record.method.partition(":")[0] not in ("arrow", *ARROW_RULES)]
    keep(name, [*others, *fresh])
    if name in ("benchmarks", "any-table"):
        packed("calibration").unlink(missing_ok=True)  # the new records say it too


# Pages


def write_pages() -> None:
    """All of them, and the figures."""
    write_report(packed("benchmarks"), output=DOCS / "evidence" / "benchmarks.md")
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
    draw_figures()


def draw_figures() -> None:
    from causal_arrow.benchmarks.figures import save_figure

    save_figure(draw_trajectory(read_trajectory(RUN_SHOWN / LOG_FILE)), DOCS / "images" / "trajectory.png")


def differing_pages() -> list[Path]:
    """Pages that are not what the records say; pictures are not drawn for that."""
    return [path for path, text in texts(with_benchmarks=True).items() if without_pictures(path) != text]


def without_pictures(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.name != "benchmarks.md":
        return text
    return re.sub(r"!\[(?P<caption>[^\]]*)\]\([^)]*\)\n\n\*(?P=caption)\*\n\n", "", text)


def texts(with_benchmarks: bool = False) -> dict[Path, str]:
    """What each page should say."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "page.md"
        pages = {}
        for name in ("any-table", "effects-evidence", "experiments-evidence"):
            # The title and what there is to say first are those of the page.
            page = DOCS / "evidence" / f"{name.removesuffix('-evidence')}.md"
            title, _, note = page.read_text(encoding="utf-8").splitlines()[:3]
            title = title.removeprefix("# ")
            write_report(packed(name), published=False, figures=False, output=output, title=title, note=note)
            pages[page] = output.read_text(encoding="utf-8")
        if with_benchmarks:
            write_report(packed("benchmarks"), figures=False, output=output)
            pages[DOCS / "evidence" / "benchmarks.md"] = output.read_text(encoding="utf-8")
    parts = {
        DOCS / "understand" / "probabilities.md": {"calibration": calibration_blocks(calibration_records())},
        DOCS / "evidence" / "what-can-be-known.md": {"limit": limit_blocks()},
        DOCS / "evidence" / "paper.md": {"properties": property_blocks()},
        ROOT / "README.md": {"accuracies": readme_blocks()},
    }
    notes = DOCS / "model" / "training.md"
    pages[notes] = with_measured_cells(notes.read_text(encoding="utf-8"))
    for path, blocks in parts.items():
        text = path.read_text(encoding="utf-8")
        for name, content in blocks.items():
            text = with_part(text, name, content)
        pages[path] = text
    return pages


def with_part(text: str, name: str, blocks: Sequence[Block]) -> str:
    """The text of a page with one of its parts made anew."""
    begin, end = f"<!-- {name}: written by python docs/make_pages.py -->\n", f"\n<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, also_found, after = rest.partition(end)
    if not found or not also_found:
        raise SystemExit(f"A page lacks the part {name!r}: expected {begin.strip()} and {end.strip()} in it.")
    return f"{before}{begin}\n{to_markdown(blocks, DOCS)}{end}{after}"


def with_measured_cells(notes: str) -> str:
    """The training notes with the accuracies of "Where it stands" as the records have them now."""
    rows = {f"{row.suite}/{row.row}": row for row in summarize(records_of("benchmarks")).rows}
    before, title, rest = notes.partition("## Where it stands\n")
    section, following, after = rest.partition("\nWhat the rows say")
    lines = section.split("\n")
    for place, line in enumerate(lines):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in rows:
            name, _, aim, _ = cells
            arrow, oracle = (_accuracies(rows[name].entry_of(method)) for method in ("arrow", "class-oracle"))
            lines[place] = f"| {name} | {arrow} | {aim} | {oracle} |"
    return before + title + "\n".join(lines) + following + after


def property_blocks() -> list[Block]:
    return [block for title, table in property_tables().items() for block in (Paragraph(f"**{title}**"), table)]


def limit_blocks() -> list[Block]:
    """The table of the suite `limit`, what it says in a sentence, and how sure of directions one may be."""
    records = records_of("limit")
    summary = summarize(records)
    lines = []
    for row in summary.of_suite("limit"):
        arrow, exact = row.entry_of("arrow"), row.entry_of("exact-bayes")
        if arrow is None or exact is None:
            raise SystemExit(f"{packed('limit').name} lacks Arrow or the exact posterior in the row {row.row}.")
        apart = paired_difference(arrow, exact, "ap")
        lines.append(
            (
                Cell(row.row),
                *(Cell(f"{entry.estimate('ap').mean:.3f}") for entry in (exact, arrow)),
                Cell(f"{apart.mean:+.3f} ({apart.standard_error:.3f})".replace("-", "−")),
                *(Cell(_sure_directions(records, row, method)) for method in ("exact-bayes", "arrow")),
            )
        )
    header = (
        "Law of strengths",
        "AP, exact posterior",
        "AP, Arrow",
        "Arrow − exact posterior",
        "Exact: directions from 0.95 on",
        "Arrow: directions from 0.95 on",
    )
    return [
        Grid(header, tuple(lines)),
        *(block for block in suite_blocks(summary, "limit", None) if not isinstance(block, Heading)),
        *(
            block if not isinstance(block, Heading) else Heading("Paired differences", 3)
            for block in paired_blocks(summary, "limit")
        ),
    ]


def _sure_directions(records: Sequence[Record], row: RowSummary, method: str) -> str:
    of_row = [record for record in records if record.row == row.row]
    share, pairs = share_right(pooled_by_tables(of_row, "directions", method)["limit"], 0.95, 1.0)
    return f"{share:.0%} right of {pairs}" if pairs else "none"


def readme_blocks() -> list[Block]:
    """The accuracies of the first page: means over all datasets that a method was run on."""
    summary = summarize(records_of("benchmarks"))
    paper = published_results()
    rows = [row for suite in README_SUITES for row in summary.of_suite(suite) if row.panel != "observational"]
    lines = []
    for row in rows:
        table = paper.table(row.suite, row.row)
        published = "" if table is None else " ".join(f"{table.methods['Arrow'][name][0]:.2f}" for name in SHOWN)
        lines.append(
            (
                Cell(f"{row.suite}/{row.row}"),
                Cell(_observations(row)),
                *(Cell(_accuracies(_entry(row, labels))) for labels in README_METHODS.values()),
                Cell(published),
            )
        )
    header = ("Data", "n", *README_METHODS, "The paper's network, published")
    return [Grid(header, tuple(lines)), Paragraph(_readme_errors(rows)), Paragraph(_readme_sachs(summary))]


def _readme_errors(rows: Sequence[RowSummary]) -> str:
    """How sure the table is, and how many datasets it is made of."""
    entries = {
        title: [entry for row in rows if (entry := _entry(row, labels)) is not None]
        for title, labels in README_METHODS.items()
    }
    largest = {
        label: max(entry.estimate(name).standard_error for entry in members for name in SHOWN)
        for label, members in entries.items()
    }
    counts = {label: sorted({len(entry.finished) for entry in members}) for label, members in entries.items()}
    datasets = ", ".join(
        f"{label} {' to '.join(map(str, dict.fromkeys((c[0], c[-1]))))}" for label, c in counts.items()
    )
    return (
        f"Datasets per row: {datasets}. Standard errors are at most {largest['Arrow']:.2f} for Arrow and "
        f"{max(error for label, error in largest.items() if label != 'Arrow'):.2f} for the others; they are over "
        "datasets alone, and say nothing of another training run or of other networks than these."
    )


def _readme_sachs(summary: Summary) -> str:
    """What the row of real cells does not say by itself."""
    rows = {row.row: row for row in summary.of_suite("sachs")}

    def accuracies(row: str, label: str) -> str:
        return _accuracies(_entry(rows[row], [label]))

    arrow = _entry(rows["pooled-raw"], ["Arrow"])
    if arrow is None:
        raise SystemExit(f"{packed('benchmarks').name} lacks Arrow on the pooled cells of Sachs.")
    right = arrow.estimate("orientation_accuracy")
    trivial = ", ".join(f"{label} {accuracies('pooled-raw', label)}" for label in TRIVIAL)
    return (
        "Of Sachs, the one row of real cells, a reader should know more. Arrow tries skewed positive columns on a log "
        f"scale by itself; on the cells as given, the paper's protocol, it has "
        f"{accuracies('pooled-raw', 'Arrow, scale given')}, and on the 853 cells without any intervention "
        f"{accuracies('observational-raw', 'Arrow')}. Methods that know nothing or next to nothing: {trivial}. "
        f"Of the true edges that Arrow joins at all, {right.mean:.2f} ({right.standard_error:.2f}) point the right "
        "way, where a coin has 0.50."
    )


def _entry(row: RowSummary, labels: Sequence[str]) -> Entry | None:
    """The entry with the first of these labels that the row has."""
    by_label = {entry.variant.label: entry for entry in row.entries}
    return next((by_label[label] for label in labels if label in by_label), None)


def _accuracies(entry: Entry | None) -> str:
    if entry is None:
        return "–"
    return " ".join(f"{entry.estimate(name).mean:.2f}" for name in SHOWN)


def _observations(row: RowSummary) -> str:
    counts = sorted(record.dataset["observations"] for entry in row.entries for record in entry.finished)
    return f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"


if __name__ == "__main__":
    sys.exit(main())
