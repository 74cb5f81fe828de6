"""Pictures: nothing overlaps, every edge can be followed to its end, and what is drawn is said."""

from __future__ import annotations

import functools
import itertools
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.path import Path as Curve

from causal_arrow import Arrow, Discovery
from causal_arrow.discovery import exports, pictures
from causal_arrow.discovery.answer import Answer
from causal_arrow.discovery.pictures import scene
from causal_arrow.discovery.pictures.scene import shortened
from causal_arrow.errors import ConfigurationError, GraphError, KnowledgeError
from causal_arrow.graphs.graph_distribution import GraphDistribution
from causal_arrow.graphs.knowledge import Knowledge
from causal_arrow.graphs.layout import Layout, Route, layered_layout

mpl.use("agg")

HEIGHT = 20.0


def random_answer(variables: int, edges: int, seed: int, names: list[str] | None = None) -> Answer:
    random = np.random.default_rng(seed)
    logits = np.full((variables, variables), -5.0)
    pairs = list(itertools.combinations(range(variables), 2))
    for j, k in random.permutation(pairs)[:edges]:
        logits[j, k] = logits[k, j] = random.uniform(0.1, 4)
    scores = random.normal(size=variables) * 3
    chosen = tuple(names or [f"x{place + 1}" for place in range(variables)])
    return Answer(chosen, GraphDistribution(logits, scores))


@functools.cache
def random_layout(variables: int, density: float, seed: int) -> tuple[np.ndarray, list[float], Layout]:
    random = np.random.default_rng(seed)
    order = random.permutation(variables)
    adjacency = np.triu(random.random((variables, variables)) < density, k=1)[np.ix_(order, order)]
    widths = random.uniform(25, 110, size=variables).tolist()
    return adjacency, widths, layered_layout(adjacency, widths, HEIGHT)


LAYOUTS = [(2, 0.0), (2, 1.0), (11, 0.25), (12, 0.8), (30, 0.08), (50, 0.05), (60, 0.02), (100, 0.03)]


def boxes_of(layout: Layout, widths: list[float]) -> np.ndarray:
    """Left, right, bottom and top of every box.  (P, 4)"""
    x, y = layout.centers.T
    half = np.array(widths) / 2
    return np.stack([x - half, x + half, y - HEIGHT / 2, y + HEIGHT / 2], axis=1)


def points_along(route: Route) -> np.ndarray:
    """Many points of the curve that is drawn for a route."""
    control = scene.curve_of(route)
    t = np.linspace(0, 1, 25)[:, None]
    pieces = []
    for start in range(0, len(control) - 1, 3):
        a, b, c, d = control[start : start + 4]
        pieces.append((1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d)
    return np.concatenate(pieces)


@pytest.mark.parametrize(("variables", "density"), LAYOUTS)
def test_boxes_never_overlap_and_stay_in_the_picture(variables: int, density: float) -> None:
    _, widths, layout = random_layout(variables, density, seed=variables)
    boxes = boxes_of(layout, widths)
    for first, second in itertools.combinations(boxes, 2):
        apart = first[1] <= second[0] or second[1] <= first[0] or first[3] <= second[2] or second[3] <= first[2]
        assert apart
    assert boxes[:, [0, 2]].min() >= -1e-9
    assert boxes[:, 1].max() <= layout.width + 1e-9
    assert boxes[:, 3].max() <= layout.height + 1e-9


@pytest.mark.parametrize(("variables", "density"), LAYOUTS)
def test_edges_run_from_cause_down_to_effect_and_through_no_other_box(variables: int, density: float) -> None:
    adjacency, widths, layout = random_layout(variables, density, seed=variables)
    assert {(route.source, route.target) for route in layout.routes} == set(map(tuple, np.argwhere(adjacency).tolist()))
    boxes = boxes_of(layout, widths)
    for route in layout.routes:
        points = points_along(route)
        assert (np.diff(points[:, 1]) <= 1e-9).all()
        left, right, bottom, _ = boxes[route.source]
        assert left <= points[0, 0] <= right
        assert points[0, 1] == pytest.approx(bottom)
        left, right, _, top = boxes[route.target]
        assert left <= points[-1, 0] <= right
        assert points[-1, 1] == pytest.approx(top)
        inside = (
            (points[:, None, 0] > boxes[None, :, 0] + 1e-6)
            & (points[:, None, 0] < boxes[None, :, 1] - 1e-6)
            & (points[:, None, 1] > boxes[None, :, 2] + 1e-6)
            & (points[:, None, 1] < boxes[None, :, 3] - 1e-6)
        )
        assert not inside.any()


def test_a_tree_is_drawn_without_crossings() -> None:
    adjacency = np.zeros((15, 15), dtype=bool)
    for child in range(1, 15):
        adjacency[(child - 1) // 2, child] = True
    shuffled = np.random.default_rng(0).permutation(15)
    layout = layered_layout(adjacency[np.ix_(shuffled, shuffled)], [40.0] * 15, HEIGHT)
    for first, second in itertools.combinations([r for r in layout.routes if len(r.points) == 2], 2):
        (a, top), (b, bottom) = first.points
        (c, other_top), (d, other_bottom) = second.points
        if (top, bottom) == (other_top, other_bottom):
            assert (a - c) * (b - d) >= 0


def test_a_layout_of_a_cycle_is_refused() -> None:
    with pytest.raises(GraphError):
        layered_layout(np.array([[0, 1], [1, 0]]), [30.0, 30.0], HEIGHT)


# Names


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x1", "x1"),
        ("blood pressure", "blood pressure"),
        ("systolic blood pressure", "systolic blood\npressure"),
        ("rainfall_total_2019", "rainfall_\ntotal_2019"),
        ("household income before taxes (2019)", "household\n…taxes (2019)"),
        ("abcdefghijklmnopqrstuvwxyz0123456789", "abcdef…3456789"),
        ("bloodPressureAtRest", "bloodPressure\nAtRest"),
        ("resp.rate.at.admission.2019", "resp.rate.at.\nadmission.2019"),
        ("Hospitalisierungsdauer in Tagen", "Hospit…gsdauer\nin Tagen"),
        ("two\nlines", "two\nlines"),
        ("concave points at the worst place", "concave points\n…worst place"),
        ("a_verylongwordwithoutbreaks_b", "a_\n…thoutbreaks_b"),
        ("temperature t-1", "temperature\nt-1"),
        ("  ", " "),
    ],
)
def test_long_names_are_wrapped_and_cut_but_keep_their_end(name: str, shown: str) -> None:
    assert shortened(name) == shown


def test_labels_fit_their_boxes() -> None:
    names = [
        "x",
        "blood pressure",
        "systolic blood pressure",
        "WWWWWWWWWWWWWW",
        "iiiiiiiiiiiiiiiiiiiiii",
        "$a_b$",
        "äöü ẞ→",
    ]
    answer = random_answer(7, 8, seed=1, names=names)
    figure = Figure()
    axes = pictures.draw_graph(answer, figure.add_subplot())
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    labels = {text.get_text(): text for text in axes.texts}
    boxes = [patch for patch in axes.patches if patch.__class__.__name__ == "FancyBboxPatch"]
    assert len(boxes) == 7
    for name, box in zip(names, boxes, strict=True):
        text = labels[shortened(name)].get_window_extent(renderer)
        outline = box.get_window_extent(renderer)
        assert text.x0 >= outline.x0
        assert text.x1 <= outline.x1
        assert text.y0 >= outline.y0 - 1
        assert text.y1 <= outline.y1 + 1


# What is drawn


def lines_of(axes: object) -> list[object]:
    return [patch for patch in axes.patches if patch.__class__.__name__ == "PathPatch"]  # type: ignore[attr-defined]


def test_probable_edges_are_wider_and_uncertain_directions_dashed() -> None:
    logits = np.full((3, 3), -5.0)
    logits[0, 1] = logits[1, 0] = 5.0  # sure edge, sure direction
    logits[0, 2] = logits[2, 0] = 0.3  # doubtful edge
    scores = np.array([9.0, 0.0, 8.8])
    axes = pictures.draw_graph(Answer(("a", "b", "c"), GraphDistribution(logits, scores)))
    weak, strong = lines_of(axes)[:2]  # the strongest are drawn last
    assert strong.get_linewidth() > weak.get_linewidth()  # type: ignore[attr-defined]
    assert strong.get_alpha() > weak.get_alpha()  # type: ignore[attr-defined]
    assert strong.get_linestyle() == "-"  # type: ignore[attr-defined]
    assert weak.get_linestyle() != "-"  # type: ignore[attr-defined]
    said = [text.get_text() for text in axes.texts]
    assert "direction: weak" in said
    assert "direction: moderate" not in said


def test_only_the_strongest_edges_are_drawn_and_the_title_says_so() -> None:
    answer = random_answer(20, 60, seed=2)
    assert len(answer.edges) == 60
    axes = pictures.draw_graph(answer, max_edges=25)
    title = next(text.get_text() for text in axes.texts if "variables" in text.get_text())
    assert title == "20 variables, the 25 most probable of 60 edges"
    legend = sum(text.get_text().startswith(("probability", "direction")) for text in axes.texts)
    assert len(lines_of(axes)) == 25 + legend
    with pytest.raises(ConfigurationError):
        pictures.draw_graph(answer, max_edges=0)


def dashed(patch: object) -> bool:
    return patch.get_linestyle() not in ("-", "solid")  # type: ignore[attr-defined]


def test_a_variable_whose_edges_are_not_drawn_does_not_look_like_one_without_edges() -> None:
    answer = random_answer(60, 50, seed=8)
    degree = answer.adjacency.sum(axis=0) + answer.adjacency.sum(axis=1)
    drawn = {name for edge in answer.edges[:12] for name in (edge.source, edge.target)}
    axes = pictures.draw_graph(answer, max_edges=12)
    boxes = [patch for patch in axes.patches if patch.__class__.__name__ == "FancyBboxPatch"][:60]
    for name, number, box in zip(answer.names, degree, boxes, strict=True):
        assert dashed(box) == (name not in drawn and number > 0)
    said = [text.get_text() for text in axes.texts]
    assert sum(int(text) for text in said if text.startswith("+")) == 2 * (50 - 12) + 2  # and the legend's sample
    hidden = sum(name not in drawn and number > 0 for name, number in zip(answer.names, degree, strict=True))
    assert f"has edges, none drawn ({hidden} variables)" in said
    assert f"has no edges ({(degree == 0).sum()} variables)" in said
    whole = [text.get_text() for text in pictures.draw_graph(answer).texts]
    assert not any(text.startswith(("+", "has ", "edges ")) for text in whole)


def test_the_legend_shows_only_what_occurs() -> None:
    logits = np.full((3, 3), -5.0)
    logits[0, 1] = logits[1, 0] = logits[1, 2] = logits[2, 1] = 1.0
    unsure = Answer(("a", "b", "c"), GraphDistribution(logits, np.array([0.2, 0.1, 0.0])))
    axes = pictures.draw_graph(unsure)
    heads = [patch for patch in axes.patches if patch.__class__.__name__ == "Polygon"]
    assert len(heads) == 2 + 1  # two edges, and one sample of a direction
    assert all(mpl.colors.to_hex(head.get_facecolor()) == "#ffffff" for head in heads)  # type: ignore[attr-defined]
    assert {text.get_text() for text in axes.texts} >= {"probability 0.38", "direction: weak"}
    required = unsure.refine(knowledge=Knowledge(required=[("c", "b"), ("b", "a")], forbidden=["c -> a"]))
    said = [text.get_text() for text in pictures.draw_graph(required).texts]
    assert sorted(text for text in said if len(text) > 1) == ["3 variables, 2 edges", "required by knowledge"]


def test_required_edges_have_a_color_of_their_own() -> None:
    answer = random_answer(4, 0, seed=0).refine(knowledge=Knowledge(required=[("x1", "x2")]))
    axes = pictures.draw_graph(answer)
    assert mpl.colors.to_hex(lines_of(axes)[0].get_edgecolor()) == scene.REQUIRED_COLOR  # type: ignore[attr-defined]
    assert any(text.get_text() == "required by knowledge" for text in axes.texts)


def test_the_heat_map_follows_the_causal_order() -> None:
    answer = random_answer(8, 12, seed=3)
    axes = pictures.draw_probabilities(answer)
    order = [answer.names.index(name) for name in answer.order]
    np.testing.assert_allclose(axes.images[0].get_array(), answer.edge_probabilities[np.ix_(order, order)])
    assert [label.get_text() for label in axes.get_yticklabels()] == list(answer.order)
    dots = axes.collections[0].get_offsets()
    assert {(round(y), round(x)) for x, y in dots} == set(
        map(tuple, np.argwhere(answer.adjacency[np.ix_(order, order)]).tolist())
    )


# Beside a truth


def small_answer() -> Answer:
    """a → b and b → c, sure of both, and a → d."""
    logits = np.full((5, 5), -5.0)
    for j, k in ((0, 1), (1, 2), (0, 3)):
        logits[j, k] = logits[k, j] = 5.0
    return Answer(("a", "b", "c", "d", "e"), GraphDistribution(logits, np.arange(5, 0, -1) * 4.0))


def test_a_comparison_tells_right_reversed_missing_and_extra_edges_apart_without_color() -> None:
    truth = ["a -> b", ("c", "b"), ("d", "e")]
    axes = pictures.draw_comparison(small_answer(), truth)
    said = {text.get_text() for text in axes.texts}
    assert "5 variables, 1 of 3 true edges found" in said
    assert said >= {
        "right (1)",
        "reversed: the truth points down (1)",
        "missing: only in the truth (1)",
        "extra: only in the answer (1)",
    }
    looks = pictures.VERDICTS.values()
    assert len({(str(look.line), look.filled_head, look.head, look.crossed_out) for look in looks}) == len(looks)


def test_in_a_comparison_right_edges_point_down_and_reversed_ones_up() -> None:
    drawn = pictures._comparison(small_answer(), ["a -> b", "c -> b"], None)
    height = {name: drawn.boxes.layout.centers[place, 1] for place, name in enumerate("abcde")}
    assert height["a"] > height["b"]
    assert height["c"] > height["b"]  # by the truth
    heads = {(route.source, route.target): stroke.head for route, stroke in drawn.lines}
    assert heads == {(0, 1): "below", (2, 1): "above", (0, 3): "below"}


def test_an_extra_edge_against_the_truth_is_drawn_upwards() -> None:
    drawn = pictures._comparison(small_answer(), ["d -> c", "c -> a"], None)
    heads = {(route.source, route.target): stroke.head for route, stroke in drawn.lines}
    assert heads[3, 0] == "above"  # a → d, while the truth leads from d to a
    assert heads[0, 1] == "below"


def test_a_truth_about_other_variables_or_with_a_cycle_is_refused() -> None:
    with pytest.raises(GraphError, match="The truth has 'x'"):
        pictures.draw_comparison(small_answer(), [("x", "a")])
    for truth in ("a -> b", None, 5):
        with pytest.raises(GraphError, match="Expected the true edges as a list"):
            pictures.draw_comparison(small_answer(), truth)  # type: ignore[arg-type]
    with pytest.raises(KnowledgeError, match="Expected an edge"):
        pictures.draw_comparison(small_answer(), [("a", "b", "c")])  # type: ignore[list-item]
    with pytest.raises(GraphError, match="cycle"):
        pictures.draw_comparison(small_answer(), ["a -> b", "b -> a"])


def test_an_adapting_svg_has_a_dark_color_for_every_color_in_it(tmp_path: Path) -> None:
    answer = small_answer().refine(knowledge=Knowledge(required=["a -> e"]))
    pictures.save_graph(answer, tmp_path / "graph.svg", adapts=True)
    pictures.save_comparison(answer, ["a -> b", "c -> b", "d -> e"], tmp_path / "truth.svg", adapts=True)
    pictures.save_graph(answer, tmp_path / "plain.svg")
    for name in ("graph.svg", "truth.svg"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        style = text[text.index("<style>") : text.index("</style>")]
        assert "prefers-color-scheme: dark" in style
        for color in set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text.replace(style, ""))):
            assert f": {color}'" in style, f"{color} of {name} stays as it is in the dark"
        ElementTree.fromstring(text)
    assert "prefers-color-scheme" not in (tmp_path / "plain.svg").read_text(encoding="utf-8")


def test_the_edges_of_a_variable_with_many_do_not_merge_into_one() -> None:
    logits = np.full((16, 16), -5.0)
    logits[0, 1:] = logits[1:, 0] = 5.0
    answer = Answer(
        tuple(f"x{place}" for place in range(16)),
        GraphDistribution(logits, np.arange(16, 0, -1) * 4.0),
    )
    starts = sorted(route.points[0][0] for route in pictures.layout_of(answer).routes)
    assert min(np.diff(starts)) > 4  # points, and the widest line has 2.4


# Letters of all languages, and what is no letter

STRANGE = ["年齢", "性別", "血圧_mmHg", "bell\x07", "half \ud83d", "line\nbreak", "no character \ufffe", "<a> & 'b'"]


def test_names_that_no_font_has_are_numbered_in_pixels_and_whole_in_svg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scene, "WIDE_FONTS", re.compile("a^"))  # as if only the usual font were installed
    answer = random_answer(8, 9, seed=7, names=STRANGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pictures.save_graph(answer, tmp_path / "graph.png", tmp_path / "graph.svg")
        pictures.save_probabilities(answer, tmp_path / "map.png", tmp_path / "map.svg")
        axes = pictures.draw_graph(answer)
        axes.get_figure().canvas.draw()  # type: ignore[union-attr]
    assert not caplog.records
    said = [text.get_text() for text in axes.texts]
    assert {"column 1", "column 2", "3: …_mmHg", "bell\\x07", "half \\ud83d", "line break"} <= set(said)
    for name in ("graph.svg", "map.svg"):
        words = {"".join(text.itertext()) for text in ElementTree.parse(tmp_path / name).iter() if "text" in text.tag}
        assert {"年齢", "性別", "血圧_mmHg", "bell\\x07", "<a> & 'b'"} <= words


def test_a_font_that_has_the_letters_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    letter = "\u1d81"  # which matplotlib's own DejaVu Sans lacks and its STIXGeneral has
    with mpl.rc_context({"font.family": ["DejaVu Sans"]}):
        monkeypatch.setattr(scene, "WIDE_FONTS", re.compile("a^"))
        assert pictures.draw_graph(random_answer(2, 1, seed=0, names=[letter, "b"])).texts[0].get_text() == "column 1"
        monkeypatch.setattr(scene, "WIDE_FONTS", re.compile("^STIXGeneral$"))
        text = pictures.draw_graph(random_answer(2, 1, seed=0, names=[letter, "b"])).texts[0]
    assert text.get_text() == letter
    assert text.get_fontfamily() == ["DejaVu Sans", "STIXGeneral"]


def test_one_layout_serves_all_pictures_of_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        scene, "layered_layout", lambda *given, **gaps: calls.append(1) or layered_layout(*given, **gaps)
    )
    answer = random_answer(9, 10, seed=1)
    pictures.save_graph(answer, tmp_path / "graph.png", tmp_path / "graph.svg")
    pictures.draw_graph(answer, title="again")
    exports.to_dagitty(answer)
    assert len(calls) == 1
    exports.to_dagitty(answer.refine(threshold=0.9))
    assert len(calls) == 2


# Files


def test_svg_keeps_text_as_text_and_is_the_same_every_time(tmp_path: Path) -> None:
    answer = random_answer(
        6, 7, seed=4, names=["alpha", "beta & <co>", "gamma", "delta", "a very long name indeed", "z"]
    )
    pictures.save_graph(answer, tmp_path / "a.svg")
    pictures.save_probabilities(answer, tmp_path / "map.svg")
    pictures.save_graph(answer, tmp_path / "b.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">alpha</text>" in text
    assert "beta &amp; &lt;co&gt;" in text
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert ">gamma</text>" in (tmp_path / "map.svg").read_text(encoding="utf-8")


def test_pictures_of_any_size_can_be_saved(tmp_path: Path) -> None:
    for variables, edges in ((2, 0), (2, 1), (11, 17), (60, 80)):
        answer = random_answer(variables, edges, seed=5)
        pictures.save_graph(answer, tmp_path / "graph.png", dpi=40)
        pictures.save_probabilities(answer, tmp_path / "map.png", dpi=40)
        assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "map.png").stat().st_size > 1000


def test_arrow_draws_into_the_axes_it_is_given() -> None:
    arrow = Arrow()
    arrow.discovery_ = Discovery(random_answer(5, 6, seed=6))
    first, second = Figure(figsize=(8, 4)).subplots(1, 2)
    assert arrow.plot(first) is first
    assert arrow.plot_probabilities(second) is second
    assert isinstance(lines_of(first)[0].get_path(), Curve)  # type: ignore[attr-defined]
