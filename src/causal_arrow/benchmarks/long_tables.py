"""How long tables fare: accuracy by the number of observations that are read one by one, time and memory.

    python -m causal_arrow.benchmarks.long_tables accuracy --records docs/evidence/records/long-tables.jsonl
    python -m causal_arrow.benchmarks.long_tables speed --records docs/evidence/records/long-tables.jsonl
    python -m causal_arrow.benchmarks.long_tables write --records docs/evidence/records/long-tables.jsonl \\
        --page docs/evidence/scale.md

The first two add records, one line each; the last writes the section "Long tables" of the page from them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from causal_arrow.benchmarks.scale_page import replace_section
from causal_arrow.discovery.arranged import OBSERVATIONS_READ
from causal_arrow.discovery.pipeline import Settings, discover
from causal_arrow.graphs.metrics import average_precision, f1
from causal_arrow.network.bundled import DEFAULT_MODEL
from causal_arrow.synthetic.tasks import TaskDistribution

# N observations, P variables

READ = (500, 2000, 5000, OBSERVATIONS_READ, 50_000)
SECTION = "long tables"
MEASURES = {"nll": "NLL/p", "f1": "F1", "ap": "AP"}

TEXT = """## Long tables

A table may have any number of observations. Files with more than four million cells are read in parts; numbers lie in
memory up to a gigabyte and in temporary files (`TMPDIR`) beyond that. What the network is told about pairs of variables
(correlations, partial correlations, ranks, cross moments, cross tables of categories) is computed over **all**
observations. Cell by cell it reads at most {read:,} of them, drawn evenly, because more hardly improve its answers;
`--observations` and `Arrow(observations=...)` read more or fewer. Which ones are drawn depends neither on the order of
the table nor on units, signs or names of levels. The answer is the same from a file and from memory, and whatever the
size of the chunks. A bar shows what is done and the time left, where standard error is a terminal. A table for which
there is no room is refused before it is read.
"""

ACCURACY = """
### How many observations are worth reading one by one

{tasks} tasks of {observations:,} observations and {variables} variables from the `broad` distribution, {model}: means
with their standard errors. "These alone": the answer for a table of only that many observations.

| read one by one | statistics of | NLL/p | F1 | AP |
|---:|---|---|---|---|
"""

SPEED = """
### Time and memory

`causal-arrow discover FILE --json` from start to end, in a process of its own, {model}. Where other programs keep the
machine busy, seconds are many more than processor seconds.

| table | file | threads | seconds | processor seconds | peak memory |
|---|---|---:|---:|---:|---:|
"""

# Runs a command and prints the peak of its memory: that of the children of this process is the largest of all so far.
WITH_PEAK = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)"""

FOOTER = "\nBy `python -m causal_arrow.benchmarks.long_tables` from `docs/evidence/records/long-tables.jsonl`.\n"


def accuracy(tasks: int, observations: int, variables: int, first_seed: int) -> Iterator[dict[str, Any]]:
    """A record for each drawn task, number of observations read, and whether the statistics are those of all."""
    distribution = TaskDistribution.for_training("broad")
    for seed in range(first_seed, first_seed + tasks):
        task = distribution.sample(1, observations, variables, torch.Generator().manual_seed(seed))
        values, truth = task.tables.values[0].double().numpy(), task.truth.adjacency[0].numpy()
        shuffled = np.random.default_rng(seed).permutation(values)
        for read in READ:
            for statistics, table in (("all", values), ("these", shuffled[:read])):
                if statistics == "these" and read >= observations:
                    continue  # which are all
                settings = Settings(device="cpu", scale="given", observations=read)
                answer = discover(table, settings, progress=False).answer
                places = np.array(answer.arrangement)
                arranged = truth[np.ix_(places, places)]
                nll = answer.distribution.skeleton_order.composite_nll(torch.from_numpy(arranged))
                yield {
                    "kind": "accuracy",
                    "model": DEFAULT_MODEL,
                    "seed": seed,
                    "observations": observations,
                    "variables": variables,
                    "read": read,
                    "statistics": statistics,
                    "nll": float(nll) / variables,
                    "f1": f1(truth, answer.adjacency),
                    "ap": average_precision(truth, answer.edge_probabilities) if truth.any() else None,
                }


def make_table(path: Path, observations: int, variables: int) -> None:
    """Write a table of effects of two causes each, with Laplace noise, to a Parquet or CSV file."""
    import pandas as pd

    random = np.random.default_rng(0)
    values = random.laplace(size=(observations, variables))
    for column in range(1, variables):
        causes = random.choice(column, min(column, 2), replace=False)
        values[:, column] += 0.6 * values[:, causes].sum(axis=1)
        values[:, column] /= values[:, column].std()
    frame = pd.DataFrame(values, columns=[f"x{place + 1}" for place in range(variables)])
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        from pyarrow import Table, csv

        csv.write_csv(Table.from_pandas(frame.round(6), preserve_index=False), path)  # much faster than pandas


def speed(
    observations: int, variables: int, endings: Sequence[str], threads: int, folder: Path
) -> Iterator[dict[str, Any]]:
    """A record for each kind of file: seconds, processor seconds and peak memory of the command line.

    The tables are made in the folder, unless they are there.
    """
    for ending in endings:
        path = folder / f"table-{observations}x{variables}.{ending}"
        if not path.exists():
            make_table(path, observations, variables)
        command = [sys.executable, "-m", "causal_arrow", "discover", str(path), "--json", "--device", "cpu"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", WITH_PEAK, *command],
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        yield {
            "kind": "speed",
            "model": DEFAULT_MODEL,
            "observations": observations,
            "variables": variables,
            "file": ending,
            "bytes": path.stat().st_size,
            "threads": threads,
            "seconds": time.perf_counter() - started,
            "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "peak_memory_gb": int(done.stderr.split()[-1]) / 1e6,
            "edges": len(json.loads(done.stdout)["edges"]),
            "processor": platform.machine(),
            "load": os.getloadavg()[0],
        }


def section(records: Iterable[Mapping[str, Any]]) -> str:
    """The section of the page."""
    records = list(records)
    lines = [TEXT.format(read=OBSERVATIONS_READ)]
    measured = [record for record in records if record["kind"] == "accuracy"]
    if measured:
        first = measured[0]
        tasks = len({record["seed"] for record in measured})
        sizes = {name: first[name] for name in ("observations", "variables", "model")}
        lines.append(ACCURACY.format(tasks=tasks, **sizes))
        for read in sorted({record["read"] for record in measured}):
            for statistics, words in (("all", "all observations"), ("these", "these alone")):
                rows = [record for record in measured if (record["read"], record["statistics"]) == (read, statistics)]
                if not rows:
                    continue
                cells = [_mean([row[measure] for row in rows if row[measure] is not None]) for measure in MEASURES]
                lines.append(f"| {read:,} | {words} | {' | '.join(cells)} |\n")
    timed = [record for record in records if record["kind"] == "speed"]
    if timed:
        lines.append(SPEED.format(model=timed[0]["model"]))
        for record in timed:
            size = f"{record['observations']:,} × {record['variables']}"
            lines.append(
                f"| {size} | {record['file']}, {record['bytes'] / 1e9:.2f} GB "
                f"| {record['threads']} | {record['seconds']:.0f} | {record['processor_seconds']:.0f} "
                f"| {record['peak_memory_gb']:.1f} GB |\n"
            )
    return "".join([*lines, FOOTER])


def _mean(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.3f} ± {error:.3f}"


def write(page: Path, text: str) -> None:
    """Put the section in its place on the page."""
    page.write_text(replace_section(page.read_text(encoding="utf-8"), SECTION, text), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or write the section."""
    parser = argparse.ArgumentParser(prog="python -m causal_arrow.benchmarks.long_tables", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=("accuracy", "speed", "write"))
    parser.add_argument("--records", type=Path, required=True, help="file with one record per line")
    parser.add_argument("--page", type=Path, help="where `write` puts the section")
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--observations", type=int, help="default: 50,000 for accuracy, 1,000,000 for speed")
    parser.add_argument("--variables", type=int, help="default: 10 for accuracy, 50 for speed")
    parser.add_argument("--files", nargs="+", default=["parquet", "csv"], choices=("parquet", "csv"))
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="where `speed` keeps its tables"
    )
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    if options.what == "write":
        if options.page is None:
            parser.error("write needs --page")
        lines = options.records.read_text(encoding="utf-8").splitlines()
        write(options.page, section(json.loads(line) for line in lines))
        return
    if options.what == "accuracy":
        made = accuracy(options.tasks, options.observations or 50_000, options.variables or 10, options.first_seed)
    else:
        shape = options.observations or 1_000_000, options.variables or 50
        made = speed(*shape, options.files, options.threads, options.folder)
    with options.records.open("a", encoding="utf-8") as file:
        for record in made:
            print(json.dumps(record), file=file, flush=True)
            print(record)


if __name__ == "__main__":
    main()
