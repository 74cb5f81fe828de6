"""Run a method inside a separate environment: tables in, answers out, as npz files.

The interpreter of that environment runs this file; it has numpy and the method's package, but no causal_arrow.

    python isolated_worker.py METHOD [--check] [--weights DIR]

One JSON line comes in for each table, {"input": PATH, "output": PATH}, and one goes out, {"status": "ok"} or
{"status": "failed", "error": SENTENCE}. The input holds `data` (N, P), the output `adjacency`, `scores`,
`probabilities` if the method has them, (P, P) each with [j, k] for j → k, and `seconds`. The first line out is
{"status": "ready"}. The process ends when its standard input does.
"""

from __future__ import annotations

import argparse
import importlib
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
    for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[_threads] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["WANDB_MODE"] = "disabled"


Solve = Callable[["np.ndarray[Any, Any]"], "dict[str, Any]"]


def start_sdcd(weights: str | None) -> Solve:
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


def start_avici(weights: str | None) -> Solve:
    """AVICI (Lorch et al. 2022) with the user's weights: a folder with `kwargs.json` and `checkpoint_*.pkl`."""
    import inspect
    from pathlib import Path

    from avici.model import BaseModel, InferenceModel
    from avici.pretrain import AVICIModel
    from avici.utils.load import load_checkpoint

    assert weights is not None
    # avici.load_pretrained looks for kwargs.json in the wrong folder, so its steps are repeated here.
    state, settings = load_checkpoint(Path(weights))
    known = inspect.signature(InferenceModel).parameters
    inference = {key: value for key, value in settings["inference_model_kwargs"].items() if key in known}
    network = settings["neural_net_kwargs"]
    network = network.get("model_kwargs", network)
    inference_model = InferenceModel(**inference, model_class=BaseModel, model_kwargs=network)
    model = AVICIModel(params=state.params, model=inference_model, expects_counts=False)

    def solve(data: np.ndarray[Any, Any]) -> dict[str, Any]:
        table = data.astype(np.float32)
        model(x=table, return_probs=True)  # compiles for tables of this shape
        start = time.process_time()
        probabilities = np.asarray(model(x=table, return_probs=True), dtype=np.float64)
        seconds = time.process_time() - start
        np.fill_diagonal(probabilities, 0.0)
        return {
            "adjacency": probabilities > 0.5,
            "scores": probabilities,
            "probabilities": probabilities,
            "seconds": seconds,
        }

    return solve


METHODS: dict[str, Callable[[str | None], Solve]] = {"avici": start_avici, "sdcd": start_sdcd}
IMPORTS = {"avici": ("avici.pretrain", "avici.backbone"), "sdcd": ("sdcd.models",)}


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
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--check", action="store_true", help="only try to import the method")
    parser.add_argument("--weights")
    arguments = parser.parse_args()

    if arguments.check:
        for module in IMPORTS[arguments.method]:
            importlib.import_module(module)
        return

    requests, say = converse()
    solve = METHODS[arguments.method](arguments.weights)
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
