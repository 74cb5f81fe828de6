// A picture that is shown smaller than it is, or has many names, gets a button that opens it in a window of its own,
// to zoom and to move about.

const ZOOM_STEP = 1.4;
const MANY_NAMES = 30;

function button(text, title, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "picture-enlarge";
  made.textContent = text;
  made.title = title;
  made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}

function enlarge(figure) {
  const dialog = document.createElement("dialog");
  dialog.className = "picture-window md-typeset";
  const frame = document.createElement("div");
  frame.className = figure.className; // the rules for dark pages hold for what is inside
  const picture = figure.querySelector("svg").cloneNode(true);
  frame.append(picture);

  const whole = picture.viewBox.baseVal;
  const start = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
  const view = { ...start };
  const show = () => picture.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);

  // The point of the picture under a point of the screen.
  const under = (x, y) => new DOMPoint(x, y).matrixTransform(picture.getScreenCTM().inverse());
  const zoom = (factor, x, y) => {
    const limited = Math.min(Math.max(factor, start.width / 40 / view.width), (start.width * 1.5) / view.width);
    const point = under(x, y);
    view.x = point.x - (point.x - view.x) * limited;
    view.y = point.y - (point.y - view.y) * limited;
    view.width *= limited;
    view.height *= limited;
    show();
  };
  const zoomAtMiddle = (factor) => {
    const box = picture.getBoundingClientRect();
    zoom(factor, box.x + box.width / 2, box.y + box.height / 2);
  };

  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1 / 1.15 : 1.15, event.clientX, event.clientY);
  }, { passive: false });
  picture.addEventListener("pointerdown", (event) => picture.setPointerCapture(event.pointerId));
  picture.addEventListener("pointermove", (event) => {
    if (!picture.hasPointerCapture(event.pointerId)) return;
    const scale = picture.getScreenCTM().a;
    view.x -= event.movementX / scale;
    view.y -= event.movementY / scale;
    show();
  });

  const tools = document.createElement("div");
  tools.className = "picture-tools";
  tools.append(
    button("+", "Zoom in", () => zoomAtMiddle(1 / ZOOM_STEP)),
    button("−", "Zoom out", () => zoomAtMiddle(ZOOM_STEP)),
    button("Whole picture", "Show the whole picture", () => { Object.assign(view, start); show(); }),
    button("Close", "Close", () => dialog.close()),
  );
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoomAtMiddle(1 / ZOOM_STEP);
    if (event.key === "-") zoomAtMiddle(ZOOM_STEP);
  });
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(tools, frame);
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("DOMContentLoaded", () => {
  for (const figure of document.querySelectorAll("figure.picture")) {
    const natural = parseFloat(getComputedStyle(figure).getPropertyValue("--natural-width"));
    const large = figure.querySelectorAll("text").length > MANY_NAMES;
    if (!large && figure.clientWidth > 0.95 * natural) continue; // it is as large as it needs to be
    figure.append(button("Enlarge", "Enlarge this picture", () => enlarge(figure)));
  }
});
