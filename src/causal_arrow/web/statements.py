"""What a person knows about the graph, in words: for the report and for comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from causal_arrow.graphs.knowledge import Knowledge

STATEMENTS = (
    ("required", "{} is required", " → "),
    ("forbidden", "{} is forbidden", " → "),
    ("roots", "nothing causes {}", ""),
    ("leaves", "{} causes nothing", ""),
    ("randomized", "{} was randomized", ""),
    ("no_hidden_cause", "{} share no hidden cause", " and "),
)
"""Kinds of statements about single edges, variables and pairs, their words, and what joins the two of a pair."""

MAX_NAMED = 12
"""Edges of a search space that its statement names."""


def statements(knowledge: Knowledge) -> list[str]:
    """Each statement as a sentence without its full stop; tiers are one statement, and so is a search space."""
    words = [
        template.format(entry if isinstance(entry, str) else joint.join(entry))
        for kind, template, joint in STATEMENTS
        for entry in getattr(knowledge, kind)
    ]
    if knowledge.tiers:
        words.append("; ".join(f"tier {index}: {', '.join(tier)}" for index, tier in enumerate(knowledge.tiers, 1)))
    words += [f"believed: {belief}" for belief in knowledge.beliefs]
    if knowledge.search_space:
        words.append(f"only these edges may exist: {_some(knowledge.search_space)}")
    return words


def _some(edges: Sequence[tuple[str, str]]) -> str:
    more = f" and {len(edges) - MAX_NAMED} more" if len(edges) > MAX_NAMED else ""
    return ", ".join(" → ".join(edge) for edge in edges[:MAX_NAMED]) + more
