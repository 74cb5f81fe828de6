"""Run SDCD inside its separate environment: tables in, answers out, as npz files.

The interpreter of that environment runs this file; it has numpy and the method's package, but no causal_arrow.

One JSON line comes in for each table, {"input": PATH, "output": PATH}, and one goes out, {"status": "ok"} or
{"status": "failed", "error": SENTENCE}. The input holds `data` (N, P), the output `adjacency` and `scores`, (P, P)
each with [j, k] for j → k, and `seconds`. The first line out is {"status": "ready"}. The process ends when its standard
input does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

if __name__ == "__main__":  # before numpy is imported: one core for each method
    for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[_threads] = "1"
    os.environ["WANDB_MODE"] = "disabled"


Solve = Callable[["np.ndarray[Any, Any]"], "dict[str, Any]"]


def start_sdcd() -> Solve:
    """Stable differentiable causal discovery (Nazaret et al. 2024), with the settings of its package."""
    import pandas
    import torch
    from sdcd.models import SDCD
    from sdcd.utils import create_intervention_dataset

    torch.set_num_threads(1)

    def solve(data: np.ndarray[Any, Any]) -> dict[str, Any]:
        table = pandas.DataFrame(standardized(data), columns=[str(k) for k in range(data.shape[1])])
        table["perturbation_label"] = "obs"  # no observation was intervened upon
        dataset = create_intervention_dataset(table)
        model = SDCD()
        start = time.process_time()
        model.train(dataset)
        adjacency = model.get_adjacency_matrix()
        seconds = time.process_time() - start
        return {
            "adjacency": adjacency,
            "scores": np.abs(model.get_adjacency_matrix(threshold=False)),
            "seconds": seconds,
        }

    return solve


def standardized(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    centered = data - data.mean(axis=0)
    deviations = centered.std(axis=0)
    return np.asarray(centered / np.where(deviations > 0, deviations, 1.0))


def sentence_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def converse() -> tuple[SimpleQueue[dict[str, Any]], Callable[[dict[str, Any]], None]]:
    """JSON lines from standard input, as they come, and a function that writes one to standard output.

    What packages print to standard output is dropped. The process ends when its standard input does.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            requests.put(json.loads(line))
        os._exit(0)  # the parent is gone, and nobody needs the result

    def say(reply: dict[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    threading.Thread(target=listen, daemon=True).start()
    return requests, say


def main() -> None:
    requests, say = converse()
    solve = start_sdcd()
    say({"status": "ready"})
    while True:
        request = requests.get()
        try:
            with np.load(request["input"]) as table:
                answer = solve(table["data"])
            np.savez(request["output"], **answer)
        except Exception as error:
            say({"status": "failed", "error": sentence_of(error)})
        else:
            say({"status": "ok"})


if __name__ == "__main__":
    main()
