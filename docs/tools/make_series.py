"""Write the page on the suite `series` from its records: `python docs/tools/make_series.py`.

The records are what this prints into files, with the folder of the CDML series:

    python -m causal_arrow_lab.benchmarks.series --methods arrow,var --count 5 --cdml FOLDER --output methods.json
    python -m causal_arrow_lab.benchmarks.series --effects --count 20 --output coverage.json
    python docs/tools/make_series.py --add methods.json --add-coverage coverage.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from causal_arrow_lab.benchmarks.series import FAMILIES

DOCS = Path(__file__).parents[1]
RECORDS = DOCS / "evidence" / "records" / "series.json"
PAGE = DOCS / "evidence" / "series.md"
METHODS = {
    "arrow": "Arrow",
    "pcmci+": "PCMCI+",
    "pcmci": "PCMCI",
    "varlingam": "VARLiNGAM",
    "var": "VAR, \\|t\\|",
    "granger": "Granger",
    "dynotears": "DYNOTEARS",
}
MEASURES = {
    "ap": (
        "AP of lagged edges",
        "Over all pairs of past and present, a variable's own past included.",
    ),
    "auroc": ("AUROC of lagged edges", "The same pairs."),
    "f1_lagged": ("F1 of lagged edges", "Of the graph that is shown, between steps."),
    "f1": (
        "F1 of the window graph",
        "All edges, those at lag 0 included, which VAR, Granger and PCMCI do not look for.",
    ),
    "f1_summary": ("F1 of the summary graph", "Which variable acts on which other one at any lag."),
    "seconds": ("Seconds", "Of processor time per series."),
}
INTRODUCTION = """# Time series, measured

Simulated series with a known window graph, family by family, and CDML: {cdml}. Every method searches as many lags
as the truth has; pairs that were not searched do not count, and truths are never padded. Methods that cannot read
missing cells get interpolated ones, and in panels all of them get values less the mean of the unit. Thresholds of
the others are those with the best mean F1 on development tasks. The windows and weights with which Arrow combines
pairs were chosen on development tasks too; the network has never seen a series.

{count} series per family, {cdml_count} of CDML; entries are means, and numbers after ± are their standard errors,
where records have them. Repeat with
`python -m causal_arrow_lab.benchmarks.series --methods arrow,var --count {count} --cdml FOLDER`.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", type=Path, action="append", default=[], help="measures of methods, as a JSON file")
    parser.add_argument("--add-coverage", type=Path, help="coverage of effect curves, as a JSON file")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page would change")
    options = parser.parse_args(arguments)
    records = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {"methods": {}, "coverage": {}}
    for file in options.add:
        records["methods"] |= json.loads(file.read_text(encoding="utf-8"))
    if options.add_coverage:
        records["coverage"] = json.loads(options.add_coverage.read_text(encoding="utf-8"))
    page = page_of(records)
    if options.check:
        return int(PAGE.read_text(encoding="utf-8") != page)
    RECORDS.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")
    return 0


def page_of(records: Mapping[str, Any]) -> str:
    """The whole page."""
    methods = {name: records["methods"][name] for name in METHODS if name in records["methods"]}
    arrow = methods["arrow"]
    parts = [
        INTRODUCTION.format(
            cdml="80 small nonlinear systems\nwithout edges at lag 0, of 500 or 1,000 steps",
            cdml_count=arrow["cdml"]["tasks"],
            count=arrow[next(iter(FAMILIES))]["tasks"],
        ),
        "## Over all simulated families\n\nMeans over families. `ECE` is the expected calibration error over "
        "lagged pairs stated at .05 or more. VAR, Granger and PCMCI "
        "do not look for edges at lag 0.\n",
        overall(methods, "mean", (*MEASURES, "ap_now", "ece")),
        "## CDML\n\nMeans over its series.\n",
        overall(methods, "cdml", (*MEASURES, "ece")),
    ]
    for measure, (title, about) in MEASURES.items():
        rows = [
            [row, *(cell(found.get(row, {}), measure) for found in methods.values())]
            for row in (*FAMILIES, "cdml")
            if row in arrow
        ]
        best = max if measure != "seconds" else None
        parts += [f"## {title}\n\n{about}\n", table(["Family", *(METHODS[name] for name in methods)], bold(rows, best))]
    parts += [f"## Families\n\n{families()}\n", calibration(arrow), coverage(records["coverage"])]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def overall(methods: Mapping[str, Any], suite: str, measures: Sequence[str]) -> str:
    """A table of means with their standard errors, a row per method."""
    titles = {**{name: title for name, (title, _) in MEASURES.items()}, "ap_now": "AP at lag 0", "ece": "ECE"}
    return table(
        ["Method", *(titles[measure] for measure in measures)],
        [
            [
                METHODS[name],
                *(with_error(found[suite], found.get("standard_errors", {}).get(suite, {}), each) for each in measures),
            ]
            for name, found in methods.items()
        ],
    )


def with_error(found: Mapping[str, Any], errors: Mapping[str, Any], measure: str) -> str:
    """A mean with its standard error, three decimals each; of seconds the mean alone."""
    if measure in ("ece", "seconds") or measure not in found:
        return cell(found, measure)
    if measure not in errors:  # of older records
        return f"{found[measure]:.3f}"
    return f"{found[measure]:.3f} ± {errors[measure]:.3f}"


def families() -> str:
    """A line on each family."""
    lines = []
    for family in FAMILIES.values():
        (low, high), steps = family.variables, family.steps
        variables = f"{low}" if low == high else f"{low} to {high}"
        length = f"{steps[0]:,}" if steps[0] == steps[1] else f"{steps[0]:,} to {steps[1]:,}"
        lines.append(f"- `{family.name}`: {family.about}; {variables} variables, {length} steps")
    return "\n".join(lines)


def calibration(arrow: Mapping[str, Any]) -> str:
    """Stated probabilities against shares of true edges."""
    found = arrow["reliability"]
    rows = [
        [f"{low:.2f} to {high:.2f}", f"{count:,}", f"{mean:.2f}", f"{share:.2f}"]
        for low, high, count, mean, share in found["bins"]
    ]
    return (
        "## Calibration\n\nLagged pairs of the simulated series with 300 to 1,000 rows, by the probability that Arrow "
        f"states. Expected calibration error: {found['error']:.3f}.\n\n"
        + table(["Stated", "Pairs", "Mean stated", "True"], rows)
    )


def coverage(found: Mapping[str, Any]) -> str:
    """The section on the coverage of effect curves."""
    if not found:
        return ""
    rows = [
        [name, *(f"{each[key]:.2f}" for key in ("raised_once", "held", "width", "error"))]
        for name, each in found.items()
    ]
    clear = [each for name, each in found.items() if not FAMILIES[name].hidden]
    means = {key: sum(each[key] for each in clear) / len(clear) for key in ("raised_once", "held")}
    return (
        "## Effects over time\n\nHow often 90% intervals of `response` hold the true effect at steps 0 to 8 where the "
        "graph is known,\nfor causes that are raised once and that stay higher. "
        f"Mean over families without hidden drivers: {means['raised_once']:.2f} and {means['held']:.2f}.\nWhere a "
        "hidden driver acts on cause and effect, no adjustment for variables of the table helps. The truth\nof curved "
        "mechanisms is a mean slope. In panels of 20 steps, intervals from step 6 on hold it less often, which a\n"
        "note says. Width and error are those of effects of a cause that is raised once. Repeat with\n"
        "`python -m causal_arrow_lab.benchmarks.series --effects --count 20`.\n\n"
        + table(["Family", "Raised once", "Kept higher", "Width", "Error"], rows)
    )


def cell(found: Mapping[str, Any], measure: str) -> str:
    """A number with two decimals, or a dash."""
    if measure not in found or found[measure] != found[measure]:
        return "–"
    return f"{found[measure]:.3f}" if measure in ("ece", "seconds") else f"{found[measure]:.2f}"


def bold(rows: list[list[str]], best: Any) -> list[list[str]]:
    """The largest number of each row in bold."""
    if best is None:
        return rows
    marked = []
    for first, *cells in rows:
        top = best((each for each in cells if each != "–"), default="")
        marked.append([first, *(f"**{each}**" if each == top else each for each in cells)])
    return marked


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with columns of one width."""
    every = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in every) for column in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in every
    ]
    rule = (
        "| "
        + " | ".join("-" * (width - 1) + ":" if index else "-" * width for index, width in enumerate(widths))
        + " |"
    )
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
