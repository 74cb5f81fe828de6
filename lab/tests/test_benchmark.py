"""Laws of the benchmark runner: every dataset is recorded once, however it ends, and nothing done is done again."""

from __future__ import annotations

import json
import math
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from causal_arrow.errors import BenchmarkError, ConfigurationError
from causal_arrow.graphs import metrics
from causal_arrow_lab.benchmarks.calibration import edge_reliability
from causal_arrow_lab.benchmarks.evaluate import describe_machine, evaluate, plan, remaining
from causal_arrow_lab.benchmarks.methods import MethodOptions, prepare
from causal_arrow_lab.benchmarks.methods.isolated import default_folder
from causal_arrow_lab.benchmarks.records import RECORDS_FILE, Record, RecordWriter, read_records
from causal_arrow_lab.benchmarks.suites import SuiteRow, select_rows, suite

POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="process groups and shell scripts are POSIX")
CHEAP = ["varsort", "random", "empty"]
ECOLI70 = suite("networks").row("ECOLI70")


def run(
    folder: Path,
    rows: list[SuiteRow],
    methods: list[str],
    datasets: int = 1,
    *,
    options: MethodOptions | None = None,
    timeout: float | None = 60.0,
    processes: int = 1,
    retry: bool = False,
) -> list[Record]:
    """What `causal-arrow-lab benchmark` does; the records of this run alone."""
    options = options or MethodOptions()
    prepared = [(text, prepare(text, options)) for text in methods]
    done = read_records(folder) if folder.exists() else []
    to_do = remaining(plan(rows, prepared, datasets), done, timeout=timeout, retry=retry)
    fresh: list[Record] = []
    writer = RecordWriter(folder)

    def write(record: Record) -> None:
        writer.write(record)
        fresh.append(record)

    try:
        if to_do:
            evaluate(to_do, write, options=options, timeout=timeout, processes=processes)
    finally:
        writer.close()
    return fresh


def program(*arguments: str) -> subprocess.Popen[str]:
    """`causal-arrow-lab benchmark ...` as a process of its own."""
    command = [sys.executable, "-m", "causal_arrow_lab", "benchmark", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


# Records


def test_each_dataset_and_method_gets_one_record_that_says_everything(tmp_path: Path) -> None:
    rows = [ECOLI70, suite("sachs").row("pooled-raw")]
    run(tmp_path, rows, CHEAP, datasets=2, processes=2)
    records = read_records(tmp_path)
    assert len(records) == len({record.identity for record in records}) == 2 * 2 * len(CHEAP)
    for record in records:
        assert record.status == "ok"
        assert record.error is None
        assert record.seconds is not None
        assert record.versions
        assert record.run["machine"]["cores"] >= 1
        assert record.run["machine"]["cpu"]
        assert {"causal-arrow", "python", "numpy", "torch"} <= set(record.run["versions"])
        assert record.dataset["seed"] == suite(record.suite).row(record.row).seed(record.index)
        assert record.dataset["variables"] == {"ECOLI70": 46, "pooled-raw": 11}[record.row]


def test_records_hold_the_measures_of_the_answer(tmp_path: Path) -> None:
    run(tmp_path, [ECOLI70], ["varsort"])
    (record,) = read_records(tmp_path)
    dataset = ECOLI70.dataset(0)
    answer = prepare("varsort", MethodOptions()).start()(dataset.data, np.random.default_rng(0))
    expected = metrics.evaluate(dataset.adjacency, answer.adjacency, scores=answer.scores)
    without = {"ece": math.nan, "ece_above_floor": math.nan}  # the method states no probabilities
    assert record.measures == pytest.approx({**expected, **without}, nan_ok=True)


def test_every_method_sees_the_same_datasets(tmp_path: Path) -> None:
    run(tmp_path, [suite("herman").row("UUMC")], CHEAP, datasets=3, processes=2)
    checksums: dict[int, set[str]] = {}
    for record in read_records(tmp_path):
        checksums.setdefault(record.index, set()).add(record.dataset["graph_checksum"])
    assert [len(checksums[index]) for index in range(3)] == [1, 1, 1]
    assert len(set.union(*checksums.values())) == 3


def test_a_method_that_draws_lots_draws_the_same_ones_in_every_run(tmp_path: Path) -> None:
    first, second = (run(tmp_path / name, [ECOLI70], ["random"], datasets=2) for name in ("first", "second"))
    for one, other in zip(first, second, strict=True):
        assert one.measures == pytest.approx(other.measures, nan_ok=True)
    assert first[0].measures["shd"] != first[1].measures["shd"]


def test_a_record_comes_back_from_its_line_as_it_was() -> None:
    table = edge_reliability(np.eye(3, k=1, dtype=bool), np.full((3, 3), 0.25))
    record = Record(
        suite="networks",
        row="ECOLI70",
        index=3,
        method="arrow",
        settings={"rule": "map"},
        versions={"causal-arrow": "1"},
        status="ok",
        seconds=0.25,
        measures={"nshd": 0.5, "sid": float("nan")},
        dataset={"seed": 2**63 + 1},
        reliability=table,
        run={"machine": {"cpu": "Æ"}},
    )
    line = record.to_json()
    assert "\n" not in line
    assert "NaN" not in line
    back = Record.from_json(line)
    assert back.measures == pytest.approx(record.measures, nan_ok=True)
    assert back.reliability is not None
    np.testing.assert_array_equal(back.reliability.pairs, table.pairs)
    assert back.identity == record.identity
    assert back.to_json() == line


# Going on


def test_what_is_done_is_not_run_again_and_what_is_new_is(tmp_path: Path) -> None:
    assert len(run(tmp_path, [ECOLI70], ["empty"], datasets=2)) == 2
    assert run(tmp_path, [ECOLI70], ["empty"], datasets=2) == []
    assert [record.index for record in run(tmp_path, [ECOLI70], ["empty"], datasets=3)] == [2]
    added = run(tmp_path, [ECOLI70], ["empty", "random"], datasets=3)
    assert [(record.method, record.index) for record in added] == [("random", 0), ("random", 1), ("random", 2)]
    assert len(read_records(tmp_path)) == 6


def test_other_settings_or_versions_of_a_method_are_new_work() -> None:
    (job,) = plan([ECOLI70], [("empty", prepare("empty", MethodOptions()))], 1)
    content = {"suite": "networks", "row": "ECOLI70", "index": 0, "method": "empty", "status": "ok"}

    def record(settings: dict[str, str], versions: dict[str, str]) -> Record:
        return Record(**content, settings=settings, versions=versions)

    same = record({}, dict(job.method.versions))
    assert remaining([job], [same]) == []
    assert remaining([job], [record({"rule": "other"}, dict(job.method.versions))]) == [job]
    assert remaining([job], [record({}, {"causal-arrow": "0.0.1"})]) == [job]


def test_failures_wait_for_retry_and_timeouts_for_more_time() -> None:
    (job,) = plan([ECOLI70], [("empty", prepare("empty", MethodOptions()))], 1)
    common = {
        "suite": "networks",
        "row": "ECOLI70",
        "index": 0,
        "method": "empty",
        "settings": job.method.settings,
        "versions": job.method.versions,
    }
    failed = Record(**common, status="failed", error="It broke.")
    late = Record(**common, status="timeout", seconds=10.0)
    assert remaining([job], [failed], timeout=60.0) == []
    assert remaining([job], [failed], timeout=60.0, retry=True) == [job]
    assert remaining([job], [late], timeout=10.0) == []
    assert remaining([job], [late], timeout=20.0) == [job]
    assert remaining([job], [late], timeout=None) == [job]


def test_a_torn_last_line_is_dropped_and_its_dataset_run_again(tmp_path: Path) -> None:
    run(tmp_path, [ECOLI70], ["empty"], datasets=3)
    path = tmp_path / RECORDS_FILE
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    assert [record.index for record in read_records(tmp_path)] == [0, 1]
    assert [record.index for record in run(tmp_path, [ECOLI70], ["empty"], datasets=3)] == [2]
    assert [record.index for record in read_records(tmp_path)] == [0, 1, 2]


@pytest.mark.parametrize(
    "damage",
    [lambda line: line[:50], lambda line: line.replace("{", '{"reliability": null, ', 1), lambda line: "[]"],
    ids=["torn", "a table that is null", "a list"],
)
def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, damage: Callable[[str], str]) -> None:
    run(tmp_path, [ECOLI70], ["empty"], datasets=2)
    path = tmp_path / RECORDS_FILE
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([damage(lines[0]), lines[1], ""]), encoding="utf-8")
    with pytest.raises(BenchmarkError, match="Line 1 of"):
        read_records(tmp_path)


def test_of_two_records_of_the_same_work_the_second_counts(tmp_path: Path) -> None:
    record = Record("networks", "ECOLI70", 0, "empty", {}, {}, "failed", "It broke.")
    again = Record("networks", "ECOLI70", 0, "empty", {}, {}, "ok", seconds=1.0, measures={"f1": 0.0})
    writer = RecordWriter(tmp_path)
    for one in (record, again):
        writer.write(one)
    writer.close()
    assert [read.status for read in read_records(tmp_path)] == ["ok"]


def test_two_benchmarks_do_not_write_to_one_folder(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    with pytest.raises(ConfigurationError, match="Another process is writing"):
        RecordWriter(tmp_path)
    writer.close()
    RecordWriter(tmp_path).close()


@pytest.mark.parametrize(
    "damage",
    [
        {"measures": {"f1": "x"}},
        {"measures": 5},
        {"status": "fine"},
        {"seconds": "long"},
        {"index": 1.5},
        {"run": {"machine": "mine"}},
        {"dataset": {"variables": []}},
        {"reliability": {"pairs": [1], "probability_sum": [1, 2], "edges": [1]}},
        {"unheard": 1},
    ],
    ids=str,
)
def test_a_record_of_wrong_types_is_refused(damage: dict[str, object], tmp_path: Path) -> None:
    record = Record("networks", "ECOLI70", 0, "empty", {}, {}, "ok", seconds=1.0, measures={"f1": 0.0})
    path = tmp_path / RECORDS_FILE
    path.write_text(json.dumps({**json.loads(record.to_json()), **damage}) + "\n", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="Line 1 of"):
        read_records(tmp_path)


def test_rows_with_few_distinct_datasets_are_not_asked_for_more() -> None:
    methods = [("empty", prepare("empty", MethodOptions()))]
    rows = [suite("sachs").row("observational-raw"), ECOLI70]
    assert [(job.row.name, job.index) for job in plan(rows, methods, 2)] == [
        ("observational-raw", 0),
        ("ECOLI70", 0),
        ("ECOLI70", 1),
    ]


@POSIX_ONLY
def test_killing_the_program_loses_at_most_the_datasets_in_hand(tmp_path: Path) -> None:
    arguments = ["networks", "--methods", "varsort,empty", "--datasets", "15", "--jobs", "2", "--output", str(tmp_path)]
    path = tmp_path / RECORDS_FILE
    process = program(*arguments)
    wait_for(lambda: line_count(path) >= 20)
    process.kill()
    process.communicate()
    kept = read_records(tmp_path)
    assert 20 <= len(kept) < 120
    output = path.read_text(encoding="utf-8")
    again = program(*arguments)
    stdout, stderr = again.communicate(timeout=120)
    assert again.returncode == 0, stderr
    assert f"{len(kept)} done before, {120 - len(kept)} to do" in stderr
    assert path.read_text(encoding="utf-8").startswith(output[: output.rfind("\n") + 1])
    records = read_records(tmp_path)
    assert len(records) == 120
    assert line_count(path) == 120
    assert "networks/ECOLI70  " in stdout
    assert "varsort" in stdout

    third = program(*arguments)
    assert "0 to do" in third.communicate(timeout=60)[1]
    assert line_count(path) == 120


@POSIX_ONLY
def test_ctrl_c_leaves_everything_readable_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = program("networks", "--methods", "varsort", "--datasets", "400", "--output", str(tmp_path))
    wait_for(lambda: line_count(tmp_path / RECORDS_FILE) >= 3)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command continues" in stderr
    assert "Traceback" not in stderr
    assert all(record.status == "ok" for record in read_records(tmp_path))
    assert len(read_records(tmp_path)) == line_count(tmp_path / RECORDS_FILE) >= 3


# Methods that fail, hang, crash


def fake_environment(folder: Path, method: str, script: str) -> MethodOptions:
    """An environment of `method` whose interpreter is a shell script."""
    place = folder / method
    (place / "bin").mkdir(parents=True)
    described = place / "lib" / "python3" / "site-packages" / f"{method}-0.dist-info" / "METADATA"
    described.parent.mkdir(parents=True)
    described.write_text(f"Metadata-Version: 2.1\nName: {method}\nVersion: 0\n")
    (place / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.0\n")
    interpreter = place / "bin" / "python"
    interpreter.write_text(f"#!/bin/sh\n{script}\n")
    interpreter.chmod(interpreter.stat().st_mode | stat.S_IXUSR)
    return MethodOptions(environments=folder)


READY = """echo '{"status": "ready"}'"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


@POSIX_ONLY
def test_a_method_over_its_time_is_killed_with_all_it_started_and_recorded(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"echo $$ > {pid_file}; {READY}; read line; sleep 600"
    options = fake_environment(tmp_path / "environments", "sdcd", script)
    records = run(tmp_path / "out", [ECOLI70], ["sdcd", "empty"], options=options, timeout=0.5)
    assert [(record.method, record.status) for record in records] == [("sdcd", "timeout"), ("empty", "ok")]
    assert records[0].seconds == 0.5
    assert records[0].error == "Stopped after the time limit of 0.5 s."
    wait_for(lambda: not is_running(int(pid_file.read_text())), seconds=5)
    assert run(tmp_path / "out", [ECOLI70], ["sdcd", "empty"], options=options, timeout=0.5) == []


@POSIX_ONLY
def test_a_method_that_fails_is_recorded_with_its_sentence(tmp_path: Path) -> None:
    reply = '{"status": "failed", "error": "LinAlgError: Singular matrix"}'
    options = fake_environment(tmp_path / "environments", "sdcd", f"{READY}; read line; echo '{reply}'; read line")
    (record,) = run(tmp_path / "out", [ECOLI70], ["sdcd"], options=options)
    assert (record.status, record.error) == ("failed", "LinAlgError: Singular matrix")
    assert record.dataset["seed"] == ECOLI70.seed(0)
    assert run(tmp_path / "out", [ECOLI70], ["sdcd"], options=options) == []
    assert len(run(tmp_path / "out", [ECOLI70], ["sdcd"], options=options, retry=True)) == 1


@POSIX_ONLY
def test_a_method_whose_process_dies_is_recorded_with_its_last_words(tmp_path: Path) -> None:
    options = fake_environment(
        tmp_path / "environments", "sdcd", f"{READY}; read line; echo 'out of memory' >&2; exit 3"
    )
    (record,) = run(tmp_path / "out", [ECOLI70], ["sdcd"], options=options)
    assert record.status == "failed"
    assert record.error == "The process of sdcd ended with exit status 3: out of memory."


@POSIX_ONLY
def test_a_worker_that_dies_is_recorded_and_replaced(tmp_path: Path) -> None:
    options = fake_environment(tmp_path / "environments", "sdcd", f"{READY}; read line; kill -9 $PPID; sleep 5")
    records = run(tmp_path / "out", [ECOLI70], ["sdcd", "empty"], options=options)
    assert [(record.method, record.status) for record in records] == [("sdcd", "failed"), ("empty", "ok")]
    assert "ended with signal 9" in str(records[0].error)


def test_an_error_while_recording_ends_the_run_and_is_heard(tmp_path: Path) -> None:
    jobs = plan([ECOLI70], [("empty", prepare("empty", MethodOptions()))], 50)
    written = []

    def write(record: Record) -> None:
        written.append(record)
        if len(written) == 2:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        evaluate(jobs, write, options=MethodOptions(), processes=2)
    assert len(written) == 2


# Environments of their own


STUBS = {
    "sdcd/__init__.py": "",
    "sdcd/models.py": """
import numpy
class SDCD:
    def train(self, dataset):
        print("a package that prints")
        assert abs(dataset.drop(columns="perturbation_label").to_numpy().std(axis=0) - 1).max() < 1e-9
        self.variables = dataset.shape[1] - 1
    def get_adjacency_matrix(self, threshold=True):
        return numpy.triu(numpy.ones((self.variables, self.variables)), 1) * (1 if threshold else -0.5)
""",
    "sdcd/utils.py": "def create_intervention_dataset(table): return table",
}


@POSIX_ONLY
def test_an_isolated_method_gets_its_table_and_gives_its_answer_through_files(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="the worker of sdcd imports pandas")
    for name, content in STUBS.items():
        path = tmp_path / "stubs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    start = (
        f"import sys, runpy; sys.path.insert(0, '{tmp_path / 'stubs'}'); sys.argv = sys.argv[2:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    options = fake_environment(tmp_path / "environments", "sdcd", f'exec {sys.executable} -c "{start}" "$@"')
    records = run(tmp_path / "out", [ECOLI70, suite("sachs").row("pooled-raw")], ["sdcd"], options=options)
    assert [record.status for record in records] == ["ok", "ok"], records[0].error
    for record, variables in zip(records, (46, 11), strict=True):
        assert record.measures["estimated_edges"] == variables * (variables - 1) / 2
        assert record.versions == {"sdcd": "0", "python": "3.11.0"}


def test_environments_live_in_the_cache_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CAUSAL_ARROW_ENVIRONMENTS", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("CAUSAL_ARROW_ENVIRONMENTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_folder().parts[-2:] == ("causal-arrow", "environments")


# What a user can say


def test_suites_rows_and_all_select_rows_once() -> None:
    assert [row.name for row in select_rows(["networks/ARTH150", "networks"])] == [
        "ARTH150",
        "ECOLI70",
        "MAGIC-NIAB",
        "MAGIC-IRRI",
    ]
    assert {row.suite for row in select_rows(["all"])} >= {"networks", "herman", "controls"}
    assert "held-out" not in {row.suite for row in select_rows(["all"])}  # frozen: only when named
    assert {row.suite for row in select_rows(["held-out"])} == {"held-out"}
    with pytest.raises(BenchmarkError, match="no row 'ECOLI'"):
        select_rows(["networks/ECOLI"])


def test_the_machine_is_described_in_words() -> None:
    machine = describe_machine()
    assert machine["cpu"].strip()
    assert isinstance(machine["cores"], int)
