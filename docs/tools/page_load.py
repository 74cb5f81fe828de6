"""Many browsers at once: does each get its answer, how long does it take, and how much memory does the server need?

    python docs/tools/page_load.py --clients 20 --observations 1000 --variables 50

Starts a server of its own, lets every client open a table, wait for the graph, argue once and download it, all at the
same time, and prints what they saw.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from causal_arrow.discovery.settings import Settings
from causal_arrow.network import DEFAULT_MODEL
from causal_arrow.web.app import create_app
from causal_arrow.web.page import Page
from causal_arrow.web.server import listen, running

SECONDS_BETWEEN_QUESTIONS = 0.25  # as the page has it


@dataclass(frozen=True)
class Visit:
    """Result of one client: seconds until its graph, and for one argument; or what went wrong."""

    seconds: float
    argument_seconds: float = 0.0
    edges: int = 0
    trouble: str = ""


def table_as_csv(observations: int, variables: int, seed: int) -> bytes:
    """A table of its own for each client: sums of earlier columns, and noise."""
    random = np.random.default_rng(seed)
    weights = np.triu(random.random((variables, variables)) < 2 / variables, 1) * random.normal(
        size=(variables, variables)
    )
    values = random.laplace(size=(observations, variables))
    for index in range(variables):
        values[:, index] += values @ weights[:, index]
    names = ",".join(f"v{index + 1}" for index in range(variables))
    return "\n".join([names, *(",".join(f"{value:.6g}" for value in row) for row in values)]).encode()


def visit(port: int, table: bytes) -> Visit:
    """Open the table, wait for its graph, forbid its first edge, download it, leave."""
    started = time.perf_counter()

    def ask(method: str, path: str, body: bytes | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        if reply.status >= 400:
            raise RuntimeError(f"{method} {path.split('?')[0]} gave {reply.status}: {content[:200]!r}")
        return json.loads(content) if content else None

    try:
        key = ask("POST", "/api/sessions?name=table.csv", table)["session"]
        facts = ask("POST", f"/api/sessions/{key}/discovery", b"{}")
        while facts["state"] in ("waiting", "running"):
            time.sleep(SECONDS_BETWEEN_QUESTIONS)
            facts = ask("GET", f"/api/sessions/{key}")
        if facts["state"] != "done":
            raise RuntimeError(facts["message"] or facts["state"])
        seconds, edges = time.perf_counter() - started, facts["graph"]["edges"]
        forbidden = [[edge["source"], edge["target"]] for edge in edges[:1]]
        before = time.perf_counter()
        ask("PUT", f"/api/sessions/{key}/graph", json.dumps({"knowledge": {"forbidden": forbidden}}).encode())
        argument_seconds = time.perf_counter() - before
        ask("GET", f"/api/sessions/{key}/files/graph.json")
        return Visit(seconds, argument_seconds, len(edges))
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        return Visit(time.perf_counter() - started, trouble=str(error))


def peak_megabytes() -> float:
    """The most memory that this process has held; nan where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def together(clients: int, work: Callable[[int], Visit]) -> list[Visit]:
    """The times of all clients when they arrive together."""
    with ThreadPoolExecutor(clients) as crowd:
        return list(crowd.map(work, range(clients)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load and print it; 1 if any client did not get its answer."""
    parser = argparse.ArgumentParser(prog="python docs/tools/page_load.py", description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--observations", type=int, default=1000)
    parser.add_argument("--variables", type=int, default=50)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args(arguments)
    tables = [table_as_csv(given.observations, given.variables, seed) for seed in range(given.clients + 1)]
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    with running(listener, create_app(Page(Settings(model=str(given.model), device=given.device)))):
        alone = visit(port, tables[-1])
        before = peak_megabytes()
        visits = together(given.clients, lambda client: visit(port, tables[client]))
        after = peak_megabytes()
    answered = [each for each in visits if not each.trouble]
    print(f"one client alone: {alone.trouble or f'graph after {alone.seconds:.1f} s'}")
    print(
        f"{given.clients} clients with {given.observations}x{given.variables} each: {len(answered)} answers, "
        f"{len(visits) - len(answered)} errors"
    )
    if answered:
        seconds = sorted(each.seconds for each in answered)
        print(f"graph after {seconds[0]:.1f} s (first), {median(seconds):.1f} s (median), {seconds[-1]:.1f} s (last)")
        milliseconds = sorted(1000 * each.argument_seconds for each in answered)
        print(f"an argument: {median(milliseconds):.0f} ms (median), {milliseconds[-1]:.0f} ms (slowest)")
    print(f"peak memory: {before:,.0f} MB with one client, {after:,.0f} MB with all of them")
    for each in visits:
        if each.trouble:
            print(f"trouble: {each.trouble}")
    return int(len(answered) < len(visits) or bool(alone.trouble))


if __name__ == "__main__":
    sys.exit(main())
