"""Figures of reports: accuracy against runtime, curves, points by category, boxplots, reliability.

Every method has the same color and marker in all figures; color-blind readers can distinguish the colors.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow_lab.benchmarks.calibration import Reliability
from summaries import (
    BETTER_OF,
    INSTANT,
    MEASURES,
    PAPER_MEASURES,
    Entry,
    MeanEstimate,
    RowSummary,
    Summary,
    Variant,
    reliability_by_method,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Color and marker by kind of method; Okabe–Ito where possible, darker relatives for the rest.
STYLES = {
    "arrow": ("#D55E00", "o"),
    "arrow-shd": ("#E69F00", "p"),
    "arrow-f1": ("#8C510A", "h"),
    "arrow-unmarked": ("#BF812D", "d"),
    "arrow-tempered": ("#C51B7D", "^"),
    "boss": ("#0072B2", "s"),
    "boss-1": ("#0072B2", "8"),
    "grasp": ("#56B4E9", "D"),
    "flop": ("#08306B", "X"),
    "flop-3": ("#A6CEE3", "X"),
    "pc": ("#CC79A7", "v"),
    "pc-0.01": ("#E3A8C8", "v"),
    "ges": ("#6A3D9A", "^"),
    "ges-1": ("#A98BC9", "^"),
    "direct-lingam": ("#7F7F00", "*"),
    "resit": ("#4D4D00", "*"),
    "boss-indicators": ("#004D80", "p"),
    "boss-imputed": ("#4393C3", "h"),
    "boss-complete": ("#92C5DE", "8"),
    "pc-chi2": ("#8E3B6E", "v"),
    "fci": ("#B2182B", "X"),
    "hc-bic": ("#35978F", "^"),
    "hc-bdeu": ("#80CDC1", "^"),
    "gies": ("#9970AB", "D"),
    "dagma": ("#009E73", "P"),
    "sdcd": ("#882255", "X"),
    "varsort": ("#4D4D4D", "<"),
    "r2sort": ("#8F8F8F", ">"),
    "random": ("#BBBBBB", "x"),
    "empty": ("#BBBBBB", "+"),
    "class-oracle": ("#000000", "_"),
    "exact-bayes": ("#000000", "d"),
}
STYLES_OF_NETWORKS = {"arrow:arrow-strict": ("#E7298A", "o")}
# The same networks with a fixed scale of skewed columns: paler relatives.
STYLES_ON_A_SCALE = {"arrow": ("#F4A582", "s"), "arrow:arrow-strict": ("#F3A6CF", "s")}
SPARE_STYLES = (("#1B9E77", "8"), ("#E7298A", "*"), ("#66A61E", "H"), ("#A6761D", "s"))

# As in the paper, the nSHD axis ends here if some method is far worse than the empty graph; in its curves over n and p
# at 1, the nSHD of the empty graph.
MAX_NSHD = 2.0
MAX_NSHD_OF_CURVES = 1.0

PANEL_TITLES = {
    "observations": "Observations n",
    "variables": "Variables p",
    "graphs": "Graph family",
    "functions": "Mechanism",
    "noise": "Noise",
    "shift": "Shift",
    "network": "Network",
    "model": "Model",
    "hidden": "Hidden common causes",
    "pooled": "Scale, pooled cells",
    "observational": "Scale, observational cells, and reference graph",
    "empty": "Independent columns",
    "kinds": "Kinds of columns",
    "chance": "Missing by chance",
    "another-column": "Missing because of another column",
    "itself": "Missing because of the value itself",
    "drawn": "Drawn tasks",
    "instruments": "Instruments for each variable",
    "error": "Share of measurement error",
    "law": "Law of the columns",
}
CURVES = ("observations", "variables", "hidden")  # panels with a numeric axis
BOXES = ("shift",)


@dataclass(frozen=True)
class FigurePlan:
    """A figure to draw: its file name, its section in the report, its caption."""

    name: str
    section: str
    caption: str
    draw: Callable[[], Figure]


def benchmark_figures(summary: Summary) -> Iterator[FigurePlan]:
    """Plan the figures for which the records suffice."""
    for suite in summary.suites:
        rows = summary.of_suite(suite)
        if any(_has(row, "nshd") for row in rows):
            yield from _accuracy_figures(summary, suite, rows)
    suites = [suite for suite in summary.suites if _reliabilities(summary, suite)]
    if suites:
        yield FigurePlan(
            "reliability",
            "calibration",
            "Reliability of edge probabilities: on the dashed line, edges given probability 0.7 are there in 70% of "
            "the cases. Larger points stand for more pairs.",
            partial(draw_reliability, summary, suites),
        )


def _accuracy_figures(summary: Summary, suite: str, rows: list[RowSummary]) -> Iterator[FigurePlan]:
    for panel in dict.fromkeys(row.panel for row in rows):
        members = [row for row in rows if row.panel == panel and _has(row, "nshd")]
        if len(members) < 2:
            continue
        title = PANEL_TITLES.get(panel, panel)
        by = title[0].lower() + title[1:]
        if panel in BOXES:
            draw = partial(draw_boxes, members, title)
            caption = f"{suite}, by {by}: all datasets. Boxes hold the middle half, the line is the median."
        else:
            draw = partial(draw_curves if panel in CURVES else draw_points, members, title)
            caption = f"{suite}, {by}: means and standard errors."
        yield FigurePlan(f"{suite}-{panel}", suite, caption + _cut_off(members), draw)
    # The paper draws this for all shifts together.
    chosen = [row for row in rows if row.row == "all"] or rows
    if len(_run_everywhere(chosen)) > 1:
        what = "the simultaneous shift" if chosen != rows else "all rows together"
        yield FigurePlan(
            f"{suite}-pareto",
            suite,
            f"{suite}: accuracy and runtime, {what}, of the methods that were run in "
            f"{'it' if len(chosen) == 1 else 'each'}. The dashed line joins those that no other beats in both."
            + _cut_off(chosen),
            partial(draw_pareto, chosen),
        )


def _max_nshd(rows: Sequence[RowSummary]) -> float:
    """The end of the nSHD axis."""
    curves = rows[0].suite == "in-distribution" and rows[0].panel in CURVES
    return MAX_NSHD_OF_CURVES if curves else MAX_NSHD


def _cut_off(rows: Sequence[RowSummary]) -> str:
    """A remark for captions if some method lies beyond the nSHD axis."""
    largest = _max_nshd(rows)
    beyond = any(entry.estimate("nshd").mean > largest for row in rows for entry in row.entries)
    return f" The nSHD axis ends at {largest:g}, and some methods lie beyond." if beyond else ""


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure. The same figure gives the same bytes."""
    import matplotlib as mpl

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "causal-arrow", "svg.fonttype": "path"}):
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(path, dpi=160, bbox_inches="tight", metadata=metadata)


# The figures


def draw_curves(rows: Sequence[RowSummary], title: str) -> Figure:
    """Draw means with error bars over a number, one panel per measure of the paper."""
    figure, axes = _four_panels()
    positions = [_number_of(row) for row in rows]
    for axis, measure in zip(axes, PAPER_MEASURES, strict=True):
        for variant in _variants(rows):
            color, marker = style_of(variant)
            estimates = [_estimate(row, variant, measure) for row in rows]
            _error_bars(axis, positions, estimates, color, marker, line=True)
        if min(positions) > 0 and max(positions) / min(positions) > 4:
            axis.set_xscale("log")
        axis.set_xticks(positions, [_short(position) for position in positions])
        axis.minorticks_off()
        axis.set_xlabel(title)
        _finish_measure(axis, measure, max_nshd=_max_nshd(rows))
    return _with_legend(figure, _variants(rows))


def draw_points(rows: Sequence[RowSummary], title: str) -> Figure:
    """Draw means with error bars by category, methods side by side."""
    figure, axes = _four_panels(columns=2)
    variants = _variants(rows)
    for axis, measure in zip(axes, PAPER_MEASURES, strict=True):
        for number, variant in enumerate(variants):
            color, marker = style_of(variant)
            positions = [index + _offset(number, len(variants), 0.7) for index in range(len(rows))]
            estimates = [_estimate(row, variant, measure) for row in rows]
            _error_bars(axis, positions, estimates, color, marker, line=False)
        _categories(axis, rows, title)
        _finish_measure(axis, measure)
    return _with_legend(figure, variants)


def draw_boxes(rows: Sequence[RowSummary], title: str) -> Figure:
    """Draw boxplots over datasets by category, methods side by side."""
    figure, axes = _four_panels(columns=2)
    variants = _variants(rows)
    width = 0.8 / len(variants)
    for axis, measure in zip(axes, PAPER_MEASURES, strict=True):
        for number, variant in enumerate(variants):
            color, _ = style_of(variant)
            for index, row in enumerate(rows):
                values = [value for value in _values(row, variant, measure) if not math.isnan(value)]
                if not values:
                    continue
                axis.boxplot(
                    values,
                    positions=[index + _offset(number, len(variants), 0.8 - width)],
                    widths=0.85 * width,
                    patch_artist=True,
                    manage_ticks=False,
                    boxprops={"facecolor": color, "alpha": 0.75, "linewidth": 0.6},
                    medianprops={"color": "black", "linewidth": 1.1},
                    whiskerprops={"linewidth": 0.7},
                    capprops={"linewidth": 0.7},
                    flierprops={"marker": ".", "markersize": 2, "markeredgecolor": color, "alpha": 0.6},
                )
        _categories(axis, rows, title)
        _finish_measure(axis, measure, spread=True)
    return _with_legend(figure, variants, boxes=True)


def draw_pareto(rows: Sequence[RowSummary]) -> Figure:
    """Draw accuracy against seconds, with the frontier of methods that no other method beats in both."""
    figure, axes = panels(3, width=10.5)
    variants = _run_everywhere(rows)
    for axis, measure in zip(axes, PAPER_MEASURES[:3], strict=True):
        points: dict[str, tuple[float, float]] = {}
        for variant in variants:
            color, marker = style_of(variant)
            seconds, accuracy = (_pooled_estimate(rows, variant, name) for name in ("seconds", measure))
            if math.isnan(seconds.mean) or math.isnan(accuracy.mean):
                continue
            axis.errorbar(
                [seconds.mean],
                [accuracy.mean],
                yerr=_error(accuracy),
                color=color,
                marker=marker,
                markersize=8,
                capsize=2,
                linestyle="none",
                zorder=3,
            )
            points[variant.label] = (seconds.mean, accuracy.mean)
        frontier = pareto_frontier(list(points.values()), bool(MEASURES[measure].lower_is_better))
        if len(frontier) > 1:
            axis.plot(*zip(*frontier, strict=True), color="#888888", linestyle="--", linewidth=1, zorder=1)
        axis.set_xscale("log")
        axis.margins(x=0.12, y=0.12)
        axis.set_xlabel("Seconds")
        _finish_measure(axis, measure)
    return _with_legend(figure, variants)


def pareto_frontier(points: Sequence[tuple[float, float]], lower_is_better: bool) -> list[tuple[float, float]]:
    """The points (seconds, accuracy) that no other point beats in one without losing in the other, by seconds."""
    sign = 1 if lower_is_better else -1
    frontier: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda point: (point[0], sign * point[1])):
        if not frontier or sign * point[1] < sign * frontier[-1][1]:
            frontier.append(point)
    return frontier


def draw_reliability(summary: Summary, suites: Sequence[str]) -> Figure:
    """Draw the share of true edges against the mean probability, one panel per suite."""
    columns = min(4, len(suites))
    lines = -(-len(suites) // columns)
    figure, axes = panels(len(suites), width=2.6 * columns + 0.6, height=2.75 * lines, columns=columns)
    shown: dict[str, Variant] = {}
    for axis, suite in zip(axes, suites, strict=True):
        axis.plot([0, 1], [0, 1], color="#888888", linestyle="--", linewidth=1)
        for variant, table in _reliabilities(summary, suite):
            color, marker = style_of(variant)
            shown.setdefault(variant.label, variant)
            sizes = 8 + 12 * np.log10(np.maximum(table.pairs, 1))
            axis.plot(table.mean_probability, table.edge_frequency, color=color, linewidth=1)
            axis.scatter(table.mean_probability, table.edge_frequency, s=sizes, color=color, marker=marker, zorder=3)
        axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=suite, xlabel="Mean probability")
        axis.set_aspect("equal")
    axes[0].set_ylabel("Share of true edges")
    return _with_legend(figure, list(shown.values()))


# Parts of figures


def style_of(variant: Variant) -> tuple[str, str]:
    """Color and marker of a method, different for other weights and other variants."""
    kind, _, argument = variant.method.partition(":")
    number = int(variant.label.rpartition("#")[2]) if "#" in variant.label else 1
    if "scale" in variant.settings and variant.method in STYLES_ON_A_SCALE:
        return STYLES_ON_A_SCALE[variant.method]
    if variant.method in STYLES_OF_NETWORKS and number == 1:
        return STYLES_OF_NETWORKS[variant.method]
    if kind in STYLES and not argument and number == 1:
        return STYLES[kind]
    return SPARE_STYLES[(sum(argument.encode()) + number) % len(SPARE_STYLES)]


def panels(count: int, width: float, height: float = 3.0, columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """Make a figure with panels that needs no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = columns or count
    lines = -(-count // columns)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(lines, columns, number + 1) for number in range(count)]
    for axis in axes:
        axis.grid(axis="y", color="#E4E4E4", linewidth=0.7)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _four_panels(columns: int = 4) -> tuple[Figure, list[Axes]]:
    """Make one panel per measure of the paper, in one or two lines."""
    return panels(len(PAPER_MEASURES), width=12.5, height=3.1 if columns == 4 else 6.4, columns=columns)


def _with_legend(figure: Figure, variants: Sequence[Variant], boxes: bool = False) -> Figure:
    """Add a legend below all panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for variant in variants:
        color, marker = style_of(variant)
        handles.append(
            Patch(facecolor=color, alpha=0.75, label=variant.label)
            if boxes
            else Line2D([], [], color=color, marker=marker, linestyle="none", markersize=7, label=variant.label)
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=min(7, len(handles)), frameon=False)
    return figure


def _finish_measure(axis: Axes, measure: str, spread: bool = False, max_nshd: float = MAX_NSHD) -> None:
    lower_is_better = MEASURES[measure].lower_is_better
    axis.set_title(f"{MEASURES[measure].title} {'↓' if lower_is_better else '↑'}", fontsize=11)
    if measure == "seconds":
        if axis.dataLim.y1 > 0:  # there are data
            axis.set_yscale("log")
    elif measure == "nshd":
        top = axis.get_ylim()[1]
        axis.set_ylim(0, min(top, max_nshd) if top > 1 and max_nshd > 1 else 1.02)
    else:
        low, high = axis.get_ylim()
        axis.set_ylim(max(0.0, low) if not spread else -0.02, min(1.02, high) if not spread else 1.02)


def _categories(axis: Axes, rows: Sequence[RowSummary], title: str) -> None:
    names = [textwrap.fill(row.row.replace("_", "-"), width=15) for row in rows]
    axis.set_xticks(range(len(names)), names, fontsize=9)
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_xlabel(title)


def _error_bars(
    axis: Axes, positions: Sequence[float], estimates: Sequence[MeanEstimate], color: str, marker: str, line: bool
) -> None:
    axis.errorbar(
        positions,
        [estimate.mean for estimate in estimates],
        yerr=[np.nan_to_num(estimate.standard_error) for estimate in estimates],
        color=color,
        marker=marker,
        markersize=5.5,
        capsize=2,
        linewidth=1.3 if line else 0,
        elinewidth=1,
    )


def _short(number: float) -> str:
    """Format a number as 100, 2k or 100k."""
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def _offset(number: int, count: int, spread: float) -> float:
    """Offset of method `number` of `count` from the middle of its category."""
    return 0.0 if count == 1 else spread * (number / (count - 1) - 0.5)


def _variants(rows: Sequence[RowSummary]) -> list[Variant]:
    """The methods with an answer to any dataset of these rows, every setting once."""
    entries = (entry for row in rows for entry in row.entries if entry.finished)
    return list(
        {entry.variant.label: entry.variant for entry in entries if entry.variant.method not in BETTER_OF}.values()
    )


def _run_everywhere(rows: Sequence[RowSummary]) -> list[Variant]:
    """The methods that look at the table and have answers in every row, so that their means are comparable."""
    return [
        variant
        for variant in _variants(rows)
        if variant.method not in INSTANT
        and all((entry := _entry(row, variant)) is not None and entry.finished for row in rows)
    ]


def _entry(row: RowSummary, variant: Variant) -> Entry | None:
    return next((entry for entry in row.entries if entry.variant.label == variant.label), None)


def _values(row: RowSummary, variant: Variant, measure: str) -> list[float]:
    entry = _entry(row, variant)
    if entry is None or (measure == "seconds" and variant.method in INSTANT):
        return []
    return entry.values(measure)


def _estimate(row: RowSummary, variant: Variant, measure: str) -> MeanEstimate:
    return MeanEstimate.of(_values(row, variant, measure))


def _pooled_estimate(rows: Sequence[RowSummary], variant: Variant, measure: str) -> MeanEstimate:
    return MeanEstimate.of(value for row in rows for value in _values(row, variant, measure))


def _error(estimate: MeanEstimate) -> list[float]:
    return [float(np.nan_to_num(estimate.standard_error))]


def _has(row: RowSummary, measure: str) -> bool:
    return any(entry.estimate(measure).count for entry in row.entries)


def _number_of(row: RowSummary) -> float:
    return float(row.settings[row.panel])


def _reliabilities(summary: Summary, suite: str) -> list[tuple[Variant, Reliability]]:
    tables = reliability_by_method(summary, suite)
    return [(variant, tables[variant.label]) for variant in summary.variants if variant.label in tables]
