"""`causal-arrow-lab benchmark` and `causal-arrow-lab report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from causal_arrow.cli.console import folder


def benchmark(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            help="Suites, single rows as SUITE/ROW, or 'all' except the frozen ones. Without any: list them.",
            metavar="SUITE",
        ),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="Methods, separated by commas. arrow:WEIGHTS takes other weights: a bundled name, a file or a folder."
        ),
    ] = "arrow",
    datasets: Annotated[int, typer.Option(min=1, help="Datasets for each row of a suite.")] = 100,
    output: Annotated[
        Path, typer.Option(help="Folder of the records. What it already holds is not run again.", parser=folder)
    ] = Path("benchmark-records"),
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds a method may take for one dataset.")] = 600.0,
    jobs: Annotated[int, typer.Option(min=0, help="Datasets at a time, one core each; 0 takes all cores.")] = 0,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed or ran out of time.")] = False,
    device: Annotated[
        str, typer.Option(help="Where arrow runs: cpu, cuda, cuda:1, auto. The other methods have one core.")
    ] = "cpu",
    scale: Annotated[
        Literal["auto", "given", "log"],
        typer.Option(help="How arrow reads skewed positive columns: both ways, as given, or their logarithms."),
    ] = "auto",
    environments: Annotated[
        Path | None, typer.Option(help="Folder of environments of methods whose packages conflict with these.")
    ] = None,
) -> None:
    """Run causal discovery methods over benchmark suites. It can be stopped: the same command continues."""
    from causal_arrow_lab.benchmarks.evaluate import run_benchmark, usable_cores
    from causal_arrow_lab.benchmarks.methods import MethodOptions
    from causal_arrow_lab.network.devices import resolve_device

    if not suites:
        _list_suites_and_methods()
        return
    run_benchmark(
        suites,
        methods,
        MethodOptions(environments, str(resolve_device(device)), scale),
        datasets=datasets,
        output=output,
        timeout=timeout,
        processes=jobs or usable_cores(),
        retry=retry,
    )


def _list_suites_and_methods() -> None:
    from causal_arrow_lab.benchmarks.methods import METHODS_FOR
    from causal_arrow_lab.benchmarks.suites import SUITES

    typer.echo("Suites:")
    for name, suite in SUITES.items():
        typer.echo(f"  {name:18} {suite.description} ({len(suite.rows())} rows)")
    for asked, methods in METHODS_FOR.items():
        typer.echo("\nMethods:" if asked == "graphs" else f"\nMethods of the suite {asked}:")
        for name, kind in methods.items():
            typer.echo(f"  {name:18} {kind.description}")
    typer.echo("\nFor example: causal-arrow-lab benchmark networks --methods arrow,boss,dagma --datasets 5")


EXAMPLES = {
    "benchmark": (
        "causal-arrow-lab benchmark networks --methods arrow,boss,dagma --datasets 5",
        "causal-arrow-lab benchmark shifted/all herman --methods arrow:runs/base/weights,arrow --output results",
        "causal-arrow-lab benchmark discrete/ALARM-2000 missing --methods arrow,boss-indicators,hc-bic --datasets 5",
        "causal-arrow-lab benchmark sachs --scale given",
        "causal-arrow-lab benchmark all --device cuda",
        "causal-arrow-lab benchmark effects --methods arrow,true-graph,dowhy,ida-pc,regression --datasets 50",
        "causal-arrow-lab benchmark experiments --methods arrow,chance,degree --datasets 50",
    )
}
"""Commands to show in the help."""
