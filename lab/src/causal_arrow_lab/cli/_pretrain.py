"""`causal-arrow-lab pretrain`: train a network on synthetic tasks."""

from __future__ import annotations

from typing import Annotated

import typer

from causal_arrow_lab.pretraining.__main__ import HELP, run_pretraining


def pretrain(
    config: Annotated[str, typer.Argument(help=HELP["config"], show_default=False)],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=HELP["set"], show_default=False)
    ] = None,
    output: Annotated[str | None, typer.Option(metavar="DIR", help=HELP["output"], show_default=False)] = None,
    resume: Annotated[str | None, typer.Option(metavar="DIR", help=HELP["resume"], show_default=False)] = None,
    init: Annotated[str | None, typer.Option(metavar="WEIGHTS", help=HELP["init"], show_default=False)] = None,
    minutes: Annotated[float | None, typer.Option(help=HELP["minutes"], show_default=False)] = None,
    decay_minutes: Annotated[float, typer.Option(help=HELP["decay_minutes"])] = 0.0,
    compiler_cache: Annotated[
        str | None, typer.Option(metavar="FILE", help=HELP["compiler_cache"], show_default=False)
    ] = None,
    device: Annotated[str, typer.Option(help=HELP["device"])] = "auto",
) -> None:
    """Train a network on a stream of synthetic tasks.

    Needs a GPU to be of use. Several GPUs or machines: start `torchrun -m causal_arrow_lab.pretraining CONFIG` instead.
    """
    run_pretraining(
        config,
        changes=changes,
        output=output,
        resume=resume,
        init=init,
        minutes=minutes,
        decay_minutes=decay_minutes,
        compiler_cache=compiler_cache,
        device=device,
    )


EXAMPLES = {
    "pretrain": (
        "causal-arrow-lab pretrain smoke --device cpu",
        "causal-arrow-lab pretrain base --minutes 30",
        "causal-arrow-lab pretrain base --set model.stages=6 --minutes 30 --output runs/deeper",
        "causal-arrow-lab pretrain base --resume runs/base --minutes 30 --decay-minutes 10",
    )
}
"""Commands to show in the help."""
