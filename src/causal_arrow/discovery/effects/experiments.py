"""Experiment and ExperimentPlan: what to randomize or to measure next, and how much uncertainty that should remove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from causal_arrow.discovery.effects.mixture import axes_of_rows
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, shortened
from causal_arrow.tables.frames import WithFrames
from causal_arrow.text import Readable, counted, in_digits, in_percent, listed, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LITTLE = 0.005  # gains below this, in bits or as a share, are not worth an experiment
MAX_SHOWN = 10
MAX_BARS = 30
SUBJECTS = ("the graph", "the causes of {}", "the effect of {} on {}")
"""The subject of the uncertainty, by the number of variables that a target names."""


@dataclass(frozen=True)
class Experiment:
    """A possible experiment, and how much uncertainty it is expected to remove."""

    action: str
    """"set": randomize a variable; "measure": record the hidden common cause of two variables."""
    variables: tuple[str, ...]
    """The variable to randomize, or the two whose common cause is measured."""
    gain: float
    """Uncertainty expected to go: in bits, or as a share of the uncertainty about an effect."""
    affected: float
    """Expected number of other variables that depend on the randomized one, over graphs; NaN for "measure"."""
    settles: tuple[tuple[str, str], ...] = ()
    """The first three pairs of variables about which it is expected to be most informative."""

    @property
    def name(self) -> str:
        """The variable, or the pair as "a ↔ b"."""
        return " ↔ ".join(self.variables)

    @property
    def settles_in_words(self) -> str:
        """The pairs about which it is most informative: "a – b, c – d"."""
        return ", ".join(f"{a} – {b}" for a, b in self.settles)

    def __str__(self) -> str:
        if self.action == "set":
            return f"randomize {self.name}"
        return f"measure what {self.variables[0]} and {self.variables[1]} may both depend on"


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentPlan(Readable, WithFrames):
    """Experiments ranked by the uncertainty they are expected to remove. `print(plan)` puts it in words."""

    target: tuple[str, ...]
    """Nothing for the whole graph; an outcome, for its causes; a treatment and an outcome, for that effect."""
    experiments: tuple[Experiment, ...]
    """Each on its own, the best first."""
    batch: tuple[Experiment, ...]
    """The best ones to carry out together, within the budget; each with what it adds to those before it."""
    doubt: float
    """The uncertainty now: bits, or the standard deviation of the effect between graphs (standardized)."""
    graphs: int
    """Number of graphs drawn."""
    observations: int
    """Number of observations planned for each experiment."""
    left_out: tuple[str, ...] = ()
    """Variables that cannot be randomized, have been already, or mark environments."""

    @property
    def best(self) -> Experiment:
        """The first of the ranking."""
        return self.experiments[0]

    def place_in_batch(self, experiment: Experiment) -> int | None:
        """The rank of an experiment among those to carry out together; None if it is not one of them."""
        chosen = [(each.action, each.variables) for each in self.batch]
        key = experiment.action, experiment.variables
        return chosen.index(key) + 1 if key in chosen else None

    @property
    def about_effect(self) -> bool:
        """Whether gains are shares of the uncertainty about one effect; else they are bits."""
        return len(self.target) == 2

    def to_frame(self) -> pd.DataFrame:
        """The experiments as a data frame, the best first."""
        import pandas as pd

        rows = [
            (each.action, each.name, each.gain, each.affected, each.settles_in_words, self.place_in_batch(each))
            for each in self.experiments
        ]
        frame = pd.DataFrame(rows, columns=["action", "variable", "gain", "affected", "settles", "batch"])
        return self._framed(frame.astype({"batch": "Int64"}))

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON can hold it; docs/reference/json.md describes every field."""
        return {
            "target": list(self.target),
            "unit": "share" if self.about_effect else "bits",
            "doubt": self.doubt,
            "graphs": self.graphs,
            "observations": self.observations,
            "experiments": [_record(each) for each in self.experiments],
            "batch": [_record(each) for each in self.batch],
            "left_out": list(self.left_out),
            "sentence": self.sentence,
        }

    # In words

    @property
    def subject(self) -> str:
        """The subject of the uncertainty, in words."""
        return SUBJECTS[len(self.target)].format(*self.target)

    def amount(self, gain: float) -> str:
        """The gain of an experiment in words: "1.2 bits", "64% of the uncertainty"."""
        if self.about_effect:
            return f"{in_percent(gain)} of the uncertainty"
        return "<0.01 bits" if gain < 0.01 else f"{in_digits(gain)} bits"

    @property
    def sentence(self) -> str:
        """Advice in one sentence or two."""
        if not self.batch or self.batch[0].gain < LITTLE:
            return (
                f"No experiment is expected to be informative about {self.subject}: the "
                f"{counted(self.graphs, 'graph')} agree on its outcome. More observations or another question may help."
            )
        first = self.batch[0]
        whole = f" of {in_digits(self.doubt)}"
        if self.about_effect:
            whole = f" (a standard deviation of {in_digits(self.doubt)} between graphs, standardized)"
        told = f", most of it on {_pairs(first.settles)}" if first.settles else ""
        sentences = [
            f"To learn most about {self.subject}, {first}: with {counted(self.observations, 'observation')} that is "
            f"expected to remove {self.amount(first.gain)}{whole}{told}."
        ]
        worth = [each for each in self.batch[1:] if each.gain >= LITTLE]
        if worth:
            then = ", then ".join(f"{each} ({self.amount(each.gain)} more)" for each in worth)
            sentences.append(f"Together with it: {then}.")
        if len(worth) + 1 < len(self.batch):
            sentences.append("Further experiments are expected to add almost nothing.")
        return " ".join(sentences)

    def __str__(self) -> str:
        lines = [self.sentence]
        for each in self.experiments[:MAX_SHOWN]:
            lines.append(f"  {each}: {self.amount(each.gain)}")
        if len(self.experiments) > MAX_SHOWN:
            lines.append(f"  ... and {len(self.experiments) - MAX_SHOWN} more")
        if self.left_out:
            lines.append(f"  not considered: {listed(self.left_out)}, which cannot be randomized or have been")
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture of the gain of each experiment, those to carry out together in color, on the axes or in a new
        figure."""
        shown = self.experiments[:MAX_BARS]
        ax = axes_of_rows(ax, [shortened(visible(f"{each.action} {each.name}"), 1, 34) for each in shown])
        colors = ["#b9c0cc" if self.place_in_batch(each) is None else EDGE_COLOR for each in shown]
        ax.barh(range(len(shown)), [each.gain for each in shown], color=colors, height=0.7)
        ax.set_xlim(left=0)
        ax.set_title(shortened(visible(f"to learn about {self.subject}"), 1, 60), fontsize=10, parse_math=False)
        ax.set_xlabel(f"expected gain, {'share of the uncertainty' if self.about_effect else 'bits'}")
        return ax


def _record(each: Experiment) -> dict[str, Any]:
    return {
        "action": each.action,
        "variables": list(each.variables),
        "gain": each.gain,
        "affected": None if math.isnan(each.affected) else each.affected,
        "settles": [list(pair) for pair in each.settles],
    }


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    named = [f"{a} – {b}" for a, b in pairs]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
