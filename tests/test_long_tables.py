"""Long tables: read in parts, measured in chunks, and the same answer as from a table in memory."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, Settings, discover, read_table, storage
from causal_arrow.batches import LongTable
from causal_arrow.cli import main
from causal_arrow.discovery.arranged import arrange
from causal_arrow.errors import ConfigurationError, TableError
from causal_arrow.network.arrays import quantile_table
from causal_arrow.network.basis import normal_scores, standardized_numbers
from causal_arrow.network.long import LongMeasured, normal_scores_of
from causal_arrow.network.statistics import CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE, Measured, described
from causal_arrow.progress import READING_AGAIN, WEIGHTS, share_of_all
from causal_arrow.tables import _text, sources
from small_network import random_network

pytestmark = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")


def numbers(observations: int = 3000, variables: int = 5, seed: int = 0) -> np.ndarray:
    """Columns that follow each other, with heavy tails."""
    random = np.random.default_rng(seed)
    values = random.laplace(size=(observations, variables))
    for column in range(1, variables):
        values[:, column] += 0.7 * values[:, column - 1]
    return values


def mixed_frame(observations: int = 3000) -> pd.DataFrame:
    """Numbers, a positive and skewed one, a yes or no, words and numbers with gaps."""
    values = numbers(observations)
    frame = pd.DataFrame(values, columns=list("abcde"))
    frame["b"] = np.exp(values[:, 1] / 3)
    frame["c"] = np.where(values[:, 2] > 0, "yes", "no")
    frame["d"] = np.array(["low", "some", "much"])[np.digitize(values[:, 3], [-0.5, 1.0])]
    frame.loc[::17, "d"] = None
    frame.loc[5::11, "e"] = np.nan
    return frame


@pytest.fixture
def in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is long and is read a few observations at a time."""
    for module in (sources, _text):
        monkeypatch.setattr(module, "LONG_CELLS", 0)
        monkeypatch.setattr(module, "CELLS_PER_PART", 700)


# Reading


@pytest.mark.usefixtures("in_small_parts")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather"])
def test_a_file_read_in_parts_is_the_same_table(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = mixed_frame(400)
    frame["late"] = [*np.arange(300) % 7, *(["?"] * 100)]  # words only in the last parts
    frame["late"] = frame["late"].astype(str)
    frame["large"] = 2**60 + 10**12 * np.arange(400)
    frame["flag"] = [True, False] * 200
    path = tmp_path / f"table.{ending}"
    frame.to_csv(path, index=False) if "csv" in ending else getattr(frame, f"to_{ending}")(path)
    heard: list[float] = []
    streamed = read_table(path, na=["?"], progress=lambda stage, share: heard.append(share))
    for module in (sources, _text):
        monkeypatch.setattr(module, "LONG_CELLS", 10**9)
    whole = read_table(path, na=["?"])
    assert streamed.columns == whole.columns
    assert [finding.message for finding in streamed.findings] == [finding.message for finding in whole.findings]
    np.testing.assert_array_equal(streamed.values, whole.values)
    assert len(heard) > 3
    assert 0 < max(heard) <= 1


@pytest.mark.usefixtures("in_small_parts")
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda lines: [*lines[:350], lines[350] + ",1", *lines[351:]], "Line 351 of 'table.csv' has 6 fields"),
        (lambda lines: [*lines[:350], "1,2,3,4,abc", *lines[351:]], "'abc' on line 351"),
        (lambda lines: [*lines[:350], "1,2,3,4,inf", *lines[351:]], "the first on line 351"),
        (lambda lines: [*lines[:350], '1,2,3,4,"5', *lines[351:]], "A quote that opens on line 351"),
    ],
)
def test_a_bad_line_far_down_is_named(spoil, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.csv"
    pd.DataFrame(numbers(400), columns=list("abcde")).to_csv(path, index=False)
    path.write_text("\n".join(spoil(path.read_text().splitlines())) + "\n")
    with pytest.raises(TableError, match=says):
        read_table(path)
    with pytest.raises(SystemExit) as ended:
        main(["discover", str(path), "--output", str(tmp_path / "answer")])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "answer").exists()


@pytest.mark.usefixtures("in_small_parts")
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_truncated_file_is_one_sentence(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{ending}"
    getattr(pd.DataFrame(numbers(400), columns=list("abcde")), f"to_{ending}")(path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(TableError, match=f"'table.{ending}' is not a readable .{ending} file") as raised:
        read_table(path)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("in_small_parts")
def test_too_little_room_is_told_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    pd.DataFrame(numbers(400), columns=list("abcde")).to_csv(path, index=False)
    monkeypatch.setattr(storage, "free_memory", lambda: 1000)
    with pytest.raises(TableError, match=r"holds about 402 observations of 5 variables.*of memory, and 0\.0 GB are"):
        read_table(path)
    monkeypatch.setattr(storage, "IN_MEMORY_BYTES", 1000)
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda place: SimpleNamespace(free=10))
    with pytest.raises(TableError, match=r"for temporary files.*TMPDIR"):
        read_table(path)


def test_a_table_on_disk_is_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = mixed_frame()
    network = random_network(any_table=True)
    settings = Settings(network, max_rows=500)
    in_memory = discover(frame, settings).answer
    monkeypatch.setattr(storage, "IN_MEMORY_BYTES", 1000)
    on_disk = discover(frame, settings)
    assert isinstance(on_disk.table.values.base, np.memmap) or isinstance(on_disk.table.values, np.memmap)
    np.testing.assert_array_equal(in_memory.edge_probabilities, on_disk.answer.edge_probabilities)


# Measuring


def long_table(values: np.ndarray, levels: list[int], intervened: np.ndarray | None, drawn: np.ndarray) -> LongTable:
    return LongTable(
        len(values),
        lambda index: values[:, index].copy(),
        drawn,
        np.array(levels),
        not np.isnan(values).any(),
        intervened,
    )


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("with_levels", [False, True])
@pytest.mark.parametrize("with_holes", [False, True])
@pytest.mark.parametrize("with_experiments", [False, True])
def test_statistics_in_passes_are_those_of_the_whole_table(
    signs: bool, with_levels: bool, with_holes: bool, with_experiments: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(1)
    values = numbers(1500, 6)
    levels = [0, 0, 4, 0, 0, 3] if with_levels else [0] * 6
    if with_levels:
        values[:, 2] = np.array([2, 0, 3, 1])[np.digitize(values[:, 2], [-1, 0.3, 1.0])]
        values[:, 5] = np.digitize(values[:, 5], [-0.5, 0.9])
    if with_holes:
        values[random.random(values.shape) < 0.1] = np.nan
    mask = random.random(values.shape) < 0.05 if with_experiments else None
    long = long_table(values, levels, mask, np.arange(1500))
    groups = CHANNELS_OF_ANY_TABLE, STATISTICS_OF_ANY_TABLE
    drawn = long.observations_drawn()
    drawn = replace(drawn, values=standardized_numbers(drawn))
    whole = described(Measured(drawn, groups[0], None, signs), groups[1])
    answers = []
    for cells_per_chunk in (700, 10**6):
        monkeypatch.setattr(storage, "CELLS_PER_CHUNK", cells_per_chunk)
        answers.append(described(LongMeasured(long, *groups, signs), groups[1]))
    for cells, statistics in answers:
        # Filled holes differ in their last digits, and where two are that near, their ranks do.
        np.testing.assert_allclose(statistics, whole[1], atol=5e-4 if with_holes else 2e-5)
        np.testing.assert_allclose(cells, whole[0], atol=2e-2 if with_holes else 2e-4)
    np.testing.assert_allclose(answers[0][1], answers[1][1], atol=5e-4 if with_holes else 1e-5)


def test_normal_scores_by_one_sort_are_those_by_search() -> None:
    column = np.round(numbers(2000, 2)[:, 1], 1).astype(np.float32)  # with ties
    expected = normal_scores(column[None, :, None])[0, :, 0]
    np.testing.assert_allclose(normal_scores_of(column, quantile_table(2000)), expected, atol=1e-6)


def test_statistics_are_those_of_all_observations_and_cells_those_of_the_drawn() -> None:
    values, drawn = numbers(), np.arange(0, 3000, 10)
    measured = LongMeasured(long_table(values, [0] * 5, None, drawn), ["values"], ["correlations"])
    np.testing.assert_allclose(measured.correlations[0, 0], np.corrcoef(values.T), atol=1e-6)
    scaled = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    np.testing.assert_allclose(measured.cells[0, 0], scaled[drawn].clip(-5, 5), atol=1e-5)
    assert measured.observations == 300


# Answers


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.usefixtures("in_small_parts")
def test_the_answer_is_the_same_in_memory_and_from_a_file(ending: str, tmp_path: Path) -> None:
    frame = mixed_frame()
    path = tmp_path / f"table.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    settings = Settings(random_network(any_table=True), max_rows=300)
    in_memory, streamed = discover(frame, settings).answer, discover(path, settings).answer
    np.testing.assert_allclose(streamed.edge_probabilities, in_memory.edge_probabilities, atol=1e-4)
    assert streamed.table_checksum == in_memory.table_checksum


@pytest.mark.parametrize("missing", ["drop", "impute"])
def test_a_network_of_numbers_reads_long_tables_with_gaps_through_its_remedies(
    missing: str, small_model_folder: Path
) -> None:
    frame = mixed_frame()[["a", "b", "c", "e"]]
    with pytest.raises(TableError, match="missing"):
        Arrow(small_model_folder, max_rows=500).fit(frame)
    arrow = Arrow(small_model_folder, max_rows=500, missing=missing).fit(frame)
    assert arrow.table_.observations == (3000 if missing == "impute" else int(frame.notna().all(axis=1).sum()))


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=1)


def renamed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(d=frame["d"].map({"low": "z", "some": "y", "much": "x"}))


@pytest.mark.parametrize(
    "change",
    [
        shuffled,
        renamed,
        lambda frame: frame[list("cebda")],
        lambda frame: frame.assign(a=frame["a"] * 2.0**30),
        lambda frame: frame.assign(a=-frame["a"]),
    ],
    ids=["shuffle", "levels", "columns", "units", "sign"],
)
def test_order_units_signs_and_names_of_levels_change_nothing(change) -> None:
    frame = mixed_frame()
    arrow = Arrow(random_network(any_table=True), max_rows=300, scale="given")
    first = arrow.fit(frame).edge_probabilities_
    second = arrow.fit(change(frame)).edge_probabilities_.loc[first.index, first.columns]
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_chunks_of_cells_and_of_observations_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = mixed_frame()
    network = random_network(any_table=True)
    answers = []
    for cells, step in ((10**6, None), (1000, 70), (333, 299)):
        monkeypatch.setattr(storage, "CELLS_PER_CHUNK", cells)
        settings = Settings(network, max_rows=300, observations_per_chunk=step)
        answers.append(discover(frame, settings).answer.edge_probabilities)
    for other in answers[1:]:
        np.testing.assert_allclose(answers[0], other, atol=1e-5)


def test_the_drawn_observations_are_drawn_evenly() -> None:
    # Few different rows, each very often: a draw by content must not take all of one kind and none of another.
    random = np.random.default_rng(0)
    values = random.integers(0, 2, size=(20_000, 3)).astype(float)
    values[:, 2] = random.random(20_000) < 0.1
    arranged = arrange(read_table(values), 4000)
    assert arranged.is_long
    assert len(set(arranged.rows.tolist())) == 4000
    np.testing.assert_allclose(values[arranged.rows].mean(axis=0), values.mean(axis=0), atol=0.03)


def test_a_table_of_as_many_observations_as_are_read_is_read_whole(small_model_folder: Path) -> None:
    values = numbers(400)
    whole = discover(values, Settings(small_model_folder, max_rows=400)).answer
    usual = discover(values, Settings(small_model_folder)).answer
    np.testing.assert_array_equal(whole.edge_probabilities, usual.edge_probabilities)
    assert "observations_read" not in {finding.kind for finding in whole.findings}


def test_resampled_long_tables_say_how_stable_edges_are(small_model_folder: Path) -> None:
    values = numbers(600)
    arrow = Arrow(small_model_folder, max_rows=100).fit(values)
    stability = arrow.stability(n_resamples=3)
    assert stability.resamples == 3
    assert stability.frequencies.shape == (5, 5)


# What is said


def test_the_output_says_how_many_observations_were_read(
    small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    pd.DataFrame(numbers(400), columns=list("abcde")).to_csv(path, index=False)
    with pytest.raises(SystemExit) as ended:
        main(["discover", str(path), "--model", str(small_model_folder), "--max-rows", "100"])
    assert not ended.value.code
    assert (
        "Statistics of all 400 observations; 100 of them, drawn evenly, are read one by one." in capsys.readouterr().out
    )


@pytest.mark.parametrize("rows", [19, 0, 2.5, True, "many"])
def test_a_wrong_number_of_rows_is_refused(rows: object) -> None:
    with pytest.raises(ConfigurationError, match="Expected max_rows to be a whole number"):
        Settings(max_rows=rows)


def test_a_bar_with_the_time_left_appears_on_a_terminal(small_model_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pd.DataFrame(numbers(30_000), columns=list("abcde")).to_parquet(path)
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "causal_arrow",
        "discover",
        str(path),
        "--model",
        str(small_model_folder),
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 10_000):
                shown += part
        except OSError:  # how a terminal ends whose other side is closed
            pass
        output = running.stdout.read() if running.stdout else b""
    os.close(ours)
    assert running.returncode == 0, shown.decode()
    assert output.startswith(b"{")
    assert b"Measuring all observations" in shown
    assert b"Reading cells" in shown
    assert b"0:00:0" in shown  # the time left


def test_the_share_of_all_work_only_grows() -> None:
    stages = list(WEIGHTS)
    for first in range(len(stages)):
        shares: dict[str, float] = {}
        seen = []
        for stage in stages[first:]:
            for share in (0.0, 0.5, 1.0):
                shares[stage] = share
                seen.append(share_of_all(shares))
        assert seen == sorted(seen)
        assert seen[-1] == pytest.approx(1.0)
        # What nobody knew of before it began is work of its own.
        again = [share_of_all({**shares, READING_AGAIN: share}) for share in (0.0, 0.5, 1.0)]
        assert again == sorted(again)
        assert again[0] < 1
        assert again[-1] == pytest.approx(1.0)


# About as many observations as variables


@pytest.mark.parametrize(
    ("observations", "variables", "read"),
    [
        (300, 300, 285),
        (286, 300, 285),
        (314, 300, 285),
        (285, 300, 285),
        (315, 300, 315),
        (256, 256, 256),
        (20, 300, 20),
    ],
)
def test_a_wide_table_with_about_as_many_observations_is_read_without_some(
    observations: int, variables: int, read: int
) -> None:
    table = read_table(np.random.default_rng(0).standard_normal((observations, variables)))
    arranged = arrange(table)
    assert not arranged.is_long
    assert len(arranged.values) == read
    asked = arrange(table, observations)
    assert not asked.is_long
    assert len(asked.values) == observations


def test_which_observations_are_left_out_depends_neither_on_their_order_nor_on_signs_and_units() -> None:
    generator = np.random.default_rng(1)
    values = generator.standard_normal((300, 300))
    values[:, 0] = values[:, 0] > 1
    scales = np.where(np.arange(300) % 3, -2.0, 1.0)
    kept = arrange(read_table(values))
    again = arrange(read_table(values[generator.permutation(300)] * scales))
    assert not kept.is_long
    first, second = ({tuple(row) for row in one.values[:, np.argsort(one.arrangement)]} for one in (kept, again))
    assert len(first) == 285
    assert {tuple(np.array(row) * scales) for row in first} == second


def test_the_answer_says_that_some_observations_were_left_out() -> None:
    values = np.random.default_rng(2).standard_normal((260, 260))
    answer = discover(values, Settings(model=random_network())).answer
    said = [finding.message for finding in answer.findings if finding.kind == "observations_read"]
    assert said == [
        "247 of the 260 observations are read, drawn evenly: accuracy drops where there are about as many rows as "
        "variables."
    ]
    assert answer.observations == 260
    whole = discover(values, Settings(model=random_network(), max_rows=260)).answer
    assert "observations_read" not in {finding.kind for finding in whole.findings}
