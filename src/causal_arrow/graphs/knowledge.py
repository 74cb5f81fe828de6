"""What a person already knows about a causal graph, checked and compiled into constraints on its edges.

Five kinds of knowledge:
- required edges are in every answer;
- forbidden edges are in none (the opposite direction stays open);
- tiers, earliest first: a variable in a later tier never causes one in an earlier tier. Edges within a tier are free,
  and so is a variable that is in no tier;
- roots have no causes among the variables, leaves no effects.

A tier speaks about edges, not about the causal order of variables that are not adjacent: it forbids edges, no more.
`decoding.py` finds graphs that obey; nothing here needs a network or a table, only the names of the variables.
"""

from __future__ import annotations

import difflib
import importlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import KnowledgeError
from causal_arrow.graphs.dag import find_cycle, transitive_closure

# P variables

Edge = tuple[str, str]

# What pgmpy's ExpertKnowledge calls the same things.
PGMPY_NAMES = {
    "required_edges": "required",
    "forbidden_edges": "forbidden",
    "temporal_order": "tiers",
    "root_nodes": "roots",
}


@dataclass(frozen=True)
class Constraints:
    """Knowledge about the variables `names`, as matrices.  (P, P) bool each, [j, k] about the edge j -> k

    `required` edges are in every graph and `forbidden` edges in none, among them those that would close a cycle with
    the required ones. `precedence[j, k]`: required edges lead from j to k, so every causal order has j before k.
    """

    names: tuple[str, ...]
    required: NDArray[np.bool_]
    forbidden: NDArray[np.bool_]
    precedence: NDArray[np.bool_]

    def allows(self, adjacency: NDArray[Any]) -> bool:
        """Whether a graph contradicts nothing: every required edge is there and no forbidden one is."""
        edges = np.asarray(adjacency).astype(bool)
        return bool(edges[self.required].all() and not edges[self.forbidden].any())

    def rearranged(self, places: NDArray[np.intp]) -> Constraints:
        """The same with variable `places[i]` in place i."""
        matrices = {
            entry.name: value[np.ix_(places, places)]
            for entry in fields(self)
            if isinstance(value := getattr(self, entry.name), np.ndarray)
        }
        return replace(self, names=tuple(self.names[place] for place in places), **matrices)

    def is_empty(self) -> bool:
        """Whether nothing at all is known, so that every graph is allowed."""
        return not (self.required.any() or self.forbidden.any())


@dataclass(frozen=True, init=False)
class Knowledge:
    """Required and forbidden edges, tiers, roots and leaves, by the names of the variables.

        Knowledge(required=[("smoking", "cancer")], forbidden=["cancer -> age"], tiers=[["age", "sex"], ["smoking"]])

    An edge is a pair of names or the text "cause -> effect". `search_space`, where given, lists the only edges that may
    exist. The argument names of pgmpy's ExpertKnowledge (`required_edges`, `forbidden_edges`, `temporal_order`,
    `root_nodes`, `search_space`) mean the same here. What contradicts itself is refused at once with a KnowledgeError.
    """

    required: tuple[Edge, ...]
    forbidden: tuple[Edge, ...]
    tiers: tuple[tuple[str, ...], ...]
    roots: tuple[str, ...]
    leaves: tuple[str, ...]
    search_space: tuple[Edge, ...]  # empty: every edge may exist, as in pgmpy

    def __init__(
        self,
        required: Iterable[Any] | str = (),
        forbidden: Iterable[Any] | str = (),
        tiers: Iterable[Iterable[Any] | str] = (),
        roots: Iterable[Any] | str = (),
        leaves: Iterable[Any] | str = (),
        search_space: Iterable[Any] | str = (),
        **pgmpy_names: Any,
    ) -> None:
        given: dict[str, Any] = {
            "required": required,
            "forbidden": forbidden,
            "tiers": tiers,
            "roots": roots,
            "leaves": leaves,
            "search_space": search_space,
        }
        for name, value in pgmpy_names.items():
            ours = PGMPY_NAMES.get(name)
            if ours is None:
                raise KnowledgeError(f"Unknown kind of knowledge {name!r}{_closest(name, [*given, *PGMPY_NAMES])}.")
            if given[ours]:
                raise KnowledgeError(f"{name!r} and {ours!r} are the same thing: give one of the two.")
            given[ours] = value
        readers = {"tiers": _tiers, "roots": _names, "leaves": _names}
        for name, value in given.items():
            object.__setattr__(self, name, readers.get(name, _edges)(value, name))
        _check(self)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Knowledge:
        """The knowledge in a mapping such as a JSON or TOML file holds, by our names or pgmpy's."""
        if not isinstance(settings, Mapping):
            raise KnowledgeError(f"Expected named lists such as required, forbidden, tiers; got {_shown(settings)}.")
        return cls(**{str(name): value for name, value in settings.items()})

    @classmethod
    def from_file(cls, path: str | Path) -> Knowledge:
        """The knowledge in a TOML or JSON file.

        required = ["smoking -> cancer"]
        tiers = [["age", "sex"], ["smoking"], ["cancer"]]
        """
        path = Path(path)
        readers: dict[str, Callable[[str], Any]] = {".toml": _parse_toml, ".json": json.loads}
        reader = readers.get(path.suffix.lower())
        if reader is None:
            raise KnowledgeError(f"Cannot read knowledge from '{path.name}': expected a .toml or .json file.")
        try:
            settings = reader(path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise KnowledgeError(f"Cannot open the knowledge file '{path}': {error.strerror or error}.") from error
        except ValueError as error:  # both parsers' errors, and bytes that are not text
            raise KnowledgeError(f"'{path.name}' is not valid {path.suffix[1:].upper()}: {error}.") from error
        try:
            return cls.from_dict(settings)
        except KnowledgeError as error:
            raise KnowledgeError(f"In '{path.name}': {error}") from error

    @classmethod
    def from_pgmpy(cls, expert_knowledge: Any) -> Knowledge:
        """The same knowledge from a pgmpy ExpertKnowledge object.

        Its `orientations`, directions that hold if the edge exists, forbid the opposite edges. A function that orients
        edges (`orientation_fn`) is not knowledge that can be checked, and is refused.
        """
        if getattr(expert_knowledge, "orientation_fn", None) is not None:
            raise KnowledgeError("An ExpertKnowledge with an orientation_fn cannot be used: list the edges it orients.")
        given = {
            name: getattr(expert_knowledge, name, None) or () for name in (*PGMPY_NAMES, "search_space", "orientations")
        }
        against = [(effect, cause) for cause, effect in given.pop("orientations")]
        return cls(**{**given, "forbidden_edges": [*given["forbidden_edges"], *against]})

    def __or__(self, other: Knowledge) -> Knowledge:
        """Both at once. Only one of them may have tiers, and one a search space: two lists of either do not add up."""
        for name in ("tiers", "search_space"):
            if getattr(self, name) and getattr(other, name):
                raise KnowledgeError(f"Two sources of knowledge both give {name}: keep them in one of the two.")
        return Knowledge(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        )

    def to_dict(self) -> dict[str, Any]:
        """The knowledge as JSON can hold it; `from_dict` reads it back."""
        return {
            field.name: [list(entry) if isinstance(entry, tuple) else entry for entry in getattr(self, field.name)]
            for field in fields(self)
            if getattr(self, field.name)
        }

    def variables(self) -> tuple[str, ...]:
        """Every name mentioned, each once, in the order of mention."""
        edges = (*self.required, *self.forbidden, *self.search_space)
        mentioned = [name for group in (*edges, *self.tiers) for name in group]
        return tuple(dict.fromkeys((*mentioned, *self.roots, *self.leaves)))

    def compile(self, names: Sequence[str]) -> Constraints:
        """The constraints on graphs over the variables `names`, in that order.  (P names)

        KnowledgeError for a variable that is not among them.
        """
        names = tuple(str(name) for name in names)
        if unknown := [name for name in self.variables() if name not in names]:
            hints = "; ".join(f"{name!r}{_closest(name, names)}" for name in unknown)
            word = "a variable that is" if len(unknown) == 1 else "variables that are"
            raise KnowledgeError(f"Knowledge names {word} not in the table: {hints}.")

        place = {name: index for index, name in enumerate(names)}
        required = _edge_matrix(self.required, names)
        forbidden = _edge_matrix(self.forbidden, names)
        tier = np.full(len(names), np.nan)  # comparisons with nan are false: no tier, nothing forbidden
        for number, members in enumerate(self.tiers):
            tier[[place[name] for name in members]] = number
        forbidden |= tier[:, None] > tier[None, :]
        forbidden[:, [place[name] for name in self.roots]] = True
        forbidden[[place[name] for name in self.leaves], :] = True
        if self.search_space:
            forbidden |= ~_edge_matrix(self.search_space, names)
        precedence = transitive_closure(required)
        forbidden |= precedence.T
        np.fill_diagonal(forbidden, False)
        for matrix in (required, forbidden, precedence):
            matrix.flags.writeable = False
        return Constraints(names, required, forbidden, precedence)


def unconstrained(names: Sequence[str]) -> Constraints:
    """The constraints when nothing is known."""
    return Knowledge().compile(names)


def parse_edge(edge: Any) -> Edge:
    """The (cause, effect) of a pair of names or of text such as "smoking -> cancer"."""
    pair = re.split(r"\s*(?:-+>|→)\s*", edge.strip()) if isinstance(edge, str) else edge
    if isinstance(pair, str | bytes | Mapping) or not isinstance(pair, Iterable):
        raise KnowledgeError(f"Expected an edge such as 'cause -> effect' or ['cause', 'effect'], got {_shown(edge)}.")
    names = tuple(str(name) for name in pair)
    if len(names) != 2 or not all(names):
        raise KnowledgeError(f"Expected an edge such as 'cause -> effect' or ['cause', 'effect'], got {_shown(edge)}.")
    cause, effect = names
    if cause == effect:
        raise KnowledgeError(f"The edge {_arrow((cause, effect))} joins a variable to itself: remove it.")
    return cause, effect


def _edges(value: Any, kind: str) -> tuple[Edge, ...]:
    return tuple(dict.fromkeys(parse_edge(edge) for edge in _listed(value, kind)))


def _names(value: Any, kind: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for name in _listed(value, kind)))


def _tiers(value: Any, kind: str) -> tuple[tuple[str, ...], ...]:
    tiers = tuple(_names(tier, f"each of the {kind}") for tier in _listed(value, kind))
    home: dict[str, int] = {}
    for number, members in enumerate(tiers, start=1):
        for name in members:
            if name in home:
                raise KnowledgeError(f"{name!r} is in tiers {home[name]} and {number}: a variable has one tier.")
            home[name] = number
    return tuple(tier for tier in tiers if tier)


def _listed(value: Any, kind: str) -> list[Any]:
    """The entries of a list; text stands for a list of one, None for an empty one."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise KnowledgeError(f"Expected a list for {kind}, got {_shown(value)}.")
    # Sets have no order of their own: sorted, so that the same knowledge is the same object on every run.
    return sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)


def _check(knowledge: Knowledge) -> None:
    """KnowledgeError if no graph can obey. That is all to check: otherwise the required edges alone are one."""
    tier_of = {name: number for number, members in enumerate(knowledge.tiers, start=1) for name in members}
    for edge in knowledge.required:
        cause, effect = edge
        reasons = {
            "it is also forbidden": edge in knowledge.forbidden,
            f"{effect!r} is a root": effect in knowledge.roots,
            f"{cause!r} is a leaf": cause in knowledge.leaves,
            f"{cause!r} is in tier {tier_of.get(cause)} and {effect!r} in the earlier tier {tier_of.get(effect)}": (
                cause in tier_of and effect in tier_of and tier_of[cause] > tier_of[effect]
            ),
            "it is not in the search space": bool(knowledge.search_space) and edge not in knowledge.search_space,
        }
        if broken := [reason for reason, holds in reasons.items() if holds]:
            raise KnowledgeError(
                f"The edge {_arrow(edge)} is required, but {' and '.join(broken)}: give up one of them."
            )
    names = tuple(dict.fromkeys(name for edge in knowledge.required for name in edge))
    if cycle := find_cycle(_edge_matrix(knowledge.required, names)):
        around = [names[variable] for variable in (*cycle, cycle[0])]
        raise KnowledgeError(f"The required edges form a cycle, {_arrow(around)}: remove one of them.")


def _edge_matrix(edges: Iterable[Edge], names: Sequence[str]) -> NDArray[np.bool_]:
    """The edges among the variables `names` as a matrix.  (P, P)"""
    place = {name: index for index, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=bool)
    for cause, effect in edges:
        matrix[place[cause], place[effect]] = True
    return matrix


def _parse_toml(text: str) -> Any:
    for module in ("tomllib", "tomli"):  # tomllib is in the standard library from Python 3.11 on
        try:
            return importlib.import_module(module).loads(text)
        except ModuleNotFoundError:
            continue
    raise KnowledgeError("Reading TOML needs Python 3.11 or `pip install tomli`; a .json file works everywhere.")


def _arrow(names: Iterable[str]) -> str:
    return " -> ".join(repr(name) for name in names)


def _shown(value: Any) -> str:
    """A value as an error message shows it, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _closest(name: str, known: Iterable[str]) -> str:
    """A question with the known name nearest in spelling, or nothing."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" (did you mean {by_lower[matches[0]]!r}?)" if matches else ""
