"""Layout of a causal graph in which every edge points down and can be followed.

The steps are Sugiyama's: layers from the causal structure, invisible bends where an edge passes a layer, an order
within layers with few crossings, and positions that keep edges straight. An edge runs from bend to bend and so never
through a variable. Lengths are points, 1/72 inch; y grows upwards, causes are on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.dag import ensure_dag, topological_order, transitive_closure

Floats = NDArray[np.float64]

CROSSING_SWEEPS = 12
POSITION_SWEEPS = 30
ASPECT = 1.4  # width over height that a layout aims at, roughly
BEND_WIDTH = 6.0  # room for an edge that passes a layer
EXTRA_GAP = 1.2  # room between two layers for each edge that runs there
PORT_GAP = 9.0  # between edges that leave or reach the same variable, where its box is wide enough


@dataclass(frozen=True)
class Route:
    """An edge as the points it runs through, from the bottom of its cause to the top of its effect."""

    source: int
    target: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """Centers of the variables and routes of the edges, in a box from (0, 0) to (width, height)."""

    centers: Floats  # (P, 2)
    routes: tuple[Route, ...]
    width: float
    height: float


def layered_layout(
    adjacency: NDArray[np.bool_],
    widths: Sequence[float],
    height: float,
    *,
    gap: float = 14.0,
    layer_gap: float = 34.0,
    aspect: float = ASPECT,
) -> Layout:
    """The layout of a DAG whose variables are boxes of these widths and one height.

    `gap` is the least room between neighbors in a layer, `layer_gap` that between layers. Connected parts of the graph
    are placed side by side, and variables without edges in rows at the bottom.
    """
    graph = ensure_dag(adjacency)
    parts = sorted(_connected_parts(graph), key=len, reverse=True)
    blocks = [_block(graph, part, widths, height, gap, layer_gap, aspect) for part in parts if len(part) > 1]
    lonely = [variable for part in parts if len(part) == 1 for variable in part]
    area = sum((block.width + gap) * (block.height + layer_gap) for block in blocks)
    area += sum((widths[variable] + gap) * (height + gap) for variable in lonely)
    room = max([(aspect * area) ** 0.5, *(block.width for block in blocks)])
    for row in _rows([widths[variable] for variable in lonely], gap, room):
        centers, right = np.full((len(widths), 2), np.nan), 0.0
        for variable in (lonely[number] for number in row):
            centers[variable] = right + widths[variable] / 2, height / 2
            right += widths[variable] + gap
        blocks.append(Layout(centers, (), right - gap, height))
    return _shelves(blocks, len(graph), room, 2 * gap)


def _connected_parts(graph: NDArray[np.bool_]) -> list[list[int]]:
    """The variables, split into those that edges of any direction connect."""
    connected = transitive_closure(graph | graph.T | np.eye(len(graph), dtype=bool))
    # One row per part; the part of the first variable sorts last.
    return [np.flatnonzero(row).tolist() for row in np.unique(connected, axis=0)[::-1]]


def _rows(widths: Sequence[float], gap: float, room: float) -> list[list[int]]:
    """Numbers of things of these widths, in rows with as many as fit."""
    rows: list[list[int]] = []
    for number, width in enumerate(widths):
        if rows and sum(widths[other] + gap for other in rows[-1]) + width <= room:
            rows[-1].append(number)
        else:
            rows.append([number])
    return rows


def _shelves(blocks: Sequence[Layout], variables: int, room: float, gap: float) -> Layout:
    """The blocks from left to right and from top to bottom, in a width of `room`; rows are centered."""
    shelves = [[blocks[number] for number in row] for row in _rows([block.width for block in blocks], gap, room)]
    spans = [sum(block.width + gap for block in shelf) - gap for shelf in shelves]
    heights = [max(block.height for block in shelf) for shelf in shelves]
    width = max(spans, default=0.0)
    top = total = sum(heights) + gap * max(len(shelves) - 1, 0)
    centers, routes = np.zeros((variables, 2)), []
    for shelf, span, tall in zip(shelves, spans, heights, strict=True):
        left = (width - span) / 2
        for block in shelf:
            below = top - block.height
            centers += np.where(np.isnan(block.centers), 0.0, block.centers + np.array([left, below]))
            for route in block.routes:
                points = tuple((x + left, y + below) for x, y in route.points)
                routes.append(Route(route.source, route.target, points))
            left += block.width + gap
        top -= tall + gap
    return Layout(centers, tuple(routes), width, total)


def _block(
    graph: NDArray[np.bool_],
    part: list[int],
    widths: Sequence[float],
    height: float,
    gap: float,
    layer_gap: float,
    aspect: float,
) -> Layout:
    """The layout of one connected part; the centers of all other variables are nan."""
    mean_width = sum(widths[variable] for variable in part) / len(part) + gap
    # Bends need room as well, not much less than the boxes.
    columns = max(4, round((aspect * len(part) * (height + layer_gap) / (1.4 * mean_width)) ** 0.5))
    items = _Items(graph, _layers(graph, part, columns), widths, gap)
    items.reduce_crossings()
    x, width = items.positions()
    between = [sum(len(items.below.get(item, ())) for item in row) for row in items.rows[:-1]]  # edges below each row
    gaps = [height + layer_gap + min(EXTRA_GAP * edges, 2 * layer_gap) for edges in between]
    below = np.cumsum([0.0, *gaps])  # from the first layer down to each
    levels = (below[-1] - below + height / 2).tolist()
    centers = np.full((len(graph), 2), np.nan)
    for row, level in zip(items.rows, levels, strict=True):
        for variable in (item for item in row if item < len(graph)):
            centers[variable] = x[variable], level
    return Layout(centers, _routes(items, x, levels, height), width, levels[0] + height / 2)


def _layers(graph: NDArray[np.bool_], part: list[int], columns: int) -> list[list[int]]:
    """The variables of a part in layers, causes above effects, with at most `columns` per layer."""
    # From the last effect upwards, each variable goes to the lowest layer above all its effects that has room. Then
    # variables with more causes than effects move up to them, where there is room.
    members = set(part)
    order = [variable for variable in topological_order(graph).tolist() if variable in members]
    depth = np.zeros(len(graph), dtype=int)  # from the bottom
    filled: Counter[int] = Counter()
    for variable in reversed(order):
        lowest = int(depth[graph[variable]].max(initial=-1)) + 1
        while filled[lowest] >= columns:
            lowest += 1
        depth[variable] = lowest
        filled[lowest] += 1
    for variable in order:
        causes = graph[:, variable]
        if causes.sum() > graph[variable].sum():
            highest = int(depth[causes].min()) - 1
            while highest > depth[variable] and filled[highest] >= columns:
                highest -= 1
            filled[int(depth[variable])] -= 1
            depth[variable] = highest
            filled[highest] += 1
    layers = [[variable for variable in order if depth[variable] == level] for level in range(len(order))]
    return [layer for layer in reversed(layers) if layer]


class _Items:
    """Variables and bends in rows. Bends are numbered from P on; edges join items of neighboring rows."""

    def __init__(self, graph: NDArray[np.bool_], layers: list[list[int]], widths: Sequence[float], gap: float) -> None:
        self.rows = [list(layer) for layer in layers]
        self.variables = self.count = len(graph)
        self.widths = widths
        self.gap = gap
        self.paths: dict[tuple[int, int], list[int]] = {}
        self.above: dict[int, list[int]] = {}
        self.below: dict[int, list[int]] = {}
        row_of = {variable: row for row, layer in enumerate(layers) for variable in layer}
        for source, target in np.argwhere(graph).tolist():
            if source not in row_of:
                continue
            path = [source]
            for row in range(row_of[source] + 1, row_of[target]):
                self.rows[row].append(self.count)
                path.append(self.count)
                self.count += 1
            path.append(target)
            self.paths[source, target] = path
            for upper, lower in pairwise(path):
                self.below.setdefault(upper, []).append(lower)
                self.above.setdefault(lower, []).append(upper)

    def half_width(self, item: int) -> float:
        """Half of the room an item takes in its row."""
        return (self.widths[item] if item < self.variables else BEND_WIDTH) / 2

    def reduce_crossings(self) -> None:
        """Sort every row by the mean rank of its neighbors above, then below, and so on; keep the best rows seen."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(CROSSING_SWEEPS):
            down = sweep % 2 == 0
            neighbors = self.above if down else self.below
            rows = self.rows if down else self.rows[::-1]
            for reference, row in pairwise(rows):
                _sort(row, neighbors, _ranks(reference))
            self._exchange_neighbors()
            if (crossings := self._crossings()) < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def positions(self) -> tuple[Floats, float]:
        """The x of every item, as close to its neighbors above and below as order and gaps allow, and the width."""
        x = np.zeros(self.count)
        for row in self.rows:
            x[row] = self._packed(row, np.zeros(len(row)), np.ones(len(row)))
        for sweep in range(POSITION_SWEEPS):
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                near = [[*self.above.get(item, ()), *self.below.get(item, ())] for item in row]
                wishes = np.array([x[neighbors].mean() for neighbors in near])
                # Bends count more than variables: a kink is uglier than a variable off its mean.
                bends = [4.0 if item >= self.variables else 1.0 for item in row]
                x[row] = self._packed(row, wishes, np.array([*map(len, near)]) * bends)
        left = min(x[row[0]] - self.half_width(row[0]) for row in self.rows)
        right = max(x[row[-1]] + self.half_width(row[-1]) for row in self.rows)
        return x - left, float(right - left)

    def _packed(self, row: Sequence[int], wishes: Floats, weights: Floats) -> Floats:
        """Positions nearest to the wishes, in weighted least squares, in this order and with the gaps kept."""
        # Relative to the tightest packing, positions must not decrease: isotonic regression, by pooling neighbors.
        steps = [0.0]
        for left, right in pairwise(row):
            bends = (left >= self.variables) + (right >= self.variables)
            steps.append(self.half_width(left) + self.half_width(right) + self.gap * (1.0, 0.6, 0.2)[bends])
        tight = np.cumsum(steps)
        pools: list[tuple[float, float, int]] = []  # mean wish, weight, members
        for wish, weight in zip(wishes - tight, weights, strict=True):
            pools.append((float(wish), float(weight), 1))
            while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
                (a, weight_a, members_a), (b, weight_b, members_b) = pools[-2:]
                total = weight_a + weight_b
                pools[-2:] = [((a * weight_a + b * weight_b) / total, total, members_a + members_b)]
        return np.asarray(tight + np.repeat([pool[0] for pool in pools], [pool[2] for pool in pools]))

    def _exchange_neighbors(self) -> None:
        """Swap neighbors in a row while that removes crossings."""
        for number, row in enumerate(self.rows):
            up = _ranks(self.rows[number - 1]) if number else {}
            down = _ranks(self.rows[number + 1]) if number + 1 < len(self.rows) else {}
            sides = ((up, self.above), (down, self.below))
            ends = {
                item: [np.array(sorted(ranks[other] for other in near.get(item, ()))) for ranks, near in sides]
                for item in row
            }
            improved = True
            while improved:
                improved = False
                for rank in range(len(row) - 1):
                    pairs = list(zip(ends[row[rank]], ends[row[rank + 1]], strict=True))
                    if sum(_inversions(b, a) for a, b in pairs) < sum(_inversions(a, b) for a, b in pairs):
                        row[rank], row[rank + 1] = row[rank + 1], row[rank]
                        improved = True

    def _crossings(self) -> int:
        total = 0
        for upper, lower in pairwise(self.rows):
            ranks = _ranks(lower)
            ends = np.array([end for item in upper for end in sorted(ranks[n] for n in self.below.get(item, ()))])
            total += sum(int((ends[:rank] > end).sum()) for rank, end in enumerate(ends))
        return total


def _ranks(row: Sequence[int]) -> dict[int, int]:
    return {item: rank for rank, item in enumerate(row)}


def _sort(row: list[int], neighbors: Mapping[int, Sequence[int]], reference: Mapping[int, int]) -> None:
    """Sort a row by the mean rank of the neighbors in the next one; items without neighbors stay about in place."""
    now, scale = _ranks(row), max(len(reference), 1) / max(len(row), 1)

    def wish(item: int) -> float:
        near = [reference[neighbor] for neighbor in neighbors.get(item, ())]
        return float(np.mean(near)) if near else now[item] * scale

    row.sort(key=wish)


def _inversions(left: NDArray[np.int_], right: NDArray[np.int_]) -> int:
    """Crossings of the edges of two neighbors: pairs of which the left one ends further right."""
    return int((left[:, None] > right[None, :]).sum()) if left.size and right.size else 0


def _routes(items: _Items, x: Floats, levels: Sequence[float], height: float) -> tuple[Route, ...]:
    """The points of every edge. Bends cross their layer straight down, between the boxes."""
    leaving, reaching = _ports(items, x, 0, 1), _ports(items, x, -1, -2)
    level_of = {item: level for row, level in zip(items.rows, levels, strict=True) for item in row}
    routes = []
    for (source, target), path in items.paths.items():
        points = [(leaving[source, target], level_of[source] - height / 2)]
        for bend in path[1:-1]:
            points += [(float(x[bend]), level_of[bend] + height / 2), (float(x[bend]), level_of[bend] - height / 2)]
        points.append((reaching[source, target], level_of[target] + height / 2))
        routes.append(Route(source, target, tuple(points)))
    return tuple(routes)


def _ports(items: _Items, x: Floats, end: int, next_to_end: int) -> dict[tuple[int, int], float]:
    """Positions at which edges are attached to a box: side by side, in the order of where the edges go."""
    at_variable: dict[int, list[tuple[int, int]]] = {}
    for edge, path in items.paths.items():
        at_variable.setdefault(path[end], []).append(edge)
    ports = {}
    for variable, edges in at_variable.items():
        edges.sort(key=lambda edge: x[items.paths[edge][next_to_end]])
        step = min(PORT_GAP, 0.7 * items.widths[variable] / max(len(edges) - 1, 1))
        for number, edge in enumerate(edges):
            ports[edge] = float(x[variable]) + (number - (len(edges) - 1) / 2) * step
    return ports
