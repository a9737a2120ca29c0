// What ran when: bars on an axis of time, with lanes for the model, for people and for tools that run side by side. It scrolls sideways
// through the whole session; only the stretches in sight are loaded and drawn. Time in which no process drove the session is hatched and
// takes little room, so a night does not hide the minutes around it.

import { h, show, svg, button } from "../lib/dom.js";
import { all } from "../lib/api.js";
import { clock, duration, line, number, visible } from "../lib/format.js";
import { Lanes } from "./records.js";

const CHUNK = 150;
const LANE = 24;
const TOP = 26;
const GAP = 26;
const MOST_LANES = 10;
const WIDTHS = [300, 600, 900, 1800, 3600];

/** Returns a function from times to pixels, in which idle stretches are short, and these stretches. */
function scale(rows, lanes, width) {
  const begin = Date.parse(rows[0].at);
  const end = Math.max(begin + 1, Date.parse(rows.at(-1).at));
  const gaps = rows.slice(1).map((row, index) => [Date.parse(rows[index].at), Date.parse(row.at), rows[index].position])
    .filter(([a, b, position]) => b - a > Math.max(5000, (end - begin) / 50) && !lanes.at(position).length).slice(0, 20);
  const active = Math.max(1, end - begin - gaps.reduce((sum, [a, b]) => sum + b - a, 0));
  const room = Math.max(60, width - 12 - gaps.length * GAP);
  const x = (time) => {
    let [idle, pixels] = [0, 0];
    for (const [a, b] of gaps) {
      const part = Math.min(Math.max(time - a, 0), b - a);
      idle += part;
      pixels += (part / (b - a)) * GAP;
    }
    return 4 + ((time - begin - idle) / active) * room + pixels;
  };
  return { x, gaps, begin, end };
}

/**
 * The spans of a stretch with their times, and lanes by time. Calls that run side by side are recorded when they end, so a call began as
 * long before its end as it took.
 */
function timed(lanes, rows) {
  const begin = Date.parse(rows[0].at);
  const spans = lanes.sorted.map((span) => {
    const b = Date.parse(span.end ?? rows.at(-1).at);
    return { ...span, a: Math.max(begin, Math.min(Date.parse(span.start), span.micros === undefined ? Infinity : b - span.micros / 1000)), b };
  }).sort((one, other) => one.a - other.a);
  const free = [];
  for (const span of spans) {
    if (span.kind !== "call") continue;
    let lane = free.findIndex((until) => until <= span.a);
    if (lane < 0) lane = free.length;
    free[lane] = span.b;
    span.lane = 2 + Math.min(lane, MOST_LANES - 1);
  }
  return spans;
}

/** Draws the records of a stretch. */
function picture(rows, { width, count, at, id, go, isLast }) {
  const lanes = new Lanes();
  lanes.add(rows);
  for (const span of lanes.spans.values()) if (span.from === undefined) Object.assign(span, { from: rows[0].position, start: rows[0].at, isOlder: true });
  lanes.sorted = null;
  lanes.at(0);
  const { x, gaps, begin } = scale(rows, lanes, width);
  const last = Date.parse(rows.at(-1).at);
  const spans = timed(lanes, rows);
  const lane = (span) => Math.min(span.lane, count - 1);
  const open = (span) => go(span.kind === "call" ? `/session/${id}/call/${span.key.split(" ")[1]}` : span.kind === "request" && !span.isOlder ? `/session/${id}/request/${span.from}` : `/session/${id}?at=${span.from + 1}&tab=time`);
  const height = TOP + count * LANE + 4;
  const bars = spans.map((span) => {
    const [left, right] = [x(span.a), span.end ? x(span.b) : width];
    const words = `${span.kind === "pause" ? "wait for a person" : span.kind} ${visible(span.name ?? "")}, ${span.end ? duration(span.b - span.a) : isLast ? "open" : "continues"}${span.failed ? ", failed" : ""}`;
    return svg("g", { tabindex: "0", role: "link", "aria-label": words, onclick: () => open(span), onkeydown: (event) => { if (event.key === "Enter") open(span); } },
      svg("title", {}, words),
      svg("rect", { x: left, y: TOP + lane(span) * LANE, width: Math.max(3, right - left), height: 18, rx: 3, class: `bar ${span.failed ? "failed" : ["model", "person"][span.lane] ?? "tool"}` }));
  });
  // Names are not a part of the links, which have whole ones.
  const labels = svg("g", { "aria-hidden": "true" }, spans.map((span) => {
    const [left, right] = [x(span.a), span.end ? x(span.b) : width];
    return right - left > 46 ? svg("text", { x: left + 5, y: TOP + 13 + lane(span) * LANE, class: "bar-name" }, line(String(span.name ?? span.kind).split("/").at(-1), Math.floor((right - left - 8) / 7))) : null;
  }));
  const retries = rows.filter((row) => row.kind === "request_failed").map((row) => svg("g", {}, svg("title", {}, visible(row.text)), svg("path", { d: `M ${x(Date.parse(row.at)) - 4} ${TOP - 4} h 8 l -4 7 z`, class: "retry" })));
  const marks = rows.filter((row) => ["rewound", "session_stopped", "evaluation_started"].includes(row.kind)).map((row) => svg("g", {},
    svg("title", {}, `${row.kind.replaceAll("_", " ")} at ${clock(row.at)}`), svg("line", { x1: x(Date.parse(row.at)), x2: x(Date.parse(row.at)), y1: TOP - 6, y2: height, class: `mark ${row.kind}` })));
  const chosen = rows.find((row) => row.position === at);
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Records ${rows[0].position} to ${rows.at(-1).position}` },
    svg("line", { x1: .5, x2: .5, y1: 0, y2: height, class: "lane" }), svg("text", { x: 6, y: 13, class: "axis" }, `${clock(begin)} · ${rows[0].position}`),
    width > 420 ? svg("text", { x: width - 8, y: 13, class: "axis", "text-anchor": "end" }, duration(last - begin)) : null,
    gaps.map(([a, b]) => svg("g", {}, svg("title", {}, `nobody drove it for ${duration(b - a)}`), svg("rect", { x: x(a), y: TOP - 4, width: GAP, height: height - TOP + 4, class: "gap" }), svg("text", { x: x(a) + GAP / 2, y: height - 6, class: "axis", "text-anchor": "middle" }, duration(b - a).split(" ").slice(0, 2).join(" ")))),
    marks, bars, labels, retries, chosen ? svg("line", { x1: x(Date.parse(chosen.at)), x2: x(Date.parse(chosen.at)), y1: 0, y2: height, class: "chosen" }) : null);
}

export async function waterfall(pane, { id, at, head, signal, go, live }) {
  const point = at === null || Number.isNaN(Number(at)) ? null : Number(at) - 1;
  let total = head;
  let count = 3;
  let width = pane.scrollerWidth < 500 ? WIDTHS[1] : WIDTHS[2];
  const drawn = new Map();
  const body = h("div.timeline-body");
  const names = svg("svg", { width: 62, class: "timeline-names", "aria-hidden": "true" });
  const frame = h("div.timeline-scroll", { tabindex: "0", role: "region", "aria-label": "Time of requests, waits and calls" }, body);
  const words = h("p.quiet");
  const layout = () => {
    body.style.width = `${Math.max(1, Math.ceil(total / CHUNK)) * width}px`;
    body.style.height = `${TOP + count * LANE + 4}px`;
    names.setAttribute("height", TOP + count * LANE + 4);
    show(names, ["model", "person", ...Array.from({ length: count - 2 }, (_, index) => (index ? `tool ${index + 1}` : "tools"))].map((name, lane) => svg("text", { x: 4, y: TOP + 13 + lane * LANE, class: "lane-name" }, name)));
  };
  const draw = (index, rows) => {
    const box = drawn.get(index);
    if (!box || !rows.length) return;
    const lanes = new Lanes();
    lanes.add(rows);
    for (const span of lanes.spans.values()) if (span.from === undefined) Object.assign(span, { from: rows[0].position, start: rows[0].at });
    lanes.at(0);
    const needed = Math.max(3, ...timed(lanes, rows).map((span) => span.lane + 1));
    if (needed > count) { count = needed; layout(); for (const each of drawn.values()) if (each.rows) show(each.element, picture(each.rows, options(each.index))); }
    box.rows = rows;
    show(box.element, picture(rows, options(index)));
  };
  const options = (index) => ({ width, count, at: point, id, go, isLast: (index + 1) * CHUNK >= total });
  const render = () => {
    const [first, last] = [Math.max(0, Math.floor(frame.scrollLeft / width) - 1), Math.min(Math.ceil(total / CHUNK) - 1, Math.floor((frame.scrollLeft + frame.clientWidth) / width) + 1)];
    for (const [index, { element }] of drawn) if (index < first || index > last) { element.remove(); drawn.delete(index); }
    for (let index = first; index <= last; index += 1) {
      if (drawn.has(index)) continue;
      const element = h("div.timeline-chunk", h("span.quiet", "…"));
      element.style.left = `${index * width}px`;
      drawn.set(index, { element, index });
      body.append(element);
      all(`/sessions/${id}/records`, "lines", { from: index * CHUNK, all: true }, CHUNK, signal).then((rows) => draw(index, rows), (error) => { if (!signal.aborted) show(element, h("span.error", error.message)); });
    }
    words.textContent = `${number(total)} records; in sight ${number(first * CHUNK)} to ${number(Math.min(total, (last + 1) * CHUNK) - 1)}. Hatched: no process drove the session. Triangles: attempts that failed.`;
  };
  const again = () => { for (const { element } of drawn.values()) element.remove(); drawn.clear(); layout(); render(); };
  let pause;
  frame.addEventListener("scroll", () => { clearTimeout(pause); pause = setTimeout(render, 60); }, { passive: true });
  const zoom = (step) => {
    const place = (frame.scrollLeft + frame.clientWidth / 2) / width;
    width = step < 0 ? WIDTHS.findLast((each) => each < width) ?? WIDTHS[0] : WIDTHS.find((each) => each > width) ?? WIDTHS.at(-1);
    layout();
    frame.scrollLeft = place * width - frame.clientWidth / 2;
    again();
  };
  const jump = (position) => { frame.scrollLeft = (position / CHUNK) * width - frame.clientWidth / 2; render(); };
  show(pane, h("h2", "Time"), h("p.actions", button("Start", () => jump(0)), button("End", () => jump(total)), button("−", () => zoom(-1), { "aria-label": "Zoom out" }), button("+", () => zoom(1), { "aria-label": "Zoom in" })),
    h("div.timeline", names, frame), words);
  layout();
  live.addEventListener("record", ({ detail }) => {
    total = Math.max(total, detail.position + 1);
    clearTimeout(pause);
    pause = setTimeout(() => { const follows = frame.scrollLeft + frame.clientWidth > body.clientWidth - width; again(); if (follows) jump(total); }, 400);
  }, { signal });
  // A short session fills the pane.
  const fit = () => {
    const room = frame.clientWidth - 1;
    if (total <= CHUNK && room > 200 && room !== width) { width = room; again(); } else render();
  };
  new ResizeObserver(() => { if (pane.isConnected) fit(); }).observe(frame);
  return () => {
    fit();
    jump(point ?? total);
  };
}
