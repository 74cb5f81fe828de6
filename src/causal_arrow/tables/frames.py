"""Data frames of every library, through narwhals: read as pandas frames, and made from them for answers.

narwhals is imported when a frame comes in that is not from pandas.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Result = TypeVar("Result", bound="WithFrames")

FRAMES = ("auto", "pandas", "polars", "pyarrow", "duckdb", "modin", "cudf")
"""Libraries of the frames in an answer; "auto" is the one that the table came in."""
PLAIN = sys.stdlib_module_names | {"causal_arrow", "numpy", "pandas", "scipy", "torch"}
"""Packages whose objects are not frames of another library."""


class WithFrames:
    """Gives the results of a discovery data frames of the library that the table came in."""

    _frames = "pandas"

    def in_frames_of(self: Result, library: str) -> Result:
        """This result, after its frames have been chosen."""
        object.__setattr__(self, "_frames", library)  # results are frozen
        return self

    def _framed(self, frame: pd.DataFrame) -> Any:
        return in_library(frame, self._frames)


def library_of(source: Any) -> str:
    """The library of a data frame, one of FRAMES; "pandas" for any other source."""
    frame = _narwhals_frame(source)
    library = "pandas" if frame is None else str(frame.implementation)
    return library if library in FRAMES else "pandas"


def to_pandas(source: Any) -> pd.DataFrame | None:
    """The rows of a data frame of any library but pandas; None if the source is not one."""
    import pandas as pd

    frame = _narwhals_frame(source)
    if frame is None:
        return None
    import narwhals as nw

    is_polars = str(frame.implementation) == "polars"
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect(backend="polars" if is_polars else "pandas")
    if not is_polars:
        return frame.to_pandas()
    # Lists rather than arrow arrays: polars needs no other package for them.
    columns = [frame.get_column(name) for name in frame.columns]
    return pd.DataFrame(dict(enumerate(map(_cells, columns)))).set_axis(list(frame.columns), axis=1)


def in_library(frame: pd.DataFrame, library: str, rows: str | None = None) -> Any:
    """The frame in a library, which has no index: the labels of rows become the first column, called `rows`.

    Where the frame has a column of that name already, an underscore is appended.
    """
    if library in ("auto", "pandas"):
        return frame
    if rows is not None:
        while rows in frame.columns:
            rows += "_"
        frame = frame.reset_index(names=rows)
    import pandas as pd

    def plain(cell: Any) -> Any:
        return list(cell) if isinstance(cell, tuple) else None if cell is pd.NA else cell

    columns = {str(name): [plain(cell) for cell in frame[name].tolist()] for name in frame.columns}
    if library == "duckdb":
        import duckdb

        return duckdb.from_df(pd.DataFrame(columns))
    import narwhals as nw

    backend: Any = library
    return nw.from_dict(columns, backend=backend).to_native()


def _narwhals_frame(source: Any) -> Any:
    if type(source).__module__.split(".")[0] in PLAIN:
        return None
    import narwhals as nw

    frame = nw.from_native(source, pass_through=True)
    return None if frame is source else frame


def _cells(column: Any) -> Any:
    """The cells of a polars column; an Enum has the order of its levels, as everywhere in narwhals."""
    import narwhals as nw
    import pandas as pd

    if isinstance(column.dtype, nw.Enum):
        return pd.Categorical(column.to_list(), categories=list(column.dtype.categories), ordered=True)
    plain = column.dtype.is_numeric() and not column.dtype.is_decimal()
    return column.to_numpy() if plain else column.to_list()
