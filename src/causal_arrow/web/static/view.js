// @ts-check
// The session on the screen: the graph and its lists in step, what is selected, what is marked.

import * as api from "./api.js";
import { ColumnsPanel } from "./columns.js";
import { CompareView } from "./compare.js";
import { button, byId, element } from "./dom.js";
import { QuestionPanel } from "./effects.js";
import { EvidencePanel } from "./evidence.js";
import { GraphPicture } from "./graph.js";
import { around, boxes, collapsed, edgesOnPaths, grouped, likeNames, partOf } from "./logic.js";
import { aside, careful, say } from "./notices.js";
import * as panels from "./panels.js";
import { SeriesPanel } from "./series.js";
import { recall, remember, state } from "./state.js";

/** What a person can do to the graph: `connect` brings it, because it needs this module to show what came of it.
 * @type {any} */
let on = {};
export const connect = (/** @type {any} */ handlers) => { on = handlers; };

/** @type {any} */
export let picture = null;
/** @type {any} */
let drawn = null; // the graph as it is drawn: a part of it, or with groups as single boxes
/** @type {ReturnType<typeof setTimeout> | undefined} */
let layoutTimer;

const columnNames = () => (state.facts?.table.columns ?? []).map((/** @type {any} */ { name }) => name);
export const columns = new ColumnsPanel(careful((/** @type {any} */ choices) => on.read(choices)));
export const pair = new QuestionPanel(
  () => ({ key: state.key, columns: state.facts?.table.columns ?? [], variables: state.graph?.variables ?? [] }),
  (/** @type {any} */ about) => { state.answered = about; markAnswer(); });
export const compare = new CompareView(() => state.key, careful);
export const series = new SeriesPanel(() => ({ key: state.key, columns: columnNames() }), careful, say);
export const evidence = new EvidencePanel(() => ({ key: state.key, graph: state.graph, pair: pair.pair }), careful,
  { selectEdge: careful((/** @type {string[]} */ ...edge) => selectEdge(...edge)), resample: () => on.resample(),
    learned: (/** @type {any} */ graph) => on.learned(graph) });

/** Close what is open about a session. */
export function leave() {
  byId("graph").classList.add("unplaced");
  if (compare.isOpen) compare.close();
  if (series.isOpen) series.close();
}

export const forgetPlaces = (/** @type {any[]} */ kept) => picture?.forget(kept);

const OF_A_GRAPH = ["graph-area", "question", "edges-panel", "statements-panel", "tiers-panel", "selection", "downloads",
  "evidence-panel"];

export function showWork() {
  const { facts } = state;
  byId("start").hidden = true;
  byId("work").hidden = compare.isOpen || series.isOpen;
  byId("actions").hidden = false;
  document.title = `${facts.table.name} – Causal Arrow`;
  panels.showTrust(facts.table, careful(on.accept));
  columns.show(facts, state.server);
  series.show();
  compare.setKept(facts.kept);
  byId("open-compare").hidden = !facts.graph;
  for (const id of OF_A_GRAPH) byId(id).hidden = !facts.graph;
  byId("columns-panel").open ||= !facts.graph && !facts.table.usable;
}

/** @param {any} graph @param {boolean} first whether it is that of another reading */
export function showGraph(graph, first = false) {
  state.graph = graph;
  picture ??= new GraphPicture(byId("graph"), { onEdge: careful(selectEdge), onNode: careful(clickVariable),
    onNothing: selectNothing, onDrag: keepPlaces });
  if (first) {
    picture.forget(recall("places") ?? []);
    state.groups = (recall("groups") ?? []).filter((/** @type {any} */ group) => group.members.every((/** @type {string} */ name) => graph.variables.includes(name)));
    byId("group-names").replaceChildren(...likeNames(graph.variables).map((value) => element("option", { value })));
  }
  drawGraph();
  showEdges();
  panels.showHidden(graph, careful(selectEdge));
  panels.showStatements(graph, careful(on.argue), recall("ignored") ?? [], ignore);
  panels.showTiers(graph, careful(on.argue));
  panels.showRemarks(graph);
  if (first) pair.show(graph.variables);
  panels.showChoices(graph, !state.wish);
  showHistory();
  evidence.outdated();
  clearTimeout(layoutTimer);
  layoutTimer = setTimeout(() => aside(() => arrange(first)), first ? 0 : 300);
}

export const showEdges = () => panels.showEdges(state.graph, state.selected, state.stability, careful(selectEdge));

/** Draw what is asked for: the variables near the one in focus, those with edges, or all; the marks of the answer; and what
 * is chosen. */
function drawGraph() {
  const whole = collapsed(state.graph, state.groups);
  const linked = [...whole.edges.flatMap((/** @type {any} */ { source, target }) => [source, target]),
    ...whole.hidden_causes.flatMap((/** @type {any} */ { variables }) => variables)];
  const focused = state.focused && boxes(state.groups)(state.focused);
  if (focused) drawn = partOf(whole, around(whole.edges, focused, Number(byId("focus").value)));
  else drawn = byId("alone").checked ? whole : partOf(whole, new Set(linked));
  picture.show(drawn);
  showGroups();
  markAnswer();
  showSelected();
}

/** Mark what is chosen, or the box that it is drawn in. */
function showSelected() {
  const box = boxes(state.groups);
  const { name, source = name, target } = state.selected ?? {};
  picture?.select(source && box(source), target && box(target));
}

/** Suggest no longer that nothing causes these. @param {string[]} names */
function ignore(names) {
  remember("ignored", [...(recall("ignored") ?? []), ...names]);
  byId("suggestions").replaceChildren();
}

/** Color what the answer is about: the causal paths of the graph that is shown, and what was adjusted for. */
export function markAnswer() {
  const { answered, graph } = state;
  const edges = answered?.cause && graph ? edgesOnPaths(graph.edges, answered.cause, answered.effect) : [];
  const box = boxes(state.groups);
  const { cause, effect, adjusted = [] } = answered ?? pair.pair;
  picture?.mark({ cause: cause && box(cause), effect: effect && box(effect), adjusted: adjusted.map(box),
    edges: edges.map(({ source, target }) => ({ source: box(source), target: box(target) })) });
  byId("legend-path").hidden = !edges.length;
  byId("legend-adjusted").hidden = !answered?.adjusted.length;
}

/** @param {Map<string, any>} moved */
export function keepPlaces(moved) {
  if (state.focused) return; // a part has places of its own
  remember("places", [...moved]);
  byId("tidy").hidden = !moved.size;
}

export function showHistory() {
  byId("undo").disabled = !state.undoing.past.length;
  byId("redo").disabled = !state.undoing.future.length;
}

/** @param {boolean} first */
export async function arrange(first) {
  const mine = drawn;
  const edges = mine.edges.map((/** @type {any} */ { source, target }) => [source, target]);
  const places = await api.places(state.key, { names: mine.variables, edges, ...picture.canvas });
  if (drawn === mine) picture.place(places, first);
  byId("tidy").hidden = !picture.moved.size;
}

export async function showStability() {
  const mine = state.graph;
  const now = await api.stability(state.key);
  if (state.graph !== mine || now.state !== "done") return;
  state.stability = now.edges;
  showEdges();
}

// Selecting

/** Choose the edge between two variables, once the server has answered: what it refuses is not chosen.
 * @param {string[]} edge */
export async function selectEdge(...edge) {
  const [source, target] = edge;
  const mine = state.wanted = { source, target };
  const details = await api.edge(state.key, source, target);
  if (state.wanted !== mine) return;
  state.selected = mine;
  showSelected();
  showEdges();
  if (!pair.asked) pair.choose({ cause: source, effect: target });
  panels.showEdge(details, on);
}

/** The first variable that is clicked is a cause, the second its effect: then the question is asked.
 * @param {string} name */
async function clickVariable(name) {
  if (drawn.groups.has(name)) return expand(name);
  selectVariable(name);
  if (pair.click(name)) await pair.ask();
}

/** @param {string} name */
export function selectVariable(name) {
  state.wanted = null;
  state.selected = { name };
  showSelected();
  panels.showVariable(name, state.graph, on);
  byId("focus-control").hidden = false;
}

export function selectNothing() {
  state.selected = state.wanted = null;
  showSelected();
  showEdges();
  panels.showNothing();
  if (!pair.asked) pair.choose({ cause: "", effect: "" });
  if (state.focused) aside(() => focusOn(0));
  byId("focus-control").hidden = true;
}

/** Draw again, in places for what is drawn. */
export async function redraw() {
  drawGraph();
  await arrange(true);
}

/** Show only what is within some steps of the chosen variable; everything for 0. @param {number} steps */
export async function focusOn(steps) {
  state.focused = steps && state.selected?.name ? state.selected.name : null;
  byId("focus").value = state.focused ? String(steps) : "0";
  picture.forget(state.focused ? [] : recall("places") ?? []);
  await redraw();
}

/** Draw the variables whose names match as one box. @param {string} pattern */
export async function collapse(pattern) {
  const group = grouped(pattern, state.graph.variables, state.groups);
  if (!group) throw new api.RequestError("Fewer than two ungrouped variables have such a name: separate names with commas; * stands for any letters.", 400);
  byId("group-pattern").value = "";
  await regroup([...state.groups, group]);
}

const expand = (/** @type {string} */ name) => regroup(state.groups.filter((group) => group.name !== name));

/** @param {import("./logic.js").Group[]} groups */
async function regroup(groups) {
  state.groups = groups;
  remember("groups", groups);
  if (state.focused) await focusOn(0);
  else await redraw();
}

function showGroups() {
  byId("groups").replaceChildren(...state.groups.map(({ name }) => element("li", {}, element("span", {}, name),
    button("Expand", careful(() => expand(name)), { "aria-label": `Expand ${name}` }))));
  byId("legend-group").hidden = !state.groups.length;
}

/** Point at the variables whose names contain a text. @param {string} text @returns {string[]} */
export function find(text) {
  const wanted = text.trim().toLowerCase();
  const found = state.graph.variables.filter((/** @type {string} */ name) => wanted && name.toLowerCase().includes(wanted));
  picture.point(found.map(boxes(state.groups)));
  return found;
}

/** Choose a variable and bring it into the middle. @param {string} name */
export async function goTo(name) {
  picture.point([]); // nothing stays faded
  if (state.focused) await focusOn(0);
  const box = boxes(state.groups)(name);
  if (box !== name) await expand(box);
  selectVariable(name);
  picture.flyTo(name);
}

export async function refreshSelection() {
  const { selected, graph } = state;
  const there = (/** @type {string} */ name) => graph.variables.includes(name);
  if (!selected) return;
  if (!(selected.name ? [selected.name] : [selected.source, selected.target]).every(there)) selectNothing();
  else if (selected.name) panels.showVariable(selected.name, graph, on);
  else {
    const details = await api.edge(state.key, selected.source, selected.target);
    if (state.selected === selected) panels.showEdge(details, on);
  }
}
