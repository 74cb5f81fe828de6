"""The command line where things go wrong around it: crowded folders, full disks, closed pipes, ctrl-C, kills."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from causal_arrow.cli.program import PROGRAM, StandardOutput
from causal_arrow.errors import ConfigurationError
from causal_arrow.output import UNFINISHED, written_together

Run = Callable[..., tuple[int, str, str]]


def assert_one_sentence(result: tuple[int, str, str], hint: str) -> None:
    status, out, err = result
    assert (status, out) == (2, "")
    assert err.startswith("causal-arrow: ")
    assert err.count("\n") == 1
    assert hint in err


@pytest.fixture
def file(table: pd.DataFrame, tmp_path: Path) -> Path:
    table.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


# Several runs at a time


@pytest.mark.parametrize("others", [(), ("notes.txt",)])
def test_of_two_runs_into_one_folder_the_first_to_finish_wins(others: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in others:
        out.mkdir()
        (out / name).write_text("mine")
    with (  # noqa: PT012
        pytest.raises(ConfigurationError, match="--overwrite"),
        written_together(out, ["a", "b"]) as slow,
    ):
        for name in ("a", "b"):
            (slow / name).write_text("slow")
        with written_together(out, ["a", "b"]) as quick:
            for name in ("a", "b"):
                (quick / name).write_text("quick")
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "a": "quick",
        "b": "quick",
        **dict.fromkeys(others, "mine"),
    }
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


WRITER = """
import sys, time
from pathlib import Path
from causal_arrow.output import written_together
from causal_arrow.errors import ConfigurationError
me, out, start = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
names = [f"file-{place}" for place in range(20)]
try:
    with written_together(out, names, overwrite="overwrite" in sys.argv) as folder:
        for name in names:
            (folder / name).write_text(me)
        print("ready", flush=True)
        while not start.exists():
            time.sleep(0.001)
except ConfigurationError:
    print("refused")
else:
    print("done")
"""


def writer(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_of_many_runs_at_once_one_succeeds_and_files_are_never_mixed(
    existing: bool, overwrite: bool, tmp_path: Path
) -> None:
    out, start = tmp_path / "deep" / "out", tmp_path / "start"
    if existing:
        out.mkdir(parents=True)
    processes = [writer(me, out, start, *(["overwrite"] if overwrite else [])) for me in range(5)]
    for process in processes:
        assert read_line(process) == "ready"
    start.touch()
    ends = [read_line(process) for process in processes]
    for process in processes:
        process.communicate()
    assert ends.count("done") == (len(processes) if overwrite else 1)
    contents = {path.read_text() for path in out.iterdir()}
    assert len(list(out.iterdir())) == 20
    assert len(contents) == 1
    assert overwrite or ends[int(contents.pop())] == "done"
    assert {path.name for path in tmp_path.rglob("*") if path.name.startswith(".")} == set()


def test_what_a_killed_run_leaves_is_removed_and_what_a_running_one_has_is_not(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    out, start = tmp_path / "out", tmp_path / "start"
    killed, running = writer("killed", tmp_path / "other", start), writer("running", out, start)
    assert (read_line(killed), read_line(running)) == ("ready", "ready")
    killed.kill()
    killed.communicate()
    assert len(list(tmp_path.glob(f"{UNFINISHED}*"))) == 2
    (tmp_path / f"{UNFINISHED}notes.txt").write_text("a file, and not ours")
    with written_together(tmp_path / "third", ["a"]) as folder:
        (folder / "a").write_text("")
    assert len([path for path in tmp_path.glob(f"{UNFINISHED}*") if path.is_dir()]) == 1
    assert (tmp_path / f"{UNFINISHED}notes.txt").exists()
    start.touch()
    assert read_line(running) == "done"
    running.communicate()
    assert {path.name for path in tmp_path.iterdir()} == {"out", "third", "start", f"{UNFINISHED}notes.txt"}


def test_a_new_folder_has_the_permissions_of_any_new_folder(tmp_path: Path) -> None:
    with written_together(tmp_path / "out", ["a"]) as folder:
        (folder / "a").write_text("")
    (tmp_path / "usual").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


# Names for the output


@pytest.mark.parametrize(
    "command",
    [
        ("discover", "table.csv", "--output"),
        ("discover-many", "table.csv", "--output"),
    ],
    ids=" ".join,
)
def test_an_empty_name_is_not_the_current_folder(
    command: tuple[str, ...], run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert_one_sentence(run(*command, ""), "empty")
    assert {path.name for path in file.parent.iterdir()} == {"table.csv"}


@pytest.mark.parametrize("name", ["a" * 300, "new/" + "a" * 300, "ä" * 200, "a/" * 3000, "table.csv", "table.csv/a"])
def test_a_name_that_cannot_be_a_folder_is_refused_before_any_work(
    name: str, run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setitem(sys.modules, "torch", None)  # whoever begins to work would not get far
    assert_one_sentence(run("discover", file, "--output", name), "")
    assert {path.name for path in file.parent.iterdir()} == {"table.csv"}


# Standard output


COMMANDS_THAT_PRINT = {
    "help": ["--help"],
    "version": ["--version"],
    "discover": ["discover", "table.csv", "--model", "MODEL"],
    "discover in JSON": ["discover", "table.csv", "--json", "--model", "MODEL"],
    "effect": ["effect", "table.csv", "--outcome", "outcome", "--graphs", "5", "--model", "MODEL"],
    "next-experiment": ["next-experiment", "table.csv", "--graphs", "5", "--model", "MODEL"],
    "response": ["response", "table.csv", "--lags", "1", "--cause", "dose", "--effect", "outcome", "--model", "MODEL"],
    "discover-many": ["discover-many", "--help"],
    "check": ["check", "table.csv"],
    "serve": ["serve", "--port", "0", "--no-browser", "--model", "MODEL"],
    "compare": ["compare", "graph.csv", "graph.csv"],
    "models": ["models"],
    "causes": ["causes", "table.csv", "--outcome", "outcome", "--model", "MODEL"],
    "mcp": ["mcp", "--help"],
    "install-skill": ["install-skill", "--help"],
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
@pytest.mark.parametrize("unbuffered", [True, False])
@pytest.mark.parametrize("command", COMMANDS_THAT_PRINT)
def test_a_full_device_is_one_sentence_whatever_the_command(
    command: str,
    unbuffered: bool,
    run: Run,
    file: Path,
    small_model_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(file.parent)
    Path("graph.csv").write_text("source,target\na,b\n")
    with open("/dev/full", "wb") as full:
        stream = io.TextIOWrapper(full, encoding="utf-8", write_through=unbuffered)
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "__stdout__", stream)
        arguments = [str(small_model_folder) if part == "MODEL" else part for part in COMMANDS_THAT_PRINT[command]]
        status, _, err = run(*arguments)
    assert status == 2
    assert err.splitlines()[-1] == "causal-arrow: Cannot write to standard output: No space left on device."
    assert "Traceback" not in err


def test_every_command_is_tried_on_a_full_device() -> None:
    assert set(PROGRAM.commands) <= set(COMMANDS_THAT_PRINT)


def program(*arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "causal_arrow", *map(str, arguments)]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, **settings)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_a_full_device_is_one_sentence_as_the_shell_sees_it() -> None:
    with open("/dev/full", "w") as full:
        done = program("models", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "causal-arrow: Cannot write to standard output: No space left on device.\n"


def test_a_pipe_that_is_closed_from_the_start_is_met_with_silence() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        done = program("models", stdout=pipe)
    assert done.stderr == ""


def test_a_program_without_standard_output_does_its_work() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m causal_arrow models >&-"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_json_stays_json_where_only_ascii_can_be_printed() -> None:
    content = {"variables": ["größe", "年齢", "𝒳", "\udcff"]}
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    output = StandardOutput(stream)
    output.write(json.dumps(content, ensure_ascii=False))
    output.flush()
    assert json.loads(output.buffer.getvalue()) == content  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", [["discover"], ["check"], ["effect", "--outcome", "outcome", "--graphs", "20"]])
def test_where_the_locale_is_that_of_c_everything_is_printed(
    command: list[str], file: Path, small_model_folder: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "causal_arrow", command[0], file, *command[1:], "--model", small_model_folder],
        capture_output=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )
    assert (done.returncode, b"bug" in done.stderr, b"Warning" in done.stderr) == (0, False, False), done.stderr
    assert done.stdout.isascii()


def test_where_the_home_folder_cannot_be_written_nobody_hears_of_it(
    file: Path, small_model_folder: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "causal_arrow", "discover", file, "--output", tmp_path / "answer"]
    nowhere = {"HOME": f"{file}/home", "XDG_CACHE_HOME": f"{file}/cache", "XDG_CONFIG_HOME": "", "MPLCONFIGDIR": ""}
    done = subprocess.run(
        [*command, "--model", small_model_folder], capture_output=True, text=True, env={**os.environ, **nowhere}
    )
    assert done.returncode == 0, done.stderr
    assert "matplotlib" not in done.stderr.lower()


@pytest.mark.parametrize("kibibytes", [250_000, 400_000, 800_000])
def test_with_little_address_space_there_is_an_answer_or_a_sentence(
    kibibytes: int, file: Path, small_model_folder: Path
) -> None:
    limited = f'ulimit -v {kibibytes}; exec "$@"'
    command = [sys.executable, "-m", "causal_arrow", "discover", file, "--model", small_model_folder]
    done = subprocess.run(["bash", "-c", limited, "sh", *command], capture_output=True, text=True)
    assert done.returncode in (0, 1, 2)
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_working_directory_that_is_gone_is_one_sentence(file: Path, small_model_folder: Path) -> None:
    gone = file.parent / "gone"
    gone.mkdir()
    command = [sys.executable, "-m", "causal_arrow", "discover", file, "--model", small_model_folder, "--output", "out"]
    done = subprocess.run(
        ["bash", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *command], capture_output=True, text=True, cwd=gone
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("causal-arrow: Cannot write to 'out'")


def test_more_graphs_than_fit_into_memory_are_refused_with_the_option_to_change(
    run: Run, file: Path, small_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from causal_arrow import storage

    monkeypatch.setattr(storage, "free_memory", lambda: 10**6)
    assert_one_sentence(run("discover", file, "--graphs", 10**6, "--model", small_model_folder), "--graphs")


# Terminals


def test_names_with_control_characters_reach_no_terminal(small_model_folder: Path, tmp_path: Path, run: Run) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(100, 7)) @ random.normal(size=(7, 7))
    names = ["red\x1b[31m", "title\x1b]0;gone", "one\x9b31m", "plain", "a\rb", "c\u202ed", "e\u2028f"]
    pd.DataFrame(values, columns=names).to_parquet(tmp_path / "table.parquet")
    (manifest := tmp_path / "tables.csv").write_text(
        "table,name\n" + "".join(f"table.parquet,{name}\n" for name in ("one", "\x1b[31m")), encoding="utf-8"
    )
    (tmp_path / "graph.txt").write_text('dag { "red\x1b[31m" -> plain }', encoding="utf-8")
    for command in (
        ("discover", tmp_path / "table.parquet", "--model", small_model_folder, "--require", "plain -> red\x1b[31m"),
        ("check", tmp_path / "table.parquet", "--model", small_model_folder),
        ("discover", tmp_path / "table.parquet", "--model", small_model_folder, "--json"),
        ("discover-many", manifest, "--output", tmp_path / "many", "--jobs", 1, "--model", small_model_folder),
        ("compare", tmp_path / "graph.txt", tmp_path / "graph.txt"),
        ("effect", tmp_path / "table.parquet", "--outcome", "plain", "--graphs", 20, "--model", small_model_folder),
    ):
        status, out, err = run(*command)
        assert status == 0, err
        assert not set(out + err) & set("\x1b\x9b\r\u202e\u2028")
    pd.DataFrame(values, columns=names).assign(**{"still\x1b[2J": 1}).to_parquet(tmp_path / "table.parquet")
    assert_one_sentence(
        run("discover", tmp_path / "table.parquet", "--model", small_model_folder), "--drop 'still\\x1b"
    )


# Ctrl-C


INTERRUPTED_IMPORTS = {
    "interrupted": "os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
    "interrupted where another error is made of it": (
        "\ntry:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"
        "\nexcept KeyboardInterrupt:\n    raise ImportError('multiarray failed to import')"
    ),
}


def interrupting(folder: Path, module: str, code: str) -> dict[str, str]:
    """An environment in which importing a module runs this code."""
    (folder / f"{module}.py").write_text(f"import atexit, os, signal, time\n{code}\n")
    home = Path(sys.modules["causal_arrow"].__file__ or "").parent.parent
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{home}"}


@pytest.mark.parametrize("how", INTERRUPTED_IMPORTS)
@pytest.mark.parametrize(("module", "command"), [("typer", ["models"]), ("pandas", ["check", "table.csv"])])
@pytest.mark.parametrize("start", [["-m", "causal_arrow"], ["-c", "from causal_arrow.cli import main; main()"]])
def test_ctrl_c_while_packages_load_is_silent(
    how: str, module: str, command: list[str], start: list[str], tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    environment = interrupting(tmp_path, module, INTERRUPTED_IMPORTS[how])
    done = subprocess.run(
        [sys.executable, *start, *command], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(("sent", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_command_that_is_stopped_while_it_writes_files_leaves_none(
    sent: str, status: int, file: Path, small_model_folder: Path
) -> None:
    stop = f"os.kill(os.getpid(), signal.{sent}); time.sleep(9)"
    done = subprocess.run(
        [sys.executable, "-m", "causal_arrow", "discover", file, "--output", "out", "--model", small_model_folder],
        capture_output=True,
        env=interrupting(file.parent, "matplotlib", stop),  # which pictures import
        cwd=file.parent,
    )
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert {path.name for path in file.parent.iterdir()} - {"__pycache__"} == {"table.csv", "matplotlib.py"}


def test_ctrl_c_while_python_shuts_down_is_silent(tmp_path: Path) -> None:
    late = "atexit.register(lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(9)))\nraise ImportError"
    done = subprocess.run(
        [sys.executable, "-m", "causal_arrow", "models"],
        capture_output=True,
        text=True,
        env=interrupting(tmp_path, "typer", late),
    )
    assert done.returncode == -signal.SIGINT  # which a shell calls 130
    assert "KeyboardInterrupt" not in done.stderr


def test_whoever_starts_us_with_ctrl_c_ignored_is_obeyed(tmp_path: Path) -> None:
    code = "os.kill(os.getpid(), signal.SIGINT)\nraise ImportError('this far')"
    done = subprocess.run(
        ["bash", "-c", f"trap '' INT; exec {sys.executable} -m causal_arrow models"],
        capture_output=True,
        text=True,
        env=interrupting(tmp_path, "typer", code),
    )
    assert done.returncode == 1
    assert "this far" in done.stderr


def test_a_run_within_python_leaves_ctrl_c_as_it_was(run: Run) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert run("--version")[0] == 0
    assert signal.getsignal(signal.SIGINT) is before


# The net below


@pytest.mark.parametrize(
    ("blow", "sentence"),
    [
        (OSError(5, "Input/output error"), "Cannot read or write: Input/output error."),
        (PermissionError(13, "Permission denied", "secret.csv"), "'secret.csv': Permission denied."),
    ],
)
def test_what_the_system_refuses_is_one_sentence(
    blow: OSError, sentence: str, run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from causal_arrow.tables import reading

    def fail(*_: object, **__: object) -> None:
        raise blow

    monkeypatch.setattr(reading, "read_table", fail)
    assert_one_sentence(run("check", file), sentence)


@pytest.mark.parametrize(
    "blow",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    ],
)
def test_too_little_memory_is_not_a_bug(blow: Exception, run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from causal_arrow.tables import reading
    from causal_arrow.web._wording import failure

    def fail(*_: object, **__: object) -> None:
        raise blow

    monkeypatch.setattr(reading, "read_table", fail)
    status, _, err = run("check", file)
    assert status == 1
    assert "not enough memory" in err
    assert "bug" not in err
    assert failure(blow).startswith("There is not enough memory for this")
