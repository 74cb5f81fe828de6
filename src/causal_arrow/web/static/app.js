// The page: opens a table, waits for the network, and keeps graph, lists and server in step.

import * as api from "./api.js";
import { forbidden, forgotten, inTier, isSame, required, withoutHiddenCause } from "./argument.js";
import { canonical, ColumnsPanel } from "./columns.js";
import { CompareView } from "./compare.js";
import { button, byId, element } from "./dom.js";
import { QuestionPanel } from "./effects.js";
import { GraphPicture } from "./graph.js";
import { around, edgesOnPaths, History, matching } from "./logic.js";
import * as panels from "./panels.js";
import { SeriesPanel } from "./series.js";

const SESSION = "session"; // in the address
const ONE_SLIDE = 1000; // milliseconds: moves of the slider that follow each other faster are undone together
const MAX_ARCS_UNASKED = 20; // more hidden causes than this hide the graph
const BETWEEN_QUESTIONS = 250; // milliseconds
const DOWNLOADS = {
  "graph.png": "Picture (PNG)", "graph.svg": "Picture (SVG)", "report.html": "Report (one HTML file)",
  "graph.json": "Everything (JSON)", "edges.csv": "Edges (CSV)", "graph.graphml": "GraphML", "graph.dot": "Graphviz (DOT)",
  "graph.dagitty.txt": "DAGitty", "reproduce.py": "The same in Python",
};

let server = null;
let key = null; // of the session
let facts = null; // the session as the server told it last
let graph = null; // the graph as it is shown
let undoing = null; // the History of what was changed
let focused = null; // the variable whose surroundings alone are shown
let selected = null; // { source, target } for an edge, { name } for a variable
let wanted = null; // the edge that was chosen last, also before the server has answered
let picture = null;
let wish = null; // { argument, before, remember } that the server has not heard yet
let answered = null; // { cause, effect, adjusted } of the answer that is shown
let hiddenShown = null; // "none" or "all" once a person has chosen
let talking = false;
let reading = false; // while the network is waited for
let resampling = false;
let stability = null; // the edges with the share of resampled tables that have them
let layoutTimer = null;
let lastSlide = -Infinity;

// Saying what happens

const say = (words) => { byId("status").textContent = words; };

/** Words that stay, how far it is, and a button to stop it; gives a function to tell how far. */
function sayProgress(place, words, onStop) {
  const bar = element("progress", { max: 1, "aria-label": words });
  const more = element("span", { class: "number", "aria-hidden": "true" });
  byId(place).replaceChildren(words, " ", bar, " ", more, " ", button("Stop", onStop));
  return (share, text) => {
    if (share !== null) bar.value = share;
    more.textContent = text;
  };
}

function complain(error, offers = []) {
  byId("trouble").replaceChildren(error.message, " ",
    ...offers.map((offer) => button(offer.label, careful(() => accept(offer)))));
  byId("trouble").hidden = false;
  say("");
  if (!(error instanceof api.RequestError)) console.error(error);
}

/** Do something that nobody has just asked for, and show what goes wrong in it. */
async function aside(work) {
  try {
    await work();
  } catch (error) {
    complain(error);
  }
}

/** A listener that shows what goes wrong in it, in place of what went wrong before. */
function careful(work) {
  return async (...given) => {
    byId("trouble").hidden = true;
    await aside(() => work(...given));
  };
}

const columns = new ColumnsPanel(careful((choices) => read(choices)));
const pair = new QuestionPanel(
  () => ({ key, columns: facts?.table.columns ?? [], variables: graph?.variables ?? [] }),
  (about) => { answered = about; markAnswer(); });
const compare = new CompareView(() => key, careful);
const series = new SeriesPanel(() => ({ key, columns: (facts?.table.columns ?? []).map(({ name }) => name) }), careful, say);

// Opening a table

const stored = (name) => `causal-arrow-${name}-${key}`;

/** What this browser keeps for a session; nothing where it keeps none. */
function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(stored(name)) ?? "null");
  } catch {
    return null;
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(stored(name), JSON.stringify(value));
  } catch { /* no room: it lasts until the next reload */ }
}

/** Ask before a graph that a person has worked on gives way to another table. */
async function mayReplace(name) {
  if (!graph) return true;
  const dialog = byId("confirm");
  byId("confirm-words").textContent = `Open ${name} in place of ${facts.table.name}? ` +
    "What you know and kept about it stays at its address, which your browser's Back button opens.";
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  return dialog.returnValue === "yes";
}

async function open(opening) {
  say("Reading the table …");
  show(await opening);
  history.pushState(null, "", `#${SESSION}=${key}`);
  await proceed(facts);
}

/** Take over a session. */
function show(opened) {
  leave();
  facts = opened;
  key = opened.session;
  undoing = new History(recall("history") ?? {}, (states) => remember("history", states));
  picture?.forget(recall("places") ?? []);
}

function leave() {
  if (compare.isOpen) compare.close();
  if (series.isOpen) series.close();
  key = facts = graph = selected = wanted = undoing = stability = answered = hiddenShown = wish = null;
  focused = null;
}

async function openFile(file) {
  if (!file) return;
  if (file.size > server.most_bytes) {
    throw new api.RequestError(`The file is larger than the ${server.most_bytes / 2 ** 20} MB that this page takes: ` +
      "leave out observations or columns, or use the command line, which has no such limit.", 413);
  }
  if (await mayReplace(file.name)) await open(api.openFile(file));
}

async function openExample({ name, title, question }) {
  if (!(await mayReplace(title))) return;
  await open(api.openExample(name));
  if (question && graph) {
    pair.choose({ cause: question[0], effect: question[1] });
    await pair.ask();
  }
}

/** Show the session, and let the network read the table if nothing stands in the way. */
async function proceed(now) {
  facts = now;
  showWork();
  if (facts.state === "ready" && facts.table.usable) await read(facts.choices);
  else if (facts.state === "ready") say("The table needs a decision before the network can read it: see what was noticed.");
  else if (isUnderWay(facts)) await wait();
  else settle();
  if (facts?.graph && ["waiting", "running"].includes(facts.stability)) await watchResampling();
  else if (facts?.stability === "done") await showStability();
}

const isUnderWay = ({ state }) => state === "waiting" || state === "running";
const stateNow = () => ({ choices: facts.choices, argument: graph.argument });

/** Let the network read the table, with these choices. Whether it did. */
async function read(choices, keep = true) {
  if (reading) return false;
  const before = graph ? stateNow() : null;
  reading = true;
  try {
    facts = await api.start(key, choices);
    stability = null;
    await wait();
  } finally {
    reading = false;
  }
  if (facts?.state !== "done") return false;
  if (before && keep) undoing.add(before);
  showHistory();
  return true;
}

/** Accept an offer of the trust card or of a failed reading, beside what the other problems need. */
const accept = (offer) => read(columns.accepting(offer, graph ? [] : columnsThatCannotBeUsed()));

async function wait() {
  const mine = key;
  let tell = null, words = null;
  while (key === mine && isUnderWay(facts)) {
    const next = facts.state === "running" || !facts.ahead ? "The network reads the table …"
      : `Waiting for the network: ${facts.ahead} before this table …`;
    if (next !== words) {
      words = next;
      tell = sayProgress("status", words, careful(async () => { facts = await api.stop(mine); }));
    }
    tell(null, facts.seconds >= 1 ? `${Math.round(facts.seconds)} s` : "");
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_QUESTIONS));
    const latest = await api.session(mine);
    if (key === mine) facts = latest;
  }
  if (key === mine) settle();
}

/** The network is done, or will not be. */
function settle() {
  say(facts.notice ?? "");
  showWork();
  if (facts.state === "failed") complain(new api.RequestError(facts.message, 400), facts.offers);
  if (facts.state === "cancelled") say("Stopped. Nothing has changed.");
  if (facts.graph) showGraph(facts.graph, true);
  if (compare.isOpen) aside(() => compare.renew());
}

// Stability

async function resample() {
  const mine = key;
  await api.resample(mine);
  await watchResampling();
}

/** Show how far the network is with resampled tables, until it is done. */
async function watchResampling() {
  const mine = key;
  resampling = true;
  byId("resampling").hidden = false;
  const tell = sayProgress("resampling", "The network reads resampled tables …",
    careful(async () => { await api.stopResampling(mine); }));
  await refreshSelection();
  try {
    let now = await api.stability(mine);
    while (key === mine && isUnderWay(now)) {
      tell(now.share, now.ahead ? `${now.ahead} before them` : `${Math.round(100 * now.share)}%`);
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_QUESTIONS));
      now = await api.stability(mine);
    }
    if (key === mine && now.message) throw new api.RequestError(now.message, 400);
    if (key === mine) stability = now.edges.length || now.state === "done" ? now.edges : null;
  } finally {
    resampling = false;
    byId("resampling").hidden = true;
  }
  if (key !== mine || !graph) return;
  panels.showEdges(graph, selected, stability, careful(selectEdge));
  await refreshSelection();
}

async function showStability() {
  const mine = graph;
  const now = await api.stability(key);
  if (graph !== mine || now.state !== "done") return;
  stability = now.edges;
  panels.showEdges(graph, selected, stability, careful(selectEdge));
}

// Showing

function showWork() {
  byId("start").hidden = true;
  byId("work").hidden = compare.isOpen || series.isOpen;
  byId("actions").hidden = false;
  document.title = `${facts.table.name} – Causal Arrow`;
  panels.showTrust(facts.table, careful(accept));
  columns.show(facts, server);
  series.show();
  compare.setKept(facts.kept);
  byId("open-compare").hidden = !facts.graph;
  for (const id of ["graph-area", "question", "edges-panel", "statements-panel", "tiers-panel", "selection", "downloads", "evidence-panel"]) {
    byId(id).hidden = !facts.graph;
  }
  byId("columns-panel").open ||= !facts.graph && !facts.table.usable;
}

/** Columns that problems say to leave out. Accepting one offer accepts these: without them nothing can be read. */
function columnsThatCannotBeUsed() {
  const problems = facts.table.findings.filter((finding) => finding.severity === "problem");
  return problems.filter((finding) => finding.offers.length === 1).flatMap((finding) => finding.offers[0].drop);
}

function showGraph(next, first = false) {
  graph = next;
  picture ??= new GraphPicture(byId("graph"), { onEdge: careful(selectEdge), onNode: careful(clickVariable),
    onNothing: selectNothing, onDrag: keepPlaces });
  if (first && !hiddenShown) picture.forget(recall("places") ?? []);
  drawGraph();
  panels.showEdges(graph, selected, stability, careful(selectEdge));
  panels.showHidden(graph, careful(selectEdge));
  panels.showStatements(graph.argument, careful(argue));
  panels.showTiers(graph, careful(argue));
  panels.showTierNumbers(graph.argument);
  panels.showRemarks(graph);
  if (first) pair.show(graph.variables);
  const { threshold, decode } = graph.argument;
  if (!wish && decode === "map") { // the other rules have a threshold of their own; this one waits for its return
    byId("threshold").value = threshold;
    byId("threshold-value").textContent = threshold.toFixed(2);
  }
  byId("rule").value = decode;
  byId("directions").value = graph.argument.directions;
  byId("threshold").disabled = decode !== "map";
  showHistory();
  clearTimeout(layoutTimer);
  layoutTimer = setTimeout(() => aside(() => arrange(first)), first ? 0 : 300);
}

/** Draw the graph with the hidden causes that are asked for, the marks of the answer, and what is chosen. */
function drawGraph() {
  const many = graph.hidden_causes.length;
  byId("hidden-control").hidden = !many;
  const shown = hiddenShown ?? (many > MAX_ARCS_UNASKED ? "none" : "all");
  byId("hidden-causes").value = shown;
  byId("legend-hidden").hidden = !many || shown === "none";
  picture.show({ ...graph, hidden_causes: shown === "all" ? graph.hidden_causes : [] });
  markAnswer();
  picture.select(selected?.source ?? selected?.name, selected?.target);
}

/** Color what the answer is about: the causal paths of the graph that is shown, and what was adjusted for. */
function markAnswer() {
  const edges = answered?.cause && graph ? edgesOnPaths(graph.edges, answered.cause, answered.effect) : [];
  picture?.mark({ ...(answered ?? pair.pair), edges });
  byId("legend-path").hidden = !edges.length;
  byId("legend-adjusted").hidden = !answered?.adjusted.length;
}

function keepPlaces(moved) {
  remember("places", [...moved]);
  byId("tidy").hidden = !moved.size;
}

function showHistory() {
  byId("undo").disabled = !undoing.past.length;
  byId("redo").disabled = !undoing.future.length;
}

async function arrange(first) {
  const mine = graph;
  const places = await api.places(key);
  if (graph === mine) picture.place(places, first);
  byId("tidy").hidden = !picture.moved.size;
}

// Arguing

/** Ask for the graph under another argument. Of several wishes in a hurry, the last one counts. What the server refuses
 * leaves the graph, undo and redo as they were. */
async function argue(argument, keep = true, done = null) {
  if (keep && isSame(argument, wish?.argument ?? graph.argument)) return; // a second click on the same button
  // A wish that another one overtakes leaves it where to go back to.
  wish = { argument, keep: keep || Boolean(wish?.keep && !wish.sent), done };
  if (talking) return;
  talking = true;
  try {
    while (wish) {
      const asked = wish;
      asked.sent = true;
      const before = stateNow();
      let next;
      try {
        next = await api.argue(key, { ...asked.argument, version: graph.version });
      } catch (error) {
        wish = null;
        if (error.status === 409) await catchUp();
        else showGraph(graph);
        throw error;
      }
      stability = null;
      if (asked.keep) undoing.add(before);
      asked.done?.();
      if (wish === asked) wish = null;
      showGraph(next);
    }
  } finally {
    talking = false;
  }
  facts = await api.session(key);
  panels.showTrust(facts.table, careful(accept));
  compare.setKept(facts.kept);
  if (compare.isOpen) await compare.renew();
  if (facts.stability === "done") await showStability();
  await refreshSelection();
  await pair.renew();
}

/** Show what another tab has made of the session. */
async function catchUp() {
  facts = await api.session(key);
  showWork();
  if (facts.graph) showGraph(facts.graph);
}

/** Undo or redo. A table that was read otherwise is read that way again, which the server mostly remembers. */
async function step(direction) {
  const next = undoing.next(direction);
  if (reading || talking || !next) return;
  const now = stateNow();
  if (canonical(next.choices) !== canonical(now.choices) && !(await read(next.choices, false))) return;
  await argue(next.argument, false, () => undoing.took(direction, now));
}

const hasStatement = (source, target) => ["required", "forbidden"].some((kind) =>
  graph.argument.knowledge[kind].some((edge) => edge.includes(source) && edge.includes(target)));

const actions = {
  hasStatement,
  require: careful((source, target) => argue(required(graph.argument, source, target))),
  forbid: careful((source, target) => argue(forbidden(graph.argument, source, target))),
  reverse: careful(async (source, target) => {
    const before = selected;
    selected = { source: target, target: source };
    try {
      await argue(required(graph.argument, target, source));
    } catch (error) {
      selected = before;
      throw error;
    }
  }),
  forget: careful((source, target) => argue(forgotten(graph.argument, source, target))),
  argue: careful(argue),
  leaveOut: careful((name) => read({ ...facts.choices, drop: [...facts.choices.drop, name] })),
  changeKind: (name) => columns.focusOn(name),
  kindOf: (name) => panels.kindWords(facts.table.columns.find((column) => column.name === name), facts.choices),
  hasNoHiddenCause: (one, other) => graph.argument.knowledge.no_hidden_cause.some((known) =>
    known.includes(one) && known.includes(other)),
  noHiddenCause: careful((one, other, said) => argue(withoutHiddenCause(graph.argument, one, other, said))),
  resample: careful(resample),
  isResampling: () => resampling,
  askEffect: careful(async (cause, effect) => {
    pair.choose({ cause, effect });
    await pair.ask();
  }),
  rank: careful(async (effect) => {
    pair.choose({ cause: "", effect });
    await pair.rank();
  }),
};

function closeCompare() {
  compare.close();
  picture.fit();
  byId("open-compare").focus();
}

// Selecting

/** Choose the edge between two variables, once the server has answered: what it refuses is not chosen. */
async function selectEdge(source, target) {
  const mine = wanted = { source, target };
  const details = await api.edge(key, source, target);
  if (wanted !== mine) return;
  selected = mine;
  picture.select(source, target);
  panels.showEdges(graph, selected, stability, careful(selectEdge));
  if (!pair.asked) pair.choose({ cause: source, effect: target });
  panels.showEdge(details, actions);
}

/** The first variable that is clicked is a cause, the second its effect: then the question is asked. */
async function clickVariable(name) {
  selectVariable(name);
  if (pair.click(name)) await pair.ask();
}

function selectVariable(name) {
  wanted = null;
  selected = { name };
  picture.select(name);
  panels.showVariable(name, graph, actions);
  byId("focus-control").hidden = false;
}

function selectNothing() {
  selected = wanted = null;
  picture.select();
  panels.showEdges(graph, null, stability, careful(selectEdge));
  panels.showNothing();
  if (!pair.asked) pair.choose({ cause: "", effect: "" });
  focusOn(0);
  byId("focus-control").hidden = true;
}

/** Show what is within some steps of the chosen variable alone; everything for 0. */
function focusOn(steps) {
  const was = focused;
  focused = steps && selected?.name ? selected.name : null;
  byId("focus").value = focused ? String(steps) : "0";
  if (focused) picture.only(around(graph.edges, focused, steps));
  else if (was) picture.only(null);
}

async function refreshSelection() {
  if (selected?.name) {
    if (graph.variables.includes(selected.name)) panels.showVariable(selected.name, graph, actions);
    else selectNothing();
  } else if (selected && ![selected.source, selected.target].every((name) => graph.variables.includes(name))) {
    selectNothing();
  } else if (selected) {
    const mine = selected;
    const details = await api.edge(key, mine.source, mine.target);
    if (selected === mine) panels.showEdge(details, actions);
  }
}

// Listeners

function listen() {
  const drop = byId("drop");
  byId("file").addEventListener("change", careful((event) => openFile(event.target.files[0])));
  for (const type of ["dragover", "drop"]) document.addEventListener(type, (event) => event.preventDefault());
  document.addEventListener("dragover", () => drop.classList.add("over"));
  document.addEventListener("dragleave", () => drop.classList.remove("over"));
  document.addEventListener("drop", careful((event) => {
    drop.classList.remove("over");
    return openFile(event.dataTransfer.files[0]);
  }));

  byId("threshold").addEventListener("input", careful((event) => {
    const threshold = Number(event.target.value);
    byId("threshold-value").textContent = threshold.toFixed(2);
    picture.hideBelow(threshold);
    const now = performance.now();
    const goesOn = now - lastSlide < ONE_SLIDE;
    lastSlide = now;
    return argue({ ...(wish?.argument ?? graph.argument), threshold }, !goesOn);
  }));
  byId("rule").addEventListener("change", careful((event) =>
    argue({ ...graph.argument, decode: event.target.value,
      threshold: event.target.value === "map" ? Number(byId("threshold").value) : 0.5 })));
  byId("directions").addEventListener("change", careful((event) =>
    argue({ ...graph.argument, directions: event.target.value })));
  byId("search").addEventListener("input", (event) => {
    const found = picture.find(event.target.value);
    say(event.target.value.trim() ? `${found.length} found` : "");
  });
  byId("search").addEventListener("keydown", (event) => {
    const found = event.key === "Enter" ? picture.find(event.target.value) : [];
    if (!found.length) return;
    selectVariable(found[0]);
    picture.flyTo(found[0]);
  });
  byId("focus").addEventListener("change", (event) => focusOn(Number(event.target.value)));
  byId("hidden-causes").addEventListener("change", (event) => {
    hiddenShown = event.target.value;
    drawGraph();
  });
  byId("tidy").addEventListener("click", careful(async () => {
    picture.forget([]);
    keepPlaces(picture.moved);
    await arrange(true);
  }));
  byId("tier-put").addEventListener("click", careful(async () => {
    const names = matching(byId("tier-pattern").value, graph.variables);
    if (!names.length) throw new api.RequestError("No variable has such a name: separate names with commas; * stands for any letters.", 400);
    const tier = byId("tier-number").value === "" ? null : Number(byId("tier-number").value);
    await argue(names.reduce((argument, name) => inTier(argument, name, tier), graph.argument));
  }));
  byId("fit").addEventListener("click", () => picture.fit());
  byId("undo").addEventListener("click", careful(() => step("undo")));
  byId("redo").addEventListener("click", careful(() => step("redo")));
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || !graph) return;
    if (event.target.matches("input[type=search], input[type=text]")) return;
    event.preventDefault();
    careful(() => step(event.shiftKey ? "redo" : "undo"))();
  });

  byId("ask").addEventListener("click", careful(() => pair.ask()));
  byId("rank").addEventListener("click", careful(() => pair.rank()));
  byId("swap").addEventListener("click", careful(async () => {
    const { cause, effect } = pair.pair;
    const again = Boolean(pair.asked?.cause);
    pair.choose({ cause: effect, effect: cause });
    if (again) await pair.ask();
  }));
  for (const id of ["cause", "effect"]) {
    byId(id).addEventListener("keydown", careful(async (event) => {
      if (event.key !== "Enter") return;
      pair.changed();
      if (!byId("ask").disabled) await pair.ask();
    }));
  }
  byId("show-pair").addEventListener("click", careful(() => selectEdge(byId("cause").value, byId("effect").value)));
  byId("open-compare").addEventListener("click", careful(() => (compare.isOpen ? closeCompare() : compare.open())));
  byId("close-compare").addEventListener("click", closeCompare);
  byId("another").addEventListener("click", careful(() => { location.href = location.pathname; }));
  addEventListener("popstate", () => location.reload());

  byId("download-list").replaceChildren(...Object.entries(DOWNLOADS).map(([name, label]) =>
    button(label, careful(() => download(name)), { "data-file": name })));
  document.addEventListener("click", (event) => {
    if (!byId("downloads").contains(event.target)) byId("downloads").open = false;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") byId("downloads").open = false; });
}

async function download(name) {
  say(`Preparing ${name} …`);
  const address = URL.createObjectURL(await api.file(key, name));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  byId("downloads").open = false;
  say("");
}

// Starting

async function begin() {
  server = await api.server();
  byId("file").accept = server.endings.join(",");
  byId("limits").textContent = `${server.endings.join(", ")}; up to ${server.most_bytes / 2 ** 20} MB`;
  byId("examples").replaceChildren(...server.examples.map((example) =>
    element("button", { type: "button", class: example.question ? "example first" : "example", "data-example": example.name,
      onclick: careful(() => openExample(example)) },
    element("strong", {}, example.wording || example.title), element("span", {}, example.wording ? example.title : ""))));
  const named = new URLSearchParams(location.hash.slice(1)).get(SESSION);
  if (named) {
    try {
      show(await api.session(named));
      await proceed(facts);
    } catch (error) {
      if (error.status !== 404) throw error;
      history.replaceState(null, "", location.pathname);
      say(error.message);
    }
  } else if (server.given) {
    await open(api.openExample(server.given));
  }
}

listen();
careful(begin)();
