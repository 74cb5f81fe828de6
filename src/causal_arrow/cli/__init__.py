"""The command line, `causal-arrow`.

This module imports next to nothing, so that ctrl-C is handled before the long imports begin. Half of the time of a
short command went into garbage collection while packages load, and into unloading them at the end; a process that is
about to end needs neither.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

STOPS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""Signals that stop a command in an orderly way, and how Python handles them by default."""

NEW_OBJECTS = 100_000
"""After so many Python looks for unused ones; by itself after 700, some hundred times while packages load."""


def main(arguments: Sequence[str] | None = None, program: str = "causal_arrow.cli.program:PROGRAM") -> None:
    """Run a program, named as "module:constant", and exit with its status.

    0 done, 1 failed (or, of `check`, a table that `discover` would refuse), 2 something the user can put right, 130
    stopped with ctrl-C, 143 stopped with SIGTERM.
    """
    status = stopped = 0

    def stop(number: int, frame: Any) -> None:
        nonlocal stopped
        stopped = number
        raise KeyboardInterrupt

    # Signals that the parent ignores, as nohup does, or handles already stay as they are.
    ours = {number: usual for number, usual in STOPS.items() if signal.getsignal(number) is usual}
    try:
        if arguments is None:
            gc.set_threshold(NEW_OBJECTS)
        with contextlib.suppress(ValueError):  # only the main thread may
            for number in ours:
                signal.signal(number, stop)
        from causal_arrow.cli.program import run

        module, _, constant = program.partition(":")
        status = run(getattr(importlib.import_module(module), constant), arguments)
    except BaseException as error:
        # Packages that are interrupted while they load may raise something else, an ImportError for example.
        if not stopped:
            if not isinstance(error, Exception):
                raise
            from causal_arrow.cli.program import explain

            status = explain(error, program.partition(".")[0].replace("_", "-"))
    finally:
        with contextlib.suppress(ValueError):
            for number, usual in ours.items():
                # As a program we are leaving, and a second ctrl-C while Python shuts down would print a traceback.
                signal.signal(number, signal.SIG_DFL if arguments is None else usual)
    if stopped:
        status = 128 + stopped  # as shells say it
    if arguments is None:
        _end(status)
    sys.exit(status)


def _end(status: int) -> None:
    """Run the exit handlers of packages and end the process, without unloading the packages."""
    if sys.flags.inspect or sys.flags.interactive:  # as in `python -i`
        return
    threading._shutdown()  # type: ignore[attr-defined]  # as multiprocessing ends its processes
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the error has been reported
            stream.flush()
    os._exit(status)
