"""Which inputs an encoder needs to make use of a part of a table. Nothing heavy is imported here: `check` asks too."""

from __future__ import annotations

from collections.abc import Iterable

INPUTS_OF_PARTS = {
    "levels": {"functions", "basis_correlations", "kinds"},
    "observed": {"holes", "observed_shares"},
    "intervened": {"interventions", "intervention_shifts"},
}
"""The inputs without which an encoder would overlook a part of a table."""


def parts_read(inputs: Iterable[str]) -> frozenset[str]:
    """The parts of a table, beside its values, that an encoder with these inputs makes use of."""
    given = set(inputs)
    return frozenset(part for part, needed in INPUTS_OF_PARTS.items() if needed <= given)
