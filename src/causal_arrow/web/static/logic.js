// @ts-check
// What the page computes by itself, without a document: tested in node.

/** @typedef {{source: string, target: string}} Edge */

/** All edges on directed paths from cause to effect, in a graph without cycles.
 * @template {Edge} E @param {E[]} edges @param {string} cause @param {string} effect @returns {E[]} */
export function edgesOnPaths(edges, cause, effect) {
  const below = reached(edges, cause, (edge) => [edge.source, edge.target]);
  const above = reached(edges, effect, (edge) => [edge.target, edge.source]);
  return edges.filter((edge) => below.has(edge.source) && above.has(edge.target));
}

/** The names that can be reached from one, itself included.
 * @template {Edge} E @param {E[]} edges @param {string} start @param {(edge: E) => [string, string]} step */
function reached(edges, start, step) {
  /** @type {Map<string, string[]>} */
  const next = new Map();
  for (const edge of edges) {
    const [from, to] = step(edge);
    next.set(from, [...(next.get(from) ?? []), to]);
  }
  const found = new Set([start]);
  for (const name of found) for (const other of next.get(name) ?? []) found.add(other); // a Set grows while it is walked
  return found;
}

/** The names within some steps of one, along edges in either direction.
 * @param {Edge[]} edges @param {string} name @param {number} steps */
export function around(edges, name, steps) {
  let found = new Set([name]);
  for (let step = 0; step < steps; step += 1) {
    const more = new Set(found);
    for (const { source, target } of edges) {
      if (found.has(source)) more.add(target);
      if (found.has(target)) more.add(source);
    }
    found = more;
  }
  return found;
}

/** @typedef {{name: string, members: string[]}} Group variables that are drawn as one box */

/** The box that each variable is drawn in. @param {Group[]} groups @returns {(name: string) => string} */
export function boxes(groups) {
  const boxOf = new Map(groups.flatMap(({ name, members }) => members.map((member) => [member, name])));
  return (name) => boxOf.get(name) ?? name;
}

/** A graph with each group as one box. Of several edges between two boxes the most probable one is left; `pair` are the
 * variables that it joins.
 * @param {any} graph @param {Group[]} groups @returns {any} */
export function collapsed(graph, groups) {
  const box = boxes(groups);
  const strongest = (/** @type {any[]} */ lines, /** @type {(line: any) => string[]} */ endsOf, /** @type {(ends: string[], line: any) => any} */ between) => {
    const best = new Map();
    for (const line of sorted(lines, "probability", false)) {
      const ends = endsOf(line);
      if (ends[0] !== ends[1]) best.set(JSON.stringify(ends), between(ends, line));
    }
    return [...best.values()];
  };
  return { ...graph, groups: new Set(groups.map(({ name }) => name)), variables: [...new Set(graph.order.map(box))],
    edges: strongest(graph.edges, ({ source, target }) => [box(source), box(target)], ([source, target], edge) =>
      ({ ...edge, source, target, pair: { source: edge.source, target: edge.target } })),
    hidden_causes: strongest(graph.hidden_causes, ({ variables }) => variables.map(box).sort(), (variables, arc) =>
      ({ ...arc, variables, pair: { source: arc.variables[0], target: arc.variables[1] } })) };
}

/** The variables that match a pattern and are in no group yet, as a group under a name that nothing else has; null for fewer
 * than two.
 * @param {string} pattern @param {string[]} names @param {Group[]} groups @returns {Group | null} */
export function grouped(pattern, names, groups) {
  const box = boxes(groups);
  const members = matching(pattern, names).filter((name) => box(name) === name);
  let name = `${pattern.trim()} (${members.length})`;
  while (names.includes(name) || groups.some((other) => other.name === name)) name += "′";
  return members.length < 2 ? null : { name, members };
}

/** The part of a graph that these names are in. @param {any} graph @param {Set<string>} names @returns {any} */
export const partOf = (graph, names) => ({ ...graph, variables: graph.variables.filter((/** @type {string} */ name) => names.has(name)),
  edges: graph.edges.filter((/** @type {Edge} */ { source, target }) => names.has(source) && names.has(target)),
  hidden_causes: graph.hidden_causes.filter((/** @type {any} */ { variables }) => variables.every((/** @type {string} */ name) => names.has(name))) });

/** The name that a field of one line means, which holds it without its line breaks. @param {string} value @param {string[]} names */
export const meant = (value, names) =>
  names.includes(value) ? value : names.find((name) => name.replace(/[\r\n]/gu, "") === value) ?? value;

/** Patterns for names that begin or end alike, such as "mean *" or "lab_*", with the largest groups first.
 * @param {string[]} names @param {number} least how many names make a group */
export function likeNames(names, least = 3) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const name of names) {
    const [first, last] = [name.match(/^[^\s_.:-]+[\s_.:-]/u)?.[0], name.match(/[\s_.:-][^\s_.:-]+$/u)?.[0]];
    for (const pattern of [first && `${first}*`, last && `*${last}`]) if (pattern) counts.set(pattern, (counts.get(pattern) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count >= least && count < names.length).sort(([, one], [, other]) => other - one)
    .map(([pattern]) => pattern);
}

/** Where a number stands on the scale that the network read. Of columns on a log scale all numbers have one sign.
 * @param {number} value @param {boolean} log */
export const onScale = (value, log) => (log ? Math.sign(value) * Math.log10(Math.abs(value)) : value);

/** The numbers to name on a scale: both ends, and powers of ten that are not near them.
 * @param {number} low @param {number} high @param {boolean} log */
export function ticksOf(low, high, log) {
  const [from, to] = [onScale(low, log), onScale(high, log)];
  const whole = log ? Array.from({ length: Math.max(0, Math.floor(to) - Math.ceil(from) + 1) }, (_, index) => Math.ceil(from) + index) : [];
  const inside = whole.filter((power) => power - from > (to - from) / 5 && to - power > (to - from) / 5);
  const step = Math.ceil(inside.length / 3);
  return [low, ...inside.filter((_, index) => index % step === 0).map((power) => (low < 0 ? -(10 ** -power) : 10 ** power)), high];
}

/** Shares of a whole with two digits that add up to what the whole rounds to, so that bars sum to 1.00.
 * @param {number[]} shares */
export function inHundredths(shares) {
  const exact = shares.map((share) => share * 100);
  const rounded = exact.map(Math.floor);
  let left = Math.round(exact.reduce((sum, share) => sum + share, 0)) - rounded.reduce((sum, share) => sum + share, 0);
  const order = exact.map((_, index) => index).sort((one, other) =>
    (exact[other] - rounded[other]) - (exact[one] - rounded[one]));
  for (const index of order) {
    if (left <= 0) break;
    rounded[index] += 1;
    left -= 1;
  }
  return rounded.map((share) => (share / 100).toFixed(2));
}

/** A mapping with one more entry. Assigning would change the prototype for a column called "__proto__".
 * @template T @param {Record<string, T>} mapping @param {string} name @param {T} value */
export const withEntry = (mapping, name, value) => Object.fromEntries([...Object.entries(withoutEntry(mapping, name)), [name, value]]);

/** @template T @param {Record<string, T>} mapping @param {string} name @returns {Record<string, T>} */
export const withoutEntry = (mapping, name) => Object.fromEntries(Object.entries(mapping).filter(([each]) => each !== name));

/** The entry of this name, not what every object has, such as "constructor".
 * @template T @param {Record<string, T>} mapping @param {string} name @returns {T | undefined} */
export const entryOf = (mapping, name) => (Object.hasOwn(mapping, name) ? mapping[name] : undefined);

/** What a click on a variable makes of a question: the first names its cause, the second its effect, a third begins anew.
 * @param {{cause: string, effect: string}} question @param {string} name */
export function clicked(question, name) {
  if (!question.cause || question.effect || question.cause === name) return { cause: name, effect: "" };
  return { cause: question.cause, effect: name };
}

/** The names that a list such as "age, lab_*" means, in the order of the table.
 * @param {string} text @param {string[]} names */
export function matching(text, names) {
  const patterns = text.split(",").map((part) => part.trim()).filter(Boolean).map((part) =>
    new RegExp(`^${part.split("*").map((piece) => piece.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "iu"));
  return names.filter((name) => patterns.some((pattern) => pattern.test(name)));
}

/** Rows in the order of one of their keys; equal ones keep their order.
 * @template {Record<string, any>} R @param {R[]} rows @param {string} key @param {boolean} down @returns {R[]} */
export function sorted(rows, key, down) {
  const order = (/** @type {R} */ one, /** @type {R} */ other) =>
    (typeof one[key] === "string" ? one[key].localeCompare(other[key], "en", { numeric: true }) : one[key] - other[key]);
  return [...rows].sort((one, other) => (down ? -order(one, other) : order(one, other)));
}

/** States to go back to and forth. A step that fails is not taken: `undo` and `redo` only tell where they would lead, and
 * `took` moves there.
 * @template S */
export class History {
  /** @param {{past?: S[], future?: S[]}} kept @param {(states: {past: S[], future: S[]}) => void} keep */
  constructor(kept = {}, keep = () => {}) {
    this.past = kept.past ?? [];
    this.future = kept.future ?? [];
    this.keep = keep;
  }

  /** @param {S} before */
  add(before) {
    this.past = [...this.past, before].slice(-100);
    this.future = [];
    this.kept();
  }

  /** @param {"undo" | "redo"} direction @returns {S | undefined} */
  next(direction) {
    return (direction === "undo" ? this.past : this.future).at(-1);
  }

  /** @param {"undo" | "redo"} direction @param {S} now */
  took(direction, now) {
    if (direction === "undo") [this.past, this.future] = [this.past.slice(0, -1), [...this.future, now]];
    else [this.past, this.future] = [[...this.past, now], this.future.slice(0, -1)];
    this.kept();
  }

  kept() {
    this.keep({ past: this.past, future: this.future });
  }
}

/** The row and column of a square matrix at a place given as shares of its width and height; null outside of it.
 * @param {number} across @param {number} down @param {number} size @returns {[number, number] | null} */
export function cellAt(across, down, size) {
  const [row, column] = [Math.floor(down * size), Math.floor(across * size)];
  return [row, column].every((index) => index >= 0 && index < size) ? [row, column] : null;
}
