// Keys. A page registers what its keys do; `?` lists them.

import { h, button } from "./dom.js";

let bindings = [];
let prefix = null;
let ending = null;
const common = [];

/** Sets the keys that hold on every page: `[key, what it does, action]`. */
export function bindCommon(list) { common.push(...list); }

/** Sets the keys of a page, in place of those of the page before. */
export function bind(list) { bindings = list; }

const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const key = prefix ? `${prefix} ${event.key}` : event.key;
  const list = [...bindings, ...common];
  if (!prefix && event.key === "g" && list.some(([name]) => name.startsWith("g "))) {
    prefix = "g";
    // That of an earlier prefix would end this one.
    clearTimeout(ending);
    ending = setTimeout(() => { prefix = null; }, 1200);
    event.preventDefault();
    return;
  }
  prefix = null;
  const found = list.find(([name]) => name === key);
  if (found) { event.preventDefault(); found[2](event); }
});

/** Shows the keys in a dialog. */
export function help() {
  const rows = [...bindings, ...common].map(([key, text]) => h("tr", h("th", { scope: "row" }, h("kbd", key)), h("td", text)));
  const dialog = h("dialog", { "aria-labelledby": "keys-title" }, h("h2", { id: "keys-title" }, "Keys"), h("table.keys", h("tbody", rows)),
    h("p.actions", button("Close", () => dialog.close())));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
