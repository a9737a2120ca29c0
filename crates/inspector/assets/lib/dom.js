// Elements from data. Text becomes text nodes only: nothing that a model, a tool or a file says is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (name === "width%") element.style.width = `${value}%`;
    else if (name === "top") element.style.top = `${value}px`;
    else if (name === "height_px") element.style.height = `${value}px`;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** Appends children: elements, texts, numbers, lists of them; `null` and `false` are left out. */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Creates an element. A name may carry classes: `h("p.quiet")`. */
export function h(name, properties, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  if (properties instanceof Node || Array.isArray(properties) || typeof properties !== "object") {
    return fill(element, null, [properties, ...children]);
  }
  return fill(element, properties, children);
}

/** Creates an element of SVG. */
export function svg(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

/** Replaces what an element holds. */
export function show(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** A button. */
export function button(label, action, properties = {}) {
  return h("button", { type: "button", onclick: action, ...properties }, label);
}

/** Shows a short message, for screen readers too. */
export function notice(text, kind = "info") {
  const box = h(`p.notice.${kind}`, text, button("×", () => box.remove(), { "aria-label": "Dismiss" }));
  document.getElementById("notices").append(box);
  setTimeout(() => box.remove(), kind === "error" ? 15000 : 6000);
}

/** Asks in a dialog; resolves to the values of its form, or to `null`. */
export function ask(title, content, confirm, { danger = false } = {}) {
  return new Promise((resolve) => {
    const form = h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), content,
      h("p.actions", button("Cancel", () => dialog.close()),
        h(`button${danger ? ".danger" : ".primary"}`, { type: "submit", value: "yes" }, confirm)));
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    let answer = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      answer = Object.fromEntries(new FormData(form));
      dialog.close();
    });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(answer); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
