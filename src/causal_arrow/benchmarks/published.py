"""The paper's tables, as printed. They are shown beside ours and never mixed with them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from causal_arrow.benchmarks.document import Cell, Grid

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
class PretrainedModel:
    """What the paper says of a pretrained model: its table 1, and the table of appendix A."""

    name: str
    zero_shot: bool
    dag_guarantee: bool
    graph_family: bool
    functional_form: bool
    noise_model: bool
    dataset_shape: bool
    diversity: str


@dataclass(frozen=True)
class PublishedResults:
    """All tables, and where they come from."""

    title: str
    authors: tuple[str, ...]
    hardware: str
    tables: tuple[PublishedTable, ...]
    pretrained_models: tuple[PretrainedModel, ...]

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
        pretrained_models=tuple(
            PretrainedModel(name, **properties) for name, properties in content["pretrained_models"].items()
        ),
    )


def property_tables() -> dict[str, Grid]:
    """Table 1 of the paper and the table of its appendix A, by the questions they answer."""
    models = published_results().pretrained_models
    columns = {
        "What they do (table 1)": {
            "Zero-shot inference": "zero_shot",
            "DAG guarantee": "dag_guarantee",
            "Pretraining diversity": "diversity",
        },
        "What varies in their pretraining data (appendix A)": {
            "Graph family": "graph_family",
            "Functional form": "functional_form",
            "Noise model": "noise_model",
            "Dataset shape": "dataset_shape",
            "Rating": "diversity",
        },
    }
    marks = {True: "✓", False: "✗"}
    return {
        title: Grid(
            ("Model", *names),
            tuple(
                (
                    Cell(model.name),
                    *(Cell(str(marks.get(getattr(model, name), getattr(model, name)))) for name in names.values()),
                )
                for model in models
            ),
        )
        for title, names in columns.items()
    }
