"""Options that several commands have. A list of them is written once, here, and a command names it as a default:

@options.expanded
def effect(table: options.TableArgument, ..., settings: Settings = options.QUESTION_SETTINGS) -> None:
"""

from __future__ import annotations

import csv
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from causal_arrow.cli.console import console, file, print_json, print_warnings
from causal_arrow.discovery.settings import Settings
from causal_arrow.errors import COMMAND_LINE, ConfigurationError, KnowledgeError
from causal_arrow.inputs import read_bytes
from causal_arrow.output import written_together
from causal_arrow.series import SERIES_OPTIONS, SeriesOptions
from causal_arrow.tables.options import READ_OPTIONS, Form, Missing, Option, ReadOptions

if TYPE_CHECKING:
    from causal_arrow.discovery.inference import Workload
    from causal_arrow.graphs.knowledge import Knowledge

TABLE_PANEL = "Reading the table"
KNOWLEDGE_PANEL = "Prior knowledge"
WORK_PANEL = "Parallelism"
SERIES_PANEL = "Time series"
MAX_DRAWS, MAX_SEED = 10**6, 2**63 - 1
STANDARD_INPUT = Path("-")
SEED_HELP = "Seed of all random draws: the same seed gives the same draws."
Command = TypeVar("Command", bound=Callable[..., None])
LARGE = 10**9  # bytes of memory from which on the workload of a table is announced

TableArgument = Annotated[
    Path,
    typer.Argument(
        help="File with one row per observation and one column per variable: .csv, .tsv, .txt (also .gz), .parquet, "
        ".feather, .xlsx; - for text on standard input.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help=SEED_HELP, min=0, max=MAX_SEED)]
JSON_HELP = "Print JSON and nothing else."
AsJson = Annotated[bool, typer.Option("--json", help=JSON_HELP)]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files of the same names in the output folder.")]


def described(help: str, *flags: str, **looks: Any) -> Any:
    """An option by its help, without a default to show."""
    return typer.Option(*flags, help=help, show_default=False, **looks)


@dataclass(frozen=True)
class OptionList:
    """Options that belong together; `build` makes of their values what a command gets for the list."""

    parameters: tuple[inspect.Parameter, ...]
    build: Callable[..., Any]

    def built(self, values: dict[str, Any]) -> Any:
        """The value that a command gets for the list; its options are taken out of the values."""
        return self.build(**{each.name: values.pop(each.name) for each in self.parameters})

    @property
    def defaults(self) -> Any:
        """The value that a command gets without any of the options."""
        return self.built({each.name: each.default for each in self.parameters})

    def only(self, *names: str) -> Any:
        """The list with only these options."""
        return replace(self, parameters=tuple(each for each in self.parameters if each.name in names))

    def without(self, *names: str) -> Any:
        """The list without these options."""
        return replace(self, parameters=tuple(each for each in self.parameters if each.name not in names))


def expanded(command: Command) -> Command:
    """Give a command the options of each OptionList among its defaults, and call it with what they build."""
    signature = inspect.signature(command)
    lists = {
        name: entry.default for name, entry in signature.parameters.items() if isinstance(entry.default, OptionList)
    }
    command.__annotations__ = {name: hint for name, hint in command.__annotations__.items() if name not in lists}
    # Not get_type_hints, which on Python 3.10 hides what Annotated says about an option that is None by default.
    hints = inspect.get_annotations(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for name, entry in signature.parameters.items():
        parameters += lists[name].parameters if name in lists else [entry.replace(annotation=hints[name])]

    @functools.wraps(command)
    def wrapper(*given: Any, **named: Any) -> None:
        bound = inspect.signature(wrapper).bind(*given, **named)
        bound.apply_defaults()
        values = bound.arguments
        built = {name: each.built(values) for name, each in lists.items()}
        command(**values, **built)

    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {entry.name: entry.annotation for entry in parameters}
    return wrapper  # type: ignore[return-value]


def option(name: str, kind: Any, default: Any, help: str, *flags: str, **looks: Any) -> inspect.Parameter:
    """The parameter of a command for an option."""
    kind = Annotated[kind, typer.Option(*flags, help=help, show_default=default is not None, **looks)]
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)


def count(name: str, help: str) -> inspect.Parameter:
    """An option for how many of something to draw; by default none."""
    return option(name, int | None, None, help, min=1, max=MAX_DRAWS)


DRAWS: Any = OptionList(
    (
        option("graphs", int, 1000, "How many graphs to average over.", min=1, max=MAX_DRAWS),
        option("seed", int, 0, SEED_HELP, min=0, max=MAX_SEED),
    ),
    build=lambda graphs, seed: {"n_graphs": graphs, "random_state": seed},
)
"""Options for the number of drawn graphs and their seed, as questions of a Discovery take them."""


def workers(help: str) -> Any:
    """The options for who does the work, by name; `help` describes the number of processes."""
    backends = Literal["loky", "ray", "dask"]
    address = "Address of a Ray or Dask cluster; by default one is started on this machine."
    looks = {"rich_help_panel": WORK_PANEL}
    return OptionList(
        (
            option(
                "backend", backends, "loky", "Processes of this machine (loky), or the workers of a cluster.", **looks
            ),
            option("jobs", int | None, None, help, min=1, **looks),
            option("cluster", str | None, None, address, metavar="ADDRESS", **looks),
        ),
        build=dict,
    )


def _setting(entry: Field[Any]) -> inspect.Parameter:
    about = entry.metadata
    kind = Literal[about["choices"]] if about["choices"] else about["kind"]
    return option(entry.name, kind, entry.default, about["help"])


SETTINGS: Any = OptionList(tuple(_setting(entry) for entry in fields(Settings) if entry.metadata), build=dict)
"""Settings of the pipeline, by name."""


# What is known


def _knowledge(**given: Any) -> Knowledge:
    """All that is known about the graph, from options and files together."""
    from causal_arrow.graphs.knowledge import Knowledge

    known = Knowledge(
        required=given["require"] or (),
        forbidden=given["forbid"] or (),
        no_hidden_cause=given["no_hidden_cause"] or (),
        beliefs=_beliefs(given["belief"] or ()),
        **{name: several(given[name]) or () for name in ("roots", "leaves", "randomized")},
    )
    if given["tiers"] is not None:
        known = known | _tiers(given["tiers"])
    return known if given["knowledge"] is None else known | Knowledge.from_file(given["knowledge"])


def _beliefs(values: Sequence[str]) -> list[tuple[str, float]]:
    """The statements and probabilities in values such as "root age=0.8"."""
    found = []
    for value in values:
        statement, _, probability = value.rpartition("=")
        try:
            found.append((statement.strip(), float(probability)))
        except ValueError:
            raise ConfigurationError(f"Expected --belief as 'root age=0.8', got {value!r}.") from None
    return found


def _tiers(text: str) -> Knowledge:
    """Tiers as "age, sex; bmi; outcome", or in a file."""
    from causal_arrow.graphs.knowledge import Knowledge

    path = Path(text)
    if ";" in text and not path.is_file():
        return Knowledge(tiers=[several([tier]) or [] for tier in text.split(";")])
    if path.suffix.lower() in (".toml", ".json"):
        return Knowledge.from_file(path)
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise KnowledgeError(
            f"Cannot open the file of tiers '{path}': {error.strerror or error}. Or write the tiers, separated by "
            "semicolons, as in 'age, sex; bmi; outcome'."
        ) from error
    except UnicodeDecodeError as error:
        raise KnowledgeError(f"'{path.name}' is not a text file with one tier per line.") from error
    rows = csv.reader((line for line in lines if not line.lstrip().startswith("#")), skipinitialspace=True)
    return Knowledge(tiers=[[name.strip() for name in row if name.strip()] for row in rows])


def _known(name: str, kind: Any, help: str, metavar: str | None = None) -> inspect.Parameter:
    return option(name, kind, None, help, rich_help_panel=KNOWLEDGE_PANEL, metavar=metavar)


_AGAIN = "; can be given several times."
KNOWLEDGE: Any = OptionList(
    (
        _known("require", list[str] | None, f"An edge that must be there{_AGAIN}", "CAUSE->EFFECT"),
        _known(
            "forbid",
            list[str] | None,
            f"An edge that must not be there, * for every variable, as in '* -> age'{_AGAIN}",
            "CAUSE->EFFECT",
        ),
        _known("roots", list[str] | None, "Variables that nothing in the table causes.", "A,B,..."),
        _known("leaves", list[str] | None, "Variables that cause nothing in the table.", "A,B,..."),
        _known(
            "tiers",
            str | None,
            "Groups of variables, the earliest first: 'age, sex; bmi; outcome', where * is every other variable, or a "
            "text file with one tier per line. Later tiers cannot cause earlier ones.",
            "A,B;C;...",
        ),
        _known(
            "knowledge",
            Path | None,
            "TOML or JSON file with required, forbidden, tiers, roots, leaves, no_hidden_cause, randomized, beliefs.",
        ),
        _known(
            "no_hidden_cause",
            list[str] | None,
            f"Two variables that share no cause outside the table, 'educ <-> *' or all{_AGAIN}",
            "A<->B",
        ),
        _known("randomized", list[str] | None, "Variables whose values were randomized, as in a trial.", "A,B,..."),
        _known(
            "belief",
            list[str] | None,
            "A statement and how probable it is: 'a -> b=0.8', 'a ~> b=0.8' (directly or not), 'a before b=0.9', 'root "
            f"a=0.8', 'leaf a=0.8' or 'a <-> b=0.7'{_AGAIN}",
            "STATEMENT=PROBABILITY",
        ),
    ),
    build=_knowledge,
)
"""Prior knowledge about the graph, as a Knowledge."""


# How to read the table


_TYPES: Mapping[Form, Any] = {"flag": bool, "missing": Missing, "text": str | None, "column": str | None}
"""Types of options that can be given once; the others are lists."""
_METAVARS: Mapping[Form, str] = {
    "names": "A,B,...",
    "column": "COLUMN",
    "kinds": "COLUMN=KIND",
    "orders": "COLUMN=LEVEL,LEVEL,...",
}


def _reading_option(about: Option) -> inspect.Parameter:
    """The parameter of a command for one of the reading options."""
    form, flag = about.form, about.flag.replace("_", "-")
    return option(
        about.name,
        _TYPES.get(form, list[str] | None),
        about.default,
        f"{about.help[:-1]}{_AGAIN}" if form in ("kinds", "orders") else about.help,
        f"--{flag}/--no-{flag}" if form == "flag" else f"--{flag}",
        metavar=_METAVARS.get(form),
        rich_help_panel=TABLE_PANEL,
    )


def _reading(**values: Any) -> ReadOptions:
    """The reading options that the values of a command stand for."""
    for name, value in values.items():
        values[name] = _FROM_TEXT.get(READ_OPTIONS[name].form, lambda same: same)(value)
    return ReadOptions(**values)


def several(values: Sequence[str] | None) -> list[str] | None:
    """The names in the values of an option, which may hold several each, separated by commas.

    A name that holds a comma, or blanks at its ends, is quoted as in a CSV file.
    """
    if values is None:
        return None
    names = []
    for value in values:
        for quoted, plain in re.findall(r'\s*"((?:[^"]|"")*)"\s*(?:,|$)|([^,]+)', value):
            names.append(quoted.replace('""', '"') if quoted else plain.strip())
    return [name for name in names if name]


def assigned(values: Sequence[str] | None, flag: str, example: str) -> dict[str, str]:
    """The names and what is assigned to them, in values such as the example; the last equals sign divides a kind."""
    pairs = [value.rpartition("=") if flag == "--kind" else value.partition("=") for value in values or ()]
    for value, (name, equals, rest) in zip(values or (), pairs, strict=True):
        if not name.strip() or not equals or not rest.strip():
            raise ConfigurationError(f"Expected {flag} as {example}, got {value!r}.")
    return {name.strip(): rest.strip() for name, _, rest in pairs}


def orders(values: Sequence[str] | None) -> dict[str, list[str]]:
    """The orders in values such as "size=small,medium,large"."""
    levels = assigned(values, "--ordered", "size=small,medium,large")
    return {name: several([text]) or [] for name, text in levels.items()}


_FROM_TEXT: Mapping[Form, Callable[[Any], Any]] = {
    "names": several,
    "kinds": lambda values: assigned(values, "--kind", "zip=category"),
    "orders": orders,
}

READING: Any = OptionList(tuple(map(_reading_option, READ_OPTIONS.values())), build=_reading)
"""Options for reading the table, as ReadOptions."""


def _series(**values: Any) -> SeriesOptions:
    """The options of a series that the values of a command stand for."""
    lags = values["lags"]
    if lags is not None and lags != "auto":
        try:
            values["lags"] = int(lags)
        except ValueError:
            raise ConfigurationError(f"Expected --lags to be a whole number or auto, got {lags!r}.") from None
    return SeriesOptions(**{**values, "difference": several(values["difference"]) or False})


SERIES: Any = OptionList(
    tuple(
        option(
            name,
            kind,
            default,
            SERIES_OPTIONS[name],
            f"--{name}/--no-{name}" if name == "contemporaneous" else f"--{name}",
            metavar=metavar,
            rich_help_panel=SERIES_PANEL,
        )
        for name, kind, default, metavar in (
            ("lags", str | None, None, "NUMBER"),
            ("time", str | None, None, "COLUMN"),
            ("unit", str | None, None, "COLUMN"),
            ("contemporaneous", bool, True, None),
            ("difference", list[str] | None, None, "A,B,..."),
            ("season", int | None, None, "STEPS"),
            ("resample", str | None, None, "LENGTH"),
        )
    ),
    build=_series,
)
"""Options for reading a time series, as SeriesOptions."""


# All of them, and what a command does with its answer


def _settings(lists: Mapping[str, OptionList], **values: Any) -> Settings:
    """Settings from the options of several lists, whose names are those of settings."""
    parts = {name: each.built(values) for name, each in lists.items()}
    return Settings(**values, **parts)


def _with_settings(settings: OptionList, **lists: OptionList) -> Any:
    """The options of all lists as Settings."""
    parameters = [*settings.parameters, *(each for part in lists.values() for each in part.parameters)]
    return OptionList(tuple(parameters), build=functools.partial(_settings, lists))


READ_SETTINGS: Any = _with_settings(SETTINGS, knowledge=KNOWLEDGE, reading=READING)
"""All settings for tables, as Settings."""
ALL_SETTINGS: Any = _with_settings(SETTINGS, series=SERIES, knowledge=KNOWLEDGE, reading=READING)
"""All settings for tables and time series, as Settings."""
QUESTION_SETTINGS, SERIES_QUESTION_SETTINGS = (
    each.without("decode", "threshold") for each in (READ_SETTINGS, ALL_SETTINGS)
)
"""The same for questions that are not about one graph."""


def discovery(table: Path, settings: Settings) -> Any:
    """The discovery for a table, or for a time series where lags are given."""
    from causal_arrow.discovery.pipeline import discover

    return discover(table, settings, before=_announce_if_large)


def _announce_if_large(work: Workload) -> None:
    """Print on standard error what a large table will take, before it does."""
    if work.memory >= LARGE:
        console(stderr=True).print(f"{work.observations:,} observations of {work}.", style="dim")


def table_name(path: Path) -> str:
    """The name of a table that is read from this path."""
    return "standard input" if path == STANDARD_INPUT else path.name


PICTURE_ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Output:
    """The output of an answer: text or JSON, and a picture if a file for it is named."""

    as_json: bool
    plot: Path | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        if self.plot is not None and self.plot.suffix.lower() not in PICTURE_ENDINGS:
            raise ConfigurationError(
                f"Expected a file that ends in {', '.join(PICTURE_ENDINGS)}, got '{self.plot.name}'."
            )

    def give(self, answer: Any, about: Any, print_answer: Callable[[], None], **more: Any) -> None:
        """Draw and print the answer to a question; `about` is the graph's answer, `more` goes into the JSON."""
        if self.plot is not None:
            from matplotlib.figure import Figure

            with written_together(self.plot.parent, [self.plot.name], self.overwrite) as folder:
                figure = Figure(layout="constrained")
                answer.plot(figure.add_subplot())
                figure.savefig(folder / self.plot.name, dpi=150)
        warnings = about.worded_warnings(COMMAND_LINE)
        if self.as_json:
            print_json({**answer.to_dict(), **more, "warnings": list(warnings)})
        else:
            print_answer()
            print_warnings(warnings)


OUTPUT: Any = OptionList(
    (
        option("as_json", bool, False, JSON_HELP, "--json"),
        option(
            "plot", Path | None, None, "Write a picture to this file, .png, .svg or .pdf.", parser=file, metavar="FILE"
        ),
        option("overwrite", bool, False, "Replace a picture of the same name.", "--overwrite"),
    ),
    build=Output,
)
"""Options for the output of an answer, as Output."""
JSON_OUTPUT: Any = OUTPUT.only("as_json")  # the same without a picture
