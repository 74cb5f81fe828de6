"""Laws of the pages of evidence: narrow tables, a file with the same numbers, wins and losses counted alike."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from types import ModuleType

import pytest

from about_suites import ABOUT, REAL, UNSEEN, role_of, short_role
from causal_arrow_lab.benchmarks.records import Record, read_records, write_packed
from causal_arrow_lab.benchmarks.suites import SUITES
from docs_scripts import DOCS, load_script
from document import Grid, Heading, to_markdown
from overview import main_result, networks_compared, shift_blocks
from suite_pages import MAX_COLUMNS, even_parts, short_seconds, suite_csv, suite_page
from summaries import Summary, published_results, summarize
from wins_and_losses import suites_table, tallies, tally, tally_table

STRICT = "arrow:arrow-strict"
RUN = {"machine": {"cpu": "Test CPU", "cores": 2, "gpu": "Test GPU"}}


def record(method: str, index: int, suite: str = "networks", row: str = "ECOLI70", **measures: float) -> Record:
    content = {"nshd": 0.5, "f1": 0.5, "ap": 0.5, "true_edges": 70.0, "estimated_edges": 60.0, "shd": 35.0, **measures}
    settings = {"device": "cuda"} if content.pop("on_gpu", 0) else {}
    return Record(
        suite,
        row,
        index,
        method,
        settings,
        {"package": "1"},
        "ok",
        seconds=content.pop("seconds", 1.0),
        measures=content,
        dataset={"observations": 100, "variables": 46, "edges": 70},
        run=RUN,
    )


def rows_of(suite: str, methods: dict[str, float], datasets: int = 4) -> list[Record]:
    """Every row of a suite, each method around its own nSHD and F1."""
    return [
        record(method, index, suite, row.name, nshd=nshd + 0.01 * index, f1=1 - nshd - 0.01 * index, ap=1 - nshd)
        for row in SUITES[suite].rows()
        for method, nshd in methods.items()
        for index in range(datasets)
    ]


def page(summary: Summary, suite: str, on_gpu: Summary | None = None) -> str:
    blocks = suite_page(
        summary, suite, csv_file="x.csv", protocol="protocol.md", paper=published_results(), on_gpu=on_gpu
    )
    return to_markdown(blocks, Path())


def lines_under(text: str, title: str) -> list[str]:
    """The lines of the tables under a title, up to the next title of any level."""
    section = re.split(r"\n#+ ", text.split(f"# {title}\n", 1)[1])[0]
    return [line for line in section.splitlines() if line.startswith("|")]


# Tables that fit


def test_no_table_of_evidence_or_model_is_wider_than_six_columns() -> None:
    pages = [*(DOCS / "evidence").glob("**/*.md"), DOCS / "model" / "card.md", DOCS / "model" / "train-your-own.md"]
    assert len(pages) > 25
    for path in pages:
        if path.name in ("scale.md", "series.md", "real-orders.md", "trials.md"):
            continue  # tables of one measurement each, which do not split
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.match(r"\|[ :-]+\|", line):
                assert line.count("|") - 1 <= MAX_COLUMNS + 1, path.name


def test_parts_are_even_keep_their_order_and_fit() -> None:
    for count in range(30):
        members = list(range(count))
        parts = even_parts(members)
        assert [member for part in parts for member in part] == members
        assert all(0 < len(part) <= MAX_COLUMNS for part in parts)
        assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= 1


@pytest.mark.parametrize("suite", ["networks", "in-distribution", "discrete"])
def test_every_mean_of_every_method_is_on_the_page_of_its_suite(suite: str) -> None:
    values = {"arrow": 0.11, "boss": 0.23, "pc": 0.37}
    records = [
        record(method, index, suite, row.name, nshd=nshd + place / 1000)
        for place, row in enumerate(SUITES[suite].rows())
        for method, nshd in values.items()
        for index in range(2)
    ]
    shown = re.findall(
        r"\d\.\d\d\u00a0", "\n".join(lines_under(page(summarize(records), suite), "nSHD (lower is better)"))
    )
    assert len(shown) == len(values) * len(SUITES[suite].rows())


def test_short_times_keep_two_digits_that_say_something() -> None:
    assert [short_seconds(value) for value in (0.0123, 0.5, 3.14159, 12.3, 1234.5)] == [
        "0.012",
        "0.50",
        "3.14",
        "12",
        "1,234",
    ]


# The file


def test_the_csv_of_a_suite_holds_the_means_of_its_records() -> None:
    summary = summarize(read_records(DOCS / "evidence" / "records" / "benchmarks.jsonl.gz"))
    text = (DOCS / "evidence" / "suites" / "networks.csv").read_text(encoding="utf-8")
    lines = list(csv.DictReader(io.StringIO(text)))
    entries = {(row.row, entry.variant.label): entry for row in summary.of_suite("networks") for entry in row.entries}
    checked = 0
    for line in lines:
        if (line["row"], line["method"]) in entries:
            estimate = entries[line["row"], line["method"]].estimate(line["measure"])
            assert float(line["mean"]) == pytest.approx(estimate.mean, rel=1e-5)
            assert int(line["datasets"]) == estimate.count
            checked += 1
    assert checked > 500
    first = lines[0]
    assert (first["suite"], first["n_min"], first["n_max"], first["p_min"]) == ("networks", "100", "100", "46")


# A page says what its suite was used for


def test_every_suite_says_what_it_is_and_whether_it_steered_anything() -> None:
    assert set(ABOUT) == set(SUITES)
    assert "steered development" in role_of("networks")
    assert "fixed beforehand" in role_of("networks", with_strict=True)
    assert "development suite" in role_of("discrete")
    assert "No part of any network's training" in role_of("shifted")
    assert {suite for suite in ABOUT if short_role(suite) == "steering arrow-base"} == {
        "networks",
        "herman",
        "sachs",
        "small",
    }


# The frozen suite


def frozen_records(version: str, nshd: float = 0.2, day: str = "2030-01-02") -> list[Record]:
    """Made-up answers of Arrow and of the empty graph: nobody looks at real ones before a release."""
    settings = {"weights": "arrow-base", "weights_checksum": f"sum of {version}", "rule": "map"}
    return [
        Record(
            **{
                **vars(one),
                "settings": settings if one.method == "arrow" else {},
                "versions": {"causal-arrow": version},
                "run": {**RUN, "date": day},
            }
        )
        for one in rows_of("held-out", {"arrow": nshd, "empty": 1.0}, datasets=2)
    ]


def test_the_page_of_the_frozen_suite_says_which_version_was_run_and_when() -> None:
    text = page(summarize(frozen_records("9.8.7")), "held-out")
    assert text.startswith("# Held-out tasks\n")
    assert "frozen" in role_of("held-out")
    assert role_of("held-out") in text
    assert "- Arrow: causal-arrow 9.8.7, weights arrow-base (checksum sum of 9.8.7), run on 2030-01-02\n" in text
    assert "- Empty graph: causal-arrow 9.8.7, run on 2030-01-02\n" in text
    for row in SUITES["held-out"].rows():
        assert row.name in text
    assert short_role("held-out") not in {short_role(suite) for suite in ABOUT if suite != "held-out"}
    assert "9.8.7" not in page(summarize([*frozen_records("9.8.7"), *rows_of("shifted", {"arrow": 0.3})]), "shifted")


@pytest.mark.parametrize("older", ["9.8.6", "9.7.10", "9.8.7.dev3"])
def test_of_several_releases_the_newest_is_compared_and_all_stay_on_the_page(older: str) -> None:
    summary = summarize([*frozen_records(older, 0.4, "2029-01-02"), *frozen_records("9.8.7")])
    for row in summary.rows:
        newest = row.entry_of("arrow")
        assert newest is not None
        assert newest.variant.versions == {"causal-arrow": "9.8.7"}
    text = page(summary, "held-out")
    assert "- Arrow #1: causal-arrow 9.8.7," in text
    assert f"- Arrow #2: causal-arrow {older}," in text


@pytest.fixture
def make_pages(tmp_path: Path) -> ModuleType:
    """The script of pages with records of the frozen suite alone, in a place of their own; there are none yet."""
    script: ModuleType = load_script("make_pages")
    script.packed = lambda name: tmp_path / f"{name}.jsonl.gz"  # type: ignore[attr-defined]
    script.FILES = ()  # type: ignore[attr-defined]
    return script


def test_the_frozen_suite_has_a_page_once_its_records_are_added(make_pages: ModuleType, tmp_path: Path) -> None:
    assert make_pages.summaries() == {}
    assert make_pages.frozen_sentence().endswith("it has not been run yet.")
    for version in ("9.8.6", "9.8.7"):
        write_packed(frozen_records(version), tmp_path / version / "kept.jsonl.gz")
        make_pages.add(str(tmp_path / version), "held-out")
    make_pages.summaries.cache_clear()
    assert make_pages.frozen_sentence().endswith(
        "[its results](suites/held-out.md) are published whatever they are. Run with causal-arrow 9.8.7, 9.8.6."
    )
    (summary,) = make_pages.summaries().values()
    texts = {path.name: text for path, text in make_pages.texts_of_suite(summary, "held-out").items()}
    assert set(texts) == {"held-out.md", "held-out.csv"}
    assert "- Arrow #1: causal-arrow 9.8.7," in texts["held-out.md"]
    lines = list(csv.DictReader(io.StringIO(texts["held-out.csv"])))
    assert {line["row"] for line in lines} == {row.name for row in SUITES["held-out"].rows()}


def test_without_records_of_the_frozen_suite_no_page_speaks_of_its_results() -> None:
    if (DOCS / "evidence" / "records" / "held-out.jsonl.gz").exists():
        pytest.skip("it has been run")
    assert not (DOCS / "evidence" / "suites" / "held-out.md").exists()
    assert "it has not been run yet" in (DOCS / "evidence" / "benchmarks.md").read_text(encoding="utf-8")


def test_records_of_the_frozen_suite_are_kept_apart(make_pages: ModuleType, tmp_path: Path) -> None:
    write_packed(frozen_records("9.8.7"), tmp_path / "frozen" / "kept.jsonl.gz")
    write_packed(rows_of("shifted", {"arrow": 0.3}), tmp_path / "others" / "kept.jsonl.gz")
    for folder, name, told in (("frozen", "benchmarks", "held-out"), ("others", "held-out", "shifted")):
        with pytest.raises(SystemExit, match=f"has records of {told}, which do not belong in {name}"):
            make_pages.add(str(tmp_path / folder), name)


def test_running_arrow_anew_leaves_the_frozen_suite_alone() -> None:
    runs = load_script("make_pages").RUNS
    named = {suite for parts in runs.values() for suites, _, _ in parts for suite in suites.split()}
    assert "shifted" in named
    assert "held-out" not in named


# arrow-strict


def test_arrow_strict_has_a_line_of_its_own_and_differences_of_its_own() -> None:
    text = page(summarize(rows_of("networks", {"arrow": 0.3, STRICT: 0.4, "boss": 0.6})), "networks")
    for title in ("nSHD (lower is better)", "F1 (higher is better)", "AP (higher is better)", "Time"):
        assert any(line.startswith("| arrow-strict ") for line in lines_under(text, title)), title
    ours = lines_under(text, "arrow-strict minus others: nSHD")
    assert [line.split("|")[1].strip() for line in ours[2:]] == ["Arrow", "BOSS"]
    assert "−0.20" in ours[3]
    assert "settings fixed beforehand" in text


def test_published_figures_stand_in_tables_of_their_own() -> None:
    text = page(summarize(rows_of("networks", {"arrow": 0.3, "boss": 0.6})), "networks")
    measured, published = text.split("## As published\n")
    assert not re.search(r"\| \*\d", measured)  # italics
    assert all("*" in line for line in lines_under(text, "nSHD, published")[2:])
    assert "AVICI" in published


def test_three_networks_stand_beside_each_other_and_the_published_one_is_marked() -> None:
    summary = summarize(rows_of("networks", {"arrow": 0.3, STRICT: 0.4}))
    (table,) = [
        block for block in networks_compared(summary, published_results(), summary.rows) if isinstance(block, Grid)
    ]
    assert table.header == ("Data", "Paper's network (published)", "arrow-strict", "arrow-base")
    first = table.rows[0]
    assert [cell.text for cell in first] == ["networks/ECOLI70", "0.56", "0.60", "0.70"]
    assert [cell.italic for cell in first] == [False, True, False, False]
    without = summarize(rows_of("networks", {"arrow": 0.3}))
    assert "arrow-strict" not in to_markdown(networks_compared(without, published_results(), without.rows), Path())


@pytest.mark.parametrize("worst", ["graphs", "functions", "noise"])
def test_the_shift_that_costs_most_is_named_for_each_network(worst: str) -> None:
    records = [
        record(
            method, index, "shifted", row.name, nshd=level + 0.01 * index + (0.3 if row.name in (worst, "all") else 0)
        )
        for method, level in (("arrow", 0.1), (STRICT, 0.2))
        for row in SUITES["shifted"].rows()
        for index in range(5)
    ]
    text = to_markdown(shift_blocks(summarize(records)), Path())
    for network in ("arrow-base", "arrow-strict"):
        assert f"For {network}, {worst} hurt most: nSHD rises by 0.30" in text
    level = [
        record("arrow", index, "shifted", row.name, nshd=0.1 * index)
        for row in SUITES["shifted"].rows()
        for index in (0, 1)
    ]
    assert "no single shift raises nSHD" in to_markdown(shift_blocks(summarize(level)), Path())


# Times


def test_times_on_a_gpu_stand_beside_those_of_a_processor_where_there_are_any() -> None:
    summary = summarize(rows_of("networks", {"arrow": 0.3, "boss": 0.6}))
    assert "GPU" not in page(summary, "networks").split("## As published")[0]
    fast = summarize([record("arrow", index, seconds=0.02 * (index + 1), on_gpu=1) for index in range(3)])
    lines = lines_under(page(summary, "networks", fast), "Time")
    (line,) = [line for line in lines if "Test GPU" in line]
    assert [cell.strip() for cell in line.strip("|").split("|")] == ["Arrow, Test GPU", "0.040", "", "", ""]
    timed = [
        line for line in csv.DictReader(io.StringIO(suite_csv(summary, "networks", fast))) if "GPU" in line["method"]
    ]
    assert [line["measure"] for line in timed] == ["seconds"]


def test_a_network_that_was_run_on_a_gpu_alone_keeps_its_name_and_its_time_says_where() -> None:
    strict = [record(STRICT, index, on_gpu=1) for index in range(2)]
    text = page(summarize([*(record("arrow", index) for index in range(2)), *strict]), "networks")
    assert [line.split("|")[1].strip() for line in lines_under(text, "F1 (higher is better)")[2:]] == [
        "Arrow",
        "arrow-strict",
    ]
    assert any(line.startswith("| arrow-strict, Test GPU ") for line in lines_under(text, "Time"))
    both = summarize([record("arrow", 0), record("arrow", 0, on_gpu=1)])
    assert [variant.label for variant in both.variants] == ["Arrow", "Arrow, on cuda"]


# Wins and losses


def test_a_row_is_won_against_all_and_lost_to_one() -> None:
    place = {"suite": "shifted", "row": "all"}
    ours = [record("arrow", i, **place, nshd=0.3 + 0.01 * i, f1=0.7, ap=0.7 + 0.01 * i) for i in range(5)]
    worse = [record("pc", i, **place, nshd=0.6 + 0.011 * i, f1=0.4 + 0.01 * i, ap=0.3) for i in range(5)]
    mixed = [record("boss", i, **place, nshd=0.6 + 0.011 * i, f1=0.9 + 0.01 * i, ap=0.3) for i in range(5)]
    oracle = [record("class-oracle", i, **place, nshd=0.0, f1=1.0, ap=1.0) for i in range(5)]
    won = tally(summarize(ours + worse + oracle).rows)
    assert (won.counted, won.ahead, won.behind) == (("all",), ("all",), {})
    lost = tally(summarize(ours + worse + mixed).rows)
    assert (lost.counted, lost.ahead, lost.behind) == (("all",), (), {"all": "BOSS"})
    trivial = [record("varsort", i, **place, nshd=0.6 + 0.011 * i, f1=0.4, ap=0.3) for i in range(5)]
    assert tally(summarize(ours + trivial + oracle).rows).rows == 0  # no rival that anybody would use


def test_wins_and_losses_are_counted_by_where_tables_come_from_and_what_they_were_used_for() -> None:
    good, bad = {"arrow": 0.1, "pc": 0.6}, {"arrow": 0.6, "pc": 0.1}
    records = rows_of("shifted", good) + rows_of("networks", bad) + rows_of("sachs", bad)
    constant = [Record(**{**vars(one), "measures": {**one.measures, "ap": one.measures["f1"]}}) for one in records]
    jitter = [
        Record(
            **{
                **vars(one),
                "measures": {
                    name: value + (0.001 * (one.index % 2) if one.method == "pc" else 0)
                    for name, value in one.measures.items()
                },
            }
        )
        for one in constant
    ]
    found = tallies([summarize(jitter)])
    lines = [tuple(cell.text for cell in row) for row in tally_table(found).rows]
    unlike, alike = "tables unlike training, by design", "tables drawn like the training tasks"
    assert lines == [
        ("real tables", "steering arrow-base", "6", "0", "6"),
        (unlike, "no choice", "3", "3", "0"),
        (unlike, "steering arrow-base", "4", "0", "4"),
        (alike, "no choice", "2", "2", "0"),  # shifted/none and shifted/functions
    ]
    table = suites_table(["shifted", "networks"], found, {"shifted": "a.md", "networks": "b.md"})
    assert [cell.text for cell in table.rows[1][2:]] == ["4", "0", "4 (PC)"]


def test_every_origin_names_rows_that_exist() -> None:
    for name in (*REAL, *UNSEEN):
        suite, _, row = name.partition("/")
        assert suite in SUITES
        assert not row or row in {each.name for each in SUITES[suite].rows()}, name


def test_the_main_result_compares_all_methods_that_were_run_and_not_only_those_it_shows() -> None:
    make_pages: ModuleType = load_script("make_pages")
    summary = make_pages.summaries()["benchmarks"]
    table = main_result(summary)
    assert len(table.rows) == 7
    by_row = {row[0].text: row for row in table.rows}
    assert table.header[1:] == ("Arrow", "FLOP", "BOSS", "PC", "Best other")
    assert by_row["Gene network ECOLI70, 100 rows"][1].bold  # Arrow
    assert not by_row["Plant network MAGIC-NIAB, 100 rows"][1].bold  # here it loses
    cells = by_row["Sachs et al., real cells, 100 rows"]
    assert cells[-1].text.endswith("(R² sorting)")  # a heuristic that no column shows is ahead
    assert [cell.bold for cell in cells[1:]] == [False, False, False, False, True]


def test_titles_of_a_page_are_different() -> None:
    blocks = suite_page(
        summarize(rows_of("networks", {"arrow": 0.3, STRICT: 0.4, "boss": 0.6})),
        "networks",
        csv_file="x.csv",
        protocol="protocol.md",
        paper=published_results(),
    )
    titles = [block.text for block in blocks if isinstance(block, Heading)]
    assert len(titles) == len(set(titles))
