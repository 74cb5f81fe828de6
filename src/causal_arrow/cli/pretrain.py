"""`causal-arrow pretrain`: train a network on synthetic tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from causal_arrow.cli import options


def pretrain(
    config: Annotated[
        Path,
        typer.Argument(
            help="A shipped configuration (base, paper, small, smoke) or a TOML file that describes the run.",
            show_default=False,
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting of the file, as in model.pair_width=192. May be given several times.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of a new run; runs/NAME OF CONFIG by default.", show_default=False)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Go on with the run in this folder; more stages and pair_blocks may be set.",
            show_default=False,
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            help="Start from these weights, of this network or a shallower one: a folder, a file, or a bundled name.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Stop, saved and validated, after this long.", min=0, show_default=False)
    ] = None,
    decay_minutes: Annotated[
        float, typer.Option(help="Let the learning rate fall to zero over the last minutes.", min=0)
    ] = 0.0,
    compiler_cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read compiled code from this file if it is there, write it at the end. Only use a file of your own.",
            show_default=False,
        ),
    ] = None,
    device: options.Device = "auto",
) -> None:
    """Train a network on a stream of synthetic tasks.

    Needs a GPU to be of use. Several GPUs or machines: start `torchrun -m causal_arrow.pretraining CONFIG` instead.
    """
    from causal_arrow.pretraining.config import read_config
    from causal_arrow.pretraining.train import pretrain as train

    train(
        read_config(config, changes or ()),
        resume or output or Path("runs") / config.stem,
        resume=resume is not None,
        init=init,
        minutes=minutes,
        decay_minutes=decay_minutes,
        compiler_cache=compiler_cache,
        device=device,
        echo=lambda line: print(line, flush=True),
    )


EXAMPLES = {
    "pretrain": """
**Examples**

`causal-arrow pretrain smoke --device cpu`

`causal-arrow pretrain base --minutes 30`

`causal-arrow pretrain base --set model.stages=6 --minutes 30 --output runs/deeper`

`causal-arrow pretrain base --resume runs/base --minutes 30 --decay-minutes 10`
"""
}
