"""Laws of the network that ships: symmetries, streaming, pieces and threads, sizes, answers of earlier versions."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causal_arrow import load_model
from causal_arrow.batches import TableBatch
from causal_arrow.errors import ConfigurationError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.network import Network, bundled_models, forward
from causal_arrow.network.pairwise import PairwiseConfig, PairwiseNetwork
from causal_arrow.network.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE
from small_network import distance, random_network, random_weights

GOLDEN = Path(__file__).parent / "golden_answers.json"
"""Two tables, and what networks answered for them. arrow-strict has the form of version 0.1, whose files still load."""

SMALL = PairwiseConfig(cell_width=16, pair_width=32, stages=2, pair_blocks=1, mixing_heads=4, outer_width=4)
EVERYTHING = dataclasses.replace(
    SMALL,
    pair_blocks=2,
    rounds=2,
    channels=CHANNELS_OF_ANY_TABLE,
    statistics=STATISTICS_OF_ANY_TABLE,
    canonical_signs=True,
    confounding_head=True,
)


def network(config: PairwiseConfig = SMALL) -> PairwiseNetwork:
    """Random weights everywhere, small enough that rounding stays what it is."""
    return random_weights(config, size=0.5)


def values(tables: int, observations: int, variables: int, seed: int = 0) -> np.ndarray:
    """Tables whose variables depend on each other, with a few ties."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=(tables, observations, variables))
    data = noise @ random.normal(size=(tables, variables, variables)) + noise**2
    data[:, :, 0] = (data[:, :, 0] / 2).round()
    return data


def read(network: Network, data: np.ndarray, chunk: int | None = None) -> GraphDistribution:
    return network.read(TableBatch(data), chunk)


# Symmetries


def test_permuting_observations_changes_nothing() -> None:
    data = values(3, 80, 7)
    assert distance(read(network(), data), read(network(), data[:, np.random.default_rng(1).permutation(80)])) < 1e-4


@pytest.mark.parametrize("order_head", ["potential", "pooled"])
def test_permuting_variables_permutes_the_answer(order_head: str) -> None:
    asked, data = network(dataclasses.replace(EVERYTHING, order_head=order_head)), values(1, 80, 7)
    order = np.random.default_rng(1).permutation(7)
    expected = read(asked, data)[0].rearranged(order)
    assert distance(read(asked, data[:, :, order])[0], expected) < 1e-4


def test_units_of_measurement_do_not_matter() -> None:
    data = values(2, 80, 5)
    units = np.array([1.0, 1000.0, 0.001, 3.0, 1e6])
    assert distance(read(network(), data), read(network(), data * units + 17)) < 1e-4
    assert distance(read(network(), data), read(network(), data * [1e-8, 1e8, 1.0, 1e150, 1e-3])) < 1e-4


# Parts, pieces and threads


@pytest.mark.parametrize("observations_per_chunk", [1, 7, 40, 80, 1000])
def test_reading_observations_in_chunks_changes_nothing(observations_per_chunk: int) -> None:
    data = values(2, 80, 6)
    assert distance(read(network(), data), read(network(), data, observations_per_chunk)) < 1e-4


@pytest.mark.parametrize("observations_per_chunk", [None, 3, 33])
def test_the_size_of_pieces_changes_nothing(
    observations_per_chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, data = network(EVERYTHING), values(2, 40, 9)
    expected = read(asked, data)
    for name, size in [
        ("CELLS_IN_CACHE", 50),
        ("PAIRS_IN_CACHE", 10),
        ("OUTER_PRODUCTS_AT_ONCE", 700),
        ("ROW_PAIRS_AT_ONCE", 40),
    ]:
        monkeypatch.setattr(forward, name, size)
        assert distance(read(asked, data, observations_per_chunk), expected) < 1e-4, name


def test_the_number_of_threads_changes_nothing() -> None:
    answers = []
    try:
        for count in (1, 2):
            forward.set_thread_count(count)
            answers.append(read(network(EVERYTHING), values(1, 300, 12)))
    finally:
        forward.set_thread_count(None)
    assert distance(*answers) < 1e-4


def test_tables_that_share_a_pass_get_the_answers_they_get_alone() -> None:
    data = values(4, 50, 6)
    together = read(network(EVERYTHING), data)
    for table in range(4):
        assert distance(read(network(EVERYTHING), data[table : table + 1])[0], together[table]) < 1e-4


@pytest.mark.parametrize("observations_per_chunk", [None, 7])
def test_two_rounds_are_twice_the_stages_with_the_same_weights(observations_per_chunk: int | None) -> None:
    once, data = network(), values(2, 40, 6)
    twice = PairwiseNetwork(dataclasses.replace(SMALL, rounds=2), once.weights, {})
    again = {
        f"stages.{int(match[1]) + SMALL.stages}.{match[2]}": weight
        for name, weight in once.weights.items()
        if (match := re.match(r"stages\.(\d+)\.(.*)", name))
    }
    unrolled = PairwiseNetwork(dataclasses.replace(SMALL, stages=2 * SMALL.stages), once.weights | again, {})
    assert distance(read(twice, data, observations_per_chunk), read(unrolled, data, observations_per_chunk)) < 1e-6
    assert distance(read(twice, data), read(once, data)) > 1e-2


def test_chunks_bound_the_cells_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    block = forward.cell_block_

    def watched(cells: np.ndarray, *weights: Any) -> None:
        held.append(cells.shape[1])
        block(cells, *weights)

    monkeypatch.setattr(forward, "cell_block_", watched)
    monkeypatch.setattr(forward, "CELLS_IN_CACHE", 10**9)
    forward.set_thread_count(1)
    try:
        read(network(), values(1, 500, 6), 32)
    finally:
        forward.set_thread_count(None)
    assert max(held) == 32


def test_the_table_is_left_as_it_was() -> None:
    data = values(1, 40, 6)
    before = data.copy()
    read(network(), data)
    assert np.array_equal(data, before)


def test_a_pass_is_ended_between_stages() -> None:
    asked = network()

    def stop() -> None:
        raise InterruptedError

    asked.between_stages.append(stop)
    with pytest.raises(InterruptedError):
        read(asked, values(1, 40, 6))
    asked.between_stages.remove(stop)
    assert read(asked, values(1, 40, 6)).variables == 6


# Shapes


@pytest.mark.parametrize(("observations", "variables"), [(2, 2), (2, 30), (500, 2), (20, 200), (5, 3)])
def test_any_shape_gets_a_finite_answer(observations: int, variables: int) -> None:
    answer = read(network(), values(1, observations, variables))
    assert np.isfinite(answer.skeleton_logits).all()
    assert np.isfinite(answer.order_scores).all()
    assert np.array_equal(answer.skeleton_logits, answer.skeleton_logits.swapaxes(1, 2))


def test_constant_and_duplicate_columns_get_a_finite_answer() -> None:
    data = values(1, 50, 5)
    data[:, :, 1] = 3.0
    data[:, :, 2] = data[:, :, 3]
    answer = read(network(EVERYTHING), data)
    assert np.isfinite(answer.skeleton_logits).all()
    assert np.isfinite(answer.order_scores).all()


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="mixing_heads"):
        PairwiseConfig(cell_width=20, mixing_heads=8)
    with pytest.raises(ConfigurationError, match="positive whole number for stages"):
        PairwiseConfig(stages=0)
    with pytest.raises(ConfigurationError, match="Expected potential or pooled for order_head, got 'own'"):
        PairwiseConfig(order_head="own")
    with pytest.raises(ConfigurationError, match="at least 2 observations"):
        read(network(), np.zeros((3, 1, 4)))


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.stages = 4  # type: ignore[misc]


# What a network takes, and what it is


def test_bare_values_are_complete_tables_of_numbers() -> None:
    data = values(2, 60, 5)
    everything, nothing = np.ones(data.shape, dtype=bool), np.zeros(data.shape, dtype=bool)
    expected = read(random_network(), data)
    answer = random_network().read(TableBatch(data, everything, nothing, np.zeros((2, 5), dtype=int)))
    assert distance(answer, expected) < 1e-4
    assert expected.confounding_logits is None
    assert expected.variables == 5


@pytest.mark.parametrize(
    ("part", "message"),
    [("observed", "missing values"), ("intervened", "cells set by experiments"), ("levels", "categories")],
)
def test_a_part_that_a_network_would_ignore_is_refused(part: str, message: str) -> None:
    data = values(2, 60, 5)
    marks = np.zeros(data.shape if part != "levels" else data.shape[::2], dtype=bool)
    marks[0, 0] = True
    with pytest.raises(ConfigurationError, match=f"{message}, which this network cannot read"):
        random_network().read(TableBatch(data, **{part: ~marks if part == "observed" else marks}))


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_chunk_of_no_observations_is_refused(chunk: int) -> None:
    with pytest.raises(ConfigurationError, match=f"observations_per_chunk must be at least 1, got {chunk}"):
        read(random_network(), values(1, 60, 5), chunk)


def test_a_network_of_the_processor_refuses_other_devices_and_precisions() -> None:
    asked = random_network()
    assert isinstance(asked, Network)
    assert asked.on("auto", "auto") is asked.on("cpu", "float32") is asked
    with pytest.raises(ConfigurationError, match="runs on the processor: give its name or path"):
        asked.on("cuda", "auto")
    with pytest.raises(ConfigurationError, match="bfloat16 is for GPUs"):
        asked.on("cpu", "bfloat16")


def test_another_process_gets_the_same_network() -> None:
    asked, data = network(EVERYTHING), values(1, 40, 5)
    sent = pickle.dumps(asked)
    assert distance(read(pickle.loads(sent), data), read(asked, data)) == 0
    assert len(sent) < 1.2 * sum(weight.nbytes for weight in asked.weights.values())


@pytest.mark.parametrize("name", ["arrow-base", "arrow-strict"])
def test_bundled_networks_answer_as_they_did(name: str) -> None:
    if name not in bundled_models():
        pytest.skip("a checkout without weights")
    bundled = load_model(name)
    for case in json.loads(GOLDEN.read_text(encoding="utf-8")):
        answer = read(bundled, np.array(case["table"], dtype=np.float64)[None])[0]
        off_diagonal = ~np.eye(answer.variables, dtype=bool)
        expected = np.array(case[name]["skeleton_logits"])
        assert np.abs(answer.skeleton_logits - expected)[off_diagonal].max() < 1e-3
        assert np.abs(answer.order_scores - np.array(case[name]["order_scores"])).max() < 1e-3
        assert expected[off_diagonal].std() > 1


def test_an_answer_needs_no_torch_and_loads_little() -> None:
    program = (
        "import sys, numpy as np; from causal_arrow.discovery.pipeline import discover; "
        "discover(np.random.default_rng(0).standard_normal((30, 4))); "
        "print([name for name in ('torch', 'scipy', 'sklearn', 'matplotlib', 'joblib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
