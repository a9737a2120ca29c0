// The files at the selected point: a tree, their content, the call that wrote each line, and what is not covered.

import { h, show, button } from "../lib/dom.js";
import { all, attempt, get } from "../lib/api.js";
import { bytes, plural, visible } from "../lib/format.js";
import { text } from "../lib/text.js";

function tree(paths) {
  const root = { folders: new Map(), files: [] };
  for (const path of paths) {
    const names = path.split("/");
    let folder = root;
    for (const name of names.slice(0, -1)) {
      if (!folder.folders.has(name)) folder.folders.set(name, { folders: new Map(), files: [] });
      folder = folder.folders.get(name);
    }
    folder.files.push([names.at(-1), path]);
  }
  return root;
}

function draw(folder, open, depth = 0) {
  return h("ul.tree", [...folder.folders].sort().map(([name, inner]) => {
    // What is inside a folder is drawn when it is opened.
    const box = h("details", { open: depth < 1 && folder.folders.size < 30 }, h("summary", `${visible(name)}/`));
    const load = () => { if (box.open && box.children.length === 1) box.append(draw(inner, open, depth + 1)); };
    box.addEventListener("toggle", load);
    load();
    return h("li", box);
  }), folder.files.sort().map(([name, path]) => h("li", button(visible(name), () => open(path), { class: "link" }))));
}

export async function files(pane, { id, at, point, signal }) {
  const paths = await all(`/sessions/${id}/files`, "paths", { at: point() }, 20000, signal);
  const content = h("div.file-content", h("p.quiet", paths.length ? "Choose a file." : "No files are recorded at this point."));
  const failing = (action) => action().catch((error) => show(content, h("p.error", { role: "alert" }, error.message)));
  const blame = async (path) => {
    const report = await get(`/sessions/${id}/blame`, { path, at: point() }, signal);
    const lines = report.lines.slice(0, 5000);
    let last = null;
    show(content, h("h3", h("code", visible(path)), " ", button("Content", () => failing(() => open(path)))),
      h("div.scroll", { tabindex: "0", role: "region", "aria-label": `Blame of ${visible(path)}` }, h("table.blame", h("thead", h("tr", h("th", { scope: "col" }, "Written by"), h("th", { scope: "col" }, "Line"), h("th", { scope: "col" }, "Text"))), h("tbody", lines.map((line) => {
        const call = line.call === null ? null : report.calls[line.call];
        const fresh = line.call !== last;
        last = line.call;
        return h("tr", { class: fresh ? "fresh" : null }, h("td", fresh ? (call ? h("a", { href: `#/session/${call.session}/call/${call.call}`, title: visible(call.question ?? "") }, `${visible(call.tool)}, turn ${call.turn}`) : h("span.quiet", "not by a call")) : ""),
          h("td.num.quiet", line.number), h("td", h("code", visible(line.text.slice(0, 2000)) || " ")));
      })))), report.lines.length > lines.length ? h("p.quiet", `${report.lines.length - lines.length} more lines.`) : null);
  };
  const open = async (path) => {
    const file = await get(`/sessions/${id}/file`, { path, at: point() }, signal);
    show(content, h("h3", h("code", visible(path)), h("span.quiet", ` ${bytes(file.bytes)} `), file.text === null ? null : button("Who wrote each line", () => failing(() => blame(path)))),
      file.text === null ? h("p.quiet", "Not text.") : text(file.text, { label: `Content of ${visible(path)}`, wrap: false }));
  };
  const search = h("input", { type: "search", id: "path-filter", placeholder: "Filter paths" });
  const shelf = h("div");
  const list = () => show(shelf, draw(tree(paths.filter((path) => path.toLowerCase().includes(search.value.toLowerCase())).slice(0, 5000)), (path) => failing(() => open(path))));
  search.addEventListener("input", list);
  list();
  const uncovered = h("div");
  show(pane, h("h2", at === null ? "Files" : `Files at point ${at}`), h("p.quiet", `${plural(paths.length, "file")}. `, "Paths that snapshots leave out (the repository's own data, large ignored directories) are not listed."), uncovered,
    h("label.hidden", { for: "path-filter" }, "Filter paths"), search, h("div.two", shelf, content));
  const page = await attempt(get(`/sessions/${id}/records`, { kind: "session_created", all: true, limit: 1 }, signal), signal);
  const left = page?.lines?.[0]?.data?.coverage?.uncovered ?? [];
  if (left.length) show(uncovered, h("details", h("summary", `${plural(left.length, "path")} not covered`), h("ul", left.map((path) => h("li", h("code", visible(path.path ?? path)))))));
}
