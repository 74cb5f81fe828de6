"""Beliefs: statements about a causal graph that are probably true, folded into the distribution as evidence.

A belief of probability p multiplies the probability of each graph by p if its statement holds there and by 1 − p if
not. So 1 is knowledge, 1/2 changes nothing, and several beliefs multiply, as independent evidence does. Beliefs about
one edge, about two variables' order or about a hidden cause are log-odds of a pair, and exact; those about a whole
variable or a path weigh drawn graphs (`decoding.py`).
"""

# P variables, K drawn graphs

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.errors import KnowledgeError
from causal_arrow.text import Readable, shown

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# What looks back keeps a search in a million blanks or dashes from starting again at each.
JOINTS = {
    "hidden": (re.compile(r"(?<!\s)\s*(?:<-+>|↔)\s*"), "{} <-> {}", "{} and {} share a hidden cause"),
    "edge": (re.compile(r"(?<!\s)\s*(?:(?<!-)-+>|→)\s*"), "{} -> {}", "{} is a direct cause of {}"),
    "path": (re.compile(r"(?<!\s)\s*(?:(?<!~)~+>|⇝)\s*"), "{} ~> {}", "{} causes {}, directly or not"),
    "before": (re.compile(r"(?<!\s)\s+before\s+"), "{} before {}", "{} comes before {}"),
}
"""Statements about two variables: the sign between their names, how it is written, and its words."""
WHOLES = {"root": "nothing in the table causes {}", "leaf": "{} causes nothing in the table"}
"""Statements about one variable, whose name follows the word."""
FIELDS = ("statement", "probability", "who", "why")
MAX_TEXT = 1000  # characters of who believes something, and why


@dataclass(frozen=True)
class Belief:
    """A statement about the graph, how probable it is, who says so, and why.

    Examples
    --------
    >>> from causal_arrow.graphs.beliefs import Belief
    >>> print(Belief("root age", 0.8, who="Dr. Chen"))
    nothing in the table causes age (0.8, Dr. Chen)
    """

    statement: str
    """`"a -> b"` (a is a direct cause of b), `"a ~> b"` (a cause, directly or not), `"a before b"` in the causal order,
    `"root a"` (nothing in the table causes a), `"leaf a"` (a causes nothing in the table), or `"a <-> b"` (a hidden
    cause of both)."""
    probability: float
    """Probability that it is true, by all its author knows except this table: 1 is knowledge, 0.5 changes nothing."""
    who: str = ""
    """The author of the belief: a person, a paper, a language model."""
    why: str = ""
    """The reason."""
    kind: str = field(init=False, repr=False, compare=False)
    """ "hidden", "edge", "path", "before", "root" or "leaf"."""
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The one or two variables."""

    def __post_init__(self) -> None:
        kind, names = _parsed(self.statement)
        p = self.probability
        if not isinstance(p, numbers.Real) or isinstance(p, bool | np.bool_) or not 0 <= float(p) <= 1:
            raise KnowledgeError(f"Expected the probability of {self.statement!r} to be from 0 to 1, got {shown(p)}.")
        for text in (self.who, self.why):
            if not isinstance(text, str) or len(text) > MAX_TEXT:
                raise KnowledgeError(f"Expected who and why of a belief as text of up to {MAX_TEXT:,} characters.")
        statement = JOINTS[kind][1].format(*names) if kind in JOINTS else f"{kind} {names[0]}"
        for name, value in {"kind": kind, "names": names, "statement": statement, "probability": float(p)}.items():
            object.__setattr__(self, name, value)

    @property
    def log_odds(self) -> float:
        """log p / (1 − p): the weight of evidence; infinite for what is certain."""
        if self.probability in (0.0, 1.0):
            return math.copysign(math.inf, self.probability - 0.5)
        return math.log(self.probability) - math.log1p(-self.probability)

    def __str__(self) -> str:
        words = JOINTS[self.kind][2] if self.kind in JOINTS else WHOLES[self.kind]
        behind = ", ".join(filter(None, [f"{self.probability:g}", self.who, self.why]))
        return f"{words.format(*self.names)} ({behind})"

    def to_dict(self) -> dict[str, Any]:
        """The belief as JSON can hold it."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name) != ""}


@dataclass(frozen=True, repr=False)
class WeighedBelief(Readable):
    """A belief next to what the data say about its statement.

    Examples
    --------
    >>> from causal_arrow.graphs.beliefs import Belief, WeighedBelief
    >>> weighed = WeighedBelief(Belief("root age", 0.8), 0.5, 0.8)
    >>> print(weighed)
    Believed: nothing in the table causes age (0.8). Without beliefs 0.50, with all of them 0.80.
    """

    belief: Belief
    """The belief itself."""
    without: float
    """Probability by the data and what is known, without any belief."""
    with_beliefs: float
    """Probability by the data, what is known and all beliefs."""

    def __str__(self) -> str:
        if math.isnan(self.without):
            return f"Believed: {self.belief}. The model has no probability of it."
        return f"Believed: {self.belief}. Without beliefs {self.without:.2f}, with all of them {self.with_beliefs:.2f}."

    def to_dict(self) -> dict[str, Any]:
        """The belief and both probabilities as JSON can hold them."""
        shares = {"without": self.without, "with_beliefs": self.with_beliefs}
        rounded = {name: None if math.isnan(share) else round(share, 6) for name, share in shares.items()}
        return {**self.belief.to_dict(), **rounded}


def read_beliefs(entries: Iterable[Any] | Mapping[str, Any] | None) -> tuple[Belief, ...]:
    """Beliefs from a mapping {statement: probability}, or from a list of Belief, mappings or pairs.

    Those that name the same statement with the same author are the same evidence: saying both is an error.
    """
    if entries is None:
        return ()
    if isinstance(entries, Belief) or (isinstance(entries, Mapping) and "statement" in entries):
        entries = [entries]
    elif isinstance(entries, Mapping):
        entries = entries.items()
    if isinstance(entries, str | bytes) or not isinstance(entries, Iterable):
        raise KnowledgeError(f"Expected beliefs such as {{'root age': 0.8}}, got {shown(entries)}.")
    beliefs = tuple(dict.fromkeys(map(_read, entries)))
    said: dict[tuple[str, str], float] = {}
    for belief in beliefs:
        if (before := said.setdefault((belief.statement, belief.who), belief.probability)) != belief.probability:
            who = f" by {belief.who}" if belief.who else ""
            raise KnowledgeError(
                f"{belief.statement!r} is believed{who} with probability {before:g} and with {belief.probability:g}: "
                "keep one of them, or name two authors with `who`."
            )
    return beliefs


def _read(entry: Any) -> Belief:
    if isinstance(entry, Belief):
        return entry
    if isinstance(entry, Mapping) and {"statement", "probability"} <= set(entry) <= set(FIELDS):
        return Belief(**entry)
    if isinstance(entry, tuple | list) and len(entry) == 2:
        return Belief(*entry)
    raise KnowledgeError(f"Expected a belief with statement, probability and perhaps who and why, got {shown(entry)}.")


def _parsed(statement: Any) -> tuple[str, tuple[str, ...]]:
    if isinstance(statement, str):
        text = statement.strip()
        for kind, (joint, _, _) in JOINTS.items():
            names = tuple(joint.split(text))
            if len(names) == 2 and all(names) and "*" not in names:
                if names[0] == names[1]:
                    raise KnowledgeError(f"The belief {statement!r} joins a variable to itself: remove it.")
                return kind, tuple(sorted(names)) if kind == "hidden" else names
        word, _, name = text.partition(" ")
        if word in WHOLES and name.strip() and name.strip() != "*":
            return word, (name.strip(),)
    raise KnowledgeError(
        "Expected a statement such as 'a -> b', 'a ~> b', 'a before b', 'root a', 'leaf a' or 'a <-> b', "
        f"got {shown(statement)}."
    )


@dataclass(frozen=True, eq=False)
class Leaning:
    """Beliefs as log-odds, about variables by index."""

    edges: Floats  # (P, P): that the edge j -> k is there
    orders: Floats  # (P, P): that j comes before k
    hidden: Floats  # (P, P): that the two share a hidden cause
    wholes: tuple[tuple[str, tuple[int, ...], float], ...] = ()  # kind, variables, log-odds

    @classmethod
    def of(cls, beliefs: Sequence[Belief], names: Sequence[str]) -> Leaning | None:
        """The evidence about variables of these names; None if nothing is believed."""
        matrices = dict(zip(("edge", "before", "hidden"), np.zeros((3, len(names), len(names))), strict=True))
        wholes = []
        index_of = {name: index for index, name in enumerate(names)}
        for belief in beliefs:
            indices = tuple(index_of[name] for name in belief.names)
            if belief.kind in matrices:
                matrices[belief.kind][indices] += belief.log_odds
                if belief.kind == "hidden":
                    matrices[belief.kind][indices[::-1]] += belief.log_odds
            elif belief.log_odds:
                wholes.append((belief.kind, indices, belief.log_odds))
        if not wholes and not any(matrix.any() for matrix in matrices.values()):
            return None
        return cls(matrices["edge"], matrices["before"], matrices["hidden"], tuple(wholes))

    def rearranged(self, indices: NDArray[np.intp]) -> Leaning:
        """The same evidence with the variables renumbered: variable i is `indices[i]` here."""
        grid, back = np.ix_(indices, indices), np.argsort(indices)
        wholes = tuple((kind, tuple(int(back[index]) for index in about), odds) for kind, about, odds in self.wholes)
        return Leaning(self.edges[grid], self.orders[grid], self.hidden[grid], wholes)

    def is_same(self, other: Leaning | None) -> bool:
        """Whether the other says the same about the variables with the same indices."""
        if other is None or set(self.wholes) != set(other.wholes):
            return False
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("edges", "orders", "hidden"))

    def log_weights(self, graphs: Bools) -> Floats:
        """log of the product of p where a statement holds and 1 − p where not, at most 0.  (K,)"""
        total = np.zeros(len(graphs))
        for kind, about, odds in self.wholes:
            agrees = holds(kind, about, graphs) == (odds > 0)
            total -= np.where(agrees, 0.0, abs(odds))
        return total


def holds(kind: str, about: Sequence[int], graphs: Bools) -> Bools:
    """Whether a statement about edges or paths holds in each graph.  (K,)"""
    if kind == "edge":
        return graphs[:, about[0], about[1]]
    if kind == "root":
        return np.asarray(~graphs[:, :, about[0]].any(axis=1))
    if kind == "leaf":
        return np.asarray(~graphs[:, about[0]].any(axis=1))
    reached, steps = graphs[:, about[0]], graphs.astype(np.float32)
    while True:  # one edge further each time
        further = reached | (reached[:, None].astype(np.float32) @ steps > 0)[:, 0]
        if np.array_equal(further, reached):
            return np.asarray(reached[:, about[1]])
        reached = further
