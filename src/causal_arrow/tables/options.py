"""ReadOptions: how to read a table. Python, the command line, manifests and the page take every option from here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from causal_arrow.errors import ConfigurationError, TableError, check_choice
from causal_arrow.inputs import as_list, checked
from causal_arrow.text import closest, shown

Kind = Literal["number", "binary", "ordered", "category"]
"""The kinds of columns: numbers; yes or no; ordered levels; unordered levels."""
Missing = Literal["auto", "model", "error", "drop", "impute"]
KINDS: tuple[str, ...] = get_args(Kind)
MISSING_CHOICES: tuple[str, ...] = get_args(Missing)
Several = Sequence[Any]
"""One value or several: `one_or_several` makes a list of them."""
Form = Literal["text", "flag", "names", "column", "missing", "kinds", "orders"]
"""The form of an option's value: text, true or false, several values, the name of a column (in Python also a label for
each row), what to do about missing values, the kinds of some columns, the levels of some columns."""

MAX_EXACT = 2**53
"""Beyond this, not every integer is exact as a floating point number."""
DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True)
class Option:
    """One of the options: what every surface needs to offer it."""

    name: str
    default: Any
    form: Form
    help: str
    """A line for the command line and the page; the docstring of ReadOptions says more."""
    flag: str
    """Its name on the command line."""


def _option(form: Form, help: str, default: Any = None, **flag: str) -> Any:
    """A field of ReadOptions with what `Option` says about it."""
    return field(default=default, metadata={"form": form, "help": help, **flag})


@checked
@dataclass(frozen=True)
class ReadOptions:
    """Reading options. `read_table`, `discover` and `discover_many` take these options by name, or as one object.

    Parameters
    ----------
    columns
        The columns to use, in this order; all of them by default.
    drop
        Columns to leave out.
    missing
        What to do about missing values. "model" leaves them to the network, which sees what is missing. "error" counts
        them and refuses the table. "drop" leaves out incomplete rows: unbiased if values are missing completely at
        random. "impute" fills the gaps with linear predictions from the other variables, which makes relations look
        stronger than they are. "auto" is "model" if the network can read missing values, else "error".
    na
        Values that count as missing, such as "?" or -999, in addition to empty cells and the usual NA, NaN, null, None.
    delimiter
        Field separator of a text file; detected by default.
    decimal
        Decimal sign of a text file, "." or ","; detected by default.
    sheet
        Name or number of an Excel sheet; the first by default.
    header
        False if the file has no column names.
    kinds
        What columns hold, where that should not be detected: {"zip": "category"}; one of "number", "binary", "ordered",
        "category".
    ordered
        Columns whose levels have an order, the smallest first: {"size": ["small", "medium", "large"]}.
    interventions
        What experiments have set: for each row the name of a variable, several separated by `;`, nothing for none; or a
        table of true and false (a data frame, an array or lists) with a column for each variable; or the name of a
        column of the table with such labels, which is then not a variable.
    environments
        Where or when each row was observed: a label for each, or the name of a column of the table. It is read as a
        category that nothing in the table causes.

    Examples
    --------
    >>> from causal_arrow import ReadOptions, load_example, read_table
    >>> options = ReadOptions(drop=["age"], missing="drop")
    >>> read_table(load_example("hospital"), options).variables
    6
    """

    columns: Several | None = _option("names", "Use only these columns, in this order.")
    drop: Several | None = _option("names", "Leave out these columns.")
    missing: str = _option(
        "missing",
        "What to do about missing values: leave them to the model, which sees what is missing (model), stop "
        "(error), leave out incomplete rows (drop), or fill them in (impute); auto is model if the model can read "
        "them, else error.",
        default="auto",
    )
    na: Several | None = _option(
        "names",
        "Values that count as missing, such as '?' or -999, in addition to empty cells and the usual NA, NaN, null.",
    )
    delimiter: str | None = _option("text", "Field separator of a text file, a character or tab; detected by default.")
    decimal: str | None = _option("text", "Decimal sign of a text file, . or , (detected by default).")
    sheet: str | int | None = _option("text", "Sheet of an Excel workbook; the first one by default.")
    header: bool = _option("flag", "Whether the first line holds the names.", default=True)
    kinds: Mapping[Any, str] | None = _option(
        "kinds",
        f"What a column holds, where that should not be detected: {', '.join(KINDS[:-1])} or {KINDS[-1]}.",
        flag="kind",
    )
    ordered: Mapping[Any, Sequence[Any]] | None = _option(
        "orders", "The levels of a column in their order, the smallest first."
    )
    interventions: Any = _option(
        "column",
        "The column that names, for each row, the variable that an experiment has set, or several separated by "
        "semicolons; empty for none.",
    )
    environments: Any = _option(
        "column",
        "The column that says where or when a row was observed (site, batch, period): a category that nothing in "
        "the table causes.",
    )

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, MISSING_CHOICES)
        if self.decimal not in (None, ".", ","):
            raise TableError(f"Expected . or , as the decimal sign, got {shown(self.decimal)}.")
        check_declared(self.kinds, self.ordered)
        markers = [str(marker).strip() for marker in one_or_several(self.na, "na")]
        plain = {
            "columns": None if self.columns is None else tuple(one_or_several(self.columns, "columns")),
            "drop": tuple(one_or_several(self.drop, "drop")) or None,
            "na": tuple(markers) or None,
            "delimiter": _one_sign(self.delimiter),
            "kinds": self.kinds or None,
            "ordered": self.ordered or None,
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def changed(self, **changes: Any) -> ReadOptions:
        """Change some of the options, by name, in a new object; ConfigurationError for an unknown name.

        Examples
        --------
        >>> ReadOptions(drop=["id"]).changed(missing="drop").to_dict()
        {'drop': ['id'], 'missing': 'drop'}
        """
        check_names(changes, READ_OPTIONS)
        return replace(self, **changes) if changes else self

    def to_dict(self) -> dict[str, Any]:
        """The options that differ from the defaults, as JSON can hold them unless labels of rows are an array."""
        content = {}
        for option in READ_OPTIONS.values():
            value = getattr(self, option.name)
            if type(value) is not type(option.default) or value != option.default:
                content[option.name] = _PLAIN[option.form](value) if option.form in _PLAIN else value
        return content


READ_OPTIONS: Mapping[str, Option] = {
    each.name: Option(each.name, each.default, **{"flag": each.name, **each.metadata}) for each in fields(ReadOptions)
}
"""Every option by its name."""

_PLAIN: Mapping[Form, Callable[[Any], Any]] = {
    "names": list,
    "kinds": lambda kinds: {str(name): kind for name, kind in kinds.items()},
    "orders": lambda orders: {str(name): [str(level) for level in levels] for name, levels in orders.items()},
}


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """ConfigurationError for an unknown name."""
    expected = list(known)
    for name in given:
        if name not in expected:
            near = closest(str(name), expected)
            hint = f"did you mean {near!r}?" if near else f"expected some of {', '.join(expected)}."
            raise ConfigurationError(f"Unknown option {shown(name)}: {hint}")


def one_or_several(values: Any, option: str) -> list[Any]:
    """The values of an option that takes one or several."""
    if values is None:
        return []
    if isinstance(values, str | bytes | int | float):
        return [values]
    several = as_list(values)
    if several is None or not all(isinstance(value, Hashable) for value in several):
        raise TableError(f"Expected {option} to be a list of names, got {shown(values)}.")
    return several


def check_declared(kinds: Any, ordered: Any) -> None:
    """TableError unless kinds are a mapping to KINDS, and orders a mapping to two or more different levels."""
    for name, kind in (kinds or {}).items():
        check_choice(f"the kind of {shown(name)}", kind, KINDS)
    for name, levels in (ordered or {}).items():
        if isinstance(levels, Set):
            raise TableError(
                f"Expected the order of {shown(name)} as a list, the smallest level first, got {shown(levels)}: a set "
                "has no order."
            )
        several = [] if isinstance(levels, str | bytes | Iterator) or not isinstance(levels, Iterable) else list(levels)
        if len(set(map(cell_text, several))) < max(2, len(several)):
            raise TableError(
                f"Expected the order of {shown(name)} as two or more different levels, the smallest first, got "
                f"{shown(levels)}."
            )


def cell_text(cell: Any) -> str:
    """A cell, a level or a marker as text, without blanks around it."""
    # A whole number may have become a float by a gap in its column.
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= MAX_EXACT:
        return str(int(cell))
    try:
        return (cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)).strip()
    except Exception:  # an object that fails to describe itself
        return shown(cell)


def _one_sign(delimiter: str | None) -> str | None:
    """The delimiter as one character, where it may be given by name."""
    if delimiter is None:
        return None
    sign = DELIMITER_NAMES.get(delimiter.lower(), delimiter)
    if len(sign) != 1 or sign in '\r\n"':
        raise TableError(f"Expected a delimiter of one character, or tab, got {delimiter!r}.")
    return sign
