"""The table of an imaginary beach, and the equations behind it: `python -m causal_arrow.examples.beach`.

On hot days more ice cream is sold and more people swim. Neither causes the other: leave the temperature out of the
table, and it becomes a hidden common cause of the two.

    temperature  Unif(14, 34)
    weekend      yes with probability 2/7
    price        Unif(1.5, 3.5)
    ice_cream    = 120 + 9 (temperature − 24) − 45 (price − 2.5) + Laplace(14)
    swimmers     = 400 + 28 (temperature − 24) + 180 [weekend] + Laplace(40)
    rescues      = 0.5 + 0.006 swimmers + Gamma(2, 0.5)
    litter       = 5 + 0.05 ice_cream + 0.02 swimmers + Unif(−3, 3)
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from causal_arrow.examples import write_tables

DAYS = 400
SEED = 20

EDGES = (
    ("temperature", "ice_cream"),
    ("price", "ice_cream"),
    ("temperature", "swimmers"),
    ("weekend", "swimmers"),
    ("swimmers", "rescues"),
    ("ice_cream", "litter"),
    ("swimmers", "litter"),
)
EFFECTS = {("ice_cream", "rescues"): 0.0, ("ice_cream", "litter"): 0.05, ("swimmers", "rescues"): 0.006}
"""The mean change of the second if the first grows by one."""


def draw_days(count: int, random: np.random.Generator) -> pd.DataFrame:
    """Observations by the equations above."""
    temperature = random.uniform(14, 34, size=count)
    weekend = random.uniform(size=count) < 2 / 7
    price = random.uniform(1.5, 3.5, size=count)
    ice_cream = 120 + 9 * (temperature - 24) - 45 * (price - 2.5) + random.laplace(scale=14, size=count)
    swimmers = 400 + 28 * (temperature - 24) + 180 * weekend + random.laplace(scale=40, size=count)
    rescues = 0.5 + 0.006 * swimmers + random.gamma(2, 0.5, size=count)
    litter = 5 + 0.05 * ice_cream + 0.02 * swimmers + random.uniform(-3, 3, size=count)
    return pd.DataFrame(
        {
            "temperature": temperature.round(1),
            "weekend": weekend.astype(int),
            "price": price.round(2),
            "ice_cream": ice_cream.round(),
            "swimmers": swimmers.round(),
            "rescues": rescues.round(1),
            "litter": litter.round(1),
        }
    )


def make_tables() -> dict[str, pd.DataFrame]:
    """The bundled table: 400 days."""
    return {"beach": draw_days(DAYS, np.random.default_rng(SEED))}


if __name__ == "__main__":
    write_tables(make_tables())
