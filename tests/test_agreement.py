"""What a program prints agrees with its page if only rounding differs, and disagrees if anything else does."""

from __future__ import annotations

import pytest

from agreement import disagreement

ANSWER = """\
800 observations of 7 variables, read by arrow-base

cause         effect        probability  adjacent  direction
inflammation  drug          0.97         1.00      strong (0.97)
smoker        inflammation  0.93         0.94      strong (0.99)

2 edges. Causal order: smoker, inflammation, drug
12% of 100 node-permuted graphs fit as well.
"""
EFFECT = "stay changes by -1.75 (90% interval -1.95 to -1.50) when drug goes from 0 to 1; no effect in <1% of graphs.\n"
DOLLARS = "pay changes by 1,760 (90% interval 665 to 2,860) when trained goes from no to yes.\n"
RANKING = "  dose: 1,230 (-450 to 3,100) per unit of dose; an effect in 12% of graphs\n"
FRAME = """\
              adjustment_set  frequency  effect   low
        (ward, inflammation)       0.96   -1.75 -1.95
                        None       0.00    0.00  0.00
"""


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (ANSWER, "", ""),
        (ANSWER, "0.93 ", "0.92 "),
        (ANSWER, "1.00      strong", "0.99      strong"),
        (ANSWER, "strong (0.97)", "strong (0.98)"),
        (ANSWER, "12%", "13%"),
        (EFFECT, "-1.75", "-1.76"),
        (EFFECT, "-1.50", "-1.49"),
        (EFFECT, "<1%", "0%"),
        (EFFECT, "<1%", "1%"),
        (EFFECT, "<1%", "1.4%"),
        (DOLLARS, "1,760", "1,763"),
        (DOLLARS, "665", "660"),
        (DOLLARS, "2,860", "2,871"),
        (RANKING, "1,230", "1,225"),
        (RANKING, "3,100", "3,090"),
        (FRAME, "   -1.75 -1.95", "  -1.746 -1.95"),
        (FRAME, "    0.00  0.00\n", "   -0.00 -0.00\n"),
        ("set ward: >99% of it", ">99%", "99%"),
        ("set ward: 0", "0", "1e-17"),
        ("set ward: 2.4e-17", "2.4e-17", "0"),
        ("at 9.99 days", "9.99", "10.0"),
        ("frequency  0.99\n     more  0.05", "frequency  0.99\n", "frequency  1.00\n"),
    ],
)
def test_what_another_processor_may_print_agrees(text: str, old: str, new: str) -> None:
    printed = changed(text, old, new)
    assert disagreement(text, printed) is None
    assert disagreement(printed, text) is None


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (ANSWER, "0.93 ", "0.91 "),
        (ANSWER, "800", "801"),
        (ANSWER, "2 edges", "3 edges"),
        (ANSWER, "strong (0.97)", "moderate (0.97)"),
        (ANSWER, "smoker        inflammation", "inflammation  smoker      "),
        (ANSWER, "smoker        inflammation  0.93         0.94      strong (0.99)\n", ""),
        (ANSWER, "\n\ncause", "\ncause"),
        (ANSWER, "smoker, inflammation, drug", "inflammation, smoker, drug"),
        (ANSWER, "as well.\n", "as well.\nCareful: few rows.\n"),
        (ANSWER, "12%", "14%"),
        (ANSWER, "12% of", "none of"),
        (ANSWER, "12%", "12"),
        (ANSWER, "arrow-base", "arrow-base-2"),
        (EFFECT, "-1.75", "1.75"),
        (EFFECT, "-1.75", "-1.78"),
        (EFFECT, "from 0 to 1", "from 0 to 2"),
        (EFFECT, "<1%", "2%"),
        (EFFECT, "<1%", "1.5%"),
        (EFFECT, "<1%", ">99%"),
        (DOLLARS, "1,760", "1,790"),
        (DOLLARS, "2,860", "-2,860"),
        (FRAME, "0.96", "0.94"),
        (FRAME, "None", "()  "),
        ("set ward: 0", "0", "0.001"),
        ("version 0.2.0.dev0", "0.2.0", "0.2.1"),
        ("on 2024-01-05", "05", "06"),
        ("x1 → x7", "x7", "x8"),
        ("  indented", "  indented", "indented"),
    ],
)
def test_another_number_word_line_or_edge_disagrees(text: str, old: str, new: str) -> None:
    printed = changed(text, old, new)
    assert disagreement(text, printed) is not None
    assert disagreement(printed, text) is not None


def test_rows_of_a_table_in_another_order_disagree() -> None:
    lines = ANSWER.splitlines()
    lines[3], lines[4] = lines[4], lines[3]
    assert disagreement(ANSWER, "\n".join(lines)) is not None


def test_the_first_line_that_disagrees_is_named() -> None:
    assert disagreement("a\nb 1\nc", "a\nb 2\nd") == "line 2: expected 'b 1', got 'b 2'"
    assert disagreement("a\nb", "a") == "line 2: expected 'b', got the end"
