// @ts-check
// Opening a table, and waiting for the network: the first reading, another one, resampled tables.

import * as api from "./api.js";
import { button, byId } from "./dom.js";
import { aside, careful, complain, say, sayProgress } from "./notices.js";
import { enter, recall, state, stateNow } from "./state.js";
import * as view from "./view.js";

const SESSION = "session"; // in the address
const BETWEEN_QUESTIONS = 250; // milliseconds

const pause = () => new Promise((resolve) => setTimeout(resolve, BETWEEN_QUESTIONS));
const isUnderWay = (/** @type {any} */ { state: now }) => now === "waiting" || now === "running";

/** Ask before a graph gives way to another table. @param {string} name */
const mayReplace = async (name) => !state.graph || confirmed(`Open ${name} in place of ${state.facts.table.name}? ` +
  "Your work on it stays at its address: the browser's Back button returns to it.", "Open it");

/** @param {string} words @param {string} yes on the button that goes ahead @returns {Promise<boolean>} */
async function confirmed(words, yes) {
  const dialog = byId("confirm");
  byId("confirm-words").textContent = words;
  byId("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  return dialog.returnValue === "yes";
}

/** Take over a session. @param {any} facts */
function show(facts) {
  view.leave();
  enter(facts);
  view.forgetPlaces(recall("places") ?? []);
}

/** @param {Promise<any>} opening */
async function open(opening) {
  say("Reading the table …");
  show(await opening);
  history.pushState(null, "", `#${SESSION}=${state.key}`);
  await proceed();
}

/** @param {File | undefined} file */
export async function openFile(file) {
  if (!file) return;
  const most = state.server.most_bytes;
  if (file.size > most) {
    throw new api.RequestError(`The file is larger than the ${most / 2 ** 20} MB that this page takes: ` +
      "leave out observations or columns, or use the command line, which has no such limit.", 413);
  }
  if (await mayReplace(file.name)) await open(api.openFile(file));
}

/** @param {{name: string, title: string, question: string[] | null}} example */
export async function openExample({ name, title, question }) {
  if (!(await mayReplace(title))) return;
  await open(api.openExample(name));
  if (question && state.graph) {
    view.pair.choose({ cause: question[0], effect: question[1] });
    await view.pair.ask();
  }
}

/** Delete the session, in memory and on the server's disk. */
export async function remove() {
  if (!(await confirmed(`Delete ${state.facts.table.name} and the work on it? This cannot be undone.`, "Delete"))) return;
  await api.close(state.key);
  location.replace(location.pathname);
}

/** Return to the session that the address names; the table that the server was started with otherwise. */
export async function resume() {
  const named = new URLSearchParams(location.hash.slice(1)).get(SESSION);
  if (named) {
    try {
      show(await api.session(named));
      await proceed();
    } catch (error) {
      if (!(error instanceof api.RequestError) || error.status !== 404) throw error;
      history.replaceState(null, "", location.pathname);
      say(error.message);
    }
  } else if (state.server.given) {
    await open(api.openExample(state.server.given));
  }
}

/** Show the session, and let the network read the table if nothing prevents it. */
async function proceed() {
  const { facts } = state;
  view.showWork();
  if (facts.state === "ready" && facts.table.usable) await read(facts.choices);
  else if (facts.state === "ready" && !facts.graph) {
    say("The table needs a decision before the network can read it: see what was noticed.");
  } else if (isUnderWay(facts)) await wait();
  else settle();
  if (state.facts?.graph && ["waiting", "running"].includes(state.facts.stability)) await watchResampling();
  else if (state.facts?.stability === "done") await view.showStability();
}

/** Let the network read the table with these choices. Returns whether it did.
 * @param {any} choices @param {boolean} keep whether undo goes back to before */
export async function read(choices, keep = true) {
  if (state.reading) return false;
  const before = state.graph ? stateNow() : null;
  state.reading = true;
  try {
    state.facts = await api.start(state.key, choices);
    state.stability = null;
    await wait();
  } finally {
    state.reading = false;
  }
  if (state.facts?.state !== "done") return false;
  if (before && keep) state.undoing.add(before);
  view.showHistory();
  return true;
}

/** Accept an offer of the trust card or of a failed reading, with what the other problems need. @param {any} offer */
export const accept = (offer) => read(view.columns.accepting(offer, state.graph ? [] : columnsThatCannotBeUsed()));

/** Columns that problems say to leave out. Accepting one offer accepts these: without them nothing can be read. */
function columnsThatCannotBeUsed() {
  const problems = state.facts.table.findings.filter((/** @type {any} */ finding) => finding.severity === "problem");
  return problems.filter((/** @type {any} */ finding) => finding.offers.length === 1)
    .flatMap((/** @type {any} */ finding) => finding.offers[0].drop);
}

async function wait() {
  const mine = state.key;
  let tell = null, words = null;
  while (state.key === mine && isUnderWay(state.facts)) {
    const { facts } = state;
    const next = facts.state === "running" || !facts.ahead ? "The network reads the table …"
      : `Waiting for the network: ${facts.ahead} before this table …`;
    if (next !== words || !tell) {
      words = next;
      tell = sayProgress("status", words, careful(async () => { state.facts = await api.stop(mine); }));
    }
    tell(null, facts.seconds >= 1 ? `${Math.round(facts.seconds)} s` : "");
    await pause();
    const latest = await api.session(mine);
    if (state.key === mine) state.facts = latest;
  }
  if (state.key === mine) settle();
}

/** The network is done, or will not be. */
function settle() {
  const { facts } = state;
  say(facts.notice ?? "");
  view.showWork();
  if (facts.state === "failed") {
    complain(new api.RequestError(facts.message, 400), facts.offers.map((/** @type {any} */ offer) =>
      button(offer.label, careful(() => accept(offer)))));
  }
  if (facts.state === "cancelled") say("Stopped. Nothing has changed.");
  if (facts.graph) view.showGraph(facts.graph, true);
  if (view.compare.isOpen) aside(() => view.compare.renew());
}

export async function resample() {
  await api.resample(state.key);
  await watchResampling();
}

/** Show how far the network is with resampled tables, until it is done. */
async function watchResampling() {
  const mine = state.key;
  state.resampling = true;
  byId("resampling").hidden = false;
  const tell = sayProgress("resampling", "The network reads resampled tables …",
    careful(async () => { await api.stopResampling(mine); }));
  await view.refreshSelection();
  try {
    let now = await api.stability(mine);
    while (state.key === mine && isUnderWay(now)) {
      tell(now.share, now.ahead ? `${now.ahead} before them` : `${Math.round(100 * now.share)}%`);
      await pause();
      now = await api.stability(mine);
    }
    if (state.key === mine && now.message) throw new api.RequestError(now.message, 400);
    if (state.key === mine) state.stability = now.state === "done" ? now.edges : null;
  } finally {
    state.resampling = false;
    byId("resampling").hidden = true;
  }
  if (state.key !== mine || !state.graph) return;
  view.showEdges();
  await view.refreshSelection();
}
