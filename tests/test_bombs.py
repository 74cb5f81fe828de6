"""No small file takes more than ten seconds of work or a gigabyte of memory, whatever it is given as."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import bombs

MAX_SECONDS, MAX_BYTES, MAX_FILE = 10.0, 1e9, 10e6

READ_ALL = """
import json, resource, sys, time
from causal_arrow import ArrowError, Knowledge, load_model, read_table
from causal_arrow.graphs.files import read_graph
from causal_arrow.graphs.metrics import evaluate
from causal_arrow.cli.options import _tiers
from pathlib import Path

resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
def compare(path):
    graph = read_graph(path)
    evaluate(graph.adjacency, graph.adjacency)
def known(path):
    return Knowledge.from_file(path) if path.suffix != ".txt" else _tiers(str(path))
readers = {"TABLES": read_table, "MODELS": load_model, "KNOWLEDGE": known, "GRAPHS": compare}
for line in sys.stdin:
    family, path = json.loads(line)
    start = time.process_time()
    try:
        readers[family](Path(path))
        said = "read"
    except ArrowError as error:
        said = str(error)
    lines = open("/proc/self/status").read().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    print(json.dumps([time.process_time() - start, peak, said]), flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak of memory")
@pytest.mark.parametrize("family", ["TABLES", "MODELS", "KNOWLEDGE", "GRAPHS"])
def test_small_files_take_neither_long_nor_much_memory(family: str, tmp_path: Path) -> None:
    makers: Mapping[str, bombs.Write] = getattr(bombs, family)
    command = [sys.executable, "-c", READ_ALL]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for name, write in makers.items():
            (folder := tmp_path / name).mkdir()
            path = write(folder)
            assert not path.is_file() or path.stat().st_size < MAX_FILE
            print(json.dumps([family, str(path)]), file=reader.stdin, flush=True)
            seconds, peak, said = json.loads(reader.stdout.readline() or '[0, 0, ""]')
            assert said, f"{name}: the reader died"
            assert seconds < MAX_SECONDS, f"{name}: {seconds:.1f} s"
            assert peak < MAX_BYTES, f"{name}: {peak / 1e9:.1f} GB"
            if path.is_file():
                path.unlink()


def test_a_workbook_with_one_stray_cell_is_read_with_a_note(tmp_path: Path) -> None:
    from causal_arrow import read_table

    table = read_table(bombs.TABLES["workbook_with_a_far_cell"](tmp_path))
    assert table.names == ("a", "b", "c")
    assert "Cell XFD1048576 is far from the table and was ignored." in [each.message for each in table.findings]
