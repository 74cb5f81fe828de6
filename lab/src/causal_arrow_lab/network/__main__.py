"""Check the kernels on this machine's GPU and time them: `python -m causal_arrow_lab.network [FAMILY ...]`.

Ends with status 1 if a result is wrong, and 2 where the kernels cannot run. Times are medians of device time.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence

import torch

from causal_arrow.network.basis import standardized
from causal_arrow.network.pairwise import PairwiseConfig
from causal_arrow_lab.batches import TensorBatch
from causal_arrow_lab.network.devices import takes_kernels
from causal_arrow_lab.network.kernels import checks
from causal_arrow_lab.network.pairwise import PairwiseEncoder

# B tasks, N observations, P variables

FAMILIES = {"fused": checks.FUSED, "mixing": checks.MIXING, "triangles": checks.TRIANGLES}

ENCODER_SIZES = [(8, 200, 5), (4, 200, 30), (2, 100, 101)]  # B, N, P
ENCODER_ERROR = 0.03  # of bfloat16 against float32: a little more than rounding does to a network of random weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m causal_arrow_lab.network", description=__doc__.split("\n")[0])
    parser.add_argument("family", nargs="*", help=f"{', '.join(FAMILIES)}; all of them, and the whole encoder, if none")
    options = parser.parse_args(arguments)
    if unknown := set(options.family) - set(FAMILIES):
        parser.error(f"expected families among {', '.join(FAMILIES)}, got {', '.join(sorted(unknown))}")
    if not kernels_run_here():
        print(
            f"Expected a Hopper GPU (H100, H200) and triton, found {what_is_here()}. "
            "The kernels run nowhere else, so there is nothing to check here: other machines take the plain path.",
            file=sys.stderr,
        )
        return 2
    operations = [operation for name in options.family or FAMILIES for operation in FAMILIES[name]]
    print("relative error of each output and gradient against float64: by the kernels (by plain bfloat16)")
    results = [checks.check(operation) for operation in operations]
    if not options.family:
        results += [check_encoder(*sizes) for sizes in ENCODER_SIZES]
    checks.time_against_plain(operations)
    print("\nall results are right" if all(results) else "\nSOME RESULTS ARE WRONG")
    return 0 if all(results) else 1


def kernels_run_here() -> bool:
    return torch.cuda.is_available() and takes_kernels(torch.empty(1, dtype=torch.bfloat16, device="cuda"))


def what_is_here() -> str:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return device if importlib.util.find_spec("triton") else f"{device} and no triton"


def check_encoder(tasks: int, observations: int, variables: int) -> bool:
    """The whole encoder in bfloat16, kernels and all, against itself in float32; gradients only have to be finite."""
    generator = torch.Generator().manual_seed(0)
    encoder = PairwiseEncoder(PairwiseConfig())
    with torch.no_grad():
        for parameter in encoder.parameters():
            # Branches that start at zero would hide what comes before them. Large ones would amplify every rounding.
            scale = 1.0 if parameter.any() else 0.3
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5)
            if parameter.dim() == 1:
                parameter.zero_()
    noise = torch.randn(tasks, observations, variables, generator=generator)
    data = noise @ torch.randn(tasks, variables, variables, generator=generator)
    encoder, tables = encoder.to(checks.DEVICE), TensorBatch(standardized(data)).to(checks.DEVICE)
    with torch.no_grad():
        reference = encoder(tables).skeleton_logits
    with torch.autocast(checks.DEVICE, torch.bfloat16):
        logits, scores, _ = encoder(tables)
    gradients = torch.autograd.grad(logits.sum() + scores.sum(), list(encoder.parameters()))
    error = checks.relative_error(logits.detach(), reference.double())
    finite = all(bool(tensor.isfinite().all()) for tensor in (logits, scores, *gradients))
    good = error < ENCODER_ERROR and finite
    sizes = f"B={tasks} N={observations} P={variables}"
    print(f"{'whole encoder':<18}  {sizes:<26}  {error:.1e}{'' if good else '  WRONG'}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
