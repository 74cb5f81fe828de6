"""Check what comes from outside: arguments of public functions, files, JSON and TOML, and the size of archives."""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import math
import numbers
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, BinaryIO, TypeVar, cast, get_args

from causal_arrow.errors import ConfigurationError
from causal_arrow.text import shown

Checked = TypeVar("Checked")

MAX_BYTES = 2**30
"""No file of settings, knowledge, graphs or answers is larger than this."""
FREE_BYTES = 64 * 2**20
"""Archives that unpack to at most this size are accepted whatever their ratio."""

NOT_A_FILE = "it is a pipe or a device, not a file"
_MANY_DOTS = re.compile(r"(?:\.[ \t]*[\w'\"-]+[ \t]*){20}")
_SUSPECT = re.compile(r"NaN|Infinity|\d{309}|[eE]\+?\d{3}")
"""Matches every JSON text that holds a number which is not finite."""
_HALVES = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""Matches every JSON text that holds half a character, which no file can hold."""


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
    """The content of a JSON text; ValueError if it is nested deeply, or for what `check_content` refuses.

    Without `finite`, numbers may be infinite or NaN.
    """
    text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if (finite and _SUSPECT.search(text)) or _HALVES.search(text):
        check_content(content, finite)
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
    check_content(content)
    return content


def check_content(content: Any, finite: bool = True) -> None:
    """ValueError for a number that is not finite, or text that cannot be saved, anywhere in parsed content."""
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += value.keys()
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, int | float) and finite:
            check_finite(value)
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError("it holds half a character (a lone surrogate)") from None


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
    """Whether an archive unpacks to more than `ratio` times its size, beyond FREE_BYTES."""
    return unpacked > max(FREE_BYTES, ratio * packed)


def is_zip_bomb(file: BinaryIO, ratio: int) -> bool:
    """Whether a zip archive unpacks to far more than its size. Python unpacks no more than the archive announces."""
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return False  # damaged: reported when it is read
    finally:
        file.seek(0)
    return is_bomb(packed, unpacked, ratio)


# Arguments


def checked(function: Checked) -> Checked:
    """The function, or the class with its public methods, with a check of every argument against its annotation.

    A value of another kind is a ConfigurationError; numpy's numbers become Python's. Annotations have to be strings, as
    after `from __future__ import annotations`.
    """
    if inspect.isclass(function):
        for name, member in list(vars(function).items()):
            wrapper, plain = (type(member), member.__func__) if isinstance(member, classmethod) else (None, member)
            if inspect.isfunction(plain) and (name == "__init__" or not name.startswith("_")):
                setattr(function, name, wrapper(checked(plain)) if wrapper else checked(plain))
        return cast(Checked, function)
    call = cast(Callable[..., Any], function)
    signature = inspect.signature(call)
    kinds = {
        parameter.name: _alternatives(parameter.annotation, call)
        for parameter in signature.parameters.values()
        if isinstance(parameter.annotation, str)
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }

    @wraps(call)
    def checking(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options)
        except TypeError:
            return call(*args, **options)  # Python's own words for an argument too many or too few
        for name, value in given.arguments.items():
            if alternatives := kinds.get(name):
                given.arguments[name] = _admitted(name, value, alternatives, signature.parameters[name].default)
        return call(*given.args, **given.kwargs)

    return cast(Checked, checking)


_UNFIT: Any = object()
"""In place of a value that is not of the kind."""
Kind = tuple[str, Callable[[Any], Any]]
"""A kind in words, and what makes a value of it or returns _UNFIT."""


def _whole(value: Any) -> Any:
    fits = isinstance(value, numbers.Integral) and not isinstance(value, bool) and abs(int(value)) < 2**63
    return int(value) if fits else _UNFIT


def _finite(value: Any) -> Any:
    try:
        fits = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return check_finite(value) if fits else _UNFIT
    except ValueError:
        return _UNFIT


def _truth(value: Any) -> Any:
    return bool(value) if type(value).__name__ in ("bool", "bool_") else _UNFIT


def as_list(value: Any) -> list[Any] | None:
    """The entries of a list, a tuple, a set, an array, a column or another collection; None for anything else."""
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        return None
    try:
        return list(value.to_list() if hasattr(value, "to_list") else value)
    except Exception:  # an array without dimensions, an object that fails to give its entries
        return None


def _list(value: Any) -> Any:
    entries = value if isinstance(value, list | tuple) else as_list(value)
    return _UNFIT if entries is None else entries


def _names(value: Any) -> Any:
    entries = _list(value)
    return entries if entries is not _UNFIT and all(isinstance(name, str) for name in entries) else _UNFIT


def _path(value: Any) -> Any:
    try:
        os.fsencode(value)  # a TypeError for anything but text and paths
    except (TypeError, UnicodeEncodeError):
        return _UNFIT
    return _UNFIT if isinstance(value, bytes) else value


def _seed(value: Any) -> Any:
    if type(value).__name__ in ("NoneType", "Generator", "RandomState"):
        return value
    seed = _whole(value)
    return seed if seed is not _UNFIT and seed >= 0 else _UNFIT


def _instance_of(*classes: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, classes) else _UNFIT


def _named_class(name: str) -> Callable[[Any], Any]:
    return lambda value: value if name in (each.__name__ for each in type(value).__mro__) else _UNFIT


_KINDS: Mapping[str, Kind] = {
    "int": ("a whole number", _whole),
    "float": ("a number", _finite),
    "bool": ("true or false", _truth),
    "str": ("text", _instance_of(str)),
    "None": ("None", _instance_of(type(None))),
    "path": ("text or a path", _path),
    "RandomState": ("None, a numpy generator or a whole number from 0 to 2**63 - 1", _seed),
    "Sequence[str]": ("a list of names", _names),
    "Sequence": ("a list", _list),
    "Iterable": ("a list", _list),
    "tuple": ("a tuple", _instance_of(tuple, list)),
    "Mapping": ("a mapping", _instance_of(Mapping)),
    "Callable": ("a function", lambda value: value if callable(value) else _UNFIT),
}
_UNCHECKED = frozenset({"Any", "Network", "Progress"})
"""Names in annotations that are protocols or stand for anything; so do all aliases."""


def _alternatives(annotation: str, function: Callable[..., Any]) -> tuple[Kind, ...]:
    """The kinds that an annotation names; none if anything may come."""
    annotation = re.sub(r"\bstr \| (Path|os\.PathLike\[str\])", "path", annotation)
    found: list[Kind] = []
    for part in re.split(r" \| (?![^\[]*\])", annotation):
        name = part if part in _KINDS else part.split("[")[0]
        if name in _UNCHECKED or not (name in _KINDS or _is_class(name, function)):
            return ()
        found.append(_KINDS.get(name, (f"{'an' if name[0] in 'AEIOU' else 'a'} {name}", _named_class(name))))
    return tuple(found)


def _is_class(name: str, function: Callable[..., Any]) -> bool:
    """Whether a name in an annotation is a class; one that only type checkers import is taken for one."""
    there = function.__globals__.get(name)
    # To Python 3.10 Mapping[str, int] is a class as well.
    return "." not in name and there is not Any and (there is None or (inspect.isclass(there) and not get_args(there)))


def _admitted(name: str, value: Any, alternatives: tuple[Kind, ...], default: Any) -> Any:
    for _, admit in alternatives:
        if (admitted := admit(value)) is not _UNFIT:
            return admitted
    words = " or ".join(dict.fromkeys(words for words, _ in alternatives))
    example = f", such as {default!r}," if isinstance(default, str | int | float) and default != "" else ","
    raise ConfigurationError(f"Expected {name} to be {words}{example} got {shown(value)}.")
