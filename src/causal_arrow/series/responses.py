"""Effects over time: the change of one variable 0, 1, ..., H steps after another was raised, averaged over graphs.

Local projections (Jordà 2005): y at t + h is regressed on x at t, given the causes of x at t in a graph. Where the
graph has no path of h steps from x to y, the effect is zero. That needs no linear dynamics, and covers the truth where
a vector autoregression that is restricted to the graph does not. A further lag of both variables makes the scores
uncorrelated in time, so that heteroskedasticity-robust errors are valid, also for strong memory (Montiel Olea and
Plagborg-Møller 2021). In panels units have levels of their own and errors are clustered by unit; short panels are
halved in time to correct the bias that these levels cause (Nickell 1981; split-panel jackknife).
"""

# T steps, P variables, L lags, G graphs, H horizon, N rows of a regression, K columns of it, S draws

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery.answer import DIGITS
from causal_arrow.discovery.effects.mixture import axes_for
from causal_arrow.discovery.pictures.scene import EDGE_COLOR, QUIET_COLOR
from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.series.distribution import summary
from causal_arrow.series.window import SHORT_PANEL, Window, at_lag, window, without_means
from causal_arrow.tables.frames import WithFrames
from causal_arrow.text import Readable, counted, counted_share, in_digits, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
Causes = tuple[tuple[int, int], ...]

LEVEL = 0.9
DRAWS = 2000
MAX_SETS = 100  # adjustment sets that are estimated: the most frequent ones
MIN_SPARE_ROWS = 10  # rows of a regression beyond its columns
ROWS_PER_UNIT = 12  # with fewer rows per unit, the bias of a short panel is not fully corrected
MAX_LEVERAGE = 0.95
MAX_SHOWN = 11  # steps that a summary lists
PANELS = 12  # curves in one picture
CHANGES = {"pulse": "raised once by 1", "step": "kept 1 higher"}


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Readable, WithFrames):
    """The response of one variable to another that was raised by one, step by step."""

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
    """The adjustment sets, such as `sun t-1`, with the share of graphs that have each."""
    graphs: int
    """Number of sampled graphs."""
    corrected: bool
    """True if the estimates are corrected for the bias of a short panel."""
    notes: tuple[str, ...] = ()
    """Sentences on errors and corrections."""

    @property
    def sentence(self) -> str:
        """Say what the cause does, at the step where the effect is largest."""
        step = int(np.abs(self.estimate).argmax())
        when = f"after {counted(step, 'step')}" if step else "at once"
        size, interval = self._in_digits[step]
        return (
            f"If {self.cause} is {CHANGES[self.kind]}, {self.effect} changes most {when}: by {size} ({interval}); a "
            f"path from {self.cause} to {self.effect} is in {counted_share(self.path, 'graphs')}."
        )

    @property
    def _in_digits(self) -> list[tuple[str, str]]:
        """The estimate and the interval of each step in words."""
        steps = zip(self.estimate, self.low, self.high, strict=True)
        return [(in_digits(middle), f"{in_digits(low)} to {in_digits(high)}") for middle, low, high in steps]

    def __str__(self) -> str:
        lines = [self.sentence, "", "step  effect  90% interval"]
        for step, (size, interval) in enumerate(self._in_digits[:MAX_SHOWN]):
            lines.append(f"{step:>4}  {size:>6}  {interval}")
        if len(self.estimate) > MAX_SHOWN:
            lines.append(f"... and {len(self.estimate) - MAX_SHOWN} more steps")
        return visible("\n".join([*lines, *([""] if self.notes else []), *self.notes]))

    def to_frame(self) -> Any:
        """One row per step: `step`, `effect`, `low` and `high`."""
        return self._framed(self._frame())

    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        steps = np.arange(len(self.estimate))
        return pd.DataFrame({"step": steps, "effect": self.estimate, "low": self.low, "high": self.high})

    def to_dict(self) -> dict[str, Any]:
        """The curve as JSON can hold it."""
        numbers = {name: np.round(getattr(self, name), DIGITS).tolist() for name in ("estimate", "low", "high")}
        words = {name: getattr(self, name) for name in ("cause", "effect", "kind", "path", "graphs", "corrected")}
        sets = [{"adjusted_for": list(members), "share": share} for members, share in self.sets]
        return {**words, "level": LEVEL, **numbers, "sets": sets, "notes": list(self.notes), "sentence": self.sentence}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve with its interval."""
        from matplotlib.ticker import MaxNLocator

        ax = axes_for(ax, (5.6, 3.2))
        steps = np.arange(len(self.estimate))
        ax.axhline(0, color=QUIET_COLOR, linewidth=0.8)
        ax.fill_between(steps, self.low, self.high, color=EDGE_COLOR, alpha=0.15, linewidth=0)
        ax.plot(steps, self.estimate, color=EDGE_COLOR, marker="o", markersize=4, linewidth=1.8)
        ax.set_title(visible(f"{self.effect} if {self.cause} is {CHANGES[self.kind]}"), fontsize=10, parse_math=False)
        ax.set_xlabel("steps later")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.spines[["right", "top"]].set_visible(False)
        return ax


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Readable, WithFrames):
    """The effects over time of several variables on one, the largest first (per standard deviation of the cause)."""

    curves: tuple[Curve, ...]
    """One for each cause."""

    def to_frame(self) -> Any:
        """One row per cause and step."""
        import pandas as pd

        columns = ["cause", "step", "effect", "low", "high"]
        frames = [curve._frame().assign(cause=curve.cause) for curve in self.curves]
        return self._framed(pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns))

    def __str__(self) -> str:
        return "\n".join(curve.sentence for curve in self.curves)

    def to_dict(self) -> dict[str, Any]:
        """The curves as JSON can hold them."""
        return {"curves": [curve.to_dict() for curve in self.curves]}

    def plot(self, axes: Any = None) -> Any:
        """Draw the first curves side by side, into `axes` or a new figure."""
        curves = self.curves[:PANELS]
        if axes is None:
            import matplotlib.pyplot as plt

            columns = min(3, max(1, len(curves)))
            rows = -(-max(1, len(curves)) // columns)
            figure = plt.figure(figsize=(3.6 * columns, 2.5 * rows), layout="constrained")
            axes = figure.subplots(rows, columns, squeeze=False).ravel()
            for ax in axes[len(curves) :]:
                ax.set_axis_off()
        for curve, ax in zip(curves, np.ravel(axes), strict=False):
            curve.plot(ax).set_title(visible(curve.cause), fontsize=10, parse_math=False)
        return axes


# Estimates


@dataclass(frozen=True, eq=False)
class Steps:
    """A series or panel as regressions read it; its windows are made for each horizon."""

    values: Floats  # (T, P)
    time: NDArray[np.generic] | None = None  # (T,)
    unit: NDArray[np.generic] | None = None  # (T,)
    environment: NDArray[np.generic] | None = None  # (T,)
    period: int | None = None  # of a season
    names: Sequence[str] = ()  # (P,)

    def rows(self, lags: int) -> Window:
        """The window of so many lags."""
        return window(self.values, lags, time=self.time, unit=self.unit, environment=self.environment)

    def name(self, variable: int, lag: int = 0) -> str:
        """The name of a variable at a lag."""
        return at_lag(self.names[variable] if self.names else f"x{variable}", lag)


def response(
    steps: Steps,
    graphs: Bools,
    cause: int,
    effect: int,
    horizon: int,
    generator: np.random.Generator,
    *,
    kind: str = "pulse",
) -> Curve:
    """The response of `effect` to `cause`, averaged over graphs (G, L + 1, P, P), with an interval of LEVEL."""
    if cause == effect:
        raise ConfigurationError("Expected two different variables as cause and effect, got one.")
    parents = [tuple((int(j), int(lag)) for lag, j in np.argwhere(graph[:, :, cause])) for graph in graphs]
    common = Counter(parents).most_common(MAX_SETS)
    total = sum(count for _, count in common)
    reached = _reached(graphs, cause, [cause, effect], horizon)
    scaled, spread = _standardized(steps.values)
    designs = _Designs(replace(steps, values=scaled), graphs.shape[1], cause, effect, horizon)
    curves = []
    for causes, count in common:
        estimate, covariance = designs.curves(causes)
        share = max(1, round(DRAWS * count / total))
        drawn = generator.multivariate_normal(estimate.ravel(), covariance, size=share, method="eigh")
        drawn = np.where(covariance.diagonal() > 0, drawn, estimate.ravel()).reshape(share, 2, horizon + 1)
        with_these = np.array([index for index, others in enumerate(parents) if others == causes])
        drawn = np.where(reached[with_these[np.arange(share) % count]], drawn, 0.0)
        curves.append(drawn[:, 1] if kind == "pulse" else _held(drawn))
    bounds = np.quantile(np.concatenate(curves), [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], axis=0)
    with np.errstate(over="ignore"):
        low, middle, high = bounds * (spread[effect] / spread[cause])
    notes = []
    if designs.halved:
        notes.append("Corrected for the bias that levels of units cause in short panels, by halving the panel.")
        if (few := designs.rows_per_unit < ROWS_PER_UNIT).any():
            units = f"From step {step} on, units" if (step := int(few.argmax())) else "Units"
            notes.append(f"{units} have fewer than {ROWS_PER_UNIT} rows each: intervals are too narrow.")
    if designs.units > 1:
        notes.append("Errors are clustered by unit.")
    return Curve(
        cause=steps.name(cause),
        effect=steps.name(effect),
        kind=kind,
        estimate=middle,
        low=low,
        high=high,
        path=float(transitive_closure(summary(graphs))[:, cause, effect].mean()),
        sets=tuple((tuple(steps.name(*each) for each in causes), count / len(graphs)) for causes, count in common),
        graphs=len(graphs),
        corrected=designs.halved,
        notes=tuple(notes),
    )


def _reached(graphs: Bools, cause: int, ends: Sequence[int], horizon: int) -> Bools:
    """True where a path leads from the cause to each end, 0, 1, ... steps later.  (G, ends, H + 1)"""
    within = transitive_closure(graphs[:, 0]) | np.eye(graphs.shape[-1], dtype=bool)
    recent = deque([within[:, cause]], maxlen=graphs.shape[1] - 1)  # the newest first, (G, P) each
    result = np.empty((len(graphs), len(ends), horizon + 1), dtype=bool)
    result[:, :, 0] = recent[0][:, ends]
    for h in range(1, horizon + 1):
        arrived = np.zeros_like(recent[0])
        for lag, before in enumerate(recent, start=1):
            arrived |= (before[:, :, None] & graphs[:, lag]).any(axis=1)
        recent.appendleft(np.asarray((arrived[:, :, None] & within).any(axis=1)))
        result[:, :, h] = recent[0][:, ends]
    return result


def _standardized(values: Floats) -> tuple[Floats, Floats]:
    """The variables in standard deviations, and these: regressions must not depend on units.  (T, P), (P,)"""
    size = np.nanmax(np.abs(values), axis=0, initial=0.0)
    size[size == 0] = 1.0
    shares = values / size
    spread = np.nanstd(shares, axis=0)
    spread[~(spread > 0)] = 1.0
    return (shares - np.nanmean(shares, axis=0)) / spread, spread * size


def _held(curves: Floats) -> Floats:
    """Responses to a cause kept 1 higher, from those of cause and effect to a cause raised once.  (S, H + 1)"""
    own, other = curves[:, 0], curves[:, 1]
    pushes, result = np.zeros_like(own), np.zeros_like(own)
    for h in range(own.shape[1]):  # at each step the cause gets the push that its own course lacks
        pushes[:, h] = 1 - (own[:, h:0:-1] * pushes[:, :h]).sum(axis=1)
        result[:, h] = (other[:, h::-1] * pushes[:, : h + 1]).sum(axis=1)
    return result


class _Designs:
    """The regressions behind a response, for any set of causes of the variable that is raised."""

    def __init__(self, steps: Steps, slices: int, cause: int, effect: int, horizon: int) -> None:
        self.steps, self.cause, self.effect = steps, cause, effect
        # One more lag than edges have; see the top of this file.
        self.own_past = [(variable, lag) for variable in (cause, effect) for lag in range(1, slices + 1)]
        try:
            self.rows = [steps.rows(slices + h) for h in range(horizon + 1)]
        except TableError as error:
            raise TableError(
                f"The series is too short for effects after {horizon} steps: ask for fewer steps."
            ) from error
        self.units = int(self.rows[0].unit.max()) + 1
        self.rows_per_unit = np.array([len(rows.index) / self.units for rows in self.rows])  # (H + 1,)
        self.halved = self.units > 1 and self.rows_per_unit[0] < SHORT_PANEL

    def curves(self, causes: Causes) -> tuple[Floats, Floats]:
        """Responses of the cause itself and of the effect, and their covariance.  (2, H + 1), (2H + 2, 2H + 2)"""
        horizon = len(self.rows) - 1
        estimate = np.zeros((2, horizon + 1))
        estimate[0, 0] = 1.0
        clusters = self.units if self.units > 1 else len(self.steps.values)
        influence = np.zeros((2, horizon + 1, clusters))
        for h in range(horizon + 1):
            found, scores, where = self._regression(causes, h)
            for side in (0, 1):
                # At the same time a variable has no effect on itself, nor on its causes.
                if h == 0 and (side == 0 or (self.effect, 0) in causes):
                    continue
                estimate[side, h] = found[side]
                influence[side, h] = np.bincount(where, weights=scores[:, side], minlength=clusters)
        flat = influence.reshape(2 * horizon + 2, clusters)
        return estimate, flat @ flat.T * (clusters / (clusters - 1))

    def _regression(self, causes: Causes, h: int) -> tuple[Floats, Floats, Integers]:
        """Coefficients of the cause, the influence of each row on them, and its cluster.  (2,), (N, 2), (N,)"""
        rows, values = self.rows[h], self.steps.values
        at = {lag: rows.index[:, h + lag] for lag in range(rows.lags + 1 - h)}
        controls = dict.fromkeys([*causes, *self.own_past])
        columns = [_cells(values, at[lag], variable) for variable, lag in ((self.cause, 0), *controls)]
        if np.ptp(rows.tick):
            columns.append((rows.tick - rows.tick.mean()) / np.ptp(rows.tick))
        if self.steps.period is not None:
            angle = 2 * np.pi * rows.tick / self.steps.period
            columns += [turn(angle * k) for k in (1, 2) for turn in (np.sin, np.cos)]
        design = np.column_stack(columns)
        outcomes = np.column_stack([_cells(values, rows.index[:, 0], end) for end in (self.cause, self.effect)])
        complete = np.flatnonzero(~np.isnan(design).any(axis=1) & ~np.isnan(outcomes).any(axis=1))
        unit = rows.unit[complete]
        if len(complete) < design.shape[1] + len(np.unique(unit)) + MIN_SPARE_ROWS:
            raise TableError(
                f"Expected more than {design.shape[1] + MIN_SPARE_ROWS} complete rows for the effect after {h} steps, "
                f"got {len(complete)}: ask for fewer steps."
            )
        design, outcomes = design[complete], outcomes[complete]
        found, scores = _least_squares(design, outcomes, unit)
        if self.halved:
            late = _second_half(rows.tick[complete], unit)
            found, scores = 2 * found, 2 * scores
            for half in (late, ~late):
                part, part_scores = _least_squares(design[half], outcomes[half], unit[half])
                found, scores[half] = found - part / 2, scores[half] - part_scores / 2
        return found, scores, unit if self.units > 1 else at[0][complete]


def _cells(values: Floats, step: Integers, variable: int) -> Floats:
    """A variable at some steps, NaN where there is none."""
    return np.where(step < 0, np.nan, values[step, variable])


def _second_half(tick: Integers, unit: Integers) -> Bools:
    """The rows in the second half of the time of their unit."""
    units = int(unit.max()) + 1
    first, last = np.full(units, np.iinfo(np.int64).max), np.full(units, np.iinfo(np.int64).min)
    np.minimum.at(first, unit, tick)
    np.maximum.at(last, unit, tick)
    return np.asarray(2 * tick > (first + last)[unit])


def _least_squares(design: Floats, outcomes: Floats, unit: Integers) -> tuple[Floats, Floats]:
    """Coefficients of the first column for both outcomes, and the influence of each row on them (HC3).  (2,), (N, 2)"""
    whole = without_means(np.column_stack([design, outcomes]), unit)
    design, outcomes = whole[:, :-2], whole[:, -2:]
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ (design.T @ outcomes)
    leverage = np.einsum("nk,kl,nl->n", design, inverse, design)
    residuals = (outcomes - design @ coefficients) / (1 - np.minimum(leverage, MAX_LEVERAGE))[:, None]
    return coefficients[0], (design @ inverse[0])[:, None] * residuals
