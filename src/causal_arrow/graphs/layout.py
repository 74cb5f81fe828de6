"""Where to put the variables of a causal graph so that every edge points down and can be followed.

The steps are Sugiyama's: layers from the causal structure, invisible bends where an edge passes a layer, an order
within layers with few crossings, and places that keep edges straight. An edge runs from bend to bend and so never
through a variable. Lengths are points, 1/72 inch; y grows upwards, causes are on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from causal_arrow.graphs.dag import ensure_dag, topological_order

Floats = NDArray[np.float64]

CROSSING_SWEEPS = 12
PLACING_SWEEPS = 30
ASPECT = 1.4
"""Width over height that a layout aims at, roughly."""

# Lengths, in points as the boxes are.
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
    """The layout of a DAG whose variables are boxes of the given widths and one height.

    `gap` is the least room between neighbors in a layer, `layer_gap` that between layers; where many edges run between
    two layers, there is more. Parts of the graph that no edge connects stand side by side, and variables without edges
    in rows at the bottom. `aspect` is the width over the height to aim at.
    """
    graph = ensure_dag(adjacency)
    parts = sorted(_connected_parts(graph), key=len, reverse=True)
    blocks = [_block(graph, part, widths, height, gap, layer_gap, aspect) for part in parts if len(part) > 1]
    lonely = [variable for part in parts if len(part) == 1 for variable in part]
    area = sum((block.width + gap) * (block.height + layer_gap) for block in blocks)
    area += sum((widths[variable] + gap) * (height + gap) for variable in lonely)
    room = max([(aspect * area) ** 0.5, *(block.width for block in blocks)])
    blocks += [_row_of_boxes(row, widths, height, gap) for row in _filled_rows(lonely, widths, gap, room)]
    return _shelves(blocks, len(graph), room, 2 * gap)


def _connected_parts(graph: NDArray[np.bool_]) -> list[list[int]]:
    """The variables, split into those that edges connect, directions forgotten."""
    linked = graph | graph.T | np.eye(len(graph), dtype=bool)
    parts, seen = [], np.zeros(len(graph), dtype=bool)
    for first in range(len(graph)):
        if seen[first]:
            continue
        part = linked[first]
        while (grown := linked[part].any(axis=0)).sum() > part.sum():
            part = grown
        seen |= part
        parts.append(np.flatnonzero(part).tolist())
    return parts


def _shelves(blocks: Sequence[Layout], variables: int, room: float, gap: float) -> Layout:
    """The blocks from left to right and from top to bottom, in a width of `room`; rows are centered."""
    shelves: list[list[Layout]] = []
    for block in blocks:
        used = sum(other.width + gap for other in shelves[-1]) if shelves else room
        if shelves and used + block.width <= room:
            shelves[-1].append(block)
        else:
            shelves.append([block])
    spans = [sum(block.width + gap for block in shelf) - gap for shelf in shelves]
    width = max(spans, default=0.0)
    heights = [max(block.height for block in shelf) for shelf in shelves]
    top = total = sum(heights) + gap * max(len(shelves) - 1, 0)
    centers, routes = np.zeros((variables, 2)), []
    for shelf, span, tall in zip(shelves, spans, heights, strict=True):
        left = (width - span) / 2
        for block in shelf:
            shift = np.array([left, top - block.height])
            centers += np.where(np.isnan(block.centers), 0.0, block.centers + shift)
            for route in block.routes:
                points = tuple((x + left, y + top - block.height) for x, y in route.points)
                routes.append(Route(route.source, route.target, points))
            left += block.width + gap
        top -= tall + gap
    return Layout(centers, tuple(routes), width, total)


def _filled_rows(variables: Sequence[int], widths: Sequence[float], gap: float, room: float) -> list[list[int]]:
    rows: list[list[int]] = []
    for variable in variables:
        if rows and sum(widths[other] + gap for other in rows[-1]) + widths[variable] <= room:
            rows[-1].append(variable)
        else:
            rows.append([variable])
    return rows


def _row_of_boxes(row: Sequence[int], widths: Sequence[float], height: float, gap: float) -> Layout:
    centers = np.full((len(widths), 2), np.nan)
    right = 0.0
    for variable in row:
        centers[variable] = right + widths[variable] / 2, height / 2
        right += widths[variable] + gap
    return Layout(centers, (), right - gap, height)


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
    x, width = items.place()
    gaps = [layer_gap + min(EXTRA_GAP * segments, 2 * layer_gap) for segments in items.segments_below()]
    below = np.cumsum([0.0, *(height + room for room in gaps[:-1])])  # from the first layer down to each
    levels = (below[-1] - below + height / 2).tolist()
    centers = np.full((len(graph), 2), np.nan)
    for row, level in zip(items.rows, levels, strict=True):
        for variable in (item for item in row if item < len(graph)):
            centers[variable] = x[variable], level
    return Layout(centers, _routes(items, x, levels, height), width, levels[0] + height / 2)


# Layers


def _layers(graph: NDArray[np.bool_], part: list[int], columns: int) -> list[list[int]]:
    """The variables of a part in layers, causes above effects, with at most `columns` in a layer.

    From the last effect upwards, each variable goes to the lowest layer above all its effects that has room: causes
    stay close to what they cause. Then whatever has more causes than effects moves up to them, where there is room.
    """
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
        parents = graph[:, variable]
        if parents.sum() <= graph[variable].sum():
            continue
        highest = int(depth[parents].min()) - 1
        while highest > depth[variable] and filled[highest] >= columns:
            highest -= 1
        filled[int(depth[variable])] -= 1
        depth[variable] = highest
        filled[highest] += 1
    layers = [[variable for variable in order if depth[variable] == level] for level in range(len(order))]
    return [layer for layer in reversed(layers) if layer]


class _Items:
    """Variables and bends in rows. A bend is an item with a number from P on; edges join items of neighboring rows."""

    def __init__(self, graph: NDArray[np.bool_], layers: list[list[int]], widths: Sequence[float], gap: float) -> None:
        self.rows = [list(layer) for layer in layers]
        self.variables = len(graph)
        self.widths = widths
        self.gap = gap
        self.paths: dict[tuple[int, int], list[int]] = {}
        self.above: dict[int, list[int]] = {}
        self.below: dict[int, list[int]] = {}
        row_of = {variable: row for row, layer in enumerate(layers) for variable in layer}
        following = self.variables
        for source, target in np.argwhere(graph).tolist():
            if source not in row_of:
                continue
            path = [source]
            for row in range(row_of[source] + 1, row_of[target]):
                self.rows[row].append(following)
                path.append(following)
                following += 1
            path.append(target)
            self.paths[source, target] = path
            for upper, lower in pairwise(path):
                self.below.setdefault(upper, []).append(lower)
                self.above.setdefault(lower, []).append(upper)
        self.count = following

    def half_width(self, item: int) -> float:
        """Half of the room an item takes in its row."""
        return (self.widths[item] if item < self.variables else BEND_WIDTH) / 2

    def separation(self, left: int, right: int) -> float:
        """The least distance of the centers of two neighbors."""
        bends = (left >= self.variables) + (right >= self.variables)
        return self.half_width(left) + self.half_width(right) + self.gap * (1.0, 0.6, 0.2)[bends]

    def reduce_crossings(self) -> None:
        """Sort every row by the mean place of its neighbors above, then below, and so on; keep the best rows seen."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(CROSSING_SWEEPS):
            downwards = sweep % 2 == 0
            neighbors = self.above if downwards else self.below
            numbers = range(1, len(self.rows)) if downwards else range(len(self.rows) - 2, -1, -1)
            for number in numbers:
                reference = self._places(self.rows[number - 1 if downwards else number + 1])
                row = self.rows[number]
                now = self._places(row)
                scale = max(len(reference), 1) / max(len(row), 1)
                wish = {
                    item: float(np.mean([reference[n] for n in neighbors[item]]))
                    if neighbors.get(item)
                    else now[item] * scale
                    for item in row
                }
                row.sort(key=lambda item: (wish[item], now[item]))
            self._exchange_neighbors()
            if (crossings := self._crossings()) < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def place(self) -> tuple[Floats, float]:
        """The x of every item, as close to its neighbors above and below as order and gaps allow; the width of all."""
        x = np.zeros(self.count)
        for row in self.rows:
            x[row] = self._packed(row, np.zeros(len(row)), np.ones(len(row)))
        for sweep in range(PLACING_SWEEPS):
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                wishes, weights = np.empty(len(row)), np.empty(len(row))
                for number, item in enumerate(row):
                    near = [*self.above.get(item, ()), *self.below.get(item, ())]
                    wishes[number] = x[near].mean()
                    # Bends want to be straight more than variables do: a kink is uglier than a variable off its mean.
                    weights[number] = len(near) * (4.0 if item >= self.variables else 1.0)
                x[row] = self._packed(row, wishes, weights)
        left = min(x[row[0]] - self.half_width(row[0]) for row in self.rows)
        right = max(x[row[-1]] + self.half_width(row[-1]) for row in self.rows)
        return x - left, float(right - left)

    def segments_below(self) -> list[int]:
        """How many edges run between each row and the next."""
        return [sum(len(self.below.get(item, ())) for item in row) for row in self.rows]

    def _packed(self, row: Sequence[int], wishes: Floats, weights: Floats) -> Floats:
        """Places nearest to the wishes, in weighted least squares, in this order and with the gaps kept.

        Measured from the tightest packing, places may only not decrease: isotonic regression, by pooling neighbors that
        are in conflict.
        """
        steps = [0.0, *(self.separation(a, b) for a, b in pairwise(row))]
        tight = np.cumsum(steps)
        pools: list[tuple[float, float, int]] = []  # mean wish, weight, members
        for wish, weight in zip(wishes - tight, weights, strict=True):
            pools.append((float(wish), float(weight), 1))
            while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
                (a, weight_a, members_a), (b, weight_b, members_b) = pools[-2:]
                total = weight_a + weight_b
                pools[-2:] = [((a * weight_a + b * weight_b) / total, total, members_a + members_b)]
        return np.asarray(tight + np.repeat([pool[0] for pool in pools], [pool[2] for pool in pools]))

    def _places(self, row: Iterable[int]) -> dict[int, int]:
        return {item: place for place, item in enumerate(row)}

    def _exchange_neighbors(self) -> None:
        """Swap neighbors in a row while that removes crossings."""
        for number, row in enumerate(self.rows):
            up = self._places(self.rows[number - 1]) if number else {}
            down = self._places(self.rows[number + 1]) if number + 1 < len(self.rows) else {}
            ends = {
                item: (
                    np.array(sorted(up[n] for n in self.above.get(item, ()))),
                    np.array(sorted(down[n] for n in self.below.get(item, ()))),
                )
                for item in row
            }
            improved = True
            while improved:
                improved = False
                for place in range(len(row) - 1):
                    left, right = ends[row[place]], ends[row[place + 1]]
                    now = sum(_inversions(a, b) for a, b in zip(left, right, strict=True))
                    then = sum(_inversions(b, a) for a, b in zip(left, right, strict=True))
                    if then < now:
                        row[place], row[place + 1] = row[place + 1], row[place]
                        improved = True

    def _crossings(self) -> int:
        total = 0
        for upper, lower in pairwise(self.rows):
            places = self._places(lower)
            ends = [place for item in upper for place in sorted(places[n] for n in self.below.get(item, ()))]
            total += _descents(ends)
        return total


def _inversions(left: NDArray[np.int_], right: NDArray[np.int_]) -> int:
    """Crossings of the edges of two neighbors: pairs where the left one ends further right."""
    return int((left[:, None] > right[None, :]).sum()) if left.size and right.size else 0


def _descents(ends: Sequence[int]) -> int:
    """Pairs in the wrong order."""
    array = np.asarray(ends)
    return sum(int((array[:place] > end).sum()) for place, end in enumerate(ends))


# Routes


def _routes(items: _Items, x: Floats, levels: Sequence[float], height: float) -> tuple[Route, ...]:
    """The points of every edge. Bends cross their layer straight down, past the boxes that stand there."""
    leaving = _ports(items, x, {edge: path[0] for edge, path in items.paths.items()}, next_to_end=1)
    reaching = _ports(items, x, {edge: path[-1] for edge, path in items.paths.items()}, next_to_end=-2)
    level_of = {item: level for row, level in zip(items.rows, levels, strict=True) for item in row}
    routes = []
    for (source, target), path in items.paths.items():
        points = [(leaving[source, target], level_of[source] - height / 2)]
        for bend in path[1:-1]:
            points += [(float(x[bend]), level_of[bend] + height / 2), (float(x[bend]), level_of[bend] - height / 2)]
        points.append((reaching[source, target], level_of[target] + height / 2))
        routes.append(Route(source, target, tuple(points)))
    return tuple(routes)


def _ports(
    items: _Items, x: Floats, ends: dict[tuple[int, int], int], next_to_end: int
) -> dict[tuple[int, int], float]:
    """Where along a variable's box each edge is attached: side by side, in the order of where the edges go."""
    at_variable: dict[int, list[tuple[int, int]]] = {}
    for edge, variable in ends.items():
        at_variable.setdefault(variable, []).append(edge)
    ports = {}
    for variable, edges in at_variable.items():
        edges.sort(key=lambda edge: x[items.paths[edge][next_to_end]])
        step = min(PORT_GAP, 0.7 * items.widths[variable] / max(len(edges) - 1, 1))
        for number, edge in enumerate(edges):
            ports[edge] = float(x[variable]) + (number - (len(edges) - 1) / 2) * step
    return ports
