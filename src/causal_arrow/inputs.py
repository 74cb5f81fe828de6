"""Read what comes from outside with care: regular files, JSON and TOML of finite numbers, archives of bounded size."""

from __future__ import annotations

import errno
import importlib
import json
import math
import os
import re
import stat
import zipfile
from typing import Any, BinaryIO

MAX_BYTES = 2**30
"""No file of settings, knowledge, graphs or answers is larger than this."""
FREE_BYTES = 64 * 2**20
"""What unpacks to no more than this is never a bomb."""

NOT_A_FILE = "it is a pipe or a device, not a file"
_MANY_DOTS = re.compile(r"(?:\.[ \t]*[\w'\"-]+[ \t]*){100}")
_SUSPECT = re.compile(r"NaN|Infinity|\d{309}|[eE]\+?\d{3}")
"""What a JSON text has in it if it holds a number that is not finite."""


def check_regular(path: str | os.PathLike[str]) -> None:
    """OSError unless the path leads to a file or a folder: opening a pipe or a device may never return."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, NOT_A_FILE, os.fspath(path))


def read_bytes(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """The content of a file; OSError if it cannot be read, is not a regular file, or is larger than `max_bytes`."""
    check_regular(path)
    with open(path, "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes:,} bytes", os.fspath(path))
    return content


def parse_json(text: str | bytes, finite: bool = True) -> Any:
    """The content of a JSON text; ValueError if it is nested deeply or, with `finite`, a number is not finite."""
    text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if finite and _SUSPECT.search(text):
        _check_values(content)
    return content


def parse_toml(text: str) -> Any:
    """The content of a TOML text, with the same ValueErrors as `parse_json`; ImportError on Python 3.10 without it."""
    try:
        library = importlib.import_module("tomllib")  # from Python 3.11 on
    except ModuleNotFoundError:
        library = importlib.import_module("tomli")
    try:
        if _MANY_DOTS.search(text):  # the parser takes time with their square
            raise RecursionError
        content = library.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_values(content)
    return content


def _check_values(content: Any) -> None:
    """ValueError for a number that is not finite anywhere in parsed content."""
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, int | float):
            check_finite(value)


def check_finite(value: float) -> float:
    """The number as a float; ValueError if it is not finite, or too large for one."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("it holds a number that is not finite")
    return number


def is_bomb(packed: int, unpacked: int, ratio: int) -> bool:
    """Whether so few bytes unpack to so many that somebody must have meant harm."""
    return unpacked > max(FREE_BYTES, ratio * packed)


def is_zip_bomb(file: BinaryIO, ratio: int) -> bool:
    """Whether a zip archive unpacks to far more than its size. Python unpacks no more than the archive announces."""
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return False  # damaged: whoever reads it says so
    finally:
        file.seek(0)
    return is_bomb(packed, unpacked, ratio)
