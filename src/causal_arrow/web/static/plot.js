// @ts-check
// The observations of two variables: a scatter plot, or a table of how often their levels meet.

import { element, svgElement } from "./dom.js";
import { onScale, ticksOf } from "./logic.js";

const WIDTH = 320, HEIGHT = 210, LEFT = 46, BOTTOM = 34, EDGE = 8, MOST_TICKS = 6;

export function plotOf(plot) {
  if (plot.counts) return levelTable(plot);
  return plot.summaries.length ? element("div", {}, scatter(plot), summaryTable(plot)) : scatter(plot);
}

function scatter(plot) {
  const across = scale(plot.points.map((point) => point[0]), LEFT, WIDTH - EDGE, plot.x);
  const up = scale(plot.points.map((point) => point[1]), HEIGHT - BOTTOM, EDGE, plot.y);
  const picture = svgElement("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `Scatter plot of ${plot.y.name} against ${plot.x.name}` });
  picture.append(
    svgElement("line", { x1: LEFT, x2: WIDTH - EDGE, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
    svgElement("line", { x1: LEFT, x2: LEFT, y1: EDGE, y2: HEIGHT - BOTTOM }),
  );
  plot.points.forEach(([x, y], number) => {
    picture.append(svgElement("circle", { r: 2.4, cx: across.place(x, number), cy: up.place(y, number * 7) }));
  });
  across.ticks.forEach(([value, label], number) => picture.append(svgElement("text", { x: across.place(value, null),
    y: HEIGHT - BOTTOM + 13, "text-anchor": plot.x.levels.length ? "middle" : ["start", "middle", "end"][number && (number < across.ticks.length - 1 ? 1 : 2)] }, label)));
  up.ticks.forEach(([value, label]) => picture.append(svgElement("text", { x: LEFT - 4, y: up.place(value, null) + 4,
    "text-anchor": "end" }, label)));
  picture.append(
    svgElement("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, named(plot.x, 40)),
    svgElement("text", { transform: `translate(11 ${(HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" },
      named(plot.y, 24)),
  );
  const note = plot.shown < plot.observations ? `${plot.shown} of ${plot.observations} observations.` : "";
  return element("div", {}, picture, note && element("small", { class: "number" }, note));
}

const named = ({ name, log }, most) => short(name, most) + (log ? " (log scale)" : "");

/** Where values go on the page. Values with levels are spread a little, so that equal ones do not hide each other. */
function scale(values, from, to, { levels, log }) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (levels.length) [low, high] = [-0.4, levels.length - 0.6];
  const start = onScale(low, log);
  const span = onScale(high, log) - start || 1;
  const place = (value, number) => {
    const spread = levels.length && number !== null ? (((number * 0.618) % 1) - 0.5) * 0.4 : 0;
    return from + ((onScale(value, log) + spread - start) / span) * (to - from);
  };
  const marked = levels.length <= MOST_TICKS ? levels.map((_, place) => place) : [0, levels.length - 1];
  const ticks = levels.length ? marked.map((place) => [place, short(levels[place], 8)])
    : ticksOf(low, high, log).map((value) => [value, numeral(value)]);
  return { place, ticks };
}

/** Three digits that count; a dash for a number that is not known, such as an interval without bounds. */
export function numeral(value) {
  if (value === null) return "–";
  const size = Math.abs(value);
  const text = size >= 1e7 || (size > 0 && size < 1e-4) ? Number(value.toPrecision(3)).toExponential()
    : value.toLocaleString("en", { maximumSignificantDigits: 3 });
  return text.replaceAll("-", "−");
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function table(headings, rows) {
  return element("table", { class: "levels" },
    element("thead", {}, element("tr", {}, ...headings.map((heading) => element("th", { scope: "col" }, heading)))),
    element("tbody", {}, ...rows.map(([level, ...cells]) => element("tr", {}, element("th", { scope: "row" }, level),
      ...cells.map((cell) => element("td", {}, cell))))));
}

/** How often levels meet, and which share of each column that is. */
function levelTable(plot) {
  const totals = plot.x.levels.map((_, place) => plot.counts.reduce((sum, row) => sum + row[place], 0));
  const cell = (count, place) => totals[place] ? `${count} (${Math.round((100 * count) / totals[place])}%)` : String(count);
  return table([`${plot.y.name} \\ ${plot.x.name}`, ...plot.x.levels],
    plot.counts.map((counts, place) => [plot.y.levels[place], ...counts.map(cell)]));
}

/** The number at each level of the other variable. */
function summaryTable(plot) {
  const [levels, measured] = plot.x.levels.length ? [plot.x, plot.y] : [plot.y, plot.x];
  const shown = (value) => (value === null ? "–" : numeral(value));
  return table([levels.name, "count", `mean of ${measured.name}`, "std. deviation"],
    plot.summaries.map((each) => [each.level, String(each.count), shown(each.mean), shown(each.deviation)]));
}
