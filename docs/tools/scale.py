"""Measure wide and long tables: time, memory and accuracy. `make_pages.py` writes the tables of docs/evidence/scale.md.

    python docs/tools/scale.py wide --variables 50 100 200 500 1000
    python docs/tools/scale.py wide --variables 200 --methods boss dagma --timeout 600
    python docs/tools/scale.py times           of Arrow, FLOP and BOSS, with their accuracy
    python docs/tools/scale.py accuracy        by the number of observations that are read one by one
    python docs/tools/scale.py speed           of the command line, on large files

Each adds records to a file in docs/evidence/records. A wide table is answered in a separate process on one thread, so
that its peak memory is that of the process, and its processor time hardly depends on other programs.
"""

# N observations, P variables

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from causal_arrow.discovery.arranged import OBSERVATIONS_READ
from causal_arrow.discovery.pipeline import discover
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import ArrowError
from causal_arrow.graphs.metrics import average_precision, f1
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow_lab.benchmarks.datasets import BoolArray, Dataset, FloatArray, unnamed
from causal_arrow_lab.benchmarks.evaluate import WORKER_VARIABLES
from causal_arrow_lab.programs import peak_memory_gb
from document import Block, Cell, Grid, Heading, Paragraph, Picture
from overview import ARROW, network_name, spoken
from suite_pages import span

EVIDENCE = Path(__file__).parents[1] / "evidence"
RECORDS = EVIDENCE / "records" / "scale.jsonl"
RECORDS_OF_LONG_TABLES = EVIDENCE / "records" / "long-tables.jsonl"
RECORDS_OF_TIMES = EVIDENCE / "records" / "times.jsonl"
FIGURE = EVIDENCE / "scale-figures" / "wide.svg"
FIGURE_OF_TIMES = EVIDENCE / "scale-figures" / "times.svg"
TIMED = {"arrow": "Arrow", "flop": "FLOP", "boss": "BOSS"}
TIMED_SIZES = (25, 50, 100, 200)
OBSERVATIONS = 1000
EDGES_PER_VARIABLE = 2
READ = (500, 2000, 5000, OBSERVATIONS_READ, 50_000)
MEASURES = {"nll": "NLL/p", "f1": "F1", "ap": "AP"}
Y_TICKS = (0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 20, 50, 100, 200)

PUBLISHED = ("CauScale (published)", "1,000", "0.83 on a GPU", "", "", ".966 linear, .797 neural")
PUBLISHED_NOTE = "The row of CauScale is as its authors published it; their tables also hold interventions."

# Runs a command and prints its peak memory: the children of this process would have the largest of all so far.
WITH_PEAK = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)"""

ScaleRecord = dict[str, Any]
Solve = Callable[[FloatArray], tuple[BoolArray, FloatArray]]


# Wide tables


def draw_wide_dataset(variables: int, index: int, observations: int = OBSERVATIONS) -> Dataset:
    """Draw a task of the paper's distribution with about two edges per variable: the first seeds that have them."""
    import torch

    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    wanted, found = EDGES_PER_VARIABLE * variables, -1
    for seed in range(10_000):

        def draw(observations: int, seed: int = seed) -> Any:
            generator = torch.Generator().manual_seed(seed)
            return TaskDistribution.paper().sample(1, observations, variables, generator)

        # The graph is drawn before the observations, so two of them suffice to see it.
        found += abs(int(draw(2).adjacency.sum()) - wanted) <= 0.1 * wanted
        if found == index:
            task = draw(observations)
            return unnamed(task.data[0].double().numpy(), task.adjacency[0].numpy(), seed=seed)
    raise AssertionError("about one seed in ten has that many edges")


def measure_wide(variables: int, method: str, index: int) -> ScaleRecord:
    """Measure one method on one table, in this process."""
    dataset = draw_wide_dataset(variables, index)
    name, _, model = method.partition(":")
    solve = _arrow(model or DEFAULT_MODEL) if name == ARROW else _rival(method)
    solve(np.random.default_rng(0).standard_normal((50, 5)))  # work that is done once per process
    started, spent = time.perf_counter(), time.process_time()
    adjacency, scores = solve(dataset.data)
    seconds, spent = time.perf_counter() - started, time.process_time() - spent
    return {
        "kind": "wide",
        "method": method,
        "variables": variables,
        "observations": len(dataset.data),
        "edges": int(dataset.adjacency.sum()),
        "dataset": index,
        "seconds": seconds,
        "processor_seconds": spent,
        "peak_gb": peak_memory_gb(),
        "f1": f1(dataset.adjacency, adjacency),
        "ap": average_precision(dataset.adjacency, scores),
    }


def _arrow(model: str) -> Solve:
    def solve(data: FloatArray) -> tuple[BoolArray, FloatArray]:
        settings = Settings(model=model, scale="given", directions="network")
        answer = discover(data, settings, progress=False).answer
        return answer.adjacency, answer.edge_probabilities

    return solve


def _rival(method: str) -> Solve:
    from causal_arrow_lab.benchmarks.methods import MethodOptions, prepare

    solve = prepare(method, MethodOptions()).start()

    def answer(data: FloatArray) -> tuple[BoolArray, FloatArray]:
        estimate = solve(data, np.random.default_rng(0))
        return estimate.adjacency, estimate.scores

    return answer


def in_own_process(arguments: Sequence[str], timeout: float) -> ScaleRecord | None:
    """Measure in a separate process; None if its processor time exceeds the limit."""
    limit = max(1, round(timeout))
    command = [sys.executable, __file__, "one", *arguments, "--timeout", str(limit)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **WORKER_VARIABLES})
    if done.returncode == -signal.SIGXCPU:
        return None
    done.check_returncode()
    record: ScaleRecord = json.loads(done.stdout.splitlines()[-1])
    return record


def one(options: argparse.Namespace) -> None:
    """Print the record of one table, with a limit on the processor time."""
    import resource  # not on Windows

    # The signal of the soft limit is recognizable, also where the imports take longer; the hard limit kills.
    resource.setrlimit(resource.RLIMIT_CPU, (options.timeout, options.timeout + 60))
    variables, method, index = options.which
    print(json.dumps(measure_wide(int(variables), method, int(index))))


def wide(options: argparse.Namespace) -> Iterator[ScaleRecord]:
    """Measure each number of variables, dataset and method."""
    for variables in options.variables:
        for index in range(options.datasets):
            for method in options.methods:
                unfinished = {"kind": "wide", "method": method, "variables": variables, "dataset": index}
                record = in_own_process([str(variables), method, str(index)], options.timeout)
                yield record or {**unfinished, "timeout": options.timeout}


def wide_blocks(records: Sequence[ScaleRecord]) -> list[Block]:
    """Time, memory and accuracy by number of variables, and the exponents."""
    groups: dict[tuple[int, str], list[ScaleRecord]] = {}
    for record in records:
        groups.setdefault((record["variables"], record["method"]), []).append(record)
    rows = [_wide_row(*key, some) for key, some in sorted(groups.items())]
    rows.append(tuple(Cell(text, italic=True) for text in PUBLISHED))
    low, high, of_time, of_memory = exponents(records)
    return [
        Grid(("method", "variables", "processor seconds", "memory (GB)", "F1", "AP"), tuple(rows)),
        Paragraph(PUBLISHED_NOTE),
        Paragraph(
            f"Between {low} and {high} variables the processor's time grows as the power {of_time:.1f} of their "
            f"number, and memory as the power {of_memory:.1f}."
        ),
        Picture(FIGURE, "Processor time and memory over the number of variables"),
    ]


def _wide_row(variables: int, method: str, records: Sequence[ScaleRecord]) -> tuple[Cell, ...]:
    done = [record for record in records if "seconds" in record]

    def mean(name: str, digits: int) -> str:
        return f"{fmean(record[name] for record in done):.{digits}f}" if done else ""

    seconds = mean("processor_seconds", 1) if done else f"over {records[0]['timeout']:.0f}"
    texts = (_label(method), f"{variables:,}", seconds, mean("peak_gb", 2), mean("f1", 2), mean("ap", 2))
    return tuple(Cell(text) for text in texts)


def _label(method: str) -> str:
    return network_name(method) if method.partition(":")[0] == ARROW else method


def exponents(records: Sequence[ScaleRecord]) -> tuple[int, int, float, float]:
    """The two largest numbers of variables of arrow-base, and the exponents of time and memory between them."""
    measured = [record for record in records if record["method"] == ARROW and "seconds" in record]
    low, high = sorted({record["variables"] for record in measured})[-2:]

    def exponent(name: str) -> float:
        before, after = (fmean(one[name] for one in measured if one["variables"] == size) for size in (low, high))
        return float(np.log(after / before) / np.log(high / low))

    return low, high, exponent("processor_seconds"), exponent("peak_gb")


def draw_wide(records: Sequence[ScaleRecord]) -> None:
    """Draw processor time and peak memory over the number of variables, on logarithmic scales."""
    from figures import panels, save_figure

    figure, axes = panels(2, width=8.0)
    labels = {"processor_seconds": "processor time (s)", "peak_gb": "peak memory (GB)"}
    every = sorted({record["variables"] for record in records if "seconds" in record})
    for axis, (name, label) in zip(axes, labels.items(), strict=True):
        for method in sorted({record["method"] for record in records}):
            some: Mapping[int, list[float]] = {
                size: [
                    one[name] for one in records if (one["method"], one["variables"]) == (method, size) and name in one
                ]
                for size in every
            }
            sizes = [size for size in every if some[size]]
            axis.plot(sizes, [fmean(some[size]) for size in sizes], marker="o", label=_label(method))
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(every, [f"{size:,}" for size in every])
        low, high = axis.get_ylim()
        shown = [value for value in Y_TICKS if low <= value <= high]
        axis.set_yticks(shown, [f"{value:g}" for value in shown])
        axis.tick_params(which="minor", bottom=False, left=False, labelbottom=False, labelleft=False)
        axis.set_xlabel("variables")
        axis.set_ylabel(label)
    axes[1].legend(loc="upper left")  # where there are no lines
    save_figure(figure, FIGURE)


# Time against accuracy


def times(options: argparse.Namespace) -> Iterator[ScaleRecord]:
    """Time each method on linear tables, in turns on one thread; the shortest processor time of several rounds counts.

    Other programs make a round slower, never faster.
    """
    from causal_arrow_lab.benchmarks.generated import draw_paper_dataset
    from causal_arrow_lab.benchmarks.methods import MethodOptions, prepare

    solvers = {method: prepare(method, MethodOptions()).start() for method in TIMED}
    for variables in options.variables:
        for index in range(options.datasets):
            random = np.random.default_rng([variables, index])
            dataset = draw_paper_dataset(random, functions="linear", observations=OBSERVATIONS, variables=variables)
            best: dict[str, Any] = {}
            for number in range(options.rounds):
                for method, solve in solvers.items():
                    found = solve(dataset.data, np.random.default_rng(number))
                    if method not in best or found.seconds < best[method].seconds:
                        best[method] = found
            for method, found in best.items():
                yield {
                    "kind": "times",
                    "method": method,
                    "variables": variables,
                    "observations": OBSERVATIONS,
                    "dataset": index,
                    "edges": int(dataset.adjacency.sum()),
                    "rounds": options.rounds,
                    "processor_seconds": found.seconds,
                    "f1": f1(dataset.adjacency, found.adjacency),
                    "load": os.getloadavg()[0],
                }


def times_blocks(records: Sequence[ScaleRecord]) -> list[Block]:
    """Seconds and F1 of each method by number of variables, and a figure."""
    sizes = _sizes(records)
    datasets = span([len({one["dataset"] for one in records if one["variables"] == size}) for size in sizes])
    lines = []
    for size in sizes:
        seconds, accuracy = (
            {method: mean_of(records, size, method, name) for method in TIMED} for name in SHOWN_OF_TIMES
        )
        quickest, best = min(seconds.values()), max(accuracy.values())
        lines.append(
            (
                Cell(f"{OBSERVATIONS:,} × {size}"),
                *(Cell(f"{value:.2f}", bold=value == quickest) for value in seconds.values()),
                *(Cell(f"{value:.2f}", bold=value == best) for value in accuracy.values()),
            )
        )
    header = ("table", *(f"{title}, s" for title in TIMED.values()), *(f"{title}, F1" for title in TIMED.values()))
    ratios = spoken([f"{mean_of(records, size, ARROW) / mean_of(records, size, 'flop'):.1f}" for size in sizes])
    return [
        Grid(header, tuple(lines)),
        Paragraph(
            f"Processor seconds of one thread and F1, means over {datasets} tables of each size: linear tables of the "
            f"paper's distribution with {OBSERVATIONS:,} observations, which Arrow is trained on. One run on one "
            f"machine, the methods in turns; of {records[0]['rounds']} rounds the fastest counts, because other "
            "programs were running. Bold marks the fastest and the most accurate."
        ),
        Paragraph(
            f"**FLOP is faster than Arrow on linear tables {_where_flop_is_faster(records)}.** From the smallest size "
            f"to the largest Arrow takes {ratios} times as long as FLOP. Its time depends on the size alone, that of "
            "FLOP and BOSS also on the number of edges: they are quicker in sparse graphs."
        ),
        Picture(FIGURE_OF_TIMES, "Accuracy against processor time. The small numbers count variables."),
    ]


def times_sentence(records: Sequence[ScaleRecord]) -> str:
    """Time per table, by method and number of columns, and where FLOP is faster."""
    sizes = _sizes(records)
    found = [
        f"{title} {', '.join(f'{mean_of(records, size, method):.1f}' for size in sizes)}"
        for method, title in TIMED.items()
    ]
    return (
        f"Seconds on one core for a linear table of {OBSERVATIONS:,} rows and {spoken(sizes)} columns: "
        f"{'; '.join(found)}. FLOP is faster than Arrow {_where_flop_is_faster(records)}."
    )


def _where_flop_is_faster(records: Sequence[ScaleRecord]) -> str:
    sizes = _sizes(records)
    faster = [size for size in sizes if mean_of(records, size, "flop") < mean_of(records, size, ARROW)]
    return "at every size" if len(faster) == len(sizes) else f"with {spoken(faster)} columns"


SHOWN_OF_TIMES = ("processor_seconds", "f1")


def _sizes(records: Sequence[ScaleRecord]) -> list[int]:
    return sorted({record["variables"] for record in records})


def mean_of(records: Sequence[ScaleRecord], size: int, method: str, name: str = "processor_seconds") -> float:
    return fmean(one[name] for one in records if (one["variables"], one["method"]) == (size, method))


def draw_times(records: Sequence[ScaleRecord]) -> None:
    """Draw F1 against processor seconds, as the paper's first figure does, with a line for each method."""
    from figures import STYLES, panels, save_figure

    figure, (axis,) = panels(1, width=5.5, height=3.4)
    for method, title in TIMED.items():
        color, marker = STYLES[method]
        points = [[mean_of(records, size, method, name) for name in SHOWN_OF_TIMES] for size in _sizes(records)]
        axis.plot(*zip(*points, strict=True), color=color, marker=marker, label=title)
        for (seconds, accuracy), size in zip(points, _sizes(records), strict=True):
            axis.annotate(str(size), (seconds, accuracy), textcoords="offset points", xytext=(2, -11), fontsize=7)
    axis.set_xscale("log")
    axis.margins(y=0.1)
    axis.set(xlabel="processor seconds", ylabel="F1")
    axis.legend(loc="lower right", frameon=False)
    save_figure(figure, FIGURE_OF_TIMES)


# Long tables


def accuracy(options: argparse.Namespace) -> Iterator[ScaleRecord]:
    """Answer drawn tasks with few or many observations read one by one, and statistics of all or of these alone."""
    import torch

    from causal_arrow_lab.skeleton_order import SkeletonOrder
    from causal_arrow_lab.synthetic.tasks import TaskDistribution

    distribution, observations = TaskDistribution.for_training("broad"), options.observations
    for seed in range(options.first_seed, options.first_seed + options.tasks):
        task = distribution.sample(1, observations, options.variables, torch.Generator().manual_seed(seed))
        values, truth = task.tables.values[0].double().numpy(), task.truth.adjacency[0].numpy()
        shuffled = np.random.default_rng(seed).permutation(values)
        for read in READ:
            for statistics, table in (("all", values), ("these", shuffled[:read])):
                if statistics == "these" and read >= observations:
                    continue  # which are all
                answer = discover(table, Settings(device="cpu", scale="given", max_rows=read), progress=False).answer
                order, found = np.array(answer.arrangement), answer.distribution
                scored = SkeletonOrder(torch.tensor(found.skeleton_logits), torch.tensor(found.order_scores))
                nll = scored.composite_nll(torch.from_numpy(truth[np.ix_(order, order)]))
                yield {
                    "kind": "accuracy",
                    "model": DEFAULT_MODEL,
                    "seed": seed,
                    "observations": observations,
                    "variables": options.variables,
                    "read": read,
                    "statistics": statistics,
                    "nll": float(nll) / options.variables,
                    "f1": f1(truth, answer.adjacency),
                    "ap": average_precision(truth, answer.edge_probabilities) if truth.any() else None,
                }


def make_table(path: Path, observations: int, variables: int) -> None:
    """Write a table of effects of two causes each, with Laplace noise, to a Parquet or CSV file."""
    import pandas as pd
    from pyarrow import Table, csv

    random = np.random.default_rng(0)
    values = random.laplace(size=(observations, variables))
    for column in range(1, variables):
        causes = random.choice(column, min(column, 2), replace=False)
        values[:, column] += 0.6 * values[:, causes].sum(axis=1)
        values[:, column] /= values[:, column].std()
    frame = pd.DataFrame(values, columns=[f"x{column + 1}" for column in range(variables)])
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        csv.write_csv(Table.from_pandas(frame.round(6), preserve_index=False), path)  # much faster than pandas


def speed(options: argparse.Namespace) -> Iterator[ScaleRecord]:
    """Time the command line on each kind of file. Tables are made in the folder, unless they are there."""
    import resource  # not on Windows

    for ending in ("parquet", "csv"):
        path = options.folder / f"table-{options.observations}x{options.variables}.{ending}"
        if not path.exists():
            make_table(path, options.observations, options.variables)
        command = [sys.executable, "-m", "causal_arrow", "discover", str(path), "--json", "--device", "cpu"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", WITH_PEAK, *command],
            env={**os.environ, "OMP_NUM_THREADS": str(options.threads)},
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        yield {
            "kind": "speed",
            "model": DEFAULT_MODEL,
            "observations": options.observations,
            "variables": options.variables,
            "file": ending,
            "bytes": path.stat().st_size,
            "threads": options.threads,
            "seconds": time.perf_counter() - started,
            "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "peak_memory_gb": int(done.stderr.split()[-1]) / 1e6,
            "edges": len(json.loads(done.stdout)["edges"]),
            "load": os.getloadavg()[0],
        }


def long_blocks(records: Sequence[ScaleRecord]) -> list[Block]:
    """Accuracy by the number of observations read one by one, and time and memory of large files."""
    measured, timed = ([record for record in records if record["kind"] == kind] for kind in ("accuracy", "speed"))
    first = measured[0]
    lines = []
    for read in sorted({record["read"] for record in measured}):
        for statistics, words in (("all", "all observations"), ("these", "these alone")):
            rows = [record for record in measured if (record["read"], record["statistics"]) == (read, statistics)]
            if rows:
                means = (_mean([row[measure] for row in rows if row[measure] is not None]) for measure in MEASURES)
                lines.append((Cell(f"{read:,}"), Cell(words), *map(Cell, means)))
    files = [
        (
            f"{record['observations']:,} × {record['variables']}",
            f"{record['file']}, {record['bytes'] / 1e9:.2f} GB",
            str(record["threads"]),
            f"{record['seconds']:.0f}",
            f"{record['processor_seconds']:.0f}",
            f"{record['peak_memory_gb']:.1f} GB",
        )
        for record in timed
    ]
    return [
        Heading("How many observations are worth reading one by one", 3),
        Paragraph(
            f"{len({record['seed'] for record in measured})} tasks of {first['observations']:,} observations and "
            f"{first['variables']} variables from the `broad` distribution, {first['model']}: means with their "
            'standard errors. "These alone": the answer for a table of only that many observations '
            "(`python docs/tools/scale.py accuracy`)."
        ),
        Grid(("read one by one", "statistics of", *MEASURES.values()), tuple(lines), text_columns=2),
        Heading("Time and memory", 3),
        Paragraph(
            f"`causal-arrow discover FILE --json` from start to end, {timed[0]['model']} (`python docs/tools/scale.py "
            "speed`). Where other programs keep the machine busy, seconds are many more than processor seconds."
        ),
        Grid(
            ("table", "file", "threads", "seconds", "processor seconds", "peak memory"),
            tuple(tuple(map(Cell, file)) for file in files),
            text_columns=2,
        ),
    ]


def _mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.3f} ± {stdev(values) / len(values) ** 0.5:.3f}"


# The command


def read_records(path: Path) -> list[ScaleRecord]:
    """Read all records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("wide", help="time, memory and accuracy of wide tables")
    command.add_argument("--variables", type=int, nargs="+", default=[50, 100, 200, 500, 1000])
    command.add_argument("--methods", nargs="+", default=[ARROW])
    command.add_argument("--datasets", type=int, default=1)
    command.add_argument("--timeout", type=float, default=600.0, help="processor seconds for one table")
    command.set_defaults(measure=wide, records=RECORDS)
    command = commands.add_parser("times", help="time and accuracy of Arrow, FLOP and BOSS on linear tables")
    command.add_argument("--variables", type=int, nargs="+", default=list(TIMED_SIZES))
    command.add_argument("--datasets", type=int, default=5, help="tables of each size")
    command.add_argument("--rounds", type=int, default=3)
    command.set_defaults(measure=times, records=RECORDS_OF_TIMES)
    command = commands.add_parser("accuracy", help="by the number of observations that are read one by one")
    command.add_argument("--tasks", type=int, default=24)
    command.add_argument("--first-seed", type=int, default=1)
    command.add_argument("--observations", type=int, default=50_000)
    command.add_argument("--variables", type=int, default=10)
    command.set_defaults(measure=accuracy, records=RECORDS_OF_LONG_TABLES)
    command = commands.add_parser("speed", help="time and memory of large files")
    command.add_argument("--observations", type=int, default=1_000_000)
    command.add_argument("--variables", type=int, default=50)
    command.add_argument("--threads", type=int, default=2)
    command.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the tables are kept")
    command.set_defaults(measure=speed, records=RECORDS_OF_LONG_TABLES)
    command = commands.add_parser("one", help="print the record of one wide table")
    command.add_argument("which", nargs=3, metavar=("VARIABLES", "METHOD", "DATASET"))
    command.add_argument("--timeout", type=int, default=600, help="processor seconds after which it is ended")
    options = parser.parse_args(arguments)
    try:
        if options.command == "one":
            one(options)
            return 0
        for record in options.measure(options):
            line = json.dumps({**record, "processors": os.cpu_count(), "machine": platform.machine()})
            with options.records.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            print(line, flush=True)
    except ArrowError as error:
        print(f"scale.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
