// The graph of the page in a notebook: choose, require, forbid, ask. Python has the state; this draws it and asks for changes.
// Joined by bundle.py with graph.js, argument.js and dom.js of the page, whose names are used here.

function render({ model, el }) {
  const canvas = element("div", { class: "graph", role: "application", "aria-label": "Causal graph" });
  const panel = element("div", { class: "panel", "aria-live": "polite" });
  const said = element("ul", { class: "said", "aria-label": "What is known" });
  const trouble = element("p", { class: "trouble", role: "alert" });
  const answer = element("div", { class: "answer", "aria-live": "polite" });
  const [cause, effect] = ["Cause", "Effect"].map((label) => element("select", { "aria-label": label }));
  const undo = button("Undo", () => send({ undo: true }));
  el.classList.add("causal-arrow-widget");
  el.append(
    element("div", { class: "row" }, button("Fit", () => picture.fit()), undo,
      element("span", {}, "Effect of "), cause, element("span", {}, " on "), effect,
      button("Ask", () => send({ effect: [cause.value, effect.value] }))),
    canvas, trouble, panel, answer, said,
  );
  let picture, first = true, shown = "";

  /** Ask Python for something; the number makes two equal wishes two events. */
  function send(wish) {
    model.set("wish", { ...wish, number: (model.get("wish").number ?? 0) + 1 });
    model.save_changes();
  }

  function choose(names) {
    model.set("selected", names);
    model.save_changes();
    showSelected();
  }

  const argue = (label, argument) => button(label, () => send({ argument }));

  function showSelected() {
    const names = model.get("selected"), { argument, edges, hidden_causes: arcs } = model.get("graph");
    picture.select(...names);
    if (names.length === 1) {
      const [name] = names;
      fill(panel, element("b", {}, name),
        argue(argument.knowledge.roots.includes(name) ? "It may have causes" : "Nothing causes it", toggled(argument, "roots", name)),
        argue(argument.knowledge.leaves.includes(name) ? "It may cause something" : "It causes nothing",
          toggled(argument, "leaves", name)));
    } else if (names.length === 2) {
      const [source, target] = names;
      const edge = edges.find((each) => each.source === source && each.target === target);
      const arc = arcs.find(({ variables }) => variables.includes(source) && variables.includes(target));
      const words = edge ? `probability ${percent(edge.probability)}, direction ${edge.decided ?? edge.direction}`
        : arc ? `a hidden cause with probability ${percent(arc.probability)}` : "no edge";
      fill(panel, element("b", {}, edge ? `${source} → ${target}` : `${source}, ${target}`), element("span", {}, words),
        argue(`Require ${source} → ${target}`, required(argument, source, target)),
        argue(`Require ${target} → ${source}`, required(argument, target, source)),
        argue(`Forbid ${source} → ${target}`, forbidden(argument, source, target)),
        argue("Remove this knowledge", forgotten(argument, source, target)));
    } else fill(panel, element("span", { class: "quiet" }, "Choose an edge or a variable."));
  }

  function showGraph() {
    const graph = model.get("graph");
    picture.show(graph);
    const places = JSON.stringify(model.get("places"));
    if (places !== shown) picture.place(model.get("places"), first);
    [first, shown] = [false, places];
    for (const [list, at] of [[cause, 0], [effect, 1]]) {
      const before = list.value;
      fill(list, ...graph.variables.map((name) => element("option", { value: name }, name)));
      list.value = before || graph.order[at ? graph.order.length - 1 : 0];
    }
    fill(said, ...statements(graph.argument).map(([words, without]) =>
      element("li", {}, words, " ", argue("×", without))),
    ...graph.argument.knowledge.beliefs.map((belief) =>
      element("li", {}, `Believed: ${belief.statement} (${[belief.probability, belief.who].filter(Boolean).join(", ")})`)));
    showSelected();
  }

  function showAnswer() {
    const { lines = [], treatment, outcome } = model.get("answer");
    fill(answer, ...lines.map((line, index) => element(index ? "p" : "b", {}, line)));
    picture.mark(lines.length ? { cause: treatment, effect: outcome } : {});
  }

  const showTrouble = () => fill(trouble, model.get("trouble") || null);
  const showUndo = () => { undo.disabled = !model.get("can_undo"); };
  const listeners = { graph: showGraph, places: showGraph, selected: showSelected, answer: showAnswer, trouble: showTrouble,
    can_undo: showUndo };

  /** Draw, once the notebook has given the widget its place: before that there are no colors and no size. */
  function start() {
    picture = new GraphPicture(canvas, {
      onEdge: (source, target) => choose([source, target]),
      onNode: (name) => choose([name]),
      onNothing: () => choose([]),
    });
    for (const [name, listener] of Object.entries(listeners)) model.on(`change:${name}`, listener);
    for (const listener of [showGraph, showAnswer, showTrouble, showUndo]) listener();
  }

  // Notebooks write their theme on the page or its body.
  const themed = new MutationObserver(() => picture?.recolor());
  for (const root of [document.documentElement, document.body])
    themed.observe(root, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] });
  const placed = new ResizeObserver(() => {
    if (!el.isConnected || picture) return;
    placed.disconnect();
    start();
  });
  placed.observe(el);
  return () => {
    placed.disconnect();
    themed.disconnect();
    for (const [name, listener] of Object.entries(listeners)) model.off(`change:${name}`, listener);
    picture?.cy.destroy();
  };
}

export default { render };
