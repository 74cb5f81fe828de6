"""The pages for readers show what their code prints, name every command and message, and are all in the navigation."""

from __future__ import annotations

import calendar
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from calibration_tables import calibration_blocks
from causal_arrow import load_example
from causal_arrow.cli.program import PROGRAM, Program
from causal_arrow_lab.cli.commands import PROGRAM as LAB_PROGRAM
from docs_scripts import DOCS, load_script
from document import to_markdown

outputs = load_script("make_outputs")
PAGES = [page.relative_to(DOCS).as_posix() for page in outputs.pages()]


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def cells(page: str, first: str) -> list[list[str]]:
    """The lines of the first table whose header begins with these words, without the header."""
    table = re.search(rf"^\| {first} .*\n\|[-|: ]+\n((?:\|.*\n)+)", text_of(page), re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table[1].splitlines()]


# Code and what it prints


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("network_with_noise")
@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in text_of(page) or "```bash" in text_of(page)])
def test_every_page_shows_what_its_code_prints_on_any_processor(
    page: str, usual_model: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Noise that exceeds the rounding errors of any processor stands for all of them, this one included."""
    if usual_model != "arrow-base":
        pytest.skip("the pages show answers of the bundled networks")
    if "dowhy" in text_of(page).lower():
        pytest.importorskip("dowhy")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for block in outputs.run_page(text_of(page)):
        assert block.disagreement is None, f"docs/{page}: to update it, run python docs/tools/make_outputs.py"


@pytest.mark.filterwarnings("ignore")
def test_the_noise_reaches_the_programs_of_pages_and_all_that_they_start(
    usual_model: str, request: pytest.FixtureRequest
) -> None:
    code = (
        "from causal_arrow import Arrow, load_example\n"
        f"arrow = Arrow({usual_model!r}).fit(load_example('hospital'))\n"
        "print(arrow.edge_probabilities_.to_numpy().tolist())"
    )
    plain = np.array(json.loads(outputs.run_python(code, {})))
    request.getfixturevalue("network_with_noise")
    here = np.array(json.loads(outputs.run_python(code, {})))
    elsewhere = np.array(json.loads(outputs.run_shell(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}")))
    assert 1e-7 < abs(here - plain).max() < 5e-6
    assert abs(elsewhere - here).max() < 1e-9


@pytest.mark.parametrize("page", PAGES)
def test_what_can_be_copied_has_no_prompt_and_no_block_is_printed_by_nothing(page: str) -> None:
    text = text_of(page)
    assert "```console" not in text
    for code in re.findall(r"^ *```(?:bash|sh)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        assert not re.search(r"^\s*\$ ", code, re.MULTILINE), code
    after_code = [block["shown"] for block in outputs.BLOCK.finditer(text) if block["shown"] is not None]
    assert len(after_code) == len(re.findall(r"^ *```text\n", text, re.MULTILINE))


def test_a_page_that_says_something_else_than_its_code_is_written_anew() -> None:
    in_a_tab = "    ```bash\n    echo two\n    ```\n\n    ```text\n    ```\n"
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n" + in_a_tab
    right = page.replace("3", "2").replace("    ```text\n", "    ```text\n    two\n")
    assert outputs.with_outputs(page) == right


def test_a_page_that_another_processor_might_have_written_is_left_alone() -> None:
    page = "```python\nprint('drug  0.971', 'in <1% of graphs')\n```\n\n```text\ndrug   0.97 in 1% of graphs\n```\n"
    assert outputs.with_outputs(page) == page


def test_readme_has_the_example_of_the_home_page_with_its_output() -> None:
    blocks = [
        [block["code"] + (block["shown"] or "") for block in outputs.BLOCK.finditer(text) if block["shown"] is not None]
        for text in (text_of("index.md"), (DOCS.parent / "README.md").read_text(encoding="utf-8"))
    ]
    assert blocks[0]
    assert blocks[0] == blocks[1]


# Statements that were false once


def test_no_page_shows_a_table_with_columns_left_out() -> None:
    for page in PAGES:
        for block in outputs.BLOCK.finditer(text_of(page)):
            shown = re.sub(r"^\.\.\. and \d.*", "", block["shown"] or "", flags=re.MULTILINE)  # a list cut by --show
            assert not re.search(r"\s\.\.\.(?:\s|$)", shown, re.MULTILINE), page


def test_what_is_said_of_marked_experiments_in_real_cells_is_what_was_measured() -> None:
    f1 = text_of("evidence/suites/interventional.md").partition("## F1")[2].partition("## AP")[0]
    header, *rows = [line.split("|") for line in f1[f1.index("| Method", f1.index("| Method") + 1) :].splitlines()]
    column = [cell.strip() for cell in header].index("sachs-raw")
    measured = {
        row[1].strip(): row[column].split("(")[0].strip("* \N{NO-BREAK SPACE}") for row in rows if len(row) > column
    }
    marked, unmarked = measured["Arrow"], measured["Arrow, experiments unmarked"]
    text = " ".join(text_of("guides/experiments.md").split())
    assert f"F1 is {marked} with marks and {unmarked} without" in text


def test_the_pages_have_one_story_about_directions_in_real_cells() -> None:
    """Half of them are right, at every probability that the network gives."""
    of_sachs = next(row for row in cells("understand/probabilities.md", "Tables") if "sachs" in row[0])
    assert all(40 <= int(cell.partition("%")[0]) <= 60 for cell in of_sachs[1:])
    for page in ("understand/limits.md", "model/card.md"):
        text = " ".join(text_of(page).split())
        assert re.search(r"about half of the directions (?:were|are) right, at every probability", text), page
    for page in [*PAGES, "model/card.md"]:
        assert not re.search(r"(?:four|six)\s+(?:in|of)\s+ten\s+(?:of\s+its\s+)?directions", text_of(page)), page


@pytest.mark.parametrize(
    "claim",
    [
        "sign is safe",
        "most true edges",
        r"accuracy\s+holds\s+up\s+to",
        r"particular\s+to\s+this\s+method",
        r"no\s+assumption\s+but\s+its\s+own",
    ],
)
def test_no_page_repeats_a_claim_that_was_false(claim: str) -> None:
    for path in [DOCS.parent / "README.md", *DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]:
        assert not re.search(claim, path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize("page", ["guides/effects.md", "guides/reporting.md", "tutorials/from-graph-to-effect.ipynb"])
def test_where_intervals_are_shown_the_page_says_that_the_same_rows_chose_the_graph(page: str) -> None:
    text = text_of(page)
    assert re.search(r"[Ss]ame rows|same observations", text)
    assert "split=True" in text


def test_every_work_that_a_page_cites_has_an_entry_in_the_references() -> None:
    name = r"[A-ZÄÖÜ][\w'’-]+"
    cited = re.compile(rf"(?<!-)\b({name})(?:(?:, | and ){name})*(?: et al\.| and colleagues)? \(?((?:19|20)\d\d)\b")
    entries = [
        " ".join(entry.split())
        for page in ("understand/references.md", "understand/effect-methods.md")
        for entry in re.findall(r"^- ((?:.|\n  )+)", text_of(page), re.MULTILINE)
    ]
    works = set()
    for path in sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]):
        if path.name not in ("references.md", "changelog.md"):
            works |= set(cited.findall(" ".join(path.read_text(encoding="utf-8").replace("\\n", " ").split())))
    assert len(works) > 15
    works = {work for work in works if work[0] not in calendar.month_name}
    missing = [work for work in works if not any(work[0] in entry and work[1] in entry for entry in entries)]
    assert not missing


def test_the_changelog_has_a_short_line_for_each_change() -> None:
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    assert set(re.findall(r"^### (.+)$", latest, re.MULTILINE)) <= {"Added", "Changed", "Removed", "Fixed"}
    entries = re.findall(r"^- ((?:.|\n  )+)", latest, re.MULTILINE)
    assert len(entries) > 50
    assert max(len(" ".join(entry.split())) for entry in entries) < 300
    assert not re.search(r"^- \*\*", latest, re.MULTILINE)


# The command line


@pytest.mark.parametrize("program", [PROGRAM, LAB_PROGRAM], ids=lambda program: program.name)
def test_the_page_of_the_command_line_has_a_line_and_a_section_with_an_example_for_every_command(
    program: Program,
) -> None:
    page = text_of("guides/command-line.md")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    named = {line[0].rpartition("[`")[2].partition("`]")[0] for line in cells("guides/command-line.md", "Command")}
    assert len(named) == len(PROGRAM.commands) + len(LAB_PROGRAM.commands)
    for command in program.commands:
        assert named & {command, f"{program.name} {command}"}
        (section,) = (text for title, text in sections.items() if command in title.split())
        assert f"\n{program.name} {command}" in section


# Messages


def frame(**columns: object) -> pd.DataFrame:
    return load_example("hospital").assign(**columns)


N = 800
MESSAGES: list[tuple[Callable[[], pd.DataFrame], str]] = [
    (lambda: frame(admitted=pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d")), "discover table.csv"),
    (lambda: frame(patient=[f"P{number:04d}" for number in range(N)]), "discover table.csv"),
    (lambda: frame(country="NL"), "discover table.csv"),
    (lambda: frame(diagnosis=[f"D{number % 150}" for number in range(N)]), "discover table.csv"),
    (lambda: frame(score=[str(number % 17) if number % 50 else "?" for number in range(N)]), "discover table.csv"),
    (lambda: frame(share=["12%" if number % 2 else "12" for number in range(N)]), "discover table.csv"),
    (lambda: frame(ratio=[np.inf, *range(1, N)]), "discover table.csv"),
    (lambda: frame(biopsy=[np.nan if number % 20 else float(number) for number in range(N)]), "discover table.csv"),
    (lambda: frame()[:15], "discover table.csv"),
    (lambda: frame(set=["dose" if n % 2 else "" for n in range(N)]), "discover table.csv --interventions set"),
    (frame, "discover table.csv --drop agee"),
    (frame, "discover table.csv --model arrow-strict"),
    (frame, "discover table.csv --require drug->stay --require stay->drug"),
    (frame, "discover table.csv --forbid drugs->stay"),
    (frame, "discover table.csv --device cuda"),
    (frame, "discover table.csv --output out"),
    (frame, "effect table.csv --treatment ward --outcome stay"),
    (frame, "effect table.csv --treatment drug --outcome ward"),
    (frame, "discover numbers.csv"),
    (frame, "discover tilde.csv"),
    (frame, "discover old.xls"),
    (frame, "discover patients.csv"),
    (lambda: frame(age_months=frame()["age"] * 12), "check table.csv"),
    (lambda: frame(total=frame()[["smoker", "drug", "stay"]].sum(axis=1)), "check table.csv"),
    (lambda: load_example("us-economy").drop(columns="quarter"), "check table.csv"),
    (lambda: frame(bill=np.exp(3 * np.random.default_rng(0).normal(size=N))), "check table.csv"),
    (lambda: frame()[:40], "check table.csv"),
]


@pytest.mark.skipif(torch.cuda.is_available(), reason="one of the messages is about a machine without a GPU")
def test_troubleshooting_has_the_messages_that_are_given_and_no_others(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.xls").write_text("no workbook")
    Path("out").mkdir()
    for name in ("graph.json", "edges.csv", "graph.graphml", "graph.gml"):
        Path("out", name).touch()
    frame()[["age", "smoker", "drug", "stay"]].to_csv("numbers.csv", index=False, header=False)
    frame().to_csv("tilde.csv", index=False, sep="~")
    shown = set(re.findall(r'^```text title="Message"\n(.*)\n```', text_of("guides/troubleshooting.md"), re.MULTILINE))
    given: set[str] = set()
    for table, command in MESSAGES:
        table().to_csv("table.csv", index=False)
        _, out, err = run(*command.split())
        said = {line.split(": ", 1)[1] for line in [*out.splitlines(), *err.splitlines()] if ": " in line}
        assert said & shown, f"{command} says {said}"
        given |= said
    assert shown <= given


# Figures, navigation


def test_the_shares_on_the_page_of_probabilities_are_those_of_the_records() -> None:
    measured = to_markdown(calibration_blocks(load_script("make_pages").calibration_records()), DOCS)
    directions = re.sub(r" +", " ", measured)
    rows = cells("understand/probabilities.md", "Tables")
    assert len(rows) == 4
    for title, *shares in rows:
        name = re.search(r"`(.*)`", title)
        assert name is not None
        assert f"| {name[1]} | {' | '.join(shares)} |" in directions


def test_the_times_of_wide_tables_are_those_of_the_page_on_scale() -> None:
    measured = cells("evidence/scale.md", "method")
    of_arrow = {
        variables: (float(time), float(memory), f1)
        for method, variables, time, memory, f1, _ in measured
        if method == "arrow-base"
    }
    for variables, seconds, memory, f1 in cells("guides/large-tables.md", "Variables"):
        time, gigabytes, accuracy = of_arrow[variables]
        digits = len(seconds.split()[0].partition(".")[2])
        assert seconds == f"{time:.{digits}f} s"
        assert (memory, f1) == (f"{gigabytes:.1f} GB", accuracy)


def test_every_page_is_in_the_navigation_or_behind_the_overview_of_suites() -> None:
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    for page in PAGES:
        if page.startswith("evidence/suites/"):
            assert f"]({page.removeprefix('evidence/')})" in text_of("evidence/benchmarks.md"), page
        else:
            assert f": {page}\n" in nav, page


def test_sections_of_the_navigation_are_in_their_order() -> None:
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    sections = re.findall(r"^  - ([A-Z][a-z ]+):", nav, re.MULTILINE)
    assert sections == ["Home", "Get started", "Guides", "Understand", "Evidence", "Reference"]


def test_no_section_of_the_navigation_has_a_single_entry() -> None:
    """A sidebar or a heading for one page is noise."""
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in nav.splitlines() if line.strip()]
    for index, (depth, line) in enumerate(lines):
        if line.endswith(":"):
            inside = []
            for deeper, entry in lines[index + 1 :]:
                if deeper <= depth:
                    break
                inside.append(entry)
            assert len(inside) > 1, line


def test_the_list_for_language_models_names_pages_that_exist() -> None:
    """docs/llms.txt is written by hand: the first pages to read, one line each."""
    named = re.findall(r"\]\(([^)]+)\)", text_of("llms.txt"))
    assert len(named) > 15
    for address in named:
        name = address.removesuffix("/")
        assert any((DOCS / f"{name}{end}").is_file() for end in (".md", ".ipynb", "/index.md", "")), address
    tutorials = {f"tutorials/{path.stem}/" for path in (DOCS / "tutorials").glob("*.ipynb")}
    guides = {f"guides/{path.stem}/" for path in (DOCS / "guides").glob("*.md")}
    assert tutorials | guides <= set(named)
