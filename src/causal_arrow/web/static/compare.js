// @ts-check
// Two answers side by side, drawn in the same places, and their differences in words.

import * as api from "./api.js";
import { button, byId, element } from "./dom.js";
import { GraphPicture } from "./graph.js";

export class CompareView {
  /** `sessionKey` gives the session, `careful` wraps listeners so that what goes wrong is shown. */
  constructor(sessionKey, careful) {
    this.sessionKey = sessionKey;
    this.pictures = null;
    this.kept = [];
    for (const id of ["left", "right"]) byId(id).addEventListener("change", careful(() => this.draw()));
    byId("keep").addEventListener("click", careful(() => this.keep()));
    byId("keep-file").addEventListener("change", careful((event) => this.keepFile(event.target)));
    byId("forget-kept").addEventListener("click", careful(() => this.forget()));
    byId("compare-fit").addEventListener("click", () => this.pictures?.[0].fit());
  }

  get isOpen() {
    return !byId("compare").hidden;
  }

  setKept(kept) {
    this.kept = kept;
  }

  /** Open with the latest kept answer on the left, or the network's own, and the current graph on the right. */
  async open() {
    const latest = this.kept.at(-1);
    this.fill(latest ? String(latest.number) : "network", "now");
    byId("compare").hidden = false;
    byId("work").hidden = true;
    byId("compare-title").focus();
    await this.draw(true);
  }

  /** Draw again after the graph or the kept answers have changed. */
  async renew() {
    this.fill(byId("left").value, byId("right").value);
    await this.draw();
  }

  close() {
    byId("compare").hidden = true;
    byId("work").hidden = false;
  }

  fill(left, right) {
    const options = () => [element("option", { value: "now" }, "the current graph"),
      element("option", { value: "network" }, "the network alone, without what you know"),
      ...this.kept.map(({ number, name }) => element("option", { value: number }, name))];
    for (const [id, chosen] of [["left", left], ["right", right]]) {
      byId(id).replaceChildren(...options());
      byId(id).value = chosen;
      if (!byId(id).value) byId(id).value = "network";
    }
    byId("forget-kept").disabled = !this.kept.length;
  }

  async keep() {
    const name = byId("keep-name").value.trim() || `kept at ${new Date().toLocaleTimeString("en", { hour12: false })}`;
    this.kept = await api.keep(this.sessionKey(), name);
    byId("keep-name").value = "";
    this.fill(String(this.kept.at(-1).number), byId("right").value);
    await this.draw();
  }

  async keepFile(input) {
    const [file] = input.files;
    if (!file) return;
    try {
      this.kept = await api.keepFile(this.sessionKey(), file);
    } finally {
      input.value = "";
    }
    this.fill(String(this.kept.at(-1).number), byId("right").value);
    await this.draw(true);
  }

  /** Forget the kept answers that are not shown, or all if none is. */
  async forget() {
    const shown = [byId("left").value, byId("right").value];
    for (const { number } of this.kept) {
      if (!shown.includes(String(number))) this.kept = await api.forget(this.sessionKey(), number);
    }
    this.fill(...shown);
  }

  async draw(fit = false) {
    const asked = this.asked = [byId("left").value, byId("right").value];
    const found = await api.comparison(this.sessionKey(), ...asked);
    if (this.asked !== asked) return;
    this.pictures ??= this.paint();
    const keyOf = (pair) => JSON.stringify([...pair].sort());
    const turned = new Set(found.differences.filter((each) => each.kind === "reversed").map((each) => keyOf(each.pair)));
    [found.left, found.right].forEach(({ name, words, graph }, place) => {
      const side = place ? "right" : "left";
      const alone = new Set(found.differences.filter((each) => each.kind === `only_${side}`).map((each) => keyOf(each.pair)));
      const markOf = ({ source, target }) => {
        const pair = keyOf([source, target]);
        return turned.has(pair) ? "turned" : alone.has(pair) ? "only-here" : "in-both";
      };
      const hidden = new Set(found.differences.filter((each) => each.kind === "hidden_cause").map((each) => keyOf(each.pair)));
      const markOfArc = (...pair) => (hidden.has(keyOf(pair)) ? "only-here" : "in-both");
      byId(`${side}-words`).textContent = words;
      byId(`${side}-graph`).setAttribute("aria-label", `The graph of ${name}: ${words}. The list of differences says the same.`);
      this.pictures[place].show(graph, markOf, markOfArc);
      this.pictures[place].place(found.places, fit || !this.drawn);
    });
    if (fit || !this.drawn) this.pictures[found.left.graph.variables.length < found.right.graph.variables.length ? 1 : 0].fit();
    this.drawn = true;
    byId("compare-legend-hidden").hidden = ![found.left, found.right].some(({ graph }) => graph.hidden_causes.length);
    byId("compare-words").textContent = found.words;
    byId("differences").replaceChildren(...found.differences.map((each) => element("li", { class: `difference-${each.kind}` },
      each.pair ? button(each.words, () => this.pictures.forEach((picture) =>
        picture.pointAt(...each.pair, each.kind === "hidden_cause"))) : each.words)));
  }

  paint() {
    const quiet = { onEdge: () => {}, onNode: () => {}, onNothing: () => {} };
    const pictures = ["left-graph", "right-graph"].map((id) => new GraphPicture(byId(id), quiet));
    pictures[0].follow(pictures[1]);
    return pictures;
  }
}
