"""One table on a GPU without the cost of launching 650 kernels one by one: CUDA graphs for the shapes that came last.

The network is captured in parts; a part that cannot be captured, and a shape that comes for the first time, runs as
usual.
"""

# B tables, N observations, P variables, C channels, S statistics

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.skeleton_order import NetworkOutput

MAX_SHAPES = 4  # for which graphs are kept; each holds the memory of a pass, up to half a gigabyte

MAX_CELLS, MAX_VARIABLES = 2**17, 256  # of tables that are worth a CUDA graph: larger ones keep a GPU busy

WARM_UPS = 3  # passes before a capture, in which libraries choose their kernels and compile what they need

Outputs = tuple[Tensor, ...]
Function = Callable[..., Outputs]


class Replay:
    """A captured function: inputs go where it read them, its kernels run again, outputs are where it wrote them."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Outputs, run: Callable[[], Any]) -> None:
        self.inputs, self.outputs, self.run = inputs, outputs, run

    def __call__(self, *inputs: Tensor) -> Outputs:
        for place, given in zip(self.inputs, inputs, strict=True):
            place.copy_(given)
        self.run()
        return tuple(output.clone() for output in self.outputs)


Capture = Callable[[Function, Sequence[Tensor]], Replay]


def capture_cuda_graph(function: Function, inputs: Sequence[Tensor]) -> Replay:
    """The function as a CUDA graph, for inputs of these shapes. RuntimeError if it does what a graph cannot hold."""
    places = [given.clone() for given in inputs]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            function(*places)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        outputs = function(*places)
    return Replay(places, outputs, graph.replay)


class Replayed:
    """A function of tensors that is captured when inputs of a shape come again; the last `most` captures are kept."""

    def __init__(self, function: Function, capture: Capture = capture_cuda_graph, most: int = MAX_SHAPES) -> None:
        self.function, self.capture, self.most = function, capture, most
        self.failure: str | None = None  # why the function cannot be captured, once that is known
        self._seen: OrderedDict[Hashable, Replay | None] = OrderedDict()

    def __call__(self, *inputs: Tensor) -> Outputs:
        device = inputs[0].device.type
        precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        key = (precision, *((given.shape, given.dtype) for given in inputs))
        if self.failure is not None:
            return self.function(*inputs)
        if key not in self._seen:
            self._keep(key, None)
            return self.function(*inputs)
        replay = self._seen[key]
        if replay is None:
            try:
                replay = self.capture(self.function, inputs)
            except RuntimeError as error:  # what torch raises for whatever CUDA refuses
                self.failure = str(error).split("\n")[0]
                self._seen.clear()
                return self.function(*inputs)
        self._keep(key, replay)
        return replay(*inputs)

    @property
    def captured(self) -> int:
        """For how many shapes there is a capture now."""
        return sum(replay is not None for replay in self._seen.values())

    def _keep(self, key: Hashable, replay: Replay | None) -> None:
        self._seen[key] = replay
        self._seen.move_to_end(key)
        while len(self._seen) > self.most:
            self._seen.popitem(last=False)


class ReplayedModel:
    """An ArrowModel whose passes over complete numeric tables of moderate size are replayed; the same answers."""

    def __init__(self, model: Any, capture: Capture = capture_cuda_graph) -> None:
        self.model, self._lock = model, threading.Lock()
        encoder = model.encoder
        self.parts = [
            Replayed(lambda values: encoder.describe(model.standardized(TensorBatch(values))), capture),
            Replayed(lambda channels, statistics: (encoder.relate(channels, statistics),), capture),
            Replayed(lambda pairs: tuple(part for part in encoder.answer(pairs) if part is not None), capture),
        ]

    @torch.inference_mode()
    def __call__(self, tables: TensorBatch, observations_per_chunk: int | None = None) -> NetworkOutput:
        """The distributions over graphs given tables of one shape, as `ArrowModel.forward` gives them."""
        output: NetworkOutput
        if observations_per_chunk is not None or not worth_capturing(tables):
            output = self.model(tables, observations_per_chunk)
            return output
        with self._lock:
            described, related, answered = self.parts
            channels, statistics = described(tables.values)
            (pairs,) = related(channels, statistics)
            skeleton, order, *confounding = answered(pairs)
            output = self.model.output(skeleton, order, *confounding)
            return output


def worth_capturing(tables: TensorBatch) -> bool:
    """Whether launching kernels is what costs the time, for tables that a captured pass can read."""
    parts = (tables.observed, tables.intervened, tables.levels)
    small = tables.values.numel() <= MAX_CELLS and tables.variables <= MAX_VARIABLES
    return small and all(part is None for part in parts)
