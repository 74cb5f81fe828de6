"""Error and coverage of effects on drawn tasks: `python -m causal_arrow.discovery.effects --tasks 100`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from causal_arrow.discovery.effects.estimation import ESTIMATORS, EffectQuestion
from causal_arrow.discovery.effects.validation import KINDS, validate
from causal_arrow.discovery.uncertainty import ADJUSTMENTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table in Markdown per kind of tasks."""
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.discovery.effects", description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--tasks", type=int, default=100, help="tasks of each kind")
    parser.add_argument("--pairs", type=int, default=6, help="effects that are estimated in each task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--estimator", choices=ESTIMATORS, default="linear")
    parser.add_argument("--adjustment", choices=list(ADJUSTMENTS), default="optimal")
    options = parser.parse_args(arguments)
    if options.tasks < 1 or options.pairs < 1 or options.seed < 0:
        parser.error("tasks and pairs are 1 or more, the seed is 0 or more")
    for kind in options.kinds:
        question = EffectQuestion(options.estimator, options.adjustment)
        lines, seconds = validate(kind, options.tasks, options.seed, question, options.pairs)
        print("\n".join(lines), end="\n\n", flush=True)
        print(f"{kind}: {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
