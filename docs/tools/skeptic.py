"""Rerun benchmark answers and compare them with the records in this repository: `python docs/tools/skeptic.py`.

Draws 5 datasets in each of 6 rows (other ones with another `--seed`), runs 5 methods on them, and compares F1, AP and
nSHD with the records. Prints one line per row and method, and ends with status 2 if an answer differs by more than
TOLERANCE. Of FLOP and BOSS means are compared and not each answer: FLOP restarts its search at random and takes no
seed, and BOSS chooses between equal scores by their rounding errors, which differ between processors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.methods import MethodOptions
from causal_arrow_lab.benchmarks.records import Record
from causal_arrow_lab.benchmarks.worker import options_to_json, run_job
from causal_arrow_lab.programs import run_program
from make_pages import packed, records_of

ROWS = ("networks/ECOLI70", "networks/MAGIC-NIAB", "sachs/pooled-raw", "herman/UUMC", "shifted/all", "small/n=50")
METHODS = ("arrow", "flop", "boss", "pc", "r2sort")
UNSTABLE = ("flop", "flop-3", "boss", "boss-1")
MEASURES = ("f1", "ap", "nshd")
TOLERANCE = 0.02
"""Largest difference of a measure. Rounding may move an edge whose probability lies at the threshold."""
TOLERANCE_OF_MEANS = 0.15
"""Largest difference of a mean over five datasets of an unstable method: 0.07 was seen."""


def chosen_records(rows: Sequence[str], methods: Sequence[str], datasets: int, seed: int) -> list[Record]:
    """Records of datasets that are drawn at random from those that all methods have answered."""
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records_of("benchmarks"):
        name = f"{record.suite}/{record.row}"
        if name in rows and record.method in methods and record.status == "ok" and "scale" not in record.settings:
            found.setdefault((name, record.method), {})[record.index] = record
    random = np.random.default_rng(seed)
    chosen = []
    for row in rows:
        answered = [set(found.get((row, method), {})) for method in methods]
        common = sorted(set.intersection(*answered))
        if len(common) < datasets:
            raise BenchmarkError(
                f"{packed('benchmarks').name} has {len(common)} datasets of {row} that {', '.join(methods)} all "
                f"answered: expected {datasets}."
            )
        for index in random.choice(common, datasets, replace=False):
            chosen += [found[row, method][int(index)] for method in methods]
    return chosen


def difference(record: Record) -> dict[str, float]:
    """Run the method of a record on its dataset again; the new measures minus those of the record."""
    job = {"suite": record.suite, "row": record.row, "index": record.index, "method": record.method}
    where = f"{record.suite}/{record.row} #{record.index}"
    answer = run_job({**job, "options": options_to_json(MethodOptions())})
    if answer["status"] != "ok":
        raise BenchmarkError(f"{record.method} failed on {where}: {answer['error']}")
    known = {name: value for name, value in record.dataset.items() if name in ("seed", "edges", "graph_checksum")}
    if known != {name: answer["dataset"][name] for name in known}:
        raise BenchmarkError(
            f"The dataset {where} is another one than in the records: this version of torch "
            "or numpy draws other random numbers. Install the versions of constraints.txt."
        )
    pairs = {name: (answer["measures"].get(name), record.measures.get(name)) for name in MEASURES}
    # Both lack a measure where it is undefined, as nSHD is for a graph without edges.
    return {name: (new or 0.0) - (old or 0.0) for name, (new, old) in pairs.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), metavar="SUITE/ROW")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), metavar="METHOD")
    parser.add_argument("--datasets", type=int, default=5, help="of each row [5]")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of datasets [0]")
    return run_program(parser, run, arguments)


def run(options: argparse.Namespace) -> None:
    """Print the largest difference in each row and of each method; BenchmarkError if one is too large."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in chosen_records(options.rows, options.methods, options.datasets, options.seed):
        groups.setdefault((f"{record.suite}/{record.row}", record.method), []).append(record)
    wrong = 0
    for (row, method), members in groups.items():
        apart = [difference(record) for record in members]
        if method in UNSTABLE:
            largest, limit = max(abs(fmean(one[name] for one in apart)) for name in MEASURES), TOLERANCE_OF_MEANS
        else:
            largest, limit = max(abs(value) for one in apart for value in one.values()), TOLERANCE
        wrong += largest > limit
        f1 = fmean(record.measures.get("f1", 0.0) for record in members)
        numbers = " ".join(str(record.index) for record in members)
        verdict = "agrees" if largest <= limit else "DIFFERS"
        print(f"{row:20} {method:8} F1 {f1:.3f}  largest difference {largest:.4f}  {verdict}  (datasets {numbers})")
        sys.stdout.flush()
    if wrong:
        raise BenchmarkError(f"{wrong} of {len(groups)} rows and methods differ from the records.")
    print(f"All {sum(map(len, groups.values()))} answers agree with the records.")


if __name__ == "__main__":
    sys.exit(main())
