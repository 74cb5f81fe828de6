// The page: opens a table, waits for the network, and keeps graph, lists and server in step.

import * as api from "./api.js";
import { forbidden, forgotten, History, required } from "./argument.js";
import { button, byId, element } from "./dom.js";
import { GraphPicture } from "./graph.js";
import * as panels from "./panels.js";

const SESSION = "causal-arrow-session";
const ONE_SLIDE = 1000; // milliseconds: moves of the slider that follow each other faster are undone together
const DOWNLOADS = {
  "graph.png": "Picture (PNG)", "graph.svg": "Picture (SVG)", "report.html": "Report (one HTML file)",
  "graph.json": "Everything (JSON)", "edges.csv": "Edges (CSV)", "graph.graphml": "GraphML", "graph.dot": "Graphviz (DOT)",
  "graph.dagitty.txt": "DAGitty", "reproduce.py": "The same in Python",
};

let server = null;
let key = null; // of the session
let facts = null; // the session as the server told it last
let graph = null; // the graph as it is shown
let history = null;
let selected = null; // { source, target } for an edge, { name } for a variable
let picture = null;
let wish = null; // the argument that the server has not heard yet
let talking = false;
let layoutTimer = null;
let lastSlide = -Infinity;

// Saying what happens

const say = (words) => { byId("status").textContent = words; };

function complain(error) {
  byId("trouble").textContent = error.message;
  byId("trouble").hidden = false;
  say("");
  if (!(error instanceof api.RequestError)) console.error(error);
}

/** A listener that shows what goes wrong in it. */
const careful = (work) => async (...given) => {
  byId("trouble").hidden = true;
  try {
    await work(...given);
  } catch (error) {
    complain(error);
  }
};

// Opening a table

async function open(opening) {
  say("Reading the table …");
  const opened = await opening;
  await leave();
  key = opened.session;
  sessionStorage.setItem(SESSION, key);
  history = new History(key);
  await proceed(opened);
}

async function leave() {
  if (key) await api.close(key).catch(() => {});
  history?.forget();
  sessionStorage.removeItem(SESSION);
  key = facts = graph = selected = history = null;
}

async function openFile(file) {
  if (!file) return;
  if (file.size > server.most_bytes) {
    throw new api.RequestError(`The file is larger than the ${server.most_bytes / 2 ** 20} MB that this page takes: ` +
      "leave out observations or columns, or use the command line, which has no such limit.", 413);
  }
  await open(api.openFile(file));
}

/** Show the session, and let the network read the table if nothing stands in the way. */
async function proceed(now) {
  facts = now;
  showWork();
  if (facts.state === "ready" && facts.table.usable) await read({});
  else if (facts.state === "ready") say("The table needs a decision before the network can read it: see what was noticed.");
  else if (facts.state === "waiting" || facts.state === "running") await wait();
  else settle();
}

/** Let the network read the table, with these changes to how it is read. */
async function read(changes) {
  facts = await api.start(key, { ...facts.choices, ...changes });
  await wait();
  if (facts?.state !== "done") return;
  history.forget(); // it may speak of columns that are gone
  byId("undo").disabled = byId("redo").disabled = true;
}

async function wait() {
  const mine = key;
  while (key === mine && (facts.state === "waiting" || facts.state === "running")) {
    byId("status").replaceChildren(
      facts.state === "running" || !facts.ahead ? "The network reads the table …"
        : `Waiting for the network: ${facts.ahead} before this table …`, " ",
      button("Stop", careful(async () => { facts = await api.stop(mine); })));
    await new Promise((resolve) => setTimeout(resolve, 250));
    const next = await api.session(mine);
    if (key === mine) facts = next;
  }
  if (key === mine) settle();
}

/** The network is done, or will not be. */
function settle() {
  say("");
  showWork();
  if (facts.state === "failed") complain(new api.RequestError(facts.message, 400));
  if (facts.state === "cancelled") say("Stopped.");
  if (facts.graph) showGraph(facts.graph, true);
}

// Showing

function showWork() {
  byId("start").hidden = true;
  byId("work").hidden = false;
  byId("actions").hidden = false;
  document.title = `${facts.table.name} – Causal Arrow`;
  panels.showTrust(facts.table, careful((offer) => read(accepted(offer))));
  panels.showColumns(facts);
  for (const id of ["graph-area", "edges-panel", "statements-panel", "pair-panel", "tiers-panel", "selection", "downloads"]) {
    byId(id).hidden = !facts.graph;
  }
  byId("columns-panel").open ||= !facts.graph && !facts.table.usable;
}

/** How to read the table with an offer of the trust card accepted, beside what the other problems need. */
function accepted(offer) {
  const drop = [...new Set([...facts.choices.drop, ...columnsThatCannotBeUsed(), ...offer.drop])];
  return { drop, missing: offer.missing ?? facts.choices.missing };
}

/** Columns that problems say to leave out. Accepting one offer accepts these: without them nothing can be read. */
function columnsThatCannotBeUsed() {
  const problems = facts.table.findings.filter((finding) => finding.severity === "problem");
  return problems.filter((finding) => finding.offers.length === 1).flatMap((finding) => finding.offers[0].drop);
}

function showGraph(next, first = false) {
  graph = next;
  picture ??= new GraphPicture(byId("graph"), {
    onEdge: careful(selectEdge), onNode: selectVariable, onNothing: selectNothing });
  picture.show(graph);
  panels.showEdges(graph, selected, careful(selectEdge));
  panels.showStatements(graph.argument, careful(argue));
  panels.showTiers(graph, careful(argue));
  panels.showRemarks(graph);
  if (first) panels.fillChoices(graph.variables);
  const { threshold, rule } = graph.argument;
  if (!wish) {
    byId("threshold").value = threshold;
    byId("threshold-value").textContent = threshold.toFixed(2);
  }
  byId("rule").value = rule;
  byId("threshold").disabled = rule !== "map";
  byId("undo").disabled = !history.past.length;
  byId("redo").disabled = !history.future.length;
  picture.select(selected?.source ?? selected?.name, selected?.target);
  clearTimeout(layoutTimer);
  layoutTimer = setTimeout(careful(() => arrange(first)), first ? 0 : 300);
}

async function arrange(first) {
  const mine = graph;
  const places = await api.places(key);
  if (graph === mine) picture.place(places, first);
}

// Arguing

/** Ask for the graph under another argument. Of several wishes in a hurry, the last one counts. */
async function argue(argument, remember = true) {
  if (remember) history.add(wish ?? graph.argument);
  wish = argument;
  if (talking) return;
  talking = true;
  try {
    while (wish) {
      const asked = wish;
      let next;
      try {
        next = await api.argue(key, asked);
      } catch (error) {
        if (remember) history.past.pop();
        wish = null;
        showGraph(graph);
        throw error;
      }
      if (wish === asked) wish = null;
      showGraph(next);
    }
  } finally {
    talking = false;
  }
  facts = await api.session(key);
  panels.showTrust(facts.table, careful((offer) => read(accepted(offer))));
  await refreshSelection();
}

async function step(direction) {
  const argument = history[direction](graph.argument);
  if (argument) await argue(argument, false);
}

const hasStatement = (source, target) => ["required", "forbidden"].some((kind) =>
  graph.argument.knowledge[kind].some((edge) => edge.includes(source) && edge.includes(target)));

const actions = {
  hasStatement,
  require: careful((source, target) => argue(required(graph.argument, source, target))),
  forbid: careful((source, target) => argue(forbidden(graph.argument, source, target))),
  reverse: careful(async (source, target) => {
    selected = { source: target, target: source };
    await argue(required(graph.argument, target, source));
  }),
  forget: careful((source, target) => argue(forgotten(graph.argument, source, target))),
  argue: careful(argue),
  leaveOut: careful((name) => read({ drop: [...facts.choices.drop, name] })),
};

// Selecting

async function selectEdge(source, target) {
  selected = { source, target };
  picture.select(source, target);
  panels.showEdges(graph, selected, careful(selectEdge));
  [byId("cause").value, byId("effect").value] = [source, target];
  await refreshSelection();
}

function selectVariable(name) {
  selected = { name };
  picture.select(name);
  byId("cause").value = name;
  panels.showVariable(name, graph, actions);
}

function selectNothing() {
  selected = null;
  picture.select();
  panels.showEdges(graph, null, careful(selectEdge));
  panels.showNothing();
}

async function refreshSelection() {
  if (selected?.name) {
    if (graph.variables.includes(selected.name)) panels.showVariable(selected.name, graph, actions);
    else selectNothing();
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
    return argue({ ...(wish ?? graph.argument), threshold }, !goesOn);
  }));
  byId("rule").addEventListener("change", careful((event) =>
    argue({ ...graph.argument, rule: event.target.value, threshold: 0.5 })));
  byId("search").addEventListener("input", (event) => {
    const found = picture.find(event.target.value);
    say(event.target.value.trim() ? `${found.length} found` : "");
  });
  byId("search").addEventListener("keydown", (event) => {
    const found = event.key === "Enter" ? picture.find(event.target.value) : [];
    if (found.length) selectVariable(found[0]);
  });
  byId("fit").addEventListener("click", () => picture.fit());
  byId("undo").addEventListener("click", careful(() => step("undo")));
  byId("redo").addEventListener("click", careful(() => step("redo")));
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || !graph) return;
    if (event.target.matches("input[type=search]")) return;
    event.preventDefault();
    careful(() => step(event.shiftKey ? "redo" : "undo"))();
  });

  byId("ask").addEventListener("click", careful(async () => {
    byId("pair-answer").textContent = "Drawing graphs …";
    try {
      panels.showAnswerAboutPair(await api.question(key, byId("cause").value, byId("effect").value));
    } catch (error) {
      byId("pair-answer").textContent = "";
      throw error;
    }
  }));
  byId("show-pair").addEventListener("click", careful(() => selectEdge(byId("cause").value, byId("effect").value)));
  byId("read-again").addEventListener("click", careful(() => {
    selected = null;
    panels.showNothing();
    return read({ drop: panels.columnsLeftOut(), missing: byId("missing").value });
  }));
  byId("another").addEventListener("click", careful(async () => {
    await leave();
    location.reload();
  }));

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
  byId("limits").textContent = `${server.endings.join(", ")}; up to ${server.most_bytes / 2 ** 20} MB, ` +
    `${server.most_observations.toLocaleString("en")} observations and ${server.most_variables} columns`;
  byId("examples").replaceChildren(...server.examples.map((example) =>
    button(example.title, careful(() => open(api.openExample(example.name))), { "data-example": example.name })));
  const before = sessionStorage.getItem(SESSION);
  if (before) {
    try {
      const kept = await api.session(before);
      key = before;
      history = new History(key);
      await proceed(kept);
      return;
    } catch (error) {
      sessionStorage.removeItem(SESSION);
      if (error.status !== 404) throw error;
      say(error.message);
    }
  } else if (server.given) {
    await open(api.openExample(server.given));
  }
}

listen();
careful(begin)();
