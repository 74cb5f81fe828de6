// @ts-check
// What a person says about the graph: statements as the server takes them. Arguments are never changed in place.

/** @typedef {any} Argument as the API describes it */

const same = (one, other) => one[0] === other[0] && one[1] === other[1];
const without = (edges, edge) => edges.filter((each) => !same(each, edge));
const copy = (argument) => structuredClone(argument);

/** Whether two arguments say the same, in whichever order. */
export function isSame(one, other) {
  const canonical = ({ knowledge, version: _, ...settings }) => JSON.stringify([Object.entries(settings).sort(),
    ...Object.keys(knowledge).sort().map((kind) => [kind, kind === "tiers" ? knowledge.tiers.map((tier) => [...tier].sort())
      : knowledge[kind].map((entry) => JSON.stringify(entry)).sort()])]);
  return canonical(one) === canonical(other);
}

/** The argument with nothing said about the two variables, in either direction. */
export function forgotten(argument, source, target) {
  const next = copy(argument);
  for (const kind of ["required", "forbidden"]) {
    next.knowledge[kind] = without(without(next.knowledge[kind], [source, target]), [target, source]);
  }
  return next;
}

export function required(argument, source, target) {
  const next = forgotten(argument, source, target);
  next.knowledge.required.push([source, target]);
  return next;
}

/** The argument without this direction; what was said about the other one stays. */
export function forbidden(argument, source, target) {
  const next = copy(argument);
  next.knowledge.required = without(next.knowledge.required, [source, target]);
  next.knowledge.forbidden = [...without(next.knowledge.forbidden, [source, target]), [source, target]];
  return next;
}

/** The argument with a variable among the roots, leaves or randomized ones, or no longer. */
export function toggled(argument, kind, name) {
  const next = copy(argument);
  const names = next.knowledge[kind];
  next.knowledge[kind] = names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
  return next;
}

/** The argument with these variables among the roots. */
export function withRoots(argument, names) {
  const next = copy(argument);
  next.knowledge.roots = [...new Set([...next.knowledge.roots, ...names])];
  return next;
}

/** The argument with these variables in the first tier and all others in the second. */
export function firstTier(argument, names, variables) {
  const next = copy(argument);
  next.knowledge.tiers = [names, variables.filter((name) => !names.includes(name))];
  return next;
}

/** The argument with or without the statement that two variables share no hidden cause. */
export function withoutHiddenCause(argument, one, other, said) {
  const next = copy(argument);
  const pair = [one, other].sort();
  next.knowledge.no_hidden_cause = without(without(next.knowledge.no_hidden_cause, pair), [...pair].reverse());
  if (said) next.knowledge.no_hidden_cause.push(pair);
  return next;
}

/** The argument with a variable in a tier, counted from 0; null for no tier. */
export function inTier(argument, name, tier) {
  const next = copy(argument);
  const tiers = next.knowledge.tiers.map((members) => members.filter((each) => each !== name));
  if (tier !== null) {
    while (tiers.length <= tier) tiers.push([]);
    tiers[tier].push(name);
  }
  next.knowledge.tiers = tiers.filter((members) => members.length);
  return next;
}

export function tierOf(argument, name) {
  const place = argument.knowledge.tiers.findIndex((members) => members.includes(name));
  return place < 0 ? null : place;
}

/** Each statement in words, with the argument that lacks it. */
export function statements(argument) {
  const list = [];
  const { required: needed, forbidden: ruledOut, tiers, roots, leaves, randomized, no_hidden_cause: open }
    = argument.knowledge;
  const lacking = (kind, keep) => {
    const next = copy(argument);
    next.knowledge[kind] = next.knowledge[kind].filter(keep);
    return next;
  };
  for (const edge of needed) {
    list.push([`${edge[0]} → ${edge[1]} is required`, lacking("required", (each) => !same(each, edge))]);
  }
  for (const edge of ruledOut) {
    list.push([`${edge[0]} → ${edge[1]} is forbidden`, lacking("forbidden", (each) => !same(each, edge))]);
  }
  tiers.forEach((members, place) => {
    list.push([`Tier ${place + 1}: ${members.join(", ")}`, lacking("tiers", (_, index) => index !== place)]);
  });
  for (const belief of argument.knowledge.beliefs) {
    list.push([`Believed with probability ${belief.probability}: ${belief.statement}`,
      lacking("beliefs", (each) => JSON.stringify(each) !== JSON.stringify(belief))]);
  }
  for (const name of roots) list.push([`Nothing here causes ${name}`, lacking("roots", (each) => each !== name)]);
  for (const name of leaves) list.push([`${name} causes nothing here`, lacking("leaves", (each) => each !== name)]);
  for (const name of randomized) list.push([`${name} was randomized`, lacking("randomized", (each) => each !== name)]);
  for (const pair of open) {
    list.push([`${pair[0]} and ${pair[1]} share no hidden cause`,
      lacking("no_hidden_cause", (each) => !same(each, pair))]);
  }
  return list;
}
