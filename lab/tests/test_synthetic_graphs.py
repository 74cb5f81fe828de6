"""Laws of the random graphs."""

from __future__ import annotations

import itertools

import pytest
import torch
from scipy import stats

from causal_arrow_lab.synthetic import _graph_families
from causal_arrow_lab.synthetic._graph_families import (
    GRAPH_FAMILIES,
    REWIRED,
    draw_edge_counts,
    max_hidden_causes,
    sample_graphs,
    sample_hidden_causes,
)
from causal_arrow_lab.synthetic.recipes import CODES


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def graphs(family: str, edges: int | torch.Tensor, variables: int, tasks: int, seed: int = 0) -> torch.Tensor:
    code = CODES[family]
    if isinstance(edges, int):
        edges = torch.full((tasks,), edges)
    return sample_graphs(torch.full((tasks,), code), [code], edges, variables, seeded(seed))


@pytest.mark.parametrize("family", GRAPH_FAMILIES)
@pytest.mark.parametrize("variables", [2, 3, 8, 30])
def test_every_family_gives_exactly_the_edges_asked_for_all_pointing_forward(family: str, variables: int) -> None:
    edges = torch.arange(60) % (4 * variables + 1)
    adjacency = graphs(family, edges, variables, tasks=60)
    assert torch.equal(adjacency, adjacency.triu(1))
    pairs = variables * (variables - 1) // 2
    room = {"forest": variables - 1, "layered": 2 if variables == 3 else pairs // 2}.get(family, pairs)
    made, asked = adjacency.sum((1, 2)), edges.clamp(max=room)
    assert (made >= asked).all() if family == "layered" else torch.equal(made, asked)
    assert (made <= edges).all()


def test_families_are_mixed_task_by_task() -> None:
    family = torch.tensor([CODES["forest"], CODES["erdos_renyi"]]).repeat(50)
    adjacency = sample_graphs(family, sorted({*family.tolist()}), torch.full((100,), 30), 12, seeded())
    assert (adjacency[0::2].sum(1) <= 1).all()
    assert (adjacency[1::2].sum((1, 2)) == 30).all()


def test_erdos_renyi_chooses_every_pair_equally_often() -> None:
    chosen = graphs("erdos_renyi", 2, variables=5, tasks=6000).sum(0)
    earlier, later = torch.triu_indices(5, 5, 1)
    assert stats.chisquare(chosen[earlier, later]).pvalue > 1e-3


def scale_free_probabilities(alpha: float) -> dict[str, float]:
    """Exact probability that three edges among five variables form a star, a triangle, or neither."""
    weight = {pair: (pair[0] * pair[1]) ** -alpha for pair in itertools.combinations(range(1, 6), 2)}
    total = sum(weight.values())
    probability = {"star": 0.0, "triangle": 0.0, "neither": 0.0}
    for a, b, c in itertools.permutations(weight, 3):
        drawn = weight[a] / total * weight[b] / (total - weight[a]) * weight[c] / (total - weight[a] - weight[b])
        kind = "star" if set(a) & set(b) & set(c) else "triangle" if len({*a, *b, *c}) == 3 else "neither"
        probability[kind] += drawn
    return probability


def test_scale_free_draws_pairs_without_replacement_in_proportion_to_their_power_law() -> None:
    tasks = 30_000
    adjacency = graphs("scale_free", 3, variables=5, tasks=tasks)
    degree = adjacency.sum(1) + adjacency.sum(2)
    star = int((degree.amax(1) == 3).sum())
    triangle = int(((degree == 2).sum(1) == 3).sum())
    counts = [star, triangle, tasks - star - triangle]

    def p_value(alpha: float) -> float:
        expected = [tasks * probability for probability in scale_free_probabilities(alpha).values()]
        return float(stats.chisquare(counts, expected).pvalue)

    assert p_value(0.5) > 1e-3
    assert p_value(0.3) < 1e-6  # the test can tell
    assert p_value(0.7) < 1e-6


def test_a_scale_free_hub_may_stand_anywhere_in_the_order() -> None:
    adjacency = graphs("scale_free", 8, variables=10, tasks=4000).int()
    hub = (adjacency.sum(1) + adjacency.sum(2) + 0.5 * torch.rand(4000, 10, generator=seeded())).argmax(1)
    assert stats.chisquare(torch.bincount(hub, minlength=10)).pvalue > 1e-3


def test_regulators_cause_much_collectors_are_caused_by_much_and_communities_hold_together() -> None:
    plain = graphs("erdos_renyi", 20, variables=20, tasks=500).float()
    assert graphs("regulators", 20, 20, 500).float()[:, 0].sum(1).mean() > 2 * plain[:, 0].sum(1).mean()
    assert graphs("collectors", 20, 20, 500).float()[:, :, -1].sum(1).mean() > 2 * plain[:, :, -1].sum(1).mean()

    def triangles(adjacency: torch.Tensor) -> torch.Tensor:
        joined = adjacency + adjacency.mT
        return torch.linalg.matrix_power(joined, 3).diagonal(dim1=1, dim2=2).sum(1).mean()

    assert triangles(graphs("modular", 20, 20, 500).float()) > 1.5 * triangles(plain)


def test_a_ring_is_filled_distance_by_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REWIRED, "small_world", 0.0)
    adjacency = graphs("small_world", 10, variables=10, tasks=20).long()
    joined = adjacency + adjacency.mT
    assert (joined.sum(1) == 2).all()  # every variable has its two neighbors
    reach = torch.linalg.matrix_power(joined.float() + torch.eye(10), 5)
    assert (reach > 0).all()  # and the ring is one ring
    adjacency = graphs("small_world", 20, variables=10, tasks=20)
    assert ((adjacency + adjacency.mT).sum(1) == 4).all()


def test_a_fifth_of_the_ring_is_rewired() -> None:
    variables, tasks = 30, 200
    ring = torch.arange(variables)
    earlier, later = torch.minimum(ring, (ring + 1) % variables), torch.maximum(ring, (ring + 1) % variables)
    pairs = earlier.expand(tasks, -1), later.expand(tasks, -1), torch.ones(tasks, variables, dtype=torch.bool)
    rate = torch.full((tasks,), REWIRED["small_world"])
    adjacency = _graph_families._rewired(*pairs, rate, variables, seeded())
    assert (adjacency.sum((1, 2)) == variables).all()
    left = int(adjacency[:, earlier, later].sum())
    # A rewired edge may land in a place on the ring that another has left: rare, and within the band.
    assert abs(left / (tasks * variables) - 0.8) < 0.02
    unchanged = _graph_families._rewired(*pairs, torch.zeros(tasks), variables, seeded())
    assert unchanged[:, earlier, later].all()


def test_a_random_geometric_graph_joins_the_nearest_points() -> None:
    variables, tasks, edges = 20, 100, 30
    adjacency = graphs("random_geometric", edges, variables, tasks)
    closeness = _graph_families.random_geometric(tasks, variables, seeded()) / 1e6  # the same points: minus distance²
    earlier, later = torch.triu_indices(variables, variables, 1)
    closeness, joined = closeness[:, earlier, later], adjacency[:, earlier, later]
    nearest_left_out = closeness.masked_fill(joined, -2.0).amax(1)
    farthest_joined = closeness.masked_fill(~joined, 0.0).amin(1)
    assert (farthest_joined >= nearest_left_out - 3e-5).all()
    assert ((farthest_joined >= -2.0) & (nearest_left_out < 0)).all()


def test_neighbors_are_neighbors_of_each_other_on_a_plane_and_not_on_a_grid() -> None:
    def triangles(family: str) -> float:
        adjacency = graphs(family, 40, variables=25, tasks=300).float()
        joined = adjacency + adjacency.mT
        return float(torch.linalg.matrix_power(joined, 3).diagonal(dim1=1, dim2=2).sum(1).mean() / 6)

    assert triangles("random_geometric") > 2 * triangles("erdos_renyi")
    assert triangles("lattice") == 0  # 40 edges are all that a grid of 5 × 5 has at distance 1


def test_a_full_lattice_has_the_degrees_of_its_corners_edges_and_middle() -> None:
    adjacency = graphs("lattice", 12, variables=9, tasks=50).long()
    degrees = (adjacency.sum(1) + adjacency.sum(2)).sort(dim=1).values
    assert (degrees == torch.tensor([2, 2, 2, 2, 3, 3, 3, 3, 4])).all()
    diagonals = graphs("lattice", 12 + 8, variables=9, tasks=50).long()  # distance √2 comes next
    degrees = (diagonals.sum(1) + diagonals.sum(2)).sort(dim=1).values
    assert (degrees == torch.tensor([3, 3, 3, 3, 5, 5, 5, 5, 8])).all()


@pytest.mark.parametrize("family", ["random_geometric", "lattice"])
def test_layouts_on_a_plane_say_nothing_about_the_order(family: str) -> None:
    chosen = graphs(family, 1, variables=5, tasks=6000).sum(0)
    earlier, later = torch.triu_indices(5, 5, 1)
    assert stats.chisquare(chosen[earlier, later]).pvalue > 1e-3


def test_a_cascade_is_filled_from_neighbors_in_the_order_outwards() -> None:
    place = torch.arange(10)
    gap = place - place[:, None]
    assert (graphs("cascade", 9, variables=10, tasks=20) == (gap == 1)).all()  # one chain through all variables
    assert (graphs("cascade", 17, variables=10, tasks=20) == ((gap == 1) | (gap == 2))).all()
    some = graphs("cascade", 4, variables=10, tasks=4500)
    assert (some.sum((1, 2)) == 4).all()
    assert not (some & (gap != 1)).any()
    assert (some.sum(0)[gap == 1] / 4500 - 4 / 9).abs().max() < 0.03  # which of them: all alike


@pytest.mark.parametrize(("law", "most"), [("edges_up_to_4p", 24), ("edges_up_to_p", 6), ("edges_up_to_p_quarter", 1)])
def test_the_number_of_edges_is_uniform_from_zero_to_its_most(law: str, most: int) -> None:
    edges = draw_edge_counts(torch.full((5000,), CODES[law]), 6, seeded())
    assert stats.chisquare(torch.bincount(edges, minlength=most + 1)).pvalue > 1e-3
    assert int(edges.max()) == most


@pytest.mark.parametrize("family", ["erdos_renyi", "forest"])
@pytest.mark.parametrize("variables", [2, 3, 5])
def test_few_variables_have_every_number_of_edges_that_fits_as_often(family: str, variables: int) -> None:
    tasks = 4000
    families, spread = torch.full((tasks,), CODES[family]), torch.ones(tasks, dtype=torch.bool)
    adjacency = sample_graphs(families, [CODES[family]], torch.zeros(tasks), variables, seeded(), spread)
    room = variables - 1 if family == "forest" else variables * (variables - 1) // 2
    counts = torch.bincount(adjacency.sum((1, 2)), minlength=room + 1)
    assert len(counts) == room + 1
    assert stats.chisquare(counts).pvalue > 1e-3


def test_many_variables_have_up_to_4p_edges_by_either_law() -> None:
    family, spread = torch.zeros(4000, dtype=torch.int64), torch.ones(4000, dtype=torch.bool)
    edges = sample_graphs(family, [0], torch.zeros(4000), 12, seeded(), spread).sum((1, 2))
    assert stats.chisquare(torch.bincount(edges, minlength=49)).pvalue > 1e-3


def test_only_the_tasks_meant_have_every_number_of_edges() -> None:
    spread = torch.arange(1000) < 500
    edges = sample_graphs(torch.zeros(1000), [0], torch.full((1000,), 3), 4, seeded(), spread).sum((1, 2))
    assert (edges[500:] == 3).all()
    assert set(edges[:500].tolist()) == set(range(7))


def test_hidden_causes_act_on_two_variables_up_to_a_quarter() -> None:
    hidden = torch.arange(400) % 4
    effects = sample_hidden_causes(hidden, 3, 24, seeded(), hidden < 0)
    assert torch.equal(effects.any(2).sum(1), hidden)
    counts = effects.sum(2)[effects.any(2)]
    assert stats.chisquare(torch.bincount(counts, minlength=7)[2:]).pvalue > 1e-3
    assert stats.chisquare(effects.sum((0, 1))).pvalue > 1e-3
    assert sample_hidden_causes(torch.ones(5), 1, 2, seeded(), torch.ones(5) < 0).all()
    assert [max_hidden_causes(p) for p in (2, 10, 11, 200)] == [1, 1, 2, 10]


def test_hidden_factors_act_on_a_quarter_up_to_all() -> None:
    factors = torch.arange(900) % 2 == 0
    effects = sample_hidden_causes(torch.full((900,), 2), 2, 12, seeded(), factors)
    without = sample_hidden_causes(torch.full((900,), 2), 2, 12, seeded(), factors & False)
    assert torch.equal(effects[~factors], without[~factors])
    counts = effects[factors].sum(2).flatten()
    assert stats.chisquare(torch.bincount(counts, minlength=13)[3:]).pvalue > 1e-3
    assert sample_hidden_causes(torch.ones(5), 1, 2, seeded(), torch.ones(5) > 0).all()


def test_a_family_without_room_gives_what_it_has() -> None:
    adjacency = graphs("forest", 40, variables=10, tasks=50)
    assert (adjacency.sum((1, 2)) == 9).all()
