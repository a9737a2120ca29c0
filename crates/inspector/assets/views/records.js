// A record as a row: lanes that show what ran at the same time, then its words. Records before a rewind are dimmed.

import { h, svg } from "../lib/dom.js";
import { clock, duration, line } from "../lib/format.js";

const OPENS = { request_started: "request", call_started: "call", paused: "pause" };
const CLOSES = { request_finished: "request", request_failed: "request", call_finished: "call", resolved: "pause" };
const QUIET = new Set(["budget_charged", "slice_changed", "resource_changed", "step_finished", "process_started", "turn_finished", "note", "workspace_observed"]);

const keyOf = (row) => {
  const kind = OPENS[row.kind] ?? CLOSES[row.kind];
  if (kind === "call") return `call ${row.data.call_id}`;
  if (kind === "request") return `request ${row.data.evaluation_id} ${row.data.turn}`;
  return kind ? `pause ${row.data.call_id ?? ""}` : null;
};

/** Where spans begin and end, as far as their records are loaded. */
export class Lanes {
  constructor() { this.spans = new Map(); this.rows = new Map(); }

  add(rows) {
    for (const row of rows) {
      this.rows.set(row.position, row);
      const key = keyOf(row);
      if (!key) continue;
      const span = this.spans.get(key) ?? { key, kind: key.split(" ")[0] };
      if (row.kind in OPENS) { span.from = Math.min(span.from ?? row.position, row.position); span.start = row.at; span.name = row.data.name ?? row.data.model; }
      else { span.to = Math.max(span.to ?? row.position, row.position); span.end = row.at; span.failed = row.kind === "request_failed" || row.data.outcome === "failed"; }
      this.spans.set(key, span);
    }
    this.sorted = null;
  }

  /** The spans that hold a position, each with its lane: 0 model, 1 person, 2 and more tools, which may run side by side. */
  at(position) {
    if (!this.sorted) {
      this.sorted = [...this.spans.values()].filter((span) => span.from !== undefined).sort((a, b) => a.from - b.from);
      const free = [];
      for (const span of this.sorted) {
        const end = span.to ?? Infinity;
        if (span.kind === "request") span.lane = 0;
        else if (span.kind === "pause") span.lane = 1;
        else {
          let lane = free.findIndex((until) => until < span.from);
          if (lane < 0) lane = free.length;
          free[lane] = end;
          span.lane = 2 + Math.min(lane, 5);
        }
      }
    }
    return this.sorted.filter((span) => span.from <= position && (span.to ?? span.from) >= position);
  }
}

function drawLanes(row, lanes) {
  const shapes = lanes.at(row.position).map((span) => {
    const x = 6 + span.lane * 9;
    const first = span.from === row.position;
    const last = span.to === row.position;
    const color = span.failed ? "failed" : ["model", "person"][span.lane] ?? "tool";
    return [svg("line", { x1: x, x2: x, y1: first ? 13 : 0, y2: last || span.to === undefined ? 13 : 26, class: `lane ${color}` }),
      (first || last) && svg("circle", { cx: x, cy: 13, r: 3.5, class: `dot ${color}` })];
  });
  return svg("svg", { width: 76, height: 26, viewBox: "0 0 76 26", "aria-hidden": "true", class: "lanes" }, shapes);
}

function link(row, model) {
  const id = row.data.call_id;
  if (id) return `#/session/${model.id}/call/${id}`;
  if (row.kind === "request_started") return `#/session/${model.id}/request/${row.position}`;
  return null;
}

/** Draws a row. */
export function recordRow(row, lanes, model) {
  const key = keyOf(row);
  const span = key && row.kind in CLOSES ? lanes.spans.get(key) : null;
  const took = row.data.elapsed_micros !== undefined ? row.data.elapsed_micros / 1000 : span?.start ? Date.parse(row.at) - Date.parse(span.start) : null;
  const before = lanes.rows.get(row.position - 1);
  const gap = before && !lanes.at(row.position - 1).length && Date.parse(row.at) - Date.parse(before.at) > 5000 ? Date.parse(row.at) - Date.parse(before.at) : null;
  const href = link(row, model);
  return h(`div.record${row.visible ? "" : ".gone"}${QUIET.has(row.kind) ? ".dim" : ""}`, drawLanes(row, lanes),
    h("span.position", String(row.position)), h("time.quiet", { datetime: row.at }, clock(row.at)),
    h(`span.kind.${row.kind}`, row.kind.replaceAll("_", " ")),
    h(`span.words${href ? ".opens" : ""}`, { "data-href": href }, line(row.text, 200)),
    took > 0 ? h("span.num.quiet", duration(took)) : null,
    gap ? h("span.tag.paused", `nobody drove it for ${duration(gap)}`) : null,
    row.visible ? null : h("span.tag", `branch ${row.branch}`));
}
