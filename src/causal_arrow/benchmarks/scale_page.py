"""The page docs/evidence/scale.md: sections between two marks, each written by one command, left alone by others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from causal_arrow.benchmarks.document import Cell, Grid, markdown_table
from causal_arrow.benchmarks.overview import ARROW, network_name
from causal_arrow.errors import BenchmarkError

Record = Mapping[str, Any]

FIGURE = "scale-figures/wide.svg"

Y_TICKS = (0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 20, 50, 100, 200)

PUBLISHED = ("CauScale (published)", "1,000", "0.83 on a GPU", "", "", ".966 linear, .797 neural")
PUBLISHED_NOTE = "The row of CauScale is as its authors published it; their tables also hold interventions."


def replace_section(text: str, name: str, content: str) -> str:
    """The text of a page with another content between the marks of a section."""
    start, end = f"<!-- section: {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise BenchmarkError(f"Expected the page to hold the marks {start} and {end} once.")
    return pattern.sub(lambda _: f"{start}\n\n{content.strip()}\n\n{end}", text)


def write_sections(records: Sequence[Record], page: Path) -> None:
    """Write the sections that the records are about, and the figure beside the page."""
    text = page.read_text(encoding="utf-8")
    for kind, section in SECTIONS.items():
        some = [record for record in records if record["kind"] == kind]
        if some:
            text = replace_section(text, kind, section(some))
    page.write_text(text, encoding="utf-8")
    if wide := [record for record in records if record["kind"] == "wide" and "seconds" in record]:
        draw_wide(wide, page.parent / FIGURE)


def wide_section(records: Sequence[Record]) -> str:
    """Time, memory and accuracy over the number of variables, and the exponents."""
    groups: dict[tuple[int, str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["variables"], record["method"], record["precision"]), []).append(record)
    rows = [_wide_row(*key, some) for key, some in sorted(groups.items())]
    rows.append(tuple(Cell(text, italic=True) for text in PUBLISHED))
    header = ("method", "variables", "processor seconds", "memory (GB)", "F1", "AP")
    sentences = [
        f"Between {low} and {high} variables the processor's time in {precision} grows as the power {time:.1f} of "
        f"their number, and memory as the power {memory:.1f}."
        for precision, (low, high, time, memory) in exponents(records).items()
    ]
    return "\n\n".join(
        [
            markdown_table(Grid(header, tuple(rows))),
            PUBLISHED_NOTE,
            *sentences,
            f"![Processor time and memory over the number of variables]({FIGURE})",
        ]
    )


def _wide_row(variables: int, method: str, precision: str, records: Sequence[Record]) -> tuple[Cell, ...]:
    done = [record for record in records if "seconds" in record]

    def mean(name: str, digits: int) -> str:
        return f"{fmean(record[name] for record in done):.{digits}f}" if done else ""

    seconds = mean("processor_seconds", 1) if done else f"over {records[0]['timeout']:.0f}"
    texts = (_label(method, precision), f"{variables:,}", seconds, mean("peak_gb", 2), mean("f1", 2), mean("ap", 2))
    return tuple(Cell(text) for text in texts)


def _label(method: str, precision: str) -> str:
    """What a row or a line is called: a network with its precision, any other method by its name."""
    return f"{network_name(method)}, {precision}" if method.partition(":")[0] == ARROW else method


def exponents(records: Iterable[Record]) -> dict[str, tuple[int, int, float, float]]:
    """By precision: the two largest numbers of variables that the network was measured at, and the exponents of its
    time and memory between them."""
    found = {}
    measured = [record for record in records if record["method"] == "arrow" and "seconds" in record]
    for precision in sorted({record["precision"] for record in measured}):
        some = [record for record in measured if record["precision"] == precision]
        sizes = sorted({record["variables"] for record in some})[-2:]
        if len(sizes) == 2:
            low, high = (
                [
                    fmean(record[name] for record in some if record["variables"] == size)
                    for name in ("processor_seconds", "peak_gb")
                ]
                for size in sizes
            )
            ratio = np.log(sizes[1] / sizes[0])
            time, memory = (float(np.log(after / before) / ratio) for before, after in zip(low, high, strict=True))
            found[precision] = (sizes[0], sizes[1], time, memory)
    return found


def precision_section(records: Sequence[Record]) -> str:
    """How far probabilities move in bfloat16, suite by suite."""
    header = ("suite", "tables", "largest change", "beyond 0.01", "F1 changes by", "AP by")
    rows = []
    for suite in dict.fromkeys(record["suite"] for record in records):
        some = [record for record in records if record["suite"] == suite]
        count = sum(record["probabilities"] for record in some)
        texts = (
            suite,
            str(len(some)),
            f"{max(record['largest'] for record in some):.3f}",
            f"{sum(record['far'] for record in some) / count:.2%}",
            *(f"{_mean_defined(record[name] for record in some):+.4f}" for name in ("f1_change", "ap_change")),
        )
        rows.append(tuple(Cell(text) for text in texts))
    probabilities = sum(record["probabilities"] for record in records)
    counts = f"{len(records)} tables, {probabilities:,} probabilities."
    said = f"{counts} “Beyond 0.01” is the share that moves by more than that."
    return f"{markdown_table(Grid(header, tuple(rows)))}\n\n{said}"


def _mean_defined(values: Iterable[float]) -> float:
    """The mean without the tables that have no true edge, and so no F1 or AP."""
    return fmean(value for value in values if not np.isnan(value))


SECTIONS: Mapping[str, Callable[[Sequence[Record]], str]] = {"wide": wide_section, "precision": precision_section}


def draw_wide(records: Sequence[Record], path: Path) -> None:
    """Processor time and peak memory over the number of variables, on logarithmic scales."""
    from causal_arrow.benchmarks.figures import panels, save_figure

    figure, axes = panels(2, width=8.0)
    for axis, name, label in zip(
        axes, ("processor_seconds", "peak_gb"), ("processor time (s)", "peak memory (GB)"), strict=True
    ):
        for method, precision in sorted({(record["method"], record["precision"]) for record in records}):
            some = [record for record in records if (record["method"], record["precision"]) == (method, precision)]
            sizes = sorted({record["variables"] for record in some})
            means = [fmean(record[name] for record in some if record["variables"] == size) for size in sizes]
            axis.plot(sizes, means, marker="o", label=_label(method, precision))
        axis.set_xscale("log")
        axis.set_yscale("log")
        every = sorted({record["variables"] for record in records})
        axis.set_xticks(every, [f"{size:,}" for size in every])
        low, high = axis.get_ylim()
        shown = [value for value in Y_TICKS if low <= value <= high]
        axis.set_yticks(shown, [f"{value:g}" for value in shown])
        axis.tick_params(which="minor", bottom=False, left=False, labelbottom=False, labelleft=False)
        axis.set_xlabel("variables")
        axis.set_ylabel(label)
    axes[1].legend(loc="upper left")  # where no line goes
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path)
