// @ts-check
// How the table is read: which columns, of which kinds, with which roles, and what about missing cells. Changes are
// collected here, because the network has to read the table again for them.

import { button, byId, element } from "./dom.js";
import { entryOf, matching, withEntry, withoutEntry } from "./logic.js";

const KIND_WORDS = { number: "number", binary: "yes or no", ordered: "ordered levels", category: "category" };
const FRESH = { drop: [], missing: "auto", scale: "auto", kinds: {}, ordered: {}, na: [], interventions: null,
  environments: null };

const isNumeral = (text) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);

/** The same choices always give the same text. */
export function canonical(choices) {
  const { drop, missing, scale, kinds, ordered, na, interventions, environments } = { ...FRESH, ...choices };
  const entries = (mapping) => Object.entries(mapping).sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([[...drop].sort(), missing, scale, entries(kinds), entries(ordered), [...na].sort(), interventions,
    environments]);
}

export class ColumnsPanel {
  /** `onRead` gets the choices to read the table with. */
  constructor(onRead) {
    this.onRead = onRead;
    this.before = this.draft = FRESH;
    byId("read-again").addEventListener("click", () => onRead(this.draft));
    byId("discard").addEventListener("click", () => this.set(this.before));
    byId("missing").addEventListener("change", (event) => this.change({ missing: event.target.value }));
    byId("scale").addEventListener("change", (event) => this.change({ scale: event.target.value }));
    byId("use-only").addEventListener("click", () => this.useMatching(true));
    byId("use-without").addEventListener("click", () => this.useMatching(false));
    for (const role of ["interventions", "environments"]) {
      byId(role).addEventListener("change", (event) => this.change({ [role]: event.target.value || null }));
    }
  }

  /** Show a session: what was read, or what was asked for if that failed, so that it can be put right. */
  show(facts, server) {
    this.table = facts.table;
    this.wasRead = facts.graph !== null;
    this.reads = new Set(server.reads);
    this.model = server.model;
    this.before = facts.choices;
    this.draft = structuredClone(["failed", "cancelled"].includes(facts.state) ? facts.asked : facts.choices);
    this.fillRoles();
    this.fillMissing();
    this.render();
  }

  set(choices) {
    this.draft = structuredClone(choices);
    this.render();
  }

  change(some) {
    this.set({ ...this.draft, ...some });
  }

  /** The draft with an offer of the trust card accepted, and without `others` that cannot be used as they are. */
  accepting(offer, others = []) {
    const { kinds, ordered, interventions, environments } = this.draft;
    const decided = (name) => [kinds, ordered, offer.kinds].some((each) => Object.hasOwn(each, name)) ||
      name === interventions || name === environments;
    const drop = [...new Set([...this.draft.drop, ...others.filter((name) => !decided(name)), ...offer.drop])];
    const na = [...new Set([...this.draft.na, ...offer.na])];
    return { ...this.draft, drop, na, missing: offer.missing ?? this.draft.missing,
      kinds: { ...this.draft.kinds, ...offer.kinds } };
  }

  /** Use only the columns whose names match the pattern, or all that are used now but those. */
  useMatching(only) {
    const names = this.table.columns.map(({ name }) => name);
    const meant = new Set(matching(byId("column-pattern").value, names));
    byId("column-pattern").setCustomValidity(meant.size ? "" : "No column has such a name: separate names with commas; * stands for any letters.");
    if (!byId("column-pattern").reportValidity()) return;
    this.change({ drop: only ? names.filter((name) => !meant.has(name)) : [...new Set([...this.draft.drop, ...meant])] });
  }

  focusOn(name) {
    byId("columns-panel").open = true;
    const choice = [...byId("columns").querySelectorAll("select")].find((each) => each.dataset.kindOf === name);
    choice?.scrollIntoView({ block: "center" });
    choice?.focus();
  }

  fillRoles() {
    const options = (none) => [element("option", { value: "" }, none),
      ...this.table.columns.map(({ name }) => element("option", { value: name }, name))];
    byId("interventions").replaceChildren(...options("none"));
    byId("environments").replaceChildren(...options("none"));
    const able = this.reads.has("intervened");
    byId("interventions").disabled = !able;
    byId("interventions-hint").textContent = able
      ? "Names the target of the experiment in each row: several separated by ;, empty for none."
      : `The network ${this.model} cannot read experiments yet: leave out such a column and, if you can, the rows in ` +
        "which something was set.";
  }

  fillMissing() {
    const able = this.reads.has("observed");
    const { missing } = this.table;
    byId("missing").replaceChildren(
      element("option", { value: "auto" }, able ? "leave them to the network" : missing ? "not decided yet" : "none are missing"),
      ...(able ? [] : [element("option", { value: "model", disabled: true }, "leave them to the network")]),
      element("option", { value: "drop" }, "leave out incomplete observations"),
      element("option", { value: "impute" }, "fill the gaps with predictions"));
    byId("missing-hint").textContent = able || !missing ? ""
      : `The network ${this.model} cannot read missing cells yet: leave out incomplete observations, or fill the gaps.`;
  }

  render() {
    const { draft, table } = this;
    const { kindOf, column } = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset ?? {};
    const [focused, kind] = [kindOf ?? column, kindOf ? "kindOf" : "column"];
    byId("columns").replaceChildren(...table.columns.map((column) => this.row(column)));
    if (focused) {
      [...byId("columns").querySelectorAll("input, select")].find((each) => each.dataset[kind] === focused)?.focus();
    }
    byId("missing").value = ["model", "error"].includes(draft.missing) ? "auto" : draft.missing;
    byId("scale").value = draft.scale;
    byId("interventions").value = draft.interventions ?? "";
    byId("environments").value = draft.environments ?? "";
    byId("na-note").textContent = draft.na.length ? `Counted as missing: ${draft.na.join(", ")}.` : "";
    const changed = canonical(draft) !== canonical(this.before);
    byId("read-again").disabled = byId("discard").disabled = !changed;
    byId("read-again").textContent = this.wasRead ? "Read the table again" : "Read the table";
  }

  row(column) {
    const { name, missing } = column;
    const used = !this.draft.drop.includes(name);
    const role = name === this.draft.interventions ? "names the experiments"
      : name === this.draft.environments ? "names the environments" : null;
    const use = element("input", { type: "checkbox", "data-column": name, checked: used, onchange: (event) => this.change({
      drop: event.target.checked ? this.draft.drop.filter((each) => each !== name) : [...this.draft.drop, name] }) });
    const parts = [element("label", { class: "column-name" }, use, ` ${name}`),
      role ? element("span", { class: "number" }, role) : this.kindChoice(column, !used)];
    if (missing) parts.push(element("small", { class: "number" }, `${missing} missing`));
    const order = used && !role ? this.orderEditor(column) : null;
    return element("li", { class: "column" }, element("div", { class: "column-line" }, ...parts), order);
  }

  kindChoice(column, disabled) {
    const { name, detected, values } = column;
    const [numeric, levels] = [values.some(isNumeral), values.length >= 2];
    const possible = {
      number: numeric || (!values.length && detected !== null),
      binary: values.length === 2,
      ordered: levels,
      category: levels,
    };
    const cannot = (kind) => kind === "category" && values.length > 2 && !this.reads.has("levels");
    const choice = element("select", { "data-kind-of": name, "aria-label": `Kind of ${name}`, disabled,
      onchange: (event) => this.setKind(column, event.target.value) },
    element("option", { value: "" }, `automatic: ${detected ? KIND_WORDS[detected] : "cannot be read"}`),
    ...Object.keys(KIND_WORDS).filter((kind) => possible[kind]).map((kind) =>
      element("option", { value: kind, disabled: cannot(kind) },
        KIND_WORDS[kind] + (cannot(kind) ? ` (${this.model} cannot read them yet)` : ""))));
    choice.value = Object.hasOwn(this.draft.ordered, name) ? "ordered" : entryOf(this.draft.kinds, name) ?? "";
    return choice;
  }

  setKind({ name, values }, kind) {
    const inOrder = kind === "ordered" && !values.every(isNumeral);
    const kinds = withoutEntry(this.draft.kinds, name);
    const ordered = withoutEntry(this.draft.ordered, name);
    this.change({ kinds: kind && !inOrder ? withEntry(kinds, name, kind) : kinds,
      ordered: inOrder ? withEntry(ordered, name, values) : ordered });
  }

  /** The levels of a column whose order the person gives, with buttons to move them. */
  orderEditor({ name }) {
    const levels = entryOf(this.draft.ordered, name);
    if (!levels) return null;
    const move = (place, step) => {
      const next = [...levels];
      [next[place], next[place + step]] = [next[place + step], next[place]];
      this.change({ ordered: withEntry(this.draft.ordered, name, next) });
      byId("columns").querySelector(`[data-moved="${CSS.escape(name)}"] li:nth-child(${place + step + 1}) button:enabled`)?.focus();
    };
    return element("div", { class: "hint" }, "the smallest first", element("ol", { class: "order", "data-moved": name, "aria-label": `Order of ${name}, the smallest first` },
      ...levels.map((level, place) => element("li", {}, element("span", {}, level), element("span", { class: "row" },
        button("↑", () => move(place, -1), { "aria-label": `Move ${level} up`, disabled: place === 0 }),
        button("↓", () => move(place, 1), { "aria-label": `Move ${level} down`, disabled: place === levels.length - 1 }))))));
  }
}
