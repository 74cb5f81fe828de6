"""Mistyped options of `causal-arrow-lab`: an answer, or one sentence and status 2, as in tests/bad_inputs.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bad_inputs import EITHER, REFUSED, WORKS, Maker, World, _arguments, try_options

CASES_OF_EACH_KIND = 6

KINDS: dict[str, dict[str, Maker]] = {
    REFUSED: {
        "simulate_size": lambda world: [
            "simulate",
            "-o",
            "made",
            world.pick("--tables", "--observations", "--variables"),
            world.pick("-1", "0", "x", "1.5", str(10**12), str(2**70)),
        ],
        "simulate_distribution": _arguments("simulate", "-o", "made", "--distribution", "NAME"),
        "simulate_only": _arguments("simulate", "-o", "made", "--only", "NAME"),
        "simulate_nothing_left": _arguments("simulate", "-o", "made", "--without", "broad"),
        "pretrain_config": lambda world: ["pretrain", world.pick("none", "none.toml", "TABLE", "")],
        "pretrain_device": lambda world: ["pretrain", "smoke", "--device", world.pick("tpu", "", "cuda:99", "x" * 300)],
        "pretrain_set": lambda world: [
            "pretrain",
            "smoke",
            "--device",
            "cpu",
            "--set",
            world.pick(
                "x", "x=1", "model.width", "=", "model=5", "a.b.c=1", "seed=x", "steps=-1", "validation.drawn_shapes=-1"
            ),
        ],
        "benchmark_suite": lambda world: [
            "benchmark",
            world.pick("none", "networks/none", "", "/", "/none", "a\nb", "discrete/alarm", "missing/chance-30"),
        ],
        "benchmark_method": lambda world: [
            "benchmark",
            "networks",
            "--methods",
            world.pick("none", ":", "arrow:none", "ä", "hc-bic:5", "gies:x"),
            "--datasets",
            "1",
        ],
        "benchmark_device": lambda world: [
            "benchmark",
            "limit",
            "--device",
            world.pick("tpu", "", "cuda:99", "x" * 300),
        ],
        "benchmark_scale": lambda world: ["benchmark", "limit", "--scale", world.pick("raw", "", "LOG", "a\nb")],
        "suites_of_two_kinds": _arguments("benchmark", "effects/linear", "networks/ECOLI70"),
        "method_of_another_suite": lambda world: [
            "benchmark",
            *world.pick(
                ("effects/linear", "--methods", "boss"),
                ("experiments/normal-10", "--methods", "dowhy"),
                ("networks/ECOLI70", "--methods", "ida-pc"),
                ("effects/linear", "--methods", "regression:x"),
            ),
        ],
    },
    EITHER: {
        "output": _arguments("simulate", "--observations", "20", "--variables", "3", "--output", "NAME"),
        "benchmark_numbers": _arguments("benchmark", "networks/none", "--datasets", "NUMBER", "--timeout", "NUMBER"),
        "pretrain_minutes": _arguments("pretrain", "none", "--minutes", "NUMBER", "--decay-minutes", "NUMBER"),
    },
    WORKS: {
        "suites": _arguments("benchmark"),
        "small_simulation": lambda world: [
            "simulate",
            "-o",
            "made",
            "--observations",
            "5",
            "--variables",
            "2",
            "--distribution",
            world.pick("paper", "broad", "shifted"),
        ],
    },
}

ALL = [pytest.param(maker, expected, id=name) for expected, makers in KINDS.items() for name, maker in makers.items()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(CASES_OF_EACH_KIND))
@pytest.mark.parametrize(("maker", "expected"), ALL)
def test_whatever_the_options_are_the_program_answers_or_refuses_in_a_sentence(
    maker: Maker,
    expected: str,
    seed: int,
    small_model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    world = World(np.random.default_rng(seed), tmp_path, small_model_folder)
    try_options(world, maker(world), expected, "causal_arrow_lab")
