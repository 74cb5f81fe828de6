"""Background knowledge about a causal graph, checked and compiled into constraints on its edges.

`decoding.py` finds graphs that obey; nothing here needs a network or a table, only the names of the variables. What is
only probable is a belief (`beliefs.py`).
"""

from __future__ import annotations

import graphlib
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import KnowledgeError, Remedy
from causal_arrow.graphs.beliefs import JOINTS, Belief, Leaning, read_beliefs
from causal_arrow.graphs.dag import transitive_closure
from causal_arrow.inputs import as_list, parse_json, parse_toml, read_bytes
from causal_arrow.text import closest, shown

# P variables

Edge = tuple[str, str]

# What pgmpy's ExpertKnowledge calls the same things.
PGMPY_NAMES = {
    "required_edges": "required",
    "forbidden_edges": "forbidden",
    "temporal_order": "tiers",
    "root_nodes": "roots",
}

ARROW, TWO_HEADED_ARROW = JOINTS["edge"][0], JOINTS["hidden"][0]
ANY = "*"  # stands for every variable in edges and pairs, and for every other variable in tiers
CERTAIN = {
    ("edge", 1.0): "required",
    ("edge", 0.0): "forbidden",
    ("root", 1.0): "roots",
    ("leaf", 1.0): "leaves",
    ("hidden", 0.0): "no_hidden_cause",
}
"""Beliefs, by kind and probability, that are knowledge."""
ALL_PAIRS = "all"  # in `no_hidden_cause`: no two variables share one
MAX_BYTES = 2**24  # bytes of a knowledge file: sixteen megabytes hold a million edges
MAX_NAMED = 5  # unknown variables that a message names


@dataclass(frozen=True)
class Constraints:
    """Knowledge about the variables `names`, as matrices that cannot be written to, [j, k] about the edge j -> k.

    `required` edges are in every graph and `forbidden` edges in none, among them those that would close a cycle with
    the required ones. `precedence[j, k]`: required edges and tiers lead from j to k, so every causal order has j before
    k.  (P, P) each
    """

    names: tuple[str, ...]
    required: NDArray[np.bool_]
    forbidden: NDArray[np.bool_]
    precedence: NDArray[np.bool_]
    ranks: NDArray[np.int64]
    """Place in the order shown, as far as edges allow: -1 for roots, which come first, 1 for leaves, else 0.  (P,)"""
    unconfounded: NDArray[np.bool_] | Literal[False] = False
    """Pairs that share no hidden cause: a symmetric matrix, or False for none."""
    evidence: Leaning | None = None
    """Evidence from beliefs, if there are any."""

    def __post_init__(self) -> None:
        for matrix in (self.required, self.forbidden, self.precedence, self.ranks, self.unconfounded):
            if matrix is not False:
                matrix.flags.writeable = False

    def allows(self, adjacency: NDArray[Any]) -> bool:
        """Whether a graph has all required edges, no forbidden ones, and no path against the precedence."""
        edges = np.asarray(adjacency).astype(bool)
        if not edges[self.required].all() or edges[self.forbidden].any():
            return False
        return not (transitive_closure(edges) & self.precedence.T).any()

    def is_empty(self) -> bool:
        """Whether every graph is allowed."""
        return not (self.required.any() or self.forbidden.any() or self.evidence)

    def is_same(self, other: Constraints) -> bool:
        """Whether the other constrains the variables with the same indices in the same way, whatever their names."""
        matrices = ("required", "forbidden", "precedence", "unconfounded")
        believed = other.evidence is None if self.evidence is None else self.evidence.is_same(other.evidence)
        return believed and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in matrices)

    def led_by(self, names: Iterable[str]) -> Constraints:
        """The constraints with these variables first in every causal order, uncaused.

        One that something is known to come before is left as it is.
        """
        leading = _among(self.names, names) & ~self.precedence.any(axis=0)
        return self._preceded(leading[:, None] & ~leading, leading) if leading.any() else self

    def ordered(self, before: Iterable[str], after: Iterable[str]) -> Constraints:
        """The constraints with the first variables before the others in every causal order."""
        return self._preceded(_among(self.names, before)[:, None] & _among(self.names, after), False)

    def _preceded(self, before: NDArray[np.bool_], uncaused: NDArray[np.bool_] | bool) -> Constraints:
        precedence = transitive_closure(self.precedence | before)
        forbidden = self.forbidden | precedence.T | uncaused
        np.fill_diagonal(forbidden, False)
        return replace(self, forbidden=forbidden, precedence=precedence)

    def without_hidden_causes_of(self, names: Iterable[str]) -> Constraints:
        """The constraints with no hidden cause that these variables share with any other."""
        spared = _among(self.names, names)
        if not spared.any():
            return self
        unconfounded = np.broadcast_to(self.unconfounded, self.required.shape) | spared | spared[:, None]
        np.fill_diagonal(unconfounded, False)
        return replace(self, unconfounded=unconfounded)

    def rearranged(self, indices: NDArray[np.intp]) -> Constraints:
        """The same constraints, whose variable i is variable `indices[i]` of these."""
        grid = np.ix_(indices, indices)
        return Constraints(
            names=tuple(self.names[index] for index in indices),
            required=self.required[grid],
            forbidden=self.forbidden[grid],
            precedence=self.precedence[grid],
            ranks=self.ranks[indices],
            unconfounded=self.unconfounded if self.unconfounded is False else self.unconfounded[grid],
            evidence=None if self.evidence is None else self.evidence.rearranged(indices),
        )


@dataclass(frozen=True, init=False)
class Knowledge:
    """Background knowledge about a causal graph, by the names of its variables. A contradiction is a KnowledgeError.

    An edge is a pair of names or the text "cause -> effect". Except in required edges, `*` stands for every variable,
    as in "* -> age".

    Parameters
    ----------
    required
        Edges that every graph has.
    forbidden
        Edges that no graph has; the opposite direction stays possible.
    tiers
        Groups of variables, the earliest first, as lists or as "age, sex; bmi; outcome": no path leads from a later
        tier to an earlier one. Edges within a tier are free. A variable that is in no tier is not constrained; `*` is
        every variable that is in no other tier, as in "age, sex; *".
    roots
        Variables without causes in the table.
    leaves
        Variables without effects in the table.
    search_space
        The only edges that may exist; all of them by default.
    no_hidden_cause
        Pairs, as two names or as "a <-> b", that share no cause outside the table; "all" for every pair.
    randomized
        Variables whose values were drawn by chance in a trial: nothing in or outside the table causes them, and their
        effects are estimated as those of a trial.
    beliefs
        Statements that are probably true, such as {"root age": 0.8}, or a list of `Belief` or of mappings with
        statement, probability, who and why.
    **pgmpy_names
        The names of pgmpy's ExpertKnowledge (`required_edges`, `forbidden_edges`, `temporal_order`, `root_nodes`) mean
        the same.

    Examples
    --------
    The examples of the methods below continue this one.

    >>> from causal_arrow import Knowledge
    >>> knowledge = Knowledge(
    ...     required=["smoking -> cancer"],
    ...     forbidden=[("cancer", "age")],
    ...     tiers=[["age", "sex"], ["smoking"]],
    ... )
    >>> knowledge.required
    (('smoking', 'cancer'),)
    >>> (knowledge | Knowledge(roots=["age"])).roots  # both at once
    ('age',)
    """

    required: tuple[Edge, ...]
    forbidden: tuple[Edge, ...]
    tiers: tuple[tuple[str, ...], ...]
    roots: tuple[str, ...]
    leaves: tuple[str, ...]
    search_space: tuple[Edge, ...]  # empty: every edge may exist, as in pgmpy
    no_hidden_cause: tuple[Edge, ...]  # each pair in the order of the alphabet
    randomized: tuple[str, ...]
    beliefs: tuple[Belief, ...]

    def __init__(
        self,
        required: Iterable[Any] | str = (),
        forbidden: Iterable[Any] | str = (),
        tiers: Iterable[Iterable[Any] | str] = (),
        roots: Iterable[Any] | str = (),
        leaves: Iterable[Any] | str = (),
        search_space: Iterable[Any] | str = (),
        no_hidden_cause: Iterable[Any] | str = (),
        randomized: Iterable[Any] | str = (),
        beliefs: Iterable[Any] | Mapping[str, Any] = (),
        **pgmpy_names: Any,
    ) -> None:
        given: dict[str, list[Any]] = {
            "required": _entries(required, "required"),
            "forbidden": _entries(forbidden, "forbidden"),
            "tiers": _entries(_split_tiers(tiers), "tiers"),
            "roots": _entries(roots, "roots"),
            "leaves": _entries(leaves, "leaves"),
            "search_space": _entries(search_space, "search_space"),
            "no_hidden_cause": _entries(no_hidden_cause, "no_hidden_cause"),
            "randomized": _entries(randomized, "randomized"),
        }
        for name, value in pgmpy_names.items():
            if (ours := PGMPY_NAMES.get(name)) is None:
                raise _unknown_kind(name)
            if given[ours]:
                raise KnowledgeError(f"{name!r} and {ours!r} are the same thing: give one of the two.")
            given[ours] = _entries(_split_tiers(value) if ours == "tiers" else value, name)
        for name, entries in given.items():
            object.__setattr__(self, name, _READERS[name](entries, name))
        object.__setattr__(self, "beliefs", read_beliefs(beliefs))
        _check(self)
        self.with_certain_beliefs()  # which is checked too

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Knowledge:
        """Read the arguments of `Knowledge`, by our names or pgmpy's, from a mapping as JSON or TOML files hold it."""
        if not isinstance(settings, Mapping):
            raise KnowledgeError(f"Expected named lists such as required, forbidden, tiers; got {shown(settings)}.")
        kinds = {*PGMPY_NAMES, *(field.name for field in fields(cls))}
        for name in settings:
            if not isinstance(name, str) or name not in kinds:
                raise _unknown_kind(name)
        return cls(**settings)

    @classmethod
    def from_file(cls, path: str | Path) -> Knowledge:
        """Read a TOML file, such as `tiers = [["age", "sex"], ["smoking"]]` on one of its lines, or a JSON file.

        Examples
        --------
        >>> from pathlib import Path
        >>> _ = Path("known.toml").write_text('required = ["smoking -> cancer"]')
        >>> Knowledge.from_file("known.toml").required
        (('smoking', 'cancer'),)
        """
        if not isinstance(path, str | Path):
            raise KnowledgeError(f"Expected the path of a .toml or .json file with knowledge, got {shown(path)}.")
        path = Path(path)
        if ARROW.search(str(path)) and path.suffix.lower() not in (".toml", ".json"):
            raise KnowledgeError(
                f"Expected the path of a .toml or .json file with knowledge, got the edge {shown(str(path))}.",
                [Remedy("require", (str(path),))],
            )
        parse = {".toml": _parse_toml, ".json": parse_json}.get(path.suffix.lower())
        if parse is None:
            raise KnowledgeError(f"Cannot read knowledge from {shown(path.name)}: expected a .toml or .json file.")
        try:
            content = read_bytes(path, MAX_BYTES)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise KnowledgeError(f"Cannot open the knowledge file {str(path)!r}: {why}.") from error
        try:
            settings = parse(content.decode("utf-8-sig"))
        except ValueError as error:  # both parsers' errors, and bytes that are not text
            raise KnowledgeError(f"{path.name!r} is not valid {path.suffix[1:].upper()}: {error}.") from error
        try:
            return cls.from_dict(settings)
        except KnowledgeError as error:
            raise KnowledgeError(f"In {path.name!r}: {error.message}", error.remedies) from error

    @classmethod
    def from_pgmpy(cls, expert_knowledge: Any) -> Knowledge:
        """Convert a pgmpy ExpertKnowledge object.

        Its `orientations`, directions that hold if the edge exists, forbid the opposite edges. A function that orients
        edges (`orientation_fn`) cannot be checked, and is refused.

        Examples
        --------
        >>> from pgmpy.causal_discovery import ExpertKnowledge
        >>> known = ExpertKnowledge(required_edges=[("smoking", "cancer")])
        >>> Knowledge.from_pgmpy(known).required
        (('smoking', 'cancer'),)
        """
        if getattr(expert_knowledge, "orientation_fn", None) is not None:
            raise KnowledgeError("An ExpertKnowledge with an orientation_fn cannot be used: list the edges it orients.")
        given = {
            name: _entries(getattr(expert_knowledge, name, None), name)
            for name in (*PGMPY_NAMES, "search_space", "orientations")
        }
        against = [parse_edge(edge)[::-1] for edge in given.pop("orientations")]
        return cls(**{**given, "forbidden_edges": [*given["forbidden_edges"], *against]})

    def __or__(self, other: Knowledge) -> Knowledge:
        """Combine both. Only one may have tiers, and one a search space: two lists of either do not add up."""
        for name in ("tiers", "search_space"):
            if getattr(self, name) and getattr(other, name):
                raise KnowledgeError(f"Two sources of knowledge both give {name}: keep them in one of the two.")
        return Knowledge(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        )

    def with_certain_beliefs(self) -> Knowledge:
        """The knowledge with beliefs of probability 0 or 1 that it can express as its own."""
        certain: dict[str, list[Any]] = {}
        kept = []
        for belief in self.beliefs:
            if home := CERTAIN.get((belief.kind, belief.probability)):
                certain.setdefault(home, []).append(belief.names if len(belief.names) == 2 else belief.names[0])
            else:
                kept.append(belief)
        return self.without_beliefs() | Knowledge(**certain, beliefs=kept) if certain else self

    def without_beliefs(self) -> Knowledge:
        """The knowledge alone, without what is only believed."""
        return Knowledge(**{field.name: getattr(self, field.name) for field in fields(self) if field.name != "beliefs"})

    def to_dict(self) -> dict[str, Any]:
        """The knowledge as JSON can hold it; `from_dict` reads it back."""

        def plain(entry: Any) -> Any:
            return list(entry) if isinstance(entry, tuple) else entry.to_dict() if isinstance(entry, Belief) else entry

        return {
            field.name: [plain(entry) for entry in getattr(self, field.name)]
            for field in fields(self)
            if getattr(self, field.name)
        }

    def variables(self) -> tuple[str, ...]:
        """Every name that the knowledge mentions, once, in the order of mention."""
        edges = (*self.required, *self.forbidden, *self.search_space, *self.no_hidden_cause)
        mentioned = [name for group in (*edges, *self.tiers) for name in group if name != ANY]
        believed = [name for belief in self.beliefs for name in belief.names]
        return tuple(dict.fromkeys((*mentioned, *self.roots, *self.leaves, *self.randomized, *believed)))

    def compile(self, names: Sequence[str]) -> Constraints:
        """The constraints on graphs over variables, in the order of `names`, which must hold all that are mentioned.

        Examples
        --------
        >>> bool(knowledge.compile(["age", "sex", "smoking", "cancer"]).required[2, 3])
        True
        """
        names = tuple(str(name) for name in names)
        index_of = {name: index for index, name in enumerate(names)}
        if unknown := [name for name in self.variables() if name not in index_of]:
            hints = "; ".join(f"{shown(name)}{_did_you_mean(name, names)}" for name in unknown[:MAX_NAMED])
            more = f"; and {len(unknown) - MAX_NAMED:,} more" if len(unknown) > MAX_NAMED else ""
            word = "a variable that is" if len(unknown) == 1 else "variables that are"
            raise KnowledgeError(f"Knowledge names {word} not in the table: {hints}{more}.")

        if (certain := self.with_certain_beliefs()) is not self:
            return certain.compile(names)
        required = _edge_matrix(self.required, names)
        forbidden = _edge_matrix(self.forbidden, names)
        tier = np.full(len(names), np.nan)  # comparisons with nan are false: no tier, nothing forbidden
        for number, members in enumerate(self.tiers):
            tier[[index_of[name] for name in members if name != ANY]] = number
            if ANY in members:
                others = set(names).difference(*self.tiers)
                tier[[index_of[name] for name in others]] = number
        is_root, is_leaf = _among(names, (*self.roots, *self.randomized)), _among(names, self.leaves)
        forbidden[:, is_root] = True
        forbidden[is_leaf, :] = True
        if self.search_space:
            forbidden |= ~_edge_matrix(self.search_space, names)
        settled = [belief for belief in self.beliefs if belief.kind == "before" and belief.probability in (0, 1)]
        surely = [(b.names[0], b.names[-1]) if b.probability else (b.names[-1], b.names[0]) for b in settled]
        precedence = transitive_closure(required | (tier[:, None] < tier) | _edge_matrix(surely, names))
        if precedence.diagonal().any():
            around = [repr(name) for name, closed in zip(names, precedence.diagonal(), strict=True) if closed]
            raise KnowledgeError(
                f"By what is certain, {', '.join(around[:MAX_NAMED])} would come before itself: give up a belief of "
                "probability 0 or 1, or the knowledge against it."
            )
        forbidden |= precedence.T
        np.fill_diagonal(forbidden, False)
        drawn = _among(names, self.randomized)
        unconfounded = _edge_matrix(self.no_hidden_cause, names)
        unconfounded = unconfounded | unconfounded.T | drawn | drawn[:, None]
        np.fill_diagonal(unconfounded, False)
        return Constraints(
            names=names,
            required=required,
            forbidden=forbidden,
            precedence=precedence,
            ranks=np.where(is_root, -1, np.where(is_leaf, 1, 0)),
            unconfounded=unconfounded,
            evidence=Leaning.of([belief for belief in self.beliefs if belief not in settled], names),
        )


def unconstrained(names: Sequence[str]) -> Constraints:
    """The constraints when nothing is known."""
    return Knowledge().compile(names)


def parse_edge(edge: Any) -> Edge:
    """The (cause, effect) of a pair of names or of text such as "smoking -> cancer"."""
    two_headed = isinstance(edge, str) and TWO_HEADED_ARROW.search(edge)
    pair = None if two_headed else _two_names(edge, ARROW)
    if pair is None:
        raise KnowledgeError(f"Expected an edge such as 'cause -> effect'{_or_pair(edge)}, got {shown(edge)}.")
    if pair[0] == pair[1] != ANY:
        raise KnowledgeError(f"The edge {_arrow(pair)} joins a variable to itself: remove it.")
    return pair


def _two_names(entry: Any, arrow: re.Pattern[str]) -> Edge | None:
    """The two names in a text with an arrow, or in a collection; None for anything else."""
    pair = arrow.split(entry.strip()) if isinstance(entry, str) else _members(entry)
    return (str(pair[0]), str(pair[1])) if pair and len(pair) == 2 and all(map(_is_name, pair)) else None


def _or_pair(entry: Any) -> str:
    """Another way to write two names, for callers that did not write text, as a command line always does."""
    return "" if isinstance(entry, str) else " or a list of two names"


def _pairs(entries: list[Any], kind: str) -> tuple[Edge, ...]:
    pairs = []
    for entry in entries:
        pair = (ANY, ANY) if entry == ALL_PAIRS else _two_names(entry, TWO_HEADED_ARROW)
        if pair is None or pair[0] == pair[1] != ANY:
            raise KnowledgeError(f"Expected two variables such as 'a <-> b'{_or_pair(entry)}, got {shown(entry)}.")
        pairs.append((min(pair), max(pair)))
    return tuple(dict.fromkeys(pairs))


def _edges(entries: list[Any], kind: str) -> tuple[Edge, ...]:
    return tuple(dict.fromkeys(parse_edge(edge) for edge in entries))


def _split_tiers(tiers: Any) -> Any:
    """Tiers as lists, where they come as text such as "age, sex; bmi; outcome"."""
    if not isinstance(tiers, str):
        return tiers
    return [[name.strip() for name in tier.split(",") if name.strip()] for tier in tiers.split(";")]


def _names(entries: list[Any], kind: str) -> tuple[str, ...]:
    for name in entries:
        if not _is_name(name):
            raise KnowledgeError(f"Expected names of variables in {kind}, got {shown(name)}.")
        if name == ANY and not kind.endswith("tiers"):
            raise KnowledgeError(
                f"Expected names of variables in {kind}, got '*': it has a meaning in edges and tiers."
            )
    return tuple(dict.fromkeys(map(str, entries)))


def _is_name(value: Any) -> bool:
    """Whether a value can name a variable: text, or a number, since data frames have columns called 0, 1, 2."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        return abs(cast(float, value)) < math.inf  # whole numbers may be too large for a float
    return isinstance(value, str) and value != ""


def _tiers(entries: list[Any], kind: str) -> tuple[tuple[str, ...], ...]:
    each = f"each of the {kind}"
    tiers = tuple(_names(_entries(tier, each), each) for tier in entries)
    home: dict[str, int] = {}
    for number, members in enumerate(tiers, start=1):
        for name in members:
            if name in home:
                raise KnowledgeError(f"{name!r} is in tiers {home[name]} and {number}: a variable has one tier.")
            home[name] = number
    return tuple(tier for tier in tiers if tier)


def _entries(value: Any, kind: str) -> list[Any]:
    """The entries of a list; text stands for a list of one, None for an empty one."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if (members := _members(value)) is None:
        raise KnowledgeError(f"Expected a list for {kind}, got {shown(value)}.")
    return members


def _members(value: Any) -> list[Any] | None:
    """The entries of a collection; None for anything else."""
    # Sets have no order: sorted, so that equal knowledge compiles to equal objects on every run.
    return sorted(value, key=str) if isinstance(value, set | frozenset) else as_list(value)


def _check(knowledge: Knowledge) -> None:
    """KnowledgeError if no graph can obey. That is all to check: otherwise the required edges alone are one."""
    tier_of = {name: number for number, members in enumerate(knowledge.tiers, start=1) for name in members}
    forbidden, search_space = set(knowledge.forbidden), set(knowledge.search_space)
    roots, leaves = {*knowledge.roots, *knowledge.randomized}, set(knowledge.leaves)
    if wide := [edge for edge in knowledge.required if ANY in edge]:
        raise KnowledgeError(f"Expected required edges between two named variables, got {_arrow(wide[0])}.")
    if ANY in tier_of:  # where all others are
        tier_of = {name: tier_of[ANY] for edge in knowledge.required for name in edge} | tier_of
    for edge in knowledge.required:
        cause, effect = edge
        reasons = {
            "it is also forbidden": _covers(forbidden, edge),
            f"{effect!r} is a root": effect in roots,
            f"{cause!r} is a leaf": cause in leaves,
            f"{cause!r} is in tier {tier_of.get(cause)} and {effect!r} in the earlier tier {tier_of.get(effect)}": (
                cause in tier_of and effect in tier_of and tier_of[cause] > tier_of[effect]
            ),
            "it is not in the search space": bool(search_space) and not _covers(search_space, edge),
        }
        if broken := [reason for reason, holds in reasons.items() if holds]:
            raise KnowledgeError(
                f"The edge {_arrow(edge)} is required, but {' and '.join(broken)}: give up one of them."
            )
    # A number stands between two tiers: after all members of the one before it, before all of the next.
    comes_after: dict[str | int, list[str | int]] = {}
    for cause, effect in knowledge.required:
        comes_after.setdefault(effect, []).append(cause)
    for number in range(1, len(knowledge.tiers) + 1):
        members = [name for name, home in tier_of.items() if home == number]
        comes_after[number] = [number - 1, *members]
        for name in members:
            comes_after.setdefault(name, []).append(number - 1)
    try:
        graphlib.TopologicalSorter(comes_after).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1][:-1]  # each comes before the next
        numbers_in = [index for index, entry in enumerate(cycle) if isinstance(entry, int)]
        if numbers_in:
            around = cycle[numbers_in[-1] + 1 :] + cycle[: numbers_in[0]]
            raise KnowledgeError(
                f"The required edges {_arrow(around)} lead from tier {tier_of[around[0]]} to the earlier tier "
                f"{tier_of[around[-1]]}: remove one of them, or change the tiers."
            ) from None
        first = cycle.index(min(cycle))
        around = [*cycle[first:], *cycle[:first], cycle[first]]
        raise KnowledgeError(f"The required edges form a cycle, {_arrow(around)}: remove one of them.") from None


def _edge_matrix(edges: Iterable[Edge], names: Sequence[str]) -> NDArray[np.bool_]:
    """The edges among the variables `names` as a matrix.  (P, P)"""
    index_of: dict[str, int | slice] = {name: index for index, name in enumerate(names)}
    index_of.setdefault(ANY, slice(None))
    matrix = np.zeros((len(names), len(names)), dtype=bool)
    for cause, effect in edges:
        matrix[index_of[cause], index_of[effect]] = True
    np.fill_diagonal(matrix, False)
    return matrix


def _covers(edges: set[Edge], edge: Edge) -> bool:
    """Whether an edge is among some, in which * stands for every variable."""
    cause, effect = edge
    return not edges.isdisjoint({edge, (ANY, effect), (cause, ANY), (ANY, ANY)})


def _among(names: Sequence[str], some: Iterable[str]) -> NDArray[np.bool_]:
    """True for names that are among some. Not by numpy, which ignores a NUL at the end of a name.  (P,)"""
    wanted = set(some)
    return np.array([name in wanted for name in names], dtype=bool)


def _parse_toml(text: str) -> Any:
    try:
        return parse_toml(text)
    except ModuleNotFoundError:
        sentence = "Reading TOML needs Python 3.11 or `pip install tomli`; a .json file works everywhere."
        raise KnowledgeError(sentence) from None


_READERS: dict[str, Callable[[list[Any], str], Any]] = {
    "required": _edges,
    "forbidden": _edges,
    "tiers": _tiers,
    "roots": _names,
    "leaves": _names,
    "search_space": _edges,
    "no_hidden_cause": _pairs,
    "randomized": _names,
}


def _arrow(names: Iterable[str]) -> str:
    """A path for a sentence, its middle left out if it is long."""
    steps = [repr(name) for name in names]
    return " -> ".join(steps if len(steps) <= 9 else [*steps[:4], f"({len(steps) - 8} more)", *steps[-4:]])


def _unknown_kind(name: Any) -> KnowledgeError:
    kinds = [*PGMPY_NAMES.values(), "leaves", "search_space", "no_hidden_cause", "beliefs", *PGMPY_NAMES]
    return KnowledgeError(f"Unknown kind of knowledge {shown(name)}{_did_you_mean(str(name), kinds)}.")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the known name nearest in spelling, or nothing."""
    near = closest(name, known)
    return f" (did you mean {near!r}?)" if near is not None else ""
