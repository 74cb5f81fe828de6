// @ts-check
// What the page says about its work: status, progress, trouble.

import { RequestError } from "./api.js";
import { button, byId, element } from "./dom.js";

export const say = (/** @type {string} */ words) => { byId("status").textContent = words; };

/** Show words, a bar and a button that stops the work. Returns a function that updates the bar.
 * @param {string} place @param {string} words @param {() => void} onStop */
export function sayProgress(place, words, onStop) {
  const bar = element("progress", { max: 1, "aria-label": words });
  const more = element("span", { class: "number", "aria-hidden": "true" });
  byId(place).replaceChildren(words, " ", bar, " ", more, " ", button("Stop", onStop));
  return (/** @type {number | null} */ share, /** @type {string} */ text) => {
    if (share !== null) bar.value = share;
    more.textContent = text;
  };
}

/** @param {Error} error @param {HTMLElement[]} remedies buttons */
export function complain(error, remedies = []) {
  byId("trouble").replaceChildren(error.message, " ", ...remedies);
  byId("trouble").hidden = false;
  say("");
  if (!(error instanceof RequestError)) console.error(error);
}

/** Do something that nobody has just asked for, and show what goes wrong in it. @param {() => any} work */
export async function aside(work) {
  try {
    await work();
  } catch (error) {
    complain(/** @type {Error} */ (error));
  }
}

/** A listener that shows what goes wrong in it, in place of what went wrong before.
 * @template {any[]} Given @param {(...given: Given) => any} work @returns {(...given: Given) => Promise<void>} */
export const careful = (work) => async (...given) => {
  byId("trouble").hidden = true;
  await aside(() => work(...given));
};
