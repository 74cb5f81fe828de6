// @ts-check
// Everything that changes while a person works, in one place, and what this browser keeps of it.

import { History } from "./logic.js";

/** Of one session; all of it is forgotten when another one is opened. */
const fresh = () => ({
  /** @type {string | null} */ key: null, // of the session
  /** @type {any} */ facts: null, // the session as the server described it last
  /** @type {any} */ graph: null, // the graph as it is shown
  /** @type {History<any>} */ undoing: new History(),
  /** @type {any} */ selected: null, // { source, target } for an edge, { name } for a variable
  /** @type {any} */ wanted: null, // the edge that was chosen last, also before the server has answered
  /** @type {import("./logic.js").Group[]} */ groups: [], // of variables that are drawn as one box
  /** @type {string | null} */ focused: null, // the variable whose surroundings alone are shown
  /** @type {any} */ answered: null, // { cause, effect, adjusted } of the answer that is shown
  /** @type {any} */ wish: null, // { argument, keep, done } that the server has not received yet
  /** @type {any[] | null} */ stability: null, // the edges with the share of resampled tables that have them
});

export const state = {
  /** @type {any} */ server: null,
  reading: false, // while the network is waited for
  talking: false, // while the server refines the graph
  resampling: false,
  ...fresh(),
};

/** Open a session in place of the one before, or none. @param {any} facts */
export function enter(facts) {
  Object.assign(state, fresh(), { facts, key: facts?.session ?? null });
  if (facts) state.undoing = new History(recall("history") ?? {}, (states) => remember("history", states));
}

/** What undo goes back to. */
export const stateNow = () => ({ choices: state.facts.choices, argument: state.graph.argument });

const stored = (/** @type {string} */ name) => `causal-arrow-${name}-${state.key}`;

/** What this browser keeps for the session; null where it keeps nothing. @param {string} name @returns {any} */
export function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(stored(name)) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} name @param {any} value */
export function remember(name, value) {
  try {
    localStorage.setItem(stored(name), JSON.stringify(value));
  } catch { /* no room: it lasts until the next reload */ }
}
