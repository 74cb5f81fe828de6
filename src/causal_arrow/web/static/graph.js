// @ts-check
// The graph as a picture: Cytoscape draws it, our own layout says where everything stands.

import cytoscape from "./vendor/cytoscape.esm.min.js";

const WIDTHS = [1.2, 5];
const MARGIN = 28; // pixels around a graph
const MAX_FIT = 1.6; // a small graph is not blown up further

let paletteOf = document.documentElement; // where the colors come from: in a notebook the page has others
const color = (name) => getComputedStyle(paletteOf).getPropertyValue(`--${name}`).trim();
const idOfEdge = (source, target) => JSON.stringify(["edge", source, target]);
const idOfArc = (one, other) => JSON.stringify(["hidden", ...[one, other].sort()]);
const idOfNode = (name) => JSON.stringify(["node", name]);

/** A line and the heads at both of its ends in a color of the page. */
const colored = (name) => Object.fromEntries(["line-color", "target-arrow-color", "source-arrow-color"]
  .map((part) => [part, color(name)]));

function styles() {
  return [
    { selector: "node", style: {
      shape: "round-rectangle", width: "data(width)", height: "data(height)", "background-color": color("node"),
      "border-color": color("strong-border"), "border-width": 1.2, label: "data(label)", color: color("text"),
      "font-size": 13, "font-family": "system-ui, sans-serif", "text-valign": "center", "text-halign": "center",
      "text-wrap": "wrap", "text-max-width": 1000 } },
    { selector: "node.group", style: { ghost: "yes", "ghost-offset-x": 4, "ghost-offset-y": 4, "ghost-opacity": 0.45 } },
    { selector: "node.alone", style: { "border-color": color("border"), color: color("quiet") } },
    { selector: "edge", style: {
      width: "data(width)", "line-color": color("edge"), "target-arrow-color": color("edge"), "line-opacity": "data(opacity)",
      "target-arrow-shape": "triangle", "arrow-scale": 1.1, "curve-style": "straight" } },
    { selector: "edge.routed", style: { "source-endpoint": "data(leaves)", "target-endpoint": "data(reaches)" } },
    { selector: "edge.bent", style: { "curve-style": "round-segments", "segment-distances": "data(distances)",
      "segment-weights": "data(weights)", "segment-radii": 18, "edge-distances": "node-position" } },
    { selector: "edge.moderate, edge.weak", style: { "target-arrow-fill": "hollow" } },
    { selector: "edge.weak", style: { "line-style": "dashed", "line-dash-pattern": [7, 5] } },
    { selector: "edge.required", style: colored("required") },
    { selector: "edge.hidden-cause", style: {
      ...colored("hidden-cause"), "line-style": "dashed", "line-dash-pattern": [7, 5], "curve-style": "unbundled-bezier",
      "control-point-distances": [40], "target-arrow-shape": "triangle", "source-arrow-shape": "triangle" } },
    { selector: "edge.in-both", style: colored("quiet") },
    { selector: "edge.only-here", style: { ...colored("only-here"),
      "underlay-color": color("only-here"), "underlay-opacity": 0.22, "underlay-padding": 5 } },
    { selector: "edge.turned", style: { ...colored("turned"),
      "underlay-color": color("turned"), "underlay-opacity": 0.22, "underlay-padding": 5 } },
    { selector: "edge.on-path", style: { ...colored("path"), "line-opacity": 1, "z-index": 5 } },
    { selector: "node.cause, node.effect", style: { "background-color": color("path"), "border-color": color("path"),
      color: color("on-path"), "font-weight": 600 } },
    { selector: "node.adjusted", style: { "background-color": color("adjusted"), "border-color": color("strong-border"),
      "border-style": "double", "border-width": 4 } },
    { selector: ".faded", style: { opacity: 0.2 } },
    { selector: "edge:selected, edge.pointed-at", style: colored("selected") },
    { selector: "node:selected, node.found", style: { "border-color": color("selected"), "border-width": 3 } },
    { selector: "edge.below", style: { display: "none" } },
  ];
}

/** A route as Cytoscape takes it: where it leaves and reaches the boxes, and of each bend between, how far along the
 * straight line it is, and how far aside. */
function routeData(points, from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const bends = points.slice(1, -1);
  const at = ([x, y], { x: left, y: top }) => `${x - left}px ${y - top}px`;
  return { leaves: at(points[0], from), reaches: at(points.at(-1), to),
    weights: bends.map(([x, y]) => ((x - from.x) * dx + (y - from.y) * dy) / length ** 2),
    distances: bends.map(([x, y]) => ((y - from.y) * dx - (x - from.x) * dy) / length) };
}

export class GraphPicture {
  constructor(container, { onEdge, onNode, onNothing, onDrag = (/** @type {Map<string, any>} */ _moved) => {} }) {
    paletteOf = container;
    this.moved = new Map(); // where a person has dragged boxes to: they stay there
    this.cy = cytoscape({ container, style: styles(), minZoom: 0.1, maxZoom: 3, boxSelectionEnabled: false,
      selectionType: "single" });
    this.cy.on("tap", "edge", (event) => {
      const { source, target } = event.target.data("pair") ?? {};
      if (source) onEdge(source, target);
    });
    this.cy.on("tap", "node", (event) => onNode(event.target.data("name")));
    this.cy.on("tap", (event) => { if (event.target === this.cy) onNothing(); });
    // Names are shortened, and small where there are many.
    this.cy.on("mouseover", "node", (event) => { container.title = event.target.data("name"); });
    this.cy.on("mouseout", "node", () => container.removeAttribute("title"));
    this.cy.on("drag", "node", (event) => { event.target.connectedEdges().removeClass("routed bent"); });
    this.cy.on("dragfree", "node", (event) => {
      this.moved.set(event.target.data("name"), { ...event.target.position() });
      onDrag(this.moved);
    });
    this.recolor = () => { paletteOf = container; this.cy.style(styles()); };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.recolor);
    // Cytoscape remembers where its container is, which moves when something above it grows.
    container.addEventListener("pointerdown", () => this.cy.resize(), { capture: true });
    this.fitted = ""; // the viewport that shows everything
    let width = container.clientWidth;
    new ResizeObserver(() => {
      this.cy.resize();
      const now = container.clientWidth;
      if (now === 0) return; // hidden
      // A turned phone, another window; or nobody has moved the graph, and a sentence below it has come or gone.
      if (width > 0 && (Math.abs(now - width) > width / 5 || this.fitted === this.viewport)) this.fit();
      width = now;
    }).observe(container);
  }

  /** Show a graph; variables that are new wait for their places. `markOf` and `markOfArc` may give an edge, and the arc of
   * two variables with a hidden cause, one more class. */
  show(graph, markOf = (/** @type {any} */ _edge) => "", markOfArc = (/** @type {string[]} */ ..._pair) => "") {
    const { cy } = this;
    cy.batch(() => {
      const names = new Set(graph.variables.map(idOfNode));
      cy.nodes().filter((node) => !names.has(node.id())).remove();
      for (const name of graph.variables) {
        if (cy.getElementById(idOfNode(name)).empty()) {
          cy.add({ data: { id: idOfNode(name), name, label: name, width: 60, height: 30 } });
        }
      }
      cy.edges().remove();
      const linked = new Set();
      for (const edge of graph.edges) {
        linked.add(edge.source).add(edge.target);
        cy.add({ data: {
          id: idOfEdge(edge.source, edge.target), source: idOfNode(edge.source), target: idOfNode(edge.target),
          pair: edge.pair ?? { source: edge.source, target: edge.target }, adjacency: edge.adjacency_probability,
          width: WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * edge.probability, opacity: 0.3 + 0.65 * edge.probability },
          classes: [edge.direction, edge.required ? "required" : "", markOf(edge)] });
      }
      for (const { variables: [one, other], probability, pair } of graph.hidden_causes) {
        cy.add({ data: { id: idOfArc(one, other), source: idOfNode(one), target: idOfNode(other),
          pair: pair ?? { source: one, target: other }, adjacency: 1, width: WIDTHS[0] + 2 * probability, opacity: 0.8 },
          classes: ["hidden-cause", markOfArc(one, other)] });
      }
      cy.nodes().forEach((node) => {
        node.toggleClass("alone", !linked.has(node.data("name")));
        node.toggleClass("group", Boolean(graph.groups?.has(node.data("name"))));
      });
    });
    this.route(this.routes ?? []);
  }

  /** Put everything where the layout has it; the first time at once, later in a short move. */
  place(places, first) {
    const { cy } = this;
    this.routes = places.routes;
    const move = !first && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    cy.edges().removeClass("routed bent");
    for (const { name, label, x: planned, y: below, width, height } of places.nodes) {
      const node = cy.getElementById(idOfNode(name));
      const { x, y } = this.moved.get(name) ?? { x: planned, y: below };
      node.data({ label, width, height });
      if (move) node.animate({ position: { x, y } }, { duration: 250 });
      else node.position({ x, y });
    }
    if (!move) this.route(places.routes, places.nodes);
    else setTimeout(() => this.route(places.routes, places.nodes), 280);
    this.cy.container().classList.remove("unplaced");
    if (first) this.fit();
  }

  /** Lead edges along their routes, except those of boxes that were dragged. */
  route(routes, nodes = null) {
    const at = new Map((nodes ?? []).map((node) => [node.name, node]));
    this.cy.batch(() => {
      for (const { source, target, points } of routes) {
        if (this.moved.has(source) || this.moved.has(target)) continue;
        const edge = this.cy.getElementById(idOfEdge(source, target));
        if (edge.empty()) continue;
        const from = at.get(source) ?? edge.source().position();
        const to = at.get(target) ?? edge.target().position();
        edge.data(routeData(points, from, to)).addClass(points.length > 2 ? "routed bent" : "routed");
      }
    });
  }

  /** Hide edges at once, before the server has decoded anew. */
  hideBelow(threshold) {
    this.cy.batch(() => this.cy.edges().forEach((edge) => {
      edge.toggleClass("below", !edge.hasClass("required") && edge.data("adjacency") <= threshold);
    }));
  }

  select(source, target) {
    this.cy.elements().unselect();
    if (source && target) {
      for (const id of [idOfEdge(source, target), idOfArc(source, target)]) this.cy.getElementById(id).select();
    }
    else if (source) this.cy.getElementById(idOfNode(source)).select();
  }

  /** Color what an answer is about: cause and effect, the edges between them, and what was adjusted for. */
  mark({ cause = null, effect = null, edges = [], adjusted = [] } = {}) {
    this.marks = { cause, effect, edges, adjusted };
    this.cy.batch(() => {
      this.cy.elements().removeClass("cause effect adjusted on-path");
      if (cause) this.cy.getElementById(idOfNode(cause)).addClass("cause");
      if (effect) this.cy.getElementById(idOfNode(effect)).addClass("effect");
      for (const name of adjusted) this.cy.getElementById(idOfNode(name)).addClass("adjusted");
      for (const { source, target } of edges) this.cy.getElementById(idOfEdge(source, target)).addClass("on-path");
    });
  }

  /** Where boxes were dragged to, as it was kept; nothing for the layout's own places. */
  forget(kept) {
    this.moved = new Map(kept);
  }

  /** Bring a variable into the middle. */
  flyTo(name) {
    const node = this.cy.getElementById(idOfNode(name));
    const view = { center: { eles: node }, zoom: Math.max(this.cy.zoom(), 0.9) };
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.cy.zoom(view.zoom);
      this.cy.center(node);
    } else this.cy.animate(view, { duration: 250 });
  }

  /** Move, zoom and drag along with another picture. */
  follow(other) {
    const [here, there] = [this.cy, other.cy];
    for (const [from, to] of [[here, there], [there, here]]) {
      from.on("viewport", () => {
        const [pan, zoom] = [from.pan(), from.zoom()];
        if (zoom !== to.zoom() || pan.x !== to.pan().x || pan.y !== to.pan().y) to.viewport({ zoom, pan: { ...pan } });
      });
      from.on("drag", "node", (event) => to.getElementById(event.target.id()).position({ ...event.target.position() }));
    }
  }

  /** Point at the edge between two variables, in whichever direction it is here, or at the arc of their hidden cause. */
  pointAt(one, other, isHiddenCause = false) {
    this.cy.edges().removeClass("pointed-at");
    const ids = isHiddenCause ? [idOfArc(one, other)] : [idOfEdge(one, other), idOfEdge(other, one)];
    for (const id of ids) this.cy.getElementById(id).addClass("pointed-at");
  }

  /** Make these variables stand out, and fade the others; nothing stands out among none. @param {string[]} names */
  point(names) {
    const found = this.cy.nodes().filter((node) => names.includes(node.data("name")));
    this.cy.batch(() => {
      this.cy.nodes().removeClass("found");
      this.cy.elements().toggleClass("faded", found.nonempty());
      found.addClass("found").union(found.connectedEdges()).removeClass("faded");
    });
  }

  /** The room that a layout has, in pixels. */
  get canvas() {
    const { clientWidth, clientHeight } = this.cy.container();
    return { width: Math.max(clientWidth - 2 * MARGIN, 100), height: Math.max(clientHeight - 2 * MARGIN, 100) };
  }

  fit() {
    this.cy.resize();
    const shown = this.cy.elements(":visible");
    this.cy.fit(shown, MARGIN);
    if (this.cy.zoom() > MAX_FIT) {
      this.cy.zoom(MAX_FIT);
      this.cy.center(shown);
    }
    this.fitted = this.viewport;
  }

  get viewport() {
    return JSON.stringify([this.cy.zoom(), this.cy.pan()]);
  }
}
