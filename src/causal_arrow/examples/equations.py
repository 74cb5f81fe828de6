"""The equations behind the imaginary tables of the examples: a hospital, a beach, a greenhouse.

**Hospital.** A new drug goes to those who are sickest, so patients with the drug stay longer than those without. The
drug shortens the stay all the same: it lowers the inflammation of the third day by 15, and each unit of that costs 0.12
days. Of `inflammation` and `day3` 6% are missing, by chance. In a second table, a trial, a coin decided on the drug.

    age          Unif(25, 90)
    smoker       yes with probability 0.3
    ward         north, south or west, whichever has a bed
    inflammation = 40 + 0.5 (age − 57) + 14 [smoker] + Laplace(8)
    drug         yes with probability σ((inflammation − 45) / 5)
    day3         = 10 + 0.9 inflammation − 15 [drug] + Unif(−8, 8)
    stay         = 1.5 + 0.12 day3 + {north 0, south 1.5, west −1} + Gamma(3, 0.6)

**Beach.** On hot days more ice cream is sold and more people swim. Neither causes the other: leave the temperature out
of the table, and it becomes a hidden common cause of the two.

    temperature  Unif(14, 34)
    weekend      yes with probability 2/7
    price        Unif(1.5, 3.5)
    ice_cream    = 120 + 9 (temperature − 24) − 45 (price − 2.5) + Laplace(14)
    swimmers     = 400 + 28 (temperature − 24) + 180 [weekend] + Laplace(40)
    rescues      = 0.5 + 0.006 swimmers + Gamma(2, 0.5)
    litter       = 5 + 0.05 ice_cream + 0.02 swimmers + Unif(−3, 3)

**Greenhouse.** Every day has a row. Watering reacts to dry soil one day later, so the summary graph has a cycle while
the window graph has none. All are deviations from the usual values, each in its own unit.

    sun          = 0.6 sun[t−1] + Laplace(1)
    temperature  = 0.5 temperature[t−1] + 0.7 sun + Laplace(0.6)
    watering     = −0.6 soil[t−1] + Laplace(0.8)
    soil         = 0.6 soil[t−1] + 0.8 watering[t−1] − 0.4 temperature[t−1] + Laplace(0.6)
    growth       = 0.4 growth[t−1] + 0.5 soil[t−2] + 0.5 sun[t−1] + Laplace(0.7)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

HOSPITAL_EDGES = (
    ("age", "inflammation"),
    ("smoker", "inflammation"),
    ("inflammation", "drug"),
    ("inflammation", "day3"),
    ("drug", "day3"),
    ("day3", "stay"),
    ("ward", "stay"),
)
HOSPITAL_EFFECTS = {("drug", "stay"): -15 * 0.12, ("drug", "day3"): -15.0, ("day3", "stay"): 0.12}
"""The mean change of the second if the first grows by one."""
BEACH_EDGES = (
    ("temperature", "ice_cream"),
    ("price", "ice_cream"),
    ("temperature", "swimmers"),
    ("weekend", "swimmers"),
    ("swimmers", "rescues"),
    ("ice_cream", "litter"),
    ("swimmers", "litter"),
)
BEACH_EFFECTS = {("ice_cream", "rescues"): 0.0, ("ice_cream", "litter"): 0.05, ("swimmers", "rescues"): 0.006}
GREENHOUSE_EDGES = (
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
KNOWN: dict[str, tuple[Sequence[tuple[Any, ...]], Mapping[tuple[str, str], float]]] = {
    "hospital": (HOSPITAL_EDGES, HOSPITAL_EFFECTS),
    "hospital-trial": (HOSPITAL_EDGES, HOSPITAL_EFFECTS),
    "beach": (BEACH_EDGES, BEACH_EFFECTS),
    "greenhouse": (GREENHOUSE_EDGES, {}),
}
"""The true edges and effects of the bundled tables."""

WARDS = {"north": 0.0, "south": 1.5, "west": -1.0}
MISSING = 0.06
WARM_UP = 100  # days of the greenhouse before its first row


def draw_patients(count: int, random: np.random.Generator, *, trial: bool = False) -> pd.DataFrame:
    """Complete rows of the hospital; in a trial a coin decides on the drug."""
    age = random.uniform(25, 90, size=count)
    smoker = random.uniform(size=count) < 0.3
    ward = random.choice(list(WARDS), size=count)
    inflammation = 40 + 0.5 * (age - 57) + 14 * smoker + random.laplace(scale=8, size=count)
    chance = np.full(count, 0.5) if trial else 1 / (1 + np.exp(-(inflammation - 45) / 5))
    drug = random.uniform(size=count) < chance
    day3 = 10 + 0.9 * inflammation - 15 * drug + random.uniform(-8, 8, size=count)
    in_ward = np.array([WARDS[name] for name in ward])
    stay = 1.5 + 0.12 * day3 + in_ward + random.gamma(3, 0.6, size=count)
    return pd.DataFrame(
        {
            "age": age.round(),
            "smoker": smoker.astype(int),
            "ward": ward,
            "inflammation": inflammation.round(1),
            "drug": drug.astype(int),
            "day3": day3.round(1),
            "stay": stay.round(1),
        }
    )


def draw_beach(count: int, random: np.random.Generator) -> pd.DataFrame:
    """Rows of the beach."""
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


def draw_greenhouse(count: int, random: np.random.Generator) -> pd.DataFrame:
    """Days of the greenhouse."""
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


def bundled_tables() -> dict[str, pd.DataFrame]:
    """The tables of these equations that come with the package, drawn anew."""
    random = np.random.default_rng(20)
    patients = draw_patients(800, random)
    for column in ("inflammation", "day3"):
        patients.loc[random.uniform(size=len(patients)) < MISSING, column] = np.nan
    return {
        "hospital": patients,
        "hospital-trial": draw_patients(200, random, trial=True),
        "beach": draw_beach(400, np.random.default_rng(20)),
        "greenhouse": draw_greenhouse(500, np.random.default_rng(7)),
    }
