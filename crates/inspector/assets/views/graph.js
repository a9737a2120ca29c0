// The branches of a session as a graph: rewinds, forks, sub-agents, rescues and the head, like `git log --graph`.

import { h, show, svg } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { number, short, visible } from "../lib/format.js";

const ROW = 30;
const COLUMN = 22;

/** Splits the journal into branches: a rewind ends one and begins the next at its target. */
function branches(rewinds, head) {
  const list = [{ from: 0, to: head, column: 0, parent: null }];
  let current = list[0];
  for (const rewind of [...rewinds].sort((a, b) => a.at - b.at)) {
    current.to = rewind.at;
    const next = { from: rewind.at, to: head, column: list.length, parent: rewind.to, rewind };
    list.push(next);
    current = next;
  }
  return list;
}

export async function graph(pane, { id, signal, go, head }) {
  const report = await get(`/sessions/${id}/graph`, {}, signal);
  const list = branches(report.rewinds, report.head ?? head);
  const points = [];
  const add = (position, kind, label, href) => points.push({ position, kind, label, href });
  if (report.parent) add(0, "fork", `begins as a ${report.origin} of ${short(report.parent.session)}${report.parent.position === null ? "" : ` at ${report.parent.position}`}`, `/session/${report.parent.session}${report.parent.position === null ? "" : `?at=${report.parent.position}`}`);
  else add(0, "start", "start", `/session/${id}?at=1`);
  for (const rewind of report.rewinds) {
    add(rewind.to, "target", `target of the rewind at ${rewind.at}`, `/session/${id}?at=${rewind.to}`);
    add(rewind.at, "rewind", `rewound to ${rewind.to}`, `/session/${id}?at=${rewind.at + 1}`);
  }
  for (const fork of report.forks) add(fork.position, "fork", `fork ${short(fork.session)}`, `/session/${fork.session}`);
  for (const child of report.sub_agents) add(child.started?.session === id ? child.started.position : 0, "child", `sub-agent ${short(child.session)}`, `/session/${child.session}`);
  for (const rewind of report.rewinds) if (rewind.rescue) add(rewind.at, "rescue", `files kept apart (rescue:${rewind.at})`, `/session/${id}?at=rescue:${rewind.at}&tab=files`);
  add((report.head ?? head), "head", "head", `/session/${id}`);
  points.sort((a, b) => a.position - b.position || (a.kind === "head" ? 1 : -1));
  const shown = points.slice(-400);
  const columnOf = (position) => [...list].reverse().find((branch) => branch.from <= position && position <= branch.to)?.column ?? 0;
  const wide = Math.min(list.length, 12);
  const column = (index) => 14 + (index % 12) * COLUMN;
  const y = (index) => 18 + index * ROW;
  const rowOf = new Map(shown.map((point, index) => [point, index]));
  const nearest = (position) => { let best = 0; for (const [point, index] of rowOf) if (point.position <= position) best = index; return best; };
  const lines = list.map((branch) => {
    const [a, b] = [nearest(branch.from), nearest(branch.to)];
    const x = column(branch.column);
    const link = branch.parent === null ? null : svg("path", { d: `M ${column(columnOf(branch.parent))} ${y(nearest(branch.parent))} C ${column(columnOf(branch.parent))} ${y(a) - ROW}, ${x} ${y(nearest(branch.parent))}, ${x} ${y(a)}`, class: "edge" });
    return [link, svg("line", { x1: x, x2: x, y1: y(a), y2: y(b), class: `branch ${branch === list.at(-1) ? "current" : ""}` })];
  });
  const dots = shown.map((point, index) => svg("circle", { cx: column(columnOf(point.position)), cy: y(index), r: point.kind === "head" ? 7 : 5, class: `node ${point.kind}` }));
  const left = 24 + wide * COLUMN;
  show(pane, h("h2", "Graph"), h("p.quiet", `${number(list.length)} ${list.length === 1 ? "branch" : "branches"}, ${number(report.forks.length)} forks, ${number(report.sub_agents.length)} sub-agents.`,
    points.length > shown.length ? ` The latest ${shown.length} of ${points.length} points.` : ""),
  h("div.graph", svg("svg", { width: left, height: y(shown.length), viewBox: `0 0 ${left} ${y(shown.length)}`, "aria-hidden": "true" }, lines, dots),
    h("ol.plain", shown.map((point) => h("li", { height_px: ROW }, h("a", { href: `#${point.href}`, onclick: (event) => { event.preventDefault(); go(point.href); } }, visible(point.label)), h("span.quiet", ` ${point.position}`))))));
}
