// Does one variable cause another, and what happens to it when the other changes?

import * as api from "./api.js";
import { byId, countedShare, element, fill, shareOf, svgElement } from "./dom.js";
import { numeral } from "./plot.js";

const WIDTH = 340, HEIGHT = 190, SIDE = 10, BOTTOM = 34;

export class PairPanel {
  /** `sessionKey` and `columns` give the session and its columns when they are needed. */
  constructor(sessionKey, columns) {
    this.sessionKey = sessionKey;
    this.columns = columns;
    byId("cause").addEventListener("change", () => this.fillValues());
    byId("effect").addEventListener("change", () => this.clear());
  }

  show(variables) {
    for (const [id, place] of [["cause", 0], ["effect", 1]]) {
      const before = byId(id).value;
      byId(id).replaceChildren(...variables.map((name) => element("option", { value: name }, name)));
      byId(id).value = variables.includes(before) ? before : variables[place] ?? "";
    }
    this.fillValues();
  }

  choose(cause, effect = null) {
    if (byId("cause").value === cause && (effect === null || byId("effect").value === effect)) return;
    byId("cause").value = cause;
    if (effect !== null) byId("effect").value = effect;
    this.fillValues();
  }

  clear() {
    this.asked = null;
    byId("pair-answer").replaceChildren();
  }

  /** From where to where the cause goes: two levels, or two numbers if the person wants. */
  fillValues() {
    this.clear();
    const column = this.columns().find((each) => each.name === byId("cause").value);
    const levels = column?.levels ?? [];
    const choice = (id, label, place) => {
      const field = levels.length
        ? element("select", { id }, ...levels.map((level) => element("option", { value: level }, level)))
        : element("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", size: 6 });
      if (levels.length) field.value = levels[place];
      return element("label", {}, `${label} `, field);
    };
    byId("values").replaceChildren(choice("first", "from", 0), choice("second", "to", Math.min(1, levels.length - 1)),
      levels.length ? "" : element("small", { class: "hint" }, "empty: per unit"));
  }

  /** Ask both questions at once and show what comes back. */
  async ask() {
    const key = this.sessionKey();
    const [cause, effect] = [byId("cause").value, byId("effect").value];
    const asked = { cause, effect, estimator: byId("estimator").value };
    const [first, second] = [byId("first").value.trim(), byId("second").value.trim()];
    if (first) asked.first = first;
    if (second) asked.second = second;
    const mine = this.asked = asked;
    byId("pair-answer").replaceChildren("Drawing graphs …");
    let answer, size;
    try {
      [answer, size] = await Promise.all([api.question(key, cause, effect),
        api.effect(key, asked).catch((error) => ({ trouble: error.message }))]);
    } catch (error) {
      this.clear();
      throw error;
    }
    if (this.asked === mine) showAnswer(answer, size);
  }

  /** Ask again after the graph has changed, if there is an answer to renew. */
  async renew() {
    if (this.asked) await this.ask();
  }
}

function showAnswer(answer, size) {
  fill(byId("pair-answer"),
    element("p", {}, answer.words),
    element("p", {}, `The other way round: ${countedShare(answer.reversed_probability)}. ` +
      `Counted over ${answer.graphs} graphs drawn from the network's distribution.`),
    ...list("Shortest ways, and the share of graphs with them:", answer.paths,
      (path) => `${path.variables.join(" → ")} (${countedShare(path.share)})`),
    answer.hidden_causes ? element("p", {}, answer.hidden_causes) : null,
    element("h3", {}, "How large is the effect?"),
    ...(size.trouble ? [element("p", {}, size.trouble)] : effectParts(size)));
}

const list = (title, entries, words) => entries.length
  ? [element("p", {}, title), element("ul", {}, ...entries.map((entry) => element("li", {}, words(entry))))] : [];

function effectParts(size) {
  const row = (title, share, ...effect) => element("tr", {}, element("th", { scope: "row" }, title),
    element("td", {}, countedShare(share)), element("td", {}, ...effect));
  const { probability_not_estimated: without } = size;
  const listed = size.sets.reduce((sum, set) => sum + set.share, 0);
  // Every graph is in one of the rows, so that the shares add up to all of them.
  const rows = [
    ...size.sets.map((set) => row(set.variables.length ? set.variables.join(", ") : "nothing", set.share,
      numeral(set.effect), element("br"),
      element("small", { class: "number" }, `${numeral(set.low)} to ${numeral(set.high)}`))),
    size.more_sets ? row(`${size.more_sets} more sets`, Math.max(1 - listed - without, 0), "") : null,
    without ? row("–", without, "no estimate") : null,
  ];
  const head = element("tr", {}, ...["Adjusted for", "Graphs", "Effect, 90% interval"].map((title) =>
    element("th", { scope: "col" }, title)));
  // A number that speaks against what most graphs say must not be read alone: the headline says so first.
  const figure = size.verdict !== "effect" ? [element("p", {}, size.words)] : [
    element("p", { class: "figure" }, element("strong", {}, numeral(size.median)),
      ` ${[size.unit, size.change].filter(Boolean).join(" ")}`),
    element("p", {}, `90% interval ${numeral(size.low)} to ${numeral(size.high)}.`),
  ];
  return [
    ...figure,
    size.sets.length ? effectPlot(size) : null,
    size.sets.length ? element("table", { class: "levels" }, element("thead", {}, head), element("tbody", {}, ...rows)) : null,
    ...size.sentences.map((sentence) => element("p", {}, sentence)),
  ];
}

/** The distribution of the effect, one layer per adjustment set and the interval below. */
function effectPlot({ plot, low, high, median, effect, change, ...size }) {
  const { points, layers } = plot;
  const total = points.map((_, place) => layers.reduce((sum, layer) => sum + layer.densities[place], 0));
  const top = Math.max(...total) || 1;
  const [from, to] = [points[0], points.at(-1)];
  const across = (value) => SIDE + ((value - from) / (to - from)) * (WIDTH - 2 * SIDE);
  const up = (density) => (HEIGHT - BOTTOM - 8) * (1 - density / top) + 4;
  const floor = up(0);
  const picture = svgElement("svg", { class: "plot effect-plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `The effect on ${effect} ${change}: ${numeral(median)}, with 90% between ${numeral(low)} and ${numeral(high)}` +
      (size.probability_not_identified ? ", over the graphs that identify it" : "") });
  let below = points.map(() => 0);
  layers.forEach((layer, place) => {
    const above = below.map((sum, point) => sum + layer.densities[point]);
    const outline = [...above.map((sum, point) => [points[point], sum]),
      ...below.map((sum, point) => [points[point], sum]).reverse()];
    picture.append(svgElement("path", { class: `layer layer-${place % 6}`,
      d: `M${outline.map(([x, y]) => `${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("L")}Z` },
    svgElement("title", {}, `adjusted for ${layer.label}`)));
    below = above;
  });
  picture.append(svgElement("line", { x1: SIDE, x2: WIDTH - SIDE, y1: floor, y2: floor }));
  picture.append(
    svgElement("line", { class: "interval", x1: across(low), x2: across(high), y1: floor + 7, y2: floor + 7 }),
    svgElement("circle", { class: "median", r: 4, cx: across(median), cy: floor + 7 }));
  const marks = [[from, "start"], [0, "middle"], [to, "end"]].filter(([value, anchor]) =>
    anchor !== "middle" || (across(0) > 60 && across(0) < WIDTH - 60));
  for (const [value, anchor] of marks) {
    picture.append(svgElement("text", { x: across(value), y: HEIGHT - 6, "text-anchor": anchor }, numeral(value)));
  }
  const key = element("ul", { class: "legend" }, ...layers.map((layer, place) => element("li", {},
    element("span", { class: `swatch layer-${place % 6}` }), layer.label)));
  return element("div", {}, picture, key);
}
