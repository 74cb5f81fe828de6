"""Kinds of mistakes: each edge of an answer is counted once, where it belongs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mistakes
from causal_arrow_lab.benchmarks.datasets import unnamed
from causal_arrow_lab.benchmarks.methods.protocol import Estimate
from mistakes import KINDS, count_mistakes, dependences, main

CHAIN = np.zeros((5, 5), dtype=bool)  # 0 → 1 → 2, 1 → 3; 4 says the same as 3 and is its effect
CHAIN[0, 1] = CHAIN[1, 2] = CHAIN[1, 3] = CHAIN[3, 4] = True


def table(observations: int = 2000) -> np.ndarray:
    generator = np.random.default_rng(0)
    data = np.empty((observations, 5))
    data[:, 0] = generator.integers(2, size=observations)
    for effect, cause in ((1, 0), (2, 1), (3, 1)):
        data[:, effect] = np.where(generator.random(observations) < 0.8, data[:, cause], 1 - data[:, cause])
    data[:, 4] = 7 - 3 * data[:, 3]
    return data


def counted(*edges: tuple[int, int], probability: float = 0.8) -> dict[str, int]:
    found = np.zeros((5, 5), dtype=bool)
    scores = np.zeros((5, 5))
    for j, k in edges:
        found[j, k], scores[j, k], scores[k, j] = True, probability, 1 - probability
    counts = count_mistakes(unnamed(table(), CHAIN), Estimate(found, scores, None, 0.0))
    assert counts.keys() == KINDS.keys()
    assert counts.pop("edges") == 4
    return {kind: count for kind, count in counts.items() if count}


def test_the_true_graph_has_no_mistakes() -> None:
    assert counted((0, 1), (1, 2), (1, 3), (3, 4)) == {"right": 4}


def test_a_reversed_edge_is_neither_missed_nor_false() -> None:
    assert counted((1, 0), (1, 2), (1, 3), (3, 4)) == {"right": 3, "reversed": 1}
    assert counted((1, 0), (1, 2), (1, 3), (3, 4), probability=0.95) == {"right": 3, "reversed": 1, "sure": 1}


@pytest.mark.parametrize(
    ("edge", "kind"), [((0, 2), "lineage"), ((2, 3), "siblings"), ((1, 4), "copies"), ((2, 4), "false")]
)
def test_a_false_edge_has_one_kind(edge: tuple[int, int], kind: str) -> None:
    expected = {"right": 4, "false": 1} | ({} if kind == "false" else {kind: 1})
    assert counted((0, 1), (1, 2), (1, 3), (3, 4), edge) == expected


def test_a_missed_edge_is_unseen_where_the_pair_shows_nothing() -> None:
    assert counted((0, 1), (1, 3), (3, 4)) == {"right": 3, "missed": 1}
    data = table()
    data[:, 2] = np.random.default_rng(1).permutation(data[:, 2])
    empty = Estimate(np.zeros((5, 5), dtype=bool), np.zeros((5, 5)), None, 0.0)
    counts = count_mistakes(unnamed(data, CHAIN), empty)
    assert (counts["missed"], counts["unseen"]) == (4, 1)


def test_dependences_of_numbers_levels_and_holes() -> None:
    generator = np.random.default_rng(2)
    data = generator.standard_normal((1000, 4))
    data[:, 1] = data[:, 0] ** 2  # quarters see what a correlation does not
    data[:, 2] = data[:, 0] > 0
    data[generator.random(data.shape) < 0.2] = np.nan
    values = dependences(data)
    assert values[0, 1] < 1e-10
    assert values[0, 2] < 1e-10
    assert values[3, :3].min() > 0.001
    np.testing.assert_array_equal(values, values.T)
    data[:, 3] = 1.0
    assert (dependences(data)[3] == 1).all()


def test_the_command_prints_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rows", "discrete/ASIA-500", "discrete/SURVEY-500", "--datasets", "1"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["true", "edges"]
    assert [line.split()[0] for line in lines] == ["discrete/ASIA-500", "discrete/SURVEY-500"]
    assert all(len(line.split()) == 1 + len(KINDS) for line in lines)
    _, edges, found, turned, _, missed, *_ = lines[0].split()
    assert float(edges) == 8 == float(found) + float(turned) + float(missed)


def test_unknown_rows_and_weights_get_one_sentence() -> None:
    for arguments in (["--rows", "discreet"], ["no-such-weights"]):
        command = [sys.executable, mistakes.__file__, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert done.stderr.strip()
