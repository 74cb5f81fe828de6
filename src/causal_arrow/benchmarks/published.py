"""The paper's tables, as printed. They are shown beside ours and never mixed with them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class PublishedTable:
    """One block of a table of the paper: methods by name, for each measure the mean and its standard error."""

    suite: str
    row: str
    datasets: int
    methods: Mapping[str, Mapping[str, tuple[float, float]]]
    bold: Mapping[str, tuple[str, ...]]  # measure → the methods the paper prints in bold


@dataclass(frozen=True)
class PublishedResults:
    """All tables, and where they come from."""

    title: str
    authors: tuple[str, ...]
    hardware: str
    tables: tuple[PublishedTable, ...]

    def table(self, suite: str, row: str) -> PublishedTable | None:
        """The block for a row of a suite, if the paper has one."""
        return next((table for table in self.tables if (table.suite, table.row) == (suite, row)), None)


@cache
def published_results() -> PublishedResults:
    """The content of `data/published.toml`."""
    text = (resources.files("causal_arrow.benchmarks") / "data" / "published.toml").read_text(encoding="utf-8")
    content: dict[str, Any] = tomllib.loads(text)
    source = content["source"]
    return PublishedResults(
        title=source["title"],
        authors=tuple(source["authors"]),
        hardware=source["hardware"],
        tables=tuple(
            PublishedTable(
                suite=table["suite"],
                row=table["row"],
                datasets=table["datasets"],
                methods={
                    method: {measure: (mean, error) for measure, (mean, error) in figures.items()}
                    for method, figures in table["methods"].items()
                },
                bold={measure: tuple(methods) for measure, methods in table["bold"].items()},
            )
            for table in content["table"]
        ),
    )
