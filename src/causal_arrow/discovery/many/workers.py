"""Processes that share the work: of this machine, of a Ray cluster, of a Dask cluster, all behind joblib."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import joblib

from causal_arrow.discovery.jobs import run_job
from causal_arrow.errors import ArrowError, ConfigurationError, Remedy, check_choice
from causal_arrow.text import reason

RESTARTS = 3
"""How often Ray starts a worker again that died, and gives it its work again. Dask has the same number of its own."""


CONNECT_SECONDS = 10
"""For how long a Dask cluster is looked for."""
MOST_ATTEMPTS = 3
"""At work that was lost with a process."""


@dataclass(frozen=True)
class Workers:
    """Processes that are ready: how many, and the options of `joblib.parallel_config` that reach them."""

    count: int
    config: dict[str, Any]

    def attempt(self, jobs: Iterable[Mapping[str, Any]], at_once: int | None = None) -> list[dict[str, Any]]:
        """The results of `run_job`, in the order of the jobs; whatever joblib raises when a process dies."""
        with joblib.parallel_config(**self.config):
            run = joblib.Parallel(batch_size=1, pre_dispatch=at_once or "2 * n_jobs")
            results: list[dict[str, Any]] = run(joblib.delayed(run_job)(job) for job in jobs)
        return results

    def run(self, jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The same, and again when a process dies; ConfigurationError if that happens again and again."""
        for _ in range(MOST_ATTEMPTS):
            try:
                return self.attempt(jobs)
            except ArrowError:
                raise
            except Exception as error:  # each kind of worker dies in its own way
                broken = error
        raise ConfigurationError(f"The workers keep failing: {reason(broken)}.")


def check_backend(backend: str, cluster: str | None) -> None:
    """ConfigurationError unless there is such a backend, its package, and a use for the address of a cluster."""
    check_choice("backend", backend, tuple(BACKENDS))
    if backend == "loky" and cluster is not None:
        raise ConfigurationError(
            "A cluster was named, but the backend loky is processes of this machine: choose ray or dask, or name none."
        )
    package = {"ray": "ray", "dask": "distributed"}.get(backend)
    if package is not None and not _is_installed(package):
        raise ConfigurationError(
            f'The backend {backend} needs a package that is not installed: pip install "causal-arrow[{backend}]".'
        )


def started(backend: str, jobs: int | None, cluster: str | None, device: str) -> AbstractContextManager[Workers]:
    """Workers while they are needed.

    backend   One of BACKENDS.
    jobs      How many; by default as many as the cluster has, or the machine has cores.
    cluster   The address of a cluster that is running; by default one on this machine is started, and ended again.
    device    Of the settings: workers that are to use GPUs ask Ray for one each.
    """
    check_backend(backend, cluster)
    return BACKENDS[backend](jobs, cluster, device)


class Start(Protocol):
    def __call__(self, jobs: int | None, cluster: str | None, device: str) -> AbstractContextManager[Workers]: ...


@contextlib.contextmanager
def _loky(jobs: int | None, cluster: str | None, device: str) -> Iterator[Workers]:
    """Processes of this machine, which share its cores; for one of them, this process itself."""
    cores = joblib.cpu_count()
    count = jobs or cores
    if count == 1:
        yield Workers(1, {"backend": "sequential", "n_jobs": 1})
        return
    threads = max(1, cores // count)
    yield Workers(count, {"backend": "loky", "n_jobs": count, "inner_max_num_threads": threads})


@contextlib.contextmanager
def _ray(jobs: int | None, cluster: str | None, device: str) -> Iterator[Workers]:
    """Actors of a Ray cluster."""
    import ray
    from ray.util.joblib import register_ray

    address = cluster or os.environ.get("RAY_ADDRESS")
    ours = not ray.is_initialized()
    if ours:
        place: dict[str, Any] = {"address": address} if address else {"num_cpus": jobs or joblib.cpu_count()}
        if not address:
            place["include_dashboard"] = False
        try:
            ray.init(**place, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:
            where = f"Cannot reach the Ray cluster at '{address}'" if address else "Cannot start Ray on this machine"
            raise ConfigurationError(f"{where}: {reason(error)}.") from error
    try:
        register_ray()
        there = int(ray.cluster_resources().get("CPU", 0)) or 1
        remote: dict[str, Any] = {"max_restarts": RESTARTS, "max_task_retries": RESTARTS}
        if device.startswith("cuda"):
            remote["num_gpus"] = 1
            there = min(there, int(ray.cluster_resources().get("GPU", 0)))
            if not there:
                raise ConfigurationError("The Ray cluster has no GPU: choose the device cpu or auto.")
        count = min(jobs or there, there)
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
            with contextlib.suppress(ValueError):  # nobody has made one
                client = default_client()
        if jobs is not None and (cluster is not None or client is not None):
            raise ConfigurationError(
                "A Dask cluster that is running has a number of workers of its own.", [Remedy("omit", setting="jobs")]
            )
        if client is None:
            address: Any = cluster
            try:
                if cluster is None:
                    address = ours.enter_context(
                        LocalCluster(
                            n_workers=jobs or joblib.cpu_count(),
                            threads_per_worker=1,
                            dashboard_address=None,
                            silence_logs=logging.CRITICAL,
                        )
                    )
                client = ours.enter_context(Client(address, timeout=CONNECT_SECONDS))
            except (OSError, ValueError, RuntimeError) as error:
                where = f"Cannot reach the Dask cluster at '{cluster}'" if cluster else "Cannot start Dask here"
                raise ConfigurationError(f"{where}: {reason(error)}.") from error
        count = sum(client.ncores().values())
        yield Workers(max(1, count), {"backend": "dask", "client": client})


BACKENDS: dict[str, Start] = {"loky": _loky, "ray": _ray, "dask": _dask}
"""Where the work can go."""


def _is_installed(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None
