"""Tables as people have them: kinds of columns, holes, experiments, environments and hidden causes, from end to end."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Answer, Arrow, ArrowWarning, Knowledge, Settings, discover
from causal_arrow.discovery import exports, pictures, summary
from causal_arrow.errors import ArrowError, ConfigurationError, KnowledgeError, TableError
from causal_arrow.graphs.files import read_graph
from causal_arrow.tables.reading import read_table
from causal_arrow.tables.report import inspect_table

pytestmark = pytest.mark.filterwarnings("ignore::causal_arrow.errors.ArrowWarning")

Run = Callable[..., tuple[int, str, str]]

SIZES = ["small", "medium", "large"]


@pytest.fixture
def people() -> pd.DataFrame:
    """Numbers, categories, yes and no, levels in an order, with holes; 160 observations."""
    random = np.random.default_rng(3)
    n = 160
    age, noise = random.normal(size=(2, n))
    city = random.choice(["Rome", "Oslo", "Bonn", "Lima"], n, p=[0.4, 0.3, 0.2, 0.1])
    dose = age + 2 * (city == "Rome") + 0.5 * noise
    frame = pd.DataFrame(
        {
            "age": 40 + 9 * age,
            "city": city,
            "dose": dose,
            "smoker": np.where(random.random(n) < 0.3, "yes", "no"),
            "size": np.array(SIZES)[np.digitize(dose + random.normal(size=n), [0, 1.5])],
            "ill": random.random(n) < 1 / (1 + np.exp(-dose)),
        }
    )
    frame.loc[random.random(n) < 0.2, "dose"] = np.nan
    frame.loc[random.random(n) < 0.3, "city"] = None
    return frame


@pytest.fixture
def targets(people: pd.DataFrame) -> list[str | None]:
    """What was set in each observation of `people`."""
    random = np.random.default_rng(4)
    return random.choice(np.array(["", "dose", "age; dose", None], dtype=object), len(people)).tolist()


@pytest.fixture
def able(any_table_model_folder: Path) -> Arrow:
    return Arrow(any_table_model_folder, ordered={"size": SIZES})


def distance(first: Arrow, second: Arrow) -> float:
    """How far apart two answers on the same variables are, edges and hidden causes."""
    names = list(first.answer_.names)
    pairs = (
        (first.edge_probabilities_, second.edge_probabilities_),
        (first.confounding_probabilities_, second.confounding_probabilities_),
    )
    return max(float((a - b.loc[names, names]).abs().to_numpy().max()) for a, b in pairs)


# Laws


def test_renaming_levels_changes_nothing(able: Arrow, people: pd.DataFrame) -> None:
    usual = able.fit(people)
    words = {"Rome": "z", "Oslo": "7", "Bonn": "a", "Lima": "Bonn"}
    renamed = people.assign(city=people["city"].map(words), smoker=people["smoker"].map({"yes": "ja", "no": "nein"}))
    other = Arrow(able.model, ordered=able.ordered).fit(renamed)
    assert distance(usual, other) < 1e-4
    numbers = {"Rome": 3.0, "Oslo": 1.0, "Bonn": 2.0, "Lima": 0.0}
    renumbered = people.assign(city=people["city"].map(numbers))
    other = Arrow(able.model, ordered=able.ordered, kinds={"city": "category"}).fit(renumbered)
    assert distance(usual, other) < 1e-4
    # As numbers the levels would count: the law is one that can fail.
    as_numbers = Arrow(able.model, ordered=able.ordered, kinds={"city": "number"}).fit(renumbered)
    assert distance(usual, as_numbers) > 1e-3


def test_the_two_values_of_a_column_change_nothing(able: Arrow, people: pd.DataFrame) -> None:
    usual = able.fit(people)
    for no, yes in ((0, 1), (1, 2), (0, 100), (-1, 1), (2, 1), (1e-9, 1e9), ("b", "a"), (False, True), ("0,5", "1,5")):
        other = Arrow(able.model, ordered=able.ordered)
        other.fit(people.assign(smoker=people["smoker"].map({"no": no, "yes": yes})))
        assert distance(usual, other) < 1e-4
        assert other.table_.columns[3].kind == "binary"
        assert not other.answer_.log_columns
    # As numbers they would be read otherwise: the law is one that can fail.
    numbers = people.assign(smoker=people["smoker"].map({"no": 1, "yes": 2}))
    as_numbers = Arrow(able.model, ordered=able.ordered, kinds={"smoker": "number"}).fit(numbers)
    assert distance(usual, as_numbers) > 1e-3


KNOWN: list[dict[str, Any]] = [
    {"roots": ["smoker"]},
    {"tiers": [["smoker", "age"], ["ill"]]},
    {"forbidden": ["* -> smoker", "ill -> dose", "dose -> age", "city -> ill"], "leaves": ["ill"]},
]


@pytest.mark.parametrize("knowledge", KNOWN)
def test_swapping_0_and_1_changes_nothing_under_knowledge(
    able: Arrow, people: pd.DataFrame, knowledge: dict[str, Any]
) -> None:
    binary = people.assign(smoker=people["smoker"].map({"no": 0, "yes": 1}))
    swapped = binary.assign(smoker=1 - binary["smoker"])
    one, other = (able.fit(each).refine(knowledge=knowledge).edge_probabilities_ for each in (binary, swapped))
    assert np.abs(one.to_numpy() - other.to_numpy()).max() < 1e-5


def test_a_pandas_category_a_text_and_a_declared_number_are_the_same_column(able: Arrow, people: pd.DataFrame) -> None:
    as_text = able.fit(people).edge_probabilities_
    people["city"] = pd.Categorical(people["city"], categories=["Lima", "Atlantis", "Bonn", "Rome", "Oslo"])
    again = Arrow(able.model, ordered=able.ordered).fit(people)
    np.testing.assert_array_equal(as_text, again.edge_probabilities_)
    assert again.answer_.columns[1].levels == ("Bonn", "Lima", "Oslo", "Rome")  # those that occur


def test_a_column_and_its_negative_are_one_variable(able: Arrow, people: pd.DataFrame, targets: list[Any]) -> None:
    usual = able.fit(people, interventions=targets)
    negated = people.assign(age=-people["age"], dose=-people["dose"], ill=~people["ill"])
    other = Arrow(able.model, ordered={"size": SIZES[::-1]}).fit(negated, interventions=targets)
    assert distance(usual, other) < 1e-4


def test_a_hole_hides_its_value(able: Arrow, people: pd.DataFrame) -> None:
    usual = able.fit(people)
    marked = people.assign(dose=people["dose"].fillna(-999), city=people["city"].fillna("?"))
    table = read_table(marked, na=["-999", "?"], ordered=able.ordered)
    other = Arrow(able.model).fit(table)
    assert distance(usual, other) == 0
    assert distance(usual, Arrow(able.model, ordered=able.ordered).fit(marked)) > 1e-3


def test_labels_and_masks_of_experiments_agree(able: Arrow, people: pd.DataFrame, targets: list[Any]) -> None:
    by_label = able.fit(people, interventions=targets)
    mask = pd.DataFrame(False, index=people.index, columns=people.columns)
    mask["dose"] = [label in ("dose", "age; dose") for label in targets]
    mask["age"] = [label == "age; dose" for label in targets]
    lists = [label.split("; ") if label else [] for label in targets]
    inside = people.assign(what=targets)
    for table, given in (
        (people, mask),
        (people, mask[list(people.columns[::-1])]),
        (people, mask.to_numpy()),
        (people, lists),
        (people, pd.Series(targets)),
        (inside, "what"),
    ):
        other = Arrow(able.model, ordered=able.ordered).fit(table, interventions=given)
        assert other.answer_.names == tuple(people.columns)
        assert other.answer_.to_dict() == by_label.answer_.to_dict()
    marked = read_table(inside.assign(what=inside["what"].fillna("-")), na=["-"], interventions="what")
    assert np.array_equal(marked.intervened, mask)
    assert by_label.answer_.experiments == {"age": int(mask["age"].sum()), "dose": int(mask["dose"].sum())}
    assert distance(by_label, Arrow(able.model, ordered=able.ordered).fit(people)) > 1e-3


def test_the_order_of_columns_and_observations_relabels(able: Arrow, people: pd.DataFrame, targets: list[Any]) -> None:
    usual = able.fit(people.assign(what=targets), interventions="what", environments="smoker")
    random = np.random.default_rng(0)
    shuffled = people.assign(what=targets).iloc[random.permutation(len(people)), random.permutation(7)]
    other = Arrow(able.model, ordered=able.ordered).fit(shuffled, interventions="what", environments="smoker")
    assert distance(usual, other) == 0
    assert usual.answer_.table_checksum == other.answer_.table_checksum
    fewer = [None if label == "dose" else label for label in targets]
    changed = Arrow(able.model, ordered=able.ordered).fit(people, interventions=fewer, environments="smoker")
    assert usual.answer_.table_checksum != changed.answer_.table_checksum


def test_observations_left_out_take_their_labels_along(able: Arrow, people: pd.DataFrame, targets: list[Any]) -> None:
    complete = people.notna().all(axis=1).to_numpy()
    kept = [label for label, whole in zip(targets, complete, strict=True) if whole]
    there = Arrow(able.model, ordered=able.ordered, missing="drop").fit(people, interventions=targets)
    here = Arrow(able.model, ordered=able.ordered).fit(people[complete], interventions=kept)
    assert distance(there, here) == 0
    filled = Arrow(able.model, ordered=able.ordered, missing="impute").fit(people, interventions=targets)
    assert [column.kind for column in filled.answer_.columns] == [
        "number",
        "category",
        "number",
        "binary",
        "ordered",
        "binary",
    ]
    with pytest.raises(TableError, match=r"values are missing \('city'"):
        Arrow(able.model, ordered=able.ordered, missing="error").fit(people)


# Environments


def test_nothing_causes_the_environment_and_the_answer_says_what_it_shifts(able: Arrow, people: pd.DataFrame) -> None:
    site = np.random.default_rng(5).choice([3, 1, 2], len(people))
    arrow = able.fit(people.assign(site=site), environments="site")
    assert not arrow.edge_probabilities_["site"].any()
    assert arrow.answer_.columns[-1].kind == "category"
    shifted = {edge.target for edge in arrow.edges_ if edge.source == "site"}
    assert {edge.target for edge in arrow.answer_.shifted} == shifted
    assert "between environments (site)" in arrow.summary()
    for name in shifted:
        assert name in next(line for line in arrow.summary().split("\n") if "between environments" in line)
    # Labels beside the table are one more column; knowledge that comes later does not forget what they are.
    beside = Arrow(able.model, ordered=able.ordered).fit(people, environments=site.tolist())
    assert distance(arrow, _renamed(beside, "environment", "site")) < 1e-6
    refined = beside.refine(knowledge=Knowledge(leaves=["age"]), decode="f1")
    assert not refined.edge_probabilities_["environment"].any()
    with pytest.raises(KnowledgeError, match="nothing in the table causes it: take the required edge from 'age'"):
        beside.refine(knowledge={"required": ["age -> environment"]})
    with pytest.raises(KnowledgeError, match="the tiers put 'age' before it: take 'environment' out of them"):
        beside.refine(knowledge={"tiers": [["age"], ["environment"]]})


def test_what_an_environment_is_adjacent_to_it_causes(able: Arrow, people: pd.DataFrame) -> None:
    site = np.random.default_rng(5).choice(["a", "b"], len(people))
    arrow = able.fit(people.assign(site=site), environments="site")
    adjacent = arrow.answer_.distribution.skeleton_probabilities()
    place = list(arrow.answer_.arrangement or ()).index(len(people.columns))
    from_site = arrow.edge_probabilities_.loc["site"].to_numpy()[list(arrow.answer_.arrangement or ())]
    assert from_site == pytest.approx(adjacent[place], abs=1e-6)  # no matter where the scores put it in the order
    assert arrow.answer_.order[0] == "site"
    with pytest.raises(ConfigurationError, match="'site' identifies environments, so nothing in the table changes it"):
        arrow.effect("age", "site")
    assert not any("site" in (pair.first, pair.second) for pair in arrow.answer_.vanished)


def test_nothing_causes_what_was_set_in_every_observation(able: Arrow, people: pd.DataFrame) -> None:
    with pytest.warns(ArrowWarning, match="set in every observation"):
        arrow = able.fit(people, interventions=["age; ill"] * len(people))
    assert arrow.answer_.always_set == ("age", "ill")
    assert not arrow.edge_probabilities_[["age", "ill"]].to_numpy().any()
    assert set(arrow.answer_.order[:2]) == {"age", "ill"}
    shared = arrow.confounding_probabilities_
    assert not shared[["age", "ill"]].to_numpy().any()  # nor does anything outside the table
    assert shared.drop(columns=["age", "ill"]).to_numpy().any()
    with pytest.raises(ConfigurationError, match="'ill' was set in every observation, so nothing in the table changes"):
        arrow.effect("smoker", "ill")
    with pytest.raises(ConfigurationError, match="'ill' was set in every observation, so nothing in the table changes"):
        arrow.effects("ill")
    # What is known of the world without the experiment holds.
    told = arrow.refine(knowledge={"required": ["smoker -> ill"]})
    assert told.edge_probabilities_.loc["smoker", "ill"] == 1


def _renamed(arrow: Arrow, name: str, other: str) -> Arrow:
    """The same answer with another name for the environment."""
    renamed = arrow.refine()
    renamed.discovery_ = arrow.discovery_.with_answer(
        Answer(
            tuple(other if each == name else each for each in arrow.answer_.names),
            arrow.answer_.distribution,
            arrangement=arrow.answer_.arrangement,
            environment=other,
            directions=arrow.answer_.directions,
            direction_temperature=arrow.answer_.direction_temperature,
        )
    )
    return renamed


# Saved answers, jobs, resampling, the command line


def test_a_saved_answer_is_refined_as_the_live_one(able: Arrow, people: pd.DataFrame, targets: list[Any]) -> None:
    live = able.fit(people, interventions=targets, environments="smoker").answer_
    saved = Answer.from_dict(json.loads(json.dumps(live.to_dict())))
    assert saved.to_dict() == live.to_dict()
    assert (saved.experiments, saved.environment, saved.hidden_causes) == (
        live.experiments,
        "smoker",
        live.hidden_causes,
    )
    known = Knowledge(no_hidden_cause=["age <-> dose"], roots=["age"])
    assert saved.refine(knowledge=known).to_dict() == live.refine(knowledge=known).to_dict()
    fewer = live.to_dict()["columns"][1:]
    for change in (
        {"environment": "nowhere"},
        {"experiments": {"nobody": 3}},
        {"experiments": 3},
        {"columns": fewer},
    ):
        with pytest.raises(ConfigurationError):
            Answer.from_dict({**live.to_dict(), **change})


def test_every_way_in_gives_the_same_answer(
    able: Arrow, people: pd.DataFrame, targets: list[Any], tmp_path: Path, run: Run
) -> None:
    whole = people.assign(what=targets)
    file = tmp_path / "people.csv"
    whole.to_csv(file, index=False)
    live = able.fit(file, interventions="what", environments="smoker").answer_.to_dict()
    status, out, _ = run(
        "discover", file, "--model", able.model, "--json", "--ordered", "size=small,medium,large",
        "--interventions", "what", "--environments", "smoker",
    )  # fmt: skip
    assert status == 0
    assert json.loads(out) == live
    settings = Settings.from_dict(json.loads(json.dumps(Settings(able.model).changed(ordered=able.ordered).to_dict())))
    again = discover(file, settings, interventions="what", environments="smoker")
    assert again.answer.to_dict() == live
    in_memory = Arrow(able.model, ordered=able.ordered).fit(whole, interventions="what", environments="smoker")
    assert in_memory.answer_.to_dict()["distribution"] == live["distribution"]


def test_resampled_tables_keep_kinds_holes_and_experiments(
    able: Arrow, people: pd.DataFrame, targets: list[Any]
) -> None:
    arrow = able.fit(people, interventions=targets, environments="smoker")
    stability = arrow.stability(n_resamples=4, progress=False)
    assert stability.names == tuple(people.columns)
    assert not stability.frequencies[:, 3].any()  # nothing causes the environment


def test_check_shows_kinds_and_every_detection_can_be_overruled(
    able: Arrow, people: pd.DataFrame, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "people.csv"
    people.assign(zip=np.arange(len(people)) % 5).to_csv(file, index=False)

    def kinds(*options: str) -> dict[str, str]:
        status, out, _ = run("check", file, "--json", "--model", able.model, *options)
        assert status == 0
        return {column["name"]: column["kind"] for column in json.loads(out)["columns"]}

    usual = {"age": "number", "city": "category", "dose": "number", "smoker": "binary", "ill": "binary"}
    assert kinds() == {**usual, "size": "category", "zip": "number"}
    assert kinds("--ordered", "size=small,medium,large", "--kind", "zip=category", "--kind", "ill=number") == {
        **usual,
        "size": "ordered",
        "zip": "category",
        "ill": "number",
    }
    assert kinds("--kind", "zip=ordered")["zip"] == "ordered"
    out = run("check", file, "--model", able.model)[1]
    assert "3 numbers, 2 binary ('smoker' and 'ill'), 2 categories ('city' and 'size')" in out
    assert "have both 'city' and 'dose'" in out
    assert "--kind zip=category" in out
    assert run("check", file)[0] == 0
    assert run("check", file, "--model", "arrow-strict")[0] == 1  # which reads numbers only


def test_the_default_network_takes_no_notice_of_signs_and_units(usual_model: str) -> None:
    if usual_model != "arrow-base":
        pytest.skip("a checkout without weights")
    random = np.random.default_rng(3)
    values = random.normal(size=(200, 12))
    values[:, 1:] += 0.8 * values[:, :-1]
    arrow = Arrow().fit(values)
    other = Arrow().fit(values * random.choice([-30.0, 0.02], size=12))
    np.testing.assert_allclose(arrow.edge_probabilities_, other.edge_probabilities_, atol=1e-4)
    np.testing.assert_allclose(arrow.confounding_probabilities_, other.confounding_probabilities_, atol=1e-4)


# What a network of numbers cannot read


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "the model SMALL reads only numbers"),
        (
            {"drop": ["city", "size", "dose"], "environments": "ill", "interventions": ["age"] * 160},
            "cannot read exper",
        ),
        ({"drop": ["city", "size"]}, "values are missing"),
        ({"columns": ["age", "ill"], "environments": "size"}, "'size' (3 levels) is a category: the model SMALL reads"),
    ],
)
def test_a_model_of_numbers_refuses_the_rest_in_one_sentence(
    how: dict[str, Any], words: str, small_model_folder: Path, people: pd.DataFrame
) -> None:
    with pytest.raises(TableError) as refusal:
        discover(people, Settings(small_model_folder), **how)
    assert words.replace("SMALL", str(small_model_folder)) in str(refusal.value)
    assert "To go on" in str(refusal.value) or "For the" in str(refusal.value)


def test_a_table_read_for_any_network_is_checked_before_another_reads_it(
    small_model_folder: Path, people: pd.DataFrame, targets: list[Any]
) -> None:
    table = read_table(people, interventions=targets)
    with pytest.raises(TableError) as refusal:
        Arrow(small_model_folder).fit(table)
    for words in ("'city' (4 levels)", "cannot read experiments", "values are missing"):
        assert words in str(refusal.value)
    numbers = read_table(people, columns=["age", "dose", "ill"])
    assert Arrow(small_model_folder, missing="drop").fit(numbers).answer_.observations == people["dose"].notna().sum()


def test_a_model_without_that_head_says_nothing_of_hidden_causes(small_model_folder: Path, table: pd.DataFrame) -> None:
    arrow = Arrow(small_model_folder).fit(table)
    assert arrow.hidden_causes_ == []
    assert arrow.answer_.to_dict()["hidden_causes"] is None
    with pytest.raises(ConfigurationError, match="gives no probabilities of hidden common causes"):
        _ = arrow.confounding_probabilities_


# Bad input


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"interventions": ["doses"] * 160}, "'doses' on observation 1, which is not a variable.*did you mean 'dose'"),
        ({"interventions": [""] * 160}, "mark no row"),
        ({"interventions": [["age", "city", "dose", "smoker", "size", "ill"]] * 160}, "every variable was set"),
        ({"interventions": ["dose"] * 3}, "for each of 160 observations, got 3 labels"),
        ({"interventions": np.ones((160, 2))}, "for each of 6 variables, got a table with 2 columns"),
        ({"interventions": np.full((160, 6), 7)}, "contain only true and false"),
        ({"interventions": 7}, "one label for each observation"),
        ({"interventions": "what"}, "'what' is not in the table"),
        ({"environments": "smokers"}, "did you mean 'smoker'"),
        ({"environments": ["a"] * 160}, "All observations come from one environment"),
        ({"environments": ["a", "b"]}, "for each of 160 observations, got 2 labels"),
        ({"environments": "city"}, "'city' are missing in .* the first on observation"),
        ({"environments": 7}, "one label for each observation"),
        ({"environments": "age"}, "'age' differ in every row"),
        ({"environments": "size", "ordered": {"size": SIZES}}, "are always read as a category"),
        ({"kinds": {"citi": "category"}}, "did you mean 'city'"),
        ({"kinds": {"city": "text"}}, "one of number, binary, ordered, category"),
        ({"kinds": ["city"]}, "Expected kinds to be a mapping"),
        ({"kinds": {"city": "number"}}, "'city' .*such as 'Bonn'.* contains text"),
        ({"kinds": {"city": "binary"}}, "'city' .*is not binary"),
        ({"kinds": {"dose": "ordered"}}, "too many ordered levels: up to 100 .*kinds={'dose': 'number'}"),
        ({"ordered": {"size": {*SIZES}}}, "a set has no order"),
        ({"ordered": {"size": iter(SIZES)}}, "two or more different levels"),
        ({"kinds": {"city": "ordered"}}, "'city' .*is text without an order"),
        ({"kinds": {"size": "category"}, "ordered": {"size": SIZES}}, "choose one"),
        ({"ordered": {"size": ["small"]}}, "two or more different levels"),
        ({"ordered": {"size": "small"}}, "two or more different levels"),
        ({"ordered": {"size": ["small", "Large", "medium"]}}, "'large', did you mean 'Large'"),
        ({"missing": "mean"}, "Expected missing to be one of auto, model, error, drop, impute"),
    ],
)  # fmt: skip
def test_bad_words_about_a_table_are_one_sentence(how: dict[str, Any], words: str, people: pd.DataFrame) -> None:
    with pytest.raises(ArrowError, match=words):
        read_table(people, **how)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([f"person {n}" for n in range(160)], "has a different value in each row"),
        ([f"group {n % 110}" for n in range(160)], r"\(110, such as 'group 0'\) has too many categories: up to 100"),
        (
            [f"person {max(n, 1)}" for n in range(160)],
            "158 of 160 values occur only once.* different value in most",
        ),
        ([None] * 160, "has no values"),
        ([1.5, 2.5, 3.5] + [None] * 157, "is missing in more than 90%"),
        (["Rome"] * 160, "'extra' .*every value is 'Rome'.* is constant"),
        (pd.date_range("2024-01-01", periods=160), "contains dates or times: convert them to a number"),
    ],
)
def test_columns_that_say_nothing_are_refused_in_one_sentence(
    column: Any, words: str, people: pd.DataFrame, able: Arrow
) -> None:
    with pytest.raises(TableError, match=words):
        able.fit(people.assign(extra=column))
    assert read_table(people.assign(extra=column), strict=False).findings


@pytest.mark.parametrize(
    "options",
    [("--kind", "city"), ("--kind", "=category"), ("--ordered", "size"), ("--kind", "city=words")],
)
def test_bad_options_are_one_sentence(options: tuple[str, ...], run: Run, people: pd.DataFrame, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    people.to_csv(file, index=False)
    for command in ("discover", "check"):
        status, _, err = run(command, file, *options)
        assert status == 2
        assert "Expected" in err
        assert "Traceback" not in err


def test_up_to_nine_tenths_of_a_column_may_be_missing_and_the_report_says_what_that_costs(
    able: Arrow, people: pd.DataFrame
) -> None:
    people.loc[people.index >= 20, "age"] = np.nan  # 87.5%
    arrow = able.fit(people)
    (cost,) = [finding for finding in arrow.report_.findings if finding.kind == "missing"]
    assert cost.severity == "warning"
    assert "'age' has 20 values in 160 observations" in cost.message


def test_categories_that_are_copies_or_rare_are_reported(able: Arrow, people: pd.DataFrame) -> None:
    words = {"Rome": "x", "Oslo": "y", "Bonn": "z", "Lima": "w"}
    people["town"] = people["city"].map(words)
    people["rare"] = ["a", "b", "b", "c"] * 39 + ["d", "b", "c", "e"]
    findings = {finding.kind: finding for finding in able.fit(people).report_.findings}
    assert findings["copies"].columns == ("city", "town")
    assert "'rare' 2 of 5" in findings["rare_levels"].message


def test_columns_of_any_kind_that_are_one_to_one_are_copies(able: Arrow, people: pd.DataFrame) -> None:
    people = people.assign(dose=people["dose"].fillna(0.0), city=people["city"].fillna("Rome"))
    town = people["city"].map({"Rome": 3, "Oslo": 1, "Bonn": 7, "Lima": 2})
    told = people["smoker"].map({"yes": 2, "no": 1})
    mass = people["size"].map({"small": 1, "medium": 10, "large": 1000})
    ill = people["ill"].map({False: "a", True: "b"})
    table = people.assign(a_town=town, a_smoker=told, a_mass=mass, a_illness=pd.Categorical(ill))
    plain, found = copy(able).fit(people), copy(able).fit(table)
    groups = {finding.columns for finding in found.report_.findings if finding.kind == "copies"}
    # The kind that takes least for granted is read, whatever the names and the order of columns.
    assert groups == {("city", "a_town"), ("size", "a_mass"), ("a_illness", "ill"), ("a_smoker", "smoker")}
    shuffled = copy(able).fit(table[sorted(table.columns)])
    assert distance(found, shuffled) == 0
    for one, other in itertools.permutations(["age", "city", "dose", "size"], 2):
        shares = 2 ** sum(name in ("city", "size") for name in (one, other))
        expected = plain.edge_probabilities_.loc[one, other] / shares
        assert found.edge_probabilities_.loc[one, other] == pytest.approx(expected, abs=1e-5)
    renamed = people.assign(z_town=town, smoker=told, z_ill=ill)
    other = copy(able).fit(renamed.assign(z_smoker=people["smoker"], a_mass=mass))
    again = {frozenset(finding.columns) for finding in other.report_.findings if finding.kind == "copies"}
    assert len(again) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda codes: codes.where(codes.index != 3),  # missing in another observation
        lambda codes: codes.where(codes.index != 3, codes.max() - codes),  # one other value
        lambda codes: codes.where(codes != 0, 1),  # one level less
    ],
)
def test_columns_that_differ_in_one_observation_are_no_copies(change: Callable[..., Any], people: pd.DataFrame) -> None:
    codes = people["city"].map({"Rome": 0, "Oslo": 1, "Bonn": 2, "Lima": 5})
    people.loc[3, "city"], codes[3] = "Rome", 0
    kinds = {finding.kind for finding in inspect_table(read_table(people.assign(code=codes))).findings}
    assert "copies" in kinds
    kinds = {finding.kind for finding in inspect_table(read_table(people.assign(code=change(codes)))).findings}
    assert "copies" not in kinds


def test_numbers_of_which_most_occur_once_are_no_copies_of_each_other() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 3)), columns=["a", "b", "c"])
    frame["rounded"] = np.random.default_rng(1).permutation(90)
    assert "copies" not in {finding.kind for finding in inspect_table(read_table(frame)).findings}


# Tables read again


@pytest.mark.parametrize(
    "how",
    [
        {"kinds": {"city": "category"}},
        {"kinds": {"smoker": "category", "ill": "category"}},
        {"kinds": {"ill": "number", "smoker": "number"}},
        {"kinds": {"zip": "category"}},
        {"kinds": {"zip": "ordered"}},
        {"kinds": {"rooms": "number"}},
        {"ordered": {"size": SIZES}},
        {"ordered": {"city": ["Oslo", "Lima", "Rome", "Bonn"], "ill": [True, False]}},
        {"environments": "zip"},
    ],
)
def test_a_table_read_again_with_other_kinds_is_the_source_read_so(how: dict[str, Any], people: pd.DataFrame) -> None:
    source = people.assign(zip=np.arange(160) % 3 + 5, rooms=np.arange(160) % 2)
    direct, again = read_table(source, **how), read_table(read_table(source), **how)
    assert again.columns == direct.columns
    np.testing.assert_array_equal(again.values, direct.values)
    assert {finding.columns for finding in again.findings} == {finding.columns for finding in direct.findings}
    assert len(again.findings) == len(direct.findings)


def test_a_table_read_again_refuses_what_its_source_refuses(able: Arrow, people: pd.DataFrame) -> None:
    table = read_table(people)
    for kinds in ({"city": "number"}, {"city": "binary"}, {"city": "ordered"}):
        for source in (people, table):
            with pytest.raises(TableError, match="'city'"):
                read_table(source, kinds=kinds)
    with pytest.raises(TableError, match="'city'"):
        Arrow(able.model, kinds={"city": "number"}).fit(table)
    # Text that looks like a number stays text: the zero in front counts.
    codes = read_table(people.assign(code=pd.Categorical(["01", "1", "2", "10"] * 40)))
    assert read_table(codes, kinds={"code": "category"}).columns[-1].levels == codes.columns[-1].levels


def with_copies(people: pd.DataFrame) -> pd.DataFrame:
    town = people["city"].map({"Rome": "x", "Oslo": "y", "Bonn": "z", "Lima": "w"})
    return people.assign(town=town, months=12 * people["age"] + 3, debt=-people["age"])


def test_copies_are_read_once_and_share_what_is_found(able: Arrow, people: pd.DataFrame) -> None:
    plain, table = copy(able).fit(people), with_copies(people)
    found = copy(able).fit(table)
    probabilities = found.edge_probabilities_
    shares = {"age": 3, "months": 3, "debt": 3, "city": 2, "town": 2}
    originals = {"months": "age", "debt": "age", "town": "city"}
    for one, other in itertools.permutations(table.columns, 2):
        original = originals.get(one, one), originals.get(other, other)
        expected = (
            1 / shares[one]  # joined to each other, without a direction
            if original[0] == original[1]
            else plain.edge_probabilities_.loc[original] / (shares.get(one, 1) * shares.get(other, 1))
        )
        assert probabilities.loc[one, other] == pytest.approx(expected, abs=1e-6)
        shared = found.confounding_probabilities_.loc[one, other]
        if original[0] != original[1]:
            before = plain.confounding_probabilities_.loc[original]
            assert shared == pytest.approx(before / (shares.get(one, 1) * shares.get(other, 1)), abs=1e-6)
    # The graph shows one of them with all edges, the first by name, which is now "age" and "city".
    edges = {(edge.source, edge.target) for edge in found.edges_}
    assert {(edge.source, edge.target) for edge in plain.edges_} <= edges
    assert len(edges) == len(plain.edges_) + 3
    assert {frozenset(pair) for pair in (("age", "months"), ("age", "debt"), ("city", "town"))} <= set(
        map(frozenset, edges)
    )
    shuffled = copy(able).fit(table[sorted(table.columns, reverse=True)])
    assert {(edge.source, edge.target) for edge in shuffled.edges_} == edges


def test_drawn_graphs_and_resampled_tables_treat_copies_alike(able: Arrow, people: pd.DataFrame) -> None:
    table = with_copies(people)
    found = able.fit(table)
    drawn = found.answer_.sample(4000, np.random.default_rng(0)).graphs
    np.testing.assert_allclose(drawn.mean(axis=0), found.answer_.edge_probabilities, atol=0.05)
    age, months = (found.answer_.index_of(name) for name in ("age", "months"))
    joined = (drawn | drawn.transpose(0, 2, 1)).sum(axis=2)
    assert ((joined[:, age] > 2) & (joined[:, months] > 2)).mean() == 0  # one of them has all the edges
    places = [found.answer_.index_of(name) for name in ("age", "months", "debt")]
    inside = drawn[:, places][:, :, places]
    assert (inside.any(axis=2).sum(axis=1) == 1).all()  # and causes the others
    assert (inside.sum(axis=(1, 2)) == 2).all()
    stability = found.stability(n_resamples=3, progress=False)
    np.testing.assert_allclose(stability.mean_probabilities[age], stability.mean_probabilities[months][swapped(found)])


def swapped(found: Arrow) -> np.ndarray:
    """The places of the variables with "age" and "months" in each other's."""
    names = list(found.answer_.names)
    age, months = names.index("age"), names.index("months")
    places = np.arange(len(names))
    places[[age, months]] = months, age
    return places


def test_knowledge_tells_copies_apart(able: Arrow, people: pd.DataFrame) -> None:
    table = with_copies(people)
    found = copy(able).fit(table)
    assert found.edge_probabilities_.loc["town", "dose"] == found.edge_probabilities_.loc["city", "dose"] > 0
    told = copy(able).set_params(knowledge=Knowledge(forbidden=["town -> dose", "dose -> town"])).fit(table)
    assert told.edge_probabilities_.loc["town", "dose"] == 0
    twice = 2 * found.edge_probabilities_.loc["city", "dose"]
    assert told.edge_probabilities_.loc["city", "dose"] == pytest.approx(twice, rel=1e-6)


def test_columns_that_share_no_more_than_an_outlier_are_no_copies(any_table_model_folder: Path) -> None:
    values = np.random.default_rng(0).standard_normal((200, 3))
    values[0, :2] = 1e9
    report = Arrow(any_table_model_folder).fit(pd.DataFrame(values, columns=["a", "b", "c"])).report_
    assert "copies" not in {finding.kind for finding in report.findings}


def test_copies_of_which_each_was_set_without_the_other_are_no_copies(able: Arrow, people: pd.DataFrame) -> None:
    twice = people.assign(months=12 * people["age"])
    labels = ["age"] * 20 + ["months"] * 20 + [""] * (len(people) - 40)
    report = copy(able).fit(twice, interventions=labels).report_
    assert "copies" not in {finding.kind for finding in report.findings}


def test_a_copy_of_what_was_set_followed_it_and_changes_nothing_else(able: Arrow, people: pd.DataFrame) -> None:
    labels = ["age"] * 20 + [""] * (len(people) - 20)
    plain = copy(able).fit(people, interventions=labels)
    found = copy(able).fit(people.assign(a=-12 * people["age"]), interventions=labels)
    (finding,) = [finding for finding in found.report_.findings if finding.kind == "copies"]
    assert finding.columns == ("age", "a")
    assert "also where experiments set 'age'" in finding.message
    assert found.edge_probabilities_.loc["age", "a"] == pytest.approx(1, abs=1e-6)
    others = found.edge_probabilities_.drop(index="a", columns="a")
    np.testing.assert_allclose(others, plain.edge_probabilities_.loc[others.index, others.columns], atol=1e-6)


def test_a_table_of_one_column_and_its_copies_is_answered(any_table_model_folder: Path) -> None:
    age = np.random.default_rng(0).standard_normal(60)
    found = Arrow(any_table_model_folder).fit(pd.DataFrame({"a": age, "b": 2 * age, "c": -age}))
    assert found.edge_probabilities_.shape == (3, 3)
    assert [each.columns for each in found.report_.findings if each.kind == "copies"] == [("a", "b", "c")]


# Hidden common causes


@pytest.fixture
def confounded(able: Arrow, people: pd.DataFrame) -> Arrow:
    arrow = able.fit(people)
    assert len(arrow.hidden_causes_) >= 2  # the weights are random, and seeded
    return arrow


def test_probabilities_of_hidden_causes_are_symmetric_and_knowledge_rules_them_out(confounded: Arrow) -> None:
    probabilities = confounded.confounding_probabilities_
    np.testing.assert_array_equal(probabilities, probabilities.T)
    assert not np.diag(probabilities).any()
    first = confounded.hidden_causes_[0]
    assert probabilities.loc[first.first, first.second] == first.probability
    known = {"no_hidden_cause": [f"{first.second} <-> {first.first}"]}
    refined = confounded.refine(knowledge=known)
    assert refined.hidden_causes_ == confounded.hidden_causes_[1:]
    assert refined.confounding_probabilities_.loc[first.first, first.second] == 0
    assert Knowledge.from_dict(Knowledge(**known).to_dict()) == Knowledge(**known)
    with pytest.raises(KnowledgeError, match="did you mean 'city'"):
        confounded.refine(knowledge={"no_hidden_cause": ["citi <-> age"]})


@pytest.mark.parametrize("entry", ["a -> b", "a", "a <-> a", ["a"], ["a", "b", "c"], 7])
def test_what_is_no_pair_of_variables_is_refused(entry: Any) -> None:
    with pytest.raises(KnowledgeError, match=r"Expected (two variables such as 'a <-> b'|a list for no_hidden_cause)"):
        Knowledge(no_hidden_cause=[entry] if not isinstance(entry, int) else entry)
    with pytest.raises(KnowledgeError, match="Expected an edge"):
        Knowledge(required=["a <-> b"])


@pytest.mark.parametrize("file", ["graph.json", "graph.dot", "graph.dagitty.txt", "graph.graphml", "graph.gml"])
def test_files_hold_hidden_causes_and_give_them_back(file: str, confounded: Arrow, tmp_path: Path) -> None:
    answer = confounded.answer_
    path = tmp_path / file
    path.write_text(exports.TEXT_FORMATS[file](answer), encoding="utf-8")
    graph = read_graph(path).arranged_as(answer.names)
    assert answer.edges
    np.testing.assert_array_equal(graph.adjacency, answer.adjacency)
    np.testing.assert_array_equal(graph.bidirected, answer.graph.bidirected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("digraph { a -> a [dir=both] }", "would share a hidden cause with itself"),
        ('{"variables": ["a", "b"], "edges": [], "hidden_causes": 7}', "list of 'hidden_causes'"),
        ('{"variables": ["a", "b"], "edges": [], "hidden_causes": [["a"]]}', "'first' and 'second'"),
        ('{"variables": ["a", "b"], "edges": [], "hidden_causes": [["a", "c"]]}', "'c', not among"),
    ],
)
def test_hidden_causes_that_cannot_be_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / ("graph.json" if text.startswith("{") else "graph.dot")
    path.write_text(text)
    with pytest.raises(ArrowError, match=words):
        read_graph(path)


def test_edges_with_two_heads_in_graphviz_are_no_directed_edges(tmp_path: Path) -> None:
    (tmp_path / "g.dot").write_text('digraph { a -> b; b -> c -> d [style=dashed, dir="both"]; a -> d [dir=forward] }')
    graph = read_graph(tmp_path / "g.dot")
    assert graph.edges() == [("a", "b"), ("a", "d")]
    assert graph.bidirected is not None
    assert {(graph.names[j], graph.names[k]) for j, k in np.argwhere(np.triu(graph.bidirected))} == {
        ("b", "c"),
        ("c", "d"),
    }


def test_other_packages_are_told_what_is_left_out(confounded: Arrow) -> None:
    with pytest.warns(ArrowWarning, match=r"to_lingam exports only directed edges. Left out: \d+ pairs"):
        confounded.to_lingam()
    with pytest.warns(ArrowWarning, match="to_dowhy"):
        confounded.to_dowhy()
    pairs = confounded.to_networkx().graph["hidden_causes"]
    assert [(a, b) for a, b, _ in pairs] == [(pair.first, pair.second) for pair in confounded.hidden_causes_]


def test_a_file_of_edges_says_that_hidden_causes_are_not_in_it(
    confounded: Arrow, people: pd.DataFrame, tmp_path: Path, run: Run
) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    said = {}
    for name in ("edges.csv", "graph.json"):
        order = ("--ordered", "size=small,medium,large")
        place = tmp_path / "out" / name
        status, _, said[name] = run(
            "discover", tmp_path / "people.csv", "--model", confounded.model, *order, "--output", place
        )
        assert status == 0
    pair = confounded.hidden_causes_[0]
    assert f"Left out: {len(confounded.hidden_causes_)} pairs with a hidden common cause, {pair}" in said["edges.csv"]
    assert "Left out" not in said["graph.json"]


def test_paths_and_adjustment_sets_say_that_hidden_causes_are_left_aside(confounded: Arrow) -> None:
    pair = confounded.hidden_causes_[0]
    with pytest.warns(ArrowWarning, match=f"hidden common causes into account.*{pair.first} ↔ {pair.second}"):
        confounded.adjustment_set_frequencies(pair.first, pair.second, n_graphs=50)
    with pytest.warns(ArrowWarning, match="hidden common causes into account"):
        confounded.path_probability(pair.first, pair.second, n_graphs=50)
    with pytest.warns(ArrowWarning, match=f"hidden common causes into account.*{pair.first} ↔ {pair.second}"):
        confounded.ancestor_probabilities(n_graphs=50)


def test_hidden_causes_are_in_words_on_every_surface(
    confounded: Arrow, people: pd.DataFrame, tmp_path: Path, run: Run
) -> None:
    pair = confounded.hidden_causes_[0]
    words = f"{pair.first} ↔ {pair.second} ({pair.probability:.2f})"
    assert words in confounded.summary()
    assert words in summary.to_html(summary.summarize(confounded.answer_))
    file = tmp_path / "people.csv"
    people.to_csv(file, index=False)
    how = ("--model", confounded.model, "--ordered", "size=small,medium,large")
    status, out, _ = run("discover", file, *how, "--graphs", 20)
    assert status == 0
    assert words in " ".join(out.split())
    assert "do not take hidden common causes into account" in " ".join(out.split())
    status, out, _ = run("discover", file, *how, "--no-hidden-cause", f"{pair.first} <-> {pair.second}")
    assert status == 0
    assert words not in " ".join(out.split())


def test_pictures_have_an_arc_for_each_hidden_cause_that_ends_at_its_boxes(confounded: Arrow, tmp_path: Path) -> None:
    answer = confounded.answer_
    drawing = pictures._scene(answer, pictures.MAX_EDGES)
    for pair, (points, _) in zip(answer.hidden_causes, drawing.arcs, strict=True):
        for name in (pair.first, pair.second):
            place = answer.index_of(name)
            half = np.array([drawing.boxes.widths[place], drawing.boxes.height]) / 2
            away = np.abs(points - drawing.boxes.layout.centers[place]) - half  # beyond the border of the box
            assert (away.max(axis=1) > 0).all()
            assert min(away[0].max(), away[-1].max()) < 6  # points
    pictures.save_graph(answer, tmp_path / "graph.svg")
    assert "hidden common cause" in (tmp_path / "graph.svg").read_text(encoding="utf-8")
