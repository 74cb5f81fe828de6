"""Answers of two versions of the package for the same 200 tables: `python tests/parity.py make FILE`, `compare A B`.

`make` draws tables of every kind with numpy alone, answers them with the `causal_arrow` that is installed, and writes
all probabilities to a file. `compare` prints by how much two such files differ, and ends with status 1 if a
probability differs by more than TOLERANCE. Tables in which a choice was within SWITCH of falling the other way (a
sign, a scale, which columns are set aside) are counted but not compared.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# N observations, P variables

TOLERANCE = 1e-5
SWITCH = 1e-6
SYMMETRIC, BYSTANDER = (
    1e-4,
    0.2,
)  # where signs and set-aside columns switch; see network/basis.py and discovery/inference.py

Floats = NDArray[np.float64]
Columns = dict[str, Any]
PARTS = ("edges", "skeleton", "confounding")


@dataclass
class Case:
    """A table as `fit` takes it, with the settings and the other arguments it is fitted with."""

    columns: Columns
    settings: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)


# Tables


NOISES: list[Callable[[np.random.Generator, int], Floats]] = [
    lambda random, n: random.normal(size=n),
    lambda random, n: random.laplace(size=n),
    lambda random, n: random.exponential(size=n),
    lambda random, n: random.uniform(-1, 1, size=n),
    lambda random, n: random.standard_t(3, size=n),
    lambda random, n: random.gumbel(size=n),
    lambda random, n: random.choice([-2.0, 2.0], size=n) + random.normal(size=n),
]
MECHANISMS: list[Callable[[Floats], Floats]] = [
    lambda x: x,
    np.tanh,
    np.sin,
    lambda x: np.sign(x) * x**2 / 2,
    lambda x: np.abs(x),
]


def numbers(random: np.random.Generator, n: int, p: int, linear: bool = False, density: float = 2.0) -> Floats:
    """Values of a random graph with random equations, in random units and order.  (N, P)"""
    values = np.zeros((n, p))
    for k in range(p):
        noise = NOISES[0 if linear else random.integers(len(NOISES))](random, n)
        total = noise * random.uniform(0.3, 1.0)
        for j in range(k):
            if random.random() < density / max(p - 1, 1):
                bend = MECHANISMS[0 if linear else random.integers(len(MECHANISMS))]
                total = total + random.choice([-1, 1]) * random.uniform(0.4, 1.5) * bend(values[:, j])
        values[:, k] = (total - total.mean()) / total.std()
    units = 10.0 ** random.uniform(-3, 4, size=p)
    return (values * units + 5 * units * random.normal(size=p))[:, random.permutation(p)]


def named(values: Floats) -> Columns:
    return {f"v{k}": values[:, k] for k in range(values.shape[1])}


def levels(random: np.random.Generator, column: Floats, count: int, shuffled: bool = True) -> Any:
    """A column cut into so many levels with names, in random order unless it is an ordered one."""
    edges = np.quantile(column, np.sort(random.uniform(size=count - 1)))
    names = random.permutation(count) if shuffled else np.arange(count)
    cut: Any = np.array([f"level {name:02d}" for name in names], dtype=object)[np.searchsorted(edges, column)]
    return cut


def with_holes(random: np.random.Generator, columns: Columns, share: float) -> Columns:
    """The columns with cells missing, more of them where the first column is large."""
    n = len(columns["v0"])
    holed = {}
    for name, column in columns.items():
        gone = random.random(n) < share * random.uniform(0.2, 1.8)
        if column.dtype == object:
            holed[name] = np.array([None if hole else value for value, hole in zip(column, gone, strict=True)], object)
        else:
            holed[name] = np.where(gone, np.nan, column)
    return holed


def size(random: np.random.Generator, most_n: int = 800, most_p: int = 14) -> tuple[int, int]:
    return int(np.exp(random.uniform(np.log(30), np.log(most_n)))), int(random.integers(3, most_p + 1))


def any_law(random: np.random.Generator) -> Case:
    return Case(named(numbers(random, *size(random, 1500, 30))))


def linear(random: np.random.Generator) -> Case:
    return Case(named(numbers(random, *size(random), linear=True)))


def binary(random: np.random.Generator) -> Case:
    n, p = size(random)
    columns = named(numbers(random, n, p))
    for name in list(columns)[::2]:
        columns[name] = np.where(columns[name] > np.quantile(columns[name], random.uniform(0.1, 0.9)), "yes", "no")
        columns[name] = columns[name].astype(object)
    return Case(columns)


def categories(random: np.random.Generator, most: int = 5) -> Case:
    n, p = size(random)
    columns = named(numbers(random, max(n, 60), p))
    for name in list(columns)[: max(1, p // 2)]:
        columns[name] = levels(random, columns[name], int(random.integers(3, most + 1)))
    return Case(columns)


def many_levels(random: np.random.Generator) -> Case:
    return categories(random, 25)


def all_categories(random: np.random.Generator) -> Case:
    n, p = size(random, most_p=10)
    columns = named(numbers(random, max(n, 100), p))
    return Case({name: levels(random, column, int(random.integers(2, 6))) for name, column in columns.items()})


def ordered(random: np.random.Generator) -> Case:
    n, p = size(random)
    columns = named(numbers(random, max(n, 60), p))
    columns["v0"] = levels(random, columns["v0"], 4, shuffled=False)
    return Case(columns, {"ordered": {"v0": sorted(set(columns["v0"]))}})


def holes(random: np.random.Generator) -> Case:
    n, p = size(random)
    return Case(with_holes(random, named(numbers(random, max(n, 50), p)), random.uniform(0.02, 0.3)))


def holes_in_all_kinds(random: np.random.Generator) -> Case:
    case = categories(random)
    return Case(with_holes(random, case.columns, random.uniform(0.02, 0.2)))


def experiments(random: np.random.Generator) -> Case:
    n, p = size(random)
    values = numbers(random, max(n, 60), p)
    labels = np.array(["", *(f"v{k}" for k in range(p))], dtype=object)[
        random.integers(0, p + 1, size=len(values)) * random.integers(0, 2, size=len(values))
    ]
    for k in range(p):
        here = labels == f"v{k}"
        values[here, k] = values[:, k].mean() + 3 * values[:, k].std() * random.normal(size=here.sum())
    return Case(named(values), reading={"interventions": list(labels)})


def environments(random: np.random.Generator) -> Case:
    n, p = size(random)
    values = numbers(random, max(n, 60), p)
    where = random.integers(0, 3, size=len(values))
    values[:, 0] += where * values[:, 0].std()
    return Case(named(values), reading={"environments": [f"site {place}" for place in where]})


def long(random: np.random.Generator) -> Case:
    return Case(named(numbers(random, int(random.choice([21_000, 30_000, 100_000])), int(random.integers(3, 13)))))


def long_of_all_kinds(random: np.random.Generator) -> Case:
    columns = named(numbers(random, 21_000, 6))
    columns["v1"] = levels(random, columns["v1"], 4)
    columns["v3"] = levels(random, columns["v3"], 2)
    return Case(with_holes(random, columns, 0.1))


def cut_short(random: np.random.Generator) -> Case:
    """Tables of usual size that are read as long ones are: statistics of all rows, cells of some."""
    make = (any_law, categories, holes_in_all_kinds, experiments)[int(random.integers(4))]
    case = make(random)
    n = len(case.columns["v0"])
    return Case(case.columns, {**case.settings, "max_rows": max(20, n // 2)}, case.reading)


def wide(random: np.random.Generator) -> Case:
    return Case(named(numbers(random, int(random.integers(60, 300)), int(random.integers(50, 151)))))


def wide_of_all_kinds(random: np.random.Generator) -> Case:
    columns = named(numbers(random, 200, 60))
    for name in list(columns)[:20]:
        columns[name] = levels(random, columns[name], int(random.integers(2, 7)))
    return Case(with_holes(random, columns, 0.05))


def tiny(random: np.random.Generator) -> Case:
    return Case(named(numbers(random, int(random.integers(20, 30)), int(random.integers(2, 6)))))


def near_copies(random: np.random.Generator) -> Case:
    columns = named(numbers(random, *size(random)))
    scale = 10.0 ** random.uniform(-7, -2)
    columns["near"] = columns["v0"] + scale * columns["v0"].std() * random.normal(size=len(columns["v0"]))
    return Case(columns)


def copies(random: np.random.Generator) -> Case:
    columns = named(numbers(random, *size(random)))
    return Case({**columns, "copy": columns["v1"].copy(), "negative": -3.0 * columns["v0"]})


def skewed(random: np.random.Generator) -> Case:
    values = numbers(random, *size(random))
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    half = scaled.shape[1] // 2 + 1
    scaled[:, :half] = np.exp(scaled[:, :half] * random.uniform(0.5, 1.5))
    return Case(named(scaled), {"scale": ("auto", "log", "given")[int(random.integers(3))]})


def bystanders(random: np.random.Generator) -> Case:
    values = numbers(random, max(size(random)[0], 200), int(random.integers(3, 12)))
    return Case({**named(values), "noise": random.normal(size=len(values))})


def symmetric(random: np.random.Generator) -> Case:
    """Columns whose skewness says nothing of their sign: every other one holds ranks."""
    n, p = size(random)
    values = numbers(random, max(n, 40), p)
    values[:, ::2] = 2 * values[:, ::2].argsort(axis=0).argsort(axis=0) - len(values) + 1.0
    return Case(named(values))


def whole_numbers(random: np.random.Generator) -> Case:
    values = numbers(random, *size(random))
    return Case(named(np.round(2 * (values - values.mean(axis=0)) / values.std(axis=0))))


def strict(random: np.random.Generator) -> Case:
    return Case(named(numbers(random, *size(random, 500, 12))), {"model": "arrow-strict"})


def chunked(random: np.random.Generator) -> Case:
    case = (any_law, holes_in_all_kinds)[int(random.integers(2))](random)
    return Case(case.columns, {"observations_per_chunk": int(random.integers(7, 60))})


KINDS: list[tuple[Callable[[np.random.Generator], Case], int]] = [
    (any_law, 24),
    (linear, 8),
    (binary, 10),
    (categories, 10),
    (many_levels, 10),
    (all_categories, 8),
    (ordered, 6),
    (holes, 12),
    (holes_in_all_kinds, 10),
    (experiments, 12),
    (environments, 8),
    (long, 4),
    (long_of_all_kinds, 2),
    (cut_short, 10),
    (wide, 6),
    (wide_of_all_kinds, 2),
    (tiny, 10),
    (near_copies, 8),
    (copies, 6),
    (skewed, 10),
    (bystanders, 8),
    (symmetric, 4),
    (whole_numbers, 4),
    (strict, 6),
    (chunked, 2),
]
MANY = 20
"""Of the first tables of numbers, answered once more by `discover_many`."""


def cases() -> Iterator[tuple[str, Case]]:
    """All tables, by name."""
    for kind, (make, count) in enumerate(KINDS):
        for index in range(count):
            yield f"{make.__name__}-{index}", make(np.random.default_rng([kind, index]))


# Answers


def answered(names: tuple[str, ...], answer: Any) -> dict[str, Floats]:
    """The probabilities of an answer, and how near it was to setting another column aside."""
    parts = {
        "edges": np.asarray(answer.edge_probabilities, dtype=np.float64),
        "skeleton": np.asarray(answer.skeleton_probabilities, dtype=np.float64),
    }
    if answer.confounding_probabilities is not None:
        parts["confounding"] = np.asarray(answer.confounding_probabilities, dtype=np.float64)
    joined = np.maximum(parts["skeleton"], parts.get("confounding", 0.0)).max(axis=1)
    parts["aside"] = np.abs(joined - BYSTANDER)
    parts["log"] = np.array([name in answer.log_columns for name in names], dtype=np.float64)
    return parts


def sign_margins(columns: Columns) -> Floats:
    """How near the sign of each complete column of numbers is to the other one; see `basis.chosen_signs`."""
    complete = [column for column in columns.values() if column.dtype != object and not np.isnan(column).any()]
    if not complete:
        return np.ones(1)
    values = np.stack(complete, axis=1)
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0, ddof=1), 1e-300)
    squares = values**2
    others = squares.sum(axis=1, keepdims=True) - squares
    skewness = np.abs((values**3).mean(axis=0))
    coskewness = np.abs((values * (others - others.mean(axis=0))).mean(axis=0))
    turned = skewness > SYMMETRIC
    turned |= coskewness > SYMMETRIC * len(complete)
    correlation = np.abs(values.T @ values / len(values))[:, turned]
    return np.concatenate(
        [
            np.abs(skewness - SYMMETRIC),
            np.abs(coskewness - SYMMETRIC * len(complete))[skewness < SYMMETRIC],
            correlation.max(axis=1, initial=0.0)[~turned] if turned.any() else np.ones(1),
        ]
    )


def make(path: str, by_torch: bool = False) -> None:
    """Answer all tables and write the probabilities, by the network of the package or by torch's in the lab."""
    from causal_arrow import Arrow, Settings, discover_many

    known = Arrow().get_params()
    former = {} if "max_rows" in known else {"max_rows": "observations"}
    # What came since 89b5d85 and changes what is said by what the network says: temperatures and a second reading.
    own = {"directions": "network"} if "directions" in known else {}
    with contextlib.suppress(ImportError):
        from causal_arrow.discovery import hidden

        hidden.MAX_FLAGGED = 1.0

    warnings.simplefilter("ignore")
    found: dict[str, Floats] = {}
    together: dict[str, Columns] = {}
    started = time.perf_counter()
    for name, case in cases():
        settings = {former.get(name, name): value for name, value in case.settings.items()}
        if by_torch:
            settings["model"] = torch_network(settings.get("model", "arrow-base"))
        arrow = Arrow(precision="float32", device="cpu", **own, **settings).fit(case.columns, **case.reading)
        for part, values in answered(tuple(case.columns), arrow.answer_).items():
            found[f"{name}/{part}"] = values
        found[f"{name}/sign"] = sign_margins(case.columns)
        if name.startswith("any_law") and len(together) < MANY and not by_torch:
            together[name] = case.columns
    with tempfile.TemporaryDirectory() as folder:
        usual = Settings(precision="float32", device="cpu", **own)
        answers = discover_many(together, folder, usual, jobs=1, progress=False) if together else {}
        for name, columns in together.items():
            for part, values in answered(tuple(columns), answers[name]).items():
                found[f"many-{name}/{part}"] = values
    np.savez_compressed(path, **found)  # type: ignore[arg-type]  # numpy's annotation takes no mapping
    print(f"{len({key.split('/')[0] for key in found})} tables in {time.perf_counter() - started:.0f} s")


@lru_cache
def torch_network(name: str) -> Any:
    """A bundled network in torch."""
    from causal_arrow_lab import load_model

    return load_model(name)


# Comparison


def compare(first: str, second: str) -> int:
    """Print by how much the answers differ, kind by kind; the exit status."""
    one, other = np.load(first), np.load(second)
    files = set(one.files) & set(other.files)
    if missing := {key.split("/")[0] for key in set(one.files) ^ set(other.files)}:
        print(f"only in one of the files: {len(missing)} tables, such as {min(missing)}")
    worst: dict[str, float] = {}
    beyond, apart = [], []
    for name in dict.fromkeys(key.split("/")[0] for key in one.files if key in files):
        keys = [f"{name}/{part}" for part in PARTS if f"{name}/{part}" in one.files]
        difference = max(float(np.abs(one[key] - other[key]).max()) for key in keys)
        margin = min(float(one[key].min()) for key in (f"{name}/aside", f"{name}/sign") if key in one.files)
        switched = margin < SWITCH or not np.array_equal(one[f"{name}/log"], other[f"{name}/log"])
        if switched:
            apart.append(f"{name} ({difference:.1e})")
            continue
        kind = name.rpartition("-")[0]
        worst[kind] = max(worst.get(kind, 0.0), difference)
        if not difference <= TOLERANCE:
            beyond.append(f"{name} ({difference:.1e})")
    for kind, difference in worst.items():
        print(f"{kind:<24}{difference:.1e}")
    print(f"next to a switch, not compared: {len(apart)}  {', '.join(apart)}")
    print(f"more than {TOLERANCE:g} apart: {len(beyond)}  {', '.join(beyond)}")
    return 1 if beyond else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("file")
    making.add_argument("--torch", action="store_true", help="by the torch network of causal-arrow-lab")
    comparing = commands.add_parser("compare")
    comparing.add_argument("first")
    comparing.add_argument("second")
    options = parser.parse_args()
    if options.command == "make":
        make(options.file, options.torch)
        return 0
    return compare(options.first, options.second)


if __name__ == "__main__":
    sys.exit(main())
