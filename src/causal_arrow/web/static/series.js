// The table read as a time series: its graphs as pictures, its edges with their lags, and effects over time.

import * as api from "./api.js";
import { byId, element, fill } from "./dom.js";

const BETWEEN_QUESTIONS = 300; // milliseconds

/** An image of SVG text. As an image it can load and run nothing. */
function picture(svg, label) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  return element("img", { src: address, alt: label, onload: () => URL.revokeObjectURL(address) });
}

const options = (names, first) =>
  [...(first ? [element("option", { value: "" }, first)] : []), ...names.map((name) => element("option", { value: name }, name))];

export class SeriesPanel {
  /** `about` gives the session and the names of its columns, `careful` wraps listeners, `say` says what happens. */
  constructor(about, careful, say) {
    this.about = about;
    this.say = say;
    this.shown = null; // the session whose columns the form has
    byId("series-read").addEventListener("click", careful(() => this.read()));
    byId("series-ask").addEventListener("click", careful(() => this.ask()));
    byId("close-series").addEventListener("click", () => this.close());
  }

  get isOpen() {
    return !byId("series").hidden;
  }

  /** Offer the columns of a table that was opened. */
  show() {
    const { key, columns } = this.about();
    if (this.shown === key) return;
    this.shown = key;
    byId("series-time").replaceChildren(...options(columns, "rows are in order"));
    byId("series-unit").replaceChildren(...options(columns, "there is one series"));
    byId("series-difference").replaceChildren(...options(columns));
  }

  close() {
    byId("series").hidden = true;
    byId("work").hidden = false;
  }

  choices() {
    const lags = byId("series-lags").value, season = byId("series-season").value;
    const chosen = [...byId("series-difference").selectedOptions].map((option) => option.value);
    return {
      lags: lags ? Number(lags) : "auto",
      time: byId("series-time").value || null,
      unit: byId("series-unit").value || null,
      difference: chosen.length ? chosen : false,
      season: season ? Number(season) : null,
      resample: byId("series-resample").value.trim() || null,
      contemporaneous: byId("series-now").checked,
    };
  }

  async read() {
    const { key } = this.about();
    let now = await api.startSeries(key, this.choices());
    this.say("The network reads the series …");
    while (this.about().key === key && ["waiting", "running"].includes(now.state)) {
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_QUESTIONS));
      now = await api.series(key);
    }
    if (this.about().key !== key) return;
    this.say("");
    if (now.message) throw new api.RequestError(now.message, 400);
    if (now.graph) this.draw(now.graph);
  }

  draw(graph) {
    byId("series-title").textContent = graph.title;
    fill(byId("series-summary"), picture(graph.summary, "The summary graph, as in the table of edges."));
    fill(byId("series-window"), picture(graph.window, "The window graph, as in the table of edges."));
    const row = (tag, cells) => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
    fill(byId("series-edges"), graph.edges.length
      ? element("table", {}, element("thead", {}, row("th", graph.columns)),
        element("tbody", {}, ...graph.edges.map((cells) => row("td", cells))))
      : element("p", {}, "No variable acts on another with enough probability to show an edge."));
    fill(byId("series-words"), ...graph.sentences.map((sentence) => element("li", {}, sentence)),
      ...graph.warnings.map((warning) => element("li", {}, element("strong", {}, "Careful: "), warning)));
    for (const id of ["series-cause", "series-effect"]) byId(id).replaceChildren(...options(graph.variables));
    if (graph.variables.length > 1) byId("series-effect").selectedIndex = 1;
    if (graph.edges.length) {
      byId("series-cause").value = graph.edges[0][0];
      byId("series-effect").value = graph.edges[0][2];
    }
    fill(byId("series-curve"));
    byId("work").hidden = true;
    byId("series").hidden = false;
    byId("series-title").focus();
  }

  async ask() {
    const { key } = this.about();
    const asked = { cause: byId("series-cause").value, effect: byId("series-effect").value, kind: byId("series-kind").value };
    const { words, picture: curve } = await api.seriesResponse(key, asked);
    fill(byId("series-curve"), picture(curve, `Effect of ${asked.cause} on ${asked.effect} over time`),
      element("pre", {}, words));
  }
}
