"""Small files that want to be large, and files that never end: each is read or refused in seconds and a gigabyte."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

Write = Callable[[Path], Path]
"""Makes a file in a folder."""

_SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def _cell(name: str, value: object) -> str:
    if isinstance(value, str):
        return f'<c r="{name}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{name}"><v>{value}</v></c>'


def sheet_rows(count: int = 40) -> list[str]:
    """A header and rows of a sound table, in columns A to C."""
    random = np.random.default_rng(0)
    rows = [f'<row r="1">{_cell("A1", "a")}{_cell("B1", "b")}{_cell("C1", "c")}</row>']
    for line in range(2, count + 2):
        cells = "".join(_cell(f"{column}{line}", float(random.normal())) for column in "ABC")
        rows.append(f'<row r="{line}">{cells}</row>')
    return rows


def _digits(count: int, columns: int) -> Iterator[str]:
    """A header and rows of digits, whose cells do not say where they are."""
    yield "<row>" + "".join(f'<c t="inlineStr"><is><t>v{column}</t></is></c>' for column in range(columns)) + "</row>"
    for row in np.random.default_rng(0).integers(10, size=(count, columns)).tolist():
        yield "<row>" + "".join(f"<c><v>{digit}</v></c>" for digit in row) + "</row>"


def workbook(
    rows: Iterable[str], before: str = "", strings: str = "", styles: str = "", after: str = "", sheets: int = 1
) -> Write:
    """An Excel file with the rows of its only sheet as they are, its shared strings and styles, and what comes after
    the rows; under several names, if `sheets` is more than 1."""

    def write(folder: Path) -> Path:
        path = folder / "table.xlsx"
        head = '<?xml version="1.0" encoding="UTF-8"?>'
        parts = {
            "[Content_Types].xml": f'{head}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            'spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/'
            'vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
            '<Override PartName="/xl/styles.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>'
            '<Override PartName="/xl/sharedStrings.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
            "_rels/.rels": f'{head}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r1" Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'{head}<workbook xmlns="{_SPREADSHEET}" xmlns:r="{_RELATIONS}"><sheets>'
            + "".join(f'<sheet name="s{number}" sheetId="{number}" r:id="r1"/>' for number in range(1, sheets + 1))
            + "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'{head}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
            f'relationships"><Relationship Id="r1" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>'
            f'<Relationship Id="r2" Type="{_RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>'
            f'<Relationship Id="r3" Type="{_RELATIONS}/styles" Target="styles.xml"/></Relationships>',
            "xl/styles.xml": f'{head}<styleSheet xmlns="{_SPREADSHEET}">{styles}</styleSheet>',
            "xl/sharedStrings.xml": f'{head}{before}<sst xmlns="{_SPREADSHEET}">{strings}</sst>',
        }
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in parts.items():
                archive.writestr(name, text)
            with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
                sheet.write(f'{head}{before}<worksheet xmlns="{_SPREADSHEET}"><sheetData>'.encode())
                for row in rows:
                    sheet.write(row.encode())
                sheet.write(f"</sheetData>{after}</worksheet>".encode())
        return path

    return write


_ENTITIES = "<!DOCTYPE x [" + "".join(
    f'<!ENTITY e{level} "{f"&e{level - 1};" * 10 if level else "x" * 10}">' for level in range(12)
)


def _packed_text(piece: bytes, times: int) -> Write:
    def write(folder: Path) -> Path:
        with gzip.open(folder / "table.csv.gz", "wb", compresslevel=9) as file:
            for _ in range(times):
                file.write(piece)
        return folder / "table.csv.gz"

    return write


def _text(name: str, content: Callable[[], str]) -> Write:
    def write(folder: Path) -> Path:
        (folder / name).write_text(content(), encoding="utf-8")
        return folder / name

    return write


def _parquet(folder: Path) -> Path:
    """Forty million rows of two values in half a megabyte."""
    import pyarrow
    from pyarrow import parquet

    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.tile([0, 1], 5_000_000).astype(np.int8)), [1.5, 2.5])
    batch = pyarrow.table({"a": column, "b": column, "c": column})
    with parquet.ParquetWriter(folder / "table.parquet", batch.schema) as writer:
        for _ in range(4):
            writer.write_table(batch)
    return folder / "table.parquet"


def _feather(folder: Path) -> Path:
    zeros = np.zeros(5_000_000)
    zeros[::2] = 1
    pd.DataFrame({"a": zeros, "b": zeros, "c": zeros}).to_feather(folder / "table.feather", compression="zstd")
    return folder / "table.feather"


def _pipe(name: str) -> Write:
    def write(folder: Path) -> Path:
        os.mkfifo(folder / name)
        return folder / name

    return write


def _device(name: str, device: str) -> Write:
    def write(folder: Path) -> Path:
        (folder / name).symlink_to(device)
        return folder / name

    return write


def _torch_archive(folder: Path) -> Path:
    """Weights that a torch file holds as a compressed heap of zeros."""
    with zipfile.ZipFile(folder / "model.pt", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("model/data.pkl", pickle.dumps({}, protocol=2))
        archive.writestr("model/version", "3")
        with archive.open("model/data/0", "w", force_zip64=True) as data:
            for _ in range(128):
                data.write(bytes(2**20))
    return folder / "model.pt"


def _chain(count: int) -> str:
    return "source,target\n" + "".join(f"v{index},v{index + 1}\n" for index in range(count))


TABLES: Mapping[str, Write] = {
    "workbook_with_a_far_cell": workbook([*sheet_rows(), f'<row r="1048576">{_cell("XFD1048576", 1)}</row>']),
    "workbook_with_an_absurd_row": workbook(
        [*sheet_rows(), f'<row r="999999999999">{_cell("A999999999999", 1)}</row>']
    ),
    "workbook_with_an_absurd_empty_row": workbook([*sheet_rows(), '<row r="999999999999"/>']),
    "workbook_of_the_last_column": workbook(
        f'<row r="{line}">{_cell(f"A{line}", line % 7)}{_cell(f"XFD{line}", line % 5)}</row>'
        for line in range(1, 20_001)
    ),
    "workbook_of_scattered_cells": workbook(
        f'<row r="{50 * line}">{_cell(f"{chr(65 + line % 26)}{chr(65 + line // 26 % 26)}{50 * line}", 1)}</row>'
        for line in range(1, 20_001)
    ),
    "workbook_of_empty_rows": workbook(["<row/>" * 1000] * 12_000),
    "workbook_of_one_cell_again": workbook(["<row>" + "<c><v>1</v></c>" * 1000 + "</row>"] * 6_000),
    "workbook_of_shared_strings": workbook(sheet_rows(), strings=f"<si><t>{'x' * 1000}</t></si>" * 80_000),
    "workbook_of_short_strings": workbook(sheet_rows(), strings="<si/>" * 9_000_000),
    "workbook_of_formats": workbook(sheet_rows(), styles=f"<cellXfs>{'<xf/>' * 3_000_000}</cellXfs>"),
    "workbook_of_merged_cells": workbook(
        sheet_rows(), after="<mergeCells>" + '<mergeCell ref="A1:B2"/>' * 2_000_000 + "</mergeCells>"
    ),
    "workbook_of_one_row": workbook([*sheet_rows(), "<row>", *["<c/>" * 1000] * 12_000, "</row>"]),
    "workbook_of_one_cell": workbook([*sheet_rows(), "<row><c>", *["<v/>" * 1000] * 12_000, "</c></row>"]),
    "workbook_of_one_text": workbook([*sheet_rows(), f"<row>{_cell('A99', 'x' * 40_000_000)}</row>"]),
    "workbook_of_nested_elements": workbook(sheet_rows(), after="<a>" * 5_000_000),
    "workbook_of_one_sheet_again": workbook([*sheet_rows(), "<row><c><v>1</v></c></row>" * 500_000], sheets=3000),
    "workbook_of_attributes": workbook(
        sheet_rows(), after="<a " + " ".join(f'a{number}=""' for number in range(3_000_000)) + "/>"
    ),
    "workbook_of_digits": workbook(_digits(29_000, 100)),
    "workbook_of_entities": workbook(["<row><c><v>&e11;</v></c></row>"], before=f"{_ENTITIES}]>"),
    "row_of_a_million_fields": _text("table.csv", lambda: "a,b,c\n" + ",".join("1" * 10**6) + "\n"),
    "names_of_a_million_columns": _text("table.csv", lambda: ",".join(map(str, range(10**6))) + "\n"),
    "million_columns_of_blanks": _text("table.txt", lambda: "a b\n" + "1 " * 10**6 + "\n"),
    "name_of_nine_megabytes": _text("table.csv", lambda: '"' + "id_" * 3_000_000 + '\nx",b\n' + "1,2\n3,4\n" * 30),
    "quote_of_nine_megabytes": _text("table.csv", lambda: 'a,b\n"' + "1,2\n" * 2_200_000),
    "gzip_of_zeros": _packed_text(bytes(2**20), 300),
    "gzip_of_one_row": _packed_text(b"1.5,2,x\n" * 2**17, 300),
    "gzip_of_commas": _packed_text(b"," * 2**20, 300),
    "gzip_of_line_breaks": _packed_text(b"\n" * 2**20, 300),
    "parquet_of_two_values": _parquet,
    "feather_of_zeros": _feather,
    "table_that_is_a_pipe": _pipe("table.csv"),
    "workbook_that_is_a_pipe": _pipe("table.xlsx"),
    "table_that_is_endless": _device("table.csv", "/dev/zero"),
}
"""Files that somebody gives as a table."""

MODELS: Mapping[str, Write] = {
    "torch_file_of_zeros": _torch_archive,
    "model_that_is_a_pipe": _pipe("model.safetensors"),
    "model_that_is_endless": _device("model.safetensors", "/dev/zero"),
    "folder_with_a_pipe": lambda folder: _pipe("model.safetensors")(folder).parent,
}

KNOWLEDGE: Mapping[str, Write] = {
    "knowledge_that_is_a_pipe": _pipe("known.json"),
    "toml_that_is_a_pipe": _pipe("known.toml"),
    "knowledge_that_is_endless": _device("known.json", "/dev/zero"),
    "tiers_that_are_a_pipe": _pipe("tiers.txt"),
    "tiers_that_are_endless": _device("tiers.txt", "/dev/zero"),
    "deep_json": _text("known.json", lambda: '{"required": ' + "[" * 4_000_000),
    "deep_objects": _text("known.json", lambda: '{"a":' * 1_500_000),
    "deep_toml": _text("known.toml", lambda: "required = " + "[" * 4_000_000),
    "toml_of_nested_tables": _text(
        "known.toml", lambda: "".join(f"[{'a.' * 90}b{index}]\n" for index in range(45_000))
    ),
    "dashes_for_an_arrow": _text("known.json", lambda: json.dumps({"required": ["-" * 4_000_000]})),
    "blanks_for_an_arrow": _text("known.json", lambda: json.dumps({"required": ["a" + " " * 4_000_000 + "b"]})),
    "blanks_in_a_belief": _text("known.json", lambda: json.dumps({"beliefs": {"a" + " " * 4_000_000 + "b": 0.5}})),
    "toml_of_dots": _text("known.toml", lambda: "a" + ".a" * 4_000_000 + " = 1\n"),
    "many_names": _text("known.json", lambda: json.dumps({"roots": [f"v{index}" for index in range(700_000)]})),
    "many_edges": _text("known.json", lambda: json.dumps({"forbidden": [["a", "b"]] * 600_000})),
}

GRAPHS: Mapping[str, Write] = {
    "chain_of_5000_edges": _text("graph.csv", lambda: _chain(5000)),
    "chain_of_4999_edges": _text("graph.csv", lambda: _chain(4999)),
    "long_chain_in_dot": _text(
        "graph.dot", lambda: "digraph {" + " -> ".join(f"v{index}" for index in range(300_000)) + "}"
    ),
    "braces_around_names": _text(
        "graph.dot", lambda: "digraph " + "{" * 300_000 + " ".join(map(str, range(300_000))) + "}" * 300_000
    ),
    "groups_that_share_causes": _text(
        "graph.dot", lambda: "digraph {" + " <-> ".join(["{" + " ".join(map(str, range(900))) + "}"] * 1000) + "}"
    ),
    "attribute_of_many_words": _text("graph.dot", lambda: "digraph { a -> b [" + "x " * 900_000 + "] }"),
    "rows_after_a_quote": _text("graph.csv", lambda: 'a,b\n"' + "1,2\n" * 2_200_000),
    "long_names_in_json": _text(
        "graph.json",
        lambda: json.dumps({"variables": ["a"], "edges": [{"source": "x" * 4_000_000, "target": "y" * 4_000_000}]}),
    ),
    "chain_in_dot": _text("graph.dot", lambda: "digraph {" + " -> ".join(f"v{index}" for index in range(4000)) + "}"),
    "30000_variables": _text(
        "graph.json", lambda: json.dumps({"variables": [f"v{index}" for index in range(30_000)], "edges": []})
    ),
    "graph_that_is_a_pipe": _pipe("graph.json"),
    "graph_that_is_endless": _device("graph.json", "/dev/zero"),
    "deep_graph": _text("graph.json", lambda: '{"variables": ' + "[" * 4_000_000),
    "deep_braces": _text("graph.dot", lambda: "digraph " + "{" * 1_000_000 + "}" * 1_000_000),
    "deep_gml": _text("graph.gml", lambda: "graph [ " * 500_000),
    "deep_graphml": _text("graph.graphml", lambda: "<graphml>" + "<a>" * 2_000_000),
    "entities_in_graphml": _text("graph.graphml", lambda: f"{_ENTITIES}]><graphml>&e11;</graphml>"),
    "groups_of_names": _text(
        "graph.dot",
        lambda: (
            "digraph {{"
            + " ".join(map(str, range(3000)))
            + "} -> {"
            + " ".join(f"b{index}" for index in range(3000))
            + "}}"
        ),
    ),
    "stars_of_quotes": _text("graph.dot", lambda: '"' * 4_000_000),
    "open_comments": _text("graph.dot", lambda: "/*" * 2_000_000),
    "blanks_in_cells": _text("graph.csv", lambda: "source,target\n" + " " * 4_000_000 + '"'),
}
