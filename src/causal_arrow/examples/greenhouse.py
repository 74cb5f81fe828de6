"""The series of an imaginary greenhouse, and the equations behind it: `python -m causal_arrow.examples.greenhouse`.

Every day has a row. Watering reacts to dry soil one day later, so the summary graph has a cycle while the window graph
has none.

    sun          = 0.6 sun[t−1] + Laplace(1)
    temperature  = 0.5 temperature[t−1] + 0.7 sun + Laplace(0.6)
    watering     = −0.6 soil[t−1] + Laplace(0.8)
    soil         = 0.6 soil[t−1] + 0.8 watering[t−1] − 0.4 temperature[t−1] + Laplace(0.6)
    growth       = 0.4 growth[t−1] + 0.5 soil[t−2] + 0.5 sun[t−1] + Laplace(0.7)

All are deviations from the usual values, each in its own unit.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from causal_arrow.examples import write_tables

DAYS = 500
WARM_UP = 100
SEED = 7

EDGES = (
    ("sun", "sun", 1),
    ("temperature", "temperature", 1),
    ("sun", "temperature", 0),
    ("soil", "watering", 1),
    ("soil", "soil", 1),
    ("watering", "soil", 1),
    ("temperature", "soil", 1),
    ("growth", "growth", 1),
    ("soil", "growth", 2),
    ("sun", "growth", 1),
)
"""Cause, effect and lag."""


def draw_days(count: int, random: np.random.Generator) -> pd.DataFrame:
    """Days by the equations above."""
    total = count + WARM_UP
    noise = random.laplace(size=(total, 5)) * [1.0, 0.6, 0.8, 0.6, 0.7]
    sun, temperature, watering, soil, growth = np.zeros((5, total))
    for t in range(2, total):
        sun[t] = 0.6 * sun[t - 1] + noise[t, 0]
        temperature[t] = 0.5 * temperature[t - 1] + 0.7 * sun[t] + noise[t, 1]
        watering[t] = -0.6 * soil[t - 1] + noise[t, 2]
        soil[t] = 0.6 * soil[t - 1] + 0.8 * watering[t - 1] - 0.4 * temperature[t - 1] + noise[t, 3]
        growth[t] = 0.4 * growth[t - 1] + 0.5 * soil[t - 2] + 0.5 * sun[t - 1] + noise[t, 4]
    columns = {"sun": sun, "temperature": temperature, "watering": watering, "soil": soil, "growth": growth}
    frame = pd.DataFrame({name: values[WARM_UP:].round(3) for name, values in columns.items()})
    frame.insert(0, "day", pd.date_range("2024-01-01", periods=count).strftime("%Y-%m-%d"))
    return frame


def make_tables() -> dict[str, pd.DataFrame]:
    """The bundled series: 500 days."""
    return {"greenhouse": draw_days(DAYS, np.random.default_rng(SEED))}


if __name__ == "__main__":
    write_tables(make_tables())
