"""Write every page, table and figure that is made from records: `python docs/tools/make_pages.py`.

    python docs/tools/make_pages.py --check                 list what would change, and write nothing
    python docs/tools/make_pages.py --run                   with other weights: run Arrow first, on all cores
    python docs/tools/make_pages.py --run --device cuda     or on a GPU

`--run` replaces Arrow's records in the packed files, and keeps those of other methods. To add some of theirs:

    causal-arrow-lab benchmark networks --methods boss,boss-1,pc --output records
    python docs/tools/make_pages.py --add records benchmarks

Times on a GPU have a file: `--add records h200` for records of `causal-arrow-lab benchmark ... --device cuda`. So has
the frozen suite, which `--run` never runs: `--add records held-out`, once per release, gives it a page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

import scale
from calibration_tables import calibration_blocks, calibration_errors, pooled_by_tables, share_right, sure_directions
from causal_arrow.network import DEFAULT_MODEL, bundled_models
from causal_arrow_lab.benchmarks.records import Record, read_records, write_packed
from causal_arrow_lab.benchmarks.suites import SUITES
from document import Block, Cell, Grid, Heading, Paragraph, to_markdown
from overview import (
    accuracy_by_size,
    counts_of,
    datasets_and_errors,
    main_result,
    methods_and_settings,
    networks_compared,
    sachs_remark,
    shift_blocks,
)
from suite_pages import pictures_of, span, suite_csv, suite_page
from summaries import Entry, RowSummary, Summary, paired_difference, published_results, summarize
from training_report import LOG_FILE, draw_trajectory, read_trajectory
from wins_and_losses import kinds_table, losses, suites_table, tallies, tally_table, wins_sentence

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent

# What `--run` runs for each file of records: suites, datasets of each row, options.
RUNS: dict[str, tuple[tuple[str, int, str], ...]] = {
    "benchmarks": (
        ("in-distribution broad shifted networks herman sachs small confounded controls", 100, ""),
        ("wide long", 20, ""),
        ("sachs networks", 100, "--methods arrow-shd,arrow-f1"),
        ("herman shifted", 100, "--methods arrow-f1"),
        ("sachs", 100, "--scale given"),
        ("in-distribution broad shifted networks herman sachs small", 100, "--methods arrow:arrow-strict"),
        ("sachs", 100, "--methods arrow:arrow-strict --scale given"),
    ),
    "any-table": (
        ("textbook independent", 100, ""),
        ("symmetries", 5, ""),
        ("mixed missing interventional instruments measurement-error hidden", 25, ""),
        ("discrete", 10, ""),
        ("interventional", 25, "--methods arrow-unmarked"),
    ),
    "limit": (("limit", 200, ""),),
}

FILES = ("benchmarks", "limit", "any-table", "effects-evidence", "experiments-evidence")
"""Packed records whose suites have pages, as has the frozen suite once its file is there."""
FROZEN = "held-out"
"""The frozen suite and its file of records. Not in RUNS: whoever runs Arrow again is choosing weights."""

FIGURES = DOCS / "evidence" / "suites" / "figures"
FIGURES_OF = (
    "in-distribution",
    "broad",
    "shifted",
    "networks",
    "herman",
    "sachs",
    "wide",
    "long",
    "small",
    "confounded",
    "mixed",
    "missing",
    "measurement-error",
)
"""Suites whose pages have figures."""
OTHER_PAGES = {name: DOCS / "evidence" / f"{name}.md" for name in ("effects", "experiments")}
RUN_SHOWN = ROOT / "lab" / "research" / "training-runs" / "paper-encoder"
SHOWN = ("nshd", "f1", "ap")
STRICT = "arrow-strict"

MODELS = {
    "arrow-base": (
        "the default, for every table: numbers, categories, missing cells, experiments, several sites. It also gives "
        "probabilities of hidden causes of pairs. Training began with complete tables of numbers: half of them as in "
        "the paper, the others with raw structural equations and wider choices of graphs, equations, noise and signal "
        "strength, a mixture that was chosen with the benchmark suites networks, sachs and herman in view. It went on "
        "with columns of every kind, missing cells, experiments, hidden causes, and some tables of up to 10,000 "
        "observations or 256 variables."
    ),
    STRICT: (
        "for research: the encoder of arrow-base without its inputs beyond complete tables of numbers, trained on the "
        "paper's tasks and shapes alone (section 4.1), with settings fixed beforehand. It shows what the encoder "
        "achieves without the wider training mixture. It has hardly seen tables with no more observations than "
        "variables, and should not be used for them."
    ),
}
"""The purpose and the training of each network that may be bundled."""
ARROW_RULES = ("arrow-shd", "arrow-f1", "arrow-tempered", "arrow-unmarked")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="run Arrow over all suites first")
    parser.add_argument("--device", default="cpu", help="where --run runs it")
    parser.add_argument("--only", choices=list(RUNS), help="with --run: for this file of records alone")
    parser.add_argument("--add", nargs=2, metavar=("FROM", "NAME"), help="add records to a packed file")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    if arguments.add:
        add(*arguments.add)
    if arguments.run:
        if arguments.only is None:
            packed("calibration").unlink(missing_ok=True)  # the new records hold it too
        for name in [arguments.only] if arguments.only else RUNS:
            run_arrow(name, arguments.device)
    if arguments.check:
        differing = differing_pages()
        print("\n".join(f"{path.name} would change" for path in differing) or "Every page agrees with its records.")
        return int(bool(differing))
    write_pages()
    return 0


# Records


def packed(name: str) -> Path:
    return DOCS / "evidence" / "records" / f"{name}.jsonl.gz"


def records_of(name: str) -> list[Record]:
    return read_records(packed(name))


def files_with_pages() -> list[str]:
    """Files of records whose suites have pages."""
    return [*FILES, *([FROZEN] if packed(FROZEN).exists() else [])]


def add(source: str, name: str) -> None:
    """Put the records of a folder into a packed file."""
    new = read_records(Path(source))
    if strays := sorted({record.suite for record in new if (record.suite == FROZEN) != (name == FROZEN)}):
        raise SystemExit(
            f"{source} has records of {', '.join(strays)}, which do not belong in {packed(name).name}: those of the "
            f"frozen suite, and no others, are kept in {packed(FROZEN).name}."
        )
    keep(name, [*(records_of(name) if packed(name).exists() else []), *new])


def calibration_records() -> list[Record]:
    """Records with reliabilities: those of the file `calibration`, else all of Arrow."""
    if packed("calibration").exists():
        return records_of("calibration")
    every = [record for name in ("benchmarks", "any-table") for record in records_of(name)]
    return [record for record in every if record.method == "arrow" and "scale" not in record.settings]


def keep(name: str, records: Sequence[Record]) -> None:
    """Pack records; of several of the same work, the last."""
    write_packed(list({record.identity: record for record in records}.values()), packed(name))
    print(f"{len(records)} records in {packed(name).name}")


def run_arrow(name: str, device: str) -> None:
    """Run Arrow over the suites of a file, and replace its records there."""
    with tempfile.TemporaryDirectory() as folder:
        for suites, datasets, options in RUNS[name]:
            if STRICT in options and STRICT not in bundled_models():
                continue
            command = [sys.executable, "-m", "causal_arrow_lab.benchmarks", *suites.split(), *options.split()]
            limits = ["--datasets", str(datasets), "--device", device, "--output", folder]
            subprocess.run([*command, *limits], check=True)
        fresh = read_records(Path(folder))
    others = [record for record in records_of(name) if record.method.partition(":")[0] not in ("arrow", *ARROW_RULES)]
    keep(name, [*others, *fresh])


# Pages


def write_pages() -> None:
    """Write all pages, CSV files and figures."""
    for path, text in texts().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    draw_figures()


def draw_figures() -> None:
    """Draw the figures of the pages, and remove those that no page shows any more."""
    from figures import benchmark_figures, save_figure

    shown = set()
    for summary in summaries().values():
        for plan in benchmark_figures(summary):
            of_calibration = plan.section == "calibration" and summary is summaries()["benchmarks"]
            if plan.section in FIGURES_OF or of_calibration:
                save_figure(plan.draw(), FIGURES / f"{plan.name}.png")
                shown.add(f"{plan.name}.png")
    for path in FIGURES.iterdir():
        if path.name not in shown:
            path.unlink()
    save_figure(draw_trajectory(read_trajectory(RUN_SHOWN / LOG_FILE)), DOCS / "images" / "trajectory.png")
    scale.draw_wide(scale.read_records(scale.RECORDS))
    scale.draw_times(scale.read_records(scale.RECORDS_OF_TIMES))


def differing_pages() -> list[Path]:
    """Pages and files that disagree with the records; pictures are not compared."""
    return [path for path, text in texts().items() if not path.exists() or path.read_text(encoding="utf-8") != text]


@cache
def summaries() -> dict[str, Summary]:
    """The summary of each file of records."""
    return {name: summarize(kept_records(name)) for name in files_with_pages()}


@cache
def kept_records(name: str) -> list[Record]:
    """The records of a file, read once for all pages."""
    return records_of(name)


@cache
def timed_on_gpu() -> Summary | None:
    """Arrow timed on an H200, if there are records of that."""
    return summarize([record for name in on_gpu_files() for record in kept_records(name)]) if on_gpu_files() else None


def on_gpu_files() -> list[str]:
    """Files of records that were made for the times of a GPU."""
    return [name for name in ("h200",) if packed(name).exists()]


def page_of(suite: str) -> Path:
    return OTHER_PAGES.get(suite, DOCS / "evidence" / "suites" / f"{suite}.md")


def links_from(folder: Path) -> dict[str, str]:
    """Links from a page in this folder to the page of each suite."""
    return {suite: relative(page_of(suite), folder) for suite in SUITES}


def relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def texts() -> dict[Path, str]:
    """The text of each page and each CSV file."""
    pages: dict[Path, str] = {}
    for summary in summaries().values():
        for suite in summary.suites:
            pages |= texts_of_suite(summary, suite)
    for path, parts in generated_parts().items():
        text = pages.get(path) or path.read_text(encoding="utf-8")
        for name, content in parts.items():
            text = with_part(text, name, content, path.parent)
        pages[path] = text
    log = ROOT / "lab" / "research" / "log.md"
    pages[log] = with_measured_cells(log.read_text(encoding="utf-8"))
    return pages


def texts_of_suite(summary: Summary, suite: str) -> dict[Path, str]:
    """The page of a suite and its CSV file."""
    page, table = page_of(suite), DOCS / "evidence" / "suites" / f"{suite}.csv"
    blocks = suite_page(
        summary,
        suite,
        csv_file=relative(table, page.parent),
        protocol=relative(DOCS / "evidence" / "protocol.md", page.parent),
        paper=published_results(),
        on_gpu=timed_on_gpu(),
        pictures=list(pictures_of(summary, suite, FIGURES).values()) if suite in FIGURES_OF else [],
        extra=[Heading("Which shift hurts most"), *shift_blocks(summary)] if suite == "shifted" else [],
    )
    return {page: to_markdown(blocks, page.parent), table: suite_csv(summary, suite, timed_on_gpu())}


def generated_parts() -> dict[Path, dict[str, list[Block]]]:
    """The generated parts of handwritten pages."""
    found = summaries()
    evidence = DOCS / "evidence"
    links = links_from(evidence)
    benchmarks, any_table = found["benchmarks"], found["any-table"]
    sentences = losses(found, kept_records("limit"), calibration_records())
    paper = published_results()
    counted_wins = tallies(list(found.values()))
    return {
        evidence / "index.md": {
            "counts": [Paragraph(f"Measured so far: {counts_of(list(found.values()))}.")],
            "main result": [main_result(benchmarks), Paragraph(datasets_and_errors(benchmarks))],
            "sizes": [accuracy_by_size(benchmarks)],
            "tally": [tally_table(counted_wins)],
            "losses": [Paragraph("\n".join(f"- {text}" for text in [*sentences, wide_sentence()]))],
        },
        evidence / "benchmarks.md": {
            "suites": [suites_table([suite for one in found.values() for suite in one.suites], counted_wins, links)],
            "held-out": [Paragraph(frozen_sentence())],
        },
        evidence / "scale.md": {
            "times": scale.times_blocks(scale.read_records(scale.RECORDS_OF_TIMES)),
            "wide": scale.wide_blocks(scale.read_records(scale.RECORDS)),
            "long tables": scale.long_blocks(scale.read_records(scale.RECORDS_OF_LONG_TABLES)),
        },
        evidence / "any-table.md": {"kinds": [kinds_table(any_table, links)]},
        evidence / "protocol.md": {
            "methods": methods_and_settings(list(found.values())),
            "machines": [
                Paragraph(
                    machines(
                        [record for name in (*files_with_pages(), *on_gpu_files()) for record in kept_records(name)]
                    )
                )
            ],
        },
        evidence / "calibration.md": {"calibration": calibration_page()},
        evidence / "what-can-be-known.md": {"limit": limit_blocks()},
        DOCS / "model" / "card.md": {"models": models_blocks()},
        evidence / "paper.md": {
            "networks": networks_compared(benchmarks, paper, benchmarks.rows),
            "shifts": shift_blocks(benchmarks),
            "properties": property_blocks(),
        },
        DOCS / "understand" / "probabilities.md": {"calibration": [Paragraph(calibration_summary())]},
        ROOT / "README.md": {
            "accuracies": [
                main_result(benchmarks),
                Paragraph(scale.times_sentence(scale.read_records(scale.RECORDS_OF_TIMES))),
                Paragraph(sachs_remark(benchmarks)),
                Paragraph(wins_sentence(counted_wins)),
            ]
        },
    }


def with_part(text: str, name: str, blocks: Sequence[Block], folder: Path = DOCS) -> str:
    """The text of a page with one of its parts replaced."""
    begin, end = f"<!-- {name}: written by python docs/tools/make_pages.py -->\n", f"\n<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, also_found, after = rest.partition(end)
    if not found or not also_found:
        raise SystemExit(f"A page lacks the part {name!r}: expected {begin.strip()} and {end.strip()} in it.")
    return f"{before}{begin}\n{to_markdown(blocks, folder)}{end}{after}"


def with_measured_cells(notes: str) -> str:
    """The research log with the present accuracies in "Where it stands"."""
    rows = {f"{row.suite}/{row.row}": row for row in summaries()["benchmarks"].rows}
    before, title, rest = notes.partition("## Where it stands\n")
    section, following, after = rest.partition("\nWhat the rows say")
    lines = section.split("\n")
    for index, line in enumerate(lines):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in rows:
            name, _, aim, _ = cells
            arrow, oracle = (_accuracies(rows[name].entry_of(method)) for method in ("arrow", "class-oracle"))
            lines[index] = f"| {name} | {arrow} | {aim} | {oracle} |"
    return before + title + "\n".join(lines) + following + after


def _accuracies(entry: Entry | None) -> str:
    return "–" if entry is None else " ".join(f"{entry.estimate(name).mean:.2f}" for name in SHOWN)


PROPERTIES = {
    "What they do (table 1)": {
        "Zero-shot inference": "zero_shot",
        "DAG guarantee": "dag_guarantee",
        "Pretraining diversity": "diversity",
    },
    "What varies in their pretraining data (appendix A)": {
        "Graph family": "graph_family",
        "Functional form": "functional_form",
        "Noise model": "noise_model",
        "Dataset shape": "dataset_shape",
        "Rating": "diversity",
    },
}


def property_tables() -> dict[str, Grid]:
    """Table 1 of the paper and the table of its appendix A, by title."""
    marks: dict[bool | str, str] = {True: "✓", False: "✗"}
    models = published_results().pretrained_models
    return {
        title: Grid(
            ("Model", *names),
            tuple(
                (Cell(model), *(Cell(marks.get(value, str(value))) for value in (found[key] for key in names.values())))
                for model, found in models.items()
            ),
        )
        for title, names in PROPERTIES.items()
    }


def property_blocks() -> list[Block]:
    return [block for title, table in property_tables().items() for block in (Paragraph(f"**{title}**"), table)]


def machines(records: Sequence[Record]) -> str:
    """The machines and versions of many runs as a list, whatever their time limits."""
    counts: Counter[str] = Counter()
    for record in records:
        machine, versions = record.run.get("machine", {}), record.run.get("versions", {})
        gpu = f", {machine['gpu']} for Arrow" if "gpu" in machine else ""
        named = ", ".join(f"{name} {version}" for name, version in versions.items())
        counts[f"{machine.get('cpu', 'unknown machine')}, {machine.get('cores', '?')} cores{gpu}; {named}"] += 1
    return "\n".join(f"- {what}: {count:,} answers" for what, count in counts.most_common())


def models_blocks() -> list[Block]:
    """The bundled networks: size, what they were trained on, and what they are for."""
    lines, purposes = [], []
    for name, folder in sorted(bundled_models().items(), key=lambda item: list(MODELS).index(item[0])):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        size = (folder / "model.safetensors").stat().st_size
        training = config["extra"]["training"]
        shapes = training["shapes"]
        ranges = (" to ".join(f"{end:,}" for end in shapes[key]) for key in ("observations", "variables"))
        lines.append(
            (Cell(f"`{name}`"), Cell(f"{config['parameters']:,}"), Cell(f"{size / 1e6:.1f} MB"), *map(Cell, ranges))
        )
        purposes.append(f"- `{name}`: {MODELS[name]}")
    header = ("Network", "Parameters", "File", "Observations in training", "Variables in training")
    return [Grid(header, tuple(lines)), Paragraph("\n".join(purposes))]


def frozen_sentence() -> str:
    """A paragraph about the frozen suite, with the versions that it was run with."""
    what = (
        "The suite `held-out` is frozen: its graph families, mechanisms and noise distributions are in no training "
        "mixture, it is run once per release, and"
    )
    variants = summaries()[FROZEN].variants if FROZEN in summaries() else ()
    versions = dict.fromkeys(variant.versions["causal-arrow"] for variant in variants if "weights" in variant.settings)
    if not versions:
        return f"{what} it has not been run yet."
    page = relative(page_of(FROZEN), DOCS / "evidence")
    return f"{what} [its results]({page}) are published whatever they are. Run with causal-arrow {', '.join(versions)}."


def wide_sentence() -> str:
    """A paragraph about accuracy in tables with far more variables than in training."""
    every = scale.read_records(scale.RECORDS)
    records = [record for record in every if record["method"] == "arrow" and "f1" in record]
    sizes = sorted({record["variables"] for record in records})[-2:]
    found = {size: [record for record in records if record["variables"] == size] for size in sizes}
    means = [fmean(record["f1"] for record in members) for members in found.values()]
    tasks = span([len({record["dataset"] for record in members}) for members in found.values()])
    return (
        f"**Very wide tables.** F1 is {means[0]:.2f} at {sizes[0]:,} variables and {means[1]:.2f} at "
        f"{sizes[1]:,} with {DEFAULT_MODEL} (tasks of each size: {tasks}), which has seen some tables of up to 256 in "
        "training. In wider tables it needs fewer or more observations than variables: where there are about as many, "
        "some are left out ([scale](scale.md#wide-tables))."
    )


def calibration_page() -> list[Block]:
    """The tables of calibration, the errors of each suite, and the picture."""
    benchmarks = summaries()["benchmarks"]
    picture = pictures_of(benchmarks, "calibration", FIGURES)["reliability"]
    errors = [Heading("Expected calibration error"), *calibration_errors(benchmarks)]
    return [*calibration_blocks(calibration_records()), *errors, picture]


def calibration_summary() -> str:
    best, worst = sure_directions(calibration_records())
    return (
        f"Directions given probability 0.95 or more were right in {best[1]} of the cases in {best[0]}, and in "
        f"{worst[1]} in {worst[0]}; a coin is right in half of them. [All tables, by kind of "
        "data](../evidence/calibration.md)."
    )


def limit_blocks() -> list[Block]:
    """Arrow and the exact posterior for each distribution of coefficients: AP, and how often directions were right."""
    records = kept_records("limit")
    ranks, directions = [], []
    for row in summaries()["limit"].of_suite("limit"):
        arrow, exact = row.entry_of("arrow"), row.entry_of("exact-bayes")
        if arrow is None or exact is None:
            raise SystemExit(f"{packed('limit').name} lacks Arrow or the exact posterior in the row {row.row}.")
        apart = paired_difference(arrow, exact, "ap")
        ranks.append(
            (
                Cell(row.row),
                *(Cell(f"{entry.estimate('ap').mean:.3f}") for entry in (exact, arrow)),
                Cell(f"{apart.mean:+.3f} ({apart.standard_error:.3f})".replace("-", "−")),
            )
        )
        directions.append(
            (Cell(row.row), *(Cell(_sure_directions(records, row, method)) for method in ("exact-bayes", "arrow")))
        )
    return [
        Paragraph("Average precision:"),
        Grid(("Coefficients", "Exact posterior", "Arrow", "Difference"), tuple(ranks)),
        Paragraph("Directions given probability 0.95 or more that were right, among truly adjacent pairs:"),
        Grid(("Coefficients", "Exact posterior", "Arrow"), tuple(directions)),
    ]


def _sure_directions(records: Sequence[Record], row: RowSummary, method: str) -> str:
    of_row = [record for record in records if record.row == row.row]
    share, pairs = share_right(pooled_by_tables(of_row, "directions", method)["limit"], 0.95, 1.0)
    return f"{share:.0%} of {pairs}" if pairs else "none"


if __name__ == "__main__":
    sys.exit(main())
