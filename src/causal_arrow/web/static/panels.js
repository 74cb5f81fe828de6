// The parts of the page beside the graph. Each function fills a place in the document from what the server said.

import { inTier, statements, tierOf, toggled } from "./argument.js";
import { button, byId, element, percent } from "./dom.js";
import { plotOf } from "./plot.js";

const arrow = (source, target) => `${source} → ${target}`;

// The trust card

export function showTrust(table, onOffer) {
  byId("table-name").textContent = table.name;
  byId("trust-table").textContent = table.size;
  byId("trust-against").textContent = table.against;
  byId("trust-assumed").textContent = table.assumed;
  byId("findings-box").hidden = !table.findings.length;
  byId("findings-box").open = !table.usable;
  byId("findings-title").textContent = `Everything that was noticed (${table.findings.length})`;
  byId("findings").replaceChildren(...table.findings.map((finding) => element("li", {},
    element("span", { class: `severity-${finding.severity}` }, finding.severity), `: ${finding.message} `,
    ...finding.offers.map((offer) => button(offer.label, () => onOffer(offer))))));
}

// Lists

export function showEdges(graph, selected, onEdge) {
  byId("edge-count").textContent = `(${graph.edges.length})`;
  byId("edge-list").replaceChildren(...graph.edges.map((edge) => {
    const name = arrow(edge.source, edge.target);
    const chosen = selected?.source === edge.source && selected?.target === edge.target;
    const facts = edge.required ? "required" : `${percent(edge.adjacency_probability)}, ${edge.direction}`;
    return element("li", {}, element("button", { type: "button", "aria-pressed": chosen ? "true" : "false",
      "data-source": edge.source, "data-target": edge.target, onclick: () => onEdge(edge.source, edge.target) },
    element("span", {}, name), element("span", { class: "number" }, facts)));
  }));
}

export function showRemarks(graph) {
  byId("remarks").replaceChildren(...graph.remarks.map((sentence) => element("li", {}, sentence)));
  byId("legend-hidden").hidden = !graph.hidden_causes.length;
}

export function showStatements(argument, onArgue) {
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

// Columns

/** Every column that the table has: those that can be used, and those that were left out because they cannot. */
export function showColumns(facts) {
  const { table, choices } = facts;
  const known = new Set(table.columns.map((column) => column.name));
  const others = choices.drop.filter((name) => !known.has(name)).map((name) => ({ name, kind: "left out" }));
  byId("columns").replaceChildren(...[...table.columns, ...others].map(({ name, kind }) => element("li", {},
    element("label", {},
      element("input", { type: "checkbox", "data-column": name, checked: !choices.drop.includes(name) }), ` ${name}`),
    element("span", { class: "number" }, kind))));
  byId("missing").value = choices.missing;
}

export const columnsLeftOut = () =>
  [...byId("columns").querySelectorAll("input:not(:checked)")].map((box) => box.dataset.column);

export function fillChoices(variables) {
  for (const [id, place] of [["cause", 0], ["effect", 1]]) {
    const before = byId(id).value;
    byId(id).replaceChildren(...variables.map((name) => element("option", { value: name }, name)));
    byId(id).value = variables.includes(before) ? before : variables[place] ?? "";
  }
}

// What is selected

export function showNothing() {
  byId("selection").replaceChildren(
    element("p", { class: "hint" }, "Choose an edge or a variable, in the graph or in the lists below."));
}

export function showEdge(details, actions) {
  const { source, target } = details;
  const said = actions.hasStatement(source, target);
  byId("selection").replaceChildren(
    element("h3", {}, arrow(source, target)),
    element("p", {}, details.words),
    element("div", { class: "bars" },
      ...bar(arrow(source, target), details.probability),
      ...bar(arrow(target, source), details.reversed_probability),
      ...bar("no edge", details.no_edge_probability)),
    element("ul", {}, ...details.sentences.map((sentence) => element("li", {}, sentence))),
    element("div", { class: "row" },
      button("Require", () => actions.require(source, target), { "aria-label": `Require ${arrow(source, target)}` }),
      button("Forbid", () => actions.forbid(source, target), { "aria-label": `Forbid ${arrow(source, target)}` }),
      button("Reverse", () => actions.reverse(source, target), { "aria-label": `Require ${arrow(target, source)}` }),
      said ? button("Take back", () => actions.forget(source, target)) : null),
    plotOf(details.plot));
}

function bar(label, probability) {
  return [element("span", {}, label), element("meter", { min: 0, max: 1, value: probability, "aria-label": label }),
    element("span", { class: "number" }, percent(probability))];
}

export function showVariable(name, graph, actions) {
  const causes = graph.edges.filter((edge) => edge.target === name);
  const effects = graph.edges.filter((edge) => edge.source === name);
  const list = (title, edges, of) => element("p", {},
    `${title}: `, edges.length ? edges.map(of).join(", ") : "none in this graph");
  const { knowledge } = graph.argument;
  const toggle = (kind, label) => button(label, () => actions.argue(toggled(graph.argument, kind, name)),
    { "aria-pressed": knowledge[kind].includes(name) ? "true" : "false" });
  byId("selection").replaceChildren(
    element("h3", {}, name),
    list("Causes", causes, (edge) => edge.source),
    list("Effects", effects, (edge) => edge.target),
    element("div", { class: "row" },
      toggle("roots", knowledge.roots.includes(name) ? "It may have causes here" : "Nothing here causes it"),
      toggle("leaves", knowledge.leaves.includes(name) ? "It may cause something here" : "It causes nothing here"),
      button("Leave out this column", () => actions.leaveOut(name))));
}

// Cause and effect

export function showAnswerAboutPair(answer) {
  const lines = (title, entries, words) => entries.length
    ? [element("p", {}, title), element("ul", {}, ...entries.map((entry) => element("li", {}, words(entry))))] : [];
  byId("pair-answer").replaceChildren(
    element("p", {}, answer.words),
    element("p", {}, `The other way round: ${percent(answer.reversed_probability)}. ` +
      `Counted over ${answer.graphs} graphs drawn from the network's distribution.`),
    ...lines("Shortest ways, and the share of graphs with them:", answer.paths,
      (path) => `${path.variables.join(" → ")} (${percent(path.share)})`),
    ...lines("To measure the effect, adjust for (share of the graphs with an effect):", answer.adjustment_sets,
      (set) => `${set.variables.length ? set.variables.join(", ") : "nothing"} (${percent(set.share)})`));
}
