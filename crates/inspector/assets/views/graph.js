// The checkpoints of a session as a graph, like `git log --graph`: questions, calls that changed files, rewinds, rescues, forks,
// sub-agents and the head. A rewind begins a branch at its target; what it left is dimmed.

import { h, show, svg } from "../lib/dom.js";
import { all, attempt, get } from "../lib/api.js";
import { VirtualList } from "../lib/virtual.js";
import { clock, line, number, plural, short, visible } from "../lib/format.js";

const ROW = 28;
const COLUMN = 18;
const MOST_COLUMNS = 14;

/** Splits the journal into branches: a rewind ends one and begins the next at its target. */
function branches(rewinds, head) {
  const list = [{ from: 0, to: head, parent: null }];
  for (const rewind of [...rewinds].sort((a, b) => a.at - b.at)) {
    list.at(-1).to = rewind.at;
    list.push({ from: rewind.at, to: head, parent: Math.max(0, rewind.to - 1) });
  }
  // What leads to the head: the last branch, and of each branch before it the part up to the target.
  let [branch, until] = [list.at(-1), head];
  while (branch) {
    branch.kept = until;
    until = branch.parent + 1;
    const position = branch.parent;
    branch = position === null ? null : list.find((each) => each !== branch && each.from <= position && position < each.to);
  }
  return list;
}

async function points(id, report, head, signal) {
  const session = `/session/${id}`;
  const list = [];
  const add = (position, kind, label, href, at) => list.push({ position, kind, label, href, at });
  const [marks, changes, questions] = await Promise.all([
    all(`/sessions/${id}/records`, "lines", { kind: ["evaluation_started", "evaluation_finished", "rewound"], all: true }, 5000, signal),
    attempt(all(`/sessions/${id}/changes`, "calls", {}, 5000, signal), signal, []),
    get("/query", { sql: `SELECT position, substr(text, 1, 200) FROM messages WHERE session = '${id}' AND role = 'user' ORDER BY position LIMIT 2000`, limit: 2000 }, signal).then((page) => page.rows, () => []),
  ]);
  const question = (position) => questions.find(([at]) => at > position && at < position + 12)?.[1];
  if (report.parent) add(0, "fork", `begins as a ${report.origin} of ${short(report.parent.session)}${report.parent.position === null ? "" : ` at ${report.parent.position}`}`, `/session/${report.parent.session}${report.parent.position === null ? "" : `?at=${report.parent.position}`}`);
  else add(0, "start", "start", `${session}?at=1&tab=graph`);
  for (const row of marks) if (row.kind !== "rewound") add(row.position, row.kind === "evaluation_started" ? "question" : "answer", row.kind === "evaluation_started" ? line(question(row.position) ?? "question", 90) : line(row.text, 80), `${session}?at=${row.position + 1}`, row.at);
  for (const row of changes) {
    const names = (row.files ?? []).map((file) => file.file);
    add(row.position, row.kept ? "change" : "undone", `${row.tool}${row.kept ? "" : " (rolled back)"}: ${names.slice(0, 3).join(", ") || "files"}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`, `${session}/call/${row.call}`, row.at);
  }
  for (const row of marks.filter((each) => each.kind === "rewound")) {
    add(row.position, "rewind", line(row.text, 90), `${session}?at=${row.position + 1}&tab=graph`, row.at);
    if (row.data.rescue) add(row.position, "rescue", `files as they were before it (rescue:${row.position})`, `${session}?at=rescue:${row.position}&tab=files`, row.at);
  }
  for (const fork of report.forks) add(Math.max(0, fork.position - 1), "fork", `fork ${short(fork.session)}`, `/session/${fork.session}`);
  for (const child of report.sub_agents) add(child.started?.session === id ? child.started.position : 0, "child", `sub-agent ${short(child.session)}`, `/session/${child.session}`);
  add(head, "head", "head", session);
  const order = { start: -1, rescue: 1, head: 2 };
  return list.sort((a, b) => a.position - b.position || (order[a.kind] ?? 0) - (order[b.kind] ?? 0));
}

/** Gives each branch a column that no other one uses between its first and last row. */
function place(list, rows) {
  const branchOf = (position) => list.findLast((branch) => branch.from <= position) ?? list[0];
  const lastBefore = (position) => Math.max(0, rows.findLastIndex((row) => row.position <= position));
  for (const [index, row] of rows.entries()) {
    row.branch = branchOf(row.kind === "head" ? row.position - 1 : row.position);
    row.branch.first ??= index;
    row.branch.last = index;
    row.kept = row.branch.kept !== undefined && row.position <= row.branch.kept;
  }
  const used = [];
  for (const branch of list) {
    if (branch.first === undefined) continue;
    branch.root = branch.parent === null ? branch.first : Math.min(branch.first, lastBefore(branch.parent));
    let column = used.findIndex((until) => until < branch.root);
    if (column < 0) column = used.length;
    used[column] = branch.last;
    branch.column = Math.min(column, MOST_COLUMNS - 1);
    branch.source = branch.parent === null ? null : branchOf(branch.parent);
  }
  return Math.min(used.length, MOST_COLUMNS);
}

function drawRow(row, index, list, width) {
  const x = (branch) => 12 + branch.column * COLUMN;
  const middle = ROW / 2;
  const lines = [];
  for (const branch of list) {
    if (branch.first === undefined || index < branch.root || index > branch.last) continue;
    const name = `branch ${branch.kept === undefined ? "left" : ""}`;
    if (index === branch.root && branch.source && branch.root < branch.first) lines.push(svg("path", { d: `M ${x(branch.source)} ${middle} C ${x(branch.source)} ${ROW} ${x(branch)} ${middle} ${x(branch)} ${ROW}`, class: "edge" }));
    else if (index < branch.first) lines.push(svg("line", { x1: x(branch), x2: x(branch), y1: 0, y2: ROW, class: "edge" }));
    else {
      const begins = index === branch.first && branch.root === branch.first;
      lines.push(svg("line", { x1: x(branch), x2: x(branch), y1: begins ? middle : 0, y2: index === branch.last ? middle : ROW, class: name }));
    }
  }
  const left = 20 + width * COLUMN;
  return h(`div.record.point${row.kept ? "" : ".dim"}`, svg("svg", { width: left, height: ROW, viewBox: `0 0 ${left} ${ROW}`, "aria-hidden": "true", class: "lanes" }, lines, svg("circle", { cx: x(row.branch), cy: middle, r: row.kind === "head" ? 6.5 : 4.5, class: `node ${row.kind}` })),
    h("span.words.opens", { "data-href": `#${row.href}` }, visible(row.label)), h("span.quiet.num", row.kind === "head" ? "" : String(row.position)), row.at ? h("time.quiet", { datetime: row.at }, clock(row.at)) : null);
}

export async function graph(pane, { id, at, signal, go, head }) {
  const report = await get(`/sessions/${id}/graph`, {}, signal);
  const end = report.head ?? head;
  const list = branches(report.rewinds, end);
  const rows = await points(id, report, end, signal);
  const width = place(list, rows);
  const view = new VirtualList({
    label: "Checkpoints of the session", height: ROW,
    load: async (from, count) => rows.slice(from, from + count),
    draw: (row, index) => drawRow(row, index, list, width),
    select: (row) => row && go(row.href),
  });
  pane.classList.add("fill");
  show(pane, h("h2", "Graph"), h("p.quiet", `${number(list.length)} ${list.length === 1 ? "branch" : "branches"}, ${plural(report.rewinds.length, "rewind")}, ${plural(report.forks.length, "fork")}, ${plural(report.sub_agents.length, "sub-agent")}, ${plural(rows.length, "point")}. What a rewind left is dimmed.`), view.element);
  view.setTotal(rows.length);
  const here = at === null || Number.isNaN(Number(at)) ? rows.length - 1 : rows.findLastIndex((row) => row.position < Number(at));
  return () => view.reveal(here);
}
