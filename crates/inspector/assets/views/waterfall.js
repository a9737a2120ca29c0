// What ran when, around the selected point: bars on an axis of time, with lanes for the model, for people and for tools. Gaps in
// which no process drove the session are hatched.

import { h, show, svg, button } from "../lib/dom.js";
import { all } from "../lib/api.js";
import { clock, duration, line, visible } from "../lib/format.js";
import { Lanes } from "./records.js";

const WINDOW = 400;

export async function waterfall(pane, { id, at, head, signal, go }) {
  const around = at === null || Number.isNaN(Number(at)) ? head : Number(at);
  let from = Math.max(0, around - WINDOW / 2);
  const draw = async () => {
    const rows = await all(`/sessions/${id}/records`, "lines", { from, all: true }, WINDOW, signal);
    if (!rows.length) { show(pane, h("p.quiet", "No records.")); return; }
    const lanes = new Lanes();
    lanes.add(rows);
    lanes.at(0);
    const spans = lanes.sorted.map((span) => ({ ...span, a: Date.parse(span.start), b: Date.parse(span.end ?? rows.at(-1).at) }));
    const begin = Date.parse(rows[0].at);
    const end = Math.max(Date.parse(rows.at(-1).at), begin + 1, ...spans.map((span) => span.b));
    const width = Math.max(320, Math.min(1100, pane.clientWidth - 24));
    const left = 86;
    const x = (time) => left + ((time - begin) / (end - begin)) * (width - left - 8);
    const count = Math.max(3, ...spans.map((span) => span.lane + 1));
    const height = 34 + count * 24;
    const names = ["model", "person", ...Array.from({ length: count - 2 }, (_, index) => (index ? `tool ${index + 1}` : "tools"))];
    const gaps = rows.slice(1).map((row, index) => [Date.parse(rows[index].at), Date.parse(row.at), rows[index].position]).filter(([a, b, position]) => b - a > Math.max(5000, (end - begin) / 200) && !lanes.at(position).length);
    const open = (span) => go(span.kind === "call" ? `/session/${id}/call/${span.key.split(" ")[1]}` : span.kind === "request" ? `/session/${id}/request/${span.from}` : `/session/${id}?at=${span.from + 1}`);
    const bars = spans.map((span) => svg("g", { tabindex: "0", role: "link", "aria-label": `${span.kind} ${visible(span.name ?? "")}, ${duration(span.b - span.a)}${span.failed ? ", failed" : ""}`,
      onclick: () => open(span), onkeydown: (event) => { if (event.key === "Enter") open(span); } },
    svg("title", {}, `${visible(span.name ?? span.kind)} · ${duration(span.b - span.a)}`),
    svg("rect", { x: x(span.a), y: 26 + span.lane * 24, width: Math.max(2, x(span.b) - x(span.a)), height: 18, rx: 2, class: `bar ${span.failed ? "failed" : ["model", "person"][span.lane] ?? "tool"}` }),
    x(span.b) - x(span.a) > 50 ? svg("text", { x: x(span.a) + 4, y: 39 + span.lane * 24, class: "bar-name" }, line(span.name ?? span.kind, Math.floor((x(span.b) - x(span.a)) / 7))) : null));
    const marks = rows.filter((row) => row.kind === "rewound" || row.kind === "session_stopped" || row.kind === "evaluation_started").map((row) => svg("g", {},
      svg("title", {}, `${row.kind.replaceAll("_", " ")} at ${clock(row.at)}`), svg("line", { x1: x(Date.parse(row.at)), x2: x(Date.parse(row.at)), y1: 22, y2: height, class: `mark ${row.kind}` })));
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Time of requests, waits and calls" },
      names.map((name, lane) => svg("text", { x: 4, y: 39 + lane * 24, class: "lane-name" }, name)),
      svg("text", { x: left, y: 14, class: "axis" }, clock(begin)), svg("text", { x: width - 8, y: 14, class: "axis", "text-anchor": "end" }, `${clock(end)} (${duration(end - begin)})`),
      gaps.map(([a, b]) => svg("rect", { x: x(a), y: 22, width: Math.max(1, x(b) - x(a)), height: height - 22, class: "gap" }, svg("title", {}, `nobody drove it for ${duration(b - a)}`))),
      marks, bars);
    const table = h("details", h("summary", "The same as a table"), h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Table of spans" }, h("table.list", h("thead", h("tr", ["What", "Name", "Start", "Took", "Outcome"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", spans.map((span) => h("tr", h("td", span.kind), h("td", visible(span.name ?? "–")), h("td", clock(span.start)), h("td.num", span.end ? duration(span.b - span.a) : "open"), h("td", span.failed ? "failed" : span.end ? "ended" : "open")))))));
    show(pane, h("h2", "Time"), h("p.quiet", `Records ${from} to ${rows.at(-1).position}. `, gaps.length ? "Hatched: no process drove the session." : ""),
      h("p.actions", button("Earlier", () => { from = Math.max(0, from - WINDOW); return draw(); }, { disabled: from === 0 }), button("Later", () => { from = Math.min(Math.max(0, head - 1), from + WINDOW); return draw(); }, { disabled: from + WINDOW >= head })),
      h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Picture of the time" }, picture), table);
  };
  await draw();
}
