"""Arrow: a table in, a causal graph out, in the manner of scikit-learn.

>>> from causal_arrow import Arrow, load_example
>>> arrow = Arrow().fit(load_example("hospital"))
>>> graph = arrow.adjacency_matrix_  # 1 where the row causes the column
>>> probabilities = arrow.edge_probabilities_  # how probable each edge is
>>> informed = arrow.refine(knowledge={"roots": ["age"]}).causal_graph_
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from causal_arrow.discovery import exports, inference, summary, uncertainty
from causal_arrow.discovery.answer import Answer, DirectedEdge, HiddenCause, edge_record
from causal_arrow.discovery.pipeline import KnowledgeSource, Settings, as_knowledge, check_count, discover, read_for
from causal_arrow.errors import ArrowWarning, ConfigurationError, TableError
from causal_arrow.network.bundled import DEFAULT_MODEL
from causal_arrow.network.protocol import Network
from causal_arrow.tables.report import TableReport
from causal_arrow.tables.table import Table

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes

    from causal_arrow.discovery.effects.effect import Effect, Effects
    from causal_arrow.discovery.effects.experiments import ExperimentPlan
    from causal_arrow.discovery.effects.falsification import Falsification

MAX_SEED = 2**63 - 1
RandomState = int | np.random.Generator | np.random.RandomState | None


class Arrow(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Causal discovery with a pretrained network.

    Parameters
    ----------
    model
        The name of a bundled model, a folder or .safetensors file of weights, an ArrowFM checkpoint, or a network that
        `load_model` returned. The default, "arrow-base", reads every table.
    device
        "auto" and "cpu" are the processor; "cuda" and "cuda:1" need causal-arrow-lab.
    decode
        How to take one graph from the distribution over graphs. "map": the most probable skeleton and order, as in the
        paper. "shd": fewest expected mistakes. "f1": largest expected F1, which shows more edges where the network is
        unsure.
    threshold
        For "map": edges are shown when the two variables are adjacent with more than this probability.
    knowledge
        What is already known: a `Knowledge`, a mapping of its arguments, a TOML or JSON file, or pgmpy's
        ExpertKnowledge. No graph, fitted or sampled, contradicts it.
    scale
        How to read skewed columns of one sign. "given" reads them as they are, "log" on a log scale. "auto" tries both
        and keeps the logarithms unless the network is clearly surer of its graph without them.
    directions
        Which probabilities directions have: "tempered" are those that real tables bear out, "network" the network's
        own.
    missing
        What to do about missing values. "model" leaves them to the network, which sees what is missing; "error" refuses
        them, "drop" leaves out incomplete observations, "impute" fills them in. "auto" is "model" where the network can
        read missing values, else "error".
    kinds
        What columns hold, where that should not be detected: {"zip": "category"}; one of "number", "binary", "ordered",
        "category".
    ordered
        Columns whose levels have an order, the smallest first: {"size": ["small", "medium", "large"]}.
    max_rows
        How many rows of a long table the network reads one by one, 20,000 by default: with more, answers hardly
        improve. They are drawn evenly; statistics of pairs are always those of all rows.
    observations_per_chunk
        How many observations to read at a time. By default chosen so that memory stays bounded; the answer is the same
        up to rounding.
    precision
        Of the network's matrix products: "auto" and "float32", or "bfloat16" on a GPU. Probabilities in bfloat16 are
        typically within 0.0001, and nearly always within 0.01, of those in float32.

    Attributes
    ----------
    answer_ : Answer
        Everything below in one object.
    report_ : TableReport
        What was noticed about the table, and what it means for trust in the answer.
    table_ : Table
        The table as it was read, from which effects are estimated.
    n_features_in_ : int
        Number of variables.
    feature_names_in_ : ndarray of str
        Their names, where the table has names.

    Notes
    -----
    The same table gives the same answer on every run. Shuffling its observations changes nothing, and shuffling its
    columns shuffles the answer. `fit` never changes the table.

    Examples
    --------
    The examples of the methods below continue this one.

    >>> from causal_arrow import Arrow, load_example
    >>> table = load_example("hospital")  # 800 patients; some cells are missing
    >>> arrow = Arrow(knowledge={"roots": ["age", "smoker", "ward"]})
    >>> arrow = arrow.fit(table)
    >>> len(arrow.edges_)
    7
    """

    answer_: Answer
    report_: TableReport
    n_features_in_: int
    table_: Table
    _tested_: tuple[Answer, Falsification | None] | None = None

    def __init__(
        self,
        model: str | Path | Network = DEFAULT_MODEL,
        *,
        device: str = "auto",
        decode: str = "map",
        threshold: float = 0.5,
        knowledge: KnowledgeSource = None,
        scale: str = "auto",
        directions: str = "network",
        missing: str = "auto",
        kinds: Mapping[str, str] | None = None,
        ordered: Mapping[str, Sequence[str]] | None = None,
        max_rows: int | None = None,
        observations_per_chunk: int | None = None,
        precision: str = "auto",
    ) -> None:
        self.model = model
        self.device = device
        self.decode = decode
        self.threshold = threshold
        self.knowledge = knowledge
        self.scale = scale
        self.directions = directions
        self.missing = missing
        self.kinds = kinds
        self.ordered = ordered
        self.max_rows = max_rows
        self.observations_per_chunk = observations_per_chunk
        self.precision = precision

    # Fitting

    def fit(self, table: Any, y: Any = None, *, interventions: Any = None, environments: Any = None) -> Arrow:
        """This estimator, fitted: the causal graph of a table is discovered.

        Parameters
        ----------
        table
            Rows are observations, columns are variables: a pandas or polars data frame, a numpy array, the path of a
            file, or anything else that `read_table` takes.
        y
            Ignored with an ArrowWarning: an outcome belongs into the table, as a column.
        interventions
            What experiments have set: for each observation the name of a variable, several separated by `;`, nothing
            for none; or true and false for each cell; or the name of a column with such labels, which is then no
            variable.
        environments
            Where or when each observation was made, if it is not known what differs there: a label for each, or the
            name of a column. It is read as a category that nothing in the table causes.

        Returns
        -------
        Arrow
            The estimator itself.

        Warns
        -----
        ArrowWarning
            For whatever about the table should make a reader careful.

        Examples
        --------
        >>> Arrow(model="arrow-base").fit(table).answer_.observations
        800
        """
        _refuse_sparse_and_complex(table)
        if y is not None:
            warnings.warn("y is ignored: put the outcome into the table, as a column.", ArrowWarning, stacklevel=2)
        beside = {"interventions": interventions, "environments": environments}
        beside = {name: labels for name, labels in beside.items() if labels is not None}
        found = discover(table, self._settings(), **beside)
        self.answer_, self.report_, self.table_ = found.answer, found.report, found.table
        self._beside_ = beside
        self._remember_names(table, found.table)
        for warning in self.answer_.warnings:
            warnings.warn(warning, ArrowWarning, stacklevel=2)
        return self

    def refine(
        self,
        *,
        knowledge: KnowledgeSource = None,
        threshold: float | None = None,
        decode: str | None = None,
        directions: str | None = None,
    ) -> Arrow:
        """A new fitted Arrow with other knowledge, decoding or directions, without running the network again.

        This estimator stays as it is, so that several refinements can be compared.

        Parameters
        ----------
        knowledge
            What is known now; it replaces what was known before. `Knowledge()` takes all knowledge away.
        threshold
            The new threshold, from 0 to 1.
        decode
            The new decoding rule: "map", "shd" or "f1".
        directions
            "tempered" or "network".

        Returns
        -------
        Arrow
            A new estimator. Whatever is not given stays as it is.

        Examples
        --------
        >>> careful = arrow.refine(threshold=0.99)
        >>> len(careful.edges_) < len(arrow.edges_)
        True
        """
        check_is_fitted(self)
        changes = {"knowledge": knowledge, "threshold": threshold, "decode": decode, "directions": directions}
        given = {name: value for name, value in changes.items() if value is not None}
        refined = type(self)(**{**self.get_params(deep=False), **given})
        refined._settings()  # refuses what is no setting
        refined.__dict__.update({name: value for name, value in vars(self).items() if name.endswith("_")})
        refined.answer_ = self.answer_.refine(
            knowledge=None if knowledge is None else as_knowledge(knowledge),
            decode=decode,
            threshold=threshold,
            directions=directions,
        )
        return refined

    # The answer

    @property
    def adjacency_matrix_(self) -> pd.DataFrame:
        """The causal graph: 1 where the variable of the row is a direct cause of the variable of the column.

        Returns
        -------
        DataFrame
            0 and 1, with the variables as rows and as columns.

        Examples
        --------
        >>> arrow.adjacency_matrix_.loc[["inflammation", "drug"], ["drug", "day3"]]
                      drug  day3
        inflammation     1     1
        drug             0     1
        """
        return self._square(self._answer.adjacency.astype(int))

    @property
    def edge_probabilities_(self) -> pd.DataFrame:
        """Probability that the variable of the row is a direct cause of the variable of the column.

        Returns
        -------
        DataFrame
            Numbers from 0 to 1, with the variables as rows and as columns.

        Examples
        --------
        >>> arrow.edge_probabilities_.round(1).loc[["drug"], ["day3", "stay"]]
              day3  stay
        drug   1.0   0.0
        """
        return self._square(self._answer.edge_probabilities)

    @property
    def skeleton_probabilities_(self) -> pd.DataFrame:
        """Probability that two variables are adjacent, in whichever direction.

        Returns
        -------
        DataFrame
            Numbers from 0 to 1, symmetric, with the variables as rows and as columns.

        Examples
        --------
        >>> adjacent = arrow.skeleton_probabilities_
        >>> bool(adjacent.loc["drug", "day3"] == adjacent.loc["day3", "drug"])
        True
        """
        return self._square(self._answer.skeleton_probabilities)

    @property
    def confounding_probabilities_(self) -> pd.DataFrame:
        """Probability that two variables share a cause that is not in the table.

        Returns
        -------
        DataFrame
            Numbers from 0 to 1, symmetric, with the variables as rows and as columns.

        Raises
        ------
        ConfigurationError
            If the model says nothing about hidden common causes, as arrow-strict does not.

        Examples
        --------
        >>> arrow.confounding_probabilities_.shape
        (7, 7)
        """
        probabilities = self._answer.confounding_probabilities
        if probabilities is None:
            raise ConfigurationError(
                f"The model {self._answer.model} says nothing of hidden common causes: it has no probabilities of them."
            )
        return self._square(probabilities)

    @property
    def hidden_causes_(self) -> list[HiddenCause]:
        """The pairs that probably share a hidden cause, the most probable first.

        Returns
        -------
        list of HiddenCause
            Empty if there is no such pair, or if the model says nothing about hidden causes.

        Examples
        --------
        >>> arrow.hidden_causes_
        []
        """
        return list(self._answer.hidden_causes)

    @property
    def order_scores_(self) -> pd.Series:
        """A score for each variable: j comes before k in the causal order with log-odds score_j − score_k.

        Returns
        -------
        Series
            One score per variable, by name. The larger, the earlier.

        Examples
        --------
        >>> bool(arrow.order_scores_["age"] > arrow.order_scores_["stay"])
        True
        """
        import pandas as pd

        return pd.Series(self._answer.order_scores, index=list(self._answer.names), name="order_score")

    @property
    def causal_order_(self) -> list[str]:
        """The variables, causes before effects.

        Returns
        -------
        list of str
            Every variable once.

        Examples
        --------
        >>> arrow.causal_order_[-2:]
        ['day3', 'stay']
        """
        return list(self._answer.order)

    @property
    def edges_(self) -> list[DirectedEdge]:
        """The edges of the graph, the most probable first, each with how sure it and its direction are.

        Returns
        -------
        list of DirectedEdge
            One entry per edge.

        Examples
        --------
        >>> ("drug", "day3") in [(edge.source, edge.target) for edge in arrow.edges_]
        True
        """
        return list(self._answer.edges)

    @property
    def edges_frame_(self) -> pd.DataFrame:
        """The edges of the graph as a data frame, the most probable first; hidden common causes are not among them.

        Pairs that probably share a hidden cause are in `hidden_causes_`, and all their probabilities in
        `confounding_probabilities_`.

        Returns
        -------
        DataFrame
            One row per edge: the cause as `source`, the effect as `target`, and the fields of `DirectedEdge`.

        Examples
        --------
        >>> list(arrow.edges_frame_.columns[:3])
        ['source', 'target', 'probability']
        """
        import pandas as pd

        return pd.DataFrame([edge_record(edge) for edge in self._answer.edges], columns=list(exports.EDGE_COLUMNS))

    @property
    def causal_graph_(self) -> nx.DiGraph[str]:
        """The causal graph for networkx, with probabilities on its edges.

        Returns
        -------
        networkx.DiGraph
            The same as `to_networkx()`.

        Examples
        --------
        >>> sorted(arrow.causal_graph_.predecessors("stay"))
        ['day3', 'ward']
        """
        return exports.to_networkx(self._answer)

    @property
    def cpdag_(self) -> pd.DataFrame:
        """The Markov equivalence class of the graph: an edge whose direction is not compelled is marked both ways.

        Returns
        -------
        DataFrame
            0 and 1, with the variables as rows and as columns.

        Examples
        --------
        >>> (arrow.cpdag_ >= arrow.adjacency_matrix_).all(axis=None).item()
        True
        """
        return self._square(self._answer.cpdag.astype(int))

    # Uncertainty

    def sample_graphs(self, k: int = 1000, random_state: RandomState = 0) -> NDArray[np.bool_]:
        """Causal graphs drawn from the network's distribution, none of which contradicts the knowledge.  (k, P, P)

        Parameters
        ----------
        k
            How many graphs.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        ndarray of bool
            `[i, j, k]` is true where graph i has an edge from variable j to variable k, in the order of the table's
            columns.

        Examples
        --------
        >>> arrow.sample_graphs(k=100).shape
        (100, 7, 7)
        """
        k = check_count("k, the number of graphs,", k)
        return self._answer.sample(k, _generator(random_state)).graphs

    def path_probability(self, cause: str, effect: str, k: int = 1000, random_state: RandomState = 0) -> float:
        """Probability of a directed path from cause to effect: its share among sampled graphs.

        Hidden common causes are no paths. Where variables along the way probably share one, an ArrowWarning says so.

        Parameters
        ----------
        cause
            The variable at which the path starts.
        effect
            The variable at which it ends.
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        float
            From 0 to 1.

        Examples
        --------
        >>> arrow.path_probability("drug", "stay") > 0.9  # directly or through day3
        True
        """
        ends = self._answer.index_of(cause), self._answer.index_of(effect)
        if ends[0] == ends[1]:
            raise ConfigurationError(f"Expected two different variables as cause and effect, got {cause!r} twice.")
        graphs = self.sample_graphs(k, random_state)
        self._mention_hidden_causes(graphs, *ends)
        return float(uncertainty.ancestor_frequencies(graphs)[ends])

    def ancestor_probabilities(self, k: int = 1000, random_state: RandomState = 0) -> pd.DataFrame:
        """Probability that the variable of the row is a direct or indirect cause of the variable of the column.

        Hidden common causes are no paths. Where some variables probably share one, an ArrowWarning says so.

        Parameters
        ----------
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        DataFrame
            Shares of the sampled graphs, with the variables as rows and as columns.

        Examples
        --------
        >>> causes = arrow.ancestor_probabilities(k=100)
        >>> causes.loc["stay", "age"].item()  # age is a root
        0.0
        """
        frequencies = uncertainty.ancestor_frequencies(self.sample_graphs(k, random_state))
        sentence = uncertainty.hidden_causes_sentence(self._answer.hidden_causes)
        if sentence is not None:
            warnings.warn(sentence, ArrowWarning, stacklevel=2)
        return self._square(frequencies)

    def parent_set_frequencies(self, variable: str, k: int = 1000, random_state: RandomState = 0) -> pd.DataFrame:
        """How often each set of direct causes of a variable occurs in sampled graphs.

        Given the network's output, edges of the skeleton are drawn independently of each other. So these sets cannot
        express that one of two variables is a cause but not both. If each is adjacent with probability one half, a
        quarter of the graphs has both edges, and another quarter neither.

        Parameters
        ----------
        variable
            The variable whose causes are counted.
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        DataFrame
            One row per set, the most frequent first: `parents` and `frequency`.

        Examples
        --------
        >>> arrow.parent_set_frequencies("stay", k=100)["parents"][0]
        ('ward', 'day3')
        """
        index = self._answer.index_of(variable)
        return self._sets(uncertainty.parent_sets(self.sample_graphs(k, random_state), index), "parents", k)

    def adjustment_set_frequencies(
        self, treatment: str, outcome: str, kind: str = "optimal", k: int = 1000, random_state: RandomState = 0
    ) -> pd.DataFrame:
        """What to adjust for when estimating the effect of treatment on outcome, in sampled graphs.

        Hidden common causes are not adjusted for; where variables on the way from treatment to outcome probably share
        one, an ArrowWarning says so.

        Parameters
        ----------
        treatment
            The variable that is changed.
        outcome
            The variable whose change is of interest.
        kind
            "optimal" is the valid set with the smallest variance in linear models, "parents" the direct causes of the
            treatment.
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        DataFrame
            One row per set, the most frequent first: `adjustment_set` and `frequency`. The set None stands for graphs
            in which the treatment has no effect on the outcome.

        Examples
        --------
        >>> sets = arrow.adjustment_set_frequencies("drug", "stay", k=100)
        >>> sets["adjustment_set"][0]
        ('ward', 'inflammation')
        """
        ends = self._answer.index_of(treatment), self._answer.index_of(outcome)
        graphs = self.sample_graphs(k, random_state)
        counts = uncertainty.adjustment_sets(graphs, *ends, kind=kind)
        self._mention_hidden_causes(graphs, *ends)
        return self._sets(counts, "adjustment_set", k)

    def bootstrap(
        self,
        table: Any,
        k: int = 100,
        random_state: RandomState = 0,
        progress: bool | None = None,
        **workers: Any,
    ) -> uncertainty.EdgeStability:
        """How often each edge occurs when the observations are drawn again with replacement.

        Parameters
        ----------
        table
            The table that was fitted.
        k
            How many resampled tables. They go through the network several at a time.
        random_state
            A seed or a numpy generator; None gives other tables every time.
        progress
            Whether to show a progress bar; by default only on a terminal.
        **workers
            `backend`, `jobs` and `cluster` as in `discover_many`: with jobs=4, four processes share the work, and the
            result is the same.

        Returns
        -------
        EdgeStability
            Frequencies of all edges; `to_frame()` lists them.

        Examples
        --------
        >>> stability = arrow.bootstrap(table, k=4, progress=False)
        >>> stability.resamples
        4
        """
        answer, settings = self._answer, self._settings()
        k = check_count("k, the number of resampled tables,", k)
        network = inference.ready_model(settings.model, settings.device, settings.precision)
        read = read_for(inference.abilities(settings.model, network), table, settings.reading.changed(**self._beside_))
        return uncertainty.bootstrap(
            answer,
            network,
            read,
            k,
            _generator(random_state),
            max_rows=settings.max_rows,
            observations_per_chunk=settings.observations_per_chunk,
            progress=progress,
            **workers,
        )

    # Effects

    def effect(
        self,
        treatment: str,
        outcome: str,
        *,
        between: tuple[Any, Any] | None = None,
        level: str | None = None,
        estimator: str = "linear",
        adjustment: str = "optimal",
        k: int = 1000,
        random_state: RandomState = 0,
    ) -> Effect:
        """What happens to the outcome when the treatment changes, averaged over sampled graphs.

        Each graph is used with its own valid adjustment set. The interval contains both the uncertainty about the graph
        and the sampling error.

        Parameters
        ----------
        treatment
            The variable that is changed.
        outcome
            The variable whose change is estimated.
        between
            Two values or levels of the treatment, from and to; by default the effect is per unit.
        level
            Of an outcome with levels, the one whose share is the outcome.
        estimator
            "linear" is least squares, "curved" the average slope of cubic curves; "forest" is cross-fitted, doubly
            robust for a yes or no treatment and partially linear for a number.
        adjustment
            "optimal" or "parents", as in `adjustment_set_frequencies`.
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        Effect
            The median, a 90% interval, and what the effect is under each adjustment set; `print(effect)` says it in
            words.

        Examples
        --------
        >>> effect = arrow.effect("drug", "stay")
        >>> low, high = effect.interval
        >>> low < -1.8 < high  # the true effect is −1.8 days
        True
        """
        from causal_arrow.discovery.effects.estimation import EffectQuestion, estimate_effect

        random = _generator(random_state)
        return estimate_effect(
            self._answer,
            self.table_,
            self.sample_graphs(k, random),
            treatment,
            outcome,
            between=between,
            question=EffectQuestion(estimator, adjustment, level),
            random=random,
        )

    def effects(
        self,
        outcome: str,
        *,
        level: str | None = None,
        estimator: str = "linear",
        adjustment: str = "optimal",
        k: int = 1000,
        random_state: RandomState = 0,
    ) -> Effects:
        """The effects of all other variables on the outcome, the largest first, each as `effect` estimates it.

        Parameters
        ----------
        outcome
            The variable whose change is estimated.
        level
            Of an outcome with levels, the one whose share is the outcome.
        estimator
            "linear", "curved" or "forest", as in `effect`.
        adjustment
            "optimal" or "parents", as in `adjustment_set_frequencies`.
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        Effects
            One `Effect` per variable; `to_frame()` lists them.

        Examples
        --------
        >>> effects = arrow.effects("stay", k=100)
        >>> "drug" in list(effects.to_frame()["cause"])
        True
        """
        from causal_arrow.discovery.effects.estimation import EffectQuestion, estimate_effects

        random = _generator(random_state)
        return estimate_effects(
            self._answer,
            self.table_,
            self.sample_graphs(k, random),
            outcome,
            question=EffectQuestion(estimator, adjustment, level),
            random=random,
        )

    def next_experiment(
        self,
        target: str | tuple[str, str] | None = None,
        budget: int = 1,
        *,
        candidates: Sequence[str] | None = None,
        rows: int | None = None,
        k: int = 1000,
        random_state: RandomState = 0,
    ) -> ExperimentPlan:
        """Which variable to set next, or which hidden cause to measure, to remove the most uncertainty.

        Parameters
        ----------
        target
            What the uncertainty is about: None for the whole graph, an outcome for its causes, or a pair (treatment,
            outcome) for that effect.
        budget
            How many experiments are carried out together.
        candidates
            The variables that can be set; by default all that experiments have not set yet.
        rows
            How many rows each experiment will have; by default as many as the table.
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        ExperimentPlan
            The experiments, the best first; `print(plan)` says it in words.

        Examples
        --------
        >>> plan = arrow.next_experiment(("drug", "stay"), k=200)
        >>> print(plan.best)
        set drug
        """
        from causal_arrow.discovery.effects.planning import plan_experiments

        answer, random = self._answer, _generator(random_state)
        budget = check_count("budget", budget)
        if rows is not None:
            rows = check_count("rows, those of the experiment,", rows)
        return plan_experiments(
            answer,
            self.table_,
            self.sample_graphs(k, random),
            target=target,
            budget=budget,
            candidates=candidates,
            rows=rows,
            random=random,
        )

    def learn_from_experiment(self, variable: str, rows: Any, k: int = 1000, random_state: RandomState = 0) -> Arrow:
        """A new fitted Arrow that takes the outcome of an experiment into account, without running the network again.

        Edges that the experiment makes improbable are forbidden, in addition to what was known. A network that reads
        experiments does better with all observations in one table: see the `interventions` of `fit`.

        Parameters
        ----------
        variable
            The variable that was set at random.
        rows
            The observations of the experiment, with the columns of the fitted table, read in the same way. The column
            that tells environments apart may be missing.
        k
            How many graphs to sample.
        random_state
            A seed or a numpy generator; None gives other graphs every time.

        Returns
        -------
        Arrow
            A new estimator, with the additional knowledge.

        Examples
        --------
        >>> trial = load_example("hospital-trial")  # a coin decided on the drug
        >>> after = arrow.learn_from_experiment("drug", trial)
        >>> after.path_probability("stay", "drug")
        0.0
        """
        from causal_arrow.discovery.effects.further_tables import read_like
        from causal_arrow.discovery.effects.planning import knowledge_from

        answer = self._answer
        answer.index_of(variable)
        read = read_like(self.table_, rows, self.missing, self._beside_, needs_environments=False)
        known = knowledge_from(answer, self.table_, read, variable, self.sample_graphs(k, random_state))
        return self.refine(knowledge=known)

    def falsify(self, table: Any = None, permutations: int = 100, random_state: RandomState = 0) -> Falsification:
        """Whether the graph is compatible with a table: tests of the independences that it implies.

        The share of violated independences is compared with that of graphs whose names are shuffled.

        Parameters
        ----------
        table
            A table with the columns of the one that was fitted, which is tested by default; it is read in the same way,
            and if environments were given beside that one, it needs a column "environment". Its complete observations
            are used; those that were not fitted make the stricter test.
        permutations
            How many graphs with shuffled names.
        random_state
            A seed or a numpy generator; None shuffles differently every time.

        Returns
        -------
        Falsification
            Shares, a p-value, and which independences the data contradict; `print(...)` says it in words.

        Examples
        --------
        >>> arrow.falsify(permutations=50).falsified
        False
        """
        from causal_arrow.discovery.effects.falsification import falsify, on_scale_of
        from causal_arrow.discovery.effects.further_tables import read_like

        answer, read = self._answer, self.table_
        if table is not None:
            read = read_like(read, table, self.missing, self._beside_)
        count = check_count("permutations", permutations)
        random = _generator(random_state)
        return falsify(answer.adjacency, on_scale_of(answer, read), count, random, answer.graph.bidirected)

    # In words

    def summary(self) -> str:
        """What was found, as plain text.

        Returns
        -------
        str
            The edges and how certain they are, the causal order, whether the data contradict the graph, and what to be
            careful about.

        Examples
        --------
        >>> print(arrow.summary().splitlines()[0])
        800 observations of 7 variables, read by arrow-base
        """
        return summary.to_text(self._answer, more=self._fit_in_words())

    def __str__(self) -> str:
        return f"{self!r}\n{self.summary()}" if hasattr(self, "answer_") else repr(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows: the summary with a picture once there is an answer."""
        if not hasattr(self, "answer_"):
            bundle: dict[str, str] = super()._repr_mimebundle_(**options)
            return bundle
        return {"text/plain": str(self), "text/html": summary.to_html(self.answer_, more=self._fit_in_words())}

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    # Hand-over

    def to_networkx(self) -> nx.DiGraph[str]:
        """The graph for networkx, with probabilities on its edges and order scores on its nodes.

        Returns
        -------
        networkx.DiGraph
            The names of the variables are the nodes.

        Examples
        --------
        >>> arrow.to_networkx().number_of_nodes()
        7
        """
        return exports.to_networkx(self._answer)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz.

        Returns
        -------
        str
            The content of a .dot file.

        Examples
        --------
        >>> arrow.to_dot().startswith("digraph")
        True
        """
        return exports.to_dot(self._answer)

    def to_gml(self) -> str:
        """The graph as GML.

        Returns
        -------
        str
            The content of a .gml file.

        Examples
        --------
        >>> arrow.to_gml().startswith("graph [")
        True
        """
        return exports.to_gml(self._answer)

    def to_graphml(self) -> str:
        """The graph as GraphML.

        Returns
        -------
        str
            The content of a .graphml file.

        Examples
        --------
        >>> "<graphml" in arrow.to_graphml()
        True
        """
        return exports.to_graphml(self._answer)

    def to_dagitty(self) -> str:
        """The graph for DAGitty, with positions from the layout of our pictures.

        Returns
        -------
        str
            Text to paste into DAGitty, or to give to its R package.

        Examples
        --------
        >>> arrow.to_dagitty().startswith("dag {")
        True
        """
        return exports.to_dagitty(self._answer)

    def to_json(self) -> str:
        """Everything as JSON, by the documented schema.

        Returns
        -------
        str
            One JSON object, which `Answer.from_dict` reads back.

        Examples
        --------
        >>> import json
        >>> json.loads(arrow.to_json())["format"]
        'causal-arrow-graph'
        """
        return exports.to_json(self._answer)

    def to_dowhy(self) -> nx.DiGraph[str]:
        """The graph as `dowhy.CausalModel(graph=...)` and `dowhy.gcm` take it.

        Returns
        -------
        networkx.DiGraph
            The names of the variables are the nodes.

        Examples
        --------
        >>> sorted(arrow.to_dowhy().successors("drug"))
        ['day3']
        """
        return exports.to_dowhy(self._answer)

    def to_pgmpy(self) -> Any:
        """The graph as pgmpy has it; pgmpy must be installed.

        Returns
        -------
        pgmpy.base.DAG
            The names of the variables are the nodes.

        Examples
        --------
        >>> len(arrow.to_pgmpy().edges())
        7
        """
        return exports.to_pgmpy(self._answer)

    def to_causallearn(self) -> Any:
        """The graph as causal-learn has it; causal-learn must be installed.

        Returns
        -------
        causallearn.graph.Dag.Dag
            A `Dag`, which is also a `GeneralGraph`.

        Examples
        --------
        >>> arrow.to_causallearn().get_num_edges()
        7
        """
        return exports.to_causallearn(self._answer)

    def to_lingam(self) -> NDArray[np.float64]:
        """The graph as lingam keeps it, transposed.

        Returns
        -------
        ndarray of float
            `[k, j]` is 1 where variable j causes variable k.

        Examples
        --------
        >>> bool((arrow.to_lingam().T == arrow.adjacency_matrix_).all(axis=None))
        True
        """
        return exports.to_lingam(self._answer)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """A picture of the graph.

        Parameters
        ----------
        ax
            The matplotlib axes to draw on; by default a new figure of a fitting size.
        **options
            Those of `draw_graph`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Examples
        --------
        >>> arrow.plot().figure.savefig("graph.svg")
        """
        from causal_arrow.discovery import pictures

        return pictures.draw_graph(self._answer, ax=ax, **options)

    def plot_comparison(
        self, truth: Iterable[str | tuple[str, str]], ax: Axes | None = None, title: str | None = None
    ) -> Axes:
        """A picture of the graph beside a known truth: which edges are right, reversed, missing or extra.

        Causes are on top by the truth, so that right edges point down and reversed ones up.

        Parameters
        ----------
        truth
            The true edges, as pairs of a cause and its effect or as text such as "smoking -> cancer".
        ax
            The matplotlib axes to draw on; by default a new figure of a fitting size.
        title
            The words above the picture; by default how many of the true edges were found.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Examples
        --------
        >>> truth = load_example("hospital").attrs["edges"]
        >>> arrow.plot_comparison(truth).figure.savefig("comparison.svg")
        """
        from causal_arrow.discovery import pictures

        return pictures.draw_comparison(self._answer, truth, ax, title=title)

    def plot_probabilities(self, ax: Axes | None = None) -> Axes:
        """A heat map of the edge probabilities, along the causal order.

        Parameters
        ----------
        ax
            The matplotlib axes to draw on; by default a new figure of a fitting size.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Examples
        --------
        >>> arrow.plot_probabilities().figure.savefig("probabilities.svg")
        """
        from causal_arrow.discovery import pictures

        return pictures.draw_probabilities(self._answer, ax=ax)

    # Inside

    def _settings(self) -> Settings:
        """The parameters, checked."""
        return Settings().changed(**self.get_params(deep=False))

    @property
    def _answer(self) -> Answer:
        check_is_fitted(self)
        return self.answer_

    def _fit_in_words(self) -> list[str]:
        """Whether the graph is compatible with the table; tested once per answer, and not where that takes long."""
        from causal_arrow.discovery.effects.falsification import compatibility

        if self._tested_ is None or self._tested_[0] is not self._answer:
            self._tested_ = self._answer, compatibility(self._answer, self.table_)
        found = self._tested_[1]
        return [] if found is None else [str(found)]

    def _remember_names(self, table: Any, read: Table) -> None:
        self.n_features_in_ = read.variables
        if hasattr(type(table), "columns") or isinstance(table, str | Path):
            self.feature_names_in_ = np.array(read.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _mention_hidden_causes(self, graphs: NDArray[np.bool_], cause: int, effect: int) -> None:
        sentence = uncertainty.hidden_causes_on_the_way(self._answer, graphs, cause, effect)
        if sentence is not None:
            warnings.warn(sentence, ArrowWarning, stacklevel=3)

    def _square(self, matrix: NDArray[Any]) -> pd.DataFrame:
        import pandas as pd

        names = list(self._answer.names)
        return pd.DataFrame(np.array(matrix), index=names, columns=names)  # a copy, which the caller may change

    def _sets(self, counts: Mapping[Any, int], label: str, k: int) -> pd.DataFrame:
        import pandas as pd

        names = self._answer.names
        named = [
            (None if members is None else tuple(names[member] for member in members), count / k)
            for members, count in sorted(counts.items(), key=lambda entry: (-entry[1], str(entry[0])))
        ]
        return pd.DataFrame({label: [members for members, _ in named], "frequency": [share for _, share in named]})


def _refuse_sparse_and_complex(table: Any) -> None:
    """TableError for arrays that scikit-learn knows and we cannot read, in the words it expects."""
    if issparse(table):
        raise TableError("Sparse input is not supported: pass table.toarray().")
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise TableError("Complex data not supported: pass real and imaginary parts as variables of their own.")


def _generator(random_state: RandomState) -> np.random.Generator:
    """The generator that a user of scikit-learn means by a random state."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    whole = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if random_state is not None and (not whole or not 0 <= int(random_state) <= MAX_SEED):
        raise ConfigurationError(
            f"Expected random_state to be None, a numpy generator, or a whole number from 0 to 2**63 - 1, "
            f"got {random_state!r}."
        )
    return np.random.default_rng(None if random_state is None else int(random_state))
