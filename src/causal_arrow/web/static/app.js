// @ts-check
// The page starts here: listeners of everything that index.html has.

import * as api from "./api.js";
import { actions, argue, step } from "./arguing.js";
import { inTier } from "./argument.js";
import { button, byId, element } from "./dom.js";
import { matching } from "./logic.js";
import { careful, say } from "./notices.js";
import { openExample, openFile, remove, resume } from "./reading.js";
import { state } from "./state.js";
import * as view from "./view.js";

const ONE_SLIDE = 1000; // milliseconds: moves of a slider that follow each other faster are undone together
const DOWNLOADS = {
  "work.causal": "Work file, to go on later", "work-without-table.causal": "Work file without the table",
  "report.html": "Report (one HTML file)", "graph.png": "Picture (PNG)", "graph.svg": "Picture (SVG)",
  "reproduce.py": "The same in Python", "edges.csv": "Edges (CSV)", "graph.json": "Everything (JSON)",
  "graph.graphml": "GraphML", "graph.dot": "Graphviz (DOT)", "graph.dagitty.txt": "DAGitty",
};

/** @param {string} id @param {string} type @param {(event: any) => any} work */
const listen = (id, type, work) => byId(id).addEventListener(type, careful(work));
const now = () => state.graph.argument;

function listenToFiles() {
  const drop = byId("drop");
  listen("file", "change", async (event) => {
    try {
      await openFile(event.target.files[0]);
    } finally {
      event.target.value = ""; // the same file may be chosen again
    }
  });
  listen("open-file", "click", () => byId("file").click());
  for (const type of ["dragover", "drop"]) document.addEventListener(type, (event) => event.preventDefault());
  document.addEventListener("dragover", () => { drop.classList.add("over"); document.body.classList.add("dropping"); });
  const stop = () => { drop.classList.remove("over"); document.body.classList.remove("dropping"); };
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) stop(); });
  document.addEventListener("drop", careful((event) => {
    stop();
    return openFile(event.dataTransfer?.files[0]);
  }));
}

/** Let a slider change the argument while it moves; one movement is one step to undo.
 * @param {string} id @param {string} setting @param {(value: number) => void} atOnce */
function slide(id, setting, atOnce) {
  let last = -Infinity;
  listen(id, "input", (event) => {
    const value = Number(event.target.value);
    byId(`${id}-value`).textContent = value.toFixed(2);
    atOnce(value);
    const goesOn = performance.now() - last < ONE_SLIDE;
    last = performance.now();
    return argue({ ...(state.wish?.argument ?? now()), [setting]: value }, !goesOn);
  });
}

function listenToGraph() {
  slide("threshold", "threshold", (threshold) => view.picture.hideBelow(threshold));
  slide("hidden-threshold", "hidden_threshold", () => {});
  listen("rule", "change", ({ target: { value } }) =>
    argue({ ...now(), decode: value, threshold: value === "map" ? Number(byId("threshold").value) : 0.5 }));
  listen("directions", "change", ({ target: { value } }) => argue({ ...now(), directions: value }));
  listen("hidden-causes", "change", ({ target: { value } }) => argue({ ...now(), hidden: value }));
  listen("alone", "change", () => view.redraw());
  listen("group-put", "click", () => view.collapse(byId("group-pattern").value));
  listen("search", "input", ({ target: { value } }) => {
    const found = view.find(value);
    byId("found").textContent = value.trim() ? `${found.length} found` : "";
  });
  listen("search", "keydown", async (event) => {
    const found = event.key === "Enter" ? view.find(event.target.value) : [];
    if (found.length) await view.goTo(found[0]);
  });
  listen("focus", "change", ({ target: { value } }) => view.focusOn(Number(value)));
  listen("fit", "click", () => view.picture.fit());
  listen("tidy", "click", async () => {
    view.picture.forget([]);
    view.keepPlaces(view.picture.moved);
    await view.arrange(true);
  });
  listen("tier-put", "click", async () => {
    const names = matching(byId("tier-pattern").value, state.graph.variables);
    if (!names.length) throw new api.RequestError("No variable has such a name: separate names with commas; * stands for any letters.", 400);
    const tier = byId("tier-number").value === "" ? null : Number(byId("tier-number").value);
    await argue(names.reduce((argument, name) => inTier(argument, name, tier), now()));
  });
  for (const what of ["group", "tier"]) {
    listen(`${what}-pattern`, "keydown", ({ key }) => { if (key === "Enter") byId(`${what}-put`).click(); });
  }
  listen("undo", "click", () => step("undo"));
  listen("redo", "click", () => step("redo"));
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || !state.graph) return;
    if (target.matches("input[type=search], input[type=text]")) return;
    event.preventDefault();
    careful(() => step(event.shiftKey ? "redo" : "undo"))();
  });
}

function listenToQuestions() {
  const { pair } = view;
  listen("ask", "click", () => pair.ask());
  listen("rank", "click", () => pair.rank());
  listen("swap", "click", async () => {
    const { cause, effect } = pair.pair;
    const again = Boolean(pair.asked?.cause);
    pair.choose({ cause: effect, effect: cause });
    if (again) await pair.ask();
  });
  for (const id of ["cause", "effect"]) {
    listen(id, "keydown", async (event) => {
      if (event.key !== "Enter") return;
      pair.changed();
      if (!byId("ask").disabled) await pair.ask();
    });
  }
  listen("show-pair", "click", () => view.selectEdge(pair.pair.cause, pair.pair.effect));
}

function listenToHeader() {
  const { compare } = view;
  const close = () => {
    compare.close();
    view.picture.fit();
    byId("open-compare").focus();
  };
  listen("delete", "click", remove);
  listen("open-compare", "click", () => (compare.isOpen ? close() : compare.open()));
  listen("close-compare", "click", close);
  listen("another", "click", () => { location.href = location.pathname; });
  addEventListener("popstate", () => location.reload());
  byId("download-list").replaceChildren(...Object.entries(DOWNLOADS).map(([name, label]) =>
    button(label, careful(() => download(name)), { "data-file": name })));
  const menus = [.../** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details.menu"))];
  const closeMenus = (/** @type {Event} */ event) => menus.forEach((menu) => {
    if (event.type === "keydown" || !event.composedPath().includes(menu)) menu.open = false;
  });
  document.addEventListener("click", closeMenus);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeMenus(event); });
}

/** @param {string} name */
async function download(name) {
  say(`Preparing ${name} …`);
  const address = URL.createObjectURL(await api.file(state.key, name));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  byId("downloads").open = false;
  say("");
}

async function begin() {
  const server = state.server = await api.server();
  byId("file").accept = server.endings.join(",");
  byId("limits").textContent = `${server.endings.join(", ")}; up to ${server.most_bytes / 2 ** 20} MB`;
  byId("examples").replaceChildren(...server.examples.map((/** @type {any} */ example) =>
    element("button", { type: "button", class: example.question ? "example first" : "example", "data-example": example.name,
      onclick: careful(() => openExample(example)) },
    element("strong", {}, example.wording || example.title), element("span", {}, example.wording ? example.title : ""))));
  await resume();
}

view.connect(actions);
listenToFiles();
listenToGraph();
listenToQuestions();
listenToHeader();
careful(begin)();
