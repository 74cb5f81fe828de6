"""From a CSV file to the size of an effect: discover the graph, then let DoWhy identify, estimate and refute.

    pip install "causal-arrow[handover]"
    python examples/effect_estimate.py

The table is made here, so that the effect is known: a coupon leads to 2 more visits, a visit to 3 more spent, hence a
coupon to 6 more. Income drives who gets a coupon and how much is spent, so the plain difference between customers with
and without coupons is something else.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from dowhy import CausalModel

from causal_arrow.discovery.estimator import Arrow

TRUE_EFFECT = 2.0 * 3.0


@dataclass(frozen=True)
class Effect:
    """An average effect with its 95% interval, what was adjusted for, and the effect found for a shuffled treatment."""

    value: float
    low: float
    high: float
    adjusted_for: tuple[str, ...]
    placebo: float


def estimated_effect(table: pd.DataFrame, graph: nx.DiGraph, treatment: str, outcome: str) -> Effect | None:
    """The effect of the treatment on the outcome by a causal graph, or None if the graph has none.

    Without a directed path from treatment to outcome there is nothing to estimate: by such a graph the effect is zero,
    and DoWhy ends with an error if it is asked anyway.
    """
    if not nx.has_path(graph, treatment, outcome):
        return None
    model = CausalModel(table, treatment=treatment, outcome=outcome, graph=graph)
    estimand = model.identify_effect()
    method = "backdoor.linear_regression"
    estimate = model.estimate_effect(estimand, method_name=method, confidence_intervals=True)
    low, high = np.ravel(estimate.get_confidence_intervals())
    # A treatment handed out at random must have no effect. If this one has, the estimate is not to be trusted.
    refutation = model.refute_estimate(
        estimand, estimate, "placebo_treatment_refuter", placebo_type="permute", num_simulations=50, random_seed=0
    )
    return Effect(
        value=float(estimate.value),
        low=float(low),
        high=float(high),
        adjusted_for=tuple(estimand.get_backdoor_variables()),
        placebo=float(refutation.new_effect),
    )


def make_table(path: Path, customers: int = 1000) -> None:
    """Write the table of an imaginary shop."""
    random = np.random.default_rng(1)
    age = random.uniform(18, 80, size=customers)
    income = 20 + 0.4 * age + random.laplace(scale=6, size=customers)
    coupon = (random.uniform(size=customers) < 1 / (1 + np.exp((income - 40) / 6))).astype(int)
    visits = 5 + 2.0 * coupon + random.uniform(-2, 2, size=customers)
    spend = 3.0 * visits + 0.8 * income + random.uniform(-4, 4, size=customers)
    frame = pd.DataFrame({"age": age, "income": income, "coupon": coupon, "visits": visits, "spend": spend})
    frame.round(4).to_csv(path, index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="arrow-base", help="a bundled name, a folder or a file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shop.csv"
        make_table(file)
        table = pd.read_csv(file)
        # What the shop knows without any data: when things happen.
        known = {"tiers": [["age"], ["income"], ["coupon"], ["visits"], ["spend"]]}
        arrow = Arrow(options.model, knowledge=known).fit(file)

    print("Edges:")
    for edge in arrow.edges_:
        print(f"  {edge.source} -> {edge.target}  {edge.probability:.2f}")
    print(f"\nP(coupon causes spend) = {arrow.path_probability('coupon', 'spend'):.2f}")
    effect = estimated_effect(table, arrow.to_dowhy(), "coupon", "spend")
    if effect is None:
        print("This graph has no directed path from coupon to spend: by it, coupons have no effect.")
        return
    with_coupon = table["coupon"] == 1
    naive = table.loc[with_coupon, "spend"].mean() - table.loc[~with_coupon, "spend"].mean()
    print(f"\nAdjusted for {', '.join(effect.adjusted_for) or 'nothing'}:")
    print(f"  plain difference in spending  {naive:6.2f}")
    print(f"  effect of a coupon, DoWhy     {effect.value:6.2f}  (95% interval {effect.low:.2f} to {effect.high:.2f})")
    print(f"  effect built into the table   {TRUE_EFFECT:6.2f}")
    print(f"  effect of shuffled coupons    {effect.placebo:6.2f}  (far from 0 would refute the estimate)")
    print("Adjustment sets among 1000 possible graphs:")
    print(arrow.adjustment_set_frequencies("coupon", "spend").head(5).to_string(index=False))


if __name__ == "__main__":
    main()
