"""From a CSV file to the size of an effect: discover the graph, then let DoWhy identify and estimate.

    pip install "causal-arrow[handover]"
    python examples/effect_estimate.py

The table is made here, so that the effect is known: a coupon leads to 2 more visits, a visit to 3 more spent, hence a
coupon to 6 more. Income drives who gets a coupon and how much is spent, so the plain difference between customers with
and without coupons is something else.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from dowhy import CausalModel

from causal_arrow.discovery.estimator import Arrow

TRUE_EFFECT = 2.0 * 3.0


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
    if not nx.has_path(arrow.causal_graph_, "coupon", "spend"):
        print("\nThis graph has no directed path from coupon to spend: by it, coupons have no effect.")
        return
    with_coupon = table["coupon"] == 1
    naive = table.loc[with_coupon, "spend"].mean() - table.loc[~with_coupon, "spend"].mean()

    model = CausalModel(table, treatment="coupon", outcome="spend", graph=arrow.to_dowhy())
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    estimate = model.estimate_effect(estimand, method_name="backdoor.linear_regression")
    print(f"\nAdjusted for {', '.join(estimand.get_backdoor_variables()) or 'nothing'}:")
    print(f"  plain difference in spending  {naive:6.2f}")
    print(f"  effect of a coupon, DoWhy     {estimate.value:6.2f}")
    print(f"  effect built into the table   {TRUE_EFFECT:6.2f}")
    print(f"\nP(coupon causes spend) = {arrow.path_probability('coupon', 'spend'):.2f}")
    print("Adjustment sets among 1000 possible graphs:")
    print(arrow.adjustment_set_frequencies("coupon", "spend").head(5).to_string(index=False))


if __name__ == "__main__":
    main()
