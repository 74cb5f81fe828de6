"""Many tables: the answers of each alone, nothing done twice, nothing lost, and every problem in one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, Settings, discover, discover_many, storage
from causal_arrow.discovery import hidden, inference
from causal_arrow.errors import ArrowError, ConfigurationError, Remedy, TableError
from causal_arrow.many import _plan
from causal_arrow.many._plan import NamedTable
from causal_arrow.many.folder import ManyAnswers, ManyFolder
from causal_arrow.many.run import discover_together
from causal_arrow.many.workers import Job, run_job
from many_tables import (
    check_nothing_lost_or_done_twice,
    executions,
    finished,
    frame,
    killing_a_worker,
    marked_process,
    tables_of_many_shapes,
    wait_until,
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six tables of two shapes."""
    tables = tmp_path / "tables"
    tables.mkdir()
    for seed in range(6):
        frame(seed, variables=3 + seed % 2).to_csv(tables / f"t{seed}.csv", index=False)
    return tables


def largest_difference(one: ManyAnswers, other: dict[str, Any]) -> float:
    assert set(one) == set(other)
    return max(float(np.abs(one[name].edge_probabilities - other[name].edge_probabilities).max()) for name in other)


# Together and alone


@pytest.mark.parametrize("network", ["small_model_folder", "any_table_model_folder"])
def test_tables_that_share_a_pass_get_the_answers_they_get_alone(
    network: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(str(request.getfixturevalue(network)))
    tables: list[Any] = [frame(seed, variables=3 + seed % 3, skewed=seed % 2 == 0) for seed in range(9)]
    if network == "any_table_model_folder":  # holes, levels and plain numbers of one shape do not share a pass
        tables[0].iloc[::7, 1] = np.nan
        tables[3]["v2"] = np.where(tables[3]["v2"] > 0, "high", np.where(tables[3]["v2"] > -1, "low", "none"))
    passes: list[int] = []
    one_pass = inference._infer_pass

    def counted(model: Any, batch: Any, chunk: Any) -> Any:
        passes.append(len(batch.values))
        return one_pass(model, batch, chunk)

    monkeypatch.setattr(inference, "_infer_pass", counted)
    monkeypatch.setattr(hidden, "MAX_FLAGGED", 1.0)  # a second reading is a pass of its own
    outcomes = {each.index: each for each in discover_together([NamedTable("", table, settings) for table in tables])}
    assert len(passes) < len(tables) <= sum(passes)
    assert max(passes) > 1
    for place, table in enumerate(tables):
        together, alone = outcomes[place].result, discover(table, settings)
        assert not isinstance(together, Exception)
        np.testing.assert_allclose(
            together.answer.edge_probabilities, alone.answer.edge_probabilities, rtol=0, atol=1e-5
        )
        np.testing.assert_array_equal(together.answer.adjacency, alone.answer.adjacency)
        assert together.answer.log_columns == alone.answer.log_columns
        assert together.answer.table_checksum == alone.answer.table_checksum
        assert outcomes[place].seconds > 0


def test_one_table_that_fails_does_not_concern_the_others(small_model_folder: Path) -> None:
    settings = Settings(str(small_model_folder))
    requests = [NamedTable("", source, settings) for source in (frame(0), "nowhere.csv", frame(1))]
    outcomes = {each.index: each.result for each in discover_together(requests)}
    assert isinstance(outcomes[1], TableError)
    assert not isinstance(outcomes[0], Exception)
    assert not isinstance(outcomes[2], Exception)


def test_tables_that_do_not_fit_together_go_one_by_one(
    small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(str(small_model_folder))
    one_pass = inference._infer_pass

    def small_machine(model: Any, batch: Any, chunk: Any) -> Any:
        if len(batch.values) > 1:
            raise RuntimeError("[enforce fail] can't allocate memory: you tried to allocate 9 bytes")
        return one_pass(model, batch, chunk)

    monkeypatch.setattr(inference, "_infer_pass", small_machine)
    outcomes = list(discover_together([NamedTable("", frame(seed), settings) for seed in range(3)]))
    assert sorted(each.index for each in outcomes) == [0, 1, 2]
    assert not any(isinstance(each.result, Exception) for each in outcomes)


def test_a_pass_over_wide_tables_is_bounded_by_their_pairs(small_model_folder: Path) -> None:
    model = inference.ready_model(str(small_model_folder), "cpu")
    for observations, variables in ((20, 3000), (20, 500), (500, 50), (100, 5)):
        tables = inference.tables_per_pass(model, observations, variables)
        assert tables >= 1
        if tables > 1:
            assert tables * observations * variables <= model.cells_together
            assert tables * variables**2 * model.bytes_per_pair() <= inference.PAIR_BYTES_TOGETHER


# Many


def test_every_table_gets_its_answer_and_a_second_run_does_nothing(
    small_model_folder: Path, folder: Path, tmp_path: Path
) -> None:
    settings = Settings(str(small_model_folder), decode="shd")
    answers = discover_many(folder, tmp_path / "out", settings, jobs=1)
    alone = {path.stem: discover(path, settings).answer for path in folder.iterdir()}
    assert largest_difference(answers, alone) < 1e-5
    assert answers["t3"].decode == "shd"
    assert not answers.failed
    assert set(executions(tmp_path / "out").values()) == {1}
    again = discover_many(folder, tmp_path / "out", settings, jobs=1)
    assert set(again) == set(answers)
    assert set(executions(tmp_path / "out").values()) == {1}


def test_finished_work_is_known_by_content_and_settings_and_not_by_name(
    small_model_folder: Path, folder: Path, tmp_path: Path
) -> None:
    output, settings = tmp_path / "out", Settings(str(small_model_folder))
    discover_many(folder, output, settings, jobs=1)
    frame(99, variables=3).to_csv(folder / "t0.csv", index=False)  # the same name and shape, other values
    (folder / "t1.csv").touch()  # only its date is new
    frame(7).to_csv(folder / "new.csv", index=False)
    answers = discover_many(folder, output, settings, jobs=1)
    assert executions(output) == {"t0": 2, "new": 1, **{f"t{place}": 1 for place in range(1, 6)}}
    np.testing.assert_allclose(
        answers["t0"].edge_probabilities, discover(folder / "t0.csv", settings).answer.edge_probabilities, atol=1e-5
    )
    discover_many(folder, output, Settings(str(small_model_folder), threshold=0.7), jobs=1)
    assert executions(output)["t1"] == 2
    discover_many(folder, output, Settings(str(small_model_folder), threshold=0.7), jobs=1, drop=["v2"])
    assert executions(output)["t1"] == 3


def test_other_weights_in_the_same_place_are_another_model(
    small_model_folder: Path, any_table_model_folder: Path, tmp_path: Path
) -> None:
    import shutil

    model = shutil.copytree(small_model_folder, tmp_path / "model")
    discover_many({"a": frame(0)}, tmp_path / "out", Settings(str(model)), jobs=1)
    shutil.copytree(any_table_model_folder, model, dirs_exist_ok=True)
    answers = discover_many({"a": frame(0)}, tmp_path / "out", Settings(str(model)), jobs=1)
    assert executions(tmp_path / "out") == {"a": 2}
    assert answers["a"].confounding_probabilities is not None


def test_tables_in_memory_have_names_and_are_recognized(small_model_folder: Path, tmp_path: Path) -> None:
    settings = Settings(str(small_model_folder))
    tables = {"first": frame(0), "second": frame(1).to_numpy(), "broken": frame(2).assign(v0=1.0)}
    answers = discover_many(tables | {"empty": frame(3)[:0]}, tmp_path / "out", settings, jobs=1)
    assert sorted(answers) == ["first", "second"]
    assert "constant" in answers.failed["broken"]
    assert "drop=['v0']" in answers.failed["broken"]  # in the words of Python
    assert answers.frame.loc["broken", "status"] == "failed"
    discover_many(tables, tmp_path / "out", settings, jobs=1)
    assert set(executions(tmp_path / "out").values()) == {1}
    with pytest.raises(KeyError, match="has no answer: Column"):
        answers["broken"]
    with pytest.raises(KeyError, match="did you mean 'second'"):
        answers["secnd"]


def test_failures_are_recorded_and_done_again_only_when_asked(
    small_model_folder: Path, folder: Path, tmp_path: Path, run: Run
) -> None:
    (folder / "bad.csv").write_text("a,b\n1,x\n", encoding="utf-8")
    command = ("discover-many", folder, "--output", tmp_path / "out", "--model", small_model_folder, "--jobs", 1)
    status, out, err = run(*command)
    assert status == 1
    assert "7 tables: 6 answered, 1 failed." in out
    assert "bad: The table has 1 observation" in out
    assert "7 tables, 0 done before, 7 to do" in err
    assert "7/7 done" in err
    status, out, err = run(*command)
    assert status == 1
    assert "7 done before, 0 to do" in err
    assert "bad: The table has 1 observation" in out
    assert executions(tmp_path / "out")["bad"] == 1
    frame(5).to_csv(folder / "bad.csv", index=False)
    status, out, err = run(*command)
    assert status == 0
    assert "6 done before, 1 to do (1 again, for other content, settings or version)" in err
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert summary["status"].tolist() == ["ok"] * 7
    assert summary["table"].tolist() == ["bad", *(f"t{place}" for place in range(6))]


def test_answers_of_another_version_are_done_again_and_the_command_says_how_many(
    small_model_folder: Path, folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("discover-many", folder, "--output", tmp_path / "out", "--model", small_model_folder, "--jobs", 1)
    with monkeypatch.context() as earlier:
        earlier.setattr(_plan, "__version__", "0.1.0")
        assert "0 done before, 6 to do;" in run(*command)[2]
    assert "0 done before, 6 to do (6 again, for other content, settings or version);" in run(*command)[2]
    assert "6 done before, 0 to do;" in run(*command)[2]


def test_retry_does_failed_tables_again(small_model_folder: Path, tmp_path: Path) -> None:
    settings = Settings(str(small_model_folder))
    for retry, times in ((False, 1), (False, 1), (True, 2)):
        discover_many({"a": frame(0), "b": [[1, 2]]}, tmp_path / "out", settings, jobs=1, retry=retry)
        assert executions(tmp_path / "out") == {"a": 1, "b": times}


def test_the_command_speaks_of_options_and_prints_json(small_model_folder: Path, tmp_path: Path, run: Run) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    frame(0).assign(v0=1.0).to_csv(tables / "constant.csv", index=False)
    frame(1).to_csv(tables / "fine.csv", index=False)
    status, out, _ = run(
        "discover-many", tables, "--output", tmp_path / "out", "--model", small_model_folder, "--json", "--jobs", 1
    )
    assert status == 1
    content = json.loads(out)
    assert (content["answered"], content["failed"]) == (1, 1)
    constant, fine = content["tables"]
    assert "--drop v0" in constant["error"]
    assert fine["status"] == "ok"
    assert fine["variables"] == 4
    written = json.loads((tmp_path / "out" / "answers" / "fine.json").read_text(encoding="utf-8"))
    assert written["format"] == "causal-arrow-graph"


def test_the_command_hands_on_precision_and_rows(small_model_folder: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "tables").mkdir()
    frame(1).to_csv(tmp_path / "tables" / "table.csv", index=False)
    asked = ("discover-many", tmp_path / "tables", "--model", small_model_folder, "--jobs", 1, "--output")
    assert run(*asked, tmp_path / "fine", "--precision", "float32", "--max-rows", 100)[0] == 0
    for option, value, words in (("--max-rows", 3, "max_rows"), ("--precision", "bfloat16", "bfloat16 is for GPUs")):
        status, _, err = run(*asked, tmp_path / "refused", option, value)
        assert status == 2
        assert words in err


# Manifests


def test_a_manifest_gives_tables_settings_of_their_own(any_table_model_folder: Path, tmp_path: Path, run: Run) -> None:
    random = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    plain = frame(0, 80)
    plain.to_csv(tmp_path / "data" / "plain.csv", index=False)
    plain.assign(code=random.integers(3, size=80), set_by=random.choice(["", "v1"], size=80)).to_csv(
        tmp_path / "data" / "typed.csv", index=False
    )
    (tmp_path / "known.toml").write_text('roots = ["v0"]\n', encoding="utf-8")
    manifest = tmp_path / "manifest.csv"
    manifest.write_text(
        "table,name,knowledge,kinds,interventions,drop,threshold\n"
        "data/plain.csv,,,,,v3,0.3\n"
        "data/typed.csv,with experiments,known.toml,code=category,set_by,,\n",
        encoding="utf-8",
    )
    status, out, err = run(
        "discover-many", manifest, "--output", tmp_path / "out", "--model", any_table_model_folder, "--jobs", 1
    )
    assert status == 0, out + err
    answers = ManyAnswers(tmp_path / "out", ["plain", "with experiments"])
    assert answers["plain"].names == ("v0", "v1", "v2")
    assert answers["plain"].threshold == 0.3
    typed = answers["with experiments"]
    assert dict(zip(typed.names, (column.kind for column in typed.columns), strict=True))["code"] == "category"
    assert set(typed.experiments) == {"v1"}
    assert typed.knowledge.to_dict() == {"roots": ["v0"]}

    entries = [
        {"table": "data/plain.csv", "drop": ["v3"], "threshold": 0.3},
        {
            "table": "data/typed.csv",
            "name": "with experiments",
            "knowledge": {"roots": ["v0"]},
            "kinds": {"code": "category"},
            "interventions": "set_by",
        },
    ]
    (tmp_path / "manifest.json").write_text(json.dumps({"tables": entries}), encoding="utf-8")
    settings = Settings(str(any_table_model_folder))
    discover_many(tmp_path / "manifest.json", tmp_path / "out", settings, jobs=1)
    # The same tables with the same settings, told in another way: nothing is done again.
    assert set(executions(tmp_path / "out").values()) == {1}


MANIFESTS = {
    "wrong column": ("manifest.csv", "path,name\nt.csv,a\n", "no column 'table'"),
    "misspelled field": (
        "manifest.csv",
        "table,tresholds\nt.csv,0.2\n",
        "unknown field 'tresholds': did you mean",
    ),
    "missing file": ("manifest.csv", "table\nt.csv\nnowhere.csv\n", "1 file that is not there: 'nowhere.csv'"),
    "empty": ("manifest.csv", "table\n", "names no tables"),
    "nothing": ("manifest.csv", "", "no column 'table'"),
    "kinds without a kind": ("manifest.csv", "table,kinds\nt.csv,zip\n", "Expected kinds as zip=category;age=number"),
    "no number": ("manifest.csv", "table,threshold\nt.csv,half\n", "Expected threshold as a number between 0 and 1"),
    "threshold": ("manifest.csv", "table,threshold\nt.csv,7\n", "Table 't' of the manifest: "),
    "knowledge": ("manifest.csv", "table,knowledge\nt.csv,no.toml\n", "Table 't' of the manifest: "),
    "too many fields": ("manifest.csv", "table\nt.csv,1,2\n", "has 3 fields, more than the 1 columns"),
    "same name": ("manifest.csv", "table,name\nt.csv,a\nt.csv,A\n", "Two tables are called 'a'"),
    "name with a slash": ("manifest.csv", "table,name\nt.csv,a/b\n", "'a/b' cannot be the name of a table"),
    "no JSON": ("manifest.json", "{", "Cannot read the manifest 'manifest.json'"),
    "JSON of another kind": ("manifest.json", '{"a": 1}', "to hold a list of objects"),
    "JSON without a table": (
        "manifest.json",
        '[{"name": "a"}]',
        "Entry 1 of the manifest 'manifest.json' names no table",
    ),
    "JSON with a number": ("manifest.json", '[{"table": 5}]', "names no table"),
    "not text": ("manifest.csv", b"table\n\xff\xfe\x00", "Cannot read the manifest"),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_wrong_manifest_is_told_before_any_work(
    kind: str, small_model_folder: Path, tmp_path: Path, run: Run
) -> None:
    name, content, expected = MANIFESTS[kind]
    frame(0).to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    status, out, err = run("discover-many", path, "--output", tmp_path / "out", "--model", small_model_folder)
    assert status == 2
    assert expected in err
    assert err.count("\n") == 1
    assert not out
    assert not (tmp_path / "out").exists()


# Told before work starts


def test_what_cannot_be_meant_is_told_before_any_work(
    small_model_folder: Path, folder: Path, tmp_path: Path, run: Run
) -> None:
    def refused(*arguments: object) -> str:
        status, out, err = run("discover-many", *arguments, "--model", small_model_folder)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        return err

    out = tmp_path / "out"
    (tmp_path / "empty").mkdir()
    assert "There is no table in" in refused(tmp_path / "empty", "--output", out)
    assert "There is no file or folder" in refused(tmp_path / "nowhere", "--output", out)
    (tmp_path / "file").write_text("")
    assert "is a file: name a folder" in refused(folder, "--output", tmp_path / "file")
    assert "is a file: name a folder" in refused(folder, "--output", tmp_path / "file" / "deeper")
    copy = tmp_path / "copy"
    copy.mkdir()
    frame(0).to_csv(copy / "t0.csv", index=False)
    assert "Two tables are called 't0'" in refused(folder, copy, "--output", out)
    assert "A cluster was named, but the backend loky" in refused(folder, "--output", out, "--cluster", "here")
    assert "`discover` is for one table" in refused(folder / "t0.csv", "--output", out)
    assert not out.exists()
    assert "No model 'none'" in run("discover-many", folder, "--output", out, "--model", "none")[2]


def test_too_little_memory_is_told_with_the_estimate(
    small_model_folder: Path, folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame(0, 40, 300).to_csv(folder / "wide.csv", index=False)
    command = ("discover-many", folder, "--output", tmp_path / "out", "--model", small_model_folder)
    monkeypatch.setattr(storage, "free_memory", lambda: 200 * 2**20)
    status, _, err = run(*command)
    assert status == 2
    assert "The largest table, 'wide' with about 40 observations of 300 variables, takes about" in err
    assert "0.2 GB are free: leave it out" in err
    monkeypatch.setattr(storage, "free_memory", lambda: 2**30)
    status, _, err = run(*command, "--jobs", 6)
    assert status == 2
    assert "in each of 6 processes, and 1.1 GB are free." in err
    assert "choose --jobs " in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "tables", [5, None, [], {}, ["", "x.csv"], [3, 4], frame(0).to_numpy()], ids=lambda value: type(value).__name__
)
def test_sources_that_are_none_are_refused_in_a_sentence(tables: Any, tmp_path: Path) -> None:
    with pytest.raises(ArrowError, match="Expected"):
        discover_many(tables, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_options_of_read_table_overrule_the_settings(any_table_model_folder: Path, tmp_path: Path) -> None:
    table = frame(0).assign(group=np.resize([1, 2, 3], len(frame(0))))
    settings = Settings(any_table_model_folder).changed(kinds={"group": "number"})
    answers = discover_many({"x": table}, tmp_path / "out", settings, jobs=1, kinds={"group": "category"})
    assert answers["x"].columns[-1].kind == "category"
    changed = discover_many({"x": table}, tmp_path / "out", settings, jobs=1, drop=["group"], missing="drop")
    assert "group" not in changed["x"].names


def test_settings_that_do_not_fit_are_refused(tmp_path: Path, small_model: Any) -> None:
    for options in ({"backend": "spark"}, {"jobs": 0}, {"jobs": 2.5}, {"settings": Settings(small_model)}):
        with pytest.raises(ConfigurationError):
            discover_many({"a": frame(0)}, tmp_path / "out", **options)
    with pytest.raises(ConfigurationError):
        discover_many({"a": frame(0)}, "")


def test_two_runs_do_not_write_to_one_folder_at_once(small_model_folder: Path, tmp_path: Path) -> None:
    folder = ManyFolder(tmp_path / "out")
    folder.make()
    with folder.claimed(), pytest.raises(ConfigurationError, match="Another run is writing"):
        discover_many({"a": frame(0)}, tmp_path / "out", Settings(str(small_model_folder)), jobs=1)


# Jobs


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TableError("It is constant.", [Remedy("drop", ("a",))]), "--drop a"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (MemoryError(), "There is not enough memory for this table"),
        (RuntimeError("x" * 10_000), "RuntimeError: x"),
    ],
)
def test_a_job_that_fails_has_a_result_of_one_sentence(error: Exception, words: str) -> None:
    def work(job: Job) -> dict[str, Any]:
        raise error

    result = run_job(work, {"surface": "command-line"})
    assert result["status"] == "failed"
    assert words in result["error"]
    assert "\n" not in result["error"]
    assert len(result["error"]) <= 500
    assert run_job(lambda job: {"seen": job["table"]}, {"table": 7}) == {"status": "ok", "seen": 7}


# Deaths


def test_a_killed_process_of_this_machine_costs_nothing_that_was_finished(
    small_model_folder: Path, tmp_path: Path
) -> None:
    output, tables = tmp_path / "out", tables_of_many_shapes(tmp_path / "tables")
    with killing_a_worker(output) as fate:
        answers = discover_many(tables, output, Settings(str(small_model_folder)), jobs=2)
    check_nothing_lost_or_done_twice(output, tables, fate, answers)


def test_a_table_that_kills_its_process_is_given_up_and_the_others_are_answered(
    small_model_folder: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    tables: dict[str, Any] = {f"t{seed}": frame(seed) for seed in range(4)}
    answers = discover_many(tables | {"deadly": Deadly()}, output, Settings(str(small_model_folder)), jobs=2)
    assert sorted(answers) == sorted(tables)
    assert "died, and again when it read nothing else" in answers.failed["deadly"]
    assert executions(output)["deadly"] == 1
    assert set(executions(output).values()) == {1}
    # A death may have had another reason: the next run tries again, and only that.
    discover_many(tables | {"deadly": frame(9)}, output, Settings(str(small_model_folder)), jobs=1)
    assert executions(output) == {**dict.fromkeys(tables, 1), "deadly": 2}


class Deadly:
    """A table that ends the process which reads it, as a table does that needs too much memory."""

    home = os.getpid()

    def to_pandas(self) -> pd.DataFrame:
        if os.getpid() == self.home:
            raise RuntimeError("read in the process of the test")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def __getstate__(self) -> dict[str, Any]:
        return {"home": self.home}


ALONE, ALL = False, True  # whether a signal goes to one process, or to all of them as from a terminal
STOPS = {
    1: [(signal.SIGKILL, ALONE)],
    2: [(signal.SIGINT, ALL), (signal.SIGTERM, ALONE), (signal.SIGKILL, ALONE), (signal.SIGTERM, ALL)],
}


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("jobs", STOPS)
def test_a_run_that_is_stopped_at_any_moment_leaves_whole_answers_and_no_process_and_the_same_command_continues(
    jobs: int, small_model_folder: Path, tmp_path: Path
) -> None:
    output, tables = tmp_path / "out", tables_of_many_shapes(tmp_path / "tables")
    command = [sys.executable, "-m", "causal_arrow", "discover-many", str(tables), "--output", str(output)]
    command += ["--model", str(small_model_folder), "--jobs", str(jobs)]
    random = np.random.default_rng(jobs)
    for way, to_all in STOPS[jobs]:
        with marked_process(command) as (process, is_alive):
            assert process.stderr is not None
            assert "24 tables" in process.stderr.readline()
            enough, deadline = len(finished(output)) + 3, time.monotonic() + random.uniform(0, 2)
            while len(finished(output)) < enough and time.monotonic() < deadline:
                time.sleep(0.005)
            (os.killpg if to_all else os.kill)(process.pid, way)
            said = process.stderr.read()
            assert process.wait() in (-way, 128 + way)
            wait_until(lambda: not is_alive(), 60)
        assert "Traceback" not in said
        assert "Warning" not in said
        done = executions(output)
        for file in (output / "answers").iterdir():
            assert json.loads(file.read_text(encoding="utf-8"))["format"] == "causal-arrow-graph"
        assert {f"{name}.json" for name in done} <= {file.name for file in (output / "answers").iterdir()}
    subprocess.run(command, check=True, capture_output=True)
    assert executions(output) == {f"t{seed:02}": 1 for seed in range(24)}
    assert [file.name for file in (output / ".causal-arrow-work").iterdir()] == ["claim"]


def test_processes_that_share_a_bootstrap_end_with_the_one_that_started_them(
    small_model_folder: Path, folder: Path
) -> None:
    command = [sys.executable, "-m", "causal_arrow", "discover", str(folder / "t0.csv"), "--bootstrap", "1000000"]
    with marked_process([*command, "--jobs", "2", "--model", str(small_model_folder)]) as (process, is_alive):
        wait_until(lambda: len(is_alive()) >= 5, 300)  # this one, two trackers and two workers
        process.kill()
        process.wait()
        wait_until(lambda: not is_alive(), 60)


def test_a_torn_record_is_left_out_and_its_table_done_again(small_model_folder: Path, tmp_path: Path) -> None:
    settings = Settings(str(small_model_folder))
    tables = {"a": frame(0), "b": frame(1)}
    discover_many(tables, tmp_path / "out", settings, jobs=1)
    (file,) = (tmp_path / "out" / "records").iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    assert len(executions(tmp_path / "out")) == 1
    discover_many(tables, tmp_path / "out", settings, jobs=1)
    assert executions(tmp_path / "out") == {"a": 1, "b": 1}


# Bootstrap


def test_who_shares_the_work_of_a_bootstrap_changes_nothing(small_model_folder: Path) -> None:
    arrow = Arrow(small_model_folder).fit(frame(0, skewed=True))
    alone = arrow.stability(40, 3)
    shared = arrow.stability(40, 3, jobs=2)
    assert alone.resamples == shared.resamples == 40
    np.testing.assert_allclose(alone.frequencies, shared.frequencies, rtol=0, atol=1e-12)
    np.testing.assert_allclose(alone.mean_probabilities, shared.mean_probabilities, rtol=0, atol=1e-5)
    assert 0 < alone.frequencies.max() <= 1


def test_workers_without_a_bootstrap_have_nothing_to_do(folder: Path, small_model_folder: Path, run: Run) -> None:
    status, _, err = run("discover", folder / "t0.csv", "--model", small_model_folder, "--jobs", 2)
    assert status == 2
    assert "for many tables there is discover-many" in err
