"""How much a browser may ask for: sizes of tables, sessions, work that waits. Uploads are measured before reading."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from dataclasses import dataclass

from causal_arrow.errors import TableError
from causal_arrow.tables import FileInMemory
from causal_arrow.tables.reading import MAX_VARIABLES
from causal_arrow.text import counted

MEGABYTE = 2**20
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".gz")
ENDINGS = (*TEXT_ENDINGS, ".xlsx", ".parquet")
"""Of files that the page takes: those whose size in memory can be told before they are read."""
UNPACKED = 4
"""A compressed file may hold this many times the bytes of the largest file."""
FIRST_BYTES = MEGABYTE


@dataclass(frozen=True)
class Limits:
    """What one server takes on."""

    surface: str = "this page"
    """What takes on no more, in messages."""
    most_bytes: int = 25 * MEGABYTE
    most_observations: int = 100_000
    most_variables: int = 200
    most_sessions: int = 64
    most_waiting: int = 64
    """Tables that wait for the network; it reads one at a time."""
    session_seconds: float = 3600.0
    """How long a session is kept after its last use."""
    patience_seconds: float = 30.0
    """A table whose page has not asked after it for so long is not worth starting on."""
    most_memory: int = 768 * MEGABYTE
    """What reading a file may take."""
    most_read_seconds: float = 6.0
    """How long reading a small file may take; a large one has a second more per megabyte."""
    most_readers: int = 4
    """Files that are read at the same time."""

    def seconds_to_read(self, file: FileInMemory) -> float:
        """How long reading the file may take."""
        return self.most_read_seconds + len(file.content) / MEGABYTE

    def too_much_memory(self) -> TableError:
        """The refusal of a file that needs too much memory to read."""
        return TableError(
            f"Reading this file takes more than the {self.most_memory / MEGABYTE:g} MB of memory that {self.surface} "
            "gives to it: save the table as .csv, without cells far away from it."
        )

    def too_much_time(self) -> TableError:
        """The refusal of a file that takes too long to read."""
        return TableError(
            f"Reading this file takes longer than {self.surface} waits: save the table as .csv, without cells far away "
            "from it."
        )

    def too_many_bytes(self) -> TableError:
        """The refusal of a file that is too large."""
        return TableError(
            f"The file is larger than the {self.most_bytes / MEGABYTE:g} MB that {self.surface} takes: leave out "
            "observations or columns, or use the command line, which has no such limit."
        )

    def check_file(self, file: FileInMemory) -> None:
        """TableError for a file that is too large, also once it is unpacked, or of a format the page does not take."""
        if len(file.content) > self.most_bytes:
            raise self.too_many_bytes()
        if not file.content:
            raise TableError("The file is empty.")
        ending = file.suffix.lower()
        if ending not in ENDINGS:
            raise TableError(f"Cannot read {file.name!r}: expected a name that ends in {', '.join(ENDINGS)}.")
        if ending in TEXT_ENDINGS:
            self._check_text(file)
        elif ending == ".xlsx":
            self._check_workbook(file)
        else:
            self._check_parquet(file)

    def check_width(self, columns: int) -> None:
        """TableError for a table with so many columns that nobody could choose among them."""
        if columns > MAX_VARIABLES:
            raise TableError(
                f"The table has {counted(columns, 'column')}, more than the {MAX_VARIABLES:,} that {self.surface} "
                "lists: leave some out, or use the command line."
            )

    def check_used(self, columns: int) -> None:
        """TableError if more columns are to be read than the network may read here."""
        if columns > self.most_variables:
            raise TableError(
                f"{counted(columns, 'column')} are chosen, more than the {self.most_variables:,} that {self.surface} "
                "reads: leave some out, or use the command line."
            )

    def _check_text(self, file: FileInMemory) -> None:
        start = file.content[:FIRST_BYTES]
        if file.content.startswith(b"\x1f\x8b"):
            start = b""
            unpacked = 0
            try:
                with gzip.open(file.open()) as packed:
                    while unpacked <= UNPACKED * self.most_bytes and (piece := packed.read(FIRST_BYTES)):
                        start = start or piece
                        unpacked += len(piece)
            except (OSError, EOFError, ValueError, zlib.error):
                return  # damaged: the reader says so in its own words
            if unpacked > UNPACKED * self.most_bytes:
                raise self.too_many_bytes()
        longest = max((line.count(sign) for line in start.split(b"\n")[:100] for sign in b",;\t| "), default=0)
        if longest > 4 * MAX_VARIABLES:  # pandas would need gigabytes before anybody could count
            raise TableError(
                f"A line of the file has more than {longest:,} fields: expected one column per variable, at most "
                f"{self.most_variables:,} of them."
            )

    def _check_workbook(self, file: FileInMemory) -> None:
        try:
            with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
                unpacked = sum(entry.file_size for entry in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError):
            return
        if unpacked > UNPACKED * self.most_bytes:
            raise self.too_many_bytes()

    def _check_parquet(self, file: FileInMemory) -> None:
        try:
            from pyarrow import parquet

            facts = parquet.ParquetFile(file.open()).metadata
        except Exception:  # no pyarrow, or no Parquet: the reader says so in its own words
            return
        self.check_width(facts.num_columns)
        if sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups)) > (
            UNPACKED * self.most_bytes
        ):
            raise self.too_many_bytes()
