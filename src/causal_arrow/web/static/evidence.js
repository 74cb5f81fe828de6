// @ts-check
// What speaks against the graph: tested independences, directions that no data decide, stability, the next experiment and
// what one has shown, and the probability of every edge.

import * as api from "./api.js";
import { button, byId, element, fill, percent, pValue } from "./dom.js";
import { cellAt } from "./logic.js";

const MAX_LISTED = 8;
const WIDTH = 720, MIN_CELL = 2, MAX_CELL = 44; // pixels of the matrix, twice what the screen shows

/** @param {string[]} names */
const options = (names) => names.map((name) => element("option", { value: name }, name));
/** @param {string} title @param {any[]} content */
const part = (title, ...content) => element("section", { class: "part" }, element("h3", {}, title), ...content);
const hint = (/** @type {string} */ words) => element("p", { class: "hint" }, words);

/** A list that shows its first entries, and the others on request. @param {HTMLElement[]} entries @param {string} things */
function some(entries, things) {
  const list = (/** @type {HTMLElement[]} */ shown) => element("ul", { class: "plain" }, ...shown);
  return entries.length <= MAX_LISTED ? [list(entries)] : [list(entries.slice(0, MAX_LISTED)),
    element("details", {}, element("summary", {}, `${entries.length - MAX_LISTED} more ${things}`), list(entries.slice(MAX_LISTED)))];
}

export class EvidencePanel {
  /** `look` gives the session's key, its graph and the question; `on` has selectEdge, resample and learned.
   * @param {() => any} look @param {(work: any) => any} careful @param {any} on */
  constructor(look, careful, on) {
    this.look = look;
    this.careful = careful;
    this.on = on;
    this.shown = null; // the graph that the panel describes
    byId("evidence-panel").addEventListener("toggle", careful(() => this.renew()));
    byId("advise").addEventListener("click", careful(() => this.advise()));
    byId("learn-file").addEventListener("change", careful((/** @type {any} */ event) => this.learn(event.target)));
    const matrix = byId("matrix");
    matrix.addEventListener("mousemove", (/** @type {MouseEvent} */ event) => this.point(event));
    matrix.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const cell = this.cellOf(event);
      if (cell && cell[0] !== cell[1]) on.selectEdge(...cell.map((index) => this.matrix.names[index]));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.matrix && this.draw());
  }

  /** The graph has changed. */
  outdated() {
    this.careful(() => this.renew())();
  }

  async renew() {
    const { key, graph } = this.look();
    if (!byId("evidence-panel").open || !graph || this.shown === graph) return;
    this.shown = graph;
    byId("tests").replaceChildren(hint("Testing …"));
    const [found, matrix] = await Promise.all([api.evidence(key), api.probabilities(key)]);
    if (this.shown !== graph) return;
    this.showTests(found);
    this.matrix = matrix;
    this.draw();
    const subjects = [["", "the whole graph"], ...graph.variables.map((/** @type {string} */ name) => [name, `the causes of ${name}`])];
    const before = byId("advise-about").value;
    byId("advise-about").replaceChildren(element("option", { value: "?" }, "the effect in the question above"),
      ...subjects.map(([value, words]) => element("option", { value }, words)));
    byId("advise-about").value = before;
    if (byId("advise-about").selectedIndex < 0) byId("advise-about").value = "";
    byId("learn-variable").replaceChildren(...options(graph.variables));
    byId("advice").replaceChildren();
  }

  /** @param {any} found */
  showTests(found) {
    const rows = found.independences.map((/** @type {any} */ { variable, other, given, p_value, contradicted }) =>
      element("li", { class: contradicted ? "contradicted" : "" },
        button(`${variable} and ${other}`, () => this.on.selectEdge(other, variable)),
        element("span", {}, given.length ? ` given ${given.join(", ")}` : ""),
        element("span", { class: "number" }, ` ${pValue(p_value)}${contradicted ? ", contradicted" : ""}`)));
    const reversible = found.reversible.map((/** @type {string[]} */ edge) =>
      element("li", {}, button(edge.join(" → "), () => this.on.selectEdge(...edge))));
    fill(byId("tests"),
      part("Independences that the graph implies", element("p", {}, found.words), ...some(rows, "independences")),
      part("Directions that no data can decide", element("p", {}, found.equivalence), ...some(reversible, "edges")),
      part("Stability", element("p", {}, "How often does each edge appear in bootstrap resamples?"),
        button("Read 50 resampled tables", this.on.resample), hint("The list of edges then has a column Stable.")));
  }

  async advise() {
    const { key, pair } = this.look();
    const about = byId("advise-about").value;
    if (about === "?" && !(pair.cause && pair.effect)) throw new api.RequestError("Choose a cause and an effect first.", 400);
    byId("advice").replaceChildren(hint("Simulating experiments …"));
    try {
      const plan = await api.experiments(key, about === "?" ? pair : about ? { effect: about } : {});
      const entries = plan.words.map((/** @type {string} */ words) => element("li", {}, words));
      byId("advice").replaceChildren(element("p", {}, plan.sentence), ...some(entries, "experiments"));
    } catch (error) {
      byId("advice").replaceChildren();
      throw error;
    }
  }

  /** @param {HTMLInputElement} input */
  async learn(input) {
    const file = input.files?.[0];
    if (!file) return;
    try {
      await this.on.learned(await api.learn(this.look().key, byId("learn-variable").value, file));
    } finally {
      input.value = "";
    }
  }

  // The matrix

  draw() {
    const { names, rows } = this.matrix;
    const cell = Math.max(MIN_CELL, Math.min(MAX_CELL, Math.floor(WIDTH / names.length)));
    const canvas = byId("matrix");
    canvas.width = canvas.height = cell * names.length;
    const brush = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    brush.fillStyle = style.getPropertyValue("--soft");
    for (let index = 0; index < names.length; index += 1) brush.fillRect(index * cell, index * cell, cell, cell);
    brush.fillStyle = style.getPropertyValue("--edge");
    rows.forEach((/** @type {number[]} */ row, /** @type {number} */ cause) => row.forEach((probability, effect) => {
      brush.globalAlpha = probability;
      if (probability >= 0.01) brush.fillRect(effect * cell, cause * cell, cell - (cell > 6 ? 1 : 0), cell - (cell > 6 ? 1 : 0));
    }));
    byId("matrix-words").textContent = "Rows are causes, columns effects, in causal order; darker is more probable.";
  }

  /** The cause and the effect under the pointer. @param {MouseEvent} event */
  cellOf(event) {
    const box = byId("matrix").getBoundingClientRect();
    return cellAt((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height, this.matrix?.names.length ?? 0);
  }

  /** @param {MouseEvent} event */
  point(event) {
    const cell = this.cellOf(event);
    if (!cell) return;
    const [cause, effect] = cell;
    const { names, rows } = this.matrix;
    byId("matrix-words").textContent = `${names[cause]} → ${names[effect]}: ${percent(rows[cause][effect])}`;
  }
}
