"""The command line, `causal-arrow`.

What the program starts with imports next to nothing, so that ctrl-C is in hand before the long imports begin. Half of
the time of a short command went into Python's search for unused objects while packages load, and into taking them
apart at the end; a process that is about to end needs neither.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

INTERRUPTED = 130  # what shells call a program that ctrl-C ended

NEW_OBJECTS = 100_000
"""After so many Python looks for unused ones; by itself after 700, some hundred times while torch loads."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and leave it with an exit status.

    0 done, 1 failed (or, of `check`, a table that `discover` would refuse), 2 something the user can put right, 130
    stopped with ctrl-C.
    """
    interrupted = False

    def interrupt(*_: Any) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    # Whoever started us with ctrl-C ignored, as nohup does, or handles it already, keeps it that way.
    takes_over = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if arguments is None:
            gc.set_threshold(NEW_OBJECTS)
        if takes_over:
            with contextlib.suppress(ValueError):  # only the main thread may
                signal.signal(signal.SIGINT, interrupt)
        from causal_arrow.cli.program import run

        status = run(arguments)
    except BaseException as error:
        # Packages that are interrupted while they load may raise something else, an ImportError for example.
        if interrupted:
            status = INTERRUPTED
        elif isinstance(error, Exception):
            from causal_arrow.cli.program import explain

            status = explain(error)
        else:
            raise
    finally:
        if takes_over:
            with contextlib.suppress(ValueError):
                # As a program we are leaving, and a second ctrl-C while Python shuts down would print a traceback.
                signal.signal(signal.SIGINT, signal.SIG_DFL if arguments is None else signal.default_int_handler)
    if arguments is None:
        _end(status)
    sys.exit(status)


def _end(status: int) -> None:
    """End the process when all is done that packages want done at the end, without taking them apart."""
    if sys.flags.inspect or sys.flags.interactive:  # as in `python -i`
        return
    threading._shutdown()  # type: ignore[attr-defined]  # as multiprocessing ends its processes
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # what went wrong there has been told
            stream.flush()
    os._exit(status)
