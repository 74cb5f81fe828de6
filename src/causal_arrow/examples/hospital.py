"""The table of an imaginary hospital, and the equations behind it: `python -m causal_arrow.examples.hospital`.

A new drug goes to those who are sickest, so patients with the drug stay longer than those without. The drug shortens
the stay all the same: it lowers the inflammation of the third day by 15, and each unit of that costs 0.12 days.

    age          Unif(25, 90)
    smoker       yes with probability 0.3
    ward         north, south or west, whichever has a bed
    inflammation = 40 + 0.5 (age − 57) + 14 [smoker] + Laplace(8)
    drug         yes with probability σ((inflammation − 45) / 5)
    day3         = 10 + 0.9 inflammation − 15 [drug] + Unif(−8, 8)
    stay         = 1.5 + 0.12 day3 + {north 0, south 1.5, west −1} + Gamma(3, 0.6)

Of `inflammation` and `day3` 6% are missing, by chance. A second table is that of a trial: 200 patients for whom a coin
decided on the drug, with nothing missing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from causal_arrow.examples import write_tables

PATIENTS = 800
PATIENTS_OF_TRIAL = 200
SEED = 20
MISSING = 0.06

EDGES = (
    ("age", "inflammation"),
    ("smoker", "inflammation"),
    ("inflammation", "drug"),
    ("inflammation", "day3"),
    ("drug", "day3"),
    ("day3", "stay"),
    ("ward", "stay"),
)
EFFECTS = {("drug", "stay"): -15 * 0.12, ("drug", "day3"): -15.0, ("day3", "stay"): 0.12}
"""The mean change of the second if the first grows by one."""
WARDS = {"north": 0.0, "south": 1.5, "west": -1.0}


def draw_patients(count: int, random: np.random.Generator, *, trial: bool = False) -> pd.DataFrame:
    """Complete observations by the equations above; in a trial a coin decides on the drug."""
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


def make_tables() -> dict[str, pd.DataFrame]:
    """The bundled tables: 800 patients with some cells missing, and the trial."""
    random = np.random.default_rng(SEED)
    patients = draw_patients(PATIENTS, random)
    for column in ("inflammation", "day3"):
        patients.loc[random.uniform(size=PATIENTS) < MISSING, column] = np.nan
    return {"hospital": patients, "hospital-trial": draw_patients(PATIENTS_OF_TRIAL, random, trial=True)}


if __name__ == "__main__":
    write_tables(make_tables())
