"""Laws of devices and precision: names, what is refused, what is counted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from causal_arrow import Arrow, load_model
from causal_arrow.errors import ConfigurationError
from causal_arrow_lab.network.devices import resolve_device, resolve_precision

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_devices_go_by_their_names() -> None:
    assert resolve_device("cpu") == resolve_device(torch.device("cpu")) == CPU
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("device", ["tpu", "gpu", "", "cuda:x", "cuda:-1", "cpu cpu", "\udce9", "a\0b"])
def test_an_unknown_device_is_refused(device: str) -> None:
    with pytest.raises(ConfigurationError, match="expected auto, cpu, cuda or cuda:1"):
        resolve_device(device)
    with pytest.raises(ConfigurationError, match="expected auto, cpu, cuda or cuda:1"):
        load_model("arrow-base", device)


@pytest.mark.parametrize("device", [5, None, ["cpu"]])
def test_a_device_that_is_not_a_name_is_refused(device: object) -> None:
    with pytest.raises(ConfigurationError, match="expected auto, cpu, cuda or cuda:1"):
        resolve_device(device)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="Expected device to be text, such as 'auto', got"):
        load_model("arrow-base", device)  # type: ignore[arg-type]


def test_a_device_that_cannot_be_used_here_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="The network runs on cpu and cuda"):
        resolve_device("meta")
    with pytest.raises(ConfigurationError, match="There is no "):
        resolve_device("cuda:99")
    with pytest.raises(ConfigurationError, match="There is no "):
        Arrow(device="cuda:99").fit(np.random.default_rng(0).normal(size=(30, 3)))


def test_products_are_in_float32_unless_bfloat16_is_asked_for_on_a_gpu() -> None:
    for device in (CPU, CUDA):
        assert resolve_precision("auto", device) == resolve_precision("float32", device) == torch.float32
    assert resolve_precision("bfloat16", CUDA) == torch.bfloat16
    with pytest.raises(ConfigurationError, match="bfloat16 is for GPUs"):
        resolve_precision("bfloat16", CPU)
    with pytest.raises(ConfigurationError, match="precision to be one of auto, float32, bfloat16, got 'half'"):
        resolve_precision("half", CUDA)
