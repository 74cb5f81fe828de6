"""Curve: an effect over time, in words, as a table and as a picture."""

# H horizon

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import DIGITS
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, QUIET_COLOR
from causal_arrow.series.answer import SeriesAnswer
from causal_arrow.series.responses import LEVEL, Response
from causal_arrow.text import counted_share, in_digits, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

MAX_SHOWN = 11
"""Steps that a summary lists."""
PANELS = 12


@dataclass(frozen=True, eq=False)
class Curve:
    """What happens to one variable after another was raised by one, step by step.

    Examples
    --------
    >>> from causal_arrow import discover, load_example
    >>> found = discover(load_example("greenhouse"), lags=2, time="day")
    >>> curve = found.response("watering", "soil", steps=2)
    >>> list(curve.to_frame().columns)
    ['step', 'effect', 'low', 'high']
    """

    cause: str
    """The variable that is raised by one."""
    effect: str
    """The variable that may change."""
    kind: str
    """"pulse": raised once; "step": kept higher."""
    estimate: Floats
    """The median over graphs and sampling error.  (H + 1,)"""
    low: Floats
    """The lower ends of 90% intervals.  (H + 1,)"""
    high: Floats
    """The upper ends.  (H + 1,)"""
    path: float
    """The share of sampled graphs with a path from cause to effect."""
    sets: tuple[tuple[tuple[str, ...], float], ...]
    """What was adjusted for, such as `sun t-1`, by the share of graphs."""
    graphs: int
    """How many graphs were sampled."""
    notes: tuple[str, ...] = ()
    """What else is good to know."""

    @classmethod
    def of(cls, found: Response, answer: SeriesAnswer, kind: str, graphs: int) -> Curve:
        """Put a response into the words of an answer."""
        names, notes = answer.names, []
        cause, effect = names[found.cause], names[found.effect]
        hidden = answer.confounding_probabilities
        if hidden is not None and (shared := float(hidden[found.cause, found.effect])) > 0.5:
            notes.append(
                f"{cause} and {effect} probably share a hidden cause ({shared:.2f}), which no adjustment removes."
            )
        if found.corrected:
            notes.append("Corrected for the bias that levels of units cause in short panels, by halving the panel.")
        if answer.units > 1:
            notes.append("Errors are clustered by unit.")
        sets = tuple(
            (tuple(names[j] + (f" t-{lag}" if lag else "") for j, lag in causes), share) for causes, share in found.sets
        )
        return cls(cause, effect, kind, found.estimate, found.low, found.high, found.path, sets, graphs, tuple(notes))

    @property
    def largest(self) -> float:
        """The largest effect at any step, without its sign."""
        return float(np.abs(self.estimate).max())

    @property
    def sentence(self) -> str:
        """Say what the cause does, at the step where the effect is largest."""
        step = int(np.abs(self.estimate).argmax())
        how = "raised once by 1" if self.kind == "pulse" else "kept 1 higher"
        when = "at once" if step == 0 else "after 1 step" if step == 1 else f"after {step} steps"
        numbers = f"{in_digits(self.estimate[step])} ({in_digits(self.low[step])} to {in_digits(self.high[step])})"
        return (
            f"If {self.cause} is {how}, {self.effect} changes most {when}: by {numbers}; a path from {self.cause} to "
            f"{self.effect} is in {counted_share(self.path, 'graphs')}."
        )

    def __str__(self) -> str:
        lines = [self.sentence, "", "step  effect  90% interval"]
        for step in range(min(len(self.estimate), MAX_SHOWN)):
            interval = f"{in_digits(self.low[step])} to {in_digits(self.high[step])}"
            lines.append(f"{step:>4}  {in_digits(self.estimate[step]):>6}  {interval}")
        if len(self.estimate) > MAX_SHOWN:
            lines.append(f"... and {len(self.estimate) - MAX_SHOWN} more steps")
        return visible("\n".join([*lines, *(["", *self.notes] if self.notes else [])]))

    def to_frame(self) -> pd.DataFrame:
        """One row per step: `step`, `effect`, `low` and `high`."""
        import pandas as pd

        steps = np.arange(len(self.estimate))
        return pd.DataFrame({"step": steps, "effect": self.estimate, "low": self.low, "high": self.high})

    def to_dict(self) -> dict[str, Any]:
        """The curve as JSON can hold it."""
        numbers = {
            name: [round(float(value), DIGITS) for value in getattr(self, name)] for name in ("estimate", "low", "high")
        }
        return {
            "cause": self.cause,
            "effect": self.effect,
            "kind": self.kind,
            "level": LEVEL,
            **numbers,
            "path": self.path,
            "graphs": self.graphs,
            "sets": [{"adjusted_for": list(members), "share": share} for members, share in self.sets],
            "notes": list(self.notes),
            "sentence": self.sentence,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve with its interval.

        Parameters
        ----------
        ax
            Axes to draw into; by default new ones.
        """
        return draw_curve(self, ax)


@dataclass(frozen=True, eq=False)
class Curves:
    """The effects over time of several variables on one, the largest first (per standard deviation of the cause).

    Examples
    --------
    >>> from causal_arrow import discover, load_example
    >>> found = discover(load_example("greenhouse"), lags=2, time="day")
    >>> curves = found.responses("growth", steps=2, n_graphs=20)
    >>> list(curves.to_frame().columns)
    ['cause', 'step', 'effect', 'low', 'high']
    """

    curves: tuple[Curve, ...]
    """One for each cause."""

    def to_frame(self) -> pd.DataFrame:
        """One row per cause and step."""
        import pandas as pd

        frames = [curve.to_frame().assign(cause=curve.cause) for curve in self.curves]
        columns = ["cause", "step", "effect", "low", "high"]
        return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)

    def __str__(self) -> str:
        return "\n".join(curve.sentence for curve in self.curves)

    def to_dict(self) -> dict[str, Any]:
        """The curves as JSON can hold them."""
        return {"curves": [curve.to_dict() for curve in self.curves]}

    def plot(self, axes: Any = None) -> Any:
        """Draw the first curves side by side.

        Parameters
        ----------
        axes
            Axes to draw into, one for each curve; by default new ones.
        """
        return draw_curves(self.curves[:PANELS], axes)


# Pictures


def draw_curve(curve: Curve, ax: Axes | None = None) -> Axes:
    """Draw an effect over time with its interval."""
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(5.6, 3.2), layout="constrained").add_subplot()
    steps = np.arange(len(curve.estimate))
    ax.axhline(0, color=QUIET_COLOR, linewidth=0.8)
    ax.fill_between(steps, curve.low, curve.high, color=EDGE_COLOR, alpha=0.15, linewidth=0)
    ax.plot(steps, curve.estimate, color=EDGE_COLOR, marker="o", markersize=4, linewidth=1.8)
    how = "raised once by 1" if curve.kind == "pulse" else "kept 1 higher"
    ax.set_title(visible(f"{curve.effect} if {curve.cause} is {how}"), fontsize=10, parse_math=False)
    ax.set_xlabel("steps later")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["right", "top"]].set_visible(False)
    return ax


def draw_curves(curves: Sequence[Curve], axes: Any = None) -> Any:
    """Draw several curves side by side."""
    if axes is None:
        import matplotlib.pyplot as plt

        columns = min(3, max(1, len(curves)))
        rows = -(-max(1, len(curves)) // columns)
        figure = plt.figure(figsize=(3.6 * columns, 2.5 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax in axes[len(curves) :]:
            ax.set_axis_off()
    for curve, ax in zip(curves, np.ravel(axes), strict=False):
        draw_curve(curve, ax)
        ax.set_title(visible(curve.cause), fontsize=10, parse_math=False)
    return axes
