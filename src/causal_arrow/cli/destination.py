"""Destinations of `discover`: a folder for all files of an answer, or the one file that a name's ending asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from causal_arrow.errors import ConfigurationError
from causal_arrow.output import check_output, written_together
from causal_arrow.text import one_slip_apart

OTHER_ENDING = re.compile(
    r"\.(jpe?g|gif|bmp|tiff?|webp|e?ps|html?|md|tex|docx?|pptx?|odt|rtf|ipynb|py|tsv|xlsx?|ods|parquet|feather|xml|"
    r"ya?ml|toml|net|gz|zip)"
)
"""Endings of names that are not meant as folders."""
MIN_ENDING = 3
"""Letters of an ending that may be misspelled: with fewer, as in run.v2, a slip cannot be distinguished from a name."""


@dataclass(frozen=True)
class Destination:
    """The place of the files of an answer, if any; ConfigurationError where they cannot go or would replace others."""

    output: Path | None
    table: Path
    overwrite: bool
    by_ending: Mapping[str, str]
    """The content of a file, by the ending of its name."""
    in_folder: Sequence[str]
    """The names of all files, for a folder."""

    def __post_init__(self) -> None:
        if self.output is not None:
            if not self.is_one_file:
                self._refuse_other_endings(self.output)
            check_output(self.folder, self.names, self.overwrite)

    @cached_property
    def is_one_file(self) -> bool:
        """Whether the output names a file, not a folder."""
        if self.output is None:
            return False
        try:
            if self.output.suffix.lower() not in self.by_ending or self.output.is_dir():
                return False
            there = self.output.exists()
            itself = there and self.table.exists() and self.output.samefile(self.table)
        except OSError:  # reported where folders are checked
            return False
        if itself:
            raise ConfigurationError(f"'{self.output}' is the table itself: name another file for the output.")
        if there and not self.overwrite:
            raise ConfigurationError(
                f"'{self.output}' is there already: name another file, or replace it with --overwrite."
            )
        return True

    @property
    def folder(self) -> Path:
        """The folder to write to."""
        assert self.output is not None
        return self.output.parent if self.is_one_file else self.output

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        if self.output is None:
            return []
        return [self.output.name] if self.is_one_file else list(self.in_folder)

    def write(self, write: Callable[[str, Path], None]) -> None:
        """Write the files with a function of the content's name, such as graph.svg, and the path."""
        if self.output is None:
            return
        with written_together(self.folder, self.names, self.overwrite) as unfinished:
            for name in self.names:
                content = self.by_ending[self.output.suffix.lower()] if self.is_one_file else name
                write(content, unfinished / name)

    def _refuse_other_endings(self, output: Path) -> None:
        """ConfigurationError for a new folder with the name of a file that is not written here, or misspelled."""
        ending = output.suffix.lower()
        letters = ending.removeprefix(".")
        near = [known for known in self.by_ending if len(letters) >= MIN_ENDING and one_slip_apart(letters, known[1:])]
        try:
            if not (near or OTHER_ENDING.fullmatch(ending)) or output.is_dir():
                return
        except OSError:  # reported where folders are checked
            return
        hint = f" Did you mean '{output.with_suffix(near[0]).name}'?" if near else ""
        raise ConfigurationError(
            f"Expected a folder, or a file that ends in {', '.join(self.by_ending)}, got '{output.name}'.{hint}"
        )
