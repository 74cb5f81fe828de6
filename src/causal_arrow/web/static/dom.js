// @ts-check
// Elements of the page. Names and cells of tables only ever become text, never HTML.

/** Any kind of element: modules know which ids are which.
 * @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** An element with properties (those that start with "on" are listeners) and children, which are nodes or text. */
export function element(tag, properties = {}, ...children) {
  return dressed(document.createElement(tag), properties, children);
}

export function svgElement(tag, properties = {}, ...children) {
  return dressed(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function dressed(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Put children in place of those of a node; nothing where one is null. */
export const fill = (node, ...children) =>
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));

export const button = (label, onclick, properties = {}) =>
  element("button", { type: "button", onclick, ...properties }, label);

export const percent = (probability) => probability.toFixed(2);

export const pValue = (/** @type {number} */ value) => (value < 0.001 ? "p < 0.001" : `p = ${value.toFixed(3)}`);

/** A share that was counted: "none", "37%", "all". Rounded as in the server's sentences, halves to even. */
export function countedShare(share) {
  if (share === 0) return "none";
  if (share > 1 - 1e-9) return "all";
  if (share < 0.01) return "<1%";
  if (share > 0.99) return ">99%";
  const exact = 100 * share, below = Math.floor(exact);
  return `${exact - below === 0.5 ? below + (below % 2) : Math.round(exact)}%`;
}

/** The same with what it is a share of: "none of the graphs", "37% of graphs", "all graphs". */
export function shareOf(share, things) {
  const words = countedShare(share);
  return { none: `none of the ${things}`, all: `all ${things}` }[words] ?? `${words} of ${things}`;
}
