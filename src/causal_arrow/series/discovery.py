"""SeriesDiscovery: an answer about a series, with the series, the report card and the network, and its questions."""

# T steps, P variables, L lags, G graphs

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.discovery import summary
from causal_arrow.discovery.answer import edge_record
from causal_arrow.discovery.discovery import RandomState, of_answer, random_generator, refined
from causal_arrow.discovery.inference import abilities, ready_model, training_range
from causal_arrow.discovery.settings import REFINABLE, Settings, check_count
from causal_arrow.errors import ConfigurationError, check_choice
from causal_arrow.inputs import checked
from causal_arrow.network import Network
from causal_arrow.progress import progress_bar
from causal_arrow.series import SeriesOptions, exports
from causal_arrow.series.answer import EDGE_COLUMNS, SeriesAnswer
from causal_arrow.series.pipeline import answer_series
from causal_arrow.series.reading import Series, read_series
from causal_arrow.series.responses import CHANGES, Curve, Curves, Steps, response
from causal_arrow.tables.frames import in_library
from causal_arrow.tables.report import TableReport, inspect_table
from causal_arrow.tables.table import Table
from causal_arrow.text import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from causal_arrow.discovery.effects.experiments import ExperimentPlan
    from causal_arrow.discovery.inference import Workload
    from causal_arrow.discovery.second_opinion import SecondOpinion

Bools = NDArray[np.bool_]


@checked
@dataclass(frozen=True, eq=False, repr=False)
class SeriesDiscovery:
    """An answer about a series, the series it is about, its report card, and the network that gave it.

    `discover` and `Arrow` make it where lags are given. Questions about many possible graphs draw `n_graphs` window
    graphs; `random_state` is a seed or a numpy generator.

    Parameters
    ----------
    series
        The series as it was read: its table, times and units.
    report
        What was noticed about it.
    answer
        The window graph and all probabilities.
    network
        The network that read it.
    settings
        How the answer was found.

    Examples
    --------
    The examples of the methods below continue this one.

    >>> from causal_arrow import SeriesDiscovery, discover, load_example
    >>> found = discover(load_example("greenhouse"), lags=2, time="day")
    >>> list(found.edges.columns)[:4]
    ['source', 'target', 'lag', 'probability']
    >>> int(found.window_graph.loc[("soil", 2), "growth"])
    1
    >>> int(found.graph.loc["soil", "growth"])
    1
    """

    series: Series
    report: TableReport
    answer: SeriesAnswer
    network: Network | None = field(default=None, repr=False)
    settings: Settings = field(default_factory=Settings, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that have lags."""
        return self.answer.names

    @property
    def table(self) -> Table:
        """The table as it was read, one row per step."""
        return self.series.table

    # The graphs

    @property
    def edges(self) -> pd.DataFrame:
        """The edges of the window graph with their lags, then each variable's own past; the most probable first."""
        import pandas as pd

        records = [edge_record(edge) for edge in exports.all_edges(self.answer)]
        return in_library(pd.DataFrame(records, columns=list(EDGE_COLUMNS)), self.settings.frames)

    @property
    def window_graph(self) -> pd.DataFrame:
        """The window graph: 1 where the cause of the row, at its lag, acts on the variable of the column."""
        return self._window(self.answer.graph.astype(int))

    @property
    def window_probabilities(self) -> pd.DataFrame:
        """Probability that the cause of the row, at its lag, acts on the variable of the column."""
        return self._window(self.answer.edge_probabilities)

    def _window(self, matrix: NDArray[Any]) -> Any:
        """A matrix [lag, j, k] with a row for each cause at each lag."""
        import pandas as pd

        names, library = list(self.names), self.settings.frames
        rows = pd.MultiIndex.from_tuples([(name, lag) for lag in range(len(matrix)) for name in names])
        frame = pd.DataFrame(matrix.reshape(len(rows), -1), index=rows.rename(["cause", "lag"]), columns=names)
        return frame if library in ("auto", "pandas") else in_library(frame.reset_index(), library)

    @property
    def graph(self) -> pd.DataFrame:
        """The summary graph: 1 where the variable of the row acts on that of the column at some lag."""
        return self._square(self.answer.summary.astype(int))

    @property
    def probabilities(self) -> pd.DataFrame:
        """Probability that the variable of the row acts on that of the column at some lag."""
        return self._square(self.answer.summary_probabilities)

    @property
    def confounding_probabilities(self) -> pd.DataFrame | None:
        """Probability that two variables share a hidden cause at lag 0; None if the network gives none."""
        found = self.answer.confounding_probabilities
        return None if found is None else self._square(found)

    def _square(self, matrix: NDArray[Any]) -> pd.DataFrame:
        import pandas as pd

        names = list(self.names)
        return in_library(pd.DataFrame(matrix, index=names, columns=names), self.settings.frames, "variable")

    def refine(self, /, **changes: Any) -> SeriesDiscovery:
        """Answer again under other knowledge, decoding or display; the network does not run again.

        The changes are those of `Discovery.refine`, without `directions`. Edges in knowledge may name lags: "x -> y at
        lag 0", "x -> y at lags 1 to 3", "x -> y except at lag 1".

        Examples
        --------
        >>> informed = found.refine(forbidden=["growth -> * at lag 0"])
        >>> float(informed.answer.edge_probabilities[0, 4].max())
        0.0
        """
        if "directions" in changes:
            raise ConfigurationError("For a series, directions is a setting of discover and Arrow, not of refine.")
        answer, settings = refined(self.answer, self.settings, changes)
        return replace(self, answer=answer, settings=settings)

    def sample(self, n_graphs: int = 1000, random_state: RandomState = 0) -> Bools:
        """Window graphs drawn from the distribution, which agree with the knowledge.  (n, L + 1, P, P)

        Examples
        --------
        >>> found.sample(20).shape
        (20, 3, 5, 5)
        """
        return self.answer.sample(check_count("n_graphs", n_graphs), random_generator(random_state))

    def second_opinion(self, methods: Sequence[str] | str | None = None) -> SecondOpinion:
        """Run PCMCI+ on the same series and compare: where it agrees with the answer, where not, and what it assumes.

        "pcmci+" is the only method for series. `pip install "causal-arrow[opinion]"` installs it.

        Examples
        --------
        >>> ("soil t-2", "growth") in found.second_opinion().agreed
        True
        """
        from causal_arrow.series._advice import opinions_on_series

        return opinions_on_series(self.answer, self.series, methods).in_frames_of(self.settings.frames)

    # Effects over time

    def response(
        self,
        cause: str,
        effect: str,
        steps: int = 10,
        *,
        kind: str = "pulse",
        n_graphs: int = 1000,
        random_state: RandomState = 0,
    ) -> Curve:
        """Estimate the change of one variable 0, 1, 2, ... steps after another was raised by one, averaged over graphs.

        Each sampled graph adjusts for its own causes of the cause. The 90% interval includes the uncertainty about the
        graph and the sampling error, which is robust against memory and clustered by unit in panels. With the `kind`
        "pulse" the cause is raised once and then follows its own course, with "step" it stays higher.

        Examples
        --------
        >>> curve = found.response("watering", "soil", steps=3)
        >>> curve.to_frame().shape
        (4, 4)
        """
        answer = self.answer
        j, k = answer.index_of(cause), answer.index_of(effect)
        check_choice("kind", kind, tuple(CHANGES))
        if not 0 <= steps <= 10_000:
            raise ConfigurationError(f"Expected steps to be a whole number from 0 to 10,000, got {steps!r}.")
        for name in (cause, effect):
            if not self._is_number(name):
                raise ConfigurationError(
                    f"Effects over time are between numbers, and {name!r} holds levels: make it numbers first."
                )
        random, n_graphs = np.random.default_rng(random_state), check_count("n_graphs", n_graphs)
        graphs = _in_levels(answer.sample(n_graphs, random), answer)
        curve = response(self._steps(k), graphs, j, k, steps, random, kind=kind)
        hidden = answer.confounding_probabilities
        if hidden is not None and round(shared := float(hidden[j, k]), 6) > answer.hidden_threshold:
            note = f"{cause} and {effect} probably share a hidden cause ({shared:.2f}), which no adjustment removes."
            curve = replace(curve, notes=(note, *curve.notes))
        return curve.in_frames_of(self.settings.frames)

    def responses(self, effect: str, steps: int = 10, *, kind: str = "pulse", n_graphs: int = 200) -> Curves:
        """The curves of all other variables on one, the largest effect first; variables with levels are left out.

        Examples
        --------
        >>> curves = found.responses("growth", steps=2, n_graphs=50)
        >>> len(curves.curves)
        4
        """
        self.answer.index_of(effect)
        causes = [name for name in self.names if name != effect and self._is_number(name)]
        spread = {name: float(np.nanstd(self.table.values[:, self.table.names.index(name)])) for name in causes}
        curves = [self.response(cause, effect, steps, kind=kind, n_graphs=n_graphs) for cause in causes]
        curves.sort(key=lambda each: -round(float(np.abs(each.estimate).max()) * spread[each.cause], 9))
        return Curves(tuple(curves)).in_frames_of(self.settings.frames)

    def _steps(self, effect: int) -> Steps:
        """The series as regressions read it; cells that experiments set are not outcomes."""
        answer, series = self.answer, self.series
        columns = [self.table.names.index(name) for name in answer.names]
        values = self.table.values[:, columns]  # a copy
        if self.table.intervened is not None:
            values[self.table.intervened[:, columns[effect]], effect] = np.nan
        unit = series.unit if series.units > 1 else None
        return Steps(values, series.tick, unit, series.environment, answer.prepared.get("season"), answer.names)

    def _is_number(self, name: str) -> bool:
        column = self.table.columns[self.table.names.index(name)]
        return column.kind == "number" or len(column.levels) == 2

    def next_experiment(
        self,
        target: str | tuple[str, str] | None = None,
        budget: int = 1,
        *,
        candidates: Sequence[str] | None = None,
        rows: int | None = None,
        n_graphs: int = 1000,
        random_state: RandomState = 0,
    ) -> ExperimentPlan:
        """Advise which variable to randomize at every step, or which hidden cause to measure, to learn most.

        The `target` is None for the whole window graph, or an outcome for its causes; `budget`, `candidates` and `rows`
        are those of `Discovery.next_experiment`, with steps for rows.

        Examples
        --------
        >>> plan = found.next_experiment(n_graphs=100)
        >>> list(plan.to_frame().columns)[:3]
        ['action', 'variable', 'gain']
        """
        from causal_arrow.series._advice import plan_for_series

        budget = check_count("budget", budget)
        if rows is not None:
            rows = check_count("rows, those of the experiment,", rows)
        graphs = self.sample(n_graphs, random_state)
        plan = plan_for_series(self.answer, self.series, graphs, target, budget, candidates, rows)
        return plan.in_frames_of(self.settings.frames)

    # Words, pictures, files

    def summary(self) -> str:
        """The edges with their lags, the order within a step, and what to be careful about, as text."""
        return summary.to_text(exports.summarize(self.answer))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        edges = counted(len(self.answer.edges), "edge")
        return f"<{type(self).__name__}: {edges} found in a series of {counted(len(self.names), 'variable')}>"

    def _repr_html_(self) -> str:
        from causal_arrow.series.pictures import as_svg

        return summary.to_html(exports.summarize(self.answer), as_svg(self.answer, adapts=False))

    def draw(self, *paths: str | Path, what: str = "summary", ax: Axes | None = None) -> Axes | None:
        """Draw the summary graph with lags on its edges, or the window graph in columns of time (`what="window"`).

        The files are written by their endings: .png, .svg, .pdf; without any, axes are returned.

        Examples
        --------
        >>> found.draw("window.png", what="window")
        """
        from causal_arrow.series.pictures import draw, save

        if not paths:
            return draw(self.answer, what=what, ax=ax)
        save(self.answer, *paths, what=what)
        return None

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON can hold it; `SeriesAnswer.from_dict` reads it."""
        return self.answer.to_dict()

    to_json = of_answer(exports.to_json)
    to_networkx = of_answer(exports.to_networkx)
    to_graphml = of_answer(exports.to_graphml)
    to_dot = of_answer(exports.to_dot)
    to_tigramite = of_answer(exports.to_tigramite)
    to_statsmodels = of_answer(exports.to_statsmodels)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the answer and the series to a .causal file, which `SeriesDiscovery.load` reads.

        Examples
        --------
        >>> found.save("greenhouse.causal")
        >>> again = SeriesDiscovery.load("greenhouse.causal")
        >>> again.answer.edges == found.answer.edges
        True
        """
        exports.save(self.answer, self.series, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | Path) -> SeriesDiscovery:
        """Read a file that `save` wrote; every question can be asked again."""
        answer, series = exports.load(Path(path))
        report = TableReport(series.table.observations, series.table.columns, answer.findings)
        options = {name: getattr(answer, name) for name in REFINABLE if name != "directions"}
        return cls(series, report, answer, None, Settings(**options, series=SeriesOptions(lags=answer.lags)))


def _in_levels(graphs: Bools, answer: SeriesAnswer) -> Bools:
    """Graphs over levels, from those of changes: a change is a difference of two levels, so that the level of a cause
    that was differenced is a cause at the next lag too."""
    changing = [answer.names.index(name) for name in answer.prepared.get("difference", ()) if name in answer.names]
    if not changing:
        return graphs
    more = np.zeros((len(graphs), graphs.shape[1] + 1, *graphs.shape[2:]), dtype=bool)
    more[:, :-1] = graphs
    more[:, 1:, changing] |= graphs[:, :, changing]
    more[:, 1, changing, changing] = True
    return more


def discover_series(
    source: Any,
    settings: Settings,
    *,
    before: Callable[[Workload], None] | None = None,
    progress: bool | None = None,
) -> SeriesDiscovery:
    """The discovery for a series, with the settings of `discover`."""
    with progress_bar(progress) as tell:
        settings = settings.for_source(source)
        network = ready_model(settings.model, settings.device, settings.precision)
        able = abilities(settings.model, network)
        series = read_series(source, settings.series, settings.reading, able, tell)
        report = inspect_table(series.table, training_range(settings.model), able)
        answer, report = answer_series(network, series, report, settings, before=before, progress=tell)
    return SeriesDiscovery(series, report, answer, network, settings)
