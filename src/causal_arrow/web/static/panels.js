// @ts-check
// The panels next to the graph. Each function fills one place of the document from what the server said.

import { firstTier, inTier, statements, tierOf, toggled, withRoots } from "./argument.js";
import { button, byId, element, fill, percent } from "./dom.js";
import { inHundredths, sorted } from "./logic.js";
import { plotOf } from "./plot.js";

const MAX_REMARK = 120;

const arrow = (source, target) => `${source} → ${target}`;

// The trust card

export function showTrust(table, onOffer) {
  const offersOf = (finding) => finding.offers.map((offer) => button(offer.label, () => onOffer(offer)));
  byId("table-name").textContent = table.name;
  byId("trust-table").textContent = table.size;
  byId("trust-against").textContent = table.against;
  byId("trust-assumed").textContent = `Assumed: ${table.assumed}`;
  byId("findings-box").open = !table.usable;
  byId("findings-title").textContent = table.findings.length ? `What was noticed and assumed (${table.findings.length})` : "What was assumed";
  byId("findings").replaceChildren(...table.findings.map((finding) => element("li", {},
    element("span", { class: `severity-${finding.severity}` }, finding.severity), `: ${finding.message} `,
    ...offersOf(finding))));
}

// Lists

/** Columns of the edge list: title, key to sort by, and the text of a row. */
const COLUMNS = [
  { title: "Edge", key: "name" },
  { title: "Prob.", words: "probability", key: "probability", text: (row) => percent(row.probability) },
  { title: "Adjacent", key: "adjacency", text: (row) => percent(row.adjacency) },
  { title: "Direction", key: "sureness", text: (row) => row.direction },
  { title: "Stable", key: "stability", text: (row) => (row.stability < 0 ? "" : percent(row.stability)) },
];
let order = { key: "probability", down: true };

export function showEdges(graph, selected, stability, onEdge) {
  byId("edge-count").textContent = `(${graph.edges.length})`;
  const stable = new Map((stability ?? []).map((edge) => [arrow(edge.source, edge.target), edge.frequency]));
  const rows = graph.edges.map((edge) => ({
    edge, name: arrow(edge.source, edge.target), probability: edge.probability, adjacency: edge.adjacency_probability,
    sureness: edge.probability / (edge.adjacency_probability || 1), stability: stable.get(arrow(edge.source, edge.target)) ?? -1,
    direction: edge.required ? "required" : edge.decided ?? edge.direction,
  }));
  const columns = COLUMNS.filter(({ key }) => key !== "stability" || stable.size);
  const sortBy = ({ key }) => {
    order = { key, down: order.key === key ? !order.down : key !== "name" };
    showEdges(graph, selected, stability, onEdge);
    [...byId("edge-box").querySelectorAll("thead button")].find((each) => each.dataset.key === key)?.focus();
  };
  const head = columns.map((column) => element("th", { scope: "col",
    "aria-sort": order.key === column.key ? (order.down ? "descending" : "ascending") : "none" },
  button(column.title, () => sortBy(column), { "data-key": column.key, title: `Sort by ${column.words ?? column.title.toLowerCase()}` })));
  const body = sorted(rows, order.key, order.down).map((row) => {
    const { source, target } = row.edge;
    const chosen = selected?.source === source && selected?.target === target;
    return element("tr", {}, element("th", { scope: "row" }, element("button", { type: "button",
      "aria-pressed": chosen ? "true" : "false", "data-source": source, "data-target": target,
      onclick: () => onEdge(source, target) }, row.name)),
    ...columns.slice(1).map(({ text }) => element("td", {}, text(row))));
  });
  byId("edge-box").replaceChildren(element("table", { class: "edges" }, element("thead", {}, element("tr", {}, ...head)),
    element("tbody", { id: "edge-list" }, ...body)));
}

/** Set the controls over the graph to its argument. */
export function showChoices(graph, settled) {
  const { threshold, decode, directions, hidden, hidden_threshold: hiddenThreshold } = graph.argument;
  const put = (id, value) => {
    byId(id).value = value;
    byId(`${id}-value`).textContent = value.toFixed(2);
  };
  if (settled && decode === "map") put("threshold", threshold); // the other rules have one of their own; this one waits
  if (settled) put("hidden-threshold", hiddenThreshold);
  byId("rule").value = decode;
  byId("directions").value = directions;
  byId("hidden-causes").value = hidden;
  byId("threshold").disabled = decode !== "map";
  byId("hidden-threshold").disabled = hidden === "none";
  byId("hidden-control").hidden = !graph.judges_hidden_causes;
}

export function showHidden(graph, onPair) {
  byId("hidden-panel").hidden = !graph.hidden_causes.length;
  byId("hidden-count").textContent = `(${graph.hidden_causes.length})`;
  byId("hidden-list").replaceChildren(...sorted(graph.hidden_causes, "probability", true).map(({ variables, probability }) =>
    element("li", {}, button(variables.join(" ↔ "), () => onPair(...variables)), element("span", { class: "number" }, percent(probability)))));
}

/** Short remarks stand under the graph, long lists of names with what was noticed. */
export function showRemarks(graph) {
  const items = (remarks) => remarks.map((sentence) => element("li", {}, sentence));
  const isShort = (sentence) => sentence.length <= MAX_REMARK;
  byId("remarks").replaceChildren(...items(graph.remarks.filter(isShort)));
  byId("long-remarks").replaceChildren(...items(graph.remarks.filter((sentence) => !isShort(sentence))));
  byId("legend-hidden").hidden = !graph.hidden_causes.length;
}

export function showStatements(graph, onArgue, ignored, onIgnore) {
  const { argument, suggestion, variables } = graph;
  const shown = suggestion && suggestion.names.some((name) => !ignored.includes(name)) ? suggestion : null;
  byId("suggestions").hidden = !shown;
  byId("suggestions").replaceChildren(...(shown ? [shown.words,
    button("Nothing causes them", () => onArgue(shown.kind === "roots" ? withRoots(argument, shown.names)
      : firstTier(argument, shown.names, variables))),
    button("Ignore", () => onIgnore(shown.names))] : []));
  const all = statements(argument);
  byId("statement-count").textContent = all.length ? `(${all.length})` : "";
  byId("statement-list").replaceChildren(...all.map(([words, lacking]) => element("li", {},
    element("span", {}, words), button("Remove", () => onArgue(lacking), { "aria-label": `Remove: ${words}` }))));
  if (!all.length) byId("statement-list").append(element("li", { class: "hint" }, "Nothing yet."));
}

// Tiers

export function showTiers(graph, onArgue) {
  const { argument, variables } = graph;
  const count = Math.max(argument.knowledge.tiers.length + 1, 2);
  byId("tier-number").replaceChildren(...Array.from({ length: count }, (_, index) =>
    element("option", { value: index }, `tier ${index + 1}`)), element("option", { value: "" }, "no tier"));
  const put = (name, tier) => onArgue(inTier(argument, name, tier));
  const box = (title, tier) => {
    const place = element("div", { class: "tier", role: "group", "aria-label": title,
      ondragover: (event) => { event.preventDefault(); place.classList.add("over"); },
      ondragleave: () => place.classList.remove("over"),
      ondrop: (event) => {
        event.preventDefault();
        event.stopPropagation();
        const name = event.dataTransfer.getData("text/plain");
        if (variables.includes(name)) put(name, tier);
      } },
    element("h4", {}, title),
    ...variables.filter((name) => tierOf(argument, name) === tier).map((name) => chip(name, tier, count, put)));
    return place;
  };
  byId("tiers").replaceChildren(
    ...Array.from({ length: count }, (_, tier) => box(`Tier ${tier + 1}`, tier)), box("No tier", null));
}

function chip(name, tier, count, put) {
  const choice = element("select", { "aria-label": `Tier of ${name}`,
    onchange: (event) => put(name, event.target.value === "" ? null : Number(event.target.value)) },
  element("option", { value: "" }, "–"),
  ...Array.from({ length: count }, (_, place) => element("option", { value: place }, String(place + 1))));
  choice.value = tier === null ? "" : String(tier);
  return element("div", { class: "chip", draggable: "true",
    ondragstart: (event) => event.dataTransfer.setData("text/plain", name) }, name, choice);
}

// What is selected

export function showNothing() {
  byId("selection").replaceChildren(
    element("p", { class: "hint" }, "Choose an edge or a variable, in the graph or in the lists below."));
}

export function showEdge(details, actions) {
  const { source, target, hidden_cause_probability: hidden } = details;
  const said = actions.hasStatement(source, target);
  const shares = [details.probability, details.reversed_probability, details.no_edge_probability];
  const words = inHundredths(shares);
  fill(byId("selection"),
    element("h3", {}, arrow(source, target)),
    element("p", {}, details.words),
    element("div", { class: "bars" }, ...[arrow(source, target), arrow(target, source), "no edge"].flatMap((label, index) =>
      bar(label, shares[index], words[index]))),
    hidden === null ? null : element("div", { class: "bars apart" }, ...bar("besides: a hidden common cause", hidden, percent(hidden))),
    element("ul", {}, ...details.sentences.map((sentence) => element("li", {}, sentence))),
    element("div", { class: "row" },
      button("Require", () => actions.require(source, target), { "aria-label": `Require ${arrow(source, target)}` }),
      button("Forbid", () => actions.forbid(source, target), { "aria-label": `Forbid ${arrow(source, target)}` }),
      button("Reverse", () => actions.reverse(source, target), { "aria-label": `Reverse: require ${arrow(target, source)}` }),
      said ? button("Take back", () => actions.forget(source, target)) : null,
      hidden === null ? null : hiddenCauseButton(source, target, actions)),
    stabilityOf(details, actions),
    plotOf(details.plot),
    button("How large is the effect?", () => actions.askEffect(source, target)));
}

function hiddenCauseButton(source, target, actions) {
  const said = actions.hasNoHiddenCause(source, target);
  return button(said ? "They may share a hidden cause" : "They share no hidden cause",
    () => actions.noHiddenCause(source, target, !said));
}

/** How often resampled tables show the edge, or a way to find out. */
function stabilityOf({ stability }, actions) {
  if (stability) return element("p", { id: "stability" }, stability.words);
  if (actions.isResampling()) return element("p", { id: "stability", class: "hint" }, "Its stability is being computed.");
  return element("p", { id: "stability" }, button("How stable is it?", actions.resample,
    { title: "The network reads 50 bootstrap resamples" }), " ",
  element("small", { class: "hint" }, "needs the network"));
}

function bar(label, probability, words) {
  return [element("span", {}, label), element("meter", { min: 0, max: 1, value: probability, "aria-label": label }),
    element("span", { class: "number" }, words)];
}

const KIND_SENTENCES = { number: "a number", binary: "yes or no", ordered: "ordered levels",
  category: "unordered levels" };

/** What a column is read as, and whether that was detected. */
export function kindWords(column, choices) {
  const said = Object.hasOwn(choices.kinds, column.name) || Object.hasOwn(choices.ordered, column.name);
  const role = choices.environments === column.name ? ", the environment" : "";
  const levels = column.levels.length ? ` (${column.levels.slice(0, 6).join(", ")}${column.levels.length > 6 ? ", …" : ""})` : "";
  return `${KIND_SENTENCES[column.kind] ?? "nothing"}${levels}${role}, ${said ? "as you chose" : "as detected"}`;
}

export function showVariable(name, graph, actions) {
  const causes = graph.edges.filter((edge) => edge.target === name);
  const effects = graph.edges.filter((edge) => edge.source === name);
  const hidden = sorted(graph.hidden_causes.filter((pair) => pair.variables.includes(name)), "probability", true);
  const list = (title, edges, of) => element("p", {},
    `${title}: `, edges.length ? edges.map(of).join(", ") : "none in this graph");
  const { knowledge } = graph.argument;
  const toggle = (kind, label) => button(label, () => actions.argue(toggled(graph.argument, kind, name)),
    { "aria-pressed": knowledge[kind].includes(name) ? "true" : "false" });
  fill(byId("selection"),
    element("h3", {}, name),
    element("p", {}, `Read as ${actions.kindOf(name)}.`),
    list("Causes", causes, (edge) => edge.source),
    list("Effects", effects, (edge) => edge.target),
    hidden.length ? element("p", {}, "May share a hidden cause with: ",
      hidden.map((pair) => `${pair.variables.find((other) => other !== name)} (${percent(pair.probability)})`).join(", ")) : null,
    element("div", { class: "row" },
      button(`What moves ${name} most?`, () => actions.rank(name)),
      toggle("roots", knowledge.roots.includes(name) ? "It may have causes here" : "Nothing here causes it"),
      toggle("leaves", knowledge.leaves.includes(name) ? "It may cause something here" : "It causes nothing here"),
      toggle("randomized", knowledge.randomized.includes(name) ? "It was not randomized" : "Chance decided on it (a trial)"),
      button("Change its kind", () => actions.changeKind(name)),
      button("Leave out this column", () => actions.leaveOut(name))),
    element("p", { class: "hint" }, "Changing its kind or leaving it out needs the network again."));
}
