"""Laws of .causal files: what comes back, what is refused, and what a loaded discovery can be asked."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from causal_arrow import Answer, ArrowWarning, Discovery, Settings, discover
from causal_arrow.discovery import inference, saved
from causal_arrow.errors import ArrowError, ConfigurationError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Numbers, a category, holes and experiments."""
    random = np.random.default_rng(0)
    city = random.choice(["Rome", "Oslo", "Lima"], 150)
    dose = random.normal(size=150)
    health = dose + (city == "Rome") + random.normal(size=150)
    health[random.random(150) < 0.1] = np.nan
    target = np.where(random.random(150) < 0.2, "dose", "")
    return pd.DataFrame({"city": city, "dose": dose, "health": health, "years": dose**2 + 1, "target": target})


@pytest.fixture(scope="module")
def found(any_table_model_folder: Path, table: pd.DataFrame) -> Discovery:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArrowWarning)
        settings = Settings(any_table_model_folder, decode="f1", knowledge={"roots": ["city"]})
        return discover(table, settings, interventions="target", kinds={"city": "category"})


@pytest.fixture
def file(found: Discovery, tmp_path: Path) -> Path:
    found.save(tmp_path / "work.causal")
    return tmp_path / "work.causal"


def test_a_loaded_discovery_gives_the_same_answers(found: Discovery, file: Path) -> None:
    again = Discovery.load(file)
    assert again.to_json() == found.to_json()
    assert again.summary() == found.summary()
    assert again.report == found.report
    assert again.settings.to_dict() == {**found.settings.to_dict(), "knowledge": {"roots": ["city"]}}
    np.testing.assert_array_equal(again.table.values, found.table.values)
    np.testing.assert_array_equal(again.table.intervened, found.table.intervened)
    np.testing.assert_array_equal(again.sample(20), found.sample(20))
    assert (
        again.effect("dose", "health", n_graphs=50).to_dict() == found.effect("dose", "health", n_graphs=50).to_dict()
    )
    assert again.next_experiment(n_graphs=50).to_dict() == found.next_experiment(n_graphs=50).to_dict()
    assert again.refine(leaves=["years"]).to_json() == found.refine(leaves=["years"]).to_json()


def test_stability_of_a_loaded_discovery_loads_the_network_by_its_name(found: Discovery, file: Path) -> None:
    first, second = (each.stability(n_resamples=3, progress=False) for each in (found, Discovery.load(file)))
    np.testing.assert_array_equal(first.frequencies, second.frequencies)


def test_a_network_that_is_gone_is_named(found: Discovery, any_table_model_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(any_table_model_folder, tmp_path / "model")
    other = found.with_answer(found.answer, found.settings.changed(model=folder))
    other.save(tmp_path / "other.causal")
    shutil.rmtree(folder)
    again = Discovery.load(tmp_path / "other.causal")
    assert again.path_probability("dose", "health", n_graphs=20) <= 1
    with pytest.raises(ConfigurationError, match=r"needs the network .*model.*cannot be loaded"):
        again.stability(n_resamples=2)
    assert Discovery.load(tmp_path / "other.causal", model=any_table_model_folder).stability(2).resamples == 2


def test_a_network_that_was_an_object_has_to_be_given_again(found: Discovery, tmp_path: Path) -> None:
    network = inference.ready_model(found.settings.model)
    found.with_answer(found.answer, found.settings.changed(model=network)).save(tmp_path / "object.causal")
    with pytest.raises(ConfigurationError, match=r"load\(path, model=network\)"):
        _ = Discovery.load(tmp_path / "object.causal").network
    assert Discovery.load(tmp_path / "object.causal", model=network).network is network


def test_without_its_table_a_discovery_answers_what_needs_no_data(found: Discovery, tmp_path: Path) -> None:
    found.save(tmp_path / "small.causal", table=False)
    again = Discovery.load(tmp_path / "small.causal")
    np.testing.assert_array_equal(again.graph, found.graph)
    assert again.path_probability("dose", "health") == found.path_probability("dose", "health")
    assert again.summary().startswith("150 observations of 4 variables")
    questions: list[Callable[[], Any]] = [
        lambda: again.effect("dose", "health"),
        lambda: again.effects("health"),
        again.next_experiment,
        again.falsify,
        lambda: again.stability(2),
    ]
    for question in questions:
        with pytest.raises(ConfigurationError, match="saved without it"):
            question()


def test_labels_of_rows_stay_out_of_the_file(any_table_model_folder: Path, table: pd.DataFrame, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArrowWarning)
        found = discover(
            table.drop(columns="target"), model=any_table_model_folder, interventions=table["target"].to_numpy()
        )
    found.save(tmp_path / "labels.causal")
    again = Discovery.load(tmp_path / "labels.causal")
    assert again.settings.reading.interventions is None
    np.testing.assert_array_equal(again.table.intervened, found.table.intervened)


def test_saving_replaces_nothing_unless_asked(found: Discovery, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(ConfigurationError, match="is there already: name another file, or pass overwrite=True"):
        found.save(file)
    assert file.read_bytes() == before
    found.save(file, overwrite=True)
    with pytest.raises(ConfigurationError, match=r"ends in \.causal"):
        found.save(file.with_suffix(".zip"))


def rewritten(file: Path, **members: bytes | None) -> Path:
    """The file with other members; None leaves one out."""
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    named = {name.replace("_", "."): value for name, value in members.items()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in {**content, **named}.items():
            if value is not None:
                archive.writestr(name, value)
    return file


def content_of(file: Path) -> dict[str, Any]:
    with zipfile.ZipFile(file) as archive:
        content: dict[str, Any] = json.loads(archive.read(saved.CONTENT))
        return content


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"format": "other"},
        {"settings": {}},
        {"settings": {"model": "arrow-base", "decode": "no"}},
        {"answer": {}},
        {"report": [{"kind": "x"}]},
        {"report": 5},
        {"settings": None},
    ],
)
def test_content_that_was_changed_is_refused_in_a_sentence(file: Path, change: dict[str, Any]) -> None:
    changed = json.dumps({**content_of(file), **change}).encode()
    with pytest.raises(ArrowError) as error:
        Discovery.load(rewritten(file, discovery_json=changed))
    assert "work.causal" in str(error.value)


@pytest.mark.parametrize("observations", [149, 10**12, "150", None, -1])
def test_a_table_of_another_size_than_the_answer_says_is_refused(file: Path, observations: Any) -> None:
    content = content_of(file)
    content["answer"]["observations"] = observations
    with pytest.raises(ConfigurationError):
        Discovery.load(rewritten(file, discovery_json=json.dumps(content).encode()))


@pytest.mark.parametrize(
    "content",
    [b"", b"no zip", pickle.dumps({"a": 1}), b"PK\x03\x04" + bytes(40)],
    ids=["empty", "text", "pickle", "cut"],
)
def test_other_files_are_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.causal").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"Discovery\.save wrote"):
        Discovery.load(tmp_path / "x.causal")


def test_every_damaged_byte_is_refused_or_changes_nothing(found: Discovery, file: Path) -> None:
    whole = file.read_bytes()
    for index in np.random.default_rng(0).integers(len(whole), size=60):
        damaged = bytearray(whole)
        damaged[index] ^= 0xFF
        file.write_bytes(damaged)
        try:
            again = Discovery.load(file)
        except ConfigurationError:
            continue
        assert again.to_json() == found.to_json()


def test_what_is_too_large_is_not_unpacked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MAX_CONTENT_BYTES", 1000)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(ConfigurationError, match="GB"):
        Discovery.load(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing\.causal.*No such file"):
        Discovery.load(tmp_path / "nothing.causal")


def test_graphs_are_drawn_once_for_several_questions(found: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    sample = type(found.answer).sample
    monkeypatch.setattr(type(found.answer), "sample", lambda *given: calls.append(1) or sample(*given))
    fresh = found.with_answer(found.answer)
    alone = fresh.effect("dose", "health", order="free", n_graphs=30).to_dict()
    fresh.effects("health", n_graphs=30)
    fresh.path_probability("dose", "health", n_graphs=30)
    assert len(calls) == 1
    assert fresh.effect("dose", "health", order="free", n_graphs=30).to_dict() == alone
    fresh.sample(30)[:] = False
    assert fresh.effect("dose", "health", order="free", n_graphs=30).to_dict() == alone
    fresh.sample(30, random_state=None)
    fresh.sample(30, random_state=None)
    assert len(calls) == 3


def test_the_network_is_kept_and_not_loaded_again(
    any_table_model_folder: Path, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArrowWarning)
        found = discover(table, model=any_table_model_folder, interventions="target")
    monkeypatch.setattr(inference, "ready_model", lambda *_: pytest.fail("the network was loaded again"))
    assert found.stability(n_resamples=2, progress=False).resamples == 2


def test_printing_twice_tests_the_graph_once(found: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    from causal_arrow.discovery.effects import falsification

    calls = []
    falsify = falsification.falsify
    monkeypatch.setattr(falsification, "falsify", lambda *given: calls.append(1) or falsify(*given))
    fresh = found.with_answer(found.answer)
    assert str(fresh) == fresh.summary()
    assert fresh._repr_html_()
    assert len(calls) == 1


def test_statements_add_to_what_is_known_and_knowledge_replaces_it(found: Discovery) -> None:
    both = found.refine(leaves=["years"])
    assert (both.answer.knowledge.roots, both.answer.knowledge.leaves) == (("city",), ("years",))
    assert found.refine(knowledge={"leaves": ["years"]}).answer.knowledge.roots == ()
    assert found.answer.knowledge.leaves == ()
    with pytest.raises(ArrowError, match="roots"):
        found.refine(root=["city"])


# Answers that were changed by hand

ODD = (None, float("nan"), float("inf"), -1, "x", "", [], {}, [1], 10**400, "\ud800", ["a", "a"], True)


def entries(content: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths to all entries of an answer, of lists to the first two."""
    inside = (
        content.items() if isinstance(content, dict) else enumerate(content[:2]) if isinstance(content, list) else ()
    )
    for key, value in inside:
        yield (*path, key)
        yield from entries(value, (*path, key))


def test_an_answer_that_was_changed_by_hand_is_refused_or_can_be_used(found: Discovery) -> None:
    content = json.loads(json.dumps(found.answer.to_dict()))
    random = np.random.default_rng(0)
    for path in entries(content):
        changed = copy.deepcopy(content)
        inside = changed
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = ODD[random.integers(len(ODD))]
        try:
            answer = Answer.from_dict(changed)
        except ArrowError:
            continue
        json.dumps(answer.to_dict(), allow_nan=False, ensure_ascii=False).encode()
        assert len(set(answer.names)) == len(answer.names)
        assert np.isfinite(answer.edge_probabilities).all()
        assert Discovery(answer).summary()
