"""Labels of rows: what experiments set, where observations come from, and what is said of labels without sense."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Arrow, read_table
from causal_arrow.errors import COMMAND_LINE, TableError
from causal_arrow.tables.report import inspect_table
from causal_arrow.web._wording import PAGE

pytestmark = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")

Run = Callable[..., tuple[int, str, str]]
N = 120
SET = ["drug" if row < 30 else "" for row in range(N)]


@pytest.fixture
def people() -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(N, 3)), columns=["age", "drug", "stay"])
    return frame.assign(ward=random.choice(["n", "s"], N), city=random.choice(["r", "o", "b"], N))


# Experiments


def mask_of(people: pd.DataFrame) -> pd.DataFrame:
    mask = pd.DataFrame(False, index=people.index, columns=people.columns)
    mask["drug"] = [label == "drug" for label in SET]
    return mask


@pytest.mark.parametrize(
    "given",
    [
        lambda people: pd.DataFrame({"set": SET}),
        lambda people: pd.DataFrame({"drug": SET}),  # labels, though the name is that of a variable
        lambda people: np.array(SET)[:, None],
        lambda people: mask_of(people),
        lambda people: mask_of(people)[["drug"]],
        lambda people: mask_of(people)[["drug"]].astype(int),
        lambda people: mask_of(people)[["drug"]].astype(float),
        lambda people: mask_of(people).astype(int),
        lambda people: mask_of(people)[["stay", "drug"]],
        lambda people: mask_of(people).assign(left_out=False),
        lambda people: mask_of(people).to_numpy().tolist(),
        lambda people: list(mask_of(people).to_numpy()),
        lambda people: [tuple(row) for row in mask_of(people).to_numpy().tolist()],
    ],
)
def test_labels_and_tables_of_true_and_false_say_the_same(given: Callable[..., Any], people: pd.DataFrame) -> None:
    table = read_table(people.assign(left_out=0.5), drop=["left_out"], interventions=given(people))
    np.testing.assert_array_equal(table.intervened, mask_of(people))
    (note,) = [finding for finding in table.findings if finding.kind == "experiments"]
    assert note.message.startswith("In 30 of 120 observations, an experiment set 'drug'. ")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["drug, stay"], r"'drug, stay' on observation 1.*: separate several by ';', as in 'drug; stay'\."),
        (["drug+age + stay"], r"separate several by ';', as in 'drug; age; stay'\."),
        (["control"], r"'control' on observation 1.*: leave the label empty if nothing was set\."),
        (["None of them"], r"expected one of 'age', 'drug', .*, or an empty label for none\."),
        (["Placebo"], "leave the label empty if nothing was set"),
        (
            ["dose"],
            r"'dose' on observation 1, .*: that column is left out\. Keep it, or leave these observations out\.",
        ),
        (["drugs"], r"did you mean 'drug'\?"),
        ([True], "got true and false without the name of a variable"),
        ([[True, False]], "true or false for each of 5 variables, got a table with 2 columns"),
    ],
)
def test_a_label_that_makes_no_sense_is_answered_with_what_was_meant(
    labels: list[Any], words: str, people: pd.DataFrame
) -> None:
    with pytest.raises(TableError, match=words):
        read_table(people.assign(dose=1.5), drop=["dose"], interventions=labels * N)


def test_a_table_of_true_and_false_with_strange_names_says_which(people: pd.DataFrame) -> None:
    with pytest.raises(TableError, match=r"has a column 'drugs', which is not a variable .*: did you mean 'drug'\?"):
        read_table(people, interventions=mask_of(people).rename(columns={"drug": "drugs"}))
    with pytest.raises(TableError, match=r"has a column 'drug', .*: that column is left out"):
        read_table(people, drop=["drug"], interventions=mask_of(people))
    ragged = [[True] * 5, [False] * 4] * (N // 2)
    with pytest.raises(TableError, match="true or false for each of 5 variables, got lists of different lengths"):
        read_table(people, interventions=ragged)


def test_zeros_and_ones_that_may_be_names_are_refused(people: pd.DataFrame) -> None:
    numbered = people.rename(columns={"age": 0, "stay": 1})
    with pytest.raises(TableError, match="may say where 'drug' was set or name the variable '1': write true and false"):
        read_table(numbered, interventions=mask_of(people)[["drug"]].astype(int))
    np.testing.assert_array_equal(
        read_table(numbered, interventions=mask_of(people)[["drug"]]).intervened, mask_of(people)
    )
    labels = [row % 2 for row in range(N)]  # of a list no column says what they are about
    for given in (labels, pd.DataFrame({"target": labels})):
        table = read_table(numbered, interventions=given)
        assert table.intervened is not None
        assert table.intervened.sum(axis=0).tolist() == [60, 0, 60, 0, 0]


def test_names_with_the_separator_are_taken_whole_or_refused(people: pd.DataFrame) -> None:
    renamed = people.rename(columns={"drug": "drug;dose"})
    labels = [label and "drug;dose" for label in SET]
    expected = mask_of(people).to_numpy()
    for given in (labels, [[label] if label else [] for label in labels], expected):
        np.testing.assert_array_equal(read_table(renamed, interventions=given).intervened, expected)
    ambiguous = people.rename(columns={"drug": "age; stay"})
    with pytest.raises(TableError, match=r"'age; stay', which may be that variable or 'age' and 'stay': rename"):
        read_table(ambiguous, interventions=["age; stay"] * N)
    assert read_table(ambiguous, interventions=mask_of(people).to_numpy()).intervened is not None


# Environments


def test_a_column_cannot_be_left_out_and_tell_environments_apart(
    people: pd.DataFrame, tmp_path: Path, run: Run
) -> None:
    with pytest.raises(TableError) as refusal:
        read_table(people, drop=["ward", "city"], environments="city")
    assert str(refusal.value) == (
        "'city' holds the environments and cannot be left out at the same time. To go on: keep 'city' and take it "
        "out of drop=[...], or leave out environments=."
    )
    assert "keep the column 'city', or choose no column of environments" in refusal.value.worded(PAGE)
    people.to_csv(tmp_path / "t.csv", index=False)
    status, _, err = run("discover", tmp_path / "t.csv", "--environments", "city", "--drop", "city")
    assert status == 2
    assert "keep 'city' and take it out of --drop, or leave out --environments." in " ".join(err.split())
    # Columns that are merely not chosen do not contradict it.
    assert read_table(people, columns=["age", "stay"], environments="city").environment == "city"


@pytest.mark.parametrize(
    ("column", "words", "spare"),
    [
        ([f"p{row}" for row in range(N)], "'site' differ in every row: group", True),
        (["x"] * N, "one environment ('site' is 'x' everywhere): expected two or more", True),
        ([None] * N, "'site' are missing in every observation", True),
        ([f"s{row % 110}" for row in range(N)], "'site' are too many (110, such as 's0')", True),
        ([row + 0.5 for row in range(N)], "'site' differ in every row", False),
        (["x", "y", None] * (N // 3), "'site' are missing in 40 observations, the first on", False),
    ],
)
def test_trouble_with_environments_is_answered_with_what_helps(
    column: list[Any], words: str, spare: bool, people: pd.DataFrame, tmp_path: Path, run: Run
) -> None:
    table = people.assign(site=column)
    with pytest.raises(TableError) as refusal:
        read_table(table, environments="site")
    python, command, page = (
        refusal.value.worded(way) if way else str(refusal.value) for way in (None, COMMAND_LINE, PAGE)
    )
    assert words in python
    assert "leave out environments=" in python
    assert "leave out --environments" in command
    assert "choose no column of environments" in page
    # The column is to be left out as well if it could be no variable either; that alone would not help.
    assert ("drop=['site']" in python) == ("--drop site" in command) == spare
    assert read_table(table, **({"drop": ["site"]} if spare else {})).observations == N
    table.to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = run("check", tmp_path / "t.csv", "--environments", "site")
    assert (status, out.count("problem:")) == (1, 1)
    assert "leave out --environments" in " ".join(out.split())


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (list(range(N)), "The environments differ in every row: group rows into a few"),
        (["x"] * N, "All observations come from one environment, 'x': expected two or more to compare."),
        ([None] * N, "The environments are missing in every observation."),
        (
            ["x", "y", None] * (N // 3),
            "The environments are missing in 40 observations, the first on observation 3: fill",
        ),
    ],
)
def test_environments_beside_a_table_are_not_called_a_column_of_it(
    labels: list[Any], words: str, people: pd.DataFrame, any_table_model_folder: Path
) -> None:
    with pytest.raises(TableError, match=f"^{re.escape(words)}") as refusal:
        Arrow(any_table_model_folder).fit(people, environments=labels)
    assert str(refusal.value).endswith("To go on: leave out environments=.")


def test_dropping_rows_until_one_environment_is_left_is_said(people: pd.DataFrame) -> None:
    table = people.assign(site=["x"] * 60 + ["y"] * 60)
    table.loc[60:, "age"] = np.nan
    with pytest.raises(TableError, match=r"observations that are left come from one environment \('site' is 'x'"):
        read_table(table, environments="site", missing="drop")
    # Rows without an environment may be dropped like others.
    table = people.assign(site=["x", "y", None] * (N // 3))
    assert read_table(table, environments="site", missing="drop").observations == 80


def test_environments_are_said_to_be_causes_only(people: pd.DataFrame) -> None:
    (note,) = [f for f in inspect_table(read_table(people, environments="city")).findings if f.kind == "environments"]
    assert note.message.endswith(
        "It can only be a cause: an edge from it means that the variable differs between environments."
    )


class Label:
    """A label that counts how often it is turned into text."""

    turned = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        Label.turned += 1
        return self.name


def test_a_column_of_environments_is_interpreted_once() -> None:
    labels = [Label(("north", "south", "west")[row % 3]) for row in range(60)]
    values = np.random.default_rng(0).normal(size=(60, 2))
    frame = pd.DataFrame(values, columns=["a", "b"]).assign(site=pd.Series(labels, dtype=object))
    counts = []
    for how in ({"kinds": {"site": "category"}}, {"environments": "site"}):
        Label.turned = 0
        table = read_table(frame, **how, strict=False)
        counts.append(Label.turned)
    assert (table.environment, table.columns[-1].levels) == ("site", ("north", "south", "west"))
    assert counts[0] == counts[1] > 0
