"""Our layout of a graph against that of ELK, a library, on the same random graphs and boxes.

    npm install --prefix /tmp/elk elkjs@0.12.1 && python docs/tools/layouts.py /tmp/elk/node_modules/elkjs

ELK crosses fewer edges (a sixth to nearly a half fewer), and our letters are larger where the whole graph is in view (a
tenth for 11 variables, twice for 100 and more). In neither does an edge run through a box. The page and the
pictures of Python share one layout, and ELK is 1.6 MB of JavaScript: we keep ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from causal_arrow.web.graphs import CANVAS, LINE_HEIGHT, MAX_ZOOM, PADDING, places_of
from causal_arrow.web.messages import Facts

Drawing = tuple[list[tuple[float, float, float, float]], list[NDArray[np.float64]]]
"""Boxes (left, top, right, bottom), and of every edge the points it runs through."""

SIZES = ((11, 18), (30, 45), (50, 75), (100, 150), (200, 160))
"""Variables and edges."""
FONT_SIZE = 13.0
ELK = """
const ELK = require(process.argv[1] + "/lib/elk.bundled.js");
const [aspect, graphs] = JSON.parse(require("fs").readFileSync(0));
const options = { "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.edgeRouting": "POLYLINE",
  "elk.spacing.nodeNode": 18, "elk.layered.spacing.nodeNodeBetweenLayers": 52, "elk.aspectRatio": aspect,
  "elk.layered.thoroughness": 20 };
(async () => {
  const elk = new ELK(), found = [];
  for (const { boxes, edges } of graphs) {
    const start = performance.now();
    const { children, edges: routed } = await elk.layout({ id: "root", layoutOptions: options,
      children: boxes.map(([width, height], place) => ({ id: `n${place}`, width, height })),
      edges: edges.map(([source, target], place) =>
        ({ id: `e${place}`, sources: [`n${source}`], targets: [`n${target}`] })) });
    found.push({ seconds: (performance.now() - start) / 1000,
      boxes: children.map(({ x, y, width, height }) => [x, y, x + width, y + height]),
      routes: routed.map(({ sections: [{ startPoint, bendPoints = [], endPoint }] }) =>
        [startPoint, ...bendPoints, endPoint].map(({ x, y }) => [x, y])) });
  }
  console.log(JSON.stringify(found));
})();
"""


def random_edges(variables: int, edges: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Edges of a graph whose variables are in causal order."""
    pairs = np.stack(np.triu_indices(variables, k=1), axis=1)
    return [(int(source), int(target)) for source, target in pairs[random.choice(len(pairs), edges, replace=False)]]


def ours(places: Facts) -> Drawing:
    """The drawing of the page."""
    boxes = []
    for node in places["nodes"]:
        right, down = node["width"] / 2, node["height"] / 2
        boxes.append((node["x"] - right, node["y"] - down, node["x"] + right, node["y"] + down))
    return boxes, [np.array(route["points"]) for route in places["routes"]]


def measures(drawing: Drawing) -> list[float]:
    """Crossings, edges through a box of others, and the letters' height in pixels where all of it is in view."""
    boxes, routes = drawing
    segments = [(edge, *points) for edge, route in enumerate(routes) for points in pairwise(route)]
    owner = np.array([edge for edge, _, _ in segments])
    from_, to = (np.array([each[end] for each in segments]) for end in (1, 2))  # (S, 2)
    a, b = np.triu_indices(len(segments), k=1)
    crossed = (_side(from_[a], to[a], from_[b]) * _side(from_[a], to[a], to[b]) < 0) & (
        _side(from_[b], to[b], from_[a]) * _side(from_[b], to[b], to[a]) < 0
    )
    crossings = len({(owner[i], owner[j]) for i, j in zip(a[crossed], b[crossed], strict=True) if owner[i] != owner[j]})
    shares = np.linspace(0, 1, 41)[:, None, None]
    points = from_ + shares * (to - from_)  # (41, S, 2)
    left, top, right, bottom = np.array(boxes).T
    x, y = points[..., 0, None], points[..., 1, None]
    inside = (x > left + 1) & (x < right - 1) & (y > top + 1) & (y < bottom - 1)  # (41, S, P)
    through = len({int(owner[segment]) for segment in np.flatnonzero(inside.any(axis=(0, 2)))})
    everything = np.concatenate([*routes, np.array(boxes)[:, :2], np.array(boxes)[:, 2:]])
    width, height = everything.max(axis=0) - everything.min(axis=0)
    return [crossings, through, FONT_SIZE * min(CANVAS[0] / width, CANVAS[1] / height, MAX_ZOOM)]


def _side(start: Any, end: Any, point: Any) -> Any:
    (x, y), (u, v) = (end - start).T, (point - start).T
    return x * v - y * u


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("elkjs", type=Path, help="the folder of the package")
    parser.add_argument("--graphs", type=int, default=10, help="of each size")
    given = parser.parse_args()
    random = np.random.default_rng(0)
    print("variables edges        crossings     edges through boxes   letters (pixels)      seconds")
    print("                      ours    ELK         ours   ELK         ours   ELK        ours    ELK")
    for variables, edges in SIZES:
        graphs, mine = [], []
        for _ in range(given.graphs):
            names = [f"variable {place}" for place in range(variables)]
            drawn = random_edges(variables, edges, random)
            start = time.perf_counter()
            places = places_of(names, [(names[source], names[target]) for source, target in drawn])
            mine.append([*measures(ours(places)), time.perf_counter() - start])
            boxes = [[node["width"], LINE_HEIGHT + PADDING[1]] for node in places["nodes"]]
            graphs.append({"boxes": boxes, "edges": drawn})
        given_in = json.dumps([CANVAS[0] / CANVAS[1], graphs])
        command = ["node", "-e", ELK, str(given.elkjs.resolve())]
        done = subprocess.run(command, input=given_in, capture_output=True, text=True, check=True)
        theirs = [
            [*measures((each["boxes"], [np.array(route) for route in each["routes"]])), each["seconds"]]
            for each in json.loads(done.stdout)
        ]
        means = zip(np.mean(mine, axis=0), np.mean(theirs, axis=0), strict=True)
        print(f"{variables:9d} {edges:5d}" + "".join(f"   {one:9.2f} {other:7.2f}" for one, other in means))


if __name__ == "__main__":
    main()
