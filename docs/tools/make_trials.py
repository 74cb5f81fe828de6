"""Write the page on the suite `trials` from its records: `python docs/tools/make_trials.py`.

The records are what the suite writes, of real trials and of drawn outcomes:

    python -m causal_arrow_lab.benchmarks.trials --methods regression,arrow --output trials.jsonl
    python -m causal_arrow_lab.benchmarks.trials --drawn 50 --methods regression,arrow --output trials.jsonl
    python docs/tools/make_trials.py --add trials.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from causal_arrow.text import in_digits
from causal_arrow_lab.benchmarks.trials import METHODS, Trial, Verdict, read_verdicts, summary, trials
from make_series import table

DOCS = Path(__file__).parents[1]
RECORDS = DOCS / "evidence" / "records" / "trials.jsonl"
PAGE = DOCS / "evidence" / "trials.md"
NAMES = {
    "difference": "Difference",
    "regression": "Regression",
    "doubleml": "DoubleML",
    "arrow": "Arrow, plain question",
    "arrow-network": "Arrow, network's directions",
    "arrow-tiers": "Arrow, order declared",
    "arrow-earlier": "Arrow, all earlier columns",
    "arrow-declared": "Arrow, trial declared",
    "dowhy": "Best graph, DoWhy",
}
INTRODUCTION = """# Known effects, measured

Effects whose size is known: real randomized trials and studies with a published answer, and outcomes drawn on the
columns of real tables. *Regression* adjusts for every column from before the treatment, *Difference* for nothing.
Arrow's *plain question* declares nothing; *order declared* gives the columns from before the treatment as tiers;
*trial declared* says that the treatment was randomized or, where it was not, gives the tiers; *network's directions*
asks the plain question with `directions="network"`. Trials are split by a hash of the study; those held out are looked
at once per release.
"""
TRIALS = """## Real trials and studies

The estimate with its 90% interval, in the units of the outcome. Known effects are published, or the trial's own
difference in means. A cell with *conflict*, *not identified*, *unclear* or *no effect* opens with that instead of the
size. *No answer*: the best graph has no path from the treatment to the outcome.
"""
HELD_OUT = """## Held-out trials

Studies that were kept aside until the release 0.2.0, for which they were run.
"""
DRAWN = """## Drawn outcomes

The columns are those of real tables; treatment and outcome are drawn, so that coverage can be counted. *Width* is the
median ratio to the interval of a regression on the true adjustment set. With *poor* overlap many rows have a
probability of treatment near 0 or 1. Standard errors are in parentheses; 0.90 is right for coverage.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", type=Path, action="append", default=[], help="answers as JSON lines")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page would change")
    options = parser.parse_args(arguments)
    files = [*([RECORDS] if RECORDS.exists() else []), *options.add]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    if not options.check:
        # A method's newest answer to a case replaces those before it.
        newest = {(entry["case"], entry["method"]): line for line in lines for entry in [json.loads(line)]}
        RECORDS.write_text("\n".join(newest.values()) + "\n", encoding="utf-8")
    page = page_of(read_verdicts(RECORDS))
    if options.check:
        return int(PAGE.read_text(encoding="utf-8") != page)
    PAGE.write_text(page, encoding="utf-8")
    return 0


def page_of(verdicts: Sequence[Verdict]) -> str:
    """The whole page."""
    real = [each for each in verdicts if not each.group]
    parts = [INTRODUCTION, TRIALS, trials_table(trials(), real)]
    parts += [HELD_OUT, trials_table(trials(held_out=True), real), DRAWN]
    for overlap in ("good", "poor"):
        found = [each for each in verdicts if each.group.startswith(overlap)]
        if found:
            parts += [f"### {overlap.capitalize()} overlap\n", drawn_table(found)]
    parts.append(
        "Repeat with `python -m causal_arrow_lab.benchmarks.trials --methods regression,arrow`, the drawn outcomes\n"
        "with `--drawn 100`, and held-out trials, once per release, with `--held-out`."
    )
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def methods_of(verdicts: Sequence[Verdict]) -> list[str]:
    """The methods with a verdict, in the order of the suite."""
    return [name for name in METHODS if any(each.method == name for each in verdicts)]


def trials_table(studies: Sequence[Trial], verdicts: Sequence[Verdict]) -> str:
    """One row per trial, one column per method."""
    names = {trial.name for trial in studies}
    by_key = {(each.case, each.method): each for each in verdicts if each.case in names}
    methods = methods_of(list(by_key.values()))
    rows = []
    for trial in studies:
        own = [by_key.get((trial.name, name)) for name in methods]
        if any(own):
            known = next(each.known for each in own if each)
            rows.append([trial.name, "unknown" if math.isnan(known) else in_digits(known), *map(cell, own)])
    return table(["Study", "Known", *(NAMES[name] for name in methods)], rows)


def cell(verdict: Verdict | None) -> str:
    """The estimate with its interval, after the verdict where that is not an effect."""
    if verdict is None:
        return "–"
    answer = verdict.answer
    if not answer.answers:
        return "no answer"
    said = answer.note.partition(":")[0]
    start = f"*{said}*: " if said in ("conflict", "not identified", "unclear", "no effect") else ""
    return f"{start}{in_digits(answer.estimate)} ({in_digits(answer.low)} to {in_digits(answer.high)})"


def drawn_table(verdicts: Sequence[Verdict]) -> str:
    """One row per method over all kinds of outcomes, with the number of draws."""
    rows = []
    for name in methods_of(verdicts):
        found = summary(each for each in verdicts if each.method == name)
        rows.append(
            [
                NAMES[name],
                f"{found.cases:,}",
                f"{found.answered:.2f}",
                f"{found.covered:.2f} ({found.covered_error:.2f})",
                f"{found.width_ratio:.2f}",
                f"{found.sign_right:.2f}",
                f"{found.squared_error:.3f}",
                f"{found.seconds:.1f}",
            ]
        )
    return table(["Method", "Draws", "Answered", "Coverage", "Width", "Sign right", "RMSE", "Seconds"], rows)


if __name__ == "__main__":
    sys.exit(main())
