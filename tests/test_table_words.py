"""Each surface speaks its own language: a Python user never reads of options, a command-line user of calls."""

from __future__ import annotations

import inspect
import io
import json
import pickle
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from causal_arrow.cli import _discover as discover_module
from causal_arrow.cli import options
from causal_arrow.cli.program import build_app
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import (
    COMMAND_LINE,
    MAX_NAMED,
    PYTHON,
    ArrowError,
    ConfigurationError,
    Remedy,
    TableError,
    advice,
)
from causal_arrow.graphs.decoding import DECODERS
from causal_arrow.tables.options import MISSING_CHOICES, READ_OPTIONS, ReadOptions
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.report import inspect_table
from causal_arrow.tables.scales import SCALES
from causal_arrow.tables.table import Abilities, Finding

NUMBERS_ONLY = Abilities("the model arrow-strict", frozenset())
OPTION = re.compile(r"--\w+")
ARGUMENT = re.compile(r"\w+=|\w+\(|\[\.\.\.\]")

VALUES = np.random.default_rng(0).normal(size=(60, 4)).round(3)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def nasty() -> pd.DataFrame:
    """A table with something of every kind to complain about."""
    frame = pd.DataFrame(VALUES.copy(), columns=["a ", "b", "c,d", "e"])
    frame["city"] = ["Rome", "Oslo", "Bonn"] * 20
    frame["code"] = ["?" if n == 7 else str(n % 5) for n in range(60)]
    frame["site"] = 41
    frame["copy"] = 2 * frame["b"]
    frame["row"] = range(60)
    frame.loc[3, "e"] = np.nan
    return frame


# Remedies


IN_THE_FILE = {"index"}
"""What no option of the command line can do: someone has to change the file."""


def test_every_remedy_has_words_on_both_surfaces() -> None:
    assert PYTHON.keys() == COMMAND_LINE.keys()
    for action in PYTHON:
        for columns in (("a",), ("a", "b"), tuple("abcdefghijklmnop")):
            remedy = Remedy(action, columns, "drop" if action == "missing" else "columns")
            (python,), (command,) = advice([remedy], PYTHON), advice([remedy], COMMAND_LINE)
            assert not OPTION.search(python)
            assert not ARGUMENT.search(re.sub("(--kind|--ordered) a=", "", command))
            assert ARGUMENT.search(python)
            assert OPTION.search(command) or action in IN_THE_FILE


def test_alternatives_stand_in_one_sentence_and_needs_in_several() -> None:
    remedies = [
        Remedy("drop", ("city",)),
        Remedy("na", setting="?"),
        Remedy("missing", setting="drop", about="the missing values"),
        Remedy("missing", setting="impute", about="the missing values"),
    ]
    assert advice(remedies, COMMAND_LINE) == [
        "To go on: leave out a column with --drop city, or count '?' as missing with --na '?'.",
        "For the missing values: leave out incomplete observations with --missing drop, or fill the gaps with "
        "--missing impute.",
    ]
    assert advice([], PYTHON) == []
    assert (
        str(ArrowError("No.", remedies[:1]))
        == "No. To go on: leave out a column with read_table(table, drop=['city'])."
    )


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1), min_size=1, max_size=MAX_NAMED))
def test_the_advised_options_name_exactly_the_columns(names: list[str]) -> None:
    (sentence,) = advice([Remedy("drop", tuple(names))], COMMAND_LINE)
    words = shlex.split(re.sub(r"^To go on: leave out (a column|columns) with ", "", sentence).removesuffix("."))
    assert words[::2] == ["--drop"] * len(names)
    assert options.several(words[1::2]) == names


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1).filter(str.strip), min_size=2))
def test_the_advised_order_names_exactly_the_levels(levels: list[str]) -> None:
    (sentence,) = advice([Remedy("order", ("size", *levels))], COMMAND_LINE)
    option, value = shlex.split(sentence.partition(" with ")[2].removesuffix("."))
    assert (option, options.orders([value])) == ("--ordered", {"size": levels})
    (sentence,) = advice([Remedy("order", ("size", *levels))], PYTHON)
    assert sentence.endswith(f"ordered={{'size': {levels!r}}}.")


def test_names_with_line_breaks_can_be_given_as_options() -> None:
    assert options.several(["a\r\nb", "c , d", '"e,f" , g', ""]) == ["a\r\nb", "c", "d", "e,f", "g"]
    assert options.several(None) is None


def test_findings_go_through_json(nasty: pd.DataFrame) -> None:
    for finding in inspect_table(read_table(nasty, strict=False, abilities=NUMBERS_ONLY)).findings:
        assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding
    old = {"kind": "text", "severity": "problem", "columns": ["a"], "message": "Words."}
    assert Finding.from_dict(old) == Finding("text", "problem", ("a",), "Words.")


# Surfaces


def test_python_users_read_only_of_python(nasty: pd.DataFrame) -> None:
    with pytest.raises(TableError) as refusal:
        read_table(nasty, abilities=NUMBERS_ONLY)
    report = inspect_table(read_table(nasty, strict=False, abilities=NUMBERS_ONLY))
    texts = [str(refusal.value), *report.warnings, *report.lines(), json.dumps(report.to_dict())]
    for text in texts:
        assert not OPTION.search(text)
        assert "Arrow(drop" not in text
    assert "read_table(table, drop=['city', 'code', 'site'])" in texts[0]
    assert "na=['?']" in texts[0]
    assert 'missing="drop"' in texts[0]
    with pytest.raises(TableError, match=r"'zzz' is not in the table.*drop=\[") as refusal:
        read_table(nasty, drop=["zzz"])
    assert not OPTION.search(str(refusal.value))


def test_the_advice_in_python_works(nasty: pd.DataFrame) -> None:
    with pytest.raises(TableError) as refusal:
        read_table(nasty, abilities=NUMBERS_ONLY)
    (call,) = re.findall(r"read_table\(table, drop=.*?\]\)", str(refusal.value))
    with pytest.raises(TableError, match=r"^1 value is missing"):
        eval(call.replace(")", ', missing="error")'), {"table": nasty, "read_table": read_table})
    fixed = eval(call.replace(")", ', missing="drop")'), {"table": nasty, "read_table": read_table})
    assert fixed.names == ("a", "b", "c,d", "e", "copy", "row")


def test_command_line_users_read_only_of_options(run: Run, nasty: pd.DataFrame, tmp_path: Path) -> None:
    nasty.to_csv(tmp_path / "t.csv", index=False)
    numbers_only = (tmp_path / "t.csv", "--model", "arrow-strict")
    outputs = [run("discover", *numbers_only), run("check", *numbers_only)]
    outputs += [run("check", *numbers_only, "--json"), run("discover", *numbers_only, "--drop", "zzz")]
    assert [status for status, _, _ in outputs] == [2, 1, 1, 2]
    for _, out, err in outputs:
        assert OPTION.search(out + err)
        assert not ARGUMENT.search(out + err)
    assert "--drop city --drop code --drop site" in outputs[0][2]
    assert "--na '?'" in outputs[0][2]
    assert "--columns" not in outputs[3][2]
    assert "--drop" in outputs[3][2]


def test_one_is_singular(nasty: pd.DataFrame) -> None:
    with pytest.raises(TableError, match="1 value is missing"):
        read_table(nasty, columns=["a", "b", "e"], missing="error")
    (note,) = [
        each for each in inspect_table(read_table(nasty, columns=["a", "b", "e"])).findings if "missing" in each.kind
    ]
    assert note.message.startswith("1 value (<1%) is missing")
    assert "1 of 60 observations has" in read_table(nasty, columns=["a", "e"], missing="drop").findings[-1].message
    assert "1 missing value (" in read_table(nasty, columns=["a", "e"], missing="impute").findings[-1].message


# The command line


COMMANDS = ("check", "discover", "discover-many", "effect", "next-experiment")


def parameters_of(command: str) -> dict[str, Any]:
    """What typer makes of a command: its parameters by name."""
    commands = typer.main.get_command(build_app()).commands  # type: ignore[attr-defined]
    return {parameter.name: parameter for parameter in commands[command].params}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_a_table_has_all_reading_options(command: str) -> None:
    parameters = parameters_of(command)
    for option in READ_OPTIONS.values():
        parameter = parameters[option.name]
        assert f"--{option.flag}" in parameter.opts
        assert parameter.help.startswith(option.help[:-1])
        assert parameter.default == option.default
        assert parameter.rich_help_panel == options.TABLE_PANEL


def test_settings_on_the_command_line_are_those_of_the_pipeline() -> None:
    defaults = Settings()
    parameters = parameters_of("discover")
    for name in (entry.name for entry in options.SETTINGS.parameters):
        assert parameters[name].default == getattr(defaults, name)
    assert set(parameters_of("check")) & vars(defaults).keys() == {"model"}


def test_choices_on_the_command_line_are_those_of_the_package() -> None:
    parameters = inspect.signature(discover_module.discover).parameters
    for name, choices in (("missing", MISSING_CHOICES), ("scale", SCALES), ("decode", DECODERS)):
        assert get_args(get_args(parameters[name].annotation)[0]) == tuple(choices)


def test_what_a_command_gets_is_what_its_options_say() -> None:
    given: dict[str, Any] = {}

    @options.expanded
    def command(table: str, reading: ReadOptions = options.READING, last: int = 3) -> None:
        given.update(table=table, reading=reading, last=last)

    assert list(inspect.signature(command).parameters) == ["table", *READ_OPTIONS, "last"]
    command("t.csv", drop=["id, name"], kinds=["a=b=number"], ordered=["size=s, m"], header=False)
    reading = ReadOptions(drop=["id", "name"], kinds={"a=b": "number"}, ordered={"size": ["s", "m"]}, header=False)
    assert given == {"table": "t.csv", "reading": reading, "last": 3}
    for wrong in ({"kinds": ["a"]}, {"ordered": ["=a,b"]}, {"kinds": ["a="]}):
        with pytest.raises(ConfigurationError, match=r"Expected --(kind|ordered) as \w+="):
            command("t.csv", **wrong)


@pytest.mark.parametrize(
    ("command", "now"), [("discover", "--max-rows"), ("effect", "--max-rows"), ("next-experiment", "--rows")]
)
@pytest.mark.parametrize("former", ["--observations", "--observations=40"])
def test_a_former_option_is_answered_with_its_name_now(command: str, now: str, former: str, run: Run) -> None:
    status, out, err = run(command, "t.csv", former)
    assert (status, out) == (2, "")
    assert err == f"causal-arrow: The option --observations of `{command}` is now {now}.\n"


# Reading options


def test_reading_options_are_checked_and_made_uniform_at_once() -> None:
    options = ReadOptions(columns=(name for name in "ab"), drop="a", na=[" ? ", -999], delimiter="tab", kinds={})
    assert (options.columns, options.drop, options.na) == (("a", "b"), ("a",), ("?", "-999"))
    assert (options.delimiter, options.kinds) == ("\t", None)
    for wrong in ({"missing": "perhaps"}, {"decimal": ";"}, {"delimiter": "ab"}, {"kinds": ["a"]}, {"drop": 1j}):
        with pytest.raises(ArrowError):
            ReadOptions(**wrong)


def test_reading_options_go_through_json() -> None:
    everything = ReadOptions(
        columns=["a", "b"], drop=["c"], missing="drop", na=["?"], delimiter=";", decimal=",", sheet="2024",
        header=False, kinds={"a": "category"}, ordered={"b": ["x", "y"]}, interventions="what", environments="site",
    )  # fmt: skip
    assert set(everything.to_dict()) == set(READ_OPTIONS)
    assert ReadOptions(**json.loads(json.dumps(everything.to_dict()))) == everything
    assert ReadOptions().to_dict() == {}
    labels = np.array(["", "a"])
    assert ReadOptions(interventions=labels).to_dict()["interventions"] is labels


def test_read_table_takes_options_as_an_object_or_by_name() -> None:
    frame = pd.DataFrame(VALUES, columns=list("abcd"))
    options = ReadOptions(drop=["a"], columns=["c", "a", "b"])
    assert read_table(frame, options).names == read_table(frame, drop="a", columns=["c", "a", "b"]).names == ("c", "b")
    assert read_table(frame, options, drop=None).names == ("c", "a", "b")
    with pytest.raises(ConfigurationError, match="Unknown option 'dorp': did you mean 'drop'"):
        read_table(frame, dorp=["a"])


def test_check_takes_every_reading_option(run: Run, tmp_path: Path) -> None:
    lines = [f"{a},{b},{c};x" for a, b, c, _ in VALUES]
    (tmp_path / "t.txt").write_text("\n".join(["?,1.5,2.5;x", *lines]))
    arguments = ("check", tmp_path / "t.txt", "--json", "--no-header", "--delimiter", "comma", "--decimal", ".")
    status, out, _ = run(*arguments, "--na", "?", "--missing", "drop", "--drop", "x3")
    content = json.loads(out)
    assert status == 0
    assert (content["observations"], content["variables"], content["usable"]) == (60, 2, True)
    assert content["columns"] == [{"name": name, "kind": "number", "levels": []} for name in ("x1", "x2")]
    assert run(*arguments, "--na", "?", "--drop", "x3", "--model", "arrow-strict")[0] == 1


def test_check_says_when_too_few_observations_are_complete(run: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame(VALUES.copy(), columns=list("abcd"))
    frame.loc[:50, "a"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = run("check", tmp_path / "t.csv", "--missing", "drop", "--json")
    problems = [finding for finding in json.loads(out)["findings"] if finding["severity"] == "problem"]
    assert status == 1
    assert [problem["message"].startswith("Only 9 of 60 observations") for problem in problems] == [True]
    assert "--drop a" in problems[0]["message"]


@pytest.mark.parametrize("command", ["check", "discover"])
def test_a_table_can_come_on_standard_input(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch, small_model_folder: Path
) -> None:
    text = pd.DataFrame(VALUES, columns=list("abcd")).to_csv(index=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    model = ("--model", small_model_folder) if command == "discover" else ()
    status, out, _ = run(command, "-", *model)
    assert status == 0
    assert out.startswith("standard input: 60 observations of 4 variables")


@pytest.mark.parametrize("command", ["check", "discover"])
def test_a_sheet_of_a_text_file_is_refused(command: str, run: Run, tmp_path: Path) -> None:
    pd.DataFrame(VALUES).to_csv(tmp_path / "t.csv", index=False)
    status, out, err = run(command, tmp_path / "t.csv", "--sheet", "2024")
    assert (status, out) == (2, "")
    assert "'t.csv' is not an Excel workbook. To go on: leave out --sheet." in err


def test_columns_with_line_breaks_can_be_dropped(run: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame(VALUES, columns=["a\r\nb", "b", "c", "d"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, out, err = run("check", tmp_path / "t.csv", "--drop", "a\r\nb", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["variables"] == 3


def test_check_knows_the_training_range_of_the_default_model(run: Run, tmp_path: Path) -> None:
    wide = pd.DataFrame(np.random.default_rng(1).normal(size=(600, 257)))
    wide.to_csv(tmp_path / "t.csv", index=False)
    assert "257 variables are more than the network has learned from (2 to 256)" in run("check", tmp_path / "t.csv")[1]


def test_check_does_not_load_torch(tmp_path: Path) -> None:
    pd.DataFrame(VALUES).to_csv(tmp_path / "t.csv", index=False)
    program = (
        "import sys; from causal_arrow.cli._reports import check; from pathlib import Path; "
        f"check(Path({str(tmp_path / 't.csv')!r})); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, stdout=subprocess.DEVNULL).returncode == 0


def test_remedies_do_not_get_lost_when_an_error_is_pickled() -> None:
    error = TableError("No.", [Remedy("drop", ("a",))])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_without_words_for_remedies_the_message_stands_alone() -> None:
    finding = Finding("text", "problem", ("a",), "Words.", (Remedy("drop", ("a",)),))
    assert finding.worded({}) == "Words."
