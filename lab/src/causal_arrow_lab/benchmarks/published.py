"""The paper's tables as printed, shown next to our results and never mixed with them."""

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
    """One block of a table of the paper: the mean and standard error of each measure, by method."""

    suite: str
    row: str
    datasets: int
    methods: Mapping[str, Mapping[str, tuple[float, float]]]
    bold: Mapping[str, tuple[str, ...]]  # measure → methods in bold


@dataclass(frozen=True)
class PublishedResults:
    """All tables with their source."""

    title: str
    authors: tuple[str, ...]
    hardware: str
    tables: tuple[PublishedTable, ...]
    pretrained_models: Mapping[str, Mapping[str, bool | str]]  # the paper's table 1 and its appendix A, by name

    def table(self, suite: str, row: str) -> PublishedTable | None:
        """The block of a row of a suite, if the paper has one."""
        return next((table for table in self.tables if (table.suite, table.row) == (suite, row)), None)


@cache
def published_results() -> PublishedResults:
    """Read `data/published.toml`."""
    text = (resources.files("causal_arrow_lab.benchmarks") / "data" / "published.toml").read_text(encoding="utf-8")
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
        pretrained_models=content["pretrained_models"],
    )
