"""causes_of: the probable causes of one variable in a table of up to 20,000 columns.

The network keeps something for each pair of variables, so it cannot read so many. It reads the columns that screening
leaves: those that explain what the columns chosen before have left (forward selection, by straight lines and by squares
of ranks), and those that depend most on the outcome alone.
"""

# N rows, P columns, K graphs

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from causal_arrow.discovery.answer import DIGITS
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.inference import abilities, ready_model
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings, as_knowledge, check_count
from causal_arrow.discovery.uncertainty import ancestor_frequencies
from causal_arrow.errors import ConfigurationError, Remedy, TableError
from causal_arrow.progress import Progress, progress_bar
from causal_arrow.tables import RawFrame, as_frame
from causal_arrow.tables.frames import in_library
from causal_arrow.tables.reading import read_rows
from causal_arrow.text import Readable, closest, counted

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float32]

MAX_COLUMNS = 20_000
MAX_SCREENED_CELLS = 10**8  # rows beyond that are left to the network, drawn evenly
COLUMNS_AT_ONCE = 1000
MIN_KEPT, MAX_KEPT = 10, 500
FORWARD_SHARE = 0.6  # of the kept columns; the rest depend most on the outcome by themselves
MAX_SHOWN = 20
SCREENING = "Screening columns"
NETWORK = "Reading what is left"


@dataclass(frozen=True, eq=False, repr=False)
class ProbableCauses(Readable):
    """The probable causes of one variable; `print` says it in words."""

    outcome: str
    """The variable whose causes were asked for."""
    names: tuple[str, ...]
    """The columns that the network read, the most probable causes first."""
    direct: tuple[float, ...]
    """Probability that each is a direct cause, given the columns that the network read."""
    probability: tuple[float, ...]
    """Probability that each is a cause, directly or through others of these columns."""
    screened: int
    """Number of columns that were screened."""
    unusable: tuple[str, ...]
    """Columns that could not be read, or that are constant."""
    found: Discovery
    """The discovery on the columns that are left, for further questions."""

    def to_frame(self) -> pd.DataFrame:
        """One row per column that the network read: `cause`, `direct`, `cause_probability`."""
        import pandas as pd

        content = {"cause": list(self.names), "direct": self.direct, "cause_probability": self.probability}
        return in_library(pd.DataFrame(content), self.found.settings.frames)

    def to_dict(self) -> dict[str, Any]:
        """The causes as JSON can hold them."""
        causes = [
            {"cause": name, "direct": round(direct, DIGITS), "cause_probability": round(probability, DIGITS)}
            for name, direct, probability in zip(self.names, self.direct, self.probability, strict=True)
        ]
        unusable = list(self.unusable)
        return {"outcome": self.outcome, "screened": self.screened, "unusable": unusable, "causes": causes}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The result in sentences."""
        lines = [
            f"Probable causes of {self.outcome}, among {counted(len(self.names), 'column')} that the network read."
        ]
        if self.screened > len(self.names):
            lines = [
                f"{lines[0][:-1]} after screening {self.screened:,}.",
                "A column that screening left out is not ruled out as a cause, and indirect causes were looked for "
                "among the columns that are left.",
            ]
        if self.unusable:
            lines.append(f"Not read: {counted(len(self.unusable), 'constant or unusable column')}.")
        return tuple(lines)

    def __str__(self) -> str:
        first, *others = (*self.sentences, *self.found.answer.warnings)
        shares = list(zip(self.names, self.probability, self.direct, strict=True))[:MAX_SHOWN]
        width = max(len(name) for name, _, _ in shares)
        rows = [f"  {name.ljust(width)}  cause {p:.2f}  direct {d:.2f}" for name, p, d in shares]
        return "\n".join([first, *rows, *others])


def causes_of(
    source: Any,
    outcome: str,
    settings: Settings | None = None,
    *,
    keep: int = 60,
    n_graphs: int = 1000,
    random_state: int = 0,
    progress: bool | None = None,
    **changes: Any,
) -> ProbableCauses:
    """Find the probable causes of one variable, in a table of up to 20,000 columns.

    Parameters
    ----------
    source
        Whatever `read_table` takes.
    settings
        The model, what is known, and how to read the table.
    keep
        How many columns the network reads, besides the outcome. Columns that the knowledge names are among them.
    n_graphs, random_state
        How many graphs to draw for the probabilities of indirect causes, and a seed.
    progress
        Whether to show a bar on standard error; by default only on a terminal.
    **changes
        Settings and reading options by name, as in `discover`.

    Examples
    --------
    >>> from causal_arrow import causes_of, load_example
    >>> table = load_example("hospital")
    >>> causes = causes_of(table, "stay", roots=["age"], progress=False)
    >>> max(causes.probability) > 0.9
    True
    """
    keep = check_count("keep", keep, MAX_KEPT, MIN_KEPT)
    settings = (settings or Settings()).changed(**changes).for_source(source)
    if settings.series.are_given:
        raise ConfigurationError("causes_of is for tables, not for time series: leave out lags.")
    raw = as_frame(source, settings.reading)
    names = [raw.names[index] for index in raw.chosen(settings.reading)]
    if outcome not in names:
        near = closest(str(outcome), names)
        hint = "." if near is None else f": did you mean {near!r}?"
        raise ConfigurationError(f"There is no column {outcome!r}{hint}")
    if len(names) > MAX_COLUMNS:
        raise TableError(
            f"The table has {len(names):,} columns, more than the {MAX_COLUMNS:,} that are screened.",
            [Remedy("choose")],
        )
    always = [name for name in as_knowledge(settings.knowledge).variables() if name != outcome]
    labels = [name for name in (settings.reading.interventions, settings.reading.environments) if isinstance(name, str)]
    unusable: list[str] = []
    with progress_bar(progress, pieces=100) as tell:
        candidates = kept = [name for name in names if name != outcome and name not in labels]
        if len(candidates) > keep:
            readable, values, response = _read(raw, settings, candidates, outcome, tell)
            unusable = sorted(set(candidates) - set(readable))
            chosen = screened(values, response, keep, lambda share: tell(SCREENING, 0.4 + share / 5))
            kept = list(dict.fromkeys([*always, *(readable[index] for index in chosen)]))[: max(keep, len(always))]
            del values
        tell(NETWORK, 0.6)
        there = {*kept, outcome, *labels}
        columns = [name for name in names if name in there]
        found = discover(raw, settings.changed(columns=columns, drop=None), progress=False)
        tell(NETWORK, 0.9)
        graphs = found.sample(n_graphs, random_state)
    target = found.answer.index_of(outcome)
    direct = found.answer.edge_probabilities[:, target]
    causes = np.maximum(ancestor_frequencies(graphs)[:, target], direct)
    order = [j for j in np.lexsort((found.names, -direct.round(3), -causes.round(3))).tolist() if j != target]
    return ProbableCauses(
        outcome,
        tuple(found.names[j] for j in order),
        tuple(float(direct[j]) for j in order),
        tuple(float(causes[j]) for j in order),
        len(candidates),
        tuple(unusable),
        found,
    )


def _read(
    raw: RawFrame, settings: Settings, candidates: Sequence[str], outcome: str, tell: Progress
) -> tuple[list[str], Floats, Floats]:
    """Names of usable columns, normal scores of their ranks (N, P), and the outcome in one or more columns (N, R)."""
    import pandas as pd

    able = abilities(settings.model, ready_model(settings.model, settings.device))
    step = -(-len(raw) * len(candidates) // MAX_SCREENED_CELLS)
    options = settings.reading.changed(missing="auto", drop=None, interventions=None, environments=None)
    table, rows = read_rows(raw, options.changed(columns=[outcome, candidates[0]]), able, strict=False)
    if outcome not in table.names:
        raise TableError(f"The outcome {outcome!r} cannot be read: {table.findings[-1].message}")
    column = table.columns[table.names.index(outcome)]
    target = np.full(len(raw), np.nan)
    target[rows] = table.values[:, table.names.index(outcome)]
    given = np.flatnonzero(~np.isnan(target))[::step]
    target = target[given]
    if column.kind == "category" and len(column.levels) > 2:
        response = np.stack([target == level for level in range(len(column.levels))], axis=1).astype(np.float32)
        response = (response - response.mean(axis=0))[:, response.sum(axis=0).argsort()[::-1][:5]]
    else:
        score = _normal_scores(target[:, None])
        response = np.concatenate([score, _normal_scores(np.abs(score))], axis=1)
    names, pieces = [], []
    for start in range(0, len(candidates), COLUMNS_AT_ONCE):
        tell(SCREENING, 0.4 * start / len(candidates))
        some = [*candidates[start : start + COLUMNS_AT_ONCE], outcome]
        table, rows = read_rows(raw, options.changed(columns=some), able, strict=False)
        refused = {name for finding in table.findings if finding.severity == "problem" for name in finding.columns}
        usable = [j for j, name in enumerate(table.names) if name != outcome and name not in refused]
        values = np.full((len(raw), len(usable)), np.nan)
        values[rows] = table.values[:, usable]
        values = values[given]
        for number, j in enumerate(usable):
            if table.columns[j].kind == "category" and len(table.columns[j].levels) > 2:
                values[:, number] = pd.Series(response[:, 0]).groupby(values[:, number]).transform("mean")
        names += [table.names[j] for j in usable]
        pieces.append(_normal_scores(values))
    if not names:
        raise TableError("No column besides the outcome can be read.")
    return names, np.concatenate(pieces, axis=1), response


def _normal_scores(values: NDArray[Any]) -> Floats:
    """Normal quantiles of the ranks of each column, standardized; 0 where a value is missing.  (N, P)"""
    ranks = rankdata(values, axis=0, nan_policy="omit") if np.isnan(values).any() else rankdata(values, axis=0)
    count = (~np.isnan(values)).sum(axis=0)
    scores = np.nan_to_num(norm.ppf((ranks - 0.5) / np.maximum(count, 1)))
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return np.asarray(np.where(spread > 1e-9, scores / np.maximum(spread, 1e-9), 0.0), dtype=np.float32)


def screened(
    values: Floats, response: Floats, keep: int, tell: Callable[[float], None] = lambda share: None
) -> list[int]:
    """The standardized columns (N, P) that may matter for any of the responses (N, R), the most important first."""
    chosen: list[int] = []
    others = response.shape[1] - 1
    shares = [0.7, *[0.3 / others] * others] if others else [1.0]
    alone = []
    for number, share in enumerate(shares):
        target = response[:, number]
        chosen += _forward(values, target, max(1, round(FORWARD_SHARE * keep * share)))
        alone.append(np.argsort(-_explained(values, target), kind="stable")[:keep].tolist())
        tell((number + 1) / len(shares))
    chosen = list(dict.fromkeys(chosen))
    for ranks in zip(*alone, strict=True):  # in rotation, until enough are chosen
        chosen += [each for each in ranks if each not in chosen]
    return list(dict.fromkeys(chosen))[:keep]


def _explained(values: Floats, target: Floats) -> Floats:
    """Squared correlation of the target with each column or its square, whichever is larger.  (P,)"""
    size = len(target) * float(target @ target)
    squares = np.square(values) - 1.0
    return np.asarray(np.maximum((target @ values) ** 2, (target @ squares) ** 2 / 2) / max(size, 1e-12))


def _forward(values: Floats, target: Floats, count: int) -> list[int]:
    """The columns that explain most of what those before have left of the target, one after the other.

    A column enters with its square; scores of the others are squared partial correlations.
    """
    rows, squares = len(values), np.square(values) - 1.0
    rest = target - target.mean()
    basis: list[Floats] = []
    left = np.full(values.shape[1], float(rows), dtype=np.float64)
    left_of_squares = np.square(squares).sum(axis=0, dtype=np.float64)
    floors = 0.05 * left, 0.05 * left_of_squares
    chosen: list[int] = []
    for _ in range(min(count, values.shape[1], rows // 5)):
        scores = np.maximum(
            np.where(left > floors[0], (rest @ values) ** 2 / np.maximum(left, 1e-9), 0.0),
            np.where(left_of_squares > floors[1], (rest @ squares) ** 2 / np.maximum(left_of_squares, 1e-9), 0.0),
        )
        scores[chosen] = -1.0
        best = int(np.argmax(scores))
        chosen.append(best)
        for part in (values[:, best], squares[:, best]):
            direction = part - part.mean()
            for other in basis:
                direction = direction - (other @ direction) * other
            length = float(np.linalg.norm(direction))
            if length < 1e-3 * np.sqrt(rows):
                continue
            direction = direction / length
            basis.append(direction)
            rest = rest - (direction @ rest) * direction
            left -= np.square(direction @ values)
            left_of_squares -= np.square(direction @ squares)
    return chosen
