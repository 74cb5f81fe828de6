"""Effects: all causes of one outcome, ranked by size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_arrow.discovery.effects.effect import MIN_MENTIONED, SIGNIFICANT, Effect
from causal_arrow.discovery.effects.falsification import holm
from causal_arrow.discovery.effects.mixture import axes_of_rows
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, QUIET_COLOR, shortened
from causal_arrow.tables.frames import WithFrames
from causal_arrow.text import Readable, counted, counted_share, in_digits, in_percent, listed, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_REASONS = 3  # reasons for having no estimate that a sentence gives
MIN_COMPARED = 3  # causes from which a ranking says that many were compared
MAX_BARS = 30


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Readable, WithFrames):
    """The effects of all variables on one outcome, the largest first: size in standard deviations times share of paths.

    Those that most graphs do not identify come last: their numbers rest on few graphs.
    """

    outcome: str
    """The variable whose change is estimated."""
    effects: tuple[Effect, ...]
    """One per possible cause, the largest first; last those whose `verdict` is "not identified"."""
    graphs: int
    """Number of graphs drawn."""
    why_not_estimated: Mapping[str, str] = field(default_factory=dict)
    """Variables whose effect has no estimate, and the reason in words."""
    categories: tuple[str, ...] = ()
    """Those of them with more than two unordered levels: each pair of levels has a separate effect."""

    @property
    def not_estimated(self) -> tuple[str, ...]:
        """Variables whose effect has no estimate."""
        return tuple(self.why_not_estimated)

    def to_frame(self) -> pd.DataFrame:
        """The effects as a data frame, one row per possible cause.

        `probability` is that of a causal path, `not_identified` the share of graphs in which a hidden cause makes every
        adjustment set invalid, `effect` the size if the cause comes before the outcome, with its 90% interval from
        `low` to `high`. `p_adjusted` allows for the number of comparisons (Holm), and `standardized` is in standard
        deviations of both. Causes that most graphs do not identify come last.
        """
        import pandas as pd

        frame = pd.DataFrame({"cause": [each.treatment for each in self.effects]})
        frame["probability"] = [each.probability_of_path for each in self.effects]
        frame["not_identified"] = [each.probability_not_identified for each in self.effects]
        frame["effect"] = [each.median for each in self.effects]
        frame[["low", "high"]] = [each.interval for each in self.effects] or np.empty((0, 2))
        frame["p_value"] = [each.p_value for each in self.effects]
        frame["p_adjusted"] = holm(frame["p_value"].to_numpy())
        frame["standardized"] = [each.standardized for each in self.effects]
        return self._framed(frame)

    def to_dict(self) -> dict[str, Any]:
        """The effects as JSON can hold them, each as `Effect.to_dict` gives it."""
        return {
            "outcome": self.outcome,
            "graphs": self.graphs,
            "not_estimated": list(self.not_estimated),
            "why_not_estimated": dict(self.why_not_estimated),
            "categories": list(self.categories),
            "effects": [each.to_dict() for each in self.effects],
        }

    def __str__(self) -> str:
        causes = [each for each in self.effects if each.probability_of_none < 1]
        if causes:
            lines = [f"Causes of {self.subject} in {counted(self.graphs, 'graph')}, by size times share of paths:"]
            lines += [f"  {_in_short(each)}" for each in causes]
            lines += [f"  {line}" for line in [self.on_comparisons] if line]
        else:
            lines = [nothing_found(self)]
        if self.categories:
            lines.append(f"  {self.on_categories}: name two of its levels with effect(..., between=(..., ...))")
        if causes:
            lines += [f"  no estimate for {listed(names)}: {reason}" for names, reason in reasons_for_none(self)]
        return "\n".join(lines)

    @property
    def subject(self) -> str:
        """The quantity that changes: the outcome, or the share of one of its levels."""
        return self.effects[0].subject if self.effects else self.outcome

    @property
    def on_categories(self) -> str:
        """Names the categories, which have no single effect; empty if there are none."""
        several = len(self.categories) > 1
        words = "each a category" if several else "a category"
        return f"no single effect of {listed(self.categories)}, {words}" if self.categories else ""

    @property
    def on_comparisons(self) -> str:
        """Warns that the largest of many effects tend to be overstated; empty with few causes."""
        if len(self.effects) < MIN_COMPARED:
            return ""
        clear = int((holm(np.array([each.p_value for each in self.effects])) < SIGNIFICANT).sum())
        return (
            f"{counted(len(self.effects), 'variable')} were compared, so the largest effects are likely overstated; "
            f"allowing for that (Holm), {clear} depend on {self.outcome} after adjustment"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """A picture of the standardized effects with their intervals, fainter where fewer graphs have a path, on the
        axes or in a new figure."""
        shown = [each for each in self.effects if each.probability_of_none < 1][:MAX_BARS]
        labels = [f"{shortened(visible(each.treatment), 1, 20)} ({_share_in_short(each)})" for each in shown]
        ax = axes_of_rows(ax, labels)
        ax.axvline(0, color=QUIET_COLOR, linewidth=0.8)
        for index, each in enumerate(shown):
            alpha = 0.2 + 0.8 * each.probability_of_path * (1 - each.probability_not_identified)
            ends = [end * each.standard_unit for end in each.interval]
            ax.plot(ends, [index, index], color=EDGE_COLOR, alpha=alpha, linewidth=2)
            ax.plot([each.median * each.standard_unit], [index], "o", color=EDGE_COLOR, alpha=alpha)
        ax.set_xlabel(visible(f"standardized effect on {self.outcome}"), parse_math=False)
        return ax


# Words


def nothing_found(effects: Effects) -> str:
    """Say that no cause of the outcome was found: because there is none, or because no effect could be estimated."""
    in_any = f"has an effect on {effects.subject} in any of {counted(effects.graphs, 'graph')}"
    if reasons := reasons_for_none(effects):
        named = [f"for {listed(names)}, {reason}" for names, reason in reasons[:MAX_REASONS]]
        if rest := sum(len(names) for names, _ in reasons[MAX_REASONS:]):
            named.append(f"likewise for {rest} more")
        others = f"; nothing else {in_any}" if effects.effects else ""
        return f"No effect on {effects.subject} could be estimated: {'; '.join(named)}{others}."
    perhaps = f" but perhaps {listed(effects.categories)}" if effects.categories else ""
    return f"Nothing in the table{perhaps} {in_any}."


def reasons_for_none(effects: Effects) -> list[tuple[list[str], str]]:
    """The variables without an estimate and the reason that they share; without categories, which have no single
    effect."""
    by_reason: dict[str, list[str]] = {}
    for name in effects.not_estimated:
        if name not in effects.categories:
            by_reason.setdefault(effects.why_not_estimated[name], []).append(name)
    return [(names, reason) for reason, names in by_reason.items()]


def _in_short(effect: Effect) -> str:
    """One line of a ranking."""
    low, high = effect.interval
    numbers = f"{effect._amount(effect.median)} ({in_digits(low)} to {in_digits(high)}) {effect.change}"
    lost, share = effect.probability_not_identified, effect.probability_of_path
    if effect.verdict == "not identified":
        return f"{effect.treatment}: not identified in {counted_share(lost, 'graphs')}; leaving that aside {numbers}"
    also = f"; not identified in {in_percent(lost)}" if lost > MIN_MENTIONED else ""
    return f"{effect.treatment}: {numbers}; a causal path in {counted_share(share, 'graphs')}{also}"


def _share_in_short(effect: Effect) -> str:
    """Label for a picture: the share of graphs with an effect, or that most do not identify it."""
    if effect.verdict == "not identified":
        return f"not identified in {counted_share(effect.probability_not_identified)}"
    return counted_share(1 - effect.probability_of_none)
