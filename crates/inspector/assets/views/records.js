// A record as a row: lanes that show what ran at the same time, then its words. Records before a rewind are dimmed.

import { h, svg } from "../lib/dom.js";
import { clock, duration, line } from "../lib/format.js";

const OPENS = { request_started: "request", call_started: "call", paused: "pause" };
const CLOSES = { request_finished: "request", request_failed: "request", call_finished: "call", resolved: "pause" };
const QUIET = new Set(["budget_charged", "slice_changed", "resource_changed", "step_finished", "process_started", "turn_finished", "note", "workspace_observed"]);

// Short words for the kinds that are seen most; others are shown by their names.
const WORDS = { message_appended: "message", slice_changed: "state", request_started: "request", request_finished: "answered", request_failed: "attempt", call_started: "call", call_finished: "result",
  budget_charged: "charge", evaluation_started: "evaluation", evaluation_finished: "evaluation", workspace_observed: "files", resource_changed: "resource", step_finished: "step", process_started: "process",
  turn_finished: "turn", session_created: "session", session_stopped: "stop" };

const keyOf = (row) => {
  const kind = OPENS[row.kind] ?? CLOSES[row.kind];
  if (kind === "call") return `call ${row.data.call_id}`;
  if (kind === "request") return `request ${row.data.evaluation_id} ${row.data.turn}`;
  return kind ? `pause ${row.data.call_id ?? ""}` : null;
};

const BUCKET = 64;

/** Where spans begin and end, as far as their records are loaded. */
export class Lanes {
  constructor() { this.spans = new Map(); this.rows = new Map(); this.wide = 3; }

  /** Drops rows that are no longer loaded, and the spans that lie within them. */
  forget(rows) {
    if (!rows.length) return;
    const [first, last] = [rows[0].position, rows.at(-1).position];
    for (const row of rows) this.rows.delete(row.position);
    for (const [key, span] of this.spans) if ((span.from ?? span.to) >= first && (span.to ?? span.from) <= last) this.spans.delete(key);
    this.sorted = null;
  }

  add(rows) {
    for (const row of rows) {
      this.rows.set(row.position, row);
      const key = keyOf(row);
      if (!key) continue;
      const span = this.spans.get(key) ?? { key, kind: key.split(" ")[0] };
      if (row.kind in OPENS) { span.from = Math.min(span.from ?? row.position, row.position); span.start = row.at; span.name = row.data.name ?? row.data.model; }
      else { span.to = Math.max(span.to ?? row.position, row.position); span.end = row.at; span.failed = row.kind === "request_failed" || row.data.outcome === "failed"; span.name ??= row.name; span.micros = row.data.elapsed_micros; }
      this.spans.set(key, span);
    }
    this.sorted = null;
  }

  /** The spans that hold a position, each with its lane: 0 model, 1 person, 2 and more tools, which may run side by side. */
  at(position) {
    if (!this.sorted) {
      this.sorted = [...this.spans.values()].filter((span) => span.from !== undefined).sort((a, b) => a.from - b.from);
      this.buckets = new Map();
      const free = [];
      for (const span of this.sorted) {
        for (let bucket = Math.floor(span.from / BUCKET); bucket <= Math.floor((span.to ?? span.from) / BUCKET); bucket += 1) {
          if (!this.buckets.has(bucket)) this.buckets.set(bucket, []);
          this.buckets.get(bucket).push(span);
        }
        const end = span.to ?? span.from + 400; // an end that is not loaded does not keep the lane for ever
        if (span.kind === "request") span.lane = 0;
        else if (span.kind === "pause") span.lane = 1;
        else {
          let lane = free.findIndex((until) => until < span.from);
          if (lane < 0) lane = free.length;
          free[lane] = end;
          span.lane = 2 + Math.min(lane, 5);
          this.wide = Math.max(this.wide, span.lane + 1);
        }
      }
    }
    return (this.buckets.get(Math.floor(position / BUCKET)) ?? []).filter((span) => span.from <= position && (span.to ?? span.from) >= position);
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
  const width = 4 + lanes.wide * 9;
  return svg("svg", { width, height: 26, viewBox: `0 0 ${width} 26`, "aria-hidden": "true", class: "lanes" }, shapes);
}

function link(row, model) {
  const id = row.data.call_id ?? row.data.message?.content?.invocation_id;
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
    h(`span.kind.${row.kind}`, { title: row.kind.replaceAll("_", " ") }, WORDS[row.kind] ?? row.kind.replaceAll("_", " ")),
    h(`span.words${href ? ".opens" : ""}`, { "data-href": href }, row.kind === "slice_changed" ? line(row.data.slice, 80) : line(row.text, 200)),
    took > 0 ? h("span.num.quiet", duration(took)) : null,
    gap ? h("span.tag.paused", `nobody drove it for ${duration(gap)}`) : null,
    row.visible ? null : h("span.tag", `branch ${row.branch}`));
}
