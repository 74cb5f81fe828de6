// @ts-check
// The question: what does one variable do to another, and what moves one most?

import * as api from "./api.js";
import { button, byId, countedShare, element, fill, pValue, shareOf, svgElement } from "./dom.js";
import { clicked, meant } from "./logic.js";
import { numeral } from "./plot.js";

const MAX_LISTED = 5; // adjustment sets
const WIDTH = 340, HEIGHT = 170, SIDE = 10, BOTTOM = 34;

export class QuestionPanel {
  /** `look` gives the session's key, its columns and the variables of the graph; `onAnswer` hears what is asked about. */
  constructor(look, onAnswer) {
    this.look = look;
    this.onAnswer = onAnswer;
    this.last = ""; // the pair that was chosen last: leaving a field changes nothing
    for (const id of ["cause", "effect"]) byId(id).addEventListener("change", () => JSON.stringify(this.pair) !== this.last && this.changed());
  }

  get pair() {
    const { variables } = this.look();
    return { cause: meant(byId("cause").value, variables), effect: meant(byId("effect").value, variables) };
  }

  show(variables) {
    byId("variables").replaceChildren(...variables.map((name) => element("option", { value: name })));
    for (const id of ["cause", "effect"]) if (!variables.includes(this.pair[id])) byId(id).value = "";
    this.changed();
  }

  /** Put two variables into the question, without asking it. */
  choose({ cause, effect }) {
    const before = this.pair;
    if (before.cause === cause && before.effect === effect) return;
    byId("cause").value = cause;
    byId("effect").value = effect;
    this.changed();
  }

  /** A variable was clicked; whether the question is complete now. */
  click(name) {
    this.choose(clicked(this.pair, name));
    return this.pair.effect !== "";
  }

  changed() {
    this.clear();
    const { cause, effect } = this.pair;
    this.last = JSON.stringify(this.pair);
    const known = new Set(this.look().variables);
    byId("ask").disabled = !(known.has(cause) && known.has(effect));
    byId("rank").disabled = !(known.has(effect) || known.has(cause));
    byId("rank").textContent = known.has(effect) || known.has(cause) ? `What moves ${effect || cause} most?` : "What moves it most?";
    this.fillValues();
  }

  clear() {
    this.asked = null;
    byId("pair-answer").replaceChildren();
    this.onAnswer(null);
  }

  /** From where to where the cause goes: two levels, or two numbers if a person wants. Of an effect with several levels,
   * the one whose share is meant. */
  fillValues() {
    const { cause, effect } = this.pair;
    const { columns } = this.look();
    const levels = columns.find((each) => each.name === cause)?.levels ?? [];
    const outcome = columns.find((each) => each.name === effect);
    const shares = outcome?.levels.length > 2 ? outcome.levels : [];
    const choice = (id, label, index) => {
      const field = levels.length
        ? element("select", { id }, ...levels.map((level) => element("option", { value: level }, level)))
        : element("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", size: 6 });
      if (levels.length) field.value = levels[index];
      return element("label", {}, `${label} `, field);
    };
    byId("values").replaceChildren(choice("first", "from", 0), choice("second", "to", Math.min(1, levels.length - 1)),
      levels.length ? "" : element("small", { class: "hint" }, "empty: per unit"),
      ...(shares.length ? [element("label", {}, `share of ${effect} = `, element("select", { id: "level" },
        ...(outcome.kind === "category" ? [] : [element("option", { value: "" }, "its index")]),
        ...shares.map((level) => element("option", { value: level }, level))))] : []));
    byId("question-options").open = levels.length > 2 || shares.length > 0;
  }

  /** Ask about the path and the size at once and show what comes back. */
  async ask() {
    const { key } = this.look();
    const { cause, effect } = this.pair;
    const asked = { cause, effect, estimator: byId("estimator").value };
    const [first, second] = [byId("first").value.trim(), byId("second").value.trim()];
    if (first) asked.first = first;
    if (second) asked.second = second;
    if (byId("level")?.value) asked.level = byId("level").value;
    const mine = this.asked = asked;
    byId("pair-answer").replaceChildren(element("p", { class: "hint" }, "Drawing graphs …"));
    let answer, size;
    try {
      [answer, size] = await Promise.all([api.question(key, cause, effect),
        api.effect(key, asked).catch((error) => ({ trouble: error.message }))]);
    } catch (error) {
      this.clear();
      throw error;
    }
    if (this.asked !== mine) return;
    showAnswer(answer, size);
    this.onAnswer({ cause, effect, adjusted: size.tested_set ?? [] });
    byId("question").scrollIntoView({ block: "nearest" });
    byId("side").scrollTop = 0;
  }

  /** What moves a variable most: a list whose entries ask about one cause. */
  async rank() {
    const effect = this.pair.effect || this.pair.cause;
    const level = this.pair.effect && byId("level")?.value;
    const mine = this.asked = { effect };
    byId("pair-answer").replaceChildren(element("p", { class: "hint" }, "Drawing graphs …"));
    let found;
    try {
      found = await api.effects(this.look().key, { effect, ...(level ? { level } : {}) });
    } catch (error) {
      this.clear();
      throw error;
    }
    if (this.asked !== mine) return;
    const largest = Math.max(...found.effects.map((each) => Math.abs(each.standardized)), 1e-9);
    const entries = found.effects.map(({ treatment: cause, median, low, high, verdict, standardized, probability_of_path: path }) => {
      const entry = button("", () => {
        this.choose({ cause, effect });
        this.ask();
      }, { class: "ranked", "aria-label": `${cause}: ${numeral(median)}, ${numeral(low)} to ${numeral(high)}` });
      entry.replaceChildren(element("strong", {}, cause), element("span", { class: "number" },
        verdict === "not identified" ? "not identified" : `${numeral(median)} (${numeral(low)} to ${numeral(high)})`),
      element("meter", { min: 0, max: 1, value: Math.abs(standardized) / largest, "aria-hidden": "true" }),
      element("small", { class: "number" }, `path in ${shareOf(path, "graphs")}`));
      return element("li", {}, entry);
    });
    fill(byId("pair-answer"),
      element("h3", {}, `What moves ${level ? `the share of ${effect} = ${level}` : effect} most?`),
      entries.length ? element("ol", { class: "ranking" }, ...entries) : element("p", {}, `No cause of ${effect} has an estimate.`),
      element("p", { class: "hint" }, "Ranked by the effect in standard deviations; a click asks about one of them."),
      ...Object.entries(found.why_not_estimated).map(([name, why]) => element("p", { class: "hint" }, `No estimate for ${name}: ${why}.`)));
    this.onAnswer({ cause: null, effect, adjusted: [] });
  }

  /** Ask again after the graph has changed, if there is an answer to renew. */
  async renew() {
    if (this.asked?.cause) await this.ask();
    else if (this.asked) await this.rank();
  }
}

function showAnswer(answer, size) {
  const details = element("details", { class: "more" }, element("summary", {}, "How it was found"),
    element("p", {}, answer.words),
    element("p", {}, `The other way round: ${countedShare(answer.reversed_probability)}. ` +
      `Counted over ${answer.graphs} graphs drawn from the network's distribution.`),
    size.order === "assumed" ? element("p", {}, `The size is that of graphs in which ${answer.cause} comes before ${answer.effect}. ` +
      `Of these, ${countedShare(size.probability_of_path)} have a path.`) : null,
    ...list("Shortest paths, and the share of graphs with each:", answer.paths,
      (path) => `${path.variables.join(" → ")} (${countedShare(path.share)})`),
    // Where the effect is not identified, its own sentence says so.
    answer.hidden_causes && size.verdict !== "not identified" ? element("p", {}, answer.hidden_causes) : null,
    ...(size.trouble ? [] : evidence(size)));
  fill(byId("pair-answer"), ...(size.trouble ? [element("h3", {}, answer.words), element("p", {}, size.trouble)]
    : headline(size)), details);
}

const list = (title, entries, words) => entries.length
  ? [element("p", {}, title), element("ul", {}, ...entries.map((entry) => element("li", {}, words(entry))))] : [];

/** The answer at first sight: the size with its interval, the share of graphs with a path, the test, and what is plain. */
function headline(size) {
  const sure = size.verdict === "effect";
  const change = [size.unit, size.change].filter(Boolean).join(" ");
  const tile = (title, value, more) => element("div", {}, element("dt", {}, title), element("dd", {}, value,
    element("small", { class: "number" }, more)));
  const lost = size.probability_not_identified;
  return [
    // A number that few graphs stand for must not be read alone: the sentence says what most of them say.
    sure ? null : element("p", { class: "verdict" }, size.sentence),
    sure ? element("p", { class: "figure" }, `${size.outcome} changes by `, element("strong", {}, numeral(size.median)), ` ${change}`) : null,
    element("dl", { class: "answers" },
      tile("Size", numeral(size.median), `90%: ${numeral(size.low)} to ${numeral(size.high)}`),
      tile("Graphs with a path", countedShare(size.probability_of_path), lost ? `not identified: ${countedShare(lost)}` : `of ${size.graphs}`),
      size.p_value === null ? null
        : tile("Test of no effect", pValue(size.p_value), `adjusted for ${size.tested_set.join(", ") || "nothing"}`)),
    size.plain || size.truth ? comparison(size) : null,
    ...size.cautions.map((sentence) => element("p", { class: "caution" }, sentence)),
  ];
}

/** The plain difference against the effect, and the truth of a simulated table for those who want it. */
function comparison({ plain, truth, median, low, high }) {
  const rows = [];
  if (plain) rows.push(["Plain difference", plain.value, plain.words, "plain"]);
  rows.push(["Causal effect", median, `90% interval ${numeral(low)} to ${numeral(high)}`, "causal"]);
  const most = Math.max(...rows.map(([, value]) => Math.abs(value)), Math.abs(truth?.value ?? 0), 1e-12);
  const line = ([label, value, title, kind]) => {
    const width = 50 * Math.abs(value) / most;
    return [element("span", { title }, label),
      svgElement("svg", { class: `bar ${kind}`, viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
        svgElement("line", { x1: 50, x2: 50, y1: 0, y2: 8 }),
        svgElement("rect", { x: value < 0 ? 50 - width : 50, y: 1, width, height: 6 })),
      element("span", { class: "number" }, numeral(value))];
  };
  const bars = element("div", { class: "against" }, ...rows.flatMap(line));
  const reveal = truth ? button("What is the truth?", () => {
    bars.append(...line(["Truth", truth.value, truth.words, "truth"]));
    reveal.replaceWith(element("p", { class: "hint", id: "truth" }, truth.words));
  }, { id: "reveal" }) : null;
  return element("div", {}, bars, plain ? element("p", { class: "hint" }, plain.words) : "", reveal ?? "");
}

/** By adjustment set, and as a distribution. */
function evidence(size) {
  const row = (title, share, ...effect) => element("tr", {}, element("th", { scope: "row" }, title),
    element("td", {}, countedShare(share)), element("td", {}, ...effect));
  const { probability_not_estimated: without, by_adjustment_set: all } = size;
  const sets = all.slice(0, MAX_LISTED);
  const listed = sets.reduce((sum, set) => sum + set.frequency, 0);
  // Every graph is in one of the rows, so that the shares add up to all of them.
  const rows = [
    ...sets.map((set) => row(set.adjustment_set.join(", ") || "nothing", set.frequency, numeral(set.effect), element("br"),
      element("small", { class: "number" }, `${numeral(set.low)} to ${numeral(set.high)}`))),
    all.length > MAX_LISTED ? row(`${all.length - MAX_LISTED} more sets`, Math.max(1 - listed - without, 0), "") : null,
    without ? row("–", without, "no estimate") : null,
  ].filter(Boolean);
  const head = element("tr", {}, ...["Adjusted for", "Graphs", "Effect, 90% interval"].map((title) =>
    element("th", { scope: "col" }, title)));
  return [
    element("p", {}, size.sentence),
    sets.length ? effectPlot(size) : null,
    sets.length ? element("table", { class: "levels" }, element("thead", {}, head), element("tbody", {}, ...rows)) : null,
    ...size.lines.slice(1).map((sentence) => element("p", {}, sentence)),
  ];
}

/** The distribution of the effect, one layer per adjustment set, the interval below. */
function effectPlot({ plot, low, high, median, outcome, change, ...size }) {
  const { points, layers } = plot;
  const total = points.map((_, place) => layers.reduce((sum, layer) => sum + layer.densities[place], 0));
  const top = Math.max(...total) || 1;
  const [from, to] = [points[0], points.at(-1)];
  const across = (value) => SIDE + ((value - from) / (to - from)) * (WIDTH - 2 * SIDE);
  const up = (density) => (HEIGHT - BOTTOM - 8) * (1 - density / top) + 4;
  const floor = up(0);
  const picture = svgElement("svg", { class: "plot effect-plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `The effect on ${outcome} ${change}: ${numeral(median)}, with 90% between ${numeral(low)} and ${numeral(high)}` +
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
