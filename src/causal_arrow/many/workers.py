"""Processes that share the work: on this machine, on a Ray cluster or on a Dask cluster, all through joblib.

A failure in another process is a result too, and no process outlives the one that started it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import joblib

from causal_arrow.discovery.settings import check_count
from causal_arrow.errors import SURFACES, ArrowError, ConfigurationError, Remedy, check_choice, is_out_of_memory
from causal_arrow.text import reason

Job = Mapping[str, Any]
Work = Callable[[Job], dict[str, Any]]

MAX_ERROR = 500  # characters
SECONDS_BETWEEN_LOOKS = 0.2


def run_job(work: Work, job: Job) -> dict[str, Any]:
    """The result of work(job) with `status` "ok"; else "failed" and an `error` in the words of the job's "surface"."""
    try:
        return {"status": "ok", **work(job)}
    except Exception as error:
        return {"status": "failed", "error": sentence_of(error, job.get("surface", "python"))}


def sentence_of(error: Exception, surface: str = "python") -> str:
    """The error on one line, in the words of a surface."""
    if isinstance(error, ArrowError):
        sentence = error.worded(SURFACES[surface])
    elif is_out_of_memory(error):
        sentence = "There is not enough memory for this table: use fewer rows or fewer variables."
    else:
        sentence = f"{type(error).__name__}: {error}"
    return " ".join(sentence.split())[:MAX_ERROR]


def end_with(parent: int) -> None:
    """End this process soon after its parent, however that ended. Idle workers of joblib would stay for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


RESTARTS = 3  # of a dead Ray worker, which gets its work again; Dask has the same limit built in
CONNECT_SECONDS = 10
MAX_JOBS = 10_000
MAX_ATTEMPTS = 3  # at work that was lost with a process

Start = Callable[[int | None, str | None, str], AbstractContextManager["Workers"]]


@dataclass(frozen=True)
class Workers:
    """Running workers: how many, and the options of `joblib.parallel_config` that reach them."""

    count: int
    config: dict[str, Any]

    def attempt(self, work: Work, jobs: Iterable[Job], at_once: int | None = None) -> list[dict[str, Any]]:
        """The results of `run_job` in the order of the jobs; raises what joblib raises when a process dies."""
        calls = (joblib.delayed(run_job)(work, job) for job in jobs)
        options = {"batch_size": 1, "pre_dispatch": at_once or "2 * n_jobs"}
        with joblib.parallel_config(**self.config):
            if self.config["backend"] != "loky":
                return list(joblib.Parallel(**options)(calls))
            with _interrupts_held_back():  # until the processes have started
                results = joblib.Parallel(**options, return_as="generator")(calls)
            return list(results)

    def run(self, work: Work, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """The results, after several attempts if processes die; ConfigurationError if they keep dying."""
        for _ in range(MAX_ATTEMPTS):
            try:
                return self.attempt(work, jobs)
            except ArrowError:
                raise
            except Exception as error:  # each kind of worker dies in a different way
                broken = error
        raise ConfigurationError(f"The workers keep failing: {reason(broken)}.")


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Deliver ctrl-C afterwards. Processes started meanwhile inherit this, and leave it to us to end them quietly."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_backend(backend: str, cluster: str | None) -> None:
    """Raise ConfigurationError unless the backend exists, is installed, and can use the address of a cluster."""
    check_choice("backend", backend, tuple(BACKENDS))
    if backend == "loky" and cluster is not None:
        raise ConfigurationError(
            "A cluster was named, but the backend loky runs on this machine: choose ray or dask, or name no cluster."
        )
    package = {"ray": "ray", "dask": "distributed"}.get(backend)
    if package is not None and importlib.util.find_spec(package) is None:
        raise ConfigurationError(
            f'The backend {backend} needs a package that is not installed: pip install "causal-arrow[{backend}]".'
        )


def started(backend: str, jobs: int | None, cluster: str | None, device: str) -> AbstractContextManager[Workers]:
    """Workers for as long as the context lasts: by default one per core of the machine or of the cluster.

    Without the address of a cluster one is started on this machine; workers on GPUs ask Ray for one each.
    """
    check_backend(backend, cluster)
    if jobs is not None:
        check_count("jobs", jobs, MAX_JOBS)
    return BACKENDS[backend](jobs, cluster, device)


@contextlib.contextmanager
def _loky(jobs: int | None, cluster: str | None, device: str) -> Iterator[Workers]:
    """Processes of this machine, which share its cores; a single one is this process."""
    cores = joblib.cpu_count()
    count = jobs or cores
    if count == 1:
        yield Workers(1, {"backend": "sequential", "n_jobs": 1})
        return
    _start_trackers()
    config = {"inner_max_num_threads": max(1, cores // count), "initializer": end_with, "initargs": (os.getpid(),)}
    yield Workers(count, {"backend": "loky", "n_jobs": count, **config})


def _start_trackers() -> None:
    """Start the processes that clean up after killed ones, so that they do it without warnings on the terminal."""
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as joblib_tracker

    option = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(option)  # which they are started with
    try:
        resource_tracker.ensure_running()
        joblib_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(option)


@contextlib.contextmanager
def _ray(jobs: int | None, cluster: str | None, device: str) -> Iterator[Workers]:
    """Actors of a Ray cluster."""
    import ray
    from ray.util.joblib import register_ray

    address = cluster or os.environ.get("RAY_ADDRESS")
    ours = not ray.is_initialized()
    if ours:
        here = {"num_cpus": jobs or joblib.cpu_count(), "include_dashboard": False}
        try:
            ray.init(**({"address": address} if address else here), log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:
            where = f"Cannot reach the Ray cluster at '{address}'" if address else "Cannot start Ray on this machine"
            raise ConfigurationError(f"{where}: {reason(error)}.") from error
    try:
        register_ray()
        remote: dict[str, Any] = {"max_restarts": RESTARTS, "max_task_retries": RESTARTS}
        available = int(ray.cluster_resources().get("CPU", 0)) or 1
        if device.startswith("cuda"):
            remote["num_gpus"] = 1
            available = min(available, int(ray.cluster_resources().get("GPU", 0)))
            if not available:
                raise ConfigurationError("The Ray cluster has no GPU: choose the device cpu or auto.")
        count = min(jobs or available, available)
        yield Workers(count, {"backend": "ray", "n_jobs": count, "ray_remote_args": remote})
    finally:
        if ours:
            ray.shutdown()


@contextlib.contextmanager
def _dask(jobs: int | None, cluster: str | None, device: str) -> Iterator[Workers]:
    """Workers of a Dask cluster."""
    from distributed import Client, LocalCluster, default_client

    with contextlib.ExitStack() as ours:
        client = None
        if cluster is None:
            with contextlib.suppress(ValueError):  # the caller has no client
                client = default_client()
        if jobs is not None and (cluster is not None or client is not None):
            raise ConfigurationError(
                "A running Dask cluster has a fixed number of workers.", [Remedy("omit", setting="jobs")]
            )
        if client is None:
            try:
                here = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
                count = jobs or joblib.cpu_count()
                address = cluster or ours.enter_context(LocalCluster(n_workers=count, **here))
                client = ours.enter_context(Client(address, timeout=CONNECT_SECONDS))
            except (OSError, ValueError, RuntimeError) as error:
                where = f"Cannot reach the Dask cluster at '{cluster}'" if cluster else "Cannot start Dask here"
                raise ConfigurationError(f"{where}: {reason(error)}.") from error
        yield Workers(max(1, sum(client.ncores().values())), {"backend": "dask", "client": client})


BACKENDS: dict[str, Start] = {"loky": _loky, "ray": _ray, "dask": _dask}  # places where the work can run
