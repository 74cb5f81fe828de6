"""Discovery: an answer with its table, report, settings and network. Every question about the graph is a method of it.

>>> from causal_arrow import discover, load_example
>>> found = discover(load_example("hospital"))
>>> graph = found.graph  # 1 where the row causes the column
>>> informed = found.refine(roots=["age"])  # the network does not run again
"""

# K graphs, P variables

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from causal_arrow import storage
from causal_arrow.discovery import exports, inference, pictures, saved, summary, uncertainty
from causal_arrow.discovery.answer import Answer, edge_record
from causal_arrow.discovery.settings import (
    REFINABLE,
    Settings,
    as_knowledge,
    check_count,
    refuse_former_names,
    statements,
)
from causal_arrow.errors import ArrowError, ConfigurationError, Remedy, warn
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.inputs import checked
from causal_arrow.network import Network
from causal_arrow.tables.frames import in_library
from causal_arrow.tables.options import check_names
from causal_arrow.tables.report import TableReport, inspect_table
from causal_arrow.tables.table import Bools, Table
from causal_arrow.text import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from causal_arrow.discovery.effects.effect import Effect, Effects
    from causal_arrow.discovery.effects.experiments import ExperimentPlan
    from causal_arrow.discovery.effects.falsification import Falsification
    from causal_arrow.discovery.second_opinion import SecondOpinion

RandomState = int | np.random.Generator | np.random.RandomState | None
Given = TypeVar("Given")

MAX_KEPT_BYTES = 2**28  # of drawn graphs that are kept for the next question


def of_answer(export: Callable[[Any], Given]) -> Callable[[Any], Given]:
    """The method that hands the answer to an export; it has the name and the documentation of the export."""

    @wraps(export)
    def method(self: Any, /) -> Given:
        return export(self.answer)

    del method.__wrapped__  # the signature is its own
    return method


@checked
class Discovery:
    """The graph that was found in a table, and everything that can be asked about it.

    `discover` makes it; `arrow.discovery_` is the one behind a fitted `Arrow`.

    Attributes
    ----------
    answer : Answer
        The graph and all probabilities, without the data.
    settings : Settings
        How the answer was found, what was known, and which labels of rows were given with the table.

    Notes
    -----
    Without a table, questions about the data are refused. A missing report is made, and a missing network loaded by
    its name, when a question needs it.

    Data frames, also those of effects, plans and tests, are of the library that the table came in, or of the setting
    `frames`. In libraries without an index, the labels of rows are the first column, called `variable`.

    Questions about many possible graphs draw `n_graphs` of them from the network's distribution. `random_state` is a
    seed or a numpy generator. With a seed the same graphs are drawn every time, and only once for several questions;
    with None others every time. Pictures are drawn on the matplotlib axes `ax`, or in a new figure of a fitting size.

    Examples
    --------
    The examples of the methods below continue this one.

    >>> from causal_arrow import Settings, discover, load_example
    >>> table = load_example("hospital")  # 800 patients; some cells are missing
    >>> known = {"roots": ["age", "smoker", "ward"]}
    >>> found = discover(table, Settings(knowledge=known))
    >>> found.table.observations, found.answer.model
    (800, 'arrow-base')
    """

    def __init__(
        self,
        answer: Answer,
        table: Table | None = None,
        report: TableReport | None = None,
        settings: Settings | None = None,
        network: Network | None = None,
    ) -> None:
        self.answer, self.settings = answer, settings or Settings()
        self._table, self._report, self._network = table, report, network
        self._model_is_known = True
        self._drawn: dict[tuple[int, int], tuple[Bools, np.random.Generator]] = {}
        self._tested: dict[bool, Falsification | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickling: without drawn graphs, nor a network that can be loaded by its name."""
        named = isinstance(self.settings.model, str | Path)
        return {**vars(self), "_drawn": {}, "_network": None if named else self._network}

    # What it is about

    @property
    def table(self) -> Table:
        """The table as it was read; a ConfigurationError if the discovery was saved without it."""
        if self._table is None:
            raise ConfigurationError(
                "This question needs the table, and the discovery was saved without it: open the table itself, or save "
                "the discovery with its table."
            )
        return self._table

    @property
    def report(self) -> TableReport:
        """Findings about the table, and what they mean for trust in the answer."""
        if self._report is None:
            self._report = inspect_table(self.table)
        return self._report

    @property
    def network(self) -> Network:
        """The network that read the table; that of a loaded discovery is loaded by its name."""
        if self._network is None:
            settings = self.settings
            if not self._model_is_known:
                raise ConfigurationError(
                    "This question needs the network, which was an object when the discovery was saved: load the file "
                    "with Discovery.load(path, model=network)."
                )
            try:
                self._network = inference.ready_model(settings.model, settings.device, settings.precision)
            except ArrowError as error:
                raise ConfigurationError(
                    f"This question needs the network {str(settings.model)!r}, which cannot be loaded: {error.message}"
                ) from error
        return self._network

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables.  (P,)"""
        return self.answer.names

    # The graph, as frames of the library that the table came in

    @property
    def graph(self) -> pd.DataFrame:
        """The causal graph: 1 where the variable of the row is a direct cause of the variable of the column.

        Examples
        --------
        >>> found.graph.loc[["inflammation", "drug"], ["drug", "day3"]]
                      drug  day3
        inflammation     1     1
        drug             0     1
        """
        return self._square(self.answer.adjacency.astype(int))

    @property
    def edges(self) -> pd.DataFrame:
        """The edges of the graph as a data frame, the most probable first.

        One row per edge, with the fields of `DirectedEdge`. Pairs that probably share a hidden cause are in
        `answer.hidden_causes`.
        """
        import pandas as pd

        records = [edge_record(edge) for edge in self.answer.edges]
        return self._framed(pd.DataFrame(records, columns=list(exports.EDGE_COLUMNS)))

    @property
    def probabilities(self) -> pd.DataFrame:
        """Probability that the variable of the row is a direct cause of the variable of the column."""
        return self._square(self.answer.edge_probabilities)

    @property
    def skeleton_probabilities(self) -> pd.DataFrame:
        """Probability that two variables are adjacent, in whichever direction."""
        return self._square(self.answer.skeleton_probabilities)

    @property
    def confounding_probabilities(self) -> pd.DataFrame:
        """Probability that two variables share a cause that is not in the table.

        A ConfigurationError for a model without such probabilities, such as arrow-strict.
        """
        probabilities = self.answer.confounding_probabilities
        if probabilities is None:
            raise ConfigurationError(f"The model {self.answer.model} gives no probabilities of hidden common causes.")
        return self._square(probabilities)

    @property
    def order_scores(self) -> pd.Series:
        """A score for each variable: j comes before k in the causal order with log-odds score_j − score_k."""
        import pandas as pd

        scores = pd.Series(self.answer.order_scores, index=list(self.names), name="order_score")
        return scores if self.settings.frames in ("auto", "pandas") else self._framed(scores.to_frame(), "variable")

    @property
    def cpdag(self) -> pd.DataFrame:
        """The Markov equivalence class of the graph: an edge whose direction is not compelled is marked both ways."""
        return self._square(self.answer.cpdag.astype(int))

    # What is known

    def refine(self, /, **changes: Any) -> Discovery:
        """Answer again under other knowledge, decoding or display; the network does not run again.

        This discovery stays as it is, so that several refinements can be compared. The changes are `decode`,
        `threshold`, `directions`, `hidden` and `hidden_threshold`, as in `Arrow`; `knowledge`, which replaces what was
        known (`Knowledge()` takes all of it away); and arguments of `Knowledge`, such as `roots` or `tiers`, which add
        to it.

        Examples
        --------
        >>> careful = found.refine(threshold=0.99)
        >>> len(careful.to_networkx().edges) < len(found.to_networkx().edges)
        True
        >>> found.refine(leaves=["drug"]).path_probability("drug", "stay")
        0.0
        """
        return self.with_answer(*refined(self.answer, self.settings, changes))

    def with_answer(self, answer: Answer, settings: Settings | None = None) -> Discovery:
        """The discovery with another answer about the same table, by the same network."""
        other = copy.copy(self)
        other.answer, other.settings = answer, settings or self.settings
        other._drawn, other._tested = {}, {}
        return other

    # Many possible graphs

    def sample(self, n_graphs: int = 1000, random_state: RandomState = 0) -> Bools:
        """Draw causal graphs from the network's distribution, none of which contradicts the knowledge.  (K, P, P)"""
        return np.array(self._draw(n_graphs, random_state)[0])

    def path_probability(self, cause: str, effect: str, n_graphs: int = 1000, random_state: RandomState = 0) -> float:
        """Probability of a directed path from cause to effect: its share among drawn graphs.

        Hidden common causes are not paths. Where variables along the way probably share one, an ArrowWarning says so.
        """
        ends = self.answer.index_of(cause), self.answer.index_of(effect)
        if ends[0] == ends[1]:
            raise ConfigurationError(f"Expected two different variables as cause and effect, got {cause!r} twice.")
        graphs, _ = self._draw(n_graphs, random_state)
        _warn_if(uncertainty.hidden_causes_on_the_way(self.answer, graphs, *ends))
        return float(uncertainty.ancestor_frequencies(graphs)[ends])

    def ancestor_probabilities(self, n_graphs: int = 1000, random_state: RandomState = 0) -> pd.DataFrame:
        """Probability that the variable of the row is a direct or indirect cause of the variable of the column.

        Hidden common causes are not paths. Where some variables probably share one, an ArrowWarning says so.
        """
        graphs, _ = self._draw(n_graphs, random_state)
        _warn_if(uncertainty.hidden_causes_sentence(self.answer.hidden_causes))
        return self._square(uncertainty.ancestor_frequencies(graphs))

    def parent_set_frequencies(
        self, variable: str, n_graphs: int = 1000, random_state: RandomState = 0
    ) -> pd.DataFrame:
        """Count the sets of direct causes of a variable in drawn graphs: `parents` and `frequency`.

        Edges of the skeleton are drawn independently of each other. So these sets cannot express that one of two
        variables is a cause but not both.
        """
        index = self.answer.index_of(variable)
        graphs, _ = self._draw(n_graphs, random_state)
        return self._sets(uncertainty.parent_sets(graphs, index), "parents", len(graphs))

    def adjustment_set_frequencies(
        self, treatment: str, outcome: str, kind: str = "optimal", n_graphs: int = 1000, random_state: RandomState = 0
    ) -> pd.DataFrame:
        """Count the adjustment sets for the effect of treatment on outcome in drawn graphs, the most frequent first.

        The set None stands for graphs in which the treatment has no effect on the outcome. Of `kind` "optimal" is the
        valid set with the smallest variance in linear models, of "parents" the direct causes of the treatment. Hidden
        common causes are not adjusted for; where variables on the way probably share one, an ArrowWarning says so.

        Examples
        --------
        >>> sets = found.adjustment_set_frequencies("drug", "stay", n_graphs=100)
        >>> sets["adjustment_set"][0]
        ('ward', 'inflammation')
        """
        ends = self.answer.index_of(treatment), self.answer.index_of(outcome)
        graphs, _ = self._draw(n_graphs, random_state)
        counts = uncertainty.adjustment_sets(graphs, *ends, kind=kind)
        _warn_if(uncertainty.hidden_causes_on_the_way(self.answer, graphs, *ends))
        return self._sets(counts, "adjustment_set", len(graphs))

    def stability(
        self, /, n_resamples: int = 100, random_state: RandomState = 0, progress: bool | None = None, **workers: Any
    ) -> uncertainty.EdgeStability:
        """Count each edge over tables drawn from the observations with replacement (bootstrap).

        `backend`, `jobs` and `cluster` are those of `discover_many`: with jobs=4, four processes share the work, and
        the result is the same.
        """
        count, random = check_count("n_resamples", n_resamples), random_generator(random_state)
        parts = self.answer, self.network, self.table
        found = uncertainty.bootstrap(*parts, count, random, self.settings, progress=progress, **workers)
        return found.in_frames_of(self.settings.frames)

    def resampled(
        self, n_resamples: int = 100, random_state: RandomState = 0, passes: int = 1
    ) -> Iterator[GraphDistribution]:
        """Read resampled tables one after the other: `stability` for programs that show progress or may stop.

        The network runs as the distributions are asked for; `edge_stability` counts over them.
        """
        count, random = check_count("n_resamples", n_resamples), random_generator(random_state)
        network, chunk = self.network, self.settings.observations_per_chunk
        arranged = uncertainty.as_answered(self.answer, self.table, self.settings.max_rows)
        draws = inference.resampled_rows(network, arranged, count, random, check_count("passes", passes))
        return (found for rows in draws for found in inference.infer_rows(network, arranged, rows, chunk))

    # Effects and experiments

    def effect(
        self,
        treatment: str,
        outcome: str,
        *,
        between: tuple[Any, Any] | None = None,
        level: str | None = None,
        estimator: str = "flexible",
        adjustment: str = "optimal",
        order: str = "assumed",
        adjust_for: Sequence[str] | str | None = None,
        randomized: bool | str | Sequence[str] = False,
        randomized_rows: str | None = None,
        strata: Sequence[str] = (),
        cluster: str | None = None,
        instrument: str | None = None,
        split: bool = False,
        n_graphs: int = 1000,
        random_state: RandomState = 0,
    ) -> Effect:
        """Estimate what happens to the outcome when the treatment changes, averaged over drawn graphs.

        Three answers: the size with a 90% interval, given that the treatment comes before the outcome; the share of
        graphs with a causal path; and a test of dependence after adjustment. Each graph is used with its own valid
        adjustment set, so the interval covers both the uncertainty about the graph and the sampling error.
        `print(effect)` puts them into words.

        Parameters
        ----------
        between
            Two values or levels of the treatment, from and to; by default the effect is per unit.
        level
            The level whose share is the outcome, for an outcome with levels.
        estimator
            "flexible" assumes no straight lines: cross-fitted, doubly robust for a yes or no treatment and partially
            linear for a number, for the sets that most graphs ask for. "linear" is least squares, "curved" the average
            slope of cubic curves.
        adjustment
            "optimal" or "parents", as in `adjustment_set_frequencies`.
        order
            "assumed" takes the treatment to come before the outcome, "free" leaves it to the graphs.
        adjust_for
            Columns to adjust for instead of the sets of the graphs; "earlier" for all that the knowledge puts before
            the treatment.
        randomized
            True, or the name of the treatment, if chance decided on it: the effect is that of a trial, whatever
            the graph, and `adjust_for` only makes it more precise.
        randomized_rows
            A yes or no column that marks the rows in which it was randomized.
        strata
            Columns within whose levels it was randomized.
        instrument
            A column that affects the outcome only through the treatment and shares no cause with it.
        split
            Whether the graphs come from one half of the rows and the estimates from the other, then swapped; the
            network runs twice.

        Examples
        --------
        >>> effect = found.effect("drug", "stay")
        >>> low, high = effect.interval
        >>> low < -1.8 < high  # the true effect is −1.8 days
        True
        """
        from causal_arrow.discovery.effects.estimation import estimate_effect, halves
        from causal_arrow.discovery.effects.questions import EffectQuestion

        declared = [randomized] if isinstance(randomized, str) else [] if isinstance(randomized, bool) else randomized
        for name in declared:
            self.answer.index_of(name)  # a name that is misspelled would make a trial an observational study
        by_chance = randomized is True or treatment in declared
        design = (by_chance, randomized_rows, strata, cluster, instrument)
        question = EffectQuestion(estimator, adjustment, level, order, adjust_for, *design, between)
        asked: dict[str, Any] = {"question": question, "count": check_count("n_graphs", n_graphs)}
        table = self.table
        if not split:
            drawn = (None, random_generator(random_state)) if by_chance else self._draw(n_graphs, random_state)
            asked["graphs"], asked["random"] = drawn
            found = estimate_effect(self.answer, table, treatment, outcome, **asked)
        elif instrument is not None:
            raise ConfigurationError("An instrument's estimate uses no graph, so there is no use in splitting rows.")
        else:
            random = random_generator(random_state)
            both = [table.only(rows) for rows in halves(table, cluster, random)]
            answers = [uncertainty.answer_of_rows(self.answer, self.network, half, self.settings) for half in both]
            turned = list(zip(answers, both[::-1], strict=True))
            asked |= {"count": asked["count"] // 2, "random": random}
            first, second = (estimate_effect(*part, treatment, outcome, **asked) for part in turned)
            found = first.averaged_with(second)
        return found.in_frames_of(self.settings.frames)

    def effects(
        self,
        outcome: str,
        *,
        level: str | None = None,
        estimator: str = "linear",
        adjustment: str = "optimal",
        cluster: str | None = None,
        n_graphs: int = 1000,
        random_state: RandomState = 0,
    ) -> Effects:
        """Estimate the effects of all other variables on the outcome, the largest first, with the options of `effect`.

        The graphs alone decide which variables come before the outcome.
        """
        from causal_arrow.discovery.effects.estimation import estimate_effects
        from causal_arrow.discovery.effects.questions import EffectQuestion

        question = EffectQuestion(estimator, adjustment, level, cluster=cluster)
        table = self.table
        graphs, random = self._draw(n_graphs, random_state)
        found = estimate_effects(self.answer, table, outcome, question=question, random=random, graphs=graphs)
        return found.in_frames_of(self.settings.frames)

    def next_experiment(
        self,
        target: str | tuple[str, str] | None = None,
        budget: int = 1,
        *,
        candidates: Sequence[str] | None = None,
        not_settable: Sequence[str] = (),
        rows: int | None = None,
        n_graphs: int = 1000,
        random_state: RandomState = 0,
    ) -> ExperimentPlan:
        """Advise which variable to intervene on next, or which hidden cause to measure, to learn most.

        The best experiments come first; `print(plan)` puts them into words. `budget` of them are carried out together.

        Parameters
        ----------
        target
            What the uncertainty is about: None for the whole graph, an outcome for its causes, or a pair (treatment,
            outcome) for that effect.
        candidates
            The variables that can be intervened on; by default all but roots and those that experiments have
            intervened on already.
        not_settable
            Variables that nobody can intervene on.
        rows
            How many rows each experiment will have; by default as many as the table.

        Examples
        --------
        >>> plan = found.next_experiment(("drug", "stay"), n_graphs=200)
        >>> print(plan.best)
        randomize drug
        """
        from causal_arrow.discovery.effects.experiments import plan_experiments

        budget = check_count("budget", budget)
        if rows is not None:
            rows = check_count("rows, those of the experiment,", rows)
        table = self.table
        graphs, random = self._draw(n_graphs, random_state)
        asked: dict[str, Any] = {"target": target, "budget": budget, "candidates": candidates, "rows": rows}
        plan = plan_experiments(self.answer, table, graphs, not_settable=not_settable, random=random, **asked)
        return plan.in_frames_of(self.settings.frames)

    def learn_from_experiment(
        self, variable: str, rows: Any, n_graphs: int = 1000, random_state: RandomState = 0
    ) -> Discovery:
        """Refine the discovery by the outcome of an experiment; the network does not run again.

        Edges that the experiment makes improbable are forbidden, in addition to what was known. A network that reads
        experiments does better with all observations in one table: see the `interventions` of `discover`.

        `rows` are the observations of the experiment, with the columns of the table, read in the same way. The column
        that names environments may be missing.

        Examples
        --------
        >>> trial = load_example("hospital-trial")  # a coin decided on the drug
        >>> after = found.learn_from_experiment("drug", trial)
        >>> after.path_probability("stay", "drug")
        0.0
        """
        from causal_arrow.discovery.effects.experiments import knowledge_from

        self.answer.index_of(variable)
        read = self._read_like(rows, needs_environments=False)
        graphs, _ = self._draw(n_graphs, random_state)
        return self.refine(knowledge=knowledge_from(self.answer, self.table, read, variable, graphs))

    def falsify(self, table: Any = None, permutations: int = 100, random_state: RandomState = 0) -> Falsification:
        """Test whether the graph is compatible with a table, by the independences that it implies.

        The share of violated independences is compared with that of graphs whose names are shuffled. By default the
        table is the one that was read. Another one has the same columns, is read in the same way, and needs a column
        "environment" if environments were given with the first; rows that the network has not seen test more strictly.

        Examples
        --------
        >>> found.falsify(permutations=50).falsified
        False
        """
        from causal_arrow.discovery.effects.falsification import falsify, on_scale_of

        answer, read = self.answer, self.table if table is None else self._read_like(table)
        count, random = check_count("permutations", permutations), random_generator(random_state)
        found = falsify(answer.adjacency, on_scale_of(answer, read), count, random, answer.suspected)
        return found.in_frames_of(self.settings.frames)

    def compatibility(self, thorough: bool = False) -> Falsification | None:
        """Test quickly whether the graph is compatible with its table, as the summary does; it is tested only once.

        None where there is nothing to test with, or too many variables for a quick test.
        """
        from causal_arrow.discovery.effects.falsification import compatibility

        if thorough not in self._tested:
            found = None if self._table is None else compatibility(self.answer, self._table, thorough)
            self._tested[thorough] = found and found.in_frames_of(self.settings.frames)
        return self._tested[thorough]

    def second_opinion(self, methods: Sequence[str] | str | None = None) -> SecondOpinion:
        """Ask classical methods about the same table: where they agree with the answer, where not, what each assumes.

        `methods` are some of "flop", "boss" and "pc"; by default those that are installed and fast enough for this many
        columns. `pip install "causal-arrow[opinion]"` brings all. They read the table on the scales that the network
        read, and are not given your knowledge.
        """
        from causal_arrow.discovery.second_opinion import opinions_on_table

        return opinions_on_table(self.answer, self.table, methods).in_frames_of(self.settings.frames)

    # In words and pictures

    def summary(self) -> str:
        """The answer as plain text: edges, order, whether the data contradict the graph, and warnings."""
        return summary.to_text(summary.summarize(self.answer, self.compatibility()))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        edges = counted(len(self.answer.edges), "edge")
        return f"<{type(self).__name__}: {edges} found in {summary.title(self.answer)}>"

    def _repr_html_(self) -> str:
        """The summary with a picture, for notebooks."""
        picture = summary.picture_of(self.answer)
        return summary.to_html(summary.summarize(self.answer, self.compatibility()), picture)

    def draw(self, *paths: str | Path) -> None:
        """Write a picture of the graph to files, by their endings: .png, .svg or .pdf."""
        pictures.save_graph(self.answer, *paths)

    def plot(self, /, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the graph; `options` are those of `draw_graph`."""
        return pictures.draw_graph(self.answer, ax=ax, **options)

    def plot_comparison(
        self, truth: Iterable[str | tuple[str, str]], ax: Axes | None = None, title: str | None = None
    ) -> Axes:
        """Draw the graph next to a known truth: which edges are right, reversed, missing or extra.

        The true edges are pairs of a cause and its effect, or text such as "smoking -> cancer". By these causes are on
        top, so that right edges point down and reversed ones up.

        Examples
        --------
        >>> truth = table.attrs["edges"]
        >>> found.plot_comparison(truth).figure.savefig("comparison.svg")
        """
        return pictures.draw_comparison(self.answer, truth, ax, title=title)

    def plot_probabilities(self, ax: Axes | None = None) -> Axes:
        """Draw a heat map of the edge probabilities, along the causal order."""
        return pictures.draw_probabilities(self.answer, ax=ax)

    # Files and other packages

    def save(self, path: str | Path, *, table: bool = True, overwrite: bool = False) -> None:
        """Save everything to one .causal file that `Discovery.load` reads.

        Without the table, questions about the data cannot be answered later.
        """
        saved.write(Path(path), self.answer, self.settings, self.report, self.table if table else None, overwrite)

    @classmethod
    def load(cls, path: str | Path, *, model: str | Path | Network | None = None) -> Discovery:
        """Read a file that `save` wrote. A damaged file, or any other, is a ConfigurationError.

        `model` is the network for `stability`; by default the one that read the table, loaded by its name.

        Examples
        --------
        >>> from causal_arrow import Discovery
        >>> found.save("hospital.causal")
        >>> again = Discovery.load("hospital.causal")
        >>> again.effect("drug", "stay").median == found.effect("drug", "stay").median
        True
        """
        parts = saved.read(Path(path))
        settings = parts.settings if model is None else parts.settings.changed(model=model)
        discovery = cls(parts.answer, parts.table, parts.report, settings)
        discovery._model_is_known = parts.names_model or model is not None
        return discovery

    to_json = of_answer(exports.to_json)
    to_networkx = of_answer(exports.to_networkx)
    to_dot = of_answer(exports.to_dot)
    to_gml = of_answer(exports.to_gml)
    to_graphml = of_answer(exports.to_graphml)
    to_dagitty = of_answer(exports.to_dagitty)
    to_dowhy = of_answer(exports.to_dowhy)
    to_pgmpy = of_answer(exports.to_pgmpy)
    to_causallearn = of_answer(exports.to_causallearn)
    to_lingam = of_answer(exports.to_lingam)

    # Inside

    def _draw(self, n_graphs: int, random_state: RandomState) -> tuple[Bools, np.random.Generator]:
        """Graphs (K, P, P), and the generator as it is after them; those of the latest seed are drawn once."""
        n_graphs = check_count("n_graphs", n_graphs)
        _check_room_for_graphs(n_graphs, len(self.answer.names))
        random = random_generator(random_state)
        seed = int(random_state) if isinstance(random_state, numbers.Integral) else None
        if seed is not None and (kept := self._drawn.get((n_graphs, seed))):
            return kept[0], copy.deepcopy(kept[1])
        graphs = self.answer.sample(n_graphs, random).graphs
        graphs.setflags(write=False)
        if seed is not None and graphs.nbytes <= MAX_KEPT_BYTES:
            self._drawn = {(n_graphs, seed): (graphs, copy.deepcopy(random))}
        return graphs, random

    def _read_like(self, rows: Any, needs_environments: bool = True) -> Table:
        """Further rows, read as the table was."""
        from causal_arrow.tables.reading import read_like

        reading = self.settings.reading
        labels = {name: getattr(reading, name) for name in ("interventions", "environments")}
        labels = {name: value for name, value in labels.items() if value is not None}
        return read_like(self.table, rows, reading.missing, labels, needs_environments)

    def _square(self, matrix: NDArray[Any]) -> pd.DataFrame:
        import pandas as pd

        names = list(self.names)
        frame = pd.DataFrame(np.array(matrix), index=names, columns=names)  # a copy, which the caller may change
        return self._framed(frame, "variable")

    def _sets(self, counts: Mapping[Any, int], label: str, n_graphs: int) -> pd.DataFrame:
        import pandas as pd

        ordered = sorted(counts.items(), key=lambda entry: (-entry[1], str(entry[0])))
        sets = [None if members is None else tuple(self.names[member] for member in members) for members, _ in ordered]
        return self._framed(pd.DataFrame({label: sets, "frequency": [count / n_graphs for _, count in ordered]}))

    def _framed(self, frame: pd.DataFrame, rows: str | None = None) -> Any:
        """The frame in the library of the settings; without an index there, `rows` is the column of row labels."""
        return in_library(frame, self.settings.frames, rows)


def refined(answer: Any, settings: Settings, changes: Mapping[str, Any]) -> tuple[Any, Settings]:
    """An answer about a table or a series, and its settings, with other knowledge, decoding or display."""
    refuse_former_names(changes)
    check_names(changes, [*REFINABLE, *statements()])
    given = {name: value for name, value in changes.items() if value is not None}
    if given.keys() & {"knowledge", *statements()}:
        given["knowledge"] = as_knowledge(given.get("knowledge", answer.knowledge))
    settings = settings.changed(**given)
    return answer.refine(**{name: getattr(settings, name) for name in REFINABLE if name in given}), settings


def _warn_if(sentence: str | None) -> None:
    if sentence is not None:
        warn(sentence)


def _check_room_for_graphs(n_graphs: int, variables: int) -> None:
    """ConfigurationError if so many drawn graphs do not fit into memory."""
    size, free = 2 * n_graphs * variables**2, storage.free_memory()
    if free is not None and size > free:
        raise ConfigurationError(
            f"{counted(n_graphs, 'graph')} of {counted(variables, 'variable')} take {storage.in_words(size)} of "
            f"memory, and {storage.in_words(free)} are free.",
            [Remedy("graphs")],
        )


@checked
def random_generator(random_state: RandomState) -> np.random.Generator:
    """The generator that a user of scikit-learn means by a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)
