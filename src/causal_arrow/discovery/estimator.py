"""Arrow: a table in, a causal graph out, in the manner of scikit-learn.

>>> from causal_arrow import Arrow, load_example
>>> arrow = Arrow().fit(load_example("hospital"))
>>> graph = arrow.adjacency_matrix_  # 1 where the row causes the column
>>> probabilities = arrow.edge_probabilities_  # how probable each edge is
>>> informed = arrow.refine(roots=["age"]).causal_graph_
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from causal_arrow.discovery.answer import Answer, DirectedEdge, HiddenCause
from causal_arrow.discovery.discovery import Discovery
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import REFINABLE, KnowledgeSource, Settings, refuse_former_names
from causal_arrow.errors import ConfigurationError, Remedy, TableError, warn
from causal_arrow.network import DEFAULT_MODEL, Network

if TYPE_CHECKING:
    import networkx as nx

    from causal_arrow.series.responses import Curve

Asked = ParamSpec("Asked")
Given = TypeVar("Given")

NAMES = {
    "answer": "answer_",
    "cpdag": "cpdag_",
    "confounding_probabilities": "confounding_probabilities_",
    "edges": "edges_frame_",
    "graph": "adjacency_matrix_",
    "order_scores": "order_scores_",
    "probabilities": "edge_probabilities_",
    "report": "report_",
    "sample": "sample_graphs",
    "skeleton_probabilities": "skeleton_probabilities_",
    "table": "table_",
}
"""Members of a discovery that have another name in the estimator."""


def _asked_of(question: Callable[Concatenate[Discovery, Asked], Given]) -> Callable[Concatenate[Arrow, Asked], Given]:
    """The method that passes a question on to the discovery; one that answers with a discovery gives an estimator."""

    @_in_current_words
    @wraps(question)
    def method(self: Arrow, /, *args: Asked.args, **options: Asked.kwargs) -> Given:
        answer: Any = self._member(question.__name__)(*args, **options)
        return self._with(answer) if isinstance(answer, type(self._fitted)) else answer

    method.__doc__ = _of_arrow(question.__doc__)
    return method


def _found_by(read: Callable[[Discovery], Given]) -> Given:
    """The attribute with the value and the documentation of a property of the discovery."""
    get: Callable[[Discovery], Given] = getattr(read, "fget", read)

    def attribute(self: Arrow) -> Any:
        return self._member(get.__name__)

    attribute.__doc__ = _of_arrow(get.__doc__)
    return property(attribute)  # type: ignore[return-value]


def _in_current_words(function: Callable[Asked, Given]) -> Callable[Asked, Given]:
    """The function, which refuses arguments by their names in earlier versions."""

    @wraps(function)
    def refusing(*args: Asked.args, **options: Asked.kwargs) -> Given:
        refuse_former_names(options)
        return function(*args, **options)

    return refusing


class _NotOfSeriesError(ConfigurationError, AttributeError):
    """Also an AttributeError, so that `dir` and `hasattr` pass over it."""


def _of_arrow(documentation: str | None) -> str:
    """The documentation of a member of a discovery, with examples that ask an estimator."""
    return re.sub(r"\bfound\.(\w+)", lambda found: f"arrow.{NAMES.get(found[1], found[1])}", documentation or "")


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
        Whether to log-transform skewed columns whose values share a sign: never ("given"), always ("log"), or unless
        the network is clearly more certain of its graph without ("auto").
    directions
        Which probabilities directions have: "tempered" are those that real tables bear out, "network" the network's
        own.
    hidden
        Which hidden causes to show: "none", those "standing-out" from the level of the table, or "all".
    hidden_threshold
        The probability above which a hidden cause is shown.
    missing, kinds, ordered
        How to read the table, as in `ReadOptions`.
    max_rows
        How many rows of a long table the network reads one by one, drawn evenly; 20,000 by default, since more hardly
        improve the answer. Statistics of pairs always use all rows.
    observations_per_chunk
        How many observations to read at a time. By default chosen so that memory stays bounded; the answer is the same
        up to rounding.
    precision
        Of the network's matrix products: "auto" and "float32", or "bfloat16" on a GPU. Probabilities in bfloat16 are
        typically within 0.0001, and nearly always within 0.01, of those in float32.
    frames
        The library of data frames in the answer, such as "polars"; "auto" is the one that the table came in.
    lags, time, unit, contemporaneous, difference, season, resample
        How to read a time series, as in `SeriesOptions`; without `lags` the table has no order.

    Attributes
    ----------
    discovery_ : Discovery or SeriesDiscovery
        What was found, with the table: every question below is asked of it. It can be saved to a file.
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

    discovery_: Discovery
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    @_in_current_words
    def __init__(
        self,
        model: str | Path | Network = DEFAULT_MODEL,
        *,
        device: str = "auto",
        decode: str = "map",
        threshold: float = 0.5,
        knowledge: KnowledgeSource = None,
        scale: str = "auto",
        directions: str = "tempered",
        hidden: str = "standing-out",
        hidden_threshold: float = 0.5,
        missing: str = "auto",
        kinds: Mapping[str, str] | None = None,
        ordered: Mapping[str, Sequence[str]] | None = None,
        max_rows: int | None = None,
        observations_per_chunk: int | None = None,
        precision: str = "auto",
        frames: str = "auto",
        lags: int | str | None = None,
        time: Any = None,
        unit: Any = None,
        contemporaneous: bool = True,
        difference: bool | Sequence[str] = False,
        season: int | None = None,
        resample: str | float | None = None,
    ) -> None:
        given = dict(locals())
        del given["self"]
        self.__dict__.update(given)  # as they are and by their names, as scikit-learn expects

    # Fitting

    def fit(
        self,
        table: Any,
        y: Any = None,
        *,
        interventions: Any = None,
        environments: Any = None,
        randomized: str | Sequence[str] = (),
    ) -> Arrow:
        """Discover the causal graph of a table, and return the estimator itself.

        ArrowWarnings list the reasons to be careful about this table.

        Parameters
        ----------
        table
            Rows are observations, columns are variables: a data frame of any library, a numpy array, the path of a
            file, or anything else that `read_table` takes.
        y
            Ignored with an ArrowWarning: an outcome belongs into the table, as a column.
        interventions, environments
            Labels of the rows, or the column that holds them: on which variables experiments have intervened, and where
            or when each row was observed. See `ReadOptions`.
        randomized
            Variables whose values were drawn by chance in every row, as in a trial: nothing causes them, and their
            effects are estimated as those of a trial. It adds to `knowledge`.

        Examples
        --------
        >>> Arrow(model="arrow-base").fit(table).answer_.observations
        800
        """
        _refuse_sparse_and_complex(table)
        if y is not None:
            warn("y is ignored: put the outcome into the table, as a column.")
        settings = Settings().changed(**self.get_params(deep=False))
        labels = {"interventions": interventions, "environments": environments}
        self.discovery_ = discover(table, settings, randomized=randomized, **labels)
        names = self.discovery_.names
        self.n_features_in_ = len(names)
        if hasattr(type(table), "columns") or isinstance(table, str | Path):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for warning in self.answer_.warnings:
            warn(warning)
        return self

    refine = cast("Callable[..., Arrow]", _asked_of(Discovery.refine))
    learn_from_experiment = cast("Callable[..., Arrow]", _asked_of(Discovery.learn_from_experiment))

    # What was found

    report_ = _found_by(Discovery.report)
    table_ = _found_by(Discovery.table)
    adjacency_matrix_ = _found_by(Discovery.graph)
    edge_probabilities_ = _found_by(Discovery.probabilities)
    skeleton_probabilities_ = _found_by(Discovery.skeleton_probabilities)
    confounding_probabilities_ = _found_by(Discovery.confounding_probabilities)
    order_scores_ = _found_by(Discovery.order_scores)
    cpdag_ = _found_by(Discovery.cpdag)
    edges_frame_ = _found_by(Discovery.edges)

    @property
    def edges_(self) -> list[DirectedEdge]:
        """The edges of the graph, the most probable first, each with how sure it and its direction are."""
        return list(self.answer_.edges)

    @property
    def hidden_causes_(self) -> list[HiddenCause]:
        """The pairs shown to share a hidden cause, the most probable first."""
        return list(self.answer_.hidden_causes)

    @property
    def causal_order_(self) -> list[str]:
        """The variables, causes before effects."""
        return list(self.answer_.order)

    @property
    def causal_graph_(self) -> nx.DiGraph[str]:
        """The causal graph for networkx, with probabilities on its edges; the same as `to_networkx()`."""
        return self.to_networkx()

    @property
    def answer_(self) -> Answer:
        """The graph and all probabilities in one object, without the data."""
        return self._fitted.answer

    # Questions

    sample_graphs = _asked_of(Discovery.sample)
    path_probability = _asked_of(Discovery.path_probability)
    second_opinion = _asked_of(Discovery.second_opinion)
    ancestor_probabilities = _asked_of(Discovery.ancestor_probabilities)
    parent_set_frequencies = _asked_of(Discovery.parent_set_frequencies)
    adjustment_set_frequencies = _asked_of(Discovery.adjustment_set_frequencies)
    stability = _asked_of(Discovery.stability)
    effect = _asked_of(Discovery.effect)
    effects = _asked_of(Discovery.effects)
    next_experiment = _asked_of(Discovery.next_experiment)
    falsify = _asked_of(Discovery.falsify)

    def response(self, cause: str, effect: str, steps: int = 10, **options: Any) -> Curve:
        """Estimate what happens to a variable of a time series 0, 1, 2, ... steps after another was raised by one.

        `options` are `kind`, `n_graphs` and `random_state`, as in `SeriesDiscovery.response`.
        """
        if not hasattr(self._fitted, "response"):
            raise ConfigurationError("Effects over time need a time series.", [Remedy("lags")])
        curve: Curve = self._member("response")(cause, effect, steps, **options)
        return curve

    summary = _asked_of(Discovery.summary)
    draw = _asked_of(Discovery.draw)
    plot = _asked_of(Discovery.plot)
    plot_comparison = _asked_of(Discovery.plot_comparison)
    plot_probabilities = _asked_of(Discovery.plot_probabilities)
    to_json = _asked_of(Discovery.to_json)
    to_networkx = _asked_of(Discovery.to_networkx)
    to_dot = _asked_of(Discovery.to_dot)
    to_gml = _asked_of(Discovery.to_gml)
    to_graphml = _asked_of(Discovery.to_graphml)
    to_dagitty = _asked_of(Discovery.to_dagitty)
    to_dowhy = _asked_of(Discovery.to_dowhy)
    to_pgmpy = _asked_of(Discovery.to_pgmpy)
    to_causallearn = _asked_of(Discovery.to_causallearn)
    to_lingam = _asked_of(Discovery.to_lingam)

    @property
    def bootstrap(self) -> NoReturn:
        """The former name of `stability`."""
        raise AttributeError("Arrow.bootstrap is now stability(n_resamples=...), which needs no table.")

    def __str__(self) -> str:
        return f"{self!r}\n{self.summary()}" if hasattr(self, "discovery_") else repr(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """The summary with a picture for notebooks, once the estimator is fitted."""
        if not hasattr(self, "discovery_"):
            bundle: dict[str, str] = super()._repr_mimebundle_(**options)
            return bundle
        return {"text/plain": str(self), "text/html": self.discovery_._repr_html_()}

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    # Inside

    @property
    def _fitted(self) -> Discovery:
        check_is_fitted(self)
        return self.discovery_

    def _member(self, name: str) -> Any:
        """A member of the discovery; a series has others than a table."""
        if not hasattr(self._fitted, name):
            raise _NotOfSeriesError(f"{name} is for tables, and this is a time series: ask for response.")
        return getattr(self._fitted, name)

    def _with(self, discovery: Discovery) -> Arrow:
        """An estimator fitted to the same table, with another discovery and the settings behind it."""
        settings = discovery.settings
        changed = {name: getattr(settings, name) for name in REFINABLE}
        other = type(self)(**{**self.get_params(deep=False), **changed})
        other.__dict__.update({name: value for name, value in vars(self).items() if name.endswith("_")})
        other.discovery_ = discovery
        return other


def _refuse_sparse_and_complex(table: Any) -> None:
    """TableError for arrays that scikit-learn knows and we cannot read, in the words it expects."""
    if issparse(table):
        raise TableError("Sparse input is not supported: pass table.toarray().")
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise TableError("Complex data not supported: pass real and imaginary parts as separate variables.")
