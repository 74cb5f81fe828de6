// @ts-check
// Arguing with the graph: statements go to the server, which refines its answer; undo and redo.

import * as api from "./api.js";
import { forbidden, forgotten, isSame, required, withoutHiddenCause } from "./argument.js";
import { canonical } from "./columns.js";
import { careful } from "./notices.js";
import * as panels from "./panels.js";
import { accept, read, resample } from "./reading.js";
import { state, stateNow } from "./state.js";
import * as view from "./view.js";

/** Ask for the graph under another argument. Of several wishes in a hurry, the last one counts. What the server refuses
 * leaves the graph, undo and redo as they were.
 * @param {any} argument @param {boolean} keep whether undo goes back to before @param {(() => void) | null} done */
export async function argue(argument, keep = true, done = null) {
  if (keep && isSame(argument, state.wish?.argument ?? state.graph.argument)) return; // a second click on one button
  // A wish that replaces another one inherits where undo goes back to.
  state.wish = { argument, keep: keep || Boolean(state.wish?.keep && !state.wish.sent), done };
  if (state.talking) return;
  state.talking = true;
  try {
    while (state.wish) {
      const asked = state.wish;
      asked.sent = true;
      const before = stateNow();
      let next;
      try {
        next = await api.argue(state.key, { ...asked.argument, version: state.graph.version });
      } catch (error) {
        state.wish = null;
        if (error instanceof api.RequestError && error.status === 409) await catchUp();
        else view.showGraph(state.graph);
        throw error;
      }
      state.stability = null;
      if (asked.keep) state.undoing.add(before);
      asked.done?.();
      if (state.wish === asked) state.wish = null;
      view.showGraph(next);
    }
  } finally {
    state.talking = false;
  }
  await followUp();
}

/** Renew everything that depends on the graph. */
async function followUp() {
  state.facts = await api.session(state.key);
  panels.showTrust(state.facts.table, careful(accept));
  view.compare.setKept(state.facts.kept);
  if (view.compare.isOpen) await view.compare.renew();
  if (state.facts.stability === "done") await view.showStability();
  await view.refreshSelection();
  await view.pair.renew();
}

/** Show what another tab has made of the session. */
async function catchUp() {
  state.facts = await api.session(state.key);
  view.showWork();
  if (state.facts.graph) view.showGraph(state.facts.graph);
}

/** Take over a graph that the server refined by an experiment. @param {any} graph */
async function learned(graph) {
  state.undoing.add(stateNow());
  view.showGraph(graph);
  await followUp();
}

/** Undo or redo. A table that was read otherwise is read that way again, which the server mostly remembers.
 * @param {"undo" | "redo"} direction */
export async function step(direction) {
  const next = state.undoing.next(direction);
  if (state.reading || state.talking || !next) return;
  const now = stateNow();
  if (canonical(next.choices) !== canonical(now.choices) && !(await read(next.choices, false))) return;
  await argue(next.argument, false, () => state.undoing.took(direction, now));
}

/** @typedef {(source: string, target: string) => any} AboutPair */
const now = () => state.graph.argument;
const about = (/** @type {string} */ kind, /** @type {string} */ one, /** @type {string} */ other) =>
  now().knowledge[kind].some((/** @type {string[]} */ known) => known.includes(one) && known.includes(other));

/** @param {string} source @param {string} target */
async function reverse(source, target) {
  const before = state.selected;
  state.selected = { source: target, target: source };
  try {
    await argue(required(now(), target, source));
  } catch (error) {
    state.selected = before;
    throw error;
  }
}

/** What the buttons of the page do, each with its trouble shown. */
export const actions = {
  read, accept, learned,
  argue: careful(argue),
  resample: careful(resample),
  isResampling: () => state.resampling,
  hasStatement: /** @type {AboutPair} */ ((source, target) => ["required", "forbidden"].some((kind) => about(kind, source, target))),
  hasNoHiddenCause: /** @type {AboutPair} */ ((one, other) => about("no_hidden_cause", one, other)),
  require: careful(/** @type {AboutPair} */ (source, target) => argue(required(now(), source, target))),
  forbid: careful(/** @type {AboutPair} */ (source, target) => argue(forbidden(now(), source, target))),
  reverse: careful(reverse),
  forget: careful(/** @type {AboutPair} */ (source, target) => argue(forgotten(now(), source, target))),
  noHiddenCause: careful((/** @type {string} */ one, /** @type {string} */ other, /** @type {boolean} */ said) =>
    argue(withoutHiddenCause(now(), one, other, said))),
  selectEdge: careful(view.selectEdge),
  leaveOut: careful((/** @type {string} */ name) => read({ ...state.facts.choices, drop: [...state.facts.choices.drop, name] })),
  changeKind: (/** @type {string} */ name) => view.columns.focusOn(name),
  kindOf: (/** @type {string} */ name) =>
    panels.kindWords(state.facts.table.columns.find((/** @type {any} */ column) => column.name === name), state.facts.choices),
  askEffect: careful(async (/** @type {string} */ cause, /** @type {string} */ effect) => {
    view.pair.choose({ cause, effect });
    await view.pair.ask();
  }),
  rank: careful(async (/** @type {string} */ effect) => {
    view.pair.choose({ cause: "", effect });
    await view.pair.rank();
  }),
};
