"""Inputs as the world has them: broken, odd and hostile, and the good ones that only look so.

A case is a family, a kind and a seed, and each goes through a surface that people use: the command line, `read_table`,
`Arrow`, `Discovery`, `Knowledge`, `load_model`. What must hold, whatever comes:

- Python raises an ArrowError or nothing; the command line prints a sentence and leaves with 0, 2, or 1 where `check`
  refuses a table. No traceback, no "This is a bug", no warning of a foreign package, nothing that takes forever.
- An answer has no cycle, probabilities between 0 and 1, an order that its edges follow, and obeys what is known.
- Files are written whole or not at all, and the caller's table stays as it was.
- What is odd but sound works, what is unusable is refused: kinds say so with `works` and `refused`.

    python tests/bad_inputs.py --cases 10000 --seed 3
    python tests/bad_inputs.py --family files --kind crlf --case-seed 17
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import fractions
import functools
import gzip
import importlib
import importlib.util
import inspect
import io
import json
import os
import pickle
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file
from sklearn.exceptions import NotFittedError

import bombs
from causal_arrow import (
    Answer,
    Arrow,
    Discovery,
    Knowledge,
    ReadOptions,
    SeriesDiscovery,
    Settings,
    discover,
    load_example,
)
from causal_arrow.cli.program import PROGRAM
from causal_arrow.errors import ArrowError, ArrowWarning
from causal_arrow.graphs.files import read_graph
from causal_arrow.network.checkpoint import CONFIG_FILE, WEIGHTS_FILE, load_model
from causal_arrow.output import UNFINISHED
from causal_arrow.series import SeriesOptions
from causal_arrow.series.answer import SeriesAnswer
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.table import Abilities
from small_network import random_network, save_network

WORKS, REFUSED, EITHER = "works", "refused", "either"
NUMBERS_ONLY = Abilities("the model", frozenset())
MAX_SECONDS = 10
SUBPROCESSES = 0.005  # share of command lines that run as programs of their own


@dataclass(frozen=True)
class Case:
    family: str
    kind: str
    seed: int

    def __str__(self) -> str:
        return f"python tests/bad_inputs.py --family {self.family} --kind {self.kind} --case-seed {self.seed}"

    def random(self) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(f"{self.family}/{self.kind}".encode()), self.seed])


class Broken(AssertionError):
    """Something that must hold did not."""


class Unsound(Broken):
    """An answer is wrong in itself."""


@dataclass
class World:
    """What a kind can draw on: chance, an empty folder that is the current one, a small model."""

    random: np.random.Generator
    folder: Path
    model: Path

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def frame(self, rows: int | None = None, columns: int | None = None) -> pd.DataFrame:
        """A table that nothing is wrong with: columns a, b, c, ... with some dependence."""
        rows = rows or int(self.random.integers(20, 60))
        columns = columns or int(self.random.integers(3, 6))
        values = self.random.normal(size=(rows, columns))
        values[:, 1:] += 0.8 * values[:, :-1]
        return pd.DataFrame(values, columns=[chr(97 + place % 26) * (1 + place // 26) for place in range(columns)])

    def csv(self, frame: pd.DataFrame | None = None, **settings: Any) -> str:
        return str((self.frame() if frame is None else frame).to_csv(index=False, **settings))

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return path


Maker = Callable[[World], Any]
KINDS: dict[str, dict[str, tuple[Maker, str]]] = {}


def enter_all(family: str, expected: str, makers: dict[str, Maker]) -> None:
    """Enter makers of inputs by name, with what should come of them."""
    for name, maker in makers.items():
        assert name not in KINDS.setdefault(family, {}), name
        KINDS[family][name] = (maker, expected)


# ------------------------------------------------------------------------------------------------------------- files
# A maker answers with a path, or with a path and options for reading it.


def _with_column(values: Callable[[World, int], Sequence[Any]], name: str = "z") -> Maker:
    def make(world: World) -> Path:
        frame = world.frame()
        frame[name] = values(world, len(frame))
        return world.write("table.csv", world.csv(frame))

    return make


def _named(names: Callable[[World, int], Sequence[str]]) -> Maker:
    def make(world: World) -> Path:
        frame = world.frame()
        frame.columns = list(names(world, frame.shape[1]))
        return world.write("table.csv", world.csv(frame))

    return make


def _text(change: Callable[[World, str], str | bytes], name: str = "table.csv") -> Maker:
    return lambda world: world.write(name, change(world, world.csv()))


def _cells(change: Callable[[World, np.ndarray], np.ndarray], rows: int | None = None) -> Maker:
    def make(world: World) -> Path:
        frame = world.frame(rows)
        return world.write("table.csv", world.csv(pd.DataFrame(change(world, frame.to_numpy()), columns=frame.columns)))

    return make


def _mutated(content: bytes, random: np.random.Generator, share: float = 0.01) -> bytes:
    array = np.frombuffer(content, dtype=np.uint8).copy()
    places = random.integers(len(array), size=max(1, int(share * len(array))))
    array[places] = random.integers(256, size=len(places))
    return array.tobytes()


def _cut(content: bytes, random: np.random.Generator) -> bytes:
    return content[: int(random.integers(len(content)))]


def _spoiled(values: Callable[[World, int], Sequence[Any]]) -> Callable[[World, np.ndarray], np.ndarray]:
    def change(world: World, cells: np.ndarray) -> np.ndarray:
        cells = cells.copy()
        count = int(world.random.integers(1, 6))
        rows, columns = (world.random.integers(size, size=count) for size in cells.shape)
        cells[rows, columns] = values(world, count)
        return cells

    return change


def _as(writer: str, name: str, **settings: Any) -> Maker:
    def make(world: World) -> Path:
        getattr(world.frame(), writer)(world.folder / name, **settings)
        return world.folder / name

    return make


def _spoiled_file(writer: str, name: str, spoil: Callable[[bytes, np.random.Generator], bytes]) -> Maker:
    def make(world: World) -> Path:
        getattr(world.frame(), writer)(world.folder / name)
        return world.write(name, spoil((world.folder / name).read_bytes(), world.random))

    return make


enter_all(
    "files",
    WORKS,
    {
        "plain": _text(lambda world, text: text),
        "crlf": _text(lambda world, text: text.replace("\n", "\r\n")),
        "no_last_newline": _text(lambda world, text: text.rstrip("\n")),
        "byte_order_mark": _text(lambda world, text: b"\xef\xbb\xbf" + text.encode()),
        "utf16": _text(lambda world, text: text.encode("utf-16")),
        "gzip": _text(lambda world, text: gzip.compress(text.encode()), "table.csv.gz"),
        "semicolons": _text(lambda world, text: text.replace(",", ";")),
        "tabs": _text(lambda world, text: text.replace(",", "\t"), "table.tsv"),
        "decimal_commas": lambda world: world.write("table.csv", world.csv(sep=";", decimal=",")),
        "rows_of_delimiters": _text(
            lambda world, text: text + f"{',' * text.splitlines()[0].count(',')}\n" * int(world.random.integers(1, 99))
        ),
        "nameless_columns": _named(lambda world, p: world.pick([*"ab", "", *"cd"], ["", "x3", "", *"cd"])[:p]),
        "blank_lines_between": _text(lambda world, text: text.replace("\n", "\n\n")),
        "spaces_after_commas": _text(lambda world, text: text.replace(",", ", ")),
        "quoted_newline_in_name": _named(lambda world, p: ["first\nsecond", *"bcdef"[: p - 1]]),
        "unicode_names": _named(lambda world, p: ["größe", "年齢", "возраст", "🙂", "e\u0301"][:p]),
        "markup_names": _named(lambda world, p: ["[red]a", "<b>&amp;", "$x^2$", '"', "\\n"][:p]),
        "long_names": _named(lambda world, p: [f"{place}" + "long " * 300 + "x" for place in range(p)]),
        "names_of_the_tongue": _named(lambda world, p: ["None", "True", "-1", "->", "class"][:p]),
        "huge_values": _cells(lambda world, cells: cells * 10.0 ** int(world.random.integers(100, 151))),
        "tiny_values": _cells(lambda world, cells: cells * 10.0 ** -int(world.random.integers(100, 151))),
        "huge_integers": _cells(lambda world, cells: 2**62 + (cells * 10**6).astype(np.int64)),
        "tiny_table": lambda world: world.write("table.csv", world.csv(world.frame(20, 2))),
        "wide_table": lambda world: world.write(
            "table.csv", world.csv(world.frame(25, int(world.random.integers(20, 40))))
        ),
        "signs_flipped": _cells(lambda world, cells: cells * world.random.choice([-1.0, 1.0], size=cells.shape[1])),
        "doubled_rows": _cells(lambda world, cells: np.concatenate([cells] * 2)),
        "rounded": _cells(lambda world, cells: cells.round(0) + np.arange(cells.shape[0])[:, None] % 2),
        "zeros_and_ones": _with_column(lambda world, n: np.arange(n) % 2),
        "yes_and_no": _with_column(lambda world, n: ["yes" if row % 3 else "no" for row in range(n)]),
        "other_units": _cells(lambda world, cells: cells * 10.0 ** world.random.integers(-8, 9, size=cells.shape[1])),
        "parquet": _as("to_parquet", "table.parquet"),
        "feather": _as("to_feather", "table.feather"),
        "workbook": _as("to_excel", "table.xlsx", index=False),
        "workbook_below_blank_rows": _as("to_excel", "table.xlsx", index=False, startrow=3, startcol=1),
        "header_said_absent": lambda world: (
            world.write("table.csv", world.csv(header=False)),
            ["--no-header"],
        ),
        "missing_said_dropped": lambda world: (
            _cells(_spoiled(lambda world, n: np.full(n, np.nan)), rows=30)(world),
            ["--missing", world.pick("drop", "impute")],
        ),
        "column_left_out": lambda world: (
            _with_column(lambda world, n: ["text"] * n, 'comma, and "quotes"')(world),
            ["--drop", '"comma, and ""quotes"""'],
        ),
    },
)
enter_all(
    "files",
    REFUSED,
    {
        "empty": lambda world: world.write("table.csv", b""),
        "blank": lambda world: world.write("table.csv", world.pick("\n", "   ", "\n\n\n", "\ufeff", "\t\n")),
        "only_names": _text(lambda world, text: text.split("\n")[0] + "\n"),
        "one_column": lambda world: world.write("table.csv", world.csv(world.frame(columns=5)[["a"]])),
        "too_few_rows": lambda world: world.write(
            "table.csv", world.csv(world.frame(int(world.random.integers(1, 20))))
        ),
        "program": lambda world: world.write("table.csv", b"\x7fELF\x02\x01\x01\x00" + world.random.bytes(500)),
        "archive": lambda world: world.write("table.csv", b"PK\x03\x04" + world.random.bytes(500)),
        "bytes": lambda world: world.write("table.csv", b"\x00" + world.random.bytes(300)),
        "nul_in_the_middle": _text(lambda world, text: text.replace(",", ",\x00", 1)),
        "text_named_parquet": _text(lambda world, text: text, "table.parquet"),
        "text_named_workbook": _text(lambda world, text: text, "table.xlsx"),
        "text_named_feather": _text(lambda world, text: text, "table.feather"),
        "text_named_gzip_parquet": _text(lambda world, text: gzip.compress(text.encode()), "table.parquet"),
        "unknown_ending": _text(lambda world, text: text, "table.docx"),
        "no_ending": _text(lambda world, text: text, "table"),
        "text_column": _with_column(lambda world, n: [f"town{row}" for row in range(n)]),
        "almost_identifiers": _with_column(lambda world, n: [f"town{max(row, 1)}" for row in range(n)]),
        "dates": _with_column(lambda world, n: [f"2024-01-{1 + row % 28:02}" for row in range(n)]),
        "dates_in_words": _with_column(
            lambda world, n: [
                world.pick("2024-0{}", "{} January 2024", "Jan {}", "{}:09 PM").format(1 + row % 9) for row in range(n)
            ]
        ),
        "constant": _with_column(lambda world, n: [world.pick(0, 1e-300, 41, -1e300)] * n),
        "all_missing": _with_column(lambda world, n: [""] * n),
        "same_name_twice": _named(lambda world, p: ["a"] * p),
        "infinities": _cells(_spoiled(lambda world, n: world.random.choice([np.inf, -np.inf], size=n))),
        "more_fields_than_names": _text(lambda world, text: text + "1,2,3,4,5,6,7,8,9\n"),
        "no_such_file": lambda world: Path(world.pick("none.csv", "a/b/c.csv", "~none/x.csv", "\udcff.csv")),
        "folder": lambda world: world.folder,
        "name_too_long": lambda world: world.folder / ("a" * 300 + ".csv"),
        "numbers_beyond_all": _with_column(lambda world, n: ["9" * 400 for _ in range(n)]),
    },
)
enter_all(
    "files",
    EITHER,
    {
        "cells_missing": _cells(_spoiled(lambda world, n: np.full(n, np.nan))),
        "latin1": _named(lambda world, p: ["größe", "é", "ñ", "ß", "ø"][:p]),
        "spaces_around_commas": _text(lambda world, text: text.replace(",", " , ")),
        "carriage_returns": _text(lambda world, text: text.replace("\n", "\r")),
        "ragged": _text(lambda world, text: text.replace(",", world.pick(",,", "", ", ,"), 3)),
        "quote_never_closed": _text(lambda world, text: text.replace(",", ',"', int(world.random.integers(1, 9)))),
        "control_characters_in_names": _named(
            lambda world, p: [
                f"a{chr(int(code))}b" for code in world.random.permutation(np.r_[9, 11, 12, 28:32, 127:160])[:p]
            ]
        ),
        "names_empty": _named(lambda world, p: ["", " ", "\t", "\u200b", "x"][:p]),
        "names_with_blanks": _named(lambda world, p: ["dose ", " dose", "dose", "do se", "d"][:p]),
        "surrogates": _text(lambda world, text: "\ud800" + text),
        "damaged_text": _text(lambda world, text: _mutated(text.encode(), world.random)),
        "cut_text": _text(lambda world, text: _cut(text.encode(), world.random)),
        "damaged_gzip": _text(lambda world, text: _mutated(gzip.compress(text.encode()), world.random), "table.csv.gz"),
        "cut_gzip": _text(lambda world, text: _cut(gzip.compress(text.encode()), world.random), "table.csv.gz"),
        "damaged_parquet": _spoiled_file("to_parquet", "table.parquet", _mutated),
        "cut_parquet": _spoiled_file("to_parquet", "table.parquet", _cut),
        "damaged_feather": _spoiled_file("to_feather", "table.feather", _mutated),
        "damaged_workbook": _spoiled_file("to_excel", "table.xlsx", _mutated),
        "cut_workbook": _spoiled_file("to_excel", "table.xlsx", _cut),
        "mixed_cells": _with_column(lambda world, n: [world.pick(1, "x", 2.5, "", "1e5", "-") for _ in range(n)]),
        "question_marks": _with_column(lambda world, n: [world.pick(1.5, 2.5, 3.5, "?") for _ in range(n)]),
        "thousands": _with_column(lambda world, n: [f"{world.random.integers(10**6):,}" for _ in range(n)]),
        "percent": _with_column(lambda world, n: [f"{world.random.random():.1%}" for _ in range(n)]),
        "one_unit": _with_column(
            lambda world, n: [f"{world.random.normal():.2f}{world.pick(' mg', 'mg')}" for _ in range(n)]
        ),
        "units": _with_column(
            lambda world, n: [f"{world.pick(1.5, 2, '7e400')}{world.pick(' mg', 'g', '')}" for _ in range(n)]
        ),
        "both_decimal_signs": _with_column(
            lambda world, n: [f"{world.random.normal():.2f}".replace(".", world.pick(",", ".")) for _ in range(n)]
        ),
        "currency": _with_column(lambda world, n: [f"${world.random.random():.2f}" for _ in range(n)]),
        "nearly_constant": _with_column(lambda world, n: [1.0] * (n - 1) + [world.pick(1 + 1e-15, 1.0001, 2.0, 1e300)]),
        "copied_column": lambda world: world.write(
            "table.csv", world.csv(world.frame().assign(z=lambda f: 2 * f["a"]))
        ),
        "counting_column": _with_column(lambda world, n: range(n)),
        "spread_over_all_magnitudes": _cells(lambda world, cells: np.sign(cells) * 10.0 ** (cells * 50)),
        "denormals": _cells(lambda world, cells: cells * 5e-324 * 1000),
        "comment_first": _text(lambda world, text: f"# made by hand\n{text}"),
        "title_first": _text(lambda world, text: f"Results of 2024\n\n{text}"),
        "units_second": _text(lambda world, text: text.replace("\n", "\nmg,kg,m\n", 1)),
        "trailing_delimiter": _text(lambda world, text: text.replace("\n", ",\n")),
        "total_last": _text(lambda world, text: f"{text}Total,,,\n"),
        "one_long_line": _text(lambda world, text: text.replace("\n", ",")),
        "null_device": lambda world: Path("/dev/null"),
        "loop_of_links": lambda world: _link(world, "table.csv", "table.csv"),
        "odd_options": lambda world: (
            world.write("table.csv", world.csv()),
            [
                f"--{world.pick('delimiter', 'decimal', 'sheet', 'columns', 'drop')}",
                world.pick(
                    "", ",", ".", "::", "\\", "a", "a,b,c", "z", "a\r\nb", "\n", '"', "ä", "\t", "tab", "0", "-1"
                ),
            ],
        ),
    },
)


def _link(world: World, name: str, target: str) -> Path:
    (world.folder / name).symlink_to(target)
    return world.folder / name


def try_files(world: World, made: Any, expected: str) -> None:
    path, options = made if isinstance(made, tuple) else (made, [])
    surface = world.pick("check", "check", "discover", "discover", "discover", "read_table", "fit")
    if surface == "check" and "--missing" in options:
        surface = "discover"
    if surface in ("check", "discover"):
        command = [surface, str(path), *options]
        if surface == "discover":
            command += ["--model", str(world.model)]
        if world.random.random() < 0.5:
            command.append("--json")
        if surface == "discover" and world.random.random() < 0.03:
            command += ["--output", "answer"]
        run_command(world, command, expected)
        return
    given = {name[2:]: value for name, value in zip(options[::2], options[1::2], strict=False)}
    if "--no-header" in options:
        given = {"header": False}
    if "drop" in given:
        # A name may hold a line break, which a line of CSV may not.
        breaks = any(sign in given["drop"] for sign in "\r\n")
        given["drop"] = [given["drop"]] if breaks else [name for row in csv.reader([given["drop"]]) for name in row]
    if surface == "read_table" or given:
        attempt(lambda: read_table(world.pick(path, str(path)), **given, abilities=NUMBERS_ONLY), expected)
    else:
        attempt(lambda: check_arrow(world, Arrow(world.model).fit(path)), expected)


# ------------------------------------------------------------------------------------------------------------ frames
# A maker answers with what is passed as the table.


def _column(values: Callable[[World, int], Any], name: Any = "z") -> Maker:
    def make(world: World) -> pd.DataFrame:
        frame = world.frame()
        frame[name] = values(world, len(frame))
        return frame

    return make


def _renamed(names: Callable[[int], Any]) -> Maker:
    def make(world: World) -> pd.DataFrame:
        frame = world.frame()
        frame.columns = names(frame.shape[1])
        return frame

    return make


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _with_empty_rows(world: World, frame: pd.DataFrame, count: int) -> pd.DataFrame:
    """The frame with rows without a value among the others."""
    length = len(frame) + count
    return frame.set_axis(np.sort(world.random.choice(length, len(frame), replace=False))).reindex(range(length))


def _polars(world: World) -> Any:
    import polars

    frame = polars.DataFrame({name: column.to_numpy() for name, column in world.frame().items()})
    return world.pick(frame, frame.lazy())


enter_all(
    "frames",
    WORKS,
    {
        "frame": lambda world: world.frame(),
        "array": lambda world: world.frame().to_numpy().copy(),
        "lists": lambda world: world.frame().to_numpy().tolist(),
        "tuples": lambda world: tuple(map(tuple, world.frame().to_numpy().tolist())),
        "mapping": lambda world: {name: list(column) for name, column in world.frame().items()},
        "read_only_array": lambda world: _read_only(world.frame().to_numpy().copy()),
        "fortran_array": lambda world: np.asfortranarray(world.frame().to_numpy()),
        "every_second_row": lambda world: world.frame(60).to_numpy()[::2],
        "backwards": lambda world: world.frame().to_numpy()[::-1, ::-1],
        "single_precision": lambda world: world.frame().to_numpy().astype(np.float32),
        "half_precision": lambda world: world.frame().to_numpy().astype(np.float16),
        "long_double": lambda world: world.frame().to_numpy().astype(np.longdouble),
        "bytes_of_numbers": lambda world: world.random.integers(-100, 100, size=(40, 4)).astype(np.int8),
        "unsigned": lambda world: world.random.integers(2**63, 2**64 - 1, size=(40, 4), dtype=np.uint64),
        "swapped_bytes": lambda world: world.frame().to_numpy().astype(">f8"),
        "tensor": lambda world: _tensor(world.frame()),
        "tensor_with_gradients": lambda world: _tensor(world.frame(), requires_grad=True),
        "polars": _polars,
        "whole_numbers_as_names": _renamed(lambda p: range(p)),
        "mixed_names": _renamed(lambda p: [1, "1.0", 2.5, "b", "c"][:p]),
        "named_columns_axis": lambda world: world.frame().rename_axis(columns="variable"),
        "index_twice": lambda world: _same_index(world),
        "booleans": _column(lambda world, n: np.arange(n) % 3 == 0),
        "nullable": _column(lambda world, n: pd.array(world.random.integers(99, size=n), dtype="Int64")),
        "ordered_categories": _column(
            lambda world, n: pd.Categorical(
                [("low", "mid", "high")[row % 3] for row in range(n)], ["low", "mid", "high"], True
            )
        ),
        "huge_floats": lambda world: world.frame() * 1e150,
        "huge_integers": lambda world: 2**62 + (world.frame() * 1e6).astype(np.int64),
        "decimals": _column(
            lambda world, n: [decimal.Decimal(f"{value:.5f}") for value in world.random.normal(size=n)]
        ),
        "structured_array": lambda world: world.frame().to_records(index=False),
        "rows_without_values": lambda world: _with_empty_rows(world, world.frame(), int(world.random.integers(1, 99))),
        "text_and_its_code": lambda world: world.frame().assign(
            y=lambda frame: (frame["a"] > 0).map({True: 7, False: 3}), z=lambda frame: frame["a"] > 0
        ),
        "constant_but_for_one": _column(lambda world, n: [5.0] * (n - 1) + [6.0]),
    },
)
enter_all(
    "frames",
    REFUSED,
    {
        "nothing": lambda world: None,
        "number": lambda world: world.pick(5, 2.5, 1j, True, np.float64(3)),
        "text": lambda world: world.pick("", "no such table", "\0", "a" * 5000, "a,b\n1,2\n"),
        "byte_string": lambda world: b"a,b\n1,2\n",
        "set_of_numbers": lambda world: {1, 2, 3},
        "generator": lambda world: (row for row in world.frame().to_numpy()),
        "function": lambda world: len,
        "ragged_lists": lambda world: [[1.0, 2.0], [3.0]] * 20,
        "ragged_mapping": lambda world: {"a": [1.0] * 30, "b": [2.0] * 29},
        "mapping_of_numbers": lambda world: {"a": 1.0, "b": 2.0},
        "empty_mapping": lambda world: {},
        "empty_list": lambda world: world.pick([], [[]], [[], []], ()),
        "empty_frame": lambda world: world.pick(
            pd.DataFrame(), pd.DataFrame(columns=["a", "b"]), pd.DataFrame(index=range(30))
        ),
        "flat": lambda world: world.frame().to_numpy()[:, 0],
        "series": lambda world: world.frame()["a"],
        "cube": lambda world: world.random.normal(size=(5, 6, 7)),
        "zero_dimensional": lambda world: np.array(5.0),
        "same_names": _renamed(lambda p: ["a"] * p),
        "same_names_as_text": _renamed(lambda p: [1, "1", *"cdefg"[: p - 2]]),
        "text_column": _column(lambda world, n: [f"t{row}" for row in range(n)]),
        "dates": _column(lambda world, n: pd.date_range("2024-01-01", periods=n)),
        "categories_of_dates": _column(lambda world, n: pd.Categorical(pd.date_range("2024-01-01", periods=n))),
        "date_objects": _column(lambda world, n: [datetime.date(2024, 1, 1 + row % 28) for row in range(n)]),
        "lists_in_cells": _column(lambda world, n: [[row] for row in range(n)]),
        "frames_in_cells": _column(lambda world, n: [pd.DataFrame({"a": [row]}) for row in range(n)]),
        "complex": _column(lambda world, n: world.random.normal(size=n) * 1j + np.arange(n)),
        "complex_array": lambda world: world.frame().to_numpy() * (1 + 1j),
        "infinities": _column(lambda world, n: [np.inf, *range(n - 1)]),
        "missing": _column(lambda world, n: [np.nan, *range(1, n)]),
        "nullable_missing": _column(lambda world, n: pd.array([None, *range(1, n)], dtype="Int64")),
        "constant": _column(lambda world, n: [world.pick(3, 3.5, -1e300)] * n),
        "nothing_but_missing": _column(lambda world, n: [None] * n),
        "few_rows_with_values": lambda world: _with_empty_rows(
            world, world.frame(19), int(world.random.integers(1, 99))
        ),
    },
)
enter_all(
    "frames",
    EITHER,
    {
        "names_are_none": _renamed(lambda p: [None, *range(p - 1)]),
        "names_are_nan": _renamed(lambda p: [float("nan"), *range(p - 1)]),
        "names_are_tuples": _renamed(lambda p: [("a", place) for place in range(p)]),
        "names_are_levels": _renamed(lambda p: pd.MultiIndex.from_product([["a"], range(p)])),
        "names_are_dates": _renamed(lambda p: pd.date_range("2024-01-01", periods=p)),
        "lone_surrogates": _renamed(lambda p: ["\ud800", "b\udfff", *range(p - 2)]),
        "names_with_controls": _renamed(lambda p: ["a\x00b", "a\x1b[31m", "a\x07", "\r\n", "\u2028"][:p]),
        "timedeltas": _column(lambda world, n: pd.to_timedelta(world.random.normal(size=n), unit="h")),
        "periods": _column(lambda world, n: pd.period_range("2024-01", periods=n, freq="D")),
        "intervals": _column(lambda world, n: pd.interval_range(0, n, periods=n)),
        "unordered_categories": _column(lambda world, n: pd.Categorical([f"c{row % 4}" for row in range(n)])),
        "ordered_categories_of_numbers": _column(
            lambda world, n: pd.Categorical([row * 0.5 for row in range(n)], range(-9, n), ordered=True)
        ),
        "two_levels": _column(lambda world, n: pd.Categorical([world.pick("ja", "nein", None) for _ in range(n)])),
        "two_numbers": _column(lambda world, n: world.random.choice([world.pick(0, -1e300, 1e-300), 7], size=n)),
        "categories_of_numbers": _column(lambda world, n: pd.Categorical([row % 4 for row in range(n)])),
        "fractions": _column(lambda world, n: [fractions.Fraction(row, 7) for row in range(n)]),
        "integers_beyond_64_bits": _column(lambda world, n: [10**30 + row**2 for row in range(n)]),
        "integers_beyond_floats": _column(lambda world, n: [10**400 + row for row in range(n)]),
        "mixed_objects": _column(lambda world, n: [world.pick(1, 2.5, "3", None, True) for _ in range(n)]),
        "numbers_as_text": _column(lambda world, n: [f"{value:.3f}" for value in world.random.normal(size=n)]),
        "sparse_columns": _column(lambda world, n: pd.arrays.SparseArray(np.arange(n) % 5)),
        "masked_array": lambda world: np.ma.masked_less(world.frame().to_numpy(), -1.5),
        "matrix": lambda world: np.asmatrix(world.frame().to_numpy()),
        "object_array": lambda world: world.frame().to_numpy().astype(object),
        "denormals": lambda world: world.frame() * 1e-310,
        "largest_floats": lambda world: world.frame().clip(-1, 1) * np.finfo(float).max,
        "far_from_zero": lambda world: world.frame() * 1e-8 + 1e8,
        "rounding_noise": lambda world: world.frame() * 1e-16 + 1.0,
        "heavy_tails": lambda world: np.sinh(world.frame() * 20),
        "copies": lambda world: (lambda f: pd.concat([f, f.add_suffix("2")], axis=1))(world.frame()),
        "sums": lambda world: world.frame().assign(z=lambda frame: frame.sum(axis=1)),
        "bytes_in_cells": _column(lambda world, n: [b"1"] * n),
        "more_columns_than_rows": lambda world: world.frame(20, 30),
    },
)


def _same_index(world: World) -> pd.DataFrame:
    frame = world.frame()
    return frame.set_axis([0] * len(frame), axis=0)


def try_frames(world: World, table: Any, expected: str) -> None:
    before = _frozen(table)
    if world.random.random() < 0.4:
        attempt(lambda: read_table(table, abilities=NUMBERS_ONLY), expected)
    elif world.random.random() < 0.2:
        attempt(lambda: read_table(table), EITHER)  # for a network that reads more
    else:
        attempt(lambda: check_arrow(world, Arrow(world.model).fit(table)), expected)
    if before is not None and _frozen(table) != before:
        raise Broken("the caller's table was changed")


def _tensor(frame: pd.DataFrame, **options: Any) -> Any:
    """The numbers of a frame as torch has them, where it is installed."""
    if importlib.util.find_spec("torch") is None:
        return frame.to_numpy()
    import torch

    return torch.tensor(frame.to_numpy(), **options)


def _frozen(table: Any) -> bytes | None:
    """A table as bytes that change with its names and values, where that is possible."""
    if isinstance(table, pd.DataFrame):  # not as it is: pandas keeps notes in a frame that is only read
        columns = [table.iloc[:, place] for place in range(table.shape[1])]
        table = [list(table.columns), list(table.index), [(str(column.dtype), column.tolist()) for column in columns]]
    elif hasattr(table, "detach"):
        table = table.detach().numpy()
    with contextlib.suppress(Exception):
        return pickle.dumps(copy.deepcopy(table))
    return None


# ------------------------------------------------------------------------------------------------------------ series
# A maker answers with a table of three variables and columns t (days) and u (two units), and options of a series.


def _series(change: Callable[[World, pd.DataFrame], pd.DataFrame | None] | None = None, **options: Any) -> Maker:
    def make(world: World) -> tuple[pd.DataFrame, dict[str, Any]]:
        rows = 2 * int(world.random.integers(30, 60))
        frame = world.frame(rows, 3)
        frame["t"] = np.datetime64("2024-01-30") + np.arange(rows)
        frame["u"] = np.repeat(["p", "q"], rows // 2)
        if change is not None and (changed := change(world, frame)) is not None:
            frame = changed
        given = {name: value(world) if callable(value) else value for name, value in options.items()}
        if "unit" not in given:
            frame = frame.drop(columns="u", errors="ignore")
        return frame, {"lags": 2, "time": "t", **given}

    return make


def _time(values: Callable[[World, int], Any]) -> Callable[[World, pd.DataFrame], pd.DataFrame]:
    return lambda world, frame: frame.assign(t=values(world, len(frame)))


def _spoil(frame: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    frame = frame.astype({column: object})
    frame.loc[row, column] = value
    return frame


enter_all(
    "series",
    REFUSED,
    {
        "lags": _series(lags=lambda world: world.pick(0, -1, 51, 2.5, "many", True, float("nan"), [2], 10**30, "")),
        "lags_longer_than_the_series": _series(lambda _, frame: frame[:24], lags=20),
        "options_without_lags": _series(lags=None),
        "no_such_column": _series(time=lambda world: world.pick("tt", "", 99, "T")),
        "no_such_unit": _series(unit=lambda world: world.pick("v", "", -9)),
        "repeated_time": _series(lambda _, frame: pd.concat([frame, frame[5:6]])),
        "repeated_time_in_a_unit": _series(lambda _, frame: pd.concat([frame, frame[:1]]), unit="u"),
        "missing_time": _series(lambda world, frame: _spoil(frame, "t", 7, world.pick(None, pd.NaT, float("nan")))),
        "words_as_time": _series(_time(lambda world, rows: [world.pick("soon", "never") for _ in range(rows)])),
        "one_odd_time": _series(lambda world, frame: _spoil(frame.astype({"t": str}), "t", 3, world.pick("x", "1/0"))),
        "unequal_times": _series(_time(lambda world, rows: np.cumsum(world.random.random(rows)))),
        "infinite_time": _series(_time(lambda _, rows: [*range(rows - 1), float("inf")])),
        "constant_unit": _series(lambda _, frame: frame.assign(u=1), unit="u"),
        "a_row_per_unit": _series(lambda _, frame: frame.assign(u=range(len(frame))), unit="u"),
        "missing_unit": _series(lambda _, frame: _spoil(frame, "u", 4, None), unit="u"),
        "too_few_labels": _series(unit=lambda _: ["p", "q"]),
        "season": _series(season=lambda world: world.pick(0, 1, -12, 1.5, "year", 10**7, 4000, float("nan"))),
        "difference_of_nothing": _series(difference=lambda world: world.pick(["z"], ["a", "b", "z"], "z")),
        "resample": _series(resample=lambda world: world.pick("fortnight", "", -1, "0D", [1])),
        "resample_without_times": _series(lambda _, frame: frame.drop(columns="t"), time=None, resample="D"),
        "contemporaneous": _series(contemporaneous=lambda world: world.pick("no", 2, None)),
        "nothing_changes_in_time": _series(lambda _, frame: frame.assign(a=1, b=1, c=1)),
        "constant_changes": _series(lambda _, frame: frame.assign(a=range(len(frame))), difference=True),
        "knowledge_of_other_lags": _series(knowledge={"forbidden": ["a -> b at lag 9"]}),
        "required_without_a_lag": _series(knowledge={"required": ["a -> b"]}),
    },
)
enter_all(
    "series",
    WORKS,
    {
        "good": _series(),
        "panel": _series(unit="u"),
        "shuffled": _series(lambda world, frame: frame.sample(frac=1, random_state=int(world.random.integers(99)))),
        "gaps_in_time": _series(lambda _, frame: frame.drop(index=[9, 10, 30])),
        "months": _series(_time(lambda _, rows: pd.date_range("1990-01-31", periods=rows, freq="ME"))),
        "time_zones": _series(
            _time(lambda _, rows: pd.date_range("2024-03-30", periods=rows, freq="h", tz="Europe/Paris"))
        ),
        "periods": _series(_time(lambda _, rows: pd.period_range("1990Q1", periods=rows, freq="Q"))),
        "dates_as_text": _series(lambda _, frame: frame.assign(t=frame["t"].astype(str))),
        "negative_times": _series(_time(lambda _, rows: np.arange(rows) * 0.25 - 9)),
        "labels_of_rows": _series(lambda _, frame: frame.drop(columns="t"), time=None),
        "names_like_lags": _series(lambda _, frame: frame.rename(columns={"a": "b t-1", "c": "time"})),
        "units_of_mixed_labels": _series(
            lambda _, frame: frame.assign(u=[1 if u == "p" else "1.0x" for u in frame["u"]]), unit="u"
        ),
        "resampled": _series(resample=lambda world: world.pick("D", "2D")),
        "everything": _series(unit="u", season=7, difference=["a"], contemporaneous=False, decode="f1", hidden="all"),
        "knowledge_of_lags": _series(
            knowledge={"forbidden": ["a -> b at lags 0 to 1", "* -> c at lag 2"], "roots": ["a"]}
        ),
    },
)
enter_all(
    "series",
    EITHER,
    {
        "missing_cells": _series(
            lambda world, frame: frame.mask(world.random.random(frame.shape) < 0.05).assign(t=frame.t)
        ),
        "categories": _series(
            lambda world, frame: frame.assign(k=[world.pick("x", "y", "z") for _ in range(len(frame))])
        ),
        "lags_by_the_data": _series(lambda world, frame: frame[: int(world.random.integers(18, 60))], lags="auto"),
        "odd_cells": _series(
            lambda world, frame: _spoil(frame, "b", 5, world.pick(np.inf, 1e308, -1e308, "x", "", 10**400))
        ),
        "odd_times": _series(
            _time(lambda world, rows: world.random.choice([0.0, 1e300, -1e300, 1e-300, 3.0], size=rows))
        ),
        "old_times": _series(_time(lambda _, rows: [f"{1000 + row}-01-01" for row in range(rows)])),
        "resampled_to_anything": _series(resample=lambda world: world.pick("s", "min", "W", "MS", "YE", 2, "3QS")),
        "one_long_unit": _series(lambda _, frame: frame.assign(u=["p"] * (len(frame) - 1) + ["q"]), unit="u"),
        "a_walk": _series(
            lambda _, frame: frame.assign(a=frame["a"].cumsum()), difference=lambda world: world.pick("a", True)
        ),
        "all_missing_in_a_unit": _series(
            lambda _, frame: frame.assign(a=frame["a"].where(frame["u"] == "p")), unit="u"
        ),
    },
)


def try_series(world: World, made: Any, expected: str) -> None:
    frame, options = made
    before = _frozen(frame)

    def ask() -> None:
        arrow = Arrow(world.model, **options).fit(frame)
        found = arrow.discovery_
        answer = found.answer
        for graph in (answer.graph, *found.sample(3)):
            check_graph(graph[0])
        check_graph(answer.graph[0], answer.edge_probabilities)
        dir(arrow)
        found.summary(), found.to_dot(), json.dumps(found.to_dict(), allow_nan=False)
        if expected == EITHER:
            cause, effect = answer.names[:2]
            found.response(cause, effect, steps=2, n_graphs=5, kind=world.pick("pulse", "step"))
            found.next_experiment(n_graphs=10)

    attempt(ask, expected)
    if before is not None and _frozen(frame) != before:
        raise Broken("the caller's table was changed")


# --------------------------------------------------------------------------------------------------------- knowledge
# A maker answers with a mapping, with a file, or with options of the command line. Tables have columns a, b, c, d.

VARIABLES = ("a", "b", "c", "d")


def _file(name: str, content: str | bytes) -> Maker:
    return lambda world: world.write(name, content)


def _sound(world: World) -> dict[str, Any]:
    """Knowledge that can be obeyed, at random."""
    order = world.random.permutation(VARIABLES).tolist()
    pairs = [(one, two) for place, one in enumerate(order) for two in order[place + 1 :]]
    chosen = world.random.permutation(len(pairs)).tolist()
    required = [pairs[place] for place in chosen[: world.pick(0, 1, 2, 3)]]
    forbidden = [pair for pair in [*pairs, *(pair[::-1] for pair in pairs)] if pair not in required]
    some = world.random.permutation(len(forbidden)).tolist()[: world.pick(0, 1, 3, 6)]
    knowledge: dict[str, Any] = {"required": required, "forbidden": [forbidden[place] for place in some]}
    if world.random.random() < 0.5:
        cut = int(world.random.integers(1, 4))
        knowledge["tiers"] = [order[:cut], order[cut:]]
    return knowledge


enter_all(
    "knowledge",
    WORKS,
    {
        "sound": _sound,
        "sound_file": lambda world: world.write("known.json", json.dumps(_sound(world))),
        "nothing_known": lambda world: world.pick({}, {"required": []}, {"tiers": [[]]}, {"roots": None}),
        "everything_forbidden": lambda world: {
            "forbidden": [(one, two) for one in VARIABLES for two in VARIABLES if one != two]
        },
        "whole_order_required": lambda world: {
            "required": [(one, two) for i, one in enumerate(VARIABLES) for two in VARIABLES[i + 1 :]]
        },
        "roots_that_are_leaves": lambda world: {"roots": list(VARIABLES), "leaves": list(VARIABLES)},
        "one_tier_each": lambda world: {"tiers": [[name] for name in world.random.permutation(VARIABLES)]},
        "edges_as_text": lambda world: {"required": [f"a{world.pick('->', ' -> ', '-->', '→', ' →')}b"]},
        "pgmpys_names": lambda world: {
            "forbidden_edges": [("a", "b")],
            "temporal_order": [["a"], ["c"]],
            "root_nodes": ["d"],
        },
        "search_space": lambda world: {"search_space": [("a", "b"), ("b", "c")]},
        "byte_order_mark": _file("known.toml", b"\xef\xbb\xbfroots = ['a']\n"),
        "said_twice": lambda world: {"required": [("a", "b"), "a -> b"], "forbidden": [("b", "a")] * 3},
        "tiers_in_a_text_file": _file("tiers.txt", "# earliest first\na, b\n\n c\n"),
        "options": lambda world: ["--require", "a -> b", "--forbid", "c->d", "--forbid", "b -> a"],
        "beliefs": lambda world: {
            "beliefs": {
                world.pick("a -> b", "a ~> b", "b before a", "root a", "leaf c", "a <-> d"): world.pick(0.01, 0.5, 0.9)
            }
        },
        "beliefs_as_options": lambda world: ["--belief", "root a=0.8", "--belief", "c ~> d = .3"],
        "beliefs_in_a_file": _file("known.toml", '[beliefs]\n"root a" = 0.8\n"a -> b" = 1\n'),
    },
)
enter_all(
    "knowledge",
    REFUSED,
    {
        "odd_belief": lambda world: {
            "beliefs": world.pick({"a b": 0.5}, {"root a": 2}, {"a -> a": 0.5}, {"root z": 0.5}, [1], 5, "root a", [{}])
        },
        "belief_without_probability": lambda world: ["--belief", world.pick("root a", "root a=", "=", "root a=much")],
        "unknown_variable": lambda world: {
            world.pick("roots", "leaves"): [world.pick("z", "A ", "", "aa", "a\nb", "\ud800")]
        },
        "unknown_variable_in_edge": lambda world: {"required": [("a", world.pick("z", "A", "a b", " b"))]},
        "itself": lambda world: {"required": ["a -> a"]},
        "cycle": lambda world: {"required": ["a -> b", "b -> c", "c -> a"]},
        "required_and_forbidden": lambda world: {"required": ["a -> b"], "forbidden": ["a -> b"]},
        "against_the_tiers": lambda world: {"required": ["a -> b"], "tiers": [["b"], ["a"]]},
        "into_a_root": lambda world: {"required": ["a -> b"], "roots": ["b"]},
        "two_tiers": lambda world: {"tiers": [["a"], ["a"]]},
        "outside_the_search_space": lambda world: {"required": ["a -> b"], "search_space": ["b -> c"]},
        "no_arrow": lambda world: {"required": [world.pick("a b", "a", "", "->", "a ->", "a -> b -> c", "a <- b")]},
        "edge_is_no_edge": lambda world: {
            "required": [world.pick(5, None, 2.5, True, {}, [], ["a"], ["a", "b", "c"], b"a->b")]
        },
        "no_list": lambda world: {
            world.pick("required", "roots", "tiers"): world.pick(5, 2.5, True, {"a": "b"}, object())
        },
        "unknown_kind": lambda world: {world.pick("require", "roots ", "Forbidden", "", "5"): ["a"]},
        "no_mapping": lambda world: world.pick(5, [1, 2], ["a -> b"], 2.5, True, ("a", "b"), b"x"),
        "not_json": _file("known.json", '{"required": ["a -> b"'),
        "not_toml": _file("known.toml", "required = [a -> b"),
        "json_of_another_kind": lambda world: world.write(
            "known.json", world.pick("5", "[]", "null", '"a"', "[[[]]]", "")
        ),
        "other_ending": _file("known.yaml", "required: [a -> b]"),
        "no_such_file": lambda world: world.folder / world.pick("none.json", "none.toml", "no/where.toml"),
        "folder": lambda world: _folder(world, "known.json"),
        "not_text": lambda world: world.write(
            world.pick("known.json", "known.toml"), b"\xff\xfe\x00" + world.random.bytes(60)
        ),
        "nested_too_deep": lambda world: world.write(
            "known.json", '{"required": ' + "[" * 100_000 + "]" * 100_000 + "}"
        ),
        "nested_too_deep_toml": lambda world: world.write("known.toml", "required = " + "[" * 20_000 + "]" * 20_000),
        "not_text_tiers": _file("tiers.txt", b"\xff\xfe\x00\x80"),
    },
)
enter_all(
    "knowledge",
    EITHER,
    {
        "nested_names": lambda world: {"roots": [[["a"]]], "tiers": [[["a"]]]},
        "numbers_for_names": lambda world: {"roots": [1, 2.5, None]},
        "generator": lambda world: {"forbidden": (edge for edge in [("a", "b")])},
        "sets": lambda world: {"roots": {"a", "b"}, "tiers": [{"a"}, {"c", "b"}]},
        "random_json": lambda world: world.write("known.json", json.dumps(_anything(world, 3))),
        "random_mapping": lambda world: {
            world.pick("required", "forbidden", "tiers", "roots", "leaves"): _anything(world, 3)
        },
        "damaged_file": lambda world: world.write(
            "known.json", _mutated(json.dumps(_sound(world)).encode(), world.random, 0.05)
        ),
        "odd_tiers_file": lambda world: world.write(
            "tiers.txt", world.pick("", "\n\n", ",,,\n", '"a\n', "a\rb\r\n", "a,a\n", "\ufeffa\n", "a;b\n", "a\x00b\n")
        ),
        "odd_options": lambda world: [
            world.pick("--require", "--forbid"),
            world.pick("", "->", "a->b->c", "a -> z", "a→b", "a\r\n->b", "[red]a -> b", "a -> a", "\ud800 -> a"),
        ],
        "endless_name": lambda world: {"roots": ["x" * 10**6]},
    },
)


def _folder(world: World, name: str) -> Path:
    (world.folder / name).mkdir()
    return world.folder / name


def _anything(world: World, depth: int) -> Any:
    """Whatever JSON can hold."""
    if depth == 0 or world.random.random() < 0.3:
        return world.pick(None, True, 0, -1.5, 10**30, "", "a", "a -> b", "b->c", "ä", "\u0000", "required")
    children = [_anything(world, depth - 1) for _ in range(int(world.random.integers(4)))]
    return world.pick(children, {world.pick("required", "a", "", "tiers", "x"): child for child in children})


def try_knowledge(world: World, made: Any, expected: str) -> None:
    table = world.frame(columns=len(VARIABLES))
    if isinstance(made, list) and made and isinstance(made[0], str) and made[0].startswith("--"):
        options = made
    elif isinstance(made, Path):
        options = ["--tiers" if made.suffix == ".txt" else "--knowledge", str(made)]
    else:

        def fit() -> None:
            known = Knowledge.from_dict(made) if world.random.random() < 0.5 else made
            check_arrow(world, Arrow(world.model, knowledge=known, threshold=world.pick(0.1, 0.5)).fit(table))

        attempt(fit, expected)
        return
    path = world.write("table.csv", world.csv(table))
    run_command(world, ["discover", str(path), "--model", str(world.model), "--json", *options], expected)


# ----------------------------------------------------------------------------------------------------------- options
# A maker answers with arguments of the command line, or with a function to call. TABLE and MODEL stand for good ones.

ODD_NUMBERS = ("-1", "0", "1.5", "nan", "inf", "1e309", "", "abc", "0x10", "٣", "1_0", str(2**70), "-0.0")
ODD_NAMES = (
    "",
    " ",
    ".",
    "..",
    "\n",
    "a\nb",
    "-",
    "--",
    "ä",
    "\udcff",
    "a" * 300,
    "/",
    "~",
    "~nobody/x",
    "[red]",
    "%s",
    "{}",
)


def _arguments(*parts: str) -> Maker:
    """Arguments with an odd number for NUMBER and an odd name for NAME."""

    def make(world: World) -> list[str]:
        odd = {"NUMBER": world.pick(*ODD_NUMBERS), "NAME": world.pick(*ODD_NAMES)}
        return [odd.get(part, part) for part in parts]

    return make


def _fitted(call: Callable[[World, Arrow], Any]) -> Maker:
    def make(world: World) -> Callable[[], Any]:
        arrow = Arrow(world.model).fit(world.frame(columns=4))
        return lambda: call(world, arrow)

    return make


def _parameter(name: str, *values: Any) -> Maker:
    def make(world: World) -> Callable[[], Any]:
        given = {"model": world.model, name: world.pick(*values)}
        return lambda: check_arrow(world, Arrow(**given).fit(world.frame(columns=4)))

    return make


def _said(name: str, *values: Any) -> Maker:
    """Something said about a table to a reader that would believe it."""

    def make(world: World) -> Callable[[], Any]:
        said = world.pick(*values)
        return lambda: read_table(world.frame(40, columns=4), **{name: said})

    return make


def _many(manifest: Callable[[World], tuple[str, str | bytes]], *options: str) -> Maker:
    """`discover-many` with a manifest, beside which lies one good table, good.csv."""

    def make(world: World) -> list[str]:
        world.write("good.csv", world.csv())
        path = world.write(*manifest(world))
        return ["discover-many", str(path), "--output", "many", "--model", "MODEL", "--jobs", "1", *options]

    return make


MANIFEST = "table,name,threshold,header\ngood.csv,first,0.4,true\ngood.csv,second,,\n"
DISCOVER = ("discover", "TABLE", "--model", "MODEL")
EFFECT = ("effect", "TABLE", "--model", "MODEL", "--graphs", "10")
EXPERIMENT = ("next-experiment", "TABLE", "--model", "MODEL", "--graphs", "10")
enter_all(
    "options",
    REFUSED,
    {
        "no_such_command": _arguments("NAME"),
        "no_such_option": _arguments(*DISCOVER, "--frobnicate"),
        "table_left_out": _arguments("discover"),
        "too_many_tables": _arguments("check", "TABLE", "TABLE"),
        "decode": _arguments(*DISCOVER, "--decode", "NAME"),
        "scale": _arguments(*DISCOVER, "--scale", "NAME"),
        "missing": _arguments(*DISCOVER, "--missing", "NAME"),
        "precision": _arguments(*DISCOVER, "--precision", "NAME"),
        "device": lambda world: [
            *DISCOVER,
            "--device",
            world.pick("tpu", "", "cuda:99", "cpu:x", "gpu", "meta", "cuda:-1", "mps:7"),
        ],
        "model": lambda world: [
            "discover",
            "TABLE",
            "--model",
            world.pick("", ".", "no-such", "a\nb", "a" * 300, "TABLE", "/dev/null", "~x"),
        ],
        "seed": lambda world: [
            *DISCOVER,
            "--graphs",
            "5",
            "--seed",
            world.pick("-1", str(2**70), "1.5", "x", str(2**64)),
        ],
        "output_is_empty": _arguments(*DISCOVER, "--output", ""),
        "output_is_too_long": lambda world: [*DISCOVER, "--output", "a" * int(world.random.integers(256, 5000))],
        "output_is_a_file": lambda world: [*DISCOVER, "--output", world.pick("TABLE", "TABLE/answer")],
        "output_is_no_kind_of_file": lambda world: [
            *DISCOVER,
            "--output",
            world.pick("g.jpg", "g.pgn", "g.JSN", "g.md"),
        ],
        "output_is_there": lambda world: _there(world),
        "output_is_the_table": _arguments(*DISCOVER, "--output", "TABLE", "--overwrite"),
        "output_is_a_long_file_name": _arguments(*DISCOVER, "--output", "a" * 300 + ".png"),
        "every_column_dropped": _arguments(*DISCOVER, "--drop", "a,b,c,d"),
        "column_named_wrongly": lambda world: [
            *DISCOVER,
            world.pick("--columns", "--drop"),
            world.pick("z", "A", "a b", "ä", "->"),
        ],
        "line_breaks_in_drop": _arguments(*DISCOVER, "--drop", "a\r\nb"),
        "threshold_with_f1": _arguments(*DISCOVER, "--decode", "f1", "--threshold", "0.2"),
        "compare_files": lambda world: [
            "compare",
            world.pick("none.json", ".", "TABLE"),
            world.pick("none.csv", ".", "x.docx"),
        ],
        "many_fields": _many(
            lambda world: (
                "manifest.csv",
                f"table,{world.pick('path', 'tabel', '', 'Threshold', 'model', 'device')}\ngood.csv,x\n",
            )
        ),
        "many_entries": _many(
            lambda world: (
                "manifest.json",
                json.dumps(
                    world.pick(
                        {},
                        [],
                        [1],
                        [{}],
                        [{"table": None}],
                        [{"table": "good.csv", "threshold": world.pick(2, "a", [])}],
                        [{"table": "good.csv", "kinds": world.pick(3, {"a": "z"}, [1])}],
                        [{"table": "good.csv", "name": world.pick("", "..", "a/b", 5 * "long" * 99)}],
                        [{"table": "good.csv"}, {"table": "GOOD.csv"}],
                        [{"table": "good.csv"}, {"table": "good.csv"}],
                        [{"table": "good.csv", "knowledge": world.pick(5, "none.toml", {"roots": 5}, {"x": 1})}],
                    )
                ),
            )
        ),
        "many_workers": lambda world: [
            "discover-many",
            "TABLE",
            "TABLE",
            "--output",
            "many",
            "--model",
            "MODEL",
            *world.pick(["--cluster", "here"], ["--backend", "spark"], ["--jobs", "0"], ["--jobs", "x"], []),
        ],
        "many_nothing": lambda world: [
            "discover-many",
            str(world.folder) if world.random.random() < 0.3 else world.pick("none", "TABLE", ""),
            *world.pick(["--output", "table.csv"], ["--output", ""], []),
        ],
        "parameter_threshold": _parameter("threshold", None, "0.5", float("nan"), -0.1, 1.5, float("inf"), [], 1j),
        "parameter_device": _parameter("device", None, 5, "tpu", "", [], "cuda:99"),
        "parameter_model": _parameter("model", None, 5, 2.5, [], "", "no-such-model", b"x", object()),
        "parameter_decode": _parameter("decode", None, 5, "", "best", [], {}),
        "parameter_scale": _parameter("scale", None, 5, "", "best", [], {}),
        "parameter_missing": _parameter("missing", None, 5, "", "best", [], {}),
        "parameter_precision": _parameter("precision", None, 16, "", "half", [], {}),
        "kind": lambda world: [
            *DISCOVER,
            "--kind",
            world.pick("", "a", "=", "a=", "=number", "a=text", "z=number", "a=NUMBER", "a=number=category"),
        ],
        "ordered": lambda world: [
            *DISCOVER,
            "--ordered",
            world.pick("", "a", "=", "a=", "a=1", "a=1,1", "a=x,y", "z=1,2", "a=,,"),
        ],
        "interventions": lambda world: [*DISCOVER, "--interventions", world.pick("", "z", "a", "A", "\n")],
        "environments": lambda world: [*DISCOVER, "--environments", world.pick("", "z", "a", "A", "\n")],
        "no_hidden_cause": lambda world: [
            *DISCOVER,
            "--no-hidden-cause",
            world.pick("", "a", "a -> b", "a <-> a", "a <-> z", "<->", "a <->", "a <-> b <-> c"),
        ],
        "said_kinds": _said("kinds", 5, "a", [], ["a"], {"a": 5}, {"a": None}, {"z": "number"}, {None: "number"}),
        "said_order": _said("ordered", 5, "a", ["a"], {"a": 5}, {"a": []}, {"a": ["x"]}, {"a": [1, 1]}, {"z": [1, 2]}),
        "said_no_order": _said("ordered", {"a": {1, 2}}, {"a": frozenset("xy")}, {"a": iter("xy")}, {"a": [1, 1.0]}),
        "said_interventions": _said(
            "interventions",
            5,
            "z",
            [],
            ["z"] * 40,
            [None] * 40,
            ["a"] * 39,
            [["a", "b", "c", "d"]] * 40,
            np.zeros((40, 4)),
            np.ones((40, 4)),
            np.ones((40, 3)),
            np.full((40, 4), "x"),
            {"a": 1},
            1j,
            [{}] * 40,
            ["a, b"] * 40,
            ["control"] * 40,
            [True, False] * 20,
            [[True, False]] * 40,
            [[True], [False, True]] * 20,
            pd.DataFrame({"set": ["z"] * 40}),
            pd.DataFrame({"z": [True] * 40}),
            pd.DataFrame(np.ones((40, 2)), columns=["a", "z"]),
            pd.DataFrame(index=range(40)),
        ),
        "said_environments": _said(
            "environments",
            5,
            "z",
            "a",
            [],
            ["x"] * 40,
            list(range(40)),
            ["x"] * 39,
            [None] * 40,
            [["x"]] * 40,
            1j,
            ["x"] * 20 + [None] * 20,
            np.zeros((40, 2)),
            [f"p{place}" for place in range(40)],
            ["NA"] * 40,
            [{}] * 40,
        ),
        "parameter_kinds": _parameter("kinds", 5, "a", [], {"a": "text"}, {"z": "number"}),
        "parameter_ordered": _parameter("ordered", 5, "a", {"a": 5}, {"a": ["x", "y"]}),
        "parameter_chunk": _parameter("observations_per_chunk", -1, 0, 1.5, "3", float("nan"), []),
        "parameter_max_rows": _parameter("max_rows", -1, 0, 19, 20.5, "300", float("nan"), [], True),
        "parameter_knowledge": _parameter("knowledge", 5, "no-such-file.toml", [1], object(), {"roots": ["z"]}),
        "sample_graphs": _fitted(
            lambda world, arrow: arrow.sample_graphs(world.pick(1.5, -1, 0, "3", None, [], float("nan")))
        ),
        "random_state": _fitted(
            lambda world, arrow: arrow.sample_graphs(3, random_state=world.pick("x", -1, 2**70, 1.5, []))
        ),
        "no_such_variable": _fitted(
            lambda world, arrow: arrow.path_probability("a", world.pick("z", "", 5, None, ["b"]), n_graphs=5)
        ),
        "adjustment_kind": _fitted(
            lambda world, arrow: arrow.adjustment_set_frequencies("a", "b", kind=world.pick("x", None, 5), n_graphs=5)
        ),
        "bootstrap_count": _fitted(lambda world, arrow: arrow.stability(world.pick(0, -1, 1.5, "2", None))),
        "former_argument": _fitted(lambda world, arrow: arrow.effects("a", k=world.pick(5, None, "x"))),
        "refine_statements": _fitted(
            lambda world, arrow: arrow.refine(
                **world.pick({"root": ["a"]}, {"roots": 5}, {"tiers": [["a"], "a"]}, {"k": 1})
            )
        ),
        "refine_threshold": _fitted(
            lambda world, arrow: arrow.refine(threshold=world.pick("x", -1, 2, float("nan"), []))
        ),
        "refine_decode": _fitted(lambda world, arrow: arrow.refine(decode=world.pick("x", 5, []))),
        "refine_knowledge": _fitted(
            lambda world, arrow: arrow.refine(knowledge=world.pick(5, {"roots": ["z"]}, [1], "x.toml"))
        ),
        "not_fitted": lambda world: lambda: Arrow(world.model).adjacency_matrix_,
        "effect_without_outcome": _arguments(*EFFECT, "--treatment", "a"),
        "effect_on_itself": _arguments(*EFFECT, "--treatment", "a", "--outcome", "a"),
        "effect_of_nobody": lambda world: [*EFFECT, "--treatment", world.pick("z", "", "A"), "--outcome", "b"],
        "effect_on_nobody": lambda world: [*EFFECT, "--outcome", world.pick("z", "", "a,b")],
        "effect_half_a_change": lambda world: [
            *EFFECT,
            *("--treatment", "a", "--outcome", "b"),
            world.pick("--from", "--to"),
            "1",
        ],
        "effect_of_no_change": lambda world: [
            *EFFECT,
            *("--treatment", "a", "--outcome", "b", "--from", "1", "--to"),
            world.pick("1", "1.0", "nan", "inf", "x", ""),
        ],
        "effect_picture": lambda world: [
            *EFFECT,
            *("--treatment", "a", "--outcome", "b", "--plot"),
            world.pick("", "effect", "effect.doc", "TABLE", "a" * 300 + ".png"),
        ],
        "effect_between": _fitted(
            lambda world, arrow: arrow.effect(
                "a", "b", n_graphs=5, between=world.pick((1, 1), (1,), 5, "ab", (None, 1), (1, [2]), (float("nan"), 1))
            )
        ),
        "effect_estimator": _fitted(
            lambda world, arrow: arrow.effect("a", "b", n_graphs=5, estimator=world.pick("x", None, 5, []))
        ),
        "effect_level": _fitted(
            lambda world, arrow: arrow.effect("a", "b", n_graphs=5, level=world.pick("high", "", 5, ["x"], True))
        ),
        "effect_level_of_numbers": lambda world: [
            *EFFECT,
            *("--treatment", "a", "--outcome", "b", "--level", world.pick("high", "", "1")),
        ],
        "experiment_target": lambda world: [
            *EXPERIMENT,
            "--target",
            world.pick("z", "", "a->a", "a -> z", "a->b->c", "-> a", "a ->", "->", "a,b"),
        ],
        "experiment_candidates": lambda world: [*EXPERIMENT, "--candidates", world.pick("z", "", "a,z", ",")],
        "experiment_budget": lambda world: [*EXPERIMENT, "--budget", world.pick("0", "-1", "1.5", "x", "")],
        "experiment_picture": lambda world: [*EXPERIMENT, "--plot", world.pick("", "plan", "plan.doc", "TABLE")],
        "next_experiment_target": _fitted(
            lambda world, arrow: arrow.next_experiment(
                world.pick("z", 5, ("a",), ("a", "a"), ("a", "z"), ("a", None), ["a", "b", "c"], {"a": "b"}), n_graphs=5
            )
        ),
        "next_experiment_budget": _fitted(
            lambda world, arrow: arrow.next_experiment(budget=world.pick(0, -1, 1.5, "2", None, True), n_graphs=5)
        ),
        "next_experiment_observations": _fitted(
            lambda world, arrow: arrow.next_experiment(rows=world.pick(0, -1, 1.5, "2", True), n_graphs=5)
        ),
        "next_experiment_candidates": _fitted(
            lambda world, arrow: arrow.next_experiment(
                candidates=world.pick([], "a", 5, ["z"], [None], [["a"]]), n_graphs=5
            )
        ),
        "experiment_rows": _fitted(
            lambda world, arrow: arrow.learn_from_experiment(
                world.pick("a", "z", None),
                world.pick(None, 5, "no-such.csv", world.frame(columns=3), world.frame().head(2), []),
                n_graphs=5,
            )
        ),
        "experiment_that_set_nothing": _fitted(
            lambda world, arrow: arrow.learn_from_experiment("a", world.frame().assign(a=1.0), n_graphs=5)
        ),
        "example": lambda world: (
            lambda: load_example(world.pick("", "hospitals", "Sachs", None, 5, ["sachs"], b"sachs"))
        ),
        "effects_on_nobody": _fitted(lambda world, arrow: arrow.effects(world.pick("z", None, 5, ["a"]), n_graphs=5)),
        "falsify_count": _fitted(lambda world, arrow: arrow.falsify(permutations=world.pick(0, -1, 1.5, "2", None))),
        "falsify_another_table": _fitted(lambda world, arrow: arrow.falsify(world.frame(columns=3))),
    },
)
enter_all(
    "options",
    EITHER,
    {
        "threshold": _arguments(*DISCOVER, "--threshold", "NUMBER"),
        "max_rows": _arguments(*DISCOVER, "--max-rows", "NUMBER"),
        "graphs": _arguments(*DISCOVER, "--graphs", "NUMBER"),
        "bootstrap": _arguments(*DISCOVER, "--bootstrap", "NUMBER"),
        "show": _arguments(*DISCOVER, "--show", "NUMBER"),
        "many_damaged": _many(lambda world: ("manifest.csv", _mutated(MANIFEST.encode(), world.random, 0.05))),
        "many_cut": _many(lambda world: ("manifest.csv", _cut(MANIFEST.encode(), world.random)), "--json"),
        "check_table": _arguments("check", "NAME"),
        "sheet_of_text": _arguments(*DISCOVER, "--sheet", "NAME"),
        "compare_odd_graphs": lambda world: [
            "compare",
            str(_odd_graph(world, "one")),
            str(_odd_graph(world, "two")),
            *world.pick([], ["--json"]),
        ],
        "models_argument": _arguments("models", "NAME"),
        "effect_samples": _arguments("effect", "TABLE", "--model", "MODEL", "--outcome", "b", "--graphs", "NUMBER"),
        "experiment_numbers": _arguments(*EXPERIMENT, "--budget", "NUMBER", "--rows", "NUMBER", "--show", "NUMBER"),
        "effect_change": _arguments(
            *EFFECT, "--treatment", "a", "--outcome", "b", "--from", "NUMBER", "--to", "NUMBER", "--json"
        ),
    },
)
enter_all(
    "options",
    WORKS,
    {
        "help": lambda world: [
            *world.pick([], ["discover"], ["check"], ["effect"]),
            "--help",
        ],
        "version": _arguments("--version"),
        "models": lambda world: ["models", *world.pick([], ["--json"])],
        "many": _many(lambda world: ("manifest.csv", MANIFEST)),
        "every_rule": lambda world: [
            *DISCOVER,
            "--decode",
            world.pick("map", "shd", "f1"),
            "--scale",
            world.pick("auto", "given", "log"),
        ],
        "experiments": lambda world: [
            *EXPERIMENT,
            *world.pick([], ["--target", "a"], ["--target", "a -> b"], ["--budget", "9"], ["--candidates", "a,b"]),
            *world.pick([], ["--json"]),
        ],
        "thresholds": lambda world: [*DISCOVER, "--threshold", world.pick("0.01", "0.999", "1e-300")],
        "drawn_again": lambda world: [*DISCOVER, "--graphs", "7", "--bootstrap", "2", "--seed", str(2**63 - 1)],
        "numpys_numbers": _fitted(lambda world, arrow: arrow.sample_graphs(np.int64(3), random_state=np.int64(5))),
        "generators": _fitted(
            lambda world, arrow: arrow.sample_graphs(
                3, random_state=world.pick(None, np.random.default_rng(0), np.random.RandomState(0))
            )
        ),
        "in_words": _fitted(
            lambda world, arrow: (str(arrow), repr(arrow), arrow.to_json(), arrow.to_dot(), arrow.to_graphml())
        ),
    },
)


def _there(world: World) -> list[str]:
    _folder(world, "answer")
    world.write("answer/graph.json", "mine")
    return [*DISCOVER, "--output", "answer"]


def _odd_graph(world: World, name: str) -> Path:
    ending, content = world.pick(
        ("csv", "source,target\na,b\nb,c\n"),
        ("csv", "source,target\na,b\nb,a\n"),
        ("csv", "source,target\na,a\n"),
        ("csv", "source,target\na\n"),
        ("csv", ",a,b\na,0,1\nb,0,0\n"),
        ("csv", ",a,b\na,0,x\nb,nan,0\n"),
        ("csv", ",a,b\na,0,1\nb,1,0\n"),
        ("csv", "a,b\n0,1\n"),
        ("json", "{}"),
        ("json", "[" * 50_000),
        ("json", '{"variables": ["a", "b"], "edges": [{"source": "a", "target": "b"}]}'),
        ("json", '{"format": "causal-arrow-graph", "version": 99, "variables": ["a"], "edges": []}'),
        ("json", '{"variables": ["a", "b"], "edges": [{"source": "a", "target": "z"}]}'),
        ("json", '{"variables": ["a", "b"], "edges": [{"source": "a"}], "edge_probabilities": 5}'),
        ("json", '{"variables": ["a", "b"], "edges": [], "edge_probabilities": [[0, 2], [-1, null]]}'),
        ("json", '{"variables": 5, "edges": 5}'),
        ("json", '{"variables": [], "edges": []}'),
        ("dot", "digraph { a -> b; }"),
        ("dot", "digraph { a -> b -> c -> a }"),
        ("dot", "graph { a -- b }"),
        ("dot", "digraph {"),
        ("dot", '"' * 99),
        ("gml", "graph [ directed 1 node [ id 0 label 5 ] ]"),
        ("graphml", "<graphml/>"),
        ("graphml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "' + "c" * 99 + '">]><a>&b;</a>'),
        ("txt", "dag { a -> b }"),
        ("docx", ""),
        ("csv", ""),
        ("csv", "\x00"),
    )
    return world.write(f"{name}.{ending}", content)


def try_options(world: World, made: Any, expected: str, package: str = "causal_arrow") -> None:
    if callable(made):
        attempt(made, expected)
        return
    stand_ins = {"TABLE": str(world.write("table.csv", world.csv(world.frame(columns=4)))), "MODEL": str(world.model)}
    arguments = [part.replace("TABLE", stand_ins["TABLE"]).replace("MODEL", stand_ins["MODEL"]) for part in made]
    if arguments[0] == "discover" and "--output" not in arguments and world.random.random() < 0.5:
        arguments.append("--json")
    run_command(world, arguments, expected, package)


# ----------------------------------------------------------------------------------------------------------- weights
# A maker answers with the path of a model.


def _copied(world: World) -> Path:
    folder = _folder(world, "model")
    for name in (WEIGHTS_FILE, CONFIG_FILE):
        (folder / name).write_bytes((world.model / name).read_bytes())
    return folder


def _with_weights(spoil: Callable[[World, bytes], bytes], alone: bool = False) -> Maker:
    def make(world: World) -> Path:
        folder = _copied(world)
        path = folder / WEIGHTS_FILE
        path.write_bytes(spoil(world, path.read_bytes()))
        if alone:
            (folder / CONFIG_FILE).unlink()
        return world.pick(folder, path)

    return make


def _with_tensors(change: Callable[[World, dict[str, np.ndarray]], Any]) -> Maker:
    """Weights written anew without checksum, beside a sound configuration."""

    def make(world: World) -> Path:
        folder = _copied(world)
        tensors = load_file(folder / WEIGHTS_FILE)
        change(world, tensors)
        save_file(tensors, folder / WEIGHTS_FILE)
        return folder

    return make


def _with_config(change: Callable[[World, dict[str, Any]], Any]) -> Maker:
    def make(world: World) -> Path:
        folder = _copied(world)
        config = json.loads((folder / CONFIG_FILE).read_text())
        changed = change(world, config)
        text = changed if isinstance(changed, str) else json.dumps(config)
        save_file(load_file(folder / WEIGHTS_FILE), folder / WEIGHTS_FILE)  # so that this file decides
        (folder / CONFIG_FILE).write_text(text)
        return folder

    return make


def _put(world: World, settings: dict[str, Any], value: Any) -> None:
    """Put the value in the place of a setting, or of one inside it."""
    name = world.pick(*settings)
    if isinstance(settings[name], dict) and settings[name] and world.random.random() < 0.7:
        _put(world, settings[name], value)
    else:
        settings[name] = value


def _first(tensors: dict[str, np.ndarray], world: World) -> str:
    return str(world.pick(*tensors))


def _torch_file(content: Callable[[World], Any]) -> Maker:
    """A file as torch.save lays it out: a pickle in an archive."""

    def make(world: World) -> Path:
        path = world.folder / "model.pt"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model/data.pkl", pickle.dumps(content(world), protocol=2))
            archive.writestr("model/byteorder", "little")
            archive.writestr("model/version", "3")
        return path

    return make


class _Malicious:
    def __reduce__(self) -> Any:
        return os.system, ("touch broken-in",)


enter_all(
    "weights",
    REFUSED,
    {
        "empty": _with_weights(lambda world, content: b""),
        "noise": _with_weights(lambda world, content: world.random.bytes(500)),
        "cut": _with_weights(lambda world, content: _cut(content, world.random)),
        "damaged": _with_weights(lambda world, content: _mutated(content, world.random, 0.001)),
        "one_bit": _with_weights(lambda world, content: _flipped(content, world.random)),
        "longer": _with_weights(lambda world, content: content + world.random.bytes(9)),
        "endless_header": _with_weights(lambda world, content: (2**63).to_bytes(8, "little") + content[8:]),
        "text": _with_weights(lambda world, content: b"weights of a model"),
        "empty_folder": lambda world: _folder(world, "model"),
        "folder_for_weights": lambda world: _folder(world, "model") and _folder(world, f"model/{WEIGHTS_FILE}").parent,
        "dangling_link": lambda world: _link(world, "model", "nowhere"),
        "tensor_left_out": _with_tensors(lambda world, tensors: tensors.pop(_first(tensors, world))),
        "tensor_too_many": _with_tensors(lambda world, tensors: tensors.update(extra=np.zeros(3, dtype=np.float32))),
        "tensor_of_another_shape": _with_tensors(
            lambda world, tensors: tensors.update(
                {_first(tensors, world): np.zeros(world.pick((), (0,), (3, 3, 3)), dtype=np.float32)}
            )
        ),
        "not_finite": _with_tensors(
            lambda world, tensors: tensors.update(
                {(name := _first(tensors, world)): np.full_like(tensors[name], world.pick(np.nan, np.inf))}
            )
        ),
        "no_tensors": _with_tensors(lambda world, tensors: tensors.clear()),
        "config_is_no_json": _with_config(lambda world, config: world.pick("", "{", "weights", "{'a': 1}")),
        "config_is_no_object": _with_config(lambda world, config: world.pick("5", "[]", "null", '"a"')),
        "config_nested_too_deep": _with_config(lambda world, config: '{"model": ' + "[" * 100_000),
        "config_of_another_program": _with_config(lambda world, config: '{"architectures": ["Bert"], "hidden": 5}'),
        "config_from_the_future": _with_config(
            lambda world, config: config.update(format_version=world.pick(99, 2**70, "2"))
        ),
        "config_without_model": _with_config(lambda world, config: config.pop("model")),
        "another_programs_weights": lambda world: _saved(world, {"layer.weight": np.zeros(3, dtype=np.float32)}),
        "torch_file": _torch_file(
            lambda world: world.pick({}, [1, 2], {"config": {}}, {"config": {"model": 5}, "model_state_dict": {}}, None)
        ),
        "malicious_pickle": _torch_file(lambda world: _Malicious()),
        "old_pickle": lambda world: world.write("model.pt", pickle.dumps(_Malicious())),
        "cut_torch_file": lambda world: world.write("model.pt", b"PK\x03\x04" + world.random.bytes(100)),
    },
)
enter_all(
    "weights",
    EITHER,
    {
        "config_setting_of_another_type": _with_config(
            lambda world, config: _put(world, config["model"], world.pick("x", None, [], {}, True, 1.5, [1], "16"))
        ),
        "config_setting_out_of_range": _with_config(
            lambda world, config: _put(world, config["model"], world.pick(-1, 0, 10**6, 2**40, 2**70, 1e308))
        ),
        "config_setting_unknown": _with_config(
            lambda world, config: config["model"].update({world.pick("", "x", "é"): 1})
        ),
        "config_setting_left_out": _with_config(
            lambda world, config: config["model"].pop(world.pick(*config["model"]))
        ),
        "config_damaged": _with_config(
            lambda world, config: _mutated(json.dumps(config).encode(), world.random, 0.005).decode("latin-1")
        ),
        "weights_alone": _with_weights(lambda world, content: content, alone=True),
        "another_precision": _with_tensors(
            lambda world, tensors: tensors.update(
                {name: tensor.astype(world.pick(np.float16, np.float64)) for name, tensor in tensors.items()}
            )
        ),
        "whole_numbers": _with_tensors(
            lambda world, tensors: tensors.update(
                {name: tensor.round().astype(np.int32) for name, tensor in tensors.items()}
            )
        ),
        "enormous_weights": _with_tensors(
            lambda world, tensors: tensors.update({name: tensor * np.float32(1e30) for name, tensor in tensors.items()})
        ),
        "no_weight_at_all": _with_tensors(lambda world, tensors: [tensor.fill(0) for tensor in tensors.values()]),
    },
)
enter_all(
    "weights",
    WORKS,
    {
        "sound": _copied,
        "sound_file": lambda world: _copied(world) / WEIGHTS_FILE,
        "odd_folder_name": lambda world: _copied(world).rename(
            world.folder / world.pick("ä ö", "[red]", "a\nb", "-x", "%s{}")
        ),
    },
)


def _flipped(content: bytes, random: np.random.Generator) -> bytes:
    array = np.frombuffer(content, dtype=np.uint8).copy()
    array[int(random.integers(len(array)))] ^= 1 << int(random.integers(8))
    return array.tobytes()


def _saved(world: World, tensors: dict[str, np.ndarray]) -> Path:
    save_file(tensors, world.folder / "model.safetensors")
    return world.folder / "model.safetensors"


def try_weights(world: World, path: Path, expected: str) -> None:
    surface = world.pick("load_model", "load_model", "fit", "discover")
    if surface == "load_model":
        attempt(lambda: load_model(world.pick(path, str(path))), expected)
    elif surface == "fit":
        attempt(lambda: check_arrow(world, Arrow(path).fit(world.frame())), expected)
    else:
        table = world.write("table.csv", world.csv())
        run_command(world, ["discover", str(table), "--json", f"--model={path}"], expected)
    if (world.folder / "broken-in").exists():
        raise Broken("the file ran a program")


# --------------------------------------------------------------------------------------------------------- arguments
# A kind is a parameter of a public function or method. A maker answers with a call that gives it a value of any kind.


class Mute:
    """An object that fails to describe itself, to count and to compare."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __len__ = __iter__ = __bool__ = __eq__ = __repr__  # type: ignore[assignment]


def _any_value(world: World) -> Any:
    """A value that may come where another was expected."""
    return world.pick(
        *(None, -1, 0, 1.5, 2**70, 10**400, True, np.True_, np.int64(3), np.float64(0.5), np.array(5), np.array("a")),
        *(float("nan"), float("inf"), decimal.Decimal("sNaN"), decimal.Decimal("0.5"), pd.NA, pd.NaT, 1j, b"a"),
        *("", "zz", "\ud800", "a\0b", "a" * 5000, [], ["a", "zz"], [None], [[["a"]]], {}, {"a": 1}, {"a"}, ("a", "a")),
        *("a", "b", 2, 7, 0.3, ["a"], ["a", "b"], ("a", "b"), {"a": "b"}, False, "auto"),
        *((0, 10**400), (0, pd.NA), object(), Mute(), len, int, np.array([1, 2]), pd.Series([1.0, 2.0]), range(3)),
        world.frame(rows=20, columns=3),
        (value for value in "ab"),
    )


@functools.cache
def _found(model: Path, lags: int | None = None) -> Any:
    """A discovery in a table of columns a, b, c, d, which no question changes."""
    values = np.random.default_rng(0).normal(size=(60, 4)).cumsum(axis=1)
    return discover(pd.DataFrame(values, columns=list(VARIABLES)), model=model, lags=lags)


QUICK: dict[str, Any] = {"n_graphs": 5, "permutations": 2, "n_resamples": 2, "rows": None, "hidden": None}
"""Arguments that keep questions short."""
ENDS = {"cause": "a", "effect": "b", "treatment": "a", "outcome": "b", "variable": "a"}
LEFT_OUT = {"Discovery.load", "Discovery.save", "SeriesDiscovery.load", "SeriesDiscovery.save"}
"""Members whose files the family "saved" spoils."""


def _asking(ask: Callable[[World], Callable[..., Any]], given: Mapping[str, Any], name: str) -> Maker:
    def make(world: World) -> Callable[[], Any]:
        question, value = ask(world), _any_value(world)
        return lambda: _describe(question(**{**given, name: value}))

    return make


def _describe(answer: Any) -> None:
    """What people do next with an answer: print it, take the first of many, draw no more than that."""
    if isinstance(answer, Iterator):
        answer = next(answer, None)
    if hasattr(answer, "to_json"):
        json.loads(answer.to_json())
    str(answer)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def _enter_arguments() -> None:
    makers: dict[str, Maker] = {}
    for owner, lags in ((Discovery, None), (SeriesDiscovery, 1)):
        for member in (name for name in dir(owner) if not name.startswith("_")):
            function, label = inspect.getattr_static(owner, member), f"{owner.__name__}.{member}"
            if not inspect.isfunction(function) or label in LEFT_OUT:
                continue
            parameters = list(inspect.signature(function).parameters.values())[1:]
            needed = {each.name for each in parameters if each.default is each.empty}
            given = {each.name: {**QUICK, **ENDS}[each.name] for each in parameters if each.name in {**QUICK, **ENDS}}
            given = {name: value for name, value in given.items() if name in needed or (name in QUICK and value)}
            for each in parameters:
                named = each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
                if named and needed <= {*given, each.name}:
                    ask = lambda world, member=member, lags=lags: getattr(_found(world.model, lags), member)  # noqa: E731
                    makers[f"{label}.{each.name}"] = _asking(ask, given, each.name)
    for entry in (*dataclasses.fields(Settings), *dataclasses.fields(ReadOptions), *dataclasses.fields(SeriesOptions)):
        table = lambda world: lambda **given: discover(world.frame(40, 4), **{"model": world.model, **given})  # noqa: E731
        series = {"lags": 1} if entry.name in SeriesOptions.__dataclass_fields__ else {}
        makers[f"discover.{entry.name}"] = _asking(table, series, entry.name)
    for entry in dataclasses.fields(Knowledge):
        known = lambda world: lambda **given: discover(world.frame(40, 4), model=world.model, knowledge=given)  # noqa: E731
        makers[f"Knowledge.{entry.name}"] = _asking(known, {}, entry.name)
    makers["load_example.name"] = _asking(lambda world: load_example, {}, "name")
    makers["load_model.source"] = _asking(lambda world: load_model, {}, "source")
    makers["Discovery.stability.jobs"] = lambda world: functools.partial(
        _found(world.model).stability, 2, jobs=world.pick(-1, 0, 1.5, "2", None, 2**62, True, [], float("nan"))
    )
    enter_all("arguments", EITHER, makers)


def try_call(world: World, made: Any, expected: str) -> None:
    attempt(made, expected)


# ------------------------------------------------------------------------------------------------------------- saved
# A kind is an entry of a saved answer, or a way to damage a .causal file. A maker answers with a call that reads it.


@functools.cache
def _saved_answer(model: Path, lags: int | None) -> str:
    return json.dumps(_found(model, lags).answer.to_dict())


def _changed_entry(name: str, lags: int | None, anew: Callable[[dict[str, Any]], Any]) -> Maker:
    """An answer of which an entry, or one inside it, has another value or is gone."""

    def make(world: World) -> Callable[[], Any]:
        content = json.loads(_saved_answer(world.model, lags))
        inside, key = content, name
        while isinstance(inside[key], dict | list) and inside[key] and world.random.random() < 0.6:
            inside = inside[key]
            key = world.pick(*(inside if isinstance(inside, dict) else range(len(inside))))
        value = world.pick(None, float("nan"), float("inf"), -1, "x", "\ud800", [], {}, [1], 10**400, ["a", "a"], True)
        if world.random.random() < 0.2:
            del inside[key]
        else:
            inside[key] = value
        return lambda: _use(anew(content))

    return make


def _use(answer: Any) -> None:
    json.dumps(answer.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    str(answer)
    if len(set(answer.names)) < len(answer.names):
        raise Unsound("a name twice")
    probabilities = answer.edge_probabilities
    if not (np.isfinite(probabilities).all() and probabilities.min() >= 0 and probabilities.max() <= 1):
        raise Unsound("probabilities outside 0 to 1")


def _causal_file(spoil: Callable[[bytes, np.random.Generator], bytes], lags: int | None) -> Maker:
    def make(world: World) -> Callable[[], Any]:
        found, path = _found(world.model, lags), world.folder / "work.causal"
        found.save(path)
        path.write_bytes(spoil(path.read_bytes(), world.random))
        return lambda: str(type(found).load(path))

    return make


SAVED_ENTRIES = (
    *(
        "variables",
        "edges",
        "order",
        "knowledge",
        "findings",
        "distribution",
        "columns",
        "threshold",
        "decode",
        "model",
    ),
    *("observations", "log_columns", "experiments", "environment", "table_checksum", "directions", "hidden", "version"),
    *("hidden_threshold", "direction_temperature"),
)
SAVED_SERIES = (
    *("variables", "lags", "context", "columns", "experiments", "always_set", "prepared", "order", "knowledge"),
    *("findings", "distribution", "hidden", "hidden_threshold", "steps", "observations", "units", "version"),
)
DAMAGES = {"cut": _cut, "mutated": _mutated, "one_bit": lambda content, random: _flipped(content, random)}


def _enter_saved() -> None:
    makers = {f"answer_{name}": _changed_entry(name, None, Answer.from_dict) for name in SAVED_ENTRIES}
    makers |= {f"series_{name}": _changed_entry(name, 1, SeriesAnswer.from_dict) for name in SAVED_SERIES}
    makers |= {f"{kind}_file": _causal_file(spoil, None) for kind, spoil in DAMAGES.items()}
    makers |= {f"{kind}_series_file": _causal_file(spoil, 1) for kind, spoil in DAMAGES.items()}
    enter_all("saved", EITHER, makers)


# ------------------------------------------------------------------------------------------------------------- bombs
# Small files that want to be large, and files that never end: see bombs.py. Each is tried once, in the first round.


def _enter_bombs() -> None:
    readers: dict[str, tuple[Mapping[str, bombs.Write], Callable[[Path], Any]]] = {
        "table": (bombs.TABLES, read_table),
        "model": (bombs.MODELS, load_model),
        "knowledge": (
            {name: write for name, write in bombs.KNOWLEDGE.items() if "tiers" not in name},
            Knowledge.from_file,
        ),
        "graph": (bombs.GRAPHS, read_graph),
    }
    for what, (writers, read) in readers.items():
        for name, write in writers.items():
            maker = lambda world, write=write, read=read: functools.partial(read, write(world.folder))  # noqa: E731
            enter_all("bombs", EITHER, {f"{what}_{name}": maker})


_enter_arguments()
_enter_saved()
_enter_bombs()

# ---------------------------------------------------------------------------------------------------- what must hold

RESULTS: Counter[tuple[str, str]] = Counter()
"""How often each surface answered and refused."""


def attempt(call: Callable[[], Any], expected: str) -> None:
    """Run something in Python: an ArrowError where it is refused, and no foreign warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refusal = None
        try:
            call()
        except (ArrowError, NotFittedError) as error:
            refusal = str(error)
    RESULTS["Python", "answered" if refusal is None else "refused"] += 1
    check_warnings(caught)
    if refusal is not None:
        check_sentence(refusal)
        if re.search(r"--[a-z]", refusal):
            raise Broken(f"Python's users read of options: {refusal[:200]}")
        if expected == WORKS:
            raise Broken(f"refused, and should work: {refusal[:300]}")
    elif expected == REFUSED:
        raise Broken("accepted, and should be refused")


def check_warnings(caught: Sequence[warnings.WarningMessage]) -> None:
    for warning in caught:
        if not issubclass(warning.category, ArrowWarning | DeprecationWarning | PendingDeprecationWarning):
            raise Broken(f"{warning.category.__name__} from {warning.filename}:{warning.lineno}: {warning.message}")


def check_sentence(text: str) -> None:
    if not text.strip():
        raise Broken("refused without a word")
    for word in ("Traceback", "This is a bug"):
        if word in text:
            raise Broken(text)


def check_arrow(world: World, arrow: Arrow) -> None:
    """An answer has no cycle, probabilities, an order that its edges follow, and obeys the knowledge."""
    answer = arrow.answer_
    names, place = list(answer.names), {name: number for number, name in enumerate(arrow.causal_order_)}
    check_graph(answer.adjacency, answer.edge_probabilities, [place[name] for name in names])
    known = answer.knowledge.compile(names)
    for adjacency in [answer.adjacency, *arrow.sample_graphs(3, random_state=1)]:
        check_graph(adjacency)
        if not known.allows(adjacency):
            raise Unsound("a graph contradicts what is known")
    check_tiers(answer.knowledge.tiers, arrow.causal_order_)


def check_tiers(tiers: Sequence[Sequence[str]], order: Sequence[str]) -> None:
    """The order goes through the tiers one by one, if each variable has one: a path through others may lead back."""
    tier = {name: number for number, members in enumerate(tiers) for name in members}
    if set(order) <= tier.keys() and (numbers := [tier[name] for name in order]) != sorted(numbers):
        raise Unsound("the causal order contradicts the tiers")


def check_graph(adjacency: Any, probabilities: Any = None, places: Sequence[int] | None = None) -> None:
    edges = np.asarray(adjacency, dtype=float)
    left = np.arange(len(edges))
    while len(left):
        roots = left[edges[np.ix_(left, left)].sum(axis=0) == 0]
        if not len(roots):
            raise Unsound("the graph has a cycle")
        left = np.setdiff1d(left, roots)
    if probabilities is not None:
        probabilities = np.asarray(probabilities, dtype=float)
        if not (np.isfinite(probabilities).all() and probabilities.min() >= 0 and probabilities.max() <= 1):
            raise Unsound("probabilities outside 0 to 1")
    if places is not None and any(places[j] > places[k] for j, k in np.argwhere(edges)):
        raise Unsound("the causal order contradicts the edges")


def run_command(world: World, arguments: list[str], expected: str, package: str = "causal_arrow") -> None:
    """Run the program of a package, in this process or in one of its own, and check what it leaves."""
    before = {path.name for path in world.folder.iterdir()}
    if world.random.random() < SUBPROCESSES:
        status, out, err = _in_its_own_process(package, arguments)
    else:
        status, out, err = _in_this_process(package, arguments)
    surface = arguments[0] if arguments and arguments[0] in PROGRAM.commands else "other"
    RESULTS[f"{package.replace('_', '-')} {surface}", "refused" if status == 2 else "answered"] += 1
    shown = f"\n$ {shlex.join([package.replace('_', '-'), *arguments])[:500]}\n{err[-500:]}"
    if "Traceback" in err or "This is a bug" in err or "Traceback" in out:
        raise Broken(f"a traceback or a bug{shown}")
    if "Warning:" in err:
        raise Broken(f"a foreign warning{shown}")
    if status not in ((0, 1, 2) if arguments[:1] in (["check"], ["discover-many"]) else (0, 2)):
        raise Broken(f"status {status}{shown}")
    if status == 2 and out:
        raise Broken(f"refused, and printed {out[:100]!r}{shown}")
    if status and not (err.strip() or out.strip()):
        raise Broken(f"refused without a word{shown}")
    if status and expected == WORKS:
        raise Broken(f"refused, and should work{shown}")
    if status == 0 and expected == REFUSED:
        raise Broken(f"accepted, and should be refused{shown}")
    if status == 0 and arguments[:1] == ["discover"] and "--json" in arguments and "--help" not in arguments:
        check_json(json.loads(out))
    _check_files(world, before, arguments, status)


def _check_files(world: World, before: set[str], arguments: list[str], status: int) -> None:
    """Nothing unfinished is left; a folder for the answer is there, whole, if and only if all went well."""
    if unfinished := list(world.folder.rglob(f"{UNFINISHED}*")):
        raise Broken(f"left {unfinished}")
    new = {path.name for path in world.folder.iterdir()} - before
    kept = {"runs", "benchmark-records"} | ({"many"} if status == 1 else set())  # a table failed, others did not
    if status and new - kept:
        raise Broken(f"refused, and wrote {new}")
    if status == 0 and "--output" in arguments and arguments[0] == "discover":
        folder = world.folder / arguments[arguments.index("--output") + 1]
        if len(list(folder.iterdir())) < 10 or not all(path.stat().st_size for path in folder.iterdir()):
            raise Broken(f"wrote only {sorted(path.name for path in folder.iterdir())}")


def check_json(content: dict[str, Any]) -> None:
    place = {name: number for number, name in enumerate(content["variables"])}
    adjacency = np.zeros((len(place), len(place)))
    for edge in content["edges"]:
        adjacency[place[edge["source"]], place[edge["target"]]] = 1
    order = {name: number for number, name in enumerate(content["order"])}
    check_graph(adjacency, content["edge_probabilities"], [order[name] for name in content["variables"]])
    known = Knowledge.from_dict(content.get("knowledge") or {})
    if not known.compile(content["variables"]).allows(adjacency):
        raise Unsound("the graph contradicts what is known")
    check_tiers(known.tiers, content["order"])


def _in_its_own_process(package: str, arguments: list[str]) -> tuple[int, str, str]:
    homes = [str(Path(importlib.import_module(name).__file__ or "").parents[1]) for name in {"causal_arrow", package}]
    done = subprocess.run(
        [sys.executable, "-m", package, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(homes), "OMP_NUM_THREADS": "1"},
    )
    return done.returncode, done.stdout, done.stderr


def _in_this_process(package: str, arguments: list[str]) -> tuple[int, str, str]:
    """As a process of its own would have it: streams of bytes, which refuse what is no text."""
    kept = sys.stdout, sys.stderr, sys.__stdout__
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(out, encoding="utf-8")  # type: ignore[misc]
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace")
    status: object = "no exit at all"
    try:
        with warnings.catch_warnings():
            importlib.import_module(f"{package}.cli").main(arguments)
    except SystemExit as leaving:
        status = leaving.code or 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        printed, told = (stream.getvalue().decode(errors="replace") for stream in (out, err))
        sys.stdout, sys.stderr, sys.__stdout__ = kept  # type: ignore[misc]
    if not isinstance(status, int):
        raise Broken(f"left with {status!r}")
    return status, printed, told


# ----------------------------------------------------------------------------------------------------------- running

TRIES: dict[str, Callable[[World, Any, str], None]] = {
    "files": try_files,
    "frames": try_frames,
    "knowledge": try_knowledge,
    "options": try_options,
    "series": try_series,
    "weights": try_weights,
    "arguments": try_call,
    "saved": try_call,
    "bombs": try_call,
}


def cases(count: int, seed: int) -> Iterator[Case]:
    """That many cases, the kinds in turn; bombs once."""
    kinds = [(family, name) for family, entries in KINDS.items() for name in entries]
    often = [(family, name) for family, name in kinds if family != "bombs"]
    for number in range(count):
        turn, index = divmod(number - len(kinds), len(often)) if number >= len(kinds) else (-1, number)
        family, name = (kinds if turn < 0 else often)[index]
        yield Case(family, name, seed * 1_000_000 + turn + 1)


class _TooSlow(BaseException):
    pass


def run_case(case: Case, model: Path) -> str | None:
    """What is wrong, which begins with "ugly", "unsound" or "slow"; or None."""
    maker, expected = KINDS[case.family][case.kind]
    here, alarm = Path.cwd(), signal.getsignal(signal.SIGPROF)

    def ring(*_: Any) -> None:
        raise _TooSlow

    with tempfile.TemporaryDirectory() as folder:
        world = World(case.random(), Path(folder), model)
        os.chdir(folder)
        # Seconds of work, not of waiting: other programs may be running.
        signal.signal(signal.SIGPROF, ring)
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = maker(world)
            TRIES[case.family](world, made, expected)
        except Broken as error:
            return f"{'unsound' if isinstance(error, Unsound) else 'ugly'}: {error}"
        except _TooSlow:
            return f"slow: takes more than {MAX_SECONDS} seconds"
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"ugly: {type(error).__name__}: {str(error)[:300]} ({last.filename}:{last.lineno})"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, alarm)
            os.chdir(here)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=KINDS)
    parser.add_argument("--kind")
    parser.add_argument("--case-seed", type=int)
    options = parser.parse_args()
    wanted = [
        case
        for case in cases(options.cases if options.case_seed is None else len(KINDS) * 1000, options.seed)
        if options.family in (None, case.family) and options.kind in (None, case.kind)
    ]
    if options.case_seed is not None:
        wanted = [Case(options.family, options.kind, options.case_seed)]
    started, failures, sorts = time.monotonic(), Counter[str](), Counter[str]()
    print(f"Seed {options.seed}: {len(wanted)} cases.", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "small"
        save_network(random_network(), model)
        for number, case in enumerate(wanted, start=1):
            if problem := run_case(case, model):
                failures[f"{case.family}/{case.kind}"] += 1
                sorts[problem.partition(":")[0]] += 1
                print(f"{case}\n    {problem}\n", flush=True)
            if number % 1000 == 0:
                print(f"{number} of {len(wanted)} cases, {sum(failures.values())} wrong", file=sys.stderr, flush=True)
    kinds = len({(case.family, case.kind) for case in wanted})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{len(wanted)} cases of {kinds} kinds in {time.monotonic() - started:.0f} s and {peak:.1f} GB: "
        f"{', '.join(f'{sorts[sort]} {sort}' for sort in ('ugly', 'unsound', 'slow'))}, {sum(failures.values())} wrong"
        + "".join(f"\n    {kind}: {count}" for kind, count in failures.most_common())
    )
    print(f"{'surface':<32}{'answered':>10}{'refused':>10}")
    for surface in sorted({surface for surface, _ in RESULTS}):
        print(f"{surface:<32}{RESULTS[surface, 'answered']:>10}{RESULTS[surface, 'refused']:>10}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
