"""Laws of the program that reruns answers: it agrees with the records, and notices records that were changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

import skeptic
from causal_arrow.errors import BenchmarkError
from causal_arrow_lab.benchmarks.records import Record


def test_answers_that_are_run_again_agree_with_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    rows, methods = ["networks/MAGIC-NIAB", "sachs/pooled-raw"], ["arrow", "boss", "r2sort"]
    assert skeptic.main(["--rows", *rows, "--methods", *methods, "--datasets", "1", "--seed", "7"]) == 0
    said = capsys.readouterr().out
    assert said.count("agrees") == 6
    assert "All 6 answers agree" in said


def test_a_changed_record_is_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def improved(record: Record) -> Record:
        return replace(record, measures={**record.measures, "f1": record.measures["f1"] + 0.03})

    records = [improved(record) for record in skeptic.records_of("benchmarks") if record.suite == "sachs"]
    monkeypatch.setattr(skeptic, "records_of", lambda name: records)
    assert skeptic.main(["--rows", "sachs/pooled-raw", "--methods", "r2sort", "--datasets", "1"]) == 2
    told = capsys.readouterr()
    assert "DIFFERS" in told.out
    assert "1 of 1 rows and methods differ" in told.err


@pytest.mark.parametrize(("changes", "status"), [((0.1, -0.1), 0), ((0.2, 0.2), 2)])
def test_of_unstable_methods_means_are_compared(
    changes: tuple[float, float], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [record for record in skeptic.records_of("benchmarks") if record.suite == "sachs" and record.index < 2]

    def changed(record: Record) -> Record:
        return replace(record, measures={**record.measures, "f1": record.measures["f1"] + changes[record.index]})

    monkeypatch.setattr(skeptic, "records_of", lambda name: [changed(record) for record in kept])
    assert skeptic.main(["--rows", "sachs/pooled-raw", "--methods", "boss", "--datasets", "2"]) == status


def test_datasets_are_those_that_every_method_answered() -> None:
    chosen = skeptic.chosen_records(["networks/ECOLI70"], ["arrow", "dagma"], 5, seed=3)
    assert len(chosen) == 10
    assert {record.index for record in chosen if record.method == "arrow"} == {
        record.index for record in chosen if record.method == "dagma"
    }
    assert chosen != skeptic.chosen_records(["networks/ECOLI70"], ["arrow", "dagma"], 5, seed=4)
    with pytest.raises(BenchmarkError, match="expected 5000"):
        skeptic.chosen_records(["networks/ECOLI70"], ["arrow"], 5000, seed=0)
