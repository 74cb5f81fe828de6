"""The command line: what it prints and writes, and that every mistake is one sentence and status 2."""

from __future__ import annotations

import csv
import gzip
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow.discovery import pictures, pipeline
from causal_arrow.errors import ConfigurationError
from causal_arrow.examples import load_sachs
from causal_arrow.graphs.files import read_graph
from causal_arrow.output import written_together

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def discover(run: Run, small_model_folder: Path) -> Run:
    return lambda *arguments: run("discover", *arguments, "--model", small_model_folder)


@pytest.fixture
def file(table: pd.DataFrame, tmp_path: Path) -> Path:
    table.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


# Discover


def test_discover_prints_edges_order_and_nothing_half(discover: Run, file: Path) -> None:
    status, out, err = discover(file)
    assert status == 0
    assert out.startswith("table.csv: 120 observations of 6 variables\n")
    assert "Causal order: " in out
    assert "\x1b" not in out + err  # no colors where nobody sees them
    edges = [line for line in out.partition("Causal order: ")[0].splitlines() if "→" in line]
    assert f"{len(edges)} edges." in out
    assert all(any(word in line for word in ("strong", "moderate", "weak")) for line in edges)


def test_json_is_all_that_stands_on_standard_output(discover: Run, file: Path) -> None:
    status, out, _ = discover(file, "--json", "--graphs", 50, "--bootstrap", 2)
    content = json.loads(out)
    assert status == 0
    assert content["variables"] == ["age", "dose", "blood pressure", "d", "e", "outcome"]
    assert {"source", "target", "probability", "direction"} <= content["edges"][0].keys()
    assert content["graphs"] == 50
    assert np.shape(content["ancestor_probabilities"]) == (6, 6)
    assert content["bootstrap"]["resamples"] == 2
    assert {"source", "target", "frequency"} <= content["bootstrap"]["edges"][0].keys()


def test_the_same_command_prints_the_same_answer(discover: Run, file: Path) -> None:
    arguments = (file, "--json", "--graphs", 30, "--bootstrap", 2, "--seed", 4)
    assert discover(*arguments) == discover(*arguments)
    assert discover(*arguments)[1] != discover(*arguments[:-1], 5)[1]


def test_output_holds_every_promised_file_and_they_agree(discover: Run, file: Path, tmp_path: Path) -> None:
    status, _, err = discover(file, "--output", tmp_path / "new" / "answer", "--graphs", 20, "--bootstrap", 2)
    assert status == 0
    assert "Wrote 12 files" in err
    folder = tmp_path / "new" / "answer"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("graph.json", "edges.csv", "graph.graphml", "graph.gml", "graph.dot", "graph.dagitty.txt"),
        *("ancestors.csv", "stability.csv", "graph.png", "graph.svg", "probabilities.png", "probabilities.svg"),
    }
    graphs = {
        name: set(read_graph(folder / name).edges())
        for name in names
        if name.startswith(("graph.d", "graph.g", "graph.j"))
    }
    assert len(graphs) == 5
    assert all(edges == graphs["graph.json"] for edges in graphs.values())
    assert len(pd.read_csv(folder / "ancestors.csv", index_col=0)) == 6
    assert list(tmp_path.rglob(".causal-arrow*")) == []


def test_knowledge_from_options_and_files_adds_up(discover: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "tiers.txt").write_text("# earliest first\nage, dose\n\nblood pressure, d, e\n")
    (tmp_path / "more.json").write_text('{"leaves": ["outcome"]}')
    status, out, _ = discover(
        file, "--json", "--require", "e->dose", "--forbid", "age -> d", "--knowledge", tmp_path / "more.json"
    )
    content = json.loads(out)
    edges = {(edge["source"], edge["target"]) for edge in content["edges"]}
    assert status == 0
    assert ("e", "dose") in edges
    assert ("age", "d") not in edges
    assert not any(source == "outcome" for source, _ in edges)

    content = json.loads(discover(file, "--json", "--tiers", tmp_path / "tiers.txt", "--threshold", 0.1)[1])
    early, late = {"age", "dose"}, {"blood pressure", "d", "e"}
    assert content["edges"]
    assert not any(edge["source"] in late and edge["target"] in early for edge in content["edges"])


def test_compressed_files_are_read(discover: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert json.loads(discover(tmp_path / "table.csv.gz", "--json")[1])["observations"] == 120


def test_columns_can_be_chosen_and_left_out(discover: Run, file: Path) -> None:
    chosen = json.loads(discover(file, "--json", "--columns", "age,d", "--columns", "blood pressure")[1])
    assert chosen["variables"] == ["age", "d", "blood pressure"]
    rest = json.loads(discover(file, "--json", "--drop", "age, d")[1])
    assert rest["variables"] == ["dose", "blood pressure", "e", "outcome"]


def test_missing_values_are_dropped_or_imputed_when_asked(discover: Run, table: pd.DataFrame, tmp_path: Path) -> None:
    table.iloc[3, 2] = table.iloc[7, 0] = np.nan
    table.to_csv(tmp_path / "gaps.csv", index=False)
    assert json.loads(discover(tmp_path / "gaps.csv", "--json", "--missing", "drop")[1])["observations"] == 118
    assert json.loads(discover(tmp_path / "gaps.csv", "--json", "--missing", "impute")[1])["observations"] == 120


@pytest.mark.parametrize("rule", ["map", "shd", "f1"])
def test_every_decoding_rule_can_be_asked_for(rule: str, discover: Run, file: Path) -> None:
    assert json.loads(discover(file, "--json", "--decode", rule)[1])["decode"] == rule


def test_names_with_brackets_are_not_taken_for_markup(discover: Run, table: pd.DataFrame, tmp_path: Path) -> None:
    table.columns = ["[red]a", "b [mg/l]", "[/]", "d", "e", "f"]
    table.to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = discover(tmp_path / "t.csv", "--threshold", 0.01)
    assert status == 0
    assert "[red]a" in out
    assert "b [mg/l]" in out


# Mistakes: one sentence on standard error, status 2, nothing else


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


GOOD_ROWS = "".join(f"{n % 7},{n * n % 11},{n}.5\n" for n in range(30))
NASTY_FILES = {
    "text column": ("a,b,city\n" + "".join(f"{n},{n * n % 11},town{n}\n" for n in range(30)), "city"),
    "dates": ("a,b,day\n" + "".join(f"{n},{n * n % 11},2024-01-{n + 1:02}\n" for n in range(30)), "day"),
    "constant": ("a,b,c\n" + "".join(f"{n},{n * n % 11},41\n" for n in range(30)), "41"),
    "all missing": ("a,b,c\n" + "".join(f"{n},{n * n % 11},\n" for n in range(30)), "'c'"),
    "missing values": ("a,b,c\n" + GOOD_ROWS + "1,,2\n", "--missing"),
    "few observations": ("a,b,c\n" + "".join(GOOD_ROWS.splitlines(keepends=True)[:19]), "20"),
    "one column": ("a\n" + "".join(f"{n * n % 13}\n" for n in range(30)), "one column"),
    "duplicate names": ("a,b,a\n" + GOOD_ROWS, "'a'"),
    "infinity": ("a,b,c\n" + GOOD_ROWS + "1,inf,2\n", "inf"),
    "empty": ("", "empty"),
    "only names": ("a,b,c\n", "column names but no rows"),
    "binary": (b"\x00\x01\x02\x7fELF" * 40, "not a text file"),
    "workbook": (b"PK\x03\x04" + bytes(200), "xlsx"),
    "ragged": ("a,b,c\n1,2,3\n1,2,3,4,5\n" + GOOD_ROWS, "fields"),
}


@pytest.mark.parametrize("kind", NASTY_FILES)
def test_a_table_that_cannot_be_used_is_one_sentence_and_status_2(kind: str, discover: Run, tmp_path: Path) -> None:
    content, hint = NASTY_FILES[kind]
    assert_refused(discover(write(tmp_path / "table.csv", content), "--output", tmp_path / "answer"), hint)
    assert not (tmp_path / "answer").exists()


def assert_refused(result: tuple[int, str, str], hint: str) -> None:
    status, out, err = result
    assert status == 2
    assert out == ""
    assert err.startswith("causal-arrow: ")
    assert err.count("\n") == 1
    assert hint.lower() in err.lower()
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--require", "age -> weight"], "weight"),
        (["--require", "age"], "cause -> effect"),
        (["--require", "age -> d", "--require", "d -> age"], "cycle"),
        (["--require", "age -> d", "--forbid", "age -> d"], "forbidden"),
        (["--tiers", "none.txt"], "none.txt"),
        (["--knowledge", "none.toml"], "none.toml"),
        (["--columns", "age,wait"], "wait"),
        (["--drop", "agee"], "did you mean"),
        (["--threshold", "2"], "threshold"),
        (["--decode", "f1", "--threshold", "0.2"], "threshold"),
        (["--device", "tpu"], "device"),
        (["--delimiter", "::"], "delimiter"),
    ],
)
def test_an_option_that_makes_no_sense_is_one_sentence_and_status_2(
    options: list[str], hint: str, discover: Run, file: Path
) -> None:
    assert_refused(discover(file, *options), hint)


def test_missing_files_and_models_are_one_sentence_and_status_2(
    run: Run, discover: Run, file: Path, tmp_path: Path
) -> None:
    assert_refused(discover(tmp_path / "none.csv"), "none.csv")
    assert_refused(discover(tmp_path), "directory")
    assert_refused(run("discover", file, "--model", "no-such-model"), "no-such-model")
    assert_refused(run("check", tmp_path / "none.csv"), "none.csv")
    assert_refused(run("compare", tmp_path / "a.json", tmp_path / "b.json"), "a.json")


def test_wrong_usage_is_status_2(run: Run, file: Path) -> None:
    for arguments in (
        ("discover",),
        ("discover", file, "--decode", "best"),
        ("explode",),
        ("discover", file, "--graphs", 0),
    ):
        status, out, err = run(*arguments)
        assert (status, out) == (2, "")
        assert "Traceback" not in err


def test_a_bug_is_a_short_message_and_status_1(discover: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("wires crossed")

    monkeypatch.setattr(pipeline, "infer", fail)
    status, out, err = discover(file)
    assert (status, out) == (1, "")
    assert "RuntimeError: wires crossed" in err
    assert "CAUSAL_ARROW_DEBUG" in err
    assert "Traceback" not in err


# Output folders


def test_files_of_others_are_never_touched(discover: Run, file: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    answer.mkdir()
    write(answer / "notes.txt", "mine")
    write(answer / "graph.json", "mine too")
    assert_refused(discover(file, "--output", answer), "--overwrite")
    assert {path.name for path in answer.iterdir()} == {"notes.txt", "graph.json"}
    assert discover(file, "--output", answer, "--overwrite")[0] == 0
    assert (answer / "notes.txt").read_text() == "mine"
    assert "causal-arrow-graph" in (answer / "graph.json").read_text()
    assert_refused(discover(file, "--output", answer / "notes.txt"), "is there already")
    assert_refused(discover(file, "--output", answer / "notes.txt" / "new"), "is a file")
    assert (answer / "notes.txt").read_text() == "mine"


def test_a_name_with_the_ending_of_a_file_writes_that_file_alone(discover: Run, file: Path, tmp_path: Path) -> None:
    discover(file, "--output", tmp_path / "all")
    for ending in (".png", ".svg", ".pdf", ".json", ".csv", ".graphml", ".gml", ".dot", ".txt", ".JSON"):
        alone = tmp_path / f"new{ending}" / f"mine{ending}"
        status, _, err = discover(file, "--output", alone)
        assert status == 0
        assert "Wrote" in err
        assert list(alone.parent.iterdir()) == [alone]
        twins = [path for path in (tmp_path / "all").glob(f"*{ending.lower()}") if path.stem != "probabilities"]
        assert [path.read_bytes() for path in twins] == [alone.read_bytes()] * (ending != ".pdf")
    assert (tmp_path / "new.pdf" / "mine.pdf").read_bytes().startswith(b"%PDF")
    for ending, same in ((".gv", "graph.dot"), (".dagitty", "graph.dagitty.txt")):  # which `compare` reads too
        discover(file, "--output", tmp_path / f"mine{ending}")
        assert (tmp_path / f"mine{ending}").read_bytes() == (tmp_path / "all" / same).read_bytes()
    assert_refused(
        discover(file, "--output", alone), "is there already: name another file, or replace it with --overwrite"
    )
    assert discover(file, "--output", alone, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("name", "meant"),
    [("graph.jpg", ""), ("graph.pgn", "graph.png"), ("graph.jsn", "graph.json"), ("g.PDFF", "g.pdf"), ("a.xlsx", "")],
)
def test_a_folder_is_not_made_where_a_file_was_meant(
    name: str, meant: str, discover: Run, file: Path, tmp_path: Path
) -> None:
    refused = discover(file, "--output", tmp_path / name)
    hint = f" Did you mean '{meant}'?" if meant else ""
    assert_refused(refused, f"got '{name}'.{hint}\n")
    assert_refused(refused, "Expected a folder, or a file that ends in .json, .csv, .graphml, ")
    assert not (tmp_path / name).exists()
    (tmp_path / name).mkdir()
    assert discover(file, "--output", tmp_path / name)[0] == 0


@pytest.mark.parametrize("name", ["results.v2", "run.2026", "sales.north", "v1.0", "a.b", "model.cv"])
def test_a_folder_may_have_a_dot_in_its_name(name: str, discover: Run, file: Path, tmp_path: Path) -> None:
    assert discover(file, "--output", tmp_path / name)[0] == 0
    assert len(list((tmp_path / name).iterdir())) == 10


def test_a_table_is_never_replaced_by_its_answer(discover: Run, file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    assert_refused(discover(file, "--output", file, "--overwrite"), "is the table itself")
    assert file.read_bytes() == before
    (tmp_path / "folder.png").mkdir()
    assert "Wrote 10 files" in discover(file, "--output", tmp_path / "folder.png")[2]


@pytest.mark.parametrize("blow", [KeyboardInterrupt, ConfigurationError("no"), MemoryError])
def test_an_interruption_leaves_nothing_half_written(
    blow: BaseException, discover: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise blow

    monkeypatch.setattr(pictures, "save_probabilities", interrupt)
    before = set(tmp_path.rglob("*"))
    status, out, err = discover(file, "--output", tmp_path / "deep" / "answer")
    assert status == {KeyboardInterrupt: 130, MemoryError: 1}.get(blow, 2)  # type: ignore[call-overload]
    assert out == ""
    assert "Traceback" not in err
    assert set(tmp_path.rglob("*")) == before


def test_files_appear_together_or_not_at_all(tmp_path: Path) -> None:
    with written_together(tmp_path / "out", ["a", "b"]) as folder:
        (folder / "a").write_text("1")
        (folder / "b").write_text("2")
        assert not (tmp_path / "out").exists()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a", "b"}
    with (
        pytest.raises(ConfigurationError, match="Cannot write"),
        written_together(tmp_path / "late", ["a", "b"]) as folder,
    ):
        (folder / "b").write_text("2")  # a is missing
    assert not list(tmp_path.glob(".causal-arrow*"))


# The other commands


def test_check_tells_a_good_table_from_a_bad_one(run: Run, file: Path, tmp_path: Path) -> None:
    status, out, _ = run("check", file)
    assert status == 0
    assert out.startswith("table.csv: 120 observations of 6 variables")
    bad = write(tmp_path / "bad.csv", "a,b,city\n" + "".join(f"{n},{n * n % 11},town{n}\n" for n in range(30)))
    status, out, _ = run("check", bad)
    assert status == 1
    assert "city" in out
    status, out, _ = run("check", bad, "--json")
    assert json.loads(out)["usable"] is False


def test_compare_counts_missing_extra_and_reversed_edges(run: Run, tmp_path: Path) -> None:
    truth = write(tmp_path / "truth.csv", "source,target\na,b\nb,c\nc,d\n")
    guess = write(tmp_path / "guess.dot", "digraph { a -> b; c -> b; a -> d; e }")
    status, out, _ = run("compare", truth, guess, "--json")
    assert status == 0
    content = json.loads(out)
    assert content["measures"]["shd"] == 3
    assert content["missing"] == [["c", "d"]]
    assert content["extra"] == [["a", "d"]]
    assert content["reversed"] == [["b", "c"]]
    status, out, _ = run("compare", truth, truth)
    assert status == 0
    assert "missing" not in out.split("\n\n")[1].split("sid")[1]


def test_the_raw_table_of_proteins_is_read_as_its_logarithms_are(run: Run, tmp_path: Path) -> None:
    values, names = load_sachs()
    table = pd.DataFrame(values[:853], columns=list(names))  # the cells without intervention
    raw, logarithms = tmp_path / "raw.csv", tmp_path / "logarithms.csv"
    table.to_csv(raw, index=False)
    np.log(table).to_csv(logarithms, index=False)
    status, out, _ = run("discover", raw)
    assert status == 0
    assert f"Analyzed on a log scale: {', '.join(names)}" in " ".join(out.split())

    def answer(path: Path, *options: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(run("discover", path, "--json", *options)[1])
        return content

    def edges(content: dict[str, Any]) -> set[tuple[str, str]]:
        return {(edge["source"], edge["target"]) for edge in content["edges"]}

    found, expected, given = answer(raw), answer(logarithms), answer(raw, "--scale", "given")
    assert edges(found) == edges(expected) != edges(given)
    assert found["log_columns"] == list(names)
    assert given["log_columns"] == expected["log_columns"] == []
    assert any("uncertainty per edge is" in note for note in found["notes"])


def test_models_lists_what_is_bundled(run: Run) -> None:
    from causal_arrow.network import bundled_models

    status, out, _ = run("models", "--json")
    assert status == 0
    described = json.loads(out)["models"]
    assert set(described) == set(bundled_models())
    training = described["arrow-base"]["training"]["training"]
    seen = sum(run["tasks"] for run in [training, *training["earlier"]])
    assert len(training["earlier"]) > 0
    assert f"trained on {seen:,} tasks" in " ".join(run("models")[1].split())
    assert "arrow-base is the default and reads every table" in " ".join(run("models")[1].split())


def test_help_teaches_with_examples(run: Run) -> None:
    assert "discover" in run("--help")[1]
    for command in ("discover", "check", "compare"):
        status, out, _ = run(command, "--help")
        assert status == 0
        assert f"causal-arrow {command}" in out
        assert "Examples" in out
    assert run("--version")[1].startswith("causal-arrow 0.")


@pytest.mark.parametrize("command", ["benchmark", "pretrain", "simulate"])
def test_a_command_that_is_now_the_labs_says_what_to_type(command: str, run: Run) -> None:
    assert_refused(run(command, "--help"), f"is now `causal-arrow-lab {command}`: install it with `pip install")


@pytest.mark.parametrize(("command", "instead"), [("report", "docs/tools/report.py"), ("speed", "gone")])
def test_a_command_that_is_no_longer_one_says_what_to_do(command: str, instead: str, run: Run) -> None:
    assert_refused(run(command), instead)


# As the shell sees it


def test_a_closed_pipe_is_no_reason_for_a_traceback(file: Path, small_model_folder: Path) -> None:
    pipe = f"{sys.executable} -m causal_arrow discover {file} --model {small_model_folder} --json | head -n 1"
    done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True)
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr


def test_help_comes_without_loading_the_heavy_packages() -> None:
    code = (
        "import sys\nfrom causal_arrow.cli import main\n"
        "try:\n    main(['discover', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = ('torch', 'pandas', 'sklearn', 'networkx', 'matplotlib', 'scipy')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_discovering_a_small_table_takes_little_more_than_pandas_and_loads_no_more_than_it_needs(
    usual_model: str, tmp_path: Path
) -> None:
    values = np.random.default_rng(0).normal(size=(300, 8))
    pd.DataFrame(values, columns=[f"v{place}" for place in range(8)]).to_csv(tmp_path / "table.csv", index=False)
    code = (
        "import sys\nfrom causal_arrow.cli import main\n"
        f"try:\n    main(['discover', {str(tmp_path / 'table.csv')!r}, '--model', {usual_model!r}])\n"
        "except SystemExit as leaving:\n    assert not leaving.code\n"
        "print([name for name in ('sklearn', 'scipy', 'networkx', 'matplotlib') if name in sys.modules], "
        "file=sys.stderr)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def work(code: str) -> tuple[float, str]:
        """Seconds that the processor spends, whatever else is running, and what the program says."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stderr

    assert work(code)[1].strip().endswith("[]")
    libraries, seconds = (min(work(program)[0] for _ in range(3)) for program in ("import pandas", code))
    assert seconds < 2.5 * libraries


@pytest.mark.parametrize(("arguments", "status"), [(["models"], 0), (["models", "--nonsense"], 2)])
def test_the_program_ends_at_once_after_what_is_to_be_done_at_the_end(arguments: list[str], status: int) -> None:
    code = (
        "import atexit, sys, threading\n"
        "class Slow:\n    def __del__(self): print('taken apart')\n"
        "kept = Slow()\n"
        "atexit.register(print, 'at the end')\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('a thread'))).start()\n"
        f"sys.argv = ['causal-arrow', *{arguments!r}]\n"
        "from causal_arrow.cli import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == status
    assert done.stdout.endswith("a thread\nat the end\n")
    assert "Slow" not in done.stderr


def test_the_sachs_table_can_be_discovered(run: Run, usual_model: str, tmp_path: Path) -> None:
    values, names = load_sachs()
    with (tmp_path / "sachs.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, *values[:200].tolist()])
    status, out, _ = run("discover", tmp_path / "sachs.csv", "--model", usual_model, "--json")
    assert status == 0
    assert sorted(json.loads(out)["order"]) == sorted(names)


@pytest.mark.parametrize("command", ["discover", "effect", "next-experiment"])
def test_a_former_option_says_what_it_is_called_now(command: str, run: Run, file: Path) -> None:
    status, _, err = run(command, file, "--samples", 5)
    assert status == 2
    assert f"The option --samples of `{command}` is now --graphs." in err


def test_groups_of_split_rows_are_refused_before_anything_is_estimated(run: Run, file: Path) -> None:
    status, out, err = run("effect", file, "--treatment", "dose", "--outcome", "outcome", "--split", "--by", "age")
    assert (status, out) == (2, "")
    assert "There are no effects by group with --split or --instrument: leave out --by." in err
